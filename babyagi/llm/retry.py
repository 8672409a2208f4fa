"""Waiting and asking again within one call: seconds, never minutes, and never for what may already
be billed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TypeVar

from babyagi.errors import ModelUnavailableError

MAX_REQUESTS = 4
MAX_WAIT_S = 5.0
FIRST_DELAY_S = 0.5
MAX_RETRY_AFTER_S = 86_400.0
MAX_HOLD_S = 60.0  # however long an endpoint asks to wait, it is asked again once a minute

T = TypeVar("T")


async def retrying(
    send: Callable[[], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[None]],
    random: Callable[[], float],
    may_retry: Callable[[ModelUnavailableError], bool] = lambda error: True,
) -> T:
    """Return what `send` gives, after at most `MAX_REQUESTS` calls of it and `MAX_WAIT_S` of
    waiting in all.

    The wait before request n + 1 is between 0 and 0.5·2ⁿ s, drawn anew each time, and never less
    than the endpoint asked for.

    Raises:
        ModelUnavailableError: the last one; at once when it may be billed, may not be retried, or
        asks for a longer wait than is left.
    """
    waited_s, n = 0.0, 0
    while True:
        try:
            return await send()
        except ModelUnavailableError as error:
            delay_s = max(random() * FIRST_DELAY_S * 2**n, error.retry_after_s or 0.0)
            n += 1
            if (
                error.may_be_billed
                or n == MAX_REQUESTS
                or waited_s + delay_s > MAX_WAIT_S
                or not may_retry(error)
            ):
                raise
        waited_s += delay_s
        await sleep(delay_s)


def parse_retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return the seconds that the headers ask to wait, None when they say nothing that can be read.
    A time that is past is 0."""
    for name, seconds_per_unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            asked_s = float(headers.get(name, "")) * seconds_per_unit
            if isfinite(asked_s):
                return _bound(asked_s)
    with suppress(TypeError, ValueError, OverflowError):
        return _bound((parsedate_to_datetime(headers.get("retry-after", "")) - now).total_seconds())
    return None


def _bound(seconds: float) -> float:
    return min(max(0.0, seconds), MAX_RETRY_AFTER_S)
