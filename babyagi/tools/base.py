"""The tools of agents: the parts of a tool, the check of the arguments that a model wrote, and the
call of a tool within its time limit."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import math
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

from babyagi.errors import ToolError
from babyagi.llm.learning import LearningModel
from babyagi.llm.port import Abilities, Completion
from babyagi.llm.prompt import Prompt, ToolSpec
from babyagi.llm.shapes import MAX_DEPTH, coerce, is_deep, is_of, show, takes_null
from babyagi.tasks import Artifact, Effect, Fetched, Passage, Role, Step, write_form

MODELS_TAKE = re.compile(r"[A-Za-z0-9_-]{1,64}")  # as the name of a tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The outcome of a tool call, for the model to read."""

    passage: Passage
    is_error: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, default=datetime.isoformat)

    @classmethod
    def from_json(cls, text: str) -> Observation:
        fields = json.loads(text)
        kept = fields["passage"]
        pages = (
            Fetched(**{**page, "fetched_at": datetime.fromisoformat(page["fetched_at"])})
            for page in kept.get("pages", ())
        )
        passage = Passage(
            text=kept["text"],
            origin=kept["origin"],
            sources=tuple(kept.get("sources", ())),
            pages=tuple(pages),
            artifacts=tuple(Artifact(**one) for one in kept.get("artifacts", ())),
        )
        return cls(passage=passage, is_error=fields["is_error"])


def read_observations(steps: Iterable[Step]) -> Iterator[Observation]:
    """Yield the outcomes of the steps that are tool calls, except those in a format of another
    version of this program."""
    for step in steps:
        if step.kind in ("tool", "once") and step.output is not None:
            try:
                yield Observation.from_json(step.output)
            except (ValueError, KeyError, TypeError):
                continue


class Calls(Protocol):
    """The calls of models and tools that an agent or a tool makes through the journal. Each call
    has a path, which identifies it in the journal: a second call with the same path is not made,
    and gives the outcome that the journal has of the first one."""

    async def complete(self, path: str, prompt: Prompt, *, role: Role) -> Completion: ...

    async def call_tool(
        self, path: str, tool: Tool, arguments: Mapping[str, Any]
    ) -> Observation: ...

    async def kept(self, path: str) -> str | None:
        """Return the text that `keep` stored in the journal at this path; None if there is none."""

    async def keep(self, path: str, word: str) -> str:
        """Store a text in the journal at this path, unless one is stored there already. Return the
        text that is stored there now."""

    async def bound_output(self, path: str, wanted: int) -> int:
        """Return how many output tokens the model call with this path may have: at most `wanted`,
        and fewer if the settings say so, or if an earlier attempt at this call was too slow."""

    def abilities(self, role: Role) -> Abilities | None:
        """Return the known abilities of the role's model; None if no test calls are needed to find
        them out."""

    def learning_model(self, role: Role) -> LearningModel | None:
        """Return the role's model if test calls find out its abilities; None otherwise."""


class PassedOn:
    """Passes every call on to another `Calls`: a base class for classes that change some calls."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def complete(self, path: str, prompt: Prompt, *, role: Role) -> Completion:
        return await self._calls.complete(path, prompt, role=role)

    async def call_tool(self, path: str, tool: Tool, arguments: Mapping[str, Any]) -> Observation:
        return await self._calls.call_tool(path, tool, arguments)

    async def kept(self, path: str) -> str | None:
        return await self._calls.kept(path)

    async def keep(self, path: str, word: str) -> str:
        return await self._calls.keep(path, word)

    async def bound_output(self, path: str, wanted: int) -> int:
        return await self._calls.bound_output(path, wanted)

    def abilities(self, role: Role) -> Abilities | None:
        return self._calls.abilities(role)

    def learning_model(self, role: Role) -> LearningModel | None:
        return self._calls.learning_model(role)


Compose = Callable[[Mapping[str, Any], Calls], Awaitable[Passage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where the arguments of a tool go when they leave this machine.

    Attributes:
        host: the host that gets them; '' if a call names it, or several may.
        addresses: the names of the arguments that say where a call goes, such as a page's address
            or who gets a message. What the person gave an address for may go there.
        sends: the names of the arguments that leave; empty: all of them.
        only: the domains at which the addresses must be; empty: any.
    """

    host: str = ""
    addresses: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a tool call would change, for the person who decides about the call.

    Attributes:
        state: a digest of what the call would change, in its present state. If the digest differs
            when the approved call is due, the call is not made.
        note: one sentence about the change, written by this program.
        parameter: the name of the argument that is shown as a difference in place of its value; ''
            if there is nothing to compare it with.
        lines: the difference, as (sign, line): `+` for an added, `-` for a removed, a blank for a
            kept line; `@` with the number of kept lines that are left out.
    """

    state: str
    note: str
    parameter: str = ""
    lines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a model can call.

    Attributes:
        parameters: a JSON Schema of type object.
        effect: what repeating a call would do. The program or a person sets it, never a server.
        run: makes the call. It takes the arguments, already checked against `parameters`, and
            returns a passage, or raises `ToolError` with one line for the model.
        timeout_s: the longest time that `run` may take.
        asks_person: whether a call is a question to a person. Then `run` is never called, and the
            task waits for the answer.
        compose: takes the place of `run` in a tool that consists of other calls. Each of these is a
            step of its own, below the path of the tool's call; `timeout_s` bounds each of them.
        check: checks what `parameters` cannot express, and raises `ToolError`.
        asks_approval: whether a call with the effect `once` waits until a person allows it, if the
            objective requires approvals.
        return_direct: whether the tool's output ends the agent's run, as its answer.
        reflect: how often a call may be repeated with other arguments, if the model judges that the
            output does not fit them.
        preview: returns what a call with these arguments would change, without changing anything.
        for_call: returns the tool for one call, by the call's owner (such as `task:3`) and key. For
            tools that keep files for each task. A call that is repeated after a crash has the same
            key.
        sink: where the arguments go; None if they stay on this machine. The program or a person
            sets it, never a server.
        is_private: whether what the tool gives is private to the person.
        offered: returns the tool as its server describes it now. If its `form` has changed, a
            person must allow the tool before it is called again.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    run: Callable[[Mapping[str, Any]], Awaitable[Passage]]
    timeout_s: float = 30.0
    max_output_chars: int = 16_000
    asks_person: bool = False
    return_direct: bool = False
    reflect: int = 0
    compose: Compose | None = None
    preview: Callable[[Mapping[str, Any]], Awaitable[Preview]] | None = None
    check: Callable[[Mapping[str, Any]], object] | None = None
    for_call: Callable[[str, str], Tool] | None = None
    asks_approval: bool = True
    sink: Sink | None = None
    is_private: bool = False
    offered: Callable[[], Awaitable[Tool]] | None = None

    def __post_init__(self) -> None:
        if not MODELS_TAKE.fullmatch(self.name):
            raise ValueError(
                f"a tool's name must have 1 to 64 letters, digits, _ or -, got {self.name[:100]!r}"
            )
        if self.reflect and (self.effect is Effect.ONCE or self.asks_person):
            raise ValueError(
                f"`reflect` of the tool {self.name} must be 0, because its calls must not be "
                "repeated"
            )

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)

    @property
    def origin(self) -> str:
        """The origin of what the tool says."""
        return f"{'private' if self.is_private else 'tool'}:{self.name}"

    @property
    def form(self) -> str:
        return write_form(self.description, self.parameters)

    @property
    def may_wait(self) -> bool:
        """Return whether a call of the tool may make its task wait for a person. Such a call never
        runs at the same time as other calls of the task."""
        return self.asks_person or self.effect is Effect.ONCE


def takes(*required: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `parameters` of a tool: the JSON Schema of an object with these properties, and no
    others. The `required` ones must be given."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def text_schema(description: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a text parameter."""
    return {"type": "string", "description": description}


def number_schema(description: str, *, least: int, most: int | None = None) -> Mapping[str, Any]:
    """Return the JSON Schema of a parameter that takes a whole number from `least` to `most`."""
    bounds = {"minimum": least, **({} if most is None else {"maximum": most})}
    return {"type": "integer", **bounds, "description": description}


def texts_schema(description: str, *, most: int) -> Mapping[str, Any]:
    """Return the JSON Schema of a parameter that takes a list of at most `most` texts."""
    items = {"items": {"type": "string"}, "maxItems": most}
    return {"type": "array", **items, "description": description}


def takes_text(parameter: str, description: str) -> Mapping[str, Any]:
    """Return the `parameters` of a tool with a single text parameter."""
    return takes(parameter, **{parameter: text_schema(description)})


async def run_composed(arguments: Mapping[str, Any]) -> Passage:
    """Raise `NotImplementedError`: the `run` of a tool that has `compose`, where it is never
    called."""
    raise NotImplementedError("a composed tool is run through its `compose`")


# --------------------------------------------------------------------------------------------------
# Parses the arguments that a model wrote, and checks them against the subset of JSON Schema that
# tools use: type, properties, required, enum, minimum, maximum, items and maxItems. Additional
# properties are always refused. All other keywords, such as references, combinations and patterns,
# are ignored.
# --------------------------------------------------------------------------------------------------

MAX_ARGUMENT_CHARS = 50_000
MAX_NAMED_CHOICES = 12

Schema = Mapping[str, Any]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice")
    return value


def _number(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError(f"{written} is not a JSON number")
    return number


class _Decoder(json.JSONDecoder):
    def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
        value, end = super().raw_decode(s, idx)
        if is_deep(value):
            raise json.JSONDecodeError(f"nested deeper than {MAX_DEPTH}", s, idx)
        return value, end


# For JSON from a model: refuses objects with a key twice, numbers that only Python accepts, and
# values that are nested too deeply.
DECODER = _Decoder(
    object_pairs_hook=_object, parse_float=_number, parse_constant=_number, strict=False
)


def parse_arguments(tool: Tool, arguments: str) -> dict[str, Any]:
    """Parse and check the arguments that a model wrote for the tool, and convert each to the type
    that the schema names.

    Empty text means no arguments; so does null, for a tool without parameters. If the JSON is not
    an object, it is taken as the argument of the only parameter, or of the only required one; so is
    an object that does not name the only parameter, if that takes an object. For
    other tools, a list is taken as the arguments of all parameters in order. `"12"` and `12.0`
    count as integers.

    Raises:
        ToolError: the arguments are invalid. The text is one line that says what to write instead.
    """
    value = _load(tool, arguments)
    properties: Mapping[str, Schema] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    if value is None and not properties:
        value = {}
    if not isinstance(value, dict) or _is_bare(value, properties):
        value = _name_bare(tool, value, arguments)
    if unknown := [key for key in value if key not in properties]:
        raise ToolError(
            f"{tool.name} has no parameter {unknown[0][:100]!r}; it takes {_usage(tool)}"
        )
    checked = {
        key: _check(key, coerce(given, properties[key]), properties[key])
        for key, given in value.items()
        if given is not None or key in required or takes_null(properties[key])
    }
    if missing := [key for key in required if key not in checked]:
        raise ToolError(f"{tool.name} needs {missing[0]!r}; it takes {_usage(tool)}")
    if tool.check is not None:
        tool.check(checked)
    return checked


def _is_bare(value: Mapping[str, Any], properties: Mapping[str, Schema]) -> bool:
    """Return whether an object is the argument of the only parameter, and not the arguments."""
    return [one.get("type") for one in properties.values()] == ["object"] and not (
        value.keys() & properties
    )


def _name_bare(tool: Tool, value: Any, written: str) -> dict[str, Any]:
    """Return the arguments for a `value` that is not a JSON object, as `parse_arguments` describes.
    A number for a parameter that takes text keeps its spelling, such as `007`.

    Raises:
        ToolError: the value can be neither a single argument nor a list of arguments.
    """
    properties: Mapping[str, Schema] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    if value is not None and (len(properties) == 1 or len(required) == 1):
        name = required[0] if len(required) == 1 else next(iter(properties))
        takes_words = properties.get(name, {}).get("type") == "string"
        is_number = isinstance(value, int | float)
        return {name: written.strip() if takes_words and is_number else value}
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
    return f"a JSON object {{{_describe_properties(tool.parameters)}}}"


def _describe_properties(schema: Schema) -> str:
    required = schema.get("required", ())
    return ", ".join(
        f'"{name}": {describe_type(one)}{"" if name in required else " (optional)"}'
        for name, one in schema.get("properties", {}).items()
    )


def describe_type(schema: Schema) -> str:
    """Return in words which type a JSON Schema describes, such as `string`, `integer or null`,
    `array of string`, `"a" or "b"` or `object {"x": number}`."""
    kind = schema.get("type", "any")
    if "enum" in schema and len(schema["enum"]) <= MAX_NAMED_CHOICES:
        return " or ".join(json.dumps(one, ensure_ascii=False) for one in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(describe_type, schema["anyOf"])))
    if isinstance(schema.get("items"), Mapping) and kind == "array":
        return f"array of {describe_type(schema['items'])}"
    if kind == "object" and schema.get("properties"):
        return f"object {{{_describe_properties(schema)}}}"
    if "format" in schema:
        return f"{schema['format']} as text"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _check(name: str, value: Any, schema: Schema) -> Any:
    kind = schema.get("type", "")
    if isinstance(kind, str) and not is_of(value, kind):
        raise ToolError(f"{name!r} must be of type {kind}, got {show(value)}")
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError(
            f"{name!r} must be one of {', '.join(map(repr, schema['enum']))}, got {show(value)}"
        )
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if isinstance(value, int | float) and not least <= value <= most:
        words = (("minimum", "at least"), ("maximum", "at most"))
        bounds = [f"{word} {schema[key]}" for key, word in words if key in schema]
        raise ToolError(f"{name!r} must be {' and '.join(bounds)}, got {show(value)}")
    if isinstance(value, list) and len(value) > schema.get("maxItems", math.inf):
        raise ToolError(
            f"{name!r} must not have more than {schema['maxItems']} items, got {len(value)}"
        )
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_check(f"{name}[{i}]", item, schema["items"]) for i, item in enumerate(value)]
    return value


# -- one call of a tool: its caller continues when the time is over, even if the tool hangs
# --------------------------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

GRACE_S = 1.0  # for a cancelled tool to clean up


class OutOfTimeError(Exception):
    """A tool call took longer than the tool's `timeout_s`."""


class ToolExitError(Exception):
    """A tool tried to end the process, or the asyncio task in which it runs."""


async def run_in_time(tool: Tool, arguments: Mapping[str, Any]) -> Passage:
    """Call the tool, and return its output.

    The tool runs in its own asyncio task, which is cancelled after `tool.timeout_s`. If the tool
    still runs `GRACE_S` later, it is abandoned and left to itself.

    Raises:
        OutOfTimeError: the call took longer than `tool.timeout_s`.
        ToolExitError: the tool tried to end the process or its asyncio task.
        Exception: whatever the tool raises.
    """
    call = asyncio.get_running_loop().create_task(_run(tool, arguments))
    # reads the exception even if this coroutine is cancelled; asyncio warns about unread ones
    call.add_done_callback(lambda call: call.cancelled() or call.exception())
    try:
        await asyncio.wait([call], timeout=tool.timeout_s)
        if not call.done():
            raise OutOfTimeError
    finally:
        if not call.done():
            call.cancel()
            await asyncio.wait([call], timeout=GRACE_S)
        if not call.done():
            logger.warning(
                "%s is still running although it was cancelled; it is abandoned", tool.name
            )
    error = asyncio.CancelledError() if call.cancelled() else call.exception()
    if error is not None and not isinstance(error, Exception):
        raise ToolExitError from error
    return call.result()


async def _run(tool: Tool, arguments: Mapping[str, Any]) -> Passage:
    try:
        return await tool.run(arguments)
    except SystemExit as error:  # asyncio would pass it on to the event loop
        raise ToolExitError from error


async def in_thread(function: Callable[[], Any]) -> Any:
    """Call the function in a new thread, and return its value.

    Python cannot stop a thread. Neither the event loop nor the process waits at exit for this
    thread, so a function that hangs cannot delay the end of a run.
    """
    outcome: Future[Any] = Future()
    outcome.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.set_result(context.run(function))
        except StopIteration as error:  # a future does not accept it
            outcome.set_exception(RuntimeError(f"the function raised {error!r}"))
        except Exception as error:
            outcome.set_exception(error)
        except BaseException as error:
            fault = ToolExitError()
            fault.__cause__ = error
            outcome.set_exception(fault)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(outcome)
