"""Bugs planted one at a time, to see that the nets which are to catch such bugs do.

Each bug is planted into a process of its own by replacing a method, a piece of SQL or a statement
there; the program has no hooks for it. The nets are the crash points (only those points at which a
kill leaves something new behind, until the first fault), the contract of the task store on SQLite,
and random histories of reservations. The first row plants nothing, and nothing may be caught there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import inspect
import io
import itertools
import logging
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from babyagi.journal import Journal
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Claim, Fence, Step, StepState
from babyagi.taskstore import lifecycle
from babyagi.taskstore.nouns import Intention
from babyagi.taskstore.sql import database as sql
from babyagi.taskstore.sql import steps, tasks, transitions
from babyagi.taskstore.sql.database import Transaction, step_from_row, to_time
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from support.table import print_table, verdict
from tests.faults.crash_lives import SCENARIOS
from tests.faults.crash_points import make_cases, prepare, run_case, survey
from tests.taskstore.contract import Clock, TaskStoreContract
from tests.taskstore.histories import History, Time

MAX_CATCH_S = 300.0  # for one bug: with some the program never ends
N_HISTORIES = 20


# -- the bugs
# --------------------------------------------------------------------------------------------------


def _commit_around(piece: str, *, is_after: bool = False) -> None:
    """One transaction becomes two: the second begins with this piece of SQL, or behind it."""
    run = Transaction.run

    def run_apart(self: Transaction, named: str, **values: Any) -> None:
        if is_after or named != piece:
            run(self, named, **values)
        if named == piece:
            self._connection.execute("COMMIT", ())
            self._connection.execute("BEGIN IMMEDIATE", ())
            if not is_after:
                run(self, named, **values)

    Transaction.run = run_apart  # type: ignore[assignment,method-assign]


def _run_nothing(piece: str) -> None:
    run = Transaction.run

    def run_others(self: Transaction, named: str, **values: Any) -> None:
        if named != piece:
            run(self, named, **values)

    Transaction.run = run_others  # type: ignore[assignment,method-assign]


def _drop_event(kind: str) -> None:
    run_later = Transaction.run_later

    def run_some(self: Transaction, query: str, row: Mapping[str, Any]) -> None:
        if row["kind"] != kind:
            run_later(self, query, row)

    Transaction.run_later = run_some  # type: ignore[method-assign]


def _look_up_nothing() -> None:
    intend = Journal._intend

    async def forget(self: Journal, intention: Intention) -> Step:
        return replace(await intend(self, intention), output=None, state=StepState.INTENDED)

    Journal._intend = forget  # type: ignore[method-assign]


def _ignore_the_fence() -> None:
    record = TaskStore.record_result

    async def record_for_anybody(self: TaskStore, claim: Claim, **result: Any) -> Any:
        rows = await self._read(
            lambda tx: tx.all("task", objective_id=claim.task.objective_id, task_id=claim.task.id)
        )
        fence = replace(claim.fence, worker_id=rows[0]["worker_id"], claim_no=rows[0]["claim_no"])
        return await record(self, replace(claim, fence=fence), **result)

    TaskStore.record_result = record_for_anybody  # type: ignore[assignment,method-assign]


def _ignore_the_order() -> None:
    load = sql.load_queries

    def load_without_rank(*rooms: str) -> dict[str, str]:
        pieces = dict(load(*rooms))
        return pieces | {
            "best_queued": pieces["best_queued"].replace("ORDER BY rank, id", "ORDER BY id")
        }

    sql.load_queries = load_without_rank  # type: ignore[assignment]


def _release_nothing() -> None:
    find = Transaction.all

    def find_some(self: Transaction, named: str, **values: Any) -> Any:
        return [] if named in ("tasks_held_by", "duties_held_by") else find(self, named, **values)

    Transaction.all = find_some  # type: ignore[assignment,method-assign]


def _check_no_limit() -> None:
    steps._check_limits = lambda tx, fence, wanted: None


def _find_no_duplicate() -> None:
    tasks._Batch._find_repeated = lambda self, one: None  # type: ignore[method-assign]


def _know_no_objective() -> None:
    numbers = itertools.count()
    lifecycle.identity_keys = lambda spec: [str(next(numbers))]


def _settle_nothing() -> None:
    def only_ask(tx: Transaction, objective_id: int, owner: str) -> bool:
        rows = tx.all("unsettled_steps", objective_id=objective_id)
        return any(lifecycle.is_open(step_from_row(row)) for row in rows if row["owner"] == owner)

    transitions.settle = only_ask


def _intend_nothing_once() -> None:
    def intend(tx: Transaction, fence: Fence, intention: Intention) -> Step:
        asked = {"kind": lifecycle.ONCE, "request": intention.request}
        return lifecycle.open_step(fence, key=intention.key, at=to_time(0), **asked)

    steps._intend_once = intend


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A bug: its name, and how it is planted into this process."""

    name: str
    plant: Callable[[], None]


CLEAN = Mutant(name="nothing", plant=lambda: None)
MUTANTS = (
    Mutant(
        name="a result is committed before its task's status",
        plant=lambda: _commit_around("insert_result", is_after=True),
    ),
    Mutant(
        name="a result is committed without its event", plant=lambda: _drop_event("task.recorded")
    ),
    Mutant(
        name="a call's usage is committed after its answer",
        plant=lambda: _commit_around("charge_objective"),
    ),
    Mutant(name="the journal looks up no answer", plant=_look_up_nothing),
    Mutant(name="what a dead worker's calls hold is not settled", plant=_settle_nothing),
    Mutant(name="a payment is made without being intended", plant=_intend_nothing_once),
    Mutant(name="a result is taken from any worker", plant=_ignore_the_fence),
    Mutant(name="tasks are claimed without regard to the order", plant=_ignore_the_order),
    Mutant(name="dead workers keep what they held", plant=_release_nothing),
    Mutant(name="no limit is checked", plant=_check_no_limit),
    Mutant(name="a result that is no answer is kept", plant=lambda: _run_nothing("delete_result")),
    Mutant(name="what is in the list is added again", plant=_find_no_duplicate),
    Mutant(name="an objective that is started again begins anew", plant=_know_no_objective),
    Mutant(
        name="a planning is over before its tasks are in the list",
        plant=lambda: _commit_around("insert_task"),
    ),
)


# -- the nets
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """What each net caught of one mutant: the fault at a crash point, the tests that failed, the
    histories that broke."""

    crash: str
    n_cases: int
    tests: tuple[str, ...]
    histories: str

    @property
    def is_caught(self) -> bool:
        return bool(self.crash or self.tests or self.histories)


def _kill(root: Path, seed: int) -> tuple[str, int]:
    """The first fault at a crash point, and how many cases it took."""
    try:
        prepare(root)
        courses = [survey(root, scenario) for scenario in SCENARIOS]
    except Exception as error:
        return f"unkilled: {type(error).__name__}: {error}", 0
    cases = [case for case in make_cases(root, courses, is_all=False) if case.goes_on]
    random.Random(seed).shuffle(cases)
    for n, case in enumerate(cases, start=1):
        faults = run_case(case)
        if faults:
            return faults[0], n
    return "", len(cases)


async def _check_contract(root: Path) -> tuple[str, ...]:
    """The contract's tests that fail."""
    contract = TaskStoreContract()
    tests = [(name, getattr(contract, name)) for name in dir(contract) if name.startswith("test_")]
    return tuple(
        [
            name
            for name, test in tests
            for given in _parameters(test)
            if not await _holds(test, root, given)
        ]
    )


def _parameters(test: Callable[..., Any]) -> list[dict[str, Any]]:
    """What a test is called with beside its fixtures, once for each combination of its
    `parametrize` values."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    given = [[_named(mark.args[0], values) for values in mark.args[1]] for mark in marks]
    return [
        {name: value for one in combined for name, value in one.items()}
        for combined in itertools.product(*given)
    ]


def _named(names: str | Sequence[str], values: Any) -> dict[str, Any]:
    listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    return dict(zip(listed, values if len(listed) > 1 else (values,), strict=True))


async def _holds(test: Callable[..., Any], root: Path, given: dict[str, Any]) -> bool:
    clock = Clock()
    store = await open_sqlite(
        Path(tempfile.mkdtemp(dir=root)) / "tasks.db", clock=clock, offload=run_inline
    )
    at_hand = {"store": store, "clock": clock, **given}
    try:
        async with asyncio.timeout(10):
            await test(**{name: at_hand[name] for name in inspect.signature(test).parameters})
    except BaseException as error:  # a test that fails by `pytest.raises` raises no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return False
    finally:
        await store.close()
    return True


async def _make_histories(root: Path) -> str:
    clock = Time()
    store = await open_sqlite(
        Path(tempfile.mkdtemp(dir=root)) / "tasks.db", clock=clock, offload=run_inline
    )
    try:
        for seed in range(N_HISTORIES):
            await History(store, clock, seed=seed, is_honest=seed % 2 == 0).run()
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    finally:
        await store.close()
    return ""


def _catch(mutant: Mutant, seed: int, *, by_kills_alone: bool) -> Catch:
    """Plant the bug into this process and cast the nets."""
    mutant.plant()
    with tempfile.TemporaryDirectory(
        prefix="mutants-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as name:
        root = Path(name)
        tests, histories = (
            ((), "")
            if by_kills_alone
            else (asyncio.run(_check_contract(root)), asyncio.run(_make_histories(root)))
        )
        crash, n_cases = _kill(root, seed)
    return Catch(crash=crash, n_cases=n_cases, tests=tests, histories=histories)


def _catch_quietly(mutant: Mutant, seed: int, by_kills_alone: bool, answer: Connection) -> None:
    """As `_catch`, in a process of its own: whatever a planted bug makes the program say is of no
    interest."""
    logging.disable(logging.CRITICAL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    with contextlib.redirect_stderr(io.StringIO()):
        answer.send(_catch(mutant, seed, by_kills_alone=by_kills_alone))


def catch(mutant: Mutant, *, seed: int = 1, by_kills_alone: bool = False) -> Catch:
    """What the nets catch of the mutant; this process stays as it is.

    Args:
        by_kills_alone: neither the contract nor histories are tried.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_catch_quietly, args=(mutant, seed, by_kills_alone, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(MAX_CATCH_S):
            process.kill()
            return Catch(crash="it never ends", n_cases=0, tests=(), histories="")
        found: Catch = receiver.recv()
    finally:
        process.join()
        receiver.close()
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    began_s = time.monotonic()
    found = [(mutant, catch(mutant, seed=options.seed)) for mutant in (CLEAN, *MUTANTS)]
    print_table(
        "Planted bugs",
        ("bug", "", "crash points", "contract", "histories"),
        [_row(mutant, one) for mutant, one in found],
    )
    n_caught, n_false = sum(one.is_caught for _, one in found[1:]), int(found[0][1].is_caught)
    is_met = n_caught == len(MUTANTS) and not n_false
    print(
        f"{n_caught} of {len(MUTANTS)} caught, {n_false} false alarms: {verdict(is_met)} "
        f"({time.monotonic() - began_s:.0f} s)"
    )
    return 0 if is_met else 1


def _row(mutant: Mutant, found: Catch) -> tuple[str, ...]:
    crash = (
        f"kill {found.n_cases}: {found.crash.rpartition(': ')[2][:60]}"
        if found.crash
        else f"- ({found.n_cases} kills)"
    )
    tests = f"{len(found.tests)} fail" if found.tests else "-"
    return (
        mutant.name,
        "caught" if found.is_caught else "-",
        crash,
        tests,
        found.histories[:40] or "-",
    )


if __name__ == "__main__":
    sys.exit(main())
