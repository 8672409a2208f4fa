"""A few ways of saying what a call took; all: `python -m tests.faults.usages`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_no_bill_goes_further_over_a_limit_than_what_was_in_flight_then(campaign):
    assert ": 0 over, met" in campaign("usages", "--every", "90")
