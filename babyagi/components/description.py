"""Builds agents and pipelines from a file of components."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from babyagi.components.document import (
    ROOT,
    AgentEntry,
    Document,
    Node,
    PipelineEntry,
    ToolEntry,
    fault,
    parse_yaml,
    read_entry,
    read_source,
    shown,
)
from babyagi.components.kinds import (
    FOUND,
    Choice,
    Granted,
    NoMemory,
    PromptModel,
    PromptNode,
    PromptTemplate,
    PythonRuntime,
    Runnable,
    Search,
    read_kind,
    read_kinds,
    reveal_key,
)
from babyagi.errors import SettingsError, ToolError
from babyagi.llm.prompt import Message, Prompt, Speaker, fence
from babyagi.memory.kinds import ConversationMemory
from babyagi.react.asking import ask, read_text
from babyagi.react.executor import build_agent_tool
from babyagi.react.protocols.base import AgentProtocol, fill
from babyagi.react.protocols.choice import AUTO
from babyagi.react.protocols.text import text_protocol
from babyagi.react.steps import AgentBounds
from babyagi.retrieval.rank import rank, top_p
from babyagi.tasks import Effect, Passage, Role, find_sources
from babyagi.text import clean, disarm
from babyagi.tools.base import Calls, Tool, run_composed, takes_text
from babyagi.tools.search import (
    number,
    split_numbered,
)

QUERY = "query"
TRANSCRIPT = "transcript"
MEMORY = "memory"
_OF_AN_AGENT = (QUERY, "tool_names", "tool_names_with_descriptions", MEMORY, TRANSCRIPT)
"""The placeholders that the template of an agent may have. The placeholder for the memory is
replaced by nothing, because the memory is inserted before the question."""
_EFFECTS = (Effect.READ, Effect.IDEMPOTENT, Effect.ONCE)

logger = logging.getLogger(__name__)

Work = PromptNode | PythonRuntime | Choice | Search
"""The kinds of component that can be a node of a pipeline."""


Stages = Mapping[Node, Work]
"""The nodes of a pipeline in running order, each with the component that it runs."""


def build_pipeline_tool(
    name: str, description: str, stages: Stages, tools: Mapping[str, Tool], gives: str = ""
) -> Tool:
    """Return a pipeline as a tool. It takes one text, and returns the output of the last node, or
    the variable `gives`.

    Args:
        stages: checked by `check_flow`.
        tools: by the node's name, the tool of each node that is not a prompt; it takes one text.

    Raises:
        ValueError: the name is invalid for a tool.
    """

    async def compose(arguments: Mapping[str, Any], calls: Calls) -> Passage:
        query = Passage(text=arguments[QUERY], origin="model")
        by_variable, by_node = {QUERY: query}, {ROOT: query}
        for n, (node, work) in enumerate(stages.items(), start=1):
            given = by_node[node.inputs[0]]
            if isinstance(work, PromptNode):
                passage = await _ask(work, f"node/{n}/model", given, by_variable, calls)
            elif isinstance(work, Choice):
                passage = _choose(work, query.text, given)
            else:
                passage = await _call(tools[node.name], f"node/{n}/tool", given, calls)
            by_variable[work.output_variable] = by_node[node.name] = passage
        passage = by_variable[gives or work.output_variable]
        return Passage(
            text=passage.text, origin=f"tool:{name}", sources=find_sources(passage.origins)
        )

    return Tool(
        name=name,
        description=description,
        parameters=takes_text(QUERY, "All that is asked, in words."),
        effect=max((Effect.READ, *(tool.effect for tool in tools.values())), key=_EFFECTS.index),
        run=run_composed,
        compose=compose,
    )


def check_flow(stages: Stages) -> None:
    """Check that every node gets the inputs that it needs.

    Raises:
        SettingsError: a template is only for agents, or needs a variable that no earlier node
            provides; or a node without a template has several inputs.
    """
    there = {QUERY}
    for node, work in stages.items():
        where = f"node {shown(node.name)}"
        template = work.template if isinstance(work, PromptNode) else None
        if template is not None and not template.text:
            raise fault(
                f"{where}: the template {shown(template.name)} is for agents",
                "use it in the prompt_node of an agent, or choose another template",
            )
        wanted = (FOUND,) if isinstance(work, Choice) else ()
        if missing := set(template.variables if template else wanted) - there:
            raise fault(
                f"{where} needs {shown(min(missing))}, which no earlier node provides",
                f"use one of these variables: {', '.join(sorted(there))}",
            )
        if template is None and len(node.inputs) > 1:
            raise fault(
                f"{where} has {len(node.inputs)} inputs and no template to join them",
                "give it one input, or put a PromptNode before it that joins them",
            )
        there.add(work.output_variable)


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


def _choose(choice: Choice, query: str, given: Passage) -> Passage:
    """Return the documents that the choice keeps, the most relevant first. If none is relevant,
    return the first ones."""
    texts = split_numbered(given.text)
    ranked = rank(query, texts)[: choice.top_k]
    kept = [texts[one.index] for one in top_p(ranked, choice.top_p, min_top_k=choice.min_top_k)]
    return replace(given, text=number(kept or texts[: choice.top_k]))


async def _call(tool: Tool, path: str, given: Passage, calls: Calls) -> Passage:
    (parameter,) = tool.parameters["required"]
    observation = await calls.call_tool(path, tool, {parameter: given.text})
    if observation.is_error:
        raise ToolError(observation.passage.text)
    return observation.passage


def _render(node: PromptNode, given: Passage, by_variable: Mapping[str, Passage]) -> Prompt:
    """Return the prompt of a node. The text of a model is inserted as it is; the output of a tool
    is inserted between lines that mark it as data."""
    if node.template is None:
        text, used = _show("input", given), [given]
    else:
        used = [by_variable[variable] for variable in node.template.variables]
        names = node.template.variables
        text = node.template.fill({name: _show(name, by_variable[name]) for name in names})
    origins = dict.fromkeys(("person", *(one for passage in used for one in passage.origins)))
    system = Message(speaker=Speaker.SYSTEM, text=fill("node"), origins=("program",))
    asked = Message(speaker=Speaker.USER, text=text, origins=tuple(origins))
    return Prompt(messages=(system, asked), stop=node.stop_words)


def _show(label: str, passage: Passage) -> str:
    is_data = passage.origin.startswith(("tool:", "private:"))
    return f"\n{fence(label, passage)}\n" if is_data else disarm(clean(passage.text))


# -- what a file says about one agent, with its tools built
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDescription:
    """An agent as a file describes it. `model` or `api_key` is empty if the file leaves it to the
    settings."""

    name: str
    tools: tuple[Tool, ...]
    protocol: AgentProtocol | str
    bounds: AgentBounds
    instruction: str
    model: str = ""
    api_key: str = field(default="", repr=False)
    memory: ConversationMemory | None = None

    def as_tool(self, name: str, description: str) -> Tool:
        """Return the agent as a tool of another agent, whose model it uses.

        Raises:
            ValueError: the name is invalid for a tool.
            SettingsError: the agent has a memory.
        """
        if self.memory is not None:
            raise fault(
                f"agent {shown(self.name)} has a memory, but an agent that is a tool must answer "
                "each question without the earlier ones",
                "remove its memory",
            )
        return build_agent_tool(
            name,
            description,
            instruction=self.instruction,
            tools=self.tools,
            bounds=self.bounds,
            protocol=self.protocol,
        )


def load_description(
    path: Path, name: str, *, granted: Granted, has_model: bool
) -> AgentDescription:
    """Return the description of the agent with this name; of the only agent if no name is given.

    Args:
        has_model: whether the model comes from elsewhere. If so, the models in the file are not
            checked.

    Raises:
        SettingsError: the file is invalid. The text names the file, the faulty entry and the
            remedy.
    """
    with _opening(path, granted) as builder:
        agent = builder.build_agent(builder.document.find_agent(name))
        model = None if has_model else builder.require_one_model()
        if model is None:
            return agent
        return replace(agent, model=model.model, api_key=reveal_key(model.api_key, granted.keys))


def load_tool(path: Path, target: str, name: str, description: str, *, granted: Granted) -> Tool:
    """Return a component, a pipeline or an agent of a file as a tool with this name, for an agent
    whose model it uses. Raises `SettingsError` if the file is invalid or has no such thing."""
    entry = ToolEntry(name=name, pipeline_or_node=target, description=description)
    with _opening(path, granted) as builder:
        return builder.build_tool(entry, f"tool {shown(name)}")


def build_described_agent_tool(agent: AgentDescription) -> Tool:
    """Return the agent as a tool of another agent, whose model it uses.

    Raises:
        SettingsError: the agent has a memory, or its name is invalid for a tool.
    """
    uses = "; ".join(f"{tool.name} ({tool.description})" for tool in agent.tools)
    try:
        return agent.as_tool(
            agent.name, f"Ask the agent {agent.name}, which answers with the help of: {uses}"
        )
    except ValueError as error:
        raise fault(f"agent {shown(agent.name)}: {error}") from None


@contextmanager
def _opening(path: Path, granted: Granted) -> Iterator[_Builder]:
    """Yield the builder of the file's agents. Errors name the file."""
    try:
        given = parse_yaml(read_source(path))
        if not isinstance(given, dict):
            fix = "begin with the keys version, components, pipelines and agents"
            raise fault("the file is not a mapping", fix)
        yield _Builder(read_entry(Document, given, ""), granted)
    except SettingsError as error:
        raise SettingsError(
            f"{shown(path.name)[1:-1]}: {error.what}", fix=error.fix, guide=error.guide
        ) from None


class _Builder:
    """Builds the agents of a file and their tools. Each agent is built once, even if several
    entries name it.

    Raises:
        SettingsError: a component or a pipeline of the file is invalid.
    """

    def __init__(self, document: Document, granted: Granted) -> None:
        self.document = document
        self._granted = granted
        self._kinds = read_kinds(document.components, granted.variables, hosts=granted.hosts)
        # all are checked, including those that no agent uses
        self._pipelines = {entry.name: self._read_stages(entry) for entry in document.pipelines}
        self._agents: dict[str, AgentDescription] = {}
        self._underway: list[str] = []
        self._models: dict[PromptModel, None] = {}  # of the agents and nodes that are used

    def require_one_model(self) -> PromptModel | None:
        """Return the model that all agents use; None if the settings choose it.

        Raises:
            SettingsError: the agents use different models.
        """
        if len(self._models) > 1:
            named = ", ".join(shown(model.model) for model in self._models)
            raise fault(
                f"the models or their keys differ: {named}, but a run uses only one model",
                "name the same PromptModel everywhere, or choose the model outside of the file",
            )
        return next(iter(self._models), None)

    def build_agent(self, entry: AgentEntry) -> AgentDescription:
        """Return the agent with its tools, but without its model."""
        if entry.name in self._underway:
            circle = " → ".join([*self._underway[self._underway.index(entry.name) :], entry.name])
            raise fault(f"agents use each other in a cycle: {circle}", "remove one of these tools")
        if entry.name not in self._agents:
            self._underway.append(entry.name)
            node = self._need_node(entry.params.prompt_node, f"agent {shown(entry.name)}")
            self._note_model(node)
            where = f"agent {shown(entry.name)}, tool "
            tools = tuple(
                self.build_tool(tool, where + shown(tool.name)) for tool in entry.params.tools
            )
            instruction, protocol = _read_agent_template(node.template, entry, tools)
            self._agents[entry.name] = AgentDescription(
                name=entry.name,
                tools=tools,
                protocol=protocol,
                bounds=replace(entry.params.bounds, stop_words=node.stop_words),
                instruction=instruction,
                memory=self._find_memory(entry),
            )
            self._underway.pop()
        return self._agents[entry.name]

    def _find_memory(self, entry: AgentEntry) -> ConversationMemory | None:
        where, given = f"agent {shown(entry.name)}, memory", entry.params.memory
        if given is None:
            return None
        made = None if given.name else read_kind("memory", given.type, given.params, {})
        found = made or self._kinds.get(given.name)
        if not isinstance(found, NoMemory):
            raise fault(
                f"{where}: {shown(given.name)} is not a memory of the file",
                "name a component of the type ConversationMemory, or write {type: …, params: {…}}",
            )
        if found.prompt_node:
            self._note_model(self._need_node(found.prompt_node, where))
        return found.make()

    def _need_node(self, name: str, where: str) -> PromptNode:
        node = self._kinds.get(name)
        if not isinstance(node, PromptNode):
            raise fault(f"{where}: prompt_node {shown(name)} is not a PromptNode of the file")
        return node

    def build_tool(self, entry: ToolEntry, where: str) -> Tool:
        """Return the tool that an entry describes. `where` names the entry in errors."""
        try:
            tool = self._open_target(entry, where)
            return replace(tool, reflect=entry.reflect) if entry.reflect else tool
        except ValueError as error:
            raise fault(f"{where}: {error}") from None

    def _open_target(self, entry: ToolEntry, where: str) -> Tool:
        name, description = entry.name, entry.description
        if entry.target in self._pipelines:
            return self._build_pipeline(entry, self._pipelines[entry.target])
        for agent in self.document.agents:
            if agent.name == entry.target:
                return self.build_agent(agent).as_tool(name, description)
        kind = self._kinds.get(entry.target)
        if isinstance(kind, PromptNode):
            stages: Stages = {Node(name=entry.target, inputs=(ROOT,)): kind}
            check_flow(stages)
            return self._build_pipeline(entry, stages)
        if isinstance(kind, Runnable):
            return kind.build(name, description, self._granted)
        raise fault(
            f"{where}: no component, pipeline or agent {shown(entry.target)} can be run",
            "name a PromptNode, a search, a PythonRuntime, an IssueLink, a pipeline or an agent",
        )

    def _build_pipeline(self, entry: ToolEntry, stages: Stages) -> Tool:
        for work in stages.values():
            if isinstance(work, PromptNode):
                self._note_model(work)
        tools = {
            node.name: work.build(work.called, "", self._granted)
            for node, work in stages.items()
            if isinstance(work, Runnable)
        }
        gives = entry.output_variable
        if gives and gives not in (there := [work.output_variable for work in stages.values()]):
            raise fault(
                f"tool {shown(entry.name)}: no node gives the output_variable {shown(gives)}",
                f"use one of these variables: {', '.join(there)}",
            )
        return build_pipeline_tool(entry.name, entry.description, stages, tools, gives)

    def _read_stages(self, pipeline: PipelineEntry) -> Stages:
        stages = {}
        for node in pipeline.nodes:
            kind = self._kinds.get(node.name)
            if not isinstance(kind, Work):
                what = f"pipeline {shown(pipeline.name)}: the node {shown(node.name)} is not a"
                fix = "use only PromptNode, PythonRuntime, searches, Ranker and TopPSampler"
                raise fault(f"{what} component of the file that can be run in a pipeline", fix)
            stages[node] = kind
        check_flow(stages)
        return stages

    def _note_model(self, node: PromptNode) -> None:
        if node.model is not None:
            self._models[node.model] = None


def _read_agent_template(
    template: PromptTemplate | None, entry: AgentEntry, tools: Sequence[Tool]
) -> tuple[str, AgentProtocol | str]:
    """Return (instruction, protocol) of an agent whose prompt node has this template.

    A template without a placeholder for the question or the transcript is an instruction, for any
    protocol. Another template is the whole prompt of the text protocol, to which each step is
    appended.

    Raises:
        SettingsError: the template has placeholders that an agent does not fill, or it is a whole
            prompt and the agent has another protocol than text.
    """
    protocol = entry.params.protocol
    if template is None:
        return fill("agent"), protocol
    where = f"agent {shown(entry.name)}: the template {shown(template.name)}"
    if unknown := set(template.variables) - set(_OF_AN_AGENT):
        raise fault(
            f"{where} needs {shown(min(unknown))}, which an agent does not provide",
            f"use only these: {', '.join(_OF_AN_AGENT)}",
        )
    is_whole = not template.text or {QUERY, TRANSCRIPT} & set(template.variables)
    if is_whole and protocol not in (AUTO, "text"):
        raise fault(
            f"{where} is a whole prompt of the text protocol, but the agent has the protocol "
            f"{protocol}",
            "remove its placeholder for the question, or write: protocol: text",
        )
    if not template.text:
        return fill("agent"), "text"
    if not is_whole:
        return f"{fill('agent')}\n\n{_fill_for_agent(template, '', tools)}", protocol
    _, transcript, behind = _fill_for_agent(template, "", tools, transcript="\0").partition("\0")
    if not transcript:
        logger.warning("%s has no placeholder for the transcript; it is added at the end", where)
    if behind.strip():
        raise fault(
            f"{where} has text after the placeholder of the transcript",
            "put {transcript} at the end of the template: each request continues the one before",
        )
    return fill("agent"), text_protocol(
        write=lambda question, offered: _fill_for_agent(template, question, offered).rstrip()
    )


def _fill_for_agent(
    template: PromptTemplate, question: str, tools: Sequence[Tool], *, transcript: str = ""
) -> str:
    described = [f"{tool.name}: {tool.description}" for tool in tools]
    return template.fill(
        {
            QUERY: question,
            "tool_names": ", ".join(tool.name for tool in tools),
            "tool_names_with_descriptions": "\n".join(described),
            MEMORY: "",
            TRANSCRIPT: transcript,
        }
    )
