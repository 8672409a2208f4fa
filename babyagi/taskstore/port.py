"""The port of the task store: its methods, each of them one transaction, and the data types that
only they use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from babyagi.schedules import Fired, Schedule, ScheduleSpec, Tick
from babyagi.tasks import (
    CheckedPart,
    Claim,
    Duty,
    DutyClaim,
    Event,
    Fence,
    Lack,
    Limits,
    Objective,
    ObjectiveSpec,
    Pending,
    Place,
    Proposal,
    Reservation,
    Result,
    Step,
    StopReason,
    Task,
    TaskName,
    TaskStatus,
    Unanswered,
    Usage,
    Worker,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimable:
    """What a worker could claim in an objective, read at one instant.

    Attributes:
        has_task: whether a task can be claimed.
        n_startable: tasks that can be started, delayed or not.
        n_unordered: tasks that were added since the last order.
        n_recorded: tasks that wait for planning.
        duties: the duties to be done, except `INDEX`, in the order in which a worker claims them.
        conclusion: why the objective would end; None while there is a task or a duty, or while it
            goes on.
    """

    objective: Objective
    has_task: bool
    n_startable: int
    n_unordered: int
    n_recorded: int
    duties: tuple[Duty, ...]
    conclusion: StopReason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """Which duties a worker puts off.

    An order is put off while few tasks can be started, or few were added since the last order. A
    planning is put off while there are tasks to start, so that one call covers more results.
    """

    min_startable: int
    min_unordered: int
    min_recorded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A worker's lease of `length_s` seconds, as the store holds it.

    That it has run out by the store's clock does not prove that the worker is dead: the clock may
    have jumped, or the store may not have been writable for a while.
    """

    worker_id: str
    name: str
    home: str
    length_s: float
    until: datetime
    has_run_out: bool


class WorkerStore(Protocol):
    """Workers, their leases, the objectives that they serve, and the work that there is."""

    async def open_objectives(self) -> list[int]:
        """Return the ids of the objectives that have work: active, or ended without a report;
        oldest first. One read."""
        ...

    async def claimable(self, objective_id: int) -> Claimable:
        """Return what a claim would find. One read; raises `NotFoundError`."""
        ...

    async def claim_next(
        self, objective_id: int, worker_id: str, *, deferral: Deferral
    ) -> tuple[Claimable, Claim | DutyClaim | None]:
        """Look as `claimable` does, and claim what comes first: the first duty that is not put off,
        as `claim_duty` does, else a task, as `claim_task` does.

        Returns:
            What was seen before the claim, and the claim. The claim is None when there is nothing
            to claim, or the worker may not claim here.
        """
        ...

    async def register_worker(self, worker: Worker, *, lease_s: float) -> None:
        """Register the worker with a lease that ends in `lease_s` seconds. It serves no objective
        yet.

        The fields of `Worker` that the store fills in are ignored.
        """
        ...

    async def join_objective(
        self, worker_id: str, objective_id: int, *, blocked_reason: str = ""
    ) -> None:
        """Let the worker serve the objective from now on. With a blocked_reason it joins, but
        cannot claim. A second call replaces the blocked_reason.

        The objective's active time is counted while a worker that is not blocked serves it.

        Raises:
            NotFoundError: no such objective. LeaseLostError: no such worker.
        """
        ...

    async def leave_objective(self, worker_id: str, objective_id: int) -> None:
        """Stop serving the objective, and release what the worker holds of it, as `remove_worker`
        does. Do nothing when the worker does not serve it."""
        ...

    async def renew_lease(self, worker_id: str, *, lease_s: float) -> None:
        """Renew the lease (heartbeat): it ends in `lease_s` seconds. The active time of every
        objective that the worker serves is brought up to date.

        Raises:
            LeaseLostError: the worker was declared dead; all its claims are gone.
        """
        ...

    async def remove_worker(self, worker_id: str) -> None:
        """Remove the worker, and release all that it holds without counting a failure. Unknown ids
        are ignored."""
        ...

    async def leases(self) -> list[Lease]:
        """Return the leases of all workers, by worker id. One read."""
        ...

    async def reap_workers(self, *, silent: Mapping[str, datetime] | None = None) -> int:
        """Release what dead workers hold, and return how many tasks that freed. One read when no
        worker is dead.

        A worker is dead when its lease has ended, or ends later than a lease can end (the clock
        jumped back). `silent` maps worker ids to the end of their lease: with it, only those
        workers are dead whose lease still ends then, because others have renewed theirs.

        A running task is queued again at its old rank with the same `try_no`, and its `n_lost`
        rises by 1. It waits longer after each loss, and is dead at `lifecycle.MAX_LOST`. No failure
        is counted. Each step of the task that is recorded sets `n_lost` to 0, because a task that
        gets further each time is not what kills the workers. A recorded task stays recorded and
        becomes claimable; so does a duty.
        """
        ...

    async def reap_gone(self, worker_ids: Collection[str]) -> int:
        """Do the same as `reap_workers` for workers whose processes are known to have ended,
        whatever their leases say. Unknown ids are ignored."""
        ...

    async def workers(self) -> list[Worker]:
        """Return all registered workers by id, also dead ones that were not reaped yet."""
        ...


# --------------------------------------------------------------------------------------------------
# The task store's port: where objectives, tasks, results, steps and events live, and the truth
# about all of them.
#
# Promises, for every implementation (`tests/taskstore/contract.py` holds them to it):
#
# * Each method is one transaction. It commits whole or not at all, and when it returns it is
# durable.
# * Lock, fence, count: a method that takes a `Fence`, `Claim` or `DutyClaim` first checks that the
# claim is still the holder's, and raises `LeaseLostError` with nothing changed when it is not. The
# one exception is `record_step`.
# * What a method is given as `first` is recorded in its transaction, before what the method does,
# as `record_step` (an `Outcome`) or `put_step` (a `Kept`) would under the same fence. Where the
# method raises, it is not recorded either.
# * The clock is the store's. Callers hand in durations, never instants.
# * Every change of state appends its events in the same transaction.
# * `StoreUnavailableError` means: nothing changed, try again later. `StoreUnusableError` means: a
# person must act.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The outcome of the proposals in `record_plan`: the added tasks, and the names dropped as
    duplicates."""

    added: tuple[Task, ...]
    duplicates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What planning from recorded tasks gave.

    Attributes:
        proposals: new tasks.
        unanswered: those of the recorded tasks that are not answered; tasks that recorded a lack
            always belong to them.
        repeats: tasks whose result only repeats earlier results.
        is_met: whether the planner says that the objective is met.
        dropped: names of proposals beyond the bound.
        failure: why nothing could be planned, empty when planning succeeded.
    """

    proposals: tuple[Proposal, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    repeats: tuple[int, ...] = ()
    is_met: bool = False
    dropped: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The outcome of a check: the parts of the objective that results answer, and the parts that no
    result answers."""

    parts: tuple[CheckedPart, ...] = ()
    missing: tuple[str, ...] = ()


NOTHING_CHECKED = Checked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A bounded part of the list, read at one instant.

    Attributes:
        revision: of the list's order.
        tasks: queued tasks, in the list's order.
        at_work: tasks that are running or recorded.
        finished: the tasks that were finished last, the latest first.
    """

    revision: int
    tasks: tuple[Task, ...]
    at_work: tuple[Task, ...]
    finished: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNames:
    """The names of tasks, oldest first, as they were after the event `event_id`."""

    names: tuple[TaskName, ...]
    event_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plannable:
    """What a plan is made from, read at one instant.

    Attributes:
        recorded: every recorded task, in the list's order.
        results: those of the first recorded tasks.
        finished: the done and dead tasks that were finished last, the latest first.
    """

    recorded: tuple[Task, ...]
    results: tuple[Result, ...]
    finished: tuple[Task, ...]
    listed: TaskNames


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """A call that is about to be made, as `intend_step` takes it. `request` is the prompt or the
    tool call, stored for a person who looks at the step later."""

    key: str
    kind: str
    request_hash: str
    reservation: Reservation
    model: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of an intended call, as `record_step` takes it."""

    key: str
    output: str
    usage: Usage
    model: str = ""
    origins: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A step that cost nothing, as `put_step` takes it."""

    key: str
    kind: str
    request_hash: str
    output: str
    origins: Sequence[str] = ()
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What reading every row found: how many rows there are, and a description of each damaged
    one.
    """

    n_rows: int
    n_steps: int
    n_results: int
    damages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The facts that tell why an objective goes on or does not, read at one instant.

    Attributes:
        n_begun: tasks that were ever begun.
        n_tasks_without_progress, n_tries_without_answer: as in `lifecycle.Snapshot`.
        outage: the event that says that the model does not answer; None when it answers, or was not
            asked yet.
        at: the instant of the read, by the store's clock.
    """

    objective: Objective
    counts: Mapping[TaskStatus, int]
    n_begun: int
    n_tasks_without_progress: int
    n_tries_without_answer: int
    outage: Event | None
    at: datetime


class ScheduleStore(Protocol):
    """Schedules, and the outcome of each of their ticks."""

    async def add_schedule(self, spec: ScheduleSpec, *, uid: str) -> Schedule:
        """Add the schedule; its first tick is the next one that is due.

        Raises:
            SettingsError: no tick is ever due.
        """
        ...

    async def schedule(self, schedule_id: int) -> Schedule:
        """Return the schedule. Raises `NotFoundError`."""
        ...

    async def schedules(self, *, with_removed: bool = False) -> list[Schedule]:
        """Return all schedules, oldest first."""
        ...

    async def ticks(self, schedule_id: int, *, limit: int) -> list[Tick]:
        """Return the newest ticks that were decided, newest first. Raises `NotFoundError`."""
        ...

    async def pause_schedule(self, schedule_id: int) -> Schedule:
        """active → paused. Ticks that are due during the pause are skipped, with one row each.
        Nothing changes when it is not active. Raises `NotFoundError`."""
        ...

    async def resume_schedule(self, schedule_id: int) -> Schedule:
        """paused → active. Ticks that are due by now and were not decided are skipped as paused.
        Nothing changes when it is not paused. Raises `NotFoundError`."""
        ...

    async def remove_schedule(self, schedule_id: int) -> Schedule:
        """Remove the schedule: none of its ticks fires any more, not even one that waits. The
        objectives that it began go on. Raises `NotFoundError`."""
        ...

    async def fire_schedules(self, worker_id: str) -> Fired:
        """Decide the ticks that are due by now, and begin the objectives of those that fire. Each
        tick is decided once, whichever worker asks.

        One call decides a bounded number of ticks, and returns `wait_s` 0 when more are due. One
        read when none is due.

        A tick's row, its objective and the time of the next tick are one transaction, and the pair
        of schedule and instant is unique. So a kill leaves a tick either undecided or decided
        whole.

        Raises:
            LeaseLostError: the worker was declared dead; nothing is changed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queued tasks of an objective, counted by what they wait for: other tasks, what they
    lacked, open questions, a delay, or nothing of their own (`n_free`). `free_s` is how long the
    oldest of the `n_free` tasks has been queued."""

    n_after: int = 0
    n_lack: int = 0
    n_asking: int = 0
    n_delayed: int = 0
    n_free: int = 0
    free_s: float = 0.0

    @property
    def n(self) -> int:
        return self.n_after + self.n_lack + self.n_asking + self.n_delayed + self.n_free


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """The measurements of the whole store, at one instant.

    Attributes:
        standings: of each active objective, with its queue and without its counts.
        n_queued_paused, n_queued_ended: queued tasks of paused and of ended objectives.
        totals: numbers by a name and two more words; the query `totals` lists the names.
        n_by_event: how often each counted event has happened.
        next_tick_s: seconds until the next tick, None when there is none.
    """

    at: datetime
    standings: Sequence[tuple[Standing, Queue]]
    workers: Sequence[Worker]
    n_queued_paused: int
    n_queued_ended: int
    totals: Mapping[tuple[str, str, str], int]
    n_by_event: Mapping[str, int]
    next_tick_s: float | None


class TaskStore(WorkerStore, ScheduleStore, Protocol):
    """The whole state of the program. Async; each process has its own instance."""

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    async def create_objective(
        self, spec: ObjectiveSpec, *, uid: str, always_new: bool = False
    ) -> tuple[Objective, bool]:
        """Create the objective with its first task queued. Unless `always_new`, return the newest
        objective with the same text, first task and instance name instead, whatever its status.

        Returns:
            The objective, and True when this call created it.
        """
        ...

    async def objective(self, objective_id: int) -> Objective:
        """Return the objective. Raises `NotFoundError`."""
        ...

    async def objectives(self, *, limit: int | None = None) -> list[Objective]:
        """Return all objectives, or the `limit` newest; oldest first."""
        ...

    async def pause_objective(self, objective_id: int, *, detail: str = "") -> Objective:
        """active → paused; no call can be intended from now on. Nothing changes when it is not
        active.

        Args:
            detail: why no worker could work on it; empty when a person asked for the pause.
        """
        ...

    async def resume_objective(self, objective_id: int) -> Objective:
        """paused → active. Nothing changes when it is not paused."""
        ...

    async def end_objective(
        self, objective_id: int, *, reason: StopReason, detail: str = ""
    ) -> Objective:
        """active | paused → ended; a report is due from now on. The first reason stays; a second
        call changes nothing.

        With `OBJECTIVE_MET` or `CANCELLED`, queued and waiting tasks become cancelled; otherwise
        they stay as they are.
        """
        ...

    async def conclude_objective(self, objective_id: int) -> Objective:
        """End the objective when nothing more can happen in it (`lifecycle.conclude`); otherwise
        change nothing."""
        ...

    async def extend_objective(self, objective_id: int, *, limits: Limits) -> Objective:
        """Set new limits, and count tasks without progress from 0. An objective that ended by a
        limit, or as `waiting`, `stalled`, `unmet` or `failed`, becomes active again and needs a new
        report."""
        ...

    async def ask_further(
        self,
        objective_id: int,
        *,
        question: str,
        after: Sequence[int] = (),
        limits: Limits | None = None,
    ) -> Objective:
        """Add a person's further question to what the objective asks (`ObjectiveSpec.further`), and
        queue a task of that name before all others, to come after the tasks `after`.

        An objective that has ended becomes active again and needs a new report. A check that is
        under way loses its claim, because it did not know the question.

        Args:
            limits: new limits; None keeps the present ones.

        Raises:
            ObjectiveStoppedError: it was cancelled. SettingsError: the question is empty.
        """
        ...

    async def delete_objective(self, objective_id: int) -> None:
        """Remove the objective and everything that belongs to it. Raises `SettingsError` while a
        living worker holds one of its tasks or duties."""
        ...

    async def counts(self, objective_id: int) -> Mapping[TaskStatus, int]:
        """Return how many tasks have each status; every status is a key."""
        ...

    # -- claims
    # ----------------------------------------------------------------------------------------------

    async def claim_task(self, objective_id: int, worker_id: str) -> Claim | None:
        """Lease the best claimable task: the queued one with the least `(rank, id)` whose `after`
        tasks are all done, dead or cancelled and whose `not_before` has passed.

        Returns None when there is no such task; when the worker has no living lease, does not serve
        the objective or is blocked there; and when the objective is not active, is claimed to be
        met, is stalled (`lifecycle.may_start`), or has reached its limit of time. At the limit of
        tasks only tasks that were begun before can be claimed.
        """
        ...

    async def record_result(
        self,
        claim: Claim,
        *,
        text: str,
        origins: Sequence[str],
        lack: str = "",
        plan: Planned | None = None,
        first: Outcome | Kept | None = None,
    ) -> Result:
        """running → recorded, with its one result, which others can see from now on. The task is
        not held any more. Allowed on a paused or ended objective.

        A queued task that lacked something that this result names becomes claimable again.

        Args:
            lack: the part of its task that the result does not answer.
            plan: what the execution agent itself planned; the task is then done, as by
                `record_plan`.
        """
        ...

    async def record_lack(
        self,
        claim: Claim,
        *,
        lack: Lack,
        plan: Planned | None = None,
        first: Outcome | Kept | None = None,
    ) -> Task:
        """running → recorded, without a result; or dead when this was the last of
        `lifecycle.MAX_LACKS` tries. The task is not held any more.

        Args:
            plan: tasks that the execution agent itself proposed for what is lacking; the task is
                queued after them, as by `record_plan`.
        """
        ...

    async def record_plan(
        self,
        claim: DutyClaim,
        *,
        task_ids: Sequence[int],
        plan: Planned,
        first: Outcome | Kept | None = None,
    ) -> Plan:
        """recorded → done, and the proposals are added at the end of the list, in their order.

        A task that is unanswered or recorded a lack is queued again as a new try. It comes after
        the proposals made for it (or the tasks that they repeat) and after the tasks in
        `Unanswered.after`; after its last try it is dead. A result that is no answer is withdrawn.

        A proposal is dropped as a duplicate when a task of the same name (`names.name_key`,
        `names.name_sense`) is open, was cancelled, or was answered. It is kept when the task that
        it is proposed for still lacks it, although that answer stood in its prompt. A task that was
        given up can be proposed again only if a newer result bears on it. Nothing is added to an
        ended objective. `is_met` notes the claim that the objective is met: no new claims until
        `finish_check`.
        """
        ...

    async def fail_task(
        self, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0
    ) -> Task:
        """Count a failed try: `failures` and `try_no` rise. running → queued after `delay_s`, or
        dead at `max_failures`."""
        ...

    async def release_task(self, claim: Claim, *, delay_s: float = 0.0, reason: str = "") -> None:
        """Give the task back unchanged, claimable after `delay_s`. No failure is counted (outage,
        pause, drain, limit)."""
        ...

    # -- steering: what a person changes while workers run; it holds from the next claim and the
    # next call on

    async def add_tasks(
        self,
        objective_id: int,
        proposals: Sequence[Proposal],
        *,
        allow_duplicates: bool = True,
        to: Place = Place.LAST,
    ) -> Plan:
        """Add a person's tasks at one end of the list. An objective that has ended becomes active
        again and needs a new report. Raises `ObjectiveStoppedError` when it was cancelled."""
        ...

    async def move_task(self, objective_id: int, task_id: int, *, to: Place | int) -> Task:
        """Move a queued or waiting task to one end of the open tasks, or before the task with the
        id `to`. The order's revision rises, so an order that was begun before is stale.

        Raises:
            NotFoundError. SettingsError: one of the two is neither queued nor waiting.
        """
        ...

    async def replace_task(self, objective_id: int, task_id: int, *, name: str) -> Task:
        """Cancel a queued or waiting task, queue a new one in its place, and return the new one. It
        takes over the rank, the tasks that it comes after, and the tasks that come after it.

        Raises:
            NotFoundError. SettingsError: it is neither queued nor waiting, or the name is blank.
        """
        ...

    async def cancel_task(self, objective_id: int, task_id: int) -> Task:
        """queued | waiting → cancelled; tasks that come `after` it no longer wait for it.

        Raises:
            NotFoundError. SettingsError: it is neither queued nor waiting.
        """
        ...

    async def retry_task(self, objective_id: int, task_id: int) -> Task:
        """dead → queued at its rank, as a new try with no failures and no lacks. Tasks that come
        after it wait for it again. An objective that has ended becomes active again and needs a new
        report.

        Raises:
            NotFoundError. SettingsError: it is not dead. ObjectiveStoppedError: the objective was
                cancelled.
        """
        ...

    # -- duties
    # ----------------------------------------------------------------------------------------------

    async def claim_duty(self, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim | None:
        """Lease the duty if it is due and no worker holds it, for a worker that serves the
        objective and is not blocked there.

        ORDER is due when the objective is active, at least two tasks can be started, and a task was
        added since the last order. PLAN: active, and a task is recorded. CHECK: active, and claimed
        to be met, or nothing is left to do and something was answered (`lifecycle.needs_check`).
        REPORT: ended, no report yet, and no task held. INDEX: some result is not indexed yet; also
        when the objective has its report already.
        """
        ...

    async def window(
        self, objective_id: int, *, n_head: int, n_new: int, n_finished: int = 0
    ) -> Window:
        """Return the first `n_head` queued tasks and the newest `n_new` of those added since the
        last order, each once; the tasks at work; and the `n_finished` done and dead tasks that were
        finished last."""
        ...

    async def plannable(
        self,
        objective_id: int,
        *,
        n_results: int,
        n_finished: int,
        n_names: int,
        names_after: int = 0,
    ) -> Plannable:
        """Return what a plan is made from, with the results of the first `n_results` recorded
        tasks, and the names that `task_names` returns for `limit=n_names, after_id=names_after`.
        One read; raises `NotFoundError`."""
        ...

    async def reorder(
        self,
        claim: DutyClaim,
        *,
        revision: int,
        task_ids: Sequence[int],
        first: Outcome | Kept | None = None,
    ) -> None:
        """Give the ranks that the named queued tasks hold to the same tasks in the given order
        (`lifecycle.deal_ranks`), and finish the duty.

        Raises:
            StaleOrderError: the list was re-ordered since `revision`; the duty is still due.
        """
        ...

    async def finish_check(
        self,
        claim: DutyClaim,
        *,
        is_met: bool,
        reason: str,
        checked: Checked = NOTHING_CHECKED,
        proposals: Sequence[Proposal] = (),
        fallback: Sequence[Proposal] = (),
    ) -> Objective:
        """Finish the check.

        Met: the objective ends with `OBJECTIVE_MET` if that was claimed, else with `FINISHED` if
        nothing was added meanwhile. Not met: the proposals for what is missing are added, or the
        fallback when all of them are in the list already. It ends with `UNMET` when the list is
        empty and asking has brought nothing often enough (`lifecycle.is_in_vain`).
        """
        ...

    async def record_report(self, claim: DutyClaim, *, markdown: str) -> None: ...

    async def report(self, objective_id: int) -> str | None:
        """Return the report as Markdown, None before it is written."""
        ...

    async def release_duty(self, claim: DutyClaim, *, delay_s: float = 0.0) -> None: ...

    # -- the journal's steps
    # -------------------------------------------------------------------------------------------

    async def intend_step(
        self, fence: Fence, *, intention: Intention, first: Outcome | Kept | None = None
    ) -> Step:
        """Record that a call is about to be made, hold its reservation against every limit, and
        keep its request. `first` is recorded in the same transaction.

        A step that is done is returned unchanged, as is one that is intended under this same claim.
        A step that an earlier claim left open may have been paid for: when that claim ended, its
        reservation became usage (`STEP_UNCONFIRMED`), and the call is now intended again. Other
        owners cannot use what is kept back for a check and for the report (`limits.kept_back`).

        Raises:
            LeaseLostError, LimitReachedError. ObjectiveStoppedError: the objective is paused, or
                has ended and the owner is neither `report` nor `index`.
        """
        ...

    async def record_step(
        self,
        fence: Fence,
        *,
        key: str,
        output: str,
        usage: Usage,
        model: str = "",
        origins: Sequence[str] = (),
    ) -> Step:
        """Record the outcome of an intended step, replace its reservation by the usage, and return
        the step. The first outcome stays.

        The usage of a call of another claim is still counted, because that money is spent; a
        repetition under the same claim changes nothing. If the claim ended with the call in flight,
        what was charged then is replaced by the usage. The claim is not checked.
        """
        ...

    async def abandon_step(self, fence: Fence, *, key: str, usage: Usage) -> None:
        """Drop the intention of a call that gave no outcome, give back its reservation (or what was
        charged when the claim ended), and count `usage`, which may be billed. The claim is not
        checked."""
        ...

    async def put_step(self, fence: Fence, *, kept: Kept) -> Step:
        """Record a step that cost nothing and can be repeated at no cost, in one write. The first
        recorded outcome stays, and is returned."""
        ...

    async def intend_once(self, fence: Fence, *, key: str, request: str) -> Step:
        """Record that a tool call is about to be made that must not be repeated. If the claim ends
        before `record_step`, it is unknown whether the call was made: the step is then unknown, and
        the task waits.

        A step that exists already is returned unchanged; an intended one is returned as unknown.
        Raises as `intend_step`.
        """
        ...

    async def park_task(self, fence: Fence, *, key: str, kind: str, request: str) -> Step:
        """running → waiting: a person is asked `request`. The step becomes asked, or unknown if it
        was intended. The lease and the slot are free, and no failure is counted. A step that is
        done is returned, and the task stays held.

        When five steps of the objective wait for a person already, the task is queued again until
        one of them is answered, and the step is not kept.
        """
        ...

    async def inbox(self, objective_id: int | None = None) -> list[Step]:
        """Return the open steps of waiting tasks, of one objective or of all, oldest first."""
        ...

    async def open_step(self, step_id: int) -> Step:
        """Return the step that waits for a person under this number.

        Raises:
            NotFoundError: no step of this number waits (any more).
        """
        ...

    async def answer_step(
        self, step_id: int, *, output: str, origins: Sequence[str] = ("person",)
    ) -> Step:
        """Complete an open step and queue its task at its rank. An objective that ended as waiting
        becomes active again and needs a new report. A decision about a tool that has changed goes
        into the objective's grants. Raises as `open_step`."""
        ...

    async def steps(self, objective_id: int, *, owner: str) -> list[Step]:
        """Return the steps in the order in which they were created."""
        ...

    async def steps_of(
        self, objective_id: int, *, owners: Sequence[str]
    ) -> Mapping[str, Sequence[Step]]:
        """Return the steps of each of these owners, as `steps` does; an unknown owner has no steps.
        One read."""
        ...

    async def steps_at(self, objective_id: int, *, named: Sequence[tuple[str, str]]) -> list[Step]:
        """Return the steps with these pairs of owner and key; pairs without a step are left out."""
        ...

    async def duty_owners(self, objective_id: int, *, duty: Duty) -> Mapping[str, int]:
        """Return how many steps each owner has, for all owners of a duty, oldest first. Each run of
        a duty has its own owner."""
        ...

    async def verify(self, objective_id: int | None = None) -> Verification:
        """Read every row of every table, of one objective or of all, compare it with its checksum
        where it has one and with the other rows, and name each damaged row.

        Raises:
            NotFoundError. StoreUnusableError: the damage is such that the rows cannot even be read.
        """
        ...

    # -- looking
    # ----------------------------------------------------------------------------------------------

    async def task(self, objective_id: int, task_id: int) -> Task:
        """Return the task. Raises `NotFoundError`."""
        ...

    async def tasks(
        self,
        objective_id: int,
        *,
        statuses: Sequence[TaskStatus] | None = None,
        limit: int | None = None,
    ) -> list[Task]:
        """Return the tasks in the list's order: `(rank, id)`."""
        ...

    async def tasks_page(
        self, objective_id: int, *, status: TaskStatus, after: Task | None = None, limit: int
    ) -> list[Task]:
        """Return the tasks of one status in the list's order that come after a given task of that
        status. The cost of a page does not grow with the list."""
        ...

    async def statuses(
        self, objective_id: int, *, task_ids: Sequence[int]
    ) -> Mapping[int, TaskStatus]:
        """Return the statuses of those tasks that exist, by id."""
        ...

    async def standing(self, objective_id: int) -> Standing:
        """Return the facts that tell why the objective goes on or does not. Raises
        `NotFoundError`.
        """
        ...

    async def vitals(self) -> Vitals:
        """Return the measurements of all objectives. One read, with a number of queries that does
        not grow with the store."""
        ...

    async def place(self, task: Task) -> int:
        """Return the place of a queued task among those that could be claimed now, from 1. At most
        1,000 tasks before it are counted."""
        ...

    async def task_names(self, objective_id: int, *, limit: int, after_id: int = 0) -> TaskNames:
        """Return the names of the newest tasks. With `after_id`, the id of an event, only of those
        that were added or have changed since: each change is told by an event of its task."""
        ...

    async def recorded_ids(self, objective_id: int, *, limit: int) -> list[int]:
        """Return the ids of the tasks that wait for planning, oldest first."""
        ...

    async def last_finished(self, objective_id: int, *, limit: int) -> list[Task]:
        """Return the done and dead tasks that were finished last, the latest first."""
        ...

    async def results(
        self, objective_id: int, *, task_ids: Sequence[int] | None = None
    ) -> list[Result]:
        """Return the results in the order in which they were recorded."""
        ...

    async def count_results(self, objective_id: int) -> int:
        """Return the number of results without reading them."""
        ...

    async def result_ids(self, objective_id: int, *, is_indexed: bool | None = None) -> list[int]:
        """Return the ids of the tasks that have a result, without reading a text: all, only indexed
        ones, or only those that are not indexed."""
        ...

    async def events(
        self, objective_id: int, *, after_id: int = 0, limit: int = 1000
    ) -> list[Event]: ...

    async def events_of_all(self, *, after_id: int, limit: int) -> list[Event]:
        """Return the events of all objectives after an id, by id. Events of one objective are
        committed in the order of their ids; events of different objectives need not be."""
        ...

    async def settled_event_id(self) -> int:
        """Return the id of the newest event of all objectives, once no event with a lower id can be
        committed any more. Waits until no process writes."""
        ...

    async def events_of(
        self, objective_id: int, *, kinds: Sequence[str], limit: int
    ) -> list[Event]:
        """Return the `limit` newest events of these kinds, oldest first."""
        ...

    async def history(
        self, objective_id: int, *, after_id: int = 0, task_id: int | None = None, limit: int
    ) -> list[Event]:
        """Return the events after an id, of one task or of all, oldest first."""
        ...

    async def history_before(
        self, objective_id: int, *, before_id: int, task_id: int | None = None, limit: int
    ) -> list[Event]:
        """Return the last `limit` events before an id, oldest first."""
        ...

    async def last_event_before(self, objective_id: int, *, since_s: float) -> int:
        """Return the id of the last event that is older than `since_s` seconds, 0 when there is
        none."""
        ...

    async def last_event_id(self, objective_id: int) -> int:
        """Return the id of the objective's newest event, 0 when there is none."""
        ...

    async def append_event(
        self, objective_id: int, *, kind: str, task_id: int | None = None, data: Mapping[str, Any]
    ) -> None: ...

    async def secret(self, candidate: str) -> str:
        """Return the secret from which the marks of prompts are made. The first candidate that a
        worker proposes becomes the secret of all workers.

        It stands in no row that is shown, exported or sent anywhere.
        """
        ...

    async def wait_for_events(self, objective_id: int, *, after_id: int, timeout_s: float) -> None:
        """Wait until an event later than `after_id` exists, whichever process wrote it, or until
        `timeout_s` has passed."""
        ...

    async def wait_for_change(self, *, timeout_s: float) -> None:
        """Wait until another process, or another store object on the same tables, has committed
        something since the last call returned, or until `timeout_s` has passed. One waiter per
        store object.

        Commits of this store object do not count, because a worker that looks for work would wake
        itself by looking. It may return early, for a change that does not concern the caller. It
        returns at most every 50 ms, and does not raise while the store is unavailable.
        """
        ...

    # -- the duty to index
    # ---------------------------------------------------------------------------------------------

    async def unindexed_results(self, objective_id: int, *, limit: int) -> list[Result]:
        """Return the oldest results that the index does not have yet."""
        ...

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
        """Return, in one read, `unindexed_results` with their vectors of the embedding space, the
        number of all results, and by full text the tasks whose results contain at least one of the
        words, the best match first; the same for the marks.

        Words are letters and digits only. Words that very many results contain are ignored
        (`choose_words` in `sql/store.py`).

        Args:
            limit: how many results.
            n_found: how many tasks, for the words and for the marks each.
        """
        ...

    async def mark_indexed(self, objective_id: int, *, task_ids: Sequence[int]) -> None: ...

    async def owe_index(self, objective_id: int) -> None:
        """Mark every result to be indexed again (the index was lost, or its embedding space
        changed)."""
        ...

    async def change_space(self, objective_id: int, *, model: str, space: str) -> Objective:
        """Embed the objective's results with another model from now on, and mark all of them to be
        indexed again. Vectors of the old space are kept.

        Raises:
            NotFoundError. SettingsError: a living worker holds something of the objective.
        """
        ...

    async def store_vectors(
        self, objective_id: int, *, space: str, vectors: Mapping[int, bytes]
    ) -> None:
        """Store unit vectors (little-endian float32) by task id, so that a rebuilt index needs no
        new embeddings."""
        ...

    async def vectors(
        self, objective_id: int, *, space: str, task_ids: Sequence[int] | None = None
    ) -> Mapping[int, bytes]: ...

    async def close(self) -> None: ...
