"""How soon a worker that waits claims what another process commits, and what waiting costs.

The tasks are committed here and claimed by a worker process; both times are the store's. A worker
that serves an objective at work is woken by a task that is added; one that waits on an empty board,
by an objective.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from babyagi.tasks import Proposal
from babyagi.taskstore.sql.store import TaskStore
from support.board import (
    STORES,
    Board,
    Surveyor,
    WorkerProcess,
    name_of,
    open_board,
    open_store,
    open_stores,
)
from support.table import print_table, verdict

GOAL_S = 0.02
GOAL_IDLE_PERCENT = 0.5
IDLE_S = 30.0
TIMEOUT_S = 30.0
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class HoldingSurveyor(Surveyor):
    """Item 1 is answered when somebody says so; until then its objective stays at work."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()

    async def before_result(self, survey: int, item: int) -> None:
        if item == 1 and survey == 1:
            await self.let_go.wait()


async def time_added_tasks(
    board: Board, store: TaskStore, chance: random.Random, *, n: int
) -> list[float]:
    """Seconds from the commit of a task to its claim, `n` times; the objective is at work all the
    while."""
    objective_id = await board.submit(1, 1)
    await board.until(lambda: board.model.asked[1, 1] > 0, timeout_s=TIMEOUT_S)
    board.model.n_items_by_survey[2] = 0
    waits_s = []
    for item in range(2, n + 2):
        await asyncio.sleep(chance.uniform(0.1, 0.3))  # what the last one woke is asleep again
        await store.add_tasks(objective_id, [Proposal(name=name_of(2, item))])
        committed_us = _now_us()
        waits_s.append(await _until_claimed(board, objective_id, committed_us, n_claims=item))
    return waits_s


async def time_new_objectives(
    board: Board, store: TaskStore, chance: random.Random, *, n: int
) -> list[float]:
    """Seconds from the commit of an objective to the claim of its first task, `n` times; the worker
    has nothing to do before."""
    board.model.n_items_by_survey[3] = 1
    waits_s, first_id = [], await board.submit(3, 1)
    spec = (await store.objective(first_id)).spec
    for _ in range(n):
        await board.until(
            lambda: not board.rows("SELECT id FROM objective WHERE report IS NULL"),
            timeout_s=TIMEOUT_S,
        )
        await asyncio.sleep(chance.uniform(0.2, 0.4))
        objective, _ = await store.create_objective(spec, uid=secrets.token_hex(8), always_new=True)
        committed_us = _now_us()
        waits_s.append(await _until_claimed(board, objective.id, committed_us, n_claims=1))
    return waits_s


def _now_us() -> int:
    return round(datetime.now(UTC).timestamp() * 1e6)


async def _until_claimed(
    board: Board, objective_id: int, committed_us: int, *, n_claims: int
) -> float:
    """From the commit to the claim with this number, in seconds; this machine has one clock."""
    query = (
        f"SELECT at_us FROM event WHERE objective_id = {objective_id} AND kind = "
        "'task.claimed' ORDER BY id"
    )

    def is_claimed() -> bool:
        return len(board.rows(query)) >= n_claims

    if not await board.until(is_claimed, timeout_s=TIMEOUT_S):
        raise RuntimeError(f"nobody claimed it within {TIMEOUT_S:g} s")
    claimed_us: int = board.rows(query)[n_claims - 1]["at_us"]
    return max(0, claimed_us - committed_us) / 1e6


async def measure_idle(worker: WorkerProcess) -> float:
    """What a worker with nothing to do takes of a core, in percent."""
    before = _processor_s(worker.process.pid)
    await asyncio.sleep(IDLE_S)
    return 100 * (_processor_s(worker.process.pid) - before) / IDLE_S


def _processor_s(pid: int) -> float:
    """Of all threads, in user mode and in the kernel."""
    numbers = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(numbers[11]) + int(numbers[12])) / TICKS_A_SECOND


async def measure(kind: str, *, n: int) -> tuple[list[float], list[float], float]:
    """Waits for added tasks and for new objectives, and the processor that an idle worker takes."""
    model = HoldingSurveyor()
    chance = random.Random(n)
    with open_stores(kind) as make_store:
        async with open_board(make_store("waking"), model=model) as board:
            (worker,) = await board.start_workers("w1", env={"BABYAGI_LEASE_S": "30"})
            idle_percent = await measure_idle(worker)
            async with open_store(board.store_url) as store:
                added_s = await time_added_tasks(board, store, chance, n=n)
                model.let_go.set()
                created_s = await time_new_objectives(board, store, chance, n=n)
            worker.send(signal.SIGTERM)
            await worker.wait(TIMEOUT_S)
    return added_s, created_s, idle_percent


def percentile(values: Sequence[float], percent: float) -> float:
    return sorted(values)[ceil(percent / 100 * len(values)) - 1]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waking", description=__doc__)
    parser.add_argument("--commits", type=int, default=100, help="of each kind")
    parser.add_argument("--store", choices=STORES, action="append", help="default: both")
    options = parser.parse_args(argv)
    table: list[tuple[object, ...]] = []
    is_met = True
    for kind in options.store or STORES:
        added_s, created_s, idle_percent = asyncio.run(measure(kind, n=options.commits))
        for what, waits_s in (("a task is added", added_s), ("an objective is created", created_s)):
            p50, p99, most = (
                f"{1000 * percentile(waits_s, percent):.0f} ms" for percent in (50, 99, 100)
            )
            is_good = percentile(waits_s, 99) <= GOAL_S
            table.append(
                (
                    kind,
                    what,
                    len(waits_s),
                    p50,
                    p99,
                    most,
                    f"p99 {1000 * GOAL_S:.0f} ms",
                    verdict(is_good),
                )
            )
            is_met = is_met and is_good
        is_good = idle_percent <= GOAL_IDLE_PERCENT
        row = (
            kind,
            f"nothing, for {IDLE_S:g} s",
            "",
            f"{idle_percent:.2f} % of a core",
            "",
            "",
            f"{GOAL_IDLE_PERCENT} %",
            verdict(is_good),
        )
        table.append(row)
        is_met = is_met and is_good
    print_table(
        "From another process's commit to a claim",
        ("store", "what happens", "times", "p50", "p99", "longest", "goal", ""),
        table,
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
