"""Workers that start in any order, join late and leave: every task is done once, nobody leaves
early, nobody hangs.

Each repetition has an objective of 24 tasks and 2 to 6 workers, each a process with a home of its
own: some began before there was an
objective, some begin while it is worked on, one is told to leave by SIGTERM. What is random comes
from the repetition's seed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from support.board import (
    STORES,
    Board,
    Found,
    WorkerProcess,
    open_board,
    open_stores,
    survey_line,
)
from support.table import print_table, verdict

N_TASKS = 24
MAX_WORKERS = 6
LATENCY_S = 0.1
LATEST_S = 2.5  # the last worker begins so late
HANG_S, GOING_S = 60.0, 15.0
SURVEY = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """One repetition: how the objective came out, and what its workers did. `trouble` is empty when
    all is well."""

    seed: int
    n_workers: int
    n_worked: int
    took_s: float
    found: Found
    n_early: int
    n_hung: int
    trouble: str

    @property
    def is_good(self) -> bool:
        return self.found.is_whole and not (
            self.n_early
            or self.n_hung
            or self.trouble
            or self.found.n_failures
            or self.found.n_asked_again
        )


async def run_once(url: str, *, seed: int, n_tasks: int = N_TASKS) -> Joined:
    """One objective with workers in an order that the seed says."""
    chance = random.Random(seed)
    async with open_board(url, is_timed=False) as board:
        board.model.latency_s, began_s = LATENCY_S, time.monotonic()
        n_workers = chance.randint(2, MAX_WORKERS)
        leaver = chance.randrange(n_workers)
        delays_s = [chance.uniform(0.0, LATEST_S) for _ in range(n_workers + 1)]
        lines = [
            chance.choice((("worker",), ("run", "--join", *survey_line(SURVEY))))
            for _ in range(n_workers)
        ]
        async with asyncio.TaskGroup() as group:
            submitting = group.create_task(_submit(board, n_tasks, delay_s=delays_s[-1] / 2))
            starting = [
                group.create_task(_start(board, f"w{n}", line, delay_s=delays_s[n]))
                for n, line in enumerate(lines)
            ]
        objective_id, workers = submitting.result(), [one.result() for one in starting]
        await asyncio.sleep(chance.uniform(0.0, 0.5))
        workers[leaver].send(signal.SIGTERM)
        is_over = await board.until(lambda: board.is_over(objective_id), timeout_s=HANG_S)
        took_s = time.monotonic() - began_s
        codes = await _let_go(workers)
        n_early = _count_early(board, objective_id, leaver=workers[leaver].name)
        return Joined(
            seed=seed,
            n_workers=n_workers,
            n_worked=len(_names(board, objective_id, "task.claimed")),
            took_s=took_s,
            found=board.look_over(objective_id, SURVEY),
            n_early=n_early,
            n_hung=codes.count(None) + (not is_over),
            trouble=_trouble(workers, codes),
        )


async def _submit(board: Board, n_tasks: int, *, delay_s: float) -> int:
    await asyncio.sleep(delay_s)
    return await board.submit(SURVEY, n_tasks)


async def _start(
    board: Board, name: str, line: tuple[str, ...], *, delay_s: float
) -> WorkerProcess:
    await asyncio.sleep(delay_s)
    return await board.start(name, *line, env={"BABYAGI_LEASE_S": "30"})


async def _let_go(workers: Sequence[WorkerProcess]) -> list[int | None]:
    """The objective is over: those that joined it go by themselves, those that serve all are told
    to. None for one that hangs."""
    for worker in workers:
        if worker.line == ("worker",):
            worker.send(signal.SIGTERM)
    return list(await asyncio.gather(*(worker.wait(GOING_S) for worker in workers)))


def _count_early(board: Board, objective_id: int, *, leaver: str) -> int:
    """Workers that left the objective before its report was written, though nobody had told them
    to."""
    where = f"WHERE objective_id = {objective_id} AND kind"
    reports = board.rows(f"SELECT id FROM event {where} = 'report.written'")
    left = board.rows(f"SELECT id, data FROM event {where} IN ('worker.left', 'worker.lost')")
    return (
        sum(
            row["id"] < reports[0]["id"] and json.loads(row["data"])["name"] != leaver
            for row in left
        )
        if reports
        else 0
    )


def _names(board: Board, objective_id: int, kind: str) -> set[str]:
    """Who did it, by name."""
    found = board.rows(
        f"SELECT data FROM event WHERE objective_id = {objective_id} AND kind = '{kind}'"
    )
    return {json.loads(row["data"])["worker_id"].rsplit("-", 1)[0] for row in found}


def _trouble(workers: Sequence[WorkerProcess], codes: Sequence[int | None]) -> str:
    """What nobody may see: a traceback, an exit code other than that of the end or of the signal
    (-15: it had not begun to run)."""
    came_out = zip(workers, codes, strict=True)
    bad = [
        f"{one.name} ended with {code}"
        for one, code in came_out
        if code not in (0, 143, None) and (code != -15 or one.said)
    ]
    bad += [
        f"{worker.name} showed a traceback: {worker.said[-2000:]}"
        for worker in workers
        if "Traceback" in worker.said
    ]
    return "; ".join(bad)


async def measure(kind: str, *, seeds: Sequence[int], at_once: int) -> list[Joined]:
    """Each seed once, some at the same time."""
    gate = asyncio.Semaphore(at_once)
    with open_stores(kind) as make_store:

        async def one(seed: int) -> Joined:
            async with gate:
                joined = await run_once(make_store(f"seed{seed}"), seed=seed)
            if not joined.is_good:
                print(f"{kind}, seed {seed}: {joined}", file=sys.stderr)
            return joined

        return list(await asyncio.gather(*(one(seed) for seed in seeds)))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.joining", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="that of the first repetition")
    parser.add_argument("--at-once", type=int, default=3, help="repetitions at the same time")
    parser.add_argument("--store", choices=STORES, action="append", help="default: both")
    options = parser.parse_args(argv)
    table, is_met = [], True
    for kind in options.store or STORES:
        seeds = range(options.seed, options.seed + options.repetitions)
        runs = asyncio.run(measure(kind, seeds=seeds, at_once=options.at_once))
        is_met = is_met and all(run.is_good for run in runs)
        counts = (
            sum(run.found.n_lost for run in runs),
            sum(run.found.n_doubled for run in runs),
            sum(run.found.n_asked_again for run in runs),
            sum(run.n_early for run in runs),
            sum(run.n_hung for run in runs),
            sum(bool(run.trouble) for run in runs),
        )
        workers = (
            f"{sum(run.n_worked for run in runs)} of {sum(run.n_workers for run in runs)} workers"
        )
        table.append((kind, len(runs), workers, *counts, f"{max(run.took_s for run in runs):.1f}"))
    head = (
        "store",
        "repetitions",
        "workers that got a task",
        "lost",
        "doubled",
        "asked twice",
        "left early",
        "hung",
        "trouble",
        "slowest s",
    )
    print_table(f"{N_TASKS} tasks, 2 to {MAX_WORKERS} workers that come and go", head, table)
    print(f"nothing lost, nothing done twice, nobody left early or hung: {verdict(is_met)}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
