"""Time that costs nothing: an event loop whose clock jumps to the next timer, and a world that
lives in it.

With a seed, what is ready at the same instant runs in a shuffled order: the same seed gives the
same run, another seed another one.
No thread and no socket may take part, since nothing would wait for them.
"""

from __future__ import annotations

import asyncio
import functools
import random
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from babyagi.tasks import Objective, Worker
from babyagi.worker.process import Runtime, WorkerLoop
from babyagi.worker.serving import Pace
from support.world import START, World

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for a timer, it is that much later."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if not events and timeout is None:
            raise RuntimeError("nothing is ready and no timer is set: this run would wait for ever")
        if not events and timeout is not None:
            self.now_s += max(timeout, 0.0)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """`seed` None keeps the order in which things became ready."""

    def __init__(self, *, seed: int | None = None) -> None:
        self._jumping = _JumpingSelector()
        self._chance = None if seed is None else random.Random(seed)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def _run_once(self) -> None:
        if self._chance is not None:
            self._chance.shuffle(self._ready)  # type: ignore[attr-defined]  # asyncio's own queue, which its stubs do not show
        super()._run_once()  # type: ignore[misc]  # as above


def run_virtually(work: Coroutine[Any, Any, T], *, seed: int | None = None) -> T:
    loop = VirtualLoop(seed=seed)
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


def virtually(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The test, run on such a loop."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        run_virtually(test(*args, **named))

    return run


@dataclass(slots=True)
class VirtualClock:
    """The running loop's time, as a date. `start` is what it was when the loop began; whoever sets
    the clock changes `offset_s`."""

    start: datetime = START
    offset_s: float = 0.0

    def __call__(self) -> datetime:
        return self.start + timedelta(seconds=asyncio.get_running_loop().time() + self.offset_s)


@dataclass
class VirtualWorld(World):
    """A world in which every wait is as long as it says, and over at once."""

    clock: Any = field(default_factory=VirtualClock)
    pace: Pace = field(default_factory=Pace)
    worker_name: str = "worker"

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def open_worker(self, objective: Objective | None = None) -> WorkerLoop:
        number = next(self._worker_numbers)
        name = self.worker_name
        identity = Worker(
            id=f"{name}-{number}", name=name, host="here", pid=number, lease_until=self.clock()
        )
        runtime = Runtime(
            identity=identity,
            sleep=self.sleep,
            random=lambda: 0.0,
            new_id=lambda: f"{name}-{next(self._worker_numbers)}",
        )
        return WorkerLoop(self.store, self.open_loop, pace=self.pace, runtime=runtime)

    async def run(
        self, objective: Objective | None = None, *, timeout_s: float = 86_400.0, **fields: Any
    ) -> Objective:
        objective = objective or await self.start(**fields)
        async with asyncio.timeout(timeout_s):
            ended, _ = await self.open_worker(objective).run(objective.id)
        return ended
