"""The task store in memory: the reference that the durable ones are compared with, and the store of a rehearsal that nobody keeps.

It lives and dies with its process and serves that process only. Every verb runs without awaiting anything, so it is one transaction; it
checks before it changes, so one that raises has changed nothing. Finding a task looks at all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from babyagi import log
from babyagi.errors import NotFoundError, StaleOrderError
from babyagi.tasks import (
    Claim,
    Duty,
    DutyClaim,
    Event,
    Fence,
    Limits,
    Objective,
    ObjectiveSpec,
    ObjectiveStatus,
    Proposal,
    Result,
    StopReason,
    Task,
    TaskStatus,
)
from babyagi.taskstore import changes, rules
from babyagi.taskstore.base import Plan, Window
from babyagi.taskstore.base_workers import Outlook
from babyagi.taskstore.memory_book import Book, Lease
from babyagi.taskstore.memory_parking import MemoryParking
from babyagi.taskstore.memory_steering import MemorySteering
from babyagi.taskstore.memory_steps import MemorySteps
from babyagi.taskstore.memory_workers import MemoryWorkers


class MemoryTaskStore(MemoryWorkers, MemoryParking, MemorySteering, MemorySteps):
    """All the state there is, for one process.

    Args:
        clock: now, as an aware UTC datetime.
        max_failures: after how many failures a task is dead, for workers that die while they hold it.
    """

    def __init__(self, clock: Callable[[], datetime], *, max_failures: int = 3) -> None:
        self._clock = clock
        self._max_failures = max_failures
        self._books: dict[int, Book] = {}
        self._leases: dict[str, Lease] = {}
        self._events: list[Event] = []
        self._n_objectives = 0
        self._n_steps = 0
        self._written = asyncio.Event()

    def _book(self, objective_id: int) -> Book:
        if objective_id not in self._books:
            raise NotFoundError(f"there is no objective {objective_id}", fix="babyagi objectives")
        return self._books[objective_id]

    def _all_books(self) -> list[Book]:
        return list(self._books.values())

    def _fenced(self, fence: Fence) -> Book:
        if fence.objective_id not in self._books:
            raise changes.lost(fence)
        return self._books[fence.objective_id]

    def _read(self, book: Book) -> Objective:
        return book.read(self._clock(), self._leases.values())

    def _next_step_id(self) -> int:
        self._n_steps += 1
        return self._n_steps

    def _append(self, event: Event) -> None:
        self._events.append(replace(event, id=len(self._events) + 1))
        self._written.set()
        self._written = asyncio.Event()

    # -- objectives ------------------------------------------------------------------------------------------------------

    async def create_objective(self, spec: ObjectiveSpec, *, uid: str, always_new: bool = False) -> tuple[Objective, bool]:
        identity = rules.identity_key(spec)
        known = [book for book in self._books.values() if rules.identity_key(book.objective.spec) == identity]
        if known and not always_new:
            return self._read(known[-1]), False
        now = self._clock()
        self._n_objectives += 1
        objective = Objective(id=self._n_objectives, uid=uid, spec=spec, status=ObjectiveStatus.ACTIVE, created_at=now)
        book = self._books[objective.id] = Book(objective=objective, seen_at=now, append=self._append, next_step_id=self._next_step_id)
        book.note(now, log.OBJECTIVE_CREATED, uid=uid)
        book.add(now, [rules.first_task(spec)], parent_id=None)
        return self._read(book), True

    async def objective(self, objective_id: int) -> Objective:
        return self._read(self._book(objective_id))

    async def objectives(self) -> list[Objective]:
        return [self._read(book) for book in self._books.values()]

    async def pause_objective(self, objective_id: int) -> Objective:
        return self._switch(objective_id, ObjectiveStatus.ACTIVE, ObjectiveStatus.PAUSED, log.OBJECTIVE_PAUSED)

    async def resume_objective(self, objective_id: int) -> Objective:
        return self._switch(objective_id, ObjectiveStatus.PAUSED, ObjectiveStatus.ACTIVE, log.OBJECTIVE_RESUMED)

    def _switch(self, objective_id: int, old: ObjectiveStatus, new: ObjectiveStatus, kind: str) -> Objective:
        book, now = self._book(objective_id), self._clock()
        if book.objective.status is old:
            book.carry_time(now, self._leases.values())
            book.objective = replace(book.objective, status=new)
            book.note(now, kind)
        return self._read(book)

    async def end_objective(self, objective_id: int, *, reason: StopReason, detail: str = "") -> Objective:
        book = self._book(objective_id)
        book.end(self._clock(), self._leases.values(), reason=reason, detail=detail)
        return self._read(book)

    async def conclude_objective(self, objective_id: int) -> Objective:
        book = self._book(objective_id)
        objective = self._read(book)
        snapshot = book.snapshot(objective)
        reason = rules.conclude(snapshot) if objective.status is ObjectiveStatus.ACTIVE else None
        if reason is None:
            return objective
        return await self.end_objective(objective_id, reason=reason, detail=rules.explain(reason, snapshot))

    async def extend_objective(self, objective_id: int, *, limits: Limits) -> Objective:
        book, now = self._book(objective_id), self._clock()
        book.objective = replace(book.objective, spec=replace(book.objective.spec, limits=limits))
        book.n_barren = 0
        book.note(now, log.OBJECTIVE_EXTENDED, **asdict(limits))
        if book.objective.stop_reason in rules.REOPENED_BY_EXTENDING:
            book.reopen(now)
        return self._read(book)

    async def delete_objective(self, objective_id: int) -> None:
        book, now = self._book(objective_id), self._clock()
        rules.require_nobody_at_work(objective_id, is_held=self._is_held_by_the_living(book, now))
        del self._books[objective_id]
        for lease in self._leases.values():
            lease.joined.pop(objective_id, None)

    async def change_space(self, objective_id: int, *, model: str, space: str) -> Objective:
        book, now = self._book(objective_id), self._clock()
        rules.require_nobody_at_work(objective_id, is_held=self._is_held_by_the_living(book, now))
        book.objective = replace(book.objective, spec=rules.in_other_space(book.objective.spec, model=model, space=space))
        book.unindexed = dict(book.results)
        book.note(now, log.OBJECTIVE_SPACE_CHANGED, space=space)
        return self._read(book)

    def _is_held_by_the_living(self, book: Book, now: datetime) -> bool:
        holders = {*book.holders.values(), *(state.worker_id for state in book.duties.values())}
        return any(worker_id in holders and lease.is_living(now) for worker_id, lease in self._leases.items())

    async def counts(self, objective_id: int) -> Mapping[TaskStatus, int]:
        return self._book(objective_id).counts()

    # -- claims ------------------------------------------------------------------------------------------------------------

    def _can_serve(self, worker_id: str, objective_id: int) -> bool:
        return worker_id in self._leases and self._leases[worker_id].can_serve(objective_id, self._clock())

    async def open_objectives(self) -> list[int]:
        return [book.objective.id for book in self._books.values() if book.is_open()]

    async def outlook(self, objective_id: int) -> Outlook:
        book, now = self._book(objective_id), self._clock()
        objective = self._read(book)
        duties = tuple(duty for duty in rules.DUTIES if book.may_claim_duty(now, duty))
        has_task = self._best_task(book, now) is not None
        is_idle = objective.status is ObjectiveStatus.ACTIVE and not (has_task or duties)
        can_conclude = is_idle and rules.conclude(book.snapshot(objective)) is not None
        return Outlook(objective=objective, has_task=has_task, duties=duties, can_conclude=can_conclude)

    async def claim_task(self, objective_id: int, worker_id: str) -> Claim | None:
        book, now = self._book(objective_id), self._clock()
        task = self._best_task(book, now) if self._can_serve(worker_id, objective_id) else None
        if task is None:
            return None
        if task.status is TaskStatus.QUEUED:
            task = replace(task, status=TaskStatus.RUNNING, started_at=now)
        task = book.tasks[task.id] = replace(task, claim_no=task.claim_no + 1, not_before=None)
        book.holders[task.id] = worker_id
        book.note(now, log.TASK_CLAIMED, task.id, worker_id=worker_id, try_no=task.try_no, claim_no=task.claim_no)
        return Claim(
            task=task, fence=Fence(objective_id=objective_id, owner=f"task:{task.id}", claim_no=task.claim_no, worker_id=worker_id)
        )

    def _best_task(self, book: Book, now: datetime) -> Task | None:
        objective = self._read(book)
        limits = objective.spec.limits
        if objective.status is not ObjectiveStatus.ACTIVE or rules.is_reached(limits.max_time_s, objective.active_s):
            return None
        due = [task for task in book.listed() if task.not_before is None or task.not_before <= now]
        for task in due:
            if task.status is TaskStatus.RECORDED and task.id not in book.holders:
                return task
        n_by_status = book.counts()
        may_start = not book.is_claimed_met and book.n_barren < rules.MAX_BARREN
        if not may_start or rules.is_reached(limits.max_tasks, sum(n_by_status[status] for status in rules.EXECUTED)):
            return None
        return next((task for task in due if task.status is TaskStatus.QUEUED and book.is_unblocked(task)), None)

    async def record_result(self, claim: Claim, *, text: str, origins: Sequence[str]) -> Result:
        book, now = self._fenced(claim.fence), self._clock()
        task = book.fenced_task(claim.fence)
        if task.status is TaskStatus.RECORDED:
            return book.results[task.id]
        result = changes.new_result(task, text=text, origins=origins, at=now)
        book.results[task.id] = book.unindexed[task.id] = result
        book.tasks[task.id] = replace(task, status=TaskStatus.RECORDED)
        book.note(now, log.TASK_RECORDED, task.id, result_chars=len(result.text))
        return result

    async def record_plan(self, claim: Claim, *, proposals: Sequence[Proposal], is_met: bool = False, is_repeat: bool = False) -> Plan:
        book, now = self._fenced(claim.fence), self._clock()
        task = book.fenced_task(claim.fence, TaskStatus.RECORDED)
        is_open = book.objective.status is not ObjectiveStatus.ENDED
        sifted = book.sift(proposals if is_open else (), allow_duplicates=False)
        plan = book.add(now, sifted, parent_id=task.id)
        book.put_down(now, replace(task, status=TaskStatus.DONE))
        n_barren = book.n_barren = rules.count_barren(book.n_barren, n_added=len(plan.added), is_repeat=is_repeat)
        book.note(now, log.TASK_DONE, task.id, n_added=len(plan.added), n_duplicates=len(plan.duplicates), n_barren=n_barren)
        if is_met and is_open:
            book.is_claimed_met = True
            book.note(now, log.OBJECTIVE_CLAIMED_MET, task.id, task_id=task.id)
        return plan

    async def fail_task(self, claim: Claim, *, error: str, max_failures: int, delay_s: float = 0.0) -> Task:
        book = self._fenced(claim.fence)
        task = changes.failed(book.fenced_task(claim.fence), error=error)
        return book.give_up_or_retry(self._clock(), task, max_failures=max_failures, delay_s=delay_s)

    async def release_task(self, claim: Claim, *, delay_s: float = 0.0, reason: str = "") -> None:
        book = self._fenced(claim.fence)
        book.release(self._clock(), book.fenced_task(claim.fence), reason=reason, delay_s=delay_s)

    # -- duties ------------------------------------------------------------------------------------------------------------

    async def claim_duty(self, objective_id: int, worker_id: str, duty: Duty) -> DutyClaim | None:
        book = self._book(objective_id)
        return book.claim_duty(self._clock(), duty, worker_id) if self._can_serve(worker_id, objective_id) else None

    async def window(self, objective_id: int, *, n_head: int, n_new: int, n_finished: int = 0) -> Window:
        book = self._book(objective_id)
        queued = book.listed([TaskStatus.QUEUED])
        news = sorted((task.id for task in queued if task.id > book.ordered_upto), reverse=True)[:n_new]
        return Window(
            revision=book.objective.order_revision,
            tasks=tuple(task for at, task in enumerate(queued) if at < n_head or task.id in news),
            at_work=tuple(book.listed(rules.AT_WORK)),
            finished=tuple(await self.last_finished(objective_id, limit=n_finished)),
        )

    async def reorder(self, claim: DutyClaim, *, revision: int, task_ids: Sequence[int]) -> None:
        book, now = self._fenced(claim.fence), self._clock()
        state = book.fenced_duty(claim.fence)
        if book.objective.order_revision != revision:
            raise StaleOrderError(f"the list of objective {book.objective.id} was re-ordered since revision {revision}")
        dealt = rules.deal_ranks([(task.id, task.rank) for task in book.listed([TaskStatus.QUEUED])], task_ids)
        moved = {task_id: rank for task_id, rank in dealt.items() if rank != book.tasks[task_id].rank}
        for task_id, rank in moved.items():
            book.tasks[task_id] = replace(book.tasks[task_id], rank=rank)
        book.objective = replace(book.objective, order_revision=revision + 1)
        book.ordered_upto = state.upto
        book.free_duty(now, state)
        book.note(now, log.ORDER_APPLIED, revision=revision + 1, task_ids=list(dealt), n_moved=len(moved))

    async def finish_check(self, claim: DutyClaim, *, is_met: bool, reason: str) -> Objective:
        book, now = self._fenced(claim.fence), self._clock()
        state = book.fenced_duty(claim.fence)
        book.is_claimed_met, book.check_no = False, book.check_no + 1
        book.free_duty(now, state)
        detail = rules.storable(reason, max_chars=rules.MAX_DETAIL_CHARS)
        book.note(now, log.OBJECTIVE_CHECKED, is_met=is_met, reason=detail)
        if is_met:
            book.end(now, self._leases.values(), reason=StopReason.OBJECTIVE_MET, detail=detail)
        return self._read(book)

    async def record_report(self, claim: DutyClaim, *, markdown: str) -> None:
        book, now = self._fenced(claim.fence), self._clock()
        state = book.fenced_duty(claim.fence)
        book.report = rules.storable(markdown)
        book.free_duty(now, state)
        book.note(now, log.REPORT_WRITTEN, report_chars=len(markdown))

    async def report(self, objective_id: int) -> str | None:
        return self._book(objective_id).report

    async def release_duty(self, claim: DutyClaim, *, delay_s: float = 0.0) -> None:
        book = self._fenced(claim.fence)
        book.free_duty(self._clock(), book.fenced_duty(claim.fence), delay_s=delay_s)

    # -- looking -----------------------------------------------------------------------------------------------------------

    async def task(self, objective_id: int, task_id: int) -> Task:
        return self._book(objective_id).task(task_id)

    async def tasks(self, objective_id: int, *, statuses: Sequence[TaskStatus] | None = None, limit: int | None = None) -> list[Task]:
        return self._book(objective_id).listed(statuses)[:limit]

    async def last_finished(self, objective_id: int, *, limit: int) -> list[Task]:
        finished = [(task.finished_at, task.id) for task in self._book(objective_id).tasks.values() if task.finished_at is not None]
        return [self._book(objective_id).tasks[task_id] for _, task_id in sorted(finished, reverse=True)[:limit]]

    async def results(self, objective_id: int, *, task_ids: Sequence[int] | None = None) -> list[Result]:
        return [result for result in self._book(objective_id).results.values() if task_ids is None or result.task_id in task_ids]

    async def result_ids(self, objective_id: int, *, is_indexed: bool | None = None) -> list[int]:
        book = self._book(objective_id)
        return [task_id for task_id in book.results if is_indexed is None or is_indexed is (task_id not in book.unindexed)]

    async def events(self, objective_id: int, *, after_id: int = 0, limit: int = 1000) -> list[Event]:
        self._book(objective_id)
        return [event for event in self._events[after_id:] if event.objective_id == objective_id][:limit]

    async def last_event_id(self, objective_id: int) -> int:
        self._book(objective_id)
        return next((event.id for event in reversed(self._events) if event.objective_id == objective_id), 0)

    async def append_event(self, objective_id: int, *, kind: str, task_id: int | None = None, data: Mapping[str, Any]) -> None:
        self._book(objective_id).note(self._clock(), kind, task_id, **data)

    async def wait_for_events(self, objective_id: int, *, after_id: int, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while await self.last_event_id(objective_id) <= after_id:
                    await self._written.wait()
        except TimeoutError:
            return

    async def wait_for_change(self, *, timeout_s: float) -> None:
        await asyncio.sleep(timeout_s)  # nobody else can write here

    async def close(self) -> None:
        """There is nothing to close."""
