"""Makes tools with `@tool` from typed functions and methods, and from whatever else can be run, and
loads a person's own tools.

The first lines of the docstring tell the model what the tool does. A parameter can be described in
the `Args:` section, in Google style, or as `Annotated[str, "what it is"]`. pydantic must know its
type. Before the function is called, the model's arguments are converted to these types; if that
fails, the model is told which argument is wrong.

A person's own functions are loaded from a module, a file or a folder, and run in this process.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any, NotRequired, overload

from babyagi.errors import SettingsError, ToolError
from babyagi.llm.shapes import Shape, ShapeError, object_of, to_plain
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Sink, Tool, in_thread

_ENTRY = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.+)")
_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Example|Examples|Note|Notes"
    r"|Source):[^\S\n]*$",
    re.MULTILINE,
)

Function = Callable[..., Any]


class ToolContext:
    """The run in which a tool is called. A parameter of this type is filled in by the program, and
    a model does not see it.

    Attributes:
        tool_name: the name by which the model has called the tool.
        agent: the `Agent` that runs; None in the task of an objective, and in an agent that is a
            tool.
    """

    def __init__(self, run: Running, tool_name: str) -> None:
        self.tool_name = tool_name
        self._run = run

    @property
    def agent(self) -> Any:
        return self._run.agent

    def finish(self, answer: str) -> None:
        """End the run after this step with this answer."""
        self._run.answer = answer

    def fail(self, reason: str) -> None:
        """End the run after this step without an answer, for this reason."""
        self._run.reason = reason or "no reason was given"


@dataclass(slots=True, kw_only=True)
class Running:
    """What tools may know of a run, and what they have made of it: the answer, or the reason of the
    failure, with which it ends; None if it goes on."""

    agent: Any = None
    answer: str | None = None
    reason: str | None = None

    @property
    def is_over(self) -> bool:
        return self.answer is not None or self.reason is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTool(Tool):
    """A tool made from a function. Calling it calls the function. If it was made from a method,
    each instance of the class has a tool of its own. `lent` is the name of the parameter that takes
    a `ToolContext`, if there is one."""

    function: Function
    shape: Shape
    is_method: bool = False
    lent: str = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool:
        if instance is None or not self.is_method:
            return self
        return replace(self.calling(types.MethodType(self.function, instance)), is_method=False)

    def calling(self, function: Function) -> FunctionTool:
        """Return the tool with another function of the same parameters."""
        return replace(self, function=function, run=_make_run(function, self.name, self.shape))


@overload
def tool(function: Function, /) -> FunctionTool: ...


@overload
def tool(
    thing: Any,
    /,
    *,
    name: str,
    description: str,
    effect: Effect | str = Effect.ONCE,
    output_variable: str = "results",
    return_direct: bool = False,
    reflect: int = 0,
) -> Tool: ...


@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    effect: Effect | str = Effect.ONCE,
    timeout_s: float = 30.0,
    max_output_chars: int = 16_000,
    return_direct: bool = False,
    reflect: int = 0,
    asks_approval: bool = False,
    sink: Sink | None = None,
    is_private: bool = False,
) -> Callable[[Function], FunctionTool]: ...


def tool(thing: Any = None, /, **options: Any) -> Tool | Callable[[Function], FunctionTool]:
    """Make a tool from a function or a method, or from another thing that can be run. A function
    that is not async runs in a thread.

    Args:
        thing: a function, a method, or an object that can be called: the model gets a text or a
            `Passage` that it returns unchanged, and any other value as JSON. Also an `Agent`,
            another tool, or an object with `run(query=…)`, such as a pipeline. One without type
            hints takes a single text.
        options: attributes of `Tool`. `description` is by default the docstring. `effect` is `once`
            by default; pass `read` for a function that only reads. With `asks_approval`, a call
            with the effect `once` waits until a person allows it. `output_variable` (`results`) is
            the part of a dict of results that the model gets; if there is none, it gets the first
            of the `answers`, else all.

    Raises:
        ValueError: there is no description, the docstring describes a parameter that does not
            exist, or a parameter has no type that can be described to a model.
    """
    if thing is None:
        return lambda given: _declare(given, **options)
    if hasattr(thing, "as_tool"):
        if not options.get("description"):
            how = "agent.as_tool(name, description)"
            raise ValueError(f"an agent is not a tool; make one of it: {how}")
        thing = thing.as_tool(options["name"], options["description"])
    if isinstance(thing, Tool):
        return replace(thing, **options)
    variable = options.pop("output_variable", "results")
    if hasattr(thing, "run") or (options.get("description") and _takes_one_text(thing)):
        return _declare(_as_function(thing, variable), **options)
    return _declare(thing, **options)


def _takes_one_text(thing: Function) -> bool:
    """Return whether a thing that can be called has no type hints, and at most one parameter that
    must be given."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except ValueError:  # some functions of C have none
        return True
    required = [one for one in parameters if one.default is one.empty]
    return len(required) == 1 and all(one.annotation is one.empty for one in parameters)


def _as_function(thing: Any, variable: str) -> Function:
    """Return a typed function that runs the thing on a text, and returns what is meant for a
    model."""

    async def ask(query: str) -> Any:
        call = partial(thing.run, query=query) if hasattr(thing, "run") else partial(thing, query)
        is_async = inspect.iscoroutinefunction(call)
        return _pick(await (call() if is_async else in_thread(call)), variable)

    return ask


def _pick(value: Any, variable: str) -> Any:
    if isinstance(value, Mapping):
        answers = value.get("answers") or [value]
        return _pick(value[variable], variable) if variable in value else _unpack(answers[0])
    return [_unpack(one) for one in value] if isinstance(value, list | tuple) else _unpack(value)


def _unpack(value: Any) -> Any:
    """Return the text of an answer or the content of a document, which may be an object or a dict;
    any other value unchanged."""
    names = ("answer", "content")
    has = value if isinstance(value, Mapping) else {one: getattr(value, one, None) for one in names}
    return next((has[one] for one in names if has.get(one) is not None), value)


def lend(tool: Tool, run: Running) -> Tool:
    """Return the tool for the calls of one run, with its `ToolContext` if it takes one."""
    if not (isinstance(tool, FunctionTool) and tool.lent):
        return tool
    return tool.calling(partial(tool.function, **{tool.lent: ToolContext(run, tool.name)}))


def tools_of(instance: object) -> tuple[FunctionTool, ...]:
    """Return the tools of an object's `@tool` methods, in the order of their definition. They are
    bound to the object, so they share its state."""
    found = (getattr(instance, name) for name in _names_of_tools(type(instance)))
    return tuple(one for one in found if isinstance(one, FunctionTool))


def _names_of_tools(kind: type) -> dict[str, object]:
    return {
        name: one
        for base in reversed(kind.__mro__)
        for name, one in vars(base).items()
        if isinstance(one, FunctionTool)
    }


def collect_tools(given: Sequence[Any]) -> list[Tool]:
    """Return the items of a list as tools: each `Tool` unchanged, a tool made from each function,
    and the tools of each object with `@tool` methods. Of a class with such methods an object is
    made.

    Raises:
        ValueError: an item is neither a tool nor something that can be one.
        TypeError: `given` is not a list.
    """
    if isinstance(given, str | Mapping) or callable(given) or not isinstance(given, Iterable):
        name = getattr(given, "name", None) or getattr(given, "__name__", "…")
        raise TypeError(f"tools must be a list: tools=[{name}]")
    return [tool for one in given for tool in _to_tools(one)]


def _to_tools(given: Any) -> Sequence[Tool]:
    given = given() if isinstance(given, type) and _names_of_tools(given) else given
    return tools_of(given) or [tool(given)]


def _declare(
    function: Function,
    *,
    name: str = "",
    description: str = "",
    effect: Effect | str = Effect.ONCE,
    **options: Any,
) -> FunctionTool:
    name = name or getattr(function, "__name__", "")
    if not callable(function) or not name:
        raise ValueError(f"a tool must be a Tool or a function with a name, got {function!r}"[:300])
    is_object = not (inspect.isroutine(function) or isinstance(function, partial))
    own = inspect.getdoc(type(function).__call__) if is_object else ""
    description, said = _read_docstring(name, own or inspect.getdoc(function) or "", description)
    hints = _find_hints(function, name)
    signature = list(inspect.signature(function).parameters.values())
    is_method = bool(signature) and signature[0].name == "self"
    lent = [one.name for one in signature if hints.get(one.name) is ToolContext]
    parameters = [one for one in signature[is_method:] if one.name not in lent]
    if unknown := set(said) - {parameter.name for parameter in parameters}:
        raise ValueError(
            f"tool {name}: its docstring describes {', '.join(sorted(unknown))}, which is missing "
            "in the signature"
        )
    shape = _find_shape(name, parameters, hints)
    return FunctionTool(
        name=name,
        description=description,
        parameters={
            **shape.schema,
            "properties": {
                one.name: _property(one, shape, said.get(one.name) or _find_note(hints[one.name]))
                for one in parameters
            },
        },
        effect=Effect(effect),
        run=_make_run(function, name, shape),
        check=partial(_convert, shape),
        function=function,
        shape=shape,
        is_method=is_method,
        lent=lent[0] if lent else "",
        **{"asks_approval": False, **options},
    )


def _convert(shape: Shape, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's arguments, converted to the types of the function's parameters. Raises
    `ToolError`, which says what was expected, if one cannot be converted."""
    try:
        return dict(shape.read(arguments, "", False))
    except ShapeError as error:
        raise ToolError(str(error)) from None


def _make_run(
    function: Function, name: str, shape: Shape
) -> Callable[[Mapping[str, Any]], Awaitable[Passage]]:
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        # the function behind an object that can be called
        getattr(function, "__call__", None)  # noqa: B004
    )

    async def run(arguments: Mapping[str, Any]) -> Passage:
        given = _convert(shape, arguments)
        value = await (function(**given) if is_async else in_thread(partial(function, **given)))
        is_made = isinstance(value, Passage)
        return value if is_made else Passage(text=to_text(value), origin=f"tool:{name}")

    return run


def to_text(value: Any) -> str:
    """Return a tool's value as text for a model: a text unchanged, any other value as JSON, or by
    `str` if it cannot be written as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=to_plain)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _read_docstring(name: str, text: str, given: str) -> tuple[str, dict[str, str]]:
    """Return the tool's description, which is the `given` one or else in the docstring, and the
    descriptions of its parameters by name. Raises `ValueError` if there is no description."""
    first, *sections = _SECTION.split(text.strip())
    description = given or " ".join(first.split())
    if not description:
        raise ValueError(
            f"tool {name} has no docstring to say what it does; one line is enough: "
            '"""Look up what an item costs."""'
        )
    said: dict[str, str] = {}
    for title, section in zip(sections[::2], sections[1::2], strict=True):
        if title in ("Args", "Arguments", "Parameters"):
            said |= _read_entries(section)
    return description, said


def _read_entries(section: str) -> dict[str, str]:
    said: dict[str, str] = {}
    for line in dedent(section).split("\n"):
        entry = _ENTRY.fullmatch(line)
        if entry:
            said[entry[1]] = entry[2].strip()
        elif line.strip() and said:
            last = next(reversed(said))
            said[last] = f"{said[last]} {line.strip()}"
    return said


def _find_hints(function: Function, name: str) -> Mapping[str, Any]:
    while isinstance(function, partial):
        function = function.func
    is_plain = inspect.isroutine(function)
    try:
        return typing.get_type_hints(
            function if is_plain else type(function).__call__, include_extras=True
        )
    except NameError as error:
        raise ValueError(
            f"tool {name}: a type in its signature cannot be found ({error}); define it at the top "
            "of the file"
        ) from None


def _find_shape(
    name: str, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> Shape:
    """Return the shape of the function's arguments: an object with a field for each parameter."""
    fields = {}
    for one in parameters:
        where = f"tool {name}: parameter {one.name}"
        if one.kind not in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY):
            raise ValueError(f"{where} cannot be passed by name")
        if one.name not in hints:
            raise ValueError(f"{where} has no type; write {one.name}: str, or another type")
        hint = hints[one.name]
        fields[one.name] = hint if one.default is one.empty else NotRequired[hint]
    try:
        return object_of(name, fields)
    except ValueError as error:
        raise ValueError(f"tool {name}: {error}") from None


def _find_note(hint: Any) -> str:
    notes = getattr(hint, "__metadata__", ())
    return next((note for note in notes if isinstance(note, str)), "")


def _property(parameter: inspect.Parameter, shape: Shape, said: str) -> dict[str, Any]:
    """Return the JSON Schema of a parameter, with its default and its description (`said`). If the
    default is None, the schema does not allow null, so the model leaves the parameter out."""
    schema = dict(shape.schema["properties"][parameter.name])
    rest = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if parameter.default is None and len(rest) == 1:
        del schema["anyOf"]
        schema = {**rest[0], **schema}
    if isinstance(parameter.default, str | int | float):
        with suppress(ValueError):  # a number that JSON cannot write, such as infinity
            default = json.dumps(parameter.default, default=to_plain, allow_nan=False)
            schema["default"] = json.loads(default)
    return {**schema, "description": said} if said else schema


# -- a person's own functions: from a module, a file, or a folder of files
# --------------------------------------------------------------------------------------------------


def load_tools(reference: str, *, cwd: Path) -> list[Tool]:
    """Load the tools that a reference names: `module`, `module:object`, `file.py`,
    `file.py:object`, or a folder of Python files.

    A module or file without an object gives its public tools, and the public functions with a
    docstring that it defines itself. An object is a tool, a function, or a list of these.

    Args:
        cwd: the folder in which relative paths and modules are looked for.

    Raises:
        SettingsError: the reference does not exist, cannot be imported, or names something that
            cannot be a tool.
    """
    try:
        tools = collect_tools(list(_find(reference, cwd)))
    except SettingsError:
        raise
    except Exception as error:  # the person's own code may raise anything
        raise SettingsError(
            f"the tools in {reference} cannot be loaded",
            why=f"{type(error).__name__}: {error}",
            fix="correct the code, or name another module:object, file.py or folder",
            guide="tools",
        ) from error
    if not tools:
        raise SettingsError(
            f"there is no tool in {reference}",
            why="the code there defines no tool, and no public function with a docstring",
            fix='write one, such as def price(item: str) -> float: """Look up what an item '
            'costs."""',
            guide="tools",
        )
    return tools


def _find(reference: str, cwd: Path) -> Iterable[Any]:
    path = (cwd / reference).resolve()
    if path.is_dir():
        return [one for file in sorted(path.glob("*.py")) for one in _public(_load_file(file))]
    where, _, name = reference.partition(":")
    is_file = where.endswith(".py")
    module = _load_file((cwd / where).resolve()) if is_file else _import(where, cwd)
    if not name:
        return _public(module)
    found = getattr(module, name)
    return found if isinstance(found, list | tuple) else [found]


def _import(name: str, cwd: Path) -> ModuleType:
    """Import a module by name; the folder `cwd` is searched first."""
    sys.path.insert(0, str(cwd))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(cwd))


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_babyagi_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _public(module: ModuleType) -> list[Tool | Callable[..., Any]]:
    """Return the public tools of a module, and the public functions with a docstring that it
    defines itself."""

    def is_tool(found: Any) -> bool:
        is_own = inspect.isfunction(found) and found.__module__ == module.__name__
        return isinstance(found, Tool) or (is_own and bool(found.__doc__))

    public = (found for name, found in vars(module).items() if not name.startswith("_"))
    return list(filter(is_tool, public))
