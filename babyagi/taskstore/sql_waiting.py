"""The task store on SQL: waiting for what is committed, here and by others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from babyagi.errors import StoreUnavailableError
from babyagi.taskstore.offload import run_inline
from babyagi.taskstore.sql_room import SqlRoom

POLL_S = 0.05
# between two looks: who waits is awake within 100 ms, and on a busy board no more often
LOOK_PAUSE_S = 0.08


class Waiting(SqlRoom):
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
        """Return when this store has written, or another process has."""
        while not written.is_set():
            try:
                await asyncio.wait_for(written.wait(), POLL_S)
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
        """Return when somebody may have committed since the last look, or when the last look saw
        nothing."""
        # the time of a simulation is its own: no thread may take part
        if self._offload is run_inline:
            await asyncio.sleep(LOOK_PAUSE_S)
            return
        loop = asyncio.get_running_loop()
        if not self._is_watching:
            self._is_watching = True
            self._database.watch(partial(self._say_sign, loop))
        await asyncio.sleep(max(0.0, self._looked_at_s + LOOK_PAUSE_S - loop.time()))
        if not self._is_in_doubt:
            await self._sign.wait()
        self._sign.clear()  # before the look: what is committed during it is a new sign
        self._is_in_doubt, self._looked_at_s = True, loop.time()

    def _say_sign(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the database's thread."""
        if not self._sign.is_set():
            with suppress(RuntimeError):  # the loop has ended, and nobody waits in it
                loop.call_soon_threadsafe(self._sign.set)

    async def _version(self) -> int | None:
        """The data version, None while the store is out of reach."""
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
