"""The task store on SQL: the journal's steps and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from babyagi import log
from babyagi.tasks import Fence, Reservation, Step, StepState, Usage
from babyagi.taskstore import changes, moves, rules
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.rows import step_from_row, step_to_values, to_time
from babyagi.taskstore.sql_room import SqlRoom


class Steps(SqlRoom):
    """Intend, record, abandon."""

    async def intend_step(
        self,
        fence: Fence,
        *,
        key: str,
        kind: str,
        request_hash: str,
        reservation: Reservation,
        model: str = "",
    ) -> Step:
        def work(tx: Transaction) -> Step:
            moves.check_fence(tx, fence)
            known, is_held = _find(tx, fence, key)
            if known is not None and (
                known.state is StepState.DONE or (is_held and known.claim_no == fence.claim_no)
            ):
                return known
            wanted = rules.countable_reservation(reservation)
            _check_limits(tx, fence, wanted)
            step = replace(
                known or changes.new_step(fence, key=key, at=to_time(tx.now_us)),
                kind=kind,
                request_hash=request_hash,
                model=model,
                reservation=wanted,
                claim_no=fence.claim_no,
            )
            tx.run("put_step", **step_to_values(step, is_held=True))
            data = {"owner": step.owner, "key": key, "kind": kind, "model": model}
            moves.append_event(
                tx, fence.objective_id, log.STEP_INTENDED, changes.task_of(fence.owner), **data
            )
            return step

        return await self._write(work, fence.objective_id)

    async def record_step(
        self,
        fence: Fence,
        *,
        key: str,
        output: str,
        usage: Usage,
        model: str = "",
        origins: Sequence[str] = (),
    ) -> Step:
        def work(tx: Transaction) -> Step:
            moves.objective_row(tx, fence.objective_id)
            known, is_held = _find(tx, fence, key)
            if known is not None and changes.is_repeated(
                known, claim_no=fence.claim_no, is_held=is_held
            ):
                return known
            at = to_time(tx.now_us)
            step = known or changes.new_step(fence, key=key, at=at)
            reserved = changes.reserved_for(step, claim_no=fence.claim_no)
            if is_held and step.claim_no == fence.claim_no:
                step, is_held = replace(step, reservation=Reservation()), False
            step, counted = changes.count_usage(step, usage, claim_no=fence.claim_no)
            step = changes.done_step(step, output=output, model=model, origins=origins, at=at)
            tx.run("put_step", **step_to_values(step, is_held=is_held))
            moves.charge(tx, fence.objective_id, fence.owner, counted)
            moves.note_progress(tx, fence.objective_id, fence.owner)
            data = changes.step_data(replace(step, model=model or step.model), counted)
            task_id = changes.task_of(fence.owner)
            moves.append_event(tx, fence.objective_id, log.STEP_RECORDED, task_id, **data)
            moves.note_overspending(tx, step, usage, reserved)
            if task_id is not None and known is not None and known.state is StepState.UNKNOWN:
                moves.wake(tx, fence.objective_id, task_id)
            return step

        return await self._write(work, fence.objective_id)

    async def abandon_step(self, fence: Fence, *, key: str, usage: Usage) -> None:
        def work(tx: Transaction) -> None:
            moves.objective_row(tx, fence.objective_id)
            known, is_held = _find(tx, fence, key)
            step = known or changes.new_step(fence, key=key, at=to_time(tx.now_us))
            reserved = changes.reserved_for(step, claim_no=fence.claim_no)
            if is_held and step.claim_no == fence.claim_no:
                step, is_held = replace(step, reservation=Reservation()), False
            step, counted = changes.count_usage(step, usage, claim_no=fence.claim_no)
            if not usage.unconfirmed_tokens:
                moves.note_overspending(tx, step, usage, reserved)
            if changes.is_forgettable(step, claim_no=fence.claim_no):
                tx.run("delete_step", objective_id=fence.objective_id, owner=fence.owner, key=key)
            elif known is not None:
                tx.run("put_step", **step_to_values(step, is_held=is_held))
            moves.charge(tx, fence.objective_id, fence.owner, counted)
            data = changes.step_data(step, counted)
            moves.append_event(
                tx, fence.objective_id, log.STEP_ABANDONED, changes.task_of(fence.owner), **data
            )

        await self._write(work, fence.objective_id)

    async def put_step(
        self,
        fence: Fence,
        *,
        key: str,
        kind: str,
        request_hash: str,
        output: str,
        origins: Sequence[str] = (),
    ) -> Step:
        def work(tx: Transaction) -> Step:
            moves.check_fence(tx, fence)
            known, _ = _find(tx, fence, key)
            if known is not None:
                return known
            at = to_time(tx.now_us)
            step = replace(
                changes.new_step(fence, key=key, at=at), kind=kind, request_hash=request_hash
            )
            step = changes.done_step(step, output=output, model="", origins=origins, at=at)
            tx.run("put_step", **step_to_values(step, is_held=False))
            if kind != changes.INPUTS:
                moves.note_progress(tx, fence.objective_id, fence.owner)
            data = changes.step_data(step, Usage())
            moves.append_event(
                tx, fence.objective_id, log.STEP_RECORDED, changes.task_of(fence.owner), **data
            )
            return step

        return await self._write(work, fence.objective_id, is_lasting=False)

    async def steps(self, objective_id: int, *, owner: str) -> list[Step]:
        return await self._look(
            objective_id,
            lambda tx: [
                step_from_row(row)
                for row in tx.all("steps", objective_id=objective_id, owner=owner)
            ],
        )

    async def secret(self, candidate: str) -> str:
        def work(tx: Transaction) -> str:
            tx.run("keep_secret", secret=candidate)
            return str(tx.all("secret")[0]["value"])

        if not self._secret:
            known = await self._read(lambda tx: tx.one("secret"))
            self._secret = known["value"] if known is not None else await self._write_all(work)
        return self._secret


def _find(tx: Transaction, fence: Fence, key: str) -> tuple[Step | None, bool]:
    """The step, and whether it still holds its reservation."""
    row = tx.one("step", objective_id=fence.objective_id, owner=fence.owner, key=key)
    return (None, False) if row is None else (step_from_row(row), bool(row["is_held"]))


def _check_limits(tx: Transaction, fence: Fence, wanted: Reservation) -> None:
    """Raises `ObjectiveStoppedError` or `LimitReachedError` when the call must not be made."""
    objective = moves.read_objective(tx, fence.objective_id)
    rules.require_call_allowed(objective, owner=fence.owner, reservation=wanted)
