"""What an index costs at 1e3, 1e4 and 1e5 results: adding one, a query, the context of a task, a
rebuild, a start, memory.

Each index and size is measured in a process of its own, on vectors of 768 numbers that come in
clusters, as those of texts do. The results stand in a SQLite task store, whose filling is not
measured. A rebuild feeds an empty index with all but the last 1,000 (of 1,000: 100) from the stored
vectors; adding feeds these. The context is all that a task waits for, the query is what of it is
the index's, and the rest says whether anything but the index grows with the results.

The servers of Weaviate and Pinecone are those of the tests, which search exactly: their rows
measure the clients and the way there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from babyagi.index.context import choose_context
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import Indexer
from babyagi.index.port import Hit, VectorIndex
from babyagi.index.search import ResultSearch
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Objective
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from support.index_servers import INDEXES, find_ports, open_index, serving
from support.retrieval_set import make_others
from support.table import print_table, verdict
from support.world import make_spec

SIZES = (1_000, 10_000, 100_000)
CONTEXT_MS = 50.0
CONTEXT_TOKENS = 4000  # what a run has unless its settings say otherwise
N_QUERIES = 30
DIMENSION = 768
CALL_TIMEOUT_S = 120.0
COLUMNS = {
    "add_ms": ("add ms", ".1f"),
    "rebuild_s": ("rebuild s", ".1f"),
    "start_ms": ("start ms", ".0f"),
    "query_ms": ("query ms", ".1f"),
    "rest_ms": ("rest ms", ".1f"),
    "context_ms": ("context ms", ".1f"),
    "context_p95_ms": ("p95", ".1f"),
    "memory_mib": ("memory MiB", ".0f"),
    "server_mib": ("of its server", ".0f"),
}


def fill_database(path: Path, objective: Objective, task_ids: range) -> None:
    """Write the results of these tasks with their vectors, as if they had been carried out: by the
    verbs it takes minutes, and is not measured."""
    import sqlite3

    import numpy as np

    draw = np.random.default_rng(task_ids.start)
    centres = np.random.default_rng(3).normal(size=(200, DIMENSION)).astype("<f4")
    others = dict(zip(task_ids, make_others(task_ids.stop - 1)[task_ids.start - 1 :], strict=True))
    with sqlite3.connect(path) as database:
        columns = (
            "objective_id, id, name, name_key, status, rank, origins, created_at_us, finished_at_us"
        )
        tasks = [
            (objective.id, i, other["name"], other["name"], "done", i, '["model:made"]', i, i)
            for i, other in others.items()
        ]
        database.executemany(
            f"INSERT OR REPLACE INTO task ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", tasks
        )
        columns = "objective_id, task_id, text, origins, created_at_us, checksum"
        results = [
            (
                objective.id,
                i,
                other["text"],
                '["model:made"]',
                i,
                _checksum(objective.id, i, other["text"]),
            )
            for i, other in others.items()
        ]
        database.executemany(f"INSERT INTO result ({columns}) VALUES (?, ?, ?, ?, ?, ?)", results)
        for start in range(0, len(task_ids), 10_000):
            part = task_ids[start : start + 10_000]
            vectors = centres[draw.integers(0, 200, len(part))] + 0.6 * draw.normal(
                size=(len(part), DIMENSION)
            ).astype("<f4")
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            rows = [
                (objective.id, objective.spec.embedding_space, i, vector.tobytes())
                for i, vector in zip(part, vectors, strict=True)
            ]
            database.executemany(
                ("INSERT INTO vector (objective_id, space, task_id, vector) VALUES (?, ?, ?, ?)"),
                rows,
            )
    database.close()


def _checksum(objective_id: int, task_id: int, text: str) -> str:
    from babyagi.tasks import Result
    from babyagi.taskstore.sql.database import from_time, result_to_values

    created_at = datetime.fromtimestamp(task_id / 1_000_000, UTC)
    result = Result(
        objective_id=objective_id,
        task_id=task_id,
        task_name="",
        text=text,
        origins=("model:made",),
        created_at=created_at,
    )
    assert from_time(created_at) == task_id
    return str(result_to_values(result)["checksum"])


async def measure(name: str, n: int, ports: Sequence[int]) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        # so that its memory is not counted
        apart = stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
        offload = ThreadOffload()
        stack.callback(offload.close)
        store = await open_sqlite(
            folder / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload
        )
        stack.push_async_callback(store.close)
        spec = make_spec(text="Know what the offices cost", initial_task="First")
        objective, _ = await store.create_objective(spec, uid=f"indexes-{name}-{n}")
        before_mib = memory_mib()
        n_added = min(1_000, n // 10)
        feed_s = []
        async with AsyncExitStack() as first:
            indexer = Indexer(
                store,
                open_index(name, folder, ports, first, timeout_s=CALL_TIMEOUT_S),
                objective=objective,
            )
            for task_ids in (range(1, n - n_added + 1), range(n - n_added + 1, n + 1)):
                await asyncio.get_running_loop().run_in_executor(
                    apart, fill_database, folder / "tasks.db", objective, task_ids
                )
                feed_s.append(await _feed(indexer))
            del indexer  # the built-in index with it
        async with AsyncExitStack() as second:
            index = open_index(name, folder, ports, second, timeout_s=CALL_TIMEOUT_S)
            found = await _measure_asking(store, index, objective)
            return {
                "rebuild_s": feed_s[0],
                "add_ms": 1000 * feed_s[1] / n_added,
                **found,
                "memory_mib": memory_mib() - before_mib,
            }


async def _feed(indexer: Indexer) -> float:
    """Seconds until nothing is owed."""
    began_s = time.perf_counter()
    while await indexer.run_once(embed=_embed):
        pass
    return time.perf_counter() - began_s


async def _measure_asking(
    store: TaskStore, index: VectorIndex, objective: Objective
) -> dict[str, float]:
    search = ResultSearch(store, index, objective=objective)
    task = replace((await store.tasks(objective.id, limit=1))[0], id=10_000_000)
    others = [other["name"] for other in make_others(N_QUERIES + 2)]
    queries_ms: list[float] = []
    ask = index.query

    async def ask_timed(collection: str, vector: bytes, *, k: int) -> list[Hit]:
        began_s = time.perf_counter()
        hits = await ask(collection, vector, k=k)
        queries_ms.append(1000 * (time.perf_counter() - began_s))
        return hits

    async def choose(name: str) -> float:
        asked = replace(task, name=f"Compare with others: {name}")
        began_s = time.perf_counter()
        await choose_context(asked, search=search, embed=_embed, budget_tokens=CONTEXT_TOKENS)
        return 1000 * (time.perf_counter() - began_s)

    start_ms = await choose(others[0])
    with patch.object(index, "query", ask_timed):
        contexts_ms = [await choose(name) for name in others[2:]]
    return {
        "start_ms": start_ms,
        "context_ms": statistics.median(contexts_ms),
        "context_p95_ms": sorted(contexts_ms)[int(0.95 * N_QUERIES)],
        "query_ms": statistics.median(queries_ms),
        "rest_ms": statistics.median(
            whole - query for whole, query in zip(contexts_ms, queries_ms, strict=True)
        ),
    }


async def _embed(texts: Sequence[str]) -> list[bytes]:
    return (await HashEmbedder(DIMENSION).embed(texts))[0]


def memory_mib(pid: int | str = "self") -> float:
    return (
        int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1_048_576
    )


def run_apart(name: str, n: int) -> dict[str, float]:
    with TemporaryDirectory() as folder:
        ports = find_ports()
        with serving(name, Path(folder), ports) as pid:
            line = [
                sys.executable,
                "-m",
                "benchmarks.indexes",
                "--one",
                name,
                "--sizes",
                str(n),
                "--ports",
                *map(str, ports),
            ]
            done = subprocess.run(line, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(done.stderr)
            found: dict[str, float] = json.loads(done.stdout)
            return {**found, "server_mib": memory_mib(pid) if pid else 0.0}


def show(names: Sequence[str], sizes: Sequence[int]) -> None:
    rows = []
    for name in names:
        for n in sizes:
            print(f"{name}, {n:,} results …", file=sys.stderr, flush=True)
            found = run_apart(name, n)
            cells = [f"{found[key]:{form}}" for key, (_, form) in COLUMNS.items()]
            rows.append((name, f"{n:,}", *cells, verdict(found["context_ms"] <= CONTEXT_MS)))
    head = ("index", "results", *(title for title, _ in COLUMNS.values()), f"{CONTEXT_MS:g} ms")
    print_table(
        f"Indexes, vectors of {DIMENSION} numbers, contexts as the median of {N_QUERIES}",
        head,
        rows,
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.indexes", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--indexes", choices=INDEXES, nargs="+", default=INDEXES)
    parser.add_argument("--one", choices=INDEXES, help=argparse.SUPPRESS)
    parser.add_argument("--ports", type=int, nargs=2, default=(0, 0), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(asyncio.run(measure(options.one, options.sizes[0], options.ports))))
    else:
        show(options.indexes, options.sizes)


if __name__ == "__main__":
    main()
