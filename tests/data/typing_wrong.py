"""Wrong uses of the Python door: type checkers find each, on the line with its comment."""

from dataclasses import dataclass

import babyagi


@dataclass
class Price:
    item: str
    cost: float


def price(item: str) -> float:
    """Look up what an item costs."""
    return 1.0


def run_objectives() -> None:
    babyagi.run("x", max_taks=3)  # wrong: did you mean "max_tasks"
    babyagi.run("x", max_tasks="three")  # wrong: No overload variant
    babyagi.run("x", max_cost="cheap")  # wrong: No overload variant
    babyagi.run("x", tools=price)  # wrong: No overload variant
    babyagi.run("x", tools=[3])  # wrong: List item 0 has incompatible type
    babyagi.run("x", approve="sometimes")  # wrong: No overload variant
    babyagi.run("x", planning=True)  # wrong: No overload variant
    babyagi.run("x", max_tasks={"n": 3})  # wrong: No overload variant
    babyagi.run("x", ask=3)  # wrong: No overload variant
    babyagi.run()  # wrong: require at least one argument
    babyagi.run(3)  # wrong: No overload variant
    babyagi.run("x", "y")  # wrong: No overload variant
    babyagi.run("x").reports  # wrong: has no attribute "reports"
    print(babyagi.run("x", output_type=Price).output.cost)  # wrong: Item "None"
    n: int = babyagi.run("x").output  # wrong: Incompatible types in assignment
    print(n)
    babyagi.Limits(max_task=3)  # wrong: did you mean "max_tasks"


def ask_agents() -> None:
    babyagi.Agent("m", max_stepz=3)  # wrong: did you mean "max_steps"
    babyagi.Agent("m", at_limit="never")  # wrong: No overload variant
    babyagi.Agent("m", protocol="xml")  # wrong: No overload variant
    cost: str = babyagi.Agent(output_type=Price).run("x").output  # wrong: Incompatible types
    babyagi.Agent().run("x").output.cost  # wrong: "str" has no attribute "cost"
    babyagi.Agent().run("x", history="before")  # wrong: Argument "history"
    babyagi.Agent().run(["x"])  # wrong: Argument 1
    print(cost)


def look_on() -> None:
    for event in babyagi.stream("x"):
        print(event.text)  # wrong: has no attribute "text"
    babyagi.tool(effects="read")  # wrong: did you mean "effect"
