"""The commands of working together: submit, worker, workers, migrate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from babyagi.cli.options import given_flags, json_option, require_words, setting_options
from babyagi.cli.text import echo, echo_lines, print_json, terminal_width

if TYPE_CHECKING:
    from babyagi.tasks import Worker
    from babyagi.taskstore.base import TaskStore

NOT_OF_SUBMIT = (
    "agent_hosts",
    "join_existing_objective",
    "use_my_model",
    "concurrency",
    "no_color",
)


@click.command()
@click.argument("objective_words", metavar="[OBJECTIVE]...", nargs=-1)
@setting_options(but=NOT_OF_SUBMIT)
@click.option(
    "--new",
    "always_new",
    is_flag=True,
    help="Start afresh, even where the same objective was started before.",
)
@json_option
def submit(objective_words: tuple[str, ...], always_new: bool, as_json: bool, **flags: Any) -> int:
    """Put an objective on the board, for workers.

    Its number is printed. Nothing works on it here: that does `babyagi worker`, in this home or
    wherever the task store can be reached.
    """
    from babyagi.cli.together import submit_objective

    given = given_flags(flags)
    if objective_words:
        given["objective"] = require_words(" ".join(objective_words))
    return submit_objective(given, always_new=always_new, as_json=as_json)


@click.command()
@click.option(
    "--objective",
    metavar="ID|NAME|latest",
    help="Work on this one alone, waited for if it has not begun. Default: on all.",
)
@setting_options(("concurrency", "files", "use_my_model"))
@json_option
def worker(objective: str | None, as_json: bool, **flags: Any) -> int:
    """Work on all active objectives until told to stop.

    Those that are submitted later are among them. It waits where there is nothing to do. Ctrl-C or
    SIGTERM lets the calls in flight end.
    """
    from babyagi.cli.together import join_objective, serve_all

    given = given_flags(flags)
    if objective is None:
        return serve_all(given, as_json=as_json)
    return join_objective(given, selector=objective, as_json=as_json)


@click.command()
@json_option
def workers(as_json: bool) -> None:
    """Show who is at work, and on what.

    Also since when, and what keeps a worker from claiming.
    """
    from babyagi.cli.session import with_store
    from babyagi.cli.worker_lines import render_workers, worker_shape

    async def fetch(store: TaskStore) -> list[Worker]:
        return await store.workers()

    found = with_store(fetch)
    if as_json:
        print_json([worker_shape(one) for one in found])
    elif found:
        echo_lines(render_workers(found, terminal_width()))
    else:
        echo("Nobody is at work. Type: babyagi worker, or babyagi resume")


@click.command()
def migrate() -> None:
    """Bring a PostgreSQL task store to this program's version.

    No worker may live meanwhile.
    """
    import asyncio

    from babyagi.cli.session import STORE, load
    from babyagi.stores import migrate_store

    before, after = asyncio.run(migrate_store(load(needs=STORE).settings))
    echo(
        f"The task store has version {after} already."
        if before == after
        else f"The task store went from version {before} to {after}."
    )
