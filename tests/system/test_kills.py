"""Killed at any instant and started again: the same results, and nothing is done or paid for
twice."""

import asyncio
import json
import os
import random
import signal
from dataclasses import replace

import pytest

from babyagi.llm.prompt import estimate_tokens
from babyagi.tasks import Usage
from support.local_server import LocalServer, rehearsal_answer
from support.processes import babyagi, environ, finish, look, rows, start, write_documents

pytestmark = pytest.mark.system

OBJECTIVE = "What do the documents say about large stores?"
LATENCY_S = 0.1  # so long that a run does not end before it was killed often enough
CONCURRENCY = 3
N_KILLS, N_KILLS_WITH_CHROMA = (20, 4) if "LONG_TESTS" in os.environ else (8, 2)
# After so many kills in a row before anything was answered, the next one waits for an answer: a
# task that ten workers in a row were lost with is given up, however busy the machine is.
MAX_FRUITLESS = 2
# more than any prompt has words, so that it is believed; and no limit of tokens minds
FIRST_TOKENS = 10_000


class NumberedAnswers:
    """The rehearsal model, whose bill for a prompt is a number that no other prompt has: so the
    journal says which request a step was."""

    def __init__(self):
        self.number_by_prompt = {}

    async def __call__(self, chat):
        number = self.number_by_prompt.setdefault(
            repr((chat.agent, chat.messages)), FIRST_TOKENS + len(self.number_by_prompt)
        )
        answer = await rehearsal_answer(chat)
        said = answer.text + "".join(call.arguments for call in answer.tool_calls)
        return replace(
            answer,
            usage=Usage(calls=1, prompt_tokens=number, completion_tokens=estimate_tokens(said)),
        )


@pytest.fixture
async def server():
    async with LocalServer(NumberedAnswers(), latency_s=LATENCY_S) as running:
        yield running


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "docs", n_lines=500)  # three reads each


def make_environ(home, server, documents, **more):
    fixed = {
        "BABYAGI_FILES": str(documents),
        "INITIAL_TASK": "Look around",  # which reads the documents one by one
        "BABYAGI_CONCURRENCY": str(CONCURRENCY),
        "BABYAGI_CONTEXT_TOKENS": "6000",
        "OPENAI_API_KEY": "sk-test",
        "BABYAGI_EMBEDDING_MODEL": "hash",
        "BABYAGI_MAX_TOKENS": "0",
    }
    return environ(home, server.base_url, **fixed | more)


async def results_of(env):
    """Name → lines of the result; the order of equally good lines may follow the order in which
    tasks were finished."""
    found = await look("show", "results", env=env)
    assert len({row["task"] for row in found}) == len(found)
    return {row["task"]: sorted(row["result"].splitlines()) for row in found}


async def run_until(process, has_begun, *, delay_s):
    """Return when the process has ended, or `delay_s` after `has_begun` says True."""
    ending = asyncio.ensure_future(process.wait())
    try:
        while not ending.done() and not has_begun():
            await asyncio.sleep(0.002)
        await asyncio.wait([ending], timeout=delay_s)
    finally:
        ending.cancel()


def at_once():
    return True


def journaled_numbers(home):
    """The number of the request that each finished model step was."""
    steps = rows(home, "SELECT output FROM step WHERE kind = 'model' AND state = 'done'")
    return [json.loads(step["output"])["usage"]["prompt_tokens"] for step in steps]


class Watcher:
    """What may not happen in a run, checked after it against what the store held when it began."""

    def __init__(self, home, server):
        self.home = home
        self.server = server
        self.n_in_flight = 0  # calls that were intended and not journaled when a process was killed
        self.look()

    def look(self):
        self.n_requests = len(self.server.requests)
        self.journaled = set(journaled_numbers(self.home))
        self.done = {
            row["id"] for row in rows(self.home, "SELECT id FROM task WHERE status = 'done'")
        }
        self.results = {row["task_id"] for row in rows(self.home, "SELECT task_id FROM result")}
        self.last_event_id = max(
            (row["id"] for row in rows(self.home, "SELECT id FROM event")), default=0
        )

    def has_new_request(self):
        return len(self.server.requests) > self.n_requests

    def has_new_answer(self):
        return set(journaled_numbers(self.home)) > self.journaled

    def check(self):
        sent = [record.prompt_tokens for record in self.server.requests[self.n_requests :]]
        n_intended = len(self.events("step.intended"))
        n_new = len(set(journaled_numbers(self.home)) - self.journaled)

        assert not self.journaled & set(sent), "a journaled call was sent again"
        assert n_new <= len(sent) <= n_intended, "a call was sent that nobody had intended"
        assert not self.done & {event["task_id"] for event in self.events("task.claimed")}, (
            "a finished task was claimed again"
        )
        assert not self.results & {event["task_id"] for event in self.events("task.recorded")}, (
            "a task was carried out again"
        )
        self.n_in_flight += n_intended - n_new
        before = self.journaled, self.results
        self.look()
        assert self.journaled >= before[0], "a journaled call is gone"
        assert self.results >= before[1], "a result is gone"

    def events(self, kind):
        return rows(
            self.home, f"SELECT * FROM event WHERE id > {self.last_event_id} AND kind = '{kind}'"
        )


async def kill_and_start_again(env, home, server, *, n_kills, seed):
    """Kill a run at `n_kills` random instants, then let it end; return what was watched."""
    chance, watcher, n_fruitless = random.Random(seed), Watcher(home, server), 0
    for n_killed in range(n_kills):
        process = await start("run", OBJECTIVE, env=env)
        if n_fruitless == MAX_FRUITLESS:
            has_begun, delay_s = watcher.has_new_answer, chance.uniform(0, 2.2 * LATENCY_S)
        elif chance.random() < 0.7:
            has_begun, delay_s = watcher.has_new_request, chance.uniform(0, 2.2 * LATENCY_S)
        else:
            has_begun, delay_s = at_once, chance.uniform(0, LATENCY_S)  # while it begins
        await run_until(process, has_begun, delay_s=delay_s)
        if process.returncode is None:
            process.kill()
        ended = await finish(process)
        assert ended.code == -signal.SIGKILL, f"it ended before kill {n_killed + 1}: {ended}"
        # what the server was still answering is answered into a closed connection
        await asyncio.sleep(2 * LATENCY_S)
        n_fruitless = 0 if watcher.has_new_answer() else n_fruitless + 1
        watcher.check()
    last = await babyagi("run", OBJECTIVE, env=env)
    assert last.code == 0, last.said
    watcher.check()
    return watcher


def check_the_end(home, server, watcher):
    tasks = rows(home, "SELECT * FROM task")
    steps = rows(home, "SELECT * FROM step WHERE kind = 'model'")
    (objective,) = rows(home, "SELECT * FROM objective")
    n_results = rows(home, "SELECT count(*) AS n, count(DISTINCT task_id) AS n_tasks FROM result")[
        0
    ]

    assert {task["status"] for task in tasks} == {"done"}
    assert {task["try_no"] for task in tasks} == {1}
    assert n_results == {"n": len(tasks), "n_tasks": len(tasks)}
    assert (objective["status"], objective["stop_reason"]) == ("ended", "finished")
    assert {step["state"] for step in steps} == {"done"}
    numbers = journaled_numbers(home)
    assert len(set(numbers)) == len(numbers) == len(steps)
    assert set(numbers) <= {record.prompt_tokens for record in server.requests}
    assert len(server.requests) - len(steps) <= watcher.n_in_flight
    # a call that nobody heard of again counts as spent
    assert objective["calls"] >= len(server.requests)
    assert rows(home, "SELECT count(*) AS n FROM step WHERE is_held = 1") == [{"n": 0}]


@pytest.mark.timeout(600)
async def test_killed_at_random_instants_it_ends_with_the_same_results_and_sends_no_journaled_call_again(
    tmp_path, server, documents
):
    unkilled = make_environ(tmp_path / "unkilled", server, documents)
    assert (await babyagi("run", OBJECTIVE, env=unkilled)).code == 0
    server.reset()
    home = tmp_path / "killed"
    env = make_environ(home, server, documents)

    watcher = await kill_and_start_again(env, home, server, n_kills=N_KILLS, seed=20)

    check_the_end(home, server, watcher)
    assert await results_of(env) == await results_of(unkilled)
    report = (await look("report", env=env))["markdown"]
    assert "* Tasks: 10 done\n" in report
    assert len(server.requests) > len(rows(home, "SELECT id FROM step WHERE kind = 'model'")), (
        "no kill struck a call in flight"
    )


@pytest.mark.timeout(600)
async def test_killed_with_the_results_in_chroma_it_ends_with_the_same_results_and_a_whole_index(
    tmp_path, server, documents
):
    home = tmp_path / "killed"
    env = make_environ(home, server, documents, BABYAGI_RESULT_STORE="chroma")

    watcher = await kill_and_start_again(env, home, server, n_kills=N_KILLS_WITH_CHROMA, seed=4)

    check_the_end(home, server, watcher)
    assert rows(home, "SELECT task_id FROM result WHERE is_indexed = 0") == []
    unkilled = make_environ(tmp_path / "unkilled", server, documents)
    assert (await babyagi("run", OBJECTIVE, env=unkilled)).code == 0
    assert await results_of(env) == await results_of(unkilled)


@pytest.mark.parametrize("latency_s", [0.05, 30.0], ids=["calls that end", "calls that never end"])
async def test_sigterm_drains_within_its_time_and_a_resumed_run_goes_on(
    latency_s, tmp_path, server, documents
):
    home = tmp_path / "home"
    env = make_environ(home, server, documents, SUPPORT_DEFAULTS="drain_s=3")
    process = await start("run", OBJECTIVE, env=env)
    while len(server.requests) < 12:
        await asyncio.sleep(0.005)
        assert process.returncode is None
    server.latency_s = latency_s
    await asyncio.sleep(0.2)

    process.send_signal(signal.SIGTERM)
    n_at_signal = len(server.requests)
    ended = await finish(process)

    assert ended.code == 143, ended
    assert "Traceback" not in ended.said
    assert len(server.requests) <= n_at_signal + CONCURRENCY
    assert rows(home, "SELECT * FROM worker") == []
    assert rows(home, "SELECT id FROM task WHERE failures > 0 OR status = 'running'") == []
    server.latency_s = LATENCY_S
    watcher = Watcher(home, server)
    resumed = await babyagi("resume", env=env)
    assert resumed.code == 0, resumed.said
    watcher.check()
    assert {row["status"] for row in rows(home, "SELECT status FROM task")} == {"done"}
