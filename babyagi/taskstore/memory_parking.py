"""Tasks that wait for a person, in the task store in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from babyagi import log
from babyagi.tasks import Fence, Objective, Reservation, Step, StepState, TaskStatus, Usage
from babyagi.taskstore import changes, rules
from babyagi.taskstore.memory_book import Book


class MemoryParking(ABC):
    """Intend once, park, look into the inbox, answer."""

    _clock: Callable[[], datetime]

    @abstractmethod
    def _all_books(self) -> list[Book]: ...

    @abstractmethod
    def _book(self, objective_id: int) -> Book:
        """Raises `NotFoundError`."""

    @abstractmethod
    def _fenced(self, fence: Fence) -> Book:
        """Raises `LeaseLostError` when the objective is gone."""

    @abstractmethod
    def _read(self, book: Book) -> Objective: ...

    async def intend_once(self, fence: Fence, *, key: str, request: str) -> Step:
        book, now, at = self._fenced(fence), self._clock(), (fence.owner, key)
        book.fenced_task(fence, TaskStatus.RUNNING)
        if at in book.steps:
            if book.steps[at].state is StepState.INTENDED:
                book.leave_unknown(now, at)
            return book.steps[at]
        rules.require_call_allowed(self._read(book), owner=fence.owner, reservation=Reservation())
        step = book.keep_step(changes.open_step(fence, key=key, kind=changes.ONCE, request=request, at=now))
        book.open_steps.add(at)
        book.note(now, log.STEP_INTENDED, changes.task_of(fence.owner), owner=fence.owner, key=key, kind=step.kind, model="")
        return step

    async def park_task(self, fence: Fence, *, key: str, kind: str, request: str) -> Step:
        book, now, at = self._fenced(fence), self._clock(), (fence.owner, key)
        task = book.fenced_task(fence, TaskStatus.RUNNING)
        if at in book.steps and book.steps[at].state is StepState.DONE:
            return book.steps[at]
        if at not in book.steps:
            book.keep_step(replace(changes.open_step(fence, key=key, kind=kind, request=request, at=now), state=StepState.ASKED))
        book.note_freed(now, book.put_down(now, task))
        return book.steps[at]

    async def inbox(self, objective_id: int | None = None) -> list[Step]:
        books = self._all_books() if objective_id is None else [self._book(objective_id)]
        return sorted((step for book in books for step in self._waiting_steps(book)), key=lambda step: step.id)

    @staticmethod
    def _waiting_steps(book: Book) -> list[Step]:
        waiting = {f"task:{task.id}" for task in book.listed([TaskStatus.WAITING])}
        return [step for step in book.steps.values() if step.owner in waiting and changes.is_open(step)]

    async def open_step(self, step_id: int) -> Step:
        found = [step for step in await self.inbox() if step.id == step_id]
        if not found:
            raise changes.not_asked(step_id)
        return found[0]

    async def answer_step(self, step_id: int, *, output: str, origins: Sequence[str] = ("person",)) -> Step:
        step, now = await self.open_step(step_id), self._clock()
        book = self._book(step.objective_id)
        step = book.keep_step(changes.done_step(step, output=output, model="", origins=origins, at=now))
        task_id = changes.task_of(step.owner) or 0
        book.note(now, log.STEP_RECORDED, task_id, **changes.step_data(step, Usage()))
        book.wake(now, task_id)
        return step
