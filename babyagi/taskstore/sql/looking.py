"""What a person looks at, in SQL: the list in pages, what happened, the steps, and what keeps an
objective from going on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from babyagi import events
from babyagi.tasks import Duty, Event, Step, Task, TaskStatus
from babyagi.taskstore.port import Standing
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.access import SqlAccess
from babyagi.taskstore.sql.database import Transaction
from babyagi.taskstore.sql.rows import (
    event_from_row,
    from_time,
    step_from_row,
    task_from_row,
    to_json,
    to_time,
)

MAX_PLACE = 1000  # tasks before another one, up to which they are counted
_MODEL_EVENTS = (events.MODEL_UNAVAILABLE, events.MODEL_AVAILABLE)


class Looking(SqlAccess):
    """Read, and change nothing."""

    async def tasks_page(
        self, objective_id: int, *, status: TaskStatus, after: Task | None = None, limit: int
    ) -> list[Task]:
        return await self._list(
            objective_id,
            "tasks_page",
            task_from_row,
            n_rows=limit,
            status=status.value,
            rank=after.rank if after is not None else -(2**53),
            task_id=after.id if after is not None else 0,
            limit=limit,
        )

    async def statuses(
        self, objective_id: int, *, task_ids: Sequence[int]
    ) -> Mapping[int, TaskStatus]:
        def work(tx: Transaction) -> dict[int, TaskStatus]:
            rows = tx.all("statuses", objective_id=objective_id, task_ids=to_json(list(task_ids)))
            return {row["id"]: TaskStatus(row["status"]) for row in rows}

        return await self._read(work, n_rows=len(task_ids))

    async def standing(self, objective_id: int) -> Standing:
        def work(tx: Transaction) -> Standing:
            objective = transitions.read_objective(tx, objective_id)
            row = transitions.objective_row(tx, objective_id)
            told = tx.all(
                "events_of", objective_id=objective_id, kinds=to_json(_MODEL_EVENTS), limit=1
            )
            return Standing(
                objective=objective,
                counts=transitions.counts(tx, objective_id),
                n_begun=row["n_begun"],
                n_tasks_without_progress=row["n_barren"],
                n_tries_without_answer=row["n_fruitless"],
                outage=_outage([event_from_row(row) for row in told]),
                at=to_time(tx.now_us),
            )

        return await self._read(work)

    async def place(self, task: Task) -> int:
        def work(tx: Transaction) -> int:
            at = {"rank": task.rank, "task_id": task.id, "limit": MAX_PLACE}
            found = tx.all("n_startable_before", objective_id=task.objective_id, **at)
            return int(found[0]["n"]) + 1

        return await self._read(work)

    async def history(
        self, objective_id: int, *, after_id: int = 0, task_id: int | None = None, limit: int
    ) -> list[Event]:
        values = {"after_id": after_id, "task_id": task_id, "limit": limit}
        return await self._list(objective_id, "history", event_from_row, n_rows=limit, **values)

    async def history_before(
        self, objective_id: int, *, before_id: int, task_id: int | None = None, limit: int
    ) -> list[Event]:
        values = {"before_id": before_id, "task_id": task_id, "limit": limit}
        newest = await self._list(
            objective_id, "history_before", event_from_row, n_rows=limit, **values
        )
        return newest[::-1]

    async def last_event_before(self, objective_id: int, *, since_s: float) -> int:
        def work(tx: Transaction) -> int:
            until = to_time(tx.now_us) - timedelta(seconds=since_s)
            found = tx.all(
                "last_event_before", objective_id=objective_id, until_us=from_time(until)
            )
            return int(found[0]["id"])

        return await self._read(work, n_rows=transitions.ALL_ROWS)

    async def steps_at(self, objective_id: int, *, named: Sequence[tuple[str, str]]) -> list[Step]:
        def work(tx: Transaction) -> list[Step]:
            rows = (
                tx.one("step", objective_id=objective_id, owner=owner, key=key)
                for owner, key in named
            )
            return [step_from_row(row) for row in rows if row is not None]

        return await self._read(work, n_rows=len(named))

    async def duty_owners(self, objective_id: int, *, duty: Duty) -> Mapping[str, int]:
        found = await self._list(
            objective_id,
            "duty_owners",
            lambda row: (str(row["owner"]), int(row["n"])),
            n_rows=transitions.ALL_ROWS,
            duty=duty.value,
        )
        return dict(found)


def _outage(told: Sequence[Event]) -> Event | None:
    """The last word about the model, unless it answers again."""
    return next((event for event in told if event.kind == events.MODEL_UNAVAILABLE), None)
