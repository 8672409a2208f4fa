"""Workers that are killed, homes that are removed, rows that are damaged: real processes on real
files."""

import asyncio
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from support.local_server import LocalServer
from support.processes import babyagi, environ, finish, rows, start, write_documents

pytestmark = pytest.mark.system

OBJECTIVE = "What do the documents say about large stores?"
CONCURRENCY = 3


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "docs", n_lines=100)


@pytest.fixture
async def server():
    async with LocalServer(latency_s=0.1) as running:
        yield running


def make_environ(home, server, documents, **more):
    fixed = {
        "BABYAGI_FILES": str(documents),
        "INITIAL_TASK": "Look around",  # which reads the documents one by one
        "BABYAGI_EMBEDDING_MODEL": "hash",
        "BABYAGI_CONCURRENCY": str(CONCURRENCY),
    }
    return environ(home, server.base_url, **fixed | {"OPENAI_API_KEY": "sk-test"} | more)


async def until(is_so, *processes):
    while not is_so():
        assert [process.returncode for process in processes] == [None] * len(processes)
        await asyncio.sleep(0.01)


async def kill(process):
    process.kill()
    assert (await finish(process)).code == -signal.SIGKILL


async def test_a_run_that_is_killed_again_and_again_in_its_first_slow_call_gives_nothing_up_and_is_finished_in_the_end(
    tmp_path, server, documents
):
    home = tmp_path / "home"
    env = make_environ(home, server, documents)
    server.latency_s = 30.0
    for _ in range(3):
        n_before = len(server.requests)
        process = await start("run", OBJECTIVE, env=env)
        await until(lambda n=n_before: len(server.requests) > n, process)
        await kill(process)
    server.latency_s = 0.01
    ended = await babyagi("run", OBJECTIVE, env=env)
    assert ended.code == 0, ended.said
    tasks = rows(home, "SELECT status, failures FROM task")
    assert {(task["status"], task["failures"]) for task in tasks} == {("done", 0)}
    assert len(tasks) > 5


async def test_of_two_workers_of_one_home_the_other_takes_over_at_once_what_a_killed_one_held_however_long_its_lease(
    tmp_path, server, documents
):
    home = tmp_path / "home"
    env = make_environ(home, server, documents, BABYAGI_LEASE_S="3600")
    server.latency_s = 600.0
    assert (await babyagi("submit", OBJECTIVE, env=env)).code == 0
    first = await start("worker", env=env)
    await until(lambda: server.requests, first)
    second = await start("worker", env=env)
    await until(lambda: len(rows(home, "SELECT id FROM worker")) == 2, first, second)
    server.latency_s = 0.01

    await kill(first)

    await until(lambda: rows(home, "SELECT id FROM objective WHERE report IS NOT NULL"), second)
    second.send_signal(signal.SIGTERM)
    assert (await finish(second)).code == 128 + signal.SIGTERM
    assert [
        row["failures"]
        for row in rows(home, "SELECT failures FROM task WHERE failures > 0 OR status <> 'done'")
    ] == []


def _remove_home(home):
    shutil.rmtree(home)


def _replace_store(home):
    shutil.copy(home / "tasks.db", home / "backup.db")
    (home / "backup.db").replace(home / "tasks.db")


@pytest.mark.parametrize(
    ("happens", "word"), [(_remove_home, "gone"), (_replace_store, "another file")]
)
async def test_a_run_whose_store_is_removed_or_replaced_pays_for_no_further_call_and_ends_with_exit_code_7(
    tmp_path, server, documents, happens, word
):
    home = tmp_path / "home"
    process = await start("run", OBJECTIVE, env=make_environ(home, server, documents))
    await until(lambda: len(server.requests) >= 8, process)

    happens(home)
    n_before = len(server.requests)
    ended = await finish(process)

    assert (ended.code, "Traceback" in ended.said) == (7, False), ended
    assert word in ended.err and str(home / "tasks.db") in ended.err
    assert len(server.requests) <= n_before + CONCURRENCY, (
        "what was intended before it happened may still have been sent"
    )


DAMAGES = {
    "UPDATE task SET origins = '[\"mod' WHERE id = 2": "task 2 of objective 1",
    "UPDATE task SET after_ids = '}' WHERE id = 3": "task 3 of objective 1",
    "UPDATE objective SET spec = replace(spec, '{', '[')": "objective 1",
}


@pytest.mark.parametrize("statement", DAMAGES)
async def test_a_run_on_a_damaged_row_names_it_and_ends_with_exit_code_7(
    tmp_path, server, documents, statement
):
    home = tmp_path / "home"
    env = make_environ(home, server, documents)
    process = await start("run", OBJECTIVE, env=env)
    await until(lambda: len(rows(home, "SELECT id FROM task")) >= 5, process)
    await kill(process)
    with closing(sqlite3.connect(home / "tasks.db")) as connection, connection:
        assert connection.execute(statement).rowcount == 1

    for line in (("run", OBJECTIVE), ("store", "verify")):
        ended = await babyagi(*line, env=env)
        assert (ended.code, DAMAGES[statement] in ended.said) == (7, True), (line, ended)
