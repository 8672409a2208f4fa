"""What is recorded under claims of tasks and duties, how they are given back, and what a person
changes in the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from babyagi import events
from babyagi.errors import LeaseLostError, StaleOrderError
from babyagi.tasks import (
    Claim,
    DutyClaim,
    Lack,
    Objective,
    Place,
    Proposal,
    Result,
    StopReason,
    Task,
    TaskStatus,
)
from babyagi.taskstore import lifecycle
from babyagi.taskstore.port import (
    NOTHING_CHECKED,
    Checked,
    Kept,
    Outcome,
    Plan,
    Planned,
)
from babyagi.taskstore.sql import planning, transitions
from babyagi.taskstore.sql import planning as proposals_
from babyagi.taskstore.sql.database import SqlAccess, Transaction
from babyagi.taskstore.sql.rows import (
    result_from_row,
    result_to_values,
    sealed,
    task_from_row,
    to_json,
    to_time,
)
from babyagi.taskstore.sql.steps import record_first


class Recording(SqlAccess):
    """Finish claimed tasks and duties, and give them back."""

    # -- tasks
    # ----------------------------------------------------------------------------------------------

    async def record_result(
        self,
        claim: Claim,
        *,
        text: str,
        origins: Sequence[str],
        lack: str = "",
        plan: Planned | None = None,
        first: Outcome | Kept | None = None,
    ) -> Result:
        def work(tx: Transaction) -> Result:
            try:
                record_first(tx, claim.fence, first)  # this may change the task
                transitions.prefetch_free_task(tx, claim.fence.objective_id)
                planning.ask_lacking(tx, claim.fence.objective_id)
                task = transitions.fenced_task(tx, claim.fence, TaskStatus.RUNNING)
            except LeaseLostError:
                known = _recorded_before(tx, claim)
                if known is None:
                    raise
                return known
            lacking = planning.find_lacking(tx, task.objective_id)
            result = lifecycle.new_result(
                task, text=text, origins=origins, lack=lack, at=to_time(tx.now_us)
            )
            tx.run("insert_result", **result_to_values(result))
            task = transitions.free_task(tx, replace(task, status=TaskStatus.RECORDED, lack=None))
            transitions.append_event(
                tx,
                task.objective_id,
                events.TASK_RECORDED,
                task.id,
                result_chars=len(result.text),
                lack=result.lack,
            )
            planning.wake(tx, lacking, result)
            if plan is not None:
                planning.apply(tx, task.objective_id, [task], plan)
            return result

        return await self._write(work, claim.fence.objective_id)

    async def record_lack(
        self,
        claim: Claim,
        *,
        lack: Lack,
        plan: Planned | None = None,
        first: Outcome | Kept | None = None,
    ) -> Task:
        def work(tx: Transaction) -> Task:
            record_first(tx, claim.fence, first)
            task = transitions.fenced_task(tx, claim.fence, TaskStatus.RUNNING)
            task = planning.record_lack(tx, lifecycle.lacked(task, lack=lack))
            if plan is not None and task.status is TaskStatus.RECORDED:
                planning.apply(tx, task.objective_id, [task], plan)
            return transitions.read_task(tx, task.objective_id, task.id)

        return await self._write(work, claim.fence.objective_id)

    async def record_plan(
        self,
        claim: DutyClaim,
        *,
        task_ids: Sequence[int],
        plan: Planned,
        first: Outcome | Kept | None = None,
    ) -> Plan:
        def work(tx: Transaction) -> Plan:
            record_first(tx, claim.fence, first)
            planning.ask(tx, claim.fence, task_ids)
            duty, objective_id = transitions.fenced_duty(tx, claim.fence), claim.fence.objective_id
            tasks = [transitions.read_task(tx, objective_id, task_id) for task_id in task_ids]
            made = planning.apply(
                tx,
                objective_id,
                [task for task in tasks if task.status is TaskStatus.RECORDED],
                plan,
                ends_planning=True,
            )
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            return made

        return await self._write(work, claim.fence.objective_id)

    async def fail_task(
        self, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0
    ) -> Task:
        def work(tx: Transaction) -> Task:
            task = lifecycle.failed(transitions.fenced_task(tx, claim.fence), error=error)
            transitions.count_no_answer(tx, task.objective_id)
            _give_up_or_retry(tx, task, max_failures=max_failures, delay_s=delay_s)
            return transitions.read_task(tx, task.objective_id, task.id)

        return await self._write(work, claim.fence.objective_id)

    async def release_task(self, claim: Claim, *, delay_s: float = 0.0, reason: str = "") -> None:
        await self._write(
            lambda tx: release(
                tx, transitions.fenced_task(tx, claim.fence), reason=reason, delay_s=delay_s
            ),
            claim.fence.objective_id,
        )

    # -- duties
    # ----------------------------------------------------------------------------------------------

    async def reorder(
        self,
        claim: DutyClaim,
        *,
        revision: int,
        task_ids: Sequence[int],
        first: Outcome | Kept | None = None,
    ) -> None:
        def work(tx: Transaction) -> None:
            duty = transitions.fenced_duty(tx, claim.fence)
            objective_id = claim.fence.objective_id
            if transitions.objective_row(tx, objective_id)["order_revision"] != revision:
                raise StaleOrderError(
                    f"the list of objective {objective_id} was re-ordered since revision {revision}"
                )
            record_first(tx, claim.fence, first)
            rows = tx.all("ranks", objective_id=objective_id, task_ids=to_json(list(task_ids)))
            rank_by_id = {row["id"]: row["rank"] for row in rows}
            dealt = lifecycle.deal_ranks(rank_by_id.items(), task_ids)
            moved = {
                task_id: rank for task_id, rank in dealt.items() if rank != rank_by_id[task_id]
            }
            tx.run_many(
                "set_rank",
                [
                    {"objective_id": objective_id, "task_id": task_id, "rank": rank}
                    for task_id, rank in moved.items()
                ],
            )
            tx.run("set_order", objective_id=objective_id, upto=duty["upto"])
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            transitions.append_event(
                tx,
                objective_id,
                events.ORDER_APPLIED,
                revision=revision + 1,
                task_ids=list(dealt),
                n_moved=len(moved),
            )

        await self._write(work, claim.fence.objective_id, is_lasting=isinstance(first, Outcome))

    async def finish_check(
        self,
        claim: DutyClaim,
        *,
        is_met: bool,
        reason: str,
        checked: Checked = NOTHING_CHECKED,
        proposals: Sequence[Proposal] = (),
        fallback: Sequence[Proposal] = (),
    ) -> Objective:
        def work(tx: Transaction) -> Objective:
            duty, objective_id = transitions.fenced_duty(tx, claim.fence), claim.fence.objective_id
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            planning.finish_check(
                tx,
                objective_id,
                is_met=is_met,
                reason=reason,
                checked=checked,
                wanted=(proposals, fallback),
            )
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, claim.fence.objective_id)

    async def record_report(self, claim: DutyClaim, *, markdown: str) -> None:
        def work(tx: Transaction) -> None:
            duty, objective_id = transitions.fenced_duty(tx, claim.fence), claim.fence.objective_id
            tx.run(
                "set_report",
                objective_id=objective_id,
                **sealed("report", {"id": objective_id, "report": lifecycle.storable(markdown)}),
            )
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            transitions.append_event(
                tx, objective_id, events.REPORT_WRITTEN, report_chars=len(markdown)
            )

        await self._write(work, claim.fence.objective_id)

    async def release_duty(self, claim: DutyClaim, *, delay_s: float = 0.0) -> None:
        def work(tx: Transaction) -> None:
            duty = transitions.fenced_duty(tx, claim.fence)
            transitions.free_duty(
                tx,
                claim.fence.objective_id,
                duty=duty["duty"],
                owner=duty["owner"],
                delay_s=delay_s,
            )

        await self._write(work, claim.fence.objective_id, is_lasting=False)


def _recorded_before(tx: Transaction, claim: Claim) -> Result | None:
    """Return the result if this very claim has recorded it before: its commit seemed to fail, so it
    is sent again."""
    row = tx.one("task", objective_id=claim.fence.objective_id, task_id=claim.task.id)
    if (
        row is None
        or row["claim_no"] != claim.fence.claim_no
        or row["status"] not in (TaskStatus.RECORDED, TaskStatus.DONE)
    ):
        return None
    found = tx.all(
        "results_of", objective_id=claim.fence.objective_id, task_ids=to_json([claim.task.id])
    )
    return result_from_row(found[0]) if found else None


def release(tx: Transaction, task: Task, *, reason: str, delay_s: float = 0.0) -> None:
    freed = transitions.free_task(tx, task, delay_s=delay_s)
    transitions.append_event(
        tx,
        task.objective_id,
        events.TASK_RELEASED,
        task.id,
        reason=lifecycle.storable(reason),
        delay_s=delay_s,
    )
    transitions.note_freed(tx, freed)


def put_back_lost(tx: Transaction, task: Task) -> None:
    """Release a task whose worker was lost. The same try goes on, so that nothing is paid for
    twice."""
    n_lost = task.n_lost + 1 if task.status is TaskStatus.RUNNING else 0
    task = replace(task, n_lost=n_lost)
    if n_lost < lifecycle.MAX_LOST:
        release(tx, task, reason="worker lost", delay_s=lifecycle.pause_after_loss(n_lost))
        return
    error = f"{n_lost} workers in a row were lost while they worked on it"
    written = transitions.free_task(tx, replace(task, status=TaskStatus.DEAD, error=error))
    if written.status is TaskStatus.DEAD:
        transitions.append_event(tx, task.objective_id, events.TASK_DEAD, task.id, error=error)
    transitions.note_freed(tx, written)


def _give_up_or_retry(
    tx: Transaction, task: Task, *, max_failures: int, delay_s: float = 0.0
) -> None:
    """Release a task whose failure is counted already: queued again, or dead."""
    status = lifecycle.status_after_failure(failures=task.failures, max_failures=max_failures)
    written = transitions.free_task(tx, replace(task, status=status), delay_s=delay_s)
    transitions.append_event(
        tx, task.objective_id, events.TASK_FAILED, task.id, error=task.error, failures=task.failures
    )
    if written.status is TaskStatus.DEAD:
        transitions.append_event(tx, task.objective_id, events.TASK_DEAD, task.id, error=task.error)
    transitions.note_freed(tx, written)


# --------------------------------------------------------------------------------------------------
# The task store on SQL: what a person changes in a list that others work on.
# --------------------------------------------------------------------------------------------------


class Steering(SqlAccess):
    """Add, move, replace, cancel and retry tasks."""

    async def add_tasks(
        self,
        objective_id: int,
        proposals: Sequence[Proposal],
        *,
        allow_duplicates: bool = True,
        to: Place = Place.LAST,
    ) -> Plan:
        def work(tx: Transaction) -> Plan:
            row = transitions.objective_row(tx, objective_id)
            reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
            lifecycle.require_reopenable(objective_id, reason)
            plan = proposals_.enter(
                tx, objective_id, proposals, allow_duplicates=allow_duplicates
            ).plan
            if plan.added:
                tx.run("count_afresh", objective_id=objective_id)
            if plan.added and reason is not None:
                transitions.reopen(tx, objective_id)
            if to is not Place.LAST and plan.added:
                put_in_place(tx, objective_id, [task.id for task in plan.added], to)
            return replace(
                plan,
                added=tuple(
                    transitions.read_task(tx, objective_id, task.id) for task in plan.added
                ),
            )

        return await self._write(work, objective_id)

    async def move_task(self, objective_id: int, task_id: int, *, to: Place | int) -> Task:
        def work(tx: Transaction) -> Task:
            _changeable(tx, objective_id, task_id)
            if not isinstance(to, Place):
                transitions.read_task(tx, objective_id, to)
            put_in_place(tx, objective_id, [task_id], to)
            return transitions.read_task(tx, objective_id, task_id)

        return await self._write(work, objective_id)

    async def replace_task(self, objective_id: int, task_id: int, *, name: str) -> Task:
        def work(tx: Transaction) -> Task:
            old = _changeable(tx, objective_id, task_id)
            proposal = lifecycle.replacement(old, name)
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
            transitions.append_event(
                tx, objective_id, events.TASK_CANCELLED, old.id, replaced_by=new.id
            )
            transitions.allow_questions(tx, objective_id)
            return transitions.read_task(tx, objective_id, new.id)

        return await self._write(work, objective_id)

    async def cancel_task(self, objective_id: int, task_id: int) -> Task:
        def work(tx: Transaction) -> Task:
            _changeable(tx, objective_id, task_id)
            tx.run("cancel_task", objective_id=objective_id, task_id=task_id)
            transitions.append_event(tx, objective_id, events.TASK_CANCELLED, task_id)
            transitions.allow_questions(tx, objective_id)
            return transitions.read_task(tx, objective_id, task_id)

        return await self._write(work, objective_id)

    async def retry_task(self, objective_id: int, task_id: int) -> Task:
        def work(tx: Transaction) -> Task:
            row = transitions.objective_row(tx, objective_id)
            lifecycle.require_dead(transitions.read_task(tx, objective_id, task_id))
            reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
            lifecycle.require_reopenable(objective_id, reason)
            tx.run("retry_task", objective_id=objective_id, task_id=task_id)
            tx.run("count_afresh", objective_id=objective_id)
            task = transitions.read_task(tx, objective_id, task_id)
            transitions.append_event(
                tx, objective_id, events.TASK_RETRIED, task_id, try_no=task.try_no
            )
            if reason is not None:
                transitions.reopen(tx, objective_id)
            return task

        return await self._write(work, objective_id)


def _changeable(tx: Transaction, objective_id: int, task_id: int) -> Task:
    transitions.objective_row(tx, objective_id)
    task = transitions.read_task(tx, objective_id, task_id)
    lifecycle.require_changeable(task)
    return task


def put_in_place(tx: Transaction, objective_id: int, moved: Sequence[int], to: Place | int) -> None:
    """Give the ranks of the open tasks to the same tasks in the new order."""
    listed = tx.all(
        "tasks_with_status",
        objective_id=objective_id,
        statuses=to_json(lifecycle.CANCELLABLE),
        limit=transitions.ALL_ROWS,
    )
    rank_by_id = {row["id"]: row["rank"] for row in listed}
    dealt = lifecycle.deal_ranks(rank_by_id.items(), lifecycle.put_at(list(rank_by_id), moved, to))
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
        transitions.append_event(tx, objective_id, events.TASK_MOVED, task_id, to=to)
