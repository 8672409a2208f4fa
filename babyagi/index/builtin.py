"""The built-in index: exact search over vectors in this process's memory.

It needs no installation and no disk. It contains only what this process put into it, and finds all
of that. Vectors that other processes computed are read from the task store (`ResultSearch`), so any
number of processes can use such an index side by side. Where a person names no index, it stands in
for Chroma that cannot be imported (`UsualIndex`).

Vectors are stored as columns, so that a dimension in which the query is zero need not be read: a
hashed name is zero in four of five dimensions. Products are computed by `einsum` in the calling
thread. From about 600 vectors on, `@` would use the threads of BLAS, which spin for 20 ms of
processor time after a call that takes less than 1 ms.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.index.port import Hit, IndexItem, VectorIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

# A block of 768 dimensions takes 1.5 MB. From 4 MB on, numpy asks for large memory pages, and the
# first column would fill all of them.
BLOCK_COLUMNS = 512


@dataclass(slots=True)
class _Columns:
    """Vectors, each stored as a column of a large array (a block), and the column of each id. Only
    the last block may be partly filled."""

    column_by_id: dict[str, int] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    blocks: list[NDArray[np.float32]] = field(default_factory=list)

    def put(self, id_: str, vector: bytes) -> None:
        import numpy as np

        column = self.column_by_id.setdefault(id_, len(self.ids))
        if column == len(self.ids):
            self.ids.append(id_)
        if column == len(self.blocks) * BLOCK_COLUMNS:
            self.blocks.append(np.zeros((len(vector) // 4, BLOCK_COLUMNS), dtype="<f4"))
        block = self.blocks[column // BLOCK_COLUMNS]
        block[:, column % BLOCK_COLUMNS] = np.frombuffer(vector, dtype="<f4")

    def score(self, vector: bytes) -> NDArray[np.float32]:
        """Return the cosine similarity of each stored vector to the given one, in the order of the
        columns."""
        import numpy as np

        asked = np.frombuffer(vector, dtype="<f4")
        used = np.flatnonzero(asked)
        # no dimension is zero, so nothing need be left out or copied
        where = used if 2 * len(used) < len(asked) else slice(None)
        products = [np.einsum("i,ij->j", asked[where], block[where]) for block in self.blocks]
        return np.concatenate(products)[: len(self.ids)]


class BuiltinIndex:
    """A `VectorIndex` in memory. A collection of 100,000 vectors with 768 dimensions takes 307 MB
    and about 15 ms per query."""

    is_memory = True
    read_lag_s = 0.0

    def __init__(self) -> None:
        self._collections: dict[str, _Columns] = {}

    async def ping(self) -> None:
        return

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        columns = self._collections.get(collection, _Columns())
        _check_lengths([item.vector for item in items], columns)
        self._collections[collection] = columns
        for item in items:
            columns.put(item.id, item.vector)

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        import numpy as np

        columns = self._collections.get(collection)
        if columns is None:
            return []
        _check_lengths([vector], columns)
        scores = columns.score(vector)
        n = min(k, len(scores))
        candidates = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
        nearest = candidates[np.argsort(-scores[candidates], kind="stable")][:n]
        return [
            Hit(id=columns.ids[column], score=score)
            for column, score in zip(nearest.tolist(), scores[nearest].tolist(), strict=True)
        ]

    async def ids(self, collection: str) -> list[str]:
        columns = self._collections.get(collection)
        return list(columns.ids) if columns else []

    async def drop(self, collection: str) -> None:
        self._collections.pop(collection, None)

    async def close(self) -> None:
        self._collections.clear()


class UsualIndex:
    """A `VectorIndex`. From the first call on for which Chroma cannot be imported, it is the
    built-in index; which packages Chroma imports is known only then.

    Args:
        chroma: raises an `IndexUnavailableError` caused by an `ImportError` if it cannot be
            imported. It is closed with this index.
        tell: receives one line when the built-in index takes its place.
    """

    read_lag_s = 0.0

    def __init__(self, chroma: VectorIndex, *, tell: Callable[[str], None]) -> None:
        self._index, self._tell = chroma, tell
        self.is_memory = chroma.is_memory

    async def ping(self) -> None:
        await self._call(lambda index: index.ping())

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        await self._call(lambda index: index.upsert(collection, items))

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        return await self._call(lambda index: index.query(collection, vector, k=k))

    async def ids(self, collection: str) -> list[str]:
        return await self._call(lambda index: index.ids(collection))

    async def drop(self, collection: str) -> None:
        await self._call(lambda index: index.drop(collection))

    async def close(self) -> None:
        await self._index.close()

    async def _call(self, work: Callable[[VectorIndex], Awaitable[T]]) -> T:
        index = self._index
        try:
            return await work(index)
        except IndexUnavailableError as error:
            if not isinstance(error.__cause__, ImportError):
                raise
            if self._index is index:  # of two calls at the same time, the first changes it
                self._index, self.is_memory = BuiltinIndex(), True
                self._tell(f"the index of results is the built-in one: {error.what}: {error.why}")
                await index.close()
        return await work(self._index)


def score_all(vectors: Mapping[int, bytes], query: bytes) -> dict[int, float]:
    """Return the cosine similarity of each vector to the query, by task id. Vectors of another
    length (from another model of the same name) are left out."""
    import numpy as np

    fitting = {task_id: vector for task_id, vector in vectors.items() if len(vector) == len(query)}
    matrix = np.frombuffer(b"".join(fitting.values()), dtype="<f4").reshape(-1, len(query) // 4)
    scores = np.einsum("ij,j->i", matrix, np.frombuffer(query, dtype="<f4"))
    return dict(zip(fitting, scores.tolist(), strict=True))


def _check_lengths(vectors: Sequence[bytes], columns: _Columns) -> None:
    n_bytes = {len(vector) for vector in vectors}
    if columns.blocks:
        n_bytes.add(columns.blocks[0].itemsize * columns.blocks[0].shape[0])
    if len(n_bytes) > 1:
        raise StoreUnusableError(
            (
                f"vectors of {sorted(size // 4 for size in n_bytes)} dimensions are mixed "
                "in one collection"
            ),
            guide="results",
        )
