"""Workers that share a task store and nothing else, on SQLite and on PostgreSQL: short versions of
the campaigns in `benchmarks/`."""

from functools import partial

import pytest

from benchmarks import hosts, joining, races, takeover
from benchmarks.board import open_board
from benchmarks.network import Forwarders
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/board.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
def server_of_its_own():
    server = PostgresServer()
    try:
        server.start()
        server.run("CREATE DATABASE board")
        yield server
    finally:
        server.close()


async def test_a_host_that_was_cut_off_for_longer_than_its_lease_does_nothing_twice_and_works_on(
    postgres_server, postgres_url
):
    event = hosts.Event(name="cut", happens=partial(hosts.cut_host, for_s=5.0))

    async with Forwarders() as network:
        seen = await hosts.run_once(network, postgres_server, postgres_url, event, n_tasks=40)

    assert seen.is_good, seen


async def test_work_goes_on_after_postgresql_was_away_for_longer_than_a_lease_and_no_failure_is_counted(
    server_of_its_own,
):
    server = server_of_its_own
    event = hosts.Event(name="stop", happens=partial(hosts.stop_server, for_s=5.0))

    async with Forwarders() as network:
        seen = await hosts.run_once(network, server, server.url("board"), event, n_tasks=40)

    assert seen.is_good, seen
    assert set(seen.n_ids_by_host.values()) == {1}, "a living worker was declared dead"


async def test_workers_that_race_for_the_last_money_never_pass_the_limit(store_url):
    race = await races.race(store_url, seed=1, by_cost=True, n_workers=4)

    assert race.is_good(by_cost=True), race


async def test_workers_that_race_for_the_last_task_never_pass_the_limit(postgres_url):
    race = await races.race(postgres_url, seed=2, by_cost=False, n_workers=4)

    assert race.is_good(by_cost=False), race


async def test_a_killed_workers_task_is_anothers_within_its_lease_and_its_own_at_once_when_it_starts_again(
    store_url,
):
    async with open_board(store_url, model=takeover.HangingSurveyor()) as board:
        await board.start_workers("w1", "w2")
        found = await takeover.by_another(board, 1)
        assert found.is_once, board.look_over(1, 1)
        assert found.took_s <= takeover.BY_ANOTHER_S + 1.0  # on a busy machine
        await takeover.leave_alone(board, "w1")
        found = await takeover.by_itself(board, 2)
        assert found.is_once, board.look_over(2, 2)
        assert found.took_s <= takeover.BY_ITSELF_S + 1.0


async def test_of_a_worker_that_was_frozen_for_longer_than_its_lease_nothing_counts_but_what_was_paid_for(
    postgres_url,
):
    assert await takeover.thaw(postgres_url) == ""


async def test_clocks_that_jump_by_an_hour_lose_nothing_and_strand_nothing(tmp_path):
    assert await takeover.jump(f"sqlite://{tmp_path}/board.db", seed=1, n_tasks=20) == ""


@pytest.mark.parametrize("seed", [3, 4])
async def test_workers_may_come_and_go_in_any_order(seed, postgres_url):
    joined = await joining.run_once(postgres_url, seed=seed)

    assert joined.is_good, joined
