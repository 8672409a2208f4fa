"""The check agent asks a model whether the objective is met. For each part of the objective that it
calls answered, the reply must quote words of a result; the program counts the part only if it finds
these words there."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.agents.creation import MAX_OUTPUT_TOKENS, object_schema
from babyagi.agents.evidence import (
    DOERS,
    NO_SPACES,
    ONLY_COMPUTES,
    UNSPACED,
    chooses,
    find_deeds,
    has_acted,
    is_evidence,
    is_from_outside,
)
from babyagi.agents.execution import Excerpt
from babyagi.agents.prompting import build_messages
from babyagi.agents.replies.reading import (
    MAX_REASON_CHARS,
    JsonValue,
    find_json,
    first_of,
    fold_keys,
    is_false,
    is_true,
    to_id,
    to_line,
    to_sentence,
    visible,
    walk,
    without_echo,
)
from babyagi.errors import MalformedReplyError
from babyagi.journal import Journal
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Prompt
from babyagi.names import name_sense
from babyagi.react.asking import ask
from babyagi.tasks import CheckedPart, Passage, Result, Role, find_sources
from babyagi.taskstore.port import Checked
from babyagi.text import late_pattern, rearm

MIN_QUOTE_CHARS = 2
MAX_NAME_WORDS = 3  # a quote with at most so many words may be only a name in the objective
ARTICLES = ("the", "a", "an")
MAX_TEXT_CHARS = 300  # of a part, and of a quote; a longer one is cut off, perhaps within a word
MAX_PIECES = 3  # of a quote with gaps, so many pieces are looked up
DOUBTING = (
    " Somebody found it met; look for what was overlooked: a part without an answer, a value "
    "that no result gives."
)
SETTLING = (
    " Two readers of these results disagree about the contested parts: look closely whether "
    "a result answers each of them."
)
EXPECTED = '{"parts": [{"part": "…", "task": 1, "quote": "…"}], "missing": [], "met": false}.'

_TEXT = {"type": "string", "maxLength": MAX_TEXT_CHARS}
_PART = object_schema(part=_TEXT, task={"type": "integer"}, quote=_TEXT)
CHECK_SCHEMA: Mapping[str, Any] = object_schema(
    parts={"type": "array", "maxItems": 40, "items": _PART},
    missing={"type": "array", "maxItems": 40, "items": _TEXT},
    met={"type": "boolean"},
)


async def check_objective(
    *,
    objective_text: str,
    excerpts: Sequence[Excerpt],
    journal: Journal,
    path: str,
    stance: str = "",
    contested: Sequence[str] = (),
) -> CheckReply:
    """Ask the model whether the results meet the objective, and return its verdict. Raises what
    `react.asking.ask` raises.

    Args:
        excerpts: the results that the model is shown.
        path: the path of the step in the journal.
        stance: "", `DOUBTING` or `SETTLING`: a sentence for the prompt that says how critically to
            judge.
        contested: the parts on which two earlier checks disagree.
    """
    sources = find_sources(source for excerpt in excerpts for source in excerpt.sources)
    disputed = Passage(text="\n".join(contested), origin="model", sources=sources)
    messages = build_messages(
        "check",
        {
            "stance": stance,
            "objective": [("objective", Passage(text=objective_text, origin="person"))],
            "results": [excerpt.to_labelled() for excerpt in excerpts],
            "contested": [("contested parts", disputed)] if contested else [],
        },
    )
    bound = MAX_OUTPUT_TOKENS
    prompt = Prompt(
        messages=messages, schema_name="check", schema=CHECK_SCHEMA, max_output_tokens=bound
    )
    return (await ask(journal, path, prompt, role=Role.CREATION, read=_read)).value


def _read(completion: Completion) -> CheckReply:
    reply = parse_check(completion.text)
    if not reply.is_readable:
        raise MalformedReplyError(f"{reply.reason}; expected JSON: {EXPECTED}")
    return reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The combined outcome of several checks of the same results. `contested` are the parts on
    which two checks disagree, and which a third check must decide."""

    is_met: bool
    checked: Checked
    contested: tuple[str, ...] = ()


def settle(views: Sequence[tuple[bool, Checked]], known: Sequence[CheckedPart] = ()) -> Settled:
    """Combine two or three checks of the same results. A part of the objective that one check calls
    missing still counts as answered if two other checks disagree with it: they show an answer to
    the part, or find the objective met.

    Args:
        views: the checks, each as `look_up` returns it: whether the objective is met, and what was
            found.
        known: the parts that an earlier check found answered; that check counts as one more check
            of them.
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
    agree = all(is_met or view.missing for is_met, view in views)
    is_met = agree and bool(answered) and not (missing or contested)
    found = Checked(parts=tuple(answered.values()), missing=tuple(missing))
    return Settled(is_met=is_met, checked=found, contested=() if missing else tuple(contested))


def _is_among(part: str, parts: Sequence[str]) -> bool:
    """Return whether the part of the objective is the same as one of the others: in the same words,
    or with more words before or after them. In doubt, return False."""
    return any(
        name_sense(part) == name_sense(other) or _holds(part, other) or _holds(other, part)
        for other in parts
    )


def _holds(long: str, short: str) -> bool:
    whole, wanted = (
        " ".join(word for word in _words(text) if word not in ARTICLES) for text in (long, short)
    )
    return bool(wanted) and f" {wanted} " in f" {whole} "


def look_up(
    reply: CheckReply,
    results: Sequence[Result],
    *,
    objective_text: str,
    doers: Collection[str] = DOERS,
) -> tuple[bool, Checked]:
    """Return (whether the objective is met, the parts found answered and those found missing). A
    part counts as answered only if its quote is found in a result and is evidence. If the objective
    asks for an action, and the tools only read texts and carried out no action, the action counts
    as missing.

    A quote is looked for in the result that the reply names, then in the others: a reply that gives
    the wrong number of a result may still quote correctly.
    """
    folded = {result.task_id: _fold(result.text) for result in results}
    result_by_id = {result.task_id: result for result in results}
    computed = _find_computed(results)
    parts: list[CheckedPart] = []
    missing = list(reply.missing)
    for part in reply.parts:
        quote = part.quote
        task_id = _find(quote, folded, first=part.task_id, computed=computed)
        is_whole = task_id in computed and _fold(quote) == folded.get(task_id)
        if task_id is not None and (
            (is_whole or _is_more_than_a_name(quote, result_by_id[task_id], objective_text))
            and is_evidence(
                quote, result_by_id[task_id], objective_text=objective_text, doers=doers
            )
        ):
            parts.append(CheckedPart(part=part.part, task_id=task_id, quote=quote))
        else:
            missing.append(part.part)
    are_read = all(is_from_outside(result_by_id[part.task_id]) for part in parts)
    if are_read and not any(has_acted(result, doers) for result in results):
        missing += find_deeds(objective_text)
    found = Checked(parts=tuple(parts), missing=tuple(dict.fromkeys(filter(None, missing))))
    return reply.is_met and bool(parts) and not found.missing, found


def still_shown(
    parts: Sequence[CheckedPart],
    results: Sequence[Result],
    *,
    objective_text: str,
    doers: Collection[str] = DOERS,
) -> tuple[CheckedPart, ...]:
    """Return those of the answered parts whose quotes are still found in the same results, and are
    still evidence. `doers` are the tools that act on the world, as origins (`tool:NAME`)."""
    folded = {result.task_id: _fold(result.text) for result in results}
    result_by_id = {result.task_id: result for result in results}
    computed = _find_computed(results)
    return tuple(
        part
        for part in parts
        if _find(part.quote, folded, first=part.task_id, computed=computed) == part.task_id
        and is_evidence(
            part.quote, result_by_id[part.task_id], objective_text=objective_text, doers=doers
        )
    )


def _is_more_than_a_name(quote: str, result: Result, objective_text: str) -> bool:
    """Return whether a quote says more than the name of the thing that was asked about, which is a
    few words that the objective contains. The name of one of several alternatives does."""
    words = _words(quote)
    is_name = len(words) <= MAX_NAME_WORDS and set(words) <= set(_words(objective_text))
    return not is_name or chooses(quote, result, objective_text)


def _find_computed(results: Sequence[Result]) -> frozenset[int]:
    """Return the ids of the tasks whose results a tool only computed, from numbers that the model
    wrote, without reading anything. In such a result even a single digit may be an answer, and so
    may a number that is the whole result, even if the objective contains it."""
    return frozenset(
        result.task_id
        for result in results
        if ONLY_COMPUTES & set(result.origins)
        and not is_from_outside(result)
        and any(sign.isdecimal() for sign in result.text)
    )


def _find(
    quote: str, folded: Mapping[int, str], *, first: int | None, computed: Collection[int]
) -> int | None:
    """Return the id of the task whose result contains the quote; None if there is none. If the
    quote has gaps (`…`), its pieces must occur in the order of the quote. A very short quote must
    be the whole result, or a number in a result that a tool computed.

    Args:
        folded: the texts of the results by task id, as `_fold` returns them.
        first: the task whose result is searched first.
        computed: the tasks whose results come from a tool that computes.
    """
    if len(quote) >= MAX_TEXT_CHARS:
        quote = quote.rpartition(" ")[0] or quote  # the last word may be cut off
    pieces = list(filter(None, map(_fold, re.split(r"…|\.{3}|\[\.*\]", quote))))
    if not pieces:
        return None
    if sum(map(len, pieces)) < MIN_QUOTE_CHARS:
        folded = {
            task_id: text
            for task_id, text in folded.items()
            if text == pieces[0] or (task_id in computed and pieces[0].isdecimal())
        }
    pattern = re.compile(".*?".join(map(_as_words, pieces[:MAX_PIECES])), re.DOTALL)
    if first is not None and first in folded and pattern.search(folded[first]):
        return first
    return next((task_id for task_id, text in folded.items() if pattern.search(text)), None)


def _as_words(piece: str) -> str:
    """Return a pattern that finds the piece only as whole words. In a script without spaces, it
    also finds the piece inside a word."""
    before = "" if UNSPACED.match(piece[0]) else rf"(?<![^\W{NO_SPACES}])"
    behind = "" if UNSPACED.match(piece[-1]) else rf"(?![^\W{NO_SPACES}])"
    return f"{before}{re.escape(piece)}{behind}"


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", _fold(text))


def _fold(text: str) -> str:
    """Return the text in the form in which quotes are compared: without case, quotation marks, dots
    at the ends, differences of white space, and the signs that `disarm` (text.py) adds."""
    plain = unicodedata.normalize("NFKC", rearm(text)).casefold()
    return " ".join(re.sub(r"[\"'`*_“”‘’«»]", "", plain).split()).strip(" .…,;:。、")


# -- reading the check agent's reply: which results answer which part of the objective, and what is
# missing
# --------------------------------------------------------------------------------------------------


UNREADABLE = "the reply of the check could not be read"

_MET_KEYS = ("met", "objectivemet", "ismet", "fulfilled")
_PARTS_KEYS = ("parts", "part", "covered", "answered", "fulfilledparts")
_MISSING_KEYS = ("missing", "missingparts", "missed", "gaps", "notanswered", "unanswered", "lacks")
_PART_KEYS = ("part", "name", "requirement", "objectivepart", "text", "description")
_TASK_KEYS = ("task", "taskid", "id", "from", "number", "result")
_QUOTE_KEYS = ("quote", "evidence", "words", "quotation", "citation")
_VERDICT = late_pattern(
    r"\W{0,20}(?:(?:objective[_ ])?met\W{1,5})?(?P<word>yes|no|true|false|not "
    r"met|met)\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReplyPart:
    """A part of the objective, the task whose result answers it according to the reply, and the
    words that the reply quotes from that result."""

    part: str
    task_id: int | None
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReply:
    """The reply of a check: whether the objective is met, the answered parts, and what is missing.
    `reason` explains it to a person in one line."""

    is_met: bool
    parts: tuple[CheckReplyPart, ...]
    missing: tuple[str, ...]
    is_readable: bool
    reason: str


def parse_check(text: str) -> CheckReply:
    """Parse the reply of a check. The objective counts as met only if the reply can be read, is
    complete, says so, and names nothing missing."""
    text = without_echo(visible(text))
    for json_ in reversed(find_json(text)):
        for node in walk(json_.value):
            folded = fold_keys(node) if isinstance(node, dict) else {}
            if folded.keys() & set(_MET_KEYS) or {"parts", "missing"} <= folded.keys():
                return _read_object(folded, json_)
    said = _VERDICT.match(text)
    if said is None:
        return _to_reply(is_met=False, parts=(), missing=(), is_readable=False)
    is_met = said["word"].casefold() in ("yes", "true", "met")
    rest = to_sentence(said["rest"])
    missing = (rest,) if rest and not is_met else ()
    return _to_reply(is_met=is_met, parts=(), missing=missing, is_readable=True)


def _read_object(node: Mapping[str, Any], json_: JsonValue) -> CheckReply:
    missing = _to_texts(first_of(node, _MISSING_KEYS))
    verdict = next((node[key] for key in _MET_KEYS if key in node), None)
    is_clear = is_true(verdict) or is_false(verdict)
    is_met = is_true(verdict) and json_.is_whole and not missing
    return _to_reply(
        is_met=is_met,
        parts=_to_parts(first_of(node, _PARTS_KEYS)),
        missing=missing,
        is_readable=bool(missing) or (is_clear and json_.is_whole),
    )


def _to_reply(
    *, is_met: bool, parts: tuple[CheckReplyPart, ...], missing: tuple[str, ...], is_readable: bool
) -> CheckReply:
    reason = "; ".join(missing)[:MAX_REASON_CHARS] if is_readable else UNREADABLE
    return CheckReply(
        is_met=is_met, parts=parts, missing=missing, is_readable=is_readable, reason=reason
    )


def _to_texts(value: Any) -> tuple[str, ...]:
    """Return the parts of the objective that a reply calls missing, one text per part. The value
    may be a text, a list, or objects."""
    keys = (*_PART_KEYS, *_MISSING_KEYS, "what", "reason")
    said = (
        first_of(fold_keys(item), keys) if isinstance(item, dict) else item for item in _list(value)
    )
    return tuple(dict.fromkeys(filter(None, map(to_sentence, said))))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _to_parts(value: Any) -> tuple[CheckReplyPart, ...]:
    """Return the parts of the objective that a reply calls answered. The value may be a list of
    objects, or an object keyed by part. Parts without a name are left out."""
    if isinstance(value, dict) and not any(key in _PART_KEYS for key in map(str.casefold, value)):
        value = [
            {"part": part, **inner} if isinstance(inner, dict) else {"part": part, "task": inner}
            for part, inner in value.items()
        ]
    parts = []
    for node in (fold_keys(item) for item in _list(value) if isinstance(item, dict)):
        part, quote = to_sentence(first_of(node, _PART_KEYS)), first_of(node, _QUOTE_KEYS)
        ids = map(to_id, _list(first_of(node, _TASK_KEYS)))
        task_id = next((id_ for id_ in ids if id_ is not None), None)
        quote = to_line(quote) if isinstance(quote, str) else ""
        parts += [CheckReplyPart(part=part, task_id=task_id, quote=quote)] if part else []
    return tuple(parts)
