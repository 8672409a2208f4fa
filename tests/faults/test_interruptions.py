"""Five interruptions of a small survey; hundreds, on both stores: `python -m
tests.faults.interruptions`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_no_healthy_task_is_given_up_by_what_happens_to_its_worker(campaign):
    line = "interruptions --interruptions 3 --seconds 30 --items 4 --store sqlite"

    assert "no run called finished that is not: met" in campaign(*line.split())
