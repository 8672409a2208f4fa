"""The limit of time while the endpoint is at fault, in every way that it can be: half a minute
after the limit there is a report.

In each run some tasks are done first, then every request meets the fault. `ALL_FAULTS=1 pytest
tests/system/test_limits_in_faults.py` tries all of them on a clock that skips waiting; `python -m
tests.system.test_limits_in_faults [FAULT]...` tries them with real commands, and prints how long
each took.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from babyagi import events
from babyagi.errors import BabyagiError
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.reporting.report import load_report
from babyagi.tasks import Limits, TaskStatus
from support.local_server import Answer, LocalServer, agreeing
from support.processes import babyagi, environ, finish, look, rows, start
from tests.patience import SkippingWorld, run_skipping

LIMIT_S = 25.0
REPORT_WITHIN_S = 30.0
# a call in flight at the limit may take its whole two minutes, and the report is asked for after
# that
END_WITHIN_S = 200.0
N_DONE = 3
NAMES = [f"Look at part {letter}" for letter in "ABCDEFGHIJ"]

WAITS = tuple(
    (
        "429-plain 429-retry-100000000 429-retry-negative 429-retry-garbage 429-year-9999 429-ms-huge "
        "503-huge"
    ).split()
)
HANGS = ("c-hang", "hang-after-header", "hang-mid-body", "drip", "c-slow-body")
ERRORS = ("408", "409", "500", "502-html", "503-retry", "504", "529", "200-error-body")
BROKEN = tuple(
    (
        "200-empty 200-html 200-gzip-garbage 200-truncated-json c-reset c-close c-truncated "
        "reset-mid-body"
    ).split()
)
NO_WAY_THERE = ("refused", "tls")
# of every request
REFUSALS = ("400-invalid", "422-fastapi", "413-html", "400-content-filter-azure", "endless-body")
PERSON = tuple(
    "401 403-region 404-model 404-html 429-quota 301-loop 302-loop 303-loop 307-loop 308-loop".split()
)
ELSEWHERE = ("302-login", "307-other-host", "308-other-host")
OUTAGES = (*WAITS, *HANGS, *ERRORS, *BROKEN, *NO_WAY_THERE)
STOPS = (*PERSON, *ELSEWHERE)
IN_CI = set(
    "429-retry-100000000 503-huge c-hang drip 500 refused 400-invalid endless-body 308-loop tls".split()
)


def chosen(*faults):
    return [fault for fault in faults if os.environ.get("ALL_FAULTS") or fault in IN_CI]


def answer(request):
    if request.agent == "creation":
        return Answer(
            text=json.dumps(
                {"tasks": [{"name": name, "after": []} for name in NAMES], "objective_met": False}
            )
        )
    return Answer(
        text=" ".join(
            ["found about", *re.findall(r"^\d+: .*$", request.messages[-1].text, re.MULTILINE)[-1:]]
        )
    )


def url_of(server, fault):
    """Where a worker looks for the server."""
    match fault:
        case "refused":
            return "http://127.0.0.1:9/v1"
        case "tls":
            return server.base_url.replace("http:", "https:")
        case "dns":
            return "http://no-such-host.invalid/v1"
    return server.base_url


class Trouble:
    """A run that has done some tasks when the endpoint falls ill for good, up to its end."""

    def __init__(self, fault):
        self.fault, self.error = fault, None

    async def run(self):
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                LocalServer(agreeing(answer), slow_body_s=10_000.0)
            )
            self.world = world = SkippingWorld(model=self.open_model(server.base_url, stack))
            self.objective = objective = await world.start(limits=Limits(max_tasks=N_DONE))
            ended, _ = await world.open_worker(objective).run(objective.id)
            await world.store.extend_objective(
                objective.id, limits=replace(ended.spec.limits, max_tasks=50, max_time_s=LIMIT_S)
            )
            if self.fault not in ("refused", "tls"):
                server.fail_next(self.fault, n=None)
            world.model = self.open_model(url_of(server, self.fault), stack)
            server.requests.clear()
            self.strayed = server.strayed
            await self.go_on(server)

    async def go_on(self, server):
        began_s = now_s()
        working = asyncio.ensure_future(
            self.world.open_worker(self.objective).run(self.objective.id)
        )
        await asyncio.wait([working], timeout=LIMIT_S + REPORT_WITHIN_S)
        store, id_ = self.world.store, self.objective.id
        self.soon = await store.objective(id_)
        self.soon_report = await load_report(store, self.soon)
        await asyncio.wait([working], timeout=3600)
        self.error = working.exception()
        self.took_s = now_s() - began_s
        self.ended, self.report = await store.objective(id_), await store.report(id_)
        self.tasks = await store.tasks(id_)
        self.kinds = Counter(event.kind for event in await store.events(id_, limit=100_000))
        self.n_requests = len(server.requests)

    @staticmethod
    def open_model(url, stack):
        endpoint = Endpoint(base_url=url, api_key="sk-x", sleep=asyncio.sleep, random=lambda: 0.5)
        stack.push_async_callback(endpoint.close)
        return OpenAIModel("some-model", endpoint, dialect="chat")

    def check_report(self, markdown):
        assert markdown.count("found about") == N_DONE


def now_s():
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("fault", chosen(*OUTAGES))
def test_half_a_minute_after_the_limit_of_time_there_is_a_report_whatever_the_endpoint_does(fault):
    trouble = Trouble(fault)

    run_skipping(trouble.run())

    assert trouble.error is None
    assert trouble.soon.stop_reason == trouble.ended.stop_reason == "limit:time"
    trouble.check_report(trouble.soon_report)
    trouble.check_report(trouble.report)
    assert "the model could not be reached" in trouble.report
    assert trouble.took_s <= END_WITHIN_S
    assert [task.failures for task in trouble.tasks] == [0] * len(trouble.tasks)
    assert (
        trouble.kinds[events.MODEL_UNAVAILABLE] >= 1 and trouble.kinds[events.MODEL_AVAILABLE] == 0
    )
    assert trouble.ended.held.calls == 0


@pytest.mark.parametrize("fault", chosen(*REFUSALS))
def test_an_endpoint_that_refuses_everything_fails_the_objective_and_not_its_tasks_one_by_one(
    fault,
):
    trouble = Trouble(fault)

    run_skipping(trouble.run())

    assert trouble.error is None
    is_outage = fault == "endless-body"
    assert trouble.ended.stop_reason == ("limit:time" if is_outage else "failed")
    trouble.check_report(trouble.report)
    n_dead = sum(task.status is TaskStatus.DEAD for task in trouble.tasks)
    assert n_dead <= 2  # what fell before the third met the same
    if not is_outage:
        assert "refuses even a test call of one line" in trouble.ended.stop_detail


@pytest.mark.parametrize("fault", chosen(*STOPS))
def test_an_error_that_a_person_must_mend_ends_the_run_at_once_and_the_results_can_be_read(fault):
    trouble = Trouble(fault)

    run_skipping(trouble.run())

    assert isinstance(trouble.error, BabyagiError) and trouble.error.fix
    assert trouble.took_s < LIMIT_S and trouble.strayed == []
    trouble.check_report(trouble.soon_report)
    assert "This objective has not ended" in trouble.soon_report
    assert [task.failures for task in trouble.tasks] == [0] * len(trouble.tasks)


# -- with real commands
# --------------------------------------------------------------------------------------------------


async def try_command(fault):
    """One run of the command: its exit code, seconds to its end, seconds from its start to the
    first report that has its end, requests."""
    folder = Path(tempfile.mkdtemp())
    async with LocalServer(agreeing(answer), slow_body_s=10_000.0) as server:
        env = environ(
            folder / "home",
            server.base_url,
            OPENAI_API_KEY="sk-x",
            BABYAGI_PRICE="1/4",
        )
        await babyagi("run", "Find out about parts", "--max-tasks", str(N_DONE), env=env)
        time_s = math.ceil((await look("status", env=env))["usage"]["time_s"] + LIMIT_S)
        await babyagi(
            "extend", "--objective", "1", "--max-tasks", "50", "--max-time", f"{time_s}s", env=env
        )
        if fault not in ("refused", "tls", "dns"):
            server.fail_next(fault, n=None)
        server.requests.clear()
        env = {**env, "OPENAI_BASE_URL": url_of(server, fault)}
        began_s = time.monotonic()
        process = await start("resume", "--objective", "1", env=env)
        ending = asyncio.ensure_future(finish(process, timeout_s=600))
        while not (
            ending.done() or rows(folder / "home", "SELECT 1 FROM objective WHERE status = 'ended'")
        ):
            await asyncio.sleep(0.2)
        report = await babyagi("report", "--objective", "1", env=env)
        report_s = time.monotonic() - began_s
        assert report.code == 0 and report.out.count("found about") == N_DONE, report.said
        ended = await ending
        return ended.code, time.monotonic() - began_s, report_s, len(server.requests)


async def try_commands(faults):
    print(
        f"a limit of {LIMIT_S:g} s\n{'fault':28} {'exit':>4} {'report after s':>15} "
        f"{'end after s':>12} {'requests':>9}"
    )
    n_at_once = asyncio.Semaphore(4)

    async def one(fault):
        async with n_at_once:
            code, took_s, report_s, n_requests = await try_command(fault)
        print(f"{fault:28} {code:>4} {report_s:>15.1f} {took_s:>12.1f} {n_requests:>9}", flush=True)

    await asyncio.gather(*map(one, faults))


if __name__ == "__main__":
    asyncio.run(try_commands(sys.argv[1:] or [*OUTAGES, *REFUSALS, *STOPS, "dns"]))
