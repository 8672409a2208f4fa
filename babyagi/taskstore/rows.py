"""Rows to nouns and back: the only place that knows how a noun lies in a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from babyagi.errors import StoreUnusableError
from babyagi.tasks import (
    Approval,
    CheckedPart,
    Checks,
    Effect,
    Event,
    Joined,
    Lack,
    Limits,
    Memory,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Planning,
    Reservation,
    Result,
    Role,
    Step,
    StepState,
    StopReason,
    Task,
    TaskName,
    TaskStatus,
    ToolGrant,
    Usage,
    Worker,
)
from babyagi.taskstore.database import Row
from babyagi.taskstore.rules import to_microusd

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def from_time(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def to_time(at_us: int) -> datetime:
    return _EPOCH + at_us * _MICROSECOND


def to_time_or_none(at_us: int | None) -> datetime | None:
    return None if at_us is None else to_time(at_us)


def to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def spec_to_json(spec: ObjectiveSpec) -> str:
    return to_json(asdict(spec))


def spec_from_json(text: str) -> ObjectiveSpec:
    fields = json.loads(text)
    fields["limits"] = Limits(**fields["limits"])
    fields["model_by_role"] = {Role(role): model for role, model in fields["model_by_role"].items()}
    fields["tools"] = tuple(ToolGrant(name=tool["name"], effect=Effect(tool["effect"])) for tool in fields["tools"])
    fields["approval"] = Approval(fields["approval"])
    fields["memory"] = Memory(fields.get("memory", Memory.OBJECTIVE))  # those begun before there was a choice have none
    fields["planning"] = Planning(fields.get("planning", Planning.SEPARATE))  # as above
    return ObjectiveSpec(**fields)


def usage_from_row(row: Row | Mapping[str, int]) -> Usage:
    return Usage(
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_microusd"] / 1e6,
    )


def usage_to_values(usage: Usage) -> dict[str, int]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_microusd": round(usage.cost_usd * 1e6),
    }


def objective_from_row(row: Row, *, held: Reservation, active_us: int) -> Objective:
    return Objective(
        id=row["id"],
        uid=row["uid"],
        spec=spec_from_json(row["spec"]),
        status=ObjectiveStatus(row["status"]),
        stop_reason=StopReason(row["stop_reason"]) if row["stop_reason"] else None,
        stop_detail=row["stop_detail"],
        usage=usage_from_row(row),
        held=held,
        active_s=active_us / 1e6,
        order_revision=row["order_revision"],
        is_claimed_met=bool(row["is_claimed_met"]),
        checks=checks_from_json(row["checks"]),
        has_report=row["report"] is not None,
        created_at=to_time(row["created_at_us"]),
        ended_at=to_time_or_none(row["ended_at_us"]),
    )


def checks_to_json(checks: Checks) -> str:
    return to_json(asdict(checks))


def checks_from_json(text: str) -> Checks:
    fields = json.loads(text)
    fields["parts"] = tuple(CheckedPart(**part) for part in fields.get("parts", ()))
    fields["missing"] = tuple(fields.get("missing", ()))
    return Checks(**fields)


def lack_to_json(lack: Lack | None) -> str:
    return "" if lack is None else to_json(asdict(lack))


def lack_from_json(text: str) -> Lack | None:
    if not text:
        return None
    fields = json.loads(text)
    return Lack(what=fields["what"], shown=tuple(fields["shown"]))


def task_name_from_row(row: Row) -> TaskName:
    origins = tuple(json.loads(row["origins"]))
    return TaskName(id=row["id"], name=row["name"], status=TaskStatus(row["status"]), is_lacking=bool(row["lack"]), origins=origins)


def task_from_row(row: Row) -> Task:
    return Task(
        id=row["id"],
        objective_id=row["objective_id"],
        name=row["name"],
        status=TaskStatus(row["status"]),
        rank=row["rank"],
        parent_id=row["parent_id"],
        after=tuple(json.loads(row["after_ids"])),
        origins=tuple(json.loads(row["origins"])),
        try_no=row["try_no"],
        claim_no=row["claim_no"],
        failures=row["failures"],
        error=row["error"],
        lack=lack_from_json(row["lack"]),
        n_lacks=row["n_lacks"],
        usage=usage_from_row(row),
        created_at=to_time(row["created_at_us"]),
        started_at=to_time_or_none(row["started_at_us"]),
        finished_at=to_time_or_none(row["finished_at_us"]),
        not_before=to_time_or_none(row["not_before_us"]),
    )


def event_from_row(row: Row) -> Event:
    return Event(
        id=row["id"],
        objective_id=row["objective_id"],
        task_id=row["task_id"],
        kind=row["kind"],
        data=json.loads(row["data"]),
        at=to_time(row["at_us"]),
    )


def worker_from_row(row: Row, *, now_us: int, joined: Sequence[Joined]) -> Worker:
    return Worker(
        id=row["id"],
        name=row["name"],
        host=row["host"],
        pid=row["pid"],
        lease_until=to_time(row["lease_until_us"]),
        home=row["home"],
        since=to_time(row["since_us"]),
        lease_left_s=(row["lease_until_us"] - now_us) / 1e6,
        joined=tuple(joined),
    )


# -- rows with a checksum: a byte that the disk flips inside a text is seen by nobody else ----------------------------------

_RESULT_COLUMNS = ("objective_id", "task_id", "text", "origins", "created_at_us")
_STEP_COLUMNS = (
    "objective_id owner key kind request_hash state output request model origins is_held held_calls held_tokens held_cost_microusd "
    "calls prompt_tokens completion_tokens cost_microusd unconfirmed claim_no created_at_us done_at_us"
).split()


def _checksum(columns: Sequence[str], values: Mapping[str, Any] | Row) -> str:
    content = json.dumps([values[column] for column in columns], default=repr)  # damage can turn a value into bytes
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def is_sound_step(row: Row) -> bool:
    return bool(_checksum(_STEP_COLUMNS, row) == row["checksum"])


def is_sound_result(row: Row) -> bool:
    return bool(_checksum(_result_columns(row), row) == row["checksum"])


def _result_columns(values: Mapping[str, Any] | Row) -> Sequence[str]:
    """What the checksum is made of: results of version 1 have no lack."""
    return (*_RESULT_COLUMNS, "lack") if values["lack"] else _RESULT_COLUMNS


def _require_sound(is_sound: bool, *, what: str) -> None:
    if not is_sound:
        raise StoreUnusableError(
            f"the task store is damaged: {what} is not what was written",
            why="its checksum does not fit its content",
            fix="babyagi journal verify names every damaged row; then restore a backup of the task store",
            guide="store",
        )


def result_to_values(result: Result) -> dict[str, Any]:
    values: dict[str, Any] = {
        "objective_id": result.objective_id,
        "task_id": result.task_id,
        "text": result.text,
        "origins": to_json(result.origins),
        "lack": result.lack,
        "created_at_us": from_time(result.created_at),
    }
    return {**values, "checksum": _checksum(_result_columns(values), values)}


def result_from_row(row: Row) -> Result:
    """Raises `StoreUnusableError` when the row was damaged."""
    _require_sound(is_sound_result(row), what=f"the result of task {row['task_id']} of objective {row['objective_id']}")
    return Result(
        task_id=row["task_id"],
        objective_id=row["objective_id"],
        task_name=row["task_name"],
        text=row["text"],
        origins=tuple(json.loads(row["origins"])),
        lack=row["lack"],
        is_planned=row["task_status"] != TaskStatus.RECORDED,
        created_at=to_time(row["created_at_us"]),
    )


def step_to_values(step: Step, *, is_held: bool) -> dict[str, Any]:
    values: dict[str, Any] = {
        "objective_id": step.objective_id,
        "owner": step.owner,
        "key": step.key,
        "kind": step.kind,
        "request_hash": step.request_hash,
        "state": step.state.value,
        "output": step.output,
        "request": step.request,
        "model": step.model,
        "origins": to_json(step.origins),
        "is_held": int(is_held),
        "held_calls": step.reservation.calls,
        "held_tokens": step.reservation.tokens,
        "held_cost_microusd": to_microusd(step.reservation.cost_usd),
        **usage_to_values(step.usage),
        "unconfirmed": to_json([[claim_no, usage_to_values(usage)] for claim_no, usage in step.unconfirmed]),
        "claim_no": step.claim_no,
        "created_at_us": from_time(step.created_at),
        "done_at_us": None if step.done_at is None else from_time(step.done_at),
    }
    return {**values, "checksum": _checksum(_STEP_COLUMNS, values)}


def step_from_row(row: Row) -> Step:
    """Raises `StoreUnusableError` when the row was damaged."""
    _require_sound(is_sound_step(row), what=f"step {row['key']} of {row['owner']} of objective {row['objective_id']}")
    return Step(
        objective_id=row["objective_id"],
        owner=row["owner"],
        key=row["key"],
        kind=row["kind"],
        request_hash=row["request_hash"],
        state=StepState(row["state"]),
        output=row["output"],
        model=row["model"],
        origins=tuple(json.loads(row["origins"])),
        reservation=Reservation(calls=row["held_calls"], tokens=row["held_tokens"], cost_usd=row["held_cost_microusd"] / 1e6),
        usage=usage_from_row(row),
        unconfirmed=tuple((claim_no, usage_from_row(values)) for claim_no, values in json.loads(row["unconfirmed"])),
        claim_no=row["claim_no"],
        created_at=to_time(row["created_at_us"]),
        done_at=to_time_or_none(row["done_at_us"]),
        request=row["request"],
        id=row["id"],
    )
