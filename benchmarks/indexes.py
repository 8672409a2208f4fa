"""What an index costs at 1e3, 1e4 and 1e5 results: feeding, a query, the context of a task, a rebuild, a start, memory.

Each index and size is measured in a process of its own, on vectors of 768 numbers that come in clusters, as those of texts do. The
results stand in a SQLite task store, whose filling is not measured. The query is the index's own, the context is all that a task waits for,
and the rest (the least time of the processor without the query's) says whether anything but the index grows with the results.
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
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from babyagi.resultstore.base import VectorIndex
from babyagi.resultstore.builtin import BuiltinIndex
from babyagi.resultstore.chroma import ChromaIndex
from babyagi.resultstore.chroma_server import ChromaServerIndex
from babyagi.resultstore.context import choose_context
from babyagi.resultstore.hashing import HashEmbedder
from babyagi.resultstore.projector import Projector, collection_of
from babyagi.resultstore.search import N_CANDIDATES, ResultSearch
from babyagi.tasks import Objective
from babyagi.taskstore.base import TaskStore
from babyagi.taskstore.offload import ThreadOffload
from babyagi.taskstore.sql import open_sqlite
from benchmarks.retrieval_set import make_others
from benchmarks.table import print_table, verdict
from tests.world import make_spec

INDEXES = ("builtin", "chroma", "chroma-server")
SIZES = (1_000, 10_000, 100_000)
CONTEXT_MS = 50.0
N_QUERIES = 30
DIMENSION = 768


def fill_database(path: Path, objective: Objective, n: int) -> None:
    """Write n results with their vectors, as if n tasks had been carried out: by the verbs it takes minutes, and is not measured."""
    import sqlite3

    import numpy as np

    draw = np.random.default_rng(3)
    centres = draw.normal(size=(200, DIMENSION)).astype("<f4")
    results = make_others(n)
    with sqlite3.connect(path) as database:
        tasks = [(objective.id, i, r["name"], r["name"], "done", i, '["model:made"]', i, i) for i, r in enumerate(results[1:], start=2)]
        columns = "objective_id, id, name, name_key, status, rank, origins, created_at_us, finished_at_us"
        database.executemany(f"INSERT INTO task ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", tasks)
        database.execute("UPDATE task SET status = 'done', name = ? WHERE id = 1", (results[0]["name"],))
        found = [
            (objective.id, i, r["text"], '["model:made"]', i, _checksum(objective.id, i, r["text"])) for i, r in enumerate(results, start=1)
        ]
        columns = "objective_id, task_id, text, origins, created_at_us, checksum"
        database.executemany(f"INSERT INTO result ({columns}) VALUES (?, ?, ?, ?, ?, ?)", found)
        for start in range(0, n, 10_000):
            size = min(10_000, n - start)
            noise = draw.normal(size=(size, DIMENSION)).astype("<f4")
            vectors = centres[draw.integers(0, 200, size)] + 0.6 * noise
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            rows = [(objective.id, objective.spec.embedding_space, start + i + 1, vector.tobytes()) for i, vector in enumerate(vectors)]
            database.executemany("INSERT INTO vector (objective_id, space, task_id, vector) VALUES (?, ?, ?, ?)", rows)
    database.close()


def _checksum(objective_id: int, task_id: int, text: str) -> str:
    from babyagi.tasks import Result
    from babyagi.taskstore.rows import from_time, result_to_values

    created_at = datetime.fromtimestamp(task_id / 1_000_000, UTC)
    result = Result(objective_id=objective_id, task_id=task_id, task_name="", text=text, origins=("model:made",), created_at=created_at)
    assert from_time(created_at) == task_id
    return str(result_to_values(result)["checksum"])


async def open_index(name: str, folder: Path, url: str, stack: AsyncExitStack) -> VectorIndex:
    if name == "builtin":
        return BuiltinIndex()
    if name == "chroma":
        offload = ThreadOffload(name="chroma")
        stack.callback(offload.close)
        index: VectorIndex = ChromaIndex(folder / "chroma", offload=offload)
    else:
        index = ChromaServerIndex(url)
    stack.push_async_callback(index.close)
    return index


async def measure(name: str, n: int, url: str) -> dict[str, float]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        offload = ThreadOffload()
        stack.callback(offload.close)
        store = await open_sqlite(folder / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload)
        stack.push_async_callback(store.close)
        spec = make_spec(text="Know what the offices cost", initial_task="First")
        objective, _ = await store.create_objective(spec, uid=f"indexes-{name}-{n}")
        await asyncio.to_thread(fill_database, folder / "tasks.db", objective, n)
        before_mib = _memory_mib()
        async with AsyncExitStack() as first:
            index = await open_index(name, folder, url, first)
            found = await _measure_feeding(store, index, objective, n)
        async with AsyncExitStack() as second:
            index = await open_index(name, folder, url, second)
            found |= await _measure_asking(store, index, objective)
            await index.drop(collection_of(objective))
        return {**found, "memory_mib": _memory_mib() - before_mib}


async def _measure_feeding(store: TaskStore, index: VectorIndex, objective: Objective, n: int) -> dict[str, float]:
    projector = Projector(store, index, objective=objective)
    began_s = time.perf_counter()
    while await projector.run_once(embed=_embed):
        pass
    feed_s = time.perf_counter() - began_s
    await index.drop(collection_of(objective))
    await store.owe_index(objective.id)
    began_s = time.perf_counter()
    while await projector.run_once(embed=_embed):
        pass
    return {"add_ms": 1000 * feed_s / n, "rebuild_s": time.perf_counter() - began_s}


async def _measure_asking(store: TaskStore, index: VectorIndex, objective: Objective) -> dict[str, float]:
    search = ResultSearch(store, index, objective=objective)
    task = replace((await store.tasks(objective.id, limit=1))[0], id=10_000_000)
    others = [other["name"] for other in make_others(N_QUERIES + 2)]

    async def choose(name: str) -> None:
        asked = replace(task, name=f"Compare with others: {name}")
        await choose_context(asked, objective=objective, search=search, embed=_embed, budget_tokens=1200)

    async def query(name: str) -> None:
        await index.query(collection_of(objective), HashEmbedder(DIMENSION).embed_text(name), k=N_CANDIDATES)

    start_ms, _ = await _time(choose(others[0]))
    contexts = [await _time(choose(name)) for name in others[2:]]
    queries = [await _time(query(name)) for name in others[2:]]
    return {
        "start_ms": start_ms,
        "context_ms": statistics.median(wall_ms for wall_ms, _ in contexts),
        "context_p95_ms": sorted(contexts)[int(0.95 * len(contexts))][0],
        "query_ms": statistics.median(wall_ms for wall_ms, _ in queries),
        "rest_ms": min(cpu_ms for _, cpu_ms in contexts) - min(cpu_ms for _, cpu_ms in queries),
    }


async def _time(work: Awaitable[None]) -> tuple[float, float]:
    """Milliseconds on the wall's clock, and of this process's processor."""
    began_s, cpu_s = time.perf_counter(), time.process_time()
    await work
    return 1000 * (time.perf_counter() - began_s), 1000 * (time.process_time() - cpu_s)


async def _embed(texts: Sequence[str]) -> list[bytes]:
    return (await HashEmbedder(DIMENSION).embed(texts))[0]


def _memory_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1_048_576


def run_apart(name: str, n: int, url: str) -> dict[str, float]:
    line = [sys.executable, "-m", "benchmarks.indexes", "--one", name, "--sizes", str(n), "--url", url]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def show(names: Sequence[str], sizes: Sequence[int]) -> None:
    from tests.resultstore.test_chroma_server import find_free_port, serving

    rows = []
    for name in names:
        for n in sizes:
            with ExitStack() as stack, TemporaryDirectory() as folder:
                port = find_free_port()
                if name == "chroma-server":
                    stack.enter_context(serving(Path(folder), port))
                found = run_apart(name, n, f"http://127.0.0.1:{port}")
            cells = [
                f"{found[key]:.1f}" for key in ("add_ms", "rebuild_s", "start_ms", "query_ms", "rest_ms", "context_ms", "context_p95_ms")
            ]
            rows.append((name, f"{n:,}", *cells, f"{found['memory_mib']:.0f}", verdict(found["context_ms"] <= CONTEXT_MS)))
    head = (
        "index",
        "results",
        "add ms",
        "rebuild s",
        "start ms",
        "query ms",
        "rest ms",
        "context ms",
        "p95",
        "memory MiB",
        f"{CONTEXT_MS:g} ms",
    )
    print_table(f"Indexes, vectors of {DIMENSION} numbers, contexts as the median of {N_QUERIES}", head, rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.indexes", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--indexes", choices=INDEXES, nargs="+", default=INDEXES)
    parser.add_argument("--one", choices=INDEXES, help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(asyncio.run(measure(options.one, options.sizes[0], options.url))))
    else:
        show(options.indexes, options.sizes)


if __name__ == "__main__":
    main()
