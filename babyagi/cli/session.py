"""The first steps of every command: load the settings, open the log file and the task store, and
find the selected objective."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from babyagi.cli.options import ALL
from babyagi.cli.text import fit, safe_line
from babyagi.cli.trusting import settle
from babyagi.errors import NotFoundError, ObjectiveStoppedError, SettingsError
from babyagi.files import private
from babyagi.files.home import remember_touch
from babyagi.redaction import redact
from babyagi.settings.fields import Settings
from babyagi.settings.load import Loaded, load_settings
from babyagi.tasks import Objective, ObjectiveStatus, StopReason
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import harmless

if TYPE_CHECKING:
    from babyagi.app.application import Results

# -- the log file; nothing is logged to the terminal
# --------------------------------------------------------------------------------------------------

MAX_BYTES = 5_000_000
N_KEPT = 3
_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


_FIELDS = ("event", "schedule_id", "objective_id", "task_id")


class LineFormatter(logging.Formatter):
    """Formats each record with its traceback as one harmless line without secrets; in it, a
    backslash and `n` stand for a line end. With `worker`, a name, the line is a JSON object."""

    def __init__(self, secrets: Iterable[str] = (), *, worker: str = "") -> None:
        super().__init__("%(message)s" if worker else _FORMAT)
        self._secrets, self._worker = tuple(secrets), worker

    def format(self, record: logging.LogRecord) -> str:
        text = redact(super().format(record), secrets=self._secrets)
        line = harmless(text.replace("\r\n", "\n").replace("\n", "\\n"))
        if not self._worker:
            return line
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        about = {name: getattr(record, name, None) for name in _FIELDS}
        fields = {"at": at, "level": record.levelname.lower(), "worker": self._worker}
        known = {name: value for name, value in about.items() if value is not None}
        return json.dumps({**fields, "logger": record.name, **known, "msg": line})


class _LogFile(RotatingFileHandler):
    """A log file that is rotated when it is too large. Only its owner can read it."""

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        private.make_folder(path.parent)
        return open(path, "a", encoding="utf-8", errors="replace", opener=private.open_file)


def open_log(path: Path, *, level: str = "info", secrets: Iterable[str] = ()) -> None:
    """From now on, write log records to the file: this program's records from `level` on, and those
    of other packages from WARNING on. The first record opens or creates the file and its folder.

    If the file cannot be written, nothing is logged and no error is raised.

    Args:
        secrets: texts that no record may contain, in any spelling.
    """
    root = logging.getLogger()
    close_log()
    logging.raiseExceptions = False
    logging.captureWarnings(True)
    # with a delay, a command that fails leaves no folder behind
    handler = _LogFile(path, maxBytes=MAX_BYTES, backupCount=N_KEPT, delay=True)
    handler.setFormatter(LineFormatter(secrets))
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("babyagi").setLevel(level.upper())


def close_log() -> None:
    """Close the log file that `open_log` opened; no handler of another package stays."""
    logging.basicConfig(force=True, handlers=[])
    logging.captureWarnings(False)


def record_crash(error: BaseException) -> Path:
    """Write the traceback of an unexpected error to the log file, or to a temporary file if no log
    file is open. Return the file's path."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, RotatingFileHandler):
            logging.getLogger("babyagi.cli").error("unexpected error", exc_info=error)
            if handler.stream is not None:  # else the file could not be opened
                return Path(handler.baseFilename)
    with tempfile.NamedTemporaryFile(
        "w", prefix="babyagi-", suffix=".log", delete=False, encoding="utf-8", errors="replace"
    ) as file:
        about = (type(error), error, error.__traceback__)
        record = logging.LogRecord(
            "babyagi.cli", logging.ERROR, "", 0, "unexpected error", None, about
        )
        file.write(LineFormatter().format(record) + "\n")
        return Path(file.name)


# -- the settings, the store and the objective
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")

LATEST = "latest"
HOME = "babyagi.home"  # key in click's context, for the home of this command line
NOTHING: frozenset[str] = frozenset()
STORE = frozenset({"home", "task_store"})


def load(
    flags: Mapping[str, object] | None = None,
    *,
    needs: Container[str] | None = None,
    reads_files: bool = True,
) -> Loaded:
    """Return the settings with their sources, from flags, environment and files, and set up the log
    file.

    Args:
        needs: the settings that must not come from an untrusted file; None means all of them, and
            `NOTHING` is for commands that only read.
        reads_files: whether `.env` and configuration files are read.

    Raises:
        SettingsError: a value is invalid, or a setting in `needs` comes from a file that the person
            does not trust.
    """
    try:
        cwd = Path.cwd()
    except FileNotFoundError as error:
        raise SettingsError(
            "the working folder does not exist any more",
            fix="change to a folder that exists, then type the command again",
            guide="settings",
        ) from error
    read = partial(
        load_settings, flags=flags or {}, environ=os.environ, cwd=cwd, reads_files=reads_files
    )
    loaded = settle(read, needs)
    settings = loaded.settings
    path, secrets = settings.home / "babyagi.log", settings.known_secrets
    open_log(path, level=settings.log_level, secrets=secrets)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[HOME] = settings.home
    if settings.no_color:
        os.environ["NO_COLOR"] = "1"  # the setting may come from a flag or a file
    return loaded


def with_store(
    body: Callable[[TaskStore], Awaitable[T]],
    *,
    changes: bool = False,
    settings: Settings | None = None,
) -> T:
    """Open the task store, call `body` with it, close it, and return the value of `body`.

    Args:
        changes: whether `body` changes something, in a store that exists. If so, the setting that
            names the task store must not come from an untrusted file; if not, the store is opened
            read-only.
        settings: the settings, if they are loaded already.
    """
    from babyagi.app.backends import open_store

    settings = settings or load(needs=STORE if changes else NOTHING).settings

    async def run() -> T:
        async with open_store(settings, only_looks=not changes, creates=False) as store:
            return await body(store)

    return asyncio.run(run())


def with_objective(
    selector: str,
    body: Callable[[TaskStore, Objective], Awaitable[T]],
    *,
    changes: bool = False,
    settings: Settings | None = None,
) -> T:
    """Open the task store as `with_store` does, and call `body` with the store and the objective
    that `selector` means. With `changes`, the objective becomes the one that the person used
    last."""

    async def work(store: TaskStore) -> T:
        found = await pick_objective(store, selector)
        return await body(store, touch(found) if changes else found)

    return with_store(work, changes=changes, settings=settings)


def with_results(
    selector: str,
    body: Callable[[Results], Awaitable[T]],
    *,
    model: str = "",
    changes: bool = False,
) -> tuple[Objective, T]:
    """Open the results and the index of the selected objective, call `body` with them, and return
    the objective with the value of `body`. `model` replaces the embedding model; `changes` as in
    `with_store`."""
    from babyagi.app.application import open_app, open_app_to_look
    from babyagi.cli import preflight

    settings = load().settings
    preflight.require_embedder(settings, model)

    async def run() -> tuple[Objective, T]:
        async with (
            open_app(settings, creates=False) if changes else open_app_to_look(settings) as app
        ):
            objective = await pick_objective(app.store, selector)
            async with app.open_results(objective, model=model) as opened:
                return objective, await body(opened)

    return asyncio.run(run())


def touch(objective: Objective) -> Objective:
    """Remember the objective as the one that the person used last, so that `latest` means it, and
    return it."""
    home = _home()
    if home is not None:
        remember_touch(home, objective.uid, objective.id)
    return objective


def _home() -> Path | None:
    """Return the home folder that this command uses; None before `load` was called."""
    context = click.get_current_context(silent=True)
    return context.meta.get(HOME) if context is not None else None


async def pick_objective(store: TaskStore, selector: str) -> Objective:
    """Return the objective that `selector` (a number or `latest`) means. `latest` is the one that
    the person used or created last, else the newest.

    Raises:
        NotFoundError: there is no such objective.
        SettingsError: the selector is neither a number nor `latest`.
    """
    if selector != LATEST:
        if not selector.isdecimal() or len(selector) > 18:
            raise SettingsError(
                f"an objective is chosen by its number or `latest`, got {selector!r}",
                fix="babyagi show objectives shows the numbers",
                guide="objectives",
            )
        return await store.objective(int(selector))
    from babyagi.verbs.actions import find_latest

    found = await find_latest(store, _home())
    if found is None:
        raise NotFoundError(
            "there is no objective yet",
            why=f"the task store in {_home()} contains none",
            fix='babyagi demo, or babyagi run "an objective"',
            guide="start",
        )
    return found


async def pick_or_all(store: TaskStore, selector: str) -> int | None:
    """Return the number of the objective that `selector` means; None for `all`."""
    return None if selector == ALL else (await pick_objective(store, selector)).id


async def pick_unfinished(store: TaskStore, selector: str) -> Objective:
    """Return the objective to continue. Raises as `pick_objective` does, and
    `ObjectiveStoppedError` if `latest` means one that has ended and has its report."""
    from babyagi.cli.render import render_going_on

    found = await pick_objective(store, selector)
    if selector != LATEST or not is_over(found):
        return found
    goes_on = render_going_on(found, (await store.standing(found.id)).counts)
    asks = f'babyagi run --continue {found.id} "a further question"'
    is_cancelled = found.stop_reason is StopReason.CANCELLED
    others = "babyagi show objectives --active lists what can be resumed"
    raise ObjectiveStoppedError(
        f"the latest objective, {found.id}, has ended ({found.stop_reason}); nothing is resumed",
        why=safe_line(fit(found.spec.text, 200)),
        fix="; or ".join([*filter(None, [goes_on]), others if is_cancelled else asks]),
        guide="objectives",
    )


def is_over(objective: Objective) -> bool:
    """Return whether the objective has ended and its report is written."""
    return objective.status is ObjectiveStatus.ENDED and objective.has_report
