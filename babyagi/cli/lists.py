"""The commands that look and change nothing: objectives, status, tasks, results, show, report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from babyagi.cli.options import json_option, objective_option
from babyagi.cli.text import Line, echo, echo_lines, print_json, terminal_width

if TYPE_CHECKING:
    from babyagi.cli.render import Row
    from babyagi.tasks import Result, Step, Task, Worker
    from babyagi.taskstore.port import TaskStore


@click.command()
@json_option
def objectives(as_json: bool) -> None:
    """List all objectives, oldest first."""
    from babyagi.cli import json_shapes, render
    from babyagi.cli.session import with_store

    async def fetch(store: TaskStore) -> list[Row]:
        return [
            (objective, await store.counts(objective.id)) for objective in await store.objectives()
        ]

    rows = with_store(fetch)
    if as_json:
        print_json([json_shapes.objective_shape(objective, counts) for objective, counts in rows])
    elif rows:
        echo_lines(render.render_objectives(rows, terminal_width()))
    else:
        echo('No objective yet. Type: babyagi demo, or babyagi run "an objective"')


@click.command()
@objective_option
@json_option
def status(objective: str, as_json: bool) -> None:
    """Show how one objective stands, and what to type next."""
    from babyagi.cli import json_shapes, render, views
    from babyagi.cli.session import pick_objective, with_store
    from babyagi.index.indexer import find_trouble

    async def fetch(store: TaskStore) -> tuple[Row, list[Worker], str]:
        found = await pick_objective(store, objective)
        return (
            (found, await store.counts(found.id)),
            await store.workers(),
            await find_trouble(store, found.id),
        )

    (found, counts), workers, trouble = with_store(fetch)
    if as_json:
        shape = {**json_shapes.status_shape(found, counts), "index_trouble": trouble}
        print_json({**shape, "n_workers": len(views.serving(workers, found.id))})
    else:
        lines = render.render_status(found, counts, terminal_width(), index_trouble=trouble)
        echo_lines(
            [
                *lines[:-1],
                Line(f"At work:  {views.render_serving(workers, found.id)}"),
                lines[-1],
            ]
        )


@click.group(invoke_without_command=True)
@objective_option
@json_option
@click.pass_context
def tasks(context: click.Context, objective: str, as_json: bool) -> None:
    """The task list in its order; the bare form lists."""
    if context.invoked_subcommand is None:
        _list_tasks(objective, as_json)


@tasks.command("list")
@objective_option
@json_option
@click.pass_context
def tasks_list(context: click.Context, objective: str, as_json: bool) -> None:
    """List the tasks in the order in which they will be taken."""
    _list_tasks(*with_group_options(context, objective, as_json))


def with_group_options(context: click.Context, objective: str, as_json: bool) -> tuple[str, bool]:
    """What the options of a command and of its group mean together: `tasks --json list` is the same
    as `tasks list --json`."""
    given = context.parent.params if context.parent is not None else {}
    return (
        objective if objective != "latest" else given.get("objective", objective)
    ), as_json or bool(given.get("as_json"))


def _list_tasks(selector: str, as_json: bool) -> None:
    from babyagi.cli import json_shapes, render
    from babyagi.cli.session import pick_objective, with_store

    async def fetch(store: TaskStore) -> list[Task]:
        return await store.tasks((await pick_objective(store, selector)).id)

    found = with_store(fetch)
    if as_json:
        print_json([json_shapes.task_shape(task) for task in found])
    else:
        echo_lines(render.render_tasks(found, terminal_width()))


@click.group(invoke_without_command=True)
@objective_option
@json_option
@click.pass_context
def results(context: click.Context, objective: str, as_json: bool) -> None:
    """What the finished tasks found; the bare form lists."""
    if context.invoked_subcommand is None:
        _list_results(objective, as_json)


@results.command("list")
@objective_option
@json_option
@click.pass_context
def results_list(context: click.Context, objective: str, as_json: bool) -> None:
    """List the results in the order in which they were recorded."""
    _list_results(*with_group_options(context, objective, as_json))


def _list_results(selector: str, as_json: bool) -> None:
    from babyagi.cli import json_shapes, render
    from babyagi.cli.session import pick_objective, with_store

    async def fetch(store: TaskStore) -> list[Result]:
        return await store.results((await pick_objective(store, selector)).id)

    found = with_store(fetch)
    if as_json:
        print_json([json_shapes.result_shape(result) for result in found])
    elif found:
        echo_lines(render.render_results(found))
    else:
        echo("No result yet. `babyagi status` says how it stands.")


@click.command()
@click.argument("task_id", metavar="TASK", type=int)
@objective_option
@json_option
def show(task_id: int, objective: str, as_json: bool) -> None:
    """Show one task with its result, its error and its calls."""
    from babyagi.cli import json_shapes, render
    from babyagi.cli.session import pick_objective, with_store

    async def fetch(store: TaskStore) -> tuple[Task, Result | None, list[Step], bool]:
        picked = await pick_objective(store, objective)
        objective_id = picked.id
        task = await store.task(objective_id, task_id)
        found = await store.results(objective_id, task_ids=[task_id])
        return (
            task,
            found[0] if found else None,
            await store.steps(objective_id, owner=f"task:{task_id}"),
            picked.spec.has_price,
        )

    task, result, steps, has_price = with_store(fetch)
    if as_json:
        print_json(json_shapes.show_shape(task, result=result, steps=steps))
    else:
        echo_lines(
            render.render_show(
                task, result=result, steps=steps, width=terminal_width(), has_price=has_price
            )
        )
