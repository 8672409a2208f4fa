"""Events to listeners over cut connections and killed servers: two servers over one store, each
event once and in the order of its objective."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Event, Limits, ObjectiveSpec, Role
from babyagi.taskstore.sql.store import TaskStore, open_postgres
from babyagi.taskstore.sqlite import open_sqlite
from support.postgres_server import PostgresServer
from support.processes import Process, environ, start
from support.table import print_table, verdict

TOKEN = "e" * 32
N_OBJECTIVES = 3
N_WRITERS = 2
PAUSE_S = 0.002
BEGIN_TIMEOUT_S = 300.0  # on a machine that does much else
END_TIMEOUT_S = 60.0


@dataclass(slots=True)
class Server:
    """A server that is started anew when it was killed, at an address of its own each time."""

    env: dict[str, str]
    process: Process | None = None
    port: int = 0

    async def start(self) -> None:
        self.process = await start("serve", "--no-work", "--port", "0", env=self.env, is_mute=True)
        assert self.process.stdout is not None
        async with asyncio.timeout(BEGIN_TIMEOUT_S):
            while b"The board is at" not in (line := await self.process.stdout.readline()):
                assert line, "the server has ended"
        url = line.decode().split("The board is at ")[1].partition(";")[0]
        self.port = urlsplit(url).port or 0

    async def kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        self.port = 0


@dataclass(slots=True)
class Listener:
    """Follows the events of one objective, or of all where that is 0, through whichever server
    answers."""

    objective_id: int
    last_id: str = "0"
    got: list[tuple[int, int]] = field(default_factory=list)  # objective and id
    n_cuts: int = 0

    @property
    def path(self) -> str:
        return f"/objectives/{self.objective_id}/events" if self.objective_id else "/events"

    async def follow(self, servers: Sequence[Server], chance: random.Random) -> None:
        while True:
            port = chance.choice(servers).port
            if not port:
                await asyncio.sleep(0.05)
                continue
            with suppress(OSError, asyncio.IncompleteReadError, ValueError):
                await self._read(port, n=chance.randrange(1, 40))
            self.n_cuts += 1

    async def _read(self, port: int, *, n: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            head = (
                f"GET /api/v1{self.path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
                f"authorization: Bearer {TOKEN}\r\nlast-event-id: {self.last_id}\r\n\r\n"
            )
            writer.write(head.encode())
            id_ = ""
            while n:
                line = await reader.readline()
                if not line.endswith(b"\n"):
                    return  # cut in the middle of a line, which comes again
                if line.startswith(b"id: "):
                    id_ = line[4:].decode().strip()
                elif line.startswith(b"data: ") and id_:
                    said = json.loads(line[6:])
                    blank = (await reader.readline()).strip(b"\r\n")
                    if blank:
                        return
                    self.got.append((said["objective_id"], said["id"]))
                    self.last_id = id_
                    n -= 1
        finally:
            writer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    n_events: int
    n_cuts: int
    n_kills: int
    faults: list[str]


async def campaign(
    store: TaskStore, env: dict[str, str], *, n_cuts: int, n_kills: int, seed: int
) -> Outcome:
    """Write events, cut and kill, until there were as many; then see what each listener got."""
    chance = random.Random(seed)
    ids = [await _create(store, n) for n in range(N_OBJECTIVES)]
    servers = [Server(env=env), Server(env=env)]
    listeners = [Listener(objective_id=one) for one in (*ids, 0, 0)]
    try:
        for server in servers:
            await server.start()
        tasks = [asyncio.ensure_future(one.follow(servers, chance)) for one in listeners]
        tasks += [asyncio.ensure_future(_write(store, ids, n)) for n in range(N_WRITERS)]
        killed = 0
        while killed < n_kills or sum(one.n_cuts for one in listeners) < n_cuts:
            await asyncio.sleep(chance.uniform(0.2, 1.0))
            if killed < n_kills:
                server = servers[killed % len(servers)]
                await server.kill()
                await server.start()
                killed += 1
        for task in tasks[len(listeners) :]:
            task.cancel()
        await asyncio.gather(*tasks[len(listeners) :], return_exceptions=True)
        written = {one: await _all_events(store, one) for one in ids}
        await _until_all_are_read(listeners, written)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        for server in servers:
            await server.kill()
    return Outcome(
        n_events=sum(map(len, written.values())),
        n_cuts=sum(one.n_cuts for one in listeners),
        n_kills=killed,
        faults=[fault for one in listeners for fault in _judge(one, written)],
    )


def _judge(listener: Listener, written: dict[int, list[int]]) -> list[str]:
    wanted = [listener.objective_id] if listener.objective_id else list(written)
    faults = []
    for objective_id in wanted:
        got = [id_ for one, id_ in listener.got if one == objective_id]
        if got == written[objective_id]:
            continue
        lost = len(set(written[objective_id]) - set(got))
        doubled = len(got) - len(set(got))
        faults.append(f"{listener.path}, objective {objective_id}: {lost} lost, {doubled} doubled")
    return faults


async def _until_all_are_read(listeners: Sequence[Listener], written: dict[int, list[int]]) -> None:
    n_all = sum(map(len, written.values()))
    with suppress(TimeoutError):
        async with asyncio.timeout(END_TIMEOUT_S):
            for one in listeners:
                n = len(written[one.objective_id]) if one.objective_id else n_all
                while len(one.got) < n:
                    await asyncio.sleep(0.05)


async def _create(store: TaskStore, n: int) -> int:
    spec = ObjectiveSpec(
        text=f"Objective {n}",
        initial_task="Begin",
        limits=Limits(),
        model_by_role=dict.fromkeys(Role, "rehearsal"),
        embedding_space="hash",
        prompt_version="1",
    )
    return (await store.create_objective(spec, uid=f"live{n}"))[0].id


async def _write(store: TaskStore, ids: Sequence[int], n: int) -> None:
    chance = random.Random(n)
    while True:
        await store.append_event(chance.choice(ids), kind="x.happened", data={"by": n})
        await asyncio.sleep(PAUSE_S)


async def _all_events(store: TaskStore, objective_id: int) -> list[int]:
    found: list[Event] = []
    while page := await store.events(objective_id, after_id=found[-1].id if found else 0):
        found += page
    return [event.id for event in found]


async def run(folder: Path, name: str, *, n_cuts: int, n_kills: int, seed: int) -> Outcome:
    """The campaign on a store of this name, in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    home.mkdir()
    async with open_store(name, home) as (store, more):
        env = environ(
            home,
            LLM_MODEL="rehearsal",
            BABYAGI_EMBEDDING_MODEL="hash",
            BABYAGI_SERVE_TOKEN=TOKEN,
            **more,
        )
        return await campaign(store, env, n_cuts=n_cuts, n_kills=n_kills, seed=seed)


@asynccontextmanager
async def open_store(name: str, home: Path) -> AsyncIterator[tuple[TaskStore, dict[str, str]]]:
    offload = ThreadOffload()
    server = PostgresServer() if name == "postgresql" else None
    try:
        if server is None:
            store: TaskStore = await open_sqlite(
                home / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload
            )
            more: dict[str, str] = {}
        else:
            server.start()
            server.run("CREATE DATABASE live")
            store = await open_postgres(server.url("live"), offload=offload)
            more = {"BABYAGI_TASK_STORE": server.url("live")}
        yield store, more
        await store.close()
    finally:
        offload.close()
        if server is not None:
            server.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows, faults = [], list[str]()
    with tempfile.TemporaryDirectory() as name:
        for store in ("sqlite", "postgresql"):
            found = asyncio.run(
                run(
                    Path(name) / store,
                    store,
                    n_cuts=given.cuts,
                    n_kills=given.kills,
                    seed=given.seed,
                )
            )
            said = verdict(not found.faults)
            rows.append((store, found.n_events, found.n_cuts, found.n_kills, "0 faults", said))
            faults += found.faults
    print_table("Live events", ("store", "events", "cuts", "kills", "goal", ""), rows)
    for fault in faults:
        print(fault)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
