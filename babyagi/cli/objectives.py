"""The commands that show and change objectives and their tasks: status, tasks, pause, cancel and
extend; and show tasks, show results and show objectives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import click

from babyagi.app import backends
from babyagi.cli import render, session
from babyagi.cli.options import (
    LIMITS,
    Family,
    WrongUsage,
    json_option,
    objective_option,
    parse_flags,
    require_words,
    setting_options,
)
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    echo_lines,
    fit,
    give,
    print_json,
    terminal_width,
    warn,
)
from babyagi.index.search import RankedResult
from babyagi.reporting.sources import Made, find_artifacts
from babyagi.reporting.why import Reason, explain_tasks, find_facts
from babyagi.tasks import Objective, Place, Result, Task, TaskStatus
from babyagi.taskstore.sql.store import TaskStore
from babyagi.verbs import actions, json_shapes

MAX_LISTED = 1_000  # items of a list, unless --limit says otherwise
N_HITS = 5  # of a search, unless --limit says otherwise
MAX_HITS = 100


@click.command()
@objective_option
@json_option
def status(objective: str, as_json: bool) -> None:
    """Show the state of one objective, and what to type next."""

    stand = session.with_objective(objective, actions.find_stand)
    lines = render.render_status(stand, terminal_width())
    give(as_json, json_shapes.stand_shape(stand), lines)


@click.command("tasks")
@objective_option
@click.option(
    "--status",
    "statuses",
    type=click.Choice([status.value for status in TaskStatus]),
    multiple=True,
    help="List only tasks with this status; can be given several times.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"List at most this many; 0 means all. Default: {MAX_LISTED:,}.",
)
@json_option
def tasks_list(objective: str, statuses: Sequence[str], limit: int | None, as_json: bool) -> None:
    """List the tasks in the order in which workers claim them."""

    wanted = [TaskStatus(status) for status in statuses]

    bound = MAX_LISTED if limit is None else limit

    async def fetch(store: TaskStore, found: Objective) -> tuple[list[tuple[Task, Reason]], int]:
        facts = await find_facts(store, found.id)
        rows: list[tuple[Task, Reason]] = []
        async for page in actions.choose_pages(store, facts, wanted, bound):
            rows += zip(page, await explain_tasks(store, facts, page), strict=True)
        return rows, actions.count_tasks(facts, wanted) - len(rows)

    rows, n_left = session.with_objective(objective, fetch)
    shapes = [json_shapes.listed_task_shape(*row) for row in rows]
    width = terminal_width()
    lines = (render.render_task(task, width, word=reason.word) for task, reason in rows)
    give(as_json, shapes, [render.render_tasks_head(), *lines])
    more = "" if wanted else ", --status done shows the finished ones"
    _say_rest(n_left, "", as_json=as_json, more=more)


tasks = Family(tasks_list, "List the tasks in order, or change the list. Alone, it lists them.")


def _say_rest(n_left: int, which: str, *, as_json: bool, more: str = "") -> None:
    """Say how many items were left out, if any; with `as_json` on standard error."""
    if n_left > 0:
        say = warn if as_json else echo
        say(f"      and {n_left:,} {which}more: --limit 0 shows all{more}", Style.DIM)


@click.command()
@click.argument("text", nargs=-1)
@objective_option
@click.option(
    "-k",
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Show at most this many; 0 means all. Default: {MAX_LISTED:,}, with TEXT {N_HITS}.",
)
@click.option(
    "--all-objectives",
    "in_all",
    is_flag=True,
    help="With TEXT: search the newest other objectives as well.",
)
@json_option
def results(
    *, text: tuple[str, ...], objective: str, limit: int | None, in_all: bool, as_json: bool
) -> None:
    """List the results, or find those that are nearest to TEXT.

    They are listed in the order in which they were recorded; if there are more than the limit, the
    newest. The search is the one that tasks use; it calls no language model.
    """
    if text:
        n_hits = N_HITS if limit is None else min(limit or MAX_HITS, MAX_HITS)
        words = require_words(text, "a text")
        show_found(words, selector=objective, n_hits=n_hits, in_all=in_all, as_json=as_json)
    else:
        _list_results(objective, limit, as_json=as_json)


NO_RESULT = "No result yet. `babyagi status` shows the state."
N_DECIMALS = 2  # of a score


def show_found(words: str, *, selector: str, n_hits: int, in_all: bool, as_json: bool) -> None:
    """Print the results that are nearest to the words; with `in_all` those of other objectives as
    well."""
    found, ranking = session.with_results(
        selector, lambda opened: opened.search(words, k=n_hits, in_all=in_all)
    )
    if as_json:
        print_json(json_shapes.search_shape(found, words, ranking))
        return
    shown = [entry for entry in ranking if round(entry.score, N_DECIMALS)]
    if ranking.degraded:
        warn(f"note: {ranking.degraded}", Style.YELLOW)
    if not len(ranking):
        echo(NO_RESULT)
    elif not shown:
        warn("note: no result is near to this text", Style.YELLOW)
    echo_lines(render_ranking(shown, objective_id=found.id, width=terminal_width()))


def render_ranking(ranking: Iterable[RankedResult], *, objective_id: int, width: int) -> list[Line]:
    """Return two lines for each result found: its score and task, and the beginning of its text. A
    result of an objective other than `objective_id` is shown with its objective."""
    lines: list[Line] = []
    for entry in ranking:
        found = entry.result
        is_own = found.objective_id == objective_id
        whose = "" if is_own else f"objective {found.objective_id}, "
        head = f"{entry.score:{3 + N_DECIMALS}.{N_DECIMALS}f}  {whose}task {found.task_id}: "
        name = fit(found.task_name, max(20, width - len(head)))
        lines.append(Line(head + name, Style.BOLD))
        lines.append(Line("       " + fit(found.text, max(20, 3 * width))))
    return lines


def _list_results(objective: str, limit: int | None, *, as_json: bool) -> None:

    bound = MAX_LISTED if limit is None else limit

    async def fetch(store: TaskStore, one: Objective) -> tuple[list[Result], list[Made], int]:
        ids = await store.result_ids(one.id)
        found = await store.results(one.id, task_ids=ids[-bound:])
        return found, await find_artifacts(store, found), len(ids) - len(found)

    found, made, n_left = session.with_objective(objective, fetch)
    shapes = [json_shapes.result_shape(result, made) for result in found]
    give(as_json, shapes, render.render_results(found, made), empty=NO_RESULT)
    _say_rest(n_left, "earlier ", as_json=as_json)


# -- objectives
# --------------------------------------------------------------------------------------------------


MAX_SHOWN = 30
NO_MATCH = "No objective matches. To list all: babyagi show objectives --all"
NO_OBJECTIVE = 'No objective yet. Type: babyagi demo, or babyagi run "an objective"'


@click.command()
@click.argument("words", nargs=-1)
@click.option(
    "--active", "is_active", is_flag=True, help="List only objectives that have not ended."
)
@click.option("--ended", "is_ended", is_flag=True, help="List only objectives that have ended.")
@click.option("--all", "shows_all", is_flag=True, help="List all objectives, not only the newest.")
@json_option
def objectives(
    *, words: Sequence[str], as_json: bool, shows_all: bool, is_ended: bool, is_active: bool
) -> None:
    """List objectives with times, states and costs.

    The newest comes last. LAST is how long ago the last event of an objective was. With WORDS, list
    only objectives whose text contains all of them.
    """

    async def fetch(store: TaskStore) -> tuple[list[render.Row], int]:
        wanted = is_ended if is_ended != is_active else None
        found = await actions.find_objectives(store, words, is_ended=wanted)
        shown = found if shows_all else found[-(MAX_LISTED if as_json else MAX_SHOWN) :]
        rows = [
            (
                one,
                (await store.standing(one.id)).counts,
                await actions.find_last_event_at(store, one),
            )
            for one in shown
        ]
        return rows, len(found) - len(shown)

    rows, n_older = session.with_store(fetch)
    if n_older:
        left = "1 older one is" if n_older == 1 else f"{n_older:,} older ones are"
        (warn if as_json else echo)(f"{left} not shown: babyagi show objectives --all", Style.DIM)
    shapes = [json_shapes.objective_shape(*row[:2], last_event_at=row[2]) for row in rows]
    table = render.render_objectives(rows, terminal_width(), now=backends.utc_now())
    chosen = words or is_ended or is_active
    give(as_json, shapes, table if rows else (), empty=NO_MATCH if chosen else NO_OBJECTIVE)


# -- the commands that change an objective
# --------------------------------------------------------------------------------------------------


@click.command()
@objective_option
@setting_options(LIMITS, says_default=False)
@json_option
def extend(objective: str, as_json: bool, **limits: str | None) -> None:
    """Set new limits for an objective.

    An objective that has ended at a limit, or as stalled, failed or unmet, becomes active again.
    """

    given = parse_flags(limits)
    if not given:
        raise WrongUsage("extend needs at least one limit", "babyagi extend --max-tasks 100")

    _steer(partial(actions.extend, limits=given), objective, as_json)


def _steer(change: Callable[..., Awaitable[object]], objective: str, as_json: bool) -> None:
    """Make a change to the selected objective itself, and print its new state."""

    async def work(store: TaskStore, before: Objective) -> actions.Stand:
        await change(store, before)
        return await actions.find_stand(store, await store.objective(before.id))

    stand = session.with_objective(objective, work, changes=True)
    shape = json_shapes.status_shape(stand.objective, stand.counts)
    give(as_json, shape, render.render_status(stand, terminal_width()))


pause, cancel = (
    click.command(verb.__name__, help=verb.__doc__)(
        objective_option(json_option(partial(_steer, verb)))
    )
    for verb in (actions.pause, actions.cancel)
)


# --------------------------------------------------------------------------------------------------
# The commands that change the task list while workers work on it: tasks add, tasks move, tasks
# edit, tasks skip and tasks retry. Each is one transaction in the task store; a worker sees the
# change at its next claim or call.
# --------------------------------------------------------------------------------------------------

NAME_WIDTH = 80


@tasks.command()
@click.argument("words", metavar="TEXT...", nargs=-1)
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
def add(
    words: tuple[str, ...], first: bool, after: tuple[int, ...], objective: str, as_json: bool
) -> None:
    """Add a task to the list.

    An objective that has ended becomes active again, unless it was cancelled.
    """

    name = require_words(words, "a task")
    _change(partial(actions.add_task, first=first, after=after), name, objective, as_json)


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

    if first + last + (before is not None) != 1:
        what = "say where to move the task: --first, --last or --before TASK"
        raise WrongUsage(what, "babyagi tasks move TASK --first")
    to = before if before is not None else Place.FIRST if first else Place.LAST
    _change(partial(actions.move_task, to=to), task_id, objective, as_json)


@tasks.command()
@click.argument("task_id", metavar="TASK", type=int)
@click.argument("words", metavar="TEXT...", nargs=-1)
@objective_option
@json_option
def edit(task_id: int, words: tuple[str, ...], objective: str, as_json: bool) -> None:
    """Replace a queued task by another one.

    A task's number and name never change. Therefore the old task is cancelled, and a new one takes
    its place in the list and in the dependencies of other tasks.
    """

    name = require_words(words, "a task", before=f"{task_id} ")
    _change(partial(actions.edit_task, name=name), task_id, objective, as_json)


def _change(
    change: Callable[..., Awaitable[actions.Changed]],
    task: int | str,
    objective: str,
    as_json: bool,
) -> None:
    """Make a change to one task of the selected objective, named by its number, or by the text of a
    new one, and print the outcome."""

    changed = session.with_objective(
        objective, lambda store, found: change(store, found, task), changes=True
    )
    said = f"Task {changed.task.id} ({fit(changed.task.name, NAME_WIDTH)}) {changed.words}."
    give(as_json, json_shapes.changed_shape(changed), [Line(said)])


for name, change, says in (
    (
        "skip",
        actions.skip_task,
        "Cancel a queued or waiting task.\n\nTasks that depend on it no longer wait for it.",
    ),
    (
        "retry",
        actions.retry_task,
        "Try a dead task (one that was given up) again.\n\nIf its objective has ended, `babyagi "
        "resume` then continues it.",
    ),
):
    act: Callable[..., None] = partial(_change, change)
    named = click.argument("task", metavar="TASK", type=int)
    tasks.command(name, help=says)(named(objective_option(json_option(act))))
