"""The kinds of component, and how their parameters are parsed. Some parameters name another
component.

An environment variable `<NAME>_PARAMS_<PARAM>` overrides a parameter in the file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from babyagi.components.document import Component, Fields, fault, shown
from babyagi.memory.kinds import ConversationMemory, ConversationSummaryMemory, EntityMemory
from babyagi.net.addresses import host_of
from babyagi.react.protocols.base import load_prompt
from babyagi.react.steps import MAX_STOP_WORDS
from babyagi.retrieval.engines import ENGINES
from babyagi.retrieval.pages import RetrieverMode
from babyagi.tasks import Effect
from babyagi.tools.issues import GITHUB_KEY, GITHUB_URL, is_repository
from babyagi.tools.pipelines import DEEPSET_KEY, DEEPSET_URL
from babyagi.tools.search import MAX_DOMAINS

logger = logging.getLogger(__name__)

MAX_TOP_K = 100
MAX_MEMORY_NUMBER = 100_000
DEFAULT_OUTPUT = "results"
MODEL_KEY = "OPENAI_API_KEY"
ENGINE_BY_PROVIDER = {"SerperDev": "serper", "SerpAPI": "serpapi", "SearchApi": "searchapi"}
KEY_VARIABLES = (
    MODEL_KEY,
    *(ENGINES[engine].key_variable for engine in ENGINE_BY_PROVIDER.values()),
    DEEPSET_KEY,
    GITHUB_KEY,
)
"""The environment variables that may contain the keys of components."""
REACT_TEMPLATE = "zero-shot-react"  # only for agents: the text protocol itself
CONVERSATIONAL = "conversational-agent"  # only for agents: an instruction, for any protocol
TEMPLATE_NAMES = tuple(
    "question-answering question-answering-with-references "
    "question-answering-with-document-scores question-answering-check question-generation "
    "conditioned-question-generation summarization conversational-summary sentiment-analysis "
    "multiple-choice-question-answering topic-classification language-detection translation".split()
)
"""The names of the built-in prompt templates, except those for agents."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w{0,100})\}")
_PLACE = re.compile(
    r"\$\$|\{\{([A-Za-z_]\w*)\}\}|\$\{([A-Za-z_]\w*)\}|\$([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\}"
    r"|\{join\(([A-Za-z_]\w*)\)\}"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The key for a service, or `${VARIABLE}` in its place, as `written` in the file. Its repr does
    not show it."""

    where: str = field(compare=False)
    written: str = field(repr=False)

    @property
    def variable(self) -> str:
        """Return the name of the variable with the key; "" if the file contains the key itself."""
        found = _VARIABLE.fullmatch(self.written.strip())
        return found[1] if found else ""

    def reveal(self, keys: Mapping[str, str]) -> str:
        """Return the key.

        Args:
            keys: the keys for services, by the names of their environment variables; '' for a
                variable that is not set.

        Raises:
            SettingsError: the variable is not set, or its value is not a key. The error does not
                show the value.
        """
        key = (keys[self.variable] if self.variable else self.written).strip()
        if not key:
            raise fault(
                f"{self.where}: api_key is in the variable {self.variable}, which is not set",
                f"set {self.variable} to the key",
            )
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise fault(f"{self.where}: api_key must be one word of printable ASCII characters")
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptModel:
    """A language model: its name and, if the file has one, its key."""

    model: str
    api_key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTemplate:
    """A text with placeholders: `$query`, `${query}`, `{query}` or `{join(documents)}`. `$$` stands
    for `$`, and `{{query}}` for `{query}`."""

    name: str
    text: str

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter(None, map(_variable, _PLACE.finditer(self.text)))))

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with its placeholders replaced by the values. Whatever looks like a
        placeholder within a value stays unchanged."""
        return _PLACE.sub(
            lambda place: values[name] if (name := _variable(place)) else _literal(place), self.text
        )

    def split(self, variable: str) -> list[str]:
        """Return the texts before, between and after the placeholders of this variable, with the
        placeholders of other variables in them."""
        texts, start = [], 0
        for place in _PLACE.finditer(self.text):
            if _variable(place) == variable:
                texts.append(self.text[start : place.start()])
                start = place.end()
        return [*texts, self.text[start:]]

    def with_values(self, values: Mapping[str, str]) -> PromptTemplate:
        """Return the template with these placeholders replaced. Placeholders in the inserted text
        become placeholders of the template."""
        text = _PLACE.sub(lambda place: values.get(_variable(place), place[0]), self.text)
        return replace(self, text=text)


def find_template(name: str) -> PromptTemplate | None:
    """Return the built-in template with this name, or with the name `deepset/NAME`; None if there
    is none. The template `zero-shot-react` has no text: it means the text protocol, with tool calls
    as labelled lines of text."""
    bare = name.removeprefix("deepset/")
    if bare == REACT_TEMPLATE:
        return PromptTemplate(name=bare, text="")
    if bare in (f"{CONVERSATIONAL}-with-tools", f"{CONVERSATIONAL}-without-tools"):
        bare = CONVERSATIONAL
    if bare not in (*TEMPLATE_NAMES, CONVERSATIONAL):
        return None
    return PromptTemplate(name=bare, text=load_prompt(bare, package="babyagi.components").rstrip())


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptNode:
    """A component that asks a model. Without a template, the prompt is its input; without a model,
    the settings choose one."""

    name: str
    model: PromptModel | None
    template: PromptTemplate | None
    stop_words: tuple[str, ...]
    output_variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearch:
    """A web search with one engine: of the whole web, or only of the `domains` if there are any."""

    name: str
    engine: str
    api_key: Key
    base_url: str
    top_k: int
    domains: tuple[str, ...] = ()

    @property
    def own_url(self) -> str:
        return ENGINES[self.engine].base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPages:
    """A web search that gives parts of the pages that it finds, as `WebRetriever` does. `top_k` is
    the number of parts, `search.top_k` that of the results that are looked at."""

    search: WebSearch
    mode: RetrieverMode
    top_p: float
    top_k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Chooses among the documents of a search those that are most relevant to the query: the first
    `top_k`, of these the fewest whose relevance together reaches `top_p`, but at least
    `min_top_k`."""

    name: str
    top_k: int = MAX_TOP_K
    top_p: float = 1.0
    min_top_k: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonRuntime:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePipeline:
    """A pipeline on another machine: of deepset Cloud, with `workspace`, `pipeline` and key, or of
    a Haystack server, without them."""

    name: str
    base_url: str
    own_url: str
    top_k: int
    effect: Effect
    params: Mapping[str, Any]
    workspace: str = ""
    pipeline: str = ""
    api_key: Key | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueSearch:
    """A search in the issues of a repository on GitHub or a compatible server."""

    name: str
    repository: str
    api_key: Key | None
    base_url: str
    top_k: int
    own_url: str = GITHUB_URL


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueLink:
    """Makes links to the form for a new issue of a repository, filled in, with these `labels`."""

    name: str
    repository: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryComponent:
    """The memory of an agent; `memory` is None for `NoMemory`. `asks` is the name of the PromptNode
    that updates the memory; if it is empty, the agent's own PromptNode does."""

    name: str
    memory: ConversationMemory | None
    asks: str = ""


Kind = (
    PromptModel
    | PromptTemplate
    | PromptNode
    | WebSearch
    | WebPages
    | Choice
    | PythonRuntime
    | RemotePipeline
    | IssueSearch
    | IssueLink
    | MemoryComponent
)

NO_MEMORY = "NoMemory"
MEMORY_TYPES: Mapping[str, tuple[type[ConversationMemory], str]] = {
    "ConversationMemory": (ConversationMemory, ""),
    "ConversationSummaryMemory": (ConversationSummaryMemory, "summary_frequency"),
    "EntityMemory": (EntityMemory, "update_every"),
}
"""By type of memory, its class, and the name of the parameter that says after how many turns it is
updated."""


def read_kinds(
    components: Mapping[str, Component],
    variables: Mapping[str, str],
    *,
    hosts: Collection[str] = (),
) -> dict[str, Kind]:
    """Return every component by its name, even if no agent uses it.

    Args:
        variables: the environment variables, which may override parameters.
        hosts: the hosts that a person allows in the file, besides the providers' own.

    Raises:
        SettingsError: the text names the component, the faulty parameter and the remedy.
    """
    found: dict[str, Kind] = {}
    for is_node in (False, True):  # prompt nodes come last, because they refer to other components
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
    if component.type == "PromptNode":
        return _read_prompt_node(component, where, others)
    if component.type in (NO_MEMORY, *MEMORY_TYPES):
        return read_memory(component, where)
    if component.type not in _READERS:
        kinds = ", ".join(sorted(["PromptNode", NO_MEMORY, *MEMORY_TYPES, *_READERS]))
        raise fault(
            f"{where} is of the unknown type {shown(component.type)}", f"use one of: {kinds}"
        )
    read, known = _READERS[component.type]
    return read(component.name, Fields(component.params, where, known=known))


def _read_prompt_model(name: str, params: Fields) -> PromptModel:
    return PromptModel(
        model=params.text("model_name_or_path").strip(), api_key=_read_key(params, MODEL_KEY)
    )


def _read_prompt_template(name: str, params: Fields) -> PromptTemplate:
    text = params.text("prompt_text", "") or params.text("prompt", "")
    known = find_template(text or params.text("name", ""))
    if known is None and not text.strip():
        raise fault(
            f"{params.where} has no prompt_text",
            f"add it, or name a built-in one: {', '.join(TEMPLATE_NAMES)}",
        )
    values = Fields(params.raw("values") or {}, f"{params.where}, values", known=None)
    template = replace(known, name=name) if known else PromptTemplate(name=name, text=text)
    return template.with_values({key: values.text(key) for key in values.keys})


def _read_web_search(name: str, params: Fields, *, default: str = "SerperDev") -> WebSearch:
    provider = params.text("search_engine_provider", default)
    if provider not in ENGINE_BY_PROVIDER:
        raise fault(
            f"{params.where}: there is no search_engine_provider {shown(provider)}",
            f"use one of: {', '.join(ENGINE_BY_PROVIDER)}",
        )
    engine = ENGINE_BY_PROVIDER[provider]
    domains = params.texts("allowed_domains")
    if len(domains) > MAX_DOMAINS:
        raise fault(
            f"{params.where} has {len(domains)} allowed_domains", f"keep at most {MAX_DOMAINS}"
        )
    return WebSearch(
        name=name,
        engine=engine,
        api_key=_need_key(params, ENGINES[engine].key_variable),
        base_url=params.text("base_url", ENGINES[engine].base_url),
        top_k=_read_top_k(params, 10),
        domains=domains,
    )


def _read_web_pages(name: str, params: Fields) -> WebPages:
    mode = params.text("mode", RetrieverMode.SNIPPETS)
    if mode not in list(RetrieverMode):
        raise fault(
            f"{params.where}: mode must be one of {', '.join(RetrieverMode)}, got {shown(mode)}"
        )
    return WebPages(
        search=replace(
            _read_web_search(name, params), top_k=_read_top_k(params, 10, "top_search_results")
        ),
        mode=RetrieverMode(mode),
        top_p=params.number("top_p", 1.0, at_most=1, is_whole=False),
        top_k=_read_top_k(params, 5),
    )


def _read_choice(name: str, params: Fields) -> Choice:
    return Choice(
        name=name,
        top_k=_read_top_k(params, MAX_TOP_K),
        top_p=params.number("top_p", 1.0, at_most=1, is_whole=False),
        min_top_k=_read_top_k(params, 1, "min_top_k"),
    )


def _read_deepset(name: str, params: Fields) -> RemotePipeline:
    return replace(
        _read_haystack(name, params, own_url=DEEPSET_URL),
        workspace=params.text("workspace"),
        pipeline=params.text("pipeline_name"),
        api_key=_need_key(params, DEEPSET_KEY),
    )


def _read_haystack(name: str, params: Fields, *, own_url: str = "") -> RemotePipeline:
    return RemotePipeline(
        name=name,
        base_url=params.text("base_url", own_url or None),
        own_url=own_url,
        top_k=_read_top_k(params, 5),
        effect=_read_effect(params),
        params=params.mapping("params"),
    )


def _read_issue_search(name: str, params: Fields) -> IssueSearch:
    return IssueSearch(
        name=name,
        repository=_read_repository(params),
        api_key=_read_key(params, GITHUB_KEY),
        base_url=params.text("base_url", GITHUB_URL),
        top_k=_read_top_k(params, 10),
    )


def _read_issue_link(name: str, params: Fields) -> IssueLink:
    return IssueLink(name=name, repository=_read_repository(params), labels=params.texts("labels"))


_READERS: Mapping[str, tuple[Callable[[str, Fields], Kind], Sequence[str]]] = {
    "PromptModel": (_read_prompt_model, ("model_name_or_path", "api_key")),
    "PromptTemplate": (_read_prompt_template, ("name", "prompt_text", "prompt", "values")),
    "SerpAPIComponent": (
        partial(_read_web_search, default="SerpAPI"),
        ("api_key", "base_url", "top_k", "allowed_domains"),
    ),
    "WebSearch": (
        _read_web_search,
        ("search_engine_provider", "api_key", "base_url", "top_k", "allowed_domains"),
    ),
    "WebRetriever": (
        _read_web_pages,
        (
            *("search_engine_provider", "api_key", "base_url", "allowed_domains"),
            *("mode", "top_search_results", "top_p", "top_k"),
        ),
    ),
    "Ranker": (_read_choice, ("top_k",)),
    "TopPSampler": (_read_choice, ("top_p", "min_top_k")),
    "PythonRuntime": (lambda name, _: PythonRuntime(name=name), ()),
    "DeepsetCloudPipeline": (
        _read_deepset,
        ("workspace", "pipeline_name", "api_key", "base_url", "top_k", "effect", "params"),
    ),
    "HaystackPipeline": (_read_haystack, ("base_url", "top_k", "effect", "params")),
    "GitHubIssueSearch": (_read_issue_search, ("repository", "api_key", "base_url", "top_k")),
    "IssueLink": (_read_issue_link, ("repository", "labels")),
}
"""By type of component, its parser, and the parameters that it may have."""


def _read_top_k(params: Fields, default: int, key: str = "top_k") -> int:
    return max(1, int(params.number(key, default, at_most=MAX_TOP_K)))


def _read_effect(params: Fields) -> Effect:
    said = params.text("effect", Effect.READ)
    if said not in list(Effect):
        raise fault(f"{params.where}: effect must be one of {', '.join(Effect)}, got {shown(said)}")
    return Effect(said)


def _read_repository(params: Fields) -> str:
    repository = params.text("repository")
    if not is_repository(repository):
        raise fault(
            f"{params.where}: repository must be owner/name, got {shown(repository)}",
            "write it as on GitHub: deepset-ai/haystack",
        )
    return repository


def read_memory(component: Component, where: str) -> MemoryComponent:
    """Return the memory that a component, or an agent itself, describes. The file cannot choose the
    name under which the memory is stored, so its author cannot read another memory."""
    if component.type == NO_MEMORY:
        Fields(component.params, where, known=())
        return MemoryComponent(name=component.name, memory=None)
    if component.type not in MEMORY_TYPES:
        raise fault(
            f"{where}: there is no memory of the type {shown(component.type)}",
            f"use one of: {', '.join((NO_MEMORY, *MEMORY_TYPES))}",
        )
    made, every = MEMORY_TYPES[component.type]
    asking = (every, "prompt_node") if every else ()
    labels = ("input_key", "output_key")  # not used: a run has one question and one answer
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


def _read_prompt_node(component: Component, where: str, others: Mapping[str, Kind]) -> PromptNode:
    known = ("model_name_or_path", "default_prompt_template", "stop_words", "output_variable")
    params = Fields(component.params, where, known=known)
    named = params.text("model_name_or_path", "")
    template = params.text("default_prompt_template", "")
    model = others.get(named, PromptModel(model=named.strip())) if named.strip() else None
    if model is not None and not isinstance(model, PromptModel):
        raise fault(f"{where}: model_name_or_path names {shown(named)}, which is not a PromptModel")
    filled = others.get(template) or find_template(template)
    if template and not isinstance(filled, PromptTemplate):
        built_in = ", ".join((*TEMPLATE_NAMES, REACT_TEMPLATE, CONVERSATIONAL))
        raise fault(
            f"{where}: default_prompt_template {shown(template)} is not a PromptTemplate of "
            "the file",
            f"add one to components, or name a built-in one: {built_in}",
        )
    stop_words = params.texts("stop_words")
    if len(stop_words) > MAX_STOP_WORDS:
        raise fault(
            f"{where} has {len(stop_words)} stop_words",
            f"keep at most {MAX_STOP_WORDS}: endpoints accept few, and the program needs some",
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


def _need_key(params: Fields, variable: str) -> Key:
    key = _read_key(params, variable)
    if key is None:
        raise fault(f"{params.where} has no api_key", f"add the line: api_key: ${{{variable}}}")
    return key


def _read_key(params: Fields, variable: str) -> Key | None:
    """Return the key; None if the file has none. It may only name the `variable` that belongs to
    its type of component, so that a file cannot read other variables."""
    if not params.has("api_key"):
        return None
    key = Key(where=params.where, written=params.text("api_key"))
    if key.variable not in ("", variable):
        raise fault(
            f"{params.where}: api_key names {key.variable}; only {variable} is allowed",
            f"write ${{{variable}}}",
        )
    return key


def _require_host(kind: Kind, hosts: Collection[str]) -> None:
    """Check that the address of a service is the provider's own, or one that a person allows, so
    that the author of the file cannot receive the questions and the key for the service."""
    if isinstance(kind, WebPages):
        kind = kind.search
    if not isinstance(kind, WebSearch | RemotePipeline | IssueSearch):
        return
    host, own = host_of(kind.base_url), host_of(kind.own_url)
    if host and host in (own, *hosts):
        return
    where = f"component {shown(kind.name)}: base_url"
    if not host:
        what = f"{where} must be https://HOST, got {shown(kind.base_url)}"
        raise fault(what, "correct it, or remove it")
    what = "each search and its key" if own else "each question"
    instead = f", which is not {own}" if own else ""
    raise fault(
        f"{where} would send {what} to {shown(host)}{instead}",
        f"{'remove base_url; or, ' if own else ''}if you trust that host, allow it: "
        f"--agent-hosts {host}",
    )


def _find_overrides(component: Component, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the component's parameters that environment variables override, with their values."""
    prefix = re.sub(r"\W", "_", component.name).upper() + "_PARAMS_"
    given: dict[str, Any] = {
        name[len(prefix) :].lower(): value
        for name, value in variables.items()
        if name.startswith(prefix)
    }
    for param in given:
        logger.info("%s%s=*** overrides a parameter in the file", prefix, param.upper())
    return given


def _variable(place: re.Match[str]) -> str:
    """Return the name of the variable at a match of `_PLACE`; "" if the match is an escaped `$` or
    brace."""
    return place[2] or place[3] or place[4] or place[5] or ""


def _literal(place: re.Match[str]) -> str:
    return "$" if place[0] == "$$" else f"{{{place[1]}}}"
