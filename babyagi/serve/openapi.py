"""Makes the OpenAPI 3.1 document of the API from the operations, the types of their parameters, and
the data types that their answers show."""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

from babyagi import __version__, tasks
from babyagi.inbox import Decision
from babyagi.index.indexer import CheckReport
from babyagi.reporting.transcript import Part
from babyagi.reporting.why import Reason
from babyagi.schedules import Schedule, ScheduleSpec, Tick
from babyagi.serve.operations import OPERATIONS, TEXT, Nothing, Operation
from babyagi.serve.wire import PROBLEM
from babyagi.shapes import shape_of
from babyagi.taskstore.nouns import Verification

BASE = "/api/v1"
_KINDS = {"task": "integer", "number": "integer", "schedule": "integer"}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "try", "guide")},
        "status": {"type": "integer"},
    },
}


@cache
def make_document() -> dict[str, Any]:
    """Return the OpenAPI document as a JSON object."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "babyagi",
            "version": __version__,
            "description": "An operation for every command that reads or changes the task store. "
            "It answers with the JSON that the command prints with --json.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Problem": _PROBLEM,
                **{name: _refer_within(schema) for name, schema in NAMED.items()},
            },
        },
    }


def _describe(operation: Operation) -> dict[str, Any]:
    said: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.says,
        "description": f"Needs a key of the level {operation.level.word}.",
        "parameters": _parameters(operation),
        "responses": {
            str(operation.status): _response(operation),
            **({"200": _response(operation)} if operation.finds else {}),
            "default": {
                "description": "What went wrong, and what to do.",
                "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    if operation.body is not None:
        schema = dict(shape_of(operation.body).schema)
        said["requestBody"] = {
            "required": "required" in schema,
            "content": {"application/json": {"schema": schema}},
        }
    return said


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(name)}
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    if operation.query is not Nothing:
        schema = shape_of(operation.query).schema
        found += [
            {
                "name": name,
                "in": "query",
                "required": name in schema.get("required", ()),
                "schema": one,
            }
            for name, one in schema["properties"].items()
        ]
    if operation.takes_key:
        found.append({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}})
    return found


def _path_schema(name: str) -> Mapping[str, Any]:
    if name == "duty":
        return {"type": "string", "enum": ["plan", "order", "check", "report"]}
    if name == "objective":
        return {"type": "string", "pattern": "^([0-9]{1,15}|latest)$"}
    return {"type": _KINDS[name], "minimum": 0}


def _response(operation: Operation) -> dict[str, Any]:
    if operation.run is None:
        return {"description": "A stream.", "content": {"text/event-stream": {}}}
    reply = REPLIES.get(operation.name)
    json = {"application/json": {"schema": _refer(reply)}} if reply is not None else {}
    texts = ("text/markdown", "text/html") if json else ("text/plain",)
    kinds = texts if operation.gives == TEXT else ()
    return {"description": "Done.", "content": {**json, **{kind: {} for kind in kinds}}}


def _refer(schema: Any) -> Any:
    """Return the schema, with each part that has a name in `NAMED` replaced by a `$ref` to it."""
    name = next((name for name, one in NAMED.items() if one == schema), "")
    return {"$ref": f"#/components/schemas/{name}"} if name else _refer_within(schema)


def _refer_within(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _refer(one) for key, one in schema.items()}
    return [_refer(one) for one in schema] if isinstance(schema, list) else schema


# -- answers
# --------------------------------------------------------------------------------------------------

Schema = dict[str, Any]

_ANY: Schema = {"type": "object"}
_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_INTEGER: Schema = {"type": "integer"}
_NUMBERS: Schema = {"type": "array", "items": _INTEGER}
_BOOLEAN: Schema = {"type": "boolean"}
_TIME: Schema = {"type": "string", "format": "date-time"}


def _object(fields: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def _pick(noun: type, names: str) -> dict[str, Schema]:
    """Return the schemas of fields and properties of a data class, by name. `names` are their
    names, separated by blanks."""
    hints = typing.get_type_hints(noun)
    for name in names.split():
        if name not in hints:  # a property
            hints[name] = typing.get_type_hints(getattr(noun, name).fget)["return"]
    return {name: _whole(hints[name]) for name in names.split()}


def _whole(hint: Any) -> Schema:
    """Return the schema of a type. If it is an object, all its fields are required."""
    schema = dict(shape_of(hint).schema)
    if "properties" in schema:
        schema["required"] = list(schema["properties"])
    return schema


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_V = {"v": _INTEGER}
_COUNTS = _object({status.value: _INTEGER for status in tasks.TaskStatus})
_COSTS = {name: _or_null({"type": "number"}) for name in ("cost_usd", "unconfirmed_cost_usd")}
_USED = _whole(tasks.Usage)["properties"] | _COSTS
_USAGE = _object(_USED)
_WHY = _pick(Reason, "why says change")
_TASK = {
    **_pick(tasks.Task, "id name status rank failures n_lost after parent_id try_no error"),
    "lack": _TEXT,
    **_pick(tasks.Task, "n_lacks origins usage created_at started_at finished_at not_before"),
}
_IDS = {"objective_id": _INTEGER, "task_id": _INTEGER}
_ARTIFACT = {"task_id": _INTEGER, "name": _TEXT, "media_type": _TEXT}
_ARTIFACTS = _list(_object(_ARTIFACT | {"n_bytes": _INTEGER, "sha256": _TEXT}))
_FOUND = {
    "task_id": _INTEGER,
    "task": _TEXT,
    "result": _TEXT,
    **_pick(tasks.Result, "lack origins created_at"),
}
_RESULT = _object(_FOUND | {"artifacts": _ARTIFACTS})
_SOURCE = {"kind": _TEXT, "name": _TEXT, "task_ids": _NUMBERS}
_PAGE = {name: _or_null(_TEXT) for name in ("title", "fetched_at", "sha256")}
_SOURCES = _list(_object(_SOURCE | _PAGE))
_ENDED = _pick(tasks.Objective, "status stop_reason stop_detail is_set_aside")
_REPORT = {"report": _object({"is_written": _BOOLEAN})}
_TIMES = _pick(tasks.Objective, "created_at ended_at")
_STATUS = {
    **_V,
    "objective": _object(
        _pick(tasks.Objective, "id uid") | _pick(tasks.ObjectiveSpec, "text initial_task further")
    ),
    **_pick(tasks.ObjectiveSpec, "instance_name"),
    **_ENDED,
    "tasks": _COUNTS,
    "usage": _object(_USED | {"time_s": {"type": "number"}}),
    "held": _whole(tasks.Reservation),
    "limits": _whole(tasks.Limits),
    **_REPORT,
    "model": _TEXT,
    "models": {"type": "object", "additionalProperties": _TEXT},
    "is_rehearsal": _BOOLEAN,
    **_pick(tasks.ObjectiveSpec, "memory agent"),
    "tools": _list(_object(_pick(tasks.ToolGrant, "name effect"))),
    **_TIMES,
}
_OBJECTIVE = _object(
    _pick(tasks.Objective, "id uid")
    | _pick(tasks.ObjectiveSpec, "text further instance_name")
    | _ENDED
    | {"tasks": _COUNTS, "usage": _USAGE, **_REPORT, "missing": _TEXTS}
    | _TIMES
    | {"last_event_at": _TIME}
)
_STEP = _object(
    _pick(tasks.Step, "key kind state model usage n_unconfirmed created_at done_at")
    | {"usage": _USAGE, "n": _INTEGER, "owner": _TEXT, "title": _TEXT}
    | {"took_s": _or_null({"type": "number"}), "missing": _TEXT}
    | {"parts": _list(_object(_pick(Part, "label text is_said_before")))}
)
_STEPS = {"steps": _list(_STEP), "without_outcome": _list(_ANY)}
_GIVEN = _object(
    {"try_no": _TEXT, "task_id": _INTEGER, "score": _or_null({"type": "number"})}
    | {"reason": _TEXT, "objective_id": _or_null(_INTEGER)}
)
_SHOWN = _object(
    _V
    | {"task": _object(_TASK), "result": _or_null(_RESULT), "sources": _SOURCES}
    | {"given": _list(_GIVEN), "why": _or_null(_object(_WHY)), **_STEPS}
)
_CHANGED = _object(_V | {"objective_id": _INTEGER, "task": _object(_TASK)})
_CHANGED["properties"] |= {"is_reopened": _BOOLEAN, "replaced_task_id": _INTEGER}
_REQUEST = _object(
    {
        **{name: _INTEGER for name in ("number", "objective_id", "task_id")},
        **{name: _TEXT for name in ("task", "kind", "state", "question", "tool")},
        "arguments": _ANY,
        "decisions": _list(_whole(Decision)),
        "asked_at": _TIME,
        "model": _TEXT,
        "origins": _TEXTS,
        "preview": _TEXT,
        "seen": _TEXT,
        "lines": _list({"type": "array", "items": _TEXT}),
    }
)
_DECIDED = _object(_V | {"number": _INTEGER, "decision": _whole(Decision)} | _IDS)
_KEPT = _object(
    _pick(Schedule, "id uid status due_at fires_at created_at")
    | {"when": _TEXT}
    | _pick(ScheduleSpec, "rule grace_s overlap catch_up jitter_s daily_limit_usd")
    | {"objective": _object(_pick(tasks.ObjectiveSpec, "text initial_task instance_name limits"))}
    | {"models": {"type": "object", "additionalProperties": _TEXT}}
)
_TICK = _object(_pick(Tick, "schedule_id due_at outcome reason objective_id decided_at"))
_SCHEDULE = _object(_V | {"schedule": _KEPT})
_JOINED = {"hindrance": _TEXT, "tasks": _NUMBERS, "duties": _TEXTS}
_WORKER = _object(
    _pick(tasks.Worker, "id name host pid home since lease_left_s")
    | {"objectives": _list(_object(_pick(tasks.Joined, "objective_id since") | _JOINED))}
)
_TOLD = _pick(tasks.Event, "objective_id task_id kind")
_EVENT = _object(_V | {"id": _INTEGER, "at": _TIME} | _TOLD | {"data": _ANY})
_INDEXED = {name: _INTEGER for name in ("n_results", "n_indexed", "n_owed")}
_HIT = _object({"score": {"type": "number"}, "objective_id": _INTEGER, **_FOUND})
_ASKED = _pick(tasks.Objective, "id uid") | _pick(tasks.ObjectiveSpec, "text further")
_CHECKED = _pick(
    CheckReport, "is_whole n_expected n_held n_owed missing extra n_probes probe_misses"
)

REPLIES: Mapping[str, Schema] = {
    "list_objectives": _list(_OBJECTIVE),
    "submit": _object(
        _V
        | {"objective_id": _INTEGER, "uid": _TEXT, "is_new": _BOOLEAN}
        | _pick(tasks.Objective, "status")
    ),
    "prune": _object(_V | {"deleted": _NUMBERS}),
    "delete": _object(_V | {"deleted": _NUMBERS, "trouble": _TEXT}),
    "status": _object(
        _STATUS | {"index_trouble": _TEXT, "why": _object(_WHY), "n_workers": _INTEGER}
    ),
    **dict.fromkeys(("pause", "resume", "cancel", "extend", "ask_further"), _object(_STATUS)),
    **dict.fromkeys(("why_objective", "why_task"), _object(_V | _WHY)),
    "list_tasks": _list(_object(_TASK | {"why": _object(_WHY)})),
    **dict.fromkeys(("add_task", "move_task", "edit_task", "skip_task", "retry_task"), _CHANGED),
    "show_task": _SHOWN,
    "show_duty": _object(_V | {"duty": _TEXT, **_STEPS}),
    "list_results": _list(_RESULT),
    "search": _object(
        _V | {"objective_id": _INTEGER, "text": _TEXT, "degraded": _TEXT} | {"hits": _list(_HIT)}
    ),
    "report": _object(
        _V
        | {"objective": _object(_ASKED), **_pick(tasks.Objective, "stop_reason")}
        | {"is_rehearsal": _BOOLEAN, "markdown": _TEXT}
        | {"sources": _SOURCES, "artifacts": _ARTIFACTS}
    ),
    "log": _list(_EVENT),
    "inbox": _list(_REQUEST),
    "show_request": _REQUEST,
    **dict.fromkeys(("answer", "approve", "reject"), _DECIDED),
    "list_schedules": _list(_KEPT),
    "show_schedule": _object(_V | {"schedule": _KEPT, "ticks": _list(_TICK)}),
    **dict.fromkeys(
        ("add_schedule", "pause_schedule", "resume_schedule", "remove_schedule"), _SCHEDULE
    ),
    "workers": _list(_WORKER),
    "index_status": _list(
        _object({"objective_id": _INTEGER, "index": _TEXT, "space": _TEXT, **_INDEXED})
    ),
    "index_check": _object(_V | {"objective_id": _INTEGER} | _CHECKED),
    "index_rebuild": _object(_V | {"objective_id": _INTEGER, "n_results": _INTEGER}),
    "verify": _object(_V | _pick(Verification, "n_rows n_steps n_results") | {"damages": _TEXTS}),
    "new_code": _object({"code": _TEXT}),
}
"""The schemas of JSON answers, by the name of the operation."""

NAMED: Mapping[str, Schema] = {
    "Objective": _OBJECTIVE,
    "Task": _object(_TASK),
    "ListedTask": _object(_TASK | {"why": _object(_WHY)}),
    "Usage": _USAGE,
    "Counts": _COUNTS,
    "Why": _object(_WHY),
    "Result": _RESULT,
    "Sources": _SOURCES,
    "Artifacts": _ARTIFACTS,
    "Step": _STEP,
    "Request": _REQUEST,
    "Schedule": _KEPT,
    "Tick": _TICK,
    "Worker": _WORKER,
    "Event": _EVENT,
}
"""Schemas that are parts of several answers, by their names in the document."""
