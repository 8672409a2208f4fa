"""The part of the task store's port that is about workers, their leases, and which objectives they
serve."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from babyagi.tasks import Duty, Objective, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a claim could find in an objective at one moment: whether some task (and how many can be
    started, delayed or not, and how many were added since the list was ordered), and which duties
    beside the one to index, in the order in which they come; and where there is neither, whether it
    can be concluded."""

    objective: Objective
    has_task: bool
    n_startable: int
    n_unordered: int
    n_recorded: int
    duties: tuple[Duty, ...]
    can_conclude: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A worker's lease of `length_s` as it stands in the store. By the store's clock it has run
    out, or not: that clock may have jumped, or nobody could write for a while, so it alone says
    nothing about the worker."""

    worker_id: str
    name: str
    home: str
    length_s: float
    until: datetime
    has_run_out: bool


class WorkerStore(Protocol):
    """Who is alive, what they are here for, and what there is to do."""

    async def open_objectives(self) -> list[int]:
        """The ids of those that have something for workers: active, or ended without a report;
        oldest first. One read."""
        ...

    async def outlook(self, objective_id: int) -> Outlook:
        """Look whether a claim is worth its while. One read; raises `NotFoundError`."""
        ...

    async def register_worker(self, worker: Worker, *, lease_s: float) -> None:
        """Enter the worker with a lease of `lease_s` from now (what the store fills in of a
        `Worker` is ignored). It serves no objective yet."""
        ...

    async def join_objective(
        self, worker_id: str, objective_id: int, *, hindrance: str = ""
    ) -> None:
        """The worker serves the objective from now on, or with a hindrance would if it could; a
        second call changes the hindrance.

        The objective's counted wall time goes on while somebody who is not hindered serves it.

        Raises:
            NotFoundError: no such objective. LeaseLostError: no such worker.
        """
        ...

    async def leave_objective(self, worker_id: str, objective_id: int) -> None:
        """The worker serves it no more; what it holds of it is released as by `remove_worker`.
        Nothing when it does not serve it."""
        ...

    async def renew_lease(self, worker_id: str, *, lease_s: float) -> None:
        """Heartbeat: the lease lives `lease_s` from now, and the active time of every objective
        that it serves is carried on.

        Raises:
            LeaseLostError: the worker was declared dead; all its claims are gone.
        """
        ...

    async def remove_worker(self, worker_id: str) -> None:
        """The worker leaves; whatever it holds is released, without a failure. Unknown ids are
        ignored."""
        ...

    async def leases(self) -> list[Lease]:
        """Of all workers, by id. One read."""
        ...

    async def reap_workers(self, *, silent: Mapping[str, datetime] | None = None) -> int:
        """Release what dead workers hold, and return how many tasks that freed. One read when
        nobody is dead.

        Dead is whose lease is in the past, or further in the future than a lease may be (a clock
        that jumped back). With `silent`, by worker id the end of its lease, only who stands there,
        and whose lease still ends then: who has renewed it since is alive. running → queued at its
        old rank and the same `try_no`, with `n_lost` + 1: after a wait that grows with it, and dead
        at `rules.MAX_LOST`. No failure is counted, and any step of the task that is recorded sets
        `n_lost` to 0: whoever gets further each time is not what kills the workers. recorded stays
        recorded and becomes claimable; a duty becomes claimable.
        """
        ...

    async def reap_gone(self, worker_ids: Collection[str]) -> int:
        """As `reap_workers`, for workers whose processes are known to have ended, whatever their
        leases say. Unknown ids are ignored."""
        ...

    async def workers(self) -> list[Worker]:
        """All that are registered, the dead who were not reaped yet too, by id."""
        ...
