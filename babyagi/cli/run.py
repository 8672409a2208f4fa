"""The commands that work on one objective or watch it: demo, run, resume, watch, submit, worker
--objective."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from babyagi.app.application import ALONE, App, Company, RunOutcome, open_app
from babyagi.app.backends import open_store, utc_now
from babyagi.app.toolbox import require_folder
from babyagi.cli import preflight, render, session, views
from babyagi.cli.about import guide_folder
from babyagi.cli.exits import Terminated, code_of_error, code_of_objective
from babyagi.cli.inbox import Asker, find_person
from babyagi.cli.options import (
    LIMITS,
    SET_ONCE,
    WrongUsage,
    given_flags,
    json_option,
    new_option,
    objective_option,
    parse_flags,
    require_words,
    setting_options,
)
from babyagi.cli.report import (
    MARKDOWN,
    Output,
    choose_output,
    give_report,
    output_option,
)
from babyagi.cli.text import (
    Line,
    Style,
    echo,
    echo_lines,
    fit,
    give,
    is_in_foreground,
    is_live_terminal,
    is_person_there,
    print_json,
    warn,
)
from babyagi.errors import (
    CredentialsError,
    ModelRejectedError,
    SettingsError,
    StoreUnusableError,
)
from babyagi.index.indexer import find_trouble
from babyagi.reporting.report import load_report
from babyagi.reporting.sources import find_artifacts, trace_sources
from babyagi.settings.fields import ROLES, Settings, declared_fields
from babyagi.settings.load import Loaded
from babyagi.tasks import ANSWER_TASK, Objective, ObjectiveStatus, StopReason
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import quoted
from babyagi.verbs import json_shapes
from babyagi.verbs.actions import serving

# -- the commands that work or watch work: demo, run, resume, watch
# --------------------------------------------------------------------------------------------------

DEFAULT_QUESTION = "What is lost when the program is killed, and how much can a run spend?"


@click.command()
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--question", metavar="TEXT", help="The question that the report answers.")
@setting_options((*LIMITS, "concurrency"))
@click.option(
    "--new",
    "always_new",
    is_flag=True,
    help="Start a new demo instead of continuing one that was cut off.",
)
@output_option
@json_option
def demo(
    folder: Path | None,
    question: str | None,
    always_new: bool,
    output: str | None,
    as_json: bool,
    **flags: Any,
) -> int:
    """Try babyagi on real files, without a key or a network.

    It reads the documents of FOLDER, or this program's own guide. Only the language model is
    replaced: a rehearsal model quotes sentences, each with its file and line.
    """
    chosen = choose_output(output, as_json=as_json)
    documents = (folder or guide_folder()).resolve()
    settings = {
        **given_flags(flags),
        "objective": question or DEFAULT_QUESTION,
        "initial_task": ANSWER_TASK,
        # separates folders of the same name
        "instance_name": f"demo-{hashlib.sha256(os.fsencode(documents)).hexdigest()[:8]}",
        "files": str(documents),
        "llm_model": "rehearsal",
        "role_models": [f"{role}=rehearsal" for role in ROLES],
        "embedding_model": "hash",
        "agent": "",
    }
    # the demo must behave the same in every folder
    opening = _open(session.load(settings, reads_files=False), creates=True)
    find = partial(_start, always_new=always_new, is_demo=True)
    return asyncio.run(work_on(opening, find, output=chosen))


@click.command()
@click.argument("objective_words", metavar="[OBJECTIVE]...", nargs=-1)
@setting_options(but=("log_format", "serve_host", "serve_port"), hidden=SET_ONCE)
@new_option
@output_option
@json_option
@click.option(
    "--continue",
    "continued",
    metavar="ID|latest",
    help="Ask a further question of this objective; limits that are given replace its old ones.",
)
def run(
    objective_words: tuple[str, ...],
    always_new: bool,
    output: str | None,
    as_json: bool,
    continued: str | None,
    **flags: Any,
) -> int:
    """Run an objective until it ends, and print its report.

    The objective `-` stands for the text on standard input. Standard output holds the report and
    nothing else. If an objective with the same text, first task and name exists, it is continued,
    or if it has ended, its report is printed again. With --json every event is one line, and the
    last line is the outcome. With --join it works on an objective that another process started, or
    waits until one does. With --continue the words are a further question to an objective; its
    results are used to answer it.
    """
    chosen, given = choose_output(output, as_json=as_json), given_flags(flags)
    if continued is not None:
        if always_new:
            raise WrongUsage("--continue cannot be combined with --new")
        before = f"--continue {continued} "
        question = require_words(objective_words, "a further question", before=before)
        return _ask_further(question, selector=continued, flags=given, output=chosen)
    if objective_words:
        given["objective"] = require_words(objective_words)
    loaded = session.load(given)
    if loaded.settings.join_existing_objective:
        return join_objective(loaded, output=chosen)
    loaded.settings.require_objective()
    require_folder(loaded.settings)
    preflight.require_credentials(loaded.settings)
    preflight.require_living_models(loaded.settings)
    opening, find = _open(loaded, creates=True), partial(_start, always_new=always_new)
    return asyncio.run(work_on(opening, find, output=chosen))


@click.command()
@objective_option
@setting_options("concurrency files tools mcp tools_from agent agent_hosts use_my_model".split())
@output_option
@json_option
def resume(objective: str, output: str | None, as_json: bool, **flags: Any) -> int:
    """Continue an objective that was killed, paused or stopped."""
    chosen = choose_output(output, as_json=as_json)
    opening = _open(session.load(given_flags(flags)))
    return asyncio.run(work_on(opening, partial(_pick, selector=objective), output=chosen))


@click.command()
@objective_option
@output_option
@json_option
def watch(objective: str, output: str | None, as_json: bool) -> int:
    """Watch an objective that runs in another process.

    When the objective ends, its report is printed. With --json every event from the first on is one
    line, and the last line is the outcome.
    """
    settings = session.load(needs=session.NOTHING).settings
    return asyncio.run(_watch(settings, objective, output=choose_output(output, as_json=as_json)))


# --------------------------------------------------------------------------------------------------
# Run an objective and show it meanwhile: open the store, start the objective, work on it and watch
# it at once, print the outcome.
# --------------------------------------------------------------------------------------------------


Found = tuple[Objective, int | None]  # with the id of the event after which the view begins

REST_UNTOLD_S = 1.0  # longest wait after a report without a notice of what is waited for

# options that hold for the whole life of an objective, or that choose one
NOT_OF_CONTINUING = frozenset(
    {"initial_task", "instance_name", "join_existing_objective", "memory", "planning", "tools"}
)


def _ask_further(question: str, *, selector: str, flags: Mapping[str, Any], output: Output) -> int:
    """Ask a further question of an objective, work on it until it ends, and return the exit
    code.
    """
    new = sorted(NOT_OF_CONTINUING & flags.keys())
    if new:
        raise SettingsError(
            f"{declared_fields()[new[0]].flags[-1]} cannot be combined with --continue",
            fix=f"babyagi run --continue {selector} {quoted(question)}",
            guide="objectives",
        )
    limits = parse_flags({name: flags[name] for name in LIMITS if name in flags})
    find = partial(_continue, selector=selector, question=question, limits=limits)
    return asyncio.run(work_on(_open(session.load(flags)), find, output=output))


def _open(loaded: Loaded, *, creates: bool = False) -> AbstractAsyncContextManager[App]:
    """Return a context manager that opens the app, after a check that the index of results can be
    used."""
    preflight.require_index(loaded.settings)
    tell_notices(loaded.notices)
    return open_app(loaded.settings, ask_human=find_person(), tell=tell, creates=creates)


async def _start(app: App, *, always_new: bool, is_demo: bool = False) -> Found:
    objective, is_new = await app.start_objective(always_new=always_new)
    if is_demo and session.is_over(objective):
        objective, is_new = await app.start_objective(always_new=True)
    tell_notices(app.notices)
    return objective, 0 if is_new else None


async def _continue(app: App, *, selector: str, question: str, limits: Mapping[str, Any]) -> Found:
    objective = await session.pick_objective(app.store, selector)
    preflight.require_credentials(app.settings, json_shapes.models_of(objective))
    app.toolbox.require(objective)
    after_id = await app.store.last_event_id(objective.id)
    new = replace(objective.spec.limits, **limits) if limits else None
    return await app.ask_further(objective, question, limits=new), after_id


async def _pick(app: App, *, selector: str) -> Found:
    objective = await session.pick_unfinished(app.store, selector)
    if not session.is_over(objective):
        preflight.require_credentials(app.settings, json_shapes.models_of(objective))
    return objective, None


async def _watch(settings: Settings, selector: str, *, output: Output) -> int:
    async with open_store(settings, only_looks=True) as store:
        objective = await session.pick_objective(store, selector)
        with suppress(StoreUnusableError):  # looking goes on where the home cannot be written
            session.touch(objective)
        if not session.is_over(objective) and not serving(await store.workers(), objective.id):
            tell(
                f"no worker works on objective {objective.id} now; `babyagi resume --objective "
                f"{objective.id}` continues it"
            )
        if trouble := await find_trouble(store, objective.id):
            tell(f"results cannot be written to the result store: {trouble}")
        as_json = output.as_json
        after_id = 0 if as_json else await store.last_event_id(objective.id)
        with _told_by_sigterm(), _viewed(store, objective, after_id, as_json=as_json) as view:
            await views.watch(view)
        return await _end(store, await store.objective(objective.id), output)


async def work_on(
    opening: AbstractAsyncContextManager[App],
    find: Callable[[App], Awaitable[Found]],
    *,
    output: Output,
    is_joined: bool = False,
) -> int:
    """Work on the objective and show its events meanwhile, write its report, print the outcome, and
    return the exit code. If the objective has ended already, only write the report.

    Args:
        opening: opens the app.
        find: returns the objective, and the id of the event after which the view begins; None means
            the last one so far.
        is_joined: whether another process started the objective.
    """
    async with opening as app, AsyncExitStack() as seat:
        objective, after_id = await find(app)
        store, as_json = app.store, output.as_json
        if session.is_over(objective) and not await _is_to_be_asked(
            store, objective, as_json=as_json
        ):
            warn("This objective has ended already; no model is asked. To start it anew: --new")
            return await _end(store, objective, output)
        if after_id is None:
            after_id = await store.last_event_id(objective.id)
        view, company = await seat.enter_async_context(
            _seated(app, objective, after_id=after_id, as_json=as_json)
        )
        await seat.enter_async_context(views.following(view))
        work = asyncio.ensure_future(
            app.join(objective, company)
            if is_joined
            else app.run(objective, company, after_id=after_id)
        )
        async with _ended_with_this(work):
            await _wait_for_report(store, objective, view, work)
            await seat.aclose()
            if not work.done():
                known = await find_trouble(store, objective.id)
                ended = await _end(store, await store.objective(objective.id), output)
                await _wait_for_rest(store, objective.id, work, known=known)
                return ended
            try:
                outcome = await work
            except (CredentialsError, ModelRejectedError, SettingsError) as error:
                now = await store.objective(objective.id)
                await _end(store, now, output, code=code_of_error(error))
                raise
            number = outcome.stopped_by_signal
            is_cut_off = number is not None and not outcome.objective.has_report
            code = 128 + (number or 0) if is_cut_off else None
            return await _end(store, outcome.objective, output, code=code)


@asynccontextmanager
async def _ended_with_this(work: asyncio.Task[Any]) -> AsyncIterator[None]:
    """After the body, cancel the work if it is not done, and wait until it has ended."""
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait([work])


async def _wait_for_report(
    store: TaskStore, before: Objective, view: views.View, work: asyncio.Task[RunOutcome]
) -> None:
    """Wait until the objective has ended with a new report, or until the work on it is done."""
    while not work.done():
        reported = asyncio.ensure_future(view.reported.wait())
        await asyncio.wait({reported, work}, return_when=asyncio.FIRST_COMPLETED)
        reported.cancel()
        view.reported.clear()
        now = await store.objective(before.id)
        if session.is_over(now) and (
            not session.is_over(before) or now.report_no > before.report_no
        ):
            return


async def _wait_for_rest(
    store: TaskStore, objective_id: int, work: asyncio.Task[RunOutcome], *, known: str
) -> None:
    """Wait for what is left after the report: results that are not in the result store yet, and the
    agent's memory. It is said if that takes long, and if the result store fails meanwhile. `known`:
    why it failed before; '' if it did not."""
    await asyncio.wait({work}, timeout=REST_UNTOLD_S)
    if not work.done():
        tell("the last results are being indexed and remembered; Ctrl-C leaves that for later")
    await work
    trouble = await find_trouble(store, objective_id)
    if trouble and not known:
        tell(
            f"results cannot be written to the result store: {trouble}; no result is lost; once "
            f"the store works again, `babyagi store rebuild --objective {objective_id}` fills it"
        )


async def _end(
    store: TaskStore, objective: Objective, output: Output, *, code: int | None = None
) -> int:
    """Write the report if the objective has ended, print the outcome, and return the exit code. For
    an objective that was paused or stopped, print only its state.

    Args:
        code: the exit code of work that was cut off; None means that of the objective.
    """
    has_report = objective.status is ObjectiveStatus.ENDED and code is None
    code = code_of_objective(objective) if code is None else code
    on_screen = replace(output, path=None, format=MARKDOWN) if output.path else output
    if output.as_json:
        await _print_outcome(store, objective, code=code, has_report=has_report)
    elif has_report:
        if sys.stdout.isatty():
            echo()
        await give_report(store, objective, on_screen, now=utc_now())
        warn()
    is_told = has_report and not output.as_json and sys.stdout.isatty()
    trouble = await find_trouble(store, objective.id)
    counts = (await store.standing(objective.id)).counts
    echo_lines(
        render.render_closing(objective, counts, index_trouble=trouble, is_told=is_told), warn
    )
    if has_report and output.path is not None:
        await give_report(store, objective, output, now=utc_now())
        warn(f"The report is in {output.path}")
    return code


async def _print_outcome(
    store: TaskStore, objective: Objective, *, code: int, has_report: bool
) -> None:
    """Print the outcome of the objective as one line of JSON, the last one of the command."""
    results = await store.results(objective.id)
    made = await find_artifacts(store, results)
    shape = json_shapes.outcome_shape(
        objective,
        (await store.standing(objective.id)).counts,
        results=[json_shapes.result_shape(result, made) for result in results],
        report=await load_report(store, objective) if has_report else None,
        sources=await trace_sources(store, results),
        exit_code=code,
    )
    print_json(shape, indent=None)


async def _is_to_be_asked(store: TaskStore, objective: Objective, *, as_json: bool) -> bool:
    """Return whether the objective ended as `waiting` with an open question, and a person is at the
    terminal to answer it."""
    is_asking = not as_json and is_person_there() and is_in_foreground()
    is_waiting = objective.stop_reason is StopReason.WAITING
    return is_asking and is_waiting and bool(await store.inbox(objective.id))


@contextmanager
def _told_by_sigterm() -> Iterator[None]:
    """While the body runs, let SIGTERM cancel it, as Ctrl-C does, and then raise `Terminated`. The
    signal handler does not raise it, because an exception could be lost in a library's callback."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    loop.add_signal_handler(signal.SIGTERM, task.cancel, Terminated.__name__)
    try:
        yield
    except asyncio.CancelledError as error:
        if error.args == (Terminated.__name__,):
            raise Terminated from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


@asynccontextmanager
async def _seated(
    app: App, objective: Objective, *, after_id: int, as_json: bool
) -> AsyncIterator[tuple[views.View, Company]]:
    """Yield the view in which this process shows its work on the objective, and the `Company` that
    says how a person can be asked meanwhile. The person at the terminal is asked there, unless the
    model is a person, who needs the terminal."""
    is_shared = "human" in json_shapes.models_of(objective)
    is_asking = not (as_json or is_shared) and is_person_there() and is_in_foreground()
    how = {"as_json": as_json, "is_shared": is_shared, "is_logged": True}
    with _viewed(app.store, objective, after_id, **how) as view:
        if not is_asking:
            yield view, ALONE
            return
        live = view if isinstance(view, views.LiveView) else None
        aside = live.aside if live else nullcontext
        asker = Asker(
            store=app.store,
            objective_id=objective.id,
            settings=app.settings,
            descriptor=sys.stdin.fileno(),
            aside=aside,
        )
        asking = asyncio.ensure_future(asker.ask())
        on_piece = live.hear if live else None
        try:
            yield view, Company(is_person_there=asker.is_person_there, on_piece=on_piece)
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)


@contextmanager
def _viewed(
    store: TaskStore,
    objective: Objective,
    after_id: int,
    *,
    as_json: bool,
    is_logged: bool = False,
    is_shared: bool = False,
) -> Iterator[views.View]:
    """Yield the view of the objective: JSON lines if requested, otherwise plain lines, and on a
    terminal that is not shared with a person who plays the model also the state below them."""
    followed: dict[str, Any] = {
        "store": store,
        "objective_id": objective.id,
        "after_id": after_id,
        "is_logged": is_logged,
    }
    if as_json:
        yield views.JsonView(**followed)
        return
    _say_opening(objective)
    if is_live_terminal() and not is_shared:
        with views.LiveView(**followed) as view:
            yield view
    else:
        yield views.PlainView(**followed)


def _say_opening(objective: Objective) -> None:
    if json_shapes.is_rehearsal(objective):
        warn(render.REHEARSAL_LINE, Style.YELLOW)
    warn(f"Objective {objective.id}: {fit(objective.spec.text, 400)}", Style.BOLD)
    if not json_shapes.is_rehearsal(objective):
        warn(f"Limits: {' · '.join(render.render_limits(objective, {})) or 'none'}")


def tell_notices(notices: Iterable[str]) -> None:
    for notice in notices:
        tell(notice)


def tell(notice: str) -> None:
    warn(f"note: {notice}", Style.YELLOW)


# -- joining an objective that another process started or will start
# --------------------------------------------------------------------------------------------------


CHANGE_WAIT_S = 5.0
MAX_NAMED = 5  # of the newest objectives, where a person is told which ones there are


def join_objective(loaded: Loaded, *, output: Output, selector: str = "") -> int:
    """Work on an objective that another process started, and return the exit code of its stop
    reason. Without a `selector`, the settings describe the objective, which is waited for."""
    opening, find = _open(loaded, creates=not selector), partial(_join, selector=selector)
    return asyncio.run(work_on(opening, find, output=output, is_joined=True))


async def _join(app: App, *, selector: str) -> Found:
    settings = app.settings
    objective = await (
        session.pick_objective(app.store, selector)
        if selector
        else wait_for(app.store, settings.objective, settings.instance_name)
    )
    session.touch(objective)
    return objective, None


async def wait_for(store: TaskStore, text: str, name: str) -> Objective:
    """Wait until there is an objective with this text ('' means any), and return the newest
    unfinished one, else the newest. Those with the instance name are preferred; without a text only
    they are meant."""
    is_told = False
    while True:
        known = await store.objectives()
        alike = [one for one in known if text in ("", one.spec.text)]
        named = [one for one in alike if one.spec.instance_name == name]
        if meant := named or (alike if text else []):
            found = next((one for one in reversed(meant) if not session.is_over(one)), meant[-1])
            if not named:
                tell(f"none of this text is named {name}; this worker joins {_name(found)}")
            return found
        if not is_told:
            what, there = fit(text, 60) or name, "; ".join(map(_name, known[-MAX_NAMED:])) or "none"
            tell(f"this worker waits for the objective {what}; the newest ones are: {there}")
        is_told = True
        await store.wait_for_change(timeout_s=CHANGE_WAIT_S)


def _name(one: Objective) -> str:
    ended = " (ended)" if session.is_over(one) else ""
    return f"objective {one.id}, named {one.spec.instance_name}: {fit(one.spec.text, 40)}{ended}"


# -- submit
# --------------------------------------------------------------------------------------------------


NOT_OF_SUBMIT = (
    "serve_host serve_port join_existing_objective use_my_model concurrency log_format no_color"
).split()


@click.command()
@click.argument("objective_words", metavar="[OBJECTIVE]...", nargs=-1)
@setting_options(but=NOT_OF_SUBMIT, hidden=SET_ONCE)
@new_option
@json_option
def submit(objective_words: tuple[str, ...], always_new: bool, as_json: bool, **flags: Any) -> None:
    """Queue an objective for workers.

    Its number is printed. To work on it, type `babyagi worker`, in this home or wherever the task
    store can be reached.
    """
    given = given_flags(flags)
    if objective_words:
        given["objective"] = require_words(objective_words)
    loaded = session.load(given)
    loaded.settings.require_objective()
    asyncio.run(_submit(loaded, always_new=always_new, as_json=as_json))


async def _submit(loaded: Loaded, *, always_new: bool, as_json: bool) -> None:
    async with open_app(loaded.settings, tell=tell) as app:
        objective, is_new = await app.start_objective(always_new=always_new)
        tell_notices((*loaded.notices, *app.notices))
    how = (
        "is queued"
        if is_new
        else f"was there already{', and has ended' * session.is_over(objective)}"
    )
    here = f"--objective {objective.id}"
    ways = [
        "Work on it:  babyagi worker  (one or more, wherever this task store can be reached)",
        f"Watch it:    babyagi watch {here}",
    ]
    if session.is_over(objective):
        ways = [f"Its report:  babyagi report {here}  (--new starts it anew)"]
    head = Line(f"Objective {objective.id} {how}: {fit(objective.spec.text, 400)}", Style.BOLD)
    shape = json_shapes.submitted_shape(objective, is_new=is_new)
    give(as_json, shape, [head, *map(Line, ways)])
