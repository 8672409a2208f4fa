"""An event loop that skips waiting: when no socket has had anything to say for a moment, it is the
time of the next timer.

Client and server must both live in it, on sockets of this machine, and no thread may take part.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from babyagi.runtime.heavy_imports import import_openai
from support.world import START, World

PATIENCE_S = 0.002

T = TypeVar("T")


class _SkippingSelector(selectors.DefaultSelector):
    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0 if timeout is not None and timeout <= 0 else PATIENCE_S)
        if not events and timeout is not None:
            self.now_s += max(0.0, timeout)
        return events


class SkippingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._skipping = _SkippingSelector()
        super().__init__(self._skipping)

    def time(self) -> float:
        return self._skipping.now_s


def run_skipping(work: Coroutine[Any, Any, T]) -> T:
    import_openai()  # which a first call would do in a thread
    loop = SkippingLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def skipping_clock() -> datetime:
    """The running loop's time as a date."""
    return START + timedelta(seconds=asyncio.get_running_loop().time())


@dataclass
class SkippingWorld(World):
    """A world in which every wait is as long as it says, and over at once."""

    clock: Callable[[], datetime] = skipping_clock  # type: ignore[assignment]  # any clock will do

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
