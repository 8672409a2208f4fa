"""The JSON that the API answers and the commands print with `--json`: its types, which a `Client`
returns and the OpenAPI document is made from, and the functions that make it.

Other programs read this JSON. So fields are only added, a field whose meaning changes gets a new
name, and `VERSION` (the field `v`) rises if a field is removed. Times are ISO 8601 in UTC, money is
in US dollars, durations are in seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from babyagi import tasks
from babyagi.inbox import Decision, asking_task, decisions, describe, read_request
from babyagi.reporting.sources import Made, Sources, artifacts_shape, sources_shape
from babyagi.reporting.transcript import Part
from babyagi.reporting.why import Reason
from babyagi.tasks import Limits, ObjectiveStatus, Reservation, StopReason, TaskStatus
from babyagi.taskstore import schedules
from babyagi.taskstore.schedules import CatchUp, Overlap, Rule, ScheduleStatus, Tick
from babyagi.verbs import actions

if TYPE_CHECKING:
    from babyagi.index.indexer import CheckReport
    from babyagi.index.search import Ranking
    from babyagi.taskstore.nouns import Verification

VERSION = 1

Json = dict[str, Any]

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


# -- making it
# --------------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """Return an instance of a dataclass, or the value of one of its fields, as JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return pick(value, " ".join(field.name for field in fields(value)))
    if isinstance(value, Mapping):
        return {to_json(key): to_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value.value if isinstance(value, Enum) else value


def pick(noun: object, names: str) -> Json:
    """Return some attributes of the object `noun` as JSON values, by name. `names` are their names,
    separated by blanks."""
    return {name: to_json(getattr(noun, name)) for name in names.split()}


def make(kind: type, *nouns: object, **own: Any) -> Json:
    """Return the JSON of an answer of the type `kind`: each field is the one in `own`, else the
    attribute of the first of the nouns that has it."""
    own = {"v": VERSION, **own}

    def find(name: str) -> Any:
        noun = next((one for one in nouns if hasattr(one, name)), None)
        return own[name] if name in own else getattr(noun, name)

    return {field.name: to_json(find(field.name)) for field in fields(kind)}


def usage_shape(usage: tasks.Usage, *, has_price: bool = True) -> Json:
    """Return a `Usage`. Costs are null if no price is known. The `unconfirmed` fields are the part
    of the usage that is counted for calls without an answer."""
    costs = {} if has_price else {"cost_usd": None, "unconfirmed_cost_usd": None}
    return {**to_json(usage), **costs}


def counts_shape(counts: Mapping[TaskStatus, int]) -> Json:
    return {status.value: counts.get(status, 0) for status in TaskStatus}


def task_shape(task: tasks.Task) -> Json:
    return make(Task, task, lack=task.lack.what if task.lack is not None else "")


def result_shape(result: tasks.Result, made: Sequence[Made] | None = None, **more: Any) -> Json:
    """Return a result. `made` are the artifacts of all results, from which those of this result are
    listed; without it, the field `artifacts` is absent."""
    said = {"task": result.task_name, "result": result.text, **more}
    if made is None:
        return make(Hit if more else FoundResult, result, **said)
    mine = [one for one in made if one.task_id == result.task_id]
    return make(Result, result, **said, artifacts=artifacts_shape(mine))


def _usage_of(objective: tasks.Objective) -> Json:
    return usage_shape(objective.usage, has_price=objective.spec.has_price)


def objective_shape(
    objective: tasks.Objective, counts: Mapping[TaskStatus, int], *, last_event_at: datetime
) -> Json:
    """Return one row of `babyagi show objectives --json`."""
    return make(
        Objective,
        objective,
        objective.spec,
        objective.checks,
        tasks=counts_shape(counts),
        usage=_usage_of(objective),
        report={"is_written": objective.has_report},
        last_event_at=last_event_at,
    )


def status_shape(objective: tasks.Objective, counts: Mapping[TaskStatus, int], **more: Any) -> Json:
    spec = objective.spec
    return make(
        Stand if more else Status,
        objective,
        spec,
        objective=make(AskedObjective, objective, spec),
        tasks=counts_shape(counts),
        usage=_usage_of(objective) | {"time_s": objective.active_s},
        report={"is_written": objective.has_report},
        model=model_of(objective),
        models=spec.model_by_role,
        is_rehearsal=is_rehearsal(objective),
        tools=[make(Grant, grant) for grant in spec.tools],
        **more,
    )


def stand_shape(stand: actions.Stand) -> Json:
    """Return what `babyagi status --json` prints."""
    n_workers = len(actions.serving(stand.workers, stand.objective.id))
    more = {"index_trouble": stand.index_trouble, "why": stand.reason, "n_workers": n_workers}
    return status_shape(stand.objective, stand.counts, **more)


def report_shape(
    objective: tasks.Objective, markdown: str, sources: Sources, made: Sequence[Made] = ()
) -> Json:
    return make(
        Report,
        objective,
        objective=make(ReportedObjective, objective, objective.spec),
        is_rehearsal=is_rehearsal(objective),
        markdown=markdown,
        sources=sources_shape(sources),
        artifacts=artifacts_shape(made),
    )


def outcome_shape(
    objective: tasks.Objective,
    counts: Mapping[TaskStatus, int],
    *,
    results: Sequence[Json],
    report: str | None,
    sources: Sources,
    exit_code: int,
) -> Json:
    """Return the last line that `babyagi run`, `resume` and `watch` print with `--json`.

    Args:
        results: made by `result_shape`.
        report: the report as Markdown; None if the run was paused or stopped.
    """
    return {
        "v": VERSION,
        "outcome": {
            "objective_id": objective.id,
            **pick(objective, "uid status stop_reason stop_detail"),
            "exit_code": exit_code,
            "tasks": counts_shape(counts),
            "usage": _usage_of(objective) | {"time_s": objective.active_s},
            "is_rehearsal": is_rehearsal(objective),
            **pick(objective.checks, "missing"),
            "results": list(results),
            "report": report,
            "sources": sources_shape(sources),
        },
    }


def index_check_shape(objective: tasks.Objective, report: CheckReport) -> Json:
    return {
        "v": VERSION,
        "objective_id": objective.id,
        **pick(report, "is_whole n_expected n_held n_owed missing extra n_probes probe_misses"),
    }


def search_shape(objective: tasks.Objective, text: str, ranking: Ranking) -> Json:
    """Return what `babyagi show results --json` prints. `degraded` says what was wrong with the
    index or the embedding model; '' if nothing was."""
    hits = [result_shape(one.result, score=round(one.score, 4)) for one in ranking]
    return make(Hits, ranking, objective_id=objective.id, text=text, hits=hits)


def schedule_shape(schedule: schedules.Schedule) -> Json:
    """Return one row of `babyagi schedule --json`. `due_at` is the time of the next tick."""
    spec = schedule.spec
    started = {
        "objective": make(ScheduledObjective, spec.objective),
        "models": spec.objective.model_by_role,
    }
    return make(Schedule, schedule, spec, when=spec.rule.words, **started)


def model_of(objective: tasks.Objective) -> str:
    """Return the name of the model that executes the objective's tasks."""
    return objective.spec.model_by_role.get(tasks.Role.EXECUTION, "")


def models_of(objective: tasks.Objective) -> set[str]:
    """Return the names of all language models of the objective, without the embedding model."""
    by_role = objective.spec.model_by_role
    return {name for role, name in by_role.items() if role is not tasks.Role.EMBEDDING}


def is_rehearsal(objective: tasks.Objective) -> bool:
    """Return whether the objective uses the rehearsal, which only quotes documents, instead of a
    language model."""
    return model_of(objective) == "rehearsal"


def listed_task_shape(task: tasks.Task, reason: Reason) -> Json:
    """Return one row of `babyagi tasks --json`."""
    return {**task_shape(task), "why": to_json(reason)}


def changed_shape(changed: actions.Changed) -> Json:
    """Return what `babyagi tasks add|move|edit|skip|retry` print with `--json`."""
    return make(
        Changed,
        changed,
        objective_id=changed.task.objective_id,
        task=task_shape(changed.task),
        replaced_task_id=changed.replaced_task_id,
    )


def submitted_shape(objective: tasks.Objective, *, is_new: bool) -> Json:
    """Return what `babyagi submit --json` prints."""
    return make(Submitted, objective, objective_id=objective.id, is_new=is_new)


def worker_shape(worker: tasks.Worker) -> Json:
    """Return one entry of `babyagi show workers --json`."""
    joined = [
        make(JoinedObjective, one, hindrance=one.blocked_reason, tasks=one.task_ids)
        for one in worker.joined
    ]
    return make(Worker, worker, objectives=joined)


def request_shape(request: actions.Request) -> Json:
    """Return one entry of `babyagi inbox --json`. `lines` is a preview of what the requested call
    would change, and `seen` identifies that preview; both are empty without one."""
    step, preview = request.step, request.preview
    tool, arguments = read_request(step)
    return make(
        Request,
        request,
        step,
        number=step.id,
        task_id=request.task.id,
        task=request.task.name,
        question=describe(step),
        tool=tool,
        arguments=arguments,
        decisions=decisions(step),
        asked_at=step.created_at,
        preview=preview.note if preview is not None else request.trouble,
        seen=preview.state if preview is not None else "",
        lines=preview.lines if preview is not None else [],
    )


def decided_shape(
    step: tasks.Step, decision: Decision, elsewhere: Sequence[tasks.Worker] = ()
) -> Json:
    """Return what `babyagi inbox answer`, `approve` and `reject` print with `--json`. The workers
    `elsewhere` use other homes, where alone the decision may count."""
    return make(
        Decided,
        step,
        number=step.id,
        decision=decision,
        task_id=asking_task(step),
        elsewhere=[f"{worker.name} on {worker.host}" for worker in elsewhere],
    )


def verification_shape(found: Verification) -> Json:
    """Return what `babyagi store verify --json` prints."""
    return {"v": VERSION, **pick(found, "n_rows n_steps n_results damages")}


def given_results(steps: Sequence[tasks.Step]) -> list[Given]:
    """Return the earlier results that were in the prompts of a task's tries, in the order of the
    prompts. `steps` are all steps of the task."""
    found = []
    for step in steps:
        # not every step of this kind stores an object: some store a word
        read = json.loads(step.output or "{}") if step.kind == "inputs" else {}
        for entry in read.get("excerpts", []) if isinstance(read, dict) else []:
            given = Given(
                try_no=step.key.partition("/")[0],
                task_id=entry["task_id"],
                score=entry.get("score"),
                reason=entry.get("reason", ""),
                objective_id=entry.get("objective_id"),
            )
            found.append(given)
    return found


def shown_shape(shown: actions.Shown, secrets: Sequence[str], *, only: int | None = None) -> Json:
    """Return what `babyagi show --json` prints about a task, or about a duty: work for the whole
    objective, such as planning.

    Args:
        secrets: texts to hide in prompts and replies.
        only: the number of the only step to return; None returns all.
    """
    exchanges = list(actions.number_exchanges(shown, secrets, only))
    has_price = shown.objective.spec.has_price
    said: Json = {
        "steps": [
            make(Step, one, one.step, usage=usage_shape(one.step.usage, has_price=has_price))
            for one in exchanges
        ],
        "without_outcome": [{"at": event.at, **event.data} for event in shown.abandoned],
    }
    if shown.task is None:
        return make(ShownDuty, shown, **said)
    return make(
        ShownTask,
        task=task_shape(shown.task),
        result=result_shape(shown.result, shown.made) if shown.result is not None else None,
        sources=sources_shape(shown.sources),
        given=given_results(shown.steps),
        why=shown.reason,
        **said,
    )
