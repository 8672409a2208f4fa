"""Runs blocking work outside the event loop, so that the loop never waits for a disk or a server;
and waits in the loop for a time or an event."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import AsyncGeneratorType
from typing import Any, Generic, Protocol, TypeVar, cast

T = TypeVar("T")


class Offload(Protocol):
    """A callable that runs blocking work outside the event loop, such as `asyncio.to_thread`. Code
    that takes an `Offload` says how many threads it may use."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class ThreadOffload:
    """Runs blocking calls in its own `n_threads` threads; with one thread, one after the other.
    Close it after everything that uses it."""

    def __init__(self, *, name: str = "taskstore", n_threads: int = 1) -> None:
        self._executor = ThreadPoolExecutor(max_workers=n_threads, thread_name_prefix=name)

    async def __call__(self, work: Callable[[], T]) -> T:
        """Run the work in one of the threads, and return its result. Cancelling the call does not
        stop work that has begun."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Wait for running work, drop work that has not begun, and end the threads."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def now_s() -> float:
    """Return the time of the running event loop, in monotonic seconds."""
    return asyncio.get_running_loop().time()


async def wait_at_most(event: asyncio.Event, timeout_s: float) -> None:
    """Wait until the event is set, but at most `timeout_s` seconds."""
    # `wait_for` of Python 3.11 swallows a cancellation that comes with the event
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()


async def run_inline(work: Callable[[], T]) -> T:
    """Run the work in the calling thread; for simulations."""
    return work()


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine from code that is not async, and return what it returns.

    If an event loop is running already, as in a notebook, the coroutine runs in a loop of its own,
    and the caller's loop is blocked meanwhile. Ctrl-C cancels it, and waits for its end.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with _loop_in_thread() as wait:
        try:
            return wait(work)
        except KeyboardInterrupt:
            wait(_settle())
            raise


async def _settle() -> None:
    """Wait for the end of all other work of the loop."""
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


@contextmanager
def _loop_in_thread() -> Iterator[Callable[[Coroutine[Any, Any, T]], T]]:
    """During the context, an event loop runs in a thread. Yield a function that runs a coroutine
    there and returns its result; an interruption of its caller cancels the coroutine."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()

    def wait(work: Coroutine[Any, Any, T]) -> T:
        pending = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return pending.result()
        except BaseException:  # Ctrl-C while nothing happened
            pending.cancel()
            raise

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield wait
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def call_either(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, async or not, and return its result. One that is not async runs in a
    thread."""
    if inspect.iscoroutinefunction(function):
        given = function(*args)
    else:
        given = await asyncio.to_thread(function, *args)
    return await given if inspect.isawaitable(given) else given


class Told(Generic[T]):
    """What happens, for a program that reads it with `for` or `async for`. Each reading begins
    anew."""

    def __init__(self, tell: Callable[[], AsyncGenerator[T, None]]) -> None:
        self._tell = tell

    def __aiter__(self) -> AsyncGenerator[T, None]:
        return self._tell()

    def __iter__(self) -> Generator[T, None, None]:
        """Yield in code that is not async; the work has its own event loop, in a thread."""
        with _loop_in_thread() as wait:
            told = self._tell()
            try:
                while True:
                    try:
                        event = wait(_next(told))
                    except StopAsyncIteration:
                        return
                    yield event
            finally:
                wait(_close(told))


async def _next(told: AsyncGenerator[T, None]) -> T:
    return await told.__anext__()


async def _close(told: AsyncGenerator[Any, None]) -> None:
    generator = cast(AsyncGeneratorType[Any, None], told)
    # a cancelled run lets its calls end
    while generator.ag_running:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await told.aclose()
