"""Sends events of the task store to any number of listeners as soon as they are committed.

A listener can begin after any event, and can go on after a restart or at another server. It gets
each event once, and the events of an objective in their order.

One watcher (`Feed.watch`) waits for changes of the store and wakes all listeners. Each listener
then reads on from its own place; listeners at the same place share one read. While there are no
listeners, the store is not read.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from babyagi.errors import BabyagiError, NotFoundError
from babyagi.runtime.offload import wait_at_most
from babyagi.tasks import Event
from babyagi.taskstore.sql.store import TaskStore
from babyagi.worker.notify import event_fields

logger = logging.getLogger(__name__)

BATCH = 200  # how many events are read and sent at once
HEARTBEAT_S = 15.0
CHANGE_WAIT_S = 5.0
OUTAGE_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events for a listener.

    Attributes:
        frames: the events as server-sent events.
        last_id: the id of the last one, or that after which they were read if there is none.
        is_full: whether more events may be in the store already.
    """

    frames: bytes
    last_id: int
    is_full: bool


class Feed:
    """Sends the events of a task store to listeners.

    Args:
        store: a connection to the task store that is used only here, because only one caller can
            wait for its changes.
    """

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self.n_listeners = 0
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        # the batches that were read since the last change, by objective and the id before them
        self._memo: dict[tuple[int | None, int], Batch] = {}
        self._reading = asyncio.Lock()
        self._ended = asyncio.Event()  # ends the streams that began since it was made

    async def watch(self) -> None:
        """Wake the listeners at each change of the store. Runs until it is cancelled."""
        while True:
            await self._wanted.wait()
            try:
                await self._store.wait_for_change(timeout_s=CHANGE_WAIT_S)
            except BabyagiError as error:
                logger.warning("live events are delayed, the store cannot be read: %s", error.what)
                await asyncio.sleep(OUTAGE_PAUSE_S)
            self._wake()

    def stop(self) -> None:
        """End the streams of all listeners, also of those that come later."""
        self._ended.set()
        self._wake()

    def send_away(self) -> None:
        """End the streams of all current listeners. They can reconnect if their key is still
        valid."""
        self.stop()
        self._ended = asyncio.Event()

    def _wake(self) -> None:
        self._memo = {}  # a read in progress puts its batch into the old dictionary
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        self.n_listeners += 1
        self._wanted.set()
        try:
            yield
        finally:
            self.n_listeners -= 1
            if not self.n_listeners:
                self._wanted.clear()

    async def listen(self, objective_id: int | None, after: int) -> AsyncGenerator[bytes, None]:
        """Yield the events after the id `after` as server-sent events, and a comment after
        `HEARTBEAT_S` without one. The stream ends if the feed stops or the objective is deleted.

        Args:
            objective_id: the objective whose events are wanted; None for all objectives.
        """
        ended = self._ended
        with self._listening():
            yield b"retry: 1000\n: listening\n\n"
            while not ended.is_set():
                changed = self._changed  # taken before the read, so that no change is missed
                try:
                    batch = await self._read(objective_id, after)
                except NotFoundError:
                    yield b"event: gone\ndata: {}\n\n"
                    return
                except BabyagiError:
                    await asyncio.sleep(OUTAGE_PAUSE_S)
                    yield b": the task store is away\n\n"
                    continue
                if batch.frames:
                    yield batch.frames
                after = batch.last_id
                if not batch.is_full:
                    await wait_at_most(changed, HEARTBEAT_S)
                    yield b"" if changed.is_set() else b": nothing new\n\n"

    async def _read(self, objective_id: int | None, after: int) -> Batch:
        """Return the events after an id. They are read once for all listeners at this place."""
        memo, key = self._memo, (objective_id, after)
        async with self._reading:
            if key not in memo:
                # with all objectives, as far as no event with a smaller id can follow, because they
                # are not always committed in the order of their ids
                last = None if objective_id else await self._store.last_event_id(None)
                found = await self._store.events(objective_id, after_id=after, limit=BATCH)
                told = [event for event in found if last is None or event.id <= last]
                memo[key] = Batch(
                    frames=b"".join(map(_frame, told)),
                    last_id=told[-1].id if told else after,
                    is_full=len(told) == BATCH,
                )
            return memo[key]


def _frame(event: Event) -> bytes:
    return f"id: {event.id}\ndata: {json.dumps(event_fields(event))}\n\n".encode()
