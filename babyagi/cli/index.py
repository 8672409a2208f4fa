"""The commands about the index of results, `index status|check|rebuild`, and the search in it,
`results search`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from babyagi.cli.looking import results
from babyagi.cli.options import json_option, objective_option
from babyagi.cli.text import Style, echo, echo_lines, print_json, terminal_width, warn

if TYPE_CHECKING:
    from babyagi.results import IndexStatus, Results
    from babyagi.resultstore.projector import CheckReport
    from babyagi.resultstore.search import Ranking
    from babyagi.tasks import Objective
    from babyagi.taskstore.base import TaskStore

T = TypeVar("T")

ALL = "all"
MAX_HITS = 100


@click.group()
def index() -> None:
    """Look at the index that finds earlier results, and mend it."""


@index.command()
@click.option(
    "--objective",
    metavar="ID|latest|all",
    default=ALL,
    show_default=True,
    help="Which objective is meant.",
)
@json_option
def status(objective: str, as_json: bool) -> None:
    """Show how many results of each objective are indexed."""
    from babyagi.cli import json_shapes, render_index
    from babyagi.cli.session import NOTHING, load, pick_objective, with_store
    from babyagi.opening import describe_index
    from babyagi.results import load_index_status

    async def fetch(store: TaskStore) -> list[IndexStatus]:
        found = (
            await store.objectives()
            if objective == ALL
            else [await pick_objective(store, objective)]
        )
        return [await load_index_status(store, one) for one in found]

    settings = load(needs=NOTHING).settings
    rows, name = with_store(fetch, settings=settings), describe_index(settings)
    if as_json:
        print_json([json_shapes.index_status_shape(row, index=name) for row in rows])
    else:
        echo_lines(render_index.render_index_status(rows, index=name, width=terminal_width()))


@index.command()
@objective_option
@json_option
def check(objective: str, as_json: bool) -> int:
    """Compare the index with the task store.

    Nothing is changed; the exit code is 7 when they differ.
    """
    from babyagi.cli import json_shapes, render_index
    from babyagi.cli.exits import ExitCode

    async def compare(opened: Results) -> CheckReport:
        return await opened.check()

    found, report = _with_results(objective, compare)
    if as_json:
        print_json(json_shapes.index_check_shape(found, report))
    else:
        echo_lines(render_index.render_index_check(found, report))
    return int(ExitCode.OK if report.is_whole else ExitCode.STORE)


@index.command()
@objective_option
@click.option(
    "--embedding-model",
    metavar="MODEL",
    default="",
    help="Embed the results by this model from now on.",
)
@json_option
def rebuild(objective: str, embedding_model: str, as_json: bool) -> None:
    """Make the index of an objective anew.

    It is dropped and fed every result again; vectors that are stored are not paid for again.
    """

    async def make_anew(opened: Results) -> int:
        return await opened.rebuild(_tell_progress, model=embedding_model)

    found, n_results = _with_results(objective, make_anew, model=embedding_model)
    if as_json:
        print_json({"v": 1, "objective_id": found.id, "n_results": n_results})
    else:
        echo(f"The index of objective {found.id} is made anew: {n_results:,} results.")


def _tell_progress(n_done: int, n_all: int) -> None:
    n_cells = 30 * n_done // max(1, n_all)
    warn(
        f"[{'#' * n_cells}{'.' * (30 - n_cells)}] {n_done:,} of {n_all:,} results indexed",
        Style.DIM,
    )


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
    help="How many at most.",
)
@click.option(
    "--all-objectives",
    "in_all",
    is_flag=True,
    help="Look at the results of the newest other objectives, too.",
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

    They are found as for a task. No model is asked for words.
    """
    from babyagi.cli import json_shapes, render_index
    from babyagi.cli.looking import with_group_options

    words = " ".join(text)
    if not words.strip():
        raise click.UsageError("there is nothing to search for", context)
    objective, as_json = with_group_options(context, objective, as_json)

    async def find(opened: Results) -> Ranking:
        return await opened.search(words, k=n_hits, in_all=in_all)

    found, ranking = _with_results(objective, find)
    if as_json:
        print_json(json_shapes.search_shape(found, words, ranking))
        return
    if ranking.degraded:
        warn(f"note: {ranking.degraded}", Style.YELLOW)
    if not len(ranking):
        echo("No result yet. `babyagi status` says how it stands.")
    echo_lines(render_index.render_ranking(ranking, objective_id=found.id, width=terminal_width()))


def _with_results(
    selector: str, body: Callable[[Results], Awaitable[T]], *, model: str = ""
) -> tuple[Objective, T]:
    """Open the results of the objective that is meant, and what finds them, and run the body on
    them."""
    import asyncio

    from babyagi.app import open_app
    from babyagi.cli.preflight import require_embedder
    from babyagi.cli.session import load, pick_objective

    settings = load().settings
    require_embedder(settings, model)

    async def run() -> tuple[Objective, T]:
        async with open_app(settings) as app:
            objective = await pick_objective(app.store, selector)
            async with app.open_results(objective, model=model) as opened:
                return objective, await body(opened)

    return asyncio.run(run())
