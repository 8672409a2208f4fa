"""Claims of tasks and duties, what is recorded under them, and what a person changes in the
list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from babyagi import events
from babyagi.errors import LeaseLostError, StaleOrderError
from babyagi.tasks import (
    Claim,
    Duty,
    DutyClaim,
    Fence,
    Lack,
    Objective,
    ObjectiveStatus,
    Place,
    Proposal,
    Result,
    StopReason,
    Task,
    TaskStatus,
    is_reached,
)
from babyagi.taskstore import lifecycle
from babyagi.taskstore.port import (
    NOTHING_CHECKED,
    Checked,
    Claimable,
    Deferral,
    Kept,
    Outcome,
    Plan,
    Planned,
)
from babyagi.taskstore.sql import database, planning, transitions
from babyagi.taskstore.sql import planning as proposals_
from babyagi.taskstore.sql.database import Row, SqlAccess, Transaction
from babyagi.taskstore.sql.rows import (
    result_from_row,
    result_to_values,
    sealed,
    task_from_row,
    to_json,
    to_time,
)
from babyagi.taskstore.sql.steps import record_first


class Claims(SqlAccess):
    """Claim tasks and duties, finish them, and give them back."""

    # -- looking for work
    # ----------------------------------------------------------------------------------------------

    async def open_objectives(self) -> list[int]:
        return await self._read(lambda tx: [row["id"] for row in tx.all("open_objectives")])

    async def claimable(self, objective_id: int) -> Claimable:
        def work(tx: Transaction) -> Claimable:
            _prefetch_claimable(tx, objective_id, worker_id="")
            return _look_for_work(tx, objective_id, worker_id="")[0]

        return await self._read(work)

    async def claim_next(
        self, objective_id: int, worker_id: str, *, deferral: Deferral
    ) -> tuple[Claimable, Claim | DutyClaim | None]:
        def work(tx: Transaction) -> tuple[Claimable, Claim | DutyClaim | None]:
            _prefetch_claimable(tx, objective_id, worker_id)
            self._require_known_schema(tx, objective_id, worker_id)
            claimable, task = _look_for_work(tx, objective_id, worker_id)
            if not _can_serve(tx, objective_id, worker_id):
                return claimable, None
            duty = lifecycle.first_duty(claimable, deferral)
            if duty is not None:
                return claimable, _claim_duty(tx, objective_id, worker_id, duty)
            return claimable, None if task is None else _claim_task(tx, task, worker_id)

        return await self._write(work, objective_id, is_lasting=False)

    # -- tasks
    # ----------------------------------------------------------------------------------------------

    async def claim_task(self, objective_id: int, worker_id: str) -> Claim | None:
        def work(tx: Transaction) -> Claim | None:
            _ask_for_standing(tx, objective_id, worker_id)
            tx.ask("objective", objective_id=objective_id)
            _ask_for_task(tx, objective_id, worker_id)
            self._require_known_schema(tx, objective_id, worker_id)
            objective = transitions.read_objective(tx, objective_id)
            found = (
                _find_task(tx, objective, worker_id)
                if _can_serve(tx, objective_id, worker_id)
                else None
            )
            return None if found is None else _claim_task(tx, found, worker_id)

        return await self._write(work, objective_id, is_lasting=False)

    def _require_known_schema(self, tx: Transaction, objective_id: int, worker_id: str) -> None:
        """Raises `StoreUnusableError` when a newer program has upgraded the schema meanwhile: this
        process must end its work and claim no more."""
        database.require_known(
            int(_standing(tx, objective_id, worker_id)["schema_version"]),
            known=self._database.known_version,
            where=self._database.where,
        )

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

    async def claim_duty(self, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim | None:
        def work(tx: Transaction) -> DutyClaim | None:
            _ask_for_standing(tx, objective_id, worker_id)
            tx.ask("duties", objective_id=objective_id)
            transitions.ask_tally(tx, objective_id)
            row = transitions.objective_row(tx, objective_id)
            if not (_can_serve(tx, objective_id, worker_id) and _may_claim_duty(tx, row, duty)):
                return None
            return _claim_duty(tx, objective_id, worker_id, duty)

        return await self._write(work, objective_id, is_lasting=False)

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


def _ask_for_standing(tx: Transaction, objective_id: int, worker_id: str) -> None:
    tx.ask("standing", objective_id=objective_id, worker_id=worker_id)


def _standing(tx: Transaction, objective_id: int, worker_id: str) -> Row:
    return tx.all("standing", objective_id=objective_id, worker_id=worker_id)[0]


def _can_serve(tx: Transaction, objective_id: int, worker_id: str) -> bool:
    """Return whether the worker serves the objective, is not blocked there, and has a living lease.
    A claim without a lease would be taken away at once."""
    return bool(_standing(tx, objective_id, worker_id)["can_serve"])


def _prefetch_claimable(tx: Transaction, objective_id: int, worker_id: str) -> None:
    """Read in one query what `_look_for_work` and a claim need."""
    at = {"objective_id": objective_id, "worker_id": worker_id}
    tx.ask("duties", objective_id=objective_id)
    _ask_for_task(tx, objective_id, worker_id)
    row = tx.one("outlook", **at, **transitions.COUNTED)
    tx.know("objective", row, objective_id=objective_id)
    if row is not None:
        tx.know("tally", row, objective_id=objective_id, **transitions.COUNTED)
        tx.know("standing", row, **at)


def _look_for_work(
    tx: Transaction, objective_id: int, worker_id: str
) -> tuple[Claimable, Task | None]:
    """Return what a claim could find, and the task that the worker would get."""
    row = transitions.objective_row(tx, objective_id)
    objective = transitions.read_objective(tx, objective_id)
    duties = tuple(duty for duty in lifecycle.DUTIES if _may_claim_duty(tx, row, duty))
    found = transitions.tally(tx, objective_id)
    task = _find_task(tx, objective, worker_id) if found["n_unblocked"] else None
    # a task that this worker must not have may be claimable for another one
    has_task = task is not None or bool(
        worker_id and found["n_unblocked"] and _find_task(tx, objective, worker_id="")
    )
    # without a task there is nothing to order, and an order that is owed must not delay the end
    if not has_task:
        duties = tuple(duty for duty in duties if duty is not Duty.ORDER)
    is_idle = objective.status is ObjectiveStatus.ACTIVE and not (has_task or duties)
    conclusion = lifecycle.conclude(transitions.snapshot(tx, objective)) if is_idle else None
    claimable = Claimable(
        objective=objective,
        has_task=has_task,
        n_startable=found["n_unblocked"] if has_task else 0,
        n_unordered=row["last_task_id"] - row["ordered_upto"],
        n_recorded=int(found["n_recorded"]),
        duties=duties,
        conclusion=conclusion,
    )
    return claimable, task


def _claim_task(tx: Transaction, found: Task, worker_id: str) -> Claim:
    if found.started_at is None:
        tx.run("count_begun", objective_id=found.objective_id)
    task = lifecycle.claimed(found, at=to_time(tx.now_us))
    tx.run(
        "claim_task",
        objective_id=task.objective_id,
        task_id=task.id,
        worker_id=worker_id,
        claim_no=task.claim_no,
    )
    data = {"worker_id": worker_id, "try_no": task.try_no, "claim_no": task.claim_no}
    transitions.append_event(tx, task.objective_id, events.TASK_CLAIMED, task.id, **data)
    fence = Fence(
        objective_id=task.objective_id,
        owner=f"task:{task.id}",
        claim_no=task.claim_no,
        worker_id=worker_id,
    )
    return Claim(task=task, fence=fence)


def _claim_duty(tx: Transaction, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim:
    """Lease a duty that may be claimed."""
    row, known = transitions.objective_row(tx, objective_id), _known_duty(tx, objective_id, duty)
    owner = lifecycle.duty_owner(duty, row)
    claim_no = 1 if known is None else known["claim_no"] + 1
    tx.run(
        "claim_duty",
        objective_id=objective_id,
        duty=duty,
        owner=owner,
        worker_id=worker_id,
        upto=row["last_task_id"],
        claim_no=claim_no,
    )
    fence = Fence(objective_id=objective_id, owner=owner, claim_no=claim_no, worker_id=worker_id)
    return DutyClaim(duty=duty, fence=fence, is_new=known is None or known["owner"] != owner)


def _ask_for_task(tx: Transaction, objective_id: int, worker_id: str) -> None:
    """Announce the query of `_find_task`, for an objective in which tasks may be begun."""
    tx.ask("best_queued", **_wanted(objective_id, worker_id, may_begin=True))


def _find_task(tx: Transaction, objective: Objective, worker_id: str) -> Task | None:
    """Return the task that the worker would get. A worker_id of "" stands for any worker that holds
    nothing."""
    if objective.status is not ObjectiveStatus.ACTIVE or is_reached(
        objective.spec.limits.max_time_s, objective.active_s
    ):
        return None
    row = transitions.objective_row(tx, objective.id)
    if row["is_claimed_met"] or not lifecycle.may_start(
        n_tasks_without_progress=row["n_barren"], n_tries_without_answer=row["n_fruitless"]
    ):
        return None
    may_begin = not is_reached(objective.spec.limits.max_tasks, row["n_begun"])
    found = tx.one("best_queued", **_wanted(objective.id, worker_id, may_begin=may_begin))
    return None if found is None else task_from_row(found)


def _wanted(objective_id: int, worker_id: str, *, may_begin: bool) -> dict[str, int | str]:
    return {
        "objective_id": objective_id,
        "worker_id": worker_id,
        "may_begin": int(may_begin),
        "suspect_from": lifecycle.SUSPECT_FROM,
    }


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


def _may_claim_duty(tx: Transaction, row: Row, duty: Duty) -> bool:
    if not _is_owed(tx, row, duty):
        return False
    known = _known_duty(tx, row["id"], duty)
    if known is None:
        return True
    is_delayed = lifecycle.is_delayed(
        tx.now_us, not_before_us=known["not_before_us"], delay_us=known["delay_us"]
    )
    return known["worker_id"] is None and not is_delayed


def _known_duty(tx: Transaction, objective_id: int, duty: Duty) -> Row | None:
    """Return the row of a duty that was claimed before, None when it was not."""
    rows = tx.all("duties", objective_id=objective_id)
    return next((row for row in rows if row["duty"] == duty), None)


def _is_owed(tx: Transaction, row: Row, duty: Duty) -> bool:
    """Return whether the duty is owed. The objective's row is compared first, because it decides
    most cases."""
    objective_id, is_active = row["id"], row["status"] == ObjectiveStatus.ACTIVE
    match duty:
        case Duty.ORDER:
            may_order = is_active and not row["is_claimed_met"]
            found = transitions.tally(tx, objective_id)
            return bool(may_order and found["has_unordered"] and found["n_unblocked"] >= 2)
        case Duty.PLAN:
            return is_active and bool(transitions.tally(tx, objective_id)["n_recorded"])
        case Duty.CHECK:
            return is_active and lifecycle.needs_check(
                transitions.snapshot(tx, transitions.read_objective(tx, objective_id))
            )
        case Duty.REPORT:
            is_due = row["status"] == ObjectiveStatus.ENDED and not row["has_report"]
            return is_due and not bool(transitions.tally(tx, objective_id)["has_held"])
        case Duty.INDEX:
            is_over = row["status"] == ObjectiveStatus.ENDED and row["has_report"]
            return bool(is_over or transitions.tally(tx, objective_id)["has_unindexed"])


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
