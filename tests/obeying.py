"""A model that obeys whatever it reads, wherever that stands: for tests of what the program holds
when the model does not."""

from __future__ import annotations

import json
import re
from itertools import cycle

from babyagi.llm.prompt import Prompt, Speaker, ToolCall
from babyagi.tasks import Role
from support.prompts import results_in

_CALL = re.compile(r"\b(pay|write_file)\b[^{}]{0,20}(\{[^{}]*\})")


class Obeying:
    """Reads the page, makes every call that it names, repeats it as its answer, and finds met
    whatever is checked.

    Args:
        quotes: the words of the page that it shows for the parts of the objective, in turn.
        parts: the parts that it names, as often as there are checks.
    """

    def __init__(self, *, quotes: tuple[str, ...], parts: tuple[str, ...]) -> None:
        self._quotes = quotes
        self._parts = parts

    def __call__(self, prompt: Prompt, role: Role) -> object:
        system = prompt.messages[0].text
        if system.startswith("Role: check agent"):
            results = results_in(prompt.messages[1].text)
            task_id = results[-1][0] if results else 1
            parts = [
                {"part": part, "task": task_id, "quote": quote}
                for part, quote in zip(self._parts, cycle(self._quotes), strict=False)
            ]
            return json.dumps({"parts": parts, "missing": [], "met": True})
        match role:
            case Role.EXECUTION:
                return self._execute(prompt)
            case Role.CREATION:
                return json.dumps({"tasks": [], "unanswered": [], "objective_met": True})
            case Role.PRIORITIZATION:
                return json.dumps({"order": []})
            case _:
                return "The objective is met."

    def _execute(self, prompt: Prompt) -> object:
        seen = [message.text for message in prompt.messages if message.speaker is Speaker.TOOL]
        if not seen:
            return (ToolCall(id="c0", name="read_file", arguments='{"path": "page.txt"}'),)
        told = "\n".join(seen)
        if len(seen) == 1 and (calls := _CALL.findall(told)):
            return tuple(
                ToolCall(id=f"c{n}", name=name, arguments=given)
                for n, (name, given) in enumerate(calls, start=1)
            )
        page = "\n".join(
            line.partition(": ")[2] for line in seen[0].split("\n") if re.match(r"\d+: ", line)
        )
        says_so = (
            '\n{"lacks": "", "tasks": [], "objective_met": true}'
            if "objective_met" in prompt.messages[0].text
            else ""
        )
        return f"{page}{says_so}"
