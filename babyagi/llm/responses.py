"""The Responses dialect: a prompt becomes its request, its reply becomes a `RawReply`. Nothing is
kept at the endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.errors import Form
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall
from babyagi.llm.reading import (
    CUSTOM_INPUT,
    RawReply,
    arguments_to_send,
    as_mapping,
    as_text,
    read_call,
)
from babyagi.text import clean

PATH = "/responses"

_CUT_BY = {"max_output_tokens": "length", "content_filter": "content_filter"}


def render_request(prompt: Prompt, name: str, form: Form) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": name,
        "input": [item for message in prompt.messages for item in _render_items(message)],
        # a model's hidden reasoning counts against it too
        "max_output_tokens": prompt.max_output_tokens,
    }
    if form.stores:
        request["store"] = False
    if form.temperature is not None:
        request["temperature"] = form.temperature
    if prompt.tools:
        request["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
                "strict": False,
            }
            for tool in prompt.tools
        ]
    if prompt.schema is not None and form.schema_kind:
        schema = {
            "type": "json_schema",
            "name": prompt.schema_name or "reply",
            "schema": dict(prompt.schema),
            "strict": True,
        }
        request["text"] = {
            "format": schema if form.schema_kind == "json_schema" else {"type": "json_object"}
        }
    return request


def _render_items(message: Message) -> Iterator[dict[str, Any]]:
    if message.speaker is Speaker.TOOL:
        yield {
            "type": "function_call_output",
            "call_id": message.tool_call_id,
            "output": clean(message.text),
        }
        return
    if message.text or not message.tool_calls:
        yield {"role": message.speaker.value, "content": clean(message.text)}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments_to_send(call.arguments),
        }


def parse_reply(reply: Mapping[str, Any]) -> RawReply:
    """Return what the reply's output holds.

    Raises:
        MalformedReplyError: there is no output, though nothing cut it off.
    """
    cut_by = as_mapping(reply.get("incomplete_details")).get("reason")
    output = reply.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    if not items and not cut_by:
        raise MalformedReplyError("a response without output")
    parts = [
        as_mapping(part) for item in items if item.get("type") == "message" for part in _parts(item)
    ]
    return RawReply(
        text="".join(as_text(part.get("text")) for part in parts),
        calls=[
            _parse_call(item)
            for item in items
            if item.get("type") in ("function_call", "custom_tool_call")
        ],
        finish_reason=_CUT_BY.get(cut_by, "unknown")
        if isinstance(cut_by, str)
        else {"completed": "stop"}.get(str(reply.get("status")), ""),
        refusal="".join(as_text(part.get("refusal")) for part in parts),
        model=reply.get("model"),
        usage=reply.get("usage"),
    )


def _parts(item: Mapping[str, Any]) -> list[Any]:
    content = item.get("content")
    if isinstance(content, str):
        return [{"text": content}]
    return content if isinstance(content, list) else []


def _parse_call(item: Mapping[str, Any]) -> ToolCall:
    is_custom = item.get("type") == "custom_tool_call"
    arguments = {CUSTOM_INPUT: item.get("input")} if is_custom else item.get("arguments", "")
    return read_call(id_=item.get("call_id"), name=item.get("name"), arguments=arguments)
