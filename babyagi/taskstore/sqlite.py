"""The SQLite driver of the SQL store: a file that several processes share, or a database in memory.

Writing processes take turns by a lock on a second file. The database is in WAL mode, and a thread
notices the commits of other processes.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from babyagi.errors import StoreUnavailableError, StoreUnusableError
from babyagi.files import private
from babyagi.runtime.offload import Offload, run_inline
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.database import (
    Scripts,
    Transaction,
    from_time,
    load_scripts,
)
from babyagi.taskstore.sql.store import TaskStore

LOCK_TIMEOUT_S = 10.0
# Pauses between tries to take the lock. Other processes usually hold it for less than a
# millisecond, and a sleep costs a third of the processor time of a waiting thread. After these
# tries, 24 ms in all, a process waits in the kernel's queue, which is fair. With shorter pauses or
# fewer tries, eight processes use up to a third more processor time (`docs/log.md` has the
# figures).
PAUSES_S = (0.0004, 0.0008, 0.0016, *[0.003] * 7)


class FileLock:
    """A lock between processes, by flock on a file; a context manager. Only one thread of a process
    may use it.

    Entering the context raises `StoreUnavailableError` if another process does not release the lock
    within `LOCK_TIMEOUT_S`, and `StoreUnusableError` if the file system has no locks.

    Args:
        path: the file to lock.
        open_file: opens the file and returns a descriptor. To wait for the lock, the file is opened
            once more, because an flock belongs to an open file description.
        how: `LOCK_EX` to write, or `LOCK_SH` to keep writers out.
    """

    def __init__(
        self, path: Path, *, open_file: Callable[[Path], int], how: int = fcntl.LOCK_EX
    ) -> None:
        self._path, self._how = path, how
        self._open_file = open_file
        self._fd = open_file(path)
        self._waited_fd = -1  # the second descriptor, if the lock was taken by waiting, else -1

    def __enter__(self) -> None:
        if not self._is_taken():
            self._waited_fd = self._wait()

    def __exit__(self, *_: object) -> None:
        if self._waited_fd < 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        else:
            os.close(self._waited_fd)
            self._waited_fd = -1

    def _is_taken(self) -> bool:
        """Try several times to take the lock, without waiting in the kernel's queue. Return whether
        that succeeded."""
        for pause_s in PAUSES_S:
            try:
                fcntl.flock(self._fd, self._how | fcntl.LOCK_NB)
            except BlockingIOError:
                pass
            except OSError as error:  # some network file systems have no locks
                raise StoreUnusableError(
                    f"the task store {self._path.with_suffix('')} cannot be locked",
                    why=f"{self._path}: {error.strerror}",
                    fix="set BABYAGI_HOME to a folder on a disk of this machine",
                    guide="store",
                ) from error
            else:
                return True
            time.sleep(pause_s)
        return False

    def close(self) -> None:
        os.close(self._fd)

    def _wait(self) -> int:
        """Wait for the lock in the kernel's queue, and return the new descriptor that holds it.
        Raise `StoreUnavailableError` after `LOCK_TIMEOUT_S`."""
        fd, got = self._open_file(self._path), Future[None]()
        threading.Thread(
            target=_take, args=(fd, self._how, got), name="taskstore-lock", daemon=True
        ).start()
        wait([got], LOCK_TIMEOUT_S)
        if got.cancel():
            raise StoreUnavailableError(
                f"the task store {self._path.with_suffix('')} is locked",
                why=f"another process has held the lock on {self._path} for {LOCK_TIMEOUT_S:g} s",
                guide="store",
            )
        return fd


def _take(fd: int, how: int, got: Future[None]) -> None:
    """Wait for the lock on the open file, and say so. If the caller has stopped waiting, close the
    file, which releases the lock."""
    fcntl.flock(fd, how)
    try:
        got.set_result(None)
    except InvalidStateError:
        os.close(fd)


# --------------------------------------------------------------------------------------------------
# Noticing commits: a thread polls the write-ahead log.
#
# In a thread, a poll costs half as much as in the event loop (`docs/log.md` has the figures).
# --------------------------------------------------------------------------------------------------

LOOK_S = 0.012  # pause between polls, so that an idle worker claims within 20 ms of a commit


class FileWatch:
    """A thread that polls the modification time and the size of a file. It calls `on_commit` at the
    first poll, at each poll that finds a change, and at the poll after that.

    The last call is needed because two commits close together may leave the same time and size. The
    second one may be committed after the caller has read the store because of the first.
    """

    def __init__(self, path: Path, *, on_commit: Callable[[], None]) -> None:
        self._path = str(path)
        self._on_commit = on_commit
        self._is_closed = False
        self._mutex = threading.Lock()  # held while a commit is passed over, or looked for
        self._seen = self._glance()
        self._thread = threading.Thread(target=self._run, name="taskstore-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the polling thread. A second call does nothing."""
        self._is_closed = True
        self._thread.join()

    @contextmanager
    def passing_over(self) -> Iterator[None]:
        """During the context, do not report commits. They must all be of this process, so the
        caller must hold the lock. Earlier commits of other processes are still reported.

        At the end, the file's modification time is set to now, so that even an immediate next
        commit changes it: the times that the kernel sets are milliseconds apart.
        """
        with self._mutex:
            is_known = self._glance() == self._seen
            yield
            if is_known:
                now_ns = time.time_ns()
                with suppress(OSError):
                    os.utime(self._path, ns=(now_ns, now_ns))
                    self._seen = self._glance()

    def _run(self) -> None:
        looks_again = True
        while not self._is_closed:
            time.sleep(LOOK_S)  # waiting for a threading.Event would cost 1.5 times as much
            with self._mutex:
                seen, before = self._glance(), self._seen
                self._seen = seen
            if seen != before or looks_again:
                self._on_commit()
            looks_again = seen != before

    def _glance(self) -> tuple[int, int] | None:
        try:
            # a Path costs a sixth of the whole poll
            found = os.stat(self._path)  # noqa: PTH116
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size


# --------------------------------------------------------------------------------------------------
# SQLite's connection, transactions, schema and errors, for a database in a file (`SqliteDatabase`)
# or in memory (`MemoryDatabase`).
#
# One connection, used by one thread at a time. This code does not depend on the methods of the task
# store. It needs SQLite 3.35 or later.
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0
# statements in the cache besides the named queries: BEGIN, COMMIT and the like
N_OWN_STATEMENTS = 20
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
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOLFS,
)
# the system refuses access to a file that may be sound
REFUSED_CODES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


class SqliteEngine:
    """A SQLite database, in a file or in memory. A subclass opens the connection and sees to the
    schema.

    Args:
        where: the path of the file, or `:memory:`.
        scripts: None stands for those of this program.
    """

    def __init__(
        self, where: str, *, clock: Callable[[], datetime], scripts: Scripts | None = None
    ) -> None:
        self._clock = clock
        self._scripts = load_scripts("sqlite") if scripts is None else scripts
        self.where, self.known_version = where, self._scripts.version
        self.version_before = self.known_version
        self._queries = database.load_queries("sqlite")
        self._connection: sqlite3.Connection | None = None
        self._watch: FileWatch | None = None

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        return self.read(work)

    @contextmanager
    def _to_read(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for one read."""
        yield self._open()

    def read(self, work: Callable[[Transaction], T]) -> T:
        with self._errors(), self._to_read() as connection:
            return self._transact("BEGIN", work, connection=connection)

    def read_unchecked(self, work: Callable[[Transaction], T]) -> T:
        with self._errors(), self._to_read() as connection:
            connection.text_factory = lambda content: content.decode("utf-8", "surrogateescape")
            try:
                return self._transact("BEGIN", work, connection=connection)
            finally:
                connection.text_factory = str

    def find_damage(self) -> list[str]:
        with self._errors(), self._to_read() as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
        return [] if found == ["ok"] else found

    def watch(self, on_commit: Callable[[], None]) -> None:
        self._watch = FileWatch(Path(f"{self.where}-wal"), on_commit=on_commit)

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError(f"the task store {self.where} is closed")
        return self._connection

    def _transact(
        self, begin: str, work: Callable[[Transaction], T], *, connection: sqlite3.Connection
    ) -> T:
        """Run `work` in one transaction, which the statement `begin` begins, and return what it
        returns."""
        connection.execute(begin)
        try:
            tx = self._begin_on(connection)
            done = work(tx)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return done

    def _begin_on(self, connection: sqlite3.Connection) -> Transaction:
        now_us = from_time(self._clock())
        return Transaction(connection, queries=self._queries, now_us=now_us)

    def _connect(self, *pragmas: str, address: str = "") -> sqlite3.Connection:
        """Return a new connection. `address`: an SQLite URI, for the path itself if empty."""
        connection = sqlite3.connect(
            address or self.where,
            uri=bool(address),
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=len(self._queries) + N_OWN_STATEMENTS,
        )
        try:
            for pragma in (*pragmas, "foreign_keys = ON"):
                connection.execute(f"PRAGMA {pragma}").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """In this context, translate SQLite's errors into the store's errors."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            ours = self._translate(error)
            if ours is None:
                raise
            raise ours from error

    def _translate(self, error: Exception) -> StoreUnavailableError | StoreUnusableError | None:
        """Return the store's error for an error of SQLite. Return None for other errors, and for
        those that only a wrong SQL statement causes."""
        why, code = str(error), getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in PASSING_CODES:
            is_full = code & 0xFF == sqlite3.SQLITE_FULL
            fix = "make room on its disk, then run the same command again" if is_full else ""
            what = f"the task store {self.where} cannot answer now"
            return StoreUnavailableError(what, why=why, fix=fix, guide="store")
        if code is not None and code & 0xFF in REFUSED_CODES:
            return StoreUnusableError(
                f"the task store {self.where} cannot be opened or written",
                why=why,
                fix="nothing stored is lost; let this user write the file and its folder, make "
                "room on its disk, and let this process open more files (ulimit -n)",
                guide="store",
            )
        if code == sqlite3.SQLITE_CONSTRAINT_CHECK:  # a count would fall below zero
            return StoreUnusableError(
                f"the task store {self.where} is damaged: its rows contradict each other",
                why=why,
                fix="babyagi store verify names every damaged row; then restore a backup of the "
                "task store",
                guide="store",
            )
        # SQLite stores the schema as text in the file, and that text can be damaged too
        is_damaged = (
            isinstance(error, UnicodeDecodeError)
            or (code is not None and code & 0xFF in LASTING_CODES)
            or "decode to UTF-8" in why
            or why.startswith(("no such table", "no such column"))
        )
        return self._damaged(why) if is_damaged else None

    def _damaged(self, why: str) -> StoreUnusableError:
        return StoreUnusableError(
            f"the task store {self.where} cannot be used",
            why=why,
            fix=f"restore a backup of {self.where}, or move it (with its -wal and -shm) away to "
            "start afresh",
            guide="store",
        )


# --------------------------------------------------------------------------------------------------
# SQLite in a file: the file, its lock, its upgrades and its closing.
#
# Before a process writes, it locks a second file, because SQLite's own waiting is not fair (of
# eight writing processes one waited for seconds). The lock is also held while the database is
# opened, checkpointed and closed.
#
# The file must be on a local disk: flock and WAL do not work over most network file systems.
# --------------------------------------------------------------------------------------------------

# The largest file whose pages are checked when it is opened, which takes about 0.1 s. In a larger
# one, damage is found only when the damaged row is read.
QUICK_CHECK_MAX_BYTES = 64_000_000
# The page size of a new file; an existing file keeps its own. A commit writes every changed page as
# a whole, so with half of SQLite's default size it writes 0.6 times as many bytes.
PAGE_BYTES = 2048


class SqliteDatabase(SqliteEngine):
    """A SQLite database in a file. Every method blocks and must be called in the store's thread."""

    def __init__(
        self, path: Path, *, clock: Callable[[], datetime], scripts: Scripts | None = None
    ) -> None:
        """Open the file and upgrade its schema to this program's version. If the file does not
        exist, it is created with mode 0600.

        Args:
            clock: returns now as an aware UTC datetime.
            scripts: None stands for those of this program.

        Raises:
            StoreUnusableError, StoreUnavailableError.
        """
        # SQLite puts its log beside the real file, and the lock must be there as well
        path = path.resolve() if path.is_symlink() else path
        super().__init__(str(path), clock=clock, scripts=scripts)
        self.path = path
        self._lock = FileLock(path.with_name(path.name + ".lock"), open_file=self._open_private)
        self._opened_things = ExitStack()  # closes what was opened, the last first
        self._is_synced = True  # whether all commits of this object are on the disk
        try:
            with self._errors(), self._lock:
                # Only if the file does not exist. If this process has it open already, closing
                # another descriptor of it would release the locks of all its connections (POSIX),
                # and another process could remove the write-ahead log.
                if not os.access(path, os.R_OK | os.W_OK):
                    os.close(self._open_private(path))
                self._opened = _identity(self.where)
                self._connection = self._connect(
                    f"page_size = {PAGE_BYTES}", "synchronous = NORMAL"
                )
                self._opened_things.callback(self._connection.close)
                self._check()
                self._migrate()
                self._wal_fd = os.open(f"{self.where}-wal", os.O_RDONLY)
                self._opened_things.callback(os.close, self._wal_fd)
        except BaseException:
            self._opened_things.close()
            self._lock.close()
            raise

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        self._require_own_file()
        with self._errors():
            connection = self._open()
            n_before = connection.total_changes
            passing_over = self._watch.passing_over() if self._watch else nullcontext()
            with self._lock, passing_over:
                done = self._transact("BEGIN IMMEDIATE", work, connection=connection)
            self._is_synced &= connection.total_changes == n_before
        if is_lasting and not self._is_synced:
            self._sync()
        return done

    def _sync(self) -> None:
        """Wait until all earlier commits are on the disk. The lock is not held meanwhile, so other
        processes can commit, and several can wait for the disk at the same time."""
        try:
            os.fdatasync(self._wal_fd)
        except OSError as error:
            raise StoreUnavailableError(
                f"the task store {self.where} cannot answer now", why=str(error), guide="store"
            ) from error
        self._is_synced = True

    @contextmanager
    def _to_read(self) -> Iterator[sqlite3.Connection]:
        self._require_own_file()
        yield self._open()

    def close(self) -> None:
        """Copy the write-ahead log into the database file, and close both. A second call does
        nothing."""
        if self._watch is not None:
            self._watch.close()
        if self._connection is None:
            return
        with self._errors(), self._lock, self._opened_things:
            connection, self._connection = self._connection, None
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.OperationalError as error:
                # the traceback of an interrupted read still holds its cursor; everything stays in
                # the log, for the next process that opens the store
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_LOCKED:
                    raise
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
        # only pages are checked here; a damaged row is found when it is read
        connection.execute("PRAGMA ignore_check_constraints = ON")
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
        connection.execute("PRAGMA ignore_check_constraints = OFF")
        if found != ["ok"]:
            raise self._damaged(" ".join(" ".join(found).split())[:200])

    def _migrate(self) -> None:
        """Create the schema in an empty file. Upgrade that of the version before, after a copy of
        the file was saved as a backup. Raise `StoreUnusableError` for every other version, and
        while workers of the older program are running."""
        connection = self._open()
        tx = self._begin_on(connection)
        version, script = database.find_script(tx, self._scripts, where=self.where)
        self.version_before = version
        # the first change to the file, made only after the file was found to be a task store
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        if version and script:
            self._back_up(version)
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nCOMMIT;")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _require_own_file(self) -> None:
        """Raise `StoreUnusableError` if the path no longer leads to the open file. Otherwise SQLite
        would continue to write to a deleted or moved file."""
        found = _identity(self.where)
        if found != self._opened:
            raise StoreUnusableError(
                (
                    f"the task store {self.path} is "
                    f"{'gone' if found is None else 'another file than this process opened'}"
                ),
                why=(
                    "the file or its folder was removed, moved or replaced while this "
                    "process was running; nothing more is written to it"
                ),
                fix="put the file back, or restore a backup, then: babyagi resume",
                guide="store",
            )

    def _back_up(self, version: int) -> None:
        """Copy the database to the file `<name>.version-<n>`. The copy gets this name only when it
        is complete."""
        path = self.path.with_name(f"{self.path.name}.version-{version}")
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        os.close(self._open_private(unfinished))
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
            self._open().backup(copy)
        unfinished.replace(path)


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of the file at this path, by which a file that replaces it can be
    recognized; None when there is no file."""
    try:
        found = os.stat(path)  # noqa: PTH116  (looked at in every transaction)
    except OSError:
        return None
    return found.st_dev, found.st_ino


# --------------------------------------------------------------------------------------------------
# The task store in memory: the SQL store on a SQLite database that ends with the process. It is
# used for simulations, for an agent inside a program, and for rehearsals whose results are not
# kept.
#
# It has one connection, and no file, lock or thread, so virtual time can pass while it waits.
# --------------------------------------------------------------------------------------------------


class MemoryDatabase(SqliteEngine):
    """A new, empty database in memory. No other connection can reach it."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        super().__init__(":memory:", clock=clock)
        connection = self._connection = self._connect()
        # if the store is garbage-collected without `close`, its connection must be closed, because
        # from Python 3.13 on an unclosed connection causes a warning
        self._close = weakref.finalize(self, connection.close)
        connection.deserialize(_blank_store())

    def close(self) -> None:
        self._close()
        self._connection = None


@cache
def _blank_store() -> bytes:
    """Return an empty store as the bytes of a SQLite file. Loading these bytes takes a tenth of the
    time of running the schema's script."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(load_scripts("sqlite").create)
        return connection.serialize()


class MemoryTaskStore(TaskStore):
    """The task store in memory, for one process. It ends with the process.

    Args:
        clock: returns now as an aware UTC datetime; not called before the first method.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(MemoryDatabase(clock=clock), offload=run_inline, tell=lambda _: None)


async def open_sqlite(
    path: Path | str,
    *,
    clock: Callable[[], datetime],
    offload: Offload,
    tell: Callable[[str], None] = lambda _: None,
) -> TaskStore:
    """Open the task store in this SQLite file. If there is no file, create it; its folder must
    exist.

    Args:
        clock: returns now as an aware UTC datetime.
        offload: runs blocking work, one call at a time. The caller closes it after the store.
        tell: called with a message for a person when the store cannot be written, once for each
            outage.

    Raises:
        StoreUnusableError: the file is damaged, newer than this program, not a task store, or not
            writable.
        StoreUnavailableError: the file is locked, or the disk is full.
    """
    database = await offload(lambda: SqliteDatabase(Path(path), clock=clock))
    return TaskStore(database, offload=offload, tell=tell)


# -- for commands that only look
# --------------------------------------------------------------------------------------------------

BESIDE_OTHERS = "mode=ro"
UNCHANGING = "immutable=1"
# without SQLite's own locks and without a file for the log's index
ALONE = "mode=ro&vfs=unix-none"


class LookingDatabase(SqliteEngine):
    """A task store in a file that is opened read-only, and neither created, upgraded nor written.
    So it works on a full disk, on a read-only one, and beside an older worker. Every method blocks;
    a write raises `StoreUnusableError`.

    Which way the file is read depends on its write-ahead log. While the log has content, commits
    may be in it alone, and SQLite reads both as any other process does. While it has none, the file
    is complete. It is then read as one that cannot change, because SQLite would otherwise create
    the log and its index beside it; the store's lock is shared meanwhile, so no process writes.
    """

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
        return self._connect(
            "locking_mode = EXCLUSIVE" if options is ALONE else "query_only = ON",
            "schema_version",  # opens the file, so that it raises here if it cannot
            address=f"file:{quote(str(self.path.absolute()))}?{options}",
        )

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
