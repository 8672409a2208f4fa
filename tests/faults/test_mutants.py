"""One of the planted bugs, and all that break promises at once; each by itself:
`python -m tests.faults.mutants`."""

import pytest

from tests.faults.mutants import CLEAN, MUTANTS, PROMISES, Mutant, catch, run_named

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_a_planted_bug_is_caught_at_a_crash_point():
    assert catch(MUTANTS[0], by_kills_alone=True).crash


def test_every_bug_that_breaks_a_promise_can_be_planted_and_is_caught_by_a_named_test():
    bugs = [mutant for _, mutants in PROMISES for mutant in mutants]

    def plant_all():
        for bug in bugs:
            bug.plant()

    assert len(PROMISES) == 18
    assert run_named(Mutant(name="all", plant=plant_all), [bugs[0].test]).is_breach
    assert run_named(CLEAN, [bugs[0].test]).fault == ""
