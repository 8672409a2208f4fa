"""Finds the earlier results of an objective, or of several, that are relevant to a text.

Candidates come from the nearest vectors and from the full text of the task store. They are compared
with the query by character trigrams. If the vectors are lexical, the trigrams alone decide the
order; otherwise it is fused with the order by vectors. If the vectors are lexical and there are few
results, all of them are compared, without the index and the embedder.

A search answers even if the index or the embedder fails: from the index if it is complete, else
exactly over the vectors in the task store, else by full text. Of the results that are not indexed
yet, 200 are included, and the 100 that finished last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from babyagi.errors import (
    BabyagiError,
    CredentialsError,
    IndexUnavailableError,
    ModelRejectedError,
    ModelUnavailableError,
    NotFoundError,
    StoreUnusableError,
)
from babyagi.index.builtin import BuiltinIndex, score_all
from babyagi.index.excerpts import size_bytes
from babyagi.index.indexer import Embed, collection_of, item_id, scores_of, text_of
from babyagi.index.port import IndexItem, VectorIndex
from babyagi.index.trigrams import MAX_CHARS, Words, fold, searchable
from babyagi.tasks import Memory, Objective, Pending, Result
from babyagi.taskstore.sql.store import TaskStore

# Results not yet indexed that are compared one by one; with more, the index is not asked.
MAX_PENDING = 200
# Of these, the latest so many are embedded for one search; the indexer embeds the others.
MAX_NEW_VECTORS = 32
# With lexical vectors, and no more results than this, all results are compared: that takes no
# longer than to look for candidates, and misses none (`python -m benchmarks.retrieval`).
MAX_COMPARED = 200
N_CANDIDATES = 100  # each from vectors and from words; measured by `python -m benchmarks.retrieval`
N_LATEST = 100  # additional candidates while not all new results have vectors
MAX_WORDS = 24
# Results that are cached for the next search, some searches' worth of candidates. Those that are
# too long to be compared whole are not cached.
N_KEPT = 300
FILL_BATCH = 2_000
# The index is counted again when results have grown by this share: counting reads all its ids,
# which is too slow for every search.
GROWTH_SHARE = 0.01
# For reciprocal rank fusion. With the usual 60, two middling ranks beat a first one, and two of
# three paraphrases that a model had found were lost; `python -m benchmarks.retrieval --onnx-model`
# shows no difference between 5 and 1.
RANK_DAMPING = 2
# With at least so many similarities, their median is taken as the similarity of unrelated texts.
MIN_FOR_MIDDLE = 10
USUAL_MIDDLE = 0.15  # the median with all-MiniLM-L6-v2 and text-embedding-3-small
SHORT_BYTES = 240  # a shorter text costs little, and may answer different tasks
EMBEDDING_TROUBLE = (
    IndexUnavailableError,
    ModelUnavailableError,
    CredentialsError,
    ModelRejectedError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedResult:
    """A result and how well it fits the query, from 0 to 1. Scores of different searches cannot be
    compared.

    `nearness`, from 0 to 1, says whether the result fits at all. It is the share of the query that
    the result contains or, if that is larger and the vectors know meaning, how far the result
    stands out from the others. `similarity` is the cosine similarity, if the vectors know meaning.
    """

    result: Result
    score: float
    nearness: float = 0.0
    similarity: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Results, best first. `degraded` says what was wrong with the index or the embedder, and is ""
    if nothing was. `with_marks` are the results of this objective that contain rare words of the
    marks (the codes, numbers and names) in the query."""

    ranked: tuple[RankedResult, ...]
    degraded: str = ""
    with_marks: Sequence[Result] = ()

    def __iter__(self) -> Iterator[RankedResult]:
        return iter(self.ranked)

    def __len__(self) -> int:
        return len(self.ranked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Tasks whose results may bear on a text. `nearest` has cosine similarities by task id.
    `by_words` are ids of tasks whose results share words with the text, best first. `with_marks`
    are ids of tasks whose results contain words of the text's marks (codes, numbers, names).
    `degraded` is as in `Ranking`."""

    nearest: Mapping[int, float] = field(default_factory=dict)
    by_words: Sequence[int] = ()
    with_marks: Sequence[int] = ()
    degraded: str = ""


class ResultSearch:
    """Searches the results of one objective."""

    def __init__(self, source: TaskStore, index: VectorIndex, *, objective: Objective) -> None:
        self._source = source
        self._index = index
        self._objective = objective
        self._space = objective.spec.embedding_space
        self._collection = collection_of(objective)
        # a copy of the stored vectors, if the index cannot be asked
        self._memory = index if index.is_memory else BuiltinIndex()
        self._n_trusted = (
            0  # up to so many expected results, those in the index are not counted again
        )
        # Words that too many results contain to be searched for. They stay too common for good.
        self._common_words: set[str] = set()
        # By task id, least recently used first. Only results that were planned from: whoever learns
        # that one was withdrawn calls `forget`.
        self._kept: dict[int, Result] = {}

    async def relevant(
        self,
        text: str,
        *,
        k: int,
        embed: Embed,
        exclude: Collection[int] = (),
        marks: Collection[str] = (),
    ) -> Ranking:
        """Return the `k` results that bear most on the text; fewer if there are fewer. If two fit
        equally well, the later one comes first.

        Args:
            embed: called at most once, with the text followed by results without a vector. It may
                return vectors for only the first of these texts.
            exclude: ids of tasks whose results are not wanted.
            marks: codes, numbers and names in the text. Results that contain a rare word of one are
                returned as well.

        Raises:
            Whatever the task store raises, and whatever `embed` raises, such as a reached limit or
                a lost lease. If only the embedder fails, the results are compared by words.
        """
        n_wanted = max(N_CANDIDATES, 2 * k) + len(exclude)
        found = await self._find_candidates(text, n=n_wanted, embed=embed, marks=marks)
        with_marks = await self.results(
            [task_id for task_id in found.with_marks if task_id not in exclude]
        )
        if not (found.nearest or found.by_words):
            return Ranking(ranked=(), degraded=found.degraded, with_marks=with_marks)
        nearest = [one for one in best_first(found.nearest) if one not in exclude][:n_wanted]
        candidates = {*nearest, *found.by_words} - set(exclude)
        # in a fixed order, because sums of floats depend on it
        compared = sorted(await self.results(list(candidates)), key=lambda one: one.task_id)
        shares = Words(text).score([text_of(one) for one in compared])
        similarity_by_place = {
            place: found.nearest[one.task_id]
            for place, one in enumerate(compared)
            if one.task_id in found.nearest and not is_lexical(self._space)
        }
        ranked = rank(compared, shares, similarity_by_place)
        ranked.sort(
            key=lambda one: (one.score, one.result.created_at, one.result.task_id), reverse=True
        )
        return Ranking(ranked=tuple(ranked[:k]), degraded=found.degraded, with_marks=with_marks)

    async def _find_candidates(
        self, text: str, *, n: int, embed: Embed, marks: Collection[str] = ()
    ) -> Candidates:
        """Return the tasks whose results may bear on the text: about `n` by vectors and as many by
        words; all of them if they are few and the vectors know only spelling. Arguments and errors
        are as in `relevant`."""
        # Counted before the index is asked: results that are recorded or indexed afterwards can
        # only make the index larger than expected.
        pending = await self._source.pending_results(
            self._objective.id,
            space=self._space,
            limit=MAX_PENDING,
            words=self._rare_words(text),
            marks=self._rare_words(" ".join(marks)) if marks else (),
            n_found=n,
        )
        self._common_words |= pending.common_words
        if pending.n_results == 0:
            return Candidates()
        if is_lexical(self._space) and pending.n_results <= MAX_COMPARED:
            every = await self._source.result_ids(self._objective.id)
            return Candidates(by_words=every, with_marks=pending.with_marks)
        nearest: dict[int, float] = {}
        try:
            query, vectors = await self._embed(text, pending, embed)
        except EMBEDDING_TROUBLE as error:
            degraded = f"compared by words only: {error.what}"
        else:
            nearest, degraded = await self._by_vectors(
                query, n_results=pending.n_results, n_pending=len(pending.results), k=n
            )
            nearest |= score_all(vectors, query)
        by_words = [*pending.with_words]
        # if not all new results have vectors, add the tasks that finished last
        if not nearest or len(pending.results) == MAX_PENDING:
            latest = await self._source.tasks(
                self._objective.id, last_finished=True, limit=N_LATEST
            )
            by_words += [task.id for task in latest]
        return Candidates(
            nearest=nearest, by_words=by_words, with_marks=pending.with_marks, degraded=degraded
        )

    def _rare_words(self, text: str) -> list[str]:
        """Return the words of the text to search for: all except those that are known to be
        common."""
        words = searchable(text, limit=MAX_WORDS)
        return [word for word in words if word not in self._common_words]

    async def results(self, task_ids: Sequence[int]) -> list[Result]:
        """Return the results of these tasks, in any order; tasks without a result are left out.
        Results that were read recently come from the cache."""
        # taken out before other users of this cache can remove them
        known = {task_id: self._kept.pop(task_id) for task_id in task_ids if task_id in self._kept}
        self._kept |= known  # now the most recently used
        unknown = [task_id for task_id in task_ids if task_id not in known]
        read = await self._source.results(self._objective.id, task_ids=unknown) if unknown else []
        self.keep(read)
        return [*known.values(), *read]

    def keep(self, results: Iterable[Result]) -> None:
        """Cache those of the results from which new tasks have been planned, because these seldom
        change."""
        for result in results:
            if result.is_planned and len(result.text) <= MAX_CHARS:
                self.forget(result.task_id)
                self._kept[result.task_id] = result
        while len(self._kept) > N_KEPT:
            del self._kept[next(iter(self._kept))]

    def forget(self, task_id: int) -> None:
        """Drop the task's result from the cache, because it may have changed."""
        self._kept.pop(task_id, None)

    # -- by vectors
    # ----------------------------------------------------------------------------------------------

    async def _embed(
        self, text: str, pending: Pending, embed: Embed
    ) -> tuple[bytes, Mapping[int, bytes]]:
        """Return the query vector, and the vectors of the pending results by task id. New vectors
        are stored, so that they are computed only once."""
        vectors = dict(pending.vectors)
        bare = [one for one in pending.results if one.task_id not in vectors][-MAX_NEW_VECTORS:]
        asked, *new = await embed([text, *map(text_of, bare)])
        if bare and len(new) == len(bare):
            made = {result.task_id: vector for result, vector in zip(bare, new, strict=True)}
            await self._source.store_vectors(self._objective.id, space=self._space, vectors=made)
            vectors |= made
        return asked, vectors

    async def _by_vectors(
        self, query: bytes, *, n_results: int, n_pending: int, k: int
    ) -> tuple[dict[int, float], str]:
        """Return (the nearest results' scores by task id, why the index was not used). The second
        is "" if it was used; otherwise the stored vectors were searched."""
        why = ""
        if not self._index.is_memory:
            try:
                if n_pending == MAX_PENDING:
                    what = f"{MAX_PENDING} results or more are not indexed yet"
                    raise IndexUnavailableError(what)
                return await self._ask(query, k=k, n_expected=n_results - n_pending), ""
            except (IndexUnavailableError, StoreUnusableError) as error:
                why = f"the index was not used: {error.what}"
        n_held = len(await self._memory.ids(self._collection))
        if why or n_held < n_results - n_pending:
            await self.fill_memory(n_bytes=len(query))
        hits = await self._memory.query(self._collection, query, k=k)
        return scores_of(self._objective.uid, hits), why

    async def _ask(self, query: bytes, *, k: int, n_expected: int) -> dict[int, float]:
        """Search the index, and return the nearest results' scores by task id.

        Raises:
            IndexUnavailableError: the index cannot answer, or it lacks results that it should have,
                because it was lost or is being rebuilt.
        """
        if n_expected <= 0:
            return {}
        if self._n_trusted < n_expected:
            n_held = len(await self._index.ids(self._collection))
            if n_held < n_expected:
                raise IndexUnavailableError(f"the index has only {n_held} of {n_expected} results")
            self._n_trusted = n_held + int(GROWTH_SHARE * n_held)
        hits = await self._index.query(self._collection, query, k=k)
        if len(hits) < min(k, n_expected):
            self._n_trusted = 0
            raise IndexUnavailableError(
                f"the index found only {len(hits)} of {min(k, n_expected)} results"
            )
        return scores_of(self._objective.uid, hits)

    async def fill_memory(self, *, n_bytes: int = 0) -> None:
        """Put the stored vectors that the index in memory lacks into it: the index itself, if it is
        one, else the copy that is searched where the index cannot be asked.

        Args:
            n_bytes: put only vectors of this length in, because others come from another model of
                the same name; 0 for all.
        """
        held = set(await self._memory.ids(self._collection))
        missing = [
            task_id
            for task_id in await self._source.result_ids(self._objective.id)
            if item_id(self._objective.uid, task_id) not in held
        ]
        for start in range(0, len(missing), FILL_BATCH):
            task_ids = missing[start : start + FILL_BATCH]
            vectors = await self._source.vectors(
                self._objective.id, space=self._space, task_ids=task_ids
            )
            items = [
                IndexItem(
                    id=item_id(self._objective.uid, task_id),
                    vector=vector,
                    text="",
                    task_id=task_id,
                )
                for task_id, vector in vectors.items()
                if n_bytes in (0, len(vector))
            ]
            if items:
                await self._memory.upsert(self._collection, items)


# -- ranking
# --------------------------------------------------------------------------------------------------


def rank(
    results: Sequence[Result], shares: Sequence[float], similarity_by_place: Mapping[int, float]
) -> list[RankedResult]:
    """Return the results with their scores, in their order. If two fit equally well, the later one
    in the order has the higher score, once vectors count.

    Args:
        shares: how much of the query each result contains.
        similarity_by_place: cosine similarities, by the place of the result in the order; empty if
            the vectors do not know meaning.
    """
    near = scores = dict(enumerate(shares))
    if similarity_by_place:
        near = find_nearness(scores, similarity_by_place)
        scores = fuse(best_first(similarity_by_place), best_first(scores))
    return [
        RankedResult(
            result=one,
            score=round(scores[place], 3),
            nearness=round(near[place], 3),
            similarity=similarity_by_place.get(place),
        )
        for place, one in enumerate(results)
    ]


def is_lexical(space: str) -> bool:
    """Return whether vectors of this embedding space know only spelling, and not meaning."""
    return space.startswith("hash:")


def best_first(scores: Mapping[int, float]) -> list[int]:
    """Return the task ids, highest score first; if scores are equal, the later task first. Scores
    are rounded before they are compared, because equal ones may differ in their last digits."""
    return sorted(scores, key=lambda task_id: (round(scores[task_id], 5), task_id), reverse=True)


def fuse(*orders: Sequence[int]) -> dict[int, float]:
    """Fuse orders of tasks into scores by task id (reciprocal rank fusion). A task that is first in
    every order has the score 1."""
    scores: dict[int, float] = {}
    for order in orders:
        for place, task_id in enumerate(order):
            scores[task_id] = scores.get(task_id, 0.0) + (RANK_DAMPING + 1) / (
                RANK_DAMPING + 1 + place
            ) / len(orders)
    return scores


def find_nearness(
    shares: Mapping[int, float], similarities: Mapping[int, float]
) -> dict[int, float]:
    """Return, by task id, how near each result is: the larger of the share of the query that it
    contains, and how far its cosine similarity stands out from the median of all.

    Models differ in the similarity of unrelated texts, from 0.1 to 0.7. If there are too few
    similarities for a median, `USUAL_MIDDLE` is used.
    """
    middle = (
        max(0.0, median(similarities.values()))
        if len(similarities) >= MIN_FOR_MIDDLE
        else USUAL_MIDDLE
    )
    room = max(1 - middle, 1e-6)
    return {
        key: max(share, (similarities.get(key, 0.0) - middle) / room)
        for key, share in shares.items()
    }


# -- results of equal spelling
# --------------------------------------------------------------------------------------------------


def drop_equals(results: Iterable[Result], *, beside: Iterable[Result] = ()) -> list[Result]:
    """Return the results in their order: of those that are spelled alike the first, and none that
    is spelled like one of `beside`."""
    seen = {_spelling(result) for result in beside}
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(_spelling(result), result)
    return [result for spelling, result in first.items() if spelling not in seen]


def _spelling(result: Result) -> str:
    """Return what is equal for two results if the one says nothing beside the other: the text,
    folded; with the task's name if it is so short that it may answer different tasks."""
    text = " ".join(fold(result.text).split())
    return text if size_bytes(text) > SHORT_BYTES else f"{fold(result.task_name)}\n{text}"


# --------------------------------------------------------------------------------------------------
# Searching all objectives of the store, for an objective with shared memory.
#
# In each other objective, results are found as that objective's own search finds them. They are
# scored together with the best of the objective's own results, so that all scores can be compared.
# Nothing of another objective is embedded or stored again.
# --------------------------------------------------------------------------------------------------

N_OBJECTIVES = 20  # so many of the newest other objectives are searched
# An objective with more results is skipped: if its index cannot be used, its vectors are held in
# memory, 3 kB each.
MAX_RESULTS = 5_000
N_OF_EACH = 10  # so many results of each objective are compared with those of the others
# At most so many results of other objectives are given to a task. A bound by score would not do:
# unrelated results score almost as high as related ones.
N_OTHERS = 2


class SharedSearch(ResultSearch):
    """Searches the results of one objective together with those of the newest other objectives that
    have the same embedding space.

    Args:
        n_others: a search returns at most so many results of other objectives; None for as many as
            rank high enough.
    """

    def __init__(
        self,
        source: TaskStore,
        index: VectorIndex,
        *,
        objective: Objective,
        n_others: int | None = N_OTHERS,
    ) -> None:
        super().__init__(source, index, objective=objective)
        self._n_others = n_others
        self._searches: dict[str, ResultSearch] = {}  # of other objectives, by uid

    async def relevant(
        self,
        text: str,
        *,
        k: int,
        embed: Embed,
        exclude: Collection[int] = (),
        marks: Collection[str] = (),
    ) -> Ranking:
        """Return the `k` results of all objectives that bear most on the text. Arguments and errors
        are as in `ResultSearch.relevant`.

        `exclude` applies to the objective's own results only. If an own result fits as
        well as another objective's, the own one comes first. `degraded` also says which objectives
        were skipped.
        """
        asking = _Asking(embed)
        own = await super().relevant(
            text, k=k, embed=asking.embed_all, exclude=exclude, marks=marks
        )
        most = k if self._n_others is None else self._n_others
        others, notes = await self._search_others(text, asking, k=max(most, N_OF_EACH))
        ranked = self._rank_together([*own, *others], text) if others else [*own]
        foreign = [entry.result for entry in ranked if self._is_other(entry)]
        best = drop_equals(foreign, beside=[entry.result for entry in own])[:most]
        kept = [one for one in ranked if one.result in best or not self._is_other(one)]
        return Ranking(
            ranked=tuple(kept[:k]),
            degraded="; ".join(filter(None, [own.degraded, *notes])),
            with_marks=own.with_marks,
        )

    async def _search_others(
        self, text: str, asking: _Asking, *, k: int
    ) -> tuple[list[RankedResult], list[str]]:
        """Return the `k` best results of each of the other objectives, and a message for each
        objective that was skipped."""
        found: list[RankedResult] = []
        notes: list[str] = []
        objectives = await self._source.objectives(limit=N_OBJECTIVES + 1)
        others = [one for one in objectives if one.id != self._objective.id][-N_OBJECTIVES:]
        # a search, with what it has in memory, is kept as long as its objective is among these
        self._searches = {
            one.uid: self._searches.get(one.uid)
            or ResultSearch(self._source, self._index, objective=one)
            for one in others
        }
        for objective in reversed(others):
            try:
                n_results = len(await self._source.result_ids(objective.id))
                if n_results and (why := self._why_not(objective, n_results)):
                    notes.append(f"objective {objective.id} was skipped: {why}")
                elif n_results:
                    search = self._searches[objective.uid]
                    found += await search.relevant(text, k=k, embed=asking.embed_asked)
            except NotFoundError:
                notes.append(f"objective {objective.id} was deleted meanwhile")
        return found, notes

    def _why_not(self, objective: Objective, n_results: int) -> str:
        if objective.spec.embedding_space != self._space:
            return (
                f"its results are embedded as {objective.spec.embedding_space}, not as "
                f"{self._space}"
            )
        return f"it has more than {MAX_RESULTS:,} results" if n_results > MAX_RESULTS else ""

    def _rank_together(self, found: Sequence[RankedResult], text: str) -> list[RankedResult]:
        """Return the results with scores that can be compared, best first. If scores are equal, own
        results come before others', and later ones before earlier ones."""
        # the best own one comes last, because the later one of two equals has the higher score
        found = found[::-1]
        results = [one.result for one in found]
        shares = Words(text).score([text_of(one) for one in results])
        similarities = {
            place: one.similarity for place, one in enumerate(found) if one.similarity is not None
        }
        return sorted(
            rank(results, shares, similarities),
            key=lambda one: (-one.score, self._is_other(one), -one.result.created_at.timestamp()),
        )

    def _is_other(self, entry: RankedResult) -> bool:
        return entry.result.objective_id != self._objective.id


class _Asking:
    """Embeds the query once for all searches. Every search gets the same vector, or the same
    error."""

    def __init__(self, embed: Embed) -> None:
        self.vector = b""
        self._embed = embed
        self._trouble: BabyagiError | None = None

    async def embed_all(self, texts: Sequence[str]) -> list[bytes]:
        try:
            vectors = await self._embed(texts)
        except EMBEDDING_TROUBLE as error:
            self._trouble = error
            raise
        self.vector = vectors[0]
        return vectors

    async def embed_asked(self, texts: Sequence[str]) -> list[bytes]:
        """Return the vector of the first text, the query. The other texts are results of another
        objective, which are not embedded here."""
        if self._trouble is not None:
            raise self._trouble
        return [self.vector] if self.vector else await self.embed_all(texts[:1])


def open_search(source: TaskStore, index: VectorIndex, *, objective: Objective) -> ResultSearch:
    """Return the search that finds the context of the objective's tasks: over several objectives if
    its memory is shared."""
    kind = SharedSearch if objective.spec.memory is Memory.SHARED else ResultSearch
    return kind(source, index, objective=objective)
