"""Whether work grows with its size or faster, told so that a busy machine cannot change the
verdict."""

import gc
import os
import time
from collections.abc import Callable
from math import inf

FACTOR = 16
# linear work takes FACTOR times as long, quadratic work FACTOR² times; caches and neighbours take
# two or three times
MARGIN = 6
TOO_SHORT_S = 0.05
SCALE = 8 if "LONG_TESTS" in os.environ else 1
N_TRIES = 5


def grows_faster_than_linearly(work: Callable[[int], object], n: int) -> str:
    """Return the times of `work(n / FACTOR)` and `work(n)` in words when the second is out of
    proportion; empty when it is not. With the variable `LONG_TESTS` both sizes are eight times as
    large.

    Processor time is counted. A busy machine can only lengthen a time, so the shortest of several
    counts, and there is a verdict "linear" as soon as one is seen; what is quadratic stays so
    however often it is tried.
    """
    n *= SCALE
    small_s = large_s = inf
    for _ in range(N_TRIES):
        small_s = min(small_s, _processor_s(work, n // FACTOR))
        large_s = min(large_s, _processor_s(work, n))
        if large_s < max(small_s * FACTOR * MARGIN, TOO_SHORT_S):
            return ""
    return f"{small_s:.4f} s for {n // FACTOR}, {large_s:.4f} s for {n}"


def _processor_s(work: Callable[[int], object], n: int) -> float:
    """Without the collection of garbage, whose time goes by all that the tests before have left in
    memory."""
    gc.disable()
    try:
        began_s = time.process_time()
        work(n)
        return time.process_time() - began_s
    finally:
        gc.enable()
