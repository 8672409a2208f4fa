"""The connections to one server, counted by a real server."""

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest

from babyagi.llm.connections import Connections

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class Counting:
    """A server that answers each request when `may_answer` is set, and counts connections."""

    def __init__(self) -> None:
        self.n_opened = self.n_open = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.changed = asyncio.Condition()

    async def handle(self, reader, writer):
        await self._count(1)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await self.may_answer.wait()
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()
        await self._count(-1)

    async def _count(self, by):
        async with self.changed:
            self.n_opened += by > 0
            self.n_open += by
            self.changed.notify_all()

    async def until_open(self, n):
        async with asyncio.timeout(120), self.changed:
            await self.changed.wait_for(lambda: self.n_open == n)


@asynccontextmanager
async def counting(*, keep_alive_s=60.0):
    """The server, its URL, and a client over `Connections`."""
    counted = Counting()
    server = await asyncio.start_server(counted.handle, "127.0.0.1", 0)
    transport = Connections(
        lambda: httpx2.AsyncHTTPTransport(limits=httpx2.Limits(keepalive_expiry=keep_alive_s)),
        keep_alive_s=keep_alive_s,
    )
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with httpx2.AsyncClient(transport=transport) as client:
        yield counted, url, client
    await counted.until_open(0)
    server.close()


async def test_requests_one_after_the_other_use_one_connection():
    async with counting() as (server, url, client):
        texts = [(await client.get(url)).text for _ in range(3)]

    assert texts == ["hello"] * 3 and server.n_opened == 1


async def test_requests_at_once_use_a_connection_each_and_leave_them_to_the_next():
    async with counting() as (server, url, client):
        for _ in range(2):
            server.may_answer.clear()
            async with asyncio.TaskGroup() as group:
                for _ in range(8):
                    group.create_task(client.get(url))
                await server.until_open(8)
                server.may_answer.set()

    assert server.n_opened == 8


async def test_connections_that_were_free_for_too_long_are_closed_at_the_next_request():
    async with counting(keep_alive_s=0.0) as (server, url, client):
        server.may_answer.clear()
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(client.get(url))
            await server.until_open(3)
            server.may_answer.set()

        server.may_answer.clear()
        last = asyncio.ensure_future(client.get(url))
        await server.until_open(1)
        server.may_answer.set()
        await last

    assert server.n_opened == 4


async def test_a_request_that_is_given_up_closes_its_connection_and_spoils_no_other():
    async with counting() as (server, url, client):
        server.may_answer.clear()
        given_up = asyncio.ensure_future(client.get(url))
        await server.until_open(1)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        server.may_answer.set()

        assert (await client.get(url)).text == "hello"
    assert server.n_opened == 2


async def test_a_refused_connection_is_tried_again_by_the_next_request():
    async with counting() as (_, url, client):
        with pytest.raises(httpx2.ConnectError):
            await client.get("http://127.0.0.1:1/")

        assert (await client.get(url)).text == "hello"
