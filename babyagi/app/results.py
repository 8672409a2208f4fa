"""What a person does with the results of one objective: search them, compare the index with them,
rebuild the index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from babyagi.errors import IndexUnavailableError, SettingsError
from babyagi.index.indexer import CheckReport, Indexer, embed_path
from babyagi.index.port import VectorIndex
from babyagi.index.search import Ranking, ResultSearch
from babyagi.index.shared import SharedSearch
from babyagi.journal import Backends, Journal
from babyagi.tasks import Duty, DutyClaim, Objective, Worker
from babyagi.worker.lease import RENEWALS_PER_LEASE

N_CHECKED = 1_000  # results that `check` probes with their own vectors


class Results:
    """The results of one objective and their index.

    Args:
        identity: the worker that rebuilds the index; its lease lasts `lease_s` and is renewed
            meanwhile.
    """

    def __init__(
        self,
        backends: Backends,
        index: VectorIndex,
        *,
        objective: Objective,
        identity: Worker,
        lease_s: float,
    ) -> None:
        self._backends = backends
        self._store = backends.store
        self._index = index
        self._identity = identity
        self._lease_s = lease_s
        self._look_at(objective)

    def _look_at(self, objective: Objective) -> None:
        self._objective = objective
        self._search = ResultSearch(self._store, self._index, objective=objective)
        sleep = self._backends.sleep
        self._indexer = Indexer(self._store, self._index, objective=objective, sleep=sleep)

    async def search(self, text: str, *, k: int, in_all: bool = False) -> Ranking:
        """Return the `k` results nearest to the text; with `in_all`, also from the store's other
        objectives. Only the text is embedded; its cost does not count against the objective's
        limits."""

        async def embed(texts: Sequence[str]) -> list[bytes]:
            self._require_own_space()
            embedder = self._backends.embedder
            return (await embedder.embed(texts if embedder.is_local else texts[:1]))[0]

        search = self._search
        if in_all:
            search = SharedSearch(
                self._store, self._index, objective=self._objective, n_others=None
            )
        return await search.relevant(text, k=k, embed=embed)

    async def check(self) -> CheckReport:
        """Compare the index with the task store; see `Indexer.check`. An index in memory is filled
        first, as a worker would fill it."""
        await self._search.fill_memory()
        return await self._indexer.check(n_probes=N_CHECKED)

    async def rebuild(self, tell: Callable[[int, int], None], *, model: str = "") -> int:
        """Drop the objective's collection, index every result again, and return the number of
        results.

        Args:
            tell: called after each batch with the number of indexed results and the number of all.
            model: the name of the new embedder, if it changes. From now on it embeds the
                objective's results, in a separate collection. The vectors of the old embedder stay
                in the task store.

        Raises:
            IndexUnavailableError: another worker owns the index now, and was told to index
                everything again; or the index cannot answer.
            Whatever the embedder raises; the objective then keeps its embedder.
            SettingsError: `model` is another embedder, and a worker that serves the objective would
                still compute vectors with the old one.
        """
        if model and self._backends.embedder.space != self._objective.spec.embedding_space:
            await self._change_space(model)
        n_results = len(await self._store.result_ids(self._objective.id))
        await self._store.register_worker(self._identity, lease_s=self._lease_s)
        try:
            await self._store.join_objective(self._identity.id, self._objective.id)
            await self._store.owe_index(self._objective.id)
            claim = await self._store.claim_duty(self._objective.id, self._identity.id, Duty.INDEX)
            if claim is not None:
                await self._renewing_lease(self._feed(claim, n_results, tell))
            elif n_results:
                raise IndexUnavailableError(
                    f"another worker is indexing objective {self._objective.id} now",
                    why="that worker was told to index every result again",
                    fix="babyagi store verify --index shows how far it is; to drop the collection "
                    "too, stop that worker first",
                    guide="results",
                )
        finally:
            await self._store.remove_worker(self._identity.id)
        return n_results

    def _require_own_space(self) -> None:
        space = self._objective.spec.embedding_space
        if self._backends.embedder.space != space:
            raise IndexUnavailableError(
                f"the results are embedded as {space}, and this process embeds as "
                f"{self._backends.embedder.space}",
                guide="results",
            )

    async def _change_space(self, model: str) -> None:
        objective_id = self._objective.id
        serving = [
            worker.name
            for worker in await self._store.workers()
            if worker.lease_left_s > 0
            and any(joined.objective_id == objective_id for joined in worker.joined)
        ]
        if serving:
            raise SettingsError(
                f"the results of objective {objective_id} cannot be embedded again now",
                why=f"{', '.join(serving)} would go on computing vectors with the old embedder",
                fix="stop its workers first; babyagi show workers shows them",
                guide="results",
            )
        # before anything is changed, because a name may be mistyped
        await self._backends.embedder.embed(["is it there?"])
        old, space = self._indexer, self._backends.embedder.space
        self._look_at(await self._store.owe_index(objective_id, model=model, space=space))
        await old.drop()

    async def _renewing_lease(self, work: Coroutine[Any, Any, None]) -> None:
        """Await the work and renew the lease meanwhile; one batch may take longer than the lease
        lasts."""
        pause_s = self._lease_s / RENEWALS_PER_LEASE
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(work)
                while not (await asyncio.wait([task], timeout=pause_s))[0]:
                    await self._store.renew_lease(self._identity.id, lease_s=self._lease_s)
        except BaseExceptionGroup as raised:
            raise raised.exceptions[0] from None

    async def _feed(
        self, claim: DutyClaim, n_results: int, tell: Callable[[int, int], None]
    ) -> None:
        journal = Journal(self._backends, fence=claim.fence)

        async def embed(texts: Sequence[str]) -> list[bytes]:
            self._require_own_space()
            return await journal.embed(embed_path("index", texts), texts)

        await self._indexer.drop()
        # a worker that indexed before may have marked results as indexed that are dropped now
        await self._store.owe_index(self._objective.id)
        while n_owed := len(await self._store.result_ids(self._objective.id, is_indexed=False)):
            tell(n_results - n_owed, n_results)
            await self._indexer.run_once(embed=embed)
        tell(n_results, n_results)
        await self._store.release(claim)
