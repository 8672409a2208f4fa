"""An agent as a tool of another: its question goes in, its answer comes out, and its calls are
steps beneath the call's path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from babyagi.disarm import disarm
from babyagi.errors import ToolError
from babyagi.llm.prompt import Message, Speaker, clean
from babyagi.react.executor import NO_ANSWER, Executor
from babyagi.react.protocols.base import Protocol
from babyagi.react.steps import Bounds
from babyagi.tasks import Effect, Passage, find_sources
from babyagi.tools.base import Calls, Tool, run_composed, takes_text


def ask_agent(instruction: str, question: Passage) -> tuple[Message, ...]:
    """The messages that put a question to an agent."""
    return (
        Message(speaker=Speaker.SYSTEM, text=instruction, origins=("program",)),
        Message(speaker=Speaker.USER, text=disarm(clean(question.text)), origins=question.origins),
    )


def build_agent_tool(
    name: str,
    description: str,
    *,
    instruction: str,
    tools: Sequence[Tool],
    bounds: Bounds,
    protocol: Protocol | str = "auto",
) -> Tool:
    """Return a tool that is an agent with these tools, never with itself. It asks its caller's
    model, under the same journal and limits."""
    tools = tuple(tools)

    async def compose(arguments: Mapping[str, Any], calls: Calls) -> Passage:
        executor = Executor(
            tools=tools, calls=calls, protocol=protocol, bounds=bounds, path="agent"
        )
        run = await executor.run(
            ask_agent(instruction, Passage(text=arguments["question"], origin="model"))
        )
        if run.output in ("", NO_ANSWER):
            raise ToolError(f"{name} found no answer: {run.detail[:300]}")
        return Passage(text=run.output, origin=f"tool:{name}", sources=find_sources(run.origins))

    return Tool(
        name=name,
        description=description,
        parameters=takes_text("question", "All that it needs to know, in words."),
        effect=Effect.ONCE if any(tool.may_wait for tool in tools) else Effect.IDEMPOTENT,
        run=run_composed,
        compose=compose,
    )
