"""One worker process: it lives as long as its lease, serves objectives, handles signals, drains,
and stops."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from babyagi.errors import (
    BabyagiError,
    LeaseLostError,
    NotFoundError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.schedules import TICK_DECIDED
from babyagi.tasks import Objective, Worker
from babyagi.taskstore.port import TaskStore
from babyagi.worker.lease import KnowsDead, WorkerLease, knows_nobody_dead
from babyagi.worker.serving import OpenLoop, Pace, Patience, Process, Serving, nobody

__all__ = ["Pace", "Patience", "Runtime", "WorkerLoop"]

logger = logging.getLogger(__name__)

CHANGE_WAIT_S = 5.0
# a clock that was set, or a host that was suspended, is noticed within this time
MAX_TICK_WAIT_S = 60.0
TICK_PAUSE_S = 2.0
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPING = "this worker was asked to stop"

Around = Callable[[int, Coroutine[Any, Any, Objective]], Awaitable[Objective]]
"""Awaits the work on the objective with this id, and may do something before and after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What a worker depends on: its identity, its clock and sleep, randomness, ids, the check
    whether another worker is dead, and the function that tells a person what blocks it."""

    identity: Worker
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    new_id: Callable[[], str]
    knows_dead: KnowsDead = knows_nobody_dead
    tell: Callable[[str], None] = logger.warning
    around: Around | None = None


class WorkerLoop:
    """Serves one objective to its end, or all objectives of a store until a signal asks to stop."""

    def __init__(
        self, store: TaskStore, open_loop: OpenLoop, *, pace: Pace, runtime: Runtime
    ) -> None:
        self.worker_lease = WorkerLease(
            store,
            runtime.identity,
            lease_s=pace.lease_s,
            sleep=runtime.sleep,
            new_id=runtime.new_id,
            knows_dead=runtime.knows_dead,
        )
        self._store = store
        self._pace = pace
        self._runtime = runtime
        self._process = Process(
            store=store,
            worker_lease=self.worker_lease,
            slots=asyncio.Semaphore(pace.concurrency),
            open_loop=open_loop,
            pace=pace,
            sleep=runtime.sleep,
            random=runtime.random,
            tell=runtime.tell,
            is_followed=runtime.around is None,
        )
        self._servings: dict[int, Serving] = {}
        self._shunned: set[int] = set()
        self._patience = Patience(when_blocked=True)
        self._changed = asyncio.Event()
        self._may_tick = asyncio.Event()
        self._stopped_by: int | None = None
        self._fatal: BabyagiError | None = None

    async def run(
        self,
        objective_id: int,
        *,
        patience: Patience | None = None,
        known: Objective | None = None,
    ) -> tuple[Objective, int | None]:
        """Work on the objective until it has ended and its report is written, until it is paused,
        or until a signal asks to stop.

        Args:
            known: the objective as it has just been read.

        Returns:
            The objective as it is then, and the number of the signal that stopped the run, None
            without one.

        Raises:
            CredentialsError, ModelRejectedError, SettingsError, StoreUnusableError: a person must
                act; what was claimed is queued again.
        """

        async with self._living():
            try:
                async with self._serving(objective_id, patience or Patience(), known) as serving:
                    await serving.run()
            except BabyagiError as error:
                self._fatal = self._fatal or error
        if self._fatal is not None:
            raise self._fatal
        return await self._store.objective(objective_id), self._stopped_by

    async def serve_all(self, *, is_person_there: Callable[[], bool] = nobody) -> int | None:
        """Work on every objective that is active or needs its report, including new ones, until a
        signal asks to stop. Return the signal's number.

        Raises:
            StoreUnusableError: a person must act.
        """
        self._patience = Patience(when_blocked=True, is_person_there=is_person_there)
        async with self._living(self._keep_schedules) as group:
            await self._serve_what_comes(group)
        if self._fatal is not None:
            raise self._fatal
        return self._stopped_by

    @asynccontextmanager
    async def _living(
        self, *beside: Callable[[], Coroutine[Any, Any, None]]
    ) -> AsyncIterator[asyncio.TaskGroup]:
        """Keep this worker alive during the context: renew its lease, handle signals, and watch for
        changes by others."""
        await self.worker_lease.begin()
        try:
            async with asyncio.TaskGroup() as group:
                self._handle_signals()
                background = [
                    group.create_task(keep())
                    for keep in (self._keep_lease, self._watch_others, *beside)
                ]
                try:
                    yield group
                finally:
                    self._unhandle_signals()
                    for task in background:
                        task.cancel()
        finally:
            await asyncio.shield(self.worker_lease.end())

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    async def _serve_what_comes(self, group: asyncio.TaskGroup) -> None:
        while self._stopped_by is None and self._fatal is None:
            self._changed.clear()
            try:
                for objective_id in await self._store.open_objectives():
                    if objective_id not in self._servings and objective_id not in self._shunned:
                        group.create_task(self._serve_among_others(objective_id))
                        await asyncio.sleep(0)  # it registers itself
            except StoreUnavailableError as error:
                logger.warning("the task store is unavailable: %s", error.what)
            except BabyagiError as error:
                self._fail(error)
            await self._wait_for_change()
        while self._servings:
            self._changed.clear()
            await self._wait_for_change()

    async def _serve_among_others(self, objective_id: int) -> None:
        """Serve one objective, so that its errors do not stop the others."""
        try:
            async with self._serving(objective_id, self._patience) as serving:
                around, work = self._runtime.around, serving.run()
                await (work if around is None else around(objective_id, work))
        except NotFoundError:
            logger.info("objective %d is gone", objective_id)
        except StoreUnusableError as error:
            self._fail(error)
        except Exception:
            logger.exception(
                (
                    "serving objective %d raised an unexpected error; this process no longer "
                    "serves it"
                ),
                objective_id,
            )
            self._shunned.add(objective_id)

    @asynccontextmanager
    async def _serving(
        self, objective_id: int, patience: Patience, known: Objective | None = None
    ) -> AsyncIterator[Serving]:
        """Return the work on one objective; it is registered in this process during the context."""
        serving = self._servings[objective_id] = Serving(
            self._process, objective_id, patience=patience, known=known
        )
        if self._stopped_by is not None:
            serving.drain(STOPPING)
        try:
            yield serving
        finally:
            del self._servings[objective_id]
            self._changed.set()
            self._may_tick.set()  # a tick may have waited for this objective

    def _fail(self, error: BabyagiError) -> None:
        """Stop the worker: it cannot go on with any objective."""
        self._fatal = self._fatal or error
        for serving in self._servings.values():
            serving.fail(error)
        self._changed.set()

    # -- beside the work
    # ----------------------------------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        try:
            await self.worker_lease.keep(on_lost=self._drop_all, on_freed=self._wake_all)
        except BabyagiError as error:
            self._fail(error)

    async def _watch_others(self) -> None:
        """Wake all waiters here when another process has committed. The first look only begins the
        watch, because the work begins with a look of its own."""
        has_begun = False
        while True:
            try:
                await self._store.wait_for_change(timeout_s=CHANGE_WAIT_S)
            except BabyagiError as error:  # the work meets the same error, and handles it
                logger.warning("changes by other processes cannot be seen now: %s", error.what)
                await self._runtime.sleep(CHANGE_WAIT_S)
            if has_begun:
                self._wake_all()
            has_begun = True

    async def _keep_schedules(self) -> None:
        """Decide the ticks that are due, until a signal asks to stop."""
        while self._stopped_by is None and self._fatal is None:
            self._may_tick.clear()
            wait_s = await self._fire_schedules()
            try:
                async with asyncio.timeout(min(wait_s, MAX_TICK_WAIT_S)):
                    await self._may_tick.wait()
            except TimeoutError:
                continue

    async def _fire_schedules(self) -> float:
        """Decide the ticks that are due now, and return the seconds until the next look."""
        try:
            fired = await self._store.fire_schedules(self.worker_lease.identity.id)
        except (LeaseLostError, StoreUnavailableError) as error:
            logger.warning("schedules cannot be checked now: %s", error.what)
            return TICK_PAUSE_S
        except BabyagiError as error:
            self._fail(error)
            return TICK_PAUSE_S
        except Exception:  # such as a time zone that this machine does not know; the work goes on
            logger.exception("deciding which ticks are due raised an unexpected error")
            return MAX_TICK_WAIT_S
        for tick in fired.ticks:
            told = {"schedule_id": tick.schedule_id, "objective_id": tick.objective_id}
            logger.info("%s", tick.words, extra={"event": TICK_DECIDED, **told})
        if any(tick.objective_id is not None for tick in fired.ticks):
            self._changed.set()
        return MAX_TICK_WAIT_S if fired.wait_s is None else fired.wait_s

    def _wake_all(self) -> None:
        self._changed.set()
        self._may_tick.set()
        for serving in self._servings.values():
            serving.wake()

    def _drop_all(self) -> None:
        for serving in self._servings.values():
            serving.drop()

    async def _wait_for_change(self) -> None:
        try:
            async with asyncio.timeout(CHANGE_WAIT_S):
                await self._changed.wait()
        except TimeoutError:
            return

    def stop(self) -> None:
        """Do what the first signal does."""
        if self._stopped_by is None:
            self._on_signal(signal.SIGTERM)

    # -- signals
    # ----------------------------------------------------------------------------------------------

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _heard_signals():
            try:
                loop.add_signal_handler(number, self._on_signal, number)
            except (ValueError, RuntimeError, NotImplementedError):
                return  # not the main thread: the caller cancels this worker instead

    def _unhandle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (*STOPPING_SIGNALS, signal.SIGHUP):
            try:
                loop.remove_signal_handler(number)
            except (ValueError, RuntimeError, NotImplementedError):
                return

    def _on_signal(self, number: int) -> None:
        """Drain on the first signal: no further call, but calls in flight may end. The second
        signal, or the end of `drain_s`, stops at once."""
        if self._stopped_by is not None:
            self._drop_all()
            return
        self._stopped_by = number
        n_running = sum(serving.n_running for serving in self._servings.values())
        for serving in self._servings.values():
            serving.drain(STOPPING)
        if n_running:
            self._runtime.tell(
                f"stopping: waiting up to {self._pace.drain_s:g} s for {n_running} "
                f"{'piece' if n_running == 1 else 'pieces'} of work; again to stop at once"
            )
        asyncio.get_running_loop().call_later(self._pace.drain_s, self._drop_all)
        self._changed.set()


def _heard_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask to stop; SIGHUP is one of them unless it is ignored (nohup)."""
    is_outlived = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return STOPPING_SIGNALS if is_outlived else (*STOPPING_SIGNALS, signal.SIGHUP)
