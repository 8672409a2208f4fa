"""The task store in SQL: objectives, results, events, vectors, workers and schedules, and what a
person looks at. It runs on SQLite, in a file or in memory, and on PostgreSQL.

A method that may change several objectives locks the whole store for writing. So only one process
at a time decides which workers are dead.

`verify` finds rows whose checksum is wrong or that contradict other rows. It cannot find a changed
number that has no checksum and contradicts nothing, such as a rank, a count of failures or a lease.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import accumulate
from typing import Any

from babyagi import events
from babyagi.errors import LeaseLostError, SettingsError, StoreUnusableError
from babyagi.redaction import redact_url
from babyagi.runtime.offload import Offload
from babyagi.tasks import (
    WAITS_FOR_PERSON,
    Duty,
    Event,
    Joined,
    Limits,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Pending,
    Place,
    Proposal,
    Reservation,
    Result,
    Role,
    Step,
    StopReason,
    Task,
    TaskStatus,
    Worker,
)
from babyagi.taskstore import lifecycle, limits
from babyagi.taskstore.limits import to_microusd
from babyagi.taskstore.nouns import (
    KEY_AGE_S,
    KeyedRequest,
    Plannable,
    Queue,
    Standing,
    TaskNames,
    Verification,
    Vitals,
    Window,
)
from babyagi.taskstore.schedules import (
    Fired,
    Schedule,
    ScheduleSpec,
    ScheduleStatus,
    Tick,
    TickOutcome,
    TickReason,
    Verdict,
    day_of,
    decide,
    decide_by_limit,
    next_due,
    objective_uid,
)
from babyagi.taskstore.sql import database, transitions
from babyagi.taskstore.sql.database import (
    ALL_ROWS,
    ONCE,
    Once,
    Row,
    SqlAccess,
    Transaction,
    event_from_row,
    from_time,
    joined_from_row,
    no_objective,
    objective_from_row,
    policy_to_json,
    reading,
    result_from_row,
    rows_in,
    schedule_from_row,
    seal_vector,
    sealed,
    spec_from_row,
    task_from_row,
    task_name_from_row,
    tick_from_row,
    to_json,
    to_time,
    worker_from_row,
    writing,
)
from babyagi.taskstore.sql.steps import Steps, read_step
from babyagi.taskstore.sql.tasks import (
    Recording,
    Steering,
    add_proposals,
    put_back_lost,
    put_in_place,
)
from babyagi.taskstore.sql.transitions import Claims
from babyagi.text import BM25_LENGTH_SHARE, BM25_SATURATION

# -- finding damage: every row is read
# --------------------------------------------------------------------------------------------------


def _require_text(row: Row) -> None:
    """Raise `ValueError` when a text in the row is not valid UTF-8. `read_unchecked` returns such
    texts."""
    for value in row.values():
        if isinstance(value, str):
            value.encode()


def _require(is_sound: bool) -> None:
    if not is_sound:
        raise ValueError("the checksum of the row does not match its content")


def _check_keyed(row: Row) -> None:
    json.loads(row["made"])
    if row["answer"] is not None:
        json.loads(row["answer"])


def _check_objective(row: Row) -> None:
    database.objective_from_row(row, held=Reservation(), active_us=row["active_us"])
    _require(
        database.is_sealed_right("objective", row)
        and (row["report"] is None or database.is_sealed_right("report", row))
    )


def _check_sealed(table: str, convert: Callable[[Row], object]) -> Callable[[Row], None]:
    """Return a check for `_CHECKS`: the row can be converted, and its seal is right."""

    def check(row: Row) -> None:
        convert(row)
        _require(database.is_sealed_right(table, row))

    return check


def _check_vector(row: Row) -> None:
    _require(row["seal"] is None or row["seal"] == database.seal_vector(row["vector"]))


def _check_duty(row: Row) -> None:
    Duty(row["duty"])
    database.require_types(row, texts=("owner",), numbers=("claim_no", "upto", "delay_us"))


# For each query: the name of its rows for a person, and what raises if such a row cannot be
# converted or its checksum is wrong.
_CHECKS: Mapping[str, tuple[str, Callable[[Row], object]]] = {
    "workers": ("worker {id}", partial(worker_from_row, now_us=0)),
    "every_objective": ("objective {id}", _check_objective),
    "every_task": ("task {id} of objective {objective_id}", _check_sealed("task", task_from_row)),
    "every_after": (
        "the tasks that task {task_id} of objective {objective_id} comes after",
        partial(database.require_types, numbers=("objective_id", "task_id", "after_id")),
    ),
    "every_step": (
        "step {key} of {owner} of objective {objective_id} (row {id})",
        database.step_from_row,
    ),
    "every_result": (
        "the result of task {task_id} of objective {objective_id} (row {id})",
        result_from_row,
    ),
    "every_vector": (
        "the vector of task {task_id} of objective {objective_id} in {space}",
        _check_vector,
    ),
    "every_event": (
        "event {id} of objective {objective_id}",
        _check_sealed("event", event_from_row),
    ),
    "every_duty": ("the duty to {duty} of objective {objective_id}", _check_duty),
    "every_joined": ("an objective that worker {worker_id} serves", joined_from_row),
    "every_schedule": ("schedule {id}", _check_sealed("schedule", schedule_from_row)),
    "every_tick": ("the tick of schedule {schedule_id} at {due_us}", tick_from_row),
    "every_keyed": ("the request with the key {key}", _check_keyed),
}


def _read_every_row(tx: Transaction, objective_id: int | None) -> Verification:
    damages: list[str] = []
    n_by_query: Counter[str] = Counter()
    for query, (name, check) in _CHECKS.items():
        for row in tx.each(query, objective_id=objective_id):
            n_by_query[query] += 1
            named = name.format_map(row)
            try:
                _require_text(row)
                check(row)
            except (StoreUnusableError, *database.FAULTS):
                damages.append(named)
    damages += [row["name"] for row in tx.each("contradictions", objective_id=objective_id)]
    printable = (name.encode("utf-8", "replace").decode() for name in damages)
    return Verification(
        n_rows=n_by_query.total(),
        n_steps=n_by_query["every_step"],
        n_results=n_by_query["every_result"],
        damages=tuple(dict.fromkeys(printable)),
    )


# -- what a person looks at
# --------------------------------------------------------------------------------------------------


def _standing(
    tx: Transaction, row: Row, *, counts: Mapping[TaskStatus, int], outage: Row | None
) -> Standing:
    return Standing(
        objective=transitions.objective_of(tx, row),
        counts=counts,
        n_tasks_without_progress=row["n_barren"],
        n_tries_without_answer=row["n_fruitless"],
        outage=None if outage is None else event_from_row(outage),
        at=to_time(tx.now_us),
    )


# -- the measurements of the whole store
# --------------------------------------------------------------------------------------------------


def _queue_of(row: Row | None, *, now_us: int) -> Queue:
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


def _read_workers(tx: Transaction) -> list[Worker]:
    rows = tx.all("workers")
    joined: defaultdict[str, list[Joined]] = defaultdict(list)
    for row in tx.all("every_joined", objective_id=None) if rows else ():
        at = (row["worker_id"], row["objective_id"])
        held = [one for one in tx.all("held") if (one["worker_id"], one["objective_id"]) == at]
        task_ids = [one["task_id"] for one in held if one["task_id"] is not None]
        duties = [one["duty"] for one in held if one["duty"] is not None]
        joined[at[0]].append(joined_from_row(row, task_ids=task_ids, duties=duties))
    return [worker_from_row(row, now_us=tx.now_us, joined=joined[row["id"]]) for row in rows]


# -- workers, their leases, and which objectives they serve
# --------------------------------------------------------------------------------------------------


class Workers(SqlAccess):
    """The part of the store for workers: registering them, their leases, joining and leaving
    objectives, and releasing the claims of dead workers."""

    @writing(locks_all=True)
    def register_worker(self, tx: Transaction, worker: Worker, *, lease_s: float) -> None:
        """Register the worker with a lease that ends in `lease_s` seconds. The worker serves no
        objective yet.

        `worker.lease_until` and the fields that the store fills in are ignored.
        """
        tx.run(
            "put_worker",
            worker_id=worker.id,
            name=worker.name,
            host=worker.host,
            pid=worker.pid,
            home=worker.home,
            lease_us=limits.to_us(lease_s),
        )

    @writing(objective_at=1)
    def join_objective(
        self, tx: Transaction, worker_id: str, objective_id: int, *, blocked_reason: str = ""
    ) -> None:
        """Let the worker serve the objective from now on. With a `blocked_reason` the worker joins,
        but cannot claim anything there. A second call replaces the `blocked_reason`.

        An objective's active time runs while at least one worker that is not blocked serves it.
        `WAITS_FOR_PERSON` stops that time as any reason does, and is no event.

        Raises:
            NotFoundError: no such objective.
            LeaseLostError: no such worker.
        """
        row = tx.one("joined", worker_id=worker_id, objective_id=objective_id)
        if row is None:
            raise no_objective(objective_id)
        if row["worker_id"] is None:
            raise LeaseLostError(f"worker {worker_id} was declared dead")
        hindrance = lifecycle.storable_line(blocked_reason, max_chars=lifecycle.MAX_DETAIL_CHARS)
        if row["hindrance"] == hindrance:
            return
        transitions.store_active_time(tx, row)
        at = {"worker_id": worker_id, "objective_id": objective_id}
        tx.run("put_joined", **at, hindrance=hindrance)
        data = {"worker_id": worker_id, "name": row["worker_name"]}
        is_of_time = WAITS_FOR_PERSON in (hindrance, row["hindrance"])
        if is_of_time and hindrance in ("", WAITS_FOR_PERSON):
            return
        if hindrance:
            kind, data = events.WORKER_BLOCKED, {**data, "hindrance": hindrance}
        else:
            kind = events.WORKER_JOINED
        transitions.append_event(tx, objective_id, kind, **data)

    @writing(locks_all=True, is_lasting=False)
    def renew_lease(self, tx: Transaction, worker_id: str, *, lease_s: float) -> None:
        """Renew the worker's lease, so that it ends in `lease_s` seconds, and bring the active time
        of every objective that the worker serves up to date.

        Raises:
            LeaseLostError: the worker was declared dead; all its claims are gone.
        """
        lease_us = limits.to_us(lease_s)
        if not tx.run("renew_worker", worker_id=worker_id, lease_us=lease_us):
            raise LeaseLostError(f"worker {worker_id} was declared dead")
        for joined in tx.all("joined_by", worker_id=worker_id):
            transitions.store_active_time(tx, transitions.objective_row(tx, joined["objective_id"]))

    @writing(locks_all=True)
    def remove_worker(
        self, tx: Transaction, worker_id: str, *, objective_id: int | None = None
    ) -> None:
        """Remove the worker and release all its claims, without counting a failure; with an
        `objective_id`, end only its service of that objective. An unknown id, and an objective that
        the worker does not serve, are ignored."""
        if objective_id is None:
            worker = tx.one("worker", worker_id=worker_id)
            if worker is not None:
                self._forget(tx, worker, events.WORKER_LEFT)
            return
        row = tx.one("joined", worker_id=worker_id, objective_id=objective_id)
        if row is not None and row["hindrance"] is not None:
            self._leave(tx, worker_id, row["worker_name"], objective_id, events.WORKER_LEFT)

    async def reap_workers(
        self, *, silent: Mapping[str, datetime] | None = None, gone: Collection[str] = ()
    ) -> int:
        """Remove dead workers, release their claims, and return how many tasks were released. Costs
        one read of the database when no worker is dead.

        A worker is dead if its lease has run out (`Worker.has_run_out`), or if it is one of `gone`.

        A running task of a dead worker is queued again at its old rank with the same `try_no`, and
        its `n_lost` rises by 1. Its delay grows with each loss; at `lifecycle.MAX_LOST` losses it
        becomes dead. No failure is counted. Recording a step of the task sets `n_lost` back to 0,
        because a task that progresses is not what kills the workers. A recorded outcome stays. The
        duties that a dead worker held, such as planning, can be claimed again.

        Args:
            silent: if given, the lease of only these workers can have run out: its end, as the
                caller last saw it, by worker id. A worker whose lease now has another end has
                renewed it, and is not dead.
            gone: workers whose processes are known to have ended. Unknown ids are ignored.
        """

        def find(tx: Transaction) -> list[Row]:
            late = {
                worker["id"]
                for worker in tx.all("dead_workers")
                if silent is None or silent.get(worker["id"]) == to_time(worker["lease_until_us"])
            }
            workers = tx.all("workers") if late or gone else ()
            return [worker for worker in workers if worker["id"] in late.union(gone)]

        def work(tx: Transaction) -> int:
            return sum(self._forget(tx, worker, events.WORKER_LOST) for worker in find(tx))

        return await self._write(work, None) if await self._read(find) else 0

    @reading
    def workers(self, tx: Transaction) -> list[Worker]:
        """Return all registered workers, ordered by id, including dead ones that `reap_workers` has
        not removed yet. Costs one read of the database."""
        return _read_workers(tx)

    def _forget(self, tx: Transaction, worker: Row, kind: str) -> int:
        """Release all claims of the worker, remove the worker, and return how many tasks were
        released. `kind` is `WORKER_LEFT` or `WORKER_LOST`."""
        joined = [row["objective_id"] for row in tx.all("joined_by", worker_id=worker["id"])]
        n_freed = sum(
            self._leave(tx, worker["id"], worker["name"], objective_id, kind)
            for objective_id in joined
        )
        tx.run("delete_worker", worker_id=worker["id"])
        return n_freed

    def _leave(
        self, tx: Transaction, worker_id: str, name: str, objective_id: int, kind: str
    ) -> int:
        """Release the worker's claims in one objective, so that it no longer serves the objective,
        and return how many tasks were released."""
        row = transitions.objective_row(tx, objective_id)
        held = tx.all("tasks_held_by", worker_id=worker_id, objective_id=objective_id)
        held_ids = sorted(one["id"] for one in held)
        for task_id in held_ids:
            task = transitions.read_task(tx, objective_id, task_id)
            if kind == events.WORKER_LOST:
                put_back_lost(tx, task)
            else:
                transitions.release(tx, task, reason="worker left")
        for duty in tx.all("duties_held_by", worker_id=worker_id, objective_id=objective_id):
            transitions.free_duty(tx, duty)
        transitions.store_active_time(tx, row)
        tx.run("delete_joined", worker_id=worker_id, objective_id=objective_id)
        transitions.append_event(tx, objective_id, kind, worker_id=worker_id, name=name)
        return len(held_ids)


# -- schedules: the outcome of each tick is determined once, with the whole store locked for writing
# --------------------------------------------------------------------------------------------------


MAX_DECIDED = 100  # ticks in one transaction, so that other writers wait only for milliseconds
KEPT = timedelta(days=90)  # ticks that were decided longer ago are deleted, except the newest 100


FIRES: Verdict = (TickOutcome.FIRED, TickReason.NONE)
# the statuses from which a schedule gets another one
_SWITCHED_FROM = {
    ScheduleStatus.PAUSED: (ScheduleStatus.ACTIVE,),
    ScheduleStatus.ACTIVE: (ScheduleStatus.PAUSED,),
    ScheduleStatus.REMOVED: (ScheduleStatus.ACTIVE, ScheduleStatus.PAUSED, ScheduleStatus.DONE),
}


def create_objective(
    tx: Transaction, spec: ObjectiveSpec, *, uid: str, identity: str, **scheduled: Any
) -> Objective:
    """Insert a new objective with its first task queued, and return it.

    Args:
        identity: the key by which a later start finds the objective again.
        scheduled: which tick of which schedule starts it, for the event.
    """
    values = {
        "uid": uid,
        "identity": identity,
        "spec": to_json(spec),
        "created_at_us": tx.now_us,
    }
    row = tx.change("insert_objective", **sealed("objective", values))
    transitions.append_event(tx, row["id"], events.OBJECTIVE_CREATED, uid=uid, **scheduled)
    # of any length, because a person wrote it
    name = lifecycle.storable_line(spec.initial_task)
    first = Proposal(name=name, origins=(spec.task_origin,))
    add_proposals(tx, row["id"], [first], allow_duplicates=True)
    return objective_from_row(row, held=Reservation(), active_us=0)


class Schedules(SqlAccess):
    """The part of the store for schedules: adding, pausing, resuming and removing them, and
    starting objectives when their ticks are due."""

    @writing(locks_all=True)
    def add_schedule(self, tx: Transaction, spec: ScheduleSpec, *, uid: str) -> Schedule:
        """Add the schedule. Its first tick is the next instant that its rule names.

        Raises:
            SettingsError: the rule never names an instant.
        """
        due_at = next_due(spec.rule, after=to_time(tx.now_us))
        if due_at is None:
            raise SettingsError(
                f"the schedule would never start anything: {spec.rule.words}",
                why="its time has passed, or its rule names a day that does not exist",
                fix='babyagi schedule add "…" --every 1d, or another --cron or --at',
                guide="schedules",
            )
        values = {
            "uid": uid,
            "spec": to_json(spec.objective),
            "policy": policy_to_json(spec),
            "created_at_us": tx.now_us,
        }
        row = tx.change("insert_schedule", **sealed("schedule", values), due_us=from_time(due_at))
        return transitions.read_schedule(tx, row["id"])

    @reading
    def schedule(
        self, tx: Transaction, schedule_id: int, *, limit: int = 0
    ) -> tuple[Schedule, list[Tick]]:
        """Return the schedule and its newest ticks whose outcome is determined, newest first, at
        most `limit`. Raises `NotFoundError`."""
        schedule = transitions.read_schedule(tx, schedule_id)
        ticks = tx.all("ticks", schedule_id=schedule_id, limit=limit)
        return schedule, list(map(tick_from_row, ticks))

    @reading
    def schedules(self, tx: Transaction, *, with_removed: bool = False) -> list[Schedule]:
        """Return the schedules, oldest first. Removed ones are included only if `with_removed`."""
        return list(map(schedule_from_row, tx.all("schedules", with_removed=int(with_removed))))

    async def switch_schedule(self, schedule_id: int, *, to: ScheduleStatus) -> Schedule:
        """Pause an active schedule, make a paused one active again, or remove a schedule. Nothing
        changes when the schedule has another status. Raises `NotFoundError`.

        Before that, the outcome of each tick that is due by now is stored. None of these ticks
        fires: they are decided as if the schedule had that one of the two statuses which is not
        active. Each transaction decides at most `MAX_DECIDED` ticks.

        Args:
            to: PAUSED: each tick that falls into the pause is recorded as skipped. ACTIVE. REMOVED:
                no tick fires any more; the objectives that the schedule started go on.
        """

        def work(tx: Transaction) -> Schedule | None:
            schedule = transitions.read_schedule(tx, schedule_id)
            if schedule.status not in _SWITCHED_FROM[to]:
                return schedule
            by = schedule.status if to is ScheduleStatus.ACTIVE else to
            if len(_decide_due(tx, schedule, by=by, limit=MAX_DECIDED)) == MAX_DECIDED:
                return None
            if transitions.read_schedule(tx, schedule_id).status is not ScheduleStatus.DONE or (
                to is ScheduleStatus.REMOVED
            ):
                tx.run("set_schedule_status", schedule_id=schedule_id, status=to)
            return transitions.read_schedule(tx, schedule_id)

        while True:
            switched = await self._write(work, None)
            if switched is not None:
                return switched

    async def fire_schedules(self, worker_id: str) -> Fired:
        """Determine what becomes of each tick that is due by now, and create the objectives of the
        ticks that fire. This is done once for each tick, whichever worker asks.

        One call handles a bounded number of ticks, and returns `wait_s` 0 when more are due. When
        none is due, the call is one read.

        A tick's row, its objective and the time of the next tick are written in one transaction,
        and no two rows have the same schedule and instant. So if the process is killed, a tick is
        either handled completely or not at all.

        Raises:
            LeaseLostError: the worker was declared dead; nothing is changed.
        """

        def look(tx: Transaction) -> Fired | None:
            return None if tx.has("due_schedules") else Fired(wait_s=wait_for_tick_s(tx))

        def work(tx: Transaction) -> Fired:
            if not tx.has("worker", worker_id=worker_id):
                raise LeaseLostError(f"worker {worker_id} was declared dead")
            ticks: list[Tick] = []
            for row in tx.all("due_schedules"):
                schedule = schedule_from_row(row)
                left = MAX_DECIDED - len(ticks)
                if left > 0:
                    ticks += _decide_due(tx, schedule, by=schedule.status, limit=left)
            return Fired(ticks=tuple(ticks), wait_s=wait_for_tick_s(tx))

        idle = await self._read(look)
        return await self._write(work, None) if idle is None else idle


def wait_for_tick_s(tx: Transaction) -> float | None:
    """Return the seconds until the next tick of any schedule fires; None when no tick is to
    come."""
    fires_at_us = tx.all("next_tick")[0]["fires_at_us"]
    return None if fires_at_us is None else max(0.0, (fires_at_us - tx.now_us) / 1e6)


# -- determining the outcome of ticks
# --------------------------------------------------------------------------------------------------


def _decide_due(
    tx: Transaction, schedule: Schedule, *, by: ScheduleStatus, limit: int
) -> list[Tick]:
    """Determine and store the outcome of the schedule's ticks that are due by now, in order and at
    most `limit`, as if the schedule's status were `by`. Then store when its next tick is due.
    Return the decided ticks."""
    spec, now = schedule.spec, to_time(tx.now_us)
    due_at = schedule.due_at
    ticks: list[Tick] = []
    while due_at is not None and due_at <= now and len(ticks) < limit:
        next_at = next_due(spec.rule, after=due_at)
        verdict = decide(
            spec,
            by,
            late_s=(now - due_at).total_seconds(),
            is_next_due=next_at is not None and next_at <= now,
            is_busy=tx.has("is_schedule_busy", schedule_id=schedule.id),
        )
        ticks.append(_enter_tick(tx, schedule, due_at, verdict))
        due_at = next_at
    if ticks:
        status = schedule.status if due_at is not None else ScheduleStatus.DONE
        due_us = None if due_at is None else from_time(due_at)
        tx.run("set_next_tick", schedule_id=schedule.id, status=status, due_us=due_us)
        tx.run("prune_ticks", schedule_id=schedule.id, before_us=from_time(now - KEPT))
    return ticks


def _enter_tick(tx: Transaction, schedule: Schedule, due_at: datetime, verdict: Verdict) -> Tick:
    """Store the tick with its outcome, create its objective if it fires and the daily limit allows
    that, and return the tick."""
    if verdict == FIRES:
        verdict = decide_by_limit(schedule.spec, left_usd=_left_usd(tx, schedule))
    (outcome, reason), objective_id = verdict, None
    if outcome is TickOutcome.FIRED:
        uid = objective_uid(schedule.uid, due_at)
        # the identity is unique, so `babyagi run` with the same text does not continue this
        # objective
        objective_id = create_objective(
            tx,
            schedule.spec.objective,
            uid=uid,
            identity=f"schedule:{uid}",
            schedule_id=schedule.id,
            due_at=due_at.isoformat(),
        ).id
    tx.run(
        "insert_tick",
        schedule_id=schedule.id,
        due_us=from_time(due_at),
        outcome=outcome,
        reason=reason,
        objective_id=objective_id,
    )
    return Tick(
        schedule_id=schedule.id,
        due_at=due_at,
        outcome=outcome,
        reason=reason,
        objective_id=objective_id,
        decided_at=to_time(tx.now_us),
    )


def _left_usd(tx: Transaction, schedule: Schedule) -> float | None:
    """Return how many US dollars of its daily limit the schedule has left today; None without a
    limit. An objective that was started today counts with its actual cost once it has its report,
    and until then with its whole limit of cost."""
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
    return spent if spec.is_free else max(spent, to_microusd(spec.limits.max_cost_usd))


# -- names of tasks, for planning
# --------------------------------------------------------------------------------------------------


def _task_names(tx: Transaction, objective_id: int, *, limit: int, after_id: int) -> TaskNames:
    at = {"objective_id": objective_id, "until_us": ALL_ROWS}
    newest_first = (
        tx.all("changed_names", objective_id=objective_id, limit=limit, after_id=after_id)
        if after_id
        else tx.all("task_names", objective_id=objective_id, limit=limit)
    )
    event_id = int(tx.all("last_event_id", **at)[0]["id"])
    if not event_id:
        transitions.objective_row(tx, objective_id)
    return TaskNames(
        names=tuple(map(task_name_from_row, reversed(newest_first))), event_id=event_id
    )


# -- finding results by their words
# --------------------------------------------------------------------------------------------------


# a word in more results than this is ignored, because it says little; see `docs/retrieval.md`
COMMON_WORD = 100


def choose_words(n_by_word: Mapping[str, int]) -> list[str]:
    """Return the words to search for, the rarest first, as many as occur in at most `COMMON_WORD`
    results in all. Words that no result contains are left out.

    Args:
        n_by_word: how many results contain each word.
    """
    by_rarity = sorted((n, word) for word, n in n_by_word.items() if n)
    totals = accumulate(n for n, _ in by_rarity)
    return [
        word for (_, word), total in zip(by_rarity, totals, strict=True) if total <= COMMON_WORD
    ]


def order_by_words(found: Iterable[tuple[str, int, int]]) -> list[int]:
    """Return the ids of the tasks whose results contain the words, the best match first.

    Scores are those of BM25, with each word counted once per result: rare words weigh more, and
    words in long results less. Of tasks with equal scores, the one with the higher id comes first.

    Args:
        found: triples of a word, the task whose result contains it, and the length of that result
            in characters.
    """
    known = sorted(found)
    n_by_word = Counter(word for word, _, _ in known)
    mean = sum(n_chars for _, _, n_chars in known) / max(1, len(known)) or 1.0
    scores: defaultdict[int, float] = defaultdict(float)
    for word, task_id, n_chars in known:
        length = 1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * n_chars / mean
        scores[task_id] += 1 / n_by_word[word] / (1 + BM25_SATURATION * length)
    return sorted(scores, key=lambda task_id: (-scores[task_id], -task_id))


def _require_nobody_at_work(tx: Transaction, objective_id: int) -> None:
    if tx.has("is_held_by_the_living", objective_id=objective_id):
        raise SettingsError(
            f"a worker is at work on objective {objective_id}",
            fix=f"babyagi pause --objective {objective_id}, then try again",
        )


def _conclude(tx: Transaction, objective: Objective) -> None:
    """End an active objective if nothing more can happen in it."""
    if objective.status is not ObjectiveStatus.ACTIVE:
        return
    snapshot = transitions.snapshot(tx, objective)
    reason = lifecycle.conclude(snapshot)
    if reason is None:
        return
    statuses = to_json([TaskStatus.DEAD])
    at = {"objective_id": objective.id, "statuses": statuses, "limit": ALL_ROWS}
    errors = [task["error"] for task in tx.all("tasks_with_status", **at)]
    detail = lifecycle.explain(reason, snapshot, errors=errors)
    transitions.end(tx, objective.id, reason=reason, detail=detail)


def _queue_question(tx: Transaction, objective_id: int, proposal: Proposal) -> None:
    """Queue a person's further question before all other tasks; a check must be made anew."""
    (task,) = add_proposals(tx, objective_id, [proposal], allow_duplicates=True).added
    put_in_place(tx, objective_id, [task.id], Place.FIRST)
    transitions.forget_duty(tx, objective_id, Duty.CHECK)
    tx.run("forget_check", objective_id=objective_id)


# --------------------------------------------------------------------------------------------------
# Requests with a key, each of which takes effect once, however often it is sent, to however many
# servers, and whatever dies in between.
#
# The key is a row of the transaction that carries the request out, with the ids of what that made.
# When the same request comes again, its write is left out and what it made is read. So the answer
# can be made again after a crash, until it is kept as well; from then on the kept answer is given.
# --------------------------------------------------------------------------------------------------


def _once(request: KeyedRequest) -> Once:
    """Return what changes the first write that it is called with: its transaction takes the key as
    well. If the key is taken, nothing is written, and what the earlier request made is returned."""
    left = [request]

    def change(work: Callable[[Transaction], Any]) -> Callable[[Transaction], Any]:
        def once(tx: Transaction) -> Any:
            if not tx.run("begin_keyed", key=request.key, request=request.content):
                row = _row_of(tx, request)
                return _read_made(tx, json.loads(row["made"])) if row else work(tx)
            done = work(tx)
            made = json.dumps(_write_made(done))
            tx.run("keep_made", key=request.key, made=made, objective_id=_objective_of(done))
            return done

        return once if left and left.pop() else work

    return change


def _row_of(tx: Transaction, request: KeyedRequest) -> Row | None:
    row = tx.one("keyed_request", key=request.key)
    if row is not None and row["request"] != request.content:
        what = "this Idempotency-Key was used for a different request"
        raise SettingsError(what, fix="send a new key", guide="serve")
    return row


def _objective_of(made: Any) -> int | None:
    match made:
        case Objective():
            return made.id
        case Task() | Step():
            return made.objective_id
        case (first, *_):
            return _objective_of(first)
    return None


def _write_made(made: Any) -> Any:
    """Return what a write returned as JSON, with ids in the place of rows."""
    match made:
        case Task():
            return ["Task", made.objective_id, made.id]
        case Objective() | Schedule() | Step():
            return [type(made).__name__, made.id]
        case tuple():
            return ["Tuple", *map(_write_made, made)]
        case bool():
            return made
    return None


_READ: Mapping[str, Callable[..., Any]] = {
    "Objective": transitions.read_objective,
    "Schedule": transitions.read_schedule,
    "Step": read_step,
    "Task": transitions.read_task,
}


def _read_made(tx: Transaction, made: Any) -> Any:
    """Return what a write returned, with the rows as they are now. Raises `NotFoundError` if it was
    deleted."""
    match made:
        case ["Tuple", *parts]:
            return tuple(_read_made(tx, part) for part in parts)
        case [kind, *ids]:
            return _READ[kind](tx, *ids)
    return made


async def open_postgres(
    url: str,
    *,
    offload: Offload,
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], datetime] | None = None,
    only_looks: bool = False,
    migrates: bool = False,
) -> TaskStore:
    """Open the task store in this PostgreSQL database. In an empty database, create the schema.

    Args:
        url: `postgresql://user:password@host:port/database`. It is a secret; messages show it
            without the password.
        offload: runs blocking work in a few threads, each with a connection of its own. The caller
            closes it after the store.
        tell: called with a message for a person when the store cannot be written, once for each
            outage.
        clock: the time to use instead of the server's clock, for tests.
        only_looks, migrates: see `PostgresDatabase`.

    Raises:
        SettingsError: the driver is not installed, or the URL cannot be parsed.
        StoreUnusableError: the server refuses the user, there is no such database, or its schema
            has another version.
        StoreUnavailableError: the server cannot be reached.
    """
    try:
        from babyagi.taskstore.postgres import PostgresDatabase
    except ImportError as error:
        raise SettingsError(
            f"the task store {redact_url(url)} needs the package psycopg, which cannot be imported",
            why=str(error),
            fix="pip install 'psycopg[binary]>=3.3.9'",
            guide="store",
        ) from error
    opened = await offload(
        lambda: PostgresDatabase(url, clock=clock, only_looks=only_looks, migrates=migrates)
    )
    return TaskStore(opened, offload=offload, tell=tell)


class TaskStore(
    Workers,
    Claims,
    Recording,
    Steps,
    Steering,
    Schedules,
):
    """The whole state of the program: the objectives with their tasks, results, steps and events,
    the workers and the schedules. Each process opens its own store object on the shared
    database.

    The promises (`tests/taskstore/contract.py` tests them):

    * Each method is one transaction. It commits whole or not at all, and its changes are durable
      when it returns.
    * A method that takes a `Fence`, `Claim` or `DutyClaim` first checks that the worker still holds
      the claim. If not, it changes nothing and raises `LeaseLostError`. The exceptions are
      `record_step` of an `Outcome` and `abandon_step`.
    * The argument `first` is recorded in the method's transaction, before the method's own change,
      as `record_step` would under the same fence. When the method raises, `first` is not recorded
      either.
    * Time is measured by the store's clock. Callers pass durations, never instants.
    * Every change of state appends its events in the same transaction.
    * `StoreUnavailableError` means: nothing changed, try again later. `StoreUnusableError` means: a
      person must act.
    """

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    @writing(locks_all=True)
    def create_objective(
        self, tx: Transaction, spec: ObjectiveSpec, *, uid: str, always_new: bool = False
    ) -> tuple[Objective, bool]:
        """Create an objective with its first task queued. If an objective with the same text, first
        task and instance name exists, whatever its status, return the newest such objective
        instead, unless `always_new`.

        Returns:
            The objective, and True when this call created it.
        """
        keys = lifecycle.identity_keys(spec)
        for key in () if always_new else keys:
            known = tx.one("newest_objective", identity=key)
            if known is not None:
                return transitions.read_objective(tx, known["id"]), False
        return create_objective(tx, spec, uid=uid, identity=keys[0]), True

    @reading
    def objective(self, tx: Transaction, objective_id: int) -> Objective:
        """Return the objective. Raises `NotFoundError`."""
        return transitions.read_objective(tx, objective_id)

    @reading
    def objectives(
        self, tx: Transaction, *, are_open: bool = False, limit: int | None = None
    ) -> list[Objective]:
        """Return the objectives, oldest first: all of them, or only the `limit` newest, or with
        `are_open` only those that have work for workers, which are active, or have ended but have
        no report yet."""
        query = "open_objectives" if are_open else "objectives"
        newest_first = tx.all(query, limit=ALL_ROWS if limit is None else limit)
        return [transitions.objective_of(tx, row) for row in reversed(newest_first)]

    @writing()
    def switch_objective(
        self, tx: Transaction, objective_id: int, *, to: ObjectiveStatus, detail: str = ""
    ) -> Objective:
        """Pause an active objective, or make a paused one active again. Nothing changes when the
        objective has another status.

        Args:
            to: PAUSED: from now on no further call of a model or tool is allowed. ACTIVE.
            detail: why no worker could work on the objective; empty when a person asked for the
                pause.
        """
        row, is_pause = transitions.objective_row(tx, objective_id), to is ObjectiveStatus.PAUSED
        if row["status"] == (ObjectiveStatus.ACTIVE if is_pause else ObjectiveStatus.PAUSED):
            detail = lifecycle.storable(detail, max_chars=lifecycle.MAX_DETAIL_CHARS)
            transitions.store_active_time(tx, row)
            tx.run("set_status", objective_id=objective_id, status=to, detail=detail)
            kind = events.OBJECTIVE_PAUSED if is_pause else events.OBJECTIVE_RESUMED
            data = {"detail": detail} if detail else {}
            transitions.append_event(tx, objective_id, kind, **data)
        return transitions.read_objective(tx, objective_id)

    @writing()
    def end_objective(
        self,
        tx: Transaction,
        objective_id: int,
        *,
        reason: StopReason | None = None,
        detail: str = "",
    ) -> Objective:
        """End an active or paused objective; a report is due from now on. A second call changes
        nothing, so the first reason stays.

        With `OBJECTIVE_MET` or `CANCELLED`, queued and waiting tasks become cancelled; with any
        other reason they keep their status.

        Args:
            reason: None ends an active objective only if nothing more can happen in it, with the
                reason that `lifecycle.conclude` gives.
        """
        if reason is None:
            _conclude(tx, transitions.read_objective(tx, objective_id))
        else:
            transitions.end(tx, objective_id, reason=reason, detail=detail)
        return transitions.read_objective(tx, objective_id)

    @writing()
    def extend_objective(
        self,
        tx: Transaction,
        objective_id: int,
        *,
        limits: Limits | None = None,
        question: str | None = None,
        after: Sequence[int] = (),
    ) -> Objective:
        """Set new limits, or ask a further question, or both, and count tasks without progress from
        0 again. An objective becomes active again and needs a new report if it ended at a limit, or
        as `waiting`, `stalled`, `unmet` or `failed`; for a question, however it ended.

        Args:
            question: is added to the objective's spec (`ObjectiveSpec.further`), and a task with
                the question as its name is queued before all others. A worker that is checking
                whether the objective is met loses its claim, because that check does not know the
                question.
            after: the tasks that the question's task waits for.

        Raises:
            ObjectiveStoppedError: a question, and the objective was cancelled.
            SettingsError: the question is empty.
        """
        row = transitions.objective_row(tx, objective_id)
        spec, may_reopen = spec_from_row(row), row["stop_reason"] in lifecycle.REOPENED_BY_EXTENDING
        changed: dict[str, Any] = {}
        if question is not None:
            asked = lifecycle.further_question(question)
            lifecycle.require_reopenable(objective_id, row["stop_reason"])
            spec = replace(spec, further=tuple(dict.fromkeys((*spec.further, asked))))
            changed["question"], may_reopen = asked, row["stop_reason"] is not None
        if limits is not None:
            spec = replace(spec, limits=limits)
            changed |= asdict(limits)
            tx.run("set_overspent", objective_id=objective_id, limit="")
        transitions.set_spec(tx, row, spec)
        tx.run("count_afresh", objective_id=objective_id)
        transitions.append_event(tx, objective_id, events.OBJECTIVE_EXTENDED, **changed)
        if question is not None:
            _queue_question(tx, objective_id, Proposal(name=asked, after=tuple(after)))
        if may_reopen:
            transitions.reopen(tx, objective_id)
        return transitions.read_objective(tx, objective_id)

    @writing()
    def delete_objective(self, tx: Transaction, objective_id: int) -> None:
        """Delete the objective with all its tasks, results, steps and events. Raises
        `SettingsError` while a living worker has claimed one of its tasks, or work for the whole
        objective such as planning."""
        transitions.objective_row(tx, objective_id)
        _require_nobody_at_work(tx, objective_id)
        tx.run("forget_answers", objective_id=objective_id)
        tx.run("delete_objective", objective_id=objective_id)

    # -- looking
    # ----------------------------------------------------------------------------------------------

    @reading
    def standing(self, tx: Transaction, objective_id: int) -> Standing:
        """Return the facts from which one sees whether the objective makes progress, and why not.
        Raises `NotFoundError`."""
        row = transitions.objective_row(tx, objective_id)
        outage = tx.one("outages", objective_id=objective_id)
        return _standing(tx, row, counts=transitions.counts(tx, objective_id), outage=outage)

    @reading
    def vitals(self, tx: Transaction) -> Vitals:
        """Return measurements of the whole store, from one read of the database, with a number of
        queries that does not grow with the store."""
        at_us = {"until_answered_us": transitions.UNTIL_ANSWERED_US}
        queues = {row["objective_id"]: row for row in tx.all("queues", **at_us)}
        outages = {row["objective_id"]: row for row in tx.all("outages", objective_id=None)}
        standings = [
            (
                _standing(tx, row, counts={}, outage=outages.get(row["id"])),
                _queue_of(queues.get(row["id"]), now_us=tx.now_us),
            )
            for row in reversed(tx.all("open_objectives", limit=ALL_ROWS))
            if row["status"] == ObjectiveStatus.ACTIVE
        ]
        return Vitals(
            at=to_time(tx.now_us),
            standings=standings,
            workers=_read_workers(tx),
            totals={
                (row["name"], row["word"], row["more"]): int(row["n"]) for row in tx.all("totals")
            },
            next_tick_s=wait_for_tick_s(tx),
        )

    async def verify(self, objective_id: int | None = None) -> Verification:
        """Read every row of every table, for one objective or for all, compare it with its checksum
        (if it has one) and with other rows, and return a description of each damage.

        Raises:
            NotFoundError: no such objective.
            StoreUnusableError: the store is so damaged that its rows cannot even be read.
        """

        def work(tx: Transaction) -> Verification:
            if objective_id is not None:
                transitions.objective_row(tx, objective_id)
            try:
                return _read_every_row(tx, objective_id)
            except KeyError as missing:  # SQLite stores the schema as text, which can be damaged
                raise database.damaged("a table", why=f"it has no column {missing}") from missing

        found = await self._offload(lambda: self._database.read_unchecked(work))
        in_file = await self._offload(self._database.find_damage)
        return replace(
            found, damages=(*found.damages, *(f"the file: {fault}" for fault in in_file))
        )

    @reading
    def report(self, tx: Transaction, objective_id: int) -> str | None:
        """Return the objective's report as Markdown; None before it is written."""
        markdown: str | None = rows_in(tx, "report", objective_id)[0]["report"]
        return markdown

    @reading
    def window(self, tx: Transaction, objective_id: int, *, n_head: int, n_new: int) -> Window:
        """Return the part of the list that a new order is made from: the first `n_head` queued
        tasks, the newest `n_new` queued tasks of those added since the last order, and all tasks at
        work. No task is in it twice. Raises `NotFoundError`."""
        row, at = transitions.objective_row(tx, objective_id), {"objective_id": objective_id}
        head = tx.all("queue_head", **at, limit=n_head)
        news = tx.all("queue_news", **at, after_id=row["ordered_upto"], limit=n_new)
        statuses = to_json(lifecycle.AT_WORK)
        at_work = tx.all("tasks_with_status", **at, statuses=statuses, limit=ALL_ROWS)
        tasks = {found["id"]: task_from_row(found) for found in (*head, *news)}
        return Window(
            revision=row["order_revision"],
            tasks=tuple(sorted(tasks.values(), key=lambda task: (task.rank, task.id))),
            at_work=tuple(map(task_from_row, at_work)),
        )

    @reading
    def plannable(
        self,
        tx: Transaction,
        objective_id: int,
        *,
        n_results: int,
        n_finished: int,
        limit: int,
        after_id: int = 0,
    ) -> Plannable:
        """Return what a plan is made from: all tasks that wait for planning, the results of the
        first `n_results` of them, the ids of the `n_finished` tasks that were finished last, and
        what `task_names` returns for `limit` and `after_id`. It takes one read of the database.
        Raises `NotFoundError`."""
        at = {"objective_id": objective_id}
        statuses = to_json([TaskStatus.RECORDED])
        listed = _task_names(tx, objective_id, limit=limit, after_id=after_id)
        recorded = tx.all("tasks_with_status", **at, statuses=statuses, limit=ALL_ROWS)
        task_ids = to_json([row["id"] for row in recorded[:n_results]])
        results = tx.all("results_of", **at, task_ids=task_ids)
        finished = tx.all("finished_ids", **at, limit=n_finished)
        return Plannable(
            recorded=tuple(map(task_from_row, recorded)),
            results=tuple(map(result_from_row, results)),
            finished_ids=tuple(row["id"] for row in finished),
            listed=listed,
        )

    @reading
    def task(self, tx: Transaction, objective_id: int, task_id: int) -> Task:
        """Return the task. Raises `NotFoundError`."""
        return transitions.read_task(tx, objective_id, task_id)

    async def tasks(
        self,
        objective_id: int,
        *,
        statuses: Sequence[TaskStatus] | None = None,
        after: Task | None = None,
        task_ids: Sequence[int] | None = None,
        last_finished: bool = False,
        limit: int | None = None,
    ) -> list[Task]:
        """Return the tasks in the list's order, by `(rank, id)`: all, or only those with one of the
        `statuses`, and at most `limit`. The cost of a page of one status does not grow with the
        list.

        Args:
            after: of tasks with some `statuses`, return only what follows the place of this one.
            task_ids: return these tasks, in no order; ids without a task are left out.
            last_finished: return the most recently finished (done or dead) tasks, the latest first.
        """
        query = "last_finished" if last_finished else "tasks"
        values: dict[str, Any] = {"limit": ALL_ROWS if limit is None else limit}
        if task_ids is not None:
            query, values = "some_tasks", {"task_ids": to_json(list(task_ids))}
        elif statuses is not None:
            query = "tasks_page" if len(statuses) == 1 else "tasks_page_of_some"
            rank, task_id = (-ALL_ROWS, 0) if after is None else (after.rank, after.id)
            values |= {"rank": rank, "task_id": task_id}
            one = {"status": statuses[0].value} if query == "tasks_page" else {}
            values |= one or {"statuses": to_json(list(statuses))}
        return await self._read(
            lambda tx: list(map(task_from_row, rows_in(tx, query, objective_id, **values)))
        )

    @reading
    def task_names(
        self, tx: Transaction, objective_id: int, *, limit: int, after_id: int = 0
    ) -> TaskNames:
        """Return the names of the `limit` newest tasks. With `after_id`, the id of an event, return
        only the names of tasks that were added or have changed since that event."""
        return _task_names(tx, objective_id, limit=limit, after_id=after_id)

    @reading
    def results(
        self,
        tx: Transaction,
        objective_id: int,
        *,
        task_ids: Sequence[int] | None = None,
        only_unindexed: bool = False,
        limit: int | None = None,
    ) -> list[Result]:
        """Return the results of the objective in the order in which they were recorded: all, those
        of the tasks `task_ids`, or the `limit` oldest of those that are not in the index yet."""
        query, values = "results", dict[str, Any]()
        if task_ids is not None:
            query, values = "results_of", {"task_ids": to_json(list(task_ids))}
        elif only_unindexed:
            query = "unindexed_results"
            values = {"limit": ALL_ROWS if limit is None else limit}
        return list(map(result_from_row, rows_in(tx, query, objective_id, **values)))

    @reading
    def result_ids(
        self, tx: Transaction, objective_id: int, *, is_indexed: bool | None = None
    ) -> list[int]:
        """Return the ids of the tasks that have a result: all, only those whose result is in the
        index (True), or only those whose result is not (False). The texts are not read."""
        wanted = None if is_indexed is None else int(is_indexed)
        rows = rows_in(tx, "result_ids", objective_id, is_indexed=wanted)
        return [int(row["task_id"]) for row in rows if row["task_id"] is not None]

    # -- events
    # ----------------------------------------------------------------------------------------------

    async def events(
        self,
        objective_id: int | None,
        *,
        after_id: int = 0,
        task_id: int | None = None,
        kinds: Sequence[str] | None = None,
        from_end: bool = False,
        limit: int = 1000,
    ) -> list[Event]:
        """Return the first `limit` events whose id is greater than `after_id`, by id: those of the
        objective or of one task of it, of some kinds or of any. Raises `NotFoundError`.

        Args:
            objective_id: None stands for all objectives, tasks and kinds. Events of one objective
                are committed in the order of their ids; events of different objectives need not be.
            from_end: return the last `limit` events instead of the first.
        """
        page = {"after_id": after_id, "limit": limit}
        wanted = {"task_id": task_id, "kinds": None if kinds is None else to_json(list(kinds))}

        def work(tx: Transaction) -> list[Event]:
            if objective_id is None:
                return list(map(event_from_row, tx.all("events_of_all", **page)))
            query = "newest_events" if from_end else "events"
            rows = rows_in(tx, query, objective_id, **page, **wanted)
            return list(map(event_from_row, reversed(rows) if from_end else rows))

        return await self._read(work)

    @writing()
    def append_event(
        self,
        tx: Transaction,
        objective_id: int,
        *,
        kind: str,
        task_id: int | None = None,
        data: Mapping[str, Any],
    ) -> None:
        """Append an event that belongs to no other change. Raises `NotFoundError`."""
        transitions.objective_row(tx, objective_id)
        transitions.append_event(tx, objective_id, kind, task_id, **data)

    # -- the duty to index
    # ----------------------------------------------------------------------------------------------

    async def pending_results(
        self,
        objective_id: int,
        *,
        space: str,
        limit: int,
        words: Sequence[str] = (),
        marks: Sequence[str] = (),
        n_found: int = 0,
    ) -> Pending:
        """Return what a search of the results begins with, in one read of the database:

        * the results that are not indexed, and their vectors in the embedding space;
        * the number of all results;
        * the tasks whose results contain at least one of the `words`, the best match first;
        * the tasks whose results contain at least one of the `marks` (codes, numbers, names).

        Words consist of letters and digits only. Words that very many results contain are ignored
        (`choose_words` in `sql/store.py`).

        Args:
            limit: maximum number of results.
            n_found: maximum number of tasks found by words, and again by marks.
        """

        def work(tx: Transaction) -> Pending:
            searched = list({*words, *marks})
            (counted,) = rows_in(tx, "n_results", objective_id)
            n_results = int(counted["n"])
            if not n_results:
                return Pending(n_results=0, results=(), vectors={})
            rows = tx.all("pending_results", objective_id=objective_id, space=space, limit=limit)
            n_by_word = _count_words(tx, objective_id, searched)
            return Pending(
                n_results=n_results,
                results=tuple(map(result_from_row, rows)),
                vectors={
                    row["task_id"]: row["vector"] for row in rows if row["vector"] is not None
                },
                with_words=tuple(_find_words(tx, objective_id, words, n_by_word)[:n_found]),
                with_marks=tuple(_find_words(tx, objective_id, marks, n_by_word)[:n_found]),
                common_words=frozenset(word for word, n in n_by_word.items() if n > COMMON_WORD),
            )

        return await self._read(work)

    @writing(is_lasting=False)
    def mark_indexed(self, tx: Transaction, objective_id: int, *, task_ids: Sequence[int]) -> None:
        """Record that the results of these tasks are in the index. Raises `NotFoundError`."""
        transitions.objective_row(tx, objective_id)
        n_marked = tx.run(
            "mark_indexed", objective_id=objective_id, task_ids=to_json(list(task_ids))
        )
        if n_marked:
            (left,) = tx.all("n_unindexed", objective_id=objective_id)
            transitions.append_event(
                tx, objective_id, events.RESULTS_INDEXED, n=n_marked, n_owed=left["n"]
            )

    @writing()
    def owe_index(
        self, tx: Transaction, objective_id: int, *, model: str = "", space: str = ""
    ) -> Objective:
        """Mark every result as not indexed, because the index was lost, and return the objective.

        Args:
            model, space: embed the results with this other model from now on. Vectors of the old
                space are kept.

        Raises:
            NotFoundError: no such objective.
            SettingsError: another model is given, and a living worker has claimed a task of the
                objective, or work for the whole objective such as planning.
        """
        row = transitions.objective_row(tx, objective_id)
        if space:
            _require_nobody_at_work(tx, objective_id)
            spec = spec_from_row(row)
            models = {**spec.model_by_role, Role.EMBEDDING: model}
            spec = replace(spec, model_by_role=models, embedding_space=space)
            transitions.set_spec(tx, row, spec)
            transitions.append_event(tx, objective_id, events.OBJECTIVE_EXTENDED, space=space)
        tx.run("owe_index", objective_id=objective_id)
        return transitions.read_objective(tx, objective_id)

    @writing(is_lasting=False)
    def store_vectors(
        self, tx: Transaction, objective_id: int, *, space: str, vectors: Mapping[int, bytes]
    ) -> None:
        """Store unit vectors (little-endian float32) by task id, so that rebuilding the index needs
        no new embeddings."""
        transitions.objective_row(tx, objective_id)
        at = {"objective_id": objective_id, "space": space}
        for task_id, vector in vectors.items():
            tx.run("put_vector", **at, task_id=task_id, vector=vector, seal=seal_vector(vector))

    @reading
    def vectors(
        self,
        tx: Transaction,
        objective_id: int,
        *,
        space: str,
        task_ids: Sequence[int],
    ) -> Mapping[int, bytes]:
        """Return the stored vectors of these tasks in an embedding space, by task id. Tasks without
        a vector are left out."""
        values = {"space": space, "task_ids": to_json(list(task_ids))}
        rows = rows_in(tx, "vectors_of", objective_id, **values)
        return {row["task_id"]: row["vector"] for row in rows}

    # -- requests with a key
    # ----------------------------------------------------------------------------------------------

    async def carry_out(
        self, request: KeyedRequest, make: Callable[[Any, bool], Awaitable[tuple[str, int | None]]]
    ) -> str:
        """Carry the request out, and return its answer, which is kept. If an answer is kept
        already, return that one, and do nothing. Keys that are older than `KEY_AGE_S` are
        forgotten.

        Args:
            make: carries the request out. Its first write takes effect once for this request: if it
                took effect before, it changes nothing, and returns what it made. `make` is called
                with what that write made, as it is now, or None; and with whether the request was
                carried out before, by a process that ended before the answer was kept. It returns
                the answer as JSON, and the objective that the answer is about: when that is
                deleted, the answer is deleted too.

        Raises:
            SettingsError: another request has the key.
            NotFoundError: what the request made was deleted.
        """

        answer, made, is_repeated = await self._earlier(request)
        if answer is not None:
            return answer
        token = ONCE.set(_once(request))
        try:
            answer, objective_id = await make(made, is_repeated)
        finally:
            ONCE.reset(token)
        return await self._keep_answer(request, answer, objective_id=objective_id)

    @reading
    def _earlier(self, tx: Transaction, request: KeyedRequest) -> tuple[str | None, Any, bool]:
        """Return the kept answer, or what the request made, and whether it was carried out."""
        row = _row_of(tx, request)
        if row is None:
            return None, None, False
        if row["answer"] is not None:
            return row["answer"], None, True
        return None, _read_made(tx, json.loads(row["made"])), True

    @writing(locks_all=True)
    def _keep_answer(
        self, tx: Transaction, request: KeyedRequest, answer: str, *, objective_id: int | None
    ) -> str:
        """Keep the answer, unless the request has one, and return the one that is kept."""
        tx.run("forget_keys", age_us=int(KEY_AGE_S * 1e6))
        tx.run("begin_keyed", key=request.key, request=request.content)
        tx.run("keep_answer", key=request.key, answer=answer, objective_id=objective_id)
        row = _row_of(tx, request)
        assert row is not None
        return str(row["answer"])


def _count_words(tx: Transaction, objective_id: int, words: Sequence[str]) -> dict[str, int]:
    """Return how many results contain each word, counted up to `COMMON_WORD` + 1."""
    values = {"objective_id": objective_id, "words": to_json(list(words)), "limit": COMMON_WORD + 1}
    return {row["word"]: row["n"] for row in (tx.all("word_counts", **values) if words else [])}


def _find_words(
    tx: Transaction, objective_id: int, words: Iterable[str], n_by_word: Mapping[str, int]
) -> list[int]:
    rare = choose_words({word: n_by_word[word] for word in words})
    if not rare:
        return []
    rows = tx.all("results_with_words", objective_id=objective_id, words=to_json(rare))
    return order_by_words((row["word"], row["task_id"], row["n_chars"]) for row in rows)
