"""The attacks while the loop is watched; with 10,000 random requests: `python -m tests.faults.door`."""

import pytest

from tests.faults.door import attack

pytestmark = [pytest.mark.faults]


async def test_no_attack_gets_in_and_half_open_connections_keep_nobody_out(tmp_path):
    n, wrong, _ = await attack(tmp_path)

    assert wrong == []
    assert n >= 150
