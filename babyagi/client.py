"""A program's client of objectives and tasks: every verb of the table as an async method.

`Client(home=…)` opens the task store of a home folder, `Client(url=…, token=…)` asks a server that
`babyagi serve` runs. Values and errors are the same by both ways. It works on no objective: workers
do, or `babyagi.run`.
"""

# mypy: disable-error-code="empty-body"
# methods are signatures, which `_method` carries out

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import cache, partial, wraps
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Unpack

from babyagi.app.application import open_app, open_app_to_look
from babyagi.app.backends import has_store, open_store
from babyagi.app.options import names_of, rename, require_known
from babyagi.errors import (
    BabyagiError,
    CredentialsError,
    LimitReachedError,
    NotFoundError,
    RequestError,
    SettingsError,
    StoreUnavailableError,
    by_kind,
)
from babyagi.runtime.heavy_imports import import_whole
from babyagi.settings.fields import Settings, declared_fields
from babyagi.settings.load import load_here
from babyagi.verbs import json_shapes
from babyagi.verbs.verb_table import (
    BASE,
    MAX_LISTED,
    SEE_LISTS,
    VERBS,
    Call,
    Desk,
    LimitOptions,
    ScheduleOptions,
    SubmitOptions,
    Verb,
    carry_out,
    clean_json,
    pick_objective,
    read_given,
)
from babyagi.worker.notify import event_fields

if TYPE_CHECKING:
    import httpx2
    from pydantic import TypeAdapter

Selector = int | Literal["latest"]
"""Chooses an objective by its number, or the one that was used or created last."""

OUTSIDE = "use the client within: async with babyagi.Client(…) as client"
TIMEOUT_S = 120.0
CREATING = ("submit", "add_schedule")  # verbs that may create a home
SILENCE_S = 60.0  # a stream says something at least every 15 s
LOOK_S = 5.0
VERB_BY_NAME = {verb.name: verb for verb in VERBS}

P = ParamSpec("P")
R = TypeVar("R")
Send = Callable[[Verb, Mapping[str, str], Mapping[str, Any], str], Awaitable[bytes]]
Listen = Callable[[Selector, int | None], AsyncGenerator[bytes, None]]


def _method(declared: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Make a method of its signature and its docstring: it sends its arguments to the verb with its
    name, and returns the answer as the type that the table names."""
    signature, name = inspect.signature(declared), declared.__name__

    @wraps(declared)
    async def method(*args: P.args, **options: P.kwargs) -> R:
        arguments = signature.bind(*args, **options).arguments
        client: Client = arguments.pop("self")
        arguments |= arguments.pop("options", {})
        return await client._do(name, arguments.pop("key", ""), arguments)  # type: ignore[no-any-return]

    return method


class Client:
    """An async context manager with a method for each verb.

        async with babyagi.Client(url="http://127.0.0.1:8642", token=token) as client:
            made = await client.submit("Compare the offers", key="offers-of-may")
            status = await client.status(made.objective_id)

    Lists come in pages: `after` is the id of the last item of the page before. A change with a
    `key` takes effect once, however often it is sent; the first answer is returned again.

    Args:
        home: the home folder whose task store is opened; without it and without `url`, that of the
            settings.
        url: the address of a server.
        token: the server's token (`babyagi serve open --token steer` prints one).
        settings: settings of this home by name, such as `model` and `tools`, as for `run`.

    Raises:
        TypeError: a setting is unknown, or belongs to a home and a `url` is given.
        BabyagiError: from each method; its text says what to do.
    """

    def __init__(
        self, *, home: str | Path | None = None, url: str = "", token: str = "", **settings: Any
    ) -> None:
        if (url and (home is not None or settings)) or (token and not url):
            raise TypeError("Client takes a home with its settings, or a url with its token")
        given = {**({} if home is None else {"home": home}), **settings}
        names = frozenset(declared_fields()) | {"first_task", "model", "url", "token"}
        require_known(given, names | names_of(LimitOptions), "Client")
        self._settings = rename(given, "Client")
        self._url, self._token = url, token
        self._stack = AsyncExitStack()
        self._send: Send | None = None
        self._listen: Listen | None = None

    async def __aenter__(self) -> Client:
        if self._url:
            opened = _open_there(self._url.rstrip("/"), self._token)
        else:
            opened = _open_here(self._settings)
        self._send, self._listen = await self._stack.enter_async_context(opened)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._send = self._listen = None
        await self._stack.aclose()

    async def _do(self, name: str, key: str, arguments: dict[str, Any]) -> Any:
        if self._send is None:
            raise RuntimeError(OUTSIDE)
        verb = VERB_BY_NAME[name]
        in_path = [field for _, field, _, _ in Formatter().parse(verb.path) if field]
        path = {field: _name(field, arguments.pop(field)) for field in in_path}
        given = {field: one for field, one in arguments.items() if one is not None}
        if "objective" in given:  # a text, or the number of one that a query names
            given["objective"] = str(given["objective"])
        return _reader(verb.returns).validate_json(await self._send(verb, path, given, key))

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    @_method
    async def list_objectives(
        self,
        *,
        words: str = "",
        state: Literal["active", "ended"] | None = None,
        after: int = 0,
        limit: int = MAX_LISTED,
    ) -> list[json_shapes.Objective]:
        """List objectives, the newest last; only those with all the words."""

    @_method
    async def submit(
        self, objective: str, *, key: str = "", **options: Unpack[SubmitOptions]
    ) -> json_shapes.Submitted:
        """Queue an objective for workers. The same objective is created once, unless `new`."""

    @_method
    async def status(self, objective: Selector) -> json_shapes.Stand:
        """Show the state of an objective."""

    @_method
    async def pause(self, objective: Selector, *, key: str = "") -> json_shapes.Status:
        """Pause an objective: workers make no more calls for it."""

    @_method
    async def resume(self, objective: Selector, *, key: str = "") -> json_shapes.Status:
        """Resume a paused objective: workers continue it."""

    @_method
    async def cancel(self, objective: Selector, *, key: str = "") -> json_shapes.Status:
        """End an objective; its results are kept."""

    @_method
    async def extend(
        self, objective: Selector, *, key: str = "", **options: Unpack[LimitOptions]
    ) -> json_shapes.Status:
        """Set new limits for an objective; the others stay."""

    @_method
    async def ask_further(
        self, objective: Selector, question: str, *, key: str = "", **options: Unpack[LimitOptions]
    ) -> json_shapes.Status:
        """Ask a further question, which the objective then has to answer as well."""

    @_method
    async def delete(self, objective: Selector) -> json_shapes.Deleted:
        """Delete an objective and its data for good."""

    # -- tasks
    # ----------------------------------------------------------------------------------------------

    @_method
    async def list_tasks(
        self,
        objective: Selector,
        *,
        status: Sequence[str] = (),
        after: int = 0,
        limit: int = MAX_LISTED,
    ) -> list[json_shapes.ListedTask]:
        """List the tasks of an objective in the order in which they will be started."""

    @_method
    async def show_task(
        self, objective: Selector, task: int, *, step: int | None = None
    ) -> json_shapes.ShownTask:
        """Show a task with its prompts, replies and tool calls."""

    @_method
    async def show_duty(
        self,
        objective: Selector,
        duty: Literal["plan", "order", "check", "report"],
        *,
        step: int | None = None,
    ) -> json_shapes.ShownDuty:
        """Show the calls of one duty: work for the whole objective."""

    @_method
    async def add_task(
        self,
        objective: Selector,
        name: str,
        *,
        first: bool = False,
        after: Sequence[int] = (),
        key: str = "",
    ) -> json_shapes.Changed:
        """Add a task to the list of an objective, which becomes active again if it had ended."""

    @_method
    async def move_task(
        self,
        objective: Selector,
        task: int,
        *,
        to: Literal["first", "last"] | None = None,
        before: int | None = None,
        key: str = "",
    ) -> json_shapes.Changed:
        """Move a queued task to an end of the list, or before another task."""

    @_method
    async def edit_task(
        self, objective: Selector, task: int, name: str, *, key: str = ""
    ) -> json_shapes.Changed:
        """Replace a queued task by another task."""

    @_method
    async def skip_task(
        self, objective: Selector, task: int, *, key: str = ""
    ) -> json_shapes.Changed:
        """Cancel a queued or waiting task."""

    @_method
    async def retry_task(
        self, objective: Selector, task: int, *, key: str = ""
    ) -> json_shapes.Changed:
        """Try a task again that was given up (status dead)."""

    # -- results, reports, events
    # ----------------------------------------------------------------------------------------------

    @_method
    async def list_results(
        self, objective: Selector, *, after: int = 0, limit: int = MAX_LISTED
    ) -> list[json_shapes.Result]:
        """List the results of the finished tasks; `after` is a task."""

    @_method
    async def search(
        self, objective: Selector, text: str, *, k: int = 5, all_objectives: bool = False
    ) -> json_shapes.Hits:
        """Find the results that are nearest to a text."""

    @_method
    async def report(self, objective: Selector) -> json_shapes.Report:
        """Return the report of an objective. Raises `NotFoundError` if it is not written yet."""

    @_method
    async def log(
        self,
        objective: Selector,
        *,
        task: int | None = None,
        after: int = 0,
        limit: int = MAX_LISTED,
    ) -> list[json_shapes.Event]:
        """List the events of an objective."""

    async def events(
        self, objective: Selector, *, after: int | None = None
    ) -> AsyncGenerator[json_shapes.Event, None]:
        """Yield the events of an objective as they happen, until the loop is left. The end of an
        objective is an event as well.

        Args:
            after: the id of the last event that is known; None begins with the next event.

        Raises:
            NotFoundError: the objective does not exist, or was deleted.
            StoreUnavailableError: the server ended the stream; `after` goes on.
        """
        if self._listen is None:
            raise RuntimeError(OUTSIDE)
        async with aclosing(self._listen(objective, after)) as told:
            async for data in told:
                yield _reader(json_shapes.Event).validate_json(data)

    # -- the inbox
    # ----------------------------------------------------------------------------------------------

    @_method
    async def inbox(self, *, objective: Selector | None = None) -> list[json_shapes.Request]:
        """List the requests of tasks that wait for a person."""

    @_method
    async def show_request(self, number: int) -> json_shapes.Request:
        """Show one request of a task that waits for a person."""

    @_method
    async def answer(self, number: int, text: str, *, key: str = "") -> json_shapes.Decided:
        """Answer the request of a task, which then continues."""

    @_method
    async def approve(
        self, number: int, *, seen: str = "", always: bool = False, key: str = ""
    ) -> json_shapes.Decided:
        """Allow the tool call that a task requests. `seen` is that of the request as it was read,
        so that nothing else is approved. `always`: allow all that goes to the same host in this
        run, unasked."""

    @_method
    async def reject(self, number: int, *, why: str = "", key: str = "") -> json_shapes.Decided:
        """Refuse the request of a task, which then continues without what it requested."""

    # -- schedules
    # ----------------------------------------------------------------------------------------------

    @_method
    async def list_schedules(self, *, with_removed: bool = False) -> list[json_shapes.Schedule]:
        """List schedules, each with its next tick (start of an objective)."""

    @_method
    async def add_schedule(
        self, objective: str, *, key: str = "", **options: Unpack[ScheduleOptions]
    ) -> json_shapes.OneSchedule:
        """Start an objective at certain times."""

    @_method
    async def show_schedule(self, schedule: int, *, limit: int = 20) -> json_shapes.ShownSchedule:
        """Show a schedule, and the outcomes of its ticks."""

    @_method
    async def pause_schedule(self, schedule: int, *, key: str = "") -> json_shapes.OneSchedule:
        """Pause a schedule: ticks that are due meanwhile are skipped."""

    @_method
    async def resume_schedule(self, schedule: int, *, key: str = "") -> json_shapes.OneSchedule:
        """Resume a paused schedule; its next tick fires again."""

    @_method
    async def remove_schedule(self, schedule: int, *, key: str = "") -> json_shapes.OneSchedule:
        """Remove a schedule; the objectives that it has started continue."""

    @_method
    async def workers(self) -> list[json_shapes.Worker]:
        """List the workers, and what each works on."""


def _name(what: str, chosen: int | str) -> str:
    """Return the text that chooses an objective, a task, … in a path."""
    text = str(chosen)
    if not (text.isascii() and text.isalnum()):  # it would be another path
        raise NotFoundError(f"there is no such {what}: {text!r}", fix=SEE_LISTS)
    return text


@cache
def _reader(returns: Any) -> TypeAdapter[Any]:
    """Return what reads JSON into the type. Fields that it does not know are left out, because a
    newer server may send more."""
    import_whole("pydantic.type_adapter")
    from pydantic import TypeAdapter

    return TypeAdapter(returns)


# -- the task store of a home
# --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _open_here(flags: Mapping[str, Any]) -> AsyncIterator[tuple[Send, Listen]]:
    settings = load_here(flags)
    async with AsyncExitStack() as stack:
        desk, opening = None, asyncio.Lock()

        async def open_desk(*, creates: bool) -> Desk:
            nonlocal desk
            async with opening:
                if desk is None:
                    opened = open_app(settings, creates=creates)
                    desk = Desk(app=await stack.enter_async_context(opened))
            return desk

        async def do(verb: Verb, *call: Any) -> bytes:
            if desk is None and verb.method == "GET" and not has_store(settings):
                async with open_app_to_look(settings) as app:
                    return await _do_here(Desk(app=app), verb, *call)
            return await _do_here(await open_desk(creates=verb.name in CREATING), verb, *call)

        if has_store(settings):
            await open_desk(creates=True)
        yield do, partial(_listen_here, settings)


async def _do_here(
    desk: Desk, verb: Verb, path: Mapping[str, str], given: Mapping[str, Any], key: str
) -> bytes:
    where = "the body" if verb.has_body else "the query"
    read = read_given(clean_json(dict(given)), where, verb.given, is_strict=verb.has_body)
    answer = await carry_out(verb, Call(desk=desk, path=path, given=read), key)
    return json.dumps(answer.value).encode()


async def _listen_here(
    settings: Settings, objective: Selector, after: int | None
) -> AsyncGenerator[bytes, None]:
    # only one caller can wait for the changes of an opened store
    async with open_store(settings, only_looks=True) as store:
        id_ = (await pick_objective(store, str(objective), home=settings.home)).id
        last = await store.last_event_id(id_) if after is None else after
        while True:
            for event in await store.events(id_, after_id=last):
                last = event.id
                yield json.dumps(event_fields(event)).encode()
            await store.wait_for_events(id_, after_id=last, timeout_s=LOOK_S)


# -- a server
# --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _open_there(url: str, token: str) -> AsyncIterator[tuple[Send, Listen]]:
    import httpx2

    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(
        base_url=url + BASE, headers=headers, timeout=TIMEOUT_S, trust_env=False
    ) as http:
        yield partial(_do_there, http), partial(_listen_there, http)


async def _do_there(
    http: httpx2.AsyncClient,
    verb: Verb,
    path: Mapping[str, str],
    given: Mapping[str, Any],
    key: str,
) -> bytes:
    address = verb.path.format(**path)
    content: dict[str, Any] = {"json": dict(given)} if verb.has_body else {"params": dict(given)}
    headers = {"idempotency-key": key} if key else {}
    async with _translating(http):
        reply = await http.request(verb.method, address, headers=headers, **content)
    if not reply.is_success:
        raise _error_of(reply)
    return reply.content


async def _listen_there(
    http: httpx2.AsyncClient, objective: Selector, after: int | None
) -> AsyncGenerator[bytes, None]:
    address = f"/objectives/{_name('objective', objective)}/events"
    given = {} if after is None else {"after": after}
    async with (
        _translating(http),
        http.stream("GET", address, params=given, timeout=SILENCE_S) as reply,
    ):
        if not reply.is_success:
            await reply.aread()
            raise _error_of(reply)
        async for line in reply.aiter_lines():
            if line == "event: gone":
                raise NotFoundError(
                    f"objective {objective} was deleted", fix="babyagi show objectives lists all"
                )
            if line.startswith("data: "):
                yield line.removeprefix("data: ").encode()
    raise StoreUnavailableError(f"{http.base_url} ended the stream of events")


@asynccontextmanager
async def _translating(http: httpx2.AsyncClient) -> AsyncIterator[None]:
    import httpx2

    try:
        yield
    except httpx2.InvalidURL as error:
        raise SettingsError(
            f"this is not the address of a server: {http.base_url}",
            fix='Client(url="http://127.0.0.1:8642"), as babyagi serve prints it',
        ) from error
    except httpx2.HTTPError as error:
        raise StoreUnavailableError(
            f"{http.base_url} does not answer",
            why=str(error) or type(error).__name__,
            fix="babyagi serve starts a server",
            guide="serve",
        ) from error


def _error_of(reply: httpx2.Response) -> BabyagiError:
    """Return the error that a server's problem details describe."""
    try:
        said = reply.json()
    except ValueError:
        said = {}
    what = said.get("title", f"the server answers with the status {reply.status_code}")
    why, fix = said.get("detail", ""), said.get("try", "")
    kind = said.get("type", "").removeprefix("urn:babyagi:")
    if kind in ("door", "level"):
        return CredentialsError(what, why=why, fix=fix, guide="serve")
    found = by_kind().get(kind, BabyagiError)
    if found is RequestError:
        return RequestError(what, why, status=reply.status_code)
    if found is LimitReachedError:
        return LimitReachedError(what, limit=said.get("limit", ""), is_final=True, fix=fix)
    error = found.__new__(found, what)
    BabyagiError.__init__(error, what, why=why, fix=fix, guide=said.get("guide", ""))
    return error
