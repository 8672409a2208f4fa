"""One worker process: it claims, keeps its lease, backs off, drains, and stops.

The only code that sleeps, handles signals and catches everything. A task group owns every task that it starts.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from babyagi import log
from babyagi.errors import (
    BabyagiError,
    CredentialsError,
    LeaseLostError,
    LimitReachedError,
    ModelRejectedError,
    ModelUnavailableError,
    NotFoundError,
    ObjectiveStoppedError,
    SettingsError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.journal import Gate
from babyagi.loop import Loop, is_fault_of_the_task, tries_for
from babyagi.outages import MAX_MODEL_BACK_OFF_S, MAX_MODEL_WAIT_S, Outages
from babyagi.tasks import Claim, Duty, DutyClaim, Objective, ObjectiveStatus, StopReason, Worker
from babyagi.taskstore.base import TaskStore

logger = logging.getLogger(__name__)

IDLE_WAIT_S = 1.0
FEED_PAUSE_S = 0.5  # results that come close together go into the result store as one batch
STORE_PAUSE_S = 2.0  # asking a disk again costs nothing
RETRY_DELAY_S = 1.0
DUTIES: Mapping[ObjectiveStatus, tuple[Duty, ...]] = {
    ObjectiveStatus.ACTIVE: (Duty.CHECK, Duty.ORDER),
    ObjectiveStatus.PAUSED: (),
    ObjectiveStatus.ENDED: (Duty.REPORT,),
}
PERSON_MENDS = (CredentialsError, ModelRejectedError, SettingsError, StoreUnusableError, NotFoundError)

Fail = Callable[[str, int], Awaitable[None]]
"""Records a failed try, and how many of them the error is worth."""


class Release(Protocol):
    """Gives a claim back as it was."""

    async def __call__(self, reason: str, delay_s: float = 0.0) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much a worker does at once, and how long it waits for what."""

    concurrency: int = 4
    lease_s: float = 30.0
    drain_s: float = 10.0
    max_failures: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a worker is handed from outside: who it is, its time, its chance, its ids."""

    identity: Worker
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    new_id: Callable[[], str]


class WorkerLoop:
    """Works on one objective until it has ended and its report is written, it is paused, or a signal asks to stop."""

    def __init__(self, store: TaskStore, loop: Loop, gate: Gate, *, pace: Pace, surroundings: Surroundings) -> None:
        self._store = store
        self._loop = loop
        self._gate = gate
        self._pace = pace
        self._surroundings = surroundings
        self._identity = surroundings.identity
        self._running: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._stopped_by: int | None = None
        self._fatal: BabyagiError | None = None
        self._errors_by_duty: dict[str, list[str]] = {}  # by owner: what nobody expected
        self._outages = Outages(clock=lambda: asyncio.get_running_loop().time(), random=surroundings.random)

    async def run(self, objective_id: int) -> tuple[Objective, int | None]:
        """Work, and return the objective as it is then and the number of the signal that stopped us, if one did.

        Raises:
            CredentialsError, ModelRejectedError, StoreUnusableError: a person must act; what was claimed is queued again.
        """
        await self._join(objective_id)
        try:
            async with asyncio.TaskGroup() as group:
                self._handle_signals(group)
                background = [group.create_task(work) for work in (self._keep_lease(objective_id), self._feed_index(objective_id))]
                try:
                    await self._dispatch(objective_id, group)
                finally:
                    self._unhandle_signals()
                    for task in background:
                        task.cancel()
            if self._stopped_by is None:  # a drain has its time, and the next run catches up
                await self._finish_index(objective_id)
        finally:
            await asyncio.shield(self._leave())
        if self._fatal is not None:
            raise self._fatal
        return await self._store.objective(objective_id), self._stopped_by

    async def _join(self, objective_id: int) -> None:
        await self._store.register_worker(self._identity, lease_s=self._pace.lease_s)
        await self._store.join_objective(self._identity.id, objective_id)

    async def _leave(self) -> None:
        try:
            await self._store.remove_worker(self._identity.id)
        except BabyagiError as error:
            logger.warning("this worker could not sign off, its lease runs out instead: %s", error.what)

    # -- claiming ------------------------------------------------------------------------------------------------------

    async def _dispatch(self, objective_id: int, group: asyncio.TaskGroup) -> None:
        while True:
            try:
                if await self._claim_what_there_is(objective_id, group):
                    return
            except StoreUnavailableError as error:
                self._rest_from_store(error)
            except PERSON_MENDS as error:
                self._stop_for_a_person(error)
                self._stop_now()
                return
            await self._wait()

    async def _claim_what_there_is(self, objective_id: int, group: asyncio.TaskGroup) -> bool:
        """Fill the free slots; return True when there is nothing left to do here."""
        self._wake.clear()
        objective = await self._store.objective(objective_id)
        n_claimed = 0 if self._must_not_claim() else await self._fill_slots(objective, group)
        if self._running or n_claimed:
            return False
        if self._gate.reason or self._fatal is not None or self._is_over(objective):
            return True
        if objective.status is ObjectiveStatus.ACTIVE and not self._outages.is_resting:
            objective = await self._store.conclude_objective(objective_id)
            if objective.status is ObjectiveStatus.ENDED:
                self._wake.set()
        return False

    def _must_not_claim(self) -> bool:
        return bool(self._gate.reason) or self._fatal is not None or self._outages.is_resting

    @staticmethod
    def _is_over(objective: Objective) -> bool:
        is_reported = objective.status is ObjectiveStatus.ENDED and objective.has_report
        return is_reported or objective.status is ObjectiveStatus.PAUSED

    async def _fill_slots(self, objective: Objective, group: asyncio.TaskGroup) -> int:
        n_claimed = 0
        n_slots = 1 if self._outages.n else self._pace.concurrency  # after an outage one goes ahead to see whether it is over
        for duty in DUTIES[objective.status]:
            if len(self._running) < n_slots:
                duty_claim = await self._store.claim_duty(objective.id, self._identity.id, duty)
                if duty_claim is not None:
                    n_claimed += 1
                    self._start(group, self._guard_duty(duty_claim, objective.id))
        while len(self._running) < n_slots:
            claim = await self._store.claim_task(objective.id, self._identity.id)
            if claim is None:
                break
            n_claimed += 1
            self._start(group, self._guard_turn(claim, objective))
        return n_claimed

    def _start(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
        task = group.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._wake.set()

    async def _wait(self) -> None:
        """Until something of ours ends, or a moment has passed (others may have changed the list)."""
        try:
            async with asyncio.timeout(IDLE_WAIT_S):
                await self._wake.wait()
        except TimeoutError:
            return

    # -- one piece of work, and everything that can become of it ---------------------------------------------------------

    async def _guard_turn(self, claim: Claim, objective: Objective) -> None:
        async def release(reason: str, delay_s: float = 0.0) -> None:
            await self._store.release_task(claim, delay_s=delay_s, reason=reason)

        async def fail(error: str, max_failures: int) -> None:
            await self._store.fail_task(claim, error=error, max_failures=max_failures, delay_s=RETRY_DELAY_S)

        await self._guard(self._loop.run_turn(claim, objective), objective.id, release=release, fail=fail)

    async def _guard_duty(self, claim: DutyClaim, objective_id: int) -> None:
        errors = self._errors_by_duty.setdefault(claim.fence.owner, [])

        async def release(reason: str, delay_s: float = 0.0) -> None:
            logger.info("%s is put off: %s", claim.duty, reason)
            await self._store.release_duty(claim, delay_s=delay_s)

        async def fail(error: str, max_failures: int) -> None:
            errors.append(error)
            if len(errors) > max_failures:
                self._stop_for_a_person(BabyagiError(f"the {claim.duty} can neither be done nor given up: {error}", guide="recovery"))
            await release(error, delay_s=RETRY_DELAY_S)

        async def work() -> None:
            objective = await self._store.objective(objective_id)
            is_hopeless = len(errors) >= self._pace.max_failures  # and the run's end must not wait for it
            await (self._loop.give_up_duty(claim, objective, why=errors[-1]) if is_hopeless else self._loop.run_duty(claim, objective))

        await self._guard(work(), objective_id, release=release, fail=fail)

    async def _guard(self, work: Awaitable[None], objective_id: int, *, release: Release, fail: Fail) -> None:
        """Do the work; whatever it raises ends here."""
        try:
            await self._attempt(work, objective_id, release=release, fail=fail)
        except LeaseLostError as error:
            logger.warning("somebody else holds this now: %s", error.what)
        except StoreUnavailableError as error:
            self._rest_from_store(error)
            await self._release_when_possible(release, error.what)
        except StoreUnusableError as error:
            self._stop_for_a_person(error)

    async def _attempt(self, work: Awaitable[None], objective_id: int, *, release: Release, fail: Fail) -> None:
        """Do the work, and answer a fault by who can mend it: time, a person, or nobody."""
        n_outages = self._outages.n
        try:
            await work
            await self._note_success(objective_id, n_outages)
        except LimitReachedError as error:
            await release(error.what)
            await self._store.end_objective(objective_id, reason=StopReason(f"limit:{error.limit}"), detail=error.what)
        except ObjectiveStoppedError as error:
            await release(error.what)
        except ModelUnavailableError as error:
            await release(f"the model is unavailable: {error.what}", delay_s=await self._wait_for_model(error, objective_id))
        except (LeaseLostError, StoreUnavailableError):
            raise
        except PERSON_MENDS as error:
            self._stop_for_a_person(error)
            await release(error.what)
        except Exception as error:
            if isinstance(error, BabyagiError) and is_fault_of_the_task(error):
                await fail(error.what, tries_for(error, self._pace.max_failures))
            else:  # ours: the task fails with its traceback in the log, the worker lives
                logger.exception("a piece of work raised what nobody expected")
                await fail(f"{type(error).__name__}: {error}", self._pace.max_failures)

    async def _wait_for_model(self, error: ModelUnavailableError, objective_id: int) -> float:
        """Rest, say so, and return the seconds before the task is tried again."""
        is_known = self._outages.is_resting
        delay_s = max(self._outages.back_off(MAX_MODEL_BACK_OFF_S), error.retry_after_s or 0.0)
        if not is_known:
            rest_s = min(delay_s, MAX_MODEL_WAIT_S)
            self._rest(rest_s)
            self._outages.waits_for_model = True
            data = {"reason": error.what, "why": error.why, "retry_in_s": round(rest_s, 1)}
            await self._store.append_event(objective_id, kind=log.MODEL_UNAVAILABLE, data=data)
        return delay_s

    async def _note_success(self, objective_id: int, n_outages: int) -> None:
        if n_outages == self._outages.n and self._outages.end():  # else it began before the outage, and does not say that it is over
            with suppress(BabyagiError):  # the work is committed; a line on the screen is not worth its claim
                await self._store.append_event(objective_id, kind=log.MODEL_AVAILABLE, data={})

    async def _release_when_possible(self, release: Release, reason: str) -> None:
        """Give the claim back once the store answers again; our lease would keep it from everybody else."""
        while True:
            await self._surroundings.sleep(STORE_PAUSE_S)
            try:
                return await release(reason)
            except LeaseLostError:
                return None  # the commit that seemed to fail went through
            except StoreUnavailableError as error:
                logger.warning("the task store is still unavailable: %s", error.what)

    def _stop_for_a_person(self, error: BabyagiError) -> None:
        self._fatal = self._fatal or error
        self._gate.close(error.what)
        self._wake.set()

    def _rest_from_store(self, error: StoreUnavailableError) -> None:
        logger.warning("the task store is unavailable, next try in %.1f s: %s", STORE_PAUSE_S, error.what)
        self._rest(STORE_PAUSE_S)

    def _rest(self, delay_s: float) -> None:
        """Claim nothing for a while."""
        self._outages.rest(delay_s)
        asyncio.get_running_loop().call_later(delay_s, self._wake.set)

    # -- beside the work -------------------------------------------------------------------------------------------------

    async def _keep_lease(self, objective_id: int) -> None:
        while True:
            await self._surroundings.sleep(self._pace.lease_s / 3)
            try:
                await self._store.renew_lease(self._identity.id, lease_s=self._pace.lease_s)
                if await self._store.reap_workers():
                    self._wake.set()
            except LeaseLostError:
                logger.warning("this worker was declared dead; it drops its work and joins anew")
                for task in self._running:
                    task.cancel()
                self._identity = replace(self._identity, id=self._surroundings.new_id())
                await self._join(objective_id)
            except StoreUnavailableError as error:
                logger.warning("the lease could not be renewed: %s", error.what)
            except PERSON_MENDS as error:
                self._stop_for_a_person(error)
                return

    async def _feed_index(self, objective_id: int) -> None:
        while True:
            await self._surroundings.sleep(FEED_PAUSE_S)
            await self._feed_once(objective_id)

    async def _feed_once(self, objective_id: int) -> None:
        try:
            await self._index_once(objective_id)
        except (ObjectiveStoppedError, LimitReachedError, LeaseLostError) as error:
            logger.info("the result store is not fed now: %s", error.what)
        except BabyagiError as error:
            logger.warning("the result store is behind, the loop goes on: %s", error.what)
            await self._surroundings.sleep(5.0)
        except Exception:  # ours: the index is a projection and never stops the loop
            logger.exception("feeding the result store raised what nobody expected")
            await self._surroundings.sleep(5.0)

    async def _index_once(self, objective_id: int) -> int:
        claim = await self._store.claim_duty(objective_id, self._identity.id, Duty.INDEX)
        if claim is None:
            return 0
        try:
            return await self._loop.feed_index(claim)
        finally:
            await self._store.release_duty(claim)

    async def _finish_index(self, objective_id: int) -> None:
        """Feed what is left at the end, within the time that a drain may take."""
        try:
            async with asyncio.timeout(self._pace.drain_s):
                while await self._index_once(objective_id):
                    pass
        except Exception as error:  # a projection: no reason for a run not to end
            logger.warning("the result store is behind; it catches up at the next run (%s)", type(error).__name__)

    # -- signals ---------------------------------------------------------------------------------------------------------

    def _handle_signals(self, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self._on_signal, number, group)
            except (ValueError, RuntimeError, NotImplementedError):
                return  # not the main thread: whoever runs us there cancels us instead

    def _unhandle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.remove_signal_handler(number)
            except (ValueError, RuntimeError, NotImplementedError):
                return

    def _on_signal(self, number: int, group: asyncio.TaskGroup) -> None:
        """The first signal drains: no further call, what is in flight may end. The second, or `drain_s`, stops now."""
        if self._stopped_by is not None:
            self._stop_now()
            return
        self._stopped_by = number
        self._gate.close("this worker was asked to stop")
        logger.info("stopping: calls in flight have %.0f s to end; a second signal stops now", self._pace.drain_s)
        asyncio.get_running_loop().call_later(self._pace.drain_s, self._stop_now)
        self._wake.set()

    def _stop_now(self) -> None:
        for task in self._running:
            task.cancel()
