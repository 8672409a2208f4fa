"""Describes Python types as JSON Schema, and converts JSON to values of these types.

`shape_of` makes a `Shape` from a type. pydantic describes the type and converts; it is imported
with the first type. What it reads is covered, except types that contain themselves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from types import NoneType
from typing import TYPE_CHECKING, Any, NewType

from babyagi.runtime.heavy_imports import import_whole
from babyagi.text import shorten

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MAX_SHOWN_CHARS = 100
MAX_DEPTH = 100  # nested lists and objects
MAX_FAULTS = 5  # that one message names


def is_deep(value: Any) -> bool:
    """Return whether the value has more than `MAX_DEPTH` lists and objects inside each other, so
    that recursive functions could fail."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for one in level
            if isinstance(one, list | dict)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True


class ShapeError(ValueError):
    """A value does not fit its type. The message says what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The description of a type, and the conversion of JSON to it.

    Attributes:
        schema: the JSON Schema of the type, in which nothing is referred to.
        adapter: checks and converts.
    """

    schema: Mapping[str, Any]
    adapter: TypeAdapter[Any]

    def read(self, value: Any, where: str, is_strict: bool) -> Any:
        """Return the value of the type for a JSON value.

        Args:
            where: the name of the value's place, for messages.
            is_strict: whether what `coerce` does is forbidden, such as 12 for `"12"`.

        Raises:
            ShapeError: the value does not fit.
        """
        fault: Exception | None = None
        for one in (value,) if is_strict else (value, coerce(value, self.schema)):
            try:
                # half of a character, which a model may write, is no UTF-8
                data = json.dumps(one, ensure_ascii=False).encode(errors="replace")
                return self.adapter.validate_json(data, strict=True)
            except (ValueError, TypeError) as error:
                fault = error
        raise ShapeError(_describe(fault, where)) from None


def shape_of(hint: Any) -> Shape:
    """Return the `Shape` of a type.

    Raises:
        ValueError: the type cannot be described, or contains itself.
    """
    import_whole("pydantic.type_adapter", "pydantic.json_schema")
    from pydantic import ConfigDict, PydanticUserError, TypeAdapter

    config = ConfigDict(extra="forbid", allow_inf_nan=False)
    try:
        # the alias lets the settings hold for a dataclass as well, and those within it
        alias = NewType("alias", hint)  # type: ignore[valid-newtype]
        adapter = TypeAdapter[Any](alias, config=config)
        schema = adapter.json_schema()
    except (PydanticUserError, NameError) as error:
        name = hint.__qualname__ if isinstance(hint, type) else str(hint)
        why = str(error).partition("\n")[0]
        raise ValueError(f"the type {name} cannot be described to a model: {why}") from None
    return Shape(schema=_inline(schema, schema.get("$defs", {}), ()), adapter=adapter)


def object_of(name: str, fields: Mapping[str, Any]) -> Shape:
    """Return the `Shape` of an object with fields of these types, which is read as a dict. The
    types of fields that may be missing are in `NotRequired`.

    Raises:
        ValueError: a type cannot be described, or contains itself.
    """
    from typing_extensions import TypedDict

    return shape_of(TypedDict(name, dict(fields)))  # type: ignore[operator]


def show(value: Any) -> str:
    """Return a JSON value as text for a message, with at most `MAX_SHOWN_CHARS` characters."""
    return shorten(json.dumps(value, ensure_ascii=False, default=str), MAX_SHOWN_CHARS)


def _describe(fault: Any, where: str) -> str:
    """Return what an error of pydantic says, on one line, with the places of the faulty values."""
    if not hasattr(fault, "errors"):
        return shorten(f"{where}: {fault}", 500)
    said = []
    for one in fault.errors(include_url=False)[:MAX_FAULTS]:
        steps = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in one["loc"])
        given = "" if one["type"] == "missing" else f", got {show(one['input'])}"
        said.append(f"{where}{''.join(steps)}".lstrip(".") + f": {one['msg']}{given}")
    return shorten("; ".join(said), 500)


def _inline(node: Any, defs: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    """Return a part of a schema with its definition in the place of each `$ref`, and without the
    titles, so that it can become a part of another schema."""
    if isinstance(node, list):
        return [_inline(one, defs, within) for one in node]
    if not isinstance(node, dict):
        return node
    name = node.get("$ref", "").rpartition("/")[2]
    if name in within:
        raise ValueError(f"the type {name} contains itself, which cannot be described to a model")
    found = _inline(defs[name], defs, (*within, name)) if name else {}
    rest = [key for key in node if key not in ("$ref", "$defs", "title")]
    return found | {key: _inline_value(key, node[key], defs, within) for key in rest}


def _inline_value(key: str, value: Any, defs: Mapping[str, Any], within: tuple[str, ...]) -> Any:
    if key in ("default", "enum", "const"):
        return value
    inner = _inline(value if key != "properties" else list(value.values()), defs, within)
    if key == "properties":  # here each key is the name of a field, even if it is `title`
        return dict(zip(value, inner, strict=True))
    if key == "prefixItems":  # the titles are the names of the fields of a `NamedTuple`
        titles = [{"title": one["title"]} if "title" in one else {} for one in value]
        return [title | one for title, one in zip(titles, inner, strict=True)]
    return inner


# -- what a model or a person writes in another form than the schema has it
# --------------------------------------------------------------------------------------------------

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": NoneType,
}


def is_of(value: Any, kind: str) -> bool:
    """Return whether a JSON value is of the type that a schema calls `kind`; True if there is no
    such type."""
    if isinstance(value, bool):
        return kind not in _TYPES or kind == "boolean"
    return isinstance(value, _TYPES.get(kind, object))


def coerce(value: Any, schema: Any) -> Any:
    """Return a JSON value as the schema has it, where only its form differs: numbers, true and
    false that are written as text, `12.0` for 12, a choice in capitals, and null for a field that
    may be missing. All else is returned as it is."""
    if not isinstance(schema, Mapping):
        return value
    if "anyOf" in schema:
        fitting = [one for one in schema["anyOf"] if is_of(value, str(one.get("type")))]
        made = (coerce(value, one) for one in fitting or schema["anyOf"])
        return next((one for one in made if repr(one) != repr(value)), value)
    if "enum" in schema or "const" in schema:
        return _find_choice(value, schema.get("enum", [schema.get("const")]))
    kind = schema.get("type")
    if isinstance(value, list):
        items = chain(schema.get("prefixItems", ()), repeat(schema.get("items")))
        return [coerce(one, of) for one, of in zip(value, items, strict=False)]
    if isinstance(value, dict):
        return _coerce_fields(value, schema)
    if isinstance(value, str) and kind == "boolean":
        return {"true": True, "false": False}.get(value.strip().casefold(), value)
    if isinstance(value, str) and kind in ("integer", "number"):
        value = _parse_number(value)
    is_whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return int(value) if is_whole else value


def _coerce_fields(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    fields, required = schema.get("properties", {}), schema.get("required", ())
    return {
        key: coerce(one, fields.get(key, schema.get("additionalProperties")))
        for key, one in value.items()
        if one is not None or key not in fields or key in required or takes_null(fields[key])
    }


def _find_choice(value: Any, choices: Sequence[Any]) -> Any:
    """Return the only choice that equals the value except for case and surrounding blanks; the
    value itself if there is not exactly one."""
    if value in choices or isinstance(value, list | dict | bool):
        return value
    written = str(value).strip().casefold()
    same = [one for one in choices if str(one).casefold() == written]
    return same[0] if len(same) == 1 else value


def _parse_number(text: str) -> Any:
    """Return the finite number that the text is; the text itself if it is none."""
    for kind in (int, float):
        with suppress(ValueError):
            if math.isfinite(number := kind(text)):
                return number
    return text


# -- schemas for endpoints that guarantee a schema
# --------------------------------------------------------------------------------------------------

_STRICT = ("type", "description", "enum", "const", "format", "minimum", "maximum", "items", "anyOf")
_STRICT_FORMATS = ("date-time", "date", "time", "uuid")


def to_strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema in the form that endpoints require to guarantee a conforming reply: objects
    have no other fields, all fields are required, and optional ones may be null. Return None if
    this is impossible."""
    try:
        return _strict(schema)
    except ValueError:
        return None


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    if not {"type", "enum", "const", "anyOf"} & set(schema) or "prefixItems" in schema:
        raise ValueError("a type for any value, or a list of fixed length, has no strict schema")
    kept = {key: value for key, value in schema.items() if key in _STRICT}
    if kept.get("format", "date") not in _STRICT_FORMATS:
        del kept["format"]
    if "anyOf" in kept:
        kept["anyOf"] = [_strict(one) for one in kept["anyOf"]]
    if "items" in kept:
        kept["items"] = _strict(kept["items"])
    elif kept.get("type") == "array":
        raise ValueError("a list whose items may be anything has no strict schema")
    if kept.get("type") != "object":
        return kept
    if schema.get("additionalProperties") or not schema.get("properties"):
        raise ValueError(
            "a dict with any field names has no strict schema; use a dataclass or a TypedDict"
        )
    required = schema.get("required", ())
    fields = {
        name: _strict(one) if name in required else _or_null(_strict(one))
        for name, one in schema["properties"].items()
    }
    return {**kept, "properties": fields, "required": list(fields), "additionalProperties": False}


CHARS_PER_TOKEN = 2  # in JSON with numbers, for the tokenizers that need the most tokens
BLANK_TOKENS = 100  # for blanks and line breaks, which no schema bounds
MAX_TEXT_CHARS, MAX_LIST_ITEMS = 1500, 20  # the bounds if a schema has none
MIN_TEXT_CHARS = 24
MAX_NUMBER = 999_999
N_FITTINGS = 30


def fit_schema(schema: Mapping[str, Any], *, max_tokens: int) -> dict[str, Any]:
    """Return the schema with bounds on all texts and lists, so that its longest JSON value has at
    most `max_tokens` tokens if possible. A list may always have one item, and a text
    `MIN_TEXT_CHARS` characters."""
    fitted = _bound(schema, 1.0)
    n_tokens = max_tokens - min(BLANK_TOKENS, max_tokens // 5)
    for n in range(1, N_FITTINGS):
        if _longest_chars(fitted) <= n_tokens * CHARS_PER_TOKEN:
            break
        fitted = _bound(schema, 0.8**n)
    return fitted


def _bound(schema: Mapping[str, Any], share: float) -> dict[str, Any]:
    bounded = dict(schema)
    kind = schema.get("type")
    if kind == "string" and "enum" not in schema:
        most = schema.get("maxLength", MAX_TEXT_CHARS)
        bounded["maxLength"] = max(min(most, MIN_TEXT_CHARS), int(most * share))
    if kind == "integer" and "enum" not in schema:  # else a small model may write digits for ever
        bounded.setdefault("minimum", -MAX_NUMBER)
        bounded.setdefault("maximum", MAX_NUMBER)
    if kind == "array":
        bounded["maxItems"] = max(1, int(schema.get("maxItems", MAX_LIST_ITEMS) * share))
    if isinstance(schema.get("items"), Mapping):
        bounded["items"] = _bound(schema["items"], share)
    if isinstance(schema.get("properties"), Mapping):
        bounded["properties"] = {
            name: _bound(one, share) for name, one in schema["properties"].items()
        }
    if "anyOf" in schema:
        bounded["anyOf"] = [_bound(one, share) for one in schema["anyOf"]]
    return bounded


def _longest_chars(schema: Mapping[str, Any]) -> int:
    """Return the length in characters of the longest JSON value of a bounded schema, including
    blanks that small models add."""
    if "enum" in schema or "const" in schema:
        choices = schema.get("enum", [schema.get("const")])
        return max((len(json.dumps(one)) for one in choices), default=0)
    if "anyOf" in schema:
        return max(map(_longest_chars, schema["anyOf"]), default=0)
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {}).items()
            return 4 + sum(len(name) + 12 + _longest_chars(one) for name, one in fields)
        case "array":
            return 4 + int(schema["maxItems"]) * (4 + _longest_chars(schema.get("items", {})))
        case "string":
            return 2 + int(schema["maxLength"])
    return 12


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if takes_null(schema):
        return schema
    return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}


def takes_null(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema allows null."""
    return (
        not {"type", "enum", "const", "anyOf"} & set(schema)
        or schema.get("type") == "null"
        or None in schema.get("enum", ())
        or any(takes_null(one) for one in schema.get("anyOf", ()))
    )


# the keywords of JSON Schema that this program reads, with the types of their values; those of
# `_NUMBERS` have numbers
_KEYWORDS: Mapping[str, type | tuple[type, ...]] = {
    "type": (str, list),
    "properties": dict,
    "required": list,
    "enum": list,
    "anyOf": list,
    "format": str,
}
_NUMBERS = ("minimum", "maximum", "maxItems", "maxLength")


def read_schema(given: Any) -> dict[str, Any]:
    """Return a JSON Schema from another program in the form that this program uses: objects in the
    place of `true` and `false`, and `prefixItems` in the place of a list under `items`.

    Args:
        given: a JSON value that is not nested deeply (see `is_deep`).

    Raises:
        ShapeError: a keyword that this program reads has an invalid value.
    """
    if isinstance(given, bool):
        return {} if given else {"not": {}}
    if not isinstance(given, dict):
        raise ShapeError("a schema must be a JSON object")
    kinds = given.get("type", [])
    is_valid = (
        all(isinstance(given[key], kind) for key, kind in _KEYWORDS.items() if key in given)
        and all(_is_finite(given[key]) for key in _NUMBERS if key in given)
        and all(isinstance(kind, str) for kind in kinds)
    )
    if not is_valid:
        raise ShapeError("a keyword of the schema has a value of a wrong type")
    read = dict(given)
    if "properties" in given:
        read["properties"] = {name: read_schema(one) for name, one in given["properties"].items()}
    if "anyOf" in given:
        read["anyOf"] = [read_schema(one) for one in given["anyOf"]]
    if isinstance(given.get("items"), list):  # its name before the draft 2020-12
        read["prefixItems"] = read.pop("items")
    elif "items" in given:
        read["items"] = read_schema(given["items"])
    return read


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False


# -- values of Python as JSON
# --------------------------------------------------------------------------------------------------


def to_plain(value: Any) -> Any:
    """Return a value that JSON can represent in the place of a Python value. For use as the
    argument `default` of `json.dumps`.

    Raises:
        ValueError: there is no such value.
    """
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)
