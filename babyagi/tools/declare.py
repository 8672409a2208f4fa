"""`@tool`: a tool from a typed function or method; its signature and its docstring say the same, or
it is no tool.

Types: str, int, float, bool, list and list[…] of these, dict, Literal of texts or numbers, any of
them `| None`. The docstring is
Google style: what the tool does, then `Args:` with one entry for each parameter.
"""

from __future__ import annotations

import inspect
import json
import re
import types
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Union, overload

from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Tool, in_thread

_TYPES: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
}
_ENTRY = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.+)")
_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Returns|Raises|Yields|Example|Examples|Note|Notes"
    r"|Source):\s*$"
)

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool(Tool):
    """A tool made from a function, which can still be called as one. In a class it is a tool of
    each instance."""

    function: Function
    is_method: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool:
        if instance is None or not self.is_method:
            return self
        bound = types.MethodType(self.function, instance)
        return replace(self, function=bound, is_method=False, run=_make_run(bound, self.name))


@overload
def tool(function: Function, /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str = "",
    effect: Effect | str = Effect.ONCE,
    timeout_s: float = 30.0,
    max_output_chars: int = 16_000,
    return_direct: bool = False,
    reflect: int = 0,
) -> Callable[[Function], FunctionTool]: ...


def tool(
    function: Function | None = None, /, **options: Any
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool from a function or a method, async or not; what is not async runs in a thread.

    Args:
        function: what is called. Text and passages are given to the model as they are, other values
            as JSON.
        options: those of `Tool`. `effect` is `once` unless said otherwise: a call that reads only
            should say `read`.

    Raises:
        ValueError: signature and docstring do not agree, a parameter has no type, or none that a
        model can be told.
    """
    if function is None:
        return lambda given: _declare(given, **options)
    return _declare(function, **options)


def tools_of(instance: object) -> tuple[FunctionTool, ...]:
    """The tools of an object, in the order of its class: what its `@tool` methods are made of,
    sharing its state."""
    names = dict.fromkeys(name for kind in reversed(type(instance).__mro__) for name in vars(kind))
    return tuple(
        found for name in names if isinstance(found := getattr(instance, name, None), FunctionTool)
    )


def _declare(
    function: Function, *, name: str = "", effect: Effect | str = Effect.ONCE, **options: Any
) -> FunctionTool:
    name = name or function.__name__
    description, said = _read_docstring(name, inspect.getdoc(function) or "")
    signature = list(inspect.signature(function).parameters.values())
    is_method = bool(signature) and signature[0].name == "self"
    parameters = signature[1:] if is_method else signature
    named = [parameter.name for parameter in parameters]
    if wrong := set(named) ^ set(said):
        where = "signature" if wrong & set(said) else "docstring"
        raise ValueError(f"tool {name}: {', '.join(sorted(wrong))} is missing in the {where}")
    hints = typing.get_type_hints(function)
    properties = {
        parameter.name: _property(name, parameter, hints, said[parameter.name])
        for parameter in parameters
    }
    required = [
        parameter.name for parameter in parameters if parameter.default is inspect.Parameter.empty
    ]
    return FunctionTool(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        effect=Effect(effect),
        run=_make_run(function, name),
        function=function,
        is_method=is_method,
        **options,
    )


def _make_run(function: Function, name: str) -> Callable[[Mapping[str, Any]], Awaitable[Passage]]:
    async def run(arguments: Mapping[str, Any]) -> Passage:
        if inspect.iscoroutinefunction(function):
            value = await function(**arguments)
        else:
            value = await in_thread(partial(function, **arguments))
        return (
            value
            if isinstance(value, Passage)
            else Passage(text=to_text(value), origin=f"tool:{name}")
        )

    return run


def to_text(value: Any) -> str:
    """What a model is shown of a value: text as it is, all else as JSON where it can be put so."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def _read_docstring(name: str, text: str) -> tuple[str, dict[str, str]]:
    """The description, and what is said of each parameter."""
    lines = text.strip().split("\n")
    starts = [at for at, line in enumerate(lines) if _SECTION.fullmatch(line)]
    description = " ".join(" ".join(lines[: starts[0] if starts else None]).split())
    if not description:
        raise ValueError(f"tool {name} has no docstring to say what it does")
    said: dict[str, str] = {}
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        if lines[start].startswith(("Args", "Arguments", "Parameters")):
            said |= _read_entries(lines[start + 1 : end])
    return description, said


def _read_entries(lines: Sequence[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for line in lines:
        entry = _ENTRY.fullmatch(line[margin:])
        if entry:
            said[entry[1]] = entry[2].strip()
        elif line.strip() and said:
            last = next(reversed(said))
            said[last] = f"{said[last]} {line.strip()}"
    return said


def _property(
    name: str, parameter: inspect.Parameter, hints: Mapping[str, Any], said: str
) -> dict[str, Any]:
    where = f"tool {name}: parameter {parameter.name}"
    if parameter.kind in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
        inspect.Parameter.POSITIONAL_ONLY,
    ):
        raise ValueError(f"{where} cannot be given by its name")
    if parameter.name not in hints:
        raise ValueError(f"{where} has no type")
    return {**_schema(where, hints[parameter.name]), "description": said}


def _schema(where: str, hint: Any) -> dict[str, Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        kept = [one for one in inner if one is not type(None)]
        if len(kept) == 1:
            return _schema(where, kept[0])
    elif (
        origin is Literal
        and len({type(value) for value in inner}) == 1
        and type(inner[0]) in _TYPES
    ):
        return {"type": _TYPES[type(inner[0])], "enum": list(inner)}
    elif origin is list:
        return {"type": "array", "items": _schema(where, inner[0])}
    elif (origin or hint) in _TYPES:
        return {"type": _TYPES[origin or hint]}
    raise ValueError(f"{where} has the type {hint}, which a model cannot be told")
