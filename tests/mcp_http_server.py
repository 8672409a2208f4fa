"""An MCP server over HTTP on this machine that does one thing wrong, in the test's own loop; it
speaks HTTP by hand, so that it can break that too."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from support.connections import HERE, Connections
from tests.mcp_hostile_server import ECHO

Answer = Callable[["HttpServer", asyncio.StreamWriter, dict[str, Any]], Awaitable[None]]


class Elsewhere:
    """An address that nobody named, and who came there."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.url = ""

    @property
    def n_requests(self) -> int:
        return len(self.paths)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            self.paths.append((await reader.readuntil(b"\r\n\r\n")).decode())


class HttpServer:
    """Answers `initialize` and `tools/list` well, where `behaviour` is not about them, and a call
    as the behaviour says."""

    def __init__(self, behaviour: str) -> None:
        self.behaviour = behaviour
        self.n_requests = 0
        self.elsewhere = Elsewhere()
        self._connections = Connections()

    async def __aenter__(self) -> HttpServer:
        port = await self._connections.listen(self._serve, HERE, 0, limit=2**20)
        self.url = f"http://{HERE}:{port}/mcp"
        other_port = await self._connections.listen(self.elsewhere.serve, HERE, 0)
        self.elsewhere.url = f"http://{HERE}:{other_port}/mcp"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connections.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, ValueError):
            await self._serve_one(reader, writer)

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method = head.partition(" ")[0]
        fields = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
        }
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        self.n_requests += 1
        if method != "POST":
            await self._serve_other(writer, method)
            return
        request = json.loads(body)
        if "id" not in request:
            await send(writer, 202, b"")
        elif request.get("method") in AT.get(self.behaviour, ("tools/call",)):
            await BEHAVIOURS[self.behaviour](self, writer, request)
        else:
            await answer_well(self, writer, request)

    async def _serve_other(self, writer: asyncio.StreamWriter, method: str) -> None:
        if method == "GET" and self.behaviour == "a stream that floods":
            await begin(writer, 200, "text/event-stream")
            while True:
                ask = {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}
                writer.write(event(ask) * 100)
                await writer.drain()
                await asyncio.sleep(0.01)
        await send(writer, 405, b"")


async def begin(writer: asyncio.StreamWriter, status: int, kind: str, *more: str) -> None:
    lines = (f"HTTP/1.1 {status} x", f"content-type: {kind}", "connection: close", *more, "", "")
    writer.write("\r\n".join(lines).encode("latin-1"))
    await writer.drain()


async def send(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    *more: str,
    kind: str = "application/json",
) -> None:
    await begin(writer, status, kind, f"content-length: {len(body)}", *more)
    writer.write(body)
    await writer.drain()


def event(message: object) -> bytes:
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"


def result_of(request: dict[str, Any]) -> dict[str, Any] | None:
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            }
        case "tools/list":
            return {"tools": [ECHO]}
        case "tools/call":
            text = request["params"].get("arguments", {}).get("text", "")
            return {"content": [{"type": "text", "text": text}]}
    return None


def message_of(request: dict[str, Any]) -> dict[str, Any]:
    result = result_of(request)
    found = (
        {"error": {"code": -32601, "message": "there is no such method"}}
        if result is None
        else {"result": result}
    )
    return {"jsonrpc": "2.0", "id": request["id"], **found}


async def answer_well(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
    session = ("mcp-session-id: abc",) if request["method"] == "initialize" else ()
    await send(writer, 200, json.dumps(message_of(request)).encode(), *session)


# -- what it does wrong


def with_status(status: int, *more: str) -> Answer:
    async def answer(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
        await send(writer, status, b"no", *more, kind="text/plain")

    return answer


def with_body(body: bytes, *more: str, kind: str = "application/json") -> Answer:
    async def answer(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
        await send(writer, 200, body, *more, kind=kind)

    return answer


def raw(*chunks: bytes, then_s: float = 0.0) -> Answer:
    async def answer(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        await asyncio.sleep(then_s)

    return answer


def endless(kind: str, chunk: bytes, *, every_s: float = 0.0) -> Answer:
    async def answer(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
        await begin(writer, 200, kind)
        while True:
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(every_s)

    return answer


async def answer_in_a_stream(
    server: HttpServer, writer: asyncio.StreamWriter, request: Any
) -> None:
    await begin(writer, 200, "text/event-stream")
    writer.write(b": a comment\n\n" + event(message_of(request)))
    await writer.drain()


async def drip(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
    await begin(writer, 200, "text/event-stream")
    for byte in event(message_of(request)):
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.002)


async def stream_others(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
    await begin(writer, 200, "text/event-stream")
    writer.write(event({"jsonrpc": "2.0", "id": 999, "result": {"content": []}}))
    writer.write(b"data: no JSON\n\n" + b"event: other\ndata: x\n\n" + event(message_of(request)))
    await writer.drain()


async def bomb(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join(packing.compress(b" " * 2**20) for _ in range(1024)) + packing.flush()
    await send(writer, 200, packed, "content-encoding: gzip")


def redirect_away(status: int) -> Answer:
    async def answer(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
        await send(writer, status, b"", f"location: {server.elsewhere.url}")

    return answer


async def redirect_to_itself(
    server: HttpServer, writer: asyncio.StreamWriter, request: Any
) -> None:
    await send(writer, 307, b"", f"location: {server.url}")


async def answer_both_ways(server: HttpServer, writer: asyncio.StreamWriter, request: Any) -> None:
    body = json.dumps([message_of(request)] * 3).encode()
    await send(writer, 200, body)


START = ("initialize", "server/discover")
SSE = "text/event-stream"
BEHAVIOURS: dict[str, Answer] = {
    "as it should": answer_well,
    "in a stream": answer_in_a_stream,
    "a stream byte by byte": drip,
    "others in the stream": stream_others,
    "a stream that floods": answer_well,
    **{f"status {status}": with_status(status) for status in (400, 401, 403, 404, 405, 418, 429)},
    **{f"status {status}": with_status(status) for status in (500, 502, 503)},
    "a lost session": with_status(404, "mcp-session-id: another"),
    "an odd session": with_body(b"{}", "mcp-session-id: \x7f\xff;\t"),
    "who are you": with_status(
        401, 'www-authenticate: Bearer resource_metadata="http://127.0.0.1:9/"'
    ),
    "nobody at the start": with_status(404),
    "wrong key at the start": with_status(401),
    "trouble at the start": with_status(500),
    "no content": raw(b"HTTP/1.1 204 x\r\nconnection: close\r\n\r\n"),
    **{f"a redirect of status {status}": redirect_away(status) for status in (301, 302, 307, 308)},
    "a redirect to itself": redirect_to_itself,
    "a redirect to metadata": with_status(302, "location: http://169.254.169.254/latest"),
    "a redirect to a file": with_status(301, "location: file:///etc/passwd"),
    "a page": with_body(b"<html>hello</html>", kind="text/html"),
    "no kind": raw(b"HTTP/1.1 200 x\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"),
    "an odd kind": with_body(b"{}", kind="application/json; charset=klingon"),
    "an empty body": with_body(b""),
    "half a body": raw(
        b"HTTP/1.1 200 x\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{"
    ),
    "broken JSON": with_body(b'{"jsonrpc": "2.0", "id"'),
    "broken text": with_body(b'{"jsonrpc": "2.0", "x": "\xff\xfe"}'),
    "deep JSON": with_body(b"[" * 200_000),
    "many answers": answer_both_ways,
    "broken chunks": raw(
        b"HTTP/1.1 200 x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
    ),
    "no HTTP": raw(b"\x16\x03\x01\x02\x00 hello\r\n\r\n"),
    "closed at once": raw(),
    "silent": raw(then_s=30.0),
    "silent after the head": raw(
        b"HTTP/1.1 200 x\r\ncontent-type: application/json\r\n\r\n", then_s=30.0
    ),
    "silent at the start": raw(then_s=30.0),
    "a head without end": raw(b"HTTP/1.1 200 x\r\n" + b"x-y: " + b"z" * 2**22),
    "ten thousand fields": raw(b"HTTP/1.1 200 x\r\n" + b"x-y: z\r\n" * 10_000 + b"\r\n{}"),
    "a body without end": endless("application/json", b" " * 2**16),
    "a stream without end": endless(SSE, b": " + b"c" * 2**16 + b"\n\n"),
    "an event without end": endless(SSE, b"data: " + b"d" * 2**16 + b"\n"),
    "a line without end": endless(SSE, b"d" * 2**16),
    "a stream that drips": endless(SSE, b":\n", every_s=0.05),
    "a bomb": bomb,
    "a stream that ends": with_body(b": nothing\n\n", kind=SSE),
    "comes back later": with_body(b"id: 1\nretry: 1\n\n", kind=SSE),
}
AT = {
    "nobody at the start": START,
    "wrong key at the start": START,
    "trouble at the start": START,
    "silent at the start": START,
}
