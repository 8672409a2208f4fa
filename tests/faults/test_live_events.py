"""A few cuts and kills; 1,000 and 100 on both stores: `python -m tests.faults.live_events`."""

import pytest

from tests.faults.live_events import run

pytestmark = [pytest.mark.faults, pytest.mark.system]


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
async def test_no_event_is_lost_or_doubled_over_cuts_and_kills(store, tmp_path):
    found = await run(tmp_path / "live", store, n_cuts=30, n_kills=2, seed=3)

    assert found.faults == []
    assert found.n_cuts >= 30
