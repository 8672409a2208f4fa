"""What every dialect does with a reply: clean its text, mend its tool calls, and count what it
cost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.llm.base import Completion
from babyagi.llm.prices import Price
from babyagi.llm.prompt import Prompt, ToolCall, bound_tokens, clean
from babyagi.llm.usage import Call, least_tokens, read_usage
from babyagi.tasks import Usage

MAX_TOOL_CALLS = 8
MAX_ID_CHARS = 64
# a parameter that no tool has, so that the model is told what the tool takes instead of free text
CUSTOM_INPUT = "custom input"

_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)\s*", re.DOTALL)
_FINISH_REASONS = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCall:
    """A tool call as it came. `arguments` is empty where none were said, and `{CUSTOM_INPUT: text}`
    for a call of a custom tool."""

    id: Any
    name: Any
    arguments: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RawReply:
    """A reply as a dialect found it, its values not yet trusted."""

    text: str
    calls: Sequence[RawCall]
    finish_reason: Any
    refusal: str
    model: Any
    usage: Any


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_text(value: Any) -> str:
    """Return a text that came as a string, or in parts."""
    if isinstance(value, str):
        return value
    texts = (
        [as_mapping(part).get("text", part) for part in value] if isinstance(value, list) else []
    )
    return "".join(text for text in texts if isinstance(text, str))


def arguments_to_send(arguments: str) -> str:
    """Return a call's arguments as a server may read them back: what is no JSON object goes as an
    empty one."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def build_completion(
    raw: RawReply, prompt: Prompt, *, name: str, price: Price | None
) -> Completion:
    calls = _mend_calls(
        raw.calls, {call.id for message in prompt.messages for call in message.tool_calls}
    )
    said = " ".join([raw.text, raw.refusal, *(f"{call.name} {call.arguments}" for call in calls)])
    return Completion(
        text=clean(_THOUGHTS.sub("", raw.text)),
        tool_calls=calls,
        finish_reason=_finish_reason(raw.finish_reason, bool(calls)),
        refusal=clean(raw.refusal),
        model=clean(raw.model)[:200] if isinstance(raw.model, str) and raw.model else name,
        usage=count(raw.usage, prompt, said=said, price=price),
    )


def count(said_usage: Any, prompt: Prompt, *, said: str, price: Price | None) -> Usage:
    """Return what the call is charged with, from what the reply says of its cost."""
    call = Call(
        least_prompt=max(1, least_tokens(" ".join(message.text for message in prompt.messages))),
        least_output=least_tokens(said),
        reserved_prompt=bound_tokens(prompt),
        reserved_output=prompt.max_output_tokens,
    )
    return read_usage(said_usage, call, price)


def _finish_reason(given: Any, has_calls: bool) -> str:
    reason = _FINISH_REASONS.get(given, "unknown") if isinstance(given, str) else "unknown"
    if has_calls:
        return reason if reason in ("length", "content_filter") else "tool_calls"
    return "stop" if reason == "tool_calls" else reason


def _mend_calls(calls: Iterable[RawCall], taken: set[str]) -> tuple[ToolCall, ...]:
    """Return the first calls, each with an id that no call of the conversation has."""
    mended: list[ToolCall] = []
    for call in list(calls)[:MAX_TOOL_CALLS]:
        wanted = clean(call.id)[:MAX_ID_CHARS] if isinstance(call.id, str) and call.id else "call"
        unique = (
            wanted
            if call.id and wanted not in taken
            else next(
                candidate
                for n in range(1, len(taken) + 2)
                if (candidate := f"{wanted[: MAX_ID_CHARS - 8]}_{n}") not in taken
            )
        )
        taken = taken | {unique}
        mended.append(
            ToolCall(
                id=unique,
                name=clean(str(call.name or "")),
                arguments=_read_arguments(call.arguments),
            )
        )
    return tuple(mended)


def _read_arguments(given: Any) -> str:
    return clean(given) or "{}" if isinstance(given, str) else json.dumps(given)
