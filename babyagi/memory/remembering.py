"""A memory at work for an agent: it shows what it holds, keeps each turn, and has something made of
the turns beside the work that goes on, and of the last ones when that work ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Self

from babyagi.errors import (
    BabyagiError,
    ContextTooLongError,
    EndlessAnswerError,
    LimitReachedError,
    MalformedReplyError,
    ModelUnavailableError,
    OverdueError,
    RequestRefusedError,
)
from babyagi.llm.prompt import Message
from babyagi.memory.kinds import (
    ConversationMemory,
    Labelled,
    find_pending,
    is_due,
    place,
    recollect,
)
from babyagi.memory.log import MAX_FAULT_CHARS, Known, MemoryLog
from babyagi.memory.update import update
from babyagi.tasks import Usage
from babyagi.text import one_line, shorten
from babyagi.tools.base import Calls

logger = logging.getLogger(__name__)

FLUSH_S = 60.0  # that an update may go on when nothing else is left to do
CUT_S = 5.0  # where the work ended in an error or was cancelled

OpenCalls = Callable[[Usage], AbstractAsyncContextManager[Calls | None]]
"""Opens the way to a model for an update, after what the run has used; None where nothing of its
limits is left."""


class Remembering:
    """Entered as a context, it ends the update that it began, within a bound. A cut update goes on
    at the next one; what was paid for is kept.

    Args:
        is_conversation: when the context is left, something is made of the last turns too, however
            few they are.
    """

    def __init__(
        self,
        kind: ConversationMemory,
        log: MemoryLog,
        *,
        open_calls: OpenCalls,
        is_conversation: bool = False,
        flush_s: float = FLUSH_S,
        cut_s: float = CUT_S,
    ) -> None:
        self._kind = kind
        self._log = log
        self._open_calls = open_calls
        self._is_conversation = is_conversation
        self._flush_s = flush_s
        self._cut_s = cut_s
        self._updating: asyncio.Task[None] | None = None
        self._fault: BabyagiError | None = None
        self._used: Usage | None = None  # of the run whose turn was kept last
        self._has_failed = False  # an update; none is begun for the last turns alone then

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        await self.flush(self._flush_s if error is None else self._cut_s)
        if error is None and self._is_conversation and self._used and not self._has_failed:
            self._updating = asyncio.create_task(self._update(self._used, is_flush=True))
            await self.flush(self._flush_s)
        if error is None and self._fault is not None:
            raise self._fault

    async def place(self, messages: Sequence[Message], question: str) -> tuple[Message, ...]:
        """The messages with what is shown of the memory before the question."""
        known = await self._log.read()
        return place(messages, recollect(self._kind, known, question))

    async def keep(
        self, question: str, answer: str, *, key: str, made_from: Sequence[str], used: Usage
    ) -> None:
        """Keep a turn; it is on the disk when this returns. If something is to be made of the turns
        now, that has begun then, unless it is under way already.

        A turn that cannot be kept is an error when the context is left, because an answer that is
        paid for is given first.

        Args:
            used: what the run has used of its limits.
        """
        try:
            await self._log.add_turn(question, answer, key=key, made_from=made_from)
            known = await self._log.read()
        except BabyagiError as error:
            self._fault = error
            return
        self._used = used
        if self._updating is not None and self._updating.done():
            await self.flush(0)
        if self._updating is None and is_due(self._kind, known):
            self._updating = asyncio.create_task(self._update(used))

    async def flush(self, within_s: float) -> None:
        """Wait for the update that is under way, for so many seconds; then it is cut off."""
        updating, self._updating = self._updating, None
        if updating is None:
            return
        try:
            await asyncio.wait([updating], timeout=within_s)
        except asyncio.CancelledError:
            await asyncio.wait([updating], timeout=self._cut_s)
            raise
        finally:
            is_cut = not updating.done()
            updating.cancel()
            await asyncio.wait([updating])
        if is_cut:
            self._has_failed = True
            await _note_cut(self._log, within_s)
        with suppress(asyncio.CancelledError):
            updating.result()

    async def _update(self, used: Usage, *, is_flush: bool = False) -> None:
        try:
            if is_flush and not find_pending(self._kind, await self._log.read()):
                return
            async with self._open_calls(used) as calls:
                if calls is not None:
                    await update(self._kind, self._log, calls, is_flush=is_flush)
        except BabyagiError as error:
            self._has_failed = True
            await _note(self._log, error.what)


async def _note_cut(log: MemoryLog, after_s: float) -> None:
    await _note(log, f"it was cut off after {after_s:g} s, and goes on next time")


async def _note(log: MemoryLog, why: str) -> None:
    """Keep why nothing came of an update, for whoever looks at the memory; the next one tries
    again."""
    why = shorten(one_line(why), MAX_FAULT_CHARS)
    logger.warning("a memory was not brought up to date: %s", why)
    known: Known = await log.read()
    await log.add({"kind": "fault", "why": why}, to=known.id)


# --------------------------------------------------------------------------------------------------
# The memory of the agent that carries out the tasks of an objective: each task with its answer is
# a turn, and bringing it up to date is a part of the task, in its journal. What is left of the
# turns when the objective has ended is looked through after its report.
# --------------------------------------------------------------------------------------------------

# what must not cost the task its answer, which is there
FAULTS_OF_AN_UPDATE = (
    MalformedReplyError,
    ContextTooLongError,
    RequestRefusedError,
    EndlessAnswerError,
    LimitReachedError,
    ModelUnavailableError,
    OverdueError,
)


class TaskMemory:
    def __init__(self, kind: ConversationMemory, log: MemoryLog) -> None:
        self._kind = kind
        self._log = log

    async def recollect(self, task_name: str) -> list[Labelled]:
        """What a task is shown of the ones before it."""
        return recollect(self._kind, await self._log.read(), task_name)

    async def keep(
        self,
        task_name: str,
        answer: str,
        *,
        key: str,
        asked_from: Sequence[str],
        made_from: Sequence[str],
        calls: Calls,
    ) -> None:
        """Keep a task with its answer, once for each key, and make of the turns what is due."""
        await self._log.add_turn(
            task_name, answer, key=key, asked_from=asked_from, made_from=made_from
        )
        await self._update(calls)

    async def has_pending(self) -> bool:
        """Whether there are turns that nothing was made of yet."""
        return bool(find_pending(self._kind, await self._log.read()))

    async def flush(self, calls: Calls, *, within_s: float) -> None:
        """Make something of the last turns, however few; what takes longer is cut off."""
        try:
            async with asyncio.timeout(within_s):
                await self._update(calls, is_flush=True)
        except TimeoutError:
            await _note_cut(self._log, within_s)

    async def _update(self, calls: Calls, *, is_flush: bool = False) -> None:
        try:
            await update(self._kind, self._log, calls, is_flush=is_flush)
        except FAULTS_OF_AN_UPDATE as error:
            await _note(self._log, error.what)
