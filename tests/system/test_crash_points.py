"""A sample of the crash points and of the planted bugs; all: `python -m benchmarks.crash_points`,
`python -m benchmarks.mutants`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.late_errors import run_once
from benchmarks.mutants import MUTANTS, catch

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.system


def test_a_kill_at_any_point_loses_nothing_doubles_nothing_and_pays_for_no_journaled_answer_again():
    command = [
        sys.executable,
        "-m",
        "benchmarks.crash_points",
        "--every",
        "60",
        "--pairs",
        "12",
        "--all",
    ]

    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )

    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    assert re.search(
        r"^killed once at (\d{3}) points, gone on to the end after \1; 12 pairs$",
        ended.stdout,
        re.MULTILINE,
    ), ended.stdout


def test_a_planted_bug_is_caught_at_a_crash_point():
    assert catch(MUTANTS[0]).crash


def test_errors_after_success_break_no_promise():
    assert sum(run_once(seed, on_sqlite=seed % 10 == 0).total() for seed in range(20)) > 100
