"""How nouns of the task store come to be and change, as pure functions that all implementations use
(see `rules`)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from babyagi import log
from babyagi.errors import LeaseLostError, NotFoundError
from babyagi.tasks import Fence, Lack, Reservation, Result, Step, StepState, Task, Usage
from babyagi.taskstore.rules import MAX_DETAIL_CHARS, charge_of, countable_usage, storable

INPUTS = "inputs"  # the kind of a step that keeps what a try was given, or chose: no call
ONCE = "once"  # the kind of a step that is a tool call which must not be repeated


def new_result(task: Task, *, text: str, origins: Sequence[str], lack: str, at: datetime) -> Result:
    return Result(
        task_id=task.id,
        objective_id=task.objective_id,
        task_name=task.name,
        text=storable(text),
        origins=tuple(storable(origin) for origin in origins),
        lack=storable(lack, max_chars=MAX_DETAIL_CHARS),
        is_planned=False,
        created_at=at,
    )


def new_step(fence: Fence, *, key: str, at: datetime) -> Step:
    """A step nobody has intended yet; of one that is recorded without an intention, the kind is not
    known any more."""
    return Step(
        objective_id=fence.objective_id,
        owner=fence.owner,
        key=key,
        kind="",
        request_hash="",
        state=StepState.INTENDED,
        claim_no=fence.claim_no,
        created_at=at,
    )


def open_step(fence: Fence, *, key: str, kind: str, request: str, at: datetime) -> Step:
    """A step that a person may have to read; the same request has the same hash in every try."""
    request = storable(request)
    request_hash = hashlib.sha256(request.encode()).hexdigest()[:32]
    return replace(
        new_step(fence, key=key, at=at), kind=kind, request_hash=request_hash, request=request
    )


def is_open(step: Step) -> bool:
    """Whether a person must say something."""
    return step.state in (StepState.ASKED, StepState.UNKNOWN)


def not_asked(step_id: int) -> NotFoundError:
    return NotFoundError(
        f"nothing waits for a person under number {step_id}",
        fix="babyagi inbox shows what does",
        guide="inbox",
    )


def parked_data(step: Step) -> dict[str, Any]:
    return {"key": step.key, "kind": step.kind, "state": step.state.value}


def done_step(step: Step, *, output: str, model: str, origins: Sequence[str], at: datetime) -> Step:
    """The step with its outcome; the first one stands."""
    if step.state is StepState.DONE:
        return step
    return replace(
        step,
        state=StepState.DONE,
        output=storable(output),
        model=storable(model) or step.model,
        origins=tuple(storable(origin) for origin in origins),
        done_at=at,
    )


def charge_unconfirmed(step: Step) -> tuple[Step, Usage]:
    """The step when its claim ends with the call in flight, and what that costs: all that was
    reserved, until the answer comes."""
    charge = charge_of(step.reservation)
    unconfirmed = (*step.unconfirmed, (step.claim_no, charge))
    return replace(
        step, reservation=Reservation(), usage=step.usage + charge, unconfirmed=unconfirmed
    ), charge


def reserved_for(step: Step, *, claim_no: int) -> Reservation:
    """What was reserved for the step's call of this claim, also where it has been charged since."""
    charged = sum((charge for no, charge in step.unconfirmed if no == claim_no), Usage())
    if charged.calls or step.claim_no != claim_no:
        return Reservation(calls=charged.calls, tokens=charged.tokens, cost_usd=charged.cost_usd)
    return step.reservation


def count_usage(step: Step, usage: Usage, *, claim_no: int) -> tuple[Step, Usage]:
    """The step with the usage of a call of this claim, and what is to be counted: less than nothing
    where more was charged already."""
    charged = sum((charge for no, charge in step.unconfirmed if no == claim_no), Usage())
    counted = countable_usage(usage) - charged
    unconfirmed = tuple((no, charge) for no, charge in step.unconfirmed if no != claim_no)
    return replace(step, usage=step.usage + counted, unconfirmed=unconfirmed), counted


def is_repeated(step: Step, *, claim_no: int, is_held: bool) -> bool:
    """Whether this claim has recorded the step already: its commit seemed to fail, and it comes
    again. The money was spent once."""
    return step.state is StepState.DONE and step.claim_no == claim_no and not is_held


def is_forgettable(step: Step, *, claim_no: int) -> bool:
    """Whether nothing is left of a step whose call gave no outcome: no answer, and no call of
    another claim that may yet give one."""
    return step.state is StepState.INTENDED and step.claim_no == claim_no and not step.unconfirmed


def failed(task: Task, *, error: str) -> Task:
    """After a failed try: the next one is journaled anew."""
    error = storable(error, max_chars=MAX_DETAIL_CHARS)
    return replace(task, failures=task.failures + 1, n_lost=0, error=error, try_no=task.try_no + 1)


def lacked(task: Task, *, lack: Lack) -> Task:
    """After a try that lacked something."""
    lack = replace(lack, what=storable(lack.what, max_chars=MAX_DETAIL_CHARS))
    return replace(task, lack=lack, n_lacks=task.n_lacks + 1, n_lost=0)


def step_data(step: Step, usage: Usage) -> dict[str, Any]:
    """What an event says about a step, and the usage that this event counted."""
    return {
        "owner": step.owner,
        "key": step.key,
        "kind": step.kind,
        "model": step.model,
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost_usd": usage.cost_usd,
    }


def joined_event(worker_id: str, name: str, hindrance: str) -> tuple[str, dict[str, Any]]:
    """The event, and its data, of a worker that serves an objective, or would if it could."""
    data = {"worker_id": worker_id, "name": name}
    return (
        (log.WORKER_HINDERED, {**data, "hindrance": hindrance})
        if hindrance
        else (log.WORKER_JOINED, data)
    )


def task_of(owner: str) -> int | None:
    """The task that owns the steps, None when a duty does."""
    return int(owner[5:]) if owner.startswith("task:") else None


def lost(fence: Fence) -> LeaseLostError:
    return LeaseLostError(
        f"{fence.worker_id} no longer holds claim {fence.claim_no} of {fence.owner}, "
        f"objective {fence.objective_id}"
    )
