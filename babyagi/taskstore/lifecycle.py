"""The rules of the task list as pure functions: which status follows which, when an objective ends,
what a person may change, and how a step changes.

Nothing here reads a clock or keeps state. A name that ends in `_us` is a time in whole
microseconds.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from babyagi.errors import LeaseLostError, NotFoundError, ObjectiveStoppedError, SettingsError
from babyagi.tasks import (
    ANSWER_TASK,
    CheckedPart,
    Checks,
    Duty,
    Fence,
    Lack,
    Limits,
    ObjectiveSpec,
    Place,
    Proposal,
    Step,
    StepState,
    StopReason,
    Task,
    TaskStatus,
    Usage,
    digest,
)
from babyagi.taskstore.nouns import Claimable, Deferral
from babyagi.text import one_line

MAX_NAME_CHARS = 2000
MAX_DETAIL_CHARS = 2000
MAX_FOUND_CHARS = 4000  # of an answer in part, which the next try is shown
# After so many tasks in a row without progress, or so many tries in a row that gave neither an
# answer nor a new task, no further task of the objective is started.
MAX_TASKS_WITHOUT_PROGRESS = 5
MAX_TRIES_WITHOUT_ANSWER = 20
MAX_LACKS = 3  # a task is given up after so many tries that lacked information
# Open questions of one objective: a person cannot see more at a glance, and each one costs calls.
MAX_OPEN_QUESTIONS = 5
# How often tasks of one name may be proposed again: without a newer result, and in all.
MAX_REPEATS = 4
MAX_REPEATS_IN_ALL = 12
# A task is given up after so many workers in a row were lost while they held it, without recording
# a step of it.
MAX_LOST = 10
SUSPECT_FROM = 4  # from this number of lost workers on, the task itself may be what kills them
MAX_LOST_PAUSE_S = 60.0
# An objective ends as `unmet` after so many checks in a row of an empty list without a new answer,
# or without a check that found fewer missing parts.
MAX_IDLE_CHECKS = 3
MAX_STUCK_CHECKS = 10

OPEN = (TaskStatus.QUEUED, TaskStatus.RUNNING, TaskStatus.RECORDED, TaskStatus.WAITING)
AT_WORK = (TaskStatus.RUNNING, TaskStatus.RECORDED)
CANCELLABLE = (TaskStatus.QUEUED, TaskStatus.WAITING)
# a task that comes `after` tasks of these statuses does not wait for them
SETTLED = (TaskStatus.DONE, TaskStatus.DEAD, TaskStatus.CANCELLED)
CANCELLING = (StopReason.OBJECTIVE_MET, StopReason.CANCELLED)
REOPENED_BY_EXTENDING = (
    StopReason.LIMIT_TASKS,
    StopReason.LIMIT_CALLS,
    StopReason.LIMIT_TOKENS,
    StopReason.LIMIT_COST,
    StopReason.LIMIT_TIME,
    StopReason.WAITING,
    StopReason.STALLED,
    StopReason.UNMET,
    StopReason.FAILED,
)
# an objective that ended for this reason never becomes active again
FOR_GOOD = StopReason.CANCELLED
# default first tasks of earlier versions
EARLIER_DEFAULTS = ("Find out as much as can be found out now", "Develop a task list")


def storable(text: str, *, max_chars: int | None = None) -> str:
    """Return the text as every store accepts it, cut to `max_chars`: lone surrogates, which UTF-8
    cannot encode, and NUL, which PostgreSQL rejects, are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")[:max_chars]


def storable_line(text: str, *, max_chars: int | None = None) -> str:
    """Return the text as one line that every store accepts, cut to `max_chars`."""
    return storable(one_line(text), max_chars=max_chars).strip()


def identity_key(spec: ObjectiveSpec) -> str:
    """Return the hash by which the store finds an objective like this again."""
    return identity_keys(spec)[0]


def identity_keys(spec: ObjectiveSpec) -> list[str]:
    """Return hashes of the objective's text, first task and instance name, by which a later start
    finds the same objective again. With the default first task, the first hash is followed by those
    with the defaults of earlier versions."""
    defaults = (ANSWER_TASK, *EARLIER_DEFAULTS)
    firsts = defaults if spec.initial_task in defaults else (spec.initial_task,)
    identities = [json.dumps([spec.text, first, spec.instance_name]) for first in firsts]
    return [hashlib.sha256(identity.encode()).hexdigest() for identity in identities]


def further_question(text: str) -> str:
    """Return a person's further question as the objective stores it: on one line, of any length.

    Raises:
        SettingsError: the question is empty.
    """
    line = storable_line(text)
    if not line:
        raise SettingsError(
            "the further question is empty",
            fix='babyagi run --continue latest "a further question"',
            guide="objectives",
        )
    return line


# -- order
# --------------------------------------------------------------------------------------------------


def deal_ranks(current: Iterable[tuple[int, int]], wanted: Sequence[int]) -> dict[int, int]:
    """Put queued tasks in a new order by exchanging their ranks among them.

    Args:
        current: `(id, rank)` of each queued task.
        wanted: ids in the new order. Unknown and repeated ids are ignored.

    Returns:
        The new ranks by id, in the new order, for the tasks in `wanted`. They get the ranks that
        the same tasks have now; all other tasks keep theirs.
    """
    rank_by_id = dict(current)
    named = [task_id for task_id in dict.fromkeys(wanted) if task_id in rank_by_id]
    return dict(zip(named, sorted(rank_by_id[task_id] for task_id in named), strict=True))


_NUMBER_COLUMNS = {
    Duty.ORDER: "order_revision",
    Duty.PLAN: "plan_no",
    Duty.CHECK: "check_no",
    Duty.REPORT: "report_no",
}


def duty_owner(duty: Duty, row: Mapping[str, Any]) -> str:
    """Return the owner name, such as `plan:2`, under which this run of the duty records its steps.
    Each new ordering, planning, check and report has a new name, so that it does not replay the
    steps of an earlier one.

    Args:
        row: the objective's row, with the number of its current order, planning, check or report.
    """
    if duty is Duty.INDEX or (duty is Duty.REPORT and row["report_no"] == 1):
        return duty.value
    return f"{duty}:{row[_NUMBER_COLUMNS[duty]]}"


DUTIES = (Duty.CHECK, Duty.PLAN, Duty.ORDER, Duty.REPORT)
"""The duties in the order in which a worker claims them. `INDEX` is missing, because a separate
loop of the worker claims it."""


def first_duty(claimable: Claimable, deferral: Deferral) -> Duty | None:
    """Return the first duty (work for the whole objective, such as planning) that is due and that
    `deferral` does not postpone; None when there is none."""
    return next(
        (duty for duty in claimable.duties if not _is_put_off(duty, claimable, deferral)), None
    )


def _is_put_off(duty: Duty, claimable: Claimable, deferral: Deferral) -> bool:
    match duty:
        case Duty.ORDER:
            return (
                claimable.n_startable < deferral.min_startable
                or claimable.n_unordered < deferral.min_unordered
            )
        case Duty.PLAN:
            return claimable.has_task and claimable.n_recorded < deferral.min_recorded
    return False


# -- states
# --------------------------------------------------------------------------------------------------


def goes_back(status: TaskStatus, *, is_asking: bool) -> bool:
    """Return whether a released task goes back to the list, where `status_when_freed` determines
    its status, rather than getting `status`.

    A task goes back instead of staying running or becoming queued. A task that waits for a person's
    answer (`is_asking`) also goes back instead of becoming dead, because the answer may say that a
    call which must not be repeated was made.
    """
    return status in (TaskStatus.RUNNING, TaskStatus.QUEUED) or (
        status is TaskStatus.DEAD and is_asking
    )


def status_when_freed(stop_reason: str | None, *, is_asking: bool) -> TaskStatus:
    """Return the status of a task that goes back to the list: cancelled, if the objective has ended
    for a reason that cancels all queued tasks; else waiting, if a person must answer one of its
    steps; else queued."""
    if stop_reason in CANCELLING:
        return TaskStatus.CANCELLED
    return TaskStatus.WAITING if is_asking else TaskStatus.QUEUED


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of an objective in numbers, from which `conclude` decides whether it ends.

    Attributes:
        n_held: tasks that a worker has claimed.
        n_recorded: tasks that wait for planning.
        n_unblocked: queued tasks that wait neither for another task nor for a person's answer,
            delayed or not.
        n_resumable: those of `n_unblocked` that were claimed before; known only at the limit of
            tasks.
        n_begun: all tasks that were claimed at least once.
        n_tasks_without_progress: tasks in a row whose results brought nothing new.
        n_tries_without_answer: tries in a row that gave no answer.
    """

    limits: Limits
    active_s: float
    is_claimed_met: bool
    n_held: int
    n_recorded: int
    n_unblocked: int
    n_resumable: int
    n_waiting: int
    n_done: int
    n_dead: int
    n_begun: int
    n_tasks_without_progress: int
    n_tries_without_answer: int

    @property
    def is_stalled(self) -> bool:
        return self.n_unblocked > 0 and not may_start(
            n_tasks_without_progress=self.n_tasks_without_progress,
            n_tries_without_answer=self.n_tries_without_answer,
        )

    @property
    def is_out_of_tasks(self) -> bool:
        """Whether the limit of tasks forbids every task that could otherwise be started."""
        return is_reached(self.limits.max_tasks, self.n_begun) and self.n_resumable == 0

    @property
    def is_empty(self) -> bool:
        """Whether no task is running, waits for planning, can be claimed or waits for a person, so
        that nothing can happen by itself."""
        return not (self.n_held or self.n_recorded or self.n_unblocked or self.n_waiting)


def is_reached(limit: float, reached: float) -> bool:
    """Return whether the limit is reached; a limit of 0 means none."""
    return 0 < limit <= reached


def may_start(*, n_tasks_without_progress: int, n_tries_without_answer: int) -> bool:
    """Return whether another task may be started. If not, the objective is stalled: there were too
    many tasks without progress, or too many tries without an answer, in a row."""
    return (
        n_tasks_without_progress < MAX_TASKS_WITHOUT_PROGRESS
        and n_tries_without_answer < MAX_TRIES_WITHOUT_ANSWER
    )


def needs_check(snapshot: Snapshot) -> bool:
    """Return whether a check whether the objective is met is due: an agent claims that it is met,
    or nothing is left to do and at least one task is done. False once the time limit is reached."""
    if is_reached(snapshot.limits.max_time_s, snapshot.active_s):
        return False
    return snapshot.is_claimed_met or (snapshot.is_empty and snapshot.n_done > 0)


def conclude(snapshot: Snapshot) -> StopReason | None:
    """Return the reason for which an active objective ends now, or None if it goes on. An empty
    task list does not end it by itself: first a check decides whether the objective is met."""
    if snapshot.n_held:
        return None
    if is_reached(snapshot.limits.max_time_s, snapshot.active_s):
        return StopReason.LIMIT_TIME
    if snapshot.n_recorded or needs_check(snapshot):
        return None
    if snapshot.n_unblocked and not snapshot.is_stalled:
        return StopReason.LIMIT_TASKS if snapshot.is_out_of_tasks else None
    if snapshot.n_waiting:
        return StopReason.WAITING
    return StopReason.STALLED if snapshot.is_stalled else StopReason.FAILED


def explain(reason: StopReason, snapshot: Snapshot, *, errors: Sequence[str] = ()) -> str:
    """Return a sentence for a person with details of the stop reason that `conclude` returned; ''
    when there are none.

    Args:
        errors: the errors of the dead tasks. The sentence contains the most frequent one.
    """
    if reason is StopReason.FAILED:
        why = f": {Counter(errors).most_common(1)[0][0]}" if errors else ""
        return (
            f"no task was answered, {snapshot.n_dead} "
            f"{'was' if snapshot.n_dead == 1 else 'were'} given up{why}"
        )
    if reason not in (StopReason.STALLED, StopReason.WAITING) or not snapshot.is_stalled:
        return ""
    if snapshot.n_tries_without_answer >= MAX_TRIES_WITHOUT_ANSWER:
        return (
            f"the last {snapshot.n_tries_without_answer} tries in a row gave no answer and "
            "no new task"
        )
    return (
        f"the last {snapshot.n_tasks_without_progress} tasks brought no new task, and their "
        "results nearly equal earlier ones"
    )


def after_check(
    checks: Checks,
    *,
    parts: Sequence[CheckedPart],
    missing: Sequence[str],
    n_answers: int,
    is_round: bool,
) -> Checks:
    """Return the new state of the checks after a check that found something missing.

    Args:
        n_answers: how many answers the objective has now.
        is_round: whether the task list was empty. Only such a check raises `n_idle` (when there is
            no new answer) and `n_stuck` (when no fewer parts are missing than before).
    """
    n_missing = max(1, len(missing) + sum(not part.quote for part in parts))
    is_better = not checks.least_missing or n_missing < checks.least_missing
    is_idle = is_round and n_answers == checks.n_answers
    return Checks(
        parts=tuple(parts),
        missing=tuple(missing),
        n_idle=checks.n_idle + 1 if is_idle else 0 if is_round else checks.n_idle,
        n_stuck=0 if is_better else checks.n_stuck + int(is_round),
        least_missing=n_missing if is_better else checks.least_missing,
        n_answers=n_answers,
    )


def is_in_vain(checks: Checks) -> bool:
    """Return whether the objective should end, because adding tasks for its missing parts has
    brought nothing several times in a row."""
    return checks.n_idle >= MAX_IDLE_CHECKS or checks.n_stuck >= MAX_STUCK_CHECKS


# --------------------------------------------------------------------------------------------------
# What a person may change in a task list while workers work on it.
# --------------------------------------------------------------------------------------------------


def require(task: Task, *statuses: TaskStatus) -> None:
    """Raise `SettingsError` unless the task has one of the statuses."""
    if task.status in statuses:
        return
    is_retry = statuses == (TaskStatus.DEAD,)
    what, needed = ("retried", "dead") if is_retry else ("changed", "queued or waiting")
    is_dead = task.status is TaskStatus.DEAD
    raise SettingsError(
        f"task {task.id} cannot be {what}, because it is {task.status.value}",
        why=f"only a task that is {needed} can be {what}",
        fix=f"babyagi tasks retry {task.id}"
        if is_dead
        else "babyagi tasks shows what each task is",
        guide="tasks",
    )


def require_reopenable(objective_id: int, stop_reason: str | None) -> None:
    """Raise `ObjectiveStoppedError` if the objective was cancelled. An objective that has not ended
    (`stop_reason` is None), or has ended in another way, passes."""
    if stop_reason == FOR_GOOD:
        raise ObjectiveStoppedError(
            f"objective {objective_id} has ended for good: {FOR_GOOD.value}",
            why=FOR_GOOD.words,
            fix="babyagi run with --new starts it afresh",
            guide="objectives",
        )


def replacement(task: Task, name: str) -> Proposal:
    """Return the proposal for a task that replaces `task` and waits for the same tasks. The name
    may have any length, because a person wrote it.

    Raises:
        SettingsError: the name is empty.
    """
    line = storable_line(name)
    if not line:
        raise SettingsError(
            f"the new name of task {task.id} is empty",
            fix=f'babyagi tasks edit {task.id} "what to do instead"',
            guide="tasks",
        )
    return Proposal(name=line, after=task.after)


def put_at(listed: Sequence[int], moved: Sequence[int], to: Place | int) -> list[int]:
    """Return the ids of the listed tasks in a new order: those in `moved` stand together, in their
    given order, at one end of the list or before the task `to`.

    Raises:
        SettingsError: `to` is not in the list.
    """
    if to in moved:
        return list(listed)
    rest = [task_id for task_id in listed if task_id not in moved]
    match to:
        case Place.FIRST:
            at = 0
        case Place.LAST:
            at = len(rest)
        case _ if to in rest:
            at = rest.index(to)
        case _:
            raise SettingsError(
                f"task {to} is neither queued nor waiting, so no task can be moved before it",
                fix="babyagi tasks shows which tasks are queued",
                guide="tasks",
            )
    return [*rest[:at], *moved, *rest[at:]]


# --------------------------------------------------------------------------------------------------
# How the task store creates and changes its data types.
# --------------------------------------------------------------------------------------------------

# kinds of steps
INPUTS = "inputs"  # not a call: stores the inputs of a try
ONCE = "once"  # a tool call that must not be repeated
CHANGED = "changed"  # a question whether a tool that differs from the granted one may be used


def new_step(fence: Fence, *, key: str, at: datetime, **fields: Any) -> Step:
    """Return a new step (the record of a call) with these `fields`; it is not stored yet. Without a
    `state` among them, it is INTENDED. A step without a `kind` has the kind "": nothing was stored
    before its call, and its outcome is about to be recorded."""
    return Step(
        objective_id=fence.objective_id,
        owner=fence.owner,
        key=key,
        claim_no=fence.claim_no,
        created_at=at,
        **{"kind": "", "request_hash": "", "state": StepState.INTENDED, **fields},
    )


def open_step(fence: Fence, *, key: str, kind: str, request: str, at: datetime) -> Step:
    """Return a new step (the record of a call or a question to a person) with its whole request,
    because a person may have to read it. The hash depends on the request alone, so it is the same
    in every try."""
    request = storable(request)
    hashed = digest(request)
    return new_step(fence, key=key, at=at, kind=kind, request_hash=hashed, request=request)


def decide_change(spec: ObjectiveSpec, step: Step) -> ObjectiveSpec:
    """Return the spec after a person has decided about a changed tool: the tool's new description
    and parameters are granted, or recorded as refused. If the step asked about something else, or
    cannot be read, return the spec unchanged."""
    if step.kind != CHANGED:
        return spec
    try:
        asked = json.loads(step.request)
        now = asked["arguments"]["now"]
        form = json.loads(now)
        change: dict[str, Any] = (
            {"refused": digest(now)}
            if json.loads(step.output or "{}").get("is_error")
            else {key: form[key] for key in ("description", "parameters")} | {"refused": ""}
        )
    except (ValueError, KeyError, TypeError):  # another program wrote the row
        return spec
    tools = (replace(one, **change) if one.name == asked["tool"] else one for one in spec.tools)
    return replace(spec, tools=tuple(tools))


def is_open(step: Step) -> bool:
    """Return whether the step waits for a person's answer or decision."""
    return step.state in (StepState.ASKED, StepState.UNKNOWN)


def not_asked(step_id: int) -> NotFoundError:
    return NotFoundError(
        f"no question or approval with the number {step_id} waits for a person",
        fix="babyagi inbox shows the questions and approvals that wait, with their numbers",
        guide="inbox",
    )


def done_step(step: Step, *, output: str, model: str, origins: Sequence[str], at: datetime) -> Step:
    """Return the step with its outcome, in the state DONE. A step that is done already keeps its
    first outcome."""
    if step.state is StepState.DONE:
        return step
    return replace(
        step,
        model=storable(model) or step.model,
        state=StepState.DONE,
        output=storable(output),
        origins=tuple(map(storable, origins)),
        done_at=at,
    )


def lacked(task: Task, *, lack: Lack) -> Task:
    """Return the task after a try that lacked information. What earlier tries lacked and were shown
    is kept."""
    last = task.lack or Lack(what="")
    lack = replace(
        lack,
        what=storable(lack.what, max_chars=MAX_DETAIL_CHARS),
        shown=tuple(dict.fromkeys((*lack.shown, *last.shown))),
        found=storable(lack.found or last.found, max_chars=MAX_FOUND_CHARS),
        before=tuple(filter(None, (*last.before, last.what))),
    )
    return replace(task, lack=lack, n_lacks=task.n_lacks + 1, n_lost=0)


def step_data(step: Step, usage: Usage, *, model: str = "") -> dict[str, Any]:
    """Return the data of an event about a step.

    Args:
        usage: the usage that the event reports.
        model: the model that was called; "" stands for `step.model`.
    """
    return {
        "owner": step.owner,
        "key": step.key,
        "kind": step.kind,
        "model": model or step.model,
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd,
    }


def task_of(owner: str) -> int | None:
    """Return the task id in an owner name such as `task:7`; None for a duty such as `plan:2`."""
    return int(owner[5:]) if owner.startswith("task:") else None


def duty_of(owner: str) -> str:
    """Return the name of the duty in an owner name such as `plan:2`: `plan`."""
    return owner.partition(":")[0]


def lost(fence: Fence) -> LeaseLostError:
    return LeaseLostError(
        f"worker {fence.worker_id} no longer holds claim {fence.claim_no} of {fence.owner}, "
        f"objective {fence.objective_id}"
    )
