"""Which earlier results the tries of a task were given, read from the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from babyagi.notify import event_fields
from babyagi.tasks import Event, Limits, Objective, Result, Role, Step, Task, TaskStatus, Usage

if TYPE_CHECKING:
    from babyagi.index.indexer import CheckReport
    from babyagi.index.search import Ranking
    from babyagi.results import IndexStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An earlier result that a try was given. `score` is None for one that an earlier version of
    this program chose, `objective_id` for one of the same objective."""

    try_no: str
    task_id: int
    score: float | None
    reason: str
    objective_id: int | None = None


def given_results(steps: Sequence[Step]) -> list[Given]:
    """In the order in which they stood in the prompt, try by try."""
    found = []
    for step in steps:
        if step.kind == "inputs" and step.output is not None:
            try_no = step.key.partition("/")[0]
            for entry in json.loads(step.output).get("excerpts", []):
                given = Given(
                    try_no=try_no,
                    task_id=entry["task_id"],
                    score=entry.get("score"),
                    reason=entry.get("reason", ""),
                    objective_id=entry.get("objective_id"),
                )
                found.append(given)
    return found


# --------------------------------------------------------------------------------------------------
# The JSON that others script against: nouns in, plain dictionaries out.
#
# Fields are only ever added; one whose meaning changes gets a new name, and `VERSION` (`v`, in
# every shape that is an object) rises when one goes. Times are ISO 8601 in UTC, money is US
# dollars, durations are seconds.
# --------------------------------------------------------------------------------------------------

VERSION = 1

Json = dict[str, Any]


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def usage_shape(usage: Usage, *, has_price: bool = True) -> Json:
    """The usage; the `unconfirmed` parts of it are what no answer has confirmed. Costs are null
    where no price is known."""
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd if has_price else None,
        "unconfirmed_tokens": usage.unconfirmed_tokens,
        "unconfirmed_cost_usd": usage.unconfirmed_cost_usd if has_price else None,
    }


def limits_shape(limits: Limits) -> Json:
    return {
        "max_tasks": limits.max_tasks,
        "max_calls": limits.max_calls,
        "max_tokens": limits.max_tokens,
        "max_cost_usd": limits.max_cost_usd,
        "max_time_s": limits.max_time_s,
    }


def counts_shape(counts: Mapping[TaskStatus, int]) -> Json:
    return {status.value: counts.get(status, 0) for status in TaskStatus}


def task_shape(task: Task) -> Json:
    return {
        "id": task.id,
        "name": task.name,
        "status": task.status.value,
        "rank": task.rank,
        "failures": task.failures,
        "n_lost": task.n_lost,
        "after": list(task.after),
        "parent_id": task.parent_id,
        "try_no": task.try_no,
        "error": task.error,
        "lack": task.lack.what if task.lack is not None else "",
        "n_lacks": task.n_lacks,
        "origins": list(task.origins),
        "usage": usage_shape(task.usage),
        "created_at": _time(task.created_at),
        "started_at": _time(task.started_at),
        "finished_at": _time(task.finished_at),
        "not_before": _time(task.not_before),
    }


def result_shape(result: Result) -> Json:
    return {
        "task_id": result.task_id,
        "task": result.task_name,
        "result": result.text,
        "lack": result.lack,
        "origins": list(result.origins),
        "created_at": _time(result.created_at),
    }


def step_shape(step: Step) -> Json:
    """The step without its output: prompts and completions stay in the store."""
    return {
        "key": step.key,
        "kind": step.kind,
        "state": step.state.value,
        "model": step.model,
        "usage": usage_shape(step.usage),
        "n_unconfirmed": step.n_unconfirmed,
        "created_at": _time(step.created_at),
        "done_at": _time(step.done_at),
    }


def show_shape(task: Task, *, result: Result | None, steps: Sequence[Step]) -> Json:
    return {
        "v": VERSION,
        "task": task_shape(task),
        "result": result_shape(result) if result is not None else None,
        "given": [asdict(given) for given in given_results(steps)],
        "steps": [step_shape(step) for step in steps],
    }


def objective_shape(objective: Objective, counts: Mapping[TaskStatus, int]) -> Json:
    """One row of `objectives --json`."""
    return {
        "id": objective.id,
        "uid": objective.uid,
        "text": objective.spec.text,
        "instance_name": objective.spec.instance_name,
        "status": objective.status.value,
        "stop_reason": objective.stop_reason.value if objective.stop_reason is not None else None,
        "tasks": counts_shape(counts),
        "usage": usage_shape(objective.usage, has_price=objective.spec.has_price),
        "report": {"is_written": objective.has_report},
        "missing": list(objective.checks.missing),
        "created_at": _time(objective.created_at),
        "ended_at": _time(objective.ended_at),
    }


def status_shape(objective: Objective, counts: Mapping[TaskStatus, int]) -> Json:
    spec = objective.spec
    return {
        "v": VERSION,
        "objective": {
            "id": objective.id,
            "uid": objective.uid,
            "text": spec.text,
            "initial_task": spec.initial_task,
        },
        "instance_name": spec.instance_name,
        "status": objective.status.value,
        "stop_reason": objective.stop_reason.value if objective.stop_reason is not None else None,
        "stop_detail": objective.stop_detail,
        "tasks": counts_shape(counts),
        "usage": {
            **usage_shape(objective.usage, has_price=spec.has_price),
            "time_s": objective.active_s,
        },
        "held": {
            "calls": objective.held.calls,
            "tokens": objective.held.tokens,
            "cost_usd": objective.held.cost_usd,
        },
        "limits": limits_shape(spec.limits),
        "report": {"is_written": objective.has_report},
        "model": model_of(objective),
        "models": {role.value: name for role, name in spec.model_by_role.items()},
        "is_rehearsal": is_rehearsal(objective),
        "memory": spec.memory.value,
        "created_at": _time(objective.created_at),
        "ended_at": _time(objective.ended_at),
    }


def report_shape(objective: Objective, markdown: str) -> Json:
    return {
        "v": VERSION,
        "objective": {"id": objective.id, "uid": objective.uid, "text": objective.spec.text},
        "stop_reason": objective.stop_reason.value if objective.stop_reason is not None else None,
        "is_rehearsal": is_rehearsal(objective),
        "markdown": markdown,
    }


def index_status_shape(row: IndexStatus, *, index: str) -> Json:
    """One row of `index status --json`."""
    return {
        "objective_id": row.objective.id,
        "index": index,
        "space": row.objective.spec.embedding_space,
        "n_results": row.n_results,
        "n_indexed": row.n_results - row.n_owed,
        "n_owed": row.n_owed,
    }


def index_check_shape(objective: Objective, report: CheckReport) -> Json:
    return {
        "v": VERSION,
        "objective_id": objective.id,
        "is_whole": report.is_whole,
        "n_expected": report.n_expected,
        "n_held": report.n_held,
        "n_owed": report.n_owed,
        "missing": list(report.missing),
        "extra": list(report.extra),
        "n_probes": report.n_probes,
        "probe_misses": list(report.probe_misses),
    }


def search_shape(objective: Objective, text: str, ranking: Ranking) -> Json:
    """What `results search --json` prints; `degraded` is empty when the index was asked."""
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


def event_shape(event: Event) -> Json:
    return event_fields(event)


def model_of(objective: Objective) -> str:
    """The name of the model that carries tasks out."""
    return objective.spec.model_by_role.get(Role.EXECUTION, "")


def models_of(objective: Objective) -> set[str]:
    """The names of all models that are asked for words."""
    return {
        name for role, name in objective.spec.model_by_role.items() if role is not Role.EMBEDDING
    }


def is_rehearsal(objective: Objective) -> bool:
    """Whether no language model is asked for this objective."""
    return model_of(objective) == "rehearsal"
