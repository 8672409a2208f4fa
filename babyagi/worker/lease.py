"""This process as one of the workers of a store: its identity, its lease, the objectives that it
serves, and how it recognizes dead workers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from babyagi.errors import BabyagiError, LeaseLostError, NotFoundError, StoreUnavailableError
from babyagi.runtime.offload import now_s
from babyagi.tasks import Worker
from babyagi.taskstore.sql.store import TaskStore

logger = logging.getLogger(__name__)

# The pause between two checks of all leases, each of which is one read. It is short, so that a dead
# worker's claims are released within a second after its lease has ended.
CHECK_PAUSE_S = 0.5
RENEWALS_PER_LEASE = 3
# So long a living worker needs at most to renew a lease that has run out, once the store answers.
COMING_BACK_S = 10.0

KnowsDead = Callable[[str], bool]
"""A function that returns whether the worker with this name, in this process's home folder, is
certainly dead. A store without file locks shows dead workers by their leases alone."""


async def reap_namesakes(
    store: TaskStore, workers: Iterable[Worker], *, name: str, home: str
) -> None:
    """Remove earlier workers with this name in this home folder, and release their claims. They are
    certainly dead, because this process holds the lock on the name."""
    mine = [worker.id for worker in workers if (worker.name, worker.home) == (name, home)]
    if mine:
        await store.reap_workers(silent={}, gone=mine)


class WorkerLease:
    """The lease of this process, one for all the objectives that it serves.

    When the lease is lost, `identity` gets a new id, because the store accepts nothing more under
    the old one.
    """

    def __init__(
        self,
        store: TaskStore,
        identity: Worker,
        *,
        lease_s: float,
        sleep: Callable[[float], Awaitable[None]],
        new_id: Callable[[], str],
        knows_dead: KnowsDead = lambda _: False,
    ) -> None:
        self.identity = identity
        self._store = store
        self._lease_s = lease_s
        self._sleep = sleep
        self._new_id = new_id
        self._knows_dead = knows_dead
        self._pause_s = min(CHECK_PAUSE_S, lease_s / RENEWALS_PER_LEASE)
        self._seen_by_id: dict[str, _Seen] = {}  # the leases of other workers
        self._blocked_reason_by_objective: dict[int, str] = {}
        self._is_registered = False
        self._is_in_doubt = False

    async def begin(self) -> None:
        """Register this worker. After a lost lease, also rejoin the objectives that it served."""
        await self._store.register_worker(self.identity, lease_s=self._lease_s)
        for objective_id, blocked_reason in list(self._blocked_reason_by_objective.items()):
            try:
                await self.serve(objective_id, blocked_reason=blocked_reason)
            except NotFoundError:
                self._blocked_reason_by_objective.pop(objective_id, None)
        self._is_registered = True

    async def serve(self, objective_id: int, *, blocked_reason: str = "") -> None:
        """Join the objective. With a `blocked_reason`, this worker cannot claim anything there. If
        the lease was lost, this worker joins the objective when it registers again.

        Raises:
            NotFoundError: there is no such objective.
            StoreUnavailableError: try again later.
        """
        self._blocked_reason_by_objective[objective_id] = blocked_reason
        try:
            await self._store.join_objective(
                self.identity.id, objective_id, blocked_reason=blocked_reason
            )
        except LeaseLostError:
            self.doubt()  # leads to a new registration, which joins this objective

    async def leave(self, objective_id: int) -> None:
        """Leave the objective, if this worker serves it, and release its claims there."""
        if self._blocked_reason_by_objective.pop(objective_id, None) is None:
            return
        try:
            await self._store.remove_worker(self.identity.id, objective_id=objective_id)
        except StoreUnavailableError as error:
            what = "this worker could not leave objective %d; it leaves it when it ends: %s"
            logger.warning(what, objective_id, error.what)

    def doubt(self) -> None:
        """Renew the lease at the next check, to find out whether it is lost. Called when another
        worker holds a claim of this worker, or when the lease has run out."""
        self._is_in_doubt = True

    async def keep(self, *, on_lost: Callable[[], None], on_freed: Callable[[], None]) -> None:
        """Until cancelled, renew the lease and release the claims of dead workers. The renewal
        comes first, so that this worker does not declare itself dead.

        While the store was unavailable or this process was frozen, other workers may have been
        unable to renew their leases. After that, no worker is declared dead for the length of a
        lease, and for `COMING_BACK_S` at least.

        Args:
            on_lost: called when this worker was declared dead, to drop all running work.
            on_freed: called when tasks of dead workers have become claimable.

        Raises:
            BabyagiError: the store cannot be used any more.
        """
        # half a check early, so that no rounding makes it a check late
        renewal_s = self._lease_s / RENEWALS_PER_LEASE - self._pause_s / 2
        renewed_s = in_touch_s = patient_until_s = now_s()
        while True:
            await self._sleep(self._pause_s)
            is_due, was_in_doubt = now_s() - renewed_s >= renewal_s, self._is_in_doubt
            try:
                if is_due or was_in_doubt or not self._is_registered:
                    await self._renew(on_lost)
                    renewed_s = now_s()
                if now_s() - in_touch_s > self._lease_s / 2:
                    patient_until_s = now_s() + max(self._lease_s, COMING_BACK_S)
                    self._seen_by_id = {}  # which proves nothing any more
                if await self._reap(may_judge=now_s() >= patient_until_s):
                    on_freed()
                in_touch_s = now_s()
            except StoreUnavailableError as error:
                if not was_in_doubt:
                    what = "the lease cannot be renewed now, and is tried again at each check: %s"
                    logger.warning(what, error.what)
                self.doubt()

    async def _renew(self, on_lost: Callable[[], None]) -> None:
        self._is_in_doubt = False
        try:
            if self._is_registered:
                await self._store.renew_lease(self.identity.id, lease_s=self._lease_s)
        except LeaseLostError:
            logger.warning(
                "other workers declared this one dead, because its lease was not renewed in time; "
                "it drops its work and registers again"
            )
            self._is_registered = False
            on_lost()
        if not self._is_registered:
            self.identity = replace(self.identity, id=self._new_id())
            await self.begin()

    async def _reap(self, *, may_judge: bool) -> int:
        """Release the claims of dead workers, and return how many tasks were released.

        Args:
            may_judge: whether workers that do not renew their leases may be declared dead.
        """
        workers = await self._store.workers()
        mine = next((worker for worker in workers if worker.id == self.identity.id), None)
        # this worker was declared dead, a clock jumped, or the machine was suspended
        if mine is None or mine.has_run_out:
            self.doubt()
        others = [worker for worker in workers if worker is not mine]
        gone = [worker.id for worker in others if self._is_gone(worker)]
        living = [worker for worker in others if worker.id not in gone]
        seen = {one.id: _see(self._seen_by_id.get(one.id), one, self._pause_s) for one in living}
        self._seen_by_id = seen
        dead = [one for one in living if may_judge and seen[one.id].is_dead(one)]
        silent = {one.id: one.lease_until for one in dead}
        return await self._store.reap_workers(silent=silent, gone=gone) if gone or silent else 0

    def _is_gone(self, worker: Worker) -> bool:
        own = self.identity
        is_near = worker.home == own.home and worker.name != own.name
        return is_near and self._knows_dead(worker.name)

    async def end(self) -> None:
        """Remove this worker from the store, which releases its claims at once."""
        try:
            await self._store.remove_worker(self.identity.id)
        except BabyagiError as error:
            logger.warning(
                "this worker could not be removed from the store; its claims are released when its "
                "lease runs out: %s",
                error.what,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What this process has observed of a lease.

    Time is measured by counting observations, not by a clock. So no worker is declared dead because
    a clock jumped, a machine was suspended, or the clocks of two machines differ.

    Attributes:
        until: when the lease ends.
        silent_s: how long it was observed without a renewal.
        overdue_s: the part of `silent_s` after the lease had run out.
    """

    until: datetime
    silent_s: float = 0.0
    overdue_s: float = 0.0

    def is_dead(self, worker: Worker) -> bool:
        """Return whether the lease was observed without a renewal for its length, or for
        `COMING_BACK_S` after it had run out."""
        return self.silent_s >= worker.lease_s or self.overdue_s >= COMING_BACK_S


def _see(before: _Seen | None, worker: Worker, pause_s: float) -> _Seen:
    """Return what is observed of a worker's lease `pause_s` seconds after it was seen `before`."""
    if before is None or before.until != worker.lease_until:
        return _Seen(until=worker.lease_until)
    overdue_s = before.overdue_s + pause_s if worker.has_run_out else 0.0
    return _Seen(until=worker.lease_until, silent_s=before.silent_s + pause_s, overdue_s=overdue_s)
