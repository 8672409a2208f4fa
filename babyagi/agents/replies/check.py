"""Reads the check agent's reply: which results answer which part of the objective, and what is
missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

UNREADABLE = "the reply of the check could not be read"

_MET_KEYS = ("met", "objectivemet", "ismet", "fulfilled")
_PARTS_KEYS = ("parts", "part", "covered", "answered", "fulfilledparts")
_MISSING_KEYS = ("missing", "missingparts", "missed", "gaps", "notanswered", "unanswered", "lacks")
_PART_KEYS = ("part", "name", "requirement", "objectivepart", "text", "description")
_TASK_KEYS = ("task", "taskid", "id", "from", "number", "result")
_QUOTE_KEYS = ("quote", "evidence", "words", "quotation", "citation")
_VERDICT = re.compile(
    (
        r"\W{0,20}(?:(?:objective[_ ])?met\W{1,5})?(?P<word>yes|no|true|false|not "
        r"met|met)\b(?P<rest>.*)"
    ),
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReplyPart:
    """A part of the objective, the task whose result is said to answer it, and words that are said
    to be a quote from that result."""

    part: str
    task_id: int | None
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReply:
    """Whether the objective is met, the parts with what answers them, and what is missing. `reason`
    is a line for a person."""

    is_met: bool
    parts: tuple[CheckReplyPart, ...]
    missing: tuple[str, ...]
    is_readable: bool
    reason: str


def parse_check(text: str) -> CheckReply:
    """Return the verdict of a reply. It is "met" only if the reply can be read, is complete, and
    names nothing missing."""
    text = without_echo(visible(text))
    for json_ in reversed(find_json(text)):
        for node in walk(json_.value):
            folded = fold_keys(node) if isinstance(node, dict) else {}
            if any(key in folded for key in _MET_KEYS) or (
                "parts" in folded and "missing" in folded
            ):
                return _read(folded, json_)
    said = _VERDICT.match(text)
    if said is None:
        return _to_reply(is_met=False, parts=(), missing=(), is_readable=False)
    is_met = said["word"].casefold() in ("yes", "true", "met")
    rest = to_sentence(said["rest"])
    return _to_reply(
        is_met=is_met, parts=(), missing=(rest,) if rest and not is_met else (), is_readable=True
    )


def _read(node: Mapping[str, Any], json_: JsonValue) -> CheckReply:
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
    """Return what is missing, one text per entry, from a text, a list, or objects."""
    items = value if isinstance(value, list) else [value]
    texts = [
        to_sentence(
            first_of(fold_keys(item), (*_PART_KEYS, *_MISSING_KEYS, "what", "reason"))
            if isinstance(item, dict)
            else item
        )
        for item in items
    ]
    return tuple(dict.fromkeys(text for text in texts if text))


def _to_parts(value: Any) -> tuple[CheckReplyPart, ...]:
    """Return the parts, from a list of objects or from an object keyed by part. Parts without words
    are left out."""
    if isinstance(value, dict) and not any(key in _PART_KEYS for key in map(str.casefold, value)):
        value = [
            {"part": part, **inner} if isinstance(inner, dict) else {"part": part, "task": inner}
            for part, inner in value.items()
        ]
    nodes = [
        fold_keys(item)
        for item in (value if isinstance(value, list) else [value])
        if isinstance(item, dict)
    ]
    parts = [(to_sentence(first_of(node, _PART_KEYS)), node) for node in nodes]
    return tuple(
        CheckReplyPart(
            part=part,
            task_id=_to_task_id(first_of(node, _TASK_KEYS)),
            quote=_to_quote(first_of(node, _QUOTE_KEYS)),
        )
        for part, node in parts
        if part
    )


def _to_task_id(value: Any) -> int | None:
    return next(
        (
            id_
            for item in (value if isinstance(value, list) else [value])
            if (id_ := to_id(item)) is not None
        ),
        None,
    )


def _to_quote(value: Any) -> str:
    return to_line(value) if isinstance(value, str) else ""
