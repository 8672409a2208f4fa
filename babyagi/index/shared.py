"""Finds earlier results in all objectives of the store, for an objective with shared memory.

In each other objective, results are found as that objective's own search finds them. They are
scored together with the best of the objective's own results, so that all scores can be compared.
Nothing of another objective is embedded or stored again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from babyagi.errors import BabyagiError, NotFoundError
from babyagi.index.context import drop_equals
from babyagi.index.indexer import Embed, text_of
from babyagi.index.port import VectorIndex
from babyagi.index.search import (
    EMBEDDING_TROUBLE,
    RankedResult,
    Ranking,
    ResultSearch,
    rank,
)
from babyagi.index.trigrams import Words
from babyagi.tasks import Memory, Objective
from babyagi.taskstore.sql.store import TaskStore

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
        others = [one for one in objectives if one.id != self._objective_id][-N_OBJECTIVES:]
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
        return entry.result.objective_id != self._objective_id


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
