"""The commands of working together: submit, worker, workers, migrate."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from babyagi.backends import require_result_store
from babyagi.cli.exits import ExitCode
from babyagi.cli.preflight import require_embedder
from babyagi.cli.run import find_person, require_objective, tell, tell_notices, work_on
from babyagi.cli.session import LATEST, is_over, load
from babyagi.cli.text import Style, echo, fit, print_json, warn
from babyagi.errors import NotFoundError
from babyagi.settings.load import Loaded
from babyagi.tasks import Objective

if TYPE_CHECKING:
    from babyagi.taskstore.port import TaskStore


CHANGE_WAIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The objective that a joiner means: a number, `latest` or an instance name; or else its text
    and instance name.

    Of several the newest unfinished one is meant, else the newest that has ended; `latest` never
    means one that has ended.
    """

    selector: str = ""
    text: str = ""
    instance_name: str = ""

    def __str__(self) -> str:
        return self.selector or fit(self.text, 60) or self.instance_name

    def fits(self, objective: Objective) -> bool:
        if self.selector == LATEST:
            return not is_over(objective)
        if self.selector:
            return objective.spec.instance_name == self.selector
        return objective.spec.instance_name == self.instance_name and (
            not self.text or objective.spec.text == self.text
        )

    async def find(self, store: TaskStore) -> Objective | None:
        if self.selector.isdecimal():
            try:
                return await store.objective(int(self.selector[:18]))
            except NotFoundError:
                return None
        found = [objective for objective in await store.objectives() if self.fits(objective)]
        return next(
            (objective for objective in reversed(found) if not is_over(objective)),
            found[-1] if found else None,
        )


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


def join_objective(flags: Mapping[str, Any], *, selector: str = "", as_json: bool) -> int:
    """Work on an objective that somebody else started or will start, and return the exit code of
    its stop reason."""
    loaded = load(flags)
    require_result_store(loaded.settings)
    require_embedder(loaded.settings)
    wanted = Wanted(
        selector=selector,
        text=loaded.settings.objective,
        instance_name=loaded.settings.instance_name,
    )
    return asyncio.run(_join(loaded, wanted, as_json=as_json))


async def _join(loaded: Loaded, wanted: Wanted, *, as_json: bool) -> int:
    from babyagi.app import open_app

    async with open_app(loaded.settings, ask_human=find_person(), tell=tell) as app:
        tell_notices(loaded.notices)
        objective = await _wait_for(wanted, app.store)
        after_id = await app.store.last_event_id(objective.id)
        return await work_on(app, objective, app.join, as_json=as_json, after_id=after_id)


async def _wait_for(wanted: Wanted, store: TaskStore) -> Objective:
    """Return the objective as soon as there is one."""
    found = await wanted.find(store)
    if found is None:
        tell(f"there is no objective {wanted} yet; this worker waits for it")
    while found is None:
        await store.wait_for_change(timeout_s=CHANGE_WAIT_S)
        found = await wanted.find(store)
    return found


def serve_all(flags: Mapping[str, Any], *, as_json: bool) -> int:
    """Work on whatever the task store holds until a signal ends it, and return the exit code of
    that signal."""
    loaded = load(flags)
    require_result_store(loaded.settings)
    require_embedder(loaded.settings)
    return asyncio.run(_serve_all(loaded, as_json=as_json))


async def _serve_all(loaded: Loaded, *, as_json: bool) -> int:
    from babyagi.app import open_app

    say = warn if as_json else echo
    async with open_app(loaded.settings, ask_human=find_person(), tell=tell) as app:
        tell_notices(loaded.notices)
        say(
            f"Worker {app.name} works on whatever is on the board, "
            f"{loaded.settings.concurrency} tasks at once. Ctrl-C ends it gently."
        )
        signal_number = await app.serve_all(say)
    say("This worker has signed off; what it held is free for others.")
    return 0 if signal_number is None else 128 + signal_number
