"""Reads the typed replies of the agents: finds the JSON in a reply, whatever stands around it, and
gets ids and texts out of it. It judges form only; what a text means is a field of the reply."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from babyagi.text import clean

MAX_REPLY_CHARS = 200_000
MAX_LINE_CHARS = 500

THOUGHT_TAGS = ("think", "thinking", "thought", "reasoning")
_CHAT_TOKEN = (
    r"<\|[\w /-]{1,40}\|>|</?s>|\[/?INST\]|<(?:end|start)_of_turn>|<eos>|<｜[\w▁ -]{1,40}｜>"
)
_FIRST_TOKENS = re.compile(rf"\A(?:\s*+(?:{_CHAT_TOKEN})(?:assistant|model)?)++")
_LAST_TOKEN = re.compile(rf"(?:{_CHAT_TOKEN})\Z")
MAX_LAST_TOKENS = 20
_UNSEEN = dict.fromkeys(
    map(ord, "\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}\N{WORD JOINER}")
)


def visible(text: str) -> str:
    """Return the reply without what is not part of it: the model's thinking in tags, chat markers
    such as `<|im_end|>` at its ends, and invisible characters."""
    text = _without_tokens(clean(text[:MAX_REPLY_CHARS]).translate(_UNSEEN).strip())
    return _without_tokens(_without_thoughts(text).strip())


def _without_thoughts(text: str) -> str:
    """Return the text behind the model's thinking, which a tag closes. The chat template may have
    written the opening tag; thinking that was opened and not closed is all of the text."""
    folded = text.lower()
    for tag in THOUGHT_TAGS:
        end = folded.find(f"</{tag}>")
        if folded.startswith(f"<{tag}>"):
            return text[end + len(tag) + 3 :] if end >= 0 else ""
        if end >= 0 and "`" not in text[:end]:
            return text[end + len(tag) + 3 :] or text
    return text


def _without_tokens(text: str) -> str:
    text = _FIRST_TOKENS.sub("", text, count=1)
    for _ in range(MAX_LAST_TOKENS):
        found = _LAST_TOKEN.search(text, max(0, len(text) - 60))
        if found is None:
            break
        text = text[: found.start()].rstrip()
    return text.strip()


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


def find_object(text: str, *keys: str) -> JsonObject | None:
    """Return the last JSON object of the reply, at any depth, that has one of these keys.

    Keys are compared without case and without `_` and `-`, and are returned as they are in `keys`.
    """
    known = {_fold(key): key for key in keys}
    for found in reversed(find_json(text)):
        for node in walk(found.value):
            if isinstance(node, Mapping):
                named = {known[_fold(key)]: one for key, one in node.items() if _fold(key) in known}
                if named:
                    return JsonObject(
                        value=named, start=found.start, end=found.end, is_whole=found.is_whole
                    )
    return None


def with_keys(node: Any, *keys: str) -> dict[str, Any]:
    """Return the members of an object under these keys, compared as `find_object` compares them; {}
    if the value is no object."""
    known = {_fold(key): key for key in keys}
    items = node.items() if isinstance(node, Mapping) else ()
    return {known[_fold(key)]: one for key, one in items if _fold(key) in known}


def _fold(key: Any) -> str:
    return str(key)[:60].casefold().replace("_", "").replace("-", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObject:
    """The members of a JSON object that were asked for, and where the outermost value that holds it
    stands in the text. `is_whole`: that value was neither cut off nor broken."""

    value: Mapping[str, Any]
    start: int
    end: int
    is_whole: bool


# --------------------------------------------------------------------------------------------------
# Finds JSON values anywhere in a text, also if they have the faults that models make: Python's
# quotes and constants, unquoted keys, missing or extra commas, doubled braces, line breaks inside
# strings, and a missing end.
#
# Every character is read a bounded number of times.
# --------------------------------------------------------------------------------------------------

MAX_VALUES = 2000
MAX_DEPTH = 64
# After so many failures the strict parser is not used any more, because each failure takes time in
# proportion to the whole text.
MAX_REFUSED = 64

_START = re.compile(
    r"\[(?=\s*[\"'“{\[\d\]-])|\{(?=\s*(?:[\"'“}]|(?:[A-Za-z_]\w{0,40}|\d{1,9})\s{0,9}:))"
)
_TOKEN = re.compile(
    r"(?:[\s,]|(?://|#)[^\n]*+)*+(?:(?P<mark>[{}\[\]]|:|=>?)"
    r"|(?P<string>\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|“[^“”]*+”)"
    r"|(?P<word>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|-?[A-Za-z_]\w*+))",
    re.DOTALL,
)
_WORDS = {
    **{"true": True, "True": True, "false": False, "False": False},
    **dict.fromkeys(("null", "None", "NaN", "undefined")),
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = dict(zip("ntrbf\"'\\/", "\n\t\r\b\f\"'\\/", strict=True)) | {"\n": ""}
_STRICT = json.JSONDecoder(strict=False)
_SEPARATORS = (":", "=", "=>")
_NO_KEY = object()


class CutObject(dict[str, Any]):
    """An object that is cut off or broken. It contains only its complete members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonValue:
    """A JSON value in a text, from `start` to `end`. `is_whole`: it was neither cut off nor
    broken."""

    value: Any
    start: int
    end: int
    is_whole: bool


def find_json(text: str) -> list[JsonValue]:
    """Return the outermost objects and arrays of the text, in order. A value that is cut off or
    broken is returned with its complete parts."""
    found: list[JsonValue] = []
    at, n_refused = 0, 0
    while len(found) < MAX_VALUES and (start := _START.search(text, at)):
        strict = _read_strictly(text, start.start()) if n_refused < MAX_REFUSED else None
        n_refused += strict is None
        value, end, is_whole = (*strict, True) if strict else _read_loosely(text, start.start())
        if is_whole or value:
            found.append(JsonValue(value=value, start=start.start(), end=end, is_whole=is_whole))
        at = max(end, start.end())
    return found


def walk(value: Any) -> Iterator[Any]:
    """Yield the value and every value inside it, outer values first."""
    waiting = deque([value])
    while waiting:
        value = waiting.popleft()
        yield value
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)


def _read_strictly(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _read_loosely(text: str, start: int) -> tuple[Any, int, bool]:
    """Parse the value at `start`. Return (value, end, is_whole). If the value is broken, `end` is
    the position of the first token that cannot be read."""
    reader = _Reader()
    at = start
    while token := _TOKEN.match(text, at):
        is_key = text[token.end() : token.end() + 9].lstrip().startswith((":", "="))
        if not reader.take(token, is_key=is_key):
            break
        at = token.end()
        if reader.is_done:
            return reader.root, at, True
    return reader.cut(), at, False


class _Reader:
    """Builds a value token by token. `_open` has the open containers, the outermost first, and
    `_keys` for each the key whose value comes next, or `_NO_KEY`."""

    def __init__(self) -> None:
        self.root: Any = None
        self.is_done = False
        self._open: list[Any] = []
        self._keys: list[Any] = []

    def take(self, token: re.Match[str], *, is_key: bool) -> bool:
        """Add the next token to the value. Return False if the token is not allowed here. `is_key`
        says whether a `:` or `=` follows the token."""
        mark = token["mark"]
        if mark is None:
            return self._take_scalar(token["string"], token["word"], is_key=is_key)
        if mark in ("{", "["):
            return self._begin(CutObject() if mark == "{" else [])
        if mark in _SEPARATORS:
            is_in_object = bool(self._open) and isinstance(self._open[-1], dict)
            return is_in_object and self._keys[-1] is not _NO_KEY
        return self._end(mark)

    def cut(self) -> Any:
        """Close the open containers and return the value with its complete parts. An open object
        inside a list is not complete, and is left out."""
        while len(self._open) > 1:
            child = self._open.pop()
            self._keys.pop()
            if child and not (isinstance(child, dict) and isinstance(self._open[-1], list)):
                self._put(child)
        return self._open[0] if self._open else None

    def _begin(self, container: Any) -> bool:
        if len(self._open) >= MAX_DEPTH or not self._takes_value():
            return False
        self._open.append(container)
        self._keys.append(_NO_KEY)
        return True

    def _end(self, mark: str) -> bool:
        if (
            not self._open
            or isinstance(self._open[-1], list) is not (mark == "]")
            or self._keys[-1] is not _NO_KEY
        ):
            return False
        value = self._open.pop()
        self._keys.pop()
        value = dict(value) if isinstance(value, dict) else value
        if self._open:
            self._put(value)
        else:
            self.root, self.is_done = value, True
        return True

    def _take_scalar(self, string: str | None, word: str | None, *, is_key: bool) -> bool:
        if not self._open:
            return False
        if isinstance(self._open[-1], dict) and self._keys[-1] is _NO_KEY:
            if is_key:
                self._keys[-1] = _unquote(string) if string else word
            return is_key
        if (
            string is None
            and word not in _WORDS
            and not (word and (word[0].isdigit() or word[1:2].isdigit()))
        ):
            return False
        self._put(_unquote(string) if string else _read_word(word or ""))
        return True

    def _takes_value(self) -> bool:
        return not self._open or isinstance(self._open[-1], list) or self._keys[-1] is not _NO_KEY

    def _put(self, value: Any) -> None:
        if isinstance(self._open[-1], list):
            self._open[-1].append(value)
        elif self._keys[-1] is not _NO_KEY:
            self._open[-1][self._keys[-1]] = value
            self._keys[-1] = _NO_KEY


def _unquote(string: str) -> str:
    def unescape(found: re.Match[str]) -> str:
        escape = found[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, found[0])

    try:
        return str(json.loads(string, strict=False))  # a pair of surrogates becomes one character
    except ValueError:
        return _ESCAPE.sub(unescape, string[1:-1])


def _read_word(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    try:
        return int(word) if word.lstrip("-").isdigit() else float(word)
    except ValueError:
        return None  # not a number, or one with too many digits
