"""Builds the application from the settings: starts objectives and schedules, and opens everything
that runs them."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyagi import events
from babyagi.agents.prompting import prompt_version
from babyagi.app.backends import (
    is_on_a_server,
    open_index,
    open_store,
    require_descriptors,
    utc_now,
)
from babyagi.app.model_clients import AskHuman, Models
from babyagi.app.toolbox import NOTHING_GIVEN, Given, Toolbox, require_folder, with_named_tools
from babyagi.errors import (
    CredentialsError,
    IndexUnavailableError,
    LimitReachedError,
    ModelRejectedError,
    SettingsError,
)
from babyagi.files import private
from babyagi.files.home import (
    answers_key,
    home_id,
    is_bearer_dead,
    make_home,
    memory_of,
    new_worker_id,
    remember_folder,
    remember_touch,
    take_name,
)
from babyagi.inbox import Authority
from babyagi.index.indexer import CheckReport, Indexer, collection_of, embed_path
from babyagi.index.port import VectorIndex
from babyagi.index.search import Ranking, ResultSearch, SharedSearch, open_search
from babyagi.journal import Backends, Gate, Journal, OnPiece
from babyagi.llm.embeddings import OnnxEmbedder, missing_files
from babyagi.llm.prices import hold_money_limit
from babyagi.loop import Bounds, Loop
from babyagi.memory.log import MemoryLog, path_of
from babyagi.memory.remembering import TaskMemory
from babyagi.net.addresses import is_here
from babyagi.react.values import require_json
from babyagi.reporting.why import describe_outage, raise_limit
from babyagi.runtime.tracing import NO_TRACER, Tracer, open_tracer
from babyagi.settings.fields import LOCAL_EMBEDDING_MODEL, Settings
from babyagi.settings.load import bare_environment
from babyagi.settings.values import parse_duration_s
from babyagi.tasks import (
    Approval,
    Duty,
    DutyClaim,
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
    Worker,
)
from babyagi.taskstore import schedules
from babyagi.taskstore.lifecycle import further_question
from babyagi.taskstore.limits import find_used_up
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import one_line, quoted, shorten
from babyagi.worker import notify
from babyagi.worker.lease import RENEWALS_PER_LEASE, reap_namesakes
from babyagi.worker.process import Around, Runtime, WorkerLoop
from babyagi.worker.serving import Pace, Patience

if TYPE_CHECKING:
    from babyagi.components.description import AgentDescription

UNREACHED_S = 30.0  # after which a run leaves an endpoint that it could not connect to once
MAX_LOOKED_AT = 200  # how many of the newest events of a kind are searched
ANSWERED = (StopReason.FINISHED, StopReason.OBJECTIVE_MET)
MAX_ORDERED_CHARS = 200  # of an objective or a first task in a notice
DEFAULT_TIMING = {"tz": "UTC", "grace": "1h", "overlap": "skip", "catch_up": "one"}
MAX_SHOWN = 8  # results that a further question is sure to be shown
N_CHECKED = 1_000  # results that `Results.check` probes with their own vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The end of a run: the objective in its current state, and the number of the signal that
    stopped the run (None if there was none)."""

    objective: Objective
    stopped_by_signal: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """How a person takes part in a worker's run.

    Attributes:
        is_person_there: returns whether a person can answer the questions of tasks.
        on_piece: receives each piece of a model's answer as it arrives.
    """

    is_person_there: Callable[[], bool] = lambda: False
    on_piece: OnPiece | None = None


ALONE = Company()


class App:
    """Starts objectives and schedules, and runs them with the models, tools and stores of the
    settings.

    `notices` collects lines that the person should read before the first call.
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
        self.models = Models(settings, given=given.model_by_name, ask_human=ask_human, tell=tell)
        self.toolbox = Toolbox(settings, given, tell=tell)
        self._identity = identity
        self._tell = tell
        self._on_piece: OnPiece | None = None
        self._tracer: Tracer = NO_TRACER

    def beside(
        self, settings: Settings | None = None, *, tools: Collection[str] | None = None
    ) -> App:
        """Return another app on the same task store, for work beside this worker: with its own
        name, id and connections, and with other settings if given.

        Args:
            tools: the names of the tools that objectives may use there; None for all.
        """
        name = f"{self._identity.name}-beside"
        identity = replace(self._identity, id=new_worker_id(name), name=name)
        given = replace(self._given, granted=None if tools is None else frozenset(tools))
        return App(
            settings or self.settings, self.store, identity=identity, tell=self._tell, given=given
        )

    @property
    def agent_name(self) -> str:
        """The name of the agent of a YAML file that executes the tasks; '' for the built-in
        agent."""
        return self._given.agent.name if self._given.agent else ""

    @property
    def name(self) -> str:
        """The name of the worker."""
        return self._identity.name

    # -- starting: objectives, schedules, further questions
    # ----------------------------------------------------------------------------------------------

    async def start_objective(self, *, always_new: bool = False) -> tuple[Objective, bool]:
        """Create the objective that the settings describe, or find the existing one.

        Returns:
            The objective, and True when it was created by this call.

        Raises:
            SettingsError: the folder of files does not exist here, and the task store is a local
                file, so no worker on another machine can have the folder.
        """
        self._require_folder()
        spec = self._spec()
        objective, is_new = await self.store.create_objective(
            spec, uid=secrets.token_hex(8), always_new=always_new
        )
        self._remember(objective)
        self.toolbox.allow(objective.uid, spec)
        return objective, is_new

    def _require_folder(self) -> None:
        if not is_on_a_server(self.settings):  # else the folder may be that of a worker elsewhere
            require_folder(self.settings)

    async def add_schedule(
        self, when: Mapping[str, str | None], *, daily_limit: float | None = None
    ) -> schedules.Schedule:
        """Store a schedule whose ticks start the objective that the settings describe.

        Args:
            when: see `read_timing`.
            daily_limit: in US dollars; None means the default, and 0 no limit.

        Raises:
            SettingsError: the timing is invalid or never due, one tick may cost more than the daily
                limit, or the folder of files does not exist, as in `start_objective`.
        """
        self._require_folder()
        uid, spec = secrets.token_hex(8), self._spec()
        daily_usd = self._daily_limit(spec, daily_limit)
        if daily_usd and not spec.limits.max_cost_usd:
            spec = replace(spec, limits=replace(spec.limits, max_cost_usd=daily_usd))
        timed = read_timing(when, spec, daily_usd=daily_usd, now=utc_now())
        schedule = await self.store.add_schedule(timed, uid=uid)
        self.toolbox.allow(uid, spec)
        if self.settings.files is not None:
            remember_folder(self.settings.home, schedule.uid, self.settings.files)
        return schedule

    async def ask_further(
        self, objective: Objective, question: str, *, limits: Limits | None = None
    ) -> Objective:
        """Add a further question to an objective, to be answered from its results; the objective
        becomes active again. A question that is still open, or was answered, is not added twice.

        Raises:
            LimitReachedError: a limit lets no task start; nothing was changed.
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
        return await self.store.extend_objective(
            objective.id, question=question, after=leaves[-MAX_SHOWN:], limits=limits
        )

    def limits(self, roles: Iterable[Role]) -> Limits:
        """Return the limits that the settings name. If a model of these roles has no known price,
        the default cost limit is turned off, with a notice.

        Raises:
            SettingsError: a person set the cost limit, which cannot be guaranteed because a price
                is unknown.
        """
        unpriced, is_explicit = self._unpriced(roles), self.settings.cost_limit_is_explicit
        limits, notice = hold_money_limit(
            self.settings.limits, unpriced=unpriced, is_explicit=is_explicit
        )
        self.notices += [notice] if notice else []
        return limits

    def _spec(self) -> ObjectiveSpec:
        settings = self.settings
        settings.require_objective()
        self._name_who_orders()
        limits = self.limits(settings.model_by_role)
        embedding = settings.effective_embedding_model
        embedder = self.models.open_embedder(embedding)
        has_price = embedder.is_local or self.models.embedding_price(embedding) is not None
        if limits.max_cost_usd and not has_price:
            self._note_free_vectors(embedding)
        return ObjectiveSpec(
            text=settings.objective,
            initial_task=settings.initial_task,
            instance_name=settings.instance_name,
            limits=limits,
            model_by_role={**settings.model_by_role, Role.EMBEDDING: embedding},
            temperature=settings.openai_temperature,
            has_price=not self._unpriced(settings.model_by_role),
            embedding_space=embedder.space,
            results_store_name=settings.results_store_name,
            tools=self.toolbox.grants(),
            approval=Approval(settings.approve),
            memory=Memory(settings.memory),
            planning=Planning(settings.planning),
            output_schema=self._given.output.schema if self._given.output else None,
            agent=self.agent_name,
            text_origin=_origin_of(settings.objective_file),
            task_origin=_origin_of(settings.task_file),
            prompt_version=prompt_version(),
        )

    def _name_who_orders(self) -> None:
        """Add a notice for each file that nobody trusts and that gives the objective or the first
        task."""
        settings = self.settings
        given = [
            (settings.objective_file, "the objective", settings.objective),
            (settings.task_file, "the first task", settings.initial_task),
        ]
        for file in dict.fromkeys(name for name, _, _ in given if name):
            said = [
                f'{what} "{shorten(one_line(text), MAX_ORDERED_CHARS)}"'
                for name, what, text in given
                if name == file
            ]
            self.notices.append(f"{file}, which nobody trusts, gives {' and '.join(said)}")

    def _note_free_vectors(self, embedding: str) -> None:
        """Add the notice that vectors count as free because their price is unknown. Raises
        `SettingsError` if a person set a cost limit, which then cannot be guaranteed."""
        if self.settings.cost_limit_is_explicit:
            raise SettingsError(
                f"the money limit of ${self.settings.max_cost_usd:g} cannot be guaranteed",
                why=f"no price is known for {embedding}, which computes the vectors",
                fix=f"set BABYAGI_EMBEDDING_MODEL={LOCAL_EMBEDDING_MODEL}, which costs nothing, "
                "or turn the money limit off with --max-cost 0",
                guide="limits",
            )
        self.notices.append(
            f"no price is known for {embedding}: the cost of its vectors is counted as 0, their "
            "tokens are counted as usual"
        )

    def _unpriced(self, roles: Iterable[Role]) -> list[str]:
        return self.models.without_price(self.settings.model_by_role[role] for role in roles)

    def _daily_limit(self, spec: ObjectiveSpec, given: float | None) -> float:
        """Return the cost limit for all ticks of a day in US dollars; 0 means no limit. `given` is
        the limit that a person chose, None if they chose none."""
        if given == 0:
            return 0.0
        if not spec.has_price:
            if given is not None:
                raise SettingsError(
                    f"the limit of ${given:g} a day cannot be guaranteed",
                    why="no price is known for a model of this objective",
                    fix="set BABYAGI_PRICE=IN/OUT, or turn the daily limit off: --daily-limit 0",
                    guide="schedules",
                )
            self.notices.append(
                "no price is known for a model of this objective, so the schedule has no daily "
                "cost limit"
            )
            return 0.0
        limit = schedules.DAILY_LIMIT_USD if given is None else given
        most = spec.limits.max_cost_usd
        if most > limit:
            raise SettingsError(
                f"one tick may cost ${most:g}, but all ticks of a day only ${limit:g}: the "
                "schedule would never fire",
                fix=f"set --daily-limit {most:g} or more, or a lower --max-cost",
                guide="schedules",
            )
        return limit

    def _remember(self, objective: Objective) -> None:
        """Store in the home folder what the task store does not hold (folder, time of use), so that
        `babyagi resume` finds it."""
        settings = self.settings
        remember_touch(settings.home, objective.uid, objective.id)
        if settings.files is not None:
            remember_folder(settings.home, objective.uid, settings.files)

    # -- working
    # ----------------------------------------------------------------------------------------------

    async def run(
        self, objective: Objective, company: Company = ALONE, *, after_id: int | None = None
    ) -> RunOutcome:
        """Work on the objective until it has ended and its report is written, until it is paused,
        or until a signal tells this worker to stop.

        A paused objective is resumed first. If the run got no answer of a model because of
        something that a person must mend, such as a refused key or an address that was not reached
        for half a minute (one of this machine: at the first call), the objective is set aside:
        workers do not claim it until a person resumes it.

        Args:
            after_id: the id of the last event before this run; None means the newest event.
        """
        self._remember(objective)
        if objective.status is ObjectiveStatus.PAUSED:
            await self.store.switch_objective(objective.id, to=ObjectiveStatus.ACTIVE)
        if after_id is None:
            after_id = await self.store.last_event_id(objective.id)
        # on this machine a person starts the server first; elsewhere it may be an outage
        unreached_s = 0.0 if is_here(self.settings.openai_base_url) else UNREACHED_S
        patience = Patience(unreached_s=unreached_s, is_person_there=company.is_person_there)
        try:
            async with self._open_worker(company) as worker, self._notifying(objective.id):
                objective, number = await worker.run(objective.id, patience=patience)
        except (CredentialsError, ModelRejectedError, SettingsError) as error:
            await self._set_aside(objective.id, after_id=after_id, why=error.what)
            raise
        if number is not None:
            found = await self._events_since(objective.id, events.MODEL_UNAVAILABLE, after_id)
            why = describe_outage(found[-1].data) if found else ""
            if why:
                await self._set_aside(objective.id, after_id=after_id, why=why)
                objective = await self.store.objective(objective.id)
        return RunOutcome(objective=objective, stopped_by_signal=number)

    async def join(self, objective: Objective, company: Company = ALONE) -> RunOutcome:
        """Work on the objective, with other workers, until it has ended and its report is written,
        or a signal tells this worker to stop.

        While the objective is paused, or this worker lacks something that the objective needs (a
        key, a tool, a model), the worker waits, and tells the person for what.
        """
        patience = Patience(
            with_pauses=True, when_blocked=True, is_person_there=company.is_person_there
        )
        async with self._open_worker(company) as worker, self._notifying(objective.id):
            objective, number = await worker.run(objective.id, patience=patience)
        return RunOutcome(objective=objective, stopped_by_signal=number)

    async def serve_all(self, around: Around, company: Company = ALONE) -> int | None:
        """Work on all active objectives of the store, present and future, until a signal tells this
        worker to stop; return the signal's number.

        Args:
            around: called for each objective with its id and a coroutine, which works on it from
                joining to leaving. It must await the coroutine and return what that returns.
        """
        notifier = self._make_notifier()

        async def notify_of(objective_id: int, work: Coroutine[Any, Any, Objective]) -> Objective:
            await self.models.prepare()
            if notifier is not None:
                await notifier.begin(objective_id)
            return await around(objective_id, work)

        async with (
            self._open_worker(company, notify_of) as worker,
            nullcontext() if notifier is None else notifier.watching_all(),
        ):
            return await worker.serve_all(is_person_there=company.is_person_there)

    def stop(self) -> None:
        """Stop this worker gently (drain it), as the first SIGINT or SIGTERM does: no further call
        is made, and calls in flight get `drain_s` seconds to end."""
        if self._worker is not None:
            self._worker.stop()

    def wake(self) -> None:
        """Let this process's worker, if it has one, look for work at once: what this process has
        committed itself does not wake it."""
        if self._worker is not None:
            self._worker.wake()

    async def _set_aside(self, objective_id: int, *, why: str, after_id: int) -> None:
        """Pause the objective with the reason `why`, unless another worker works on it or a model
        has answered since the event `after_id`."""
        is_shared = any(
            worker.id != self._identity.id and worker.lease_left_s >= 0
            for worker in await self.store.workers()
            for joined in worker.joined
            if joined.objective_id == objective_id
        )
        steps = await self._events_since(objective_id, events.STEP_RECORDED, after_id)
        if not is_shared and not any(event.data.get("kind") == "model" for event in steps):
            await self.store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED, detail=why)

    async def _events_since(self, objective_id: int, kind: str, after_id: int) -> list[Event]:
        return await self.store.events(
            objective_id, after_id=after_id, kinds=[kind], from_end=True, limit=MAX_LOOKED_AT
        )

    # -- opening what the work needs
    # ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def open_results(
        self, objective: Objective, *, model: str = ""
    ) -> AsyncIterator[Results]:
        """Yield the objective's results, for a person to search, check and index again. `model`:
        the embedder to use; the objective's own if empty."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.models.close)
            name = model or objective.spec.model_by_role[Role.EMBEDDING]
            backends = Backends(
                store=self.store,
                models={},
                embedder=self.models.open_embedder(name),
                gate=Gate(),
                sleep=asyncio.sleep,
            )
            index, lease_s = open_index(self.settings, stack), self.settings.lease_s
            yield Results(
                backends, index, objective=objective, identity=self._identity, lease_s=lease_s
            )

    @asynccontextmanager
    async def _open_worker(
        self, company: Company, around: Around | None = None
    ) -> AsyncIterator[WorkerLoop]:
        settings, self._on_piece = self.settings, company.on_piece
        pace = Pace(
            concurrency=settings.concurrency,
            lease_s=settings.lease_s,
            drain_s=settings.drain_s,
            max_failures=settings.max_failures,
            is_batched=settings.cadence == "batched",
        )
        runtime = Runtime(
            identity=self._identity,
            sleep=asyncio.sleep,
            random=random.SystemRandom().random,
            new_id=lambda: new_worker_id(self._identity.name),
            knows_dead=partial(is_bearer_dead, settings.home),
            tell=self._tell,
        )
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.models.close)
            self._tracer = open_tracer(settings.otel_endpoint)
            if self._tracer is not NO_TRACER:
                stack.push_async_callback(asyncio.to_thread, self._tracer.close)
            index = open_index(settings, stack, tell=self._tell)
            if around is None:
                await self.models.prepare()
            else:  # the first objective brings it: an idle worker stays small
                runtime = replace(runtime, around=partial(_giving_back, index, around))
            self._worker = WorkerLoop(
                self.store, partial(self._open_loop, index), pace=pace, runtime=runtime
            )
            yield self._worker

    def _open_loop(self, index: VectorIndex, objective: Objective, gate: Gate) -> Loop:
        """Build the `Loop`, which carries out the tasks of one objective. The models' endpoints and
        the index are shared by all loops of the process.

        Raises:
            SettingsError, CredentialsError: this worker lacks something that the objective needs.
        """
        spec, settings = objective.spec, self.settings
        agent = self.toolbox.find_agent(objective)
        embedder = self.models.open_embedder(spec.model_by_role[Role.EMBEDDING])
        if embedder.space != spec.embedding_space:
            raise SettingsError(
                f"this objective's results are embedded as {spec.embedding_space}",
                why=f"with these settings they are embedded as {embedder.space}, and vectors of "
                "two kinds cannot be compared",
                fix=f"babyagi store rebuild --objective {objective.id} --embedding-model NAME "
                "embeds them again; or set the embedder's address back to what it was",
                guide="results",
            )
        if isinstance(embedder, OnnxEmbedder) and (missing := missing_files()):
            self._tell(
                f"objective {objective.id}: its results are searched by words alone, because "
                f"the embedding model is incomplete: {missing}"
            )
        backends = Backends(
            store=self.store,
            models=self.models.for_objective(objective),
            embedder=embedder,
            gate=gate,
            sleep=asyncio.sleep,
            max_output_tokens=settings.longest_output_tokens,
            authority=Authority(  # what this machine says about the calls
                approval=Approval(settings.approve),
                key=answers_key(settings.home),
                find_form=partial(self.toolbox.find_form, objective),
            ),
            on_piece=self._on_piece,
            tracer=self._tracer,
        )
        return Loop(
            backends,
            search=open_search(self.store, index, objective=objective),
            indexer=Indexer(self.store, index, objective=objective),
            tools=self.toolbox.open(objective),
            bounds=Bounds(
                context_tokens=settings.context_tokens,
                max_output_tokens=settings.max_output_tokens,
                max_new_tasks=settings.max_new_tasks,
                max_failures=settings.max_failures,
                protocol=_protocol_of(agent) or settings.effective_protocol,
                run=agent.bounds if agent else None,
                memory=self._open_memory(agent, objective) if agent else None,
                read_output=self._given.output.read if self._given.output else require_json,
                enrich=self._given.enrich,
                find_texts=self.toolbox.find_texts(objective),
            ),
            clock=utc_now,
        )

    def _open_memory(self, agent: AgentDescription, objective: Objective) -> TaskMemory | None:
        if agent.memory is None:
            return None
        path = path_of(self.settings.home, memory_of(objective.uid))
        log = MemoryLog(path, clock=utc_now, new_id=partial(secrets.token_hex, 8))
        return TaskMemory(agent.memory, log)

    # -- notifications
    # ----------------------------------------------------------------------------------------------

    def _notifying(self, objective_id: int) -> AbstractAsyncContextManager[None]:
        """While the context lasts, send notifications about the objective, if the settings name a
        command or an address for them."""
        notifier = self._make_notifier()
        return nullcontext() if notifier is None else notifier.watching(objective_id)

    def _make_notifier(self) -> notify.Notifier | None:
        settings = self.settings
        target = settings.notify.reveal()
        if not target:
            return None
        key = ""
        if notify.is_address(target):
            make_home(settings.home)
            path = settings.home / notify.KEY_FILE
            key = private.keep_word(path, new_word=lambda: secrets.token_urlsafe(32))
        send = notify.make_sender(
            target, environ=bare_environment(), key=key, now=utc_now, proxies=settings.proxies
        )
        return notify.Notifier(
            self.store,
            send,
            now=utc_now,
            with_text=notify.is_address(target),
            secrets=settings.known_secrets,
        )


# --------------------------------------------------------------------------------------------------
# What a person does with the results of one objective: search them, compare the index with them,
# rebuild the index.
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Results:
    """The results of one objective and their index.

    Attributes:
        identity: the worker that rebuilds the index; its lease lasts `lease_s` and is renewed
            meanwhile.
    """

    backends: Backends
    index: VectorIndex
    objective: Objective
    identity: Worker
    lease_s: float

    def _open_search(self) -> ResultSearch:
        return ResultSearch(self.backends.store, self.index, objective=self.objective)

    def _open_indexer(self) -> Indexer:
        return Indexer(
            self.backends.store, self.index, objective=self.objective, sleep=self.backends.sleep
        )

    async def search(self, text: str, *, k: int, in_all: bool = False) -> Ranking:
        """Return the `k` results nearest to the text; with `in_all`, also from the store's other
        objectives. Only the text is embedded; its cost does not count against the objective's
        limits."""

        async def embed(texts: Sequence[str]) -> list[bytes]:
            self._require_own_space()
            embedder = self.backends.embedder
            return (await embedder.embed(texts if embedder.is_local else texts[:1]))[0]

        search = self._open_search()
        if in_all:
            search = SharedSearch(
                self.backends.store, self.index, objective=self.objective, n_others=None
            )
        return await search.relevant(text, k=k, embed=embed)

    async def check(self) -> CheckReport:
        """Compare the index with the task store; see `Indexer.check`. An index in memory is filled
        first, as a worker would fill it."""
        if self.index.is_memory:
            await self._open_search().fill_memory()
        return await self._open_indexer().check(n_probes=N_CHECKED)

    async def rebuild(self, tell: Callable[[int, int], None], *, model: str = "") -> int:
        """Drop the objective's collection, index every result again, and return the number of
        results.

        Args:
            tell: called after each batch with the number of indexed results and the number of all.
            model: the name of the new embedder, if it changes. From now on it embeds the
                objective's results, in a separate collection. The vectors of the old embedder stay
                in the task store.

        Raises:
            IndexUnavailableError: another worker owns the index now, and was told to index
                everything again; or the index cannot answer.
            Whatever the embedder raises; the objective then keeps its embedder.
            SettingsError: `model` is another embedder, and a worker that serves the objective would
                still compute vectors with the old one.
        """
        if model and self.backends.embedder.space != self.objective.spec.embedding_space:
            await self._change_space(model)
        n_results = len(await self.backends.store.result_ids(self.objective.id))
        await self.backends.store.register_worker(self.identity, lease_s=self.lease_s)
        try:
            await self.backends.store.join_objective(self.identity.id, self.objective.id)
            await self.backends.store.owe_index(self.objective.id)
            claim = await self.backends.store.claim_duty(
                self.objective.id, self.identity.id, Duty.INDEX
            )
            if claim is not None:
                await self._renewing_lease(self._feed(claim, n_results, tell))
            elif n_results:
                raise IndexUnavailableError(
                    f"another worker is indexing objective {self.objective.id} now",
                    why="that worker was told to index every result again",
                    fix="babyagi store verify --index shows how far it is; to drop the collection "
                    "too, stop that worker first",
                    guide="results",
                )
        finally:
            await self.backends.store.remove_worker(self.identity.id)
        return n_results

    def _require_own_space(self) -> None:
        space = self.objective.spec.embedding_space
        if self.backends.embedder.space != space:
            raise IndexUnavailableError(
                f"the results are embedded as {space}, and this process embeds as "
                f"{self.backends.embedder.space}",
                guide="results",
            )

    async def _change_space(self, model: str) -> None:
        objective_id = self.objective.id
        serving = [
            worker.name
            for worker in await self.backends.store.workers()
            if worker.lease_left_s > 0
            and any(joined.objective_id == objective_id for joined in worker.joined)
        ]
        if serving:
            raise SettingsError(
                f"the results of objective {objective_id} cannot be embedded again now",
                why=f"{', '.join(serving)} would go on computing vectors with the old embedder",
                fix="stop its workers first; babyagi show workers shows them",
                guide="results",
            )
        # before anything is changed, because a name may be mistyped
        await self.backends.embedder.embed(["is it there?"])
        old, space = self.objective, self.backends.embedder.space
        self.objective = await self.backends.store.owe_index(objective_id, model=model, space=space)
        await self.index.drop(collection_of(old))

    async def _renewing_lease(self, work: Coroutine[Any, Any, None]) -> None:
        """Await the work and renew the lease meanwhile; one batch may take longer than the lease
        lasts."""
        pause_s = self.lease_s / RENEWALS_PER_LEASE
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(work)
                while not (await asyncio.wait([task], timeout=pause_s))[0]:
                    await self.backends.store.renew_lease(self.identity.id, lease_s=self.lease_s)
        except BaseExceptionGroup as raised:
            raise raised.exceptions[0] from None

    async def _feed(
        self, claim: DutyClaim, n_results: int, tell: Callable[[int, int], None]
    ) -> None:
        journal = Journal(self.backends, fence=claim.fence)

        async def embed(texts: Sequence[str]) -> list[bytes]:
            self._require_own_space()
            return await journal.embed(embed_path("index", texts), texts)

        await self.index.drop(collection_of(self.objective))
        # a worker that indexed before may have marked results as indexed that are dropped now
        await self.backends.store.owe_index(self.objective.id)
        indexer = self._open_indexer()
        while n_owed := len(
            await self.backends.store.result_ids(self.objective.id, is_indexed=False)
        ):
            tell(n_results - n_owed, n_results)
            await indexer.run_once(embed=embed)
        tell(n_results, n_results)
        await self.backends.store.release(claim)


@asynccontextmanager
async def open_app(
    settings: Settings,
    *,
    ask_human: AskHuman | None = None,
    tell: Callable[[str], None] = lambda _: None,
    creates: bool = True,
    given: Given = NOTHING_GIVEN,
) -> AsyncIterator[App]:
    """Yield the app, and close what it opened afterwards. Tasks that a dead process with the same
    worker name left claimed are queued again.

    Args:
        ask_human: shows a prompt and returns the typed text, for LLM_MODEL=human; None without a
            terminal.
        creates: see `open_store`.
        given: what a program passes in besides settings.
        tell: shows a person a line about trouble with the store (see `open_sqlite`) or this worker.
    """
    require_descriptors(settings.concurrency)
    async with open_store(settings, tell=tell, creates=creates) as store:
        home, now, workers = home_id(settings.home), utc_now(), await store.workers()
        others = {worker.name for worker in workers if worker.home != home}
        with take_name(settings.home, settings.worker_name, taken=others) as name:
            await reap_namesakes(store, workers, name=name, home=home)
            identity = Worker(
                id=new_worker_id(name),
                name=name,
                host=socket.gethostname(),
                pid=os.getpid(),
                home=home,
                lease_until=now,
            )
            async with with_named_tools(settings, given) as whole:
                for line in (*whole.faults, *whole.left_out):
                    tell(line)
                yield App(
                    settings, store, identity=identity, ask_human=ask_human, tell=tell, given=whole
                )


@asynccontextmanager
async def open_app_to_look(settings: Settings) -> AsyncIterator[App]:
    """Yield an app whose task store is only read. It is no worker, and has no tools."""
    async with open_store(settings, only_looks=True) as store:
        host = socket.gethostname()
        identity = Worker(id="", name="", host=host, pid=os.getpid(), lease_until=utc_now())
        yield App(settings, store, identity=identity)


async def _giving_back(
    index: VectorIndex, around: Around, objective_id: int, work: Coroutine[Any, Any, Objective]
) -> Objective:
    """Await the work on the objective, then drop its vectors if they are in this process's memory.
    A search that needs them again reads them from the task store."""
    objective = await around(objective_id, work)
    if index.is_memory:
        await index.drop(collection_of(objective))
    return objective


def _origin_of(file: str) -> str:
    """Return the origin of what an untrusted file gives: its name without folders, which no model
    needs. `file`: '' if a person gives it."""
    return f"file:{Path(file).name}" if file else "person"


def _protocol_of(agent: AgentDescription | None) -> str:
    """Return the name of the protocol that the agent's file requests; '' if it requests none."""
    wanted = agent.protocol if agent is not None else "auto"
    name = wanted if isinstance(wanted, str) else wanted.name
    return "" if name == "auto" else name


def read_timing(
    when: Mapping[str, str | None], objective: ObjectiveSpec, *, daily_usd: float, now: datetime
) -> schedules.ScheduleSpec:
    """Return a schedule for the objective. Raises `SettingsError` if it is not valid.

    Args:
        when: exactly one of `cron`, `every` and `at`, and policies such as `overlap`, in the form
            in which a person types them; durations are written `90s`, `2h` or `1d`.
    """
    said = DEFAULT_TIMING | {name: text for name, text in when.items() if text is not None}
    try:
        every_s = _read_duration("every", said["every"]) if said.get("every") else 0.0
        zone = schedules.find_zone(said["tz"])
        rule = schedules.Rule(
            cron=schedules.require_cron(said["cron"]) if "cron" in said else "",
            every_s=every_s,
            at=schedules.parse_local(said["at"], zone) if said.get("at") else None,
            tz=said["tz"],
            begins_at=now,
        )
        return schedules.ScheduleSpec(
            objective=objective,
            rule=rule,
            grace_s=_read_duration("grace", said["grace"]),
            overlap=schedules.Overlap(said["overlap"]),
            catch_up=schedules.CatchUp(said["catch_up"]),
            daily_limit_usd=daily_usd,
        )
    except (ValueError, OverflowError) as error:  # overflow: beyond the years of `datetime`
        raise SettingsError(
            f"this is not a valid schedule: {error}",
            fix='babyagi schedule add "an objective" --cron "0 9 * * 1-5" --tz Europe/Berlin, '
            "or --every 2h, or --at 2026-12-01T09:00",
            guide="schedules",
        ) from error


def _read_duration(name: str, text: str) -> float:
    """Return a duration such as `90s` or `2h` in seconds. Raises `ValueError`, which quotes `name`
    and `text`, if it is not a duration."""
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise ValueError(f"{name} must be {error}, got {text!r}") from error


def require_room(objective: Objective, *, question: str = "", limits: Limits | None = None) -> None:
    """Raise when a limit lets no further task of the objective start.

    Args:
        question: a further question, for the suggested command.
        limits: the new limits of the objective, if they change.

    Raises:
        LimitReachedError: a limit is used up; `fix` is the command that raises it.
    """
    name = find_used_up(objective, limits)
    if not name:
        return
    option, value = raise_limit(limits or objective.spec.limits, name)
    fix = f"babyagi extend --objective {objective.id} {option} {value}, then repeat this command"
    if question:
        fix = f"babyagi run --continue {objective.id} {option} {value} {quoted(question)}"
    raise LimitReachedError(
        f"objective {objective.id} has used up its limit of {name}, so nothing is changed",
        limit=name,
        is_final=True,
        fix=fix,
    )
