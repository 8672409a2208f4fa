"""Reads a file of components as YAML, with its line numbers, and checks it field by field."""

from __future__ import annotations

import logging
import math
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from babyagi.errors import SettingsError
from babyagi.react.protocols.choice import PROTOCOL_NAMES
from babyagi.react.steps import AgentBounds, AtLimit
from babyagi.text import clean, nearest, one_line, shorten

if TYPE_CHECKING:
    import yaml


MAX_FILE_BYTES = 256 * 2**10
MAX_VALUES = 10_000  # the values of an alias count each time that it is used
MAX_DEPTH = 20

_TAG = "tag:yaml.org,2002:"
_TEXTS = (f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value")
_NUMBERS = tuple(_TAG + kind for kind in ("bool", "float", "int", "null"))


def fault(what: str, fix: str = "") -> SettingsError:
    """Return the error for a fault in a file of agents. The texts must not contain a value from the
    file that may be secret."""
    return SettingsError(what, fix=fix or "correct the file", guide="tools")


def shown(text: object) -> str:
    """Return a text from the file as messages show it: quoted, on one line, shortened."""
    return repr(shorten(one_line(clean(str(text))), 60))


def read_source(path: Path) -> str:
    """Return the text of the file.

    Raises:
        SettingsError: the file does not exist, is not a regular file, is too long, or is not UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise fault("the path is not a file", "name a YAML file")
        with path.open("rb") as file:
            body = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "the path is invalid"
        raise fault(f"the file cannot be read: {why}", "name an existing YAML file") from None
    if len(body) > MAX_FILE_BYTES:
        raise fault(
            f"the file is longer than {MAX_FILE_BYTES:,} bytes",
            "describe fewer components, pipelines and agents in it",
        )
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(f"byte {error.start} is not UTF-8", "save the file as UTF-8 text") from None


def parse_yaml(text: str) -> Any:
    """Parse the YAML text.

    Raises:
        SettingsError: the text is not YAML, has several documents, is too large once its aliases
            are expanded, or contains other than plain values.
    """
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if root is None else _Reading(yaml).read(root, 1)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise fault(f"{where}not YAML: {shown(problem or 'unreadable')[1:-1]}") from None
    except RecursionError:
        raise fault(f"the file has values nested more than {MAX_DEPTH} deep") from None


class _Reading:
    """Converts YAML nodes to values, and counts the values. An alias is counted each time it is
    used."""

    def __init__(self, library: Any) -> None:
        self._yaml = library
        self._scalars = library.constructor.SafeConstructor()
        self._n_values = 0

    def read(self, node: yaml.Node, depth: int) -> Any:
        self._n_values += 1
        if self._n_values > MAX_VALUES:
            raise fault(f"the file has more than {MAX_VALUES:,} values, including expanded aliases")
        if depth > MAX_DEPTH:
            raise fault(
                f"{_line(node)}: values are nested more than {MAX_DEPTH} deep, or an anchor "
                "contains itself"
            )
        if isinstance(node, self._yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self._read_mapping(node, depth)
        if isinstance(node, self._yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.read(item, depth + 1) for item in node.value]
        return self._read_scalar(node)

    def _read_mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, self._yaml.ScalarNode) or key_node.tag not in _TEXTS:
                raise fault(
                    f"{_line(key_node)}: a key must be a word, got {_kind_of_node(key_node)}"
                )
            key = key_node.value
            if key in values:
                raise fault(f"{_line(key_node)}: the key {shown(key)} occurs twice")
            values[key] = self.read(value_node, depth + 1)
        return values

    def _read_scalar(self, node: yaml.Node) -> Any:
        if node.tag in _TEXTS:
            return node.value
        if node.tag in _NUMBERS:
            try:
                return self._scalars.construct_object(node)
            except (ValueError, OverflowError):
                raise fault(f"{_line(node)}: not a valid number") from None
        raise fault(
            f"{_line(node)}: the tag {shown(node.tag.replace(_TAG, '!!'))} makes an object, "
            "and a file of agents may contain only plain values"
        )


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def _kind_of_node(node: yaml.Node) -> str:
    if node.tag == f"{_TAG}merge":
        return "a merge (<<)"
    return f"a {node.id}" if node.id != "scalar" else shown(node.value)


# -- the values of one mapping, each with its type
# --------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[\w.-]{1,64}")


class Fields:
    """Reads the values of one mapping in the file, each with its type. A wrong type or an unknown
    key is a `SettingsError`, which names the key, but not its value, because that may be secret.

    Args:
        given: the mapping.
        where: how errors name the mapping.
        known: the allowed keys; None allows any.
    """

    def __init__(self, given: object, where: str, *, known: Sequence[str] | None) -> None:
        if not isinstance(given, dict):
            raise fault(f"{where} must be a mapping, got {_kind_of_value(given)}")
        for key in given:
            if known is not None and key not in known:
                near = nearest(key, known)
                raise fault(
                    f"{where} has the unknown key {shown(key)}",
                    f"did you mean {near}?" if near else f"use one of: {', '.join(known)}",
                )
        self._given: Mapping[str, Any] = {
            key: value for key, value in given.items() if value is not None
        }
        self.where = where

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._given)

    def has(self, key: str) -> bool:
        return key in self._given

    def raw(self, key: str) -> Any:
        """Return the unparsed value; None if the key is missing."""
        return self._given.get(key)

    def mapping(self, key: str) -> dict[str, Any]:
        """Return the mapping that is the value of the key, unparsed; empty if the key is
        missing."""
        value = self._given.get(key) or {}
        if not isinstance(value, dict):
            raise fault(f"{self.where}: {key} must be a mapping")
        return value

    def name(self, key: str) -> str:
        """Return the value of the key, which is a name of letters, digits, `_`, `.` and `-`."""
        text = self.text(key)
        if not _NAME.fullmatch(text):
            raise fault(
                f"{self.where}: {key} must be 1 to 64 letters, digits, _, . or -, got {shown(text)}"
            )
        return text

    def text(self, key: str, default: str | None = None) -> str:
        value = self._need(key) if default is None else self._given.get(key, default)
        if not isinstance(value, str):
            raise fault(
                f"{self.where}: {key} must be text, got {_kind_of_value(value)}", "put it in quotes"
            )
        if default is None and not value.strip():
            raise fault(f"{self.where}: {key} is empty")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the value of the key: a list of texts, or a single text; empty if the key is
        missing."""
        value = self._given.get(key, [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise fault(f"{self.where}: {key} must be a list of texts")
        return tuple(texts)

    def number(self, key: str, default: float, *, at_most: float, is_whole: bool = True) -> float:
        """Return the value of the key: a number from 0 to `at_most`. It may be written as text, as
        overrides from the environment are."""
        value = self._given.get(key, default)
        try:
            found = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            found = math.nan
        if not 0 <= found <= at_most or (is_whole and not found.is_integer()):
            raise fault(
                f"{self.where}: {key} must be a {'whole ' if is_whole else ''}number from 0 "
                f"to {at_most:g}"
            )
        return int(found) if is_whole else found

    def entries(self, key: str) -> list[Any]:
        """Return the value of the key: a list with at least one item. The items are unparsed."""
        value = self._need(key)
        if not isinstance(value, list) or not value:
            raise fault(f"{self.where}: {key} must be a list with at least one entry")
        return value

    def _need(self, key: str) -> Any:
        if key not in self._given:
            raise fault(f"{self.where} has no {key}", f"add {key}")
        return self._given[key]


def _kind_of_value(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "a mapping"


# -- the entries of a file: components, pipelines in running order, agents; checked as far as the
# file alone allows
# --------------------------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

ROOT = "Query"
_OTHER_ROOT = "File"  # the root of indexing pipelines, which agents cannot use
MAX_REFLECT = 5
MAX_BOUND = 1_000_000
NOT_THERE = {"mcp": "tools of MCP servers are not supported"}
_WHOLE_BOUNDS = tuple(
    f.name for f in fields(AgentBounds) if f.name.startswith("max_") and f.name != "max_time_s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component of a file. `params` may contain a key, so its repr does not show them."""

    name: str
    type: str
    params: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A component as a node of a pipeline. `inputs` are names of nodes, or the root `Query`."""

    name: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEntry:
    """A pipeline. Its `nodes` are in running order: each comes after its inputs. Only the last
    one's output is not the input of another node."""

    name: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEntry:
    """A tool of an agent; `target` names a component, a pipeline or another agent, and
    `output_variable` what of a pipeline's variables is the tool's output; '' for the last one."""

    name: str
    target: str
    description: str
    reflect: int = 0
    output_variable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEntry:
    """An agent. `memory` is the name of a component, or a component that is described within the
    agent."""

    name: str
    prompt_node: str
    tools: tuple[ToolEntry, ...]
    protocol: str
    bounds: AgentBounds
    memory: str | Component | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The content of a file, by name. No two entries of any kind have the same name."""

    components: Mapping[str, Component]
    pipelines: Mapping[str, PipelineEntry]
    agents: Mapping[str, AgentEntry]

    def find_agent(self, name: str) -> AgentEntry:
        """Return the agent with this name; the only agent if no name is given.

        Raises:
            SettingsError: there is no agent with this name, or there are several agents and no name
                was given.
        """
        names = ", ".join(self.agents)
        if not name and len(self.agents) > 1:
            raise fault(
                f"the file describes {len(self.agents)} agents", f"choose one by its name: {names}"
            )
        if name and name not in self.agents:
            raise fault(f"there is no agent {shown(name)}", f"use one of: {names}")
        return self.agents[name or next(iter(self.agents))]


def read_document(given: object) -> Document:
    """Check the content of a file, and return it.

    Raises:
        SettingsError: the content is invalid. The text names the faulty entry and the remedy.
    """
    known = ("version", "components", "pipelines", "agents")
    if not isinstance(given, dict):
        fix = "begin with the keys version, components, pipelines and agents"
        raise fault("the file is not a mapping", fix)
    top = Fields(given, "the file", known=known)
    _check_version(top)
    components = list(map(_read_component, top.entries("components"), count(1)))
    pipelines = list(
        map(_read_pipeline, top.entries("pipelines") if top.has("pipelines") else (), count(1))
    )
    agents = list(map(_read_agent, top.entries("agents"), count(1)))
    entries: list[Component | PipelineEntry | AgentEntry] = [*components, *pipelines, *agents]
    names = [entry.name for entry in entries]
    _require_names("component, pipeline or agent", names)
    document = Document(
        components=_by_name(components), pipelines=_by_name(pipelines), agents=_by_name(agents)
    )
    for pipeline in pipelines:
        for node in pipeline.nodes:
            if node.name not in document.components:
                what = f"pipeline {shown(pipeline.name)}: the node {shown(node.name)} is not a"
                raise fault(f"{what} component of the file", "add it to components")
    return document


def _check_version(top: Fields) -> None:
    version = top.raw("version")
    if version is None:
        raise fault("the file has no version", "add the line: version: ignore")
    if isinstance(version, list | dict):
        raise fault("version must be a word or a number", "write: version: ignore")
    if version != "ignore":
        logger.warning(
            "the version %s of a file of agents is not checked; write version: ignore",
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
            f"{where} has several last nodes: {', '.join(ends)}",
            "add one last node with all of them as inputs",
        )
    return PipelineEntry(name=name, nodes=tuple(ordered))


def _read_node(given: object, where: str) -> Node:
    fields_ = Fields(given, where, known=("name", "inputs"))
    if fields_.name("name") in (ROOT, _OTHER_ROOT):
        raise fault(
            f"{where}: {ROOT} and {_OTHER_ROOT} are roots, not nodes",
            "give the component another name",
        )
    return Node(name=fields_.name("name"), inputs=tuple(dict.fromkeys(fields_.texts("inputs"))))


def _check_roots(nodes: Sequence[Node], where: str) -> None:
    """Check that the only root is `Query`, and that every node has an input: the root or another
    node."""
    names = {node.name for node in nodes}
    roots = [root for root in (ROOT, _OTHER_ROOT) if any(root in node.inputs for node in nodes)]
    roots += [node.name for node in nodes if not node.inputs]
    if len(roots) > 1:
        raise fault(
            f"{where} has two roots: {roots[0]} and {roots[1]}",
            f"give every node only {ROOT} and other nodes as inputs",
        )
    for node in nodes:
        for name in node.inputs:
            if name not in (*names, ROOT, _OTHER_ROOT):
                raise fault(
                    f"{where}: {shown(node.name)} has the unknown input {shown(name)}",
                    f"name {ROOT} or a node of the pipeline",
                )
    if roots != [ROOT]:
        raise fault(
            f"{where} has no node with the input {ROOT}",
            f"give its first node the line: inputs: [{ROOT}]",
        )


def _order(nodes: Sequence[Node], where: str) -> list[Node]:
    """Return the nodes in the order of the file, except that each comes after its inputs."""
    left, ordered = {node.name: node for node in nodes}, list[Node]()
    while left:
        ready = next((node for node in left.values() if not set(node.inputs) & set(left)), None)
        if ready is None:
            circle = " → ".join(_find_circle(left))
            raise fault(f"{where} contains a cycle: {circle}", "remove one of these inputs")
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
    known = ("prompt_node", "tools", "protocol", "memory", "max_time_s", "at_limit", *_WHOLE_BOUNDS)
    params = Fields(entry.raw("params") or {}, where, known=(*known, *NOT_THERE))
    for key, why in NOT_THERE.items():
        if params.has(key):
            raise fault(f"{where}: {key} cannot be used: {why}", f"remove {key}")
    tools = [
        _read_tool(tool, f"{where}, tool {at}")
        for at, tool in enumerate(params.entries("tools") if params.has("tools") else (), start=1)
    ]
    _require_names(f"tool of {where}", [tool.name for tool in tools])
    protocol = params.text("protocol", "auto")
    if protocol not in PROTOCOL_NAMES:
        raise fault(
            f"{where}: there is no protocol {shown(protocol)}",
            f"use one of: {', '.join(PROTOCOL_NAMES)}",
        )
    return AgentEntry(
        name=name,
        prompt_node=params.name("prompt_node"),
        tools=tuple(tools),
        protocol=protocol,
        bounds=_read_bounds(params),
        memory=_read_memory(params, where),
    )


def _read_memory(params: Fields, where: str) -> str | Component | None:
    """Return the agent's memory: the name of a component, or the component that the agent itself
    describes. None if the agent has no memory."""
    given = params.raw("memory")
    if not isinstance(given, dict):
        return params.name("memory") if params.has("memory") else None
    entry = Fields(given, f"{where}, memory", known=("type", "params"))
    inner = entry.mapping("params")
    return Component(name=f"{params.where} memory", type=entry.text("type"), params=inner)


def _read_tool(given: object, where: str) -> ToolEntry:
    known = ("name", "pipeline_or_node", "description", "reflect", "output_variable")
    entry = Fields(given, where, known=known)
    return ToolEntry(
        name=entry.name("name"),
        target=entry.name("pipeline_or_node"),
        description=" ".join(entry.text("description").split()),
        reflect=int(entry.number("reflect", 0, at_most=MAX_REFLECT)),
        output_variable=entry.text("output_variable", ""),
    )


def _read_bounds(params: Fields) -> AgentBounds:
    default = AgentBounds()
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
    return AgentBounds(**whole, max_time_s=max_time_s, at_limit=AtLimit(at_limit))


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
                f"two entries have the name {shown(name)}, each a {what}", "rename one of them"
            )
        seen.add(name)
