"""Waits for the end of a process that is nobody's child here."""

import time
from pathlib import Path

GUARD_S = 300.0


def until_gone(number: int) -> None:
    """Return when the process has ended, be it that nobody has yet asked how."""
    until_s = time.monotonic() + GUARD_S
    while _is_running(number):
        assert time.monotonic() < until_s, f"process {number} still runs"
        time.sleep(0.02)


def _is_running(number: int) -> bool:
    try:
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
