"""The connections to one server: as many as there are calls at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import httpx2


class Connections(httpx2.AsyncBaseTransport):
    """Sends each request over a transport with one connection: the one that became free last, or a
    new one.

    One transport for all requests would look at every connection when a request begins and when it
    ends. With 64 calls at once that is an eighth of what the program itself spends on a call.

    Args:
        open_one: opens a transport that does not reuse a connection after `keep_alive_s` either.
        keep_alive_s: when a request begins, transports that have been free for longer are closed.
    """

    def __init__(
        self, open_one: Callable[[], httpx2.AsyncBaseTransport], *, keep_alive_s: float
    ) -> None:
        self._open_one = open_one
        self._keep_alive_s = keep_alive_s
        self._opened: set[httpx2.AsyncBaseTransport] = set()
        self._free: deque[tuple[float, httpx2.AsyncBaseTransport]] = deque()  # and since when

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await self._close_unused()
        transport = self._free.pop()[1] if self._free else self._open_one()
        self._opened.add(transport)

        def give_back() -> None:
            self._free.append((_now_s(), transport))

        try:
            response = await transport.handle_async_request(request)
        except BaseException:
            give_back()
            raise
        # the transport is async, so its streams are
        response.stream = _Body(response.stream, give_back)  # type: ignore[arg-type]
        return response

    async def _close_unused(self) -> None:
        while self._free and _now_s() - self._free[0][0] > self._keep_alive_s:
            transport = self._free.popleft()[1]
            self._opened.discard(transport)
            await transport.aclose()

    async def aclose(self) -> None:
        self._free.clear()
        while self._opened:
            await self._opened.pop().aclose()


class _Body(httpx2.AsyncByteStream):
    """The body of an answer. When it is closed, the transport that it came over is given back."""

    def __init__(self, body: httpx2.AsyncByteStream, give_back: Callable[[], None]) -> None:
        self._body = body
        self._give_back = give_back

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._body)

    async def aclose(self) -> None:
        try:
            await self._body.aclose()
        finally:
            self._give_back()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
