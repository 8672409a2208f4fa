"""Tokens per finished task at four lengths of the queue: prompts and replies of all three agents, UTF-8 bytes / 4.

Everything is real but the model, which answers from a script: a result of the wanted length, one new task for each finished one (so that
the queue keeps its length), and the queue's order. The first tasks of a run are not counted: they have no earlier results to read.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from babyagi.llm.prompt import Prompt, estimate_tokens, prompt_text_bytes
from babyagi.tasks import Limits, Proposal, Role
from benchmarks.table import print_table, verdict
from tests.scripted import ScriptedModel
from tests.world import World

LENGTHS = (10, 50, 200, 500)
ORIGINAL = {10: 1511, 50: 3980, 200: 13236, 500: 31744}
MAX_SPREAD = 0.10
MAX_SHORT_TOKENS = 1600
MIN_CONTEXT_TOKENS = 800
N_WARM_UP = 15
N_MEASURED = 20
OBJECTIVE = "Find out which payment provider's client libraries keep to the limits they document."
AGENTS = (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION)
WORDS = (
    "retry limits of connections pools timeouts headers tokens quotas bursts queues webhooks refunds disputes payouts currencies "
    "documented observed default maximum hourly account region version client server library provider sandbox production change"
).split()

_RESULT = re.compile(r"<<result (\w{8}) from [^\n]*\n[^\n]*\n(.*?)\n\1>>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one finished task cost at one length of the queue. `context_tokens` is the least that any execution prompt held of results."""

    tokens_by_agent: dict[Role, float]
    context_tokens: int

    @property
    def tokens(self) -> float:
        return sum(self.tokens_by_agent.values())


async def measure(n_queued: int, *, result_bytes: int, n_measured: int = N_MEASURED) -> Cost:
    """Return what a finished task costs while `n_queued` tasks are queued."""
    script = _Script(result_bytes)
    model = ScriptedModel(script.answer)
    world = World(model=model, concurrency=1)
    n_run = N_WARM_UP + n_measured + 1
    limits = Limits(max_tasks=n_run, max_tokens=0, max_cost_usd=0, max_time_s=0)
    objective = await world.start(text=OBJECTIVE, initial_task=script.next_name(), limits=limits)
    await world.store.add_tasks(objective.id, [Proposal(name=script.next_name()) for _ in range(n_queued)])
    await world.run(objective)
    return _cost(script.calls, n_measured)


class _Script:
    """Answers as the three agents would, and remembers what each call read and wrote."""

    def __init__(self, result_bytes: int) -> None:
        self.calls: list[tuple[Role, Prompt, str]] = []
        self._result_bytes = result_bytes
        self._numbers = count(1)

    def next_name(self) -> str:
        """A task of about 80 bytes, as in the runs that the original's figures come from, and like no other."""
        n = next(self._numbers)
        return f"Compare the {_words(n, 3)} of client library {100 + n} with what it documents"

    def answer(self, prompt: Prompt, role: Role) -> str:
        match role:
            case Role.EXECUTION:
                text = _sentences(len(self.calls), self._result_bytes)
            case Role.CREATION:
                text = json.dumps({"tasks": [{"name": self.next_name(), "after": []}], "objective_met": False})
            case Role.PRIORITIZATION:
                queue = re.findall(r"^(\d+): ", prompt.messages[-1].text, re.MULTILINE)
                text = json.dumps({"order": [int(number) for number in reversed(queue)]})
            case _:
                text = "The report."
        self.calls.append((role, prompt, text))
        return text


def _words(seed: int, n: int) -> str:
    return " ".join(WORDS[(seed * 7 + i * i * 3 + i * seed) % len(WORDS)] for i in range(n))


def _sentences(seed: int, n_bytes: int) -> str:
    text = ""
    while len(text) < n_bytes:
        text += f"The {_words(seed + len(text), 9)} is {seed % 90 + 10}. "
    return text[:n_bytes].strip()


def _cost(calls: Sequence[tuple[Role, Prompt, str]], n_measured: int) -> Cost:
    starts = [at for at, (role, _, _) in enumerate(calls) if role is Role.EXECUTION]
    counted = calls[starts[N_WARM_UP] : starts[N_WARM_UP + n_measured]]
    tokens = dict.fromkeys(AGENTS, 0)
    for role, prompt, reply in counted:
        tokens[role] += -(-prompt_text_bytes(prompt) // 4) + estimate_tokens(reply)
    return Cost(
        tokens_by_agent={role: n / n_measured for role, n in tokens.items()},
        context_tokens=min(context_tokens(prompt) for role, prompt, _ in counted if role is Role.EXECUTION),
    )


def context_tokens(prompt: Prompt) -> int:
    """Tokens of earlier results in an execution prompt, without their fences and the names of their tasks."""
    return sum(estimate_tokens(text) for _, text in _RESULT.findall(prompt.messages[-1].text))


def spread(costs: Sequence[Cost]) -> float:
    """How much the dearest length of the queue costs over the cheapest, as a share of it."""
    tokens = [cost.tokens for cost in costs]
    return max(tokens) / min(tokens) - 1


def show(title: str, cost_by_length: dict[int, Cost], *, goal: str) -> None:
    rows = [
        (n, *(f"{cost.tokens_by_agent[role]:.0f}" for role in AGENTS), cost.context_tokens, f"{cost.tokens:.0f}", goal, ORIGINAL.get(n, ""))
        for n, cost in cost_by_length.items()
    ]
    print_table(title, ("queued", *AGENTS, "results read", "tokens a task", "goal", "original"), rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokens", description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="tasks that are queued all the time")
    parser.add_argument("--tasks", type=int, default=N_MEASURED, help="finished tasks that are counted")
    options = parser.parse_args(argv)
    long, short = ({n: asyncio.run(measure(n, result_bytes=size, n_measured=options.tasks)) for n in options.lengths} for size in (2048, 120))
    show("Results of 2 kB", long, goal=f"within {MAX_SPREAD:.0%}")
    apart, least = spread(list(long.values())), min(cost.context_tokens for cost in long.values())
    print(f"{apart:.1%} apart, goal at most {MAX_SPREAD:.0%}: {verdict(apart <= MAX_SPREAD)}")
    print(f"{least} tokens of results in the poorest execution prompt, goal {MIN_CONTEXT_TOKENS}: {verdict(least >= MIN_CONTEXT_TOKENS)}\n")
    show("Results of one sentence", short, goal=f"under {MAX_SHORT_TOKENS}")
    dearest = max(cost.tokens for cost in short.values())
    print(f"{dearest:.0f} tokens at most, goal under {MAX_SHORT_TOKENS}: {verdict(dearest < MAX_SHORT_TOKENS)}")


if __name__ == "__main__":
    main()
