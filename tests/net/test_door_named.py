"""The door to the network, against a real server on this machine that answers badly."""

import logging
import socket

import pytest

from babyagi.errors import SettingsError, ToolError
from babyagi.net.door import MAX_BODY_BYTES, Request, ask_json, require_https
from tests.search_server import ENDLESS, HANG, SearchServer

KEY = "k3y+with/signs="
BAD = {
    "a refusal": ((401, {"error": f"Invalid API key {KEY}"}), "answered 401: Invalid API key ***"),
    "a refusal that shows the address": (
        (403, {"error": "no: /x?api_key=k3y%2Bwith%2Fsigns%3D"}),
        "answered 403: no: /x?api_key=***",
    ),
    "a refusal of many lines": (
        (500, {"error": "a\n\x1b[31mb\n" + "c" * 5000}),
        "answered 500: a [31mb ccc",
    ),
    "a refusal of another shape": ((500, {"error": {"code": 7}}), 'answered 500: {"code": 7}'),
    "a refusal without words": ((502, []), "answered 502"),
    "a redirect": (
        b"HTTP/1.1 302 x\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
        "answered 302: nothing more",
    ),
    "no JSON": (
        b"HTTP/1.1 200 x\r\ncontent-length: 6\r\n\r\n<html>",
        "something that is not a JSON object",
    ),
    "a list": ([1], "something that is not a JSON object"),
    "deep JSON": (
        b"HTTP/1.1 200 x\r\n\r\n" + b"[" * 200_000,
        "something that is not a JSON object",
    ),
    "half an answer": (b"HTTP/1.1 200 x\r\ncontent-length: 60\r\n\r\n{", "broke off"),
    "no HTTP": (b"\x00\x01\x02\r\n\r\n", "broke off"),
    "nothing": (b"", "broke off"),
    "a compressed answer": (
        b"HTTP/1.1 200 x\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
        "cannot be decompressed",
    ),
    "an endless answer": (ENDLESS, f"answered with more than {MAX_BODY_BYTES // 2**20} MiB"),
    "an announced giant": (
        b"HTTP/1.1 200 x\r\n\r\n" + b" " * (MAX_BODY_BYTES + 1),
        "answered with more than",
    ),
}


async def fetch(server, **options):
    params = {"q": "x", "api_key": KEY}
    request = Request(url=f"{server.base_url}/search.json", params=params, secret=KEY)
    return await ask_json(request, **options)


async def test_a_json_object_comes_back_and_the_secret_stays_out_of_every_log(caplog):
    caplog.set_level(logging.DEBUG)

    async with SearchServer(lambda query: {"a": 1}) as server:
        assert await fetch(server) == {"a": 1}

    assert server.requests == [{"path": "/search.json", "q": "x", "api_key": KEY}]
    assert "k3y" not in caplog.text


@pytest.mark.parametrize("name", BAD)
async def test_whatever_a_server_answers_is_one_line_without_the_secret(name, caplog):
    caplog.set_level(logging.DEBUG)
    answer, expected = BAD[name]

    async with SearchServer(lambda query: answer) as server:
        with pytest.raises(ToolError) as raised:
            await fetch(server)

    assert expected in raised.value.what
    assert "k3y" not in repr(raised.value) + caplog.text
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    assert "\n" not in raised.value.what and len(raised.value.what) < 300
    assert len(server.requests) == 1


async def test_a_server_that_says_nothing_is_given_up():
    async with SearchServer(lambda query: HANG) as server:
        with pytest.raises(ToolError, match=r"gave no answer in 0\.05 s"):
            await fetch(server, timeout_s=0.05)


async def test_a_server_that_is_not_there_cannot_be_reached():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/search.json"
    with pytest.raises(ToolError, match="cannot be reached"):
        await ask_json(Request(url=url))


@pytest.mark.parametrize(
    "url",
    ["https://serpapi.com/", "http://127.0.0.1:8080", "http://localhost", "http://[::1]:90/x"],
)
def test_an_address_that_keeps_a_secret_is_taken(url):
    assert require_https(url) == url.rstrip("/")


BAD_URLS = [
    *(
        "",
        "serpapi.com",
        "http://serpapi.com",
        "ftp://a",
        "https://",
        "https://a:b@c",
        "https://a?b",
        "https://a#b",
        "https://a\nb",
    ),
    *(
        "https://a:0",
        "https://a:x",
        "https://[",
        "file:///etc/passwd",
        "http://127.0.0.1.example",
        "http://10.0.0.1",
        "https://a\\b",
    ),
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_an_address_that_does_not_is_refused(url):
    with pytest.raises(SettingsError):
        require_https(url)
