"""The interfaces (ports) of models and embedders: a model takes a prompt and returns a completion,
an embedder turns texts into vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol, runtime_checkable

from babyagi.llm.prompt import Prompt, ToolCall
from babyagi.tasks import Reservation, Role, Usage

OnText = Callable[[str], None]
"""Receives each piece of an answer's text as it arrives, in order. The pieces are only for
display."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The answer of a model; its text is without thinking in tags and without chat markers.
    `finish_reason` is `stop`, `length`, `tool_calls`, `content_filter` or `unknown`.

    `model` is the name that the endpoint reported. If the endpoint reported no usage, `usage` is an
    upper bound.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    refusal: str = ""
    model: str
    usage: Usage

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Completion:
        fields = json.loads(text)
        fields["usage"] = Usage(**fields["usage"])
        fields["tool_calls"] = tuple(ToolCall(**call) for call in fields["tool_calls"])
        return cls(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What is known about a model and its server. None and 0 mean unknown.

    Attributes:
        takes_tools: tools in the API's own fields reach the model.
        holds_schema: replies follow a requested JSON Schema.
        context_tokens: the longest prompt that the server passes on uncut.
    """

    takes_tools: bool | None = None
    holds_schema: bool | None = None
    context_tokens: int = 0


@runtime_checkable
class ChatModel(Protocol):
    """A model that answers prompts. It keeps nothing between calls, and may be called
    concurrently. Two attributes are optional: its `abilities`, if it must be known what it can do,
    and its `deadline`, if it waits for late answers while its server lives."""

    name: str

    def reserve(self, prompt: Prompt) -> Reservation:
        """Return the maximum cost of one call with this prompt: an upper bound of the prompt's
        tokens plus the largest output, and what they cost if the price is known."""
        ...

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        """Send the prompt and return the answer. A failed request is repeated only if it was
        certainly not billed, and only for a few seconds.

        Args:
            on_text: receives each piece of the answer's text as it arrives. If the model cannot
                stream, it is called once or never.

        Raises:
            ModelUnavailableError: an outage or a rate limit; waiting helps.
            OverdueError: the answer was not complete in time.
            ContextTooLongError, RequestRefusedError: this prompt can never work.
            EndlessAnswerError: the answer did not end; another try may help.
            CredentialsError, ModelRejectedError: a person must act; no further request is made.
            ToolsUnsupportedError: the model does not support tools; the prompt may work without
                them. Once the endpoint has reported that, every later prompt with tools raises it
                without a request.
            MalformedReplyError: the endpoint repeatedly answered with something that is not a
                completion.
        """
        ...


class Embedder(Protocol):
    """Converts texts to vectors; may be called concurrently (`tests/llm/embedder_contract.py`
    checks every implementation).

    Attributes:
        space: names provider, model, dimension and version, and never changes. Vectors of two
            spaces are never compared.
        dimension: of each vector; may be 0 until the first one is computed.
        is_local: it uses no network, costs nothing, and returns the same bytes in every process, so
            that its calls need no journal.
    """

    space: str
    dimension: int
    is_local: bool

    def reserve(self, texts: Sequence[str]) -> Reservation:
        """Return the maximum cost of embedding the texts."""
        ...

    async def embed(self, texts: Sequence[str]) -> tuple[list[bytes], Usage]:
        """Return one unit vector per text as little-endian float32, in the order of `texts`, and
        the cost.

        Every text gets a vector, even an empty one; of a long text at least the beginning is
        embedded.

        Raises:
            IndexUnavailableError: waiting helps. Its `may_be_billed` is True if some of the texts
                may have been processed.
            CredentialsError, ModelRejectedError: a person must act; no further request is made.
        """
        ...
