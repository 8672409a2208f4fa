"""How long to wait when something is down for all tasks alike: the model, or the task store."""

from __future__ import annotations

from collections.abc import Callable

MAX_BACK_OFF_S = 60.0
MAX_MODEL_BACK_OFF_S = 10.0  # work goes on within 20 s of an outage's end, also where it takes 10 s to fail
MAX_MODEL_WAIT_S = 20.0  # one model may be limited for an hour; another one is tried meanwhile


class Outages:
    """One worker's count of outages in a row, and its rest from claiming.

    Args:
        clock: seconds that only rise.
        random: a number from 0 up to 1, for the jitter.
    """

    def __init__(self, *, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self.n = 0
        self.waits_for_model = False
        self._clock = clock
        self._random = random
        self._rests_until_s = 0.0

    @property
    def is_resting(self) -> bool:
        """Whether nothing is to be claimed: what is down for one task is down for all."""
        return self._clock() < self._rests_until_s

    def back_off(self, most_s: float = MAX_BACK_OFF_S) -> float:
        """Seconds until the next try: doubling from 1 s to `most_s`, with jitter. What strikes several at once is one outage."""
        if not self.is_resting:
            self.n += 1
        return float(min(most_s, 2.0 ** min(self.n - 1, 10)) * (0.5 + 0.5 * self._random()))

    def rest(self, delay_s: float) -> None:
        self._rests_until_s = max(self._rests_until_s, self._clock() + delay_s)

    def end(self) -> bool:
        """Something worked. Return whether it was the model that was waited for."""
        waited = self.waits_for_model
        self.n, self.waits_for_model = 0, False
        return waited
