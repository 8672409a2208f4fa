"""Events as they are committed, for any number of listeners: each once, in the order of its
objective, from any event on, over restarts and over several servers.

One watcher waits for the store and wakes all; each listener reads on from where it is, and what
many read at the same place is read once. With no listener nobody waits and nothing is asked.
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

MAX_REMEMBERED = 50
BATCH = 200  # events that a listener is sent before it must have taken them
HEARTBEAT_S = 15.0
CHANGE_WAIT_S = 5.0
OUTAGE_PAUSE_S = 1.0
SETTLE_AFTER = 100  # events of all that may be overtaken by one that is committed later
_PLACE = re.compile(r"\d{1,16}(?:\.\d{1,16}-\d{1,16}){0,400}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a listener of all objectives is: it has every event up to `base`, and of the objectives
    in `last_by_objective` every one up to the id that stands there.

    Events of several objectives need not be committed in the order of their ids, so one number
    alone could pass over one that comes late.
    """

    base: int = 0
    last_by_objective: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return ".".join(
            [str(self.base), *(f"{one}-{last}" for one, last in self.last_by_objective)]
        )

    def has(self, event: Event) -> bool:
        last = dict(self.last_by_objective).get(event.objective_id, 0)
        return event.id <= max(self.base, last)

    def after(self, event: Event) -> Place:
        known = {**dict(self.last_by_objective), event.objective_id: event.id}
        return Place(base=self.base, last_by_objective=tuple(sorted(known.items())))

    def settled(self, up_to: int) -> Place:
        """The same, knowing that nothing else comes up to that id."""
        if up_to <= self.base:
            return self
        left = tuple(pair for pair in self.last_by_objective if pair[1] > up_to)
        return Place(base=up_to, last_by_objective=left)


def parse_place(text: str) -> Place | None:
    """The place that was sent as the id of an event, None where it is none."""
    if _PLACE.fullmatch(text) is None:
        return None
    base, *rest = text.split(".")
    pairs = [one.split("-") for one in rest]
    return Place(
        base=int(base), last_by_objective=tuple((int(one), int(last)) for one, last in pairs)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events as a listener gets them, and where it is then."""

    frames: bytes
    place: Place
    is_full: bool


class Feed:
    """Args: store: of its own; nobody else may wait for its changes."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._n_listeners = 0
        self._wanted = asyncio.Event()
        self._changed = asyncio.Event()
        # what was read since the last change, by where it was read from
        self._memo: dict[tuple[int | None, Place], Batch] = {}
        self._reading = asyncio.Lock()
        self._settled, self._settled_at_s = 0, float("-inf")
        self.is_stopped = False

    @property
    def n_listeners(self) -> int:
        return self._n_listeners

    async def watch(self) -> None:
        """Wake the listeners at each change of the store, until cancelled."""
        while True:
            await self._wanted.wait()
            try:
                await self._store.wait_for_change(timeout_s=CHANGE_WAIT_S)
            except BabyagiError as error:
                logger.warning("changes cannot be seen now: %s", error.what)
                await asyncio.sleep(OUTAGE_PAUSE_S)
            self._wake()

    def stop(self) -> None:
        """End what is sent to every listener."""
        self.is_stopped = True
        self._wake()

    def _wake(self) -> None:
        self._memo = {}  # what is being read now is kept for nobody
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        self._n_listeners += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._n_listeners -= 1
            if not self._n_listeners:
                self._wanted.clear()

    async def listen(self, objective_id: int | None, place: Place) -> AsyncGenerator[bytes, None]:
        """What is sent to a listener of one objective, or of all: frames of events, and a comment
        where nothing happens, until the feed stops or the objective is gone."""
        with self._listening():
            yield b"retry: 1000\n: listening\n\n"
            while not self.is_stopped:
                changed = self._changed  # before the look: what comes during it is a new change
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
        """Read on from a place, once for all who are there."""
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
        settled = self._settled  # before the read: what came up to there is in it
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
        """See up to where nothing is still to come. Whoever writes waits for a moment, so it is
        seldom done."""
        settled = await self._store.settled_event_id()
        self._settled = max(self._settled, settled)
        self._settled_at_s = asyncio.get_running_loop().time()
        return self._settled

    async def now(self, *, max_age_s: float = 0.0) -> Place:
        """The place of whoever has everything that was committed so many seconds ago."""
        age_s = asyncio.get_running_loop().time() - self._settled_at_s
        if not age_s < max_age_s:
            await self._settle()
        return Place(base=self._settled)


async def _heard(changed: asyncio.Event) -> bool:
    """Whether something changed within the time of a heartbeat."""
    try:
        async with asyncio.timeout(HEARTBEAT_S):
            await changed.wait()
    except TimeoutError:
        return False
    return True


def _frame(event: Event, id_: str) -> bytes:
    return f"id: {id_}\ndata: {json.dumps(event_fields(event))}\n\n".encode()
