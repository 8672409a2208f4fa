"""Two questions that need several tools, and a model that answers them from a script in any
protocol.

The model holds no state: it counts the observations in its prompt, as a model that was started anew
would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall
from babyagi.react.protocols.base import AgentProtocol
from babyagi.react.protocols.choice import find_protocol
from babyagi.react.protocols.text import ENGLISH, Labels, text_protocol
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Tool
from babyagi.tools.calculator import build_calculator
from babyagi.tools.declare import tool
from tests.react.labels import JAPANESE

PROTOCOLS: Mapping[str, AgentProtocol] = {
    "native": find_protocol("native"),
    "json": find_protocol("json"),
    "text": text_protocol(ENGLISH),
    "text in Japanese": text_protocol(JAPANESE),
}
_OBSERVED = re.compile(r"<<(?:observation|error) ")


@dataclass(frozen=True)
class Walkthrough:
    """A question, the calls that lead to its answer, and what each gives."""

    question: str
    calls: Sequence[tuple[str, Mapping[str, Any]]]
    given: Sequence[str]
    answer: str

    @property
    def calls_made(self) -> list[str]:
        """The calls as `build_tools` notes them."""
        return [f"{name} {json.dumps(arguments)}" for name, arguments in self.calls]

    @property
    def messages(self) -> tuple[Message, ...]:
        return (Message(speaker=Speaker.USER, text=self.question, origins=("person",)),)

    def model_answer(self, protocol: str) -> Any:
        """What a model says to a prompt of this protocol."""

        def answer(prompt: Prompt, role: object) -> object:
            n = count_observations(prompt.messages)
            if n < len(self.calls):
                name, arguments = self.calls[n]
                return _say_call(protocol, name, arguments)
            return _say_answer(protocol, self.answer)

        return answer


def count_observations(messages: Sequence[Message]) -> int:
    """How many calls the model has been shown the outcome of."""
    return sum(len(_OBSERVED.findall(message.text)) for message in messages)


def _labels(protocol: str) -> Labels:
    return JAPANESE if protocol == "text in Japanese" else ENGLISH


def _say_call(protocol: str, name: str, arguments: Mapping[str, Any]) -> object:
    written = json.dumps(arguments)
    if protocol == "native":
        return (
            ToolCall(id=f"call_{name}_{abs(hash(written)) % 10**6}", name=name, arguments=written),
        )
    if protocol == "json":
        return json.dumps({"thought": "I look.", "tool": name, "tool_input": arguments})
    labels = _labels(protocol)
    bare = str(next(iter(arguments.values()))) if len(arguments) == 1 else written
    # a model that does not stop where it is told to
    made_up = f"\n{labels.observation[0]}: 99 (made up)\n{labels.answer[0]}: 99"
    return f"I look.\n{labels.action[0]}: {name}\n{labels.action_input[0]}: {bare}{made_up}"


def _say_answer(protocol: str, answer: str) -> str:
    if protocol == "json":
        return json.dumps({"thought": "I know.", "tool": "final_answer", "tool_input": answer})
    return answer if protocol == "native" else f"I know.\n{_labels(protocol).answer[0]}: {answer}"


HARBOUR = Walkthrough(
    question="What is the age of the harbour master of Norvik, raised to the power of 0.23?",
    calls=(
        ("Search", {"query": "harbour master of Norvik"}),
        ("Search", {"query": "age of Ada Brook"}),
        ("calculator", {"expression": "47^0.23"}),
    ),
    given=("Ada Brook", "47", "2.4242784855673896"),
    answer="2.4242784855673896",
)
INVOICES = Walkthrough(
    question="What do the invoices of May that nobody has paid come to?",
    calls=(
        ("invoices_of", {"month": "May"}),
        ("is_paid", {"invoice": "M-1"}),
        ("is_paid", {"invoice": "M-2"}),
        ("is_paid", {"invoice": "M-3"}),
        ("amount", {"invoice": "M-1"}),
        ("amount", {"invoice": "M-3"}),
        ("calculator", {"expression": "20000 + 1100"}),
    ),
    given=('["M-1", "M-2", "M-3"]', "false", "true", "false", "20000", "1100", "21100"),
    answer="21100",
)

WALKTHROUGHS: Mapping[str, Walkthrough] = {"harbour": HARBOUR, "invoices": INVOICES}


def build_tools(note: Callable[[str], object]) -> tuple[Tool, ...]:
    """The tools of both questions; `note` is told each call that is really made."""

    @tool(effect="read")
    def Search(query: str) -> str:
        """Look something up.

        Args:
            query: what is looked for
        """
        return {"harbour master of Norvik": "Ada Brook", "age of Ada Brook": "47"}[query]

    @tool(effect="read")
    def invoices_of(month: str) -> list[str]:
        """List the invoices of a month.

        Args:
            month: its name
        """
        return ["M-1", "M-2", "M-3"]

    @tool(effect="read")
    async def is_paid(invoice: str) -> bool:
        """Say whether an invoice is paid.

        Args:
            invoice: its number
        """
        return invoice == "M-2"

    @tool(effect=Effect.READ)
    async def amount(invoice: str) -> int:
        """Say what an invoice comes to.

        Args:
            invoice: its number
        """
        return {"M-1": 20000, "M-3": 1100}[invoice]

    return tuple(
        noted(made, note) for made in (Search, invoices_of, is_paid, amount, build_calculator())
    )


def noted(made: Tool, note: Callable[[str], object]) -> Tool:
    """The tool; `note` is told of each call before it is made."""

    async def run(arguments: Mapping[str, Any]) -> Passage:
        note(f"{made.name} {json.dumps(dict(arguments))}")
        return await made.run(arguments)

    return replace(made, run=run)
