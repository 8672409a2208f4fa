import re
from collections import Counter
from datetime import timedelta

import pytest

from babyagi.reporting.metrics import read_metrics
from babyagi.reporting.why import Why, explain_tasks, find_facts
from babyagi.tasks import ObjectiveStatus, Proposal, StopReason, TaskStatus
from babyagi.taskstore.schedules import Rule, ScheduleSpec
from babyagi.taskstore.sqlite import MemoryTaskStore
from tests.taskstore.contract import Clock, begin, make_spec, make_worker


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def store(clock):
    store = MemoryTaskStore(clock)
    yield store
    await store.close()


async def read(store):
    """Values by name and labels, as a scraper reads them."""
    values = {}
    for line in (await read_metrics(store)).splitlines():
        if not line.startswith("#"):
            found = re.fullmatch(r"babyagi_(\w+(?:\{.*\})?) (\S+)", line)
            assert found is not None, line
            values[found[1]] = float(found[2])
    return values


async def test_of_an_empty_store_everything_is_there_and_is_nothing(store):
    values = await read(store)

    assert set(values.values()) == {0.0}
    assert {f'tasks{{status="{status}"}}' for status in TaskStatus} <= set(values)
    assert {f'objectives_ended{{reason="{reason}"}}' for reason in StopReason} <= set(values)


async def test_every_metric_has_one_help_and_one_type_before_its_values(store):
    await begin(store)
    lines = (await read_metrics(store)).splitlines()
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names)) > 15
    for name in names:
        at = lines.index(next(line for line in lines if line.startswith(f"# HELP {name} ")))
        assert lines[at + 1] == f"# TYPE {name} gauge"
        assert lines[at + 2].startswith(name)


async def test_held_tasks_are_counted_by_the_reason_that_why_gives_for_each(store):
    objective_id = await begin(store, "A", "B", "C")
    await store.add_tasks(objective_id, [Proposal(name="D", after=(1,)), Proposal(name="E")])
    delayed = await store.claim_task(objective_id, "w")
    await store.release(delayed, delay_s=500)
    paused, _ = await store.create_objective(make_spec(), uid="p", always_new=True)
    await store.switch_objective(paused.id, to=ObjectiveStatus.PAUSED)

    values = await read(store)

    expected: Counter[str] = Counter()
    for objective in await store.objectives():
        facts = await find_facts(store, objective.id)
        tasks = await store.tasks(objective.id, statuses=[TaskStatus.QUEUED])
        expected.update(one.why for one in await explain_tasks(store, facts, tasks))
    held = {why: values.get(f'tasks_held{{reason="{why}"}}', 0) for why in Why}
    assert {why: n for why, n in held.items() if n} == {
        why: n for why, n in expected.items() if why is not Why.NEXT
    }
    assert set(expected) == {Why.AFTER, Why.DELAYED, Why.PAUSED, Why.NEXT}


async def test_the_oldest_task_that_could_run_is_said_in_seconds(store, clock):
    objective_id = await begin(store, "B")
    clock.tick(20)
    assert (await read(store))["oldest_runnable_task_seconds"] == 20
    first, second = [await store.claim_task(objective_id, "w") for _ in range(2)]
    assert (await read(store))["oldest_runnable_task_seconds"] == 0
    await store.release(first, delay_s=10)
    clock.tick(5)
    assert (await read(store))["oldest_runnable_task_seconds"] == 0
    clock.tick(12)
    assert (await read(store))["oldest_runnable_task_seconds"] == 7
    assert second is not None


async def test_failures_takeovers_money_and_workers_are_counted(store, clock):
    objective_id = await begin(store, "B")
    claim = await store.claim_task(objective_id, "w")
    await store.fail_task(claim, error="no", max_failures=1)
    values = await read(store)
    assert (values["task_failures"], values["tasks_given_up"], values["workers"]) == (1, 1, 1)
    assert values['tasks{status="dead"}'] == 1
    clock.tick(60)
    await store.reap_workers()
    values = await read(store)
    assert (values["takeovers"], values["workers"]) == (1, 0)


async def test_ticks_are_counted_by_what_became_of_them(store, clock):
    rule = Rule(every_s=60, begins_at=clock())
    await store.add_schedule(
        ScheduleSpec(objective=make_spec(), rule=rule, daily_limit_usd=0), uid="s"
    )
    await store.register_worker(make_worker("w"), lease_s=3600)
    assert (await read(store))["next_tick_seconds"] == 60
    for _ in range(3):
        clock.tick(60)
        await store.fire_schedules("w")
    values = await read(store)
    assert values['ticks{outcome="fired",reason=""}'] == 1
    assert values['ticks{outcome="skipped",reason="overlap"}'] == 2
    assert values['schedules{status="active"}'] == 1
    assert clock() - rule.begins_at == timedelta(seconds=180)


async def test_what_a_person_or_a_model_wrote_is_in_no_label(store):
    await store.create_objective(make_spec(text='x"} 1\nforged 1'), uid="u")
    await store.register_worker(make_worker("evil", name='na"me\n'), lease_s=30)
    assert "forged" not in await read_metrics(store)
    assert "na" + '"' not in await read_metrics(store)


async def test_a_scrape_asks_as_many_queries_for_thirty_objectives_as_for_one(store):
    async def count():
        asked: list[str] = []
        connection = store._database._connection
        connection.set_trace_callback(asked.append)
        await read_metrics(store)
        connection.set_trace_callback(None)
        return len([one for one in asked if not one.startswith(("BEGIN", "COMMIT"))])

    await begin(store)
    n_of_one = await count()
    for _ in range(30):
        await begin(store, "B")
    assert await count() == n_of_one < 12
