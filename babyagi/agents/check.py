"""The check: is the objective met, part by part, with a quote for each that the program looks up
itself."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.agents.creation import MAX_OUTPUT_TOKENS
from babyagi.agents.evidence import is_evidence
from babyagi.agents.execution import Excerpt
from babyagi.agents.prompting import build_messages
from babyagi.agents.replies import CheckReply, parse_check
from babyagi.disarm import rearm
from babyagi.errors import MalformedReplyError
from babyagi.journal import Journal
from babyagi.llm.base import Completion
from babyagi.llm.prompt import Prompt
from babyagi.react.asking import ask
from babyagi.tasks import CheckedPart, Passage, Result, Role, find_sources
from babyagi.taskstore.base import Checked
from babyagi.text import name_sense

MIN_QUOTE_CHARS = 2
MAX_NAME_WORDS = 3  # of a quote that may only be the name of what was asked for
ARTICLES = ("the", "a", "an")
MAX_PIECES = 3  # of a quote with gaps
DOUBTING = (
    " Somebody found it met; look for what was overlooked: a part without an answer, a value "
    "that no result gives."
)
SETTLING = (
    " Two readers of these results disagree about the contested parts: look closely whether "
    "a result answers each of them."
)
EXPECTED = '{"parts": [{"part": "…", "task": 1, "quote": "…"}], "missing": [], "met": false}.'

CHECK_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "parts": {
            "type": "array",
            "maxItems": 40,
            "items": {
                "type": "object",
                "properties": {
                    "part": {"type": "string", "maxLength": 300},
                    "task": {"type": "integer"},
                    "quote": {"type": "string", "maxLength": 300},
                },
                "required": ["part", "task", "quote"],
                "additionalProperties": False,
            },
        },
        "missing": {"type": "array", "maxItems": 40, "items": {"type": "string", "maxLength": 300}},
        "met": {"type": "boolean"},
    },
    "required": ["parts", "missing", "met"],
    "additionalProperties": False,
}


async def check_objective(
    *,
    objective_text: str,
    excerpts: Sequence[Excerpt],
    journal: Journal,
    path: str,
    stance: str = "",
    contested: Sequence[str] = (),
) -> CheckReply:
    """Return what the model says of the objective, judged from the results alone. Raises as `ask`.

    Args:
        path: of the step in the journal. stance: how to look, empty or `DOUBTING` or `SETTLING`.
        contested: the parts on which two checks disagree.
    """
    sources = find_sources(source for excerpt in excerpts for source in excerpt.sources)
    messages = build_messages(
        "check",
        {
            "stance": stance,
            "objective": [("objective", Passage(text=objective_text, origin="person"))],
            "results": [excerpt.to_labelled() for excerpt in excerpts],
            "contested": [
                (
                    "contested parts",
                    Passage(text="\n".join(contested), origin="model", sources=sources),
                )
            ]
            if contested
            else [],
        },
    )
    prompt = Prompt(
        messages=messages,
        schema_name="check",
        schema=CHECK_SCHEMA,
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
    return (await ask(journal, path, prompt, role=Role.CREATION, read=_read)).value


def _read(completion: Completion) -> CheckReply:
    reply = parse_check(completion.text)
    if not reply.is_readable:
        raise MalformedReplyError(f"{reply.reason}; expected JSON: {EXPECTED}")
    return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What some checks of the same results come to. `contested` are the parts on which two of them
    disagree, for a third to decide."""

    is_met: bool
    checked: Checked
    contested: tuple[str, ...] = ()


def settle(views: Sequence[tuple[bool, Checked]], known: Sequence[CheckedPart] = ()) -> Settled:
    """Return what the checks come to together. A part that one of them misses is answered all the
    same where two of the others say so: each by showing an answer to it, or by finding the
    objective met.

    Args:
        views: of two or three checks whether the objective is met, and what was found, as `look_up`
            returns it.
        known: the parts that the check before these found answered; it is one more that says so.
    """
    missing: list[str] = []
    contested: list[str] = []
    for place, (_, view) in enumerate(views):
        others = [other for at, other in enumerate(views) if at != place]
        for part in view.missing:
            n_for = sum(
                is_met or _is_among(part, [one.part for one in other.parts])
                for is_met, other in others
            )
            n_for += _is_among(part, [one.part for one in known])
            if n_for == 0 or (n_for == 1 and len(views) > 2):
                missing += [] if _is_among(part, missing) else [part]
            elif n_for == 1:
                contested += [] if _is_among(part, contested) else [part]
    answered = {
        part.part: part
        for part in (*known, *(part for _, view in views for part in view.parts))
        if not _is_among(part.part, missing)
    }
    is_met = (
        not (missing or contested)
        and bool(answered)
        and all(is_met or view.missing for is_met, view in views)
    )
    found = Checked(parts=tuple(answered.values()), missing=tuple(missing))
    return Settled(is_met=is_met, checked=found, contested=() if missing else tuple(contested))


def _is_among(part: str, parts: Sequence[str]) -> bool:
    """Whether one of the parts is this one: word by word, or with more words before or behind. In
    doubt it is another one."""
    return any(
        name_sense(part) == name_sense(other) or _holds(part, other) or _holds(other, part)
        for other in parts
    )


def _holds(long: str, short: str) -> bool:
    wanted = " ".join(word for word in _words(short) if word not in ARTICLES)
    return (
        bool(wanted)
        and f" {wanted} " in f" {' '.join(word for word in _words(long) if word not in ARTICLES)} "
    )


def look_up(
    reply: CheckReply, results: Sequence[Result], *, objective_text: str
) -> tuple[bool, Checked]:
    """Return whether the reply shows that the objective is met, and what it shows: a part counts
    only if its quote stands in a result.

    A quote is looked for in the result that it names, then in the others: a wrong number is no
    fault of the quote. One that only claims
    something shows nothing.
    """
    folded = {result.task_id: _fold(result.text) for result in results}
    result_by_id = {result.task_id: result for result in results}
    parts: list[CheckedPart] = []
    missing = list(reply.missing)
    for part in reply.parts:
        task_id = (
            None
            if _only_names(part.quote, objective_text)
            else _find(part.quote, folded, first=part.task_id)
        )
        if task_id is None or not is_evidence(
            part.quote, result_by_id[task_id], objective_text=objective_text
        ):
            missing.append(part.part)
        else:
            parts.append(CheckedPart(part=part.part, task_id=task_id, quote=part.quote))
    found = Checked(
        parts=tuple(parts), missing=tuple(dict.fromkeys(part for part in missing if part))
    )
    return reply.is_met and bool(parts) and not found.missing, found


def still_shown(
    parts: Sequence[CheckedPart], results: Sequence[Result], *, objective_text: str
) -> tuple[CheckedPart, ...]:
    """Return the parts whose quotes still stand in the results that they were found in, and show
    something."""
    folded = {result.task_id: _fold(result.text) for result in results}
    result_by_id = {result.task_id: result for result in results}
    return tuple(
        part
        for part in parts
        if _find(part.quote, folded, first=part.task_id) == part.task_id
        and is_evidence(part.quote, result_by_id[part.task_id], objective_text=objective_text)
    )


def _only_names(quote: str, objective_text: str) -> bool:
    """Whether a quote is only the name of what was asked for: a few words that all stand in the
    objective."""
    words = _words(quote)
    return len(words) <= MAX_NAME_WORDS and set(words) <= set(_words(objective_text))


def _find(quote: str, folded: Mapping[int, str], *, first: int | None) -> int | None:
    """The result in which the quote stands, its pieces in their order where something is left out
    of it."""
    pieces = [
        folded_piece
        for piece in re.split(r"…|\.{3}|\[\.*\]", quote)
        if (folded_piece := _fold(piece))
    ]
    if sum(map(len, pieces)) < MIN_QUOTE_CHARS:
        return None
    pattern = re.compile(
        r"(?<!\w)" + r"(?!\w).*?(?<!\w)".join(map(re.escape, pieces[:MAX_PIECES])) + r"(?!\w)",
        re.DOTALL,
    )
    if first is not None and first in folded and pattern.search(folded[first]):
        return first
    return next((task_id for task_id, text in folded.items() if pattern.search(text)), None)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", _fold(text))


def _fold(text: str) -> str:
    """The text as quotes are compared: case, quotation marks, dots at the ends, the width of space
    and what `disarm` adds ignored."""
    plain = unicodedata.normalize("NFKC", rearm(text)).casefold()
    return " ".join(re.sub(r"[\"'`*_“”‘’«»]", "", plain).split()).strip(" .…,;:")
