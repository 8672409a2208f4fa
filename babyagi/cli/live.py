"""The live view on a terminal: a line for each event, and below the lines the state of one
objective, which is drawn again as it changes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Self

from babyagi import events
from babyagi.app.backends import utc_now
from babyagi.cli import render
from babyagi.cli.text import (
    Line,
    Style,
    accepts_output,
    cell_width,
    cut_words,
    fit_end,
    is_in_foreground,
    safe,
)
from babyagi.cli.views import PlainView, count_serving
from babyagi.inbox import asking_task, describe
from babyagi.tasks import Event, Objective, ObjectiveStatus, Step, Task, TaskStatus, Worker
from babyagi.text import say_count
from babyagi.verbs.json_shapes import model_of

if TYPE_CHECKING:
    from rich.live import Live

    from babyagi.journal import TextPiece
    from babyagi.taskstore.sql.store import TaskStore

MAX_ROWS = 5  # of running tasks, and of questions
MAX_WRITTEN_CHARS = 1000  # of an answer that is being written; only its end is shown
MAX_ASKED_CHARS = 400
HURRY_S = 0.05  # words that a model writes are shown within this time
_ASKS = "asks you, and babyagi inbox says how to answer"
_DOING = {"model": "asks the model", "tool": "calls a tool", "once": "calls a tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """The state of an objective at one instant.

    Attributes:
        running: the first of the running tasks.
        asked: the open requests to a person.
        doing: what running tasks do now in words, by task id.
    """

    objective: Objective
    counts: Mapping[TaskStatus, int]
    running: Sequence[Task] = ()
    asked: Sequence[Step] = ()
    workers: Sequence[Worker] = ()
    doing: Mapping[int, str] = field(default_factory=dict)


def render_state(state: LiveState, *, now: datetime, width: int) -> list[Line]:
    """Return the questions, the running tasks, and what was used, in lines of at most `width`
    cells."""
    objective, usage = state.objective, state.objective.usage
    lines = [
        Line(f"? {asking_task(step):>4}  {_ASKS}: {describe(step)[:MAX_ASKED_CHARS]}", Style.YELLOW)
        for step in state.asked[:MAX_ROWS]
    ]
    lines += [_render_task(task, state, now) for task in state.running[:MAX_ROWS]]
    if objective.status is ObjectiveStatus.PAUSED:
        goes_on = f"babyagi resume --objective {objective.id} continues it"
        lines.append(Line(f"It is paused; {goes_on}", Style.YELLOW))
    used = f"cost {objective.spent} · {say_count(usage.calls, 'call')} · {usage.tokens:,} tokens"
    serving = count_serving(state.workers, objective.id)
    limits = render.render_limits(objective, state.counts)
    lines += [
        Line(f"tasks: {render.render_counts(state.counts)}", Style.DIM),
        Line(f"{used} · {serving} · {model_of(objective)}", Style.DIM),
        *([Line(f"limits: {' · '.join(limits)}", Style.DIM)] if limits else []),
    ]
    return [Line(cut_words(safe(line.text), width), line.style) for line in lines]


def _render_task(task: Task, state: LiveState, now: datetime) -> Line:
    since = render.render_duration((now - (task.started_at or now)).total_seconds())
    is_recorded = task.status is TaskStatus.RECORDED
    doing = "is planned from" if is_recorded else state.doing.get(task.id, "")
    text = f"> {task.id:>4} {since:>10}  {doing + ': ' if doing else ''}{task.name}"
    return Line(text, Style.BOLD)


class LiveView(PlainView):
    """Prints a line for each event of an objective, and draws its state below them. Use it as a
    context manager, which removes the state from the terminal at the end.

    Nothing is written while the terminal accepts no output, and no state is drawn while this
    program is not in the foreground.
    """

    tick_s = 1.0
    pause_s = 0.25

    def __init__(
        self,
        store: TaskStore,
        objective_id: int,
        *,
        may_draw: Callable[[], bool] = is_in_foreground,
    ) -> None:
        super().__init__(store)
        self._store = store
        self._objective_id = objective_id
        self._may_draw = may_draw
        self._state: LiveState | None = None
        self._doing: dict[int, str] = {}
        self._writer = ("", "")
        self._written = ""
        self._hurry: asyncio.TimerHandle | None = None
        self._live: Live | None = None
        self._is_aside = False

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
        store, objective_id = self._store, self._objective_id
        running = (TaskStatus.RUNNING, TaskStatus.RECORDED)
        now = await store.standing(objective_id)
        self._state = LiveState(
            objective=now.objective,
            counts=now.counts,
            running=await store.tasks(objective_id, statuses=running, limit=MAX_ROWS),
            asked=await store.inbox(objective_id),
            workers=await store.workers(),
            doing=dict(self._doing),
        )

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
        if piece.objective_id != self._objective_id:
            return
        if self._writer != (piece.owner, piece.key):
            self._writer, self._written = (piece.owner, piece.key), ""
        self._written = (self._written + piece.text)[-MAX_WRITTEN_CHARS:]
        if self._hurry is None:
            self._hurry = asyncio.get_running_loop().call_later(HURRY_S, self._draw_soon)

    def _draw_soon(self) -> None:
        self._hurry = None
        if accepts_output(sys.stderr):
            with suppress(OSError):  # the terminal is gone
                self._show()

    def draw(self) -> None:
        if not accepts_output(sys.stderr):
            return
        with suppress(OSError):  # the terminal is gone
            if self._pending:
                self._hide()
                super().draw()
            self._show()

    def _show(self) -> None:
        if self._state is None or self._is_aside or not self._may_draw():
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
        lines = self._lines(width=self._live.console.width - 1)
        rows = [Text(line.text, style=line.style.name.lower(), no_wrap=True) for line in lines]
        self._live.update(Group(*rows), refresh=True)

    def _lines(self, *, width: int) -> list[Line]:
        assert self._state is not None
        lines = render_state(self._state, now=utc_now(), width=width)
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
