"""Reads a file of components as YAML, with its line numbers, and checks it field by field."""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from babyagi.errors import SettingsError
from babyagi.react.steps import AgentBounds, AtLimit
from babyagi.text import clean, nearest, one_line, shorten

if TYPE_CHECKING:
    import yaml


MAX_FILE_BYTES = 256 * 2**10

_TAG = "tag:yaml.org,2002:"
_TEXTS = ("str", "timestamp", "value")
_NUMBERS = ("bool", "float", "int", "null")


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
        SettingsError: the text is not YAML, has several documents or an alias, or contains other
            than plain values.
    """
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        make_number = yaml.constructor.SafeConstructor().construct_object
        return None if root is None else _read_node(root, set(), make_number)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise fault(f"{where}not YAML: {shown(problem or 'unreadable')[1:-1]}") from None
    except RecursionError:
        raise fault("the file has values that are nested too deep") from None


def _read_node(node: yaml.Node, seen: set[int], make_number: Callable[[yaml.Node], Any]) -> Any:
    """Return the value of a node. `seen` has the nodes that were read: an alias stands for a node
    that was read before, so a small file cannot stand for a large one."""
    where = f"line {node.start_mark.line + 1}"
    if id(node) in seen:
        what = f"{where}: an alias stands for this value, and a file of agents may have no alias"
        raise fault(what, "write the value out in each place")
    seen.add(id(node))
    match node.id, node.tag.removeprefix(_TAG):
        case "mapping", "map":
            _check_keys([key for key, _ in node.value])
            return {key.value: _read_node(one, seen, make_number) for key, one in node.value}
        case "sequence", "seq":
            return [_read_node(item, seen, make_number) for item in node.value]
        case "scalar", kind if kind in _TEXTS:
            return node.value
        case "scalar", kind if kind in _NUMBERS:
            try:
                return make_number(node)
            except (ValueError, OverflowError):
                raise fault(f"{where}: not a valid number") from None
    raise fault(
        f"{where}: the tag {shown(node.tag.replace(_TAG, '!!'))} makes an object, "
        "and a file of agents may contain only plain values"
    )


def _check_keys(keys: Sequence[yaml.Node]) -> None:
    for at, key in enumerate(keys):
        where = f"line {key.start_mark.line + 1}"
        if key.id != "scalar" or key.tag.removeprefix(_TAG) not in _TEXTS:
            raise fault(f"{where}: a key must be a word")
        if any(key.value == other.value for other in keys[:at]):
            raise fault(f"{where}: the key {shown(key.value)} occurs twice")


# -- one mapping of the file, read by pydantic
# --------------------------------------------------------------------------------------------------

_SAYS = {
    "string_type": "must be text; put it in quotes",
    "string_pattern_mismatch": "is empty",
    "string_too_short": "is empty",
    "tuple_type": "must be a list",
    "too_short": "must be a list with at least one entry",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
}
"""What is said of a value and what to do, by pydantic's type of the error."""


class Entry(BaseModel):
    """A mapping of a file. A key without a value counts as missing; an unknown one is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in given:
            if key not in known:
                near = nearest(str(key), known)
                fix = f"did you mean {near}?" if near else f"use one of: {', '.join(known)}"
                raise ValueError(f"has the unknown key {shown(key)}; {fix}")
        return {key: value for key, value in given.items() if value is not None}


def need(is_good: Callable[[str], object], says: str) -> AfterValidator:
    """Return the check of a text that must be as `says` says."""

    def check(text: str) -> str:
        if not is_good(text):
            raise ValueError(f"must be {says}, got {shown(text)}")
        return text

    return AfterValidator(check)


def _refuse_switch(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


Name = Annotated[
    str, need(re.compile(r"[\w.-]{1,64}").fullmatch, "1 to 64 letters, digits, _, . or -")
]
Text = Annotated[str, Field(pattern=r"\S")]
Texts = Annotated[
    tuple[Text, ...], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)
]
Number = BeforeValidator(_refuse_switch)
Whole = Annotated[int, Number, Field(ge=0, le=1_000_000)]
EntryT = TypeVar("EntryT", bound=Entry)


def read_entry(kind: type[EntryT], given: object, where: str) -> EntryT:
    """Return a mapping of the file as an entry of this kind. `where` names it in errors; '' for
    the whole file.

    Raises:
        SettingsError: a key is missing or unknown, or a value has a wrong type. The text names the
            key, but not its value, because that may be secret.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, key = _find_place(first["loc"], given, where)
    if first["type"] == "missing":
        raise fault(f"{place} has no {key}", f"add {key}")
    said = first["msg"].removeprefix("Value error, ").replace("Input should", "must")
    said = said.replace("Value should", "must")
    what, _, fix = _SAYS.get(first["type"], said).partition("; ")
    got = f", got {_kind_of_value(first['input'])}" if first["type"].endswith("_type") else ""
    raise fault(f"{place}{f': {key}' if key else ''} {what}{got}", fix)


def _find_place(loc: Sequence[int | str], given: Any, where: str) -> tuple[str, str]:
    """Return how errors name the mapping at a place of the file, such as `agent 'one', tool 'Try'`,
    and the key in it; '' for the mapping itself."""
    places, key = [where] if where else [], ""
    for step in loc:
        if isinstance(step, str):
            given, key = given.get(step), step
            continue
        given = given[step] if isinstance(given, list) else None
        name = given.get("name") if isinstance(given, dict) else None
        called = shown(name) if isinstance(name, str) else str(step + 1)
        places.append(f"{key.removesuffix('s')} {called}")
        key = ""
    is_params = key == "params" and isinstance(given, dict)
    return ", ".join(places) or "the file", "" if is_params else key


def _kind_of_value(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return kinds.get(type(value), "a mapping")


# -- the entries of a file: components, pipelines in running order, agents; checked as far as the
# file alone allows
# --------------------------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

ROOT = "Query"


class Component(Entry):
    """A component of a file. `params` may contain a key, so its repr does not show them."""

    name: Name
    type: Text
    params: dict[str, Any] = Field({}, repr=False)


class Node(Entry):
    """A component as a node of a pipeline. `inputs` are names of nodes, or the root `Query`."""

    name: Name
    inputs: Annotated[Texts, Field(min_length=1)]


class PipelineEntry(Entry):
    """A pipeline with its nodes, as they stand in the file."""

    name: Name
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]


class ToolEntry(Entry):
    """A tool of an agent; `target` names a component, a pipeline or another agent, and
    `output_variable` what of a pipeline's variables is the tool's output; '' for the last one."""

    name: Name
    target: Name = Field(alias="pipeline_or_node")
    description: Annotated[Text, AfterValidator(lambda text: " ".join(text.split()))]
    reflect: Annotated[int, Number, Field(ge=0, le=5)] = 0
    output_variable: str = ""


class MemoryEntry(Entry):
    """The memory of an agent: the `name` of a component, or one that the agent describes."""

    name: str = ""
    type: str = ""
    params: dict[str, Any] = Field({}, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _read_name(cls, given: object) -> object:
        return {"name": given} if isinstance(given, str) else given


class AgentParams(Entry):
    """What a file says about an agent. The bounds that it does not name are those of
    `AgentBounds`."""

    prompt_node: Name
    tools: Annotated[tuple[ToolEntry, ...], Field(min_length=1)] | None = None
    protocol: Literal["auto", "native", "json", "text"] = "auto"
    memory: MemoryEntry | None = None
    max_steps: Whole = 0
    max_errors: Whole = 0
    max_parallel: Whole = 0
    max_repeats: Whole = 0
    max_output_tokens: Whole = 0
    max_time_s: Annotated[float, Number, Field(ge=0, le=1_000_000)] = 0.0
    at_limit: AtLimit = AtLimit.GENERATE

    @property
    def bounds(self) -> AgentBounds:
        others = {"prompt_node", "tools", "protocol", "memory"}
        return AgentBounds(**self.model_dump(exclude=others, exclude_unset=True))


class AgentEntry(Entry):
    """An agent of a file."""

    name: Name
    params: AgentParams


class _File(Entry):
    version: Any
    components: Annotated[tuple[Component, ...], Field(min_length=1)]
    pipelines: Annotated[tuple[PipelineEntry, ...], Field(min_length=1)] | None = None
    agents: Annotated[tuple[AgentEntry, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The content of a file, by name. No two entries of any kind have the same name. The nodes of a
    pipeline are in running order: each comes after its inputs, and only the output of the last one
    is not the input of another."""

    components: Mapping[str, Component]
    pipelines: Mapping[str, Sequence[Node]]
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
    if not isinstance(given, dict):
        fix = "begin with the keys version, components, pipelines and agents"
        raise fault("the file is not a mapping", fix)
    file = read_entry(_File, given, "")
    if file.version != "ignore":
        logger.warning(
            "the version %s of a file of agents is not checked; write version: ignore",
            shown(file.version),
        )
    components, pipelines, agents = file.components, file.pipelines or (), file.agents
    entries: list[Component | PipelineEntry | AgentEntry] = [*components, *pipelines, *agents]
    _require_names("component, pipeline or agent", [entry.name for entry in entries])
    for agent in agents:
        names = [tool.name for tool in agent.params.tools or ()]
        _require_names(f"tool of agent {shown(agent.name)}", names)
    document = Document(
        components={entry.name: entry for entry in components},
        pipelines={entry.name: _order_nodes(entry) for entry in pipelines},
        agents={entry.name: entry for entry in agents},
    )
    for name, nodes in document.pipelines.items():
        for node in nodes:
            if node.name not in document.components:
                what = f"pipeline {shown(name)}: the node {shown(node.name)} is not a"
                raise fault(f"{what} component of the file", "add it to components")
    return document


def _require_names(what: str, names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise fault(
                f"two entries have the name {shown(name)}, each a {what}", "rename one of them"
            )


# -- pipelines
# --------------------------------------------------------------------------------------------------


def _order_nodes(pipeline: PipelineEntry) -> list[Node]:
    """Return the nodes in the order of the file, except that each comes after its inputs.

    Raises:
        SettingsError: two nodes have one name, an input is neither a node nor `Query`, the inputs
            form a cycle, or there are several last nodes.
    """
    where, nodes = f"pipeline {shown(pipeline.name)}", pipeline.nodes
    _require_names(f"node in {where}", [ROOT, *(node.name for node in nodes)])
    left, ordered = {node.name: node for node in nodes}, list[Node]()
    for node in nodes:
        if unknown := set(node.inputs) - {ROOT, *left}:
            raise fault(
                f"{where}: {shown(node.name)} has the unknown input {shown(min(unknown))}",
                f"name {ROOT} or a node of the pipeline",
            )
    try:
        TopologicalSorter({node.name: {*node.inputs} for node in nodes}).prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise fault(f"{where} contains a cycle: {circle}", "remove one of these inputs") from None
    while left:
        ready = next(node for node in left.values() if not set(node.inputs) & set(left))
        ordered.append(left.pop(ready.name))
    taken = {name for node in nodes for name in node.inputs}
    ends = [node.name for node in ordered if node.name not in taken]
    if len(ends) > 1:
        raise fault(
            f"{where} has several last nodes: {', '.join(ends)}",
            "add one last node with all of them as inputs",
        )
    return ordered
