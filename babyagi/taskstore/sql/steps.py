"""The steps of the journal in SQL: recording that a call is intended, recording its outcome, and
questions to a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from babyagi import events
from babyagi.tasks import Duty, Fence, Step, StepState, TaskStatus, Usage, digest
from babyagi.taskstore import lifecycle, limits
from babyagi.taskstore.nouns import Intention, Kept, Outcome
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.database import (
    SqlAccess,
    Transaction,
    reading,
    rows_in,
    spec_from_row,
    step_from_row,
    step_to_values,
    to_json,
    to_time,
    writing,
)


class Steps(SqlAccess):
    """The part of the store that records calls as steps (intended, done or abandoned), and for what
    a person must decide: calls that must not be repeated, questions, the inbox and the answers."""

    @writing()
    def intend_step(
        self,
        tx: Transaction,
        fence: Fence,
        *,
        intention: Intention,
        first: Outcome | Kept | None = None,
    ) -> Step:
        """Record that a call is about to be made, with its request, reserve its maximum cost
        against every limit, and return the step.

        A step that is done, or is intended under this same claim, is returned unchanged. The call
        of a step that is intended under an earlier claim may have been paid for, so its reservation
        was counted as usage when that claim ended (`STEP_ABANDONED`); now the call is intended
        again. Calls for anything but a check or the report cannot use what `limits.kept_back` keeps
        for these.

        A tool call that must not be repeated has the kind `lifecycle.ONCE`. If its claim ends
        before `record_step`, it is unknown whether the call was made: the state of the step becomes
        UNKNOWN, and the task waits for a person. If the step is intended already, it is returned as
        UNKNOWN.

        Raises:
            LeaseLostError: the claim is no longer held.
            LimitReachedError: the reservation exceeds a limit.
            ObjectiveStoppedError: the objective is paused, or has ended and the owner is neither
                `report` nor `index`.
        """
        transitions.fenced_owner(tx, fence)
        record_first(tx, fence, first)
        known, is_held = _find(tx, fence, intention.key)
        if known is not None:
            if intention.kind == lifecycle.ONCE and known.state is StepState.INTENDED:
                return transitions.leave_unknown(tx, known)
            is_own = is_held and known.claim_no == fence.claim_no
            if is_own or known.state is not StepState.INTENDED:
                return known
        wanted = limits.countable_reservation(intention.reservation)
        objective = transitions.read_objective(tx, fence.objective_id)
        limits.require_call_allowed(objective, owner=fence.owner, reservation=wanted)
        request = lifecycle.storable(intention.request)
        step = replace(
            known or lifecycle.new_step(fence, key=intention.key, at=to_time(tx.now_us)),
            claim_no=fence.claim_no,
            kind=intention.kind,
            request_hash=intention.request_hash or digest(request),
            request=request,
            model=intention.model,
            reservation=wanted,
        )
        tx.run("put_step", **step_to_values(step, is_held=True))
        data = {"owner": step.owner, "key": step.key, "kind": step.kind, "model": step.model}
        transitions.append_step_event(tx, step, events.STEP_INTENDED, **data)
        return step

    async def record_step(self, fence: Fence, made: Outcome | Kept) -> Step:
        """Record the outcome of an intended step, replace its reservation by the usage, and return
        the step. If an outcome is recorded already, that first one stays. A call that gave none
        (`output` is None) is recorded so as well, with the usage that the provider may bill.

        The usage is counted even if another claim's call gave the outcome, because the money is
        spent; a repetition under the same claim changes nothing. If this claim ended while the call
        was in flight, the usage replaces what was charged at that time. The call succeeds even if
        the claim is no longer held.

        A `Kept` step cost nothing and can be repeated at no cost. It is recorded only while the
        claim is held, unless a step with its key exists, which is returned instead.
        """
        is_lasting = isinstance(made, Outcome)
        return await self._write(
            lambda tx: _record_made(tx, fence, made), fence.objective_id, is_lasting=is_lasting
        )

    @reading
    def steps(
        self,
        tx: Transaction,
        objective_id: int,
        *,
        owner: str | Sequence[str] = (),
        named: Sequence[tuple[str, str]] = (),
        duty: Duty | None = None,
        are_answered: bool = False,
    ) -> list[Step]:
        """Return the steps of one or several owners in the order in which they were created, or
        those with these pairs of owner and key. Costs one read of the database.

        Args:
            owner: a task (`task:7`), or one run of a duty (`plan:2`).
            named: pairs of an owner and a key; those without a step are left out.
            duty: return the steps of all its runs.
            are_answered: return the questions and approvals that a person has answered.
        """
        owners = [owner] if isinstance(owner, str) else list(owner)
        query, values = "steps", {"owners": to_json(owners)}
        if duty is not None:
            query, values = "duty_steps", {"duty": duty.value}
        elif are_answered:
            query, values = "answered_steps", {}
        at = {"objective_id": objective_id}
        found = [tx.one("step", **at, owner=owner, key=key) for owner, key in named]
        if not named:
            found += rows_in(tx, query, objective_id, **values)
        return [step_from_row(row) for row in found if row is not None]

    async def secret(self, candidate: str) -> str:
        """Return the store's secret, from which the unpredictable lines around the passages of
        prompts are derived. The first `candidate` that any worker passes becomes the secret of all
        workers.

        The secret is never shown, exported or sent anywhere.
        """
        if not self._secret:
            row = await self._write(lambda tx: tx.change("keep_secret", secret=candidate), None)
            self._secret = str(row["value"])
        return self._secret

    # -- tasks that wait for a person
    # ----------------------------------------------------------------------------------------------

    @writing()
    def park_task(
        self, tx: Transaction, fence: Fence, *, key: str, kind: str, request: str
    ) -> Step:
        """Store the question `request` to a person, and release the running task, which waits for
        the answer. No failure is counted. Return the step, whose state becomes ASKED, or UNKNOWN if
        it was intended. But if the step is done already, return it, and change nothing.

        If `lifecycle.MAX_OPEN_QUESTIONS` steps of the objective wait for a person already, the
        question is not stored, and the task is queued again. It can be claimed when one of those
        questions is answered.
        """
        task = transitions.fenced_task(tx, fence)
        known, _ = _find(tx, fence, key)
        if known is not None and known.state is StepState.DONE:
            return known
        if known is None:
            step = lifecycle.open_step(
                fence, key=key, kind=kind, request=request, at=to_time(tx.now_us)
            )
            if (
                len(tx.all("inbox", objective_id=fence.objective_id))
                >= lifecycle.MAX_OPEN_QUESTIONS
            ):
                # the task is queued, and can be claimed again when one of them is answered
                reason = (
                    f"{lifecycle.MAX_OPEN_QUESTIONS} questions wait for a person already; "
                    "this task asks its own when one of them is answered"
                )
                transitions.release(tx, task, reason=reason)
                at = {"objective_id": task.objective_id, "task_id": task.id}
                tx.run("hold_back", **at, until_answered_us=transitions.UNTIL_ANSWERED_US)
                return step
            tx.run(
                "put_step",
                **step_to_values(replace(step, state=StepState.ASKED), is_held=False),
            )
        transitions.free_task(tx, task)
        return _find(tx, fence, key)[0] or step

    @reading
    def inbox(
        self, tx: Transaction, objective_id: int | None = None, *, step_id: int | None = None
    ) -> list[Step]:
        """Return the steps that wait for a person's answer, of one objective or of all, oldest
        first; or the one with the id `step_id`, which must be waiting.

        Raises:
            NotFoundError: there is no such objective, or no such step, or it no longer waits.
        """
        if step_id is not None:
            return [_open_step(tx, step_id)]
        if objective_id is not None:
            transitions.objective_row(tx, objective_id)
        return [step_from_row(row) for row in tx.all("inbox", objective_id=objective_id)]

    @writing(locks_all=True)
    def answer_step(self, tx: Transaction, step_id: int, *, output: str) -> Step:
        """Record a person's answer as the outcome of a waiting step, queue its task again at its
        old rank, and return the step. An objective that ended as `waiting` becomes active again and
        needs a new report. If the step asked about a changed tool, the objective's granted tools
        are changed as the person decided. Raises as `inbox` does."""
        step = lifecycle.done_step(
            _open_step(tx, step_id),
            output=output,
            model="",
            origins=("person",),
            at=to_time(tx.now_us),
        )
        tx.run("put_step", **step_to_values(step, is_held=False))
        data = lifecycle.step_data(step, Usage())
        transitions.append_step_event(tx, step, events.STEP_RECORDED, **data)
        row = transitions.objective_row(tx, step.objective_id)
        spec = spec_from_row(row)
        if (changed := lifecycle.decide_change(spec, step)) != spec:
            transitions.set_spec(tx, row, changed)
        transitions.wake(tx, step.objective_id, lifecycle.task_of(step.owner) or 0)
        return step


def record_first(tx: Transaction, fence: Fence, first: Outcome | Kept | None) -> None:
    """Record the outcome `first` of an earlier call, if there is one, at the beginning of a
    transaction that then makes another change under the same claim."""
    if first is not None:
        _record_made(tx, fence, first)


def _record_made(tx: Transaction, fence: Fence, made: Outcome | Kept) -> Step:
    """Record the outcome of a call, or a step that cost nothing."""
    return _record(tx, fence, made) if isinstance(made, Outcome) else _put_found(tx, fence, made)


def _record(tx: Transaction, fence: Fence, outcome: Outcome) -> Step:
    """Record the outcome of a call, or that it gave none: release its reservation (or what was
    charged for it when its claim ended), and count its usage."""
    known, is_held = _find(tx, fence, outcome.key)
    has_output = outcome.output is not None
    if known is None:
        transitions.objective_row(tx, fence.objective_id)
    elif has_output and _is_repeated(known, fence, is_held=is_held):
        return known
    at = to_time(tx.now_us)
    step = known or lifecycle.new_step(fence, key=outcome.key, at=at)
    reserved = limits.reserved_for(step, claim_no=fence.claim_no)
    usage = limits.countable_usage(outcome.usage)
    step, is_held, counted = limits.end_call(step, usage, claim_no=fence.claim_no, is_held=is_held)
    if outcome.output is not None:
        step = lifecycle.done_step(
            step, output=outcome.output, model=outcome.model, origins=outcome.origins, at=at
        )
    # no call of another claim can still record an outcome in it
    is_own = step.claim_no == fence.claim_no and not step.unconfirmed
    if step.state is StepState.INTENDED and is_own:
        tx.run("delete_step", objective_id=step.objective_id, owner=step.owner, key=step.key)
    elif has_output or known is not None:
        tx.run("put_step", **step_to_values(step, is_held=is_held))
    transitions.charge(tx, fence.objective_id, fence.owner, counted, has_progressed=has_output)
    kind = events.STEP_RECORDED if has_output else events.STEP_ABANDONED
    data = lifecycle.step_data(step, counted, model=outcome.model)
    transitions.append_step_event(tx, step, kind, **data)
    if has_output or not usage.unconfirmed_tokens:
        transitions.note_overspending(tx, step, usage, reserved)
    task_id = lifecycle.task_of(fence.owner)
    if has_output and task_id is not None and known and known.state is StepState.UNKNOWN:
        transitions.wake(tx, fence.objective_id, task_id)
    return step


def _is_repeated(known: Step, fence: Fence, *, is_held: bool) -> bool:
    """Return whether the same outcome was recorded before, by a commit that only seemed to fail.
    Its usage must not be counted again."""
    return known.state is StepState.DONE and known.claim_no == fence.claim_no and not is_held


def _put_found(tx: Transaction, fence: Fence, kept: Kept) -> Step:
    """Store a step that cost nothing, unless a step with its key exists. Return the stored step.
    The task's number of lost workers is set back to 0, because a recorded step shows that the task
    does not kill its workers."""
    task = transitions.fenced_owner(tx, fence)
    known, _ = _find(tx, fence, kept.key)
    if known is not None:
        return known
    at = to_time(tx.now_us)
    step = lifecycle.new_step(
        fence,
        key=kept.key,
        at=at,
        kind=kept.kind,
        request_hash=kept.request_hash,
        request=lifecycle.storable(kept.request),
    )
    step = lifecycle.done_step(step, output=kept.output, model="", origins=kept.origins, at=at)
    tx.run("put_step", **step_to_values(step, is_held=False))
    if task is not None and task.n_lost and kept.kind != lifecycle.INPUTS:
        tx.run("note_progress", objective_id=fence.objective_id, task_id=task.id)
    data = lifecycle.step_data(step, Usage())
    transitions.append_step_event(tx, step, events.STEP_RECORDED, **data)
    return step


def _find(tx: Transaction, fence: Fence, key: str) -> tuple[Step | None, bool]:
    """Return the step with this key, or None, and whether tokens and money are still reserved for
    it."""
    row = tx.one("step", objective_id=fence.objective_id, owner=fence.owner, key=key)
    return (None, False) if row is None else (step_from_row(row), bool(row["is_held"]))


def _open_step(tx: Transaction, step_id: int) -> Step:
    """Return the step with this id. Raise `NotFoundError` unless it and its task wait for a
    person."""
    step = read_step(tx, step_id)
    task_id = lifecycle.task_of(step.owner) if lifecycle.is_open(step) else None
    if (
        task_id is None
        or transitions.read_task(tx, step.objective_id, task_id).status is not TaskStatus.WAITING
    ):
        raise lifecycle.not_asked(step_id)
    return step


def read_step(tx: Transaction, step_id: int) -> Step:
    """Return the step with this id. Raises `NotFoundError`."""
    row = tx.one("step_by_id", step_id=step_id)
    if row is None:
        raise lifecycle.not_asked(step_id)
    return step_from_row(row)
