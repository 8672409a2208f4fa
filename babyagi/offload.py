"""Blocking work off the event loop, so that it never waits for a disk or a server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Offload(Protocol):
    """Runs blocking work off the event loop; `asyncio.to_thread` is one. Whoever takes one says in
    how many threads it may run."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class ThreadOffload:
    """Run blocking calls in threads of its own, `n_threads` at once; with one thread, one after the
    other. Whoever made it closes it, after what uses it."""

    def __init__(self, *, name: str = "taskstore", n_threads: int = 1) -> None:
        self._executor = ThreadPoolExecutor(max_workers=n_threads, thread_name_prefix=name)

    async def __call__(self, work: Callable[[], T]) -> T:
        """Cancelling the call does not stop work that has begun."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Wait for the work that has begun, and end the thread."""
        self._executor.shutdown(wait=True, cancel_futures=True)


async def run_inline(work: Callable[[], T]) -> T:
    """The offload of a simulation: no thread, no waiting."""
    return work()
