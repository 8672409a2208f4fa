import asyncio
from typing import Any

import pytest

from babyagi import events
from babyagi.errors import LeaseLostError, StoreUnavailableError, StoreUnusableError
from babyagi.taskstore.sqlite import MemoryTaskStore
from babyagi.worker.lease import COMING_BACK_S, WorkerLease, reap_namesakes
from support.virtual import VirtualClock, run_virtually
from support.workers import join
from tests.taskstore.contract import begin, make_worker
from tests.worker.test_process import FlakyStore

LEASE_S = 30.0


class Life:
    """A worker's worker_lease in virtual time, and what it called back."""

    def __init__(self, store=None):
        self.store = store or MemoryTaskStore(VirtualClock())
        self.lost = self.freed = 0
        self.is_frozen = False
        new_ids = iter(f"me-{number}" for number in range(2, 100))
        self.worker_lease = WorkerLease(
            self.store,
            make_worker("me-1", name="me"),
            lease_s=LEASE_S,
            sleep=self.sleep,
            new_id=lambda: next(new_ids),
        )

    async def sleep(self, seconds):
        """As long as it says, unless the process is frozen meanwhile and others find it dead."""
        await asyncio.sleep(LEASE_S + 1 if self.is_frozen else seconds)
        if self.is_frozen:
            await self.store.reap_workers()
            self.is_frozen = False

    def note_lost(self):
        self.lost += 1

    def note_freed(self):
        self.freed += 1

    async def keep(self, seconds):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.worker_lease.keep(on_lost=self.note_lost, on_freed=self.note_freed)


def test_a_lease_that_is_kept_lives_on():
    async def live():
        life = Life()
        objective_id = await begin(life.store)
        await life.worker_lease.begin()
        await life.worker_lease.serve(objective_id)
        await life.keep(500)
        assert await life.store.claim_task(objective_id, "me-1") is not None
        assert life.lost == 0
        await life.worker_lease.end()
        assert [worker.id for worker in await life.store.workers()] == []

    run_virtually(live())


def test_the_tasks_of_a_dead_worker_are_free_within_a_second_of_the_end_of_its_lease():
    async def live():
        life = Life()
        objective_id = await begin(life.store)
        await life.worker_lease.begin()
        assert await life.store.claim_task(objective_id, "w") is not None
        await life.keep(LEASE_S + 1)
        assert life.freed == 1

    run_virtually(live())


def test_a_worker_that_was_declared_dead_is_told_takes_a_new_id_and_serves_what_it_served():
    async def live():
        life = Life()
        first, second = await begin(life.store), await begin(life.store, worker_id="v")
        await life.worker_lease.begin()
        await life.worker_lease.serve(first)
        await life.worker_lease.serve(second, blocked_reason="no key")
        life.is_frozen = True
        await life.keep(LEASE_S + 1.1)
        (me,) = await life.store.workers()
        assert (me.id, life.worker_lease.identity.id, life.lost) == ("me-2", "me-2", 1)
        assert [(one.objective_id, one.blocked_reason) for one in me.joined] == [
            (first, ""),
            (second, "no key"),
        ]
        assert (await life.store.events(first))[-1].kind == events.WORKER_JOINED

    run_virtually(live())


def test_a_worker_that_was_declared_dead_notices_it_at_the_next_check():
    async def live():
        life = Life()
        await life.worker_lease.begin()
        await reap_namesakes(life.store, await life.store.workers(), name="me", home="")
        await life.keep(1.1)
        assert life.lost == 1

    run_virtually(live())


def test_a_worker_that_is_declared_dead_while_it_joins_anew_joins_once_more():
    async def live():
        store = MemoryTaskStore(VirtualClock())
        objective_id = await begin(store)
        life = Life(store)
        await life.worker_lease.begin()
        await life.worker_lease.serve(objective_id)
        await store.reap_workers(silent={}, gone=["me-1"])
        flaky: Any = FlakyStore(store, "join_objective", LeaseLostError("declared dead"), times=1)
        life.worker_lease._store = flaky
        await life.keep(1.1)
        await store.reap_workers(silent={}, gone=[life.worker_lease.identity.id])
        await life.keep(1.1)
        assert await life.store.claim_task(objective_id, life.worker_lease.identity.id) is not None

    run_virtually(live())


# -- clocks that jump, machines that sleep
# ---------------------------------------------------------------------------------------


def two_lives(clock):
    """Two workers on one store, and an objective of which each holds a task."""

    async def begin_both():
        one, other = Life(MemoryTaskStore(clock)), Life()
        other.store = one.store
        new_ids = iter(f"you-{number}" for number in range(2, 100))
        other.worker_lease = WorkerLease(
            one.store,
            make_worker("you-1", name="you"),
            lease_s=LEASE_S,
            sleep=other.sleep,
            new_id=lambda: next(new_ids),
        )
        objective_id = await begin(one.store, "B")
        await one.store.reap_workers(silent={}, gone=["w"])
        for life in (one, other):
            await life.worker_lease.begin()
            await life.worker_lease.serve(objective_id)
            assert (
                await life.store.claim_task(objective_id, life.worker_lease.identity.id) is not None
            )
        return one, other, objective_id

    return begin_both()


@pytest.mark.parametrize("jump_s", [3600, -3600, 8 * 3600, 31, -31])
def test_a_clock_that_jumps_makes_nobody_dead_and_everybody_can_claim_again_within_two_seconds(
    jump_s,
):
    async def live():
        clock = VirtualClock()
        one, other, objective_id = await two_lives(clock)
        keeping = [asyncio.create_task(life.keep(200)) for life in (one, other)]
        for _ in range(5):
            await asyncio.sleep(17.3)
            clock.offset_s += jump_s
            await asyncio.sleep(2)
            assert not any(lease.has_run_out for lease in await one.store.workers())
        await asyncio.gather(*keeping)
        assert [(task.status, task.n_lost) for task in await one.store.tasks(objective_id)] == [
            ("running", 0)
        ] * 2
        assert one.lost == other.lost == one.freed == other.freed == 0

    run_virtually(live())


def test_the_only_worker_never_reaps_itself_whatever_the_clock_says():
    async def live():
        clock = VirtualClock()
        life = Life(MemoryTaskStore(clock))
        objective_id = await begin(life.store)
        await life.store.reap_workers(silent={}, gone=["w"])
        await life.worker_lease.begin()
        await life.worker_lease.serve(objective_id)
        await life.store.claim_task(objective_id, "me-1")
        keeping = asyncio.create_task(life.keep(100))
        for jump_s in (3600, 3600, -7200, 40, 3600):
            await asyncio.sleep(9.9)
            clock.offset_s += jump_s
        await keeping
        assert ((await life.store.task(objective_id, 1)).n_lost, life.lost) == (0, 0)

    run_virtually(live())


def test_who_joins_when_every_lease_has_run_out_lets_the_living_renew_and_frees_what_the_dead_held_soon():
    async def live():
        clock = VirtualClock()
        one, _, objective_id = await two_lives(clock)
        clock.offset_s = 8 * 3600  # the machine slept; the other does not wake up
        newcomer = Life()
        newcomer.store = one.store
        newcomer.worker_lease = WorkerLease(
            one.store,
            make_worker("new-1", name="new"),
            lease_s=LEASE_S,
            sleep=newcomer.sleep,
            new_id=lambda: "n",
        )
        await newcomer.worker_lease.begin()
        await asyncio.gather(newcomer.keep(COMING_BACK_S + 1.1), one.keep(COMING_BACK_S + 1.1))
        assert [(task.status, task.n_lost) for task in await one.store.tasks(objective_id)] == [
            ("running", 0),
            ("queued", 1),
        ]
        assert (one.lost, one.freed + newcomer.freed) == (0, 1)

    run_virtually(live())


def test_a_dead_worker_whose_clock_went_wrong_by_an_hour_is_found_out_too():
    async def live():
        clock = VirtualClock()
        one, _, objective_id = await two_lives(clock)
        clock.offset_s = 3600
        await one.store.renew_lease("you-1", lease_s=LEASE_S)
        clock.offset_s = 0  # its lease ends in an hour, says the store
        await one.keep(COMING_BACK_S + 1.1)
        assert ((await one.store.task(objective_id, 2)).n_lost, one.freed) == (1, 1)

    run_virtually(live())


# -- a lock that a living process holds
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("home", "is_freed"), [("here", True), ("there", False)])
def test_what_a_worker_of_this_home_held_whose_name_nobody_bears_any_more_is_free_at_the_next_check(
    home, is_freed
):
    async def live():
        life = Life()
        objective_id = await begin(life.store)
        await join(life.store, make_worker("v", name="victim", home=home), objective_id)
        await life.store.claim_task(objective_id, "v")
        me = make_worker("me-1", name="me", home="here")
        life.worker_lease = WorkerLease(
            life.store,
            me,
            lease_s=LEASE_S,
            sleep=life.sleep,
            new_id=lambda: "me-2",
            knows_dead=lambda name: name in ("victim", "me"),
        )
        await life.worker_lease.begin()
        await life.keep(0.6)
        assert (life.freed, life.lost, (await life.store.task(objective_id, 1)).n_lost) == (
            int(is_freed),
            0,
            int(is_freed),
        )

    run_virtually(live())


# -- a store that is away
# --------------------------------------------------------------------------------------------------


def test_a_store_that_is_away_for_less_than_the_lease_costs_nothing():
    async def live():
        clock = VirtualClock()
        life = Life(
            FlakyStore(
                MemoryTaskStore(clock), "renew_lease", StoreUnavailableError("busy"), times=2
            )
        )
        await life.worker_lease.begin()
        await life.keep(25)
        await life.keep(30)
        assert life.lost == 0

    run_virtually(live())


@pytest.mark.parametrize("back_at_s", [40, 55, None])  # the store is back after 32 s
def test_after_the_store_was_away_the_others_have_time_to_come_back_before_they_count_as_dead(
    back_at_s,
):
    async def live():
        life = Life(
            FlakyStore(
                MemoryTaskStore(VirtualClock()),
                "renew_lease",
                StoreUnavailableError("away"),
                times=45,
            )
        )
        objective_id = await begin(life.store)
        await life.worker_lease.begin()
        assert await life.store.claim_task(objective_id, "w") is not None
        keeping = asyncio.create_task(life.keep(75))
        if back_at_s is not None:
            await asyncio.sleep(back_at_s)
            await life.store.renew_lease("w", lease_s=100)
        await keeping
        (task,) = await life.store.tasks(objective_id)
        assert (life.freed, task.status, task.n_lost) == (
            (1, "queued", 1) if back_at_s is None else (0, "running", 0)
        )

    run_virtually(live())


def test_a_damaged_store_is_told():
    async def live():
        life = Life(
            FlakyStore(
                MemoryTaskStore(VirtualClock()), "workers", StoreUnusableError("damaged"), times=1
            )
        )
        await life.worker_lease.begin()
        with pytest.raises(StoreUnusableError):
            await life.worker_lease.keep(on_lost=life.note_lost, on_freed=life.note_freed)

    run_virtually(live())


def test_an_objective_that_is_gone_is_not_served_again():
    async def live():
        life = Life()
        objective_id = await begin(life.store)
        await life.worker_lease.begin()
        await life.worker_lease.serve(objective_id)
        await life.store.reap_workers(silent={}, gone=["w"])
        await life.store.delete_objective(objective_id)
        await reap_namesakes(life.store, await life.store.workers(), name="me", home="")
        await life.keep(1.1)
        assert [worker.joined for worker in await life.store.workers()] == [()]
        await join(life.store, make_worker("x"), await begin(life.store))

    run_virtually(live())
