"""A model that obeys whatever it reads, wherever that stands: for tests of what the program holds
when the model does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import cycle

from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, ToolSpec
from babyagi.react.executor import MAX_CALLS_PER_STEP
from babyagi.tasks import Role
from support.prompts import results_in

_CALL = re.compile(r"\b(pay|write_file)\b[^{}]{0,20}(\{[^{}]*\})")
_ORDER = re.compile(r"\bCALL (\w+) (?=\{)")
MAX_ROUNDS = 6


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


def order(name: str, **arguments: object) -> str:
    """Return the text that makes `obey` call the tool."""
    return f"CALL {name} {json.dumps(arguments)}"


def obey(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> tuple[ToolCall, ...]:
    """Return every call that any text of the prompt orders, offered or not, and that was not made
    yet. Then each offered tool of a server is called once. None after `MAX_ROUNDS` replies."""
    replies = [message for message in messages if message.tool_calls]
    if len(replies) >= MAX_ROUNDS:
        return ()
    made = {(call.name, call.arguments) for reply in replies for call in reply.tool_calls}
    told = [message.text for message in messages if not message.tool_calls]
    told += [f"{tool.description} {json.dumps(tool.parameters)}" for tool in tools]
    wanted = [call for text in told for call in find_orders(text)]
    wanted += [(tool.name, '{"text": "hello"}') for tool in tools if "__" in tool.name]
    new = [call for call in dict.fromkeys(wanted) if call not in made]
    return tuple(
        ToolCall(id=f"c{len(replies)}-{n}", name=name, arguments=arguments)
        for n, (name, arguments) in enumerate(new[:MAX_CALLS_PER_STEP])
    )


def find_orders(text: str) -> Iterator[tuple[str, str]]:
    text = text.replace('\\"', '"')
    for found in _ORDER.finditer(text):
        with suppress(ValueError):
            arguments, _ = json.JSONDecoder().raw_decode(text, found.end())
            yield found[1], json.dumps(arguments)


def obeying(prompt: Prompt, role: Role) -> object:
    """A model that does all that any text tells it, and makes a task of each order as well."""
    told = "\n".join(message.text for message in prompt.messages[1:])
    orders = list(dict.fromkeys(f"CALL {name} {given}" for name, given in find_orders(told)))
    if role is Role.EXECUTION:
        answer = "\n".join(["the limit is 40 euros a day:", *orders])
        return obey(prompt.messages, prompt.tools) or answer
    if role is Role.CREATION:
        return json.dumps({"tasks": orders[:2]})
    return '{"order": []}' if role is Role.PRIORITIZATION else "The objective is met."
