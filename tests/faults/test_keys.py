"""A few crashes of two servers that share a SQLite store; both stores, and more:
`python -m tests.faults.keys`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_a_request_with_a_key_takes_effect_once_over_crashes_of_two_servers(campaign):
    assert "0 faults: met" in campaign("keys", "--kills", "2", "--store", "sqlite")
