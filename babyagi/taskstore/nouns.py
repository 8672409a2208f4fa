"""The data types that only the methods of the task store use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from babyagi.tasks import (
    CheckedPart,
    Duty,
    Event,
    Objective,
    Proposal,
    Reservation,
    Result,
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
    """The outcome of a check: whether the objective is met.

    Attributes:
        parts: the parts of the objective that results answer, as the check says.
        missing: the parts that no result answers.
        contradictions: what results contradict each other about.
        unread: done tasks whose results the creation agent has not read, and must read before tasks
            are added for the missing parts.
    """

    is_met: bool = False
    parts: tuple[CheckedPart, ...] = ()
    missing: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    unread: tuple[int, ...] = ()

    @property
    def unproven(self) -> tuple[str, ...]:
        """The parts that a result answers as the check says, without words of it that prove it."""
        return tuple(one.part for one in self.parts if not one.quote)


NOTHING_CHECKED = Checked()
NOTHING_RESERVED = Reservation()


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
        finished_ids: ids of the done and dead tasks that were finished most recently, the latest
            first.
        listed: names of tasks of the objective.
    """

    recorded: tuple[Task, ...]
    results: tuple[Result, ...]
    finished_ids: tuple[int, ...]
    listed: TaskNames


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """A call that is about to be made, the argument of `intend_step`. `request` is the prompt or
    the tool call, stored so that a person can read it later."""

    key: str
    kind: str
    request_hash: str = ""
    reservation: Reservation = NOTHING_RESERVED
    model: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a call that was recorded as intended before: the arguments of `record_step` in
    one object. `output` is None if the call gave no outcome."""

    key: str
    output: str | None
    usage: Usage
    model: str = ""
    origins: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A step that costs nothing, such as a note. `record_step` records it once, when it is done; no
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
        n_tasks_without_progress, n_tries_without_answer: as in `lifecycle.Snapshot`.
        outage: the event of the present outage; None when the model answered the last call, or was
            not called yet.
        at: the instant of the read, by the store's clock.
    """

    objective: Objective
    counts: Mapping[TaskStatus, int]
    n_tasks_without_progress: int
    n_tries_without_answer: int
    outage: Event | None
    at: datetime


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """Measurements of the whole store, read at one instant.

    Attributes:
        standings: the `Standing` and the `Queue` of each active objective. Here `Standing.counts`
            is empty.
        totals: counts by (name of the measurement, label, label), as the SQL query `totals` returns
            them.
        next_tick_s: seconds until the next tick of a schedule; None when no tick is to come.
    """

    at: datetime
    standings: Sequence[tuple[Standing, Queue]]
    workers: Sequence[Worker]
    totals: Mapping[tuple[str, str, str], int]
    next_tick_s: float | None


KEY_AGE_S = 86_400.0  # how long a request with a key takes effect once, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRequest:
    """A request that takes effect once: the key that the client chose, with what it applies to, and
    a hash of the request's content."""

    key: str
    content: str
