"""The live view: a picture of the objective that is redrawn in place on a terminal, and taken away
at the end."""

from __future__ import annotations

import collections
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Group
from rich.live import Live
from rich.text import Text

from babyagi.cli import render
from babyagi.cli.json_shapes import is_rehearsal, model_of
from babyagi.cli.text import Line, Style, cell_width, fit, open_console, safe
from babyagi.cli.views import EventNames, count_serving
from babyagi.tasks import Event, Objective, Task, TaskStatus, Worker
from babyagi.taskstore.port import TaskStore

# -- the picture: what is known now in, at most so many lines out; it knows no terminal
# --------------------------------------------------------------------------------------------------

MAX_RUNNING = 8
MAX_NEXT = 5
MAX_TROUBLED = 3
MAX_EVENTS = 5
BAR_WIDTH = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """What the store said at one moment. `queued` and `troubled` may be cut short; `counts` says
    how many there are."""

    objective: Objective
    counts: Mapping[TaskStatus, int]
    running: Sequence[Task]
    queued: Sequence[Task]
    troubled: Sequence[Task]  # dead or waiting for a person
    workers: Sequence[Worker] = ()


def build_lines(
    state: LiveState, events: Sequence[str], *, now: datetime, width: int, height: int
) -> list[Line]:
    """Return the picture, the least important lines left out where `height` is short.

    Args:
        events: the latest changes in words, oldest first.
    """
    head = _head(state, width)
    tail = _tail(state)
    room = max(0, height - len(head) - len(tail))
    running = _running(state, now, width)[:room]
    troubled = _troubled(state, width)[: room - len(running)]
    queued = _next(state, width)[: room - len(running) - len(troubled)]
    history = _history(events, width)
    n_history = min(len(history), max(0, room - len(running) - len(troubled) - len(queued)))
    lines = [*head, *running, *troubled, *queued, *tail, *history[len(history) - n_history :]]
    return [
        Line(fit(line.text, width) if cell_width(line.text) > width else line.text, line.style)
        for line in lines
    ]


def _head(state: LiveState, width: int) -> list[Line]:
    objective = state.objective
    lines = [Line(render.REHEARSAL_LINE, Style.YELLOW)] if is_rehearsal(objective) else []
    lines.append(Line(fit(f"Objective {objective.id}: {objective.spec.text}", width), Style.BOLD))
    lines.append(Line(_progress(state)))
    return lines


def _progress(state: LiveState) -> str:
    n_known = sum(state.counts.values()) - state.counts.get(TaskStatus.CANCELLED, 0)
    n_over = sum(state.counts.get(status, 0) for status in render.FINISHED)
    filled = BAR_WIDTH * n_over // n_known if n_known else 0
    return (
        f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {n_over}/{n_known} tasks · "
        f"{render.render_counts(state.counts)}"
    )


def _running(state: LiveState, now: datetime, width: int) -> list[Line]:
    lines = []
    for task in state.running[:MAX_RUNNING]:
        elapsed_s = (now - task.started_at).total_seconds() if task.started_at is not None else 0.0
        head = f"  > {task.id:>4}  {render.render_duration(elapsed_s):>9}  "
        lines.append(Line(head + fit(task.name, max(10, width - len(head))), Style.BOLD))
    return lines + _more(len(state.running) - MAX_RUNNING, "running")


def _troubled(state: LiveState, width: int) -> list[Line]:
    lines = []
    for task in state.troubled[:MAX_TROUBLED]:
        head = f"  ! {task.id:>4}  {task.status.value:>9}  "
        text = f"{task.name}: {task.error}" if task.error else task.name
        style = Style.RED if task.status is TaskStatus.DEAD else Style.YELLOW
        lines.append(Line(head + fit(text, max(10, width - len(head))), style))
    n_troubled = state.counts.get(TaskStatus.DEAD, 0) + state.counts.get(TaskStatus.WAITING, 0)
    return lines + _more(n_troubled - len(lines), "dead or waiting")


def _next(state: LiveState, width: int) -> list[Line]:
    lines = []
    for task in state.queued[:MAX_NEXT]:
        after = (
            f" (after {', '.join(str(task_id) for task_id in task.after)})" if task.after else ""
        )
        head = f"    {task.id:>4}  {'queued':>9}  "
        lines.append(Line(head + fit(task.name, max(10, width - len(head) - len(after))) + after))
    return lines + _more(state.counts.get(TaskStatus.QUEUED, 0) - len(lines), "queued")


def _more(n_more: int, what: str) -> list[Line]:
    return [Line(f"          and {n_more} more {what}", Style.DIM)] if n_more > 0 else []


def _tail(state: LiveState) -> list[Line]:
    objective = state.objective
    limits = " · ".join(render.render_limits(objective, state.counts)) or "no limits"
    at_work = count_serving(state.workers, objective.id)
    return [
        Line(f"{at_work} · {model_of(objective)} · {render.render_usage(objective)}"),
        Line(f"limits: {limits}"),
    ]


def _history(events: Sequence[str], width: int) -> list[Line]:
    return [Line(fit(text, width), Style.DIM) for text in events[-MAX_EVENTS:]]


# -- the view that draws it
# --------------------------------------------------------------------------------------------------

_RICH_STYLES = {
    Style.PLAIN: "",
    Style.BOLD: "bold",
    Style.DIM: "dim",
    Style.RED: "red",
    Style.GREEN: "green",
    Style.YELLOW: "yellow",
}


def _utc_now() -> datetime:
    return datetime.now(UTC)


class LiveView:
    """Draws a state of the store at most eight times a second, and at least twice, because time
    passes on it."""

    tick_s = 0.5
    pause_s = 0.125

    def __init__(
        self, store: TaskStore, objective_id: int, *, clock: Callable[[], datetime] = _utc_now
    ) -> None:
        self._store = store
        self._objective_id = objective_id
        self._clock = clock
        self._names = EventNames(store)
        self._history: collections.deque[str] = collections.deque(maxlen=MAX_EVENTS)
        self._state: LiveState | None = None
        self._live = Live(
            console=open_console(),
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    async def fetch(self, events: Sequence[Event]) -> None:
        objective_id, store = self._objective_id, self._store
        lines = [
            line
            for event in events[-4 * MAX_EVENTS :]
            if (line := await self._names.render_event(event))
        ]
        self._state = LiveState(
            objective=await store.objective(objective_id),
            counts=await store.counts(objective_id),
            running=await store.tasks(
                objective_id, statuses=[TaskStatus.RUNNING, TaskStatus.RECORDED]
            ),
            queued=await store.tasks(objective_id, statuses=[TaskStatus.QUEUED], limit=MAX_NEXT),
            workers=await store.workers(),
            troubled=await store.tasks(
                objective_id, statuses=[TaskStatus.DEAD, TaskStatus.WAITING], limit=MAX_TROUBLED
            ),
        )
        self._history.extend(lines)

    def draw(self) -> None:
        if self._state is None:
            return
        size = shutil.get_terminal_size((80, 24))
        lines = build_lines(
            self._state,
            list(self._history),
            now=self._clock(),
            width=max(20, size.columns - 1),
            height=max(8, size.lines - 2),
        )
        self._live.update(Group(*(_to_rich(line) for line in lines)), refresh=True)

    def close(self) -> None:
        self._live.stop()


def _to_rich(line: Line) -> Text:
    return Text(safe(line.text), style=_RICH_STYLES[line.style], no_wrap=True, overflow="crop")
