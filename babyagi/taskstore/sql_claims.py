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
    Lack,
    Objective,
    ObjectiveStatus,
    Proposal,
    Result,
    Task,
    TaskStatus,
)
from babyagi.taskstore import changes, moves, planning, rules
from babyagi.taskstore.base import NOTHING_CHECKED, Checked, Plan, Planned
from babyagi.taskstore.base_workers import Outlook
from babyagi.taskstore.database import Row, Transaction
from babyagi.taskstore.rows import (
    result_from_row,
    result_to_values,
    sealed,
    task_from_row,
    to_json,
    to_time,
)
from babyagi.taskstore.sql_room import SqlRoom


class Claims(SqlRoom):
    """Claiming, finishing and giving back."""

    # -- looking for work
    # ----------------------------------------------------------------------------------------------

    async def open_objectives(self) -> list[int]:
        return await self._read(lambda tx: [row["id"] for row in tx.all("open_objectives")])

    async def outlook(self, objective_id: int) -> Outlook:
        def work(tx: Transaction) -> Outlook:
            row, objective = (
                moves.objective_row(tx, objective_id),
                moves.read_objective(tx, objective_id),
            )
            duties = tuple(duty for duty in rules.DUTIES if _may_claim_duty(tx, row, duty))
            has_task = _best_task(tx, objective) is not None
            # then there is nothing to order, and an order that is owed must not keep the end off
            if not has_task:
                duties = tuple(duty for duty in duties if duty is not Duty.ORDER)
            is_idle = objective.status is ObjectiveStatus.ACTIVE and not (has_task or duties)
            can_conclude = is_idle and rules.conclude(moves.snapshot(tx, objective)) is not None
            n_startable = moves.count_unblocked(tx, objective_id) if has_task else 0
            return Outlook(
                objective=objective,
                has_task=has_task,
                n_startable=n_startable,
                n_unordered=row["last_task_id"] - row["ordered_upto"],
                n_recorded=moves.counts(tx, objective_id)[TaskStatus.RECORDED],
                duties=duties,
                can_conclude=can_conclude,
            )

        return await self._read(work)

    # -- tasks
    # ----------------------------------------------------------------------------------------------

    async def claim_task(self, objective_id: int, worker_id: str) -> Claim | None:
        def work(tx: Transaction) -> Claim | None:
            self._require_known_schema(tx)
            objective = moves.read_objective(tx, objective_id)
            task_id = (
                _best_task(tx, objective, worker_id)
                if _can_serve(tx, objective_id, worker_id)
                else None
            )
            if task_id is None:
                return None
            if moves.read_task(tx, objective_id, task_id).started_at is None:
                tx.run("count_begun", objective_id=objective_id)
            task = task_from_row(
                tx.all(
                    "claim_task", objective_id=objective_id, task_id=task_id, worker_id=worker_id
                )[0]
            )
            moves.append_event(
                tx,
                objective_id,
                log.TASK_CLAIMED,
                task_id,
                worker_id=worker_id,
                try_no=task.try_no,
                claim_no=task.claim_no,
            )
            fence = Fence(
                objective_id=objective_id,
                owner=f"task:{task_id}",
                claim_no=task.claim_no,
                worker_id=worker_id,
            )
            return Claim(task=task, fence=fence)

        return await self._write(work, objective_id, is_lasting=False)

    async def record_result(
        self,
        claim: Claim,
        *,
        text: str,
        origins: Sequence[str],
        lack: str = "",
        plan: Planned | None = None,
    ) -> Result:
        def work(tx: Transaction) -> Result:
            known = _recorded_before(tx, claim)
            if known is not None:
                return known
            task = moves.fenced_task(tx, claim.fence, TaskStatus.RUNNING)
            result = changes.new_result(
                task, text=text, origins=origins, lack=lack, at=to_time(tx.now_us)
            )
            tx.run("insert_result", **result_to_values(result))
            task = moves.put_down(tx, replace(task, status=TaskStatus.RECORDED, lack=None))
            moves.append_event(
                tx,
                task.objective_id,
                log.TASK_RECORDED,
                task.id,
                result_chars=len(result.text),
                lack=result.lack,
            )
            planning.wake_lacking(tx, result)
            if plan is not None:
                planning.apply(tx, task.objective_id, [task], plan)
            return result

        return await self._write(work, claim.fence.objective_id)

    async def record_lack(self, claim: Claim, *, lack: Lack, plan: Planned | None = None) -> Task:
        def work(tx: Transaction) -> Task:
            task = moves.fenced_task(tx, claim.fence, TaskStatus.RUNNING)
            task = planning.record_lack(tx, changes.lacked(task, lack=lack))
            if plan is not None and task.status is TaskStatus.RECORDED:
                planning.apply(tx, task.objective_id, [task], plan)
            return moves.read_task(tx, task.objective_id, task.id)

        return await self._write(work, claim.fence.objective_id)

    async def record_plan(
        self, claim: DutyClaim, *, task_ids: Sequence[int], plan: Planned
    ) -> Plan:
        def work(tx: Transaction) -> Plan:
            duty, objective_id = moves.fenced_duty(tx, claim.fence), claim.fence.objective_id
            tasks = [moves.read_task(tx, objective_id, task_id) for task_id in task_ids]
            made = planning.apply(
                tx,
                objective_id,
                [task for task in tasks if task.status is TaskStatus.RECORDED],
                plan,
            )
            tx.run("finish_plan", objective_id=objective_id)
            moves.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            return made

        return await self._write(work, claim.fence.objective_id)

    async def fail_task(
        self, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0
    ) -> Task:
        def work(tx: Transaction) -> Task:
            task = changes.failed(moves.fenced_task(tx, claim.fence), error=error)
            moves.count_progress(tx, task.objective_id, is_answer=False)
            return _give_up_or_retry(tx, task, max_failures=max_failures, delay_s=delay_s)

        return await self._write(work, claim.fence.objective_id)

    async def release_task(self, claim: Claim, *, delay_s: float = 0.0, reason: str = "") -> None:
        await self._write(
            lambda tx: release(
                tx, moves.fenced_task(tx, claim.fence), reason=reason, delay_s=delay_s
            ),
            claim.fence.objective_id,
        )

    # -- duties
    # ----------------------------------------------------------------------------------------------

    async def claim_duty(self, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim | None:
        def work(tx: Transaction) -> DutyClaim | None:
            row = moves.objective_row(tx, objective_id)
            if not (_can_serve(tx, objective_id, worker_id) and _may_claim_duty(tx, row, duty)):
                return None
            owner = rules.duty_owner(duty, row)
            values = {
                "objective_id": objective_id,
                "duty": duty,
                "owner": owner,
                "worker_id": worker_id,
                "upto": row["last_task_id"],
            }
            claim_no = tx.all("claim_duty", **values)[0]["claim_no"]
            return DutyClaim(
                duty=duty,
                fence=Fence(
                    objective_id=objective_id, owner=owner, claim_no=claim_no, worker_id=worker_id
                ),
            )

        return await self._write(work, objective_id, is_lasting=False)

    async def reorder(self, claim: DutyClaim, *, revision: int, task_ids: Sequence[int]) -> None:
        def work(tx: Transaction) -> None:
            duty = moves.fenced_duty(tx, claim.fence)
            objective_id = claim.fence.objective_id
            if moves.objective_row(tx, objective_id)["order_revision"] != revision:
                raise StaleOrderError(
                    f"the list of objective {objective_id} was re-ordered since revision {revision}"
                )
            rows = tx.all("ranks", objective_id=objective_id, task_ids=to_json(list(task_ids)))
            rank_by_id = {row["id"]: row["rank"] for row in rows}
            dealt = rules.deal_ranks(rank_by_id.items(), task_ids)
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
            moves.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            moves.append_event(
                tx,
                objective_id,
                log.ORDER_APPLIED,
                revision=revision + 1,
                task_ids=list(dealt),
                n_moved=len(moved),
            )

        await self._write(work, claim.fence.objective_id, is_lasting=False)

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
            duty, objective_id = moves.fenced_duty(tx, claim.fence), claim.fence.objective_id
            moves.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            planning.finish_check(
                tx,
                objective_id,
                is_met=is_met,
                reason=reason,
                checked=checked,
                wanted=(proposals, fallback),
            )
            return moves.read_objective(tx, objective_id)

        return await self._write(work, claim.fence.objective_id)

    async def record_report(self, claim: DutyClaim, *, markdown: str) -> None:
        def work(tx: Transaction) -> None:
            duty, objective_id = moves.fenced_duty(tx, claim.fence), claim.fence.objective_id
            tx.run(
                "set_report",
                objective_id=objective_id,
                **sealed("report", {"id": objective_id, "report": rules.storable(markdown)}),
            )
            moves.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            moves.append_event(tx, objective_id, log.REPORT_WRITTEN, report_chars=len(markdown))

        await self._write(work, claim.fence.objective_id)

    async def release_duty(self, claim: DutyClaim, *, delay_s: float = 0.0) -> None:
        def work(tx: Transaction) -> None:
            duty = moves.fenced_duty(tx, claim.fence)
            moves.free_duty(
                tx,
                claim.fence.objective_id,
                duty=duty["duty"],
                owner=duty["owner"],
                delay_s=delay_s,
            )

        await self._write(work, claim.fence.objective_id, is_lasting=False)


def _can_serve(tx: Transaction, objective_id: int, worker_id: str) -> bool:
    """Whoever does not serve the objective, or whose lease has run out, is given nothing: it would
    be taken away at once."""
    return tx.has("can_serve", objective_id=objective_id, worker_id=worker_id)


def _best_task(tx: Transaction, objective: Objective, worker_id: str = "") -> int | None:
    """The task that the worker would get; a worker without a name, that is, some worker that holds
    nothing."""
    if objective.status is not ObjectiveStatus.ACTIVE or rules.is_reached(
        objective.spec.limits.max_time_s, objective.active_s
    ):
        return None
    row = moves.objective_row(tx, objective.id)
    if row["is_claimed_met"] or not rules.may_start(
        n_barren=row["n_barren"], n_fruitless=row["n_fruitless"]
    ):
        return None
    may_begin = not rules.is_reached(objective.spec.limits.max_tasks, row["n_begun"])
    values = {
        "may_begin": int(may_begin),
        "worker_id": worker_id,
        "suspect_from": rules.SUSPECT_FROM,
    }
    found = tx.one("best_queued", objective_id=objective.id, **values)
    return None if found is None else found["id"]


def _recorded_before(tx: Transaction, claim: Claim) -> Result | None:
    """The result that this very claim has recorded: its commit seemed to fail, and it comes
    again."""
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
    moves.put_down(tx, task, delay_s=delay_s)
    moves.append_event(
        tx,
        task.objective_id,
        log.TASK_RELEASED,
        task.id,
        reason=rules.storable(reason),
        delay_s=delay_s,
    )
    moves.note_freed(tx, moves.read_task(tx, task.objective_id, task.id))


def put_back_lost(tx: Transaction, task: Task) -> None:
    """Put down a task whose holder was lost; the same try goes on, and pays for nothing twice."""
    n_lost = task.n_lost + 1 if task.status is TaskStatus.RUNNING else 0
    task = replace(task, n_lost=n_lost)
    if n_lost < rules.MAX_LOST:
        release(tx, task, reason="worker lost", delay_s=rules.pause_after_loss(n_lost))
        return
    error = f"{n_lost} workers in a row were lost while they worked on it"
    written = moves.put_down(tx, replace(task, status=TaskStatus.DEAD, error=error))
    if written.status is TaskStatus.DEAD:
        moves.append_event(tx, task.objective_id, log.TASK_DEAD, task.id, error=error)
    moves.note_freed(tx, written)


def _give_up_or_retry(
    tx: Transaction, task: Task, *, max_failures: int, delay_s: float = 0.0
) -> Task:
    """Put down a task whose failure is counted already."""
    status = rules.status_after_failure(failures=task.failures, max_failures=max_failures)
    written = moves.put_down(tx, replace(task, status=status), delay_s=delay_s)
    moves.append_event(
        tx, task.objective_id, log.TASK_FAILED, task.id, error=task.error, failures=task.failures
    )
    if written.status is TaskStatus.DEAD:
        moves.append_event(tx, task.objective_id, log.TASK_DEAD, task.id, error=task.error)
    moves.note_freed(tx, written)
    return written


def _may_claim_duty(tx: Transaction, row: Row, duty: Duty) -> bool:
    if not _is_owed(tx, row, duty):
        return False
    known = tx.one("duty", objective_id=row["id"], duty=duty)
    if known is None:
        return True
    is_delayed = rules.is_delayed(
        tx.now_us, not_before_us=known["not_before_us"], delay_us=known["delay_us"]
    )
    return known["worker_id"] is None and not is_delayed


def _is_owed(tx: Transaction, row: Row, duty: Duty) -> bool:
    """What the row of the objective says comes first: most looks end there."""
    objective_id, is_active = row["id"], row["status"] == ObjectiveStatus.ACTIVE
    match duty:
        case Duty.ORDER:
            may_order = is_active and not row["is_claimed_met"]
            is_new = may_order and tx.has(
                "has_queue_news", objective_id=objective_id, after_id=row["ordered_upto"]
            )
            return is_new and moves.count_unblocked(tx, objective_id) >= 2
        case Duty.PLAN:
            return is_active and moves.counts(tx, objective_id)[TaskStatus.RECORDED] > 0
        case Duty.CHECK:
            return is_active and rules.needs_check(
                moves.snapshot(tx, moves.read_objective(tx, objective_id))
            )
        case Duty.REPORT:
            is_due = row["status"] == ObjectiveStatus.ENDED and row["report"] is None
            return is_due and not tx.has("has_held_task", objective_id=objective_id)
        case Duty.INDEX:
            return tx.has("has_unindexed_result", objective_id=objective_id)
