"""Schedules in SQL: each tick is decided once, while nobody else writes."""

from __future__ import annotations

from datetime import datetime, timedelta

from babyagi import events
from babyagi.errors import LeaseLostError, NotFoundError, SettingsError
from babyagi.schedules import (
    Fired,
    Schedule,
    ScheduleSpec,
    ScheduleStatus,
    Situation,
    Tick,
    TickOutcome,
    TickReason,
    Verdict,
    day_of,
    decide,
    decide_by_limit,
    jittered,
    next_due,
    objective_uid,
)
from babyagi.tasks import Objective, ObjectiveSpec, ObjectiveStatus, Reservation, Role
from babyagi.taskstore import lifecycle
from babyagi.taskstore.limits import to_microusd
from babyagi.taskstore.sql import planning, transitions
from babyagi.taskstore.sql.database import Row, SqlAccess, Transaction
from babyagi.taskstore.sql.rows import (
    from_time,
    objective_from_row,
    policy_to_json,
    schedule_from_row,
    sealed,
    spec_from_row,
    spec_to_json,
    tick_from_row,
    to_time,
)

MAX_DECIDED = 100  # ticks in one transaction, so that other writers wait only for milliseconds
KEPT = timedelta(days=90)  # of the ticks that were decided


def create_objective(tx: Transaction, spec: ObjectiveSpec, *, uid: str, identity: str) -> Objective:
    """Insert a new objective with its first task."""
    values = {
        "uid": uid,
        "identity": identity,
        "spec": spec_to_json(spec),
        "created_at_us": tx.now_us,
    }
    (row,) = tx.all("insert_objective", **sealed("objective", values))
    transitions.append_event(tx, row["id"], events.OBJECTIVE_CREATED, uid=uid)
    planning.enter_first(tx, row["id"], lifecycle.first_task(spec))
    return objective_from_row(row, held=Reservation(), active_us=0)


class Schedules(SqlAccess):
    """Add, read, pause, resume and remove schedules, and decide which ticks are due."""

    async def add_schedule(self, spec: ScheduleSpec, *, uid: str) -> Schedule:
        def work(tx: Transaction) -> Schedule:
            due_at = next_due(spec.rule, after=to_time(tx.now_us))
            if due_at is None:
                raise SettingsError(
                    f"no tick of this schedule is ever due: {spec.rule.words}",
                    why="the time has passed, or there is no such day",
                    fix='babyagi schedule add "…" --every 1d, or another --cron or --at',
                    guide="schedules",
                )
            values = {
                "uid": uid,
                "spec": spec_to_json(spec.objective),
                "policy": policy_to_json(spec),
                "created_at_us": tx.now_us,
            }
            times = _times(spec, uid, due_at)
            row = tx.all("insert_schedule", **sealed("schedule", values), **times)[0]
            return _read(tx, row["id"])

        return await self._write_all(work)

    async def schedule(self, schedule_id: int) -> Schedule:
        return await self._read(lambda tx: _read(tx, schedule_id))

    async def schedules(self, *, with_removed: bool = False) -> list[Schedule]:
        def work(tx: Transaction) -> list[Schedule]:
            return list(map(schedule_from_row, tx.all("schedules", with_removed=int(with_removed))))

        return await self._read(work, n_rows=transitions.ALL_ROWS)

    async def ticks(self, schedule_id: int, *, limit: int) -> list[Tick]:
        def work(tx: Transaction) -> list[Tick]:
            _read(tx, schedule_id)
            return list(map(tick_from_row, tx.all("ticks", schedule_id=schedule_id, limit=limit)))

        return await self._read(work, n_rows=limit)

    async def pause_schedule(self, schedule_id: int) -> Schedule:
        return await self._switch_schedule(
            schedule_id, (ScheduleStatus.ACTIVE,), ScheduleStatus.PAUSED
        )

    async def resume_schedule(self, schedule_id: int) -> Schedule:
        return await self._switch_schedule(
            schedule_id, (ScheduleStatus.PAUSED,), ScheduleStatus.ACTIVE
        )

    async def remove_schedule(self, schedule_id: int) -> Schedule:
        return await self._switch_schedule(
            schedule_id,
            (ScheduleStatus.ACTIVE, ScheduleStatus.PAUSED, ScheduleStatus.DONE),
            ScheduleStatus.REMOVED,
        )

    async def _switch_schedule(
        self, schedule_id: int, old: tuple[ScheduleStatus, ...], new: ScheduleStatus
    ) -> Schedule:
        """Change the status. Ticks that are due until now are decided under the old or the new
        status, whichever lets none fire; each transaction decides a bounded number of them."""

        def work(tx: Transaction) -> Schedule | None:
            schedule = _read(tx, schedule_id)
            if schedule.status not in old:
                return schedule
            by = schedule.status if new is ScheduleStatus.ACTIVE else new
            if by is ScheduleStatus.REMOVED:
                _drop_queued(tx, schedule)
            if len(_decide_due(tx, schedule, by=by, limit=MAX_DECIDED)) == MAX_DECIDED:
                return None
            if _read(tx, schedule_id).status is not ScheduleStatus.DONE or (
                new is ScheduleStatus.REMOVED
            ):
                tx.run("set_schedule_status", schedule_id=schedule_id, status=new)
            return _read(tx, schedule_id)

        while True:
            switched = await self._write_all(work)
            if switched is not None:
                return switched

    async def fire_schedules(self, worker_id: str) -> Fired:
        def look(tx: Transaction) -> Fired | None:
            is_owed = tx.has("due_schedules") or tx.has("queued_schedules")
            return None if is_owed else Fired(wait_s=wait_for_tick_s(tx))

        def work(tx: Transaction) -> Fired:
            if not tx.has("worker", worker_id=worker_id):
                raise LeaseLostError(f"worker {worker_id} was declared dead")
            ticks = [
                tick
                for row in tx.all("queued_schedules")
                for tick in _decide_queued(tx, schedule_from_row(row))
            ]
            for row in tx.all("due_schedules"):
                schedule = schedule_from_row(row)
                left = MAX_DECIDED - len(ticks)
                if left > 0:
                    ticks += _decide_due(tx, schedule, by=schedule.status, limit=left)
            return Fired(ticks=tuple(ticks), wait_s=wait_for_tick_s(tx))

        idle = await self._read(look)
        return await self._write_all(work) if idle is None else idle


def _read(tx: Transaction, schedule_id: int) -> Schedule:
    row = tx.one("schedule", schedule_id=schedule_id)
    if row is None:
        raise NotFoundError(
            f"there is no schedule {schedule_id}", fix="babyagi schedule list", guide="schedules"
        )
    return schedule_from_row(row)


def wait_for_tick_s(tx: Transaction) -> float | None:
    """Return the seconds until the next tick fires, None when none is planned."""
    fires_at_us = tx.all("next_tick")[0]["fires_at_us"]
    return None if fires_at_us is None else max(0.0, (fires_at_us - tx.now_us) / 1e6)


def _times(spec: ScheduleSpec, uid: str, due_at: datetime | None) -> dict[str, int | None]:
    if due_at is None:
        return {"due_us": None, "fires_at_us": None}
    return {"due_us": from_time(due_at), "fires_at_us": from_time(jittered(spec, uid, due_at))}


# -- deciding
# --------------------------------------------------------------------------------------------------


def _decide_due(
    tx: Transaction, schedule: Schedule, *, by: ScheduleStatus, limit: int
) -> list[Tick]:
    """Decide the schedule's ticks that should have fired by now, in order and at most `limit`, as
    if its status were `by`; then set when the next one is due."""
    spec, now = schedule.spec, to_time(tx.now_us)
    due_at, fires_at = schedule.due_at, schedule.fires_at
    ticks: list[Tick] = []
    while due_at is not None and fires_at is not None and fires_at <= now and len(ticks) < limit:
        next_at = next_due(spec.rule, after=due_at)
        next_fires_at = None if next_at is None else jittered(spec, schedule.uid, next_at)
        at = {"schedule_id": schedule.id}
        situation = Situation(
            status=by,
            fires_at=fires_at,
            now=now,
            is_next_due=next_fires_at is not None and next_fires_at <= now,
            is_busy=tx.has("is_schedule_busy", **at),
            has_queued=tx.has("queued_tick", **at),
            left_usd=_left_usd(tx, schedule),
        )
        ticks.append(_enter(tx, schedule, due_at, decide(spec, situation)))
        due_at, fires_at = next_at, next_fires_at
    if ticks:
        status = schedule.status if due_at is not None else ScheduleStatus.DONE
        times = _times(spec, schedule.uid, due_at)
        tx.run("set_next_tick", schedule_id=schedule.id, status=status, **times)
        tx.run("prune_ticks", schedule_id=schedule.id, before_us=from_time(now - KEPT))
    return ticks


def _decide_queued(tx: Transaction, schedule: Schedule) -> list[Tick]:
    """Decide the tick that waited for an earlier one, which is over."""
    row = tx.one("queued_tick", schedule_id=schedule.id)
    if row is None:
        return []
    due_at = to_time(row["due_us"])
    verdict = decide_by_limit(schedule.spec, left_usd=_left_usd(tx, schedule))
    return [_enter(tx, schedule, due_at, verdict, is_queued=True)]


def _drop_queued(tx: Transaction, schedule: Schedule) -> None:
    row = tx.one("queued_tick", schedule_id=schedule.id)
    if row is not None:
        verdict = Verdict(outcome=TickOutcome.SKIPPED, reason=TickReason.REMOVED)
        _enter(tx, schedule, to_time(row["due_us"]), verdict, is_queued=True)


def _enter(
    tx: Transaction,
    schedule: Schedule,
    due_at: datetime,
    verdict: Verdict,
    *,
    is_queued: bool = False,
) -> Tick:
    """Write the outcome of the tick, and the objective that it begins."""
    objective_id = None
    if verdict.outcome is TickOutcome.FIRED:
        uid = objective_uid(schedule.uid, due_at)
        # an identity of its own, so that `run` with the same words does not continue it
        objective_id = create_objective(
            tx, schedule.spec.objective, uid=uid, identity=f"schedule:{uid}"
        ).id
        data = {"schedule_id": schedule.id, "due_at": due_at.isoformat()}
        transitions.append_event(tx, objective_id, events.OBJECTIVE_SCHEDULED, **data)
    tx.run(
        "settle_tick" if is_queued else "insert_tick",
        schedule_id=schedule.id,
        due_us=from_time(due_at),
        outcome=verdict.outcome,
        reason=verdict.reason,
        objective_id=objective_id,
    )
    return Tick(
        schedule_id=schedule.id,
        due_at=due_at,
        outcome=verdict.outcome,
        reason=verdict.reason,
        objective_id=objective_id,
        decided_at=to_time(tx.now_us),
    )


def _left_usd(tx: Transaction, schedule: Schedule) -> float | None:
    """Return what is left of today's limit in US dollars, None without a limit. An objective that a
    tick began today counts with its cost when it is over, else with all that it may spend."""
    limit = schedule.spec.daily_limit_usd
    if not limit:
        return None
    begins, ends = day_of(schedule.spec.rule, to_time(tx.now_us))
    at = {"from_us": from_time(begins), "until_us": from_time(ends)}
    rows = tx.all("ticks_of_day", schedule_id=schedule.id, **at)
    return (to_microusd(limit) - sum(map(_committed_microusd, rows))) / 1e6


def _committed_microusd(row: Row) -> int:
    spent = int(row["cost_microusd"])
    if row["status"] == ObjectiveStatus.ENDED and row["has_report"]:
        return spent
    spec = spec_from_row(row)
    is_free = spec.model_by_role.get(Role.EXECUTION) in ("rehearsal", "human")
    return spent if is_free else max(spent, to_microusd(spec.limits.max_cost_usd))
