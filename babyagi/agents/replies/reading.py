"""What every reply is read with: the text that a person would see of it, names, ids, and keys in
other words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from babyagi.llm.prompt import clean

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
_END_MARKS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|eom_id|>",
    "</s>",
    "<end_of_turn>",
    "<eos>",
)
_FENCE_BEGINS = re.compile(r"<<[\w ]{1,60} ([0-9a-f]{8,64}) from .*")
_FENCE_ENDS = re.compile(r"([0-9a-f]{8,64})>>")
_WRAPPERS = (("**", "**"), ("__", "__"), ('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"), ("`", "`"))
_MARKS = str.maketrans(
    dict.fromkeys(
        "*_`\"'“”‘’«»\N{VARIATION SELECTOR-16}\N{ZERO WIDTH SPACE}\N{ZERO WIDTH NO-BREAK SPACE}", ""
    )
)
_KEYCAP = "\N{COMBINING ENCLOSING KEYCAP}"  # an emoji number is digits, each with one
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
    """Return the bounded text that is the model's own turn: without what it only thought, and
    without the turns that it invents."""
    return own_turn(without_thoughts(text[:MAX_REPLY_CHARS]))


def without_thoughts(text: str) -> str:
    """The text without blocks of `<think>`, also those whose beginning or end is missing; its line
    ends are `\\n`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\N{ZERO WIDTH NO-BREAK SPACE}")
    text = _THINKING.sub("", text)
    ends = list(_END_OF_THINKING.finditer(text))
    return text[ends[-1].end() :] if ends else text


def own_turn(text: str) -> str:
    """The text up to where another speaker's turn begins, without the marks of turns."""
    text = _OPENING_TOKEN.sub("", text)
    begin = 0
    for end in _END_OF_TURN.finditer(text):
        if text[begin : end.start()].strip():
            return _END_TOKEN.sub("", text[begin : end.start()])
        begin = end.end()
    return _END_TOKEN.sub("", text[begin:])


def without_end_marks(text: str) -> str:
    """The text without marks of the end of a turn behind it."""
    text = text.rstrip()
    while mark := next((mark for mark in _END_MARKS if text.endswith(mark)), ""):
        text = text[: -len(mark)].rstrip()
    return text


def without_echo(text: str) -> str:
    """The text without the fenced blocks of the prompt's data that the model repeats."""
    if "<<" not in text:
        return text
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}  # the lines that close a fence with this mark, the last first
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
    """The text as names are compared: compatible letters alike, case, quotes, emphasis and the
    width of space ignored."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_MARKS)
    return " ".join(re.sub(f"{_KEYCAP}(?!\\d)", ".", folded).replace(_KEYCAP, "").split())


def to_key(key: Any) -> str:
    """The key of an object as keys are compared: `New-Tasks` is `newtasks`."""
    return re.sub(r"[\W_]+", "", str(key)[:60].casefold())


def to_line(text: str) -> str:
    """The text on one line, without what no store, prompt or terminal should carry."""
    return clean(" ".join(text.split()))


def to_sentence(value: Any) -> str:
    """What a value says for a person, bounded; empty when it is no text or says that there is
    nothing."""
    if isinstance(value, list):
        value = "; ".join(item for item in value if isinstance(item, str))
    line = to_line(value).strip(" .,:;-–—*")[:MAX_REASON_CHARS] if isinstance(value, str) else ""
    return "" if not has_words(line) or is_nothing(line) else line


def unwrap(line: str) -> str:
    """The line without quotes or emphasis around the whole of it."""
    for opening, closing in _WRAPPERS:
        inner = line[len(opening) : -len(closing)]
        if (
            line.startswith(opening)
            and line.endswith(closing)
            and inner
            and opening not in inner
            and closing not in inner
        ):
            line = inner.strip()
    return line


def to_id(value: Any) -> int | None:
    """The number of a task, also from text: `3`, `"#3"`, `"task 3"`."""
    if isinstance(value, str) and len(value) < 60 and (found := _ID.fullmatch(value.strip())):
        return int(found[1])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().casefold() in ("true", "yes"))


def is_false(value: Any) -> bool:
    return value is False or (
        isinstance(value, str)
        and value.strip().casefold() in ("false", "no", "partly", "partially")
    )


def is_nothing(line: str) -> bool:
    """Whether a line says that there is nothing of what was asked for."""
    return len(line) < 120 and _NOTHING.fullmatch(line) is not None


def has_words(line: str) -> bool:
    return any(map(str.isalnum, line))


def first_of(item: Mapping[str, Any], keys: Iterable[str]) -> Any:
    """The value of the first of the keys that the item, whose keys are folded, holds a value of;
    None without one."""
    return next((item[key] for key in keys if item.get(key) not in (None, "")), None)


def fold_keys(item: Mapping[str, Any]) -> dict[str, Any]:
    return {to_key(key): value for key, value in item.items()}
