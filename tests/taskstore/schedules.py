"""The promises of `Schedules`, one test each, as part of the contract of every task store."""

from datetime import UTC, datetime, timedelta

import pytest

from babyagi import events
from babyagi.errors import LeaseLostError, NotFoundError, SettingsError
from babyagi.tasks import Limits, ObjectiveSpec, ObjectiveStatus, Role, StopReason, Worker
from babyagi.taskstore.schedules import (
    CatchUp,
    Overlap,
    Rule,
    ScheduleSpec,
    ScheduleStatus,
    TickOutcome,
    TickReason,
)

BEGINS = datetime(2030, 1, 1, tzinfo=UTC)
HOUR_S = 3600.0


def make_schedule(*, limits=None, model="gpt", every_s=HOUR_S, at=None, **fields):
    objective = ObjectiveSpec(
        text="Watch the tea",
        initial_task="Look",
        limits=limits or Limits(max_cost_usd=1.0),
        model_by_role={Role.EXECUTION: model},
        embedding_space="hashing",
        prompt_version="1",
    )
    rule = Rule(every_s=0 if at else every_s, at=at, begins_at=BEGINS)
    return ScheduleSpec(objective=objective, rule=rule, **fields)


async def add(store, **fields):
    worker = Worker(id="w", name="w", host="here", pid=1, lease_until=BEGINS)
    await store.register_worker(worker, lease_s=10 * 86_400)
    return await store.add_schedule(make_schedule(**fields), uid="s1")


async def fire(store, worker_id="w"):
    return [
        (round((tick.due_at - BEGINS).total_seconds() / HOUR_S, 2), tick.outcome, tick.reason)
        for tick in (await store.fire_schedules(worker_id)).ticks
    ]


async def end(store, objective_id):
    """As if it had ended with its report."""
    await store.end_objective(objective_id, reason=StopReason.FINISHED)
    await store.join_objective("w", objective_id)
    claim = await store.claim_duty(objective_id, "w", "report")
    await store.record_report(claim, markdown="done")


FIRED = (TickOutcome.FIRED, TickReason.NONE)


class ScheduleContract:
    async def test_a_tick_begins_an_objective_of_its_own_when_it_is_due_and_only_once(
        self, store, clock
    ):
        schedule = await add(store)
        assert (schedule.due_at, schedule.status) == (
            BEGINS + timedelta(hours=1),
            ScheduleStatus.ACTIVE,
        )
        assert (await store.fire_schedules("w")).wait_s == HOUR_S
        clock.tick(HOUR_S)
        fired = await store.fire_schedules("w")
        assert await store.fire_schedules("w") == type(fired)(wait_s=HOUR_S)
        (tick,) = fired.ticks
        assert (await store.schedule(schedule.id, limit=5))[1] == [tick]
        objective = await store.objective(tick.objective_id)
        assert (objective.spec, objective.status) == (
            schedule.spec.objective,
            ObjectiveStatus.ACTIVE,
        )
        created = (await store.events(objective.id))[0]
        assert created.kind == events.OBJECTIVE_CREATED
        assert created.data["schedule_id"] == schedule.id
        assert [task.name for task in await store.tasks(objective.id)] == ["Look"]

    async def test_the_same_words_on_the_command_line_do_not_go_on_with_a_ticks_objective(
        self, store, clock
    ):
        schedule = await add(store)
        clock.tick(HOUR_S)
        await fire(store)
        _, is_new = await store.create_objective(schedule.spec.objective, uid="u")
        assert is_new

    async def test_only_a_registered_worker_fires(self, store, clock):
        schedule = await add(store)
        clock.tick(HOUR_S)
        with pytest.raises(LeaseLostError):
            await store.fire_schedules("gone")
        assert (await store.schedule(schedule.id, limit=5))[1] == []

    async def test_a_schedule_is_kept_as_it_was_given(self, store):
        spec = make_schedule(overlap=Overlap.ALLOW, catch_up=CatchUp.ALL, grace_s=60.0)
        added = await store.add_schedule(spec, uid="s2")
        assert added.spec == spec
        assert await store.schedules() == [added] == [(await store.schedule(added.id))[0]]

    async def test_of_what_was_due_while_nobody_was_at_work_one_fires_and_the_others_stand_in_it(
        self, store, clock
    ):
        await add(store, grace_s=60)
        clock.tick(3.5 * HOUR_S)
        coalesced = (TickOutcome.COALESCED, TickReason.CATCH_UP)
        assert await fire(store) == [(1, *coalesced), (2, *coalesced), (3, *FIRED)]

    async def test_without_catching_up_what_is_too_late_is_missed(self, store, clock):
        await add(store, grace_s=1900, catch_up=CatchUp.NONE)
        clock.tick(3.5 * HOUR_S)
        missed = (TickOutcome.MISSED, TickReason.GRACE)
        assert await fire(store) == [(1, *missed), (2, *missed), (3, *FIRED)]

    async def test_catching_up_with_all_fires_each(self, store, clock):
        await add(store, grace_s=60, catch_up=CatchUp.ALL, overlap=Overlap.ALLOW)
        clock.tick(3.5 * HOUR_S)
        assert await fire(store) == [(1, *FIRED), (2, *FIRED), (3, *FIRED)]

    async def test_a_tick_is_skipped_while_an_earlier_one_is_at_work(self, store, clock):
        schedule = await add(store)
        clock.tick(HOUR_S)
        await fire(store)
        clock.tick(HOUR_S)
        assert await fire(store) == [(2, TickOutcome.SKIPPED, TickReason.OVERLAP)]
        (_, first) = (await store.schedule(schedule.id, limit=5))[1]
        await end(store, first.objective_id)
        clock.tick(HOUR_S)
        assert await fire(store) == [(3, *FIRED)]

    async def test_the_ticks_of_a_day_share_a_limit_of_money(self, store, clock):
        schedule = await add(store, overlap=Overlap.ALLOW, daily_limit_usd=2.5)
        skipped = (TickOutcome.SKIPPED, TickReason.LIMIT)
        seen = []
        for _ in range(3):
            clock.tick(HOUR_S)
            seen += await fire(store)
        assert seen == [(1, *FIRED), (2, *FIRED), (3, *skipped)]
        newest = (await store.schedule(schedule.id, limit=5))[1]
        await end(store, newest[-1].objective_id)  # it has cost nothing
        clock.tick(HOUR_S)
        assert await fire(store) == [(4, *FIRED)]
        clock.tick(HOUR_S)
        assert await fire(store) == [(5, *skipped)]
        clock.tick(19 * HOUR_S)
        assert (await fire(store))[-1] == (24, *FIRED), "it is another day"

    async def test_ticks_that_are_caught_up_with_share_the_limit_of_the_day_on_which_they_begin(
        self, store, clock
    ):
        await add(store, overlap=Overlap.ALLOW, catch_up=CatchUp.ALL, daily_limit_usd=2.0)
        clock.tick(72 * HOUR_S)
        decided = [outcome for _, outcome, _ in await fire(store)]
        assert decided == [TickOutcome.FIRED] * 2 + [TickOutcome.SKIPPED] * 70

    @pytest.mark.parametrize("model", ["rehearsal", "human", "llama"])
    async def test_a_model_that_costs_nothing_uses_nothing_of_the_limit_up(
        self, store, clock, model
    ):
        await add(store, overlap=Overlap.ALLOW, daily_limit_usd=1.0, model=model)
        clock.tick(HOUR_S)
        await fire(store)
        clock.tick(HOUR_S)
        assert await fire(store) == [(2, *FIRED)]

    async def test_ticks_due_during_a_pause_are_skipped_even_if_no_worker_was_running(
        self, store, clock
    ):
        schedule = await add(store)
        await store.switch_schedule(schedule.id, to=ScheduleStatus.PAUSED)
        paused = (TickOutcome.SKIPPED, TickReason.PAUSED)
        clock.tick(HOUR_S)
        assert await fire(store) == [(1, *paused)]
        clock.tick(HOUR_S)
        resumed = await store.switch_schedule(schedule.id, to=ScheduleStatus.ACTIVE)
        assert resumed.status is ScheduleStatus.ACTIVE
        (last, _) = (await store.schedule(schedule.id, limit=5))[1]
        assert (last.outcome, last.reason) == paused
        clock.tick(HOUR_S)
        assert await fire(store) == [(3, *FIRED)]

    async def test_a_schedule_that_was_removed_fires_no_more_and_what_it_began_goes_on(
        self, store, clock
    ):
        schedule = await add(store)
        clock.tick(HOUR_S)
        await fire(store)
        removed = await store.switch_schedule(schedule.id, to=ScheduleStatus.REMOVED)
        assert removed.status is ScheduleStatus.REMOVED
        clock.tick(HOUR_S)
        assert (await store.fire_schedules("w")).wait_s is None
        (first,) = (await store.schedule(schedule.id, limit=5))[1]
        assert (await store.objective(first.objective_id)).status is ObjectiveStatus.ACTIVE
        assert await store.schedules() == []
        assert [one.id for one in await store.schedules(with_removed=True)] == [schedule.id]

    async def test_a_single_tick_leaves_its_schedule_done(self, store, clock):
        schedule = await add(store, at=BEGINS + timedelta(minutes=5))
        clock.tick(300)
        assert (await fire(store))[0][1:] == FIRED
        assert (await store.schedule(schedule.id))[0].status is ScheduleStatus.DONE
        assert (await store.fire_schedules("w")).wait_s is None

    async def test_a_schedule_that_is_never_due_is_refused(self, store, clock):
        clock.tick(600)
        with pytest.raises(SettingsError, match="would never start"):
            await add(store, at=BEGINS + timedelta(minutes=5))
        assert await store.schedules() == []

    async def test_what_does_not_exist_is_not_found(self, store):
        for ask in (store.schedule, store.pause_schedule, store.remove_schedule):
            with pytest.raises(NotFoundError):
                await ask(77)
        with pytest.raises(NotFoundError):
            (await store.schedule(77, limit=1))[1]

    async def test_a_clock_that_jumps_forward_and_back_fires_nothing_twice(self, store, clock):
        schedule = await add(store, overlap=Overlap.ALLOW, daily_limit_usd=0)
        clock.tick(5 * HOUR_S)
        await fire(store)
        clock.tick(-4 * HOUR_S)
        assert await fire(store) == []
        clock.tick(5 * HOUR_S)
        assert await fire(store) == [(6, *FIRED)]
        due = [tick.due_at for tick in (await store.schedule(schedule.id, limit=50))[1]]
        assert due == [BEGINS + timedelta(hours=n) for n in (6, 5, 4, 3, 2, 1)]

    async def test_many_ticks_are_decided_a_bounded_number_at_a_time(self, store, clock):
        schedule = await add(store, every_s=60, grace_s=30)
        clock.tick(250 * 60)
        n_decided: list[int] = []
        while not n_decided or n_decided[-1]:
            n_decided.append(len((await store.fire_schedules("w")).ticks))
        assert n_decided == [100, 100, 50, 0]
        fired = [
            tick for tick in (await store.schedule(schedule.id, limit=300))[1] if tick.objective_id
        ]
        assert [tick.due_at for tick in fired] == [BEGINS + timedelta(minutes=250)]

    async def test_ticks_of_long_ago_go_but_for_the_newest_and_those_that_are_not_over(
        self, store, clock
    ):
        schedule = await add(store, every_s=86_400, grace_s=30)
        for n_days in (150, 100):
            clock.tick(n_days * 86_400)
            while await fire(store):
                pass
        kept = (await store.schedule(schedule.id, limit=300))[1]
        assert [(tick.due_at - BEGINS).days for tick in kept] == [*range(250, 150, -1), 150]
        assert kept[-1].outcome is TickOutcome.FIRED

    async def test_the_row_of_a_tick_outlives_its_objective(self, store, clock):
        schedule = await add(store)
        clock.tick(HOUR_S)
        (tick,) = (await store.fire_schedules("w")).ticks
        await store.delete_objective(tick.objective_id)
        (kept,) = (await store.schedule(schedule.id, limit=5))[1]
        assert (kept.outcome, kept.objective_id) == (TickOutcome.FIRED, None)

    async def test_verifying_reads_schedules_and_ticks(self, store, clock):
        before = await store.verify()
        await add(store)
        clock.tick(HOUR_S)
        await store.fire_schedules("w")
        found = await store.verify()
        assert found.damages == ()
        assert found.n_rows > before.n_rows + 4

    # -- what is measured
    # ----------------------------------------------------------------------------------------------

    async def test_what_is_measured_is_read_of_all_objectives_together(self, store, clock):
        await add(store)
        for _ in range(2):
            clock.tick(HOUR_S)
            await fire(store)
        clock.tick(5)
        vitals = await store.vitals()
        ((standing, queue),) = vitals.standings
        assert standing.objective == await store.objective(standing.objective.id)
        assert (queue.n_free, queue.free_s) == (1, HOUR_S + 5)
        assert vitals.totals["ticks", "fired", ""] == 1
        assert vitals.totals["ticks", "skipped", "overlap"] == 1
        assert vitals.totals["tasks", "queued", ""] == 1
        assert vitals.totals["objectives", "active", ""] == 1
        assert vitals.next_tick_s == HOUR_S - 5
        assert [worker.id for worker in vitals.workers] == ["w"]
