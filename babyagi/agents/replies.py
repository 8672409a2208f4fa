"""Reads the typed replies of the agents: finds the JSON in a reply, whatever stands around it, and
gets ids and texts out of it. It judges form only; what a text means is a field of the reply."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from babyagi.react.values import find_values
from babyagi.text import clean

MAX_REPLY_CHARS = 200_000
MAX_LINE_CHARS = 500

_UNSEEN = dict.fromkeys(
    map(ord, "\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}\N{WORD JOINER}")
)


def visible(text: str) -> str:
    """Return the reply, at most `MAX_REPLY_CHARS` of it, without invisible characters."""
    return clean(text[:MAX_REPLY_CHARS]).translate(_UNSEEN).strip()


def to_line(value: Any, *, max_chars: int = MAX_LINE_CHARS) -> str:
    """Return the text on one line, at most `max_chars` long, without control characters; "" if the
    value is no text, or has no letter and no digit."""
    if not isinstance(value, str) or not any(map(str.isalnum, value)):
        return ""
    return clean(" ".join(value.split()))[:max_chars]


def to_id(value: Any) -> int | None:
    """Return the number of a task from `3`, `3.0`, `"3"` or `"#3"`; None for anything else."""
    if isinstance(value, str):
        digits = value.strip().removeprefix("#")
        return int(digits) if digits.isdecimal() and len(digits) <= 18 else None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def to_list(value: Any) -> list[Any]:
    """Return the value as a list: a list as it is, nothing for None, else the value alone."""
    return value if isinstance(value, list) else [] if value is None else [value]


def is_true(value: Any) -> bool:
    return value is True or value == "true"


def find_object(text: str, *keys: str) -> tuple[dict[str, Any], int, int]:
    """Return the last JSON object of the reply, at any depth, that has one of these keys, and the
    start and the end of the outermost value that holds it; ({}, 0, 0) if there is none.

    Keys are compared without case and without `_` and `-`, and are returned as they are in `keys`;
    other members are left out.
    """
    for value, start, end in reversed(find_values(text)):
        for node in _walk(value):
            if named := with_keys(node, *keys):
                return named, start, end
    return {}, 0, 0


def find_list(text: str) -> list[Any] | None:
    """Return the last JSON list of the reply that is in no other value; None if there is none."""
    lists = [value for value, _, _ in find_values(text) if isinstance(value, list)]
    return lists[-1] if lists else None


def _walk(value: Any) -> Iterator[Any]:
    """Yield the value and every value inside it, outer values first."""
    waiting = deque([value])
    while waiting:
        value = waiting.popleft()
        yield value
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)


def with_keys(node: Any, *keys: str) -> dict[str, Any]:
    """Return the members of an object under these keys, compared as `find_object` compares them; {}
    if the value is no object."""
    known = {_fold(key): key for key in keys}
    items = node.items() if isinstance(node, Mapping) else ()
    return {known[_fold(key)]: one for key, one in items if _fold(key) in known}


def _fold(key: Any) -> str:
    return str(key)[:60].casefold().replace("_", "").replace("-", "")
