"""A whole loop in one process: real stores, real journal, real agents, and a model that the test
chooses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from babyagi.inbox import Authority
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer
from babyagi.index.search import open_search
from babyagi.journal import ANY_AUTHORITY, Backends, Gate, OnPiece
from babyagi.llm.port import ChatModel, Embedder
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.loop import Bounds, Enrich, Loop
from babyagi.tasks import Effect, Limits, Objective, ObjectiveSpec, Role, ToolGrant, Worker
from babyagi.taskstore.sqlite import MemoryTaskStore
from babyagi.tools.base import Tool
from babyagi.worker.process import Runtime, WorkerLoop
from babyagi.worker.serving import Pace

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that runs fifty times as fast as the real one, so that a delay of a second is over in
    20 ms."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def __call__(self) -> datetime:
        return START + timedelta(seconds=50 * (time.monotonic() - self._began_s))


def make_spec(
    *,
    text: str = "Find out about limits",
    initial_task: str = "Begin",
    limits: Limits | None = None,
    **more: Any,
) -> ObjectiveSpec:
    fields: dict[str, Any] = {
        "model_by_role": dict.fromkeys(
            (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION, Role.REPORT), "scripted"
        )
        | {Role.EMBEDDING: "hash"},
        "embedding_space": HashEmbedder().space,
        "prompt_version": "test",
        **more,
    }
    return ObjectiveSpec(text=text, initial_task=initial_task, limits=limits or Limits(), **fields)


@dataclass
class World:
    """Everything that a run needs, each part real."""

    model: Any = field(default_factory=RehearsalModel)
    clock: Clock = field(default_factory=Clock)
    store: Any = None  # the memory store on the clock, when none is given
    tools: Sequence[Tool] = ()
    concurrency: int = 4
    is_batched: bool = False
    models: Mapping[Role, ChatModel] | None = None
    protocol: str = "auto"
    enrich: Enrich | None = None
    lease_s: float = 600.0  # this clock is quick, and a busy machine is slow
    embedder: Embedder = field(default_factory=HashEmbedder)
    authority: Authority = ANY_AUTHORITY
    index: Any = None  # a built-in one for each loop, when none is given
    on_piece: OnPiece | None = None
    _worker_numbers: Any = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        if self.store is None:
            self.store = MemoryTaskStore(self.clock)

    async def start(self, spec: ObjectiveSpec | None = None, **fields: Any) -> Objective:
        tools = tuple(ToolGrant(name=tool.name, effect=Effect.READ) for tool in self.tools)
        spec = spec or make_spec(tools=tools, embedding_space=self.embedder.space, **fields)
        objective: Objective
        objective, _ = await self.store.create_objective(
            spec, uid=f"uid{next(self._worker_numbers)}", always_new=True
        )
        return objective

    def open_loop(self, objective: Objective, gate: Gate) -> Loop:
        roles = (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION, Role.REPORT)
        index = self.index or BuiltinIndex()
        backends = Backends(
            store=self.store,
            models=self.models or dict.fromkeys(roles, self.model),
            embedder=self.embedder,
            gate=gate,
            sleep=self.sleep,
            new_secret=lambda: "a secret of tests",
            authority=self.authority,
            on_piece=self.on_piece,
        )
        return Loop(
            backends,
            search=open_search(self.store, index, objective=objective),
            indexer=Indexer(self.store, index, objective=objective),
            tools=self.tools,
            bounds=Bounds(
                context_tokens=4000,
                max_output_tokens=2000,
                max_new_tasks=10,
                protocol=self.protocol,
                enrich=self.enrich,
            ),
            clock=self.clock,
        )

    def open_worker(self, objective: Objective | None = None) -> WorkerLoop:
        number = next(self._worker_numbers)
        identity = Worker(
            id=f"worker-{number}",
            name=f"name-{number}",
            host="here",
            pid=number,
            lease_until=self.clock(),
        )
        runtime = Runtime(
            identity=identity,
            sleep=self.sleep,
            random=lambda: 0.0,
            new_id=lambda: f"worker-{next(self._worker_numbers)}",
        )
        return WorkerLoop(
            self.store,
            self.open_loop,
            pace=Pace(
                concurrency=self.concurrency, lease_s=self.lease_s, is_batched=self.is_batched
            ),
            runtime=runtime,
        )

    async def run(
        self, objective: Objective | None = None, *, within_s: float = 300.0, **fields: Any
    ) -> Objective:
        """Start an objective (or take the one given) and work until it has ended."""
        objective = objective or await self.start(**fields)
        async with asyncio.timeout(within_s):
            ended, _ = await self.open_worker(objective).run(objective.id)
        return ended

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.01))
