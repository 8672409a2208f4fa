"""SQLite's connection, transactions, schema and errors, wherever the database lies: in a file
(`sqlite`) or in memory (`memory`).

One connection, used by one thread at a time. It knows no verb and no rule. Needs SQLite 3.35 or
later.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from babyagi.errors import StoreUnavailableError, StoreUnusableError
from babyagi.taskstore import pieces
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.rows import from_time

T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0
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


class SqliteEngine:
    """A database of SQLite. Whoever derives from it opens the connection and brings the schema to
    this program's version.

    Args:
        where: the file, or what else names the database, for a person.
        scripts: what makes the schema, one script per version, when not those of this program.
    """

    is_told = False

    def __init__(
        self, where: str, *, clock: Callable[[], datetime], scripts: Sequence[str] | None = None
    ) -> None:
        self._clock = clock
        self._scripts = pieces.load_scripts("schema") if scripts is None else scripts
        self.where, self.known_version = where, len(self._scripts)
        self._pieces = pieces.load_pieces("sqlite")
        self._connection: sqlite3.Connection | None = None

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

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        with self._errors():
            return int(self._open().execute("PRAGMA data_version").fetchone()[0])

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError(f"the task store {self.where} is closed")
        return self._connection

    def _transact(self, begin: str, work: Callable[[Transaction], T]) -> T:
        connection = self._open()
        connection.execute(begin)
        try:
            done = work(
                Transaction(connection, pieces=self._pieces, now_us=from_time(self._clock()))
            )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return done

    def _connect(self, *pragmas: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.where, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.row_factory = sqlite3.Row
        try:
            for pragma in (*pragmas, "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def _run_scripts(self, version: int) -> None:
        """Bring the schema from this version to the program's, each version in one transaction."""
        connection = self._open()
        for script in self._scripts[version:]:
            try:
                connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nCOMMIT;")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say SQLite's errors in our words. A statement that is wrong is a programmer's error and
        stays as it is."""
        try:
            yield
        except UnicodeDecodeError as error:  # a damaged schema, in what SQLite says of it
            raise self._damaged(str(error)) from error
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in PASSING_CODES:
                raise StoreUnavailableError(
                    f"the task store {self.where} cannot answer now", why=str(error), guide="store"
                ) from error
            if (code is not None and code & 0xFF in LASTING_CODES) or "decode to UTF-8" in str(
                error
            ):
                raise self._damaged(str(error)) from error
            # the text of the schema is in the file, too
            if str(error).startswith(("no such table", "no such column")):
                raise self._damaged(str(error)) from error
            if code == sqlite3.SQLITE_CONSTRAINT_CHECK:
                raise self._contradictory(str(error)) from error
            raise

    def _contradictory(self, why: str) -> StoreUnusableError:
        """A count would fall below nothing: what this program writes fits what it wrote before."""
        fix = (
            "babyagi journal verify names every damaged row; then restore a backup of the "
            "task store"
        )
        return StoreUnusableError(
            f"the task store {self.where} is damaged: its rows contradict each other",
            why=why,
            fix=fix,
            guide="store",
        )

    def _damaged(self, why: str) -> StoreUnusableError:
        return StoreUnusableError(
            f"the task store {self.where} cannot be used", why=why, guide="store"
        )
