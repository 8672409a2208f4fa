"""Seeds spread over the processors, with what came so far on standard error and an end in time."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

T = TypeVar("T")
PROGRESS_S = 10.0


def spread(work: Callable[[int], T], seeds: Sequence[int], *, within_s: float) -> list[T]:
    """Return what `work` gives for each seed, in their order. Seeds that nobody has begun after
    `within_s` seconds are left out. An error of `work` is raised here.

    Args:
        work: a function of a module; each process is a fork of this one. It may take SIGTERM as it
            likes, because nobody sends it.
    """
    began_s = shown_s = time.monotonic()
    found: list[T] = []
    pool = multiprocessing.get_context("fork").Pool(os.cpu_count() or 1)
    each = partial(_work_before, began_s + within_s, work)
    for one in pool.imap(each, seeds, chunksize=4):
        found += one
        now_s = time.monotonic()
        if now_s - shown_s > PROGRESS_S:
            shown_s = now_s
            print(f"{len(found)} of {len(seeds)}, {now_s - began_s:.0f} s", file=sys.stderr)
    pool.close()
    pool.join()
    return found


def _work_before(end_s: float, work: Callable[[int], T], seed: int) -> list[T]:
    return [work(seed)] if time.monotonic() < end_s else []
