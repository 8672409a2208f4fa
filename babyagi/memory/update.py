"""Making something of the turns of a memory: a summary, or facts about the names in them.

One update at a time, whoever else works with the same memory. Each reply of the model is kept
before it is used, so none is paid for twice: what was cut off anywhere goes on there.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.port import Abilities, Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, fence
from babyagi.memory.kinds import (
    ConversationMemory,
    ConversationSummaryMemory,
    EntityMemory,
    Labelled,
    find_pending,
    is_due,
    show_facts,
)
from babyagi.memory.log import (
    Fact,
    Known,
    MemoryLog,
    Turn,
    fold_name,
    join_origins,
    write_fact,
)
from babyagi.react.asking import ask
from babyagi.react.protocols.base import fill
from babyagi.react.protocols.json import read_object
from babyagi.tasks import Passage, Role, find_sources
from babyagi.text import clean, one_line, shorten, split_sentences
from babyagi.tools.base import Calls, Observation, Tool

logger = logging.getLogger(__name__)

MAX_TURNS_AT_ONCE = 6  # of which at most MAX_SHOWN_CHARS of each question and answer are shown
MAX_SHOWN_CHARS = 3000
MAX_ROUNDS = 20  # of one update
MAX_SUMMARY_WORDS = 250
MAX_SUMMARY_CHARS = 4000
MAX_FACTS = 20  # of one reply
MAX_FACT_CHARS = 300
MAX_ENTITY_CHARS = 60
MAX_FACTS_OF_ONE = 12  # then they are made one text
MAX_CONDENSED_WORDS = 120
MAX_CONDENSED_CHARS = 1200
MAX_KNOWN_SHOWN = 60  # facts, the newest, beside the turns that are looked through
MAX_OUTPUT_TOKENS = 1200
ASKING = ("?", "？", "؟", ";")  # the last as Greek writes it

FACTS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "entity": {"type": "string"},
                    "fact": {"type": "string"},
                    "turn": {"type": "integer"},
                },
                "required": ["entity", "fact", "turn"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["facts"],
    "additionalProperties": False,
}


class KeptCalls:
    """The way to the model, where what it said for a memory once is read from the memory."""

    def __init__(self, calls: Calls, log: MemoryLog, memory_id: str) -> None:
        self._calls = calls
        self._log = log
        self._memory_id = memory_id

    async def complete(self, path: str, prompt: Prompt, *, role: Role) -> Completion:
        known = await self._log.read()
        kept = known.completions.get(path) if known.id == self._memory_id else None
        if kept is not None:
            return kept
        completion = await self._calls.complete(path, prompt, role=role)
        record = {"kind": "completion", "path": path, "output": completion.to_json()}
        await self._log.add(record, to=self._memory_id)
        return completion

    async def call_tool(self, path: str, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
        return await self._calls.call_tool(path, tool, arguments)

    async def recall(self, path: str) -> str | None:
        return await self._calls.recall(path)

    async def keep(self, path: str, word: str) -> str:
        return await self._calls.keep(path, word)

    async def bound_output(self, path: str, wanted: int) -> int:
        return await self._calls.bound_output(path, wanted)

    def abilities(self, role: Role) -> Abilities | None:
        return self._calls.abilities(role)

    def probing(self, role: Role) -> AbstractAsyncContextManager[object]:
        return self._calls.probing(role)

    def learn(self, role: Role, found: Abilities) -> None:
        self._calls.learn(role, found)


async def update(
    kind: ConversationMemory, log: MemoryLog, calls: Calls, *, is_flush: bool = False
) -> bool:
    """Make of the turns what the kind makes of them, if enough came since the last time; with
    `is_flush` of however few.

    Returns:
        Whether anything was made; False also where another one is at work on it.

    Raises:
        What `ask` raises; what was made until then holds.
    """
    is_changed = False
    with log.updating() as is_mine:
        for _ in range(MAX_ROUNDS if is_mine else 0):
            known = await log.read()
            pending = find_pending(kind, known)[:MAX_TURNS_AT_ONCE]
            crowded = _find_crowded(known) if isinstance(kind, EntityMemory) else None
            kept = KeptCalls(calls, log, known.id)
            if crowded is not None:
                await _condense(crowded, known, log, kept)
            elif not pending or not (is_flush or is_due(kind, known)):
                break
            elif isinstance(kind, ConversationSummaryMemory):
                await _summarize(pending, known, log, kept)
            else:
                await _extract(pending, known, log, kept)
            is_changed = True
    return is_changed


# -- a summary
# --------------------------------------------------------------------------------------------------


async def _summarize(turns: Sequence[Turn], known: Known, log: MemoryLog, calls: Calls) -> None:
    before: list[Labelled] = []
    if known.summary.text:
        origins = known.summary.origins
        before = [("summary before", _model_passage(known.summary.text, origins))]
    prompt = _build_prompt(
        fill("summary", max_words=str(MAX_SUMMARY_WORDS)), [*before, *_show(turns)]
    )

    path = f"summary/{turns[0].n}-{turns[-1].n}"
    asked = await ask(calls, path, prompt, role=Role.EXECUTION, read=_read_summary, takes_cut=True)
    origins = join_origins(
        (f"model:{asked.completion.model}",), known.summary.origins, *map(_origins_of, turns)
    )
    record = {"kind": "summary", "text": asked.value, "upto": turns[-1].n, "origins": [*origins]}
    await log.add(record, to=known.id)


def _read_summary(completion: Completion) -> str:
    return shorten(clean(completion.text).strip(), MAX_SUMMARY_CHARS)


# -- facts
# --------------------------------------------------------------------------------------------------


async def _extract(turns: Sequence[Turn], known: Known, log: MemoryLog, calls: Calls) -> None:
    shown = [*show_facts(known.facts[-MAX_KNOWN_SHOWN:]), *_show(turns)]
    prompt = _build_prompt(fill("entities", max_facts=str(MAX_FACTS)), shown, has_schema=True)

    def read(completion: Completion) -> list[Fact]:
        return _read_facts(completion, turns, known)

    path = f"entities/{turns[0].n}-{turns[-1].n}"
    asked = await ask(calls, path, prompt, role=Role.EXECUTION, read=read)
    facts = [*map(write_fact, asked.value)]
    await log.add({"kind": "facts", "facts": facts, "upto": turns[-1].n}, to=known.id)


def _read_facts(completion: Completion, turns: Sequence[Turn], known: Known) -> list[Fact]:
    """The facts of a reply, those of no turn that was shown and those known already left out."""
    given = read_object(completion.text.strip())[0].get("facts")
    if not isinstance(given, list):
        raise MalformedReplyError('Reply {"facts": [...]}, with each fact as an object.')
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
    """None where it is no fact about a name from one of these turns."""
    if not isinstance(given, dict):
        return None
    name, text, n = given.get("entity"), given.get("fact"), given.get("turn")
    if not isinstance(name, str) or not isinstance(text, str) or isinstance(n, bool):
        return None
    turn = turn_by_n.get(n) if isinstance(n, int) else None
    name, text = one_line(clean(name)), one_line(clean(text))
    if turn is None or not name or not text or len(name) > MAX_ENTITY_CHARS:
        return None
    return Fact(
        entity=name,
        text=shorten(text, MAX_FACT_CHARS),
        turn=turn.n,
        origins=find_fact_origins(text, turn, model),
    )


def find_fact_origins(text: str, turn: Turn, model: str) -> tuple[str, ...]:
    """Who said it, as the program can tell: the person, only if it is a whole sentence of theirs
    that asks nothing; else the model, from all that the turn was made from."""
    stated = {
        _fold_sentence(sentence)
        for sentence in split_sentences(turn.question)
        if not sentence.endswith(ASKING)
    }
    said = _fold_sentence(text)
    if set(turn.asked_from) == {"person"} and said and said in stated:
        return ("person",)
    return join_origins((f"model:{model}",), _origins_of(turn))


def _fold_sentence(text: str) -> str:
    return one_line(text).casefold().rstrip(".!。！ ")


def _find_crowded(known: Known) -> str | None:
    """A name of which more is known than is shown well."""
    count = Counter(fold_name(fact.entity) for fact in known.facts)
    return next((name for name, n in count.items() if n > MAX_FACTS_OF_ONE), None)


async def _condense(name: str, known: Known, log: MemoryLog, calls: Calls) -> None:
    facts = [fact for fact in known.facts if fold_name(fact.entity) == name]
    prompt = _build_prompt(fill("condense", max_words=str(MAX_CONDENSED_WORDS)), show_facts(facts))

    def read(completion: Completion) -> str:
        return shorten(one_line(clean(completion.text)), MAX_CONDENSED_CHARS)

    last = max(fact.turn for fact in facts)
    path = f"condense/{name}/{last}"
    asked = await ask(calls, path, prompt, role=Role.EXECUTION, read=read, takes_cut=True)
    origins = join_origins((f"model:{asked.completion.model}",), *(fact.origins for fact in facts))
    fact = Fact(entity=facts[-1].entity, text=asked.value, turn=last, origins=origins)
    await log.add({"kind": "condensed", "fact": write_fact(fact)}, to=known.id)


# -- prompts
# --------------------------------------------------------------------------------------------------


def _origins_of(turn: Turn) -> tuple[str, ...]:
    return (*turn.asked_from, *turn.made_from)


def _show(turns: Sequence[Turn]) -> list[Labelled]:
    shown: list[Labelled] = []
    for turn in turns:
        said = (
            ("question", turn.question, turn.asked_from),
            ("answer", turn.answer, turn.made_from),
        )
        for label, text, origins in said:
            origin = "person" if set(origins) == {"person"} else "model"
            passage = Passage(
                text=text[:MAX_SHOWN_CHARS], origin=origin, sources=find_sources(origins)
            )
            shown.append((f"{label} {turn.n}", passage))
    return shown


def _model_passage(text: str, origins: Sequence[str]) -> Passage:
    return Passage(text=text, origin="model", sources=find_sources(origins))


def _build_prompt(
    instruction: str, shown: Sequence[Labelled], *, has_schema: bool = False
) -> Prompt:
    origins = dict.fromkeys(origin for _, passage in shown for origin in passage.origins)
    return Prompt(
        messages=(
            Message(speaker=Speaker.SYSTEM, text=instruction, origins=("program",)),
            Message(
                speaker=Speaker.USER,
                text="\n".join(fence(label, passage) for label, passage in shown),
                origins=tuple(origins),
            ),
        ),
        max_output_tokens=MAX_OUTPUT_TOKENS,
        schema_name="facts" if has_schema else "",
        schema=FACTS_SCHEMA if has_schema else None,
        is_schema_late=has_schema,
    )
