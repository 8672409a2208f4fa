"""The journal's steps, and the index's duty, of the task store in memory."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from babyagi import log
from babyagi.tasks import Fence, Objective, Reservation, Result, Step, StepState, TaskStatus, Usage
from babyagi.taskstore import changes, full_text, rules
from babyagi.taskstore.base import Verification
from babyagi.taskstore.memory_book import Book

_WORD = re.compile(r"[^\W_]+")


class MemorySteps(ABC):
    """Intend, record, abandon; and what the result store is fed with."""

    _clock: Callable[[], datetime]

    @abstractmethod
    def _book(self, objective_id: int) -> Book:
        """Raises `NotFoundError`."""

    @abstractmethod
    def _fenced(self, fence: Fence) -> Book:
        """Raises `LeaseLostError` when the objective is gone."""

    @abstractmethod
    def _read(self, book: Book) -> Objective: ...

    async def intend_step(self, fence: Fence, *, key: str, kind: str, request_hash: str, reservation: Reservation, model: str = "") -> Step:
        book, now, at = self._fenced(fence), self._clock(), (fence.owner, key)
        book.check_fence(fence)
        known = book.steps.get(at)
        if known is not None and (known.state is StepState.DONE or (at in book.open_steps and known.claim_no == fence.claim_no)):
            return known
        wanted = rules.countable_reservation(reservation)
        rules.require_call_allowed(self._read(book), owner=fence.owner, reservation=wanted)
        step = known or changes.new_step(fence, key=key, at=now)
        step = replace(step, kind=kind, request_hash=request_hash, model=model, reservation=wanted, claim_no=fence.claim_no)
        step = book.keep_step(step)
        book.open_steps.add(at)
        book.note(now, log.STEP_INTENDED, changes.task_of(fence.owner), owner=fence.owner, key=key, kind=kind, model=model)
        return step

    async def record_step(self, fence: Fence, *, key: str, output: str, usage: Usage, model: str = "", origins: Sequence[str] = ()) -> Step:
        book, now, at = self._book(fence.objective_id), self._clock(), (fence.owner, key)
        known = book.steps.get(at)
        if known is not None and changes.is_repeated(known, claim_no=fence.claim_no, is_held=at in book.open_steps):
            return known
        step = known or changes.new_step(fence, key=key, at=now)
        if at in book.open_steps and step.claim_no == fence.claim_no:
            step = replace(step, reservation=Reservation())
            book.open_steps.discard(at)
        step, counted = changes.count_usage(step, usage, claim_no=fence.claim_no)
        step = changes.done_step(step, output=output, model=model, origins=origins, at=now)
        is_confirmed = step.state is StepState.DONE and known is not None and known.state is StepState.UNKNOWN
        step = book.keep_step(step)
        book.charge(fence.owner, counted)
        data = changes.step_data(replace(step, model=model or step.model), counted)
        task_id = changes.task_of(fence.owner)
        book.note(now, log.STEP_RECORDED, task_id, **data)
        if is_confirmed and task_id in book.tasks and book.tasks[task_id].status is TaskStatus.WAITING:
            book.wake(now, task_id)
        return step

    async def abandon_step(self, fence: Fence, *, key: str, usage: Usage) -> None:
        book, now, at = self._book(fence.objective_id), self._clock(), (fence.owner, key)
        known = book.steps.get(at)
        step = known or changes.new_step(fence, key=key, at=now)
        if at in book.open_steps and step.claim_no == fence.claim_no:
            step = replace(step, reservation=Reservation())
            book.open_steps.discard(at)
        step, counted = changes.count_usage(step, usage, claim_no=fence.claim_no)
        if changes.is_forgettable(step, claim_no=fence.claim_no):
            book.steps.pop(at, None)
        elif known is not None:
            book.steps[at] = step
        book.charge(fence.owner, counted)
        book.note(now, log.STEP_ABANDONED, changes.task_of(fence.owner), **changes.step_data(step, counted))

    async def put_step(self, fence: Fence, *, key: str, kind: str, request_hash: str, output: str, origins: Sequence[str] = ()) -> Step:
        book, now, at = self._fenced(fence), self._clock(), (fence.owner, key)
        book.check_fence(fence)
        if at in book.steps:
            return book.steps[at]
        step = replace(changes.new_step(fence, key=key, at=now), kind=kind, request_hash=request_hash)
        step = book.keep_step(changes.done_step(step, output=output, model="", origins=origins, at=now))
        book.note(now, log.STEP_RECORDED, changes.task_of(fence.owner), **changes.step_data(step, Usage()))
        return step

    async def steps(self, objective_id: int, *, owner: str) -> list[Step]:
        return [step for (of, _), step in self._book(objective_id).steps.items() if of == owner]

    @abstractmethod
    def _all_books(self) -> list[Book]: ...

    async def verify(self, objective_id: int | None = None) -> Verification:
        books = self._all_books() if objective_id is None else [self._book(objective_id)]
        n_steps, n_results = sum(len(book.steps) for book in books), sum(len(book.results) for book in books)
        return Verification(n_steps=n_steps, n_results=n_results, damages=())

    # -- the duty to index -------------------------------------------------------------------------------------------------

    async def unindexed_results(self, objective_id: int, *, limit: int) -> list[Result]:
        return list(self._book(objective_id).unindexed.values())[:limit]

    async def mark_indexed(self, objective_id: int, *, task_ids: Sequence[int]) -> None:
        book = self._book(objective_id)
        marked = [task_id for task_id in dict.fromkeys(task_ids) if book.unindexed.pop(task_id, None) is not None]
        if marked:
            book.note(self._clock(), log.RESULTS_INDEXED, n=len(marked), n_owed=len(book.unindexed))

    async def owe_index(self, objective_id: int) -> None:
        book = self._book(objective_id)
        book.unindexed = dict(book.results)

    async def find_words(self, objective_id: int, *, words: Sequence[str], limit: int) -> list[int]:
        wanted = {word.casefold() for word in words}
        found = [
            (word, task_id, len(result.text))
            for task_id, result in self._book(objective_id).results.items()
            for word in set(_WORD.findall(result.text.casefold())) & wanted
        ]
        rare = full_text.choose_words(Counter(word for word, _, _ in found))
        return full_text.order_by_words(entry for entry in found if entry[0] in rare)[:limit]

    async def store_vectors(self, objective_id: int, *, space: str, vectors: Mapping[int, bytes]) -> None:
        self._book(objective_id).vectors.setdefault(space, {}).update(vectors)

    async def vectors(self, objective_id: int, *, space: str, task_ids: Sequence[int] | None = None) -> Mapping[int, bytes]:
        known = self._book(objective_id).vectors.get(space, {})
        return {task_id: known[task_id] for task_id in sorted(known) if task_ids is None or task_id in task_ids}
