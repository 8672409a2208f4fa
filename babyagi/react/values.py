"""JSON values in the replies of models: finds them anywhere in a text, also with faults that models
make (quotes, constants and commas as in Python, line breaks inside strings, doubled braces), and
reads an answer as a value of the type that was asked for."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from babyagi.errors import MalformedReplyError
from babyagi.llm.shapes import Shape, ShapeError, shape_of, to_strict
from babyagi.react.protocols.base import fill, say
from babyagi.tools.base import DECODER

MAX_VALUES = 2000
# openings from which nothing could be read; each takes time in proportion to the text
MAX_TRIED = 32

_OPENING = re.compile(r"[{\[]")
_TOKEN = re.compile(
    r"\"(?:[^\"\\]|\\.)*+(?:\"|\Z)|'(?:[^'\\]|\\.)*+(?:'|\Z)|[{}\[\]]|\b(?:true|false|null)\b",
    re.DOTALL,
)
_IN_PYTHON = {"true": "True", "false": "False", "null": "None"}


def read_json(text: str, otherwise: Any = None) -> Any:
    """Return the value that the whole text is as JSON; `otherwise` if it is no JSON."""
    try:
        return DECODER.decode(text.strip())
    except (ValueError, RecursionError):
        return otherwise


def find_values(text: str) -> list[tuple[Any, int, int]]:
    """Return the outermost objects and lists of the text, in order: value, start and end. A value
    that is cut off is left out."""
    found: list[tuple[Any, int, int]] = []
    at = n_tried = 0
    while len(found) < MAX_VALUES and n_tried < MAX_TRIED:
        opening = _OPENING.search(text, at)
        if opening is None:
            break
        start = opening.start()
        read = _read_strictly(text, start) or _read_loosely(text, start)
        if read is None:
            n_tried, at = n_tried + 1, opening.end()
        else:
            value, at = read
            found.append((value, start, at))
    return found


def _read_strictly(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _read_loosely(text: str, start: int) -> tuple[Any, int] | None:
    """Return the value that is written as in Python, and its end; None if there is none. What
    `DECODER` refuses is refused here too."""
    parts, depth, at = list[str](), 0, start
    for token in _TOKEN.finditer(text, start):
        parts += [text[at : token.start()], _to_python(token[0])]
        at = token.end()
        depth += (token[0] in ("{", "[")) - (token[0] in ("}", "]"))
        if depth == 0:
            break
    try:
        value = _evaluate("".join(parts)) if parts and depth == 0 else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return (value, at) if isinstance(value, dict | list) else None


def _evaluate(written: str) -> Any:
    """Return the value of a Python literal as JSON has it."""
    tree = ast.parse(written.strip(), mode="eval")
    dicts = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    if any(len({ast.dump(key) for key in one.keys if key}) < len(one.keys) for one in dicts):
        raise ValueError("a key occurs twice")
    return DECODER.decode(json.dumps(ast.literal_eval(tree), allow_nan=False))


def _to_python(token: str) -> str:
    return _IN_PYTHON.get(token) or token.replace("\n", "\\n")


# -- typed answers: the wanted type is described to the model, and its answer read as a value of it
# --------------------------------------------------------------------------------------------------


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
    value = read_json(text, otherwise=...)
    return [] if value is ... else [value]
