"""Asks a model one question until the reply can be used: shortens the prompt until it fits, gives a
cut reply more room, and asks again after a bad one. At most `MAX_REASKS` more questions and
`MAX_SHRINKS` cuts of the prompt. Probes the abilities of a model and its server with two small
questions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from babyagi.errors import (
    ContextTooLongError,
    EndlessAnswerError,
    MalformedReplyError,
    RequestRefusedError,
    ToolsUnsupportedError,
)
from babyagi.llm.port import Abilities, Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolSpec, shrink
from babyagi.shapes import fit_schema
from babyagi.tasks import Role, Usage
from babyagi.text import clean, disarm
from babyagi.tools.base import Calls

MAX_REASKS = 2
MAX_SHRINKS = 3
MAX_FED_BACK_CHARS = 20_000  # of an unusable reply, which the next request contains

BE_SHORTER = "Your answer was cut off. Give it again, complete and shorter."
NOT_EMPTY = "Your reply was empty. Give the answer itself."
DO_YOUR_PART = "If you cannot do all of it, do the part that you can, and say what is left out."

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[T]):
    """The outcome of a question.

    Attributes:
        value: what was read from the reply.
        completion: the completion that holds the reply.
        prompt: the prompt as it was last asked.
        usage: the usage of all attempts.
        n_shrunk: how often the prompt was cut.
    """

    value: T
    completion: Completion
    prompt: Prompt
    usage: Usage
    n_shrunk: int


def read_text(completion: Completion) -> str:
    return completion.text.strip()


async def ask(
    calls: Calls,
    path: str,
    prompt: Prompt,
    *,
    role: Role,
    read: Callable[[Completion], T],
    takes_cut: bool = False,
) -> Asked[T]:
    """Return what `read` finds in the model's reply.

    Steps are journaled at `path`, then at `path/again/N`, with `/shrunk/N` appended where the
    prompt was cut.

    Args:
        read: raises `MalformedReplyError` for a reply that cannot be used; its text is shown to the
            model.
        takes_cut: whether a text that is cut off every time is better than none. It must be False
            for tool calls and JSON.
        prompt: with `is_schema_late`, its schema is sent only after a reply that could not be read,
            unless the model is known to follow a schema.

    Raises:
        MalformedReplyError: no reply could be used.
        RequestRefusedError: the model refused twice, or a filter stopped it.
        ContextTooLongError: the prompt does not fit, although everything that may be cut was cut.
        Whatever else `Calls.complete` raises.
    """
    asker = _Asker(calls, path, prompt)
    await asker.prepare(calls.abilities(role))
    fault = ""
    while asker.n_asked <= MAX_REASKS:
        try:
            completion = await calls.complete(asker.path, asker.prompt, role=role)
        except ContextTooLongError:
            if not asker.shrink():
                raise
            continue
        asker.usage += completion.usage
        fault = _find_fault(completion, asker.prompt)
        is_cut_for_good = fault == BE_SHORTER and asker.n_asked == MAX_REASKS
        if not fault or (is_cut_for_good and takes_cut and completion.text.strip()):
            try:
                return Asked(
                    value=read(completion),
                    completion=completion,
                    prompt=asker.prompt,
                    usage=asker.usage,
                    n_shrunk=asker.n_shrunk,
                )
            except MalformedReplyError as error:
                fault = f"{error.what} Reply again."
                asker.prompt = replace(asker.prompt, schema=asker.schema)
        if fault == DO_YOUR_PART and asker.n_asked:
            raise RequestRefusedError(f"the model refused: {completion.refusal[:300]}")
        asker.feed_back(completion, fault)
    raise MalformedReplyError(
        f"the model gave no usable reply in {MAX_REASKS + 1} tries; the last time it was "
        f"told: {fault}"
    )


class _Asker:
    """The question, which changes from attempt to attempt. `schema` is the complete schema, even
    while the prompt is sent without one."""

    def __init__(self, calls: Calls, path: str, prompt: Prompt) -> None:
        self.prompt = prompt
        self.schema = prompt.schema
        self.usage = Usage()
        self.n_shrunk = 0
        self.n_asked = 0
        self._calls = calls
        self._path = path
        self._has_more_room = False

    @property
    def path(self) -> str:
        """The path of the next call."""
        again = f"/again/{self.n_asked}" if self.n_asked else ""
        return self._path + again + (f"/shrunk/{self.n_shrunk}" if self.n_shrunk else "")

    def shrink(self) -> bool:
        """Cut the prompt, because it does not fit. Return False when nothing may be cut any
        more."""
        smaller = shrink(self.prompt) if self.n_shrunk < MAX_SHRINKS else None
        if smaller is not None:
            self.prompt, self.n_shrunk = smaller, self.n_shrunk + 1
        return smaller is not None

    async def prepare(self, known: Abilities | None) -> None:
        """Limit the answer to what `Calls.bound_output` allows. If that is less than twice the
        wanted length, bound the schema to fit, and give a cut reply no more room. Leave a late
        schema out for now, unless the model is known to follow one."""
        wanted = self.prompt.max_output_tokens
        bound = await self._calls.bound_output(self._path, wanted)
        self.prompt = replace(self.prompt, max_output_tokens=bound)
        most = await self._calls.bound_output(self._path, 2 * wanted)
        self._has_more_room = most < 2 * wanted
        if self._has_more_room:
            self._fit_schema(bound)
        self.schema = self.prompt.schema
        if self.prompt.is_schema_late and not (known is not None and known.holds_schema):
            self.prompt = replace(self.prompt, schema=None)

    def _fit_schema(self, max_tokens: int) -> None:
        if self.prompt.schema is not None:
            fitting = fit_schema(self.prompt.schema, max_tokens=max_tokens)
            self.prompt = replace(self.prompt, schema=fitting)

    def feed_back(self, completion: Completion, fault: str) -> None:
        """Add the fault for the model to the prompt. The first time that a reply is cut off, only
        double its room."""
        self.n_asked += 1
        if fault == BE_SHORTER and not self._has_more_room:
            self._has_more_room = True
            self.prompt = replace(self.prompt, max_output_tokens=2 * self.prompt.max_output_tokens)
            return
        if fault == BE_SHORTER:
            self._fit_schema(self.prompt.max_output_tokens // 2)
        said = Message(
            speaker=Speaker.ASSISTANT,
            text=completion.text[:MAX_FED_BACK_CHARS],
            origins=(f"model:{completion.model}",),
        )
        told = Message(speaker=Speaker.USER, text=disarm(clean(fault)), origins=("program",))
        self.prompt = replace(
            self.prompt,
            messages=(*self.prompt.messages, *([said] if completion.text else []), told),
        )


def _find_fault(completion: Completion, prompt: Prompt) -> str:
    """Return what to tell the model about a reply that is unusable for any question; "" if it is
    usable.

    Raises:
        RequestRefusedError: a content filter stopped the answer.
    """
    if completion.finish_reason == "content_filter":
        raise RequestRefusedError("the endpoint's content filter stopped the answer")
    if completion.refusal:
        return DO_YOUR_PART
    if completion.finish_reason == "length":
        return BE_SHORTER
    is_empty = not completion.text.strip() and not (completion.tool_calls and prompt.tools)
    return NOT_EMPTY if is_empty else ""


# -- what a model and its server can do: whether tools reach the model, and whether a reply is
# guaranteed to fit a schema
# --------------------------------------------------------------------------------------------------


MAX_OUTPUT_TOKENS = 64
MIN_TOOL_TOKENS = 40  # the least size of the tool below in any tokenizer, without its schema
ASK = "Note the colour blue. If you can call a tool, call note_colour; else reply with a list."

NOTE_COLOUR = ToolSpec(
    name="note_colour",
    description=(
        "Notes one colour by its name. Give the usual English name of the colour in small letters, "
        "for instance red, green, yellow, orange, purple, brown, black or white. Call it once for "
        "each colour that you were asked to note, and wait for what it returns before you go on. "
        "It returns the number of colours that were noted so far. It never forgets a colour, and "
        "it takes no others than those that have a name."
    ),
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}},
        "required": ["name"],
    },
)
COLOURS = {
    "type": "object",
    "properties": {
        "colours": {"type": "array", "items": {"enum": ["blue", "red"]}, "maxItems": 2},
        "is_sure": {"type": "boolean"},
    },
    "required": ["colours", "is_sure"],
    "additionalProperties": False,
}
_FAULTS = (ContextTooLongError, RequestRefusedError, EndlessAnswerError, MalformedReplyError)


async def find_abilities(calls: Calls, path: str, known: Abilities) -> Abilities:
    """Probe the abilities of the execution agent's model, store and return them. One question is
    enough if the model calls the tool at once; otherwise there are two.

    Raises:
        Whatever `Calls.complete` raises that says nothing about the abilities.
    """
    with_tool = await _ask(calls, f"{path}/tools", replace(_PROBE, tools=(NOTE_COLOUR,)))
    if with_tool is not None and with_tool.tool_calls:
        found = replace(known, takes_tools=True)
    else:
        held = replace(_PROBE, schema_name="colours", schema=COLOURS)
        without = await _ask(calls, f"{path}/schema", held)
        found = replace(
            known,
            takes_tools=_reach(with_tool, without),
            holds_schema=without is not None and _is_held(without.text),
        )
    # keep what was learnt meanwhile from other replies
    learnt = calls.abilities(Role.EXECUTION) or known
    found = replace(learnt, takes_tools=found.takes_tools, holds_schema=found.holds_schema)
    calls.learn(Role.EXECUTION, found)
    return found


_PROBE = Prompt(
    messages=(Message(speaker=Speaker.USER, text=ASK, origins=("program",)),),
    max_output_tokens=MAX_OUTPUT_TOKENS,
)


async def _ask(calls: Calls, path: str, prompt: Prompt) -> Completion | None:
    """Return the completion, or None if the endpoint refuses such a question."""
    try:
        return await calls.complete(path, prompt, role=Role.EXECUTION)
    except (ToolsUnsupportedError, *_FAULTS):
        return None


def _reach(with_tool: Completion | None, without: Completion | None) -> bool:
    """Return whether the tool was counted in the tokens of the prompt. If the endpoint counts no
    tokens and the model calls no tool, the endpoint is assumed to drop tools."""
    if with_tool is None or without is None:
        return False
    if with_tool.usage.unconfirmed_tokens or without.usage.unconfirmed_tokens:
        return False
    return with_tool.usage.prompt_tokens - without.usage.prompt_tokens >= MIN_TOOL_TOKENS


def _is_held(text: str) -> bool:
    """Return whether the reply follows the schema, which the question does not describe."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and set(value) == {"colours", "is_sure"}
