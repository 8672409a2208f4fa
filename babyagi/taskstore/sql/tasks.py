"""The task list in SQL: recording the outcomes of claimed tasks and duties (work for the whole
objective, such as planning), releasing claims, and the changes that a person makes.

It also contains the rules for adding proposed tasks (which are new, which repeat a task, which wait
for which), for planning from the outcomes of tasks, and for finishing a check.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from babyagi import events
from babyagi.errors import LeaseLostError
from babyagi.marks import find_marks, held_marks
from babyagi.tasks import (
    Claim,
    DutyClaim,
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
from babyagi.taskstore.names import name_key
from babyagi.taskstore.nouns import NOTHING_CHECKED, Checked, Kept, Outcome, Planned
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.database import (
    ALL_ROWS,
    Row,
    SqlAccess,
    Transaction,
    from_time,
    result_from_row,
    result_to_values,
    sealed,
    task_from_row,
    to_json,
    to_time,
    writing,
)
from babyagi.taskstore.sql.steps import record_first
from babyagi.text import rearm


class Recording(SqlAccess):
    """The part of the store that ends claims on tasks and on duties (work for the whole objective,
    such as planning): it records the outcome, or releases the claim without one."""

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
        """Store the one result of a running task, which others can see from now on, and release the
        task. Its status becomes `recorded`. Allowed on a paused or ended objective too.

        Queued tasks whose missing information is named in this result become claimable again.

        Args:
            lack: the part of the task that the result does not answer.
            plan: what the execution agent itself planned. With a plan, the task becomes done at
                once, as by `record_plan`.
        """

        def work(tx: Transaction) -> Result:
            waiting = {"objective_id": claim.fence.objective_id, "limit": MAX_WOKEN}
            try:
                record_first(tx, claim.fence, first)  # before the task is read, which it may change
                task = transitions.fenced_task(tx, claim.fence)
            except LeaseLostError:
                known = _recorded_before(tx, claim)
                if known is None:
                    raise
                return known
            lacking = list(map(task_from_row, tx.all("blocked_lacking", **waiting)))
            result = Result(
                task_id=task.id,
                objective_id=task.objective_id,
                task_name=task.name,
                text=lifecycle.storable(text),
                origins=tuple(map(lifecycle.storable, origins)),
                lack=lifecycle.storable(lack, max_chars=lifecycle.MAX_DETAIL_CHARS),
                is_planned=False,
                created_at=to_time(tx.now_us),
            )
            tx.run("insert_result", **result_to_values(result))
            task = replace(task, lack=None)
            data = {"result_chars": len(result.text), "lack": result.lack}
            transitions.free_task(tx, task, events.TASK_RECORDED, to=TaskStatus.RECORDED, data=data)
            wake_lacking(tx, lacking, result)
            if plan is not None:
                apply_plan(tx, task.objective_id, [task], plan)
            return result

        return await self._write(work, claim.fence.objective_id)

    @writing()
    def record_lack(
        self,
        tx: Transaction,
        claim: Claim,
        *,
        lack: Lack,
        plan: Planned | None = None,
        first: Outcome | Kept | None = None,
    ) -> Task:
        """Release a running task without a result, because the try lacked information. Its status
        becomes `recorded`, which means that it waits for planning, or `dead` when this was the last
        of `lifecycle.MAX_LACKS` such tries.

        Args:
            plan: tasks that the execution agent itself proposed to find the lacking information.
                With a plan, the task is at once queued again after those tasks, as by
                `record_plan`.
        """
        record_first(tx, claim.fence, first)
        task = transitions.fenced_task(tx, claim.fence)
        task = lifecycle.lacked(task, lack=lack)
        _note_lacked(tx, task)
        if task.n_lacks >= lifecycle.MAX_LACKS:
            tx.run("count_no_answer", objective_id=task.objective_id)
            _give_up_lacking(tx, task)
        else:
            status = transitions.free_task(tx, task, to=TaskStatus.RECORDED)
            if plan is not None and status is TaskStatus.RECORDED:
                apply_plan(tx, task.objective_id, [task], plan)
        return transitions.read_task(tx, task.objective_id, task.id)

    @writing()
    def record_plan(
        self,
        tx: Transaction,
        claim: DutyClaim,
        *,
        task_ids: Sequence[int],
        plan: Planned,
        first: Outcome | Kept | None = None,
    ) -> tuple[Task, ...]:
        """Make the recorded tasks `task_ids` done, and add the plan's proposed tasks at the end of
        the list, in their order. Return the added tasks.

        A task that is unanswered, or recorded that it lacked information, does not become done: it
        is queued again as a new try, or dead after its last try. It then comes after the proposals
        made for it (or the existing tasks that these repeat) and after the tasks in
        `Unanswered.after`. A result that does not answer its task is withdrawn.

        A proposal is dropped as a duplicate when a task of the same spelling (`names.name_key`), or
        the task that it says it repeats, is open, was cancelled, or was answered. It is not dropped
        when the task that it was made for still lacks the information although that answer was in
        its prompt. A task that was given up can be proposed again only if there is a newer result.
        Nothing is added to an ended objective. With `plan.is_met` it is recorded that an agent says
        that the objective is met, and no task can be claimed until `finish_check`.
        """
        objective_id = claim.fence.objective_id
        record_first(tx, claim.fence, first)
        duty = transitions.fenced_duty(tx, claim.fence)
        rows = tx.all("some_tasks", objective_id=objective_id, task_ids=to_json(list(task_ids)))
        row_by_id = {row["id"]: row for row in rows if row["status"] == TaskStatus.RECORDED}
        recorded = [task_from_row(row_by_id[id_]) for id_ in task_ids if id_ in row_by_id]
        made = apply_plan(tx, objective_id, recorded, plan, ends_planning=True)
        transitions.free_duty(tx, duty)
        return made

    @writing()
    def fail_task(
        self, tx: Transaction, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0
    ) -> Task:
        """Count a failed try of a running task: `failures` and `try_no` rise by 1. The task is
        queued and can be claimed after `delay_s` seconds, or becomes dead when `failures` reaches
        `max_failures`."""
        task = transitions.fenced_task(tx, claim.fence)
        # with another `try_no`, the next try does not reuse the recorded steps of this one
        task = replace(
            task,
            failures=task.failures + 1,
            n_lost=0,
            error=lifecycle.storable(error, max_chars=lifecycle.MAX_DETAIL_CHARS),
            try_no=task.try_no + 1,
        )
        tx.run("count_no_answer", objective_id=task.objective_id)
        status = TaskStatus.DEAD if task.failures >= max_failures else TaskStatus.QUEUED
        data = {"error": task.error, "failures": task.failures}
        transitions.free_task(tx, task, events.TASK_FAILED, to=status, delay_s=delay_s, data=data)
        return transitions.read_task(tx, task.objective_id, task.id)

    @writing()
    def release(
        self, tx: Transaction, claim: Claim | DutyClaim, *, delay_s: float = 0.0, reason: str = ""
    ) -> None:
        """Give up the claim of a running task or a duty (in an outage, in a pause, at a limit, or
        when the worker is to stop). The task is queued again, otherwise unchanged, and no failure
        is counted. The task, and the duty if it is still due, can be claimed again after `delay_s`
        seconds."""
        if isinstance(claim, DutyClaim):
            duty = transitions.fenced_duty(tx, claim.fence)
            transitions.free_duty(tx, duty, delay_s=delay_s)
        else:
            task = transitions.fenced_task(tx, claim.fence)
            transitions.release(tx, task, reason=reason, delay_s=delay_s)

    # -- duties
    # ----------------------------------------------------------------------------------------------

    @writing()
    def reorder(
        self,
        tx: Transaction,
        claim: DutyClaim,
        *,
        revision: int,
        task_ids: Sequence[int],
        first: Outcome | Kept | None = None,
    ) -> bool:
        """Put the queued tasks `task_ids` in this order, by exchanging their ranks
        (`lifecycle.deal_ranks`), and release the duty to order. Return False, without a change of
        the list, when it was re-ordered since `revision`; a new order is still due then."""
        objective_id = claim.fence.objective_id
        duty = transitions.fenced_duty(tx, claim.fence)
        record_first(tx, claim.fence, first)
        transitions.free_duty(tx, duty)
        if transitions.objective_row(tx, objective_id)["order_revision"] != revision:
            return False
        queued = tx.all("ranks", objective_id=objective_id, task_ids=to_json(list(task_ids)))
        ordered_ids, n_moved = _deal_ranks(tx, objective_id, queued, task_ids)
        tx.run("set_order", objective_id=objective_id, upto=duty["upto"])
        data = {"revision": revision + 1, "task_ids": ordered_ids, "n_moved": n_moved}
        transitions.append_event(tx, objective_id, events.ORDER_APPLIED, **data)
        return True

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
        """Record the outcome of a check whether the objective is met, release the duty to check,
        and return the objective.

        If `is_met`, the objective ends: with `OBJECTIVE_MET` if an agent had claimed that it is
        met, else with `FINISHED` unless a task was added meanwhile. If not, `proposals` (tasks for
        the missing parts) are added, or `fallback` if the list contains all of them already. But if
        the tasks that earlier checks added have brought nothing several times in a row
        (`lifecycle.is_in_vain`), nothing is added, and the objective ends with `UNMET`.

        Where `checked` names unread results, these are planned from once more instead, and nothing
        is added for now.
        """

        def work(tx: Transaction) -> Objective:
            objective_id, wanted = claim.fence.objective_id, (proposals, fallback)
            transitions.free_duty(tx, transitions.fenced_duty(tx, claim.fence))
            finish_check(
                tx, objective_id, is_met=is_met, reason=reason, checked=checked, wanted=wanted
            )
            return transitions.read_objective(tx, objective_id)

        return await self._write(work, claim.fence.objective_id)

    @writing()
    def record_report(self, tx: Transaction, claim: DutyClaim, *, markdown: str) -> None:
        """Store the objective's report, and release the duty to write it."""
        objective_id = claim.fence.objective_id
        duty = transitions.fenced_duty(tx, claim.fence)
        report = sealed("report", {"id": objective_id, "report": lifecycle.storable(markdown)})
        tx.run("set_report", objective_id=objective_id, **report)
        transitions.free_duty(tx, duty)
        transitions.append_event(
            tx, objective_id, events.REPORT_WRITTEN, report_chars=len(markdown)
        )


def _recorded_before(tx: Transaction, claim: Claim) -> Result | None:
    """Return the task's result if this same claim has recorded it already, else None. A worker
    records a result twice when the first commit only seemed to fail."""
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


def put_back_lost(tx: Transaction, task: Task) -> None:
    """Release a task that a lost worker had claimed: queue it again, or make it dead after too many
    losses. The next worker continues the same try, so it reuses the recorded steps and no call is
    paid for twice."""
    n_lost = task.n_lost + 1 if task.status is TaskStatus.RUNNING else 0
    task = replace(task, n_lost=n_lost)
    if n_lost < lifecycle.MAX_LOST:
        # 0 after the first loss, then 1 s, doubling
        delay_s = min(2.0 ** (n_lost - 2), lifecycle.MAX_LOST_PAUSE_S) if n_lost > 1 else 0.0
        transitions.release(tx, task, reason="worker lost", delay_s=delay_s)
        return
    error = f"{n_lost} workers in a row were lost while they worked on this task"
    transitions.free_task(tx, replace(task, error=error), to=TaskStatus.DEAD)


# --------------------------------------------------------------------------------------------------
# Changes that a person makes to a task list while workers work on it.
# --------------------------------------------------------------------------------------------------


class Steering(SqlAccess):
    """The part of the store for changes by a person: adding, moving, replacing, cancelling and
    retrying tasks."""

    @writing()
    def add_tasks(
        self,
        tx: Transaction,
        objective_id: int,
        proposals: Sequence[Proposal],
        *,
        to: Place = Place.LAST,
    ) -> tuple[Task, ...]:
        """Add a person's tasks as the first or last of the list, and return them. They may repeat
        existing tasks; blank names are left out. An objective that has ended becomes active again
        and needs a new report, if a task was added.

        Raises:
            ObjectiveStoppedError: the objective was cancelled.
        """
        stop_reason = transitions.objective_row(tx, objective_id)["stop_reason"]
        lifecycle.require_reopenable(objective_id, stop_reason)
        added = add_proposals(tx, objective_id, proposals, allow_duplicates=True).added
        if added:
            tx.run("count_afresh", objective_id=objective_id)
        if added and stop_reason is not None:
            transitions.reopen(tx, objective_id)
        if added and to is not Place.LAST:
            put_in_place(tx, objective_id, [task.id for task in added], to)
        return tuple(transitions.read_task(tx, objective_id, task.id) for task in added)

    @writing()
    def move_task(
        self, tx: Transaction, objective_id: int, task_id: int, *, to: Place | int
    ) -> Task:
        """Move a queued or waiting task to the front or the end of the list, or before the task
        whose id is `to`, and return it. An order that a worker is making meanwhile will
        not be applied.

        Raises:
            NotFoundError: no such task.
            SettingsError: one of the two tasks is neither queued nor waiting.
        """
        _changeable(tx, objective_id, task_id)
        if not isinstance(to, Place):
            transitions.read_task(tx, objective_id, to)
        put_in_place(tx, objective_id, [task_id], to)
        return transitions.read_task(tx, objective_id, task_id)

    @writing()
    def cancel_task(
        self, tx: Transaction, objective_id: int, task_id: int, *, replacement: str | None = None
    ) -> Task:
        """Cancel a queued or waiting task, and return it. Tasks that come `after` it no longer wait
        for it.

        Args:
            replacement: the name of a new task to queue in its place, which is returned then. It
                has the same rank, and the same tasks before and after it.

        Raises:
            NotFoundError: no such task.
            SettingsError: the task is neither queued nor waiting, or the name is blank.
        """
        task, data = _changeable(tx, objective_id, task_id), dict[str, int]()
        if replacement is not None:
            new = _put_instead(tx, task, lifecycle.replacement(task, replacement))
            task_id, data = new.id, {"replaced_by": new.id}
        transitions.cancel_task(tx, objective_id, task.id, **data)
        transitions.allow_questions(tx, objective_id)
        return transitions.read_task(tx, objective_id, task_id)

    @writing()
    def retry_task(self, tx: Transaction, objective_id: int, task_id: int) -> Task:
        """Queue a dead task at its old rank, as a new try with `failures` and `n_lacks` set to 0,
        and return it. Tasks that come after it wait for it again. An objective that has ended
        becomes active again and needs a new report.

        Raises:
            NotFoundError: no such task.
            SettingsError: the task is not dead.
            ObjectiveStoppedError: the objective was cancelled.
        """
        stop_reason = transitions.objective_row(tx, objective_id)["stop_reason"]
        lifecycle.require(transitions.read_task(tx, objective_id, task_id), TaskStatus.DEAD)
        lifecycle.require_reopenable(objective_id, stop_reason)
        tx.run("retry_task", objective_id=objective_id, task_id=task_id)
        tx.run("unsettle_task", objective_id=objective_id, task_id=task_id)
        tx.run("count_afresh", objective_id=objective_id)
        task = transitions.read_task(tx, objective_id, task_id)
        data = {"try_no": task.try_no, "is_retry": True}
        transitions.append_task_event(tx, task, events.TASK_REQUEUED, **data)
        if stop_reason is not None:
            transitions.reopen(tx, objective_id)
        return task


def _changeable(tx: Transaction, objective_id: int, task_id: int) -> Task:
    """Return the task. Raise `NotFoundError` when there is none, and `SettingsError` when it is
    neither queued nor waiting."""
    task = transitions.read_task(tx, objective_id, task_id)
    lifecycle.require(task, *lifecycle.CANCELLABLE)
    return task


def _put_instead(tx: Transaction, old: Task, proposal: Proposal) -> Task:
    """Queue the proposal at the rank of another task, and let what came after that come after it
    instead."""
    objective_id = old.objective_id
    new = add_proposals(tx, objective_id, [proposal], allow_duplicates=True).added[0]
    for row in tx.all("dependents", objective_id=objective_id, task_id=old.id):
        after = [new.id if named == old.id else named for named in task_from_row(row).after]
        set_after(tx, objective_id, row["id"], after)
    tx.run("set_rank", objective_id=objective_id, task_id=new.id, rank=old.rank)
    tx.run("set_rank", objective_id=objective_id, task_id=old.id, rank=new.rank)
    tx.run("count_afresh", objective_id=objective_id)
    return new


def put_in_place(tx: Transaction, objective_id: int, moved: Sequence[int], to: Place | int) -> None:
    """Move the tasks `moved` to one end of the list, or before the task `to`, by exchanging the
    ranks of queued and waiting tasks."""
    listed = tx.all(
        "tasks_with_status",
        objective_id=objective_id,
        statuses=to_json(lifecycle.CANCELLABLE),
        limit=ALL_ROWS,
    )
    wanted = lifecycle.put_at([row["id"] for row in listed], moved, to)
    _deal_ranks(tx, objective_id, listed, wanted)
    tx.run("bump_order", objective_id=objective_id)
    data = {"task_ids": list(moved), "n_moved": len(moved), "to": to}
    transitions.append_event(tx, objective_id, events.ORDER_APPLIED, **data)


def _deal_ranks(
    tx: Transaction, objective_id: int, rows: Sequence[Row], wanted: Sequence[int]
) -> tuple[list[int], int]:
    """Store new ranks for the tasks of these rows, so that they stand in the order `wanted`
    (`lifecycle.deal_ranks`). Return the ids of the ordered tasks, and how many of them got another
    rank."""
    rank_by_id = {row["id"]: row["rank"] for row in rows}
    dealt = lifecycle.deal_ranks(rank_by_id.items(), wanted)
    changed = {id_: rank for id_, rank in dealt.items() if rank != rank_by_id[id_]}
    for task_id, rank in changed.items():
        tx.run("set_rank", objective_id=objective_id, task_id=task_id, rank=rank)
    return list(dealt), len(changed)


# --------------------------------------------------------------------------------------------------
# Adding proposed tasks to the list: which are new, and which repeat a task.
# --------------------------------------------------------------------------------------------------

NOTHING: Mapping[int, Collection[int]] = MappingProxyType({})


def add_proposals(
    tx: Transaction,
    objective_id: int,
    proposals: Sequence[Proposal],
    *,
    allow_duplicates: bool = False,
    unhelpful: Mapping[int, Collection[int]] = NOTHING,
) -> _Batch:
    """Add the proposed tasks at the end of the task list, in their order. A proposal that repeats a
    task is dropped, and an event says so.

    Args:
        allow_duplicates: add all proposals, even those that repeat a task.
        unhelpful: for each task that lacks information, by its id: the ids of the tasks whose
            results were in its prompt, and so did not help. A proposal made for the lacking task
            may repeat these tasks, and does not wait for the lacking task itself.
    """
    batch = _Batch(
        tx=tx,
        objective_id=objective_id,
        last_id=transitions.objective_row(tx, objective_id)["last_task_id"],
        named=[_clean(one) for one in proposals],
        unhelpful=unhelpful,
    )
    batch.number(allow_duplicates=allow_duplicates)
    batch.added = batch.insert()
    batch.note_duplicates()
    return batch


def set_after(tx: Transaction, objective_id: int, task_id: int, after: Sequence[int]) -> Task:
    """Make the task wait for exactly the tasks `after`, and return the changed task."""
    values = {"objective_id": objective_id, "task_id": task_id, "after_ids": to_json(list(after))}
    tx.run("delete_task_after", objective_id=objective_id, task_id=task_id)
    if after:
        tx.run("insert_task_after", **values)
    return task_from_row(tx.change("count_blockers", **values))


def reaches(start: int, goal: int, follow: Callable[[int], Iterable[int]]) -> bool:
    """Return whether `goal` is `start`, or is reached from it by one or more steps of `follow`."""
    seen: set[int] = set()
    left = [start]
    while left and left[-1] != goal:
        current = left.pop()
        if current not in seen:
            seen.add(current)
            left += follow(current)
    return bool(left)


# -- the proposals of one commit
# -------------------------------------------------------------------------------------------------


def _clean(proposal: Proposal) -> Proposal | None:
    """Return the proposal as every store accepts it; None if its name is blank."""
    name = lifecycle.storable_line(
        proposal.name,
        max_chars=None if proposal.origins == ("person",) else lifecycle.MAX_NAME_CHARS,
    )
    if not name:
        return None
    origins = tuple(lifecycle.storable(origin) for origin in proposal.origins)
    return replace(proposal, name=name, origins=origins)


def _key_of(name: str) -> str:
    """Return the key of a task name. It is the same for the name as it is stored and as a prompt
    shows it."""
    return name_key(rearm(name) or name)


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Proposed tasks that one transaction adds to the task list.

    Attributes:
        last_id: the highest task id before this batch.
        named: the proposals; None stands for a proposal with a blank name.
        unhelpful: as for `add_proposals`.
        ids: for each proposal, in the given order, the id of the task that it becomes or repeats;
            None for a proposal with a blank name.
        new: the proposals that become tasks, by task id.
        id_by_key: the ids of the new tasks, by the keys of their names.
        after_by_id: the tasks that each new task waits for, by its id.
        added: the tasks that were added.
    """

    tx: Transaction
    objective_id: int
    last_id: int
    named: Sequence[Proposal | None]
    unhelpful: Mapping[int, Collection[int]] = field(default_factory=dict)
    ids: list[int | None] = field(default_factory=list)
    new: dict[int, Proposal] = field(default_factory=dict)
    id_by_key: dict[str, int] = field(default_factory=dict)
    after_by_id: dict[int, list[int]] = field(default_factory=dict)
    added: tuple[Task, ...] = ()

    def number(self, *, allow_duplicates: bool) -> None:
        """Fill `ids` and `new`: each proposal gets a new task id, or the id of the task that it
        repeats."""
        for one in self.named:
            known_id = None if one is None or allow_duplicates else self._find_repeated(one)
            if one is not None and known_id is None:
                known_id = self.last_id + len(self.new) + 1
                self.new[known_id] = one
                self.id_by_key.setdefault(_key_of(one.name), known_id)
            self.ids.append(known_id)
        if self.new:
            self.tx.run("count_tasks", objective_id=self.objective_id, n=len(self.new))

    def insert(self) -> tuple[Task, ...]:
        """Write all new tasks, then their dependencies, because a task may wait for another new
        task. Return the new tasks."""
        for task_id, one in self.new.items():
            values = {
                "objective_id": self.objective_id,
                "id": task_id,
                "parent_id": one.parent_id,
                "name": one.name,
                "name_key": _key_of(one.name),
                "origins": to_json(one.origins),
                "created_at_us": self.tx.now_us,
            }
            self.tx.run("insert_task", **sealed("task", values))
        added = [self._link(one, task_id) for task_id, one in self.new.items()]
        for task in added:
            data = {"name": task.name, "parent_id": task.parent_id, "after": list(task.after)}
            transitions.append_task_event(self.tx, task, events.TASK_ADDED, **data)
        return tuple(added)

    def _link(self, one: Proposal, task_id: int) -> Task:
        """Write which tasks a new task waits for, and return the new task."""
        after = self._after(one, task_id)
        if after:
            return set_after(self.tx, self.objective_id, task_id, after)
        return Task(
            id=task_id,
            objective_id=self.objective_id,
            name=one.name,
            status=TaskStatus.QUEUED,
            rank=task_id,
            parent_id=one.parent_id,
            origins=one.origins,
            created_at=to_time(self.tx.now_us),
        )

    def note_duplicates(self) -> None:
        """Append an event for each proposal that was dropped because it repeats a task, one for
        each combination of name and parent."""
        dropped: dict[tuple[str, int | None], dict[str, Any]] = {}
        for one, task_id in zip(self.named, self.ids, strict=True):
            if one is not None and self.new.get(task_id or 0) is not one:
                data = {"name": one.name, "repeats": task_id}
                dropped.setdefault((_key_of(one.name), one.parent_id), data)
        kind = events.TASK_DUPLICATE_DROPPED
        for (_, parent_id), data in dropped.items():
            transitions.append_event(self.tx, self.objective_id, kind, parent_id, **data)

    def find_named(self, named: int | str) -> int | None:
        """Return the id of the task that `named` refers to; None when there is none.

        Args:
            named: the id of an earlier task, the label or name of a proposal of this batch, or the
                name of a task in the list.
        """
        if isinstance(named, int):
            return named if 0 < named <= self.last_id else None
        name = lifecycle.storable_line(named, max_chars=lifecycle.MAX_NAME_CHARS)
        label = name.casefold()
        if not label:
            return None
        key = _key_of(name)
        known = [
            (one, task_id)
            for one, task_id in zip(self.named, self.ids, strict=True)
            if one is not None
        ][::-1]  # of two with the same label or key, the first is meant
        by_label = {one.label.strip().casefold(): task_id for one, task_id in known}
        by_key = {_key_of(one.name): task_id for one, task_id in known}
        if found := by_label.get(label) or by_key.get(key):
            return found
        rows = self.tx.all("alike", objective_id=self.objective_id, name_key=key, task_id=0)
        return int(rows[-1]["id"]) if rows else None

    def ids_from(self, task_id: int) -> list[int]:
        """Return the ids that the proposals planned from this task got, new or known."""
        got = zip(self.named, self.ids, strict=True)
        return [id_ for one, id_ in got if one and id_ and one.parent_id == task_id]

    def resolve(self, after: Sequence[int | str]) -> list[int]:
        """Return the ids of the tasks that `after` refers to, each once. What refers to no task is
        left out."""
        found = dict.fromkeys(map(self.find_named, after))
        return [task_id for task_id in found if task_id is not None]

    def _after(self, one: Proposal, task_id: int) -> list[int]:
        """Return the ids of the tasks that a new task waits for. A reference to no known task, or
        to a task that would close a cycle, is dropped, and an event says so."""
        after = self.after_by_id.setdefault(task_id, [])
        for named in one.after:
            meant = self.find_named(named)
            waits_for_this = meant in self.unhelpful and meant == one.parent_id
            if (
                meant is None
                or waits_for_this
                or reaches(meant, task_id, lambda id_: self.after_by_id.get(id_, ()))
            ):
                named_text = lifecycle.storable(str(named), max_chars=200)
                transitions.append_event(
                    self.tx, self.objective_id, events.TASK_AFTER_DROPPED, task_id, named=named_text
                )
            elif meant not in after:
                after.append(meant)
        return after

    # -- proposals that repeat a task
    # ----------------------------------------------------------------------------------------------

    def _find_repeated(self, one: Proposal) -> int | None:
        """Return the id of the task that the proposal repeats: another new task, or a task in the
        list that must not be repeated now. Return None when the proposal may be added."""
        key = _key_of(one.name)
        if proposed := self.id_by_key.get(key):
            return proposed
        at = {"objective_id": self.objective_id, "task_id": one.repeats or 0}
        rows = self.tx.all("alike", **at, name_key=key)
        alike = [task_from_row(row) for row in rows]
        if not alike:
            return None
        undone = next((task.id for task in alike if task.status in lifecycle.OPEN), None)
        return undone or (None if self._may_come_again(one, alike) else alike[-1].id)

    def _may_come_again(self, one: Proposal, alike: Sequence[Task]) -> bool:
        """Return whether a proposal may repeat the finished tasks `alike`, oldest first. It may if
        their answer did not help the task that it is made for, if a check found that part of the
        objective still missing, or if the last of them was given up and there is a newer result or
        a newer check. The number of repeats is limited."""
        newest, shown = alike[-1], self.unhelpful.get(one.parent_id or 0, ())
        if newest.status is TaskStatus.CANCELLED or len(alike) > lifecycle.MAX_REPEATS_IN_ALL:
            return False
        is_wanted = one.is_missing or any(task.id in shown for task in alike)
        if newest.status is TaskStatus.DONE and not is_wanted:
            return False
        # what a task for a missing part lacks is tried again as that part is
        is_wanted = is_wanted or self._is_checked_since(newest)
        return (is_wanted and len(alike) <= lifecycle.MAX_REPEATS) or self._has_news(newest)

    def _is_checked_since(self, task: Task) -> bool:
        """Return whether the objective was checked after the task's end."""
        kinds = to_json([events.OBJECTIVE_CHECKED])
        given = {"objective_id": self.objective_id, "task_id": None, "kinds": kinds}
        checked = self.tx.all("newest_events", after_id=0, limit=1, **given)
        return bool(checked) and checked[0]["at_us"] >= _finished_us(task)

    def _has_news(self, task: Task) -> bool:
        """Return whether there is a result that is newer than the task's end."""
        given = {"objective_id": self.objective_id, "after_us": _finished_us(task), "limit": 1}
        return bool(self.tx.all("newest_results", **given))


def _finished_us(task: Task) -> int:
    return 0 if task.finished_at is None else from_time(task.finished_at)


# --------------------------------------------------------------------------------------------------
# Planning, which makes recorded tasks done, or queues them again if they are not answered; and
# finishing a check of the objective.
# --------------------------------------------------------------------------------------------------

MAX_WOKEN = 200  # the most tasks with lacking information that are compared with a new result


# -- recorded tasks
# --------------------------------------------------------------------------------------------------


def apply_plan(
    tx: Transaction,
    objective_id: int,
    tasks: Sequence[Task],
    plan: Planned,
    *,
    ends_planning: bool = False,
) -> tuple[Task, ...]:
    """Carry out the outcome of one planning: add the proposals to the list, make the answered
    recorded tasks done, and queue the others again, behind the tasks that will provide the
    information that they lack. Return the added tasks.

    Args:
        tasks: the recorded tasks that were planned from.
        ends_planning: whether the plan was made under a claim of the planning duty. If so, the next
            planning gets a new number, and with it a new owner name for its steps.
    """
    row = transitions.objective_row(tx, objective_id)
    progress = transitions.Progress.of(row)
    is_open = row["status"] != ObjectiveStatus.ENDED
    unanswered = {one.task_id: one for one in plan.unanswered}
    lacking = [task for task in tasks if _is_tried_again(task, unanswered)]
    wanted = plan.proposals if is_open else ()
    unhelpful = {
        task.id: unanswered[task.id].shown if task.lack is None else task.lack.shown
        for task in lacking
    }
    batch = add_proposals(tx, objective_id, wanted, unhelpful=unhelpful)
    _note_plan(tx, objective_id, plan, tasks)
    for task in tasks:
        own = batch.ids_from(task.id)
        named = unanswered.get(task.id)
        n_added = sum(new.parent_id == task.id for new in batch.added)
        if task.finished_at is None:  # else its own author has planned from the result already
            progress = progress.after_try(
                is_answered=named is None and task.lack is None,
                is_repeat=task.id in plan.repeats
                and not tx.all("dependents", objective_id=objective_id, task_id=task.id),
                n_added=n_added,
            )
        if task in lacking:
            after = [] if named is None else batch.resolve(named.after)
            _requeue(tx, task, named, after=[*own, *after])
            continue
        if named is not None:
            _keep_in_part(tx, task, lack=named.lack)
        n_barren, n_duplicates = progress.n_tasks_without_progress, len(own) - n_added
        data = {"n_added": n_added, "n_duplicates": n_duplicates, "n_barren": n_barren}
        transitions.free_task(tx, task, events.TASK_DONE, to=TaskStatus.DONE, data=data)
    if ends_planning:
        tx.run("finish_plan", objective_id=objective_id, **asdict(progress))
    elif progress != transitions.Progress.of(row):
        tx.run("count_progress", objective_id=objective_id, **asdict(progress))
    if is_open:
        _ask_for_check(tx, objective_id, tasks, plan, progress)
    return batch.added


def _ask_for_check(
    tx: Transaction,
    objective_id: int,
    tasks: Sequence[Task],
    plan: Planned,
    progress: transitions.Progress,
) -> None:
    """Let the objective be checked if the plan says that it is met, or nothing new came for long;
    but only after new answers, because the last check decided otherwise."""
    is_barren = progress.n_tasks_without_progress >= lifecycle.MAX_TASKS_WITHOUT_PROGRESS
    if not (plan.is_met or (is_barren and progress.n_answers)):
        return
    if progress.n_answers <= transitions.read_objective(tx, objective_id).checks.n_answers:
        return
    tx.run("set_claimed_met", objective_id=objective_id)
    if plan.is_met:
        task_id = tasks[-1].id if tasks else None
        kind = events.OBJECTIVE_CLAIMED_MET
        transitions.append_event(tx, objective_id, kind, task_id, task_id=task_id)


def _is_tried_again(task: Task, unanswered: Collection[int]) -> bool:
    """Return whether the recorded task goes on: it lacks something, or planning calls its result
    unanswered. The result of the last allowed try stays, as an answer in part: it is worth more
    than none."""
    may_go_on = task.n_lacks + 1 < lifecycle.MAX_LACKS
    return task.lack is not None or (task.id in unanswered and may_go_on)


def _note_plan(tx: Transaction, objective_id: int, plan: Planned, tasks: Sequence[Task]) -> None:
    """Append an event for each proposal that was left out (`Planned.dropped`), and one if planning
    failed."""
    for name in plan.dropped:
        shown = lifecycle.storable(name, max_chars=500)
        transitions.append_event(tx, objective_id, events.TASK_PROPOSAL_DROPPED, name=shown)
    if plan.failure:
        reason = lifecycle.storable(plan.failure, max_chars=500)
        task_ids = [task.id for task in tasks]
        transitions.append_event(
            tx, objective_id, events.PLAN_FAILED, task_ids=task_ids, reason=reason
        )


def wake_lacking(tx: Transaction, lacking: Sequence[Task], result: Result) -> None:
    """Make the tasks `lacking` claimable whose missing information this result contains. A task
    goes on waiting if a task that it waits for asks about that information in its name."""
    text = f"{result.task_name}\n{result.text}"
    for task in lacking:
        wanted = find_marks(_lacking_of(task)) - find_marks(task.name)
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
        transitions.append_task_event(tx, task, events.TASK_AFTER_DROPPED, by=result.task_id)


def _requeue(
    tx: Transaction, task: Task, named: Unanswered | None, *, after: Sequence[int]
) -> None:
    """Queue a recorded task again as a new try, after the tasks that will provide the information
    that it lacks. After its last allowed try, make it dead instead.

    Args:
        named: what planning found missing in the task's result; None if the task's own try
            recorded what it lacked.
        after: the ids of the tasks to wait for, besides those that it waited for before.
    """
    objective_id = task.objective_id
    if task.lack is None and named is not None:  # the task has a result that does not answer it
        result = _result_of(tx, task)
        found = result.text if result.lack else ""
        tx.run("delete_result", objective_id=objective_id, task_id=task.id)
        tx.run("delete_vectors", objective_id=objective_id, task_id=task.id)
        lack = Lack(what=named.lack, shown=named.shown, found=found)
        task = lifecycle.lacked(task, lack=lack)
        _note_lacked(tx, task)
    if task.n_lacks >= lifecycle.MAX_LACKS:
        _give_up_lacking(tx, task)
        return
    kept = [task_id for task_id in dict.fromkeys((*task.after, *after)) if task_id != task.id]

    def blockers_of(task_id: int) -> list[int]:
        found = tx.all("blockers", objective_id=objective_id, task_id=task_id)
        return [row["id"] for row in found]

    closing = [task_id for task_id in kept if reaches(task_id, task.id, blockers_of)]
    for task_id in closing:
        transitions.append_task_event(tx, task, events.TASK_AFTER_DROPPED, named=str(task_id))
    set_after(tx, objective_id, task.id, [task_id for task_id in kept if task_id not in closing])
    task = replace(task, try_no=task.try_no + 1)
    if transitions.free_task(tx, task, to=TaskStatus.QUEUED) is TaskStatus.QUEUED:
        data = {"try_no": task.try_no, "waits_for": blockers_of(task.id)}
        transitions.append_task_event(tx, task, events.TASK_REQUEUED, **data)


def _result_of(tx: Transaction, task: Task) -> Result:
    rows = tx.all("results_of", objective_id=task.objective_id, task_ids=to_json([task.id]))
    return result_from_row(rows[0])


def _keep_in_part(tx: Transaction, task: Task, *, lack: str) -> None:
    """Record that the task's result answers it only in part."""
    lack = lifecycle.storable(lack, max_chars=lifecycle.MAX_DETAIL_CHARS)
    values = result_to_values(replace(_result_of(tx, task), lack=lack))
    columns = ("objective_id", "task_id", "lack", "checksum")
    tx.run("mark_result", **{column: values[column] for column in columns})


def _note_lacked(tx: Transaction, task: Task) -> None:
    data = {"lack": _lacking_of(task), "n_lacks": task.n_lacks}
    transitions.append_task_event(tx, task, events.TASK_LACKED, **data)


def _give_up_lacking(tx: Transaction, task: Task) -> None:
    error = f"after {task.n_lacks} tries it still lacked: {_lacking_of(task)}"
    task = replace(task, error=lifecycle.storable(error, max_chars=lifecycle.MAX_DETAIL_CHARS))
    transitions.free_task(tx, task, to=TaskStatus.DEAD)


def _lacking_of(task: Task) -> str:
    return "" if task.lack is None else task.lack.what


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
    """Record the outcome of a check. End the objective if it is met. If not, add tasks for the
    missing parts, or end the objective when such tasks have brought nothing too often.

    Args:
        wanted: two lists of proposals: one for the missing parts, and a fallback.
    """
    row = transitions.objective_row(tx, objective_id)
    objective = transitions.objective_of(tx, row)
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
    checks = replace(checks, contradictions=checked.contradictions)
    tx.run(
        "finish_check",
        objective_id=objective_id,
        # open parts are a reason to go on
        n_tasks_without_progress=0 if checked.missing or checked.unproven else row["n_barren"],
        checks=to_json(checks),
    )
    missing = [lifecycle.storable(part, max_chars=500) for part in checked.missing]
    transitions.append_event(
        tx,
        objective_id,
        events.OBJECTIVE_CHECKED,
        is_met=is_met,
        reason=detail,
        n_parts=len(checked.parts) - len(checked.unproven),
        missing=missing,
    )
    if objective.status is ObjectiveStatus.ENDED:
        return
    if is_met and row["is_claimed_met"]:
        transitions.end(tx, objective_id, reason=StopReason.OBJECTIVE_MET, detail=detail)
    elif is_met and is_empty:
        # if the list is not empty, a task was added meanwhile; another check follows when it is
        # done
        transitions.end(tx, objective_id, reason=StopReason.FINISHED, detail=detail)
    if is_met:
        return
    is_in_vain = is_round and lifecycle.is_in_vain(checks)
    if checked.unread and not is_in_vain:
        _plan_again(tx, objective_id, checked.unread)
        return
    added = not is_in_vain and _add_for_missing(tx, objective, wanted, as_first=not is_empty)
    if is_in_vain or (
        is_round and not added and lifecycle.is_in_vain(replace(checks, n_idle=checks.n_idle + 1))
    ):
        transitions.end(tx, objective_id, reason=StopReason.UNMET, detail=detail)


def _plan_again(tx: Transaction, objective_id: int, task_ids: Collection[int]) -> None:
    """Let done tasks wait for planning again, so that the creation agent reads their results."""
    for task_id in task_ids:
        if tx.run("reopen_result", objective_id=objective_id, task_id=task_id):
            tx.run("unsettle_task", objective_id=objective_id, task_id=task_id)


def _add_for_missing(
    tx: Transaction,
    objective: Objective,
    wanted: Sequence[Sequence[Proposal]],
    *,
    as_first: bool,
) -> tuple[Task, ...]:
    """Add tasks for the parts of the objective that a check found missing, and return them.

    Args:
        wanted: two lists of proposals. Those of the first may repeat answered tasks. The second is
            used only if no proposal of the first is added; its proposals must not repeat a task.
        as_first: put them before all other tasks.
    """
    proposed, fallback = wanted
    added = add_proposals(
        tx, objective.id, [replace(one, is_missing=True) for one in proposed]
    ).added
    added = added or add_proposals(tx, objective.id, fallback).added
    if added and as_first:
        put_in_place(tx, objective.id, [task.id for task in added], Place.FIRST)
    return added
