"""Feeding the result store beside the work on an objective; no trouble with it stops the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from babyagi.errors import (
    BabyagiError,
    IndexOwnedElsewhereError,
    LeaseLostError,
    LimitReachedError,
    ObjectiveStoppedError,
    StoreUnavailableError,
)
from babyagi.loop import Loop
from babyagi.presence import Presence
from babyagi.tasks import Duty
from babyagi.taskstore.base import TaskStore

logger = logging.getLogger(__name__)

FEED_PAUSE_S = 0.5  # results that come close together go into the result store as one batch
FEED_RETRY_S = 5.0
OWNER_PAUSE_S = 30.0  # until then, the process that owns the index may have ended


class Feeder:
    """Takes the duty to index as often as it is owed, unless another process owns the index.

    `on_unclear` hears of a claim that the store may hold for us although nobody works under it.
    """

    def __init__(
        self,
        store: TaskStore,
        loop: Loop,
        presence: Presence,
        *,
        objective_id: int,
        sleep: Callable[[float], Awaitable[None]],
        on_unclear: Callable[[], None],
    ) -> None:
        self._store = store
        self._loop = loop
        self._presence = presence
        self._objective_id = objective_id
        self._sleep = sleep
        self._on_unclear = on_unclear
        self._is_owned_elsewhere = False

    async def feed(self) -> None:
        """Until cancelled."""
        while True:
            await self._sleep(await self._feed_once())

    async def finish(self, *, within_s: float) -> None:
        """Feed what is left."""
        try:
            async with asyncio.timeout(within_s):
                while not self._is_owned_elsewhere and await self._index_once():
                    pass
        except IndexOwnedElsewhereError:
            return
        except Exception as error:  # a projection: no reason for a run not to end
            logger.warning("the result store is behind; it catches up at the next run (%s)", type(error).__name__)

    async def _feed_once(self) -> float:
        """Feed a batch, if one is owed, and return the seconds before the next."""
        try:
            await self._index_once()
        except IndexOwnedElsewhereError as error:
            if not self._is_owned_elsewhere:
                logger.info("another process feeds the result store, this one searches the stored vectors: %s", error.what)
            self._is_owned_elsewhere = True
            return OWNER_PAUSE_S
        except (ObjectiveStoppedError, LimitReachedError, LeaseLostError) as error:
            logger.info("the result store is not fed now: %s", error.what)
        except BabyagiError as error:
            logger.warning("the result store is behind, the loop goes on: %s", error.what)
            if isinstance(error, StoreUnavailableError):
                self._on_unclear()
            return FEED_RETRY_S
        except Exception:  # ours: the index is a projection and never stops the loop
            logger.exception("feeding the result store raised what nobody expected")
            return FEED_RETRY_S
        return FEED_PAUSE_S

    async def _index_once(self) -> int:
        if not await self._store.unindexed_results(self._objective_id, limit=1):
            return 0
        claim = await self._store.claim_duty(self._objective_id, self._presence.identity.id, Duty.INDEX)
        if claim is None:
            return 0
        try:
            n_fed = await self._loop.feed_index(claim)
            self._is_owned_elsewhere = False
            return n_fed
        finally:
            try:
                await self._store.release_duty(claim)
            except BabyagiError as error:  # which must not take the place of our being cancelled
                logger.info("the duty to index could not be given back: %s", error.what)
                self._on_unclear()
