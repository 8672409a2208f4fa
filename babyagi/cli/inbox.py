"""The commands by which a person says what tasks wait for: inbox, answer, approve, reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from babyagi.cli.options import json_option
from babyagi.cli.text import (
    Line,
    ask,
    echo,
    echo_lines,
    is_person_there,
    print_json,
    terminal_width,
    warn,
)

if TYPE_CHECKING:
    from babyagi.cli.json_shapes import Json
    from babyagi.cli.request import Request
    from babyagi.inbox import Decision
    from babyagi.settings import Settings
    from babyagi.tasks import Step
    from babyagi.taskstore.base import TaskStore
    from babyagi.tools.base import Preview


@click.command()
@click.argument("number", type=int, required=False)
@click.option(
    "--objective",
    metavar="ID|latest|all",
    default="all",
    show_default=True,
    help="Which objective is meant.",
)
@json_option
def inbox(number: int | None, objective: str, as_json: bool) -> None:
    """List what waits for a person, and what to type.

    Of a long request the list shows the beginning; with its NUMBER all of it is shown.
    """
    from babyagi.cli.request import render_request
    from babyagi.cli.session import NOTHING, load, pick_objective, with_store

    settings = load(needs=NOTHING).settings

    async def fetch(store: TaskStore) -> list[Request]:
        if number is not None:
            return [await _gather(store, await store.open_step(number), settings)]
        steps = await store.inbox(
            None if objective == "all" else (await pick_objective(store, objective)).id
        )
        return [await _gather(store, step, settings) for step in steps]

    requests = with_store(fetch)
    if as_json:
        print_json([_shape(request) for request in requests])
    elif requests:
        width, is_whole = terminal_width(), number is not None
        echo_lines(
            [
                line
                for request in requests
                for line in render_request(request, width, is_whole=is_whole)
            ]
        )
    else:
        echo("Nothing waits for a person.")


async def _gather(store: TaskStore, step: Step, settings: Settings) -> Request:
    """The step with what a person needs to judge it."""
    from babyagi.cli.request import Request
    from babyagi.errors import BabyagiError
    from babyagi.inbox import find_origins

    task = await store.task(step.objective_id, int(step.owner.removeprefix("task:")))
    steps = await store.steps(step.objective_id, owner=step.owner)
    models = [
        other.model
        for other in steps
        if other.kind == "model" and other.id < step.id and other.model
    ]
    origins = await _trace(store, step.objective_id, find_origins(step, task=task, steps=steps))
    preview, trouble = None, ""
    try:
        preview = await _preview(store, step, settings)
    except BabyagiError as error:
        trouble = f"What it would change cannot be seen from here: {error.what}"
    return Request(
        step=step,
        task=task,
        model=models[-1] if models else "",
        origins=origins,
        preview=preview,
        trouble=trouble,
    )


async def _trace(store: TaskStore, objective_id: int, origins: tuple[str, ...]) -> tuple[str, ...]:
    """The origins, and those of the results among them, back to where they came from."""
    found, asked = dict.fromkeys(origins), set[int]()
    while (
        new := {
            int(id_)
            for origin in found
            if (id_ := origin.removeprefix("result:")).isdecimal() and len(id_) < 18
        }
        - asked
    ):
        asked |= new
        for result in await store.results(objective_id, task_ids=sorted(new)):
            found |= dict.fromkeys(result.origins)
    return tuple(found)


async def _preview(store: TaskStore, step: Step, settings: Settings) -> Preview | None:
    """What the call would change of the folder as it is known here. Raises `ToolError`,
    `SettingsError`."""
    from asyncio import to_thread

    from babyagi.errors import SettingsError
    from babyagi.files.folder import Folder
    from babyagi.home import remembered_folder
    from babyagi.inbox import APPROVAL, read_request
    from babyagi.tools.catalog import NEED_A_FOLDER, open_tools

    name, arguments = read_request(step)
    if step.kind != APPROVAL or name not in NEED_A_FOLDER:
        return None
    path = settings.files or remembered_folder(
        settings.home, (await store.objective(step.objective_id)).uid
    )
    if path is None:
        raise SettingsError(
            "the folder of this objective is not known here; BABYAGI_FILES names it"
        )
    (tool,) = open_tools([name], folder=Folder(path), offload=to_thread)
    return await tool.preview(arguments) if tool.preview is not None else None


def _shape(request: Request) -> Json:
    from babyagi.inbox import asks_for_secret, decisions, describe, read_request

    step, task = request.step, request.task
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
        "model": request.model,
        "origins": list(request.origins),
        "asks_for_secret": asks_for_secret(step),
        "preview": request.preview.note if request.preview is not None else request.trouble,
    }


@click.command()
@click.argument("number", type=int)
@click.argument("text")
@json_option
def answer(number: int, text: str, as_json: bool) -> None:
    """Answer a question of a task.

    Or say what came of a call that may have been made. The task goes on with that.
    """
    from babyagi.inbox import Decision

    _decide(number, Decision.ANSWER, text, as_json=as_json)


@click.command()
@click.argument("number", type=int)
@click.option("--yes", is_flag=True, help="Do not show the call and ask.")
@json_option
def approve(number: int, yes: bool, as_json: bool) -> None:
    """Show a tool call whole, and allow it.

    It is made when a worker comes back to its task.
    """
    from babyagi.inbox import Decision

    _decide(number, Decision.APPROVE, "", as_json=as_json, is_seen=yes)


@click.command()
@click.argument("number", type=int)
@click.argument("why", default="")
@json_option
def reject(number: int, why: str, as_json: bool) -> None:
    """Refuse a tool call or a question.

    Or say that a call was not carried out. The task goes on with that.
    """
    from babyagi.inbox import Decision

    _decide(number, Decision.REJECT, why, as_json=as_json)


def _decide(
    number: int, decision: Decision, text: str, *, as_json: bool, is_seen: bool = False
) -> None:
    from babyagi.cli.session import STORE, load, with_store
    from babyagi.inbox import Decision, decide, write_decision

    settings = load(needs=STORE).settings

    async def change(store: TaskStore) -> Step | None:
        step, seen = await store.open_step(number), ""
        said = decide(step, decision, text)
        if decision is Decision.APPROVE:
            request = await _gather(store, step, settings)
            if not is_seen and not _is_confirmed(request):
                return None
            seen = request.preview.state if request.preview is not None else ""
        return await store.answer_step(number, output=write_decision(said, seen=seen))

    step = with_store(change, changes=True)
    if step is None:
        warn(f"Nothing is decided; number {number} waits.")
        return
    task_id = int(step.owner.removeprefix("task:"))
    if as_json:
        print_json(
            {
                "v": 1,
                "number": number,
                "decision": decision.value,
                "objective_id": step.objective_id,
                "task_id": task_id,
            }
        )
    else:
        echo(f"Task {task_id} of objective {step.objective_id} is queued with that.")
        echo(
            f"Next: babyagi resume --objective {step.objective_id}  (nothing to type if it "
            "is running somewhere)"
        )


def _is_confirmed(request: Request) -> bool:
    """Show the whole call to whoever is there, and ask. Raises `SettingsError` where nobody is."""
    from babyagi.cli.request import render_request
    from babyagi.errors import SettingsError

    number = request.step.id
    if not is_person_there():
        raise SettingsError(
            f"number {number} is not approved: nobody is there to be shown the call",
            fix=(
                f"babyagi inbox {number} shows all of it, babyagi approve {number} --yes "
                "approves it"
            ),
            guide="inbox",
        )
    lines: list[Line] = render_request(request, terminal_width(), is_whole=True)[:-1]
    for line in lines:
        warn(line.text, line.style)
    return ask("Is this call to be made, as it is shown? [y/N]").lower() in ("y", "yes")
