"""Opens the models and embedders that the settings name, over connections that are shared."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from babyagi.app.backends import utc_now
from babyagi.errors import CredentialsError, SettingsError
from babyagi.files.home import remember_abilities, remembered_abilities
from babyagi.index.hashing import HashEmbedder
from babyagi.llm.client import Account, Endpoint, OpenAIModel
from babyagi.llm.embeddings import OnnxEmbedder, OpenAIEmbedder
from babyagi.llm.human import HumanModel
from babyagi.llm.learning import (
    LearningModel,
    describe,
    is_known_provider,
    read_abilities,
    write_abilities,
)
from babyagi.llm.port import Abilities, ChatModel, Completion, Embedder
from babyagi.llm.prices import Price, find_price
from babyagi.llm.prompt import Prompt
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.llm.retry import Deadline
from babyagi.react.asking import find_abilities
from babyagi.react.protocols.choice import AUTO, HELD, choose_protocol
from babyagi.redaction import redact_url
from babyagi.runtime.heavy_imports import import_openai
from babyagi.settings.fields import (
    LLAMA_MODEL,
    LOCAL_EMBEDDING_MODEL,
    MODELS_WITHOUT_ENDPOINT,
    ONNX_EMBEDDING_MODEL,
    Settings,
)
from babyagi.tasks import Objective, Role
from babyagi.text import nearest, say_duration

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from babyagi.llm.llama import Engine

_HOW = {
    "native": "in the API's own fields",
    HELD: "as JSON that must fit a schema",
    "json": "as JSON",
    "text": "in labelled text",
}

REMEMBERED_DAYS = 7
MAX_DEADLINE_S = 86_400.0

AskHuman = Callable[[str], Awaitable[str]]


def missing_key(settings: Settings, models: Iterable[str]) -> CredentialsError | None:
    """Return an error if these models need a key and none is set; None otherwise. Servers other
    than OpenAI's are assumed to need no key."""
    asked = set(models) - set(MODELS_WITHOUT_ENDPOINT)
    if not asked or settings.openai_api_key or settings.openai_base_url:
        return None
    known = nearest(min(asked), ("human", "rehearsal"))
    guess = f"; did you mean {known}?" if known else ""
    return CredentialsError(
        f"no key for the model {', '.join(sorted(asked))}{guess}",
        why="OPENAI_API_KEY is not set in the environment or in a .env file",
        fix="export OPENAI_API_KEY=…; for a local server, export "
        "OPENAI_BASE_URL=http://127.0.0.1:11434/v1; to type the answers yourself, export "
        "LLM_MODEL=human; babyagi demo needs no model",
        guide="models",
    )


class Models:
    """The models and embedders of one process. All that use the same address share connections.

    Args:
        given: models that a program passes in, by name.
        ask_human: shows a prompt and returns the typed text; None without a terminal.
        tell: shows a person a line about a model that was found out or chosen.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        given: Mapping[str, ChatModel],
        ask_human: AskHuman | None,
        tell: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._given = given
        self._ask_human = ask_human
        self._tell = tell
        self._endpoint_by_url: dict[str, Endpoint] = {}
        self._engine: Engine | None = None

    async def prepare(self) -> None:
        """Import the client of the models that the settings name, if they are asked through it. It
        takes half a second, which no claimed task needs to wait for."""
        names = [
            name
            for role, name in self._settings.model_by_role.items()
            if role is not Role.EMBEDDING
        ]
        if set(names) - set(MODELS_WITHOUT_ENDPOINT) - set(self._given):
            await asyncio.to_thread(import_openai)

    def for_objective(self, objective: Objective) -> Mapping[Role, ChatModel]:
        """Return the model of each role of the objective. Roles with the same model share one
        client.

        Raises:
            SettingsError, CredentialsError: this worker lacks a key, or the price of a model
                although the objective has a cost limit.
        """
        settings, by_role = self._settings, objective.spec.model_by_role
        frozen = {role: name for role, name in by_role.items() if role is not Role.EMBEDDING}
        mine = dict(settings.model_by_role)
        names = mine if settings.use_my_model else frozen
        if settings.model_is_explicit and mine != frozen:
            which = "these are used, and not this worker's own (--use-my-model changes that)"
            if settings.use_my_model:
                which = "this worker uses its own models instead"
            self._tell(
                f"objective {objective.id} was started with {_listed(frozen.values())}; "
                f"{which}: {_listed(mine.values())}"
            )
        missing = missing_key(settings, set(names.values()) - set(self._given))
        if missing is not None:
            raise missing
        self._require_prices(objective, names.values())
        endpoint = self._open_endpoint(settings.openai_base_url)
        model_by_name = {
            name: self._open_model(name, objective.spec.temperature, endpoint)
            for name in sorted(set(names.values()))
        }
        return {role: model_by_name[name] for role, name in names.items()}

    @asynccontextmanager
    async def open_role(
        self, role: Role, *, client: AsyncOpenAI | None = None
    ) -> AsyncIterator[ChatModel]:
        """Yield the model that the settings name for a role, for work without an objective.
        `client`: a program's own client of the `openai` package, through which the model is
        called."""
        settings = self._settings
        if client is None:
            endpoint = self._open_endpoint(settings.openai_base_url)
        else:
            endpoint = Endpoint.over(
                client,
                timeout_s=settings.model_timeout_s,
                sleep=asyncio.sleep,
                random=random.SystemRandom().random,
            )
        try:
            name = settings.model_by_role[role]
            yield self._open_model(name, settings.openai_temperature, endpoint)
        finally:
            await endpoint.close()
            await self._close_engine()

    def open_embedder(self, name: str) -> Embedder:
        """Return the embedder of that name; nothing is requested or loaded before its first
        call."""
        if name == LOCAL_EMBEDDING_MODEL:
            return HashEmbedder()
        if name == ONNX_EMBEDDING_MODEL:
            return OnnxEmbedder(offload=asyncio.to_thread)
        return OpenAIEmbedder(
            name, self._open_endpoint(self._embedding_url()), price=self.embedding_price(name)
        )

    def embedding_price(self, name: str) -> Price | None:
        """Return the price of an embedding model from the built-in table, None if it is not there;
        prices in the settings are for the chat model."""
        return find_price(name, base_url=self._embedding_url())

    def _embedding_url(self) -> str:
        return self._settings.embedding_base_url or self._settings.openai_base_url

    def without_price(self, names: Iterable[str]) -> list[str]:
        """Return the models whose calls have no known price."""
        # a model that is handed in says itself what a call may cost
        asked = set(names) - set(MODELS_WITHOUT_ENDPOINT) - set(self._given)
        return sorted(name for name in asked if self._price(name) is None)

    async def close(self) -> None:
        """Close the connections, and unload what was loaded in this process."""
        while self._endpoint_by_url:
            await self._endpoint_by_url.popitem()[1].close()
        await self._close_engine()

    def _open_model(self, name: str, temperature: float | None, endpoint: Endpoint) -> ChatModel:
        if name in self._given:
            return self._given[name]
        if name == "rehearsal":
            return RehearsalModel()
        if name == "human":
            return self._open_human()
        if name == LLAMA_MODEL:
            from babyagi.llm.llama import LlamaModel

            return LlamaModel(self._open_engine(), temperature=temperature)
        settings = self._settings
        options: dict[str, Any] = {
            "temperature": temperature,
            "dialect": settings.dialect,
            "price": self._price(name),
        }
        if is_known_provider(settings.openai_base_url) or settings.protocol == "untested":
            return OpenAIModel(name, endpoint, **options)
        return self._open_learning(name, endpoint, options)

    def _open_learning(
        self, name: str, endpoint: Endpoint, options: Mapping[str, Any]
    ) -> LearningModel:
        """Return a model whose abilities are remembered. The person is told of the known ones, and
        of others."""
        home, address = self._settings.home, address_of(name, self._settings)

        def tell(found: Abilities) -> None:
            if said := describe(found):
                self._tell(f"{address}: {said}; {say_how(found, self._settings)}")

        def remember(found: Abilities) -> None:
            remember_abilities(home, address, write_abilities(found))
            tell(found)

        known = read_abilities(remembered_abilities(home, address))
        tell(known)
        return LearningModel(name, endpoint, known=known, remember=remember, **options)

    def _open_human(self) -> ChatModel:
        if self._ask_human is None:
            raise CredentialsError(
                "LLM_MODEL=human needs a person at a terminal",
                why="this program has no way to ask a person",
                fix="start it on a terminal, or choose another model with LLM_MODEL",
                guide="models",
            )
        return HumanModel(self._ask_human)

    def _open_endpoint(self, base_url: str) -> Endpoint:
        """Return the endpoint of an address; it is opened once, so that all callers share its
        circuit breaker."""
        settings, is_models = self._settings, base_url == self._settings.openai_base_url
        if base_url not in self._endpoint_by_url:
            endpoint = Endpoint(
                base_url=base_url,
                api_key=Account(
                    key=settings.openai_api_key.reveal(),
                    organization=settings.openai_organization if is_models else "",
                    azure_api_version=settings.azure_api_version if is_models else "",
                ),
                timeout_s=settings.model_timeout_s,
                proxies=self._settings.proxies,
                sleep=asyncio.sleep,
                random=random.SystemRandom().random,
            )
            endpoint.deadline = self._open_deadline(base_url)
            self._endpoint_by_url[base_url] = endpoint
        return self._endpoint_by_url[base_url]

    def _open_deadline(self, base_url: str) -> Deadline:
        """Return the deadline of the calls to an address, which begins with what was remembered in
        the last `REMEMBERED_DAYS`. The person is told when it grows."""
        address, home = redact_url(base_url) or "OpenAI", self._settings.home

        def remember(deadline_s: float) -> None:
            with suppress(OSError):  # no answer is lost because the disk is full
                remember_abilities(home, address, f"{deadline_s:g} {utc_now().date()}")
            self._tell(
                f"{address}: a call may be silent for {say_duration(deadline_s)} from now on"
            )

        known_s = _read_deadline(remembered_abilities(home, address))
        return Deadline(self._settings.model_timeout_s, known_s=known_s, remember=remember)

    def _open_engine(self) -> Engine:
        """Return the engine that runs a GGUF model in this process; it is opened once, and loads
        the model with the first call."""
        if self._engine is None:
            from babyagi.llm.llama import Engine

            settings = self._settings
            self._engine = Engine(
                settings.llama_model_path,
                context_tokens=settings.llama_ctx_max,
                n_threads=settings.llama_threads_num,
                timeout_s=settings.model_timeout_s,
                say=self._tell,
            )
        return self._engine

    async def _close_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

    def _require_prices(self, objective: Objective, names: Iterable[str]) -> None:
        """Raise `SettingsError` if the objective has a cost limit and this worker knows no price
        for one of the models."""
        unpriced, most = self.without_price(names), objective.spec.limits.max_cost_usd
        if most and unpriced:
            raise SettingsError(
                f"objective {objective.id} has a money limit of ${most:g}, which this worker "
                "cannot guarantee",
                why=f"no price is known here for {', '.join(unpriced)}",
                fix="set BABYAGI_PRICE=IN/OUT, in US dollars per million tokens",
                guide="limits",
            )

    def _price(self, name: str) -> Price | None:
        return find_price(
            name,
            base_url=self._settings.openai_base_url,
            chosen=self._settings.price,
        )


def _read_deadline(text: str) -> float:
    """Parse a stored deadline and its day; 0 if it is old, or none."""
    try:
        known_s, day = text.split()
        is_recent = utc_now().date() - date.fromisoformat(day) <= timedelta(days=REMEMBERED_DAYS)
        return min(float(known_s), MAX_DEADLINE_S) if is_recent else 0.0
    except ValueError:
        return 0.0


def address_of(model: str, settings: Settings) -> str:
    """Return the name under which the abilities of a model at the settings' server are stored."""
    return f"{model} at {redact_url(settings.openai_base_url)}"


def say_how(known: Abilities, settings: Settings) -> str:
    """Return in words how the model is asked to call tools: as follows from its abilities, or as
    the settings say."""
    if settings.effective_protocol == AUTO:
        return f"so tools are called {_HOW[choose_protocol(known)]}"
    return f"tools are called {_HOW[settings.protocol]}, as BABYAGI_PROTOCOL says"


async def probe_abilities(settings: Settings) -> None:
    """Ask the model that the settings name, by small questions, what it can do, and remember it.
    Nothing is asked at the address of a known provider, or if BABYAGI_PROTOCOL is untested.

    Raises:
        Whatever `ChatModel.complete` raises.
    """
    models = Models(settings, given={}, ask_human=None, tell=lambda line: None)
    async with models.open_role(Role.EXECUTION) as model:
        if isinstance(model, LearningModel):
            await find_abilities(partial(_ask_at, model), "probe", model)


async def _ask_at(model: ChatModel, path: str, prompt: Prompt) -> Completion:
    """Ask the model, for no objective, and so without a journal."""
    return await model.complete(prompt, role=Role.EXECUTION)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))
