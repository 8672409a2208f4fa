"""What an agent can do besides writing: a named function with a schema, an effect and bounds."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from babyagi.llm.base import Completion
from babyagi.llm.prompt import Prompt, ToolSpec
from babyagi.tasks import Effect, Passage, Role

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What came of a tool call, for the model to read."""

    passage: Passage
    is_error: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Observation:
        fields = json.loads(text)
        passage = fields["passage"]
        sources = tuple(passage.get("sources", ()))
        return cls(
            passage=Passage(text=passage["text"], origin=passage["origin"], sources=sources),
            is_error=fields["is_error"],
        )


class Calls(Protocol):
    """The way to a model and to tools, as the journal gives it: what was called at a path once is
    read from there ever after."""

    async def complete(self, path: str, prompt: Prompt, *, role: Role) -> Completion: ...

    async def call_tool(
        self, path: str, tool: Tool, arguments: Mapping[str, Any]
    ) -> Observation: ...

    async def recall(self, path: str) -> str | None:
        """Return the word that was kept at the path, None when none was."""
        ...

    async def keep(self, path: str, word: str) -> str:
        """Keep a word at the path, and return it; the first one that was kept there holds."""
        ...


Compose = Callable[[Mapping[str, Any], Calls], Awaitable[Passage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a call would change, for the person who approves it.

    Attributes:
        state: a digest of what is there now; the call that was approved is not made when it has
            become another.
        note: one sentence of ours.
        parameter: the one whose value `lines` show as a difference, each with its sign (`+`, `-`,
            blank, or `@` for lines that are left out because they stay as they are); empty where
            there is nothing to compare with.
    """

    state: str
    note: str
    parameter: str = ""
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool. `run` takes the arguments, already checked against `parameters` (a JSON Schema of
    type object), and returns a passage; it raises `ToolError` with one line for the model.

    `effect` comes from our configuration, never from a server's word. With `asks_person` the call
    is a question to a person: `run` is never called, and the task waits for the answer. With
    `compose` the tool is made of other calls, each a step of its own beneath the call's path:
    `compose` is called instead of `run`, and `timeout_s` bounds its parts, not the whole.

    `return_direct`: what it gives is the answer of the run. `reflect`: how often a call whose
    output does not fit may be put differently and made again. `preview`: what a call with these
    arguments would change, found out without changing it.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    run: Callable[[Mapping[str, Any]], Awaitable[Passage]]
    timeout_s: float = 30.0
    max_output_chars: int = 16_000
    asks_person: bool = False
    return_direct: bool = False
    reflect: int = 0
    compose: Compose | None = None
    preview: Callable[[Mapping[str, Any]], Awaitable[Preview]] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a tool's name has 1 to 64 letters, digits, _ or -, got {self.name[:100]!r}"
            )
        if self.reflect and (self.effect is Effect.ONCE or self.asks_person):
            raise ValueError(f"{self.name} must not be repeated, so it cannot be reflected upon")

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)

    @property
    def may_wait(self) -> bool:
        """Whether a call can make its task wait for a person; such a call is made alone."""
        return self.asks_person or self.effect is Effect.ONCE


def takes(*required: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `parameters` of a tool: a JSON Schema for each, and the names of those that must be
    given."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def takes_text(parameter: str, description: str) -> Mapping[str, Any]:
    """The `parameters` of a tool that takes one text."""
    return takes(parameter, **{parameter: {"type": "string", "description": description}})


async def run_composed(arguments: Mapping[str, Any]) -> Passage:
    """The `run` of a tool that has `compose`."""
    raise NotImplementedError("a composed tool is run through its `compose`")
