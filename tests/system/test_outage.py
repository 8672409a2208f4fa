"""Five minutes without the model, on a clock that skips waiting, over real sockets."""

import asyncio
import re
from contextlib import AsyncExitStack

import pytest

from babyagi import log
from babyagi.llm.endpoint import Endpoint
from babyagi.llm.openai import OpenAIModel
from babyagi.tasks import TaskStatus
from tests.local_server import Answer, LocalServer
from tests.patience import SkippingWorld, run_skipping

OUTAGE_S = 300.0
CALL_S = 4.0
N_TASKS = 11


def answer(request):
    if request.agent != "creation":
        return Answer(text=" ".join(["said of", *re.findall(r"^\d+: .*$", request.messages[-1].text, re.MULTILINE)[-1:]]))
    is_first = any("\n1: Begin\n" in message.text for message in request.messages)
    names = ", ".join(f'{{"name": "Part {letter}", "after": []}}' for letter in "ABCDEFGHIJ") if is_first else ""
    return Answer(text=f'{{"tasks": [{names}], "objective_met": false}}')


async def run_through(fault, concurrency):
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(LocalServer(answer, latency_s=CALL_S))
        endpoint = Endpoint(base_url=server.base_url, timeout_s=20.0, sleep=asyncio.sleep, random=lambda: 0.5)
        stack.push_async_callback(endpoint.close)
        began_s = 10.0  # in the middle of the first tasks
        during = []

        def is_down(record):
            if began_s <= record.at < began_s + OUTAGE_S:
                during.append(record)
                return True
            return False

        server.fail_when(is_down, fault)
        world = SkippingWorld(model=OpenAIModel("m", endpoint), concurrency=concurrency)
        store = world.store
        objective = await world.start()
        async with asyncio.timeout(3000):
            ended, _ = await world.open_worker(objective).run(objective.id)
        after_s = min(record.at for record in server.requests if record.at >= began_s + OUTAGE_S) - began_s - OUTAGE_S
        events = await store.events(objective.id, limit=10_000)
        return ended, await store.tasks(objective.id), len(during), after_s, [event.kind for event in events]


@pytest.mark.parametrize("concurrency", [1, 4, 8])
@pytest.mark.parametrize("fault", ["500", "c-reset", "503-retry"])
def test_an_outage_of_five_minutes_fails_nothing_and_costs_few_requests(fault, concurrency):
    ended, tasks, n_during, after_s, kinds = run_skipping(run_through(fault, concurrency))

    assert ended.stop_reason == "finished"
    assert [(task.status, task.failures, task.try_no) for task in tasks] == [(TaskStatus.DONE, 0, 1)] * N_TASKS
    assert n_during <= 21 + max(0, concurrency - 5)  # those in flight when it began cannot know
    assert after_s <= 20.0
    assert 10 <= kinds.count(log.MODEL_UNAVAILABLE) <= 30 and kinds.count(log.MODEL_AVAILABLE) >= 1
