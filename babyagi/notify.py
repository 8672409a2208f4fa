"""Telling somebody outside that a run waits or has ended: a command or an address that the person
named gets the event as JSON.

What goes wrong with it is logged and never reaches the run. Nothing here chooses an address: the
person did, so one inside the own network is fine; a redirect to another one is not followed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from babyagi import events
from babyagi.errors import BabyagiError
from babyagi.net.addresses import Proxies
from babyagi.tasks import Event
from babyagi.taskstore.port import TaskStore

logger = logging.getLogger(__name__)

T = TypeVar("T")
Send = Callable[[str], Awaitable[None]]

TIMEOUT_S = 10.0
POLL_S = 5.0


def event_fields(event: Event) -> dict[str, Any]:
    """An event as it leaves the program."""
    return {
        "v": events.EVENT_VERSION,
        "id": event.id,
        "at": event.at.isoformat(),
        "objective_id": event.objective_id,
        "task_id": event.task_id,
        "kind": event.kind,
        "data": dict(event.data),
    }


class Notifier:
    """Sends `task.parked` as it happens, and `objective.ended` when the report is there."""

    def __init__(self, store: TaskStore, send: Send) -> None:
        self._store = store
        self._send = send
        self._sending = asyncio.Lock()

    async def watch(self, objective_id: int, work: Coroutine[Any, Any, T]) -> T:
        """Await the work, and notify of what happens meanwhile. Sending holds the end up by twice
        `TIMEOUT_S` at most."""
        began_id = await self._store.last_event_id(objective_id)
        following = asyncio.ensure_future(self._follow(objective_id, began_id))
        try:
            return await work
        finally:
            # what is being told is told to its end, and before the end of the run
            async with self._sending:
                following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            await self._send_end(objective_id, began_id)

    async def _follow(self, objective_id: int, after_id: int) -> None:
        while True:
            try:
                await self._store.wait_for_events(objective_id, after_id=after_id, timeout_s=POLL_S)
                for event in await self._store.events(objective_id, after_id=after_id):
                    after_id = event.id
                    if event.kind == events.TASK_PARKED:
                        await self._try_to_send(event)
            except BabyagiError as error:
                logger.warning(
                    "the events could not be read, notifications are late: %s", error.what
                )
                await asyncio.sleep(POLL_S)

    async def _send_end(self, objective_id: int, after_id: int) -> None:
        try:
            objective, last_id = await self._store.objective(objective_id), after_id
            ends: list[Event] = []
            while batch := await self._store.events(objective_id, after_id=last_id):
                last_id = batch[-1].id
                ends += [event for event in batch if event.kind == events.OBJECTIVE_ENDED]
            if objective.stop_reason is not None and ends:
                await self._try_to_send(ends[-1])
        except BabyagiError as error:
            logger.warning("nobody was told how the run ended: %s", error.what)

    async def _try_to_send(self, event: Event) -> None:
        try:
            async with self._sending, asyncio.timeout(TIMEOUT_S):
                await self._send(json.dumps(event_fields(event)))
        except TimeoutError:
            logger.warning(
                "the notification of %s took longer than %g s and was given up",
                event.kind,
                TIMEOUT_S,
            )
        except Exception as error:  # whatever a person's command or address does, the run goes on
            logger.warning("the notification of %s failed: %s", event.kind, _say_fault(error))


def _say_fault(error: Exception) -> str:
    if isinstance(error, UndeliveredError):
        return str(error)
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


class UndeliveredError(Exception):
    """What went wrong with a notification, in words of ours: those of others may hold the address,
    or a part of it."""


def make_sender(target: str, *, environ: Mapping[str, str], proxies: Proxies | None = None) -> Send:
    """What takes the JSON of an event to `target`: an http or https address, or a command, which is
    run without a shell.

    Args:
        environ: all that the command gets as its environment.
    """
    if target.startswith(("http://", "https://")):
        return lambda text: _post(target, text, (proxies or Proxies()).find(target))
    return lambda text: _run_command(shlex.split(target), text, environ)


async def _run_command(command: list[str], text: str, environ: Mapping[str, str]) -> None:
    """Run the command with the text on its standard input; it and what it started are killed when
    they are not done in time."""
    silent = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=silent,
        stderr=silent,
        start_new_session=True,
        env=environ,
    )
    try:
        await process.communicate(text.encode())
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if process.returncode:
        raise UndeliveredError(f"the command ended with code {process.returncode}")


async def _post(address: str, text: str, proxy: str | None) -> None:
    import httpx2

    transport = httpx2.AsyncHTTPTransport(proxy=proxy)
    async with (
        httpx2.AsyncClient(
            follow_redirects=False, timeout=TIMEOUT_S, transport=transport
        ) as client,
        client.stream(
            "POST", address, content=text.encode(), headers={"content-type": "application/json"}
        ) as answer,
    ):
        status = answer.status_code  # what it says beside that is not read
    if status >= 300:
        raise UndeliveredError(f"the address answered with {status}")
