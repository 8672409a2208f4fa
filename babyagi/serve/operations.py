"""The operations of the HTTP API: one for each command that reads or changes the task store.

An operation takes a parsed request (`Call`), calls the same function as the command, and returns
the JSON that the command prints with `--json`. `OPERATIONS` is the list of all; the routes and the
OpenAPI document are made from it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from babyagi import json_shapes, verbs
from babyagi.app import App, Timing
from babyagi.backends import describe_index, utc_now
from babyagi.errors import NotFoundError, SettingsError
from babyagi.files.home import forget, remember_hook
from babyagi.inbox import Decision
from babyagi.net.addresses import read_target
from babyagi.notify import Hooks, is_address
from babyagi.options import LIMIT_NAMES
from babyagi.reporting.artifacts import find_artifacts
from babyagi.reporting.metrics import read_metrics
from babyagi.reporting.report import load_artifacts, load_page, load_report, load_sources
from babyagi.reporting.why import explain_tasks, find_facts
from babyagi.results import load_index_status
from babyagi.schedules import DAILY_LIMIT_USD, CatchUp, Overlap, Schedule
from babyagi.serve.door import Keys, Level
from babyagi.serve.feed import Feed
from babyagi.serve.wire import Answer, BadRequestError
from babyagi.settings.fields import declared_fields
from babyagi.tasks import ANSWER_TASK, Limits, Objective, Place, Task, TaskStatus
from babyagi.taskstore.nouns import KeyedRequest
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import shorten

if TYPE_CHECKING:
    from babyagi.settings.fields import Settings

LATEST = "latest"
SEE_LISTS = "babyagi show objectives and babyagi tasks show the valid numbers"
MAX_ID_DIGITS = 15
MAX_LISTED = 1_000
MAX_KEY_CHARS = 255
MAX_TEXT_CHARS = 100_000
MAX_USD = 1_000_000_000.0
PROMETHEUS = "text/plain; version=0.0.4"
TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The parts of the server that operations use.

    Attributes:
        app: the app, with the task store and the settings.
        feed: the feed of events.
        keys: the credentials.
        hooks: sends notifications.
    """

    app: App
    feed: Feed
    keys: Keys
    hooks: Hooks

    @property
    def store(self) -> TaskStore:
        return self.app.store

    @property
    def settings(self) -> Settings:
        return self.app.settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A parsed request to an operation.

    Attributes:
        path: the parameters in the path, such as `objective`, by name.
        query: the query parameters, as an instance of the operation's type `query`.
        body: the body, as an instance of the operation's type `body`; None if it has none.
        level: the level of the client's key.
        made: what this request made before, when it was carried out, but its answer got lost in a
            crash; else None.
    """

    desk: Desk
    path: Mapping[str, str]
    query: Any
    body: Any
    level: Level
    made: Any = None

    @property
    def store(self) -> TaskStore:
        return self.desk.store

    async def objective(self) -> Objective:
        return await pick_objective(self.store, self.path["objective"])

    def task_id(self) -> int:
        return parse_id(self.path["task"], "task")

    def schedule_id(self) -> int:
        return parse_id(self.path["schedule"], "schedule")


async def pick_objective(store: TaskStore, selector: str) -> Objective:
    """Return the objective with the number `selector`, or the newest one if `selector` is `latest`.
    Raises `NotFoundError` if there is none."""
    if selector != LATEST:
        return await store.objective(parse_id(selector, "objective"))
    newest = await store.objectives(limit=1)
    if not newest:
        raise NotFoundError("there is no objective yet", fix="POST /api/v1/objectives")
    return newest[0]


def parse_id(text: str, what: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_ID_DIGITS):
        raise NotFoundError(
            f"there is no such {what}", why=f"each {what} is chosen by its number", fix=SEE_LISTS
        )
    return int(text)


# -- requests
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """The type of a body or a query without fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitFields:
    """New limits of an objective. A missing limit stays as it is; 0 removes a limit."""

    max_tasks: int | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    max_time_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveFields(LimitFields):
    """An objective to create. Missing fields are taken from the server's settings. A request cannot
    ask for more than the server offers: `tools` are names of the server's tools, `files` is a
    folder in the server's folder, `agent` is the server's agent."""

    objective: str
    first_task: str = ""
    name: str = ""
    model: str = ""
    memory: Literal["objective", "shared"] | None = None
    planning: Literal["separate", "combined"] | None = None
    tools: tuple[str, ...] | None = None
    files: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission(ObjectiveFields):
    """An objective to create. If the same objective exists already, it is returned, unless `new` is
    true. `notify` is a URL on the public internet that gets a request when a task waits for a
    person, and when the objective has ended.

    What the server was started with is the most that an objective gets, whatever the level of the
    key: a field that asks for more is an error, and is never cut silently."""

    new: bool = False
    notify: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule(ObjectiveFields):
    """An objective to start at certain times, which exactly one of `cron`, `every` and `at` gives.
    Durations look like `90s`, `2h` or `1d`; a `daily_limit_usd` of 0 means no limit."""

    cron: str | None = None
    every: str | None = None
    at: str | None = None
    tz: str = "UTC"
    grace: str = "1h"
    overlap: Overlap = Overlap.SKIP
    catch_up: CatchUp = CatchUp.ONE
    jitter: str = "0s"
    daily_limit_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(LimitFields):
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    name: str
    first: bool = False
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The new position of a task: at an end of the list (`to`), or before the task with the id
    `before`."""

    to: Literal["first", "last"] | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewName:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The field `seen` of the request, as it was when the person read the request, so that nothing
    else is approved."""

    seen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    older_than_days: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilding:
    embedding_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCode:
    level: Literal["read", "steer", "admin"] = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """The wanted page of a list: at most `limit` items that follow the item with the id `after`,
    the last one of the page before."""

    after: int = 0
    limit: int = MAX_LISTED


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectivesQuery(PageQuery):
    words: str = ""
    state: Literal["active", "ended"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksQuery(PageQuery):
    status: tuple[TaskStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    text: str
    k: int = 5
    all_objectives: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuery:
    format: Literal["json", "md", "html"] = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery(PageQuery):
    task: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowQuery:
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveQuery:
    objective: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulesQuery:
    with_removed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TicksQuery:
    limit: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsQuery:
    after: str = ""


# -- requests with a key, each of which takes effect once
# --------------------------------------------------------------------------------------------------


async def carry_out(operation: Operation, call: Call, key: str) -> Answer:
    """Return the operation's answer. If the same request was sent before with this key, its first
    answer is returned, and nothing is done again.

    Args:
        key: the Idempotency-Key; '' for none.

    Raises:
        BadRequestError: the key is too long.
        SettingsError: the key was sent with another request.
    """
    assert operation.run is not None
    if not key:
        return await operation.run(call)
    if len(key) > MAX_KEY_CHARS:
        most = f"{MAX_KEY_CHARS} characters at most"
        raise BadRequestError(422, "the Idempotency-Key is too long", most)
    request = _keyed(operation, call, key)
    earlier = await call.store.earlier_request(request)
    if earlier is not None and earlier.answer is not None:
        return _read_answer(earlier.answer)
    with call.store.carrying_out(request):
        answer = await operation.run(replace(call, made=earlier.made if earlier else None))
    found = await call.objective() if "objective" in call.path else None
    text = json.dumps({"status": answer.status, "value": answer.value})
    about = found.id if found is not None else None
    return _read_answer(await call.store.keep_answer(request, text, objective_id=about))


def _keyed(operation: Operation, call: Call, key: str) -> KeyedRequest:
    """Return the request with its key, which holds for one operation on one thing."""
    content = json.dumps(asdict(call.body), sort_keys=True)
    named = json.dumps([operation.name, call.path, key], sort_keys=True)
    hash_of = [hashlib.sha256(text.encode()).hexdigest() for text in (named, content)]
    return KeyedRequest(key=hash_of[0], content=hash_of[1])


def _read_answer(text: str) -> Answer:
    return Answer(**json.loads(text))


# -- objectives
# --------------------------------------------------------------------------------------------------


async def list_objectives(call: Call) -> Answer:
    """List objectives, the newest last."""
    query: ObjectivesQuery = call.query
    found = await find_objectives(call.store, query)
    limit = _within(query.limit, "limit", 1, MAX_LISTED)
    left = [one for one in found if one.id > query.after]
    page = left[:limit]
    shapes = []
    for one in page:
        counts = await call.store.counts(one.id)
        last_at = await verbs.find_last_event_at(call.store, one)
        shapes.append(json_shapes.objective_shape(one, counts, last_event_at=last_at))
    return Answer(value=shapes, next={"after": page[-1].id} if len(left) > limit else None)


async def find_objectives(store: TaskStore, query: ObjectivesQuery) -> list[Objective]:
    words, state = query.words.split(), query.state
    return await verbs.find_objectives(
        store, words, is_ended=state == "ended", is_active=state == "active"
    )


async def submit(call: Call) -> Answer:
    """Queue an objective for workers."""
    body: Submission = call.body
    app = _app_of(call, body)
    objective, is_new = await _start(call.desk, app, body)
    shape = json_shapes.submitted_shape(objective, is_new=is_new)
    return Answer(value=shape, status=201 if is_new else 200)


async def _start(desk: Desk, app: App, body: Submission) -> tuple[Objective, bool]:
    """Create the objective, or find it if the same one exists. Return it, and whether it is new.
    The URL for notifications is stored first, so that a kill in between loses no notification."""
    home, uid = desk.settings.home, secrets.token_hex(8)
    if body.notify:
        _require_hook(body.notify)
        remember_hook(home, uid, body.notify)
    objective, is_new = await app.start_objective(always_new=body.new, uid=uid)
    if body.notify and objective.uid != uid:
        forget(home, uid)
        remember_hook(home, objective.uid, body.notify)
    desk.hooks.nudge()
    return objective, is_new


def _require_hook(address: str) -> None:
    try:
        if not is_address(address):
            raise ValueError("it is not an http or https URL")
        read_target(address)
    except ValueError as error:
        raise SettingsError(
            f"notify must be a URL on the public internet: {error}",
            fix="send a URL such as https://example.org/hook",
            guide="serve",
        ) from error


def _app_of(call: Call, body: ObjectiveFields) -> App:
    """Return an app that can create the requested objective: it has the settings of the server,
    changed by the values of the request.

    Raises:
        SettingsError: a value is invalid, or asks for more than this server offers.
        BadRequestError: a limit is higher than the client's key may set.
    """
    given_limits(call, body)
    settings = settings_of(call.desk.settings, body)
    settings.require_objective()
    app = call.desk.app.beside(settings, tools=body.tools)
    if body.agent and body.agent != app.agent_name:
        raise SettingsError(
            f"this server does not offer the agent {shorten(body.agent, 100)}",
            fix="babyagi serve --agent FILE#NAME",
            guide="serve",
        )
    return app


def settings_of(settings: Settings, body: ObjectiveFields) -> Settings:
    """Return the server's settings, changed by the values of the request, which are parsed as on
    the command line.

    Raises:
        SettingsError: a value is invalid.
    """
    texts: dict[str, Any] = {
        "objective": body.objective,
        "initial_task": body.first_task,
        "instance_name": body.name,
        "llm_model": body.model,
        "memory": body.memory,
        "planning": body.planning,
        **{name: getattr(body, name) for name in LIMIT_NAMES},
    }
    values = {name: _parse(name, one) for name, one in texts.items() if one not in (None, "")}
    more: dict[str, Any] = {}
    if body.files:
        more["files"] = _folder_within(settings, body.files)
    if body.max_cost_usd is not None:
        more["cost_limit_is_explicit"] = True
    if body.model:
        roles = ("execution", "creation", "prioritization", "report")
        more |= {"model_is_explicit": True, **{f"model_{role}": "" for role in roles}}
    own: dict[str, Any] = {"objective": "", "objective_file": "", "task_file": ""}
    if settings.task_file:  # of a folder's file, which has no part in what others submit
        own["initial_task"] = ANSWER_TASK
    return replace(settings, **own | values | more)


def _parse(name: str, value: Any) -> Any:
    text, fix = str(value), "correct the value and send it again"
    try:
        if len(text) > MAX_TEXT_CHARS:
            raise ValueError(f"a text of at most {MAX_TEXT_CHARS:,} characters")
        return declared_fields()[name].parse(text)
    except ValueError as error:
        raise SettingsError(f"{name} must be {error}", fix=fix, guide="serve") from error


def _folder_within(settings: Settings, name: str) -> Path:
    """Return the folder `name`, which is relative to the server's folder, or is an absolute path in
    it. Raises `SettingsError` if there is no such folder."""
    whole = settings.files.resolve() if settings.files is not None else None
    folder = (whole / _short(name)).resolve() if whole is not None and "\0" not in name else None
    if whole is None or folder is None or not folder.is_relative_to(whole) or not folder.is_dir():
        raise SettingsError(
            "this server does not offer this folder",
            why="the server offers the folder of its option --files, and the folders in it",
            fix="babyagi serve --files FOLDER",
            guide="serve",
        )
    return folder


def given_limits(call: Call, body: LimitFields) -> dict[str, Any]:
    """Return the limits in the request, parsed as settings. Raises `BadRequestError` if one is
    higher than the server's own limit, unless the client's key has the level admin."""
    given = {name: getattr(body, name) for name in LIMIT_NAMES}
    limits = {name: _parse(name, one) for name, one in given.items() if one is not None}
    for name, value in limits.items():
        most = getattr(call.desk.settings, name)
        if call.level < Level.ADMIN and most and not 0 < value <= most:
            raise _too_high(name, most)
    return limits


def _too_high(name: str, most: float) -> BadRequestError:
    fix = "only a key of the level admin can set a higher limit"
    return BadRequestError(403, f"{name} may be at most {most:g}", fix)


async def status(call: Call) -> Answer:
    """Show the state of an objective."""
    stand = await verbs.find_stand(call.store, await call.objective())
    return Answer(value=json_shapes.stand_shape(stand))


async def why_objective(call: Call) -> Answer:
    """Say why an objective makes no progress, or what is being done for it."""
    reason = await verbs.why_objective(call.store, await call.objective())
    return Answer(value={"v": json_shapes.VERSION, **json_shapes.why_shape(reason)})


async def delete(call: Call) -> Answer:
    """Delete an objective and its data for good."""
    found = await call.objective()
    trouble = await verbs.delete_whole(call.store, call.desk.settings, found)
    return Answer(value={"v": json_shapes.VERSION, "deleted": [found.id], "trouble": trouble})


async def prune(call: Call) -> Answer:
    """Delete for good all objectives that ended long ago, or that never got an answer."""
    body: Pruning = call.body
    days = _within(body.older_than_days, "older_than_days", 0, 36_500)
    going = await verbs.find_prunable(call.store, before=utc_now() - timedelta(days=days))
    for one in going:
        await verbs.delete_whole(call.store, call.desk.settings, one.objective)
    return Answer(value=json_shapes.prunable_shape(going))


async def pause(call: Call) -> Answer:
    """Pause an objective: workers make no more calls for it."""
    return _row(await verbs.pause(call.store, await call.objective()))


async def resume(call: Call) -> Answer:
    """Resume a paused objective: workers continue it."""
    return _row(await verbs.resume(call.store, await call.objective()))


async def cancel(call: Call) -> Answer:
    """End an objective; its results are kept."""
    return _row(await verbs.cancel(call.store, await call.objective()))


async def extend(call: Call) -> Answer:
    """Set new limits for an objective."""
    limits = given_limits(call, call.body)
    if not limits:
        raise BadRequestError(422, "no limit is given", "send a limit, such as max_tasks")
    return _row(await verbs.extend(call.store, await call.objective(), limits))


async def ask_further(call: Call) -> Answer:
    """Ask a further question, which the objective then has to answer as well."""
    body: Question = call.body
    given = given_limits(call, body)
    found = await call.objective()
    limits: Limits | None = replace(found.spec.limits, **given) if given else None
    app = call.desk.app.beside()
    found = await app.ask_further(found, _short(body.question), limits=limits)
    return _row((found, await call.store.counts(found.id)))


def _row(row: verbs.Row) -> Answer:
    return Answer(value=json_shapes.status_shape(*row))


# -- tasks
# --------------------------------------------------------------------------------------------------


async def list_tasks(call: Call) -> Answer:
    """List the tasks of an objective in the order in which they will be started."""
    query: TasksQuery = call.query
    objective = await call.objective()
    facts = await find_facts(call.store, objective.id)
    limit = _within(query.limit, "limit", 1, MAX_LISTED)
    after = await call.store.task(objective.id, query.after) if query.after else None
    shown, has_more = await read_tasks(call.store, objective.id, query, after, limit)
    reasons = await explain_tasks(call.store, facts, shown)
    shapes = list(map(json_shapes.listed_task_shape, shown, reasons))
    return Answer(value=shapes, next={"after": shown[-1].id} if has_more else None)


async def read_tasks(
    store: TaskStore, objective_id: int, query: TasksQuery, after: Task | None, limit: int
) -> tuple[list[Task], bool]:
    """Return at most `limit` tasks with the wanted statuses, which follow the task `after` (None:
    from the beginning), and whether there are more."""
    wanted, found = query.status or tuple(TaskStatus), list[Task]()
    async for page in verbs.walk_tasks(store, objective_id, wanted, after=after, limit=limit + 1):
        found += page
        if len(found) > limit:
            break
    return found[:limit], len(found) > limit


async def show_task(call: Call) -> Answer:
    """Show a task with its prompts, replies and tool calls."""
    query: ShowQuery = call.query
    shown = await verbs.fetch_task(call.store, await call.objective(), call.task_id())
    return _show(call, shown, only=query.step)


async def show_duty(call: Call) -> Answer:
    """Show the calls of one duty (work for the whole objective): plan, order, check or report."""
    query: ShowQuery = call.query
    duty = next((one for one in verbs.SHOWN_DUTIES if one.value == call.path["duty"]), None)
    if duty is None:
        raise NotFoundError(
            "there is no such duty",
            why="the duties, which are work for a whole objective, are plan, order, check, report",
            fix="end the path with one of these",
        )
    shown = await verbs.fetch_duty(call.store, await call.objective(), duty, only=query.step)
    return _show(call, shown, only=query.step)


def _show(call: Call, shown: verbs.Shown, *, only: int | None) -> Answer:
    secrets = call.desk.settings.known_secrets
    return Answer(value=json_shapes.shown_shape(shown, secrets, only=only))


async def why_task(call: Call) -> Answer:
    """Say why a task is not running, and what would change that."""
    reason = await verbs.why_task(call.store, await call.objective(), call.task_id())
    return Answer(value={"v": json_shapes.VERSION, **json_shapes.why_shape(reason)})


async def add_task(call: Call) -> Answer:
    """Add a task to the list of an objective."""
    body: Addition = call.body
    to, name = Place.FIRST if body.first else Place.LAST, _short(body.name)
    objective = await call.objective()
    changed = await verbs.add_task(call.store, objective, name, to=to, after=body.after)
    return Answer(value=json_shapes.changed_shape(changed), status=201)


async def move_task(call: Call) -> Answer:
    """Move a queued task to another place of the list."""
    body: Move = call.body
    if (body.to is None) == (body.before is None):
        fix = 'send {"to": "first"} or {"before": 3}'
        raise BadRequestError(422, "the new position is missing", fix)
    to: Place | int = Place.LAST if body.before is None else body.before
    to = Place.FIRST if body.to == "first" else to
    objective = await call.objective()
    return _changed(await verbs.move_task(call.store, objective, call.task_id(), to=to))


async def edit_task(call: Call) -> Answer:
    """Replace a queued task by another task."""
    body: NewName = call.body
    objective = await call.objective()
    return _changed(await verbs.edit_task(call.store, objective, call.task_id(), _short(body.name)))


async def skip_task(call: Call) -> Answer:
    """Cancel a queued or waiting task."""
    return _changed(await verbs.skip_task(call.store, await call.objective(), call.task_id()))


async def retry_task(call: Call) -> Answer:
    """Try a task again that was given up (status dead)."""
    return _changed(await verbs.retry_task(call.store, await call.objective(), call.task_id()))


def _changed(changed: verbs.Changed) -> Answer:
    return Answer(value=json_shapes.changed_shape(changed))


# -- results, reports, the log
# --------------------------------------------------------------------------------------------------


async def list_results(call: Call) -> Answer:
    """List the results of the finished tasks."""
    query: PageQuery = call.query
    objective_id, limit = (await call.objective()).id, _within(query.limit, "limit", 1, MAX_LISTED)
    ids = await call.store.result_ids(objective_id)
    if query.after:
        if query.after not in ids:
            raise NotFoundError(f"task {query.after} has no result", fix=SEE_LISTS)
        ids = ids[ids.index(query.after) + 1 :]
    found = await call.store.results(objective_id, task_ids=ids[:limit])
    made = await find_artifacts(call.store, found)
    shapes = [json_shapes.result_shape(one, made) for one in found]
    return Answer(value=shapes, next={"after": ids[limit - 1]} if len(ids) > limit else None)


async def search(call: Call) -> Answer:
    """Find the results that are nearest to a text."""
    query: SearchQuery = call.query
    text = _short(query.text)
    if not text.strip():
        raise BadRequestError(422, "the text to search for is blank")
    k, objective = _within(query.k, "k", 1, 100), await call.objective()
    async with call.desk.app.beside().open_results(objective) as opened:
        ranking = await opened.search(text, k=int(k), in_all=query.all_objectives)
    return Answer(value=json_shapes.search_shape(objective, text, ranking))


async def report(call: Call) -> Answer:
    """Return the report of an objective, as JSON, Markdown or HTML."""
    query: ReportQuery = call.query
    objective = await call.objective()
    markdown = await load_report(call.store, objective, offload=asyncio.to_thread)
    name = f"objective-{objective.id}.{query.format}"
    kind, text = "markdown", markdown
    if query.format == "html":
        load = partial(load_page, now=utc_now(), offload=asyncio.to_thread)
        kind, text = "html", await load(call.store, objective, markdown)
    if query.format != "json":
        data, type_ = text.encode("utf-8", "replace"), f"text/{kind}; charset=utf-8"
        return Answer(text=data, media_type=type_, file_name=name)
    sources = await load_sources(call.store, objective)
    made = await load_artifacts(call.store, objective)
    return Answer(value=json_shapes.report_shape(objective, markdown, sources, made))


async def log(call: Call) -> Answer:
    """List the events of an objective."""
    query: LogQuery = call.query
    objective = await call.objective()
    limit = int(_within(query.limit, "limit", 1, MAX_LISTED))
    found = await call.store.history(
        objective.id, after_id=query.after, task_id=query.task, limit=limit
    )
    shapes = [json_shapes.event_shape(event) for event in found]
    return Answer(value=shapes, next={"after": found[-1].id} if len(found) == limit else None)


# -- the inbox
# --------------------------------------------------------------------------------------------------


async def inbox(call: Call) -> Answer:
    """List the requests of tasks that wait for a person."""
    store, settings = call.store, call.desk.settings
    steps = await store.inbox(await _chosen_id(call))
    requests = [await verbs.gather_request(store, step, settings, among=steps) for step in steps]
    return Answer(value=[json_shapes.request_shape(one) for one in requests])


async def show_request(call: Call) -> Answer:
    """Show one request of a task that waits for a person."""
    return Answer(value=json_shapes.request_shape(await _request(call)))


async def _chosen_id(call: Call) -> int | None:
    """Return the id of the objective that the query names; None if it names none."""
    query: ObjectiveQuery = call.query
    return (await pick_objective(call.store, query.objective)).id if query.objective else None


async def _request(call: Call) -> verbs.Request:
    step = await call.store.open_step(parse_id(call.path["number"], "request"))
    return await verbs.gather_request(call.store, step, call.desk.settings)


async def answer(call: Call) -> Answer:
    """Answer the request of a task, which then continues."""
    body: Words = call.body
    return await _decide(call, Decision.ANSWER, _short(body.text))


async def reject(call: Call) -> Answer:
    """Refuse the request of a task, which then continues without what it requested."""
    body: Why = call.body
    return await _decide(call, Decision.REJECT, _short(body.why))


async def approve(call: Call) -> Answer:
    """Allow the tool call that a task requests.

    If the request has a preview, its field `seen` must be sent, so that nothing else is approved
    than what the person saw.
    """
    body: Seen = call.body
    if call.made is not None:
        return await _decide(call, Decision.APPROVE, "")
    request = await _request(call)
    state = request.preview.state if request.preview is not None else ""
    if not hmac.compare_digest(body.seen.encode(), state.encode()):
        raise BadRequestError(
            409,
            "what the tool call would change is no longer what you were shown",
            "get the task's open request again, and send its new `seen`",
        )
    return await _decide(call, Decision.APPROVE, "", seen=request)


async def _decide(
    call: Call, decision: Decision, text: str, *, seen: verbs.Request | None = None
) -> Answer:
    if call.made is not None:  # else it no longer waits
        return Answer(value=json_shapes.decided_shape(call.made, decision))
    request = seen or await _request(call)
    home = call.desk.settings.home
    step = await verbs.settle(call.store, request.step, decision, text, home=home, seen=seen)
    return Answer(value=json_shapes.decided_shape(step, decision))


# -- schedules
# --------------------------------------------------------------------------------------------------


async def list_schedules(call: Call) -> Answer:
    """List schedules, each with its next tick (start of an objective)."""
    query: SchedulesQuery = call.query
    found = await call.store.schedules(with_removed=query.with_removed)
    return Answer(value=[json_shapes.schedule_shape(one) for one in found])


async def add_schedule(call: Call) -> Answer:
    """Add a schedule."""
    body: NewSchedule = call.body
    app, timing = _app_of(call, body), _timing_of(call, body)
    return replace(_schedule(await app.add_schedule(timing)), status=201)


def _timing_of(call: Call, body: NewSchedule) -> Timing:
    usd = body.daily_limit_usd
    if usd is not None and call.level < Level.ADMIN and not 0 < usd <= DAILY_LIMIT_USD:
        raise _too_high("daily_limit_usd", DAILY_LIMIT_USD)
    names = "cron every at tz grace overlap catch_up jitter".split()
    daily_limit = usd if usd is None else _within(usd, "daily_limit_usd", 0, MAX_USD)
    return Timing(**{name: getattr(body, name) for name in names}, daily_limit=daily_limit)


async def show_schedule(call: Call) -> Answer:
    """Show a schedule, and the outcomes of its ticks."""
    query: TicksQuery = call.query
    limit = int(_within(query.limit, "limit", 1, MAX_LISTED))
    found = await call.store.schedule(call.schedule_id())
    ticks = await call.store.ticks(found.id, limit=limit)
    shape = {"ticks": [json_shapes.tick_shape(one) for one in ticks]}
    return Answer(value={**_schedule(found).value, **shape})


async def pause_schedule(call: Call) -> Answer:
    """Pause a schedule: ticks that are due meanwhile are skipped."""
    return _schedule(await call.store.pause_schedule(call.schedule_id()))


async def resume_schedule(call: Call) -> Answer:
    """Resume a paused schedule; its next tick fires again."""
    return _schedule(await call.store.resume_schedule(call.schedule_id()))


async def remove_schedule(call: Call) -> Answer:
    """Remove a schedule; the objectives that it has started continue."""
    return _schedule(await call.store.remove_schedule(call.schedule_id()))


def _schedule(found: Schedule) -> Answer:
    return Answer(value={"v": json_shapes.VERSION, "schedule": json_shapes.schedule_shape(found)})


# -- the store, its workers and its index
# --------------------------------------------------------------------------------------------------


async def workers(call: Call) -> Answer:
    """List the workers, and what each works on."""
    return Answer(value=[json_shapes.worker_shape(one) for one in await call.store.workers()])


async def index_status(call: Call) -> Answer:
    """Show how many results of each objective are indexed."""
    selector, store = call.query.objective, call.store
    found = [await pick_objective(store, selector)] if selector else await store.objectives()
    name = describe_index(call.desk.settings)
    rows = [await load_index_status(store, one) for one in found]
    return Answer(value=[json_shapes.index_status_shape(row, index=name) for row in rows])


async def index_check(call: Call) -> Answer:
    """Compare the index of an objective's results with the task store."""
    objective = await call.objective()
    async with call.desk.app.beside().open_results(objective) as opened:
        found = await opened.check()
    return Answer(value=json_shapes.index_check_shape(objective, found))


async def index_rebuild(call: Call) -> Answer:
    """Rebuild the index of an objective."""
    objective, model = await call.objective(), call.body.embedding_model
    async with call.desk.app.beside().open_results(objective, model=model) as opened:
        n_results = await opened.rebuild(lambda _done, _all: None, model=model)
    shape = {"objective_id": objective.id, "n_results": n_results}
    return Answer(value={"v": json_shapes.VERSION, **shape})


async def verify(call: Call) -> Answer:
    """Check every row of the task store for damage."""
    found = await call.store.verify(await _chosen_id(call))
    return Answer(value=json_shapes.verification_shape(found))


async def metrics(call: Call) -> Answer:
    """Return metrics of the task store, as text for Prometheus."""
    text = await read_metrics(call.store)
    return Answer(text=text.encode(), media_type=PROMETHEUS)


async def new_code(call: Call) -> Answer:
    """Return a one-time code, with which a browser opens a session within two minutes."""
    body: NewCode = call.body
    return Answer(value={"code": call.desk.keys.new_code(Level[body.level.upper()])}, status=201)


def _within(value: float, name: str, least: float, most: float) -> Any:
    if not least <= value <= most:
        raise BadRequestError(422, f"{name} must be from {least:,} to {most:,}")
    return value


def _short(text: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        raise BadRequestError(422, f"a text is longer than {MAX_TEXT_CHARS:,} characters")
    return text


# -- the list
# --------------------------------------------------------------------------------------------------

Run = Callable[[Call], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One route of the API.

    Attributes:
        run: the function that answers; None for a stream of events.
        level: the lowest level that the client's key must have.
        commands: the commands that do the same on the command line.
        query: the type of the query parameters.
        body: the type of the body; None if there is no body.
        status: the HTTP status of a success.
        finds: whether it can find something that exists in the place of creating it, which is a
            success with the status 200.
        gives: `TEXT` if the answer can be other than JSON.
        takes_key: whether the operation observes an Idempotency-Key. Its first write must then be
            its whole effect, or the rest of it must do no harm when it is done again.
        streams: the summary of a stream of events, in the place of a docstring of `run`.
    """

    method: str
    path: str
    run: Run | None
    level: Level = Level.READ
    commands: tuple[str, ...] = ()
    query: type = Nothing
    body: type | None = None
    status: int = 200
    finds: bool = False
    gives: str = ""
    takes_key: bool = False
    streams: str = ""

    @property
    def says(self) -> str:
        """The summary in the OpenAPI document: the first line of the docstring of `run`."""
        return self.streams or (self.run.__doc__ or "").partition("\n")[0]

    @property
    def name(self) -> str:
        if self.run is not None:
            return self.run.__name__
        return re.sub("[{}]", "", self.path.strip("/")).replace("/", "_")


def _look(path: str, run: Run, *commands: str, **more: Any) -> Operation:
    return Operation(method="GET", path=path, run=run, commands=commands, **more)


def _change(path: str, run: Run, *commands: str, **more: Any) -> Operation:
    with_level = {"level": Level.STEER, "body": Nothing, "takes_key": True, **more}
    return Operation(method="POST", path=path, run=run, commands=commands, **with_level)


def _stream(path: str, whose: str, *commands: str) -> Operation:
    return Operation(
        method="GET",
        path=path,
        run=None,
        commands=commands,
        streams=f"Stream the events of {whose} (text/event-stream).",
        query=EventsQuery,
        gives=TEXT,
    )


_ONE = "/objectives/{objective}"
_TASK = f"{_ONE}/tasks/{{task}}"
_SCHEDULE = "/schedules/{schedule}"

_REPEATABLE: dict[str, Any] = {"level": Level.ADMIN, "takes_key": False}  # twice does no harm

METRICS = _look("/metrics", metrics, "store metrics", gives=TEXT)
"""This operation has a second path, `/metrics`, where Prometheus expects it."""

OPERATIONS: tuple[Operation, ...] = (
    _look("/objectives", list_objectives, "show objectives", query=ObjectivesQuery),
    _change("/objectives", submit, "submit", body=Submission, status=201, finds=True),
    _change("/objectives/prune", prune, "store delete", body=Pruning, **_REPEATABLE),
    _look(_ONE, status, "status"),
    Operation(
        method="DELETE", path=_ONE, run=delete, commands=("store delete",), level=Level.ADMIN
    ),
    _look(f"{_ONE}/why", why_objective, "show"),
    _change(f"{_ONE}/pause", pause, "pause"),
    _change(f"{_ONE}/resume", resume, "resume"),
    _change(f"{_ONE}/cancel", cancel, "cancel"),
    _change(f"{_ONE}/extend", extend, "extend", body=LimitFields),
    _change(f"{_ONE}/questions", ask_further, "run --continue", body=Question),
    _look(f"{_ONE}/tasks", list_tasks, "tasks", "show tasks", query=TasksQuery),
    _change(f"{_ONE}/tasks", add_task, "tasks add", body=Addition, status=201),
    _look(_TASK, show_task, "show", query=ShowQuery),
    _look(f"{_TASK}/why", why_task, "show"),
    _change(f"{_TASK}/move", move_task, "tasks move", body=Move),
    _change(f"{_TASK}/edit", edit_task, "tasks edit", body=NewName),
    _change(f"{_TASK}/skip", skip_task, "tasks skip"),
    _change(f"{_TASK}/retry", retry_task, "tasks retry"),
    _look(f"{_ONE}/duties/{{duty}}", show_duty, "show", query=ShowQuery),
    _look(f"{_ONE}/results", list_results, "show results", query=PageQuery),
    _look(f"{_ONE}/results/search", search, "show results", query=SearchQuery),
    _look(f"{_ONE}/report", report, "report", query=ReportQuery, gives=TEXT),
    _look(f"{_ONE}/log", log, "show log", query=LogQuery),
    _stream(f"{_ONE}/events", "an objective", "watch"),
    _stream("/events", "all objectives"),
    _look("/inbox", inbox, "inbox", query=ObjectiveQuery),
    _look("/inbox/{number}", show_request, "inbox"),
    _change("/inbox/{number}/answer", answer, "inbox answer", body=Words),
    _change("/inbox/{number}/approve", approve, "inbox approve", body=Seen),
    _change("/inbox/{number}/reject", reject, "inbox reject", body=Why),
    _look("/schedules", list_schedules, "schedule", query=SchedulesQuery),
    _change("/schedules", add_schedule, "schedule add", body=NewSchedule, status=201),
    _look(_SCHEDULE, show_schedule, "schedule", query=TicksQuery),
    _change(f"{_SCHEDULE}/pause", pause_schedule, "schedule pause"),
    _change(f"{_SCHEDULE}/resume", resume_schedule, "schedule resume"),
    _change(f"{_SCHEDULE}/remove", remove_schedule, "schedule remove"),
    _look("/workers", workers, "show workers"),
    _look("/index", index_status, "store", query=ObjectiveQuery),
    _look(f"{_ONE}/index/check", index_check, "store verify"),
    _change(
        f"{_ONE}/index/rebuild", index_rebuild, "store rebuild", body=Rebuilding, **_REPEATABLE
    ),
    _look("/journal/verify", verify, "store verify", query=ObjectiveQuery, level=Level.ADMIN),
    METRICS,
    _change("/codes", new_code, "serve open", body=NewCode, status=201, **_REPEATABLE),
)
