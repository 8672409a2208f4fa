"""The command `objectives`: the list of objectives, and deleting those that nobody needs any
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from babyagi.cli.options import json_option
from babyagi.cli.text import Style, ask, echo, echo_lines, is_person_there, print_json, warn

if TYPE_CHECKING:
    from babyagi.cli.render import Row
    from babyagi.taskstore.port import TaskStore
    from babyagi.verbs import Going

MAX_SHOWN = 30
OLD_DAYS = 30.0
MAX_DAYS = 36_500.0


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

    The newest is the last one; LAST says how long nothing has happened to one. With words: those
    whose text has all of them.
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
    from babyagi.backends import utc_now
    from babyagi.cli import render
    from babyagi.cli.session import with_store
    from babyagi.cli.text import terminal_width
    from babyagi.verbs import find_last_event_at, find_objectives

    async def fetch(store: TaskStore) -> tuple[list[Row], int]:
        found = await find_objectives(store, words, is_ended=is_ended, is_active=is_active)
        shown = found if shows_all or as_json else found[-MAX_SHOWN:]
        rows = [
            (one, await store.counts(one.id), await find_last_event_at(store, one)) for one in shown
        ]
        return rows, len(found) - len(shown)

    rows, n_older = with_store(fetch)
    if as_json:
        print_json(
            [
                json_shapes.objective_shape(objective, counts, last_event_at=last_at)
                for objective, counts, last_at in rows
            ]
        )
    elif rows:
        if n_older:
            left = "1 older one is" if n_older == 1 else f"{n_older} older ones are"
            echo(f"{left} not shown: babyagi objectives --all", Style.DIM)
        echo_lines(render.render_objectives(rows, terminal_width(), now=utc_now()))
    elif words or is_ended or is_active:
        echo("No such objective. All of them: babyagi objectives")
    else:
        echo('No objective yet. Type: babyagi demo, or babyagi run "an objective"')


# -- deleting
# --------------------------------------------------------------------------------------------------


@objectives.command("prune")
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    default=OLD_DAYS,
    show_default=True,
    metavar="DAYS",
    help="Those that ended longer ago.",
)
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@json_option
@click.pass_context
def prune(context: click.Context, /, days: float, is_sure: bool, as_json: bool) -> None:
    """Delete for good what ended long ago, and what never got an answer.

    It shows what would go, and asks. What is active, or paused with something found, stays.
    """
    from babyagi.backends import utc_now
    from babyagi.cli.session import load, with_store
    from babyagi.json_shapes import going_shape
    from babyagi.verbs import delete_whole, find_going

    above = context.parent.params if context.parent is not None else {}
    as_json = as_json or bool(above.get("as_json"))
    settings, before = load().settings, utc_now() - timedelta(days=min(days, MAX_DAYS))

    async def work(store: TaskStore) -> tuple[list[Going], list[str]]:
        found = await find_going(store, before=before)
        for line in render_going(found):
            (warn if as_json else echo)(line)
        if not found or not (is_sure or _is_confirmed(days)):
            return [], []
        return found, [await delete_whole(store, settings, going.objective) for going in found]

    deleted, troubles = with_store(work, settings=settings)
    for trouble in dict.fromkeys(filter(None, troubles)):
        warn(f"note: the index may keep vectors of them: {trouble}", Style.YELLOW)
    if as_json:
        print_json(going_shape(deleted))
    else:
        echo(f"{len(deleted)} deleted." if deleted else "Nothing is deleted.")


def _is_confirmed(days: float) -> bool:
    """Ask the person. Raises `SettingsError` when nobody is there."""
    from babyagi.errors import SettingsError

    if not is_person_there():
        raise SettingsError(
            "nothing is deleted: nobody is there to confirm",
            fix=f"babyagi objectives prune --older-than {days:g} --yes",
            guide="objectives",
        )
    return ask("Delete these for good? [y/N]").lower() in ("y", "yes")


def render_going(found: Sequence[Going]) -> list[str]:
    from babyagi.cli.text import fit

    return [
        f"{going.objective.id:>4}  {going.why}, "
        f"{going.n_results} {'result' if going.n_results == 1 else 'results'}: "
        f"{fit(going.objective.spec.text, 60)}"
        for going in found
    ]
