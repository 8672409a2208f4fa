"""A server of the tests that closes leaves no client waiting."""

import asyncio
import socket

import pytest

from support.connections import Connections


async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        writer.close()


@pytest.mark.parametrize("n_turns", range(6))
async def test_a_client_that_comes_while_the_server_closes_is_not_left_waiting(n_turns):
    connections = Connections()
    port = await connections.listen(never, "127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setblocking(False)
        for _ in range(n_turns):
            await asyncio.sleep(0)

        await connections.close()

        loop = asyncio.get_running_loop()
        try:
            answer = await asyncio.wait_for(loop.sock_recv(client, 1), 120)
        except ConnectionResetError:
            answer = b""
        assert answer == b""
