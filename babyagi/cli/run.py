"""The commands that work on an objective or watch one: demo, run, resume, watch, submit, worker."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import os
import signal
import sys
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from babyagi import events
from babyagi.artifacts import find_artifacts
from babyagi.backends import open_store, utc_now
from babyagi.cli import render
from babyagi.cli.exits import ExitCode, Terminated, code_of_error, code_of_objective
from babyagi.cli.inbox import ask_leave, render_request
from babyagi.cli.options import LIMITS, parse_flags
from babyagi.cli.preflight import (
    require_credentials,
    require_folder,
    require_index,
    require_listener,
    require_living_models,
)
from babyagi.cli.render import render_counts
from babyagi.cli.report import MARKDOWN, Output, give_report
from babyagi.cli.session import (
    LATEST,
    NOTHING,
    find_secrets,
    is_over,
    load,
    pick_objective,
    pick_unfinished,
    touch,
)
from babyagi.cli.text import (
    Style,
    echo,
    fit,
    forget_typed,
    is_in_foreground,
    is_live_terminal,
    is_person_there,
    is_terminal,
    print_json,
    print_json_line,
    terminal_width,
    warn,
)
from babyagi.cli.views import (
    JsonView,
    PlainView,
    SilentView,
    close_worker_log,
    describe_event,
    open_worker_log,
)
from babyagi.errors import (
    BabyagiError,
    CredentialsError,
    ModelRejectedError,
    ModelUnavailableError,
    NotFoundError,
    SettingsError,
    StoreUnavailableError,
    first_error,
)
from babyagi.inbox import Decision, needs_leave
from babyagi.index.indexer import find_trouble
from babyagi.journal import TextPiece
from babyagi.json_shapes import (
    is_rehearsal,
    models_of,
    outcome_shape,
    result_shape,
    submitted_shape,
)
from babyagi.next_command import quoted
from babyagi.reporting import load_report, load_sources
from babyagi.settings.fields import Settings, declared_fields
from babyagi.settings.load import Loaded
from babyagi.tasks import Event, Objective, ObjectiveStatus, Step, StopReason
from babyagi.taskstore.port import TaskStore
from babyagi.verbs import Request, gather_request, serving, settle

if TYPE_CHECKING:
    from babyagi.app import App, AskHuman, Company, RunOutcome
    from babyagi.taskstore.port import TaskStore

END_LINE = b"."


def find_person() -> AskHuman | None:
    """Return a function that asks the person at the terminal, None when nobody is there."""
    return ask_person if is_person_there() else None


async def ask_person(prompt: str) -> str:
    """Show the prompt and return what is typed, up to a line with a single full stop or the end of
    input."""
    warn("──── the prompt " + "─" * 40, Style.DIM)
    warn(prompt)
    warn(
        "──── your answer; end it with a line that holds only a full stop, or with Ctrl-D "
        + "─" * 8,
        Style.DIM,
    )
    typed = await _read_lines(sys.stdin.fileno())
    return typed.decode("utf-8", "replace")


async def _read_lines(descriptor: int) -> bytes:
    """Read until END_LINE or the end of input, without a thread, so that a pause or a signal can
    end the waiting."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes] = loop.create_future()
    typed = bytearray()

    def read() -> None:
        chunk = os.read(descriptor, 65_536)
        typed.extend(chunk)
        lines = bytes(typed).split(b"\n")
        is_ended = END_LINE in lines[:-1]
        if (not chunk or is_ended) and not done.done():
            done.set_result(b"\n".join(lines[: lines.index(END_LINE)] if is_ended else lines))

    loop.add_reader(descriptor, read)
    try:
        return await done
    finally:
        loop.remove_reader(descriptor)


# -- following an objective through its events: every view is made from them
# --------------------------------------------------------------------------------------------------

logger = logging.getLogger("babyagi.events")

BATCH = 1000


class View(Protocol):
    """Something that shows an objective. `fetch` may wait; `draw` shows all that was fetched,
    without waiting."""

    tick_s: float  # longest time between two calls of `draw` when nothing happens
    pause_s: float  # shortest time between two calls of `draw`

    async def fetch(self, events: Sequence[Event]) -> None: ...

    def draw(self) -> None: ...


class Follower:
    """Passes an objective's events to a view, each once and in order, from `after_id` on.

    Attributes:
        reported: set when a report was written.
    """

    def __init__(
        self, store: TaskStore, objective_id: int, view: View, *, after_id: int = 0
    ) -> None:
        self._store = store
        self._objective_id = objective_id
        self._view = view
        self._after_id = after_id
        self.reported = asyncio.Event()

    async def follow(self) -> None:
        """Show events as they arrive, until cancelled. When the store is unavailable, try again."""
        while True:
            try:
                n_shown = await self.step()
                if n_shown < BATCH:
                    await asyncio.sleep(self._view.pause_s)
                    await self._store.wait_for_events(
                        self._objective_id, after_id=self._after_id, timeout_s=self._view.tick_s
                    )
            except StoreUnavailableError:
                await asyncio.sleep(1.0)

    async def step(self) -> int:
        """Show the events since the last step, and return how many there were."""
        found = await self._store.events(self._objective_id, after_id=self._after_id, limit=BATCH)
        await self._view.fetch(found)
        if found:
            self._after_id = found[-1].id
        if any(event.kind == events.REPORT_WRITTEN for event in found):
            self.reported.set()
        self._view.draw()
        return len(found)

    async def drain(self) -> None:
        """Show all remaining events."""
        while await self.step() == BATCH:
            pass


class LoggedView:
    """A view whose events also go to the log, one record each.

    Args:
        without: kinds that somebody else logs.
    """

    def __init__(self, view: View, *, without: Sequence[str] = ()) -> None:
        self._view = view
        self._without = without
        self.tick_s, self.pause_s = view.tick_s, view.pause_s
        self._fresh: Sequence[Event] = ()

    async def fetch(self, events: Sequence[Event]) -> None:
        await self._view.fetch(events)
        self._fresh = events

    def draw(self) -> None:
        for event in self._fresh:
            text = describe_event(event, "")
            if text and event.kind not in self._without:
                named = f"objective {event.objective_id}"
                logger.info(
                    "%s",
                    text if text.startswith(named) else f"{named}: {text}",
                    extra={
                        "event": event.kind,
                        "objective_id": event.objective_id,
                        "task_id": event.task_id,
                    },
                )
        self._fresh = ()
        self._view.draw()


# --------------------------------------------------------------------------------------------------
# Run an objective with a view of it: open, start, work and watch at once, print the outcome.
# --------------------------------------------------------------------------------------------------

WATCH_CHECK_S = 1.0
REST_UNTOLD_S = 1.0  # after a report, before a person is told what is still waited for


# options that are frozen with an objective, or select one
NOT_OF_CONTINUING = frozenset(
    {"initial_task", "instance_name", "join_existing_objective", "memory", "planning", "tools"}
)


def run_objective(
    flags: Mapping[str, Any], *, always_new: bool, output: Output, selector: str = ""
) -> int:
    """Run the objective that flags, environment and files describe, or join the one that `selector`
    names. Return the exit code."""
    loaded = load(flags)
    if loaded.settings.join_existing_objective:
        return join_objective(flags, selector=selector, output=output)
    if selector:
        raise SettingsError(
            f"--objective {selector} goes with --join",
            fix=f"babyagi run --join --objective {selector}",
            guide="machines",
        )
    require_objective(loaded.settings)
    require_folder(loaded.settings)
    require_credentials(loaded.settings)
    require_living_models(loaded.settings)
    require_index(loaded.settings)
    return asyncio.run(_start_and_work(loaded, always_new=always_new, output=output))


def continue_objective(
    question: str, *, selector: str, flags: Mapping[str, Any], output: Output
) -> int:
    """Ask a further question of an objective, work on it until it ends, and return the exit
    code.
    """
    new = sorted(NOT_OF_CONTINUING & flags.keys())
    if new:
        raise SettingsError(
            f"{declared_fields()[new[0]].flags[-1]} goes with a new objective, not with --continue",
            fix=f"babyagi run --continue {selector} {quoted(question)}",
            guide="objectives",
        )
    loaded = _load_to_work(flags)
    limits = parse_flags({name: flags[name] for name in LIMITS if name in flags})
    return asyncio.run(_continue(loaded, selector, question, limits=limits, output=output))


def run_demo(
    folder: Path | None,
    question: str,
    *,
    flags: Mapping[str, Any],
    always_new: bool,
    output: Output,
) -> int:
    """Run the demo's objective on the folder, print its report, and return the exit code."""
    from babyagi.cli.about import guide_folder

    documents = (folder or guide_folder()).resolve()
    settings = {
        **flags,
        "objective": f"Answer from the documents in the folder: {question}",
        "initial_task": f"List the documents, and find what they say about: {question}",
        # separates folders of the same name
        "instance_name": f"demo-{hashlib.sha256(os.fsencode(documents)).hexdigest()[:8]}",
        "files": str(documents),
        "llm_model": "rehearsal",
        "model_execution": "rehearsal",
        "model_creation": "rehearsal",
        "model_prioritization": "rehearsal",
        "model_report": "rehearsal",
        "embedding_model": "hash",
        "agent": "",
    }
    # the demo shows the same wherever it is run
    loaded = load(settings, reads_files=False)
    require_index(loaded.settings)
    return asyncio.run(_start_and_work(loaded, always_new=always_new, output=output, is_demo=True))


def resume_objective(selector: str, *, flags: Mapping[str, Any], output: Output) -> int:
    """Continue an unfinished objective, and return the exit code."""
    loaded = _load_to_work(flags)
    return asyncio.run(_resume(loaded, selector, output=output))


def watch_objective(selector: str, *, output: Output) -> int:
    """Watch an objective until it ends, and return the exit code of its stop reason."""
    return asyncio.run(_watch(load(needs=NOTHING).settings, selector, output=output))


def _load_to_work(flags: Mapping[str, Any]) -> Loaded:
    """Return the settings of a worker, whose results have a place."""
    loaded = load(flags)
    require_index(loaded.settings)
    return loaded


def require_objective(settings: Settings, command: str = "babyagi run") -> None:
    """Raises `SettingsError`, with what to type for this command, where no objective is named."""
    if not settings.objective.strip():
        raise SettingsError(
            "there is no objective to run",
            why=(
                "no words were given, and OBJECTIVE is not set in the environment or in a .env file"
            ),
            fix=f'{command} "an objective"',
            guide="start",
        )


@asynccontextmanager
async def _open(loaded: Loaded) -> AsyncIterator[App]:
    from babyagi.app import open_app

    async with open_app(loaded.settings, ask_human=find_person(), tell=tell) as app:
        yield app


async def _start_and_work(
    loaded: Loaded, *, always_new: bool, output: Output, is_demo: bool = False
) -> int:
    async with _open(loaded) as app:
        objective, is_new = await app.start_objective(always_new=always_new)
        if is_demo and is_over(objective):
            objective, is_new = await app.start_objective(always_new=True)
        if not is_over(objective):
            await _require_listener(app, objective)
        tell_notices((*loaded.notices, *app.notices))
        return await work_on(app, objective, output=output, after_id=0 if is_new else None)


async def _continue(
    loaded: Loaded, selector: str, question: str, *, limits: Mapping[str, Any], output: Output
) -> int:
    async with _open(loaded) as app:
        objective = await pick_objective(app.store, selector)
        require_credentials(loaded.settings, models_of(objective))
        require_listener(loaded.settings, models_of(objective))
        app.require_hands(objective)
        after_id = await app.store.last_event_id(objective.id)
        new = dataclasses.replace(objective.spec.limits, **limits) if limits else None
        objective = await app.ask_further(objective, question, limits=new)
        tell_notices(loaded.notices)
        return await work_on(app, objective, output=output, after_id=after_id)


async def _resume(loaded: Loaded, selector: str, *, output: Output) -> int:
    async with _open(loaded) as app:
        objective = await pick_unfinished(app.store, selector)
        if not is_over(objective):
            require_credentials(loaded.settings, models_of(objective))
            await _require_listener(app, objective)
        tell_notices(loaded.notices)
        return await work_on(app, objective, output=output)


async def _require_listener(app: App, objective: Objective) -> None:
    """Do the same as `require_listener`, and set the objective aside when its models cannot be
    asked."""
    try:
        require_listener(app.settings, models_of(objective))
    except ModelUnavailableError as error:
        await app.set_aside(objective.id, why=error.what)
        raise


async def _watch(settings: Settings, selector: str, *, output: Output) -> int:
    async with open_store(settings) as store:
        objective = touch(await pick_objective(store, selector))
        if not is_over(objective) and not await _is_anybody_working(store, objective.id):
            tell(
                f"nobody works on objective {objective.id} now; "
                f"`babyagi resume --objective {objective.id}` goes on"
            )
        if trouble := await find_trouble(store, objective.id):
            tell(f"results do not get into the result store: {trouble}")
        as_json = output.as_json
        after_id = 0 if as_json else await store.last_event_id(objective.id)
        left = asyncio.Event()
        with _told_by_sigterm():
            async with (
                _watching(store, objective, settings, as_json=as_json, stop=left.set) as view,
                following(Follower(store, objective.id, view, after_id=after_id)),
            ):
                await _until_first(_wait_for_end(store, objective.id), left.wait())
        if left.is_set():
            tell(f"the work on objective {objective.id} goes on as it was")
            return ExitCode.OK
        return await _end(store, await store.objective(objective.id), output)


async def work_on(
    app: App,
    objective: Objective,
    *,
    output: Output,
    after_id: int | None = None,
    is_joined: bool = False,
) -> int:
    """Work on the objective while a view follows, write its report, print the outcome, and return
    the exit code. For an objective that is over, only write the report.

    Args:
        after_id: the event after which the view begins; None: the last one until now.
        is_joined: somebody else started it.
    """
    as_json = output.as_json
    if is_over(objective) and not await _is_to_be_asked(app.store, objective, as_json=as_json):
        warn("This objective has ended already; no model is asked. To start it afresh: --new")
        return await _end(app.store, objective, output)
    if after_id is None:
        after_id = await app.store.last_event_id(objective.id)
    async with AsyncExitStack() as seat:
        view, company = await seat.enter_async_context(_seated(app, objective, as_json=as_json))
        follower = Follower(app.store, objective.id, LoggedView(view), after_id=after_id)
        await seat.enter_async_context(following(follower))
        work = asyncio.ensure_future(
            app.join(objective, company)
            if is_joined
            else app.run(objective, company, after_id=after_id)
        )
        async with _ended_with_this(work):
            await _wait_for_report(app.store, objective, follower, work)
            await seat.aclose()
            if work.done():
                async with _told_how_it_stands(app.store, objective.id, output):
                    outcome = await work
                number = outcome.stopped_by_signal
                return await _end(app.store, outcome.objective, output, stopped_by_signal=number)
            code = await _end(app.store, await app.store.objective(objective.id), output)
            await _wait_for_rest(app.store, objective.id, work)
            return code


@asynccontextmanager
async def _told_how_it_stands(
    store: TaskStore, objective_id: int, output: Output
) -> AsyncIterator[None]:
    """Where an error ends the work, say how the objective stands and how to go on, and raise it."""
    try:
        yield
    except (CredentialsError, ModelRejectedError, SettingsError) as error:
        objective = await store.objective(objective_id)
        if output.as_json:
            code = code_of_error(error)
            await _print_outcome(store, objective, code=code, has_report=False)
        await _say_closing(store, objective, is_told=False)
        raise


@asynccontextmanager
async def _ended_with_this(work: asyncio.Task[Any]) -> AsyncIterator[None]:
    """Cancel the work, unless it is done, and wait until it has ended."""
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait([work])


async def _wait_for_report(
    store: TaskStore, objective: Objective, follower: Follower, work: asyncio.Task[RunOutcome]
) -> None:
    """Wait until the objective is over with a report that it had not before, or the work on it is
    done."""
    while not work.done():
        reported = asyncio.ensure_future(follower.reported.wait())
        await asyncio.wait({reported, work}, return_when=asyncio.FIRST_COMPLETED)
        reported.cancel()
        if not work.done():
            follower.reported.clear()
            now = await store.objective(objective.id)
            if is_over(now) and (not is_over(objective) or now.report_no > objective.report_no):
                return


async def _wait_for_rest(
    store: TaskStore, objective_id: int, work: asyncio.Task[RunOutcome]
) -> None:
    """Wait for what follows a report: the last results get into the result store, and the agent's
    memory reads the last tasks."""
    before = await find_trouble(store, objective_id)
    await asyncio.wait({work}, timeout=REST_UNTOLD_S)
    if not work.done():
        tell("the result store and the agent's memory take up the rest; Ctrl-C leaves it for later")
    await work
    trouble = await find_trouble(store, objective_id)
    if trouble and not before:
        tell(
            f"results do not get into the result store: {trouble}; none is lost; "
            f"`babyagi index rebuild --objective {objective_id}` fills it when it can be used"
        )
    elif before and not trouble:
        tell("all results are in the result store now")


async def _end(
    store: TaskStore,
    objective: Objective,
    output: Output,
    *,
    stopped_by_signal: int | None = None,
) -> int:
    """Write the report if there is one, print the outcome, and return the exit code. For a run that
    was paused or stopped, only print how it stands."""
    code = code_of_objective(objective, stopped_by_signal=stopped_by_signal)
    has_report = objective.status is ObjectiveStatus.ENDED and (
        objective.has_report or not stopped_by_signal
    )
    on_screen = replace(output, path=None, format=MARKDOWN) if output.path else output
    if output.as_json:
        await _print_outcome(store, objective, code=code, has_report=has_report)
    elif has_report:
        if sys.stdout.isatty():
            echo()
        await give_report(store, objective, on_screen, now=utc_now())
        warn()
    is_told = has_report and not output.as_json and sys.stdout.isatty()
    await _say_closing(store, objective, is_told=is_told)
    if has_report and output.path is not None:
        await give_report(store, objective, output, now=utc_now())
        warn(f"The report is in {output.path}")
    return code


async def _print_outcome(
    store: TaskStore, objective: Objective, *, code: int, has_report: bool
) -> None:
    """Print the last line of JSON: the outcome."""
    results = await store.results(objective.id)
    made = await find_artifacts(store, results)
    shape = outcome_shape(
        objective,
        await store.counts(objective.id),
        results=[result_shape(result, made) for result in results],
        report=await load_report(store, objective) if has_report else None,
        sources=await load_sources(store, objective),
        exit_code=code,
    )
    print_json_line(shape)


async def _is_to_be_asked(store: TaskStore, objective: Objective, *, as_json: bool) -> bool:
    """Return whether an objective that ended as waiting has an open question, and a person here can
    be asked."""
    is_asking = not as_json and is_person_there() and is_in_foreground()
    is_waiting = objective.stop_reason is StopReason.WAITING
    return is_asking and is_waiting and bool(await store.inbox(objective.id))


@asynccontextmanager
async def following(follower: Follower) -> AsyncIterator[None]:
    """Feed the view meanwhile, then show the last events."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(follower.follow())
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors
    await follower.drain()


@contextmanager
def _told_by_sigterm() -> Iterator[None]:
    """Let SIGTERM cancel the task that runs the body, as Ctrl-C does, and raise `Terminated`. An
    exception that a signal handler raises itself could be lost in another library's callback."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    sent: list[bool] = []

    def stop() -> None:
        sent.append(True)
        if task is not None:
            task.cancel()

    before = signal.getsignal(signal.SIGTERM)
    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        yield
    except asyncio.CancelledError:
        if sent:
            raise Terminated from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)


async def _until_first(*works: Coroutine[Any, Any, Any]) -> None:
    """Return or raise as soon as one of them does; cancel the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    for task in done:
        task.result()


async def _wait_for_end(store: TaskStore, objective_id: int) -> None:
    """Wait until the objective has ended and its report is written, or no worker is left to write
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


@asynccontextmanager
async def _seated(
    app: App, objective: Objective, *, as_json: bool
) -> AsyncIterator[tuple[View, Company]]:
    """Return the view of the work on the objective, and the person who can be asked: JSON if it was
    asked for; the live view on a terminal that no model shares; otherwise plain lines."""
    from babyagi.app import ALONE, Company

    is_shared = "human" in models_of(objective)
    if is_live_terminal() and not as_json and not is_shared:
        from babyagi.cli.live import Desk, LiveView, open_live
        from babyagi.cli.picture import Board

        desk = Desk(app.store, app.settings, stop=interrupt)
        async with open_live(Board(), desk) as live:
            view = LiveView(app.store, objective.id, live)
            yield (
                view,
                Company(is_person_there=view.is_person_there, can_resume=True, on_piece=view.hear),
            )
        return
    if as_json:
        yield JsonView(), ALONE
        return
    _say_opening(objective)
    if is_shared or not (is_person_there() and is_in_foreground()):
        yield PlainView(app.store), ALONE
        return

    asker = Asker(app.store, objective.id, app.settings)
    asking = asyncio.ensure_future(asker.ask())
    try:
        yield PlainView(app.store), Company(is_person_there=asker.is_person_there)
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


@asynccontextmanager
async def _watching(
    store: TaskStore,
    objective: Objective,
    settings: Settings,
    *,
    as_json: bool,
    stop: Callable[[], None],
) -> AsyncIterator[View]:
    """Return the view of an objective that others work on."""
    if as_json:
        yield JsonView()
    elif is_live_terminal():
        from babyagi.cli.live import Desk, LiveView, open_live
        from babyagi.cli.picture import Board

        async with open_live(Board(leaves="leave"), Desk(store, settings, stop=stop)) as live:
            yield LiveView(store, objective.id, live)
    else:
        _say_opening(objective)
        yield PlainView(store)


def interrupt() -> None:
    """Do what Ctrl-C does when the terminal does not send it: the worker gets the signal and
    drains."""
    signal.raise_signal(signal.SIGINT)


def _say_opening(objective: Objective) -> None:
    if is_rehearsal(objective):
        warn(render.REHEARSAL_LINE, Style.YELLOW)
    warn(f"Objective {objective.id}: {fit(objective.spec.text, 400)}", Style.BOLD)
    warn(f"Limits: {render.render_limit_values(objective.spec.limits)}.")


def tell_notices(notices: Iterable[str]) -> None:
    for notice in notices:
        tell(notice)


def tell(notice: str) -> None:
    warn(f"note: {notice}", Style.YELLOW)


async def _say_closing(store: TaskStore, objective: Objective, *, is_told: bool) -> None:
    trouble = await find_trouble(store, objective.id)
    for line in render.render_closing(
        objective, await store.counts(objective.id), index_trouble=trouble, is_told=is_told
    ):
        warn(line.text, line.style)


CHANGE_WAIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The objective that a joiner means: a number, `latest` or an instance name; otherwise its text
    and instance name.

    If several fit, the newest unfinished one is meant, else the newest that has ended; `latest`
    never means one that has ended.
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


def join_objective(flags: Mapping[str, Any], *, output: Output, selector: str = "") -> int:
    """Work on an objective that somebody else started or will start, and return the exit code of
    its stop reason."""
    loaded = _load_to_work(flags)
    wanted = Wanted(
        selector=selector,
        text=loaded.settings.objective,
        instance_name=loaded.settings.instance_name,
    )
    return asyncio.run(_join(loaded, wanted, output=output))


async def _join(loaded: Loaded, wanted: Wanted, *, output: Output) -> int:
    async with _open(loaded) as app:
        tell_notices(loaded.notices)
        objective = await _wait_for(wanted, app.store)
        touch(objective)
        if not is_over(objective):
            require_listener(app.settings, models_of(objective))
        return await work_on(app, objective, output=output, is_joined=True)


async def _wait_for(wanted: Wanted, store: TaskStore) -> Objective:
    """Return the objective as soon as it exists."""
    found = await wanted.find(store)
    if found is None:
        tell(f"there is no objective {wanted} yet; this worker waits for it")
    while found is None:
        await store.wait_for_change(timeout_s=CHANGE_WAIT_S)
        found = await wanted.find(store)
    return found


# -- submit, and a worker for all objectives
# --------------------------------------------------------------------------------------------------


MAX_NAMED = 10  # objectives that a worker names when it starts


def submit_objective(flags: Mapping[str, Any], *, always_new: bool, as_json: bool) -> int:
    """Create or find the objective that the settings describe, print its number, and return the
    exit code."""
    loaded = load(flags)
    require_objective(loaded.settings, "babyagi submit")
    return asyncio.run(_submit(loaded, always_new=always_new, as_json=as_json))


async def _submit(loaded: Loaded, *, always_new: bool, as_json: bool) -> int:
    from babyagi.app import open_app

    async with open_app(loaded.settings, tell=tell) as app:
        objective, is_new = await app.start_objective(always_new=always_new)
        tell_notices((*loaded.notices, *app.notices))
    if as_json:
        print_json(submitted_shape(objective, is_new=is_new))
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
    """Work on all objectives of the task store until a signal ends it, and return the exit code of
    that signal."""
    loaded = _load_to_work(flags)
    return asyncio.run(_serve_all(loaded, as_json=as_json))


async def _serve_all(loaded: Loaded, *, as_json: bool) -> int:
    from babyagi.app import open_app

    # a model prompt that a person answers needs the terminal for itself
    is_live = (
        is_live_terminal() and not as_json and "human" not in loaded.settings.model_by_role.values()
    )
    ask_human = None if is_live else find_person()
    is_logged = is_unwatched(as_json=as_json)
    say = logger.info if is_logged else warn if as_json else echo
    notify = logger.warning if is_logged else tell
    async with (
        open_app(loaded.settings, ask_human=ask_human, tell=notify) as app,
        writing_log(app, is_wanted=is_logged),
    ):
        for notice in loaded.notices:
            notify(notice)
        await say_beginning(app, say)
        if is_live:
            signal_number = await _serve_live(app)
        else:
            around = partial(show_lines, app.store, say=say, as_json=as_json, is_logged=is_logged)
            signal_number = await app.serve_all(around)
        say("This worker has signed off; what it held is free for others.")
    return 0 if signal_number is None else 128 + signal_number


def is_unwatched(*, as_json: bool) -> bool:
    """Whether nobody watches, so that a log is written."""
    return not (as_json or is_terminal() or sys.stderr.isatty())


@asynccontextmanager
async def writing_log(app: App, *, is_wanted: bool) -> AsyncIterator[None]:
    """Write the worker's log to standard error when nobody watches."""
    if not is_wanted:
        yield
        return
    handler = open_worker_log(
        as_json=app.settings.log_format == "json",
        worker=app.name,
        secrets=find_secrets(app.settings),
    )
    try:
        yield
    finally:
        close_worker_log(handler)


async def say_beginning(app: App, say: Callable[[str], None]) -> None:
    """Print who works here, and what there is to do."""
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
    """Serve all objectives, with one picture of all of them."""
    from babyagi.app import Company
    from babyagi.cli.live import Desk, LiveView, open_live
    from babyagi.cli.picture import Board

    board = Board(title=f"Worker {app.name}, {app.settings.concurrency} tasks at once")
    async with open_live(board, Desk(app.store, app.settings, stop=interrupt)) as live:
        views: dict[int, LiveView] = {}

        async def show(objective_id: int, work: Coroutine[Any, Any, Objective]) -> Objective:
            view = views[objective_id] = LiveView(app.store, objective_id, live)
            try:
                return await _follow(app.store, objective_id, view, work)
            finally:
                views.pop(objective_id).close()

        def hear(piece: TextPiece) -> None:
            if view := views.get(piece.objective_id):
                view.hear(piece)

        company = Company(is_person_there=lambda: live.is_running, on_piece=hear)
        return await app.serve_all(show, company)


async def show_lines(
    store: TaskStore,
    objective_id: int,
    work: Coroutine[Any, Any, Objective],
    *,
    say: Callable[[str], None],
    as_json: bool,
    is_logged: bool = False,
) -> Objective:
    """Await the work on one of several objectives, and print what happens as lines, or only write
    records of the log."""
    name = f"objective {objective_id}: "
    say(f"{name}joined")
    # the worker itself prints what blocks it
    lines = PlainView(store, prefix=name, without=(events.WORKER_BLOCKED,))
    view: View = JsonView() if as_json else SilentView() if is_logged else lines
    # as above: it is said as a warning, which is a record by itself
    without = (events.WORKER_BLOCKED,) if is_logged else ()
    objective = await _follow(store, objective_id, view, work, without=without)
    why = (
        f"it has ended ({objective.stop_reason})"
        if objective.stop_reason is not None
        else f"it is {objective.status}"
    )
    say(f"{name}left, {why}")
    return objective


async def _follow(
    store: TaskStore,
    objective_id: int,
    view: View,
    work: Coroutine[Any, Any, Objective],
    *,
    without: Sequence[str] = (),
) -> Objective:
    try:
        after_id = await store.last_event_id(objective_id)
    except BaseException:
        work.close()
        raise
    logged = LoggedView(view, without=without)
    follower = Follower(store, objective_id, logged, after_id=after_id)
    async with following(follower):
        return await work


# -- asking the tasks' questions at a plain terminal
# --------------------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)

LOOK_S = 1.0
BACKGROUND_PAUSE_S = 1.0
MAX_LINE_BYTES = 100_000
_NO_MORE = "Nothing is asked here any more; babyagi inbox shows what waits."


async def read_line(
    descriptor: int, typed: bytearray, *, may_read: Callable[[], bool] = is_in_foreground
) -> str:
    """Return what is typed up to the end of a line, without a thread, so that the waiting can be
    ended. Nothing is read while another program has the terminal.

    Args:
        typed: input that was read before and is not a whole line yet; input beyond the line is left
            in it.

    Raises:
        EOFError: the input has ended.
    """
    loop = asyncio.get_running_loop()
    while b"\n" not in typed:
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _wake, readable)
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
        if not may_read():
            await asyncio.sleep(BACKGROUND_PAUSE_S)
            continue
        chunk = os.read(descriptor, 4096)
        if not chunk:
            raise EOFError
        typed += chunk[: max(0, MAX_LINE_BYTES - len(typed))] or b"\n"
    line, _, rest = bytes(typed).partition(b"\n")
    typed[:] = rest
    return line.decode("utf-8", "replace")


def _wake(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


class Asker:
    """Asks one question after the other, until the person ends the input."""

    def __init__(
        self,
        store: TaskStore,
        objective_id: int,
        settings: Settings,
        *,
        descriptor: int | None = None,
        may_read: Callable[[], bool] = is_in_foreground,
    ) -> None:
        self._store = store
        self._objective_id = objective_id
        self._settings = settings
        self._descriptor = sys.stdin.fileno() if descriptor is None else descriptor
        self._may_read = may_read
        self._typed = bytearray()
        self._is_there = True
        self._has_ended = False

    def is_person_there(self) -> bool:
        """Return whether a person can be asked here; False when the objective has ended without an
        open question."""
        return self._is_there and not self._has_ended

    async def ask(self) -> None:
        """Ask until cancelled, or until the person ends the input."""
        try:
            while True:
                await self._ask_next()
        except EOFError:
            warn(_NO_MORE, Style.YELLOW)
        except Exception:  # our bug: the work goes on, and the question waits in the inbox
            _log.exception("asking at the terminal raised what nobody expected")
            warn(_NO_MORE, Style.YELLOW)
        finally:
            self._is_there = False

    async def _ask_next(self) -> None:
        steps = await self._look()
        if not steps:
            last_id = await self._store.last_event_id(self._objective_id)
            await self._store.wait_for_events(
                self._objective_id, after_id=last_id, timeout_s=LOOK_S
            )
            return
        request = await gather_request(self._store, steps[0], self._settings, among=steps)
        for line in render_request(request, terminal_width(), is_whole=True)[:-1]:
            warn(line.text, line.style)
        if needs_leave(request.step):
            self._forget_typed()
        await self._until_decided(request)

    def _forget_typed(self) -> None:
        """Drop input that was typed before a call was shown: it approves nothing."""
        self._typed.clear()
        forget_typed(self._descriptor)

    async def _look(self) -> list[Step]:
        steps = await self._store.inbox(self._objective_id)
        objective = await self._store.objective(self._objective_id)
        self._has_ended = objective.status is ObjectiveStatus.ENDED and not steps
        return steps

    async def _until_decided(self, request: Request) -> None:
        """Read lines until one of them decides, or the request no longer waits."""
        gone = asyncio.ensure_future(self._until_gone(request.step))
        try:
            while True:
                warn(_prompt(request), Style.BOLD)
                typed = asyncio.ensure_future(
                    read_line(self._descriptor, self._typed, may_read=self._may_read)
                )
                try:
                    await asyncio.wait({typed, gone}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    typed.cancel() if not typed.done() else None
                if not typed.done():
                    warn("That was answered elsewhere.")
                    return
                if await self._decide(request, typed.result().strip()):
                    return
        finally:
            gone.cancel()

    async def _until_gone(self, step: Step) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._store.open_step(step.id)
            except NotFoundError:
                return
            except BabyagiError as error:
                _log.info("what is asked cannot be looked at now: %s", error.what)

    async def _decide(self, request: Request, typed: str) -> bool:
        decision = _read(request, typed)
        if decision is None:
            return False
        text = typed if decision is Decision.ANSWER else ""
        try:
            await settle(self._store, request.step, decision, text, seen=request)
        except NotFoundError:
            warn("That was answered elsewhere.")
        else:
            warn(f"Task {request.task.id} goes on with that.")
        return True


def _prompt(request: Request) -> str:
    if needs_leave(request.step):
        return f"Task {request.task.id}: {ask_leave(request.step)} y or n (Ctrl-D: not now)"
    return f"Your answer to task {request.task.id}, on one line (Ctrl-D: not now):"


def _read(request: Request, typed: str) -> Decision | None:
    """Return the decision that a line means, None when it decides nothing."""
    if not needs_leave(request.step):
        return Decision.ANSWER if typed else None
    match typed.lower():
        case "y" | "yes":
            return Decision.APPROVE
        case "n" | "no":
            return Decision.REJECT
    return None
