"""One worker process's work on one objective: claim work, carry it out, back off in outages, and
write results to the index. Every error that the work raises is handled here."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from babyagi import events
from babyagi.errors import (
    FAULTS_OF_THE_TASK,
    PERSON_MENDS,
    BabyagiError,
    ContextTooLongError,
    CredentialsError,
    EndlessAnswerError,
    IndexUnavailableError,
    LeaseLostError,
    LimitReachedError,
    MachineShortError,
    ModelRejectedError,
    ModelUnavailableError,
    NotFoundError,
    ObjectiveStoppedError,
    OverdueError,
    RequestRefusedError,
    StoreUnavailableError,
    StoreUnusableError,
    find_shortage,
)
from babyagi.index.indexer import find_trouble
from babyagi.journal import Gate
from babyagi.llm.retry import MAX_HOLD_S
from babyagi.loop import Loop
from babyagi.runtime.offload import now_s, wait_at_most
from babyagi.tasks import (
    WAITS_FOR_PERSON,
    Claim,
    Duty,
    DutyClaim,
    Fence,
    Objective,
    ObjectiveStatus,
    Role,
    StopReason,
    Worker,
)
from babyagi.taskstore import lifecycle
from babyagi.taskstore.nouns import Claimable, Deferral, Window
from babyagi.taskstore.sql.store import TaskStore
from babyagi.worker.lease import KnowsDead, WorkerLease

logger = logging.getLogger(__name__)

# -- whether the model answers, and until when claiming is paused
# --------------------------------------------------------------------------------------------------

# With this maximum, work continues within 20 s after an outage, even if each call takes 10 s to
# fail.
MAX_BACKOFF_S = 10.0
# The longest pause in claiming because of a rate limit. One model may be limited for an hour, but
# the work may use another one.
MAX_MODEL_WAIT_S = 20.0
OVERDUE_BACKOFF_S = 1.0  # after a call that got no complete answer before its deadline
PARTIAL_BACKOFF_S = 19.0  # while the model answers probes (small test calls) but no work succeeds
PARTIAL_S = 900.0  # after so long of that, the objective ends; longer than a server mends itself in
# In an outage whose failed calls cost nothing, work itself is tried so often; after that, only
# probes are sent.
N_FREE_TRIES = 2
N_SAME_FAULTS = 3  # after so many different tasks with the same error, a probe tests the model


class Outages:
    """The model outages that one worker has met in a row, and the pauses in claiming that follow.

    Attributes:
        n: the number of outages since work last succeeded.
        is_down: whether the next call must be a probe (a small test call) rather than work.
        is_partial: whether the model has answered a probe, but no work has succeeded since.
        partial_since_s: when work first failed although a probe was answered; infinity if not.
        waits_for_model: whether an outage was reported as an event, and its end was not yet.

    Args:
        random: returns a number from 0 up to 1, for the jitter.
    """

    def __init__(self, *, random: Callable[[], float]) -> None:
        self.n = 0
        self.is_down = False
        self.is_partial = False
        self.partial_since_s = math.inf
        self.waits_for_model = False
        self._random = random
        self._rests_until_s = 0.0

    @property
    def is_resting(self) -> bool:
        """Whether claiming is paused. It is paused for all work, because all tasks meet the same
        outage."""
        return now_s() < self._rests_until_s

    def backoff(self) -> float:
        """Count an outage, and return the seconds until the next try: from 1 doubling up to
        `MAX_BACKOFF_S`, times a random factor from 0.5 to 1. A failure while claiming is paused
        belongs to the same outage and is not counted again."""
        if not self.is_resting:
            self.n += 1
        return float(min(MAX_BACKOFF_S, 2.0 ** min(self.n - 1, 10)) * (0.5 + 0.5 * self._random()))

    def rest(self, delay_s: float) -> None:
        """Pause claiming for at least `delay_s` seconds from now."""
        self._rests_until_s = max(self._rests_until_s, now_s() + delay_s)

    def work_again(self) -> None:
        """Forget the outages, because work has succeeded, perhaps with another model."""
        self.n, self.is_down, self.is_partial = 0, False, False
        self.partial_since_s = math.inf


def _name_broken(fence: Fence) -> str:
    return f"a test call of one word is answered, but not the call for {fence.owner}"


# -- writing results to the index beside the other work, which no trouble with the index stops
# --------------------------------------------------------------------------------------------------

FEED_PAUSE_S = 0.5  # results that arrive close together go into the index as one batch
FEED_RETRY_S = 5.0
NOT_ITS_FAULT = (ObjectiveStoppedError, LimitReachedError, LeaseLostError, StoreUnavailableError)
OWNER_PAUSE_S = 30.0  # pause until the next test whether the process that owns the index has ended


class IndexFeed:
    """Writes new results to the index beside the other work, and has the model update the agent's
    memory from them. It claims the duty to index, so that only one worker writes at a time, and
    pauses while another process owns the index. It reports, as an event, when results cannot be
    written and when they can again.

    Args:
        on_unclear: called when the store's answer was lost, so that it is unclear whether this
            worker holds the claim.
    """

    def __init__(
        self,
        process: Process,
        objective_id: int,
        loop: Loop,
        *,
        on_unclear: Callable[[], None],
    ) -> None:
        self._store = process.store
        self._worker_lease = process.worker_lease
        self._runtime = process.runtime
        self._objective_id = objective_id
        self._loop = loop
        self._is_troubled: bool | None = None  # None: not known yet
        self._on_unclear = on_unclear
        self._pause_s = FEED_PAUSE_S
        self._updating_memory = asyncio.Lock()

    async def begin(self) -> None:
        """Test whether the index can be used, and record it if not. Takes a few seconds at most.

        Raises:
            SettingsError: a package that the index needs is not installed.
        """
        try:
            await self._loop.indexer.ping()
        except (IndexUnavailableError, StoreUnusableError) as error:
            await self._note_trouble(error, is_start=True)

    async def feed(self) -> None:
        """Until cancelled, write new results to the index."""
        while True:
            await self._runtime.sleep(self._pause_s)
            await self._feed_once()

    async def finish(self, *, within_s: float) -> None:
        """Write the remaining results to the index and, once the report is written, update the
        agent's memory from the last tasks. Stop each after `within_s` seconds; the next run does
        what is left."""
        try:
            async with asyncio.timeout(within_s):
                while await self._feed_once():
                    pass
        except TimeoutError:
            await self._note_trouble(
                IndexUnavailableError(f"not all results were written within {within_s:g} s")
            )
        try:
            objective = await self._store.objective(self._objective_id)
            is_due = objective.has_report and objective.stop_reason is not StopReason.CANCELLED
            if is_due and await self._loop.is_memory_due(is_flush=True):
                async with self._claiming() as claim:
                    if claim is not None:
                        await self._loop.update_memory(claim, is_flush=True, within_s=within_s)
        except BabyagiError as error:
            logger.info("the agent's memory was not updated: %s", error.what)

    async def _feed_once(self) -> bool:
        """Write a batch of results to the index, if there are new ones. Return whether this
        succeeded, so that more may be left. Whatever happens, the other work goes on."""
        n_fed, pause_s = 0, FEED_RETRY_S
        try:
            n_fed = await self._look_and_index()
            pause_s = FEED_PAUSE_S
        except NOT_ITS_FAULT as error:
            logger.info("results are not written to the result store now: %s", error.what)
            if isinstance(error, StoreUnavailableError):
                self._on_unclear()
        except BabyagiError as error:
            await self._note_trouble(error)
            if getattr(error, "is_owned_elsewhere", False):
                pause_s = OWNER_PAUSE_S
        except Exception:  # a bug in this program; the index is only a copy of the results
            logger.exception("writing to the result store raised an unexpected error")
        self._pause_s = pause_s
        return bool(n_fed)

    async def _look_and_index(self) -> int:
        """Write a batch of results to the index, and return how many; 0 when none is left, or when
        another worker has claimed the duty. After earlier trouble, even of an earlier run,
        ping the index first: if no result is left, nothing else would show that it works again."""
        if await self._find_troubled():
            await self._loop.indexer.ping()
        n_fed = 0
        if await self._store.results(self._objective_id, only_unindexed=True, limit=1):
            async with self._claiming() as claim:
                if claim is None:
                    return 0
                n_fed = await self._loop.feed_index(claim)
                async with self._updating_memory:
                    if await self._loop.is_memory_due():
                        await self._loop.update_memory(claim)
        if await self._find_troubled():
            self._is_troubled = not await self._say(
                "results are written to the result store again",
                kind=events.RESULTS_INDEXED,
                data={"is_back": True},
            )
        return n_fed

    async def _find_troubled(self) -> bool:
        """Return whether the last report was one of trouble. It may be this worker's report, or
        that of another worker or an earlier run."""
        if self._is_troubled is None:
            self._is_troubled = bool(await find_trouble(self._store, self._objective_id))
        return self._is_troubled

    async def _note_trouble(self, error: BabyagiError, *, is_start: bool = False) -> None:
        """Report that results cannot be indexed, unless this was reported already.

        Args:
            is_start: whether the run starts; then an earlier run's report does not count.
        """
        if getattr(error, "is_owned_elsewhere", False):
            logger.info("another process writes to the result store: %s", error.what)
            return
        logger.warning(
            "results cannot be written to the result store, the loop goes on: %s (%s)",
            error.what,
            error.why,
        )
        if self._is_troubled and not is_start:
            return
        self._is_troubled = await self._say(
            "results cannot be written to the result store: "
            f"{error.what} ({error.why or error.fix})",
            kind=events.INDEX_UNAVAILABLE,
            data={"reason": error.what, "why": error.why, "fix": error.fix},
        )

    async def _say(self, what: str, *, kind: str, data: Mapping[str, Any]) -> bool:
        """Tell the person, and append the event; return whether that succeeded. A failure is only
        logged, so that it does not stop the other work."""
        if self._runtime.around is not None:  # who runs this objective alone sees its events
            self._runtime.tell(f"objective {self._objective_id}: {what}")
        try:
            await self._store.append_event(self._objective_id, kind=kind, data=data)
        except BabyagiError as error:
            logger.info("the state of the result store could not be recorded: %s", error.what)
            return False
        return True

    async def settle(self, *, within_s: float) -> None:
        """Wait for a running update of the agent's memory, so that no paid reply is lost."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._updating_memory:
                pass

    @asynccontextmanager
    async def _claiming(self) -> AsyncIterator[DutyClaim | None]:
        """During the context, claim the duty to index. Yield None if another worker has claimed
        it."""
        try:
            claim = await self._store.claim_duty(
                self._objective_id, self._worker_lease.identity.id, Duty.INDEX
            )
        except asyncio.CancelledError:
            self._on_unclear()
            raise
        if claim is None:
            yield None
            return
        try:
            yield claim
        finally:
            try:
                await self._store.release(claim)
            except asyncio.CancelledError:
                self._on_unclear()
                raise
            except BabyagiError as error:  # not raised, to keep the error of the context's body
                logger.info("the claim to index results could not be released: %s", error.what)
                self._on_unclear()


# -- the work on one objective
# --------------------------------------------------------------------------------------------------

# An idle worker looks for work so often, because no commit announces the end of a delay or a time
# limit.
IDLE_WAIT_S = 1.0
STORE_PAUSE_S = 2.0  # until an unavailable store is tried again
RETRY_DELAY_S = 1.0  # until a failed task or duty can be claimed again
TIME_LOOK_S = 1.0  # pause between two tests of the time limit
# After the time limit, calls in flight have so long to end: a call that ends after its objective
# adds nothing to it.
TIME_GRACE_S = 10.0
# In an outage, after so many claims of the report duty, the report is written from the results
# alone.
MAX_REPORT_TRIES = 3
# In batches, planning waits for so many recorded tasks while there are tasks to start, and an order
# waits for so many startable tasks, and as many that were added since the last order.
MIN_PLANNED = 3
MIN_ORDERED = 5
# Not in batches, each result is planned from, and two tasks that can be started are ordered.
AT_ONCE = Deferral(min_startable=2, min_unordered=1, min_recorded=1)
# A blocked worker tries again after the first pause, which doubles up to the longest one. Meanwhile
# it tests in short intervals whether the objective still needs work.
BLOCKED_PAUSE_S = 30.0
MAX_BLOCKED_PAUSE_S = 600.0
BLOCKED_LOOK_S = 5.0

OpenLoop = Callable[[Objective, Gate], Loop]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How much a worker does at once, and how long it waits.

    Attributes:
        concurrency: number of tasks, and of duties such as planning, that are carried out at once.
        lease_s: after so many seconds without a renewal, other workers take over its claims.
        drain_s: after a signal, running work has so many seconds to end.
        max_failures: failed tries after which a task is given up.
        is_batched: whether planning and ordering wait until several results, or several tasks, can
            share one call of the model.
    """

    concurrency: int = 4
    lease_s: float = 30.0
    drain_s: float = 10.0
    max_failures: int = 3
    is_batched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """In which cases a worker waits instead of leaving the objective.

    Attributes:
        with_pauses: while the objective is paused.
        when_blocked: while the worker is blocked, for example by a missing key, until a person
            removes the cause.
        unreached_s: while a model whose endpoint was not connected to once cannot be reached, at
            most so many seconds.
        is_person_there: while nothing but open questions is left and this function returns True,
            which means that a person is present to answer them.
    """

    with_pauses: bool = False
    when_blocked: bool = False
    unreached_s: float = math.inf
    is_person_there: Callable[[], bool] = lambda: False

    def is_for_answers(self, reason: StopReason | None) -> bool:
        """Return whether an objective must not end for this reason yet, because it waits for
        answers and a person is present to give them."""
        return reason is StopReason.WAITING and self.is_person_there()


Around = Callable[[int, Coroutine[Any, Any, Objective]], Awaitable[Objective]]
"""A function that takes an objective's id and the coroutine that works on it, awaits the coroutine,
and may do something before and after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What a worker process takes from its environment, so that tests can replace it.

    Attributes:
        identity: this worker, as it registers in the store.
        random: returns a number from 0 up to 1.
        new_id: returns a new worker id, to register again after a lost lease.
        knows_dead: returns whether the worker with this name is certainly dead.
        tell: shows a message to the person who runs the worker.
        around: wraps the work on each objective in `serve_all`; None for no wrapper.
    """

    identity: Worker
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    new_id: Callable[[], str]
    knows_dead: KnowsDead = lambda _: False
    tell: Callable[[str], None] = logger.warning
    around: Around | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """What all objectives of one worker process share.

    Attributes:
        slots: one for each claim that the process may hold at once. Waiting objectives get them in
            the order of their requests, so none starves.
        open_loop: opens a `Loop` for an objective.
    """

    store: TaskStore
    worker_lease: WorkerLease
    slots: asyncio.Semaphore
    open_loop: OpenLoop
    pace: Pace
    runtime: Runtime


class Serving:
    """The work of one process on one objective, from joining the objective to leaving it."""

    def __init__(self, process: Process, objective_id: int, *, patience: Patience) -> None:
        self._process = process
        self._store = process.store
        self._worker_lease = process.worker_lease
        self._pace, self._runtime = process.pace, process.runtime
        self._objective_id = objective_id
        self._patience = patience
        self._loop: Loop
        self._claimable: Claimable
        self._gate = Gate()
        self._is_draining = False
        self._catching_up: asyncio.Task[None] | None = None  # the work after the report
        self._running: set[asyncio.Task[None]] = set()
        self._expects_work = True
        self._wake = asyncio.Event()
        self._fatal: BabyagiError | None = None
        # the newest work, if it was begun during an outage
        self._probing_task: asyncio.Task[None] | None = None
        self._must_rejoin = False  # the store may have granted a claim, but its answer was lost
        self._is_time_stopped = False  # as far as this worker is concerned
        self._blocked_reason = ""
        self._blocked_pause_s = BLOCKED_PAUSE_S
        # the errors of failed duties, by owner
        self._errors_by_duty: dict[str, list[str]] = defaultdict(list)
        self._outages = Outages(random=process.runtime.random)
        # the tasks that failed since a task succeeded, with the type of the last error
        self._fault_by_task: dict[int, type[Exception]] = {}
        self._judging = asyncio.Lock()
        self._n_probes = 0
        self._unreached_since_s = math.inf

    async def run(self) -> Objective:
        """Work until the objective has ended and its report is written, until it is paused, or
        until `drain` is called. Return the objective as it is at the end.

        Raises:
            CredentialsError, ModelRejectedError, SettingsError: a person must act; claimed work is
                queued again. Not raised with `Patience.when_blocked`, unless a model cannot be
                reached (`Patience.unreached_s`).
            StoreUnusableError: the store is damaged.
            NotFoundError: the objective was deleted.
        """
        try:
            while True:
                try:
                    async with self._serving() as group:
                        await self._dispatch(group)
                    return await self._store.objective(self._objective_id)
                except StoreUnavailableError as error:
                    self._rest_from_store(error)
                    if self._is_draining:
                        return await self._store.objective(self._objective_id)
                    await self._runtime.sleep(STORE_PAUSE_S)
                except (StoreUnusableError, NotFoundError):
                    raise
                except BabyagiError as error:
                    if not self._patience.when_blocked:
                        raise
                    if await self._wait_while_blocked(error):
                        return await self._store.objective(self._objective_id)
        finally:
            await asyncio.shield(self._worker_lease.leave(self._objective_id))

    @property
    def n_running(self) -> int:
        """The number of tasks and duties of the objective that this process is carrying out."""
        return len(self._running)

    def wake(self) -> None:
        """Look for work at once, because something has changed in the store."""
        self._wake.set()

    def drain(self, reason: str) -> None:
        """Make no further call of a model or tool, and let calls in flight end. Then `run`
        returns."""
        self._is_draining = True
        self._gate.close(reason)
        self._wake.set()
        if self._catching_up is not None:
            self._catching_up.cancel()

    def drop(self) -> None:
        """Cancel all running work at once."""
        for task in self._running:
            task.cancel()

    def fail(self, error: BabyagiError) -> None:
        """Stop because of an error that only a person can mend: calls in flight may end, then `run`
        raises the error."""
        self._fatal = self._fatal or error
        self._gate.close(error.what)
        self._wake.set()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[asyncio.TaskGroup]:
        """During the context, this worker serves the objective, writes its results to the index and
        watches its time limit. Yield the task group in which the work must run. Leaving the context
        waits for that work.

        Raises:
            BabyagiError: an error that only a person can mend.
        """
        objective = await self._store.objective(self._objective_id)
        if not self._is_draining:
            self._gate = Gate()
        self._gate.note_time(objective)
        self._loop, self._fatal = self._process.open_loop(objective, self._gate), None
        index_feed = IndexFeed(
            self._process, self._objective_id, self._loop, on_unclear=self._rejoin_soon
        )
        await self._worker_lease.serve(self._objective_id)
        self._is_time_stopped = False
        await index_feed.begin()
        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(index_feed.feed()),
                group.create_task(self._keep_time()),
            ]
            yield group
            if not self._is_draining:
                await index_feed.settle(within_s=self._pace.drain_s)
            for task in beside:
                task.cancel()
        if self._fatal is not None:
            raise self._fatal
        if not self._is_draining:  # the time for a drain is limited; the next run indexes the rest
            await self._rejoin_if_unclear()
            async with asyncio.TaskGroup() as group:
                finish = index_feed.finish(within_s=self._pace.drain_s)
                self._catching_up = group.create_task(finish)
                if self._is_draining:  # since the test above
                    self._catching_up.cancel()

    async def _wait_while_blocked(self, error: BabyagiError) -> bool:
        """Tell the person, once for each reason, that this error blocks the worker from the
        objective, and wait for a while. Return True if the objective needs no more work from this
        worker, False if it should be tried again."""
        blocked_reason = f"{error.what}{f' ({error.why})' if error.why else ''}"
        if blocked_reason != self._blocked_reason:
            self._blocked_reason, self._blocked_pause_s = blocked_reason, BLOCKED_PAUSE_S
            self._runtime.tell(
                f"this worker cannot work on objective {self._objective_id}: {blocked_reason}"
            )
        until_s = now_s() + self._blocked_pause_s
        self._blocked_pause_s = min(2 * self._blocked_pause_s, MAX_BLOCKED_PAUSE_S)
        await self._worker_lease.serve(self._objective_id, blocked_reason=blocked_reason)
        while now_s() < until_s:
            self._wake.clear()
            if self._is_draining or self._is_over(await self._store.objective(self._objective_id)):
                return True
            await wait_at_most(self._wake, BLOCKED_LOOK_S)
        return False

    async def _keep_time(self) -> None:
        """Until cancelled, end the objective when its time limit is reached, even while this
        process waits for a slot. Work in progress gets `TIME_GRACE_S` more seconds."""
        while True:
            await self._runtime.sleep(TIME_LOOK_S)
            try:
                objective = await self._store.objective(self._objective_id)
                self._gate.note_time(objective)
                limit_s = objective.spec.limits.max_time_s + (
                    TIME_GRACE_S if self._running else 0.0
                )
                is_over = objective.spec.limits.max_time_s and objective.active_s >= limit_s
                if objective.status is ObjectiveStatus.ACTIVE and is_over:
                    await self._store.end_objective(
                        self._objective_id, reason=StopReason.LIMIT_TIME
                    )
                    self._wake.set()
            except BabyagiError as error:  # the work meets the same error, and handles it
                logger.warning("the objective's time limit cannot be checked now: %s", error.what)

    # -- claiming
    # ----------------------------------------------------------------------------------------------

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        while self._running or not self._gate.reason:
            await self._process.slots.acquire()
            work = None
            try:
                self._wake.clear()
                work = await self._claim_one()
                if work is not None:
                    task = group.create_task(work)
                    self._running.add(task)
                    self._probing_task = task if self._outages.n else None
                    task.add_done_callback(self._forget)
                    if self._expects_work:
                        continue
                elif await self._is_finished():
                    return
            except StoreUnavailableError as error:
                self._rest_from_store(error)
            except PERSON_MENDS as error:
                self.fail(error)
                self.drop()
                return
            finally:
                if work is None:
                    self._process.slots.release()
            await wait_at_most(self._wake, IDLE_WAIT_S)

    async def _claim_one(self) -> Coroutine[Any, Any, None] | None:
        """Claim the first duty (such as planning) that is due, else the best task, and return the
        coroutine that carries it out. Return None when nothing can be claimed.

        If something is expected to be claimable, because work of this worker has just ended or the
        last claim left more to claim, this is one transaction. Otherwise a read, which blocks no
        other worker, finds out first whether a claim is worth trying.
        """
        if not self._outages.is_resting:  # each failure would add a further try to those to come
            await self._rejoin_if_unclear()
        if not self._expects_work or self._must_not_claim():
            self._claimable = await self._store.claimable(self._objective_id)
            duty = lifecycle.first_duty(self._claimable, self._deferral)
            is_owed = self._claimable.has_task or duty is not None
            if not is_owed or self._must_not_claim():
                return None
        if self._is_time_stopped:
            await self._worker_lease.serve(self._objective_id)
            self._is_time_stopped = False
        self._claimable, claim = await self._store.claim_next(
            self._objective_id, self._worker_lease.identity.id, deferral=self._deferral
        )
        is_more_seen = self._claimable.n_startable > 1 or bool(self._claimable.duties)
        self._expects_work = claim is not None and (is_more_seen or isinstance(claim, DutyClaim))
        objective = self._claimable.objective
        if claim is None:
            return None
        window = None
        if isinstance(claim, DutyClaim) and claim.duty is Duty.ORDER and not self._pace.is_batched:
            # the free slots will have begun these tasks before the order reads the list
            window = await self._loop.see_list(objective)
        return self._carry_out(claim, objective, window)

    @property
    def _deferral(self) -> Deferral:
        if not self._pace.is_batched:
            return AT_ONCE
        n_free = self._pace.concurrency - len(self._running)
        return Deferral(
            min_startable=max(MIN_ORDERED, n_free + 1),
            min_unordered=MIN_ORDERED,
            min_recorded=MIN_PLANNED,
        )

    async def _rejoin_if_unclear(self) -> None:
        """If the store's answer to a claim was lost, leave the objective and join it again. Leaving
        releases the claim that the store may have granted; this worker's lease would otherwise
        keep it alive."""
        if self._must_rejoin and not self._running:
            identity = self._worker_lease.identity
            await self._store.remove_worker(identity.id, objective_id=self._objective_id)
            await self._worker_lease.serve(self._objective_id)
            self._must_rejoin = False

    async def _is_finished(self) -> bool:
        """Return whether this worker is done with the objective. Called when nothing could be
        claimed. If nothing more can happen in the objective, end it in the store."""
        if self._running:
            return False
        if self._gate.reason or self._fatal is not None or self._is_over(self._claimable.objective):
            return True
        conclusion = self._claimable.conclusion
        if self._patience.is_for_answers(conclusion):
            if not self._is_time_stopped:  # until the next claim of any worker
                await self._worker_lease.serve(self._objective_id, blocked_reason=WAITS_FOR_PERSON)
                self._is_time_stopped = True
        elif conclusion is not None and not self._outages.is_resting:
            ended = await self._store.end_objective(self._objective_id)
            if ended.status is ObjectiveStatus.ENDED:
                self._wake.set()
        return False

    def _must_not_claim(self) -> bool:
        # the outcome of work that was begun during the outage will show whether the outage is over;
        # older work may hang
        probing = self._probing_task if self._outages.n else None
        return (
            bool(self._gate.reason)
            or self._fatal is not None
            or self._outages.is_resting
            or self._must_rejoin
            or (probing is not None and not probing.done())
        )

    def _is_over(self, objective: Objective) -> bool:
        if objective.status is ObjectiveStatus.PAUSED:
            return not self._patience.with_pauses
        return (
            objective.status is ObjectiveStatus.ENDED
            and objective.has_report
            and not self._patience.is_for_answers(objective.stop_reason)
        )

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._expects_work = True
        self._process.slots.release()
        self.wake()

    # -- one piece of work, and how it can end
    # ----------------------------------------------------------------------------------------------

    async def _do(
        self, claim: Claim | DutyClaim, objective: Objective, window: Window | None
    ) -> None:
        match claim:
            case Claim():
                await self._require_model(claim.fence)
                await self._loop.run_turn(claim, objective)
                self._fault_by_task.clear()
            case DutyClaim() if self._is_hopeless(claim):
                why = self._errors_by_duty[claim.fence.owner][-1]
                await self._loop.give_up_duty(claim, objective, why=why)
            case DutyClaim(duty=Duty.REPORT):
                await self._report(claim, objective)
            case DutyClaim():
                await self._require_model(claim.fence)
                await self._loop.run_duty(claim, objective, window=window)

    def _is_hopeless(self, claim: DutyClaim) -> bool:
        """Return whether the duty failed too often. It must not keep the run from ending."""
        return len(self._errors_by_duty[claim.fence.owner]) >= self._pace.max_failures

    async def _release(
        self, claim: Claim | DutyClaim, reason: str, *, delay_s: float = 0.0
    ) -> None:
        """End the claim without counting a failure. The work can be claimed again after `delay_s`
        seconds."""
        logger.info("%s is released, to be tried again later: %s", claim.fence.owner, reason)
        await self._store.release(claim, delay_s=delay_s, reason=reason)

    async def _fail(self, claim: Claim | DutyClaim, error: str, max_failures: int) -> None:
        """End the claim and count a failed try.

        Args:
            max_failures: the number of failed tries after which the work is given up.
        """
        if isinstance(claim, Claim):
            await self._store.fail_task(
                claim, error=error, max_failures=max_failures, delay_s=RETRY_DELAY_S
            )
            return
        if self._is_hopeless(claim):
            what = f"the duty {claim.duty} failed too often, and giving it up failed as well"
            self.fail(BabyagiError(f"{what}: {error}", guide="recovery"))
        n_counted = 1 + self._pace.max_failures - max_failures
        self._errors_by_duty[claim.fence.owner] += [error] * n_counted
        await self._release(claim, error, delay_s=RETRY_DELAY_S)

    async def _report(self, claim: DutyClaim, objective: Objective) -> None:
        """Have the model write the report. If an outage lasts, write it from the results alone. But
        if the model's text is recorded and only its conversion to the requested type is missing,
        wait, and try that again."""
        try:
            await self._require_model(claim.fence)
            await self._loop.run_duty(claim, objective)
        except ModelUnavailableError as error:
            is_short = (
                not isinstance(error, OverdueError)
                and (error.retry_after_s or 0.0) <= MAX_MODEL_WAIT_S
            )
            may_wait = is_short and claim.fence.claim_no < MAX_REPORT_TRIES
            if may_wait or await self._loop.has_answer(claim):
                raise
            await self._loop.give_up_duty(
                claim, objective, why=f"the model could not be reached: {error.what}"
            )
        except (LimitReachedError, CredentialsError, ModelRejectedError) as error:
            await self._loop.give_up_duty(claim, objective, why=error.what)

    async def _carry_out(
        self, claim: Claim | DutyClaim, objective: Objective, window: Window | None
    ) -> None:
        """Carry out a claimed task or duty. Handle every error that it raises.

        Args:
            window: for the duty to order, the list as it was at the claim, if it was read then.
        """
        n_outages = self._outages.n
        try:
            try:
                await self._do(claim, objective, window)
                await self._note_success(n_outages)
            except Exception as error:
                await self._answer(claim, await self._judge(claim, error))
        except LeaseLostError as error:
            logger.warning("the work is dropped, because its claim was lost: %s", error.what)
            self._worker_lease.doubt()
        except StoreUnavailableError as error:
            self._rest_from_store(error)
            await self._release_when_possible(claim, error.what)
        except StoreUnusableError as error:
            self.fail(error)

    async def _release_when_possible(self, claim: Claim | DutyClaim, reason: str) -> None:
        """Release the claim as soon as the store answers again. Until then this worker's lease
        keeps the claim from all other workers, and other work may wait for what its calls hold of
        the limits."""
        while True:
            await self._runtime.sleep(STORE_PAUSE_S)
            try:
                return await self._release(claim, reason)
            except LeaseLostError:
                return None  # the commit that seemed to fail has succeeded
            except StoreUnavailableError as error:
                logger.warning("the task store is still unavailable: %s", error.what)

    async def _answer(self, claim: Claim | DutyClaim, error: Exception) -> None:
        """Handle an error of the work according to who can mend it: time, a person, or nobody.

        Raises:
            LeaseLostError: the claim is lost already.
            StoreUnavailableError: the claim cannot be released now.
        """
        match error:
            case LeaseLostError() | StoreUnavailableError():
                raise error
            case LimitReachedError():
                await self._release(claim, error.what)
                await self._store.end_objective(
                    self._objective_id, reason=StopReason(f"limit:{error.limit}"), detail=error.what
                )
            case ObjectiveStoppedError():
                await self._release(claim, error.what)
            case ModelUnavailableError():
                await self._answer_outage(claim, error)
            case BabyagiError() if isinstance(error, PERSON_MENDS):
                self.fail(error)
                await self._release(claim, error.what)
            case BabyagiError() if isinstance(error, FAULTS_OF_THE_TASK):
                await self._fail(claim, error.what, _tries_for(error, self._pace.max_failures))
            case _ if shortage := find_shortage(error):
                await self._release(claim, shortage.what, delay_s=self._wait_for_machine(shortage))
            case _:  # a bug in this program: the traceback goes to the log, and the worker lives
                logger.error("a piece of work raised an unexpected error", exc_info=error)
                await self._fail(claim, f"{type(error).__name__}: {error}", self._pace.max_failures)

    # -- whether the model or the task is at fault
    # ----------------------------------------------------------------------------------------------

    async def _judge(self, claim: Claim | DutyClaim, error: Exception) -> Exception:
        """Return the error to handle instead of this one, which often is the same. If an answer
        came too late, or several tasks failed with the same error, a probe (a small test call of
        the model) finds out whether there is an outage. If the model refuses even the probe, end
        the objective; after a late answer that counts as an outage, which passes."""
        is_late = isinstance(error, OverdueError) and error.has_begun
        if not is_late and not self._is_common(claim, error):
            return error
        try:
            async with self._judging:
                if is_late and self._outages.is_down:
                    return error  # a probe for other work has found the outage already
                refusal = await self._probe(claim.fence)
            if is_late and refusal is not None:
                return error
            if refusal is not None:
                detail = "the endpoint refuses even a test call of one line: "
                detail += f"{refusal.what}{f' ({refusal.why})' if refusal.why else ''}"
                await self._store.end_objective(
                    self._objective_id, reason=StopReason.FAILED, detail=detail
                )
                return ObjectiveStoppedError(detail)
        except Exception as found:
            return found
        self._fault_by_task.clear()
        if isinstance(error, OverdueError):
            fix, guide = error.fix, error.guide
            return EndlessAnswerError(error.what, fix=fix, guide=guide, may_be_billed=True)
        return error

    def _is_common(self, claim: Claim | DutyClaim, error: Exception) -> bool:
        """Note a fault of a task. Return whether several tasks in a row failed with the same."""
        if not isinstance(error, FAULTS_OF_THE_TASK) or not isinstance(claim, Claim):
            return False
        self._fault_by_task[claim.task.id] = kind = type(error)
        return list(self._fault_by_task.values()).count(kind) >= N_SAME_FAULTS

    async def _require_model(self, fence: Fence) -> None:
        """If the model is down, send it a probe (a small test call) before the work.

        Raises:
            ModelUnavailableError: the model still does not answer.
        """
        if self._outages.is_down:
            self._outages.is_partial = False
            await self._probe(fence)
            # a refusal of the probe is ignored: the work itself shows what the model refuses
            self._outages.is_down, self._outages.is_partial = False, True

    async def _probe(self, fence: Fence) -> BabyagiError | None:
        """Ask the model that did not answer for one word. Return None if it answers, or the error
        with which it refuses. Raises as `Loop.probe` does."""
        self._n_probes += 1
        role = next(iter(self._gate.silent.values()), Role.EXECUTION)
        try:
            await self._loop.probe(fence, number=self._n_probes, role=role)
        except (ContextTooLongError, RequestRefusedError) as error:
            return error
        except EndlessAnswerError as error:
            raise ModelUnavailableError(error.what, may_be_billed=True) from error
        return None

    async def _answer_outage(self, claim: Claim | DutyClaim, error: ModelUnavailableError) -> None:
        delay_s = 0.0
        if error.is_unreached and self._is_given_up():
            fix = f"babyagi resume --objective {self._objective_id}, when it can be reached"
            self.fail(ModelRejectedError(error.what, why=error.why, fix=fix, guide="models"))
        elif not await self._is_broken_for(claim.fence, error):
            delay_s = await self._wait_for_model(error, claim.fence)
        await self._release(claim, f"the model is unavailable: {error.what}", delay_s=delay_s)

    async def _is_broken_for(self, fence: Fence, error: ModelUnavailableError) -> bool:
        """Note that the model answers probes, but not this call. If that has lasted for
        `PARTIAL_S`, end the objective and return True. A call that is late or over a rate limit is
        not broken: waiting helps it."""
        outages = self._outages
        if not outages.is_partial or error.is_limit or isinstance(error, OverdueError):
            return False
        outages.partial_since_s = min(outages.partial_since_s, now_s())
        if now_s() - outages.partial_since_s < PARTIAL_S:
            return False
        detail = f"{_name_broken(fence)}: {error.what}{f' ({error.why})' if error.why else ''}"
        await self._store.end_objective(self._objective_id, reason=StopReason.FAILED, detail=detail)
        return True

    def _is_given_up(self) -> bool:
        """Note that an endpoint cannot be reached, and never was. Return whether that has lasted
        for longer than this worker is patient."""
        self._unreached_since_s = min(self._unreached_since_s, now_s())
        return now_s() - self._unreached_since_s >= self._patience.unreached_s

    async def _wait_for_model(self, error: ModelUnavailableError, fence: Fence) -> float:
        """Pause claiming, append an event about the outage if it is new, and return the seconds
        until the task can be claimed again."""
        outages, is_known = self._outages, self._outages.is_resting
        delay_s = max(outages.backoff(), error.retry_after_s or 0.0)
        if outages.is_partial:
            delay_s = max(delay_s, PARTIAL_BACKOFF_S)
        elif isinstance(error, OverdueError):
            delay_s = OVERDUE_BACKOFF_S
        delay_s = min(delay_s, MAX_HOLD_S)
        # a model that is down gets a probe before the next work
        is_slow = isinstance(error, OverdueError) and error.server_lives
        is_costly = (error.may_be_billed and not is_slow) or outages.n > N_FREE_TRIES
        outages.is_down = (is_costly and not error.is_limit) or (is_known and outages.is_down)
        if not is_known:
            self._rest(min(delay_s, MAX_MODEL_WAIT_S) if error.is_limit else delay_s)
            outages.waits_for_model = True
            data = {
                "reason": error.what,
                "why": _name_broken(fence) if outages.is_partial else error.why,
                "fix": error.fix,
                "retry_in_s": round(delay_s, 1),
            }
            await self._store.append_event(
                self._objective_id, kind=events.MODEL_UNAVAILABLE, data=data
            )
        return delay_s

    def _wait_for_machine(self, shortage: MachineShortError) -> float:
        """Pause claiming, tell the person, and return the seconds before the work may be claimed
        again."""
        is_known = self._outages.is_resting
        delay_s = self._outages.backoff()
        if not is_known:
            self._rest(delay_s)
            self._runtime.tell(f"{shortage.what}; work goes on by itself in {delay_s:.1f} s")
        return delay_s

    async def _note_success(self, n_outages: int) -> None:
        """Note that work has succeeded, which ends an outage and a block.

        Args:
            n_outages: the number of outages when the work began.
        """
        if self._blocked_reason:
            self._runtime.tell(f"this worker works on objective {self._objective_id} again")
            self._blocked_reason, self._blocked_pause_s = "", BLOCKED_PAUSE_S
        if n_outages != self._outages.n or self._outages.is_down:
            # the work began before the outage, so its success does not prove the outage's end
            return
        self._outages.work_again()
        # while a model is silent, this work has called another model or none
        if self._outages.waits_for_model and not self._gate.silent:
            self._outages.waits_for_model = False
            # the work is committed already, so failing to write an event must not fail it
            with suppress(BabyagiError):
                await self._store.append_event(
                    self._objective_id, kind=events.MODEL_AVAILABLE, data={}
                )

    def _rest_from_store(self, error: StoreUnavailableError) -> None:
        """Claim nothing for a while, and then leave the objective and join it again once this
        worker's other work has ended, which releases a claim that the store may have granted."""
        logger.warning(
            "the task store is unavailable, next try in %.1f s: %s", STORE_PAUSE_S, error.what
        )
        self._rejoin_soon()
        self._rest(STORE_PAUSE_S)

    def _rejoin_soon(self) -> None:
        self._must_rejoin = True

    def _rest(self, delay_s: float) -> None:
        """Claim nothing for `delay_s` seconds."""
        self._outages.rest(delay_s)
        asyncio.get_running_loop().call_later(delay_s, self._wake.set)


def _tries_for(error: BabyagiError, max_failures: int) -> int:
    """Return how many tries may fail with this error before the work is given up: 1 if another try
    would fail the same way, at most 2 if the model did not end its answer, else `max_failures`."""
    if isinstance(error, ContextTooLongError | RequestRefusedError):
        return 1
    return min(2, max_failures) if isinstance(error, EndlessAnswerError) else max_failures
