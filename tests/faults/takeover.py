"""A worker that dies, freezes, or whose clock jumps: its task is somebody else's soon, and nothing
is lost or done twice.

Each worker is a process with a home of its own and a lease of 3 s. Its call to the model hangs when
it is killed with SIGKILL, or frozen with SIGSTOP for longer than its lease.
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
from pathlib import Path
from statistics import median
from typing import Any

from support.board import (
    LEASE_S,
    STORES,
    WAITING,
    Board,
    Surveyor,
    WorkerProcess,
    open_board,
    open_stores,
)
from support.processes import ROOT
from support.table import print_table, verdict

BY_ANOTHER_S = LEASE_S + 1.0
BY_ITSELF_S = 2.0
SOON_S = 30.0  # whatever takes longer is stranded
JUMPING_PATH = f"{Path(__file__).parent / 'jumping_clock'}:{ROOT}"
HOUR_S = 3600
N_JUMP_TASKS = 40


class HangingSurveyor(Surveyor):
    """The first request for an item's result is answered only when somebody says so; each further
    one at once."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()

    async def before_result(self, survey: int, item: int) -> None:
        if self.asked[survey, item] == 1:
            await self.let_go.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """How long a task was nobody's, in seconds; and whether it was done once."""

    took_s: float
    is_once: bool


# -- killed
# --------------------------------------------------------------------------------------------------


async def by_another(board: Board, survey: int) -> Takeover:
    """Of two workers that wait for work one gets the task; kill it, and wait until the other has
    it. Both are there again afterwards."""
    objective_id = await board.submit(survey, 1)
    holder = await holder_of(board, objective_id, survey)
    holder.send(signal.SIGKILL)
    killed_s = time.monotonic()
    took_s = await until_claimed_again(board, objective_id) - killed_s
    is_over = await board.until(lambda: board.is_over(objective_id), timeout_s=SOON_S)
    board.processes.remove(holder)
    await start_worker(board, holder.name)
    return Takeover(took_s=took_s, is_once=is_over and is_done_once(board, objective_id, survey))


async def by_itself(board: Board, survey: int) -> Takeover:
    """Kill the only worker, and start one with its name in its home; the time counts from that
    start."""
    objective_id = await board.submit(survey, 1)
    holder = await holder_of(board, objective_id, survey)
    holder.send(signal.SIGKILL)
    await holder.process.wait()
    board.processes.remove(holder)
    started_s = time.monotonic()
    await board.start(holder.name, "worker")
    took_s = await until_claimed_again(board, objective_id) - started_s
    is_over = await board.until(lambda: board.is_over(objective_id), timeout_s=SOON_S)
    return Takeover(took_s=took_s, is_once=is_over and is_done_once(board, objective_id, survey))


async def leave_alone(board: Board, name: str) -> None:
    """Let all workers go but the one of that name."""
    for process in board.processes:
        if process.name != name and process.is_alive:
            process.send(signal.SIGTERM)
            await process.wait(SOON_S)


async def start_worker(board: Board, name: str) -> WorkerProcess:
    """Return when the worker waits for work."""
    n_said = (
        len((board.folder / f"{name}.said").read_text())
        if (board.folder / f"{name}.said").exists()
        else 0
    )
    worker = await board.start(name, "worker")
    if not await board.until(lambda: WAITING in worker.said[n_said:], timeout_s=SOON_S):
        raise RuntimeError(f"{name} does not begin: {worker.said}")
    return worker


async def holder_of(board: Board, objective_id: int, survey: int) -> WorkerProcess:
    """Wait for the request about the objective's one task, and return the worker that sent it."""
    if not await board.until(lambda: board.model.asked[survey, 1] > 0, timeout_s=SOON_S):
        raise RuntimeError("nobody took the task")
    name = claims(board, objective_id)[0]["worker_id"].rsplit("-", 1)[0]
    return next(process for process in board.processes if process.name == name)


async def until_claimed_again(board: Board, objective_id: int) -> float:
    """When the task was seen in other hands, on this machine's clock."""
    await board.until(lambda: len(claims(board, objective_id)) > 1, timeout_s=SOON_S)
    return time.monotonic()


def claims(board: Board, objective_id: int) -> list[dict[str, Any]]:
    found = board.rows(
        f"SELECT data FROM event WHERE objective_id = {objective_id} AND kind = "
        "'task.claimed' ORDER BY id"
    )
    return [json.loads(row["data"]) for row in found]


def is_done_once(board: Board, objective_id: int, survey: int) -> bool:
    """No death counts as a failure; the call that was in flight may be made again."""
    found = board.look_over(objective_id, survey)
    return found.is_whole and found.n_failures == 0 and found.n_asked_again == 1


# -- frozen
# --------------------------------------------------------------------------------------------------


async def thaw(url: str) -> str:
    """Freeze a worker that holds a task for longer than its lease; return what is wrong afterwards,
    empty when nothing is."""
    model = HangingSurveyor()
    async with open_board(url, model=model, is_timed=False) as board:
        await asyncio.gather(*(start_worker(board, name) for name in ("w1", "w2")))
        objective_id = await board.submit(1, 1)
        holder = await holder_of(board, objective_id, 1)
        other = next(
            one for one in board.processes if one.line == ("worker",) and one is not holder
        )
        holder.send(signal.SIGSTOP)
        await until_claimed_again(board, objective_id)
        await board.until(lambda: board.is_over(objective_id), timeout_s=SOON_S)
        await board.until(
            lambda: not board.rows("SELECT id FROM result WHERE is_indexed = 0"), timeout_s=SOON_S
        )
        last_id = board.rows("SELECT max(id) AS id FROM event")[0]["id"]
        model.let_go.set()  # its answer waits for it
        await asyncio.sleep(0.2)
        old_id = claims(board, objective_id)[0]["worker_id"]
        holder.send(signal.SIGCONT)
        await board.until(lambda: bool(new_ids(board, holder, old_id)), timeout_s=SOON_S)
        late = board.rows(
            f"SELECT kind FROM event WHERE id > {last_id} AND objective_id = {objective_id}"
        )
        accepted = sorted(
            {row["kind"] for row in late}
            - {"step.recorded", "step.abandoned", "worker.joined", "worker.left"}
        )
        other.send(signal.SIGTERM)
        await other.wait(SOON_S)
        second_id = await board.submit(2, 6)
        goes_on = await board.until(lambda: board.is_over(second_id), timeout_s=SOON_S)
        ids = {claim["worker_id"] for claim in claims(board, second_id)}
        faults = [
            f"accepted: {' '.join(accepted)}" if accepted else "",
            ""
            if is_done_once(board, objective_id, 1)
            else f"not once: {board.look_over(objective_id, 1)}",
            "" if goes_on and board.look_over(second_id, 2).is_whole else "it did not go on",
            "" if ids and old_id not in ids else "it kept its old id",
            "" if "Traceback" not in holder.said else holder.said[-1000:],
        ]
        return "; ".join(fault for fault in faults if fault)


def new_ids(board: Board, worker: WorkerProcess, old_id: str) -> list[str]:
    found = [row["id"] for row in board.rows(f"SELECT id FROM worker WHERE name = '{worker.name}'")]
    return [number for number in found if number != old_id]


# -- clocks that jump
# --------------------------------------------------------------------------------------------------


async def jump(url: str, *, seed: int, n_tasks: int = N_JUMP_TASKS) -> str:
    """Three workers whose clocks jump by an hour, now and then, forwards and backwards; return what
    is wrong in the end.

    With SQLite they have one clock, as processes of one machine have; with PostgreSQL each has its
    own, and the store's is the server's.
    """
    chance = random.Random(seed)
    async with open_board(url, is_timed=False) as board:
        board.model.latency_s = 0.4
        clocks = [
            board.folder / ("clock" if url.startswith("sqlite") else f"clock{n}") for n in range(3)
        ]
        for clock in clocks:
            set_clock(clock, 0)
        workers = [
            await board.start(
                f"w{n}",
                "worker",
                "--concurrency",
                "2",
                env={"PYTHONPATH": JUMPING_PATH, "JUMPING_CLOCK": str(clock)},
            )
            for n, clock in enumerate(clocks)
        ]
        objective_id = await board.submit(1, n_tasks, BABYAGI_MAX_TIME_S="0")
        began_s, n_jumps = time.monotonic(), 0
        while not board.is_over(objective_id) and time.monotonic() < began_s + 2 * SOON_S:
            await asyncio.sleep(chance.uniform(0.2, 1.5))
            set_clock(chance.choice(clocks), chance.choice((HOUR_S, 0, -HOUR_S)))
            n_jumps += 1
        found = board.look_over(objective_id, 1)
        for worker in workers:
            worker.send(signal.SIGTERM)
        codes = [await worker.wait(SOON_S) for worker in workers]
        faults = [
            "" if found.is_whole and found.n_failures == 0 else f"{found}",
            "" if n_jumps >= 3 else f"{n_jumps} jumps",
            "" if set(codes) == {143} else f"exit codes {codes}",
            *(worker.said[-1000:] for worker in workers if "Traceback" in worker.said),
        ]
        return "; ".join(fault for fault in faults if fault)


def set_clock(clock: Path, offset_s: int) -> None:
    """What reads it sees the old or the new offset, never half of one."""
    beside = clock.with_suffix(".new")
    beside.write_text(str(offset_s))
    beside.rename(clock)


# -- all of it
# --------------------------------------------------------------------------------------------------


async def measure(kind: str, *, n: int, n_jumps: int) -> tuple[list[tuple[object, ...]], bool]:
    """Return the rows of the table, and whether all is as it should be."""
    with open_stores(kind) as make_store:
        async with open_board(make_store("killed"), model=HangingSurveyor()) as board:
            await asyncio.gather(*(start_worker(board, name) for name in ("w1", "w2")))
            others = [await by_another(board, survey) for survey in range(1, n + 1)]
        async with open_board(make_store("restarted"), model=HangingSurveyor()) as board:
            await start_worker(board, "w1")
            itself = [await by_itself(board, survey) for survey in range(1, n + 1)]
        frozen = [await thaw(make_store(f"frozen{at}")) for at in range(max(1, n // 5))]
        jumped = [await jump(make_store(f"jumped{seed}"), seed=seed) for seed in range(n_jumps)]
    for fault in (*frozen, *jumped):
        if fault:
            print(f"{kind}: {fault}", file=sys.stderr)
    rows: list[tuple[object, ...]] = [
        row_of(kind, "killed, another goes on", others, BY_ANOTHER_S),
        row_of(kind, "killed, itself goes on", itself, BY_ITSELF_S),
        (
            kind,
            "frozen, another goes on, thawed",
            len(frozen),
            "",
            "",
            "",
            sum(bool(fault) for fault in frozen),
        ),
        (
            kind,
            "clocks that jump by an hour",
            len(jumped),
            "",
            "",
            "",
            sum(bool(fault) for fault in jumped),
        ),
    ]
    is_met = not any(frozen) and not any(jumped)
    is_met = is_met and all(one.is_once and one.took_s <= BY_ANOTHER_S for one in others)
    return rows, is_met and all(one.is_once and one.took_s <= BY_ITSELF_S for one in itself)


def row_of(
    kind: str, what: str, takeovers: Sequence[Takeover], goal_s: float
) -> tuple[object, ...]:
    times_s = [one.took_s for one in takeovers]
    return (
        kind,
        what,
        len(times_s),
        f"{median(times_s):.2f}",
        f"{max(times_s):.2f}",
        f"{goal_s:g}",
        sum(not one.is_once for one in takeovers),
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.takeover", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--jumps", type=int, default=5, help="runs with clocks that jump")
    parser.add_argument("--store", choices=STORES, action="append", help="default: both")
    options = parser.parse_args(argv)
    table, is_met = [], True
    for kind in options.store or STORES:
        rows, is_good = asyncio.run(measure(kind, n=options.repetitions, n_jumps=options.jumps))
        table += rows
        is_met = is_met and is_good
    head = ("store", "what happens", "times", "median s", "longest s", "goal s", "not done once")
    print_table(
        f"Workers with a lease of {LEASE_S:g} s that die, freeze, or lose the time", head, table
    )
    print(f"in time, and each task done once: {verdict(is_met)}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
