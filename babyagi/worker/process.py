"""One worker process: it keeps its lease, serves objectives, handles signals, drains (makes no
further calls), and ends."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from babyagi.errors import (
    BabyagiError,
    LeaseLostError,
    NotFoundError,
    StoreUnavailableError,
    StoreUnusableError,
)
from babyagi.runtime.offload import wait_at_most
from babyagi.tasks import Objective
from babyagi.taskstore.schedules import TICK_DECIDED
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import say_count
from babyagi.worker.lease import WorkerLease
from babyagi.worker.serving import Around, OpenLoop, Pace, Patience, Process, Runtime, Serving

__all__ = ["Around", "Pace", "Patience", "Runtime", "WorkerLoop"]

logger = logging.getLogger(__name__)

CHANGE_WAIT_S = 5.0
# Schedules are checked at least so often, because the clock may have been set or the host
# suspended.
MAX_TICK_WAIT_S = 60.0
TICK_PAUSE_S = 2.0  # until schedules are checked again after an error of the store
STOPPING = "this worker was asked to stop"


class WorkerLoop:
    """A worker process: it serves one objective until that ends (`run`), or all objectives of a
    store until a signal stops it (`serve_all`)."""

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
        self._process = Process(
            store=store,
            worker_lease=self.worker_lease,
            slots=asyncio.Semaphore(pace.concurrency),
            open_loop=open_loop,
            pace=pace,
            runtime=runtime,
        )
        self._servings: dict[int, Serving] = {}
        self._shunned: set[int] = set()
        self._changed = asyncio.Event()
        self._may_tick = asyncio.Event()
        self._stopped_by: int | None = None
        self._fatal: BabyagiError | None = None

    async def run(
        self, objective_id: int, *, patience: Patience | None = None
    ) -> tuple[Objective, int | None]:
        """Work on the objective until it has ended and its report is written, until it is paused,
        or until a signal asks this process to stop.

        Args:
            patience: what to wait for instead of leaving the objective; None waits for nothing.

        Returns:
            The objective as it is at the end, and the number of the signal that stopped the run;
            None if no signal did.

        Raises:
            CredentialsError, ModelRejectedError, SettingsError, StoreUnusableError: a person must
                act; claimed work is queued again.
        """

        async with self._living():
            try:
                async with self._serving(objective_id, patience or Patience()) as serving:
                    await serving.run()
            except BabyagiError as error:
                self._fatal = self._fatal or error
        return await self._store.objective(objective_id), self._stopped_by

    async def serve_all(self, *, is_person_there: Callable[[], bool] = lambda: False) -> int | None:
        """Work on every objective that is active or needs its report, including objectives that are
        added later, until a signal asks this process to stop. Return the number of the signal.

        Args:
            is_person_there: returns whether a person is present who can answer questions.

        Raises:
            StoreUnusableError: a person must act.
        """
        patience = Patience(when_blocked=True, is_person_there=is_person_there)
        async with self._living(self._keep_schedules) as group:
            await self._serve_what_comes(group, patience)
        return self._stopped_by

    @asynccontextmanager
    async def _living(
        self, *beside: Callable[[], Coroutine[Any, Any, None]]
    ) -> AsyncIterator[asyncio.TaskGroup]:
        """During the context, keep this worker registered: renew its lease, handle signals, and
        watch for commits by other processes. Also run the coroutines `beside`. Yield the task group
        in which all of that runs. Its end raises the error that stopped the worker, if one did."""
        await self.worker_lease.begin()
        try:
            async with asyncio.TaskGroup() as group:
                keeping = (self._keep_lease, self._watch_others, *beside)
                background = [group.create_task(keep()) for keep in keeping]
                try:
                    with hearing_signals(self._on_signal):
                        yield group
                finally:
                    for task in background:
                        task.cancel()
        finally:
            await asyncio.shield(self.worker_lease.end())
        if self._fatal is not None:
            raise self._fatal

    # -- objectives
    # ----------------------------------------------------------------------------------------------

    async def _serve_what_comes(self, group: asyncio.TaskGroup, patience: Patience) -> None:
        while self._stopped_by is None and self._fatal is None:
            self._changed.clear()
            try:
                for objective_id in [one.id for one in await self._store.objectives(are_open=True)]:
                    if objective_id not in self._servings and objective_id not in self._shunned:
                        group.create_task(self._serve_among_others(objective_id, patience))
                        await asyncio.sleep(0)  # let it add itself to `_servings`
            except StoreUnavailableError as error:
                logger.warning("the task store is unavailable: %s", error.what)
            except BabyagiError as error:
                self._fail(error)
            await wait_at_most(self._changed, CHANGE_WAIT_S)
        while self._servings:
            self._changed.clear()
            await wait_at_most(self._changed, CHANGE_WAIT_S)

    async def _serve_among_others(self, objective_id: int, patience: Patience) -> None:
        """Serve one objective. Its errors do not stop the work on other objectives, unless the
        store is unusable."""
        try:
            async with self._serving(objective_id, patience) as serving:
                around, work = self._process.runtime.around, serving.run()
                await (work if around is None else around(objective_id, work))
        except NotFoundError:
            logger.info("objective %d was deleted", objective_id)
        except StoreUnusableError as error:
            self._fail(error)
        except Exception:
            what = "objective %d raised an unexpected error; this process no longer works on it"
            logger.exception(what, objective_id)
            self._shunned.add(objective_id)

    @asynccontextmanager
    async def _serving(self, objective_id: int, patience: Patience) -> AsyncIterator[Serving]:
        """Yield a `Serving` for the objective, which stays in `_servings` during the context."""
        serving = Serving(self._process, objective_id, patience=patience)
        self._servings[objective_id] = serving
        if self._stopped_by is not None:
            serving.drain(STOPPING)
        try:
            yield serving
        finally:
            del self._servings[objective_id]
            self._changed.set()
            self._may_tick.set()  # a tick may have waited for this objective's end

    def _fail(self, error: BabyagiError) -> None:
        """Stop the whole worker because of an error that affects every objective."""
        self._fatal = self._fatal or error
        for serving in self._servings.values():
            serving.fail(error)
        self._changed.set()

    # -- beside the work
    # ----------------------------------------------------------------------------------------------

    async def _keep_lease(self) -> None:
        try:
            await self.worker_lease.keep(on_lost=self._drop_all, on_freed=self.wake)
        except BabyagiError as error:
            self._fail(error)

    async def _watch_others(self) -> None:
        """Wake all waiting parts of this process when another process has committed."""
        while True:
            try:
                await self._store.wait_for_change(timeout_s=CHANGE_WAIT_S)
            except BabyagiError as error:  # the work meets the same error, and handles it
                logger.warning("changes by other processes cannot be noticed now: %s", error.what)
                await self._process.runtime.sleep(CHANGE_WAIT_S)
            self.wake()

    async def _keep_schedules(self) -> None:
        """Until a signal asks this process to stop, start the objectives of schedules when their
        ticks are due."""
        while self._stopped_by is None and self._fatal is None:
            self._may_tick.clear()
            wait_s = await self._fire_schedules()
            await wait_at_most(self._may_tick, min(wait_s, MAX_TICK_WAIT_S))

    async def _fire_schedules(self) -> float:
        """Start the objectives whose schedules are due now. Return the seconds until the next
        call."""
        try:
            fired = await self._store.fire_schedules(self.worker_lease.identity.id)
        except (LeaseLostError, StoreUnavailableError) as error:
            logger.warning("schedules cannot be checked now: %s", error.what)
            return TICK_PAUSE_S
        except BabyagiError as error:
            self._fail(error)
            return TICK_PAUSE_S
        except Exception:  # such as a time zone that this machine lacks; the other work continues
            logger.exception("checking which schedules are due raised an unexpected error")
            return MAX_TICK_WAIT_S
        for tick in fired.ticks:
            told = {"schedule_id": tick.schedule_id, "objective_id": tick.objective_id}
            logger.info("%s", tick.words, extra={"event": TICK_DECIDED, **told})
        if any(tick.objective_id is not None for tick in fired.ticks):
            self._changed.set()
        return MAX_TICK_WAIT_S if fired.wait_s is None else fired.wait_s

    def wake(self) -> None:
        """Let everything that waits here look at the store at once."""
        self._changed.set()
        self._may_tick.set()
        for serving in self._servings.values():
            serving.wake()

    def _drop_all(self) -> None:
        for serving in self._servings.values():
            serving.drop()

    def stop(self) -> None:
        """Do what the first signal does: make no further call, and let calls in flight end. A
        second call does nothing."""
        if self._stopped_by is None:
            self._on_signal(signal.SIGTERM)

    # -- signals
    # ----------------------------------------------------------------------------------------------

    def _on_signal(self, number: int) -> None:
        """At the first signal, drain: make no further call, and let calls in flight end. At the
        second signal, or `drain_s` seconds after the first, cancel all running work."""
        if self._stopped_by is not None:
            self._drop_all()
            return
        self._stopped_by = number
        n_running = sum(serving.n_running for serving in self._servings.values())
        for serving in self._servings.values():
            serving.drain(STOPPING)
        if n_running:
            pieces = say_count(n_running, "piece")
            self._process.runtime.tell(
                f"stopping: waiting up to {self._process.pace.drain_s:g} s for {pieces} of work; "
                "a second signal (Ctrl-C) stops at once"
            )
        asyncio.get_running_loop().call_later(self._process.pace.drain_s, self._drop_all)
        self._changed.set()


@contextmanager
def hearing_signals(hear: Callable[[int], None]) -> Iterator[None]:
    """During the context, `hear` gets the number of each signal that asks this process to stop:
    SIGINT, SIGTERM, and SIGHUP unless it is ignored (as under nohup). In another thread than the
    main one there are no signals: whoever runs it cancels it."""
    loop, numbers = asyncio.get_running_loop(), [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    for number in numbers:
        loop.add_signal_handler(number, hear, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
