"""Two kills; more: `python -m tests.faults.hands_kills`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_a_run_that_uses_all_hands_and_is_killed_does_and_fetches_nothing_twice(campaign):
    assert "the report is the same: met" in campaign("hands_kills", "--kills", "2")
