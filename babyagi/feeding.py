"""Feeding the result store beside the work on an objective; no trouble with it stops the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from babyagi.errors import (
    BabyagiError,
    IndexOwnedElsewhereError,
    IndexUnavailableError,
    LeaseLostError,
    LimitReachedError,
    ObjectiveStoppedError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.loop import Loop
from babyagi.presence import Presence
from babyagi.resultstore.availability import Availability
from babyagi.tasks import Duty
from babyagi.taskstore.base import TaskStore

logger = logging.getLogger(__name__)

FEED_PAUSE_S = 0.5  # results that come close together go into the result store as one batch
FEED_RETRY_S = 5.0
NOT_ITS_FAULT = (ObjectiveStoppedError, LimitReachedError, LeaseLostError, StoreUnavailableError)
OWNER_PAUSE_S = 30.0  # until then, the process that owns the index may have ended


class Feeder:
    """Takes the duty to index as often as it is owed, unless another process owns the index.

    Args:
        availability: says what the result store is like.
        on_unclear: hears of a claim that the store may hold for us although nobody works under it.
    """

    def __init__(
        self,
        store: TaskStore,
        loop: Loop,
        presence: Presence,
        *,
        availability: Availability,
        sleep: Callable[[float], Awaitable[None]],
        on_unclear: Callable[[], None],
    ) -> None:
        self._store = store
        self._loop = loop
        self._presence = presence
        self._availability = availability
        self._objective_id = availability.objective_id
        self._sleep = sleep
        self._on_unclear = on_unclear
        self._is_owned_elsewhere = False

    async def begin(self) -> None:
        """Ask the result store, before anything is fed to it, whether it can be used; takes seconds
        at most.

        Raises:
            SettingsError: what it needs is not installed.
        """
        try:
            await self._availability.resume()
            await self._loop.ping_index()
            await self._availability.note_success()
        except IndexOwnedElsewhereError as error:
            logger.info("another process has the result store open: %s", error.what)
        except (IndexUnavailableError, StoreUnusableError) as error:
            await self._availability.note_trouble(error, is_start=True)

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
        except (IndexOwnedElsewhereError, *NOT_ITS_FAULT) as error:
            logger.info("the result store is not fed now: %s", error.what)
        except BabyagiError as error:
            await self._availability.note_trouble(error)
        except TimeoutError:
            await self._availability.note_trouble(
                IndexUnavailableError(f"not all of them got into it within {within_s:g} s")
            )
        except Exception:  # a projection: no reason for a run not to end
            logger.exception("the result store is behind; it catches up at the next run")

    async def _feed_once(self) -> float:
        """Feed a batch, if one is owed, and return the seconds before the next."""
        try:
            await self._look_and_index()
        except IndexOwnedElsewhereError as error:
            if not self._is_owned_elsewhere:
                logger.info(
                    (
                        "another process feeds the result store, this one searches the stored "
                        "vectors: %s"
                    ),
                    error.what,
                )
            self._is_owned_elsewhere = True
            return OWNER_PAUSE_S
        except StoreUnavailableError as error:
            logger.warning("the result store is behind, the loop goes on: %s", error.what)
            self._on_unclear()
            return FEED_RETRY_S
        except NOT_ITS_FAULT as error:
            logger.info("the result store is not fed now: %s", error.what)
        except BabyagiError as error:
            await self._availability.note_trouble(error)
            return FEED_RETRY_S
        except Exception:  # ours: the index is a projection and never stops the loop
            logger.exception("feeding the result store raised what nobody expected")
            return FEED_RETRY_S
        return FEED_PAUSE_S

    async def _look_and_index(self) -> None:
        """Index a batch; what was in trouble is asked first, because nothing may be owed to it."""
        if self._availability.is_troubled:
            await self._loop.ping_index()
        if await self._index_once() is not None:
            await self._availability.note_success()

    async def _index_once(self) -> int | None:
        """How many results went in; None when another worker feeds it."""
        if not await self._store.unindexed_results(self._objective_id, limit=1):
            return 0
        claim = await self._store.claim_duty(
            self._objective_id, self._presence.identity.id, Duty.INDEX
        )
        if claim is None:
            return None
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
