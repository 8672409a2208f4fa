"""A model's argument text to checked arguments, against the small subset of JSON Schema that tools
use.

Covers type, properties, required, additionalProperties (always refused), enum, minimum, maximum,
items, maxItems. Does not cover: references, combinations, patterns. A keyword that is not covered
checks nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from babyagi.errors import ToolError
from babyagi.tools.base import Tool

MAX_ARGUMENT_CHARS = 50_000

Schema = Mapping[str, Any]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _number(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written} is no number of JSON")
    return number


# JSON from a model: what could be read in two ways, or is no JSON though Python takes it, is
# refused.
DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_number, parse_constant=_number, strict=False
)


def parse_arguments(tool: Tool, arguments: str) -> dict[str, Any]:
    """Return the arguments that a model wrote for the tool, each of the type that the schema names.

    Empty text is no arguments, and so is null for a tool that takes none; any other bare value
    stands for the only parameter, and a list for all of them in their order; `"12"` and `12.0` are
    integers.

    Raises:
        ToolError: one line that says what to write instead.
    """
    value = _load(tool, arguments)
    properties: Mapping[str, Schema] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    if value is None and not properties:
        value = {}
    if not isinstance(value, dict):
        value = _name_bare(tool, value, arguments)
    if unknown := [key for key in value if key not in properties]:
        raise ToolError(
            f"{tool.name} has no parameter {unknown[0][:100]!r}; it takes {_usage(tool)}"
        )
    checked = {
        key: _check(key, given, properties[key])
        for key, given in value.items()
        if given is not None or key in required
    }
    if missing := [key for key in required if key not in checked]:
        raise ToolError(f"{tool.name} needs {missing[0]!r}; it takes {_usage(tool)}")
    return checked


def _name_bare(tool: Tool, value: Any, written: str) -> dict[str, Any]:
    """The arguments that a bare value means: the only parameter, as it was written where that takes
    text; or a list of all, in order."""
    properties: Mapping[str, Schema] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    if value is not None and (len(properties) == 1 or len(required) == 1):
        name = required[0] if len(required) == 1 else next(iter(properties))
        is_text = properties.get(name, {}).get("type") == "string" and isinstance(
            value, int | float
        )
        return {name: written.strip() if is_text else value}
    if isinstance(value, list) and 0 < len(value) <= len(properties):
        return dict(zip(properties, value, strict=False))
    raise ToolError(f"the arguments of {tool.name} must be {_usage(tool)}")


def _load(tool: Tool, arguments: str) -> Any:
    if len(arguments) > MAX_ARGUMENT_CHARS:
        raise ToolError(f"the arguments of {tool.name} are over {MAX_ARGUMENT_CHARS} characters")
    if not arguments.strip():
        return {}
    try:
        return DECODER.decode(arguments)
    except (ValueError, RecursionError):
        if arguments.lstrip()[0] in "{[":
            raise ToolError(
                f"the arguments of {tool.name} are not valid JSON; write {_usage(tool)}"
            ) from None
        return arguments.strip()


def _usage(tool: Tool) -> str:
    required = tool.parameters.get("required", ())
    named = [
        f'"{name}": {schema.get("type", "value")}{"" if name in required else " (optional)"}'
        for name, schema in tool.parameters.get("properties", {}).items()
    ]
    return f"a JSON object {{{', '.join(named)}}}"


def _check(name: str, value: Any, schema: Schema) -> Any:
    value = _convert(name, value, schema.get("type", ""))
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError(
            f"{name!r} must be one of {', '.join(map(repr, schema['enum']))}, got {_show(value)}"
        )
    if isinstance(value, int | float) and not schema.get(
        "minimum", -math.inf
    ) <= value <= schema.get("maximum", math.inf):
        bounds = [
            f"{word} {schema[key]}"
            for key, word in (("minimum", "at least"), ("maximum", "at most"))
            if key in schema
        ]
        raise ToolError(f"{name!r} must be {' and '.join(bounds)}, got {_show(value)}")
    if isinstance(value, list) and len(value) > schema.get("maxItems", math.inf):
        raise ToolError(
            f"{name!r} must not have more than {schema['maxItems']} items, got {len(value)}"
        )
    if isinstance(value, list) and "items" in schema:
        return [_check(f"{name}[{i}]", item, schema["items"]) for i, item in enumerate(value)]
    return value


def _convert(name: str, value: Any, type_: str) -> Any:
    """The value as the schema's type; numbers may be written as text, integers as `12.0`."""
    if (
        type_ in ("integer", "number")
        and isinstance(value, str | int | float)
        and not isinstance(value, bool)
    ):
        try:
            number = float(value)
            if type_ == "integer" and number.is_integer():
                return (
                    int(value)
                    if isinstance(value, int | str) and str(value).strip().lstrip("+-").isdigit()
                    else int(number)
                )
            if type_ == "number" and math.isfinite(number):
                return number if isinstance(value, str) else value
        except (ValueError, OverflowError):
            pass
    python_type = {"string": str, "boolean": bool, "array": list, "object": dict}.get(type_)
    if type_ in ("integer", "number") or (
        python_type is not None and not isinstance(value, python_type)
    ):
        raise ToolError(f"{name!r} must be of type {type_}, got {_show(value)}")
    return value


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 100 else text[:100] + "…"
