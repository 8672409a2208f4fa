"""HTTP/1.1 on a real socket, well spoken and badly spoken.

The bad manners need the transport itself: no HTTP library lets a server announce ten bytes and send
five.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus

MAX_BODY_BYTES = 64 * 2**20
MAX_HEAD_BYTES = 2**16
KEEPALIVE_EVERY_S = 0.25
ENDLESS_EVERY_S = 0.002
SLOW_PIECES = 40
_REASONS = {status.value: status.phrase for status in HTTPStatus}
BEFORE_RESET_S = 0.05  # a reset throws away what the other side has not read yet


class Wire(Enum):
    """How an answer leaves, or does not."""

    WHOLE = auto()
    CLOSE = auto()  # the connection ends in place of an answer
    RESET = auto()
    TRUNCATED = auto()  # half of the announced length, then the end
    HANG = auto()  # nothing, until the client or the server gives up
    SLOW = auto()  # piece by piece, over `slow_body_s`
    STREAM = auto()  # chunked, with its proper end
    STREAM_NO_END = auto()  # chunked, the last chunk missing
    STREAM_RESET = auto()
    STREAM_HANG = auto()
    STREAM_COMMENTS = auto()  # then comments without an end
    STREAM_ENDLESS = auto()  # the last event again and again
    STREAM_HTTP10 = auto()  # no lengths at all, the end of the connection ends the body


class BadRequestError(Exception):
    """What came is no request that this server reads; `status` says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request; the path without its query, the header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """One answer. `pieces` are what a stream sends, one chunk each, `every_s` apart; `body` is what
    any other answer sends."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    pieces: Sequence[bytes] = ()
    every_s: float = 0.0
    wire: Wire = Wire.WHOLE


def json_response(payload: object, status: int = 200) -> HttpResponse:
    return HttpResponse(
        status=status,
        headers={"content-type": "application/json"},
        body=json.dumps(payload).encode(),
    )


async def read_request(reader: asyncio.StreamReader) -> HttpRequest | None:
    """Return the next request on the connection; None when the client has gone.

    Raises:
        BadRequestError: it is malformed or too large.
    """
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, headers = _parse_head(head)
        return HttpRequest(
            method=method,
            path=target.split("?")[0],
            headers=headers,
            body=await _read_body(reader, headers),
        )
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    except asyncio.LimitOverrunError as error:
        raise BadRequestError(431, "the head of the request is too large") from error
    except ValueError as error:
        raise BadRequestError(400, f"not an HTTP/1.1 request: {error}") from error


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, version = first.split(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise ValueError(version)
    pairs = (line.split(":", 1) for line in lines)
    return method, target, {name.strip().lower(): value.strip() for name, value in pairs}


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await _read_exactly(reader, int(headers.get("content-length", "0")), 0)
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await _read_exactly(reader, size, len(body))
        await reader.readuntil(b"\r\n")
    await reader.readuntil(b"\r\n")
    return bytes(body)


async def _read_exactly(reader: asyncio.StreamReader, size: int, already: int) -> bytes:
    if size < 0:
        raise ValueError(f"a length of {size}")
    if already + size > MAX_BODY_BYTES:
        raise BadRequestError(413, f"more than {MAX_BODY_BYTES} bytes")
    return await reader.readexactly(size)


class Connection:
    """One client's connection: reads requests, sends answers in whatever manner they ask for."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, slow_body_s: float
    ) -> None:
        self.reader = reader
        self._writer = writer
        self._slow_body_s = slow_body_s
        self._socket: socket.socket = writer.get_extra_info("socket")
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def is_open(self) -> bool:
        return not (self._writer.is_closing() or self.reader.at_eof())

    async def close(self) -> None:
        """End the connection at once; what is not sent stays unsent."""
        self._writer.transport.abort()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def send(self, response: HttpResponse) -> bool:
        """Send the answer in its manner. Return whether a complete answer was sent and the
        connection can go on.

        A client that leaves in the middle raises nothing.
        """
        try:
            return await self._send(response)
        except ConnectionError:
            return False

    async def _send(self, response: HttpResponse) -> bool:
        match response.wire:
            case Wire.WHOLE:
                await self._write(encode_head(response, len(response.body)) + response.body)
                return self.is_open
            case Wire.CLOSE:
                return await self._finish()
            case Wire.RESET:
                return self._reset()
            case Wire.HANG:
                return await self._until_gone()
            case Wire.TRUNCATED:
                await self._write(
                    encode_head(response, len(response.body))
                    + response.body[: len(response.body) // 2]
                )
                return await self._finish()
            case Wire.SLOW:
                return await self._drip(response)
            case _:
                return await self._stream(response)

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def _finish(self) -> bool:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        return False

    def _reset(self) -> bool:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
        return False

    async def _until_gone(self) -> bool:
        while await self.reader.read(MAX_HEAD_BYTES):
            pass
        return False

    async def _drip(self, response: HttpResponse) -> bool:
        await self._write(encode_head(response, len(response.body)))
        size = -(-len(response.body) // SLOW_PIECES)
        for at in range(0, len(response.body), size):
            await asyncio.sleep(self._slow_body_s / SLOW_PIECES)
            if not self.is_open:
                return False
            await self._write(response.body[at : at + size])
        return self.is_open

    async def _stream(self, response: HttpResponse) -> bool:
        if response.wire is Wire.STREAM_HTTP10:
            head = encode_head(response, None).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
            await self._write(head + b"".join(response.pieces))
            return await self._finish()
        headers = {**response.headers, "transfer-encoding": "chunked"}
        await self._write(encode_head(HttpResponse(status=response.status, headers=headers), None))
        for piece in response.pieces:
            await self._write(chunk(piece))
            await asyncio.sleep(response.every_s)
        return await self._end_stream(response)

    async def _end_stream(self, response: HttpResponse) -> bool:
        match response.wire:
            case Wire.STREAM_NO_END:
                return await self._finish()
            case Wire.STREAM_RESET:
                await asyncio.sleep(BEFORE_RESET_S)
                return self._reset()
            case Wire.STREAM_HANG:
                return await self._until_gone()
            case Wire.STREAM_COMMENTS:
                return await self._repeat(b": keep-alive\n\n", KEEPALIVE_EVERY_S)
            case Wire.STREAM_ENDLESS:
                return await self._repeat(response.pieces[-1], ENDLESS_EVERY_S)
            case _:
                await self._write(b"0\r\n\r\n")
                return self.is_open

    async def _repeat(self, piece: bytes, every_s: float) -> bool:
        while self.is_open:
            await self._write(chunk(piece))
            await asyncio.sleep(every_s)
        return False


def encode_head(response: HttpResponse, length: int | None) -> bytes:
    lines = [f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Unnamed')}"]
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    if length is not None:
        lines.append(f"content-length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunk(piece: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(piece), piece)
