"""The only code that chooses and opens backends: settings in, a working whole out."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyagi.agents.prompting import prompt_version
from babyagi.errors import CredentialsError, SettingsError, StoreUnusableError
from babyagi.files.folder import Folder
from babyagi.journal import Backends, Gate
from babyagi.llm.base import ChatModel, Embedder
from babyagi.llm.embeddings import OpenAIEmbedder
from babyagi.llm.endpoint import Endpoint
from babyagi.llm.human import HumanModel
from babyagi.llm.openai import OpenAIModel
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.loop import Bounds, Loop
from babyagi.notify import Notifier, make_sender
from babyagi.opening import open_index
from babyagi.results import Results
from babyagi.resultstore.hashing import HashEmbedder
from babyagi.resultstore.projector import Projector
from babyagi.resultstore.search import ResultSearch
from babyagi.settings import MODELS_WITHOUT_ENDPOINT, Settings, load_settings
from babyagi.tasks import Approval, Effect, Objective, ObjectiveSpec, Result, Role, ToolGrant, Worker
from babyagi.taskstore.base import TaskStore
from babyagi.taskstore.offload import ThreadOffload
from babyagi.taskstore.sql import open_sqlite
from babyagi.tools.base import Tool
from babyagi.tools.files import build_file_tools
from babyagi.tools.person import ASK_PERSON, build_ask_person
from babyagi.worker import Pace, Surroundings, WorkerLoop

if TYPE_CHECKING:
    from babyagi.llm.prices import Price

AskHuman = Callable[[str], Awaitable[str]]

ASK_TOOL = ToolGrant(name=ASK_PERSON, effect=Effect.IDEMPOTENT)
FILE_TOOLS = (ToolGrant(name="list_files", effect=Effect.READ), ToolGrant(name="read_file", effect=Effect.READ))
MAX_WORKERS_PER_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run came back: the objective as it is now, and the signal number that asked us to stop (None if nobody did)."""

    objective: Objective
    stopped_by_signal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of `babyagi.run`: the objective with its stop reason, its report as Markdown, and every result."""

    objective: Objective
    report: str
    results: tuple[Result, ...]


class App:
    """Everything that is needed to start objectives and to run them.

    `notices` says what the person should know before the first call.
    """

    def __init__(self, settings: Settings, store: TaskStore, *, identity: Worker, ask_human: AskHuman | None = None) -> None:
        self.settings = settings
        self.store = store
        self.notices: list[str] = []
        self._identity = identity
        self._ask_human = ask_human
        self._endpoint_by_url: dict[str, Endpoint] = {}

    async def start_objective(self, *, always_new: bool = False) -> tuple[Objective, bool]:
        """Create the objective that the settings describe, or find the unfinished or ended one that it is.

        Returns:
            The objective, and True when it was created by this call.
        """
        objective, is_new = await self.store.create_objective(self._spec(), uid=secrets.token_hex(8), always_new=always_new)
        if self.settings.files is not None:
            self._remember_folder(objective, self.settings.files)
        return objective, is_new

    async def run(self, objective_id: int) -> RunOutcome:
        """Work on the objective until it has ended and its report is written, is paused, or a signal drains this worker.

        A paused objective is resumed: asking for it to run is asking for that.
        """
        objective = await self.store.resume_objective(objective_id)
        async with AsyncExitStack() as stack:
            gate = Gate()
            loop = self._open_loop(objective, gate, stack)
            settings = self.settings
            pace = Pace(
                concurrency=settings.concurrency, lease_s=settings.lease_s, drain_s=settings.drain_s, max_failures=settings.max_failures
            )
            surroundings = Surroundings(
                identity=self._identity,
                sleep=asyncio.sleep,
                random=random.SystemRandom().random,
                new_id=lambda: new_worker_id(self._identity.name),
            )
            worker = WorkerLoop(self.store, loop, gate, pace=pace, surroundings=surroundings)
            work = worker.run(objective_id)
            target = settings.notify.reveal()
            objective, signal_number = await (Notifier(self.store, make_sender(target)).watch(objective_id, work) if target else work)
        return RunOutcome(objective=objective, stopped_by_signal=signal_number)

    @asynccontextmanager
    async def open_results(self, objective: Objective) -> AsyncIterator[Results]:
        """The objective's results, to be searched, checked and indexed anew by a person."""
        async with AsyncExitStack() as stack:
            embedder = self._open_embedder(objective.spec.model_by_role[Role.EMBEDDING])
            stack.push_async_callback(embedder.close)
            index = open_index(self.settings, stack)
            backends = Backends(store=self.store, models={}, embedder=embedder, gate=Gate(), sleep=asyncio.sleep)
            yield Results(backends, index, objective=objective, identity=self._identity, lease_s=self.settings.lease_s)

    # -- what belongs to the objective -----------------------------------------------------------------------------------

    def _spec(self) -> ObjectiveSpec:
        settings = self.settings
        settings.require_objective()
        limits = settings.limits
        unpriced = self._unpriced()
        if limits.max_cost_usd and unpriced:
            if settings.cost_limit_is_explicit:
                raise SettingsError(
                    f"the money limit of ${limits.max_cost_usd:g} cannot be held",
                    why=f"no price is known for {', '.join(unpriced)}",
                    fix="set BABYAGI_PRICE_IN and BABYAGI_PRICE_OUT (US dollars per million tokens), or --max-cost 0 for no money limit",
                    guide="limits",
                )
            limits = replace(limits, max_cost_usd=0.0)
            self.notices.append(
                f"no price is known for {', '.join(unpriced)}: the default money limit is off, the limit of "
                f"{limits.max_tokens:,} tokens holds"
            )
        embedding = settings.effective_embedding_model
        if embedding != "hash" and limits.max_cost_usd and self._embedding_price() is None:
            self.notices.append(f"no price is known for {embedding}: its vectors are counted as costing nothing, their tokens as tokens")
        return ObjectiveSpec(
            text=settings.objective,
            initial_task=settings.initial_task,
            instance_name=settings.instance_name,
            limits=limits,
            model_by_role={**settings.model_by_role, Role.EMBEDDING: embedding},
            temperature=settings.openai_temperature,
            embedding_space=self._open_embedder(embedding).space,
            results_store_name=settings.results_store_name,
            tools=(*(FILE_TOOLS if settings.files is not None else ()), *((ASK_TOOL,) if settings.ask else ())),
            approval=Approval(settings.approve),
            prompt_version=prompt_version(),
        )

    def _unpriced(self) -> list[str]:
        names = set(self.settings.model_by_role.values()) - set(MODELS_WITHOUT_ENDPOINT)
        return sorted(name for name in names if self._price(name, self.settings.openai_base_url) is None)

    def _price(self, name: str, base_url: str) -> Price | None:
        from babyagi.llm.prices import find_price

        return find_price(name, base_url=base_url, price_in=self.settings.price_in, price_out=self.settings.price_out)

    # -- opening ---------------------------------------------------------------------------------------------------------

    def _open_loop(self, objective: Objective, gate: Gate, stack: AsyncExitStack) -> Loop:
        spec, settings = objective.spec, self.settings
        embedder = self._open_embedder(spec.model_by_role[Role.EMBEDDING])
        stack.push_async_callback(embedder.close)
        if embedder.space != spec.embedding_space:
            raise SettingsError(
                f"this objective's results are embedded as {spec.embedding_space}",
                why=f"these settings embed as {embedder.space}, and vectors of two spaces cannot be compared",
                fix="set BABYAGI_EMBEDDING_MODEL (and its address) as they were when the objective was started",
                guide="results",
            )
        index = open_index(settings, stack)
        backends = Backends(store=self.store, models=self._open_models(spec, stack), embedder=embedder, gate=gate, sleep=asyncio.sleep)
        return Loop(
            backends,
            search=ResultSearch(self.store, index, objective=objective),
            projector=Projector(self.store, index, objective=objective),
            tools=self._open_tools(objective),
            bounds=Bounds(
                context_tokens=settings.context_tokens,
                max_output_tokens=settings.max_output_tokens,
                max_new_tasks=settings.max_new_tasks,
                max_depth=settings.max_depth,
            ),
            clock=utc_now,
        )

    def _open_models(self, spec: ObjectiveSpec, stack: AsyncExitStack) -> Mapping[Role, ChatModel]:
        """One client per model name, whatever roles it has."""
        names = {role: name for role, name in spec.model_by_role.items() if role is not Role.EMBEDDING}
        endpoint = self._open_endpoint(self.settings.openai_base_url)
        stack.push_async_callback(endpoint.close)
        model_by_name = {name: self._open_model(name, spec.temperature, endpoint) for name in sorted(set(names.values()))}
        return {role: model_by_name[name] for role, name in names.items()}

    def _open_model(self, name: str, temperature: float | None, endpoint: Endpoint) -> ChatModel:
        if name == "rehearsal":
            return RehearsalModel()
        if name == "human":
            return self._open_human()
        price = self._price(name, self.settings.openai_base_url)
        return OpenAIModel(name, endpoint, temperature=temperature, dialect=self.settings.dialect, price=price)

    def _open_endpoint(self, base_url: str) -> Endpoint:
        """One for each address, so that its circuit breaker is shared by all who ask there."""
        if base_url not in self._endpoint_by_url:
            self._endpoint_by_url[base_url] = Endpoint(
                base_url=base_url,
                api_key=self.settings.openai_api_key.reveal(),
                timeout_s=self.settings.model_timeout_s,
                sleep=asyncio.sleep,
                random=random.SystemRandom().random,
            )
        return self._endpoint_by_url[base_url]

    def _open_human(self) -> ChatModel:
        if self._ask_human is None:
            raise CredentialsError(
                "LLM_MODEL=human needs somebody at a terminal",
                why="nothing here can ask and be answered",
                fix="start it on a terminal, or choose another model with LLM_MODEL",
                guide="models",
            )
        return HumanModel(self._ask_human)

    def _open_embedder(self, name: str) -> Embedder:
        if name == "hash":
            return HashEmbedder()
        base_url = self.settings.embedding_base_url or self.settings.openai_base_url
        return OpenAIEmbedder(name, self._open_endpoint(base_url), price=self._embedding_price())

    def _embedding_price(self) -> Price | None:
        """From the table alone: what a person says about prices is about the chat model."""
        from babyagi.llm.prices import find_price

        base_url = self.settings.embedding_base_url or self.settings.openai_base_url
        return find_price(self.settings.effective_embedding_model, base_url=base_url)

    def _open_tools(self, objective: Objective) -> tuple[Tool, ...]:
        """The tools that the objective may use; a worker that lacks one must not work on it."""
        granted = {grant.name for grant in objective.spec.tools}
        tools = self._open_file_tools(objective) if granted - {ASK_PERSON} else ()
        return tuple(tool for tool in (*tools, build_ask_person()) if tool.name in granted)

    def _open_file_tools(self, objective: Objective) -> Sequence[Tool]:
        folder = self.settings.files or self._remembered_folder(objective)
        if folder is None or not folder.is_dir():
            raise SettingsError(
                f"objective {objective.id} needs a folder to read, and there is none here",
                why=f"{folder} is no folder" if folder else "it was started with --files, in another home",
                fix="give it again: --files FOLDER",
                guide="objectives",
            )
        return build_file_tools(Folder(folder), offload=asyncio.to_thread)

    def _remember_folder(self, objective: Objective, folder: Path) -> None:
        """Keep the folder's path in this home, so that `resume` finds it. It is this worker's, so it is not in the task store."""
        path = self.settings.home / "folders" / objective.uid
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(str(folder.resolve()), encoding="utf-8")

    def _remembered_folder(self, objective: Objective) -> Path | None:
        path = self.settings.home / "folders" / objective.uid
        return Path(path.read_text(encoding="utf-8")) if path.is_file() else None


@asynccontextmanager
async def open_store(settings: Settings, *, tell: Callable[[str], None] = lambda _: None) -> AsyncIterator[TaskStore]:
    """The task store of the home, to look at and to steer; opens no model and no result store. `tell`: see `open_sqlite`."""
    _make_home(settings.home)
    offload = ThreadOffload(name="taskstore")
    try:
        path = settings.home / "tasks.db"
        store = await open_sqlite(path, clock=utc_now, offload=offload, max_failures=settings.max_failures, tell=tell)
        try:
            yield store
        finally:
            await store.close()
    finally:
        offload.close()


@asynccontextmanager
async def open_app(
    settings: Settings, *, ask_human: AskHuman | None = None, tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator[App]:
    """The whole, closed again in the reverse order. What an earlier process of our name left behind is queued again.

    Args:
        ask_human: shows a prompt and returns what was typed, for LLM_MODEL=human; None where nobody is there.
        tell: see `open_sqlite`.
    """
    async with open_store(settings, tell=tell) as store:
        with _take_name(settings) as name:
            home, now = _home_id(settings.home), utc_now()
            await store.reap_workers(name=name, home=home)
            identity = Worker(id=new_worker_id(name), name=name, host=socket.gethostname(), pid=os.getpid(), home=home, lease_until=now)
            yield App(settings, store, identity=identity, ask_human=ask_human)


async def run_objective(options: Mapping[str, Any], *, environ: Mapping[str, str], cwd: Path) -> Outcome:
    """What `babyagi.run` does. `options` are settings by name; the rest comes from the environment, as on the command line."""
    settings = load_settings(flags=options, environ={**environ, "ENABLE_COMMAND_LINE_ARGS": "true"}, cwd=cwd).settings
    async with open_app(settings) as app:
        objective, _ = await app.start_objective()
        if not objective.has_report:
            objective = (await app.run(objective.id)).objective
        report = await app.store.report(objective.id)
        return Outcome(objective=objective, report=report or "", results=tuple(await app.store.results(objective.id)))


def utc_now() -> datetime:
    return datetime.now(UTC)


def new_worker_id(name: str) -> str:
    return f"{name}-{secrets.token_hex(4)}"


def _make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(13, "not writable")
    except OSError as error:
        raise StoreUnusableError(
            f"the home {home} cannot be used",
            why=str(error.strerror or error),
            fix="set BABYAGI_HOME to a folder that you may write to",
            guide="settings",
        ) from error


def _home_id(home: Path) -> str:
    """What tells this home from all others, made at its first use: two machines may call a worker by the same name."""
    path = home / "home_id"
    if not path.is_file():
        made = path.with_name(f"home_id.{os.getpid()}")
        made.write_text(secrets.token_hex(8), encoding="utf-8")
        with suppress(FileExistsError):  # another process was quicker
            os.link(made, path)
        made.unlink()
    return path.read_text(encoding="utf-8")


@contextmanager
def _take_name(settings: Settings) -> Iterator[str]:
    """Hold the lock of a worker's name in this home while we live: the first free one of `name`, `name-2`, …

    Who holds a name's lock knows that whoever had the name before is dead, and need not wait for leases.
    """
    base = settings.worker_name or socket.gethostname()
    folder = settings.home / "locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in range(1, MAX_WORKERS_PER_NAME + 1):
        name = base if number == 1 else f"{base}-{number}"
        with (folder / f"{name.replace('/', '_')}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield name
            return
    raise SettingsError(f"{MAX_WORKERS_PER_NAME} workers called {base} run in this home already", fix="set BABYAGI_WORKER_NAME")
