"""What both ways to Chroma, embedded and over the network, have in common: its records, its errors,
and its surroundings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from babyagi.errors import BabyagiError, IndexUnavailableError, StoreUnusableError
from babyagi.resultstore.base import IndexItem

MAX_BATCH = 500  # Chroma takes 5,461 at once; 500 of 1,536 numbers are 3 MB
EXCERPT_CHARS = 1_000  # for people who look into Chroma; the task store has the text
# Chroma rewrites its graph in place after so many records, and a kill just then is what damages it.
# Most objectives never have so many results. More would be safer still, and slow: 5,000 take 2.7 s
# to open and 65 ms a batch of any size; 1,000 take 0.2 s and 24 ms.
SYNC_THRESHOLD = 2_000
# Of 352 results that differ in two numbers alone, Chroma's own 16 and 100 lose 98 for good, these
# 10, at 3 ms a result instead of 1; of prose both lose none.
MAX_NEIGHBORS, EF_CONSTRUCTION = 64, 400
TIME_MENDS = (
    "disk is full",
    "database is locked",
    "readonly database",
    "no space left",
    "too many open files",
)


def batches(items: Sequence[IndexItem]) -> Iterator[Sequence[IndexItem]]:
    """The items in as many parts as Chroma takes at once."""
    for start in range(0, len(items), MAX_BATCH):
        yield items[start : start + MAX_BATCH]


def to_records(items: Sequence[IndexItem]) -> dict[str, Any]:
    """What a collection's `upsert` is given."""
    import numpy as np

    return {
        "ids": [item.id for item in items],
        "embeddings": [np.frombuffer(item.vector, dtype="<f4") for item in items],
        "documents": [_excerpt(item.text) for item in items],
        "metadatas": [{"task_id": item.task_id} for item in items],
    }


def collection_settings(sync_threshold: int = SYNC_THRESHOLD) -> Any:
    """The configuration of a new collection."""
    graph = {"space": "cosine", "max_neighbors": MAX_NEIGHBORS, "ef_construction": EF_CONSTRUCTION}
    return {
        "hnsw": {**graph, "sync_threshold": sync_threshold, "batch_size": min(100, sync_threshold)}
    }


def require_cosine(name: str, configuration: Mapping[str, Any]) -> None:
    """A collection that does not measure by cosine is not ours to trust."""
    # the second is a distributed server's
    space = (configuration.get("hnsw") or configuration.get("spann") or {}).get("space")
    if space != "cosine":
        raise StoreUnusableError(
            f"the collection {name} measures by {space}, not by cosine", guide="results"
        )


def _excerpt(text: str) -> str:
    return text[:EXCERPT_CHARS].encode("utf-8", "replace").decode()


@contextmanager
def translating() -> Iterator[None]:
    """Turn whatever Chroma and the disk raise into this project's two errors for an index."""
    try:
        yield
    except BabyagiError:
        raise
    except ImportError as error:
        fix = "pip install chromadb, or set BABYAGI_RESULT_STORE=builtin"
        raise IndexUnavailableError(
            "Chroma cannot be imported", why=str(error), fix=fix, guide="results"
        ) from error
    except OSError as error:
        raise IndexUnavailableError(
            "the directory of the Chroma index cannot be used", why=str(error), guide="results"
        ) from error
    except BaseException as error:
        is_panic = type(error).__module__ == "pyo3_runtime"  # of the native part; no Exception
        if not is_panic and not isinstance(error, Exception):
            raise
        why = f"{type(error).__name__}: {error}"[:500]
        if any(sign in why.lower() for sign in TIME_MENDS):
            raise IndexUnavailableError(
                "Chroma cannot write now", why=why, guide="results"
            ) from error
        raise StoreUnusableError("the Chroma index is damaged", why=why, guide="results") from error
