"""What a command that hangs had started is gone when the test is told."""

import pytest

from support import modules
from tests.support.gone import until_gone

pytestmark = pytest.mark.system

HANGS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
print(child.pid, flush=True)
time.sleep(3600)
"""


def test_a_command_that_hangs_is_told_with_what_it_said_and_leaves_no_child(tmp_path, monkeypatch):
    (tmp_path / "hanging.py").write_text(HANGS, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(modules, "TIMEOUT_S", 3.0)

    with pytest.raises(TimeoutError, match="hanging hung: ") as caught:
        modules.run_module("hanging")

    # a machine that is so slow has started no child by then
    for number in str(caught.value).split("hung: ")[1].split()[:1]:
        until_gone(int(number))
