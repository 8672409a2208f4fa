"""The commands of working together: submit, worker, workers, migrate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from babyagi import events
from babyagi.backends import require_result_store
from babyagi.cli.exits import ExitCode
from babyagi.cli.preflight import require_embedder
from babyagi.cli.render import render_counts
from babyagi.cli.run import (
    Follower,
    LoggedView,
    View,
    find_person,
    follow_while,
    interrupt,
    require_objective,
    tell,
    tell_notices,
)
from babyagi.cli.session import is_over, load
from babyagi.cli.text import Style, echo, fit, is_live_terminal, print_json, warn
from babyagi.cli.views import JsonView, PlainView
from babyagi.settings.load import Loaded
from babyagi.tasks import Objective

if TYPE_CHECKING:
    from babyagi.app import App
    from babyagi.taskstore.port import TaskStore

MAX_NAMED = 10  # objectives that a worker names at its start

if TYPE_CHECKING:
    from babyagi.taskstore.port import TaskStore


def submit_objective(flags: Mapping[str, Any], *, always_new: bool, as_json: bool) -> int:
    """Create the objective that the settings describe, or find it, and say its number; return the
    exit code."""
    loaded = load(flags)
    require_objective(loaded.settings)
    return asyncio.run(_submit(loaded, always_new=always_new, as_json=as_json))


async def _submit(loaded: Loaded, *, always_new: bool, as_json: bool) -> int:
    from babyagi.app import open_app

    async with open_app(loaded.settings, tell=tell) as app:
        objective, is_new = await app.start_objective(always_new=always_new)
        tell_notices((*loaded.notices, *app.notices))
    if as_json:
        print_json(
            {
                "v": 1,
                "objective_id": objective.id,
                "uid": objective.uid,
                "is_new": is_new,
                "status": objective.status.value,
            }
        )
        return ExitCode.OK
    how = (
        "is on the board"
        if is_new
        else "was there already" + (", and has ended" if is_over(objective) else "")
    )
    echo(f"Objective {objective.id} {how}: {fit(objective.spec.text, 400)}", Style.BOLD)
    echo(
        "Work on it:  babyagi worker  (as many as you like, from wherever this task store "
        "can be reached)"
    )
    echo(f"Watch it:    babyagi watch --objective {objective.id}")
    return ExitCode.OK


def serve_all(flags: Mapping[str, Any], *, as_json: bool) -> int:
    """Work on whatever the task store holds until a signal ends it, and return the exit code of
    that signal."""
    loaded = load(flags)
    require_result_store(loaded.settings)
    require_embedder(loaded.settings)
    return asyncio.run(_serve_all(loaded, as_json=as_json))


async def _serve_all(loaded: Loaded, *, as_json: bool) -> int:
    from babyagi.app import open_app

    # a prompt that a person answers needs the terminal for itself
    is_live = (
        is_live_terminal() and not as_json and "human" not in loaded.settings.model_by_role.values()
    )
    ask_human = None if is_live else find_person()
    say = warn if as_json else echo
    async with open_app(loaded.settings, ask_human=ask_human, tell=tell) as app:
        tell_notices(loaded.notices)
        await _say_beginning(app, say)
        if is_live:
            signal_number = await _serve_live(app)
        else:
            around = partial(_show_lines, app.store, say=say, as_json=as_json)
            signal_number = await app.serve_all(around)
    say("This worker has signed off; what it held is free for others.")
    return 0 if signal_number is None else 128 + signal_number


async def _say_beginning(app: App, say: Callable[[str], None]) -> None:
    """Who works here, and what there is to take up."""
    n_slots = app.settings.concurrency
    say(
        f"Worker {app.name} works on whatever is on the board, {n_slots} "
        f"{'task' if n_slots == 1 else 'tasks'} at once. Ctrl-C ends it gently."
    )
    found = await app.store.open_objectives()
    for objective_id in found[:MAX_NAMED]:
        objective = await app.store.objective(objective_id)
        counts = await app.store.counts(objective_id)
        say(f"  objective {objective_id}: {fit(objective.spec.text, 100)}")
        say(f"    {render_counts(counts)}; cost so far {objective.spent}")
    if len(found) > MAX_NAMED:
        say(f"  and {len(found) - MAX_NAMED} more")
    if not found:
        say("  There is nothing to do yet; babyagi submit puts an objective there.")


async def _serve_live(app: App) -> int | None:
    """Serve what comes, with one picture of all of it."""
    from babyagi.app import Company
    from babyagi.cli.live import Desk, LiveView, open_live
    from babyagi.cli.picture import Board

    board = Board(title=f"Worker {app.name}, {app.settings.concurrency} tasks at once")
    async with open_live(board, Desk(app.store, app.settings, stop=interrupt)) as live:

        async def show(objective_id: int, work: Coroutine[Any, Any, Objective]) -> Objective:
            view = LiveView(app.store, objective_id, live)
            try:
                return await _follow(app.store, objective_id, view, work)
            finally:
                view.close()

        return await app.serve_all(show, Company(is_person_there=lambda: live.is_running))


async def _show_lines(
    store: TaskStore,
    objective_id: int,
    work: Coroutine[Any, Any, Objective],
    *,
    say: Callable[[str], None],
    as_json: bool,
) -> Objective:
    """Await the work on one of several objectives, and say what happens in lines."""
    name = f"objective {objective_id}: "
    say(f"{name}joined")
    # what keeps this worker from an objective it says by itself
    lines = PlainView(store, prefix=name, without=(events.WORKER_BLOCKED,))
    view = JsonView() if as_json else lines
    objective = await _follow(store, objective_id, view, work)
    why = (
        f"it has ended ({objective.stop_reason})"
        if objective.stop_reason is not None
        else f"it is {objective.status}"
    )
    say(f"{name}left, {why}")
    return objective


async def _follow(
    store: TaskStore, objective_id: int, view: View, work: Coroutine[Any, Any, Objective]
) -> Objective:
    try:
        after_id = await store.last_event_id(objective_id)
    except BaseException:
        work.close()
        raise
    follower = Follower(store, objective_id, LoggedView(view), after_id=after_id)
    return await follow_while(work, follower)
