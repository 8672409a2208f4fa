"""The task list in SQL: recording the outcomes of claimed tasks and duties (work for the whole
objective, such as planning), releasing claims, and the changes that a person makes.

It also holds the rules for proposals (which are new, which repeat a task, which task waits for
which), for planning from the outcomes of tasks, and for what a check adds or ends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from babyagi import events, names
from babyagi.errors import LeaseLostError, StaleOrderError
from babyagi.marks import find_marks, held_marks
from babyagi.names import name_sense
from babyagi.tasks import (
    Claim,
    DutyClaim,
    Fence,
    Lack,
    Objective,
    ObjectiveStatus,
    Place,
    Proposal,
    Result,
    StopReason,
    Task,
    TaskStatus,
    Unanswered,
)
from babyagi.taskstore import lifecycle
from babyagi.taskstore.port import NOTHING_CHECKED, Checked, Kept, Outcome, Plan, Planned
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.database import (
    SqlAccess,
    Transaction,
    checks_to_json,
    from_time,
    result_from_row,
    result_to_values,
    sealed,
    task_from_row,
    to_json,
    to_time,
)
from babyagi.taskstore.sql.steps import record_first
from babyagi.text import rearm


class Recording(SqlAccess):
    """Record the outcomes of claimed tasks and duties (work for the whole objective, such as
    planning), or release the claims without an outcome."""

    # -- tasks
    # ----------------------------------------------------------------------------------------------

    async def record_result(
        self,
        claim: Claim,
        *,
        text: str,
        origins: Sequence[str],
        lack: str = "",
        plan: Planned | None = None,
        first: Outcome | Kept | None = None,
    ) -> Result:
        def work(tx: Transaction) -> Result:
            try:
                record_first(tx, claim.fence, first)  # this may change the task
                tx.ask("unsettled_steps", objective_id=claim.fence.objective_id)
                ask_lacking(tx, claim.fence.objective_id)
                task = transitions.fenced_task(tx, claim.fence, TaskStatus.RUNNING)
            except LeaseLostError:
                known = _recorded_before(tx, claim)
                if known is None:
                    raise
                return known
            lacking = find_lacking(tx, task.objective_id)
            result = lifecycle.new_result(
                task, text=text, origins=origins, lack=lack, at=to_time(tx.now_us)
            )
            tx.run("insert_result", **result_to_values(result))
            if task.lack is not None:
                task = replace(task, lack=None)
            transitions.free_task(tx, task, to=TaskStatus.RECORDED)
            transitions.append_event(
                tx,
                task.objective_id,
                events.TASK_RECORDED,
                task.id,
                result_chars=len(result.text),
                lack=result.lack,
            )
            wake_lacking(tx, lacking, result)
            if plan is not None:
                apply_plan(tx, task.objective_id, [task], plan)
            return result

        return await self._write(work, claim.fence.objective_id)

    async def record_lack(
        self,
        claim: Claim,
        *,
        lack: Lack,
        plan: Planned | None = None,
        first: Outcome | Kept | None = None,
    ) -> Task:
        def work(tx: Transaction) -> Task:
            record_first(tx, claim.fence, first)
            task = transitions.fenced_task(tx, claim.fence, TaskStatus.RUNNING)
            task = lifecycle.lacked(task, lack=lack)
            status = record_lack(tx, task)
            if plan is not None and status is TaskStatus.RECORDED:
                apply_plan(tx, task.objective_id, [task], plan)
            return transitions.read_task(tx, task.objective_id, task.id)

        return await self._write(work, claim.fence.objective_id)

    async def record_plan(
        self,
        claim: DutyClaim,
        *,
        task_ids: Sequence[int],
        plan: Planned,
        first: Outcome | Kept | None = None,
    ) -> Plan:
        def work(tx: Transaction) -> Plan:
            record_first(tx, claim.fence, first)
            ask_for_plan(tx, claim.fence, task_ids)
            duty, objective_id = transitions.fenced_duty(tx, claim.fence), claim.fence.objective_id
            tasks = transitions.read_tasks(tx, objective_id, task_ids)
            made = apply_plan(
                tx,
                objective_id,
                [task for task in tasks if task.status is TaskStatus.RECORDED],
                plan,
                ends_planning=True,
            )
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            return made

        return await self._write(work, claim.fence.objective_id)

    async def fail_task(
        self, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0
    ) -> Task:
        def work(tx: Transaction) -> Task:
            task = lifecycle.failed(transitions.fenced_task(tx, claim.fence), error=error)
            transitions.count_no_answer(tx, task.objective_id)
            _give_up_or_retry(tx, task, max_failures=max_failures, delay_s=delay_s)
            return transitions.read_task(tx, task.objective_id, task.id)

        return await self._write(work, claim.fence.objective_id)

    async def release_task(self, claim: Claim, *, delay_s: float = 0.0, reason: str = "") -> None:
        await self._write(
            lambda tx: release(
                tx, transitions.fenced_task(tx, claim.fence), reason=reason, delay_s=delay_s
            ),
            claim.fence.objective_id,
        )

    # -- duties
    # ----------------------------------------------------------------------------------------------

    async def reorder(
        self,
        claim: DutyClaim,
        *,
        revision: int,
        task_ids: Sequence[int],
        first: Outcome | Kept | None = None,
    ) -> None:
        def work(tx: Transaction) -> None:
            duty = transitions.fenced_duty(tx, claim.fence)
            objective_id = claim.fence.objective_id
            if transitions.objective_row(tx, objective_id)["order_revision"] != revision:
                raise StaleOrderError(
                    f"the list of objective {objective_id} was re-ordered since revision {revision}"
                )
            record_first(tx, claim.fence, first)
            rows = tx.all("ranks", objective_id=objective_id, task_ids=to_json(list(task_ids)))
            rank_by_id = {row["id"]: row["rank"] for row in rows}
            dealt = lifecycle.deal_ranks(rank_by_id.items(), task_ids)
            moved = {
                task_id: rank for task_id, rank in dealt.items() if rank != rank_by_id[task_id]
            }
            tx.run_many(
                "set_rank",
                [
                    {"objective_id": objective_id, "task_id": task_id, "rank": rank}
                    for task_id, rank in moved.items()
                ],
            )
            tx.run("set_order", objective_id=objective_id, upto=duty["upto"])
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            transitions.append_event(
                tx,
                objective_id,
                events.ORDER_APPLIED,
                revision=revision + 1,
                task_ids=list(dealt),
                n_moved=len(moved),
            )

        await self._write(work, claim.fence.objective_id, is_lasting=isinstance(first, Outcome))

    async def finish_check(
        self,
        claim: DutyClaim,
        *,
        is_met: bool,
        reason: str,
        checked: Checked = NOTHING_CHECKED,
        proposals: Sequence[Proposal] = (),
        fallback: Sequence[Proposal] = (),
    ) -> Objective:
        def work(tx: Transaction) -> Objective:
            duty, objective_id = transitions.fenced_duty(tx, claim.fence), claim.fence.objective_id
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            finish_check(
                tx,
                objective_id,
                is_met=is_met,
                reason=reason,
                checked=checked,
                wanted=(proposals, fallback),
            )
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, claim.fence.objective_id)

    async def record_report(self, claim: DutyClaim, *, markdown: str) -> None:
        def work(tx: Transaction) -> None:
            duty, objective_id = transitions.fenced_duty(tx, claim.fence), claim.fence.objective_id
            tx.run(
                "set_report",
                objective_id=objective_id,
                **sealed("report", {"id": objective_id, "report": lifecycle.storable(markdown)}),
            )
            transitions.free_duty(tx, objective_id, duty=duty["duty"], owner=duty["owner"])
            transitions.append_event(
                tx, objective_id, events.REPORT_WRITTEN, report_chars=len(markdown)
            )

        await self._write(work, claim.fence.objective_id)

    async def release_duty(self, claim: DutyClaim, *, delay_s: float = 0.0) -> None:
        def work(tx: Transaction) -> None:
            duty = transitions.fenced_duty(tx, claim.fence)
            transitions.free_duty(
                tx,
                claim.fence.objective_id,
                duty=duty["duty"],
                owner=duty["owner"],
                delay_s=delay_s,
            )

        await self._write(work, claim.fence.objective_id, is_lasting=False)


def _recorded_before(tx: Transaction, claim: Claim) -> Result | None:
    """Return the task's result if this same claim has recorded it already, else None. A worker
    sends a result twice when the first commit seemed to fail."""
    row = tx.one("task", objective_id=claim.fence.objective_id, task_id=claim.task.id)
    if (
        row is None
        or row["claim_no"] != claim.fence.claim_no
        or row["status"] not in (TaskStatus.RECORDED, TaskStatus.DONE)
    ):
        return None
    found = tx.all(
        "results_of", objective_id=claim.fence.objective_id, task_ids=to_json([claim.task.id])
    )
    return result_from_row(found[0]) if found else None


def release(tx: Transaction, task: Task, *, reason: str, delay_s: float = 0.0) -> None:
    freed = transitions.free_task(tx, task, delay_s=delay_s)
    transitions.append_event(
        tx,
        task.objective_id,
        events.TASK_RELEASED,
        task.id,
        reason=lifecycle.storable(reason),
        delay_s=delay_s,
    )
    transitions.note_freed(tx, task, freed)


def put_back_lost(tx: Transaction, task: Task) -> None:
    """Release the task of a lost worker: queue it again, or make it dead after too many losses. The
    try goes on with its recorded steps, so that no call is paid for twice."""
    n_lost = task.n_lost + 1 if task.status is TaskStatus.RUNNING else 0
    task = replace(task, n_lost=n_lost)
    if n_lost < lifecycle.MAX_LOST:
        release(tx, task, reason="worker lost", delay_s=lifecycle.pause_after_loss(n_lost))
        return
    error = f"{n_lost} workers in a row were lost while they worked on this task"
    status = transitions.free_task(tx, replace(task, error=error), to=TaskStatus.DEAD)
    if status is TaskStatus.DEAD:
        transitions.append_event(tx, task.objective_id, events.TASK_DEAD, task.id, error=error)
    transitions.note_freed(tx, task, status)


def _give_up_or_retry(
    tx: Transaction, task: Task, *, max_failures: int, delay_s: float = 0.0
) -> None:
    """Release a task after a failure that is counted already: queue it again, or make it dead when
    it has failed `max_failures` times."""
    status = lifecycle.status_after_failure(failures=task.failures, max_failures=max_failures)
    status = transitions.free_task(tx, task, to=status, delay_s=delay_s)
    transitions.append_event(
        tx, task.objective_id, events.TASK_FAILED, task.id, error=task.error, failures=task.failures
    )
    if status is TaskStatus.DEAD:
        transitions.append_event(tx, task.objective_id, events.TASK_DEAD, task.id, error=task.error)
    transitions.note_freed(tx, task, status)


# --------------------------------------------------------------------------------------------------
# The task store on SQL: what a person may change in a task list while workers work on it.
# --------------------------------------------------------------------------------------------------


class Steering(SqlAccess):
    """The part of the store for changes by a person: adding, moving, replacing, cancelling and
    retrying tasks."""

    async def add_tasks(
        self,
        objective_id: int,
        proposals: Sequence[Proposal],
        *,
        allow_duplicates: bool = True,
        to: Place = Place.LAST,
    ) -> Plan:
        def work(tx: Transaction) -> Plan:
            row = transitions.objective_row(tx, objective_id)
            reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
            lifecycle.require_reopenable(objective_id, reason)
            plan = enter(tx, objective_id, proposals, allow_duplicates=allow_duplicates).plan
            if plan.added:
                tx.run("count_afresh", objective_id=objective_id)
            if plan.added and reason is not None:
                transitions.reopen(tx, objective_id)
            if to is not Place.LAST and plan.added:
                put_in_place(tx, objective_id, [task.id for task in plan.added], to)
            return replace(
                plan,
                added=tuple(
                    transitions.read_task(tx, objective_id, task.id) for task in plan.added
                ),
            )

        return await self._write(work, objective_id)

    async def move_task(self, objective_id: int, task_id: int, *, to: Place | int) -> Task:
        def work(tx: Transaction) -> Task:
            _changeable(tx, objective_id, task_id)
            if not isinstance(to, Place):
                transitions.read_task(tx, objective_id, to)
            put_in_place(tx, objective_id, [task_id], to)
            return transitions.read_task(tx, objective_id, task_id)

        return await self._write(work, objective_id)

    async def replace_task(self, objective_id: int, task_id: int, *, name: str) -> Task:
        def work(tx: Transaction) -> Task:
            old = _changeable(tx, objective_id, task_id)
            proposal = lifecycle.replacement(old, name)
            new = enter(tx, objective_id, [proposal], allow_duplicates=True).plan.added[0]
            for row in tx.all("dependents", objective_id=objective_id, task_id=old.id):
                after = [new.id if named == old.id else named for named in task_from_row(row).after]
                set_after(tx, objective_id, row["id"], after)
            tx.run("set_rank", objective_id=objective_id, task_id=new.id, rank=old.rank)
            tx.run("set_rank", objective_id=objective_id, task_id=old.id, rank=new.rank)
            tx.run("count_afresh", objective_id=objective_id)
            transitions.cancel_task(tx, objective_id, old.id, replaced_by=new.id)
            transitions.allow_questions(tx, objective_id)
            return transitions.read_task(tx, objective_id, new.id)

        return await self._write(work, objective_id)

    async def cancel_task(self, objective_id: int, task_id: int) -> Task:
        def work(tx: Transaction) -> Task:
            _changeable(tx, objective_id, task_id)
            transitions.cancel_task(tx, objective_id, task_id)
            transitions.allow_questions(tx, objective_id)
            return transitions.read_task(tx, objective_id, task_id)

        return await self._write(work, objective_id)

    async def retry_task(self, objective_id: int, task_id: int) -> Task:
        def work(tx: Transaction) -> Task:
            row = transitions.objective_row(tx, objective_id)
            lifecycle.require_dead(transitions.read_task(tx, objective_id, task_id))
            reason = StopReason(row["stop_reason"]) if row["stop_reason"] else None
            lifecycle.require_reopenable(objective_id, reason)
            tx.run("retry_task", objective_id=objective_id, task_id=task_id)
            tx.run("unsettle_task", objective_id=objective_id, task_id=task_id)
            tx.run("count_afresh", objective_id=objective_id)
            task = transitions.read_task(tx, objective_id, task_id)
            transitions.append_event(
                tx, objective_id, events.TASK_RETRIED, task_id, try_no=task.try_no
            )
            if reason is not None:
                transitions.reopen(tx, objective_id)
            return task

        return await self._write(work, objective_id)


def _changeable(tx: Transaction, objective_id: int, task_id: int) -> Task:
    transitions.objective_row(tx, objective_id)
    task = transitions.read_task(tx, objective_id, task_id)
    lifecycle.require_changeable(task)
    return task


def put_in_place(tx: Transaction, objective_id: int, moved: Sequence[int], to: Place | int) -> None:
    """Move the tasks `moved` within the list of open tasks, by exchanging ranks, to one end or
    before the task `to`."""
    listed = tx.all(
        "tasks_with_status",
        objective_id=objective_id,
        statuses=to_json(lifecycle.CANCELLABLE),
        limit=transitions.ALL_ROWS,
    )
    rank_by_id = {row["id"]: row["rank"] for row in listed}
    dealt = lifecycle.deal_ranks(rank_by_id.items(), lifecycle.put_at(list(rank_by_id), moved, to))
    changed = [(task_id, rank) for task_id, rank in dealt.items() if rank != rank_by_id[task_id]]
    tx.run_many(
        "set_rank",
        [
            {"objective_id": objective_id, "task_id": task_id, "rank": rank}
            for task_id, rank in changed
        ],
    )
    tx.run("bump_order", objective_id=objective_id)
    for task_id in moved:
        transitions.append_event(tx, objective_id, events.TASK_MOVED, task_id, to=to)


# --------------------------------------------------------------------------------------------------
# Adding proposals to the list: which are new, and which repeat a task.
# --------------------------------------------------------------------------------------------------

MAX_NEWS = 50  # newest results that are searched for one that bears on a task that was given up

NOTHING: Mapping[int, Collection[int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """What became of the proposed tasks that `enter` was given.

    Attributes:
        plan: the tasks that were added, and the names that were dropped.
        id_by_place: for each proposal, in their order, the id of the task that it became or that it
            repeats; None for a proposal with a blank name.
    """

    plan: Plan
    id_by_place: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A proposal whose name is cleaned for the store, with the two keys by which repeated names are
    found."""

    proposal: Proposal
    key: str
    sense: str


def enter(
    tx: Transaction,
    objective_id: int,
    proposals: Sequence[Proposal],
    *,
    allow_duplicates: bool = False,
    unhelpful: Mapping[int, Collection[int]] = NOTHING,
) -> Entered:
    """Add the proposed tasks at the end of the task list, in their order. One that repeats a task
    is not added, and an event says so.

    Args:
        unhelpful: by the id of a task that lacks information, the ids of the tasks whose results
            were in its prompt. A proposal made for the lacking task may repeat those tasks, but
            must not wait for the lacking task.
    """
    last_id = transitions.objective_row(tx, objective_id)["last_task_id"]
    batch = _Batch(
        tx=tx,
        objective_id=objective_id,
        last_id=last_id,
        named=[_name(one) for one in proposals],
        unhelpful=unhelpful,
    )
    batch.number(allow_duplicates=allow_duplicates)
    added = batch.insert()
    return Entered(
        plan=Plan(added=added, duplicates=batch.note_duplicates()), id_by_place=tuple(batch.ids)
    )


def enter_first(tx: Transaction, objective_id: int, proposal: Proposal) -> None:
    """Add the first task of a new objective. The counters in the objective's row include this task
    already."""
    named = _name(proposal)
    if named is not None:
        _Batch(tx=tx, objective_id=objective_id, last_id=0, named=[named], new={1: named}).insert()


def set_after(tx: Transaction, objective_id: int, task_id: int, after: Sequence[int]) -> Task:
    """Make the task depend on exactly the tasks `after`, and return it changed."""
    values = {"objective_id": objective_id, "task_id": task_id, "after_ids": to_json(list(after))}
    tx.run("delete_task_after", objective_id=objective_id, task_id=task_id)
    if after:
        tx.run("insert_task_after", **values)
    return task_from_row(tx.all("count_blockers", **values)[0])


def resolve(
    tx: Transaction,
    objective_id: int,
    after: Sequence[int | str],
    entered: Entered,
    proposals: Sequence[Proposal],
) -> list[int]:
    """Return the ids of the tasks that `after` names, for a task that exists already. Names that
    match no task are left out.

    Args:
        after: task ids, or names of tasks or of proposals.
        entered: what became of `proposals`, which `after` may name.
    """
    last_id = transitions.objective_row(tx, objective_id)["last_task_id"] - len(entered.plan.added)
    batch = _Batch(
        tx=tx,
        objective_id=objective_id,
        last_id=last_id,
        named=[_name(one) for one in proposals],
        ids=[*entered.id_by_place],
    )
    found = [batch.meant(one) for one in after]
    return list(dict.fromkeys(task_id for task_id in found if task_id is not None))


def would_close_cycle(tx: Transaction, objective_id: int, *, task_id: int, after_id: int) -> bool:
    """Return whether task `after_id` waits for task `task_id`, directly or through other open
    tasks. Then `task_id` must not wait for `after_id`."""
    seen: set[int] = set()
    waiting = [after_id]
    while waiting:
        current = waiting.pop()
        if current == task_id:
            return True
        if current not in seen:
            seen.add(current)
            waiting += [
                row["id"] for row in tx.all("blockers", objective_id=objective_id, task_id=current)
            ]
    return False


def bears_on(name: str, text: str) -> bool:
    """Return whether a result's text may help with a task of this name: it contains at least one of
    the marks (codes, numbers, names, quoted terms) in the name, or the name has no marks."""
    marks = find_marks(name)
    return not marks or bool(held_marks(text, marks))


def ask_for_plan(tx: Transaction, fence: Fence, task_ids: Sequence[int]) -> None:
    """Announce the queries that recording a plan will read, so that they are sent together."""
    objective_id = fence.objective_id
    tx.ask("objective", objective_id=objective_id)
    tx.ask("unsettled_steps", objective_id=objective_id)
    tx.ask("some_tasks", objective_id=objective_id, task_ids=to_json(list(task_ids)))


# -- the proposals of one commit
# -------------------------------------------------------------------------------------------------


def _name(proposal: Proposal) -> _Named | None:
    name = lifecycle.storable_line(
        proposal.name,
        max_chars=None if proposal.origins == ("person",) else lifecycle.MAX_NAME_CHARS,
    )
    if not name:
        return None
    origins = tuple(lifecycle.storable(origin) for origin in proposal.origins)
    key, sense = _keys_of(name)
    return _Named(proposal=replace(proposal, name=name, origins=origins), key=key, sense=sense)


def _alike(objective_id: int, one: _Named) -> dict[str, Any]:
    return {"objective_id": objective_id, "name_key": one.key, "sense": one.sense}


def _keys_of(name: str) -> tuple[str, str]:
    """Return the key and the sense of a task name. The name as a prompt shows it has the same
    ones."""
    original = rearm(name)
    return names.name_key(original or name), name_sense(original)


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Proposed tasks that one transaction adds to the task list.

    Attributes:
        last_id: the id of the last task that existed before this batch.
        ids: for each proposal, in their order, the id of the task that it becomes or that it
            repeats; None for a proposal with a blank name.
    """

    tx: Transaction
    objective_id: int
    last_id: int
    named: Sequence[_Named | None]
    unhelpful: Mapping[int, Collection[int]] = field(default_factory=dict)
    ids: list[int | None] = field(default_factory=list)
    new: dict[int, _Named] = field(default_factory=dict)  # by the id of the new task
    # ids of the new tasks, by key and by sense
    id_by_word: dict[str, int | None] = field(default_factory=dict)
    after_by_id: dict[int, list[int]] = field(default_factory=dict)

    def number(self, *, allow_duplicates: bool) -> None:
        """Determine the task id of every proposal: a new id, or that of the task that the proposal
        repeats."""
        for one in self.named:
            if one is not None and not allow_duplicates:
                self.tx.ask("alike", **_alike(self.objective_id, one))
        for one in self.named:
            known_id = None if one is None or allow_duplicates else self._find_repeated(one)
            if one is not None and known_id is None:
                known_id = self.last_id + len(self.new) + 1
                self.new[known_id] = one
                self.id_by_word.setdefault(one.key, known_id)
                self.id_by_word.setdefault(one.sense, known_id)
            self.ids.append(known_id)
        if self.new:
            self.tx.run("count_tasks", objective_id=self.objective_id, n=len(self.new))

    def insert(self) -> tuple[Task, ...]:
        """Write all new tasks, and then their dependencies, because a task may depend on another
        new task."""
        for task_id, one in self.new.items():
            values: dict[str, Any] = {
                "objective_id": self.objective_id,
                "id": task_id,
                "parent_id": one.proposal.parent_id,
            }
            values |= {
                "name": one.proposal.name,
                "name_key": one.key,
                "sense": one.sense,
                "origins": to_json(one.proposal.origins),
            }
            self.tx.run(
                "insert_task", **sealed("task", {**values, "created_at_us": self.tx.now_us})
            )
        added = [self._link(one, task_id) for task_id, one in self.new.items()]
        for task in added:
            data = {"name": task.name, "parent_id": task.parent_id, "after": list(task.after)}
            transitions.append_event(self.tx, self.objective_id, events.TASK_ADDED, task.id, **data)
        return tuple(added)

    def _link(self, one: _Named, task_id: int) -> Task:
        """Write the dependencies of a new task, and return the task."""
        after = self._after(one, task_id)
        if after:
            return set_after(self.tx, self.objective_id, task_id, after)
        return Task(
            id=task_id,
            objective_id=self.objective_id,
            name=one.proposal.name,
            status=TaskStatus.QUEUED,
            rank=task_id,
            parent_id=one.proposal.parent_id,
            origins=one.proposal.origins,
            created_at=to_time(self.tx.now_us),
        )

    def note_duplicates(self) -> tuple[str, ...]:
        """Return the names of the proposals that were not added because each repeats a task.
        Append one event for each name and parent."""
        dropped = [
            (one, task_id)
            for one, task_id in zip(self.named, self.ids, strict=True)
            if one is not None and self.new.get(task_id or 0) is not one
        ]
        said: set[tuple[str, int | None]] = set()
        for one, task_id in dropped:
            parent_id = one.proposal.parent_id
            if (one.key, parent_id) not in said:
                said.add((one.key, parent_id))
                data = {"name": one.proposal.name, "repeats": task_id}
                kind = events.TASK_DUPLICATE_DROPPED
                transitions.append_event(self.tx, self.objective_id, kind, parent_id, **data)
        return tuple(one.proposal.name for one, _ in dropped)

    def meant(self, named: int | str) -> int | None:
        """Return the id of the task that a dependency refers to, None when there is none. A
        dependency is a task id, the label or name of another proposal, or the name of a task in the
        list."""
        if isinstance(named, int):
            return named if 0 < named <= self.last_id else None
        name = lifecycle.storable_line(named, max_chars=lifecycle.MAX_NAME_CHARS)
        label = name.casefold()
        if not label:
            return None
        key, sense = _keys_of(name)
        known = [
            (one, task_id)
            for one, task_id in zip(self.named, self.ids, strict=True)
            if one is not None
        ]
        for one, task_id in known:
            if one.proposal.label.strip().casefold() == label:
                return task_id
        for one, task_id in known:
            if one.key == key or one.sense == sense:
                return task_id
        rows = self.tx.all("alike", objective_id=self.objective_id, name_key=key, sense=sense)
        return int(rows[-1]["id"]) if rows else None

    def _after(self, one: _Named, task_id: int) -> list[int]:
        """Return the ids of the tasks that a new task depends on. A dependency on no known task, or
        one that would close a cycle, is dropped, and an event says so."""
        after = self.after_by_id.setdefault(task_id, [])
        for named in one.proposal.after:
            meant = self.meant(named)
            waits_for_this = meant in self.unhelpful and meant == one.proposal.parent_id
            if meant is None or waits_for_this or self._leads(meant, task_id):
                named_text = lifecycle.storable(str(named), max_chars=200)
                transitions.append_event(
                    self.tx, self.objective_id, events.TASK_AFTER_DROPPED, task_id, named=named_text
                )
            elif meant not in after:
                after.append(meant)
        return after

    def _leads(self, start: int, goal: int) -> bool:
        """Return whether the task `start` depends on the task `goal`, directly or through other new
        tasks."""
        seen: set[int] = set()
        waiting = [start]
        while waiting:
            current = waiting.pop()
            if current == goal:
                return True
            if current not in seen:
                seen.add(current)
                waiting += self.after_by_id.get(current, [])
        return False

    # -- what is there already
    # ----------------------------------------------------------------------------------------------

    def _find_repeated(self, one: _Named) -> int | None:
        """Return the id of the task that the proposal repeats: another new task, or a task in the
        list that must not be repeated now. None when the proposal is new."""
        proposed = self.id_by_word.get(one.key) or self.id_by_word.get(one.sense)
        if proposed:
            return proposed
        rows = self.tx.all("alike", **_alike(self.objective_id, one))
        alike = [task_from_row(row) for row in rows]
        if not alike:
            return None
        undone = next((task.id for task in alike if task.status in lifecycle.OPEN), None)
        return undone or (None if self._may_come_again(one, alike) else alike[-1].id)

    def _may_come_again(self, one: _Named, alike: Sequence[Task]) -> bool:
        """Return whether a new task may have the same name as the finished tasks `alike`: their
        answer did not help, the part of the objective that they answer is still missing, or a newer
        result bears on it."""
        newest, shown = alike[-1], self.unhelpful.get(one.proposal.parent_id or 0, ())
        if newest.status is TaskStatus.CANCELLED or len(alike) > lifecycle.MAX_REPEATS_IN_ALL:
            return False
        is_wanted = one.proposal.is_missing or any(task.id in shown for task in alike)
        if newest.status is TaskStatus.DONE and not is_wanted:
            return False
        return (is_wanted and len(alike) <= lifecycle.MAX_REPEATS) or self._has_news(newest)

    def _has_news(self, task: Task) -> bool:
        after_us = 0 if task.finished_at is None else from_time(task.finished_at)
        rows = self.tx.all(
            "newest_results", objective_id=self.objective_id, after_us=after_us, limit=MAX_NEWS
        )
        return any(
            bears_on(task.name, f"{result.task_name}\n{result.text}")
            for result in map(result_from_row, rows)
        )


# --------------------------------------------------------------------------------------------------
# Planning from recorded tasks, which become done or are queued again because they are not answered;
# and finishing checks of the objective.
# --------------------------------------------------------------------------------------------------

MAX_WOKEN = 200  # maximum number of tasks that lack something and are compared with a new result


# -- recorded tasks
# --------------------------------------------------------------------------------------------------


def apply_plan(
    tx: Transaction,
    objective_id: int,
    tasks: Sequence[Task],
    plan: Planned,
    *,
    ends_planning: bool = False,
) -> Plan:
    """Carry out a plan (the outcome of one planning): finish those of the tasks with a recorded
    outcome that are answered, queue the others again behind the tasks that will provide the
    information that they lack, and add the proposals to the list.

    Args:
        ends_planning: also finish the claimed planning, so that the next one records its steps
            under a new owner name.
    """
    row = transitions.objective_row(tx, objective_id)
    progress = transitions.Progress.of(row)
    is_open = row["status"] != ObjectiveStatus.ENDED
    unanswered = {one.task_id: one for one in plan.unanswered}
    lacking = [
        task
        for task in tasks
        if task.lack is not None or (task.id in unanswered and not _is_last_part(tx, task))
    ]
    wanted = plan.proposals if is_open else ()
    unhelpful = {task.id: _shown(task, unanswered) for task in lacking}
    entered = enter(tx, objective_id, wanted, unhelpful=unhelpful)
    _tell_of(tx, objective_id, plan, tasks)
    for task in tasks:
        own = [
            task_id
            for proposal, task_id in zip(wanted, entered.id_by_place, strict=True)
            if proposal.parent_id == task.id and task_id is not None
        ]
        n_added = sum(added.parent_id == task.id for added in entered.plan.added)
        if task in lacking:
            progress = progress if n_added else progress.after_no_answer()
            named = unanswered.get(task.id)
            after = [] if named is None else resolve(tx, objective_id, named.after, entered, wanted)
            _requeue(tx, task, named, after=[*own, *after])
        else:
            is_repeat = task.id in plan.repeats and not _is_awaited(tx, task)
            progress = progress.after_answer(n_added=n_added, is_repeat=is_repeat)
            _finish(tx, task, n_added=n_added, n_duplicates=len(own) - n_added, after=progress)
    if ends_planning:
        tx.run("finish_plan", objective_id=objective_id, **asdict(progress))
    elif progress != transitions.Progress.of(row):
        transitions.put_progress(tx, objective_id, progress)
    if plan.is_met and is_open:
        claim_met(tx, objective_id, task_id=tasks[-1].id if tasks else None)
    elif is_open and progress.is_barren and 0 < progress.n_answers > _n_checked(tx, objective_id):
        tx.run("set_claimed_met", objective_id=objective_id)
    return entered.plan


def _tell_of(tx: Transaction, objective_id: int, plan: Planned, tasks: Sequence[Task]) -> None:
    """Append events that name the proposals that the plan left out, or say why nothing was
    planned."""
    for name in plan.dropped:
        transitions.append_event(
            tx,
            objective_id,
            events.TASK_PROPOSAL_DROPPED,
            name=lifecycle.storable(name, max_chars=500),
        )
    if plan.failure:
        transitions.append_event(
            tx,
            objective_id,
            events.PLAN_FAILED,
            task_ids=[task.id for task in tasks],
            reason=lifecycle.storable(plan.failure, max_chars=500),
        )


def claim_met(tx: Transaction, objective_id: int, *, task_id: int | None) -> None:
    """Record that an agent says that the objective is met, unless a check has refuted that and no
    task was answered since."""
    row = transitions.objective_row(tx, objective_id)
    if row["n_answers"] > _n_checked(tx, objective_id):
        tx.run("set_claimed_met", objective_id=objective_id)
        transitions.append_event(
            tx, objective_id, events.OBJECTIVE_CLAIMED_MET, task_id, task_id=task_id
        )


def _n_checked(tx: Transaction, objective_id: int) -> int:
    """Return how many answers the objective had at its last check; -1 if there was none."""
    return transitions.read_objective(tx, objective_id).checks.n_answers


def record_lack(tx: Transaction, task: Task) -> TaskStatus:
    """Record that the latest try of a claimed task lacked information, and return the task's new
    status: it waits for planning, or is dead if this was its last allowed try."""
    transitions.append_event(
        tx, task.objective_id, events.TASK_LACKED, task.id, lack=_what(task), n_lacks=task.n_lacks
    )
    if task.n_lacks >= lifecycle.MAX_LACKS:
        transitions.count_no_answer(tx, task.objective_id)
        return _give_up(tx, task)
    return transitions.free_task(tx, task, to=TaskStatus.RECORDED)


def ask_lacking(tx: Transaction, objective_id: int) -> None:
    tx.ask("blocked_lacking", objective_id=objective_id, limit=MAX_WOKEN)


def find_lacking(tx: Transaction, objective_id: int) -> list[Task]:
    """Return the tasks that wait for other tasks because they lacked information."""
    rows = tx.all("blocked_lacking", objective_id=objective_id, limit=MAX_WOKEN)
    return [task_from_row(row) for row in rows]


def wake_lacking(tx: Transaction, lacking: Sequence[Task], result: Result) -> None:
    """Let tasks that lacked information be claimed again if this result contains it. A task stays
    waiting if the name of a task that it waits for mentions a part of that information."""
    text = f"{result.task_name}\n{result.text}"
    for task in lacking:
        wanted = find_marks(_what(task)) - find_marks(task.name)
        if not wanted or held_marks(text, wanted) != wanted:
            continue
        blockers = [
            task_from_row(found)
            for found in tx.all("blockers", objective_id=task.objective_id, task_id=task.id)
        ]
        if held_marks("\n".join(blocker.name for blocker in blockers), wanted):
            continue
        kept = [
            task_id for task_id in task.after if task_id not in {blocker.id for blocker in blockers}
        ]
        set_after(tx, task.objective_id, task.id, kept)
        transitions.append_event(
            tx, task.objective_id, events.TASK_WOKEN, task.id, by=result.task_id
        )


def _is_awaited(tx: Transaction, task: Task) -> bool:
    return bool(tx.all("dependents", objective_id=task.objective_id, task_id=task.id))


def _finish(
    tx: Transaction,
    task: Task,
    *,
    n_added: int,
    n_duplicates: int,
    after: transitions.Progress,
) -> None:
    transitions.free_task(tx, task, to=TaskStatus.DONE)
    n_barren = after.n_tasks_without_progress
    data = {"n_added": n_added, "n_duplicates": n_duplicates, "n_barren": n_barren}
    transitions.append_event(tx, task.objective_id, events.TASK_DONE, task.id, **data)


def _requeue(
    tx: Transaction, task: Task, named: Unanswered | None, *, after: Sequence[int]
) -> None:
    """Queue a task with a recorded outcome again as a new try, after the tasks that will provide
    the information that it lacks. After its last allowed try, make it dead instead.

    Args:
        named: the planner's statement that the task's result does not answer it; None when the task
            itself recorded that it lacked information.
    """
    objective_id = task.objective_id
    if task.lack is None and named is not None:  # the task has a result that does not answer it
        found = _answer_in_part(tx, task)
        tx.run("delete_result", objective_id=objective_id, task_id=task.id)
        tx.run("delete_vectors", objective_id=objective_id, task_id=task.id)
        lack = Lack(what=named.lack, shown=named.shown, found=found)
        task = lifecycle.lacked(task, lack=lack)
        transitions.append_event(
            tx, objective_id, events.TASK_LACKED, task.id, lack=_what(task), n_lacks=task.n_lacks
        )
    if task.n_lacks >= lifecycle.MAX_LACKS:
        _give_up(tx, task)
        return
    kept = [task_id for task_id in dict.fromkeys((*task.after, *after)) if task_id != task.id]
    closing = [
        task_id
        for task_id in kept
        if would_close_cycle(tx, objective_id, task_id=task.id, after_id=task_id)
    ]
    for task_id in closing:
        transitions.append_event(
            tx, objective_id, events.TASK_AFTER_DROPPED, task.id, named=str(task_id)
        )
    set_after(tx, objective_id, task.id, [task_id for task_id in kept if task_id not in closing])
    task = replace(task, try_no=task.try_no + 1)
    status = transitions.free_task(tx, task, to=TaskStatus.QUEUED)
    if status is not TaskStatus.QUEUED:
        transitions.note_freed(tx, task, status)
        return
    blockers = [row["id"] for row in tx.all("blockers", objective_id=objective_id, task_id=task.id)]
    transitions.append_event(
        tx, objective_id, events.TASK_REQUEUED, task.id, try_no=task.try_no, waits_for=blockers
    )


def _answer_in_part(tx: Transaction, task: Task) -> str:
    """Return the text of the task's result if it answers the task in part, else ''."""
    rows = tx.all("results_of", objective_id=task.objective_id, task_ids=to_json([task.id]))
    return next((result.text for result in map(result_from_row, rows) if result.lack), "")


def _is_last_part(tx: Transaction, task: Task) -> bool:
    """Return whether the task has an answer in part, and no further try is allowed, so that this
    answer stays: it is worth more than none."""
    return task.n_lacks + 1 >= lifecycle.MAX_LACKS and bool(_answer_in_part(tx, task))


def _give_up(tx: Transaction, task: Task) -> TaskStatus:
    error = lifecycle.storable(
        f"after {task.n_lacks} tries it still lacked: {_what(task)}",
        max_chars=lifecycle.MAX_DETAIL_CHARS,
    )
    status = transitions.free_task(tx, replace(task, error=error), to=TaskStatus.DEAD)
    if status is TaskStatus.DEAD:
        transitions.append_event(tx, task.objective_id, events.TASK_DEAD, task.id, error=error)
    transitions.note_freed(tx, task, status)
    return status


def _what(task: Task) -> str:
    return "" if task.lack is None else task.lack.what


def _shown(task: Task, unanswered: dict[int, Unanswered]) -> tuple[int, ...]:
    return task.lack.shown if task.lack is not None else unanswered[task.id].shown


# -- checks
# --------------------------------------------------------------------------------------------------


def finish_check(
    tx: Transaction,
    objective_id: int,
    *,
    is_met: bool,
    reason: str,
    checked: Checked,
    wanted: Sequence[Sequence[Proposal]],
) -> None:
    """Record a check. If the objective is met, end it; if not, add tasks for what is missing, or
    end the objective when such tasks have brought nothing too often.

    Args:
        wanted: two lists of proposals: those for the missing parts, and the fallback.
    """
    row, objective = (
        transitions.objective_row(tx, objective_id),
        transitions.read_objective(tx, objective_id),
    )
    detail = lifecycle.storable(reason, max_chars=lifecycle.MAX_DETAIL_CHARS)
    is_empty = lifecycle.needs_check(
        replace(transitions.snapshot(tx, objective), is_claimed_met=False)
    )
    is_round = is_empty or not row["is_claimed_met"]
    checks = replace(objective.checks, parts=checked.parts, missing=())
    if not is_met:
        n_answers = row["n_answers"]
        checks = lifecycle.after_check(
            objective.checks,
            parts=checked.parts,
            missing=checked.missing,
            n_answers=n_answers,
            is_round=is_round,
        )
    tx.run("finish_check", objective_id=objective_id, checks=checks_to_json(checks))
    missing = [lifecycle.storable(part, max_chars=500) for part in checked.missing]
    transitions.append_event(
        tx,
        objective_id,
        events.OBJECTIVE_CHECKED,
        is_met=is_met,
        reason=detail,
        n_parts=len(checked.parts),
        missing=missing,
    )
    if objective.status is ObjectiveStatus.ENDED:
        return
    if is_met and row["is_claimed_met"]:
        transitions.end(tx, objective_id, reason=StopReason.OBJECTIVE_MET, detail=detail)
    elif is_met and is_empty:
        # otherwise a task was added meanwhile; there is a new check when that task is done
        transitions.end(tx, objective_id, reason=StopReason.FINISHED, detail=detail)
    if is_met:
        return
    is_in_vain = is_round and lifecycle.is_in_vain(checks)
    added = () if is_in_vain else _add_for_missing(tx, objective, wanted)
    if added and not is_empty:
        put_in_place(tx, objective_id, [task.id for task in added], Place.FIRST)
    if is_in_vain or (
        is_round and not added and lifecycle.is_in_vain(replace(checks, n_idle=checks.n_idle + 1))
    ):
        transitions.end(tx, objective_id, reason=StopReason.UNMET, detail=detail)


def _add_for_missing(
    tx: Transaction, objective: Objective, wanted: Sequence[Sequence[Proposal]]
) -> tuple[Task, ...]:
    """Add tasks for the parts of the objective that a check found missing, and return them.

    Args:
        wanted: proposals, which may repeat answered tasks, and a second list of proposals. The
            second list is used if all proposals of the first are dropped as duplicates; none of it
            may repeat a task.
    """
    proposed, fallback = wanted
    added = enter(tx, objective.id, [replace(one, is_missing=True) for one in proposed]).plan.added
    return added or enter(tx, objective.id, fallback).plan.added
