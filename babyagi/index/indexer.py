"""Writes results to the index: computes vectors for results that have none, stores the vectors in
the task store, puts them into the index, and marks the results as indexed. Says whether results
can be indexed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid5

from babyagi import events
from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.index.port import Hit, IndexItem, VectorIndex
from babyagi.tasks import Objective, Result
from babyagi.taskstore.sql.store import TaskStore

logger = logging.getLogger(__name__)

KINDS = (events.INDEX_UNAVAILABLE, events.RESULTS_INDEXED)


async def find_trouble(source: TaskStore, objective_id: int) -> str:
    """Return why the objective's results cannot be indexed, as its workers last reported; "" if
    they can be indexed."""
    latest = await source.events(objective_id, kinds=KINDS, from_end=True, limit=1)
    return (
        describe_trouble(latest[0].data)
        if latest and latest[0].kind == events.INDEX_UNAVAILABLE
        else ""
    )


def describe_trouble(data: Mapping[str, Any]) -> str:
    """Return the data of an `index.unavailable` event in words, on one line."""
    why = f" ({data['why']})" if data.get("why") else ""
    return f"{data.get('reason', '')}{why}"


# --------------------------------------------------------------------------------------------------
# The indexer: embeds results, stores the vectors, upserts them to the index, marks them as indexed.
#
# The task store decides, and knows which results are not indexed. After a crash between any two
# of these steps, the same results are written again under the same ids, which changes nothing.
# --------------------------------------------------------------------------------------------------

Embed = Callable[[Sequence[str]], Awaitable[list[bytes]]]

NAMESPACE = UUID("5b0f0d0e-6f43-5b8e-9d0a-3f3c1c2a7e51")
# measured with Chroma: 50 ms per batch in a small collection; a hundred single upserts take 700 ms
BATCH = 100
N_PROBES = 20
# used if one of the first probes is missed: a file cut in half may lose only one result in ten
N_CLOSE_PROBES = 200
# If an approximate index misses a few, they are written again; if more, it is rebuilt. Of 352
# results that differ only in two numbers, Chroma misses 3 in 100 however often it is rebuilt.
MAX_MISS_SHARE = 0.05
CHECK_EVERY = 50  # batches
# Rebuilds in a row without indexing all results: if one batch does not fit, the batches before it
# are indexed each time.
MAX_REBUILDS = 3
SAME = 0.999  # from this score on, vectors count as equal: several results may have the same text


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """How the index differs from the task store.

    Attributes:
        missing: the tasks whose results are marked as indexed but are not in the index.
        extra: the ids in the index that should not be there.
        probe_misses: the tasks whose results a search for their own vectors did not find.
        n_probes: for how many results this was tried.
        n_expected: how many results are marked as indexed.
        n_held: how many of the objective's results are in the index.
        n_owed: how many results are not marked as indexed yet; they do not count as missing.
    """

    missing: tuple[int, ...]
    extra: tuple[str, ...]
    probe_misses: tuple[int, ...]
    n_probes: int
    n_expected: int
    n_held: int
    n_owed: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing and a search finds every probed result. Extra ids do no
        harm."""
        return not self.missing and not self.probe_misses

    @property
    def is_damaged(self) -> bool:
        """Whether a search missed so many probed results that the index must be rebuilt."""
        return (
            len(self.probe_misses) > max(1, MAX_MISS_SHARE * self.n_probes)
            or len(self.probe_misses) == self.n_probes > 0
        )


class Indexer:
    """Keeps the index of one objective up to date with its results. A worker must hold the claim on
    indexing the objective, so only one indexer of an objective runs at a time.

    `n_rebuilds` counts how often the index was found damaged and was rebuilt.

    Args:
        sleep: waits this many seconds; used with an index whose reads lag behind its writes.
    """

    def __init__(
        self,
        source: TaskStore,
        index: VectorIndex,
        *,
        objective: Objective,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.n_rebuilds = 0
        self._source = source
        self._index = index
        self._objective = objective
        self._space = objective.spec.embedding_space
        self._collection = collection_of(objective)
        self._sleep = sleep
        self._n_batches = 0  # the index is compared when it is a multiple of `CHECK_EVERY`
        self._n_rebuilds_in_a_row = 0

    async def run_once(self, *, embed: Embed, limit: int = BATCH) -> int:
        """Index the oldest results that are not indexed, at most `limit`, and return their number.

        Before that, it compares the index with the task store: at its first run in a process, after
        the index could not answer (it may have lost something), and every `CHECK_EVERY` batches.
        Lost results are indexed again from the stored vectors. If more than half is missing, as
        after a change to another index, all results are marked as not indexed, so that the
        following batches show the progress. If the index is damaged, it is dropped, all results are
        marked as not indexed, and 0 is returned.

        Raises:
            IndexUnavailableError: the index or the embedder cannot answer now; nothing is marked as
                indexed.
            Whatever `embed` raises.
        """
        try:
            if self._n_batches % CHECK_EVERY == 0:
                await self._mend(embed)
            owed = await self._source.results(self._objective.id, only_unindexed=True, limit=limit)
            await self._feed(owed, embed)
        except StoreUnusableError as error:
            await self._begin_anew(error)
            return 0
        except IndexUnavailableError:
            self._n_batches = 0
            raise
        if owed:
            await self._source.mark_indexed(
                self._objective.id, task_ids=[result.task_id for result in owed]
            )
        self._n_batches += 1
        if len(owed) < limit:
            self._n_rebuilds_in_a_row = 0
        return len(owed)

    async def check(self, *, n_probes: int = N_PROBES) -> CheckReport:
        """Compare the index with the task store, and change nothing. Workers may continue
        meanwhile. If the reads of the index lag, a difference is checked again after the lag.

        Args:
            n_probes: for how many results to test whether a search for their own vectors finds
                them. If it misses one, `N_CLOSE_PROBES` results are tested.

        Raises:
            IndexUnavailableError, StoreUnusableError: the index cannot answer.
        """
        report = await self._compare(n_probes)
        if self._index.read_lag_s and (report.extra or not report.is_whole):
            await self._sleep(self._index.read_lag_s)
            report = await self._compare(n_probes)
        return report

    async def ping(self) -> None:
        """Check that the index can be used; see `VectorIndex.ping`."""
        await self._index.ping()

    async def _compare(self, n_probes: int) -> CheckReport:
        # Read in this order, so that what workers do meanwhile cannot look like a loss: they
        # record, then write to the index, then mark as indexed.
        ticked = await self._source.result_ids(self._objective.id, is_indexed=True)
        held = set(await self._index.ids(self._collection))
        id_by_task = {
            task_id: item_id(self._objective.uid, task_id)
            for task_id in await self._source.result_ids(self._objective.id)
        }
        present = sorted(task_id for task_id, id_ in id_by_task.items() if id_ in held)
        probed, misses = await self._probe(present, n_probes)
        if misses and n_probes < N_CLOSE_PROBES:
            probed, misses = await self._probe(present, N_CLOSE_PROBES)
        return CheckReport(
            missing=tuple(sorted(task_id for task_id in ticked if id_by_task[task_id] not in held)),
            extra=tuple(sorted(held - set(id_by_task.values()))),
            probe_misses=tuple(misses),
            n_probes=len(probed),
            n_expected=len(ticked),
            n_held=len(present),
            n_owed=len(id_by_task) - len(ticked),
        )

    async def _probe(self, task_ids: Sequence[int], n: int) -> tuple[list[int], list[int]]:
        """Test `n` results, spread evenly over the list, by a search for their own vectors. Return
        (the tested tasks, those whose results were not found)."""
        probed = list(task_ids[:: max(1, len(task_ids) // n)][:n])
        return probed, [task_id for task_id in probed if not await self._finds(task_id)]

    async def _finds(self, task_id: int) -> bool:
        vector = (
            await self._source.vectors(self._objective.id, space=self._space, task_ids=[task_id])
        ).get(task_id)
        if vector is None:
            return True  # there is no stored vector to search for
        hits = await self._index.query(self._collection, vector, k=5)
        return any(
            hit.id == item_id(self._objective.uid, task_id) or hit.score >= SAME for hit in hits
        )

    async def _mend(self, embed: Embed) -> None:
        # writing a result twice does no harm
        report = await self.check()
        if report.is_damaged:
            raise StoreUnusableError(
                f"{len(report.probe_misses)} of {report.n_probes} results are not found by "
                "their own vectors"
            )
        lost = [*report.missing, *report.probe_misses]
        if len(lost) > max(BATCH, report.n_expected // 2) and not self._index.is_memory:
            await self._source.owe_index(self._objective.id)
            logger.info("%d results are missing in the index and will be indexed again", len(lost))
            return
        for start in range(0, len(lost), BATCH):
            task_ids = lost[start : start + BATCH]
            await self._feed(
                await self._source.results(self._objective.id, task_ids=task_ids), embed
            )
        if lost:
            logger.info("%d results were missing in the index and were indexed again", len(lost))

    async def _feed(self, results: Sequence[Result], embed: Embed) -> None:
        """Put the results into the index. Missing vectors are computed, and stored before."""
        if not results:
            return
        task_ids = [result.task_id for result in results]
        stored = await self._source.vectors(
            self._objective.id, space=self._space, task_ids=task_ids
        )
        missing = [result for result in results if result.task_id not in stored]
        vectors = dict(stored)
        if missing:
            new = await embed([text_of(result) for result in missing])
            if len(new) != len(missing):
                raise IndexUnavailableError(
                    f"{len(missing)} texts were sent to the embedder, "
                    f"but it returned {len(new)} vectors",
                    guide="results",
                )
            made = {result.task_id: vector for result, vector in zip(missing, new, strict=True)}
            await self._source.store_vectors(self._objective.id, space=self._space, vectors=made)
            vectors |= made
        items = [
            IndexItem(
                id=item_id(self._objective.uid, result.task_id),
                vector=vectors[result.task_id],
                text=result.text,
                task_id=result.task_id,
            )
            for result in results
        ]
        await self._index.upsert(self._collection, items)

    async def _begin_anew(self, error: StoreUnusableError) -> None:
        """Drop the damaged index and mark all results as not indexed, so that it is rebuilt. The
        rebuild is cheap, because the vectors are stored."""
        if self._n_rebuilds_in_a_row == MAX_REBUILDS:
            why = f"it was rebuilt {MAX_REBUILDS} times in a row"
            raise IndexUnavailableError(
                f"the index is damaged again: {error.what}", why=why, fix=error.fix, guide="results"
            ) from error
        logger.warning("the index is damaged and will be rebuilt: %s", error.what)
        self._n_rebuilds_in_a_row += 1
        self.n_rebuilds += 1
        try:
            await self._index.drop(self._collection)
        except StoreUnusableError as again:
            raise IndexUnavailableError(
                f"the damaged index cannot be removed: {again.what}", why=again.why, guide="results"
            ) from again
        await self._source.owe_index(self._objective.id)


def text_of(result: Result) -> str:
    """Return the text that is embedded for a result."""
    return f"{result.task_name}\n{result.text}"


def embed_path(owner: str, texts: Sequence[str]) -> str:
    """Return the path (the key in the journal) of the call that embeds these texts, derived from
    the texts. A running number would not do, because which texts are embedded together depends on
    what other workers have done meanwhile."""
    return f"{owner}/embed/{hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:16]}"


def item_id(uid: str, task_id: int) -> str:
    """Return the id of a result in every index: a UUID that begins with `id_head(uid)` and ends
    with the task's id in 12 hexadecimal digits.

    A result always has the same id, and results of different objectives in a shared index have
    different ones. `scores_of` reads the task's id from it without a look-up.
    """
    return id_head(uid) + f"{task_id:012x}"


@lru_cache
def id_head(uid: str) -> str:
    """Return the beginning that the ids of all results of an objective have in common."""
    return str(uuid5(NAMESPACE, uid))[:-12]


def scores_of(uid: str, hits: Sequence[Hit]) -> dict[int, float]:
    """Return the scores by task id. Hits of other objectives are left out."""
    its_id = re.compile(f"{id_head(uid)}([0-9a-f]{{12}})").fullmatch
    return {int(found[1], 16): hit.score for hit in hits if (found := its_id(hit.id))}


def collection_of(objective: Objective) -> str:
    """Return the name of the objective's collection: 3 to 512 letters, digits, `.`, `_` and `-`.

    It ends with a hash of the store's name, the objective's uid and the embedding space, so if one
    of them differs, the name does.
    """
    store_name, uid = objective.spec.results_store_name, objective.uid
    readable = re.sub(r"[^a-zA-Z0-9]+", "-", f"{store_name[:64]} {uid[:32]}").strip("-")
    named = "\0".join((store_name, uid, objective.spec.embedding_space))
    digest = hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{readable}-{digest}".strip("-")
