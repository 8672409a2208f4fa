"""The result store's port: an index over results that can always be rebuilt from the task store.

The task store holds the truth; an index holds vectors and ids. Nothing that happens to an index
loses a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexItem:
    """One result as an index keeps it. `id` grows from the objective's `uid`; `vector` is a unit
    vector, little-endian float32."""

    id: str
    vector: bytes
    text: str
    task_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """`score` is the cosine similarity, higher is nearer, for every back end."""

    id: str
    score: float


PING_TIMEOUT_S = 5.0  # a run begins with it


class VectorIndex(Protocol):
    """Vectors by nearness. One collection per objective and embedding space.

    Every method raises `IndexUnavailableError` when it cannot answer now and `StoreUnusableError`
    when the index is damaged, in which case `drop` followed by `upsert` of everything makes it
    whole again.

    `is_memory`: it holds only what this process put in, so that whoever asks it must first put in
    what is missing. `read_lag_s`: so long reads may not show what an upsert or a drop has done; 0
    where they show it at once.
    """

    is_memory: bool
    read_lag_s: float

    async def ping(self) -> None:
        """Return when it can be used. A server is asked, with the key, and has `PING_TIMEOUT_S` to
        answer.

        What runs in this process is not started by it; that what it needs is there is looked at.
        """
        ...

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        """Put the items in, creating the collection if there is none. Idempotent by id; all or
        raise."""
        ...

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        """The `k` nearest, nearest first; fewer if there are fewer; [] for an unknown
        collection."""
        ...

    async def ids(self, collection: str) -> list[str]: ...

    async def drop(self, collection: str) -> None:
        """Remove the collection; unknown ones are ignored."""
        ...

    async def close(self) -> None: ...
