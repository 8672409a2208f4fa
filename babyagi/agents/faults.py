"""Replies that are no answer whatever their words say: empty ones, tool calls written as text, cut
JSON, loops, echoes of the prompt.

Each test takes time linear in the length of the reply and the prompt.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.agents import asked

N_SHINGLE = 5
MIN_ECHOED_WORDS = 12

EMPTY = "The reply is empty: it holds no words that answer the task."
REFUSED = "The reply refuses the task and names nothing that is missing."
ECHO = "The reply only repeats the task or its instructions."
NO_RESULT = "The reply says what will be done, and gives no result."
CALL = "The reply is a tool call written as text, and gives no result."
CUT = "The reply is JSON that was cut off."
LOOP = "The reply is broken: it repeats the same words over and over."

_SYMBOL = re.compile(
    r"[^\x00-\x7f\W]|[a-zA-Z0-9]|[^\x00-\xff\s\u2000-\u206f\u2500-\u257f\u3000-\u303f\uff00-\uff20\ufe0f\ufffd]"
    r"|[¬°±²³¹µ¼½¾×÷§©®£¥€]"
)

# `++` may be an answer; `--` and `...` are none
_SIGN = re.compile(r"\A[^\s\w]?[-+*/=<>&|!%^~@#$:;]{1,3}\Z(?<![-.])")


def find_fault(text: str, *, task_name: str, prompt_texts: Sequence[str]) -> str:
    """Return why the text is no answer, in a sentence that a model can be told; "" where it may be
    one."""
    task = task_name.casefold()
    if not _SYMBOL.search(text):
        return (
            ""
            if _SIGN.search(text) or (text.strip("`\n ") and asked.ASKS_SIGN.search(task))
            else EMPTY
        )
    if not asked.ASKS_PRODUCT.search(task) and _is_tool_call(text):
        return CALL
    if _is_cut_json(text):
        return CUT
    if not asked.ASKS_PRODUCT.search(task) and not asked.asks_words(task) and _is_loop(text):
        return LOOP
    if not asked.ASKS_QUOTE.search(task) and _is_echo(text, task_name, prompt_texts):
        return ECHO
    return ""


# -- JSON and tool calls
# --------------------------------------------------------------------------------------------------

_CALL = re.compile(
    r"\A(?:<(?:tool_call|function_call|invoke|function|tool)\b|\[TOOL_CALLS?\]|<\|python_tag\|>|```tool_"
    r"|(?:thought:.{0,2000}?\n)?action:\s*\S[^\n]*\n\s*action[ _]input:"
    r"|(?:search|recall|lookup|look_up|browse|fetch|read_file|python|calculator|query|web_search|get_\w+|call)\((?:[^()]"
    r"|\([^()]*\)){0,400}\)\Z|(?:to|calling|call|using)[ =]functions?\.\w+)",
    re.IGNORECASE | re.DOTALL,
)
_CALL_LIKE = re.compile(
    r"\A\{\s*\"(?:name|tool|action|function)\"\s*:\s*\"[^\"]*\"\s*,\s*\"(?:arguments|parameters|tool_input|action_input|args)\"\s*:"
)
_JSON_START = re.compile(r"[{\[]\s*[\"{\[\d\]}-]")
ENDING_TOOLS = frozenset({"final_answer", "finish", "answer", "submit"})


def _is_tool_call(text: str) -> bool:
    if _CALL.match(text):
        return True
    value = read_json(text)
    if value is None and (called := _CALL_LIKE.match(text)):
        return not any(f'"{name}"' in called[0] for name in ENDING_TOOLS)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Mapping):
        return False
    name = value.get(
        "tool",
        value.get(
            "action",
            value.get(
                "name", value.get("function", value.get("tool_name", value.get("tool_calls")))
            ),
        ),
    )
    given = {
        "tool_input",
        "action_input",
        "arguments",
        "parameters",
        "args",
        "input",
        "tool_args",
        "tool_calls",
    } & set(value)
    return (
        bool(name)
        and bool(given)
        and len(value) <= 4
        and not (isinstance(name, str) and name in ENDING_TOOLS)
    )


def read_json(text: str) -> Any:
    if not _JSON_START.match(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_cut_json(text: str) -> bool:
    """Whether the text is JSON whose brackets or last string never close."""
    if not re.match(r"\{\s*\"|\[\s*[{\[\"]", text):
        return False
    depth, is_string, is_escaped = 0, False, False
    for char in text:
        if is_escaped:
            is_escaped = False
        elif is_string:
            is_escaped, is_string = char == "\\", char != '"'
        elif char == '"':
            is_string = True
        else:
            depth += (char in "{[") - (char in "}]")
    return depth > 0


_ANSWER_KEYS = frozenset(
    {"answer", "result", "value", "output", "final_answer", "response", "data"}
)
_LACK_KEYS = frozenset(
    {
        "lacking",
        "lacks",
        "lack",
        "missing",
        "missing_inputs",
        "missing_information",
        "needs",
        "needed",
        "required",
        "missing_data",
    }
)
_TOLD_KEYS = ("error", "message", "reason", "note", "explanation", "detail")
_SAYING_KEYS = frozenset(
    {
        "status",
        "error",
        "message",
        "reason",
        "note",
        "notes",
        "explanation",
        "detail",
        "success",
        "code",
        "type",
        "thought",
    }
)


def said_in_json(value: Mapping[Any, Any]) -> str:
    """The sentences of an object that holds no answer, only words about one; "" of any other
    object."""
    if str(value.get("tool", value.get("action"))) in ENDING_TOOLS:
        return str(value.get("tool_input", value.get("action_input", "")))
    held = {str(key).casefold(): one for key, one in value.items() if one not in (None, "", [], {})}
    lacks = [f"Missing: {_flat(one)}." for key, one in held.items() if key in _LACK_KEYS]
    if lacks and len(held) < len(value) and set(held) <= _LACK_KEYS | _SAYING_KEYS:
        return " ".join(lacks)
    if not held or not set(held) <= _ANSWER_KEYS | _LACK_KEYS | _SAYING_KEYS:
        return ""
    answers = [one for key, one in held.items() if key in _ANSWER_KEYS]
    if any(not isinstance(answer, str) for answer in answers):
        return ""
    said = [
        answer for answer in answers if answer.casefold() not in ("null", "none", "n/a", "unknown")
    ]
    if lacks and not said:
        return " ".join(lacks)
    said += [one for key, one in held.items() if key in _TOLD_KEYS and isinstance(one, str)]
    return "\n".join([*lacks, *said])


def _flat(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# -- loops and echoes
# --------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
_FENCE_OPENS = re.compile(r"<<(?P<label>[\w ]{1,60}) (?P<mark>[0-9a-f]{8,64}) from (?P<origin>.*)")
_FENCE_LINE = re.compile(
    r"^(?:<<[\w ]+ [0-9a-f]{8,64} from [^\n]*|[0-9a-f]{8,64}>>)[ \t]*$", re.MULTILINE
)
_QUOTABLE = ("result", "tool", "file", "document")
_AROUND_TASK = frozenset(
    "task the is to my your number current i was asked will now name a an of ok "
    "okay sure carry out please".split()
)


def _is_loop(text: str) -> bool:
    """Whether nearly all of the text is the same few words again."""
    words = _WORD.findall(text.casefold())
    n_numbers = sum(word.isdigit() for word in words)
    if len(text) < 60 or 2 * n_numbers > len(words):
        return False
    if len(words) >= 12 and len(set(words)) <= max(3, len(words) // 20):
        return True
    packed = len(zlib.compress(text.encode("utf-8", "replace"), 6))
    if len(text) >= 400 and packed < 0.05 * len(text.encode("utf-8", "replace")):
        return True
    tail = words[len(words) // 4 :]
    shingles = {tuple(tail[at : at + N_SHINGLE]) for at in range(len(tail) - N_SHINGLE + 1)}
    return len(tail) >= 60 and len(shingles) <= len(tail) // 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A fence of a prompt: its label, its text, and whether a reply may hold that text and nothing
    else."""

    label: str
    text: str
    is_quotable: bool


def _split_fences(text: str) -> tuple[list[_Block], str]:
    """The closed fences of the text, and all that stands outside of them."""
    lines = text.split("\n")
    # the lines that close a fence with this mark, the last first
    closed_at: dict[str, list[int]] = {}
    for at in reversed(range(len(lines))):
        if lines[at].strip().endswith(">>") and len(lines[at]) < 80:
            closed_at.setdefault(lines[at].strip()[:-2], []).append(at)
    blocks: list[_Block] = []
    outside: list[str] = []
    at = 0
    while at < len(lines):
        opened = _FENCE_OPENS.match(lines[at][:300])
        ends = closed_at.get(opened["mark"], []) if opened else []
        while ends and ends[-1] <= at:
            ends.pop()
        if opened is None or not ends:
            outside.append(lines[at])
            at += 1
            continue
        end = ends.pop()
        is_quotable = opened["label"].startswith(_QUOTABLE) or opened["origin"].startswith(
            _QUOTABLE
        )
        blocks.append(
            _Block(
                label=opened["label"], text="\n".join(lines[at + 1 : end]), is_quotable=is_quotable
            )
        )
        at = end + 1
    return blocks, "\n".join(outside)


def _is_echo(text: str, task_name: str, prompt_texts: Sequence[str]) -> bool:
    """Whether the text is nothing but what the model was told: its task, the objective, its
    instructions."""
    own_blocks, own_words = _split_fences(text)
    if own_blocks and not _SYMBOL.search(own_words):
        return not any(block.is_quotable for block in own_blocks)
    words = _words(_FENCE_LINE.sub("", text))
    if not words:
        return bool(_FENCE_LINE.search(text))
    if _core(words) == _core(_words(task_name)):
        return True
    parts = [_split_fences(prompt) for prompt in prompt_texts]
    told = [block.text for blocks, _ in parts for block in blocks if not block.is_quotable]
    if len(words) < MIN_ECHOED_WORDS:
        return any(_core(words) == _core(_words(part)) for part in told)
    return _share_covered(words, [task_name, *told, *(outside for _, outside in parts)]) >= 0.9


def _share_covered(words: Sequence[str], told: Sequence[str]) -> float:
    """Which share of the words stands, several in a row, in what was told."""
    sizes = {min(N_SHINGLE + 1, len(source)) for source in map(_words, told) if len(source) >= 3}
    known = {
        tuple(source[at : at + n])
        for source in map(_words, told)
        for n in sizes
        if n == min(N_SHINGLE + 1, len(source))
        for at in range(len(source) - n + 1)
    }
    covered_to, n_covered = 0, 0
    for at in range(len(words)):
        n = max((n for n in sizes if tuple(words[at : at + n]) in known), default=0)
        n_covered += max(0, at + n - max(at, covered_to))
        covered_to = max(covered_to, at + n)
    return n_covered / len(words)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _core(words: Sequence[str]) -> list[str]:
    """The words without a leading "The current task is to" or "12:", and without articles."""
    start = 0
    while start < len(words) and (words[start] in _AROUND_TASK or words[start].isdigit()):
        start += 1
    kept = [word for word in words[start:] if word not in ("the", "a", "an")]
    return kept or list(words)
