"""Killed at every point and started again: nothing lost, nothing doubled, no half state, no
journaled answer paid again.

A point lies before and after every SQL statement, every model request and response, and every start
and end of a tool. Each case runs a small objective in a process of its own on a SQLite file in
memory (/dev/shm), kills it with SIGKILL at one point, looks at the file as it lies there, and runs
it again to its end; a pair is killed a second time in between. A killed process is not a machine
that lost its power: what the disk had not yet written is not tested here.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from support.table import print_table, verdict
from support.virtual import run_virtually
from tests.faults.crash_checks import Look, check_end, look
from tests.faults.crash_lives import SCENARIOS, Scenario, live, make_file, play
from tests.faults.crash_wire import put_points_round_sql

MAX_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A life that nobody kills: the label of each of its points, and what a kill there leaves
    behind."""

    scenario: Scenario
    labels: tuple[str, ...]
    left_behind: tuple[str, ...]

    def news(self) -> list[int]:
        """The points at which a kill leaves other bytes behind than at the point before."""
        return [
            1,
            *(
                at
                for at, (one, other) in enumerate(pairwise(self.left_behind), start=2)
                if one != other
            ),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Where to kill: the first life at point `first`; the second somewhere when `seed` is not None.
    Then a last life, if it `goes_on`."""

    root: Path
    course: Course
    first: int
    seed: int | None = None
    goes_on: bool = True


def make_folder(root: Path, scenario: Scenario) -> Path:
    """A home before its first life; `root` holds an empty task store."""
    folder = Path(tempfile.mkdtemp(dir=root))
    if scenario.has_schema:
        shutil.copyfile(root / "tasks.db", folder / "tasks.db")
    return folder


def run_case(case: Case) -> tuple[str, ...]:
    """Run one case; returns what was wrong."""
    scenario, folder = case.course.scenario, make_folder(case.root, case.course.scenario)
    try:
        looks = list(_kill(folder, case))
        if not case.goes_on:
            return ()
        # nobody kills this one, so it needs no process of its own
        run_virtually(play(scenario, folder, life=9))
        check_end(folder, scenario, looks)
    except Exception as error:
        return (
            (
                f"{scenario.name} killed at {case.first}, then {case.seed}: "
                f"{type(error).__name__}: {error}"
            ),
        )
    finally:
        shutil.rmtree(folder)
    return ()


def _kill(folder: Path, case: Case) -> Iterator[Look]:
    scenario, course = case.course.scenario, case.course
    assert live(scenario, folder, life=1, kill_at=case.first), "it ended before the point"
    yield look(folder)
    if case.seed is None:
        return
    chance, left = random.Random(case.seed), len(course.labels) - case.first + 60
    while left > 1:
        spare = folder.with_name(folder.name + "-spare")
        shutil.copytree(folder, spare)
        kill_at = chance.randint(1, left)
        if live(scenario, folder, life=2, kill_at=kill_at):
            shutil.rmtree(spare)
            yield look(folder)
            return
        # it ended before that point: try an earlier one, from where the first kill left it
        shutil.rmtree(folder)
        spare.rename(folder)
        left = kill_at - 1
    raise AssertionError("no second kill")


def prepare(root: Path) -> Mapping[str, str]:
    """Load and warm up in this process what every child needs; returns the queries of SQL by
    name."""
    queries = put_points_round_sql()
    run_virtually(make_file(root))
    for scenario in SCENARIOS:
        run_virtually(play(scenario, make_folder(root, scenario), life=1))
    gc.freeze()
    return queries


def survey(root: Path, scenario: Scenario) -> Course:
    folder = make_folder(root, scenario)
    assert not live(scenario, folder, life=1, is_survey=True)
    check_end(folder, scenario, [])
    seen = json.loads((folder / "survey.json").read_text("utf-8"))
    return Course(
        scenario=scenario,
        labels=tuple(label for label, _ in seen),
        left_behind=tuple(left for _, left in seen),
    )


def run_cases(cases: Sequence[Case], *, n_processes: int) -> list[str]:
    with multiprocessing.get_context("fork").Pool(n_processes) as pool:
        return [
            fault
            for faults in pool.imap_unordered(run_case, cases, chunksize=8)
            for fault in faults
        ]


def make_cases(root: Path, courses: Sequence[Course], *, is_all: bool) -> list[Case]:
    """Each point once. Unless `is_all`, a kill that leaves byte for byte what one at the point
    before leaves is looked at and not gone on with: it can end in no other way."""
    cases = []
    for course in courses:
        news = set(course.news())
        points = range(1, len(course.labels) + 1)
        cases += [
            Case(root=root, course=course, first=at, goes_on=is_all or at in news) for at in points
        ]
    return cases


def make_pairs(once: Sequence[Case], n: int, *, seed: int) -> list[Case]:
    chance = random.Random(seed)
    return [
        replace(chance.choice(once), seed=chance.randrange(2**32), goes_on=True) for _ in range(n)
    ]


def show_histogram(courses: Sequence[Course]) -> None:
    n_by_course = [
        Counter(label.partition(" ")[2] for label in course.labels) for course in courses
    ]
    total = sum(n_by_course, Counter())
    rows = [
        (where, n, *(counts[where] or "" for counts in n_by_course))
        for where, n in total.most_common()
    ]
    rows.append(("all", total.total(), *(len(course.labels) for course in courses)))
    head = ("where", "points", *(course.scenario.name for course in courses))
    print_table("Points, before and after counted together", head, rows)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.crash_points", description=__doc__
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="kill at each point and go on, also where the files are as at the point before",
    )
    parser.add_argument(
        "--same", type=int, default=20, help="kill at every Nth of the points without news"
    )
    parser.add_argument("--every", type=int, default=1, help="kill at every Nth point only")
    parser.add_argument("--pairs", type=int, default=300, help="random pairs of points")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(argv)
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(
        prefix="crash-points-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    ) as name:
        root = Path(name)
        queries = prepare(root)
        courses = [survey(root, scenario) for scenario in SCENARIOS]
        points = make_cases(root, courses, is_all=options.all)
        same = [case for case in points if not case.goes_on]
        chosen = [case for case in points if case.goes_on] + same[:: options.same]
        once, pairs = (
            chosen[options.seed % options.every :: options.every],
            make_pairs(points, options.pairs, seed=options.seed),
        )
        faults = run_cases([*once, *pairs], n_processes=options.processes)
    took_s = time.monotonic() - began_s
    show_histogram(courses)
    seen = {label.rpartition(" ")[2] for course in courses for label in course.labels}
    print("queries of SQL that no life runs:", " ".join(sorted(set(queries) - seen)) or "none")
    n_news = sum(len(course.news()) for course in courses)
    print(
        f"{len(points)} points; at {n_news} of them a kill leaves other bytes behind (files, "
        "bills, payments) than at the point before"
    )
    n_gone_on = sum(case.goes_on for case in once)
    print(
        f"killed once at {len(once)} points, gone on to the end after {n_gone_on}; "
        f"{len(pairs)} pairs"
    )
    print(f"{len(faults)} faults, goal 0: {verdict(not faults)}")
    spent = os.times()
    cpu_s = spent.user + spent.system + spent.children_user + spent.children_system
    print(
        f"{took_s:.0f} s ({cpu_s:.0f} s of processor time in {options.processes} processes), goal "
        f"at most {MAX_S:.0f} s of each: {verdict(cpu_s <= MAX_S * options.processes)}"
    )
    print(*faults[:20], sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
