"""The measurements of the whole store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from babyagi import events
from babyagi.tasks import Event, Joined, Objective, ObjectiveStatus, Reservation, Worker
from babyagi.taskstore.port import Queue, Standing, Vitals
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.access import SqlAccess
from babyagi.taskstore.sql.database import Row, Transaction
from babyagi.taskstore.sql.rows import (
    joined_from_row,
    objective_from_row,
    to_time,
    worker_from_row,
)
from babyagi.taskstore.sql.schedules import wait_for_tick_s


class Measuring(SqlAccess):
    """Read the measurements."""

    async def vitals(self) -> Vitals:
        return await self._read(_measure, n_rows=transitions.ALL_ROWS)


def _measure(tx: Transaction) -> Vitals:
    at_us = {"until_answered_us": transitions.UNTIL_ANSWERED_US}
    queues = {row["objective_id"]: row for row in tx.all("queues", **at_us)}
    counted = tx.all("counted_events")
    down = _find_down(counted)
    n_by_event: Counter[str] = Counter()
    for row in counted:
        n_by_event[row["kind"]] += int(row["n"])
    standings = [
        (
            _standing(tx, row, last_id=down.get(row["id"])),
            _queue(queues.get(row["id"]), now_us=tx.now_us),
        )
        for row in tx.all("active_objectives")
    ]
    return Vitals(
        at=to_time(tx.now_us),
        standings=standings,
        workers=_workers(tx),
        n_queued_paused=_count(queues, ObjectiveStatus.PAUSED, now_us=tx.now_us),
        n_queued_ended=_count(queues, ObjectiveStatus.ENDED, now_us=tx.now_us),
        totals={(row["name"], row["word"], row["more"]): int(row["n"]) for row in tx.all("totals")},
        n_by_event=n_by_event,
        next_tick_s=wait_for_tick_s(tx),
    )


def _find_down(counted: Sequence[Row]) -> Mapping[int, int]:
    """Return the id of the last outage event of each objective whose model did not answer when it
    was asked last."""
    last: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for row in counted:
        last[row["objective_id"]][row["kind"]] = row["last_id"]
    return {
        objective_id: by_kind[events.MODEL_UNAVAILABLE]
        for objective_id, by_kind in last.items()
        if by_kind.get(events.MODEL_UNAVAILABLE, 0) > by_kind.get(events.MODEL_AVAILABLE, 0)
    }


def _standing(tx: Transaction, row: Row, *, last_id: int | None) -> Standing:
    objective = _objective(tx, row)
    outage = None
    if last_id is not None:
        outage = Event(
            id=last_id,
            objective_id=objective.id,
            task_id=None,
            kind=events.MODEL_UNAVAILABLE,
            data={},
            at=to_time(tx.now_us),
        )
    return Standing(
        objective=objective,
        counts={},
        n_begun=row["n_begun"],
        n_tasks_without_progress=row["n_barren"],
        n_tries_without_answer=row["n_fruitless"],
        outage=outage,
        at=to_time(tx.now_us),
    )


def _objective(tx: Transaction, row: Row) -> Objective:
    held = Reservation(
        calls=int(row["held_calls"]),
        tokens=int(row["held_tokens"]),
        cost_usd=int(row["held_cost_microusd"]) / 1e6,
    )
    return objective_from_row(row, held=held, active_us=transitions.counted_us(tx, row))


def _queue(row: Row | None, *, now_us: int) -> Queue:
    if row is None:
        return Queue()
    since_us = row["since_us"]
    return Queue(
        n_after=int(row["n_after"]),
        n_lack=int(row["n_lack"]),
        n_asking=int(row["n_asking"]),
        n_delayed=int(row["n_delayed"]),
        n_free=int(row["n_free"]),
        free_s=0.0 if since_us is None else max(0.0, (now_us - since_us) / 1e6),
    )


def _count(queues: Mapping[int, Row], status: ObjectiveStatus, *, now_us: int) -> int:
    return sum(_queue(row, now_us=now_us).n for row in queues.values() if row["status"] == status)


def _workers(tx: Transaction) -> list[Worker]:
    joined: defaultdict[str, list[Joined]] = defaultdict(list)
    for row in tx.all("every_joined", objective_id=None):
        joined[row["worker_id"]].append(joined_from_row(row, task_ids=[], duties=[]))
    return [
        worker_from_row(row, now_us=tx.now_us, joined=joined[row["id"]])
        for row in tx.all("workers")
    ]
