"""The creation agent: a finished task and its result in, proposals out; and the check of its claim that the objective is met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from babyagi.agents.execution import Excerpt
from babyagi.agents.prompting import build_messages
from babyagi.agents.replies import CheckReply, CreationReply, parse_check, parse_creation
from babyagi.errors import MalformedReplyError
from babyagi.journal import Journal
from babyagi.llm.prompt import Message, Prompt, Speaker
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

    A reply that cannot be read is shown to the agent once; after that nothing is proposed.
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
    for path in ("create", "create/again"):
        completion = await journal.complete(path, prompt, role=Role.CREATION)
        try:
            reply = parse_creation(completion.text, known_ids=known_ids, max_tasks=max_new_tasks)
        except MalformedReplyError as error:
            feedback = Message(speaker=Speaker.USER, text=f"{error.what} Reply again, with JSON only.", origins=("program",))
            said = Message(speaker=Speaker.ASSISTANT, text=completion.text, origins=(f"model:{completion.model}",))
            prompt = replace(prompt, messages=(*messages, said, feedback))
        else:
            return reply, tuple(dict.fromkeys((f"model:{completion.model}", *prompt.origins)))
    return CreationReply(tasks=(), is_met=False, note="its reply could not be read"), prompt.origins


async def check_objective(*, objective_text: str, excerpts: Sequence[Excerpt], journal: Journal) -> CheckReply:
    """Return whether the results fulfil the objective, judged from both alone."""
    messages = build_messages(
        "check",
        {
            "objective": [("objective", Passage(text=objective_text, origin="person"))],
            "results": [("result", excerpt.to_passage()) for excerpt in excerpts],
        },
    )
    prompt = Prompt(messages=messages, schema_name="check", schema=CHECK_SCHEMA, max_output_tokens=MAX_OUTPUT_TOKENS)
    completion = await journal.complete("check", prompt, role=Role.CREATION)
    return parse_check(completion.text)


def bounded_name(task: Task) -> str:
    """The task's name on one line of a list, cut where it is only shown and not carried out."""
    return task.name if len(task.name) <= MAX_NAME_CHARS else task.name[:MAX_NAME_CHARS] + "…"
