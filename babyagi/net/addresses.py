"""What an address says before anybody is asked there: whether it is this machine, whether a key is
in clear, which proxy is in between."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether what is sent to the host stays on this machine. No name is looked up but
    `localhost`."""
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
    """Whether the address is on this machine."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def is_in_clear(url: str) -> bool:
    """Whether everybody on the way can read what is sent there."""
    return urlsplit(url).scheme == "http" and not is_here(url)


def host_of(url: str) -> str:
    """HOST, or HOST:PORT where the port is not the usual one of the address; empty when there is
    none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    host = f"[{host}]" if ":" in host else host
    return (
        host
        if not host or port in (None, 443 if parts.scheme == "https" else 80)
        else f"{host}:{port}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxies:
    """Through which proxy an address is reached: the one that was named for its scheme, if any.

    This machine is always reached directly, and so is what `exceptions` name: a host with all below
    it, an address, a network (`10.0.0.0/8`), each perhaps with `:PORT`, or `*` for everything.
    """

    http: str = ""
    https: str = ""
    exceptions: tuple[str, ...] = ()

    def find(self, url: str) -> str | None:
        """The address of the proxy; None for none."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if is_loopback(host) or any(
            _covers(exception, host, port) for exception in self.exceptions
        ):
            return None
        return (self.https if parts.scheme == "https" else self.http) or None


def read_proxies(variables: Mapping[str, str]) -> Proxies:
    """What `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` name, in capitals or not."""
    named = {
        name: variables.get(name) or variables.get(name.lower()) or ""
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    }
    return Proxies(
        http=complete_proxy(named["HTTP_PROXY"]),
        https=complete_proxy(named["HTTPS_PROXY"]),
        exceptions=split_exceptions(named["NO_PROXY"]),
    )


def complete_proxy(text: str) -> str:
    """The address of a proxy, which may be written without `http://`."""
    return text if "://" in text or not text else f"http://{text}"


def split_exceptions(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _covers(exception: str, host: str, port: int) -> bool:
    """Whether a word of `NO_PROXY` means the host; the name of a host is never looked up."""
    if exception == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(
            exception.strip("[]"), strict=False
        )
    except ValueError:
        pass  # one of them is a name, or has a port
    name, colon, named_port = exception.rpartition(":")
    if colon and named_port.isdecimal() and "/" not in exception:
        return int(named_port) == port and _covers(name, host, port)
    suffix = exception.casefold().lstrip("*").lstrip(".").rstrip(".")
    name = host.casefold().rstrip(".")
    return bool(suffix) and (name == suffix or name.endswith(f".{suffix}"))
