import asyncio
import json
import logging
import os
import re
import signal
import socket

import pytest

from babyagi.errors import SettingsError, StoreUnavailableError
from babyagi.serve import server
from babyagi.serve.door import renew_token
from babyagi.serve.server import listen_at, url_of
from babyagi.tasks import Level
from support.processes import babyagi, environ, finish, start
from support.served import serving

REHEARSED = {"LLM_MODEL": "rehearsal", "BABYAGI_EMBEDDING_MODEL": "hash"}


async def test_liveness_outlives_an_outage_of_the_store_and_readiness_does_not(served, monkeypatch):
    async def away(**_):
        raise StoreUnavailableError("away")

    ready = await served.ask("GET", "/readyz", level=None, host="10.1.2.3")
    monkeypatch.setattr(served.desk.store, "objectives", away)
    alive, unready = [
        await served.ask("GET", path, level=None, host="10.1.2.3")
        for path in ("/healthz", "/readyz")
    ]

    assert (ready.status, alive.status, unready.status) == (200, 200, 503)


async def test_a_store_that_is_away_is_said_with_when_to_come_back(served, monkeypatch):
    async def away(**_):
        raise StoreUnavailableError("the task store is busy")

    monkeypatch.setattr(served.desk.store, "objectives", away)
    reply = await served.ask("GET", "/api/v1/objectives")

    assert reply.status == 503
    assert reply.headers["retry-after"]
    assert reply.json()["title"] == "the task store is busy"


async def test_only_the_log_shows_an_unexpected_error(served, monkeypatch, caplog):
    async def broken(**_):
        raise KeyError("SECRET")

    monkeypatch.setattr(served.desk.store, "objectives", broken)
    reply = await served.ask("GET", "/api/v1/objectives")

    assert reply.status == 500
    assert "SECRET" not in reply.text
    assert "KeyError: 'SECRET'" in caplog.text


async def test_the_address_is_left_for_open_and_taken_away(tmp_path):
    home = tmp_path / "home"
    async with serving(home) as served:
        assert (home / "serve_address").read_text() == served.url
    assert not (home / "serve_address").exists()


def test_another_address_needs_a_token(tmp_path):
    async def start_wide(**variables):
        async with serving(tmp_path / "home", BABYAGI_SERVE_HOST="0.0.0.0", **variables) as served:
            return served.token()

    with pytest.raises(BaseException) as caught:
        asyncio.run(start_wide())
    error = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, SettingsError)
    assert "BABYAGI_SERVE_TOKEN" in error.fix
    token = "x" * 24
    assert asyncio.run(start_wide(BABYAGI_SERVE_TOKEN=token)) == token


def test_a_port_that_is_taken_is_said():
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(SettingsError) as caught,
    ):
        listen_at("127.0.0.1", taken.getsockname()[1])
    assert "--port 0" in caught.value.fix


def test_an_address_of_the_new_kind_is_written_as_a_browser_takes_it():
    with listen_at("::1", 0) as listening:
        assert re.fullmatch(r"http://\[::1\]:\d+", url_of(listening))


BROKEN_OFF = {
    "no size": b"zz\r\n{}\r\n0\r\n\r\n",
    "a huge size": b"f" * 30 + b"\r\n{}\r\n",
    "after one": b"2\r\n{}\r\nzz\r\n",
}


@pytest.mark.parametrize("name", BROKEN_OFF)
@pytest.mark.parametrize("level", [None, Level.ADMIN])
async def test_chunks_that_cannot_be_read_are_one_record_without_a_traceback(
    name, level, served, caplog
):
    head = {"transfer_encoding": "chunked", "content_type": "application/json"}
    raw = served.request("POST", "/api/v1/objectives", level=level, **head)

    with caplog.at_level(logging.INFO):
        reply = await served.send(raw + BROKEN_OFF[name])
        again = await served.ask("GET", "/api/v1/workers")

    assert (reply.status in (400, 401), again.status) == (True, 200)
    assert [one for one in caplog.records if one.exc_info] == []
    assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) <= 1


async def test_a_renewed_token_ends_keys_sessions_codes_and_listeners(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "TOKEN_LOOK_S", 0.01)
    home = tmp_path / "home"
    async with serving(home) as served:
        session, code = served.session(), served.desk.keys.new_code(Level.ADMIN)
        asked = served.request("GET", "/api/v1/workers", connection="close")
        cookie = served.request("GET", "/api/v1/workers", level=None, cookie=served.cookie(session))
        before = [(await served.send(one)).status for one in (asked, cookie)]
        listening = asyncio.ensure_future(served.ask("GET", "/api/v1/events"))
        async with asyncio.timeout(120):
            while not served.desk.feed.n_listeners:
                await asyncio.sleep(0.01)
            renew_token(home, new_token=lambda: "n" * 43)
            await listening
        replies = [await served.send(one) for one in (asked, cookie)]

        assert (before, [one.status for one in replies]) == ([200, 200], [401, 401])
        assert "the key is not valid" in str(replies[0].body)
        assert "a key is required" in str(replies[1].body)
        assert served.desk.keys.take_code(code) is None
        assert (await served.ask("GET", "/api/v1/workers")).status == 200
        assert (home / "serve_token").stat().st_mode & 0o777 == 0o600


@pytest.mark.system
async def test_a_token_that_was_set_is_renewed_where_it_was_set(tmp_path):
    token = "hunter2-" * 4
    (tmp_path / "home").mkdir()
    env = environ(tmp_path / "home")
    said = await babyagi("serve", "open", "--renew", env=env)
    one, two = [await babyagi("serve", "open", "--token", "read", env=env) for _ in range(2)]
    other = await babyagi("serve", "open", "--token", "read", "--renew", env=env)
    refused = await babyagi("serve", "open", "--renew", env={**env, "BABYAGI_SERVE_TOKEN": token})

    assert (said.code, one.out == two.out, one.out == other.out) == (0, True, False)
    assert refused.code == 2
    assert "set BABYAGI_SERVE_TOKEN to a new token" in refused.err
    assert "hunter" not in refused.err


@pytest.mark.system
async def test_serve_works_answers_and_drains(tmp_path):
    env = environ(tmp_path / "home", **REHEARSED)
    process = await start("serve", "--port", "0", env=env)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(300):
            while b"The board is at" not in await process.stdout.readline():
                pass
        submitted = await babyagi("submit", "Know it", "--json", env=env)
        opened = await babyagi("serve", "open", "--json", env=env)
        token = (await babyagi("serve", "open", "--token", "read", env=env)).out.strip()
        async with asyncio.timeout(300):
            while True:
                status = await babyagi("status", "--json", env=env)
                if json.loads(status.out)["report"]["is_written"]:
                    break
        process.send_signal(signal.SIGTERM)
        ended = await finish(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert json.loads(submitted.out)["is_new"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/open\?code=[\w-]+", json.loads(opened.out)["url"])
    assert token.startswith("read-")
    assert ended.code == 128 + signal.SIGTERM
    records = [line for line in ended.err.splitlines() if " babyagi.events: " in line]
    assert any("objective 1: task 1 done" in line for line in records)
    assert "can take over its tasks" in records[-1]
    assert ended.out == ""  # the address stood there, and was read
    assert "code=" not in (tmp_path / "home" / "babyagi.log").read_text()


@pytest.mark.system
async def test_without_work_nothing_is_worked_on(tmp_path, postgres_url):
    env = environ(tmp_path / "home", BABYAGI_TASK_STORE=postgres_url, **REHEARSED)
    env["COOPERATIVE_MODE"] = "distributed"
    env["CHROMA_URL"] = "http://127.0.0.1:9"
    process = await start("serve", "--port", "0", "--no-work", env=env)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(300):
            while b"The board is at" not in await process.stdout.readline():
                pass
        await babyagi("submit", "Know it", env=env)
        workers = await babyagi("show", "workers", "--json", env=env)
        os.kill(process.pid, signal.SIGINT)
        ended = await finish(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

    assert json.loads(workers.out) == []
    assert ended.code == 128 + signal.SIGINT


@pytest.mark.system
async def test_open_says_when_no_server_runs(tmp_path):
    ended = await babyagi("serve", "open", "--print", env=environ(tmp_path / "home"))

    assert ended.four_lines[0] == "babyagi: no server to open was found"
    assert "babyagi serve" in ended.err
