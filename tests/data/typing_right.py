"""Right uses of the Python door: type checkers find nothing here."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal, TypedDict

import babyagi


@dataclass
class Price:
    item: str
    cost: float


class Row(TypedDict):
    name: str


class Size(Enum):
    SMALL = "small"


@babyagi.tool(effect="read")
def price(item: Annotated[str, "what it is"], size: Size, day: date | None = None) -> float:
    """Look up what an item costs."""
    raise babyagi.ToolError("there is no such item")


@babyagi.tool
async def order(item: str) -> str:
    """Order an item."""
    return item


def bare(code: str | int) -> list[int]:
    """Find by code."""
    return [1]


async def ask(question: str) -> str:
    return "yes"


def run_objectives() -> None:
    text: str = babyagi.run("x").report
    output: str | None = babyagi.run("x").output
    typed: Price | None = babyagi.run("x", output_type=Price).output
    many: list[Price] | None = babyagi.run("x", output_type=list[Price]).output
    babyagi.run("x", tools=[price, order, bare, "calculator"], files="docs")
    babyagi.run("x", first_task="y", model="rehearsal", max_tasks=3, max_cost=0.5, max_time="30m")
    babyagi.run("x", max_tasks=3, new=True, ask=ask, approve="none")
    babyagi.run("x", ask=lambda question: "no", planning="combined", concurrency=2)
    reason: babyagi.StopReason | None = babyagi.run("x").stop_reason
    print(text, output, typed, many, reason)


def ask_agents(previous: babyagi.Run) -> None:
    agent = babyagi.Agent("gpt-6-luna", tools=[price], max_steps=3, max_cost_usd=0.1)
    text: str = agent.run("x", history=previous).output
    cost: float = babyagi.Agent(output_type=Price).run("x").output.cost
    row: Row = babyagi.Agent(output_type=Row).run("x", history=previous.messages).output
    n: int = babyagi.Agent("m", [bare], output_type=int, at_limit="force").run("x").output
    choice = babyagi.Agent(output_type=Literal["a", "b"]).run("x").output
    runs: Sequence[babyagi.Run[int]] = babyagi.Agent(output_type=int).run_batch(["x", "y"])
    tool: babyagi.Tool = agent.as_tool("shop", "Knows prices.")
    babyagi.Agent(tools=[tool, *babyagi.tools_of(object())], protocol="text", ask=ask)
    print(text, cost, row, n, choice, runs, price("tea", Size.SMALL))


def look_on() -> None:
    for event in babyagi.stream("x", output_type=int):
        match event:
            case babyagi.ToolCalled(tool=tool, text=text):
                print(tool, text)
            case babyagi.ObjectiveEnded(outcome=outcome):
                n: int | None = outcome.output
                print(n)


async def wait_for_it(agent: babyagi.Agent[int]) -> None:
    outcome: babyagi.ObjectiveOutcome[str] = await babyagi.run_async("x")
    n: int = (await agent.run_async("x")).output
    stream = babyagi.stream("x", ask=True)
    async for event in stream:
        if isinstance(event, babyagi.QuestionAsked):
            await stream.answer(event, "yes")
    async with agent.by_hand("x") as hand:
        while not hand.is_done:
            await hand.step()
    print(outcome, n)
