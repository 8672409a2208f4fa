"""An agent's loop taken apart: plan, call, append, each by hand: `python
examples/executor_by_hand.py`."""

import asyncio
from typing import Any

import babyagi


@babyagi.tool(effect="read")
def invoice(month: str) -> int:
    """Look up the sum of a month's invoices, in euros."""
    return {"March": 20_000, "April": 1_100}[month]


async def main(model: Any = "gpt-6-luna") -> str:
    agent = babyagi.Agent(model, [invoice])
    async with agent.by_hand("What did we invoice in March and April together?") as hand:
        while not hand.is_done:
            print(await hand.plan())  # the next calls, or the answer
            print(await hand.call())  # the outcomes; the step is appended to hand.steps
        return hand.output


if __name__ == "__main__":
    print(asyncio.run(main()))
