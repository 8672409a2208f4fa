"""The tool that asks a person; the journal parks the task instead of running it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from babyagi.errors import ToolError
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Tool, takes_text

ASK_USER = "ask_user"


def build_ask_user() -> Tool:
    return Tool(
        name=ASK_USER,
        description=(
            "Ask the person who gave the objective. The task waits until they answer, so ask "
            "only what nobody else can know."
        ),
        parameters=takes_text("question", "One question that can be understood without the task."),
        effect=Effect.IDEMPOTENT,
        run=_run,
        asks_person=True,
    )


async def _run(arguments: Mapping[str, Any]) -> Passage:
    raise ToolError("nobody can be asked here")
