"""Connections to PostgreSQL: one per thread, with a bound on every wait, and what both the driver
and its schema say to them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from babyagi.errors import SettingsError, StoreUnavailableError
from babyagi.redaction import redact_url
from babyagi.taskstore.postgres_errors import in_our_words

if TYPE_CHECKING:
    import psycopg

CONNECTING = {  # seconds, and milliseconds for tcp_user_timeout; what the URL says itself stands
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "babyagi",
    "client_encoding": "utf8",
}
# an index stands for every question: the planner's guesses about a table that was empty a minute
# ago must not matter
SESSION = (
    "-c search_path=babyagi -c synchronous_commit=on -c lock_timeout=10s -c statement_timeout=60s "
    "-c idle_in_transaction_session_timeout=5s -c plan_cache_mode=force_generic_plan -c jit=off "
    "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
)


class Connections:
    """Made when a thread first needs one, and again after it was lost."""

    def __init__(self, url: str) -> None:
        """Raises `SettingsError`: no driver, or a URL that cannot be read."""
        self.shown = redact_url(url)
        try:
            import psycopg
        except ImportError as error:
            raise SettingsError(
                f"the task store {self.shown} needs a driver that is not installed",
                why=str(error),
                fix="pip install 'babyagi-daemon[postgres]'",
                guide="store",
            ) from error
        with in_our_words(self.shown):
            given: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
        options = f"{given.get('options') or ''} {SESSION}".strip()
        self._conninfo = psycopg.conninfo.make_conninfo(
            "", **{**CONNECTING, **given, "options": options}
        )
        self._mine = threading.local()
        self._all: set[psycopg.Connection[Any]] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def mine(self) -> psycopg.Connection[Any]:
        """This thread's connection."""
        connection: psycopg.Connection[Any] | None = getattr(self._mine, "connection", None)
        if connection is not None and not connection.closed:
            return connection
        fresh = self._mine.connection = self.connect()
        with self._lock:
            self._all = {known for known in self._all if not known.closed} | {fresh}
            if not self._is_closed:
                return fresh
        self.close()  # what nobody waits for any more came after the end
        raise StoreUnavailableError(f"the task store {self.shown} is closed")

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection, for whoever calls; every number is sent as eight bytes, so that a
        statement is prepared once."""
        from psycopg.rows import dict_row
        from psycopg.types.numeric import Int8Dumper

        from babyagi.taskstore.postgres_bounded import BoundedConnection

        connection = BoundedConnection.connect(
            self._conninfo, autocommit=True, prepare_threshold=0, row_factory=dict_row
        )
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.prepared_max = None
        return connection

    def has_pid(self, pid: int) -> bool:
        """Whether the server's process of this number serves one of these connections."""
        return any(
            not connection.closed and connection.info.backend_pid == pid
            for connection in tuple(self._all)
        )

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            while self._all:
                self._all.pop().close()


@contextmanager
def rolled_back_on_error(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """What was begun is not left open, whatever is raised."""
    try:
        yield
    except BaseException:
        import psycopg

        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise
