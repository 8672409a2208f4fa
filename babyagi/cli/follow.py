"""Following an objective through its events: the one source of every view of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Protocol

from babyagi.cli.plain import describe_event
from babyagi.errors import StoreUnavailableError
from babyagi.tasks import Event
from babyagi.taskstore.base import TaskStore

logger = logging.getLogger("babyagi.events")

BATCH = 1000


class View(Protocol):
    """Something that shows an objective. `fetch` may wait; `draw` shows what was fetched, whole,
    without waiting."""

    tick_s: float  # how long `draw` may stay without a call when nothing happens
    pause_s: float  # the least time between two draws

    async def fetch(self, events: Sequence[Event]) -> None: ...

    def draw(self) -> None: ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class Follower:
    """Hands an objective's events to a view, each once and in order, from `after_id` on."""

    def __init__(
        self, store: TaskStore, objective_id: int, view: View, *, after_id: int = 0
    ) -> None:
        self._store = store
        self._objective_id = objective_id
        self._view = view
        self._after_id = after_id

    async def follow(self) -> None:
        """Show events as they come, until cancelled. A store that is busy is asked again."""
        while True:
            try:
                n_shown = await self.step()
                if n_shown < BATCH:
                    await asyncio.sleep(self._view.pause_s)
                    await self._store.wait_for_events(
                        self._objective_id, after_id=self._after_id, timeout_s=self._view.tick_s
                    )
            except StoreUnavailableError:
                await asyncio.sleep(1.0)

    async def step(self) -> int:
        """Show what has come since the last step, and return how many events that were."""
        events = await self._store.events(self._objective_id, after_id=self._after_id, limit=BATCH)
        await self._view.fetch(events)
        if events:
            self._after_id = events[-1].id
        self._view.draw()
        return len(events)

    async def drain(self) -> None:
        """Show what is left."""
        while await self.step() == BATCH:
            pass


class LoggedView:
    """A view whose events also go to the log file, one record each."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.tick_s, self.pause_s = view.tick_s, view.pause_s
        self._fresh: Sequence[Event] = ()

    async def fetch(self, events: Sequence[Event]) -> None:
        await self._view.fetch(events)
        self._fresh = events

    def draw(self) -> None:
        for event in self._fresh:
            text = describe_event(event, "")
            if text:
                logger.info(
                    "objective %d: %s",
                    event.objective_id,
                    text,
                    extra={"event": event.kind, "task_id": event.task_id},
                )
        self._fresh = ()
        self._view.draw()

    def close(self) -> None:
        self._view.close()
