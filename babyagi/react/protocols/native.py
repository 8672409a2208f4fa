"""The protocol for endpoints that support tools: calls and observations have fields of their own in
the API, and plain text is the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import N_SHOWN, Message, Prompt, Speaker, ToolCall, ToolSpec, fence
from babyagi.react.protocols.base import (
    ANSWER_NOW,
    AgentProtocol,
    Conversation,
    acts,
    label_of,
    model_origins,
)
from babyagi.react.protocols.json import FAIL_TASK, FINAL_ANSWER, NO_REASON, as_text, read_called
from babyagi.react.steps import Act, AgentDecision, AgentStep, Fail, Finish
from babyagi.tools.base import DECODER, takes_text

GIVE_UP = ToolSpec(
    name=FAIL_TASK,
    description="Ends the work without an answer, when it cannot be done.",
    parameters=takes_text("reason", "Why it cannot be done."),
)
_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "tool_input", "input", "args", "action_input")
_BESIDE = frozenset(("thought", "id", "type", "call_id", "index"))
_AROUND = re.compile(
    r"\s*(?:`{3}\w{0,10}\s*\n(?P<code>.*?)\n\s*`{3}|<(?P<tag>tool_calls?|function_calls?)>(?P<tagged>.*?)"
    r"(?:</(?P=tag)>)?)\s*",
    re.DOTALL,
)


def render(conversation: Conversation) -> Prompt:
    """Return the request, with tool calls and observations in messages of their own. If there are
    tools, the model can also call `fail_task`."""
    messages = list(conversation.messages)
    for step, act in acts(conversation.steps):
        messages += _write_step(step, act)
    if conversation.is_last:
        messages.append(Message(speaker=Speaker.USER, text=ANSWER_NOW, origins=("program",)))
    specs = [tool.spec for tool in conversation.tools]
    tools = (*specs, GIVE_UP) if specs else ()
    return Prompt(
        messages=tuple(messages), tools=tools, max_output_tokens=conversation.max_output_tokens
    )


@lru_cache(maxsize=N_SHOWN)
def _write_step(step: AgentStep, act: Act) -> tuple[Message, ...]:
    """Return the messages of a step: the model's reply with its calls, then one message per call
    with its outcome. They are the same in every later request."""
    return (
        Message(
            speaker=Speaker.ASSISTANT,
            text=act.log,
            tool_calls=act.calls,
            origins=model_origins(step),
        ),
        *(
            Message(
                speaker=Speaker.TOOL,
                text=fence(label_of(observation), observation.passage),
                tool_call_id=call.id,
                origins=observation.passage.origins,
            )
            for call, observation in zip(act.calls, step.observations, strict=True)
        ),
    )


def parse(completion: Completion, conversation: Conversation) -> AgentDecision:
    """Return the decision in a reply. If the reply was cut off, its calls are ignored and only its
    text counts. A reply whose whole text is a call, written as JSON, counts as a call."""
    text = completion.text.strip()
    if completion.tool_calls and conversation.tools and completion.finish_reason != "length":
        return read_called(completion)
    if not text:
        raise MalformedReplyError("Your reply held no answer. Write the answer itself.")
    if conversation.tools:
        written = read_written(text, {tool.name for tool in conversation.tools})
        if written is not None:
            return written
    return Finish(output=text, log=completion.text)


def read_written(text: str, names: Collection[str]) -> AgentDecision | None:
    """Return the decision if the text consists of calls of these tools, or of `final_answer` or
    `fail_task`, written as JSON; else None."""
    around = _AROUND.fullmatch(text)
    body = (around["code"] or around["tagged"] or "") if around else text
    if body.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = DECODER.decode(body.strip())
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and set(value) == {"tool_calls"}:
        value = value["tool_calls"]
    given = [_read_call(one) for one in (value if isinstance(value, list) else [value])]
    calls = [call for call in given if call is not None]
    if not calls or len(calls) < len(given):
        return None
    first = calls[0][0].casefold().replace(" ", "_")
    if len(calls) == 1 and first == FINAL_ANSWER and as_text(calls[0][1]).strip():
        return Finish(output=as_text(calls[0][1]).strip(), log=text)
    if len(calls) == 1 and calls[0][0] == FAIL_TASK:
        return Fail(reason=as_text(calls[0][1]) or NO_REASON, log=text)
    if any(name not in names for name, _ in calls):
        return None
    return Act(
        calls=tuple(
            ToolCall(id=f"written_{at}", name=name, arguments=_write(arguments))
            for at, (name, arguments) in enumerate(calls, start=1)
        )
    )


def _read_call(value: Any) -> tuple[str, Any] | None:
    """Return (name, arguments) if the value looks like a call; else None."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict) and set(value) <= {"function", *_BESIDE}:
        value = value["function"]
    name = next((key for key in _NAMES if isinstance(value.get(key), str)), None)
    arguments = next((key for key in _ARGUMENTS if key in value), None)
    if name is None or arguments is None or set(value) - {name, arguments} - _BESIDE:
        return None
    return value[name], value[arguments]


def _write(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


NATIVE = AgentProtocol(name="native", render=render, parse=parse)
