"""A pipeline of prompts and tools, run from the first node to the last; each call is a step of its
own in the journal.

Data flows by variables: the root gives `query`, a prompt node gives its `output_variable`, a tool
its own; a template takes any that was
given before it. A node without a template takes what its input gave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babyagi.components.document import ROOT
from babyagi.components.kinds import PromptNode, PythonRuntime, SerpAPIComponent
from babyagi.components.source import fault, shown
from babyagi.disarm import disarm
from babyagi.errors import ToolError
from babyagi.llm.prompt import Message, Prompt, Speaker, clean, fence
from babyagi.react.asking import ask, read_text
from babyagi.react.protocols.base import fill
from babyagi.tasks import Effect, Passage, Role, find_sources
from babyagi.tools.base import Calls, Tool, run_composed, takes_text
from babyagi.tools.python import RESULT

QUERY = "query"
FOUND = "documents"
"""The variable of what a search found."""


Work = PromptNode | SerpAPIComponent | PythonRuntime
"""The kinds that can be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A node that can be run. `takes` names the nodes that it takes from."""

    name: str
    takes: tuple[str, ...]
    work: Work

    @property
    def gives(self) -> str:
        """The variable of what it gives."""
        match self.work:
            case PromptNode(output_variable=variable):
                return variable
            case SerpAPIComponent():
                return FOUND
            case PythonRuntime():
                return RESULT


def build_pipeline_tool(
    name: str, description: str, stages: Sequence[Stage], tools: Mapping[str, Tool]
) -> Tool:
    """Return the pipeline as a tool: a text goes in, what its last node gave comes out.

    Args:
        stages: as `check_flow` found them good; the last one gives the outcome.
        tools: by node, of the nodes that are no prompts; each takes one text.

    Raises:
        ValueError: no tool can have that name.
    """

    async def compose(arguments: Mapping[str, Any], calls: Calls) -> Passage:
        query = Passage(text=arguments[QUERY], origin="model")
        by_variable, by_node = {QUERY: query}, {ROOT: query}
        for n, stage in enumerate(stages, start=1):
            given = by_node[stage.takes[0]]
            if isinstance(stage.work, PromptNode):
                passage = await _ask(stage.work, f"node/{n}/model", given, by_variable, calls)
            else:
                passage = await _call(tools[stage.name], f"node/{n}/tool", given, calls)
            by_variable[stage.gives] = by_node[stage.name] = passage
        return Passage(
            text=passage.text, origin=f"tool:{name}", sources=find_sources(passage.origins)
        )

    return Tool(
        name=name,
        description=description,
        parameters=takes_text(QUERY, "All that is asked, in words."),
        effect=Effect.READ,
        run=run_composed,
        compose=compose,
    )


def check_flow(stages: Sequence[Stage]) -> None:
    """Look whether every node is given what it takes.

    Args:
        stages: in an order in which they can run.

    Raises:
        SettingsError: a template takes a variable that nothing before it gives, or a node that
        takes one text has several inputs.
    """
    there = {QUERY}
    for stage in stages:
        template = stage.work.template if isinstance(stage.work, PromptNode) else None
        for variable in template.variables if template else ():
            if variable not in there:
                what = (
                    f"the template {shown(template.name)} wants {shown(variable)}"
                    if template
                    else ""
                )
                raise fault(
                    f"node {shown(stage.name)}: {what}, and nothing before it gives that",
                    f"there is: {', '.join(sorted(there))}",
                )
        if template is None and len(stage.takes) > 1:
            raise fault(
                (
                    f"node {shown(stage.name)} takes from {len(stage.takes)} nodes and has "
                    "no template to join them"
                ),
                "give it one input",
            )
        there.add(stage.gives)


async def _ask(
    node: PromptNode, path: str, given: Passage, by_variable: Mapping[str, Passage], calls: Calls
) -> Passage:
    asked = await ask(
        calls, path, _render(node, given, by_variable), role=Role.EXECUTION, read=read_text
    )
    return Passage(
        text=asked.value,
        origin=f"model:{asked.completion.model}",
        sources=find_sources(asked.prompt.origins),
    )


async def _call(tool: Tool, path: str, given: Passage, calls: Calls) -> Passage:
    (parameter,) = tool.parameters["required"]
    observation = await calls.call_tool(path, tool, {parameter: given.text})
    if observation.is_error:
        raise ToolError(observation.passage.text)
    return observation.passage


def _render(node: PromptNode, given: Passage, by_variable: Mapping[str, Passage]) -> Prompt:
    """The prompt of a node. What a model wrote is put in as it is; what a tool gave is fenced, as
    everywhere."""
    if node.template is None:
        text, used = _show("input", given), [given]
    else:
        used = [by_variable[variable] for variable in node.template.variables]
        text = node.template.fill(
            {
                variable: _show(variable, by_variable[variable])
                for variable in node.template.variables
            }
        )
    return Prompt(
        messages=(
            Message(speaker=Speaker.SYSTEM, text=fill("node"), origins=("program",)),
            Message(
                speaker=Speaker.USER,
                text=text,
                origins=tuple(
                    dict.fromkeys(
                        ("person", *(origin for passage in used for origin in passage.origins))
                    )
                ),
            ),
        ),
        stop=node.stop_words,
    )


def _show(label: str, passage: Passage) -> str:
    return (
        f"\n{fence(label, passage)}\n"
        if passage.origin.startswith("tool:")
        else disarm(clean(passage.text))
    )
