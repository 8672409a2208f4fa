"""The kinds of component, and how their parameters are parsed. Some parameters name another
component.

An environment variable `<NAME>_PARAMS_<PARAM>` overrides a parameter in the file.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)

from babyagi.components.document import (
    Component,
    Entry,
    Number,
    Text,
    Texts,
    Whole,
    fault,
    need,
    read_entry,
    shown,
)
from babyagi.memory.kinds import ConversationMemory, ConversationSummaryMemory, EntityMemory
from babyagi.net.addresses import Proxies, host_of
from babyagi.react.protocols.base import load_prompt
from babyagi.react.steps import MAX_STOP_WORDS
from babyagi.retrieval.engines import ENGINES, Engine, Searcher
from babyagi.retrieval.pages import Pages, RetrieverMode, WebRetriever
from babyagi.sandbox.program import RESULT
from babyagi.tasks import Effect
from babyagi.tools.base import Tool
from babyagi.tools.issues import (
    GITHUB_KEY,
    GITHUB_URL,
    GitHub,
    build_issue_link,
    build_search_issues,
    is_repository,
)
from babyagi.tools.pipelines import (
    DEEPSET_KEY,
    DEEPSET_URL,
    build_pipeline_search,
    deepset_pipeline,
    haystack_pipeline,
)
from babyagi.tools.pipelines import RemotePipeline as Pipeline
from babyagi.tools.python import build_python
from babyagi.tools.search import MAX_DOMAINS, build_web_search

logger = logging.getLogger(__name__)

FOUND = "documents"
"""The variable with the documents that a search found."""
MAX_TOP_K = 100
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


Secret = Annotated[SecretStr, Field(min_length=1)]
Provider = Literal["SerperDev", "SerpAPI", "SearchApi"]
Repository = Annotated[str, need(is_repository, "owner/name, as on GitHub")]
Identifier = Annotated[
    str, need(re.compile(r"[A-Za-z_]\w{0,63}").fullmatch, "letters, digits and _")
]
TopK = Annotated[Whole, Field(le=MAX_TOP_K), AfterValidator(lambda top_k: max(1, top_k))]
MemoryNumber = Annotated[Whole, Field(le=100_000)]
Share = Annotated[float, Number, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """What a person lets a file of agents use.

    Attributes:
        keys: the keys for services, by the names of their environment variables (`KEY_VARIABLES`);
            '' for a variable that is not set.
        variables: the environment variables. A variable `<NAME>_PARAMS_<PARAM>` overrides a
            parameter of the component `<NAME>`.
        hosts: the hosts that addresses in the file may name, besides the providers' own.
        places: the folder in which programs take turns.
        proxies: the proxies of its requests.
        pages: fetches the pages that a `WebRetriever` opens.
    """

    keys: Mapping[str, str] = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    hosts: tuple[str, ...]
    places: Path
    proxies: Proxies = field(repr=False)
    pages: Pages


class Service(Entry):
    """What a provider serves. `own` is the variable with the key for the provider, and the
    provider's address."""

    variable: ClassVar[str] = ""
    url: ClassVar[str] = ""

    @property
    def own(self) -> tuple[str, str]:
        return self.variable, self.url


class Keyed(Service):
    """What has a key for a service, or `${VARIABLE}` in its place. It may only name the variable
    that belongs to its type of component, so that a file cannot read other variables."""

    api_key: Secret | None = None

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        named, own = _find_variable(self.api_key) if self.api_key else "", self.own[0]
        if named not in ("", own):
            raise ValueError(f"has an api_key that names {named}, but only {own} is allowed")
        return self


class Runnable(Entry):
    """A component that is a tool. A tool within a pipeline is `called` so, and its output is the
    variable `output_variable` of templates."""

    called: ClassVar[str] = "search"
    output_variable: ClassVar[str] = FOUND

    def build(self, name: str, description: str, granted: Granted) -> Tool:
        """Return the component as a tool.

        Raises:
            SettingsError: its key or address cannot be used.
            ValueError: the name is invalid for a tool.
        """
        raise NotImplementedError


class Search(Service, Runnable):
    """A component that searches at a service. Its `base_url` is '' for the provider's own."""

    base_url: str = ""

    @property
    def address(self) -> str:
        return self.base_url or self.own[1]


def _find_variable(key: SecretStr) -> str:
    """Return the name of the variable with the key; "" if the file contains the key itself."""
    found = _VARIABLE.fullmatch(key.get_secret_value().strip())
    return found[1] if found else ""


def reveal_key(key: SecretStr | None, keys: Mapping[str, str]) -> str:
    """Return the key for a service, which a file has itself, or `${VARIABLE}` in its place; '' if
    it has none.

    Args:
        keys: the keys for services, by the names of their environment variables; '' for a variable
            that is not set.

    Raises:
        SettingsError: the variable is not set, or its value is not a key. The error does not show
            the value.
    """
    if key is None:
        return ""
    variable = _find_variable(key)
    found = (keys[variable] if variable else key.get_secret_value()).strip()
    if not found:
        raise fault(
            f"an api_key is in the variable {variable}, which is not set",
            f"set {variable} to the key",
        )
    if not (found.isascii() and found.isprintable()) or " " in found:
        raise fault("an api_key must be one word of printable ASCII characters")
    return found


class PromptModel(Keyed):
    """A language model: its name and, if the file has one, its key."""

    variable: ClassVar[str] = MODEL_KEY

    model: Annotated[Text, AfterValidator(str.strip)] = Field(alias="model_name_or_path")


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


class PromptNode(Entry):
    """A component that asks a model. Without a template, the prompt is its input; without a model,
    the settings choose one. It names a model, and a template of the file or a built-in one."""

    model: PromptModel | None = Field(None, alias="model_name_or_path")
    template: PromptTemplate | None = Field(None, alias="default_prompt_template")
    # endpoints accept few, and the program needs some
    stop_words: Annotated[Texts, Field(max_length=MAX_STOP_WORDS)] = ()
    output_variable: Identifier = "results"

    @field_validator("model", mode="before")
    @classmethod
    def _find_model(cls, name: object, info: ValidationInfo) -> object:
        found = (info.context or {}).get(name) if isinstance(name, str) else name
        if found is not None and not isinstance(found, PromptModel):
            raise ValueError(f"names {shown(name)}, which is not a PromptModel")
        return found or ({"model_name_or_path": name} if str(name).strip() else None)

    @field_validator("template", mode="before")
    @classmethod
    def _find_template(cls, name: object, info: ValidationInfo) -> object:
        found = (info.context or {}).get(name) or find_template(str(name))
        if name and not isinstance(found, PromptTemplate):
            built_in = ", ".join((*TEMPLATE_NAMES, REACT_TEMPLATE, CONVERSATIONAL))
            raise ValueError(
                f"{shown(name)} is not a PromptTemplate of the file; "
                f"add one to components, or name a built-in one: {built_in}"
            )
        return found


class WebSearch(Search, Keyed):
    """A web search with one engine: of the whole web, or only of the `domains` if there are any."""

    provider: Provider = Field("SerperDev", alias="search_engine_provider")
    api_key: Secret
    top_k: TopK = 10
    domains: Annotated[Texts, Field(max_length=MAX_DOMAINS)] = Field((), alias="allowed_domains")

    @property
    def own(self) -> tuple[str, str]:
        engine = ENGINES[ENGINE_BY_PROVIDER[self.provider]]
        return engine.key_variable, engine.base_url

    def build(self, name: str, description: str, granted: Granted) -> Tool:
        engine, proxies = self.open(granted), granted.proxies
        searcher = Searcher([engine], monotonic=time.monotonic, proxies=proxies)
        return build_web_search(
            WebRetriever(searcher, granted.pages),
            name=name,
            description=description,
            n_pages=0,
            top_k=self.top_k,
            domains=self.domains,
        )

    def open(self, granted: Granted) -> Engine:
        """Return the engine with its address and key."""
        engine = ENGINES[ENGINE_BY_PROVIDER[self.provider]]
        key = reveal_key(self.api_key, granted.keys)
        return replace(engine, base_url=self.address, key=key)


class SerpSearch(WebSearch):
    """A `WebSearch` by SerpAPI."""

    provider: Provider = Field("SerpAPI", alias="search_engine_provider")


class WebPages(WebSearch):
    """A web search that gives parts of the pages that it finds, as `WebRetriever` does. `top_k` is
    the number of parts, `n_pages` that of the results that are looked at."""

    mode: RetrieverMode = RetrieverMode.SNIPPETS
    n_pages: TopK = Field(10, alias="top_search_results")
    top_p: Share = 1.0
    top_k: TopK = 5

    def build(self, name: str, description: str, granted: Granted) -> Tool:
        engine, proxies = self.open(granted), granted.proxies
        retriever = WebRetriever(
            Searcher([engine], monotonic=time.monotonic, proxies=proxies),
            granted.pages,
            mode=self.mode,
            p=self.top_p,
            top_k=self.top_k,
        )
        return build_web_search(
            retriever,
            name=name,
            description=description,
            n_pages=self.n_pages,
            domains=self.domains,
        )


class Choice(Entry):
    """Chooses among the documents of a search those that are most relevant to the query: the first
    `top_k`, of these the fewest whose relevance together reaches `top_p`, but at least
    `min_top_k`."""

    top_k: TopK = MAX_TOP_K
    top_p: Share = 1.0
    min_top_k: TopK = 1

    output_variable: ClassVar[str] = FOUND


class PythonRuntime(Runnable):
    """Runs the code that its input gave."""

    called: ClassVar[str] = "python"
    output_variable: ClassVar[str] = RESULT

    def build(self, name: str, description: str, granted: Granted) -> Tool:
        return build_python(
            name=name,
            description=description,
            offload=asyncio.to_thread,
            places=granted.places,
        )


class RemotePipeline(Search):
    """A pipeline on a Haystack server."""

    base_url: Text
    top_k: TopK = 5
    effect: Effect = Effect.READ
    params: dict[str, Any] = Field({})

    def build(self, name: str, description: str, granted: Granted) -> Tool:
        return build_pipeline_search(
            self.open(granted),
            name=name,
            description=description,
            top_k=self.top_k,
            effect=self.effect,
            proxies=granted.proxies,
        )

    def open(self, granted: Granted) -> Pipeline:
        """Return the pipeline with its address and key."""
        return haystack_pipeline(base_url=self.address, params=self.params)


class DeepsetPipeline(RemotePipeline, Keyed):
    """A pipeline of deepset Cloud."""

    variable: ClassVar[str] = DEEPSET_KEY
    url: ClassVar[str] = DEEPSET_URL

    base_url: str = ""
    workspace: Text
    pipeline: Text = Field(alias="pipeline_name")
    api_key: Secret

    def open(self, granted: Granted) -> Pipeline:
        return deepset_pipeline(
            self.workspace,
            self.pipeline,
            key=reveal_key(self.api_key, granted.keys),
            base_url=self.address,
            params=self.params,
        )


class IssueSearch(Search, Keyed):
    """A search in the issues of a repository on GitHub or a compatible server."""

    variable: ClassVar[str] = GITHUB_KEY
    url: ClassVar[str] = GITHUB_URL

    repository: Repository
    top_k: TopK = 10

    def build(self, name: str, description: str, granted: Granted) -> Tool:
        key = reveal_key(self.api_key, granted.keys)
        github = GitHub(url=self.address, key=key, repository=self.repository)
        return build_search_issues(
            github,
            name=name,
            description=description,
            top_k=self.top_k,
            proxies=granted.proxies,
        )


class IssueLink(Runnable):
    """Makes links to the form for a new issue of a repository, filled in, with these `labels`."""

    repository: Repository
    labels: Texts = ()

    def build(self, name: str, description: str, granted: Granted) -> Tool:
        github = GitHub(repository=self.repository)
        return build_issue_link(github, name=name, description=description, labels=self.labels)


class NoMemory(Entry):
    """No memory. The file cannot choose the name under which a memory is stored, so its author
    cannot read another one. `input_key` and `output_key` are not used: a run has one question and
    one answer. A memory is updated by `prompt_node`, or by the agent's own."""

    made: ClassVar[type[ConversationMemory] | None] = None

    input_key: str = ""
    output_key: str = ""
    prompt_node: str = ""

    @model_validator(mode="after")
    def _check_numbers(self) -> Self:
        self.make()
        return self

    def make(self) -> ConversationMemory | None:
        """Return the memory that the file describes."""
        numbers = self.model_dump(exclude=set(NoMemory.model_fields), exclude_unset=True)
        return self.made(**numbers) if self.made else None


def _describe_memory(kind: type[ConversationMemory]) -> type[NoMemory]:
    """Return the entry with the numbers of this kind of memory."""
    numbers = {one.name: (MemoryNumber, one.default) for one in fields(kind) if one.name != "name"}
    entry: type[NoMemory] = create_model(kind.__name__, __base__=NoMemory, **numbers)  # type: ignore[call-overload]  # of names that are read here
    entry.made = kind
    return entry


Kind = PromptModel | PromptTemplate | PromptNode | Runnable | Choice | NoMemory


class _TemplateParams(Entry):
    name: str = ""
    prompt_text: str = ""
    prompt: str = ""
    values: dict[str, str] = Field({})


_KINDS: Mapping[str, type[Entry]] = {
    "PromptModel": PromptModel,
    "PromptTemplate": _TemplateParams,
    "PromptNode": PromptNode,
    "SerpAPIComponent": SerpSearch,
    "WebSearch": WebSearch,
    "WebRetriever": WebPages,
    "Ranker": Choice,
    "TopPSampler": Choice,
    "PythonRuntime": PythonRuntime,
    "DeepsetCloudPipeline": DeepsetPipeline,
    "HaystackPipeline": RemotePipeline,
    "GitHubIssueSearch": IssueSearch,
    "IssueLink": IssueLink,
    "NoMemory": NoMemory,
    **{
        kind.__name__: _describe_memory(kind)
        for kind in (ConversationMemory, ConversationSummaryMemory, EntityMemory)
    },
}
"""By type of component, the parameters that it may have."""


def read_kinds(
    components: Iterable[Component],
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
    # prompt nodes come last, because they refer to other components
    for component in sorted(components, key=lambda one: one.type == "PromptNode"):
        given = _find_overrides(component, variables)
        kind = read_kind(component.name, component.type, {**component.params, **given}, found)
        if "base_url" not in given and isinstance(kind, Search):
            _require_host(component.name, kind, hosts)
        found[component.name] = kind
    return found


def read_kind(
    name: str, of_type: str, params: Mapping[str, Any], others: Mapping[str, Kind]
) -> Kind:
    """Return a component of this type, which may name `others`."""
    where = f"component {shown(name)}"
    if of_type not in _KINDS:
        raise fault(
            f"{where} is of the unknown type {shown(of_type)}",
            f"use one of: {', '.join(sorted(_KINDS))}",
        )
    entry = read_entry(_KINDS[of_type], params, where, others=others)
    return (
        _build_template(name, entry, where)
        if isinstance(entry, _TemplateParams)
        else cast("Kind", entry)
    )


def _build_template(name: str, params: _TemplateParams, where: str) -> PromptTemplate:
    text = params.prompt_text or params.prompt
    known = find_template(text or params.name)
    if known is None and not text.strip():
        raise fault(
            f"{where} has no prompt_text",
            f"add it, or name a built-in one: {', '.join(TEMPLATE_NAMES)}",
        )
    template = replace(known, name=name) if known else PromptTemplate(name=name, text=text)
    return template.with_values(params.values)


def _require_host(name: str, kind: Search, hosts: Collection[str]) -> None:
    """Check that the address of a service is the provider's own, or one that a person allows, so
    that the author of the file cannot receive the questions and the key for the service."""
    host = host_of(kind.address)
    where = f"component {shown(name)}: base_url"
    if not host:
        what = f"{where} must be https://HOST, got {shown(kind.base_url)}"
        raise fault(what, "correct it, or remove it")
    if host not in (host_of(kind.own[1]), *hosts):
        raise fault(
            f"{where} would send each search and its key to {shown(host)}",
            f"remove it; or, if you trust that host, allow it: --agent-hosts {host}",
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
