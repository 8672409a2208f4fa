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
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from babyagi.errors import BabyagiError, NotFoundError
from babyagi.tasks import Event
from babyagi.taskstore.sql.store import TaskStore
from babyagi.worker.notify import event_fields

logger = logging.getLogger(__name__)

MAX_REMEMBERED = 50  # reads that are kept for other listeners until the next change
BATCH = 200  # how many events are read and sent at once
HEARTBEAT_S = 15.0
CHANGE_WAIT_S = 5.0
OUTAGE_PAUSE_S = 1.0
SETTLE_AFTER = 100  # after a read of so many events, the settled event id is looked up again
_PLACE = re.compile(r"\d{1,16}(?:\.\d{1,16}-\d{1,16}){0,400}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which events a listener has received: all events up to the id `base`, and of each objective
    in `last_by_objective` all events up to the id given there.

    For a listener of all objectives, one id is not enough: events of different objectives are not
    always committed in the order of their ids, so that an event with a smaller id may still follow.
    """

    base: int = 0
    last_by_objective: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        pairs = (f"{one}-{last}" for one, last in self.last_by_objective)
        return ".".join([str(self.base), *pairs])

    def has(self, event: Event) -> bool:
        last = dict(self.last_by_objective).get(event.objective_id, 0)
        return event.id <= max(self.base, last)

    def after(self, event: Event) -> Place:
        known = {**dict(self.last_by_objective), event.objective_id: event.id}
        return Place(base=self.base, last_by_objective=tuple(sorted(known.items())))

    def settled(self, up_to: int) -> Place:
        """Return the same place in a shorter form, with `up_to` as its `base`. The listener must
        have all events up to that id, and no event with a smaller id may follow."""
        if up_to <= self.base:
            return self
        left = tuple(pair for pair in self.last_by_objective if pair[1] > up_to)
        return Place(base=up_to, last_by_objective=left)


def parse_place(text: str) -> Place | None:
    """Return the `Place` from its text, which is sent with an event as the event's id; None if the
    text is invalid."""
    if _PLACE.fullmatch(text) is None:
        return None
    base, *rest = text.split(".")
    pairs = [one.split("-") for one in rest]
    last = tuple((int(objective_id), int(event_id)) for objective_id, event_id in pairs)
    return Place(base=int(base), last_by_objective=last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events for a listener.

    Attributes:
        frames: the events as server-sent events.
        place: the place of the listener after it has received them.
        is_full: whether more events may be in the store already.
    """

    frames: bytes
    place: Place
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
        # the batches that were read since the last change, by objective and place
        self._memo: dict[tuple[int | None, Place], Batch] = {}
        self._reading = asyncio.Lock()
        self._settled, self._settled_at_s = 0, float("-inf")
        self._n_ended = 0  # how often all listeners were disconnected
        self.is_stopped = False

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
        self.is_stopped = True
        self._wake()

    def send_away(self) -> None:
        """End the streams of all current listeners. They can reconnect if their key is still
        valid."""
        self._n_ended += 1
        self._wake()

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

    async def listen(self, objective_id: int | None, place: Place) -> AsyncGenerator[bytes, None]:
        """Yield the events after `place` as server-sent events, and a comment after `HEARTBEAT_S`
        without one. The stream ends if the feed stops or the objective is deleted.

        Args:
            objective_id: the objective whose events are wanted; None for all objectives.
        """
        n_ended = self._n_ended
        with self._listening():
            yield b"retry: 1000\n: listening\n\n"
            while not self.is_stopped and n_ended == self._n_ended:
                changed = self._changed  # taken before the read, so that no change is missed
                try:
                    batch = await self._read(objective_id, place)
                except NotFoundError:
                    yield b"event: gone\ndata: {}\n\n"
                    return
                except BabyagiError:
                    await asyncio.sleep(OUTAGE_PAUSE_S)
                    yield b": the task store is away\n\n"
                    continue
                if batch.frames:
                    yield batch.frames
                place = batch.place
                if not batch.is_full and not await _heard(changed):
                    yield b": nothing new\n\n"

    async def _read(self, objective_id: int | None, place: Place) -> Batch:
        """Return the events after a place. They are read once for all listeners at this place."""
        memo, key = self._memo, (objective_id, place)
        async with self._reading:
            if key not in memo:
                batch = await self._read_store(objective_id, place)
                if len(memo) >= MAX_REMEMBERED:
                    return batch
                memo[key] = batch
            return memo[key]

    async def _read_store(self, objective_id: int | None, place: Place) -> Batch:
        if objective_id is not None:
            found = await self._store.events(objective_id, after_id=place.base, limit=BATCH)
            frames = [_frame(event, str(event.id)) for event in found]
            end = Place(base=found[-1].id) if found else place
            return Batch(frames=b"".join(frames), place=end, is_full=len(found) == BATCH)
        settled = self._settled  # taken before the read, which then finds every event up to this id
        found = await self._store.events(None, after_id=place.base, limit=BATCH)
        if len(found) >= SETTLE_AFTER and settled <= place.base:
            settled = await self._settle()
            found = await self._store.events(None, after_id=place.base, limit=BATCH)
        is_full, frames = len(found) == BATCH, []
        for event in found:
            if not place.has(event):
                place = place.after(event)
                frames.append(_frame(event, str(place)))
        place = place.settled(min(settled, found[-1].id) if is_full else settled)
        return Batch(frames=b"".join(frames), place=place, is_full=is_full)

    async def _settle(self) -> int:
        """Return the id up to which all events are committed, so that none with a smaller id can
        follow. Finding it blocks writers for a moment, so it is done seldom."""
        settled = await self._store.last_event_id(None)
        self._settled = max(self._settled, settled)
        self._settled_at_s = asyncio.get_running_loop().time()
        return self._settled

    async def now(self, *, max_age_s: float = 0.0) -> Place:
        """Return the place at which a listener of new events begins. The listener may also get
        events of the last `max_age_s` seconds."""
        age_s = asyncio.get_running_loop().time() - self._settled_at_s
        if not age_s < max_age_s:
            await self._settle()
        return Place(base=self._settled)


async def _heard(changed: asyncio.Event) -> bool:
    """Wait for a change of the store, at most `HEARTBEAT_S`. Return whether there was one."""
    try:
        async with asyncio.timeout(HEARTBEAT_S):
            await changed.wait()
    except TimeoutError:
        return False
    return True


def _frame(event: Event, id_: str) -> bytes:
    return f"id: {id_}\ndata: {json.dumps(event_fields(event))}\n\n".encode()
