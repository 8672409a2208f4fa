"""The executor's own time per step: a model and a tool that answer at once, every call journaled
and committed to SQLite on disk.

A step is a model call and a tool call: two transactions that write, as in a task, because what a
tool gave is recorded with the next call. Beside it, on the same replies, the same executor on the
store in memory, and LangChain's AgentExecutor (which keeps no journal) where `--langchain PYTHON`
names an interpreter that has it.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from babyagi.index.hashing import HashEmbedder
from babyagi.journal import Backends, Gate, Journal
from babyagi.llm.prompt import Message, Speaker
from babyagi.react.executor import Executor
from babyagi.react.steps import AgentBounds, Stopped
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Effect, Limits, Passage, Role, Worker
from babyagi.taskstore.sqlite import MemoryTaskStore, open_sqlite
from babyagi.tools.base import Tool
from support.scripted import ScriptedModel
from support.table import print_table, verdict
from support.workers import join
from support.world import make_spec

GOAL_MS = 2.0
N_STEPS = 30
N_ROUNDS = 5
QUESTION = (Message(speaker=Speaker.USER, text="What?", origins=("person",)),)


async def measure(kind: str, n_steps: int) -> float:
    """Return the seconds that a step takes with a store of this kind: `sqlite` or `memory`."""
    async with AsyncExitStack() as stack:
        store: Any = MemoryTaskStore(_utc_now)
        if kind == "sqlite":
            folder = Path(stack.enter_context(TemporaryDirectory()))
            offload = ThreadOffload()
            stack.callback(offload.close)
            store = await open_sqlite(folder / "tasks.db", clock=_utc_now, offload=offload)
            stack.push_async_callback(store.close)
        journal = await _open_journal(store, n_steps)
        executor = Executor(
            tools=[_build_lookup()],
            calls=journal,
            protocol="text",
            bounds=AgentBounds(max_steps=0),
        )
        began = time.perf_counter()
        async with journal:
            run = await executor.run(QUESTION)
        took_s = time.perf_counter() - began
    assert (run.stopped, run.output, len(run.steps)) == (Stopped.FINISH, "done", n_steps + 1)
    return took_s / len(run.steps)


async def _open_journal(store: Any, n_steps: int) -> Journal:
    replies = iter(
        [
            *(f"I look.\nAction: lookup\nAction Input: {n}" for n in range(n_steps)),
            "I know.\nFinal Answer: done",
        ]
    )
    spec = make_spec(limits=Limits(max_tokens=0, max_cost_usd=0, max_time_s=0))
    objective, _ = await store.create_objective(spec, uid="steps", always_new=True)
    worker = Worker(id="w", name="w", host="here", pid=1, lease_until=_utc_now())
    await join(store, worker, objective.id)
    claim = await store.claim_task(objective.id, worker.id)
    model = ScriptedModel(lambda prompt, role: next(replies))
    backends = Backends(
        store=store,
        models={Role.EXECUTION: model},
        embedder=HashEmbedder(),
        gate=Gate(),
        sleep=asyncio.sleep,
    )
    return Journal(backends, fence=claim.fence, prefix="1/")


def _build_lookup() -> Tool:
    async def lookup(arguments: Any) -> Passage:
        return Passage(text=f"value {arguments['number']}", origin="tool:lookup")

    schema = {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": ["number"],
    }
    return Tool(
        name="lookup",
        description="Look a number up.",
        parameters=schema,
        effect=Effect.READ,
        run=lookup,
    )


def measure_langchain(python: str, n_steps: int) -> float:
    command = [python, str(Path(__file__).with_name("steps_langchain.py")), str(n_steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"{python} could not run it: {done.stderr[-500:]}")
    return float(done.stdout.split()[-1])


def _utc_now() -> datetime:
    return datetime.now(UTC)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=N_STEPS)
    parser.add_argument(
        "--rounds", type=int, default=N_ROUNDS, help="the fastest of so many counts"
    )
    parser.add_argument(
        "--langchain", metavar="PYTHON", help="an interpreter with langchain-classic"
    )
    options = parser.parse_args(argv)
    best_s = {"sqlite": float("inf"), "memory": float("inf")} | (
        {"langchain": float("inf")} if options.langchain else {}
    )
    for _ in range(options.rounds):  # by turns, so that a busy moment strikes all alike
        for kind in best_s:
            took_s = (
                measure_langchain(options.langchain, options.steps)
                if kind == "langchain"
                else asyncio.run(measure(kind, options.steps))
            )
            best_s[kind] = min(best_s[kind], took_s)
    said = {
        "sqlite": "this, journal on SQLite",
        "memory": "this, journal in memory",
        "langchain": "LangChain's AgentExecutor, no journal",
    }
    goals = {"sqlite": (f"{GOAL_MS:g} ms", verdict(best_s["sqlite"] * 1000 <= GOAL_MS))}
    rows = [
        [
            said[kind],
            f"{s * 1000:.2f} ms",
            *goals.get(kind, ("", "")),
            f"{s / best_s['sqlite']:.2f}",
        ]
        for kind, s in best_s.items()
    ]
    print_table(
        f"Own time per step, {options.steps} steps and an answer",
        ["what", "measured", "goal", "", "ratio"],
        rows,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
