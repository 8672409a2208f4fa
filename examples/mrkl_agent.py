"""An agent that reasons in labelled text and chooses among a search and a calculator, step by step
(MRKL): `python examples/mrkl_agent.py`."""

from typing import Any

import babyagi

QUESTION = "How old is the harbour master of Norvik, raised to the power of 0.23?"
PEOPLE = {"harbour master of norvik": "Ada Brook", "age of ada brook": "47"}


def main(model: Any = "gpt-6-luna") -> str:
    agent = babyagi.Agent(model, protocol="text")
    agent.add_tool("Search", lambda text: PEOPLE.get(text.lower(), "nothing"), "finds facts")
    agent.add_tool("Power", compute_power, "computes powers, such as 2^0.5")
    run = agent.run(QUESTION)
    for step in run.steps:
        print(step.n, step.decision, *(one.passage.text for one in step.observations))
    return run.output


def compute_power(text: str) -> float:
    base, _, exponent = text.partition("^")
    return float(base) ** float(exponent)


if __name__ == "__main__":
    print(main())
