"""Is a process left of MCP servers? Each server has a child in a session of its own and a grandchild
without a parent, which heed no SIGTERM.

`python -m tests.faults.mcp_orphans [--connects 1000] [--kills 100] [--seed 1]`: connections that are
opened and closed, and workers (`babyagi worker --mcp FILE`) that get SIGKILL while their servers
start, at a random instant, and every third as soon as all of them run. Linux only: processes are found by a mark in their environment.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from babyagi.errors import ToolError
from babyagi.tools.mcp import McpServer, open_servers
from support.processes import environ, start
from support.table import print_table, verdict

N_AT_ONCE = 4
N_SERVERS = 2  # of a worker
N_OF_SERVER = 4  # itself, what guards it, its child and its grandchild
LATEST_KILL_S = 1.5  # after the processes of servers are seen that it waits for
START_S = 300.0
GONE_S = 120.0  # on a machine that does much else
HOSTILE = str(Path(__file__).parents[1] / "mcp_hostile_server.py")
ARGS = ("-S", HOSTILE, "children from the start")
MARK = "MARK_OF_THIS_TEST"


def find_marked(mark: str) -> list[int]:
    """The living processes with the mark in their environment."""
    found = []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (
                place.name.isdecimal()
                and f"{MARK}={mark}".encode() in (place / "environ").read_bytes()
            ):
                found.append(int(place.name))
    return found


async def count_left(mark: str) -> int:
    """How many are left when nothing changes any more, or time is over."""
    deadline_s = time.monotonic() + GONE_S
    while (left := find_marked(mark)) and time.monotonic() < deadline_s:
        await asyncio.sleep(0.05)
    return len(left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """`n_seen` is how many processes there were, `n_left` how many too long."""

    n_seen: int
    n_left: int


async def connect(turns: asyncio.Semaphore) -> Left:
    """Open a connection, use it, and close it."""
    mark = uuid.uuid4().hex
    server = McpServer(name="s", command=sys.executable, args=ARGS, env={MARK: mark})
    async with turns:
        n_seen = 0
        async with open_servers([server]) as (connection,):
            with contextlib.suppress(ToolError):
                await connection.list_tools()
                n_seen = len(find_marked(mark))
        return Left(n_seen=n_seen, n_left=await count_left(mark))


async def kill(turns: asyncio.Semaphore, folder: Path, after_s: float, *, n_first: int) -> Left:
    """Start a worker with servers, and kill it so long after their first so many processes are
    there."""
    mark = uuid.uuid4().hex
    folder.mkdir()
    entry = {"command": sys.executable, "args": ARGS, "env": {MARK: mark}}
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": {f"s{n}": entry for n in range(N_SERVERS)}}))
    async with turns:
        env = environ(folder / "home", LLM_MODEL="rehearsal")
        process = await start("worker", "--mcp", str(path), env=env, cwd=folder)
        deadline_s = time.monotonic() + START_S
        while (n_seen := len(find_marked(mark))) < n_first and time.monotonic() < deadline_s:
            await asyncio.sleep(0.02)
        await asyncio.sleep(after_s)
        # a busy machine may have closed a connection that took too long
        n_seen = max(n_seen, len(find_marked(mark)))
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.communicate()
        return Left(n_seen=n_seen, n_left=await count_left(mark))


async def campaign(options: argparse.Namespace, folder: Path) -> tuple[list[Left], list[Left]]:
    chance, turns = random.Random(options.seed), asyncio.Semaphore(N_AT_ONCE)
    closed = await asyncio.gather(*(connect(turns) for _ in range(options.connects)))
    instants = [chance.uniform(0.0, LATEST_KILL_S) for _ in range(options.kills)]
    killed = await asyncio.gather(
        *(
            kill(turns, folder / f"{n}", after_s, n_first=1 if n % 3 else N_SERVERS * N_OF_SERVER)
            for n, after_s in enumerate(instants)
        )
    )
    return closed, killed


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.mcp_orphans", description=__doc__)
    parser.add_argument("--connects", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    if sys.platform != "linux":
        print("skipped: processes are found by /proc, which is not here", file=sys.stderr)
        return 0
    began_s = time.monotonic()
    with TemporaryDirectory(prefix="babyagi-orphans-") as folder:
        closed, killed = asyncio.run(campaign(options, Path(folder)))
    rows = [
        (
            name,
            len(found),
            sum(one.n_seen >= whole for one in found),
            sum(one.n_seen for one in found),
            sum(one.n_left for one in found),
        )
        for name, found, whole in (
            ("opened and closed", closed, N_OF_SERVER),
            ("killed with SIGKILL", killed, N_SERVERS * N_OF_SERVER),
        )
    ]
    head = ("", "times", "with all at work", "processes seen", "left")
    print_table(f"processes of servers, {time.monotonic() - began_s:.0f} s", head, rows)
    # else nothing was there that could have been left
    is_tried = all(n_whole >= n / 4 for _, n, n_whole, *_ in rows)
    is_good = is_tried and not any(row[-1] for row in rows)
    print(f"no process is left: {verdict(is_good)}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
