"""The creation agent: a finished task and its result in, proposals out; and the check of its claim that the objective is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from babyagi.agents.execution import Excerpt
from babyagi.agents.prompting import build_messages
from babyagi.agents.replies import CheckReply, CreationReply, parse_check, parse_creation
from babyagi.journal import Journal
from babyagi.llm.base import Completion
from babyagi.llm.prompt import Prompt
from babyagi.react.asking import ask
from babyagi.tasks import Passage, Role, Task

MAX_RESULT_CHARS = 6000
MAX_NAME_CHARS = 200
MAX_OUTPUT_TOKENS = 2000  # models that reason spend most of it before the first word of the reply

CREATION_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "tasks": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "after": {"type": "array", "items": {"type": "integer"}}},
                "required": ["name", "after"],
                "additionalProperties": False,
            },
        },
        "objective_met": {"type": "boolean"},
    },
    "required": ["tasks", "objective_met"],
    "additionalProperties": False,
}

CHECK_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"met": {"type": "boolean"}, "missing": {"type": "string"}},
    "required": ["met", "missing"],
    "additionalProperties": False,
}


async def create_tasks(
    task: Task, result_text: str, *, objective_text: str, known: Sequence[Task], journal: Journal, max_new_tasks: int
) -> tuple[CreationReply, tuple[str, ...]]:
    """Return what the agent proposes from the task's result, and the origins of what it read.

    Args:
        known: the tasks that it is shown; only their ids count in `after`.

    Raises as `ask`.
    """
    cut = result_text if len(result_text) <= MAX_RESULT_CHARS else result_text[:MAX_RESULT_CHARS] + " …"
    lines = [f"{other.id} [{other.status}] {bounded_name(other)}" for other in known]
    messages = build_messages(
        "creation",
        {
            "objective": [("objective", Passage(text=objective_text, origin="person"))],
            "task": [("finished task", Passage(text=f"{task.id}: {task.name}", origin=task.origins[0]))],
            "result": [("result", Passage(text=cut, origin=f"result:{task.id}"))],
            "known": [("listed tasks", Passage(text="\n".join(lines), origin="program"))] if lines else [],
            "max_new_tasks": str(max_new_tasks),
        },
    )
    known_ids = {other.id for other in known} | {task.id}
    prompt = Prompt(messages=messages, schema_name="tasks", schema=CREATION_SCHEMA, max_output_tokens=MAX_OUTPUT_TOKENS)

    def read(completion: Completion) -> CreationReply:
        return parse_creation(completion.text, known_ids=known_ids, max_tasks=max_new_tasks)

    asked = await ask(journal, "create", prompt, role=Role.CREATION, read=read)
    return asked.value, tuple(dict.fromkeys((f"model:{asked.completion.model}", *asked.prompt.origins)))


async def check_objective(*, objective_text: str, excerpts: Sequence[Excerpt], journal: Journal) -> CheckReply:
    """Return whether the results fulfil the objective, judged from both alone. Raises as `ask`."""
    messages = build_messages(
        "check",
        {
            "objective": [("objective", Passage(text=objective_text, origin="person"))],
            "results": [excerpt.to_labelled() for excerpt in excerpts],
        },
    )
    prompt = Prompt(messages=messages, schema_name="check", schema=CHECK_SCHEMA, max_output_tokens=MAX_OUTPUT_TOKENS)
    return (await ask(journal, "check", prompt, role=Role.CREATION, read=lambda completion: parse_check(completion.text))).value


def bounded_name(task: Task) -> str:
    """The task's name on one line of a list, cut where it is only shown and not carried out."""
    return task.name if len(task.name) <= MAX_NAME_CHARS else task.name[:MAX_NAME_CHARS] + "…"
