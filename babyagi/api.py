"""Objectives from Python programs: run an objective until it ends, or read its events while it
runs."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
from collections import deque
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Unpack, overload

from babyagi import events
from babyagi.agents.report import NO_OUTPUT, OUTPUT, read_answer
from babyagi.app.application import App, Company, open_app
from babyagi.app.backends import require_result_store, utc_now
from babyagi.app.model_clients import missing_key
from babyagi.app.options import (
    Ask,
    RunOptions,
    SettingOptions,
    names_of,
    rename,
    require_known,
)
from babyagi.app.toolbox import Given
from babyagi.errors import MalformedReplyError, NotFoundError
from babyagi.inbox import describe, needs_leave, read_request, record, take_words
from babyagi.journal import OnPiece, TextPiece
from babyagi.llm.client import is_client
from babyagi.llm.embeddings import fetch_files
from babyagi.llm.port import ChatModel
from babyagi.react.executor import require_names
from babyagi.react.steps import T
from babyagi.react.values import OutputType, output_type_of
from babyagi.reporting.sources import Source, find_artifacts, trace_sources
from babyagi.runtime.offload import Told, call_either, run_blocking
from babyagi.settings.fields import ONNX_EMBEDDING_MODEL, Settings, declared_fields
from babyagi.settings.load import load_here
from babyagi.tasks import Artifact, Duty, Event, Objective, Result, Step, StopReason, Usage
from babyagi.taskstore.lifecycle import duty_owner
from babyagi.taskstore.sql.store import TaskStore
from babyagi.tools.base import Observation
from babyagi.tools.catalog import TOOL_NAMES
from babyagi.tools.declare import collect_tools

logger = logging.getLogger(__name__)

MAX_HEARD_CHARS = 200_000  # of the text pieces that wait for a program to fetch them
LOOK_S = 1.0  # pause between two looks at the store when nothing announces news
_CALL_KEY = re.compile(r"\d+/execute/\d+/tool/\d+")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ObjectiveOutcome(Generic[T]):
    """What a run of an objective returns.

    Attributes:
        objective: the objective as the run left it, with stop reason and cost.
        report: the report as Markdown; empty if there is none.
        results: the results of all tasks that have one, in order.
        sources: the pages, files, tools and searches that results were made from.
        artifacts: tables, plots and texts that were written by Python code which the tasks ran.
        output: the report, or with `output_type` its content as a value of that type. None if
            there is no such value; `why_no_output` then says why.
    """

    objective: Objective
    report: str
    results: tuple[Result, ...]
    output: T | None = None
    why_no_output: str = ""
    sources: tuple[Source, ...] = ()
    artifacts: tuple[Artifact, ...] = ()

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the objective ended; None until it has ended."""
        return self.objective.stop_reason

    @property
    def usage(self) -> Usage:
        """The calls, tokens and money that the objective cost. Calls without a known price count
        as free."""
        return self.objective.usage

    @property
    def cost_usd(self) -> float | None:
        """The money that the objective cost; None if the price of one of its models is unknown."""
        return self.usage.cost_usd if self.objective.spec.has_price else None

    def __repr__(self) -> str:
        one = self.objective
        return (
            f"<ObjectiveOutcome: objective {one.id}, {one.stop_reason or one.status}, "
            f"{len(self.results)} results, {one.usage.calls} calls, {one.spent}>"
        )

    def __str__(self) -> str:
        return self.report or repr(self)


# -- the events of a stream, in the order in which they happened
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OfTask:
    """What an event about a task has besides its own fields: when it happened, and the task."""

    at: datetime
    task_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted(OfTask):
    """A worker started a try of a task. A task that lacked something or failed is tried again."""

    name: str
    try_no: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(OfTask):
    """A tool was called. `arguments` is the JSON with which it was called, `text` what it returned
    or its error."""

    tool: str
    arguments: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFound(OfTask):
    """A task has its result; `lack` is the part of the task that the result does not answer."""

    name: str
    text: str
    lack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed(OfTask):
    """A try of a task failed; `is_given_up` means that the task is not tried again."""

    name: str
    error: str
    is_given_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked(OfTask):
    """A task waits for a person. `question_id` is the number in the inbox, for `Stream.answer`;
    `is_approval`: the question is whether a call may be made."""

    question_id: int
    text: str
    is_approval: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWritten:
    """A piece of text that a model is writing now, as it arrives; only for display. It is stored
    nowhere; the other events report what the whole answer led to. `task_id` is None for text about
    the whole objective. The pieces of one answer have the same `owner` and `key`, which identify
    the model call."""

    at: datetime
    task_id: int | None
    owner: str
    key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWritten:
    at: datetime
    report: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveEnded(Generic[T]):
    """The last event of a stream: this process does no more work on the objective."""

    outcome: ObjectiveOutcome[T]


Happening = (
    TaskStarted
    | ToolCalled
    | ResultFound
    | TaskFailed
    | QuestionAsked
    | TextWritten
    | ReportWritten
)


# -- running
# --------------------------------------------------------------------------------------------------


@overload
async def run_async(
    objective: str, *, output_type: type[T] | None = None, **options: Unpack[RunOptions]
) -> ObjectiveOutcome[T]: ...


@overload
async def run_async(
    objective: str, *, output_type: object, **options: Unpack[RunOptions]
) -> ObjectiveOutcome[Any]: ...


async def run_async(
    objective: str, *, output_type: object = None, **options: Any
) -> ObjectiveOutcome[Any]:
    """Run an objective until it ends, and return its outcome, as `run` does, but from code that is
    async. Arguments and errors are those of `run`."""
    work = _read_options(objective, output_type, options)
    settings = await _load(work)
    async with open_app(settings, given=work.given) as app:
        started, _ = await app.start_objective(always_new=work.is_new)
        if not started.has_report:
            started = await _run(app, started, work.ask)
        return await _conclude(app.store, started, work.given.output)


@overload
def run(
    objective: str, *, output_type: type[T] | None = None, **options: Unpack[RunOptions]
) -> ObjectiveOutcome[T]: ...


@overload
def run(
    objective: str, *, output_type: object, **options: Unpack[RunOptions]
) -> ObjectiveOutcome[Any]: ...


def run(objective: str, *, output_type: object = None, **options: Any) -> ObjectiveOutcome[Any]:
    """Run an objective until it ends, and return its outcome.

        outcome = babyagi.run("What do two teas cost?", tools=[price], max_cost=0.10)
        print(outcome.report)

    If an earlier run had the same objective, first task and name (the setting
    `instance_name`), this one continues it.
    The outcome of an objective that has ended is returned again, unless `new=True`. It works in a
    notebook too; from code that is async, call `run_async`.

    Args:
        objective: the objective's text.
        output_type: the type that the report is read into: a dataclass, a TypedDict, a model of
            pydantic, list[…] of them, a Literal, int, …. This needs one more model call.
        options: `first_task`; `tools`: your functions, and names of tools that ship; `files`: a
            folder that may be read; `model`: a name or a `ChatModel`; `max_tasks`, `max_cost` (US
            dollars), `max_time` (seconds, or as `"30m"`), `max_tokens`; `ask`: a function that
            takes a question and returns a person's answer; `enrich`: a function that is called
            before a result is recorded, with the task's name and the result, and returns the result
            to record; `new=True` to start a new objective even if the same one exists; and any
            setting by its name (`babyagi config --json` lists them). Other options come from the
            environment, a `.env` file (only harmless ones if the file is not trusted) or the
            default, as on the command line.

    Raises:
        TypeError: an option is unknown.
        ValueError: a function cannot be a tool, or the type cannot be described to a model.
        BabyagiError: its text says what to do.
    """
    return run_blocking(run_async(objective, output_type=output_type, **options))


@overload
def stream(
    objective: str, *, output_type: type[T] | None = None, **options: Unpack[RunOptions]
) -> Stream[T]: ...


@overload
def stream(
    objective: str, *, output_type: object, **options: Unpack[RunOptions]
) -> Stream[Any]: ...


def stream(objective: str, *, output_type: object = None, **options: Any) -> Stream[Any]:
    """Run an objective, and yield its events as they happen; the last event is `ObjectiveEnded`.

        for event in babyagi.stream("What do two teas cost?", tools=[price]):
            if isinstance(event, babyagi.ResultFound):
                print(event.text)

    Both `for` and `async for` can be used. Leaving the loop early stops the run: calls in flight
    are given time to end, and a later run of the same objective continues from there. Arguments and
    errors are those of `run`.
    """
    return Stream(_read_options(objective, output_type, options))


# -- reading options
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The arguments of one `run` or `stream`: settings by name in `flags`, and in the other fields
    what no setting can express, such as functions."""

    flags: Mapping[str, Any]
    given: Given
    ask: Ask | None = None
    is_new: bool = False


def _read_options(objective: str, output_type: object, options: Mapping[str, Any]) -> Work:
    known = names_of(RunOptions) | names_of(SettingOptions) | declared_fields().keys()
    require_known(options, known, "run")
    if not isinstance(objective, str | None):
        kind, example = type(objective).__name__, 'babyagi.run("What do two teas cost?")'
        raise TypeError(f"an objective is text, not {kind}: {example}")
    flags = {"objective": objective, **rename(options, "run")}
    named, functions = _split_tools(flags.pop("tools", ()))
    if named:
        flags["tools"] = ",".join(named)
    models = {}
    if not isinstance(flags.get("llm_model", ""), str):
        model = flags["llm_model"]
        if is_client(model):
            raise TypeError(
                "run takes a name or a ChatModel as its model; a client can be used with an agent: "
                "babyagi.Agent(client, llm_model=…)"
            )
        if not isinstance(model, ChatModel):
            raise TypeError(
                f"run takes a name or a ChatModel as its model, not {type(model).__name__}"
            )
        models, flags["llm_model"] = {model.name: model}, model.name
    ask = flags["ask"] if callable(flags.get("ask")) else None
    if ask is not None:
        flags["ask"] = True
    is_new = bool(flags.pop("new", False))
    output = None if output_type in (None, str) else output_type_of(output_type)
    enrich = flags.pop("enrich", None)
    if enrich is not None and not callable(enrich):
        raise TypeError("enrich must be a function that takes a task's name and its result")
    given = Given(tools=functions, model_by_name=models, output=output, enrich=enrich)
    return Work(flags=flags, given=given, ask=ask, is_new=is_new)


def _split_tools(given: Any) -> tuple[list[str], tuple[Any, ...]]:
    """Return the names of built-in tools, and the program's functions as tools."""
    if isinstance(given, str):
        return given.split(","), ()
    named = [one for one in given if isinstance(one, str)] if isinstance(given, Sequence) else []
    own = [one for one in given if not isinstance(one, str)] if named else given
    tools = require_names(collect_tools(own))
    if taken := [tool.name for tool in tools if tool.name in TOOL_NAMES]:
        raise ValueError(f"{taken[0]!r} is a built-in tool; rename yours")
    return named, tools


# -- the work
# --------------------------------------------------------------------------------------------------


async def _load(work: Work) -> Settings:
    settings = load_here(work.flags)
    asked = set(settings.model_by_role.values()) - set(work.given.model_by_name)
    if missing := missing_key(settings, asked):
        raise missing
    require_result_store(settings)
    if settings.effective_embedding_model == ONNX_EMBEDDING_MODEL:
        await asyncio.to_thread(fetch_files)
    return settings


async def _run(
    app: App, objective: Objective, ask: Ask | None, on_piece: OnPiece | None = None
) -> Objective:
    """Run the objective, and continue after each answer of a person until no question is open.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the calls in flight have ended, and the run can be
            continued.
    """
    company = Company(is_person_there=lambda: ask is not None, on_piece=on_piece)
    try:
        async with asyncio.TaskGroup() as group:
            answering = group.create_task(_answer(app, objective.id, ask)) if ask else None
            outcome = await app.run(objective, company)
            if answering is not None:
                answering.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    if outcome.stopped_by_signal == signal.SIGINT:
        raise KeyboardInterrupt
    return outcome.objective


async def _answer(app: App, objective_id: int, ask: Ask) -> None:
    """Put each open question of the objective to a person with `ask`, one after the other, until
    this coroutine is cancelled."""
    store = app.store
    while True:
        last = await store.last_event_id(objective_id)
        for step in await store.inbox(objective_id):
            said = await call_either(ask, describe(step))
            with suppress(NotFoundError):  # it was also asked elsewhere, and answered there first
                await _record_answer(app, step, said)
        await store.wait_for_events(objective_id, after_id=last, timeout_s=LOOK_S)


async def _record_answer(app: App, step: Step, said: object) -> None:
    await record(app.store, step, take_words(step, said), home=app.settings.home)


async def _conclude(
    store: TaskStore, objective: Objective, output: OutputType | None
) -> ObjectiveOutcome[Any]:
    report = await store.report(objective.id) or ""
    value, why = (report, "") if output is None else await _read_output(store, objective, output)
    results = await store.results(objective.id)
    sources = await trace_sources(store, results)
    return ObjectiveOutcome(
        objective=objective,
        report=report,
        results=tuple(results),
        output=value,
        why_no_output=why,
        sources=tuple(sources.named),
        artifacts=tuple(made.artifact for made in await find_artifacts(store, results)),
    )


async def _read_output(
    store: TaskStore, objective: Objective, output: OutputType
) -> tuple[Any, str]:
    """Return the content of the report as a value of the type, and ''; or None, and the reason why
    there is no such value."""
    if objective.spec.output_schema != output.schema:
        kind = "another" if objective.spec.output_schema else "no"
        return None, (
            f"objective {objective.id} was started with {kind} output type, and that cannot be "
            "changed; new=True starts a new objective"
        )
    if not objective.has_report:
        return None, f"objective {objective.id} has no report yet"
    owner = duty_owner(Duty.REPORT, {"report_no": objective.report_no})
    steps = await store.steps(objective.id, owner=owner)
    step_by_key = {step.key: step for step in steps}
    if OUTPUT in step_by_key:
        try:
            return output.read(_word(step_by_key[OUTPUT])), ""
        except MalformedReplyError as error:
            return None, error.what
    said = step_by_key.get(NO_OUTPUT)
    why = "the report was not written by the model" if said is None else _word(said)
    has = "report has the answer" if read_answer(steps) else "results has the tasks' results"
    return None, f"{why}; outcome.{has} as text, and new=True starts a new objective"


def _word(step: Step) -> str:
    return str(json.loads(step.output or '""'))


# -- streaming
# --------------------------------------------------------------------------------------------------


class Stream(Told["Happening | ObjectiveEnded[T]"], Generic[T]):
    """An objective that runs while its events are read, with `for` or `async for`.

    `outcome` is None before the objective has ended.
    """

    def __init__(self, work: Work) -> None:
        super().__init__(self._tell_all)
        self._work = work
        self._app: App | None = None
        self.outcome: ObjectiveOutcome[T] | None = None

    async def answer(self, question: QuestionAsked, text: str) -> None:
        """Answer a question during the run. If the question is whether a call may be made, `yes`
        allows it and any other text refuses it."""
        if self._app is None:
            raise RuntimeError(
                "this run has ended; babyagi inbox answer can still answer open questions"
            )
        (step,) = await self._app.store.inbox(step_id=question.question_id)
        await _record_answer(self._app, step, text)

    async def _tell_all(self) -> AsyncGenerator[Happening | ObjectiveEnded[T], None]:
        work = self._work
        settings = await _load(work)
        async with open_app(settings, given=work.given) as app:
            self._app = app
            objective, _ = await app.start_objective(always_new=work.is_new)
            teller = _Teller(app.store, objective.id)
            if not objective.has_report:
                await teller.begin()
                running = asyncio.create_task(_run(app, objective, work.ask, teller.hear))
                try:
                    while not running.done() or await teller.has_more():
                        for event in await teller.fetch(running):
                            yield event
                    objective = await running
                finally:
                    self._app = None
                    await _stop(app, running)
            self.outcome = await _conclude(app.store, objective, work.given.output)
            yield ObjectiveEnded(outcome=self.outcome)


async def _stop(app: App, running: asyncio.Task[Objective]) -> None:
    """Let the run end cleanly: no further call is made, and calls in flight get `drain_s` seconds
    to end."""
    while not running.done():
        app.stop()
        await asyncio.wait([running], timeout=LOOK_S)
    if not running.cancelled() and (error := running.exception()) is not None:
        logger.debug("the run ended with %r", error)


class _Teller:
    """Turns the store's events and the pieces of text into the events that a program receives."""

    def __init__(self, store: TaskStore, objective_id: int) -> None:
        self._store = store
        self._objective_id = objective_id
        self._after_id = 0
        self._heard: deque[TextWritten] = deque()
        self._n_heard_chars = 0
        self._has_heard = asyncio.Event()

    def hear(self, piece: TextPiece) -> None:
        """Keep a piece of text until `fetch` returns it; beyond `MAX_HEARD_CHARS`, drop the oldest
        pieces."""
        owner, key, text = piece.owner, piece.key, piece.text
        kind, _, number = owner.partition(":")
        task_id = int(number) if kind == "task" else None
        told = TextWritten(at=utc_now(), task_id=task_id, owner=owner, key=key, text=text)
        self._heard.append(told)
        self._n_heard_chars += len(text)
        while self._n_heard_chars > MAX_HEARD_CHARS and len(self._heard) > 1:
            self._n_heard_chars -= len(self._heard.popleft().text)
        self._has_heard.set()

    async def begin(self) -> None:
        """Skip the events that happened before the run."""
        self._after_id = await self._store.last_event_id(self._objective_id)

    async def has_more(self) -> bool:
        last_id = await self._store.last_event_id(self._objective_id)
        return bool(self._heard) or last_id > self._after_id

    async def fetch(self, running: asyncio.Task[Any]) -> list[Happening]:
        """Return the events since the last call, text pieces first. If there are none, wait at most
        `LOOK_S` seconds for one, and return an empty list."""
        batch = await self._store.events(self._objective_id, after_id=self._after_id)
        heard, self._heard, self._n_heard_chars = self._heard, deque(), 0
        self._has_heard.clear()
        if not batch and not heard:
            await self._wait(running)
            return []
        self._after_id = batch[-1].id if batch else self._after_id
        return [*heard, *[told for event in batch if (told := await self._tell(event)) is not None]]

    async def _wait(self, running: asyncio.Task[Any]) -> None:
        """Wait until there is something to fetch, the run has ended, or `LOOK_S` has passed."""
        news = self._store.wait_for_events(
            self._objective_id, after_id=self._after_id, timeout_s=LOOK_S
        )
        waiting = [asyncio.create_task(self._has_heard.wait()), asyncio.create_task(news)]
        try:
            await asyncio.wait([*waiting, running], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def _tell(self, event: Event) -> Happening | None:
        if event.kind == events.REPORT_WRITTEN:
            report = await self._store.report(self._objective_id)
            return ReportWritten(at=event.at, report=report or "")
        tell = _TELLERS.get(event.kind)
        if tell is None or event.task_id is None:
            return None
        return await tell(self._store, event, event.task_id)


async def _tell_started(store: TaskStore, event: Event, task_id: int) -> Happening:
    task = await store.task(event.objective_id, task_id)
    try_no = event.data.get("try_no", 1)
    return TaskStarted(at=event.at, task_id=task_id, name=task.name, try_no=try_no)


async def _tell_failed(store: TaskStore, event: Event, task_id: int) -> Happening:
    return TaskFailed(
        at=event.at,
        task_id=task_id,
        name=(await store.task(event.objective_id, task_id)).name,
        error=str(event.data.get("error", "")),
        is_given_up=event.kind == events.TASK_DEAD,
    )


async def _tell_result(store: TaskStore, event: Event, task_id: int) -> Happening | None:
    """Return the task's `ResultFound`; None if the result was withdrawn in the meantime."""
    for result in await store.results(event.objective_id, task_ids=[task_id]):
        return ResultFound(
            at=event.at, task_id=task_id, name=result.task_name, text=result.text, lack=result.lack
        )
    return None


async def _tell_question(store: TaskStore, event: Event, task_id: int) -> Happening | None:
    """Return the task's `QuestionAsked`; None if it was answered in the meantime."""
    for step in await store.inbox(event.objective_id):
        if (step.owner, step.key) == (f"task:{task_id}", event.data.get("key")):
            return QuestionAsked(
                at=event.at,
                task_id=task_id,
                question_id=step.id,
                text=describe(step),
                is_approval=needs_leave(step),
            )
    return None


async def _tell_call(store: TaskStore, event: Event, task_id: int) -> Happening | None:
    """Return the `ToolCalled` of a recorded step; None if it is no call of the task's own model, or
    was withdrawn in the meantime."""
    key = event.data.get("key", "")
    if not _CALL_KEY.fullmatch(key) or event.data.get("kind") == "model":
        return None
    for step in await store.steps(event.objective_id, owner=event.data["owner"]):
        if step.key == key and step.output is not None:
            tool, arguments = read_request(step)
            observation = Observation.from_json(step.output)
            return ToolCalled(
                at=event.at,
                task_id=task_id,
                tool=tool,
                arguments=json.dumps(arguments, ensure_ascii=False),
                text=observation.passage.text,
                is_error=observation.is_error,
            )
    return None


_TELLERS: Mapping[str, Callable[[TaskStore, Event, int], Awaitable[Happening | None]]] = {
    events.TASK_CLAIMED: _tell_started,
    events.TASK_RECORDED: _tell_result,
    events.TASK_FAILED: _tell_failed,
    events.TASK_DEAD: _tell_failed,
    events.TASK_PARKED: _tell_question,
    events.STEP_RECORDED: _tell_call,
}
