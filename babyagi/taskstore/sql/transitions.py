"""Claiming and releasing work, checking that a claim is still held, and other changes of state that
several methods of the SQL store share. Each function runs in the caller's transaction.

Every method proceeds in this order: it locks (begins the transaction), it checks the fence (whether
the worker still holds its claim), and it counts (limits and counters).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from babyagi import events
from babyagi.errors import NotFoundError
from babyagi.tasks import (
    Claim,
    Duty,
    DutyClaim,
    Fence,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Reservation,
    Step,
    StepState,
    StopReason,
    Task,
    TaskStatus,
    Usage,
)
from babyagi.taskstore import lifecycle, limits
from babyagi.taskstore.nouns import Claimable, Deferral
from babyagi.taskstore.schedules import Schedule
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.database import (
    ALL_ROWS,
    Row,
    SqlAccess,
    Transaction,
    no_objective,
    objective_from_row,
    reading,
    schedule_from_row,
    sealed,
    spec_from_row,
    step_from_row,
    step_to_values,
    task_from_row,
    to_json,
    to_time,
    usage_to_values,
    writing,
)

# A task that may ask a person only after another question is answered is delayed until this
# instant, in the year 9999.
UNTIL_ANSWERED_US = 253_370_764_800_000_000
MAX_COUNTED = 100  # startable tasks are counted up to this; no worker has more free slots

# -- reading
# --------------------------------------------------------------------------------------------------


def objective_row(tx: Transaction, objective_id: int) -> Row:
    row = tx.one("objective", objective_id=objective_id)
    if row is None:
        raise no_objective(objective_id)
    return row


def read_objective(tx: Transaction, objective_id: int) -> Objective:
    return objective_of(tx, objective_row(tx, objective_id))


def objective_of(tx: Transaction, row: Row) -> Objective:
    held = Reservation(
        calls=int(row["held_calls"]),
        tokens=int(row["held_tokens"]),
        cost_usd=int(row["held_cost_microusd"]) / 1e6,
    )
    return objective_from_row(row, held=held, active_us=active_us_now(tx, row))


def read_task(tx: Transaction, objective_id: int, task_id: int) -> Task:
    """Return the task. Raise `NotFoundError` if there is none, or no such objective."""
    row = tx.one("task", objective_id=objective_id, task_id=task_id)
    if row is None:
        objective_row(tx, objective_id)
        raise NotFoundError(
            f"objective {objective_id} has no task {task_id}",
            fix=f"babyagi tasks --objective {objective_id} shows the tasks that exist",
            guide="looking",
        )
    return task_from_row(row)


def counts(tx: Transaction, objective_id: int) -> dict[TaskStatus, int]:
    rows = tx.all("counts", objective_id=objective_id, statuses=to_json(list(TaskStatus)))
    return {TaskStatus(row["status"]): row["n"] for row in rows}


def tally(tx: Transaction, objective_id: int) -> Row:
    """Return one row about the objective's tasks.

    Its columns are: `n_recorded`, the number of tasks that wait for planning; `n_unblocked`, the
    number of queued tasks, delayed or not, that wait neither for another task nor for a person's
    answer; `has_held`, whether a worker holds a task; and `has_unordered`, whether a queued task
    was added since the last order. Both numbers are counted up to `MAX_COUNTED`.
    """
    at = {"objective_id": objective_id, "until_answered_us": UNTIL_ANSWERED_US}
    return tx.all("tally", **at, limit=MAX_COUNTED)[0]


def snapshot(tx: Transaction, objective: Objective) -> lifecycle.Snapshot:
    found, row = tally(tx, objective.id), objective_row(tx, objective.id)
    ends = tx.all("ends", objective_id=objective.id)[0]
    # `n_resumable` matters only if the limit of tasks is reached; otherwise the query is skipped
    is_resumable = lifecycle.is_reached(objective.spec.limits.max_tasks, row["n_begun"]) and tx.has(
        "begun_unblocked", objective_id=objective.id, until_answered_us=UNTIL_ANSWERED_US
    )
    return lifecycle.Snapshot(
        limits=objective.spec.limits,
        active_s=objective.active_s,
        is_claimed_met=bool(row["is_claimed_met"]),
        n_held=int(found["has_held"]),
        n_recorded=int(found["n_recorded"]),
        n_unblocked=found["n_unblocked"],
        n_resumable=int(is_resumable),
        n_waiting=int(ends["has_waiting"]),
        n_done=int(ends["has_done"]),
        n_dead=ends["n_dead"],
        n_begun=row["n_begun"],
        n_tasks_without_progress=row["n_barren"],
        n_tries_without_answer=row["n_fruitless"],
    )


# -- time
# --------------------------------------------------------------------------------------------------


def active_us_now(tx: Transaction, row: Row) -> int:
    """Return the objective's active time up to now, in microseconds. It grows only while the
    objective is active and a living worker serves it. The time since the workers were last seen
    counts for one lease at most, so a clock that jumps cannot add more.

    Args:
        row: the objective's row.
    """
    active_us: int = row["active_us"]
    if row["status"] != ObjectiveStatus.ACTIVE:
        return active_us
    return active_us + min(max(tx.now_us - int(row["seen_us"]), 0), int(row["lease_us"]))


def store_active_time(tx: Transaction, row: Row) -> None:
    tx.run("store_active_time", objective_id=row["id"], active_us=active_us_now(tx, row))


def set_spec(tx: Transaction, row: Row, spec: ObjectiveSpec) -> None:
    changed = sealed("objective", {**row, "spec": to_json(spec)})
    tx.run("set_spec", objective_id=row["id"], spec=changed["spec"], seal=changed["seal"])


# -- events and costs
# --------------------------------------------------------------------------------------------------


def append_event(
    tx: Transaction, objective_id: int, kind: str, task_id: int | None = None, /, **data: Any
) -> None:
    values = {
        "objective_id": objective_id,
        "task_id": task_id,
        "kind": kind,
        "data": to_json(data),
        "at_us": tx.now_us,
    }
    tx.run("insert_event", **sealed("event", values))


def append_task_event(tx: Transaction, task: Task, event_kind: str, /, **data: Any) -> None:
    append_event(tx, task.objective_id, event_kind, task.id, **data)


def append_step_event(tx: Transaction, step: Step, event_kind: str, /, **data: Any) -> None:
    append_event(tx, step.objective_id, event_kind, lifecycle.task_of(step.owner), **data)


def charge(
    tx: Transaction, objective_id: int, owner: str, usage: Usage, *, has_progressed: bool = False
) -> None:
    """Add the cost of a call to the totals of the objective and of the task that `owner` names, if
    it names one.

    Args:
        has_progressed: whether the call's answer was recorded. If so, the task's number of lost
            workers is set to 0, because the task does not kill its workers.
    """
    values = usage_to_values(usage)
    tx.run("charge_objective", objective_id=objective_id, **values)
    task_id = lifecycle.task_of(owner)
    if task_id is not None:
        values |= {"task_id": task_id, "has_progressed": int(has_progressed)}
        tx.run("charge_task", objective_id=objective_id, **values)


def note_overspending(tx: Transaction, step: Step, usage: Usage, reserved: Reservation) -> None:
    """Append an event if an answer used more than was reserved for its call, or does not state its
    cost. If the objective has a limit that can no longer be guaranteed because of that, mark the
    limit as overspent, which forbids every further call.

    Args:
        usage: the call's usage, as `limits.countable_usage` returns it.
    """
    if not reserved.calls:  # it is no longer known how much was reserved
        return
    if not limits.costs_more(usage, reserved) and usage.tokens <= reserved.tokens:
        return
    set_limits = spec_from_row(objective_row(tx, step.objective_id)).limits
    limit = limits.find_overspent(set_limits, usage, reserved)
    if limit:
        tx.run("set_overspent", objective_id=step.objective_id, limit=limit)
    elif usage.tokens <= reserved.tokens:
        return
    data = {
        "owner": step.owner,
        "key": step.key,
        "model": step.model,
        "tokens": usage.tokens,
        "reserved_tokens": reserved.tokens,
        "cost_usd": usage.cost_usd,
        "reserved_cost_usd": reserved.cost_usd,
        "is_said": not usage.unconfirmed_tokens,
        "limit": limit,
    }
    append_step_event(tx, step, events.STEP_OVERSPENT, **data)


def settle(tx: Transaction, objective_id: int, owner: str) -> bool:
    """Settle the calls of a claim that has ended. A call without an outcome may have been paid for,
    so its reservation is counted as usage. If the call must not be repeated, its step becomes
    UNKNOWN.

    Args:
        owner: the task or duty that was claimed, such as `task:7`.

    Returns:
        Whether a step of the owner waits for a person.
    """
    is_asking = False
    unsettled = tx.all("unsettled_steps", objective_id=objective_id)
    own = [row for row in unsettled if row["owner"] == owner]
    for row in sorted(own, key=lambda row: int(row["id"])):
        step = step_from_row(row)
        is_asking |= lifecycle.is_open(step)
        if not row["is_held"]:
            continue
        if step.kind == lifecycle.ONCE:
            is_asking |= lifecycle.is_open(leave_unknown(tx, step))
            continue
        step, charged = limits.charge_unconfirmed(step)
        tx.run("put_step", **step_to_values(step, is_held=False))
        charge(tx, objective_id, owner, charged)
        data = {**lifecycle.step_data(step, charged), "is_unconfirmed": True}
        append_step_event(tx, step, events.STEP_ABANDONED, **data)
    return is_asking


def leave_unknown(tx: Transaction, step: Step) -> Step:
    """Set a step whose call must not be repeated to UNKNOWN, because it is unknown whether the call
    was made. Append the event, and return the changed step."""
    unknown = replace(step, state=StepState.UNKNOWN)
    tx.run("put_step", **step_to_values(unknown, is_held=False))
    data = {**lifecycle.step_data(unknown, Usage()), "is_unknown": True}
    append_step_event(tx, step, events.STEP_ABANDONED, **data)
    return unknown


def wake(tx: Transaction, objective_id: int, task_id: int) -> None:
    """Queue a waiting task again, because its question was answered. An objective that ended as
    `waiting` becomes active again. Does nothing if the task is not waiting."""
    if not tx.run("wake_task", objective_id=objective_id, task_id=task_id):
        return
    append_event(tx, objective_id, events.TASK_REQUEUED, task_id, is_answered=True)
    allow_questions(tx, objective_id)
    tx.run("count_afresh", objective_id=objective_id)
    if objective_row(tx, objective_id)["stop_reason"] == StopReason.WAITING:
        reopen(tx, objective_id)


def allow_questions(tx: Transaction, objective_id: int) -> None:
    """Make tasks claimable that were held back because too many questions to a person were open: as
    many as there may be further questions now."""
    n_free = lifecycle.MAX_OPEN_QUESTIONS - len(tx.all("inbox", objective_id=objective_id))
    if n_free > 0:
        tx.run(
            "allow_questions",
            objective_id=objective_id,
            limit=n_free,
            until_answered_us=UNTIL_ANSWERED_US,
        )


# -- fences
# --------------------------------------------------------------------------------------------------


def fenced_task(tx: Transaction, fence: Fence) -> Task:
    """Return the running task that `fence` identifies a claim of. Raise `LeaseLostError` if the
    worker no longer holds that claim: a task that is released has no worker."""
    row = tx.one("task", objective_id=fence.objective_id, task_id=lifecycle.task_of(fence.owner))
    if row is None or (row["worker_id"], row["claim_no"]) != (fence.worker_id, fence.claim_no):
        raise lifecycle.lost(fence)
    return task_from_row(row)


def fenced_duty(tx: Transaction, fence: Fence) -> Row:
    """Return the row of the duty (work for the whole objective, such as planning) that `fence`
    identifies a claim of. Raise `LeaseLostError` if the worker no longer holds that claim."""
    duty = lifecycle.duty_of(fence.owner)
    row = tx.one("duty", objective_id=fence.objective_id, duty=duty)
    if row is None or (row["owner"], row["worker_id"], row["claim_no"]) != (
        fence.owner,
        fence.worker_id,
        fence.claim_no,
    ):
        raise lifecycle.lost(fence)
    return row


def fenced_owner(tx: Transaction, fence: Fence) -> Task | None:
    """Return the task that `fence` identifies a claim of; None for a duty. Raise `LeaseLostError`
    if the worker no longer holds that claim."""
    if lifecycle.task_of(fence.owner) is not None:
        return fenced_task(tx, fence)
    fenced_duty(tx, fence)
    return None


# -- ending a claim, and ending an objective
# --------------------------------------------------------------------------------------------------


def free_task(
    tx: Transaction,
    task: Task,
    event_kind: str = "",
    *,
    to: TaskStatus | None = None,
    delay_s: float = 0.0,
    data: Mapping[str, Any] = MappingProxyType({}),
) -> TaskStatus:
    """Release a claimed task, settle its calls, store its new state, and append the event of this
    kind with `data`. Return its new status. If that is dead, cancelled or waiting, append an event
    that says so as well: the task may be cancelled or waiting although its worker released it for
    another reason.

    Args:
        event_kind: '' for no event besides.
        to: the new status; None keeps the present one. Instead of running, queued or dead, the task
            becomes cancelled or waiting if its objective was cancelled or it waits for a person
            (`lifecycle.goes_back`).
        delay_s: seconds until a queued task can be claimed.
    """
    is_asking = settle(tx, task.objective_id, f"task:{task.id}")
    status = to or task.status
    if lifecycle.goes_back(status, is_asking=is_asking):
        stop_reason = objective_row(tx, task.objective_id)["stop_reason"]
        status = lifecycle.status_when_freed(stop_reason, is_asking=is_asking)
    is_delayed = status in (TaskStatus.QUEUED, TaskStatus.RECORDED)
    tx.run(
        "put_task",
        objective_id=task.objective_id,
        task_id=task.id,
        status=status,
        # a person's answer belongs to the try that asked, so the try number must not rise
        try_no=read_task(tx, task.objective_id, task.id).try_no if is_asking else task.try_no,
        failures=task.failures,
        n_lost=task.n_lost,
        error=task.error,
        lack="" if task.lack is None else to_json(task.lack),
        n_lacks=task.n_lacks,
        **_delay(tx, delay_s if is_delayed else 0.0),
    )
    if status in lifecycle.SETTLED:
        tx.run("settle_task", objective_id=task.objective_id, task_id=task.id)
    if event_kind:
        append_task_event(tx, task, event_kind, **data)
    _note_freed(tx, task, status)
    return status


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """An objective's counters of progress: the number of tasks in a row that brought nothing new,
    the number of tries in a row that gave no answer, and the number of all answers."""

    n_tasks_without_progress: int
    n_tries_without_answer: int
    n_answers: int

    @classmethod
    def of(cls, row: Row) -> Progress:
        """Return the counters in an objective's row."""
        return cls(
            n_tasks_without_progress=row["n_barren"],
            n_tries_without_answer=row["n_fruitless"],
            n_answers=row["n_answers"],
        )

    def after_try(self, *, is_answered: bool, is_repeat: bool, n_added: int) -> Progress:
        """Return the counters after one more try.

        Args:
            is_repeat: whether its answer only repeats earlier results.
            n_added: the number of new tasks that were planned from it.
        """
        if not is_answered:
            n_more = int(not n_added)
            return replace(self, n_tries_without_answer=self.n_tries_without_answer + n_more)
        is_barren = is_repeat and not n_added
        return Progress(
            n_tasks_without_progress=self.n_tasks_without_progress + 1 if is_barren else 0,
            n_tries_without_answer=0,
            n_answers=self.n_answers + int(not is_repeat),
        )


def release(tx: Transaction, task: Task, *, reason: str, delay_s: float = 0.0) -> None:
    """Put a claimed task back on the list, otherwise unchanged."""
    data = {"reason": lifecycle.storable(reason), "delay_s": delay_s}
    free_task(tx, task, events.TASK_RELEASED, delay_s=delay_s, data=data)


def _note_freed(tx: Transaction, task: Task, status: TaskStatus) -> None:
    """Append an event if the new `status` of a released task is dead, cancelled or waiting."""
    if status is TaskStatus.DEAD:
        append_task_event(tx, task, events.TASK_DEAD, error=task.error)
    elif status is TaskStatus.CANCELLED:
        append_task_event(tx, task, events.TASK_CANCELLED)
    elif status is TaskStatus.WAITING:
        owners = to_json([f"task:{task.id}"])
        rows = tx.all("steps", objective_id=task.objective_id, owners=owners)
        asked = next(step for step in map(step_from_row, rows) if lifecycle.is_open(step))
        data = {"key": asked.key, "kind": asked.kind, "state": asked.state}
        append_task_event(tx, task, events.TASK_PARKED, **data)


def free_duty(tx: Transaction, row: Row, *, delay_s: float = 0.0) -> None:
    """Release a claimed duty (work for the whole objective, such as planning), given by its row. It
    can be claimed again after `delay_s` seconds, if it is still due."""
    at = {"objective_id": row["objective_id"], "duty": row["duty"]}
    tx.run("free_duty", **at, **_delay(tx, delay_s))
    settle(tx, row["objective_id"], row["owner"])


def _delay(tx: Transaction, delay_s: float) -> dict[str, int | None]:
    delay_us = limits.to_us(delay_s)
    return {"not_before_us": tx.now_us + delay_us if delay_us > 0 else None, "delay_us": delay_us}


def forget_duty(tx: Transaction, objective_id: int, duty: Duty) -> None:
    row = tx.one("duty", objective_id=objective_id, duty=duty)
    if row is not None:
        settle(tx, objective_id, row["owner"])
        tx.run("forget_duty", objective_id=objective_id, duty=duty)


def end(tx: Transaction, objective_id: int, *, reason: StopReason, detail: str) -> None:
    """End the objective, unless it has ended already. If it ends because it is met or cancelled,
    also cancel its queued and waiting tasks."""
    row = objective_row(tx, objective_id)
    if row["status"] == ObjectiveStatus.ENDED:
        return
    detail = lifecycle.storable(detail, max_chars=lifecycle.MAX_DETAIL_CHARS)
    store_active_time(tx, row)
    if reason in lifecycle.CANCELLING:
        for task in tx.all(
            "tasks_with_status",
            objective_id=objective_id,
            statuses=to_json(lifecycle.CANCELLABLE),
            limit=ALL_ROWS,
        ):
            cancel_task(tx, objective_id, task["id"])
    tx.run("end_objective", objective_id=objective_id, reason=reason, detail=detail)
    append_event(tx, objective_id, events.OBJECTIVE_ENDED, reason=reason, detail=detail)


def cancel_task(tx: Transaction, objective_id: int, task_id: int, **data: Any) -> None:
    """Cancel a queued or waiting task, and append an event with `data`."""
    tx.run("cancel_task", objective_id=objective_id, task_id=task_id)
    tx.run("settle_task", objective_id=objective_id, task_id=task_id)
    append_event(tx, objective_id, events.TASK_CANCELLED, task_id, **data)


def reopen(tx: Transaction, objective_id: int) -> None:
    """Make an ended objective active again. It needs a new report, whose steps get a new owner
    name."""
    forget_duty(tx, objective_id, Duty.REPORT)
    tx.run("reopen_objective", objective_id=objective_id)
    append_event(tx, objective_id, events.OBJECTIVE_RESUMED)


# -- finding work and claiming it
# --------------------------------------------------------------------------------------------------


class Claims(SqlAccess):
    """The part of the store that finds work and claims it: tasks, and duties (work for the whole
    objective, such as planning)."""

    @reading
    def claimable(self, tx: Transaction, objective_id: int) -> Claimable:
        """Return what a worker could claim in the objective now. Costs one read of the database.
        Raises `NotFoundError`."""
        return _look_for_work(tx, objective_id, worker_id="")[0]

    async def claim_task(self, objective_id: int, worker_id: str) -> Claim | None:
        """Claim the best claimable task: the queued task with the lowest `(rank, id)` whose `after`
        tasks are all done, dead or cancelled and whose `not_before` has passed.

        Returns None when there is no such task; when the worker has no living lease, does not serve
        the objective or is blocked there; and when the objective is not active, waits for a check
        because an agent has said that it is met, is stalled (`lifecycle.may_start`), or has reached
        its time limit. At the limit of tasks, only tasks that were claimed before can be claimed.
        """
        _, claim = await self.claim_next(objective_id, worker_id, deferral=None)
        return claim if isinstance(claim, Claim) else None

    @writing(is_lasting=False)
    def claim_next(
        self, tx: Transaction, objective_id: int, worker_id: str, *, deferral: Deferral | None
    ) -> tuple[Claimable, Claim | DutyClaim | None]:
        """Read what `claimable` returns, and claim the first thing in it: the first duty (such as
        planning) that `deferral` does not postpone, as `claim_duty` does, else a task, as
        `claim_task` does.

        Args:
            deferral: None postpones every duty.

        Returns:
            What was read before the claim, and the claim. The claim is None when there is nothing
            to claim, or this worker may not claim in the objective.
        """
        standing = _standing(tx, objective_id, worker_id)
        # a newer program may have upgraded the schema since this process opened the store
        database.require_known(
            int(standing["schema_version"]),
            known=self._database.known_version,
            where=self._database.where,
        )
        claimable, task = _look_for_work(tx, objective_id, worker_id)
        if not standing["can_serve"]:
            return claimable, None
        duty = None if deferral is None else lifecycle.first_duty(claimable, deferral)
        if duty is not None:
            return claimable, _claim_duty(tx, objective_id, worker_id, duty)
        return claimable, None if task is None else _claim_task(tx, task, worker_id)

    @writing(is_lasting=False)
    def claim_duty(
        self, tx: Transaction, objective_id: int, worker_id: str, duty: Duty
    ) -> DutyClaim | None:
        """Claim a duty (work for the whole objective) if it is due and no worker holds it. The
        worker must serve the objective and not be blocked there. Otherwise return None.

        * ORDER is due when the objective is active, no agent has said that it is met, at least two
          tasks can be started, and a task was added since the last order.
        * PLAN is due when the objective is active and a task with a recorded outcome waits for
          planning.
        * CHECK is due when the objective is active and either an agent claims that it is met, or
          nothing is left to do and something was answered (`lifecycle.needs_check`).
        * REPORT is due when the objective has ended, has no report yet, and no worker holds a task.
        * INDEX is due when some result is not indexed yet, and always after the report.
        """
        objective = read_objective(tx, objective_id)
        if not (
            _standing(tx, objective_id, worker_id)["can_serve"]
            and _may_claim_duty(tx, objective, duty, tally(tx, objective_id))
        ):
            return None
        return _claim_duty(tx, objective_id, worker_id, duty)


def _standing(tx: Transaction, objective_id: int, worker_id: str) -> Row:
    """Return the version of the schema, and whether the worker serves the objective, is not blocked
    there, and has a living lease, without which other workers would release its claim at once."""
    return tx.all("standing", objective_id=objective_id, worker_id=worker_id)[0]


def _look_for_work(
    tx: Transaction, objective_id: int, worker_id: str
) -> tuple[Claimable, Task | None]:
    """Return what could be claimed in the objective, and the task that this worker would get; None
    when it would get none."""
    row = objective_row(tx, objective_id)
    objective = objective_of(tx, row)
    found = tally(tx, objective_id)
    task = _find_task(tx, objective, worker_id) if found["n_unblocked"] else None
    # even if this worker may get no task, another worker may get one
    has_task = task is not None or bool(
        worker_id and found["n_unblocked"] and _find_task(tx, objective, worker_id="")
    )
    # a due order is useless while no task can be claimed, and must not delay the objective's end
    duties = tuple(
        duty
        for duty in lifecycle.DUTIES
        if (has_task or duty is not Duty.ORDER) and _may_claim_duty(tx, objective, duty, found)
    )
    is_idle = objective.status is ObjectiveStatus.ACTIVE and not (has_task or duties)
    conclusion = lifecycle.conclude(snapshot(tx, objective)) if is_idle else None
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
    task = replace(
        found,
        status=TaskStatus.RUNNING,
        claim_no=found.claim_no + 1,
        started_at=to_time(tx.now_us),
        not_before=None,
    )
    tx.run(
        "claim_task",
        objective_id=task.objective_id,
        task_id=task.id,
        worker_id=worker_id,
        claim_no=task.claim_no,
    )
    data = {"worker_id": worker_id, "try_no": task.try_no, "claim_no": task.claim_no}
    append_task_event(tx, task, events.TASK_CLAIMED, **data)
    fence = Fence(
        objective_id=task.objective_id,
        owner=f"task:{task.id}",
        claim_no=task.claim_no,
        worker_id=worker_id,
    )
    return Claim(task=task, fence=fence)


def _claim_duty(tx: Transaction, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim:
    """Claim a duty (work for the whole objective, such as planning). The caller has checked that it
    can be claimed."""
    row, known = objective_row(tx, objective_id), _known_duty(tx, objective_id, duty)
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


def _find_task(tx: Transaction, objective: Objective, worker_id: str) -> Task | None:
    """Return the task that the worker would get; None when it would get none. The worker_id ""
    stands for a worker that holds nothing."""
    if objective.status is not ObjectiveStatus.ACTIVE or lifecycle.is_reached(
        objective.spec.limits.max_time_s, objective.active_s
    ):
        return None
    row = objective_row(tx, objective.id)
    if row["is_claimed_met"] or not lifecycle.may_start(
        n_tasks_without_progress=row["n_barren"], n_tries_without_answer=row["n_fruitless"]
    ):
        return None
    may_begin = not lifecycle.is_reached(objective.spec.limits.max_tasks, row["n_begun"])
    found = tx.one(
        "best_queued",
        objective_id=objective.id,
        worker_id=worker_id,
        may_begin=int(may_begin),
        suspect_from=lifecycle.SUSPECT_FROM,
    )
    return None if found is None else task_from_row(found)


def _may_claim_duty(tx: Transaction, objective: Objective, duty: Duty, found: Row) -> bool:
    if not _is_owed(tx, objective, duty, found):
        return False
    known = _known_duty(tx, objective.id, duty)
    if known is None:
        return True
    # a delay that begins in the future comes from a clock that has since jumped back
    until_us = known["not_before_us"]
    is_delayed = until_us is not None and until_us - known["delay_us"] <= tx.now_us < until_us
    return known["worker_id"] is None and not is_delayed


def _known_duty(tx: Transaction, objective_id: int, duty: Duty) -> Row | None:
    """Return the row of a duty (such as planning) if it was ever claimed, else None."""
    rows = tx.all("duties", objective_id=objective_id)
    return next((row for row in rows if row["duty"] == duty), None)


def _is_owed(tx: Transaction, objective: Objective, duty: Duty, found: Row) -> bool:
    """Return whether the duty (such as planning) is due. Of each condition, the part that needs no
    query is tested first.

    Args:
        found: the row that `tally` returns.
    """
    is_active = objective.status is ObjectiveStatus.ACTIVE
    is_over = objective.status is ObjectiveStatus.ENDED
    match duty:
        case Duty.ORDER:
            may_order = is_active and not objective.is_claimed_met
            return bool(may_order and found["n_unblocked"] >= 2 and found["has_unordered"])
        case Duty.PLAN:
            return is_active and bool(found["n_recorded"])
        case Duty.CHECK:
            is_at_work = found["n_unblocked"] or found["n_recorded"] or found["has_held"]
            may_need = is_active and (objective.is_claimed_met or not is_at_work)
            return may_need and lifecycle.needs_check(snapshot(tx, objective))
        case Duty.REPORT:
            return is_over and not (objective.has_report or found["has_held"])
        case Duty.INDEX:
            is_reported = is_over and objective.has_report
            return is_reported or tx.has("unindexed", objective_id=objective.id)


def read_schedule(tx: Transaction, schedule_id: int) -> Schedule:
    """Return the schedule. Raises `NotFoundError`."""
    row = tx.one("schedule", schedule_id=schedule_id)
    if row is None:
        raise NotFoundError(
            f"there is no schedule {schedule_id}",
            fix="babyagi schedule shows the schedules that exist",
            guide="schedules",
        )
    return schedule_from_row(row)
