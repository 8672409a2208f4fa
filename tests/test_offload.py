"""Blocking work in threads: what the caller gets, and what becomes of work that nobody waits for."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from contextlib import suppress

import pytest

from babyagi.offload import ThreadOffload


@pytest.fixture
def offload():
    offload = ThreadOffload(name="test")
    yield offload
    offload.close()


def fail():
    raise LookupError("not there")


async def test_work_runs_in_a_thread_of_that_name_and_its_outcome_comes_back(offload):
    assert await offload(lambda: threading.current_thread().name) == "test_0"
    with pytest.raises(LookupError, match="not there"):
        await offload(fail)
    assert await offload(lambda: 3) == 3


async def test_with_one_thread_work_runs_in_the_order_of_the_calls(offload):
    made: list[int] = []

    await asyncio.gather(*(offload(lambda n=n: made.append(n)) for n in range(20)))

    assert made == list(range(20))


async def test_work_that_waits_is_dropped_when_its_call_is_cancelled(offload):
    made: list[str] = []
    may_end = threading.Event()
    busy = asyncio.create_task(offload(may_end.wait))
    waiting = asyncio.create_task(offload(lambda: made.append("waiting")))
    await asyncio.sleep(0)

    waiting.cancel()
    may_end.set()
    await busy
    await offload(lambda: made.append("later"))

    assert made == ["later"]


async def test_work_that_has_begun_runs_to_its_end_when_its_call_is_cancelled(offload):
    has_begun, may_end, made = threading.Event(), threading.Event(), list[str]()

    def work():
        has_begun.set()
        may_end.wait()
        made.append("begun")

    call = asyncio.create_task(offload(work))
    await asyncio.to_thread(has_begun.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    may_end.set()
    await offload(lambda: None)

    assert made == ["begun"]


async def test_closing_waits_for_running_work_and_cancels_the_calls_that_wait():
    offload, has_begun, may_end, made = (
        ThreadOffload(),
        threading.Event(),
        threading.Event(),
        list[str](),
    )

    def work():
        has_begun.set()
        may_end.wait()
        made.append("running")

    running = asyncio.create_task(offload(work))
    waiting = asyncio.create_task(offload(lambda: made.append("waiting")))
    await asyncio.to_thread(has_begun.wait)
    threading.Timer(0.05, may_end.set).start()

    offload.close()

    assert made == ["running"]
    await running
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(RuntimeError, match="closed"):
        await offload(lambda: None)
    offload.close()


async def test_another_thread_is_started_only_for_work_that_would_wait():
    offload = ThreadOffload(n_threads=2)
    for _ in range(3):
        await offload(lambda: None)
    assert len(offload._threads) == 1

    together = threading.Barrier(2, timeout=30)
    await asyncio.gather(offload(together.wait), offload(together.wait))
    may_end = threading.Event()
    left = asyncio.create_task(offload(may_end.wait))
    await asyncio.sleep(0)
    left.cancel()

    assert await offload(lambda: "not behind what was left") == "not behind what was left"

    may_end.set()
    offload.close()
    assert not any(thread.is_alive() for thread in offload._threads)


def test_a_loop_that_was_closed_meanwhile_does_not_end_the_thread():
    offload, may_end = ThreadOffload(), threading.Event()

    async def leave():
        call = asyncio.create_task(offload(may_end.wait))
        await asyncio.sleep(0)
        call.cancel()

    asyncio.run(leave())
    may_end.set()

    assert asyncio.run(offload(lambda: "still there")) == "still there"
    offload.close()


async def test_nothing_of_a_call_is_held_once_it_has_ended(offload):
    class Held:
        def fail(self):
            raise LookupError("not there")

    gc.disable()
    try:
        held = Held()
        gone = weakref.ref(held)
        with suppress(LookupError):
            await offload(held.fail)
        del held
        await offload(lambda: None)
        assert gone() is None
    finally:
        gc.enable()


def test_threads_end_with_the_last_reference_to_them():
    offload = ThreadOffload()
    asyncio.run(offload(lambda: None))
    (thread,) = offload._threads

    del offload
    gc.collect()

    thread.join(timeout=30)
    assert not thread.is_alive()


@pytest.mark.system
def test_a_process_that_closes_nothing_ends_after_its_running_work():
    code = """
import asyncio, time
from babyagi.offload import ThreadOffload
offload = ThreadOffload()

def work():
    time.sleep(0.2)
    print("ended", flush=True)

async def main():
    call = asyncio.create_task(offload(work))
    await asyncio.sleep(0.05)
    call.cancel()

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "ended\n"
