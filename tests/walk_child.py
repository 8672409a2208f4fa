"""A process that walks through a question on a store on disk and tells its parent each point that
it reaches; there it can be killed.

A process begins as a new one of the same name does: it frees what the earlier one held, claims the
task, and goes on by the journal.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from babyagi.app.backends import utc_now
from babyagi.index.hashing import HashEmbedder
from babyagi.journal import Backends, Gate, Journal
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Prompt
from babyagi.react.executor import Executor
from babyagi.react.steps import AgentBounds
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Approval, Claim, Effect, Passage, Reservation, Role, Worker
from babyagi.taskstore.lifecycle import MAX_LOST_PAUSE_S
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.tools.base import Calls, Observation, PassedOn, Tool
from babyagi.worker.lease import reap_namesakes
from support.world import make_spec
from tests.react.walkthroughs import PROTOCOLS, WALKTHROUGHS, build_tools

LEASE_S = 30.0
WAITING = "the task waits for a person"


@dataclass(frozen=True, kw_only=True)
class Life:
    """One process of a walk. `later_s` is how far its clock is ahead; `once` names a tool whose
    calls must not be repeated."""

    home: Path
    walk: str
    spoken: str
    base_url: str
    name: str = "walker"
    later_s: float = 0.0
    once: str = ""

    @property
    def calls_file(self) -> Path:
        return self.home / "calls"


class Points:
    """Where the process is. It goes on when the parent says so."""

    def __init__(self, parent: Connection) -> None:
        self._parent = parent
        self.path = ""

    def reach(self, point: str) -> None:
        self._parent.send(f"{point} {self.path}")
        self._parent.recv()


class PointedCalls(PassedOn):
    """A journal with a point before and behind each of its calls."""

    def __init__(self, calls: Calls, points: Points) -> None:
        super().__init__(calls)
        self._points = points

    async def complete(self, path: str, prompt: Prompt, *, role: Role) -> Completion:
        self._points.path = path
        self._points.reach("wanted")
        completion = await self._calls.complete(path, prompt, role=role)
        self._points.reach("recorded")
        return completion

    async def call_tool(self, path: str, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
        self._points.path = path
        self._points.reach("wanted")
        observation = await self._calls.call_tool(path, tool, arguments)
        self._points.reach("recorded")
        return observation


class PointedModel:
    """A model with a point before it is asked and when it has answered."""

    def __init__(self, model: OpenAIModel, points: Points) -> None:
        self.name = model.name
        self._model = model
        self._points = points

    def reserve(self, prompt: Prompt) -> Reservation:
        return self._model.reserve(prompt)

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        self._points.reach("intended")
        completion = await self._model.complete(prompt, role=role)
        self._points.reach("made")
        return completion


def with_points(tool: Tool, points: Points, *, once: str) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> Passage:
        points.reach("intended")
        passage = await tool.run(arguments)
        points.reach("made")
        return passage

    return replace(tool, run=run, effect=Effect.ONCE if tool.name == once else tool.effect)


def append_line(path: Path, line: str) -> None:
    """Write the line so that it is there whatever happens to this process."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.fsync(file)
    os.close(file)


@dataclass(slots=True)
class Clock:
    """The real time, and so much later."""

    later_s: float

    def __call__(self) -> datetime:
        return utc_now() + timedelta(seconds=self.later_s)


async def open_life_store(life: Life, clock: Clock) -> TaskStore:
    return await open_sqlite(life.home / "tasks.db", clock=clock, offload=run_inline)


async def claim(store: TaskStore, name: str, clock: Clock) -> Claim | None:
    """The walk's task, as a worker that begins gets it when all delays are over; None while it
    waits for a person."""
    worker = Worker(
        id=f"{name}-{os.getpid()}", name=name, host="here", pid=os.getpid(), lease_until=utc_now()
    )
    await store.reap_workers()
    await reap_namesakes(store, await store.workers(), name=name, home="")
    objective, _ = await store.create_objective(make_spec(), uid="walk")
    clock.later_s += MAX_LOST_PAUSE_S
    await store.register_worker(worker, lease_s=LEASE_S)
    await store.join_objective(worker.id, objective.id)
    return await store.claim_task(objective.id, worker.id)


async def walk_on(life: Life, parent: Connection) -> str:
    """Walk to the end; return the answer."""
    points, walk, clock = Points(parent), WALKTHROUGHS[life.walk], Clock(life.later_s)
    store = await open_life_store(life, clock)
    held = await claim(store, life.name, clock)
    if held is None:
        return WAITING
    endpoint = Endpoint(
        base_url=life.base_url, api_key="", timeout_s=20, sleep=asyncio.sleep, random=lambda: 0.0
    )
    model = PointedModel(OpenAIModel("scripted", endpoint), points)
    backends = Backends(
        store=store,
        models={Role.EXECUTION: model},
        embedder=HashEmbedder(),
        gate=Gate(),
        sleep=asyncio.sleep,
    )
    journal = Journal(
        backends, fence=held.fence, prefix=f"{held.task.try_no}/", approval=Approval.NONE
    )
    tools = [
        with_points(tool, points, once=life.once)
        for tool in build_tools(lambda call: append_line(life.calls_file, call))
    ]
    bounds = AgentBounds(max_steps=len(walk.calls) + 1)
    executor = Executor(
        tools=tools,
        calls=PointedCalls(journal, points),
        protocol=PROTOCOLS[life.spoken],
        bounds=bounds,
    )
    run = await executor.run(walk.messages)
    await endpoint.close()
    await store.close()
    return run.text


def live(life: Life, parent: Connection) -> None:
    """What a process of a walk does from its beginning to its end."""
    parent.send(f"ended {asyncio.run(walk_on(life, parent))}")
