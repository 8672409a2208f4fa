"""Requests with a key, each of which takes effect once, however often it is sent, to however many
servers, and whatever dies in between.

The key is a row of the transaction that carries the request out, with the ids of what that made.
When the same request comes again, its write is left out and what it made is read. So the answer can
be made again after a crash, until it is kept as well; from then on the kept answer is given.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from babyagi.errors import SettingsError
from babyagi.tasks import Objective, Step, Task
from babyagi.taskstore import lifecycle
from babyagi.taskstore.nouns import KEY_AGE_S, KeyedRequest
from babyagi.taskstore.schedules import Schedule
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.database import (
    ONCE,
    Once,
    Row,
    SqlAccess,
    Transaction,
    reading,
    step_from_row,
    writing,
)


class Keys(SqlAccess):
    """The part of the store for requests with a key."""

    async def carry_out(
        self, request: KeyedRequest, make: Callable[[Any, bool], Awaitable[tuple[str, int | None]]]
    ) -> str:
        """Carry the request out, and return its answer, which is kept. If an answer is kept
        already, return that one, and do nothing. Keys that are older than `KEY_AGE_S` are
        forgotten.

        Args:
            make: carries the request out. Its first write takes effect once for this request: if it
                took effect before, it changes nothing, and returns what it made. `make` is called
                with what that write made, as it is now, or None; and with whether the request was
                carried out before, by a process that ended before the answer was kept. It returns
                the answer as JSON, and the objective that the answer is about: when that is
                deleted, the answer is deleted too.

        Raises:
            SettingsError: another request has the key.
            NotFoundError: what the request made was deleted.
        """

        answer, made, is_repeated = await self._earlier(request)
        if answer is not None:
            return answer
        token = ONCE.set(_once(request))
        try:
            answer, objective_id = await make(made, is_repeated)
        finally:
            ONCE.reset(token)
        return await self._keep_answer(request, answer, objective_id=objective_id)

    @reading
    def _earlier(self, tx: Transaction, request: KeyedRequest) -> tuple[str | None, Any, bool]:
        """Return the kept answer, or what the request made, and whether it was carried out."""
        row = _row_of(tx, request)
        if row is None:
            return None, None, False
        if row["answer"] is not None:
            return row["answer"], None, True
        return None, _read_made(tx, json.loads(row["made"])), True

    @writing(locks_all=True)
    def _keep_answer(
        self, tx: Transaction, request: KeyedRequest, answer: str, *, objective_id: int | None
    ) -> str:
        """Keep the answer, unless the request has one, and return the one that is kept."""
        tx.run("forget_keys", age_us=int(KEY_AGE_S * 1e6))
        tx.run("begin_keyed", key=request.key, request=request.content)
        tx.run("keep_answer", key=request.key, answer=answer, objective_id=objective_id)
        row = _row_of(tx, request)
        assert row is not None
        return str(row["answer"])


def _once(request: KeyedRequest) -> Once:
    """Return what changes the first write that it is called with: its transaction takes the key as
    well. If the key is taken, nothing is written, and what the earlier request made is returned."""
    left = [request]

    def change(work: Callable[[Transaction], Any]) -> Callable[[Transaction], Any]:
        def once(tx: Transaction) -> Any:
            if not tx.count_changed("begin_keyed", key=request.key, request=request.content):
                row = _row_of(tx, request)
                return _read_made(tx, json.loads(row["made"])) if row else work(tx)
            done = work(tx)
            made = json.dumps(_write_made(done))
            tx.run("keep_made", key=request.key, made=made, objective_id=_objective_of(done))
            return done

        return once if left and left.pop() else work

    return change


def _row_of(tx: Transaction, request: KeyedRequest) -> Row | None:
    row = tx.one("keyed_request", key=request.key)
    if row is not None and row["request"] != request.content:
        what = "this Idempotency-Key was used for a different request"
        raise SettingsError(what, fix="send a new key", guide="serve")
    return row


def _objective_of(made: Any) -> int | None:
    match made:
        case Objective():
            return made.id
        case Task() | Step():
            return made.objective_id
        case (Task() as first, *_):
            return first.objective_id
        case (Objective() as objective, bool()):
            return objective.id
    return None


def _write_made(made: Any) -> Any:
    """Return what a write returned as JSON, with ids in the place of rows."""
    match made:
        case Task():
            return ["Task", made.objective_id, made.id]
        case Objective() | Schedule() | Step():
            return [type(made).__name__, made.id]
        case (Objective() as objective, bool(is_new)):
            return ["Submitted", objective.id, is_new]
        case tuple():
            return ["Plan", *map(_write_made, made)]
    return None


def _read_step(tx: Transaction, step_id: int) -> Step:
    row = tx.one("step_by_id", step_id=step_id)
    if row is None:
        raise lifecycle.not_asked(step_id)
    return step_from_row(row)


_READ: Mapping[str, Callable[..., Any]] = {
    "Objective": transitions.read_objective,
    "Schedule": transitions.read_schedule,
    "Step": _read_step,
    "Task": transitions.read_task,
}


def _read_made(tx: Transaction, made: Any) -> Any:
    """Return what a write returned, with the rows as they are now. Raises `NotFoundError` if it was
    deleted."""
    match made:
        case ["Plan", *tasks]:
            return tuple(_read_made(tx, one) for one in tasks)
        case ["Submitted", id_, is_new]:
            return transitions.read_objective(tx, id_), is_new
        case [kind, *ids]:
            return _READ[kind](tx, *ids)
    return None
