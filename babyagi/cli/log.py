"""All that happened to an objective, in its order, a line for each event and each step."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from babyagi import events
from babyagi.cli.json_shapes import Json, event_shape, is_rehearsal
from babyagi.cli.render import REHEARSAL_LINE, render_cost, render_tokens
from babyagi.cli.session import (
    NOTHING,
    find_secrets,
    is_over,
    load,
    pick_objective,
    with_store,
)
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    fit,
    is_live_terminal,
    print_json_line,
    terminal_width,
)
from babyagi.cli.views import EventNames, describe_event
from babyagi.errors import SettingsError
from babyagi.inbox import describe
from babyagi.redaction import redact
from babyagi.settings.values import parse_duration_s
from babyagi.tasks import Event, Objective, Step, StepState, Usage
from babyagi.taskstore.port import TaskStore
from babyagi.transcript import describe_call, describe_step, first_line, read_exchanges, said_in

PAGE = 500
WAIT_S = 5.0  # between two looks whether a run has ended that nobody works on
MAX_IN_FLIGHT = 1000  # calls whose beginning is remembered, to say how long they took
_LINE_CHARS = 300
_STEPS = (events.STEP_RECORDED, events.STEP_UNCONFIRMED, events.STEP_LEFT_UNKNOWN)
_SHOWN_WITH_STEP = (*_STEPS, events.TASK_PARKED)
_NOT_SHOWN = (events.STEP_INTENDED, events.RESULTS_INDEXED)
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
    """An event with its line; `step` is what it is about, where that is known."""

    event: Event
    text: str
    step: Step | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is wanted of the log: of which task, from when, how many of the last lines, and whether
    it is followed. 0 and None mean: all."""

    task_id: int | None = None
    since_s: float | None = None
    n_last: int = 0
    is_followed: bool = False


def show_log(selector: str, wanted: Selection, *, as_json: bool) -> None:
    """Print what happened."""
    settings = load(needs=NOTHING).settings
    secrets = find_secrets(settings)

    async def tell(store: TaskStore) -> None:
        found = await pick_objective(store, selector)
        if wanted.task_id is not None:
            await store.task(found.id, wanted.task_id)
        writer = Writer(as_json=as_json, width=terminal_width() if is_live_terminal() else 0)
        if is_rehearsal(found) and not as_json:
            echo(REHEARSAL_LINE, Style.YELLOW)
        async for entry in read_log(store, found, wanted, secrets=secrets):
            writer.write(entry)

    with_store(tell, settings=settings)


def parse_since(text: str | None) -> float | None:
    """The seconds that `--since` means. Raises `SettingsError`."""
    if text is None:
        return None
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise SettingsError(
            f"--since must be {error}, got {text!r}",
            fix="babyagi log --since 10m",
            guide="looking",
        ) from error


class Writer:
    """Writes entries as lines with the day before the first one of it, or as lines of JSON.

    Args:
        width: that a line is cut to; 0 for whole lines.
    """

    def __init__(self, *, as_json: bool, width: int) -> None:
        self._as_json = as_json
        self._width = width
        self._day: datetime | None = None

    def write(self, entry: Entry) -> None:
        if self._as_json:
            print_json_line(_shape(entry))
            return
        at = entry.event.at.astimezone()
        if self._day is None or self._day.date() != at.date():
            echo(f"{at:%Y-%m-%d}", Style.DIM)
            self._day = at
        line = Line(f"{at:%H:%M:%S}  {entry.text}", _STYLES.get(entry.event.kind, Style.PLAIN))
        echo(fit(line.text, self._width) if self._width else line.text, line.style)


def _shape(entry: Entry) -> Json:
    return {**event_shape(entry.event), "text": entry.text}


# -- reading
# --------------------------------------------------------------------------------------------------


async def read_log(
    store: TaskStore, objective: Objective, wanted: Selection, *, secrets: Sequence[str] = ()
) -> AsyncIterator[Entry]:
    """The entries in their order, read page by page; with `is_followed`, until the objective has
    ended."""
    teller, after_id = Teller(store, objective, secrets), 0
    if wanted.since_s is not None:
        after_id = await store.last_event_before(objective.id, since_s=wanted.since_s)
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
        page = await store.history(
            objective_id, after_id=after_id, task_id=wanted.task_id, limit=PAGE
        )
        yield page
        after_id = page[-1].id if page else after_id
        if len(page) < PAGE:
            is_over = not wanted.is_followed or await _has_ended(
                store, objective_id, after_id, wanted
            )
            if not is_over:
                await store.wait_for_events(objective_id, after_id=last_id, timeout_s=WAIT_S)


async def _has_ended(store: TaskStore, objective_id: int, after_id: int, wanted: Selection) -> bool:
    """Whether nothing more comes: the objective is over, and all its events are read."""
    if not is_over(await store.objective(objective_id)):
        return False
    return not await store.history(objective_id, after_id=after_id, task_id=wanted.task_id, limit=1)


async def _read_last(
    store: TaskStore, teller: Teller, wanted: Selection, between: tuple[int, int]
) -> list[Entry]:
    """The last entries after one event and up to another, read in pages from the end."""
    read: list[Event] = []
    (after_id, newest_id), objective_id = between, teller.objective.id
    before_id = newest_id + 1
    while True:
        page = await store.history_before(
            objective_id, before_id=before_id, task_id=wanted.task_id, limit=PAGE
        )
        read = [event for event in page if event.id > after_id] + read
        entries = await teller.tell(read)
        if len(entries) >= wanted.n_last or len(page) < PAGE or page[0].id <= after_id:
            return entries[-wanted.n_last :]
        before_id = page[0].id


class Teller:
    """Says events in lines, with what the steps that they are about asked and gave."""

    def __init__(self, store: TaskStore, objective: Objective, secrets: Sequence[str]) -> None:
        self.objective = objective
        self._store = store
        self._secrets = secrets
        self._names = EventNames(store)
        self._begun: dict[tuple[str, str], datetime] = {}

    async def tell(self, page: Sequence[Event]) -> list[Entry]:
        """The entries of these events; the ones that a person need not see have none."""
        named = [_address(event) for event in page if event.kind in _SHOWN_WITH_STEP]
        steps = {
            (step.owner, step.key): step
            for step in await self._store.steps_at(self.objective.id, named=named)
        }
        recorded = [
            event.task_id
            for event in page
            if event.kind == events.TASK_RECORDED and event.task_id is not None
        ]
        results = await self._store.results(self.objective.id, task_ids=recorded)
        found = {result.task_id: result.text for result in results}
        entries = []
        for event in page:
            step = steps.get(_address(event)) if event.kind in _SHOWN_WITH_STEP else None
            text = await self._say(event, step, found.get(event.task_id or 0, ""))
            if text:
                clean = redact(text, secrets=self._secrets)
                entries.append(Entry(event=event, text=fit(clean, _LINE_CHARS), step=step))
        return entries

    async def _say(self, event: Event, step: Step | None, result: str) -> str | None:
        if event.kind == events.STEP_INTENDED:
            if len(self._begun) >= MAX_IN_FLIGHT:
                self._begun.pop(next(iter(self._begun)))
            self._begun[_address(event)] = event.at
        if event.kind in _NOT_SHOWN:
            return None
        if event.kind == events.STEP_RECORDED:
            return self._say_step(event, step)
        if event.kind in (events.STEP_ABANDONED, events.STEP_UNCONFIRMED):
            return self._say_lost(event)
        if event.kind == events.TASK_PARKED and step is not None:
            return f"task {event.task_id}: {_say_asked(step)}"
        is_new = event.kind in (events.TASK_ADDED, events.TASK_CLAIMED)
        text = describe_event(event, await self._names.name_of(event) if is_new else "")
        if event.kind == events.TASK_RECORDED and text and result:
            return f"{text} → {first_line(result)}"
        return text or _say_worker(event)

    def _say_step(self, event: Event, step: Step | None) -> str | None:
        kind = str(event.data.get("kind", ""))
        if kind == "inputs":
            return None
        place = _place(event)
        if step is not None and kind in ("question", "approval", "once"):
            return f"{place}: {_say_decided(step)}"
        if kind not in ("model", "embedding"):
            said = describe_step(step) if step is not None else f"tool {event.data.get('key', '')}"
            return f"{place}: {said}"
        usage = _usage_of(event)
        words = [kind, str(event.data.get("model", "")), f"{render_tokens(usage)} tokens"]
        if not self.objective.is_free:
            words.append(render_cost(usage, self.objective))
        begun = self._begun.pop(_address(event), step.created_at if step is not None else None)
        if begun is not None:
            words.append(f"{(event.at - begun).total_seconds():.1f} s")
        return f"{place}: {' '.join(words)}{_say_calls(step)}"

    def _say_lost(self, event: Event) -> str:
        usage = _usage_of(event)
        how = "was cut off" if event.kind == events.STEP_UNCONFIRMED else "gave no outcome"
        paid = (
            f"counted as paid: {render_tokens(usage)} tokens, {render_cost(usage, self.objective)}"
            if usage.calls
            else "nothing was counted"
        )
        model = f" {event.data.get('model', '')}".rstrip()
        return f"{_place(event)}: {event.data.get('kind', 'call')}{model} {how}; {paid}"


def _address(event: Event) -> tuple[str, str]:
    return str(event.data.get("owner", f"task:{event.task_id}")), str(event.data.get("key", ""))


def _place(event: Event) -> str:
    """The task or the duty that an event about a step belongs to."""
    if event.task_id is not None:
        return f"task {event.task_id}"
    return str(event.data.get("owner", "")).partition(":")[0] or "objective"


def _usage_of(event: Event) -> Usage:
    names = ("calls", "prompt_tokens", "completion_tokens", "cost_usd")
    return Usage(**{name: event.data.get(name, 0) for name in names})


def _say_calls(step: Step | None) -> str:
    """The first line of a reply, where it is in words."""
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
    """What a person said, or what came of a call that must not be repeated."""
    said = first_line(said_in(step))
    match step.kind:
        case "question":
            return f"answer: {said}"
        case "approval":
            return f"{describe_step(step)} ({said})" if said != "approved" else describe_step(step)
    return f"tool {describe_call(step.request)} → {said}"


def _say_worker(event: Event) -> str | None:
    words = {events.WORKER_JOINED: "joined", events.WORKER_LEFT: "left"}
    if event.kind not in words:
        return None
    return f"worker {event.data.get('name', '')} {words[event.kind]}"
