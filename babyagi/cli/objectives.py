"""The commands that list and change nothing: status, tasks, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from babyagi.cli.options import json_option, objective_option
from babyagi.cli.text import (
    JsonList,
    Line,
    Style,
    echo,
    echo_lines,
    is_terminal,
    print_json,
    terminal_height,
    terminal_width,
)
from babyagi.tasks import TaskStatus

if TYPE_CHECKING:
    from babyagi.cli.render import Row
    from babyagi.tasks import Result
    from babyagi.taskstore.port import TaskStore
    from babyagi.why import Facts

MIN_TASKS = 20  # rows on a terminal, however low it is

status_option = click.option(
    "--status",
    "statuses",
    type=click.Choice([status.value for status in TaskStatus]),
    multiple=True,
    help="Only tasks with this status; may be given several times.",
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="At most so many; 0 means all. Without it: what fits the terminal, all elsewhere.",
)


@click.command()
@objective_option
@json_option
def status(objective: str, as_json: bool) -> None:
    """Show how one objective stands, and what to type next."""
    from babyagi import json_shapes
    from babyagi.cli import render, views
    from babyagi.cli.session import pick_objective, with_store
    from babyagi.verbs import Stand, find_stand

    async def fetch(store: TaskStore) -> Stand:
        return await find_stand(store, await pick_objective(store, objective))

    stand = with_store(fetch)
    if as_json:
        print_json(json_shapes.stand_shape(stand))
        return
    found = stand.objective
    lines = render.render_status(
        found, stand.counts, terminal_width(), index_trouble=stand.index_trouble
    )
    now = [Line(f"Now:      {stand.reason.says}")] if found.stop_reason is None else []
    at_work = Line(f"At work:  {views.render_serving(stand.workers, found.id)}")
    echo_lines([*lines[:-1], *now, at_work, lines[-1]])


@click.group(invoke_without_command=True)
@objective_option
@status_option
@limit_option
@json_option
@click.pass_context
def tasks(
    context: click.Context,
    objective: str,
    statuses: Sequence[str],
    limit: int | None,
    as_json: bool,
) -> None:
    """The task list in its order; the bare form lists."""
    if context.invoked_subcommand is None:
        _list_tasks(objective, statuses, limit, as_json)


@tasks.command("list")
@objective_option
@status_option
@limit_option
@json_option
@click.pass_context
def tasks_list(
    context: click.Context,
    objective: str,
    statuses: Sequence[str],
    limit: int | None,
    as_json: bool,
) -> None:
    """List the tasks in the order in which they will be taken."""
    selector, is_json = with_group_options(context, objective, as_json)
    given = context.parent.params if context.parent is not None else {}
    _list_tasks(
        selector,
        statuses or given.get("statuses", ()),
        limit if limit is not None else given.get("limit"),
        is_json,
    )


def with_group_options(context: click.Context, objective: str, as_json: bool) -> tuple[str, bool]:
    """Return the options of a command merged with those of its group: `tasks --json list` means
    `tasks list --json`."""
    given = context.parent.params if context.parent is not None else {}
    return (
        objective if objective != "latest" else given.get("objective", objective)
    ), as_json or bool(given.get("as_json"))


def _list_tasks(selector: str, statuses: Sequence[str], limit: int | None, as_json: bool) -> None:
    from babyagi.cli.session import pick_objective, with_store
    from babyagi.why import find_facts

    wanted = [TaskStatus(status) for status in statuses]

    async def give(store: TaskStore) -> None:
        facts = await find_facts(store, (await pick_objective(store, selector)).id)
        if as_json:
            await _print_tasks(store, facts, wanted, limit or 0)
        else:
            n_shown = await _echo_tasks(store, facts, wanted, _screen_limit(limit))
            _echo_rest(facts, wanted, n_shown)

    with_store(give)


async def _print_tasks(
    store: TaskStore, facts: Facts, wanted: Sequence[TaskStatus], limit: int
) -> None:
    from babyagi.json_shapes import listed_task_shape
    from babyagi.verbs import choose_pages
    from babyagi.why import explain_tasks

    written = JsonList()
    async for page in choose_pages(store, facts, wanted, limit):
        reasons = await explain_tasks(store, facts, page)
        written.add(
            listed_task_shape(task, reason) for task, reason in zip(page, reasons, strict=True)
        )
    written.close()


def _screen_limit(limit: int | None) -> int:
    """Return the limit that was asked for; otherwise what fits on a terminal, and no limit in a
    pipe."""
    if limit is not None:
        return limit
    return max(MIN_TASKS, terminal_height() - 4) if is_terminal() else 0


async def _echo_tasks(
    store: TaskStore, facts: Facts, wanted: Sequence[TaskStatus], limit: int
) -> int:
    from babyagi.cli import render
    from babyagi.verbs import choose_pages
    from babyagi.why import explain_tasks

    n_shown, width = 0, terminal_width()
    echo_lines([render.render_tasks_head()])
    async for page in choose_pages(store, facts, wanted, limit):
        reasons = await explain_tasks(store, facts, page)
        echo_lines(
            render.render_task(task, width, word=reason.word)
            for task, reason in zip(page, reasons, strict=True)
        )
        n_shown += len(page)
    return n_shown


def _echo_rest(facts: Facts, wanted: Sequence[TaskStatus], n_shown: int) -> None:
    from babyagi.verbs import count_tasks

    n_left = count_tasks(facts, wanted) - n_shown
    if n_left > 0:
        status = "" if wanted else ", --status done those that are done"
        echo(f"      and {n_left:,} more: --limit 0 shows all{status}", Style.DIM)


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
    from babyagi import json_shapes
    from babyagi.artifacts import Made, find_artifacts
    from babyagi.cli import render
    from babyagi.cli.session import pick_objective, with_store

    async def fetch(store: TaskStore) -> tuple[list[Result], list[Made]]:
        found = await store.results((await pick_objective(store, selector)).id)
        return found, await find_artifacts(store, found)

    found, made = with_store(fetch)
    if as_json:
        print_json([json_shapes.result_shape(result, made) for result in found])
    elif found:
        echo_lines(render.render_results(found, made))
    else:
        echo("No result yet. `babyagi status` says how it stands.")


# -- objectives
# --------------------------------------------------------------------------------------------------


MAX_SHOWN = 30


class Searched(click.Group):
    """A group that searches for its words unless they name a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            return "list", self.commands["list"], args
        return super().resolve_command(ctx, args)


def list_options(command: Any) -> Any:
    for option in (
        json_option,
        click.option("--all", "shows_all", is_flag=True, help="Also the oldest."),
        click.option("--ended", "is_ended", is_flag=True, help="Only those that have ended."),
        click.option("--active", "is_active", is_flag=True, help="Only those that have not ended."),
    ):
        command = option(command)
    return command


@click.group(cls=Searched, invoke_without_command=True)
@list_options
@click.pass_context
def objectives(context: click.Context, /, **flags: bool) -> None:
    """List objectives with times, states and costs.

    The newest is the last one. With words: those whose text has all of them.
    """
    if context.invoked_subcommand is None:
        _list((), **flags)


@objectives.command("list")
@click.argument("words", nargs=-1)
@list_options
@click.pass_context
def objectives_list(context: click.Context, /, words: tuple[str, ...], **flags: bool) -> None:
    """The same; with WORDS those whose text has all of them."""
    above = context.parent.params if context.parent is not None else {}
    _list(words, **{name: value or bool(above.get(name)) for name, value in flags.items()})


def _list(
    words: Sequence[str], *, as_json: bool, shows_all: bool, is_ended: bool, is_active: bool
) -> None:
    from babyagi import json_shapes
    from babyagi.cli import render
    from babyagi.cli.session import with_store
    from babyagi.cli.text import terminal_width
    from babyagi.verbs import find_objectives

    async def fetch(store: TaskStore) -> tuple[list[Row], int]:
        found = await find_objectives(store, words, is_ended=is_ended, is_active=is_active)
        shown = found if shows_all or as_json else found[-MAX_SHOWN:]
        return [(one, await store.counts(one.id)) for one in shown], len(found) - len(shown)

    rows, n_older = with_store(fetch)
    if as_json:
        print_json([json_shapes.objective_shape(objective, counts) for objective, counts in rows])
    elif rows:
        if n_older:
            echo(f"{n_older} older ones are not shown: babyagi objectives --all", Style.DIM)
        echo_lines(render.render_objectives(rows, terminal_width()))
    elif words or is_ended or is_active:
        echo("No such objective. All of them: babyagi objectives")
    else:
        echo('No objective yet. Type: babyagi demo, or babyagi run "an objective"')
