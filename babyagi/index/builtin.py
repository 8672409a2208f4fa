"""The built-in index: exact search over vectors in this process's memory.

It needs no installation and no disk. It contains only what this process put into it, and finds all
of that. Vectors that other processes computed are read from the task store (`ResultSearch`), so any
number of processes can use such an index side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from babyagi.errors import StoreUnusableError
from babyagi.index.port import Hit, IndexItem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


BLOCK_ROWS = 512


class BuiltinIndex:
    """A `VectorIndex` in memory: 3 kB for each vector with 768 dimensions. A query reads all of
    them, which takes 10 ms for 20,000."""

    is_memory = True
    read_lag_s = 0.0

    def __init__(self) -> None:
        # by collection, the row of each id, and the vectors as rows of arrays of `BLOCK_ROWS`
        self._collections: dict[str, tuple[dict[str, int], list[NDArray[np.float32]]]] = {}

    async def ping(self) -> None:
        return

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        import numpy as np

        row_by_id, blocks = self._collections.get(collection, ({}, []))
        _check_lengths(blocks, [item.vector for item in items])
        for item in items:
            row = row_by_id.setdefault(item.id, len(row_by_id))
            if row == BLOCK_ROWS * len(blocks):
                blocks.append(np.zeros((BLOCK_ROWS, len(item.vector) // 4), dtype="<f4"))
            blocks[row // BLOCK_ROWS][row % BLOCK_ROWS] = np.frombuffer(item.vector, dtype="<f4")
        self._collections[collection] = row_by_id, blocks

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        row_by_id, blocks = self._collections.get(collection, ({}, []))
        _check_lengths(blocks, [vector])
        scores = chain.from_iterable(_score(block, vector) for block in blocks)
        # the last block may have empty rows
        nearest = nlargest(k, zip(row_by_id, scores, strict=False), key=itemgetter(1))
        return [Hit(id=id_, score=score) for id_, score in nearest]

    async def ids(self, collection: str) -> list[str]:
        row_by_id, _ = self._collections.get(collection, ({}, []))
        return list(row_by_id)

    async def drop(self, collection: str) -> None:
        self._collections.pop(collection, None)

    async def close(self) -> None:
        self._collections.clear()


def score_all(vectors: Mapping[int, bytes], query: bytes) -> dict[int, float]:
    """Return the cosine similarity of each vector to the query, by task id. Vectors of another
    length (from another model of the same name) are left out."""
    import numpy as np

    fitting = {task_id: vector for task_id, vector in vectors.items() if len(vector) == len(query)}
    rows = np.frombuffer(b"".join(fitting.values()), dtype="<f4").reshape(-1, len(query) // 4)
    return dict(zip(fitting, _score(rows, query), strict=True))


def _score(rows: NDArray[np.float32], query: bytes) -> list[float]:
    import numpy as np

    # not `@`: from about 600 vectors on it uses the threads of BLAS, which spin for 20 ms of
    # processor time after a call that takes less than 1 ms
    scores: list[float] = np.einsum("ij,j->i", rows, np.frombuffer(query, dtype="<f4")).tolist()
    return scores


def _check_lengths(blocks: Sequence[NDArray[np.float32]], vectors: Sequence[bytes]) -> None:
    dimensions = {block.shape[1] for block in blocks} | {len(vector) // 4 for vector in vectors}
    if len(dimensions) > 1:
        what = f"vectors of {sorted(dimensions)} dimensions are mixed in one collection"
        raise StoreUnusableError(what, guide="results")
