"""The SQLite driver: the file, its lock, its transactions and its errors. It knows no verb and no rule.

One connection, used by one thread at a time. Writers of all processes queue on an flock beside the file: SQLite's own waiting is not
fair (of eight writers one starved for seconds), and the lock is also held while the file is opened, checkpointed and closed.

Needs SQLite 3.35 or later, and a local disk: flock and WAL do not work over most network file systems.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from babyagi.errors import StoreUnavailableError, StoreUnusableError
from babyagi.taskstore.rows import from_time

T = TypeVar("T")

SCHEMA_VERSION = 1
LOCK_TRIES = 5000  # with the pause below, ten seconds
LOCK_PAUSE_S = 0.002
BUSY_TIMEOUT_S = 10.0
QUICK_CHECK_MAX_BYTES = 64_000_000  # read in about 0.1 s; a larger file is checked row by row as it is read
PASSING_CODES = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_INTERRUPT,
)
LASTING_CODES = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOLFS,
)


class Transaction:
    """A transaction that is under way: named pieces of SQL, and one instant that all of it happens at."""

    def __init__(self, connection: sqlite3.Connection, *, pieces: Mapping[str, str], now_us: int) -> None:
        self._connection = connection
        self._pieces = pieces
        self.now_us = now_us

    def run(self, piece: str, **values: Any) -> int:
        """Returns how many rows were changed."""
        return self._connection.execute(self._pieces[piece], values).rowcount

    def run_many(self, piece: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._connection.executemany(self._pieces[piece], rows)

    def one(self, piece: str, **values: Any) -> sqlite3.Row | None:
        cursor = self._connection.execute(self._pieces[piece], values)
        row: sqlite3.Row | None = cursor.fetchone()
        cursor.close()
        return row

    def all(self, piece: str, **values: Any) -> list[sqlite3.Row]:
        return self._connection.execute(self._pieces[piece], values).fetchall()

    def each(self, piece: str, **values: Any) -> Iterator[sqlite3.Row]:
        """The rows one by one, for more than memory should hold."""
        yield from self._connection.execute(self._pieces[piece], values)

    def has(self, piece: str, **values: Any) -> bool:
        return self.one(piece, **values) is not None


class SqliteDatabase:
    """An open file. Every method blocks and belongs into the store's thread."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime]) -> None:
        """Open the file, creating it (mode 0600) and its schema when there is none.

        Raises:
            StoreUnusableError, StoreUnavailableError.
        """
        self.path = path
        self._clock = clock
        self._now_us = 0
        self._pieces = _load_pieces()
        self._lock_fd = self._open_private(path.with_name(path.name + ".lock"))
        self._connection: sqlite3.Connection | None = None
        try:
            with self._errors(), self._lock():
                os.close(self._open_private(path))
                self._connection = self._connect()
                self._check()
                self._migrate()
        except BaseException:
            self._abandon()
            raise

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run the work in one transaction; whatever it raises, nothing is changed."""
        with self._errors(), self._lock():
            return self._transact("BEGIN IMMEDIATE", work)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run the work on one consistent state."""
        with self._errors():
            return self._transact("BEGIN", work)

    def read_as_it_lies(self, work: Callable[[Transaction], T]) -> T:
        """As `read`, but text that is no UTF-8 any more is handed out too, so that one damaged row does not hide the others."""
        connection = self._open()
        connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
        try:
            return self.read(work)
        finally:
            connection.text_factory = str

    def find_damage(self) -> list[str]:
        """What SQLite itself finds wrong with the pages and indexes of the whole file, at most 20 faults."""
        with self._errors():
            found = [str(row[0]) for row in self._open().execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        with self._errors():
            return int(self._open().execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Fold the log into the file and close both. A second call does nothing."""
        if self._connection is None:
            return
        with self._errors(), self._lock():
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._connection.close()
                self._connection = None
        os.close(self._lock_fd)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError(f"the task store {self.path} is closed")
        return self._connection

    def _transact(self, begin: str, work: Callable[[Transaction], T]) -> T:
        connection = self._open()
        connection.execute(begin)
        try:
            self._now_us = from_time(self._clock())
            done = work(Transaction(connection, pieces=self._pieces, now_us=self._now_us))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return done

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """The flock; bounded, so that a writer frozen by a debugger cannot hang every other one for ever."""
        for _ in range(LOCK_TRIES):
            try:
                fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(LOCK_PAUSE_S)
        else:
            raise StoreUnavailableError(
                f"the task store {self.path} is locked",
                why=f"another process held {self.path}.lock for {LOCK_TRIES * LOCK_PAUSE_S:g} s",
            )
        try:
            yield
        finally:
            fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    # -- opening ---------------------------------------------------------------------------------------------------------

    def _open_private(self, path: Path) -> int:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreUnusableError(
                f"the task store {self.path} cannot be written",
                why=f"{path}: {error.strerror}",
                fix="choose a folder that exists and that you may write to",
                guide="store",
            ) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        connection.row_factory = sqlite3.Row
        connection.create_function("now_us", 0, lambda: self._now_us)
        try:
            for pragma in ("synchronous = FULL", "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self) -> None:
        if self.path.stat().st_size > QUICK_CHECK_MAX_BYTES:
            return
        found = [str(row[0]) for row in self._open().execute("PRAGMA quick_check(1)")]
        if found != ["ok"]:
            raise self._damaged(" ".join(" ".join(found).split())[:200])

    def _migrate(self) -> None:
        """Bring the schema to this program's version, each version in one transaction."""
        version = self._schema_version()
        if version > SCHEMA_VERSION:
            raise StoreUnusableError(
                f"the task store {self.path} was written by a newer babyagi",
                why=f"its schema has version {version}, this program knows versions up to {SCHEMA_VERSION}",
                fix="pip install --upgrade babyagi-daemon",
                guide="store",
            )
        self._open().execute("PRAGMA journal_mode = WAL").fetchall()  # the first change, and made to no file but our own
        for number in range(version + 1, SCHEMA_VERSION + 1):
            script = files(__package__).joinpath(f"schema_{number:03}.sql").read_text("utf-8")
            connection = self._open()
            try:
                connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nCOMMIT;")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _schema_version(self) -> int:
        names = {row["name"] for row in self._open().execute(self._pieces["tables"])}
        if not names:
            return 0
        row = None
        if "meta" in names:
            row = self._open().execute(self._pieces["schema_version"]).fetchone()
        if row is None or not str(row["value"]).isdigit():
            raise StoreUnusableError(
                f"{self.path} is a database, but no task store of babyagi",
                why=f"it holds {len(names)} other tables",
                fix="choose another file",
                guide="store",
            )
        return int(row["value"])

    def _abandon(self) -> None:
        """Let go of an opening that failed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        os.close(self._lock_fd)

    # -- errors ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say SQLite's errors in our words. A statement that is wrong is a programmer's error and stays as it is."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in PASSING_CODES:
                raise StoreUnavailableError(f"the task store {self.path} cannot answer now", why=str(error)) from error
            if (code is not None and code & 0xFF in LASTING_CODES) or "decode to UTF-8" in str(error):
                raise self._damaged(str(error)) from error
            raise

    def _damaged(self, why: str) -> StoreUnusableError:
        return StoreUnusableError(
            f"the task store {self.path} cannot be used",
            why=why,
            fix=f"restore a backup of {self.path}, or move it (with its -wal and -shm) away to start afresh",
            guide="store",
        )


def _load_pieces() -> dict[str, str]:
    """The named pieces of every `.sql` file that is not a schema, by name."""
    pieces: dict[str, str] = {}
    for room in ("meta", "objectives", "tasks", "steps"):
        pieces |= parse_pieces(files(__package__).joinpath(f"{room}.sql").read_text("utf-8"))
    return pieces


def parse_pieces(text: str) -> dict[str, str]:
    """Split SQL at its `-- name --` headers."""
    pieces: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("-- ") and line.endswith(" --"):
            name = line[3:-3]
            if name in pieces:
                raise ValueError(f"two pieces of SQL are called {name}")
            pieces[name] = []
        elif name and not line.startswith("--"):
            pieces[name].append(line)
    return {name: "\n".join(lines).strip() for name, lines in pieces.items()}
