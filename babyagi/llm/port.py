"""The model's port: one question, one completion."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from babyagi.llm.prompt import Prompt, ToolCall
from babyagi.tasks import Reservation, Role, Usage

OnText = Callable[[str], None]
"""Is told each piece of an answer's text as it arrives, in order: passing signals, never state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a model answered. `finish_reason` is `stop`, `length`, `tool_calls`, `content_filter` or
    `unknown`.

    `model` is the name that the endpoint says answered; `usage` is complete (estimated upwards
    where the endpoint gave none).
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    refusal: str = ""
    model: str
    usage: Usage

    def to_json(self) -> str:
        return json.dumps(self, ensure_ascii=False, default=_fields)

    @classmethod
    def from_json(cls, text: str) -> Completion:
        fields = json.loads(text)
        fields["usage"] = Usage(**fields["usage"])
        fields["tool_calls"] = tuple(ToolCall(**call) for call in fields["tool_calls"])
        return cls(**fields)


def _fields(noun: Any) -> dict[str, Any]:
    return {name: getattr(noun, name) for name in noun.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a model and the server in front of it are known to do; None and 0 are unknown.

    Attributes:
        takes_tools: tools in fields of their own reach the model.
        holds_schema: a reply is held to a JSON Schema.
        context_tokens: the longest prompt that is read whole.
        counts_tokens: the server says what a call took.
        reasons_apart: it reasons in a field of its own, which counts as output.
    """

    takes_tools: bool | None = None
    holds_schema: bool | None = None
    context_tokens: int = 0
    counts_tokens: bool | None = None
    reasons_apart: bool | None = None


@runtime_checkable
class Adaptive(Protocol):
    """A model whose abilities are found out, not assumed.

    Attributes:
        probing: held while they are asked for, so that tasks that begin at once ask once.
    """

    probing: asyncio.Lock

    @property
    def abilities(self) -> Abilities: ...

    def learn(self, found: Abilities) -> None:
        """Remember what was found out."""
        ...


class ChatModel(Protocol):
    """A model that answers. Stateless between calls; safe to call many times at once."""

    name: str

    def reserve(self, prompt: Prompt) -> Reservation:
        """The most that one call with this prompt may cost: its bound plus the largest output,
        priced where a price is known."""
        ...

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        """Send the prompt once, retrying only what surely was not billed and is over within
        seconds.

        Args:
            on_text: is told each piece of the answer's text as it arrives; a model that cannot
                stream calls it never or once.

        Raises:
            ModelUnavailableError: an outage or a rate limit; time mends it. OverdueError: no whole
            answer came in time.
            ContextTooLongError, RequestRefusedError: this prompt can never work.
            EndlessAnswerError: the answer had no end, or was stopped because it was clearly none;
            asking once more may help.
            CredentialsError, ModelRejectedError: a person must act; no further request is made.
            ToolsUnsupportedError: the model takes no tools; the prompt without them may work. Said
                once by the endpoint, it holds for every later prompt with tools, without a request.
            MalformedReplyError: the endpoint answered with something that is no completion, again
            and again.
        """
        ...

    async def close(self) -> None: ...


class Embedder(Protocol):
    """Texts to vectors; safe to call many times at once (`tests/llm/embedder_contract.py` holds
    every implementation to it).

    `space` names provider, model, dimension and version, and never changes; vectors of two spaces
    never mix. `dimension` is right once a vector was given.
    """

    space: str
    dimension: int
    is_local: bool  # True: no network, no cost, the same bytes in every process; needs no journal

    def reserve(self, texts: Sequence[str]) -> Reservation:
        """The most that embedding the texts may cost."""
        ...

    async def embed(self, texts: Sequence[str]) -> tuple[list[bytes], Usage]:
        """Return one unit vector per text as little-endian float32, in the order of `texts`, and
        what it cost.

        Any text gets one, also an empty one; of a long one at least the beginning counts.

        Raises:
            IndexUnavailableError: time mends it; `may_be_billed` when some of the texts may have
            been worked on.
            CredentialsError, ModelRejectedError: a person must act, and no further request is made.
        """
        ...

    async def close(self) -> None:
        """Calling it again changes nothing."""
        ...
