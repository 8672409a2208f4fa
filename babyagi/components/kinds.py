"""The kinds of component, each with its parameters read; a parameter whose value is a component's
name is that component.

A variable of the environment, `<NAME>_PARAMS_<PARAM>`, goes before what the file says.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from babyagi.components.document import Component, Fields, fault, shown
from babyagi.memory.kinds import ConversationMemory, ConversationSummaryMemory, EntityMemory
from babyagi.net.addresses import host_of
from babyagi.react.steps import MAX_STOP_WORDS
from babyagi.tools.search import SERPAPI_URL

logger = logging.getLogger(__name__)

MAX_TOP_K = 100
MAX_MEMORY_NUMBER = 100_000
DEFAULT_OUTPUT = "results"
MODEL_KEY = "OPENAI_API_KEY"
SEARCH_KEY = "SERPAPI_API_KEY"

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w{0,100})\}")
_PLACE = re.compile(
    r"\$\$|\{\{([A-Za-z_]\w*)\}\}|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as the file gives it: itself, or the variable that holds it. No repr shows it."""

    where: str = field(compare=False)
    written: str = field(repr=False)

    @property
    def variable(self) -> str:
        """The variable that holds it; empty where the file has the key itself."""
        found = _VARIABLE.fullmatch(self.written.strip())
        return found[1] if found else ""

    def reveal(self, keys: Mapping[str, str]) -> str:
        """Return the key.

        Args:
            keys: by the variable that holds them; those that are not set are empty.

        Raises:
            SettingsError: the variable is not set, or this is no key. The key is not shown.
        """
        key = (keys[self.variable] if self.variable else self.written).strip()
        if not key:
            raise fault(
                f"{self.where}: api_key is in the variable {self.variable}, which is not set",
                f"set {self.variable}",
            )
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise fault(f"{self.where}: api_key must be one word of printable ASCII characters")
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptModel:
    """A language model: its name, and the key for it where the file has one."""

    model: str
    api_key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """A text with places: `$query`, `${query}` or `{query}`; `$$` stands for `$`, `{{query}}` for
    `{query}`."""

    name: str
    text: str

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(
                name for place in _PLACE.finditer(self.text) if (name := _variable(place))
            )
        )

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with a value at each place; what a value holds is not looked at again."""
        return _PLACE.sub(
            lambda place: values[name] if (name := _variable(place)) else _literal(place), self.text
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptNode:
    """A question to a model. Without a template what it is given is the question; without a model
    the settings name one."""

    name: str
    model: PromptModel | None
    template: PromptTemplate | None
    stop_words: tuple[str, ...]
    output_variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SerpAPIComponent:
    name: str
    api_key: Key
    base_url: str
    top_k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonRuntime:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryComponent:
    """What an agent remembers, None for nothing. `asks` is the PromptNode that writes it, empty
    where the file leaves that to the agent's."""

    name: str
    memory: ConversationMemory | None
    asks: str = ""


Kind = (
    PromptModel | PromptTemplate | PromptNode | SerpAPIComponent | PythonRuntime | MemoryComponent
)

NO_MEMORY = "NoMemory"
MEMORY_TYPES: Mapping[str, tuple[type[ConversationMemory], str]] = {
    "ConversationMemory": (ConversationMemory, ""),
    "ConversationSummaryMemory": (ConversationSummaryMemory, "summary_frequency"),
    "EntityMemory": (EntityMemory, "update_every"),
}
"""Each with the parameter that says after how many turns it is brought up to date."""


def read_kinds(
    components: Mapping[str, Component],
    variables: Mapping[str, str],
    *,
    hosts: Collection[str] = (),
) -> dict[str, Kind]:
    """Return every component by its name, used or not.

    Args:
        variables: of the environment, which a person has set: `<NAME>_PARAMS_<PARAM>`.
        hosts: that a person lets the file name, beside the providers' own.

    Raises:
        SettingsError: with the component, the parameter that is wrong, and what to do.
    """
    found: dict[str, Kind] = {}
    for is_node in (False, True):  # a prompt node refers to the others
        for name, component in components.items():
            if (component.type == "PromptNode") is is_node:
                given = _find_overrides(component, variables)
                found[name] = _read_kind(
                    replace(component, params={**component.params, **given}), found
                )
                if "base_url" not in given:
                    _require_host(found[name], hosts)
    return found


def _read_kind(component: Component, others: Mapping[str, Kind]) -> Kind:
    where = f"component {shown(component.name)}"
    match component.type:
        case "PromptModel":
            params = Fields(component.params, where, known=("model_name_or_path", "api_key"))
            return PromptModel(
                model=params.text("model_name_or_path").strip(),
                api_key=_read_key(params, MODEL_KEY),
            )
        case "PromptTemplate":
            params = Fields(component.params, where, known=("name", "prompt_text"))
            params.text("name", "")
            return PromptTemplate(name=component.name, text=params.text("prompt_text"))
        case "PromptNode":
            return _read_prompt_node(component, where, others)
        case "SerpAPIComponent":
            return _read_search(component, where)
        case "PythonRuntime":
            Fields(component.params, where, known=())
            return PythonRuntime(name=component.name)
        case "NoMemory" | "ConversationMemory" | "ConversationSummaryMemory" | "EntityMemory":
            return read_memory(component, where)
        case "RemotePipeline":
            raise fault(f"{where}: pipelines on another machine cannot be used", "take it away")
    kinds = (
        "ConversationMemory, ConversationSummaryMemory, EntityMemory, NoMemory, PromptModel, "
        "PromptNode, PromptTemplate, PythonRuntime, SerpAPIComponent"
    )
    raise fault(f"{where} is of the unknown type {shown(component.type)}", f"there are: {kinds}")


def read_memory(component: Component, where: str) -> MemoryComponent:
    """Return the memory that a component, or an agent in its place, describes. Its name is the
    person's to give, because whoever wrote the file would get at what that holds."""
    if component.type == NO_MEMORY:
        Fields(component.params, where, known=())
        return MemoryComponent(name=component.name, memory=None)
    if component.type not in MEMORY_TYPES:
        raise fault(
            f"{where}: there is no memory of the type {shown(component.type)}",
            f"name one of: {', '.join((NO_MEMORY, *MEMORY_TYPES))}",
        )
    made, every = MEMORY_TYPES[component.type]
    asking = (every, "prompt_node") if every else ()
    labels = ("input_key", "output_key")  # of a run there is one question and one answer
    params = Fields(component.params, where, known=("window_size", "max_tokens", *asking, *labels))
    for label in labels:
        params.text(label, "")
    numbers: dict[str, Any] = {
        name: int(params.number(name, 0, at_most=MAX_MEMORY_NUMBER))
        for name in ("window_size", "max_tokens", every)
        if name and params.has(name)
    }
    asks = params.text("prompt_node", "") if every else ""
    try:
        return MemoryComponent(name=component.name, memory=made(**numbers), asks=asks)
    except ValueError as error:
        raise fault(f"{where}: {error}") from None


def _read_search(component: Component, where: str) -> SerpAPIComponent:
    params = Fields(component.params, where, known=("api_key", "base_url", "top_k"))
    key = _read_key(params, SEARCH_KEY)
    if key is None:
        raise fault(f"{where} has no api_key", f"add the line: api_key: ${{{SEARCH_KEY}}}")
    top_k = int(params.number("top_k", 10, at_most=MAX_TOP_K))
    return SerpAPIComponent(
        name=component.name,
        api_key=key,
        base_url=params.text("base_url", SERPAPI_URL),
        top_k=max(1, top_k),
    )


def _read_prompt_node(component: Component, where: str, others: Mapping[str, Kind]) -> PromptNode:
    known = ("model_name_or_path", "default_prompt_template", "stop_words", "output_variable")
    params = Fields(component.params, where, known=known)
    named, template = (
        params.text("model_name_or_path", ""),
        params.text("default_prompt_template", ""),
    )
    model = others.get(named, PromptModel(model=named.strip())) if named.strip() else None
    if model is not None and not isinstance(model, PromptModel):
        raise fault(f"{where}: model_name_or_path names {shown(named)}, which is no PromptModel")
    filled = others.get(template)
    if template and not isinstance(filled, PromptTemplate):
        raise fault(
            (
                f"{where}: default_prompt_template {shown(template)} is no PromptTemplate of the "
                "file"
            ),
            "add one to components",
        )
    stop_words = params.texts("stop_words")
    if len(stop_words) > MAX_STOP_WORDS:
        raise fault(
            f"{where} has {len(stop_words)} stop_words",
            f"keep {MAX_STOP_WORDS}: the rest of what an endpoint takes is in use",
        )
    output_variable = params.text("output_variable", DEFAULT_OUTPUT)
    if not _IDENTIFIER.fullmatch(output_variable):
        raise fault(
            f"{where}: output_variable must be letters, digits and _, got {shown(output_variable)}"
        )
    return PromptNode(
        name=component.name,
        model=model,
        template=filled if isinstance(filled, PromptTemplate) else None,
        stop_words=stop_words,
        output_variable=output_variable,
    )


def _read_key(params: Fields, variable: str) -> Key | None:
    """The key; one that is in a variable can be in this one alone, so that no file gets at what
    else the environment holds."""
    if not params.has("api_key"):
        return None
    key = Key(where=params.where, written=params.text("api_key"))
    if key.variable not in ("", variable):
        raise fault(
            (
                f"{params.where}: api_key asks for {key.variable}; of all variables it may "
                f"have {variable} alone"
            ),
            f"write ${{{variable}}}",
        )
    return key


def _require_host(kind: Kind, hosts: Collection[str]) -> None:
    """Raise for an address that the file chose: what is asked there, and the key for it, would go
    to whoever wrote the file."""
    if isinstance(kind, SerpAPIComponent) and (host := host_of(kind.base_url)) not in (
        host_of(SERPAPI_URL),
        *hosts,
    ):
        where = f"component {shown(kind.name)}: base_url"
        if not host:
            raise fault(
                f"{where} must be https://HOST, got {shown(kind.base_url)}",
                "correct it, or take it away",
            )
        raise fault(
            (
                f"{where} would send each search and its key to {shown(host)}, which is not "
                f"{host_of(SERPAPI_URL)}"
            ),
            (
                f"take base_url away; where you trust that host: --agent-hosts {host}, or "
                f"BABYAGI_AGENT_HOSTS={host} in the environment"
            ),
        )


def _find_overrides(component: Component, variables: Mapping[str, str]) -> dict[str, Any]:
    """What the environment says about the parameters of a component."""
    prefix = re.sub(r"\W", "_", component.name).upper() + "_PARAMS_"
    given: dict[str, Any] = {
        name[len(prefix) :].lower(): value
        for name, value in variables.items()
        if name.startswith(prefix)
    }
    for param in given:
        logger.info("%s%s=*** goes before what the file says", prefix, param.upper())
    return given


def _variable(place: re.Match[str]) -> str:
    """The name of the variable at a place; empty where the place only writes a sign."""
    return place[2] or place[3] or place[4] or ""


def _literal(place: re.Match[str]) -> str:
    return "$" if place[0] == "$$" else f"{{{place[1]}}}"
