"""A sample of the crash points; all: `python -m tests.faults.crash_points`."""

import re

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_a_kill_at_any_point_loses_nothing_doubles_nothing_and_pays_for_no_journaled_answer_again(
    campaign,
):
    out = campaign("crash_points", "--every", "150", "--pairs", "4", "--all")

    assert re.search(
        r"^killed once at (\d{2,3}) points, gone on to the end after \1; 4 pairs$",
        out,
        re.MULTILINE,
    ), out
