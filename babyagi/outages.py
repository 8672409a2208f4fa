"""How long to wait when something is down for all tasks alike: the model, or the task store; and
when that must be found out."""

from __future__ import annotations

from collections.abc import Callable

MAX_BACK_OFF_S = 60.0
# work goes on within 20 s of an outage's end, also where it takes 10 s to fail
MAX_MODEL_BACK_OFF_S = 10.0
MAX_MODEL_WAIT_S = 20.0  # one model may be limited for an hour; another one is tried meanwhile
OVERDUE_BACK_OFF_S = 1.0  # after a question that was waited for until its deadline
PARTIAL_BACK_OFF_S = 19.0  # where a small question is answered and work is not
# of work in an outage that costs nothing so far; by then the circuit breaker may be open
N_FREE_TRIES = 2
N_SAME_FAULTS = 3


class Outages:
    """One worker's count of outages in a row, and its rest from claiming.

    `is_down`: nothing but a small question is worth asking the model. `is_partial`: it has answered
    one, and no work since.

    Args:
        clock: seconds that only rise.
        random: a number from 0 up to 1, for the jitter.
    """

    def __init__(self, *, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self.n = 0
        self.is_down = False
        self.is_partial = False
        self.waits_for_model = False
        self._clock = clock
        self._random = random
        self._rests_until_s = 0.0

    @property
    def is_resting(self) -> bool:
        """Whether nothing is to be claimed: what is down for one task is down for all."""
        return self._clock() < self._rests_until_s

    def back_off(self, most_s: float = MAX_BACK_OFF_S) -> float:
        """Seconds until the next try: doubling from 1 s to `most_s`, with jitter. What strikes
        several at once is one outage."""
        if not self.is_resting:
            self.n += 1
        return float(min(most_s, 2.0 ** min(self.n - 1, 10)) * (0.5 + 0.5 * self._random()))

    def rest(self, delay_s: float) -> None:
        self._rests_until_s = max(self._rests_until_s, self._clock() + delay_s)

    def end(self) -> bool:
        """The model that was waited for answers. Return whether it was waited for."""
        waited = self.waits_for_model
        self.waits_for_model = False
        self.work_again()
        return waited

    def work_again(self) -> None:
        """Some work was done, be it with another model than the one that is waited for."""
        self.n, self.is_down, self.is_partial = 0, False, False


class SameFaults:
    """The tasks that met the same fault one after the other, with no success between them."""

    def __init__(self) -> None:
        self._fault: type[Exception] | None = None
        self._task_ids: set[int] = set()

    def note(self, error: Exception, task_id: int) -> bool:
        """Return whether as many different tasks have met it now as make one doubt that it is
        theirs."""
        if type(error) is not self._fault:
            self.clear()
        self._fault = type(error)
        self._task_ids.add(task_id)
        return len(self._task_ids) >= N_SAME_FAULTS

    def clear(self) -> None:
        self._fault = None
        self._task_ids.clear()
