"""Reads the prioritization agent's reply: a proposed order of the tasks that it was shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from babyagi.agents.replies.reading import (
    JsonValue,
    find_json,
    first_of,
    fold,
    fold_keys,
    to_id,
    visible,
    walk,
)

SHOWN_NAME_CHARS = 200  # prompts cut longer names here, so replies may, too

_CODE_FENCE = re.compile(r"\A\s*`{3}\w*\s*")
_BLOCK_TAG = re.compile(r"</?(?:li|ol|ul|br|p|div|tr|table)\b[^<>]{0,100}>", re.IGNORECASE)
_CELL_TAG = re.compile(r"</?(?:td|th)\b[^<>]{0,100}>", re.IGNORECASE)
_LIST_MARK = re.compile(r"(?:[-+–—‣◦]\s+|[>|•·]\s*)*(?:\[x?\s?\]\s*)?")
_LEADING_ID = re.compile(
    r"[(\[#]*(?:(?:task|id|no\.?)\s*)*[:#]?\s*(\d{1,18})(?:\s*[.:;)\]|–—-]+(?!\d)|\s*$)"
)
_SEPARATOR = re.compile(r"(?:[\s,;→⇒>=]|-{1,3}>)+")
_LONE_ID = re.compile(r"[(\[#]*(\d{1,18})[)\].]*")
_CONNECTIVES = frozenset({"", "then", "and", "task", "tasks"})
_ORDER_KEYS = (
    "order",
    "neworder",
    "ordering",
    "sequence",
    "priorities",
    "priority",
    "queue",
    "tasks",
)
_ID_KEYS = ("id", "taskid", "task", "number")
_NAME_KEYS = ("name", "taskname", "task", "title", "description")
_RANK_KEYS = ("rank", "position", "place", "order")


def parse_order(text: str, *, window: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """Return ids of the window in the order that a reply proposes, each at most once.

    A line or JSON item with the name of a task means that task, whatever number precedes it,
    because replies often number their lists anew. Once a name is recognized, numbers are ignored;
    only without names are they ids. Ids and names in running prose are not an order.

    Args:
        window: (id, name) of each task that the agent was shown.
    """
    text = visible(text)
    names = _Names(window)
    found = find_json(text)
    for items in _order_lists(found, names.ids):
        if ids := names.resolve([line for item in items if (line := _to_line(item))]):
            return ids
    body = _CODE_FENCE.sub("", text).lstrip()
    if body.startswith("{") or (body.startswith("[") and "]" not in body):
        return ()
    return names.resolve(_CELL_TAG.sub("|", _BLOCK_TAG.sub("\n", text)).split("\n"))


def _order_lists(found: Sequence[JsonValue], ids: frozenset[int]) -> Iterator[list[Any]]:
    """Yield the lists that may be the order, likeliest first: those of the last JSON value first,
    and finally separate objects in a row."""
    for json_ in reversed(found):
        if not json_.is_whole or (isinstance(json_.value, list) and not json_.is_labelled):
            continue
        objects = [node for node in walk(json_.value) if isinstance(node, dict)]
        named = [
            folded[key]
            for node in objects
            if (folded := fold_keys(node))
            for key in _ORDER_KEYS
            if key in folded
        ]
        yield from (_ranked(value) for value in named if isinstance(value, list))
        yield from (_by_rank(value, ids) for value in named if isinstance(value, dict))
        yield from (_ranked(value) for value in walk(json_.value) if isinstance(value, list))
    alone = [
        json_.value
        for json_ in found
        if json_.is_alone and json_.is_whole and isinstance(json_.value, dict)
    ]
    if len(alone) > 1:
        yield _ranked(alone)
    yield from (_by_rank(value, ids) for value in reversed(alone))


def _ranked(items: list[Any]) -> list[Any]:
    """Return the items sorted by their own ranks, or unchanged if not every item has a different
    one."""
    ranks = [
        to_id(first_of(fold_keys(item), _RANK_KEYS)) if isinstance(item, dict) else None
        for item in items
    ]
    if len(set(ranks)) < len(items) or None in ranks:
        return items
    return [items[at] for at in sorted(range(len(items)), key=lambda at: ranks[at] or 0)]


def _by_rank(by_key: Mapping[str, Any], ids: frozenset[int]) -> list[Any]:
    """Return the items of an object in order. The object maps ranks (`"1"`, `"first"`) to ids or
    names, or ids to ranks or names."""
    keys = [to_id(key) for key in by_key]
    ranks = [to_id(value) for value in by_key.values()]
    if any(rank is None for rank in ranks):
        return [
            value if _is_numbered(value) else f"{key}: {_text_of(value)}"
            for key, value in by_key.items()
        ]
    counts = list(range(1, len(ranks) + 1))
    if (
        keys != counts
        and sorted(rank or 0 for rank in ranks) == counts
        and {key or 0 for key in keys} <= ids
    ):
        return [
            key for _, key in sorted(zip(ranks, keys, strict=True), key=lambda pair: pair[0] or 0)
        ]
    in_turn = (
        sorted(zip(keys, ranks, strict=True), key=lambda pair: pair[0] or 0)
        if None not in keys
        else zip(keys, ranks, strict=True)
    )
    return [id_ for _, id_ in in_turn]


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else _name_of(value) if isinstance(value, dict) else ""


def _name_of(item: Mapping[str, Any]) -> str:
    folded = fold_keys(item)
    return next((folded[key] for key in _NAME_KEYS if isinstance(folded.get(key), str)), "")


def _is_numbered(value: Any) -> bool:
    return isinstance(value, dict) and _id_of(value) is not None


def _id_of(item: Mapping[str, Any]) -> int | None:
    folded = fold_keys(item)
    return next((id_ for key in _ID_KEYS if (id_ := to_id(folded.get(key))) is not None), None)


def _to_line(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        number = _id_of(item)
        return _name_of(item) if number is None else f"{number}: {_name_of(item)}"
    number = to_id(item)
    return "" if number is None else str(number)


class _Names:
    """The tasks of a window, to be recognized in lines."""

    def __init__(self, window: Sequence[tuple[int, str]]) -> None:
        self.ids = frozenset(id_ for id_, _ in window)
        self._ids_by_name: dict[str, list[int]] = {}
        patterns: dict[str, str] = {}
        for id_, name in window:
            key = fold(name[:SHOWN_NAME_CHARS]).strip(" .,;:…")
            self._ids_by_name.setdefault(key, []).append(id_)
            patterns[key] = re.escape(key) + ("" if len(name) > SHOWN_NAME_CHARS else r"(?!\w)")
        self._longest_first = [
            (key, patterns[key]) for key in sorted(patterns, key=len, reverse=True) if key
        ]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """A pattern of all names. It is compiled only for a reply that contains a name, because
        that takes a millisecond."""
        return re.compile(rf"(?<!\w)(?:{'|'.join(pattern for _, pattern in self._longest_first)})")

    def resolve(self, lines: Iterable[str]) -> tuple[int, ...]:
        folded = [fold(line) for line in lines]
        by_name: dict[int, None] = {}
        for line in folded:
            leading = _leading_ids(line)[:1]
            for key in self._named(line):
                same = [id_ for id_ in self._ids_by_name[key] if id_ not in by_name]
                by_name.update(
                    dict.fromkeys(leading if leading and leading[0] in same else same[:1])
                )
        if by_name:
            return tuple(by_name)
        return tuple(
            dict.fromkeys(id_ for line in folded for id_ in _leading_ids(line) if id_ in self.ids)
        )

    def _named(self, line: str) -> list[str]:
        """Return the names in list position: all names of a line that consists of names, or the one
        that an item begins with or contains."""
        found = (
            list(self._pattern.finditer(line))
            if any(key in line for key, _ in self._longest_first)
            else []
        )
        if not found:
            return []
        head, colon, tail = line[: found[0].start()].rpartition(":")
        rest = (
            (tail if colon and len(head) < 60 else head + tail)
            + " "
            + self._pattern.sub(" ", line[found[0].end() :])
        )
        if set(re.split(r"[\W\d]+", rest)) <= _CONNECTIVES:
            return list(dict.fromkeys(match.group() for match in found))
        mark = _LIST_MARK.match(line)
        body = line[mark.end() :] if mark else line
        is_item = (
            len(body) < len(line) or _LEADING_ID.match(body) or body.startswith(found[0].group())
        )
        return [found[0].group()] if is_item else []


def _leading_ids(line: str) -> list[int]:
    """Return the numbers of a line that consists of numbers, or the one that it begins with."""
    head, colon, tail = line.rpartition(":")
    tokens = [
        token
        for token in _SEPARATOR.split(tail if colon and not any(map(str.isdigit, head)) else line)
        if token not in _CONNECTIVES
    ]
    numbers = [_LONE_ID.fullmatch(token) for token in tokens]
    if len(numbers) > 1 and all(numbers):
        return [int(number.group(1)) for number in numbers if number]
    mark = _LIST_MARK.match(line)
    leading = _LEADING_ID.match(line, mark.end() if mark else 0)
    return [int(leading.group(1))] if leading else []
