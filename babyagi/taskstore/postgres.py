"""The PostgreSQL driver: locks, transactions and commits. It knows no verb and no rule.

One connection per thread that asks; a process needs two to four, however many tasks it works on.
Everything lies in the schema `babyagi` of the database that the URL names. A write locks its
objective's row first (or, for a verb over several objectives, all writers out), then reads the
server's clock, and then does what the verb says, at READ COMMITTED; reads are REPEATABLE READ.

Every wait has a bound: connecting, locks, statements, a network that is cut (keepalives), a client
that freezes in a transaction. LISTEN
and the session's settings need a connection of their own: no pooler in transaction mode in between.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from babyagi.errors import StoreUnavailableError
from babyagi.taskstore import pieces
from babyagi.taskstore.database import Row, Transaction
from babyagi.taskstore.postgres_connections import Connections, rolled_back_on_error
from babyagi.taskstore.postgres_errors import in_our_words, is_rolled_back
from babyagi.taskstore.postgres_listener import Listener
from babyagi.taskstore.postgres_schema import Schema
from babyagi.taskstore.rows import from_time

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

# of a transaction that the server rolled back, or whose connection was lost before its commit
TRIES = 5
COMMIT_DOUBT_S = 60.0  # how long to ask what became of a commit whose answer was lost
COMMIT_ASK_PAUSE_S = 0.2
PLANS_S = 5.0  # a plan that was made for a table of ten rows is bad for ten thousand


class PostgresTransaction(Transaction):
    """A transaction on PostgreSQL."""

    def each(self, piece: str, **values: Any) -> Iterator[Row]:
        connection: Any = self._connection
        yield from connection.cursor().stream(
            self._pieces[piece], {**values, "now_us": self.now_us}
        )


class PostgresDatabase:
    """An open database. Every method but `data_version` blocks and belongs into one of the store's
    threads."""

    is_told = True

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], datetime] | None = None,
        scripts: Sequence[str] | None = None,
    ) -> None:
        """Connect, and make the schema when there is none; an older one is left to `migrate`.

        Args:
            url: `postgresql://user:password@host:port/database`.
            clock: for tests; the server's when None.
            scripts: what makes the schema, one script per version, when not those of this program.

        Raises:
            SettingsError, StoreUnusableError, StoreUnavailableError.
        """
        self._clock = clock
        self._thread = threading.local()
        self._pieces = load_pieces()
        self._connections = Connections(url)
        self.where = self._connections.shown
        self._listener = Listener(
            self._connections.connect, pieces=self._pieces, is_own=self._connections.has_pid
        )
        scripts = pieces.load_scripts("postgres") if scripts is None else scripts
        self.known_version = len(scripts)
        try:
            with in_our_words(self.where):
                Schema(
                    connection=self._connections.mine(),
                    pieces=self._pieces,
                    scripts=scripts,
                    where=self.where,
                ).require_current()
        except BaseException:
            self.close()
            raise

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        """As the port says; here everything is lasting, for workers outlive a server that loses its
        power."""

        def transact(connection: psycopg.Connection[Any]) -> T:
            with rolled_back_on_error(connection):
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
                lock = self._ask(connection, "lock_for_writing", objective_id=objective_id)
                done = work(self._transaction(connection, now_us=lock["now_us"]))
            self._commit(connection, lock["transaction"])
            return done

        return self._persist(transact)

    def read(self, work: Callable[[Transaction], T]) -> T:
        def transact(connection: psycopg.Connection[Any]) -> T:
            with rolled_back_on_error(connection):
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                done = work(
                    self._transaction(connection, now_us=self._ask(connection, "clock")["now_us"])
                )
                connection.execute("COMMIT")
            return done

        return self._persist(transact)

    def read_as_it_lies(self, work: Callable[[Transaction], T]) -> T:
        return self.read(work)  # the server took no bytes that are not UTF-8

    def find_damage(self) -> list[str]:
        return []  # the server looks after its own pages

    def watch(self, on_sign: Callable[[], None]) -> None:
        self._listener.watch(on_sign)

    def data_version(self) -> int:
        """Starts to listen at the first call."""
        return self._listener.n_heard()

    def close(self) -> None:
        self._listener.close()
        self._connections.close()

    def _transaction(self, connection: Any, *, now_us: int) -> Transaction:
        return PostgresTransaction(
            connection,
            pieces=self._pieces,
            now_us=from_time(self._clock()) if self._clock else now_us,
        )

    def _ask(self, connection: psycopg.Connection[Any], piece: str, **values: Any) -> Any:
        """The first row, outside of any verb."""
        return connection.execute(self._pieces[piece], values).fetchone()

    def _persist(self, transact: Callable[[psycopg.Connection[Any]], T]) -> T:
        """Run the transaction; again when it was rolled back or cut off before its commit, for then
        nothing was changed."""
        import psycopg

        with in_our_words(self.where):
            for _ in range(TRIES - 1):
                connection = self._connections.mine()
                try:
                    self._plan_anew(connection)
                    return transact(connection)
                except psycopg.Error as error:
                    if not (is_rolled_back(error) or connection.closed):
                        raise
            return transact(self._connections.mine())

    def _plan_anew(self, connection: psycopg.Connection[Any]) -> None:
        """Let the server make its plans again now and then; they are generic, for planning takes
        longer than the questions."""
        now_s = time.monotonic()
        if now_s - getattr(self._thread, "planned_at_s", 0.0) > PLANS_S:
            connection.execute(self._pieces["forget_plans"])
            self._thread.planned_at_s = now_s

    def _commit(self, connection: psycopg.Connection[Any], transaction: str) -> None:
        """Commit. When the connection is lost over it, ask on another what became of it: it may
        have been committed."""
        import psycopg

        try:
            connection.execute("COMMIT")
        except psycopg.Error:
            if not connection.closed or not self._was_committed(transaction):
                raise

    def _was_committed(self, transaction: str) -> bool:
        """Raises `StoreUnavailableError` when that cannot be learned in time."""
        import psycopg

        deadline = time.monotonic() + COMMIT_DOUBT_S
        while time.monotonic() < deadline:
            with suppress(psycopg.OperationalError):
                outcome = self._ask(self._connections.mine(), "outcome", transaction=transaction)[
                    "outcome"
                ]
                if outcome in ("committed", "aborted"):
                    return bool(outcome == "committed")
            time.sleep(COMMIT_ASK_PAUSE_S)
        raise StoreUnavailableError(
            f"the task store {self.where} cannot answer now",
            why="the connection was lost in a commit, and whether that was done is not known",
        )


def migrate(url: str, *, scripts: Sequence[str] | None = None) -> tuple[int, int]:
    """Bring the schema to this program's version; returns the version before and after. Raises as
    `PostgresDatabase`."""
    connections = Connections(url)
    scripts = pieces.load_scripts("postgres") if scripts is None else scripts
    with in_our_words(connections.shown), closing(connections):
        return Schema(
            connection=connections.mine(),
            pieces=load_pieces(),
            scripts=scripts,
            where=connections.shown,
        ).migrate()


def load_pieces() -> dict[str, str]:
    """The named SQL as the driver wants it: `%(name)s` for `:name`."""
    return {name: _in_dialect(piece) for name, piece in pieces.load_pieces("postgres").items()}


def _in_dialect(piece: str) -> str:
    return re.sub(r"(?<![:\w]):([a-z_]\w*)", r"%(\1)s", piece.replace("%", "%%"))
