"""The task store on SQL: what workers hold, tasks and duties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from babyagi import log
from babyagi.errors import StaleOrderError
from babyagi.tasks import (
    Claim,
    Duty,
    DutyClaim,
    Fence,
    Objective,
    ObjectiveStatus,
    Proposal,
    Result,
    StopReason,
    Task,
    TaskStatus,
)
from babyagi.taskstore import changes, moves, rules
from babyagi.taskstore.base import Plan
from babyagi.taskstore.base_workers import Outlook
from babyagi.taskstore.database import Row, Transaction
from babyagi.taskstore.rows import result_from_row, result_to_values, task_from_row, to_json, to_time
from babyagi.taskstore.sql_room import SqlRoom


class Claims(SqlRoom):
    """Claiming, finishing and giving back."""

    # -- looking for work --------------------------------------------------------------------------------------------------

    async def open_objectives(self) -> list[int]:
        return await self._read(lambda tx: [row["id"] for row in tx.all("open_objectives")])

    async def outlook(self, objective_id: int) -> Outlook:
        def work(tx: Transaction) -> Outlook:
            row, objective = moves.objective_row(tx, objective_id), moves.read_objective(tx, objective_id)
            duties = tuple(duty for duty in rules.DUTIES if _may_claim_duty(tx, row, duty))
            has_task = _best_task(tx, objective) is not None
            is_idle = objective.status is ObjectiveStatus.ACTIVE and not (has_task or duties)
            can_conclude = is_idle and rules.conclude(moves.snapshot(tx, objective)) is not None
            return Outlook(objective=objective, has_task=has_task, duties=duties, can_conclude=can_conclude)

        return await self._read(work)

    # -- tasks -----------------------------------------------------------------------------------------------------------

    async def claim_task(self, objective_id: int, worker_id: str) -> Claim | None:
        def work(tx: Transaction) -> Claim | None:
            self._require_known_schema(tx)
            objective = moves.read_objective(tx, objective_id)
            task_id = _best_task(tx, objective) if _can_serve(tx, objective_id, worker_id) else None
            if task_id is None:
                return None
            task = task_from_row(tx.all("claim_task", objective_id=objective_id, task_id=task_id, worker_id=worker_id)[0])
            moves.append_event(tx, objective_id, log.TASK_CLAIMED, task_id, worker_id=worker_id, try_no=task.try_no, claim_no=task.claim_no)
            fence = Fence(objective_id=objective_id, owner=f"task:{task_id}", claim_no=task.claim_no, worker_id=worker_id)
            return Claim(task=task, fence=fence)

        return await self._write(work, objective_id, is_lasting=False)

    async def record_result(self, claim: Claim, *, text: str, origins: Sequence[str]) -> Result:
        def work(tx: Transaction) -> Result:
            task = moves.fenced_task(tx, claim.fence)
            if task.status is TaskStatus.RECORDED:
                row = tx.all("results_of", objective_id=task.objective_id, task_ids=to_json([task.id]))[0]
                return result_from_row(row)
            result = changes.new_result(task, text=text, origins=origins, at=to_time(tx.now_us))
            tx.run("insert_result", **result_to_values(result))
            tx.run("record_task", objective_id=task.objective_id, task_id=task.id)
            moves.append_event(tx, task.objective_id, log.TASK_RECORDED, task.id, result_chars=len(result.text))
            return result

        return await self._write(work, claim.fence.objective_id)

    async def record_plan(self, claim: Claim, *, proposals: Sequence[Proposal], is_met: bool = False, is_repeat: bool = False) -> Plan:
        def work(tx: Transaction) -> Plan:
            task = moves.fenced_task(tx, claim.fence, TaskStatus.RECORDED)
            row = moves.objective_row(tx, task.objective_id)
            is_open = row["status"] != ObjectiveStatus.ENDED
            sifted = moves.sift(tx, row, proposals if is_open else (), allow_duplicates=False)
            plan = moves.add(tx, task.objective_id, sifted, parent_id=task.id)
            moves.put_down(tx, replace(task, status=TaskStatus.DONE))
            n_barren = rules.count_barren(row["n_barren"], n_added=len(plan.added), is_repeat=is_repeat)
            tx.run("set_barren", objective_id=task.objective_id, n_barren=n_barren)
            data = {"n_added": len(plan.added), "n_duplicates": len(plan.duplicates), "n_barren": n_barren}
            moves.append_event(tx, task.objective_id, log.TASK_DONE, task.id, **data)
            if is_met and is_open:
                tx.run("set_claimed_met", objective_id=task.objective_id)
                moves.append_event(tx, task.objective_id, log.OBJECTIVE_CLAIMED_MET, task.id, task_id=task.id)
            return plan

        return await self._write(work, claim.fence.objective_id)

    async def fail_task(self, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0) -> Task:
        def work(tx: Transaction) -> Task:
            task = changes.failed(moves.fenced_task(tx, claim.fence), error=error)
            return give_up_or_retry(tx, task, max_failures=max_failures, delay_s=delay_s)

        return await self._write(work, claim.fence.objective_id)

    async def release_task(self, claim: Claim, *, delay_s: float = 0.0, reason: str = "") -> None:
        await self._write(
            lambda tx: release(tx, moves.fenced_task(tx, claim.fence), reason=reason, delay_s=delay_s), claim.fence.objective_id
        )

    # -- duties ----------------------------------------------------------------------------------------------------------

    async def claim_duty(self, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim | None:
        def work(tx: Transaction) -> DutyClaim | None:
            row = moves.objective_row(tx, objective_id)
            if not (_can_serve(tx, objective_id, worker_id) and _may_claim_duty(tx, row, duty)):
                return None
            owner = rules.duty_owner(duty, order_revision=row["order_revision"], check_no=row["check_no"], report_no=row["report_no"])
            values = {"objective_id": objective_id, "duty": duty, "owner": owner, "worker_id": worker_id, "upto": row["last_task_id"]}
            claim_no = tx.all("claim_duty", **values)[0]["claim_no"]
            return DutyClaim(duty=duty, fence=Fence(objective_id=objective_id, owner=owner, claim_no=claim_no, worker_id=worker_id))

        return await self._write(work, objective_id, is_lasting=False)

    async def reorder(self, claim: DutyClaim, *, revision: int, task_ids: Sequence[int]) -> None:
        def work(tx: Transaction) -> None:
            duty = moves.fenced_duty(tx, claim.fence)
            objective_id = claim.fence.objective_id
            if moves.objective_row(tx, objective_id)["order_revision"] != revision:
                raise StaleOrderError(f"the list of objective {objective_id} was re-ordered since revision {revision}")
            rows = tx.all("ranks", objective_id=objective_id, task_ids=to_json(list(task_ids)))
            rank_by_id = {row["id"]: row["rank"] for row in rows}
            dealt = rules.deal_ranks(rank_by_id.items(), task_ids)
            moved = {task_id: rank for task_id, rank in dealt.items() if rank != rank_by_id[task_id]}
            tx.run_many("set_rank", [{"objective_id": objective_id, "task_id": task_id, "rank": rank} for task_id, rank in moved.items()])
            tx.run("set_order", objective_id=objective_id, upto=duty["upto"])
            moves.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            moves.append_event(tx, objective_id, log.ORDER_APPLIED, revision=revision + 1, task_ids=list(dealt), n_moved=len(moved))

        await self._write(work, claim.fence.objective_id, is_lasting=False)

    async def finish_check(self, claim: DutyClaim, *, is_met: bool, reason: str) -> Objective:
        def work(tx: Transaction) -> Objective:
            duty, objective_id = moves.fenced_duty(tx, claim.fence), claim.fence.objective_id
            tx.run("finish_check", objective_id=objective_id)
            moves.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            detail = rules.storable(reason, max_chars=rules.MAX_DETAIL_CHARS)
            moves.append_event(tx, objective_id, log.OBJECTIVE_CHECKED, is_met=is_met, reason=detail)
            if is_met:
                moves.end(tx, objective_id, reason=StopReason.OBJECTIVE_MET, detail=detail)
            return moves.read_objective(tx, objective_id)

        return await self._write(work, claim.fence.objective_id)

    async def record_report(self, claim: DutyClaim, *, markdown: str) -> None:
        def work(tx: Transaction) -> None:
            duty, objective_id = moves.fenced_duty(tx, claim.fence), claim.fence.objective_id
            tx.run("set_report", objective_id=objective_id, markdown=rules.storable(markdown))
            moves.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            moves.append_event(tx, objective_id, log.REPORT_WRITTEN, report_chars=len(markdown))

        await self._write(work, claim.fence.objective_id)

    async def release_duty(self, claim: DutyClaim, *, delay_s: float = 0.0) -> None:
        def work(tx: Transaction) -> None:
            duty = moves.fenced_duty(tx, claim.fence)
            moves.free_duty(tx, claim.fence.objective_id, duty=duty["duty"], owner=duty["owner"], delay_s=delay_s)

        await self._write(work, claim.fence.objective_id, is_lasting=False)


def _can_serve(tx: Transaction, objective_id: int, worker_id: str) -> bool:
    """Whoever does not serve the objective, or whose lease has run out, is given nothing: it would be taken away at once."""
    return tx.has("can_serve", objective_id=objective_id, worker_id=worker_id)


def _best_task(tx: Transaction, objective: Objective) -> int | None:
    if objective.status is not ObjectiveStatus.ACTIVE or rules.is_reached(objective.spec.limits.max_time_s, objective.active_s):
        return None
    row = tx.one("best_recorded", objective_id=objective.id)
    if row is None and _may_start(moves.objective_row(tx, objective.id)):
        n_by_status = moves.counts(tx, objective.id)
        if not rules.is_reached(objective.spec.limits.max_tasks, sum(n_by_status[status] for status in rules.EXECUTED)):
            row = tx.one("best_queued", objective_id=objective.id)
    return None if row is None else row["id"]


def _may_start(row: Row) -> bool:
    return not row["is_claimed_met"] and row["n_barren"] < rules.MAX_BARREN


def release(tx: Transaction, task: Task, *, reason: str, delay_s: float = 0.0) -> None:
    moves.put_down(tx, task, delay_s=delay_s)
    moves.append_event(tx, task.objective_id, log.TASK_RELEASED, task.id, reason=rules.storable(reason), delay_s=delay_s)
    moves.note_freed(tx, moves.read_task(tx, task.objective_id, task.id))


def give_up_or_retry(tx: Transaction, task: Task, *, max_failures: int, delay_s: float = 0.0) -> Task:
    """Put down a task whose failure is counted already."""
    status = rules.status_after_failure(task.status, failures=task.failures, max_failures=max_failures)
    written = moves.put_down(tx, replace(task, status=status), delay_s=delay_s)
    moves.append_event(tx, task.objective_id, log.TASK_FAILED, task.id, error=task.error, failures=task.failures)
    if written.status is TaskStatus.DEAD:
        moves.append_event(tx, task.objective_id, log.TASK_DEAD, task.id, error=task.error)
    elif written.status is TaskStatus.DONE:
        moves.append_event(tx, task.objective_id, log.TASK_DONE, task.id, n_added=0, n_duplicates=0)
    moves.note_freed(tx, written)
    return written


def _may_claim_duty(tx: Transaction, row: Row, duty: Duty) -> bool:
    if not _is_owed(tx, row, duty):
        return False
    known = tx.one("duty", objective_id=row["id"], duty=duty)
    return known is None or (known["worker_id"] is None and (known["not_before_us"] or 0) <= tx.now_us)


def _is_owed(tx: Transaction, row: Row, duty: Duty) -> bool:
    """What the row of the objective says comes first: most looks end there."""
    objective_id, is_active = row["id"], row["status"] == ObjectiveStatus.ACTIVE
    match duty:
        case Duty.ORDER:
            may_order = is_active and not row["is_claimed_met"]
            is_new = may_order and tx.has("has_queue_news", objective_id=objective_id, after_id=row["ordered_upto"])
            return is_new and moves.counts(tx, objective_id)[TaskStatus.QUEUED] >= 2
        case Duty.CHECK:
            n_by_status = moves.counts(tx, objective_id) if is_active and row["is_claimed_met"] else None
            return n_by_status is not None and n_by_status[TaskStatus.RUNNING] + n_by_status[TaskStatus.RECORDED] == 0
        case Duty.REPORT:
            is_due = row["status"] == ObjectiveStatus.ENDED and row["report"] is None
            return is_due and not tx.has("has_held_task", objective_id=objective_id)
        case Duty.INDEX:
            return tx.has("has_unindexed_result", objective_id=objective_id)
