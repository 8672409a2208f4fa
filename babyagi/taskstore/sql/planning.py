"""What becomes of recorded tasks and of proposals: which proposals are new, which repeat a task,
which task waits for which, and what a check of the objective adds or ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from babyagi import events, names
from babyagi.marks import find_marks, held_marks
from babyagi.names import name_sense
from babyagi.tasks import (
    Fence,
    Lack,
    Objective,
    ObjectiveStatus,
    Proposal,
    Result,
    StopReason,
    Task,
    TaskStatus,
    Unanswered,
)
from babyagi.taskstore import lifecycle
from babyagi.taskstore.port import Checked, Plan, Planned
from babyagi.taskstore.sql import transitions
from babyagi.taskstore.sql.database import Row, Transaction
from babyagi.taskstore.sql.rows import (
    checks_to_json,
    from_time,
    result_from_row,
    sealed,
    task_from_row,
    to_json,
    to_time,
)
from babyagi.text import rearm

MAX_NEWS = 50  # results that are searched for what bears on a task that was given up

NOTHING: Mapping[int, Collection[int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """The outcome of the proposals.

    Attributes:
        id_by_place: for each proposal, in their order, the id of the task that it became or
            repeats; None for a blank one.
    """

    plan: Plan
    id_by_place: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A proposal whose name can be stored, with the keys of that name."""

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
    """Add the proposals at the end of the list, in their order. A proposal that repeats a task is
    not added, and an event says so.

    Args:
        unhelpful: by task that lacks something, the ids of the results that stood in its prompt. A
            proposal for that task may repeat these, and must not wait for that task.
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
    """Add the first task of an objective, which is counted already."""
    named = _name(proposal)
    if named is not None:
        _Batch(tx=tx, objective_id=objective_id, last_id=0, named=[named], new={1: named}).insert()


def set_after(tx: Transaction, objective_id: int, task_id: int, after: Sequence[int]) -> Task:
    """Let the task come after these tasks and no others. Return the changed task."""
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
    """Return the task ids that `after` names, for a task that exists already. Names that match no
    task are left out.

    Args:
        entered: the outcome of the proposals that `after` may name.
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
    """Return whether the task `after_id` waits for this task, directly or through other open
    tasks.
    """
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
    """Return whether a result may help with a task of this name: it contains one of the name's
    marks, or the name has none."""
    marks = find_marks(name)
    return not marks or bool(held_marks(text, marks))


def ask(tx: Transaction, fence: Fence, task_ids: Sequence[int]) -> None:
    """Announce the queries that recording a plan reads."""
    objective_id = fence.objective_id
    transitions.prefetch_free_task(tx, objective_id)
    for task_id in task_ids:
        tx.ask("task", objective_id=objective_id, task_id=task_id)


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
    return _Named(
        proposal=replace(proposal, name=name, origins=origins),
        key=_key_of(name),
        sense=name_sense(rearm(name)),
    )


def _alike(objective_id: int, one: _Named) -> dict[str, Any]:
    return {"objective_id": objective_id, "name_key": one.key, "sense": one.sense}


def _key_of(name: str) -> str:
    """Return the key of a name. A name has the same key in the form in which a prompt shows it."""
    return names.name_key(rearm(name) or name)


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Proposals that are being added to the list.

    Attributes:
        ids: for each proposal, in their order, the id of the task that it becomes or repeats; None
            for a blank one. last_id: the last task that existed before them.
    """

    tx: Transaction
    objective_id: int
    last_id: int
    named: Sequence[_Named | None]
    unhelpful: Mapping[int, Collection[int]] = field(default_factory=dict)
    ids: list[int | None] = field(default_factory=list)
    new: dict[int, _Named] = field(default_factory=dict)  # by the id that it gets
    # ids of the new tasks, by key and by sense
    id_by_word: dict[str, int | None] = field(default_factory=dict)
    after_by_id: dict[int, list[int]] = field(default_factory=dict)

    def number(self, *, allow_duplicates: bool) -> None:
        """Find the task id of every proposal: a new one, or that of the task that it repeats."""
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
        """Write all new tasks first, then what they come after, because each may name another."""
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
        """Return a new task, after its dependencies were written."""
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
        """Append an event for each proposal that was not added, and return their names."""
        names = []
        for one, task_id in zip(self.named, self.ids, strict=True):
            if one is not None and self.new.get(task_id or 0) is not one:
                names.append(one.proposal.name)
                data = {"name": one.proposal.name, "repeats": task_id}
                transitions.append_event(
                    self.tx,
                    self.objective_id,
                    events.TASK_DUPLICATE_DROPPED,
                    one.proposal.parent_id,
                    **data,
                )
        return tuple(names)

    def meant(self, named: int | str) -> int | None:
        """Return the id of the task that a dependency names: by id, by the label or the name of
        another proposal, or by the name of a task in the list. None when there is none."""
        if isinstance(named, int):
            return named if 0 < named <= self.last_id else None
        name = lifecycle.storable_line(named, max_chars=lifecycle.MAX_NAME_CHARS)
        label = name.casefold()
        if not label:
            return None
        key, sense = _key_of(name), name_sense(rearm(name))
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
        """Return the ids that a new task comes after. A dependency that cannot be kept is dropped,
        and an event says so."""
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
        """Return whether the task `start` comes after the task `goal`, directly or through other
        new tasks."""
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
        """Return the id of the task that the proposal repeats: another proposal, or a task of the
        list that must not be repeated now. None when there is none."""
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
        """Return whether a task that is not open may be repeated: its answer did not help, the part
        that it answers is still missing, or a newer result bears on it."""
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
# What becomes of recorded tasks: done with new tasks, or queued again because they are not
# answered; and what becomes of the list's checks.
# --------------------------------------------------------------------------------------------------

MAX_WOKEN = 200  # tasks that wait for what they lacked, and are compared with each new result


# -- recorded tasks
# --------------------------------------------------------------------------------------------------


def apply(
    tx: Transaction,
    objective_id: int,
    tasks: Sequence[Task],
    plan: Planned,
    *,
    ends_planning: bool = False,
) -> Plan:
    """Finish the recorded tasks that are answered, queue the others again to wait for what they
    lack, and add the proposals to the list.

    Args:
        ends_planning: finish the duty as well, so that the next planning has a new owner.
    """
    row = transitions.objective_row(tx, objective_id)
    progress = transitions.Progress.of(row)
    is_open = row["status"] != ObjectiveStatus.ENDED
    unanswered = {one.task_id: one for one in plan.unanswered}
    lacking = [task for task in tasks if task.lack is not None or task.id in unanswered]
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
            _requeue(tx, row, task, named, after=[*own, *after])
        else:
            is_repeat = task.id in plan.repeats and not _is_awaited(tx, task)
            progress = progress.after_answer(n_added=n_added, is_repeat=is_repeat)
            _finish(tx, row, task, n_added=n_added, n_duplicates=len(own) - n_added, after=progress)
    if ends_planning:
        tx.run("finish_plan", objective_id=objective_id, **asdict(progress))
    elif progress != transitions.Progress.of(row):
        transitions.put_progress(tx, objective_id, progress)
    if plan.is_met and is_open:
        claim_met(tx, objective_id, task_id=tasks[-1].id if tasks else None)
    return entered.plan


def _tell_of(tx: Transaction, objective_id: int, plan: Planned, tasks: Sequence[Task]) -> None:
    """Append events that say which proposals were left out of the plan, or why there is none."""
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
    """Note the claim that the objective is met, unless a check has refuted it and nothing was
    answered since."""
    row = transitions.objective_row(tx, objective_id)
    checks = transitions.read_objective(tx, objective_id).checks
    if row["n_answers"] > checks.n_answers:
        tx.run("set_claimed_met", objective_id=objective_id)
        transitions.append_event(
            tx, objective_id, events.OBJECTIVE_CLAIMED_MET, task_id, task_id=task_id
        )


def record_lack(tx: Transaction, task: Task) -> Task:
    """Record that the try of a held task lacked something. It then waits for planning, or is given
    up."""
    transitions.append_event(
        tx, task.objective_id, events.TASK_LACKED, task.id, lack=_what(task), n_lacks=task.n_lacks
    )
    if task.n_lacks >= lifecycle.MAX_LACKS:
        transitions.count_no_answer(tx, task.objective_id)
        return _give_up(tx, task)
    return transitions.free_task(tx, replace(task, status=TaskStatus.RECORDED))


def ask_lacking(tx: Transaction, objective_id: int) -> None:
    tx.ask("blocked_lacking", objective_id=objective_id, limit=MAX_WOKEN)


def find_lacking(tx: Transaction, objective_id: int) -> list[Task]:
    """Return the tasks that wait for what they lacked."""
    rows = tx.all("blocked_lacking", objective_id=objective_id, limit=MAX_WOKEN)
    return [task_from_row(row) for row in rows]


def wake(tx: Transaction, lacking: Sequence[Task], result: Result) -> None:
    """Free the tasks that lack what this result holds, so that they can be claimed again. A task
    stays if one of the tasks that it waits for names a part of it."""
    text = f"{result.task_name}\n{result.text}"
    for task in lacking:
        wanted = find_marks(_what(task)) - find_marks(task.name)
        if not wanted or held_marks(text, wanted) != wanted:
            continue
        blockers = [
            task_from_row(found)
            for found in tx.all("blockers", objective_id=task.objective_id, task_id=task.id)
        ]
        if held_marks("\n".join(blocked_reason.name for blocked_reason in blockers), wanted):
            continue
        kept = [
            task_id
            for task_id in task.after
            if task_id not in {blocked_reason.id for blocked_reason in blockers}
        ]
        set_after(tx, task.objective_id, task.id, kept)
        transitions.append_event(
            tx, task.objective_id, events.TASK_WOKEN, task.id, by=result.task_id
        )


def _is_awaited(tx: Transaction, task: Task) -> bool:
    return bool(tx.all("dependents", objective_id=task.objective_id, task_id=task.id))


def _finish(
    tx: Transaction,
    row: Row,
    task: Task,
    *,
    n_added: int,
    n_duplicates: int,
    after: transitions.Progress,
) -> None:
    transitions.free_task(tx, replace(task, status=TaskStatus.DONE), row=row)
    n_barren = after.n_tasks_without_progress
    data = {"n_added": n_added, "n_duplicates": n_duplicates, "n_barren": n_barren}
    transitions.append_event(tx, task.objective_id, events.TASK_DONE, task.id, **data)


def _requeue(
    tx: Transaction, row: Row, task: Task, named: Unanswered | None, *, after: Sequence[int]
) -> None:
    """Queue a task again as a new try, after the tasks that bring what it lacks."""
    objective_id = task.objective_id
    if task.lack is None and named is not None:  # it has a result, which is no answer
        tx.run("delete_result", objective_id=objective_id, task_id=task.id)
        tx.run("delete_vectors", objective_id=objective_id, task_id=task.id)
        task = lifecycle.lacked(task, lack=Lack(what=named.lack, shown=named.shown))
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
    written = transitions.free_task(
        tx, replace(task, status=TaskStatus.QUEUED, try_no=task.try_no + 1), row=row
    )
    if written.status is not TaskStatus.QUEUED:
        transitions.note_freed(tx, written)
        return
    blockers = [row["id"] for row in tx.all("blockers", objective_id=objective_id, task_id=task.id)]
    transitions.append_event(
        tx, objective_id, events.TASK_REQUEUED, task.id, try_no=written.try_no, waits_for=blockers
    )


def _give_up(tx: Transaction, task: Task) -> Task:
    error = lifecycle.storable(
        f"after {task.n_lacks} tries it still lacked: {_what(task)}",
        max_chars=lifecycle.MAX_DETAIL_CHARS,
    )
    written = transitions.free_task(tx, replace(task, status=TaskStatus.DEAD, error=error))
    if written.status is TaskStatus.DEAD:
        transitions.append_event(tx, task.objective_id, events.TASK_DEAD, task.id, error=error)
    transitions.note_freed(tx, written)
    return written


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
    """End the objective when the check found it met. Otherwise add tasks for what is missing, or
    end it when that was in vain too often."""
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
        # otherwise somebody has added a task meanwhile; the list is checked again when it is done
        transitions.end(tx, objective_id, reason=StopReason.FINISHED, detail=detail)
    if is_met:
        return
    is_in_vain = is_round and lifecycle.is_in_vain(checks)
    added = () if is_in_vain else _add_for_missing(tx, objective, wanted)
    if is_in_vain or (
        is_round and not added and lifecycle.is_in_vain(replace(checks, n_idle=checks.n_idle + 1))
    ):
        transitions.end(tx, objective_id, reason=StopReason.UNMET, detail=detail)


def _add_for_missing(
    tx: Transaction, objective: Objective, wanted: Sequence[Sequence[Proposal]]
) -> tuple[Task, ...]:
    """Add the proposals for the missing parts, which may repeat answered tasks. When none is added,
    add those of the fallback that were not done yet."""
    proposed, fallback = wanted
    added = enter(tx, objective.id, [replace(one, is_missing=True) for one in proposed]).plan.added
    return added or enter(tx, objective.id, fallback).plan.added
