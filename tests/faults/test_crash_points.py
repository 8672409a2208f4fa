"""A sample of the crash points; all: `python -m tests.faults.crash_points`."""

import re

import pytest

from support.modules import run_module

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_a_kill_at_any_point_loses_nothing_doubles_nothing_and_pays_for_no_journaled_answer_again():
    # in a small process of its own, which is forked more than a hundred times
    ended = run_module("tests.faults.crash_points", "--every", "150", "--pairs", "4", "--all")
    out = ended.stdout

    assert ended.returncode == 0, out[-3000:] + ended.stderr[-3000:]
    assert re.search(
        r"^killed once at (\d{2,3}) points, gone on to the end after \1; 4 pairs$",
        out,
        re.MULTILINE,
    ), out
