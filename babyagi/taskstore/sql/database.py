"""The foundation of the SQL store: the interface of a database driver, transactions of named
queries (from the `.sql` files beside this module), waiting for commits, and the conversion between
rows and data types.

Only this module knows how a data type is stored in a table. A row whose values cannot be converted
is damaged: reading it raises `StoreUnusableError`, whose message names the row.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial, wraps
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from babyagi.errors import NotFoundError, StoreUnavailableError, StoreUnusableError
from babyagi.runtime.offload import Offload, now_s, run_inline
from babyagi.tasks import (
    Approval,
    CheckedPart,
    Checks,
    Claim,
    Duty,
    DutyClaim,
    Effect,
    Event,
    Fence,
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
from babyagi.taskstore.schedules import (
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

P = ParamSpec("P")
T = TypeVar("T")

Connection = Any  # of sqlite3 or of psycopg; the methods that both have are called
Row = Mapping[str, Any]  # values by column name


class Transaction:
    """A transaction in progress. It runs named queries; `:now_us` has the same value in all of
    them. The rows that a query returned are cached until something is written, so a repeated query
    is not sent again.
    """

    def __init__(self, connection: Connection, *, queries: Mapping[str, str], now_us: int) -> None:
        self._connection = connection
        self._queries = queries
        self.now_us = now_us
        self._cached: dict[tuple[str, frozenset[tuple[str, Any]]], Sequence[Row]] = {}

    def run(self, query: str, **values: Any) -> int:
        """Run a statement that writes, and return how many rows it changed."""
        self._cached.clear()
        return int(self._send(query, values).rowcount)

    def change(self, query: str, **values: Any) -> Row:
        """Run a statement that writes one row, and return that row."""
        self._cached.clear()
        return self._fetch(query, values)[0]

    def one(self, query: str, **values: Any) -> Row | None:
        """Return the first row, or None when the query returns no row."""
        rows = self.all(query, **values)
        return rows[0] if rows else None

    def all(self, query: str, **values: Any) -> Sequence[Row]:
        question = (query, frozenset(values.items()))
        if question not in self._cached:
            self._cached[question] = self._fetch(query, values)
        return self._cached[question]

    def has(self, query: str, **values: Any) -> bool:
        return bool(self.all(query, **values))

    def each(self, query: str, **values: Any) -> Iterator[Row]:
        """Yield the rows one by one, without caching them, for results that do not fit in
        memory."""
        cursor = self._send(query, values)
        columns = [column[0] for column in cursor.description]
        yield from (dict(zip(columns, row, strict=True)) for row in cursor)

    def _fetch(self, query: str, values: Mapping[str, Any]) -> Sequence[Row]:
        return list(Transaction.each(self, query, **values))

    def _send(self, query: str, values: Mapping[str, Any]) -> Any:
        return self._connection.execute(self._queries[query], {**values, "now_us": self.now_us})


class Database(Protocol):
    """What the SQL store needs of a database driver. The methods block, so call them in a thread of
    the store's offload.

    All but `close` raise `StoreUnavailableError` (nothing changed, try again later) and
    `StoreUnusableError` (a person must act).
    """

    where: str
    """The file or the URL, without the password, for messages."""

    version_before: int
    """The version of the schema that the database had when it was opened."""

    known_version: int
    """The version of this program's schema."""

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        """Run `work` in one transaction, and return what it returns. When `work` raises, nothing is
        changed. When the database asks for the transaction to be repeated, `work` runs again.

        Args:
            objective_id: the objective to lock; other processes cannot write to it until the
                transaction ends. None locks the whole store for writing.
            is_lasting: whether the commit must be on the disk when the call returns. If False, a
                power cut may lose this commit and the later ones up to the next lasting write; a
                kill of the process loses nothing.
        """

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent state of the database, and return what it returns."""

    def read_unchecked(self, work: Callable[[Transaction], T]) -> T:
        """Do the same as `read`, but return text that is not valid UTF-8 instead of raising, so
        that one damaged row does not hide the others."""

    def find_damage(self) -> list[str]:
        """Return descriptions of at most 20 faults that the database engine itself finds in its
        pages and indexes."""

    def watch(self, on_commit: Callable[[], None]) -> None:
        """Until `close`, call `on_commit` in a thread of the driver whenever another process, or
        another connection of this one, may have committed, and once at the beginning. Call this
        method once only."""

    def close(self) -> None:
        """Close the database. A second call does nothing."""


# --------------------------------------------------------------------------------------------------
# The named queries, and the scripts that create and upgrade the schema. Nothing here
# depends on a database engine.
# --------------------------------------------------------------------------------------------------


SQL_FILES = ("meta", "objectives", "tasks", "steps", "looking", "schedules", "vitals", "keys")


@cache
def load_queries(*more_files: str) -> Mapping[str, str]:
    """Return the queries by name, from the `.sql` files that all engines share (`SQL_FILES`) and
    from `more_files`, which are names of `.sql` files without the ending."""
    queries = _read_pieces(*SQL_FILES, *more_files)
    return MappingProxyType({name: fill(sql, queries) for name, sql in queries.items()})


def _read_pieces(*names: str) -> dict[str, str]:
    """Return the named texts in these `.sql` files."""
    pieces: dict[str, str] = {}
    for name in names:
        pieces |= parse_queries(files(__package__).joinpath(f"{name}.sql").read_text("utf-8"))
    return pieces


def fill(sql: str, queries: Mapping[str, str]) -> str:
    """Return the query with each name in double braces replaced by the query of that name."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: queries[found[1]].rstrip(";"), sql)


def parse_queries(text: str) -> dict[str, str]:
    """Return the queries in the text by name. A line `-- name --` stands before each query; other
    comment lines are removed. Raises `ValueError` when two queries have the same name."""
    _, *pieces = re.split(r"^-- (\w+) --$", text, flags=re.MULTILINE)
    names, queries = pieces[::2], pieces[1::2]
    if len(set(names)) < len(names):
        raise ValueError(f"two SQL queries have the same name: {', '.join(names)}")
    without_comments = (re.sub(r"^--.*$", "", one, flags=re.MULTILINE) for one in queries)
    return dict(zip(names, map(str.strip, without_comments), strict=True))


# The version of the schema. A store of the version before is upgraded; every other is refused.
SCHEMA_VERSION = 6
UPGRADER = "35507d87"  # the commit whose program upgrades every older store to the version before


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripts:
    """What gives a database this program's schema.

    Attributes:
        version: the version of the schema.
        create: creates the schema in an empty database.
        upgrade: upgrades a store of the version before.
    """

    version: int
    create: str
    upgrade: str


@cache
def load_scripts(engine: str) -> Scripts:
    """Return the scripts in `schema.sql` for this engine (`sqlite` or `postgres`). Where the
    engines differ in syntax, they have a name in double braces, of a text in `schema_sqlite.sql` or
    `schema_postgres.sql`."""
    pieces = _read_pieces("schema", f"schema_{engine}") | {"version": str(SCHEMA_VERSION)}
    return Scripts(
        version=SCHEMA_VERSION,
        create=fill(pieces["create"], pieces),
        upgrade=fill(pieces["upgrade"], pieces),
    )


def read_version(tx: Transaction, *, known: int, where: str) -> int:
    """Return the version of the database's schema; 0 when it has no tables.

    Raises:
        StoreUnusableError: the tables are not those of a task store, or this program, whose schema
            has the version `known`, cannot read it.
    """
    names = [row["name"] for row in tx.all("tables")]
    row = tx.one("schema_version") if "meta" in names else None
    if not names:
        return 0
    if row is None or not str(row["value"]).isdigit():
        raise StoreUnusableError(
            f"{where} is a database, but not a task store of babyagi",
            why=f"the database has {len(names)} tables of another program",
            fix="choose another file or database for the task store",
            guide="store",
        )
    return require_known(int(row["value"]), known=known, where=where)


def require_known(version: int, *, known: int, where: str) -> int:
    """Return the version of a store. Raise `StoreUnusableError` when this program, whose schema has
    the version `known`, cannot read it."""
    if known - 1 <= version <= known:
        return version
    is_newer = version > known
    raise StoreUnusableError(
        f"the task store {where} was written by {'a newer' if is_newer else 'an older'} babyagi",
        why=f"the store has schema version {version}; this program opens the versions {known - 1} "
        f"and {known}",
        fix="install the newest babyagi: pip install . in its newest sources"
        if is_newer
        else f"upgrade it with commit {UPGRADER}: git checkout {UPGRADER} && pip install . && "
        "babyagi doctor --quick (in PostgreSQL: its `migrate`); then install this program",
        guide="store",
    )


def find_script(tx: Transaction, scripts: Scripts, *, where: str) -> tuple[int, str]:
    """Return the version of the database's schema, and the script that gives it this program's; ''
    if it has that.

    Raises:
        StoreUnusableError: as `read_version`, or a worker of the older program may still be
            running.
    """
    version = read_version(tx, known=scripts.version, where=where)
    if version in (0, scripts.version):
        return version, "" if version else scripts.create
    if tx.has("has_living_worker"):
        raise StoreUnusableError(
            f"the task store {where} cannot be upgraded now",
            why=(
                f"the store has schema version {version}, this program writes version "
                f"{scripts.version}, and workers of the older program are still running (the lease "
                "of a killed worker ends by itself)"
            ),
            fix="stop every worker, wait half a minute, then try again",
            guide="store",
        )
    return version, scripts.upgrade


# -- reading and writing: one transaction for each method of the store, in a thread if the driver
# blocks
# --------------------------------------------------------------------------------------------------


# A failed write is reported to the person as a new outage only after so many successful writes in a
# row, because a full disk still accepts a small write now and then.
CALM_WRITES = 50
ALL_ROWS = 2**53  # SQLite and PostgreSQL share no syntax for "no limit"
# How long `wait_for_events` waits after a commit, so that one read finds the events of a burst.
BURST_S = 0.02
# The shortest time between two returns of `wait_for_change`. After a quiet time it returns at once.
PAUSE_S = 0.05


def rows_in(tx: Transaction, query: str, objective_id: int, **values: Any) -> Sequence[Row]:
    """Return the rows of a query about one objective. Raise `NotFoundError` when there is no such
    objective."""
    rows = tx.all(query, objective_id=objective_id, **values)
    # a row that was found proves that the objective exists
    if not rows and not tx.has("objective", objective_id=objective_id):
        raise no_objective(objective_id)
    return rows


def no_objective(objective_id: int) -> NotFoundError:
    return NotFoundError(
        f"there is no objective {objective_id}", fix="babyagi show objectives", guide="objectives"
    )


# Changes the work of each write that is made while it is set, so that a request with a key takes
# effect once; set by `TaskStore.carry_out`.
Once = Callable[[Callable[[Transaction], Any]], Callable[[Transaction], Any]]
ONCE: ContextVar[Once | None] = ContextVar("once", default=None)


class SqlAccess:
    """The base class of the store's parts. It runs their reads and writes on an open database, and
    waits for new events and for commits by other processes.

    Args:
        offload: runs the driver's blocking calls in threads.
        tell: called with a message for a person when the store cannot be written, once for each
            outage.
    """

    def __init__(
        self, database: Database, *, offload: Offload, tell: Callable[[str], None]
    ) -> None:
        self._database = database
        self.versions = (database.version_before, database.known_version)
        self._offload = offload
        self._tell = tell
        self._n_calm = CALM_WRITES
        self._changed = asyncio.Event()  # set, and replaced, when anyone may have committed
        self._others = asyncio.Event()  # set when another process may have committed
        self._is_watching = False
        self._woken_at_s = 0.0
        self._secret = ""

    async def _write(
        self, work: Callable[[Transaction], T], objective_id: int | None, *, is_lasting: bool = True
    ) -> T:
        """Run `work` in one transaction, and return what it returns.

        Args:
            objective_id: the objective to lock for writing; None locks the whole store.
            is_lasting: False if the commit need not wait for the disk. Only for changes that can
                be repeated at no cost after a power cut.
        """
        once = ONCE.get()
        work = once(work) if once is not None else work
        try:
            done = await self._offload(
                lambda: self._database.write(work, objective_id=objective_id, is_lasting=is_lasting)
            )
        except StoreUnavailableError as error:
            if self._n_calm >= CALM_WRITES:
                self._tell(
                    f"the task store cannot be written now ({error.why or error.what}); work "
                    "continues by itself as soon as it can be written again"
                )
            self._n_calm = 0
            raise
        else:
            self._n_calm += 1
            return done
        finally:
            self._note_change()

    async def _read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent state of the store, and return what it returns."""
        return await self._offload(lambda: self._database.read(work))

    def _note_change(self) -> None:
        """Wake whoever waits for events, because there may be new ones."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def close(self) -> None:
        """Close the database. A second call does nothing."""
        await self._offload(self._database.close)

    # -- waiting for commits, by this store object and by others
    # ----------------------------------------------------------------------------------------------

    async def last_event_id(self, objective_id: int | None, *, older_than_s: float = 0) -> int:
        """Return the id of the objective's newest event that is older than so many seconds; 0 when
        there is none. Raises `NotFoundError`.

        Args:
            objective_id: None stands for all objectives, and waits until no process is writing:
                every event with a lower id is then committed.
        """

        def work(tx: Transaction) -> int:
            until_us = tx.now_us - round(older_than_s * 1e6) if older_than_s else ALL_ROWS
            (row,) = tx.all("last_event_id", objective_id=objective_id, until_us=until_us)
            if not (row["id"] or tx.has("objective", objective_id=objective_id)):
                raise no_objective(objective_id or 0)
            return int(row["id"])

        if objective_id is None:
            rows = await self._write(lambda tx: tx.all("newest_event"), None, is_lasting=False)
            return int(rows[0]["id"])
        return await self._read(work)

    async def wait_for_events(self, objective_id: int, *, after_id: int, timeout_s: float) -> None:
        """Wait until the objective has an event with an id above `after_id`, whichever process
        wrote it, or until `timeout_s` seconds have passed."""
        self._watch()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                changed = self._changed
                while await self.last_event_id(objective_id) <= after_id:
                    await changed.wait()
                    await asyncio.sleep(BURST_S)
                    changed = self._changed

    async def wait_for_change(self, *, timeout_s: float) -> None:
        """Wait until another process, or another store object on the same tables, has committed
        something since the last call returned, or until `timeout_s` seconds have passed. Only one
        caller at a time may wait on a store object.

        Commits of this store object do not count, because a worker that looks for work would wake
        itself by looking. The wait may end early, for a change that does not concern the caller. It
        ends at most once every `PAUSE_S`, and does not raise while the store is unavailable.
        """
        self._watch()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await asyncio.sleep(self._woken_at_s + PAUSE_S - now_s())
                await self._others.wait()
                # before the caller reads, so that a commit during its read counts as new
                self._others.clear()
                self._woken_at_s = now_s()

    def _watch(self) -> None:
        """Notice the commits of other processes from now on. A simulation has none to notice: a
        thread would not follow its virtual time."""
        if not (self._is_watching or self._offload is run_inline):
            self._is_watching = True
            self._database.watch(partial(self._note_commit, asyncio.get_running_loop()))

    def _note_commit(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake whoever waits in the event loop. Called in a thread of the driver."""
        with suppress(RuntimeError):  # the loop is closed, so nothing waits in it
            loop.call_soon_threadsafe(self._others.set)
            loop.call_soon_threadsafe(self._note_change)


A = TypeVar("A", bound=SqlAccess)
Work = Callable[Concatenate[A, Transaction, P], T]
Verb = Callable[Concatenate[A, P], Coroutine[Any, Any, T]]


def writing(
    *, locks_all: bool = False, is_lasting: bool = True, objective_at: int = 0
) -> Callable[[Work[A, P, T]], Verb[A, P, T]]:
    """Decorate a method of the store that writes: its body is one transaction, which it gets as its
    first argument and its callers do not pass.

    Args:
        locks_all: lock the whole store for writing, and not only the objective that an argument of
            the callers is, or whose claim or fence it is.
        objective_at: the position of that argument.
        is_lasting: as for `SqlAccess._write`.
    """

    def decorate(work: Work[A, P, T]) -> Verb[A, P, T]:
        @wraps(work)
        async def write(self: A, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return await self._write(
                lambda tx: work(self, tx, *args, **kwargs),
                None if locks_all else _objective_of(args[objective_at]),
                is_lasting=is_lasting,
            )

        return write

    return decorate


def reading(work: Work[A, P, T]) -> Verb[A, P, T]:
    """Decorate a method of the store that reads: its body is one transaction, which it gets as its
    first argument and its callers do not pass."""

    @wraps(work)
    async def read(self: A, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._read(lambda tx: work(self, tx, *args, **kwargs))

    return read


def _objective_of(argument: Any) -> int:
    match argument:
        case Claim() | DutyClaim():
            return argument.fence.objective_id
        case Fence():
            return argument.objective_id
    return int(argument)


# --------------------------------------------------------------------------------------------------
# The conversion between rows and data types.
# --------------------------------------------------------------------------------------------------

# the exceptions that converting a damaged value raises
FAULTS = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)

# How many parsed JSON texts are cached. Caching pays because many tasks have the same origins, and
# because each transaction reads the spec of its objective.
N_CACHED_TEXTS = 256
N_CACHED_SPECS = 50

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def from_time(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def to_time(at_us: int) -> datetime:
    return _EPOCH + at_us * _MICROSECOND


def to_time_or_none(at_us: int | None) -> datetime | None:
    return None if at_us is None else to_time(at_us)


def _plain(value: Any) -> Any:
    return from_time(value) if isinstance(value, datetime) else asdict(value)


# of JSON values, data types and times
to_json = json.JSONEncoder(separators=(",", ":"), default=_plain).encode


# -- damage
# --------------------------------------------------------------------------------------------------


def _damage_named(
    name: str,
) -> Callable[[Callable[Concatenate[Row, P], T]], Callable[Concatenate[Row, P], T]]:
    """Decorate a function that converts a row, so that it raises a `StoreUnusableError` with the
    name of the row when the row is damaged.

    Args:
        name: the name of the row for a person, with columns in braces, such as `task {id}`.
    """

    def decorate(convert: Callable[Concatenate[Row, P], T]) -> Callable[Concatenate[Row, P], T]:
        @wraps(convert)
        def convert_or_name(row: Row, /, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return convert(row, *args, **kwargs)
            except FAULTS as error:
                why = f"it cannot be read: {type(error).__name__}: {error}"[:300]
                raise damaged(name_row(name, row), why=why) from error

        return convert_or_name

    return decorate


def name_row(name: str, row: Row) -> str:
    """Return `name` with the row's columns filled in, or only its first word if the row is too
    damaged for that."""
    try:
        return name.format_map(row)
    except FAULTS:
        return name.partition(" ")[0]


def damaged(what: str, *, why: str) -> StoreUnusableError:
    return StoreUnusableError(
        f"the task store is damaged: {what} differs from what was written",
        why=why,
        fix=(
            "babyagi store verify names every damaged row; then restore a backup of the task store"
        ),
        guide="store",
    )


def require_types(row: Row, *, texts: Sequence[str] = (), numbers: Sequence[str] = ()) -> None:
    """Raise `TypeError` unless the columns `texts` contain text and the columns `numbers` contain
    integers. SQLite does not check that, because it accepts any type in any column."""
    for columns, kind in ((texts, str), (numbers, int)):
        # comparing all types at once takes a third of the time of comparing them one by one
        if columns and {*map(type, map(row.__getitem__, columns))} != {kind}:
            column = next(column for column in columns if type(row[column]) is not kind)
            raise TypeError(f"the column {column} holds {row[column]!r}"[:200])


# -- the data types
# --------------------------------------------------------------------------------------------------


@_damage_named("objective {id}")
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
    fields["memory"] = Memory(fields["memory"])
    fields["planning"] = Planning(fields["planning"])
    fields["further"] = tuple(fields.get("further", ()))  # a store of the version before has none
    return ObjectiveSpec(**fields)


def usage_from_row(row: Row) -> Usage:
    """Return the usage in the row of an objective or a task; of a step, without what was charged
    for calls whose answer never arrived."""
    return Usage(
        calls=row["calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost_usd=row["cost_microusd"] / 1e6,
        unconfirmed_tokens=row.get("unconfirmed_tokens", 0),
        unconfirmed_cost_usd=row.get("unconfirmed_cost_microusd", 0) / 1e6,
    )


def usage_to_values(usage: Usage) -> dict[str, int]:
    return {
        **_step_usage_to_values(usage),
        "unconfirmed_tokens": usage.unconfirmed_tokens,
        "unconfirmed_cost_microusd": round(usage.unconfirmed_cost_usd * 1e6),
    }


def _step_usage_to_values(usage: Usage) -> dict[str, int]:
    return {
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_microusd": round(usage.cost_usd * 1e6),
    }


@_damage_named("objective {id}")
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


@lru_cache(maxsize=N_CACHED_SPECS)
def checks_from_json(text: str) -> Checks:
    fields = json.loads(text)
    fields["parts"] = tuple(CheckedPart(**part) for part in fields.get("parts", ()))
    for key in ("missing", "contradictions"):
        fields[key] = tuple(fields.get(key, ()))
    return Checks(**fields)


def lack_from_json(text: str) -> Lack | None:
    if not text:
        return None
    fields = json.loads(text)
    return Lack(
        what=fields["what"],
        shown=tuple(fields["shown"]),
        found=fields.get("found", ""),
        before=tuple(fields.get("before", ())),
    )


@_damage_named("task {id}")
def task_name_from_row(row: Row) -> TaskName:
    return TaskName(
        id=row["id"],
        name=row["name"],
        status=TaskStatus(row["status"]),
        is_lacking=bool(row["lack"]),
        origins=_list_from_json(row["origins"], str),
    )


@_damage_named("task {id} of objective {objective_id}")
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
        after=_list_from_json(row["after_ids"], int),
        origins=_list_from_json(row["origins"], str),
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
def _list_from_json(text: str, kind: type[int] | type[str]) -> tuple[Any, ...]:
    values = json.loads(text)
    if not (isinstance(values, list) and all(type(value) is kind for value in values)):
        raise TypeError(f"this is no list of {kind.__name__}: {text[:100]}")
    return tuple(values)


def policy_to_json(spec: ScheduleSpec) -> str:
    fields = asdict(spec)
    del fields["objective"]
    return to_json(fields)


@_damage_named("schedule {id}")
def schedule_from_row(row: Row) -> Schedule:
    require_types(row, texts=("uid", "spec", "policy", "status"), numbers=("id", "created_at_us"))
    fields = json.loads(row["policy"])
    rule = fields["rule"]
    fields["rule"] = Rule(
        **{**rule, "begins_at": to_time(rule["begins_at"]), "at": to_time_or_none(rule["at"])}
    )
    # a store of the version before may have these
    fields.pop("jitter_s", None)
    fields["overlap"] = Overlap("skip" if fields["overlap"] == "queue" else fields["overlap"])
    fields["catch_up"] = CatchUp(fields["catch_up"])
    return Schedule(
        id=row["id"],
        uid=row["uid"],
        spec=ScheduleSpec(objective=spec_from_row(row), **fields),
        status=ScheduleStatus(row["status"]),
        due_at=to_time_or_none(row["due_us"]),
        created_at=to_time(row["created_at_us"]),
    )


@_damage_named("the tick of schedule {schedule_id} at {due_us}")
def tick_from_row(row: Row) -> Tick:
    return Tick(
        schedule_id=row["schedule_id"],
        due_at=to_time(row["due_us"]),
        # an earlier program let a tick wait, which now waits for nothing
        outcome=TickOutcome("skipped" if row["outcome"] == "queued" else row["outcome"]),
        reason=TickReason(row["reason"]),
        objective_id=row["objective_id"],
        decided_at=to_time(row["decided_at_us"]),
    )


@_damage_named("event {id} of objective {objective_id}")
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
_TASK_TEXTS = ("name", "name_key", "status", "after_ids", "origins", "error", "lack")
_TASK_NUMBERS = (
    "id objective_id rank blockers try_no claim_no failures n_lost n_lacks calls "
    "prompt_tokens completion_tokens cost_microusd "
    "created_at_us unconfirmed_tokens unconfirmed_cost_microusd"
).split()


@_damage_named("worker {worker_id}")
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


@_damage_named("worker {id}")
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
        lease_s=row["lease_us"] / 1e6,
        lease_left_s=(row["lease_until_us"] - now_us) / 1e6,
        joined=tuple(joined),
    )


# -- checksums of whole rows, verified whenever the row is read: nothing else detects a byte that
# the disk has changed inside a text
# --------------------------------------------------------------------------------------------------

_RESULT_COLUMNS = ("objective_id", "task_id", "text", "origins", "created_at_us")
_STEP_COLUMNS = (
    "objective_id owner key kind request_hash state output request model origins is_held "
    "held_calls held_tokens held_cost_microusd "
    "calls prompt_tokens completion_tokens cost_microusd unconfirmed claim_no "
    "created_at_us done_at_us"
).split()


_CONTENT = json.JSONEncoder(default=repr)  # a damaged value may be bytes


def _checksum(columns: Sequence[str], values: Row) -> str:
    content = _CONTENT.encode([*map(values.__getitem__, columns)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _result_columns(values: Row) -> Sequence[str]:
    """Return the columns that the result's checksum covers. `lack` is covered only if it is set,
    because version 1 had no such column."""
    return (*_RESULT_COLUMNS, "lack") if values["lack"] else _RESULT_COLUMNS


def _require_sound(columns: Sequence[str], row: Row, *, name: str) -> None:
    if _checksum(columns, row) != row["checksum"]:
        why = "the checksum of the row does not match its content"
        raise damaged(name_row(name, row), why=why)


# -- seals: checksums of the columns that rarely change, verified only by `verify`
# --------------------------------------------------------------------------------------------------

_SEALED = {
    "objective": ("uid", "identity", "spec", "created_at_us"),
    "report": ("id", "report"),
    "task": (
        "objective_id",
        "id",
        "name",
        "name_key",
        "parent_id",
        "origins",
        "created_at_us",
    ),
    "event": ("objective_id", "task_id", "kind", "data", "at_us"),
    "schedule": ("uid", "spec", "policy", "created_at_us"),
}


def sealed(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row, with the checksum of the sealed columns added as `seal`."""
    return {**values, "seal": _seal(table, values)}


def is_sealed_right(table: str, row: Row) -> bool:
    """Return whether the row's sealed columns match its seal. A row without a seal, which an
    earlier version wrote, passes."""
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
        "origins": to_json(result.origins),
        "lack": result.lack,
        "created_at_us": from_time(result.created_at),
    }
    return {**values, "checksum": _checksum(_result_columns(values), values)}


@_damage_named("the result of task {task_id} of objective {objective_id}")
def result_from_row(row: Row) -> Result:
    _require_sound(
        _result_columns(row), row, name="the result of task {task_id} of objective {objective_id}"
    )
    return Result(
        task_id=row["task_id"],
        objective_id=row["objective_id"],
        task_name=row["task_name"],
        text=row["text"],
        origins=_list_from_json(row["origins"], str),
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
        "origins": to_json(step.origins),
        "is_held": int(is_held),
        "held_calls": step.reservation.calls,
        "held_tokens": step.reservation.tokens,
        "held_cost_microusd": to_microusd(step.reservation.cost_usd),
        **_step_usage_to_values(step.usage),
        "unconfirmed": to_json([(no, _step_usage_to_values(one)) for no, one in step.unconfirmed]),
        "claim_no": step.claim_no,
        "created_at_us": from_time(step.created_at),
        "done_at_us": None if step.done_at is None else from_time(step.done_at),
    }
    return {**values, "checksum": _checksum(_STEP_COLUMNS, values)}


@lru_cache(maxsize=N_CACHED_TEXTS)
def _charges_from_json(text: str) -> tuple[tuple[int, Usage], ...]:
    return tuple(
        (claim_no, unconfirmed(usage_from_row(values))) for claim_no, values in json.loads(text)
    )


@_damage_named("step {key} of {owner} of objective {objective_id}")
def step_from_row(row: Row) -> Step:
    _require_sound(_STEP_COLUMNS, row, name="step {key} of {owner} of objective {objective_id}")
    charges = _charges_from_json(row["unconfirmed"])
    left_open = sum((charge for _, charge in charges), Usage())
    return Step(
        objective_id=row["objective_id"],
        owner=row["owner"],
        key=row["key"],
        kind=row["kind"],
        request_hash=row["request_hash"],
        state=StepState(row["state"]),
        output=row["output"],
        model=row["model"],
        origins=_list_from_json(row["origins"], str),
        reservation=Reservation(
            calls=row["held_calls"],
            tokens=row["held_tokens"],
            cost_usd=row["held_cost_microusd"] / 1e6,
        ),
        usage=replace(
            usage_from_row(row),
            unconfirmed_tokens=left_open.unconfirmed_tokens,
            unconfirmed_cost_usd=left_open.unconfirmed_cost_usd,
        ),
        unconfirmed=charges,
        claim_no=row["claim_no"],
        created_at=to_time(row["created_at_us"]),
        done_at=to_time_or_none(row["done_at_us"]),
        request=row["request"],
        id=row["id"],
    )
