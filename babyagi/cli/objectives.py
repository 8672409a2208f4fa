"""The commands that show and change objectives and their tasks: status, tasks, results, objectives,
pause, cancel, extend, delete and retry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import click

from babyagi.cli.options import (
    LIMITS,
    Listing,
    json_option,
    objective_option,
    parse_flags,
    setting_options,
    wrong_usage,
)
from babyagi.cli.text import (
    JsonList,
    Line,
    Style,
    confirm,
    echo,
    echo_lines,
    fit,
    is_person_there,
    is_terminal,
    print_json,
    terminal_height,
    terminal_width,
    warn,
)
from babyagi.tasks import ObjectiveStatus, TaskStatus
from babyagi.text import say_count

if TYPE_CHECKING:
    from babyagi.cli.render import Row
    from babyagi.reporting.why import Facts
    from babyagi.tasks import Objective, Place, Result
    from babyagi.taskstore.sql.store import TaskStore
    from babyagi.verbs import Changed, Prunable
    from babyagi.verbs import Row as Standing

MIN_TASKS = 20  # rows on a terminal, however low it is
MAX_LISTED = 1_000  # items of a list, unless --limit says otherwise

status_option = click.option(
    "--status",
    "statuses",
    type=click.Choice([status.value for status in TaskStatus]),
    multiple=True,
    help="List only tasks with this status; can be given several times.",
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="List at most this many; 0 means all. Default: as many tasks as fit the terminal, else "
    f"{MAX_LISTED:,}.",
)


@click.command()
@objective_option
@json_option
def status(objective: str, as_json: bool) -> None:
    """Show the state of one objective, and what to type next."""
    from babyagi import json_shapes, verbs
    from babyagi.cli import render, session, views

    stand = session.with_objective(objective, verbs.find_stand)
    if as_json:
        print_json(json_shapes.stand_shape(stand))
        return
    found = stand.objective
    is_served, trouble = bool(verbs.serving(stand.workers, found.id)), stand.index_trouble
    lines = render.render_status(
        found, stand.counts, terminal_width(), is_served=is_served, index_trouble=trouble
    )
    is_active = found.status is ObjectiveStatus.ACTIVE
    now = [Line(f"Now:      {stand.reason.says}")] if is_active else []
    at_work = Line(f"At work:  {views.render_serving(stand.workers, found.id)}")
    echo_lines([*lines[:-1], *now, at_work, lines[-1]])


tasks = Listing("tasks", "List the tasks in order, or change the list. Alone, it lists them.")


@tasks.command("list")
@objective_option
@status_option
@limit_option
@json_option
def tasks_list(objective: str, statuses: Sequence[str], limit: int | None, as_json: bool) -> None:
    """List the tasks in the order in which workers will claim them."""
    from babyagi.cli.session import with_objective
    from babyagi.reporting.why import find_facts
    from babyagi.verbs import count_tasks

    wanted = [TaskStatus(status) for status in statuses]

    async def give(store: TaskStore, found: Objective) -> None:
        facts = await find_facts(store, found.id)
        bound = _bound(limit, fits_screen=not as_json)
        show = _print_tasks if as_json else _echo_tasks
        n_shown = await show(store, facts, wanted, bound)
        status = "" if wanted else ", --status done shows the finished ones"
        _say_rest(count_tasks(facts, wanted) - n_shown, "", as_json=as_json, more=status)

    with_objective(objective, give)


async def _print_tasks(
    store: TaskStore, facts: Facts, wanted: Sequence[TaskStatus], limit: int
) -> int:
    from babyagi import json_shapes, verbs
    from babyagi.reporting.why import explain_tasks

    n_shown, written = 0, JsonList()
    async for page in verbs.choose_pages(store, facts, wanted, limit):
        pairs = zip(page, await explain_tasks(store, facts, page), strict=True)
        written.add(json_shapes.listed_task_shape(task, reason) for task, reason in pairs)
        n_shown += len(page)
    written.close()
    return n_shown


def _bound(limit: int | None, *, fits_screen: bool) -> int:
    """Return the given limit. If it is None, return `MAX_LISTED`, or with `fits_screen` the number
    of rows that fit the terminal, if standard output is one."""
    if limit is not None:
        return limit
    return max(MIN_TASKS, terminal_height() - 4) if fits_screen and is_terminal() else MAX_LISTED


async def _echo_tasks(
    store: TaskStore, facts: Facts, wanted: Sequence[TaskStatus], limit: int
) -> int:
    from babyagi.cli import render
    from babyagi.reporting.why import explain_tasks
    from babyagi.verbs import choose_pages

    n_shown, width = 0, terminal_width()
    echo_lines([render.render_tasks_head()])
    async for page in choose_pages(store, facts, wanted, limit):
        pairs = zip(page, await explain_tasks(store, facts, page), strict=True)
        echo_lines(render.render_task(task, width, word=reason.word) for task, reason in pairs)
        n_shown += len(page)
    return n_shown


def _say_rest(n_left: int, which: str, *, as_json: bool, more: str = "") -> None:
    """Say how many items were left out, if any; with `as_json` on standard error."""
    if n_left > 0:
        say = warn if as_json else echo
        say(f"      and {n_left:,} {which}more: --limit 0 shows all{more}", Style.DIM)


results = Listing(
    "results", "List the results of finished tasks, or search them. Alone, it lists them."
)


@results.command("list")
@objective_option
@limit_option
@json_option
def results_list(objective: str, limit: int | None, as_json: bool) -> None:
    """List the results in the order in which they were recorded.

    If there are more than the limit, the newest are listed.
    """
    from babyagi import json_shapes
    from babyagi.cli import render, session
    from babyagi.reporting.artifacts import Made, find_artifacts

    bound = _bound(limit, fits_screen=False)

    async def fetch(store: TaskStore, one: Objective) -> tuple[list[Result], list[Made], int]:
        ids = await store.result_ids(one.id)
        found = await store.results(one.id, task_ids=ids[-bound:])
        return found, await find_artifacts(store, found), len(ids) - len(found)

    found, made, n_left = session.with_objective(objective, fetch)
    if as_json:
        print_json([json_shapes.result_shape(result, made) for result in found])
    elif found:
        echo_lines(render.render_results(found, made))
    else:
        echo("No result yet. `babyagi status` shows the state.")
    _say_rest(n_left, "earlier ", as_json=as_json)


# -- objectives
# --------------------------------------------------------------------------------------------------


MAX_SHOWN = 30


class Searched(Listing):
    """A command group that passes all words to its command `list`, as words to search for, if the
    first of them does not name a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            return "list", self.commands["list"], args
        return super().resolve_command(ctx, args)


objectives = Searched(
    "objectives",
    "List objectives with times, states and costs.\n\n"
    "The newest comes last. LAST is the time since the last event of an objective. With words, "
    "only objectives whose text contains all of them are listed.",
)


@objectives.command("list")
@click.argument("words", nargs=-1)
@click.option(
    "--active", "is_active", is_flag=True, help="List only objectives that have not ended."
)
@click.option("--ended", "is_ended", is_flag=True, help="List only objectives that have ended.")
@click.option("--all", "shows_all", is_flag=True, help="List all objectives, not only the newest.")
@json_option
def objectives_list(
    *, words: Sequence[str], as_json: bool, shows_all: bool, is_ended: bool, is_active: bool
) -> None:
    """List objectives, as `babyagi objectives` alone does.

    With WORDS, list only objectives whose text contains all of them.
    """
    from babyagi import backends, json_shapes, verbs
    from babyagi.cli import render, session
    from babyagi.cli.text import terminal_width

    async def fetch(store: TaskStore) -> tuple[list[Row], int]:
        found = await verbs.find_objectives(store, words, is_ended=is_ended, is_active=is_active)
        shown = found if shows_all else found[-(MAX_LISTED if as_json else MAX_SHOWN) :]
        rows = [
            (one, await store.counts(one.id), await verbs.find_last_event_at(store, one))
            for one in shown
        ]
        return rows, len(found) - len(shown)

    rows, n_older = session.with_store(fetch)
    if n_older:
        left = "1 older one is" if n_older == 1 else f"{n_older:,} older ones are"
        (warn if as_json else echo)(f"{left} not shown: babyagi objectives --all", Style.DIM)
    if as_json:
        print_json([json_shapes.objective_shape(*row[:2], last_event_at=row[2]) for row in rows])
    elif rows:
        echo_lines(render.render_objectives(rows, terminal_width(), now=backends.utc_now()))
    elif words or is_ended or is_active:
        echo("No objective matches. To list all: babyagi objectives --all")
    else:
        echo('No objective yet. Type: babyagi demo, or babyagi run "an objective"')


# -- the commands that change an objective
# --------------------------------------------------------------------------------------------------


OLD_DAYS = 30.0
MAX_DAYS = 36_500.0


@click.command()
@objective_option
@json_option
def pause(objective: str, as_json: bool) -> None:
    """Pause an objective: no worker makes a further call for it."""
    from babyagi import verbs

    _steer(verbs.pause, objective, as_json)


@click.command()
@objective_option
@json_option
def cancel(objective: str, as_json: bool) -> None:
    """End an objective; its results are kept and reported."""
    from babyagi import verbs

    _steer(verbs.cancel, objective, as_json)


@click.command()
@objective_option
@setting_options(LIMITS)
@json_option
def extend(objective: str, as_json: bool, **limits: str | None) -> None:
    """Set new limits for an objective.

    An objective that has ended at a limit, or as stalled, failed or unmet, becomes active again.
    """

    from babyagi import verbs

    given = parse_flags(limits)
    if not given:
        raise wrong_usage("extend needs at least one limit", "babyagi extend --max-tasks 100")

    async def change(store: TaskStore, before: Objective) -> Standing:
        found, counts = await verbs.extend(store, before, given)
        if not as_json and before.stop_reason is not None and found.stop_reason is None:
            echo(f"Objective {found.id} had ended ({before.stop_reason}), and is active again.")
        return found, counts

    _steer(change, objective, as_json)


@click.command()
@objective_option
@click.option("--yes", is_flag=True, help="Delete it without asking.")
def delete(objective: str, yes: bool) -> None:
    """Delete an objective and its data."""
    from babyagi.cli.session import load, pick_objective, with_store
    from babyagi.verbs import delete_whole

    settings = load().settings

    async def change(store: TaskStore) -> tuple[Objective, str] | None:
        found = await pick_objective(store, objective)
        if not yes and not _is_confirmed(
            f"Delete objective {found.id} ({fit(found.spec.text, 60)}) for good?",
            refused=f"objective {found.id} is not deleted",
            fix=f"babyagi delete --objective {found.id} --yes",
        ):
            return None
        return found, await delete_whole(store, settings, found)

    done = with_store(change, changes=True, settings=settings)
    deleted, trouble = done or (None, "")
    if trouble:
        what = "the index may still hold its results' vectors and beginnings"
        warn(f"note: {what}: {trouble}", Style.YELLOW)
    echo(f"Objective {deleted.id} is deleted." if deleted is not None else "Nothing is deleted.")


@objectives.command("prune")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    default=OLD_DAYS,
    show_default=True,
    metavar="DAYS",
    help="Delete only objectives that ended more than this long ago.",
)
@click.option("--yes", "is_sure", is_flag=True, help="Delete them without asking.")
@json_option
def prune(days: float, is_sure: bool, as_json: bool) -> None:
    """Delete old objectives, and those that never got an answer.

    It shows what it would delete, and asks first. Active objectives, and paused ones with results,
    are kept.
    """
    from babyagi import backends, json_shapes, verbs
    from babyagi.cli.session import load, with_store

    settings, before = load().settings, backends.utc_now() - timedelta(days=min(days, MAX_DAYS))
    fix = f"babyagi objectives prune --older-than {days:g} --yes"
    ask = partial(_is_confirmed, "Delete these for good?", refused="nothing is deleted", fix=fix)

    async def work(store: TaskStore) -> tuple[list[Prunable], list[str]]:
        found = await verbs.find_prunable(store, before=before)
        for line in render_prunable(found):
            (warn if as_json else echo)(line)
        if not found or not (is_sure or ask()):
            return [], []
        doomed = [going.objective for going in found]
        return found, [await verbs.delete_whole(store, settings, one) for one in doomed]

    deleted, troubles = with_store(work, changes=True, settings=settings)
    for trouble in dict.fromkeys(filter(None, troubles)):
        warn(f"note: the index may still hold vectors of their results: {trouble}", Style.YELLOW)
    if as_json:
        print_json(json_shapes.prunable_shape(deleted))
    else:
        echo(f"{len(deleted)} deleted." if deleted else "Nothing is deleted.")


def render_prunable(found: Sequence[Prunable]) -> list[str]:
    return [
        f"{going.objective.id:>4}  {going.why}, {say_count(going.n_results, 'result')}: "
        f"{fit(going.objective.spec.text, 60)}"
        for going in found
    ]


def _is_confirmed(question: str, *, refused: str, fix: str) -> bool:
    """Ask the person the question, and return whether the answer is yes. Raises `SettingsError`,
    with `refused` as what happened, if there is no terminal."""
    if not is_person_there():
        from babyagi.errors import SettingsError

        what = f"{refused}: there is no terminal to confirm on"
        raise SettingsError(what, fix=fix, guide="objectives")
    return confirm(question)


def _steer(
    change: Callable[[TaskStore, Objective], Awaitable[Standing]], selector: str, as_json: bool
) -> None:
    """Make a change to the selected objective itself, and print its new state."""
    from babyagi import json_shapes
    from babyagi.cli import render, session

    objective, counts = session.with_objective(selector, change, changes=True)
    if as_json:
        print_json(json_shapes.status_shape(objective, counts))
        return
    how = "is" if objective.stop_reason is None else "has"
    echo(f"Objective {objective.id} {how} {render.render_status_words(objective)}.")
    echo(f"Limits: {render.render_limit_values(objective.spec.limits)}.")
    echo(f"Next: {render.render_next(objective, counts)}")


# --------------------------------------------------------------------------------------------------
# The commands that change the task list while workers work on it: tasks add, tasks move, tasks
# edit, tasks skip, and retry. Each command is one transaction in the task store; a worker sees the
# change at its next claim or call.
# --------------------------------------------------------------------------------------------------

NAME_WIDTH = 80


@tasks.command()
@click.argument("name")
@click.option(
    "--first", is_flag=True, help="Put the task before all queued tasks, instead of at the end."
)
@click.option(
    "--after",
    type=int,
    multiple=True,
    metavar="TASK",
    help="Start the task only after this one is done; can be given several times.",
)
@objective_option
@json_option
def add(name: str, first: bool, after: tuple[int, ...], objective: str, as_json: bool) -> None:
    """Add a task to the list.

    An objective that has ended becomes active again, unless it was cancelled.
    """
    from babyagi import verbs
    from babyagi.tasks import Place

    add_task = partial(verbs.add_task, to=Place.FIRST if first else Place.LAST, after=after)
    _change(lambda store, found: add_task(store, found, name), objective, as_json)


@tasks.command()
@click.argument("task_id", metavar="TASK", type=int)
@click.option("--first", is_flag=True, help="Put the task before all other queued tasks.")
@click.option("--last", is_flag=True, help="Put the task after all other queued tasks.")
@click.option(
    "--before",
    type=int,
    metavar="TASK",
    help="Put the task before this one.",
)
@objective_option
@json_option
def move(
    task_id: int, first: bool, last: bool, before: int | None, objective: str, as_json: bool
) -> None:
    """Put a queued task at another place of the list."""
    from babyagi import verbs

    to = _place(first=first, last=last, before=before)

    _change(lambda store, found: verbs.move_task(store, found, task_id, to=to), objective, as_json)


def _place(first: bool, last: bool, before: int | None) -> Place | int:
    from babyagi.tasks import Place

    if first + last + (before is not None) != 1:
        raise wrong_usage(
            "say where to move the task: --first, --last or --before TASK",
            "babyagi tasks move TASK --first",
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
    """Replace a queued task by another one.

    A task's number and name never change. Therefore the old task is cancelled, and a new one takes
    its place in the list and in the dependencies of other tasks.
    """

    from babyagi import verbs

    _change(lambda store, found: verbs.edit_task(store, found, task_id, name), objective, as_json)


@tasks.command()
@click.argument("task_id", metavar="TASK", type=int)
@objective_option
@json_option
def skip(task_id: int, objective: str, as_json: bool) -> None:
    """Cancel a queued or waiting task.

    Tasks that depend on it no longer wait for it.
    """

    from babyagi import verbs

    _change(lambda store, found: verbs.skip_task(store, found, task_id), objective, as_json)


@click.command()
@click.argument("task_id", metavar="TASK", type=int)
@objective_option
@json_option
def retry(task_id: int, objective: str, as_json: bool) -> None:
    """Try a dead task (one that was given up) again.

    If its objective has ended, `babyagi resume` then continues it.
    """

    from babyagi import verbs

    _change(lambda store, found: verbs.retry_task(store, found, task_id), objective, as_json)


def _change(
    change: Callable[[TaskStore, Objective], Awaitable[Changed]], objective: str, as_json: bool
) -> None:
    """Make a change to one task of the selected objective, and print the outcome."""
    from babyagi.cli.session import with_objective
    from babyagi.json_shapes import changed_shape

    changed = with_objective(objective, change, changes=True)
    if as_json:
        print_json(changed_shape(changed))
    else:
        echo(f"Task {changed.task.id} ({fit(changed.task.name, NAME_WIDTH)}) {changed.words}.")
