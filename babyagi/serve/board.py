"""The board: pages that show objectives and tasks in a browser. They work without JavaScript; with
it, a script keeps them up to date.

To change something, a form posts to `/do` and the path of a verb of the API, which is then
checked and run as in the API. Texts from models are escaped on all pages, also in Markdown.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from babyagi.app.backends import utc_now
from babyagi.errors import BabyagiError
from babyagi.pages.markdown import render_html
from babyagi.pages.report import (
    MAX_TASKS_DRAWN,
    SIGNS,
    TIMELINE_KINDS,
    find_bars,
    render_files,
    render_timeline,
)
from babyagi.reporting.report import MAX_EVENTS_DRAWN, load_report
from babyagi.reporting.why import Facts, Reason, explain_tasks, find_facts
from babyagi.serve import door, wire
from babyagi.serve.operations import OPERATIONS, Desk
from babyagi.tasks import Duty, Level, Objective, Result, StopReason, Task, TaskStatus
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import UNSEEN, harmless_lines, shorten
from babyagi.verbs import actions, json_shapes, verb_table

MAX_ROWS = 50  # of a list on one page
MAX_CARDS = 50  # tasks in a column of the board
MAX_FIELDS = 40
MAX_DRAWN_CHARS = 200_000  # of a result; a longer one is shown as plain text, not as Markdown
N_TICKS_SHOWN = 50
KINDS = {
    "board.js": "text/javascript; charset=utf-8",
    "board.css": "text/css; charset=utf-8",
    "mark.svg": "image/svg+xml",
}
COLUMNS = (
    ("To do", (TaskStatus.QUEUED,)),
    ("At work", (TaskStatus.RUNNING, TaskStatus.RECORDED)),
    ("Asks you", (TaskStatus.WAITING,)),
    ("Done", (TaskStatus.DONE,)),
    ("Given up", (TaskStatus.DEAD, TaskStatus.CANCELLED)),
)
DUTIES = {
    Duty.PLAN: "Planning",
    Duty.ORDER: "Ordering",
    Duty.CHECK: "Checks",
    Duty.REPORT: "Report",
}
MAX_TIMES = 30  # how many repetitions of a duty, such as planning, are shown
MAX_EXCERPT_CHARS = 600
_BACK = re.compile(r"/(?:[A-Za-z0-9_.~-]+(?:/[A-Za-z0-9_.~-]+)*)?")


Values = dict[str, Any]
"""What a template shows, by the names that it uses."""


def make_routes(desk: Desk, names: door.Names) -> list[Route]:
    one = "/objectives/{objective}"
    pages: Mapping[str, Callable[[Desk, Request], Awaitable[Response]]] = {
        "/": partial(_page, "objectives.html", _objectives),
        "/inbox": partial(_page, "inbox.html", _inbox),
        "/schedules": partial(_page, "schedules.html", _schedules),
        "/schedules/{schedule}": partial(_page, "schedule.html", _schedule),
        **{
            f"{one}{name}": partial(_page_of_one, template, partial(_tab, name, load))
            for name, (template, load) in TABS.items()
        },
        f"{one}/tasks/{{task}}": partial(_page_of_one, "task.html", _task),
        f"{one}/duties/{{duty}}": partial(_page_of_one, "duty.html", _duty),
    }
    return [
        Route("/open", partial(_open, desk, names), methods=["GET"]),
        Route("/static/{name}", _static, methods=["GET"]),
        *(Route(path, partial(page, desk), methods=["GET"]) for path, page in pages.items()),
        *(
            Route(_address_of(one), partial(_do, one, desk), methods=["POST"])
            for one in OPERATIONS
            if one.method != "GET"
        ),
    ]


def _address_of(verb: verb_table.Verb) -> str:
    """Return the path to which a form posts to run the verb. HTML forms have no DELETE; the
    path for it ends with `/delete`."""
    return f"/do{verb.path}{'/delete' if verb.method == 'DELETE' else ''}"


# -- all objectives
# --------------------------------------------------------------------------------------------------


async def _page(
    template: str,
    load: Callable[[Desk, Request], Awaitable[Values]],
    desk: Desk,
    request: Request,
) -> Response:
    """Return a page that receives new events of all objectives. The id of the last event is read
    before the page's data, so that the page misses no later change.

    Args:
        load: returns what the page shows.
    """
    after = await desk.store.last_event_id(None)
    values = await load(desk, request)
    return await _render(desk, request, template, events="/events", after=after, **values)


async def _objectives(desk: Desk, request: Request) -> Values:
    query = wire.parse_parameters(_said(request), verb_table.ObjectivesQuery)
    found = await query.find(desk.store)
    left = [one for one in reversed(found) if not query.after or one.id < query.after]
    shown = left[:MAX_ROWS]
    rows = [await _row(desk, one) for one in shown]
    more = {"words": query.words, "state": query.state or "", "after": shown[-1].id} if rows else {}
    return {
        "rows": rows,
        "n_found": len(found),
        "query": query,
        "limits": desk.settings.limits,
        "more": urlencode(more) if len(left) > len(shown) else "",
    }


async def _row(desk: Desk, objective: Objective) -> Values:
    stand = await actions.find_stand(desk.store, objective)
    return {**_head(objective, stand.counts), "reason": stand.reason}


def _head(objective: Objective, counts: Mapping[TaskStatus, int]) -> Values:
    return {
        "objective": objective,
        "state": name_state(objective),
        "n_done": counts[TaskStatus.DONE],
        "n_tasks": sum(counts.values()),
        "n_asking": counts[TaskStatus.WAITING],
    }


async def _inbox(desk: Desk, _request: Request) -> Values:
    steps = await desk.store.inbox()
    asked = [
        await actions.gather_request(desk.store, step, desk.settings) for step in steps[:MAX_ROWS]
    ]
    shapes = [json_shapes.request_shape(one) | {"created_at": one.step.created_at} for one in asked]
    return {"asked": shapes, "n_more": len(steps) - len(shapes)}


async def _schedules(desk: Desk, _request: Request) -> Values:
    return {"schedules": (await desk.store.schedules())[::-1]}


async def _schedule(desk: Desk, request: Request) -> Values:
    id_ = verb_table.parse_id(request.path_params["schedule"], "schedule")
    found, ticks = await desk.store.schedule(id_, limit=N_TICKS_SHOWN)
    return {"one": found, "ticks": ticks}


def _said(request: Request) -> list[tuple[str, str]]:
    """Return the query parameters that are not empty. (An empty field of a form sends an empty
    one.)"""
    return [(name, text) for name, text in request.query_params.multi_items() if text]


# -- one objective
# --------------------------------------------------------------------------------------------------


async def _page_of_one(
    template: str,
    load: Callable[[Desk, Objective, Request], Awaitable[Values]],
    desk: Desk,
    request: Request,
) -> Response:
    """Return a page that receives new events of the objective in the path of the request. The id of
    the last event is read as in `_page`."""
    objective = await desk.pick(request.path_params["objective"])
    after = await desk.store.last_event_id(objective.id)
    values = await load(desk, objective, request)
    events = f"/objectives/{objective.id}/events"
    return await _render(desk, request, template, events=events, after=after, **values)


async def _tab(
    name: str,
    load: Callable[[Desk, actions.Stand, Request], Awaitable[Values]],
    desk: Desk,
    objective: Objective,
    request: Request,
) -> Values:
    """Return what a tab of an objective shows, and the objective's state, which is at its top."""
    stand = await actions.find_stand(desk.store, objective)
    return {
        "stand": stand,
        **_head(objective, stand.counts),
        "n_serving": len(actions.serving(stand.workers, objective.id)),
        "tab": name,
        **await load(desk, stand, request),
    }


async def _columns(desk: Desk, stand: actions.Stand, _request: Request) -> Values:
    facts = await find_facts(desk.store, stand.objective.id)
    columns = []
    for title, states in COLUMNS:
        cards = await _cards(desk.store, facts, states)
        columns.append((title, states, cards, sum(stand.counts[one] for one in states)))
    return {"columns": columns}


async def _cards(
    store: TaskStore, facts: Facts, states: tuple[TaskStatus, ...]
) -> list[tuple[Task, Reason]]:
    """Return the first tasks of a column, each with the reason why it is not running. Of done tasks
    the one that was finished last comes first."""
    objective_id = facts.objective.id
    if TaskStatus.DONE in states:
        last = await store.tasks(objective_id, last_finished=True, limit=MAX_CARDS)
        found = [task for task in last if task.status is TaskStatus.DONE]
    else:
        found = await store.tasks(objective_id, statuses=states, limit=MAX_CARDS)
    return await _with_reasons(store, facts, found)


async def _with_reasons(
    store: TaskStore, facts: Facts, tasks: Sequence[Task]
) -> list[tuple[Task, Reason]]:
    return list(zip(tasks, await explain_tasks(store, facts, tasks), strict=True))


async def _list(desk: Desk, stand: actions.Stand, request: Request) -> Values:
    id_, query = stand.objective.id, wire.parse_parameters(_said(request), verb_table.TasksQuery)
    last = await desk.store.task(id_, query.after) if query.after else None
    shown, has_more = await verb_table.read_tasks(desk.store, id_, query, last, MAX_ROWS)
    more = [("status", one.value) for one in query.status]
    more += [("after", str(shown[-1].id))] if has_more else []
    return {
        "tasks": await _with_reasons(desk.store, await find_facts(desk.store, id_), shown),
        "wanted": query.status,
        "statuses": tuple(TaskStatus),
        "is_first": last is None,
        "more": urlencode(more) if has_more else "",
    }


async def _results(desk: Desk, stand: actions.Stand, request: Request) -> Values:
    """Return the newest results. There is no search, because each one may cost money."""
    id_, query = stand.objective.id, wire.parse_parameters(_said(request), verb_table.PageQuery)
    ids = (await desk.store.result_ids(id_))[::-1]
    ids = ids[ids.index(query.after) + 1 :] if query.after in ids else ids
    shown = await desk.store.results(id_, task_ids=ids[:MAX_ROWS])
    shown = sorted(shown, key=lambda one: ids.index(one.task_id))
    more = urlencode({"after": ids[MAX_ROWS - 1]}) if len(ids) > MAX_ROWS else ""
    return {"found": await asyncio.to_thread(_excerpts, shown), "more": more}


def _excerpts(found: Sequence[Result]) -> list[tuple[Result, Markup]]:
    return [(one, Markup(render_html(shorten(one.text, MAX_EXCERPT_CHARS)))) for one in found]


async def _timeline(desk: Desk, stand: actions.Stand, _request: Request) -> Values:
    id_ = stand.objective.id
    found = await desk.store.events(
        id_, kinds=TIMELINE_KINDS, from_end=True, limit=MAX_EVENTS_DRAWN
    )
    bars = await asyncio.to_thread(find_bars, found, now=utc_now())
    tasks = await desk.store.tasks(id_, task_ids=range(1, MAX_TASKS_DRAWN + 1))
    link = f"/objectives/{id_}/tasks/{{}}".format
    drawing = await asyncio.to_thread(render_timeline, tasks, bars, link=link)
    return {"drawing": Markup(drawing), "n_read": len(tasks), "duties": DUTIES}


async def _report(desk: Desk, stand: actions.Stand, _request: Request) -> Values:
    markdown = await load_report(desk.store, stand.objective, offload=asyncio.to_thread)
    return {"report": Markup(await asyncio.to_thread(render_html, markdown))}


TABS = {
    "": ("objective.html", _columns),
    "/tasks": ("tasks.html", _list),
    "/results": ("results.html", _results),
    "/timeline": ("timeline.html", _timeline),
    "/report": ("report.html", _report),
}


async def _task(desk: Desk, objective: Objective, request: Request) -> Values:
    task_id = verb_table.parse_id(request.path_params["task"], "task")
    shown = await actions.fetch_task(desk.store, objective, task_id)
    result = await asyncio.to_thread(_render_result, shown)
    given = json_shapes.given_results(shown.steps)
    return {**_calls(desk, shown), "task": shown.task, "result": result, "given": given}


async def _duty(desk: Desk, objective: Objective, request: Request) -> Values:
    duty = verb_table.parse_duty(request.path_params["duty"])
    shown = await actions.fetch_duty(desk.store, objective, duty, n_times=MAX_TIMES)
    return {**_calls(desk, shown), "name": DUTIES[duty]}


def _calls(desk: Desk, shown: actions.Shown) -> Values:
    exchanges = list(actions.number_exchanges(shown, desk.settings.known_secrets))
    return {"objective": shown.objective, "shown": shown, "exchanges": exchanges}


def _render_result(shown: actions.Shown) -> Markup:
    """Return the result with its files, both of which `pages` has made harmless."""
    text = shown.result.text if shown.result is not None else ""
    is_drawn = len(text) <= MAX_DRAWN_CHARS
    result = Markup(render_html(text)) if is_drawn else Markup("<pre>{}</pre>").format(text)
    return result + Markup(render_files(shown.made))


# -- forms
# --------------------------------------------------------------------------------------------------


async def _do(verb: verb_table.Verb, desk: Desk, request: Request) -> Response:
    access: door.Access = request.scope[door.ACCESS]
    data = await wire.read_body(request)
    pairs = parse_qsl(
        data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS
    )
    ours = ("word", "back")
    fields = [(name, text) for name, text in pairs if name not in ours and text]
    words = [text for name, text in pairs if name == "word"]
    is_ours = len(words) == 1 and desk.keys.is_form_word(words[0], access.session)
    if not access.session or not is_ours:
        raise door.UNSIGNED()
    if access.level < verb.level:
        wanted = verb.level.word
        fix = f"`babyagi serve open --level {wanted}`"
        return render_message(403, f"this needs a key of the level {wanted}", "", fix)
    given = wire.parse_parameters(fields, verb.given)
    call = verb_table.Call(desk=desk, path=request.path_params, given=given, level=access.level)
    answer = await verb_table.carry_out(verb, call)
    if isinstance(answer.value, dict) and answer.value.get("elsewhere"):
        return render_message(
            200,
            "your decision may count only at another machine",
            f"It is recorded. The workers that ask are {', '.join(answer.value['elsewhere'])}, and "
            "this server does not use their home: if their own settings ask, decide there.",
        )
    return RedirectResponse(_back(dict(pairs).get("back", ""), answer.value), status_code=303)


def _back(back: str, value: Any) -> str:
    """Return the path of the page to show after a form was sent: the form's field `back`, else the
    page of the objective that the form created, else the first page."""
    if not back and isinstance(value, dict) and "objective_id" in value:
        return f"/objectives/{value['objective_id']}"
    return back if _BACK.fullmatch(back) else "/"


# -- sessions
# --------------------------------------------------------------------------------------------------


async def _open(desk: Desk, names: door.Names, request: Request) -> Response:
    """Exchange a one-time code for a session. The returned page sends the browser on to the board.
    (After a redirect, the browser would not send the session's cookie.)"""
    level = desk.keys.take_code(request.query_params.get("code", ""))
    if level is None:
        if desk.keys.are_too_many_wrong(request.client.host if request.client else ""):
            raise door.TOO_MANY_WRONG()
        return render_message(
            403, "this link was used already, or is too old", "", "babyagi serve open"
        )
    response = _render_page("opened.html", status=200, title="babyagi", level=level.word)
    name, session = door.cookie_name(names.port), desk.keys.new_session(level)
    response.set_cookie(
        name, session, max_age=int(door.SESSION_S), httponly=True, samesite="strict", path="/"
    )
    return response


async def _static(request: Request) -> Response:
    kind = KINDS.get(request.path_params["name"])
    if kind is None:
        return wire.write_problem(404, "there is no such page")
    text = files("babyagi.serve").joinpath("static", request.path_params["name"]).read_bytes()
    return Response(text, media_type=kind, headers={"cache-control": "no-cache"})


# -- rendering
# --------------------------------------------------------------------------------------------------


def render_error(error: BabyagiError, secrets: Sequence[str]) -> Response:
    """Return a page that says what the command line says about the error."""
    return render_message(wire.status_of(error), *wire.texts_of(error, secrets))


def render_message(status: int, title: str, detail: str, fix: str = "") -> Response:
    return _render_page("message.html", status=status, title=title, detail=detail, fix=fix)


async def _render(desk: Desk, request: Request, template: str, **values: Any) -> Response:
    access: door.Access = request.scope[door.ACCESS]
    return await asyncio.to_thread(
        _render_page,
        template,
        status=200,
        title="babyagi",
        n_open=len(await desk.store.inbox()),
        word=desk.keys.form_word(access.session) if access.session else "",
        can_steer=bool(access.session) and access.level >= Level.STEER,
        can_delete=bool(access.session) and access.level >= Level.ADMIN,
        path=request.url.path,
        **values,
    )


def _render_page(template: str, *, status: int, **values: Any) -> Response:
    page = open_templates().get_template(template).render(**values).encode("utf-8", "replace")
    headers = {"cache-control": "no-store", "content-type": "text/html; charset=utf-8"}
    return Response(page, status_code=status, headers=headers)


# -- text on the board: times, numbers, statuses, and harmless text
# --------------------------------------------------------------------------------------------------


_WORDS = {TaskStatus.DEAD: "given up", TaskStatus.QUEUED: "to do", TaskStatus.WAITING: "asks you"}
_GOOD_ENDS = (StopReason.FINISHED, StopReason.OBJECTIVE_MET)
_BAD_ENDS = (StopReason.FAILED, StopReason.CANCELLED)


@cache
def open_templates() -> Environment:
    """Return the environment of the templates, which escapes all texts and makes hidden characters
    visible."""
    env = Environment(
        loader=PackageLoader("babyagi.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        {
            "moment": say_moment,
            "number": lambda n: f"{n:,}",
            "advice": say_advice,
            "commands": mark_commands,
            "sentence": say_sentence,
            "sign": lambda status: SIGNS[status],
            "status": lambda status: _WORDS.get(status, status.value),
            "unseen": mark_unseen,
        }
    )
    return env


def _make_harmless(value: Any) -> Any:
    """Return a text with its lines made `harmless`. `Markup` and values other than texts are
    returned unchanged."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return harmless_lines(value)


def say_moment(at: datetime | None) -> Markup:
    """Return HTML with a moment, of which the script shows how far it is from now."""
    if at is None:
        return Markup("")
    at = at.astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%S}Z", f"{at:%Y-%m-%d %H:%M}"
    )


def say_sentence(text: str) -> str:
    """Return the text as a sentence: with a capital letter and a full stop."""
    text = text.strip()
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.!?…:' else '.'}"


def say_advice(text: str) -> Markup:
    """Return the `fix` of an error as HTML. If it is a command, `In a terminal:` stands before
    it."""
    is_typed = text.startswith("babyagi ")
    return mark_commands(f"In a terminal: {text}" if is_typed else say_sentence(text))


def mark_commands(text: str) -> Markup:
    """Return the text as HTML, with what stands in backticks marked as code."""
    safe = str(escape(_make_harmless(text)))
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", safe))


def mark_unseen(value: Any) -> Markup:
    """Return the text, or any other value as JSON, as HTML in which invisible characters are shown
    as their code points."""
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    return Markup(UNSEEN.sub(_mark, str(escape(text))))


def _mark(unseen: re.Match[str]) -> str:
    char = unseen.group()
    return char if char in "\n\t" else f"<mark>U+{ord(char):04X}</mark>"


def name_state(objective: Objective) -> tuple[str, str, str]:
    """Return (CSS class, sign, word) for showing the state of an objective."""
    reason = objective.stop_reason
    if reason is None:
        is_active = objective.status.value == "active"
        return ("running", "●", "active") if is_active else ("paused", "Ⅱ", "paused")
    word = reason.value.replace("_", " ").replace("limit:", "limit of ")
    if reason in _GOOD_ENDS:
        return "done", "✓", word
    return ("dead", "✕", word) if reason in _BAD_ENDS else ("waiting", "!", word)
