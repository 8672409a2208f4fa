"""Homes that the code of an earlier commit left, with each of the five indexes, are opened by this
code, and their objective goes on.

The old code begins an objective on eight documents and is killed when the first results are
stored. Then the same command is typed with this code, until the dead worker's lease has ended. It
must end the objective; no result may be lost or doubled, no recorded call repeated, and the index
must hold every result. Weaviate and Pinecone are the servers of the tests.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.commits import checked_out
from support.index_servers import INDEXES, find_ports, serving
from support.processes import DEFAULTS, Ended, babyagi, environ, look, rows, start, write_documents
from support.table import print_table, verdict

COMMITS = ("35507d87",)  # whose schema has the version before this one
OBJECTIVE = "Which stores are large?"
N_RESULTS = 3  # before the old code is killed
LEASE_S = 5
START_S = 120.0
TAKEOVER_S = 60.0
HEAD = ("old code", "index", "results before", "after", "lost", "doubled", "repaid", "not indexed")


def variables_of(index: str, ports: Sequence[int]) -> dict[str, str]:
    """The settings that choose this index at these ports."""
    url = f"http://127.0.0.1:{ports[0]}"
    more = {
        "chroma-server": {"CHROMA_URL": url},
        "weaviate": {
            "WEAVIATE_URL": url,
            DEFAULTS: f"weaviate_grpc_port={ports[1]}",
        },
        # the second is read by Pinecone's library alone
        "pinecone": {"PINECONE_API_KEY": "sk-test", "PINECONE_CONTROLLER_HOST": url},
    }
    return {"BABYAGI_RESULT_STORE": index.removesuffix("-server"), **more.get(index, {})}


async def begin(tree: Path, env: Mapping[str, str], documents: Path) -> None:
    """Run the objective with the old code, and kill it when the first results are stored."""
    own = {name: value for name, value in env.items() if name != DEFAULTS}
    if port := env.get(DEFAULTS, "").partition("weaviate_grpc_port=")[2]:
        own["BABYAGI_WEAVIATE_GRPC_PORT"] = port
    old = await start(*_run_line(documents), env={**own, "PYTHONPATH": str(tree)}, is_mute=True)
    try:
        deadline_s = time.monotonic() + START_S
        while len(_rows(env, "SELECT id FROM result")) < N_RESULTS:
            if old.returncode is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"the old code left no {N_RESULTS} results")
            await asyncio.sleep(0.002)
    finally:
        if old.returncode is None:
            old.kill()
        await old.wait()


async def go_on(env: Mapping[str, str], documents: Path) -> Ended:
    """Run the objective with this code, once the lease of the killed worker has ended."""
    deadline_s = time.monotonic() + TAKEOVER_S
    while True:
        ended = await babyagi(*_run_line(documents), env=env)
        if "cannot be upgraded now" not in ended.err or time.monotonic() > deadline_s:
            return ended
        await asyncio.sleep(1)


def _run_line(documents: Path) -> list[str]:
    return ["run", OBJECTIVE, "--files", str(documents)]


def _rows(env: Mapping[str, str], query: str) -> list[dict[str, Any]]:
    try:
        return rows(Path(env["BABYAGI_HOME"]), query)
    except sqlite3.OperationalError:  # the file is being made
        return []


def read_store(env: Mapping[str, str]) -> tuple[dict[int, str], dict[tuple[str, str], str]]:
    """The results by task, and the replies of recorded calls by owner and key."""
    results = _rows(env, "SELECT task_id, text FROM result")
    calls = _rows(env, "SELECT owner, key, output FROM step WHERE state = 'done'")
    replies = {(call["owner"], call["key"]): call["output"] for call in calls}
    return {result["task_id"]: result["text"] for result in results}, replies


async def campaign(commit: str, index: str) -> tuple[object, ...]:
    with checked_out(commit) as tree, TemporaryDirectory() as folder:
        documents = write_documents(Path(folder) / "documents")
        ports = find_ports()
        more = {"LLM_MODEL": "rehearsal", "BABYAGI_LEASE_S": str(LEASE_S)}
        env = environ(Path(folder) / "home", **{**more, **variables_of(index, ports)})
        with serving(index, Path(folder), ports):
            await begin(tree, env, documents)
            results, replies = read_store(env)
            ended = await go_on(env, documents)
            results_after, replies_after = read_store(env)
            checked = await look("store", "verify", "--index", env=env)
            n_objectives = len(await look("show", "objectives", env=env))
    lost = sum(results_after.get(task_id) != text for task_id, text in results.items())
    repaid = sum(replies_after.get(call) != reply for call, reply in replies.items())
    n_doubled = n_objectives - 1
    is_good = ended.code == lost == repaid == n_doubled == checked["n_owed"] == 0
    if not is_good:
        print(ended.said, checked, file=sys.stderr)
    return (
        commit,
        index,
        len(results),
        len(results_after),
        lost,
        n_doubled,
        repaid,
        checked["n_owed"],
        verdict(is_good),
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.old_homes", description=__doc__)
    parser.add_argument("--commits", nargs="+", default=COMMITS, help="of this repository")
    parser.add_argument("--indexes", choices=INDEXES, nargs="+", default=INDEXES)
    options = parser.parse_args(argv)
    found = [
        asyncio.run(campaign(commit, index))
        for commit in options.commits
        for index in options.indexes
    ]
    print_table("homes of earlier code, opened by this code", (*HEAD, ""), found)
    return 0 if all(row[-1] == verdict(True) for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
