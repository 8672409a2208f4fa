"""Turns a reply of either dialect into a `Completion`: cleans its text, repairs its tool calls, and
computes its usage."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from babyagi.llm.port import Completion
from babyagi.llm.prices import Price
from babyagi.llm.prompt import (
    Prompt,
    ToolCall,
    bound_tokens,
)
from babyagi.llm.shapes import is_deep
from babyagi.tasks import Usage
from babyagi.text import clean

MAX_COUNT = 10**12  # a larger number is a fault of the endpoint, and must not overflow a sum
# Most measured tokenizers use at least one token for a word; some newer ones use one for two words.
MAX_WORDS_PER_TOKEN = 4

_WORD = re.compile(r"\w+")
_IS_WORD = bytes(ord("w" if _WORD.fullmatch(chr(n)) else " ") for n in range(128)) + bytes(128)
_NUMBER = re.compile(r"\s*\+?\d{1,30}(\.\d{1,30})?\s*")
_PROMPT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")


def least_tokens(text: str) -> int:
    """Return the lowest number of tokens that any tokenizer could make of this text."""
    return -(-_count_words(text) // MAX_WORDS_PER_TOKEN)


def _count_words(text: str) -> int:
    if not text.isascii():
        return len(_WORD.findall(text))
    # counts the beginnings of words, fifteen times as fast as the pattern
    return (b" " + text.encode().translate(_IS_WORD)).count(b" w")


def read_usage(
    said: Any, price: Price | None, *, least: tuple[int, int], reserved: tuple[int, int]
) -> Usage:
    """Return the usage to charge, as the endpoint reported it. If the report is incomplete or
    impossibly low, each count is at least the reserved one, and the whole usage is `unconfirmed`.

    If the total is larger than both counts, such as by hidden reasoning, the rest is output.

    Args:
        said: the `usage` of the reply, of either dialect.
        least: the lowest possible number of tokens of the prompt, and of the output.
        reserved: the reserved numbers.
    """
    fields = said if isinstance(said, dict) else {}
    prompt, output = _count(fields, _PROMPT), _count(fields, _OUTPUT)
    if not reserved[1]:
        output = output or 0
    total = _read(fields.get("total_tokens"))
    if total is not None:
        if prompt is None:
            prompt = min(total, least[0]) if output is None else total - output
        output = max(output or 0, total - prompt)
    is_whole = prompt is not None and output is not None
    prompt, output = prompt or 0, output or 0
    is_said = is_whole and prompt >= least[0] and output >= least[1]
    if not is_said:
        prompt, output = max(prompt, reserved[0]), max(output, reserved[1])
    cost_usd = price.cost_usd(prompt, output) if price else 0.0
    return Usage(
        calls=1,
        prompt_tokens=prompt,
        completion_tokens=output,
        cost_usd=cost_usd,
        unconfirmed_tokens=0 if is_said else prompt + output,
        unconfirmed_cost_usd=0.0 if is_said else cost_usd,
    )


def larger_usage(one: Any, other: Any) -> Any:
    """Return two reports of one call's usage as one, with the larger number of each field."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: larger_usage(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, dict) or isinstance(other, dict):
        return one if isinstance(one, dict) else other
    return max(one, other, key=lambda said: -1 if (n := _read(said)) is None else n)


def _count(fields: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    """Return the count, plus its largest detail (such as the cached tokens) if that is larger than
    the count, and so cannot be included in it. None if there is no count.

    Args:
        names: the fields of the count, in either dialect.
    """
    counts = (_read(fields.get(name)) for name in names)
    count = max((one for one in counts if one is not None), default=None)
    details = (as_mapping(fields.get(f"{name}_details")) for name in names)
    largest = max((_read(value) or 0 for one in details for value in one.values()), default=0)
    return count + largest if count is not None and largest > count else count


def _read(value: Any) -> int | None:
    """Return the value as a number of tokens; None if it is not a number."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        return None
    return min(math.ceil(value), MAX_COUNT)


# -- from a reply to a completion
# --------------------------------------------------------------------------------------------------

MAX_TOOL_CALLS = 8
MAX_ID_CHARS = 64
UNNAMED = "call"  # the ids of calls that came without one begin with it
# Takes the place of arguments that are nested too deeply. It is not JSON, so the model is told that
# its arguments are not.
TOO_DEEP = "{nested too deeply"

THOUGHT_TAGS = ("think", "thinking", "thought", "reasoning")
_TAGS = "|".join(THOUGHT_TAGS)
_THOUGHTS = re.compile(rf"\s*<({_TAGS})>.*?(?:</\1>\s*|\Z)", re.IGNORECASE | re.DOTALL)
# the chat template may have written the opening tag
_UNOPENED_THOUGHTS = re.compile(rf"[^`]*?</(?:{_TAGS})>\s*(?=\S)", re.IGNORECASE)
_CHAT_TOKEN = (
    r"(?:<\|[\w /-]{1,40}\|>|</?s>|\[/?INST\]|<(?:end|start)_of_turn>|<eos>|<｜[\w▁ -]{1,40}｜>)"
)
_FIRST_TOKENS = re.compile(rf"\A(?:\s*+{_CHAT_TOKEN}(?:assistant|model)?)++\s*")
_LAST_TOKENS = re.compile(rf"(?:\s*+{_CHAT_TOKEN})++\s*\Z")
MAX_LAST_CHARS = 2000
_KNOWN_REASONS = ("stop", "length", "tool_calls", "content_filter")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReply:
    """A reply as its dialect read it. Nothing is validated: ids of calls may be missing or occur
    twice. `was_streamed`: it came in pieces."""

    text: str
    calls: Sequence[ToolCall]
    finish_reason: Any
    refusal: str
    model: Any
    usage: Any
    was_streamed: bool = False


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """Return the text of a value that is a string or a list of parts."""
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else []
    texts = (as_mapping(part).get("text", part) for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def find_choice(given: Any) -> Mapping[str, Any]:
    """Return the part of a reply, or of a piece of one, that belongs to the first answer; some
    servers send more answers than the one that was requested. Empty if there is none."""
    choices = map(as_mapping, given if isinstance(given, list) else [])
    return next((choice for choice in choices if str(choice.get("index") or 0) == "0"), {})


def arguments_to_send(arguments: str) -> str:
    """Return the arguments of an earlier call as a server accepts them in a later request:
    unchanged if they are a JSON object that is not nested too deeply, else an empty object."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return "{}"
    return arguments if isinstance(value, dict) and not is_deep(value) else "{}"


def build_completion(
    raw: RawReply, prompt: Prompt, *, name: str, price: Price | None
) -> Completion:
    earlier = {call.id for message in prompt.messages for call in message.tool_calls}
    calls = _tell_apart(raw.calls, earlier)
    said = " ".join([raw.text, raw.refusal, *(f"{call.name} {call.arguments}" for call in calls)])
    return Completion(
        text=visible_text(clean(raw.text)),
        tool_calls=calls,
        finish_reason=_finish_reason(raw.finish_reason, bool(calls)),
        refusal=clean(raw.refusal),
        model=clean(raw.model)[:200] if isinstance(raw.model, str) and raw.model else name,
        usage=count(raw.usage, prompt, said=said, price=price),
    )


def visible_text(text: str) -> str:
    """Return the text of a reply without what is not part of it: the model's thinking in tags, and
    chat markers such as `<|im_end|>` at its ends. Thinking that does not end is all of the text."""
    text = _without_tokens(text)
    thoughts = _THOUGHTS.match(text) or _UNOPENED_THOUGHTS.match(text)
    return _without_tokens(text[thoughts.end() :]) if thoughts else text


def _without_tokens(text: str) -> str:
    text = _FIRST_TOKENS.sub("", text)
    return text[:-MAX_LAST_CHARS] + _LAST_TOKENS.sub("", text[-MAX_LAST_CHARS:])


def count(said_usage: Any, prompt: Prompt, *, said: str, price: Price | None) -> Usage:
    """Return the usage to charge for an answered prompt.

    Args:
        said_usage: the usage that the reply reports.
        said: the text of the reply.
    """
    asked = " ".join(message.text for message in prompt.messages)
    least = (max(1, least_tokens(asked)), least_tokens(said))
    reserved = (bound_tokens(prompt), prompt.max_output_tokens)
    return read_usage(said_usage, price, least=least, reserved=reserved)


def _finish_reason(given: Any, has_calls: bool) -> str:
    reason = given if given in _KNOWN_REASONS else "unknown"
    if has_calls:
        return reason if reason in ("length", "content_filter") else "tool_calls"
    return "stop" if reason == "tool_calls" else reason


def _tell_apart(calls: Iterable[ToolCall], taken: set[str]) -> tuple[ToolCall, ...]:
    """Return the first `MAX_TOOL_CALLS` calls of a reply, each with an id that no other call of the
    conversation has.

    Args:
        taken: the ids of earlier calls.
    """
    apart: list[ToolCall] = []
    for call in list(calls)[:MAX_TOOL_CALLS]:
        unique = call.id
        if not unique or unique in taken:
            stem = (unique or UNNAMED)[: MAX_ID_CHARS - 8]
            numbered = (f"{stem}_{n}" for n in range(1, len(taken) + 2))
            unique = next(candidate for candidate in numbered if candidate not in taken)
        taken = taken | {unique}
        apart.append(replace(call, id=unique))
    return tuple(apart)


def read_call(id_: Any, said: Mapping[str, Any]) -> ToolCall:
    """Return a tool call as read from a reply; its id is empty if the reply gave none.

    Args:
        said: the mapping with its name and its arguments.
    """
    known = clean(id_)[:MAX_ID_CHARS] if isinstance(id_, str) else UNNAMED if id_ else ""
    arguments = _read_arguments(said.get("arguments", ""))
    return ToolCall(id=known, name=clean(str(said.get("name") or "")), arguments=arguments)


def _read_arguments(given: Any) -> str:
    if isinstance(given, str):
        return clean(given) or "{}"
    return TOO_DEEP if is_deep(given) else json.dumps(given)
