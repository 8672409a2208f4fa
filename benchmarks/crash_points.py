"""Killed at every point and started again: nothing lost, nothing doubled, no half state, no journaled answer paid again.

A point lies before and after every SQL statement, every model request and response, and every start and end of a tool. Each case runs a
small objective in a process of its own on a SQLite file in memory (/dev/shm), kills it with SIGKILL at one point, looks at the file as it
lies there, and runs it again to its end; a pair is killed a second time in between. A killed process is not a machine that lost its
power: what the disk had not yet written is not tested here.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from babyagi.llm.base import Completion
from babyagi.llm.prompt import Prompt, ToolCall
from babyagi.tasks import Effect, Limits, Passage, Reservation, Role, Usage
from babyagi.taskstore.offload import run_inline
from babyagi.taskstore.pieces import parse_pieces
from babyagi.taskstore.sql import open_sqlite
from babyagi.tools.base import Tool
from babyagi.worker import Pace
from benchmarks.table import print_table, verdict
from tests.virtual import VirtualClock, VirtualWorld, run_virtually
from tests.world import START, make_spec

MAX_S = 60.0
NAMES = ("Begin", "Read a", "Read b", "Read c", "Compare all that was read")
READING = NAMES[1:4]
CALL_TOKENS = 100  # what the model says that each of its answers took
RESERVED = Reservation(calls=1, tokens=250, cost_usd=0.002)
COST_USD = 0.001


# -- the points ----------------------------------------------------------------------------------------------------------------


class Points:
    """Counts the points of this process and kills it at the `kill_at`th; 0 never."""

    def __init__(self, *, kill_at: int = 0) -> None:
        self._kill_at = kill_at
        self._n = 0

    def __call__(self, label: str) -> None:
        self._n += 1
        if self._n == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


class Survey(Points):
    """Kills nobody, and notes at each point its label and what a kill would leave behind."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.labels: list[str] = []
        self.worlds: list[str] = []

    def __call__(self, label: str) -> None:
        self.labels.append(label)
        left = [
            path.read_bytes() if path.exists() else b"" for path in (self._folder / name for name in ("tasks.db", "tasks.db-wal", "bill"))
        ]
        self.worlds.append(" ".join(hashlib.blake2b(content).hexdigest() for content in left))

    def save(self) -> None:
        (self._folder / "survey.json").write_text(json.dumps([self.labels, self.worlds]), encoding="utf-8")


def put_points_round_sql(point: Points) -> None:
    """From now on every connection of this process has a point before and after each statement."""
    name_by_sql = {
        sql: name
        for room in ("meta", "objectives", "tasks", "steps")
        for name, sql in parse_pieces(files("babyagi.taskstore").joinpath(f"{room}.sql").read_text("utf-8")).items()
    }

    class Watched(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            label = f"sql {name_by_sql.get(sql) or ' '.join(sql.split()[:2])}"
            point(f"before {label}")
            cursor = super().execute(sql, *values)
            point(f"after {label}")
            return cursor

        def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
            point(f"before sql {name_by_sql[sql]}")
            cursor = super().executemany(sql, rows)
            point(f"after sql {name_by_sql[sql]}")
            return cursor

        def executescript(self, script: str) -> sqlite3.Cursor:
            self.set_trace_callback(lambda statement: point("before sql schema"))
            cursor = super().executescript(script)
            self.set_trace_callback(None)
            point("after sql schema")
            return cursor

    connect = sqlite3.connect
    sqlite3.connect = lambda *args, **kwargs: connect(*args, **{**kwargs, "factory": Watched})


class CountingModel:
    """Answers from what it reads, and writes each request to a file that outlives this process, as an endpoint's bill would."""

    name = "counting"

    def __init__(self, point: Points, bill: Path) -> None:
        self._point = point
        self._bill = os.open(bill, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def reserve(self, prompt: Prompt) -> Reservation:
        return RESERVED

    async def complete(self, prompt: Prompt, *, role: Role) -> Completion:
        text = "\n".join(message.text for message in prompt.messages)
        digest = hashlib.sha256(f"{role} {text}".encode()).hexdigest()[:16]
        self._point(f"before request {role}")
        os.write(self._bill, f"{digest}\n".encode())
        await asyncio.sleep(0.1 + int(digest[:2], 16) / 500)
        self._point(f"after response {role}")
        usage = Usage(calls=1, prompt_tokens=CALL_TOKENS, cost_usd=COST_USD)
        return replace(_answer(prompt, role, text), model=f"counting:{digest}", usage=usage)

    async def close(self) -> None:
        os.close(self._bill)


def _answer(prompt: Prompt, role: Role, text: str) -> Completion:
    empty = Completion(text="", model="", usage=Usage())
    match role:
        case Role.EXECUTION:
            name = re.findall(r"^\d+: (.*)$", text, re.MULTILINE)[-1]
            if prompt.tools and not any(message.tool_calls for message in prompt.messages):
                call = ToolCall(id="1", name="look", arguments=json.dumps({"at": name}))
                return replace(empty, tool_calls=(call,), finish_reason="tool_calls")
            return replace(empty, text=f"The result of {name}.")
        case Role.CREATION if "check agent" in text[:40]:
            return replace(empty, text='{"met": true, "missing": ""}')
        case Role.CREATION:
            return replace(empty, text=json.dumps(_plan(text)))
        case Role.PRIORITIZATION:
            queued = re.findall(r"^(\d+): ", text, re.MULTILINE)
            return replace(empty, text=json.dumps({"order": [int(number) for number in reversed(queued)]}))
        case _:
            return replace(empty, text="The report.")


def _plan(text: str) -> dict[str, Any]:
    """The first task brings three that read, each of which proposes the same comparison; after that the objective is met."""
    finished = re.findall(r"<<finished task[^\n]*\n\d+: (.*)", text)[-1]
    if finished == NAMES[0]:
        return {"tasks": [{"name": name, "after": []} for name in READING], "objective_met": False}
    if finished in READING:
        seen = [int(number) for number in re.findall(r"^(\d+) \[\w+\] Read", text, re.MULTILINE)]
        return {"tasks": [{"name": NAMES[-1], "after": seen}], "objective_met": False}
    return {"tasks": [], "objective_met": True}


def _look_tool(point: Points) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> Passage:
        point("before tool look")
        await asyncio.sleep(0.05)
        point("after tool look")
        return Passage(text=f"What stands at {arguments['at']}.", origin="tool:look")

    schema = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
    return Tool(name="look", description="Look at something.", parameters=schema, effect=Effect.READ, run=run)


# -- one life of the program -----------------------------------------------------------------------------------------------------


async def _live(folder: Path, point: Points, *, life: int) -> None:
    """Open, go on with the objective until it has ended, and close: as `babyagi run` does."""
    clock = VirtualClock(start=START + timedelta(seconds=60 * life))
    store = await open_sqlite(folder / "tasks.db", clock=clock, offload=run_inline, max_failures=1000)
    model = CountingModel(point, folder / "bill")
    world = VirtualWorld(
        model=model,
        clock=clock,
        store=store,
        tools=[_look_tool(point)],
        pace=Pace(concurrency=3, max_failures=1000),
        _worker_numbers=iter(range(1000 * life, 1000 * life + 1000)),
    )
    await store.reap_workers(name=world.worker_name)
    spec = make_spec(
        initial_task=NAMES[0], limits=Limits(max_tasks=50, max_calls=0, max_tokens=10**9, max_cost_usd=1000.0, max_time_s=0), tools=()
    )
    objective, _ = await store.create_objective(spec, uid="uid")
    if not objective.has_report:
        await world.run(objective)
    await model.close()
    await store.close()


def live(folder: Path, *, life: int, kill_at: int = 0, is_survey: bool = False) -> bool:
    """Run one life in a child of its own; returns whether it was killed at the point.

    Raises:
        AssertionError: it ended in any other way than it should.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            point = Survey(folder) if is_survey else Points(kill_at=kill_at)
            put_points_round_sql(point)
            run_virtually(_live(folder, point, life=life))
            if isinstance(point, Survey):
                point.save()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert is_killed or status == 0, f"life {life} ended with status {status}"
    return is_killed


# -- what must hold ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the file holds between two lives, and what the endpoint was asked up to then."""

    paid: frozenset[str]  # digests of the answers that the journal holds
    n_open: int  # model steps that were intended and have no outcome
    n_asked: int


def look(folder: Path) -> Look:
    """Read the file as it lies there, and raise `AssertionError` when a state in it is half."""
    asked = _lines(folder / "bill")
    with closing(_open_ro(folder)) as db:
        if not _all(db, "SELECT 1 FROM sqlite_schema WHERE name = 'event'"):
            return Look(paid=frozenset(), n_open=0, n_asked=len(asked))
        _check_whole(db)
        models = [row["model"] for row in _all(db, "SELECT model FROM step WHERE kind = 'model' AND state = 'done'")]
        (n_open,) = db.execute("SELECT count(*) FROM step WHERE kind = 'model' AND state <> 'done'").fetchone()
        return Look(paid=frozenset(model.partition(":")[2] for model in models), n_open=n_open, n_asked=len(asked))


def _check_whole(db: sqlite3.Connection) -> None:
    assert [row[0] for row in db.execute("PRAGMA quick_check")] == ["ok"], "the file is damaged"
    tasks = _all(db, "SELECT * FROM task")
    n_by_kind = Counter(row["kind"] for row in _all(db, "SELECT kind FROM event"))
    results = [row["task_id"] for row in _all(db, "SELECT task_id FROM result")]
    with_result = [task["id"] for task in tasks if task["status"] in ("recorded", "done")]
    assert sorted(results) == sorted(with_result), "a result without its status, or a status without its result"
    assert n_by_kind["task.recorded"] == len(results), "a result without its event"
    assert n_by_kind["task.added"] == len(tasks), "a task without its event"
    assert n_by_kind["task.done"] == sum(task["status"] == "done" for task in tasks), "a finished task without its event"
    assert sorted(task["rank"] for task in tasks) == list(range(1, len(tasks) + 1)), "a rank is lost or doubled"
    counted = {row["status"]: row["n"] for row in _all(db, "SELECT status, n FROM task_count") if row["n"]}
    assert counted == Counter(task["status"] for task in tasks), "the counts do not count the tasks"
    for row in _all(db, "SELECT * FROM objective"):
        (calls, tokens, cost) = db.execute("SELECT total(calls), total(prompt_tokens), total(cost_microusd) FROM step").fetchone()
        assert (row["calls"], row["prompt_tokens"], row["cost_microusd"]) == (calls, tokens, cost), "spent is not what the steps cost"
        assert row["last_task_id"] == len(tasks)
        assert row["order_revision"] == n_by_kind["order.applied"]
        assert (row["report"] is not None) == (n_by_kind["report.written"] == 1)


def check_again(folder: Path, before: Look) -> None:
    """No answer that the journal had then was asked for since."""
    since = Counter(_lines(folder / "bill")[before.n_asked :])
    again = before.paid & set(since)
    assert not again, f"{len(again)} journaled answers were paid again"


def check_end(folder: Path, looks: Sequence[Look]) -> None:
    """Every task is done once, every call is counted, and no more was asked again than was in flight at a kill."""
    end = look(folder)
    with closing(_open_ro(folder)) as db:
        tasks = _all(db, "SELECT * FROM task ORDER BY id")
        (objective,) = _all(db, "SELECT * FROM objective")
        results = {row["task_id"]: row["text"] for row in _all(db, "SELECT * FROM result")}
        (n_held,) = db.execute("SELECT count(*) FROM step WHERE is_held = 1").fetchone()
    assert sorted(task["name"] for task in tasks) == sorted(NAMES), "a task is lost, doubled or renamed"
    assert {task["status"] for task in tasks} == {"done"}
    assert {task["try_no"] for task in tasks} == {1}
    assert results == {task["id"]: f"The result of {task['name']}." for task in tasks}
    assert (objective["status"], objective["stop_reason"]) == ("ended", "objective_met")
    assert "The report." in objective["report"]
    assert n_held == end.n_open == 0
    assert objective["calls"] >= end.n_asked, "an answer was not counted"
    assert objective["prompt_tokens"] >= end.n_asked * CALL_TOKENS
    assert end.n_asked - len(end.paid) <= sum(seen.n_open for seen in looks), "more was asked again than was in flight"


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def _open_ro(folder: Path) -> sqlite3.Connection:
    path = folder / "tasks.db"
    db = sqlite3.connect(f"file:{path}?mode=ro" if path.exists() else ":memory:", uri=True)
    db.row_factory = sqlite3.Row
    return db


def _all(db: sqlite3.Connection, query: str) -> list[sqlite3.Row]:
    return db.execute(query).fetchall()


# -- cases -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Where to kill: the first life at point `first`; the second somewhere when `seed` is not None. `n_points` has an unkilled life."""

    root: Path
    n_points: int
    first: int
    seed: int | None = None


def run_case(case: Case) -> tuple[str, ...]:
    """Run one case; returns what was wrong."""
    folder = Path(tempfile.mkdtemp(dir=case.root))
    try:
        looks = list(_kill(folder, case))
        assert not live(folder, life=9)
        for seen in looks:
            check_again(folder, seen)
        check_end(folder, looks)
    except AssertionError as error:
        return (f"killed at {case.first}, then {case.seed}: {error}",)
    finally:
        shutil.rmtree(folder)
    return ()


def _kill(folder: Path, case: Case) -> Iterator[Look]:
    assert live(folder, life=1, kill_at=case.first), "it ended before the point"
    yield look(folder)
    if case.seed is None:
        return
    chance, life, left = random.Random(case.seed), 2, case.n_points - case.first + 60
    while left > 1:
        spare = folder.with_name(folder.name + "-spare")
        shutil.copytree(folder, spare)
        kill_at = chance.randint(1, left)
        if live(folder, life=life, kill_at=kill_at):
            shutil.rmtree(spare)
            yield look(folder)
            return
        shutil.rmtree(folder)  # it ended before that point: try an earlier one, from where the first kill left it
        spare.rename(folder)
        left = kill_at - 1
    raise AssertionError("no second kill")


def survey(root: Path) -> tuple[list[str], list[int]]:
    """The label of every point of a life that nobody kills, and the numbers of those where a kill leaves something new behind.

    That life is lived in this process once before, so that no child has to load what it needs.
    """
    run_virtually(_live(Path(tempfile.mkdtemp(dir=root)), Points(), life=1))
    gc.freeze()
    folder = Path(tempfile.mkdtemp(dir=root))
    assert not live(folder, life=1, is_survey=True)
    check_end(folder, [])
    labels, worlds = json.loads((folder / "survey.json").read_text("utf-8"))
    return labels, [at for at, world in enumerate(worlds, start=1) if at == 1 or world != worlds[at - 2]]


def run_cases(cases: Sequence[Case], *, n_processes: int) -> list[str]:
    with multiprocessing.get_context("fork").Pool(n_processes) as pool:
        return [fault for faults in pool.imap_unordered(run_case, cases, chunksize=8) for fault in faults]


def show_histogram(labels: Sequence[str]) -> None:
    n_by_label = Counter(label.partition(" ")[2] for label in labels)
    print_table("Points, before and after counted together", ("where", "points"), n_by_label.most_common())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash_points", description=__doc__)
    parser.add_argument("--all", action="store_true", help="kill also where the files are, byte for byte, as at the point before")
    parser.add_argument("--every", type=int, default=1, help="kill at every Nth of them only")
    parser.add_argument("--pairs", type=int, default=300, help="random pairs of points")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crash-points-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        root, chance = Path(name), random.Random(options.seed)
        labels, news = survey(root)
        n, numbers = len(labels), range(1, len(labels) + 1) if options.all else news
        once = [Case(root=root, n_points=n, first=at) for at in numbers[options.seed % options.every :: options.every]]
        pairs = [Case(root=root, n_points=n, first=chance.randint(1, n), seed=chance.randrange(2**32)) for _ in range(options.pairs)]
        faults = run_cases([*once, *pairs], n_processes=options.processes)
    took_s = time.monotonic() - began_s
    show_histogram(labels)
    print(f"{n} points, at {len(news)} of which a kill leaves something else behind than at the point before")
    print(f"{len(once)} points once, {len(pairs)} pairs: {len(faults)} faults, goal 0: {verdict(not faults)}")
    spent = os.times()
    cpu_s = spent.user + spent.system + spent.children_user + spent.children_system
    print(f"{took_s:.0f} s ({cpu_s:.0f} s of processor time), goal at most {MAX_S:.0f} s: {verdict(took_s <= MAX_S)}")
    print(*faults[:20], sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
