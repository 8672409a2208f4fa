"""Whatever the prioritizer replies: of N finished tasks N results, every name byte for byte,
nothing lost, nothing doubled."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from babyagi.react.asking import MAX_REASKS
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Limits, Role, StopReason, TaskStatus
from babyagi.taskstore.sqlite import MemoryTaskStore, open_sqlite
from support.scripted import ScriptedModel
from support.world import Clock, World

SHAPES = json.loads(
    (Path(__file__).parent.parent / "data" / "prioritizer_replies.json").read_text(encoding="utf-8")
)
NAMES = (
    "Open https://x.com/v2.1?id=3&b=*#frag-7. and quote it",
    "Compare the U.S. (v2.0) with the E.U. rules: 1. cost, 2) time",
    'Ask "who\'s there?" in „quotes“ and `ticks`',
    "Taste 🍏🍎 — naïve, 東京, e\u0301",
    '3. Write {"order": [1, 2]} | C:\\new\\table <b>',
    "#5 - [ ] **bold** 100 % of it…",
)
# else a reply that is longer than was reserved for it ends the run
ANY_LENGTH = Limits(max_tokens=0)
QUEUED = re.compile(r"^(\d+): (.+)$", re.MULTILINE)


@pytest.fixture
async def sqlite(tmp_path):
    offload = ThreadOffload()
    opened = await open_sqlite(tmp_path / "tasks.db", clock=Clock(), offload=offload)
    yield opened
    await opened.close()
    offload.close()


def make_model(reply):
    """A model that proposes the six tasks once and orders them with the reply, in which {id3} and
    {name3} are the third one's."""

    def answer(prompt, role):
        text = prompt.messages[-1].text
        match role:
            case Role.CREATION:
                names = NAMES if "Begin" in text.split("listed tasks")[0] else ()
                return json.dumps(
                    {
                        "tasks": [{"name": name, "after": []} for name in names],
                        "objective_met": False,
                    },
                    ensure_ascii=False,
                )
            case Role.PRIORITIZATION:
                return fill(
                    reply, sorted((int(task_id), name) for task_id, name in QUEUED.findall(text))
                )
            case _:
                return f"result of {role}: {re.findall(r'^[0-9]+: .*$', text, re.MULTILINE)[-1:]}"

    return ScriptedModel(answer)


def fill(reply, queued):
    for n, (task_id, name) in enumerate(queued, start=1):
        reply = reply.replace(f"{{id{n}}}", str(task_id)).replace(f"{{name{n}}}", name)
    return reply


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
async def test_of_n_finished_tasks_n_results_are_in_the_memory_store(shape):
    await check_that_nothing_is_lost(shape, MemoryTaskStore(Clock()), concurrency=1)


# the same SQL, on a disk and in a thread
@pytest.mark.parametrize(
    "shape",
    SHAPES if "LONG_TESTS" in os.environ else SHAPES[::6],
    ids=lambda shape: shape["name"],
)
async def test_of_n_finished_tasks_n_results_are_in_the_sqlite_store(shape, sqlite):
    await check_that_nothing_is_lost(shape, sqlite, concurrency=4)


async def check_that_nothing_is_lost(shape, store, *, concurrency):
    model = make_model(shape["reply"])

    ended = await World(model=model, store=store, concurrency=concurrency).run(
        initial_task="Begin", limits=ANY_LENGTH
    )

    tasks = await store.tasks(ended.id)
    results = await store.results(ended.id)
    assert ended.stop_reason is StopReason.FINISHED
    assert {task.id: task.name for task in tasks} == dict(enumerate(("Begin", *NAMES), start=1))
    assert {task.status for task in tasks} == {TaskStatus.DONE}
    assert {task.claim_no for task in tasks} == {1}
    assert sorted(result.task_id for result in results) == [1, 2, 3, 4, 5, 6, 7]
    assert all(
        result.task_name == NAMES[result.task_id - 2] for result in results if result.task_id > 1
    )
    # a reply without a list in JSON is asked for again, any other is a hint as it stands
    n_asked = 1 + MAX_REASKS if shape["order"] is None else 1
    # the six came at once, and nothing new came after them
    assert len(model.asked(Role.PRIORITIZATION)) == n_asked


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["name"])
async def test_an_order_that_can_be_read_is_the_order_of_the_work_and_else_it_stays(shape):
    model, store = make_model(shape["reply"]), MemoryTaskStore(Clock())

    ended = await World(model=model, store=store, concurrency=1).run(
        initial_task="Begin", limits=ANY_LENGTH
    )

    worked = [result.task_id - 1 for result in await store.results(ended.id)][1:]
    order = shape["order"] or ()
    named = iter(order)
    assert worked == [next(named) if place in order else place for place in range(1, 7)]


async def test_a_prioritizer_that_takes_for_ever_holds_up_no_task():
    gate, store = asyncio.Event(), MemoryTaskStore(Clock())
    script = make_model("")

    class Slow(ScriptedModel):
        async def complete(self, prompt, *, role, on_text=None):
            if role is Role.PRIORITIZATION:
                await gate.wait()
            completion = await super().complete(prompt, role=role, on_text=on_text)
            if role is Role.EXECUTION and len(self.asked(Role.EXECUTION)) == 7:
                gate.set()  # every task is carried out
            return completion

    ended = await World(model=Slow(script._answer), store=store, concurrency=2).run(
        initial_task="Begin"
    )

    assert ended.stop_reason is StopReason.FINISHED
    assert len(await store.results(ended.id)) == 7
