"""One objective in memory: its records, and the moves that several verbs of `MemoryTaskStore` have in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from babyagi import log
from babyagi.errors import NotFoundError
from babyagi.tasks import (
    Duty,
    DutyClaim,
    Event,
    Fence,
    Joined,
    Objective,
    ObjectiveStatus,
    Proposal,
    Result,
    Step,
    StepState,
    StopReason,
    Task,
    TaskStatus,
    Usage,
    Worker,
)
from babyagi.taskstore import changes, rules
from babyagi.taskstore.base import Plan

_MICROSECOND = timedelta(microseconds=1)


@dataclass(slots=True, kw_only=True)
class Lease:
    """A worker, how long its leases are, since when it is there, and what it serves, by objective."""

    worker: Worker
    lease_s: float
    since: datetime
    joined: dict[int, Joined] = field(default_factory=dict)

    def can_serve(self, objective_id: int, now: datetime) -> bool:
        """Whoever does not serve the objective, or whose lease has run out, is given nothing: it would be taken away at once."""
        joined = self.joined.get(objective_id)
        return joined is not None and not joined.hindrance and self.is_living(now)

    def is_living(self, now: datetime) -> bool:
        until_us = (self.worker.lease_until - now) // _MICROSECOND
        return rules.is_living(0, lease_until_us=until_us, lease_us=rules.to_us(self.lease_s))


@dataclass(slots=True, kw_only=True)
class DutyState:
    """Who holds a duty, and up to which task the list was known when it was claimed."""

    owner: str = ""
    claim_no: int = 0
    worker_id: str | None = None
    not_before: datetime | None = None
    upto: int = 0


@dataclass(slots=True, kw_only=True)
class Book:
    """All of one objective. `objective` is as of its last change; `read` gives it as of now.

    `holders` is task id → worker id; `open_steps` are the steps whose reservation still counts; `append` takes an event to the store.
    """

    objective: Objective
    seen_at: datetime
    append: Callable[[Event], None]
    next_step_id: Callable[[], int]
    tasks: dict[int, Task] = field(default_factory=dict)
    holders: dict[int, str] = field(default_factory=dict)
    results: dict[int, Result] = field(default_factory=dict)
    unindexed: dict[int, Result] = field(default_factory=dict)
    vectors: dict[str, dict[int, bytes]] = field(default_factory=dict)
    steps: dict[tuple[str, str], Step] = field(default_factory=dict)
    open_steps: set[tuple[str, str]] = field(default_factory=set)
    duties: dict[Duty, DutyState] = field(default_factory=dict)
    report: str | None = None
    is_claimed_met: bool = False
    n_barren: int = 0  # tasks in a row that brought nothing new
    ordered_upto: int = 0
    check_no: int = 1
    report_no: int = 1

    # -- looking ---------------------------------------------------------------------------------------------------------

    def read(self, now: datetime, leases: Iterable[Lease]) -> Objective:
        held = rules.add_reservations(self.steps[key].reservation for key in self.open_steps)
        active_s = self.counted_us(now, leases) / 1e6
        return replace(self.objective, held=held, active_s=active_s, has_report=self.report is not None)

    def task(self, task_id: int) -> Task:
        if task_id not in self.tasks:
            raise NotFoundError(f"objective {self.objective.id} has no task {task_id}")
        return self.tasks[task_id]

    def listed(self, statuses: Sequence[TaskStatus] | None = None) -> list[Task]:
        found = [task for task in self.tasks.values() if statuses is None or task.status in statuses]
        return sorted(found, key=lambda task: (task.rank, task.id))

    def counts(self) -> dict[TaskStatus, int]:
        return {status: sum(task.status is status for task in self.tasks.values()) for status in TaskStatus}

    def is_unblocked(self, task: Task) -> bool:
        return all(self.tasks[task_id].status in rules.SETTLED for task_id in task.after)

    def has_got_further(self, task: Task) -> bool:
        """Whether a model or tool call of the task was journaled under its present claim."""
        mine = (step for (owner, _), step in self.steps.items() if owner == f"task:{task.id}" and step.claim_no == task.claim_no)
        return any(step.state is StepState.DONE and step.kind != "inputs" for step in mine)

    def snapshot(self, objective: Objective) -> rules.Snapshot:
        n_by_status = self.counts()
        return rules.Snapshot(
            limits=objective.spec.limits,
            active_s=objective.active_s,
            is_claimed_met=self.is_claimed_met,
            n_held=len(self.holders),
            n_recorded=n_by_status[TaskStatus.RECORDED],
            n_queued=n_by_status[TaskStatus.QUEUED],
            n_unblocked=sum(self.is_unblocked(task) for task in self.listed([TaskStatus.QUEUED])),
            n_waiting=n_by_status[TaskStatus.WAITING],
            n_executed=sum(n_by_status[status] for status in rules.EXECUTED),
            n_barren=self.n_barren,
        )

    # -- time ------------------------------------------------------------------------------------------------------------

    def counted_us(self, now: datetime, leases: Iterable[Lease]) -> int:
        """The active time up to now; it stands still while the objective does, and while no worker lives."""
        active_us = rules.to_us(self.objective.active_s)
        if self.objective.status is not ObjectiveStatus.ACTIVE:
            return active_us
        living = [lease.lease_s for lease in leases if lease.can_serve(self.objective.id, now)]
        since_us = (now - self.seen_at) // _MICROSECOND
        return rules.elapsed_us(active_us, since_seen_us=since_us, lease_us=rules.to_us(max(living, default=0.0)))

    def carry_time(self, now: datetime, leases: Iterable[Lease]) -> None:
        self.objective = replace(self.objective, active_s=self.counted_us(now, leases) / 1e6)
        self.seen_at = now

    # -- events and costs --------------------------------------------------------------------------------------------------

    def note(self, now: datetime, kind: str, task_id: int | None = None, /, **data: Any) -> None:
        plain: Mapping[str, Any] = json.loads(json.dumps(data))
        self.append(Event(id=0, objective_id=self.objective.id, task_id=task_id, kind=kind, data=plain, at=now))

    def charge(self, owner: str, usage: Usage) -> None:
        self.objective = replace(self.objective, usage=self.objective.usage + usage)
        task_id = changes.task_of(owner)
        if task_id in self.tasks:
            self.tasks[task_id] = replace(self.tasks[task_id], usage=self.tasks[task_id].usage + usage)

    def settle(self, now: datetime, owner: str) -> None:
        """A claim ends: the calls it left open may have been paid, so what they hold becomes usage."""
        for key in [key for key in self.steps if key in self.open_steps and key[0] == owner]:
            if self.steps[key].kind == changes.ONCE:
                self.leave_unknown(now, key)
                continue
            step, charge = changes.charge_unconfirmed(self.steps[key])
            self.steps[key] = step
            self.open_steps.discard(key)
            self.charge(owner, charge)
            self.note(now, log.STEP_UNCONFIRMED, changes.task_of(owner), **changes.step_data(step, charge))

    def leave_unknown(self, now: datetime, key: tuple[str, str]) -> None:
        """A call that must not be repeated was intended, and nobody knows whether it was made."""
        step = self.steps[key] = replace(self.steps[key], state=StepState.UNKNOWN)
        self.open_steps.discard(key)
        self.note(now, log.STEP_LEFT_UNKNOWN, changes.task_of(step.owner), **changes.step_data(step, Usage()))

    def keep_step(self, step: Step) -> Step:
        """Keep a step, numbered when it is new."""
        known = self.steps.get((step.owner, step.key))
        numbered = replace(step, id=known.id if known is not None else self.next_step_id())
        self.steps[step.owner, step.key] = numbered
        return numbered

    def asked_of(self, task_id: int) -> Step | None:
        """The step of the task that a person must say something about."""
        owner = f"task:{task_id}"
        return next((step for (of, _), step in self.steps.items() if of == owner and changes.is_open(step)), None)

    def wake(self, now: datetime, task_id: int) -> None:
        """waiting → queued; an objective that ended because only people could go on is open again."""
        self.tasks[task_id] = replace(self.tasks[task_id], status=TaskStatus.QUEUED)
        self.note(now, log.TASK_ANSWERED, task_id)
        self.n_barren = 0
        if self.objective.stop_reason is StopReason.WAITING:
            self.reopen(now)

    # -- fences ------------------------------------------------------------------------------------------------------------

    def check_fence(self, fence: Fence) -> None:
        if changes.task_of(fence.owner) is None:
            self.fenced_duty(fence)
        else:
            self.fenced_task(fence)

    def fenced_task(self, fence: Fence, *statuses: TaskStatus) -> Task:
        """The task of the fence, in one of the statuses when any are named."""
        task = self.tasks.get(changes.task_of(fence.owner) or 0)
        if task is None or (self.holders.get(task.id), task.claim_no) != (fence.worker_id, fence.claim_no):
            raise changes.lost(fence)
        if statuses and task.status not in statuses:
            raise changes.lost(fence)
        return task

    def fenced_duty(self, fence: Fence) -> DutyState:
        state = self.duties.get(Duty(fence.owner.partition(":")[0]))
        if state is None or (state.owner, state.worker_id, state.claim_no) != (fence.owner, fence.worker_id, fence.claim_no):
            raise changes.lost(fence)
        return state

    # -- what ends a claim, and an objective ---------------------------------------------------------------------------------

    def put_down(self, now: datetime, task: Task, *, delay_s: float = 0.0) -> Task:
        """Keep a claimed task, changed by the verb, as one that nobody holds any more, and settle its open calls."""
        self.settle(now, f"task:{task.id}")
        is_asking = self.asked_of(task.id) is not None
        status = rules.status_when_freed(task.status, self.objective.stop_reason, is_asking=is_asking)
        if is_asking:
            task = replace(task, try_no=self.tasks[task.id].try_no)  # the answer belongs to this try
        task = replace(task, usage=self.tasks[task.id].usage)
        is_delayed = delay_s > 0 and status in (TaskStatus.QUEUED, TaskStatus.RECORDED)
        is_finished = status in (TaskStatus.DONE, TaskStatus.DEAD)
        not_before = now + timedelta(microseconds=rules.to_us(delay_s)) if is_delayed else None
        self.tasks[task.id] = replace(task, status=status, not_before=not_before, finished_at=now if is_finished else None)
        del self.holders[task.id]
        return self.tasks[task.id]

    def release(self, now: datetime, task: Task, *, reason: str, delay_s: float = 0.0) -> None:
        written = self.put_down(now, task, delay_s=delay_s)
        self.note(now, log.TASK_RELEASED, task.id, reason=rules.storable(reason), delay_s=delay_s)
        self.note_freed(now, written)

    def give_up_or_retry(self, now: datetime, task: Task, *, max_failures: int, delay_s: float = 0.0) -> Task:
        """Put down a task whose failure is counted already."""
        status = rules.status_after_failure(task.status, failures=task.failures, max_failures=max_failures)
        written = self.put_down(now, replace(task, status=status), delay_s=delay_s)
        self.note(now, log.TASK_FAILED, task.id, error=task.error, failures=task.failures)
        if written.status is TaskStatus.DEAD:
            self.note(now, log.TASK_DEAD, task.id, error=task.error)
        elif written.status is TaskStatus.DONE:
            self.note(now, log.TASK_DONE, task.id, n_added=0, n_duplicates=0)
        self.note_freed(now, written)
        return written

    def note_freed(self, now: datetime, task: Task) -> None:
        """What became of a task that nobody holds any more, where that is not what its holder wanted."""
        asked = self.asked_of(task.id)
        if task.status is TaskStatus.CANCELLED:
            self.note(now, log.TASK_CANCELLED, task.id)
        elif task.status is TaskStatus.WAITING and asked is not None:
            self.note(now, log.TASK_PARKED, task.id, **changes.parked_data(asked))

    def free_duty(self, now: datetime, state: DutyState, *, delay_s: float = 0.0) -> None:
        state.worker_id = None
        state.not_before = now + timedelta(microseconds=rules.to_us(delay_s)) if delay_s > 0 else None
        self.settle(now, state.owner)

    def end(self, now: datetime, leases: Iterable[Lease], *, reason: StopReason, detail: str) -> None:
        """End an objective that has not ended, cancelling what is queued when the reason says so."""
        if self.objective.status is ObjectiveStatus.ENDED:
            return
        detail = rules.storable(detail, max_chars=rules.MAX_DETAIL_CHARS)
        self.carry_time(now, leases)
        for task in self.listed(rules.CANCELLABLE) if reason in rules.CANCELLING else ():
            self.tasks[task.id] = replace(task, status=TaskStatus.CANCELLED, not_before=None)
            self.note(now, log.TASK_CANCELLED, task.id)
        self.is_claimed_met = False
        self.objective = replace(self.objective, status=ObjectiveStatus.ENDED, stop_reason=reason, stop_detail=detail, ended_at=now)
        self.note(now, log.OBJECTIVE_ENDED, reason=reason, detail=detail)

    def reopen(self, now: datetime) -> None:
        """ended → active; the report is owed anew, under a new owner."""
        report = self.duties.pop(Duty.REPORT, None)
        if report is not None:
            self.settle(now, report.owner)
        self.objective = replace(self.objective, status=ObjectiveStatus.ACTIVE, stop_reason=None, stop_detail="", ended_at=None)
        self.seen_at, self.report, self.report_no, self.n_barren = now, None, self.report_no + 1, 0
        self.note(now, log.OBJECTIVE_REOPENED)

    # -- adding ------------------------------------------------------------------------------------------------------------

    def sift(self, proposals: Iterable[Proposal], *, allow_duplicates: bool) -> list[rules.Sifted]:
        known = {rules.name_key(task.name) for task in self.tasks.values()}
        return rules.sift(proposals, is_known=known.__contains__, allow_duplicates=allow_duplicates, last_id=len(self.tasks))

    def add(self, now: datetime, sifted: Iterable[rules.Sifted], *, parent_id: int | None) -> Plan:
        """Put the proposals at the end of the list, in their order, and note the duplicates."""
        added, duplicates = [], []
        for one in sifted:
            if one.is_duplicate:
                duplicates.append(one.proposal.name)
                self.note(now, log.TASK_DUPLICATE_DROPPED, parent_id, name=one.proposal.name)
                continue
            task_id = len(self.tasks) + 1
            task = Task(
                id=task_id,
                objective_id=self.objective.id,
                name=one.proposal.name,
                status=TaskStatus.QUEUED,
                rank=task_id,
                parent_id=parent_id,
                after=one.proposal.after,
                origins=one.proposal.origins,
                created_at=now,
            )
            self.tasks[task_id] = task
            self.note(now, log.TASK_ADDED, task_id, name=task.name, parent_id=parent_id, after=task.after)
            added.append(task)
        return Plan(added=tuple(added), duplicates=tuple(duplicates))

    # -- duties ------------------------------------------------------------------------------------------------------------

    def claim_duty(self, now: datetime, duty: Duty, worker_id: str) -> DutyClaim | None:
        if not self.may_claim_duty(now, duty):
            return None
        state = self.duties.setdefault(duty, DutyState())
        state.owner = rules.duty_owner(duty, order_revision=self.objective.order_revision, check_no=self.check_no, report_no=self.report_no)
        state.claim_no, state.worker_id, state.not_before, state.upto = state.claim_no + 1, worker_id, None, len(self.tasks)
        fence = Fence(objective_id=self.objective.id, owner=state.owner, claim_no=state.claim_no, worker_id=worker_id)
        return DutyClaim(duty=duty, fence=fence)

    def may_claim_duty(self, now: datetime, duty: Duty) -> bool:
        state = self.duties.get(duty, DutyState())
        return state.worker_id is None and (state.not_before is None or state.not_before <= now) and self._is_owed(duty)

    def is_open(self) -> bool:
        return self.objective.status is ObjectiveStatus.ACTIVE or (self.objective.status is ObjectiveStatus.ENDED and self.report is None)

    def _is_owed(self, duty: Duty) -> bool:
        is_active = self.objective.status is ObjectiveStatus.ACTIVE
        match duty:
            case Duty.ORDER:
                queued = self.listed([TaskStatus.QUEUED])
                is_new = any(task.id > self.ordered_upto for task in queued)
                return is_active and not self.is_claimed_met and len(queued) >= 2 and is_new
            case Duty.CHECK:
                return is_active and self.is_claimed_met and not self.listed(rules.AT_WORK)
            case Duty.REPORT:
                return self.objective.status is ObjectiveStatus.ENDED and self.report is None and not self.holders
            case Duty.INDEX:
                return bool(self.unindexed)
