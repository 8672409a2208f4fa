"""The kinds of an agent's memory, and what is shown of a memory with a question: fenced passages
with their origins, within a limit of tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from babyagi.llm.prompt import Message, estimate_tokens, fence
from babyagi.memory.log import Fact, Known, Turn, fold_name, join_origins
from babyagi.react.protocols.base import fill, instruct
from babyagi.tasks import Passage, find_sources
from babyagi.text import clean, disarm

MIN_CUT_CHARS = 40  # a text that would be cut to less is left out
N_NEAR = 1  # the last turns whose names count as if the question had them

Labelled = tuple[str, Passage]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationMemory:
    """The last questions and answers, verbatim.

    Attributes:
        name: the name under which the memory is stored in babyagi's home folder. A memory without a
            name exists as long as its agent.
        window_size: how many of the newest turns are shown.
        max_tokens: how many tokens everything that is shown may have.
    """

    updated_by: ClassVar[str] = ""  # the attribute that says after how many turns

    name: str = ""
    window_size: int = 8
    max_tokens: int = 2000

    def __post_init__(self) -> None:
        for name, least in (("window_size", 0), ("max_tokens", 100), (self.updated_by, 1)):
            if name and getattr(self, name) < least:
                raise ValueError(f"{name} must be {least} or more, got {getattr(self, name)}")

    @property
    def every(self) -> int:
        """Return the number of turns between two updates by a model; 0 means no updates."""
        return getattr(self, self.updated_by) if self.updated_by else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSummaryMemory(ConversationMemory):
    """The last turns, and a summary of all earlier ones, which a model rewrites after every
    `summary_frequency` turns."""

    updated_by: ClassVar[str] = "summary_frequency"

    window_size: int = 3
    summary_frequency: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMemory(ConversationMemory):
    """The last turns, and the facts about the names in a question. A model extracts facts from the
    conversation after every `update_every` turns."""

    updated_by: ClassVar[str] = "update_every"

    window_size: int = 3
    update_every: int = 3


def find_pending(kind: ConversationMemory, known: Known) -> tuple[Turn, ...]:
    """Return the turns that the summary or the facts do not cover yet; none if the memory has
    neither."""
    match kind:
        case ConversationSummaryMemory():
            upto = known.summary.upto
        case EntityMemory():
            upto = known.facts_upto
        case _:
            return ()
    return tuple(turn for turn in known.turns if turn.n > upto)


def is_due(kind: ConversationMemory, known: Known) -> bool:
    """Return whether enough turns are pending for an update of the memory."""
    return 0 < kind.every <= len(find_pending(kind, known))


# -- what is shown with a question
# --------------------------------------------------------------------------------------------------


def recollect(kind: ConversationMemory, known: Known, question: str) -> list[Labelled]:
    """Return the passages to show with the question, of at most `max_tokens` together: the summary
    or the facts, then the last turns, oldest first."""
    made = _fit(_recollect_made(kind, known, question), kind.max_tokens // 2)
    left = kind.max_tokens - _cost(made)
    n_shown = max(kind.window_size, len(find_pending(kind, known)))
    turns: list[Labelled] = []
    for turn in reversed(known.turns[-n_shown:] if n_shown else ()):
        shown = show_turn(turn)
        if _cost(shown) > left:
            # the newest turn is cut, earlier ones are left out
            shown = [] if turns else _fit(shown, left)
            return [*made, *shown, *turns]
        left -= _cost(shown)
        turns = [*shown, *turns]
    return [*made, *turns]


def show_turn(turn: Turn) -> list[Labelled]:
    """Return the question and the answer of a turn as passages."""
    return [
        (f"question {turn.n}", to_passage(turn.question, turn.asked_from)),
        (f"answer {turn.n}", to_passage(turn.answer, turn.made_from)),
    ]


def _recollect_made(kind: ConversationMemory, known: Known, question: str) -> list[Labelled]:
    match kind:
        case ConversationSummaryMemory() if known.summary.text:
            summary = known.summary
            return [(f"summary up to {summary.upto}", to_passage(summary.text, summary.origins))]
        case EntityMemory():
            return show_facts(find_named(known, question))
    return []


def find_named(known: Known, question: str) -> list[Fact]:
    """Return the facts about the names in the question, then about other names in the last turns;
    about each name the newest first, because what does not fit is cut at the end."""
    near = " ".join(f"{turn.question} {turn.answer}" for turn in known.turns[-N_NEAR:])
    names = list(dict.fromkeys(fold_name(fact.entity) for fact in known.facts))
    first = [name for name in names if _names(question, name)]
    then = [name for name in names if name not in first and _names(near, name)]
    return [
        fact
        for name in (*first, *then)
        for fact in reversed(known.facts)
        if fold_name(fact.entity) == name
    ]


def show_facts(facts: Sequence[Fact]) -> list[Labelled]:
    """Return the facts as one passage; none without facts."""
    text = "\n".join(f"{fact.entity}: {fact.text} (turn {fact.turn})" for fact in facts)
    shown = to_passage(text, join_origins(*(fact.origins for fact in facts)))
    return [("known", shown)] if facts else []


def _names(text: str, name: str) -> bool:
    """Return whether the text contains the name: as a whole word if the name is ASCII, else
    anywhere, because some scripts have no blanks."""
    folded = " ".join(text.casefold().split())
    if name.isascii():
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) is not None
    return name in folded


def to_passage(text: str, origins: Sequence[str]) -> Passage:
    """Return a text as a passage with its origins. Only a text whose sole origin is a person counts
    as a person's."""
    own = [one for one in origins if one.startswith("model")]
    is_said = set(origins) == {"person"}
    origin = "person" if is_said else own[0] if own else "model"
    return Passage(text=text, origin=origin, sources=find_sources(origins))


def _cost(shown: Sequence[Labelled]) -> int:
    """Return the number of tokens that the passages take in a prompt, including line breaks."""
    return sum(estimate_tokens(fence(label, passage) + "\n") for label, passage in shown)


def _fit(shown: Sequence[Labelled], max_tokens: int) -> list[Labelled]:
    """Return as many of the passages as fit, each cut to an equal share of the remaining tokens if
    necessary."""
    fitting: list[Labelled] = []
    for n, (label, passage) in enumerate(shown):
        cut = _cut(label, passage, (max_tokens - _cost(fitting)) // (len(shown) - n))
        if cut is None:
            break
        fitting.append((label, cut))
    return fitting


def _cut(label: str, passage: Passage, max_tokens: int) -> Passage | None:
    """Return the passage, cut to at most `max_tokens`; None if too little of it would be left."""
    text, n_kept = disarm(clean(passage.text)), len(passage.text)
    while _cost([(label, passage)]) > max_tokens:
        n_kept = 4 * n_kept // 5
        if n_kept < MIN_CUT_CHARS:
            return None
        passage = replace(passage, text=f"{text[:n_kept]} …")
    return passage


def place(messages: Sequence[Message], shown: Sequence[Labelled]) -> tuple[Message, ...]:
    """Return the messages with the passages of the memory at the beginning of the last message,
    which is the question."""
    if not shown:
        return tuple(messages)
    *before, asked = instruct(messages, fill("memory"))
    blocks = "\n".join(fence(label, passage) for label, passage in shown)
    origins = [origin for _, passage in shown for origin in passage.origins]
    known = tuple(dict.fromkeys((*asked.origins, *origins)))
    return *before, replace(asked, text=f"{blocks}\n\n{asked.text}", origins=known)
