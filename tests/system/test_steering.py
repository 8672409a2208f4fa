"""A person steers a run from another terminal: what they say holds before the next call, and every
run ends with a report."""

import asyncio

import pytest

from support.local_server import LocalServer
from support.processes import babyagi, environ, finish, look, start, write_documents

pytestmark = pytest.mark.system

LATENCY_S = 0.3
LONGER_S = 4.0  # while a command starts, the run must not end
OBJECTIVE = "What do the documents say about large stores?"


@pytest.fixture
async def server():
    async with LocalServer(latency_s=LATENCY_S) as running:
        yield running


@pytest.fixture
def env(tmp_path, server):
    more = {
        "BABYAGI_FILES": str(write_documents(tmp_path / "docs")),
        "INITIAL_TASK": "Look around",  # which reads the documents one by one
        "OPENAI_API_KEY": "sk-test",
        "BABYAGI_EMBEDDING_MODEL": "hash",
    }
    return environ(tmp_path / "home", server.base_url, BABYAGI_CONCURRENCY="2", **more)


async def start_and_wait(server, env, *, n_requests):
    process = await start("run", OBJECTIVE, env=env)
    while len(server.requests) < n_requests:
        await asyncio.sleep(0.005)
        assert process.returncode is None
    server.latency_s = LONGER_S
    return process


async def test_a_cancelled_run_makes_no_further_call_but_its_report_and_ends_with_130(server, env):
    process = await start_and_wait(server, env, n_requests=6)

    cancelled = await babyagi("cancel", env=env)
    n_at_cancel = len(server.requests)
    server.latency_s = LATENCY_S
    ended = await finish(process)

    assert cancelled.code == 0
    assert ended.code == 130, ended
    assert "cancelled" in ended.err
    assert len(server.requests) <= n_at_cancel + 1
    assert "# Report" in (await look("report", env=env))["markdown"]
    status = await look("status", env=env)
    assert (status["tasks"]["queued"], status["tasks"]["running"]) == (0, 0)


async def test_a_paused_run_makes_no_further_call_and_a_changed_list_is_what_it_goes_on_with(
    server, env
):
    process = await start_and_wait(server, env, n_requests=8)

    paused = await babyagi("pause", env=env)
    n_at_pause = len(server.requests)
    server.latency_s = LATENCY_S
    ended = await finish(process)
    assert (paused.code, ended.code) == (0, 0)
    assert ended.out == "" and "Objective 1: paused" in ended.err
    assert len(server.requests) == n_at_pause

    added = await babyagi("tasks", "add", "Ask what a person wants", "--first", "--json", env=env)
    queued = [task for task in await look("tasks", env=env) if task["status"] == "queued"]
    assert added.code == 0
    assert queued[0]["name"] == "Ask what a person wants"
    for task in queued[1:]:
        assert (await babyagi("tasks", "skip", str(task["id"]), env=env)).code == 0
    resumed = await babyagi("resume", env=env)

    assert resumed.code == 0, resumed.said
    done = {task["id"]: task["status"] for task in await look("tasks", env=env)}
    assert done[queued[0]["id"]] == "done"
    assert {done[task["id"]] for task in queued[1:]} <= {"cancelled"}
