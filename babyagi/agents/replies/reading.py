"""The parts of parsing that all replies share: removes what does not belong to a reply (thinking,
chat markers, echoes of the prompt), finds JSON even if it is malformed, and compares words."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from babyagi.text import clean

MAX_REPLY_CHARS = 200_000
MAX_REASON_CHARS = 500

_THINKING = re.compile(
    r"^[ \t]*+<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.MULTILINE | re.IGNORECASE
)
_END_OF_THINKING = re.compile(r"</think(?:ing)?>[ \t]*+(?=[\n{\[]|\Z)", re.IGNORECASE)
_OPENING_TOKEN = re.compile(
    r"<\|begin_of_text\|>|<\|(?:im_start|start_header_id|start)\|>[ "
    r"\t]*+assistant\b(?:<\|(?:end_header_id|message)\|>)?"
    r"|<start_of_turn>model\b|\[/?INST\]|<s>|<\|assistant\|>"
)
_TOKEN = (
    r"<\|(?:im_end|eot_id|endoftext|end_of_text|end|eom_id)\|>|</s>|<end_of_turn>|<eos>"
    r"|<｜end▁of▁sentence｜>"
)
_END_TOKEN = re.compile(_TOKEN)
_END_OF_TURN = re.compile(
    rf"(?:{_TOKEN})(?=\s*+(?:<|\Z|\n))|<\|(?:im_start|start_header_id|user|system)\|>"
    r"|<start_of_turn>"
    r"|(?<=\n)[ \t]*+(?:#{1,4} )?(?:\*\*)?(?:Human|User|HUMAN|USER)(?:\*\*)?:"
)
_END_MARKS = tuple(
    "<|im_end|> <|eot_id|> <|endoftext|> <|end_of_text|> <|end|> <|eom_id|> </s> <end_of_turn> "
    "<eos>".split()
)
_FENCE_BEGINS = re.compile(r"<<[\w ]{1,60} ([0-9a-f]{8,64}) from .*")
_FENCE_ENDS = re.compile(r"([0-9a-f]{8,64})>>")
_WRAPPERS = (("**", "**"), ("__", "__"), ('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"), ("`", "`"))
_MARKS = str.maketrans(
    dict.fromkeys(
        "*_`\"'“”‘’«»\N{VARIATION SELECTOR-16}\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}", ""
    )
)
# an emoji number is digits, each followed by this character
_KEYCAP = "\N{COMBINING ENCLOSING KEYCAP}"
_ID = re.compile(
    r"[(\[#]*(?:(?:task|id|no\.?|number)[\s_#-]{0,3})?[(\[#]*(\d{1,18})[)\].]*", re.IGNORECASE
)
_NOTHING = re.compile(
    r"\W*(?:(?:there (?:are|is) )?(?:currently )?"
    r"(?:none|nothing|nil|null|empty|n/?a|no(?: [\w-]+){0,3} "
    r"(?:tasks?|steps?|actions?|parts?|work))\b.{0,80}"
    r"|(?:keine|aucune?|ninguna?|nessuna?|nenhuma?)\b.{0,60}|[无無没沒]\S{0,20}|なし.?|-+|—|–)",
    re.IGNORECASE,
)


def visible(text: str) -> str:
    """Return the first `MAX_REPLY_CHARS` characters of the text, without thinking and without
    invented turns of other speakers."""
    return own_turn(without_thoughts(text[:MAX_REPLY_CHARS]))


def without_thoughts(text: str) -> str:
    """Return the text without `<think>` blocks, also if a block lacks its opening or closing tag.
    Line ends become `\\n`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\N{ZERO WIDTH NO-BREAK SPACE}")
    text = _THINKING.sub("", text)
    ends = list(_END_OF_THINKING.finditer(text))
    return text[ends[-1].end() :] if ends else text


def own_turn(text: str) -> str:
    """Return the text without chat markers such as `<|im_start|>`, and only up to the turn of
    another speaker."""
    text = _OPENING_TOKEN.sub("", text)
    begin = 0
    for end in _END_OF_TURN.finditer(text):
        if text[begin : end.start()].strip():
            return _END_TOKEN.sub("", text[begin : end.start()])
        begin = end.end()
    return _END_TOKEN.sub("", text[begin:])


def without_end_marks(text: str) -> str:
    """Return the text without end-of-turn markers, such as `<|im_end|>`, at its end."""
    text = text.rstrip()
    while mark := next((mark for mark in _END_MARKS if text.endswith(mark)), ""):
        text = text[: -len(mark)].rstrip()
    return text


def without_echo(text: str) -> str:
    """Return the text without blocks of data that it copied from the prompt. Such a block is fenced
    by the lines `<<… MARK from …` and `MARK>>`, with the same hexadecimal mark."""
    if "<<" not in text:
        return text
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}  # by mark, the lines that close a fence, last first
    for at in reversed(range(len(lines))):
        if found := _FENCE_ENDS.fullmatch(lines[at].strip()):
            ends.setdefault(found[1], []).append(at)
    kept, at = [], 0
    while at < len(lines):
        begins = _FENCE_BEGINS.fullmatch(lines[at].strip())
        if begins is None:
            kept.append(lines[at])
        else:
            closing = ends.get(begins[1], [])
            while closing and closing[-1] <= at:
                closing.pop()
            at = closing.pop() if closing else at
        at += 1
    return "\n".join(kept)


def fold(text: str) -> str:
    """Return the text normalized for the comparison of names: NFKC, case-folded, without quotes and
    emphasis, with single blanks."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_MARKS)
    return " ".join(re.sub(f"{_KEYCAP}(?!\\d)", ".", folded).replace(_KEYCAP, "").split())


def to_key(key: Any) -> str:
    """Return the key of an object normalized for comparison: `New-Tasks` becomes `newtasks`."""
    return re.sub(r"[\W_]+", "", str(key)[:60].casefold())


def to_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return clean(" ".join(text.split()))


def to_sentence(value: Any) -> str:
    """Return the text, or the texts of the list, on one line of at most `MAX_REASON_CHARS`
    characters; '' if the value is anything else, or only says "none"."""
    if isinstance(value, list):
        value = "; ".join(item for item in value if isinstance(item, str))
    line = to_line(value).strip(" .,:;-–—*")[:MAX_REASON_CHARS] if isinstance(value, str) else ""
    return "" if not has_words(line) or is_nothing(line) else line


def unwrap(line: str) -> str:
    """Return the line without quotes or emphasis that enclose all of it."""
    for opening, closing in _WRAPPERS:
        inner = line[len(opening) : -len(closing)]
        is_around = line.startswith(opening) and line.endswith(closing) and inner
        if is_around and opening not in inner and closing not in inner:
            line = inner.strip()
    return line


def to_id(value: Any) -> int | None:
    """Return the id of a task from a value such as `3`, `3.0`, `"#3"` or `"task 3"`; None if the
    value is not an id."""
    if isinstance(value, str) and len(value) < 60 and (found := _ID.fullmatch(value.strip())):
        return int(found[1])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().casefold() in ("true", "yes"))


def is_false(value: Any) -> bool:
    said = value.strip().casefold() if isinstance(value, str) else ""
    return value is False or said in ("false", "no", "partly", "partially")


def is_nothing(line: str) -> bool:
    """Return whether the line only says "none", "nothing", "no tasks" or the like."""
    return len(line) < 120 and _NOTHING.fullmatch(line) is not None


def has_words(line: str) -> bool:
    return any(map(str.isalnum, line))


def first_of(item: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """Return the first value of the item under these keys that is neither None nor ''; None if
    there is none. The item must come from `fold_keys`."""
    return next((item[key] for key in keys if item.get(key) not in (None, "")), None)


def fold_keys(item: Mapping[str, Any]) -> dict[str, Any]:
    return {to_key(key): value for key, value in item.items()}


# --------------------------------------------------------------------------------------------------
# Finds JSON values anywhere in a text, also if they have the faults that models make: Python's
# quotes and constants, unquoted keys, missing or extra commas, line breaks or quotes inside
# strings, and a missing end.
#
# Every character is read a bounded number of times. Not covered: string values without quotes.
# --------------------------------------------------------------------------------------------------

MAX_VALUES = 2000
MAX_DEPTH = 64
# After so many failures the strict parser is not used any more, because each failure takes time in
# proportion to the whole text.
MAX_REFUSED = 64
MAX_QUOTE_REPAIRS = 8  # each attempt may read the rest of the text
LINE_LOOK_CHARS = 200  # of the line before and after a value, to see whether it stands alone

_START = re.compile(
    r"\[(?=\s*[\"'“{\[\d\]-])|\{(?=\s*(?:[\"'“}]|(?:[A-Za-z_]\w{0,40}|\d{1,9})\s{0,9}:))"
)
_STRING = r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|“[^“”]*+”"
_REPAIRED_STRING = "|".join(
    rf"{quote}(?:[^{quote}\\]|\\.|{quote}(?=[^\S\n]*+[^\s\"',:}}\]]))*+{quote}" for quote in "\"'"
)  # a quotation mark ends the string only before a comma, colon, bracket or line end
_NUMBER_OR_WORD = r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|-?[A-Za-z_]\w*+"
_TOKENS, _REPAIRING_TOKENS = (
    re.compile(
        rf"(?:[\s,]|(?://|#)[^\n]*+)*+(?:(?P<mark>[{{}}\[\]]|:|=>?)|(?P<string>{string})"
        rf"|(?P<word>{_NUMBER_OR_WORD}))",
        re.DOTALL,
    )
    for string in (_STRING, _REPAIRED_STRING)
)
_WORDS = {
    **{"true": True, "True": True, "false": False, "False": False},
    **dict.fromkeys(("null", "None", "NaN", "undefined")),
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = dict(zip("ntrbf\"'\\/", "\n\t\r\b\f\"'\\/", strict=True)) | {"\n": ""}
_LIST_MARK = re.compile(r"\A\s*\d{1,4}[.):]\s")
_WORD_CHAR = re.compile(r"[^\W_]")
_STRICT = json.JSONDecoder(strict=False)
_SEPARATORS = (":", "=", "=>")
_NO_KEY = object()


class CutObject(dict[str, Any]):
    """An object that is cut off or broken. It contains only its complete members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonValue:
    """A JSON value in a text.

    Attributes:
        start, end: its position in the text.
        before: the text before it on its line.
        is_whole: whether it was neither cut off nor broken.
        is_alone: whether its line has no words before or after it.
        is_labelled: whether its line has no words except a label before it that ends with `:` or
            `=`.
    """

    value: Any
    start: int
    end: int
    before: str
    is_whole: bool
    is_alone: bool
    is_labelled: bool


def find_json(text: str) -> list[JsonValue]:
    """Return the outermost objects and arrays of the text, in order. A value that is cut off or
    broken is returned with its complete parts."""
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
    """Yield the value and every value inside it, outer values first."""
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
    """Parse the value at `start`. Return (value, end, is_whole). If the value is broken, `end` is
    the position of the first token that cannot be read."""
    reader = _Reader()
    at = start
    while token := tokens.match(text, at):
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
