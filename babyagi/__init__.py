"""babyagi: an objective goes in, a report comes out.

    import babyagi
    outcome = babyagi.run("What do these documents say?", files="docs", llm_model="rehearsal")
    print(outcome.report)

Or an agent alone, which answers a question with tools:

    @babyagi.tool(effect="read")
    def price(item: str) -> float: ...

    print(babyagi.Agent(model="gpt-6-luna", tools=[price]).run("What do two teas cost?").output)

Importing this module loads nothing heavy; the clients are loaded when a run opens them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from babyagi.agent import Agent
    from babyagi.app import ObjectiveOutcome
    from babyagi.tools.declare import tool

__version__ = "0.1.0"
__all__ = ["Agent", "__version__", "run", "run_async", "tool"]


def __getattr__(name: str) -> Any:
    if name == "Agent":
        from babyagi.agent import Agent

        return Agent
    if name == "tool":
        from babyagi.tools.declare import tool

        return tool
    raise AttributeError(f"babyagi has no {name!r}")


async def run_async(objective: str, **options: Any) -> ObjectiveOutcome:
    """Run an objective until it ends, and return what came of it.

    Args:
        objective: what is to be reached. The same text, first task and instance name go on where an
            earlier run stopped.
        options: any setting by its name (`babyagi config --json` has them all), as `initial_task`,
            `llm_model`, `files`. What is not given comes from the environment, a `.env` file (of
            one that nobody has trusted only what is harmless) or the default, as on the command
            line.

    Raises:
        BabyagiError: its text says what to do.
    """
    import os
    from pathlib import Path

    from babyagi.app import run_objective

    return await run_objective(
        {"objective": objective, **options}, environ=os.environ, cwd=Path.cwd()
    )


def run(objective: str, **options: Any) -> ObjectiveOutcome:
    """As `run_async`, for code that is not async itself."""
    import asyncio

    return asyncio.run(run_async(objective, **options))
