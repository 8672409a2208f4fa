"""An agent whose model writes one JSON object per step, with tools that share a state, a tool that
ends the run, and a text that stands in every request: `python examples/json_react.py`."""

from typing import Any

import babyagi


class Basket:
    """A basket whose content lasts from call to call."""

    def __init__(self) -> None:
        self.items: list[str] = []

    @babyagi.tool
    def add(self, item: str, n: int = 1) -> int:
        """Put something into the basket, and return how many things are in it."""
        self.items += [item] * n
        return len(self.items)

    @babyagi.tool
    def order(self, context: babyagi.ToolContext) -> str:
        """Order what is in the basket. This ends the work."""
        if not self.items:
            context.fail("there is nothing to order")
        else:
            context.finish(f"Ordered: {', '.join(self.items)}")
        return "done"


def main(model: Any = "gpt-6-luna") -> str:
    basket = Basket()
    agent = babyagi.Agent(model, [basket], protocol="json")
    agent.add_context("basket", lambda: ", ".join(basket.items) or "empty")
    run = agent.run("Order two teas and a cake.")
    return run.output or run.detail


if __name__ == "__main__":
    print(main())
