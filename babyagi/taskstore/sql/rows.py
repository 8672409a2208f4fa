"""Rows to data types and back: the only module that knows how a data type is stored in a table.

A value that cannot be read is damage: reading the row raises `StoreUnusableError`, which names the
row.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from babyagi.errors import StoreUnusableError
from babyagi.schedules import (
    CatchUp,
    Overlap,
    Rule,
    Schedule,
    ScheduleSpec,
    ScheduleStatus,
    Tick,
    TickOutcome,
    TickReason,
)
from babyagi.tasks import (
    Approval,
    CheckedPart,
    Checks,
    Duty,
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
from babyagi.taskstore.limits import to_microusd, unconfirmed
from babyagi.taskstore.port import Lease
from babyagi.taskstore.sql.database import Row

P = ParamSpec("P")
T = TypeVar("T")

# the exceptions that reading a damaged value raises
FAULTS = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)

# Rows and texts whose reading is cached: each planning reads the names of up to 2,000 tasks again,
# and each transaction the spec of its objective.
N_CACHED_TEXTS = 4_000
N_CACHED_SPECS = 50

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


# -- damage
# --------------------------------------------------------------------------------------------------


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Raise `StoreUnusableError` with the row's name when a value in it cannot be read."""
    try:
        yield
    except FAULTS as error:
        raise damaged(
            what, why=f"it cannot be read: {type(error).__name__}: {error}"[:300]
        ) from error


def _of(
    name: str,
) -> Callable[[Callable[Concatenate[Row, P], T]], Callable[Concatenate[Row, P], T]]:
    """Decorate a function that reads a row: `name` says which row it is, with names of columns in
    braces."""

    def decorate(read: Callable[Concatenate[Row, P], T]) -> Callable[Concatenate[Row, P], T]:
        @wraps(read)
        def read_or_name(row: Row, /, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(row, *args, **kwargs)
            except FAULTS:
                with naming(name_row(name, row)):
                    raise

        return read_or_name

    return decorate


def name_row(name: str, row: Row) -> str:
    """Return the name of a row for a person. Damage may have hit the columns of the name as
    well.
    """
    try:
        return name.format_map(_Columns(row))
    except FAULTS:
        return name.partition(" ")[0]


class _Columns(dict[str, Any]):
    """The columns of a row, from either driver, for `format_map`."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row

    def __missing__(self, column: str) -> Any:
        return self._row[column]


def damaged(what: str, *, why: str) -> StoreUnusableError:
    return StoreUnusableError(
        f"the task store is damaged: {what} is not what was written",
        why=why,
        fix=(
            "babyagi journal verify names every damaged row; then restore a backup of the "
            "task store"
        ),
        guide="store",
    )


def require_types(row: Row, *, texts: Sequence[str] = (), numbers: Sequence[str] = ()) -> None:
    """Raises `TypeError` unless these columns hold text or integers, as declared: SQLite accepts
    any type in any column."""
    for columns, kind in ((texts, str), (numbers, int)):
        for column in columns:
            if type(row[column]) is not kind:
                raise TypeError(f"{column} holds {row[column]!r}"[:200])


# -- nouns
# --------------------------------------------------------------------------------------------------


def spec_to_json(spec: ObjectiveSpec) -> str:
    fields = asdict(spec)
    for name in ("further", "output_schema", "agent"):
        if not fields[name]:  # earlier versions can then read it
            del fields[name]
    for grant in fields["tools"]:
        if not grant["refused"]:
            del grant["refused"]
    return to_json(fields)


@_of("objective {id}")
def spec_from_row(row: Row) -> ObjectiveSpec:
    return _spec_from_json(row["spec"])


@lru_cache(maxsize=N_CACHED_SPECS)
def _spec_from_json(text: str) -> ObjectiveSpec:
    fields = json.loads(text)
    fields["limits"] = Limits(**fields["limits"])
    fields["model_by_role"] = {Role(role): model for role, model in fields["model_by_role"].items()}
    fields["tools"] = tuple(
        ToolGrant(**{**tool, "effect": Effect(tool["effect"])}) for tool in fields["tools"]
    )
    fields["approval"] = Approval(fields["approval"])
    # objectives that were begun before this choice existed have no value
    fields["memory"] = Memory(fields.get("memory", Memory.OBJECTIVE))
    fields["planning"] = Planning(fields.get("planning", Planning.SEPARATE))  # as above
    fields["further"] = tuple(fields.get("further", ()))
    return ObjectiveSpec(**fields)


def usage_from_row(row: Row) -> Usage:
    """Return the usage of an objective or a task."""
    return Usage(
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_microusd"] / 1e6,
        unconfirmed_tokens=row["unconfirmed_tokens"],
        unconfirmed_cost_usd=row["unconfirmed_cost_microusd"] / 1e6,
    )


def usage_to_values(usage: Usage) -> dict[str, int]:
    return {
        **_step_usage_to_values(usage),
        "unconfirmed_tokens": usage.unconfirmed_tokens,
        "unconfirmed_cost_microusd": round(usage.unconfirmed_cost_usd * 1e6),
    }


def _step_usage_from_row(row: Row | Mapping[str, int]) -> Usage:
    return Usage(
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_microusd"] / 1e6,
    )


def _step_usage_to_values(usage: Usage) -> dict[str, int]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_microusd": round(usage.cost_usd * 1e6),
    }


@_of("objective {id}")
def objective_from_row(row: Row, *, held: Reservation, active_us: int) -> Objective:
    require_types(row, texts=_OBJECTIVE_TEXTS, numbers=_OBJECTIVE_NUMBERS)
    return Objective(
        id=row["id"],
        uid=row["uid"],
        spec=spec_from_row(row),
        status=ObjectiveStatus(row["status"]),
        stop_reason=StopReason(row["stop_reason"]) if row["stop_reason"] else None,
        stop_detail=row["stop_detail"],
        usage=usage_from_row(row),
        held=held,
        active_s=active_us / 1e6,
        order_revision=row["order_revision"],
        is_claimed_met=bool(row["is_claimed_met"]),
        overspent=row["overspent"],
        n_begun=row["n_begun"],
        checks=checks_from_json(row["checks"]),
        has_report=bool(row["has_report"]),
        report_no=row["report_no"],
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


@_of("task {id}")
def task_name_from_row(row: Row) -> TaskName:
    return _task_name(row["id"], row["name"], row["status"], row["lack"], row["origins"])


@lru_cache(maxsize=N_CACHED_TEXTS)
def _task_name(id_: int, name: str, status: str, lack: str, origins: str) -> TaskName:
    return TaskName(
        id=id_,
        name=name,
        status=TaskStatus(status),
        is_lacking=bool(lack),
        origins=_texts_from_json(origins),
    )


@_of("task {id} of objective {objective_id}")
def task_from_row(row: Row) -> Task:
    require_types(row, texts=_TASK_TEXTS, numbers=_TASK_NUMBERS)
    return Task(
        id=row["id"],
        objective_id=row["objective_id"],
        name=row["name"],
        status=TaskStatus(row["status"]),
        rank=row["rank"],
        parent_id=row["parent_id"],
        after=_numbers_from_json(row["after_ids"]),
        origins=_texts_from_json(row["origins"]),
        try_no=row["try_no"],
        claim_no=row["claim_no"],
        failures=row["failures"],
        n_lost=row["n_lost"],
        error=row["error"],
        lack=lack_from_json(row["lack"]),
        n_lacks=row["n_lacks"],
        usage=usage_from_row(row),
        created_at=to_time(row["created_at_us"]),
        started_at=to_time_or_none(row["started_at_us"]),
        finished_at=to_time_or_none(row["finished_at_us"]),
        not_before=to_time_or_none(row["not_before_us"]),
    )


def _numbers_from_json(text: str) -> tuple[int, ...]:
    numbers = tuple(json.loads(text))
    if not all(type(number) is int for number in numbers):
        raise TypeError(f"no list of numbers: {text[:100]}")
    return numbers


@lru_cache(maxsize=N_CACHED_TEXTS)
def _texts_from_json(text: str) -> tuple[str, ...]:
    texts = json.loads(text)
    if not (isinstance(texts, list) and all(isinstance(one, str) for one in texts)):
        raise TypeError(f"no list of texts: {text[:100]}")
    return tuple(texts)


def policy_to_json(spec: ScheduleSpec) -> str:
    fields = asdict(spec)
    del fields["objective"]
    rule = fields["rule"]
    rule["begins_at"] = from_time(spec.rule.begins_at)
    rule["at"] = None if spec.rule.at is None else from_time(spec.rule.at)
    return to_json(fields)


@_of("schedule {id}")
def schedule_from_row(row: Row) -> Schedule:
    require_types(row, texts=("uid", "spec", "policy", "status"), numbers=("id", "created_at_us"))
    fields = json.loads(row["policy"])
    rule = fields["rule"]
    fields["rule"] = Rule(
        **{**rule, "begins_at": to_time(rule["begins_at"]), "at": to_time_or_none(rule["at"])}
    )
    fields["overlap"] = Overlap(fields["overlap"])
    fields["catch_up"] = CatchUp(fields["catch_up"])
    return Schedule(
        id=row["id"],
        uid=row["uid"],
        spec=ScheduleSpec(objective=spec_from_row(row), **fields),
        status=ScheduleStatus(row["status"]),
        due_at=to_time_or_none(row["due_us"]),
        fires_at=to_time_or_none(row["fires_at_us"]),
        created_at=to_time(row["created_at_us"]),
    )


@_of("the tick of schedule {schedule_id} at {due_us}")
def tick_from_row(row: Row) -> Tick:
    return Tick(
        schedule_id=row["schedule_id"],
        due_at=to_time(row["due_us"]),
        outcome=TickOutcome(row["outcome"]),
        reason=TickReason(row["reason"]),
        objective_id=row["objective_id"],
        decided_at=to_time(row["decided_at_us"]),
    )


@_of("event {id} of objective {objective_id}")
def event_from_row(row: Row) -> Event:
    require_types(row, texts=("kind", "data"), numbers=("id", "objective_id", "at_us"))
    return Event(
        id=row["id"],
        objective_id=row["objective_id"],
        task_id=row["task_id"],
        kind=row["kind"],
        data=dict(json.loads(row["data"])),
        at=to_time(row["at_us"]),
    )


_OBJECTIVE_TEXTS = ("uid", "identity", "spec", "status", "stop_detail", "checks", "overspent")
_OBJECTIVE_NUMBERS = (
    "id calls prompt_tokens completion_tokens cost_microusd active_us seen_us "
    "order_revision ordered_upto last_task_id is_claimed_met "
    "n_barren n_begun n_fruitless n_answers check_no plan_no report_no created_at_us "
    "unconfirmed_tokens unconfirmed_cost_microusd"
).split()
_TASK_TEXTS = ("name", "name_key", "sense", "status", "after_ids", "origins", "error", "lack")
_TASK_NUMBERS = (
    "id objective_id rank blockers try_no claim_no failures n_lost n_lacks calls "
    "prompt_tokens completion_tokens cost_microusd "
    "created_at_us unconfirmed_tokens unconfirmed_cost_microusd"
).split()


@_of("worker {worker_id}")
def joined_from_row(
    row: Row, *, task_ids: Sequence[int] = (), duties: Sequence[str] = ()
) -> Joined:
    require_types(row, texts=("worker_id", "hindrance"), numbers=("objective_id", "since_us"))
    return Joined(
        objective_id=row["objective_id"],
        blocked_reason=row["hindrance"],
        since=to_time(row["since_us"]),
        task_ids=tuple(task_ids),
        duties=tuple(map(Duty, duties)),
    )


@_of("worker {id}")
def lease_from_row(row: Row, *, now_us: int) -> Lease:
    require_types(row, texts=("id", "name", "home"), numbers=("lease_us", "lease_until_us"))
    return Lease(
        worker_id=row["id"],
        name=row["name"],
        home=row["home"],
        length_s=row["lease_us"] / 1e6,
        until=to_time(row["lease_until_us"]),
        has_run_out=not now_us <= row["lease_until_us"] <= now_us + row["lease_us"],
    )


@_of("worker {id}")
def worker_from_row(row: Row, *, now_us: int, joined: Sequence[Joined] = ()) -> Worker:
    require_types(
        row,
        texts=("id", "name", "host", "home"),
        numbers=("pid", "since_us", "lease_us", "lease_until_us"),
    )
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


# -- rows with a checksum: nothing else detects a byte that the disk flips inside a text
# ----------------------------------

_RESULT_COLUMNS = ("objective_id", "task_id", "text", "origins", "created_at_us")
_STEP_COLUMNS = (
    "objective_id owner key kind request_hash state output request model origins is_held "
    "held_calls held_tokens held_cost_microusd "
    "calls prompt_tokens completion_tokens cost_microusd unconfirmed claim_no "
    "created_at_us done_at_us"
).split()


def _checksum(columns: Sequence[str], values: Mapping[str, Any] | Row) -> str:
    # damage can turn a value into bytes
    content = json.dumps([values[column] for column in columns], default=repr)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def is_sound_step(row: Row) -> bool:
    return bool(_checksum(_STEP_COLUMNS, row) == row["checksum"])


def is_sound_result(row: Row) -> bool:
    return bool(_checksum(_result_columns(row), row) == row["checksum"])


def _result_columns(values: Mapping[str, Any] | Row) -> Sequence[str]:
    """Return the columns that the checksum covers; results of version 1 have no lack."""
    return (*_RESULT_COLUMNS, "lack") if values["lack"] else _RESULT_COLUMNS


def _require_sound(is_sound: bool, *, what: str) -> None:
    if not is_sound:
        raise damaged(what, why="its checksum does not fit its content")


# -- seals: checksums of the columns that never change, compared when the store is verified
# --------------------------

_SEALED = {
    "objective": ("uid", "identity", "spec", "created_at_us"),
    "report": ("id", "report"),
    "task": (
        "objective_id",
        "id",
        "name",
        "name_key",
        "sense",
        "parent_id",
        "origins",
        "created_at_us",
    ),
    "event": ("objective_id", "task_id", "kind", "data", "at_us"),
    "schedule": ("uid", "spec", "policy", "created_at_us"),
}


def sealed(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with their seal."""
    return {**values, "seal": _seal(table, values)}


def is_sealed_right(table: str, row: Row) -> bool:
    """Return whether the row equals what was written, as far as its seal covers it; rows of earlier
    versions have no seal."""
    seal = row["report_seal" if table == "report" else "seal"]
    return seal is None or bool(seal == _seal(table, row))


def _seal(table: str, values: Mapping[str, Any] | Row) -> int:
    content = json.dumps([values[column] for column in _SEALED[table]], default=repr)
    return zlib.crc32(content.encode("utf-8", "surrogatepass"))


def seal_vector(vector: bytes) -> int:
    return zlib.crc32(vector)


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


@_of("the result of task {task_id} of objective {objective_id}")
def result_from_row(row: Row) -> Result:
    """Return the result. Raises `StoreUnusableError` when the row is damaged."""
    _require_sound(
        is_sound_result(row),
        what=f"the result of task {row['task_id']} of objective {row['objective_id']}",
    )
    return Result(
        task_id=row["task_id"],
        objective_id=row["objective_id"],
        task_name=row["task_name"],
        text=row["text"],
        origins=_texts_from_json(row["origins"]),
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
        **_step_usage_to_values(step.usage),
        "unconfirmed": to_json(
            [[claim_no, _step_usage_to_values(usage)] for claim_no, usage in step.unconfirmed]
        ),
        "claim_no": step.claim_no,
        "created_at_us": from_time(step.created_at),
        "done_at_us": None if step.done_at is None else from_time(step.done_at),
    }
    return {**values, "checksum": _checksum(_STEP_COLUMNS, values)}


@_of("step {key} of {owner} of objective {objective_id}")
def step_from_row(row: Row) -> Step:
    """Return the step. Raises `StoreUnusableError` when the row is damaged."""
    _require_sound(
        is_sound_step(row),
        what=f"step {row['key']} of {row['owner']} of objective {row['objective_id']}",
    )
    left_open = [
        (claim_no, unconfirmed(_step_usage_from_row(values)))
        for claim_no, values in json.loads(row["unconfirmed"])
    ]
    in_all = sum((charge for _, charge in left_open), Usage())
    return Step(
        objective_id=row["objective_id"],
        owner=row["owner"],
        key=row["key"],
        kind=row["kind"],
        request_hash=row["request_hash"],
        state=StepState(row["state"]),
        output=row["output"],
        model=row["model"],
        origins=_texts_from_json(row["origins"]),
        reservation=Reservation(
            calls=row["held_calls"],
            tokens=row["held_tokens"],
            cost_usd=row["held_cost_microusd"] / 1e6,
        ),
        usage=replace(
            _step_usage_from_row(row),
            unconfirmed_tokens=in_all.unconfirmed_tokens,
            unconfirmed_cost_usd=in_all.unconfirmed_cost_usd,
        ),
        unconfirmed=tuple(left_open),
        claim_no=row["claim_no"],
        created_at=to_time(row["created_at_us"]),
        done_at=to_time_or_none(row["done_at_us"]),
        request=row["request"],
        id=row["id"],
    )
