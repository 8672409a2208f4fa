"""A person takes the place of the model: the prompt is shown, and the typed text is the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Prompt, bound_tokens, estimate_prompt_tokens, estimate_tokens
from babyagi.tasks import Reservation, Role, Usage
from babyagi.text import clean

NAME = "human"
HOW_TO_TYPE = {  # by the name of the schema that a model is given
    "tasks": "Type one task a line, or nothing if none is needed.",
    "order": "Type the numbers in their new order, or nothing to keep it.",
    "check": "Type yes if it is met, else what is missing.",
}


def to_reply(typed: str, schema_name: str) -> str:
    """Return what a person typed as the reply that a model would give: JSON where a schema was
    asked for. JSON that was typed stays as it is."""
    if typed.startswith("{"):
        return typed
    match schema_name:
        case "tasks":
            names = [{"name": line} for line in typed.splitlines() if line.strip()]
            return json.dumps({"tasks": names}, ensure_ascii=False)
        case "order":
            numbers = [int(part) for part in typed.replace(",", " ").split() if part.isdecimal()]
            return json.dumps({"order": numbers})
        case "check":
            missing = [] if typed.casefold() == "yes" else [typed or "an answer"]
            return json.dumps({"met": not missing, "missing": missing}, ensure_ascii=False)
    return typed


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
        told = HOW_TO_TYPE.get(prompt.schema_name, "")
        shown = [*(message.text for message in prompt.messages), *filter(None, [told])]
        async with self._turn:
            typed = await self._ask("\n\n".join(shown))
        text = to_reply(clean(typed).strip(), prompt.schema_name)
        n_read, n_written = estimate_prompt_tokens(prompt), estimate_tokens(text)
        usage = Usage(calls=1, prompt_tokens=n_read, completion_tokens=n_written)
        return Completion(text=text, model=self.name, usage=usage)
