"""One call of a tool within its time: whatever the tool does, whoever waits for it goes on."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from babyagi.tasks import Passage
from babyagi.tools.base import Tool

logger = logging.getLogger(__name__)

GRACE_S = 1.0  # for a cancelled tool to tidy up


class OutOfTimeError(Exception):
    """The call took longer than the tool may."""


class ToolExitError(Exception):
    """The tool tried to end the process or the task that it runs in."""


async def run_in_time(tool: Tool, arguments: Mapping[str, Any]) -> Passage:
    """Return what the tool gives.

    It runs in a task of its own: one that does not end when it is cancelled is left behind after
    `GRACE_S`.

    Raises:
        OutOfTimeError: `timeout_s` is over. ToolExitError: see there. Any other Exception that the
        tool raises.
    """
    call = asyncio.get_running_loop().create_task(_run(tool, arguments))
    try:
        await asyncio.wait([call], timeout=tool.timeout_s)
        if not call.done():
            raise OutOfTimeError
    finally:
        if not call.done():
            await _let_go(call, tool.name)
    error = asyncio.CancelledError() if call.cancelled() else call.exception()
    if error is not None and not isinstance(error, Exception):
        raise ToolExitError from error
    return call.result()


async def _run(tool: Tool, arguments: Mapping[str, Any]) -> Passage:
    try:
        return await tool.run(arguments)
    except SystemExit as error:  # a task would pass it on to the event loop
        raise ToolExitError from error


async def _let_go(call: asyncio.Task[Passage], name: str) -> None:
    call.cancel()
    # so that nobody is told that it was never looked at
    call.add_done_callback(lambda call: call.cancelled() or call.exception())
    await asyncio.wait([call], timeout=GRACE_S)
    if not call.done():
        logger.warning("%s goes on although it was cancelled; nobody waits for it any more", name)


async def in_thread(function: Callable[[], Any]) -> Any:
    """Return what the function returns, called in a thread of its own.

    Python cannot stop a thread. Neither the event loop nor the process waits for this one at its
    end, so that a function that hangs cannot hold up a run whose time is over.
    """
    outcome: Future[Any] = Future()
    outcome.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(function))
        except StopIteration as error:  # no future takes it
            outcome.set_exception(RuntimeError(f"the function raised {error!r}"))
        except Exception as error:
            outcome.set_exception(error)
        except BaseException as error:
            fault = ToolExitError()
            fault.__cause__ = error
            outcome.set_exception(fault)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(outcome)
