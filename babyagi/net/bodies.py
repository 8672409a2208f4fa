"""Limits the body of a response while it is received."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2


def bound_body(response: httpx2.Response, check: Callable[[int], None]) -> None:
    """Make the response call `check` with each chunk of its body that arrives. For use in an event
    hook of an `AsyncClient`, before the body is read.

    Args:
        check: takes how many bytes have arrived so far, and raises an error if these are too many.
    """
    import httpx2

    given = response.stream

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            n_bytes = 0
            async for chunk in given:  # type: ignore[union-attr]  # the client is async, so its streams are
                n_bytes += len(chunk)
                check(n_bytes)
                yield chunk

        async def aclose(self) -> None:
            await given.aclose()  # type: ignore[union-attr]  # as above

    response.stream = Bounded()
