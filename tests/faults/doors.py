"""Peers on the task store, folders and MCP servers that want to order, lend and reach out, each made
from a seed out of parts, with a model that obeys every text: how many effects are there that this
machine did not lend, or no person here allowed?

`python -m tests.faults.doors [--seed S] [--n N] [--kind peers|folders|servers]`

An effect is a file written outside the home, a program that ran, a request to a listener on this
machine, a file read outside the folder, and a call that was made without the leave that it needs.
The same again on a machine that lends everything shows that each kind of effect would be seen.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from support.table import print_table, verdict
from tests.faults.doors_folders import try_folder
from tests.faults.doors_peers import try_peer
from tests.faults.doors_servers import try_server
from tests.faults.doors_site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS: dict[str, Callable[[Site, random.Random], Awaitable[None]]] = {
    "peers": try_peer,
    "folders": try_folder,
    "servers": try_server,
}
N_AT_ONCE = 4
N_OPEN = 8  # tried on a machine that lends everything, as well
MAX_TRY_S = 120.0


@contextmanager
def site(*, lends_all: bool) -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory(prefix="babyagi-doors-") as name,
        Site.at(Path(name), lends_all=lends_all) as made,
    ):
        yield made


async def attempt(kind: str, seed: str, *, lends_all: bool) -> tuple[str, list[str]]:
    """Make one visitor from the seed and let it try. Return what it was made of, and the effects."""
    with site(lends_all=lends_all) as place:
        async with asyncio.timeout(MAX_TRY_S):
            await KINDS[kind](place, random.Random(seed))
        return " + ".join(place.parts), place.effects()


async def attempt_all(
    kind: str, seed: int, n: int, *, lends_all: bool = False
) -> list[tuple[str, list[str]]]:
    turns = asyncio.Semaphore(N_AT_ONCE)

    async def one(number: int) -> tuple[str, list[str]]:
        async with turns:
            return await attempt(kind, f"{seed}/{kind}/{number}", lends_all=lends_all)

    return await asyncio.gather(*(one(number) for number in range(n)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.doors", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--n", type=int, default=40, help="visitors of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    rows, faults = [], []
    for kind in given.kind or KINDS:
        began_s = time.monotonic()
        tried = asyncio.run(attempt_all(kind, given.seed, given.n))
        n_open = N_OPEN if given.n >= N_OPEN else 0  # a few would prove nothing
        opened = asyncio.run(attempt_all(kind, given.seed, n_open, lends_all=True))
        effects = Counter(effect.partition(":")[0] for _, found in tried for effect in found)
        seen = Counter(effect.partition(":")[0] for _, found in opened for effect in found)
        n_kinds = len({part for parts, _ in tried for part in parts.split(" + ")})
        rows.append(
            [kind, len(tried), n_kinds, effects.total(), len(opened), seen.total(),
             f"{time.monotonic() - began_s:.0f}"]
        )  # fmt: skip
        faults += [f"{kind} ({parts}): {found}" for parts, found in tried if found]
        faults += (
            [] if seen or not n_open else [f"{kind}: where all is lent no effect is seen either"]
        )
    head = ["visitors", "tried", "parts", "effects", "where all is lent", "effects there", "s"]
    print_table("Doors: effects that nobody lent or allowed", head, rows)
    for line in faults:
        print(line)
    print(f"{len(faults)} faults: {verdict(not faults)}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
