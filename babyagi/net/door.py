"""Network access of the tools.

`Door.fetch` fetches a URL that a model or a page chose. Only public addresses are reached, by http
or https, however the URL is written, resolved or redirected. A name is resolved once in a request;
all its addresses must be public, and the connection goes to one of them. No credentials or cookies
are sent, and no proxy is used except a configured one. A fetch takes at most `timeout_s`, and a
page has at most `max_bytes`, both compressed and decompressed. robots.txt is obeyed, and requests
to a host are at least `pause_s` apart. A page that is refused is requested once more, under a
second user agent that also names this program. Not checked: the addresses to which a configured
proxy resolves a name, and the content of a page.

`ask_json` and `ask_page` send one request through a door to a service that the program or a person
named, wherever it is. The request has a deadline, the size of the answer is limited, and redirects
are not followed. A secret in the parameters or headers appears in no error and no log.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import socket
import ssl
import zlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

from babyagi.errors import SettingsError, ToolError
from babyagi.net.addresses import (
    Address,
    AddressError,
    Proxies,
    Target,
    covers,
    is_in_clear,
    is_public,
    is_web_address,
    read_target,
)
from babyagi.redaction import redact

if TYPE_CHECKING:
    from urllib.robotparser import RobotFileParser

    from httpcore2 import AsyncNetworkBackend, AsyncNetworkStream, Response

USER_AGENT = "babyagi"
# some sites refuse a name that they do not know; this form is the one that crawlers use
SECOND_USER_AGENT = f"Mozilla/5.0 (compatible; {USER_AGENT})"
MAX_REDIRECTS = 5
MAX_ADDRESSES = 4  # of one name, tried one after the other
MAX_ROBOTS_BYTES = 512_000  # a reader must take at least 500 KiB (RFC 9309)
MAX_NUMBER_CHARS = 40  # of the pause that a robots.txt asks for
MAX_HOSTS = 256  # hosts whose rules and last visit are remembered
MAX_ACCEPTED_PAUSE_S = 10.0  # used if a robots.txt asks for a longer pause
_REDIRECTS = (301, 302, 303, 307, 308)
_REFUSALS = (403, 406)
_OURS = (b"User-Agent", USER_AGENT.encode())
_HEADERS = (
    _OURS,
    (b"Accept", b"text/html, application/xhtml+xml, text/*, application/pdf, application/json"),
    (b"Accept-Encoding", b"gzip"),
    (b"Accept-Language", b"en, *;q=0.5"),
)
_SECOND_HEADERS = ((b"User-Agent", SECOND_USER_AGENT.encode()), *_HEADERS[1:])

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A fetched page.

    Attributes:
        url: its address after redirects.
        content_type: the server's header, possibly empty.
        body: at most the first `max_bytes` bytes, a limit of the `Door`.
        is_cut: whether the page was longer.
    """

    url: str
    content_type: str
    body: bytes
    is_cut: bool = False


async def look_up(host: str, port: int) -> Sequence[str]:
    """Look up a host name with this machine's resolver, and return its IP addresses."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(slots=True)
class _Host:
    """What a `Door` knows about a host: the rules of its robots.txt, and when the next request may
    be sent to it."""

    pause_s: float
    rules: RobotFileParser | None = None
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0


class Door:
    """Fetches pages from the public internet.

    Args:
        allow: hosts and IP addresses, each with an optional `:PORT`, and networks that may be
            reached although they are not public.
        timeout_s: the time limit of a whole fetch, in seconds.
        max_bytes: the maximum size of a page's body; a longer one is cut.
        pause_s: the shortest time between two requests to a host, in seconds.
        resolve: returns the IP addresses of a host name.

    Attributes:
        only: the domains that may be reached, each with an optional `:PORT`; empty: all.
    """

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
        self._allow, self._proxies, self._resolve = tuple(allow), proxies or Proxies(), resolve
        self.only: tuple[str, ...] = ()
        self._timeout_s, self._max_bytes, self._pause_s = timeout_s, max_bytes, pause_s
        self._tls: ssl.SSLContext | None = None
        self._host_by_origin: dict[str, _Host] = {}

    async def fetch(self, url: str) -> Page:
        """Return the page at the URL, after redirects.

        Raises:
            ToolError: the URL must not be fetched, or its server cannot be reached, is too slow, or
                answers with an error. The text is one line.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._follow(url)
        except TimeoutError:
            raise ToolError(f"{_shown(url)} gave no answer in {self._timeout_s:g} s") from None

    def may_reach(self, target: Target) -> bool:
        """Return whether the target belongs to the domains that may be reached."""
        return not self.only or any(covers(one, target.host, target.port) for one in self.only)

    async def _follow(self, first_url: str) -> Page:
        url = first_url
        for _ in range(MAX_REDIRECTS + 1):
            try:
                target = read_target(url)
                found = await self._ask_politely(target)
            except AddressError as error:
                way = "" if url == first_url else f"{_shown(first_url)} redirects to "
                raise ToolError(f"{way}{_shown(url)}: {error}") from None
            if isinstance(found, Page):
                return found
            if isinstance(found, int):
                raise ToolError(f"{target.url} answered {found}")
            url = found
        raise ToolError(f"{_shown(first_url)} redirects more than {MAX_REDIRECTS} times")

    async def _ask_politely(self, target: Target) -> Page | str | int:
        await self._require_allowed_by_robots(target)
        await self._wait_for_turn(target)
        found = await self._get(target, self._max_bytes)
        if found not in _REFUSALS:
            return found
        await self._wait_for_turn(target)
        return await self._get(target, self._max_bytes, _SECOND_HEADERS)

    async def _get(
        self,
        target: Target,
        max_bytes: int,
        headers: Sequence[tuple[bytes, bytes]] = _HEADERS,
    ) -> Page | str | int:
        """Return the page, the URL to which the server redirects, or the status of its error."""
        async with self.asking(target, headers=headers) as response:
            location = _header(response, b"location")
            if response.status in _REDIRECTS and location:
                return _join(target.url, location)
            if response.status != 200:
                return int(response.status)
            body, is_cut = await _read_body(response, max_bytes)
        content_type = _header(response, b"content-type")
        return Page(url=target.url, content_type=content_type, body=body, is_cut=is_cut)

    @asynccontextmanager
    async def answering(
        self, url: str, *, headers: Mapping[str, str], body: bytes | None, query: str = ""
    ) -> AsyncIterator[Response]:
        """During the context, which has a deadline, the answer to one request can be read: to a
        POST of the body, or to a GET if it is None. Redirects are not followed.

        Raises:
            ToolError: as `fetch`. The text names only the host of the URL.
        """
        host = urlsplit(url).netloc
        try:
            said = [_OURS, *((name.encode(), one.encode()) for name, one in headers.items())]
            target = read_target(url)
            target = replace(target, path=f"{target.path}?{query}") if query else target
            method = "GET" if body is None else "POST"
            async with (
                asyncio.timeout(self._timeout_s),
                self.asking(target, method, said, body) as response,
            ):
                yield response
        except TimeoutError:
            raise ToolError(f"{host} gave no answer in {self._timeout_s:g} s") from None
        except AddressError as error:
            raise ToolError(f"{host}: {error}") from None
        except ValueError as error:  # of a character that cannot be sent
            raise ToolError(f"{host} cannot be reached ({type(error).__name__})") from None

    # -- politeness

    async def _require_allowed_by_robots(self, target: Target) -> None:
        host = self._remembered(target)
        if host.rules is None:
            host.rules = await self._read_rules(target)
            asked_s = min(int(host.rules.crawl_delay(USER_AGENT) or 0), MAX_ACCEPTED_PAUSE_S)
            host.pause_s = max(host.pause_s, asked_s)
        if not host.rules.can_fetch(USER_AGENT, target.url):
            raise AddressError("the robots.txt of its site forbids programs to fetch the page")

    async def _read_rules(self, target: Target) -> RobotFileParser:
        """Return the rules of the host's robots.txt; rules that allow everything if it has none.
        Raises `ToolError` if the server answers with a status of 500 or more, because then no page
        may be fetched (RFC 9309, 2.3.1.4)."""
        url = f"{target.origin}/robots.txt"
        for _ in range(MAX_REDIRECTS + 1):
            found = await self._get(read_target(url), MAX_ROBOTS_BYTES)
            if isinstance(found, Page):
                return _parse_rules(found.body.decode("utf-8", "replace"))
            if isinstance(found, int) and found >= 500:
                raise ToolError(f"{target.origin} answered {found}")
            if isinstance(found, int):
                break
            url = found
        return _parse_rules("")

    def _remembered(self, target: Target) -> _Host:
        hosts = self._host_by_origin
        if target.origin not in hosts and len(hosts) >= MAX_HOSTS:
            del hosts[next(iter(hosts))]
        return hosts.setdefault(target.origin, _Host(pause_s=self._pause_s))

    async def _wait_for_turn(self, target: Target) -> None:
        """Wait until the next request may be sent to the host, in the order of the callers."""
        host, loop = self._remembered(target), asyncio.get_running_loop()
        async with host.turn:
            await asyncio.sleep(max(0.0, host.free_at - loop.time()))
            host.free_at = loop.time() + host.pause_s

    # -- one request -------------------------------------------------------------------------------

    @asynccontextmanager
    async def asking(
        self,
        target: Target,
        method: str = "GET",
        headers: Sequence[tuple[bytes, bytes]] = _HEADERS,
        body: bytes | None = None,
    ) -> AsyncIterator[Response]:
        """During the context, one request is sent, and its answer can be read.

        Raises:
            AddressError: the target must not be reached.
            ToolError: its server cannot be reached, or breaks off.
        """
        import httpcore2

        if not self.may_reach(target):
            domains = ", ".join(self.only)
            raise AddressError(f"pages are opened only at {domains} here (BABYAGI_WEB_ONLY)")
        broken = (httpcore2.ProtocolError, httpcore2.NetworkError, httpcore2.TimeoutException)
        refused = (httpcore2.UnsupportedProtocol, httpcore2.ProxyError)
        try:
            async with (
                self._open_pool(target) as pool,
                pool.stream(method, target.url, headers=[*headers], content=body) as response,
            ):
                yield response
        except httpcore2.ConnectError as error:
            is_untrusted = "CERTIFICATE" in str(error)
            why = "shows a certificate that is not trusted" if is_untrusted else "cannot be reached"
            raise ToolError(f"{target.origin} {why}") from None
        except (*broken, *refused) as error:
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
        """Raise `AddressError` if the target's host is an IP address that is not public. A name
        cannot be checked, because the proxy resolves it."""
        try:
            address = ipaddress.ip_address(target.host)
        except ValueError:
            return
        self._require_public(target.host, target.port, [address])

    def _require_public(self, host: str, port: int, addresses: Iterable[Address]) -> None:
        def is_allowed(name: str) -> bool:
            return any(covers(allowed, name, port) for allowed in self._allow)

        if is_allowed(host) or all(is_public(one) or is_allowed(str(one)) for one in addresses):
            return
        why = "the address is not on the public internet, and only such pages are fetched"
        raise AddressError(why)


def guard(
    require: Callable[[str, int, Iterable[Address]], None], resolve: Resolve
) -> AsyncNetworkBackend:
    """Return a network backend for an HTTP client. It resolves a name once, checks the addresses,
    and connects to one of them.

    Args:
        require: raises an error if one of the addresses must not be reached.
    """
    from httpcore2 import AnyIOBackend, ConnectError

    class Guarded(AnyIOBackend):
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
                    return await super().connect_tcp(str(address), port, timeout)
                except ConnectError:
                    continue
            raise ConnectError(f"{host} cannot be reached")

    return Guarded()


async def _addresses_of(host: str, port: int, resolve: Resolve) -> list[Address]:
    with suppress(ValueError):  # the host is a name
        return [ipaddress.ip_address(host)]
    with suppress(OSError, ValueError):
        return [ipaddress.ip_address(one) for one in await resolve(host, port)]
    return []


# -- the body, bounded while it is received and decompressed
# --------------------------------------------------------------------------------------------------


async def _read_body(response: Response, max_bytes: int) -> tuple[bytes, bool]:
    """Return at most `max_bytes` of the decompressed body, and whether there was more."""
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
    raise ToolError(f"the page is compressed as {encoding[:40]!r}, which was not requested")


# -- robots.txt, redirects, shown addresses
# --------------------------------------------------------------------------------------------------


def _parse_rules(text: str) -> RobotFileParser:
    """Parse a robots.txt, without the lines on which the parser would raise an error."""
    from urllib.robotparser import RobotFileParser

    rules = RobotFileParser()
    rules.parse([line for line in text.splitlines() if _is_readable(line)])
    return rules


def _is_readable(line: str) -> bool:
    """Return whether the parser can read the line of a robots.txt without an error."""
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
        raise AddressError("the page redirects to an invalid address") from None


def _header(response: Response, name: bytes) -> str:
    headers: Mapping[bytes, bytes] = {key.lower(): value for key, value in response.headers}
    return headers.get(name, b"").decode("latin-1")


def _shown(url: str) -> str:
    """Return at most 200 characters of the URL, with `?` in the place of control characters."""
    return "".join(one if one.isprintable() else "?" for one in url)[:200]


# -- a request to a configured service
# --------------------------------------------------------------------------------------------------


MAX_BODY_BYTES = 2 * 2**20
MAX_SHOWN_CHARS = 200
_FAULTS = ("error", "errors", "message", "detail")
_UNSHOWABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def require_https(url: str) -> str:
    """Return the address of a service without its trailing slash.

    Raises:
        SettingsError: the address is invalid, or it is neither https nor on this machine, so that a
            secret could be read on the way.
    """
    is_safe = is_web_address(url) and not is_in_clear(url)
    if not is_safe or set("@?#\\") & set(url) or not url.isprintable():
        what = "the address of a service must be https://HOST, or http on this machine"
        raise SettingsError(what, fix="correct the address")
    return url.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a service: a POST that sends `body` as JSON, or a GET if `body` is None.

    Attributes:
        url: an address that `require_https` returned, with a path added.
        secret: the value of a parameter or header that must not be shown.
    """

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, Any] | None = None
    secret: str = field(default="", repr=False)


async def ask_json(
    request: Request, *, timeout_s: float = 20.0, proxies: Proxies | None = None
) -> dict[str, Any]:
    """Send the request, and return the JSON object in the answer.

    Args:
        timeout_s: the time limit of the whole request, in seconds.
        proxies: the proxies to use; those of the environment are ignored.

    Raises:
        ToolError: the service cannot be reached, is too slow, answers with an error status, or its
            answer is too long or not a JSON object. The text is one line.
    """
    found = _parse(await _ask(request, timeout_s, proxies))
    if not isinstance(found, dict):
        raise ToolError(f"{_host(request)} answered with something that is not a JSON object")
    return found


async def ask_page(
    request: Request, *, timeout_s: float = 20.0, proxies: Proxies | None = None
) -> dict[str, Any]:
    """Send the request, and return `{"page": text}` with the text of the answer. Raises `ToolError`
    as `ask_json` does, but accepts any text."""
    return {"page": (await _ask(request, timeout_s, proxies)).decode("utf-8", "replace")}


async def _ask(request: Request, timeout_s: float, proxies: Proxies | None) -> bytes:
    """Send the request, and return the body of the answer. Raises `ToolError` for any status except
    200, without the texts of the HTTP client, which may contain the secret."""
    host = _host(request)
    door = Door(allow=("*",), proxies=proxies, timeout_s=timeout_s)
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json", **request.headers}
    sent = None if request.body is None else json.dumps(request.body).encode()
    query = urlencode(request.params, quote_via=quote)
    async with door.answering(request.url, headers=headers, body=sent, query=query) as response:
        body, is_cut = await _read_body(response, MAX_BODY_BYTES)
    if is_cut:
        raise ToolError(f"{host} answered with more than {MAX_BODY_BYTES // 2**20} MiB")
    if response.status != 200:
        said = _show(_fault_of(body), request.secret)
        raise ToolError(f"{host} answered {response.status}: {said}")
    return body


def _fault_of(body: bytes) -> object:
    """Return what the service says about an error: the value of a field such as `error` or
    `message` in its JSON object, or the whole text if it is not a JSON object."""
    found = _parse(body)
    if not isinstance(found, dict):
        return body.decode("utf-8", "replace")
    return next((found[name] for name in _FAULTS if found.get(name)), "")


def _host(request: Request) -> str:
    return urlsplit(request.url).netloc


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def _show(said: object, secret: str) -> str:
    """Return the service's text as one short line without the secret, however it is written."""
    text = redact(said if isinstance(said, str) else json.dumps(said), secrets=[secret])
    return _UNSHOWABLE.sub(" ", text).strip()[:MAX_SHOWN_CHARS] or "nothing more"
