"""Adapters of vector stores, and what those of stores on a server share."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from babyagi.errors import BabyagiError, IndexUnavailableError, StoreUnusableError
from babyagi.net.addresses import Proxies
from babyagi.redaction import redact

CALL_TIMEOUT_S = 20.0


class VendorIndex:
    """The part of a `VectorIndex` of a vendor that does not depend on which it is: errors of this
    program."""

    is_memory = False
    read_lag_s = 0.0
    vendor: str
    install: str
    """What to do if the vendor's library cannot be imported."""
    _server: str  # as errors call it
    _api_key = ""

    @contextmanager
    def _translating(self, timeout_s: float = 0.0) -> Iterator[None]:
        """Translate the exceptions of a vendor's library, its server, the disk and the network into
        errors of this program."""
        try:
            yield
        except BabyagiError:
            raise
        except ImportError as error:
            what, why = f"{self.vendor} cannot be imported", str(error)
            raise IndexUnavailableError(what, why=why, fix=self.install, guide="results") from error
        except TimeoutError as error:
            late = TimeoutError(str(error) or f"no answer within {timeout_s:g} s")
            raise self._explain(late) from error
        except BaseException as error:
            # a panic of Chroma's native code is not an `Exception`
            if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
                raise
            raise self._explain(error) from error

    def _explain(self, error: BaseException) -> BabyagiError:
        """Return this program's error for one of the vendor: `StoreUnusableError`, after which the
        collection is rebuilt, only if the collection is damaged."""
        named = "" if isinstance(error, TimeoutError) else f"{type(error).__name__}: "
        why = redact(" ".join(f"{named}{error}".split()), secrets=[self._api_key])[:500]
        if self._is_damage(error, why):
            what = f"{self._server} cannot use the collection"
            return StoreUnusableError(what, why=why, guide="results")
        what, fix = f"{self._server} cannot answer now", self._find_fix(error, why)
        return IndexUnavailableError(what, why=why, fix=fix, guide="results")

    def _is_damage(self, error: BaseException, why: str) -> bool:
        """Return whether the error means that the collection cannot be used; `why` is its text."""
        raise NotImplementedError

    def _find_fix(self, error: BaseException, why: str) -> str:
        """Return what a person can do about an index that cannot answer."""
        raise NotImplementedError


class ServerIndex(VendorIndex):
    """A `VectorIndex` on a server: one client, which the first call opens, and a time limit for
    each call. The code that creates it must close it.

    Args:
        api_key: '' for a server that needs none.
        timeout_s: the time limit of a call.
        proxies: the proxies to use; those in the environment are ignored.
    """

    _start_s = 0.0  # how much longer the call may take that opens the client

    def __init__(
        self, *, api_key: str = "", timeout_s: float = CALL_TIMEOUT_S, proxies: Proxies | None
    ) -> None:
        self._api_key, self._timeout_s = api_key, timeout_s
        self._proxies = proxies or Proxies()
        self._server = self.vendor
        self._client: Any = None
        self._opening = asyncio.Lock()  # the indexer and the first tasks call at the same time

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def _calling(self, timeout_s: float = 0.0) -> AsyncIterator[Any]:
        """Yield the vendor's client."""
        timeout_s = (timeout_s or self._timeout_s) + (0.0 if self._client else self._start_s)
        with self._translating(timeout_s):
            async with asyncio.timeout(timeout_s):
                async with self._opening:
                    self._client = self._client or await self._open()
                yield self._client

    async def _open(self) -> Any:
        """Import the vendor's library, and return a client."""
        raise NotImplementedError
