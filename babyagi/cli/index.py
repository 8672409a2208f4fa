"""The commands `index` and `results search`, for the index of results, and `journal verify`, which
checks the task store for damage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from babyagi.cli.objectives import results
from babyagi.cli.options import (
    ALL,
    json_option,
    objective_option,
    objectives_option,
    pick_or_all,
)
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    echo_lines,
    fit,
    print_json,
    safe,
    safe_line,
    terminal_width,
    warn,
)

if TYPE_CHECKING:
    from babyagi.index.indexer import CheckReport
    from babyagi.index.search import RankedResult
    from babyagi.results import IndexStatus, Results
    from babyagi.tasks import Objective
    from babyagi.taskstore.nouns import Verification
    from babyagi.taskstore.sql.store import TaskStore


N_NAMED = 10
N_DECIMALS = 2  # of a score


def render_index_status(rows: Sequence[IndexStatus], *, index: str, width: int) -> list[Line]:
    if not rows:
        return [Line('No objective yet. Type: babyagi demo, or babyagi run "an objective"')]
    titles = f"{'RESULTS':>8} {'INDEXED':>8} {'LEFT':>6}  {'EMBEDDED AS':<24}  OBJECTIVE"
    lines = [Line(f"Index: {index}"), Line(f"{'ID':>4}  {titles}", Style.DIM)]
    for row in rows:
        space = fit(row.objective.spec.embedding_space, 40)
        numbers = f"{row.n_results:>8,} {row.n_results - row.n_owed:>8,} {row.n_owed:>6,}"
        head = f"{row.objective.id:>4}  {numbers}  {space:<24}  "
        text = fit(row.objective.spec.text, max(20, width - len(head)))
        lines.append(Line(head + text, Style.YELLOW if row.n_owed else Style.PLAIN))
    return lines


def render_index_check(objective: Objective, report: CheckReport) -> list[Line]:
    misses = [f"task {task_id}" for task_id in report.probe_misses]
    lines = [
        *_render_ids("missing from the index", [f"task {task_id}" for task_id in report.missing]),
        *_render_ids("in the index, but not in the task store", report.extra),
        *_render_ids("not found by their own vectors", misses),
    ]
    n_found = report.n_probes - len(report.probe_misses)
    owed = f", {report.n_owed:,} are still to be indexed" if report.n_owed else ""
    counted = (
        f"{report.n_held:,} of {report.n_expected:,} results are indexed, {n_found} of "
        f"{report.n_probes} tested results were found by a search{owed}."
    )
    lines.append(Line(f"Objective {objective.id}: {counted}"))
    if not report.is_whole:
        fix = f"babyagi index rebuild --objective {objective.id}"
        lines.append(Line(f"No result is lost. The next run repairs this; so does: {fix}"))
    return lines


def _render_ids(what: str, ids: Sequence[str]) -> list[Line]:
    if not ids:
        return []
    more = f" and {len(ids) - N_NAMED:,} more" if len(ids) > N_NAMED else ""
    return [Line(f"{what}: {', '.join(safe_line(id_) for id_ in ids[:N_NAMED])}{more}", Style.RED)]


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


# --------------------------------------------------------------------------------------------------
# The commands for the index of results, `index status|check|rebuild`, and for the search in it,
# `results search`.
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")

MAX_HITS = 100


@click.group()
def index() -> None:
    """Show, check or rebuild the index that finds earlier results."""


@index.command()
@objectives_option
@json_option
def status(objective: str, as_json: bool) -> None:
    """Show how many results of each objective are indexed."""
    from babyagi import backends, json_shapes
    from babyagi.cli.session import NOTHING, load, pick_objective, with_store
    from babyagi.results import load_index_status

    async def fetch(store: TaskStore) -> list[IndexStatus]:
        is_all = objective == ALL
        found = await store.objectives() if is_all else [await pick_objective(store, objective)]
        return [await load_index_status(store, one) for one in found]

    settings = load(needs=NOTHING).settings
    rows, name = with_store(fetch, settings=settings), backends.describe_index(settings)
    if as_json:
        print_json([json_shapes.index_status_shape(row, index=name) for row in rows])
    else:
        echo_lines(render_index_status(rows, index=name, width=terminal_width()))


@index.command()
@objective_option
@json_option
def check(objective: str, as_json: bool) -> int:
    """Compare the index with the task store.

    Nothing is changed. The exit code is 7 if they differ.
    """
    from babyagi import json_shapes
    from babyagi.cli.exits import ExitCode

    found, report = _with_results(objective, lambda opened: opened.check())
    if as_json:
        print_json(json_shapes.index_check_shape(found, report))
    else:
        echo_lines(render_index_check(found, report))
    return int(ExitCode.OK if report.is_whole else ExitCode.STORE)


@index.command()
@objective_option
@click.option(
    "--embedding-model",
    metavar="MODEL",
    default="",
    help="Embed the results with this model from now on.",
)
@json_option
def rebuild(objective: str, embedding_model: str, as_json: bool) -> None:
    """Rebuild the index of an objective.

    Every result is indexed again; stored vectors are not paid for again.
    """

    found, n_results = _with_results(
        objective,
        lambda opened: opened.rebuild(_tell_progress, model=embedding_model),
        model=embedding_model,
        changes=True,
    )
    if as_json:
        print_json({"v": 1, "objective_id": found.id, "n_results": n_results})
    else:
        echo(f"The index of objective {found.id} is rebuilt: {n_results:,} results.")


def _tell_progress(n_done: int, n_all: int) -> None:
    bar = ("#" * (30 * n_done // max(1, n_all))).ljust(30, ".")
    warn(f"[{bar}] {n_done:,} of {n_all:,} results indexed", Style.DIM)


@results.command()
@click.argument("text", nargs=-1, required=True)
@objective_option
@click.option(
    "-k",
    "n_hits",
    metavar="N",
    type=click.IntRange(1, MAX_HITS),
    default=5,
    show_default=True,
    help="Show at most this many results.",
)
@click.option(
    "--all-objectives", "in_all", is_flag=True, help="Search the newest other objectives as well."
)
@json_option
@click.pass_context
def search(
    context: click.Context,
    *,
    text: tuple[str, ...],
    objective: str,
    n_hits: int,
    in_all: bool,
    as_json: bool,
) -> None:
    """Find the results that are nearest to a text.

    This is the search that tasks use. It calls no language model.
    """
    from babyagi import json_shapes

    words = " ".join(text)
    if not words.strip():
        raise click.UsageError("there is nothing to search for: the text is blank", context)

    found, ranking = _with_results(
        objective, lambda opened: opened.search(words, k=n_hits, in_all=in_all)
    )
    if as_json:
        print_json(json_shapes.search_shape(found, words, ranking))
        return
    shown = [entry for entry in ranking if round(entry.score, N_DECIMALS)]
    if ranking.degraded:
        warn(f"note: {ranking.degraded}", Style.YELLOW)
    if not len(ranking):
        echo("No result yet. `babyagi status` shows the state.")
    elif not shown:
        warn("note: no result is near to this text", Style.YELLOW)
    echo_lines(render_ranking(shown, objective_id=found.id, width=terminal_width()))


def _with_results(
    selector: str,
    body: Callable[[Results], Awaitable[T]],
    *,
    model: str = "",
    changes: bool = False,
) -> tuple[Objective, T]:
    """Open the results and the index of the selected objective, call `body` with them, and return
    the objective with the value of `body`. `model` replaces the embedding model; `changes` as in
    `with_store`."""
    import asyncio

    from babyagi.app import open_app, open_app_to_look
    from babyagi.cli import preflight, session

    settings = session.load(only_looks=not changes).settings
    preflight.require_embedder(settings, model)

    async def run() -> tuple[Objective, T]:
        async with open_app(settings) if changes else open_app_to_look(settings) as app:
            objective = await session.pick_objective(app.store, selector)
            async with app.open_results(objective, model=model) as opened:
                return objective, await body(opened)

    return asyncio.run(run())


# -- the command that checks the task store for damage


@click.group()
def journal() -> None:
    """The record of every call of a model or a tool."""


@journal.command()
@objectives_option
@json_option
def verify(objective: str, as_json: bool) -> int:
    """Check every row of the task store for damage.

    Each row that cannot be read, or that has changed since it was written, is named.
    """
    from babyagi.cli import exits, session
    from babyagi.json_shapes import verification_shape

    async def read(store: TaskStore) -> Verification:
        return await store.verify(await pick_or_all(store, objective))

    found = session.with_store(read)
    if as_json:
        print_json(verification_shape(found))
    else:
        _say(found)
    return int(exits.ExitCode.STORE if found.damages else exits.ExitCode.OK)


def _say(found: Verification) -> None:
    for damage in found.damages:
        echo(f"damaged: {safe(damage)}", Style.RED)
    read = f"{found.n_rows} rows read ({found.n_steps} steps, {found.n_results} results)"
    echo(f"{read}: {len(found.damages) or 'nothing'} damaged.")
    if found.damages:
        echo("To go on, restore a backup; babyagi guide store says how.")
