"""What is the store in memory's alone; the rest is SQLite's code, as `test_sqlite.py` tests it."""

import asyncio
import gc
import sqlite3
import threading
from typing import Any

import pytest

from babyagi.errors import StoreUnavailableError
from babyagi.tasks import ObjectiveStatus
from babyagi.taskstore.sqlite import MemoryTaskStore
from support.virtual import VirtualClock, run_virtually
from tests.taskstore.contract import Clock, begin, make_spec


async def test_two_stores_in_memory_know_nothing_of_each_other():
    one, other = MemoryTaskStore(Clock()), MemoryTaskStore(Clock())
    await one.create_objective(make_spec(), uid="u")
    assert await other.objectives() == []
    await one.close()
    await other.close()


async def test_two_objectives_with_one_uid_are_refused():
    store = MemoryTaskStore(Clock())
    await store.create_objective(make_spec(), uid="u")
    with pytest.raises(sqlite3.IntegrityError):
        await store.create_objective(make_spec(), uid="u", always_new=True)
    assert len(await store.objectives()) == 1
    await store.close()


async def test_the_list_of_objectives_is_one_statement_however_many_there_are():
    store: Any = MemoryTaskStore(Clock())
    for n in range(5):
        await store.create_objective(make_spec(text=f"Know {n}"), uid=f"u{n}")
    statements: list[str] = []
    store._database._open().set_trace_callback(statements.append)
    listed = await store.objectives(limit=4)
    assert [objective.spec.text for objective in listed] == [f"Know {n}" for n in range(1, 5)]
    assert len([one for one in statements if one.startswith("SELECT")]) == 1
    await store.close()


async def test_a_closed_store_in_memory_refuses_every_verb_and_closing_it_again_does_nothing():
    store = MemoryTaskStore(Clock())
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.objectives()


async def test_a_store_in_memory_that_nobody_closes_takes_its_connection_along():
    store: Any = MemoryTaskStore(Clock())
    connection = store._database._open()
    del store
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")


def test_a_day_of_waiting_takes_no_thread_and_no_look_at_the_database():
    async def wait():
        store: Any = MemoryTaskStore(VirtualClock())
        statements: list[str] = []
        started = asyncio.get_running_loop().time()
        objective_id = await begin(store)
        last = await store.last_event_id(objective_id)
        store._database._open().set_trace_callback(statements.append)
        await store.wait_for_change(timeout_s=86_400)
        await store.wait_for_events(objective_id, after_id=last, timeout_s=86_400)
        await store.close()
        return asyncio.get_running_loop().time() - started, len(statements)

    threads = threading.enumerate()
    waited_s, n_statements = run_virtually(wait())

    assert waited_s == pytest.approx(2 * 86_400)
    assert n_statements < 10
    assert threading.enumerate() == threads


async def test_an_event_wakes_who_waits_for_events_in_memory():
    store = MemoryTaskStore(Clock())
    objective_id = await begin(store)
    last = await store.last_event_id(objective_id)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(store.wait_for_events(objective_id, after_id=last, timeout_s=3600))
        await asyncio.sleep(0)
        await store.switch_objective(objective_id, to=ObjectiveStatus.PAUSED)
    await store.close()
