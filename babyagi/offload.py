"""Runs blocking work outside the event loop, so that the loop never waits for a disk or a
server."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Offload(Protocol):
    """A callable that runs blocking work outside the event loop, such as `asyncio.to_thread`. Code
    that takes an `Offload` says how many threads it may use."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class ThreadOffload:
    """Runs blocking calls in its own `n_threads` threads; with one thread, one after the other.
    Close it after everything that uses it.

    An executor of the standard library takes half as much time again for each call, because it
    hands the outcome from one future to another.
    """

    def __init__(self, *, name: str = "taskstore", n_threads: int = 1) -> None:
        self._name = name
        self._n_threads = n_threads
        self._n_open = 0  # calls whose work has not ended
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        # called by `close`, or when nothing can use this object any more, or the process ends
        self._end = weakref.finalize(self, _end_threads, self._calls, self._threads)

    async def __call__(self, work: Callable[[], T]) -> T:
        """Run the work in one of the threads, and return its result. Cancelling the call does not
        stop work that has begun."""
        if not self._end.alive:
            raise RuntimeError("the threads for blocking work are closed")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        if len(self._threads) < min(self._n_open + 1, self._n_threads):
            self._start_thread()
        self._n_open += 1
        self._calls.put((work, loop, done, self._settle))
        try:
            return await done
        finally:
            del done  # it holds the error, whose traceback holds this frame

    def _start_thread(self) -> None:
        name = f"{self._name}_{len(self._threads)}"
        thread = threading.Thread(target=_make_calls, args=(self._calls,), name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _settle(self, done: asyncio.Future[T], result: T, error: BaseException | None) -> None:
        self._n_open -= 1
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def close(self) -> None:
        """Wait for running work, drop work that has not begun, and end the threads."""
        with suppress(Empty):
            while call := self._calls.get_nowait():
                _, loop, done, _ = call
                _tell(loop, done.cancel)
        self._end()


_Call = tuple[
    Callable[[], Any], asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[..., None]
]
"""Work, the loop and the future of the caller that waits for it, and what settles the future."""


def _make_calls(calls: SimpleQueue[_Call | None]) -> None:
    while call := calls.get():
        work, loop, done, settle = call
        outcome = (None, None) if done.cancelled() else _try(work)
        _tell(loop, settle, done, *outcome)
        del call, work, loop, done, settle, outcome  # an idle thread holds nothing


def _try(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    # a function of its own, so that an error's traceback does not hold the future that holds it
    try:
        return work(), None
    except BaseException as error:
        return None, error


def _tell(loop: asyncio.AbstractEventLoop, *call: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed, so nobody waits
        loop.call_soon_threadsafe(*call)


def _end_threads(calls: SimpleQueue[_Call | None], threads: Sequence[threading.Thread]) -> None:
    for _ in threads:
        calls.put(None)
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join()


async def run_inline(work: Callable[[], T]) -> T:
    """Run the work in the calling thread; for simulations."""
    return work()


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine from code that is not async, and return what it returns.

    If an event loop is running already, as in a notebook, the coroutine runs in a new loop in a
    thread, and the caller's loop is blocked meanwhile. Ctrl-C cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    runner = _Runner(work)
    thread = threading.Thread(target=contextvars.copy_context().run, args=(runner.run,))
    thread.start()
    while thread.is_alive():
        try:
            thread.join()
        except KeyboardInterrupt as error:
            runner.interrupt(error)
    return runner.result()


async def call_either(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, async or not, and return its result. One that is not async runs in a
    thread."""
    if inspect.iscoroutinefunction(function):
        given = function(*args)
    else:
        given = await asyncio.to_thread(function, *args)
    return await given if inspect.isawaitable(given) else given


class _Runner(Generic[T]):
    """Runs a coroutine in an event loop of its own, and keeps its outcome."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._done: list[T] = []
        self._error: BaseException | None = None
        self._interrupted: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None

    def run(self) -> None:
        async def work() -> T:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            return await self._work

        try:
            self._done.append(asyncio.run(work()))
        except BaseException as error:
            self._error = error

    def interrupt(self, error: BaseException) -> None:
        self._interrupted = error
        if self._loop is None or self._task is None:
            return
        with suppress(RuntimeError):  # it has just ended
            self._loop.call_soon_threadsafe(self._task.cancel)

    def result(self) -> T:
        if self._interrupted is not None:
            raise self._interrupted
        if self._error is not None:
            raise self._error
        return self._done[0]
