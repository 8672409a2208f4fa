"""One race for each limit, each on another store; both, and more seeds: `python -m
tests.faults.races`."""

import pytest

from babyagi.tasks import Limits
from tests.faults import races

LIMITS = Limits(max_cost_usd=0.25, max_tasks=20)

pytestmark = [pytest.mark.faults, pytest.mark.system]


async def test_workers_that_race_for_the_last_money_never_pass_the_limit(tmp_path):
    url = f"sqlite://{tmp_path}/board.db"
    race = await races.race(url, seed=1, by_cost=True, n_workers=3, limits=LIMITS)

    assert race.is_good(by_cost=True), race


async def test_workers_that_race_for_the_last_task_never_pass_the_limit(postgres_url):
    race = await races.race(postgres_url, seed=2, by_cost=False, n_workers=3, limits=LIMITS)

    assert race.is_good(by_cost=False), race
