"""POST requests with an idempotency key to two servers over one store, which are killed while they
carry them out: each takes effect once, and gets its first answer again however often it is sent.

`python -m tests.faults.keys [--kills N] [--store sqlite|postgresql] [--seed S]`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from babyagi.taskstore.sql.store import TaskStore
from support.processes import environ
from support.table import print_table, verdict
from tests.faults.live_events import TOKEN, Server, open_store

N_AT_ONCE = 6
MAX_KILL_S = 0.04  # after the requests of a round were sent
ANSWER_S = 60.0
Reply = tuple[int, str]
"""The status and the body of an answer."""


@dataclass(slots=True, kw_only=True)
class Keyed:
    """A request with its key, and every answer that it got."""

    key: str
    path: str
    body: dict[str, Any]
    replies: list[Reply] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    n_requests: int
    n_replies: int
    n_kills: int
    faults: list[str]


def make_request(number: int, chance: random.Random) -> Keyed:
    text = f"request {number}"
    objective = {"objective": text, "new": True}
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("/objectives", objective),
        ("/objectives/1/tasks", {"name": text}),
        ("/objectives/1/tasks", {"name": text, "first": True}),
        ("/schedules", {"objective": text, "every": "30d"}),
    ]
    path, body = chance.choice(kinds)
    return Keyed(key=f"key {number}", path=path, body=body)


async def send(request: Keyed, server: Server) -> None:
    """Send the request, and keep its answer, if a whole one comes."""
    if not server.port:
        return
    with suppress(OSError, ValueError, asyncio.IncompleteReadError, TimeoutError):
        async with asyncio.timeout(ANSWER_S):
            request.replies.append(await _post(request, server.port))


async def _post(request: Keyed, port: int) -> Reply:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        body = json.dumps(request.body).encode()
        head = (
            f"POST /api/v1{request.path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
            f"authorization: Bearer {TOKEN}\r\nidempotency-key: {request.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        said = await reader.readuntil(b"\r\n\r\n")
        lines = said.decode().lower().split("\r\n")
        n_bytes = next(int(one.split(":")[1]) for one in lines if one.startswith("content-length"))
        return int(lines[0].split()[1]), (await reader.readexactly(n_bytes)).decode()
    finally:
        writer.close()


async def campaign(
    store: TaskStore, env: dict[str, str], *, n_kills: int, chance: random.Random
) -> Found:
    servers = [Server(env=env), Server(env=env)]
    requests: list[Keyed] = []
    try:
        for server in servers:
            await server.start()
        first = Keyed(key="first", path="/objectives", body={"objective": "Begin", "new": True})
        await send(first, servers[0])
        for n in range(n_kills):
            made = [make_request(len(requests) + m, chance) for m in range(N_AT_ONCE)]
            requests += made
            await _strike(made, servers, servers[n % 2], chance)
        for server in servers:  # once more each: nothing is done again
            await asyncio.gather(*(send(one, server) for one in requests))
    finally:
        for server in servers:
            await server.kill()
    return Found(
        n_requests=len(requests),
        n_replies=sum(len(one.replies) for one in requests),
        n_kills=n_kills,
        faults=[fault for one in requests for fault in judge_replies(one)]
        + await judge_effects(store, requests),
    )


async def _strike(
    made: Sequence[Keyed], servers: Sequence[Server], victim: Server, chance: random.Random
) -> None:
    """Send the requests, some to both servers at once, kill one server meanwhile, and send to the
    other one what got no answer; then start the killed one again."""
    other = next(server for server in servers if server is not victim)
    sent = [
        asyncio.ensure_future(send(one, server))
        for one in made
        for server in chance.choice([(victim,), (victim,), (victim, other)])
    ]
    await asyncio.sleep(chance.uniform(0.0, MAX_KILL_S))
    await victim.kill()
    await asyncio.gather(*sent)
    await asyncio.gather(victim.start(), *(send(one, other) for one in made if not one.replies))


def judge_replies(request: Keyed) -> list[str]:
    kinds = Counter(request.replies)
    if not kinds:
        return [f"{request.key} to {request.path} got no answer"]
    if len(kinds) > 1 or next(iter(kinds))[0] != 201:
        return [f"{request.key} to {request.path} got {len(kinds)} answers: {list(kinds)[:2]}"]
    return []


async def judge_effects(store: TaskStore, requests: Sequence[Keyed]) -> list[str]:
    """Whether the store holds what each request asks for exactly once."""
    objectives = Counter(one.spec.text for one in await store.objectives())
    tasks = Counter(one.name for one in await store.tasks(1))
    schedules = Counter(one.spec.objective.text for one in await store.schedules())
    held = {"/objectives": objectives, "/objectives/1/tasks": tasks, "/schedules": schedules}
    faults = []
    for one in requests:
        n = held[one.path][str(one.body.get("name") or one.body.get("objective"))]
        faults += [f"{one.key} to {one.path} took effect {n} times"] * (n != 1)
    return faults


async def run(folder: Path, name: str, *, n_kills: int, seed: int) -> Found:
    home = folder / "home"
    home.mkdir(parents=True)
    async with open_store(name, home) as (store, more):
        env = environ(
            home,
            LLM_MODEL="rehearsal",
            BABYAGI_EMBEDDING_MODEL="hash",
            BABYAGI_SERVE_TOKEN=TOKEN,
            **more,
        )
        chance = random.Random(f"{seed}/{name}")
        return await campaign(store, env, n_kills=n_kills, chance=chance)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.keys", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), action="append")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rows, faults = [], list[str]()
    with tempfile.TemporaryDirectory() as name:
        for store in given.store or ("sqlite", "postgresql"):
            began_s = time.monotonic()
            found = asyncio.run(
                run(Path(name) / store, store, n_kills=given.kills, seed=given.seed)
            )
            counts = (found.n_requests, found.n_replies, found.n_kills, len(found.faults), "0")
            said = verdict(not found.faults)
            rows.append((store, *counts, said, f"{time.monotonic() - began_s:.0f}"))
            faults += [f"{store}: {fault}" for fault in found.faults]
    head = ("store", "requests", "answers", "crashes", "faults", "goal", "", "s")
    print_table("Requests with a key", head, rows)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults: {verdict(not faults)}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
