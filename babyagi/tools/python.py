"""Running Python that a model wrote, where it can do nothing but compute."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from typing import Any

from babyagi.sandbox.python import START_TIMEOUT_S, TIMEOUT_S, TURN_TIMEOUT_S, run_python
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Tool, takes_text

RESULT = "final_result"
CODE = (
    "Python code. What it prints is the answer; if it prints nothing, the value of its last line. "
    f"If it assigns the variable {RESULT}, that alone is the answer. "
    "It can import what comes with Python, and can only compute: no files, no network, "
    "no input, no other packages."
)


def build_python(*, name: str, description: str) -> Tool:
    """Return a tool that runs code and gives the variable `final_result`, what was printed, or the
    value of the last line.

    Raises:
        ValueError: no tool can have that name.
    """

    async def run(arguments: Mapping[str, Any]) -> Passage:
        return Passage(
            text=await run_python(dedent(strip_fence(arguments["code"])), result=RESULT),
            origin=f"tool:{name}",
        )

    return Tool(
        name=name,
        description=description,
        parameters=takes_text("code", CODE),
        effect=Effect.READ,
        run=run,
        timeout_s=TURN_TIMEOUT_S + START_TIMEOUT_S + TIMEOUT_S,
    )


def strip_fence(text: str) -> str:
    """The code within the first code fence of the text; all of the text when it has none that is
    closed."""
    lines = text.split("\n")
    marks = [at for at, line in enumerate(lines) if line.lstrip().startswith("```")]
    if not marks:
        return text
    first = marks[0]
    last = next((at for at in marks[1:] if lines[at].strip() == "```"), None)
    return text if last is None else "\n".join(lines[first + 1 : last])
