"""Short versions of the events: `python -m tests.faults.hosts`."""

from functools import partial

import pytest

from support.postgres_server import PostgresServer
from tests.faults import hosts
from tests.faults.network import Forwarders

pytestmark = [pytest.mark.faults, pytest.mark.system]


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
