"""The SQLite driver for commands that only look: it opens the file read-only, and creates, upgrades
and writes nothing. So it works on a full disk, on a read-only one, and beside an older worker.

Which way the file is read depends on its write-ahead log. While the log has content, commits may be
in it alone, and SQLite reads both as any other process does. While it has none, the file is
complete. It is then read as one that cannot change, because SQLite would otherwise create the log
and its index beside it; the store's lock is shared meanwhile, so no process writes.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from babyagi.errors import StoreUnusableError
from babyagi.runtime.offload import Offload
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.database import Transaction
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import (
    FileLock,
    MemoryTaskStore,
    SqliteEngine,
)

T = TypeVar("T")

BESIDE_OTHERS = "mode=ro"
UNCHANGING = "immutable=1"
# without SQLite's own locks and without a file for the log's index
ALONE = "mode=ro&vfs=unix-none"


class LookingDatabase(SqliteEngine):
    """A task store in a file that is only read. Every method blocks; a write raises
    `StoreUnusableError`."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime]) -> None:
        """Open the file.

        Raises:
            StoreUnusableError: the file is damaged, no task store, or of a version that this
                program cannot read.
            StoreUnavailableError: the file is locked.
        """
        path = path.resolve() if path.is_symlink() else path
        super().__init__(str(path), clock=clock)
        self.path = path
        self._lock_path = path.with_name(path.name + ".lock")
        with self._errors(), self._to_read() as connection:
            tx = self._begin_on(connection)
            self.version_before = database.read_version(
                tx, known=self.known_version, where=self.where
            )

    def read_unchecked(self, work: Callable[[Transaction], T]) -> T:
        if self.version_before < self.known_version:
            raise StoreUnusableError(
                f"the task store {self.where} is of an earlier version, and its rows cannot be "
                "checked before it is updated",
                fix="babyagi store migrate updates it, while no earlier worker is running",
                guide="store",
            )
        return super().read_unchecked(work)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- connections
    # ----------------------------------------------------------------------------------------------

    @contextmanager
    def _to_read(self) -> Iterator[sqlite3.Connection]:
        with self._writers_kept_out():
            if _size_of(Path(f"{self.where}-wal")) <= 0:
                with closing(self._open_as(UNCHANGING)) as connection:
                    yield connection
                return
        try:
            connection = self._connection = self._connection or self._open_as(BESIDE_OTHERS)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL):
                raise
            # the log was left behind where its index cannot be created
            with self._writers_kept_out(), closing(self._open_as(ALONE)) as connection:
                yield connection
        else:
            yield connection

    def _open_as(self, options: str) -> sqlite3.Connection:
        connection = self._connect(
            "locking_mode = EXCLUSIVE" if options is ALONE else "query_only = ON",
            address=f"file:{quote(str(self.path.absolute()))}?{options}",
        )
        try:
            connection.execute("PRAGMA schema_version").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _writers_kept_out(self) -> Iterator[None]:
        """Share the lock that each writing process takes. Without a lock file, or without the right
        to read it, no process can be writing here.

        Raises:
            StoreUnavailableError, StoreUnusableError: see `FileLock`.
        """
        with ExitStack() as kept_out:
            with suppress(OSError):
                lock = FileLock(self._lock_path, open_file=_open_to_read, how=fcntl.LOCK_SH)
                kept_out.callback(lock.close)
                kept_out.enter_context(lock)
            yield


def _open_to_read(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _size_of(path: Path) -> int:
    """Return the size of the file in bytes; -1 when there is none. Raises `StoreUnusableError` if
    that cannot be found out."""
    try:
        return path.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return -1
    except OSError as error:
        raise StoreUnusableError(
            f"the task store {path} cannot be read",
            why=error.strerror or str(error),
            fix="let this user read the file and its folder",
            guide="store",
        ) from error


async def open_for_looking(
    path: Path | str, *, clock: Callable[[], datetime], offload: Offload
) -> TaskStore:
    """Open the task store in this SQLite file, only to read it. Where there is none, the returned
    store is empty, and nothing is created.

    Args:
        clock: returns now as an aware UTC datetime.
        offload: runs blocking work. The caller closes it after the store.

    Raises:
        StoreUnusableError, StoreUnavailableError: see `LookingDatabase`.
    """
    path = Path(path)
    if _size_of(path) >= 0:
        opened = await offload(lambda: LookingDatabase(path, clock=clock))
        if opened.version_before > 0:
            return TaskStore(opened, offload=offload, tell=lambda _: None)
    return MemoryTaskStore(clock)
