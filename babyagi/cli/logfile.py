"""The log file: one line for each record, for whoever looks for a cause later. Nothing is ever
logged to the terminal."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from babyagi import private
from babyagi.cli.text import safe
from babyagi.redaction import redact

MAX_BYTES = 5_000_000
N_KEPT = 3
_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


class _OneLineFormatter(logging.Formatter):
    """Writes each record as one harmless line without keys, its traceback included; in that, `\\n`
    stands for the end of a line."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(_FORMAT)
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        text = redact(super().format(record), secrets=self._secrets)
        return safe(text.replace("\r\n", "\n").replace("\n", "\\n"))


class _LogFile(RotatingFileHandler):
    """A file that is for its owner alone where it lies in the home; elsewhere, where a person
    wanted it, their umask holds."""

    def __init__(self, path: Path, *, home: Path) -> None:
        self._home = home
        super().__init__(
            path, maxBytes=MAX_BYTES, backupCount=N_KEPT, encoding="utf-8", errors="replace"
        )

    def _open(self) -> TextIOWrapper:
        return open_log_file(Path(self.baseFilename), home=self._home)


def open_log_file(path: Path, *, home: Path) -> TextIOWrapper:
    """Return the file, opened to be written on, and its folder made where it is missing. Raises
    OSError."""
    is_at_home = path.is_relative_to(home)
    if is_at_home:
        private.make_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    return open(
        path,
        "a",
        encoding="utf-8",
        errors="replace",
        opener=private.open_file if is_at_home else None,
    )


def open_log(path: Path, *, home: Path, level: str = "info", secrets: Iterable[str] = ()) -> None:
    """Send this program's records from `level` and everybody else's from WARNING to the file.

    A home that cannot be written gets no log file; whoever needs the home says so.

    Args:
        secrets: what stands in no record, in whatever spelling.
    """
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    logging.raiseExceptions = False
    logging.captureWarnings(True)
    root.addHandler(_open_handler(path, home=home, secrets=secrets))
    root.setLevel(logging.WARNING)
    logging.getLogger("babyagi").setLevel(level.upper())


def close_log() -> None:
    """Close what `open_log` opened."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, RotatingFileHandler):
            root.removeHandler(handler)
            handler.close()
    logging.captureWarnings(False)


def _open_handler(path: Path, *, home: Path, secrets: Iterable[str]) -> logging.Handler:
    try:
        handler = _LogFile(path, home=home)
    except OSError:
        return logging.NullHandler()
    handler.setFormatter(_OneLineFormatter(secrets))
    return handler


def record_crash(error: BaseException) -> Path:
    """Write the traceback of an unexpected error to the log file, and return where it is."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, RotatingFileHandler):
            logging.getLogger("babyagi.cli").error("unexpected error", exc_info=error)
            return Path(handler.baseFilename)
    with tempfile.NamedTemporaryFile(
        "w", prefix="babyagi-", suffix=".log", delete=False, encoding="utf-8", errors="replace"
    ) as file:
        record = logging.LogRecord(
            "babyagi.cli",
            logging.ERROR,
            "",
            0,
            "unexpected error",
            None,
            (type(error), error, error.__traceback__),
        )
        file.write(_OneLineFormatter().format(record) + "\n")
        return Path(file.name)
