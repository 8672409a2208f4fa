"""The commands that change an objective or its list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

import click

from babyagi.cli.completion import complete_tasks
from babyagi.cli.lists import tasks, with_group_options
from babyagi.cli.options import LIMITS, json_option, objective_option, parse_flags, setting_options
from babyagi.cli.text import Style, ask, echo, fit, is_person_there, print_json, warn

if TYPE_CHECKING:
    from babyagi.tasks import Objective, Place, TaskStatus
    from babyagi.taskstore.port import TaskStore
    from babyagi.verbs import Changed

    Stood = tuple[Objective, Mapping[TaskStatus, int]]


@click.command()
@objective_option
@json_option
def pause(objective: str, as_json: bool) -> None:
    """Pause an objective: no worker makes a further call for it."""
    from babyagi import verbs
    from babyagi.cli.session import pick_objective, touch, with_store

    async def change(store: TaskStore) -> Stood:
        return await verbs.pause(store, touch(await pick_objective(store, objective)))

    _say(with_store(change, changes=True), as_json)


@click.command()
@objective_option
@json_option
def cancel(objective: str, as_json: bool) -> None:
    """End an objective; what was found is kept, with a report."""
    from babyagi import verbs
    from babyagi.cli.session import pick_objective, touch, with_store

    async def change(store: TaskStore) -> Stood:
        return await verbs.cancel(store, touch(await pick_objective(store, objective)))

    _say(with_store(change, changes=True), as_json)


@click.command()
@objective_option
@setting_options(LIMITS)
@json_option
def extend(objective: str, as_json: bool, **limits: str | None) -> None:
    """Set new limits; an objective that ended by one can go on then.

    So can one that stalled, failed, or was left unmet.
    """

    from babyagi import verbs
    from babyagi.cli.session import pick_objective, touch, with_store

    given = parse_flags(limits)
    if not given:
        raise click.UsageError(
            "extend needs at least one limit, for instance --max-tasks 100",
            click.get_current_context(),
        )

    async def change(store: TaskStore) -> Stood:
        before = touch(await pick_objective(store, objective))
        found, counts = await verbs.extend(store, before, given)
        if not as_json and before.stop_reason is not None and found.stop_reason is None:
            echo(f"Objective {found.id} had ended ({before.stop_reason}), and is open again.")
        return found, counts

    _say(with_store(change, changes=True), as_json)


@click.command()
@objective_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(objective: str, yes: bool) -> None:
    """Delete an objective for good, with all that belongs to it."""
    from babyagi.cli.session import load, pick_objective, with_store
    from babyagi.verbs import delete_whole

    settings = load().settings

    async def change(store: TaskStore) -> tuple[Objective, str] | None:
        found = await pick_objective(store, objective)
        if not yes and not _is_confirmed(found):
            return None
        return found, await delete_whole(store, settings, found)

    deleted, trouble = with_store(change, settings=settings) or (None, "")
    if trouble:
        warn(
            f"note: the index may keep vectors and beginnings of its results: {trouble}",
            Style.YELLOW,
        )
    echo(f"Objective {deleted.id} is deleted." if deleted is not None else "Nothing is deleted.")


def _is_confirmed(objective: Objective) -> bool:
    if not is_person_there():
        from babyagi.errors import SettingsError

        raise SettingsError(
            f"objective {objective.id} is not deleted: nobody is there to confirm",
            fix=f"babyagi delete --objective {objective.id} --yes",
            guide="objectives",
        )
    return ask(
        f"Delete objective {objective.id} ({fit(objective.spec.text, 60)}) for good? [y/N]"
    ).lower() in ("y", "yes")


def _say(row: Stood, as_json: bool) -> None:
    from babyagi import json_shapes
    from babyagi.cli import render

    objective, counts = row
    if as_json:
        print_json(json_shapes.status_shape(objective, counts))
        return
    how = "is" if objective.stop_reason is None else "has"
    echo(f"Objective {objective.id} {how} {render.render_status_words(objective)}.")
    echo(f"Limits: {render.render_limit_values(objective.spec.limits)}.")
    echo(f"Next: {render.render_next(objective, counts)}")


# --------------------------------------------------------------------------------------------------
# The commands that change the task list while others work on it: tasks add, move, edit, skip; and
# retry.
#
# Each is one transaction in the task store. Workers need no notice: their next claim and their next
# call see the change.
# --------------------------------------------------------------------------------------------------

NAME_WIDTH = 80


@tasks.command()
@click.argument("name")
@click.option(
    "--first", is_flag=True, help="Put it before everything that is queued, instead of at the end."
)
@click.option(
    "--after",
    type=int,
    shell_complete=complete_tasks,
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
    from babyagi import verbs
    from babyagi.tasks import Place

    async def change(store: TaskStore, found: Objective) -> Changed:
        to = Place.FIRST if first else Place.LAST
        return await verbs.add_task(store, found, name, to=to, after=after)

    _change(change, objective, as_json)


@tasks.command()
@click.argument("task_id", metavar="TASK", type=int, shell_complete=complete_tasks)
@click.option("--first", is_flag=True, help="Before everything else that is queued.")
@click.option("--last", is_flag=True, help="After everything else that is queued.")
@click.option(
    "--before", type=int, metavar="TASK", help="Before this task.", shell_complete=complete_tasks
)
@objective_option
@json_option
def move(
    task_id: int, first: bool, last: bool, before: int | None, objective: str, as_json: bool
) -> None:
    """Put a queued task at another place of the list."""
    from babyagi import verbs

    to = _place(first=first, last=last, before=before)

    async def change(store: TaskStore, found: Objective) -> Changed:
        return await verbs.move_task(store, found, task_id, to=to)

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
@click.argument("task_id", metavar="TASK", type=int, shell_complete=complete_tasks)
@click.argument("name")
@objective_option
@json_option
def edit(task_id: int, name: str, objective: str, as_json: bool) -> None:
    """Put another task in the place of a queued one.

    A task keeps its number and its name for life, so the old one is cancelled and a new one takes
    its place in the list, also for the tasks that come after it.
    """

    from babyagi import verbs

    async def change(store: TaskStore, found: Objective) -> Changed:
        return await verbs.edit_task(store, found, task_id, name)

    _change(change, objective, as_json)


@tasks.command()
@click.argument("task_id", metavar="TASK", type=int, shell_complete=complete_tasks)
@objective_option
@json_option
def skip(task_id: int, objective: str, as_json: bool) -> None:
    """Cancel a queued or waiting task.

    Tasks that come after it need not wait for it.
    """

    from babyagi import verbs

    async def change(store: TaskStore, found: Objective) -> Changed:
        return await verbs.skip_task(store, found, task_id)

    _change(change, objective, as_json)


@click.command()
@click.argument("task_id", metavar="TASK", type=int, shell_complete=complete_tasks)
@objective_option
@json_option
def retry(task_id: int, objective: str, as_json: bool) -> None:
    """Try a task again that was given up.

    An objective that ended goes on with `babyagi resume` then.
    """

    from babyagi import verbs

    async def change(store: TaskStore, found: Objective) -> Changed:
        return await verbs.retry_task(store, found, task_id)

    _change(change, objective, as_json)


def _change(
    change: Callable[[TaskStore, Objective], Awaitable[Changed]], objective: str, as_json: bool
) -> None:
    """Make the change in the selected objective, and print the outcome."""
    from babyagi.cli.session import pick_objective, touch, with_store
    from babyagi.json_shapes import changed_shape

    selector, as_json = with_group_options(click.get_current_context(), objective, as_json)

    async def work(store: TaskStore) -> Changed:
        return await change(store, touch(await pick_objective(store, selector)))

    changed = with_store(work, changes=True)
    if as_json:
        print_json(changed_shape(changed))
    else:
        echo(f"Task {changed.task.id} ({fit(changed.task.name, NAME_WIDTH)}) {changed.words}.")
