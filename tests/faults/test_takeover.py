"""Each takeover once; twenty times on both stores, with a stopwatch: `python -m
tests.faults.takeover`. Those of one home, on SQLite: `tests/system/test_lost_workers.py`."""

import pytest

from support.board import open_board
from tests.faults import takeover

pytestmark = [pytest.mark.faults, pytest.mark.system]


async def test_a_killed_workers_task_is_done_once_by_another_and_by_itself_when_it_starts_again(
    postgres_url,
):
    async with open_board(postgres_url, model=takeover.HangingSurveyor(), is_timed=False) as board:
        await board.start_workers("w1", "w2")
        found = await takeover.by_another(board, 1)
        assert found.is_once, board.look_over(1, 1)
        await takeover.leave_alone(board, "w1")
        found = await takeover.by_itself(board, 2)
        assert found.is_once, board.look_over(2, 2)


async def test_of_a_worker_that_was_frozen_for_longer_than_its_lease_nothing_counts_but_what_was_paid_for(
    postgres_url,
):
    assert await takeover.thaw(postgres_url) == ""


async def test_clocks_that_jump_by_an_hour_lose_nothing_and_strand_nothing(tmp_path):
    assert await takeover.jump(f"sqlite://{tmp_path}/board.db", seed=1, n_tasks=20) == ""
