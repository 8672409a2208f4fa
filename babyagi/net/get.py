"""The door of tools to a service that the program or the person named: one request, and nothing
that comes back is taken on trust.

Covers: a deadline, a bound on the body, no redirects, no compression. A secret among the parameters
or headers stands in no error and no log. Does not cover: addresses that a model chose, which
`door` does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from babyagi.errors import SettingsError, ToolError
from babyagi.net.addresses import Proxies, is_loopback
from babyagi.redaction import redact

MAX_BODY_BYTES = 2 * 2**20
MAX_SHOWN_CHARS = 200
_UNSHOWABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def require_https(url: str) -> str:
    """Return the address without its closing slash.

    Raises:
        SettingsError: a secret could be read on the way there: it is not https, and not on this
        machine.
    """
    try:
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or (
            parts.scheme == "http" and is_loopback(parts.hostname or "")
        )
        is_usable = (
            is_safe
            and bool(parts.hostname)
            and parts.port != 0
            and not set("@?#\\") & set(url)
            and url.isprintable()
        )
    except ValueError:
        is_usable = False
    if not is_usable:
        raise SettingsError(
            "the address of a search must be https://HOST, or http on this machine",
            fix="correct the address",
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked: a GET, or with a `body` a POST of it as JSON.

    `url` is as `require_https` gave it, with a path. `secret` is the value of a parameter or header
    that nobody may see.
    """

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = None
    secret: str = field(default="", repr=False)


async def ask_json(
    request: Request, *, timeout_s: float = 20.0, proxies: Proxies | None = None
) -> dict[str, Any]:
    """Return the JSON object that answers the request.

    Args:
        timeout_s: seconds that all of it may take.
        proxies: through which it is asked; the environment names none.

    Raises:
        ToolError: one line: unreachable, too slow, too long, an error status with a piece of what
        was said, or no JSON object.
    """
    found = _parse(await _ask(request, timeout_s, proxies))
    if not isinstance(found, dict):
        raise ToolError(f"{_host(request)} answered with something that is no JSON object")
    return found


async def ask_page(
    request: Request, *, timeout_s: float = 20.0, proxies: Proxies | None = None
) -> dict[str, Any]:
    """Return the text that answers the request as `page`; the same errors as `ask_json`."""
    return {"page": (await _ask(request, timeout_s, proxies)).decode("utf-8", "replace")}


async def _ask(request: Request, timeout_s: float, proxies: Proxies | None) -> bytes:
    """The body of an answer with status 200."""
    host = _host(request)
    try:
        with _unlogged():
            async with asyncio.timeout(timeout_s):
                status, body = await _fetch(request, (proxies or Proxies()).find(request.url))
    except TimeoutError:
        raise ToolError(f"{host} gave no answer in {timeout_s:g} s") from None
    except _FetchError as error:
        raise ToolError(f"{host} {error}") from None
    if status != 200:
        found = _parse(body)
        said = found.get("error") if isinstance(found, dict) else body.decode("utf-8", "replace")
        raise ToolError(f"{host} answered {status}: {_show(said, request.secret)}")
    return body


def _host(request: Request) -> str:
    return urlsplit(request.url).netloc


class _FetchError(Exception):
    """What went wrong on the way, as it follows the name of the host."""


async def _fetch(request: Request, proxy: str | None) -> tuple[int, bytes]:
    """The status and the body. No error of the client leaves here: each of them may hold the
    address with the secret."""
    import httpx2

    try:
        async with (
            httpx2.AsyncClient(
                follow_redirects=False,
                timeout=None,
                transport=httpx2.AsyncHTTPTransport(proxy=proxy),
            ) as client,
            client.stream(
                "GET" if request.body is None else "POST",
                request.url,
                params=dict(request.params) or None,
                json=request.body,
                headers={
                    **request.headers,
                    "accept-encoding": "identity",
                    "user-agent": "babyagi",
                },
            ) as response,
        ):
            if response.headers.get("content-encoding", "identity") != "identity":
                raise _FetchError("answered compressed, though plain was asked for")
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise _FetchError(f"answered with more than {MAX_BODY_BYTES // 2**20} MiB")
            return response.status_code, bytes(body)
    except httpx2.ConnectError:
        raise _FetchError("cannot be reached") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError, ValueError) as error:
        raise _FetchError(f"cannot be asked ({type(error).__name__})") from None


@contextmanager
def _unlogged() -> Iterator[None]:
    """Let the client's own log, which shows whole addresses, say nothing for so long."""

    def drop(record: logging.LogRecord) -> bool:
        return False

    client_log = logging.getLogger("httpx2")
    client_log.addFilter(drop)
    try:
        yield
    finally:
        client_log.removeFilter(drop)


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _show(said: object, secret: str) -> str:
    """What the server said, as one short line without the secret, however that is written."""
    text = redact(said if isinstance(said, str) else json.dumps(said), secrets=[secret])
    return _UNSHOWABLE.sub(" ", text).strip()[:MAX_SHOWN_CHARS] or "nothing more"
