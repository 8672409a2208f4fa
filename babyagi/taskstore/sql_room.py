"""What the parts of the SQL store share: the database, how work gets to its thread, and the word
that something was written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from babyagi.errors import StoreUnavailableError
from babyagi.taskstore import moves, pieces
from babyagi.taskstore.database import Database, Row, Transaction

T = TypeVar("T")

# in a row, before a trouble is a new one: a full disk still takes a small write now and then
CALM_WRITES = 50


class Offload(Protocol):
    """Runs blocking work in threads: one at a time for SQLite, one per connection for
    PostgreSQL."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class SqlRoom:
    """One open database, used through the threads of the offload."""

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
        self._secret = ""

    async def _write(
        self, work: Callable[[Transaction], T], objective_id: int | None, *, is_lasting: bool = True
    ) -> T:
        """Run the work in one transaction, while nobody else writes to the objective, or to any
        when it is None.

        Args:
            is_lasting: False for what would be had again for nothing after a power cut; it does not
                wait for the disk.
        """
        try:
            done = await self._offload(
                lambda: self._database.write(work, objective_id=objective_id, is_lasting=is_lasting)
            )
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
        """Run work over several objectives in one transaction, while nobody else writes at all."""
        return await self._write(work, None, is_lasting=is_lasting)

    async def _read(self, work: Callable[[Transaction], T]) -> T:
        return await self._offload(lambda: self._database.read(work))

    def _require_known_schema(self, tx: Transaction) -> None:
        """Raises `StoreUnusableError` when the schema was made newer under this process: it must
        end its work, and not take more."""
        row = tx.all("schema_version")[0]
        pieces.require_known(
            int(row["value"]), known=self._database.known_version, where=self._database.where
        )

    async def _look(self, objective_id: int, work: Callable[[Transaction], T]) -> T:
        """Read something of an objective. Raises `NotFoundError`."""

        def look(tx: Transaction) -> T:
            moves.objective_row(tx, objective_id)
            return work(tx)

        return await self._read(look)

    async def _list(
        self, objective_id: int, piece: str, of: Callable[[Row], T], **values: Any
    ) -> list[T]:
        """The rows of a piece of SQL as nouns. Raises `NotFoundError`."""
        return await self._look(
            objective_id,
            lambda tx: [of(row) for row in tx.all(piece, objective_id=objective_id, **values)],
        )

    async def close(self) -> None:
        await self._offload(self._database.close)
