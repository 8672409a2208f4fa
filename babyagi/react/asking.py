"""Asks a model one question until its reply can be used: shortens the prompt until it fits, allows
a longer reply if one was cut off, and asks again after a bad one. There are at most `MAX_REASKS`
further requests for these reasons, and at most `MAX_SHRINKS` cuts of the prompt. Also finds out, by
two small questions, what a model and its server can do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from babyagi.errors import (
    ContextTooLongError,
    EndlessAnswerError,
    MalformedReplyError,
    RequestRefusedError,
    ToolsUnsupportedError,
)
from babyagi.llm.learning import LearningModel
from babyagi.llm.port import Abilities, Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolSpec, shrink
from babyagi.llm.shapes import fit_schema
from babyagi.react.protocols.base import say
from babyagi.react.values import read_json
from babyagi.tasks import Role, Usage
from babyagi.text import clean, disarm, repeated_end
from babyagi.tools.base import Calls

MAX_REASKS = 2
MAX_SHRINKS = 3
MAX_FED_BACK_CHARS = 20_000  # of an unusable reply; the next request repeats it to the model
MAX_LOOP_CHARS = 600  # of one that repeats itself: more of it makes the model go on with it


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[T]):
    """The outcome of a question.

    Attributes:
        value: what `read` returned for the reply.
        completion: the completion with the reply that was used.
        prompt: the prompt as it was sent last.
        usage: the usage of all requests.
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
    may_be_cut: bool = False,
) -> Asked[T]:
    """Ask the model until its reply can be used, and return what `read` makes of that reply.

    The first request is journaled as a step at `path`, the next ones at `path/again/N`. After the
    prompt was cut, `/shrunk/N` is appended.

    Args:
        read: raises `MalformedReplyError` for a reply that cannot be used; the error's text is
            shown to the model.
        may_be_cut: whether the reply to the last request is read although it is cut off. `read`
            must then refuse cut tool calls and JSON.
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
    fault = why = ""
    while asker.n_asked <= MAX_REASKS:
        try:
            completion = await calls.complete(asker.path, asker.prompt, role=role)
        except ContextTooLongError:
            if not asker.shrink():
                raise
            continue
        asker.usage += completion.usage
        fault = why = _find_fault(completion, asker.prompt)
        is_usable = may_be_cut and asker.n_asked == MAX_REASKS and completion.text.strip()
        if not fault or (is_usable and _is_cut(completion)):
            try:
                return Asked(
                    value=read(completion),
                    completion=completion,
                    prompt=asker.prompt,
                    usage=asker.usage,
                    n_shrunk=asker.n_shrunk,
                )
            except MalformedReplyError as error:
                why, fault = error.what, say("reply_again", what=error.what)
                asker.prompt = replace(asker.prompt, schema=asker.schema)
        if completion.refusal and asker.n_asked:
            raise RequestRefusedError(f"the model refused: {completion.refusal[:300]}")
        asker.feed_back(completion, fault)
    raise MalformedReplyError(say("no_usable_reply", n=str(MAX_REASKS + 1), why=why))


class _Asker:
    """Holds the prompt of one question to the model, and changes it from request to request.
    `schema` is the complete schema of the answer, even while the prompt is sent without one."""

    def __init__(self, calls: Calls, path: str, prompt: Prompt) -> None:
        self.prompt = prompt
        self.schema = prompt.schema
        self.usage = Usage()
        self.n_shrunk = 0
        self.n_asked = 0
        self._calls = calls
        self._path = path
        self._is_at_its_longest = False

    @property
    def path(self) -> str:
        """The path of the next request's step in the journal."""
        again = f"/again/{self.n_asked}" if self.n_asked else ""
        return self._path + again + (f"/shrunk/{self.n_shrunk}" if self.n_shrunk else "")

    def shrink(self) -> bool:
        """Cut the prompt, because it does not fit. Return False if nothing more may be cut."""
        smaller = shrink(self.prompt) if self.n_shrunk < MAX_SHRINKS else None
        if smaller is not None:
            self.prompt, self.n_shrunk = smaller, self.n_shrunk + 1
        return smaller is not None

    async def prepare(self, known: Abilities | None) -> None:
        """Limit the reply to the length that `Calls.bound_output` allows. If it allows less than
        twice the wanted length, bound the schema to fit, and do not lengthen the limit after a
        cut-off reply. With `is_schema_late`, leave the schema out of the first request, unless the
        model is known to follow schemas."""
        wanted = self.prompt.max_output_tokens
        bound = await self._calls.bound_output(self._path, wanted)
        self.prompt = replace(self.prompt, max_output_tokens=bound)
        longest = await self._calls.bound_output(self._path, 2 * wanted)
        self._is_at_its_longest = longest < 2 * wanted
        if self._is_at_its_longest:
            self._fit_schema(bound)
        self.schema = self.prompt.schema
        if self.prompt.is_schema_late and not (known is not None and known.holds_schema):
            self.prompt = replace(self.prompt, schema=None)

    def _fit_schema(self, max_tokens: int) -> None:
        if self.prompt.schema is not None:
            self.prompt = replace(
                self.prompt, schema=fit_schema(self.prompt.schema, max_tokens=max_tokens)
            )

    def feed_back(self, completion: Completion, fault: str) -> None:
        """Add the reply to the prompt, and a message to the model that says what is wrong with it.
        After the first reply that is cut off, only double the allowed length instead, if that is
        possible."""
        self.n_asked += 1
        is_cut, is_loop = _is_cut(completion), bool(repeated_end(completion.text))
        if is_cut and not is_loop and not self._is_at_its_longest:
            self._is_at_its_longest = True
            self.prompt = replace(self.prompt, max_output_tokens=2 * self.prompt.max_output_tokens)
            return
        if is_cut:
            self._fit_schema(self.prompt.max_output_tokens // 2)
        said = Message(
            speaker=Speaker.ASSISTANT,
            text=completion.text[: MAX_LOOP_CHARS if is_loop else MAX_FED_BACK_CHARS],
            origins=(f"model:{completion.model}",),
        )
        told = Message(speaker=Speaker.USER, text=disarm(clean(fault)), origins=("program",))
        self.prompt = replace(
            self.prompt,
            messages=(*self.prompt.messages, *([said] if completion.text else []), told),
        )


def _is_cut(completion: Completion) -> bool:
    return completion.finish_reason == "length" and not completion.refusal


def _find_fault(completion: Completion, prompt: Prompt) -> str:
    """Return a message to the model if its reply is unusable for every kind of question; "" for any
    other reply.

    Raises:
        RequestRefusedError: a content filter stopped the answer.
    """
    if completion.finish_reason == "content_filter":
        raise RequestRefusedError("the endpoint's content filter stopped the answer")
    if completion.refusal:
        return say("do_your_part")
    if _is_cut(completion):
        return say("say_once" if repeated_end(completion.text) else "be_shorter")
    is_empty = not completion.text.strip() and not (completion.tool_calls and prompt.tools)
    return say("not_empty") if is_empty else ""


# -- what a model and its server can do: whether it calls a tool, and whether a reply is guaranteed
# to fit a schema
# --------------------------------------------------------------------------------------------------


MAX_OUTPUT_TOKENS = 600  # with room for a model that reasons before it calls

NOTE_COLOUR = ToolSpec(
    name="note_colour",
    description=say("note_colour"),
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
AskAt = Callable[[str, Prompt], Awaitable[Completion]]
_FAULTS = (ContextTooLongError, RequestRefusedError, EndlessAnswerError, MalformedReplyError)


async def find_abilities(ask_at: AskAt, path: str, model: LearningModel) -> None:
    """Find out by small questions (probes) what `model`, the execution agent's, can do. It takes
    tools only if it calls the one of the first question; if it does not, a second question shows
    whether a reply follows a schema.

    Args:
        ask_at: sends a prompt to the model, by a path.

    Raises:
        Whatever `ask_at` raises, except refusals that show that an ability is missing.
    """
    with_tool = await _ask(ask_at, f"{path}/tools", replace(_PROBE, tools=(NOTE_COLOUR,)))
    takes_tools = bool(with_tool and with_tool.tool_calls)
    holds_schema = model.abilities.holds_schema
    if not takes_tools:
        held = replace(_PROBE, schema_name="colours", schema=COLOURS)
        without = await _ask(ask_at, f"{path}/schema", held)
        holds_schema = without is not None and _is_held(without.text)
    model.learn(replace(model.abilities, takes_tools=takes_tools, holds_schema=holds_schema))


_PROBE = Prompt(
    messages=(Message(speaker=Speaker.USER, text=say("probe_tools"), origins=("program",)),),
    max_output_tokens=MAX_OUTPUT_TOKENS,
)


async def _ask(ask_at: AskAt, path: str, prompt: Prompt) -> Completion | None:
    """Ask once and return the completion, or None if the endpoint refuses such a question."""
    try:
        return await ask_at(path, prompt)
    except (ToolsUnsupportedError, *_FAULTS):
        return None


def _is_held(text: str) -> bool:
    """Return whether the reply to a probe follows the schema that was sent with it. The text of the
    probe does not describe the schema, so a reply cannot follow it by chance."""
    value = read_json(text)
    return isinstance(value, dict) and set(value) == {"colours", "is_sure"}
