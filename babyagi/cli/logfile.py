"""The log file: plain lines for whoever looks for a cause later. Nothing is ever logged to the terminal."""

from __future__ import annotations

import logging
import tempfile
from logging.handlers import RotatingFileHandler
from pathlib import Path

from babyagi.cli.text import safe

MAX_BYTES = 5_000_000
N_KEPT = 3
_FORMAT = "%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"


class _OneLineFormatter(logging.Formatter):
    """Keeps a record on one line, whatever text it carries; a traceback follows on lines of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        record.message = safe(record.message)
        return super().formatMessage(record)


def open_log(path: Path, *, level: str = "info") -> None:
    """Send this program's records from `level` and everybody else's from WARNING to the file, opened when the first one comes.

    A home that cannot be written gets no log file; whoever needs the home says so.
    """
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    logging.raiseExceptions = False
    logging.captureWarnings(True)
    root.addHandler(_open_handler(path))
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


def _open_handler(path: Path) -> logging.Handler:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(path, maxBytes=MAX_BYTES, backupCount=N_KEPT, encoding="utf-8", errors="replace")
    except OSError:
        return logging.NullHandler()
    handler.setFormatter(_OneLineFormatter(_FORMAT))
    return handler


def record_crash(error: BaseException) -> Path:
    """Write the traceback of an unexpected error to the log file, and return where it is."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, RotatingFileHandler):
            logging.getLogger("babyagi.cli").error("unexpected error", exc_info=error)
            return Path(handler.baseFilename)
    with tempfile.NamedTemporaryFile("w", prefix="babyagi-", suffix=".log", delete=False, encoding="utf-8", errors="replace") as file:
        record = logging.LogRecord("babyagi.cli", logging.ERROR, "", 0, "unexpected error", None, (type(error), error, error.__traceback__))
        file.write(_OneLineFormatter(_FORMAT).format(record) + "\n")
        return Path(file.name)
