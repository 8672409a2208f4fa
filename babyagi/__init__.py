"""babyagi: an objective goes in, a report comes out.

    import babyagi
    outcome = babyagi.run("What do these documents say?", files="docs", model="rehearsal")
    print(outcome.report)

Or an agent alone, which answers a question with tools:

    @babyagi.tool(effect="read")
    def price(item: str) -> float:
        '''Look up what an item costs.'''

    print(babyagi.Agent("gpt-6-luna", tools=[price]).run("What do two teas cost?").output)

Importing this module loads nothing heavy: each name is loaded when it is used first.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from babyagi.agent import Agent
    from babyagi.api import (
        ObjectiveEnded,
        ObjectiveOutcome,
        QuestionAsked,
        ReportWritten,
        ResultFound,
        Stream,
        TaskFailed,
        TaskStarted,
        TextWritten,
        ToolCalled,
        run,
        run_async,
        stream,
    )
    from babyagi.app.toolbox import web_retriever
    from babyagi.client import Client
    from babyagi.errors import BabyagiError, LimitReachedError, NoAnswerError, ToolError
    from babyagi.memory.kinds import ConversationMemory, ConversationSummaryMemory, EntityMemory
    from babyagi.react.steps import Run, Stopped
    from babyagi.retrieval.rank import Ranker, rank, scored, top_p
    from babyagi.tasks import Effect, Limits, Passage, StopReason
    from babyagi.tools.base import Tool
    from babyagi.tools.declare import ToolContext, tool, tools_of

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "BabyagiError",
    "Client",
    "ConversationMemory",
    "ConversationSummaryMemory",
    "Effect",
    "EntityMemory",
    "LimitReachedError",
    "Limits",
    "NoAnswerError",
    "ObjectiveEnded",
    "ObjectiveOutcome",
    "Passage",
    "QuestionAsked",
    "Ranker",
    "ReportWritten",
    "ResultFound",
    "Run",
    "StopReason",
    "Stopped",
    "Stream",
    "TaskFailed",
    "TaskStarted",
    "TextWritten",
    "Tool",
    "ToolCalled",
    "ToolContext",
    "ToolError",
    "__version__",
    "rank",
    "run",
    "run_async",
    "scored",
    "stream",
    "tool",
    "tools_of",
    "top_p",
    "web_retriever",
]

_NAMES_BY_MODULE = {
    "agent": "Agent",
    "app.toolbox": "web_retriever",
    "api": "ObjectiveEnded ObjectiveOutcome QuestionAsked ReportWritten ResultFound Stream "
    "TaskFailed TaskStarted TextWritten ToolCalled run run_async stream",
    "client": "Client",
    "errors": "BabyagiError LimitReachedError NoAnswerError ToolError",
    "memory.kinds": "ConversationMemory ConversationSummaryMemory EntityMemory",
    "react.steps": "Run Stopped",
    "retrieval.rank": "Ranker rank scored top_p",
    "tasks": "Effect Limits Passage StopReason",
    "tools.base": "Tool",
    "tools.declare": "ToolContext tool tools_of",
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES_BY_MODULE.items():
        if name in names.split():
            return getattr(import_module(f"babyagi.{module}"), name)
    raise AttributeError(f"babyagi has no {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
