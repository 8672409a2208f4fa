"""The board: pages for a browser over the same verbs, readable without a script, kept fresh by one.

A form posts to `/do` and the address of its operation; it is checked and carried out as the API
does. What models wrote is text on every page, and Markdown only in the report.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from babyagi import json_shapes, verbs
from babyagi.errors import BabyagiError, find_fix
from babyagi.pages.markdown import render_html
from babyagi.redaction import redact
from babyagi.reporting import load_report
from babyagi.serve.door import (
    ACCESS,
    LOCKED,
    SESSION_S,
    UNSIGNED,
    Access,
    Level,
    Names,
    Refusal,
    cookie_name,
)
from babyagi.serve.operations import OPERATIONS, Call, Desk, Operation, parse_id, pick_objective
from babyagi.serve.wire import (
    BadRequestError,
    parse_parameters,
    read_body,
    status_of,
    write_crash,
    write_problem,
)
from babyagi.tasks import Objective, TaskStatus
from babyagi.text import harmless
from babyagi.why import explain_tasks, find_facts

if TYPE_CHECKING:
    from babyagi.tasks import Task

MAX_OBJECTIVES = 200
MAX_CARDS = 50  # of a column
MAX_FIELDS = 30
MAX_AGE_S = 10.0  # of the place from which on a page hears of all objectives
KINDS = {
    "board.js": "text/javascript; charset=utf-8",
    "board.css": "text/css; charset=utf-8",
    "mark.svg": "image/svg+xml",
}
COLUMNS = (
    ("to do", (TaskStatus.QUEUED,)),
    ("at work", (TaskStatus.RUNNING, TaskStatus.RECORDED)),
    ("asks you", (TaskStatus.WAITING,)),
    ("done", (TaskStatus.DONE,)),
    ("given up", (TaskStatus.DEAD, TaskStatus.CANCELLED)),
)
_BACK = re.compile(r"/(?:[A-Za-z0-9_.~-]+(?:/[A-Za-z0-9_.~-]+)*)?")
Page = Callable[[Desk, Request], Awaitable[Response]]


def make_routes(desk: Desk, names: Names) -> list[Route]:
    pages: tuple[tuple[str, Page], ...] = (
        ("/", _objectives),
        ("/inbox", _inbox),
        ("/objectives/{objective}", _objective),
        ("/objectives/{objective}/report", _report),
        ("/objectives/{objective}/tasks/{task}", _task),
    )
    return [
        Route("/open", partial(_open, desk, names), methods=["GET"]),
        Route("/static/{name}", _static, methods=["GET"]),
        *(Route(path, _guarded(desk, page), methods=["GET"]) for path, page in pages),
        *(
            Route(f"/do{one.path}", _guarded(desk, partial(_do, one)), methods=["POST"])
            for one in OPERATIONS
            if one.method == "POST"
        ),
    ]


def _guarded(desk: Desk, page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        if ACCESS not in request.scope or request.scope[ACCESS] is None:
            return render_refusal(LOCKED)
        try:
            return await page(desk, request)
        except BadRequestError as error:
            return _say(error.status, error.title, error.detail)
        except BabyagiError as error:
            what = redact(error.what, secrets=desk.settings.known_secrets)
            return _say(status_of(error), what, error.why, find_fix(error))
        except Exception as error:  # ours: the log has it
            return write_crash(error)

    return endpoint


# -- pages
# --------------------------------------------------------------------------------------------------


async def _objectives(desk: Desk, request: Request) -> Response:
    place = await desk.feed.now(max_age_s=MAX_AGE_S)  # before the look: what comes after it is sent
    found = await desk.store.objectives(limit=MAX_OBJECTIVES)
    rows = [(one, await desk.store.counts(one.id)) for one in reversed(found)]
    return _render(desk, request, "objectives.html", rows=rows, after=str(place), events="/events")


async def _objective(desk: Desk, request: Request) -> Response:
    objective = await _pick(desk, request)
    after = await desk.store.last_event_id(objective.id)
    stand = await verbs.find_stand(desk.store, objective)
    columns = [
        (title, await _cards(desk, objective, states), sum(stand.counts[one] for one in states))
        for title, states in COLUMNS
    ]
    return _render(
        desk,
        request,
        "objective.html",
        stand=stand,
        objective=stand.objective,
        columns=columns,
        n_serving=len(verbs.serving(stand.workers, objective.id)),
        after=after,
        events=f"/objectives/{objective.id}/events",
    )


async def _cards(
    desk: Desk, objective: Objective, states: tuple[TaskStatus, ...]
) -> list[tuple[Task, str]]:
    """The first tasks of a column, those that were finished last where they are finished; each with
    the word for why it does not run."""
    store, found = desk.store, list[Any]()
    if TaskStatus.DONE in states:
        last = await store.last_finished(objective.id, limit=MAX_CARDS)
        found = [task for task in last if task.status is TaskStatus.DONE]
    else:
        for state in states:
            found += await store.tasks_page(objective.id, status=state, limit=MAX_CARDS)
    shown = found[:MAX_CARDS]
    reasons = await explain_tasks(store, await find_facts(store, objective.id), shown)
    return [(task, reason.word) for task, reason in zip(shown, reasons, strict=True)]


async def _task(desk: Desk, request: Request) -> Response:
    objective = await _pick(desk, request)
    task_id = parse_id(request.path_params["task"], "task")
    shown = await verbs.fetch_task(desk.store, objective, task_id)
    return _render(
        desk,
        request,
        "task.html",
        objective=objective,
        shown=shown,
        task=shown.task,
        given=json_shapes.given_results(shown.steps),
        exchanges=list(verbs.number_exchanges(shown, desk.settings.known_secrets)),
        after=await desk.store.last_event_id(objective.id),
        events=f"/objectives/{objective.id}/events",
    )


async def _report(desk: Desk, request: Request) -> Response:
    objective = await _pick(desk, request)
    after = await desk.store.last_event_id(objective.id)
    markdown = await load_report(desk.store, objective)
    return _render(
        desk,
        request,
        "report.html",
        objective=objective,
        report=Markup(render_html(markdown)),  # made harmless by that room
        after=after,
        events=f"/objectives/{objective.id}/events",
    )


async def _inbox(desk: Desk, request: Request) -> Response:
    place = await desk.feed.now(max_age_s=MAX_AGE_S)
    steps = await desk.store.inbox()
    asked = [
        await verbs.gather_request(desk.store, step, desk.settings, among=steps) for step in steps
    ]
    shapes = [json_shapes.request_shape(one) for one in asked]
    return _render(desk, request, "inbox.html", asked=shapes, after=str(place), events="/events")


async def _pick(desk: Desk, request: Request) -> Objective:
    return await pick_objective(desk.store, request.path_params["objective"])


# -- what a form does
# --------------------------------------------------------------------------------------------------


async def _do(operation: Operation, desk: Desk, request: Request) -> Response:
    access: Access = request.scope[ACCESS]
    data = await read_body(request)
    pairs = parse_qsl(
        data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS
    )
    fields = [(name, text) for name, text in pairs if name not in ("word", "back") and text]
    words = [text for name, text in pairs if name == "word"]
    is_ours = len(words) == 1 and desk.keys.is_form_word(words[0], access.session)
    if not access.session or not is_ours:
        return render_refusal(UNSIGNED)
    if access.level < operation.level:
        return _say(403, f"this needs a key of the level {operation.level.word}", "")
    assert operation.run is not None and operation.body is not None
    call = Call(
        desk=desk,
        path=request.path_params,
        query=operation.query,
        body=parse_parameters(fields, operation.body),
    )
    answer = await operation.run(call)
    return RedirectResponse(_back(dict(pairs), answer.value), status_code=303)


def _back(form: Mapping[str, str], value: Any) -> str:
    """Where the form came from, or the objective that it has made."""
    back = form.get("back", "")
    if not back and isinstance(value, dict) and "objective_id" in value:
        return f"/objectives/{value['objective_id']}"
    return back if _BACK.fullmatch(back) else "/"


# -- coming in
# --------------------------------------------------------------------------------------------------


async def _open(desk: Desk, names: Names, request: Request) -> Response:
    """Take a one-time code for a session. The page leads on by itself, so that the next request
    comes from this server's page and has the cookie."""
    level = desk.keys.take_code(request.query_params.get("code", ""))
    if level is None:
        return _say(403, "this address was used already, or is too old", "", "babyagi open")
    response = _render_page("opened.html", status=200, title="babyagi", level=level.word)
    response.set_cookie(
        cookie_name(names.port),
        desk.keys.new_session(level),
        max_age=int(SESSION_S),
        httponly=True,
        samesite="strict",
        path="/",
    )
    return response


async def _static(request: Request) -> Response:
    kind = KINDS.get(request.path_params["name"])
    if kind is None:
        return write_problem(404, "there is nothing at this address")
    text = files("babyagi.serve").joinpath("static", request.path_params["name"]).read_bytes()
    return Response(text, media_type=kind, headers={"cache-control": "no-cache"})


# -- writing
# --------------------------------------------------------------------------------------------------


def render_refusal(refusal: Refusal) -> Response:
    return _say(refusal.status, refusal.title, refusal.detail)


def _say(status: int, title: str, detail: str, fix: str = "") -> Response:
    return _render_page("message.html", status=status, title=title, detail=detail, fix=fix)


def _render(desk: Desk, request: Request, template: str, **values: Any) -> Response:
    access: Access = request.scope[ACCESS]
    return _render_page(
        template,
        status=200,
        title="babyagi",
        word=desk.keys.form_word(access.session) if access.session else "",
        can_steer=bool(access.session) and access.level >= Level.STEER,
        path=request.url.path,
        **values,
    )


def _render_page(template: str, *, status: int, **values: Any) -> Response:
    page = _open_templates().get_template(template).render(**values)
    return Response(
        page.encode("utf-8", "replace"),
        status_code=status,
        media_type="text/html; charset=utf-8",
        headers={"cache-control": "no-store"},
    )


def _open_templates() -> Environment:
    env = Environment(
        loader=PackageLoader("babyagi.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters["moment"] = lambda at: at.strftime("%Y-%m-%d %H:%M:%S UTC") if at else ""
    return env


def _make_harmless(value: Any) -> Any:
    """A text without what acts or hides; what is markup of ours stays as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return "\n".join(harmless(line) for line in value.split("\n"))
