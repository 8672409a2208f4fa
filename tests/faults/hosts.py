"""Two hosts share an objective of 200 tasks in PostgreSQL, while links are cut and the server
stops: each task is done once.

The hosts, the server and the model are apart as `network.py` says. Each host runs one worker with a
lease of 3 s. What happens, happens when a quarter of the tasks are done. What is said of each: the
store, its events, and what the model server counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from support.board import LEASE_S, WAITING, Board, Found, WorkerProcess, open_board
from support.postgres_server import PostgresServer
from support.table import print_table, verdict
from tests.faults.network import HOSTS, SERVER, Forwarders, Network, choose_network

N_TASKS = 200
LATENCY_S = 0.6
SURVEY = 1
# a transaction of the one that is cut off may hold the others up for 10 s, and then they wait for
# each other
CUT_S = 25.0
OUTAGE_S = 30.0
HANG_S = 120.0
DURABLE = ("fsync=on", "full_page_writes=on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happens to the hosts; returns when it is over."""

    name: str
    happens: Callable[[Network, PostgresServer], Awaitable[None]]
    n_lost_workers: int = 0  # those that have to come back under a new id


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of one objective. `again_s` is the time from the end of the event to the next
    finished task."""

    event: Event
    took_s: float
    again_s: float
    n_by_host: Mapping[str, int]
    n_ids_by_host: Mapping[str, int]
    found: Found
    trouble: str

    @property
    def is_good(self) -> bool:
        came_back = sum(n - 1 for n in self.n_ids_by_host.values()) >= self.event.n_lost_workers
        return (
            self.found.is_whole
            and self.found.n_failures == 0
            and came_back
            and all(self.n_by_host.values())
            and not self.trouble
        )


async def nothing(network: Network, server: PostgresServer) -> None:
    """A calm day."""


async def cut_host(network: Network, server: PostgresServer, *, for_s: float = CUT_S) -> None:
    network.cut(HOSTS[0])
    await asyncio.sleep(for_s)
    network.restore(HOSTS[0])


async def stop_server(network: Network, server: PostgresServer, *, for_s: float = OUTAGE_S) -> None:
    await asyncio.to_thread(server.stop, "immediate")
    await asyncio.sleep(for_s)
    await asyncio.to_thread(server.start)


async def cut_server(network: Network, server: PostgresServer, *, for_s: float = OUTAGE_S) -> None:
    network.cut(SERVER)
    await asyncio.sleep(for_s)
    network.restore(SERVER)


EVENTS = {
    "calm": Event(name="nothing", happens=nothing),
    "host": Event(name=f"one host cut off for {CUT_S:g} s", happens=cut_host, n_lost_workers=1),
    "stop": Event(name=f"PostgreSQL stopped for {OUTAGE_S:g} s", happens=stop_server),
    "silence": Event(name=f"PostgreSQL silent for {OUTAGE_S:g} s", happens=cut_server),
}


async def run_once(
    network: Network,
    server: PostgresServer,
    store_url: str,
    event: Event,
    *,
    n_tasks: int = N_TASKS,
) -> Seen:
    """One objective, and one event while it is worked on."""
    async with open_board(store_url, host=network.model_host, is_timed=False) as board:
        board.model.latency_s = LATENCY_S
        workers = []
        for host in HOSTS:
            addresses = await network.addresses(
                host, store_url=store_url, model_url=board.server.base_url
            )
            workers.append(
                await board.start(
                    f"host-{host}", "worker", env=addresses, prefix=network.prefix(host)
                )
            )
        await board.until(
            lambda: all(WAITING in worker.said for worker in workers), timeout_s=HANG_S
        )
        objective_id, began_s = await board.submit(SURVEY, n_tasks), time.monotonic()
        await board.until(lambda: board.n_done(objective_id) >= n_tasks / 4, timeout_s=HANG_S)
        await event.happens(network, server)
        over_s, n_before = time.monotonic(), board.n_done(objective_id)
        await board.until(lambda: board.n_done(objective_id) > n_before, timeout_s=HANG_S)
        again_s = time.monotonic() - over_s
        await board.until(lambda: board.is_over(objective_id), timeout_s=HANG_S, every_s=0.1)
        took_s = time.monotonic() - began_s
        for worker in workers:
            worker.send(signal.SIGTERM)
        codes = [await worker.wait(300) for worker in workers]
        ids = claimed_by(board, objective_id)
        return Seen(
            event=event,
            took_s=took_s,
            again_s=again_s,
            n_by_host={
                worker.name: sum(one.startswith(f"{worker.name}-") for one in ids)
                for worker in workers
            },
            n_ids_by_host={
                worker.name: len({one for one in ids if one.startswith(f"{worker.name}-")})
                for worker in workers
            },
            found=board.look_over(objective_id, SURVEY),
            trouble=trouble_of(workers, codes),
        )


def claimed_by(board: Board, objective_id: int) -> list[str]:
    """The worker id of each claim of a task."""
    found = board.rows(
        f"SELECT data FROM event WHERE objective_id = {objective_id} AND kind = 'task.claimed'"
    )
    return [json.loads(row["data"])["worker_id"] for row in found]


def trouble_of(workers: Sequence[WorkerProcess], codes: Sequence[int | None]) -> str:
    bad = [
        f"{worker.name} ended with {code}"
        for worker, code in zip(workers, codes, strict=True)
        if code != 128 + signal.SIGTERM
    ]
    return "; ".join(
        (*bad, *(worker.said[-2000:] for worker in workers if "Traceback" in worker.said))
    )


async def measure(network: Network, names: Sequence[str], *, n_tasks: int) -> list[Seen]:
    seen = []
    async with network:
        server = network.open_postgres(*DURABLE)
        try:
            server.start()
            for name in names:
                server.run(f"CREATE DATABASE {name}")
                seen.append(
                    await run_once(network, server, server.url(name), EVENTS[name], n_tasks=n_tasks)
                )
                if not seen[-1].is_good:
                    print(seen[-1], file=sys.stderr)
        finally:
            for place in (*HOSTS, SERVER):
                network.restore(place)
            server.close()
    return seen


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.hosts", description=__doc__)
    parser.add_argument("--tasks", type=int, default=N_TASKS)
    parser.add_argument(
        "--event", choices=sorted(EVENTS), action="append", help="default: all of them"
    )
    parser.add_argument(
        "--no-namespaces",
        action="store_true",
        help="forwarders at two addresses, as where namespaces are not allowed",
    )
    options = parser.parse_args(argv)
    network = Forwarders() if options.no_namespaces else choose_network()
    if isinstance(network, Forwarders) and not options.no_namespaces:
        print(
            (
                "network namespaces are not allowed here (they take root): two addresses stand "
                "in for two hosts"
            ),
            file=sys.stderr,
        )
    seen = asyncio.run(measure(network, options.event or list(EVENTS), n_tasks=options.tasks))
    rows = [
        (
            one.event.name,
            one.found.n_done,
            one.found.n_lost,
            one.found.n_doubled,
            one.found.n_failures,
            one.found.n_asked_again,
            " + ".join(str(n) for n in one.n_by_host.values()),
            " + ".join(str(n) for n in one.n_ids_by_host.values()),
            f"{one.again_s:.1f}",
            f"{one.took_s:.1f}",
        )
        for one in seen
    ]
    head = (
        "what happened",
        "done",
        "lost",
        "doubled",
        "failures",
        "asked twice",
        "claims",
        "ids",
        "on again s",
        "whole s",
    )
    print_table(
        (f"{options.tasks} tasks, two hosts ({network.name}), PostgreSQL, leases of {LEASE_S:g} s"),
        head,
        rows,
    )
    print(
        "each task done once, and no failure for what the store was away: "
        f"{verdict(all(one.is_good for one in seen))}"
    )
    return 0 if all(one.is_good for one in seen) else 1


if __name__ == "__main__":
    sys.exit(main())
