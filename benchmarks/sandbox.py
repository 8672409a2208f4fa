"""What it costs to run Python code in a process that can only compute: processor time, beside an
interpreter that does nothing."""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from babyagi.sandbox.python import run_python
from support.table import print_table

PROGRAMS = {
    "no import": "final_result = 47 ** 0.23",
    "dates, numbers and text": (
        "import datetime, json, math, re, statistics\nfinal_result = statistics.mean([1, 2, 3])"
    ),
}
N_AT_ONCE = 8


def processor_ms(work: Callable[[], object], n_runs: int) -> float:
    """Return the milliseconds of processor that one run takes, in this process and the ones that it
    starts."""
    before_s = _processor_s()
    for _ in range(n_runs):
        work()
    return (_processor_s() - before_s) * 1000 / n_runs


def wall_ms(work: Callable[[], object], n_runs: int) -> float:
    """Return the milliseconds from beginning to end, the shortest of the runs."""
    took_s = []
    for _ in range(n_runs):
        began = time.perf_counter()
        work()
        took_s.append(time.perf_counter() - began)
    return min(took_s) * 1000


def run(code: str, n_at_once: int = 1) -> None:
    async def run_all() -> None:
        await asyncio.gather(*(run_python(code) for _ in range(n_at_once)))

    asyncio.run(run_all())


def run_nothing() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-B", "-c", "pass"], env={}, check=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    n_runs = parser.parse_args(arguments).runs

    works: dict[str, Callable[[], object]] = {
        "an interpreter that does nothing": run_nothing,
        **{name: partial(run, code) for name, code in PROGRAMS.items()},
    }
    costs_ms = {name: processor_ms(work, n_runs) for name, work in works.items()}
    bare_ms = costs_ms["an interpreter that does nothing"]
    rows = [
        (name, f"{cost:.1f} ms", f"{cost / bare_ms:.1f}", f"{wall_ms(works[name], n_runs):.0f} ms")
        for name, cost in costs_ms.items()
    ]
    at_once_ms = wall_ms(
        partial(run, PROGRAMS["no import"], N_AT_ONCE), max(1, n_runs // N_AT_ONCE)
    )
    rows.append((f"no import, {N_AT_ONCE} at once", "", "", f"{at_once_ms:.0f} ms"))
    print_table(
        "Python code in a process that can only compute",
        ("program", "processor", "times", "wall, the shortest"),
        rows,
    )


def _processor_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


if __name__ == "__main__":
    main()
