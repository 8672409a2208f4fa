"""Changes of state that several verbs of the SQL store share; each is part of the verb's
transaction.

The order in every verb is: lock (the transaction), fence (is the claim still the holder's?), count
(limits and counters).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from babyagi import events
from babyagi.errors import NotFoundError
from babyagi.tasks import (
    Duty,
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
from babyagi.taskstore.sql.database import Row, Transaction, no_objective
from babyagi.taskstore.sql.rows import (
    lack_to_json,
    objective_from_row,
    sealed,
    spec_from_row,
    spec_to_json,
    step_from_row,
    step_to_values,
    task_from_row,
    to_json,
    to_time,
    to_time_or_none,
    usage_to_values,
)

ALL_ROWS = 2**53  # SQLite and PostgreSQL share no syntax for "no limit"
# the year 9999: the delay of a task that may ask only after another question is answered
UNTIL_ANSWERED_US = 253_370_764_800_000_000
MAX_COUNTED = 100  # tasks that can be started, counted at most; no worker has more free slots

# -- looking
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
    return objective_from_row(row, held=held, active_us=counted_us(tx, row))


def n_results(tx: Transaction, objective_id: int) -> int:
    row = tx.one("n_results", objective_id=objective_id) or objective_row(tx, objective_id)
    return int(row["n"])


def read_task(tx: Transaction, objective_id: int, task_id: int) -> Task:
    row = tx.one("task", objective_id=objective_id, task_id=task_id)
    if row is None:
        raise NotFoundError(
            f"objective {objective_id} has no task {task_id}",
            fix=f"babyagi tasks --objective {objective_id} shows the tasks that there are",
            guide="looking",
        )
    return task_from_row(row)


def counts(tx: Transaction, objective_id: int) -> dict[TaskStatus, int]:
    found = {row["status"]: row["n"] for row in tx.all("counts", objective_id=objective_id)}
    return {status: found.get(status.value, 0) for status in TaskStatus}


COUNTED = {"limit": MAX_COUNTED, "until_answered_us": UNTIL_ANSWERED_US}


def tally(tx: Transaction, objective_id: int) -> Row:
    """Return the counts of the list. `n_unblocked` are the queued tasks that wait neither for
    another task nor for an answer, delayed or not, counted up to `MAX_COUNTED`."""
    return tx.all("tally", objective_id=objective_id, **COUNTED)[0]


def ask_tally(tx: Transaction, objective_id: int) -> None:
    tx.ask("tally", objective_id=objective_id, **COUNTED)


def snapshot(tx: Transaction, objective: Objective) -> lifecycle.Snapshot:
    found, row = tally(tx, objective.id), objective_row(tx, objective.id)
    return lifecycle.Snapshot(
        limits=objective.spec.limits,
        active_s=objective.active_s,
        is_claimed_met=bool(row["is_claimed_met"]),
        n_held=int(found["has_held"]),
        n_recorded=int(found["n_recorded"]),
        n_unblocked=found["n_unblocked"],
        n_resumable=int(found["has_begun_unblocked"]),
        n_waiting=int(found["n_waiting"]),
        n_done=int(found["n_done"]),
        n_dead=int(found["n_dead"]),
        n_begun=row["n_begun"],
        n_tasks_without_progress=row["n_barren"],
        n_tries_without_answer=row["n_fruitless"],
    )


# -- time
# --------------------------------------------------------------------------------------------------


def counted_us(tx: Transaction, row: Row) -> int:
    """Return the objective's active time up to now. It does not grow while the objective is not
    active, or while no worker lives."""
    active_us: int = row["active_us"]
    if row["status"] != ObjectiveStatus.ACTIVE:
        return active_us
    return lifecycle.elapsed_us(
        active_us, since_seen_us=tx.now_us - row["seen_us"], lease_us=row["lease_us"]
    )


def store_active_time(tx: Transaction, row: Row) -> None:
    tx.run("store_active_time", objective_id=row["id"], active_us=counted_us(tx, row))


def set_spec(tx: Transaction, row: Row, spec: ObjectiveSpec) -> None:
    """Replace the spec of an objective."""
    values = {
        "uid": row["uid"],
        "identity": row["identity"],
        "spec": spec_to_json(spec),
        "created_at_us": row["created_at_us"],
    }
    tx.run(
        "set_spec",
        objective_id=row["id"],
        spec=values["spec"],
        seal=sealed("objective", values)["seal"],
    )


# -- events and costs
# --------------------------------------------------------------------------------------------------


def append_event(
    tx: Transaction, objective_id: int | None, kind: str, task_id: int | None = None, /, **data: Any
) -> None:
    values = {
        "objective_id": objective_id,
        "task_id": task_id,
        "kind": kind,
        "data": to_json(data),
        "at_us": tx.now_us,
    }
    tx.run_later("insert_events", sealed("event", values))


def charge(
    tx: Transaction, objective_id: int, owner: str, usage: Usage, *, has_progressed: bool = False
) -> None:
    """Count what a call has cost.

    Args:
        has_progressed: its answer was recorded, which shows that the task does not kill its
            workers.
    """
    values = usage_to_values(usage)
    tx.run("charge_objective", objective_id=objective_id, **values)
    task_id = lifecycle.task_of(owner)
    if task_id is not None:
        values |= {"task_id": task_id, "has_progressed": int(has_progressed)}
        tx.run("charge_task", objective_id=objective_id, **values)


def note_overspending(tx: Transaction, step: Step, usage: Usage, reserved: Reservation) -> None:
    """Append an event when an answer cost more than was reserved for it, or does not say what it
    cost. If the objective has such a limit, no further call begins."""
    usage = limits.countable_usage(usage)
    if not reserved.calls:  # the reservation is not known any more
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
    append_event(
        tx, step.objective_id, events.STEP_OVERSPENT, lifecycle.task_of(step.owner), **data
    )


def note_progress(tx: Transaction, objective_id: int, owner: str) -> None:
    """Reset the count of lost workers of the task: a step was recorded, so the task does not kill
    its workers."""
    task_id = lifecycle.task_of(owner)
    if task_id is not None and read_task(tx, objective_id, task_id).n_lost:
        tx.run("note_progress", objective_id=objective_id, task_id=task_id)


def settle(tx: Transaction, objective_id: int, owner: str) -> bool:
    """End a claim: the calls that it left open may have been paid for, so their reservations become
    usage. Return whether a step of the owner waits for a person."""
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
        step, charged = lifecycle.charge_unconfirmed(step)
        tx.run("put_step", **step_to_values(step, is_held=False))
        charge(tx, objective_id, owner, charged)
        append_event(
            tx,
            objective_id,
            events.STEP_UNCONFIRMED,
            lifecycle.task_of(owner),
            **lifecycle.step_data(step, charged),
        )
    return is_asking


def leave_unknown(tx: Transaction, step: Step) -> Step:
    """Mark an intended call that must not be repeated as unknown: nobody knows whether it was
    made.
    """
    unknown = replace(step, state=StepState.UNKNOWN)
    tx.run("put_step", **step_to_values(unknown, is_held=False))
    data = lifecycle.step_data(unknown, Usage())
    append_event(
        tx, step.objective_id, events.STEP_LEFT_UNKNOWN, lifecycle.task_of(step.owner), **data
    )
    return unknown


def wake(tx: Transaction, objective_id: int, task_id: int) -> None:
    """waiting → queued. An objective that ended because only people could go on becomes active
    again."""
    if not tx.count_changed("wake_task", objective_id=objective_id, task_id=task_id):
        return
    append_event(tx, objective_id, events.TASK_ANSWERED, task_id)
    allow_questions(tx, objective_id)
    tx.run("count_afresh", objective_id=objective_id)
    if objective_row(tx, objective_id)["stop_reason"] == StopReason.WAITING:
        reopen(tx, objective_id)


def count_asked(tx: Transaction, objective_id: int) -> int:
    """Return how many steps wait for a person."""
    return len(tx.all("inbox", objective_id=objective_id))


def allow_questions(tx: Transaction, objective_id: int) -> None:
    """Free tasks that were kept from asking, as many as there is room for more questions."""
    n_free = lifecycle.MAX_OPEN_QUESTIONS - count_asked(tx, objective_id)
    if n_free > 0:
        tx.run(
            "allow_questions",
            objective_id=objective_id,
            limit=n_free,
            until_answered_us=UNTIL_ANSWERED_US,
        )


# -- fences
# --------------------------------------------------------------------------------------------------


def fenced_task(tx: Transaction, fence: Fence, *statuses: TaskStatus) -> Task:
    """Return the task of the fence, which must have one of the statuses when any are given. Raises
    `LeaseLostError`."""
    row = tx.one("task", objective_id=fence.objective_id, task_id=lifecycle.task_of(fence.owner))
    if row is None or (row["worker_id"], row["claim_no"]) != (fence.worker_id, fence.claim_no):
        raise lifecycle.lost(fence)
    if statuses and row["status"] not in statuses:
        raise lifecycle.lost(fence)
    return task_from_row(row)


def fenced_duty(tx: Transaction, fence: Fence) -> Row:
    """Return the duty of the fence, for a verb that frees it. Raises `LeaseLostError`."""
    tx.ask("unsettled_steps", objective_id=fence.objective_id)
    duty = lifecycle.duty_of(fence.owner)
    row = tx.one("duty", objective_id=fence.objective_id, duty=duty)
    if row is None or (row["owner"], row["worker_id"], row["claim_no"]) != (
        fence.owner,
        fence.worker_id,
        fence.claim_no,
    ):
        raise lifecycle.lost(fence)
    return row


# -- what ends a claim, and an objective
# -------------------------------------------------------------------------------------


def prefetch_free_task(tx: Transaction, objective_id: int) -> None:
    """Announce the queries that the end of a task's claim reads."""
    tx.ask("objective", objective_id=objective_id)
    tx.ask("unsettled_steps", objective_id=objective_id)


def free_task(tx: Transaction, task: Task, *, row: Row | None = None, delay_s: float = 0.0) -> Task:
    """Write a task that its worker holds as one that nobody holds any more, and settle its open
    calls. The returned task does not include their charges.

    Args:
        row: the objective's row, if it was read already.
    """
    row = row or objective_row(tx, task.objective_id)
    is_asking = settle(tx, task.objective_id, f"task:{task.id}")
    reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
    status = lifecycle.status_when_freed(task.status, reason, is_asking=is_asking)
    if is_asking:
        # the answer belongs to this try
        task = replace(task, try_no=read_task(tx, task.objective_id, task.id).try_no)
    is_delayed = status in (TaskStatus.QUEUED, TaskStatus.RECORDED)
    delay = _delay(tx, delay_s if is_delayed else 0.0)
    tx.run(
        "put_task",
        objective_id=task.objective_id,
        task_id=task.id,
        status=status,
        try_no=task.try_no,
        failures=task.failures,
        n_lost=task.n_lost,
        error=task.error,
        lack=lack_to_json(task.lack),
        n_lacks=task.n_lacks,
        **delay,
    )
    is_finished = status in (TaskStatus.DONE, TaskStatus.DEAD)
    return replace(
        task,
        status=status,
        not_before=to_time_or_none(delay["not_before_us"]),
        finished_at=to_time(tx.now_us) if is_finished else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How many tasks in a row brought nothing new, how many tries in a row gave no answer, and how
    many answers there are."""

    n_tasks_without_progress: int
    n_tries_without_answer: int
    n_answers: int

    @classmethod
    def of(cls, row: Row) -> Progress:
        """Return the progress of an objective, from its row."""
        return cls(
            n_tasks_without_progress=row["n_barren"],
            n_tries_without_answer=row["n_fruitless"],
            n_answers=row["n_answers"],
        )

    def after_answer(self, *, n_added: int, is_repeat: bool) -> Progress:
        """Return the progress after one more try that gave an answer."""
        return Progress(
            n_tasks_without_progress=lifecycle.count_tasks_without_progress(
                self.n_tasks_without_progress, n_added=n_added, is_repeat=is_repeat
            ),
            n_tries_without_answer=0,
            n_answers=self.n_answers + int(not is_repeat),
        )

    def after_no_answer(self) -> Progress:
        """Return the progress after one more try that gave no answer."""
        return replace(self, n_tries_without_answer=self.n_tries_without_answer + 1)


def put_progress(tx: Transaction, objective_id: int, progress: Progress) -> None:
    tx.run("count_progress", objective_id=objective_id, **asdict(progress))


def count_no_answer(tx: Transaction, objective_id: int) -> None:
    """Count one more try that gave no answer."""
    progress = Progress.of(objective_row(tx, objective_id))
    put_progress(tx, objective_id, progress.after_no_answer())


def note_freed(tx: Transaction, task: Task) -> None:
    """Append an event for a task that was cancelled or parked when it was freed, because its holder
    did not ask for that."""
    if task.status is TaskStatus.CANCELLED:
        append_event(tx, task.objective_id, events.TASK_CANCELLED, task.id)
    elif task.status is TaskStatus.WAITING:
        rows = tx.all("steps", objective_id=task.objective_id, owner=f"task:{task.id}")
        asked = next(step for step in map(step_from_row, rows) if lifecycle.is_open(step))
        append_event(
            tx, task.objective_id, events.TASK_PARKED, task.id, **lifecycle.parked_data(asked)
        )


def free_duty(
    tx: Transaction, objective_id: int, *, duty: str, owner: str, delay_s: float = 0.0
) -> None:
    tx.run("free_duty", objective_id=objective_id, duty=duty, **_delay(tx, delay_s))
    settle(tx, objective_id, owner)


def _delay(tx: Transaction, delay_s: float) -> dict[str, int | None]:
    delay_us = limits.to_us(delay_s)
    return {"not_before_us": tx.now_us + delay_us if delay_us > 0 else None, "delay_us": delay_us}


def forget_duty(tx: Transaction, objective_id: int, duty: Duty) -> None:
    row = tx.one("duty", objective_id=objective_id, duty=duty)
    if row is not None:
        settle(tx, objective_id, row["owner"])
        tx.run("forget_duty", objective_id=objective_id, duty=duty)


def end(tx: Transaction, objective_id: int, *, reason: StopReason, detail: str) -> None:
    """End an objective that has not ended. Cancel its queued and waiting tasks if the reason says
    so."""
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
            tx.run("cancel_task", objective_id=objective_id, task_id=task["id"])
            append_event(tx, objective_id, events.TASK_CANCELLED, task["id"])
    tx.run("end_objective", objective_id=objective_id, reason=reason, detail=detail)
    append_event(tx, objective_id, events.OBJECTIVE_ENDED, reason=reason, detail=detail)


def reopen(tx: Transaction, objective_id: int) -> None:
    """ended → active; a new report is owed, under a new owner."""
    forget_duty(tx, objective_id, Duty.REPORT)
    tx.run("reopen_objective", objective_id=objective_id)
    append_event(tx, objective_id, events.OBJECTIVE_REOPENED)
