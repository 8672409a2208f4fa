"""The one table of verbs: everything that a person or a program can do with the task store.

A row names the async function that does it, its route, the lowest level of key that may call it,
and the type of its answer. What a verb takes is read from the function's signature, its line of
help from its docstring. Routes, the OpenAPI document and the checks of requests are made from the
rows, and `client.py` has a method for each.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import hmac
import inspect
import json
import re
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Required

from annotated_types import Interval
from typing_extensions import TypedDict

from babyagi.app.application import App
from babyagi.app.backends import utc_now
from babyagi.app.options import LIMIT_NAMES
from babyagi.errors import NotFoundError, RequestError, SettingsError
from babyagi.inbox import Decision
from babyagi.llm.shapes import ShapeError, shape_of
from babyagi.reporting.metrics import read_metrics
from babyagi.reporting.report import load_page, load_report
from babyagi.reporting.sources import find_artifacts, trace_sources
from babyagi.reporting.why import explain_tasks, find_facts
from babyagi.settings.fields import Settings, declared_fields
from babyagi.tasks import ANSWER_TASK, Duty, Level, Limits, Objective, Place, Task, TaskStatus
from babyagi.taskstore.nouns import KeyedRequest, Standing
from babyagi.taskstore.schedules import DAILY_LIMIT_USD, Schedule, ScheduleStatus
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import clean, shorten
from babyagi.verbs import actions, json_shapes
from babyagi.worker.notify import event_fields

BASE = "/api/v1"
LATEST = "latest"
SEE_LISTS = "babyagi show objectives and babyagi tasks show the valid numbers"
MAX_ID_DIGITS = 15
MAX_LISTED = 1_000
MAX_KEY_CHARS = 255
MAX_TEXT_CHARS = 100_000
MAX_NUMBER = 2**53 - 1
MAX_USD = 1_000_000_000.0
PROMETHEUS = "text/plain; version=0.0.4"
TEXT = "text"
SETTING_BY_FIELD = {
    "objective": "objective",
    "first_task": "initial_task",
    "name": "instance_name",
    "model": "llm_model",
    "memory": "memory",
    "planning": "planning",
    **{name: name for name in LIMIT_NAMES},
}
Limit = Annotated[int, Interval(ge=1, le=MAX_LISTED)]
SHOWN_DUTIES = (Duty.PLAN, Duty.ORDER, Duty.CHECK, Duty.REPORT)
WHEN = tuple("cron every at tz grace overlap catch_up".split())


# -- a row, and a call of it
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One row of the table.

    Attributes:
        run: the function that does it; None for a stream of events. Its parameters with a name in
            `FROM_CALL` are given by the call. The others are what a client gives: one parameter
            `given` of a dataclass, or parameters of their own.
        returns: the type of the JSON (`json_shapes.py`), which `_SHAPES` makes unless `run` returns
            an `Answer`; None if the answer is no JSON.
        level: the lowest level that the client's key must have.
        commands: the commands that do the same on the command line.
        status: the HTTP status of a success.
        finds: whether it can find something that exists in the place of creating it, which is a
            success with the status 200.
        gives: `TEXT` if the answer can be other than JSON.
        takes_key: whether an Idempotency-Key is observed. The first write must then be the whole
            effect, or the rest of it must do no harm when it is done again.
        says: the line of help.
    """

    name: str
    method: str
    path: str
    run: Callable[..., Awaitable[Any]] | None
    returns: Any = None
    level: Level = Level.READ
    commands: tuple[str, ...] = ()
    status: int = 200
    finds: bool = False
    gives: str = ""
    takes_key: bool = False
    says: str

    @property
    def given(self) -> type:
        """The type of what a client gives: the body, or the query of a GET."""
        return EventsQuery if self.run is None else _read_given_type(self.run)

    @property
    def has_body(self) -> bool:
        return self.method == "POST"


@cache
def _read_given_type(run: Callable[..., Any]) -> type:
    """Return a dataclass with the parameters of the function that a client gives. Its docstring is
    the second part of the function's."""
    parameters = inspect.signature(run).parameters.values()
    own = [one for one in parameters if one.name not in FROM_CALL]
    hints = typing.get_type_hints(
        type("given", (), {"__annotations__": {one.name: one.annotation for one in own}}),
        vars(inspect.getmodule(run)),
        include_extras=True,
    )
    if [one.name for one in own] == ["given"]:
        return hints["given"]  # type: ignore[no-any-return]
    fields = [
        (one.name, hints[one.name])
        if one.default is one.empty
        else (one.name, hints[one.name], dataclasses.field(default=one.default))
        for one in own
    ]
    about = {"__doc__": inspect.cleandoc(run.__doc__ or "").partition("\n\n")[2]}
    return dataclasses.make_dataclass(
        run.__name__, fields, namespace=about, frozen=True, kw_only=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What verbs use.

    Attributes:
        app: the app, with the task store and the settings.
    """

    app: App

    @property
    def store(self) -> TaskStore:
        return self.app.store

    @property
    def settings(self) -> Settings:
        return self.app.settings

    async def pick(self, selector: str) -> Objective:
        """Return the objective that `selector` chooses; see `pick_objective`."""
        return await pick_objective(self.store, selector, home=self.settings.home)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A parsed call of a verb.

    Attributes:
        path: the parameters in the path, such as `objective`, by name.
        given: what the client gives, as an instance of the verb's type `given`.
        level: the level of the client's key.
        made: what this request made before, when it was carried out, but its answer got lost in a
            crash; else None.
        is_repeated: whether this request was carried out before, but its answer got lost.
    """

    desk: Desk
    path: Mapping[str, str]
    given: Any
    level: Level = Level.ADMIN
    made: Any = None
    is_repeated: bool = False

    @property
    def store(self) -> TaskStore:
        return self.desk.store

    async def objective(self) -> Objective:
        return await self.desk.pick(self.path["objective"])

    async def argument(self, name: str) -> Any:
        """Return the argument for a parameter with this name."""
        if name == "objective":
            return await self.objective()
        if name in FROM_CALL:
            return FROM_CALL[name](self)
        return self.given if name == "given" else getattr(self.given, name)


FROM_CALL: Mapping[str, Callable[[Call], Any]] = {
    "call": lambda call: call,
    "desk": lambda call: call.desk,
    "store": lambda call: call.store,
    "settings": lambda call: call.desk.settings,
    "is_repeated": lambda call: call.is_repeated,
    "objective": Call.objective,
    "task_id": lambda call: parse_id(call.path["task"], "task"),
    "schedule_id": lambda call: parse_id(call.path["schedule"], "schedule"),
    "number": lambda call: parse_id(call.path["number"], "request"),
    "duty": lambda call: parse_duty(call.path["duty"]),
}
"""What a call gives for the parameters of these names; a client gives the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a verb.

    Attributes:
        value: the answer as a JSON value, if `text` is None.
        text: the answer if it is not JSON.
        media_type: the media type of the answer.
        file_name: the name under which a browser saves the answer; '' for none.
        status: the HTTP status.
        next: the query parameters for the next page of a list; None if this is the last page.
    """

    value: Any = None
    text: bytes | None = None
    media_type: str = "application/json"
    file_name: str = ""
    status: int = 200
    next: Mapping[str, str | int] | None = None


async def _run(verb: Verb, call: Call) -> Answer:
    assert verb.run is not None
    parameters = inspect.signature(verb.run).parameters
    found = await verb.run(**{name: await call.argument(name) for name in parameters})
    if verb.level is not Level.READ:
        call.desk.app.wake()
    if isinstance(found, Answer):
        return found
    make = _SHAPES.get(verb.returns, json_shapes.to_json)
    return Answer(value=make(found), status=verb.status)


async def carry_out(verb: Verb, call: Call, key: str = "") -> Answer:
    """Return the verb's answer. If the same request was sent before with this key, its first answer
    is returned, and nothing is done again.

    Args:
        key: the Idempotency-Key; '' for none.

    Raises:
        RequestError: the key is too long.
        SettingsError: the key was sent with another request.
    """
    if not key:
        return await _run(verb, call)
    if len(key) > MAX_KEY_CHARS:
        most = f"{MAX_KEY_CHARS} characters at most"
        raise RequestError("the Idempotency-Key is too long", most)

    async def make(made: Any, is_repeated: bool) -> tuple[str, int | None]:
        answer = await _run(verb, replace(call, made=made, is_repeated=is_repeated))
        found = await call.objective() if "objective" in call.path else None
        text = json.dumps({"status": answer.status, "value": answer.value})
        return text, found.id if found is not None else None

    return Answer(**json.loads(await call.store.carry_out(_keyed(verb, call, key), make)))


def _keyed(verb: Verb, call: Call, key: str) -> KeyedRequest:
    """Return the request with its key, which holds for one verb on one thing."""
    content = json.dumps(vars_of(call.given), sort_keys=True)
    named = json.dumps([verb.name, call.path, key], sort_keys=True)
    hash_of = [hashlib.sha256(text.encode()).hexdigest() for text in (named, content)]
    return KeyedRequest(key=hash_of[0], content=hash_of[1])


async def pick_objective(store: TaskStore, selector: str, *, home: Path) -> Objective:
    """Return the objective with the number `selector`, or if `selector` is `latest`, the one that
    was used or created last from this home. Raises `NotFoundError` if there is none."""
    if selector != LATEST:
        return await store.objective(parse_id(selector, "objective"))
    found = await actions.find_latest(store, home)
    if found is None:
        raise NotFoundError("there is no objective yet", fix="POST /api/v1/objectives")
    return found


def parse_id(text: str, what: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_ID_DIGITS):
        raise NotFoundError(
            f"there is no such {what}", why=f"each {what} is chosen by its number", fix=SEE_LISTS
        )
    return int(text)


def parse_duty(text: str) -> Duty:
    for duty in SHOWN_DUTIES:
        if duty.value == text:
            return duty
    raise NotFoundError(
        "there is no such duty",
        why=f"the duties, which are work for a whole objective, are {', '.join(SHOWN_DUTIES)}",
        fix="end the path with one of these",
    )


# -- what a client gives
# --------------------------------------------------------------------------------------------------

shape = cache(shape_of)


def read_given(value: Any, where: str, hint: type, *, is_strict: bool) -> Any:
    """Return a JSON value as a value of the dataclass `hint`.

    Args:
        where: the name of the value's place, for messages.

    Raises:
        RequestError: it does not fit the type, or has a text that is too long.
    """
    if isinstance(value, dict):  # null says no more than a field that is missing
        value = {name: one for name, one in value.items() if one is not None}
    try:
        found = shape(hint).read(value, where, is_strict)
    except ShapeError as error:
        raise RequestError(f"{where} is invalid", str(error)) from None
    texts = [text for text in vars_of(found).values() if isinstance(text, str)]
    if any(len(text) > MAX_TEXT_CHARS for text in texts):
        raise RequestError(f"a text is longer than {MAX_TEXT_CHARS:,} characters")
    return found


def vars_of(given: Any) -> dict[str, Any]:
    """Return what a client gives by the names of its fields."""
    return given if isinstance(given, dict) else dataclasses.asdict(given)


def clean_json(value: Any) -> Any:
    """Return a JSON value with `clean` applied to all its texts. Raises `RequestError` for a number
    over `MAX_NUMBER`, which the store could not keep."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return [clean_json(one) for one in value]
    if isinstance(value, dict):
        return {clean(key): clean_json(one) for key, one in value.items()}
    if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:
        raise RequestError(f"a number is over {MAX_NUMBER:,}", status=400)
    return value


class LimitOptions(TypedDict, total=False):
    """New limits of an objective. A missing limit stays as it is; 0 removes one, where that is
    allowed."""

    max_tasks: int
    max_calls: int
    max_tokens: int
    max_cost_usd: float
    max_time_s: float


class ObjectiveOptions(LimitOptions, total=False):
    """What an objective is created with besides its text. Missing fields are taken from the
    settings of the home, or of the server. A request cannot ask for more than the server offers:
    `tools` are names of the server's tools, `files` is a folder in the server's folder, `agent` is
    the server's agent."""

    first_task: str
    name: str
    model: str
    memory: Literal["objective", "shared"]
    planning: Literal["separate", "combined"]
    tools: Sequence[str]
    files: str
    agent: str


class SubmitOptions(ObjectiveOptions, total=False):
    """If the same objective exists already, it is returned, unless `new` is true.

    What the server was started with is the most that an objective gets, whatever the level of the
    key: a field that asks for more is an error, and is never cut silently."""

    new: bool


class Submission(SubmitOptions, total=False):
    objective: Required[str]


class ScheduleOptions(ObjectiveOptions, total=False):
    """When an objective is started: exactly one of `cron`, `every` and `at`. Durations are written
    `90s`, `2h` or `1d`; a `daily_limit_usd` of 0 means no limit."""

    cron: str
    every: str
    at: str
    tz: str
    grace: str
    overlap: Literal["skip", "allow"]
    catch_up: Literal["one", "all", "none"]
    daily_limit_usd: Annotated[float, Interval(ge=0, le=MAX_USD)]


class NewSchedule(ScheduleOptions, total=False):
    objective: Required[str]


class Question(LimitOptions, total=False):
    question: Required[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """The wanted page of a list: at most `limit` items that follow the item with the id `after`,
    the last one of the page before."""

    after: int = 0
    limit: Limit = MAX_LISTED


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivesQuery(PageQuery):
    words: str = ""
    state: Literal["active", "ended"] | None = None

    async def find(self, store: TaskStore) -> list[Objective]:
        is_ended = None if self.state is None else self.state == "ended"
        return await actions.find_objectives(store, self.words.split(), is_ended=is_ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksQuery(PageQuery):
    status: tuple[TaskStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveQuery:
    objective: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsQuery:
    after: str = ""


# -- objectives
# --------------------------------------------------------------------------------------------------


async def list_objectives(store: TaskStore, given: ObjectivesQuery) -> Answer:
    """List objectives, the newest last."""
    found = await given.find(store)
    left = [one for one in found if one.id > given.after]
    page = left[: given.limit]
    shapes = []
    for one in page:
        counts = (await store.standing(one.id)).counts
        last_at = await actions.find_last_event_at(store, one)
        shapes.append(json_shapes.objective_shape(one, counts, last_event_at=last_at))
    return Answer(value=shapes, next={"after": page[-1].id} if len(left) > given.limit else None)


async def submit(call: Call, given: Submission) -> Answer:
    """Queue an objective for workers."""
    app = _app_of(call, given)
    objective, is_new = await app.start_objective(always_new=given.get("new", False))
    shape = json_shapes.submitted_shape(objective, is_new=is_new)
    return Answer(value=shape, status=201 if is_new else 200)


def _app_of(call: Call, given: Submission | NewSchedule) -> App:
    """Return an app that can create the requested objective: it has the settings of the server,
    changed by the values of the request.

    Raises:
        SettingsError: a value is invalid, or asks for more than this server offers.
        RequestError: a limit is higher than the client's key may set.
    """
    given_limits(call, given)
    settings = settings_of(call.desk.settings, given)
    settings.require_objective()
    app, agent = call.desk.app.beside(settings, tools=given.get("tools")), given.get("agent", "")
    if agent and agent != app.agent_name:
        raise SettingsError(
            f"this server does not offer the agent {shorten(agent, 100)}",
            fix="babyagi serve --agent FILE#NAME",
            guide="serve",
        )
    return app


def settings_of(settings: Settings, given: Submission | NewSchedule) -> Settings:
    """Return the server's settings, changed by the values of the request, which are parsed as on
    the command line.

    Raises:
        SettingsError: a value is invalid.
    """
    values = {
        setting: _parse(setting, given[name])  # type: ignore[literal-required]
        for name, setting in SETTING_BY_FIELD.items()
        if given.get(name, "") != ""
    }
    if folder := given.get("files"):
        values["files"] = _folder_within(settings, folder)
    if "max_cost_usd" in given:
        values["cost_limit_is_explicit"] = True
    if given.get("model"):
        values |= {"model_is_explicit": True, "role_models": ()}
    own: dict[str, Any] = {"objective": "", "objective_file": "", "task_file": ""}
    if settings.task_file:  # of a folder's file, which has no part in what others submit
        own["initial_task"] = ANSWER_TASK
    return replace(settings, **own | values)


def _parse(name: str, value: Any) -> Any:
    fix = "correct the value and send it again"
    try:
        return declared_fields()[name].parse(str(value))
    except ValueError as error:
        raise SettingsError(f"{name} must be {error}", fix=fix, guide="serve") from error


def _folder_within(settings: Settings, name: str) -> Path:
    """Return the folder `name`, which is relative to the server's folder, or is an absolute path in
    it. Raises `SettingsError` if there is no such folder."""
    whole = settings.files.resolve() if settings.files is not None else None
    folder = (whole / name).resolve() if whole is not None and "\0" not in name else None
    if whole is None or folder is None or not folder.is_relative_to(whole) or not folder.is_dir():
        raise SettingsError(
            "this server does not offer this folder",
            why="the server offers the folder of its option --files, and the folders in it",
            fix="babyagi serve --files FOLDER",
            guide="serve",
        )
    return folder


def given_limits(call: Call, given: LimitOptions) -> dict[str, Any]:
    """Return the limits in the request, parsed as settings. Raises `RequestError` if one is
    higher than the server's own limit, unless the client's key has the level admin."""
    limits = {name: _parse(name, one) for name, one in given.items() if name in LIMIT_NAMES}
    for name, value in limits.items():
        most = getattr(call.desk.settings, name)
        if call.level < Level.ADMIN and most and not 0 < value <= most:
            raise _too_high(name, most)
    return limits


def _too_high(name: str, most: float) -> RequestError:
    fix = "only a key of the level admin can set a higher limit"
    return RequestError(f"{name} may be at most {most:g}", fix, status=403)


async def delete(store: TaskStore, settings: Settings, objective: Objective) -> json_shapes.Json:
    """Delete an objective and its data for good."""
    trouble = await actions.delete_whole(store, settings, objective)
    return {"v": json_shapes.VERSION, "deleted": [objective.id], "trouble": trouble}


async def extend(call: Call, objective: Objective, given: LimitOptions) -> Standing:
    """Set new limits for an objective."""
    limits = given_limits(call, given)
    if not limits:
        raise RequestError("no limit is given", "send a limit, such as max_tasks")
    return await actions.extend(call.store, objective, limits, is_repeated=call.is_repeated)


async def ask_further(call: Call, objective: Objective, given: Question) -> Standing:
    """Ask a further question, which the objective then has to answer as well."""
    new = given_limits(call, given)
    limits: Limits | None = replace(objective.spec.limits, **new) if new else None
    app = call.desk.app.beside()
    found = await app.ask_further(objective, given["question"], limits=limits)
    return await call.store.standing(found.id)


# -- tasks
# --------------------------------------------------------------------------------------------------


async def list_tasks(store: TaskStore, objective: Objective, given: TasksQuery) -> Answer:
    """List the tasks of an objective in the order in which they will be started."""
    facts = await find_facts(store, objective.id)
    after = await store.task(objective.id, given.after) if given.after else None
    shown, has_more = await read_tasks(store, objective.id, given, after, given.limit)
    reasons = await explain_tasks(store, facts, shown)
    shapes = list(map(json_shapes.listed_task_shape, shown, reasons))
    return Answer(value=shapes, next={"after": shown[-1].id} if has_more else None)


async def read_tasks(
    store: TaskStore, objective_id: int, query: TasksQuery, after: Task | None, limit: int
) -> tuple[list[Task], bool]:
    """Return at most `limit` tasks with the wanted statuses, which follow the task `after` (None:
    from the beginning), and whether there are more."""
    wanted = query.status or tuple(TaskStatus)
    found = await store.tasks(objective_id, statuses=wanted, after=after, limit=limit + 1)
    return found[:limit], len(found) > limit


async def show_task(
    call: Call, objective: Objective, task_id: int, step: int | None = None
) -> json_shapes.Json:
    """Show a task with its prompts, replies and tool calls."""
    return _show(call, await actions.fetch_task(call.store, objective, task_id), step)


async def show_duty(
    call: Call, objective: Objective, duty: Duty, step: int | None = None
) -> json_shapes.Json:
    """Show the calls of one duty (work for the whole objective): plan, order, check or report."""
    return _show(call, await actions.fetch_duty(call.store, objective, duty, only=step), step)


def _show(call: Call, shown: actions.Shown, only: int | None) -> json_shapes.Json:
    return json_shapes.shown_shape(shown, call.desk.settings.known_secrets, only=only)


async def move_task(
    store: TaskStore,
    objective: Objective,
    task_id: int,
    to: Literal["first", "last"] | None = None,
    before: int | None = None,
) -> actions.Changed:
    """Move a queued task to another place of the list.

    The new position of a task: at an end of the list (`to`), or before the task with the id
    `before`.
    """
    if (to is None) == (before is None):
        fix = 'send {"to": "first"} or {"before": 3}'
        raise RequestError("the new position is missing", fix)
    place = Place(to) if to is not None else before
    assert place is not None
    return await actions.move_task(store, objective, task_id, to=place)


# -- results, reports, the log
# --------------------------------------------------------------------------------------------------


async def list_results(store: TaskStore, objective: Objective, given: PageQuery) -> Answer:
    """List the results of the finished tasks."""
    limit = given.limit
    ids = await store.result_ids(objective.id)
    if given.after:
        if given.after not in ids:
            raise NotFoundError(f"task {given.after} has no result", fix=SEE_LISTS)
        ids = ids[ids.index(given.after) + 1 :]
    found = await store.results(objective.id, task_ids=ids[:limit])
    made = await find_artifacts(store, found)
    shapes = [json_shapes.result_shape(one, made) for one in found]
    return Answer(value=shapes, next={"after": ids[limit - 1]} if len(ids) > limit else None)


async def search(
    call: Call,
    objective: Objective,
    text: str,
    k: Annotated[int, Interval(ge=1, le=100)] = 5,
    all_objectives: bool = False,
) -> json_shapes.Json:
    """Find the results that are nearest to a text."""
    if not text.strip():
        raise RequestError("the text to search for is blank")
    async with call.desk.app.beside().open_results(objective) as opened:
        ranking = await opened.search(text, k=k, in_all=all_objectives)
    return json_shapes.search_shape(objective, text, ranking)


async def report(
    store: TaskStore, objective: Objective, format: Literal["json", "md", "html"] = "json"
) -> Answer:
    """Return the report of an objective, as JSON, Markdown or HTML."""
    markdown = await load_report(store, objective, offload=asyncio.to_thread)
    if format == "json":
        results = await store.results(objective.id)
        sources, made = await trace_sources(store, results), await find_artifacts(store, results)
        return Answer(value=json_shapes.report_shape(objective, markdown, sources, made))
    kind, text = "markdown", markdown
    if format == "html":
        load = partial(load_page, now=utc_now(), offload=asyncio.to_thread)
        kind, text = "html", await load(store, objective, markdown)
    return Answer(
        text=text.encode("utf-8", "replace"),
        media_type=f"text/{kind}; charset=utf-8",
        file_name=f"objective-{objective.id}.{format}",
    )


async def log(
    store: TaskStore,
    objective: Objective,
    after: int = 0,
    limit: Limit = MAX_LISTED,
    task: int | None = None,
) -> Answer:
    """List the events of an objective."""
    found = await store.events(objective.id, after_id=after, task_id=task, limit=limit)
    shapes = [event_fields(event) for event in found]
    return Answer(value=shapes, next={"after": found[-1].id} if len(found) == limit else None)


# -- the inbox
# --------------------------------------------------------------------------------------------------


async def inbox(
    desk: Desk, store: TaskStore, settings: Settings, given: ObjectiveQuery
) -> list[actions.Request]:
    """List the requests of tasks that wait for a person."""
    chosen = (await desk.pick(given.objective)).id if given.objective else None
    steps = await store.inbox(chosen)
    return [await actions.gather_request(store, step, settings) for step in steps]


async def show_request(store: TaskStore, settings: Settings, number: int) -> actions.Request:
    """Show one request of a task that waits for a person."""
    (step,) = await store.inbox(step_id=number)
    return await actions.gather_request(store, step, settings)


async def answer(call: Call, number: int, text: str) -> json_shapes.Json:
    """Answer the request of a task, which then continues."""
    return await _decide(call, number, Decision.ANSWER, text)


async def reject(call: Call, number: int, why: str = "") -> json_shapes.Json:
    """Refuse the request of a task, which then continues without what it requested."""
    return await _decide(call, number, Decision.REJECT, why)


async def approve(
    call: Call, number: int, seen: str = "", always: bool = False
) -> json_shapes.Json:
    """Allow the tool call that a task requests.

    The field `seen` of the request, as it was when the person read the request, so that nothing
    else is approved. `always`: allow all that goes to the same host in this run, unasked.
    """
    decision = Decision.ALWAYS if always else Decision.APPROVE
    return await _decide(call, number, decision, "", seen=seen)


async def _decide(
    call: Call, number: int, decision: Decision, text: str, *, seen: str | None = None
) -> json_shapes.Json:
    if call.made is not None:  # else it no longer waits
        return json_shapes.decided_shape(call.made, decision)
    settings, request = call.desk.settings, None
    (step,) = await call.store.inbox(step_id=number)
    if seen is not None:
        request = await actions.gather_request(call.store, step, settings)
        state = request.preview.state if request.preview is not None else ""
        if not hmac.compare_digest(seen.encode(), state.encode()):
            raise RequestError(
                "what the tool call would change is no longer what you were shown",
                "get the task's open request again, and send its new `seen`",
                status=409,
            )
    home = settings.home
    elsewhere = await actions.find_asking_elsewhere(call.store, step, home=home)
    step = await actions.settle(call.store, step, decision, text, home=home, seen=request)
    return json_shapes.decided_shape(step, decision, elsewhere)


# -- schedules
# --------------------------------------------------------------------------------------------------


async def list_schedules(store: TaskStore, with_removed: bool = False) -> list[json_shapes.Json]:
    """List schedules, each with its next tick (start of an objective)."""
    found = await store.schedules(with_removed=with_removed)
    return list(map(json_shapes.schedule_shape, found))


async def add_schedule(call: Call, given: NewSchedule) -> Schedule:
    """Add a schedule."""
    app, usd = _app_of(call, given), given.get("daily_limit_usd")
    if usd is not None and call.level < Level.ADMIN and not 0 < usd <= DAILY_LIMIT_USD:
        raise _too_high("daily_limit_usd", DAILY_LIMIT_USD)
    when: dict[str, Any] = {name: one for name, one in given.items() if name in WHEN}
    return await app.add_schedule(when, daily_limit=usd)


async def show_schedule(store: TaskStore, schedule_id: int, limit: Limit = 20) -> json_shapes.Json:
    """Show a schedule, and the outcomes of its ticks."""
    found, ticks = await store.schedule(schedule_id, limit=limit)
    return {**_schedule(found), "ticks": json_shapes.to_json(ticks)}


# -- workers and metrics
# --------------------------------------------------------------------------------------------------


async def workers(store: TaskStore) -> list[json_shapes.Json]:
    """List the workers, and what each works on."""
    return list(map(json_shapes.worker_shape, await store.workers()))


async def metrics(store: TaskStore) -> Answer:
    """Return metrics of the task store, as text for Prometheus."""
    return Answer(text=(await read_metrics(store)).encode(), media_type=PROMETHEUS)


# -- the table
# --------------------------------------------------------------------------------------------------


def _schedule(found: Schedule) -> json_shapes.Json:
    return {"v": json_shapes.VERSION, "schedule": json_shapes.schedule_shape(found)}


_SHAPES: Mapping[Any, Callable[[Any], Any]] = {
    json_shapes.Status: lambda now: json_shapes.status_shape(now.objective, now.counts),
    json_shapes.Stand: json_shapes.stand_shape,
    json_shapes.Changed: json_shapes.changed_shape,
    json_shapes.OneSchedule: _schedule,
    json_shapes.Request: json_shapes.request_shape,
    list[json_shapes.Request]: lambda found: list(map(json_shapes.request_shape, found)),
}
"""What makes the JSON of these types from what the verbs return."""


def look(
    path: str, run: Callable[..., Awaitable[Any]], returns: Any, *commands: str, **more: Any
) -> Verb:
    """Return the row of a verb that only reads."""
    known = {
        "name": run.__name__,
        "method": "GET",
        "says": (run.__doc__ or "").partition("\n")[0],
    }
    return Verb(path=path, run=run, returns=returns, commands=commands, **{**known, **more})


def change(
    path: str, run: Callable[..., Awaitable[Any]], returns: Any, *commands: str, **more: Any
) -> Verb:
    """Return the row of a verb that changes something."""
    known = {"method": "POST", "level": Level.STEER, "takes_key": True}
    return look(path, run, returns, *commands, **{**known, **more})


def _stream(path: str, whose: str, *commands: str) -> Verb:
    return Verb(
        name=re.sub("[{}]", "", path.strip("/")).replace("/", "_"),
        method="GET",
        path=path,
        run=None,
        commands=commands,
        gives=TEXT,
        says=f"Stream the events of {whose} (text/event-stream).",
    )


def _switch(word: str, to: ScheduleStatus, says: str) -> Verb:
    """Return the row of a verb that gives a schedule another status."""

    async def switch(store: TaskStore, schedule_id: int) -> Schedule:
        return await store.switch_schedule(schedule_id, to=to)

    more = {"name": f"{word}_schedule", "says": says}
    return change(
        f"{_SCHEDULE}/{word}", switch, json_shapes.OneSchedule, f"schedule {word}", **more
    )


_ONE = "/objectives/{objective}"
_TASK = f"{_ONE}/tasks/{{task}}"
_SCHEDULE = "/schedules/{schedule}"

REPEATABLE: dict[str, Any] = {"level": Level.ADMIN, "takes_key": False}  # twice does no harm

METRICS = look("/metrics", metrics, None, "store metrics", gives=TEXT)
"""This verb has a second path, `/metrics`, where Prometheus expects it."""

VERBS: tuple[Verb, ...] = (
    look("/objectives", list_objectives, list[json_shapes.Objective], "show objectives"),
    change("/objectives", submit, json_shapes.Submitted, "submit", status=201, finds=True),
    look(_ONE, actions.find_stand, json_shapes.Stand, "status", name="status"),
    change(_ONE, delete, json_shapes.Deleted, "store delete", method="DELETE", **REPEATABLE),
    change(f"{_ONE}/pause", actions.pause, json_shapes.Status, "pause"),
    change(f"{_ONE}/resume", actions.resume, json_shapes.Status, "resume"),
    change(f"{_ONE}/cancel", actions.cancel, json_shapes.Status, "cancel"),
    change(f"{_ONE}/extend", extend, json_shapes.Status, "extend"),
    change(f"{_ONE}/questions", ask_further, json_shapes.Status, "run --continue"),
    look(f"{_ONE}/tasks", list_tasks, list[json_shapes.ListedTask], "tasks", "show tasks"),
    change(f"{_ONE}/tasks", actions.add_task, json_shapes.Changed, "tasks add", status=201),
    look(_TASK, show_task, json_shapes.ShownTask, "show"),
    change(f"{_TASK}/move", move_task, json_shapes.Changed, "tasks move"),
    change(f"{_TASK}/edit", actions.edit_task, json_shapes.Changed, "tasks edit"),
    change(f"{_TASK}/skip", actions.skip_task, json_shapes.Changed, "tasks skip"),
    change(f"{_TASK}/retry", actions.retry_task, json_shapes.Changed, "tasks retry"),
    look(f"{_ONE}/duties/{{duty}}", show_duty, json_shapes.ShownDuty, "show"),
    look(f"{_ONE}/results", list_results, list[json_shapes.Result], "show results"),
    look(f"{_ONE}/results/search", search, json_shapes.Hits, "show results"),
    look(f"{_ONE}/report", report, json_shapes.Report, "report", gives=TEXT),
    look(f"{_ONE}/log", log, list[json_shapes.Event], "show log"),
    _stream(f"{_ONE}/events", "an objective", "watch"),
    _stream("/events", "all objectives"),
    look("/inbox", inbox, list[json_shapes.Request], "inbox"),
    look("/inbox/{number}", show_request, json_shapes.Request, "inbox"),
    change("/inbox/{number}/answer", answer, json_shapes.Decided, "inbox answer"),
    change("/inbox/{number}/approve", approve, json_shapes.Decided, "inbox approve"),
    change("/inbox/{number}/reject", reject, json_shapes.Decided, "inbox reject"),
    look("/schedules", list_schedules, list[json_shapes.Schedule], "schedule"),
    change("/schedules", add_schedule, json_shapes.OneSchedule, "schedule add", status=201),
    look(_SCHEDULE, show_schedule, json_shapes.ShownSchedule, "schedule"),
    _switch("pause", ScheduleStatus.PAUSED, "Pause a schedule: ticks due meanwhile are skipped."),
    _switch("resume", ScheduleStatus.ACTIVE, "Resume a paused schedule; its next tick fires."),
    _switch("remove", ScheduleStatus.REMOVED, "Remove a schedule; what it has started continues."),
    look("/workers", workers, list[json_shapes.Worker], "show workers"),
    METRICS,
)
