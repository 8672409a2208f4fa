"""The task store on SQL: tasks that wait for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from babyagi import log
from babyagi.tasks import Fence, Reservation, Step, StepState, Task, TaskStatus, Usage
from babyagi.taskstore import changes, moves, rules
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.rows import step_from_row, step_to_values, to_time
from babyagi.taskstore.sql_room import SqlRoom


class Parking(SqlRoom):
    """Intend once, park, look into the inbox, answer."""

    async def intend_once(self, fence: Fence, *, key: str, request: str) -> Step:
        def work(tx: Transaction) -> Step:
            moves.fenced_task(tx, fence, TaskStatus.RUNNING)
            known = _find(tx, fence, key)
            if known is not None:
                return (
                    moves.leave_unknown(tx, known) if known.state is StepState.INTENDED else known
                )
            objective = moves.read_objective(tx, fence.objective_id)
            rules.require_call_allowed(objective, owner=fence.owner, reservation=Reservation())
            step = changes.open_step(
                fence, key=key, kind=changes.ONCE, request=request, at=to_time(tx.now_us)
            )
            tx.run("put_step", **step_to_values(step, is_held=True))
            data = {"owner": step.owner, "key": key, "kind": step.kind, "model": ""}
            moves.append_event(
                tx, fence.objective_id, log.STEP_INTENDED, changes.task_of(fence.owner), **data
            )
            return step

        return await self._write(work, fence.objective_id)

    async def park_task(self, fence: Fence, *, key: str, kind: str, request: str) -> Step:
        def work(tx: Transaction) -> Step:
            task = moves.fenced_task(tx, fence, TaskStatus.RUNNING)
            known = _find(tx, fence, key)
            if known is not None and known.state is StepState.DONE:
                return known
            if known is None:
                step = changes.open_step(
                    fence, key=key, kind=kind, request=request, at=to_time(tx.now_us)
                )
                if moves.count_asked(tx, fence.objective_id) >= rules.MAX_OPEN_QUESTIONS:
                    _hold_back(tx, task)
                    return step
                tx.run(
                    "put_step",
                    **step_to_values(replace(step, state=StepState.ASKED), is_held=False),
                )
            moves.note_freed(tx, moves.put_down(tx, task))
            return _find(tx, fence, key) or step

        return await self._write(work, fence.objective_id)

    async def inbox(self, objective_id: int | None = None) -> list[Step]:
        def work(tx: Transaction) -> list[Step]:
            if objective_id is not None:
                moves.objective_row(tx, objective_id)
            return [step_from_row(row) for row in tx.all("inbox", objective_id=objective_id)]

        return await self._read(work)

    async def open_step(self, step_id: int) -> Step:
        return await self._read(lambda tx: _open_step(tx, step_id))

    async def answer_step(
        self, step_id: int, *, output: str, origins: Sequence[str] = ("person",)
    ) -> Step:
        def work(tx: Transaction) -> Step:
            step = changes.done_step(
                _open_step(tx, step_id),
                output=output,
                model="",
                origins=origins,
                at=to_time(tx.now_us),
            )
            tx.run("put_step", **step_to_values(step, is_held=False))
            task_id = changes.task_of(step.owner) or 0
            moves.append_event(
                tx,
                step.objective_id,
                log.STEP_RECORDED,
                task_id,
                **changes.step_data(step, Usage()),
            )
            moves.wake(tx, step.objective_id, task_id)
            return step

        return await self._write_all(work)


def _find(tx: Transaction, fence: Fence, key: str) -> Step | None:
    row = tx.one("step", objective_id=fence.objective_id, owner=fence.owner, key=key)
    return None if row is None else step_from_row(row)


def _hold_back(tx: Transaction, task: Task) -> None:
    """Put down a task that would ask, until one of the open questions is answered."""
    freed = moves.put_down(tx, task)
    tx.run(
        "hold_back",
        objective_id=task.objective_id,
        task_id=task.id,
        until_answered_us=moves.UNTIL_ANSWERED_US,
    )
    reason = f"{rules.MAX_OPEN_QUESTIONS} questions are open; it asks its own when one is answered"
    moves.append_event(
        tx, task.objective_id, log.TASK_RELEASED, task.id, reason=reason, delay_s=0.0
    )
    moves.note_freed(tx, freed)


def _open_step(tx: Transaction, step_id: int) -> Step:
    """The step of this number, if it is open and its task waits."""
    row = tx.one("step_by_id", step_id=step_id)
    step = None if row is None else step_from_row(row)
    task_id = changes.task_of(step.owner) if step is not None and changes.is_open(step) else None
    if (
        step is None
        or task_id is None
        or moves.read_task(tx, step.objective_id, task_id).status is not TaskStatus.WAITING
    ):
        raise changes.not_asked(step_id)
    return step
