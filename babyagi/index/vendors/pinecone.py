"""Pinecone, a service, as an index of results that all workers share. Needs the extra `pinecone`.

All vectors of a Pinecone index have the same dimension, and it takes up to a minute to create an
index. So there is one index for each dimension, such as `babyagi-768`, and a collection is a
namespace in it. Pinecone's reads lag behind its writes; if a search finds too few results for this
reason, the vectors in the task store are searched, as for any incomplete index.

Nothing of Pinecone is imported, and no request is sent, before the first call.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.index.port import EXCERPT_CHARS, PING_TIMEOUT_S, Hit, IndexItem, to_numbers
from babyagi.index.vendors import CALL_TIMEOUT_S, ServerIndex
from babyagi.net.addresses import Proxies
from babyagi.runtime.heavy_imports import import_whole

# an estimate: the documentation gives no number (docs.pinecone.io, Check data freshness,
# 2026-11-21)
READ_LAG_S = 5.0
CREATE_TIMEOUT_S = 120  # a new index of the service is ready after seconds, sometimes a minute
MAX_BATCH = 100
MAX_BODY_BYTES = 2_000_000  # of a request (docs.pinecone.io, Operation limits, 2026-11-21)
NUMBER_BYTES = 24  # at most, of a number in JSON, such as -0.018042199313640594 and a comma
PAGE = 100
PREFIX = "babyagi-"
MISMATCH = re.compile(r"dimension", re.IGNORECASE)
AILING = (
    "see whether Pinecone has an outage (https://status.pinecone.io), and the plan's limits at "
    "https://app.pinecone.io"
)
REFUSED = "set PINECONE_API_KEY to a key that may write, and check what the project's plan allows"


class PineconeIndex(ServerIndex):
    """A `VectorIndex` on Pinecone.

    Args:
        api_key: the key of a Pinecone project.
        cloud, region: where a missing index is created.
        host: the URL of the control plane; '' for Pinecone's own.
        timeout_s: the time limit of a call; to create an index may take longer.
    """

    vendor = "Pinecone"
    install = "pip uninstall -y pinecone-client pinecone, then pip install 'pinecone>=9'"
    read_lag_s = READ_LAG_S

    def __init__(
        self,
        api_key: str,
        *,
        cloud: str,
        region: str,
        host: str = "",
        timeout_s: float = CALL_TIMEOUT_S,
        proxies: Proxies | None = None,
    ) -> None:
        super().__init__(api_key=api_key, timeout_s=timeout_s, proxies=proxies)
        self._cloud, self._region = cloud, region
        self._host = host
        self._finding = asyncio.Lock()
        self._index_by_dimension: dict[int, Any] = {}
        self._dimension_by_name: dict[str, int] = {}

    async def ping(self) -> None:
        async with self._calling(min(PING_TIMEOUT_S, self._timeout_s)):
            await self._client.list_indexes()

    async def upsert(self, collection: str, items: Sequence[IndexItem]) -> None:
        dimension = len(items[0].vector) // 4
        async with self._calling(CREATE_TIMEOUT_S + self._timeout_s):
            held = await self._dimension_of(collection)
            if {len(item.vector) // 4 for item in items} != {held or dimension}:
                what = "a collection cannot have vectors of different dimensions"
                raise StoreUnusableError(what, guide="results")
            index = await self._index(dimension) or await self._create(dimension)
            size = _batch_size(dimension)
            for start in range(0, len(items), size):
                records = [
                    {
                        "id": item.id,
                        "values": to_numbers(item.vector),
                        "metadata": {"task_id": item.task_id, "text": item.excerpt},
                    }
                    for item in items[start : start + size]
                ]
                await index.upsert(vectors=records, namespace=collection)
            self._dimension_by_name[collection] = dimension

    async def query(self, collection: str, vector: bytes, *, k: int) -> list[Hit]:
        async with self._calling():
            index = await self._index(len(vector) // 4)
            if index is None:
                return []
            reply = await index.query(vector=to_numbers(vector), top_k=k, namespace=collection)
            return [Hit(id=found.id, score=float(found.score)) for found in reply.matches]

    async def ids(self, collection: str) -> list[str]:
        found: list[str] = []
        token: str | None = None
        while True:
            async with self._calling():
                if (index := await self._index_of(collection)) is None:
                    return found
                page = await index.list_paginated(
                    namespace=collection, limit=PAGE, pagination_token=token
                )
            found += [entry.id for entry in page.vectors]
            token = page.pagination.next if page.pagination else None
            if not token:
                return found

    async def drop(self, collection: str) -> None:
        from pinecone.errors import NotFoundError

        async with self._calling():
            index = await self._index_of(collection)
            self._dimension_by_name.pop(collection, None)
            if index is not None:
                with suppress(NotFoundError):  # the statistics may show a namespace that is gone
                    # `delete` would leave an empty namespace
                    await index.delete_namespace(namespace=collection)

    async def close(self) -> None:
        await self._forget()
        await super().close()

    # -- indexes and namespaces
    # ----------------------------------------------------------------------------------------------

    async def _dimension_of(self, collection: str) -> int:
        """Return the dimension of the index that has the collection as a namespace; 0 if none
        has."""
        if collection not in self._dimension_by_name:
            for listed in await self._client.list_indexes():
                if found := re.fullmatch(PREFIX + r"(\d+)", listed.name):
                    index = await self._index(int(found[1]))
                    stats = await index.describe_index_stats() if index is not None else None
                    if stats is not None and collection in stats.namespaces:
                        self._dimension_by_name[collection] = int(found[1])
        return self._dimension_by_name.get(collection, 0)

    async def _index_of(self, collection: str) -> Any:
        """Return the index that has the collection as a namespace, opened; None if none has."""
        dimension = await self._dimension_of(collection)
        return await self._index(dimension) if dimension else None

    async def _index(self, dimension: int) -> Any:
        """Return the index for vectors of this dimension, opened; None if it does not exist."""
        from pinecone.errors import NotFoundError

        async with self._finding:
            if dimension not in self._index_by_dimension:
                try:
                    described = await self._client.describe_index(f"{PREFIX}{dimension}")
                except NotFoundError:
                    return None
                opened = self._client.index(host=described.host)
                opened = await opened if inspect.isawaitable(opened) else opened
                self._index_by_dimension[dimension] = opened
            return self._index_by_dimension[dimension]

    async def _create(self, dimension: int) -> Any:
        """Create and open the index for vectors of this dimension. If another worker has created it
        meanwhile, only open it."""
        from pinecone import ServerlessSpec
        from pinecone.errors import ApiError, ConflictError

        spec = ServerlessSpec(cloud=self._cloud, region=self._region)
        try:
            with warnings.catch_warnings():
                # every version from 9 on accepts this form
                warnings.simplefilter("ignore", DeprecationWarning)
                name, wait_s = f"{PREFIX}{dimension}", CREATE_TIMEOUT_S
                await self._client.create_index(
                    name, dimension=dimension, metric="cosine", spec=spec, timeout=wait_s
                )
        except ConflictError:
            pass
        except ApiError as error:
            if error.status_code not in (400, 404):
                raise
            what = f"Pinecone cannot create an index in {self._cloud}, {self._region}"
            why = " ".join(str(error).split())[:500]
            fix = "set PINECONE_ENVIRONMENT=REGION-CLOUD to a place that the project's plan allows"
            raise IndexUnavailableError(what, why=why, fix=fix, guide="results") from error
        index = await self._index(dimension)
        if index is None:
            what = "Pinecone reports a new index as created, but does not list it"
            raise IndexUnavailableError(what, guide="results")
        return index

    async def _forget(self) -> None:
        indexes, self._index_by_dimension = list(self._index_by_dimension.values()), {}
        self._dimension_by_name.clear()
        for index in indexes:
            await index.close()

    # -- calls
    # ----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _calling(self, timeout_s: float = 0.0) -> AsyncIterator[Any]:
        async with super()._calling(timeout_s) as client:
            from pinecone.errors import NotFoundError, PineconeConnectionError

            try:
                yield client
            except (NotFoundError, PineconeConnectionError):
                await self._forget()  # look the indexes up again: one may be gone or moved
                raise

    async def _open(self) -> Any:
        try:
            await asyncio.to_thread(import_whole, "pinecone")
            from pinecone import AsyncPinecone, RetryConfig
        except Exception as error:  # remains of `pinecone-client` raise a bare Exception
            said = " ".join(str(error).split())[:300]
            why = f"{said}; the package is `pinecone`, not `pinecone-client`"
            raise ImportError(why) from error
        # The retries are for the control plane. After a 429 of the data plane, the library waits as
        # long as the service demands, up to the time limit of the call.
        return AsyncPinecone(
            api_key=self._api_key,
            host=self._host or None,
            timeout=self._timeout_s,
            retry_config=RetryConfig(max_retries=1),
            proxy_url=self._proxies.find(self._host or "https://api.pinecone.io"),
        )

    def _is_damage(self, error: BaseException, why: str) -> bool:
        return _status_of(error) == 400 and MISMATCH.search(why) is not None

    def _find_fix(self, error: BaseException, why: str) -> str:
        return REFUSED if _status_of(error) in (401, 402, 403) else AILING


def _status_of(error: BaseException) -> int | None:
    return getattr(error, "status_code", None) or getattr(error, "status", None)


def _batch_size(dimension: int) -> int:
    """Return how many records fit into one request, even if each character of their excerpts is
    escaped."""
    return max(1, min(MAX_BATCH, MAX_BODY_BYTES // (dimension * NUMBER_BYTES + 6 * EXCERPT_CHARS)))
