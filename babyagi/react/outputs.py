"""Typed answers: describes the type to the model, and reads the answer into a value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.react.protocols.base import fill
from babyagi.shapes import Shape, ShapeError, shape_of, show, to_strict
from babyagi.tools.base import DECODER

ANSWER = "answer"  # the field that wraps a value that is not an object
MAX_LOOKED_AT = 20  # places in a reply where an answer may begin
_BLOCK = re.compile(r"`{3}\w{0,10}[ \t]*\n(.*?)\n[ \t]*`{3}", re.DOTALL)
_OPENING = re.compile(r"[{\[]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputType:
    """What an answer must be.

    Attributes:
        schema: a JSON Schema of type object.
        strict: the same for an endpoint that guarantees a schema; None if it cannot be written so.
        is_wrapped: the value is in an object, as its only field `answer`.
    """

    shape: Shape
    schema: Mapping[str, Any]
    strict: Mapping[str, Any] | None
    is_wrapped: bool

    @property
    def instruction(self) -> str:
        return fill("output", schema=json.dumps(self.schema, ensure_ascii=False))

    def read(self, text: str) -> Any:
        """Return the value in an answer: the whole answer is the value, or the value is somewhere
        in it.

        Raises:
            MalformedReplyError: there is no such value; the text says what was expected.
        """
        fault = ""
        for value in _find_values(text):
            for inner in self._unwrap(value):
                try:
                    return self.shape.read(inner, "the answer", False)
                except ShapeError as error:
                    fault = fault or str(error)
        fields = self.schema.get("properties", {})
        if len(fields) == 1 and not self.is_wrapped:  # a protocol may have unwrapped it
            with suppress(ShapeError):
                return self.shape.read({next(iter(fields)): text.strip()}, "the answer", False)
        try:
            return self.shape.read(text.strip().strip("`\"'*. \n"), "the answer", False)
        except ShapeError:
            fault = fault or f"the answer must be {self.shape.words}, got {show(text.strip())}"
        raise MalformedReplyError(
            f"{fault[:1].upper()}{fault[1:]}. The answer is JSON that fits the schema."
        )

    def find(self, text: str) -> Any:
        """Return the value that a text for people holds: the whole text is the value, or a block of
        code in it. A value among other words may be a quotation, so it is ignored.

        Raises:
            MalformedReplyError: there is no such value.
        """
        for value in _find_written(text):
            for inner in self._unwrap(value):
                with suppress(ShapeError):
                    return self.shape.read(inner, "the answer", False)
        raise MalformedReplyError("the text holds no such value by itself")

    def _unwrap(self, value: Any) -> list[Any]:
        if isinstance(value, dict) and set(value) == {ANSWER}:
            return [value[ANSWER], value] if self.is_wrapped else [value, value[ANSWER]]
        return [value]


def output_type_of(hint: Any) -> OutputType:
    """Return what an answer of this type must be.

    Raises:
        ValueError: the type cannot be described to a model.
    """
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
    """Return the first JSON value in the text. Which value is wanted is not known here.

    Raises:
        MalformedReplyError: the text contains no JSON value.
    """
    for value in _find_values(text):
        return value
    raise MalformedReplyError("The reply must be JSON.")


def _find_values(text: str) -> Iterator[Any]:
    """Yield every JSON value that the text may mean: first the whole text, then code blocks, then
    values within the text; later ones before earlier ones."""
    yield from _find_written(text)
    if _decode(text):
        return
    found, at = [], 0
    for _ in range(MAX_LOOKED_AT):
        opening = _OPENING.search(text, at)
        if opening is None:
            break
        try:
            value, at = DECODER.raw_decode(text, opening.start())
            found.append(value)
        except (ValueError, RecursionError):
            at = opening.end()
    yield from reversed(found)


def _find_written(text: str) -> list[Any]:
    """Return the whole text as a JSON value if it is one; else the JSON values in its code blocks,
    the last first."""
    blocks = reversed(_BLOCK.findall(text))
    return _decode(text) or [value for block in blocks for value in _decode(block)]


def _decode(text: str) -> list[Any]:
    """Return the parsed text in a list; an empty list if the text is not JSON."""
    try:
        return [DECODER.decode(text.strip())]
    except (ValueError, RecursionError):
        return []
