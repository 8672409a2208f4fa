"""The commands that change the task list while others work on it: tasks add, move, edit, skip; and
retry.

Each is one transaction in the task store, so it needs no word to the workers: their next claim and
their next call see it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from babyagi.cli.looking import tasks, with_group_options
from babyagi.cli.options import json_option, objective_option
from babyagi.cli.text import echo, fit, print_json

if TYPE_CHECKING:
    from babyagi.cli.json_shapes import Json
    from babyagi.tasks import Objective, Place, Task
    from babyagi.taskstore.base import TaskStore

NAME_WIDTH = 80


@tasks.command()
@click.argument("name")
@click.option(
    "--first", is_flag=True, help="Put it before everything that is queued, instead of at the end."
)
@click.option(
    "--after",
    type=int,
    multiple=True,
    metavar="TASK",
    help="Start it only when this task is done; can be given several times.",
)
@objective_option
@json_option
def add(name: str, first: bool, after: tuple[int, ...], objective: str, as_json: bool) -> None:
    """Add a task to the list.

    An objective that has ended is open again then, unless it was cancelled.
    """
    from babyagi.errors import SettingsError
    from babyagi.tasks import Place, Proposal

    async def change(store: TaskStore, found: Objective) -> Json:
        for task_id in after:
            await store.task(found.id, task_id)
        plan = await store.add_tasks(
            found.id, [Proposal(name=name, after=after)], to=Place.FIRST if first else Place.LAST
        )
        if not plan.added:
            raise SettingsError(
                "the name of the task is empty", fix='babyagi tasks add "what to do"', guide="tasks"
            )
        return _said(plan.added[0], "is queued")

    _change(change, objective, as_json)


@tasks.command()
@click.argument("task_id", metavar="TASK", type=int)
@click.option("--first", is_flag=True, help="Before everything else that is queued.")
@click.option("--last", is_flag=True, help="After everything else that is queued.")
@click.option("--before", type=int, metavar="TASK", help="Before this task.")
@objective_option
@json_option
def move(
    task_id: int, first: bool, last: bool, before: int | None, objective: str, as_json: bool
) -> None:
    """Put a queued task at another place of the list."""
    to = _place(first=first, last=last, before=before)

    async def change(store: TaskStore, found: Objective) -> Json:
        return _said(await store.move_task(found.id, task_id, to=to), "is moved")

    _change(change, objective, as_json)


def _place(first: bool, last: bool, before: int | None) -> Place | int:
    from babyagi.tasks import Place

    if first + last + (before is not None) != 1:
        raise click.UsageError(
            "say where: --first, --last or --before TASK", click.get_current_context()
        )
    if before is not None:
        return before
    return Place.FIRST if first else Place.LAST


@tasks.command()
@click.argument("task_id", metavar="TASK", type=int)
@click.argument("name")
@objective_option
@json_option
def edit(task_id: int, name: str, objective: str, as_json: bool) -> None:
    """Put another task in the place of a queued one.

    A task keeps its number and its name for life, so the old one is cancelled and a new one takes
    its place in the list, also for the tasks that come after it.
    """

    async def change(store: TaskStore, found: Objective) -> Json:
        said = _said(
            await store.replace_task(found.id, task_id, name=name),
            f"takes the place of task {task_id}, which is cancelled",
        )
        return {**said, "replaced_task_id": task_id}

    _change(change, objective, as_json)


@tasks.command()
@click.argument("task_id", metavar="TASK", type=int)
@objective_option
@json_option
def skip(task_id: int, objective: str, as_json: bool) -> None:
    """Cancel a queued or waiting task.

    Tasks that come after it need not wait for it.
    """

    async def change(store: TaskStore, found: Objective) -> Json:
        return _said(await store.cancel_task(found.id, task_id), "is cancelled")

    _change(change, objective, as_json)


@click.command()
@click.argument("task_id", metavar="TASK", type=int)
@objective_option
@json_option
def retry(task_id: int, objective: str, as_json: bool) -> None:
    """Try a task again that was given up.

    An objective that ended goes on with `babyagi resume` then.
    """
    from babyagi.tasks import ObjectiveStatus

    async def change(store: TaskStore, found: Objective) -> Json:
        task = await store.retry_task(found.id, task_id)
        is_reopened = found.status is ObjectiveStatus.ENDED
        went_on = (
            f"; objective {found.id} is open again: babyagi resume --objective {found.id}"
            if is_reopened
            else ""
        )
        return {
            **_said(task, f"is queued for try {task.try_no}{went_on}"),
            "is_reopened": is_reopened,
        }

    _change(change, objective, as_json)


def _said(task: Task, words: str) -> Json:
    from babyagi.cli.json_shapes import VERSION, task_shape

    return {
        "v": VERSION,
        "objective_id": task.objective_id,
        "task": task_shape(task),
        "words": words,
    }


def _change(
    change: Callable[[TaskStore, Objective], Awaitable[Json]], objective: str, as_json: bool
) -> None:
    """Make the change in the objective that is meant, and say what came of it."""
    from babyagi.cli.session import pick_objective, with_store

    selector, as_json = with_group_options(click.get_current_context(), objective, as_json)

    async def work(store: TaskStore) -> Json:
        return await change(store, await pick_objective(store, selector))

    said = with_store(work, changes=True)
    words = said.pop("words")
    if as_json:
        print_json(said)
    else:
        echo(f"Task {said['task']['id']} ({fit(said['task']['name'], NAME_WIDTH)}) {words}.")
