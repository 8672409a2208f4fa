"""The port of the task store: its methods, each one transaction, and the nouns that only they
use."""

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
    """What a claim could find in an objective at one moment: whether some task (and how many can be
    started, delayed or not, and how many were added since the list was ordered), and which duties
    beside the one to index, in the order in which they come; and where there is neither, why it
    would be concluded, if it can be."""

    objective: Objective
    has_task: bool
    n_startable: int
    n_unordered: int
    n_recorded: int
    duties: tuple[Duty, ...]
    conclusion: StopReason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferral:
    """Which duties are better done later: an order where every task is begun soon, that is, where
    fewer can be started, or fewer were added since the last one; a planning that may take more
    results together, while there are tasks to start."""

    min_startable: int
    min_unordered: int
    min_recorded: int

    def covers(self, duty: Duty, claimable: Claimable) -> bool:
        match duty:
            case Duty.ORDER:
                return (
                    claimable.n_startable < self.min_startable
                    or claimable.n_unordered < self.min_unordered
                )
            case Duty.PLAN:
                return claimable.has_task and claimable.n_recorded < self.min_recorded
        return False

    def leaves(self, claimable: Claimable) -> Duty | None:
        """The first duty that is not better done later."""
        return next((duty for duty in claimable.duties if not self.covers(duty, claimable)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A worker's lease of `length_s` as it stands in the store. By the store's clock it has run
    out, or not: that clock may have jumped, or nobody could write for a while, so it alone says
    nothing about the worker."""

    worker_id: str
    name: str
    home: str
    length_s: float
    until: datetime
    has_run_out: bool


class WorkerStore(Protocol):
    """Who is alive, what they are here for, and what there is to do."""

    async def open_objectives(self) -> list[int]:
        """The ids of those that have something for workers: active, or ended without a report;
        oldest first. One read."""
        ...

    async def claimable(self, objective_id: int) -> Claimable:
        """Look whether a claim is worth its while. One read; raises `NotFoundError`."""
        ...

    async def claim_next(
        self, objective_id: int, worker_id: str, *, deferral: Deferral
    ) -> tuple[Claimable, Claim | DutyClaim | None]:
        """Look as `claimable` does, and claim what comes first in what is seen: the first duty that
        is not better done later, as `claim_duty` would, else a task, as `claim_task` would.

        Returns:
            What was seen before the claim; and the claim, None when there was nothing for the
            worker, or it may not claim here.
        """
        ...

    async def register_worker(self, worker: Worker, *, lease_s: float) -> None:
        """Enter the worker with a lease of `lease_s` from now (what the store fills in of a
        `Worker` is ignored). It serves no objective yet."""
        ...

    async def join_objective(
        self, worker_id: str, objective_id: int, *, blocked_reason: str = ""
    ) -> None:
        """The worker serves the objective from now on, or with a blocked_reason would if it could;
        a second call changes the blocked_reason.

        The objective's counted wall time goes on while somebody who is not blocked serves it.

        Raises:
            NotFoundError: no such objective. LeaseLostError: no such worker.
        """
        ...

    async def leave_objective(self, worker_id: str, objective_id: int) -> None:
        """The worker serves it no more; what it holds of it is released as by `remove_worker`.
        Nothing when it does not serve it."""
        ...

    async def renew_lease(self, worker_id: str, *, lease_s: float) -> None:
        """Heartbeat: the lease lives `lease_s` from now, and the active time of every objective
        that it serves is carried on.

        Raises:
            LeaseLostError: the worker was declared dead; all its claims are gone.
        """
        ...

    async def remove_worker(self, worker_id: str) -> None:
        """The worker leaves; whatever it holds is released, without a failure. Unknown ids are
        ignored."""
        ...

    async def leases(self) -> list[Lease]:
        """Of all workers, by id. One read."""
        ...

    async def reap_workers(self, *, silent: Mapping[str, datetime] | None = None) -> int:
        """Release what dead workers hold, and return how many tasks that freed. One read when
        nobody is dead.

        Dead is whose lease is in the past, or further in the future than a lease may be (a clock
        that jumped back). With `silent`, by worker id the end of its lease, only who stands there,
        and whose lease still ends then: who has renewed it since is alive. running → queued at its
        old rank and the same `try_no`, with `n_lost` + 1: after a wait that grows with it, and dead
        at `lifecycle.MAX_LOST`. No failure is counted, and any step of the task that is recorded
        sets `n_lost` to 0: whoever gets further each time is not what kills the workers. recorded
        stays recorded and becomes claimable; a duty becomes claimable.
        """
        ...

    async def reap_gone(self, worker_ids: Collection[str]) -> int:
        """As `reap_workers`, for workers whose processes are known to have ended, whatever their
        leases say. Unknown ids are ignored."""
        ...

    async def workers(self) -> list[Worker]:
        """All that are registered, the dead who were not reaped yet too, by id."""
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
    """What `record_plan` made of the proposals: the tasks that entered the list, the names that
    were there already."""

    added: tuple[Task, ...]
    duplicates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What came of planning from recorded tasks.

    Attributes:
        proposals: new tasks. unanswered: which of the recorded tasks are not answered; those that
            recorded a lack always are.
        repeats: those whose result only repeats earlier ones. is_met: somebody says that the
            objective is met.
        dropped: names that were left out over a bound. failure: why nothing could be planned, empty
            when something could.
    """

    proposals: tuple[Proposal, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    repeats: tuple[int, ...] = ()
    is_met: bool = False
    dropped: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check found: the parts of the objective that results answer, and those that none
    does."""

    parts: tuple[CheckedPart, ...] = ()
    missing: tuple[str, ...] = ()


NOTHING_CHECKED = Checked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A bounded part of the list, all of it read at one instant.

    Attributes:
        revision: of the list's order.
        tasks: queued ones, in the list's order. at_work: those that are running or recorded.
            finished: the last ones, the latest first.
    """

    revision: int
    tasks: tuple[Task, ...]
    at_work: tuple[Task, ...]
    finished: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plannable:
    """What a planning is made from, all of it read at one instant.

    Attributes:
        recorded: every recorded task, in the list's order. results: of the first of them.
        finished: the done and dead tasks that were finished last, the latest first.
        names: the newest tasks by name, oldest first.
    """

    recorded: tuple[Task, ...]
    results: tuple[Result, ...]
    finished: tuple[Task, ...]
    names: tuple[TaskName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """A call that is about to be made, as `intend_step` is told of it; `request` is what is asked,
    for whoever looks later."""

    key: str
    kind: str
    request_hash: str
    reservation: Reservation
    model: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an intended call, as `record_step` is told of it."""

    key: str
    output: str
    usage: Usage
    model: str = ""
    origins: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What cost nothing, as `put_step` is told of it."""

    key: str
    kind: str
    request_hash: str
    output: str
    origins: Sequence[str] = ()
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What reading every row found: how many there are, and each damaged one in words."""

    n_rows: int
    n_steps: int
    n_results: int
    damages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What says why an objective goes on or does not, read at one instant.

    Attributes:
        n_begun: tasks that were ever begun. n_tasks_without_progress, n_tries_without_answer: as in
            `lifecycle.Snapshot`.
        outage: the event that says the model does not answer, None when it answers or nobody has
            asked it.
        at: when this was, by the store's clock.
    """

    objective: Objective
    counts: Mapping[TaskStatus, int]
    n_begun: int
    n_tasks_without_progress: int
    n_tries_without_answer: int
    outage: Event | None
    at: datetime


class ScheduleStore(Protocol):
    """Schedules, and what became of each of their ticks."""

    async def add_schedule(self, spec: ScheduleSpec, *, uid: str) -> Schedule:
        """Enter the schedule; its first tick is the next one that is due.

        Raises:
            SettingsError: no tick is ever due.
        """
        ...

    async def schedule(self, schedule_id: int) -> Schedule:
        """Raises `NotFoundError`."""
        ...

    async def schedules(self, *, with_removed: bool = False) -> list[Schedule]:
        """Oldest first."""
        ...

    async def ticks(self, schedule_id: int, *, limit: int) -> list[Tick]:
        """The newest ones that were decided, newest first. Raises `NotFoundError`."""
        ...

    async def pause_schedule(self, schedule_id: int) -> Schedule:
        """active → paused; ticks that are due meanwhile are skipped, one row each. Nothing changes
        when it is not active. Raises `NotFoundError`."""
        ...

    async def resume_schedule(self, schedule_id: int) -> Schedule:
        """paused → active. Ticks that were due by now and nobody has decided are skipped as paused.
        Nothing changes when it is not paused. Raises `NotFoundError`."""
        ...

    async def remove_schedule(self, schedule_id: int) -> Schedule:
        """No tick of it fires any more, also none that waits; what its ticks began goes on. Raises
        `NotFoundError`."""
        ...

    async def fire_schedules(self, worker_id: str) -> Fired:
        """Decide the ticks that are due by now, each once whoever asks, and begin the objectives of
        those that fire; a bounded number of them, with `wait_s` 0 where more are due. One read
        where none is.

        A tick's objective, its row and the time of the next tick are one transaction, and the pair
        of schedule and instant is unique, so a kill leaves a tick undecided or decided whole.

        Raises:
            LeaseLostError: the worker was declared dead; nothing is changed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queued tasks of an objective by what holds each of them up: tasks that come first, what
    it lacked, open questions, a delay; or nothing of its own (`n_free`), the oldest for
    `free_s`."""

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
    """What is measured of the whole store, at one instant.

    Attributes:
        standings: of each active objective, without its counts, with its queue. n_queued_paused,
            n_queued_ended: queued tasks of the others.
        totals: numbers by a name and two words, as the query `totals` names them. n_by_event:
            how often what is counted has happened. next_tick_s: None where no tick comes.
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
    """All the state there is. Async; one instance serves one process."""

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    async def create_objective(
        self, spec: ObjectiveSpec, *, uid: str, always_new: bool = False
    ) -> tuple[Objective, bool]:
        """Create the objective with its first task queued, or return the newest one with the same
        text, first task and instance name (whatever its status) unless `always_new`.

        Returns:
            The objective, and True when it was created by this call.
        """
        ...

    async def objective(self, objective_id: int) -> Objective:
        """Raises `NotFoundError`."""
        ...

    async def objectives(self, *, limit: int | None = None) -> list[Objective]:
        """All of them, or the `limit` newest; oldest first."""
        ...

    async def pause_objective(self, objective_id: int, *, detail: str = "") -> Objective:
        """active → paused; no call is intended from now on. Nothing changes when it is not
        active.

        Args:
            detail: why nobody could work on it; empty when a person wants the pause.
        """
        ...

    async def resume_objective(self, objective_id: int) -> Objective:
        """paused → active. Nothing changes when it is not paused."""
        ...

    async def end_objective(
        self, objective_id: int, *, reason: StopReason, detail: str = ""
    ) -> Objective:
        """active | paused → ended; a report is owed from now on. The first reason stands; a second
        call changes nothing.

        With `OBJECTIVE_MET` or `CANCELLED` the queued and waiting tasks become cancelled; otherwise
        they stay as they are.
        """
        ...

    async def conclude_objective(self, objective_id: int) -> Objective:
        """End the objective if nothing more can happen in it (`lifecycle.conclude`), else change
        nothing."""
        ...

    async def extend_objective(self, objective_id: int, *, limits: Limits) -> Objective:
        """Set new limits, and count barren tasks from 0; an objective that ended by a limit,
        `waiting`, `stalled`, `unmet` or `failed` becomes active again and its report is owed
        anew."""
        ...

    async def ask_further(
        self,
        objective_id: int,
        *,
        question: str,
        after: Sequence[int] = (),
        limits: Limits | None = None,
    ) -> Objective:
        """A person asks something beside the objective's text: it is part of what is asked from now
        on (`ObjectiveSpec.further`), and a task of that name is queued before all others,
        to come after the tasks `after`. An objective that has ended becomes active again, and its
        report is owed anew. A check that is under way did not know the question: its claim is lost.

        Args:
            limits: new ones, where they are given.

        Raises:
            ObjectiveStoppedError: it was cancelled. SettingsError: the question is empty.
        """
        ...

    async def delete_objective(self, objective_id: int) -> None:
        """Remove the objective and everything of it. Raises `SettingsError` while a living worker
        holds one of its tasks or duties."""
        ...

    async def counts(self, objective_id: int) -> Mapping[TaskStatus, int]:
        """How many tasks have each status; every status is a key."""
        ...

    # -- claims
    # ----------------------------------------------------------------------------------------------

    async def claim_task(self, objective_id: int, worker_id: str) -> Claim | None:
        """Lease the best claimable task: the queued one with the least `(rank, id)` whose `after`
        tasks are all done, dead or cancelled and whose `not_before` has passed.

        None when there is none, the worker has no living lease, does not serve the objective or is
        blocked there, the objective is not active, somebody claimed that it is met, it is stalled
        (`lifecycle.may_start`), or the limit of time is reached. At the limit of tasks only those
        are given out that were begun before.
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
        """running → recorded, with its one result, which others can see from now on, and no longer
        held. Allowed on a paused or ended objective. A queued task that waits for what it lacked,
        and which this result names, waits no more.

        Args:
            lack: what the result does not answer of its task.
            plan: what the execution agent planned itself; the task is done then, as by
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
        """running → recorded, without a result, and no longer held; or dead, when it was the last
        of `lifecycle.MAX_LACKS` tries.

        Args:
            plan: what the execution agent proposed itself for what is lacking; the task is queued
                after that, as by `record_plan`.
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
        """recorded → done, and the proposals enter the list at its end, in their order.

        What of the tasks is unanswered, or recorded a lack, goes back to the list as a new try,
        after what was proposed for it (or what a proposal for it repeats) and what
        `Unanswered.after` names; at the last try it is dead. A result that is no answer is
        withdrawn.

        A proposal is dropped as a duplicate when a task of the same name (`names.name_key`,
        `names.name_sense`) is open, was cancelled, or was answered, unless the task that it is
        proposed for still lacks it though that answer stood in its prompt. One that was given up
        comes again only if a newer result bears on it. Nothing is added to an ended objective.
        `is_met` notes the claim that the objective is met: no new claims until `finish_check`.
        """
        ...

    async def fail_task(
        self, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0
    ) -> Task:
        """A failed try: `failures` and `try_no` rise; running → queued after `delay_s`, or dead at
        `max_failures`."""
        ...

    async def release_task(self, claim: Claim, *, delay_s: float = 0.0, reason: str = "") -> None:
        """Give the task back as it was, claimable after `delay_s`; no failure is counted (outage,
        pause, drain, limit)."""
        ...

    # -- steering: what a person changes while others work; it holds from the next claim and the
    # next call on ------------

    async def add_tasks(
        self,
        objective_id: int,
        proposals: Sequence[Proposal],
        *,
        allow_duplicates: bool = True,
        to: Place = Place.LAST,
    ) -> Plan:
        """A person adds tasks at an end of the list; an objective that has ended becomes active
        again, and its report is owed anew. Raises `ObjectiveStoppedError` when it was cancelled."""
        ...

    async def move_task(self, objective_id: int, task_id: int, *, to: Place | int) -> Task:
        """Put a queued or waiting task at an end of what is still to be done, or before the task
        with the id `to`; the order revision rises, so an order that was asked for before is stale.

        Raises:
            NotFoundError. SettingsError: one of the two is neither queued nor waiting.
        """
        ...

    async def replace_task(self, objective_id: int, task_id: int, *, name: str) -> Task:
        """Cancel a queued or waiting task and queue a new one in its place, which is returned: its
        rank, what it comes after, and the tasks that came after it.

        Raises:
            NotFoundError. SettingsError: it is neither queued nor waiting, or the name is blank.
        """
        ...

    async def cancel_task(self, objective_id: int, task_id: int) -> Task:
        """queued | waiting → cancelled; tasks that come `after` it need not wait for it any more.

        Raises:
            NotFoundError. SettingsError: it is neither queued nor waiting.
        """
        ...

    async def retry_task(self, objective_id: int, task_id: int) -> Task:
        """dead → queued at its rank, as a new try with no failures and no lacks; what comes after
        it waits for it again. An objective that has ended becomes active again, unless it was
        cancelled, and its report is owed anew.

        Raises:
            NotFoundError. SettingsError: it is not dead. ObjectiveStoppedError: the objective ended
            for good.
        """
        ...

    # -- duties
    # ----------------------------------------------------------------------------------------------

    async def claim_duty(self, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim | None:
        """Lease the duty if it is owed and free, for a worker that serves the objective and is not
        blocked there.

        ORDER: active, at least two tasks can be started, and a task was added since the last order.
        PLAN: active, and a task is recorded.
        CHECK: active, and claimed met, or nothing is left to do and something was answered
        (`lifecycle.needs_check`). REPORT: ended, no
        report yet, and no task held. INDEX: some result is not yet indexed.
        """
        ...

    async def window(
        self, objective_id: int, *, n_head: int, n_new: int, n_finished: int = 0
    ) -> Window:
        """The first `n_head` queued tasks and the newest `n_new` among those added since the last
        order, each once; what is at work; and the `n_finished` done and dead tasks that were
        finished last."""
        ...

    async def plannable(
        self, objective_id: int, *, n_results: int, n_finished: int, n_names: int
    ) -> Plannable:
        """What a planning is made from: the results are those of the first `n_results` recorded
        tasks. One read; raises `NotFoundError`."""
        ...

    async def reorder(
        self,
        claim: DutyClaim,
        *,
        revision: int,
        task_ids: Sequence[int],
        first: Outcome | Kept | None = None,
    ) -> None:
        """Deal the ranks that the named queued tasks hold out to them anew, in the order given
        (`lifecycle.deal_ranks`), and finish the duty.

        Raises:
            StaleOrderError: the list was re-ordered since `revision`; the duty is still owed.
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
        """Finish the check. Met: end, with `OBJECTIVE_MET` where that was claimed, else with
        `FINISHED` if nothing was added meanwhile. Not met: the proposals for what is missing enter
        the list, or the fallback where all of them are there already; where the list is empty and
        asking has brought nothing often enough (`lifecycle.is_in_vain`), end with `UNMET`."""
        ...

    async def record_report(self, claim: DutyClaim, *, markdown: str) -> None: ...

    async def report(self, objective_id: int) -> str | None:
        """The report as Markdown, None before it is written."""
        ...

    async def release_duty(self, claim: DutyClaim, *, delay_s: float = 0.0) -> None: ...

    # -- the journal's steps
    # -------------------------------------------------------------------------------------------

    async def intend_step(
        self, fence: Fence, *, intention: Intention, first: Outcome | Kept | None = None
    ) -> Step:
        """Record that a call is about to be made, holding its reservation against every limit;
        its request is kept, and `first` is recorded in the same transaction.

        A step that is done is returned as it is. One that is intended under this same claim is
        returned unchanged. One that an earlier claim left open may have been paid: its reservation
        became usage when that claim ended (`STEP_UNCONFIRMED`), and it is intended anew. What is
        kept back for a check and for the report (`limits.kept_back`) is out of reach for every
        other owner.

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
        """Record the outcome of an intended step and settle its reservation. First write wins and
        is returned; the usage of another claim's is still counted, because that money is gone, and
        what comes again under the same claim changes nothing. What was charged when the claim ended
        with the call in flight is settled by it. Not fenced."""
        ...

    async def abandon_step(self, fence: Fence, *, key: str, usage: Usage) -> None:
        """The call gave no outcome: drop the intention, give its reservation back (or what was
        charged for it when the claim ended), count `usage` (what may be billed). Not fenced."""
        ...

    async def put_step(self, fence: Fence, *, kept: Kept) -> Step:
        """Record a step that cost nothing and would be had again for nothing, in one write. First
        write wins and is returned."""
        ...

    async def intend_once(self, fence: Fence, *, key: str, request: str) -> Step:
        """Record that a tool call is about to be made that must not be repeated. If the claim ends
        before `record_step`, nobody knows whether it was made: the step is unknown then, and the
        task waits.

        A step that is there already is returned as it is, an intended one as unknown. Raises as
        `intend_step`.
        """
        ...

    async def park_task(self, fence: Fence, *, key: str, kind: str, request: str) -> Step:
        """running → waiting: a person is asked `request`. The step is asked, or unknown if it was
        intended; the lease and the slot are free, and no failure is counted. A step that is done is
        returned, and the task stays held.

        Where five steps of the objective wait for a person already, the task is queued again until
        one does not any more, and the step is not kept."""
        ...

    async def inbox(self, objective_id: int | None = None) -> list[Step]:
        """The open steps of waiting tasks, of one objective or of all, oldest first."""
        ...

    async def open_step(self, step_id: int) -> Step:
        """The step that waits for a person under this number.

        Raises:
            NotFoundError: no step of this number waits (any more).
        """
        ...

    async def answer_step(
        self, step_id: int, *, output: str, origins: Sequence[str] = ("person",)
    ) -> Step:
        """Complete an open step and queue its task at its rank; an objective that ended as waiting
        becomes active again, and its report is owed anew. What was decided about a tool that has
        changed is in the objective's grants from then on. Raises as `open_step`."""
        ...

    async def steps(self, objective_id: int, *, owner: str) -> list[Step]:
        """In the order in which they were created."""
        ...

    async def steps_at(self, objective_id: int, *, named: Sequence[tuple[str, str]]) -> list[Step]:
        """The steps with these pairs of owner and key, as far as there are such."""
        ...

    async def duty_owners(self, objective_id: int, *, duty: Duty) -> Mapping[str, int]:
        """How many steps of a duty each owner has, oldest first: one for each time that it was
        done."""
        ...

    async def verify(self, objective_id: int | None = None) -> Verification:
        """Read every row of every table, of one objective or of all, recompute its checksum where
        it has one, and compare what it says with the others; a damaged one is named.

        Raises:
            NotFoundError. StoreUnusableError: the damage is such that the rows cannot even be read.
        """
        ...

    # -- looking
    # ----------------------------------------------------------------------------------------------

    async def task(self, objective_id: int, task_id: int) -> Task:
        """Raises `NotFoundError`."""
        ...

    async def tasks(
        self,
        objective_id: int,
        *,
        statuses: Sequence[TaskStatus] | None = None,
        limit: int | None = None,
    ) -> list[Task]:
        """In the list's order: `(rank, id)`."""
        ...

    async def tasks_page(
        self, objective_id: int, *, status: TaskStatus, after: Task | None = None, limit: int
    ) -> list[Task]:
        """The tasks of one status in the list's order, after a task that was of that status;
        however long the list is, a page costs the same."""
        ...

    async def statuses(
        self, objective_id: int, *, task_ids: Sequence[int]
    ) -> Mapping[int, TaskStatus]:
        """The statuses of those that exist, by id."""
        ...

    async def standing(self, objective_id: int) -> Standing:
        """Raises `NotFoundError`."""
        ...

    async def vitals(self) -> Vitals:
        """What is measured of all objectives together. One read, of a number of queries that does
        not grow with the store."""
        ...

    async def place(self, task: Task) -> int:
        """The place of a queued task among those that could be claimed now, from 1; counted up to
        1,000 that come before it."""
        ...

    async def task_names(self, objective_id: int, *, limit: int) -> list[TaskName]:
        """The newest tasks by their names, oldest first."""
        ...

    async def recorded_ids(self, objective_id: int, *, limit: int) -> list[int]:
        """The tasks that planning is owed to, oldest first."""
        ...

    async def last_finished(self, objective_id: int, *, limit: int) -> list[Task]:
        """The done and dead tasks that were finished last, the latest first."""
        ...

    async def results(
        self, objective_id: int, *, task_ids: Sequence[int] | None = None
    ) -> list[Result]:
        """In the order in which they were recorded."""
        ...

    async def count_results(self, objective_id: int) -> int:
        """How many results there are, without reading them."""
        ...

    async def result_ids(self, objective_id: int, *, is_indexed: bool | None = None) -> list[int]:
        """The ids of the tasks that have a result: all, those that are indexed, or those that are
        not; without reading a text."""
        ...

    async def events(
        self, objective_id: int, *, after_id: int = 0, limit: int = 1000
    ) -> list[Event]: ...

    async def events_of_all(self, *, after_id: int, limit: int) -> list[Event]:
        """The events of all objectives after an id, by id. Those of one objective are committed in
        the order of their ids; those of several need not be."""
        ...

    async def settled_event_id(self) -> int:
        """The id of the newest event of all; none with a lower one is still to come. It waits until
        nobody writes."""
        ...

    async def events_of(
        self, objective_id: int, *, kinds: Sequence[str], limit: int
    ) -> list[Event]:
        """The `limit` newest events of these kinds, oldest first."""
        ...

    async def history(
        self, objective_id: int, *, after_id: int = 0, task_id: int | None = None, limit: int
    ) -> list[Event]:
        """The events after an id, of one task or of all, oldest first."""
        ...

    async def history_before(
        self, objective_id: int, *, before_id: int, task_id: int | None = None, limit: int
    ) -> list[Event]:
        """The last `limit` events before an id, oldest first."""
        ...

    async def last_event_before(self, objective_id: int, *, since_s: float) -> int:
        """The id of the last event that is older than `since_s` seconds, 0 when there is none."""
        ...

    async def last_event_id(self, objective_id: int) -> int:
        """The id of its newest event, 0 when there is none."""
        ...

    async def append_event(
        self, objective_id: int, *, kind: str, task_id: int | None = None, data: Mapping[str, Any]
    ) -> None: ...

    async def secret(self, candidate: str) -> str:
        """Return what the marks of prompts are made from; the first candidate is kept for ever, for
        all workers.

        It stands in no row that is shown, exported or sent anywhere.
        """
        ...

    async def wait_for_events(self, objective_id: int, *, after_id: int, timeout_s: float) -> None:
        """Return when an event later than `after_id` exists, whoever wrote it, or after
        `timeout_s`."""
        ...

    async def wait_for_change(self, *, timeout_s: float) -> None:
        """Return when somebody else (another process, or another store object on the same tables)
        has committed something since the last call returned, or after `timeout_s`; for one waiter
        per store object.

        What this store object commits itself does not count: whoever looks for work would wake
        itself by looking. It may return early,
        for a change that concerns nobody; it returns at most every 50 ms, and does not raise while
        the store is out of reach.
        """
        ...

    # -- the duty to index
    # ---------------------------------------------------------------------------------------------

    async def unindexed_results(self, objective_id: int, *, limit: int) -> list[Result]:
        """The oldest results that the result store does not have yet."""
        ...

    async def pending_results(
        self,
        objective_id: int,
        *,
        space: str,
        limit: int,
        words: Sequence[str] = (),
        n_found: int = 0,
    ) -> Pending:
        """As `unindexed_results`, with their vectors of the space, the number of all results, and
        what `find_words` would find of the words. One read."""
        ...

    async def mark_indexed(self, objective_id: int, *, task_ids: Sequence[int]) -> None: ...

    async def owe_index(self, objective_id: int) -> None:
        """Every result is to be indexed again (the index was lost or its space changed)."""
        ...

    async def change_space(self, objective_id: int, *, model: str, space: str) -> Objective:
        """From now on the objective's results are embedded by another model, and every one of them
        is owed to the index. Vectors of the old space are kept.

        Raises:
            NotFoundError. SettingsError: a living worker holds something of the objective.
        """
        ...

    async def find_words(self, objective_id: int, *, words: Sequence[str], limit: int) -> list[int]:
        """Full text: the tasks in whose results at least one of the words stands, the best match
        first.

        Words are letters and digits only. Those that very many results have are passed over
        (`full_text.choose_words`).
        """
        ...

    async def store_vectors(
        self, objective_id: int, *, space: str, vectors: Mapping[int, bytes]
    ) -> None:
        """Keep task id → unit vector (little-endian float32), so that a rebuilt index pays for no
        embedding again."""
        ...

    async def vectors(
        self, objective_id: int, *, space: str, task_ids: Sequence[int] | None = None
    ) -> Mapping[int, bytes]: ...

    async def close(self) -> None: ...
