"""Workers that are killed, frozen and suspended, clocks that jump, stores that nobody can write to:
no healthy task is given up.

Three worker processes with a lease of 3 s, each with a home of its own, work on surveys whose every
answer takes 5 s. Every few seconds something happens to one of them, to all, or to the store. With
SQLite the workers have one clock, as processes of one machine have; with PostgreSQL each has its
own, and the store's is the server's. Afterwards the store, its events and the model's own count are
compared.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.board import LEASE_S, STORES, Board, Found, WorkerProcess, open_board
from support.postgres_server import PostgresServer
from support.table import print_table, verdict
from tests.faults.takeover import HOUR_S, JUMPING_PATH, set_clock

LATENCY_S = 5.0
N_WORKERS = 3
N_ITEMS = 24
LOCK_S = 60.0
START_S = 3.0
PAUSE_S = (1.0, 8.0)  # between two interruptions
END_S = 300.0  # a survey that nothing interrupts any more has ended by then
ALL_IN_TURN = 40  # interruptions in which a lock of the store comes once


@dataclass(slots=True, kw_only=True)
class Stage:
    """What an interruption can strike."""

    board: Board
    chance: random.Random
    clocks: Sequence[Path]
    server: PostgresServer | None
    n_items: int
    workers: list[WorkerProcess] = field(default_factory=list)

    async def start(self, at: int) -> WorkerProcess:
        clock = self.clocks[at % len(self.clocks)]
        return await self.board.start(
            f"w{at}", "worker", env={"PYTHONPATH": JUMPING_PATH, "JUMPING_CLOCK": str(clock)}
        )

    def send_all(self, number: signal.Signals) -> None:
        for worker in self.workers:
            worker.send(number)

    def set_clocks(self, *, together: bool) -> None:
        offset_s = self.chance.choice((HOUR_S, 0, -HOUR_S))
        for clock in self.clocks if together else [self.chance.choice(self.clocks)]:
            set_clock(clock, offset_s)


# -- what happens
# --------------------------------------------------------------------------------------------------


async def kill(stage: Stage) -> None:
    """SIGKILL; the worker is started again under its name within a second or two."""
    at = stage.chance.randrange(N_WORKERS)
    victim = stage.workers[at]
    victim.send(signal.SIGKILL)
    await victim.process.wait()
    stage.board.processes.remove(victim)
    await asyncio.sleep(stage.chance.uniform(0.0, 2.0))
    stage.workers[at] = await stage.start(at)


async def freeze(stage: Stage) -> None:
    """SIGSTOP for longer than the lease."""
    victim = stage.chance.choice(stage.workers)
    victim.send(signal.SIGSTOP)
    await asyncio.sleep(LEASE_S + stage.chance.uniform(0.5, 3.0))
    victim.send(signal.SIGCONT)


async def suspend(stage: Stage) -> None:
    """All sleep; the wall clock goes on and the monotonic one stands still."""
    stage.send_all(signal.SIGSTOP)
    stage.set_clocks(together=True)
    await asyncio.sleep(0.2)
    stage.send_all(signal.SIGCONT)


async def suspend_long(stage: Stage) -> None:
    """All sleep for longer than the lease; both clocks go on."""
    stage.send_all(signal.SIGSTOP)
    stage.set_clocks(together=True)
    await asyncio.sleep(2 * LEASE_S)
    stage.send_all(signal.SIGCONT)


async def jump(stage: Stage) -> None:
    """A clock is set by an hour."""
    stage.set_clocks(together=False)


async def lock(stage: Stage) -> None:
    """Nobody can write to the store for a minute."""
    if stage.server is not None:
        await asyncio.to_thread(stage.server.stop, "immediate")
        await asyncio.sleep(LOCK_S)
        await asyncio.to_thread(stage.server.start)
        return
    foreign = sqlite3.connect(
        stage.board.store_url.removeprefix("sqlite://"), isolation_level=None, timeout=30
    )
    try:
        foreign.execute("BEGIN EXCLUSIVE")
        await asyncio.sleep(LOCK_S)
        foreign.execute("ROLLBACK")
    finally:
        foreign.close()


INTERRUPTIONS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "killed": kill,
    "frozen": freeze,
    "suspended, one clock still": suspend,
    "suspended, both clocks go on": suspend_long,
    "clock set by an hour": jump,
}


def choose(number: int, chance: random.Random) -> str:
    """The name of the interruption; half of them are kills, and now and then one is a lock of the
    store."""
    if number % ALL_IN_TURN == ALL_IN_TURN // 2:
        return "store locked for a minute"
    return chance.choice(["killed"] * 4 + list(INTERRUPTIONS))


# -- one campaign
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of it. `given_up` are healthy tasks that are dead, `falsely_finished` runs that
    ended well without every item done."""

    kind: str
    n_by_name: Counter[str]
    n_surveys: int
    n_done: int
    given_up: Sequence[str]
    falsely_finished: Sequence[Found]
    unfinished: Sequence[Found]
    n_failures: int
    n_lost_workers: int
    most_lost: int
    n_asked_again: int
    trouble: Sequence[str]

    @property
    def is_good(self) -> bool:
        return not (
            self.given_up
            or self.falsely_finished
            or self.unfinished
            or self.n_failures
            or self.trouble
        )


async def interrupt(
    stage: Stage, objective_ids: dict[int, int], *, n: int, until_s: float
) -> Counter[str]:
    """Let things happen to the workers, and submit another survey whenever the last one is over."""
    n_by_name: Counter[str] = Counter()
    while n_by_name.total() < n and time.monotonic() < until_s:
        survey = len(objective_ids)
        if not survey or stage.board.is_over(objective_ids[survey]):
            objective_ids[survey + 1] = await stage.board.submit(
                survey + 1, stage.n_items, BABYAGI_MAX_TIME_S="0", BABYAGI_MAX_TOKENS="0"
            )
        await asyncio.sleep(stage.chance.uniform(*PAUSE_S))
        name = choose(n_by_name.total(), stage.chance)
        await INTERRUPTIONS.get(name, lock)(stage)
        n_by_name[name] += 1
    return n_by_name


async def campaign(kind: str, options: argparse.Namespace, folder: Path) -> Seen:
    chance = random.Random(options.seed)
    server = PostgresServer() if kind == "postgresql" else None
    try:
        if server is not None:
            server.start()
        async with open_board(
            server.url() if server else f"sqlite://{folder}/interrupted.db"
        ) as board:
            board.model.latency_s = LATENCY_S
            clocks = [board.folder / f"clock{at}" for at in range(N_WORKERS if server else 1)]
            for clock in clocks:
                set_clock(clock, 0)
            stage = Stage(
                board=board,
                chance=chance,
                clocks=clocks,
                server=server,
                n_items=options.items,
            )
            stage.workers = [await stage.start(at) for at in range(N_WORKERS)]
            objective_ids: dict[int, int] = {}
            until_s = time.monotonic() + options.seconds
            n_by_name = await interrupt(
                stage, objective_ids, n=options.interruptions, until_s=until_s
            )
            last_id = objective_ids[len(objective_ids)]
            await board.until(lambda: board.is_over(last_id), timeout_s=END_S, every_s=0.5)
            await asyncio.sleep(START_S)  # the worker that was killed last has begun again
            stage.send_all(signal.SIGTERM)
            codes = [await worker.wait(60) for worker in stage.workers]
            return look(board, kind, n_by_name, objective_ids, codes)
    finally:
        if server is not None:
            server.close()


def look(
    board: Board,
    kind: str,
    n_by_name: Counter[str],
    objective_ids: dict[int, int],
    codes: Sequence[int | None],
) -> Seen:
    found = [
        board.look_over(objective_id, survey) for survey, objective_id in objective_ids.items()
    ]
    said = {worker.name: worker.said for worker in board.processes}
    bad_codes = [f"a worker ended with {code}" for code in codes if code != 128 + signal.SIGTERM]
    events = Counter(
        row["kind"] for row in board.rows("SELECT kind FROM event WHERE kind = 'worker.lost'")
    )
    released = board.rows(
        "SELECT task_id, objective_id FROM event WHERE kind = 'task.released' AND data LIKE "
        "'%worker lost%'"
    )
    return Seen(
        kind=kind,
        n_by_name=n_by_name,
        n_surveys=len(found),
        n_done=sum(one.n_done for one in found),
        given_up=[
            f"{row['name']}: {row['error']}"
            for row in board.rows("SELECT name, error FROM task WHERE status = 'dead'")
        ],
        falsely_finished=[
            one for one in found if one.ended in ("finished", "objective_met") and not one.is_whole
        ],
        unfinished=[one for one in found if one.ended not in ("finished", "objective_met")],
        n_failures=sum(one.n_failures for one in found),
        n_lost_workers=events["worker.lost"],
        most_lost=max(
            Counter((row["objective_id"], row["task_id"]) for row in released).values(), default=0
        ),
        n_asked_again=sum(one.n_asked_again for one in found),
        trouble=[
            *bad_codes,
            *(f"{name}: {text[-1500:]}" for name, text in said.items() if "Traceback" in text),
        ],
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.interruptions", description=__doc__
    )
    parser.add_argument("--interruptions", type=int, default=200, help="for each store")
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="the most that each store is interrupted for"
    )
    parser.add_argument("--items", type=int, default=N_ITEMS, help="of each survey")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=STORES, action="append", help="default: both")
    options = parser.parse_args(argv)
    seen = [run(kind, options) for kind in options.store or STORES]
    rows = [
        (
            *(
                one.kind,
                one.n_by_name.total(),
                one.n_surveys,
                one.n_done,
                len(one.given_up),
                len(one.falsely_finished),
                len(one.unfinished),
            ),
            *(one.n_failures, one.n_lost_workers, one.most_lost, one.n_asked_again),
        )
        for one in seen
    ]
    for one in seen:
        print(
            f"{one.kind}: " + ", ".join(f"{name} {n}" for name, n in sorted(one.n_by_name.items()))
        )
        for fault in (*one.given_up, *one.falsely_finished, *one.unfinished, *one.trouble):
            print(f"{one.kind}: {fault}", file=sys.stderr)
    head = ("store", "interruptions", "runs", "done", "given up", "falsely finished", "unfinished")
    more = ("failures", "workers lost", "most of a task", "asked again")
    print_table(
        (f"{N_WORKERS} workers with a lease of {LEASE_S:g} s, answers that take {LATENCY_S:g} s"),
        (*head, *more),
        rows,
    )
    print(
        "no healthy task given up, no run called finished that is not: "
        f"{verdict(all(one.is_good for one in seen))}"
    )
    return 0 if all(one.is_good for one in seen) else 1


def run(kind: str, options: argparse.Namespace) -> Seen:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="babyagi-interrupted-") as folder:
        return asyncio.run(campaign(kind, options, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
