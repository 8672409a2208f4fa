"""Running an objective with a view of it: open, start, work and watch at once, say how it came
out."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from babyagi.cli import render
from babyagi.cli.exits import code_of_objective
from babyagi.cli.follow import Follower, LoggedView, View
from babyagi.cli.json_shapes import is_rehearsal, models_of
from babyagi.cli.person import find_person
from babyagi.cli.plain import JsonView, PlainView
from babyagi.cli.preflight import (
    require_credentials,
    require_embedder,
    require_listener,
    require_living_models,
)
from babyagi.cli.session import NOTHING, is_over, load, pick_objective, pick_unfinished
from babyagi.cli.text import Style, echo, fit, is_live_terminal, warn
from babyagi.cli.worker_lines import serving
from babyagi.errors import SettingsError
from babyagi.opening import require_result_store
from babyagi.resultstore.availability import find_trouble
from babyagi.settings import Loaded, Settings
from babyagi.tasks import Objective, ObjectiveStatus
from babyagi.taskstore.base import TaskStore

if TYPE_CHECKING:
    from babyagi.app import App, RunOutcome

T = TypeVar("T")
Work = Callable[[int], Coroutine[Any, Any, "RunOutcome"]]

WATCH_CHECK_S = 1.0


def run_objective(
    flags: Mapping[str, Any], *, always_new: bool, as_json: bool, selector: str = ""
) -> int:
    """Run the objective that flags, environment and files describe, or join the one that `selector`
    names, and return the exit code."""
    loaded = load(flags)
    if loaded.settings.join_existing_objective:
        from babyagi.cli.together import join_objective

        return join_objective(flags, selector=selector, as_json=as_json)
    if selector:
        raise SettingsError(
            f"--objective {selector} goes with --join",
            fix=f"babyagi run --join --objective {selector}",
            guide="machines",
        )
    require_objective(loaded.settings)
    require_credentials(loaded.settings)
    require_living_models(loaded.settings)
    require_result_store(loaded.settings)
    require_embedder(loaded.settings)
    return asyncio.run(_start_and_work(loaded, always_new=always_new, as_json=as_json))


def run_demo(
    folder: Path | None, question: str, *, flags: Mapping[str, Any], always_new: bool, as_json: bool
) -> int:
    """Run the demo's objective on the folder, print its report, and return the exit code."""
    from babyagi.cli.guide import guide_folder

    documents = (folder or guide_folder()).resolve()
    settings = {
        **flags,
        "objective": f"Answer from the documents in the folder: {question}",
        "initial_task": f"List the documents, and find what they say about: {question}",
        # folders of one name stay apart
        "instance_name": f"demo-{hashlib.sha256(os.fsencode(documents)).hexdigest()[:8]}",
        "files": str(documents),
        "llm_model": "rehearsal",
        "model_execution": "rehearsal",
        "model_creation": "rehearsal",
        "model_prioritization": "rehearsal",
        "model_report": "rehearsal",
        "embedding_model": "hash",
    }
    # what it is to show is the same wherever it is typed
    loaded = load(settings, reads_files=False)
    require_result_store(loaded.settings)
    return asyncio.run(
        _start_and_work(loaded, always_new=always_new, as_json=as_json, is_demo=True)
    )


def resume_objective(selector: str, *, flags: Mapping[str, Any], as_json: bool) -> int:
    """Go on with an unfinished objective, and return the exit code."""
    loaded = load(flags)
    require_result_store(loaded.settings)
    require_embedder(loaded.settings)
    return asyncio.run(_resume(loaded, selector, as_json=as_json))


def watch_objective(selector: str, *, as_json: bool) -> int:
    """Watch an objective until it ends, and return the exit code of its stop reason."""
    return asyncio.run(_watch(load(needs=NOTHING).settings, selector, as_json=as_json))


def require_objective(settings: Settings) -> None:
    if not settings.objective.strip():
        raise SettingsError(
            "there is no objective to run",
            why=(
                "no words were given, and OBJECTIVE is not set in the environment or in a .env file"
            ),
            fix='babyagi run "an objective", or OBJECTIVE="an objective" babyagi, or babyagi demo',
            guide="start",
        )


async def _start_and_work(
    loaded: Loaded, *, always_new: bool, as_json: bool, is_demo: bool = False
) -> int:
    from babyagi.app import open_app

    async with open_app(loaded.settings, ask_human=find_person(), tell=tell) as app:
        objective, is_new = await app.start_objective(always_new=always_new)
        if is_demo and is_over(objective):
            objective, is_new = await app.start_objective(always_new=True)
        tell_notices((*loaded.notices, *app.notices))
        after_id = 0 if is_new else await app.store.last_event_id(objective.id)
        return await work_on(
            app, objective, app.run, as_json=as_json, after_id=after_id, shows_report=is_demo
        )


async def _resume(loaded: Loaded, selector: str, *, as_json: bool) -> int:
    from babyagi.app import open_app

    async with open_app(loaded.settings, ask_human=find_person(), tell=tell) as app:
        objective = await pick_unfinished(app.store, selector)
        if not is_over(objective):
            require_credentials(loaded.settings, models_of(objective))
        tell_notices(loaded.notices)
        return await work_on(
            app,
            objective,
            app.run,
            as_json=as_json,
            after_id=await app.store.last_event_id(objective.id),
        )


async def _watch(settings: Settings, selector: str, *, as_json: bool) -> int:
    from babyagi.stores import open_store

    async with open_store(settings) as store:
        objective = await pick_objective(store, selector)
        if not is_over(objective) and not await _is_anybody_working(store, objective.id):
            tell_notices(
                [
                    (
                        f"nobody works on objective {objective.id} now; `babyagi resume "
                        "--objective "
                        f"{objective.id}` goes on"
                    )
                ]
            )
        if trouble := await find_trouble(store, objective.id):
            tell(f"results do not get into the result store: {trouble}")
        view = _open_view(store, objective, as_json=as_json)
        after_id = 0 if as_json else await store.last_event_id(objective.id)
        await _follow_while(
            _wait_for_end(store, objective.id),
            Follower(store, objective.id, view, after_id=after_id),
            view,
        )
        objective = await store.objective(objective.id)
        await _say_closing(store, objective, home=settings.home, as_json=as_json)
        return code_of_objective(objective)


async def work_on(
    app: App,
    objective: Objective,
    work: Work,
    *,
    as_json: bool,
    after_id: int,
    shows_report: bool = False,
) -> int:
    """Work on the objective while a view follows, say how it came out, and return the exit code.
    One that is over is only told of."""
    stopped_by_signal = None
    if is_over(objective):
        say = warn if as_json else echo
        say("This objective has ended already; no model is asked. To start it afresh: --new")
    else:
        require_listener(app.settings, models_of(objective))
        view = LoggedView(_open_view(app.store, objective, as_json=as_json))
        outcome = await _follow_while(
            work(objective.id), Follower(app.store, objective.id, view, after_id=after_id), view
        )
        objective, stopped_by_signal = outcome.objective, outcome.stopped_by_signal
    if shows_report and not as_json:
        await _print_report(app.store, objective)
    await _say_closing(app.store, objective, home=app.settings.home, as_json=as_json)
    return code_of_objective(objective, stopped_by_signal=stopped_by_signal)


async def _follow_while(work: Coroutine[Any, Any, T], follower: Follower, view: View) -> T:
    """Await the work while the follower feeds the view, then show the last events. The terminal is
    left as it was, however it ends."""
    try:
        async with asyncio.TaskGroup() as group:
            following = group.create_task(follower.follow())
            try:
                came_out = await work
            finally:
                following.cancel()
        await follower.drain()
        return came_out
    finally:
        view.close()


async def _wait_for_end(store: TaskStore, objective_id: int) -> None:
    """Return when the objective has ended and its report is written, or nobody is left to write
    it."""
    while True:
        last_id = await store.last_event_id(objective_id)
        objective = await store.objective(objective_id)
        if is_over(objective) or (
            objective.status is ObjectiveStatus.ENDED
            and not await _is_anybody_working(store, objective.id)
        ):
            return
        await store.wait_for_events(objective_id, after_id=last_id, timeout_s=WATCH_CHECK_S)


async def _is_anybody_working(store: TaskStore, objective_id: int) -> bool:
    return bool(serving(await store.workers(), objective_id))


def _open_view(store: TaskStore, objective: Objective, *, as_json: bool) -> View:
    """JSON where it was asked for, the live view on a terminal that no model shares, plain lines
    elsewhere."""
    if as_json:
        return JsonView()
    if is_live_terminal() and "human" not in models_of(objective):
        from babyagi.cli.live import LiveView

        return LiveView(store, objective.id)
    _say_opening(objective)
    return PlainView(store)


def _say_opening(objective: Objective) -> None:
    if is_rehearsal(objective):
        echo(render.REHEARSAL_LINE, Style.YELLOW)
    echo(f"Objective {objective.id}: {fit(objective.spec.text, 400)}", Style.BOLD)
    echo(f"Limits: {render.render_limit_values(objective.spec.limits)}.")


def tell_notices(notices: Iterable[str]) -> None:
    for notice in notices:
        tell(notice)


def tell(notice: str) -> None:
    warn(f"note: {notice}", Style.YELLOW)


async def _say_closing(
    store: TaskStore, objective: Objective, *, home: Path, as_json: bool
) -> None:
    say = warn if as_json else echo
    trouble = await find_trouble(store, objective.id)
    for line in render.render_closing(
        objective, await store.counts(objective.id), home=str(home), index_trouble=trouble
    ):
        say(line.text, line.style)


async def _print_report(store: TaskStore, objective: Objective) -> None:
    markdown = await store.report(objective.id)
    if markdown is not None:
        echo()
        echo(markdown.rstrip("\n"))
        echo()
