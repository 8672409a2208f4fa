"""All of `python -m tests.faults.addresses`, which takes seconds; and that it would notice a door
that is open."""

import pytest

from tests.faults import addresses

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_no_attack_reaches_an_address_that_is_not_public_and_ordinary_fetches_work(campaign):
    assert "MISSED" not in campaign("addresses")


async def test_a_door_that_lets_everything_pass_is_noticed():
    refused, _, _ = await addresses.attack_all(is_everywhere=False, allow=["*"])

    assert sum(not one.is_refused for one in refused) >= 5
