"""Three workers, an indexer and an index's server are killed at random; at the end nothing is
lost, stored twice, owed, missing or extra.

Each worker carries out 1,500 tasks as a worker does that plans by itself (claim, result with plan)
and notes what was acknowledged; every fifth task's claim is also tried by the others. The indexer
feeds the index in a process of its own. `kill -9` strikes them in turn, and the servers of Weaviate
and Pinecone (ours, of the tests) forget everything when they are killed. When nobody is killed any
more, the indexer that lives must feed what is owed; only then a new one compares the index with
the truth and mends it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pickle
import random
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from babyagi.errors import BabyagiError, IndexUnavailableError, LeaseLostError
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer
from babyagi.index.search import ResultSearch
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Claim, Duty, Limits, Objective, Proposal, Worker
from babyagi.taskstore.nouns import Planned
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.worker.lease import reap_namesakes
from support.index_servers import INDEXES, find_ports, open_index, server_line
from support.retrieval_set import make_others
from support.table import print_table, verdict
from support.world import make_spec

N_WORKERS = 3
LEASE_S = 5.0
SETTLE_S = 120.0
PAUSE_S = (0.3, 2.0)  # between two kills
CALL_TIMEOUT_S = 5.0
SYNC_THRESHOLD = 200  # Chroma writes its graph so often that kills strike it
READ_LAG_S = 0.3  # of Pinecone


async def open_store(home: Path, stack: AsyncExitStack) -> tuple[TaskStore, Objective]:
    offload = ThreadOffload()
    stack.callback(offload.close)
    store = await open_sqlite(home / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload)
    stack.push_async_callback(store.close)
    return store, (await store.objectives())[0]


async def enter(store: TaskStore, objective: Objective, name: str) -> Worker:
    """A worker whose predecessor of the same name is dead."""
    await reap_namesakes(store, await store.workers(), name=name, home="chaos")
    await store.reap_workers()
    worker = Worker(
        id=f"{name}-{secrets.token_hex(4)}",
        name=name,
        host="here",
        pid=os.getpid(),
        lease_until=datetime.now(UTC),
        home="chaos",
    )
    await store.register_worker(worker, lease_s=LEASE_S)
    await store.join_objective(worker.id, objective.id)
    return worker


async def embed(texts: Sequence[str]) -> list[bytes]:
    return (await HashEmbedder(256).embed(texts))[0]


# -- the processes
# --------------------------------------------------------------------------------------------------


async def work(home: Path, name: str, n_results: int) -> None:
    """Carry tasks out until this name has as many results as it is to have; what is acknowledged is
    written down at once."""
    noted = home / f"acknowledged-{name}"
    texts = [other["text"] for other in make_others(200)]
    async with AsyncExitStack() as stack:
        store, objective = await open_store(home, stack)
        worker = await enter(store, objective, name)
        file = stack.enter_context(noted.open("a"))
        n_done = len(noted.read_text().splitlines())
        while n_done < n_results and (claim := await store.claim_task(objective.id, worker.id)):
            text = f"{texts[claim.task.id % 200]} {claim.task.id} by {name}"
            await store.record_result(claim, text=text, origins=("model:chaos",), plan=Planned())
            file.write(f"{claim.task.id}\n")
            file.flush()
            n_done += 1
            if claim.task.id % 5 == 0:
                (home / "claims" / f"{claim.task.id}").write_bytes(pickle.dumps(claim))
            await try_claims_of_others(store, home, name)
            await store.renew_lease(worker.id, lease_s=LEASE_S)
        await store.remove_worker(worker.id)


async def try_claims_of_others(store: TaskStore, home: Path, name: str) -> None:
    for path in list((home / "claims").iterdir())[:1]:
        with suppress(LeaseLostError, FileNotFoundError, EOFError, pickle.UnpicklingError):
            claim: Claim = pickle.loads(path.read_bytes())
            await store.record_result(claim, text=f"again, by {name}", origins=("model:chaos",))
        if random.random() < 0.5:
            path.unlink(missing_ok=True)


async def feed(home: Path, index_name: str, ports: Sequence[int], *, until_settled: bool) -> None:
    """Feed the index under the lease of its duty; with `until_settled` until nothing is owed, then
    print what a check says."""
    async with AsyncExitStack() as stack:
        store, objective = await open_store(home, stack)
        index = open_index(
            index_name, home, ports, stack, timeout_s=CALL_TIMEOUT_S, sync_threshold=SYNC_THRESHOLD
        )
        indexer = Indexer(store, index, objective=objective)
        worker = await enter(store, objective, "indexer")
        deadline_s = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline_s:
            await store.renew_lease(worker.id, lease_s=LEASE_S)
            claim = await store.claim_duty(objective.id, worker.id, Duty.INDEX)
            try:
                n_fed = await indexer.run_once(embed=embed) if claim or until_settled else 0
            except BabyagiError as error:
                if not isinstance(error, IndexUnavailableError):
                    raise
                n_fed = 0
            if claim:
                await store.release(claim)
            if (
                until_settled
                and not n_fed
                and not await store.result_ids(objective.id, is_indexed=False)
            ):
                if index.is_memory:
                    await ResultSearch(store, index, objective=objective).fill_memory()
                report = await indexer.check(n_probes=1000)
                print(
                    len(report.missing),
                    len(report.extra),
                    len(report.probe_misses),
                    report.n_held,
                    indexer.n_rebuilds,
                )
                return
            await asyncio.sleep(0.02 if n_fed else 0.2)


# -- the campaign
# --------------------------------------------------------------------------------------------------


@dataclass
class Cast:
    """The processes by role, what starts each, and how often each was killed."""

    lines: dict[str, list[str]]
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    log: Path = Path(os.devnull)

    def start(self, role: str) -> None:
        with self.log.open("a") as log:
            self.processes[role] = subprocess.Popen(
                self.lines[role], stdout=subprocess.DEVNULL, stderr=log, text=True
            )

    def kill(self, role: str) -> None:
        process = self.processes[role]
        if process.poll() is None:
            process.kill()
            self.kills[role.rstrip("0123456789")] += 1
        process.wait()

    def keep_up(self) -> None:
        """Start again whoever ended by itself with an error."""
        for role, process in list(self.processes.items()):
            if process.poll() not in (None, 0):
                self.start(role)


@contextmanager
def acting(lines: dict[str, list[str]], log: Path) -> Iterator[Cast]:
    cast = Cast(lines=lines, log=log)
    try:
        for role in sorted(lines, reverse=True):  # the server first
            cast.start(role)
        yield cast
    finally:
        for role in cast.processes:
            cast.processes[role].kill()
            cast.processes[role].wait()


async def prepare(home: Path, n_tasks: int) -> None:
    (home / "claims").mkdir()
    async with AsyncExitStack() as stack:
        offload = ThreadOffload()
        stack.callback(offload.close)
        store = await open_sqlite(
            home / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload
        )
        stack.push_async_callback(store.close)
        spec = make_spec(
            text="Survive",
            initial_task="Task 1",
            limits=Limits(max_tasks=0, max_time_s=0),
            embedding_space="hash:v1:256",
        )
        objective, _ = await store.create_objective(spec, uid=secrets.token_hex(8))
        for start in range(2, n_tasks + 1, 500):
            proposals = [
                Proposal(name=f"Task {n}") for n in range(start, min(start + 500, n_tasks + 1))
            ]
            await store.add_tasks(objective.id, proposals)


def read_acknowledged(home: Path) -> set[int]:
    return {
        int(line)
        for path in home.glob("acknowledged-*")
        for line in path.read_text().splitlines()
        if line
    }


async def count(home: Path, acknowledged: set[int]) -> tuple[int, int, int]:
    """How many results were acknowledged, how many of them are lost, and how many tasks have two
    results."""
    async with AsyncExitStack() as stack:
        store, objective = await open_store(home, stack)
        task_ids = await store.result_ids(objective.id)
        rewritten = [
            result.task_id
            for result in await store.results(objective.id)
            if result.text.startswith("again, by")
        ]
        return (
            len(acknowledged),
            len(acknowledged - set(task_ids)),
            len(task_ids) - len(set(task_ids)) + len(rewritten),
        )


async def count_owed(home: Path) -> int:
    async with AsyncExitStack() as stack:
        store, objective = await open_store(home, stack)
        return len(await store.result_ids(objective.id, is_indexed=False))


def campaign(name: str, *, seconds: float, n_results: int, seed: int) -> tuple[object, ...]:
    draw = random.Random(seed)
    ports = find_ports()
    with TemporaryDirectory() as folder:
        home = Path(folder)
        asyncio.run(prepare(home, N_WORKERS * n_results))
        me = [
            sys.executable,
            "-m",
            "tests.faults.index_chaos",
            "--home",
            folder,
            "--index",
            name,
            "--ports",
            *map(str, ports),
        ]
        lines = {
            f"worker{n}": [*me, "--act", f"worker{n}", "--results", str(n_results)]
            for n in range(N_WORKERS)
        }
        lines["indexer"] = [*me, "--act", "indexer"]
        if server := server_line(name, home, ports, lag_s=READ_LAG_S):
            lines["server"] = server
        with acting(lines, home / "log") as cast:
            end_s = time.monotonic() + seconds
            while time.monotonic() < end_s:
                time.sleep(draw.uniform(*PAUSE_S))
                victim = draw.choice(list(lines))
                cast.kill(victim)
                cast.start(victim)
                cast.keep_up()
            _let_workers_finish(cast)
            n_owed = _let_indexer_catch_up(cast, home)
            settled = _settle([*me, "--act", "settle"], cast)
            acknowledged, lost, twice = asyncio.run(count(home, read_acknowledged(home)))
    missing, extra, not_found, n_held, _ = settled
    kills = f"{cast.kills['indexer']} / {cast.kills['server']} / {cast.kills['worker']}"
    is_good = lost == twice == n_owed == missing == extra == not_found == 0
    return (
        name,
        seed,
        kills,
        f"{acknowledged:,}",
        lost,
        twice,
        n_owed,
        f"{n_held:,}",
        missing,
        extra,
        not_found,
        verdict(is_good),
    )


def _let_workers_finish(cast: Cast) -> None:
    """Nobody is killed any more; each worker comes to the number of results that it is to have."""
    deadline_s = time.monotonic() + SETTLE_S
    workers = [role for role in cast.lines if role.startswith("worker")]
    while time.monotonic() < deadline_s and any(
        cast.processes[role].poll() != 0 for role in workers
    ):
        cast.keep_up()
        time.sleep(0.2)
    for role in workers:
        cast.processes[role].kill()
        cast.processes[role].wait()


def _let_indexer_catch_up(cast: Cast, home: Path) -> int:
    """The indexer that was not killed last feeds what is owed, whatever the server has forgotten
    meanwhile; return what it leaves."""
    deadline_s = time.monotonic() + SETTLE_S
    while (n_owed := asyncio.run(count_owed(home))) and time.monotonic() < deadline_s:
        cast.keep_up()
        time.sleep(0.5)
    cast.processes["indexer"].kill()
    cast.processes["indexer"].wait()
    return n_owed


def _settle(line: list[str], cast: Cast) -> list[int]:
    for _ in range(4):  # a damaged Chroma crashes a start before it is emptied
        if "server" in cast.lines and cast.processes["server"].poll() is not None:
            cast.start("server")
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=2 * SETTLE_S, check=False
        )
        if done.returncode == 0 and done.stdout.strip():
            return [int(word) for word in done.stdout.split()]
    raise RuntimeError(f"it did not settle: {done.stderr[-2000:]}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.index_chaos", description=__doc__)
    parser.add_argument("--indexes", choices=INDEXES, nargs="+", default=INDEXES)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--results", type=int, default=1500, help="of each worker")
    parser.add_argument("--seeds", type=int, nargs="+", default=(1,))
    for hidden in ("--act", "--home", "--index"):
        parser.add_argument(hidden, default="", help=argparse.SUPPRESS)
    parser.add_argument("--ports", type=int, nargs=2, default=(0, 0), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    home = Path(options.home)
    if options.act.startswith("worker"):
        asyncio.run(work(home, options.act, options.results))
        return 0
    if options.act:
        asyncio.run(feed(home, options.index, options.ports, until_settled=options.act == "settle"))
        return 0
    rows = [
        campaign(name, seconds=options.seconds, n_results=options.results, seed=seed)
        for name in options.indexes
        for seed in options.seeds
    ]
    head = (
        "index",
        "seed",
        "kills p/s/w",
        "acknowledged",
        "lost",
        "twice",
        "owed",
        "indexed",
        "missing",
        "extra",
        "not found",
        "",
    )
    print_table(
        (f"{N_WORKERS} workers, kill -9 for {options.seconds:g} s (indexer / server / worker)"),
        head,
        rows,
    )
    return 0 if all(row[-1] == verdict(True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
