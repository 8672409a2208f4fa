"""Finds the earlier results of an objective that bear on a text, and cuts them to a budget.

Answers whatever happens to the index or the embedder: from the index where it is whole, else exactly over the vectors that the task
store keeps, else by common words. Results that are not indexed yet are always among those looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from babyagi.errors import (
    CredentialsError,
    IndexUnavailableError,
    ModelRejectedError,
    ModelUnavailableError,
    StoreUnusableError,
)
from babyagi.resultstore.base import VectorIndex
from babyagi.resultstore.builtin import score
from babyagi.resultstore.hashing import HashEmbedder
from babyagi.resultstore.projector import Embed, ResultSource, collection_of, task_id_of, text_of
from babyagi.tasks import Objective, Result, TaskStatus

MAX_PENDING = 200  # results not yet indexed that are looked at one by one; with more the index is passed over
MAX_NEW_VECTORS = 32  # of them are embedded for one search, the latest; the projector embeds the others
MAX_LEXICAL = 500
LEXICAL_CHARS = 2_000
N_SPARE = 5  # hits asked for in place of those that turn out to be ghosts
BYTES_PER_TOKEN = 4
MIN_EXCERPT_BYTES = 240
EMBEDDING_TROUBLE = (IndexUnavailableError, ModelUnavailableError, CredentialsError, ModelRejectedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedResult:
    """A result and the cosine similarity of its vector to what was searched for."""

    result: Result
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Results, the nearest first. `degraded` says what was wrong with the index or the embedder; empty when nothing was."""

    ranked: tuple[RankedResult, ...]
    degraded: str = ""

    def __iter__(self) -> Iterator[RankedResult]:
        return iter(self.ranked)

    def __len__(self) -> int:
        return len(self.ranked)


class ResultSearch:
    """Search in the results of one objective."""

    def __init__(self, source: ResultSource, index: VectorIndex, *, objective: Objective) -> None:
        self._source = source
        self._index = index
        self._objective_id = objective.id
        self._uid = objective.uid
        self._space = objective.spec.embedding_space
        self._collection = collection_of(objective)
        self._lexical = HashEmbedder()
        self._lexical_vectors: dict[int, bytes] = {}
        self._n_held = 0  # by the index when it was last counted, which reads all of its ids

    async def relevant(self, text: str, *, k: int, embed: Embed, exclude: Collection[int] = ()) -> Ranking:
        """Return the `k` results that are nearest to the text; fewer if there are fewer.

        Args:
            embed: called at most once, with the text first and behind it results that have no vector yet.
            exclude: ids of tasks whose results are not wanted.

        Raises:
            Only what the task store raises, and what `embed` raises that is no trouble of an embedder (a limit, a lost lease).
        """
        # Counted first: what is recorded or indexed from here on can only make the index hold more than is expected of it.
        counts = await self._source.counts(self._objective_id)
        n_results = counts[TaskStatus.RECORDED] + counts[TaskStatus.DONE]
        if n_results == 0:
            return Ranking(ranked=())
        pending = await self._source.unindexed_results(self._objective_id, limit=MAX_PENDING)
        try:
            query, vectors = await self._embed(text, pending, embed)
        except EMBEDDING_TROUBLE as error:
            scores = await self._score_by_words(text, pending)
            return await self._rank(scores, k=k, exclude=exclude, degraded=f"compared by words only: {error.what}")
        degraded = ""
        n_expected = n_results - len(pending)
        try:
            if len(pending) == MAX_PENDING:
                raise IndexUnavailableError(f"it is {MAX_PENDING} results or more behind")
            scores = await self._ask_index(query, k=k + len(exclude) + N_SPARE, n_expected=n_expected)
        except (IndexUnavailableError, StoreUnusableError) as error:
            degraded = f"the index was not used: {error.what}"
            stored = await self._source.vectors(self._objective_id, space=self._space)
            scores = _score_all(stored, query)
        return await self._rank(scores | _score_all(vectors, query), k=k, exclude=exclude, degraded=degraded)

    async def _embed(self, text: str, pending: Sequence[Result], embed: Embed) -> tuple[bytes, Mapping[int, bytes]]:
        """Return the text's vector, and those of the pending results by task id, storing the new ones so that nobody pays again."""
        task_ids = [result.task_id for result in pending]
        vectors = dict(await self._source.vectors(self._objective_id, space=self._space, task_ids=task_ids)) if task_ids else {}
        bare = [result for result in pending if result.task_id not in vectors][-MAX_NEW_VECTORS:]
        query, *new = await embed([text, *map(text_of, bare)])
        if bare and len(new) == len(bare):
            embedded = {result.task_id: vector for result, vector in zip(bare, new, strict=True)}
            await self._source.store_vectors(self._objective_id, space=self._space, vectors=embedded)
            vectors.update(embedded)
        return query, vectors

    async def _ask_index(self, query: bytes, *, k: int, n_expected: int) -> dict[int, float]:
        """Return scores by task id.

        Raises:
            IndexUnavailableError: also when the index lacks results that it should have: one in memory after a restart or
            beside other workers, one that was lost, one that is fed anew.
        """
        if n_expected <= 0:
            return {}
        if self._n_held < n_expected:
            self._n_held = len(await self._index.ids(self._collection))
        if self._n_held < n_expected:
            raise IndexUnavailableError(f"it holds {self._n_held} of {n_expected} results")
        hits = await self._index.query(self._collection, query, k=k)
        if len(hits) < min(k, n_expected):
            self._n_held = 0
            raise IndexUnavailableError(f"it found {len(hits)} of the nearest {k}")
        found = {task_id_of(self._uid, hit.id): hit.score for hit in hits}
        return {task_id: score for task_id, score in found.items() if task_id is not None}

    async def _score_by_words(self, text: str, pending: Sequence[Result]) -> dict[int, float]:
        """Scores of the latest results by common words, by task id."""
        finished = await self._source.last_finished(self._objective_id, limit=MAX_LEXICAL)
        task_ids = [task.id for task in finished if task.id not in self._lexical_vectors]
        results = [*(await self._source.results(self._objective_id, task_ids=task_ids) if task_ids else []), *pending]
        unknown = [result for result in results if result.task_id not in self._lexical_vectors]
        vectors, _ = await self._lexical.embed([text, *(text_of(result)[:LEXICAL_CHARS] for result in unknown)])
        wanted = {task.id for task in finished} | {result.task_id for result in pending}
        self._lexical_vectors = {task_id: vector for task_id, vector in self._lexical_vectors.items() if task_id in wanted}
        self._lexical_vectors |= {result.task_id: vector for result, vector in zip(unknown, vectors[1:], strict=True)}
        return _score_all(self._lexical_vectors, vectors[0])

    async def _rank(self, scores: Mapping[int, float], *, k: int, exclude: Collection[int], degraded: str) -> Ranking:
        """The best `k` with their texts; what the task store does not know is a ghost, and the next one takes its place."""
        best = sorted(((-score, task_id) for task_id, score in scores.items() if task_id not in exclude))[: k + N_SPARE]
        results = await self._source.results(self._objective_id, task_ids=[task_id for _, task_id in best]) if best else []
        result_by_id = {result.task_id: result for result in results}
        ranked = [RankedResult(result=result_by_id[task_id], score=-minus) for minus, task_id in best if task_id in result_by_id]
        return Ranking(ranked=tuple(ranked[:k]), degraded=degraded)


def choose_within(results: Sequence[Result], budget_tokens: int) -> list[tuple[Result, str]]:
    """Fill a budget with the texts of results, the best first.

    As many are taken as get a worthwhile share (`MIN_EXCERPT_BYTES`, or all of a shorter one). Those that are shorter than an equal
    share leave the rest to the others, so that the budget is used up when there is that much text; what is longer is cut, with "…".

    Args:
        results: the best first.
        budget_tokens: a token is counted as 4 bytes of UTF-8.
    """
    texts = [(result, result.text.encode("utf-8", "replace")) for result in results]
    budget = budget_tokens * BYTES_PER_TOKEN
    chosen: list[tuple[Result, bytes]] = []
    least = 0
    for result, text in texts if budget > 0 else ():
        least += min(len(text), MIN_EXCERPT_BYTES)
        if chosen and least > budget:
            break
        chosen.append((result, text))
    share = _equal_share([len(text) for _, text in chosen], budget)
    return [(result, _cut(text, share)) for result, text in chosen]


def _equal_share(sizes: Sequence[int], budget: int) -> int:
    """The largest bound under which the sizes, each cut at it, stay within the budget together."""
    left = budget
    for n_done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - n_done)
        if size > share:
            return share
        left -= size
    return budget


def _cut(text: bytes, max_bytes: int) -> str:
    if len(text) <= max_bytes:
        return text.decode("utf-8", "replace")
    mark = "…".encode()
    return text[: max(0, max_bytes - len(mark))].decode("utf-8", "ignore").rstrip() + "…"


def _score_all(vectors: Mapping[int, bytes], query: bytes) -> dict[int, float]:
    """Scores by task id; a vector of another length (another model under the same name) is passed over."""
    fitting = {task_id: vector for task_id, vector in vectors.items() if len(vector) == len(query)}
    return dict(zip(fitting, score(b"".join(fitting.values()), query), strict=True)) if fitting else {}
