"""The interface of the task store: the methods, each of which is one transaction, and the data
types that only these methods use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
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
        has_task: whether a task can be claimed now.
        n_startable: number of queued tasks that wait neither for another task nor for a person's
            answer, delayed or not; 0 while no task can be claimed.
        n_unordered: number of tasks added since the list was last put in order.
        n_recorded: number of tasks with a recorded outcome from which nothing has been planned yet,
            counted up to 100.
        duties: the duties (work for the whole objective, such as planning) to be done, except
            `INDEX`, in the order in which a worker claims them.
        conclusion: the reason for which the objective must end now; None while it goes on.
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
    """The minimum counts below which a worker postpones a duty (work for the whole objective, such
    as planning), because the model call would not pay yet.

    The duty to order the list is postponed while fewer than `min_startable` tasks can be started,
    or fewer than `min_unordered` were added since the last order. Planning is postponed while a
    task can be claimed and fewer than `min_recorded` tasks wait for planning, so that one model
    call plans from several results.
    """

    min_startable: int
    min_unordered: int
    min_recorded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A worker's lease of `length_s` seconds, as the store holds it.

    `has_run_out`: by the store's clock, `until` has passed, or lies more than `length_s` ahead,
    which no renewal can cause. This does not prove that the worker is dead: the clock may have
    jumped, or the store may have refused writes for a while.
    """

    worker_id: str
    name: str
    home: str
    length_s: float
    until: datetime
    has_run_out: bool


class WorkerStore(Protocol):
    """The methods for workers: their leases, the objectives that they serve, and what they can
    claim."""

    async def open_objectives(self) -> list[int]:
        """Return the ids of the objectives that have work for workers, oldest first: those that are
        active, and those that have ended but have no report yet. Costs one read of the database."""
        ...

    async def claimable(self, objective_id: int) -> Claimable:
        """Return what a worker could claim in the objective now. Costs one read of the database.
        Raises `NotFoundError`."""
        ...

    async def claim_next(
        self, objective_id: int, worker_id: str, *, deferral: Deferral
    ) -> tuple[Claimable, Claim | DutyClaim | None]:
        """Read what `claimable` returns, and claim the first thing in it: the first duty (such as
        planning) that `deferral` does not postpone, as `claim_duty` does, else a task, as
        `claim_task` does.

        Returns:
            What was read before the claim, and the claim. The claim is None when there is nothing
            to claim, or this worker may not claim in the objective.
        """
        ...

    async def register_worker(self, worker: Worker, *, lease_s: float) -> None:
        """Register the worker with a lease that ends in `lease_s` seconds. The worker serves no
        objective yet.

        `worker.lease_until` and the fields that the store fills in are ignored.
        """
        ...

    async def join_objective(
        self, worker_id: str, objective_id: int, *, blocked_reason: str = ""
    ) -> None:
        """Let the worker serve the objective from now on. With a `blocked_reason` the worker joins,
        but cannot claim anything there. A second call replaces the `blocked_reason`.

        An objective's active time runs while at least one worker that is not blocked serves it.
        `WAITS_FOR_PERSON` stops that time as any reason does, and is no event.

        Raises:
            NotFoundError: no such objective.
            LeaseLostError: no such worker.
        """
        ...

    async def leave_objective(self, worker_id: str, objective_id: int) -> None:
        """End the worker's service of the objective, and release its claims there without counting
        a failure. Does nothing if the worker does not serve the objective."""
        ...

    async def renew_lease(self, worker_id: str, *, lease_s: float) -> None:
        """Renew the worker's lease, so that it ends in `lease_s` seconds, and bring the active time
        of every objective that the worker serves up to date.

        Raises:
            LeaseLostError: the worker was declared dead; all its claims are gone.
        """
        ...

    async def remove_worker(self, worker_id: str) -> None:
        """Remove the worker and release all its claims, without counting a failure. An unknown id
        is ignored."""
        ...

    async def leases(self) -> list[Lease]:
        """Return the leases of all workers, ordered by worker id. Costs one read of the
        database."""
        ...

    async def reap_workers(self, *, silent: Mapping[str, datetime] | None = None) -> int:
        """Remove dead workers, release their claims, and return how many tasks were released. Costs
        one read of the database when no worker is dead.

        A worker is dead if its lease has run out (`Lease.has_run_out`).

        A running task of a dead worker is queued again at its old rank with the same `try_no`, and
        its `n_lost` rises by 1. Its delay grows with each loss; at `lifecycle.MAX_LOST` losses it
        becomes dead. No failure is counted. Recording a step of the task sets `n_lost` back to 0,
        because a task that progresses is not what kills the workers. A recorded outcome stays. The
        duties that a dead worker held, such as planning, can be claimed again.

        Args:
            silent: if given, only these workers can be dead: the expiry of their leases, as the
                caller last saw it, by worker id. A worker whose lease now has another expiry has
                renewed it, and is not dead.
        """
        ...

    async def reap_gone(self, worker_ids: Collection[str]) -> int:
        """Do as `reap_workers` does for these workers, whatever their leases, because their
        processes are known to have ended. Unknown ids are ignored."""
        ...

    async def workers(self) -> list[Worker]:
        """Return all registered workers, ordered by id, including dead ones that `reap_workers` has
        not removed yet."""
        ...


# --------------------------------------------------------------------------------------------------
# The promises of every task store (`tests/taskstore/contract.py` tests them):
#
# * Each method is one transaction. It commits whole or not at all, and its changes are durable when
# it returns.
# * A method that takes a `Fence`, `Claim` or `DutyClaim` first checks that the worker still holds
# the claim. If not, it changes nothing and raises `LeaseLostError`. The exceptions are
# `record_step` and `abandon_step`.
# * The argument `first` is recorded in the method's transaction, before the method's own change, as
# `record_step` (an `Outcome`) or `put_step` (a `Kept`) would under the same fence. When the method
# raises, `first` is not recorded either.
# * Time is measured by the store's clock. Callers pass durations, never instants.
# * Every change of state appends its events in the same transaction.
# * `StoreUnavailableError` means: nothing changed, try again later. `StoreUnusableError` means: a
# person must act.
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What became of the proposals that `record_plan` was given: the tasks that were added, and the
    names of the proposals that were dropped as duplicates."""

    added: tuple[Task, ...]
    duplicates: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The outcome of one planning: what the planning model decided about the tasks with a recorded
    outcome, and the tasks that it proposed next.

    Attributes:
        proposals: new tasks.
        unanswered: those of the tasks whose question is not answered, always including the tasks
            that recorded which information they lacked.
        repeats: ids of the tasks whose result only repeats earlier results.
        is_met: whether the planning model says that the objective is met.
        dropped: names of the proposals that were left out: there were too many, they were too
            deep, or the same was found before.
        failure: why nothing could be planned; empty when planning succeeded.
    """

    proposals: tuple[Proposal, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    repeats: tuple[int, ...] = ()
    is_met: bool = False
    dropped: tuple[str, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The outcome of a check whether the objective is met.

    Attributes:
        parts: the parts of the objective that results answer.
        missing: the parts that no result answers.
        contradictions: what results contradict each other about.
        unread: done tasks whose results the creation agent has not read, and must read before tasks
            are added for the missing parts.
    """

    parts: tuple[CheckedPart, ...] = ()
    missing: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    unread: tuple[int, ...] = ()


NOTHING_CHECKED = Checked()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A bounded part of the task list, read at one instant.

    Attributes:
        revision: number of the list's order; it rises with each new order.
        tasks: queued tasks, in the list's order.
        at_work: tasks that are running, or are recorded and wait for planning.
    """

    revision: int
    tasks: tuple[Task, ...]
    at_work: tuple[Task, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNames:
    """The names of tasks, oldest task first, as they were right after the event `event_id`."""

    names: tuple[TaskName, ...]
    event_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plannable:
    """What a plan is made from, read at one instant.

    Attributes:
        recorded: every task that waits for planning, in the list's order.
        results: the results of the first of these tasks, as many as the caller asked for.
        finished: the done and dead tasks that were finished most recently, the latest first.
        listed: names of tasks of the objective.
    """

    recorded: tuple[Task, ...]
    results: tuple[Result, ...]
    finished: tuple[Task, ...]
    listed: TaskNames


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """A call that is about to be made, the argument of `intend_step`. `request` is the prompt or
    the tool call, stored so that a person can read it later."""

    key: str
    kind: str
    request_hash: str
    reservation: Reservation
    model: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a call that was recorded as intended before: the arguments of `record_step` in
    one object."""

    key: str
    output: str
    usage: Usage
    model: str = ""
    origins: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A step that costs nothing, such as a note. `put_step` records it once, when it is done; no
    intention is recorded before."""

    key: str
    kind: str
    request_hash: str
    output: str
    origins: Sequence[str] = ()
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The outcome of reading every row of the store: the numbers of rows, steps and results, and a
    description of each damage."""

    n_rows: int
    n_steps: int
    n_results: int
    damages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The facts from which one sees whether an objective makes progress, and why not; read at one
    instant.

    Attributes:
        counts: the number of tasks with each status.
        n_begun: number of tasks that a worker has claimed at least once.
        n_tasks_without_progress, n_tries_without_answer: as in `lifecycle.Snapshot`.
        outage: the event of the present outage; None when the model answered the last call, or was
            not called yet.
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
    """The methods for schedules and for their ticks, the instants at which a schedule is due."""

    async def add_schedule(self, spec: ScheduleSpec, *, uid: str) -> Schedule:
        """Add the schedule. Its first tick is the next instant that its rule names.

        Raises:
            SettingsError: the rule never names an instant.
        """
        ...

    async def schedule(self, schedule_id: int) -> Schedule:
        """Return the schedule. Raises `NotFoundError`."""
        ...

    async def schedules(self, *, with_removed: bool = False) -> list[Schedule]:
        """Return the schedules, oldest first. Removed ones are included only if `with_removed`."""
        ...

    async def ticks(self, schedule_id: int, *, limit: int) -> list[Tick]:
        """Return the newest ticks of the schedule whose outcome is determined, newest first. Raises
        `NotFoundError`."""
        ...

    async def pause_schedule(self, schedule_id: int) -> Schedule:
        """Pause an active schedule. Each tick that falls into the pause is recorded as skipped.
        Nothing changes when the schedule is not active. Raises `NotFoundError`."""
        ...

    async def resume_schedule(self, schedule_id: int) -> Schedule:
        """Make a paused schedule active again. Ticks that are due by now and have no outcome yet
        are recorded as skipped because of the pause. Nothing changes when the schedule is not
        paused. Raises `NotFoundError`."""
        ...

    async def remove_schedule(self, schedule_id: int) -> Schedule:
        """Remove the schedule: none of its ticks fires any more, not even a waiting one. The
        objectives that it started go on. Raises `NotFoundError`."""
        ...

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
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queued tasks of an objective, counted by what they wait for.

    Attributes:
        n_after: those that wait for the tasks that they come after.
        n_lack: those that wait for tasks which provide the information that an earlier try lacked.
        n_asking: those that want to ask a person, but must wait until one of the open questions is
            answered.
        n_delayed: those whose delay has not passed.
        n_free: those that wait only for a worker.
        free_s: how many seconds the oldest of the `n_free` tasks has been waiting.
    """

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
    """Measurements of the whole store, read at one instant.

    Attributes:
        standings: the `Standing` and the `Queue` of each active objective. Here `Standing.counts`
            is empty, and `Standing.outage` has no data.
        n_queued_paused, n_queued_ended: numbers of queued tasks of paused and of ended objectives.
        totals: counts by (name of the measurement, label, label), as the SQL query `totals` returns
            them.
        n_by_event: how often each counted kind of event has happened.
        next_tick_s: seconds until the next tick of a schedule; None when no tick is to come.
    """

    at: datetime
    standings: Sequence[tuple[Standing, Queue]]
    workers: Sequence[Worker]
    n_queued_paused: int
    n_queued_ended: int
    totals: Mapping[tuple[str, str, str], int]
    n_by_event: Mapping[str, int]
    next_tick_s: float | None


KEY_AGE_S = 86_400.0  # how long a request with a key takes effect once, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRequest:
    """A request that takes effect once: the key that the client chose, with what it applies to, and
    a hash of the request's content."""

    key: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRequest:
    """What is known of a request that was carried out before. `answer` is its first answer, as
    JSON. It is None if the process ended before the answer was kept; `made` is then what the
    request's write returned, such as a task, as it is now."""

    answer: str | None
    made: Any


class KeyStore(Protocol):
    """The methods for requests that must take effect once, over crashes and several servers."""

    async def earlier_request(self, request: KeyedRequest) -> EarlierRequest | None:
        """Return what is known of this request; None if it was not carried out in the last
        `KEY_AGE_S` seconds.

        Raises:
            SettingsError: another request has the key.
            NotFoundError: what the request made was deleted.
        """
        ...

    def carrying_out(self, request: KeyedRequest) -> AbstractContextManager[None]:
        """While the context lasts, the first write of this task of the event loop takes effect once
        for this request. If it took effect before, it changes nothing, and returns what it made."""
        ...

    async def keep_answer(
        self, request: KeyedRequest, answer: str, *, objective_id: int | None
    ) -> str:
        """Keep the answer, unless the request has one, and return the one that is kept. Keys that
        are older than `KEY_AGE_S` are forgotten.

        Args:
            objective_id: the objective that the answer is about; when it is deleted, the answer is
                deleted too.
        """
        ...


class TaskStore(WorkerStore, ScheduleStore, KeyStore, Protocol):
    """The whole state of the program: the objectives with their tasks, results, steps and events,
    the workers and the schedules. Each process opens its own store object on the shared
    database."""

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    async def create_objective(
        self, spec: ObjectiveSpec, *, uid: str, always_new: bool = False
    ) -> tuple[Objective, bool]:
        """Create an objective with its first task queued. If an objective with the same text, first
        task and instance name exists, whatever its status, return the newest such objective
        instead, unless `always_new`.

        Returns:
            The objective, and True when this call created it.
        """
        ...

    async def objective(self, objective_id: int) -> Objective:
        """Return the objective. Raises `NotFoundError`."""
        ...

    async def objectives(self, *, limit: int | None = None) -> list[Objective]:
        """Return the objectives, oldest first: all of them, or only the `limit` newest."""
        ...

    async def pause_objective(self, objective_id: int, *, detail: str = "") -> Objective:
        """Pause an active objective: from now on no further call of a model or tool is allowed.
        Nothing changes when the objective is not active.

        Args:
            detail: why no worker could work on the objective; empty when a person asked for the
                pause.
        """
        ...

    async def resume_objective(self, objective_id: int) -> Objective:
        """Make a paused objective active again. Nothing changes when the objective is not
        paused."""
        ...

    async def end_objective(
        self, objective_id: int, *, reason: StopReason, detail: str = ""
    ) -> Objective:
        """End an active or paused objective; a report is due from now on. A second call changes
        nothing, so the first reason stays.

        With `OBJECTIVE_MET` or `CANCELLED`, queued and waiting tasks become cancelled; with any
        other reason they keep their status.
        """
        ...

    async def conclude_objective(self, objective_id: int) -> Objective:
        """End the objective if nothing more can happen in it, with the reason that
        `lifecycle.conclude` gives; otherwise change nothing."""
        ...

    async def extend_objective(self, objective_id: int, *, limits: Limits) -> Objective:
        """Set new limits, and count tasks without progress from 0 again. An objective becomes
        active again and needs a new report if it ended at a limit, or as `waiting`, `stalled`,
        `unmet` or `failed`."""
        ...

    async def ask_further(
        self,
        objective_id: int,
        *,
        question: str,
        after: Sequence[int] = (),
        limits: Limits | None = None,
    ) -> Objective:
        """Add a further question from a person to the objective's spec (`ObjectiveSpec.further`),
        and queue a task with the question as its name, ranked before all others. That task waits
        until the tasks `after` are finished.

        An objective that has ended becomes active again and needs a new report. A worker that is
        checking whether the objective is met loses its claim, because that check does not know the
        question.

        Args:
            limits: new limits; None keeps the present ones.

        Raises:
            ObjectiveStoppedError: the objective was cancelled.
            SettingsError: the question is empty.
        """
        ...

    async def delete_objective(self, objective_id: int) -> None:
        """Delete the objective with all its tasks, results, steps and events. Raises
        `SettingsError` while a living worker has claimed one of its tasks, or work for the whole
        objective such as planning."""
        ...

    async def counts(self, objective_id: int) -> Mapping[TaskStatus, int]:
        """Return how many tasks of the objective have each status. Every status is a key. Raises
        `NotFoundError`."""
        ...

    # -- claims
    # ----------------------------------------------------------------------------------------------

    async def claim_task(self, objective_id: int, worker_id: str) -> Claim | None:
        """Claim the best claimable task: the queued task with the lowest `(rank, id)` whose `after`
        tasks are all done, dead or cancelled and whose `not_before` has passed.

        Returns None when there is no such task; when the worker has no living lease, does not serve
        the objective or is blocked there; and when the objective is not active, waits for a check
        because an agent has said that it is met, is stalled (`lifecycle.may_start`), or has reached
        its time limit. At the limit of tasks, only tasks that were claimed before can be claimed.
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
        """Store the one result of a running task, which others can see from now on, and release the
        task. Its status becomes `recorded`. Allowed on a paused or ended objective too.

        Queued tasks whose missing information is named in this result become claimable again.

        Args:
            lack: the part of the task that the result does not answer.
            plan: what the execution agent itself planned. With a plan, the task becomes done at
                once, as by `record_plan`.
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
        """Release a running task without a result, because the try lacked information. Its status
        becomes `recorded`, which means that it waits for planning, or `dead` when this was the last
        of `lifecycle.MAX_LACKS` such tries.

        Args:
            plan: tasks that the execution agent itself proposed to find the lacking information.
                With a plan, the task is at once queued again after those tasks, as by
                `record_plan`.
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
        """Make the recorded tasks `task_ids` done, and add the plan's proposed tasks at the end of
        the list, in their order.

        A task that is unanswered, or recorded that it lacked information, does not become done: it
        is queued again as a new try, or dead after its last try. It then comes after the proposals
        made for it (or the existing tasks that these repeat) and after the tasks in
        `Unanswered.after`. A result that does not answer its task is withdrawn.

        A proposal is dropped as a duplicate when a task of the same spelling (`names.name_key`), or
        the task that it says it repeats, is open, was cancelled, or was answered. It is not dropped
        when the task that it was made for still lacks the information although that answer was in
        its prompt. A task that was given up can be proposed again only if there is a newer result.
        Nothing is added to an ended objective. With `plan.is_met` it is recorded that an agent says
        that the objective is met, and no task can be claimed until `finish_check`.
        """
        ...

    async def fail_task(
        self, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0
    ) -> Task:
        """Count a failed try of a running task: `failures` and `try_no` rise by 1. The task is
        queued and can be claimed after `delay_s` seconds, or becomes dead when `failures` reaches
        `max_failures`."""
        ...

    async def release_task(self, claim: Claim, *, delay_s: float = 0.0, reason: str = "") -> None:
        """Queue a running task again, otherwise unchanged, and give up its claim (in an outage, in
        a pause, at a limit, or when the worker is to stop). The task can be claimed again after
        `delay_s` seconds. No failure is counted."""
        ...

    # -- changes by a person while workers run; they take effect with the next claim or call
    # ----------------------------------------------------------------------------------------------

    async def add_tasks(
        self,
        objective_id: int,
        proposals: Sequence[Proposal],
        *,
        to: Place = Place.LAST,
    ) -> Plan:
        """Add a person's tasks as the first or last of the list. They may repeat existing tasks;
        blank names are left out. An objective that has ended becomes active again and needs a new
        report, if a task was added.

        Raises:
            ObjectiveStoppedError: the objective was cancelled.
        """
        ...

    async def move_task(self, objective_id: int, task_id: int, *, to: Place | int) -> Task:
        """Move a queued or waiting task to the front or the end of the list, or before the task
        whose id is `to`, and return it. A worker that is making a new order meanwhile will get a
        `StaleOrderError`.

        Raises:
            NotFoundError: no such task.
            SettingsError: one of the two tasks is neither queued nor waiting.
        """
        ...

    async def replace_task(self, objective_id: int, task_id: int, *, name: str) -> Task:
        """Cancel a queued or waiting task, queue a new task called `name` in its place, and return
        the new task. The new task has the same rank, and the same tasks before and after it.

        Raises:
            NotFoundError: no such task.
            SettingsError: the task is neither queued nor waiting, or the name is blank.
        """
        ...

    async def cancel_task(self, objective_id: int, task_id: int) -> Task:
        """Cancel a queued or waiting task, and return it. Tasks that come `after` it no longer wait
        for it.

        Raises:
            NotFoundError: no such task.
            SettingsError: the task is neither queued nor waiting.
        """
        ...

    async def retry_task(self, objective_id: int, task_id: int) -> Task:
        """Queue a dead task at its old rank, as a new try with `failures` and `n_lacks` set to 0,
        and return it. Tasks that come after it wait for it again. An objective that has ended
        becomes active again and needs a new report.

        Raises:
            NotFoundError: no such task.
            SettingsError: the task is not dead.
            ObjectiveStoppedError: the objective was cancelled.
        """
        ...

    # -- duties
    # ----------------------------------------------------------------------------------------------

    async def claim_duty(self, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim | None:
        """Claim a duty (work for the whole objective) if it is due and no worker holds it. The
        worker must serve the objective and not be blocked there. Otherwise return None.

        * ORDER is due when the objective is active, no agent has said that it is met, at least two
          tasks can be started, and a task was added since the last order.
        * PLAN is due when the objective is active and a task with a recorded outcome waits for
          planning.
        * CHECK is due when the objective is active and either an agent claims that it is met, or
          nothing is left to do and something was answered (`lifecycle.needs_check`).
        * REPORT is due when the objective has ended, has no report yet, and no worker holds a task.
        * INDEX is due when some result is not indexed yet, and always after the report.
        """
        ...

    async def window(self, objective_id: int, *, n_head: int, n_new: int) -> Window:
        """Return the part of the list that a new order is made from: the first `n_head` queued
        tasks, the newest `n_new` queued tasks of those added since the last order, and all tasks at
        work. No task is in it twice. Raises `NotFoundError`."""
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
        """Return what a plan is made from: all tasks that wait for planning, the results of the
        first `n_results` of them, the `n_finished` most recently finished tasks, and what
        `task_names` returns for `limit=n_names, after_id=names_after`. It takes one read of the
        database. Raises `NotFoundError`."""
        ...

    async def reorder(
        self,
        claim: DutyClaim,
        *,
        revision: int,
        task_ids: Sequence[int],
        first: Outcome | Kept | None = None,
    ) -> None:
        """Put the queued tasks `task_ids` in this order, by exchanging their ranks
        (`lifecycle.deal_ranks`), and release the duty to order.

        Raises:
            StaleOrderError: the list was re-ordered since `revision`; a new order is still due.
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
        """Record the outcome of a check whether the objective is met, release the duty to check,
        and return the objective.

        If `is_met`, the objective ends: with `OBJECTIVE_MET` if an agent had claimed that it is
        met, else with `FINISHED` unless a task was added meanwhile. If not, `proposals` (tasks for
        the missing parts) are added, or `fallback` if the list contains all of them already. But if
        the tasks that earlier checks added have brought nothing several times in a row
        (`lifecycle.is_in_vain`), nothing is added, and the objective ends with `UNMET`.

        Where `checked` names unread results, these are planned from once more instead, and nothing
        is added for now.
        """
        ...

    async def record_report(self, claim: DutyClaim, *, markdown: str) -> None:
        """Store the objective's report, and release the duty to write it."""
        ...

    async def report(self, objective_id: int) -> str | None:
        """Return the objective's report as Markdown; None before it is written."""
        ...

    async def release_duty(self, claim: DutyClaim, *, delay_s: float = 0.0) -> None:
        """Release the duty. If it is still due, it can be claimed again after `delay_s` seconds."""
        ...

    # -- the journal's steps
    # -------------------------------------------------------------------------------------------

    async def intend_step(
        self, fence: Fence, *, intention: Intention, first: Outcome | Kept | None = None
    ) -> Step:
        """Record that a call is about to be made, with its request, reserve its maximum cost
        against every limit, and return the step.

        A step that is done, or is intended under this same claim, is returned unchanged. The call
        of a step that is intended under an earlier claim may have been paid for, so its reservation
        was counted as usage when that claim ended (`STEP_UNCONFIRMED`); now the call is intended
        again. Calls for anything but a check or the report cannot use what `limits.kept_back` keeps
        for these.

        Raises:
            LeaseLostError: the claim is no longer held.
            LimitReachedError: the reservation exceeds a limit.
            ObjectiveStoppedError: the objective is paused, or has ended and the owner is neither
                `report` nor `index`.
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
        the step. If an outcome is recorded already, that first one stays.

        The usage is counted even if another claim's call gave the outcome, because the money is
        spent; a repetition under the same claim changes nothing. If this claim ended while the call
        was in flight, the usage replaces what was charged at that time. The call succeeds even if
        the claim is no longer held.
        """
        ...

    async def abandon_step(self, fence: Fence, *, key: str, usage: Usage) -> None:
        """Record that an intended call gave no outcome: release its reservation (or what was
        charged for it when its claim ended), and count `usage`, which the provider may bill. This
        succeeds even if the claim is no longer held."""
        ...

    async def put_step(self, fence: Fence, *, kept: Kept) -> Step:
        """Record a step that cost nothing and can be repeated at no cost, and return it. If a step
        with this key exists already, it stays and is returned instead."""
        ...

    async def intend_once(self, fence: Fence, *, key: str, request: str) -> Step:
        """Record that a tool call which must not be repeated is about to be made. If the claim ends
        before `record_step`, it is unknown whether the call was made: the state of the step becomes
        UNKNOWN, and the task waits for a person.

        A step that exists already is returned unchanged, but an intended step is returned as
        UNKNOWN. Raises as `intend_step` does.
        """
        ...

    async def park_task(self, fence: Fence, *, key: str, kind: str, request: str) -> Step:
        """Store the question `request` to a person, and release the running task, which waits for
        the answer. No failure is counted. Return the step, whose state becomes ASKED, or UNKNOWN if
        it was intended. But if the step is done already, return it, and change nothing.

        If `lifecycle.MAX_OPEN_QUESTIONS` steps of the objective wait for a person already, the
        question is not stored, and the task is queued again. It can be claimed when one of those
        questions is answered.
        """
        ...

    async def inbox(self, objective_id: int | None = None) -> list[Step]:
        """Return the steps that wait for a person's answer, of one objective or of all, oldest
        first."""
        ...

    async def open_step(self, step_id: int) -> Step:
        """Return the step with this id, which must be waiting for a person.

        Raises:
            NotFoundError: there is no such step, or it no longer waits.
        """
        ...

    async def answer_step(self, step_id: int, *, output: str) -> Step:
        """Record a person's answer as the outcome of a waiting step, queue its task again at its
        old rank, and return the step. An objective that ended as `waiting` becomes active again and
        needs a new report. If the step asked about a changed tool, the objective's granted tools
        are changed as the person decided. Raises as `open_step` does."""
        ...

    async def steps(self, objective_id: int, *, owner: str) -> list[Step]:
        """Return the steps of an owner in the order in which they were created. The owner is a task
        (`task:7`), or one run of a duty (`plan:2`)."""
        ...

    async def steps_of(
        self, objective_id: int, *, owners: Sequence[str]
    ) -> Mapping[str, Sequence[Step]]:
        """Return the steps of each of these owners (`task:7`, `plan:2` …), as `steps` does, by
        owner; an unknown owner has none. Costs one read of the database."""
        ...

    async def steps_at(self, objective_id: int, *, named: Sequence[tuple[str, str]]) -> list[Step]:
        """Return the steps with these pairs of owner (such as `task:7`) and key. Pairs without a
        step are left out."""
        ...

    async def duty_owners(self, objective_id: int, *, duty: Duty) -> Mapping[str, int]:
        """Return how many steps each run of a duty has, oldest run first. The keys are the owner
        names of the steps, such as `plan:2` for the second planning."""
        ...

    async def verify(self, objective_id: int | None = None) -> Verification:
        """Read every row of every table, for one objective or for all, compare it with its checksum
        (if it has one) and with other rows, and return a description of each damage.

        Raises:
            NotFoundError: no such objective.
            StoreUnusableError: the store is so damaged that its rows cannot even be read.
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
        """Return the tasks in the list's order, by `(rank, id)`: all, or only those with one of the
        `statuses`, and at most `limit`."""
        ...

    async def tasks_page(
        self, objective_id: int, *, status: TaskStatus, after: Task | None = None, limit: int
    ) -> list[Task]:
        """Return the next `limit` tasks of one status in the list's order: those that follow the
        task `after`, which must have had this status, or the first ones. The cost of a page does
        not grow with the list."""
        ...

    async def statuses(
        self, objective_id: int, *, task_ids: Sequence[int]
    ) -> Mapping[int, TaskStatus]:
        """Return the status of each of these tasks by id; ids without a task are left out."""
        ...

    async def standing(self, objective_id: int) -> Standing:
        """Return the facts from which one sees whether the objective makes progress, and why not.
        Raises `NotFoundError`."""
        ...

    async def vitals(self) -> Vitals:
        """Return measurements of the whole store, from one read of the database, with a number of
        queries that does not grow with the store."""
        ...

    async def place(self, task: Task) -> int:
        """Return the position of a queued task among those that could be claimed now, from 1. At
        most 1,000 tasks before it are counted."""
        ...

    async def task_names(self, objective_id: int, *, limit: int, after_id: int = 0) -> TaskNames:
        """Return the names of the `limit` newest tasks. With `after_id`, the id of an event, return
        only the names of tasks that were added or have changed since that event."""
        ...

    async def recorded_ids(self, objective_id: int, *, limit: int) -> list[int]:
        """Return the ids of the tasks that wait for planning, oldest first."""
        ...

    async def last_finished(self, objective_id: int, *, limit: int) -> list[Task]:
        """Return the `limit` most recently finished (done or dead) tasks, the latest first."""
        ...

    async def results(
        self, objective_id: int, *, task_ids: Sequence[int] | None = None
    ) -> list[Result]:
        """Return the results of the objective, all or those of the tasks `task_ids`, in the order
        in which they were recorded."""
        ...

    async def count_results(self, objective_id: int) -> int:
        """Return the number of results without reading them."""
        ...

    async def result_ids(self, objective_id: int, *, is_indexed: bool | None = None) -> list[int]:
        """Return the ids of the tasks that have a result: all, only those whose result is in the
        index (True), or only those whose result is not (False). The texts are not read."""
        ...

    async def events(
        self, objective_id: int, *, after_id: int = 0, limit: int = 1000
    ) -> list[Event]:
        """Return the first `limit` events of the objective whose id is greater than `after_id`, by
        id. Raises `NotFoundError`."""
        ...

    async def events_of_all(self, *, after_id: int, limit: int) -> list[Event]:
        """Return the events of all objectives whose id is greater than `after_id`, by id. Events of
        one objective are committed in the order of their ids; events of different objectives need
        not be."""
        ...

    async def settled_event_id(self) -> int:
        """Wait until no process is writing, and return the id of the newest event of all
        objectives. Every event with a lower id is then committed."""
        ...

    async def events_of(
        self, objective_id: int, *, kinds: Sequence[str], limit: int
    ) -> list[Event]:
        """Return the `limit` newest events of these kinds, oldest first."""
        ...

    async def history(
        self, objective_id: int, *, after_id: int = 0, task_id: int | None = None, limit: int
    ) -> list[Event]:
        """Return the first `limit` events after the event `after_id`, of one task or of the whole
        objective, oldest first."""
        ...

    async def history_before(
        self, objective_id: int, *, before_id: int, task_id: int | None = None, limit: int
    ) -> list[Event]:
        """Return the last `limit` events before the event `before_id`, of one task or of the whole
        objective, oldest first."""
        ...

    async def last_event_before(self, objective_id: int, *, since_s: float) -> int:
        """Return the id of the objective's newest event that is older than `since_s` seconds; 0
        when there is none."""
        ...

    async def last_event_id(self, objective_id: int) -> int:
        """Return the id of the objective's newest event, 0 when there is none."""
        ...

    async def append_event(
        self, objective_id: int, *, kind: str, task_id: int | None = None, data: Mapping[str, Any]
    ) -> None:
        """Append an event that belongs to no other change. Raises `NotFoundError`."""
        ...

    async def secret(self, candidate: str) -> str:
        """Return the store's secret, from which the unpredictable lines around the passages of
        prompts are derived. The first `candidate` that any worker passes becomes the secret of all
        workers.

        The secret is never shown, exported or sent anywhere.
        """
        ...

    async def wait_for_events(self, objective_id: int, *, after_id: int, timeout_s: float) -> None:
        """Wait until the objective has an event with an id above `after_id`, whichever process
        wrote it, or until `timeout_s` seconds have passed."""
        ...

    async def wait_for_change(self, *, timeout_s: float) -> None:
        """Wait until another process, or another store object on the same tables, has committed
        something since the last call returned, or until `timeout_s` seconds have passed. Only one
        caller at a time may wait on a store object.

        Commits of this store object do not count, because a worker that looks for work would wake
        itself by looking. The wait may end early, for a change that does not concern the caller. It
        ends at most once every 50 ms, and does not raise while the store is unavailable.
        """
        ...

    # -- the duty to index
    # ---------------------------------------------------------------------------------------------

    async def unindexed_results(self, objective_id: int, *, limit: int) -> list[Result]:
        """Return the oldest results that are not in the index yet."""
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
        ...

    async def mark_indexed(self, objective_id: int, *, task_ids: Sequence[int]) -> None:
        """Record that the results of these tasks are in the index. Raises `NotFoundError`."""
        ...

    async def owe_index(self, objective_id: int) -> None:
        """Mark every result as not indexed, because the index was lost or its embedding space has
        changed."""
        ...

    async def change_space(self, objective_id: int, *, model: str, space: str) -> Objective:
        """Embed the objective's results with another model from now on, and mark all of them as not
        indexed. Vectors of the old space are kept.

        Raises:
            NotFoundError: no such objective.
            SettingsError: a living worker has claimed a task of the objective, or work for the
                whole objective such as planning.
        """
        ...

    async def store_vectors(
        self, objective_id: int, *, space: str, vectors: Mapping[int, bytes]
    ) -> None:
        """Store unit vectors (little-endian float32) by task id, so that rebuilding the index needs
        no new embeddings."""
        ...

    async def vectors(
        self, objective_id: int, *, space: str, task_ids: Sequence[int] | None = None
    ) -> Mapping[int, bytes]:
        """Return the stored vectors of an embedding space by task id: all, or those of the tasks
        `task_ids`. Tasks without a vector are left out."""
        ...

    async def close(self) -> None:
        """Close the database. A second call does nothing."""
        ...
