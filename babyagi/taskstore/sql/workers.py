"""The task store on SQL: workers, their leases, and which objectives they serve.

A verb over several objectives runs while nobody else writes: who is alive is decided in one place
at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from babyagi import events
from babyagi.errors import LeaseLostError
from babyagi.tasks import Joined, Worker
from babyagi.taskstore import lifecycle, limits
from babyagi.taskstore.port import Lease
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.access import SqlAccess
from babyagi.taskstore.sql.database import Row, Transaction
from babyagi.taskstore.sql.rows import from_time, joined_from_row, lease_from_row, worker_from_row
from babyagi.taskstore.sql.tasks import put_back_lost, release


class Workers(SqlAccess):
    """Register, join, leave, renew, reap."""

    async def register_worker(self, worker: Worker, *, lease_s: float) -> None:
        def work(tx: Transaction) -> None:
            values = {
                "name": worker.name,
                "host": worker.host,
                "pid": worker.pid,
                "home": worker.home,
            }
            tx.run("put_worker", worker_id=worker.id, **values, lease_us=limits.to_us(lease_s))

        await self._write_all(work)

    async def join_objective(
        self, worker_id: str, objective_id: int, *, blocked_reason: str = ""
    ) -> None:
        def work(tx: Transaction) -> None:
            row, worker = (
                transitions.objective_row(tx, objective_id),
                tx.one("worker", worker_id=worker_id),
            )
            if worker is None:
                raise LeaseLostError(f"worker {worker_id} was declared dead")
            known, reason = (
                tx.one("joined", worker_id=worker_id, objective_id=objective_id),
                lifecycle.storable_blocked_reason(blocked_reason),
            )
            if known is not None and known["hindrance"] == reason:
                return
            transitions.carry_time(tx, row)
            tx.run("put_joined", worker_id=worker_id, objective_id=objective_id, hindrance=reason)
            kind, data = lifecycle.joined_event(worker_id, worker["name"], reason)
            transitions.append_event(tx, objective_id, kind, **data)

        await self._write(work, objective_id)

    async def leave_objective(self, worker_id: str, objective_id: int) -> None:
        def work(tx: Transaction) -> None:
            worker = tx.one("worker", worker_id=worker_id)
            if worker is not None and tx.has(
                "joined", worker_id=worker_id, objective_id=objective_id
            ):
                self._leave(tx, worker, objective_id, events.WORKER_LEFT)

        await self._write(work, objective_id)

    async def renew_lease(self, worker_id: str, *, lease_s: float) -> None:
        def work(tx: Transaction) -> None:
            lease_us = limits.to_us(lease_s)
            if not tx.count_changed("renew_worker", worker_id=worker_id, lease_us=lease_us):
                raise LeaseLostError(f"worker {worker_id} was declared dead")
            for joined in tx.all("joined_by", worker_id=worker_id):
                transitions.carry_time(tx, transitions.objective_row(tx, joined["objective_id"]))

        await self._write_all(work, is_lasting=False)

    async def remove_worker(self, worker_id: str) -> None:
        def work(tx: Transaction) -> None:
            worker = tx.one("worker", worker_id=worker_id)
            if worker is not None:
                self._forget(tx, worker, events.WORKER_LEFT)

        await self._write_all(work)

    async def leases(self) -> list[Lease]:
        return await self._read(
            lambda tx: [lease_from_row(row, now_us=tx.now_us) for row in tx.all("workers")]
        )

    async def reap_workers(self, *, silent: Mapping[str, datetime] | None = None) -> int:
        def find(tx: Transaction) -> Sequence[Row]:
            found = tx.all("dead_workers")
            if silent is None:
                return found
            until_us = {worker_id: from_time(until) for worker_id, until in silent.items()}
            return [
                worker for worker in found if until_us.get(worker["id"]) == worker["lease_until_us"]
            ]

        def work(tx: Transaction) -> int:
            return sum(self._forget(tx, worker, events.WORKER_LOST) for worker in find(tx))

        return await self._write_all(work) if await self._read(find) else 0

    async def reap_gone(self, worker_ids: Collection[str]) -> int:
        def work(tx: Transaction) -> int:
            return sum(
                self._forget(tx, worker, events.WORKER_LOST)
                for worker in tx.all("workers")
                if worker["id"] in worker_ids
            )

        return await self._write_all(work) if worker_ids else 0

    async def workers(self) -> list[Worker]:
        def work(tx: Transaction) -> list[Worker]:
            return [
                worker_from_row(row, now_us=tx.now_us, joined=_joined(tx, row["id"]))
                for row in tx.all("workers")
            ]

        return await self._read(work)

    def _forget(self, tx: Transaction, worker: Row, kind: str) -> int:
        """Free what the worker holds, and forget it; returns how many tasks that freed."""
        joined = [row["objective_id"] for row in tx.all("joined_by", worker_id=worker["id"])]
        n_freed = sum(self._leave(tx, worker, objective_id, kind) for objective_id in joined)
        tx.run("delete_worker", worker_id=worker["id"])
        return n_freed

    def _leave(self, tx: Transaction, worker: Row, objective_id: int, kind: str) -> int:
        """Free what the worker holds of the objective; returns how many tasks that was."""
        row = transitions.objective_row(tx, objective_id)
        held = tx.all("tasks_held_by", worker_id=worker["id"], objective_id=objective_id)
        for held_task in held:
            task = transitions.read_task(tx, objective_id, held_task["id"])
            if kind == events.WORKER_LOST:
                put_back_lost(tx, task)
            else:
                release(tx, task, reason="worker left")
        for duty in tx.all("duties_held_by", worker_id=worker["id"], objective_id=objective_id):
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
        transitions.carry_time(tx, row)
        tx.run("delete_joined", worker_id=worker["id"], objective_id=objective_id)
        transitions.append_event(
            tx, objective_id, kind, worker_id=worker["id"], name=worker["name"]
        )
        return len(held)


def _joined(tx: Transaction, worker_id: str) -> list[Joined]:
    found = []
    for row in tx.all("joined_by", worker_id=worker_id):
        at = {"worker_id": worker_id, "objective_id": row["objective_id"]}
        task_ids = [held["id"] for held in tx.all("tasks_held_by", **at)]
        found.append(
            joined_from_row(
                row,
                task_ids=task_ids,
                duties=[held["duty"] for held in tx.all("duties_held_by", **at)],
            )
        )
    return found
