"""Models to put behind the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from babyagi.llm.prompt import Prompt, Speaker
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.tasks import Role
from support.local_server.dialects import Answer, ChatRequest
from support.scripted import agree

Answerer = Callable[[ChatRequest], Answer | Awaitable[Answer]]


async def rehearsal_answer(request: ChatRequest) -> Answer:
    """Answer as the rehearsal model does in process."""
    prompt = Prompt(
        messages=request.messages,
        tools=request.tools,
        schema_name=request.schema_name,
        schema=request.schema,
    )
    role = Role(request.agent) if request.agent in set(Role) else Role.EXECUTION
    completion = await RehearsalModel().complete(prompt, role=role)
    return Answer(
        text=completion.text,
        tool_calls=completion.tool_calls,
        finish_reason=completion.finish_reason,
    )


def echo_answer(request: ChatRequest) -> Answer:
    """Answer with what the user said last."""
    said = [message.text for message in request.messages if message.speaker is Speaker.USER]
    return Answer(text=said[-1] if said else "")


def agree_answer(request: ChatRequest) -> Answer:
    """Answer as a check that finds the objective met."""
    return Answer(text=agree(Prompt(messages=request.messages)))


def agreeing(answer: Answerer) -> Answerer:
    """The same model, except that every check agrees."""
    return lambda request: agree_answer(request) if request.agent == "check" else answer(request)
