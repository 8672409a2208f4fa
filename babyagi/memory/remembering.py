"""Uses a memory for an agent: shows it with each question, stores each turn, and lets the model
update it. When the work ends, the last turns are added to the summary or the facts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

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
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, fence
from babyagi.memory.kinds import (
    ConversationMemory,
    ConversationSummaryMemory,
    Labelled,
    find_pending,
    is_due,
    place,
    recollect,
    show_facts,
    show_turn,
    to_passage,
)
from babyagi.memory.log import (
    MAX_FAULT_CHARS,
    Fact,
    Known,
    MemoryLog,
    Summary,
    Turn,
    fold_name,
    join_origins,
)
from babyagi.react.asking import ask
from babyagi.react.protocols.base import fill, say
from babyagi.react.protocols.json import read_object
from babyagi.tasks import Role, Usage
from babyagi.text import clean, one_line, shorten
from babyagi.tools.base import Calls, PassedOn, takes

logger = logging.getLogger(__name__)

FLUSH_S = 60.0  # the longest wait for an update at the end of the work
CUT_OFF = "the update was cut off, and continues next time"

OpenCalls = Callable[[Usage], AbstractAsyncContextManager[Calls | None]]
"""Takes the usage of a run, and returns the context of the calls for an update of the memory. The
context yields None if a limit of the run is reached."""


class Remembering:
    """The memory of an `Agent` during a run or a conversation, as an async context. On exit it
    waits for a running update, at most `FLUSH_S`, and cuts it off after an error. An update that is
    cut off continues next time.

    Args:
        is_conversation: whether an update on exit covers the last turns, however few they are.
    """

    def __init__(
        self,
        kind: ConversationMemory,
        log: MemoryLog,
        *,
        open_calls: OpenCalls,
        is_conversation: bool = False,
    ) -> None:
        self._kind = kind
        self._log = log
        self._open_calls = open_calls
        self._is_conversation = is_conversation
        self._updating: asyncio.Task[None] | None = None
        self._fault: BabyagiError | None = None
        self._used: Usage | None = None  # of the run whose turn was stored last
        self._has_failed = False  # an update failed, so none is begun on exit

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        await self.flush(FLUSH_S if error is None else 0)
        if error is None and self._is_conversation and self._used and not self._has_failed:
            self._updating = asyncio.create_task(self._update(self._used, is_flush=True))
            await self.flush(FLUSH_S)
        if error is None and self._fault is not None:
            raise self._fault

    async def place(self, messages: Sequence[Message], question: str) -> tuple[Message, ...]:
        """Return the messages with passages of the memory inserted before the question."""
        known = await self._log.read()
        return place(messages, recollect(self._kind, known, question))

    async def keep(
        self, question: str, answer: str, *, key: str, made_from: Sequence[str], used: Usage
    ) -> None:
        """Store a turn on the disk. If an update is due and none is running, start one.

        If the turn cannot be stored, the error is raised on exit of the context: the answer, which
        is paid for, must be returned first.

        Args:
            used: the usage of the run.
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
        """Wait for the running update, and cut it off after `within_s` seconds."""
        updating, self._updating = self._updating, None
        if updating is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(updating, within_s)

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
        except asyncio.CancelledError:
            self._has_failed = True
            await _note(self._log, CUT_OFF)
            raise


async def _note(log: MemoryLog, why: str) -> None:
    """Log why an update failed, and store it in the memory for a person to see. The next update
    tries again."""
    why = shorten(one_line(why), MAX_FAULT_CHARS)
    logger.warning("an agent's memory was not updated: %s", why)
    known = await log.read()
    await log.change(lambda known: replace(known, fault=why), to=known.id)


# --------------------------------------------------------------------------------------------------
# The memory of the agent that carries out the tasks of an objective. A task and its answer are a
# turn. Updates run beside the tasks, with their calls in the journal; a last one follows the
# report.
# --------------------------------------------------------------------------------------------------

# errors of an update, in spite of which the work goes on
FAULTS_OF_AN_UPDATE = (
    MalformedReplyError,
    ContextTooLongError,
    RequestRefusedError,
    EndlessAnswerError,
    LimitReachedError,
    ModelUnavailableError,
    OverdueError,
)


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """The memory of the agent that carries out an objective's tasks. A turn is a task and its
    answer."""

    kind: ConversationMemory
    log: MemoryLog

    async def is_due(self, *, is_flush: bool) -> bool:
        """Return whether enough turns came since the last update; with `is_flush`, whether any
        came."""
        known = await self.log.read()
        return is_due(self.kind, known) or (is_flush and bool(find_pending(self.kind, known)))

    async def update(
        self, calls: Calls, *, is_flush: bool = False, within_s: float | None = None
    ) -> None:
        """Let the model update the memory if an update is due, for at most `within_s` seconds."""
        try:
            async with asyncio.timeout(within_s):
                await update(self.kind, self.log, calls, is_flush=is_flush)
        except TimeoutError:
            await _note(self.log, CUT_OFF)
        except FAULTS_OF_AN_UPDATE as error:
            await _note(self.log, error.what)


# -- updates: a summary, or facts about names. One update runs at a time, across processes. What was
# made of a reply is stored before the next is asked for, so an interrupted update continues there.
# --------------------------------------------------------------------------------------------------


MAX_TURNS_AT_ONCE = 6  # shown in one call
MAX_SHOWN_CHARS = 3000  # of each question and each answer
MAX_ROUNDS = 20  # calls of one update
MAX_SUMMARY_WORDS = 250
MAX_SUMMARY_CHARS = 4000
MAX_FACTS = 20  # of one reply
MAX_FACT_CHARS = 300
MAX_ENTITY_CHARS = 60
MAX_KNOWN_SHOWN = 60  # known facts, the newest, that are shown with the turns to search
MAX_OUTPUT_TOKENS = 1200

_TEXT = {"type": "string"}
_FACT = takes("entity", "fact", "turn", entity=_TEXT, fact=_TEXT, turn={"type": "integer"})
FACTS_SCHEMA: Mapping[str, Any] = takes("facts", facts={"type": "array", "items": _FACT})


class _Counted(PassedOn):
    """Model calls, and `used`, the usage of their replies."""

    used = Usage()

    async def complete(self, path: str, prompt: Prompt, *, role: Role) -> Completion:
        completion = await super().complete(path, prompt, role=role)
        self.used += completion.usage
        return completion


async def update(
    kind: ConversationMemory, log: MemoryLog, calls: Calls, *, is_flush: bool = False
) -> None:
    """Let the model update the memory if enough turns came since the last update, with `is_flush`
    if any came, unless another update is running.

    Raises:
        Whatever `ask` raises; the finished parts of the update are kept.
    """
    counted = _Counted(calls)

    def store(now: Known) -> Known:
        """Return the derived content, with the turns that were added meanwhile."""
        return replace(derived, turns=now.turns, used=now.used, fault="")

    with log.updating() as is_mine:
        try:
            for _ in range(MAX_ROUNDS if is_mine else 0):
                known = await log.read()
                pending = find_pending(kind, known)[:MAX_TURNS_AT_ONCE]
                if not pending or not (is_flush or is_due(kind, known)):
                    break
                if isinstance(kind, ConversationSummaryMemory):
                    derived = await _summarize(pending, known, counted)
                else:
                    derived = await _extract(pending, known, counted)
                await log.change(store, to=known.id)
        finally:
            if counted.used.calls:
                await log.change(
                    lambda now: replace(now, used=now.used + counted.used), to=known.id
                )


# -- a summary
# --------------------------------------------------------------------------------------------------


async def _summarize(turns: Sequence[Turn], known: Known, calls: Calls) -> Known:
    before: list[Labelled] = []
    if known.summary.text:
        origins = known.summary.origins
        before = [("summary before", to_passage(known.summary.text, origins))]
    prompt = _build_prompt(
        fill("summary", max_words=str(MAX_SUMMARY_WORDS)), [*before, *_show(turns)]
    )

    path = f"summary/{turns[0].n}-{turns[-1].n}"
    asked = await ask(calls, path, prompt, role=Role.EXECUTION, read=_read_summary, may_be_cut=True)
    origins = join_origins(
        (f"model:{asked.completion.model}",), known.summary.origins, *map(_origins_of, turns)
    )
    summary = Summary(text=asked.value, upto=turns[-1].n, origins=origins)
    return replace(known, summary=summary)


def _read_summary(completion: Completion) -> str:
    return shorten(clean(completion.text).strip(), MAX_SUMMARY_CHARS)


# -- facts
# --------------------------------------------------------------------------------------------------


async def _extract(turns: Sequence[Turn], known: Known, calls: Calls) -> Known:
    shown = [*show_facts(known.facts[-MAX_KNOWN_SHOWN:]), *_show(turns)]
    prompt = _build_prompt(fill("entities", max_facts=str(MAX_FACTS)), shown, has_schema=True)

    def read(completion: Completion) -> list[Fact]:
        return _read_facts(completion, turns, known)

    path = f"entities/{turns[0].n}-{turns[-1].n}"
    asked = await ask(calls, path, prompt, role=Role.EXECUTION, read=read)
    return replace(known, facts=(*known.facts, *asked.value), facts_upto=turns[-1].n)


def _read_facts(completion: Completion, turns: Sequence[Turn], known: Known) -> list[Fact]:
    """Return the new facts in a reply, without known facts and without facts from turns that were
    not shown. Raises `MalformedReplyError` if the reply has no list of facts."""
    given = read_object(completion.text.strip(), form="expect_facts")[0].get("facts")
    if not isinstance(given, list):
        raise MalformedReplyError(say("expect_facts"))
    turn_by_n = {turn.n: turn for turn in turns}
    names = {fold_name(fact.entity): fact.entity for fact in known.facts}
    seen = {(fold_name(fact.entity), fact.text.casefold()) for fact in known.facts}
    found: list[Fact] = []
    for one in given[:MAX_FACTS]:
        fact = _read_fact(one, turn_by_n, completion.model)
        if fact is None or (key := (fold_name(fact.entity), fact.text.casefold())) in seen:
            continue
        seen.add(key)
        entity = names.setdefault(key[0], fact.entity)
        found.append(Fact(entity=entity, text=fact.text, turn=fact.turn, origins=fact.origins))
    return found


def _read_fact(given: object, turn_by_n: Mapping[int, Turn], model: str) -> Fact | None:
    """Return a fact of the reply; None if it is not a fact about a name from one of these turns."""
    match given:
        case {"entity": str(entity), "fact": str(said), "turn": int(n)}:
            name, text = one_line(clean(entity)), one_line(clean(said))
            is_known = n in turn_by_n and not isinstance(n, bool)
            if is_known and name and text and len(name) <= MAX_ENTITY_CHARS:
                origins = join_origins((f"model:{model}",), _origins_of(turn_by_n[n]))
                return Fact(
                    entity=name, text=shorten(text, MAX_FACT_CHARS), turn=n, origins=origins
                )
    return None


# -- prompts
# --------------------------------------------------------------------------------------------------


def _origins_of(turn: Turn) -> tuple[str, ...]:
    return (*turn.asked_from, *turn.made_from)


def _show(turns: Sequence[Turn]) -> list[Labelled]:
    cut = [
        replace(
            turn, question=turn.question[:MAX_SHOWN_CHARS], answer=turn.answer[:MAX_SHOWN_CHARS]
        )
        for turn in turns
    ]
    return [passage for turn in cut for passage in show_turn(turn)]


def _build_prompt(
    instruction: str, shown: Sequence[Labelled], *, has_schema: bool = False
) -> Prompt:
    origins = tuple(dict.fromkeys(one for _, passage in shown for one in passage.origins))
    text = "\n".join(fence(label, passage) for label, passage in shown)
    system = Message(speaker=Speaker.SYSTEM, text=instruction, origins=("program",))
    return Prompt(
        messages=(system, Message(speaker=Speaker.USER, text=text, origins=origins)),
        max_output_tokens=MAX_OUTPUT_TOKENS,
        schema_name="facts" if has_schema else "",
        schema=FACTS_SCHEMA if has_schema else None,
        is_schema_late=has_schema,
    )
