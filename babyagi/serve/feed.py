"""Sends events to any number of listeners as soon as they are committed. A listener can begin after
any event and continue after a restart or at another server. It gets each event once, and the events
of an objective in their order.

One watcher waits for changes of the store and wakes all listeners. Each listener reads on from its
own place; listeners at the same place share one read. Without listeners the store is not read.
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
from babyagi.notify import event_fields
from babyagi.tasks import Event
from babyagi.taskstore.port import TaskStore

logger = logging.getLogger(__name__)

MAX_REMEMBERED = 50  # reads that listeners at the same place can share
BATCH = 200  # events that are read and sent at once
HEARTBEAT_S = 15.0
CHANGE_WAIT_S = 5.0
OUTAGE_PAUSE_S = 1.0
SETTLE_AFTER = 100  # events found at once; with so many, the settled event id is looked up again
_PLACE = re.compile(r"\d{1,16}(?:\.\d{1,16}-\d{1,16}){0,400}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which events a listener has received: every event up to the id `base`, and of each objective
    in `last_by_objective` every event up to the id given there.

    A single id would not do for a listener of all objectives: events of different objectives may be
    committed out of the order of their ids, so an event with a smaller id can still follow.
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
        """Return the same place in a shorter form, with `up_to` as its `base`. To be called only if
        the listener has every event up to that id, and no event with a lower id can still be
        added."""
        if up_to <= self.base:
            return self
        left = tuple(pair for pair in self.last_by_objective if pair[1] > up_to)
        return Place(base=up_to, last_by_objective=left)


def parse_place(text: str) -> Place | None:
    """Parse the id that was sent with an event, which is a `Place` as text. Return None if the text
    is invalid."""
    if _PLACE.fullmatch(text) is None:
        return None
    base, *rest = text.split(".")
    pairs = [one.split("-") for one in rest]
    last = tuple((int(objective_id), int(event_id)) for objective_id, event_id in pairs)
    return Place(base=int(base), last_by_objective=last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events as they are sent to a listener, which events the listener then has (its `Place`), and
    whether more events may follow at once (`is_full`)."""

    frames: bytes
    place: Place
    is_full: bool


class Feed:
    """Sends the events of a task store to listeners.

    Args:
        store: a connection to the task store that nothing else uses, because only one caller may
            wait for its changes.
    """

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self.n_listeners = 0
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        # the batches read since the last change, by objective and place
        self._memo: dict[tuple[int | None, Place], Batch] = {}
        self._reading = asyncio.Lock()
        self._settled, self._settled_at_s = 0, float("-inf")
        self._n_ended = 0  # how often all listeners were disconnected
        self.is_stopped = False

    async def watch(self) -> None:
        """Wake the listeners at each change of the store, until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                await self._store.wait_for_change(timeout_s=CHANGE_WAIT_S)
            except BabyagiError as error:
                logger.warning("changes of the store cannot be read now: %s", error.what)
                await asyncio.sleep(OUTAGE_PAUSE_S)
            self._wake()

    def stop(self) -> None:
        """End the streams of all listeners, and of listeners that come later."""
        self.is_stopped = True
        self._wake()

    def send_away(self) -> None:
        """End the streams of all current listeners. Those that still have a valid key can
        reconnect."""
        self._n_ended += 1
        self._wake()

    def _wake(self) -> None:
        self._memo = {}  # a read in progress is not cached
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
        """Yield server-sent events for a listener of one objective, or of all if `objective_id` is
        None: the events after `place`, and a comment if there is no event for a while. The stream
        ends when the feed stops or the objective is deleted."""
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
        """Return the events that a listener at this place does not have yet. They are read once for
        all listeners at that place."""
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
        found = await self._store.events_of_all(after_id=place.base, limit=BATCH)
        if len(found) >= SETTLE_AFTER and settled <= place.base:
            settled = await self._settle()
            found = await self._store.events_of_all(after_id=place.base, limit=BATCH)
        is_full, frames = len(found) == BATCH, []
        for event in found:
            if not place.has(event):
                place = place.after(event)
                frames.append(_frame(event, str(place)))
        place = place.settled(min(settled, found[-1].id) if is_full else settled)
        return Batch(frames=b"".join(frames), place=place, is_full=is_full)

    async def _settle(self) -> int:
        """Find and return the id up to which all events are committed, so that none with a smaller
        id can follow. This blocks writers for a moment, and is therefore seldom done."""
        settled = await self._store.settled_event_id()
        self._settled = max(self._settled, settled)
        self._settled_at_s = asyncio.get_running_loop().time()
        return self._settled

    async def now(self, *, max_age_s: float = 0.0) -> Place:
        """Return the `Place` at which a listener that wants only new events begins. The listener
        may also get events that were committed in the last `max_age_s` seconds."""
        age_s = asyncio.get_running_loop().time() - self._settled_at_s
        if not age_s < max_age_s:
            await self._settle()
        return Place(base=self._settled)


async def _heard(changed: asyncio.Event) -> bool:
    """Wait for a change of the store. Return False if there was none within `HEARTBEAT_S`."""
    try:
        async with asyncio.timeout(HEARTBEAT_S):
            await changed.wait()
    except TimeoutError:
        return False
    return True


def _frame(event: Event, id_: str) -> bytes:
    return f"id: {id_}\ndata: {json.dumps(event_fields(event))}\n\n".encode()
