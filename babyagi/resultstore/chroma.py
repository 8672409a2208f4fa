"""Chroma, embedded in this process and kept in one directory: the default index.

What is done here for safety, because each was seen to go wrong with chromadb 1.5:

* Two processes on one directory lose entries without an error. One owner holds a lock; the second
  is told so.
* A process killed while Chroma writes its graph can leave files that crash every later process. A
  marker stands while something runs that may crash; two starts in a row that find it, and the
  directory is emptied. It is a copy, and is made again.
* Chroma reads `.env` of the working directory and unprefixed variables when it is imported, and
  fails on some. It is shown neither.
* Chroma fetches a model when it is to embed. It is never asked to: vectors are given, always.

All calls run one after the other in the injected thread. Nothing of Chroma is imported or opened
before the first call.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from babyagi import private
from babyagi.chroma_import import import_chroma, showing_no_environment
from babyagi.errors import IndexOwnedElsewhereError, StoreUnusableError
from babyagi.resultstore.base import Hit, IndexItem
from babyagi.resultstore.chroma_calls import (
    SYNC_THRESHOLD,
    batches,
    collection_settings,
    require_cosine,
    to_records,
    translating,
)

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

T = TypeVar("T")

OWNER_FILE = ".babyagi-owner"
CRASH_FILE = ".babyagi-may-crash"
MAX_CRASHES = 2


class Offload(Protocol):
    """Runs blocking work in one thread, one call after the other."""

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]: ...


class ChromaIndex:
    """A `VectorIndex` in a directory that belongs to it alone. Whoever made it closes it, before
    the offload.

    Args:
        directory: made when missing; may be emptied when it is damaged.
        offload: always the same one thread; Chroma must not be shared with a fork.
        sync_threshold: after how many records Chroma writes its graph; holds for collections made
            from now on.
    """

    is_memory = False
    read_lag_s = 0.0

    def __init__(
        self, directory: Path, *, offload: Offload, sync_threshold: int = SYNC_THRESHOLD
    ) -> None:
        self._offload = offload
        self._chroma = _Chroma(directory, sync_threshold)

    async def ping(self) -> None:
        await self._run(self._chroma.look)

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        await self._run(lambda: self._chroma.upsert(collection, items))

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        return await self._run(lambda: self._chroma.query(collection, vector, k))

    async def ids(self, collection: str) -> list[str]:
        return await self._run(lambda: self._chroma.ids(collection))

    async def drop(self, collection: str) -> None:
        await self._run(lambda: self._chroma.drop(collection))

    async def close(self) -> None:
        await self._offload(self._chroma.close)

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._offload(work)


class _Chroma:
    """The blocking half. Every public method raises `IndexUnavailableError` or `StoreUnusableError`
    only."""

    def __init__(self, directory: Path, sync_threshold: int) -> None:
        self._directory = directory
        self._sync_threshold = sync_threshold
        self._crash_mark = directory / CRASH_FILE
        self._n_crashes = 0  # starts in a row that ended in a crash, as far as we know
        self._owner_fd: int | None = None
        self._client: Client | None = None
        self._collections: dict[str, Collection] = {}

    def look(self) -> None:
        with translating():
            if find_spec("chromadb") is None:
                raise ImportError("No module named 'chromadb'")
            make_directory(self._directory)

    def upsert(self, name: str, items: Sequence[IndexItem]) -> None:
        with self._calling(reads_graph=True) as client:
            collection = self._find(client, name) or self._create(client, name)
            for batch in batches(items):
                collection.upsert(**to_records(batch))
            private.tighten(self._directory)

    def query(self, name: str, vector: bytes, k: int) -> list[Hit]:
        import numpy as np

        with self._calling(reads_graph=True) as client:
            collection = self._find(client, name)
            if collection is None or k < 1:
                return []
            found = collection.query(
                query_embeddings=[np.frombuffer(vector, dtype="<f4")],
                n_results=k,
                include=["distances"],
            )
            distances = (found["distances"] or [[]])[0]
            return [
                Hit(id=id_, score=1.0 - float(distance))
                for id_, distance in zip(found["ids"][0], distances, strict=True)
            ]

    def ids(self, name: str) -> list[str]:
        with self._calling(reads_graph=False) as client:
            collection = self._find(client, name)
            return list(collection.get(include=[])["ids"]) if collection else []

    def drop(self, name: str) -> None:
        """Remove the collection, and if that cannot be done everything: the other collections are
        copies, too."""
        self._collections.pop(name, None)
        try:
            with self._calling(reads_graph=False) as client:
                if self._find(client, name) is not None:
                    client.delete_collection(name)
        except StoreUnusableError:
            self._close_client()
            with translating():
                self._empty_directory()
        self._collections.pop(name, None)

    def close(self) -> None:
        self._close_client()
        if self._owner_fd is not None:
            os.close(self._owner_fd)  # gives the lock back
            self._owner_fd = None

    # -- collections
    # ----------------------------------------------------------------------------------------------

    def _find(self, client: Client, name: str) -> Collection | None:
        """The collection, None when there is none. One that does not measure by cosine is not ours
        to trust."""
        from chromadb.errors import NotFoundError

        if name not in self._collections:
            try:
                collection = client.get_collection(name, embedding_function=None)
            except NotFoundError:
                return None
            require_cosine(name, collection.configuration_json)
            self._collections[name] = collection
        return self._collections[name]

    def _create(self, client: Client, name: str) -> Collection:
        settings = collection_settings(self._sync_threshold)
        self._collections[name] = client.create_collection(
            name, configuration=settings, embedding_function=None
        )
        return self._collections[name]

    # -- opening, and what may crash
    # ---------------------------------------------------------------------------------------

    @contextmanager
    def _calling(self, *, reads_graph: bool) -> Iterator[Client]:
        """Run calls of the client, with the marker standing meanwhile.

        Args:
            reads_graph: the calls read the files that may crash a process; to come through them is
                proof that those are sound.
        """
        with translating():
            self._own()
            self._mark_crash()
            try:
                if self._client is None:
                    self._client = _open_client(self._directory)
                    private.tighten(self._directory)
                yield self._client
                if reads_graph:
                    self._n_crashes = 0
            finally:
                if self._n_crashes == 0:
                    self._crash_mark.unlink(missing_ok=True)

    def _mark_crash(self) -> None:
        with open(self._crash_mark, "w", encoding="ascii", opener=private.open_file) as file:
            file.write(str(self._n_crashes))

    def _own(self) -> None:
        """Become the directory's one owner, if that is not so, and see how the last one ended."""
        if self._owner_fd is not None:
            return
        make_directory(self._directory)
        owner_fd = private.open_file(self._directory / OWNER_FILE)
        try:
            fcntl.flock(owner_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(owner_fd)
            raise IndexOwnedElsewhereError(
                f"another process is using the Chroma index in {self._directory}",
                why="Chroma loses entries when two processes open one directory",
                fix=(
                    "wait for the other process to end, or set BABYAGI_RESULT_STORE=builtin "
                    "for this one"
                ),
                guide="results",
            ) from error
        self._owner_fd = owner_fd
        self._n_crashes = _count_crashes(self._crash_mark)
        if self._n_crashes >= MAX_CRASHES:
            self._empty_directory()

    def _empty_directory(self) -> None:
        for path in self._directory.iterdir():
            if path.name == OWNER_FILE:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        self._n_crashes = 0

    def _close_client(self) -> None:
        client, self._client = self._client, None
        self._collections.clear()
        if client is not None:
            with translating():
                client.close()


def make_directory(directory: Path) -> None:
    """Make the directory where it is missing; raises OSError where nothing can be written in it."""
    private.make_folder(directory)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(f"{directory} cannot be written")


def _count_crashes(mark: Path) -> int:
    """How many starts in a row have found the marker, this one included."""
    try:
        return int(mark.read_text(encoding="ascii")) + 1
    except FileNotFoundError:
        return 0
    except ValueError:
        return 1


def _open_client(directory: Path) -> Client:
    import_chroma()
    import chromadb
    from chromadb.config import Settings

    with showing_no_environment():
        settings = Settings(anonymized_telemetry=False)
    return cast("Client", chromadb.PersistentClient(directory, settings=settings))
