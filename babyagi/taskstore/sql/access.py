"""How the SQL store reads and writes, one transaction for each method, in a thread where the driver
blocks; and how it waits for commits of others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from babyagi.errors import StoreUnavailableError
from babyagi.offload import Offload, run_inline
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.database import Database, Row, Transaction

T = TypeVar("T")

# writes in a row that must succeed before the next failure is reported as a new trouble: a full
# disk still takes a small write now and then
CALM_WRITES = 50
# 200 tasks are read in 2 ms, which the event loop may wait; a thread costs half of that on a busy
# processor
FEW_ROWS = 200


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
            if not found:  # otherwise the row that was found proves that the objective exists
                transitions.objective_row(tx, objective_id)
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


# --------------------------------------------------------------------------------------------------
# The task store on SQL: waiting for commits, of this store object and of others.
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
