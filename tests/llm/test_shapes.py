"""Types as a model is told them, and what it writes read back into their values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import pydantic
import pytest
from typing_extensions import TypedDict

from babyagi.llm.shapes import ShapeError, fit_schema, shape_of, to_plain, to_strict


class Point(NamedTuple):
    x: int
    y: int = 0


class Row(TypedDict):
    name: str
    note: NotRequired[str]


@dataclass
class Line:
    item: Annotated[str, pydantic.Field(description="what it is")]
    n: int = 1
    tags: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("n must not be negative")


@dataclass
class Bill:
    lines: list[Line]
    day: date | None = None


class Level(IntEnum):
    HIGH = 2


class Inner(pydantic.BaseModel):
    title: str


class Outer(pydantic.BaseModel):
    inner: Inner
    more: list[Inner] = []


@dataclass
class Node:
    children: list[Node]


@pytest.mark.parametrize(
    ("hint", "written", "read"),
    [
        (int, "12", 12),
        (int, 12.0, 12),
        (float, 3, 3.0),
        (bool, "True", True),
        (str | int, 5, 5),
        (str | int, "5", "5"),
        (int | float, 2.5, 2.5),
        (int | None, None, None),
        (Literal["a", 2], "2", 2),
        (Level, 2, Level.HIGH),
        (Literal["Net", "Gross"], " net", "Net"),
        (Level, "2", Level.HIGH),
        (tuple[int, ...], [1, 2], (1, 2)),
        (set[str], ["a", "a"], {"a"}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (datetime, "2026-11-22T10:00:00Z", datetime.fromisoformat("2026-11-22T10:00:00+00:00")),
        (Decimal, 1.5, Decimal("1.5")),
        (Point, {"x": 1}, Point(1)),
        (Point, ["1", 2], Point(1, 2)),
        (Row, {"name": "a"}, {"name": "a"}),
        (list[Row] | None, [{"name": "a", "note": None}], [{"name": "a"}]),
        (list[Bill], [{"lines": [{"item": "tea"}]}], [Bill([Line("tea")])]),
        (Line, {"item": "tea", "n": None}, Line("tea")),
        (Outer, {"inner": {"title": "a"}, "more": None}, Outer(inner=Inner(title="a"))),
        (Any, {"x": [1]}, {"x": [1]}),
        (str, "a\ud800é", "a?é"),
    ],
)
def test_json_is_read_into_the_value_of_the_type(hint, written, read):
    found = shape_of(hint).read(written, "it", False)

    assert found == read and type(found) is type(read)


@pytest.mark.parametrize(
    ("hint", "written"),
    [
        (int, True),
        (int, "1.5"),
        (int, "ten"),
        (float, "nan"),
        (bool, 1),
        (str, 1),
        (date, "22.11.2026"),
        (Decimal, "inf"),
        (Literal["1", 1], "x"),
        (list[int], "1"),
        (set[Any], [[1]]),
        (Point, [1, 2, 3]),
        (Row, {"note": "a"}),
        (Line, {"item": "tea", "n": -1}),
        (Outer, {"inner": {}}),
        (Outer, None),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(hint, written):
    with pytest.raises(ShapeError, match="it"):
        shape_of(hint).read(written, "it", False)


@pytest.mark.parametrize("hint", [Node, list[Node], "Nowhere", type, Callable[[], int], object()])
def test_a_type_that_a_model_cannot_be_told_is_refused(hint):
    with pytest.raises(ValueError):
        shape_of(hint)


def test_the_schema_of_a_model_of_pydantic_stands_alone_and_keeps_a_field_called_title():
    schema = shape_of(list[Outer]).schema

    assert "$ref" not in json.dumps(schema) and "$defs" not in json.dumps(schema)
    assert schema["items"]["properties"]["inner"]["properties"] == {"title": {"type": "string"}}


def test_a_strict_schema_asks_for_every_field_and_takes_null_for_those_that_may_be_missing():
    schema = to_strict(shape_of(Bill).schema)

    assert schema is not None
    assert schema["required"] == ["lines", "day"]
    line = schema["properties"]["lines"]["items"]
    assert line["required"] == ["item", "n", "tags"] and line["additionalProperties"] is False
    assert line["properties"]["n"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert line["properties"]["item"]["description"] == "what it is"


@pytest.mark.parametrize("hint", [dict[str, int], Any, tuple[int, str], list])
def test_what_a_strict_schema_cannot_say_has_none(hint):
    assert to_strict(shape_of(hint).schema) is None


def test_values_of_python_are_written_as_json():
    value = {"bill": Bill([Line("tea")], date(2026, 11, 22)), "p": Outer(inner=Inner(title="a"))}

    assert json.loads(json.dumps(value, default=to_plain)) == {
        "bill": {"lines": [{"item": "tea", "n": 1, "tags": []}], "day": "2026-11-22"},
        "p": {"inner": {"title": "a"}, "more": []},
    }


# A schema that fits a bound


WIDE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "parts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"quote": {"type": "string"}, "task": {"type": "integer"}},
                "required": ["quote", "task"],
            },
        },
        "kind": {"anyOf": [{"enum": ["a", "b"]}, {"type": "string", "maxLength": 300}]},
        "is_met": {"type": "boolean"},
    },
    "required": ["parts", "kind", "is_met"],
}


def longest(schema):
    """The longest value of the schema, as JSON without a blank."""
    if "anyOf" in schema:
        return max(map(longest, schema["anyOf"]), key=len)
    match schema.get("type"):
        case "object":
            fields = [f'"{name}":{longest(one)}' for name, one in schema["properties"].items()]
            return "{" + ",".join(fields) + "}"
        case "array":
            return "[" + ",".join([longest(schema["items"])] * schema["maxItems"]) + "]"
        case "string":
            return '"' + "x" * schema["maxLength"] + '"'
        case "integer":
            return "100000"
        case "boolean":
            return "false"
    return json.dumps(schema["enum"][0])


@pytest.mark.parametrize("max_tokens", [120, 200, 500, 2000, 10_000])
def test_a_schema_is_made_to_fit_a_bound_with_every_text_and_list_bounded(max_tokens):
    fitted = fit_schema(WIDE, max_tokens=max_tokens)

    assert len(longest(fitted)) <= 2 * max_tokens
    assert fitted["properties"]["parts"]["maxItems"] >= 1
    assert "maxLength" not in json.dumps(WIDE["properties"]["parts"])  # the given one is as it was


def test_where_there_is_room_the_bounds_of_a_schema_stay():
    kind = fit_schema(WIDE, max_tokens=1_000_000)["properties"]["kind"]["anyOf"]

    assert kind == WIDE["properties"]["kind"]["anyOf"]


def test_one_item_and_a_few_words_are_left_however_little_room_there_is():
    fitted = fit_schema(WIDE, max_tokens=1)

    assert fitted["properties"]["parts"]["maxItems"] == 1
    assert fitted["properties"]["parts"]["items"]["properties"]["quote"]["maxLength"] == 24
