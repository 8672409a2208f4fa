"""A few hundred ticks over each change of the year; ten thousand: `python -m tests.faults.schedules`."""

import pytest

from babyagi.taskstore.schedules import TickOutcome
from tests.faults import schedules

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(("era", "seed"), [("spring", 3), ("autumn", 4)])
async def test_each_tick_has_one_row_none_is_fired_twice_and_each_row_is_explained(era, seed):
    found = await schedules.run_era(era, n_ticks=400, seed=seed)

    assert found.faults == []
    assert found.n_ticks >= 400 and found.n_kills > 0
    assert {outcome.split()[0] for outcome in found.outcomes} > {
        TickOutcome.FIRED,
        TickOutcome.SKIPPED,
    }


async def test_a_tick_that_was_fired_twice_or_left_out_would_be_seen(tmp_path):
    campaign = schedules.Campaign(folder=tmp_path, begins=schedules.ERAS["spring"], seed=1)
    assert await campaign.run(150) == []
    store = campaign._daemons[0].store
    one = campaign._schedules[0]
    (newest,) = (await store.schedule(one.id, limit=1))[1]
    audit = schedules.Audit(campaign, store, campaign._schedules)
    twice = [newest, newest]
    assert audit._find_gaps(one, (await store.schedule(one.id))[0], twice) != []
    await campaign.close()
