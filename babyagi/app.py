"""The only code that chooses and opens backends: settings in, a working whole out."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import random
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from babyagi.agents.prompting import prompt_version
from babyagi.errors import BabyagiError, SettingsError, StoreUnusableError
from babyagi.files.folder import Folder
from babyagi.journal import Backends, Gate
from babyagi.llm.base import ChatModel, Embedder
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.loop import Bounds, Loop
from babyagi.resultstore.base import VectorIndex
from babyagi.resultstore.hashing import HashEmbedder
from babyagi.resultstore.projector import Projector
from babyagi.resultstore.search import ResultSearch
from babyagi.settings import Settings, load_settings
from babyagi.tasks import Effect, Objective, ObjectiveSpec, Result, Role, ToolGrant, Worker
from babyagi.taskstore.base import TaskStore
from babyagi.tools.base import Tool
from babyagi.tools.files import build_file_tools
from babyagi.worker import Pace, Surroundings, WorkerLoop

if TYPE_CHECKING:
    from babyagi.llm.prices import Price

ROLES = (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION, Role.REPORT)
FILE_TOOLS = (ToolGrant(name="list_files", effect=Effect.READ), ToolGrant(name="read_file", effect=Effect.READ))
FREE_MODELS = ("human", "rehearsal")


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


def utc_now() -> datetime:
    return datetime.now(UTC)


class App:
    """Everything that is needed to start objectives, run them and look at them.

    `notices` says what the person should know before the first call; it grows as things are opened.
    """

    def __init__(self, settings: Settings, store: TaskStore, *, identity: Worker, stack: AsyncExitStack) -> None:
        self.settings = settings
        self.store = store
        self.notices: list[str] = []
        self._identity = identity
        self._stack = stack

    async def start_objective(self, *, always_new: bool = False) -> tuple[Objective, bool]:
        """Create the objective that the settings describe, or find the unfinished or ended one that it is.

        Returns:
            The objective, and True when it was created by this call.
        """
        objective, is_new = await self.store.create_objective(self._spec(), uid=secrets.token_hex(8), always_new=always_new)
        if is_new and self.settings.files is not None:
            self._remember_folder(objective)
        return objective, is_new

    async def run(self, objective_id: int) -> RunOutcome:
        """Work on the objective until it has ended and its report is written, is paused, or a signal drains this worker.

        A paused objective is resumed: asking for it to run is asking for that.
        """
        objective = await self.store.resume_objective(objective_id)
        async with AsyncExitStack() as stack:
            gate = Gate()
            loop = await self._open_loop(objective, gate, stack)
            pace = Pace(
                concurrency=self.settings.concurrency,
                lease_s=self.settings.lease_s,
                drain_s=self.settings.drain_s,
                max_failures=self.settings.max_failures,
            )
            surroundings = Surroundings(
                identity=self._identity, sleep=asyncio.sleep, random=random.SystemRandom().random, new_id=lambda: _worker_id(self._identity.name)
            )
            worker = WorkerLoop(self.store, loop, gate, pace=pace, surroundings=surroundings)
            objective, signal_number = await worker.run(objective_id)
        return RunOutcome(objective=objective, stopped_by_signal=signal_number)

    # -- what belongs to the objective -----------------------------------------------------------------------------------

    def _spec(self) -> ObjectiveSpec:
        settings = self.settings
        models = {role: settings.model_for(role) for role in ROLES}
        embedding = settings.effective_embedding_model
        limits = settings.limits
        if limits.max_cost_usd and (unpriced := self._unpriced(models)):
            if settings.cost_limit_is_explicit:
                raise SettingsError(
                    f"the money limit of ${limits.max_cost_usd:g} cannot be held: no price is known for {', '.join(unpriced)}",
                    fix="give BABYAGI_PRICE_IN and BABYAGI_PRICE_OUT (US dollars per million tokens), or --max-cost 0 for no money limit",
                    guide="limits",
                )
            limits = replace(limits, max_cost_usd=0.0)
            self.notices.append(
                f"no price is known for {', '.join(unpriced)}: the default money limit is off, the limit of {limits.max_tokens:,} tokens holds"
            )
        return ObjectiveSpec(
            text=settings.require_objective(),
            initial_task=settings.initial_task,
            instance_name=settings.instance_name,
            limits=limits,
            model_by_role={**models, Role.EMBEDDING: embedding},
            temperature=settings.openai_temperature,
            embedding_space=self._open_embedder(embedding).space,
            results_store_name=settings.results_store_name,
            tools=FILE_TOOLS if settings.files is not None else (),
            prompt_version=prompt_version(),
        )

    def _unpriced(self, models: Mapping[Role, str]) -> list[str]:
        return sorted({name for name in models.values() if name not in FREE_MODELS and self._price(name) is None})

    def _price(self, name: str) -> Price | None:
        from babyagi.llm.prices import find_price

        return find_price(
            name, base_url=self.settings.openai_base_url, price_in=self.settings.price_in, price_out=self.settings.price_out
        )

    # -- opening ---------------------------------------------------------------------------------------------------------

    async def _open_loop(self, objective: Objective, gate: Gate, stack: AsyncExitStack) -> Loop:
        spec = objective.spec
        models = self._open_models(spec, stack)
        embedder = self._open_embedder(spec.model_by_role[Role.EMBEDDING])
        stack.push_async_callback(embedder.close)
        if embedder.space != spec.embedding_space:
            raise SettingsError(
                f"this objective's results are embedded as {spec.embedding_space}, these settings embed as {embedder.space}",
                fix="set EMBEDDING_MODEL (and its address) as it was when the objective was started",
                guide="results",
            )
        index, collection = self._open_index(objective, stack)
        backends = Backends(store=self.store, models=models, embedder=embedder, gate=gate, sleep=asyncio.sleep)
        bounds = Bounds(
            context_tokens=self.settings.context_tokens,
            max_output_tokens=self.settings.max_output_tokens,
            max_new_tasks=self.settings.max_new_tasks,
        )
        return Loop(
            backends,
            search=ResultSearch(self.store, index, collection=collection, objective=objective),
            projector=Projector(self.store, index, collection=collection, objective=objective),
            tools=self._open_tools(objective),
            bounds=bounds,
            clock=utc_now,
        )

    def _open_models(self, spec: ObjectiveSpec, stack: AsyncExitStack) -> dict[Role, ChatModel]:
        model_by_name: dict[str, ChatModel] = {}
        for role in ROLES:
            name = spec.model_by_role[role]
            if name not in model_by_name:
                model_by_name[name] = self._open_model(name, spec.temperature)
                stack.push_async_callback(model_by_name[name].close)
        return {role: model_by_name[spec.model_by_role[role]] for role in ROLES}

    def _open_model(self, name: str, temperature: float | None) -> ChatModel:
        settings = self.settings
        if name == "rehearsal":
            return RehearsalModel()
        if name == "human":
            from babyagi.llm.human import HumanModel

            return HumanModel(ask=settings.ask_human)
        from babyagi.llm.openai import OpenAIModel

        return OpenAIModel(name=name)

    def _open_embedder(self, name: str) -> Embedder:
        return HashEmbedder()

    def _open_index(self, objective: Objective, stack: AsyncExitStack) -> tuple[VectorIndex, str]:
        raise NotImplementedError

    def _open_tools(self, objective: Objective) -> tuple[Tool, ...]:
        raise NotImplementedError

    def _remember_folder(self, objective: Objective) -> None:
        """Keep the folder beside the objective in this home, so that `resume` finds it. It is this worker's, not the objective's."""
        path = self.settings.home / "folders" / objective.uid
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(Path(self.settings.files or ".").resolve()), encoding="utf-8")
