"""The commands of schedules: schedule alone, and its add, pause, resume and remove."""

from __future__ import annotations

import asyncio
from functools import partial
from shlex import quote
from typing import Any

import click

from babyagi.app.application import open_app
from babyagi.cli.options import (
    SET_ONCE,
    Duration,
    Family,
    given_flags,
    json_option,
    require_words,
    setting_options,
)
from babyagi.cli.render import render_duration
from babyagi.cli.run import tell, tell_notices
from babyagi.cli.session import load, with_store
from babyagi.cli.text import (
    Line,
    Style,
    fit,
    give,
    table,
    terminal_width,
)
from babyagi.settings.fields import Settings
from babyagi.settings.load import Loaded
from babyagi.taskstore.schedules import Schedule, ScheduleStatus, Tick
from babyagi.verbs.json_shapes import VERSION, schedule_shape, to_json

N_TICKS_SHOWN = 20
NOT_OF_SCHEDULE = (
    "agent_hosts join_existing_objective use_my_model concurrency log_format no_color"
).split()
RULE_FLAGS = "cron every at tz grace overlap catch_up daily_limit".split()


@click.command("schedule")
@click.argument("schedule_id", metavar="[SCHEDULE]", type=int, required=False)
@click.option("--all", "with_removed", is_flag=True, help="List removed schedules as well.")
@click.option(
    "-n",
    "n_ticks",
    type=click.IntRange(min=1),
    default=N_TICKS_SHOWN,
    show_default=True,
    metavar="N",
    help="Show this many of the last ticks of SCHEDULE.",
)
@json_option
def show_schedules(
    schedule_id: int | None, with_removed: bool, n_ticks: int, as_json: bool
) -> None:
    """Start an objective again and again.

    Alone, it lists the schedules with the next tick of each; with the number of a SCHEDULE, it
    shows that one, and the outcome of its ticks (the times at which it was due). `babyagi worker`
    fires the ticks that are due. Schedules are kept in the task store: however many workers read
    it, each tick starts one objective.
    """
    if schedule_id is None:
        found = with_store(lambda store: store.schedules(with_removed=with_removed))
        shapes = [schedule_shape(one) for one in found]
        none = 'There is no schedule. babyagi schedule add "an objective" --every 1d adds one.'
        lines = render_schedules(found, terminal_width()) if found else ()
        give(as_json, shapes, lines, empty=none)
        return
    one, ticks = with_store(lambda store: store.schedule(schedule_id, limit=n_ticks))
    more = {"schedule": schedule_shape(one), "ticks": to_json(ticks)}
    give(as_json, {"v": VERSION, **more}, [*render_schedule(one), *render_ticks(ticks)])


schedule = Family(show_schedules)


@schedule.command()
@click.argument("objective_words", metavar="[OBJECTIVE]...", nargs=-1)
@click.option("--cron", metavar='"M H D M W"', help="At the times that a crontab line describes.")
@click.option(
    "--every",
    type=Duration(),
    metavar="DURATION",
    help="Again and again, each time after this period, such as 30m, 2h or 1d.",
)
@click.option("--at", metavar="TIME", help="Once, at this time, such as 2026-12-01T09:00.")
@click.option(
    "--tz",
    metavar="ZONE",
    default="UTC",
    show_default=True,
    help="Time zone of --cron and --at, such as Europe/Berlin.",
)
@click.option(
    "--grace",
    type=Duration(),
    metavar="DURATION",
    default="1h",
    show_default=True,
    help="How late a tick may still start the objective if no worker was running then.",
)
@click.option(
    "--overlap",
    type=click.Choice(["skip", "allow"]),
    default="skip",
    show_default=True,
    help="What a tick does while the objective of an earlier tick is running.",
)
@click.option(
    "--catch-up",
    type=click.Choice(["one", "all", "none"]),
    default="one",
    show_default=True,
    help="Which ticks that are later than --grace still start the objective.",
)
@click.option(
    "--daily-limit",
    metavar="USD",
    type=click.FloatRange(min=0),
    help="What its objectives may cost a day in all; 0 means no limit.  [default: 5]",
)
@setting_options(but=NOT_OF_SCHEDULE, hidden=SET_ONCE)
@json_option
def add(objective_words: tuple[str, ...], as_json: bool, **flags: Any) -> None:
    """Add a schedule: --cron, --every or --at.

    The objective's text, limits, models and tools are stored now and stay as they are; keys and
    addresses come from the worker that runs it.
    """

    rule = {name: flags.pop(name) for name in RULE_FLAGS}
    given = given_flags(flags)
    if objective_words:
        given["objective"] = require_words(objective_words)
    loaded = load(given)
    loaded.settings.require_objective()
    asyncio.run(_add(loaded, rule, as_json=as_json))


async def _add(loaded: Loaded, given: dict[str, Any], *, as_json: bool) -> None:
    daily_limit = given.pop("daily_limit")
    async with open_app(loaded.settings, tell=tell) as app:
        found = await app.add_schedule(given, daily_limit=daily_limit)
        tell_notices((*loaded.notices, *app.notices))
        is_served = bool(await app.store.workers())
    lines = render_schedule(found)
    if needs := _say_needs(loaded.settings):
        lines.append(Line(f"A worker for it needs the same files:  babyagi worker {needs}"))
    if not is_served:
        lines.append(Line("No worker is running. The schedule needs one:  babyagi worker"))
    give(as_json, {"v": VERSION, "schedule": schedule_shape(found)}, lines)


def _say_needs(settings: Settings) -> str:
    """Return the flags that a worker needs to work on a schedule's objective; '' for none."""

    given = {"--agent": settings.agent, "--mcp": settings.mcp, "--tools-from": settings.tools_from}
    return " ".join(f"{flag} {quote(str(value))}" for flag, value in given.items() if value)


def _switch(to: ScheduleStatus, schedule_id: int, as_json: bool) -> None:

    found = with_store(lambda store: store.switch_schedule(schedule_id, to=to), changes=True)
    said = Line(f"Schedule {found.id} is {found.status}; {_next(found)}.")
    give(as_json, {"v": VERSION, "schedule": schedule_shape(found)}, [said])


for name, to, says in (
    ("pause", ScheduleStatus.PAUSED, "Pause a schedule: ticks that are due meanwhile are skipped."),
    ("resume", ScheduleStatus.ACTIVE, "Resume a paused schedule; its next tick fires again."),
    ("remove", ScheduleStatus.REMOVED, "Remove a schedule; objectives that it started go on."),
):
    named = click.argument("schedule_id", metavar="SCHEDULE", type=int)
    schedule.command(name, help=says)(named(json_option(partial(_switch, to))))


# -- rendering
# --------------------------------------------------------------------------------------------------


def render_schedules(found: list[Schedule], width: int) -> list[Line]:
    """Return a table of schedules: a head, and a line for each."""
    columns = {"ID": ">4", "STATUS": "<8", "NEXT (UTC)": "<16", "OBJECTIVE": ""}
    rows = []
    for one in found:
        at = f"{one.due_at:%Y-%m-%d %H:%M}" if one.due_at is not None and _is_on(one) else "-"
        what = f"{one.spec.objective.text} ({one.spec.rule.words})"
        rows.append(((one.id, one.status.value, at, what), Style.PLAIN))
    return table(columns, rows, width)


_OF_LATER_TICKS = {
    "one": "of ticks that are later, only the last one fires",
    "all": "ticks that are later fire as well",
    "none": "ticks that are later do not fire",
}
_WHILE_ONE_IS_AT_WORK = {
    "skip": "the next tick is skipped",
    "allow": "the next tick starts beside it",
}


def render_schedule(one: Schedule) -> list[Line]:
    """Return the lines about a schedule: its rule, next tick, options and limits, but not its past
    ticks."""

    spec = one.spec
    of_day, of_tick = spec.daily_limit_usd, spec.objective.limits.max_cost_usd
    day, tick = (f"${usd:g}" if usd else "none" for usd in (of_day, of_tick))
    grace = render_duration(spec.grace_s)
    return [
        Line(f"Schedule {one.id}: {fit(spec.objective.text, 400)}", Style.BOLD),
        Line(f"  {one.status}: {spec.rule.words}"),
        Line(f"  {_next(one)}"),
        Line(f"  a tick starts the objective up to {grace} late; {_OF_LATER_TICKS[spec.catch_up]}"),
        Line(f"  while its objective is running, {_WHILE_ONE_IS_AT_WORK[spec.overlap]}"),
        Line(f"  cost limit of a day: {day}, of a tick: {tick}"),
    ]


def render_ticks(ticks: list[Tick]) -> list[Line]:
    """Return a line for each tick, the newest first."""
    if not ticks:
        return [Line("No tick has been due yet.")]
    return [Line("Ticks (UTC), the newest first:"), *map(_render_tick, ticks)]


def _render_tick(tick: Tick) -> Line:
    began = f" objective {tick.objective_id}" if tick.objective_id is not None else ""
    why = f" ({tick.reason})" if tick.reason else ""
    return Line(f"  {tick.due_at:%Y-%m-%d %H:%M}  {tick.outcome}{began}{why}")


def _is_on(one: Schedule) -> bool:
    return one.status in ("active", "paused")


def _next(one: Schedule) -> str:
    if one.due_at is None or not _is_on(one):
        return "there are no more ticks"
    skipped = ", which is skipped" if one.status == "paused" else ""
    return f"next tick: {one.due_at:%Y-%m-%d %H:%M:%S} UTC{skipped}"
