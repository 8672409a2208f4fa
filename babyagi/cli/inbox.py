"""The commands by which a person says what tasks wait for: inbox, answer, approve, reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from babyagi.cli.options import json_option
from babyagi.cli.text import Line, Style, echo, echo_lines, fit, print_json, safe

if TYPE_CHECKING:
    from babyagi.cli.json_shapes import Json
    from babyagi.inbox import Decision
    from babyagi.tasks import Step, Task
    from babyagi.taskstore.base import TaskStore

Question = tuple["Step", "Task"]
MAX_SHOWN_CHARS = 4000


@click.command()
@click.option("--objective", metavar="ID|latest|all", default="all", show_default=True, help="Which objective is meant.")
@json_option
def inbox(objective: str, as_json: bool) -> None:
    """List what waits for a person, and what to type."""
    from babyagi.cli.session import pick_objective, with_store

    async def fetch(store: TaskStore) -> list[Question]:
        steps = await store.inbox(None if objective == "all" else (await pick_objective(store, objective)).id)
        return [(step, await store.task(step.objective_id, int(step.owner.removeprefix("task:")))) for step in steps]

    questions = with_store(fetch)
    if as_json:
        print_json([_shape(step, task) for step, task in questions])
    elif questions:
        echo_lines([line for step, task in questions for line in _render(step, task)])
    else:
        echo("Nothing waits for a person.")


def _shape(step: Step, task: Task) -> Json:
    from babyagi.inbox import decisions, describe, read_request

    tool, arguments = read_request(step)
    return {
        "number": step.id,
        "objective_id": step.objective_id,
        "task_id": task.id,
        "task": task.name,
        "kind": step.kind,
        "state": step.state.value,
        "question": describe(step),
        "tool": tool,
        "arguments": dict(arguments),
        "decisions": [decision.value for decision in decisions(step)],
        "asked_at": step.created_at.isoformat(),
    }


def _render(step: Step, task: Task) -> list[Line]:
    from babyagi.inbox import Decision, decisions, describe

    texts = {Decision.ANSWER: ' "…"', Decision.APPROVE: "", Decision.REJECT: ' "why"'}
    ways = "   ".join(f"babyagi {decision.value} {step.id}{texts[decision]}" for decision in decisions(step))
    return [
        Line(f"{step.id:>4}  objective {step.objective_id}, task {task.id}: {fit(task.name, 80)}", Style.BOLD),
        Line(f"      {safe(describe(step)[:MAX_SHOWN_CHARS])}", Style.YELLOW),
        Line(f"      {ways}"),
    ]


@click.command()
@click.argument("number", type=int)
@click.argument("text")
@json_option
def answer(number: int, text: str, as_json: bool) -> None:
    """Answer a question of a task.

    Or say what came of a call that may have been made. The task goes on with that.
    """
    from babyagi.inbox import Decision

    _decide(number, Decision.ANSWER, text, as_json)


@click.command()
@click.argument("number", type=int)
@json_option
def approve(number: int, as_json: bool) -> None:
    """Allow a tool call.

    It is made when a worker comes back to its task.
    """
    from babyagi.inbox import Decision

    _decide(number, Decision.APPROVE, "", as_json)


@click.command()
@click.argument("number", type=int)
@click.argument("why", default="")
@json_option
def reject(number: int, why: str, as_json: bool) -> None:
    """Refuse a tool call or a question.

    Or say that a call was not carried out. The task goes on with that.
    """
    from babyagi.inbox import Decision

    _decide(number, Decision.REJECT, why, as_json)


def _decide(number: int, decision: Decision, text: str, as_json: bool) -> None:
    from babyagi.cli.session import with_store
    from babyagi.inbox import decide

    async def change(store: TaskStore) -> Step:
        step = await store.open_step(number)
        return await store.answer_step(number, output=decide(step, decision, text).to_json())

    step = with_store(change, changes=True)
    task_id = int(step.owner.removeprefix("task:"))
    if as_json:
        print_json({"v": 1, "number": number, "decision": decision.value, "objective_id": step.objective_id, "task_id": task_id})
    else:
        echo(f"Task {task_id} of objective {step.objective_id} is queued with that.")
        echo(f"Next: babyagi resume --objective {step.objective_id}  (nothing to type if it is running somewhere)")
