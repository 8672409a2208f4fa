"""Asks a model one question until the reply can be used: shortens the prompt until it fits, gives a
cut reply more room, and asks again after a bad one. At most `MAX_REASKS` more questions and
`MAX_SHRINKS` cuts of the prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from babyagi.errors import ContextTooLongError, MalformedReplyError, RequestRefusedError
from babyagi.llm.port import Completion
from babyagi.llm.prompt import Message, Prompt, Speaker, shrink
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
    asker = _Asker(calls, path, prompt, role)
    await asker.bound_output()
    schema = asker.prompt.schema
    known = calls.abilities(role)
    if prompt.is_schema_late and not (known is not None and known.holds_schema):
        asker.prompt = replace(asker.prompt, schema=None)
    fault = ""
    for n in range(MAX_REASKS + 1):
        completion = await asker.complete(n)
        fault = _find_fault(completion, asker.prompt)
        if not fault or (
            fault == BE_SHORTER and n == MAX_REASKS and takes_cut and completion.text.strip()
        ):
            try:
                value = read(completion)
                return Asked(
                    value=value,
                    completion=completion,
                    prompt=asker.prompt,
                    usage=asker.usage,
                    n_shrunk=asker.n_shrunk,
                )
            except MalformedReplyError as error:
                fault = f"{error.what} Reply again."
                asker.prompt = replace(asker.prompt, schema=schema)
        if fault == DO_YOUR_PART and n > 0:
            raise RequestRefusedError(f"the model refused: {completion.refusal[:300]}")
        asker.feed_back(completion, fault)
    raise MalformedReplyError(
        f"the model gave no usable reply in {MAX_REASKS + 1} tries; the last time it was "
        f"told: {fault}"
    )


class _Asker:
    """The question, which changes from attempt to attempt."""

    def __init__(self, calls: Calls, path: str, prompt: Prompt, role: Role) -> None:
        self.prompt = prompt
        self.usage = Usage()
        self.n_shrunk = 0
        self._calls = calls
        self._path = path
        self._role = role
        self._has_more_room = False

    async def complete(self, n: int) -> Completion:
        """Ask for the `n`th time (from 0), cutting the prompt while it does not fit."""
        while True:
            again = f"/again/{n}" if n else ""
            shrunk = f"/shrunk/{self.n_shrunk}" if self.n_shrunk else ""
            try:
                completion = await self._calls.complete(
                    self._path + again + shrunk, self.prompt, role=self._role
                )
                self.usage += completion.usage
                return completion
            except ContextTooLongError:
                smaller = shrink(self.prompt) if self.n_shrunk < MAX_SHRINKS else None
                if smaller is None:
                    raise
                self.prompt, self.n_shrunk = smaller, self.n_shrunk + 1

    async def bound_output(self) -> None:
        """Limit the answer to what `Calls.bound_output` allows. If that is less than twice the
        wanted length, bound the schema to fit, and give a cut reply no more room."""
        wanted = self.prompt.max_output_tokens
        bound = await self._calls.bound_output(self._path, wanted)
        self.prompt = replace(self.prompt, max_output_tokens=bound)
        most = await self._calls.bound_output(self._path, 2 * wanted)
        self._has_more_room = most < 2 * wanted
        if self._has_more_room:
            self._fit_schema(bound)

    def _fit_schema(self, max_tokens: int) -> None:
        if self.prompt.schema is not None:
            fitting = fit_schema(self.prompt.schema, max_tokens=max_tokens)
            self.prompt = replace(self.prompt, schema=fitting)

    def feed_back(self, completion: Completion, fault: str) -> None:
        """Add the fault for the model to the prompt. The first time that a reply is cut off, only
        double its room."""
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
