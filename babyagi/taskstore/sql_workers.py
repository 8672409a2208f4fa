"""The task store on SQL: workers, their leases, and which objectives they serve.

A verb over several objectives runs while nobody else writes: who is alive is decided in one place at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from babyagi import log
from babyagi.errors import LeaseLostError
from babyagi.tasks import Duty, Joined, TaskStatus, Worker
from babyagi.taskstore import changes, moves, rules
from babyagi.taskstore.database import Row, Transaction
from babyagi.taskstore.rows import to_time, worker_from_row
from babyagi.taskstore.sql_claims import give_up_or_retry, release
from babyagi.taskstore.sql_room import SqlRoom


class Workers(SqlRoom):
    """Register, join, leave, renew, reap."""

    async def register_worker(self, worker: Worker, *, lease_s: float) -> None:
        def work(tx: Transaction) -> None:
            values = {"name": worker.name, "host": worker.host, "pid": worker.pid, "home": worker.home}
            tx.run("put_worker", worker_id=worker.id, **values, lease_us=rules.to_us(lease_s))

        await self._write_all(work)

    async def join_objective(self, worker_id: str, objective_id: int, *, hindrance: str = "") -> None:
        def work(tx: Transaction) -> None:
            row, worker = moves.objective_row(tx, objective_id), tx.one("worker", worker_id=worker_id)
            if worker is None:
                raise LeaseLostError(f"worker {worker_id} was declared dead")
            known, reason = tx.one("joined", worker_id=worker_id, objective_id=objective_id), rules.storable_hindrance(hindrance)
            if known is not None and known["hindrance"] == reason:
                return
            moves.carry_time(tx, row)
            tx.run("put_joined", worker_id=worker_id, objective_id=objective_id, hindrance=reason)
            kind, data = changes.joined_event(worker_id, worker["name"], reason)
            moves.append_event(tx, objective_id, kind, **data)

        await self._write(work, objective_id)

    async def leave_objective(self, worker_id: str, objective_id: int) -> None:
        def work(tx: Transaction) -> None:
            worker = tx.one("worker", worker_id=worker_id)
            if worker is not None and tx.has("joined", worker_id=worker_id, objective_id=objective_id):
                self._leave(tx, worker, objective_id, log.WORKER_LEFT)

        await self._write(work, objective_id)

    async def renew_lease(self, worker_id: str, *, lease_s: float) -> None:
        def work(tx: Transaction) -> None:
            rows = [moves.objective_row(tx, joined["objective_id"]) for joined in tx.all("joined_by", worker_id=worker_id)]
            if tx.run("renew_worker", worker_id=worker_id, lease_us=rules.to_us(lease_s)) == 0:
                raise LeaseLostError(f"worker {worker_id} was declared dead")
            for row in rows:
                moves.carry_time(tx, row)

        await self._write_all(work, is_lasting=False)

    async def remove_worker(self, worker_id: str) -> None:
        def work(tx: Transaction) -> None:
            worker = tx.one("worker", worker_id=worker_id)
            if worker is not None:
                self._forget(tx, worker, log.WORKER_LEFT)

        await self._write_all(work)

    async def reap_workers(self, *, name: str | None = None, home: str = "") -> int:
        def find(tx: Transaction) -> Sequence[Row]:
            return tx.all("dead_workers", name=name, home=home)

        def work(tx: Transaction) -> int:
            return sum(self._forget(tx, worker, log.WORKER_LOST) for worker in find(tx))

        return await self._write_all(work) if await self._read(find) else 0

    async def workers(self) -> list[Worker]:
        def work(tx: Transaction) -> list[Worker]:
            return [worker_from_row(row, now_us=tx.now_us, joined=_joined(tx, row["id"])) for row in tx.all("workers")]

        return await self._read(work)

    def _forget(self, tx: Transaction, worker: Row, kind: str) -> int:
        """Free what the worker holds, and forget it; returns how many tasks that freed."""
        joined = [row["objective_id"] for row in tx.all("joined_by", worker_id=worker["id"])]
        n_freed = sum(self._leave(tx, worker, objective_id, kind) for objective_id in joined)
        tx.run("delete_worker", worker_id=worker["id"])
        return n_freed

    def _leave(self, tx: Transaction, worker: Row, objective_id: int, kind: str) -> int:
        """Free what the worker holds of the objective; returns how many tasks that was."""
        row = moves.objective_row(tx, objective_id)
        held = tx.all("tasks_held_by", worker_id=worker["id"], objective_id=objective_id)
        for held_task in held:
            task = moves.read_task(tx, objective_id, held_task["id"])
            if kind == log.WORKER_LOST and task.status is TaskStatus.RUNNING and not moves.has_got_further(tx, task):
                error = f"worker {worker['name']} was lost while it held the task"
                give_up_or_retry(tx, changes.crashed(task, error=error), max_failures=self._max_failures)
            else:
                release(tx, task, reason="worker lost" if kind == log.WORKER_LOST else "worker left")
        for duty in tx.all("duties_held_by", worker_id=worker["id"], objective_id=objective_id):
            moves.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
        moves.carry_time(tx, row)
        tx.run("delete_joined", worker_id=worker["id"], objective_id=objective_id)
        moves.append_event(tx, objective_id, kind, worker_id=worker["id"], name=worker["name"])
        return len(held)


def _joined(tx: Transaction, worker_id: str) -> list[Joined]:
    found = []
    for row in tx.all("joined_by", worker_id=worker_id):
        at = {"worker_id": worker_id, "objective_id": row["objective_id"]}
        found.append(
            Joined(
                objective_id=row["objective_id"],
                hindrance=row["hindrance"],
                since=to_time(row["since_us"]),
                task_ids=tuple(held["id"] for held in tx.all("tasks_held_by", **at)),
                duties=tuple(Duty(held["duty"]) for held in tx.all("duties_held_by", **at)),
            )
        )
    return found
