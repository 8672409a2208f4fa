"""Why a task does not run, or why an objective makes no progress or has ended, and what to type to
change that.

`Facts` are the state of the task store at one instant. All conclusions are pure functions in this
module, so every screen shows the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from babyagi import inbox
from babyagi.tasks import (
    Joined,
    Limits,
    Objective,
    ObjectiveStatus,
    Role,
    Step,
    StopReason,
    Task,
    TaskStatus,
    Worker,
)
from babyagi.taskstore.lifecycle import SETTLED, may_start
from babyagi.taskstore.limits import find_used_up
from babyagi.taskstore.nouns import Standing
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import one_line, quoted, say_count, shorten

MAX_NAMED = 5  # tasks or workers named in one line
MAX_SAID_CHARS = 300
_FAR = timedelta(days=365 * 100)  # a delay that ends only with an answer
_DUTY_WORDS = {
    "plan": "new tasks are being planned",
    "order": "the list is being ordered",
    "check": "the objective is being checked",
    "report": "the report is being written",
}


class Why(StrEnum):
    """The kinds of reason why a task does not run or an objective makes no progress."""

    RUNNING = "running"
    LOST = "lost"  # its worker is gone; another one takes it over
    PLANNING = "planning"  # its result is recorded, and its planning is under way or owed
    DONE = "done"
    CANCELLED = "cancelled"
    DEAD = "dead"  # it failed too often, or what it lacked never came
    AFTER = "after"  # other tasks come first
    LACK = "lack"  # other tasks bring what it lacked
    ANSWER = "answer"  # a person was asked
    DECISION = "decision"  # a person must approve a call, or say whether one was made
    QUESTIONS = "questions"  # it would ask, but enough questions are open
    ENDPOINT = "endpoint"  # the model does not answer
    LIMIT = "limit"
    STALLED = "stalled"  # the last tasks brought nothing new
    CHECKING = "checking"  # a check of whether the objective is met
    PAUSED = "paused"
    ENDED = "ended"
    REPORT = "report"  # the objective has ended, and its report is not written yet
    NO_WORKER = "no_worker"
    BLOCKED = "blocked"  # each worker lacks something
    DELAYED = "delayed"  # until a certain time, after a failure or a release
    NEXT = "next"  # it is the next to be claimed


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a task is in its state, or why an objective makes progress or not.

    Attributes:
        word: a short form, shown in lists in the place of the status.
        says: the reason in one line.
        change: what a person can do about it; "" if nothing.
    """

    why: Why
    word: str
    says: str
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The state of an objective: what the store counts and records about it (`standing`), the
    registered workers, and the steps that wait for a person."""

    standing: Standing
    workers: Sequence[Worker] = ()
    asked: Sequence[Step] = ()

    @property
    def objective(self) -> Objective:
        return self.standing.objective

    @property
    def here(self) -> str:
        return f"--objective {self.objective.id}"


async def find_facts(store: TaskStore, objective_id: int) -> Facts:
    """Return the `Facts` of an objective: its state, the workers, and what waits for a person.
    Raises `NotFoundError`."""
    return Facts(
        standing=await store.standing(objective_id),
        workers=await store.workers(),
        asked=await store.inbox(objective_id),
    )


async def explain_tasks(store: TaskStore, facts: Facts, tasks: Sequence[Task]) -> list[Reason]:
    """Return for each of these tasks, in order, why it does not run, or that it does."""
    after = {
        task_id for task in tasks if task.status is TaskStatus.QUEUED for task_id in task.after
    }
    earlier = await store.tasks(facts.objective.id, task_ids=sorted(after)) if after else ()
    found = {task.id: task.status for task in earlier}
    return [explain_task(task, facts, status_by_id=found) for task in tasks]


# -- a task
# --------------------------------------------------------------------------------------------------


def explain_task(task: Task, facts: Facts, *, status_by_id: Mapping[int, TaskStatus]) -> Reason:
    """Return why the task does not run, or that it does. `status_by_id`: the statuses of the tasks
    that this task comes after."""
    match task.status:
        case TaskStatus.QUEUED:
            return _explain_queued(task, facts, status_by_id)
        case TaskStatus.RUNNING:
            return _explain_running(task, facts)
        case TaskStatus.RECORDED:
            says = "its result is recorded; the next tasks are being planned"
            return Reason(Why.PLANNING, "recorded", says)
        case TaskStatus.WAITING:
            return _explain_waiting(task, facts)
        case TaskStatus.DEAD:
            return _explain_dead(task, facts)
        case TaskStatus.CANCELLED:
            change = f'babyagi tasks add {facts.here} "…" adds it again'
            return Reason(Why.CANCELLED, "cancelled", "it was cancelled", change)
        case TaskStatus.DONE:
            finished = f"; it finished{_at(task.finished_at)}" if task.finished_at else ""
            return Reason(Why.DONE, "done", f"it is done{finished}")


def _explain_running(task: Task, facts: Facts) -> Reason:
    for worker in _living(facts):
        if any(task.id in joined.task_ids for joined in _joined(worker, facts)):
            says = f"it is running: worker {one_line(worker.name)} claimed it{_at(task.started_at)}"
            return Reason(Why.RUNNING, "running", says)
    says = f"it was claimed{_at(task.started_at)}, and its worker is gone"
    change = "another worker takes it over when the lost worker's lease ends"
    if not _living(facts):
        change = f"babyagi resume {facts.here}, or babyagi worker"
    return Reason(Why.LOST, "worker lost", says, change)


def _explain_waiting(task: Task, facts: Facts) -> Reason:
    step = next((step for step in facts.asked if step.owner == f"task:{task.id}"), None)
    if step is None or step.kind == inbox.QUESTION:
        number = step.id if step is not None else "N"
        asked = f": {_short(inbox.describe(step))}" if step is not None else ""
        return Reason(
            Why.ANSWER,
            "waits for your answer",
            f"it waits for your answer{asked}",
            f'babyagi inbox answer {number} "…"  (babyagi inbox shows the question)',
        )
    return Reason(
        Why.DECISION,
        "needs a decision",
        f"it needs a decision: {_short(inbox.describe(step))}",
        f"babyagi inbox {step.id} shows the call and what you can answer",
    )


def _explain_dead(task: Task, facts: Facts) -> Reason:
    why = task.error or (task.lack.what if task.lack is not None else "")
    times = say_count(task.failures, "time")
    how = f"it failed {times} and is dead" if task.failures else "it was given up"
    says = f"{how}: {_short(why)}" if why else how
    return Reason(Why.DEAD, "dead", says, f"babyagi tasks retry {task.id} {facts.here}")


def _explain_queued(task: Task, facts: Facts, status_by_id: Mapping[int, TaskStatus]) -> Reason:
    if facts.objective.status is not ObjectiveStatus.ACTIVE:
        return _explain_stopped(facts)
    first = [id_ for id_ in task.after if status_by_id.get(id_, TaskStatus.DONE) not in SETTLED]
    if first:
        return _explain_after(task, first, facts)
    if task.not_before is not None and task.not_before - facts.standing.at > _FAR:
        return Reason(
            Why.QUESTIONS,
            "waits to ask you",
            "it has a question for you, and enough questions are open already",
            "answer one of them: babyagi inbox",
        )
    kept = _find_kept(facts, is_begun=task.started_at is not None)
    if kept is not None:
        return kept
    if task.not_before is not None and task.not_before > facts.standing.at:
        return _explain_delayed(task)
    return _explain_next(facts)


def _explain_after(task: Task, first: Sequence[int], facts: Facts) -> Reason:
    named = name_tasks(first)
    change = f"babyagi show {first[0]} {facts.here} says why that task is not done"
    if task.lack is None:
        return Reason(Why.AFTER, f"after {_numbers(first)}", f"it waits for {named}", change)
    return Reason(
        Why.LACK,
        f"lacks {_numbers(first)}",
        f"it waits for {named}, which should bring what it lacked: {_short(task.lack.what)}",
        change,
    )


def _explain_delayed(task: Task) -> Reason:
    moment = f"{task.not_before.astimezone():%H:%M:%S}" if task.not_before is not None else ""
    failed = f"try {task.try_no - 1} failed: {_short(task.error)}; " if task.error else ""
    says = f"{failed}it is tried again" if failed else "it starts"
    says = f"{says} at {moment} at the earliest"
    return Reason(Why.DELAYED, f"not before {moment}", says, "nothing to do but wait")


def _explain_next(facts: Facts) -> Reason:
    n_running = facts.standing.counts.get(TaskStatus.RUNNING, 0)
    busy = f"{n_running or 'no'} {'tasks are' if n_running > 1 else 'task is'} running"
    change = (
        "wait until a running task ends; a higher --concurrency or more workers help; babyagi "
        f"tasks move … {facts.here} puts it first"
    )
    return Reason(Why.NEXT, "queued", f"it could start; {busy}", change)


# -- an objective
# --------------------------------------------------------------------------------------------------


def explain_objective(facts: Facts, *, running: Sequence[Task] = ()) -> Reason:
    """Return why the objective makes no progress, or what is being done.

    Args:
        running: its running tasks.
    """
    if facts.objective.status is not ObjectiveStatus.ACTIVE:
        return _explain_stopped(facts)
    counts = facts.standing.counts
    kept = _find_kept(facts, is_begun=False)
    if kept is not None and kept.why in (Why.NO_WORKER, Why.BLOCKED, Why.ENDPOINT):
        return kept
    if running:
        says = f"it is working on {name_tasks([task.id for task in running])}"
        return Reason(Why.RUNNING, "running", says)
    duties = [
        duty.value
        for worker in _living(facts)
        for joined in _joined(worker, facts)
        for duty in joined.duties
        if duty.value != "index"
    ]
    duties += ["plan"] if counts.get(TaskStatus.RECORDED) else []  # which is owed
    if duties:
        why = Why.CHECKING if duties[0] == "check" else Why.PLANNING
        return Reason(why, duties[0], _DUTY_WORDS[duties[0]])
    if kept is not None:
        return kept
    if counts.get(TaskStatus.WAITING) and not counts.get(TaskStatus.QUEUED):
        n = counts[TaskStatus.WAITING]
        waits = f"{say_count(n, 'task')} {'waits' if n == 1 else 'wait'} for your answer"
        says = f"{waits}, and nothing else can run"
        return Reason(Why.ANSWER, "waits for your answer", says, "babyagi inbox")
    n_queued = counts.get(TaskStatus.QUEUED, 0)
    says = (
        f"{n_queued} {'task is' if n_queued == 1 else 'tasks are'} queued, but none is running"
        if n_queued
        else "all tasks are done; the objective is checked next"
    )
    change = f"babyagi show TASK {facts.here} says why one does not run" if n_queued else ""
    return Reason(Why.NEXT if n_queued else Why.CHECKING, "active", says, change)


def _explain_stopped(facts: Facts) -> Reason:
    """Return why an objective that is paused or has ended makes no progress."""
    objective, here = facts.objective, facts.here
    detail = f" ({_short(objective.stop_detail)})" if objective.stop_detail else ""
    if objective.stop_reason is None:
        says = f"the objective is paused{detail}"
        return Reason(Why.PAUSED, "paused", says, f"babyagi resume {here}")
    has_dead = bool(facts.standing.counts.get(TaskStatus.DEAD))
    goes_on = say_going_on(objective, has_dead=has_dead, has_report=objective.has_report)
    reason = objective.stop_reason
    is_limit = reason.value.startswith("limit:")
    ended = Why.ENDED if objective.has_report else Why.REPORT
    return Reason(
        Why.LIMIT if is_limit else ended,
        reason.value if is_limit else "objective ended",
        f"the objective has ended ({reason.value}): {say_stop(objective)}{detail}",
        goes_on or _say_further(objective),
    )


def _say_further(objective: Objective) -> str:
    """Return what would make an objective active again after its report was written."""
    if objective.stop_reason is StopReason.CANCELLED:
        return f'babyagi tasks add --objective {objective.id} "…" makes it active again'
    return f'babyagi run --continue {objective.id} "…" asks a further question'


def _find_kept(facts: Facts, *, is_begun: bool) -> Reason | None:
    """Return the reason, in words for a person, why claimable tasks of an active objective do not
    run; None if nothing prevents it. `is_begun`: the tasks were started before, so the limit of
    tasks does not stop them."""
    return (
        _find_limit(facts, is_begun=is_begun)
        or _find_workers(facts)
        or _find_outage(facts)
        or _find_stall(facts)
    )


def _find_limit(facts: Facts, *, is_begun: bool) -> Reason | None:
    name = find_used_up(facts.objective)
    if not name or (name == "tasks" and is_begun):
        return None
    lost = "cannot be guaranteed any more: an answer cost more than was reserved"
    says = f"the limit of {name} {lost if facts.objective.overspent == name else 'is reached'}"
    change = f"babyagi extend {facts.here} --max-{name} …"
    return Reason(Why.LIMIT, f"limit of {name}", says, change)


def _find_stall(facts: Facts) -> Reason | None:
    standing = facts.standing
    is_moving = may_start(
        n_tasks_without_progress=standing.n_tasks_without_progress,
        n_tries_without_answer=standing.n_tries_without_answer,
    )
    if facts.objective.is_claimed_met:
        reason = (
            "an agent has said that the objective is met"
            if is_moving
            else "the last tasks brought nothing new"
        )
        says = f"{reason}; the objective is checked before another task starts"
        return Reason(Why.CHECKING, "being checked", says)
    if is_moving:
        return None
    return Reason(
        Why.STALLED,
        "stalled",
        "the last tasks made no progress, so no further task starts",
        f'babyagi tasks add {facts.here} "…", or babyagi extend {facts.here} --max-tasks …',
    )


def _find_workers(facts: Facts) -> Reason | None:
    living = _living(facts)
    if not living:
        change = f"babyagi resume {facts.here}, or babyagi worker"
        says = "no worker is running on the objective"
        return Reason(Why.NO_WORKER, "no worker", says, change)
    blocked = [
        f"{one_line(worker.name)}: {_short(joined.blocked_reason)}"
        for worker in living
        for joined in _joined(worker, facts)
        if joined.is_blocked
    ]
    if len(blocked) < len(living):
        return None
    return Reason(
        Why.BLOCKED,
        "workers blocked",
        f"no worker can work on the objective; {'; '.join(blocked[:MAX_NAMED])}",
        "babyagi doctor shows what is missing; start a worker that has it",
    )


def _find_outage(facts: Facts) -> Reason | None:
    outage = facts.standing.outage
    if outage is None:
        return None
    until = outage.at + timedelta(seconds=float(outage.data.get("retry_in_s", 0)))
    is_due = until <= facts.standing.at
    tried = "it is being tried again" if is_due else f"next try at {until.astimezone():%H:%M:%S}"
    return Reason(
        Why.ENDPOINT,
        "endpoint down",
        f"the endpoint of the model is down: {describe_outage(outage.data)}; {tried}",
        _short(str(outage.data.get("fix") or "babyagi doctor checks it now"))
        + "; it is retried until it answers",
    )


def describe_outage(data: Mapping[str, Any]) -> str:
    """Return what the event of an outage (`data`) says: the reason, and the evidence in brackets,
    such as the server's words."""
    reason = _short(str(data.get("reason", "the model does not answer")))
    why = _short(str(data.get("why", "")))
    return f"{reason} ({why})" if why else reason


# -- how an objective ended, and the command to type next
# --------------------------------------------------------------------------------------------------

REHEARSED = (
    "nothing is left to do; the check was rehearsed as well and only compared words, so read "
    "whether this answers the question"
)
NOT_REHEARSED = (
    "the rehearsal cannot answer this: it understands nothing, and only quotes lines that share "
    "words with a question"
)
UNCHECKED = (
    "nothing is left to do, and no check could say which parts of the objective are answered"
)
# sets another model for planning and checks, in the environment of the command that follows
USE_OTHER_CHECKER = "BABYAGI_ROLE_MODELS=creation=MODEL"


def say_stop(objective: Objective) -> str:
    """Return why the objective ended, after "it stopped:", and no more than was checked."""
    reason = objective.stop_reason or StopReason.FAILED
    is_rehearsal = _is_rehearsal(objective)
    if is_rehearsal and reason in (StopReason.FINISHED, StopReason.OBJECTIVE_MET):
        return REHEARSED
    if is_rehearsal and reason is StopReason.UNMET:
        return NOT_REHEARSED
    is_unchecked = reason is StopReason.UNMET and not objective.checks.missing
    return UNCHECKED if is_unchecked else reason.words


def say_going_on(objective: Objective, *, has_dead: bool, has_report: bool, mark: str = "") -> str:
    """Return the commands that a person types to continue the objective; '' if nothing is left to
    continue.

    Args:
        has_dead: one of its tasks was given up.
        has_report: its report is written, or is being written.
        mark: stands before and after each command, such as a backtick in Markdown.
    """
    here, reason = f"--objective {objective.id}", objective.stop_reason
    resume = f"{mark}babyagi resume {here}{mark}"
    if objective.status is not ObjectiveStatus.ENDED:
        return resume
    if reason and reason.startswith("limit:"):
        raised = " ".join(raise_limit(objective.spec.limits, reason.removeprefix("limit:")))
        return f"{mark}babyagi extend {here} {raised}{mark}, then {resume}"
    if reason is StopReason.WAITING:
        return f"{mark}babyagi inbox{mark}, answer what it shows, then {resume}"
    if not has_report:
        return f"{resume}  (its report is still to be written)"
    if reason is StopReason.UNMET:
        return _say_after_unmet(objective, mark)
    if reason not in (StopReason.STALLED, StopReason.FAILED):
        return ""
    if has_dead:
        retry = f"{mark}babyagi tasks retry TASK {here}{mark}"
        return f"{retry} with the number of a dead task (babyagi tasks), then {resume}"
    return f"{mark}{_extend(objective)}{mark}, then {resume}"


def _say_after_unmet(objective: Objective, mark: str) -> str:
    """Return what helps where the objective is not met, or no check could say that it is."""
    resume = f"babyagi resume --objective {objective.id}"
    if _is_rehearsal(objective):
        asked = quoted([objective.spec.text, *objective.spec.further][-1])
        command = f"{mark}LLM_MODEL=MODEL babyagi run {asked}{mark}"
        return f"{command}, with a MODEL of yours, and {mark}--files{mark} as before"
    if objective.checks.missing:
        add = f"babyagi tasks add --objective {objective.id}"
        return f'{mark}{add} "what would answer what is missing"{mark}, then {mark}{resume}{mark}'
    checked = f"{mark}{USE_OTHER_CHECKER} {resume} --use-my-model{mark}"
    how = "with a MODEL that replies in JSON when it is asked to"
    return f"{mark}{_extend(objective)}{mark}, then {checked}, {how}"


def _extend(objective: Objective) -> str:
    """Return the command that lets the objective go on, with its limit of tasks raised to what is
    accepted if it is used up."""
    most = objective.spec.limits.max_tasks
    usable = max(most, objective.n_begun + 1) if most else 0
    return f"babyagi extend --objective {objective.id} --max-tasks {usable}"


def _is_rehearsal(objective: Objective) -> bool:
    return objective.spec.model_by_role[Role.CREATION] == "rehearsal"


def raise_limit(limits: Limits, name: str) -> tuple[str, str]:
    """Return the option that sets the limit of this name (`tasks`, `cost`, …), and as its value
    twice the present limit."""
    value = {
        "tasks": f"{2 * limits.max_tasks}",
        "calls": f"{2 * limits.max_calls}",
        "tokens": f"{2 * limits.max_tokens}",
        "cost": f"{2 * limits.max_cost_usd:g}",
        "time": f"{int(2 * limits.max_time_s)}s",
    }[name]
    return f"--max-{name}", value


# -- words
# --------------------------------------------------------------------------------------------------


def _living(facts: Facts) -> list[Worker]:
    """Return the workers with a live lease that joined the objective, including blocked ones."""
    return [
        worker for worker in facts.workers if worker.lease_left_s >= 0 and _joined(worker, facts)
    ]


def _joined(worker: Worker, facts: Facts) -> list[Joined]:
    return [one for one in worker.joined if one.objective_id == facts.objective.id]


def name_tasks(ids: Sequence[int]) -> str:
    """Return the tasks by their numbers, such as `task 4` or `tasks 1, 7`."""
    return f"{'task' if len(ids) == 1 else 'tasks'} {_numbers(ids)}"


def _numbers(ids: Sequence[int]) -> str:
    more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
    return ", ".join(map(str, ids[:MAX_NAMED])) + more


def _at(moment: datetime | None) -> str:
    return f" at {moment.astimezone():%H:%M:%S}" if moment is not None else ""


def _short(text: str) -> str:
    return shorten(one_line(text), MAX_SAID_CHARS)
