"""A worker process with one tool that must not be repeated, which kills itself at a named point
round the call."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from babyagi.llm.prompt import Prompt, Speaker, ToolCall
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Approval, Effect, Fence, Passage, Role, Step
from babyagi.taskstore.lifecycle import ONCE
from babyagi.taskstore.nouns import Intention, Kept, Outcome
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.tools.base import Tool
from babyagi.worker.lease import reap_namesakes
from support.scripted import ScriptedModel
from support.world import World

POINTS = (
    "before it is intended",
    "after it is intended",
    "before it acts",
    "after it acted",
    "before it is recorded",
    "after it is recorded",
)


class Deadly:
    """Ends this process at its point, as `kill -9` would."""

    def __init__(self, point: str) -> None:
        self._point = point

    def reach(self, point: str) -> None:
        if point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


def with_points(store: TaskStore, deadly: Deadly) -> TaskStore:
    """The store, with points round the two commits that a call is between."""
    intend, record = store.intend_step, store.record_step

    async def intend_step(fence: Fence, *, intention: Intention, **more: Any) -> Step:
        if intention.kind != ONCE:
            return await intend(fence, intention=intention, **more)
        deadly.reach("before it is intended")
        step = await intend(fence, intention=intention)
        deadly.reach("after it is intended")
        return step

    async def record_step(fence: Fence, made: Outcome | Kept) -> Step:
        if "/tool/" not in made.key:
            return await record(fence, made)
        deadly.reach("before it is recorded")
        step = await record(fence, made)
        deadly.reach("after it is recorded")
        return step

    store.intend_step, store.record_step = intend_step, record_step  # type: ignore[method-assign]
    return store


def make_tool(home: Path, deadly: Deadly) -> Tool:
    async def pay(arguments: Mapping[str, Any]) -> Passage:
        deadly.reach("before it acts")
        with (home / "calls").open("a") as calls:
            calls.write("paid\n")
        deadly.reach("after it acted")
        return Passage(text="paid", origin="tool:pay")

    return Tool(
        name="pay",
        description="Pay.",
        parameters={"type": "object", "properties": {}},
        effect=Effect.ONCE,
        run=pay,
    )


def answer(prompt: Prompt, role: Role) -> object:
    if role is Role.CREATION:
        return '{"tasks": []}'
    if role is Role.EXECUTION and not any(
        message.speaker is Speaker.TOOL for message in prompt.messages
    ):
        return (ToolCall(id="c1", name="pay", arguments="{}"),)
    return "the limit is 40 euros a day:\n" + prompt.messages[-1].text


def live(home: Path, point: str, approval: str, parent: Connection) -> None:
    """Work in this home, and send the stop reason. The tool appends a line to the home's `calls`;
    `point` is "never" for a process that lives."""
    parent.send(asyncio.run(_run(home, point, Approval(approval))))


async def _run(home: Path, point: str, approval: Approval) -> str:
    deadly, world = Deadly(point), World(model=ScriptedModel(answer))
    store = with_points(
        await open_sqlite(home / "tasks.db", clock=world.clock, offload=run_inline), deadly
    )
    world.store, world.tools = store, (make_tool(home, deadly),)
    for worker in await store.workers():
        await reap_namesakes(store, await store.workers(), name=worker.name, home="")
    known = await store.objectives()
    objective = known[0] if known else await world.start(approval=approval)
    ended = await world.run(objective)
    await store.close()
    return str(ended.stop_reason)
