"""One case of each shortage; all: `python -m tests.faults.shortages`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_what_a_machine_or_a_server_lacks_costs_no_look_no_run_and_no_answer(campaign):
    assert "0 faults: met" in campaign("shortages", "--every", "20")
