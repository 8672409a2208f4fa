"""One measurement of the tree that stands first on the path, printed as JSON: `benchmarks.in_turn`
runs this file in the tree of an old commit and in that of today.

It uses the benchmarks of the tree itself, so that each is measured as it was built to work.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

N_WARM_UP = 10
N_PLANNED = 3  # results that are planned together, as by a worker


def probe_own(concurrency: str, n_tasks: str) -> dict[str, float]:
    """Milliseconds and kB of a task, with the built-in index; what a process does once, such as
    compiling patterns, is done before."""
    overhead = importlib.import_module("benchmarks.overhead")
    asyncio.run(overhead.measure_own_time("builtin", concurrency=1, n_tasks=N_WARM_UP))
    before = _written_bytes()
    wall_s, cpu_s = asyncio.run(
        overhead.measure_own_time("builtin", concurrency=int(concurrency), n_tasks=int(n_tasks))
    )
    written_kb = (_written_bytes() - before) / 1000 / int(n_tasks)
    return {"wall": 1000 * wall_s, "cpu": 1000 * cpu_s, "written": written_kb}


def probe_step(kind: str, n_steps: str) -> dict[str, float]:
    """Milliseconds of a step of an agent; the best of five runs of each."""
    steps: Any = importlib.import_module("benchmarks.steps")

    def best_ms(clock: Callable[[], float]) -> float:
        steps.time = SimpleNamespace(perf_counter=clock)
        took_s: list[float] = [asyncio.run(steps.measure(kind, int(n_steps))) for _ in range(5)]
        return 1000 * min(took_s)

    return {"wall": best_ms(time.perf_counter), "cpu": best_ms(time.process_time)}


def probe_turns(kind: str, seconds: str, *n_processes: str) -> dict[str, float]:
    """Turns a second of the task store, and the processor's milliseconds for one, by processes."""
    throughput = importlib.import_module("benchmarks.throughput")
    server = None
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            if kind == "postgres":
                server = throughput.PostgresServer("fsync=on", "full_page_writes=on")
                server.start()
            place = server.url() if server else str(Path(folder) / "tasks.db")
            # old code plans each result by itself
            is_old = "seconds" in inspect.signature(throughput._measure).parameters
            how_long: dict[str, Any] = (
                {"seconds": float(seconds)} if is_old else {"pace": (float(seconds), N_PLANNED)}
            )
            for n in map(int, n_processes):
                row = throughput._measure(
                    place, n_queued=1000, n_processes=n, server=server, **how_long
                )
                found[f"{n} turns"] = float(row[3].replace(",", ""))
                found[f"{n} cpu"] = float(row[4])
        finally:
            if server:
                server.close()
    return found


def _written_bytes() -> int:
    """Bytes that this process has sent to a disk, as Linux counts them; 0 elsewhere."""
    io = Path("/proc/self/io")
    lines = io.read_text().splitlines() if io.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


PROBES = {"own": probe_own, "step": probe_step, "turns": probe_turns}

if __name__ == "__main__":
    print(json.dumps(PROBES[sys.argv[1]](*sys.argv[2:])))
