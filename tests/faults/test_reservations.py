"""The limits hold whatever is reserved, settled or lost; 10,000 histories: `python -m
tests.faults.reservations`."""

import asyncio

import pytest

from babyagi.runtime.offload import run_inline
from babyagi.taskstore.sql.store import open_postgres
from babyagi.taskstore.sqlite import MemoryTaskStore, open_sqlite
from tests.taskstore.histories import History, Time

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    "is_honest", [True, False], ids=["usage within its reservation", "any usage"]
)
def test_spent_and_held_never_exceed_a_limit_and_no_usage_lowers_what_was_spent(is_honest):
    async def run():
        time = Time()
        return [
            await History(MemoryTaskStore(time), time, seed=seed, is_honest=is_honest).run()
            for seed in range(50)
        ]

    ended = asyncio.run(run())

    assert {"calls", "tokens", "cost", ""} == {one.limit for one in ended}
    assert sum(one.n_calls for one in ended) > 200


@pytest.mark.parametrize(
    "is_honest", [True, False], ids=["usage within its reservation", "any usage"]
)
def test_the_limits_hold_in_sqlite_too(is_honest, tmp_path):
    async def run():
        time = Time()
        store = await open_sqlite(tmp_path / "tasks.db", clock=time, offload=run_inline)
        ended = [
            await History(store, time, seed=seed, is_honest=is_honest).run() for seed in range(16)
        ]
        await store.close()
        return ended

    assert len({one.limit for one in asyncio.run(run())}) >= 3


@pytest.mark.parametrize(
    "is_honest", [True, False], ids=["usage within its reservation", "any usage"]
)
def test_the_limits_hold_in_postgres_too(is_honest, postgres_url):
    async def run():
        time = Time()
        store = await open_postgres(postgres_url, clock=time, offload=run_inline)
        ended = [
            await History(store, time, seed=seed, is_honest=is_honest).run() for seed in range(16)
        ]
        await store.close()
        return ended

    assert len({one.limit for one in asyncio.run(run())}) >= 3
