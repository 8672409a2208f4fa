"""The PostgreSQL driver of the SQL store: connections, errors, the schema, and LISTEN, through
which the server announces commits."""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg.rows import dict_row

from babyagi.errors import (
    NotFoundError,
    SettingsError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.redaction import redact, redact_url
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.database import (
    Row,
    Scripts,
    Transaction,
    from_time,
    load_scripts,
)

# Classes of SQLSTATE, by who can mend the error.
# Time mends these. 25 comes from a standby server, until it is promoted.
PASSING = frozenset("08 25 40 53 55 57 58 72".split())
LASTING = frozenset("28 3D 3F F0 XX".split())  # a person must mend these
OURS = frozenset(  # only a wrong SQL statement of this program causes these
    "02 03 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 26 27 2B 2D 2F 34 38 39 3B 42 44 54 HV P0".split()
)
# Codes of other classes that a person must mend: missing rights, tables or databases.
LASTING_CODES = frozenset(("42501", "42P01", "3F000", "57P04"))
ROLLED_BACK = "40"  # because of a deadlock or a conflict; to be repeated
LASTING_WORDS = re.compile(
    r"authentication failed|no password supplied|does not exist|no pg_hba\.conf "
    r"entry|permission denied|not permitted to log in"
    r"|certificate verify failed|server does not support SSL|invalid "
    r"(?:sslmode|port|connection option|URI)|missing \"=\""
    r"|requires? a peer user|could not find own user|root certificate file|is not "
    r"currently accepting connections"
)
WHY_CHARS = 300
# texts that psycopg's message quotes from the URL; any of them could be part of the password
_QUOTED = re.compile(r'"(?!(?:port|host|user|dbname|sslmode|connect_timeout|=)")[^"]*"')


@contextmanager
def translating_errors(shown: str) -> Iterator[None]:
    """Translate psycopg's errors into the errors of `babyagi.errors`. `shown` is the URL without
    its password."""
    try:
        yield
    except psycopg.Error as error:
        ours = translate(error, shown)
        if ours is None:
            raise
        raise ours from None  # psycopg's traceback may show the URL with the password


def translate(
    error: psycopg.Error, shown: str
) -> StoreUnavailableError | StoreUnusableError | SettingsError | None:
    """Return the error of `babyagi.errors` for psycopg's error; None when only a wrong SQL
    statement can have caused it."""
    # on one line, without what looks like a key
    why = redact(" ".join(str(error).split()))[:WHY_CHARS]
    if error.sqlstate is None and isinstance(error, psycopg.ProgrammingError):
        return SettingsError(
            f"the address of the task store is not a valid PostgreSQL URL: {shown}",
            why=_QUOTED.sub('"***"', why),
            fix="BABYAGI_TASK_STORE=postgresql://USER:PASSWORD@HOST/DATABASE",
            guide="store",
        )
    if error.sqlstate is None:
        is_passing = isinstance(error, psycopg.OperationalError)
        is_lasting = is_passing and bool(LASTING_WORDS.search(why))
    else:
        is_passing = error.sqlstate[:2] in PASSING
        is_lasting = error.sqlstate in LASTING_CODES or error.sqlstate[:2] in LASTING
    if is_lasting:
        return StoreUnusableError(
            f"the task store {shown} cannot be used",
            why=why,
            fix="check user, password, host and database of BABYAGI_TASK_STORE, and the rights of "
            "that user",
            guide="store",
        )
    what = f"the task store {shown} cannot answer now"
    return StoreUnavailableError(what, why=why, guide="store") if is_passing else None


# --------------------------------------------------------------------------------------------------
# Connections to PostgreSQL: one per thread, with a time limit for every wait.
# --------------------------------------------------------------------------------------------------

# Parameters that the URL may override, in seconds; `tcp_user_timeout` in milliseconds.
CONNECTING = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "application_name": "babyagi",
    "client_encoding": "utf8",
}
# The settings of each session. There is an index for every query. The planner must use it, whatever
# it assumes about a table that was empty a minute ago.
SESSION = (
    "-c search_path=babyagi -c synchronous_commit=on -c lock_timeout=10s -c statement_timeout=60s "
    "-c idle_in_transaction_session_timeout=5s -c plan_cache_mode=force_custom_plan -c jit=off "
    "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
)


READ_ONLY = " -c default_transaction_read_only=on"

ANSWER_S = 65.0  # longer than the server's own statement_timeout


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that closes itself if a statement gets no answer within `ANSWER_S` seconds."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        began_s, bound_s = time.monotonic(), ANSWER_S if timeout is None else timeout
        try:
            return super().wait(gen, interval, bound_s)
        except psycopg.Error as error:
            if timeout is None and error.sqlstate is None and time.monotonic() - began_s >= bound_s:
                self.pgconn.finish()
                why = f"the server did not answer for {bound_s:g} s"
                raise psycopg.OperationalError(why) from None
            raise


class Connections:
    """The connections of a store, one per thread. A connection is opened when a thread first needs
    it, and again after it was lost."""

    def __init__(self, url: str, *, only_looks: bool = False) -> None:
        """Raise `SettingsError` when the URL cannot be parsed. With `only_looks` the server itself
        refuses every write."""
        self.shown = redact_url(url)
        with translating_errors(self.shown):
            given: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
        options = f"{given.get('options') or ''} {SESSION}{READ_ONLY if only_looks else ''}".strip()
        self._conninfo = psycopg.conninfo.make_conninfo(
            "", **{**CONNECTING, **given, "options": options}
        )
        self._mine = threading.local()
        self._all: set[BoundedConnection] = set()
        self._lock = threading.Lock()
        self._is_closed = False

    def of_this_thread(self) -> BoundedConnection:
        """Return this thread's connection. Open one if there is none, or if the last one was lost.
        Raise `StoreUnavailableError` if the store is closed."""
        connection: BoundedConnection | None = getattr(self._mine, "connection", None)
        if connection is not None and not connection.closed:
            return connection
        fresh = self._mine.connection = self.connect()
        with self._lock:
            self._all = {known for known in self._all if not known.closed} | {fresh}
            if not self._is_closed:
                return fresh
        self.close()  # the store was closed while this thread connected
        raise StoreUnavailableError(f"the task store {self.shown} is closed")

    def connect(self) -> BoundedConnection:
        """Return a new connection. It sends all integers as eight bytes; otherwise a statement
        would be prepared once for each size of integer."""
        from psycopg.types.numeric import Int8Dumper

        connection = BoundedConnection.connect(self._conninfo, autocommit=True, prepare_threshold=0)
        connection.adapters.register_dumper(int, Int8Dumper)
        connection.prepared_max = None
        return connection

    def has_pid(self, pid: int) -> bool:
        """Return whether the server process with this pid serves one of these connections."""
        return any(
            not connection.closed and connection.info.backend_pid == pid
            for connection in tuple(self._all)
        )

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            while self._all:
                self._all.pop().close()


# --------------------------------------------------------------------------------------------------
# Noticing commits of other processes: one connection and one thread per store object, which connect
# again by themselves.
# --------------------------------------------------------------------------------------------------

# After so many seconds without a notification, a query tests whether the connection is alive.
PING_S = 15.0
RECONNECT_PAUSE_S = 1.0


class Listener:
    """Hears of the commits of other processes, in a thread of its own.

    Args:
        connect: returns a new connection.
        queries: the named SQL queries.
        is_own: returns whether the server process with this pid serves a connection of this store.
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        *,
        queries: Mapping[str, str],
        is_own: Callable[[int], bool],
    ) -> None:
        self._connect = connect
        self._queries = queries
        self._is_own = is_own
        self._on_heard: Callable[[], None] = lambda: None
        self._thread: threading.Thread | None = None
        self._closed_fd, self._close_fd = os.pipe()

    def watch(self, on_heard: Callable[[], None]) -> None:
        """Begin to listen. Call `on_heard` in the listening thread at each commit of another
        process, and whenever listening begins, because earlier commits may have been missed."""
        self._on_heard = on_heard
        self._thread = threading.Thread(target=self._run, name="taskstore-listener", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the listening thread. A second call does nothing."""
        if self._close_fd < 0:
            return
        os.close(self._close_fd)
        self._close_fd = -1
        if self._thread is not None:
            self._thread.join()
        os.close(self._closed_fd)

    def _run(self) -> None:
        while not self._is_closed(0):
            with suppress(psycopg.Error), self._connect() as connection:
                connection.execute(self._queries["listen"])
                self._on_heard()
                self._hear(connection)
                return
            if self._is_closed(RECONNECT_PAUSE_S):
                return

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        """Listen until the store is closed. Raise psycopg's error when the connection is lost."""
        while True:
            readable, _, _ = select.select([connection.fileno(), self._closed_fd], [], [], PING_S)
            if self._closed_fd in readable:
                return
            if not readable:
                connection.execute(self._queries["ping"])
            for notice in connection.notifies(timeout=0):
                if not self._is_own(notice.pid):
                    self._on_heard()

    def _is_closed(self, timeout_s: float) -> bool:
        return bool(select.select([self._closed_fd], [], [], timeout_s)[0])


# --------------------------------------------------------------------------------------------------
# The PostgreSQL driver: locks, transactions and commits. This code does not depend on the methods
# of the task store.
#
# There is one connection per thread; a process needs two to four, however many tasks it works on.
# All tables are in the schema `babyagi` of the database that the URL names. A write at READ
# COMMITTED first locks its objective's row (or keeps all other writers out, if it concerns several
# objectives), then reads the server's clock, and then does its work. Reads are REPEATABLE READ.
#
# Every wait has a time limit: for a connection, a lock, a statement, a network that was cut
# (keepalives), and a client that freezes in a transaction. LISTEN and the settings of a session
# need connections of their own, so a pooler in transaction mode cannot be used.
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")

# A transaction is tried so often, if the server rolls it back or the connection is lost before its
# commit.
TRIES = 5
# If the answer to a COMMIT was lost, the server is asked for so long whether the commit happened.
COMMIT_DOUBT_S = 60.0
COMMIT_ASK_PAUSE_S = 0.2


class PostgresTransaction(Transaction):
    """A transaction on PostgreSQL. Its `each` streams the rows from the server."""

    def each(self, query: str, **values: Any) -> Iterator[Row]:
        cursor = self._connection.cursor(row_factory=dict_row)
        yield from cursor.stream(self._queries[query], {**values, "now_us": self.now_us})


class PostgresDatabase:
    """A PostgreSQL database with the task store. Every method blocks and must be called in
    one of the store's threads."""

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], datetime] | None = None,
        scripts: Scripts | None = None,
        only_looks: bool = False,
        migrates: bool = False,
    ) -> None:
        """Connect, and create the schema if the database is empty.

        Args:
            url: `postgresql://user:password@host:port/database`.
            clock: the time to use instead of the server's clock, for tests.
            scripts: None stands for those of this program.
            only_looks: create and write nothing, and read an older schema too.
            migrates: upgrade an older schema, which is refused otherwise.

        Raises:
            SettingsError, StoreUnusableError, StoreUnavailableError.
            NotFoundError: with `only_looks`, the database is empty.
        """
        self._clock = clock
        self._queries = load_queries()
        self._connections = Connections(url, only_looks=only_looks)
        self.where = self._connections.shown
        self._listener = Listener(
            self._connections.connect, queries=self._queries, is_own=self._connections.has_pid
        )
        self._scripts = load_scripts("postgres") if scripts is None else scripts
        self.known_version = self._scripts.version
        try:
            with translating_errors(self.where):
                connection = self._connections.of_this_thread()
                tx = Transaction(connection, queries=self._queries, now_us=0)
                self.version_before = database.read_version(
                    tx, known=self.known_version, where=self.where
                )
                if only_looks:
                    self._require_tables()
                elif migrates or not self.version_before:
                    self._migrate(connection)
                else:
                    self._require_current()
        except BaseException:
            self.close()
            raise

    # -- the schema
    # ----------------------------------------------------------------------------------------------

    def _require_tables(self) -> None:
        if self.version_before == 0:
            raise NotFoundError(
                "there is no objective yet",
                why=f"the task store {self.where} is empty",
                fix='babyagi run "an objective"',
                guide="start",
            )

    def _require_current(self) -> None:
        if self.version_before < self.known_version:
            raise StoreUnusableError(
                f"the task store {self.where} was written by an older babyagi",
                why=(
                    f"the store has schema version {self.version_before}, this program needs "
                    f"version {self.known_version}"
                ),
                fix="stop every worker, make a backup (pg_dump), then: babyagi store migrate",
                guide="store",
            )

    def _migrate(self, connection: BoundedConnection) -> None:
        """Upgrade the schema of the version before, or create it in an empty database, in one
        transaction, unless another process has just done so. Raise `StoreUnusableError` for every
        other version, while workers of the older program are running, and if the database does not
        use UTF-8."""
        encoding = self._query_one(connection, "encoding")["encoding"]
        if encoding != "UTF8":
            raise StoreUnusableError(
                f"the task store {self.where} cannot be used",
                why=f"the database has the encoding {encoding}, but only UTF8 can store every text",
                fix="create a database with ENCODING 'UTF8'",
                guide="store",
            )
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            self._query_one(connection, "lock_schema")
            tx = self._transaction(connection, self._query_one(connection, "clock")["now_us"])
            self.version_before, script = database.find_script(tx, self._scripts, where=self.where)
            if not (self.version_before or self._query_one(connection, "has_schema")):
                connection.execute(self._queries["create_schema"])
            if script:  # it has several statements
                connection.execute(script, prepare=False)

    # -- transactions
    # ----------------------------------------------------------------------------------------------

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        """Do as `Database.write` says, but make every write durable, even if not `is_lasting`,
        because workers on other machines keep running when the server loses power."""
        locking = partial(self._query_one, query="lock_for_writing", objective_id=objective_id)
        return self._repeat_if_rolled_back("READ COMMITTED", locking, work)

    def read(self, work: Callable[[Transaction], T]) -> T:
        looking = partial(self._query_one, query="clock")
        return self._repeat_if_rolled_back("REPEATABLE READ, READ ONLY", looking, work)

    read_unchecked = read  # the server accepts only valid UTF-8

    def find_damage(self) -> list[str]:
        return []  # the server checks its own pages

    def watch(self, on_commit: Callable[[], None]) -> None:
        self._listener.watch(on_commit)

    def close(self) -> None:
        self._listener.close()
        self._connections.close()

    def _transaction(self, connection: BoundedConnection, now_us: int) -> Transaction:
        now_us = from_time(self._clock()) if self._clock else now_us
        return PostgresTransaction(connection, queries=self._queries, now_us=now_us)

    def _query_one(self, connection: BoundedConnection, query: str, **values: Any) -> Any:
        """Return the first row of a query that does not belong to a transaction of the store."""
        return Transaction(connection, queries=self._queries, now_us=0).one(query, **values)

    def _repeat_if_rolled_back(
        self,
        mode: str,
        begin: Callable[[BoundedConnection], Any],
        work: Callable[[Transaction], T],
    ) -> T:
        """Run a transaction, and return its outcome. If the server rolls it back, or the connection
        is lost before its commit, nothing was changed, so repeat it, up to `TRIES` times in all.

        Args:
            mode: the isolation level, and what the transaction may do.
            begin: sends the first query, and returns its row: the clock and, of a transaction that
                writes, its id.
        """

        def transact(connection: BoundedConnection) -> T:
            try:
                connection.execute(f"BEGIN ISOLATION LEVEL {mode}")
                begun = begin(connection)
                done = work(self._transaction(connection, begun["now_us"]))
                self._commit(connection, begun.get("transaction"))
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                raise
            return done

        with translating_errors(self.where):
            for _ in range(TRIES - 1):
                connection = self._connections.of_this_thread()
                try:
                    return transact(connection)
                except psycopg.Error as error:
                    is_rolled_back = (error.sqlstate or "").startswith(ROLLED_BACK)
                    if not (is_rolled_back or connection.closed):
                        raise
            return transact(self._connections.of_this_thread())

    def _commit(self, connection: BoundedConnection, transaction: str | None) -> None:
        """Commit. If the connection of a transaction that writes is lost meanwhile, ask on another
        connection whether the commit happened, and raise only if it did not."""
        try:
            connection.execute("COMMIT")
        except psycopg.Error:
            if not (transaction and connection.closed and self._was_committed(transaction)):
                raise

    def _was_committed(self, transaction: str) -> bool:
        """Return whether the transaction was committed. Raise `StoreUnavailableError` if the server
        does not say so within `COMMIT_DOUBT_S` seconds."""
        deadline = time.monotonic() + COMMIT_DOUBT_S
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                outcome = self._query_one(
                    self._connections.of_this_thread(), "outcome", transaction=transaction
                )["outcome"]
                if outcome in ("committed", "aborted"):
                    return bool(outcome == "committed")
            time.sleep(COMMIT_ASK_PAUSE_S)
        raise StoreUnavailableError(
            f"the task store {self.where} cannot answer now",
            why="the connection was lost during a commit, and it is unknown whether the commit "
            "succeeded",
        )


def load_queries() -> dict[str, str]:
    """Return the named SQL queries in psycopg's syntax, with `%(name)s` for `:name`."""
    return {
        name: re.sub(r"(?<![:\w]):([a-z_]\w*)", r"%(\1)s", query.replace("%", "%%"))
        for name, query in database.load_queries("postgres").items()
    }
