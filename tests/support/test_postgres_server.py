"""The server of the tests ends with them, however they end."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.gone import GUARD_S, until_gone

pytestmark = pytest.mark.system

STARTS = """
from support.postgres_server import PostgresServer
server = PostgresServer()
server.start()
print((server.folder / "data" / "postmaster.pid").read_text().split()[0], server.folder, flush=True)
input()
"""


def test_a_server_whose_owner_is_killed_ends_and_leaves_no_folder():
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", STARTS],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        number, folder = owner.stdout.readline().split()
        owner.send_signal(signal.SIGKILL)

    until_gone(int(number))
    until_s = time.monotonic() + GUARD_S
    while Path(folder).exists():
        assert time.monotonic() < until_s
        time.sleep(0.02)
