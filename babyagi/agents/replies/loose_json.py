"""JSON values anywhere in a text, also JSON as models write it: with Python's quotes and words,
with names of members without quotes, with commas too many or too few, with line breaks or quotes
inside strings, and cut off.

Every character is read a bounded number of times. Does not cover: values without quotes, and
references (`$ref`, anchors).
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MAX_VALUES = 2000
MAX_DEPTH = 64
# behind so many refusals the strict reader is not asked any more: for each it counts the lines of
# the text
MAX_REFUSED = 64
MAX_QUOTE_REPAIRS = 8  # each may read the rest of the text
LINE_LOOK_CHARS = 200  # of the line before and behind a value, to tell whether it stands alone

_START = re.compile(
    r"\[(?=\s*[\"'“{\[\d\]-])|\{(?=\s*(?:[\"'“}]|(?:[A-Za-z_]\w{0,40}|\d{1,9})\s{0,9}:))"
)
_STRING = r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|“[^“”]*+”"
_REPAIRED_STRING = "|".join(
    rf"{quote}(?:[^{quote}\\]|\\.|{quote}(?=[^\S\n]*+[^\s\"',:}}\]]))*+{quote}" for quote in "\"'"
)  # a quote that no comma, colon or bracket follows stands in the text, not at its end
_NUMBER_OR_WORD = r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|-?[A-Za-z_]\w*+"
_TOKENS, _REPAIRING_TOKENS = (
    re.compile(
        (
            rf"(?:[\s,]|(?://|#)[^\n]*+)*+(?:(?P<mark>[{{}}\[\]]|:|=>?)|(?P<string>{string})"
            rf"|(?P<word>{_NUMBER_OR_WORD}))"
        ),
        re.DOTALL,
    )
    for string in (_STRING, _REPAIRED_STRING)
)
_WORDS = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "NaN": None,
    "undefined": None,
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    '"': '"',
    "'": "'",
    "\\": "\\",
    "/": "/",
    "\n": "",
}
_LIST_MARK = re.compile(r"\A\s*\d{1,4}[.):]\s")
_WORD_CHAR = re.compile(r"[^\W_]")
_STRICT = json.JSONDecoder(strict=False)
_SEPARATORS = (":", "=", "=>")
_NO_KEY = object()


class CutObject(dict[str, Any]):
    """An object that was cut off or broken, with the members that are whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonValue:
    """A JSON value in a text: where it stands, what its line holds before it, and whether that and
    what is behind it are no words."""

    value: Any
    start: int
    end: int
    before: str
    is_whole: bool
    is_alone: bool
    is_labelled: bool  # alone, or behind a `:` or `=` and with nothing behind it


def find_json(text: str) -> list[JsonValue]:
    """Return the outermost objects and arrays of the text, in order; of one that is cut or broken,
    what is whole of it."""
    found: list[JsonValue] = []
    at, n_refused, n_repairs = 0, 0, 0
    while len(found) < MAX_VALUES and (start := _START.search(text, at)):
        strict = _read_strictly(text, start.start()) if n_refused < MAX_REFUSED else None
        n_refused += strict is None
        value, at, is_whole = (
            (*strict, True) if strict else _read_loosely(text, start.start(), _TOKENS)
        )
        if not is_whole and n_repairs < MAX_QUOTE_REPAIRS:
            n_repairs += 1
            repaired = _read_loosely(text, start.start(), _REPAIRING_TOKENS)
            value, at, is_whole = repaired if repaired[2] else (value, at, is_whole)
        if is_whole or value:
            found.append(_place(text, value, start.start(), at, is_whole=is_whole))
        at = max(at, start.end())
    return found


def walk(value: Any) -> Iterator[Any]:
    """The value and everything in it, the outer before the inner."""
    waiting = deque([value])
    while waiting:
        value = waiting.popleft()
        yield value
        if isinstance(value, dict | list):
            waiting.extend(value.values() if isinstance(value, dict) else value)


def _place(text: str, value: Any, start: int, end: int, *, is_whole: bool) -> JsonValue:
    before = text[max(0, start - LINE_LOOK_CHARS) : start].rpartition("\n")[2]
    after = text[end : end + LINE_LOOK_CHARS].partition("\n")[0]
    ends_line = not _WORD_CHAR.search(after)
    is_alone = ends_line and not _WORD_CHAR.search(_LIST_MARK.sub("", before, count=1))
    is_labelled = is_alone or (ends_line and before.rstrip(" `*\t").endswith((":", "=")))
    return JsonValue(
        value=value,
        start=start,
        end=end,
        before=before,
        is_whole=is_whole,
        is_alone=is_alone,
        is_labelled=is_labelled,
    )


def _read_strictly(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _read_loosely(text: str, start: int, tokens: re.Pattern[str]) -> tuple[Any, int, bool]:
    """(value, end, is_whole) of the value at `start`; `end` of one that is not whole is where it
    breaks."""
    reader = _Reader()
    at = start
    while (token := tokens.match(text, at)) and reader.take(
        token, is_key=_is_key(text, token.end())
    ):
        at = token.end()
        if reader.is_done:
            return reader.root, at, True
    return reader.cut(), at, False


def _is_key(text: str, end: int) -> bool:
    return text[end : end + 9].lstrip().startswith((":", "="))


class _Reader:
    """The containers that are open, the outermost first, and the key that waits for its value in
    each."""

    def __init__(self) -> None:
        self.root: Any = None
        self.is_done = False
        self._open: list[Any] = []
        self._keys: list[Any] = []

    def take(self, token: re.Match[str], *, is_key: bool) -> bool:
        """Take the next token; False when it cannot stand here."""
        mark = token["mark"]
        if mark is None:
            return self._take_scalar(token["string"], token["word"], is_key=is_key)
        if mark in ("{", "["):
            return self._begin(CutObject() if mark == "{" else [])
        if mark in _SEPARATORS:
            return (
                bool(self._open)
                and isinstance(self._open[-1], dict)
                and self._keys[-1] is not _NO_KEY
            )
        return self._end(mark)

    def cut(self) -> Any:
        """What is whole of the containers that are still open; an open object in a list is no whole
        item of it."""
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
        return str(json.loads(string, strict=False))  # pairs of surrogates are one character
    except ValueError:
        return _ESCAPE.sub(unescape, string[1:-1])


def _read_word(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    try:
        return int(word) if word.lstrip("-").isdigit() else float(word)
    except ValueError:
        return None  # a number of too many digits, or no number
