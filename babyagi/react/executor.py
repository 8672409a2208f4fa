"""The execution loop: ask the model, run the tools it calls, show it what they gave, until it answers.

With no tools it is one call. On the last allowed step no tool is offered, so that there is always an answer.

Does not cover: protocols other than native tool calling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from babyagi.errors import MalformedReplyError, RequestRefusedError, ToolError
from babyagi.inbox import Observation
from babyagi.journal import Journal
from babyagi.llm.base import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, fence
from babyagi.tasks import Passage, Role
from babyagi.tools.base import Tool
from babyagi.tools.validate import parse_arguments

MAX_STEPS = 8
MAX_CALLS_PER_STEP = 8
MAX_REASKS = 2

ANSWER_NOW = "Answer now, from what you have: no further tool can be used."
BE_SHORTER = "Your answer was cut off. Give it again, complete and shorter."
NOT_EMPTY = "Your reply was empty. Answer with the result of the task."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the loop came to. `origins` names every source that any of its prompts held."""

    text: str
    origins: tuple[str, ...]
    n_steps: int


async def run_steps(messages: Sequence[Message], *, tools: Sequence[Tool], journal: Journal, max_output_tokens: int) -> Answer:
    """Return the model's answer after at most `MAX_STEPS` model calls.

    Steps are journaled at `execute/N/model` and `execute/N/tool/M`, counted from 1.

    Raises:
        MalformedReplyError: nothing but empty replies. RequestRefusedError: the model refuses.
        Whatever `Journal.complete` raises.
    """
    prompt = Prompt(messages=tuple(messages), tools=tuple(tool.spec for tool in tools), max_output_tokens=max_output_tokens)
    n_reasks = 0
    for n in range(1, MAX_STEPS + 1):
        if n == MAX_STEPS and prompt.tools:
            prompt = _ask(replace(prompt, tools=()), ANSWER_NOW)
        completion = await journal.complete(f"execute/{n}/model", prompt, role=Role.EXECUTION)
        if completion.tool_calls and prompt.tools and completion.finish_reason != "length":
            prompt = await _use_tools(prompt, completion, tools=tools, journal=journal, n=n)
            continue
        feedback = _feedback(completion)
        if not feedback or (n_reasks == MAX_REASKS and completion.text.strip()):
            origins = (*prompt.origins, f"model:{completion.model}")
            return Answer(text=completion.text.strip(), origins=tuple(dict.fromkeys(origins)), n_steps=n)
        if n_reasks == MAX_REASKS:
            break
        n_reasks += 1
        prompt = _ask(prompt, feedback)
        if feedback is BE_SHORTER:
            prompt = replace(prompt, max_output_tokens=2 * max_output_tokens)
    raise MalformedReplyError("the model gave no answer to the task, only empty replies")


def _feedback(completion: Completion) -> str:
    """What to tell the model about a reply that is no answer; empty when it is one."""
    if completion.refusal:
        raise RequestRefusedError(f"the model refused the task: {completion.refusal[:300]}")
    if completion.finish_reason == "content_filter":
        raise RequestRefusedError("the endpoint's content filter stopped the answer")
    if not completion.text.strip():
        return NOT_EMPTY
    return BE_SHORTER if completion.finish_reason == "length" else ""


def _ask(prompt: Prompt, text: str) -> Prompt:
    return replace(prompt, messages=(*prompt.messages, Message(speaker=Speaker.USER, text=text, origins=("program",))))


async def _use_tools(prompt: Prompt, completion: Completion, *, tools: Sequence[Tool], journal: Journal, n: int) -> Prompt:
    """Return the prompt with the model's calls and what each gave; calls over the bound are answered, not run."""
    messages = [
        Message(speaker=Speaker.ASSISTANT, text=completion.text, tool_calls=completion.tool_calls, origins=(f"model:{completion.model}",))
    ]
    for m, call in enumerate(completion.tool_calls, start=1):
        if m > MAX_CALLS_PER_STEP:
            passage = Passage(text=f"not run: at most {MAX_CALLS_PER_STEP} calls at once", origin="program")
            observation = Observation(passage=passage, is_error=True)
        else:
            observation = await _observe(call, tools=tools, journal=journal, path=f"execute/{n}/tool/{m}")
        label = "error" if observation.is_error else "observation"
        messages.append(
            Message(
                speaker=Speaker.TOOL,
                text=fence(label, observation.passage),
                tool_call_id=call.id,
                origins=(observation.passage.origin,),
            )
        )
    return replace(prompt, messages=(*prompt.messages, *messages))


async def _observe(call: ToolCall, *, tools: Sequence[Tool], journal: Journal, path: str) -> Observation:
    tool = next((tool for tool in tools if tool.name == call.name), None)
    try:
        if tool is None:
            raise ToolError(f"there is no tool {call.name!r}; there are: {', '.join(tool.name for tool in tools)}")
        arguments = parse_arguments(tool, call.arguments)
    except ToolError as error:
        return Observation(passage=Passage(text=error.what, origin="program"), is_error=True)
    return await journal.call_tool(path, tool, arguments)
