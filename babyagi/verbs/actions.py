"""What a person does with objectives and tasks: one function for each action, which the command
line and the API share.

Each function takes a store and returns data types, which `json_shapes.py` converts to JSON. Nothing
here prints or asks a person.
"""

from __future__ import annotations

import os
import socket
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from babyagi import events, inbox
from babyagi.errors import BabyagiError, NotFoundError, ObjectiveStoppedError, SettingsError
from babyagi.files.home import forget, home_id, new_worker_id, touched
from babyagi.reporting.sources import NO_SOURCES, Made, Sources, find_artifacts, trace_sources
from babyagi.reporting.transcript import Exchange, read_exchanges
from babyagi.reporting.why import (
    Facts,
    Reason,
    explain_objective,
    explain_tasks,
    find_facts,
)
from babyagi.tasks import (
    FOLDER_TOOLS,
    Duty,
    Event,
    Objective,
    ObjectiveStatus,
    Place,
    Proposal,
    Result,
    Step,
    StopReason,
    Task,
    TaskStatus,
    Worker,
)
from babyagi.taskstore.limits import find_used_up, require_unused

if TYPE_CHECKING:
    from pathlib import Path

    from babyagi.settings.fields import Settings
    from babyagi.taskstore.nouns import Standing
    from babyagi.taskstore.sql.store import TaskStore
    from babyagi.tools.base import Preview

REPORT_LEASE_S = 60.0  # the lease of `cancel` while it writes a report
PAGE = 1000  # tasks that are read at a time
OPEN_FIRST = tuple(map(TaskStatus, "running recorded waiting queued dead".split()))
MAX_EVENTS = 10_000  # the most events that are searched for calls without an outcome

# -- objectives
# --------------------------------------------------------------------------------------------------


async def find_objectives(
    store: TaskStore, words: Sequence[str] = (), *, is_ended: bool | None = None
) -> list[Objective]:
    """Return the objectives whose text or further questions contain all the words, oldest first.

    Args:
        words: upper and lower case are not distinguished.
        is_ended: whether the objectives have ended; None for all.
    """
    wanted = [word.casefold() for word in words]
    return [
        one
        for one in await store.objectives()
        if is_ended in (None, one.status is ObjectiveStatus.ENDED)
        and all(word in one.spec.asked.casefold() for word in wanted)
    ]


async def find_latest(store: TaskStore, home: Path | None) -> Objective | None:
    """Return the objective that `latest` means in every command, route and client: the one that
    was used or created last from this home folder and is still in the task store, else the newest;
    None if there is none.

    Args:
        home: the home folder; None if no home is used.
    """
    for uid, number in reversed(touched(home) if home is not None else []):
        with suppress(NotFoundError):
            found = await store.objective(number)
            if found.uid == uid:  # otherwise it belongs to another task store
                return found
    return next(iter(await store.objectives(limit=1)), None)


async def find_last_event_at(store: TaskStore, objective: Objective) -> datetime:
    """Return the time of the objective's last event; without one, when the objective was
    created."""
    told = await store.events(objective.id, from_end=True, limit=1)
    return told[0].at if told else objective.created_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """The state of an objective.

    Attributes:
        counts: how many of its tasks have each status.
        workers: all workers of the store.
        index_trouble: why its results cannot be written to the index; '' if they can.
        reason: why it makes progress or not.
    """

    objective: Objective
    counts: Mapping[TaskStatus, int]
    workers: Sequence[Worker]
    index_trouble: str
    reason: Reason


async def find_stand(store: TaskStore, objective: Objective) -> Stand:
    """Show the state of an objective."""
    from babyagi.index.indexer import find_trouble

    facts = await find_facts(store, objective.id)
    running = await store.tasks(objective.id, statuses=[TaskStatus.RUNNING])
    return Stand(
        objective=objective,
        counts=facts.standing.counts,
        workers=facts.workers,
        index_trouble=await find_trouble(store, objective.id),
        reason=explain_objective(facts, running=running),
    )


def serving(workers: Sequence[Worker], objective_id: int) -> list[Worker]:
    """Return the workers with a living lease that serve the objective and that nothing
    blocks, such as a missing key."""

    def serves(worker: Worker) -> bool:
        joined = [one for one in worker.joined if one.objective_id == objective_id]
        return worker.lease_left_s >= 0 and any(not one.is_blocked for one in joined)

    return [worker for worker in workers if serves(worker)]


async def pause(store: TaskStore, objective: Objective, is_repeated: bool = False) -> Standing:
    """Pause an objective: workers make no more calls for it."""
    if not is_repeated:
        _require_active(objective, "paused")
    await store.switch_objective(objective.id, to=ObjectiveStatus.PAUSED)
    return await store.standing(objective.id)


async def resume(store: TaskStore, objective: Objective) -> Standing:
    """Resume a paused objective: workers continue it.

    This process does not work on it.
    """
    await store.switch_objective(objective.id, to=ObjectiveStatus.ACTIVE)
    return await store.standing(objective.id)


async def cancel(store: TaskStore, objective: Objective, is_repeated: bool = False) -> Standing:
    """End an objective; its results are kept.

    If no worker serves it that could write its report, the report is written here, without a model.
    """
    if objective.has_report and not is_repeated:
        _require_active(objective, "cancelled")
    found = await store.end_objective(
        objective.id, reason=StopReason.CANCELLED, detail="by the command `cancel`"
    )
    if not found.has_report and not serving(await store.workers(), found.id):
        await _write_report(store, found.id)
    return await store.standing(objective.id)


def _require_active(objective: Objective, done: str) -> None:
    if objective.status is ObjectiveStatus.ENDED:
        raise ObjectiveStoppedError(
            f"objective {objective.id} has already ended ({objective.stop_reason}); "
            f"nothing was {done}",
            fix=f"babyagi status --objective {objective.id}",
            guide="objectives",
        )


async def _write_report(store: TaskStore, objective_id: int) -> None:
    from babyagi.app.backends import utc_now
    from babyagi.reporting.report import write_without_model

    writer = Worker(
        id=new_worker_id("cancel"),
        name="cancel",
        host=socket.gethostname(),
        pid=os.getpid(),
        lease_until=utc_now(),
    )
    await write_without_model(store, objective_id, writer=writer, lease_s=REPORT_LEASE_S)


async def extend(
    store: TaskStore,
    objective: Objective,
    limits: Mapping[str, Any],
    *,
    is_repeated: bool = False,
) -> Standing:
    """Change some limits of the objective, and keep the others.

    Args:
        limits: the new values, by the names of the fields of `Limits`.

    Raises:
        SettingsError: a new limit is not above what is used already.
    """
    if not is_repeated:
        require_unused(objective, limits)
    new = replace(objective.spec.limits, **limits)
    await store.extend_objective(objective.id, limits=new)
    return await store.standing(objective.id)


async def delete_whole(store: TaskStore, settings: Settings, objective: Objective) -> str:
    """Delete the objective, its vectors in the index, and what this home folder stores about it.
    Return the reason for which vectors may remain in the index; '' if none remain."""
    from babyagi.app.backends import drop_collection

    has_results = bool(await store.result_ids(objective.id))
    await store.delete_objective(objective.id)
    forget(settings.home, objective.uid)
    return await drop_collection(settings, objective) if has_results else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prunable:
    """An objective that may be deleted, the number of its results, and why it may be deleted."""

    objective: Objective
    n_results: int
    why: str


async def find_prunable(store: TaskStore, *, before: datetime) -> list[Prunable]:
    """Return the objectives that may be deleted: those that ended before the time `before`, and
    those that have ended or were set aside without an answer."""
    found = []
    for one in await store.objectives():
        is_over = one.is_set_aside or one.has_report
        if one.status is ObjectiveStatus.ACTIVE or not is_over:
            continue
        why, n_results = "", len(await store.result_ids(one.id))
        if n_results == 0:
            why = "it never got an answer"
        elif one.ended_at is not None and one.ended_at < before:
            why = f"it ended on {one.ended_at.astimezone():%Y-%m-%d}"
        if why:
            found.append(Prunable(objective=one, n_results=n_results, why=why))
    return found


# -- the list of tasks: reading it
# --------------------------------------------------------------------------------------------------


def count_tasks(facts: Facts, wanted: Sequence[TaskStatus]) -> int:
    """Return the number of tasks with the wanted statuses. No status means all statuses."""
    return sum(n for status, n in facts.standing.counts.items() if not wanted or status in wanted)


async def choose_pages(
    store: TaskStore, facts: Facts, wanted: Sequence[TaskStatus], limit: int
) -> AsyncIterator[list[Task]]:
    """Yield pages of the tasks with the wanted statuses, at most `limit` tasks in all. No status
    means all statuses, and a limit of 0 means no limit.

    The tasks are in list order. But if no status is given and there are more tasks than `limit`,
    the running, recorded, waiting, queued and dead tasks come first, in this order, and then the
    most recently finished ones.
    """
    objective_id = facts.objective.id
    if limit and not wanted and count_tasks(facts, wanted) > limit:
        left = limit
        for status in OPEN_FIRST:
            page = await store.tasks(objective_id, statuses=[status], limit=left)
            left -= len(page)
            yield page
            if not left:
                return
        yield await store.tasks(objective_id, last_finished=True, limit=left)
        return
    statuses, after = wanted or tuple(TaskStatus), None
    left = limit or count_tasks(facts, wanted) + PAGE
    while left > 0 and (
        page := await store.tasks(
            objective_id, statuses=statuses, after=after, limit=min(left, PAGE)
        )
    ):
        yield page
        left, after = left - len(page), page[-1]


# -- the list of tasks: changing it while workers work on it. Each change is one transaction of the
# task store, and takes effect with a worker's next claim or call.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A task after a person's change.

    Attributes:
        words: what happened to the task, to follow `task 7`: `is queued`.
        is_reopened: whether the change has made an ended objective active again.
        replaced_task_id: the task whose place it has taken; 0 if there is none.
    """

    task: Task
    words: str
    is_reopened: bool = False
    replaced_task_id: int = 0


async def add_task(
    store: TaskStore,
    objective: Objective,
    name: str,
    first: bool = False,
    after: tuple[int, ...] = (),
) -> Changed:
    """Add a task to the list of an objective.

    An objective that has ended becomes active again, unless it was cancelled.

    Raises:
        NotFoundError: a task in `after` does not exist.
        SettingsError: the name is empty.
        LimitReachedError: the objective has ended, and a limit lets no further task start.
        ObjectiveStoppedError: the objective was cancelled.
    """
    from babyagi.app.application import require_room

    for task_id in after:
        await store.task(objective.id, task_id)
    if objective.status is ObjectiveStatus.ENDED:
        require_room(objective)
    to = Place.FIRST if first else Place.LAST
    added = await store.add_tasks(objective.id, [Proposal(name=name, after=after)], to=to)
    if not added:
        raise SettingsError(
            "the name of the task is empty", fix='babyagi tasks add "what to do"', guide="tasks"
        )
    return _reopening(added[0], "is queued", objective)


async def move_task(
    store: TaskStore, objective: Objective, task_id: int, *, to: Place | int
) -> Changed:
    task = await store.move_task(objective.id, task_id, to=to)
    queued = await store.tasks(objective.id, statuses=(TaskStatus.QUEUED,))
    place = [one.id for one in queued].index(task.id) + 1
    return Changed(task=task, words=f"is now number {place} of {len(queued)} queued")


async def edit_task(store: TaskStore, objective: Objective, task_id: int, name: str) -> Changed:
    """Replace a queued task by another task.

    It is cancelled, and a new task with this name takes its place.
    """
    return Changed(
        task=await store.cancel_task(objective.id, task_id, replacement=name),
        words=f"takes the place of task {task_id}, which is cancelled",
        replaced_task_id=task_id,
    )


async def skip_task(store: TaskStore, objective: Objective, task_id: int) -> Changed:
    """Cancel a queued or waiting task."""
    return Changed(task=await store.cancel_task(objective.id, task_id), words="is cancelled")


async def retry_task(store: TaskStore, objective: Objective, task_id: int) -> Changed:
    """Try a task again that was given up (status dead).

    An objective that has ended becomes active again.
    """
    from babyagi.app.application import require_room

    if objective.status is ObjectiveStatus.ENDED and find_used_up(objective) != "tasks":
        # the limit of tasks does not matter, because this task was counted when it first began
        require_room(objective)
    task = await store.retry_task(objective.id, task_id)
    return _reopening(task, f"is queued for try {task.try_no}", objective)


def _reopening(task: Task, words: str, before: Objective) -> Changed:
    """Return the change of a task. If the objective had ended, the words also say that it is active
    again, and which command continues it.

    Args:
        before: the objective as it was before the change.
    """
    is_reopened = before.status is ObjectiveStatus.ENDED
    if is_reopened:
        words += f"; objective {before.id} is active again: babyagi resume --objective {before.id}"
    return Changed(task=task, words=words, is_reopened=is_reopened)


# -- a task, or a duty of the objective, with its calls
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A task with its steps; or, if `task` is None, a duty (work for the whole objective, such as
    planning) with its steps.

    Attributes:
        times: the steps by owner (`task:7`, `plan:2`), in order: one entry for a task, and one for
            each run of a duty.
        n_times: the number of all runs of the duty, including those that `times` leaves out.
        n_steps_before: the number of steps in the earlier runs that `times` leaves out.
        abandoned: the events about calls that gave no outcome.
    """

    objective: Objective
    duty: Duty | None = None
    task: Task | None = None
    result: Result | None = None
    sources: Sources = NO_SOURCES
    made: Sequence[Made] = ()
    reason: Reason | None = None
    times: Mapping[str, Sequence[Step]]
    n_times: int = 1
    n_steps_before: int = 0
    abandoned: Sequence[Event] = ()

    @property
    def steps(self) -> list[Step]:
        return [step for steps in self.times.values() for step in steps]


async def fetch_task(store: TaskStore, objective: Objective, task_id: int) -> Shown:
    """Return a task with all its steps (its recorded calls). Raises `NotFoundError`."""
    task = await store.task(objective.id, task_id)
    owner = f"task:{task_id}"
    found = await store.results(objective.id, task_ids=[task_id])
    happened = await store.events(objective.id, task_id=task_id, limit=MAX_EVENTS)
    (reason,) = await explain_tasks(store, await find_facts(store, objective.id), [task])
    return Shown(
        objective=objective,
        task=task,
        result=found[0] if found else None,
        sources=await trace_sources(store, found),
        made=await find_artifacts(store, found),
        reason=reason,
        times={owner: await store.steps(objective.id, owner=owner)},
        abandoned=[event for event in happened if event.kind == events.STEP_ABANDONED],
    )


async def fetch_duty(
    store: TaskStore, objective: Objective, duty: Duty, *, n_times: int = 0, only: int | None = None
) -> Shown:
    """Return a duty (work for the whole objective, such as planning) with its steps.

    Args:
        n_times: the number of the most recent runs to read; 0 means all.
        only: the number of a step. If given, only the run that contains this step is read.
    """
    times: dict[str, list[Step]] = {}
    for step in await store.steps(objective.id, duty=duty):
        times.setdefault(step.owner, []).append(step)
    owners = list(times)
    chosen = owners[-n_times:] if n_times else owners
    if only is not None:
        ends = list(accumulate(map(len, times.values())))
        chosen = owners[bisect_left(ends, only) :][:1]
    n_before = owners.index(chosen[0]) if chosen else len(owners)
    happened = await store.events(
        objective.id, kinds=[events.STEP_ABANDONED], from_end=True, limit=MAX_EVENTS
    )
    return Shown(
        objective=objective,
        duty=duty,
        times={owner: times[owner] for owner in chosen},
        n_times=len(owners),
        n_steps_before=sum(len(times[owner]) for owner in owners[:n_before]),
        abandoned=[event for event in happened if event.data.get("owner") in chosen],
    )


def number_exchanges(
    shown: Shown, secrets: Sequence[str], only: int | None = None
) -> Iterator[Exchange]:
    """Yield the exchange (the request and the answer) of each step in `shown`. Steps are numbered
    from 1, through all runs of a duty.

    Args:
        secrets: texts to hide in the exchanges.
        only: the number of a step. If given, only its exchange is yielded.

    Raises:
        NotFoundError: no step has the number `only`.
    """
    n = shown.n_steps_before
    for steps in shown.times.values():
        for exchange in read_exchanges(steps, secrets=secrets):
            n += 1
            if only in (None, n):
                yield replace(exchange, n=n)
    if only is not None and only > n:
        name = shown.task.id if shown.task is not None else shown.duty
        has = f"{n} {'step' if n == 1 else 'steps'}"
        raise NotFoundError(
            f"there is no step {only}: {f'task {name}' if shown.task else f'{name}'} has {has}",
            fix=f"babyagi show {name} --objective {shown.objective.id}",
            guide="looking",
        )


# -- requests to a person, and the answers
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An open step (a call or question that waits for a person), with what the person needs to
    decide.

    Attributes:
        model: the name of the model that asks; '' if unknown.
        origins: the origins of everything that the model had read before it asked.
        preview: what the call would change; None if there is no preview.
        trouble: why the preview could not be made; '' if it could, or there is none to make.
    """

    step: Step
    task: Task
    model: str = ""
    origins: tuple[str, ...] = ()
    preview: Preview | None = None
    trouble: str = ""


async def gather_request(store: TaskStore, step: Step, settings: Settings) -> Request:
    """Return an open step (a call or question that waits for a person), with what the person needs
    to decide."""
    task = await store.task(step.objective_id, inbox.asking_task(step))
    steps = await store.steps(step.objective_id, owner=step.owner)
    earlier = [one for one in steps if one.kind == "model" and one.id < step.id]
    models = [one.model for one in earlier if one.model]
    read = inbox.find_origins(step, task=task, steps=steps)
    preview, trouble = None, ""
    try:
        preview = await _preview(store, step, settings)
    except BabyagiError as error:
        trouble = f"What it would change cannot be shown here: {error.what}"
    return Request(
        step=step,
        task=task,
        model=models[-1] if models else "",
        origins=await _trace(store, step.objective_id, read),
        preview=preview,
        trouble=trouble,
    )


async def _trace(store: TaskStore, objective_id: int, origins: tuple[str, ...]) -> tuple[str, ...]:
    """Return the origins together with the origins of the results among them, and so on."""
    found, asked = dict.fromkeys(origins), set[int]()
    while True:
        named = [origin.removeprefix("result:") for origin in found]
        new = {int(id_) for id_ in named if id_.isdecimal() and len(id_) < 18} - asked
        if not new:
            return tuple(found)
        asked |= new
        for result in await store.results(objective_id, task_ids=sorted(new)):
            found |= dict.fromkeys(result.origins)


async def _preview(store: TaskStore, step: Step, settings: Settings) -> Preview | None:
    """Return what the call would change in the local folder, or how the tool has changed; None if
    there is nothing to preview.

    Raises:
        ToolError: the tool cannot make the preview.
        SettingsError: this machine does not have the folder.
    """
    from asyncio import to_thread

    from babyagi.app.toolbox import open_folder
    from babyagi.tools.base import Preview
    from babyagi.tools.catalog import CatalogContext, open_tools
    from babyagi.tools.files import compare

    name, arguments = inbox.read_request(step)
    if step.kind == inbox.CHANGED:
        lines = compare(arguments["before"], arguments["now"])
        if lines is None:
            return None
        note = "New lines have a +, removed ones a -."
        return Preview(state="", note=note, parameter="now", lines=lines)
    if step.kind != inbox.APPROVAL or name not in FOLDER_TOOLS:
        return None
    objective = await store.objective(step.objective_id)
    folder = open_folder(settings, objective)
    (tool,) = open_tools([name], CatalogContext(offload=to_thread, folder=folder))
    return await tool.preview(arguments) if tool.preview is not None else None


async def settle(
    store: TaskStore,
    step: Step,
    decision: inbox.Decision,
    text: str,
    *,
    home: Path,
    seen: Request | None = None,
) -> Step:
    """Record a person's decision about an open step (a call or question that waits for the person),
    and return the step.

    Args:
        text: the person's answer, or reason.
        home: the home folder in which the person decides; its key signs the decision.
        seen: the request with its preview, as the person saw it.

    Raises:
        SettingsError: a step of this kind does not take this decision.
        NotFoundError: the step no longer waits for a person.
    """
    preview = seen.preview if seen is not None else None
    state = preview.state if preview is not None else ""
    return await inbox.record(
        store, step, inbox.decide(step, decision, text), home=home, seen=state
    )


async def find_asking_elsewhere(store: TaskStore, step: Step, *, home: Path) -> list[Worker]:
    """Return the running workers of the step's objective if none of them uses this home folder and
    what they ask about may be settled in theirs alone."""
    if step.kind == inbox.QUESTION:
        return []
    asking = serving(await store.workers(), step.objective_id)
    return [] if home_id(home) in (worker.home for worker in asking) else asking
