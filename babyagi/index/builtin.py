"""The built-in index: exact search over vectors in this process's memory.

It needs no installation and no disk, and it always finds what it holds. It holds what this process
put in. What other processes put in is read from the vectors in the task store (`ResultSearch`), so
any number of processes can use it side by side.

Products are computed by `einsum` in the calling thread. From about 600 rows on, `@` would use the
threads of BLAS, which spin for 20 ms of processor time after a call that takes less than 1 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from babyagi.errors import StoreUnusableError
from babyagi.index.port import Hit, IndexItem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# large arrays get large memory pages, which are read faster; new blocks are added instead of
# copying
BLOCK_ROWS = 16_384


@dataclass(slots=True)
class _Rows:
    """Vectors in blocks of rows, of which only the last may be partly filled, and the row of each
    id."""

    row_by_id: dict[str, int] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    blocks: list[NDArray[np.float32]] = field(default_factory=list)

    def put(self, id_: str, vector: bytes) -> None:
        import numpy as np

        row = self.row_by_id.setdefault(id_, len(self.ids))
        if row == len(self.ids):
            self.ids.append(id_)
        if row == len(self.blocks) * BLOCK_ROWS:
            self.blocks.append(np.zeros((BLOCK_ROWS, len(vector) // 4), dtype="<f4"))
        self.blocks[row // BLOCK_ROWS][row % BLOCK_ROWS] = np.frombuffer(vector, dtype="<f4")

    def score(self, vector: bytes) -> NDArray[np.float32]:
        """Return the cosine similarity of each row to the vector, in row order."""
        import numpy as np

        asked = np.frombuffer(vector, dtype="<f4")
        filled = [block[: len(self.ids) - n * BLOCK_ROWS] for n, block in enumerate(self.blocks)]
        return np.concatenate([np.einsum("ij,j->i", block, asked) for block in filled])


class BuiltinIndex:
    """A `VectorIndex` in memory. A collection of 100,000 vectors with 768 dimensions takes 307 MB
    and about 15 ms per query."""

    is_memory = True
    read_lag_s = 0.0

    def __init__(self) -> None:
        self._collections: dict[str, _Rows] = {}

    async def ping(self) -> None:
        return

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        rows = self._collections.get(collection, _Rows())
        _check_lengths([item.vector for item in items], rows)
        if items:
            self._collections[collection] = rows
        for item in items:
            rows.put(item.id, item.vector)

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        import numpy as np

        rows = self._collections.get(collection)
        if rows is None or k < 1:
            return []
        _check_lengths([vector], rows)
        scores = rows.score(vector)
        n = min(k, len(scores))
        candidates = np.flatnonzero(scores >= np.partition(scores, -n)[-n])
        nearest = candidates[np.argsort(-scores[candidates], kind="stable")][:n]
        return [Hit(id=rows.ids[row], score=float(scores[row])) for row in nearest]

    async def ids(self, collection: str) -> list[str]:
        rows = self._collections.get(collection)
        return list(rows.ids) if rows else []

    async def drop(self, collection: str) -> None:
        self._collections.pop(collection, None)

    async def close(self) -> None:
        self._collections.clear()


def score(vectors: bytes, vector: bytes) -> NDArray[np.float32]:
    """Return the cosine similarity of each of `vectors` to `vector`.

    Args:
        vectors: concatenated unit vectors of little-endian float32.
        vector: one such vector.
    """
    import numpy as np

    matrix = np.frombuffer(vectors, dtype="<f4").reshape(-1, len(vector) // 4)
    scores: NDArray[np.float32] = np.einsum("ij,j->i", matrix, np.frombuffer(vector, dtype="<f4"))
    return scores


def _check_lengths(vectors: Sequence[bytes], rows: _Rows) -> None:
    n_bytes = {len(vector) for vector in vectors}
    if rows.blocks:
        n_bytes.add(rows.blocks[0].itemsize * rows.blocks[0].shape[1])
    if len(n_bytes) > 1:
        raise StoreUnusableError(
            (
                f"vectors of {sorted(size // 4 for size in n_bytes)} dimensions met in one "
                "collection"
            ),
            guide="results",
        )
