"""Makes the OpenAPI 3.1 document of the API from the table of verbs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from babyagi import __version__
from babyagi.llm.shapes import shape_of
from babyagi.serve.operations import OPERATIONS
from babyagi.serve.wire import PROBLEM
from babyagi.taskstore.schedules import Tick
from babyagi.verbs import answers, verb_table
from babyagi.verbs.verb_table import TEXT, Verb

BASE = verb_table.BASE
_KINDS = {"task": "integer", "number": "integer", "schedule": "integer"}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        **{
            name: {"type": "string"}
            for name in ("type", "title", "detail", "try", "guide", "limit")
        },
        "status": {"type": "integer"},
    },
}


@cache
def make_document() -> dict[str, Any]:
    """Return the OpenAPI document as a JSON object."""
    paths: dict[str, dict[str, Any]] = {}
    for verb in OPERATIONS:
        paths.setdefault(BASE + verb.path, {})[verb.method.lower()] = _describe(verb)
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
                **{name: _refer_within(schema) for name, schema in named().items()},
            },
        },
    }


def _describe(verb: Verb) -> dict[str, Any]:
    said: dict[str, Any] = {
        "operationId": verb.name,
        "summary": verb.says,
        "description": f"Needs a key of the level {verb.level.word}.",
        "parameters": _parameters(verb),
        "responses": {
            str(verb.status): _response(verb),
            **({"200": _response(verb)} if verb.finds else {}),
            "default": {
                "description": "What went wrong, and what to do.",
                "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    if verb.has_body:
        schema = dict(shape_of(verb.given).schema)
        said["requestBody"] = {
            "required": "required" in schema,
            "content": {"application/json": {"schema": schema}},
        }
    return said


def _parameters(verb: Verb) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(name)}
        for name in re.findall(r"{(\w+)}", verb.path)
    ]
    if not verb.has_body:
        schema = shape_of(verb.given).schema
        found += [
            {
                "name": name,
                "in": "query",
                "required": name in schema.get("required", ()),
                "schema": one,
            }
            for name, one in schema["properties"].items()
        ]
    if verb.takes_key:
        found.append({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}})
    return found


def _path_schema(name: str) -> Mapping[str, Any]:
    if name == "duty":
        return {"type": "string", "enum": ["plan", "order", "check", "report"]}
    if name == "objective":
        return {"type": "string", "pattern": "^([0-9]{1,15}|latest)$"}
    return {"type": _KINDS[name], "minimum": 0}


def _response(verb: Verb) -> dict[str, Any]:
    if verb.run is None:
        return {"description": "A stream.", "content": {"text/event-stream": {}}}
    reply = verb.returns and _refer(reply_of(verb.returns))
    json = {"application/json": {"schema": reply}} if reply else {}
    texts = ("text/markdown", "text/html") if json else ("text/plain",)
    kinds = texts if verb.gives == TEXT else ()
    return {"description": "Done.", "content": {**json, **{kind: {} for kind in kinds}}}


def _refer(schema: Any) -> Any:
    """Return the schema, with each part that has a name in `named` replaced by a `$ref` to it."""
    name = next((name for name, one in named().items() if one == schema), "")
    return {"$ref": f"#/components/schemas/{name}"} if name else _refer_within(schema)


def _refer_within(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _refer(one) for key, one in schema.items()}
    return [_refer(one) for one in schema] if isinstance(schema, list) else schema


# -- answers
# --------------------------------------------------------------------------------------------------

_MAY_BE_ABSENT = ("is_reopened", "replaced_task_id", "elsewhere")


@cache
def reply_of(returns: Any) -> dict[str, Any]:
    """Return the schema of an answer. All fields are required, except those of `_MAY_BE_ABSENT`."""
    return dict(_required(shape_of(returns).schema))


def _required(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_required(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _required(one) for key, one in schema.items()}
    if found.get("additionalProperties") is True:  # it may have any field
        del found["additionalProperties"]
    if "properties" in found:
        found["required"] = [one for one in found["properties"] if one not in _MAY_BE_ABSENT]
    return found


_PARTS: Mapping[str, Any] = {
    **{
        name: getattr(answers, name)
        for name in "Objective Task ListedTask Usage Counts Result Step Request Schedule "
        "Worker Event".split()
    },
    "Tick": Tick,
    "Why": answers.Reason,
    "Sources": list[answers.Source],
    "Artifacts": list[answers.Artifact],
}


@cache
def named() -> Mapping[str, dict[str, Any]]:
    """Return the schemas that are parts of several answers, by their names in the document."""
    return {name: reply_of(part) for name, part in _PARTS.items()}
