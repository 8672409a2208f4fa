"""The command that looks for damage in the task store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from babyagi.cli.options import json_option
from babyagi.cli.text import Style, echo, print_json, safe

if TYPE_CHECKING:
    from babyagi.taskstore.base import TaskStore, Verification

ALL = "all"


@click.group()
def journal() -> None:
    """The record of every call."""


@journal.command()
@click.option(
    "--objective",
    metavar="ID|latest|all",
    default=ALL,
    show_default=True,
    help="Which objective is meant.",
)
@json_option
def verify(objective: str, as_json: bool) -> int:
    """Look for damage in every row of the task store.

    Each row that cannot be read, or is not what was written, is named.
    """
    from babyagi.cli.exits import ExitCode
    from babyagi.cli.session import pick_objective, with_store

    async def read(store: TaskStore) -> Verification:
        return await store.verify(
            None if objective == ALL else (await pick_objective(store, objective)).id
        )

    found = with_store(read)
    if as_json:
        print_json(
            {
                "v": 1,
                "n_rows": found.n_rows,
                "n_steps": found.n_steps,
                "n_results": found.n_results,
                "damages": list(found.damages),
            }
        )
    else:
        _say(found)
    return int(ExitCode.STORE if found.damages else ExitCode.OK)


def _say(found: Verification) -> None:
    for damage in found.damages:
        echo(f"damaged: {safe(damage)}", Style.RED)
    echo(
        f"{found.n_rows} rows read ({found.n_steps} steps, {found.n_results} results): "
        f"{len(found.damages) or 'nothing'} damaged."
    )
    if found.damages:
        echo("To go on, restore a backup: babyagi guide store")
