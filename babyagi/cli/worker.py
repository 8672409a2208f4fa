"""The commands that work on all objectives of the task store: `worker`, and `serve` with its HTTP
server; and `serve open`, which gives a browser or a program access to that server."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, closing, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any

import click

from babyagi import events
from babyagi.app.application import App, open_app
from babyagi.cli import preflight, session, views
from babyagi.cli.inbox import find_person
from babyagi.cli.options import (
    Family,
    WrongUsage,
    given_flags,
    json_option,
    setting_options,
)
from babyagi.cli.report import choose_output, output_option
from babyagi.cli.run import join_objective, tell
from babyagi.cli.text import Line, echo, give, is_person_there, warn
from babyagi.errors import SettingsError
from babyagi.files.home import make_home
from babyagi.settings.fields import Settings
from babyagi.settings.load import Loaded
from babyagi.tasks import Level, Objective
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import say_count

logger = logging.getLogger("babyagi.events")


@click.command()
@click.option(
    "--objective",
    metavar="ID|latest",
    help="Work on this objective only, and end when it ends. Default: on all.",
)
@setting_options(
    "concurrency files tools mcp tools_from agent agent_hosts use_my_model log_format".split()
)
@output_option
@json_option
def worker(objective: str | None, output: str | None, as_json: bool, **flags: Any) -> int:
    """Work on all active objectives until told to stop.

    Objectives submitted later are included. While there is nothing to do, the worker waits. On
    Ctrl-C or SIGTERM it lets the calls in flight end, and stops. --output needs
    --objective.
    """
    if objective is None and output:
        raise WrongUsage("--output can only be used with --objective")
    chosen = choose_output(output, as_json=as_json)
    loaded = session.load(given_flags(flags))
    if objective is not None:
        return join_objective(loaded, selector=objective, output=chosen)
    preflight.require_index(loaded.settings)
    return asyncio.run(_serve_all(loaded, as_json=as_json))


async def _serve_all(
    loaded: Loaded, *, as_json: bool, serves_http: bool = False, works: bool = True
) -> int:
    is_logged = not (as_json or sys.stdout.isatty() or sys.stderr.isatty())
    said = warn if as_json else echo
    say = logger.info if is_logged else said
    notify = logger.warning if is_logged else tell
    person = None if serves_http else find_person()
    async with (
        open_app(loaded.settings, ask_human=person, tell=notify) as app,
        _writing_log(app) if is_logged else nullcontext(),
    ):
        for notice in loaded.notices:
            notify(notice)
        if works:
            await say_beginning(app, say)
        around = partial(show_lines, app.store, say=say, as_json=as_json, is_logged=is_logged)
        if serves_http:
            from babyagi.serve.server import serve as serve_app

            # a program that starts the server reads the address from standard output
            number = await serve_app(app, works=works, around=around, say=said, tell=notify)
        else:
            number = await app.serve_all(around)
        what = "server" if serves_http else "worker"
        say(f"This {what} has stopped; other workers can take over its tasks.")
    return 0 if number is None else 128 + number


@asynccontextmanager
async def _writing_log(app: App) -> AsyncIterator[None]:
    """Write the worker's log to standard error while the body runs."""
    worker = app.name if app.settings.log_format == "json" else ""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(session.LineFormatter(app.settings.known_secrets, worker=worker))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


async def say_beginning(app: App, say: Callable[[str], None]) -> None:
    """Pass a line about the worker and the active objectives to `say`, which prints or logs it."""
    n_active = say_count(len(await app.store.objectives(are_open=True)), "active objective")
    at_once = say_count(app.settings.concurrency, "task")
    say(
        f"Worker {app.name} works on all active objectives ({n_active} now), {at_once} at once. "
        "Ctrl-C lets the calls in flight end."
    )


async def show_lines(
    store: TaskStore,
    objective_id: int,
    work: Coroutine[Any, Any, Objective],
    *,
    say: Callable[[str], None],
    as_json: bool,
    is_logged: bool = False,
) -> Objective:
    """Await `work`, the work on one of several objectives. Print the objective's events meanwhile
    as plain lines or JSON lines, or only log them."""
    name = f"objective {objective_id}: "
    say(f"{name}joined")
    kind: Callable[..., views.View] = partial(views.PlainView, prefix=name)
    if as_json or is_logged:
        kind = views.JsonView if as_json else views.View
    with closing(work):
        view = kind(
            store=store,
            objective_id=objective_id,
            after_id=await store.last_event_id(objective_id),
            is_logged=True,
            # the worker itself says what blocks it
            without=() if as_json else (events.WORKER_BLOCKED,),
        )
        async with views.following(view):
            objective = await work
    say(f"{name}left, it is {objective.stop_reason or objective.status}")
    return objective


# -- the commands serve and serve open
# --------------------------------------------------------------------------------------------------


LEVELS = ("read", "steer", "admin")
MODULES = ("starlette", "uvicorn", "jinja2")
ASK_TIMEOUT_S = 5.0


@click.command("serve")
@setting_options(
    "serve_host serve_port concurrency files tools mcp tools_from use_my_model log_format".split()
)
@click.option(
    "--no-work", "is_idle", is_flag=True, help="Only serve HTTP; workers elsewhere do the work."
)
@setting_options(("agent", "agent_hosts"))
@json_option
def work_and_serve(is_idle: bool, as_json: bool, **flags: Any) -> int:
    """Work as `worker` does, and serve HTTP.

    It serves a board, an API and live events. It listens on this machine only, unless
    BABYAGI_SERVE_TOKEN is set. On Ctrl-C or SIGTERM it lets the calls in flight end, and stops.
    With --json every event is one line; without a terminal it writes a log, as `worker` does.
    """

    require_serve()
    loaded = session.load(given_flags(flags))
    from babyagi.serve.server import require_door

    require_door(loaded.settings)
    if not is_idle:
        preflight.require_index(loaded.settings)
    return asyncio.run(_serve_all(loaded, as_json=as_json, serves_http=True, works=not is_idle))


def require_serve() -> None:
    """Raises `SettingsError` if a package of the extra `serve` (`pip install …[serve]`) is
    missing."""

    missing = [name for name in MODULES if find_spec(name) is None]
    if missing:
        raise SettingsError(
            "the server's packages are not installed",
            why=f"the Python module {missing[0]} is missing",
            fix="pip install 'babyagi-daemon[serve]'",
            guide="serve",
        )


serve = Family(work_and_serve)


@serve.command("open")
@click.option(
    "--token",
    "token_level",
    type=click.Choice(LEVELS),
    help="Print a token of this level for a program, and open nothing.",
)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="admin",
    show_default=True,
    help="The level of rights that the browser gets.",
)
@click.option(
    "--print", "is_printed", is_flag=True, help="Print the address instead of opening a browser."
)
@click.option(
    "--renew",
    "is_renewed",
    is_flag=True,
    help="Make a new token; all keys and sessions end within a second.",
)
@json_option
def open_(
    token_level: str | None, level: str, is_printed: bool, is_renewed: bool, as_json: bool
) -> None:
    """Open the board of this home's server in a browser.

    The address works once, within two minutes. With --token, a token for a program is printed
    instead.
    """

    require_serve()
    settings = session.load(needs=session.NOTHING).settings
    if not (settings.serve_token or settings.home.is_dir()):
        raise _no_server(f"there is no home {settings.home}")
    if is_renewed:
        _renew(settings)
    if token_level is not None:
        token = _find_token(settings, token_level)
        give(as_json, {"v": 1, "token": token}, [Line(token)])
    elif is_renewed:
        done = "The token is new: all keys and sessions end within a second."
        give(as_json, {"v": 1, "renewed": True}, [Line(done)])
    else:
        url = asyncio.run(_make_address(settings, level))
        is_shown = not (as_json or is_printed) and is_person_there() and webbrowser.open(url)
        said = "The board is open in your browser." if is_shown else url
        give(as_json, {"v": 1, "url": url}, [Line(said)])


def _renew(settings: Settings) -> None:
    """Replace the server's token in the home folder by a new one. Raises `SettingsError` if
    BABYAGI_SERVE_TOKEN is set, because the stored token is not used then."""

    from babyagi.serve.door import renew_token

    if settings.serve_token:
        raise SettingsError(
            "the token cannot be renewed, because this program did not make it",
            why="BABYAGI_SERVE_TOKEN is set",
            fix="set BABYAGI_SERVE_TOKEN to a new token, such as $(openssl rand -hex 32), and "
            "restart the servers",
            guide="serve",
        )
    make_home(settings.home)
    renew_token(settings.home, new_token=lambda: secrets.token_urlsafe(32))


def _find_token(settings: Settings, level: str) -> str:
    from babyagi.serve.door import Keys
    from babyagi.serve.server import find_token

    keys = Keys(find_token(settings), now_s=lambda: 0.0, new_word=lambda: "")
    return keys.token(Level[level.upper()])


async def _make_address(settings: Settings, level: str) -> str:
    """Get a one-time code from the server, and return the address that opens the board with it.
    Raises `SettingsError` if there is no server or it gives no code."""
    import httpx2

    from babyagi.serve.server import find_token, read_address

    url = read_address(settings.home)
    if not url:
        raise _no_server("no server of this home is known")
    headers = {"authorization": f"Bearer {find_token(settings)}"}
    # a server that listens on all addresses is reached at this machine's own
    near = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    try:
        async with httpx2.AsyncClient(timeout=ASK_TIMEOUT_S, trust_env=False) as client:
            answer = await client.post(
                f"{near}/api/v1/codes", json={"level": level}, headers=headers
            )
    except httpx2.HTTPError as error:
        raise _no_server(f"{near} does not answer: {type(error).__name__}") from error
    if answer.status_code != 201:
        raise _no_server(f"{near} answers with {answer.status_code}: it has another token")
    return f"{near}/open?code={answer.json()['code']}"


def _no_server(why: str) -> SettingsError:
    return SettingsError("no server to open was found", why=why, fix="babyagi serve", guide="serve")
