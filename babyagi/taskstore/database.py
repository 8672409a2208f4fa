"""What the verbs of the SQL store ask of a driver: a transaction of named pieces of SQL, on SQLite
or on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Row(Protocol):
    """A row, by the names of its columns."""

    def __getitem__(self, column: str, /) -> Any: ...

    def keys(self) -> Any: ...


class Cursor(Protocol):
    """What both drivers' cursors have in common."""

    @property
    def rowcount(self) -> int: ...

    def executemany(self, sql: Any, rows: Any, /) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def close(self) -> None: ...


class Connection(Protocol):
    """What both drivers' connections have in common."""

    def execute(self, sql: Any, values: Any, /) -> Cursor: ...

    def cursor(self) -> Cursor: ...


class Transaction:
    """A transaction that is under way: named pieces of SQL, and one instant that all of it happens
    at (`:now_us` in every piece)."""

    def __init__(self, connection: Connection, *, pieces: Mapping[str, str], now_us: int) -> None:
        self._connection = connection
        self._pieces = pieces
        self.now_us = now_us

    def run(self, piece: str, **values: Any) -> int:
        """Returns how many rows were changed."""
        return self._execute(piece, values).rowcount

    def run_many(self, piece: str, rows: Iterable[Mapping[str, Any]]) -> None:
        self._connection.cursor().executemany(
            self._pieces[piece], [{**row, "now_us": self.now_us} for row in rows]
        )

    def one(self, piece: str, **values: Any) -> Row | None:
        cursor = self._execute(piece, values)
        row: Row | None = cursor.fetchone()
        cursor.close()
        return row

    def all(self, piece: str, **values: Any) -> Sequence[Row]:
        return self._execute(piece, values).fetchall()

    def each(self, piece: str, **values: Any) -> Iterator[Row]:
        """The rows one by one, for more than memory should hold."""
        cursor = self._execute(piece, values)
        while (row := cursor.fetchone()) is not None:
            yield row

    def has(self, piece: str, **values: Any) -> bool:
        return self.one(piece, **values) is not None

    def _execute(self, piece: str, values: dict[str, Any]) -> Cursor:
        return self._connection.execute(self._pieces[piece], {**values, "now_us": self.now_us})


class Database(Protocol):
    """An open database. Every method blocks, and belongs into a thread of the store's offload.

    All but `close` raise `StoreUnavailableError`: nothing changed, try again later;
    `StoreUnusableError`: a person must act.
    """

    where: str
    """The file or the URL, as it may be shown."""

    known_version: int
    """The version of the schema that this program is made for."""

    is_told: bool
    """Whether `data_version` answers at once, because a thread is told of commits; it must look for
    them otherwise."""

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        """Run the work in one transaction; whatever it raises, nothing is changed. It may be run
        again when the database asks for it.

        Args:
            objective_id: nobody else writes to this objective meanwhile; None: nobody else writes
                at all.
            is_lasting: False: it need not be on the disk before the next write that is lasting is.
                No kill can undo it; a power cut may, with all that was written behind it. A driver
                may let it last all the same.
        """
        ...

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run the work on one consistent state."""
        ...

    def read_as_it_lies(self, work: Callable[[Transaction], T]) -> T:
        """As `read`, but what is no valid text any more is handed out too, so that one damaged row
        does not hide the others."""
        ...

    def find_damage(self) -> list[str]:
        """What the engine itself finds wrong with its pages and indexes, at most 20 faults."""
        ...

    def watch(self, on_sign: Callable[[], None]) -> None:
        """From now on until `close`, call it in a thread of our own when somebody may have
        committed, ourselves too. Called once."""
        ...

    def data_version(self) -> int:
        """A number that changes when others have committed since the last call."""
        ...

    def close(self) -> None:
        """A second call does nothing."""
        ...
