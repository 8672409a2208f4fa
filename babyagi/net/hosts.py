"""Which host an address names."""

from __future__ import annotations

from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def host_of(url: str) -> str:
    """HOST, or HOST:PORT where the port is not the usual one of the address; empty when there is none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if not host or port in (None, 443 if parts.scheme == "https" else 80) else f"{host}:{port}"


def is_loopback(url: str) -> bool:
    """Whether the address is on this machine."""
    try:
        return urlsplit(url).hostname in LOOPBACK
    except ValueError:
        return False
