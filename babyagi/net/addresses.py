"""Answers questions about an address without a request to it: whether it is on this machine,
whether a key would be sent unencrypted, which proxy it uses, and whether it is on the public
internet."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit


def is_loopback(host: str) -> bool:
    """Return whether data for the host stays on this machine. No name is looked up: `localhost` and
    names below it count as this machine, all other names as another one."""
    name = host.strip("[]").rstrip(".").casefold()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def is_here(url: str) -> bool:
    """Return whether the host of the URL is this machine, as `is_loopback` decides; False for an
    invalid URL."""
    return is_loopback(hostname_of(url))


def hostname_of(url: str) -> str:
    """Return the URL's host without its port; '' if the URL has no host or is invalid."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def is_web_address(url: str) -> bool:
    """Return whether the URL is an http or https address with a host, and without an invalid
    port."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def is_in_clear(url: str) -> bool:
    """Return whether a request to the URL would send data unencrypted to another machine."""
    return urlsplit(url).scheme == "http" and not is_here(url)


def host_of(url: str) -> str:
    """Return the URL's HOST, or HOST:PORT if the port is not the default one of the scheme; '' if
    the URL has no host or is invalid."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if not host or port in (None, _usual_port(parts.scheme)) else f"{host}:{port}"


def _usual_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """The proxies of requests, by the scheme of the request's URL; '' means no proxy.

    Requests to this machine never use a proxy, and neither do requests to the `exceptions`: a host
    with its subdomains or an IP address, each with an optional `:PORT`, a network (`10.0.0.0/8`),
    or `*` for everything.
    """

    http: str = ""
    https: str = ""
    exceptions: tuple[str, ...] = ()

    def find(self, url: str) -> str | None:
        """Return the address of the proxy for a request to `url`; None if it uses no proxy."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or _usual_port(parts.scheme)
        if is_loopback(host) or any(covers(exception, host, port) for exception in self.exceptions):
            return None
        return (self.https if parts.scheme == "https" else self.http) or None


def split_exceptions(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def covers(exception: str, host: str, port: int) -> bool:
    """Return whether an entry of a list such as `NO_PROXY` covers the host and port. Names are
    compared as text; none is looked up."""
    if exception == "*":
        return True
    try:
        network = ipaddress.ip_network(exception.strip("[]"), strict=False)
        return ipaddress.ip_address(host) in network
    except ValueError:
        pass  # the host or the entry is a name, or the entry has a port
    name, colon, named_port = exception.rpartition(":")
    if colon and named_port.isdecimal() and "/" not in exception:
        return int(named_port) == port and covers(name, host, port)
    suffix = exception.casefold().lstrip("*").lstrip(".").rstrip(".")
    name = host.casefold().rstrip(".")
    return bool(suffix) and (name == suffix or name.endswith(f".{suffix}"))


# -- addresses that a model or a page may name: only the public internet
# --------------------------------------------------------------------------------------------------

# The address blocks with a special purpose that are not part of the public internet. They are
# listed here because `is_global` of `ipaddress` differs between versions of Python. Source:
# https://www.iana.org/assignments/iana-ipv4-special-registry and
# https://www.iana.org/assignments/iana-ipv6-special-registry; read in November 2026.
_BLOCKS_V4 = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 "
    "192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 "
    "224.0.0.0/3 168.63.129.16/32"  # the last one is the metadata service of a cloud
)
_BLOCKS_V6 = "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20"
_NOT_PUBLIC_V4 = tuple(map(ipaddress.IPv4Network, _BLOCKS_V4.split()))
_NOT_PUBLIC_V6 = tuple(map(ipaddress.IPv6Network, _BLOCKS_V6.split()))
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")  # other addresses are local, or contain an IPv4 one

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_public(address: Address) -> bool:
    """Return whether the address is on the public internet. The addresses of this machine, of
    private, link-local, carrier-internal, multicast and documentation blocks, and IPv6 forms of
    IPv4 addresses are not."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    is_special = any(address in network for network in _NOT_PUBLIC_V6)
    return address.scope_id is None and address in _PUBLIC_V6 and not is_special


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A URL to fetch, divided into its parts.

    `host` is a name in its ASCII form, or an IP address without brackets.
    """

    scheme: str
    host: str
    port: int
    path: str  # with the query

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _usual_port(self.scheme) else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def url(self) -> str:
        return self.origin + self.path


class AddressError(ValueError):
    """A URL that cannot or must not be fetched. The text says why; it is shown after the URL and a
    colon."""


MAX_URL_CHARS = 2000
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_SAFE_IN_PATH = "!$%&'()*+,/:;=?@_~-."


def read_target(url: str) -> Target:
    """Parse an `http` or `https` URL.

    Raises:
        AddressError: the URL is invalid or has another scheme, contains a user name or password, or
            contains an IP address in a form that not all programs read in the same way.
    """
    if len(url) > MAX_URL_CHARS:
        raise AddressError(f"the address is longer than {MAX_URL_CHARS} characters")
    if "\\" in url or not url.isprintable() or " " in url:
        raise AddressError("the address contains characters that are not allowed")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise AddressError("the address is not valid") from None
    if parts.scheme not in ("http", "https") or not host:
        raise AddressError("the address does not begin with http:// or https://")
    if "@" in parts.netloc:
        raise AddressError("the address contains a user name or a password")
    if port == 0:
        raise AddressError("its port is 0")
    path = quote(parts.path or "/", safe=_SAFE_IN_PATH)
    query = f"?{quote(parts.query, safe=_SAFE_IN_PATH)}" if parts.query else ""
    return Target(
        scheme=parts.scheme,
        host=_read_host(host, is_bracketed=parts.netloc.startswith("[")),
        port=port or _usual_port(parts.scheme),
        path=path + query,
    )


def _read_host(host: str, *, is_bracketed: bool) -> str:
    if is_bracketed:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError:
            why = "the brackets in the address do not contain an IPv6 address"
            raise AddressError(why) from None
        if address.scope_id is not None:
            raise AddressError("the address names a network interface of this machine")
        return str(address)
    import idna

    try:
        name = host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise AddressError("the host in the address is not a valid name") from None
    name = name.casefold()
    if not _HOST.fullmatch(name) or len(name) > 253:
        raise AddressError("the host in the address is not a valid name")
    if _NUMBER.fullmatch(name.rstrip(".").rpartition(".")[2]):
        return _read_ipv4(name)
    return name


def _read_ipv4(name: str) -> str:
    """Return the IP address if it is written as four decimal numbers. Raises `AddressError` for
    forms that only some programs read as an address, such as `0x7f.1`."""
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError:
        raise AddressError("the IP address in it is not written as four decimal numbers") from None
