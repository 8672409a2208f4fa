"""Workers, their leases, and which objectives they serve, in the task store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from babyagi import log
from babyagi.errors import LeaseLostError
from babyagi.tasks import Joined, TaskStatus, Worker
from babyagi.taskstore import changes, rules
from babyagi.taskstore.memory_book import Book, Lease


class MemoryWorkers(ABC):
    """Register, join, leave, renew, reap."""

    _clock: Callable[[], datetime]
    _leases: dict[str, Lease]
    _max_failures: int

    @abstractmethod
    def _book(self, objective_id: int) -> Book:
        """Raises `NotFoundError`."""

    async def register_worker(self, worker: Worker, *, lease_s: float) -> None:
        now, known = self._clock(), self._leases.get(worker.id)
        entered = replace(worker, lease_until=now + timedelta(microseconds=rules.to_us(lease_s)))
        since, joined = (known.since, known.joined) if known is not None else (now, {})
        self._leases[worker.id] = Lease(worker=entered, lease_s=lease_s, since=since, joined=joined)

    async def join_objective(self, worker_id: str, objective_id: int, *, hindrance: str = "") -> None:
        book, now = self._book(objective_id), self._clock()
        lease = self._living_or_dead(worker_id)
        known, reason = lease.joined.get(objective_id), rules.storable_hindrance(hindrance)
        if known is not None and known.hindrance == reason:
            return
        book.carry_time(now, self._leases.values())
        since = now if known is None else known.since
        lease.joined[objective_id] = Joined(objective_id=objective_id, hindrance=reason, since=since)
        kind, data = changes.joined_event(worker_id, lease.worker.name, reason)
        book.note(now, kind, **data)

    async def leave_objective(self, worker_id: str, objective_id: int) -> None:
        lease = self._leases.get(worker_id)
        if lease is not None and objective_id in lease.joined:
            self._leave(lease, objective_id, log.WORKER_LEFT)

    async def renew_lease(self, worker_id: str, *, lease_s: float) -> None:
        lease, now = self._living_or_dead(worker_id), self._clock()
        lease.lease_s = lease_s
        lease.worker = replace(lease.worker, lease_until=now + timedelta(microseconds=rules.to_us(lease_s)))
        for objective_id in lease.joined:
            self._book(objective_id).carry_time(now, self._leases.values())

    async def remove_worker(self, worker_id: str) -> None:
        if worker_id in self._leases:
            self._forget(self._leases[worker_id], log.WORKER_LEFT)

    async def reap_workers(self, *, name: str | None = None, home: str = "") -> int:
        n_freed, now = 0, self._clock()
        for _, lease in sorted(self._leases.items()):
            if (lease.worker.name, lease.worker.home) == (name, home) or not lease.is_living(now):
                n_freed += self._forget(lease, log.WORKER_LOST)
        return n_freed

    async def workers(self) -> list[Worker]:
        return [self._seen(lease) for _, lease in sorted(self._leases.items())]

    def _living_or_dead(self, worker_id: str) -> Lease:
        if worker_id not in self._leases:
            raise LeaseLostError(f"worker {worker_id} was declared dead")
        return self._leases[worker_id]

    def _seen(self, lease: Lease) -> Worker:
        joined = []
        for objective_id, known in sorted(lease.joined.items()):
            book = self._book(objective_id)
            task_ids = sorted(task_id for task_id, holder in book.holders.items() if holder == lease.worker.id)
            duties = sorted(duty for duty, state in book.duties.items() if state.worker_id == lease.worker.id)
            joined.append(replace(known, task_ids=tuple(task_ids), duties=tuple(duties)))
        left_s = (lease.worker.lease_until - self._clock()).total_seconds()
        return replace(lease.worker, since=lease.since, lease_left_s=left_s, joined=tuple(joined))

    def _forget(self, lease: Lease, kind: str) -> int:
        """Free what the worker holds, and forget it; returns how many tasks that freed."""
        n_freed = sum(self._leave(lease, objective_id, kind) for objective_id in sorted(lease.joined))
        del self._leases[lease.worker.id]
        return n_freed

    def _leave(self, lease: Lease, objective_id: int, kind: str) -> int:
        """Free what the worker holds of the objective; returns how many tasks that was."""
        book, worker, now = self._book(objective_id), lease.worker, self._clock()
        held = sorted(task_id for task_id, holder in book.holders.items() if holder == worker.id)
        for task_id in held:
            task = book.tasks[task_id]
            if kind == log.WORKER_LOST and task.status is TaskStatus.RUNNING and not book.has_got_further(task):
                error = f"worker {worker.name} was lost while it held the task"
                book.give_up_or_retry(now, changes.crashed(task, error=error), max_failures=self._max_failures)
            else:
                book.release(now, task, reason="worker lost" if kind == log.WORKER_LOST else "worker left")
        for _, state in sorted(book.duties.items()):
            if state.worker_id == worker.id:
                book.free_duty(now, state)
        book.carry_time(now, self._leases.values())
        del lease.joined[objective_id]
        book.note(now, kind, worker_id=worker.id, name=worker.name)
        return len(held)
