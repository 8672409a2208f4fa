"""Network access of the tools.

For addresses that a model or a page chose, the result is a bounded page, or one line that says why
not. Covers: only http and https to public addresses, however they are spelled, resolved or
redirected. A name is resolved once per request, all its addresses must be public, and the
connection goes to one of them. No credentials, no cookies, no proxy except the configured one. The
whole takes at most `timeout_s`, and a page has at most `max_bytes`, compressed and decompressed.
robots.txt is obeyed, and requests to a host are at least `pause_s` apart.

Does not cover: what a configured proxy resolves; what a page says.

For a service that the program or the person named: one request, and its answer is not trusted.
Covers: a deadline, a bound on the body, no redirects, no compression. A secret among the parameters
or headers appears in no error and no log.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import socket
import ssl
import zlib
from collections import OrderedDict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from babyagi.errors import SettingsError, ToolError
from babyagi.net.addresses import (
    Address,
    AddressError,
    Proxies,
    Target,
    covers,
    is_loopback,
    is_public,
    read_target,
)
from babyagi.redaction import redact

if TYPE_CHECKING:
    from httpcore2 import AsyncNetworkBackend, AsyncNetworkStream, Response

USER_AGENT = "babyagi"
MAX_REDIRECTS = 5
MAX_ADDRESSES = 4  # addresses of a name that are tried
MAX_ROBOTS_BYTES = 512_000  # a reader must take at least 500 KiB (RFC 9309)
MAX_NUMBER_CHARS = 40  # of a pause in a robots.txt
MAX_HOSTS = 256  # whose rules and last visit are remembered
MAX_ACCEPTED_PAUSE_S = 10.0  # that a robots.txt may ask for
_REDIRECTS = (301, 302, 303, 307, 308)
_OURS = (b"User-Agent", USER_AGENT.encode())
_HEADERS = (
    _OURS,
    (b"Accept", b"text/html, application/xhtml+xml, text/*, application/pdf, application/json"),
    (b"Accept-Encoding", b"gzip, deflate"),
    (b"Accept-Language", b"en, *;q=0.5"),
)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The content of an address: at most `max_bytes` of it; `is_cut` says that there was more.
    `url` is the address after redirects, `content_type` the server's header, possibly empty."""

    url: str
    content_type: str
    body: bytes
    is_cut: bool = False


async def look_up(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name, resolved by this machine."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(slots=True)
class _Host:
    """What is remembered about a host: its robots.txt rules, and when the next request may be
    sent."""

    pause_s: float
    rules: RobotFileParser | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0


class Door:
    """Fetches pages. `allow` lists hosts, addresses and networks that are not public and may be
    fetched anyway, each with an optional `:PORT`."""

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        proxies: Proxies | None = None,
        timeout_s: float = 25.0,
        max_bytes: int = 8 * 2**20,
        pause_s: float = 0.5,
        resolve: Resolve = look_up,
    ) -> None:
        self._allow = tuple(allow)
        self._proxies = proxies or Proxies()
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._pause_s = pause_s
        self._resolve = resolve
        self._tls: ssl.SSLContext | None = None
        self._host_by_origin: OrderedDict[str, _Host] = OrderedDict()

    async def fetch(self, url: str) -> Page:
        """Return the page at the address.

        Raises:
            ToolError: one line: the address may not be fetched, cannot be reached, is too slow, or
                answers with an error.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._follow(url)
        except TimeoutError:
            raise ToolError(f"{_shown(url)} gave no answer in {self._timeout_s:g} s") from None

    async def _follow(self, first_url: str) -> Page:
        url = first_url
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._fetch_one(url, led_from=first_url)
            if isinstance(found, Page):
                return found
            url = found
        raise ToolError(f"{_shown(first_url)} redirects more than {MAX_REDIRECTS} times")

    async def _fetch_one(self, url: str, *, led_from: str) -> Page | str:
        """Return the page, or the address to which it redirects."""
        try:
            target = read_target(url)
            await self._require_allowed_by_robots(target)
            async with self._turn(target), self._ask(target) as response:
                location = _header(response, b"location")
                if response.status in _REDIRECTS and location:
                    return _join(target.url, location)
                if response.status != 200:
                    raise ToolError(f"{target.url} answered {response.status}")
                body, is_cut = await _read_body(response, self._max_bytes)
        except AddressError as error:
            way = "" if url == led_from else f"{_shown(led_from)} redirects to "
            raise ToolError(f"{way}{_shown(url)}: {error}") from None
        content_type = _header(response, b"content-type")
        return Page(url=target.url, content_type=content_type, body=body, is_cut=is_cut)

    async def post(self, url: str, *, body: bytes, headers: Mapping[str, str]) -> int:
        """Send the body to the address, and return the status of the answer; redirects are not
        followed. Raises as `fetch`."""
        said = [(name.encode(), one.encode()) for name, one in headers.items()]
        try:
            async with asyncio.timeout(self._timeout_s):
                target = read_target(url)
                async with self._ask(target, "POST", [*said, _OURS], body) as response:
                    return int(response.status)
        except TimeoutError:
            raise ToolError(f"{_shown(url)} gave no answer in {self._timeout_s:g} s") from None
        except AddressError as error:
            raise ToolError(f"{_shown(url)}: {error}") from None

    # -- politeness

    async def _require_allowed_by_robots(self, target: Target) -> None:
        host = self._remembered(target)
        if host.rules is None:
            host.rules = await self._read_rules(target)
            asked_s = min(int(host.rules.crawl_delay(USER_AGENT) or 0), MAX_ACCEPTED_PAUSE_S)
            host.pause_s = max(host.pause_s, asked_s)
        if not host.rules.can_fetch(USER_AGENT, target.url):
            raise AddressError("its robots.txt forbids programs to fetch it")

    async def _read_rules(self, target: Target) -> RobotFileParser:
        """Return the rules of the host; none if it has no robots.txt. While robots.txt is answered
        with server errors, nothing may be fetched (RFC 9309, 2.3.1.4)."""
        url = f"{target.origin}/robots.txt"
        for _ in range(MAX_REDIRECTS + 1):
            async with self._ask(read_target(url)) as response:
                if response.status in _REDIRECTS and (location := _header(response, b"location")):
                    url = _join(url, location)
                    continue
                if response.status >= 500:
                    raise ToolError(f"{target.origin} answered {response.status}")
                body = b""
                if response.status == 200:
                    body, _ = await _read_body(response, MAX_ROBOTS_BYTES)
                return _parse_rules(body.decode("utf-8", "replace"))
        return _parse_rules("")

    def _remembered(self, target: Target) -> _Host:
        host = self._host_by_origin.setdefault(target.origin, _Host(pause_s=self._pause_s))
        self._host_by_origin.move_to_end(target.origin)
        while len(self._host_by_origin) > MAX_HOSTS:
            self._host_by_origin.popitem(last=False)
        return host

    @asynccontextmanager
    async def _turn(self, target: Target) -> AsyncIterator[None]:
        """Wait until the next request to the host may be sent; callers queue up."""
        host, loop = self._remembered(target), asyncio.get_running_loop()
        async with host.turn:
            await asyncio.sleep(max(0.0, host.free_at - loop.time()))
            host.free_at = loop.time() + host.pause_s
        yield

    # -- one request -------------------------------------------------------------------------------

    @asynccontextmanager
    async def _ask(
        self,
        target: Target,
        method: str = "GET",
        headers: Sequence[tuple[bytes, bytes]] = _HEADERS,
        body: bytes | None = None,
    ) -> AsyncIterator[Response]:
        import httpcore2

        try:
            async with (
                self._open_pool(target) as pool,
                pool.stream(method, target.url, headers=[*headers], content=body) as response,
            ):
                yield response
        except httpcore2.ConnectError as error:
            raise ToolError(f"{target.origin} {_why_closed(error)}") from None
        except (
            httpcore2.ProtocolError,
            httpcore2.NetworkError,
            httpcore2.UnsupportedProtocol,
            httpcore2.TimeoutException,
            httpcore2.ProxyError,
        ) as error:
            raise ToolError(f"{target.origin} broke off ({type(error).__name__})") from None

    def _open_pool(self, target: Target) -> Any:
        import httpcore2
        import httpx2

        self._tls = context = self._tls or httpx2.create_ssl_context()
        proxy = self._proxies.find(target.url)
        if proxy is None:
            backend = guard(self._require_public, self._resolve)
            return httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=backend)
        self._require_public_literal(target)
        return httpcore2.AsyncHTTPProxy(proxy, ssl_context=context)

    def _require_public_literal(self, target: Target) -> None:
        """Require an IP address for a request through a proxy: the proxy resolves names itself, so
        a name cannot be checked."""
        try:
            address = ipaddress.ip_address(target.host)
        except ValueError:
            return
        self._require_public(target.host, target.port, [address])

    def _require_public(self, host: str, port: int, addresses: Iterable[Address]) -> None:
        if any(covers(allowed, host, port) for allowed in self._allow):
            return
        for address in addresses:
            if not is_public(address) and not any(
                covers(allowed, str(address), port) for allowed in self._allow
            ):
                raise AddressError(
                    "it is not on the public internet, and only such pages are fetched"
                )


def guard(
    require: Callable[[str, int, Iterable[Address]], None], resolve: Resolve
) -> AsyncNetworkBackend:
    """Return a network backend for an HTTP client that connects only to addresses that pass
    `require`. It connects to the checked addresses, not to those of a second lookup."""
    from httpcore2 import AnyIOBackend, AsyncNetworkBackend, ConnectError

    class Guarded(AsyncNetworkBackend):
        def __init__(self) -> None:
            self._network = AnyIOBackend()

        async def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,  # noqa: ASYNC109  the client's own signature
            local_address: str | None = None,
            socket_options: Any = None,
        ) -> AsyncNetworkStream:
            addresses = await _addresses_of(host, port, resolve)
            require(host, port, addresses)
            for address in addresses[:MAX_ADDRESSES]:
                try:
                    return await self._network.connect_tcp(str(address), port, timeout)
                except ConnectError:
                    continue
            raise ConnectError(f"{host} cannot be reached")

        async def connect_unix_socket(self, *_: Any, **__: Any) -> AsyncNetworkStream:
            raise ConnectError("connecting to a local socket is not supported")

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

    return Guarded()


async def _addresses_of(host: str, port: int, resolve: Resolve) -> list[Address]:
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        pass  # it is a name
    try:
        return [ipaddress.ip_address(one) for one in await resolve(host, port)]
    except (OSError, UnicodeError, ValueError):
        return []


# -- the body, bounded while it is received and decompressed
# --------------------------------------------------------------------------------------------------


async def _read_body(response: Response, max_bytes: int) -> tuple[bytes, bool]:
    """Return the decompressed body, and whether it is longer than `max_bytes`."""
    unpack = _unpacker(_header(response, b"content-encoding"))
    body, n_packed = bytearray(), 0
    async for chunk in response.aiter_stream():
        n_packed += len(chunk)
        try:
            body += unpack(chunk, max_bytes + 1 - len(body))
        except zlib.error:
            raise ToolError("the page cannot be decompressed") from None
        if len(body) > max_bytes or n_packed > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    match encoding.strip().casefold():
        case "" | "identity":
            return lambda chunk, n_bytes: chunk[:n_bytes]
        case "gzip" | "x-gzip":
            return zlib.decompressobj(wbits=31).decompress
        case "deflate":
            return _Deflated()
    raise ToolError(f"the page is compressed as {encoding[:40]!r}, which was not requested")


class _Deflated:
    """`deflate` is zlib in the standard, but raw deflate from some servers: the first byte tells
    which."""

    def __init__(self) -> None:
        self._stream: Any = None

    def __call__(self, chunk: bytes, n_bytes: int) -> bytes:
        if self._stream is None and chunk:
            self._stream = zlib.decompressobj(wbits=15 if chunk[0] & 0x0F == 8 else -15)
        return self._stream.decompress(chunk, n_bytes) if chunk else b""


# -- robots.txt, redirects, shown addresses
# --------------------------------------------------------------------------------------------------


def _parse_rules(text: str) -> RobotFileParser:
    """Parse a robots.txt; lines that cannot be parsed are ignored."""
    rules = RobotFileParser()
    rules.parse([line for line in text.splitlines() if _is_readable(line)])
    return rules


def _is_readable(line: str) -> bool:
    """Return whether the parser can read the line without raising."""
    name, _, value = line.partition("#")[0].partition(":")
    if name.strip().casefold() in ("crawl-delay", "request-rate"):
        return value.isascii() and len(value) <= MAX_NUMBER_CHARS
    try:
        urlsplit(unquote(value.strip()))
    except ValueError:
        return False
    return True


def _join(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError:
        raise AddressError("it redirects to an invalid address") from None


def _header(response: Response, name: bytes) -> str:
    headers: Mapping[bytes, bytes] = {key.lower(): value for key, value in response.headers}
    return headers.get(name, b"").decode("latin-1")


def _shown(url: str) -> str:
    """Return the address as one line without control characters."""
    return "".join(one if one.isprintable() else "?" for one in url)[:200]


# -- a request to a configured service
# --------------------------------------------------------------------------------------------------


MAX_BODY_BYTES = 2 * 2**20
MAX_SHOWN_CHARS = 200
_FAULTS = ("error", "errors", "message", "detail")
_UNSHOWABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def require_https(url: str) -> str:
    """Return the address without its trailing slash.

    Raises:
        SettingsError: a secret would be readable on the way: the address is neither https nor on
            this machine.
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
            "the address of a service must be https://HOST, or http on this machine",
            fix="correct the address",
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request: a GET, or with a `body` a POST of it as JSON.

    `url` is as returned by `require_https`, with a path. `secret` is the value of a parameter or
    header that must not be shown.
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
        timeout_s: seconds for the whole request.
        proxies: the proxies to use; those of the environment are ignored.

    Raises:
        ToolError: one line: unreachable, too slow, too long, an error status with a part of its
            text, or no JSON object.
    """
    found = _parse(await _ask(request, timeout_s, proxies))
    if not isinstance(found, dict):
        raise ToolError(f"{_host(request)} answered with something that is not a JSON object")
    return found


async def ask_page(
    request: Request, *, timeout_s: float = 20.0, proxies: Proxies | None = None
) -> dict[str, Any]:
    """Return the text that answers the request as `page`; the same errors as `ask_json`."""
    return {"page": (await _ask(request, timeout_s, proxies)).decode("utf-8", "replace")}


async def _ask(request: Request, timeout_s: float, proxies: Proxies | None) -> bytes:
    """Return the body of an answer with status 200."""
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
        raise ToolError(f"{host} answered {status}: {_show(_fault_of(body), request.secret)}")
    return body


def _fault_of(body: bytes) -> object:
    """Return what the service says went wrong, from any of the usual fields."""
    found = _parse(body)
    if not isinstance(found, dict):
        return body.decode("utf-8", "replace")
    return next((found[name] for name in _FAULTS if found.get(name)), "")


def _host(request: Request) -> str:
    return urlsplit(request.url).netloc


class _FetchError(Exception):
    """What went wrong on the way, worded to follow the name of the host."""


async def _fetch(request: Request, proxy: str | None) -> tuple[int, bytes]:
    """Return the status and the body. No error of the HTTP client leaves here, because its text may
    contain the address with the secret."""
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
                raise _FetchError("answered with compression, which was not requested")
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise _FetchError(f"answered with more than {MAX_BODY_BYTES // 2**20} MiB")
            return response.status_code, bytes(body)
    except httpx2.ConnectError as error:
        raise _FetchError(_why_closed(error)) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError, ValueError) as error:
        raise _FetchError(f"cannot be reached ({type(error).__name__})") from None


def _why_closed(error: Exception) -> str:
    is_untrusted = "CERTIFICATE" in str(error)
    return "shows a certificate that is not trusted" if is_untrusted else "cannot be reached"


@contextmanager
def _unlogged() -> Iterator[None]:
    """Silence the HTTP client's log meanwhile, because it shows whole addresses."""

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
    """Return the server's text as one short line without the secret, in whatever form that is
    written."""
    text = redact(said if isinstance(said, str) else json.dumps(said), secrets=[secret])
    return _UNSHOWABLE.sub(" ", text).strip()[:MAX_SHOWN_CHARS] or "nothing more"
