"""A few visitors of each kind; all: `python -m tests.faults.doors`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_no_visitor_has_an_effect_that_nobody_lent_or_allowed(campaign):
    assert "0 faults: met" in campaign("doors", "--n", "2", "--seed", "3")
