"""A few connections and kills; more: `python -m tests.faults.mcp_orphans`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_no_process_of_a_server_is_left_by_a_closed_connection_or_a_killed_worker(campaign):
    said = campaign("mcp_orphans", "--connects", "8", "--kills", "2")

    assert "no process is left: met" in said
