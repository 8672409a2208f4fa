"""The log that a worker writes on standard error where no person watches: one record for each
change, as a line of text or of JSON.

The words are those of the lines on a screen. No prompt, no result and no key stands in a record.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from babyagi.cli.text import safe_line
from babyagi.redaction import redact
from babyagi.tasks import Event

MAX_MESSAGE_CHARS = 2000
_FIELDS = ("event", "schedule_id", "objective_id", "task_id")


class RecordFormatter(logging.Formatter):
    """`at=2026-12-01T03:00:00.125Z level=info event=task.done objective_id=1 task_id=2 msg="…"`, or
    the same as an object of JSON, a line each."""

    def __init__(self, *, as_json: bool, worker: str, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._as_json = as_json
        self._worker = worker
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, object] = {
            "at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "worker": self._worker,
        }
        found = {name: getattr(record, name, None) for name in _FIELDS}
        fields |= {name: value for name, value in found.items() if value is not None}
        if not found["event"]:
            fields["logger"] = record.name
        text = safe_line(redact(self._message(record), secrets=self._secrets))
        fields["msg"] = text[:MAX_MESSAGE_CHARS]
        if self._as_json:
            return json.dumps(fields, ensure_ascii=False)
        return " ".join(f"{name}={_quoted(value)}" for name, value in fields.items())

    def _message(self, record: logging.LogRecord) -> str:
        """What it says, and of an exception its kind and words; the traceback is in the file."""
        error = record.exc_info[1] if record.exc_info else None
        said = record.getMessage()
        return f"{said}: {type(error).__name__}: {error}" if error is not None else said


def _quoted(value: object) -> str:
    """As logfmt has it: quoted where it is no plain word."""
    text = str(value)
    is_plain = text.isascii() and all(one.isalnum() or one in "-_.:/+" for one in text)
    return text if text and is_plain else json.dumps(text, ensure_ascii=False)


def open_worker_log(*, as_json: bool, worker: str, secrets: Iterable[str] = ()) -> logging.Handler:
    """Let the records of this program, and warnings of others, go to standard error as well; the
    caller removes the handler with `close_worker_log`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RecordFormatter(as_json=as_json, worker=worker, secrets=secrets))
    logging.getLogger().addHandler(handler)
    return handler


def close_worker_log(handler: logging.Handler) -> None:
    logging.getLogger().removeHandler(handler)
    handler.close()


class SilentView:
    """Shows nothing: whoever follows with it wants the records alone."""

    tick_s = 1.0
    pause_s = 0.0

    async def fetch(self, events: Sequence[Event]) -> None:
        """Nothing is fetched for what is not drawn."""

    def draw(self) -> None:
        """Nothing is drawn."""
