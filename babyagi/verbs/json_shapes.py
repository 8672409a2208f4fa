"""Converts the program's data types to the JSON that the commands print with `--json` and the API
returns.

Other programs read this JSON. So fields are only added, a field whose meaning changes gets a new
name, and `VERSION` (the field `v`) rises if a field is removed. Times are ISO 8601 in UTC, money is
US dollars, durations are seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from babyagi.inbox import Decision, asking_task, decisions, describe, read_request
from babyagi.reporting.artifacts import Made, artifacts_shape
from babyagi.reporting.sources import Sources, sources_shape
from babyagi.tasks import Event, Objective, Result, Role, Step, Task, TaskStatus, Usage, Worker
from babyagi.taskstore.schedules import Schedule
from babyagi.verbs.actions import number_exchanges, serving
from babyagi.verbs.answers import Given
from babyagi.worker.notify import event_fields

if TYPE_CHECKING:
    from babyagi.index.indexer import CheckReport
    from babyagi.index.search import Ranking
    from babyagi.reporting.transcript import Exchange
    from babyagi.reporting.why import Reason
    from babyagi.taskstore.nouns import Verification
    from babyagi.verbs.actions import Changed, Request, Shown, Stand


def given_results(steps: Sequence[Step]) -> list[Given]:
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


VERSION = 1

Json = dict[str, Any]


def to_json(value: Any) -> Any:
    """Return an instance of a dataclass, or the value of one of its fields, as JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
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


def usage_shape(usage: Usage, *, has_price: bool = True) -> Json:
    """Return a `Usage`. Costs are null if no price is known. The `unconfirmed` fields are the part
    of the usage that is counted for calls without an answer."""
    costs = {} if has_price else {"cost_usd": None, "unconfirmed_cost_usd": None}
    return {**to_json(usage), **costs}


def _usage_with_time(objective: Objective) -> Json:
    used = usage_shape(objective.usage, has_price=objective.spec.has_price)
    return {**used, "time_s": objective.active_s}


def counts_shape(counts: Mapping[TaskStatus, int]) -> Json:
    return {status.value: counts.get(status, 0) for status in TaskStatus}


def task_shape(task: Task) -> Json:
    return {
        **pick(task, "id name status rank failures n_lost after parent_id try_no error"),
        "lack": task.lack.what if task.lack is not None else "",
        **pick(task, "n_lacks origins usage created_at started_at finished_at not_before"),
    }


def result_shape(result: Result, made: Sequence[Made] | None = None) -> Json:
    """Return a result. `made` are the artifacts of all results, from which those of this result are
    listed; without it, the field `artifacts` is absent."""
    shape = {
        "task_id": result.task_id,
        "task": result.task_name,
        "result": result.text,
        **pick(result, "lack origins created_at"),
    }
    if made is not None:
        mine = [one for one in made if one.task_id == result.task_id]
        shape["artifacts"] = artifacts_shape(mine)
    return shape


def objective_shape(
    objective: Objective, counts: Mapping[TaskStatus, int], *, last_event_at: datetime
) -> Json:
    """Return one row of `babyagi show objectives --json`."""
    return {
        **pick(objective, "id uid"),
        **pick(objective.spec, "text further instance_name"),
        **pick(objective, "status stop_reason stop_detail is_set_aside"),
        "tasks": counts_shape(counts),
        "usage": usage_shape(objective.usage, has_price=objective.spec.has_price),
        "report": {"is_written": objective.has_report},
        **pick(objective.checks, "missing"),
        **pick(objective, "created_at ended_at"),
        "last_event_at": to_json(last_event_at),
    }


def status_shape(objective: Objective, counts: Mapping[TaskStatus, int]) -> Json:
    spec = objective.spec
    return {
        "v": VERSION,
        "objective": {**pick(objective, "id uid"), **pick(spec, "text initial_task further")},
        "instance_name": spec.instance_name,
        **pick(objective, "status stop_reason stop_detail is_set_aside"),
        "tasks": counts_shape(counts),
        "usage": _usage_with_time(objective),
        **pick(objective, "held"),
        **pick(spec, "limits"),
        "report": {"is_written": objective.has_report},
        "model": model_of(objective),
        "models": to_json(spec.model_by_role),
        "is_rehearsal": is_rehearsal(objective),
        **pick(spec, "memory agent"),
        "tools": [pick(grant, "name effect") for grant in spec.tools],
        **pick(objective, "created_at ended_at"),
    }


def report_shape(
    objective: Objective, markdown: str, sources: Sources, made: Sequence[Made] = ()
) -> Json:
    return {
        "v": VERSION,
        "objective": {**pick(objective, "id uid"), **pick(objective.spec, "text further")},
        **pick(objective, "stop_reason"),
        "is_rehearsal": is_rehearsal(objective),
        "markdown": markdown,
        "sources": sources_shape(sources),
        "artifacts": artifacts_shape(made),
    }


def outcome_shape(
    objective: Objective,
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
            "usage": _usage_with_time(objective),
            "is_rehearsal": is_rehearsal(objective),
            **pick(objective.checks, "missing"),
            "results": list(results),
            "report": report,
            "sources": sources_shape(sources),
        },
    }


def index_check_shape(objective: Objective, report: CheckReport) -> Json:
    return {
        "v": VERSION,
        "objective_id": objective.id,
        **pick(report, "is_whole n_expected n_held n_owed missing extra n_probes probe_misses"),
    }


def search_shape(objective: Objective, text: str, ranking: Ranking) -> Json:
    """Return what `babyagi show results --json` prints. `degraded` says what was wrong with the
    index or the embedding model; '' if nothing was."""
    return {
        "v": VERSION,
        "objective_id": objective.id,
        "text": text,
        "degraded": ranking.degraded,
        "hits": [
            {
                "score": round(entry.score, 4),
                "objective_id": entry.result.objective_id,
                **result_shape(entry.result),
            }
            for entry in ranking
        ],
    }


def schedule_shape(schedule: Schedule) -> Json:
    """Return one row of `babyagi schedule --json`. `due_at` is the time of the next tick."""
    spec = schedule.spec
    return {
        **pick(schedule, "id uid status due_at created_at"),
        "when": spec.rule.words,
        **pick(spec, "rule grace_s overlap catch_up daily_limit_usd"),
        "objective": pick(spec.objective, "text initial_task instance_name limits"),
        "models": to_json(spec.objective.model_by_role),
    }


def event_shape(event: Event) -> Json:
    return event_fields(event)


def model_of(objective: Objective) -> str:
    """Return the name of the model that executes the objective's tasks."""
    return objective.spec.model_by_role.get(Role.EXECUTION, "")


def models_of(objective: Objective) -> set[str]:
    """Return the names of all language models of the objective, without the embedding model."""
    by_role = objective.spec.model_by_role
    return {name for role, name in by_role.items() if role is not Role.EMBEDDING}


def is_rehearsal(objective: Objective) -> bool:
    """Return whether the objective uses the rehearsal, which only quotes documents, instead of a
    language model."""
    return model_of(objective) == "rehearsal"


def stand_shape(stand: Stand) -> Json:
    """Return what `babyagi status --json` prints."""
    return {
        **status_shape(stand.objective, stand.counts),
        "index_trouble": stand.index_trouble,
        "why": to_json(stand.reason),
        "n_workers": len(serving(stand.workers, stand.objective.id)),
    }


def listed_task_shape(task: Task, reason: Reason) -> Json:
    """Return one row of `babyagi tasks --json`."""
    return {**task_shape(task), "why": to_json(reason)}


def changed_shape(changed: Changed) -> Json:
    """Return what `babyagi tasks add|move|edit|skip|retry` print with `--json`."""
    return {
        "v": VERSION,
        "objective_id": changed.task.objective_id,
        "task": task_shape(changed.task),
        "is_reopened": changed.is_reopened,
        "replaced_task_id": changed.replaced_task_id,
    }


def submitted_shape(objective: Objective, *, is_new: bool) -> Json:
    """Return what `babyagi submit --json` prints."""
    return {
        "v": VERSION,
        "objective_id": objective.id,
        "uid": objective.uid,
        "is_new": is_new,
        "status": objective.status.value,
    }


def worker_shape(worker: Worker) -> Json:
    """Return one entry of `babyagi show workers --json`."""
    return {
        **pick(worker, "id name host pid home since lease_left_s"),
        "objectives": [
            {
                **pick(one, "objective_id since"),
                "hindrance": one.blocked_reason,
                "tasks": to_json(one.task_ids),
                "duties": to_json(one.duties),
            }
            for one in worker.joined
        ],
    }


def request_shape(request: Request) -> Json:
    """Return one entry of `babyagi inbox --json`. `lines` is a preview of what the requested call
    would change, and `seen` identifies that preview; both are empty without one."""
    step, task = request.step, request.task
    tool, arguments = read_request(step)
    preview = request.preview
    return {
        "number": step.id,
        "objective_id": step.objective_id,
        "task_id": task.id,
        "task": task.name,
        **pick(step, "kind state"),
        "question": describe(step),
        "tool": tool,
        "arguments": dict(arguments),
        "decisions": [decision.value for decision in decisions(step)],
        "asked_at": step.created_at.isoformat(),
        **pick(request, "model origins"),
        "preview": preview.note if preview is not None else request.trouble,
        "seen": preview.state if preview is not None else "",
        "lines": to_json(preview.lines) if preview is not None else [],
    }


def decided_shape(step: Step, decision: Decision, elsewhere: Sequence[Worker] = ()) -> Json:
    """Return what `babyagi inbox answer`, `approve` and `reject` print with `--json`. The workers
    `elsewhere` use other homes, where alone the decision may count."""
    return {
        "v": VERSION,
        "number": step.id,
        "decision": decision.value,
        "objective_id": step.objective_id,
        "task_id": asking_task(step),
        "elsewhere": [f"{worker.name} on {worker.host}" for worker in elsewhere],
    }


def verification_shape(found: Verification) -> Json:
    """Return what `babyagi store verify --json` prints."""
    return {"v": VERSION, **pick(found, "n_rows n_steps n_results"), "damages": list(found.damages)}


def shown_shape(shown: Shown, secrets: Sequence[str], *, only: int | None = None) -> Json:
    """Return what `babyagi show --json` prints about a task, or about a duty: work for the whole
    objective, such as planning.

    Args:
        secrets: texts to hide in prompts and replies.
        only: the number of the only step to return; None returns all.
    """
    exchanges = list(number_exchanges(shown, secrets, only))
    steps = [_exchange_shape(exchange, shown) for exchange in exchanges]
    abandoned = [{"at": event.at.isoformat(), **dict(event.data)} for event in shown.abandoned]
    if shown.task is None:
        duty = shown.duty.value if shown.duty is not None else ""
        return {"v": VERSION, "duty": duty, "steps": steps, "without_outcome": abandoned}
    result, reason = shown.result, shown.reason
    return {
        "v": VERSION,
        "task": task_shape(shown.task),
        "result": result_shape(result, shown.made) if result is not None else None,
        "sources": sources_shape(shown.sources),
        "given": to_json(given_results(shown.steps)),
        "why": to_json(reason),
        "steps": steps,
        "without_outcome": abandoned,
    }


def _exchange_shape(exchange: Exchange, shown: Shown) -> Json:
    step = exchange.step
    return {
        **pick(step, "key kind state model n_unconfirmed created_at done_at"),
        "usage": usage_shape(step.usage, has_price=shown.objective.spec.has_price),
        "n": exchange.n,
        "owner": step.owner,
        "title": exchange.title,
        "took_s": exchange.took_s,
        "parts": [pick(part, "label text is_said_before") for part in exchange.parts],
        "missing": exchange.missing,
    }
