"""The task store in memory: the SQL store on a SQLite database that lives and dies with the
process. For rehearsals that nobody keeps, simulations, and an agent in a program.

One connection, no file, no lock and no thread, so that a simulation's time may pass while it waits.
"""

from __future__ import annotations

import asyncio
import sqlite3
import weakref
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from functools import cache
from typing import TypeVar

from babyagi.taskstore.database import Transaction
from babyagi.taskstore.offload import run_inline
from babyagi.taskstore.pieces import load_scripts
from babyagi.taskstore.sql import SqlTaskStore
from babyagi.taskstore.sqlite_engine import SqliteEngine

T = TypeVar("T")


class MemoryDatabase(SqliteEngine):
    """An empty store in memory. No other connection can reach it."""

    def __init__(self, *, clock: Callable[[], datetime]) -> None:
        super().__init__(":memory:", clock=clock)
        connection = self._connection = self._connect()
        # a store that nobody closes takes its connection along: from Python 3.13 on a connection
        # that is only dropped is a warning
        self._close = weakref.finalize(self, connection.close)
        connection.deserialize(_blank_store())

    def write(
        self, work: Callable[[Transaction], T], *, objective_id: int | None, is_lasting: bool = True
    ) -> T:
        with self._errors():
            return self._transact("BEGIN", work)

    def watch(self, on_sign: Callable[[], None]) -> None:
        """There are no others who could commit."""

    def close(self) -> None:
        self._close()
        self._connection = None


@cache
def _blank_store() -> bytes:
    """A store without a row, as SQLite writes it: read in a tenth of the time that the statements
    of the schema take."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for script in load_scripts("schema"):
            connection.executescript(script)
        return connection.serialize()


class MemoryTaskStore(SqlTaskStore):
    """All the state there is, for one process.

    Args:
        clock: now, as an aware UTC datetime; not asked before the first verb.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(MemoryDatabase(clock=clock), offload=run_inline, tell=lambda _: None)

    async def wait_for_change(self, *, timeout_s: float) -> None:
        await asyncio.sleep(timeout_s)  # nobody else can write here

    async def _next_commit(self, written: asyncio.Event, version: int) -> None:
        await written.wait()
