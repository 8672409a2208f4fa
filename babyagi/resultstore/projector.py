"""The projector: carries results from the task store, where they are true, into the result store, where they are found.

Each step can be repeated: ids grow from the objective's uid, vectors are kept beside the results, and a result is marked as indexed only
after the index has it. A crash between any two steps repeats some of them and loses nothing.
"""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from babyagi.errors import StoreUnusableError
from babyagi.resultstore.base import IndexItem, VectorIndex
from babyagi.tasks import Objective, Result, TaskStatus

logger = logging.getLogger(__name__)

BATCH = 100
N_PROBES = 5

Embed = Callable[[Sequence[str]], Awaitable[list[bytes]]]


class ResultSource(Protocol):
    """What the result store needs of the task store."""

    async def counts(self, objective_id: int) -> Mapping[TaskStatus, int]: ...

    async def results(self, objective_id: int, *, task_ids: Sequence[int] | None = None) -> list[Result]: ...

    async def unindexed_results(self, objective_id: int, *, limit: int) -> list[Result]: ...

    async def mark_indexed(self, objective_id: int, *, task_ids: Sequence[int]) -> None: ...

    async def owe_index(self, objective_id: int) -> None: ...

    async def store_vectors(self, objective_id: int, *, space: str, vectors: Mapping[int, bytes]) -> None: ...

    async def vectors(self, objective_id: int, *, space: str, task_ids: Sequence[int] | None = None) -> Mapping[int, bytes]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """How an index differs from the truth: ids it lacks, ids it should not have, known vectors that did not find themselves."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    n_lost: int


class Projector:
    """Feeds one objective's results to one collection of the index."""

    def __init__(self, source: ResultSource, index: VectorIndex, *, objective: Objective) -> None:
        self._source = source
        self._index = index
        self._objective_id = objective.id
        self._uid = objective.uid
        self._space = objective.spec.embedding_space
        self._collection = collection_name(objective)

    async def run_once(self, *, embed: Embed) -> int:
        """Feed one batch, and return how many results it held.

        A damaged index is dropped and all of it owed again; the next calls fill it anew from the vectors that are kept.

        Raises:
            IndexUnavailableError: time mends it; nothing is lost. Whatever `embed` raises.
        """
        results = await self._source.unindexed_results(self._objective_id, limit=BATCH)
        if not results:
            return 0
        vectors = await self._vectors_of(results, embed=embed)
        items = [
            IndexItem(id=item_id(self._uid, result.task_id), vector=vectors[result.task_id], text=text_of(result), task_id=result.task_id)
            for result in results
        ]
        try:
            await self._index.upsert(self._collection, items)
        except StoreUnusableError as error:
            logger.warning("the index is damaged and is built anew: %s", error.what)
            await self._index.drop(self._collection)
            await self._source.owe_index(self._objective_id)
            return len(results)
        await self._source.mark_indexed(self._objective_id, task_ids=[result.task_id for result in results])
        return len(results)

    async def _vectors_of(self, results: Sequence[Result], *, embed: Embed) -> Mapping[int, bytes]:
        """Each result's vector by task id; those that are missing are embedded, and kept."""
        task_ids = [result.task_id for result in results]
        known = await self._source.vectors(self._objective_id, space=self._space, task_ids=task_ids)
        missing = [result for result in results if result.task_id not in known]
        if not missing:
            return known
        embedded = await embed([text_of(result) for result in missing])
        new = {result.task_id: vector for result, vector in zip(missing, embedded, strict=True)}
        await self._source.store_vectors(self._objective_id, space=self._space, vectors=new)
        return {**known, **new}

    async def check(self) -> CheckReport:
        """Compare the index with the truth, and ask it for some vectors that it must find."""
        vectors = await self._source.vectors(self._objective_id, space=self._space)
        wanted = {item_id(self._uid, task_id): vector for task_id, vector in vectors.items()}
        held = set(await self._index.ids(self._collection))
        n_lost = 0
        for key in sorted(held & set(wanted))[:N_PROBES]:
            hits = await self._index.query(self._collection, wanted[key], k=N_PROBES)
            n_lost += key not in {hit.id for hit in hits} and not any(hit.score > 0.999 for hit in hits)
        return CheckReport(missing=tuple(sorted(set(wanted) - held)), extra=tuple(sorted(held - set(wanted))), n_lost=n_lost)


def item_id(uid: str, task_id: int) -> str:
    """The outside id of a task's result: a UUID (version 8) of 60 bits from the objective's uid and 62 bits for the task.

    The same wherever and however often it is written, unlike any other home's, and readable backwards (`task_id_of`).
    """
    bits = _uid_bits(uid)
    return str(uuid.UUID(int=(bits >> 12) << 80 | 8 << 76 | (bits & 0xFFF) << 64 | 2 << 62 | task_id))


def task_id_of(uid: str, item: str) -> int | None:
    """The task whose result an outside id names; None when it is not of this objective."""
    task_id = int(item.replace("-", "")[-16:], 16) & (2**62 - 1)
    return task_id if item_id(uid, task_id) == item else None


def _uid_bits(uid: str) -> int:
    return int(hashlib.sha256(uid.encode()).hexdigest()[:15], 16)


def text_of(result: Result) -> str:
    """What of a result is embedded."""
    return f"{result.task_name}\n{result.text}"


def collection_name(objective: Objective) -> str:
    """One collection per objective and embedding space, in letters that every back end takes."""
    space = hashlib.sha256(objective.spec.embedding_space.encode()).hexdigest()[:8]
    store_name = re.sub(r"[^a-zA-Z0-9-]+", "-", objective.spec.results_store_name)[:40].strip("-") or "babyagi"
    return f"{store_name}-{objective.uid}-{space}"
