"""What the stand-ins of vector databases hold: vectors by id, found exactly."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np


class HeldVectors:
    """Vectors by id, made unit vectors as they come in."""

    def __init__(self) -> None:
        self._vectors: dict[str, np.ndarray] = {}
        # ids, sorted ids and matrix, until the next write
        self._read: tuple[list[str], list[str], np.ndarray] | None = None

    def put(self, id_: str, vector: np.ndarray) -> None:
        self._vectors[id_] = vector / (np.linalg.norm(vector) or 1.0)
        self._read = None

    def nearest(self, asked: np.ndarray, k: int) -> list[tuple[str, float]]:
        """Ids with their cosine similarity, the nearest first; of equals the one that came in
        first."""
        if not self._vectors:
            return []
        ids, _, matrix = self._for_reading()
        scores = matrix @ (asked / (np.linalg.norm(asked) or 1.0))
        return [(ids[row], float(scores[row])) for row in np.argsort(-scores, kind="stable")[:k]]

    def page(self, *, after: str, limit: int) -> list[str]:
        """Ids in their order, those behind `after`."""
        _, by_name, _ = self._for_reading()
        start = bisect_right(by_name, after)
        return by_name[start : start + limit]

    def copy(self) -> HeldVectors:
        other = HeldVectors()
        other._vectors = dict(self._vectors)
        return other

    @property
    def dimension(self) -> int:
        """0 while there are none."""
        return len(next(iter(self._vectors.values()), ()))

    def __len__(self) -> int:
        return len(self._vectors)

    def _for_reading(self) -> tuple[list[str], list[str], np.ndarray]:
        if self._read is None:
            self._read = (
                list(self._vectors),
                sorted(self._vectors),
                np.array(list(self._vectors.values()), dtype="<f4"),
            )
        return self._read
