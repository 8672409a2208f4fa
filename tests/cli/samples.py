"""One objective with its tasks, results, steps and events, as a store would give them."""

import json
from datetime import UTC, datetime, timedelta

from babyagi import events
from babyagi.index.indexer import CheckReport
from babyagi.index.search import RankedResult, Ranking
from babyagi.reporting.sources import Made, Source, SourceKind, Sources
from babyagi.tasks import (
    Artifact,
    Effect,
    Event,
    Fetched,
    Joined,
    Limits,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Reservation,
    Result,
    Role,
    Step,
    StepState,
    StopReason,
    Task,
    TaskStatus,
    ToolGrant,
    Usage,
    Worker,
)

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
HOSTILE = "read\x1b[31m \u202efiles\x07\ud800\nnow"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def spec(
    text="Find what the documents promise",
    model="gpt-6-luna",
    limits=None,
    initial_task="Read the documents",
    **more,
):
    roles = (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION, Role.REPORT)
    return ObjectiveSpec(
        text=text,
        initial_task=initial_task,
        limits=limits or Limits(),
        model_by_role={**dict.fromkeys(roles, model), Role.EMBEDDING: "hash"},
        tools=(ToolGrant(name="read_file", effect=Effect.READ),),
        **{"embedding_space": "hash/1", "prompt_version": "1", **more},
    )


def objective(**changes):
    values = {
        "id": 3,
        "uid": "0011223344556677",
        "spec": spec(),
        "status": ObjectiveStatus.ENDED,
        "stop_reason": StopReason.LIMIT_TASKS,
        "stop_detail": "50 of 50",
        "usage": Usage(calls=7, prompt_tokens=1200, completion_tokens=345, cost_usd=0.0123),
        "held": Reservation(),
        "active_s": 75.5,
        "has_report": True,
        "created_at": START,
        "ended_at": at(80),
    }
    return Objective(**{**values, **changes})


def running_objective(**changes):
    return objective(
        status=ObjectiveStatus.ACTIVE,
        stop_reason=None,
        stop_detail="",
        has_report=False,
        ended_at=None,
        **changes,
    )


def task(**changes):
    values = {
        "id": 4,
        "objective_id": 3,
        "name": "Compare limits.md with https://x.com/v2.1?id=3",
        "status": TaskStatus.DONE,
        "rank": 9,
        "parent_id": 1,
        "after": (1, 2),
        "origins": ("person", "model:gpt-6-luna"),
        "failures": 1,
        "usage": Usage(calls=2, prompt_tokens=800, completion_tokens=90, cost_usd=0.004),
        "created_at": START,
        "started_at": at(5),
        "finished_at": at(9),
    }
    return Task(**{**values, **changes})


def result(**changes):
    values = {
        "task_id": 4,
        "objective_id": 3,
        "task_name": "Compare limits.md with https://x.com/v2.1?id=3",
        "text": "limits.md:3 says fifty tasks.\nNothing else differs.",
        "origins": ("file:limits.md", "model:gpt-6-luna"),
        "created_at": at(9),
    }
    return Result(**{**values, **changes})


def step(**changes):
    values = {
        "objective_id": 3,
        "owner": "task:4",
        "key": "1/execute/1/model",
        "kind": "model",
        "request_hash": "ab" * 16,
        "state": StepState.DONE,
        "output": '{"text": "secret prompt"}',
        "model": "gpt-6-luna",
        "usage": Usage(calls=1, prompt_tokens=400, completion_tokens=45, cost_usd=0.002),
        "created_at": at(5),
        "done_at": at(7),
    }
    return Step(**{**values, **changes})


def event(**changes):
    values = {
        "id": 17,
        "objective_id": 3,
        "task_id": 4,
        "kind": events.TASK_DONE,
        "data": {"n_added": 2, "n_duplicates": 0},
        "at": at(9),
    }
    return Event(**{**values, **changes})


COUNTS = {
    TaskStatus.QUEUED: 2,
    TaskStatus.RUNNING: 1,
    TaskStatus.RECORDED: 0,
    TaskStatus.DONE: 4,
    TaskStatus.WAITING: 0,
    TaskStatus.DEAD: 1,
    TaskStatus.CANCELLED: 0,
}


def made():
    table = Artifact(name="limits.csv", media_type="text/csv", text="a,b\n1,2\n", digest="cd" * 32)
    return [Made(task_id=4, artifact=table)]


def sources():
    page = Fetched(url="https://x.com/v2.1?id=3", title="X", fetched_at=at(6), digest="ab" * 32)
    return Sources(
        named=[
            Source(kind=SourceKind.PAGE, name=page.url, task_ids=(4,), page=page),
            Source(kind=SourceKind.FILE, name="limits.md", task_ids=(4,)),
        ]
    )


def inputs_step():
    excerpts = [
        {"task_id": 2, "text": "secret text", "score": 0.412, "reason": "after"},
        {
            "task_id": 5,
            "text": "secret text",
            "score": 0.3,
            "reason": "shared",
            "objective_id": 7,
            "task_name": "Read it",
        },
        {"task_id": 1, "text": "old"},
    ]
    return step(
        key="1/inputs",
        kind="inputs",
        output=json.dumps({"excerpts": excerpts}),
        model="",
        usage=Usage(),
    )


def check_report():
    return CheckReport(
        missing=(4,),
        extra=("x" * 36,),
        probe_misses=(5,),
        n_probes=10,
        n_expected=10,
        n_held=9,
        n_owed=2,
    )


def ranking():
    return Ranking(
        ranked=(RankedResult(result=result(), score=0.71239),),
        degraded="the index was not used: it is gone",
    )


def worker(name, *, objective_id=3, blocked_reason="", task_ids=(), lease_left_s=20.0, **changes):
    joined = Joined(
        objective_id=objective_id, blocked_reason=blocked_reason, since=START, task_ids=task_ids
    )
    values = {
        "host": "here",
        "pid": 7,
        "lease_until": at(90),
        "since": START,
        "lease_left_s": lease_left_s,
        "joined": (joined,),
    }
    return Worker(id=f"{name}-1", name=name, **{**values, **changes})
