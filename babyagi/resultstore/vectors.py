"""Arithmetic on vectors as the stores keep them: little-endian float32, unit length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", int, str)


def nearest(vector: bytes, candidates: Mapping[Key, bytes], *, k: int) -> list[tuple[Key, float]]:
    """Return the `k` candidates nearest to the vector with their cosine similarity, nearest first.

    Candidates of another dimension are left out: they are of another space.
    """
    ids = [key for key, candidate in candidates.items() if len(candidate) == len(vector)]
    if not ids or k <= 0:
        return []
    scores = _dot(vector, [candidates[key] for key in ids])
    ranked = sorted(zip(ids, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
    return ranked[:k]


def _dot(vector: bytes, rows: Sequence[bytes]) -> list[float]:
    import numpy as np

    matrix = np.frombuffer(b"".join(rows), dtype="<f4").reshape(len(rows), -1)
    scores: list[float] = (matrix @ np.frombuffer(vector, dtype="<f4")).astype(float).tolist()
    return scores
