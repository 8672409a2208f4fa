"""What several verbs of the SQL store have in common; each move is part of a transaction that a
verb began.

The order in every verb is: lock (the transaction), fence (is the claim still the holder's?), count
(limits and counters).
"""

from __future__ import annotations

from dataclasses import replace
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
from babyagi.taskstore.sql.database import Row, Transaction
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
    usage_to_values,
)

ALL_ROWS = 2**53  # SQLite and PostgreSQL have no word in common for "no limit"
# the year 9999: when a question is answered, another task may ask
UNTIL_ANSWERED_US = 253_370_764_800_000_000
MAX_COUNTED = 100  # tasks that can be started; no worker has more free slots

# -- looking
# --------------------------------------------------------------------------------------------------


def objective_row(tx: Transaction, objective_id: int) -> Row:
    row = tx.one("objective", objective_id=objective_id)
    if row is None:
        raise NotFoundError(f"there is no objective {objective_id}", fix="babyagi objectives")
    return row


def read_objective(tx: Transaction, objective_id: int) -> Objective:
    row = objective_row(tx, objective_id)
    return objective_from_row(row, held=held(tx, objective_id), active_us=counted_us(tx, row))


def read_task(tx: Transaction, objective_id: int, task_id: int) -> Task:
    row = tx.one("task", objective_id=objective_id, task_id=task_id)
    if row is None:
        raise NotFoundError(f"objective {objective_id} has no task {task_id}")
    return task_from_row(row)


def held(tx: Transaction, objective_id: int) -> Reservation:
    row = tx.all("held", objective_id=objective_id)[0]
    return Reservation(
        calls=int(row["calls"]), tokens=int(row["tokens"]), cost_usd=int(row["cost_microusd"]) / 1e6
    )


def counts(tx: Transaction, objective_id: int) -> dict[TaskStatus, int]:
    found = {row["status"]: row["n"] for row in tx.all("counts", objective_id=objective_id)}
    return {status: found.get(status.value, 0) for status in TaskStatus}


def snapshot(tx: Transaction, objective: Objective) -> lifecycle.Snapshot:
    n_by_status, row = counts(tx, objective.id), objective_row(tx, objective.id)
    n_unblocked = count_unblocked(tx, objective.id) if n_by_status[TaskStatus.QUEUED] else 0
    return lifecycle.Snapshot(
        limits=objective.spec.limits,
        active_s=objective.active_s,
        is_claimed_met=bool(row["is_claimed_met"]),
        n_held=int(tx.has("has_held_task", objective_id=objective.id)),
        n_recorded=n_by_status[TaskStatus.RECORDED],
        n_unblocked=n_unblocked,
        n_resumable=int(
            n_unblocked > 0
            and tx.has(
                "has_begun_unblocked",
                objective_id=objective.id,
                until_answered_us=UNTIL_ANSWERED_US,
            )
        ),
        n_waiting=n_by_status[TaskStatus.WAITING],
        n_done=n_by_status[TaskStatus.DONE],
        n_dead=n_by_status[TaskStatus.DEAD],
        n_begun=row["n_begun"],
        n_tasks_without_progress=row["n_barren"],
        n_tries_without_answer=row["n_fruitless"],
    )


def count_unblocked(tx: Transaction, objective_id: int) -> int:
    """How many queued tasks wait neither for another nor for an answer, delayed or not; counted up
    to `MAX_COUNTED`."""
    return int(
        tx.all(
            "n_unblocked",
            objective_id=objective_id,
            limit=MAX_COUNTED,
            until_answered_us=UNTIL_ANSWERED_US,
        )[0]["n"]
    )


# -- time
# --------------------------------------------------------------------------------------------------


def counted_us(tx: Transaction, row: Row) -> int:
    """The objective's active time up to now; it stands still while the objective does, and while no
    worker lives."""
    active_us: int = row["active_us"]
    lease = (
        tx.one("longest_lease", objective_id=row["id"])
        if row["status"] == ObjectiveStatus.ACTIVE
        else None
    )
    if lease is None:
        return active_us
    return lifecycle.elapsed_us(
        active_us, since_seen_us=tx.now_us - row["seen_us"], lease_us=lease["lease_us"]
    )


def carry_time(tx: Transaction, row: Row) -> None:
    tx.run("carry_time", objective_id=row["id"], active_us=counted_us(tx, row))


def set_spec(tx: Transaction, row: Row, spec: ObjectiveSpec) -> None:
    """Replace what is frozen of an objective."""
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
    tx.run("insert_event", **sealed("event", values))


def charge(tx: Transaction, objective_id: int, owner: str, usage: Usage) -> None:
    values = usage_to_values(usage)
    tx.run("charge_objective", objective_id=objective_id, **values)
    task_id = lifecycle.task_of(owner)
    if task_id is not None:
        tx.run("charge_task", objective_id=objective_id, task_id=task_id, **values)


def note_overspending(tx: Transaction, step: Step, usage: Usage, reserved: Reservation) -> None:
    """Say so when an answer cost more than was reserved for it, or does not say what it cost; under
    a limit of that, no call begins any more."""
    usage = limits.countable_usage(usage)
    if not reserved.calls:  # nobody knows any more what was
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
    """A step was recorded: what the owner is about does not kill its workers."""
    task_id = lifecycle.task_of(owner)
    if task_id is not None:
        tx.run("note_progress", objective_id=objective_id, task_id=task_id)


def settle(tx: Transaction, objective_id: int, owner: str) -> None:
    """A claim ends: the calls it left open may have been paid, so what they hold becomes usage."""
    for row in tx.all("held_steps", objective_id=objective_id, owner=owner):
        step = step_from_row(row)
        if step.kind == lifecycle.ONCE:
            leave_unknown(tx, step)
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


def leave_unknown(tx: Transaction, step: Step) -> Step:
    """A call that must not be repeated was intended, and nobody knows whether it was made."""
    unknown = replace(step, state=StepState.UNKNOWN)
    tx.run("put_step", **step_to_values(unknown, is_held=False))
    data = lifecycle.step_data(unknown, Usage())
    append_event(
        tx, step.objective_id, events.STEP_LEFT_UNKNOWN, lifecycle.task_of(step.owner), **data
    )
    return unknown


def is_asking(tx: Transaction, objective_id: int, task_id: int) -> bool:
    """Whether a person must say something about a step of the task."""
    return tx.has("is_asking", objective_id=objective_id, owner=f"task:{task_id}")


def wake(tx: Transaction, objective_id: int, task_id: int) -> None:
    """waiting → queued; an objective that ended because only people could go on is open again."""
    if not tx.count_changed("wake_task", objective_id=objective_id, task_id=task_id):
        return
    append_event(tx, objective_id, events.TASK_ANSWERED, task_id)
    let_ask(tx, objective_id)
    tx.run("count_afresh", objective_id=objective_id)
    if objective_row(tx, objective_id)["stop_reason"] == StopReason.WAITING:
        reopen(tx, objective_id)


def count_asked(tx: Transaction, objective_id: int) -> int:
    """How many steps wait for a person."""
    return len(tx.all("inbox", objective_id=objective_id))


def let_ask(tx: Transaction, objective_id: int) -> None:
    """Let as many tasks ask that were kept from it as there is room for more questions."""
    n_free = lifecycle.MAX_OPEN_QUESTIONS - count_asked(tx, objective_id)
    if n_free > 0:
        tx.run(
            "let_ask", objective_id=objective_id, limit=n_free, until_answered_us=UNTIL_ANSWERED_US
        )


# -- fences
# --------------------------------------------------------------------------------------------------


def check_fence(tx: Transaction, fence: Fence) -> None:
    """Raises `LeaseLostError` unless the claim is still the holder's."""
    if lifecycle.task_of(fence.owner) is not None:
        fenced_task(tx, fence)
    else:
        fenced_duty(tx, fence)


def fenced_task(tx: Transaction, fence: Fence, *statuses: TaskStatus) -> Task:
    """The task of the fence, in one of the statuses when any are named."""
    row = tx.one("task", objective_id=fence.objective_id, task_id=lifecycle.task_of(fence.owner))
    if row is None or (row["worker_id"], row["claim_no"]) != (fence.worker_id, fence.claim_no):
        raise lifecycle.lost(fence)
    if statuses and row["status"] not in statuses:
        raise lifecycle.lost(fence)
    return task_from_row(row)


def fenced_duty(tx: Transaction, fence: Fence) -> Row:
    row = tx.one("duty", objective_id=fence.objective_id, duty=fence.owner.partition(":")[0])
    if row is None or (row["owner"], row["worker_id"], row["claim_no"]) != (
        fence.owner,
        fence.worker_id,
        fence.claim_no,
    ):
        raise lifecycle.lost(fence)
    return row


# -- what ends a claim, and an objective
# -------------------------------------------------------------------------------------


def put_down(tx: Transaction, task: Task, *, delay_s: float = 0.0) -> Task:
    """Write a claimed task, changed by the verb, as one that nobody holds any more, and settle its
    open calls."""
    row = objective_row(tx, task.objective_id)
    settle(tx, task.objective_id, f"task:{task.id}")
    asking = is_asking(tx, task.objective_id, task.id)
    reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
    status = lifecycle.status_when_freed(task.status, reason, is_asking=asking)
    if asking:
        # the answer belongs to this try
        task = replace(task, try_no=read_task(tx, task.objective_id, task.id).try_no)
    is_delayed = status in (TaskStatus.QUEUED, TaskStatus.RECORDED)
    row = tx.all(
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
        **_delay(tx, delay_s if is_delayed else 0.0),
    )[0]
    return task_from_row(row)


def count_progress(
    tx: Transaction,
    objective_id: int,
    *,
    is_answer: bool,
    n_added: int = 0,
    is_repeat: bool = False,
) -> int:
    """Count one more try that ended, and return how many tasks in a row brought nothing new."""
    row = objective_row(tx, objective_id)
    n_tasks_without_progress = (
        lifecycle.count_tasks_without_progress(
            row["n_barren"], n_added=n_added, is_repeat=is_repeat
        )
        if is_answer
        else row["n_barren"]
    )
    tx.run(
        "count_progress",
        objective_id=objective_id,
        n_tasks_without_progress=n_tasks_without_progress,
        n_tries_without_answer=0 if is_answer else row["n_fruitless"] + 1,
        n_answers=row["n_answers"] + int(is_answer and not is_repeat),
    )
    return n_tasks_without_progress


def note_freed(tx: Transaction, task: Task) -> None:
    """What became of a task that nobody holds any more, where that is not what its holder
    wanted."""
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
    """End an objective that has not ended, cancelling what is queued when the reason says so."""
    row = objective_row(tx, objective_id)
    if row["status"] == ObjectiveStatus.ENDED:
        return
    detail = lifecycle.storable(detail, max_chars=lifecycle.MAX_DETAIL_CHARS)
    carry_time(tx, row)
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
    """ended → active; the report is owed anew, under a new owner."""
    forget_duty(tx, objective_id, Duty.REPORT)
    tx.run("reopen_objective", objective_id=objective_id)
    append_event(tx, objective_id, events.OBJECTIVE_REOPENED)
