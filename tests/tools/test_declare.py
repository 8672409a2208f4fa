"""`@tool`: what a function says of itself is what the model is told, or there is no tool."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Literal

import pydantic
import pytest

from babyagi.errors import ToolError
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Tool, parse_arguments
from babyagi.tools.declare import tool, tools_of


@tool(effect="read")
def price(
    item: str, n: int = 1, kind: Literal["net", "gross"] = "net", tags: list[str] | None = None
) -> float:
    """Look up what something costs.

    In euros.

    Args:
        item: what it is,
            by its name.
        n (int): how many
        kind: which price
        tags: whatever

    Returns:
        The price.
    """
    return n * 2.5


async def use(declared, arguments=""):
    return (await declared.run(parse_arguments(declared, arguments))).text


async def test_a_tool_says_what_its_function_says():
    assert (price.name, price.effect, price.description) == (
        "price",
        Effect.READ,
        "Look up what something costs. In euros.",
    )
    assert price.parameters == {
        "type": "object",
        "properties": {
            "item": {"type": "string", "description": "what it is, by its name."},
            "n": {"type": "integer", "default": 1, "description": "how many"},
            "kind": {
                "type": "string",
                "enum": ["net", "gross"],
                "default": "net",
                "description": "which price",
            },
            "tags": {"type": "array", "items": {"type": "string"}, "description": "whatever"},
        },
        "required": ["item"],
        "additionalProperties": False,
    }
    assert await use(price, '{"item": "tea", "n": 4}') == "10.0"
    assert await use(price, "tea") == "2.5"
    assert price("tea", n=2) == 5.0


async def test_arguments_are_checked_before_the_function_is_called():
    for wrong in (
        '{"n": 2}',
        '{"item": "tea", "kind": "dear"}',
        '{"item": "tea", "n": "many"}',
        '{"item": "tea", "x": 1}',
    ):
        with pytest.raises(ToolError):
            await use(price, wrong)


async def test_a_tool_can_be_async_and_give_any_value():
    @tool
    async def give(what: str) -> object:
        """Give something.

        Args:
            what: which thing
        """
        return {
            "text": "as it is",
            "number": 20000,
            "nothing": None,
            "list": [],
            "passage": Passage(text="p", origin="file:x"),
            "odd": {1, 2},
        }[what]

    assert [await use(give, what) for what in ("text", "number", "nothing", "list", "passage")] == [
        "as it is",
        "20000",
        "null",
        "[]",
        "p",
    ]
    assert await use(give, "odd") == "[1, 2]"
    assert give.effect is Effect.ONCE


async def test_the_methods_of_an_object_are_tools_that_share_its_state():
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        @tool(effect="idempotent", return_direct=True)
        def count(self, by: int) -> int:
            """Count on.

            Args:
                by: how far
            """
            self.n += by
            return self.n

        @tool(effect="read")
        def look(self) -> int:
            """Say the number."""
            return self.n

    one, other = Counter(), Counter()
    tools = {found.name: found for found in tools_of(one)}

    assert list(tools) == ["count", "look"]
    assert [
        await use(tools["count"], "3"),
        await use(one.count, "4"),
        await use(tools["look"]),
        await use(other.look),
    ] == [
        "3",
        "7",
        "7",
        "0",
    ]
    assert tools["count"].return_direct and isinstance(tools["count"], Tool)
    assert set(one.count.parameters["properties"]) == {"by"}


def test_a_docstring_and_a_signature_that_do_not_agree_are_refused():
    def undocumented(a: str) -> None: ...

    def invented(a: str) -> None:
        """Do it.

        Args:
            a: this
            b: that
        """

    def untyped(a):
        """Do it.

        Args:
            a: this
        """

    def strange(a: type) -> None:
        """Do it.

        Args:
            a: this
        """

    def loose(*a: str) -> None:
        """Do it.

        Args:
            a: this
        """

    reasons: dict[Callable[..., object], str] = {
        undocumented: "no docstring",
        invented: "describes b, which is missing in the signature",
        untyped: "has no type",
        strange: "tool strange: the type .* cannot be described to a model",
        loose: "cannot be passed by name",
    }
    for function, reason in reasons.items():
        with pytest.raises(ValueError, match=reason):
            tool(function)


@pytest.mark.parametrize(
    "options", [{"name": "two words"}, {"name": "x" * 65}, {"effect": "often"}, {"reflect": 2}]
)
def test_options_that_cannot_be_are_refused(options):
    def look() -> str:
        """Look."""
        return json.dumps({})

    with pytest.raises(ValueError):
        tool(**options)(look)


class Size(Enum):
    SMALL = "small"
    OTHER = "large"


@dataclass
class Address:
    street: str
    number: int = 1


class Buyer(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=18)


def order(
    item: Annotated[str, "what is ordered"],
    size: Size,
    day: date,
    to: Address,
    buyer: Buyer,
    code: str | int,
    pair: tuple[int, str] = (1, "a"),
    notes: dict[str, list[int]] | None = None,
) -> str:
    """Order something."""
    return repr((item, size, day, to, buyer, code, pair, notes))


GOOD = {
    "item": "tea",
    "size": "Small",
    "day": "2026-11-22",
    "to": {"street": "High Street", "number": "3"},
    "buyer": {"name": "Ann", "age": 20},
    "code": 7,
}


async def test_a_function_is_given_values_of_its_types():
    declared = tool(order)

    assert await use(declared, json.dumps(GOOD)) == repr(
        (
            "tea",
            Size.SMALL,
            date(2026, 11, 22),
            Address("High Street", 3),
            Buyer(name="Ann", age=20),
            7,
            (1, "a"),
            None,
        )
    )
    assert declared.parameters["properties"]["item"]["description"] == "what is ordered"
    assert declared.parameters["required"] == ["item", "size", "day", "to", "buyer", "code"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"size": "huge"}, """'size' must be one of 'small', 'large', got "huge\""""),
        ({"day": "soon"}, "day: Input should be a valid date"),
        ({"to": {"number": 1}}, "to.street: Field required"),
        (
            {"to": {"street": "x", "number": "y"}},
            'to.number: Input should be a valid integer, got "y"',
        ),
        ({"to": {"street": "x", "city": "y"}}, "to.city: Unexpected keyword argument"),
        ({"buyer": {"name": "Ann", "age": 3}}, "buyer.age: Input should be greater than or equal"),
        (
            {"code": [1]},
            "code.str: Input should be a valid string, got [1]; "
            "code.int: Input should be a valid integer, got [1]",
        ),
        ({"pair": [1]}, "pair[1]: Field required"),
        ({"notes": {"a": [True]}}, "notes.a[0]: Input should be a valid integer, got true"),
    ],
)
def test_an_argument_that_cannot_be_converted_is_reported_with_the_expected_type(wrong, told):
    with pytest.raises(ToolError) as caught:
        parse_arguments(tool(order), json.dumps({**GOOD, **wrong}))

    assert told in caught.value.what


async def test_null_is_given_where_it_is_a_value_and_left_out_where_it_is_none():
    def show(a: int | None, b: int | None = 3, c: int = 4) -> str:
        """Show them."""
        return repr((a, b, c))

    assert await use(tool(show), '{"a": null, "b": null, "c": null}') == "(None, None, 4)"


async def test_whatever_can_be_called_by_a_name_can_be_a_tool():
    class Shop:
        def price(self, item: str) -> str:
            """Look up a price."""
            return f"{item}: 5"

        async def __call__(self, item: str) -> str:
            """Look up a price."""
            return f"{item}: 6"

    assert await use(tool(Shop().price), "tea") == "tea: 5"
    assert await use(tool(name="look")(Shop()), "tea") == "tea: 6"
    with pytest.raises(ValueError, match="a function with a name"):
        tool(partial(Shop().price))
