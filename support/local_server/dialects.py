"""The three request shapes of the API that we speak, and the replies in each: chat completions,
responses, embeddings.

A request of either chat shape becomes one `ChatRequest`; one `Answer` is rendered in the shape that
was asked in.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from babyagi.llm.prompt import Message, Speaker, ToolCall, ToolSpec, estimate_tokens
from babyagi.tasks import Usage

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
EMBEDDINGS = "/v1/embeddings"
DEFAULT_DIMENSIONS = 1536

_AGENT = re.compile(r"role:\s*(execution|creation|prioritization|check|report)\b", re.IGNORECASE)
_SPEAKERS = {
    "system": Speaker.SYSTEM,
    "developer": Speaker.SYSTEM,
    "assistant": Speaker.ASSISTANT,
    "tool": Speaker.TOOL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request in either chat shape. `max_tokens` is 0 where none was given."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema_name: str = ""
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 0

    @property
    def agent(self) -> str:
        """Who asks, by the line `Role: NAME agent` in the system messages; `unknown` without
        one."""
        system = "\n".join(
            message.text for message in self.messages if message.speaker is Speaker.SYSTEM
        )
        found = _AGENT.search(system)
        return found.group(1).lower() if found else "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model behind the server says. Empty `finish_reason` means what is usual; `usage`
    None means counted."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    refusal: str = ""
    usage: Usage | None = None

    @property
    def reason(self) -> str:
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


# -- requests
# --------------------------------------------------------------------------------------------------


def parse_request(path: str, body: Mapping[str, Any]) -> ChatRequest:
    """Return the request that the body of a chat or responses call holds.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it holds none.
    """
    return _parse_responses(body) if path == RESPONSES else _parse_chat(body)


def _parse_chat(body: Mapping[str, Any]) -> ChatRequest:
    schema = (body.get("response_format") or {}).get("json_schema") or {}
    return ChatRequest(
        model=body["model"],
        messages=tuple(_chat_message(message) for message in body["messages"]),
        tools=tuple(
            _tool(tool["function"])
            for tool in body.get("tools") or ()
            if tool.get("type") == "function"
        ),
        schema_name=schema.get("name", ""),
        schema=schema.get("schema"),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens") or 0,
    )


def _chat_message(message: Mapping[str, Any]) -> Message:
    calls = message.get("tool_calls") or ()
    return Message(
        speaker=_SPEAKERS.get(message["role"], Speaker.USER),
        text=_text(message.get("content")),
        tool_calls=tuple(
            ToolCall(id=c["id"], name=c["function"]["name"], arguments=c["function"]["arguments"])
            for c in calls
        ),
        tool_call_id=message.get("tool_call_id") or "",
    )


def _parse_responses(body: Mapping[str, Any]) -> ChatRequest:
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    head = (
        [Message(speaker=Speaker.SYSTEM, text=body["instructions"])]
        if body.get("instructions")
        else []
    )
    schema = (body.get("text") or {}).get("format") or {}
    return ChatRequest(
        model=body["model"],
        messages=(*head, *(message for item in items for message in _response_items(item))),
        tools=tuple(
            _tool(tool) for tool in body.get("tools") or () if tool.get("type") == "function"
        ),
        schema_name=schema.get("name", ""),
        schema=schema.get("schema"),
        max_tokens=body.get("max_output_tokens") or 0,
    )


def _response_items(item: Mapping[str, Any]) -> list[Message]:
    match item.get("type", "message"):
        case "message":
            return [
                Message(
                    speaker=_SPEAKERS.get(item["role"], Speaker.USER),
                    text=_text(item.get("content")),
                )
            ]
        case "function_call":
            call = ToolCall(id=item["call_id"], name=item["name"], arguments=item["arguments"])
            return [Message(speaker=Speaker.ASSISTANT, text="", tool_calls=(call,))]
        case "function_call_output":
            return [
                Message(
                    speaker=Speaker.TOOL, text=_text(item["output"]), tool_call_id=item["call_id"]
                )
            ]
        case _:
            return []  # reasoning and the like carry no message


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""


def _tool(tool: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=tool["name"],
        description=tool.get("description") or "",
        parameters=tool.get("parameters") or {},
    )


def count_usage(request: ChatRequest, answer: Answer) -> Usage:
    """Return the tokens of a call: UTF-8 bytes / 4 of all messages, and of the reply."""
    if answer.usage is not None:
        return answer.usage
    asked = "".join(
        message.text + "".join(call.arguments for call in message.tool_calls)
        for message in request.messages
    )
    said = answer.text + answer.refusal + "".join(call.arguments for call in answer.tool_calls)
    return Usage(
        calls=1, prompt_tokens=estimate_tokens(asked), completion_tokens=estimate_tokens(said)
    )


# -- chat replies
# --------------------------------------------------------------------------------------------------


def render_reply(path: str, request: ChatRequest, answer: Answer, *, number: int) -> dict[str, Any]:
    """Return the reply's body in the shape of the path. `number` makes its id."""
    render = _render_response if path == RESPONSES else _render_chat
    return render(request.model, answer, count_usage(request, answer), number)


def _render_chat(model: str, answer: Answer, usage: Usage, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text,
        "refusal": answer.refusal or None,
    }
    if answer.tool_calls:
        message["tool_calls"] = [chat_call(call) for call in answer.tool_calls]
    if (answer.tool_calls or answer.refusal) and not answer.text:
        message["content"] = None
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_750_000_000,
        "model": model,
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.reason}
        ],
        "usage": chat_usage(usage),
    }


def chat_call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def chat_usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.tokens,
    }


def _render_response(model: str, answer: Answer, usage: Usage, number: int) -> dict[str, Any]:
    incomplete = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(
        answer.reason
    )
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_750_000_000,
        "model": model,
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "error": None,
        "output": list(_output_items(answer, number)),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.tokens,
        },
    }


def _output_items(answer: Answer, number: int) -> Iterable[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if answer.text or not (answer.tool_calls or answer.refusal):
        parts.append({"type": "output_text", "text": answer.text, "annotations": []})
    if answer.refusal:
        parts.append({"type": "refusal", "refusal": answer.refusal})
    if parts:
        yield {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": parts,
        }
    for place, call in enumerate(answer.tool_calls):
        yield {
            "type": "function_call",
            "id": f"fc_{number}_{place}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }


# -- streams
# --------------------------------------------------------------------------------------------------


def event(data: object, name: str = "") -> bytes:
    """Return one server-sent event; text goes out as UTF-8, not as escapes."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode(
        "utf-8", "surrogatepass"
    )


def chat_event(
    request: ChatRequest, delta: Mapping[str, Any], finish_reason: str | None = None
) -> bytes:
    choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish_reason}
    return event(
        {
            "id": "chatcmpl-s",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": request.model,
            "choices": [choice],
        }
    )


def render_stream(
    path: str,
    request: ChatRequest,
    reply: Mapping[str, Any],
    *,
    pieces: int = 2,
    with_usage: bool = False,
) -> list[bytes]:
    """Return the events of a reply, its last one (`[DONE]`) included. Texts and arguments come in
    `pieces`."""
    if path == RESPONSES:
        return _stream_response(reply)
    choice = reply["choices"][0]
    message = choice["message"]
    events = [chat_event(request, {"role": "assistant", "content": ""})]
    for key in ("content", "refusal"):
        events += [chat_event(request, {key: piece}) for piece in split(message[key] or "", pieces)]
    for index, call in enumerate(message.get("tool_calls") or ()):
        events += [
            chat_event(request, {"tool_calls": [delta]})
            for delta in call_deltas(index, call, pieces)
        ]
    events.append(chat_event(request, {}, choice["finish_reason"]))
    if with_usage:
        events.append(
            event(
                {
                    "id": "chatcmpl-s",
                    "object": "chat.completion.chunk",
                    "choices": [],
                    "usage": reply.get("usage"),
                }
            )
        )
    return [*events, event("[DONE]")]


def call_deltas(index: int, call: Mapping[str, Any], pieces: int) -> list[dict[str, Any]]:
    """Return a tool call as a stream brings it: id and name first, then the arguments piece by
    piece."""
    head = {
        "index": index,
        "id": call["id"],
        "type": "function",
        "function": {"name": call["function"]["name"], "arguments": ""},
    }
    return [
        head,
        *(
            {"index": index, "function": {"arguments": piece}}
            for piece in split(call["function"]["arguments"], pieces)
        ),
    ]


def _stream_response(reply: Mapping[str, Any]) -> list[bytes]:
    started = {**reply, "status": "in_progress", "output": [], "usage": None}
    events = [
        event(
            {"type": "response.created", "response": started, "sequence_number": 0},
            "response.created",
        )
    ]
    texts = [
        (place, item["content"][0].get("text", ""))
        for place, item in enumerate(reply["output"])
        if item["type"] == "message"
    ]
    for place, text in texts:
        for piece in split(text, 2):
            name = "response.output_text.delta"
            delta = {
                "type": name,
                "output_index": place,
                "content_index": 0,
                "delta": piece,
                "item_id": "",
                "logprobs": [],
            }
            events.append(event({**delta, "sequence_number": len(events)}, name))
    name = f"response.{reply['status']}"
    return [
        *events,
        event({"type": name, "response": dict(reply), "sequence_number": len(events)}, name),
    ]


def split(text: str, pieces: int) -> list[str]:
    """Return the text in at most `pieces` parts, none empty, the longer ones first."""
    size = max(1, -(-len(text) // pieces))
    return [text[at : at + size] for at in range(0, len(text), size)]


# -- embeddings
# --------------------------------------------------------------------------------------------------


def render_embeddings(body: Mapping[str, Any]) -> tuple[dict[str, Any], Usage]:
    """Return the reply to an embeddings call, in the asked encoding, and what it cost."""
    texts = embedding_texts(body)
    dimensions = body.get("dimensions") or DEFAULT_DIMENSIONS
    as_base64 = body.get("encoding_format") == "base64"
    vectors = [lexical_vector(text, dimensions) for text in texts]
    rows = [
        {
            "object": "embedding",
            "index": place,
            "embedding": _encode_vector(vector) if as_base64 else vector,
        }
        for place, vector in enumerate(vectors)
    ]
    tokens = sum(estimate_tokens(text) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": rows, "model": body["model"], "usage": usage}, Usage(
        calls=1, prompt_tokens=tokens
    )


def embedding_texts(body: Mapping[str, Any]) -> list[str]:
    """Return the texts to embed; a list of tokens counts as a text.

    Raises:
        KeyError, ValueError: there are none.
    """
    given = body["input"]
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not given:
        raise ValueError("input must be a text or a list of texts or of tokens")
    if isinstance(given[0], int):
        return [" ".join(map(str, given))]
    return [text if isinstance(text, str) else " ".join(map(str, text)) for text in given]


def lexical_vector(text: str, dimensions: int) -> list[float]:
    """Return a unit vector; texts that share words, or the beginnings of words, have a high cosine.
    Short words count little."""
    vector = [0.0] * dimensions
    for word in sorted(set(re.findall(r"\w+", text.lower()))):
        weight = 1.0 if len(word) > 3 else 0.2
        _add(vector, word, weight)
        _add(vector, word[:5] + "*", weight / 2)
    length = sqrt(sum(value * value for value in vector))
    if not length:
        vector[0] = length = 1.0
    return [value / length for value in vector]


def _add(vector: list[float], feature: str, weight: float) -> None:
    digest = zlib.crc32(feature.encode("utf-8", "replace"))
    vector[digest % len(vector)] += weight if digest & 0x8000_0000 else -weight


def _encode_vector(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
