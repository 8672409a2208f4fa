"""Runs this program as a process of its own, and says how long it took and how much memory it
used."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TIMEOUT_S = 300.0
# The parent of the program that is measured: a process starts with its parent's peak memory, and
# this one has next to none.
LAUNCHER = """
import json, resource, subprocess, sys, time
began_at = time.monotonic()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
took_s, kib = time.monotonic() - began_at, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
record = {
    "began_at": began_at,
    "took_s": took_s,
    "peak_mib": kib / 1024,
    "code": done.returncode,
    "said": done.stderr,
}
print(json.dumps(record))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """How a process came out. `began_at` is on the clock of this machine's event loops; `peak_mib`
    is its largest resident size.

    `said` is what it wrote to standard error.
    """

    began_at: float
    took_s: float
    peak_mib: float
    code: int
    said: str


async def run_child(arguments: Sequence[str], *, environ: Mapping[str, str], cwd: Path) -> Child:
    """Run this Python with the arguments and nothing but these variables, and wait for its end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", "-c", LAUNCHER, sys.executable, *arguments),
        env={"PATH": os.environ.get("PATH", ""), **environ},
        cwd=cwd,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            said, _ = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    return Child(**json.loads(said))


def endpoint_variables(base_url: str, home: Path, **more: str) -> dict[str, str]:
    """What sends every call of a run to a server on this machine, and keeps its data in this
    home."""
    return {
        "OPENAI_BASE_URL": base_url,
        "BABYAGI_PROTOCOL": "untested",
        "OPENAI_API_KEY": "none",
        "LLM_MODEL": "local",
        "BABYAGI_HOME": str(home),
        **more,
    }
