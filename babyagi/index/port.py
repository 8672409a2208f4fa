"""The interface (port) of every index. An index is a copy of the results that can always be rebuilt
from the task store.

The task store has the results themselves; an index has only vectors, ids and excerpts. Losing an
index never loses a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

EXCERPT_CHARS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexItem:
    """One result as an index stores it. `id` is derived from the objective's `uid` and the task's
    id. `vector` is a unit vector of little-endian float32."""

    id: str
    vector: bytes
    text: str
    task_id: int

    @property
    def excerpt(self) -> str:
        """The beginning of the result's text, for a person who inspects the index. The whole text
        is in the task store."""
        return self.text[:EXCERPT_CHARS].encode("utf-8", "replace").decode()


def to_numbers(vector: bytes) -> list[float]:
    import numpy as np

    numbers: list[float] = np.frombuffer(vector, dtype="<f4").tolist()
    return numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A result that a search found. `score` is the cosine similarity, with every index: higher is
    nearer."""

    id: str
    score: float


PING_TIMEOUT_S = 5.0  # every run starts with a ping


class VectorIndex(Protocol):
    """Finds vectors by nearness. There is one collection per objective and embedding space.

    Every method raises `IndexUnavailableError` if it cannot answer now, and `StoreUnusableError` if
    the index is damaged; to repair it, `drop` the collection and `upsert` everything again.

    Attributes:
        is_memory: whether it contains only what this process put in, so that the caller must first
            put in what is missing.
        read_lag_s: after an upsert or a drop, reads may not show its effect for this many seconds;
            0 if they show it at once.
    """

    is_memory: bool
    read_lag_s: float

    async def ping(self) -> None:
        """Check that the index can be used; raise an error if it cannot. A server is called with
        the key, and has `PING_TIMEOUT_S` to answer.

        An index that runs inside this process is not started; only its requirements are checked.
        """
        ...

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        """Insert the items, at least one, replacing items with the same ids, and create the
        collection if it is missing. If not all items can be written, raise an error."""
        ...

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        """Return the `k` nearest items, nearest first; fewer if there are fewer; [] for an unknown
        collection. `k` is at least 1."""
        ...

    async def ids(self, collection: str) -> list[str]:
        """Return the ids of all items in the collection; [] for an unknown collection."""
        ...

    async def drop(self, collection: str) -> None:
        """Remove the collection; do nothing if it does not exist."""
        ...

    async def close(self) -> None:
        """Release connections and files."""
        ...
