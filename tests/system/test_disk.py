"""A disk that is full, a database that is busy, a byte that flipped, a schema that is newer: real
processes on real files."""

import asyncio
import fcntl
import os
import re
import signal
import sqlite3
import subprocess
from contextlib import closing, contextmanager

import pytest

from support.local_server import LocalServer
from support.processes import babyagi, environ, fill_disk, finish, rows, start, write_documents

pytestmark = pytest.mark.system

OBJECTIVE = "What do the documents say about large stores?"
DISK_BYTES = 8_000_000


@pytest.fixture
def documents(tmp_path):
    return write_documents(tmp_path / "docs", n_lines=300)


@pytest.fixture
async def server():
    async with LocalServer(latency_s=0.1) as running:
        yield running


def make_environ(home, server, documents, **more):
    fixed = {
        "BABYAGI_FILES": str(documents),
        "INITIAL_TASK": "Look around",  # which reads the documents one by one
        "BABYAGI_EMBEDDING_MODEL": "hash",
        "OPENAI_API_KEY": "sk-test",
    }
    return environ(home, server.base_url, **fixed | more)


async def start_and_wait(env, server, *, n_requests):
    process = await start("run", OBJECTIVE, env=env)
    while len(server.requests) < n_requests:
        assert process.returncode is None
        await asyncio.sleep(0.01)
    return process


def check_whole(home, server):
    """Every task is done once, no request was sent twice, and the file is sound."""
    assert rows(home, "PRAGMA quick_check") == [{"quick_check": "ok"}]
    tasks = rows(home, "SELECT status, failures, try_no FROM task")
    assert {(task["status"], task["failures"], task["try_no"]) for task in tasks} == {
        ("done", 0, 1)
    }
    assert rows(home, "SELECT count(*) AS n FROM result") == [{"n": len(tasks)}]
    digests = [record.digest for record in server.requests]
    assert len(set(digests)) == len(digests), "a call that was answered was made again"


@contextmanager
def small_disk(folder):
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def test_on_a_full_disk_a_run_waits_and_goes_on_by_itself_and_no_answer_is_lost(
    tmp_path, server, documents
):
    with small_disk(tmp_path / "disk") as disk:
        home = disk / "home"
        env = make_environ(home, server, documents)
        process = await start_and_wait(env, server, n_requests=8)
        fill_disk(disk / "filler")

        await asyncio.sleep(2.5)
        n_while_full, is_waiting = len(server.requests), process.returncode is None
        (disk / "filler").unlink()
        while len(server.requests) == n_while_full and process.returncode is None:
            await asyncio.sleep(0.02)
        ended = await finish(process)

        assert is_waiting
        assert n_while_full <= 8 + 4
        assert ended.code == 0, ended.said
        assert ended.err.count("cannot be written now (database or disk is full)") == 1
        check_whole(home, server)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
async def test_a_full_disk_ends_another_command_with_one_message(tmp_path, server, documents):
    with small_disk(tmp_path / "disk") as disk:
        env = make_environ(disk / "home", server, documents)
        assert (await babyagi("show", "objectives", env=env)).code == 0
        fill_disk(disk / "filler")

        ended = await babyagi("run", OBJECTIVE, env=env)

        assert ended.code == 7
        assert "full" in ended.err
        assert len(ended.four_lines) <= 4


async def test_while_another_process_holds_the_lock_a_run_waits(tmp_path, server, documents):
    home = tmp_path / "home"
    process = await start_and_wait(make_environ(home, server, documents), server, n_requests=6)

    with (home / "tasks.db.lock").open() as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(0.001)
        n_held = rows(home, "SELECT count(*) AS n FROM event")
        await asyncio.sleep(3)
        assert rows(home, "SELECT count(*) AS n FROM event") == n_held
        assert process.returncode is None
    ended = await finish(process)

    assert ended.code == 0, ended.said
    check_whole(home, server)


async def test_a_flipped_bit_in_a_result_is_found_and_never_used(tmp_path, server, documents):
    home = tmp_path / "home"
    env = make_environ(home, server, documents, BABYAGI_CONCURRENCY="1")
    process = await start_and_wait(env, server, n_requests=12)
    process.send_signal(signal.SIGTERM)
    assert (await finish(process)).code == 143
    with closing(sqlite3.connect(home / "tasks.db")) as db:
        (text,) = db.execute(
            "SELECT text FROM result ORDER BY length(text) DESC LIMIT 1"
        ).fetchone()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    word = max(re.findall(r"[a-z]{6,}", text), key=len)
    flipped = flip_bit(home / "tasks.db", text.encode(), word.encode())

    looked = await babyagi("show", "results", env=env)
    n_before = len(server.requests)
    resumed = await babyagi("resume", env=env)

    for ended in (looked, resumed):
        assert ended.code == 7, ended.said
        assert "damaged" in ended.err
        assert 1 <= len(ended.four_lines) <= 4
    assert not any(flipped in str(record.body) for record in server.requests[n_before:])


def flip_bit(path, text, word):
    """Flip the lowest bit of the middle of the word, inside the text as it lies in the file; return
    the word as it reads then."""
    content = bytearray(path.read_bytes())
    at = content.index(text) + text.index(word) + len(word) // 2
    content[at] ^= 1
    path.write_bytes(bytes(content))
    start = at - len(word) // 2
    return bytes(content[start : start + len(word)]).decode()


async def test_a_store_that_a_newer_version_wrote_is_refused(tmp_path, server, documents):
    home = tmp_path / "home"
    env = make_environ(home, server, documents)
    assert (await babyagi("submit", OBJECTIVE, env=env)).code == 0
    with closing(sqlite3.connect(home / "tasks.db")) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
        db.commit()

    for line in (
        ("run", OBJECTIVE),
        (
            "show",
            "objectives",
        ),
    ):
        ended = await babyagi(*line, env=env)
        assert ended.code == 7
        assert "newer" in ended.err
        assert len(ended.four_lines) <= 4
    assert server.requests == []
