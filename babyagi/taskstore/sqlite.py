"""SQLite in a file: the file, its lock, its upgrades and its closing.

Writers of all processes queue on an flock beside the file: SQLite's own waiting is not fair (of
eight writers one starved for seconds),
and the lock is also held while the file is opened, checkpointed and closed.

Needs a local disk: flock and WAL do not work over most network file systems.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from babyagi import private
from babyagi.errors import StoreUnusableError
from babyagi.taskstore import pieces
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.sqlite_engine import SqliteEngine
from babyagi.taskstore.sqlite_lock import FileLock
from babyagi.taskstore.sqlite_watch import FileWatch

T = TypeVar("T")

# read in about 0.1 s; a larger file is checked row by row as it is read
QUICK_CHECK_MAX_BYTES = 64_000_000


class SqliteDatabase(SqliteEngine):
    """An open file. Every method blocks and belongs into the store's thread."""

    def __init__(
        self, path: Path, *, clock: Callable[[], datetime], scripts: Sequence[str] | None = None
    ) -> None:
        """Open the file, creating it (mode 0600) when there is none, and bring its schema to this
        program's version.

        Args:
            scripts: what makes the schema, one script per version, when not those of this program.

        Raises:
            StoreUnusableError, StoreUnavailableError.
        """
        super().__init__(str(path), clock=clock, scripts=scripts)
        self.path = path
        self._wal = path.with_name(path.name + "-wal")
        self._lock = FileLock(path.with_name(path.name + ".lock"), open_file=self._open_private)
        self._watch: FileWatch | None = None
        self._is_lasting = True  # whether a commit waits for the disk; the log keeps their order
        try:
            with self._errors(), self._lock.held():
                os.close(self._open_private(path))
                self._opened = _identity(path)
                self._connection = self._connect("synchronous = FULL")
                self._check()
                self._migrate()
        except BaseException:
            self._abandon()
            raise

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        self._require_own_file()
        with self._errors(), self._lock.held():
            if is_lasting is not self._is_lasting:
                self._open().execute(
                    f"PRAGMA synchronous = {'FULL' if is_lasting else 'NORMAL'}"
                ).fetchall()
                self._is_lasting = is_lasting
            return self._transact("BEGIN IMMEDIATE", work)

    def read(self, work: Callable[[Transaction], T]) -> T:
        self._require_own_file()
        return super().read(work)

    def watch(self, on_sign: Callable[[], None]) -> None:
        self._watch = FileWatch(self._wal, on_sign=on_sign)

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

    # -- opening
    # ----------------------------------------------------------------------------------------------

    def _open_private(self, path: Path) -> int:
        try:
            return private.open_file(path)
        except OSError as error:
            raise StoreUnusableError(
                f"the task store {self.path} cannot be written",
                why=f"{path}: {error.strerror}",
                fix="choose a folder that exists and that you may write to",
                guide="store",
            ) from error

    def _check(self) -> None:
        if self.path.stat().st_size > QUICK_CHECK_MAX_BYTES:
            return
        connection = self._open()
        # a row is named by whoever reads it; here the pages count
        connection.execute("PRAGMA ignore_check_constraints = ON")
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
        connection.execute("PRAGMA ignore_check_constraints = OFF")
        if found != ["ok"]:
            raise self._damaged(" ".join(" ".join(found).split())[:200])

    def _migrate(self) -> None:
        """Bring the schema to this program's version, each version in one transaction; never under
        living workers, and with a copy of the file as it was beside it."""
        version = self._schema_version()
        pieces.require_known(version, known=self.known_version, where=self.where)
        connection = self._open()
        # the first change, and made to no file but our own
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        if 0 < version < len(self._scripts):
            self._require_no_worker(version)
            self._back_up(version)
        self._run_scripts(version)

    def _require_own_file(self) -> None:
        """Raises `StoreUnusableError` when the path leads to another file than the one that is
        open, or to none: SQLite would go on writing to a file that nobody finds any more."""
        found = _identity(self.path)
        if found != self._opened:
            raise StoreUnusableError(
                (
                    f"the task store {self.path} is "
                    f"{'gone' if found is None else 'another file than this process opened'}"
                ),
                why=(
                    "the file or its folder was removed, moved or replaced while this "
                    "process was at work; nothing more is written to it"
                ),
                fix="put back what was moved, or restore a backup, then: babyagi resume",
                guide="store",
            )

    def _schema_version(self) -> int:
        names = [str(row["name"]) for row in self._open().execute(self._pieces["tables"])]
        row = (
            self._open().execute(self._pieces["schema_version"]).fetchone()
            if "meta" in names
            else None
        )
        return pieces.parse_version(
            names, None if row is None else str(row["value"]), where=str(self.path)
        )

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

    def _damaged(self, why: str) -> StoreUnusableError:
        return StoreUnusableError(
            f"the task store {self.path} cannot be used",
            why=why,
            fix=(
                f"restore a backup of {self.path}, or move it (with its -wal and -shm) away "
                "to start afresh"
            ),
            guide="store",
        )


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells the file at the path from any that takes its place, None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
