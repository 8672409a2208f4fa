"""A circuit breaker: while an endpoint is down, nobody asks it but one probe now and then.

Shared by all calls of a process to one endpoint. Seconds are those of the event loop's clock, handed in.
"""

from __future__ import annotations

from collections import deque

from babyagi.errors import ModelUnavailableError

N_FAILURES = 5
WINDOW_S = 30.0
# An outage of 5 minutes then costs at most 5 + 16 requests, and work goes on within 20 s of its end.
PROBE_EVERY_S = 18.0


class Breaker:
    """Opens at `N_FAILURES` failures within `WINDOW_S`, lets one probe through every `PROBE_EVERY_S`, closes at the first answer."""

    def __init__(self) -> None:
        self._failed_at: deque[float] = deque(maxlen=N_FAILURES)
        self._why = ""
        self._probe_at: float | None = None  # None: closed
        self._free_at_by_model: dict[str, float] = {}
        self._retrier: object = None

    def check(self, model: str, *, now_s: float) -> None:
        """Let a request through, or refuse it before it is sent.

        Raises:
            ModelUnavailableError: with the seconds until the next probe, or until the endpoint takes requests for this model again.
        """
        free_at = self._free_at_by_model.get(model, now_s)
        if free_at > now_s:
            why = "the endpoint asked us to wait"
            raise ModelUnavailableError(f"{model} is limited", why=why, retry_after_s=free_at - now_s, is_limit=True)
        if self._probe_at is None:
            return
        if now_s < self._probe_at:
            raise ModelUnavailableError(self._why, why="it is asked again now and then", retry_after_s=self._probe_at - now_s)
        self._probe_at = now_s + PROBE_EVERY_S

    def note_failure(self, error: ModelUnavailableError, *, now_s: float) -> None:
        """Count an outage. A limit is none: the endpoint is up."""
        if error.is_limit:
            return
        self._failed_at.append(now_s)
        if self._probe_at is not None or (len(self._failed_at) == N_FAILURES and now_s - self._failed_at[0] <= WINDOW_S):
            self._why = error.what
            self._probe_at = now_s + PROBE_EVERY_S

    def note_answer(self) -> None:
        """The endpoint answered, be it with a refusal."""
        self._failed_at.clear()
        self._probe_at = None
        self._retrier = None

    def may_retry(self, error: ModelUnavailableError, *, caller: object) -> bool:
        """Whether this call may ask again: after an outage one call at a time does, so that not all of them find out."""
        if not error.is_limit and self._retrier is None:
            self._retrier = caller
        return error.is_limit or self._retrier is caller

    def stop_retrying(self, caller: object) -> None:
        if self._retrier is caller:
            self._retrier = None

    def hold(self, model: str, *, until_s: float) -> None:
        """Let no request for the model through before then."""
        self._free_at_by_model[model] = max(until_s, self._free_at_by_model.get(model, 0.0))
