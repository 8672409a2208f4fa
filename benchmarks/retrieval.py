"""How well earlier results are found: recall@5, and whether the answer stands in the context that a
task is given.

Each way is measured on two sets (`tests/data/retrieval*.json`), alone in the corpus and among
results about other things. The search was tuned on the first and never on the second. The task
store is SQLite; the way `as in a run` is what the loop does, the others take a part of it alone.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from babyagi.index.builtin import BuiltinIndex, score_all
from babyagi.index.context import BYTES_PER_TOKEN, fit
from babyagi.index.hashing import HashEmbedder
from babyagi.index.indexer import text_of
from babyagi.index.search import MAX_WORDS, N_CANDIDATES, ResultSearch, fuse
from babyagi.index.trigrams import Words, searchable
from babyagi.runtime.offload import ThreadOffload
from babyagi.tasks import Limits, Objective, Proposal, Result, Worker
from babyagi.taskstore.nouns import Planned
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import open_sqlite
from support.retrieval_set import KINDS, SETS, make_others
from support.table import print_table
from support.world import make_spec

CONTEXT_TOKENS = 1200
N_FOUND = 15
N_GIVEN = 5
Rank = Callable[[str], Awaitable[Sequence[int]]]  # what is asked → task ids, the best first
Embed = Callable[[Sequence[str]], Awaitable[Sequence[bytes]]]


async def fill(store: TaskStore, results: Sequence[Mapping[str, str]]) -> Objective:
    """An objective whose task n + 1 has result n."""
    spec = make_spec(
        text="Know what there is to know",
        initial_task=results[0]["name"],
        limits=Limits(max_tasks=0, max_time_s=0),
    )
    objective, _ = await store.create_objective(spec, uid="retrieval")
    worker = Worker(id="w", name="w", host="here", pid=1, lease_until=datetime.now(UTC))
    await store.register_worker(worker, lease_s=3600)
    await store.join_objective(worker.id, objective.id)
    await store.add_tasks(objective.id, [Proposal(name=result["name"]) for result in results[1:]])
    for result in results:
        claim = await store.claim_task(objective.id, worker.id)
        if claim is None or claim.task.name != result["name"]:
            raise RuntimeError("the tasks are not taken in their order")
        await store.record_result(
            claim, text=result["text"], origins=("model:made",), plan=Planned()
        )
    return objective


class Ways:
    """The ways to rank the results of one objective."""

    def __init__(self, store: TaskStore, objective: Objective, results: Sequence[Result]) -> None:
        self._store = store
        self._objective = objective
        self._results = results

    async def by_vectors(self, embed: Embed) -> Rank:
        vectors = [vector for result in self._results for vector in await embed([text_of(result)])]
        by_place = dict(enumerate(vectors))

        async def rank(text: str) -> list[int]:
            scores = score_all(by_place, (await embed([text]))[0])
            nearest = sorted(scores, key=lambda place: -scores[place])[:N_CANDIDATES]
            return [self._results[place].task_id for place in nearest]

        return rank

    async def by_full_text(self, text: str) -> list[int]:
        found = await self._store.pending_results(
            self._objective.id,
            space="",
            limit=1,
            words=searchable(text, limit=MAX_WORDS),
            n_found=N_CANDIDATES,
        )
        return [*found.with_words]

    def fused(self, *ways: Rank) -> Rank:
        async def rank(text: str) -> list[int]:
            scores = fuse(*[await way(text) for way in ways])
            return sorted(scores, key=lambda task_id: -scores[task_id])

        return rank

    def compared(self, *ways: Rank) -> Rank:
        """The candidates of all ways, ordered by how much of what is asked stands in them, letter
        by letter."""
        result_by_id = {result.task_id: result for result in self._results}

        async def rank(text: str) -> list[int]:
            task_ids = list(dict.fromkeys([task_id for way in ways for task_id in await way(text)]))
            scores = Words(text).score([text_of(result_by_id[task_id]) for task_id in task_ids])
            return [
                task_id
                for _, task_id in sorted(
                    zip(scores, task_ids, strict=True), key=lambda entry: (-entry[0], -entry[1])
                )
            ]

        return rank

    async def everything(self, text: str) -> list[int]:
        return [result.task_id for result in self._results]

    def as_in_a_run(self) -> Rank:
        search = ResultSearch(self._store, BuiltinIndex(), objective=self._objective)
        embedder = HashEmbedder()

        async def embed(texts: Sequence[str]) -> list[bytes]:
            return (await embedder.embed(texts))[0]

        async def rank(text: str) -> list[int]:
            found = await search.relevant(text, k=N_FOUND, embed=embed)
            return [entry.result.task_id for entry in found]

        return rank


async def measure(
    rank: Rank, queries: Sequence[Mapping[str, Any]], result_by_id: Mapping[int, Result]
) -> dict[str, tuple[float, float]]:
    """For each kind of query: recall@5, and the share of queries whose answer stands in the fitted
    context."""
    found: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for query in queries:
        best = [result_by_id[task_id] for task_id in (await rank(query["text"]))[:N_GIVEN]]
        given = fit(
            best,
            CONTEXT_TOKENS * BYTES_PER_TOKEN,
            n_needed=N_GIVEN,
            task_name=query["text"],
        )
        is_there = any(query["answer"] in text for text in given)
        found[query["kind"]].append(
            (any(result.task_id == query["result"] + 1 for result in best), is_there)
        )
    return {
        kind: (_share([hit for hit, _ in hits]), _share([seen for _, seen in hits]))
        for kind, hits in found.items()
    }


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values)


async def find_ways(ways: Ways, onnx_model: Path | None) -> dict[str, Rank]:
    embedder = HashEmbedder()

    async def by_hash(texts: Sequence[str]) -> list[bytes]:
        return (await embedder.embed(texts))[0]

    hashed = await ways.by_vectors(by_hash)
    found = {
        "hash vectors": hashed,
        "full text": ways.by_full_text,
        "both, fused by rank": ways.fused(hashed, ways.by_full_text),
        "hash vectors, compared": ways.compared(hashed),
        "full text, compared": ways.compared(ways.by_full_text),
        "everything, compared": ways.compared(ways.everything),
        "as in a run": ways.as_in_a_run(),
    }
    if onnx_model is not None:
        meant = await ways.by_vectors(open_onnx(onnx_model))
        compared = ways.compared(meant, ways.by_full_text)
        found |= {
            "ONNX vectors": meant,
            "ONNX vectors and full text, compared, fused": ways.fused(meant, compared),
        }
    return found


def open_onnx(folder: Path) -> Embed:
    """Chroma's model all-MiniLM-L6-v2, from files that are there already."""
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

    class Local(ONNXMiniLM_L6_V2):
        DOWNLOAD_PATH = folder

        def _download_model_if_not_exists(self) -> None:
            return

    model: Any = Local(preferred_providers=["CPUExecutionProvider"])

    async def embed(texts: Sequence[str]) -> list[bytes]:
        return [
            vector.astype("<f4").tobytes() for vector in await asyncio.to_thread(model, list(texts))
        ]

    return embed


async def run(
    title: str,
    data: Mapping[str, Any],
    others: Sequence[Mapping[str, str]],
    onnx_model: Path | None,
) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        offload = ThreadOffload()
        stack.callback(offload.close)
        store = await open_sqlite(
            folder / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload
        )
        stack.push_async_callback(store.close)
        objective = await fill(store, [*data["results"], *others])
        results = await store.results(objective.id)
        embedder = HashEmbedder()
        vectors = {result.task_id: embedder.embed_text(text_of(result)) for result in results}
        await store.store_vectors(
            objective.id, space=objective.spec.embedding_space, vectors=vectors
        )
        await store.mark_indexed(objective.id, task_ids=list(vectors))
        rows = []
        for name, rank in (await find_ways(Ways(store, objective, results), onnx_model)).items():
            found = await measure(
                rank, data["queries"], {result.task_id: result for result in results}
            )
            rows.append((name, *(f"{found[kind][0]:.2f} / {found[kind][1]:.2f}" for kind in KINDS)))
    title = (
        f"{title}: recall@5 / answer in the fitted context, {len(data['queries'])} queries, "
        f"{len(results):,} results"
    )
    print_table(title, ("way", *KINDS), rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument(
        "--others",
        type=int,
        nargs="*",
        default=[0, 2000],
        help="how many results about other things stand beside",
    )
    parser.add_argument(
        "--onnx-model",
        type=Path,
        help="the folder that holds onnx/model.onnx and onnx/tokenizer.json of all-MiniLM-L6-v2",
    )
    options = parser.parse_args()
    if options.onnx_model is None:
        print(
            "Chroma's ONNX model is not measured: --onnx-model names a folder with its "
            "files, and nothing is downloaded.\n"
        )
    elif importlib.util.find_spec("onnxruntime") is None:
        sys.exit("onnxruntime is not installed")
    for path, vocabulary in SETS.items():
        data = json.loads(path.read_text(encoding="utf-8"))
        for n_others in options.others:
            asyncio.run(run(path.stem, data, make_others(n_others, vocabulary), options.onnx_model))


if __name__ == "__main__":
    main()
