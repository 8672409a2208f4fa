import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def campaign():
    """Runs a campaign as its command does, and returns what it prints; it must find no fault."""

    def run(name, *options):
        ended = subprocess.run(
            [sys.executable, "-m", f"tests.faults.{name}", *options],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
        return ended.stdout

    return run


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/board.db"
    return request.getfixturevalue("postgres_url")
