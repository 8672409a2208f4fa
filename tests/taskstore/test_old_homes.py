"""What an earlier version left behind is opened by this one: nothing is lost, what was under way
goes on, and nothing is paid for twice.

How the home was made, and in which states: `tests/data/old_homes/README.md`.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from babyagi import events
from babyagi.files.folder import Folder
from babyagi.inbox import Decision, decide
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.runtime.offload import run_inline
from babyagi.tasks import Limits, ObjectiveStatus, Role, StepState, TaskStatus
from babyagi.taskstore.sql.store import open_postgres
from babyagi.taskstore.sqlite import open_sqlite
from babyagi.tools.catalog import build_ask_user
from babyagi.tools.files import build_file_tools
from support.world import Clock, World
from tests.taskstore.old_home import (
    HOME,
    check_nothing_lost,
    load_described,
    steps_of,
    unpack,
)

DOCUMENTS = ("apples.md", "bridges.md", "clocks.md")
AT_WORK = (TaskStatus.RUNNING, TaskStatus.RECORDED)
ENDED = ("finished", "limit", "waiting")
READ_BY_THE_END = (
    "running",
    "recorded",
    "created",
    "asked",
    "paused",
    "limit",
    "reporting",
)
# whose second call was still to come, or in flight
GOING_ON = {"running": "task:2", "asked": "task:2", "waiting": "task:1"}


class RememberingModel(RehearsalModel):
    """The rehearsal model, which keeps in which roles it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Role] = []

    async def complete(self, prompt, *, role, on_text=None):
        self.asked.append(role)
        return await super().complete(prompt, role=role, on_text=on_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """An old home that is open, and what lay in it by label, as the old code read it."""

    world: World
    old_by_label: dict[str, dict[str, Any]]

    @property
    def store(self):
        return self.world.store


async def open_old_sqlite(folder, clock):
    for name in ("tasks.db", "tasks.db-wal"):
        (folder / name).write_bytes(unpack(name))
    return await open_sqlite(folder / "tasks.db", clock=clock, offload=run_inline)


async def open_old_postgres(url, clock):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(unpack("postgres.sql"))
    await (await open_postgres(url, offload=run_inline, migrates=True)).close()
    return await open_postgres(url, clock=clock, offload=run_inline)


@pytest.fixture
def empty_database_url(postgres_server):
    return postgres_server.make_database()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.system)])
async def home(request, tmp_path):
    clock = Clock()
    if request.param == "sqlite":
        store = await open_old_sqlite(tmp_path, clock)
    else:
        store = await open_old_postgres(request.getfixturevalue("empty_database_url"), clock)
    tools = (*build_file_tools(Folder(HOME / "documents"), offload=run_inline), build_ask_user())
    yield Home(
        world=World(model=RememberingModel(), clock=clock, store=store, tools=tools),
        old_by_label={found["label"]: found for found in load_described(request.param)},
    )
    await store.close()


def outcomes(steps):
    """What came of each call that gave something, by owner and key."""
    return {
        (owner, key): output for owner, key, _, state, _, output in steps if state == StepState.DONE
    }


async def calls_since(store, old):
    """Owner and key of each model call that was recorded after the old home was left."""
    rows = await store.events(old["id"], after_id=old["events"][-1][0], limit=10_000)
    recorded = [
        event.data
        for event in rows
        if event.kind == events.STEP_RECORDED and event.data["kind"] == "model"
    ]
    return [(data["owner"], data["key"]) for data in recorded]


async def send_on(store, old):
    """Do what a person must, so that the objective goes on."""
    match old["label"]:
        case "paused":
            await store.switch_objective(old["id"], to=ObjectiveStatus.ACTIVE)
        case "limit":
            await store.extend_objective(old["id"], limits=Limits())
        case "asked" | "waiting":
            (step,) = await store.inbox(old["id"])
            await store.answer_step(
                step.id, output=decide(step, Decision.ANSWER, "the next one").to_json()
            )


# -- nothing is lost
# --------------------------------------------------------------------------------------------------


async def test_every_objective_task_result_event_report_and_step_of_an_old_home_is_still_there(
    home,
):
    await check_nothing_lost(home.store, list(home.old_by_label.values()))


async def test_the_dead_workers_of_an_old_home_hold_nothing_up_and_no_task_is_lost_with_them(home):
    old = home.old_by_label["running"]

    await home.world.run(await home.store.objective(old["id"]))

    assert old["id"] not in {
        joined.objective_id for worker in await home.store.workers() for joined in worker.joined
    }
    assert {task.id for task in await home.store.tasks(old["id"])} >= {
        task_id for task_id, *_ in old["tasks"]
    }


async def test_an_objective_can_be_started_in_an_old_home_and_the_same_one_again_is_the_old_one(
    home,
):
    spec = (await home.store.objective(home.old_by_label["finished"]["id"])).spec
    again, is_new = await home.store.create_objective(spec, uid="again")
    assert (again.id, is_new) == (home.old_by_label["finished"]["id"], False)

    started = await home.world.run(
        text="Answer from the documents: how many bridges are there?", initial_task="List"
    )

    assert started.status is ObjectiveStatus.ENDED
    assert started.id > max(old["id"] for old in home.old_by_label.values())


# -- what was under way goes on
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ENDED)
async def test_an_objective_that_had_ended_makes_no_call_and_keeps_its_report(home, label):
    old = home.old_by_label[label]

    ended = await home.world.run(await home.store.objective(old["id"]))

    assert (ended.stop_reason, home.world.model.asked) == (old["stop_reason"], [])
    assert await home.store.report(old["id"]) == old["report"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "label",
    ("running recorded created asked waiting paused limit dead checking reporting").split(),
)
async def test_an_unfinished_objective_goes_on_to_its_end_and_repeats_no_call_of_the_journal(
    home, label
):
    old = home.old_by_label[label]
    await send_on(home.store, old)

    ended = await home.world.run(await home.store.objective(old["id"]))

    assert ended.status is ObjectiveStatus.ENDED
    assert await home.store.report(old["id"])
    tasks = await home.store.tasks(old["id"])
    assert not [task for task in tasks if task.status in AT_WORK]
    results = await home.store.results(old["id"])
    if label in READ_BY_THE_END:
        read = Counter(
            result.task_name.split()[1] for result in results if "(document " in result.task_name
        )
        assert read == dict.fromkeys(DOCUMENTS, 1)
    assert {task_id: text for task_id, text, _ in old["results"]}.items() <= {
        result.task_id: result.text for result in results
    }.items()

    paid, calls = outcomes(old["steps"]), await calls_since(home.store, old)
    assert len(calls) == len(set(calls)) == len(home.world.model.asked)
    assert not set(calls) & set(paid)
    assert paid.items() <= outcomes(await steps_of(home.store, old)).items()
    answered = {f"task:{task_id}" for task_id, *_ in old["results"]}
    assert [(owner, key) for owner, key in calls if owner in answered and "/execute/" in key] == []


@pytest.mark.parametrize("label", GOING_ON)
async def test_a_task_that_was_cut_off_goes_on_in_its_try_with_the_call_that_was_next(home, label):
    old, owner = home.old_by_label[label], GOING_ON[label]
    await send_on(home.store, old)

    await home.world.run(await home.store.objective(old["id"]))

    calls = [
        key
        for of, key in await calls_since(home.store, old)
        if of == owner and key.startswith("1/execute/")
    ]
    assert calls == ["1/execute/2/model"]


async def test_a_planning_that_was_paid_for_but_not_committed_is_asked_for_once_more_at_most(home):
    """Planning was a step of its task once, and is one of the whole objective now: the old step
    cannot stand in for the new one."""
    old = home.old_by_label["created"]

    await home.world.run(await home.store.objective(old["id"]))

    rows = await home.store.events(old["id"], after_id=old["events"][-1][0])
    (done,) = [event.id for event in rows if event.kind == events.TASK_DONE and event.task_id == 2]
    calls = [event.data for event in rows if event.kind == events.STEP_RECORDED and event.id < done]
    assert (
        sum(
            call["key"].endswith("create") and call["owner"].startswith(("task:2", "plan:"))
            for call in calls
        )
        <= 1
    )


async def test_a_report_that_was_written_but_not_recorded_is_not_paid_for_again(home):
    """It is the text in the journal, or the one result that the check has named for every part."""
    old = home.old_by_label["reporting"]
    assert old["report"] is None

    ended = await home.world.run(await home.store.objective(old["id"]))

    assert home.world.model.asked == []
    text_by_id = {task_id: text for task_id, text, _ in old["results"]}
    (expected,) = {text_by_id[part.task_id] for part in ended.checks.parts} or {
        "documents were read"
    }
    assert expected in await home.store.report(old["id"])
