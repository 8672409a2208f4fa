"""Runs the tool calls of one decision of the model: checks them, runs them in parallel if that is
safe, and returns an observation for each."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from babyagi.errors import ToolError
from babyagi.llm.prompt import ToolCall
from babyagi.react.protocols.base import say
from babyagi.react.protocols.json import ANSWER
from babyagi.react.protocols.text import NO_CALL
from babyagi.react.steps import ENDS, LACKING
from babyagi.tasks import Passage
from babyagi.tools.base import Calls, Observation, Tool, parse_arguments

MAX_CALLS_PER_STEP = 8

# The origin of a message about a call that was not made: it quotes the call of the model.
REFUSED = "model"
UNCALLABLE = frozenset({ANSWER, *ENDS, *NO_CALL})

NumberedCall = tuple[int, ToolCall]
"""A call and its number in the reply, counted from 1."""

T = TypeVar("T")


def require_names(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Check that a model can call each of the tools in every protocol, and return them.

    Raises:
        ValueError: two tools have the same name, or a name has another meaning in a protocol.
    """
    count = Counter(tool.name for tool in tools)
    if twice := [name for name, n in count.items() if n > 1]:
        raise ValueError(f"two tools are called {twice[0]!r}; rename one of them")
    if taken := [name for name in count if name.casefold() in UNCALLABLE]:
        raise ValueError(
            f"a tool cannot have the name {taken[0]!r}, which has another meaning in a reply; "
            "rename the tool"
        )
    return tuple(tools)


class Caller:
    """Makes the tool calls that the model decided on in one reply.

    Args:
        max_parallel: how many calls run at once. A call that may wait for a person runs alone, so
            that no other call is in flight if the task is released while it waits.
    """

    def __init__(self, tools: Sequence[Tool], calls: Calls, *, max_parallel: int) -> None:
        self.tools = require_names(tools)
        self._tool_by_name = {tool.name: tool for tool in tools}
        self._calls = calls
        self._max_parallel = max(1, max_parallel)

    def find(self, name: str) -> Tool | None:
        """Return the tool with this name, or None."""
        return self._tool_by_name.get(name)

    def batches(self, calls: Sequence[ToolCall]) -> list[list[NumberedCall]]:
        """Divide the calls, in their order, into batches. The calls of one batch run in
        parallel."""
        batches: list[list[NumberedCall]] = []
        is_open = False
        for place in enumerate(calls, start=1):
            tool = self.find(place[1].name)
            is_alone = tool is not None and tool.may_wait
            if batches and is_open and not is_alone and len(batches[-1]) < self._max_parallel:
                batches[-1].append(place)
            else:
                batches.append([place])
            is_open = not is_alone
        return batches

    async def make(self, batch: Sequence[NumberedCall], path: str) -> list[Observation]:
        """Make the calls of a batch, and return the observation of each. Call `m` is a step at
        `path/m`.

        Raises:
            Whatever `Calls.call_tool` raises; the other calls of the batch are then cancelled.
        """
        return await side_by_side([self._observe(place, path) for place in batch])

    async def _observe(self, place: NumberedCall, path: str) -> Observation:
        m, call = place
        if call.name == LACKING:
            return Observation(passage=Passage(text=say("look_first"), origin="program"))
        if m > MAX_CALLS_PER_STEP:
            return _refused(f"not run: at most {MAX_CALLS_PER_STEP} calls at once")
        tool = self.find(call.name)
        if tool is None:
            known = ", ".join(self._tool_by_name)
            return _refused(f"there is no tool {call.name[:100]!r}; there are: {known}")
        try:
            arguments = parse_arguments(tool, call.arguments)
        except ToolError as error:
            return _refused(error.what)
        return await self._calls.call_tool(f"{path}/{m}", tool, arguments)


async def side_by_side(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all coroutines concurrently and return their results. The first error cancels the others
    and is raised unchanged."""
    if len(calls) == 1:
        return [await calls[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def _refused(text: str) -> Observation:
    return Observation(passage=Passage(text=text, origin=REFUSED), is_error=True)


def fingerprint(call: ToolCall, observation: Observation) -> tuple[str, bool, str, str]:
    """Return (tool, whether it failed, text of the outcome, arguments) of a call; equal for two
    calls also if the arguments are written differently."""
    try:
        arguments = json.dumps(json.loads(call.arguments), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = call.arguments.strip()
    return call.name, observation.is_error, observation.passage.text, arguments
