import asyncio
import logging
from datetime import timedelta

import pytest

from babyagi.errors import StoreUnavailableError
from babyagi.taskstore.schedules import TICK_DECIDED, Rule, ScheduleSpec, TickOutcome
from babyagi.worker.process import MAX_TICK_WAIT_S
from support.scripted import ScriptedModel
from support.virtual import VirtualWorld, virtually
from support.world import START, make_spec
from tests.test_loop import Script
from tests.worker.test_process import FlakyStore
from tests.worker.test_serving import serving_all


def make_schedule(*, every_s=3600.0, **fields):
    rule = Rule(every_s=every_s, begins_at=START)
    fields = {"daily_limit_usd": 0.0, **fields}
    return ScheduleSpec(objective=make_spec(), rule=rule, **fields)


def make_world(**fields):
    return VirtualWorld(model=ScriptedModel(Script()), **fields)


class CountingStore:
    """Counts the looks for what is due, and when they were."""

    def __init__(self, store):
        self._store = store
        self.looked_at_s = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def fire_schedules(self, worker_id):
        self.looked_at_s.append(asyncio.get_running_loop().time())
        return await self._store.fire_schedules(worker_id)


@pytest.mark.thorough
@virtually
async def test_a_worker_for_all_begins_what_is_due_at_its_instant_and_ends_it():
    world = make_world()
    schedule = await world.store.add_schedule(make_schedule(), uid="s")
    async with serving_all(world.open_worker()):
        await asyncio.sleep(3 * 3600 + 60)
    ticks = (await world.store.schedule(schedule.id, limit=9))[1]
    assert [tick.outcome for tick in ticks] == [TickOutcome.FIRED] * 3
    assert all(tick.decided_at - tick.due_at < timedelta(seconds=1) for tick in ticks)
    for tick in ticks:
        assert (await world.store.objective(tick.objective_id)).has_report


@pytest.mark.thorough
@virtually
async def test_a_worker_that_waits_looks_seldom_and_is_woken_by_a_commit_of_its_own():
    world = make_world()
    world.store = CountingStore(world.store)
    schedule = await world.store.add_schedule(make_schedule(every_s=86_400.0), uid="s")
    async with serving_all(world.open_worker()):
        await asyncio.sleep(3600)
    assert 0 < len(world.store.looked_at_s) <= 3600 / 5 + 60  # as often as it looks for work
    assert MAX_TICK_WAIT_S <= 60
    assert (await world.store.schedule(schedule.id, limit=1))[1] == []


@virtually
async def test_a_worker_for_one_objective_fires_nothing():
    world = make_world()
    schedule = await world.store.add_schedule(make_schedule(every_s=60.0), uid="s")
    await asyncio.sleep(90)
    await world.run()
    assert (await world.store.schedule(schedule.id, limit=9))[1] == []


@virtually
async def test_a_store_that_does_not_answer_delays_a_tick_and_loses_none():
    world = make_world()
    schedule = await world.store.add_schedule(make_schedule(every_s=60.0), uid="s")
    world.store = FlakyStore(
        world.store, "fire_schedules", StoreUnavailableError("the disk is full"), times=10
    )
    async with serving_all(world.open_worker()):
        await asyncio.sleep(100)
    (tick,) = (await world.store.schedule(schedule.id, limit=9))[1]
    assert tick.outcome is TickOutcome.FIRED


@virtually
async def test_an_unexpected_error_of_a_schedule_stops_no_work():
    world = make_world()
    await world.store.add_schedule(make_schedule(every_s=60.0), uid="s")
    world.store = FlakyStore(world.store, "fire_schedules", KeyError("Mars/Base"), times=99)
    objective = await world.start()
    async with serving_all(world.open_worker()):
        await asyncio.sleep(300)
    assert (await world.store.objective(objective.id)).has_report


def test_the_outcome_of_a_tick_is_a_record_of_the_log(caplog):
    @virtually
    async def work():
        world = make_world()
        await world.store.add_schedule(make_schedule(every_s=60.0), uid="s")
        async with serving_all(world.open_worker()):
            await asyncio.sleep(65)

    with caplog.at_level(logging.INFO, logger="babyagi.worker.process"):
        work()
    (record,) = [one for one in caplog.records if getattr(one, "event", "") == TICK_DECIDED]
    assert record.getMessage() == (
        "schedule 1: the tick of 2026-01-01 00:01 UTC fired as objective 1"
    )
    assert (vars(record)["schedule_id"], vars(record)["objective_id"]) == (1, 1)
