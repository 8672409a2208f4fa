"""Self-reflection: does what a tool gave fit what it was asked? If not, it is asked again in other
words, a bounded number of times.

It wraps any tool. Each call and each judgement is a step of its own beneath the call's path:
`call/N`, `judge/N`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from babyagi.errors import MalformedReplyError, ToolError
from babyagi.llm.base import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, fence
from babyagi.react.asking import ask
from babyagi.react.protocols.base import fill, label_of
from babyagi.react.protocols.json import read_object
from babyagi.tasks import Passage, Role
from babyagi.tools.base import Calls, Observation, Tool, run_composed
from babyagi.tools.validate import parse_arguments

MAX_JUDGED_CHARS = 4000
MAX_OUTPUT_TOKENS = 1000

Arguments = Mapping[str, Any]


def with_reflection(tool: Tool) -> Tool:
    """Return the tool, wrapped as its `reflect` says; with 0, as it is."""
    if not tool.reflect:
        return tool
    inner = replace(tool, reflect=0)

    async def compose(arguments: Arguments, calls: Calls) -> Passage:
        observation = await calls.call_tool("call/1", inner, arguments)
        for n in range(1, tool.reflect + 1):
            better = await _judge(calls, f"judge/{n}", inner, arguments, observation)
            if better is None or better == arguments:
                break
            arguments = better
            observation = await calls.call_tool(f"call/{n + 1}", inner, arguments)
        if observation.is_error:
            raise ToolError(observation.passage.text)
        return observation.passage

    return replace(tool, reflect=0, compose=compose, run=run_composed)


async def _judge(
    calls: Calls, path: str, tool: Tool, arguments: Arguments, observation: Observation
) -> Arguments | None:
    """The arguments to try instead; None when the call is good as it is, or the judge cannot be
    understood."""

    def read(completion: Completion) -> Arguments | None:
        verdict, _ = read_object(completion.text.strip())
        if verdict.get("aligned") is not False:
            return None
        try:
            return parse_arguments(tool, json.dumps(verdict.get("input"), ensure_ascii=False))
        except ToolError as error:
            raise MalformedReplyError(error.what) from None

    try:
        return (
            await ask(
                calls, path, _render(tool, arguments, observation), role=Role.EXECUTION, read=read
            )
        ).value
    except MalformedReplyError:
        return None


def _render(tool: Tool, arguments: Arguments, observation: Observation) -> Prompt:
    given = observation.passage
    shown = [
        (
            "tool",
            Passage(
                text=f"{tool.name}: {tool.description}\n{json.dumps(dict(tool.parameters))}",
                origin="program",
            ),
        ),
        ("input", Passage(text=json.dumps(dict(arguments), ensure_ascii=False), origin="model")),
        (label_of(observation), replace(given, text=given.text[:MAX_JUDGED_CHARS])),
    ]
    origins = tuple(dict.fromkeys(origin for _, passage in shown for origin in passage.origins))
    return Prompt(
        messages=(
            Message(speaker=Speaker.SYSTEM, text=fill("reflection"), origins=("program",)),
            Message(
                speaker=Speaker.USER,
                text="\n".join(fence(label, passage) for label, passage in shown),
                origins=origins,
            ),
        ),
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
