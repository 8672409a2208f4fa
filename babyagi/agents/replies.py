"""Model text to typed replies: tolerant in what it reads, and never the inventor of a task, an id or a word.

JSON is looked for first, anywhere in the text; then a list, line by line. Prose is neither. Only the first `MAX_REPLY_CHARS`
characters are read, in linear time.

Does not cover: tool calls, and the text of a task's result, which is kept as it is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.prompt import clean

MAX_REPLY_CHARS = 200_000
MAX_NAME_CHARS = 500
MAX_REASON_CHARS = 500
MAX_JSON_STARTS = 64  # each failed start may read the whole text
SHOWN_NAME_CHARS = 200  # a prompt may show a longer name cut here, and so may a reply

EXPECTED_TASKS = 'expected JSON: {"tasks": [{"name": "…", "after": []}], "objective_met": false}'

_THINKING = re.compile(r"^[ \t]*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE)
_END_OF_THINKING = re.compile(r"</think(?:ing)?>[ \t]*(?=[\n{\[]|\Z)", re.IGNORECASE)
_JSON_START = re.compile(r"[{\[](?=\s*[\"{\[\d\]}-])")
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|,(?=\s*[}\]])', re.DOTALL)
_CODE_FENCE = re.compile(r"\A\s*`{3}\w*\s*")

_ITEM = re.compile(
    r"(?P<bold>\*\*)?(?:[-*+–‣◦]\s+|[•·]\s*|(?:task\s+)?[#(]?\d{1,4}\s*(?:[.):]+(?!\d)|\s[-–]\s)|#\d{1,4}\s)\s*"
    r"(?P<end>\*\*\s*)?(?:\[[ xX]?\]\s+)?(?P<name>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_HEADING = re.compile(r"#{1,6}\s|`{3}|[-=*_]{3,}$|\*\*[^*]+\*\*:?$")
_NOTHING = re.compile(r"(?:there (?:are|is) )?(?:none|nothing|n/?a|no(?: \w+){0,2} tasks?)\b.{0,60}", re.IGNORECASE)
_REFUSAL = re.compile(r"[^\n]{0,80}\b(?:can(?:no|['’])t|can not|unable to|won['’]t|not able to)\b", re.IGNORECASE)
_APOLOGY = re.compile(r"\W*(?:i['’]m|i am|i can|i won|sorry|as an ai|unfortunately)", re.IGNORECASE)
_WRAPPERS = (("**", "**"), ("__", "__"), ('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"))

_BLOCK_TAG = re.compile(r"</?(?:li|ol|ul|br|p|div|tr|table)\b[^<>]{0,100}>", re.IGNORECASE)
_CELL_TAG = re.compile(r"</?(?:td|th)\b[^<>]{0,100}>", re.IGNORECASE)
_MARKS = str.maketrans(dict.fromkeys("*_`\"'“”‘’«»\N{VARIATION SELECTOR-16}\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}", ""))
_KEYCAP = "\N{COMBINING ENCLOSING KEYCAP}"  # an emoji number is digits, each with one
_LIST_MARK = re.compile(r"(?:[-+–—‣◦]\s+|[>|•·]\s*)*(?:\[x?\s?\]\s*)?")
_LEADING_ID = re.compile(r"[(\[#]*(?:(?:task|id|no\.?)\s*)*[:#]?\s*(\d{1,18})(?:\s*[.:;)\]|–—-]+(?!\d)|\s*$)")
_SEPARATOR = re.compile(r"(?:[\s,;→⇒>=]|-{1,3}>)+")
_LONE_ID = re.compile(r"[(\[#]*(\d{1,18})[)\].]*")
_CONNECTIVES = frozenset({"", "then", "and", "task", "tasks"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedTask:
    """A task as the creation agent proposes it. `after` holds only ids that it was shown."""

    name: str
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreationReply:
    """What the creation agent said. `note` says what of it was left out; empty when nothing was."""

    tasks: tuple[ProposedTask, ...]
    is_met: bool
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReply:
    """Whether the objective is met, and what is missing if it is not."""

    is_met: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Json:
    """A JSON value in a text, and whether its line holds no words before and after it."""

    value: Any
    is_alone: bool
    is_labelled: bool  # alone, or after a `:` or `=` and nothing behind it


# -- creation -------------------------------------------------------------------------------------------------------------------


def parse_creation(text: str, *, known_ids: Collection[int], max_tasks: int) -> CreationReply:
    """Return the tasks that a reply proposes, at most `max_tasks` of them.

    A name keeps its words byte for byte: white space is collapsed, and quotes or bold around the whole are removed. Of a reply
    that was cut off only the complete objects count.

    Raises:
        MalformedReplyError: the reply means to be JSON and nothing of it can be read.
    """
    text = _visible(text)
    read = _read_creation_json(text)
    if read is None:
        if _CODE_FENCE.sub("", text).lstrip().startswith(("{", "[{", '["')) or '"tasks"' in text:
            raise MalformedReplyError(f"The reply could not be read as JSON, or was cut off; {EXPECTED_TASKS}.")
        read = [] if _is_refusal(text) else list(_list_items(text)), False
    items, is_met = read
    known = frozenset(known_ids)
    tasks = [task for task in (_to_task(item, known) for item in items) if task is not None]
    usable = [task for task in tasks if len(task.name) <= MAX_NAME_CHARS]
    notes = [
        f"{len(tasks) - len(usable)} with a name over {MAX_NAME_CHARS} characters" if len(usable) < len(tasks) else "",
        f"{len(usable) - max_tasks} over the {max_tasks} allowed" if len(usable) > max_tasks else "",
    ]
    left_out = " and ".join(note for note in notes if note)
    return CreationReply(tasks=tuple(usable[:max_tasks]), is_met=is_met, note=f"left out: {left_out}" if left_out else "")


def _read_creation_json(text: str) -> tuple[list[Any], bool] | None:
    """(items, is_met) of the last JSON value that proposes something, or says that there is nothing; None without one."""
    found = _json_values(text)
    for json_ in reversed(found):
        for value in _walk(json_.value):
            if isinstance(value, dict) and ("tasks" in value or "objective_met" in value):
                tasks = value.get("tasks")
                return tasks if isinstance(tasks, list) else [tasks], _is_true(value.get("objective_met"))
    objects = [json_.value for json_ in found if isinstance(json_.value, dict) and _name_of(json_.value)]
    if objects:
        return objects, False
    arrays = [json_.value for json_ in found if json_.is_alone and _is_list_of_tasks(json_.value)]
    return (arrays[-1], False) if arrays else None


def _is_list_of_tasks(value: Any) -> bool:
    if not value:
        return True
    return isinstance(value, list) and all(isinstance(item, str) or (isinstance(item, dict) and _name_of(item)) for item in value)


def _name_of(item: Mapping[str, Any]) -> str:
    names = (item.get(key) for key in ("name", "task_name", "task"))
    return next((name for name in names if isinstance(name, str)), "")


def _to_task(item: Any, known: frozenset[int]) -> ProposedTask | None:
    name = _tidy(_name_of(item) if isinstance(item, dict) else item if isinstance(item, str) else "")
    if not any(char.isalnum() for char in name) or (len(name) < 120 and _NOTHING.fullmatch(name)):
        return None
    after = item.get("after") if isinstance(item, dict) else None
    ids = (_to_id(value) for value in (after if isinstance(after, list) else [after]))
    return ProposedTask(name=name, after=tuple(dict.fromkeys(id_ for id_ in ids if id_ is not None and id_ in known)))


def _tidy(name: str) -> str:
    name = clean(" ".join(name.split()))
    for opening, closing in _WRAPPERS:
        inner = name[len(opening) : -len(closing)]
        if name.startswith(opening) and name.endswith(closing) and inner and opening not in inner and closing not in inner:
            name = inner.strip()
    return name


def _to_id(value: Any) -> int | None:
    if isinstance(value, str) and (lone := _LONE_ID.fullmatch(value.strip())):
        return int(lone.group(1))
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().casefold() in ("true", "yes"))


def _is_refusal(text: str) -> bool:
    return bool(_APOLOGY.match(text[:200]) and _REFUSAL.match(text.lstrip()))


def _list_items(text: str) -> Iterator[str]:
    """The items of the lists in the text, each with its wrapped lines and its sub-items; prose around them is no item."""
    parts: list[str] = []
    indent = 0
    for line in text.split("\n"):
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        item = _ITEM.fullmatch(stripped)
        if parts and _goes_on(parts[-1], stripped, depth=depth - indent, is_item=item is not None):
            parts.append(stripped)
            continue
        if parts:
            yield " ".join(parts)
        parts = [_item_name(item)] if item else []
        indent = depth
    if parts:
        yield " ".join(parts)


def _goes_on(before: str, line: str, *, depth: int, is_item: bool) -> bool:
    """True when the line, indented by `depth` more than the item, belongs to the item that `before` is the last line of."""
    if not line or is_item:
        return bool(line) and depth >= 2
    if depth >= 2:
        return True
    is_new_sentence = before.endswith((".", "!", "?", ":")) and line[0].isupper()
    return not (_HEADING.match(line) or line.endswith(":") or is_new_sentence)


def _item_name(item: re.Match[str]) -> str:
    is_open = item["bold"] and not item["end"]
    return ("**" if is_open else item["end"] if item["end"] and not item["bold"] else "") + item["name"]


# -- order ------------------------------------------------------------------------------------------------------------------------


def parse_order(text: str, *, window: Sequence[tuple[int, str]]) -> tuple[int, ...]:
    """Return ids of the window in the order that a reply wishes: each at most once, none that is not in the window.

    A line or JSON item with the name of a task means that task, whatever number stands before it, because lists come back
    numbered anew. Once a name is recognised, numbers count for nothing; only without names are they ids. Ids and names in
    running prose are no order.

    Args:
        window: (id, name) of each task that the agent was shown.
    """
    text = _visible(text)
    names = _Names(window)
    found = _json_values(text)
    for json_ in reversed(found):
        for items in _order_lists(json_):
            if ids := names.resolve([line for item in items if (line := _to_line(item))]):
                return ids
    body = _CODE_FENCE.sub("", text).lstrip()
    if body.startswith("{") or (body.startswith("[") and "]" not in body):
        return ()
    return names.resolve(_CELL_TAG.sub("|", _BLOCK_TAG.sub("\n", text)).split("\n"))


def _order_lists(json_: _Json) -> Iterator[list[Any]]:
    if isinstance(json_.value, list) and not json_.is_labelled:
        return
    values = list(_walk(json_.value))
    yield from (value["order"] for value in values if isinstance(value, dict) and isinstance(value.get("order"), list))
    yield from (value for value in values if isinstance(value, list))


def _to_line(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        number = next((id_ for key in ("id", "task_id") if (id_ := _to_id(item.get(key))) is not None), None)
        return _name_of(item) if number is None else f"{number}: {_name_of(item)}"
    number = _to_id(item)
    return "" if number is None else str(number)


class _Names:
    """The tasks of a window, to be recognised in lines."""

    def __init__(self, window: Sequence[tuple[int, str]]) -> None:
        self._ids = frozenset(id_ for id_, _ in window)
        self._ids_by_name: dict[str, list[int]] = {}
        patterns: dict[str, str] = {}
        for id_, name in window:
            key = _fold(name[:SHOWN_NAME_CHARS]).strip(" .,;:…")
            self._ids_by_name.setdefault(key, []).append(id_)
            patterns[key] = re.escape(key) + ("" if len(name) > SHOWN_NAME_CHARS else r"(?!\w)")
        self._longest_first = [(key, patterns[key]) for key in sorted(patterns, key=len, reverse=True) if key]

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Any of the names; compiled only for a reply that holds one, because that takes a millisecond."""
        return re.compile(rf"(?<!\w)(?:{'|'.join(pattern for _, pattern in self._longest_first)})")

    def resolve(self, lines: Iterable[str]) -> tuple[int, ...]:
        folded = [_fold(line) for line in lines]
        by_name: dict[int, None] = {}
        for line in folded:
            leading = _leading_ids(line)[:1]
            for key in self._named(line):
                same = [id_ for id_ in self._ids_by_name[key] if id_ not in by_name]
                by_name.update(dict.fromkeys(leading if leading and leading[0] in same else same[:1]))
        if by_name:
            return tuple(by_name)
        return tuple(dict.fromkeys(id_ for line in folded for id_ in _leading_ids(line) if id_ in self._ids))

    def _named(self, line: str) -> list[str]:
        """The names in list position: all that the line is made of, or the one that an item begins with or holds."""
        found = list(self._pattern.finditer(line)) if any(key in line for key, _ in self._longest_first) else []
        if not found:
            return []
        head, colon, tail = line[: found[0].start()].rpartition(":")
        rest = (tail if colon and len(head) < 60 else head + tail) + " " + self._pattern.sub(" ", line[found[0].end() :])
        if set(re.split(r"[\W\d]+", rest)) <= _CONNECTIVES:
            return list(dict.fromkeys(match.group() for match in found))
        mark = _LIST_MARK.match(line)
        body = line[mark.end() :] if mark else line
        is_item = len(body) < len(line) or _LEADING_ID.match(body) or body.startswith(found[0].group())
        return [found[0].group()] if is_item else []


def _leading_ids(line: str) -> list[int]:
    """The numbers that the line consists of, or the one that it begins with."""
    head, colon, tail = line.rpartition(":")
    tokens = [token for token in _SEPARATOR.split(tail if colon and not any(map(str.isdigit, head)) else line) if token not in _CONNECTIVES]
    numbers = [_LONE_ID.fullmatch(token) for token in tokens]
    if len(numbers) > 1 and all(numbers):
        return [int(number.group(1)) for number in numbers if number]
    mark = _LIST_MARK.match(line)
    leading = _LEADING_ID.match(line, mark.end() if mark else 0)
    return [int(leading.group(1))] if leading else []


def _fold(text: str) -> str:
    """The text as names are compared: compatible letters alike, case, quotes, emphasis and the width of space ignored."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_MARKS)
    return " ".join(re.sub(f"{_KEYCAP}(?!\\d)", ".", folded).replace(_KEYCAP, "").split())


# -- check ------------------------------------------------------------------------------------------------------------------------


def parse_check(text: str) -> CheckReply:
    """Return the verdict of a reply; what cannot be read is no "met"."""
    text = _visible(text)
    for json_ in reversed(_json_values(text)):
        if isinstance(json_.value, dict) and "met" in json_.value:
            missing = json_.value.get("missing")
            return CheckReply(is_met=_is_true(json_.value["met"]), reason=_reason(missing if isinstance(missing, str) else ""))
    first = re.match(r"\W{0,20}(yes|no)\b", text, re.IGNORECASE)
    if first is None:
        return CheckReply(is_met=False, reason="the reply of the check could not be read")
    return CheckReply(is_met=first.group(1).casefold() == "yes", reason=_reason(text[first.end() :]))


def _reason(text: str) -> str:
    return clean(" ".join(text.split())).strip(" .,:;-–—*")[:MAX_REASON_CHARS]


# -- text and JSON --------------------------------------------------------------------------------------------------------------


def _visible(text: str) -> str:
    """The bounded text without what the model only thought: blocks of `<think>`, also those whose beginning or end is missing."""
    text = text[:MAX_REPLY_CHARS].replace("\r\n", "\n").replace("\r", "\n").lstrip("\N{ZERO WIDTH NO-BREAK SPACE}")
    text = _THINKING.sub("", text)
    ends = list(_END_OF_THINKING.finditer(text))
    return text[ends[-1].end() :] if ends else text


def _json_values(text: str) -> list[_Json]:
    """The outermost JSON objects and arrays of the text, in order; inside one that is broken, what is whole of it."""
    found: list[_Json] = []
    at = 0
    for _ in range(MAX_JSON_STARTS):
        start = _JSON_START.search(text, at)
        if start is None:
            break
        decoded = _decode(text, start.start())
        if decoded is None:
            at = start.end()
            continue
        value, at = decoded
        before = text[text.rfind("\n", 0, start.start()) + 1 : start.start()].strip().strip("`")
        after = text[at:].split("\n", 1)[0]
        ends_line = not any(map(str.isalnum, after))
        is_alone = ends_line and not any(map(str.isalnum, before))
        found.append(_Json(value=value, is_alone=is_alone, is_labelled=is_alone or (ends_line and before.rstrip().endswith((":", "=")))))
    return found


def _decode(text: str, start: int) -> tuple[Any, int] | None:
    """(value, end) of the JSON value at `start`, trailing commas forgiven; None when there is none."""
    decoder = json.JSONDecoder()
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        if not re.compile(r"\s*,?\s*[}\]]").match(text, error.pos):
            return None
    except (ValueError, RecursionError):
        return None
    try:
        value, length = decoder.raw_decode(_STRING_OR_COMMA.sub(lambda found: " " if found[0] == "," else found[0], text[start:]))
    except (ValueError, RecursionError):
        return None
    return value, start + length


def _walk(value: Any) -> Iterator[Any]:
    """The value and everything in it, the outer before the inner."""
    waiting = deque([value])
    while waiting:
        value = waiting.popleft()
        yield value
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)
