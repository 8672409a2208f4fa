"""A web on this machine: it answers real HTTP on a real socket, under whatever names a test looks
up, and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.connections import HERE, Connections


@dataclass(frozen=True)
class Asked:
    method: str
    host: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    target: str = ""  # as it was written, which a proxy is given whole


@dataclass(frozen=True)
class Reply:
    """`body` may be bytes, text, or JSON; with `raw` it is all that is sent."""

    body: Any = b""
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = ()  # type: ignore[assignment]
    is_raw: bool = False
    hangs: bool = False


class WebServer:
    """`answer` takes a request and gives a reply; robots.txt is missing where it gives None."""

    def __init__(self, answer: Callable[[Asked], Reply | None]) -> None:
        self.asked: list[Asked] = []
        self.n_connections = 0
        self._answer = answer
        self._connections = Connections()

    async def __aenter__(self) -> WebServer:
        self.port = await self._connections.listen(self._serve, HERE, 0)
        self.base_url = f"http://{HERE}:{self.port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._connections.close()

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked if asked.path != "/robots.txt"]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._serve_one(reader, writer)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.casefold(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        target = urlsplit(path)
        asked = Asked(
            method,
            headers.get("host", ""),
            target.path,
            dict(parse_qsl(target.query)),
            headers,
            body,
            path,
        )
        self.asked.append(asked)
        reply = self._answer(asked) or Reply(status=404)
        if reply.hangs:
            await reader.read()
            return
        writer.write(_render(reply))
        await writer.drain()


def _render(reply: Reply) -> bytes:
    if reply.is_raw:
        return bytes(reply.body)
    body = reply.body
    if isinstance(body, str):
        body = body.encode()
    elif not isinstance(body, bytes):
        body = json.dumps(body).encode()
    head = {
        "content-type": reply.content_type,
        "content-length": str(len(body)),
        "connection": "close",
        **dict(reply.headers or {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items() if value)
    return f"HTTP/1.1 {reply.status} x\r\n{lines}\r\n".encode("latin-1") + body
