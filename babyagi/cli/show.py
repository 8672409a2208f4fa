"""What `babyagi show` shows: a task, or the planning, ordering, checking or reporting of an
objective, with its prompts, replies and tool calls; why a task does not run; the results that are
nearest to a text; and the events of an objective."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import click

from babyagi import events
from babyagi.cli import ask, objectives, render
from babyagi.cli.options import Duration, Family, json_option, objective_option, wrong_usage
from babyagi.cli.session import NOTHING, is_over, load, with_objective, with_store
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    fit,
    give,
    is_live_terminal,
    print_json_line,
    safe,
    safe_line,
    terminal_width,
    warn,
    wrap,
    write_bytes,
)
from babyagi.cli.views import EventNames, describe_event, render_workers
from babyagi.errors import NotFoundError, SettingsError
from babyagi.inbox import describe
from babyagi.redaction import redact
from babyagi.reporting.artifacts import Made, find_artifacts
from babyagi.reporting.sources import say_fetched
from babyagi.reporting.transcript import (
    Exchange,
    describe_call,
    describe_step,
    first_line,
    read_exchanges,
    said_in,
)
from babyagi.reporting.why import Reason
from babyagi.settings.values import parse_duration_s
from babyagi.tasks import PNG, Duty, Event, Objective, Result, Step, StepState, Task, Usage
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import say_count, say_duration
from babyagi.verbs import actions, json_shapes
from babyagi.verbs.actions import Shown

FOLDED_ROWS = 4  # of a text that is not shown whole
MAX_FULL_CHARS = 1_000_000
MAX_SOURCES_SHOWN = 10
N_TIMES = 5  # how often a repeated duty (such as planning) is shown without --full
_LABEL_WIDTH = 9
_MARGIN = " " * 6

_REASONS = {
    "after": "the task depends on it",
    "parent": "that task proposed this one",
    "before": "an earlier try of this task was shown it",
    "near": "it is similar",
    "shared": "it is similar",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How much is shown, and how wide.

    Attributes:
        is_full: whether texts are shown whole, not only their beginnings.
        only: the number of the only step to show, with whole texts; None means all steps.
    """

    width: int
    is_full: bool = False
    only: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.is_full or self.only is not None


def show_calls(what: str, *, selector: str, step: int | None, is_full: bool, as_json: bool) -> None:
    """Print a task by its number, or what was done for the objective itself (`plan`, `order`,
    `check` or `report`), with prompts, replies and tool calls."""
    duty = Duty(what) if what in [duty.value for duty in actions.SHOWN_DUTIES] else None
    task_id = 0 if duty else _parse_task(what)
    settings = load(needs=NOTHING).settings
    secrets = settings.known_secrets

    async def fetch(store: TaskStore, picked: Objective) -> Shown:
        if duty is not None:
            n_times = 0 if is_full or as_json else N_TIMES
            return await actions.fetch_duty(store, picked, duty, n_times=n_times, only=step)
        return await actions.fetch_task(store, picked, task_id)

    shown = with_objective(selector, fetch, settings=settings)
    look = Look(width=terminal_width(), is_full=is_full, only=step)
    shape = json_shapes.shown_shape(shown, secrets, only=step)
    give(as_json, shape, render_shown(shown, look, secrets=secrets))


def show_artifact(what: str, name: str, *, selector: str) -> None:
    """Print the content of the file `name` of a task's result, and nothing else. A picture is
    written as binary data, but not to a terminal."""
    task_id = _parse_task(what)

    async def fetch(store: TaskStore, objective: Objective) -> list[Made]:
        return await find_artifacts(store, await store.results(objective.id, task_ids=[task_id]))

    made = with_objective(selector, fetch)
    found = [one.artifact for one in made if one.artifact.name == name]
    if not found:
        there = ", ".join(one.artifact.name for one in made) or "none"
        what = f"the result of task {task_id} has no file {name!r}; its files: {there}"
        raise NotFoundError(what, fix=f"babyagi show {task_id}", guide="looking")
    if found[0].media_type != PNG:
        echo(found[0].text.removesuffix("\n"))
    elif sys.stdout.isatty():
        raise SettingsError(
            f"{name} is a picture, which a terminal cannot show",
            fix=f"babyagi show {task_id} --artifact {name} > picture.png",
            guide="looking",
        )
    else:
        write_bytes(found[0].data)


def _parse_task(what: str) -> int:
    if not what.isdecimal() or len(what) > 18:
        raise SettingsError(
            f"there is no task {what!r}",
            why="a task is named by its number; besides tasks, babyagi show knows plan, order, "
            "check and report",
            fix="babyagi tasks shows the numbers",
            guide="looking",
        )
    return int(what)


# -- lines
# --------------------------------------------------------------------------------------------------


def render_shown(shown: Shown, look: Look, *, secrets: Sequence[str] = ()) -> Iterator[Line]:
    """Yield the lines about a task, or about work for the whole objective such as planning: a head
    and all steps, or only the step that `look` names.

    Args:
        secrets: texts that must not be shown.
    """
    exchanges = list(actions.number_exchanges(shown, secrets, look.only))
    if look.only is None:
        yield from _render_head(shown, look)
    for exchange in exchanges:
        yield Line("")
        yield from render_exchange(exchange, shown.objective, look)
    if look.only is None:
        yield from _render_abandoned(shown)
        yield from _render_more(shown, exchanges, look)


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
        note = f"the last {len(shown.times)} times are shown; --full shows all"
        yield Line(f"{'':<10}{note}", Style.DIM)


def _render_task(shown: Shown, task: Task, look: Look) -> Iterator[Line]:
    yield Line(f"Task {task.id}: {safe_line(task.name)}", Style.BOLD)
    yield Line(f"Status:   {render.render_task_words(task)}")
    if shown.reason is not None and shown.reason.word != task.status.value:
        yield from _field("Why:", shown.reason.says, look)
        if shown.reason.change:
            yield from _field("", f"try: {shown.reason.change}", look)
    if task.started_at is not None:
        yield Line(f"Started:  {_render_times(task)}")
    yield Line(f"Cost:     {_cost(task.usage, shown.objective)}")
    if task.after:
        noun = "task" if len(task.after) == 1 else "tasks"
        yield Line(f"After:    {noun} {', '.join(map(str, task.after))}")
    if task.parent_id is not None:
        yield Line(f"From:     proposed from the result of task {task.parent_id}")
    yield from _field("Origins:", ", ".join(task.origins), look)
    yield from _text("Error:", task.error, Style.RED)
    if task.lack is not None and task.lack.what != task.error:
        yield from _text("Lacked:", task.lack.what)
    if shown.result is not None:
        yield from _render_result(shown, shown.result, look)


def _render_result(shown: Shown, result: Result, look: Look) -> Iterator[Line]:
    yield Line("")
    yield from _text("Result:", result.text)
    yield from _text("It does not answer:", result.lack)
    yield from _render_sources(shown, look)
    if shown.made:
        yield Line("Files:", Style.BOLD)
        yield from render.render_artifacts(shown.made)


def _render_sources(shown: Shown, look: Look) -> Iterator[Line]:
    """Yield the rows that name the sources of the result, such as files and pages, but not earlier
    results."""
    named = shown.sources.named
    listed = named if look.is_whole else named[:MAX_SOURCES_SHOWN]
    if listed:
        yield Line("Sources:", Style.BOLD)
    for source in listed:
        page = source.page
        said = f": {page.title} ({say_fetched(page)})" if page is not None else ""
        for n, row in enumerate(wrap(safe_line(f"{source.name}{said}"), max(30, look.width - 11))):
            yield Line(f"  {source.kind.value if n == 0 else '':<8} {row}")
    if len(named) > len(listed):
        yield Line(f"  and {len(named) - len(listed)} more: --full shows all", Style.DIM)


def _field(head: str, text: str, look: Look) -> Iterator[Line]:
    for n, row in enumerate(wrap(safe_line(text), max(30, look.width - 10))):
        yield Line(f"{head if n == 0 else '':<10}{row}")


def _text(head: str, text: str, style: Style = Style.BOLD) -> Iterator[Line]:
    if text:
        yield Line(head, style)
        yield Line(safe(text, keep_newlines=True))


def _render_times(task: Task) -> str:
    started = render.render_moment(task.started_at)
    if task.finished_at is None or task.started_at is None:
        return started
    took_s = (task.finished_at - task.started_at).total_seconds()
    done = render.render_moment(task.finished_at)
    day, _, time = done.partition(" ")
    done = time if started.startswith(day) else done
    return f"{started}, done at {done} ({say_duration(took_s)})"


def _render_given(steps: Sequence[Step]) -> Iterator[Line]:
    """Yield a line for each earlier result that a try of the task was given, with the reason."""
    for n, given in enumerate(json_shapes.given_results(steps)):
        if n == 0:
            yield Line("")
            yield Line("Earlier results that the task was given:", Style.BOLD)
        score = f"score {given.score:.2f}, " if given.score is not None else ""
        reason = _REASONS.get(given.reason, safe_line(given.reason))
        whose = f"objective {given.objective_id}, " if given.objective_id is not None else ""
        yield Line(f"  try {safe_line(given.try_no)}: {whose}task {given.task_id}, {score}{reason}")


def render_exchange(exchange: Exchange, objective: Objective, look: Look) -> Iterator[Line]:
    """Yield the lines of one step (a recorded call): a head, then its texts, each labelled with its
    kind, such as `reply`."""
    step = exchange.step
    at = f"{step.created_at.astimezone():%H:%M:%S}"
    words = [f"{exchange.n:>4}  {at}  {safe_line(exchange.title)}"]
    if step.usage.calls:
        tokens = f"{render.render_tokens(step.usage)} tokens"
        words += [tokens, render.render_cost(step.usage, objective)]
    if exchange.took_s is not None:
        words.append(f"{exchange.took_s:.1f} s")
    words.append(safe_line(step.key))
    if step.state.value != "done":
        words.append(step.state.value)
    if step.n_unconfirmed:
        words.append(f"{say_count(step.n_unconfirmed, 'call')} cut off and counted as paid")
    yield Line(" · ".join(words), Style.BOLD)
    if exchange.missing:
        yield Line(f"{_MARGIN}({exchange.missing})", Style.DIM)
    yield from _render_parts(exchange, look)


def _render_parts(exchange: Exchange, look: Look) -> Iterator[Line]:
    n_same = sum(part.is_said_before for part in exchange.parts)
    if n_same and not look.is_whole:
        same = say_count(n_same, "message")
        yield Line(f"{_MARGIN}… {same} as in the step before", Style.DIM)
    for part in exchange.parts:
        if not look.is_whole and (part.is_said_before or part.label == "kept"):
            continue  # shown in the step before, or in the head
        yield from _render_part(part.label, part.text, exchange.n, look)


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
            yield Line("Calls without an outcome:", Style.BOLD)
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
        command = f"babyagi show {name} --objective {shown.objective.id}"
        yield Line("")
        yield Line(f"To read on: {command} --step N, or --full", Style.DIM)


def _cost(usage: Usage, objective: Objective) -> str:
    if not usage.calls:
        return "no call of a model"
    return f"{render.render_calls(usage)}, {render.render_cost(usage, objective)}"


# -- why a task does not run, and why an objective makes no progress
# --------------------------------------------------------------------------------------------------


def show_why(task: str | None, *, selector: str, as_json: bool) -> None:
    """Print why the task does not run; without a task, why the objective makes no progress."""

    async def fetch(store: TaskStore, picked: Objective) -> tuple[Reason, str]:
        if task is None:
            return await actions.why_objective(store, picked), f"Objective {picked.id}"
        return await actions.why_task(store, picked, _parse_task(task)), f"Task {task}"

    reason, name = with_objective(selector, fetch)
    said = [f"{name}: {safe_line(reason.says)}", f"  {safe_line(reason.change)}".rstrip()]
    rows = (Line(row) for text in filter(None, said) for row in wrap(text, terminal_width()))
    give(as_json, {"v": json_shapes.VERSION, **json_shapes.why_shape(reason)}, rows)


# -- the log: a line for each event and each step
# --------------------------------------------------------------------------------------------------


PAGE = 500
WAIT_S = 5.0  # longest pause between two checks whether the objective has ended
MAX_IN_FLIGHT = 1000  # calls whose start is remembered, to compute how long each took
_LINE_CHARS = 300
_SHOWN_WITH_STEP = (events.STEP_RECORDED, events.TASK_PARKED)
_STYLES = {
    events.TASK_DONE: Style.GREEN,
    events.TASK_DEAD: Style.RED,
    events.TASK_FAILED: Style.RED,
    events.TASK_PARKED: Style.YELLOW,
    events.MODEL_UNAVAILABLE: Style.YELLOW,
    events.WORKER_BLOCKED: Style.YELLOW,
    events.OBJECTIVE_ENDED: Style.BOLD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the log: an event and its text."""

    event: Event
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which part of the log is shown.

    Attributes:
        task_id: only events of this task; None means all.
        since_s: only events of this many last seconds; None means all.
        n_last: only this many last lines; 0 means all.
        is_followed: whether events are shown until the objective has ended.
    """

    task_id: int | None = None
    since_s: float | None = None
    n_last: int = 0
    is_followed: bool = False


def show_log(selector: str, wanted: Selection, *, as_json: bool, says_cut: bool = False) -> None:
    """Print the log of the objective: the selected events, one line for each. With `says_cut`, say
    on standard error when earlier lines are left out."""
    settings = load(needs=NOTHING).settings
    secrets = settings.known_secrets

    async def tell(store: TaskStore, found: Objective) -> None:
        if wanted.task_id is not None:
            await store.task(found.id, wanted.task_id)
        writer = Writer(as_json=as_json, width=terminal_width() if is_live_terminal() else 0)
        if json_shapes.is_rehearsal(found) and not as_json:
            echo(render.REHEARSAL_LINE, Style.YELLOW)
        is_first = True
        async for entry in read_log(store, found, wanted, secrets=secrets):
            if is_first and says_cut:
                await _say_older(store, entry.event, wanted)
            is_first = False
            writer.write(entry)

    with_objective(selector, tell, settings=settings)


async def _say_older(store: TaskStore, first: Event, wanted: Selection) -> None:
    """Say that events before the first shown one were left out, if any were."""
    after_id, id_ = 0, first.objective_id
    if wanted.since_s is not None:
        after_id = await store.last_event_id(id_, older_than_s=wanted.since_s)
    oldest = await store.events(id_, after_id=after_id, task_id=wanted.task_id, limit=1)
    if wanted.n_last and oldest and oldest[0].id < first.id:
        warn(f"Only the last lines are shown ({wanted.n_last:,}); -n 0 shows all.", Style.DIM)


class Writer:
    """Prints log entries as JSON lines, or as plain lines with the date before the first entry of
    each day.

    Args:
        width: cells after which a plain line is cut; 0 means that lines stay whole.
    """

    def __init__(self, *, as_json: bool, width: int) -> None:
        self._as_json = as_json
        self._width = width
        self._day: datetime | None = None

    def write(self, entry: Entry) -> None:
        if self._as_json:
            print_json_line({**json_shapes.event_shape(entry.event), "text": entry.text})
            return
        at = entry.event.at.astimezone()
        if self._day is None or self._day.date() != at.date():
            echo(f"{at:%Y-%m-%d}", Style.DIM)
            self._day = at
        text = f"{at:%H:%M:%S}  {entry.text}"
        style = _STYLES.get(entry.event.kind, Style.PLAIN)
        echo(fit(text, self._width) if self._width else text, style)


# -- reading
# --------------------------------------------------------------------------------------------------


async def read_log(
    store: TaskStore, objective: Objective, wanted: Selection, *, secrets: Sequence[str] = ()
) -> AsyncIterator[Entry]:
    """Yield the selected log entries in order, read from the store page by page. With
    `wanted.is_followed`, continue until the objective has ended."""
    teller, after_id = Teller(store, objective, secrets), 0
    if wanted.since_s is not None:
        after_id = await store.last_event_id(objective.id, older_than_s=wanted.since_s)
    if wanted.n_last:
        newest_id = await store.last_event_id(objective.id)
        for entry in await _read_last(store, teller, wanted, (after_id, newest_id)):
            yield entry
        after_id = newest_id
    async for page in _read_pages(store, objective.id, wanted, after_id):
        for entry in await teller.tell(page):
            yield entry


async def _read_pages(
    store: TaskStore, objective_id: int, wanted: Selection, after_id: int
) -> AsyncIterator[list[Event]]:
    is_over = bool(wanted.n_last) and not wanted.is_followed
    while not is_over:
        last_id = await store.last_event_id(objective_id)
        page = await store.events(
            objective_id, after_id=after_id, task_id=wanted.task_id, limit=PAGE
        )
        yield page
        after_id = page[-1].id if page else after_id
        if len(page) < PAGE:
            is_over = not wanted.is_followed
            is_over = is_over or await _has_ended(store, objective_id, after_id, wanted)
            if not is_over:
                await store.wait_for_events(objective_id, after_id=last_id, timeout_s=WAIT_S)


async def _has_ended(store: TaskStore, objective_id: int, after_id: int, wanted: Selection) -> bool:
    """Return whether no event will follow: the objective has ended, its report is written, and it
    has no event after `after_id`."""
    if not is_over(await store.objective(objective_id)):
        return False
    return not await store.events(objective_id, after_id=after_id, task_id=wanted.task_id, limit=1)


async def _read_last(
    store: TaskStore, teller: Teller, wanted: Selection, between: tuple[int, int]
) -> list[Entry]:
    """Return the last `wanted.n_last` entries of the events whose ids are greater than the first
    number in `between`, and not greater than the second. The newest events are read first."""
    after_id, newest_id = between
    last = partial(store.events, teller.objective.id, task_id=wanted.task_id, from_end=True)
    n_read = PAGE
    while True:
        read = await last(after_id=after_id, limit=n_read)
        entries = await teller.tell([event for event in read if event.id <= newest_id])
        if len(entries) >= wanted.n_last or len(read) < n_read:
            return entries[-wanted.n_last :]
        n_read *= 2


class Teller:
    """Puts events into words for the log, with the requests and outcomes of the recorded calls
    (steps) that they are about."""

    def __init__(self, store: TaskStore, objective: Objective, secrets: Sequence[str]) -> None:
        self.objective = objective
        self._store = store
        self._secrets = secrets
        self._names = EventNames(store)
        self._begun: dict[tuple[str, str], datetime] = {}

    async def tell(self, page: Sequence[Event]) -> list[Entry]:
        """Return the log entries for these events. Some kinds of events have no entry."""
        named = [_address(event) for event in page if event.kind in _SHOWN_WITH_STEP]
        read = await self._store.steps(self.objective.id, named=named)
        steps = {(step.owner, step.key): step for step in read}
        recorded = [event.task_id or 0 for event in page if event.kind == events.TASK_RECORDED]
        results = await self._store.results(self.objective.id, task_ids=recorded)
        found = {result.task_id: result.text for result in results}
        entries = []
        for event in page:
            step = steps.get(_address(event)) if event.kind in _SHOWN_WITH_STEP else None
            text = await self._say(event, step, found.get(event.task_id or 0, ""))
            if text:
                clean = redact(text, secrets=self._secrets)
                entries.append(Entry(event=event, text=fit(clean, _LINE_CHARS)))
        return entries

    async def _say(self, event: Event, step: Step | None, result: str) -> str | None:
        if event.kind == events.STEP_INTENDED:
            if len(self._begun) >= MAX_IN_FLIGHT:
                self._begun.pop(next(iter(self._begun)))
            self._begun[_address(event)] = event.at
            return None
        if event.kind == events.RESULTS_INDEXED and "n" in event.data:
            return None
        if event.kind == events.STEP_RECORDED:
            return self._say_step(event, step)
        if event.kind == events.STEP_ABANDONED and not event.data.get("is_unknown"):
            return self._say_lost(event)
        if event.kind == events.TASK_PARKED and step is not None:
            return f"task {event.task_id}: {_say_asked(step)}"
        is_new = event.kind in (events.TASK_ADDED, events.TASK_CLAIMED)
        text = describe_event(event, await self._names.name_of(event) if is_new else "")
        text = text and self._names.tell_once(event, text)
        if event.kind == events.TASK_RECORDED and text and result:
            return f"{text} → {first_line(result)}"
        return text or _say_worker(event)

    def _say_step(self, event: Event, step: Step | None) -> str | None:
        kind = str(event.data.get("kind", ""))
        if kind == "inputs":
            return None
        place = _place(event)
        if step is not None and kind in ("question", "approval", "once", "changed"):
            return f"{place}: {_say_decided(step)}"
        if kind not in ("model", "embedding"):
            said = describe_step(step) if step is not None else f"tool {event.data.get('key', '')}"
            return f"{place}: {said}"
        usage = _usage_of(event.data)
        words = [kind, str(event.data.get("model", "")), f"{render.render_tokens(usage)} tokens"]
        if not self.objective.is_free:
            words.append(render.render_cost(usage, self.objective))
        begun = self._begun.pop(_address(event), step.created_at if step is not None else None)
        if begun is not None:
            words.append(f"{(event.at - begun).total_seconds():.1f} s")
        return f"{place}: {' '.join(words)}{_say_calls(step)}"

    def _say_lost(self, event: Event) -> str:
        usage = _usage_of(event.data)
        how = "was cut off" if event.data.get("is_unconfirmed") else "gave no outcome"
        tokens, cost = render.render_tokens(usage), render.render_cost(usage, self.objective)
        paid = f"counted as paid: {tokens} tokens, {cost}" if usage.calls else "nothing was counted"
        model = f" {event.data.get('model', '')}".rstrip()
        return f"{_place(event)}: {event.data.get('kind', 'call')}{model} {how}; {paid}"


def _address(event: Event) -> tuple[str, str]:
    return str(event.data.get("owner", f"task:{event.task_id}")), str(event.data.get("key", ""))


def _place(event: Event) -> str:
    """Return in words what the event's call was made for: `task 3`, or work for the whole objective
    such as `plan`."""
    if event.task_id is not None:
        return f"task {event.task_id}"
    return str(event.data.get("owner", "")).partition(":")[0] or "objective"


def _say_calls(step: Step | None) -> str:
    """Return ` → ` and the first line of the model's reply or tool calls; '' if there are none."""
    if step is None or step.kind != "model":
        return ""
    (exchange,) = read_exchanges([step])
    texts = {part.label: part.text for part in exchange.parts}
    reply = texts.get("calls") or texts.get("reply", "")
    return f" → {first_line(reply, max_chars=120)}" if reply else ""


def _say_asked(step: Step) -> str:
    open_ = step.state in (StepState.ASKED, StepState.UNKNOWN)
    number = f" (babyagi inbox {step.id})" if open_ else ""
    return f"asks: {describe(step)}{number}"


def _say_decided(step: Step) -> str:
    """Return one line about a step: what a person decided about a question or a call; for a tool
    call about which nobody was asked, the call and its outcome."""
    said = first_line(said_in(step))
    match step.kind:
        case "question":
            return f"answer: {said}"
        case "approval":
            return f"{describe_step(step)} ({said})" if said != "approved" else describe_step(step)
        case "changed":
            return describe_step(step)
    return f"tool {describe_call(step.request)} → {said}"


def _say_worker(event: Event) -> str | None:
    words = {events.WORKER_JOINED: "joined", events.WORKER_LEFT: "left"}
    if event.kind not in words:
        return None
    return f"worker {event.data.get('name', '')} {words[event.kind]}"


# -- the commands that look
# --------------------------------------------------------------------------------------------------


def _take_target(value: str) -> str:
    """Return the value if it is the number of a task, or one of the duties that can be shown."""
    if not value.isdecimal() and value not in ("plan", "order", "check", "report"):
        raise ValueError(value)
    return value


@click.command("show")
@click.argument("what", metavar="TASK|plan|order|check|report", type=_take_target, required=False)
@objective_option
@click.option(
    "--step", type=click.IntRange(min=1), metavar="N", help="Show only this step, with whole texts."
)
@click.option(
    "--full", "is_full", is_flag=True, help="Show every text whole, not only its beginning."
)
@click.option("--artifact", metavar="NAME", help="Show only this file of the result.")
@click.option(
    "--why",
    "is_why",
    is_flag=True,
    help="Say only why TASK does not run, and what would change that; without TASK, why the "
    "objective makes no progress.",
)
@json_option
def show_one(
    what: str | None,
    objective: str,
    artifact: str | None,
    is_why: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Show a task, or a list: tasks, results, log and more.

    A TASK is shown with its result, prompts, replies and tool calls; `plan`, `order`, `check` and
    `report` show the calls made for the objective itself.
    """
    if is_why:
        show_why(what, selector=objective, as_json=as_json)
    elif what is None:
        raise wrong_usage("say what to show: a task's number, or a list", "babyagi show tasks")
    elif artifact is not None:
        show_artifact(what, artifact, selector=objective)
    else:
        show_calls(what, selector=objective, **how, as_json=as_json)


def _take_task(context: click.Context, _parameter: click.Parameter, task: int | None) -> None:
    """Take the value of the argument TASK as the value of --task."""
    if task is not None:
        context.params["task_id"] = task


MAX_LINES = 1_000  # of the log, unless -n says otherwise


@click.command()
@click.argument(
    "task",
    metavar="[TASK]",
    required=False,
    type=int,
    expose_value=False,
    callback=_take_task,
)
@objective_option
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the objective has ended.")
@click.option(
    "--task",
    "task_id",
    type=int,
    metavar="N",
    help="Show only events of this task.",
)
@click.option(
    "--since",
    type=Duration(),
    metavar="DURATION",
    help="Show only events of this last period, such as 90s, 10m or 2h.",
)
@click.option(
    "-n",
    "n_last",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show only this many of the last lines; 0 means all. Default: {MAX_LINES:,}.",
)
@json_option
def log(
    objective: str,
    follow: bool,
    task_id: int | None,
    since: str | None,
    n_last: int | None,
    as_json: bool,
) -> None:
    """Show what happened, one line for each change and call.

    With a TASK, show only the events of that task, as with --task.
    """
    n_shown = MAX_LINES if n_last is None else n_last
    since_s = parse_duration_s(since) if since else None
    wanted = Selection(task_id=task_id, since_s=since_s, n_last=n_shown, is_followed=follow)
    show_log(objective, wanted, as_json=as_json, says_cut=n_last is None)


@click.command()
@json_option
def workers(as_json: bool) -> None:
    """List the workers, and what each works on.

    Each objective is shown with the time since the worker joined it, or with the reason why the
    worker cannot work on it.
    """
    found = with_store(lambda store: store.workers())
    shapes = [json_shapes.worker_shape(one) for one in found]
    none = "No worker is running. Type: babyagi worker, or babyagi resume"
    give(as_json, shapes, render_workers(found, terminal_width()) if found else (), empty=none)


show = Family(show_one)
for command in (
    *(objectives.tasks_list, objectives.results, log),
    *(objectives.objectives, workers, ask.memory),
):
    show.add_command(command)
