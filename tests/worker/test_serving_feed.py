"""What a run says of a result store that was chosen and cannot be used, in a world where time costs
nothing."""

import asyncio

import pytest

from babyagi import events
from babyagi.cli.views import describe_event
from babyagi.errors import IndexUnavailableError, SettingsError, StoreUnusableError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.indexer import collection_of, find_trouble
from babyagi.tasks import StopReason
from babyagi.worker.process import Runtime, WorkerLoop
from babyagi.worker.serving import Pace
from support.scripted import ScriptedModel
from support.virtual import VirtualWorld, run_virtually
from tests.taskstore.contract import make_worker
from tests.test_loop import Script, propose

SAID = (events.INDEX_UNAVAILABLE, events.RESULTS_INDEXED)
REFUSED = IndexUnavailableError(
    "Weaviate at http://db:8080 cannot answer now", why="connection refused", fix="start it"
)


class AwayIndex(BuiltinIndex):
    """A server that raises `error` from the named methods while it is set."""

    is_memory = False

    def __init__(self, *, failing=("ping", "upsert", "query", "ids"), error=REFUSED):
        super().__init__()
        self.error, self.failing, self.n_pings = error, failing, 0

    async def ping(self):
        self.n_pings += 1
        self._fail("ping")

    async def upsert(self, collection, items):
        self._fail("upsert")
        await super().upsert(collection, items)

    async def query(self, collection, vector, *, k):
        self._fail("query")
        return await super().query(collection, vector, k=k)

    async def ids(self, collection):
        self._fail("ids")
        return await super().ids(collection)

    def _fail(self, method):
        if self.error is not None and method in self.failing:
            raise self.error


class SlowModel(ScriptedModel):
    """Takes 20 s for each call."""

    async def complete(self, prompt, *, role, on_text=None):
        await asyncio.sleep(20.0)
        return await super().complete(prompt, role=role, on_text=on_text)


async def said_of(world, objective):
    read = await world.store.events(objective.id, kinds=SAID)
    return [event for event in read if "n" not in event.data]


@pytest.mark.parametrize(
    "error",
    [REFUSED, StoreUnusableError("the server says InternalError")],
    ids=["refused", "broken"],
)
def test_a_store_that_is_away_is_said_once_before_the_first_call_and_the_run_ends_with_a_report_that_says_it(
    error,
):
    async def live():
        world = VirtualWorld(model=ScriptedModel(Script()), index=AwayIndex(error=error))
        objective = await world.run()

        (event,) = await said_of(world, objective)
        kinds = [one.kind for one in await world.store.events(objective.id)]
        assert objective.stop_reason is StopReason.FINISHED
        assert event.kind == events.INDEX_UNAVAILABLE and kinds.index(event.kind) < kinds.index(
            events.STEP_INTENDED
        )
        assert error.what in (describe_event(event, "") or "")
        report = await world.store.report(objective.id)
        assert report is not None
        assert (
            error.what in report and f"babyagi store rebuild --objective {objective.id}" in report
        )
        assert error.what in await find_trouble(world.store, objective.id)

    run_virtually(live())


def test_a_store_that_is_there_is_not_said():
    async def live():
        world = VirtualWorld(model=ScriptedModel(Script()), index=AwayIndex(error=None))
        objective = await world.run()

        assert await said_of(world, objective) == []
        assert "Result store" not in (await world.store.report(objective.id) or "")
        assert world.index.n_pings == 1

    run_virtually(live())


def test_a_store_that_comes_back_is_said_once_and_then_has_every_result():
    async def live():
        world = VirtualWorld(
            model=SlowModel(Script({"Start": propose("Read", "Compare")})), index=AwayIndex()
        )
        objective = await world.start()
        asyncio.get_running_loop().call_later(30.0, setattr, world.index, "error", None)
        await world.run(objective)

        assert [event.kind for event in await said_of(world, objective)] == list(SAID)
        assert "Result store" not in (await world.store.report(objective.id) or "")
        assert await find_trouble(world.store, objective.id) == ""
        assert (
            len(await world.index.ids(collection_of(objective)))
            == len(await world.store.results(objective.id))
            > 0
        )

    run_virtually(live())


def test_one_that_goes_away_later_is_said_when_results_no_longer_get_into_it():
    async def live():
        world = VirtualWorld(
            model=SlowModel(Script({"Start": propose("Read", "Compare")})),
            index=AwayIndex(error=None),
        )
        objective = await world.start()
        asyncio.get_running_loop().call_later(5.0, setattr, world.index, "error", REFUSED)
        await world.run(objective)

        assert [event.kind for event in await said_of(world, objective)] == [
            events.INDEX_UNAVAILABLE
        ]
        assert REFUSED.what in (await world.store.report(objective.id) or "")

    run_virtually(live())


def test_a_store_that_answers_and_takes_nothing_is_not_called_available():
    async def live():
        world = VirtualWorld(model=SlowModel(Script()), index=AwayIndex(failing=("upsert",)))
        objective = await world.run()

        assert [event.kind for event in await said_of(world, objective)] == [
            events.INDEX_UNAVAILABLE
        ]

    run_virtually(live())


def test_each_run_begins_with_what_it_sees_and_says_that_an_earlier_trouble_is_over():
    async def live():
        world = VirtualWorld(model=ScriptedModel(Script()), index=AwayIndex())
        objective = await world.run()
        for index in (AwayIndex(), AwayIndex(error=None), AwayIndex(error=None)):
            world.index = index
            await world.store.extend_objective(objective.id, limits=objective.spec.limits)
            await world.run(objective)

        away, available = SAID
        assert [event.kind for event in await said_of(world, objective)] == [away, away, available]

    run_virtually(live())


def test_a_store_whose_library_is_not_installed_ends_the_run_before_its_first_call():
    async def live():
        world = VirtualWorld(
            model=ScriptedModel(Script()),
            index=AwayIndex(error=SettingsError("its library is not installed")),
        )
        with pytest.raises(SettingsError):
            await world.run()
        assert world.model.calls == []

    run_virtually(live())


def test_a_worker_that_serves_all_objectives_says_it_on_its_own_screen():
    async def live():
        world = VirtualWorld(model=ScriptedModel(Script()), index=AwayIndex())
        told: list[str] = []
        objective = await world.start()

        async def around(objective_id, work):
            return await work

        runtime = Runtime(
            identity=make_worker("me"),
            sleep=world.sleep,
            random=lambda: 0.0,
            new_id=lambda: "again",
            tell=told.append,
            around=around,
        )
        serving = asyncio.ensure_future(
            WorkerLoop(world.store, world.open_loop, pace=Pace(), runtime=runtime).serve_all()
        )
        async with asyncio.timeout(3600):
            while not (await world.store.objective(objective.id)).has_report:
                await asyncio.sleep(0.1)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

        assert [line for line in told if REFUSED.what in line] == told != []
        assert len(told) == 1

    run_virtually(live())


class HangingIndex(AwayIndex):
    """Accepts results, and never says that it has them."""

    async def upsert(self, collection, items):
        await asyncio.sleep(3600.0)


def test_a_stop_after_the_report_leaves_what_the_store_has_not_taken_for_later():
    async def live():
        world = VirtualWorld(model=ScriptedModel(Script()), index=HangingIndex(error=None))
        objective = await world.start()
        worker = world.open_worker(objective)
        running = asyncio.ensure_future(worker.run(objective.id))
        while not (await world.store.objective(objective.id)).has_report:
            await asyncio.sleep(0.1)
        assert not running.done()

        worker.stop()
        stopped_s = asyncio.get_running_loop().time()
        ended, _ = await running

        assert ended.has_report and asyncio.get_running_loop().time() - stopped_s < 1
        assert await world.store.results(objective.id, only_unindexed=True, limit=1)
        assert await world.store.workers() == []

    run_virtually(live())
