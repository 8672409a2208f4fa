"""What the API, the commands with `--json`, and a `Client` answer: the types of that JSON.

The OpenAPI document is made from these types, and a `Client` returns them. `json_shapes.py` makes
the JSON. Times are UTC, money is in US dollars, durations are in seconds. `v` is the version of the
JSON (`json_shapes.VERSION`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from babyagi import tasks
from babyagi.inbox import Decision
from babyagi.reporting.transcript import Part
from babyagi.reporting.why import Reason
from babyagi.tasks import Limits, ObjectiveStatus, Reservation, StopReason, TaskStatus
from babyagi.taskstore.schedules import CatchUp, Overlap, Rule, ScheduleStatus, Tick

# -- parts of several answers
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Versioned:
    v: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    # the costs are None if no price is known
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    unconfirmed_tokens: int
    unconfirmed_cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageWithTime(Usage):
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    queued: int
    running: int
    recorded: int
    done: int
    waiting: int
    dead: int
    cancelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReport:
    is_written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    task_id: int
    name: str
    media_type: str
    n_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    kind: str
    name: str
    task_ids: tuple[int, ...]
    title: str | None
    fetched_at: str | None
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundResult:
    task_id: int
    task: str
    result: str
    lack: str
    origins: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(FoundResult):
    artifacts: tuple[Artifact, ...]


# -- objectives
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted(Versioned):
    objective_id: int
    uid: str
    is_new: bool
    status: ObjectiveStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    status: ObjectiveStatus
    stop_reason: StopReason | None
    stop_detail: str
    is_set_aside: bool
    tasks: Counts
    report: WrittenReport
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective(State):
    id: int
    uid: str
    text: str
    further: tuple[str, ...]
    instance_name: str
    usage: Usage
    missing: tuple[str, ...]
    last_event_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedObjective:
    id: int
    uid: str
    text: str
    further: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedObjective(ReportedObjective):
    initial_task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    name: str
    effect: tasks.Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(State):
    v: int
    objective: AskedObjective
    instance_name: str
    usage: UsageWithTime
    held: Reservation
    limits: Limits
    model: str
    models: Mapping[str, str]
    is_rehearsal: bool
    memory: tasks.Memory
    agent: str
    tools: tuple[Grant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand(Status):
    index_trouble: str
    why: Reason
    n_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted(Versioned):
    deleted: tuple[int, ...]
    trouble: str


# -- tasks
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: int
    name: str
    status: TaskStatus
    rank: int
    failures: int
    n_lost: int
    after: tuple[int, ...]
    parent_id: int | None
    try_no: int
    error: str
    lack: str
    n_lacks: int
    origins: tuple[str, ...]
    usage: tasks.Usage
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    not_before: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTask(Task):
    why: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Versioned):
    objective_id: int
    task: Task
    is_reopened: bool
    replaced_task_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    # an earlier result in the prompt of a try. An earlier version of the program stored no score,
    # and a result of the same objective has no `objective_id`
    try_no: str
    task_id: int
    score: float | None
    reason: str
    objective_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    key: str
    kind: str
    state: tasks.StepState
    model: str
    usage: Usage
    n_unconfirmed: int
    created_at: datetime
    done_at: datetime | None
    n: int
    owner: str
    title: str
    took_s: float | None
    missing: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Versioned):
    steps: tuple[Step, ...]
    without_outcome: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTask(Steps):
    task: Task
    result: Result | None
    sources: tuple[Source, ...]
    given: tuple[Given, ...]
    why: Reason | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDuty(Steps):
    duty: str


# -- results, reports, events
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(FoundResult):
    score: float
    objective_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits(Versioned):
    objective_id: int
    text: str
    degraded: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Versioned):
    objective: ReportedObjective
    stop_reason: StopReason | None
    is_rehearsal: bool
    markdown: str
    sources: tuple[Source, ...]
    artifacts: tuple[Artifact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(tasks.Event):
    v: int


# -- the inbox
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    number: int
    objective_id: int
    task_id: int
    task: str
    kind: str
    state: str
    question: str
    tool: str
    arguments: Mapping[str, Any]
    decisions: tuple[Decision, ...]
    asked_at: datetime
    model: str
    origins: tuple[str, ...]
    preview: str
    seen: str
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided(Versioned):
    number: int
    decision: Decision
    objective_id: int
    task_id: int
    # the workers that ask, if none uses this home: then the decision may count in theirs alone
    elsewhere: tuple[str, ...]


# -- schedules
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledObjective:
    text: str
    initial_task: str
    instance_name: str
    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    id: int
    uid: str
    status: ScheduleStatus
    due_at: datetime | None
    created_at: datetime
    when: str
    rule: Rule
    grace_s: float
    overlap: Overlap
    catch_up: CatchUp
    daily_limit_usd: float
    objective: ScheduledObjective
    models: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSchedule(Versioned):
    schedule: Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSchedule(OneSchedule):
    ticks: tuple[Tick, ...]


# -- workers
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedObjective:
    objective_id: int
    since: datetime
    hindrance: str
    tasks: tuple[int, ...]
    duties: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    id: str
    name: str
    host: str
    pid: int
    home: str
    since: datetime | None
    lease_left_s: float
    objectives: tuple[JoinedObjective, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    code: str
