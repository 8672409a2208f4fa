"""The command `worker`: its work on all objectives of the task store, and what it prints and logs
meanwhile."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import click

from babyagi import events
from babyagi.app.application import App, open_app
from babyagi.cli import views
from babyagi.cli.asking import find_person
from babyagi.cli.options import (
    given_flags,
    json_option,
    setting_options,
    wrong_usage,
)
from babyagi.cli.render import render_counts
from babyagi.cli.report import output_options, take_output
from babyagi.cli.run import join_objective, load_to_work, tell
from babyagi.cli.text import echo, fit, is_terminal, warn
from babyagi.settings.load import Loaded
from babyagi.tasks import Objective
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import say_count

logger = logging.getLogger("babyagi.events")

MAX_NAMED = 10  # objectives that a worker names when it starts


@click.command()
@click.option(
    "--objective",
    metavar="ID|NAME|latest",
    help="Work on this objective only; wait for it if it does not exist yet. Default: on all.",
)
@setting_options(
    "concurrency files tools mcp tools_from agent agent_hosts use_my_model log_format".split()
)
@output_options
@json_option
def worker(objective: str | None, as_json: bool, **flags: Any) -> int:
    """Work on all active objectives until told to stop.

    Objectives submitted later are included. While there is nothing to do, the worker waits. On
    Ctrl-C or SIGTERM it lets the calls in flight end, and stops. --output and --format need
    --objective.
    """
    if objective is None and (flags["output"] or flags["report_format"]):
        raise wrong_usage(
            "--output and --format can only be used with --objective: a worker for all objectives "
            "writes no report to a file"
        )
    output, given = take_output(flags, as_json), given_flags(flags)
    if objective is not None:
        return join_objective(given, selector=objective, output=output)
    return asyncio.run(_serve_all(load_to_work(given), as_json=as_json))


async def _serve_all(loaded: Loaded, *, as_json: bool) -> int:
    is_logged = is_unwatched(as_json=as_json)
    say = logger.info if is_logged else warn if as_json else echo
    notify = logger.warning if is_logged else tell
    async with (
        open_app(loaded.settings, ask_human=find_person(), tell=notify) as app,
        writing_log(app, is_wanted=is_logged),
    ):
        for notice in loaded.notices:
            notify(notice)
        await say_beginning(app, say)
        around = partial(show_lines, app.store, say=say, as_json=as_json, is_logged=is_logged)
        signal_number = await app.serve_all(around)
        say("This worker has stopped; other workers can take over its tasks.")
    return 0 if signal_number is None else 128 + signal_number


def is_unwatched(*, as_json: bool) -> bool:
    """Return whether a log is to be written to standard error: neither standard output nor standard
    error is a terminal, and no JSON was requested."""
    return not (as_json or is_terminal() or sys.stderr.isatty())


@asynccontextmanager
async def writing_log(app: App, *, is_wanted: bool) -> AsyncIterator[None]:
    """If `is_wanted`, write the worker's log to standard error while the body runs."""
    if not is_wanted:
        yield
        return
    as_json, secrets = app.settings.log_format == "json", app.settings.known_secrets
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(views.RecordFormatter(as_json=as_json, worker=app.name, secrets=secrets))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


async def say_beginning(app: App, say: Callable[[str], None]) -> None:
    """Pass lines about the worker and the active objectives to `say`, which prints or logs them."""
    at_once = f"{say_count(app.settings.concurrency, 'task')} at once"
    say(
        f"Worker {app.name} works on all active objectives, {at_once}. Ctrl-C lets the calls in "
        "flight end."
    )
    found = await app.store.objectives(are_open=True)
    for one in found[:MAX_NAMED]:
        now = await app.store.standing(one.id)
        say(f"  objective {one.id}: {fit(one.spec.text, 100)}")
        say(f"    {render_counts(now.counts)}; cost so far {one.spent}")
    if len(found) > MAX_NAMED:
        say(f"  and {len(found) - MAX_NAMED} more")
    if not found:
        say("  Nothing to do yet; babyagi submit adds an objective.")


async def show_lines(
    store: TaskStore,
    objective_id: int,
    work: Coroutine[Any, Any, Objective],
    *,
    say: Callable[[str], None],
    as_json: bool,
    is_logged: bool = False,
) -> Objective:
    """Await `work`, the work on one of several objectives. Print the objective's events meanwhile
    as plain lines or JSON lines, or only log them."""
    name = f"objective {objective_id}: "
    say(f"{name}joined")
    # the worker itself prints what blocks it
    lines = views.PlainView(store, prefix=name, without=(events.WORKER_BLOCKED,))
    view: views.View | None = views.JsonView() if as_json else None if is_logged else lines
    # this event is printed as a warning, which is a log record of its own
    without = (events.WORKER_BLOCKED,) if is_logged else ()
    objective = await _follow(store, objective_id, view, work, without=without)
    is_over = objective.stop_reason is not None
    why = f"has ended ({objective.stop_reason})" if is_over else f"is {objective.status}"
    say(f"{name}left, it {why}")
    return objective


async def _follow(
    store: TaskStore,
    objective_id: int,
    view: views.View | None,
    work: Coroutine[Any, Any, Objective],
    *,
    without: Sequence[str] = (),
) -> Objective:
    try:
        after_id = await store.last_event_id(objective_id)
    except BaseException:
        work.close()
        raise
    logged = views.LoggedView(view, without=without)
    follower = views.Follower(store, objective_id, logged, after_id=after_id)
    async with views.following(follower):
        return await work
