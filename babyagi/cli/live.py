"""The live view: a picture of the objective that is redrawn in place on a terminal, and taken away
at the end."""

from __future__ import annotations

import collections
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rich.console import Group
from rich.live import Live
from rich.text import Text

from babyagi.cli.live_lines import MAX_EVENTS, MAX_NEXT, MAX_TROUBLED, Snapshot, build_lines
from babyagi.cli.plain import EventNames
from babyagi.cli.text import Line, Style, open_console, safe
from babyagi.tasks import Event, TaskStatus
from babyagi.taskstore.base import TaskStore

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
    """Draws a snapshot of the store at most eight times a second, and at least twice, because time
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
        self._snapshot: Snapshot | None = None
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
        self._snapshot = Snapshot(
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
        if self._snapshot is None:
            return
        size = shutil.get_terminal_size((80, 24))
        lines = build_lines(
            self._snapshot,
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
