"""The protocols with one JSON object per reply: `{"thought": …, "tool": …, "tool_input": …}`.

`JSON` describes the object in words. To answer or to give up, the model names a tool as well:
`final_answer` or `fail_task`. The whole reply must be the object, bare or in a code fence. If the
model invented an observation or another object after it, that is not read. Other text around it is
judged as `written.py` says.

`HELD_JSON` is for a server that holds replies to a schema. A step chooses a tool, `answer` or an
end by the schema. An answer is never a value in JSON: after the choice, it is asked for as plain
text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import N_SHOWN, Message, Prompt, Speaker, ToolCall, fence
from babyagi.llm.shapes import MAX_TEXT_CHARS, fit_schema
from babyagi.react.protocols.base import (
    WRITTEN_CALL,
    AgentProtocol,
    Conversation,
    describe_tools,
    fill,
    instruct,
    label_of,
    model_origins,
    origins_of,
    repeat,
    say,
    tell,
)
from babyagi.react.protocols.written import as_text, end, read_called, read_written
from babyagi.react.steps import (
    ENDS,
    FAIL_TASK,
    FINAL_ANSWER,
    LACKING,
    Act,
    AgentDecision,
    AgentStep,
    Finish,
)
from babyagi.react.values import read_json
from babyagi.tools.base import DECODER

ANSWER = "answer"  # the choice to answer, where the answer is written afterwards

MAX_THOUGHT_CHARS = 200
MAX_STEP_TOKENS = 2000
_OPENING = re.compile(r"`{3}\w{0,10}[ \t]*\n")
_BEGUN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
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
    give_up = _give_up(conversation)
    names = [*(tool.name for tool in conversation.described_tools), FINAL_ANSWER, give_up]
    told = fill(
        "json",
        tools=describe_tools(conversation.described_tools),
        tool_names=", ".join(names),
        give_up=give_up,
    )
    last = f"{say('answer_now')} Use {FINAL_ANSWER}." if conversation.is_last else ""
    return _render(conversation, told, [tell(last)] if last else [])


def _render(conversation: Conversation, told: str, last: Sequence[Message]) -> Prompt:
    messages = instruct(conversation.messages, told) if told else list(conversation.messages)
    messages += repeat(conversation.steps, _write_step)
    return Prompt(messages=(*messages, *last), max_output_tokens=conversation.max_output_tokens)


def _give_up(conversation: Conversation) -> str:
    return LACKING if conversation.says_lacking else FAIL_TASK


@lru_cache(maxsize=N_SHOWN)
def _write_step(step: AgentStep, act: Act) -> tuple[Message, Message]:
    """Return the messages of a step: the model's reply as a JSON object, then the fenced outcomes
    of its calls. They are the same in every later request."""
    shown = [fence(label_of(observation), observation.passage) for observation in step.observations]
    return (
        Message(speaker=Speaker.ASSISTANT, text=_log(act), origins=model_origins(step)),
        Message(speaker=Speaker.USER, text="\n".join(shown), origins=origins_of(step)),
    )


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
        name = action.get("tool")
        if not isinstance(name, str) or not name.strip():
            raise _expected("no_tool_named")
    except MalformedReplyError:
        if decision := _read_otherwise(completion, conversation):
            return decision
        raise
    return _decide(name.strip(), action, log)


def _read_otherwise(completion: Completion, conversation: Conversation) -> AgentDecision | None:
    """Return the decision in a reply that is not the wanted object: plain text where only an answer
    is left, an answer that was cut off, or a call in another form. None if there is none."""
    text = completion.text.strip()
    is_bare = conversation.is_last and "{" not in text
    is_cut = completion.finish_reason == "length"
    answer = text if is_bare else _read_begun_answer(text) if is_cut else ""
    if answer:
        return Finish(output=answer, log=text)
    return read_written(text, conversation.tools)


def _decide(name: str, action: Mapping[str, Any], log: str) -> AgentDecision:
    given, thought = action.get("tool_input"), action.get("thought")
    if name in ENDS:
        return end(name, given, log=log)
    arguments = "" if given is None else json.dumps(given, ensure_ascii=False)
    call = ToolCall(id=WRITTEN_CALL, name=name, arguments=arguments)
    return Act(calls=(call,), thought=thought if isinstance(thought, str) else "", log=log)


def _expected(fault: str, form: str = "expect_object") -> MalformedReplyError:
    return MalformedReplyError(f"{say(fault)} {say(form)}")


def read_object(text: str, *, form: str = "expect_object") -> tuple[dict[str, Any], str]:
    """Parse a reply as one JSON object. Return (the object, its text), without anything that the
    model invented after it.

    Args:
        form: the name of the words that tell the model which object is expected.

    Raises:
        MalformedReplyError: the reply is not one object.
    """
    opening = _OPENING.match(text)
    body = text[opening.end() :] if opening else text
    start = len(body) - len(body.lstrip())
    try:
        value, end = DECODER.raw_decode(body, start)
    except (ValueError, RecursionError):
        raise _expected("no_json", form) from None
    if not isinstance(value, dict):
        raise _expected("no_object", form)
    rest = body[end:].lstrip()
    if opening:
        rest = rest.removeprefix("```").lstrip()
    if rest and not _MADE_UP.match(rest):
        raise _expected("text_behind", form)
    return value, body[start:end]


def read_partial(text: str) -> dict[str, Any] | None:
    """Parse a text that begins with a JSON object and is cut off inside a string of it, or of an
    object within. Return the object with what was received; None for another text."""
    begun = (text, _BEGUN_ESCAPE.sub("", text))
    read = (read_json(one + closing) for one in begun for closing in ('"}', '"}}'))
    return next((value for value in read if isinstance(value, dict)), None)


def _read_begun_answer(text: str) -> str:
    """Return the received part of an answer in a reply that was cut off; "" if the reply did not
    get to an answer."""
    opening = _OPENING.match(text)
    found = read_partial(text[opening.end() :] if opening else text) or {}
    return as_text(found.get("tool_input")).strip() if found.get("tool") == FINAL_ANSWER else ""


# -- steps that a server holds to a schema
# --------------------------------------------------------------------------------------------------


def _render_held(conversation: Conversation) -> Prompt:
    """Return the request for a step, with its JSON Schema, or for the answer as plain text."""
    give_up = _give_up(conversation)
    names = [*(tool.name for tool in conversation.described_tools), ANSWER, give_up]
    fields = {"tools": describe_tools(conversation.described_tools), "tool_names": ", ".join(names)}
    told = fill("held", **fields, give_up=give_up) if conversation.described_tools else ""
    if conversation.chosen is not None:
        return _render(conversation, told, [conversation.chosen, tell(say("write_answer"))])
    if conversation.is_last:
        return _render(conversation, told, [tell(say("answer_now"))])
    prompt = _render(conversation, told, [])
    return replace(prompt, schema_name="step", schema=_step_schema(conversation))


def _step_schema(conversation: Conversation) -> dict[str, Any]:
    """Return the JSON Schema of a step: a call of one of the tools with its input, the choice to
    answer, or what is lacking."""
    text = {"type": "string", "maxLength": MAX_TEXT_CHARS}
    inputs = {tool.name: dict(tool.parameters) for tool in conversation.tools}
    ends = {ANSWER: None, _give_up(conversation): text}
    return fit_schema(
        {"anyOf": [_choice(name, given) for name, given in {**inputs, **ends}.items()]},
        max_tokens=MAX_STEP_TOKENS,
    )


def _choice(name: str, given: dict[str, Any] | None) -> dict[str, Any]:
    properties = {
        "thought": {"type": "string", "maxLength": MAX_THOUGHT_CHARS},
        "tool": {"enum": [name]},
        **({} if given is None else {"tool_input": given}),
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _parse_held(completion: Completion, conversation: Conversation) -> AgentDecision:
    """Return the decision in a step, or the answer. The answer is empty if the model chose to
    answer: it is to be asked for. A reply without any object is the answer itself."""
    text = completion.text.strip()
    try:
        action, log = read_object(text)
    except MalformedReplyError:
        action, log = {}, text
    is_answer = action.get("tool") == ANSWER
    if not conversation.tools or conversation.chosen is not None:
        return end(FINAL_ANSWER, action.get("tool_input") if is_answer else text, log=text)
    if is_answer:
        return Finish(output="", log=log)
    if "{" in text or completion.tool_calls:
        return parse(completion, conversation)
    return end(FINAL_ANSWER, text, log=text)


JSON = AgentProtocol(name="json", render=render, parse=parse)
HELD_JSON = AgentProtocol(name="json with a schema", render=_render_held, parse=_parse_held)
