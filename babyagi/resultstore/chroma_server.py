"""Chroma over the network: one server that all workers share.

The client library sets no time limit and, as chromadb 1.5 makes its asynchronous client, checks no
certificate unless it is told to. Here every call has a deadline and certificates are checked. As in
the embedded way, vectors are given and Chroma never embeds.

Nothing of Chroma is imported and nothing is asked before the first call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from babyagi.addresses import Proxies
from babyagi.chroma_import import import_chroma, showing_no_environment
from babyagi.errors import BabyagiError, IndexUnavailableError, StoreUnusableError
from babyagi.redaction import redact
from babyagi.resultstore.base import PING_TIMEOUT_S, Hit, IndexItem
from babyagi.resultstore.chroma_calls import (
    TIME_MENDS,
    batches,
    collection_settings,
    require_cosine,
    to_records,
)

if TYPE_CHECKING:
    from chromadb.api import AsyncClientAPI
    from chromadb.api.models.AsyncCollection import AsyncCollection

T = TypeVar("T")

CALL_TIMEOUT_S = 20.0
# What the server says of a collection that it cannot use; whatever else it refuses may be different
# the next time.
DAMAGE = ("InternalError", "InvalidDimensionException", "InvalidArgumentError")


class ChromaServerIndex:
    """A `VectorIndex` on a Chroma server. Whoever made it closes it.

    Args:
        url: `http://HOST:PORT` or `https://…`. timeout_s: for each call.
        proxies: through which the server is reached; the environment names none.
    """

    is_memory = False
    read_lag_s = 0.0

    def __init__(
        self, url: str, *, timeout_s: float = CALL_TIMEOUT_S, proxies: Proxies | None = None
    ) -> None:
        self._url = url
        self._timeout_s = timeout_s
        self._proxies = proxies or Proxies()
        self._client: AsyncClientAPI | None = None
        self._opening = asyncio.Lock()  # the feeder and the first tasks come at once
        self._collections: dict[str, AsyncCollection] = {}

    async def ping(self) -> None:
        async with self._calling(PING_TIMEOUT_S) as client:
            await client.count_collections()

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        async def put(found: AsyncCollection) -> bool:
            for batch in batches(items):
                await found.upsert(**to_records(batch))
            return True

        async with self._calling() as client:
            if not items or await self._use(client, collection, put):
                return
            await client.get_or_create_collection(
                collection, configuration=collection_settings(), embedding_function=None
            )
            if not await self._use(client, collection, put):
                raise self._unavailable(
                    f"the collection {collection} was removed while it was written"
                )

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        import numpy as np

        async def ask(found: AsyncCollection) -> list[Hit]:
            reply = await found.query(
                query_embeddings=[np.frombuffer(vector, dtype="<f4")],
                n_results=k,
                include=["distances"],
            )
            distances = (reply["distances"] or [[]])[0]
            return [
                Hit(id=id_, score=1.0 - float(distance))
                for id_, distance in zip(reply["ids"][0], distances, strict=True)
            ]

        if k < 1:
            return []
        async with self._calling() as client:
            return await self._use(client, collection, ask) or []

    async def ids(self, collection: str) -> list[str]:
        async def list_ids(found: AsyncCollection) -> list[str]:
            return list((await found.get(include=[]))["ids"])

        async with self._calling() as client:
            return await self._use(client, collection, list_ids) or []

    async def drop(self, collection: str) -> None:
        from chromadb.errors import NotFoundError

        async with self._calling() as client:
            self._collections.pop(collection, None)
            try:
                await client.delete_collection(collection)
            except NotFoundError:
                return

    async def close(self) -> None:
        client, self._client = self._client, None
        self._collections.clear()
        if client is not None:
            server: Any = client._server  # type: ignore[attr-defined]  # the asynchronous client has no close of its own
            await server.__aexit__(None, None, None)

    # -- calls
    # ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _calling(self, timeout_s: float = 0.0) -> AsyncIterator[AsyncClientAPI]:
        timeout_s = min(timeout_s or self._timeout_s, self._timeout_s)
        with self._translating(timeout_s):
            async with asyncio.timeout(timeout_s):
                async with self._opening:
                    self._client = self._client or await _open_client(
                        self._url, self._proxies.find(self._url)
                    )
                yield self._client

    async def _use(
        self, client: AsyncClientAPI, name: str, work: Callable[[AsyncCollection], Awaitable[T]]
    ) -> T | None:
        """What the work gives with the collection, None when there is none. One that another worker
        made anew is looked up again."""
        from chromadb.errors import NotFoundError

        collection = await self._find(client, name)
        if collection is None:
            return None
        try:
            return await work(collection)
        except NotFoundError:
            self._collections.pop(name, None)
            collection = await self._find(client, name)
            return None if collection is None else await work(collection)

    async def _find(self, client: AsyncClientAPI, name: str) -> AsyncCollection | None:
        from chromadb.errors import NotFoundError

        if name not in self._collections:
            try:
                collection = await client.get_collection(name, embedding_function=None)
            except NotFoundError:
                return None
            require_cosine(name, collection.configuration_json)
            self._collections[name] = collection
        return self._collections[name]

    @contextmanager
    def _translating(self, timeout_s: float) -> Iterator[None]:
        """Turn whatever the library, the server and the network raise into this project's two
        errors for an index."""
        try:
            yield
        except BabyagiError:
            raise
        except ImportError as error:
            fix = "pip install chromadb, or unset CHROMA_URL"
            raise IndexUnavailableError(
                "Chroma cannot be imported", why=str(error), fix=fix, guide="results"
            ) from error
        except TimeoutError as error:
            raise self._unavailable(f"no answer within {timeout_s:g} s") from error
        except Exception as error:
            why = redact(f"{type(error).__name__}: {error}")[:500]
            if type(error).__name__ in DAMAGE and not any(
                sign in why.lower() for sign in TIME_MENDS
            ):
                raise StoreUnusableError(
                    f"the Chroma server {self._url} cannot use the collection",
                    why=why,
                    guide="results",
                ) from error
            raise self._unavailable(why) from error

    def _unavailable(self, why: str) -> IndexUnavailableError:
        fix = f"curl {self._url}/api/v2/heartbeat shows whether it lives; CHROMA_URL names it"
        return IndexUnavailableError(
            f"the Chroma server {self._url} cannot answer now", why=why, fix=fix, guide="results"
        )


async def _open_client(url: str, proxy: str | None) -> AsyncClientAPI:
    """As `chromadb.AsyncHttpClient` makes it, whose connections are those of all servers together
    and obey the environment."""
    await asyncio.to_thread(import_chroma)  # half a second
    import httpx
    from chromadb.api.async_api import AsyncServerAPI
    from chromadb.api.async_client import AsyncClient
    from chromadb.config import DEFAULT_DATABASE, DEFAULT_TENANT, Settings

    with showing_no_environment():
        settings = Settings(
            anonymized_telemetry=False,
            chroma_api_impl="chromadb.api.async_fastapi.AsyncFastAPI",
            chroma_server_host=url,
            chroma_server_http_port=8000,  # where the address names none
            chroma_server_ssl_enabled=url.startswith("https:"),
        )
    client = AsyncClient(settings=settings)
    client.tenant, client.database = DEFAULT_TENANT, DEFAULT_DATABASE
    client._server = client._system.instance(AsyncServerAPI)  # type: ignore[type-abstract]  # it looks up which is configured
    own = httpx.AsyncClient(
        timeout=None,
        headers={"Content-Type": "application/json"},
        transport=httpx.AsyncHTTPTransport(proxy=proxy),
    )
    server: Any = client._server
    server._clients = {hash(asyncio.get_running_loop()): own}
    return client
