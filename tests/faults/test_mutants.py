"""One of the planted bugs; all: `python -m tests.faults.mutants`."""

import pytest

from tests.faults.mutants import MUTANTS, catch

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_a_planted_bug_is_caught_at_a_crash_point():
    assert catch(MUTANTS[0], by_kills_alone=True).crash
