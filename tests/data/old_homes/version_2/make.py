"""Makes the homes beside this file; to be run with the code of the commit that the README names,
not with the present one.

    PYTHONPATH=CHECKOUT python make.py OUT

Each objective is worked on by a process of its own, in one home for each kind of store; those that
stop halfway are killed with SIGKILL.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from babyagi.errors import RequestRefusedError
from babyagi.files import Folder
from babyagi.llm.port import Completion
from babyagi.llm.prompt import ToolCall
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.offload import run_inline
from babyagi.tasks import Limits, Role, TaskStatus, Usage
from babyagi.taskstore.sql.store import open_postgres, open_sqlite
from babyagi.tools.catalog import build_ask_user
from babyagi.tools.files import build_file_tools
from tests.postgres_server import PostgresServer
from tests.world import World

BEGAN_AT = datetime(2025, 6, 1, tzinfo=UTC)  # every lease has run out when a test opens the home
DOCUMENTS = Path(__file__).parents[1] / "documents"
ENDING = ("finished", "limit", "waiting", "paused")
KILLED = ("recorded", "created", "asked", "dead", "checking", "reporting", "running")


class Clock:
    """Fifty times as fast as the real one, from its own beginning."""

    def __init__(self, start: datetime) -> None:
        self._start, self._began_s = start, time.monotonic()

    def __call__(self) -> datetime:
        return self._start + timedelta(seconds=50 * (time.monotonic() - self._began_s))


class Told:
    """The rehearsal model, but for the replies that `override` gives."""

    name = "rehearsal"

    def __init__(self, override: Callable[[Any, Role], Completion | None]) -> None:
        self._rehearsal, self._override = RehearsalModel(), override
        self.reserve = self._rehearsal.reserve

    async def complete(self, prompt: Any, *, role: Role) -> Completion:
        return self._override(prompt, role) or await self._rehearsal.complete(prompt, role=role)

    async def close(self) -> None:
        return None


def reply(text: str, *calls: ToolCall) -> Completion:
    usage = Usage(calls=1, prompt_tokens=100, completion_tokens=10)
    return Completion(
        text=text,
        tool_calls=calls,
        finish_reason="tool_calls" if calls else "stop",
        model="rehearsal",
        usage=usage,
    )


def override_for(label: str) -> Callable[[Any, Role], Completion | None]:
    n_planned = 0

    def override(prompt: Any, role: Role) -> Completion | None:
        nonlocal n_planned
        n_planned += role is Role.CREATION
        task = prompt.messages[1].text if len(prompt.messages) > 1 else ""
        is_first = not any(message.speaker == "tool" for message in prompt.messages)
        if role is Role.EXECUTION and label == "dead" and "\n2: " in task:
            raise RequestRefusedError("the endpoint does not take this prompt")
        if (
            role is Role.EXECUTION
            and is_first
            and ("\n1: " in task if label == "waiting" else label == "asked" and "\n2: " in task)
        ):
            return reply(
                "",
                ToolCall(
                    id="c1", name="ask_user", arguments='{"question": "Which spring is meant?"}'
                ),
            )
        if role is Role.CREATION and label == "checking" and n_planned == 2:
            return reply('{"tasks": [], "objective_met": true}')
        return None

    return override


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def around(
    store: Any,
    verb: str,
    *,
    before: Callable[..., bool] | None = None,
    after: Callable[..., bool] | None = None,
) -> None:
    """Let the process die before or after the verb, where the condition on its arguments, or on
    what it gave, holds."""
    inner = getattr(store, verb)

    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        if before is not None and before(*args, **kwargs):
            die()
        done = await inner(*args, **kwargs)
        if after is not None and after(done, *args, **kwargs):
            die()
        return done

    setattr(store, verb, wrapped)


def pause_after(store: Any, task_id: int) -> None:
    inner = store.record_plan

    async def record_plan(claim: Any, *, task_ids: Any, plan: Any) -> Any:
        done = await inner(claim, task_ids=task_ids, plan=plan)
        if task_id in task_ids:
            await store.pause_objective(claim.fence.objective_id)
        return done

    store.record_plan = record_plan


def arrange_end(store: Any, label: str) -> None:
    """Choose where the process dies."""
    match label:
        case "running":
            around(
                store,
                "intend_step",
                after=lambda _, fence, **step: (
                    (fence.owner, step["key"]) == ("task:2", "1/execute/2/model")
                ),
            )
        case "recorded":
            around(store, "record_result", after=lambda _, claim, **result: claim.task.id == 2)
        case "created":
            around(store, "record_plan", before=lambda claim, **plan: 2 in plan["task_ids"])
        case "checking":
            around(store, "record_plan", after=lambda _, claim, **plan: plan["plan"].is_met)
        case "asked":
            around(store, "park_task", after=lambda *_, **__: True)
        case "dead":
            around(store, "fail_task", after=lambda task, *_, **__: task.status is TaskStatus.DEAD)
        case "reporting":
            around(store, "record_report", before=lambda *_, **__: True)
        case "paused":
            pause_after(store, 2)


async def open_store(place: str, clock: Clock) -> Any:
    if place.startswith("postgresql://"):
        return await open_postgres(place, clock=clock, offload=run_inline)
    return await open_sqlite(place, clock=clock, offload=run_inline)


async def work(place: str, label: str, number: int) -> None:
    clock = Clock(BEGAN_AT + timedelta(seconds=100 * number))
    world = World(
        model=Told(override_for(label)),
        clock=clock,  # type: ignore[arg-type]  # another clock than that of the tests
        store=await open_store(place, clock),
        tools=(*build_file_tools(Folder(DOCUMENTS), offload=asyncio.to_thread), build_ask_user()),
        concurrency=1,
        lease_s=1800,
    )
    world._worker_numbers = count(100 * number)
    limits = Limits(max_tasks=3) if label == "limit" else Limits()
    objective = await world.start(
        text=f"Answer from the documents: who sets the price? ({label})",
        initial_task="List",
        limits=limits,
    )
    arrange_end(world.store, label)
    await world.run(objective)
    await world.store.close()


# -- what lies there
# --------------------------------------------------------------------------------------------------


async def describe(place: str) -> list[dict[str, Any]]:
    """Everything of every objective, as the old code reads it."""
    store = await open_store(place, Clock(BEGAN_AT + timedelta(hours=1)))
    found = [await describe_objective(store, objective) for objective in await store.objectives()]
    await store.close()
    return found


async def describe_objective(store: Any, objective: Any) -> dict[str, Any]:
    events = await store.events(objective.id)
    tasks = await store.tasks(objective.id)
    owners = sorted(
        {
            *(event.data["owner"] for event in events if "owner" in event.data),
            *(f"task:{task.id}" for task in tasks),
        }
    )
    return {
        "label": objective.spec.text.rpartition("(")[2].rstrip(")"),
        "id": objective.id,
        "uid": objective.uid,
        "status": objective.status,
        "stop_reason": objective.stop_reason,
        "usage": [
            objective.usage.calls,
            objective.usage.prompt_tokens,
            objective.usage.completion_tokens,
        ],
        "report": await store.report(objective.id),
        "tasks": [
            [task.id, task.name, task.status, list(task.after), task.try_no, task.error]
            for task in tasks
        ],
        "results": [
            [result.task_id, result.text, list(result.origins)]
            for result in await store.results(objective.id)
        ],
        "events": [[event.id, event.kind, event.task_id, event.at.isoformat()] for event in events],
        "steps": [
            [
                owner,
                step.key,
                step.kind,
                step.state,
                step.usage.calls,
                hashlib.sha256((step.output or "").encode()).hexdigest()[:16],
            ]
            for owner in owners
            for step in await store.steps(objective.id, owner=owner)
        ],
    }


# -- making
# --------------------------------------------------------------------------------------------------


def work_in_processes(place: str, *, before_last: Callable[[], object] = lambda: None) -> None:
    labels = (*ENDING, *KILLED)
    for number, label in enumerate(labels, 1):
        if number == len(labels):
            before_last()
        code = subprocess.run(
            [sys.executable, __file__, place, label, str(number)], check=False
        ).returncode
        if code != (-signal.SIGKILL if label in KILLED else 0):
            raise RuntimeError(f"the process of {label} ended with {code}")


def pack(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, mtime=0))


def make_sqlite(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, copy = Path(folder) / "home", Path(folder) / "copy"
        home.mkdir()
        place = str(home / "tasks.db")
        # closing it folds the log into the file
        work_in_processes(place, before_last=lambda: asyncio.run(describe(place)))
        for name in ("tasks.db", "tasks.db-wal"):
            pack(out / f"{name}.gz", (home / name).read_bytes())
        shutil.copytree(home, copy)
        pack(
            out / "sqlite.json.gz",
            json.dumps(asyncio.run(describe(str(copy / "tasks.db")))).encode(),
        )


def make_postgres(out: Path) -> None:
    server = PostgresServer()
    try:
        server.start()
        work_in_processes(server.url())
        pack(out / "postgres.json.gz", json.dumps(asyncio.run(describe(server.url()))).encode())
        dump = subprocess.run(
            [
                server._bin / "pg_dump",
                "--inserts",
                "--rows-per-insert=500",
                "--no-owner",
                "--no-privileges",
                server.url(),
            ],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    finally:
        server.close()
    # commands of psql, which a driver does not know
    kept = [line for line in dump.splitlines() if not line.startswith("\\")]
    pack(out / "postgres.sql.gz", "\n".join(kept).encode())


if __name__ == "__main__":
    if len(sys.argv) == 2:
        make_sqlite(Path(sys.argv[1]))
        make_postgres(Path(sys.argv[1]))
    else:
        asyncio.run(work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
