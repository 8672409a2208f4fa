"""An eighth of the servers that do one thing wrong; all: `python -m tests.faults.mcp_servers`."""

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.system]


def test_a_run_goes_on_beside_a_server_that_does_one_thing_wrong(campaign):
    assert "every run goes on" in campaign("mcp_servers", "--every", "8")
