import asyncio
import os
import resource
import socket
import stat
from contextlib import contextmanager

import pytest

from babyagi.errors import SettingsError
from babyagi.serve.door import (
    CODE_S,
    MAX_CODES,
    MAX_WRONG_ADDRESSES,
    MAX_WRONG_TOKENS,
    SESSION_S,
    WRONG_S,
    Keys,
    Names,
    is_local,
    load_token,
)
from babyagi.serve.server import max_connections
from babyagi.tasks import Level
from support.door_attacks import MARK, attacks

TOKEN = "a token that nobody can guess"


class Clock:
    def __init__(self):
        self.now_s = 1_000_000.0

    def __call__(self):
        return self.now_s


@contextmanager
def few_descriptors(n):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (n, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def make_keys(clock=None, token=TOKEN):
    words = (f"word{n}" for n in range(10_000))
    return Keys(token, now_s=clock or Clock(), new_word=lambda: next(words))


def test_the_token_is_made_once_for_its_owner_alone(tmp_path):
    old = os.umask(0)
    try:
        made = load_token(tmp_path, new_token=lambda: "one")
    finally:
        os.umask(old)

    assert (made, load_token(tmp_path, new_token=lambda: "two")) == ("one", "one")
    assert stat.S_IMODE((tmp_path / "serve_token").stat().st_mode) == 0o600


def test_an_empty_token_opens_nothing(tmp_path):
    (tmp_path / "serve_token").write_text("\n")

    with pytest.raises(SettingsError):
        load_token(tmp_path, new_token=lambda: "two")


@pytest.mark.parametrize("level", Level)
def test_each_level_has_a_token_of_its_own_and_no_other_text_is_one(level):
    keys = make_keys()

    assert keys.level_of_token(keys.token(level)) is level
    assert keys.level_of_token(keys.token(level) + "x") is None
    assert make_keys(token="another one").level_of_token(keys.token(level)) is None


def test_a_code_opens_once_and_soon():
    clock = Clock()
    keys = make_keys(clock)
    code, late = keys.new_code(Level.STEER), keys.new_code(Level.STEER)

    assert keys.take_code(code) is Level.STEER
    assert keys.take_code(code) is None
    clock.now_s += CODE_S + 1
    assert keys.take_code(late) is None


def test_the_number_of_waiting_codes_is_bounded():
    keys = make_keys()
    codes = [keys.new_code(Level.READ) for _ in range(MAX_CODES + 1)]

    assert keys.take_code(codes[0]) is None
    assert keys.take_code(codes[-1]) is Level.READ


def test_a_session_ends_and_outlives_a_restart():
    clock = Clock()
    session = make_keys(clock).new_session(Level.READ)

    assert make_keys(clock).level_of_session(session) is Level.READ
    assert make_keys(clock, token="another one").level_of_session(session) is None
    clock.now_s += SESSION_S + 1
    assert make_keys(clock).level_of_session(session) is None


def test_another_machine_is_answered_under_an_address_or_a_name_that_was_given():
    wide = Names(port=80, host="0.0.0.0", more=("board.example", "other.example:8443"))

    assert wide.has("10.0.0.7")
    assert wide.has("board.example")
    assert wide.has("board.example:443")
    assert wide.has("other.example:8443")
    assert not wide.has("other.example")
    assert not wide.has("evil.example")
    assert not Names(port=80, host="127.0.0.1").has("10.0.0.7")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.7", False),
        ("board.example", False),
    ],
)
def test_only_loopback_is_local(host, expected):
    assert is_local(host) is expected


async def test_no_attack_on_the_door_gets_an_answer_that_should_not_be(served):
    found = list(attacks(served))
    wrong = []
    for attack in found:
        reply = await served.send(attack.raw)
        if reply.status not in attack.right or MARK in reply.text:
            wrong.append((attack.name, reply.status, reply.text[:200]))

    assert wrong == []
    assert len(found) >= 150
    assert len({attack.name for attack in found}) == len(found)
    assert await served.desk.store.objectives() == []


async def test_many_wrong_tokens_are_told_to_wait_and_lock_no_right_one_out(served):
    wrong = served.request("GET", "/api/v1/workers", level=None, authorization="Bearer guess")
    replies = [await served.send(wrong) for _ in range(MAX_WRONG_TOKENS + 2)]

    assert [reply.status for reply in replies] == [401] * MAX_WRONG_TOKENS + [429] * 2
    assert 0 < int(replies[-1].headers["retry-after"]) <= WRONG_S
    assert (await served.ask("GET", "/api/v1/workers", level=Level.READ)).status == 200
    assert (await served.ask("GET", "/api/v1/workers", level=None)).status == 401
    assert (await served.send(wrong)).status == 429


async def test_wrong_sessions_and_codes_count_as_wrong_tokens_do(served):
    forged = served.request("GET", "/", level=None, cookie=served.cookie("admin.9999999999.x.y"))
    guessed = served.request("GET", "/open?code=guess", level=None)
    replies = [await served.send(raw) for raw in (forged, guessed) * (MAX_WRONG_TOKENS // 2 + 1)]

    assert [reply.status for reply in replies] == [401, 403] * (MAX_WRONG_TOKENS // 2) + [429] * 2
    mine = served.request("GET", "/", level=None, cookie=served.cookie(served.session()))
    code = served.desk.keys.new_code(Level.READ)
    opened = served.request("GET", f"/open?code={code}", level=None)
    assert [(await served.send(raw)).status for raw in (mine, opened)] == [200, 200]
    assert (await served.ask("GET", "/", level=None)).status == 401


def test_wrong_tokens_are_forgotten_in_time_and_counted_of_each_address_alone():
    clock = Clock()
    keys = make_keys(clock)
    are_many = [keys.are_too_many_wrong("here") for _ in range(MAX_WRONG_TOKENS + 1)]
    clock.now_s += 10

    assert are_many == [False] * MAX_WRONG_TOKENS + [True]
    assert keys.are_too_many_wrong("here") and not keys.are_too_many_wrong("there")
    clock.now_s += WRONG_S
    assert not keys.are_too_many_wrong("here")
    for n in range(2 * MAX_WRONG_ADDRESSES):
        assert not keys.are_too_many_wrong(f"address {n}")
    assert len(keys._wrong_by_address) == MAX_WRONG_ADDRESSES
    for _ in range(MAX_WRONG_TOKENS):
        keys.are_too_many_wrong("here")
    clock.now_s -= 3600
    assert not keys.are_too_many_wrong("here"), "the clock was set back"


async def test_half_open_connections_keep_nobody_out(served, monkeypatch):
    monkeypatch.setattr("babyagi.serve.server.MAX_CONNECTIONS", 40)
    opened = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(100)]
    try:
        for _, writer in opened:
            writer.write(b"GET / HTTP/1.1\r\nhost: ")
        reply = await served.ask("GET", "/api/v1/workers")
        assert reply.status == 200
    finally:
        for _, writer in opened:
            writer.close()


def test_half_of_what_may_be_open_stays_for_the_work():
    with few_descriptors(256):
        assert max_connections() == 128


async def test_who_has_waited_for_longest_makes_room_for_who_comes(served, monkeypatch):
    monkeypatch.setattr("babyagi.serve.server.MAX_CONNECTIONS", 2)
    opened = []
    for _ in range(3):
        opened.append(await asyncio.open_connection("127.0.0.1", served.port))
        opened[-1][1].write(b"GET /healthz HTTP/1.1\r\n")
        await asyncio.sleep(0.01)
    (first, _), *others = opened
    try:
        async with asyncio.timeout(120):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await first.readexactly(1)
            for reader, writer in others:
                writer.write(b"host: x\r\nconnection: close\r\n\r\n")
                assert b"200 OK" in await reader.read()
    finally:
        for _, writer in opened:
            writer.close()


async def test_a_head_that_does_not_come_is_not_waited_for(served, monkeypatch):
    monkeypatch.setattr("babyagi.serve.server.HEAD_TIMEOUT_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nx: ")
        async with asyncio.timeout(120):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
    finally:
        writer.close()


async def test_a_body_that_does_not_come_is_not_waited_for(served, monkeypatch):
    monkeypatch.setattr("babyagi.serve.wire.BODY_TIMEOUT_S", 0.05)
    raw = served.request(
        "POST", "/api/v1/objectives", content_length="10", content_type="application/json"
    )

    reply = await served.send(raw + b"{")

    assert reply.status == 408


async def test_a_body_that_is_cut_off_is_no_fault_of_the_server(served, caplog):
    _, writer = await asyncio.open_connection("127.0.0.1", served.port)
    head = {"content_length": "10", "content_type": "application/json"}
    writer.write(served.request("POST", "/api/v1/objectives", **head) + b"{")
    await writer.drain()
    writer.close()

    assert (await served.ask("GET", "/api/v1/workers")).status == 200
    assert "nobody expected" not in caplog.text


@pytest.mark.thorough
async def test_who_does_not_read_is_closed(served, monkeypatch):
    monkeypatch.setattr("babyagi.serve.server.WRITE_TIMEOUT_S", 0.05)
    monkeypatch.setattr("babyagi.serve.feed.HEARTBEAT_S", 0.0)
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)  # the kernel makes it the smallest
    narrow.setblocking(False)
    await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", served.port))
    _, writer = await asyncio.open_connection(sock=narrow, limit=1)
    try:
        writer.write(served.request("GET", "/api/v1/events"))
        async with asyncio.timeout(300):
            while not served.desk.feed.n_listeners:
                await asyncio.sleep(0.01)
            while served.desk.feed.n_listeners:
                await asyncio.sleep(0.01)
    finally:
        writer.close()
