"""The protocol for endpoints that support tools: calls and observations have fields of their own in
the API, and plain text is the answer."""

from __future__ import annotations

from functools import lru_cache

from babyagi.errors import MalformedReplyError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import N_SHOWN, Message, Prompt, Speaker, ToolSpec, fence
from babyagi.react.protocols.base import (
    AgentProtocol,
    Conversation,
    label_of,
    model_origins,
    repeat,
    say,
    specify,
    tell,
)
from babyagi.react.protocols.written import read_called, read_written
from babyagi.react.steps import FAIL_TASK, LACKING, Act, AgentDecision, AgentStep, Finish
from babyagi.tools.base import takes_text

GIVE_UP = ToolSpec(
    name=FAIL_TASK,
    description=say("fail_task"),
    parameters=takes_text("reason", say("fail_task_reason")),
)
LACK = ToolSpec(
    name=LACKING,
    description=say("lacking"),
    parameters=takes_text("what", say("lacking_what")),
)


def render(conversation: Conversation) -> Prompt:
    """Return the request, with tool calls and observations in messages of their own. The model can
    also call `lacking`, where the conversation has it, or else `fail_task` if there are tools."""
    last = [tell(say("answer_now"))] if conversation.is_last else []
    ends = (LACK,) if conversation.says_lacking else (GIVE_UP,) if conversation.tools else ()
    return Prompt(
        messages=(*conversation.messages, *repeat(conversation.steps, _write_step), *last),
        tools=(
            *(specify(one, is_brief=conversation.is_brief) for one in conversation.tools),
            *ends,
        ),
        max_output_tokens=conversation.max_output_tokens,
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
    text counts. A call that is written as text counts as a call."""
    text = completion.text.strip()
    may_call = bool(conversation.tools or conversation.says_lacking)
    if completion.tool_calls and may_call and completion.finish_reason != "length":
        return read_called(completion)
    if not text:
        raise MalformedReplyError(say("no_answer"))
    return (may_call and read_written(text, conversation.tools)) or Finish(
        output=text, log=completion.text
    )


NATIVE = AgentProtocol(name="native", render=render, parse=parse)
