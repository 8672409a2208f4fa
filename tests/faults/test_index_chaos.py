"""Three seconds of kills; forty for each of the five indexes: `python -m
tests.faults.index_chaos`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_kills_lose_no_result_and_leave_none_unindexed(campaign):
    out = campaign(*"index_chaos --indexes builtin --seconds 3 --results 60".split())

    assert out.rstrip().endswith("met"), out
