"""How soon an event reaches those who listen to a server, and what a server costs that nobody looks
at.

Events are committed here, in another process than the server's; a wait is from the return of the
commit to the arrival at one of the listeners. The server does not work. On SQLite.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from urllib.parse import urlsplit

from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Limits, ObjectiveSpec, Role
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from support.processes import environ, start
from support.table import print_table, verdict

TOKEN = "b" * 32
GOAL_S = 0.1
GOAL_IDLE_PERCENT = 1.0
PAUSE_S = 0.2
BEGIN_TIMEOUT_S = 60.0
ARRIVAL_TIMEOUT_S = 30.0
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def open_server(home: Path) -> AsyncIterator[tuple[int, int]]:
    """A server on the home: its port, and its process id."""
    env = environ(
        home,
        LLM_MODEL="rehearsal",
        BABYAGI_EMBEDDING_MODEL="hash",
        BABYAGI_SERVE_TOKEN=TOKEN,
    )
    process = await start("serve", "--no-work", "--port", "0", env=env, is_mute=True)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(BEGIN_TIMEOUT_S):
            while b"The board is at" not in (line := await process.stdout.readline()):
                assert line, "the server has ended"
        url = line.decode().split("The board is at ")[1].partition(";")[0]
        yield urlsplit(url).port or 0, process.pid
    finally:
        process.kill()
        await process.wait()


class Listener:
    """Keeps when each event arrived, by its number."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed
        self.arrived_s_by_n: dict[int, float] = {}
        self.is_listening = asyncio.Event()

    async def listen(self, port: int, objective_id: int) -> None:
        loop = asyncio.get_running_loop()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        path = f"/api/v1/objectives/{objective_id}/events"
        head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {TOKEN}"
        writer.write(f"{head}\r\n\r\n".encode())
        try:
            while line := await reader.readline():
                if line.startswith(b": listening"):
                    self.is_listening.set()
                if line.startswith(b"data: "):
                    n = json.loads(line[6:])["data"].get("n")
                    self.arrived_s_by_n[n] = loop.time()
                    self._changed.set()
        finally:
            writer.close()


async def time_events(
    store: TaskStore, port: int, objective_id: int, *, n_listeners: int, n_events: int
) -> list[float]:
    """Seconds from a commit to each arrival of its event."""
    changed = asyncio.Event()
    listeners = [Listener(changed) for _ in range(n_listeners)]
    tasks = [asyncio.ensure_future(one.listen(port, objective_id)) for one in listeners]
    loop = asyncio.get_running_loop()
    waits_s: list[float] = []
    try:
        async with asyncio.timeout(BEGIN_TIMEOUT_S):
            for one in listeners:
                await one.is_listening.wait()
        for n in range(n_events):
            await store.append_event(objective_id, kind="x.happened", data={"n": n})
            committed_s = loop.time()
            async with asyncio.timeout(ARRIVAL_TIMEOUT_S):
                while any(n not in one.arrived_s_by_n for one in listeners):
                    changed.clear()
                    await changed.wait()
            waits_s += [one.arrived_s_by_n[n] - committed_s for one in listeners]
            await asyncio.sleep(PAUSE_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return waits_s


async def measure_idle_percent(pid: int, *, idle_s: float) -> float:
    before_s = _processor_s(pid)
    await asyncio.sleep(idle_s)
    return 100 * (_processor_s(pid) - before_s) / idle_s


def _processor_s(pid: int) -> float:
    """Seconds of the processor that the process took, of its own and of the system."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


async def _create(store: TaskStore) -> int:
    spec = ObjectiveSpec(
        text="Objective",
        initial_task="Begin",
        limits=Limits(),
        model_by_role=dict.fromkeys(Role, "rehearsal"),
        embedding_space="hash",
        prompt_version="1",
    )
    return (await store.create_objective(spec, uid="events"))[0].id


async def run(
    folder: Path, *, n_listeners: int, n_events: int, idle_s: float
) -> tuple[list[float], float]:
    """The waits in seconds, and what the server took while nobody listened, in percent of a
    core."""
    home = folder / "home"
    home.mkdir()
    offload = ThreadOffload()
    try:
        store = await open_sqlite(
            home / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload
        )
        objective_id = await _create(store)
        async with open_server(home) as (port, pid):
            waits_s = await time_events(
                store, port, objective_id, n_listeners=n_listeners, n_events=n_events
            )
            await asyncio.sleep(1)  # the last listeners are gone
            percent = await measure_idle_percent(pid, idle_s=idle_s)
        await store.close()
    finally:
        offload.close()
    return waits_s, percent


def _quantile_s(waits_s: list[float], part: float) -> float:
    return sorted(waits_s)[ceil(len(waits_s) * part) - 1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listeners", type=int, default=100)
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--idle-s", type=float, default=30.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        waits_s, percent = asyncio.run(
            run(
                Path(name),
                n_listeners=given.listeners,
                n_events=given.events,
                idle_s=given.idle_s,
            )
        )
    half_s, most_s = _quantile_s(waits_s, 0.5), _quantile_s(waits_s, 0.95)
    goal, idle_goal = f"{GOAL_S * 1000:.0f} ms", f"{GOAL_IDLE_PERCENT:g} %"
    rows = [
        (f"commit to {given.listeners} listeners, p50", f"{half_s * 1000:.0f} ms", "", ""),
        ("the same, p95", f"{most_s * 1000:.0f} ms", goal, verdict(most_s <= GOAL_S)),
        (
            "processor of a server that nobody looks at",
            f"{percent:.2f} %",
            idle_goal,
            verdict(percent <= GOAL_IDLE_PERCENT),
        ),
    ]
    print_table("Events of the server", ("what", "measured", "goal", ""), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
