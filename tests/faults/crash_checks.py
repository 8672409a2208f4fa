"""What must hold of the files that a killed life leaves behind, and of those that the last one
does."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.faults.crash_lives import Scenario
from tests.faults.crash_wire import CALL_TOKENS, Ledger

STATUSES_AFTER = {  # what a task may be when this is the last that happened to it
    "task.added": {"queued"},
    "task.claimed": {"running"},
    "task.recorded": {"recorded"},
    "task.lacked": {"recorded"},
    "task.requeued": {"queued"},
    "task.done": {"done"},
    "task.failed": {"queued"},
    "task.dead": {"dead"},
    "task.released": {"queued"},
    "task.cancelled": {"cancelled"},
    "task.parked": {"waiting"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the file holds between two lives, and what the endpoints were asked up to then."""

    # digests of the requests whose answers the journal holds; another try, or another report, may
    # ask the same
    paid: Counter[str]
    open: Counter[str]  # those that were intended and have no outcome
    asked: tuple[str, ...]


def look(folder: Path) -> Look:
    """Read the file as it lies there, and raise `AssertionError` when a state in it is half."""
    asked = tuple(Ledger(folder / "bill").lines())
    with closing(_open_ro(folder)) as db:
        if not _all(db, "SELECT 1 FROM sqlite_schema WHERE name = 'event'"):
            return Look(paid=Counter(), open=Counter(), asked=asked)
        assert [row[0] for row in db.execute("PRAGMA quick_check")] == ["ok"], "the file is damaged"
        for row in _all(db, "SELECT * FROM objective"):
            _check_whole(db, row)
        steps = _all(
            db, "SELECT request_hash, state FROM step WHERE kind IN ('model', 'embedding')"
        )
        paid = Counter(row["request_hash"] for row in steps if row["state"] == "done")
        return Look(
            paid=paid, open=Counter(row["request_hash"] for row in steps) - paid, asked=asked
        )


def check_again(looks: Sequence[Look]) -> None:
    """No answer was asked for again that the journal had; what was in flight at a kill may be."""
    end = looks[-1]
    for at, before in enumerate(looks[:-1]):
        since = Counter(end.asked[len(before.asked) :])
        in_flight = sum((later.open for later in looks[at:-1]), Counter[str]())
        again = since - (end.paid - before.paid) - in_flight
        assert not again, f"{again.total()} answers were paid again"


def check_end(folder: Path, scenario: Scenario, looks: Sequence[Look]) -> None:
    """Every task came to its end once, every call is counted, and nothing was paid again; `looks`
    are those at the kills."""
    end = look(folder)
    check_again([Look(paid=Counter(), open=Counter(), asked=()), *looks, end])
    with closing(_open_ro(folder)) as db:
        tasks = _all(db, "SELECT * FROM task ORDER BY id")
        (objective,) = _all(db, "SELECT * FROM objective")
        results = {row["task_id"]: row["text"] for row in _all(db, "SELECT * FROM result")}
        (n_left,) = db.execute(
            "SELECT (SELECT count(*) FROM step WHERE is_held = 1) + (SELECT count(*) FROM worker)"
        ).fetchone()
    assert sorted(task["name"] for task in tasks) == sorted(scenario.ends), (
        "a task is lost, doubled or renamed"
    )
    assert {task["name"]: task["status"] for task in tasks} == scenario.ends, (
        "a task did not come to its end"
    )
    assert scenario.may_fail or {task["try_no"] for task in tasks} == {1}, (
        "a kill counted as a failed try"
    )
    assert results == {
        task["id"]: f"The result of {task['name']} about limits."
        for task in tasks
        if task["status"] == "done"
    }, "wrong results"
    assert (objective["status"], objective["stop_reason"]) == ("ended", scenario.stop_reason)
    is_met = objective["stop_reason"] in ("finished", "objective_met")
    answer = next(iter(results.values())) if is_met and len(results) == 1 else "The report."
    assert (answer in objective["report"]) == bool(results)
    assert n_left == 0, "a reservation or a worker is left"
    # what is embedded together may be others the next time
    killed_in_flight = sum((seen.open for seen in looks), Counter[str]())
    assert not end.open - killed_in_flight, "something is still in flight"
    assert objective["calls"] >= len(end.asked), "an answer was not counted"
    assert objective["prompt_tokens"] >= len(end.asked) * CALL_TOKENS
    assert len(Ledger(folder / "paid").lines()) == scenario.n_paid, "what must be done once was not"


def _check_whole(db: sqlite3.Connection, objective: sqlite3.Row) -> None:
    mine = f"objective_id = {objective['id']}"
    tasks = _all(db, f"SELECT * FROM task WHERE {mine}")
    events = _all(db, f"SELECT * FROM event WHERE {mine} ORDER BY id")
    n_by_kind = Counter(row["kind"] for row in events)
    results = [row["task_id"] for row in _all(db, f"SELECT task_id FROM result WHERE {mine}")]
    with_result = [
        task["id"]
        for task in tasks
        if task["status"] == "done" or (task["status"] == "recorded" and not task["lack"])
    ]
    assert sorted(results) == sorted(with_result), (
        "a result without its status, or a status without its result"
    )
    assert n_by_kind["task.recorded"] - _count_withdrawn(events) == len(results), (
        "a result without its event"
    )
    assert n_by_kind["task.added"] == len(tasks) == objective["last_task_id"], (
        "a task without its event"
    )
    last = {row["task_id"]: row["kind"] for row in events if row["kind"] in STATUSES_AFTER}
    assert all(task["status"] in STATUSES_AFTER[last[task["id"]]] for task in tasks), (
        "a status that no event tells"
    )
    assert sorted(task["rank"] for task in tasks) == list(range(1, len(tasks) + 1)), (
        "a rank is lost or doubled"
    )
    sums = "total(calls), total(prompt_tokens), total(cost_microusd)"
    spent = tuple(db.execute(f"SELECT {sums} FROM step WHERE {mine}").fetchone())
    told = _told(db, mine)
    assert (objective["calls"], objective["prompt_tokens"], objective["cost_microusd"]) == told, (
        "spent is not what the events tell"
    )
    assert told >= spent, "a step cost more than is counted"
    assert objective["order_revision"] == n_by_kind["order.applied"], "an order without its event"
    is_reported = next(
        (
            row["kind"]
            for row in reversed(events)
            if row["kind"] in ("report.written", "objective.resumed")
        ),
        "",
    ) == ("report.written")
    assert (objective["report"] is not None) == is_reported, "a report without its event"
    _check_claims(db, mine)


def _count_withdrawn(events: Sequence[sqlite3.Row]) -> int:
    """How many results were found to be no answer: their tasks lacked something after they were
    recorded."""
    last: dict[int, str] = {}
    n_withdrawn = 0
    for event in events:
        if event["kind"] in STATUSES_AFTER:
            n_withdrawn += (
                event["kind"] == "task.lacked" and last[event["task_id"]] == "task.recorded"
            )
            last[event["task_id"]] = event["kind"]
    return n_withdrawn


def _told(db: sqlite3.Connection, mine: str) -> tuple[int, int, int]:
    """What the events say that was spent."""
    names = ("calls", "prompt_tokens", "cost_usd")
    sums = ", ".join(f"total(data ->> '{name}')" for name in names)
    calls, tokens, cost_usd = db.execute(
        f"SELECT {sums} FROM event WHERE {mine} AND kind <> 'step.overspent'"
    ).fetchone()
    return int(calls), int(tokens), round(cost_usd * 1e6)


def _check_claims(db: sqlite3.Connection, mine: str) -> None:
    """What is held is held by the claim that it was intended under."""
    held = _all(db, f"SELECT owner, claim_no FROM step WHERE {mine} AND is_held = 1")
    claims = {
        (f"task:{row['id']}", row["claim_no"])
        for row in _all(db, f"SELECT * FROM task WHERE {mine} AND worker_id IS NOT NULL")
    }
    claims |= {
        (row["owner"], row["claim_no"])
        for row in _all(db, f"SELECT * FROM duty WHERE {mine} AND worker_id IS NOT NULL")
    }
    assert all((row["owner"], row["claim_no"]) in claims for row in held), (
        "a reservation that no claim holds"
    )


def _open_ro(folder: Path) -> sqlite3.Connection:
    path = folder / "tasks.db"
    db = sqlite3.connect(
        f"file:{path}?mode=ro" if path.exists() else ":memory:",
        uri=True,
        factory=sqlite3.Connection,
    )
    db.row_factory = sqlite3.Row
    return db


def _all(db: sqlite3.Connection, query: str) -> list[sqlite3.Row]:
    return db.execute(query).fetchall()
