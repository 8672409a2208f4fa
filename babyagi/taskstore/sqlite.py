"""The SQLite driver: the file, its lock, its transactions and its errors. It knows no verb and no rule.

One connection, used by one thread at a time. Writers of all processes queue on an flock beside the file: SQLite's own waiting is not
fair (of eight writers one starved for seconds), and the lock is also held while the file is opened, checkpointed and closed.

Needs SQLite 3.35 or later, and a local disk: flock and WAL do not work over most network file systems.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from babyagi.errors import StoreUnavailableError, StoreUnusableError
from babyagi.taskstore import pieces
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.rows import from_time
from babyagi.taskstore.sqlite_lock import FileLock
from babyagi.taskstore.sqlite_watch import FileWatch

T = TypeVar("T")

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


class SqliteDatabase:
    """An open file. Every method blocks and belongs into the store's thread."""

    is_told = False

    def __init__(self, path: Path, *, clock: Callable[[], datetime], scripts: Sequence[str] | None = None) -> None:
        """Open the file, creating it (mode 0600) when there is none, and bring its schema to this program's version.

        Args:
            scripts: what makes the schema, one script per version, when not those of this program.

        Raises:
            StoreUnusableError, StoreUnavailableError.
        """
        self.path = path
        self._clock = clock
        self._scripts = pieces.load_scripts("schema") if scripts is None else scripts
        self.where, self.known_version = str(path), len(self._scripts)
        self._pieces = pieces.load_pieces("sqlite")
        self._wal = path.with_name(path.name + "-wal")
        self._lock = FileLock(path.with_name(path.name + ".lock"), open_file=self._open_private)
        self._watch: FileWatch | None = None
        self._connection: sqlite3.Connection | None = None
        self._is_lasting = True  # whether a commit waits for the disk; the log keeps their order
        try:
            with self._errors(), self._lock.held():
                os.close(self._open_private(path))
                self._connection = self._connect()
                self._check()
                self._migrate()
        except BaseException:
            self._abandon()
            raise

    def write(self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True) -> T:
        with self._errors(), self._lock.held():
            if is_lasting is not self._is_lasting:
                self._open().execute(f"PRAGMA synchronous = {'FULL' if is_lasting else 'NORMAL'}").fetchall()
                self._is_lasting = is_lasting
            return self._transact("BEGIN IMMEDIATE", work)

    def read(self, work: Callable[[Transaction], T]) -> T:
        with self._errors():
            return self._transact("BEGIN", work)

    def read_as_it_lies(self, work: Callable[[Transaction], T]) -> T:
        connection = self._open()
        connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
        try:
            return self.read(work)
        finally:
            connection.text_factory = str

    def find_damage(self) -> list[str]:
        with self._errors():
            found = [str(row[0]) for row in self._open().execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def watch(self, on_sign: Callable[[], None]) -> None:
        self._watch = FileWatch(self._wal, on_sign=on_sign)

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        with self._errors():
            return int(self._open().execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Fold the log into the file and close both. A second call does nothing."""
        if self._watch is not None:
            self._watch.close()
        if self._connection is None:
            return
        with self._errors(), self._lock.held():
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._connection.close()
                self._connection = None
        self._lock.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError(f"the task store {self.path} is closed")
        return self._connection

    def _transact(self, begin: str, work: Callable[[Transaction], T]) -> T:
        connection = self._open()
        connection.execute(begin)
        try:
            done = work(Transaction(connection, pieces=self._pieces, now_us=from_time(self._clock())))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return done

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
        """Bring the schema to this program's version, each version in one transaction; never under living workers, and with a copy
        of the file as it was beside it."""
        version = self._schema_version()
        pieces.require_known(version, known=self.known_version, where=self.where)
        connection = self._open()
        connection.execute("PRAGMA journal_mode = WAL").fetchall()  # the first change, and made to no file but our own
        if 0 < version < len(self._scripts):
            self._require_no_worker(version)
            self._back_up(version)
        for script in self._scripts[version:]:
            try:
                connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nCOMMIT;")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _schema_version(self) -> int:
        names = [str(row["name"]) for row in self._open().execute(self._pieces["tables"])]
        row = self._open().execute(self._pieces["schema_version"]).fetchone() if "meta" in names else None
        return pieces.parse_version(names, None if row is None else str(row["value"]), where=str(self.path))

    def _require_no_worker(self, version: int) -> None:
        if self.read(lambda tx: tx.has("has_living_worker")):
            raise pieces.held_up(version, self._scripts, where=str(self.path))

    def _back_up(self, version: int) -> None:
        """Copy the file, whole or not at all, to `<name>.version-<n>`."""
        path = self.path.with_name(f"{self.path.name}.version-{version}")
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        os.close(self._open_private(unfinished))
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
            self._open().backup(copy)
        unfinished.replace(path)

    def _abandon(self) -> None:
        """Let go of an opening that failed."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._lock.close()

    # -- errors ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say SQLite's errors in our words. A statement that is wrong is a programmer's error and stays as it is."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in PASSING_CODES:
                raise StoreUnavailableError(f"the task store {self.path} cannot answer now", why=str(error), guide="store") from error
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
