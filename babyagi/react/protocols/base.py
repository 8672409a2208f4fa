"""A protocol: how a request to a model is written, and how its reply is read. A protocol is two
pure functions; everything else in an agent is independent of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker
from babyagi.react.steps import Act, AgentDecision, AgentStep
from babyagi.tools.base import Observation, Tool, describe_type

PLACE = re.compile(r"\{\{(\w+)\}\}")

PROMPT_NAMES = tuple(
    "text json reflection agent node output memory summary entities condense".split()
)
WRITTEN_CALL = "written in the text"  # the id of a call that the model wrote as text
ANSWER_NOW = "Answer now, from what you have: no further tool can be used."


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a request is made from: the question, the steps that the model is shown, and the tools.
    If there are no tools, the model must answer."""

    messages: tuple[Message, ...]
    steps: Sequence[AgentStep] = ()
    tools: Sequence[Tool] = ()
    max_output_tokens: int = 2000
    is_last: bool = False  # there were tools, but no further call can be made


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentProtocol:
    """A way of talking to a model.

    `render` makes the request for a conversation. `parse` returns the decision in its completion.
    `parse` raises only `MalformedReplyError`, whose text says what the model should have written.
    """

    name: str
    render: Callable[[Conversation], Prompt]
    parse: Callable[[Completion, Conversation], AgentDecision]


@cache
def load_prompt(name: str, *, package: str = "babyagi.react") -> str:
    """Return the text of a prompt file in a package."""
    return files(package).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")


def fill(name: str, **fields: str) -> str:
    """Return the text of a prompt file of `babyagi/react` with its placeholders replaced.

    Raises:
        ValueError: the names of the fields are not those of the placeholders.
    """
    text = load_prompt(name)
    require_places(name, text, fields)
    return PLACE.sub(lambda place: fields[place[1]], text).strip()


def require_places(name: str, text: str, fields: Collection[str]) -> None:
    """Check that the names of the fields are those of the prompt's placeholders.

    Args:
        name: the name of the prompt, for the error.
        text: the text of the prompt.

    Raises:
        ValueError: a field or a placeholder is missing.
    """
    wanted = set(PLACE.findall(text))
    if wanted != set(fields):
        raise ValueError(
            f"prompt {name} has the placeholders {sorted(wanted)}, but got {sorted(fields)}"
        )


def instruct(messages: Sequence[Message], instruction: str) -> list[Message]:
    """Return the messages with the instruction added at the end of the system message. If there is
    no system message, the instruction becomes one."""
    told = Message(speaker=Speaker.SYSTEM, text=instruction, origins=("program",))
    if not messages or messages[0].speaker is not Speaker.SYSTEM:
        return [told, *messages]
    first = messages[0]
    text = f"{first.text}\n\n{instruction}"
    return [
        Message(
            speaker=Speaker.SYSTEM,
            text=text,
            origins=tuple(dict.fromkeys((*first.origins, "program"))),
        ),
        *messages[1:],
    ]


def model_origins(step: AgentStep) -> tuple[str, ...]:
    return (f"model:{step.model}",) if step.model else ()


def origins_of(step: AgentStep) -> tuple[str, ...]:
    """Return the origins of the step's observations, each origin once."""
    return tuple(
        dict.fromkeys(
            origin for observation in step.observations for origin in observation.passage.origins
        )
    )


def label_of(observation: Observation) -> str:
    return "error" if observation.is_error else "observation"


def acts(steps: Sequence[AgentStep]) -> list[tuple[AgentStep, Act]]:
    """Return the steps with tool calls, each with its decision. If the conversation goes on after
    an answer, only these steps are repeated in it."""
    return [(step, step.decision) for step in steps if isinstance(step.decision, Act)]


def describe_input(tool: Tool) -> str:
    """Describe the input of a tool in words, on one line, such as `path (string), first_line
    (integer, optional)`."""
    required = tool.parameters.get("required", ())
    properties: dict[str, Any] = dict(tool.parameters.get("properties", {}))
    said = [
        f"{name} ({describe_type(schema)}{'' if name in required else ', optional'})"
        for name, schema in properties.items()
    ]
    return ", ".join(said) or "none"
