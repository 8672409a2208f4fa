"""SQLite as a driver of the SQL store: a file that several processes share, or a database in
memory.

One lock for writing, WAL, and a thread that notices commits of other processes.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from babyagi.errors import StoreUnavailableError, StoreUnusableError
from babyagi.files import private
from babyagi.offload import Offload, run_inline
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.database import (
    Cursor,
    LinedUp,
    Row,
    Transaction,
    from_time,
    load_scripts,
)
from babyagi.taskstore.sql.store import SqlTaskStore

LOCK_TIMEOUT_S = 10.0
# Others hold the lock for a millisecond at most, and a sleep costs a third of a thread that waits.
# Whoever does not get it so waits in the kernel's queue, which is fair.
PAUSES_S = (0.0002, 0.0004, 0.0008, 0.0016)


class FileLock:
    """A lock on a file, held by one process at a time and used by one thread of it.

    Args:
        open_file: opens the lock's file. Each wait opens it anew, because an flock belongs to an
            open file description.
    """

    def __init__(self, path: Path, *, open_file: Callable[[Path], int]) -> None:
        self._path = path
        self._open_file = open_file
        self._fd = open_file(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock. Raises `StoreUnavailableError` when another process does not release it in
        time, so that a frozen writer does not block others for ever."""
        if self._is_taken():
            try:
                yield
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            return
        fd = self._wait()
        try:
            yield
        finally:
            os.close(fd)

    def _is_taken(self) -> bool:
        """Take the lock if it is free, now or soon."""
        for pause_s in PAUSES_S:
            with suppress(BlockingIOError):
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(pause_s)
        return False

    def close(self) -> None:
        os.close(self._fd)

    def _wait(self) -> int:
        """Open the file once more, lock it, and return the new descriptor."""
        fd = self._open_file(self._path)
        if not _Wait(fd).is_over(LOCK_TIMEOUT_S):
            raise StoreUnavailableError(
                f"the task store {self._path.with_suffix('')} is locked",
                why=f"another process held {self._path} for {LOCK_TIMEOUT_S:g} s",
                guide="store",
            )
        return fd


class _Wait:
    """Waits for the lock in a thread. When the caller gives up, the thread stays until the lock is
    free, and then closes the file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_left = False
        self._mutex = threading.Lock()
        self._got = threading.Event()
        threading.Thread(target=self._run, name="taskstore-lock", daemon=True).start()

    def is_over(self, timeout_s: float) -> bool:
        """Return True when the lock is held. After False the file belongs to the thread."""
        self._got.wait(timeout_s)
        with self._mutex:
            self._is_left = not self._got.is_set()
        return not self._is_left

    def _run(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        with self._mutex:
            if self._is_left:
                os.close(self._fd)
            else:
                self._got.set()


# --------------------------------------------------------------------------------------------------
# Notice commits to a file: a thread polls the write-ahead log.
#
# A poll costs half as much in a thread of its own as in the event loop, whose wake-up takes many
# steps (the figures are in `docs/log.md`).
# --------------------------------------------------------------------------------------------------

LOOK_S = 0.012  # so that an idle worker claims within 20 ms of a commit


class FileWatch:
    """Polls a file, and calls `on_sign` at the first poll, when the file's time or size has
    changed, and at the poll after that.

    The call after a change is needed because two commits close together may leave the same time and
    size, and the second one may come after the first call has read the store.
    """

    def __init__(self, path: Path, *, on_sign: Callable[[], None]) -> None:
        self._path = str(path)
        self._on_sign = on_sign
        self._is_closed = False
        self._seen = self._glance()
        self._thread = threading.Thread(target=self._run, name="taskstore-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. A second call does nothing."""
        self._is_closed = True
        self._thread.join()

    @contextmanager
    def passing_over(self) -> Iterator[None]:
        """Give no sign of what this process commits in the context, while no other process can
        commit. What others committed before is not passed over.

        The file gets a time of its own, so that the next commit changes it, however soon that
        comes: the kernel's times are milliseconds apart.
        """
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
            time.sleep(LOOK_S)  # an event that is waited for costs half as much again
            sign = self._glance()
            is_new = sign != self._seen
            if is_new or looks_again:
                self._on_sign()
            self._seen, looks_again = sign, is_new

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
# One connection, used by one thread at a time. It knows no verb and no rule. Needs SQLite 3.35 or
# later.
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0
MAX_TOGETHER = 32  # pieces of work in one transaction, so that no other process waits long
VALUE = re.compile(r"(?<![:\w]):([a-z_]\w*)")  # the name of a value in a query
MAX_REPEATED = 20  # rows in one statement; there is a statement for each number of them
# BEGIN, COMMIT and the like, and those of `MAX_REPEATED`, which the statement cache holds as well
N_OWN_STATEMENTS = 20 + MAX_REPEATED
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


@cache
def number_values(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return the query with numbers for the names of its values (`?1` for the first name), and the
    names in the order of their numbers. Values by name cost four times as much as by number."""
    names = tuple(dict.fromkeys(re.findall(VALUE, sql)))
    return re.sub(VALUE, lambda found: f"?{names.index(found[1]) + 1}", sql), names


@cache
def repeat_select(sql: str, n: int) -> tuple[str, tuple[str, ...]]:
    """Return an `INSERT` with its `SELECT` repeated for n rows, which takes the values of all rows
    one after another, and the names of those of a row."""
    into, select, row = sql.rstrip(";").partition("SELECT")
    rows = " UNION ALL ".join([select + re.sub(VALUE, "?", row)] * n)
    return into + rows, tuple(re.findall(VALUE, sql))


class SqliteTransaction(Transaction):
    """A transaction on SQLite. Its rows are dictionaries: `sqlite3.Row` compares the names of all
    columns each time that one is read.

    Args:
        columns_by_query: the names of columns of the queries that have run before.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        queries: Mapping[str, str],
        now_us: int,
        columns_by_query: dict[str, tuple[str, ...]],
    ) -> None:
        super().__init__(connection, queries=queries, now_us=now_us)
        self._columns_by_query = columns_by_query

    def _rows(self, query: str, cursor: Any) -> Iterator[Row]:
        columns = self._columns_by_query.get(query)
        if columns is None:
            columns = tuple(column[0] for column in cursor.description)
            self._columns_by_query[query] = columns
        return (dict(zip(columns, values, strict=True)) for values in cursor)

    def _run_together(self, query: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write deferred rows in a statement that repeats its `SELECT`, which costs less than half
        as much as reading JSON."""
        for begin in range(0, len(rows), MAX_REPEATED):
            some = rows[begin : begin + MAX_REPEATED]
            sql, names = repeat_select(self._queries[query], len(some))
            self._connection.execute(sql, [row[name] for row in some for name in names])

    def _send(self, sql: str, values: Mapping[str, Any]) -> Cursor:
        numbered, names = number_values(sql)
        return self._connection.execute(numbered, self._in_order(names, values))

    def _send_many(self, sql: str, rows: Iterable[Mapping[str, Any]]) -> None:
        numbered, names = number_values(sql)
        self._connection.cursor().executemany(
            numbered, [self._in_order(names, row) for row in rows]
        )

    def _in_order(self, names: Sequence[str], values: Mapping[str, Any]) -> Sequence[Any]:
        if "now_us" in names:
            values = {**values, "now_us": self.now_us}
        return [values[name] for name in names]


class SqliteEngine:
    """A SQLite database. A subclass opens the connection and brings the schema to this program's
    version.

    Args:
        where: the file, or another name of the database, to show to a person.
        scripts: the scripts that make the schema, one per version; None takes those of this
            program.
    """

    is_told = reads_at_once = False

    def __init__(
        self, where: str, *, clock: Callable[[], datetime], scripts: Sequence[str] | None = None
    ) -> None:
        self._clock = clock
        self._scripts = database.load_scripts("sqlite") if scripts is None else scripts
        self.where, self.known_version = where, len(self._scripts)
        self._queries = database.load_queries("sqlite")
        self._columns_by_query: dict[str, tuple[str, ...]] = {}
        self._connection: sqlite3.Connection | None = None
        self._lined_up: deque[LinedUp[Any]] = deque()

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        with self._errors():
            return self._transact("BEGIN", work)

    def line_up(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> LinedUp[T]:
        write = LinedUp(
            work, objective_id=objective_id, is_lasting=is_lasting, run=self._run_lined_up
        )
        self._lined_up.append(write)
        return write

    def _run_lined_up(self, _: LinedUp[Any]) -> None:
        """Run the queued writes in one transaction, with a savepoint for each."""
        writes = list(islice(self._waiting(), MAX_TOGETHER))
        is_lasting = any(write.is_lasting for write in writes)

        def work(tx: Transaction) -> None:
            for write in writes:
                self._run_in_savepoint(write)

        try:
            if len(writes) == 1:
                writes[0].done = self.write(
                    writes[0].work, objective_id=None, is_lasting=is_lasting
                )
            else:
                self.write(work, objective_id=None, is_lasting=is_lasting)
        except BaseException as error:
            for write in writes:
                write.error = error
        finally:
            for write in writes:
                write.is_over = True

    def _waiting(self) -> Iterator[LinedUp[Any]]:
        """Take the queued writes out of the queue, except those whose callers have given up."""
        while self._lined_up:
            write = self._lined_up.popleft()
            if not write.is_over:
                yield write

    def _run_in_savepoint(self, write: LinedUp[Any]) -> None:
        """Raises the error of the work if SQLite has undone the whole transaction for it."""
        connection = self._open()
        connection.execute("SAVEPOINT one")
        try:
            with self._errors():
                tx = self._begin_on(connection)
                write.done = write.work(tx)
                tx.finish()
        except Exception as error:
            if not connection.in_transaction:
                raise
            connection.execute("ROLLBACK TO one")
            write.error = error
        connection.execute("RELEASE one")

    def read(self, work: Callable[[Transaction], T]) -> T:
        with self._errors():
            return self._transact("BEGIN", work)

    def read_at_once(self, work: Callable[[Transaction], T]) -> T:
        return self.read(work)

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
        """Return a number that changes when another connection has committed."""
        with self._errors():
            return int(self._open().execute("PRAGMA data_version").fetchone()[0])

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreUnavailableError(f"the task store {self.where} is closed")
        return self._connection

    def _transact(
        self,
        begin: str,
        work: Callable[[Transaction], T],
        *,
        connection: sqlite3.Connection | None = None,
    ) -> T:
        """Run a transaction on the connection that writes, unless another one is given."""
        connection = self._open() if connection is None else connection
        connection.execute(begin)
        try:
            tx = self._begin_on(connection)
            done = work(tx)
            tx.finish()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return done

    def _begin_on(self, connection: sqlite3.Connection) -> Transaction:
        return SqliteTransaction(
            connection,
            queries=self._queries,
            now_us=from_time(self._clock()),
            columns_by_query=self._columns_by_query,
        )

    def _connect(self, *pragmas: str, timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.where,
            timeout=timeout_s,
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
        """Translate SQLite's errors into ours. A wrong statement is a programmer's error and is not
        translated."""
        try:
            yield
        except UnicodeDecodeError as error:  # how SQLite's messages name a damaged schema
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
            # the text of the schema is in the file as well, and can be damaged
            if str(error).startswith(("no such table", "no such column")):
                raise self._damaged(str(error)) from error
            if code == sqlite3.SQLITE_CONSTRAINT_CHECK:
                raise self._contradictory(str(error)) from error
            raise

    def _contradictory(self, why: str) -> StoreUnusableError:
        """Return the error for a count that would fall below zero, which shows that the stored rows
        contradict each other."""
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


# --------------------------------------------------------------------------------------------------
# SQLite in a file: the file, its lock, its upgrades and its closing.
#
# Writers of all processes queue on an flock beside the file, because SQLite's own waiting is not
# fair (of eight writers one starved for seconds). The lock is also held while the file is opened,
# checkpointed and closed.
#
# Needs a local disk: flock and WAL do not work over most network file systems.
# --------------------------------------------------------------------------------------------------

# a file of this size is checked in about 0.1 s; a larger one is checked row by row as it is read
QUICK_CHECK_MAX_BYTES = 64_000_000
# of a new file; one that exists keeps its own. A commit writes each page that it touches whole, for
# some bytes of a row, so half the usual size writes 0.6 as much.
PAGE_BYTES = 2048


class SqliteDatabase(SqliteEngine):
    """An open file. Every method except `read_at_once`, which has a connection of its own, blocks
    and must be called in the store's thread."""

    reads_at_once = True

    def __init__(
        self, path: Path, *, clock: Callable[[], datetime], scripts: Sequence[str] | None = None
    ) -> None:
        """Open the file and bring its schema to this program's version. A file that does not exist
        is created with mode 0600.

        Args:
            scripts: the scripts that make the schema, one per version; None takes those of this
                program.

        Raises:
            StoreUnusableError, StoreUnavailableError.
        """
        super().__init__(str(path), clock=clock, scripts=scripts)
        self.path = path
        self._wal = path.with_name(path.name + "-wal")
        self._lock = FileLock(path.with_name(path.name + ".lock"), open_file=self._open_private)
        self._watch: FileWatch | None = None
        self._wal_fd = -1
        self._is_synced = True  # whether all that was committed here is on the disk
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.Lock()  # the file is closed in another thread than it is read in
        try:
            with self._errors(), self._lock.held():
                # if this process has the file open already, closing this descriptor would release
                # the locks of every connection to it (POSIX), and another process could remove its
                # log
                if not os.access(path, os.R_OK | os.W_OK):
                    os.close(self._open_private(path))
                self._opened = _identity(self.where)
                self._connection = self._connect(
                    f"page_size = {PAGE_BYTES}", "synchronous = NORMAL"
                )
                self._check()
                self._migrate()
                self._reader = self._connect("query_only = ON", timeout_s=0.0)
                self._wal_fd = os.open(self._wal, os.O_RDONLY)
        except BaseException:
            self._abandon()
            raise

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        self._require_own_file()
        with self._errors():
            connection = self._open()
            n_before = connection.total_changes
            passing_over = self._watch.passing_over() if self._watch else nullcontext()
            with self._lock.held(), passing_over:
                done = self._transact("BEGIN IMMEDIATE", work)
            self._is_synced &= connection.total_changes == n_before
        if is_lasting and not self._is_synced:
            self._sync()
        return done

    def _sync(self) -> None:
        """Wait until the disk has the log, and with it all that was committed before. The lock is
        free meanwhile, so that others commit, and several wait for the disk at the same time."""
        try:
            os.fdatasync(self._wal_fd)
        except OSError as error:
            raise StoreUnavailableError(
                f"the task store {self.where} cannot answer now", why=str(error), guide="store"
            ) from error
        self._is_synced = True

    def read(self, work: Callable[[Transaction], T]) -> T:
        self._require_own_file()
        return super().read(work)

    def read_at_once(self, work: Callable[[Transaction], T]) -> T:
        self._require_own_file()
        with self._errors(), self._reading:
            if self._reader is None:
                raise StoreUnavailableError(f"the task store {self.where} is closed")
            return self._transact("BEGIN", work, connection=self._reader)

    def watch(self, on_sign: Callable[[], None]) -> None:
        self._watch = FileWatch(self._wal, on_sign=on_sign)

    def close(self) -> None:
        """Write the log back into the file and close both. A second call does nothing."""
        if self._watch is not None:
            self._watch.close()
        if self._connection is None:
            return
        self._close_reader()
        with self._errors(), self._lock.held():
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._connection.close()
                self._connection = None
        os.close(self._wal_fd)
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
        # a reader names a damaged row; this check is only about pages
        connection.execute("PRAGMA ignore_check_constraints = ON")
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
        connection.execute("PRAGMA ignore_check_constraints = OFF")
        if found != ["ok"]:
            raise self._damaged(" ".join(" ".join(found).split())[:200])

    def _migrate(self) -> None:
        """Bring the schema to this program's version, each version in one transaction. Refuses
        while workers live, and first copies the file as it was."""
        version = self._schema_version()
        database.require_known(version, known=self.known_version, where=self.where)
        connection = self._open()
        # this is the first change, so the file must be ours
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        if 0 < version < len(self._scripts):
            self._require_no_worker(version)
            self._back_up(version)
        self._run_scripts(version)

    def _require_own_file(self) -> None:
        """Raises `StoreUnusableError` when the path no longer leads to the open file: SQLite would
        go on writing to a file that nobody can find."""
        found = _identity(self.where)
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
        names, row = ["meta"], None
        try:
            row = self._open().execute(self._queries["schema_version"]).fetchone()
        except sqlite3.OperationalError:  # there is no such table
            names = [str(one[0]) for one in self._open().execute(self._queries["tables"])]
            if "meta" in names:
                raise
        return database.parse_version(
            names, None if row is None else str(row[0]), where=str(self.path)
        )

    def _require_no_worker(self, version: int) -> None:
        if self.read(lambda tx: tx.has("has_living_worker")):
            raise database.upgrade_blocked(version, self._scripts, where=str(self.path))

    def _back_up(self, version: int) -> None:
        """Copy the file, whole or not at all, to `<name>.version-<n>`."""
        path = self.path.with_name(f"{self.path.name}.version-{version}")
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        os.close(self._open_private(unfinished))
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
            self._open().backup(copy)
        unfinished.replace(path)

    def _close_reader(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _abandon(self) -> None:
        """Close everything that a failed opening has opened."""
        self._close_reader()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._wal_fd >= 0:
            os.close(self._wal_fd)
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


def _identity(path: str) -> tuple[int, int] | None:
    """Return what distinguishes the file at the path from any file that replaces it, None when
    there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116  (looked at in every transaction)
    except OSError:
        return None
    return found.st_dev, found.st_ino


# --------------------------------------------------------------------------------------------------
# The task store in memory: the SQL store on a SQLite database that ends with the process. For
# rehearsals that nobody keeps, simulations, and an agent in a program.
#
# One connection, no file, no lock and no thread, so that simulated time can pass while it waits.
# --------------------------------------------------------------------------------------------------


class MemoryDatabase(SqliteEngine):
    """An empty store in memory. No other connection can reach it."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        super().__init__(":memory:", clock=clock)
        connection = self._connection = self._connect()
        # a store that nobody closes must close its connection when it is collected: from Python
        # 3.13 on an unclosed connection is a warning
        self._close = weakref.finalize(self, connection.close)
        connection.deserialize(_blank_store())

    def watch(self, on_sign: Callable[[], None]) -> None:
        """Do nothing: no other connection can commit."""

    def close(self) -> None:
        self._close()
        self._connection = None


@cache
def _blank_store() -> bytes:
    """Return an empty store in SQLite's file format. Loading it takes a tenth of the time of
    running the schema's statements."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for script in load_scripts("sqlite"):
            connection.executescript(script)
        return connection.serialize()


class MemoryTaskStore(SqlTaskStore):
    """The whole state of the program, for one process.

    Args:
        clock: returns now as an aware UTC datetime; not called before the first method.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(MemoryDatabase(clock=clock), offload=run_inline, tell=lambda _: None)

    async def wait_for_change(self, *, timeout_s: float) -> None:
        await asyncio.sleep(timeout_s)  # nobody else can write here

    async def _next_commit(self, written: asyncio.Event, version: int) -> None:
        await written.wait()


async def open_sqlite(
    path: Path | str,
    *,
    clock: Callable[[], datetime],
    offload: Offload,
    tell: Callable[[str], None] = lambda _: None,
) -> SqlTaskStore:
    """Open the task store in this file, creating it when there is none. Its folder must exist.

    Args:
        clock: returns now as an aware UTC datetime.
        offload: runs blocking work, one call at a time; the caller closes it after the store.
        tell: tells a person that the store cannot be written, once for each trouble.

    Raises:
        StoreUnusableError: damaged, newer than this program, no task store, or not writable.
        StoreUnavailableError: locked, disk full.
    """
    database = await offload(lambda: SqliteDatabase(Path(path), clock=clock))
    return SqlTaskStore(database, offload=offload, tell=tell)
