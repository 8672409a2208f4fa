"""Endpoints that need longer than the deadline of a call, on a clock that skips waiting, over real
sockets: what comes late is used, and what is given up is asked for again with a longer deadline."""

import asyncio
import json
import re
from contextlib import AsyncExitStack

import pytest

from babyagi.events import STEP_ABANDONED
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.tasks import Limits, StopReason, TaskStatus
from babyagi.worker.serving import TIME_GRACE_S
from support.local_server import Answer, LocalServer, agreeing
from tests.patience import SkippingWorld, run_skipping

DEADLINE_S = 10.0
MAX_THROWN_AWAY = 4
FIRST = "Begin"
NAMES = ("Measure the bridge", "Weigh the lorry")


def answer(request):
    """Propose two tasks after the first one; else say something about the task."""
    told = request.messages[-1].text
    if request.agent != "creation":
        return Answer(text=" ".join(["said of", *re.findall(r"^\d+: .*$", told, re.MULTILINE)]))
    names = NAMES if f": {FIRST}" in told else ()
    tasks = [{"name": name, "after": []} for name in names]
    return Answer(text=json.dumps({"tasks": tasks, "objective_met": False}))


class OneSlot:
    """Answers one call at a time, as llama.cpp does; each takes so long. What asks for one word is
    answered quickly, as soon as the slot is free."""

    def __init__(self, latency_s):
        self.slot, self.latency_s = asyncio.Lock(), latency_s

    async def __call__(self, request):
        async with self.slot:
            await asyncio.sleep(1.0 if "the word ok" in str(request.messages) else self.latency_s)
        return answer(request)


class OneThread(LocalServer):
    """A server that answers nothing at all while it works, not even a request for its models, and
    does not notice that a client is gone."""

    async def __aenter__(self):
        self.thread = asyncio.Lock()
        return await super().__aenter__()

    async def _respond(self, connection, request):
        async with self.thread:
            return await super()._respond(connection, request)


class Run:
    """A run of three tasks at a server. `n_thrown_away` is the number of calls whose answer nobody
    took, without the probes."""

    def __init__(self, server, *, limits=None, on_piece=None):
        self.server, self.on_piece = server, on_piece
        self.limits = limits or Limits(max_time_s=0)

    def __call__(self):
        run_skipping(self._run())
        return self

    async def _run(self):
        async with AsyncExitStack() as stack:
            self.server = server = await stack.enter_async_context(self.server())
            self.endpoint = Endpoint(
                base_url=server.base_url,
                timeout_s=DEADLINE_S,
                sleep=asyncio.sleep,
                random=lambda: 0.5,
            )
            stack.push_async_callback(self.endpoint.close)
            model = OpenAIModel("m", self.endpoint)
            world = SkippingWorld(model=model, on_piece=self.on_piece)
            objective = await world.start(limits=self.limits, initial_task=FIRST)
            self.ended, _ = await world.open_worker(objective).run(objective.id)
            self.took_s = asyncio.get_running_loop().time()
            self.tasks = await world.store.tasks(objective.id)
            self.report = await world.store.report(objective.id)
            events = await world.store.events(objective.id, limit=10_000)
        thrown = [event.data["key"] for event in events if event.kind == STEP_ABANDONED]
        self.n_thrown_away = sum(not key.startswith("probe/") for key in thrown)

    def check(self):
        assert self.ended.stop_reason is StopReason.FINISHED
        assert [(task.name, task.status, task.failures, task.try_no) for task in self.tasks] == [
            (name, TaskStatus.DONE, 0, 1) for name in (FIRST, *NAMES)
        ]
        assert self.n_thrown_away <= MAX_THROWN_AWAY


def answer_in_two_parts(request):
    """The same, but the check names a result for each of two parts, which a report brings
    together."""
    if request.agent != "check":
        return answer(request)
    parts = [
        {"part": name, "task": n, "quote": f"{n}: {name}"} for n, name in enumerate(NAMES, start=2)
    ]
    return Answer(text=json.dumps({"parts": parts, "missing": [], "met": True}))


def of_one_slot(latency_s):
    return lambda: LocalServer(agreeing(OneSlot(latency_s)))


def slow_in_everything(latency_s):
    return lambda: LocalServer(agreeing(answer), latency_s=latency_s)


def of_one_thread(latency_s):
    return lambda: OneThread(agreeing(OneSlot(latency_s)))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("serve", "times"), [(of_one_slot, 10), (slow_in_everything, 2.5), (of_one_thread, 10)]
)
def test_three_tasks_end_at_a_server_whose_answers_take_longer_than_the_deadline(serve, times):
    Run(serve(times * DEADLINE_S))().check()


def test_an_answer_whose_text_keeps_coming_is_waited_for_however_long_it_takes():
    def dripping():
        return LocalServer(agreeing(answer), piece_latency_s=8.0)

    run = Run(dripping, on_piece=lambda piece: None)()

    run.check()
    assert run.n_thrown_away == 0 and run.endpoint.deadline.now_s == DEADLINE_S


def test_a_request_that_a_living_server_has_lost_is_given_up_and_made_again():
    def losing():
        server = LocalServer(agreeing(answer))
        server.fail_next("c-hang")
        return server

    run = Run(losing)()

    run.check()
    assert run.n_thrown_away == 1 and run.took_s < 8 * DEADLINE_S


def test_a_report_that_comes_too_late_is_put_together_from_the_results():
    def silent_about_the_report():
        server = LocalServer(answer_in_two_parts)
        server.fail_next("c-hang", n=None, agent="report")
        return server

    run = Run(silent_about_the_report, limits=Limits(max_time_s=6 * DEADLINE_S))()

    run.check()
    assert run.n_thrown_away == 1 and "the model could not be reached" in run.report


def test_no_call_is_waited_for_beyond_its_deadline_once_the_time_of_the_objective_is_over():
    limit_s = 1.5 * DEADLINE_S

    run = Run(slow_in_everything(50 * DEADLINE_S), limits=Limits(max_time_s=limit_s))()

    assert run.ended.stop_reason is StopReason.LIMIT_TIME
    # the report's own call gets the deadline of the settings
    assert run.took_s <= limit_s + TIME_GRACE_S + DEADLINE_S + 10.0
    assert run.ended.held.calls == 0
