"""Servers on sockets of this machine, and the tasks that serve their connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]

HERE = "127.0.0.1"
N_TURNS_OF_ACCEPTING = 4  # of the event loop, from a socket's accept to the task that serves it


class Connections:
    """Opens servers, and runs a task for each of their connections. All end with `close`.

    It is no task group: a block in a fixture may be left by another task than the one that entered
    it.
    """

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def listen(self, serve: Serve, host: str, port: int, **options: Any) -> int:
        """Serve every connection to this address with `serve`, and return the port. The `options`
        are those of `asyncio.start_server`."""

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._is_closed:  # it was accepted before, and arrives only now
                writer.close()
                return
            task = asyncio.get_running_loop().create_task(serve(reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            # a task that is cancelled before its first step closes nothing itself
            task.add_done_callback(lambda _: writer.close())

        server = await asyncio.start_server(accept, host, port, **options)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._is_closed = True
        for server in self._servers:
            for listener in server.sockets:
                asyncio.get_running_loop().remove_reader(listener.fileno())
        # asyncio loses what it has accepted and not yet handed on when its server closes
        for _ in range(N_TURNS_OF_ACCEPTING):
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """Yield the port of this machine at which `serve` answers every connection."""
    connections = Connections()
    port = await connections.listen(serve, HERE, 0)
    try:
        yield port
    finally:
        await connections.close()
