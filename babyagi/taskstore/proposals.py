"""How proposed tasks enter the list: which of them are there already, and what each comes after.

Everything is judged in the transaction that adds them, so what others proposed meanwhile counts as
well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from babyagi import log
from babyagi.disarm import rearm
from babyagi.tasks import Proposal, Task, TaskStatus
from babyagi.taskstore import moves, rules
from babyagi.taskstore.base import Plan
from babyagi.taskstore.database import Transaction
from babyagi.taskstore.rows import from_time, result_from_row, sealed, task_from_row, to_json
from babyagi.text import find_marks, held_marks, name_sense

MAX_NEWS = 50  # results that are looked at for what bears on a task that was given up

NOTHING: Mapping[int, Collection[int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """What became of the proposals. `id_by_place` is, in their order, the task that each became or
    repeats, None where it was blank."""

    plan: Plan
    id_by_place: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A proposal with a name that can be stored, and what it is known by."""

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
    """Put the proposals at the end of the list, in their order; what repeats a task is not added,
    and an event says so.

    Args:
        unhelpful: by task that lacks something, the results that stood in its prompt: what is
            proposed for it may repeat these, and nothing of it may wait for it.
    """
    last_id = moves.objective_row(tx, objective_id)["last_task_id"]
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


def set_after(tx: Transaction, objective_id: int, task_id: int, after: Sequence[int]) -> Task:
    """Let the task come after these, and after nothing else."""
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
    """The ids that `after` means, for a task that is there already; what it does not mean is left
    out.

    Args:
        entered: what became of the proposals that it may name.
    """
    last_id = moves.objective_row(tx, objective_id)["last_task_id"] - len(entered.plan.added)
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
    """Whether the other task waits, over any number of tasks that are still to be done, for this
    one."""
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
    """Whether a result may help with a task of this name: it holds one of the name's marks, or the
    name has none."""
    marks = find_marks(name)
    return not marks or bool(held_marks(text, marks))


# -- the proposals of one commit
# -------------------------------------------------------------------------------------------------


def _name(proposal: Proposal) -> _Named | None:
    name = rules.one_line(
        proposal.name, max_chars=None if proposal.origins == ("person",) else rules.MAX_NAME_CHARS
    )
    if not name:
        return None
    origins = tuple(rules.storable(origin) for origin in proposal.origins)
    return _Named(
        proposal=replace(proposal, name=name, origins=origins),
        key=_key_of(name),
        sense=name_sense(rearm(name)),
    )


def _key_of(name: str) -> str:
    """The key of a name, the same for the name as a prompt shows it."""
    return rules.name_key(rearm(name) or name)


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Proposals on their way into the list. `ids` is, in their order, the task that each becomes or
    repeats, None for a blank one; `last_id` is the last task that was there before them."""

    tx: Transaction
    objective_id: int
    last_id: int
    named: Sequence[_Named | None]
    unhelpful: Mapping[int, Collection[int]] = field(default_factory=dict)
    ids: list[int | None] = field(default_factory=list)
    new: dict[int, _Named] = field(default_factory=dict)  # by the id that it gets
    # of the new ones, by key and by sense
    id_by_word: dict[str, int | None] = field(default_factory=dict)
    after_by_id: dict[int, list[int]] = field(default_factory=dict)

    def number(self, *, allow_duplicates: bool) -> None:
        """Give every proposal its task: a new one, or the one that it repeats."""
        for one in self.named:
            known_id = None if one is None or allow_duplicates else self._find_repeated(one)
            if one is not None and known_id is None:
                known_id = self.last_id + len(self.new) + 1
                self.new[known_id] = one
                self.id_by_word.setdefault(one.key, known_id)
                self.id_by_word.setdefault(one.sense, known_id)
            self.ids.append(known_id)
        if self.new:
            self.tx.all("next_task_ids", objective_id=self.objective_id, n=len(self.new))

    def insert(self) -> tuple[Task, ...]:
        """Write the new tasks, all of them before what they come after: each may name another."""
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
        added = [
            set_after(self.tx, self.objective_id, task_id, self._after(one, task_id))
            for task_id, one in self.new.items()
        ]
        for task in added:
            data = {"name": task.name, "parent_id": task.parent_id, "after": list(task.after)}
            moves.append_event(self.tx, self.objective_id, log.TASK_ADDED, task.id, **data)
        return tuple(added)

    def note_duplicates(self) -> tuple[str, ...]:
        """Say which proposals were not added; returns their names."""
        names = []
        for one, task_id in zip(self.named, self.ids, strict=True):
            if one is not None and self.new.get(task_id or 0) is not one:
                names.append(one.proposal.name)
                data = {"name": one.proposal.name, "repeats": task_id}
                moves.append_event(
                    self.tx,
                    self.objective_id,
                    log.TASK_DUPLICATE_DROPPED,
                    one.proposal.parent_id,
                    **data,
                )
        return tuple(names)

    def meant(self, named: int | str) -> int | None:
        """The task that a dependency names: by id, by the label or the name of another proposal, or
        by the name of a listed task."""
        if isinstance(named, int):
            return named if 0 < named <= self.last_id else None
        name = rules.one_line(named, max_chars=rules.MAX_NAME_CHARS)
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
        """What a new task comes after; a dependency that cannot be kept falls away, and an event
        says so."""
        after = self.after_by_id.setdefault(task_id, [])
        for named in one.proposal.after:
            meant = self.meant(named)
            waits_for_this = meant in self.unhelpful and meant == one.proposal.parent_id
            if meant is None or waits_for_this or self._leads(meant, task_id):
                named_text = rules.storable(str(named), max_chars=200)
                moves.append_event(
                    self.tx, self.objective_id, log.TASK_AFTER_DROPPED, task_id, named=named_text
                )
            elif meant not in after:
                after.append(meant)
        return after

    def _leads(self, start: int, goal: int) -> bool:
        """Whether a new task comes, over any number of others, after the goal."""
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
        """The task that the proposal repeats: one that is proposed with it, or one of the list that
        must not come again now."""
        proposed = self.id_by_word.get(one.key) or self.id_by_word.get(one.sense)
        if proposed:
            return proposed
        rows = self.tx.all(
            "alike", objective_id=self.objective_id, name_key=one.key, sense=one.sense
        )
        alike = [task_from_row(row) for row in rows]
        if not alike:
            return None
        undone = next((task.id for task in alike if task.status in rules.OPEN), None)
        return undone or (None if self._may_come_again(one, alike) else alike[-1].id)

    def _may_come_again(self, one: _Named, alike: Sequence[Task]) -> bool:
        """Whether a task may be repeated that is not open: its answer did not help, its part is
        missing, or there is news for it."""
        newest, shown = alike[-1], self.unhelpful.get(one.proposal.parent_id or 0, ())
        if newest.status is TaskStatus.CANCELLED or len(alike) > rules.MAX_REPEATS_IN_ALL:
            return False
        is_wanted = one.proposal.is_missing or any(task.id in shown for task in alike)
        if newest.status is TaskStatus.DONE and not is_wanted:
            return False
        return (is_wanted and len(alike) <= rules.MAX_REPEATS) or self._has_news(newest)

    def _has_news(self, task: Task) -> bool:
        after_us = 0 if task.finished_at is None else from_time(task.finished_at)
        rows = self.tx.all(
            "newest_results", objective_id=self.objective_id, after_us=after_us, limit=MAX_NEWS
        )
        return any(
            bears_on(task.name, f"{result.task_name}\n{result.text}")
            for result in map(result_from_row, rows)
        )
