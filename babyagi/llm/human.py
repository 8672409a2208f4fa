"""A person takes the place of the model: the prompt is shown, and the typed text is the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Prompt, bound_tokens, estimate_prompt_tokens, estimate_tokens
from babyagi.tasks import Reservation, Role, Usage
from babyagi.text import clean

NAME = "human"


class HumanModel:
    """A `ChatModel` whose answers a person types. It costs nothing. It shows one prompt at a time;
    other calls wait.

    Args:
        ask: shows the text and returns what was typed.
    """

    def __init__(self, ask: Callable[[str], Awaitable[str]]) -> None:
        self.name = NAME
        self._ask = ask
        self._turn = asyncio.Lock()

    def reserve(self, prompt: Prompt) -> Reservation:
        return Reservation(calls=1, tokens=bound_tokens(prompt) + prompt.max_output_tokens)

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        async with self._turn:
            typed = await self._ask("\n\n".join(message.text for message in prompt.messages))
        text = clean(typed).strip()
        n_read, n_written = estimate_prompt_tokens(prompt), estimate_tokens(text)
        usage = Usage(calls=1, prompt_tokens=n_read, completion_tokens=n_written)
        return Completion(text=text, model=self.name, usage=usage)

    async def close(self) -> None:
        return None
