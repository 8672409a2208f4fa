"""The verbs of the HTTP API: those of the table, and one that only a server can do; and the OpenAPI
3.1 document that describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from babyagi import __version__
from babyagi.llm.shapes import shape_of
from babyagi.runtime.heavy_imports import import_whole
from babyagi.serve.door import Keys
from babyagi.serve.feed import Feed
from babyagi.serve.wire import PROBLEM
from babyagi.tasks import Level
from babyagi.verbs import json_shapes, verb_table
from babyagi.verbs.json_shapes import Json
from babyagi.verbs.verb_table import BASE, REPEATABLE, SHOWN_DUTIES, TEXT, VERBS, Verb, change


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk(verb_table.Desk):
    """What the verbs of a server use.

    Attributes:
        url: the server's address.
        feed: the feed of events.
        keys: the credentials.
    """

    url: str
    feed: Feed
    keys: Keys


async def new_code(desk: Desk, level: Literal["read", "steer", "admin"] = "admin") -> Json:
    """Return a one-time code, with which a browser opens a session within two minutes."""
    return {"code": desk.keys.new_code(Level[level.upper()])}


OPERATIONS: tuple[Verb, ...] = (
    *VERBS,
    change("/codes", new_code, json_shapes.Code, "serve open", status=201, **REPEATABLE),
)

# -- the document
# --------------------------------------------------------------------------------------------------

_NUMBER = {"type": "integer", "minimum": 0}
_PATH_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "duty": {"type": "string", "enum": [duty.value for duty in SHOWN_DUTIES]},
    "objective": {"type": "string", "pattern": "^([0-9]{1,15}|latest)$"},
}
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
            "description": "An operation for every command that reads or changes objectives and "
            "schedules. It answers with the JSON that the command prints with --json.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Problem": _PROBLEM,
                **_describe_answers()[1],
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
        {"name": name, "in": "path", "required": True, "schema": _PATH_SCHEMAS.get(name, _NUMBER)}
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


def _response(verb: Verb) -> dict[str, Any]:
    if verb.run is None:
        return {"description": "A stream.", "content": {"text/event-stream": {}}}
    reply = _describe_answers()[0].get(verb.name)
    json = {"application/json": {"schema": reply}} if reply else {}
    texts = ("text/markdown", "text/html") if json else ("text/plain",)
    kinds = texts if verb.gives == TEXT else ()
    return {"description": "Done.", "content": {**json, **{kind: {} for kind in kinds}}}


@cache
def _describe_answers() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the schema of each verb's answer by the verb's name, and the types that the schemas
    refer to by the types' names."""
    import_whole("pydantic.type_adapter", "pydantic.json_schema")
    from pydantic import TypeAdapter

    adapters: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = [
        (verb.name, "serialization", TypeAdapter(verb.returns))
        for verb in OPERATIONS
        if verb.returns is not None
    ]
    found, named = TypeAdapter.json_schemas(adapters, ref_template="#/components/schemas/{model}")
    return {name: schema for (name, _), schema in found.items()}, named["$defs"]
