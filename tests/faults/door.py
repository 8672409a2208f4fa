"""The door of the server: attacks letter by letter, and random requests made from the document of
the API, against a real server on a home with something in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from support.door_attacks import MARK
from support.processes import environ, start

SLOWEST_LOOP_S = 0.1
TICK_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuzzed:
    """How many requests were made, and what came back that should not."""

    n_requests: int
    faults: list[str]
    n_by_status: Counter[int]


def fuzz(folder: Path, *, n_requests: int, seed: int) -> Fuzzed:
    """Random requests, as many or more, to a server in a process of its own."""
    return asyncio.run(_fuzz(folder, n_requests=n_requests, seed=seed))


async def _fuzz(folder: Path, *, n_requests: int, seed: int) -> Fuzzed:
    token = "f" * 32
    env = environ(
        folder / "home",
        LLM_MODEL="rehearsal",
        BABYAGI_EMBEDDING_MODEL="hash",
        BABYAGI_SERVE_TOKEN=token,
    )
    process = await start("serve", "--no-work", "--port", "0", env=env)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            while b"The board is at" not in (line := await process.stdout.readline()):
                assert line, "the server has ended"
        url = line.decode().split("The board is at ")[1].partition(";")[0]
        return await asyncio.to_thread(_ask_at_random, url, token, n_requests, seed)
    finally:
        process.kill()
        await process.wait()


def _ask_at_random(url: str, token: str, n_requests: int, seed: int) -> Fuzzed:
    import httpx2
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    head = {"authorization": f"Bearer {token}"}
    faults: list[str] = []
    statuses: Counter[int] = Counter()
    with httpx2.Client(base_url=url, headers=head, timeout=30.0, trust_env=False) as client:
        document = client.get("/api/v1/openapi.json").json()
        client.post("/api/v1/objectives", json={"objective": "Know it"})
        schema = schemathesis.openapi.from_dict(document)
        operations = [
            found.ok() for found in schema.get_all_operations() if "events" not in found.ok().path
        ]
        n_each = -(-n_requests // len(operations))

        for operation in operations:

            @seeded(seed)
            @settings(
                max_examples=n_each,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy())
            def ask(case: schemathesis.Case) -> None:
                said = case.as_transport_kwargs(base_url=url)
                request = _build(client, said)
                if request is None:
                    return
                reply = client.send(request)
                statuses[reply.status_code] += 1
                if reply.status_code == 500 or MARK in reply.text:
                    faults.append(f"{request.method} {request.url} gave {reply.status_code}")

            ask()
        alive = client.get("/healthz").status_code
    if alive != 200:
        faults.append(f"/healthz gave {alive} in the end")
    return Fuzzed(n_requests=sum(statuses.values()), faults=faults, n_by_status=statuses)


def _build(client: object, said: dict[str, object]) -> object | None:
    """The request, None where it cannot even be written."""
    raise NotImplementedError
