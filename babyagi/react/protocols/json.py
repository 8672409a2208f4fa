"""The protocol with one JSON object per reply: `{"thought": …, "tool": …, "tool_input": …}`. To
answer or to give up, the model names a tool as well: `final_answer` or `fail_task`.

The whole reply must be the object, bare or in a code fence. If the model invented an observation or
another object after it, that is not read. An object with prose around it may be a quotation: the
model is asked again, and the object is never executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import N_SHOWN, Message, Prompt, Speaker, ToolCall, fence
from babyagi.react.protocols.base import (
    ANSWER_NOW,
    WRITTEN_CALL,
    AgentProtocol,
    Conversation,
    acts,
    describe_input,
    fill,
    instruct,
    label_of,
    model_origins,
    origins_of,
)
from babyagi.react.steps import Act, AgentDecision, AgentStep, Fail, Finish
from babyagi.shapes import MAX_TEXT_CHARS, fit_schema
from babyagi.tools.base import DECODER, Tool

FINAL_ANSWER = "final_answer"
FAIL_TASK = "fail_task"
NO_REASON = "no reason was given"
EXPECTED = (
    'Reply with one JSON object {"thought": "…", "tool": "…", "tool_input": …} and no other text.'
)

MAX_THOUGHT_CHARS = 200
MAX_STEP_TOKENS = 2000
_WRAPPERS = frozenset(  # names of fields that only wrap a value
    "answer final_answer output result response text content message value input tool_input "
    "reason".split()
)
_OPENING = re.compile(r"`{3}\w{0,10}[ \t]*\n")
_BEGUN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_MADE_UP = re.compile(
    (
        r"(?:`{3}\w{0,10}\s{0,3})?\{|\W{0,4}(?:observation|result|tool_output|output|user"
        r"|error)\b|<<"
    ),
    re.IGNORECASE,
)


def render(conversation: Conversation) -> Prompt:
    """Return the request. Each earlier step appears as the model's reply, followed by the
    step's observations, each within a fence."""
    messages = instruct(conversation.messages, _instruction(conversation.tools))
    for step, act in acts(conversation.steps):
        messages += _write_step(step, act)
    if conversation.is_last:
        messages.append(
            Message(
                speaker=Speaker.USER, text=f"{ANSWER_NOW} Use {FINAL_ANSWER}.", origins=("program",)
            )
        )
    return Prompt(messages=tuple(messages), max_output_tokens=conversation.max_output_tokens)


@lru_cache(maxsize=N_SHOWN)
def _write_step(step: AgentStep, act: Act) -> tuple[Message, Message]:
    """Return the messages of a step: the model's reply as a JSON object, then the fenced outcomes
    of its calls. They are the same in every later request."""
    shown = [fence(label_of(observation), observation.passage) for observation in step.observations]
    return (
        Message(speaker=Speaker.ASSISTANT, text=_log(act), origins=model_origins(step)),
        Message(speaker=Speaker.USER, text="\n".join(shown), origins=origins_of(step)),
    )


def _instruction(tools: Sequence[Tool]) -> str:
    said = [
        (
            f"{tool.name}:\n    {tool.description}\n    _input_: {describe_input(tool)}\n    "
            "_output_: text"
        )
        for tool in tools
    ]
    names = [*(tool.name for tool in tools), FINAL_ANSWER, FAIL_TASK]
    return fill("json", tools="\n".join(said), tool_names=", ".join(names))


def _log(act: Act) -> str:
    """Return the model's reply as it was written. If the model made native tool calls, return these
    instead, as JSON objects."""
    if act.calls[0].id == WRITTEN_CALL:
        return act.log
    return "\n".join(
        json.dumps(
            {"thought": act.thought, "tool": call.name, "tool_input": call.arguments},
            ensure_ascii=False,
        )
        for call in act.calls
    )


def parse(completion: Completion, conversation: Conversation) -> AgentDecision:
    """Return the decision in a reply. Of an answer that was cut off, the received part is used.

    Raises:
        MalformedReplyError: the reply is not one JSON object with a tool.
    """
    if completion.tool_calls and conversation.tools:
        return read_called(completion)
    text = completion.text.strip()
    try:
        action, log = read_object(text)
    except MalformedReplyError:
        is_bare = conversation.is_last and "{" not in text
        is_cut = completion.finish_reason == "length"
        answer = text if is_bare else _read_begun_answer(text) if is_cut else ""
        if answer:
            return Finish(output=answer, log=text)
        raise
    tool, given = action.get("tool"), action.get("tool_input")
    if not isinstance(tool, str) or not tool.strip():
        raise MalformedReplyError(f'The object has no "tool". {EXPECTED}')
    match tool.strip():
        case "final_answer":
            return _finish(as_text(given), log)
        case "fail_task":
            return Fail(reason=as_text(given) or NO_REASON, log=log)
        case name:
            arguments = "" if given is None else json.dumps(given, ensure_ascii=False)
            thought = action.get("thought")
            call = ToolCall(id=WRITTEN_CALL, name=name, arguments=arguments)
            return Act(calls=(call,), thought=thought if isinstance(thought, str) else "", log=log)


def read_called(completion: Completion) -> AgentDecision:
    """Return the decision in a reply with native tool calls. A single call of `final_answer` or
    `fail_task` is an answer or a failure."""
    text = completion.text
    if len(completion.tool_calls) == 1:
        (call,) = completion.tool_calls
        if call.name == FINAL_ANSWER and (answer := as_text(_load(call.arguments)).strip()):
            return Finish(output=answer, log=text or answer)
        if call.name == FAIL_TASK:
            return Fail(reason=as_text(_load(call.arguments)) or NO_REASON, log=text)
    return Act(calls=completion.tool_calls, thought=text.strip(), log=text)


def _load(arguments: str) -> Any:
    """Parse the arguments as JSON; if they are not JSON, return the text."""
    try:
        return DECODER.decode(arguments)
    except (ValueError, RecursionError):
        return arguments


def _finish(output: str, log: str) -> Finish:
    if not output.strip():
        raise MalformedReplyError("The answer is empty. Give the answer itself.")
    return Finish(output=output.strip(), log=log)


def as_text(given: Any) -> str:
    """Return the text of an answer. It may be given as a string, as an object with one field such
    as `answer`, or as other JSON, which is returned as text."""
    if isinstance(given, dict) and len(given) == 1 and next(iter(given)).casefold() in _WRAPPERS:
        (given,) = given.values()
    return (
        given
        if isinstance(given, str)
        else ""
        if given is None
        else json.dumps(given, ensure_ascii=False)
    )


def unwrap(text: str) -> str:
    """If the text is a JSON object with a single value, return that value as text; else the
    text."""
    found = _load(text) if text.startswith("{") else None
    is_wrapped = isinstance(found, dict) and len(found) == 1
    inner = as_text(found) if is_wrapped else text
    return text if inner.startswith("{") else inner


def read_object(text: str) -> tuple[dict[str, Any], str]:
    """Parse a reply as one JSON object. Return (the object, its text), without anything that the
    model invented after it.

    Raises:
        MalformedReplyError: the reply is not one object.
    """
    opening = _OPENING.match(text)
    body = text[opening.end() :] if opening else text
    start = len(body) - len(body.lstrip())
    try:
        value, end = DECODER.raw_decode(body, start)
    except (ValueError, RecursionError):
        raise MalformedReplyError(f"The reply is not valid JSON. {EXPECTED}") from None
    if not isinstance(value, dict):
        raise MalformedReplyError(f"The reply is JSON, but no object. {EXPECTED}")
    rest = body[end:].lstrip()
    if opening:
        rest = rest.removeprefix("```").lstrip()
    if rest and not _MADE_UP.match(rest):
        raise MalformedReplyError(f"There is text behind the object. {EXPECTED}")
    return value, body[start:end]


def read_partial(text: str) -> dict[str, Any] | None:
    """Parse a text that begins with a JSON object and is cut off inside a string of it. Return the
    object with what was received; None if the text does not begin with an object, or is not cut off
    inside a string."""
    closing, is_string, escape_at = list[str](), False, -2
    for at, char in enumerate(text):
        if is_string and escape_at != at - 1:
            is_string = char != '"'
            escape_at = at if char == "\\" else escape_at
        elif not is_string and char == '"':
            is_string = True
        elif not is_string and char in "{[":
            closing.append("}" if char == "{" else "]")
        elif not is_string and char in "}]" and (not closing or closing.pop() != char):
            return None
    if not is_string or not closing:
        return None
    is_cut_escape = _BEGUN_ESCAPE.fullmatch(text, max(0, escape_at)) is not None
    begun = text[:escape_at] if is_cut_escape else text
    try:
        value = DECODER.decode(f'{begun}"{"".join(reversed(closing))}')
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read_begun_answer(text: str) -> str:
    """Return the received part of an answer in a reply that was cut off; "" if the reply did not
    get to an answer."""
    opening = _OPENING.match(text)
    found = read_partial(text[opening.end() :] if opening else text) or {}
    is_answer = found.get("tool") == FINAL_ANSWER
    return as_text(found.get("tool_input")).strip() if is_answer else ""


def _render_held(conversation: Conversation) -> Prompt:
    """Return the request with the JSON Schema of a reply, for an endpoint that guarantees
    schemas."""
    return replace(
        render(conversation), schema_name="step", schema=_step_schema(conversation.tools)
    )


def _step_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the JSON Schema of a reply: a call of one of the tools, an answer, or a failure."""
    text = {"type": "string", "maxLength": MAX_TEXT_CHARS}
    inputs = {tool.name: dict(tool.parameters) for tool in tools}
    steps = [
        {
            "type": "object",
            "properties": {
                "thought": {"type": "string", "maxLength": MAX_THOUGHT_CHARS},
                "tool": {"const": name},
                "tool_input": given,
            },
            "required": ["thought", "tool", "tool_input"],
            "additionalProperties": False,
        }
        for name, given in {**inputs, FINAL_ANSWER: text, FAIL_TASK: text}.items()
    ]
    return fit_schema({"anyOf": steps}, max_tokens=MAX_STEP_TOKENS)


JSON = AgentProtocol(name="json", render=render, parse=parse)
HELD_JSON = AgentProtocol(name="json", render=_render_held, parse=parse)
