"""The text that the journal stores for a prompt: JSON, compressed if it is long. The messages at
its beginning that an earlier prompt of the same owner also has are not stored again.

Fences (the lines around texts) are stored without the secret mark that `prompt.seal` inserts. Only
the name of each tool is stored. Compression halves the size of a run's prompts.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.llm.prompt import UNMARKED, Message, Prompt, Speaker, ToolCall

COMPRESSED = "zlib:"  # JSON never begins with it
MIN_COMPRESSED_CHARS = 500
MAX_BYTES = 64_000_000  # of one prompt; a peer on the store may have written a text that grows


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPrompt:
    """A stored prompt.

    Attributes:
        messages: all messages of the prompt.
        tools: the names of the tools that could be called.
        n_same: how many of these messages, from the first on, are stored with an earlier prompt.
    """

    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    n_same: int = 0


def write_prompt(prompt: Prompt, *, before: Sequence[Message] = (), before_key: str = "") -> str:
    """Return the prompt as a text that `read_prompt` reads.

    Args:
        before: the messages of an earlier stored prompt. The messages at the beginning that both
            prompts share are not stored again.
        before_key: the key of the step that stores the earlier prompt.
    """
    n_same = 0
    for known, asked in zip(before, prompt.messages, strict=False):
        if known is not asked and known != asked:
            break
        n_same += 1
    fields: dict[str, Any] = {"same": {"as": before_key, "n": n_same}} if n_same else {}
    fields["messages"] = [_fields(message) for message in prompt.messages[n_same:]]
    fields["tools"] = [tool.name for tool in prompt.tools]
    return _compress(json.dumps(fields, ensure_ascii=False))


def _compress(text: str) -> str:
    if len(text) < MIN_COMPRESSED_CHARS:
        return text
    return COMPRESSED + base64.b64encode(zlib.compress(text.encode("utf-8", "replace"))).decode()


def _decompress(text: str) -> str:
    if not text.startswith(COMPRESSED):
        return text
    packed = base64.b64decode(text.removeprefix(COMPRESSED), validate=True)
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(packed, MAX_BYTES).decode()
    if not unpacking.eof:
        raise ValueError(f"a stored prompt is cut off, or has over {MAX_BYTES:,} bytes")
    return text


def _fields(message: Message) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": message.speaker.value, "text": message.text}
    if message.tool_calls:
        fields["calls"] = [[call.id, call.name, call.arguments] for call in message.tool_calls]
    if message.tool_call_id:
        fields["call_id"] = message.tool_call_id
    return fields


def read_prompt(request: str, find: Callable[[str], str | None]) -> KeptPrompt | None:
    """Return the stored prompt, without the secret marks in its fences (the lines around texts);
    None if the text is not a stored prompt.

    Args:
        find: returns the stored prompt of another step of the same owner, by the step's key; "" or
            None if there is none.
    """
    fields = _load(request)
    if fields is None:
        return None
    messages = _all_messages(fields, find)
    return KeptPrompt(
        messages=tuple(messages),
        tools=tuple(str(name) for name in fields.get("tools", ())),
        n_same=len(messages) - len(fields["messages"]),
    )


def _all_messages(fields: dict[str, Any], find: Callable[[str], str | None]) -> list[Message]:
    """Return the messages of a prompt, those that are stored with an earlier one included."""
    same = fields.get("same", {})
    earlier = _load(find(str(same["as"]))) if same else None
    before = [] if earlier is None else _all_messages(earlier, find)[: int(same["n"])]
    return [*before, *map(_read_message, fields["messages"])]


def _load(request: str | None) -> dict[str, Any] | None:
    if not request:
        return None
    try:
        fields = json.loads(_decompress(request))
    except (ValueError, zlib.error, RecursionError):
        return None
    return fields if isinstance(fields, dict) and "messages" in fields else None


def _read_message(fields: dict[str, Any]) -> Message:
    calls = fields.get("calls", ())
    return Message(
        speaker=Speaker(fields["role"]),
        text=fields["text"].replace(f" {UNMARKED}", "").replace(UNMARKED, ""),
        tool_calls=tuple(ToolCall(id=id_, name=name, arguments=text) for id_, name, text in calls),
        tool_call_id=fields.get("call_id", ""),
    )
