"""The execution loop: ask the model, run the tools it calls, show it what they gave, until it answers.

With no tools it is one call. On the last allowed step no tool is offered, so that there is always an answer.

Does not cover: protocols other than native tool calling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from babyagi.errors import MalformedReplyError, ToolError
from babyagi.inbox import Observation
from babyagi.journal import Journal
from babyagi.llm.base import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, fence
from babyagi.react.asking import MAX_REASKS, ask, read_text
from babyagi.tasks import Passage, Role
from babyagi.tools.base import Tool
from babyagi.tools.validate import parse_arguments

MAX_STEPS = 8
MAX_CALLS_PER_STEP = 8

ANSWER_NOW = "Answer now, from what you have: no further tool can be used."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the loop came to. `origins` names every source that any of its prompts held."""

    text: str
    origins: tuple[str, ...]
    n_steps: int


async def run_steps(messages: Sequence[Message], *, tools: Sequence[Tool], journal: Journal, max_output_tokens: int) -> Answer:
    """Return the model's answer after at most `MAX_STEPS` steps.

    Steps are journaled at `execute/N/model` (see `ask`) and `execute/N/tool/M`, counted from 1.

    Raises:
        MalformedReplyError: nothing but replies, or calls of tools, that cannot be used. Whatever else `ask` raises.
    """
    prompt = Prompt(messages=tuple(messages), tools=tuple(tool.spec for tool in tools), max_output_tokens=max_output_tokens)
    n_misused = 0
    for n in range(1, MAX_STEPS + 1):
        if n == MAX_STEPS and prompt.tools:
            prompt = _tell(replace(prompt, tools=()), ANSWER_NOW)
        asked = await ask(journal, f"execute/{n}/model", prompt, role=Role.EXECUTION, read=read_text, takes_cut=True)
        prompt, completion = asked.prompt, asked.completion
        if not (completion.tool_calls and prompt.tools and completion.finish_reason != "length"):
            origins = (*prompt.origins, f"model:{completion.model}")
            return Answer(text=asked.value, origins=tuple(dict.fromkeys(origins)), n_steps=n)
        misuse = _find_misuse(completion, tools)
        n_misused = n_misused + 1 if misuse else 0
        if n_misused > MAX_REASKS:
            raise MalformedReplyError(f"the model called tools wrongly, {n_misused} times: {misuse}")
        prompt = await _use_tools(prompt, completion, tools=tools, journal=journal, n=n)
    raise MalformedReplyError("the model gave no answer to the task")


def _tell(prompt: Prompt, text: str) -> Prompt:
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
    try:
        tool, arguments = _read_call(call, tools)
    except ToolError as error:
        return Observation(passage=Passage(text=error.what, origin="program"), is_error=True)
    return await journal.call_tool(path, tool, arguments)


def _read_call(call: ToolCall, tools: Sequence[Tool]) -> tuple[Tool, Mapping[str, Any]]:
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        raise ToolError(f"there is no tool {call.name!r}; there are: {', '.join(tool.name for tool in tools)}")
    return tool, parse_arguments(tool, call.arguments)


def _find_misuse(completion: Completion, tools: Sequence[Tool]) -> str:
    """Why none of the reply's calls can be run; empty when one can."""
    why = ""
    for call in completion.tool_calls:
        try:
            _read_call(call, tools)
        except ToolError as error:
            why = error.what
        else:
            return ""
    return why
