"""A protocol: how a request to a model is written, and how its reply is read. A protocol is two
pure functions; everything else in an agent is independent of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolSpec
from babyagi.react.steps import Act, AgentDecision, AgentStep
from babyagi.text import one_line, sentences_of
from babyagi.tools.base import Observation, Tool, describe_type

PLAIN_TYPES = ("string", "integer", "number", "boolean", "any")
PLACE = re.compile(r"\{\{(\w+)\}\}")

PROMPT_NAMES = tuple(
    "text json held reflection agent node output memory summary entities words".split()
)
WRITTEN_CALL = "written in the text"  # the id of a call that the model wrote as text


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a request is made from: the question, the steps that the model is shown, and the tools.
    If there are no tools, the model must answer.

    Attributes:
        earlier_tools: the tools of the earlier requests, when no further call can be made. The
            instructions still name them, so that the prompt begins as before, and a server need not
            read it anew.
        is_brief: the tools are described briefly, because the server may be a small one.
        says_lacking: the model may say what is lacking, in place of giving up.
        is_last: there were tools, but no further call can be made.
        chosen: the reply in which the model chose to answer. Now the answer itself is asked for.
    """

    messages: tuple[Message, ...]
    steps: Sequence[AgentStep] = ()
    tools: Sequence[Tool] = ()
    earlier_tools: Sequence[Tool] = ()
    max_output_tokens: int = 2000
    is_brief: bool = False
    says_lacking: bool = False
    is_last: bool = False
    chosen: Message | None = None

    @property
    def described_tools(self) -> Sequence[Tool]:
        """The tools that the instructions name."""
        return self.tools or self.earlier_tools

    @property
    def is_plain(self) -> bool:
        """Whether the model can only answer, because the agent has no tools."""
        return not self.tools and not self.is_last


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
    return _fill(name, load_prompt(name), fields).strip()


def say(name: str, /, *, package: str = "babyagi.react", **fields: str) -> str:
    """Return a short text for the model: the one with this name in the file `prompts/words.md` of a
    package, with its placeholders replaced. Raises what `fill` raises."""
    return _fill(name, _load_words(package)[name], fields)


@cache
def _load_words(package: str) -> dict[str, str]:
    entries = load_prompt("words", package=package).removeprefix("# ").split("\n\n# ")
    named = (entry.partition("\n") for entry in entries)
    return {name: text.strip() for name, _, text in named}


def _fill(name: str, text: str, fields: Mapping[str, str]) -> str:
    require_places(name, text, fields)
    return PLACE.sub(lambda place: fields[place[1]], text)


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


def repeat(
    steps: Sequence[AgentStep], write: Callable[[AgentStep, Act], Sequence[Message]]
) -> list[Message]:
    """Return the messages that `write` makes of the steps with tool calls. If the conversation goes
    on after an answer, only these steps are repeated in it."""
    return [
        message
        for step in steps
        if isinstance(step.decision, Act)
        for message in write(step, step.decision)
    ]


def tell(text: str) -> Message:
    """Return a message of the program to the model."""
    return Message(speaker=Speaker.USER, text=text, origins=("program",))


def describe_tools(tools: Sequence[Tool]) -> str:
    """Describe the tools on one short line each, such as `read_file(path, first_line?): Read a text
    file.`"""
    return "\n".join(f"{one.name}({describe_input(one)}): {_first_sentence(one)}" for one in tools)


def _first_sentence(tool: Tool) -> str:
    return next(sentences_of(one_line(tool.description)), "")


def specify(tool: Tool, *, is_brief: bool) -> ToolSpec:
    """Return the tool as a model sees it; with `is_brief` the first sentence of its description,
    and no description of its parameters."""
    if not is_brief:
        return tool.spec
    properties = {
        name: {key: value for key, value in schema.items() if key != "description"}
        for name, schema in tool.parameters.get("properties", {}).items()
    }
    return ToolSpec(
        name=tool.name,
        description=_first_sentence(tool),
        parameters={**tool.parameters, "properties": properties},
    )


def describe_input(tool: Tool) -> str:
    """Describe the input of a tool on one line, such as `path, first_line?, order: "up" or "down"`.
    The type of a plain value is left out."""
    required = tool.parameters.get("required", ())
    kinds = {n: describe_type(one) for n, one in tool.parameters.get("properties", {}).items()}
    return ", ".join(
        f"{name}{'' if name in required else '?'}{'' if kind in PLAIN_TYPES else f': {kind}'}"
        for name, kind in kinds.items()
    )
