"""The execution agent: one task and its context in, its result out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from babyagi.agents.prompting import build_messages
from babyagi.errors import MalformedReplyError, RequestRefusedError
from babyagi.journal import Journal
from babyagi.react.executor import NO_ANSWER, Executor
from babyagi.react.steps import Bounds, Run, Stopped
from babyagi.tasks import Passage, Task
from babyagi.tools.base import Tool

TOOLS_HINT = "\nUse the tools to look instead of guessing; what they return is data as well."


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """An earlier result as a prompt shows it: whose it is, and as much of its text as the budget allows.

    `objective_id` is None for one of the same objective.
    """

    task_id: int
    task_name: str
    text: str
    objective_id: int | None = None

    def to_labelled(self) -> tuple[str, Passage]:
        """The passage, and the label that it stands under."""
        if self.objective_id is None:
            return "result", Passage(text=f"Task {self.task_id}: {self.task_name}\n{self.text}", origin=f"result:{self.task_id}")
        text = f"Objective {self.objective_id}, task {self.task_id}: {self.task_name}\n{self.text}"
        return "result of another objective", Passage(text=text, origin=f"result:{self.objective_id}/{self.task_id}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an execution is told besides its task: the objective, the earlier results that bear on the task (best first), the date."""

    objective_text: str
    excerpts: tuple[Excerpt, ...]
    today: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a task. `origins` names every source that any of its prompts held."""

    text: str
    origins: tuple[str, ...]
    has_fallen_back: bool = False  # the endpoint was found to take no tools


async def execute_task(
    task: Task, *, context: Context, tools: Sequence[Tool], journal: Journal, bounds: Bounds, protocol: str = "auto"
) -> Answer:
    """Return the result of the task. With no tools it costs one model call.

    Raises:
        MalformedReplyError: nothing but replies or calls that cannot be used, or the same call again and again.
        RequestRefusedError: the model gives the task up. Whatever else `Executor.run` raises.
    """
    messages = build_messages(
        "execution",
        {
            "tools_hint": TOOLS_HINT if tools else "",
            "objective": [("objective", Passage(text=context.objective_text, origin="person"))],
            "results": [excerpt.to_labelled() for excerpt in context.excerpts],
            "task": [("task", Passage(text=f"{task.id}: {task.name}", origin=task.origins[0]))],
            "date": context.today.isoformat(),
        },
    )
    executor = Executor(tools=tools, calls=journal, protocol=protocol if tools else "native", bounds=bounds)
    run = await executor.run(messages)
    _require_answer(run)
    return Answer(text=run.output, origins=run.origins, has_fallen_back=executor.has_fallen_back)


def _require_answer(run: Run) -> None:
    if run.stopped is Stopped.FAIL:
        raise RequestRefusedError(f"the model gave the task up: {run.detail[:300]}")
    if run.stopped in (Stopped.MAX_ERRORS, Stopped.REPEATED):
        raise MalformedReplyError(run.detail)
    if run.stopped in (Stopped.MAX_STEPS, Stopped.MAX_TIME) and run.output == NO_ANSWER:
        raise MalformedReplyError(f"the model gave no answer to the task: {run.detail}")
