"""Reads a file of components as YAML, and says which entry of it is wrong."""

from __future__ import annotations

import logging
import re
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

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
from babyagi.text import clean, one_line, shorten

if TYPE_CHECKING:
    import yaml

MAX_FILE_BYTES = 256 * 2**10


def fault(what: str, fix: str = "") -> SettingsError:
    """Return the error for a fault in a file of agents. The texts must not contain a value from the
    file that may be secret."""
    return SettingsError(what, fix=fix or "correct the file", guide="tools")


def shown(text: object) -> str:
    """Return a text from the file as messages show it: quoted, on one line, shortened."""
    return repr(shorten(one_line(clean(str(text))), 60))


def read_source(path: Path) -> bytes:
    """Return the content of the file.

    Raises:
        SettingsError: the file does not exist, is not a regular file, or is too long.
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
    return body


def parse_yaml(body: bytes) -> Any:
    """Parse the YAML text, which is UTF-8 or UTF-16.

    Raises:
        SettingsError: the text is not YAML, has several documents or an alias, or contains other
            than plain values.
    """
    import yaml

    try:
        root = yaml.compose(body, Loader=yaml.SafeLoader)
        if root is None:
            return None
        _check_node(root, set())
        return yaml.constructor.SafeConstructor().construct_document(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise fault(f"{where}not YAML: {shown(problem or 'unreadable')[1:-1]}") from None
    except RecursionError:
        raise fault("the file has values that are nested too deep") from None
    except (ValueError, OverflowError) as error:
        raise fault(f"the file has a value that cannot be read: {shown(error)}") from None


def _check_node(node: yaml.Node, seen: set[int]) -> None:
    """Check that each key in this part of the file is a word that occurs once, and that nothing
    stands for what was seen before: a small file could stand for a large one."""
    where = f"line {node.start_mark.line + 1}"
    if id(node) in seen:
        what = f"{where}: an alias stands for this value, and a file of agents may have no alias"
        raise fault(what, "write the value out in each place")
    seen.add(id(node))
    parts = [] if node.id == "scalar" else node.value
    if node.id == "mapping":
        words = {key.value for key, _ in parts if key.tag == "tag:yaml.org,2002:str"}
        if len(words) < len(parts):
            raise fault(f"{where}: each key must be a word, and none may occur twice")
        parts = [value for _, value in parts]
    for part in parts:
        _check_node(part, seen)


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
    def _leave_out_empty(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
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


def read_entry(
    kind: type[EntryT], given: object, where: str, *, others: Mapping[str, object] | None = None
) -> EntryT:
    """Return a mapping of the file as an entry of this kind. `where` names it in errors; '' for
    the whole file. `others` are the components that it may name.

    Raises:
        SettingsError: a key is missing or unknown, or a value has a wrong type. The text names the
            key, but not its value, because that may be secret.
    """
    try:
        return kind.model_validate(given, context=others)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    first = min(faults, key=lambda one: one["type"] != "extra_forbidden")
    place, key = _find_place(first["loc"], given, where)
    if first["type"] == "extra_forbidden":
        raise fault(f"{place} has the unknown key {shown(key)}", "remove it, or correct its name")
    if first["type"] == "missing":
        raise fault(f"{place} has no {key}", f"add {key}")
    said = first["msg"].removeprefix("Value error, ")
    said = re.sub("^(Input|Value|Tuple) should", "must", said)
    what, _, fix = _SAYS.get(first["type"], said).partition("; ")
    raise fault(f"{place}{f': {key}' if key else ''} {what}", fix)


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


def _require_names(entries: Sequence[Any]) -> Sequence[Any]:
    for name, n in Counter(entry.name for entry in entries).items():
        if n > 1:
            raise ValueError(
                f"must not have two entries with the name {shown(name)}; rename one of them"
            )
    return entries


def _order_nodes(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes in running order: each after its inputs.

    Raises:
        ValueError: an input is neither a node nor `Query`, the inputs form a cycle, or there are
            several last nodes.
    """
    by_name = {node.name: node for node in nodes}
    for node in nodes:
        if unknown := set(node.inputs) - {ROOT, *by_name}:
            raise ValueError(
                f"must take from {ROOT} or one another, but {shown(node.name)} takes from "
                f"{shown(min(unknown))}"
            )
    try:
        names = [*TopologicalSorter({node.name: node.inputs for node in nodes}).static_order()]
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise ValueError(f"must not form a cycle: {circle}; remove one of these inputs") from None
    taken = {name for node in nodes for name in node.inputs}
    if len(ends := [name for name in by_name if name not in taken]) > 1:
        raise ValueError(
            f"must end in one node, not in {', '.join(ends)}; add one with these as inputs"
        )
    return tuple(by_name[name] for name in names if name in by_name)


class PipelineEntry(Entry):
    """A pipeline with its nodes in running order: each comes after its inputs, and only the output
    of the last one is not the input of another."""

    name: Name
    nodes: Annotated[
        tuple[Node, ...],
        Field(min_length=1),
        AfterValidator(_require_names),
        AfterValidator(_order_nodes),
    ]


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
    tools: Annotated[tuple[ToolEntry, ...], AfterValidator(_require_names)] = ()
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


class Document(Entry):
    """The content of a file. No two entries of any kind have the same name."""

    version: Any
    components: Annotated[tuple[Component, ...], Field(min_length=1)]
    pipelines: tuple[PipelineEntry, ...] = ()
    agents: Annotated[tuple[AgentEntry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        _require_names([*self.components, *self.pipelines, *self.agents])
        if self.version != "ignore":
            logger.warning(
                "the version %s of a file of agents is not checked; write version: ignore",
                shown(self.version),
            )
        return self

    def find_agent(self, name: str) -> AgentEntry:
        """Return the agent with this name; the only agent if no name is given.

        Raises:
            SettingsError: there is no agent with this name, or there are several agents and no name
                was given.
        """
        names = ", ".join(agent.name for agent in self.agents)
        found = [agent for agent in self.agents if name in ("", agent.name)]
        if not found:
            raise fault(f"there is no agent {shown(name)}", f"use one of: {names}")
        if len(found) > 1:
            raise fault(
                f"the file describes {len(found)} agents", f"choose one by its name: {names}"
            )
        return found[0]
