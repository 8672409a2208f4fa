"""The commands that list and change nothing: status, tasks, results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

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
    from babyagi.tasks import Result, Task, Worker
    from babyagi.taskstore.port import TaskStore
    from babyagi.why import Facts, Reason

PAGE = 1000
MIN_TASKS = 20  # on a terminal, however low it is
OPEN_FIRST = (
    TaskStatus.RUNNING,
    TaskStatus.RECORDED,
    TaskStatus.WAITING,
    TaskStatus.QUEUED,
    TaskStatus.DEAD,
)

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
    from babyagi.cli import json_shapes, render, views
    from babyagi.cli.session import pick_objective, with_store
    from babyagi.index.indexer import find_trouble
    from babyagi.why import explain_objective, find_facts

    async def fetch(store: TaskStore) -> tuple[Row, list[Worker], str, Reason]:
        found = await pick_objective(store, objective)
        running = await store.tasks(found.id, statuses=[TaskStatus.RUNNING])
        facts = await find_facts(store, found.id)
        return (
            (found, await store.counts(found.id)),
            await store.workers(),
            await find_trouble(store, found.id),
            explain_objective(facts, running=running),
        )

    (found, counts), workers, trouble, reason = with_store(fetch)
    if as_json:
        shape = {**json_shapes.status_shape(found, counts), "index_trouble": trouble}
        shape["why"] = json_shapes.why_shape(reason)
        print_json({**shape, "n_workers": len(views.serving(workers, found.id))})
    else:
        lines = render.render_status(found, counts, terminal_width(), index_trouble=trouble)
        now = [Line(f"Now:      {reason.says}")] if found.stop_reason is None else []
        at_work = Line(f"At work:  {views.render_serving(workers, found.id)}")
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
    """What the options of a command and of its group mean together: `tasks --json list` is the same
    as `tasks list --json`."""
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
    from babyagi.cli.json_shapes import task_shape, why_shape
    from babyagi.why import explain_tasks

    written = JsonList()
    async for page in _choose_pages(store, facts, wanted, limit):
        reasons = await explain_tasks(store, facts, page)
        written.add(
            {**task_shape(task), "why": why_shape(reason)}
            for task, reason in zip(page, reasons, strict=True)
        )
    written.close()


def _screen_limit(limit: int | None) -> int:
    """What was asked for; else what fits a terminal, and all where there is none."""
    if limit is not None:
        return limit
    return max(MIN_TASKS, terminal_height() - 4) if is_terminal() else 0


async def _echo_tasks(
    store: TaskStore, facts: Facts, wanted: Sequence[TaskStatus], limit: int
) -> int:
    from babyagi.cli import render
    from babyagi.why import explain_tasks

    n_shown, width = 0, terminal_width()
    echo_lines([render.render_tasks_head()])
    async for page in _choose_pages(store, facts, wanted, limit):
        reasons = await explain_tasks(store, facts, page)
        echo_lines(
            render.render_task(task, width, word=reason.word)
            for task, reason in zip(page, reasons, strict=True)
        )
        n_shown += len(page)
    return n_shown


def _echo_rest(facts: Facts, wanted: Sequence[TaskStatus], n_shown: int) -> None:
    n_left = _count(facts, wanted) - n_shown
    if n_left > 0:
        status = "" if wanted else ", --status done those that are done"
        echo(f"      and {n_left:,} more: --limit 0 shows all{status}", Style.DIM)


def _count(facts: Facts, wanted: Sequence[TaskStatus]) -> int:
    return sum(n for status, n in facts.standing.counts.items() if not wanted or status in wanted)


async def _choose_pages(
    store: TaskStore, facts: Facts, wanted: Sequence[TaskStatus], limit: int
) -> AsyncIterator[list[Task]]:
    """The tasks to show, in pages. Where not all may be shown and no status was asked for: what is
    done now, what waits, what comes next, then what was finished last."""
    objective_id = facts.objective.id
    if limit and not wanted and _count(facts, wanted) > limit:
        left = limit
        for status in OPEN_FIRST:
            page = await store.tasks_page(objective_id, status=status, limit=left)
            left -= len(page)
            yield page
            if not left:
                return
        yield await store.last_finished(objective_id, limit=left)
        return
    left = limit or _count(facts, wanted) + PAGE
    async for page in walk_tasks(store, objective_id, wanted or list(TaskStatus)):
        yield page[:left]
        left -= len(page)
        if left <= 0:
            return


async def walk_tasks(
    store: TaskStore, objective_id: int, statuses: Sequence[TaskStatus]
) -> AsyncIterator[list[Task]]:
    """The tasks of some statuses in the list's order, page by page."""
    known: dict[TaskStatus, list[Task]] = {status: [] for status in statuses}
    last: dict[TaskStatus, Task | None] = dict.fromkeys(statuses)
    unread = set(statuses)
    while unread or any(known.values()):
        for status in [status for status in unread if not known[status]]:
            page = await store.tasks_page(
                objective_id, status=status, after=last[status], limit=PAGE
            )
            known[status], last[status] = page, page[-1] if page else None
            if len(page) < PAGE:
                unread.discard(status)
        # whatever comes before the last one of each page that is not the last page is known
        end = min((_place(known[status][-1]) for status in unread), default=None)
        page = []
        for status, tasks_ in known.items():
            n = sum(1 for task in tasks_ if end is None or _place(task) <= end)
            page += tasks_[:n]
            known[status] = tasks_[n:]
        yield sorted(page, key=_place)


def _place(task: Task) -> tuple[int, int]:
    return task.rank, task.id


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
    from babyagi.artifacts import Made, find_artifacts
    from babyagi.cli import json_shapes, render
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
