"""Chroma as an index of results: embedded in this process, or on a server that all workers
share."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.files import private
from babyagi.index.port import PING_TIMEOUT_S, Hit, IndexItem
from babyagi.index.vendors import CALL_TIMEOUT_S, ServerIndex, VendorIndex
from babyagi.net.addresses import Proxies
from babyagi.runtime.heavy_imports import import_chroma, showing_no_environment
from babyagi.runtime.offload import Offload

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

T = TypeVar("T")

MAX_BATCH = 500  # vectors; Chroma takes 5,461 at once, and 500 with 1,536 numbers are 3 MB
# After so many new records, Chroma rewrites its graph in place, and a kill during that damages it.
# Most objectives never have so many results. A higher number would be safer but slower: with 5,000
# it takes 2.7 s to open the index and 65 ms to add a batch; with 1,000, 0.2 s and 24 ms.
SYNC_THRESHOLD = 2_000
# Of 352 results that differ only in two numbers, 98 can never be found with Chroma's defaults of 16
# and 100, and 10 with these settings, which take 3 ms per result instead of 1. Of prose, all are
# found with both.
MAX_NEIGHBORS, EF_CONSTRUCTION = 64, 400
# errors that pass by themselves, or when a person makes room; all others are damage
TIME_MENDS = re.compile(
    "disk is full|database is locked|readonly database|no space left|too many open files",
    re.IGNORECASE,
)


def collection_settings(sync_threshold: int = SYNC_THRESHOLD) -> Any:
    """Return the configuration of a new collection: cosine distances, and the settings of the graph
    that Chroma searches (HNSW)."""
    return {
        "hnsw": {
            "space": "cosine",
            "max_neighbors": MAX_NEIGHBORS,
            "ef_construction": EF_CONSTRUCTION,
            "sync_threshold": sync_threshold,
            "batch_size": min(100, sync_threshold),
        }
    }


def require_cosine(collection: Collection) -> None:
    """Check that the collection uses cosine distances.

    Raises:
        StoreUnusableError: it uses other distances.
    """
    made: Mapping[str, Any] = collection.configuration_json
    # a distributed server uses `spann`
    space = (made.get("hnsw") or made.get("spann") or {}).get("space")
    if space != "cosine":
        what = f"the collection {collection.name} uses {space} distances, but babyagi needs cosine"
        raise StoreUnusableError(what, guide="results")


class _Calls(VendorIndex):
    """The calls of Chroma, which are the same for an embedded one and for a server. `_call` runs
    each of them in a thread."""

    vendor = "Chroma"
    settings: Any  # of a new collection

    async def _call(self, work: Callable[[ClientAPI], T]) -> T:
        """Return what `work` returns of Chroma's client. Raises only what the port promises."""
        raise NotImplementedError

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        import numpy as np

        def put(client: ClientAPI) -> None:
            found = client.get_or_create_collection(
                collection, configuration=self.settings, embedding_function=None
            )
            require_cosine(found)
            for start in range(0, len(items), MAX_BATCH):
                batch = items[start : start + MAX_BATCH]
                found.upsert(
                    ids=[item.id for item in batch],
                    embeddings=[np.frombuffer(item.vector, dtype="<f4") for item in batch],
                    documents=[item.excerpt for item in batch],
                    metadatas=[{"task_id": item.task_id} for item in batch],
                )

        await self._call(put)

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        import numpy as np

        def ask(client: ClientAPI) -> list[Hit]:
            if (found := _find(client, collection)) is None:
                return []
            asked = [np.frombuffer(vector, dtype="<f4")]
            reply: Any = found.query(query_embeddings=asked, n_results=k, include=["distances"])
            pairs = zip(reply["ids"][0], (reply["distances"] or [[]])[0], strict=True)
            return [Hit(id=id_, score=1.0 - float(distance)) for id_, distance in pairs]

        return await self._call(ask)

    async def ids(self, collection: str) -> list[str]:
        def list_ids(client: ClientAPI) -> list[str]:
            found = _find(client, collection)
            return list(found.get(include=[])["ids"]) if found else []

        return await self._call(list_ids)

    async def drop(self, collection: str) -> None:
        from chromadb.errors import NotFoundError

        def remove(client: ClientAPI) -> None:
            with suppress(NotFoundError):
                client.delete_collection(collection)

        await self._call(remove)


def _find(client: ClientAPI, name: str) -> Collection | None:
    """Return the collection, or None if it does not exist."""
    from chromadb.errors import NotFoundError

    try:
        collection = client.get_collection(name, embedding_function=None)
    except NotFoundError:
        return None
    require_cosine(collection)
    return collection


# --------------------------------------------------------------------------------------------------
# Chroma, embedded in this process, with its files in one directory: the default index.
#
# These failures were seen with chromadb 1.5, and are prevented here:
# * If two processes use one directory, entries get lost without an error. So a process locks the
#   directory, and a second process gets an error.
# * If a process is killed while Chroma writes its graph, the files may crash every later process.
#   So a marker file exists during each call. If a start finds it, the directory is emptied. The
#   index is then rebuilt from the vectors in the task store.
# * At import, Chroma reads the file `.env` of the working directory and environment variables
#   without a prefix, and fails on some. Both are hidden from it.
# * Chroma downloads a model to compute embeddings. Here it gets the vectors, so it needs no model.
#
# All calls run one after the other in the thread of `offload`. Nothing of Chroma is imported or
# opened before the first call.
# --------------------------------------------------------------------------------------------------

OWNER_FILE = ".babyagi-owner"
CRASH_FILE = ".babyagi-may-crash"


class ChromaIndex(_Calls):
    """A `VectorIndex` in a directory of its own. The code that creates it must close it before it
    closes `offload`.

    Args:
        directory: created if it is missing, emptied if it is damaged.
        offload: runs all calls in the same single thread, not in a forked process.
        sync_threshold: after how many new records Chroma writes its graph, in collections that are
            created from now on.
    """

    install = "pip install chromadb, or set BABYAGI_RESULT_STORE=builtin, which needs no package"

    def __init__(
        self, directory: Path, *, offload: Offload, sync_threshold: int = SYNC_THRESHOLD
    ) -> None:
        self.settings = collection_settings(sync_threshold)
        self._directory, self._offload = directory, offload
        self._server = f"the Chroma index in {directory}"
        self._crash_mark = directory / CRASH_FILE
        self._owner: TextIO | None = None  # the open file whose lock this process holds
        self._client: Client | None = None

    async def ping(self) -> None:
        def look() -> None:
            with self._translating():
                make_directory(self._directory)

        await self._offload(look)

    async def drop(self, collection: str) -> None:
        """Remove the collection; if the index is damaged, remove all collections. No result is
        lost, because collections are rebuilt from the task store."""
        try:
            await super().drop(collection)
        except StoreUnusableError:
            await self._offload(self._begin_anew)

    async def close(self) -> None:
        def close() -> None:
            self._close_client()
            if self._owner is not None:
                self._owner.close()  # releases the lock
                self._owner = None

        await self._offload(close)

    async def _call(self, work: Callable[[ClientAPI], T]) -> T:
        def call() -> T:
            with self._calling() as client:
                return work(client)

        return await self._offload(call)

    # -- opening, and guarding against crashes
    # ---------------------------------------------------------------------------------------

    @contextmanager
    def _calling(self) -> Iterator[Client]:
        """Yield Chroma's client. While the caller uses it, a marker file exists: a process that
        finds the file at its start knows that an earlier process crashed during a call."""
        with self._translating():
            self._own()
            os.close(private.open_file(self._crash_mark))
            try:
                if self._client is None:
                    self._client = _open_client(self._directory)
                yield self._client
            finally:
                private.tighten(self._directory)
                self._crash_mark.unlink(missing_ok=True)

    def _own(self) -> None:
        """Lock the directory, if this process has not done so yet, and empty it if it has the
        marker of a crash."""
        if self._owner is not None:
            return
        make_directory(self._directory)
        self._owner = private.try_lock(self._directory / OWNER_FILE)
        if self._owner is None:
            what = f"another process is using the Chroma index in {self._directory}"
            why = "Chroma loses entries if two processes open the same directory"
            fix = "wait until that process ends, or set BABYAGI_RESULT_STORE=builtin for this one"
            owned = IndexUnavailableError(what, why=why, fix=fix, guide="results")
            owned.is_owned_elsewhere = True
            raise owned
        if self._crash_mark.exists():
            self._empty_directory()

    def _begin_anew(self) -> None:
        self._close_client()
        with self._translating():
            self._empty_directory()

    def _empty_directory(self) -> None:
        for path in self._directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != OWNER_FILE:
                path.unlink()

    def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with self._translating():
                client.close()

    def _is_damage(self, error: BaseException, why: str) -> bool:
        return not isinstance(error, OSError) and TIME_MENDS.search(why) is None

    def _find_fix(self, error: BaseException, why: str) -> str:
        return "make it a directory that can be written, or set BABYAGI_RESULT_STORE=builtin"


def make_directory(directory: Path) -> None:
    """Create the directory if it is missing.

    Raises:
        OSError: it cannot be created, or no files can be written in it.
    """
    private.make_folder(directory)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(f"{directory} cannot be written")


def _open_client(directory: Path) -> Client:
    try:
        import_chroma()
    except Exception as error:  # such as a RuntimeError where SQLite is too old for it
        raise ImportError(f"{type(error).__name__}: {error}") from error
    import chromadb
    from chromadb.config import Settings

    with showing_no_environment():
        settings = Settings(anonymized_telemetry=False)
    return cast("Client", chromadb.PersistentClient(directory, settings=settings))


# --------------------------------------------------------------------------------------------------
# Chroma on a server that all workers share.
#
# The client of chromadb 1.5 has no time limits, and obeys the proxies of the environment. Here all
# calls have a time limit, and only the proxies of the settings are used. As with the embedded
# index, Chroma gets vectors and computes none.
#
# Nothing of Chroma is imported, and no request is sent, before the first call.
# --------------------------------------------------------------------------------------------------

# errors of the server for a collection that it cannot use; any other error may be temporary
DAMAGE = ("InternalError", "InvalidDimensionException", "InvalidArgumentError")


class ChromaServerIndex(_Calls, ServerIndex):
    """A `VectorIndex` on a Chroma server.

    Args:
        url: `http://HOST:PORT` or `https://…`.
    """

    install = "pip install chromadb, or unset CHROMA_URL to use no Chroma server"
    settings = collection_settings()

    def __init__(
        self, url: str, *, timeout_s: float = CALL_TIMEOUT_S, proxies: Proxies | None = None
    ) -> None:
        super().__init__(timeout_s=timeout_s, proxies=proxies)
        self._url, self._server = url, f"the Chroma server {url}"

    async def ping(self) -> None:
        async with self._calling(min(PING_TIMEOUT_S, self._timeout_s)) as client:
            await asyncio.to_thread(client.count_collections)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client._server._session.close()

    async def _call(self, work: Callable[[ClientAPI], T]) -> T:
        async with self._calling() as client:
            return await asyncio.to_thread(work, client)

    async def _open(self) -> Client:
        proxy = self._proxies.find(self._url)
        return await asyncio.to_thread(_open_server_client, self._url, proxy, self._timeout_s)

    def _is_damage(self, error: BaseException, why: str) -> bool:
        return type(error).__name__ in DAMAGE and not TIME_MENDS.search(why)

    def _find_fix(self, error: BaseException, why: str) -> str:
        look = f"run curl {self._url}/api/v2/heartbeat to see whether the server runs"
        return f"{look}; set CHROMA_URL if its address has changed"


def _open_server_client(url: str, proxy: str | None, timeout_s: float) -> Client:
    """Return a client like that of `chromadb.HttpClient`, which however has its own connections,
    ignores the environment, and sends nothing yet."""
    import_chroma()
    import httpx
    from chromadb.api import ServerAPI
    from chromadb.api.client import Client
    from chromadb.config import DEFAULT_DATABASE, DEFAULT_TENANT, Settings, System

    with showing_no_environment():
        settings = Settings(
            anonymized_telemetry=False,
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=url,
            chroma_server_http_port=8000,  # the port if the URL has none
            chroma_server_ssl_enabled=url.startswith("https:"),
        )
        server: Any = System(settings).instance(ServerAPI)  # type: ignore[type-abstract]  # it looks up which is configured
    server._session.close()
    way, headers = httpx.HTTPTransport(proxy=proxy), {"Content-Type": "application/json"}
    server._session = httpx.Client(timeout=timeout_s, headers=headers, transport=way)
    client = Client.__new__(Client)  # its `__init__` sends requests
    client.tenant, client.database, client._server = DEFAULT_TENANT, DEFAULT_DATABASE, server
    return client
