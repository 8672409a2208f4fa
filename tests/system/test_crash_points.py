"""A sample of the crash points; all of them and 300 pairs: `python -m benchmarks.crash_points`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.system


def test_a_kill_at_any_point_loses_nothing_doubles_nothing_and_pays_for_no_journaled_answer_again():
    command = [sys.executable, "-m", "benchmarks.crash_points", "--every", "4", "--pairs", "12"]

    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)

    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    assert re.search(r"^\d{2,} points once, 12 pairs: 0 faults", ended.stdout, re.MULTILINE), ended.stdout
