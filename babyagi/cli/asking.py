"""Asks the person at a terminal, and reads the typed answers: to prompts when LLM_MODEL=human, and
to the questions of tasks."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from babyagi.cli.inbox import ask_leave, render_request
from babyagi.cli.text import (
    Style,
    forget_typed,
    is_in_foreground,
    is_person_there,
    terminal_width,
    warn,
)
from babyagi.errors import BabyagiError, NotFoundError
from babyagi.inbox import Decision, goes_to, needs_leave
from babyagi.settings.fields import Settings
from babyagi.tasks import ObjectiveStatus, Step
from babyagi.taskstore.sql.store import TaskStore
from babyagi.verbs.actions import Request, gather_request, settle

if TYPE_CHECKING:
    from babyagi.app.model_clients import AskHuman

_log = logging.getLogger(__name__)

LOOK_S = 1.0
BACKGROUND_PAUSE_S = 1.0
MAX_LINE_BYTES = 100_000
_NO_MORE = "No more questions are asked here; babyagi inbox shows the open ones."
END_LINE = "."


def find_person() -> AskHuman | None:
    """Return `ask_person`; None if there is no terminal to ask on."""
    return ask_person if is_person_there() else None


async def ask_person(prompt: str) -> str:
    """Show the person the prompt for a model, and return the typed answer. The answer ends with a
    line that contains only a full stop, or at the end of input."""
    warn("──── the prompt " + "─" * 40, Style.DIM)
    warn(prompt)
    how = "end it with a line that holds only a full stop, or with Ctrl-D"
    warn(f"──── your answer; {how} " + "─" * 8, Style.DIM)
    return await read_text(sys.stdin.fileno())


async def read_text(descriptor: int, *, may_read: Callable[[], bool] = is_in_foreground) -> str:
    """Return the typed lines up to END_LINE or the end of input. For `may_read` see
    `read_line`."""
    typed, lines = bytearray(), list[str]()
    try:
        while (line := await read_line(descriptor, typed, may_read=may_read)) != END_LINE:
            lines.append(line)
    except EOFError:
        lines.append(typed.decode("utf-8", "replace"))
    return "\n".join(lines)


async def read_line(
    descriptor: int, typed: bytearray, *, may_read: Callable[[], bool] = is_in_foreground
) -> str:
    """Return the next typed line. It is awaited without a thread, so that the waiting can be
    cancelled.

    Args:
        typed: a buffer for input that was read but not returned yet; pass the same one to each
            call.
        may_read: called before each reading; nothing is read while it returns False, because
            another program uses the terminal.

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
    """Asks the person at the terminal the open questions of an objective, one after the other,
    until the person ends the input.

    Args:
        aside: a context manager in which a question is asked; it keeps others off the terminal.
    """

    def __init__(
        self,
        store: TaskStore,
        objective_id: int,
        settings: Settings,
        *,
        aside: Callable[[], AbstractContextManager[None]] = nullcontext,
        descriptor: int | None = None,
        may_read: Callable[[], bool] = is_in_foreground,
    ) -> None:
        self._aside = aside
        self._store = store
        self._objective_id = objective_id
        self._settings = settings
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._may_read = may_read
        self._typed = bytearray()
        self._is_there = True
        self._has_ended = False

    def is_person_there(self) -> bool:
        """Return whether a question would still be put to the person: the person has not ended the
        input, and the objective has not ended or has an open question."""
        return self._is_there and not self._has_ended

    async def ask(self) -> None:
        """Ask each question as soon as it is open, until cancelled or until the person ends the
        input."""
        try:
            while True:
                await self._ask_next()
        except EOFError:
            warn(_NO_MORE, Style.YELLOW)
        except Exception:  # our bug: the work goes on, and the question waits in the inbox
            _log.exception("asking at the terminal raised an unexpected error")
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
        with self._aside():
            for line in render_request(request, terminal_width(), is_whole=True)[:-1]:
                warn(line.text, line.style)
            if needs_leave(request.step):
                self._forget_typed()
            await self._until_decided(request)

    def _forget_typed(self) -> None:
        """Drop input that was typed before the tool call was shown, so that this input does not
        approve the call."""
        self._typed.clear()
        forget_typed(self._descriptor)

    async def _look(self) -> list[Step]:
        steps = await self._store.inbox(self._objective_id)
        objective = await self._store.objective(self._objective_id)
        self._has_ended = objective.status is ObjectiveStatus.ENDED and not steps
        return steps

    async def _until_decided(self, request: Request) -> None:
        """Read lines until one of them decides the request, or until it was answered elsewhere."""
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
                    warn("This request was answered elsewhere.")
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
                _log.info("whether the request is still open cannot be read now: %s", error.what)

    async def _decide(self, request: Request, typed: str) -> bool:
        decision = _read(request, typed)
        if decision is None:
            return False
        text = typed if decision is Decision.ANSWER else ""
        try:
            home = self._settings.home
            await settle(self._store, request.step, decision, text, home=home, seen=request)
        except NotFoundError:
            warn("This request was answered elsewhere.")
        else:
            warn(f"Task {request.task.id} continues with your answer.")
        return True


def _prompt(request: Request) -> str:
    if needs_leave(request.step):
        ways = "y, n or always" if goes_to(request.step) else "y or n"
        return f"Task {request.task.id}: {ask_leave(request.step)} {ways} (Ctrl-D: later)"
    return f"Your answer to task {request.task.id}, on one line (Ctrl-D: later):"


def _read(request: Request, typed: str) -> Decision | None:
    """Return the decision that the typed line means for this request; None if the line decides
    nothing."""
    if not needs_leave(request.step):
        return Decision.ANSWER if typed else None
    match typed.lower():
        case "y" | "yes":
            return Decision.APPROVE
        case "always" if goes_to(request.step):
            return Decision.ALWAYS
        case "n" | "no":
            return Decision.REJECT
    return None
