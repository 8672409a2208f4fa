"""Asks the person at a plain terminal what tasks wait for, while the other tasks go on."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable

from babyagi.cli.inbox import Request, gather_request, render_request, settle
from babyagi.cli.text import Style, forget_typed, is_in_foreground, terminal_width, warn
from babyagi.errors import BabyagiError, NotFoundError
from babyagi.inbox import APPROVAL, Decision
from babyagi.settings.fields import Settings
from babyagi.tasks import ObjectiveStatus, Step
from babyagi.taskstore.port import TaskStore

logger = logging.getLogger(__name__)

LOOK_S = 1.0
BACKGROUND_PAUSE_S = 1.0
MAX_LINE_BYTES = 100_000
_NO_MORE = "Nothing is asked here any more; babyagi inbox shows what waits."


async def read_line(
    descriptor: int, typed: bytearray, *, may_read: Callable[[], bool] = is_in_foreground
) -> str:
    """Return what is typed up to the end of a line, without a thread, so that the waiting can be
    ended. Nothing is read while another program has the terminal.

    Args:
        typed: what was read before and is no line yet; what is read beyond the line stays there.

    Raises:
        EOFError: the input has ended.
    """
    loop = asyncio.get_running_loop()
    while b"\n" not in typed:
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _wake, readable)
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
        if not may_read():
            await asyncio.sleep(BACKGROUND_PAUSE_S)
            continue
        chunk = os.read(descriptor, 4096)
        if not chunk:
            raise EOFError
        typed += chunk[: max(0, MAX_LINE_BYTES - len(typed))] or b"\n"
    line, _, rest = bytes(typed).partition(b"\n")
    typed[:] = rest
    return line.decode("utf-8", "replace")


def _wake(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


class Asker:
    """Asks one thing after the other, until the person ends the input."""

    def __init__(
        self,
        store: TaskStore,
        objective_id: int,
        settings: Settings,
        *,
        descriptor: int | None = None,
        may_read: Callable[[], bool] = is_in_foreground,
    ) -> None:
        self._store = store
        self._objective_id = objective_id
        self._settings = settings
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._may_read = may_read
        self._typed = bytearray()
        self._is_there = True
        self._has_ended = False

    def is_person_there(self) -> bool:
        """Whether somebody is asked here; not where the objective has ended and asks nothing."""
        return self._is_there and not self._has_ended

    async def ask(self) -> None:
        """Ask until cancelled, or until the person ends the input."""
        try:
            while True:
                await self._ask_next()
        except EOFError:
            warn(_NO_MORE, Style.YELLOW)
        except Exception:  # ours: the work goes on, and what asks waits in the inbox
            logger.exception("asking at the terminal raised what nobody expected")
            warn(_NO_MORE, Style.YELLOW)
        finally:
            self._is_there = False

    async def _ask_next(self) -> None:
        steps = await self._look()
        if not steps:
            last_id = await self._store.last_event_id(self._objective_id)
            await self._store.wait_for_events(
                self._objective_id, after_id=last_id, timeout_s=LOOK_S
            )
            return
        request = await gather_request(self._store, steps[0], self._settings, among=steps)
        for line in render_request(request, terminal_width(), is_whole=True)[:-1]:
            warn(line.text, line.style)
        if request.step.kind == APPROVAL:
            self._forget_typed()
        await self._until_decided(request)

    def _forget_typed(self) -> None:
        """What was typed before a call was shown approves nothing."""
        self._typed.clear()
        forget_typed(self._descriptor)

    async def _look(self) -> list[Step]:
        steps = await self._store.inbox(self._objective_id)
        objective = await self._store.objective(self._objective_id)
        self._has_ended = objective.status is ObjectiveStatus.ENDED and not steps
        return steps

    async def _until_decided(self, request: Request) -> None:
        """Take lines until one of them decides, or the request does not wait any more."""
        gone = asyncio.ensure_future(self._until_gone(request.step))
        try:
            while True:
                warn(_prompt(request), Style.BOLD)
                typed = asyncio.ensure_future(
                    read_line(self._descriptor, self._typed, may_read=self._may_read)
                )
                try:
                    await asyncio.wait({typed, gone}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    typed.cancel() if not typed.done() else None
                if not typed.done():
                    warn("That was answered elsewhere.")
                    return
                if await self._decide(request, typed.result().strip()):
                    return
        finally:
            gone.cancel()

    async def _until_gone(self, step: Step) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._store.open_step(step.id)
            except NotFoundError:
                return
            except BabyagiError as error:
                logger.info("what is asked cannot be looked at now: %s", error.what)

    async def _decide(self, request: Request, typed: str) -> bool:
        decision = _read(request, typed)
        if decision is None:
            return False
        text = typed if decision is Decision.ANSWER else ""
        try:
            await settle(self._store, request.step, decision, text, seen=request)
        except NotFoundError:
            warn("That was answered elsewhere.")
        else:
            warn(f"Task {request.task.id} goes on with that.")
        return True


def _prompt(request: Request) -> str:
    if request.step.kind == APPROVAL:
        return (
            f"Task {request.task.id}: is this call to be made, as it is shown? y or n "
            "(Ctrl-D: not now)"
        )
    return f"Your answer to task {request.task.id}, on one line (Ctrl-D: not now):"


def _read(request: Request, typed: str) -> Decision | None:
    """What a line means; None for one that decides nothing."""
    if request.step.kind != APPROVAL:
        return Decision.ANSWER if typed else None
    match typed.lower():
        case "y" | "yes":
            return Decision.APPROVE
        case "n" | "no":
            return Decision.REJECT
    return None
