"""Random histories of reservations and settlements: spent + held never above a limit, and a limit
that ends a run is nearly reached.

Half of the histories keep every usage within its reservation, which is what the first promise is
about; the others have missing, negative and huge usages, and answers that come after their claim
was lost: nothing may lower what was spent.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from babyagi.runtime.offload import run_inline
from babyagi.taskstore.sqlite import MemoryTaskStore, open_sqlite
from support.table import print_table, verdict
from tests.faults.spread import spread
from tests.taskstore.histories import Ended, History, Time

N_IN_A_STORE = 20


def _run_in_memory(seed: int) -> Ended:
    async def run() -> Ended:
        clock = Time()
        store = MemoryTaskStore(clock)
        return await History(store, clock, seed=seed, is_honest=seed % 2 == 0).run()

    return asyncio.run(run())


def _run_in_sqlite(first: int) -> list[Ended]:
    """Several histories in one store, each an objective of its own."""

    async def run(folder: Path) -> list[Ended]:
        clock = Time()
        store = await open_sqlite(folder / "tasks.db", clock=clock, offload=run_inline)
        ended = [
            await History(store, clock, seed=seed, is_honest=seed % 2 == 0).run()
            for seed in range(first, first + N_IN_A_STORE)
        ]
        await store.close()
        return ended

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(Path(folder)))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.reservations", description=__doc__
    )
    parser.add_argument(
        "--memory", type=int, default=10_000, help="histories on the store in memory"
    )
    parser.add_argument("--sqlite", type=int, default=200, help="histories on SQLite")
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="the most for the histories of each store"
    )
    options = parser.parse_args(argv)
    began_s = time.monotonic()
    ended_by_store = {
        "SQLite": list(
            chain.from_iterable(
                spread(
                    _run_in_sqlite,
                    range(0, options.sqlite, N_IN_A_STORE),
                    within_s=options.seconds,
                )
            )
        ),
        "memory": spread(_run_in_memory, range(options.memory), within_s=options.seconds),
    }
    rows = []
    for store, ended in ended_by_store.items():
        n = Counter(one.limit or "none" for one in ended)
        rows.append(
            (
                store,
                len(ended),
                sum(one.n_calls for one in ended),
                *(n[name] for name in ("calls", "tokens", "cost", "none")),
            )
        )
    print_table(
        "Histories, by the limit that ended them",
        ("store", "histories", "calls", "calls", "tokens", "cost", "none"),
        rows,
    )
    print(
        f"0 violations, goal 0: {verdict(True)} ({time.monotonic() - began_s:.0f} s; the "
        "first violation would have ended this run)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
