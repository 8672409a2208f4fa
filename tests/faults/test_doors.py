"""A few peers and servers; more, and folders, with what shows that effects are seen:
`python -m tests.faults.doors`. Forty folders: `tests/system/test_hostile_folders.py`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_no_visitor_has_an_effect_that_nobody_lent_or_allowed(campaign):
    assert "0 faults: met" in campaign("doors", "--n", "3", "--kind", "peers", "--kind", "servers")
