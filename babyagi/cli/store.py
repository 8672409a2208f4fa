"""The commands about the stored data: the index of results, damage of the task store, its metrics
and its upgrade, and the deletion of objectives and conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import click

from babyagi.app import backends
from babyagi.cli import exits, session
from babyagi.cli.ask import forget
from babyagi.cli.options import (
    ALL,
    json_option,
    objective_option,
)
from babyagi.cli.text import (
    Line,
    Style,
    confirm,
    echo,
    fit,
    give,
    is_person_there,
    safe_line,
    warn,
)
from babyagi.errors import SettingsError
from babyagi.index.indexer import CheckReport
from babyagi.reporting.metrics import read_metrics
from babyagi.tasks import Objective
from babyagi.taskstore.nouns import Verification
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import say_count
from babyagi.verbs import actions, json_shapes

N_NAMED = 10


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
        fix = f"babyagi store rebuild --objective {objective.id}"
        lines.append(Line(f"No result is lost. The next run repairs this; so does: {fix}"))
    return lines


def _render_ids(what: str, ids: Sequence[str]) -> list[Line]:
    if not ids:
        return []
    more = f" and {len(ids) - N_NAMED:,} more" if len(ids) > N_NAMED else ""
    return [Line(f"{what}: {', '.join(safe_line(id_) for id_ in ids[:N_NAMED])}{more}", Style.RED)]


def render_verification(found: Verification) -> list[Line]:
    read = f"{found.n_rows} rows read ({found.n_steps} steps, {found.n_results} results)"
    lines = [
        *(Line(f"damaged: {damage}", Style.RED) for damage in found.damages),
        Line(f"{read}: {len(found.damages) or 'nothing'} damaged."),
    ]
    if found.damages:
        lines.append(Line("To go on, restore a backup; babyagi guide store says how."))
    return lines


# --------------------------------------------------------------------------------------------------
# The commands.
# --------------------------------------------------------------------------------------------------

OLD_DAYS = 30.0
MAX_DAYS = 36_500.0


@click.group()
def store() -> None:
    """Care for what is stored: check, rebuild, upgrade, delete."""


@store.command()
@click.option(
    "--objective",
    metavar=f"ID|latest|{ALL}",
    help=f"The number of the objective.  [default: {ALL}; with --index latest]",
)
@click.option("--index", "is_index", is_flag=True, help="Compare the index with the task store.")
@json_option
def verify(objective: str | None, is_index: bool, as_json: bool) -> int:
    """Check every row of the task store for damage.

    Each row that cannot be read, or that has changed since it was written, is named. With --index,
    the results in the index are compared with those in the task store instead. Nothing is changed.
    The exit code is 7 if something is wrong.
    """

    if is_index:
        picked, report = session.with_results(objective or "latest", lambda opened: opened.check())
        shape, is_sound = json_shapes.index_check_shape(picked, report), report.is_whole
        lines = render_index_check(picked, report)
    else:

        async def read(store: TaskStore) -> Verification:
            return await store.verify(await session.pick_or_all(store, objective or ALL))

        found = session.with_store(read)
        shape, is_sound = json_shapes.verification_shape(found), not found.damages
        lines = render_verification(found)
    give(as_json, shape, lines)
    return int(exits.ExitCode.OK if is_sound else exits.ExitCode.STORE)


@store.command()
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

    found, n_results = session.with_results(
        objective,
        lambda opened: opened.rebuild(_tell_progress, model=embedding_model),
        model=embedding_model,
        changes=True,
    )
    said = f"The index of objective {found.id} is rebuilt: {n_results:,} results."
    give(as_json, {"v": 1, "objective_id": found.id, "n_results": n_results}, [Line(said)])


def _tell_progress(n_done: int, n_all: int) -> None:
    warn(f"{n_done:,} of {n_all:,} results indexed", Style.DIM)


@store.command()
def metrics() -> None:
    """Print metrics of the task store, for Prometheus.

    For the textfile collector of Prometheus: babyagi store metrics > babyagi.prom
    """

    echo(session.with_store(read_metrics).rstrip("\n"))


@store.command()
def migrate() -> None:
    """Upgrade the task store to this program's version.

    No worker may run meanwhile. A store in a file is upgraded by any command that changes it, too.
    """

    before, after = asyncio.run(backends.migrate_store(session.load(needs=session.STORE).settings))
    if before == after:
        echo("The task store has this program's version.")
    else:
        echo(f"The task store was upgraded from version {before} to {after}.")


@store.command()
@objective_option
@click.option(
    "--old",
    "days",
    is_flag=False,
    flag_value=OLD_DAYS,
    type=click.FloatRange(min=0, max=MAX_DAYS),
    metavar="[DAYS]",
    help=f"Delete those that ended more than DAYS ({OLD_DAYS:g}) days ago, or never got an answer.",
)
@click.option("--memory", metavar="NAME", help="Delete this conversation with an agent instead.")
@click.option("--yes", "is_sure", is_flag=True, help="Delete without asking.")
@json_option
def delete(
    *,
    objective: str,
    days: float | None,
    memory: str | None,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Delete an objective and its data; or old ones, or a conversation.

    It shows what it would delete, and asks first. With --old, active objectives, and paused ones
    with results, are kept. A conversation is deleted without a question.
    """

    if memory is not None:
        forget(memory)
        return
    settings = session.load().settings
    say = warn if as_json else echo

    async def work(store: TaskStore) -> tuple[list[Objective], list[str]]:
        doomed, question, fix = await (
            _find_one(store, objective) if days is None else _find_old(store, days, say)
        )
        if not doomed or not (is_sure or _is_confirmed(question, fix=fix)):
            return [], []
        return doomed, [await actions.delete_whole(store, settings, one) for one in doomed]

    deleted, troubles = session.with_store(work, changes=True, settings=settings)
    for trouble in dict.fromkeys(filter(None, troubles)):
        what = "the index may still hold vectors and beginnings of its results"
        warn(f"note: {what}: {trouble}", Style.YELLOW)
    one = [Line(f"Objective {objective.id} is deleted.") for objective in deleted]
    said = one if days is None or not deleted else [Line(f"{len(deleted)} deleted.")]
    give(
        as_json, {"v": 1, "deleted": [one.id for one in deleted]}, said, empty="Nothing is deleted."
    )


async def _find_one(store: TaskStore, selector: str) -> tuple[list[Objective], str, str]:
    """Return the objective to delete, the question to ask before, and what to type where nobody
    can be asked."""

    found = await session.pick_objective(store, selector)
    question = f"Delete objective {found.id} ({fit(found.spec.text, 60)}) for good?"
    return [found], question, f"babyagi store delete --objective {found.id} --yes"


async def _find_old(
    store: TaskStore, days: float, say: Callable[[str], None]
) -> tuple[list[Objective], str, str]:
    """As `_find_one`, of the objectives that are to be deleted because of their age. They are
    listed first."""

    before = backends.utc_now() - timedelta(days=days)
    found = await actions.find_prunable(store, before=before)
    for going in found:
        about = f"{going.why}, {say_count(going.n_results, 'result')}"
        say(f"{going.objective.id:>4}  {about}: {fit(going.objective.spec.text, 60)}")
    fix = f"babyagi store delete --old {days:g} --yes"
    return [going.objective for going in found], "Delete these for good?", fix


def _is_confirmed(question: str, *, fix: str) -> bool:
    """Ask the person the question, and return whether the answer is yes. Raises `SettingsError` if
    there is no terminal."""
    if not is_person_there():
        what = "nothing is deleted: there is no terminal to confirm on"
        raise SettingsError(what, fix=fix, guide="objectives")
    return confirm(question)
