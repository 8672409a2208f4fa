"""Stopping real runs at random instants: SIGTERM drains in its time, a second one stops at once,
and after a pause nothing is asked.

The runs talk to a local server over real sockets, which counts what arrives and when. Half of the
calls in flight end soon, the others never do.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from babyagi.runtime.offload import run_inline
from babyagi.tasks import ObjectiveStatus
from babyagi.taskstore.sqlite import open_sqlite
from support.local_server import LocalServer
from support.processes import Process, babyagi, environ, finish, rows, start, write_documents
from support.table import print_table, verdict

DRAIN_S = 1.5
MAX_OVER_S = 0.5
MAX_SECOND_S = 1.0
MAX_PAUSE_S = 1.0
SOON_S, NEVER_S = 0.2, 300.0
OBJECTIVE = "What do the documents say about large stores?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One stop: how long it took, what the process ended with, and how many calls came in after it
    that should not have."""

    took_s: float
    code: int | None
    n_late: int
    n_in_flight: int = 0


@asynccontextmanager
async def _running(
    folder: Path, server: LocalServer, *, n_requests: int
) -> AsyncIterator[tuple[Process, Mapping[str, str]]]:
    """A run in a home of its own that has sent as many requests; it is killed at the end when it
    still lives."""
    home = Path(tempfile.mkdtemp(dir=folder)) / "home"
    env = environ(
        home,
        server.base_url,
        BABYAGI_FILES=str(folder / "docs"),
        BABYAGI_CONCURRENCY="3",
        SUPPORT_DEFAULTS=f"drain_s={DRAIN_S}",
        BABYAGI_EMBEDDING_MODEL="hash",
        OPENAI_API_KEY="sk-test",
    )
    server.reset()
    process = await start("run", OBJECTIVE, "-t", "Look around", env=env)
    try:
        # it is another process that we wait for
        while len(server.requests) < n_requests and process.returncode is None:
            await asyncio.sleep(0.005)
        yield process, env
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def drain(
    folder: Path, server: LocalServer, chance: random.Random, *, n_signals: int = 1
) -> Stop:
    """Send SIGTERM at a random instant of a run, once or twice; the time counts from the last
    one."""
    server.latency_s = SOON_S
    async with _running(folder, server, n_requests=chance.randint(1, 12)) as (process, env):
        server.latency_s = NEVER_S if n_signals == 2 else chance.choice((SOON_S, NEVER_S))
        await asyncio.sleep(chance.uniform(0.0, 0.5))
        for n in range(n_signals):
            began_s = time.monotonic()
            with suppress(ProcessLookupError):  # the first was enough
                process.send_signal(signal.SIGTERM)
            if n + 1 < n_signals:
                await asyncio.sleep(chance.uniform(0.05, 0.5))
        n_before = len(server.requests)
        ended = await finish(process, timeout_s=30)
        took_s = time.monotonic() - began_s
        home = Path(env["BABYAGI_HOME"])
        assert "Traceback" not in ended.said, ended.said
        assert rows(home, "SELECT id FROM task WHERE status = 'running' OR failures > 0") == []
        assert rows(home, "SELECT id FROM worker") == []
        # a call that was intended just before the signal may just be on its way
        n_late = max(0, len(server.requests) - n_before - 3)
        # a second signal may come while the process closes; a shell calls such a death 143 as well
        code = 128 - ended.code if ended.code < 0 else ended.code
        return Stop(took_s=took_s, code=code, n_late=n_late)


async def pause(
    folder: Path, server: LocalServer, chance: random.Random, *, by_command: bool
) -> Stop:
    """Pause a run at a random instant, by `babyagi pause` or through a store of our own, and watch
    what still arrives."""
    server.latency_s = SOON_S
    async with _running(folder, server, n_requests=chance.randint(1, 12)) as (process, env):
        # a command takes its time to start, in which a run whose calls end soon might end
        server.latency_s = NEVER_S if by_command else chance.choice((SOON_S, NEVER_S))
        await asyncio.sleep(chance.uniform(0.0, 0.5))
        home = Path(env["BABYAGI_HOME"])
        if by_command:
            began_s = time.monotonic()
            assert (await babyagi("pause", env=env)).code == 0
        else:
            store = await open_sqlite(
                home / "tasks.db", clock=lambda: datetime.now(UTC), offload=run_inline
            )
            began_s = time.monotonic()
            await store.switch_objective(1, to=ObjectiveStatus.PAUSED)
        took_s = time.monotonic() - began_s
        if not by_command:
            await store.close()
        (last,) = rows(home, "SELECT max(id) AS id FROM event WHERE kind = 'objective.paused'")
        n_in_flight = rows(home, "SELECT count(*) AS n FROM step WHERE is_held = 1")[0]["n"]
        n_intended = rows(
            home,
            (f"SELECT count(*) AS n FROM event WHERE kind = 'step.intended' AND id < {last['id']}"),
        )[0]["n"]
        await asyncio.sleep(1.5)
        n_late = max(0, len(server.requests) - n_intended)
        n_late += rows(
            home,
            (f"SELECT count(*) AS n FROM event WHERE kind = 'step.intended' AND id > {last['id']}"),
        )[0]["n"]
        return Stop(took_s=took_s, code=process.returncode, n_late=n_late, n_in_flight=n_in_flight)


async def measure(*, n: int, seed: int) -> dict[str, list[Stop]]:
    """`n` stops of each kind, each in a home of its own."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="stops-") as name:
        folder = Path(name)
        write_documents(folder / "docs", n_lines=500)
        async with LocalServer() as server:
            return {
                "SIGTERM": [await drain(folder, server, chance) for _ in range(n)],
                "second SIGTERM": [
                    await drain(folder, server, chance, n_signals=2) for _ in range(n)
                ],
                "pause in the store": [
                    await pause(folder, server, chance, by_command=False) for _ in range(n)
                ],
                "babyagi pause": [
                    await pause(folder, server, chance, by_command=True) for _ in range(n)
                ],
            }


GOAL_S = {
    "SIGTERM": DRAIN_S + MAX_OVER_S,
    "second SIGTERM": MAX_SECOND_S,
    "pause in the store": MAX_PAUSE_S,
    "babyagi pause": None,
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.stops", description=__doc__)
    parser.add_argument(
        "--instants", type=int, default=20, help="random instants of each kind of stop"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)
    stops_by_kind = asyncio.run(measure(n=options.instants, seed=options.seed))
    table, is_met = [], True
    for kind, stops in stops_by_kind.items():
        goal_s, slowest_s, n_late = (
            GOAL_S[kind],
            max(stop.took_s for stop in stops),
            sum(stop.n_late for stop in stops),
        )
        is_met = is_met and n_late == 0 and (goal_s is None or slowest_s <= goal_s)
        codes = " ".join(sorted({str(stop.code) for stop in stops}))
        n_in_flight = sum(stop.n_in_flight > 0 for stop in stops)
        table.append(
            (
                kind,
                len(stops),
                n_in_flight or "",
                f"{slowest_s:.2f}",
                "" if goal_s is None else f"{goal_s:g}",
                n_late,
                codes,
            )
        )
    print_table(
        "Stops",
        (
            "by",
            "instants",
            "with calls in flight",
            "slowest s",
            "goal s",
            "calls after it",
            "exit codes",
        ),
        table,
    )
    print(f"in time, and no call after it: {verdict(is_met)} (a drain may take {DRAIN_S:g} s here)")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
