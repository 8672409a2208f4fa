"""The only code that chooses and opens backends: settings in, a working whole out."""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import socket
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
)
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyagi import events, private
from babyagi.agents.prompting import prompt_version
from babyagi.backends import open_index, open_store, utc_now
from babyagi.errors import (
    CredentialsError,
    LimitReachedError,
    ModelRejectedError,
    SettingsError,
    ToolError,
)
from babyagi.files import Folder
from babyagi.home import (
    PAGES,
    SCRATCH,
    home_id,
    is_bearer_dead,
    make_home,
    memory_of,
    new_worker_id,
    remember_abilities,
    remember_concurrency,
    remember_folder,
    remember_touch,
    remembered_abilities,
    remembered_concurrency,
    remembered_folder,
    remembered_hooks,
    take_name,
)
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer
from babyagi.index.port import VectorIndex
from babyagi.index.shared import open_search
from babyagi.journal import Backends, Gate, OnPiece
from babyagi.llm.client import Account, Endpoint, OpenAIModel, missing_key
from babyagi.llm.embeddings import OnnxEmbedder, OpenAIEmbedder, missing_files
from babyagi.llm.human import HumanModel
from babyagi.llm.learning import (
    LearningModel,
    describe,
    is_known_provider,
    read_abilities,
    write_abilities,
)
from babyagi.llm.llama import Engine, EngineBounds, LlamaEmbedder, LlamaModel
from babyagi.llm.port import Abilities, ChatModel, Embedder
from babyagi.llm.prices import Price, find_price, hold_money_limit
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.loop import Bounds, Enrich, Loop, OwnAgent
from babyagi.memory.log import MemoryLog, path_of
from babyagi.memory.remembering import TaskMemory
from babyagi.net.door import Door
from babyagi.next_command import quoted, raise_limit
from babyagi.notify import (
    KEY_FILE,
    TIMEOUT_S,
    Hooks,
    Notifier,
    Signer,
    is_address,
    make_guarded_sender,
    make_sender,
)
from babyagi.react.outputs import OutputType, require_json
from babyagi.react.protocols.choice import AUTO, HELD, choose_protocol
from babyagi.redaction import redact_url
from babyagi.results import Results
from babyagi.retrieval.engines import ENGINES, KEYLESS, Answering, Searcher
from babyagi.retrieval.pages import Pages
from babyagi.retrieval.rank import BM25, CrossEncoder
from babyagi.schedules import (
    DAILY_LIMIT_USD,
    CatchUp,
    Overlap,
    Rule,
    Schedule,
    ScheduleSpec,
    find_zone,
    parse_local,
    require_cron,
    schedule_uid,
)
from babyagi.settings.fields import (
    LLAMA_MODEL,
    LOCAL_EMBEDDING_MODEL,
    MODELS_WITHOUT_ENDPOINT,
    ONNX_EMBEDDING_MODEL,
    Settings,
)
from babyagi.settings.load import bare_environment, variables_here
from babyagi.settings.values import parse_duration_s
from babyagi.tasks import (
    Approval,
    Event,
    Limits,
    Memory,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Planning,
    Role,
    StopReason,
    TaskStatus,
    ToolGrant,
    Worker,
)
from babyagi.taskstore.lifecycle import further_question
from babyagi.taskstore.limits import find_used_up
from babyagi.taskstore.port import TaskStore
from babyagi.tools.base import Tool
from babyagi.tools.catalog import NEED_A_FOLDER, TOOL_NAMES, ToolContext, grant_tools, open_tools
from babyagi.tools.declare import load_tools
from babyagi.tools.issues import GITHUB_URL, GitHub
from babyagi.tools.mcp import Connection, load_servers, open_servers
from babyagi.tools.pipelines import (
    DEEPSET_KEY,
    DEEPSET_URL,
    RemotePipeline,
    deepset_pipeline,
    haystack_pipeline,
)
from babyagi.tools.recall import RECALL
from babyagi.tracing import NO_TRACER, Tracer, open_tracer
from babyagi.worker.lease import reap_namesakes
from babyagi.worker.process import Around, Runtime, WorkerLoop
from babyagi.worker.serving import Pace, Patience, nobody

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from babyagi.components.description import AgentDescription, Granted

MAX_LOOKED_AT = 200  # of the newest events of a kind, when it is asked whether a model answered
ANSWERED = (StopReason.FINISHED, StopReason.OBJECTIVE_MET)
MAX_SHOWN = 8  # results that a further question is sure to be shown

_HOW = {
    "native": "in fields of their own",
    HELD: "as JSON that is held to a schema",
    "json": "as JSON",
    "text": "in labelled text",
}

AskHuman = Callable[[str], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run came back: the objective as it is now, and the signal number that asked us to stop
    (None if nobody did)."""

    objective: Objective
    stopped_by_signal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a program hands in that no setting can name: functions as tools, models by their names,
    what it wants of the report, and what is done with each result. `connections` lead to servers,
    whose tools are among `tools`, as are those of `agent`, which carries the tasks out; `faults`
    says which tools are not there, and why."""

    tools: tuple[Tool, ...] = ()
    connections: tuple[Connection, ...] = ()
    faults: tuple[str, ...] = ()
    agent: AgentDescription | None = None
    model_by_name: Mapping[str, ChatModel] = field(default_factory=dict)
    output: OutputType | None = None
    enrich: Enrich | None = None


NOTHING_GIVEN = Given()


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """Who is there while a worker works: `is_person_there`, somebody who is asked what tasks wait
    for; `can_resume`, somebody who can end a pause from here, so that it is waited for;
    `on_piece`, somebody who reads answers as they are written."""

    is_person_there: Callable[[], bool] = nobody
    can_resume: bool = False
    on_piece: OnPiece | None = None


ALONE = Company()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When a schedule fires, and what becomes of a tick, as a person writes it: durations such as
    `90s`, `2h` or `1d`, one of `cron`, `every` and `at`. `daily_limit` is US dollars, None for the
    usual ones."""

    cron: str | None = None
    every: str | None = None
    at: str | None = None
    tz: str = "UTC"
    grace: str = "1h"
    overlap: str = "skip"
    catch_up: str = "one"
    jitter: str = "0s"
    daily_limit: float | None = None


class App:
    """Everything that is needed to start objectives and to run them.

    `notices` says what the person should know before the first call.
    """

    def __init__(
        self,
        settings: Settings,
        store: TaskStore,
        *,
        identity: Worker,
        ask_human: AskHuman | None = None,
        tell: Callable[[str], None] = lambda _: None,
        given: Given = NOTHING_GIVEN,
    ) -> None:
        self._given = given
        self._worker: WorkerLoop | None = None
        self.settings = settings
        self.store = store
        self.notices: list[str] = []
        self._identity = identity
        self._ask_human = ask_human
        self._tell = tell
        self._endpoint_by_url: dict[str, Endpoint] = {}
        self._engine: Engine | None = None
        self._on_piece: OnPiece | None = None
        self._concurrency = settings.concurrency
        self._tracer: Tracer = NO_TRACER
        self._granted: frozenset[str] | None = None  # of the tools; None for all

    def beside(
        self, settings: Settings | None = None, *, tools: Collection[str] | None = None
    ) -> App:
        """Another whole over the same task store, for work beside that of this worker: a name, an
        id and connections of its own, and other settings where they are given.

        Args:
            tools: the names of those that it grants, of all that it could; None for all.
        """
        name = f"{self._identity.name}-beside"
        identity = replace(self._identity, id=new_worker_id(name), name=name)
        made = App(
            settings or self.settings,
            self.store,
            identity=identity,
            tell=self._tell,
            given=self._given,
        )
        made._granted = None if tools is None else frozenset(tools)
        return made

    @property
    def agent_name(self) -> str:
        """Of the agent that carries tasks out, '' where it is not one of a file."""
        return self._given.agent.name if self._given.agent else ""

    async def start_objective(
        self, *, always_new: bool = False, uid: str = ""
    ) -> tuple[Objective, bool]:
        """Create the objective that the settings describe, or find the unfinished or ended one that
        it is.

        Args:
            uid: that it gets; a random one when not given.

        Returns:
            The objective, and True when it was created by this call.
        """
        objective, is_new = await self.store.create_objective(
            self._spec(), uid=uid or secrets.token_hex(8), always_new=always_new
        )
        self._remember(objective)
        return objective, is_new

    async def add_schedule(self, timing: Timing, *, uid: str = "") -> Schedule:
        """Keep the objective that the settings describe as what each tick begins.

        Args:
            uid: that it gets; a random one when not given.

        Raises:
            SettingsError: the timing cannot be read, is never due, or a tick's limit of money does
                not fit under that of a day.
        """
        uid = uid or secrets.token_hex(8)
        spec = self._spec()
        daily_usd = self._daily_limit(spec, timing.daily_limit)
        if daily_usd and not spec.limits.max_cost_usd:
            spec = replace(spec, limits=replace(spec.limits, max_cost_usd=daily_usd))
        schedule = await self.store.add_schedule(
            read_timing(timing, spec, daily_usd=daily_usd, now=utc_now()), uid=uid
        )
        if self.settings.files is not None:
            remember_folder(self.settings.home, uid, self.settings.files)
        return schedule

    def _daily_limit(self, spec: ObjectiveSpec, given: float | None) -> float:
        """What all ticks of a day may cost, 0 where that is not limited."""
        if given == 0:
            return 0.0
        if not spec.has_price:
            if given is not None:
                raise SettingsError(
                    f"the limit of ${given:g} a day cannot be held",
                    why="no price is known for a model of this objective",
                    fix="set BABYAGI_PRICE_IN and BABYAGI_PRICE_OUT, or --daily-limit 0",
                    guide="schedules",
                )
            self.notices.append("no price is known, so the ticks have no limit of money a day")
            return 0.0
        limit, most = DAILY_LIMIT_USD if given is None else given, spec.limits.max_cost_usd
        if most > limit:
            raise SettingsError(
                f"a tick may cost ${most:g}, and all of a day ${limit:g}: none would ever fire",
                fix=f"--daily-limit {most:g}, or a lower --max-cost",
                guide="schedules",
            )
        return limit

    async def ask_further(
        self, objective: Objective, question: str, *, limits: Limits | None = None
    ) -> Objective:
        """Ask something beside the objective's text, from the results that there are; it is open
        again then. What was asked already is not asked again while the objective goes on, or where
        it ended with everything answered.

        Raises:
            LimitReachedError: a limit lets no task begin, before anything is changed.
            ObjectiveStoppedError, SettingsError: see `TaskStore.ask_further`.
        """
        self._remember(objective)
        is_going_on = not objective.has_report or objective.stop_reason in ANSWERED
        if is_going_on and further_question(question) in objective.spec.further:
            return objective
        require_room(objective, question=question, limits=limits)
        tasks = await self.store.tasks(objective.id)
        built_on = {task_id for task in tasks for task_id in (task.parent_id, *task.after)}
        last = [task.id for task in tasks if task.status is TaskStatus.DONE]
        leaves = [task_id for task_id in sorted(last) if task_id not in built_on]
        return await self.store.ask_further(
            objective.id, question=question, after=leaves[-MAX_SHOWN:], limits=limits
        )

    async def run(
        self, objective: Objective, company: Company = ALONE, *, after_id: int | None = None
    ) -> RunOutcome:
        """Work on the objective until it has ended and its report is written, is paused, or a
        signal drains this worker.

        A paused objective is resumed: asking for it to run is asking for that. One that a person
        must mend something for, and that got no answer in this run, is set aside: no worker takes
        it up by itself.

        Args:
            after_id: of the last event before this run; None: of the last one until now.
        """
        self._remember(objective)
        if objective.status is ObjectiveStatus.PAUSED:
            await self.store.resume_objective(objective.id)
        if after_id is None:
            after_id = await self.store.last_event_id(objective.id)
        patience = Patience(with_pauses=company.can_resume, is_person_there=company.is_person_there)
        try:
            async with self._open_worker(company) as worker, self._notifying(objective.id):
                objective, number = await worker.run(
                    objective.id, patience=patience, known=objective
                )
        except (CredentialsError, ModelRejectedError, SettingsError) as error:
            await self.set_aside(objective.id, after_id=after_id, why=error.what)
            raise
        if number is not None:
            why = await self._find_outage(objective.id, after_id=after_id)
            if why:
                await self.set_aside(objective.id, after_id=after_id, why=why)
                objective = await self.store.objective(objective.id)
        return RunOutcome(objective=objective, stopped_by_signal=number)

    async def set_aside(self, objective_id: int, *, why: str, after_id: int | None = None) -> None:
        """Pause the objective, unless somebody else is at work on it, or a model has answered after
        the event `after_id`."""
        is_shared = any(
            worker.id != self._identity.id and worker.lease_left_s >= 0
            for worker in await self.store.workers()
            for joined in worker.joined
            if joined.objective_id == objective_id
        )
        steps = (
            await self._events_since(objective_id, events.STEP_RECORDED, after_id)
            if after_id is not None
            else []
        )
        if not is_shared and not any(event.data.get("kind") == "model" for event in steps):
            await self.store.pause_objective(objective_id, detail=why)

    async def _find_outage(self, objective_id: int, *, after_id: int) -> str:
        """Why the model could not be reached in this run, '' where it could."""
        found = await self._events_since(objective_id, events.MODEL_UNAVAILABLE, after_id)
        return str(found[-1].data.get("reason", "")) if found else ""

    async def _events_since(self, objective_id: int, kind: str, after_id: int) -> list[Event]:
        found = await self.store.events_of(objective_id, kinds=[kind], limit=MAX_LOOKED_AT)
        return [event for event in found if event.id > after_id]

    def _remember(self, objective: Objective) -> None:
        """Keep what belongs to this worker and to the person here, so that `resume` finds it."""
        settings = self.settings
        remember_touch(settings.home, objective.uid, objective.id)
        if settings.files is not None:
            remember_folder(settings.home, objective.uid, settings.files)
        if settings.concurrency_is_explicit:
            remember_concurrency(settings.home, objective.uid, settings.concurrency)
        else:
            self._concurrency = (
                remembered_concurrency(settings.home, objective.uid) or settings.concurrency
            )

    async def join(self, objective: Objective, company: Company = ALONE) -> RunOutcome:
        """Work on the objective beside others until it has ended and its report is written, or a
        signal drains this worker.

        A pause is waited for, and so is the mending of what this worker lacks; `tell` says what
        that is.
        """
        patience = Patience(
            with_pauses=True, when_blocked=True, is_person_there=company.is_person_there
        )
        async with self._open_worker(company) as worker, self._notifying(objective.id):
            objective, number = await worker.run(objective.id, patience=patience, known=objective)
        return RunOutcome(objective=objective, stopped_by_signal=number)

    async def serve_all(self, around: Around, company: Company = ALONE) -> int | None:
        """Work on all active objectives of the store, present and future, until a signal drains
        this worker; return its number.

        Args:
            around: awaits the work on each objective, from when it is joined until it is left.
        """
        notifier = self._make_notifier()

        async def notify_of(objective_id: int, work: Coroutine[Any, Any, Objective]) -> Objective:
            async def notifying() -> Objective:
                async with nullcontext() if notifier is None else notifier.watching(objective_id):
                    return await work

            return await around(objective_id, notifying())

        async with (
            self._open_worker(company, notify_of) as worker,
            nullcontext() if notifier is None else notifier.telling_the_rest(),
        ):
            return await worker.serve_all(is_person_there=company.is_person_there)

    def _notifying(self, objective_id: int) -> AbstractAsyncContextManager[None]:
        """Tell whom the settings name, if they name one, of what happens meanwhile."""
        notifier = self._make_notifier()
        return nullcontext() if notifier is None else notifier.watching(objective_id)

    @asynccontextmanager
    async def open_results(
        self, objective: Objective, *, model: str = ""
    ) -> AsyncIterator[Results]:
        """The objective's results, to be searched, checked and indexed anew by a person; `model`:
        embedded by another one than it has."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close_endpoints)
            embedder = self._open_embedder(model or objective.spec.model_by_role[Role.EMBEDDING])
            index = open_index(self.settings, stack)
            backends = Backends(
                store=self.store, models={}, embedder=embedder, gate=Gate(), sleep=asyncio.sleep
            )
            yield Results(
                backends,
                index,
                objective=objective,
                identity=self._identity,
                lease_s=self.settings.lease_s,
            )

    @asynccontextmanager
    async def _open_worker(
        self, company: Company, around: Around | None = None
    ) -> AsyncIterator[WorkerLoop]:
        settings, self._on_piece = self.settings, company.on_piece
        pace = Pace(
            concurrency=self._concurrency,
            lease_s=settings.lease_s,
            drain_s=settings.drain_s,
            max_failures=settings.max_failures,
        )
        runtime = Runtime(
            identity=self._identity,
            sleep=asyncio.sleep,
            random=random.SystemRandom().random,
            new_id=lambda: new_worker_id(self._identity.name),
            knows_dead=partial(is_bearer_dead, settings.home),
            tell=self._tell,
            around=around,
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close_endpoints)
            self._tracer = open_tracer(settings.otel_endpoint)
            if self._tracer is not NO_TRACER:
                stack.push_async_callback(asyncio.to_thread, self._tracer.close)
            index = open_index(settings, stack)
            self._worker = WorkerLoop(
                self.store, partial(self._open_loop, index), pace=pace, runtime=runtime
            )
            yield self._worker

    def stop(self) -> None:
        """As the first signal does: no further call, what is in flight may end within `drain_s`."""
        if self._worker is not None:
            self._worker.stop()

    @property
    def name(self) -> str:
        """The worker's."""
        return self._identity.name

    def _make_notifier(self) -> Notifier | None:
        settings = self.settings
        target = settings.notify.reveal()
        if not target:
            return None
        signer = self._make_signer() if is_address(target) else None
        send = make_sender(
            target, environ=bare_environment(), proxies=settings.proxies, signer=signer
        )
        return Notifier(
            self.store,
            send,
            now=utc_now,
            with_text=signer is not None,
            secrets=settings.known_secrets,
        )

    def open_hooks(self) -> Hooks:
        """What tells the addresses that were named with single objectives of this home."""
        settings = self.settings
        signer = self._make_signer()
        door = Door(allow=settings.web_allow, proxies=settings.proxies, timeout_s=TIMEOUT_S)

        def open_notifier(address: str) -> Notifier:
            return Notifier(
                self.store,
                make_guarded_sender(address, door=door, signer=signer),
                now=utc_now,
                with_text=True,
                secrets=settings.known_secrets,
                kind=events.HOOK_TOLD,
            )

        find = partial(remembered_hooks, settings.home)
        return Hooks(self.store, find=find, open_notifier=open_notifier, now=utc_now)

    def _make_signer(self) -> Signer:
        make_home(self.settings.home)
        path = self.settings.home / KEY_FILE
        key = private.keep_word(path, new_word=lambda: secrets.token_urlsafe(32))
        return Signer(key=key, now_s=lambda: utc_now().timestamp())

    # -- what belongs to the objective
    # -----------------------------------------------------------------------------------

    def _spec(self) -> ObjectiveSpec:
        settings = self.settings
        settings.require_objective()
        limits = self.limits(settings.model_by_role)
        embedding = settings.effective_embedding_model
        if (
            not self._open_embedder(embedding).is_local
            and limits.max_cost_usd
            and self._embedding_price(embedding) is None
        ):
            self._note_free_vectors(embedding)
        return ObjectiveSpec(
            text=settings.objective,
            initial_task=settings.initial_task,
            instance_name=settings.instance_name,
            limits=limits,
            model_by_role={**settings.model_by_role, Role.EMBEDDING: embedding},
            temperature=settings.openai_temperature,
            has_price=not self._unpriced(settings.model_by_role),
            embedding_space=self._open_embedder(embedding).space,
            results_store_name=settings.results_store_name,
            tools=self._grants(),
            approval=Approval(settings.approve),
            memory=Memory(settings.memory),
            planning=Planning(settings.planning),
            output_schema=self._given.output.schema if self._given.output else None,
            agent=self.agent_name,
            prompt_version=prompt_version(),
        )

    def _grants(self) -> tuple[ToolGrant, ...]:
        settings = self.settings
        shipped = grant_tools(
            has_folder=settings.files is not None, more=settings.tools, may_ask=settings.ask
        )
        if self._given.faults:
            raise SettingsError(
                "not all tools that were named are there",
                why="; ".join(self._given.faults),
                fix="babyagi mcp list shows which servers answer",
                guide="tools",
            )
        grants = (*shipped, *map(grant_given, self._given.tools))
        taken = Counter([*TOOL_NAMES, *(tool.name for tool in self._given.tools)])
        if twice := [name for name, n in taken.items() if n > 1]:
            raise SettingsError(
                f"two tools have the name {twice[0]}", fix="rename one of them", guide="tools"
            )
        if self._granted is None:
            return grants
        names = {grant.name for grant in grants}
        if unknown := self._granted - names:
            raise SettingsError(
                f"the tool {_listed(unknown)} is not handed out here",
                why=f"handed out are: {_listed(names) or 'none'}",
                fix="start it with --tools or --files, such as babyagi serve --tools web",
                guide="serve",
            )
        return tuple(grant for grant in grants if grant.name in self._granted)

    def _note_free_vectors(self, embedding: str) -> None:
        """Raises `SettingsError` where a person set the limit of money: with vectors of unknown
        price it cannot be held."""
        if self.settings.cost_limit_is_explicit:
            raise SettingsError(
                f"the money limit of ${self.settings.max_cost_usd:g} cannot be held",
                why=f"no price is known for {embedding}, which makes the vectors",
                fix=(
                    f"BABYAGI_EMBEDDING_MODEL={LOCAL_EMBEDDING_MODEL} costs nothing, or 0 "
                    "for no money limit: --max-cost 0"
                ),
                guide="limits",
            )
        self.notices.append(
            f"no price is known for {embedding}: its vectors are counted as costing nothing, "
            "their tokens as tokens"
        )

    def limits(self, roles: Iterable[Role]) -> Limits:
        """The limits of these settings. That of money is off, with a notice, where nobody set it
        and a model of these roles has no price.

        Raises:
            SettingsError: a person set the limit of money, and it cannot be held.
        """
        limits, notice = hold_money_limit(
            self.settings.limits,
            unpriced=self._unpriced(roles),
            is_explicit=self.settings.cost_limit_is_explicit,
        )
        self.notices += [notice] if notice else []
        return limits

    def _unpriced(self, roles: Iterable[Role]) -> list[str]:
        return self._without_price(self.settings.model_by_role[role] for role in roles)

    def _without_price(self, names: Iterable[str]) -> list[str]:
        # a model that is handed in says itself what a call may cost
        asked = set(names) - set(MODELS_WITHOUT_ENDPOINT) - set(self._given.model_by_name)
        return sorted(name for name in asked if self._price(name) is None)

    def _price(self, name: str) -> Price | None:
        return find_price(
            name,
            base_url=self.settings.openai_base_url,
            price_in=self.settings.price_in,
            price_out=self.settings.price_out,
        )

    # -- opening
    # ----------------------------------------------------------------------------------------------

    def _open_loop(self, index: VectorIndex, objective: Objective, gate: Gate) -> Loop:
        """What the work on one objective needs; endpoints and the index are those of the process.

        Raises:
            SettingsError, CredentialsError: this worker lacks what the objective needs.
        """
        spec, settings = objective.spec, self.settings
        agent = self._find_agent(objective)
        embedder = self._open_embedder(spec.model_by_role[Role.EMBEDDING])
        if embedder.space != spec.embedding_space:
            raise SettingsError(
                f"this objective's results are embedded as {spec.embedding_space}",
                why=(
                    f"these settings embed as {embedder.space}, and vectors of two spaces "
                    "cannot be compared"
                ),
                fix=(
                    f"babyagi index rebuild --objective {objective.id} --embedding-model "
                    "NAME, or the embedder's address as it was"
                ),
                guide="results",
            )
        if isinstance(embedder, OnnxEmbedder) and (missing := missing_files()):
            self._tell(
                f"objective {objective.id}: its results are found by words alone: of the "
                f"embedding model's files {missing}"
            )
        backends = Backends(
            store=self.store,
            models=self._open_models(objective),
            embedder=embedder,
            gate=gate,
            sleep=asyncio.sleep,
            max_output_tokens=settings.longest_output_tokens,
            on_piece=self._on_piece,
            tracer=self._tracer,
        )
        return Loop(
            backends,
            search=open_search(self.store, index, objective=objective),
            indexer=Indexer(self.store, index, objective=objective),
            tools=self._open_tools(objective),
            bounds=Bounds(
                context_tokens=settings.context_tokens,
                max_output_tokens=settings.max_output_tokens,
                max_new_tasks=settings.max_new_tasks,
                max_depth=settings.max_depth,
                protocol=_protocol_of(agent) or settings.protocol,
                agent=self._open_agent(agent, objective) if agent else None,
                read_output=self._given.output.read if self._given.output else require_json,
                enrich=self._given.enrich,
            ),
            clock=utc_now,
        )

    def _open_models(self, objective: Objective) -> Mapping[Role, ChatModel]:
        """One client per model name, whatever roles it has."""
        frozen = {
            role: name
            for role, name in objective.spec.model_by_role.items()
            if role is not Role.EMBEDDING
        }
        mine = dict(self.settings.model_by_role)
        names = mine if self.settings.use_my_model else frozen
        if self.settings.model_is_explicit and mine != frozen:
            which = (
                "this worker uses its own"
                if names is mine
                else ("they are used, not this worker's (BABYAGI_USE_MY_MODEL=true changes that)")
            )
            self._tell(
                f"objective {objective.id} was started with {_listed(frozen.values())}; "
                f"{which}: {_listed(mine.values())}"
            )
        missing = missing_key(
            [name for name in names.values() if name not in self._given.model_by_name],
            has_key=bool(self.settings.openai_api_key),
            base_url=self.settings.openai_base_url,
        )
        if missing is not None:
            raise missing
        self._require_prices(objective, names.values())
        endpoint = self._open_endpoint(self.settings.openai_base_url)
        model_by_name = {
            name: self._open_model(name, objective.spec.temperature, endpoint)
            for name in sorted(set(names.values()))
        }
        return {role: model_by_name[name] for role, name in names.items()}

    def _require_prices(self, objective: Objective, names: Iterable[str]) -> None:
        """Raises `SettingsError` where this worker could not hold the objective's limit of
        money."""
        unpriced = self._without_price(names)
        if objective.spec.limits.max_cost_usd and unpriced:
            raise SettingsError(
                (
                    f"objective {objective.id} has a money limit of "
                    f"${objective.spec.limits.max_cost_usd:g}, which this worker cannot hold"
                ),
                why=f"no price is known here for {', '.join(unpriced)}",
                fix="set BABYAGI_PRICE_IN and BABYAGI_PRICE_OUT, in US dollars per million tokens",
                guide="limits",
            )

    def _open_model(self, name: str, temperature: float | None, endpoint: Endpoint) -> ChatModel:
        if name in self._given.model_by_name:
            return self._given.model_by_name[name]
        if name == "rehearsal":
            return RehearsalModel()
        if name == "human":
            return self._open_human()
        if name == LLAMA_MODEL:
            return LlamaModel(self._open_engine(), temperature=temperature)
        base_url = self.settings.openai_base_url
        is_known = is_known_provider(base_url)
        model = OpenAIModel(
            name,
            endpoint,
            temperature=temperature,
            dialect=self.settings.dialect,
            price=self._price(name),
            is_watched=not is_known,
        )
        if is_known or not self.settings.probe:
            return model
        return self._open_learning(model, address_of(name, self.settings))

    def _open_learning(self, model: ChatModel, address: str) -> ChatModel:
        """The model, with what is remembered of it; the person is told what is known, and what is
        found out."""
        home, told = self.settings.home, [""]

        def tell(found: Abilities) -> None:
            known = describe(found)
            if known != told[0]:
                told[0] = known
                self._tell(f"{address}: {known}; {say_how(found, self.settings)}")

        def remember(found: Abilities) -> None:
            remember_abilities(home, address, write_abilities(found))
            tell(found)

        known = read_abilities(remembered_abilities(home, address))
        tell(known)
        return LearningModel(model, known=known, remember=remember)

    @asynccontextmanager
    async def open_model(
        self, role: Role, *, client: AsyncOpenAI | None = None
    ) -> AsyncIterator[ChatModel]:
        """The model of a role, as these settings name it, for work outside of any objective; with
        a client of a program it is asked through that one."""
        endpoint = (
            self._open_endpoint(self.settings.openai_base_url)
            if client is None
            else Endpoint.over(
                client,
                timeout_s=self.settings.model_timeout_s,
                sleep=asyncio.sleep,
                random=random.SystemRandom().random,
            )
        )
        try:
            yield self._open_model(
                self.settings.model_by_role[role], self.settings.openai_temperature, endpoint
            )
        finally:
            await endpoint.close()
            await self._close_engine()

    def _open_endpoint(self, base_url: str) -> Endpoint:
        """One for each address, so that its circuit breaker is shared by all who ask there."""
        settings, is_models = self.settings, base_url == self.settings.openai_base_url
        if base_url not in self._endpoint_by_url:
            self._endpoint_by_url[base_url] = Endpoint(
                base_url=base_url,
                api_key=Account(
                    key=settings.openai_api_key.reveal(),
                    organization=settings.openai_organization if is_models else "",
                    azure_api_version=settings.azure_api_version if is_models else "",
                ),
                timeout_s=self.settings.model_timeout_s,
                proxies=self.settings.proxies,
                sleep=asyncio.sleep,
                random=random.SystemRandom().random,
            )
        return self._endpoint_by_url[base_url]

    async def _close_endpoints(self) -> None:
        while self._endpoint_by_url:
            await self._endpoint_by_url.popitem()[1].close()
        await self._close_engine()

    def _open_engine(self) -> Engine:
        """One for this process, whatever asks it; the model is loaded with the first question."""
        if self._engine is None:
            settings = self.settings
            self._engine = Engine(
                settings.llama_model_path,
                bounds=EngineBounds(
                    context_tokens=settings.llama_ctx_max,
                    n_threads=settings.llama_threads_num,
                    idle_s=settings.llama_idle_s,
                    timeout_s=settings.model_timeout_s,
                ),
                say=self._tell,
            )
        return self._engine

    async def _close_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()

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
        if name == LOCAL_EMBEDDING_MODEL:
            return HashEmbedder()
        if name == ONNX_EMBEDDING_MODEL:
            return OnnxEmbedder(offload=asyncio.to_thread)
        if name == LLAMA_MODEL:
            return LlamaEmbedder(self._open_engine())
        base_url = self.settings.embedding_base_url or self.settings.openai_base_url
        return OpenAIEmbedder(
            name, self._open_endpoint(base_url), price=self._embedding_price(name)
        )

    def _embedding_price(self, name: str) -> Price | None:
        """From the table alone: what a person says about prices is about the chat model."""
        base_url = self.settings.embedding_base_url or self.settings.openai_base_url
        return find_price(name, base_url=base_url)

    def require_hands(self, objective: Objective) -> None:
        """Raises SettingsError where this process lacks a tool of the objective, or the agent that
        carries its tasks out."""
        self._find_agent(objective)
        self._open_tools(objective)

    def _open_tools(self, objective: Objective) -> tuple[Tool, ...]:
        """The tools that the objective may use; a worker that lacks one must not work on it."""
        granted = {grant.name for grant in objective.spec.tools if grant.parameters is None}
        granted.discard(RECALL)  # the loop has it
        folder = self._open_folder(objective) if granted & NEED_A_FOLDER else None
        home, uid = self.settings.home, objective.uid
        context = open_tool_context(self.settings, folder, pages=home / PAGES / uid)
        tools = open_tools(granted, replace(context, scratch=home / SCRATCH / uid))
        missing = sorted(granted - {tool.name for tool in tools})
        if missing:
            raise SettingsError(
                (
                    f"objective {objective.id} needs the tool {', '.join(missing)}, and this "
                    "worker has it not"
                ),
                fix="babyagi tools shows those that are here; babyagi run --new starts it afresh",
                guide="machines",
            )
        functions = [grant for grant in objective.spec.tools if grant.parameters is not None]
        return (*tools, *(self._find_given(grant, objective) for grant in functions))

    def _find_given(self, grant: ToolGrant, objective: Objective) -> Tool:
        """The function or the server's tool that the objective was started with."""
        tool = self._find_of_server(grant) or next(
            (one for one in self._given.tools if one.name == grant.name), None
        )
        if tool is None:
            raise SettingsError(
                f"objective {objective.id} needs the tool {grant.name}, and this worker has it not",
                why="; ".join(self._given.faults)
                or "it was handed in by the program, file or server that the objective began with",
                fix="give it again: --mcp FILE, --tools-from WHERE, --agent FILE, or "
                f"babyagi.run(…, tools=[{grant.name}])",
                guide="tools",
            )
        mine = grant_given(tool)
        if (mine.effect, mine.parameters) != (grant.effect, grant.parameters):
            what = "effect" if mine.parameters == grant.parameters else "parameters"
            raise SettingsError(
                f"the tool {grant.name} has other {what} than when objective {objective.id} was "
                "started",
                why="what a tool takes and does is frozen with its objective",
                fix="give it as it was, or start anew: --new, or babyagi.run(…, new=True)",
                guide="tools",
            )
        return replace(tool, description=grant.description)

    def _find_of_server(self, grant: ToolGrant) -> Tool | None:
        """The server's tool as it was granted; whether it still is that is asked before a call."""
        for connection in self._given.connections:
            if grant.name.startswith(f"{connection.server.name}__"):
                return connection.open_granted(grant)
        return None

    def _find_agent(self, objective: Objective) -> AgentDescription | None:
        """The agent of a file that carries the objective's tasks out, None where it has none."""
        agent, name = self._given.agent, objective.spec.agent
        if not name:
            if agent is not None:
                self._tell(
                    f"objective {objective.id} was started without an agent of a file; "
                    f"{agent.name} is not used for it"
                )
            return None
        if agent is None or agent.name != name:
            raise SettingsError(
                f"the tasks of objective {objective.id} are carried out by the agent {name}, and "
                "this worker has it not",
                why=f"it has the agent {agent.name}"
                if agent
                else "it is described in a file that was named where the objective began",
                fix=f"give it again: --agent FILE#{name}",
                guide="tools",
            )
        return agent

    def _open_agent(self, agent: AgentDescription, objective: Objective) -> OwnAgent:
        if agent.memory is None:
            return OwnAgent(bounds=agent.bounds)
        path = path_of(self.settings.home, memory_of(objective.uid))
        log = MemoryLog(path, clock=utc_now, new_id=partial(secrets.token_hex, 8))
        return OwnAgent(bounds=agent.bounds, memory=TaskMemory(agent.memory, log))

    def _open_folder(self, objective: Objective) -> Folder:
        home, uid, given = self.settings.home, objective.uid, self.settings.files
        known = remembered_folder(home, uid) or remembered_folder(home, schedule_uid(uid))
        # a folder within the one that this worker hands out was chosen for this objective
        is_within = given and known and known.is_relative_to(given.resolve())
        folder = known if is_within else given or known
        if folder is None or not folder.is_dir():
            raise SettingsError(
                f"objective {objective.id} needs a folder to read, and there is none here",
                why=f"{folder} is no folder"
                if folder
                else "it was started with --files, in another home",
                fix="give it again: --files FOLDER",
                guide="objectives",
            )
        return Folder(folder)


def address_of(model: str, settings: Settings) -> str:
    """Return what names a model and its server in what is remembered of them."""
    return f"{model} at {redact_url(settings.openai_base_url)}"


def say_how(known: Abilities, settings: Settings) -> str:
    """Return in words how the model is asked to call tools, by what is known of it."""
    name = choose_protocol(known) if settings.protocol == AUTO else settings.protocol
    return f"tools are called {_HOW[name]}"


def open_tool_context(settings: Settings, folder: Folder | None, *, pages: Path) -> ToolContext:
    """Return what tools work on here; pages that were fetched are kept in the folder `pages`."""
    door = Door(allow=settings.web_allow, proxies=settings.proxies)
    return ToolContext(
        offload=asyncio.to_thread,
        folder=folder,
        searcher=open_searcher(settings),
        pages=Pages(door, clock=utc_now, folder=pages, offload=asyncio.to_thread),
        pipeline=open_pipeline(settings),
        github=GitHub(
            url=settings.github_url or GITHUB_URL,
            key=settings.github_token.reveal(),
            repository=settings.github_repository,
        ),
        proxies=settings.proxies,
        ranker=CrossEncoder(settings.ranker) if settings.ranker else BM25,
    )


def open_pipeline(settings: Settings) -> RemotePipeline | None:
    """Return the pipeline on another machine that the settings name, if they name one.

    Raises:
        SettingsError: it needs a key that is not there, or its address is not https.
    """
    if not settings.pipeline:
        return None
    if "://" in settings.pipeline:
        return haystack_pipeline(settings.pipeline)
    key = settings.deepset_cloud_api_key.reveal()
    if not key:
        raise SettingsError(
            "a pipeline on deepset Cloud needs its key", fix=f"set {DEEPSET_KEY}", guide="tools"
        )
    workspace, _, name = settings.pipeline.partition("/")
    return deepset_pipeline(
        workspace, name, key=key, base_url=settings.deepset_cloud_url or DEEPSET_URL
    )


def open_searcher(settings: Settings) -> Searcher:
    """Return the search that the settings name.

    Raises:
        SettingsError: the engine that was named lacks its key or its address.
    """
    key_by_name = {
        "serper": settings.serper_api_key.reveal(),
        "brave": settings.brave_api_key.reveal(),
        "tavily": settings.tavily_api_key.reveal(),
        "serpapi": settings.serpapi_api_key.reveal(),
        "searchapi": settings.searchapi_api_key.reveal(),
    }
    name = settings.search_engine
    if name == "auto":
        with_key = [one for one, key in key_by_name.items() if key]
        name = (with_key + (["searxng"] if settings.searxng_url else []) + ["keyless"])[0]
    if name in key_by_name and not key_by_name[name]:
        variable = ENGINES[name].key_variable
        raise SettingsError(
            f"the search {name} needs its key", fix=f"set {variable}", guide="tools"
        )
    if name == "searxng" and not (settings.search_url or settings.searxng_url):
        raise SettingsError("the search searxng needs its address", fix="set SEARXNG_URL")
    names = KEYLESS if name == "keyless" else (name,)
    address = settings.search_url or (settings.searxng_url if name == "searxng" else "")
    engines = [
        Answering(
            engine=ENGINES[one],
            base_url=address or ENGINES[one].base_url,
            key=key_by_name.get(one, ""),
        )
        for one in names
    ]
    return Searcher(engines, monotonic=time.monotonic, proxies=settings.proxies)


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    ask_human: AskHuman | None = None,
    tell: Callable[[str], None] = lambda _: None,
    given: Given = NOTHING_GIVEN,
) -> AsyncIterator[App]:
    """The whole, closed again in the reverse order. What an earlier process of our name left behind
    is queued again.

    Args:
        ask_human: shows a prompt and returns what was typed, for LLM_MODEL=human; None where nobody
            is there.
        given: what a program hands in besides settings.
        tell: says to a person what the store (see `open_sqlite`) or this worker is in trouble with.
    """
    async with open_store(settings, tell=tell) as store:
        home, now, leases = home_id(settings.home), utc_now(), await store.leases()
        others = {lease.name for lease in leases if lease.home != home}
        with take_name(settings.home, settings.worker_name, taken=others) as name:
            await reap_namesakes(store, leases, name=name, home=home)
            identity = Worker(
                id=new_worker_id(name),
                name=name,
                host=socket.gethostname(),
                pid=os.getpid(),
                home=home,
                lease_until=now,
            )
            async with _with_named_tools(settings, given) as complete:
                for fault in complete.faults:
                    tell(fault)
                yield App(
                    settings,
                    store,
                    identity=identity,
                    ask_human=ask_human,
                    tell=tell,
                    given=complete,
                )


@asynccontextmanager
async def _with_named_tools(settings: Settings, given: Given) -> AsyncIterator[Given]:
    """What was given, with the tools of the functions and the servers that the settings name."""
    agent = load_agent(settings.agent, settings) if settings.agent else None
    own = [*(agent.tools if agent else ()), *_load_own_tools(settings)]
    async with open_servers(load_servers(settings.mcp) if settings.mcp else []) as connections:
        listed = await asyncio.gather(*(list_tools(one) for one in connections))
        tools = [*given.tools, *own, *(tool for found, _ in listed for tool in found)]
        faults = [fault for _, fault in listed if fault]
        yield replace(
            given,
            tools=tuple(tools),
            connections=tuple(connections),
            faults=tuple(faults),
            agent=agent,
        )


def _protocol_of(agent: AgentDescription | None) -> str:
    """The name of the protocol that a file wants for its agent, empty where it wants none."""
    wanted = agent.protocol if agent is not None else "auto"
    name = wanted if isinstance(wanted, str) else wanted.name
    return "" if name == "auto" else name


def _load_own_tools(settings: Settings) -> list[Tool]:
    """The tools that `tools_from` names: functions, or an agent of a file."""
    where = settings.tools_from
    if where.partition("#")[0].endswith((".yaml", ".yml")):
        from babyagi.components.description import build_described_agent_tool

        return [build_described_agent_tool(load_agent(where, settings))]
    return load_tools(where, cwd=Path.cwd()) if where else []


def load_agent(reference: str, settings: Settings) -> AgentDescription:
    """Return the agent that `FILE`, or `FILE#NAME`, means. The model is that of the settings,
    whatever the file says.

    Raises:
        SettingsError: as `load_description`.
    """
    from babyagi.components.description import load_description

    file, _, name = reference.partition("#")
    return load_description(Path(file), name, granted=grant_to_files(settings), has_model=True)


def grant_to_files(settings: Settings) -> Granted:
    """Return what a file of agents may have: the keys of its components, each from its own setting,
    and the hosts that the person named."""
    from babyagi.components.description import Granted
    from babyagi.components.kinds import KEY_VARIABLES

    return Granted(
        keys={variable: getattr(settings, variable.lower()).reveal() for variable in KEY_VARIABLES},
        variables=variables_here(),
        hosts=settings.agent_hosts,
    )


async def list_tools(connection: Connection) -> tuple[list[Tool], str]:
    """The tools of a server, or why there are none."""
    try:
        return await connection.list_tools(), ""
    except ToolError as error:
        return [], error.what


def read_timing(
    timing: Timing, objective: ObjectiveSpec, *, daily_usd: float, now: datetime
) -> ScheduleSpec:
    """Return what a schedule is by these words. Raises `SettingsError`."""
    try:
        every_s = _read_duration("every", timing.every) if timing.every else 0.0
        zone = find_zone(timing.tz)
        rule = Rule(
            cron=require_cron(timing.cron) if timing.cron is not None else "",
            every_s=every_s,
            at=parse_local(timing.at, zone) if timing.at else None,
            tz=timing.tz,
            begins_at=now,
        )
        return ScheduleSpec(
            objective=objective,
            rule=rule,
            grace_s=_read_duration("grace", timing.grace),
            overlap=Overlap(timing.overlap),
            catch_up=CatchUp(timing.catch_up),
            jitter_s=_read_duration("jitter", timing.jitter),
            daily_limit_usd=daily_usd,
        )
    except (ValueError, OverflowError) as error:  # of times beyond the first or last year
        raise SettingsError(
            f"this is no schedule: {error}",
            fix='babyagi schedule add "an objective" --cron "0 9 * * 1-5" --tz Europe/Berlin, '
            "or --every 2h, or --at 2026-12-01T09:00",
            guide="schedules",
        ) from error


def _read_duration(name: str, text: str) -> float:
    """Return the seconds. Raises `ValueError`, with the name and the text."""
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise ValueError(f"{name} must be {error}, got {text!r}") from error


def grant_given(tool: Tool) -> ToolGrant:
    """What is frozen with an objective of a tool that a program hands in."""
    return ToolGrant(
        name=tool.name,
        effect=tool.effect,
        description=tool.description,
        parameters=json.loads(json.dumps(dict(tool.parameters))),
    )


def require_room(objective: Objective, *, question: str = "", limits: Limits | None = None) -> None:
    """Raise where a limit lets no further task of the objective begin.

    Args:
        question: what is to be asked further, for what is to be typed. limits: those that the
            objective is to get, where they are other ones.

    Raises:
        LimitReachedError: with what to type.
    """
    name = find_used_up(objective, limits)
    if not name:
        return
    option, value = raise_limit(limits or objective.spec.limits, name)
    raise LimitReachedError(
        f"objective {objective.id} has used up its limit of {name}, so nothing is changed",
        limit=name,
        is_final=True,
        fix=f"babyagi run --continue {objective.id} {option} {value} {quoted(question)}"
        if question
        else f"babyagi extend --objective {objective.id} {option} {value}, then the same again",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))
