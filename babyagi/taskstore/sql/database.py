"""What the SQL store needs of a driver, transactions of named queries, the queries themselves, read
from the `.sql` files beside this module, and how the store reads, writes and waits through them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar, cast

from babyagi.errors import NotFoundError, StoreUnavailableError, StoreUnusableError
from babyagi.offload import Offload, run_inline

T = TypeVar("T")

Question = tuple[str, Set[tuple[str, Any]]]  # the name of a query, and its values


class Row(Protocol):
    """A row, addressed by the names of its columns."""

    def __getitem__(self, column: str, /) -> Any: ...

    def keys(self) -> Any: ...


class Cursor(Protocol):
    """The methods that the cursors of both drivers share."""

    @property
    def rowcount(self) -> int: ...

    def executemany(self, sql: Any, rows: Any, /) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def close(self) -> None: ...


class Connection(Protocol):
    """The methods that the connections of both drivers share."""

    def execute(self, sql: Any, values: Any, /) -> Cursor: ...

    def cursor(self) -> Cursor: ...


class Transaction:
    """A transaction in progress: it runs named queries of SQL, all at one instant (`:now_us` in
    every query).

    It caches what it has read until it writes to one of the tables that the query reads, so the
    same query is sent once.
    """

    def __init__(self, connection: Connection, *, queries: Mapping[str, str], now_us: int) -> None:
        self._connection = connection
        self._queries = queries
        self._now_us = now_us
        self._known: dict[Question, Sequence[Row]] = {}
        self._later: dict[str, list[Mapping[str, Any]]] = {}

    @property
    def now_us(self) -> int:
        return self._now_us

    def ask(self, query: str, **values: Any) -> None:
        """Announce a query that will be read. On a remote server, all queries announced before the
        next answer is needed travel together."""

    def know(self, query: str, row: Row | None, **values: Any) -> None:
        """Put the answer of a query into the cache, when another query has given it."""
        self._known[(query, frozenset(values.items()))] = () if row is None else (row,)

    def run(self, query: str, **values: Any) -> None:
        """Write. The statement has run when the next answer is read, or when the transaction
        ends.
        """
        self._execute(query, values)

    def count_changed(self, query: str, **values: Any) -> int:
        """Write, and return how many rows were changed."""
        return self._execute(query, values).rowcount

    def run_many(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        sql = self._queries[query]
        self._forget(find_tables(sql).written)
        self._connection.cursor().executemany(sql, [self._complete(sql, row) for row in rows])

    def run_later(self, query: str, row: Mapping[str, Any]) -> None:
        """Defer a row, to write all rows of this query in one statement that gets them as JSON in
        `:rows`. They are written before the transaction ends, or before a query reads what they
        change."""
        self._later.setdefault(query, []).append(row)
        self._forget(find_tables(self._queries[query]).written)

    def finish(self) -> None:
        """Write what was deferred; the driver calls it before it commits."""
        later, self._later = self._later, {}
        for query, rows in later.items():
            self._execute(query, {"rows": json.dumps(rows)})

    def one(self, query: str, **values: Any) -> Row | None:
        """Return the first row, None when there is none; for a query that gives at most one."""
        rows = self.all(query, **values)
        return rows[0] if rows else None

    def all(self, query: str, **values: Any) -> Sequence[Row]:
        if find_tables(self._queries[query]).written:
            return self._fetch(query, values)
        question = (query, frozenset(values.items()))
        rows = self._known.get(question)
        if rows is None:
            rows = self._known[question] = self._fetch(query, values)
        return rows

    def each(self, query: str, **values: Any) -> Iterator[Row]:
        """Return the rows one by one, for more than fits in memory."""
        cursor = self._execute(query, values)
        while (row := cursor.fetchone()) is not None:
            yield row

    def has(self, query: str, **values: Any) -> bool:
        return self.one(query, **values) is not None

    def _fetch(self, query: str, values: Mapping[str, Any]) -> Sequence[Row]:
        return self._execute(query, values).fetchall()

    def _execute(self, query: str, values: Mapping[str, Any]) -> Cursor:
        sql = self._queries[query]
        if self._later and self._is_awaited(sql):
            self.finish()
        self._forget(find_tables(sql).written)
        return self._connection.execute(sql, self._complete(sql, values))

    def _is_awaited(self, sql: str) -> bool:
        """Return whether the query reads what is deferred."""
        read = find_tables(sql).read
        return any(
            not read.isdisjoint(find_tables(self._queries[query]).written) for query in self._later
        )

    def _complete(self, sql: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**values, "now_us": self.now_us} if ":now_us" in sql else values

    def _forget(self, tables: Set[str]) -> None:
        """Drop from the cache what was read of these tables."""
        if tables:
            self._known = self._unchanged(self._known, tables)

    def _unchanged(self, answers: dict[Question, T], tables: Set[str]) -> dict[Question, T]:
        """Return those answers that do not depend on these tables."""
        return {
            question: answer
            for question, answer in answers.items()
            if tables.isdisjoint(find_tables(self._queries[question[0]]).read)
        }


class LinedUp(Generic[T]):
    """A write that waits for its turn, and what became of it. It is called in a thread of the
    store's offload.

    Args:
        objective_id, is_lasting: as of `Database.write`.
        run: carries this write out, perhaps with others, unless it is over; raises its error, or
            leaves the error here.
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
        """Leave the work undone if it has not begun: nobody waits for it any more."""
        self.is_over = True


class Database(Protocol):
    """An open database. Every method blocks and must be called in a thread of the store's offload.

    All but `close` raise `StoreUnavailableError` (nothing changed, try again later) and
    `StoreUnusableError` (a person must act).
    """

    where: str
    """The file or the URL, as it may be shown."""

    known_version: int
    """The version of the schema that this program is made for."""

    reads_at_once: bool
    """Whether `read_at_once` may be used."""

    is_told: bool
    """Whether `data_version` answers at once, because a thread hears of commits. Otherwise it must
    look for them."""

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        """Run the work in one transaction; when it raises, nothing is changed. It may be run again
        when the database asks for it.

        Args:
            objective_id: nobody else writes to this objective meanwhile; None: nobody else writes
                at all.
            is_lasting: False: it need not be on the disk before the next lasting write is. No kill
                can undo it; a power cut may, together with all that was written after it. A driver
                may make it durable all the same.
        """
        ...

    def line_up(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> LinedUp[T]:
        """Return what does the same as `write` when it is called. A driver may run what is lined up
        in one transaction, each piece of work whole or not at all."""
        ...

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run the work on one consistent state."""
        ...

    def read_at_once(self, work: Callable[[Transaction], T]) -> T:
        """Do the same as `read` for work of microseconds, in the thread of the event loop. It never
        waits, and raises `StoreUnavailableError` when it would have to."""
        ...

    def read_as_it_lies(self, work: Callable[[Transaction], T]) -> T:
        """Do the same as `read`, but also return text that is not valid any more, so that one
        damaged row does not hide the others."""
        ...

    def find_damage(self) -> list[str]:
        """Return the faults that the engine itself finds in its pages and indexes, at most 20."""
        ...

    def watch(self, on_sign: Callable[[], None]) -> None:
        """Call `on_sign` in a thread of the driver whenever somebody, this process included, may
        have committed; until `close`. Called once."""
        ...

    def data_version(self) -> int:
        """Return a number that changes when others have committed since the last call."""
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
    """Return the named queries of these `.sql` files, by name."""
    queries: dict[str, str] = {}
    for room in (*ROOMS, *rooms):
        queries |= parse_queries(files(__package__).joinpath(f"{room}.sql").read_text("utf-8"))
    return MappingProxyType({name: fill(sql, queries) for name, sql in queries.items()})


def fill(sql: str, queries: Mapping[str, str]) -> str:
    """Return the query with other queries in the place of their names in double braces."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: queries[found[1]].rstrip(";"), sql)


def parse_queries(text: str) -> dict[str, str]:
    """Split SQL at its `-- name --` headers."""
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
    """The tables that a query reads, and those that it changes, also by triggers."""

    read: frozenset[str]
    written: frozenset[str]


# the tables that a trigger or a foreign key changes along with a table
FOLLOWING = {
    ("INSERT", "task"): {"task_count"},
    ("UPDATE", "task"): {"task_count"},
    ("DELETE", "worker"): {"worker_objective"},
    ("DELETE", "objective"): set(
        "task task_after task_count result vector step duty worker_objective event tick".split()
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
    """Return the scripts `schema_001.sql`, `schema_002.sql`, …, with what the engine (`sqlite` or
    `postgres`) says in its own way in the places that they name. The n-th brings a store from
    version n - 1 to version n."""
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
    """Raises `StoreUnusableError` when the schema is newer than this program."""
    if version > known:
        raise StoreUnusableError(
            f"the task store {where} was written by a newer babyagi",
            why=f"its schema has version {version}, this program knows versions up to {known}",
            fix="pip install . in the newest sources of this program",
            guide="store",
        )


def parse_version(tables: Sequence[str], version: str | None, *, where: str) -> int:
    """Return the schema's version, 0 when the database is empty.

    Args:
        tables: the names of all tables in the database. version: the value in `meta`, None when it
            has none.

    Raises:
        StoreUnusableError: the tables are not ours.
    """
    if not tables:
        return 0
    if version is None or not version.isdigit():
        raise StoreUnusableError(
            f"{where} is a database, but no task store of babyagi",
            why=f"it holds {len(tables)} other tables",
            fix="choose another one",
            guide="store",
        )
    return int(version)


def upgrade_blocked(version: int, scripts: Sequence[str], *, where: str) -> StoreUnusableError:
    """Return the error for an older schema that cannot be upgraded, because workers of the older
    program are at work."""
    return StoreUnusableError(
        f"the task store {where} cannot be upgraded now",
        why=(
            f"its schema has version {version}, this program writes version {len(scripts)}, "
            "and workers of the older program are at work"
        ),
        fix="stop every worker, then try again",
        guide="store",
    )


# -- how the store reads and writes: one transaction for each method, in a thread where the driver
# blocks
# --------------------------------------------------------------------------------------------------


# writes in a row that must succeed before the next failure is reported as a new trouble: a full
# disk still takes a small write now and then
CALM_WRITES = 50
# 200 tasks are read in 2 ms, which the event loop may wait; a thread costs half of that on a busy
# processor
FEW_ROWS = 200


def no_objective(objective_id: int) -> NotFoundError:
    return NotFoundError(
        f"there is no objective {objective_id}", fix="babyagi objectives", guide="objectives"
    )


class SqlAccess:
    """An open database, used through the threads of the offload."""

    def __init__(
        self, database: Database, *, offload: Offload, tell: Callable[[str], None]
    ) -> None:
        self._database = database
        self._offload = offload
        self._tell = tell
        self._n_calm = CALM_WRITES
        self._written = asyncio.Event()
        self._version_seen = -1
        self._sign = asyncio.Event()  # somebody may have committed
        self._is_watching = False
        self._is_in_doubt = True
        self._looked_at_s = 0.0
        self._pause_s = MIN_PAUSE_S
        self._secret = ""

    async def _write(
        self, work: Callable[[Transaction], T], objective_id: int | None, *, is_lasting: bool = True
    ) -> T:
        """Run the work in one transaction. Nobody else writes to the objective meanwhile; with
        None, nobody else writes at all.

        Args:
            is_lasting: False for what costs nothing to have again after a power cut; the commit
                does not wait for the disk.
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
                    "goes on by itself when it can"
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
        """Run work over several objectives in one transaction, while nobody else writes."""
        return await self._write(work, None, is_lasting=is_lasting)

    async def _read(self, work: Callable[[Transaction], T], *, n_rows: int = 1) -> T:
        """Run the work on one consistent state.

        Args:
            n_rows: about how many rows it reads at most; few rows are read without a thread.
        """
        if self._database.reads_at_once and n_rows <= FEW_ROWS:
            with suppress(StoreUnavailableError):
                return self._database.read_at_once(work)
        return await self._offload(lambda: self._database.read(work))

    async def _look(
        self, objective_id: int, work: Callable[[Transaction], T], *, n_rows: int = 1
    ) -> T:
        """Read something of an objective. Raises `NotFoundError`.

        Args:
            n_rows: as of `_read`.
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
        """Return at most `n_rows` rows of a query as data types. Raises `NotFoundError`."""
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
# Pause between two looks: the first after a calm time comes at once, and on a busy store the pause
# doubles up to the most.
MIN_PAUSE_S, MAX_PAUSE_S = 0.01, 0.08


class Waiting(SqlAccess):
    """Wait for events, and for a change by somebody else."""

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
        """Wait until this store object or another process has committed."""
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
        """Wait until somebody may have committed since the last look. Return at once when the last
        look could not read the version."""
        # a simulation has its own time, so no thread may take part
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
        """Report a possible commit to the event loop; called in the database's thread."""
        if not self._sign.is_set():
            with suppress(RuntimeError):  # the loop has ended, and nobody waits in it
                loop.call_soon_threadsafe(self._sign.set)

    async def _version(self) -> int | None:
        """Return the data version, None while the store is unavailable."""
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
