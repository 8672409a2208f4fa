"""What a file of components describes: agents and pipelines, built from its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from babyagi.components.document import (
    ROOT,
    AgentEntry,
    Document,
    ToolEntry,
    fault,
    parse_yaml,
    read_document,
    read_source,
    shown,
)
from babyagi.components.kinds import (
    MemoryComponent,
    PromptModel,
    PromptNode,
    PythonRuntime,
    SerpAPIComponent,
    read_kinds,
    read_memory,
)
from babyagi.errors import SettingsError, ToolError
from babyagi.llm.prompt import Message, Prompt, Speaker, fence
from babyagi.memory.kinds import ConversationMemory
from babyagi.net.addresses import read_proxies
from babyagi.react.asking import ask, read_text
from babyagi.react.executor import build_agent_tool
from babyagi.react.protocols.base import fill
from babyagi.react.steps import AgentBounds
from babyagi.tasks import Effect, Passage, Role, find_sources
from babyagi.text import clean, disarm
from babyagi.tools.base import Calls, Tool, run_composed, takes_text
from babyagi.tools.python import RESULT, build_python
from babyagi.tools.search import build_serpapi_search

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


# --------------------------------------------------------------------------------------------------
# What a file says about one agent: its model, its tools and its bounds, ready to be made an
# agent.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDescription:
    """An agent as a file describes it. `model` and `api_key` are empty where the file leaves them
    to the settings."""

    name: str
    tools: tuple[Tool, ...]
    protocol: str
    bounds: AgentBounds
    model: str
    api_key: str = field(repr=False)
    memory: ConversationMemory | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """What a file of agents is given by the person who uses it.

    Attributes:
        keys: by the variable that holds them (`MODEL_KEY`, `SEARCH_KEY`); those that are not set
            are empty.
        variables: of the environment, for `<NAME>_PARAMS_<PARAM>`.
        hosts: that the file may name, beside the providers' own.
    """

    keys: Mapping[str, str] = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    hosts: tuple[str, ...] = ()


def load_description(
    path: Path, name: str, *, granted: Granted, has_model: bool
) -> AgentDescription:
    """Return what the file says about the agent of this name; without a name about its only one.

    Args:
        has_model: the model is given elsewhere, so those of the file, and how many there are, do
            not matter.

    Raises:
        SettingsError: with the file, the culprit, and what to do.
    """
    with _named(path):
        document = read_document(parse_yaml(read_source(path)))
        entry = document.find_agent(name)
        builder = _Builder(document, granted)
        builder.check_pipelines()
        tools, bounds = builder.build_agent(entry)
        memory = builder.find_memory(entry)
        model = None if has_model else builder.require_one_model()
        return AgentDescription(
            name=entry.name,
            tools=tools,
            protocol=entry.protocol,
            bounds=bounds,
            model=model.model if model else "",
            api_key=model.api_key.reveal(granted.keys) if model and model.api_key else "",
            memory=memory,
        )


def build_described_agent_tool(agent: AgentDescription) -> Tool:
    """The agent as a tool of another one, whose model it asks.

    Raises:
        SettingsError: it has a memory, or no tool can have its name.
    """
    if agent.memory is not None:
        raise _has_memory(agent.name)
    uses = "; ".join(f"{tool.name} ({tool.description})" for tool in agent.tools)
    try:
        return build_agent_tool(
            agent.name,
            f"Ask the agent {agent.name}, which answers with the help of: {uses}",
            instruction=fill("agent"),
            tools=agent.tools,
            bounds=agent.bounds,
            protocol=agent.protocol,
        )
    except ValueError as error:
        raise fault(f"agent {shown(agent.name)}: {error}") from None


def _has_memory(name: str, where: str = "") -> SettingsError:
    return fault(
        f"{where}agent {shown(name)} has a memory, and as a tool each of its questions stands by "
        "itself",
        "take its memory away",
    )


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except SettingsError as error:
        raise SettingsError(
            f"{shown(path.name)[1:-1]}: {error.what}", fix=error.fix, guide=error.guide
        ) from None


class _Builder:
    """Builds the tools of agents, those of each agent once, however often it is named."""

    def __init__(self, document: Document, granted: Granted) -> None:
        self._document = document
        self._keys = granted.keys
        self._proxies = read_proxies(granted.variables)
        self._kinds = read_kinds(document.components, granted.variables, hosts=granted.hosts)
        self._agents: dict[str, tuple[tuple[Tool, ...], AgentBounds]] = {}
        self._underway: list[str] = []
        self._models: dict[str, PromptModel] = {}  # by the agent or node that asks it

    def check_pipelines(self) -> None:
        """Look at the pipelines that nobody uses, too."""
        for name in self._document.pipelines:
            check_flow(self._stages(name))

    def require_one_model(self) -> PromptModel | None:
        """The model that all ask, None when the settings name it.

        Raises:
            SettingsError: they ask different ones.
        """
        asked = list(self._models.items())
        for other, model in asked[1:]:
            if model != asked[0][1]:
                what = (
                    f"{shown(asked[0][0])} asks {shown(asked[0][1].model)}, {shown(other)} "
                    f"asks {shown(model.model)}"
                )
                why = "" if model.model != asked[0][1].model else " with another key"
                raise fault(
                    f"{what}{why}; a run asks one model",
                    "name the same PromptModel in both, or hand in a model",
                )
        return asked[0][1] if asked else None

    def build_agent(self, entry: AgentEntry) -> tuple[tuple[Tool, ...], AgentBounds]:
        if entry.name in self._underway:
            circle = " → ".join([*self._underway[self._underway.index(entry.name) :], entry.name])
            raise fault(
                f"agents use each other in a circle: {circle}", "take one of these tools away"
            )
        if entry.name not in self._agents:
            self._underway.append(entry.name)
            node = self._kinds.get(entry.prompt_node)
            if not isinstance(node, PromptNode):
                raise fault(
                    f"agent {shown(entry.name)}: prompt_node {shown(entry.prompt_node)} is "
                    "no PromptNode of the file"
                )
            self._note_model(node)
            tools = tuple(self._build_tool(tool, entry) for tool in entry.tools)
            self._agents[entry.name] = (tools, replace(entry.bounds, stop_words=node.stop_words))
            self._underway.pop()
        return self._agents[entry.name]

    def find_memory(self, entry: AgentEntry) -> ConversationMemory | None:
        where = f"agent {shown(entry.name)}, memory"
        match entry.memory:
            case None:
                return None
            case str() as name:
                found = self._kinds.get(name)
            case component:
                found = read_memory(component, where)
        if not isinstance(found, MemoryComponent):
            raise fault(
                f"{where}: {shown(entry.memory)} is no memory of the file",
                "name a component of the type ConversationMemory, or write {type: …, params: {…}}",
            )
        if found.asks:
            node = self._kinds.get(found.asks)
            if not isinstance(node, PromptNode):
                raise fault(
                    f"{where}: prompt_node {shown(found.asks)} is no PromptNode of the file"
                )
            self._note_model(node)
        return found.memory

    def _build_tool(self, entry: ToolEntry, agent: AgentEntry) -> Tool:
        where = f"agent {shown(agent.name)}, tool {shown(entry.name)}"
        try:
            tool = self._open_target(entry, where)
            return replace(tool, reflect=entry.reflect) if entry.reflect else tool
        except ValueError as error:
            raise fault(f"{where}: {error}") from None

    def _open_target(self, entry: ToolEntry, where: str) -> Tool:
        name, description = entry.name, entry.description
        if entry.target in self._document.pipelines:
            return self._build_pipeline(entry, self._stages(entry.target))
        if entry.target in self._document.agents:
            inner = self._document.agents[entry.target]
            if inner.memory is not None:
                raise _has_memory(inner.name, f"{where}: ")
            tools, bounds = self.build_agent(inner)
            return build_agent_tool(
                name,
                description,
                instruction=fill("agent"),
                tools=tools,
                bounds=bounds,
                protocol=inner.protocol,
            )
        match self._kinds.get(entry.target):
            case PromptNode() as node:
                stages = [Stage(name=entry.target, takes=(ROOT,), work=node)]
                check_flow(stages)
                return self._build_pipeline(entry, stages)
            case SerpAPIComponent() as search:
                return self._build_search(search, name, description)
            case PythonRuntime():
                return build_python(name=name, description=description)
            case None:
                raise fault(
                    (
                        f"{where}: there is no component, pipeline or agent "
                        f"{shown(entry.target)} in the file"
                    ),
                    "add it, or mend the name",
                )
        raise fault(
            f"{where}: {shown(entry.target)} cannot be run",
            "name a PromptNode, a search, a PythonRuntime, a pipeline or an agent",
        )

    def _build_pipeline(self, entry: ToolEntry, stages: Sequence[Stage]) -> Tool:
        tools: dict[str, Tool] = {}
        for stage in stages:
            match stage.work:
                case PromptNode():
                    self._note_model(stage.work)
                case SerpAPIComponent():
                    tools[stage.name] = self._build_search(stage.work, "search", "")
                case PythonRuntime():
                    tools[stage.name] = build_python(name="python", description="")
        return build_pipeline_tool(entry.name, entry.description, stages, tools)

    def _stages(self, pipeline: str) -> list[Stage]:
        stages = []
        for node in self._document.pipelines[pipeline].nodes:
            kind = self._kinds[node.name]
            if not isinstance(kind, Work):
                what = f"pipeline {shown(pipeline)}: the node {shown(node.name)} cannot be run"
                raise fault(
                    what, "a pipeline is made of PromptNode, SerpAPIComponent and PythonRuntime"
                )
            stages.append(Stage(name=node.name, takes=node.inputs, work=kind))
        return stages

    def _build_search(self, search: SerpAPIComponent, name: str, description: str) -> Tool:
        key = search.api_key.reveal(self._keys)
        return build_serpapi_search(
            key,
            name=name,
            description=description,
            top_k=search.top_k,
            base_url=search.base_url,
            proxies=self._proxies,
        )

    def _note_model(self, node: PromptNode) -> None:
        if node.model is not None:
            self._models[node.name] = node.model
