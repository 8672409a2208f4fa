"""What an agent can do besides writing: a named function with a schema, an effect and bounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from babyagi.llm.prompt import ToolSpec
from babyagi.tasks import Effect, Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. `run` takes the arguments, already checked against `parameters` (a JSON Schema of type object), and returns a
    passage; it raises `ToolError` with one line for the model.

    `effect` comes from our configuration, never from a server's word. With `asks_person` the call is a question to a person: `run` is
    never called, and the task waits for the answer.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    run: Callable[[Mapping[str, Any]], Awaitable[Passage]]
    timeout_s: float = 30.0
    max_output_chars: int = 16_000
    asks_person: bool = False

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)
