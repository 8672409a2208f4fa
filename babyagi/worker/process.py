"""One worker process: it is alive as long as its lease, serves objectives, hears signals, drains,
and stops."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
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
MAX_TICK_WAIT_S = 60.0  # a clock that was set, or a suspended host, is noticed within this
TICK_PAUSE_S = 2.0
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPING = "this worker was asked to stop"

Around = Callable[[int, Coroutine[Any, Any, Objective]], Awaitable[Objective]]
"""Awaits the work on the objective with this id, with something round it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What a worker is handed from outside: who it is, its time, its chance, its ids, what tells it
    that another worker is dead, and whom it tells what hinders it."""

    identity: Worker
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    new_id: Callable[[], str]
    knows_dead: KnowsDead = knows_nobody_dead
    tell: Callable[[str], None] = logger.warning
    around: Around | None = None


class WorkerLoop:
    """Serves one objective to its end, or all of a store until a signal asks to stop."""

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
        self, objective_id: int, *, patience: Patience | None = None
    ) -> tuple[Objective, int | None]:
        """Work on the objective until it has ended and its report is written, it is paused, or a
        signal asks to stop.

        Returns:
            The objective as it is then, and the number of the signal that stopped us, if one did.

        Raises:
            CredentialsError, ModelRejectedError, SettingsError, StoreUnusableError: a person must
            act; what was claimed is queued again.
        """

        async def serve(group: asyncio.TaskGroup) -> None:
            try:
                await self._serve(objective_id, patience or Patience())
            except BabyagiError as error:
                self._fatal = self._fatal or error

        await self._live(serve)
        if self._fatal is not None:
            raise self._fatal
        return await self._store.objective(objective_id), self._stopped_by

    async def serve_all(self, *, is_person_there: Callable[[], bool] = nobody) -> int | None:
        """Work on every objective that is active or owes its report, now and later, until a signal
        asks to stop; return its number.

        Raises:
            StoreUnusableError: a person must act.
        """
        self._patience = Patience(when_blocked=True, is_person_there=is_person_there)
        await self._live(self._serve_what_comes, self._keep_schedules)
        if self._fatal is not None:
            raise self._fatal
        return self._stopped_by

    async def _live(
        self,
        work: Callable[[asyncio.TaskGroup], Awaitable[None]],
        *beside: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        await self.worker_lease.begin()
        try:
            async with asyncio.TaskGroup() as group:
                self._handle_signals()
                background = [
                    group.create_task(keep())
                    for keep in (self._keep_lease, self._watch_others, *beside)
                ]
                try:
                    await work(group)
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
                        await asyncio.sleep(0)  # it enters itself
            except StoreUnavailableError as error:
                logger.warning("the task store is unavailable: %s", error.what)
            except BabyagiError as error:
                self._fail(error)
            await self._wait_for_change()
        while self._servings:
            self._changed.clear()
            await self._wait_for_change()

    async def _serve_among_others(self, objective_id: int) -> None:
        """One objective's trouble is not that of the others."""
        try:
            await self._serve(objective_id, self._patience)
        except NotFoundError:
            logger.info("objective %d is gone", objective_id)
        except StoreUnusableError as error:
            self._fail(error)
        except Exception:
            logger.exception(
                (
                    "serving objective %d raised what nobody expected; this process serves it no "
                    "more"
                ),
                objective_id,
            )
            self._shunned.add(objective_id)

    async def _serve(self, objective_id: int, patience: Patience) -> Objective:
        serving = self._servings[objective_id] = Serving(
            self._process, objective_id, patience=patience
        )
        if self._stopped_by is not None:
            serving.drain(STOPPING)
        try:
            around, work = self._runtime.around, serving.run()
            return await (work if around is None else around(objective_id, work))
        finally:
            del self._servings[objective_id]
            self._changed.set()
            self._may_tick.set()  # a tick may have waited for this objective

    def _fail(self, error: BabyagiError) -> None:
        """Nothing can go on here."""
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
        """What another process commits wakes whoever waits here."""
        while True:
            try:
                await self._store.wait_for_change(timeout_s=CHANGE_WAIT_S)
            except BabyagiError as error:  # whoever works meets it too, and knows what to do
                logger.warning("changes of others cannot be seen now: %s", error.what)
                await self._runtime.sleep(CHANGE_WAIT_S)
            self._wake_all()

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
        """Decide what is due now, and return the seconds until it is worth while again."""
        try:
            fired = await self._store.fire_schedules(self.worker_lease.identity.id)
        except (LeaseLostError, StoreUnavailableError) as error:
            logger.warning("schedules cannot be looked at now: %s", error.what)
            return TICK_PAUSE_S
        except BabyagiError as error:
            self._fail(error)
            return TICK_PAUSE_S
        except Exception:  # such as a time zone that is not known here; the work goes on
            logger.exception("deciding what is due raised what nobody expected")
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
        """As the first signal does."""
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
                return  # not the main thread: whoever runs us there cancels us instead

    def _unhandle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (*STOPPING_SIGNALS, signal.SIGHUP):
            try:
                loop.remove_signal_handler(number)
            except (ValueError, RuntimeError, NotImplementedError):
                return

    def _on_signal(self, number: int) -> None:
        """The first signal drains: no further call, what is in flight may end. The second, or
        `drain_s`, stops now."""
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
    """Those that ask to stop; the end of the terminal too, unless it is to be outlived (nohup)."""
    is_outlived = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return STOPPING_SIGNALS if is_outlived else (*STOPPING_SIGNALS, signal.SIGHUP)
