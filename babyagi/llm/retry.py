"""Retries within one call, the deadline of calls, and the circuit breaker."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, TypeVar

from babyagi.errors import ModelUnavailableError

MAX_REQUESTS = 4
MAX_WAIT_S = 5.0
FIRST_DELAY_S = 0.5
MAX_RETRY_AFTER_S = 86_400.0
MAX_HOLD_S = 60.0  # even if an endpoint asks for a longer wait, it is tried again once a minute

T = TypeVar("T")


async def retrying(
    send: Callable[[], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[None]],
    random: Callable[[], float],
    may_retry: Callable[[ModelUnavailableError], bool] = lambda error: True,
) -> T:
    """Call `send` until it succeeds, and return its result. It is called at most `MAX_REQUESTS`
    times, and the waits between the calls take at most `MAX_WAIT_S` seconds together.

    The wait before request n + 1 is random between 0 and 0.5·2ⁿ s, and never shorter than the
    endpoint asked for.

    Raises:
        ModelUnavailableError: that of the last request. There is no further request if this one may
            have been billed, must not be retried, or asks for a longer wait than is left.
    """
    waited_s, n = 0.0, 0
    while True:
        try:
            return await send()
        except ModelUnavailableError as error:
            delay_s = max(random() * FIRST_DELAY_S * 2**n, error.retry_after_s or 0.0)
            n += 1
            is_last = n == MAX_REQUESTS or waited_s + delay_s > MAX_WAIT_S
            if error.may_be_billed or is_last or not may_retry(error):
                raise
        waited_s += delay_s
        await sleep(delay_s)


def parse_retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how many seconds the response's headers ask the client to wait: 0 if they name a time
    in the past, None if they name none that can be read."""
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


# -- how long a call may take: as long as a server is known to need
# --------------------------------------------------------------------------------------------------

# A living server may be silent about a call for so many deadlines. Without a bound, a request that
# the server has lost would hold its task until the time of the objective is over.
N_DEADLINES = 4


@dataclass
class SilenceError(Exception):
    """A call that was cut off, because nothing came.

    Attributes:
        waited_s: how long the call was waited for, in whole periods of `Deadline.first_s`.
        server_lives: whether the server showed life all the same.
    """

    waited_s: float
    server_lives: bool


class Deadline:
    """How long the server at one address may be silent about a call. All its calls share it.

    It grows to twice the time that a call was waited for in vain, once the server has shown that it
    lives.

    Args:
        first_s: the deadline in the settings.
        known_s: the deadline that an earlier process needed.
        remember: stores a deadline that has grown.

    Attributes:
        now_s: the deadline of the calls that are sent now.
    """

    def __init__(
        self,
        first_s: float,
        *,
        known_s: float = 0.0,
        remember: Callable[[float], object] = lambda deadline_s: None,
    ) -> None:
        self.first_s, self.now_s = first_s, max(first_s, known_s)
        self._remember = remember
        self._late_s = 0.0  # the longest vain wait

    @property
    def next_s(self) -> float:
        """The deadline once the server has answered again."""
        return max(self.now_s, 2 * self._late_s)

    async def wait_for(
        self,
        call: Coroutine[Any, Any, T],
        *,
        count_heard: Callable[[], int],
        lives: Callable[[], Awaitable[bool]],
    ) -> T:
        """Return the answer to a call. It is waited for as long as pieces of it come, or the
        deadline has not passed, or the server lives and `N_DEADLINES` deadlines have not passed.

        Args:
            count_heard: returns how much of the answer has come.
            lives: finds out whether the server lives.

        Raises:
            SilenceError: the call was cut off.
        """
        waited_s, silent_s, n_heard = 0.0, 0.0, 0
        calling = asyncio.create_task(call)
        try:
            while not (await asyncio.wait([calling], timeout=self.first_s))[0]:
                waited_s, silent_s = waited_s + self.first_s, silent_s + self.first_s
                if count_heard() > n_heard:
                    n_heard, silent_s = count_heard(), 0.0
                if silent_s < self.now_s:
                    continue
                server_lives = await lives()
                is_over = not server_lives or silent_s >= N_DEADLINES * self.now_s
                if is_over and not calling.done():
                    self._late_s = max(self._late_s, silent_s)
                    if server_lives:
                        self._grow()
                    raise SilenceError(waited_s, server_lives)
        finally:
            calling.cancel()
            await asyncio.wait([calling])
        answer = calling.result()
        self._grow()
        return answer

    def _grow(self) -> None:
        if self.next_s > self.now_s:
            self.now_s = self.next_s
            self._remember(self.now_s)


# -- the circuit breaker: an endpoint that is down gets only one request now and then, the probe
# --------------------------------------------------------------------------------------------------

N_FAILURES = 5  # failures within `WINDOW_S` that open the breaker
N_MENDING = 2  # answers in a row, after an outage, before calls may retry again
WINDOW_S = 60.0  # long enough for calls, one at a time, that fail after 10 s each
# With this interval an outage of 5 minutes costs at most 5 + 16 requests, and work goes on within
# 20 s of its end.
PROBE_EVERY_S = 19.0


class Breaker:
    """The circuit breaker of one endpoint, shared by all calls of a process. All times are in
    seconds of the event loop's clock.

    The breaker opens after `N_FAILURES` failures of requests that were sent within `WINDOW_S`.
    While it is open, it refuses all requests except one every `PROBE_EVERY_S`, the probe.

    An answer deletes the failures of all requests that were sent before the answered one. If no
    failure is left, the breaker closes. So a late answer to a request that was sent before an
    outage does not close it.
    """

    def __init__(self) -> None:
        self._failures_sent_at: deque[float] = deque(maxlen=N_FAILURES)
        self._why = ""
        self._is_unreached = False  # of the last failure
        self._probe_at: float | None = None  # None: closed
        self._free_at_by_model: dict[str, float] = {}
        self._retrier: object = None
        # how many more answers in a row are needed before a call may retry
        self._n_to_mend = 0

    def check(self, model: str, *, now_s: float) -> None:
        """Check that a request for the model may be sent now.

        Raises:
            ModelUnavailableError: it may not: the breaker is open (`is_unreached` is that of the
                last failure), or the endpoint reported a rate limit. `retry_after_s` says when the
                next request may be sent.
        """
        free_at = self._free_at_by_model.get(model, now_s)
        if free_at > now_s:
            why = "its endpoint reported a rate limit and asked to wait"
            what = f"no request is sent to {model} for now"
            raise ModelUnavailableError(what, why=why, retry_after_s=free_at - now_s, is_limit=True)
        if self._probe_at is None:
            return
        if now_s < self._probe_at:
            closed = ModelUnavailableError(
                self._why,
                why="the endpoint of the model failed repeatedly; one request is tried every "
                f"{PROBE_EVERY_S:g} s",
                retry_after_s=self._probe_at - now_s,
            )
            closed.is_unreached = self._is_unreached
            raise closed
        self._probe_at = now_s + PROBE_EVERY_S

    def note_failure(self, error: ModelUnavailableError, *, sent_s: float, now_s: float) -> float:
        """Count a failed request, and return the seconds until the next probe; 0 if the breaker is
        closed. A rate limit is not counted, because it does not mean that the endpoint is down."""
        if error.is_limit:
            return 0.0
        self._is_unreached = error.is_unreached
        sent = self._failures_sent_at
        sent.append(sent_s)
        if self._probe_at is None and len(sent) == N_FAILURES and max(sent) - min(sent) <= WINDOW_S:
            self._why = error.what
            self._probe_at = sent_s + PROBE_EVERY_S
        if self._probe_at is not None or self._n_to_mend:
            self._n_to_mend = N_MENDING
        return max(0.0, self._probe_at - now_s) if self._probe_at is not None else 0.0

    def note_answer(self, *, sent_s: float) -> None:
        """Record that the endpoint answered, even with a refusal."""
        later = [failure_s for failure_s in self._failures_sent_at if failure_s > sent_s]
        self._failures_sent_at = deque(later, maxlen=N_FAILURES)
        if not later:
            self._n_to_mend = max(0, self._n_to_mend - 1)
            self._probe_at = self._retrier = None

    def may_retry(self, error: ModelUnavailableError, *, caller: object) -> bool:
        """Return whether this call may retry. After a rate limit, every call may. After any other
        failure, only one call at a time may, so that not all calls spend their time on retries; and
        after an outage, no call may until `N_MENDING` requests in a row were answered."""
        if self._n_to_mend and not error.is_limit:
            return False
        if not error.is_limit and self._retrier is None:
            self._retrier = caller
        return error.is_limit or self._retrier is caller

    def stop_retrying(self, caller: object) -> None:
        if self._retrier is caller:
            self._retrier = None

    def hold(self, model: str, *, until_s: float) -> None:
        """Refuse all requests for the model until that time."""
        self._free_at_by_model[model] = max(until_s, self._free_at_by_model.get(model, 0.0))
