"""Earlier results by nearness to a text: what the index finds, and what it does not have yet.

Never raises for trouble with the index or the embedder: the answer is then found another way, and says that it is degraded.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.resultstore.base import VectorIndex
from babyagi.resultstore.hashing import HashEmbedder
from babyagi.resultstore.projector import Embed, ResultSource, collection_name, task_id_of, text_of
from babyagi.resultstore.vectors import nearest
from babyagi.tasks import Objective, Result, TaskStatus

logger = logging.getLogger(__name__)

MAX_UNINDEXED = 200  # more than that are found once they are indexed
MIN_EXCERPT_TOKENS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Results, nearest first. `degraded` says what stood in the way of a full answer; empty when nothing did."""

    results: tuple[Result, ...]
    degraded: str = ""


class ResultSearch:
    """Searches the results of one objective."""

    def __init__(self, source: ResultSource, index: VectorIndex, *, objective: Objective) -> None:
        self._source = source
        self._index = index
        self._objective_id = objective.id
        self._uid = objective.uid
        self._space = objective.spec.embedding_space
        self._collection = collection_name(objective)

    async def relevant(self, text: str, *, k: int, embed: Embed, exclude: Collection[int] = ()) -> Found:
        """Return up to `k` results nearest to the text, without those of the excluded task ids.

        Args:
            embed: turns the text into a vector of the objective's space; not called while there is no result.
        """
        unindexed = await self._source.unindexed_results(self._objective_id, limit=MAX_UNINDEXED)
        n_wanted = k + len(exclude)
        degraded = ""
        try:
            scores = await self._score(text, unindexed, embed=embed, k=n_wanted)
        except (IndexUnavailableError, StoreUnusableError) as error:
            degraded = error.what
            scores = await self._score_by_words(text, k=n_wanted)
        if degraded:
            logger.warning("earlier results are found by their words alone: %s", degraded)
        ranked = sorted(scores, key=lambda task_id: (-scores[task_id], task_id))
        wanted = [task_id for task_id in ranked if task_id not in exclude][:k]
        results = {result.task_id: result for result in await self._source.results(self._objective_id, task_ids=wanted)} if wanted else {}
        return Found(results=tuple(results[task_id] for task_id in wanted if task_id in results), degraded=degraded)

    async def _score(self, text: str, unindexed: Sequence[Result], *, embed: Embed, k: int) -> dict[int, float]:
        """Similarity by task id: of the index's hits, and of every result that it does not have yet."""
        counts = await self._source.counts(self._objective_id)
        has_indexed = counts[TaskStatus.DONE] + counts[TaskStatus.RECORDED] > len(unindexed)
        if not has_indexed and not unindexed:
            return {}
        task_ids = [result.task_id for result in unindexed]
        known = dict(await self._source.vectors(self._objective_id, space=self._space, task_ids=task_ids))
        missing = [result for result in unindexed if result.task_id not in known]
        vector, *fresh = await embed([text, *map(text_of, missing)])
        new = {result.task_id: found for result, found in zip(missing, fresh, strict=True)}
        if new:
            await self._source.store_vectors(self._objective_id, space=self._space, vectors=new)
        hits = await self._index.query(self._collection, vector, k=k) if has_indexed else []
        scores = {task_id: hit.score for hit in hits if (task_id := task_id_of(self._uid, hit.id)) is not None}
        return scores | dict(nearest(vector, known | new, k=k))

    async def _score_by_words(self, text: str, *, k: int) -> dict[int, float]:
        results = (await self._source.results(self._objective_id))[-MAX_UNINDEXED:]
        embedder = HashEmbedder()
        candidates = {result.task_id: embedder.embed_text(text_of(result)) for result in results}
        return dict(nearest(embedder.embed_text(text), candidates, k=k))


def choose_within(results: Sequence[Result], budget_tokens: int) -> list[tuple[Result, str]]:
    """Fill a budget with the results' texts, in their order: each whole where all fit, else the long ones cut to an equal share.

    Results that could only be given in fewer than `MIN_EXCERPT_TOKENS` are left out, the last ones first.

    Returns:
        (result, text) pairs; a text that was cut ends with `…`. Tokens are UTF-8 bytes / 4.
    """
    budget_bytes = 4 * budget_tokens
    kept = list(results[: budget_tokens // MIN_EXCERPT_TOKENS])
    sizes = [len(result.text.encode()) for result in kept]
    share = _share(sizes, budget_bytes)
    return [(result, _cut(result.text, share)) for result in kept]


def _share(sizes: Sequence[int], budget: int) -> int:
    """The largest size that each may have so that together they stay within the budget: what small ones leave goes to the others."""
    left, n_left = budget, len(sizes)
    for size in sorted(sizes):
        if size * n_left >= left:
            return left // n_left
        left, n_left = left - size, n_left - 1
    return budget


def _cut(text: str, max_bytes: int) -> str:
    data = text.encode()
    if len(data) <= max_bytes:
        return text
    return data[: max(0, max_bytes - 4)].decode("utf-8", "ignore") + " …"
