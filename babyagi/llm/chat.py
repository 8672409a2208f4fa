"""The Chat Completions dialect: a prompt becomes its request, its reply becomes a `RawReply`."""

from __future__ import annotations

from collections.abc import Mapping
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

PATH = "/chat/completions"


def render_request(prompt: Prompt, name: str, form: Form) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": name,
        "messages": [_render_message(message) for message in prompt.messages],
        form.output_limit: prompt.max_output_tokens,
    }
    if form.temperature is not None:
        request["temperature"] = form.temperature
    if prompt.stop and form.stops:
        request["stop"] = list(prompt.stop)
    if prompt.tools:
        request["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in prompt.tools
        ]
    if prompt.schema is not None and form.schema_kind:
        schema = {
            "name": prompt.schema_name or "reply",
            "schema": dict(prompt.schema),
            "strict": True,
        }
        is_exact = form.schema_kind == "json_schema"
        request["response_format"] = (
            {"type": "json_schema", "json_schema": schema} if is_exact else {"type": "json_object"}
        )
    return request


def _render_message(message: Message) -> dict[str, Any]:
    rendered: dict[str, Any] = {"role": message.speaker.value, "content": clean(message.text)}
    if message.tool_calls:
        rendered["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_to_send(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.speaker is Speaker.TOOL:
        rendered["tool_call_id"] = message.tool_call_id
    return rendered


def parse_reply(reply: Mapping[str, Any]) -> RawReply:
    """Return what the reply's first choice holds.

    Raises:
        MalformedReplyError: there is no choice, or no message in it.
    """
    choices = reply.get("choices")
    choice = as_mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise MalformedReplyError("a reply without a message")
    return RawReply(
        text=as_text(message.get("content")),
        calls=_parse_calls(message),
        finish_reason=choice.get("finish_reason"),
        refusal=as_text(message.get("refusal")),
        model=reply.get("model"),
        usage=reply.get("usage"),
    )


def _parse_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    given = message.get("tool_calls")
    if not isinstance(given, list) or not given:
        legacy = message.get("function_call")
        given = [{"function": legacy}] if isinstance(legacy, dict) else []
    calls = []
    for call in map(as_mapping, given):
        custom = as_mapping(call.get("custom"))
        said = as_mapping(call.get("function")) or custom
        arguments = (
            {CUSTOM_INPUT: custom.get("input")} if said is custom else said.get("arguments", "")
        )
        calls.append(read_call(id_=call.get("id"), name=said.get("name"), arguments=arguments))
    return calls
