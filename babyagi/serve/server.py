"""The server process: it answers HTTP, and is also a worker, unless told otherwise. Signals stop it
as they stop a worker.

It defends itself against slow clients: it closes a connection on which the head or the body of a
request arrives too slowly, or an answer is read too slowly. If there are too many connections, it
closes the one that has said nothing whole for longest.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from babyagi.app.application import App
from babyagi.app.backends import max_descriptors, open_store, utc_now
from babyagi.errors import BabyagiError, RequestError, SettingsError
from babyagi.files import private
from babyagi.files.home import make_home
from babyagi.serve import board, door, wire
from babyagi.serve.feed import Feed
from babyagi.serve.operations import OPERATIONS, Desk, make_document
from babyagi.settings.fields import Settings
from babyagi.verbs.verb_table import (
    BASE,
    MAX_ID_DIGITS,
    METRICS,
    Answer,
    Call,
    EventsQuery,
    Verb,
    carry_out,
)
from babyagi.worker.process import Around, hearing_signals

logger = logging.getLogger(__name__)

HEAD_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 20.0
KEEP_ALIVE_S = 15
SHUTDOWN_S = 3
MAX_CONNECTIONS = 600
MAX_HEAD_BYTES = 32_000
BACKLOG = 512
ADDRESS_FILE = "serve_address"
TOKEN_LOOK_S = 1.0


def max_connections() -> int:
    """Return how many connections may be open. Half of what this process may open stays for the
    work, and for connections that are accepted before another one is closed: without a free
    descriptor none would be accepted, and so none would be closed."""
    return int(min(MAX_CONNECTIONS, max_descriptors() // 2))


class PatientProtocol(H11Protocol):
    """The HTTP protocol of uvicorn, with time limits for clients and a limit of connections."""

    _head_timer: asyncio.TimerHandle | None = None
    _write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > max_connections():
            self._make_room()
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head_timer()
        self._forget_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_asking():
            self._forget_head_timer()
        elif self._head_timer is None:
            self._expect_head()

    def send_400_response(self, msg: str) -> None:
        """Answer an invalid request with status 400. If the application is already answering, its
        answer is dropped."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # part of an answer was sent already
            self._give_up()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_asking():
            self._forget_head_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(WRITE_TIMEOUT_S, self._give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_write_timer()

    def _is_asking(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._give_up_idle)

    def _give_up_idle(self) -> None:
        self._head_timer = None
        if not self._is_asking():
            self._give_up()

    def _give_up(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _make_room(self) -> None:
        """Unless enough connections are closing already, close the one that has waited for longest
        for the rest of a head; if there is none, one that waits for no answer; if there is none
        either, this one."""
        others = [other for other in self.connections if isinstance(other, PatientProtocol)]
        open_ = [other for other in others if not other.transport.is_closing()]
        idle = [other for other in open_ if other is not self and not other._is_asking()]
        if len(open_) > max_connections():
            min(idle, key=PatientProtocol._head_until_s, default=self)._give_up()

    def _head_until_s(self) -> float:
        return math.inf if self._head_timer is None else self._head_timer.when()

    def _forget_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _forget_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


class _Server(uvicorn.Server):
    """A uvicorn server without handlers of signals, which the worker handles, and in whose queue
    more connections may wait than are accepted at once."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


# -- opening
# --------------------------------------------------------------------------------------------------


def find_token(settings: Settings) -> str:
    """Return the server's token: BABYAGI_SERVE_TOKEN if it is set, else the one in the home folder,
    which is created if it is missing."""
    make_home(settings.home)
    return settings.serve_token.reveal() or door.load_token(
        settings.home, new_token=lambda: secrets.token_urlsafe(32)
    )


def require_door(settings: Settings) -> None:
    """Raise `SettingsError` if the server's address can be reached from other machines, and
    BABYAGI_SERVE_TOKEN is not set."""
    if not door.is_local(settings.serve_host) and not settings.serve_token:
        raise SettingsError(
            f"{settings.serve_host} can be reached from other machines, and no token is set",
            why="without a token, only --host 127.0.0.1 is allowed",
            fix="set a token, such as BABYAGI_SERVE_TOKEN=$(openssl rand -hex 32)",
            guide="serve",
        )


def listen_at(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address. Raises `SettingsError` if the operating system
    refuses."""
    name = "127.0.0.1" if host == "localhost" else host.strip("[]")
    try:
        family = socket.AF_INET6 if ":" in name else socket.AF_INET
        return socket.create_server((name, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise SettingsError(
            f"the server cannot listen on {host}:{port}",
            why=error.strerror or str(error),
            fix="choose another port with --port; babyagi serve --port 0 takes any free one",
            guide="serve",
        ) from error


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def read_address(home: Path) -> str:
    """Return the URL of the server that was started last with this home folder and is running; ''
    if there is none."""
    return door.read_word(home / ADDRESS_FILE)


# -- running
# --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def open_server(app: App, *, tell: Callable[[str], None]) -> AsyncIterator[Desk]:
    """Answer HTTP during the `async with` block. Events are read over a separate connection to the
    task store."""
    settings = app.settings
    require_door(settings)
    keys = door.Keys(
        find_token(settings),
        now_s=lambda: utc_now().timestamp(),
        new_word=lambda: secrets.token_urlsafe(24),
    )
    listening = listen_at(settings.serve_host, settings.serve_port)
    url = url_of(listening)
    port = listening.getsockname()[1]
    names = door.Names(port=port, host=settings.serve_host, more=settings.serve_names)
    try:
        async with open_store(settings, tell=tell) as store:
            feed = Feed(store)
            desk = Desk(app=app, url=url, feed=feed, keys=keys)
            server = _Server(_configure(desk, names))
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(feed.watch())
                answering = group.create_task(server.serve(sockets=[listening]))
                looking = group.create_task(_watch_token(desk))
                # where `babyagi serve open` finds it
                private.write_file(settings.home / ADDRESS_FILE, url)
                try:
                    yield desk
                finally:
                    if read_address(settings.home) == url:
                        (settings.home / ADDRESS_FILE).unlink(missing_ok=True)
                    feed.stop()
                    server.should_exit = True
                    await asyncio.wait([answering], timeout=SHUTDOWN_S + 1)
                    for task in (looking, watching, answering):
                        task.cancel()
    finally:
        listening.close()


async def _watch_token(desk: Desk) -> None:
    """Use the token in the home folder as soon as it is renewed. Runs until it is cancelled; ends
    at once if the token comes from BABYAGI_SERVE_TOKEN."""
    while not desk.settings.serve_token:
        await asyncio.sleep(TOKEN_LOOK_S)
        token = door.read_word(desk.settings.home / door.TOKEN_FILE)
        if token and desk.keys.renew(token):
            desk.feed.send_away()
            logger.warning("the server's token was renewed; earlier keys and sessions have ended")


def _configure(desk: Desk, names: door.Names) -> uvicorn.Config:
    return uvicorn.Config(
        make_application(desk, names),
        http=PatientProtocol,
        backlog=int(min(BACKLOG, max_descriptors() // 16)),  # so many are accepted at once
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


async def serve(
    app: App,
    *,
    works: bool,
    around: Around,
    say: Callable[[str], None],
    tell: Callable[[str], None],
) -> int | None:
    """Answer HTTP until a signal stops the process, and return the signal's number.

    Args:
        works: whether to work on objectives as well, as a worker.
        around: awaits the work on an objective, which it is given, and shows it meanwhile.
        say: prints the server's URL.
        tell: prints that the task store is unavailable for a while.
    """
    async with open_server(app, tell=tell) as desk:
        say(f"The board is at {desk.url}; babyagi serve open shows it in a browser.")
        if works:
            return await app.serve_all(around)
        return await _wait_for_signal()


async def _wait_for_signal() -> int:
    heard = asyncio.Queue[int]()
    with hearing_signals(heard.put_nowait):
        return await heard.get()


# -- routes
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """The type of a query without parameters."""


MAX_LISTENERS = 300
READY_TIMEOUT_S = 5.0


def make_application(desk: Desk, names: door.Names) -> ASGIApp:
    """Return the web application: all routes, behind the middleware that checks keys."""
    routes = [
        Route("/healthz", _say_alive, methods=["GET"]),
        Route("/readyz", partial(_say_ready, desk), methods=["GET"]),
        Route(f"{BASE}/openapi.json", _give_document, methods=["GET"]),
        *(
            Route(BASE + one.path, partial(_answer, desk, one), methods=[one.method])
            for one in OPERATIONS
        ),
        Route("/metrics", partial(_answer, desk, METRICS), methods=["GET"]),
        *board.make_routes(desk, names),
    ]
    handlers: Any = {
        404: _say_missing,
        405: _say_wrong_method,
        BabyagiError: partial(_say_error, desk),
        Exception: _say_crash,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return door.Door(app, keys=desk.keys, names=names, refuse=_refuse)


async def _answer(desk: Desk, verb: Verb, request: Request) -> Response:
    """Do what the verb says if the client's key has its level."""
    level = request.scope[door.ACCESS].level
    if level < verb.level:
        title = f"this needs a key of the level {verb.level.word}"
        fix = f"babyagi serve open --token {verb.level.word} prints one"
        return wire.write_problem(403, title, fix, kind="level")
    if verb.run is None:
        return await _stream(desk, request)
    query = Nothing if verb.has_body else verb.given
    given = wire.parse_parameters(request.query_params.multi_items(), query)
    if verb.has_body:
        data = await wire.read_body(request)
        given = wire.parse_body(data, request.headers.get("content-type", ""), verb.given)
    key = request.headers.get("idempotency-key", "") if verb.takes_key else ""
    call = Call(desk=desk, path=request.path_params, given=given, level=level)
    answer = await carry_out(verb, call, key)
    return await asyncio.to_thread(wire.write_answer, answer, request)


async def _stream(desk: Desk, request: Request) -> Response:
    """Return a stream of the events after the last one that the listener has received. The id of
    that event is in the header `Last-Event-ID`, which browsers send when they reconnect, or in the
    parameter `after`. Without an id, the stream begins with the next event."""
    query = wire.parse_parameters(request.query_params.multi_items(), EventsQuery)
    if desk.feed.n_listeners >= MAX_LISTENERS:
        raise RequestError("there are too many listeners", "try again in a moment", status=503)
    selector = request.path_params.get("objective")
    objective_id = (await desk.pick(selector)).id if selector else None
    said = request.headers.get("last-event-id") or query.after
    if said and not (said.isascii() and said.isdecimal() and len(said) <= MAX_ID_DIGITS):
        raise RequestError(
            "the header Last-Event-ID, or the parameter `after`, is not the id of an event",
            "send the id of the last event that you received from this stream",
        )
    after = int(said) if said else await desk.store.last_event_id(objective_id)
    frames = desk.feed.listen(objective_id, after)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


async def _give_document(request: Request) -> Response:
    return wire.write_answer(Answer(value=make_document()), request)


# -- health checks
# --------------------------------------------------------------------------------------------------


async def _say_alive(_request: Request) -> Response:
    """Answer ok, also during an outage of the task store, because the process then recovers by
    itself and should not be killed."""
    return Response("ok\n", media_type="text/plain")


async def _say_ready(desk: Desk, _request: Request) -> Response:
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await desk.store.objectives(are_open=True)
    except (BabyagiError, TimeoutError):
        return Response("the task store does not answer\n", 503, media_type="text/plain")
    return Response("ready\n", media_type="text/plain")


# -- refusals
# --------------------------------------------------------------------------------------------------


def _refuse(refusal: RequestError, scope: Scope) -> Response:
    write = (
        board.render_message if door.wants_page(scope) else partial(wire.write_problem, kind="door")
    )
    response = write(refusal.status, refusal.what, refusal.why)
    response.headers["connection"] = "close"  # the rest of the request is not read
    return response


async def _say_error(desk: Desk, request: Request, error: BabyagiError) -> Response:
    write = board.render_error if door.wants_page(request.scope) else wire.write_error
    return write(error, desk.settings.known_secrets)


async def _say_missing(_request: Request, _error: Exception) -> Response:
    return wire.write_problem(404, "there is no such page", f"{BASE}/openapi.json lists the API")


async def _say_wrong_method(_request: Request, error: Exception) -> Response:
    response = wire.write_problem(405, "this path does not support the method")
    response.headers.update(getattr(error, "headers", None) or {})
    return response


async def _say_crash(_request: Request, _error: Exception) -> Response:
    detail = "this is a bug; no stored data is lost, and the server's log has the traceback"
    return wire.write_problem(500, "an unexpected error", detail, kind="unexpected")
