"""A search engine on this machine: it speaks HTTP on a real socket, counts what it was asked, and
misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.connections import Connections

HANG = object()
ENDLESS = object()


class SearchServer:
    """`answer` takes a query and gives what to send: a JSON object, (status, JSON object), bytes as
    they are, HANG or ENDLESS."""

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self.requests: list[dict[str, str]] = []
        self._answer = answer
        self._connections = Connections()

    async def __aenter__(self) -> SearchServer:
        port = await self._connections.listen(self._serve, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._connections.close()

    @property
    def queries(self) -> list[str]:
        return [request["q"] for request in self.requests]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve_one(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = urlsplit(head.split(" ")[1])
            self.requests.append(
                {
                    "path": target.path,
                    **{name: values[0] for name, values in parse_qs(target.query).items()},
                }
            )
            await self._send(writer, reader, self._answer(self.requests[-1].get("q", "")))

    async def _send(
        self, writer: asyncio.StreamWriter, reader: asyncio.StreamReader, answer: Any
    ) -> None:
        if answer is HANG:
            await reader.read()
        elif answer is ENDLESS:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n{")
            while True:
                writer.write(b" " * 2**16)
                await writer.drain()
        elif isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
        else:
            status, found = answer if isinstance(answer, tuple) else (200, answer)
            body = json.dumps(found).encode()
            writer.write(
                (
                    f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\nconnection: "
                    "close\r\n\r\n"
                ).encode()
                + body
            )
            await writer.drain()
