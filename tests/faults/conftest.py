import pytest

from support.modules import run_module


@pytest.fixture
def campaign():
    """Runs a campaign as its command does, and returns what it prints; it must find no fault."""

    def run(name, *options):
        ended = run_module(f"tests.faults.{name}", *options)
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
        return ended.stdout

    return run
