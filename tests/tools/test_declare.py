"""`@tool`: what a function says of itself is what the model is told, or there is no tool."""

import json
from collections.abc import Callable
from typing import Literal

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
            "n": {"type": "integer", "description": "how many"},
            "kind": {"type": "string", "enum": ["net", "gross"], "description": "which price"},
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
    assert await use(give, "odd") == "{1, 2}"
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

    def forgotten(a: str, b: str) -> None:
        """Do it.

        Args:
            a: this
        """

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

    def strange(a: object) -> None:
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
        forgotten: "b is missing in the docstring",
        invented: "b is missing in the signature",
        untyped: "has no type",
        strange: "a model cannot be told",
        loose: "cannot be given by its name",
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
