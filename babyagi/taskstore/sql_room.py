"""What the parts of the SQL store share: the database, how work gets to its thread, and the word that something was written."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from babyagi.taskstore import moves
from babyagi.taskstore.sqlite import SqliteDatabase, Transaction

T = TypeVar("T")


class Offload(Protocol):
    """Runs blocking work, one call at a time."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


class SqlRoom:
    """One open database, used through one thread."""

    def __init__(self, database: SqliteDatabase, *, offload: Offload, max_failures: int) -> None:
        self._database = database
        self._offload = offload
        self._max_failures = max_failures
        self._written = asyncio.Event()

    async def _write(self, work: Callable[[Transaction], T]) -> T:
        try:
            return await self._offload(lambda: self._database.write(work))
        finally:
            self._written.set()
            self._written = asyncio.Event()

    async def _read(self, work: Callable[[Transaction], T]) -> T:
        return await self._offload(lambda: self._database.read(work))

    async def _look(self, objective_id: int, work: Callable[[Transaction], T]) -> T:
        """Read something of an objective. Raises `NotFoundError`."""

        def look(tx: Transaction) -> T:
            moves.objective_row(tx, objective_id)
            return work(tx)

        return await self._read(look)

    async def _list(self, objective_id: int, piece: str, of: Callable[[sqlite3.Row], T], **values: Any) -> list[T]:
        """The rows of a piece of SQL as nouns. Raises `NotFoundError`."""
        return await self._look(objective_id, lambda tx: [of(row) for row in tx.all(piece, objective_id=objective_id, **values)])

    async def close(self) -> None:
        await self._offload(self._database.close)
