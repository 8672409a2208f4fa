"""The document of the API (OpenAPI 3.1), made from the operations and the types that they take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from babyagi import __version__
from babyagi.serve.operations import LIST, OBJECT, OPERATIONS, TEXT, Nothing, Operation
from babyagi.serve.wire import PROBLEM
from babyagi.shapes import shape_of

BASE = "/api/v1"
_KINDS = {"schedule": "integer", "task": "integer", "number": "integer"}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "try": {"type": "string"},
        "guide": {"type": "string"},
    },
}


def make_document() -> dict[str, Any]:
    """The document as JSON has it."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(BASE + operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "babyagi",
            "version": __version__,
            "description": "Every verb of the command line that asks or steers the task store. "
            "Answers are those of --json.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM},
        },
    }


def _describe(operation: Operation) -> dict[str, Any]:
    said: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.says,
        "description": f"Needs the level {operation.level.word}.",
        "parameters": _parameters(operation),
        "responses": {
            str(operation.status): _response(operation),
            **({"200": _response(operation)} if operation.takes_key else {}),
            "default": {
                "description": "What went wrong, and what to type.",
                "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            },
        },
    }
    if operation.body is not None:
        schema = dict(shape_of(operation.body).schema)
        said["requestBody"] = {
            "required": bool(schema["required"]),
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
            {"name": name, "in": "query", "required": name in schema["required"], "schema": one}
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
    if operation.gives == TEXT:
        kinds = ("application/json", "text/markdown", "text/html", "text/plain")
        return {"description": "Done.", "content": {kind: {} for kind in kinds}}
    schema: dict[str, Any] = {"type": operation.gives}
    if operation.gives == LIST:
        schema["items"] = {"type": OBJECT}
    return {
        "description": "Done.",
        "content": {"application/json": {"schema": schema}},
    }
