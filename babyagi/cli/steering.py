"""The commands that change an objective or its list."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click

from babyagi.cli.completion import complete_tasks
from babyagi.cli.lists import tasks, with_group_options
from babyagi.cli.options import LIMITS, json_option, objective_option, parse_flags, setting_options
from babyagi.cli.text import Style, ask, echo, fit, is_person_there, print_json, warn
from babyagi.errors import SettingsError

if TYPE_CHECKING:
    from babyagi.cli.json_shapes import Json
    from babyagi.cli.render import Row
    from babyagi.tasks import Objective, Place, Task
    from babyagi.taskstore.port import TaskStore

REPORT_LEASE_S = 60.0


@click.command()
@objective_option
@json_option
def pause(objective: str, as_json: bool) -> None:
    """Pause an objective: no worker makes a further call for it."""
    from babyagi.cli.session import pick_objective, touch, with_store

    async def change(store: TaskStore) -> Row:
        found = touch(await pick_objective(store, objective))
        found = await store.pause_objective(found.id)
        return found, await store.counts(found.id)

    _say(with_store(change, changes=True), as_json)


@click.command()
@objective_option
@json_option
def cancel(objective: str, as_json: bool) -> None:
    """End an objective; what was found is kept, with a report."""
    from babyagi.cli.session import pick_objective, touch, with_store
    from babyagi.cli.views import serving
    from babyagi.tasks import StopReason

    async def change(store: TaskStore) -> Row:
        found = touch(await pick_objective(store, objective))
        found = await store.end_objective(
            found.id, reason=StopReason.CANCELLED, detail="by the command `cancel`"
        )
        if not found.has_report and not serving(await store.workers(), found.id):
            await _write_report(store, found.id)
        return await store.objective(found.id), await store.counts(found.id)

    _say(with_store(change, changes=True), as_json)


async def _write_report(store: TaskStore, objective_id: int) -> None:
    """Nobody is at work who would do it, and no model is asked."""
    from babyagi.backends import utc_now
    from babyagi.home import new_worker_id
    from babyagi.reporting import write_without_model
    from babyagi.tasks import Worker

    writer = Worker(
        id=new_worker_id("cancel"),
        name="cancel",
        host=socket.gethostname(),
        pid=os.getpid(),
        lease_until=utc_now(),
    )
    await write_without_model(store, objective_id, writer=writer, lease_s=REPORT_LEASE_S)


@click.command()
@objective_option
@setting_options(LIMITS)
@json_option
def extend(objective: str, as_json: bool, **limits: str | None) -> None:
    """Set new limits; an objective that ended by one can go on then.

    So can one that stalled, failed, or was left unmet.
    """

    from babyagi.cli.session import pick_objective, touch, with_store

    given = parse_flags(limits)
    if not given:
        raise click.UsageError(
            "extend needs at least one limit, for instance --max-tasks 100",
            click.get_current_context(),
        )

    async def change(store: TaskStore) -> Row:
        before = touch(await pick_objective(store, objective))
        found = await store.extend_objective(
            before.id, limits=dataclasses.replace(before.spec.limits, **given)
        )
        if not as_json and before.stop_reason is not None and found.stop_reason is None:
            echo(f"Objective {found.id} had ended ({before.stop_reason}), and is open again.")
        return found, await store.counts(found.id)

    _say(with_store(change, changes=True), as_json)


@click.command()
@objective_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(objective: str, yes: bool) -> None:
    """Delete an objective for good, with all that belongs to it."""
    from babyagi.cli.objectives import delete_whole
    from babyagi.cli.session import load, pick_objective, with_store

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


def _say(row: Row, as_json: bool) -> None:
    from babyagi.cli import json_shapes, render

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
# Each is one transaction in the task store, so it needs no word to the workers: their next claim
# and their next call see it.
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
    from babyagi.app import require_room
    from babyagi.tasks import ObjectiveStatus, Place, Proposal

    async def change(store: TaskStore, found: Objective) -> Json:
        for task_id in after:
            await store.task(found.id, task_id)
        if found.status is ObjectiveStatus.ENDED:
            require_room(found)
        plan = await store.add_tasks(
            found.id, [Proposal(name=name, after=after)], to=Place.FIRST if first else Place.LAST
        )
        if not plan.added:
            raise SettingsError(
                "the name of the task is empty", fix='babyagi tasks add "what to do"', guide="tasks"
            )
        return _reopened(_said(plan.added[0], "is queued"), found)

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
@click.argument("task_id", metavar="TASK", type=int, shell_complete=complete_tasks)
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
@click.argument("task_id", metavar="TASK", type=int, shell_complete=complete_tasks)
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
@click.argument("task_id", metavar="TASK", type=int, shell_complete=complete_tasks)
@objective_option
@json_option
def retry(task_id: int, objective: str, as_json: bool) -> None:
    """Try a task again that was given up.

    An objective that ended goes on with `babyagi resume` then.
    """

    from babyagi.app import require_room
    from babyagi.tasks import ObjectiveStatus
    from babyagi.taskstore.limits import find_used_up

    async def change(store: TaskStore, found: Objective) -> Json:
        if found.status is ObjectiveStatus.ENDED and find_used_up(found) != "tasks":
            require_room(found)  # a task that was begun before counts no more
        task = await store.retry_task(found.id, task_id)
        return _reopened(_said(task, f"is queued for try {task.try_no}"), found)

    _change(change, objective, as_json)


def _reopened(said: Json, before: Objective) -> Json:
    """What is said of the change, and that the objective is open again where it had ended."""
    from babyagi.tasks import ObjectiveStatus

    is_reopened = before.status is ObjectiveStatus.ENDED
    went_on = (
        f"; objective {before.id} is open again: babyagi resume --objective {before.id}"
        if is_reopened
        else ""
    )
    return {**said, "words": said["words"] + went_on, "is_reopened": is_reopened}


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
    from babyagi.cli.session import pick_objective, touch, with_store

    selector, as_json = with_group_options(click.get_current_context(), objective, as_json)

    async def work(store: TaskStore) -> Json:
        return await change(store, touch(await pick_objective(store, selector)))

    said = with_store(work, changes=True)
    words = said.pop("words")
    if as_json:
        print_json(said)
    else:
        echo(f"Task {said['task']['id']} ({fit(said['task']['name'], NAME_WIDTH)}) {words}.")
