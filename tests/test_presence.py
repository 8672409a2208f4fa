import asyncio

import pytest

from babyagi import log
from babyagi.errors import StoreUnavailableError, StoreUnusableError
from babyagi.presence import Presence
from babyagi.taskstore.memory import MemoryTaskStore
from tests.taskstore.contract import begin, make_worker
from tests.test_worker import FlakyStore
from tests.virtual import VirtualClock, run_virtually
from tests.workers import join

LEASE_S = 30.0


class Life:
    """A worker's presence in virtual time, and what it called back."""

    def __init__(self, store=None):
        self.store = store or MemoryTaskStore(VirtualClock())
        self.lost = self.freed = 0
        self.is_frozen = False
        new_ids = iter(f"me-{number}" for number in range(2, 100))
        self.presence = Presence(
            self.store, make_worker("me-1", name="me"), lease_s=LEASE_S, sleep=self.sleep, new_id=lambda: next(new_ids)
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
                await self.presence.keep(on_lost=self.note_lost, on_freed=self.note_freed)


def test_a_lease_that_is_kept_lives_on():
    async def live():
        life = Life()
        objective_id = await begin(life.store)
        await life.presence.begin()
        await life.presence.serve(objective_id)
        await life.keep(500)
        assert await life.store.claim_task(objective_id, "me-1") is not None
        assert life.lost == 0
        await life.presence.end()
        assert [worker.id for worker in await life.store.workers()] == []

    run_virtually(live())


def test_what_a_dead_worker_held_is_free_within_a_second_of_the_end_of_its_lease():
    async def live():
        life = Life()
        objective_id = await begin(life.store)
        await life.presence.begin()
        assert await life.store.claim_task(objective_id, "w") is not None
        await life.keep(LEASE_S + 1)
        assert life.freed == 1

    run_virtually(live())


def test_a_worker_that_was_declared_dead_is_told_takes_a_new_id_and_serves_what_it_served():
    async def live():
        life = Life()
        first, second = await begin(life.store), await begin(life.store, worker_id="v")
        await life.presence.begin()
        await life.presence.serve(first)
        await life.presence.serve(second, hindrance="no key")
        life.is_frozen = True
        await life.keep(LEASE_S + 1.1)
        (me,) = await life.store.workers()
        assert (me.id, life.presence.identity.id, life.lost) == ("me-2", "me-2", 1)
        assert [(one.objective_id, one.hindrance) for one in me.joined] == [(first, ""), (second, "no key")]
        assert (await life.store.events(first))[-1].kind == log.WORKER_JOINED

    run_virtually(live())


def test_whoever_is_in_doubt_looks_at_the_next_check():
    async def live():
        life = Life()
        await life.presence.begin()
        await life.store.reap_workers(name="me")
        await life.keep(1)
        assert life.lost == 0
        life.presence.doubt()
        await life.keep(1)
        assert life.lost == 1

    run_virtually(live())


def test_a_store_that_is_away_for_less_than_the_lease_costs_nothing():
    async def live():
        clock = VirtualClock()
        life = Life(FlakyStore(MemoryTaskStore(clock), "renew_lease", StoreUnavailableError("busy"), times=2))
        await life.presence.begin()
        await life.keep(25)
        await life.keep(30)
        assert life.lost == 0

    run_virtually(live())


@pytest.mark.parametrize("comes_back", [True, False])
def test_after_the_store_was_away_the_others_have_time_to_come_back_before_they_count_as_dead(comes_back):
    async def live():
        life = Life(FlakyStore(MemoryTaskStore(VirtualClock()), "renew_lease", StoreUnavailableError("away"), times=45))
        objective_id = await begin(life.store)
        await life.presence.begin()
        assert await life.store.claim_task(objective_id, "w") is not None
        keeping = asyncio.create_task(life.keep(75))
        await asyncio.sleep(40)
        if comes_back:
            await life.store.renew_lease("w", lease_s=100)
        await keeping
        (task,) = await life.store.tasks(objective_id)
        assert (life.freed, task.status, task.failures) == ((0, "running", 0) if comes_back else (1, "queued", 1))

    run_virtually(live())


def test_a_damaged_store_is_told():
    async def live():
        life = Life(FlakyStore(MemoryTaskStore(VirtualClock()), "reap_workers", StoreUnusableError("damaged"), times=1))
        await life.presence.begin()
        with pytest.raises(StoreUnusableError):
            await life.presence.keep(on_lost=life.note_lost, on_freed=life.note_freed)

    run_virtually(live())


def test_an_objective_that_is_gone_is_not_served_again():
    async def live():
        life = Life()
        objective_id = await begin(life.store)
        await life.presence.begin()
        await life.presence.serve(objective_id)
        await life.store.reap_workers(name="w")
        await life.store.delete_objective(objective_id)
        await life.store.reap_workers(name="me")
        life.presence.doubt()
        await life.keep(1)
        assert [worker.joined for worker in await life.store.workers()] == [()]
        await join(life.store, make_worker("x"), await begin(life.store))

    run_virtually(live())
