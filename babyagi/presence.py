"""Who this process is among the workers: its identity, its lease, and which objectives it serves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from math import ceil

from babyagi.errors import BabyagiError, LeaseLostError, NotFoundError, StoreUnavailableError
from babyagi.tasks import Worker
from babyagi.taskstore.base import TaskStore

logger = logging.getLogger(__name__)

CHECK_PAUSE_S = 0.5  # what a dead worker held is free within this time of the end of its lease; a check is one read
RENEWALS_PER_LEASE = 3
COMING_BACK_S = 10.0  # what a living worker needs at most to reach a store again that answers


class Presence:
    """One lease for the whole process, whatever objectives it serves.

    `identity` changes when the lease was lost: under the old one nothing is accepted any more.
    """

    def __init__(
        self,
        store: TaskStore,
        identity: Worker,
        *,
        lease_s: float,
        sleep: Callable[[float], Awaitable[None]],
        new_id: Callable[[], str],
    ) -> None:
        self.identity = identity
        self._store = store
        self._lease_s = lease_s
        self._sleep = sleep
        self._new_id = new_id
        self._hindrance_by_objective: dict[int, str] = {}
        self._is_registered = False
        self._is_in_doubt = False

    async def begin(self) -> None:
        """Register, and serve what was served before."""
        await self._store.register_worker(self.identity, lease_s=self._lease_s)
        for objective_id, hindrance in list(self._hindrance_by_objective.items()):
            try:
                await self._store.join_objective(self.identity.id, objective_id, hindrance=hindrance)
            except NotFoundError:
                self._hindrance_by_objective.pop(objective_id, None)
        self._is_registered = True

    async def serve(self, objective_id: int, *, hindrance: str = "") -> None:
        """Raises `NotFoundError`, `StoreUnavailableError`."""
        self._hindrance_by_objective[objective_id] = hindrance
        try:
            await self._store.join_objective(self.identity.id, objective_id, hindrance=hindrance)
        except LeaseLostError:
            self.doubt()  # whoever comes back serves it again

    async def leave(self, objective_id: int) -> None:
        if self._hindrance_by_objective.pop(objective_id, None) is None:
            return
        try:
            await self._store.leave_objective(self.identity.id, objective_id)
        except StoreUnavailableError as error:
            logger.warning("objective %d could not be left, the end of this worker does it: %s", objective_id, error.what)

    def doubt(self) -> None:
        """Somebody else holds what we held: look soon whether our lease still lives."""
        self._is_in_doubt = True

    async def keep(self, *, on_lost: Callable[[], None], on_freed: Callable[[], None]) -> None:
        """Renew the lease, and free what dead workers hold, until cancelled.

        While the store was away nobody could renew: whoever was out of touch itself gives the others time to come back.

        Args:
            on_lost: we were declared dead; whatever is under way is to be dropped. on_freed: there is more to claim.

        Raises:
            BabyagiError: the store cannot be used any more.
        """
        pause_s = min(CHECK_PAUSE_S, self._lease_s / RENEWALS_PER_LEASE)
        checks_per_renewal = ceil(self._lease_s / RENEWALS_PER_LEASE / pause_s)
        n_checks, renewed_s = 0, _now_s()
        in_touch_s = patient_until_s = renewed_s
        while True:
            await self._sleep(pause_s)
            n_checks += 1
            is_due = n_checks >= checks_per_renewal or _now_s() - renewed_s >= self._lease_s / RENEWALS_PER_LEASE
            try:
                if is_due or self._is_in_doubt or not self._is_registered:
                    await self._renew(on_lost)
                    n_checks, renewed_s = 0, _now_s()
                if _now_s() - in_touch_s > self._lease_s / 2:
                    patient_until_s = _now_s() + max(self._lease_s, COMING_BACK_S)
                if _now_s() >= patient_until_s and await self._store.reap_workers():
                    on_freed()
                in_touch_s = _now_s()
            except StoreUnavailableError as error:
                if not self._is_in_doubt:
                    logger.warning("the lease cannot be renewed now, it is tried again at every check: %s", error.what)
                self.doubt()

    async def _renew(self, on_lost: Callable[[], None]) -> None:
        try:
            if self._is_registered:
                await self._store.renew_lease(self.identity.id, lease_s=self._lease_s)
        except LeaseLostError:
            logger.warning("this worker was declared dead; it drops its work and joins anew")
            self._is_registered = False
            on_lost()
        if not self._is_registered:
            self.identity = replace(self.identity, id=self._new_id())
            await self.begin()
        self._is_in_doubt = False

    async def end(self) -> None:
        """Sign off; what is still held is free at once."""
        try:
            await self._store.remove_worker(self.identity.id)
        except BabyagiError as error:
            logger.warning("this worker could not sign off, its lease runs out instead: %s", error.what)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
