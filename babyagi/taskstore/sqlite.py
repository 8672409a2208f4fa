"""SQLite as a driver of the SQL store: a file that several processes share, or a database in
memory.

Writers take turns by a lock on a file. The database is in WAL mode, and a thread notices the
commits of other processes.
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
# Pauses between tries to take the lock. Other processes hold it for a millisecond at most, and a
# sleep costs a third of what a waiting thread costs. After these tries, 24 ms in all, a process
# waits in the kernel's queue, which is fair. Shorter pauses and fewer tries cost eight processes up
# to a third more of the processor (the figures are in `docs/log.md`).
PAUSES_S = (0.0004, 0.0008, 0.0016, *[0.003] * 7)


class FileLock:
    """A lock on a file, for several processes, held inside `with`. Only one thread of a process may
    use it. Entering raises `StoreUnavailableError` when another process, such as a frozen one, does
    not release the lock within `LOCK_TIMEOUT_S`.

    Args:
        path: the file to lock.
        open_file: opens the file and returns a descriptor. A process that has to wait opens the
            file once more, because an flock belongs to an open file description.
    """

    def __init__(self, path: Path, *, open_file: Callable[[Path], int]) -> None:
        self._path = path
        self._open_file = open_file
        self._fd = open_file(path)
        self._waited_fd = -1  # holds the lock where it was waited for

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
        """Try a few times to take the lock, without queueing for it. Return whether that
        succeeded."""
        for pause_s in PAUSES_S:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        """Open the file once more, queue for its lock, and return the new descriptor, which holds
        the lock."""
        fd = self._open_file(self._path)
        if not _Wait(fd).is_over(LOCK_TIMEOUT_S):
            raise StoreUnavailableError(
                f"the task store {self._path.with_suffix('')} is locked",
                why=f"another process kept the lock on {self._path} for {LOCK_TIMEOUT_S:g} s",
                guide="store",
            )
        return fd


class _Wait:
    """A thread that waits for the lock. If the caller gives up first, the thread waits on until it
    gets the lock, and then closes the file, which releases it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_left = False
        self._mutex = threading.Lock()
        self._got = threading.Event()
        threading.Thread(target=self._run, name="taskstore-lock", daemon=True).start()

    def is_over(self, timeout_s: float) -> bool:
        """Wait until the thread has the lock, at most `timeout_s` seconds, and return whether it
        has. After False, the descriptor belongs to the thread, which closes it."""
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

LOOK_S = 0.012  # pause between polls, so that an idle worker claims within 20 ms of a commit


class FileWatch:
    """A thread that polls a file and calls `on_sign` at the first poll, when the file's time or
    size has changed, and once more at the poll after a change.

    The second call is needed because two commits close together may leave the same time and size,
    and the second commit may come after the first call has led to a look at the store.
    """

    def __init__(self, path: Path, *, on_sign: Callable[[], None]) -> None:
        self._path = str(path)
        self._on_sign = on_sign
        self._is_closed = False
        self._seen = self._glance()
        self._thread = threading.Thread(target=self._run, name="taskstore-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the polling thread. A second call does nothing."""
        self._is_closed = True
        self._thread.join()

    @contextmanager
    def passing_over(self) -> Iterator[None]:
        """Do not report what this process commits in the context. The caller must keep other
        processes from committing meanwhile. Their earlier commits are still reported.

        After the commit, the file's modification time is set to now, so that even an immediate next
        commit changes it: the kernel's own file times are milliseconds apart.
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
            time.sleep(LOOK_S)  # waiting for a threading.Event would cost half as much again
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
# One connection, used by one thread at a time. This code knows no method of the task store and no
# rule of the task list. Needs SQLite 3.35 or later.
# --------------------------------------------------------------------------------------------------

T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0
MAX_TOGETHER = 32  # queued writes in one transaction, so that no other process waits long
VALUE = re.compile(r"(?<![:\w]):([a-z_]\w*)")  # the name of a value in a query
MAX_REPEATED = 20  # rows in one statement; there is a statement for each number of them
# the statement cache also holds BEGIN, COMMIT and the like, and the repeated statements
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
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_NOLFS,
)
# the system refuses access to a file that may be sound
REFUSED_CODES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)


@cache
def number_values(sql: str) -> tuple[str, tuple[str, ...], bool]:
    """Return the query with numbers in the place of its values' names (`?1` for the first name);
    the names in the order of their numbers; and whether the time (`now_us`) is one of them. SQLite
    binds values by number four times as fast as by name."""
    names = tuple(dict.fromkeys(re.findall(VALUE, sql)))
    numbered = re.sub(VALUE, lambda found: f"?{names.index(found[1]) + 1}", sql)
    return numbered, names, "now_us" in names


@cache
def repeat_select(sql: str, n: int) -> tuple[str, tuple[str, ...]]:
    """Return an `INSERT … SELECT` whose `SELECT` is repeated for n rows, and the names of one row's
    values in order. The statement takes the values of all rows one after another."""
    into, select, row = sql.rstrip(";").partition("SELECT")
    rows = " UNION ALL ".join([select + re.sub(VALUE, "?", row)] * n)
    return into + rows, tuple(re.findall(VALUE, sql))


class SqliteTransaction(Transaction):
    """A transaction on SQLite. Its rows are dictionaries, because `sqlite3.Row` compares the names
    of all columns each time a column is read.

    Args:
        columns_by_query: a cache of the column names of queries, which this transaction fills
            further.
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
        """Write the rows kept by `run_later` in a statement that repeats its `SELECT`. This costs
        less than half as much as passing the rows as JSON."""
        for begin in range(0, len(rows), MAX_REPEATED):
            some = rows[begin : begin + MAX_REPEATED]
            sql, names = repeat_select(self._queries[query], len(some))
            self._connection.execute(sql, [row[name] for row in some for name in names])

    def _send(self, sql: str, values: Mapping[str, Any]) -> Cursor:
        numbered, names, has_time = number_values(sql)
        if has_time:
            values = {**values, "now_us": self._now_us}
        return self._connection.execute(numbered, [*map(values.__getitem__, names)])

    def _send_many(self, sql: str, rows: Iterable[Mapping[str, Any]]) -> None:
        numbered, names, _ = number_values(sql)
        now = {"now_us": self._now_us}
        self._connection.cursor().executemany(
            numbered, [[{**now, **row}[name] for name in names] for row in rows]
        )


class _Translated:
    """A context whose errors are replaced by what `translate` returns, if that is not None."""

    def __init__(self, translate: Callable[[BaseException | None], Exception | None]) -> None:
        self._translate = translate

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        ours = self._translate(error)
        if ours is not None:
            raise ours from error


class SqliteEngine:
    """A SQLite database, in a file or in memory. A subclass opens the connection and brings the
    schema to this program's version.

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
        """Run up to `MAX_TOGETHER` queued writes in one transaction, with a savepoint for each."""
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
        """Yield the queued writes and remove them from the queue, leaving out those whose callers
        have given up."""
        while self._lined_up:
            write = self._lined_up.popleft()
            if not write.is_over:
                yield write

    def _run_in_savepoint(self, write: LinedUp[Any]) -> None:
        """Run one queued write in a savepoint, and store its outcome or its error in it. Raise the
        error only if SQLite has rolled back the whole transaction because of it."""
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
        """Return a number that changes when another connection commits."""
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
        """Run a transaction on `connection`; None takes the connection for writing."""
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
        """Bring the schema from this version to the program's version. Each step to the next
        version is one transaction."""
        connection = self._open()
        for script in self._scripts[version:]:
            try:
                connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nCOMMIT;")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _errors(self) -> _Translated:
        """Return a context that translates SQLite's errors into the store's errors."""
        return _Translated(self._translate)

    def _translate(
        self, error: BaseException | None
    ) -> StoreUnavailableError | StoreUnusableError | None:
        """Return the store's error for an error of SQLite; None for any other, also for those that
        only a wrong SQL statement causes, a programmer's mistake."""
        if isinstance(error, UnicodeDecodeError):  # SQLite's message quotes a damaged schema
            return self._damaged(str(error))
        if not isinstance(error, sqlite3.Error):
            return None
        why, code = str(error), getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in PASSING_CODES:
            is_full = code & 0xFF == sqlite3.SQLITE_FULL
            fix = "make room on its disk, then type the same again" if is_full else ""
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
        if (code is not None and code & 0xFF in LASTING_CODES) or "decode to UTF-8" in why:
            return self._damaged(why)
        # SQLite stores the schema as text in the file, which can be damaged as well
        if why.startswith(("no such table", "no such column")):
            return self._damaged(why)
        return self._contradictory(why) if code == sqlite3.SQLITE_CONSTRAINT_CHECK else None

    def _contradictory(self, why: str) -> StoreUnusableError:
        """Return the error for a failed CHECK constraint: a count would fall below zero, so the
        stored rows contradict each other."""
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
# Writers of all processes queue for an flock on a second file, because SQLite's own waiting is not
# fair (of eight writers one starved for seconds). The lock is also held while the database is
# opened, checkpointed and closed.
#
# Needs a local disk: flock and WAL do not work over most network file systems.
# --------------------------------------------------------------------------------------------------

# a file of this size is checked in about 0.1 s; a larger one is checked row by row as it is read
QUICK_CHECK_MAX_BYTES = 64_000_000
# Page size of a new file; an existing file keeps its own. A commit that changes some bytes of a
# page writes the whole page, so with half the usual size commits write 0.6 as much.
PAGE_BYTES = 2048


class SqliteDatabase(SqliteEngine):
    """A SQLite database in a file. Every method except `read_at_once`, which has a connection of
    its own, blocks and must be called in the store's thread."""

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
        # SQLite keeps its log beside the file itself, and whoever opens it needs the same lock
        path = path.resolve() if path.is_symlink() else path
        super().__init__(str(path), clock=clock, scripts=scripts)
        self.path = path
        self._wal = path.with_name(path.name + "-wal")
        self._lock = FileLock(path.with_name(path.name + ".lock"), open_file=self._open_private)
        self._watch: FileWatch | None = None
        self._wal_fd = -1
        self._is_synced = True  # whether all commits of this object are on the disk
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.Lock()  # because one thread reads and another one closes
        try:
            with self._errors(), self._lock:
                # Not when the file exists: if this process has it open already, closing this
                # descriptor would release the locks of every connection to it (POSIX), and another
                # process could remove its write-ahead log.
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
            with self._lock, passing_over:
                done = self._transact("BEGIN IMMEDIATE", work)
            self._is_synced &= connection.total_changes == n_before
        if is_lasting and not self._is_synced:
            self._sync()
        return done

    def _sync(self) -> None:
        """Wait until all that was committed before is on the disk. The lock is free meanwhile, so
        other processes can commit, and several can wait for the disk at the same time."""
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
        """Write the write-ahead log back into the database file, and close both. A second call does
        nothing."""
        if self._watch is not None:
            self._watch.close()
        if self._connection is None:
            return
        self._close_reader()
        with self._errors(), self._lock:
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.OperationalError as error:
                # an error cut a read off, and its traceback still holds the cursor; whoever opens
                # the store next finds everything in the log
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_LOCKED:
                    raise
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
        # only pages are checked here; damaged rows are found, and named, when they are read
        connection.execute("PRAGMA ignore_check_constraints = ON")
        found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")]
        connection.execute("PRAGMA ignore_check_constraints = OFF")
        if found != ["ok"]:
            raise self._damaged(" ".join(" ".join(found).split())[:200])

    def _migrate(self) -> None:
        """Bring the schema to this program's version, each version in one transaction. Before that,
        copy the file as it is to a backup. Raise `StoreUnusableError` while workers of the older
        version hold leases."""
        version = self._schema_version()
        database.require_known(version, known=self.known_version, where=self.where)
        connection = self._open()
        # this is the first change to the file, so it comes after the checks that the file is a
        # task store
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        if 0 < version < len(self._scripts):
            self._require_no_worker(version)
            self._back_up(version)
        self._run_scripts(version)

    def _require_own_file(self) -> None:
        """Raise `StoreUnusableError` when the path leads to another file than the open one, or to
        none. SQLite would otherwise go on writing to a file that has no name any more."""
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
                fix="put the file back, or restore a backup, then: babyagi resume",
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
        """Copy the database to `<name>.version-<n>`. The copy gets this name only when it is
        complete."""
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
        """Close everything that an unsuccessful `__init__` has opened."""
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
    """Return the device and inode of the file at this path, which differ for any file that replaces
    it; None when there is no file."""
    try:
        found = os.stat(path)  # noqa: PTH116  (looked at in every transaction)
    except OSError:
        return None
    return found.st_dev, found.st_ino


# --------------------------------------------------------------------------------------------------
# The task store in memory: the SQL store on a SQLite database that ends with the process. For
# rehearsals whose results are not kept, simulations, and an agent in a program.
#
# One connection, no file, no lock and no thread, so that simulated time can pass while it waits.
# --------------------------------------------------------------------------------------------------


class MemoryDatabase(SqliteEngine):
    """A new, empty database in memory. No other connection can reach it."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        super().__init__(":memory:", clock=clock)
        connection = self._connection = self._connect()
        # a store that was not closed must close its connection when it is garbage-collected: from
        # Python 3.13 on an unclosed connection causes a warning
        self._close = weakref.finalize(self, connection.close)
        connection.deserialize(_blank_store())

    def watch(self, on_sign: Callable[[], None]) -> None:
        """Do nothing: no other connection can commit."""

    def close(self) -> None:
        self._close()
        self._connection = None


@cache
def _blank_store() -> bytes:
    """Return an empty store as the bytes of a SQLite file. Loading these takes a tenth of the time
    of running the schema's scripts."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for script in load_scripts("sqlite"):
            connection.executescript(script)
        return connection.serialize()


class MemoryTaskStore(SqlTaskStore):
    """The task store in memory, for one process. It ends with the process.

    Args:
        clock: returns now as an aware UTC datetime; not called before the first method.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(MemoryDatabase(clock=clock), offload=run_inline, tell=lambda _: None)

    async def wait_for_change(self, *, timeout_s: float) -> None:
        await asyncio.sleep(timeout_s)  # no other process or store object can write here

    async def _next_commit(self, written: asyncio.Event, version: int) -> None:
        await written.wait()


async def open_sqlite(
    path: Path | str,
    *,
    clock: Callable[[], datetime],
    offload: Offload,
    tell: Callable[[str], None] = lambda _: None,
) -> SqlTaskStore:
    """Open the task store in this SQLite file, creating the file when there is none. Its folder
    must exist.

    Args:
        clock: returns now as an aware UTC datetime.
        offload: runs blocking work, one call at a time; the caller closes it after the store.
        tell: is called with a message for a person when the store cannot be written, once for each
            outage.

    Raises:
        StoreUnusableError: the file is damaged, newer than this program, not a task store, or not
            writable.
        StoreUnavailableError: the file is locked, or the disk is full.
    """
    database = await offload(lambda: SqliteDatabase(Path(path), clock=clock))
    return SqlTaskStore(database, offload=offload, tell=tell)
