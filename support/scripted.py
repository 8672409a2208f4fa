"""A model that answers from a function and remembers what it was asked: for tests that need a
certain reply."""

import asyncio
import json
import re
from collections.abc import Callable

from babyagi.llm.port import Completion, OnText
from babyagi.llm.prompt import Prompt, ToolCall, bound_tokens, estimate_tokens, prompt_text_bytes
from babyagi.llm.reading import visible_text
from babyagi.loop import PROBE
from babyagi.tasks import Reservation, Role, Usage


class ScriptedModel:
    """`answer` gives the reply to a prompt: its text, a tuple of tool calls, a whole completion, or
    an error to raise.

    It is asked for checks only with `answers_checks`; else every check agrees. And for probes with
    `answers_probes`; else each is answered. A call takes `latency_s` seconds of the loop's clock.
    """

    def __init__(
        self,
        answer: Callable[[Prompt, Role], object],
        *,
        name: str = "scripted",
        cost_usd: float = 0.0,
        answers_checks: bool = False,
        answers_probes: bool = False,
        latency_s: float = 0.0,
    ) -> None:
        self.name = name
        self._latency_s = latency_s
        self._answers_checks = answers_checks
        self._answers_probes = answers_probes
        self.calls: list[tuple[Role, Prompt]] = []
        self._answer = answer
        self._cost_usd = cost_usd

    def reserve(self, prompt: Prompt) -> Reservation:
        return Reservation(
            calls=1, tokens=bound_tokens(prompt) + prompt.max_output_tokens, cost_usd=self._cost_usd
        )

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        self.calls.append((role, prompt))
        if self._latency_s:
            await asyncio.sleep(self._latency_s)
        answer: object
        if is_probe(prompt) and not self._answers_probes:
            answer = "ok"
        else:
            answer = (
                agree(prompt)
                if is_check(prompt) and not self._answers_checks
                else self._answer(prompt, role)
            )
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Completion):
            return answer
        calls = (
            tuple(call for call in answer if isinstance(call, ToolCall))
            if isinstance(answer, tuple)
            else ()
        )
        text = visible_text(answer) if isinstance(answer, str) else ""
        usage = Usage(
            calls=1,
            prompt_tokens=-(-prompt_text_bytes(prompt) // 4),
            completion_tokens=estimate_tokens(text),
            cost_usd=self._cost_usd,
        )
        return Completion(
            text=text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            model=self.name,
            usage=usage,
        )

    def asked(self, role: Role) -> list[Prompt]:
        return [prompt for asked, prompt in self.calls if asked is role]


def agree(prompt: Prompt) -> str:
    """What a check says that finds the objective met: its first result, quoted."""
    found = re.search(
        r"<<result (\w+) from [^\n]*\nTask (\d+): [^\n]*\n(.+?)\n\1>>",
        prompt.messages[1].text,
        re.DOTALL,
    )
    parts = (
        [{"part": "the objective", "task": int(found[2]), "quote": _quote(found[3])}]
        if found
        else []
    )
    return json.dumps(
        {"parts": parts, "missing": [] if parts else ["everything"], "met": bool(parts)}
    )


def _quote(text: str) -> str:
    """The first words of a result as a prompt shows it, up to where something is left out."""
    words = text.partition("\n")[0].partition(" … ")[0]
    return words if len(words) <= 200 else words[:200].rpartition(" ")[0] or words[:200]


def is_probe(prompt: Prompt) -> bool:
    return prompt == PROBE


def is_check(prompt: Prompt) -> bool:
    return prompt.messages[0].text.startswith("Role: check agent")
