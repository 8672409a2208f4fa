"""Commands of this repository that measure or try something, run to their end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
TIMEOUT_S = 400.0  # below that of a test, so that the children of a command end with it
CLEAN_UP_S = 60.0


def run_module(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m name` in this repository. When it hangs it may clean up, as after Ctrl-C;
    whatever it started is killed then.

    Raises:
        TimeoutError: it hung; with what it had said.
    """
    with subprocess.Popen(
        [sys.executable, "-m", name, *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            out, err = running.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                running.wait(CLEAN_UP_S)
            _kill_group(running.pid)
            out, err = running.communicate()
            raise TimeoutError(f"{name} hung: {out[-3000:]}{err[-3000:]}") from None
        except BaseException:
            _kill_group(running.pid)
            raise
    return subprocess.CompletedProcess([name, *options], running.returncode, out, err)


def _kill_group(number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(number, signal.SIGKILL)
