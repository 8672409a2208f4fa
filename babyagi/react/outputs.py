"""Typed answers: describes the wanted type to the model, and reads its answer as a value of that
type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.shapes import Shape, ShapeError, shape_of, to_strict
from babyagi.react.protocols.base import fill, say
from babyagi.react.values import find_values
from babyagi.tools.base import DECODER

ANSWER = "answer"  # the field for a value that is not an object
_BLOCK = re.compile(r"`{3}\w{0,10}[ \t]*\n(.*?)\n[ \t]*`{3}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputType:
    """The type that an answer must have.

    Attributes:
        schema: a JSON Schema of type object.
        strict: the same for an endpoint that guarantees a schema; None if it cannot be written in
            that form.
        is_wrapped: whether the model gives the value as the field `answer` of an object, because
            the value itself is not an object.
    """

    shape: Shape
    schema: Mapping[str, Any]
    strict: Mapping[str, Any] | None
    is_wrapped: bool

    @property
    def instruction(self) -> str:
        return fill("output", schema=json.dumps(self.schema, ensure_ascii=False))

    def read(self, text: str) -> Any:
        """Return the value in an answer. It may be the whole answer, or be somewhere in it.

        Raises:
            MalformedReplyError: there is no such value; the error's text says what was expected.
        """
        fields, fault = self.schema.get("properties", {}), ""
        meant = [inner for value in _find_values(text) for inner in self._unwrap(value)]
        # a protocol may have taken the value out of its object
        if len(fields) == 1 and not self.is_wrapped:
            meant.append({next(iter(fields)): text.strip()})
        for value in (*meant, text.strip().strip("`\"'*. \n")):
            try:
                return self.shape.read(value, "the answer", False)
            except ShapeError as error:
                fault = fault or str(error)
        raise MalformedReplyError(say("expect_value", fault=f"{fault[:1].upper()}{fault[1:]}"))

    def _unwrap(self, value: Any) -> list[Any]:
        if isinstance(value, dict) and set(value) == {ANSWER}:
            return [value[ANSWER], value] if self.is_wrapped else [value, value[ANSWER]]
        return [value]


def output_type_of(hint: Any) -> OutputType:
    """Return the `OutputType` of answers of this Python type.

    Raises:
        ValueError: the type cannot be described to a model.
    """
    if isinstance(hint, str | bytes | int | float | list | tuple | dict | set):
        types = "int, list[str], dict[str, str] or a dataclass"
        raise ValueError(
            f"output_type={hint!r} is a value, not a type; give a type such as {types}"
        )
    shape = shape_of(hint)
    is_wrapped = shape.schema.get("type") != "object"
    schema = shape.schema
    if is_wrapped:
        schema = {
            "type": "object",
            "properties": {ANSWER: dict(shape.schema)},
            "required": [ANSWER],
            "additionalProperties": False,
        }
    return OutputType(shape=shape, schema=schema, strict=to_strict(schema), is_wrapped=is_wrapped)


def require_json(text: str) -> object:
    """Return the first JSON value in the text, of whatever type.

    Raises:
        MalformedReplyError: the text contains no JSON value.
    """
    for value in _find_values(text):
        return value
    raise MalformedReplyError(say("expect_json"))


def _find_values(text: str) -> Iterator[Any]:
    """Yield every JSON value that may be meant: the whole text, then the code blocks, then values
    within the text. Of the latter two, later ones come first."""
    whole = _decode(text)
    yield from whole
    if not whole:
        yield from (value for block in reversed(_BLOCK.findall(text)) for value in _decode(block))
        yield from reversed([value for value, _, _ in find_values(text)])


def _decode(text: str) -> list[Any]:
    """Return the text, parsed as JSON, in a list; an empty list if it is not JSON."""
    try:
        return [DECODER.decode(text.strip())]
    except (ValueError, RecursionError):
        return []
