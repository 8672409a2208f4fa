"""Weaviate on a server, as an index of results that all workers share. Needs the extra `weaviate`.

Weaviate's library has three weaknesses, which are mended here. When it connects, it looks for a
newer version of itself on the package index: this is switched off. It raises no error if the server
refuses single objects of a batch: this is checked. Some of its calls have no time limit: here all
have one. Weaviate gets vectors and computes none.

Nothing of Weaviate is imported, and no request is sent, before the first call.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from babyagi.index.port import PING_TIMEOUT_S, Hit, IndexItem, to_numbers
from babyagi.index.vendors import CALL_TIMEOUT_S, ServerIndex
from babyagi.net.addresses import Proxies
from babyagi.runtime.heavy_imports import import_whole

if TYPE_CHECKING:
    from weaviate import WeaviateAsyncClient

EMBEDDED_START_S = 300.0  # the first start downloads 60 MB, in a thread that cannot be stopped
MAX_BATCH = 100  # vectors; with 1,536 numbers each they are 600 kB
PAGE = 1_000
HTTP_PORT, GRPC_PORT = 8080, 50051
EMBEDDED_PORT, EMBEDDED_GRPC_PORT = 8079, 50050
# matches whole words, because messages also contain the names of collections
MISMATCH = re.compile(r"\bvector\b.*\blength|\blength\b.*\bvector|\bdimension", re.IGNORECASE)
PINGED = "Babyagi_ping"  # no collection has this name
NO_CLASS = re.compile(r"(?i)could not find class|class \S+ (not found|does(n't| not) exist)")
REFUSED = re.compile(r"(?i)\b(401|403|unauthenticated|unauthorized|permissions?|forbidden)\b")


class WeaviateIndex(ServerIndex):
    """A `VectorIndex` on a Weaviate server.

    Args:
        url: `http://HOST:PORT` or `https://…`; '' if `is_embedded`.
        api_key: '' for a server that needs none.
        grpc_port: None for 50051, or 443 in Weaviate's cloud.
        is_embedded: whether the library downloads and starts a server on this machine.
        timeout_s: the time limit of a call; to start an embedded server may take longer.
    """

    vendor = "Weaviate"
    install = "pip install 'weaviate-client>=4.23', or set BABYAGI_RESULT_STORE=chroma"

    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        grpc_port: int | None = None,
        is_embedded: bool = False,
        timeout_s: float = CALL_TIMEOUT_S,
        proxies: Proxies | None = None,
    ) -> None:
        super().__init__(api_key=api_key, timeout_s=timeout_s, proxies=proxies)
        self._url, self._grpc_port, self._is_embedded = url, grpc_port, is_embedded
        self._server = "the embedded Weaviate" if is_embedded else f"Weaviate at {url}"
        self._start_s = EMBEDDED_START_S if is_embedded else 0.0

    async def ping(self) -> None:
        """Call the server over HTTP and gRPC. An embedded server that is not running is not
        started; only the library is imported."""
        if self._is_embedded and self._client is None:
            with self._translating(PING_TIMEOUT_S):
                return await asyncio.to_thread(_import)
        async with self._calling(min(PING_TIMEOUT_S, self._timeout_s)) as client:
            await client.collections.exists(PINGED)
            try:
                await client.collections.use(PINGED).query.fetch_objects(limit=1)
            except Exception as error:
                if not NO_CLASS.search(str(error)):
                    raise

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        name = class_name(collection)
        async with self._calling() as client:
            if not await client.collections.exists(name):
                await _create(client, name)
            for start in range(0, len(items), MAX_BATCH):
                await self._insert(client, name, items[start : start + MAX_BATCH])

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        from weaviate.classes.query import MetadataQuery

        async with self._asking(collection) as asked:
            if asked is None:
                return []
            numbers, distance = to_numbers(vector), MetadataQuery(distance=True)
            reply = await asked.query.near_vector(
                near_vector=numbers, limit=k, return_properties=[], return_metadata=distance
            )
            return [
                Hit(id=str(found.uuid), score=1.0 - float(found.metadata.distance or 0.0))
                for found in reply.objects
            ]

    async def ids(self, collection: str) -> list[str]:
        async with self._asking(collection) as asked:
            if asked is None:
                return []
            listed = asked.iterator(return_properties=[], cache_size=PAGE)
            return [str(found.uuid) async for found in listed]

    async def drop(self, collection: str) -> None:
        name = class_name(collection)
        async with self._calling() as client:
            if await client.collections.exists(name):
                await client.collections.delete(name)

    # -- calls
    # ----------------------------------------------------------------------------------------------

    async def _insert(
        self, client: WeaviateAsyncClient, name: str, items: Sequence[IndexItem]
    ) -> None:
        """Insert a batch. Objects with the same ids are replaced. Raises `RuntimeError` if the
        server refused an object."""
        from weaviate.classes.data import DataObject

        objects = [
            DataObject(
                uuid=item.id,
                vector=to_numbers(item.vector),
                properties={"task_id": item.task_id, "text": item.excerpt},
            )
            for item in items
        ]
        done = await client.collections.use(name).data.insert_many(objects)
        for error in done.errors.values():
            raise RuntimeError(error.message)

    @asynccontextmanager
    async def _asking(self, collection: str) -> AsyncIterator[Any]:
        """Yield the collection, or None if it does not exist."""
        name = class_name(collection)
        async with self._calling() as client:
            yield client.collections.use(name) if await client.collections.exists(name) else None

    async def _open(self) -> WeaviateAsyncClient:
        await asyncio.to_thread(_import)  # takes half a second
        import weaviate
        from weaviate.classes.init import AdditionalConfig, Auth, Timeout
        from weaviate.config import GrpcConfig
        from weaviate.embedded import EmbeddedOptions

        timeout = Timeout(init=self._timeout_s, query=self._timeout_s, insert=self._timeout_s)
        proxy = None if self._is_embedded else self._proxies.find(self._url)
        # by default, gRPC takes proxies from the environment
        direct = GrpcConfig(channel_options=[("grpc.enable_http_proxy", 0)])
        grpc = None if proxy else direct
        config = AdditionalConfig(timeout=timeout, proxies=proxy, trust_env=False, grpc_config=grpc)
        if self._is_embedded:
            client = await asyncio.to_thread(
                weaviate.WeaviateAsyncClient,
                embedded_options=EmbeddedOptions(port=EMBEDDED_PORT, grpc_port=EMBEDDED_GRPC_PORT),
                additional_config=config,
                skip_init_checks=True,
            )
        else:
            parts = urlsplit(self._url)
            is_tls = parts.scheme == "https"
            http_port = parts.port or (443 if is_tls else HTTP_PORT)
            grpc_host, grpc_port = grpc_address(self._url, self._grpc_port)
            client = weaviate.use_async_with_custom(
                http_host=_host(self._url), http_port=http_port, http_secure=is_tls,
                grpc_host=grpc_host, grpc_port=grpc_port, grpc_secure=is_tls,
                auth_credentials=Auth.api_key(self._api_key) if self._api_key else None,
                additional_config=config, skip_init_checks=True,
            )  # fmt: skip
        try:
            await client.connect()
        except BaseException:
            await client.close()
            raise
        return client

    # -- errors
    # ----------------------------------------------------------------------------------------------

    def _is_damage(self, error: BaseException, why: str) -> bool:
        return MISMATCH.search(why) is not None

    def _find_fix(self, error: BaseException, why: str) -> str:
        if REFUSED.search(why):
            return "set WEAVIATE_API_KEY to a key that may write"
        if self._is_embedded:
            where = f"WEAVIATE_URL=http://127.0.0.1:{EMBEDDED_PORT}"
            return f"if an embedded server is still running, connect to it: {where}"
        host, port = grpc_address(self._url, self._grpc_port)
        return f"check that {self._url} (WEAVIATE_URL) and {host}:{port} (gRPC) answer"


def grpc_address(url: str, port: int | None = None) -> tuple[str, int]:
    """Return the (host, port) for gRPC. Weaviate's cloud has a separate host for it, whose name is
    derived as in Weaviate's library."""
    host = _host(url)
    if host.endswith(".weaviate.network"):
        return host.replace(".", ".grpc.", 1), port or 443
    if host.endswith(".weaviate.cloud"):
        return f"grpc-{host}", port or 443
    is_embedded = urlsplit(url).port == EMBEDDED_PORT  # one that another process started
    return host, port or (EMBEDDED_GRPC_PORT if is_embedded else GRPC_PORT)


def _host(url: str) -> str:
    host = urlsplit(url).hostname or "localhost"
    return f"[{host}]" if ":" in host else host


def class_name(collection: str) -> str:
    """Return the name of the collection in Weaviate, where names begin with a capital letter and
    have only letters, digits and `_`."""
    return "Babyagi_" + re.sub(r"[^A-Za-z0-9]", "_", collection)


async def _create(client: WeaviateAsyncClient, name: str) -> None:
    """Create the collection, unless another worker has created it meanwhile."""
    from weaviate.classes.config import Configure, DataType, Property, VectorDistances
    from weaviate.exceptions import UnexpectedStatusCodeError

    cosine = Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE)
    vectors = Configure.Vectors.self_provided(vector_index_config=cosine)
    kinds = {"task_id": DataType.INT, "text": DataType.TEXT}
    properties = [Property(name=key, data_type=kind) for key, kind in kinds.items()]
    try:
        await client.collections.create(name, vector_config=vectors, properties=properties)
    except UnexpectedStatusCodeError as error:
        if error.status_code != 422 or not await client.collections.exists(name):
            raise


def _import() -> None:
    """Import Weaviate's library, which takes half a second the first time."""
    import_whole("weaviate")
    # it logs refused objects in full: texts, and vectors of megabytes
    logging.getLogger("weaviate-client").setLevel(logging.CRITICAL)
