"""Shows the events of an objective: as plain lines, as JSON lines, or as the live view on a
terminal."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Self

from babyagi import events
from babyagi.app.backends import utc_now
from babyagi.cli import render
from babyagi.cli.text import (
    Line,
    Style,
    accepts_output,
    cell_width,
    cut_words,
    fit,
    fit_end,
    is_in_foreground,
    print_json,
    warn,
)
from babyagi.errors import StoreUnavailableError, first_error
from babyagi.inbox import asking_task, describe
from babyagi.index.indexer import describe_trouble
from babyagi.redaction import redact
from babyagi.reporting.transcript import first_line
from babyagi.reporting.why import Facts, describe_outage, find_facts
from babyagi.tasks import Event, ObjectiveStatus, Task, TaskStatus
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import harmless, say_count
from babyagi.verbs.actions import serving
from babyagi.verbs.json_shapes import model_of
from babyagi.worker.notify import event_fields

if TYPE_CHECKING:
    from rich.live import Live

    from babyagi.journal import TextPiece

NAME_WIDTH = 80
RESULT_WIDTH = 120  # of the first line of a result
MAX_SAID = 200  # cells of an error or reason
SAID_EVERY = timedelta(minutes=1)  # a line about the same outage
logger = logging.getLogger("babyagi.events")

MAX_PENDING = 2000  # lines that wait for a terminal that accepts no output
PAUSE_S = 0.05  # events that are written within this time are read at once
N_CATCHING_UP = 100  # results indexed at once: so many (a full batch) only if the index is behind

_TASK_WORDS = {
    events.TASK_ADDED: "added",
    events.TASK_CLAIMED: "claimed",
    events.TASK_RECORDED: "recorded",
    events.TASK_LACKED: "lacks something",
    events.TASK_REQUEUED: "queued again",
    events.TASK_AFTER_DROPPED: "no longer waits for a task that it named",
    events.TASK_DONE: "done",
    events.TASK_FAILED: "failed",
    events.TASK_DEAD: "given up",
    events.TASK_RELEASED: "released",
    events.TASK_CANCELLED: "cancelled",
    events.TASK_PARKED: "waits for your answer",
    events.TASK_DUPLICATE_DROPPED: "proposed a task that exists already",
}

_OTHER_WORDS = {
    events.OBJECTIVE_CREATED: "objective {id} created",
    events.OBJECTIVE_PAUSED: "objective {id} paused",
    events.OBJECTIVE_RESUMED: "objective {id} goes on",
    events.OBJECTIVE_EXTENDED: "objective {id} has new limits",
    events.OBJECTIVE_CLAIMED_MET: "an agent says that the objective is met; this is checked now",
    events.OBJECTIVE_CHECKED: "checked whether the objective is met",
    events.OBJECTIVE_ENDED: "objective {id}: no further task starts",
    events.TASK_DUPLICATE_DROPPED: "a proposed task exists already",
    events.TASK_PROPOSAL_DROPPED: (
        "a proposed task was left out: there were too many, or the same was found before"
    ),
    events.PLAN_FAILED: "nothing could be planned from a result",
    events.CONTEXT_CUT: "a prompt had no room for whole results",
    events.ORDER_APPLIED: "the list was ordered",
    events.REPORT_WRITTEN: "the report is written",
    events.RESULTS_INDEXED: "the index is catching up",
    events.INDEX_UNAVAILABLE: "results cannot be written to the result store; the run goes on",
    events.STEP_OVERSPENT: "the cost of an answer differs from its reservation",
    events.STEP_REQUEST_CHANGED: (
        "the stored outcome of a call is used, although its request would differ now"
    ),
    events.MODEL_UNAVAILABLE: "waiting for the model",
    events.MODEL_AVAILABLE: "the model answers again",
    events.WORKER_BLOCKED: "a worker cannot work on this objective",
    events.WORKER_LOST: "a worker was lost; other workers can take over its tasks",
}

# the words of an event with this field, in place of those of its kind
_WORDS_BY_FIELD = {
    (events.TASK_REQUEUED, "is_retry"): "retried",
    (events.TASK_REQUEUED, "is_answered"): "has its answer and is queued again",
    (events.TASK_AFTER_DROPPED, "by"): "no longer waits: a result has what it lacked",
    (events.OBJECTIVE_CREATED, "schedule_id"): "objective {id} created by a schedule",
    (events.OBJECTIVE_EXTENDED, "question"): "objective {id} has a further question",
    (events.OBJECTIVE_EXTENDED, "space"): "objective {id}: results are embedded again",
    (events.RESULTS_INDEXED, "is_back"): "results are written to the result store again",
    (events.STEP_ABANDONED, "is_unconfirmed"): (
        "a call was cut off; it is counted as paid and made again"
    ),
    (events.STEP_ABANDONED, "is_unknown"): (
        "a tool call that must not be repeated was cut off; a person must say what its outcome was"
    ),
}


# said by the line of the finished task, or by the report itself
_SAID_LATER = (
    events.TASK_CLAIMED,
    events.TASK_RECORDED,
    events.TASK_ADDED,
    events.REPORT_WRITTEN,
)


def describe_event(event: Event, task_name: str) -> str | None:
    """Return the event in words, such as `task 4 done: Read limits.md (2 new)`; None for kinds of
    events that are not shown. `task_name` is '' to leave the name out."""
    if event.kind in _TASK_WORDS and event.task_id is not None:
        is_proposal = event.kind == events.TASK_DUPLICATE_DROPPED
        # of a proposal its own name, not that of the task which proposed it
        shown = str(event.data.get("name") or task_name) if is_proposal else task_name
        name = f": {fit(shown, NAME_WIDTH)}" if shown else ""
        details = "" if is_proposal else _describe_data(event)
        words = _find_words(event) or _TASK_WORDS[event.kind]
        return f"task {event.task_id} {words}{name}{details}"
    if event.kind == events.RESULTS_INDEXED and event.data.get("n", N_CATCHING_UP) < N_CATCHING_UP:
        return None  # results are indexed as they arrive: nothing to show
    said = _find_words(event) or _OTHER_WORDS.get(event.kind)
    return said and said.format(id=event.objective_id) + _describe_data(event)


def _find_words(event: Event) -> str | None:
    """Return the words of `_WORDS_BY_FIELD` for the event, if there are any."""
    return next(filter(None, (_WORDS_BY_FIELD.get((event.kind, key)) for key in event.data)), None)


def _describe_data(event: Event) -> str:
    """Return what follows the event's words: details in brackets or after a colon, such as how many
    tasks were added, a reason or an error."""
    data = event.data
    match event.kind:
        case events.STEP_OVERSPENT:
            return _describe_overspending(data)
        case events.MODEL_UNAVAILABLE:
            fix = f"; {fit(str(data['fix']), 200)}" if data.get("fix") else ""
            return f": {describe_outage(data)}, next try in {data.get('retry_in_s', 0):.0f} s{fix}"
        case events.INDEX_UNAVAILABLE:
            return f": {fit(describe_trouble(data), 400)}"
        case events.RESULTS_INDEXED if "n" in data:
            return f": {data['n']} more results, {data.get('n_owed', 0):,} are left"
    words = "; ".join(str(word) for word in _words_of(event) if word)
    return f" ({fit(words, MAX_SAID)})" if words else ""


def _describe_overspending(data: Mapping[str, Any]) -> str:
    n, n_reserved = data.get("tokens", 0), data.get("reserved_tokens", 0)
    said = f"{n:,} tokens, where {n_reserved:,} were reserved"
    if not data.get("is_said", True):
        said = f"{fit(str(data.get('model', '')), 100)} does not say how many tokens it used"
    if limit := data.get("limit"):
        said += f"; no further call is made, because the limit of {limit} cannot be guaranteed"
    return f": {said}"


def _words_of(event: Event) -> list[Any]:
    data = event.data
    match event.kind:
        case events.TASK_DONE:
            return [f"{data['n_added']} new" if data.get("n_added") else ""]
        case events.ORDER_APPLIED:
            return [f"{data.get('n_moved', 0)} moved"]
        case events.TASK_REQUEUED:
            after = ", ".join(map(str, data.get("waits_for", ())))
            return [f"after {after}" if after else ""]
        case events.CONTEXT_CUT:
            return [f"task {event.task_id}: of results {', '.join(map(str, data.get('cut', ())))}"]
        case events.TASK_DUPLICATE_DROPPED | events.TASK_PROPOSAL_DROPPED:
            return [data.get("name")]
        case events.OBJECTIVE_CHECKED:
            return ["it is met" if data.get("is_met") else "it is not met", data.get("reason")]
    keys = ("question", "reason", "error", "detail", "hindrance", "lack", "named")
    return [data.get(key) for key in keys]


# -- following the events of an objective
# --------------------------------------------------------------------------------------------------

BATCH = 1000
WATCH_CHECK_S = 1.0


@dataclass(eq=False, kw_only=True)
class View:
    """Follows the events of an objective, in order and each once; this one shows none of them.
    `fetch` takes new events and may wait for the store; `draw` then shows what was fetched and
    never waits.

    Attributes:
        after_id: only events with a greater id are still to be followed.
        is_logged: whether each event is also logged as one record.
        without: kinds of events that are neither shown nor logged.
        reported: set as soon as the report is among the events that were shown.
        tick_s: the longest time between two calls of `draw` if there is no event.
        pause_s: the shortest time between two calls of `draw`.
    """

    store: TaskStore
    objective_id: int
    after_id: int = 0
    is_logged: bool = False
    without: Collection[str] = ()
    reported: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    tick_s: ClassVar = 5.0
    pause_s: ClassVar = PAUSE_S

    async def fetch(self, batch: Sequence[Event]) -> None: ...

    def draw(self) -> None: ...

    async def follow(self) -> None:
        """Show events as they arrive, until cancelled. While the store is unavailable, try again
        and again."""
        while True:
            try:
                n_shown = await self.step()
                if n_shown < BATCH:
                    await asyncio.sleep(self.pause_s)
                    await self.store.wait_for_events(
                        self.objective_id, after_id=self.after_id, timeout_s=self.tick_s
                    )
            except StoreUnavailableError:
                await asyncio.sleep(1.0)

    async def step(self) -> int:
        """Show the events since the last step (at most `BATCH`), and return how many there were."""
        found = await self.store.events(self.objective_id, after_id=self.after_id, limit=BATCH)
        shown = [event for event in found if event.kind not in self.without]
        await self.fetch(shown)
        if found:
            self.after_id = found[-1].id
        if self.is_logged:
            for event in shown:
                _log(event)
        self.draw()
        if any(event.kind == events.REPORT_WRITTEN for event in found):
            self.reported.set()
        return len(found)

    async def drain(self) -> None:
        """Show all events that are left."""
        while await self.step() == BATCH:
            pass


def _log(event: Event) -> None:
    if text := describe_event(event, ""):
        named = f"objective {event.objective_id}"
        said = text if text.startswith(named) else f"{named}: {text}"
        about = {"objective_id": event.objective_id, "task_id": event.task_id}
        logger.info("%s", said, extra={"event": event.kind, **about})


@asynccontextmanager
async def following(view: View) -> AsyncIterator[None]:
    """Let the view follow the events while the body runs, and show the remaining ones after it."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(view.follow())
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    await view.drain()


async def watch(view: View) -> None:
    """Let the view follow the events until the objective has ended and its report is written, or
    until it has ended and no worker is left to write the report."""
    store, objective_id = view.store, view.objective_id
    async with following(view):
        while True:
            last_id = await store.last_event_id(objective_id)
            objective = await store.objective(objective_id)
            if objective.status is ObjectiveStatus.ENDED and (
                objective.has_report or not serving(await store.workers(), objective_id)
            ):
                return
            await store.wait_for_events(objective_id, after_id=last_id, timeout_s=WATCH_CHECK_S)


# -- plain lines and JSON lines
# --------------------------------------------------------------------------------------------------


class JsonView(View):
    """A view that prints every event as one line of JSON, on standard output."""

    async def fetch(self, batch: Sequence[Event]) -> None:
        for event in batch:
            print_json(event_fields(event), indent=None)


@dataclass(eq=False, kw_only=True)
class PlainView(View):
    """A view that prints a plain line for each event, on standard error: with the name of its task,
    and for a task that is done, with the first line of its result and its cost.

    Attributes:
        prefix: words before each line.
    """

    prefix: str = ""
    _pending: list[str] = field(default_factory=list, init=False)
    # the reason of an outage and when it was said; '' while the model answers
    _outage: tuple[str, datetime] = field(
        default=("", datetime.min.replace(tzinfo=UTC)), init=False
    )

    async def fetch(self, batch: Sequence[Event]) -> None:
        for event in batch:
            if line := await self.render_event(event):
                self._pending.append(line)
        del self._pending[:-MAX_PENDING]

    def draw(self) -> None:
        lines, self._pending = self._pending, []
        for line in lines:
            warn(self.prefix + line)

    async def render_event(self, event: Event) -> str | None:
        """Return a line such as `12:01:07 task 4 done: Read limits.md (2 new)`, with the local
        time. Return None for kinds of events that are not shown, or that the line of the finished
        task makes unnecessary."""
        if event.kind in _SAID_LATER or self._is_same_outage(event):
            return None
        text = describe_event(event, await name_task(self.store, event))
        if event.kind == events.TASK_DONE:
            text = f"{text}{await self._describe_result(event)}"
        return f"{event.at.astimezone():%H:%M:%S} {text}" if text else None

    def _is_same_outage(self, event: Event) -> bool:
        """Return whether the event repeats an outage that a line named within the last minute."""
        (outage, said_at), reason = self._outage, str(event.data.get("reason", ""))
        if event.kind == events.TASK_RELEASED:
            return bool(outage) and reason.endswith(outage)
        is_down = event.kind == events.MODEL_UNAVAILABLE
        if is_down and reason == outage and event.at - said_at < SAID_EVERY:
            return True
        if is_down or event.kind == events.MODEL_AVAILABLE:
            self._outage = (reason if is_down else ""), event.at
        return False

    async def _describe_result(self, event: Event) -> str:
        """Return what follows the words about a task that is done: the first line of its result,
        and the cost of the task if it is known."""
        objective, task_id = await self.store.objective(event.objective_id), event.task_id or 0
        results = await self.store.results(objective.id, task_ids=[task_id])
        line = first_line(redact(results[0].text)) if results else ""
        result = f" → {fit(line, RESULT_WIDTH)}" if line else ""
        if objective.spec.is_free or not objective.spec.has_price:
            return result
        task = await self.store.task(objective.id, task_id)
        return f"{result} · {render.render_cost(task.usage, objective)}"


async def name_task(store: TaskStore, event: Event) -> str:
    """Return the name of the task that the event is about; '' if it is about none."""
    if event.task_id is None or event.kind not in _TASK_WORDS:
        return ""
    return (await store.task(event.objective_id, event.task_id)).name


# -- the live view on a terminal: below the lines of events the state of the objective, drawn anew
# --------------------------------------------------------------------------------------------------

MAX_ROWS = 5  # of running tasks, and of questions
MAX_WRITTEN_CHARS = 1000  # of an answer that is being written; only its end is shown
MAX_ASKED_CHARS = 400
HURRY_S = 0.05  # words that a model writes are shown within this time
_ASKS = "asks you, and babyagi inbox says how to answer"
_DOING = {"model": "asks the model", "tool": "calls a tool", "once": "calls a tool"}


def render_state(
    facts: Facts, running: Sequence[Task], doing: Mapping[int, str], *, now: datetime, width: int
) -> list[Line]:
    """Return the questions, the running tasks, and what was used, in lines of at most `width`
    cells.

    Args:
        running: the first of the running tasks.
        doing: what running tasks do now in words, by task id.
    """
    objective, usage = facts.objective, facts.objective.usage
    lines = [
        Line(f"? {asking_task(step):>4}  {_ASKS}: {describe(step)[:MAX_ASKED_CHARS]}", Style.YELLOW)
        for step in facts.asked[:MAX_ROWS]
    ]
    lines += [_render_task(task, doing.get(task.id, ""), now) for task in running]
    if objective.status is ObjectiveStatus.PAUSED:
        goes_on = f"babyagi resume {facts.here} continues it"
        lines.append(Line(f"It is paused; {goes_on}", Style.YELLOW))
    used = f"cost {objective.spent} · {say_count(usage.calls, 'call')} · {usage.tokens:,} tokens"
    serving = render.render_serving(facts.workers, objective.id) or "no worker is running"
    counts = facts.standing.counts
    limits = render.render_limits(objective, counts)
    lines += [
        Line(f"tasks: {render.render_counts(counts)}", Style.DIM),
        Line(f"{used} · {serving} · {model_of(objective)}", Style.DIM),
        *([Line(f"limits: {' · '.join(limits)}", Style.DIM)] if limits else []),
    ]
    return [Line(cut_words(harmless(line.text), width), line.style) for line in lines]


def _render_task(task: Task, doing: str, now: datetime) -> Line:
    since = render.render_duration((now - (task.started_at or now)).total_seconds())
    doing = "is planned from" if task.status is TaskStatus.RECORDED else doing
    text = f"> {task.id:>4} {since:>10}  {doing + ': ' if doing else ''}{task.name}"
    return Line(text, Style.BOLD)


@dataclass(eq=False, kw_only=True)
class LiveView(PlainView):
    """Prints a line for each event of an objective, and draws its state below them. Use it as a
    context manager, which removes the state from the terminal at the end.

    Nothing is written while the terminal accepts no output, and no state is drawn while this
    program is not in the foreground.
    """

    tick_s: ClassVar = 1.0
    pause_s: ClassVar = 0.25
    may_draw: Callable[[], bool] = is_in_foreground
    _facts: Facts | None = field(default=None, init=False)
    _running: Sequence[Task] = field(default=(), init=False)
    _doing: dict[int, str] = field(default_factory=dict, init=False)
    _writer: tuple[str, str] = field(default=("", ""), init=False)
    _written: str = field(default="", init=False)
    _hurry: asyncio.TimerHandle | None = field(default=None, init=False)
    _live: Live | None = field(default=None, init=False)
    _is_aside: bool = field(default=False, init=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_aside = True
        if self._hurry is not None:
            self._hurry.cancel()
        self._hide()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """While the body runs, let it have the terminal: only lines of events are printed."""
        self._is_aside = True
        self._hide()
        try:
            yield
        finally:
            self._is_aside = False

    async def fetch(self, batch: Sequence[Event]) -> None:
        await super().fetch(batch)
        for event in batch:
            self._note(event)
        running = (TaskStatus.RUNNING, TaskStatus.RECORDED)
        self._facts = await find_facts(self.store, self.objective_id)
        self._running = await self.store.tasks(self.objective_id, statuses=running, limit=MAX_ROWS)

    def _note(self, event: Event) -> None:
        """Note what the event says about the calls that are being made."""
        if (event.data.get("owner"), event.data.get("key")) == self._writer:
            self._written = ""  # the outcome of the call is known
        if event.task_id is None:
            return
        if event.kind == events.STEP_INTENDED:
            self._doing[event.task_id] = _DOING.get(event.data.get("kind", ""), "")
        elif event.kind == events.STEP_RECORDED or event.kind.startswith("task."):
            self._doing.pop(event.task_id, None)

    def hear(self, piece: TextPiece) -> None:
        """Show the end of the answer that a model is writing, with this piece of it added."""
        if piece.objective_id != self.objective_id:
            return
        if self._writer != (piece.owner, piece.key):
            self._writer, self._written = (piece.owner, piece.key), ""
        self._written = (self._written + piece.text)[-MAX_WRITTEN_CHARS:]
        if self._hurry is None:
            self._hurry = asyncio.get_running_loop().call_later(HURRY_S, self._draw_soon)

    def _draw_soon(self) -> None:
        self._hurry = None
        self.draw()

    def draw(self) -> None:
        if not accepts_output(sys.stderr):
            return
        with suppress(OSError):  # the terminal is gone
            if self._pending:
                self._hide()
                super().draw()
            self._show()

    def _show(self) -> None:
        if self._facts is None or self._is_aside or not self.may_draw():
            self._hide()
            return
        from rich.console import Console, Group
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            console = Console(stderr=True, highlight=False)
            self._live = Live(
                console=console, auto_refresh=False, transient=True, redirect_stdout=False
            )
            self._live.start()
            console.show_cursor(True)  # a process that is killed cannot bring it back
        lines = self._lines(self._facts, width=self._live.console.width - 1)
        rows = [Text(line.text, style=line.style.name.lower(), no_wrap=True) for line in lines]
        self._live.update(Group(*rows), refresh=True)

    def _lines(self, facts: Facts, *, width: int) -> list[Line]:
        lines = render_state(facts, self._running, self._doing, now=utc_now(), width=width)
        if not self._written:
            return lines
        kind, _, number = self._writer[0].partition(":")
        head = f"{f'task {number}' if kind == 'task' else f'the {kind}'} writes: "
        written = fit_end(self._written, width - cell_width(head))
        return [*lines, Line(head + written, Style.DIM)]

    def _hide(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):  # the terminal is gone
                live.stop()
