"""The options of the Python API, typed for type checkers.

Settings are declared in `settings/fields.py`; `tests/app/test_options.py` checks that this file
agrees with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from babyagi.text import nearest

if TYPE_CHECKING:
    from babyagi.llm.port import ChatModel
    from babyagi.loop import Enrich
    from babyagi.memory.kinds import ConversationMemory
    from babyagi.react.steps import AtLimit, OnMalformed, Trim
    from babyagi.settings.values import Secret
    from babyagi.tools.base import Tool

Ask = Callable[[str], str | Awaitable[str]]
"""Shows a question to a person, and returns the answer."""


class SettingOptions(TypedDict, total=False):
    """The settings that runs and agents share; `babyagi config` explains each."""

    llm_model: str
    openai_api_key: str | Secret
    openai_base_url: str
    openai_organization: str
    azure_api_version: str
    openai_temperature: float | None
    dialect: Literal["auto", "chat", "responses"]
    model_timeout_s: float
    max_output_tokens: int
    price: Sequence[float] | None
    llama_model_path: str | Path | None
    llama_ctx_max: int
    llama_threads_num: int
    max_calls: int
    max_tokens: int
    max_cost_usd: float
    max_time_s: float | str
    https_proxy: str | Secret
    http_proxy: str | Secret
    no_proxy: str
    serpapi_api_key: str | Secret
    serper_api_key: str | Secret
    searchapi_api_key: str | Secret
    deepset_cloud_api_key: str | Secret
    github_token: str | Secret
    agent_hosts: Sequence[str]
    log_level: Literal["debug", "info", "warning", "error"]
    otel_endpoint: str
    extra_env_files: Sequence[Path]


class AgentOptions(SettingOptions, total=False):
    """The options of an agent besides its own parameters: its memory, the fields of `AgentBounds`,
    and settings."""

    memory: ConversationMemory | str | None
    max_steps: int
    max_errors: int
    max_parallel: int
    max_repeats: int
    at_limit: AtLimit | Literal["force", "generate"]
    on_malformed: OnMalformed
    trim: Trim | None
    stop_words: tuple[str, ...]


class RunOptions(SettingOptions, total=False):
    """The options of `run` and `stream`: first their own ones, then settings."""

    # of its own
    first_task: str
    model: str | ChatModel
    max_cost: float
    max_time: float | str
    tools: Sequence[str | Tool | Callable[..., Any]]
    new: bool
    enrich: Enrich

    # settings
    initial_task: str
    instance_name: str
    files: str | Path | None
    mcp: str | Path | None
    tools_from: str
    agent: str
    ask: bool | Ask
    approve: Literal["once", "none"]
    memory: Literal["objective", "shared"]
    planning: Literal["separate", "combined"]
    protocol: Literal["auto", "untested", "native", "json", "text"]
    role_models: Sequence[str]
    max_tasks: int
    max_failures: int
    max_new_tasks: int
    context_tokens: int
    concurrency: int
    cadence: Literal["each", "batched"]
    lease_s: float
    drain_s: float
    notify: str | Secret
    worker_name: str
    use_my_model: bool
    home: str | Path
    task_store: str | Secret
    results_store_name: str
    result_store: Literal["auto", "chroma", "builtin", "weaviate", "pinecone"]
    chroma_url: str
    weaviate_url: str
    weaviate_api_key: str | Secret
    weaviate_grpc_port: int | None
    weaviate_use_embedded: bool
    pinecone_api_key: str | Secret
    pinecone_environment: str
    search_engine: str
    search_url: str
    brave_api_key: str | Secret
    tavily_api_key: str | Secret
    pipeline: str
    deepset_cloud_url: str
    github_repository: str
    github_url: str
    web_allow: Sequence[str]
    web_only: Sequence[str]
    embedding_model: str
    embedding_base_url: str


OTHER_NAMES: Mapping[str, str] = {
    "first_task": "initial_task",
    "model": "llm_model",
    "max_cost": "max_cost_usd",
    "max_time": "max_time_s",
}
"""The setting that each short name of an option stands for."""

LIMIT_NAMES = ("max_tasks", "max_calls", "max_tokens", "max_cost_usd", "max_time_s")


def names_of(options: type[Any]) -> frozenset[str]:
    """Return the option names that a TypedDict such as `RunOptions` declares."""
    return frozenset(options.__annotations__)


def require_known(
    given: Mapping[str, object],
    known: frozenset[str],
    where: str,
    *,
    others: frozenset[str] = frozenset(("output_type",)),
) -> None:
    """Raise `TypeError` for the first name that is not in `known`; its text suggests the most
    similar name of `known` and `others`."""
    for name in given:
        if name not in known:
            near = nearest(name, sorted(known | others))
            hint = f"; did you mean {near}?" if near else ""
            raise TypeError(f"{where} has no option {name!r}{hint}")


def rename(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the options with each short name replaced by the name of its setting. `where` names
    the function in the error.

    Raises:
        TypeError: an option was given under two names.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        setting = OTHER_NAMES.get(name, name)
        if setting in found:
            other = next(
                one for one in given if one != name and OTHER_NAMES.get(one, one) == setting
            )
            raise TypeError(f"{where} takes {other!r} or {name!r}, not both")
        found[setting] = value
    return found
