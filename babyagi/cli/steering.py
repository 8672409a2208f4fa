"""The commands that change an objective without working on it: pause, cancel, extend, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from babyagi.cli.options import LIMITS, json_option, objective_option, parse_flags, setting_options
from babyagi.cli.text import Style, ask, echo, fit, is_person_there, print_json, warn

if TYPE_CHECKING:
    from babyagi.cli.render import Row
    from babyagi.tasks import Objective
    from babyagi.taskstore.base import TaskStore


@click.command()
@objective_option
@json_option
def pause(objective: str, as_json: bool) -> None:
    """Pause an objective: no worker makes a further call for it."""
    from babyagi.cli.session import pick_objective, with_store

    async def change(store: TaskStore) -> Row:
        found = await store.pause_objective((await pick_objective(store, objective)).id)
        return found, await store.counts(found.id)

    _say(with_store(change, changes=True), as_json)


@click.command()
@objective_option
@json_option
def cancel(objective: str, as_json: bool) -> None:
    """End an objective; what was found is kept."""
    from babyagi.cli.session import pick_objective, with_store
    from babyagi.tasks import StopReason

    async def change(store: TaskStore) -> Row:
        found = await pick_objective(store, objective)
        found = await store.end_objective(
            found.id, reason=StopReason.CANCELLED, detail="by the command `cancel`"
        )
        return found, await store.counts(found.id)

    _say(with_store(change, changes=True), as_json)


@click.command()
@objective_option
@setting_options(LIMITS)
@json_option
def extend(objective: str, as_json: bool, **limits: str | None) -> None:
    """Set new limits; an objective that ended by one can go on then.

    So can one that stalled, failed, or was left unmet.
    """
    import dataclasses

    from babyagi.cli.session import pick_objective, with_store

    given = parse_flags(limits)
    if not given:
        raise click.UsageError(
            "extend needs at least one limit, for instance --max-tasks 100",
            click.get_current_context(),
        )

    async def change(store: TaskStore) -> Row:
        found = await pick_objective(store, objective)
        found = await store.extend_objective(
            found.id, limits=dataclasses.replace(found.spec.limits, **given)
        )
        return found, await store.counts(found.id)

    _say(with_store(change, changes=True), as_json)


@click.command()
@objective_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(objective: str, yes: bool) -> None:
    """Delete an objective for good, with all that belongs to it."""
    from babyagi.cli.session import load, pick_objective, with_store
    from babyagi.opening import drop_collection

    settings = load().settings

    async def change(store: TaskStore) -> tuple[Objective, str] | None:
        found = await pick_objective(store, objective)
        if not yes and not _is_confirmed(found):
            return None
        has_results = bool(await store.result_ids(found.id))
        await store.delete_objective(found.id)
        return found, await drop_collection(settings, found) if has_results else ""

    deleted, trouble = with_store(change, settings=settings) or (None, "")
    if trouble:
        warn(
            f"note: the index may keep vectors and beginnings of its results: {trouble}",
            Style.YELLOW,
        )
    echo(f"Objective {deleted.id} is deleted." if deleted is not None else "Nothing is deleted.")


def _is_confirmed(objective: Objective) -> bool:
    if not is_person_there():
        from babyagi.errors import SettingsError

        raise SettingsError(
            f"objective {objective.id} is not deleted: nobody is there to confirm",
            fix=f"babyagi delete --objective {objective.id} --yes",
            guide="objectives",
        )
    return ask(
        f"Delete objective {objective.id} ({fit(objective.spec.text, 60)}) for good? [y/N]"
    ).lower() in ("y", "yes")


def _say(row: Row, as_json: bool) -> None:
    from babyagi.cli import json_shapes, render

    objective, counts = row
    if as_json:
        print_json(json_shapes.status_shape(objective, counts))
        return
    echo(f"Objective {objective.id} is {render.render_status_words(objective)}.")
    echo(f"Limits: {render.render_limit_values(objective.spec.limits)}.")
    echo(f"Next: {render.next_command(objective)}")
