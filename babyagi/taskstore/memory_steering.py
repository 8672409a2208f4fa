"""What a person changes in the task store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from babyagi import log
from babyagi.tasks import Place, Proposal, Task, TaskStatus
from babyagi.taskstore import rules, steering
from babyagi.taskstore.base import Plan
from babyagi.taskstore.memory_book import Book


class MemorySteering(ABC):
    """Add, move, replace, cancel, retry."""

    _clock: Callable[[], datetime]

    @abstractmethod
    def _book(self, objective_id: int) -> Book:
        """Raises `NotFoundError`."""

    async def add_tasks(
        self, objective_id: int, proposals: Sequence[Proposal], *, allow_duplicates: bool = True, to: Place = Place.LAST
    ) -> Plan:
        book, now = self._book(objective_id), self._clock()
        steering.require_open(objective_id, book.objective.status)
        plan = book.add(now, book.sift(proposals, allow_duplicates=allow_duplicates), parent_id=None)
        if plan.added:
            book.n_barren = 0
        if to is not Place.LAST and plan.added:
            self._put(book, now, [task.id for task in plan.added], to)
        return replace(plan, added=tuple(book.tasks[task.id] for task in plan.added))

    async def move_task(self, objective_id: int, task_id: int, *, to: Place | int) -> Task:
        book = self._book(objective_id)
        steering.require_changeable(book.task(task_id))
        if not isinstance(to, Place):
            book.task(to)
        self._put(book, self._clock(), [task_id], to)
        return book.tasks[task_id]

    def _put(self, book: Book, now: datetime, moved: Sequence[int], to: Place | int) -> None:
        listed = book.listed(rules.CANCELLABLE)
        wanted = steering.put_at([task.id for task in listed], moved, to)
        for task_id, rank in rules.deal_ranks([(task.id, task.rank) for task in listed], wanted).items():
            book.tasks[task_id] = replace(book.tasks[task_id], rank=rank)
        book.objective = replace(book.objective, order_revision=book.objective.order_revision + 1)
        for task_id in moved:
            book.note(now, log.TASK_MOVED, task_id, to=to)

    async def replace_task(self, objective_id: int, task_id: int, *, name: str) -> Task:
        book, now = self._book(objective_id), self._clock()
        old = book.task(task_id)
        steering.require_changeable(old)
        proposal = steering.replacement(old, name)
        sifted = rules.Sifted(proposal=proposal, key=rules.name_key(proposal.name), is_duplicate=False)
        new = book.add(now, [sifted], parent_id=None).added[0]
        for other in book.listed(rules.CANCELLABLE):
            if old.id in other.after:
                book.tasks[other.id] = replace(other, after=tuple(new.id if named == old.id else named for named in other.after))
        book.tasks[new.id] = replace(new, rank=old.rank)
        book.tasks[old.id] = replace(old, rank=new.rank, status=TaskStatus.CANCELLED, not_before=None)
        book.n_barren = 0
        book.note(now, log.TASK_CANCELLED, old.id, replaced_by=new.id)
        return book.tasks[new.id]

    async def cancel_task(self, objective_id: int, task_id: int) -> Task:
        book = self._book(objective_id)
        task = book.task(task_id)
        steering.require_changeable(task)
        book.tasks[task_id] = replace(task, status=TaskStatus.CANCELLED, not_before=None)
        book.note(self._clock(), log.TASK_CANCELLED, task_id)
        return book.tasks[task_id]

    async def retry_task(self, objective_id: int, task_id: int) -> Task:
        book, now = self._book(objective_id), self._clock()
        task = book.task(task_id)
        steering.require_dead(task)
        steering.require_reopenable(objective_id, book.objective.stop_reason)
        book.tasks[task_id] = replace(
            task, status=TaskStatus.QUEUED, failures=0, try_no=task.try_no + 1, error="", finished_at=None, not_before=None
        )
        book.n_barren = 0
        book.note(now, log.TASK_RETRIED, task_id, try_no=task.try_no + 1)
        if book.objective.stop_reason is not None:
            book.reopen(now)
        return book.tasks[task_id]
