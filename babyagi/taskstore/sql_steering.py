"""The task store on SQL: what a person changes in a list that others work on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from babyagi import log
from babyagi.tasks import Place, Proposal, StopReason, Task
from babyagi.taskstore import moves, rules, steering
from babyagi.taskstore import proposals as proposals_
from babyagi.taskstore.base import Plan
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.rows import task_from_row, to_json
from babyagi.taskstore.sql_room import SqlRoom


class Steering(SqlRoom):
    """Add, move, replace, cancel, retry."""

    async def add_tasks(
        self,
        objective_id: int,
        proposals: Sequence[Proposal],
        *,
        allow_duplicates: bool = True,
        to: Place = Place.LAST,
    ) -> Plan:
        def work(tx: Transaction) -> Plan:
            row = moves.objective_row(tx, objective_id)
            reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
            steering.require_reopenable(objective_id, reason)
            plan = proposals_.enter(
                tx, objective_id, proposals, allow_duplicates=allow_duplicates
            ).plan
            if plan.added:
                tx.run("count_afresh", objective_id=objective_id)
            if plan.added and reason is not None:
                moves.reopen(tx, objective_id)
            if to is not Place.LAST and plan.added:
                _put(tx, objective_id, [task.id for task in plan.added], to)
            return replace(
                plan, added=tuple(moves.read_task(tx, objective_id, task.id) for task in plan.added)
            )

        return await self._write(work, objective_id)

    async def move_task(self, objective_id: int, task_id: int, *, to: Place | int) -> Task:
        def work(tx: Transaction) -> Task:
            _changeable(tx, objective_id, task_id)
            if not isinstance(to, Place):
                moves.read_task(tx, objective_id, to)
            _put(tx, objective_id, [task_id], to)
            return moves.read_task(tx, objective_id, task_id)

        return await self._write(work, objective_id)

    async def replace_task(self, objective_id: int, task_id: int, *, name: str) -> Task:
        def work(tx: Transaction) -> Task:
            old = _changeable(tx, objective_id, task_id)
            proposal = steering.replacement(old, name)
            new = proposals_.enter(tx, objective_id, [proposal], allow_duplicates=True).plan.added[
                0
            ]
            for row in tx.all("dependents", objective_id=objective_id, task_id=old.id):
                after = [new.id if named == old.id else named for named in task_from_row(row).after]
                proposals_.set_after(tx, objective_id, row["id"], after)
            tx.run("set_rank", objective_id=objective_id, task_id=new.id, rank=old.rank)
            tx.run("set_rank", objective_id=objective_id, task_id=old.id, rank=new.rank)
            tx.run("cancel_task", objective_id=objective_id, task_id=old.id)
            tx.run("count_afresh", objective_id=objective_id)
            moves.append_event(tx, objective_id, log.TASK_CANCELLED, old.id, replaced_by=new.id)
            moves.let_ask(tx, objective_id)
            return moves.read_task(tx, objective_id, new.id)

        return await self._write(work, objective_id)

    async def cancel_task(self, objective_id: int, task_id: int) -> Task:
        def work(tx: Transaction) -> Task:
            _changeable(tx, objective_id, task_id)
            tx.run("cancel_task", objective_id=objective_id, task_id=task_id)
            moves.append_event(tx, objective_id, log.TASK_CANCELLED, task_id)
            moves.let_ask(tx, objective_id)
            return moves.read_task(tx, objective_id, task_id)

        return await self._write(work, objective_id)

    async def retry_task(self, objective_id: int, task_id: int) -> Task:
        def work(tx: Transaction) -> Task:
            row = moves.objective_row(tx, objective_id)
            steering.require_dead(moves.read_task(tx, objective_id, task_id))
            reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
            steering.require_reopenable(objective_id, reason)
            tx.run("retry_task", objective_id=objective_id, task_id=task_id)
            tx.run("count_afresh", objective_id=objective_id)
            task = moves.read_task(tx, objective_id, task_id)
            moves.append_event(tx, objective_id, log.TASK_RETRIED, task_id, try_no=task.try_no)
            if reason is not None:
                moves.reopen(tx, objective_id)
            return task

        return await self._write(work, objective_id)


def _changeable(tx: Transaction, objective_id: int, task_id: int) -> Task:
    moves.objective_row(tx, objective_id)
    task = moves.read_task(tx, objective_id, task_id)
    steering.require_changeable(task)
    return task


def _put(tx: Transaction, objective_id: int, moved: Sequence[int], to: Place | int) -> None:
    """Deal the ranks of what is still to be done out anew, with the moved tasks in their new
    place."""
    listed = tx.all(
        "tasks_with_status",
        objective_id=objective_id,
        statuses=to_json(rules.CANCELLABLE),
        limit=moves.ALL_ROWS,
    )
    rank_by_id = {row["id"]: row["rank"] for row in listed}
    dealt = rules.deal_ranks(rank_by_id.items(), steering.put_at(list(rank_by_id), moved, to))
    changed = [(task_id, rank) for task_id, rank in dealt.items() if rank != rank_by_id[task_id]]
    tx.run_many(
        "set_rank",
        [
            {"objective_id": objective_id, "task_id": task_id, "rank": rank}
            for task_id, rank in changed
        ],
    )
    tx.run("bump_order", objective_id=objective_id)
    for task_id in moved:
        moves.append_event(tx, objective_id, log.TASK_MOVED, task_id, to=to)
