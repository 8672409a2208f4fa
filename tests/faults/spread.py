"""Seeds spread over the processors, with what came so far on standard error and an end in time."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
PROGRESS_S = 10.0


def spread(work: Callable[[int], T], seeds: Sequence[int], *, within_s: float) -> list[T]:
    """Return what `work` gives for each seed, in their order. After `within_s` seconds the seeds
    that nobody has begun are left out. An error of `work` is raised here.

    Args:
        work: a function of a module; each process is a fork of this one.
    """
    began_s = shown_s = time.monotonic()
    found: list[T] = []
    with multiprocessing.get_context("fork").Pool(os.cpu_count() or 1) as pool:
        for one in pool.imap(work, seeds, chunksize=4):
            found.append(one)
            now_s = time.monotonic()
            if now_s - shown_s > PROGRESS_S:
                shown_s = now_s
                print(f"{len(found)} of {len(seeds)}, {now_s - began_s:.0f} s", file=sys.stderr)
            if now_s - began_s > within_s:
                break
    return found
