"""The protocol of endpoints that know tools: calls and observations have fields of their own, and
plain text is the answer."""

from __future__ import annotations

from babyagi.errors import MalformedReplyError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, fence
from babyagi.react.protocols.base import (
    ANSWER_NOW,
    AgentProtocol,
    Conversation,
    acts,
    label_of,
    model_origins,
)
from babyagi.react.steps import Act, AgentDecision, Finish


def render(conversation: Conversation) -> Prompt:
    messages = list(conversation.messages)
    for step, act in acts(conversation.steps):
        messages.append(
            Message(
                speaker=Speaker.ASSISTANT,
                text=act.log,
                tool_calls=act.calls,
                origins=model_origins(step),
            )
        )
        messages += [
            Message(
                speaker=Speaker.TOOL,
                text=fence(label_of(observation), observation.passage),
                tool_call_id=call.id,
                origins=observation.passage.origins,
            )
            for call, observation in zip(act.calls, step.observations, strict=True)
        ]
    if conversation.is_last:
        messages.append(Message(speaker=Speaker.USER, text=ANSWER_NOW, origins=("program",)))
    tools = tuple(tool.spec for tool in conversation.tools)
    return Prompt(
        messages=tuple(messages), tools=tools, max_output_tokens=conversation.max_output_tokens
    )


def parse(completion: Completion, conversation: Conversation) -> AgentDecision:
    """Half a call is none: of a reply that was cut off only the text counts."""
    text = completion.text.strip()
    if completion.tool_calls and conversation.tools and completion.finish_reason != "length":
        return Act(calls=completion.tool_calls, thought=text, log=completion.text)
    if not text:
        raise MalformedReplyError("Your reply held no answer.")
    return Finish(output=text, log=completion.text)


NATIVE = AgentProtocol(name="native", render=render, parse=parse)
