"""The door of the server: attacks letter by letter, and random requests made from the document of
the API, against a real server on a home with something in it."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis.errors import Unsatisfiable

from support.door_attacks import MARK, attacks
from support.processes import environ, start
from support.served import Served, serving
from support.table import print_table, verdict

TICK_S = 0.01
N_HALF_OPEN = 400
WRONG = (500, 501, 502, 503, 504)
NOWHERE = "http://127.0.0.1:9/v1"


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
    folder.mkdir(parents=True, exist_ok=True)
    env = environ(
        folder / "home",
        LLM_MODEL="rehearsal",
        BABYAGI_EMBEDDING_MODEL="hash",
        BABYAGI_SERVE_TOKEN=token,
        OPENAI_API_BASE=NOWHERE,
    )
    process = await start("serve", "--no-work", "--port", "0", env=env, is_mute=True)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(300):
            while b"The board is at" not in (line := await process.stdout.readline()):
                assert line, "the server has ended"
        url = line.decode().split("The board is at ")[1].partition(";")[0]
        return await asyncio.to_thread(_ask_at_random, url, token, n_requests, seed)
    finally:
        process.kill()
        await process.wait()


def _ask_at_random(url: str, token: str, n_requests: int, seed: int) -> Fuzzed:
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from schemathesis.core.failures import FailureGroup
    from schemathesis.core.result import Ok
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi.checks import response_schema_conformance

    head = {"authorization": f"Bearer {token}"}
    faults: list[str] = []
    statuses: Counter[int] = Counter()
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json", headers=head)
    found = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    # a stream does not end, and an objective that is gone is asked for in vain
    operations = [one for one in found if "events" not in one.path and one.method != "delete"]
    n_each = -(-n_requests // (2 * len(operations)))

    def ask(case: schemathesis.Case[Any]) -> None:
        reply = case.call(base_url=url, headers=head, timeout=30.0)
        statuses[reply.status_code] += 1
        if reply.status_code in WRONG or MARK in reply.text:
            faults.append(f"{case.method} {case.formatted_path} gave {reply.status_code}")
        try:
            case.validate_response(reply, checks=[response_schema_conformance])
        except FailureGroup as error:
            why = str(error.exceptions[0]).partition("\n\n")[0]
            faults.append(f"{case.method} {case.path} is not as the document says: {why}")

    once = settings(
        max_examples=n_each,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for operation in operations:
        for mode in GenerationMode:
            with suppress(Unsatisfiable):  # there is nothing wrong that could be sent
                seeded(seed)(once(given(case=operation.as_strategy(generation_mode=mode))(ask)))()
    return Fuzzed(n_requests=sum(statuses.values()), faults=faults, n_by_status=statuses)


async def attack(folder: Path) -> tuple[int, list[str], float]:
    """Every attack of the list, one after the other: how many, those that got a wrong answer, and
    the most processor time that the loop took within a tick, in seconds: for so long it would have
    stood still on a machine that does nothing else."""
    async with serving(folder / "home") as served:
        wrong, longest_s = [], 0.0

        async def watch() -> None:
            nonlocal longest_s
            while True:
                began_s = time.thread_time()
                await asyncio.sleep(TICK_S)
                longest_s = max(longest_s, time.thread_time() - began_s)

        watching = asyncio.ensure_future(watch())
        n = 0
        for one in attacks(served):
            reply = await served.send(one.raw)
            n += 1
            if reply.status not in one.right or MARK in reply.text:
                wrong.append(f"{one.name}: {reply.status}")
        wrong += await _flood(served)
        watching.cancel()
    return n, wrong, longest_s


async def _flood(served: Served) -> list[str]:
    """400 half-open connections: who asks is answered meanwhile."""
    opened = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(N_HALF_OPEN)]
    try:
        for _, writer in opened:
            writer.write(b"GET / HTTP/1.1\r\nhost: ")
        reply = await served.ask("GET", "/api/v1/workers")
        return [] if reply.status == 200 else [f"beside half-open connections: {reply.status}"]
    finally:
        for _, writer in opened:
            writer.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        n_attacks, wrong, longest_s = asyncio.run(attack(Path(name) / "attacked"))
        found = fuzz(Path(name) / "fuzzed", n_requests=given.requests, seed=given.seed)
    statuses = ", ".join(f"{status}: {n}" for status, n in sorted(found.n_by_status.items()))
    rows = [
        ("attacks", n_attacks, len(wrong), "0 wrong", verdict(not wrong)),
        ("random requests", found.n_requests, len(found.faults), "0", verdict(not found.faults)),
    ]
    print_table("The door", ("what", "how often", "wrong", "goal", ""), rows)
    for line in (*wrong, *found.faults):
        print(line)
    print(f"statuses {statuses}; the loop worked for {longest_s * 1000:.0f} ms at most in one go")
    return int(bool(wrong or found.faults))


if __name__ == "__main__":
    sys.exit(main())
