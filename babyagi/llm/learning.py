"""Learns from the replies of an unknown server what its model can do, and remembers it by address
and model.

If the server cuts a prompt, it counts only the tokens of the rest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from babyagi.errors import ContextTooLongError, ToolsUnsupportedError
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.port import Abilities, Completion, OnText
from babyagi.llm.prompt import TEMPLATE_TOKENS, Prompt, prompt_text_bytes
from babyagi.net.addresses import hostname_of
from babyagi.tasks import Role

KNOWN_PROVIDERS = tuple(
    "openai.com azure.com anthropic.com googleapis.com mistral.ai groq.com together.xyz "
    "together.ai openrouter.ai deepseek.com x.ai fireworks.ai perplexity.ai cerebras.ai cohere.com "
    "nvidia.com".split()
)
MIN_MEASURED_BYTES = 500  # a shorter prompt does not show how many tokens a byte makes
MAX_BYTES_PER_TOKEN = 8  # in a text of many words, the mean token is shorter than this
SURELY_LESS = 0.7  # a count below this share of the expected tokens lacks part of the prompt
MIN_CONTEXT_TOKENS = 1000
CONTEXT_STEP = 256  # the length of every context is a multiple of this
CONTEXT_SLACK = 8


def is_known_provider(base_url: str) -> bool:
    """Return whether the address belongs to a provider that is known to support tools. An empty
    address means OpenAI's."""
    host = hostname_of(base_url)
    return not base_url or any(f".{host}".endswith(f".{known}") for known in KNOWN_PROVIDERS)


def write_abilities(found: Abilities) -> str:
    return json.dumps(asdict(found))


def read_abilities(text: str) -> Abilities:
    """Parse stored abilities. From text that cannot be parsed, return abilities that are all
    unknown."""
    try:
        return Abilities(**json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return Abilities()


def describe(found: Abilities) -> str:
    """Return the abilities of a model and its server in words, for a person; "" if they are
    unknown."""
    if found.takes_tools is None:
        return ""
    said = ["it brought a native call" if found.takes_tools else "it brought no native call"]
    if found.holds_schema is not None:
        said.append("held a JSON schema" if found.holds_schema else "held no JSON schema")
    said += [f"reads {found.context_tokens:,} tokens of a prompt"] if found.context_tokens else []
    return ", ".join(said)


class LearningModel(OpenAIModel):
    """A model at a server that is not known, which learns from each reply.

    Args:
        known: the remembered abilities.
        remember: stores what was learned.
        options: those of `OpenAIModel`.

    Attributes:
        abilities: what is known by now.
        probing: the lock to hold while small test calls (probes) find the abilities out. Tasks that
            start at the same time wait for it, and find the result of the first one's probe.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        *,
        known: Abilities,
        remember: Callable[[Abilities], Any],
        **options: Any,
    ) -> None:
        super().__init__(name, endpoint, **options)
        self.probing = asyncio.Lock()
        self.abilities, self._remember = known, remember
        self._density: float | None = None  # the smallest ratio of counted tokens to bytes

    def learn(self, found: Abilities) -> None:
        if found != self.abilities:
            self.abilities = found
            self._remember(found)

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        self._check_context(prompt)
        try:
            completion = await super().complete(prompt, role=role, on_text=on_text)
        except ToolsUnsupportedError:
            self.learn(replace(self.abilities, takes_tools=False))
            raise
        self._look_at(prompt, completion)
        return completion

    # -- details
    # ----------------------------------------------------------------------------------------------

    def _check_context(self, prompt: Prompt) -> None:
        """Raise `ContextTooLongError` for a prompt that the server would cut."""
        density = self._density or 1 / MAX_BYTES_PER_TOKEN
        n_tokens = int(prompt_text_bytes(prompt) * density)
        if 0 < self.abilities.context_tokens < n_tokens:
            raise self._too_long(n_tokens, may_be_billed=False)

    def _look_at(self, prompt: Prompt, completion: Completion) -> None:
        """Learn from the token count of a reply.

        Raises:
            ContextTooLongError: the server cut the prompt. The call counts as billed.
        """
        # tools that are not supported are no part of the prompt
        takes_all = not prompt.tools or self.abilities.takes_tools
        if completion.usage.unconfirmed_tokens or not takes_all:
            return
        n_bytes, n_counted = prompt_text_bytes(prompt), completion.usage.prompt_tokens
        least = n_bytes * max((self._density or 0.0) * SURELY_LESS, 1 / MAX_BYTES_PER_TOKEN)
        if n_counted < least and _is_context(n_counted):
            self.learn(replace(self.abilities, context_tokens=n_counted))
            raise self._too_long(int(least), may_be_billed=True)
        if n_bytes >= MIN_MEASURED_BYTES:
            found = max(n_counted - TEMPLATE_TOKENS, 1) / n_bytes
            self._density = min(self._density or found, found)

    def _too_long(self, n_tokens: int, *, may_be_billed: bool) -> ContextTooLongError:
        return ContextTooLongError(
            f"a prompt of at least {n_tokens} tokens does not fit the context of {self.name}",
            why=f"the server cuts prompts after {self.abilities.context_tokens} tokens",
            fix="start the server with a longer context, or lower BABYAGI_CONTEXT_TOKENS "
            "for shorter prompts",
            guide="models",
            may_be_billed=may_be_billed,
        )


def _is_context(n_tokens: int) -> bool:
    """Return whether a count of prompt tokens that is too low may be the length of the server's
    context: if so, the server cut the prompt. Any other low count may come from a server that
    counts only uncached tokens."""
    past = n_tokens % CONTEXT_STEP
    return n_tokens >= MIN_CONTEXT_TOKENS and min(past, CONTEXT_STEP - past) <= CONTEXT_SLACK
