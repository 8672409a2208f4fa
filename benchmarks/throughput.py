"""How fast workers take and finish tasks, without any model: SQLite and PostgreSQL, one process to
eight, short lists and long ones.

A turn is what a worker asks for a task: claim_next and record_result, and for what is recorded the
claim of the planning and record_plan with one new task for each, so that the list keeps its length.
With `BABYAGI_CADENCE=batched` a worker plans from three results together while there are tasks to
start (`--planned` 3); with many processes one of them plans from what several recorded. Results and
plans are durable. `cpu` is the processor time of the workers and of the server together, per turn;
`longest` the longest that any verb of any worker took.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import multiprocessing.synchronize
import os
import resource
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from typing import Any, TypeVar

from babyagi.duties.planning import MAX_PLANNED
from babyagi.runtime.offload import Offload, ThreadOffload, run_inline
from babyagi.tasks import (
    Claim,
    DutyClaim,
    Limits,
    ObjectiveSpec,
    Proposal,
    Role,
    TaskStatus,
    Worker,
)
from babyagi.taskstore.nouns import Deferral, Planned
from babyagi.taskstore.sql.store import TaskStore, open_postgres
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.worker.serving import MIN_PLANNED
from support.postgres_server import PostgresServer
from support.table import print_table

T = TypeVar("T")

GOAL_WAIT_S = 0.2
GOAL_GROWTH = 1.5
GOAL_WAKE_MS = 100
LEASE_S = 3600.0
MANY = 10**6  # an order is never asked for
NO_LIMITS = Limits(max_tasks=0, max_calls=0, max_tokens=0, max_cost_usd=0, max_time_s=0)
FILL = """
INSERT INTO {schema}task (objective_id, id, name, name_key, rank, origins, created_at_us)
SELECT {objective_id}, n, 'Look at number ' || n, 'number ' || n, n, '[]', 0 FROM {numbers}
"""
COUNT = "UPDATE {schema}objective SET last_task_id = {last} WHERE id = {objective_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one process did in its time."""

    n_turns: int
    cpu_s: float
    longest_s: float


def _now() -> datetime:
    return datetime.now(UTC)


async def _open(place: str, *, offload: Offload = run_inline) -> TaskStore:
    """The store of this URL, or of this file."""
    if place.startswith("postgresql:"):
        return await open_postgres(place, offload=offload)
    return await open_sqlite(place, clock=_now, offload=offload)


async def _begin(place: str, *, n_queued: int, server: PostgresServer | None) -> int:
    """An objective with so many tasks queued; returns its id."""
    spec = ObjectiveSpec(
        text="o",
        initial_task="t",
        limits=NO_LIMITS,
        model_by_role={Role.EXECUTION: "m"},
        embedding_space="s",
        prompt_version="1",
    )
    store = await _open(place)
    objective, _ = await store.create_objective(
        spec, uid=f"u{n_queued}-{time.monotonic_ns()}", always_new=True
    )
    await store.close()
    values: dict[str, Any] = {
        "objective_id": objective.id,
        "last": n_queued,
        "schema": "babyagi." if server else "",
    }
    if server:
        fill = FILL.format(numbers=f"generate_series(2, {n_queued}) AS n", **values)
        for statement in ("SET search_path = babyagi; " + fill, COUNT.format(**values)):
            server.run(statement)
        return objective.id
    numbers = (
        "(WITH RECURSIVE c (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM c WHERE n < "
        f"{n_queued}) SELECT n FROM c)"
    )
    with closing(sqlite3.connect(place)) as connection, connection:
        for statement in (FILL.format(numbers=numbers, **values), COUNT.format(**values)):
            connection.execute(statement)
    return objective.id


async def _work(
    place: str, objective_id: int, *, worker_id: str, pace: tuple[float, int], wait: Any
) -> Run:
    """Take turns; `pace` is for how many seconds, and how many results are planned together."""
    seconds, n_planned = pace
    deferral = Deferral(min_startable=MANY, min_unordered=MANY, min_recorded=n_planned)
    store = await _open(place)
    await store.register_worker(
        Worker(id=worker_id, name=worker_id, host="h", pid=os.getpid(), lease_until=_now()),
        lease_s=LEASE_S,
    )
    await store.join_objective(worker_id, objective_id)
    n_turns, longest_s = 0, 0.0

    async def timed(verb: Awaitable[T]) -> T:
        nonlocal longest_s
        verb_began_s = time.monotonic()
        done = await verb
        longest_s = max(longest_s, time.monotonic() - verb_began_s)
        return done

    wait()
    began_s, cpu_began_s = time.monotonic(), time.process_time()
    while time.monotonic() < began_s + seconds:
        _, claim = await timed(store.claim_next(objective_id, worker_id, deferral=deferral))
        match claim:
            case Claim():
                await timed(store.record_result(claim, text="It is a number.", origins=["model:m"]))
                n_turns += 1
            case DutyClaim():
                recorded = await timed(
                    store.tasks(objective_id, statuses=[TaskStatus.RECORDED], limit=MAX_PLANNED)
                )
                task_ids = [task.id for task in recorded]
                proposals = tuple(
                    Proposal(name=f"Ask {worker_id} about number {task_id}", parent_id=task_id)
                    for task_id in task_ids
                )
                plan = Planned(proposals=proposals)
                await timed(store.record_plan(claim, task_ids=task_ids, plan=plan))
            case None:
                raise RuntimeError("the list ran empty")
    cpu_s = time.process_time() - cpu_began_s
    await store.close()
    return Run(n_turns=n_turns, cpu_s=cpu_s, longest_s=longest_s)


def _process(
    place: str,
    objective_id: int,
    worker_id: str,
    pace: tuple[float, int],
    barrier: multiprocessing.synchronize.Barrier,
    runs: Queue[Run],
) -> None:
    runs.put(
        asyncio.run(
            _work(
                place,
                objective_id,
                worker_id=worker_id,
                pace=pace,
                wait=lambda: barrier.wait(60),
            )
        )
    )


def _measure(
    place: str,
    *,
    n_queued: int,
    n_processes: int,
    pace: tuple[float, int],
    server: PostgresServer | None,
) -> Sequence[str]:
    objective_id = asyncio.run(_begin(place, n_queued=n_queued, server=server))
    context = multiprocessing.get_context("spawn")
    barrier, runs = context.Barrier(n_processes), context.Queue()
    server_before_s = _server_cpu_s(server)
    processes = [
        context.Process(
            target=_process, args=(place, objective_id, f"w{n_queued}-{n}", pace, barrier, runs)
        )
        for n in range(n_processes)
    ]
    for process in processes:
        process.start()
    done = [runs.get(timeout=120 + pace[0]) for _ in processes]
    for process in processes:
        process.join()
    n_turns = sum(run.n_turns for run in done)
    cpu_s = sum(run.cpu_s for run in done) + _server_cpu_s(server) - server_before_s
    longest_s = max(run.longest_s for run in done)
    note = "" if longest_s <= GOAL_WAIT_S else " **missed**"
    return [
        "PostgreSQL" if server else "SQLite",
        f"{n_processes}",
        f"{n_queued:,}",
        f"{n_turns / pace[0]:,.0f}",
        f"{cpu_s / n_turns * 1e3:.2f}",
        f"{longest_s * 1e3:.0f}{note}",
    ]


def _server_cpu_s(server: PostgresServer | None) -> float:
    """The processor time of the server's processes, those that have ended too."""
    if server is None:
        return 0.0
    postmaster = int((server.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    ticks = sum(_stat(postmaster)[11:15])
    for path in Path("/proc").glob("[0-9]*"):
        try:
            fields = _stat(int(path.name))
        except OSError:
            continue
        ticks += sum(fields[11:13]) if fields[1] == postmaster else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[int]:
    """The fields of /proc/PID/stat after the name: state as 0, ppid at 1, utime, stime, cutime,
    cstime at 11 to 14."""
    return [0, *map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1:20])]


async def _all_at_once(place: str, *, n_tasks: int, server: PostgresServer | None) -> Sequence[str]:
    """Every task of a list claimed by one process before the first is finished; each result is
    recorded with its plan."""
    objective_id = await _begin(place, n_queued=n_tasks, server=server)
    offload = ThreadOffload()
    store, claimed = await _open(place, offload=offload), asyncio.Barrier(n_tasks)
    await store.register_worker(
        Worker(id="all", name="all", host="h", pid=os.getpid(), lease_until=_now()), lease_s=LEASE_S
    )
    await store.join_objective("all", objective_id)

    async def turn() -> None:
        claim = await store.claim_task(objective_id, "all")
        if claim is None:
            raise RuntimeError("the list ran empty")
        await claimed.wait()
        await store.record_result(
            claim, text="It is a number.", origins=["model:m"], plan=Planned()
        )

    began_s, cpu_began_s = time.monotonic(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(n_tasks):
            group.create_task(turn())
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - cpu_began_s
    await store.close()
    offload.close()
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    engine = "PostgreSQL (without the server)" if server else "SQLite"
    return [
        engine,
        f"{n_tasks:,}",
        f"{n_tasks / wall_s:,.0f}",
        f"{cpu_s / n_tasks * 1e3:.2f}",
        f"{peak_mib:.0f}",
    ]


async def _waking(place: str, *, n_commits: int, server: PostgresServer | None) -> Sequence[str]:
    """How long after a commit of one store the wait of another ends."""
    objective_id = await _begin(place, n_queued=2, server=server)
    waiting, writing, late_ms = await _open(place), await _open(place), []
    await waiting.wait_for_change(timeout_s=5)
    for number in range(n_commits):
        wait = asyncio.create_task(waiting.wait_for_change(timeout_s=5))
        await asyncio.sleep(0.002 * (number % 50))
        await writing.append_event(objective_id, kind="said", data={})
        committed_at_s = time.monotonic()
        await wait
        late_ms.append((time.monotonic() - committed_at_s) * 1e3)
    await waiting.close()
    await writing.close()
    late_ms.sort()
    engine = "PostgreSQL" if server else "SQLite"
    return [
        engine,
        f"{n_commits}",
        f"{late_ms[n_commits // 2]:.0f}",
        f"{late_ms[n_commits * 99 // 100]:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--stores", nargs="+", default=["sqlite", "postgres"], choices=["sqlite", "postgres"]
    )
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 4, 8])
    parser.add_argument("--queued", nargs="+", type=int, default=[100, 10_000, 1_000_000])
    parser.add_argument(
        "--at-once", type=int, default=10_000, help="tasks at once in one process; 0 for none"
    )
    parser.add_argument("--planned", type=int, default=MIN_PLANNED, help="results planned together")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each row")
    options = parser.parse_args()
    rows, at_once, waking = [], [], []
    for kind in options.stores:
        server = (
            PostgresServer("fsync=on", "full_page_writes=on", "shared_buffers=256MB")
            if kind == "postgres"
            else None
        )
        with tempfile.TemporaryDirectory() as folder:
            try:
                if server:
                    server.start()
                place = server.url() if server else str(Path(folder) / "tasks.db")
                for n_queued in options.queued:
                    for n in options.processes:
                        rows.append(
                            _measure(
                                place,
                                n_queued=n_queued,
                                n_processes=n,
                                pace=(options.seconds, options.planned),
                                server=server,
                            )
                        )
                        print(*rows[-1], flush=True)
                waking.append(asyncio.run(_waking(place, n_commits=200, server=server)))
                if options.at_once:
                    at_once.append(
                        asyncio.run(_all_at_once(place, n_tasks=options.at_once, server=server))
                    )
            finally:
                if server:
                    server.close()
    print_table(
        "turns in a list",
        ["store", "processes", "queued", "turns a second", "cpu ms a turn", "longest ms"],
        rows,
    )
    print(
        f"goals: longest at most {GOAL_WAIT_S * 1e3:.0f} ms; cpu with the longest list "
        f"at most {GOAL_GROWTH} times that with the shortest"
    )
    print_table(
        f"from commit to wake (goal: p99 at most {GOAL_WAKE_MS} ms)",
        ["store", "commits", "median ms", "p99 ms"],
        waking,
    )
    if at_once:
        print_table(
            "a list claimed at once by one process",
            ["store", "at once", "turns a second", "cpu ms a turn", "peak MiB"],
            at_once,
        )


if __name__ == "__main__":
    main()
