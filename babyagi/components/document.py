"""The nouns of a file of agents, and the checks that need no more than the file: components,
pipelines in running order, agents."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from babyagi.components.fields import Fields
from babyagi.components.source import fault, shown
from babyagi.react.protocols.choice import PROTOCOL_NAMES
from babyagi.react.steps import AtLimit, Bounds

logger = logging.getLogger(__name__)

ROOT = "Query"
_OTHER_ROOT = "File"  # of indexing pipelines, which no agent has
MAX_REFLECT = 5
MAX_BOUND = 1_000_000
NOT_THERE = {
    "memory": "agents have no memory beyond their run",
    "mcp": "tools of MCP servers are not there",
}
_WHOLE_BOUNDS = tuple(
    f.name for f in fields(Bounds) if f.name.startswith("max_") and f.name != "max_time_s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A named part. `params` may hold a key, so no repr shows them."""

    name: str
    type: str
    params: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A component in a pipeline; `inputs` name nodes, or the root `Query`."""

    name: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEntry:
    """`nodes` stand in an order in which they can run; the last one is the only one that nobody
    takes from."""

    name: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """A tool of an agent; `target` names a component, a pipeline or another agent."""

    name: str
    target: str
    description: str
    reflect: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEntry:
    name: str
    prompt_node: str
    tools: tuple[ToolEntry, ...]
    protocol: str
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file says. No two of its names are the same."""

    components: Mapping[str, Component]
    pipelines: Mapping[str, PipelineEntry]
    agents: Mapping[str, AgentEntry]

    def find_agent(self, name: str) -> AgentEntry:
        """Return the agent of this name; without a name the only one.

        Raises:
            SettingsError: there is none of this name, or there are several and no name.
        """
        names = ", ".join(self.agents)
        if not name and len(self.agents) > 1:
            raise fault(
                f"it describes {len(self.agents)} agents", f"say which one by its name: {names}"
            )
        if name and name not in self.agents:
            raise fault(f"there is no agent {shown(name)}", f"name one of: {names}")
        return self.agents[name or next(iter(self.agents))]


def read_document(given: object) -> Document:
    """Return what the values of a file say.

    Raises:
        SettingsError: with the culprit, and what to do.
    """
    if not isinstance(given, dict):
        raise fault(
            "it is not a mapping", "begin with the keys version, components, pipelines and agents"
        )
    top = Fields(given, "the file", known=("version", "components", "pipelines", "agents"))
    _check_version(top)
    components = [
        _read_component(entry, n) for n, entry in enumerate(top.entries("components"), start=1)
    ]
    pipelines = (
        [_read_pipeline(entry, n) for n, entry in enumerate(top.entries("pipelines"), start=1)]
        if top.has("pipelines")
        else []
    )
    agents = [_read_agent(entry, n) for n, entry in enumerate(top.entries("agents"), start=1)]
    names = [
        *(entry.name for entry in components),
        *(entry.name for entry in pipelines),
        *(entry.name for entry in agents),
    ]
    _require_names("component, pipeline or agent", names)
    document = Document(
        components=_by_name(components), pipelines=_by_name(pipelines), agents=_by_name(agents)
    )
    for pipeline in pipelines:
        for node in pipeline.nodes:
            if node.name not in document.components:
                raise fault(
                    (
                        f"pipeline {shown(pipeline.name)}: the node {shown(node.name)} is no "
                        "component of the file"
                    ),
                    "add it to components",
                )
    return document


def _check_version(top: Fields) -> None:
    version = top.raw("version")
    if version is None:
        raise fault("the file has no version", "add the line: version: ignore")
    if isinstance(version, list | dict):
        raise fault("version must be a word or a number", "write: version: ignore")
    if version != "ignore":
        logger.warning(
            "a file of agents has the version %s; it is read as if that were: ignore",
            shown(version),
        )


def _read_component(given: object, n: int) -> Component:
    fields_ = Fields(given, f"component {n}", known=("name", "type", "params"))
    name = fields_.name("name")
    params = fields_.raw("params") or {}
    if not isinstance(params, dict):
        raise fault(f"component {shown(name)}: params must be a mapping")
    return Component(name=name, type=fields_.text("type"), params=params)


# -- pipelines
# --------------------------------------------------------------------------------------------------


def _read_pipeline(given: object, n: int) -> PipelineEntry:
    fields_ = Fields(given, f"pipeline {n}", known=("name", "nodes"))
    name = fields_.name("name")
    where = f"pipeline {shown(name)}"
    nodes = [
        _read_node(entry, f"{where}, node {at}")
        for at, entry in enumerate(fields_.entries("nodes"), start=1)
    ]
    _require_names(f"node in {where}", [node.name for node in nodes])
    _check_roots(nodes, where)
    ordered = _order(nodes, where)
    taken = {name for node in nodes for name in node.inputs}
    ends = [node.name for node in ordered if node.name not in taken]
    if len(ends) > 1:
        raise fault(
            f"{where} ends in several nodes: {', '.join(ends)}",
            "let one last node take from all of them",
        )
    return PipelineEntry(name=name, nodes=tuple(ordered))


def _read_node(given: object, where: str) -> Node:
    fields_ = Fields(given, where, known=("name", "inputs"))
    if fields_.name("name") in (ROOT, _OTHER_ROOT):
        raise fault(
            f"{where}: {ROOT} and {_OTHER_ROOT} are roots, no nodes",
            "give the component another name",
        )
    return Node(name=fields_.name("name"), inputs=tuple(dict.fromkeys(fields_.texts("inputs"))))


def _check_roots(nodes: Sequence[Node], where: str) -> None:
    """One root, `Query`: every node takes from it or from another node."""
    names = {node.name for node in nodes}
    roots = [root for root in (ROOT, _OTHER_ROOT) if any(root in node.inputs for node in nodes)]
    roots += [node.name for node in nodes if not node.inputs]
    if len(roots) > 1:
        raise fault(
            f"{where} has two roots: {roots[0]} and {roots[1]}",
            f"let every node take from {ROOT} or from another node",
        )
    for node in nodes:
        for name in node.inputs:
            if name not in (*names, ROOT, _OTHER_ROOT):
                raise fault(
                    f"{where}: {shown(node.name)} takes from the unknown node {shown(name)}",
                    f"name {ROOT} or a node of the pipeline",
                )
    if roots != [ROOT]:
        raise fault(f"{where} has no root", f"give its first node the line: inputs: [{ROOT}]")


def _order(nodes: Sequence[Node], where: str) -> list[Node]:
    """The nodes in the order of the file, as far as each stands behind those it takes from."""
    left, ordered = {node.name: node for node in nodes}, list[Node]()
    while left:
        ready = next((node for node in left.values() if not set(node.inputs) & set(left)), None)
        if ready is None:
            raise fault(
                f"{where} goes in a circle: {' → '.join(_find_circle(left))}",
                "take one of these inputs away",
            )
        ordered.append(left.pop(ready.name))
    return ordered


def _find_circle(left: Mapping[str, Node]) -> list[str]:
    path = [next(iter(left))]
    while path[-1] not in path[:-1]:
        path.append(next(name for name in left[path[-1]].inputs if name in left))
    return path[path.index(path[-1]) :][::-1]


# -- agents
# --------------------------------------------------------------------------------------------------


def _read_agent(given: object, n: int) -> AgentEntry:
    entry = Fields(given, f"agent {n}", known=("name", "params"))
    name = entry.name("name")
    where = f"agent {shown(name)}"
    known = ("prompt_node", "tools", "protocol", "max_time_s", "at_limit", *_WHOLE_BOUNDS)
    params = Fields(entry.raw("params") or {}, where, known=(*known, *NOT_THERE))
    for key, why in NOT_THERE.items():
        if params.has(key):
            raise fault(f"{where}: {key} cannot be used: {why}", f"take {key} away")
    tools = [
        _read_tool(tool, f"{where}, tool {at}")
        for at, tool in enumerate(params.entries("tools"), start=1)
    ]
    _require_names(f"tool of {where}", [tool.name for tool in tools])
    protocol = params.text("protocol", "auto")
    if protocol not in PROTOCOL_NAMES:
        raise fault(
            f"{where}: there is no protocol {shown(protocol)}",
            f"name one of: {', '.join(PROTOCOL_NAMES)}",
        )
    return AgentEntry(
        name=name,
        prompt_node=params.name("prompt_node"),
        tools=tuple(tools),
        protocol=protocol,
        bounds=_read_bounds(params),
    )


def _read_tool(given: object, where: str) -> ToolEntry:
    entry = Fields(given, where, known=("name", "pipeline_or_node", "description", "reflect"))
    return ToolEntry(
        name=entry.name("name"),
        target=entry.name("pipeline_or_node"),
        description=" ".join(entry.text("description").split()),
        reflect=int(entry.number("reflect", 0, at_most=MAX_REFLECT)),
    )


def _read_bounds(params: Fields) -> Bounds:
    default = Bounds()
    at_limit = params.text("at_limit", default.at_limit)
    if at_limit not in list(AtLimit):
        raise fault(
            f"{params.where}: at_limit must be one of {', '.join(AtLimit)}, got {shown(at_limit)}"
        )
    whole: dict[str, Any] = {
        name: int(params.number(name, getattr(default, name), at_most=MAX_BOUND))
        for name in _WHOLE_BOUNDS
    }
    max_time_s = params.number("max_time_s", default.max_time_s, at_most=MAX_BOUND, is_whole=False)
    return Bounds(**whole, max_time_s=max_time_s, at_limit=AtLimit(at_limit))


# -- names
# --------------------------------------------------------------------------------------------------

Named = TypeVar("Named", Component, PipelineEntry, AgentEntry)


def _by_name(entries: Sequence[Named]) -> dict[str, Named]:
    return {entry.name: entry for entry in entries}


def _require_names(what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise fault(
                f"two have the name {shown(name)}, each a {what}", "give one of them another name"
            )
        seen.add(name)
