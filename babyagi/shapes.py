"""Describes Python types as JSON Schema, and converts JSON to values of these types.

`shape_of` makes a `Shape` from a type: its schema, its description in words, and a function that
converts values.

Covered: str, numbers, bool, None, `Any`, Literal, Enum, date, datetime, time, Decimal, UUID, Path,
list, set, tuple, dict, unions, `Annotated[…, "what it is"]`, NewType, dataclasses, TypedDict,
NamedTuple, and models of pydantic, which is not imported here. Not covered: other classes, and
types that contain themselves.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, NotRequired, Required, Union
from uuid import UUID

from babyagi.text import shorten

MAX_SHOWN_CHARS = 100
MAX_NAMED = 20  # choices and fields listed in `Shape.words`
MAX_DEPTH = 100  # nested lists and objects

Read = Callable[[Any, str, bool], Any]
Make = Callable[[Any], "Shape"]


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
        schema: the JSON Schema of the type.
        words: the type in words for use in a sentence, such as `an integer`.
        read: returns the value of the type for a JSON value, or raises `ShapeError`. It takes the
            JSON value, the name of its place (for messages), and whether conversions such as of
            `"12"` to 12 are forbidden.
    """

    schema: Mapping[str, Any]
    words: str
    read: Read


def shape_of(hint: Any) -> Shape:
    """Return the `Shape` of a type.

    Raises:
        ValueError: the type is not covered (see the top of this module).
    """
    return _make(hint, ())


def _make(hint: Any, within: tuple[Any, ...]) -> Shape:
    if any(hint is outer for outer in within):
        raise ValueError(
            f"the type {_name(hint)} contains itself, which cannot be described to a model"
        )
    for make in _KINDS:
        shape = make(hint, lambda inner: _make(inner, (*within, hint)))
        if shape is not None:
            return shape
    raise ValueError(f"the type {_name(hint)} cannot be described to a model")


def show(value: Any) -> str:
    """Return a JSON value as text for a message, with at most `MAX_SHOWN_CHARS` characters."""
    return shorten(json.dumps(value, ensure_ascii=False, default=str), MAX_SHOWN_CHARS)


def _name(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint)


def _expected(where: str, words: str, value: Any) -> ShapeError:
    return ShapeError(f"{where} must be {words}, got {show(value)}")


def _of_class(hint: Any, kind: type) -> bool:
    return isinstance(hint, type) and issubclass(hint, kind)


# -- plain values
# --------------------------------------------------------------------------------------------------


def _read_int(value: Any, is_strict: bool) -> int | None:
    if isinstance(value, bool) or (is_strict and not isinstance(value, int)):
        return None
    if isinstance(value, str):
        text = value.strip()
        is_digits = text[text[:1] in ("+", "-") :].isdecimal() and len(text) < 1000
        value = int(text) if is_digits else _read_float(value, False)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _read_float(value: Any, is_strict: bool) -> float | None:
    kinds = int | float if is_strict else int | float | str
    if isinstance(value, bool) or not isinstance(value, kinds):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _read_bool(value: Any, is_strict: bool) -> bool | None:
    if isinstance(value, str) and not is_strict:
        return {"true": True, "false": False}.get(value.strip().casefold())
    return value if isinstance(value, bool) else None


def _read_str(value: Any, _: bool) -> str | None:
    return value if isinstance(value, str) else None


_PLAIN: Mapping[Any, tuple[str, str, Callable[[Any, bool], Any]]] = {
    str: ("string", "text", _read_str),
    int: ("integer", "an integer", _read_int),
    float: ("number", "a number", _read_float),
    bool: ("boolean", "true or false", _read_bool),
}


def _plain(hint: Any, make: Make) -> Shape | None:
    if hint is Any:
        return Shape(schema={}, words="any value", read=lambda value, _, __: value)
    if hint is None or hint is type(None):
        return Shape(schema={"type": "null"}, words="null", read=_read_none)
    if not isinstance(hint, type) or hint not in _PLAIN:
        return None
    kind, words, convert = _PLAIN[hint]

    def read(value: Any, where: str, is_strict: bool) -> Any:
        found = convert(value, is_strict)
        if found is None:
            raise _expected(where, words, value)
        return found

    return Shape(schema={"type": kind}, words=words, read=read)


def _read_none(value: Any, where: str, _: bool) -> None:
    if value is not None:
        raise _expected(where, "null", value)


_WRITTEN: Mapping[Any, tuple[str, str, Callable[[str], Any]]] = {
    datetime: ("date-time", "a date and time as 2026-11-22T18:30:00", datetime.fromisoformat),
    date: ("date", "a date as 2026-11-22", date.fromisoformat),
    time: ("time", "a time as 18:30:00", time.fromisoformat),
    UUID: ("uuid", "a UUID", UUID),
    Path: ("", "a path", Path),
    Decimal: ("", "a decimal number as 12.50", Decimal),
}


def _written(hint: Any, make: Make) -> Shape | None:
    """Return the `Shape` of a type whose values are strings in JSON; None for any other type."""
    if not isinstance(hint, type) or hint not in _WRITTEN:
        return None
    kind, words, parse = _WRITTEN[hint]

    kinds = str | int | float if hint is Decimal else str

    def read(value: Any, where: str, _: bool) -> Any:
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise _expected(where, words, value)
        try:
            found = parse(str(value).strip())
        except (ValueError, InvalidOperation):
            raise _expected(where, words, value) from None
        if isinstance(found, Decimal) and not found.is_finite():
            raise _expected(where, words, value)
        return found

    schema = {"type": "string", "format": kind} if kind else {"type": "string"}
    return Shape(schema=schema, words=words, read=read)


# -- choices
# --------------------------------------------------------------------------------------------------


def _literal(hint: Any, make: Make) -> Shape | None:
    if typing.get_origin(hint) is not Literal:
        return None
    choices = [one.value if isinstance(one, Enum) else one for one in typing.get_args(hint)]
    return _choice(list(zip(choices, typing.get_args(hint), strict=True)))


def _enum(hint: Any, make: Make) -> Shape | None:
    if not _of_class(hint, Enum):
        return None
    is_json = all(isinstance(one.value, str | int | float) for one in hint)
    shape = _choice([(one.value if is_json else one.name, one) for one in hint])
    by_name = {one.name.casefold(): one for one in hint}

    def read(value: Any, where: str, is_strict: bool) -> Any:
        try:
            return shape.read(value, where, is_strict)
        except ShapeError:
            if not is_strict and isinstance(value, str) and value.strip().casefold() in by_name:
                return by_name[value.strip().casefold()]
            raise

    return dataclasses.replace(shape, read=read)


def _choice(pairs: Sequence[tuple[Any, Any]]) -> Shape:
    """Return the `Shape` of a choice between values, given as pairs of a JSON value and its Python
    value."""
    values = [value for value, _ in pairs]
    kinds = {_PLAIN[type(value)][0] for value in values if type(value) in _PLAIN}
    is_one_kind = len(kinds) == 1 and all(type(value) in _PLAIN for value in values)
    shown = ", ".join(show(value) for value in values[:MAX_NAMED])
    words = f"one of {shown}{', …' if len(values) > MAX_NAMED else ''}"

    def read(value: Any, where: str, is_strict: bool) -> Any:
        for choice, meant in pairs:
            if choice == value and type(choice) is type(value):
                return meant
        written = str(value).strip().casefold()
        same = [meant for choice, meant in pairs if str(choice).casefold() == written]
        if is_strict or len(same) != 1 or isinstance(value, list | dict | bool):
            raise _expected(where, words, value)
        return same[0]

    schema = {"type": kinds.pop()} if is_one_kind else {}
    return Shape(schema={**schema, "enum": values}, words=words, read=read)


def _union(hint: Any, make: Make) -> Shape | None:
    if typing.get_origin(hint) not in (Union, types.UnionType):
        return None
    shapes = [make(one) for one in typing.get_args(hint)]
    words = " or ".join(dict.fromkeys(shape.words for shape in shapes))

    def read(value: Any, where: str, is_strict: bool) -> Any:
        faults: list[ShapeError] = []
        for strict in (True,) if is_strict else (True, False):
            for shape in shapes:
                try:
                    return shape.read(value, where, strict)
                except ShapeError as error:
                    faults.append(error)
        # an error deep inside an object says more than "it is none of these types"
        deep = [fault for fault in faults if not str(fault).startswith(f"{where} must be ")]
        raise deep[-1] if deep else _expected(where, words, value)

    return Shape(schema={"anyOf": [dict(shape.schema) for shape in shapes]}, words=words, read=read)


# -- collections
# --------------------------------------------------------------------------------------------------

_ARRAYS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    **{kind: kind for kind in (list, set, frozenset, tuple)},
    **dict.fromkeys((Sequence, Iterable), list),
}


def _array(hint: Any, make: Make) -> Shape | None:
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if not isinstance(origin, type) or origin not in _ARRAYS:
        return None
    if origin is tuple and inner and inner[-1] is not ...:
        return _fixed([make(one) for one in inner])
    item, build = make(inner[0] if inner else Any), _ARRAYS[origin]

    def read(value: Any, where: str, is_strict: bool) -> Any:
        if not isinstance(value, list):
            raise _expected(where, "a list", value)
        found = [item.read(one, f"{where}[{at}]", is_strict) for at, one in enumerate(value)]
        try:
            return build(found)
        except TypeError:
            raise ShapeError(f"{where} must have distinct values") from None

    if not inner:
        return Shape(schema={"type": "array"}, words="a list", read=read)
    schema = {"type": "array", "items": dict(item.schema)}
    return Shape(schema=schema, words=f"a list ({item.words} each)", read=read)


def _fixed(items: Sequence[Shape]) -> Shape:
    n = len(items)

    def read(value: Any, where: str, is_strict: bool) -> Any:
        if not isinstance(value, list) or len(value) != n:
            raise _expected(where, words, value)
        pairs = enumerate(zip(items, value, strict=True))
        return tuple(item.read(one, f"{where}[{at}]", is_strict) for at, (item, one) in pairs)

    words = f"a list of {n}: {', '.join(item.words for item in items)}"
    schema = {
        "type": "array",
        "prefixItems": [dict(item.schema) for item in items],
        "items": False,
        "minItems": n,
        "maxItems": n,
    }
    return Shape(schema=schema, words=words, read=read)


def _mapping(hint: Any, make: Make) -> Shape | None:
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is not dict and origin is not Mapping:
        return None
    key, item = (make(inner[0]), make(inner[1])) if inner else (make(str), make(Any))

    def read(value: Any, where: str, is_strict: bool) -> Any:
        if not isinstance(value, dict):
            raise _expected(where, "an object", value)
        found = {}
        for name, one in value.items():
            inside = f"{where}[{show(name)}]"
            found[key.read(name, f"a key of {where}", False)] = item.read(one, inside, is_strict)
        return found

    more = {"additionalProperties": dict(item.schema)} if inner else {}
    return Shape(schema={"type": "object", **more}, words="an object", read=read)


# -- wrappers of a type
# --------------------------------------------------------------------------------------------------


def _wrapped(hint: Any, make: Make) -> Shape | None:
    if isinstance(hint, NewType):
        return make(hint.__supertype__)
    if type(hint).__name__ == "TypeAliasType":
        return make(hint.__value__)
    if typing.get_origin(hint) in (Required, NotRequired):
        return make(typing.get_args(hint)[0])
    if typing.get_origin(hint) is not Annotated:
        return None
    inner, *notes = typing.get_args(hint)
    said = [note if isinstance(note, str) else getattr(note, "description", "") for note in notes]
    shape = make(inner)
    description = next((text for text in said if text and isinstance(text, str)), "")
    schema = {**shape.schema, "description": description} if description else shape.schema
    return dataclasses.replace(shape, schema=schema)


# -- objects
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    shape: Shape
    is_required: bool
    description: str = ""

    @property
    def takes_null(self) -> bool:
        """Whether null is a value of the field. If not, null means that the field is absent."""
        return self.is_required or takes_null(self.shape.schema)

    @property
    def schema(self) -> dict[str, Any]:
        said = {"description": self.description} if self.description else {}
        return {**said, **self.shape.schema}


def _object(hint: Any, make: Make) -> Shape | None:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _of_fields(_dataclass_fields(hint, make), hint, _name(hint))
    if typing.is_typeddict(hint):
        return _of_fields(_typed_dict_fields(hint, make), dict, _name(hint))
    if _of_class(hint, tuple) and hasattr(hint, "_field_defaults"):
        hints, given = _hints(hint), hint._field_defaults
        fields = {
            name: _Field(shape=make(hints.get(name, Any)), is_required=name not in given)
            for name in hint._fields
        }
        return _of_fields(fields, hint, _name(hint))
    return None


def _hints(hint: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(hint, include_extras=True)
    except NameError as error:
        raise ValueError(
            f"the types in {_name(hint)} cannot be found: {error}; define them at module level"
        ) from None


def _dataclass_fields(hint: Any, make: Make) -> dict[str, _Field]:
    hints, missing = _hints(hint), dataclasses.MISSING
    return {
        one.name: _Field(
            shape=make(hints[one.name]),
            is_required=one.default is missing and one.default_factory is missing,
            description=str(one.metadata.get("description", "")),
        )
        for one in dataclasses.fields(hint)
        if one.init
    }


def _typed_dict_fields(hint: Any, make: Make) -> dict[str, _Field]:
    def is_required(name: str, of: Any) -> bool:
        # `__required_keys__` is wrong for annotations that are strings
        outer = typing.get_origin(of)
        return outer is Required or (outer is not NotRequired and name in hint.__required_keys__)

    return {
        name: _Field(shape=make(of), is_required=is_required(name, of))
        for name, of in _hints(hint).items()
    }


def _of_fields(fields: Mapping[str, _Field], build: Callable[..., Any], name: str) -> Shape:
    words = f"an object {{{_describe(fields)}}}"

    def read(value: Any, where: str, is_strict: bool) -> Any:
        if not isinstance(value, dict):
            raise _expected(where, words, value)
        if unknown := [key for key in value if key not in fields]:
            raise ShapeError(
                f"{where} takes no {unknown[0][:MAX_SHOWN_CHARS]!r}; it must be {words}"
            )
        if missing := [key for key, one in fields.items() if one.is_required and key not in value]:
            raise ShapeError(f"{where} lacks {missing[0]!r}; it must be {words}")
        found = {
            key: fields[key].shape.read(one, f"{where}.{key}", is_strict)
            for key, one in value.items()
            if one is not None or fields[key].takes_null
        }
        try:
            return build(**found)
        except (ValueError, TypeError) as error:
            raise ShapeError(f"{where} is not a valid {name}: {shorten(str(error), 300)}") from None

    schema = {
        "type": "object",
        "properties": {key: one.schema for key, one in fields.items()},
        "required": [key for key, one in fields.items() if one.is_required],
        "additionalProperties": False,
    }
    return Shape(schema=schema, words=words, read=read)


def _describe(fields: Mapping[str, _Field]) -> str:
    named = [
        f'"{key}": {one.shape.words}{"" if one.is_required else " (optional)"}'
        for key, one in list(fields.items())[:MAX_NAMED]
    ]
    return ", ".join([*named, "…"] if len(fields) > MAX_NAMED else named)


def _pydantic(hint: Any, make: Make) -> Shape | None:
    if not (isinstance(hint, type) and hasattr(hint, "model_validate_json")):
        return None
    model: Any = hint
    schema = _inline(model.model_json_schema(), ())
    words = f"an object {{{', '.join(map(show, schema.get('properties', {})))}}}"

    def read(value: Any, where: str, is_strict: bool) -> Any:
        try:
            return model.model_validate_json(json.dumps(value))
        except ValueError as error:
            fault = ShapeError(f"{where} is not a valid {model.__name__}: {_faults(error)}")
        given = _without_nulls(value)
        if given == value:
            raise fault
        try:
            return model.model_validate_json(json.dumps(given))
        except ValueError:
            raise fault from None

    return Shape(schema=schema, words=words, read=read)


def _faults(error: Any) -> str:
    """Return the message of an error of pydantic, on one line."""
    if not hasattr(error, "errors"):
        return shorten(str(error), 300)
    said = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:5]]
    return shorten("; ".join(said), 500)


def _inline(
    schema: Any, within: tuple[str, ...], defs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the schema with its definition in the place of each `$ref`, and without `$defs`, so
    that it can become a part of another schema."""
    defs = schema.get("$defs", {}) if defs is None else defs
    name = schema.get("$ref", "").rpartition("/")[2]
    if name in within:
        raise ValueError(f"the type {name} contains itself, which cannot be described to a model")
    if name:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_inline(defs[name], (*within, name), defs), **rest}
    return {
        key: _inline_value(key, value, within, defs)
        for key, value in schema.items()
        if key not in ("$defs", "title")
    }


def _inline_value(key: str, value: Any, within: tuple[str, ...], defs: Mapping[str, Any]) -> Any:
    if key == "properties":  # here each key is the name of a field, even if it is `title`
        return {name: _inline(one, within, defs) for name, one in value.items()}
    if isinstance(value, dict) and key not in ("default", "const"):
        return _inline(value, within, defs)
    if isinstance(value, list):
        return [
            _inline(one, within, defs) if isinstance(one, dict) and key != "enum" else one
            for one in value
        ]
    return value


# each returns the shape of a type if it is of one kind, and None for any other type
_KINDS = (_plain, _written, _wrapped, _literal, _enum, _union, _pydantic, _object, _array, _mapping)


def _without_nulls(value: Any) -> Any:
    """Return the value without fields that are null, which models use for absent fields."""
    match value:
        case dict():
            return {key: _without_nulls(one) for key, one in value.items() if one is not None}
        case list():
            return [_without_nulls(one) for one in value]
    return value


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
        TypeError: there is no such value.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    if isinstance(value, Decimal | UUID | Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")
