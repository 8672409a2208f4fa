"""The commands of working together: submit, worker, workers, migrate."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from babyagi.backends import require_result_store
from babyagi.cli.exits import ExitCode
from babyagi.cli.preflight import require_embedder
from babyagi.cli.run import find_person, require_objective, tell, tell_notices
from babyagi.cli.session import is_over, load
from babyagi.cli.text import Style, echo, fit, print_json, warn
from babyagi.settings.load import Loaded

if TYPE_CHECKING:
    from babyagi.taskstore.port import TaskStore

MAX_SAID = 10  # objectives that a worker names when it begins


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


async def describe_board(store: TaskStore) -> list[str]:
    """What there is for a worker to take up, a line each."""
    open_ids = await store.open_objectives()
    found = [await store.objective(objective_id) for objective_id in open_ids[-MAX_SAID:]]
    n_more = len(open_ids) - len(found)
    return [
        *([f"  and {n_more} older ones: babyagi objectives --active"] if n_more else []),
        *(f"  objective {one.id}: {fit(one.spec.text, 100)}" for one in found),
    ] or ['  there is nothing yet; it waits for: babyagi submit "an objective"']


async def _serve_all(loaded: Loaded, *, as_json: bool) -> int:
    from babyagi.app import open_app

    say = warn if as_json else echo
    async with open_app(loaded.settings, ask_human=find_person(), tell=tell) as app:
        tell_notices(loaded.notices)
        say(
            f"Worker {app.name} works on whatever is on the board, "
            f"{loaded.settings.concurrency} tasks at once. Ctrl-C ends it gently."
        )
        for line in await describe_board(app.store):
            say(line)
        signal_number = await app.serve_all(say)
    say("This worker has signed off; what it held is free for others.")
    return 0 if signal_number is None else 128 + signal_number
