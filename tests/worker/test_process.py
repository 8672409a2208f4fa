import asyncio
import errno
import os
import signal

import pytest

from babyagi import events
from babyagi.errors import BabyagiError, StoreUnavailableError, StoreUnusableError
from babyagi.tasks import ObjectiveStatus, Role, StopReason, TaskStatus
from babyagi.worker.lease import reap_namesakes
from babyagi.worker.process import hearing_signals
from babyagi.worker.serving import Pace
from support.scripted import ScriptedModel
from support.virtual import VirtualWorld, run_virtually, virtually
from support.world import World
from tests.test_loop import Script, make_world, propose, quote_two


class SlowModel(ScriptedModel):
    """Does something in the middle of each execution call, while it is in flight."""

    def __init__(self, script, during, **more):
        super().__init__(script, **more)
        self._during = during
        self.n_in_flight = self.most_in_flight = 0

    async def complete(self, prompt, *, role, on_text=None):
        self.n_in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.n_in_flight)
        try:
            if role is Role.EXECUTION:
                await self._during()
            return await super().complete(prompt, role=role, on_text=on_text)
        finally:
            self.n_in_flight -= 1


class FlakyStore:
    """A store of which one method fails some times before it works."""

    def __init__(self, store, method, error, times):
        self._store, self._method, self._error, self._left = store, method, error, times

    def __getattr__(self, name):
        if name != self._method or not self._left:
            return getattr(self._store, name)

        async def fail(*args, **kwargs):
            self._left -= 1
            raise self._error

        return fail


async def breathe():
    await asyncio.sleep(0.01)


@virtually
async def test_no_more_tasks_run_at_once_than_the_concurrency():
    plans = {"Begin": propose(*(f"Task {letter}" for letter in "ABCDEFGHIJ"))}
    world = World(model=SlowModel(Script(plans), breathe), concurrency=3)

    await world.run()

    assert world.model.most_in_flight == 3


@virtually
async def test_a_pause_takes_effect_before_the_next_call():
    world = World()
    objective = await world.start()

    async def pause():
        await world.store.switch_objective(objective.id, to=ObjectiveStatus.PAUSED)

    world.model = SlowModel(Script(), pause)

    paused = await world.run(objective)

    assert paused.status is ObjectiveStatus.PAUSED
    assert [role for role, _ in world.model.calls] == [Role.EXECUTION]
    assert (await world.store.task(objective.id, 1)).status is TaskStatus.RECORDED


@virtually
async def test_a_paused_objective_goes_on_where_it_was():
    world = World()
    objective = await world.start()

    async def pause():
        await world.store.switch_objective(objective.id, to=ObjectiveStatus.PAUSED)

    world.model = SlowModel(Script(), pause)
    await world.run(objective)

    ended = await world.run(
        await world.store.switch_objective(objective.id, to=ObjectiveStatus.ACTIVE)
    )

    assert ended.stop_reason is StopReason.FINISHED
    assert len(world.model.asked(Role.EXECUTION)) == 1


@pytest.fixture
def heard_hangup():
    """The end of the terminal is not ignored, however the tests were started."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heard_hangup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_first_signal_lets_the_call_in_flight_end_and_makes_no_other(number, caplog):
    async def signal_us():
        os.kill(os.getpid(), number)
        await breathe()

    world = World(model=SlowModel(Script(), signal_us))
    objective = await world.start()

    left, signal_number = await world.open_worker(objective).run(objective.id)

    assert signal_number == number
    assert (
        "waiting up to 10 s for 1 piece of work; a second signal (Ctrl-C) stops at once"
        in caplog.text
    )
    assert left.status is ObjectiveStatus.ACTIVE
    assert [role for role, _ in world.model.calls] == [Role.EXECUTION]
    task = await world.store.task(objective.id, 1)
    assert (task.status, task.failures) == (TaskStatus.RECORDED, 0)
    assert await world.store.workers() == []


@pytest.mark.usefixtures("heard_hangup")
async def test_the_end_of_the_terminal_is_not_heard_where_it_is_to_be_outlived():
    with hearing_signals(lambda _: None):
        assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with hearing_signals(lambda _: None):
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


async def test_a_second_signal_stops_now_and_what_was_in_flight_counts_as_spent():
    async def signal_us_twice():
        os.kill(os.getpid(), signal.SIGINT)
        await breathe()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(3600)

    world = World(model=SlowModel(Script(), signal_us_twice))
    objective = await world.start()

    async with asyncio.timeout(120):
        left, signal_number = await world.open_worker(objective).run(objective.id)

    task = await world.store.task(objective.id, 1)
    assert (signal_number, task.status, task.failures) == (signal.SIGINT, TaskStatus.QUEUED, 0)
    assert left.usage.calls == 1
    assert left.held.calls == 0


@virtually
async def test_a_worker_that_was_declared_dead_records_no_result_but_its_paid_call_is_not_paid_again():
    world = World()
    objective = await world.start()
    names: list[str] = []

    async def declare_dead():
        if not names:
            names.extend(worker.name for worker in await world.store.workers())
            await reap_namesakes(world.store, await world.store.workers(), name=names[0], home="")

    world.model = SlowModel(Script(), declare_dead)

    ended = await world.run(objective)

    assert ended.stop_reason is StopReason.FINISHED
    assert len(world.model.asked(Role.EXECUTION)) == 1
    assert len(await world.store.results(objective.id)) == 1
    assert events.WORKER_LOST in [event.kind for event in await world.store.events(objective.id)]


@pytest.mark.parametrize(
    "method",
    (
        "record_result record_plan claim_next end_objective renew_lease claimable "
        "reap_workers record_report"
    ).split(),
)
@virtually
async def test_a_store_that_cannot_answer_for_a_while_loses_nothing(method):
    world = VirtualWorld(model=make_world(Script({"Begin": propose("One", "Two")})).model)
    world.store = FlakyStore(world.store, method, StoreUnavailableError("disk full"), times=2)

    objective = await world.run()

    tasks = await world.store.tasks(objective.id)
    assert [(task.status, task.failures) for task in tasks] == [(TaskStatus.DONE, 0)] * 3
    assert len(world.model.asked(Role.EXECUTION)) == 3


@virtually
async def test_a_result_that_could_not_be_recorded_at_once_is_enriched_once():
    enriched = list[str]()

    def enrich(task, result):
        enriched.append(task)
        return f"{result} Enriched {len(enriched)}."

    world = VirtualWorld(enrich=enrich)
    world.store = FlakyStore(
        world.store, "record_result", StoreUnavailableError("disk full"), times=2
    )

    objective = await world.run()

    results = await world.store.results(objective.id)
    assert len(enriched) == len(results) > 0
    assert [result.text.count("Enriched") for result in results] == [1] * len(results)
    assert all("tool:enrich" in result.origins for result in results)


@pytest.mark.parametrize(
    "shortage",
    [
        OSError(errno.EMFILE, "Too many open files", "a file of ours"),
        RuntimeError("can't start new thread"),
    ],
)
@virtually
async def test_a_machine_that_is_short_of_something_for_a_while_fails_no_task(shortage):
    left = iter(range(6))

    async def run_short():
        if next(left, None) is not None:
            raise shortage

    world = VirtualWorld(model=SlowModel(Script({"Begin": propose("One", "Two")}), run_short))

    objective = await world.run()

    tasks = await world.store.tasks(objective.id)
    assert objective.stop_reason is StopReason.FINISHED
    assert [(task.status, task.failures) for task in tasks] == [(TaskStatus.DONE, 0)] * 3


@virtually
async def test_a_damaged_store_stops_the_worker_with_its_own_error():
    world = make_world(Script())
    world.store = FlakyStore(
        world.store, "record_result", StoreUnusableError("damaged"), times=10**9
    )

    with pytest.raises(StoreUnusableError, match="damaged"):
        await world.run()


class BrokenAt(Script):
    """Has an error of ours in every call of one agent."""

    def __init__(self, agent, plans, **more):
        super().__init__(plans, **more)
        self.agent, self.n_asked = agent, 0

    def __call__(self, prompt, role):
        if prompt.messages[0].text.startswith(f"Role: {self.agent} agent"):
            self.n_asked += 1
            raise KeyError("of ours")
        return super().__call__(prompt, role)


@virtually
async def test_a_report_that_raises_what_nobody_expected_is_written_without_the_model():
    script = BrokenAt("report", {"Begin": propose("Look")}, check=quote_two)
    world = make_world(script)

    objective = await world.run()

    markdown = await world.store.report(objective.id)
    assert script.n_asked == 3
    assert objective.stop_reason is StopReason.FINISHED
    assert "KeyError" in markdown and "a result" in markdown


def run_broken_at(agent, **plan):
    """The script, the objective as it ended and its tasks, of a run in which one agent fails
    whenever it is asked."""

    async def run():
        script = BrokenAt(
            agent, {"Begin": propose(*(f"Task {letter}" for letter in "ABCDEFGHIJ"), **plan)}
        )
        model = SlowModel(script, lambda: asyncio.sleep(1.0), answers_checks=agent == "check")
        world = VirtualWorld(model=model, pace=Pace(concurrency=1))
        objective = await world.run()
        return script, objective, await world.store.tasks(objective.id)

    return run_virtually(run())


def test_an_order_that_raises_what_nobody_expected_is_given_up_and_the_list_goes_on():
    script, objective, tasks = run_broken_at("prioritization")

    assert script.n_asked == 3
    assert objective.stop_reason is StopReason.FINISHED and objective.has_report
    assert [(task.status, task.failures) for task in tasks] == [(TaskStatus.DONE, 0)] * 11


def test_a_check_that_raises_what_nobody_expected_is_given_up_and_the_list_goes_on_and_nobody_says_that_it_is_met():
    script, objective, tasks = run_broken_at("check", is_met=True)

    assert script.n_asked >= 6 and script.n_asked % 3 == 0
    assert objective.stop_reason is StopReason.UNMET and objective.has_report
    assert "the check could not be made: KeyError" in objective.stop_detail
    assert [(task.status, task.failures) for task in tasks[:11]] == [(TaskStatus.DONE, 0)] * 11


@virtually
async def test_a_report_that_cannot_even_be_put_together_ends_the_run_with_an_error():
    world = make_world(Script())
    world.store = FlakyStore(world.store, "record_report", KeyError("of ours"), times=10**9)

    with pytest.raises(BabyagiError, match=r"report .* KeyError"):
        await world.run()


@virtually
async def test_results_are_in_the_result_store_when_a_run_has_ended():
    world = make_world(Script({"Begin": propose("One", "Two")}))

    objective = await world.run()

    assert await world.store.results(objective.id, only_unindexed=True, limit=10) == []


@virtually
async def test_two_workers_on_one_list_do_each_task_once():
    plans = {"Begin": propose(*(f"Task {letter}" for letter in "ABCDEFGHIJ"))}
    model = SlowModel(Script(plans, check=quote_two), breathe, answers_checks=True)
    world = World(model=model, concurrency=2)
    objective = await world.start()

    async with asyncio.timeout(120):
        await asyncio.gather(*(world.open_worker(objective).run(objective.id) for _ in range(2)))

    assert len(await world.store.results(objective.id)) == 11
    assert len(world.model.asked(Role.EXECUTION)) == 11
    assert len(world.model.asked(Role.REPORT)) == 1
