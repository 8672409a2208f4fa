"""Two real workers over one store, one of which is killed: each tick begins one objective."""

import asyncio
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from babyagi.app.backends import utc_now
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Limits
from babyagi.taskstore.schedules import Overlap, Rule, ScheduleSpec, TickOutcome
from babyagi.taskstore.sql.store import open_postgres
from babyagi.taskstore.sqlite import open_sqlite
from support.processes import environ, start
from support.world import make_spec

pytestmark = pytest.mark.system

N_TICKS = 6
ROLES = ("execution", "creation", "prioritization", "report")


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/board.db"
    return request.getfixturevalue("postgres_url")


async def open_store(url):
    if url.startswith("postgres"):
        return await open_postgres(url, offload=run_inline)
    return await open_sqlite(url.removeprefix("sqlite://"), clock=utc_now, offload=run_inline)


def make_schedule(text, due_at):
    roles = {role: "rehearsal" for role in ROLES} | {"embedding": "hash"}
    objective = make_spec(
        text=text, initial_task="Look", limits=Limits(max_tasks=3), model_by_role=roles
    )
    rule = Rule(at=due_at, begins_at=datetime(2026, 1, 1, tzinfo=UTC))
    return ScheduleSpec(objective=objective, rule=rule, overlap=Overlap.ALLOW)


async def look(store):
    """All ticks, when each has fired and is reported; nothing before."""
    found = [
        tick
        for one in await store.schedules()
        for tick in (await store.schedule(one.id, limit=9))[1]
    ]
    begun = [await store.objective(tick.objective_id) for tick in found if tick.objective_id]
    is_over = len(found) == N_TICKS and all(objective.has_report for objective in begun)
    return found if is_over else []


async def end(process):
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(120):
        await process.communicate()


async def test_of_two_workers_each_tick_is_fired_once_also_when_one_is_killed(store_url, tmp_path):
    store = await open_store(store_url)
    env = environ(
        tmp_path / "home", BABYAGI_TASK_STORE=store_url, LLM_MODEL="rehearsal", BABYAGI_LEASE_S="3"
    )
    first, second = [await start("worker", env=env) for _ in range(2)]
    try:
        async with asyncio.timeout(300):
            while len(await store.workers()) < 2:
                await asyncio.sleep(0.05)
        begins = utc_now() + timedelta(seconds=1)
        for n in range(N_TICKS):
            due_at = begins + timedelta(seconds=0.4 * n)
            await store.add_schedule(make_schedule(f"Tick {n}", due_at), uid=f"s{n}")
        async with asyncio.timeout(300):
            while not (await store.schedule(1, limit=1))[1]:
                await asyncio.sleep(0.02)
            first.kill()
            await asyncio.wait_for(first.wait(), 300)
            while not (ticks := await look(store)):
                await asyncio.sleep(0.2)
        assert [tick.outcome for tick in ticks] == [TickOutcome.FIRED] * N_TICKS
        assert len({tick.objective_id for tick in ticks}) == N_TICKS
        texts = sorted(one.spec.text for one in await store.objectives())
        assert texts == [f"Tick {n}" for n in range(N_TICKS)]
    finally:
        for process in (first, second):
            await end(process)
        await store.close()
