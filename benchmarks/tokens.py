"""Tokens per finished task at four lengths of the queue: prompts and replies of all three agents,
UTF-8 bytes / 4.

Everything is real but the model, which answers from a script: a result of the wanted length, one
new task for each finished one (so that
the queue keeps its length), and the queue's order. The first tasks of a run are not counted: they
have no earlier results to read. The creation agent is shown every name up to a bound; what these
lines cost is told apart, because all else must cost the same at any length.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from babyagi.agents.listed import MAX_LISTED_TOKENS
from babyagi.llm.prompt import Prompt, estimate_tokens, prompt_text_bytes
from babyagi.tasks import Limits, Proposal, Role
from benchmarks.script import OBJECTIVE, Script
from support.prompts import block_in
from support.scripted import ScriptedModel
from support.table import print_table, verdict
from support.world import World

LENGTHS = (10, 50, 200, 500)
ORIGINAL = {10: 1511, 50: 3980, 200: 13236, 500: 31744}
MAX_SPREAD = 0.10
MAX_SHORT_TOKENS = 1600
MIN_CONTEXT_TOKENS = 500  # one earlier result of 2 kB, whole
N_WARM_UP = 15
N_MEASURED = 21  # in batches, of whole plannings, each of which takes three results
AGENTS = (Role.EXECUTION, Role.CREATION, Role.PRIORITIZATION)

_RESULT = re.compile(r"<<result (\w{4}) from [^\n]*\n[^\n]*\n(.*?)\n\1>>", re.DOTALL)


Call = tuple[Role, Prompt, str]
"""Who asked, what, and the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one finished task cost at one length of the queue.

    Attributes:
        context_tokens: the least that any execution prompt held of results.
        listed_tokens: what the creation prompts listed of tasks, for each finished task.
        longest_list_tokens: the most that any of them listed.
    """

    tokens_by_agent: dict[Role, float]
    context_tokens: int
    listed_tokens: float
    longest_list_tokens: int

    @property
    def tokens(self) -> float:
        return sum(self.tokens_by_agent.values())


async def measure(
    n_queued: int, *, result_bytes: int, n_measured: int = N_MEASURED, is_batched: bool = False
) -> Cost:
    """Return what a finished task costs while `n_queued` tasks are queued."""
    script, calls = Script(result_bytes=result_bytes), list[Call]()

    def answer(prompt: Prompt, role: Role) -> str:
        text = script.reply(role, prompt.messages[-1].text)
        calls.append((role, prompt, text))
        return text

    world = World(model=ScriptedModel(answer), concurrency=1, is_batched=is_batched)
    n_run = N_WARM_UP + n_measured + 1
    limits = Limits(max_tasks=n_run, max_tokens=0, max_cost_usd=0, max_time_s=0)
    objective = await world.start(text=OBJECTIVE, initial_task=script.next_name(), limits=limits)
    await world.store.add_tasks(
        objective.id, [Proposal(name=script.next_name()) for _ in range(n_queued)]
    )
    await world.run(objective)
    return _cost(calls, n_measured)


def _cost(calls: Sequence[Call], n_measured: int) -> Cost:
    starts = [at for at, (role, _, _) in enumerate(calls) if role is Role.EXECUTION]
    counted = calls[starts[N_WARM_UP] : starts[N_WARM_UP + n_measured]]
    tokens = dict.fromkeys(AGENTS, 0)
    for role, prompt, reply in counted:
        tokens[role] += -(-prompt_text_bytes(prompt) // 4) + estimate_tokens(reply)
    lists = [
        estimate_tokens(block_in(prompt.messages[-1].text, "listed tasks"))
        for role, prompt, _ in counted
        if role is Role.CREATION
    ]
    return Cost(
        listed_tokens=sum(lists) / n_measured,
        longest_list_tokens=max(lists),
        tokens_by_agent={role: n / n_measured for role, n in tokens.items()},
        context_tokens=min(
            context_tokens(prompt) for role, prompt, _ in counted if role is Role.EXECUTION
        ),
    )


def context_tokens(prompt: Prompt) -> int:
    """Tokens of earlier results in an execution prompt, without their fences and the names of their
    tasks."""
    return sum(estimate_tokens(text) for _, text in _RESULT.findall(prompt.messages[-1].text))


def spread(costs: Sequence[Cost]) -> float:
    """How much the dearest length of the queue costs over the cheapest, as a share of it, without
    the list that the creation agent is shown."""
    tokens = [cost.tokens - cost.listed_tokens for cost in costs]
    return max(tokens) / min(tokens) - 1


def show(title: str, cost_by_length: dict[int, Cost], *, goal: str) -> None:
    rows = [
        (
            n,
            *(f"{cost.tokens_by_agent[role]:.0f}" for role in AGENTS),
            f"{cost.listed_tokens:.0f}",
            cost.context_tokens,
            f"{cost.tokens:.0f}",
            goal,
            ORIGINAL.get(n, ""),
        )
        for n, cost in cost_by_length.items()
    ]
    print_table(
        title,
        ("queued", *AGENTS, "of it the list", "results read", "tokens a task", "goal", "original"),
        rows,
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokens", description=__doc__)
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=LENGTHS, help="tasks that are queued all the time"
    )
    parser.add_argument(
        "--tasks", type=int, default=N_MEASURED, help="finished tasks that are counted"
    )
    parser.add_argument("--cadence", choices=("each", "batched"), default="each")
    options = parser.parse_args(argv)
    is_batched = options.cadence == "batched"
    long, short = (
        {
            n: asyncio.run(
                measure(n, result_bytes=size, n_measured=options.tasks, is_batched=is_batched)
            )
            for n in options.lengths
        }
        for size in (2048, 120)
    )
    show("Results of 2 kB", long, goal=f"within {MAX_SPREAD:.0%}")
    apart, least = spread(list(long.values())), min(cost.context_tokens for cost in long.values())
    longest = max(cost.longest_list_tokens for cost in long.values())
    print(
        f"{apart:.1%} apart without the list, goal at most {MAX_SPREAD:.0%}: "
        f"{verdict(apart <= MAX_SPREAD)}"
    )
    print(
        f"{longest} tokens in the longest list, goal at most {MAX_LISTED_TOKENS}: "
        f"{verdict(longest <= MAX_LISTED_TOKENS)}"
    )
    print(
        f"{least} tokens of results in the poorest execution prompt, goal "
        f"{MIN_CONTEXT_TOKENS}: {verdict(least >= MIN_CONTEXT_TOKENS)}\n"
    )
    show("Results of one sentence", short, goal=f"under {MAX_SHORT_TOKENS}")
    dearest = max(cost.tokens - cost.listed_tokens for cost in short.values())
    print(
        f"{dearest:.0f} tokens at most without the list, goal under {MAX_SHORT_TOKENS}: "
        f"{verdict(dearest < MAX_SHORT_TOKENS)}"
    )


if __name__ == "__main__":
    main()
