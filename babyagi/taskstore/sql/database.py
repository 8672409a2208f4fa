"""How the SQL store reads and writes: the methods that it needs of a database driver, transactions
of named queries from the `.sql` files beside this module, waiting for commits, and the conversion
of rows to data types.

Only this module knows how a data type is stored in a table. A value that cannot be read is damage:
reading the row raises `StoreUnusableError`, which names the row.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial, wraps
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from babyagi.errors import NotFoundError, StoreUnavailableError, StoreUnusableError
from babyagi.offload import Offload, run_inline
from babyagi.schedules import (
    CatchUp,
    Overlap,
    Rule,
    Schedule,
    ScheduleSpec,
    ScheduleStatus,
    Tick,
    TickOutcome,
    TickReason,
)
from babyagi.tasks import (
    Approval,
    CheckedPart,
    Checks,
    Duty,
    Effect,
    Event,
    Joined,
    Lack,
    Limits,
    Memory,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Planning,
    Reservation,
    Result,
    Role,
    Step,
    StepState,
    StopReason,
    Task,
    TaskName,
    TaskStatus,
    ToolGrant,
    Usage,
    Worker,
)
from babyagi.taskstore.limits import to_microusd, unconfirmed
from babyagi.taskstore.port import Lease

T = TypeVar("T")

Row = Mapping[str, Any]  # by the names of its columns
Question = tuple[str, Set[tuple[str, Any]]]  # a query's name and its values, a key of the cache


class Cursor(Protocol):
    """The cursor methods that both sqlite3 and psycopg have."""

    @property
    def rowcount(self) -> int: ...

    def executemany(self, sql: Any, rows: Any, /) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def close(self) -> None: ...


class Connection(Protocol):
    """The connection methods that both sqlite3 and psycopg have."""

    def execute(self, sql: Any, values: Any, /) -> Cursor: ...

    def cursor(self) -> Cursor: ...


class Transaction:
    """A transaction in progress. It runs named queries, all with the same time as `:now_us`.

    It caches the rows of a query until it writes to one of the tables that the query reads, so a
    repeated query is not sent again.
    """

    def __init__(self, connection: Connection, *, queries: Mapping[str, str], now_us: int) -> None:
        self._connection = connection
        self._queries = queries
        self._now_us = now_us
        self._known: dict[Question, Sequence[Row]] = {}
        self._later: dict[str, list[Mapping[str, Any]]] = {}
        self._awaited: Set[str] = frozenset()  # the tables that the rows in `_later` change

    @property
    def now_us(self) -> int:
        return self._now_us

    def ask(self, query: str, **values: Any) -> None:
        """Announce a query whose rows will be needed. On a remote server, all announced queries are
        sent together when an answer is first needed. This implementation, for a local database,
        does nothing."""

    def know(self, query: str, row: Row | None, **values: Any) -> None:
        """Store `row` (None: no row) in the cache as the answer to this query. For callers that
        learned it from another query."""
        self._known[(query, frozenset(values.items()))] = () if row is None else (row,)

    def run(self, query: str, **values: Any) -> None:
        """Run a statement that writes. It may be sent later, but at the latest before the next
        answer is read or the transaction ends."""
        self._execute(query, values)

    def count_changed(self, query: str, **values: Any) -> int:
        """Run a statement that writes, and return how many rows it changed."""
        return self._execute(query, values).rowcount

    def run_many(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        sql = self._queries[query]
        self._forget(find_tables(sql).written)
        self._send_many(sql, rows)

    def run_later(self, query: str, row: Mapping[str, Any]) -> None:
        """Keep a row to be written by `query`, together with the other rows kept for the same
        query. They are written before the transaction ends, or before a query reads a table that
        they change."""
        written = find_tables(self._queries[query]).written
        self._later.setdefault(query, []).append(row)
        self._awaited |= written
        self._forget(written)

    def finish(self) -> None:
        """Write the rows that `run_later` keeps. The driver calls this before it commits."""
        later, self._later, self._awaited = self._later, {}, frozenset()
        for query, rows in later.items():
            self._run_together(query, rows)

    def one(self, query: str, **values: Any) -> Row | None:
        """Return the first row, None when there is none. For queries that return at most one
        row."""
        rows = self._answer(query, values)
        return rows[0] if rows else None

    def all(self, query: str, **values: Any) -> Sequence[Row]:
        return self._answer(query, values)

    def _answer(self, query: str, values: Mapping[str, Any]) -> Sequence[Row]:
        if find_tables(self._queries[query]).written:
            return self._fetch(query, values)
        question = (query, frozenset(values.items()))
        rows = self._known.get(question)
        if rows is None:
            rows = self._known[question] = self._fetch(query, values)
        return rows

    def each(self, query: str, **values: Any) -> Iterator[Row]:
        """Yield the rows one by one, for results that do not fit in memory."""
        yield from self._rows(query, self._execute(query, values))

    def has(self, query: str, **values: Any) -> bool:
        return self.one(query, **values) is not None

    def _fetch(self, query: str, values: Mapping[str, Any]) -> Sequence[Row]:
        return list(self._rows(query, self._execute(query, values)))

    def _rows(self, query: str, cursor: Cursor) -> Iterable[Row]:
        return cursor.fetchall()

    def _execute(self, query: str, values: Mapping[str, Any]) -> Cursor:
        sql = self._queries[query]
        tables = find_tables(sql)
        if not self._awaited.isdisjoint(tables.read):
            self.finish()
        self._forget(tables.written)
        return self._send(sql, values)

    def _run_together(self, query: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows kept by `run_later` in one statement, which receives them as JSON in
        `:rows`."""
        self._execute(query, {"rows": json.dumps(rows)})

    def _send(self, sql: str, values: Mapping[str, Any]) -> Cursor:
        return self._connection.execute(sql, self._complete(sql, values))

    def _send_many(self, sql: str, rows: Iterable[Mapping[str, Any]]) -> None:
        self._connection.cursor().executemany(sql, [self._complete(sql, row) for row in rows])

    def _complete(self, sql: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**values, "now_us": self.now_us} if ":now_us" in sql else values

    def _forget(self, tables: Set[str]) -> None:
        """Drop the cached answers of all queries that read these tables."""
        if tables:
            self._drop_changed(self._known, tables)

    def _drop_changed(self, answers: dict[Question, Any], tables: Set[str]) -> None:
        """Remove the answers of those queries that read one of these tables."""
        for question in [*answers]:
            if not tables.isdisjoint(find_tables(self._queries[question[0]]).read):
                del answers[question]


class LinedUp(Generic[T]):
    """A write in a queue, and later its outcome. Calling it in a thread of the store's offload
    carries it out and returns what the work returned.

    Args:
        work: the write, as for `Database.write`.
        objective_id, is_lasting: as for `Database.write`.
        run: carries this write out, perhaps together with others in the queue. It raises the
            write's error, or stores it in this object.
    """

    def __init__(
        self,
        work: Callable[[Transaction], T],
        *,
        objective_id: int | None,
        is_lasting: bool,
        run: Callable[[LinedUp[Any]], None],
    ) -> None:
        self.work = work
        self.objective_id = objective_id
        self.is_lasting = is_lasting
        self.is_over = False
        self.done: T | None = None
        self.error: BaseException | None = None
        self._run = run

    def __call__(self) -> T:
        if not self.is_over:
            self._run(self)
        if self.error is not None:
            raise self.error
        return cast(T, self.done)

    def give_up(self) -> None:
        """Drop the work if it has not begun, because its caller was cancelled."""
        self.is_over = True


class Database(Protocol):
    """The methods of a database driver. All of them block, so call them in a thread of the store's
    offload.

    All but `close` raise `StoreUnavailableError` (nothing changed, try again later) and
    `StoreUnusableError` (a person must act).
    """

    where: str
    """The file or the URL, without the password, for messages."""

    known_version: int
    """The newest version of the schema that this program can use."""

    reads_at_once: bool
    """Whether `read_at_once` may be used."""

    is_told: bool
    """Whether `data_version` returns at once, because a thread is told of commits. If False,
    `data_version` queries the database and so may block."""

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        """Run the work in one transaction. When the work raises, nothing is changed. If the
        database asks to repeat the transaction, the work is run again.

        Args:
            objective_id: the objective to lock: no other process writes to it until the work is
                done. None locks out all other writers.
            is_lasting: False allows the driver to leave the commit off the disk until the next
                lasting write. Killing the process then loses nothing; a power cut may lose this
                commit and all that followed it.
        """
        ...

    def line_up(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> LinedUp[T]:
        """Queue a write, and return an object that does the same as `write` when it is called. A
        driver may run several queued writes in one transaction, where each of them succeeds or
        fails as a whole."""
        ...

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run the work on one consistent state of the database."""
        ...

    def read_at_once(self, work: Callable[[Transaction], T]) -> T:
        """Do the same as `read`, but in the thread of the event loop, for work of microseconds.
        Never wait: raise `StoreUnavailableError` instead."""
        ...

    def read_as_it_lies(self, work: Callable[[Transaction], T]) -> T:
        """Do the same as `read`, but return invalid text as well instead of raising, so that one
        damaged row does not hide the others."""
        ...

    def find_damage(self) -> list[str]:
        """Return descriptions of the faults that the database engine itself finds in its pages and
        indexes, at most 20."""
        ...

    def watch(self, on_sign: Callable[[], None]) -> None:
        """Call `on_sign` in a thread of the driver whenever any process, including this one, may
        have committed, until `close`. May be called once only."""
        ...

    def data_version(self) -> int:
        """Return a number that changes when another process or connection commits."""
        ...

    def close(self) -> None:
        """Close the database. A second call does nothing."""
        ...


# --------------------------------------------------------------------------------------------------
# The SQL beside this module: named queries, and the numbered scripts that make the schema. It knows
# no engine.
# --------------------------------------------------------------------------------------------------


ROOMS = ("meta", "objectives", "tasks", "steps", "looking", "schedules", "vitals")


@cache
def load_queries(*rooms: str) -> Mapping[str, str]:
    """Return the named queries of the `.sql` files that all engines share and of these further
    ones, by name.

    Args:
        rooms: names of `.sql` files without their ending.
    """
    queries: dict[str, str] = {}
    for room in (*ROOMS, *rooms):
        queries |= parse_queries(files(__package__).joinpath(f"{room}.sql").read_text("utf-8"))
    return MappingProxyType({name: fill(sql, queries) for name, sql in queries.items()})


def fill(sql: str, queries: Mapping[str, str]) -> str:
    """Return the query with each name in double braces replaced by the query of that name."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: queries[found[1]].rstrip(";"), sql)


def parse_queries(text: str) -> dict[str, str]:
    """Return the queries in the text by name. Each begins after a header line `-- name --`."""
    queries: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("-- ") and line.endswith(" --"):
            name = line[3:-3]
            if name in queries:
                raise ValueError(f"two queries of SQL are called {name}")
            queries[name] = []
        elif name and not line.startswith("--"):
            queries[name].append(line)
    return {name: "\n".join(lines).strip() for name, lines in queries.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables that a query reads, and the tables that it changes directly or by foreign
    keys."""

    read: frozenset[str]
    written: frozenset[str]


# the tables that a foreign key changes along with a table
FOLLOWING = {
    ("DELETE", "worker"): {"worker_objective"},
    ("DELETE", "objective"): set(
        "task task_after result vector step duty worker_objective event tick".split()
    ),
}


@cache
def find_tables(sql: str) -> Tables:
    written: set[str] = set()
    changes = r"\b(INSERT|DELETE|UPDATE) (?!SET)(?:INTO |FROM )?(\w+)"
    for change, table in re.findall(changes, sql):
        written |= {table, *FOLLOWING.get((change, table), ())}
    return Tables(
        read=frozenset(re.findall(r"\b(?:FROM|JOIN) (\w+)", sql)), written=frozenset(written)
    )


@cache
def load_scripts(engine: str) -> tuple[str, ...]:
    """Return the scripts `schema_001.sql`, `schema_002.sql`, …. The n-th upgrades a store from
    version n - 1 to version n.

    The scripts name places in double braces. These are filled from the file of the engine (`sqlite`
    or `postgres`), because the engines differ there in syntax.
    """
    folder = files(__package__)
    own = parse_queries(folder.joinpath(f"schema_{engine}.sql").read_text("utf-8"))
    names = sorted(
        path.name for path in folder.iterdir() if re.fullmatch(r"schema_\d{3}\.sql", path.name)
    )
    return tuple(
        re.sub(
            r"\{\{(\w+)\}\}", lambda place: own[place[1]], folder.joinpath(name).read_text("utf-8")
        )
        for name in names
    )


def require_known(version: int, *, known: int, where: str) -> None:
    """Raise `StoreUnusableError` when the schema is newer than this program."""
    if version > known:
        raise StoreUnusableError(
            f"the task store {where} was written by a newer babyagi",
            why=f"the store has schema version {version}; this program knows those up to {known}",
            fix="install the newest babyagi: pip install . in its newest sources",
            guide="store",
        )


def parse_version(tables: Sequence[str], version: str | None, *, where: str) -> int:
    """Return the version of the schema; 0 when the database is empty.

    Args:
        tables: the names of all tables in the database.
        version: the version that the table `meta` states; None when there is none.

    Raises:
        StoreUnusableError: the tables are not those of a task store.
    """
    if not tables:
        return 0
    if version is None or not version.isdigit():
        raise StoreUnusableError(
            f"{where} is a database, but not a task store of babyagi",
            why=f"the database holds tables of another program ({len(tables)} tables)",
            fix="choose another file or database for the task store",
            guide="store",
        )
    return int(version)


def upgrade_blocked(version: int, scripts: Sequence[str], *, where: str) -> StoreUnusableError:
    """Return the error to raise when an older schema cannot be upgraded now because workers of the
    older program still use it."""
    return StoreUnusableError(
        f"the task store {where} cannot be upgraded now",
        why=(
            f"the store has schema version {version}, this program writes version {len(scripts)}, "
            "and workers of the older program hold leases; a killed worker's lease ends by itself"
        ),
        fix="stop every worker, wait half a minute, then try again",
        guide="store",
    )


# -- how the store reads and writes: one transaction for each method, in a thread where the driver
# blocks
# --------------------------------------------------------------------------------------------------


# writes in a row that must succeed before the next failure is reported as a new outage: a full
# disk still accepts a small write now and then
CALM_WRITES = 50
# Reading 200 tasks takes 2 ms, for which the event loop may stop; handing the work to a thread
# costs half as much on a busy processor.
FEW_ROWS = 200


def no_objective(objective_id: int) -> NotFoundError:
    return NotFoundError(
        f"there is no objective {objective_id}", fix="babyagi objectives", guide="objectives"
    )


class SqlAccess:
    """The base of the store's parts: reads and writes on an open database, run in the threads of
    the offload.

    Args:
        tell: is called with a message for a person when the store cannot be written, once for each
            outage.
    """

    def __init__(
        self, database: Database, *, offload: Offload, tell: Callable[[str], None]
    ) -> None:
        self._database = database
        self._offload = offload
        self._tell = tell
        self._n_calm = CALM_WRITES
        self._written = asyncio.Event()
        self._version_seen = -1
        self._sign = asyncio.Event()  # set when any process may have committed
        self._is_watching = False
        self._is_in_doubt = True
        self._looked_at_s = 0.0
        self._pause_s = MIN_PAUSE_S
        self._secret = ""

    async def _write(
        self, work: Callable[[Transaction], T], objective_id: int | None, *, is_lasting: bool = True
    ) -> T:
        """Run the work in one transaction. No other process writes to the objective until the work
        is done; with None, no other process writes at all.

        Args:
            is_lasting: False: the commit does not wait for the disk. Only for changes that can be
                repeated at no cost after a power cut.
        """
        write = self._database.line_up(work, objective_id=objective_id, is_lasting=is_lasting)
        try:
            done = await self._offload(write)
        except asyncio.CancelledError:
            write.give_up()
            raise
        except StoreUnavailableError as error:
            if self._n_calm >= CALM_WRITES:
                self._tell(
                    f"the task store cannot be written now ({error.why or error.what}); work "
                    "goes on by itself when the store can be written again"
                )
            self._n_calm = 0
            raise
        else:
            self._n_calm += 1
            return done
        finally:
            self._written.set()
            self._written = asyncio.Event()

    async def _write_all(self, work: Callable[[Transaction], T], *, is_lasting: bool = True) -> T:
        """Run work that changes several objectives in one transaction, while no other process
        writes."""
        return await self._write(work, None, is_lasting=is_lasting)

    async def _read(self, work: Callable[[Transaction], T], *, n_rows: int = 1) -> T:
        """Run the work on one consistent state of the store.

        Args:
            n_rows: about how many rows the work reads at most. Few rows are read in the event loop,
                without a thread.
        """
        if self._database.reads_at_once and n_rows <= FEW_ROWS:
            with suppress(StoreUnavailableError):
                return self._database.read_at_once(work)
        return await self._offload(lambda: self._database.read(work))

    async def _look(
        self, objective_id: int, work: Callable[[Transaction], T], *, n_rows: int = 1
    ) -> T:
        """Run a read that concerns one objective. Raise `NotFoundError` when there is no such
        objective.

        Args:
            n_rows: as for `_read`.
        """

        def look(tx: Transaction) -> T:
            found = work(tx)
            # a row that was found proves that the objective exists
            if not found and not tx.has("objective", objective_id=objective_id):
                raise no_objective(objective_id)
            return found

        return await self._read(look, n_rows=n_rows)

    async def _list(
        self, objective_id: int, query: str, of: Callable[[Row], T], *, n_rows: int, **values: Any
    ) -> list[T]:
        """Return at most `n_rows` rows of a query, each converted by `of`. Raise `NotFoundError`
        when there is no such objective."""
        return await self._look(
            objective_id,
            lambda tx: [of(row) for row in tx.all(query, objective_id=objective_id, **values)],
            n_rows=n_rows,
        )

    async def close(self) -> None:
        await self._offload(self._database.close)


# -- waiting for commits, of this store object and of others
# --------------------------------------------------------------------------------------------------

POLL_S = 0.05
# The shortest and the longest pause between two looks at the version. The first look after a calm
# time comes at once; on a busy store the pause doubles up to the longest.
MIN_PAUSE_S, MAX_PAUSE_S = 0.01, 0.08


class Waiting(SqlAccess):
    """The part of the store that waits for events, and for changes by other processes."""

    async def last_event_id(self, objective_id: int) -> int:
        return await self._look(
            objective_id,
            lambda tx: int(tx.all("last_event_id", objective_id=objective_id)[0]["id"]),
        )

    async def wait_for_events(self, objective_id: int, *, after_id: int, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    written, version = self._written, await self._data_version()
                    if await self.last_event_id(objective_id) > after_id:
                        return
                    await self._next_commit(written, version)
        except TimeoutError:
            return

    async def _next_commit(self, written: asyncio.Event, version: int) -> None:
        """Wait until this store object has committed since `written` was taken, or another process
        has committed since `version` was read."""
        while not written.is_set():
            try:
                # `wait_for` of Python 3.11 swallows a cancellation that comes with the event
                async with asyncio.timeout(POLL_S):
                    await written.wait()
            except TimeoutError:
                if await self._data_version() != version:
                    return

    async def wait_for_change(self, *, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    await self._next_sign()
                    version = await self._version()
                    self._is_in_doubt = version is None
                    if version is not None and version != self._version_seen:
                        self._version_seen = version
                        return
        except TimeoutError:
            return

    async def _next_sign(self) -> None:
        """Wait until any process may have committed since the data version was last read. Return at
        once when that read failed."""
        # a simulation has its own time, so no thread may be used
        if self._offload is run_inline:
            await asyncio.sleep(MAX_PAUSE_S)
            return
        loop = asyncio.get_running_loop()
        if not self._is_watching:
            self._is_watching = True
            self._database.watch(partial(self._say_sign, loop))
        await asyncio.sleep(max(0.0, self._looked_at_s + self._pause_s - loop.time()))
        if not self._is_in_doubt:
            await self._sign.wait()
        self._sign.clear()  # cleared before the look, so that a commit during it counts as new
        is_calm = loop.time() - self._looked_at_s > MAX_PAUSE_S
        self._pause_s = MIN_PAUSE_S if is_calm else min(2 * self._pause_s, MAX_PAUSE_S)
        self._is_in_doubt, self._looked_at_s = True, loop.time()

    def _say_sign(self, loop: asyncio.AbstractEventLoop) -> None:
        """Tell the event loop that a process may have committed. Called in the database's
        thread."""
        if not self._sign.is_set():
            with suppress(RuntimeError):  # the loop has ended, so nothing waits in it
                loop.call_soon_threadsafe(self._sign.set)

    async def _version(self) -> int | None:
        """Return the database's data version (a number that changes with each commit of another
        process); None while the store is unavailable."""
        try:
            return await self._data_version()
        except StoreUnavailableError:
            return None

    async def _data_version(self) -> int:
        return (
            self._database.data_version()
            if self._database.is_told
            else await self._offload(self._database.data_version)
        )


# --------------------------------------------------------------------------------------------------
# Rows to data types and back.
# --------------------------------------------------------------------------------------------------

P = ParamSpec("P")

# the exceptions that reading a damaged value raises
FAULTS = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)

# How many parsed texts are cached: tasks share their origins, and each transaction reads the spec
# of its objective.
N_CACHED_TEXTS = 4_000
N_CACHED_SPECS = 50

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def from_time(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def to_time(at_us: int) -> datetime:
    return _EPOCH + at_us * _MICROSECOND


def to_time_or_none(at_us: int | None) -> datetime | None:
    return None if at_us is None else to_time(at_us)


to_json = json.JSONEncoder(separators=(",", ":")).encode


# -- damage
# --------------------------------------------------------------------------------------------------


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Turn an error from reading a damaged value into a `StoreUnusableError` that names the row
    (`what`)."""
    try:
        yield
    except FAULTS as error:
        raise damaged(
            what, why=f"it cannot be read: {type(error).__name__}: {error}"[:300]
        ) from error


def _of(
    name: str,
) -> Callable[[Callable[Concatenate[Row, P], T]], Callable[Concatenate[Row, P], T]]:
    """Make a function that reads a row raise `StoreUnusableError`, with the name of the row, when
    the row is damaged.

    Args:
        name: the name to show for the row, with columns in braces, such as `task {id}`.
    """

    def decorate(read: Callable[Concatenate[Row, P], T]) -> Callable[Concatenate[Row, P], T]:
        @wraps(read)
        def read_or_name(row: Row, /, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(row, *args, **kwargs)
            except FAULTS:
                with naming(name_row(name, row)):
                    raise

        return read_or_name

    return decorate


def name_row(name: str, row: Row) -> str:
    """Return `name` with the row's columns filled in, for a person. If damage prevents that, return
    the first word of `name`."""
    try:
        return name.format_map(row)
    except FAULTS:
        return name.partition(" ")[0]


def damaged(what: str, *, why: str) -> StoreUnusableError:
    return StoreUnusableError(
        f"the task store is damaged: {what} is not as it was written",
        why=why,
        fix=(
            "babyagi journal verify names every damaged row; then restore a backup of the "
            "task store"
        ),
        guide="store",
    )


def require_types(row: Row, *, texts: Sequence[str] = (), numbers: Sequence[str] = ()) -> None:
    """Raise `TypeError` unless these columns hold texts or integers, as declared. The check is
    needed because SQLite accepts any type in any column."""
    for columns, kind in ((texts, str), (numbers, int)):
        # most rows are sound, and comparing all types at once costs a third
        if columns and {*map(type, map(row.__getitem__, columns))} != {kind}:
            column = next(column for column in columns if type(row[column]) is not kind)
            raise TypeError(f"the column {column} holds {row[column]!r}"[:200])


# -- nouns
# --------------------------------------------------------------------------------------------------


def spec_to_json(spec: ObjectiveSpec) -> str:
    fields = asdict(spec)
    for name in ("further", "output_schema", "agent"):
        if not fields[name]:  # earlier versions refuse these fields, so an empty one is left out
            del fields[name]
    for grant in fields["tools"]:
        if not grant["refused"]:
            del grant["refused"]
    return to_json(fields)


@_of("objective {id}")
def spec_from_row(row: Row) -> ObjectiveSpec:
    return _spec_from_json(row["spec"])


@lru_cache(maxsize=N_CACHED_SPECS)
def _spec_from_json(text: str) -> ObjectiveSpec:
    fields = json.loads(text)
    fields["limits"] = Limits(**fields["limits"])
    fields["model_by_role"] = {Role(role): model for role, model in fields["model_by_role"].items()}
    fields["tools"] = tuple(
        ToolGrant(**{**tool, "effect": Effect(tool["effect"])}) for tool in fields["tools"]
    )
    fields["approval"] = Approval(fields["approval"])
    # objectives that were created before this choice existed have no value
    fields["memory"] = Memory(fields.get("memory", Memory.OBJECTIVE))
    fields["planning"] = Planning(fields.get("planning", Planning.SEPARATE))  # as above
    fields["further"] = tuple(fields.get("further", ()))
    return ObjectiveSpec(**fields)


def usage_from_row(row: Row) -> Usage:
    """Return the usage in the row of an objective or a task."""
    return Usage(
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_microusd"] / 1e6,
        unconfirmed_tokens=row["unconfirmed_tokens"],
        unconfirmed_cost_usd=row["unconfirmed_cost_microusd"] / 1e6,
    )


def usage_to_values(usage: Usage) -> dict[str, int]:
    return {
        **_step_usage_to_values(usage),
        "unconfirmed_tokens": usage.unconfirmed_tokens,
        "unconfirmed_cost_microusd": round(usage.unconfirmed_cost_usd * 1e6),
    }


def _step_usage_from_row(row: Row, *, left_open: Usage) -> Usage:
    """Return the usage in the row of a step.

    Args:
        left_open: the part of this usage that was charged for calls without an answer.
    """
    return Usage(
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_microusd"] / 1e6,
        unconfirmed_tokens=left_open.unconfirmed_tokens,
        unconfirmed_cost_usd=left_open.unconfirmed_cost_usd,
    )


def _step_usage_to_values(usage: Usage) -> dict[str, int]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_microusd": round(usage.cost_usd * 1e6),
    }


@_of("objective {id}")
def objective_from_row(row: Row, *, held: Reservation, active_us: int) -> Objective:
    require_types(row, texts=_OBJECTIVE_TEXTS, numbers=_OBJECTIVE_NUMBERS)
    if (row["status"] == ObjectiveStatus.ENDED) != (row["stop_reason"] is not None):
        raise ValueError("an objective has a stop reason exactly when it has ended")
    return Objective(
        id=row["id"],
        uid=row["uid"],
        spec=spec_from_row(row),
        status=ObjectiveStatus(row["status"]),
        stop_reason=StopReason(row["stop_reason"]) if row["stop_reason"] else None,
        stop_detail=row["stop_detail"],
        usage=usage_from_row(row),
        held=held,
        active_s=active_us / 1e6,
        order_revision=row["order_revision"],
        is_claimed_met=bool(row["is_claimed_met"]),
        overspent=row["overspent"],
        n_begun=row["n_begun"],
        checks=checks_from_json(row["checks"]),
        has_report=bool(row["has_report"]),
        report_no=row["report_no"],
        created_at=to_time(row["created_at_us"]),
        ended_at=to_time_or_none(row["ended_at_us"]),
    )


def checks_to_json(checks: Checks) -> str:
    return to_json(asdict(checks))


@lru_cache(maxsize=N_CACHED_SPECS)
def checks_from_json(text: str) -> Checks:
    fields = json.loads(text)
    fields["parts"] = tuple(CheckedPart(**part) for part in fields.get("parts", ()))
    fields["missing"] = tuple(fields.get("missing", ()))
    return Checks(**fields)


def lack_to_json(lack: Lack | None) -> str:
    if lack is None:
        return ""
    return to_json({key: value for key, value in asdict(lack).items() if key != "found" or value})


def lack_from_json(text: str) -> Lack | None:
    if not text:
        return None
    fields = json.loads(text)
    return Lack(what=fields["what"], shown=tuple(fields["shown"]), found=fields.get("found", ""))


@_of("task {id}")
def task_name_from_row(row: Row) -> TaskName:
    return TaskName(
        id=row["id"],
        name=row["name"],
        status=TaskStatus(row["status"]),
        is_lacking=bool(row["lack"]),
        origins=_texts_from_json(row["origins"]),
    )


@_of("task {id} of objective {objective_id}")
def task_from_row(row: Row) -> Task:
    require_types(row, texts=_TASK_TEXTS, numbers=_TASK_NUMBERS)
    if not row["name"].strip():
        raise ValueError("a task needs a name")
    return Task(
        id=row["id"],
        objective_id=row["objective_id"],
        name=row["name"],
        status=TaskStatus(row["status"]),
        rank=row["rank"],
        parent_id=row["parent_id"],
        after=_numbers_from_json(row["after_ids"]),
        origins=_texts_from_json(row["origins"]),
        try_no=row["try_no"],
        claim_no=row["claim_no"],
        failures=row["failures"],
        n_lost=row["n_lost"],
        error=row["error"],
        lack=lack_from_json(row["lack"]),
        n_lacks=row["n_lacks"],
        usage=usage_from_row(row),
        created_at=to_time(row["created_at_us"]),
        started_at=to_time_or_none(row["started_at_us"]),
        finished_at=to_time_or_none(row["finished_at_us"]),
        not_before=to_time_or_none(row["not_before_us"]),
    )


@lru_cache(maxsize=N_CACHED_TEXTS)
def _numbers_from_json(text: str) -> tuple[int, ...]:
    numbers = tuple(json.loads(text))
    if not all(type(number) is int for number in numbers):
        raise TypeError(f"not a list of numbers: {text[:100]}")
    return numbers


@lru_cache(maxsize=N_CACHED_TEXTS)
def _texts_to_json(texts: tuple[str, ...]) -> str:
    return to_json(texts)


@lru_cache(maxsize=N_CACHED_TEXTS)
def _texts_from_json(text: str) -> tuple[str, ...]:
    texts = json.loads(text)
    if not (isinstance(texts, list) and all(isinstance(one, str) for one in texts)):
        raise TypeError(f"not a list of texts: {text[:100]}")
    return tuple(texts)


def policy_to_json(spec: ScheduleSpec) -> str:
    fields = asdict(spec)
    del fields["objective"]
    rule = fields["rule"]
    rule["begins_at"] = from_time(spec.rule.begins_at)
    rule["at"] = None if spec.rule.at is None else from_time(spec.rule.at)
    return to_json(fields)


@_of("schedule {id}")
def schedule_from_row(row: Row) -> Schedule:
    require_types(row, texts=("uid", "spec", "policy", "status"), numbers=("id", "created_at_us"))
    fields = json.loads(row["policy"])
    rule = fields["rule"]
    fields["rule"] = Rule(
        **{**rule, "begins_at": to_time(rule["begins_at"]), "at": to_time_or_none(rule["at"])}
    )
    fields["overlap"] = Overlap(fields["overlap"])
    fields["catch_up"] = CatchUp(fields["catch_up"])
    return Schedule(
        id=row["id"],
        uid=row["uid"],
        spec=ScheduleSpec(objective=spec_from_row(row), **fields),
        status=ScheduleStatus(row["status"]),
        due_at=to_time_or_none(row["due_us"]),
        fires_at=to_time_or_none(row["fires_at_us"]),
        created_at=to_time(row["created_at_us"]),
    )


@_of("the tick of schedule {schedule_id} at {due_us}")
def tick_from_row(row: Row) -> Tick:
    return Tick(
        schedule_id=row["schedule_id"],
        due_at=to_time(row["due_us"]),
        outcome=TickOutcome(row["outcome"]),
        reason=TickReason(row["reason"]),
        objective_id=row["objective_id"],
        decided_at=to_time(row["decided_at_us"]),
    )


@_of("event {id} of objective {objective_id}")
def event_from_row(row: Row) -> Event:
    require_types(row, texts=("kind", "data"), numbers=("id", "objective_id", "at_us"))
    return Event(
        id=row["id"],
        objective_id=row["objective_id"],
        task_id=row["task_id"],
        kind=row["kind"],
        data=dict(json.loads(row["data"])),
        at=to_time(row["at_us"]),
    )


_OBJECTIVE_TEXTS = ("uid", "identity", "spec", "status", "stop_detail", "checks", "overspent")
_OBJECTIVE_NUMBERS = (
    "id calls prompt_tokens completion_tokens cost_microusd active_us seen_us "
    "order_revision ordered_upto last_task_id is_claimed_met "
    "n_barren n_begun n_fruitless n_answers check_no plan_no report_no created_at_us "
    "unconfirmed_tokens unconfirmed_cost_microusd"
).split()
_TASK_TEXTS = ("name", "name_key", "sense", "status", "after_ids", "origins", "error", "lack")
_TASK_NUMBERS = (
    "id objective_id rank blockers try_no claim_no failures n_lost n_lacks calls "
    "prompt_tokens completion_tokens cost_microusd "
    "created_at_us unconfirmed_tokens unconfirmed_cost_microusd"
).split()


@_of("worker {worker_id}")
def joined_from_row(
    row: Row, *, task_ids: Sequence[int] = (), duties: Sequence[str] = ()
) -> Joined:
    require_types(row, texts=("worker_id", "hindrance"), numbers=("objective_id", "since_us"))
    return Joined(
        objective_id=row["objective_id"],
        blocked_reason=row["hindrance"],
        since=to_time(row["since_us"]),
        task_ids=tuple(task_ids),
        duties=tuple(map(Duty, duties)),
    )


@_of("worker {id}")
def lease_from_row(row: Row, *, now_us: int) -> Lease:
    require_types(row, texts=("id", "name", "home"), numbers=("lease_us", "lease_until_us"))
    return Lease(
        worker_id=row["id"],
        name=row["name"],
        home=row["home"],
        length_s=row["lease_us"] / 1e6,
        until=to_time(row["lease_until_us"]),
        has_run_out=not now_us <= row["lease_until_us"] <= now_us + row["lease_us"],
    )


@_of("worker {id}")
def worker_from_row(row: Row, *, now_us: int, joined: Sequence[Joined] = ()) -> Worker:
    require_types(
        row,
        texts=("id", "name", "host", "home"),
        numbers=("pid", "since_us", "lease_us", "lease_until_us"),
    )
    return Worker(
        id=row["id"],
        name=row["name"],
        host=row["host"],
        pid=row["pid"],
        lease_until=to_time(row["lease_until_us"]),
        home=row["home"],
        since=to_time(row["since_us"]),
        lease_left_s=(row["lease_until_us"] - now_us) / 1e6,
        joined=tuple(joined),
    )


# -- rows with a checksum: nothing else detects a byte that the disk flips inside a text
# ----------------------------------

_RESULT_COLUMNS = ("objective_id", "task_id", "text", "origins", "created_at_us")
_STEP_COLUMNS = (
    "objective_id owner key kind request_hash state output request model origins is_held "
    "held_calls held_tokens held_cost_microusd "
    "calls prompt_tokens completion_tokens cost_microusd unconfirmed claim_no "
    "created_at_us done_at_us"
).split()


_CONTENT = json.JSONEncoder(default=repr)  # damage can turn a value into bytes


def _checksum(columns: Sequence[str], values: Row) -> str:
    content = _CONTENT.encode([*map(values.__getitem__, columns)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def is_sound_step(row: Row) -> bool:
    return bool(_checksum(_STEP_COLUMNS, row) == row["checksum"])


def is_sound_result(row: Row) -> bool:
    return bool(_checksum(_result_columns(row), row) == row["checksum"])


def _result_columns(values: Row) -> Sequence[str]:
    """Return the columns that the result's checksum covers. `lack` is covered only if it is set,
    because version 1 had no such column."""
    return (*_RESULT_COLUMNS, "lack") if values["lack"] else _RESULT_COLUMNS


def _require_sound(is_sound: bool, *, what: str) -> None:
    if not is_sound:
        raise damaged(what, why="the checksum of the row does not match its content")


# -- seals: checksums of the columns that never change, tested when the store is verified
# --------------------------

_SEALED = {
    "objective": ("uid", "identity", "spec", "created_at_us"),
    "report": ("id", "report"),
    "task": (
        "objective_id",
        "id",
        "name",
        "name_key",
        "sense",
        "parent_id",
        "origins",
        "created_at_us",
    ),
    "event": ("objective_id", "task_id", "kind", "data", "at_us"),
    "schedule": ("uid", "spec", "policy", "created_at_us"),
}


def sealed(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values, with their checksum added as the column `seal`."""
    return {**values, "seal": _seal(table, values)}


def is_sealed_right(table: str, row: Row) -> bool:
    """Return whether the row's sealed columns match its checksum. A row without a checksum, from an
    earlier version, passes."""
    seal = row["report_seal" if table == "report" else "seal"]
    return seal is None or bool(seal == _seal(table, row))


def _seal(table: str, values: Row) -> int:
    content = _CONTENT.encode([*map(values.__getitem__, _SEALED[table])])
    return zlib.crc32(content.encode("utf-8", "surrogatepass"))


def seal_vector(vector: bytes) -> int:
    return zlib.crc32(vector)


def result_to_values(result: Result) -> dict[str, Any]:
    values: dict[str, Any] = {
        "objective_id": result.objective_id,
        "task_id": result.task_id,
        "text": result.text,
        "origins": _texts_to_json(result.origins),
        "lack": result.lack,
        "created_at_us": from_time(result.created_at),
    }
    return {**values, "checksum": _checksum(_result_columns(values), values)}


@_of("the result of task {task_id} of objective {objective_id}")
def result_from_row(row: Row) -> Result:
    """Return the result in the row. Raise `StoreUnusableError` when the row is damaged."""
    _require_sound(
        is_sound_result(row),
        what=f"the result of task {row['task_id']} of objective {row['objective_id']}",
    )
    return Result(
        task_id=row["task_id"],
        objective_id=row["objective_id"],
        task_name=row["task_name"],
        text=row["text"],
        origins=_texts_from_json(row["origins"]),
        lack=row["lack"],
        is_planned=row["task_status"] != TaskStatus.RECORDED,
        created_at=to_time(row["created_at_us"]),
    )


def step_to_values(step: Step, *, is_held: bool) -> dict[str, Any]:
    values: dict[str, Any] = {
        "objective_id": step.objective_id,
        "owner": step.owner,
        "key": step.key,
        "kind": step.kind,
        "request_hash": step.request_hash,
        "state": step.state.value,
        "output": step.output,
        "request": step.request,
        "model": step.model,
        "origins": _texts_to_json(step.origins),
        "is_held": int(is_held),
        "held_calls": step.reservation.calls,
        "held_tokens": step.reservation.tokens,
        "held_cost_microusd": to_microusd(step.reservation.cost_usd),
        **_step_usage_to_values(step.usage),
        "unconfirmed": _charges_to_json(step.unconfirmed),
        "claim_no": step.claim_no,
        "created_at_us": from_time(step.created_at),
        "done_at_us": None if step.done_at is None else from_time(step.done_at),
    }
    return {**values, "checksum": _checksum(_STEP_COLUMNS, values)}


@lru_cache(maxsize=N_CACHED_TEXTS)
def _charges_to_json(charges: tuple[tuple[int, Usage], ...]) -> str:
    return to_json([[claim_no, _step_usage_to_values(usage)] for claim_no, usage in charges])


@lru_cache(maxsize=N_CACHED_TEXTS)
def _charges_from_json(text: str) -> tuple[tuple[int, Usage], ...]:
    return tuple(
        (claim_no, unconfirmed(_step_usage_from_row(values, left_open=Usage())))
        for claim_no, values in json.loads(text)
    )


@_of("step {key} of {owner} of objective {objective_id}")
def step_from_row(row: Row) -> Step:
    """Return the step in the row. Raise `StoreUnusableError` when the row is damaged."""
    _require_sound(
        is_sound_step(row),
        what=f"step {row['key']} of {row['owner']} of objective {row['objective_id']}",
    )
    charges = _charges_from_json(row["unconfirmed"])
    return Step(
        objective_id=row["objective_id"],
        owner=row["owner"],
        key=row["key"],
        kind=row["kind"],
        request_hash=row["request_hash"],
        state=StepState(row["state"]),
        output=row["output"],
        model=row["model"],
        origins=_texts_from_json(row["origins"]),
        reservation=Reservation(
            calls=row["held_calls"],
            tokens=row["held_tokens"],
            cost_usd=row["held_cost_microusd"] / 1e6,
        ),
        usage=_step_usage_from_row(row, left_open=sum((charge for _, charge in charges), Usage())),
        unconfirmed=charges,
        claim_no=row["claim_no"],
        created_at=to_time(row["created_at_us"]),
        done_at=to_time_or_none(row["done_at_us"]),
        request=row["request"],
        id=row["id"],
    )
