"""Five minutes without the model, on a clock that skips waiting, over real sockets."""

import asyncio
import random
import re
from contextlib import AsyncExitStack

import pytest

from babyagi import events
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.retry import N_FAILURES, PROBE_EVERY_S
from babyagi.tasks import Proposal, TaskStatus
from support.local_server import Answer, LocalServer, agreeing
from tests.patience import SkippingWorld, run_skipping

OUTAGE_S = 300.0
BEGAN_S = 10.0  # in the middle of the first tasks
LONGEST_CALL_S = 6.0
MAX_REQUESTS = 21
MAX_RETRIES = 3  # of one call: the first that fails asks again, the others do not
N_PROBES = int(OUTAGE_S / PROBE_EVERY_S)


class Outage:
    """A run through five minutes in which every request that is sent fails. Calls are of different
    lengths, so they end at different times.

    Args:
        takes_those_in_flight: whether calls fail too that were sent before it began, and would have
            been answered during it.
        fails_in_s: how long a request takes to fail.
    """

    def __init__(self, fault, concurrency, *, takes_those_in_flight, fails_in_s):
        self.fault, self.concurrency = fault, concurrency
        self.takes_those_in_flight, self.fails_in_s = takes_those_in_flight, fails_in_s
        self.n_tasks = 12 + 2 * concurrency
        self.sent_at = []  # requests that were sent during it
        self.chance = random.Random(concurrency)

    def strikes(self, record):
        if BEGAN_S <= record.at < BEGAN_S + OUTAGE_S:
            self.sent_at.append(record.at)
            return True
        return self.takes_those_in_flight and BEGAN_S - LONGEST_CALL_S <= record.at < BEGAN_S

    async def answer(self, request):
        if not BEGAN_S <= asyncio.get_running_loop().time() < BEGAN_S + OUTAGE_S:
            await asyncio.sleep(self.chance.uniform(2.0, LONGEST_CALL_S))
        if request.agent == "creation":
            return Answer(text='{"tasks": [], "objective_met": false}')
        return Answer(
            text=" ".join(
                ["said of", *re.findall(r"^\d+: .*$", request.messages[-1].text, re.MULTILINE)[-1:]]
            )
        )

    async def run(self):
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                LocalServer(agreeing(self.answer), latency_s=self.fails_in_s)
            )
            endpoint = Endpoint(
                base_url=server.base_url,
                timeout_s=20.0,
                sleep=asyncio.sleep,
                random=self.chance.random,
            )
            stack.push_async_callback(endpoint.close)
            server.fail_when(self.strikes, self.fault)
            world = SkippingWorld(model=OpenAIModel("m", endpoint), concurrency=self.concurrency)
            objective = await world.start()
            await world.store.add_tasks(
                objective.id, [Proposal(name=f"Part {n}") for n in range(2, self.n_tasks + 1)]
            )
            async with asyncio.timeout(3000):
                self.ended, _ = await world.open_worker(objective).run(objective.id)
            self.tasks = await world.store.tasks(objective.id)
            self.kinds = [
                event.kind for event in await world.store.events(objective.id, limit=10_000)
            ]
            over_s = BEGAN_S + OUTAGE_S
            self.at_work_after_s = (
                min(record.at for record in server.requests if record.at >= over_s) - over_s
            )

    def check(self):
        assert self.ended.stop_reason == "finished"
        assert [(task.status, task.failures, task.try_no) for task in self.tasks] == [
            (TaskStatus.DONE, 0, 1)
        ] * self.n_tasks
        assert self.at_work_after_s <= 20.0
        assert (
            10 <= self.kinds.count(events.MODEL_UNAVAILABLE) <= 30
            and self.kinds.count(events.MODEL_AVAILABLE) >= 1
        )


CASES = [
    ("500", 4.0, 1),
    ("500", 4.0, 16),
    ("c-reset", 0.0, 4),
    ("c-reset", 0.0, 8),
    ("503-retry", 0.1, 8),
]


@pytest.mark.parametrize(("fault", "fails_in_s", "concurrency"), CASES)
def test_an_outage_of_five_minutes_fails_nothing_and_costs_few_requests(
    fault, fails_in_s, concurrency
):
    outage = Outage(fault, concurrency, takes_those_in_flight=True, fails_in_s=fails_in_s)

    run_skipping(outage.run())

    outage.check()
    assert len(outage.sent_at) <= MAX_REQUESTS


@pytest.mark.parametrize(("fault", "fails_in_s", "concurrency"), CASES[1::2])
def test_what_is_still_answered_during_an_outage_does_not_hide_it(fault, fails_in_s, concurrency):
    outage = Outage(fault, concurrency, takes_those_in_flight=False, fails_in_s=fails_in_s)

    run_skipping(outage.run())

    outage.check()
    # sent before anything had failed
    n_unknowing = sum(at <= outage.sent_at[0] + fails_in_s for at in outage.sent_at)
    assert n_unknowing <= concurrency
    assert len(outage.sent_at) <= max(N_FAILURES + 1, n_unknowing + MAX_RETRIES) + N_PROBES
    if fails_in_s < 1.0:
        assert len(outage.sent_at) <= MAX_REQUESTS
