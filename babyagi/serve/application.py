"""The application of the server: which address is answered by what, behind the door."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from babyagi.errors import BabyagiError
from babyagi.serve import board
from babyagi.serve.door import ACCESS, Access, Door, Level, Names, Refusal
from babyagi.serve.feed import Place, parse_place
from babyagi.serve.openapi import BASE, make_document
from babyagi.serve.operations import (
    MAX_KEY_CHARS,
    METRICS,
    OPERATIONS,
    Call,
    Desk,
    EventsQuery,
    Operation,
    pick_objective,
)
from babyagi.serve.wire import (
    Answer,
    BadRequestError,
    parse_body,
    parse_parameters,
    read_body,
    write_answer,
    write_crash,
    write_error,
    write_problem,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MAX_LISTENERS = 300
READY_TIMEOUT_S = 5.0
Endpoint = Callable[[Request], Awaitable[Response]]


def make_application(desk: Desk, names: Names) -> ASGIApp:
    """The whole: routes, and the door before them."""
    routes = [
        Route("/healthz", _say_alive, methods=["GET"]),
        Route("/readyz", partial(_say_ready, desk), methods=["GET"]),
        Route(f"{BASE}/openapi.json", partial(_give_document, desk), methods=["GET"]),
        *(Route(BASE + one.path, _endpoint(desk, one), methods=[one.method]) for one in OPERATIONS),
        Route("/metrics", _endpoint(desk, METRICS), methods=["GET"]),
        *board.make_routes(desk, names),
    ]
    handlers: Any = {404: _say_missing, 405: _say_wrong_method, Exception: _say_crash}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Door(app, keys=desk.keys, names=names, refuse=_refuse)


def _endpoint(desk: Desk, operation: Operation) -> Endpoint:
    if operation.run is None:
        return _guarded(desk, operation.level, partial(_stream, desk))
    return _guarded(desk, operation.level, partial(_run, desk, operation))


def _guarded(desk: Desk, level: Level, answer: Endpoint) -> Endpoint:
    """The endpoint for who may do that, with every error told."""

    async def endpoint(request: Request) -> Response:
        access: Access | None = request.scope.get(ACCESS)
        if access is None or access.level < level:
            return write_problem(
                403,
                f"this needs a key of the level {level.word}",
                f"babyagi open --token {level.word} prints one",
                kind="level",
            )
        try:
            return await answer(request)
        except BadRequestError as error:
            return write_problem(error.status, error.title, error.detail)
        except BabyagiError as error:
            return write_error(error, desk.settings.known_secrets)
        except Exception as error:  # ours: it is told in the log, and whoever asks hears of it
            return write_crash(error)

    return endpoint


async def _run(desk: Desk, operation: Operation, request: Request) -> Response:
    assert operation.run is not None
    query = parse_parameters(request.query_params.multi_items(), operation.query)
    body = None
    if operation.body is not None:
        data = await read_body(request)
        body = parse_body(data, request.headers.get("content-type", ""), operation.body)
    key = request.headers.get("idempotency-key", "") if operation.takes_key else ""
    if len(key) > MAX_KEY_CHARS:
        raise BadRequestError(422, "the Idempotency-Key is too long", f"{MAX_KEY_CHARS} at most")
    level = request.scope[ACCESS].level
    call = Call(desk=desk, path=request.path_params, query=query, body=body, level=level, key=key)
    return await asyncio.to_thread(write_answer, await operation.run(call), request)


async def _stream(desk: Desk, request: Request) -> Response:
    """Events from behind the one that a listener has: by `Last-Event-ID`, which a browser sends by
    itself when it comes back, or else by `after`; from now on where neither is there."""
    query: EventsQuery = parse_parameters(request.query_params.multi_items(), EventsQuery)
    if desk.feed.n_listeners >= MAX_LISTENERS:
        raise BadRequestError(503, "too many listen already", "come back in a moment")
    selector = request.path_params.get("objective")
    objective_id = (await pick_objective(desk.store, selector)).id if selector else None
    said = request.headers.get("last-event-id") or query.after
    place = parse_place(said) if said else None
    if said and (place is None or (objective_id is not None and place.last_by_objective)):
        raise BadRequestError(422, "that is no id of an event", "send one that came with an event")
    if place is None:
        place = (
            await desk.feed.now()
            if objective_id is None
            else Place(base=await desk.store.last_event_id(objective_id))
        )
    return StreamingResponse(
        desk.feed.listen(objective_id, place),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _give_document(_desk: Desk, request: Request) -> Response:
    return write_answer(Answer(value=make_document()), request)


# -- for whoever watches the process
# --------------------------------------------------------------------------------------------------


async def _say_alive(_request: Request) -> Response:
    """An outage of the store is no reason to kill the process: it goes on by itself."""
    return Response("ok\n", media_type="text/plain")


async def _say_ready(desk: Desk, _request: Request) -> Response:
    try:
        async with asyncio.timeout(READY_TIMEOUT_S):
            await desk.store.open_objectives()
    except (BabyagiError, TimeoutError):
        return Response("the task store does not answer\n", 503, media_type="text/plain")
    return Response("ready\n", media_type="text/plain")


# -- what is refused
# --------------------------------------------------------------------------------------------------


def _refuse(refusal: Refusal, is_page: bool) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        response = (
            board.render_refusal(refusal)
            if is_page
            else write_problem(refusal.status, refusal.title, refusal.detail, kind="door")
        )
        response.headers["connection"] = "close"  # what follows of the request is not read
        await response(scope, receive, send)

    return answer


async def _say_missing(_request: Request, _error: Exception) -> Response:
    return write_problem(404, "there is nothing at this address", f"{BASE}/openapi.json lists all")


async def _say_wrong_method(_request: Request, error: Exception) -> Response:
    response = write_problem(405, "this address does not take this method")
    headers = getattr(error, "headers", None) or {}
    if "Allow" in headers:
        response.headers["allow"] = headers["Allow"]
    return response


async def _say_crash(_request: Request, error: Exception) -> Response:
    return write_crash(error)
