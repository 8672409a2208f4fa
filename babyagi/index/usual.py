"""The index that is used where a person names none: embedded Chroma, or the built-in index if
Chroma cannot be imported."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from babyagi.errors import IndexUnavailableError
from babyagi.index.builtin import BuiltinIndex
from babyagi.index.port import Hit, IndexItem, VectorIndex

T = TypeVar("T")


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
