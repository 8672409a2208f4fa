"""A task, or a duty of the objective, with all that was asked, said and called for it; and why a
task does not run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from babyagi import events
from babyagi.cli.json_shapes import (
    VERSION,
    Json,
    given_results,
    pick,
    show_shape,
    step_shape,
    usage_shape,
    why_shape,
)
from babyagi.cli.render import (
    render_cost,
    render_duration,
    render_moment,
    render_task_words,
    render_tokens,
)
from babyagi.cli.session import NOTHING, find_secrets, load, pick_objective, with_store
from babyagi.cli.text import Line, Style, echo_lines, print_json, safe, safe_line, wrap
from babyagi.cli.text import terminal_width as find_width
from babyagi.errors import NotFoundError, SettingsError
from babyagi.tasks import Duty, Event, Objective, Result, Step, Task, TaskStatus, Usage
from babyagi.taskstore.port import TaskStore
from babyagi.transcript import Exchange, read_exchanges
from babyagi.why import Reason, explain_objective, explain_task, explain_tasks, find_facts

DUTIES = (Duty.PLAN, Duty.ORDER, Duty.CHECK, Duty.REPORT)
FOLDED_ROWS = 4  # of a text, where it is not shown whole
MAX_FULL_CHARS = 1_000_000
N_TIMES = 5  # that a duty was done, shown without --full
MAX_EVENTS = 10_000  # of a task, looked through for calls without an outcome
_LABEL_WIDTH = 9
_MARGIN = " " * 6

_REASONS = {
    "after": "it comes after that task",
    "parent": "it came of that task",
    "near": "it bears on this task",
    "shared": "it bears on this task",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is shown: a task, or where that is None a duty.

    Attributes:
        times: the steps of each owner, in their order. n_times: how many owners there are.
            n_steps_before: of those that are left out.
        abandoned: events of calls that gave no outcome.
    """

    objective: Objective
    duty: Duty | None = None
    task: Task | None = None
    result: Result | None = None
    reason: Reason | None = None
    times: Mapping[str, Sequence[Step]]
    n_times: int = 1
    n_steps_before: int = 0
    abandoned: Sequence[Event] = ()

    @property
    def steps(self) -> list[Step]:
        return [step for steps in self.times.values() for step in steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How much is shown: whole texts or their beginnings, of one step or of all."""

    width: int
    is_full: bool = False
    only: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.is_full or self.only is not None


def show_calls(what: str, *, selector: str, step: int | None, is_full: bool, as_json: bool) -> None:
    """Print a task, or a duty."""
    duty = Duty(what) if what in [duty.value for duty in DUTIES] else None
    task_id = 0 if duty else _parse_task(what)
    settings = load(needs=NOTHING).settings
    secrets = find_secrets(settings)

    async def fetch(store: TaskStore) -> Shown:
        picked = await pick_objective(store, selector)
        if duty is not None:
            n_times = 0 if is_full or as_json else N_TIMES
            return await _fetch_duty(store, picked, duty, n_times=n_times, only=step)
        return await fetch_task(store, picked, task_id)

    shown = with_store(fetch, settings=settings)
    if as_json:
        print_json(_shape(shown, secrets, only=step))
    else:
        look = Look(width=find_width(), is_full=is_full, only=step)
        echo_lines(render_shown(shown, look, secrets=secrets))


def _parse_task(what: str) -> int:
    if not what.isdecimal() or len(what) > 18:
        raise SettingsError(
            f"there is no task {what!r}",
            why="a task is named by its number; plan, order, check and report can be shown, too",
            fix="babyagi tasks shows the numbers",
            guide="looking",
        )
    return int(what)


# -- from the store
# --------------------------------------------------------------------------------------------------


async def fetch_task(store: TaskStore, objective: Objective, task_id: int) -> Shown:
    """A task with all that was done for it."""
    task = await store.task(objective.id, task_id)
    owner = f"task:{task_id}"
    found = await store.results(objective.id, task_ids=[task_id])
    happened = await store.history(objective.id, task_id=task_id, limit=MAX_EVENTS)
    (reason,) = await explain_tasks(store, await find_facts(store, objective.id), [task])
    return Shown(
        objective=objective,
        task=task,
        result=found[0] if found else None,
        reason=reason,
        times={owner: await store.steps(objective.id, owner=owner)},
        abandoned=[event for event in happened if event.kind == events.STEP_ABANDONED],
    )


async def _fetch_duty(
    store: TaskStore, objective: Objective, duty: Duty, *, n_times: int, only: int | None
) -> Shown:
    n_by_owner = await store.duty_owners(objective.id, duty=duty)
    owners = list(n_by_owner)
    chosen = owners[-n_times:] if n_times else owners
    if only is not None:
        ends = list(accumulate(n_by_owner.values()))
        chosen = owners[bisect_left(ends, only) :][:1]
    n_before = owners.index(chosen[0]) if chosen else len(owners)
    happened = await store.events_of(objective.id, kinds=[events.STEP_ABANDONED], limit=MAX_EVENTS)
    return Shown(
        objective=objective,
        duty=duty,
        times={owner: await store.steps(objective.id, owner=owner) for owner in chosen},
        n_times=len(owners),
        n_steps_before=sum(n_by_owner[owner] for owner in owners[:n_before]),
        abandoned=[event for event in happened if event.data.get("owner") in chosen],
    )


# -- JSON
# --------------------------------------------------------------------------------------------------


def _shape(shown: Shown, secrets: Sequence[str], *, only: int | None) -> Json:
    exchanges = list(_number(shown, secrets, only))
    steps = [_exchange_shape(exchange, shown) for exchange in exchanges]
    abandoned = [_abandoned_shape(event) for event in shown.abandoned]
    if shown.task is None:
        duty = shown.duty.value if shown.duty is not None else ""
        return {"v": VERSION, "duty": duty, "steps": steps, "without_outcome": abandoned}
    shape = show_shape(shown.task, result=shown.result, steps=shown.steps)
    why = why_shape(shown.reason) if shown.reason is not None else None
    return {**shape, "why": why, "steps": steps, "without_outcome": abandoned}


def _exchange_shape(exchange: Exchange, shown: Shown) -> Json:
    step = exchange.step
    return {
        **step_shape(step),
        "usage": usage_shape(step.usage, has_price=shown.objective.spec.has_price),
        "n": exchange.n,
        "owner": step.owner,
        "title": exchange.title,
        "took_s": exchange.took_s,
        "parts": [pick(part, "label text is_said_before") for part in exchange.parts],
        "missing": exchange.missing,
    }


def _abandoned_shape(event: Event) -> Json:
    return {"at": event.at.isoformat(), **dict(event.data)}


# -- lines
# --------------------------------------------------------------------------------------------------


def render_shown(shown: Shown, look: Look, *, secrets: Sequence[str] = ()) -> Iterator[Line]:
    """The head and the steps, or one step alone.

    Args:
        secrets: that no text may show.
    """
    exchanges = list(_number(shown, secrets, look.only))
    if look.only is None:
        yield from _render_head(shown, look)
    for exchange in exchanges:
        yield Line("")
        yield from render_exchange(exchange, shown.objective, look)
    if look.only is None:
        yield from _render_abandoned(shown)
        yield from _render_more(shown, exchanges, look)


def _number(shown: Shown, secrets: Sequence[str], only: int | None) -> Iterator[Exchange]:
    """The steps of all owners, numbered through."""
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


def _render_head(shown: Shown, look: Look) -> Iterator[Line]:
    if shown.task is not None:
        yield from _render_task(shown, shown.task, look)
        yield from _render_given(shown.steps)
        return
    duty = shown.duty.value if shown.duty is not None else ""
    n = shown.n_times
    times = "made once" if n == 1 else f"made {n} times" if n else "not made yet"
    yield Line(f"Objective {shown.objective.id}, {duty}: {times}", Style.BOLD)
    if n:
        usage = sum((step.usage for step in shown.steps), Usage())
        what = "Cost:     " if len(shown.times) == n else "Cost of these: "
        yield Line(f"{what}{_cost(usage, shown.objective)}")
    if len(shown.times) < n:
        yield Line(f"          the last {len(shown.times)} are shown; --full shows all", Style.DIM)


def _render_task(shown: Shown, task: Task, look: Look) -> Iterator[Line]:
    yield Line(f"Task {task.id}: {safe_line(task.name)}", Style.BOLD)
    yield Line(f"Status:   {render_task_words(task)}")
    if shown.reason is not None and shown.reason.word != task.status.value:
        yield from _field("Why:", shown.reason.says, look)
        if shown.reason.change:
            yield from _field("", f"try: {shown.reason.change}", look)
    if task.started_at is not None:
        yield Line(f"Started:  {_render_times(task)}")
    yield Line(f"Cost:     {_cost(task.usage, shown.objective)}")
    if task.after:
        yield Line(f"After:    tasks {', '.join(str(task_id) for task_id in task.after)}")
    if task.parent_id is not None:
        yield Line(f"From:     the result of task {task.parent_id}")
    yield from _field("Origins:", ", ".join(task.origins), look)
    yield from _text("Error:", task.error, Style.RED)
    if task.lack is not None and task.lack.what != task.error:
        yield from _text("Lacked:", task.lack.what)
    if shown.result is not None:
        yield Line("")
        yield from _text("Result:", shown.result.text)
        yield from _text("It does not answer:", shown.result.lack)


def _field(head: str, text: str, look: Look) -> Iterator[Line]:
    for n, row in enumerate(wrap(safe_line(text), max(30, look.width - 10))):
        yield Line(f"{head if n == 0 else '':<10}{row}")


def _text(head: str, text: str, style: Style = Style.BOLD) -> Iterator[Line]:
    if text:
        yield Line(head, style)
        yield Line(safe(text, keep_newlines=True))


def _render_times(task: Task) -> str:
    started = render_moment(task.started_at)
    if task.finished_at is None or task.started_at is None:
        return started
    took_s = (task.finished_at - task.started_at).total_seconds()
    return f"{started}, done at {render_moment(task.finished_at)} ({render_duration(took_s)})"


def _render_given(steps: Sequence[Step]) -> Iterator[Line]:
    """Which earlier results each try was given, and why."""
    for n, given in enumerate(given_results(steps)):
        if n == 0:
            yield Line("")
            yield Line("Given earlier results:", Style.BOLD)
        score = f"score {given.score:.2f}, " if given.score is not None else ""
        reason = _REASONS.get(given.reason, safe_line(given.reason))
        whose = f"objective {given.objective_id}, " if given.objective_id is not None else ""
        yield Line(f"  try {safe_line(given.try_no)}: {whose}task {given.task_id}, {score}{reason}")


def render_exchange(exchange: Exchange, objective: Objective, look: Look) -> Iterator[Line]:
    """One step: a head, and its texts with what they are before them."""
    step = exchange.step
    words = [
        f"{exchange.n:>4}  {step.created_at.astimezone():%H:%M:%S}  {safe_line(exchange.title)}"
    ]
    if step.usage.calls:
        words.append(f"{render_tokens(step.usage)} tokens")
        words.append(render_cost(step.usage, objective))
    if exchange.took_s is not None:
        words.append(f"{exchange.took_s:.1f} s")
    words.append(safe_line(step.key))
    if step.state.value != "done":
        words.append(step.state.value)
    if step.n_unconfirmed:
        n = step.n_unconfirmed
        words.append(f"{n} {'call' if n == 1 else 'calls'} cut off, counted as paid")
    yield Line(" · ".join(words), Style.BOLD)
    if exchange.missing:
        yield Line(f"{_MARGIN}({exchange.missing})", Style.DIM)
    yield from _render_parts(exchange, look)


def _render_parts(exchange: Exchange, look: Look) -> Iterator[Line]:
    n_same = sum(part.is_said_before for part in exchange.parts)
    if n_same and not look.is_whole:
        yield Line(f"{_MARGIN}… {n_same} {_texts(n_same)} as in the step before", Style.DIM)
    for part in exchange.parts:
        if part.is_said_before and not look.is_whole:
            continue
        if part.label == "kept" and not look.is_whole:
            continue  # what it says stands in the head
        yield from _render_part(part.label, part.text, exchange.n, look)


def _texts(n: int) -> str:
    return "message" if n == 1 else "messages"


def _render_part(label: str, text: str, n: int, look: Look) -> Iterator[Line]:
    room = max(30, look.width - len(_MARGIN) - _LABEL_WIDTH - 3)
    n_chars = len(text)
    bound = MAX_FULL_CHARS if look.is_whole else room * (FOLDED_ROWS + 1)
    rows = list(wrap(text[:bound].strip("\n"), room))
    shown = rows if look.is_whole else rows[:FOLDED_ROWS]
    for row in shown if look.is_whole else filter(str.strip, shown):
        yield Line(f"{_MARGIN}{label:<{_LABEL_WIDTH}} | {row}".rstrip())
        label = ""
    n_left = n_chars - sum(len(row) for row in shown)
    if len(shown) < len(rows) or bound < n_chars:
        note = f"… about {n_left:,} of {n_chars:,} characters more: --step {n} shows all"
        yield Line(f"{_MARGIN}{'':<{_LABEL_WIDTH}} | {note}", Style.DIM)


def _render_abandoned(shown: Shown) -> Iterator[Line]:
    for n, event in enumerate(shown.abandoned):
        if n == 0:
            yield Line("")
            yield Line("Calls that gave no outcome:", Style.BOLD)
        usage = _usage_of(event.data)
        paid = f"counted: {_cost(usage, shown.objective)}" if usage.calls else "nothing was counted"
        what = f"{event.data.get('kind', '')} {safe_line(str(event.data.get('model', '')))}"
        key = safe_line(str(event.data.get("key", "")))
        yield Line(f"      {event.at.astimezone():%H:%M:%S}  {what} · {key} · {paid}")


def _usage_of(data: Mapping[str, Any]) -> Usage:
    names = ("calls", "prompt_tokens", "completion_tokens", "cost_usd")
    return Usage(**{name: data.get(name, 0) for name in names})


def _render_more(shown: Shown, exchanges: Sequence[Exchange], look: Look) -> Iterator[Line]:
    if exchanges and not look.is_whole:
        name = shown.task.id if shown.task is not None else shown.duty
        yield Line("")
        yield Line(
            f"To read on: babyagi show {name} --objective {shown.objective.id} --step N, or --full",
            Style.DIM,
        )


def _cost(usage: Usage, objective: Objective) -> str:
    if not usage.calls:
        return "no call of a model"
    calls = f"{usage.calls} {'call' if usage.calls == 1 else 'calls'}"
    tokens = f"{usage.prompt_tokens:,} tokens in and {usage.completion_tokens:,} out"
    return f"{calls}, {tokens}, {render_cost(usage, objective)}"


# --------------------------------------------------------------------------------------------------
# Why a task does not run, and why an objective does not move.
# --------------------------------------------------------------------------------------------------


def show_why(task: str | None, *, selector: str, as_json: bool) -> None:
    """Print why a task does not run, or why an objective does not move."""

    async def fetch(store: TaskStore) -> tuple[Reason, str]:
        picked = await pick_objective(store, selector)
        if task is None:
            return await _why_objective(store, picked), f"Objective {picked.id}"
        return await _why_task(store, picked, _parse_task(task)), f"Task {task}"

    reason, name = with_store(fetch)
    if as_json:
        print_json({"v": VERSION, **why_shape(reason)})
        return
    width = find_width()
    echo_lines(Line(row) for row in wrap(safe_line(f"{name}: {reason.says}"), width))
    if reason.change:
        echo_lines(Line(row) for row in wrap(f"  {safe_line(reason.change)}", width))


async def _why_objective(store: TaskStore, objective: Objective) -> Reason:
    facts = await find_facts(store, objective.id)
    running = await store.tasks(objective.id, statuses=[TaskStatus.RUNNING])
    return explain_objective(facts, running=running)


async def _why_task(store: TaskStore, objective: Objective, task_id: int) -> Reason:
    task = await store.task(objective.id, task_id)
    statuses = await store.statuses(objective.id, task_ids=task.after)
    place = await store.place(task) if task.status is TaskStatus.QUEUED else 0
    facts = await find_facts(store, objective.id)
    return explain_task(task, facts, status_by_id=statuses, place=place)
