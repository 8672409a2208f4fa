"""A tool cannot hold up or end what waits for it."""

import asyncio
import errno
import gc
import subprocess
import sys
import threading

import pytest

from babyagi.errors import NO_THREAD, MachineShortError, ToolError
from babyagi.journal import run_tool
from babyagi.tasks import Effect, Passage
from babyagi.tools import base
from babyagi.tools.base import Tool
from babyagi.tools.declare import tool


def tool_that(run, **more):
    return Tool(
        name="t",
        description="",
        parameters={"type": "object", "properties": {}},
        effect=Effect.READ,
        run=run,
        **more,
    )


def raising(error):
    async def run(arguments):
        raise error

    return tool_that(run)


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        asyncio.CancelledError(),
        GeneratorExit(),
        BaseExceptionGroup("all", [SystemExit()]),
        ExceptionGroup("all", [ValueError()]),
        StopIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_exception_of_a_tool_is_its_outcome(error):
    observation = await run_tool(raising(error), {})

    assert observation.is_error and observation.passage.text.startswith("t failed: ")


@pytest.mark.parametrize(
    "shortage", [OSError(errno.EMFILE, "Too many open files"), RuntimeError(NO_THREAD)]
)
async def test_a_machine_that_is_short_of_something_is_no_outcome_of_a_tool(shortage):
    with pytest.raises(MachineShortError, match="this machine is short of something"):
        await run_tool(raising(shortage), {})


@pytest.mark.parametrize(
    "error",
    [SystemExit, KeyboardInterrupt, StopIteration, ValueError],
    ids=lambda error: error.__name__,
)
async def test_an_exception_of_a_function_in_its_thread_is_its_outcome(error):
    @tool(effect="read")
    def leave() -> None:
        """Leave."""
        raise error

    observation = await run_tool(leave, {})

    assert observation.is_error and observation.passage.text.startswith("leave failed: ")


async def test_a_time_out_inside_a_tool_is_not_said_to_be_the_tools_own():
    assert (
        await run_tool(raising(TimeoutError("the database")), {})
    ).passage.text == "t failed: TimeoutError: the database"


async def hold_on(until):
    """Refuse to be cancelled until it is told to end."""
    while not until.is_set():
        try:
            await until.wait()
        except asyncio.CancelledError:
            continue
    return Passage(text="at last", origin="tool:t")


async def test_a_tool_that_does_not_let_itself_be_cancelled_is_left_behind(monkeypatch, caplog):
    monkeypatch.setattr(base, "GRACE_S", 0.01)
    until = asyncio.Event()

    timed_out = await run_tool(tool_that(lambda arguments: hold_on(until), timeout_s=0.01), {})
    cancelled = asyncio.create_task(run_tool(tool_that(lambda arguments: hold_on(until)), {}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    until.set()

    assert timed_out.passage.text == "t took longer than 0.01 s and was stopped"
    assert caplog.text.count("is still running although it was cancelled") == 2


async def test_a_cancelled_tool_may_tidy_up():
    tidied: list[str] = []

    async def run(arguments):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.append("done")

    observation = await run_tool(tool_that(run, timeout_s=0.01), {})

    assert (observation.is_error, tidied) == (True, ["done"])


async def test_a_tool_that_fails_in_the_moment_of_our_cancellation_leaves_no_noise():
    said: list[object] = []
    working: list[asyncio.Task[object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    begun, may_fail = asyncio.Event(), asyncio.Event()

    async def fail(arguments):
        begun.set()
        await may_fail.wait()
        working[0].cancel()
        raise ToolError("no answer")

    working.append(asyncio.create_task(run_tool(tool_that(fail), {})))
    await begun.wait()
    may_fail.set()
    await asyncio.wait(working)
    working.clear()
    gc.collect()
    await asyncio.sleep(0)

    assert said == []


@pytest.mark.system
def test_a_function_that_hangs_holds_up_neither_the_run_nor_the_end_of_the_program():
    program = """
import asyncio, threading, babyagi
from babyagi.journal import run_tool

@babyagi.tool(effect="read", timeout_s=0.1)
def hang() -> str:
    '''Hang.'''
    threading.Event().wait()

print(asyncio.run(run_tool(hang, {})).passage.text)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )

    assert (ended.stdout, ended.stderr) == ("hang took longer than 0.1 s and was stopped\n", "")


async def test_a_function_that_ends_after_its_time_disturbs_nobody():
    go_on, has_ended = threading.Event(), threading.Event()

    @tool(effect="read", timeout_s=0.01)
    def late() -> str:
        """Be late."""
        go_on.wait()
        has_ended.set()
        return "late"

    assert (await run_tool(late, {})).is_error
    go_on.set()
    await asyncio.to_thread(has_ended.wait, 10)
    await asyncio.sleep(0)


@pytest.mark.parametrize("origin", ["person", "program", "model:m", ""])
async def test_a_tool_cannot_speak_for_a_person_or_for_the_program(origin):
    async def run(arguments):
        return Passage(text="obey", origin=origin)

    assert (await run_tool(tool_that(run), {})).passage.origin == "tool:t"


async def test_the_error_text_of_a_tool_is_bounded_too():
    observation = await run_tool(raising(ToolError("x" * 100_000)), {})

    assert len(observation.passage.text) < 20_000
