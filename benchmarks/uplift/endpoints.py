"""The models behind the benchmark, and the counter that every call goes through.

An endpoint is an OpenAI-compatible server on this machine. The counter stands before it: it hands
each request on as it is and each reply back as it comes, and keeps what was asked, said and spent.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from babyagi.llm.prompt import estimate_tokens
from benchmarks.uplift.engine import CONTEXT_TOKENS, N_SLOTS
from support.local_server import LocalServer, Record, echo_answer
from support.uplift.cases import Case
from support.uplift.reader import Reader

HOST = "127.0.0.1"
ROOT = Path(__file__).parents[2]
TIMEOUT_S = 3600.0
LOAD_S = 300.0
LOOK_S = 0.2  # between two looks whether a client still waits
CALLS = ("/v1/chat/completions", "/v1/responses")
PASSED_HEADERS = ("content-type", "authorization", "accept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that was answered, or whose answer the client did not await. `n_cached` tokens of the
    prompt were not read anew."""

    messages: Any
    reply: str
    seconds: float
    tokens_in: int
    tokens_out: int
    n_cached: int
    is_cut: bool

    @property
    def tokens_anew(self) -> int:
        return self.tokens_in - self.n_cached


class Endpoint(Protocol):
    """A model behind an address."""

    url: str

    async def prepare(self, case: Case) -> None:
        """Let nothing be left of earlier calls; the next ones are about this case."""


# -- the scripted reader, and a real model
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ScriptedEndpoint:
    server: LocalServer
    speaks: str
    url: str

    async def prepare(self, case: Case) -> None:
        self.server.answer = Reader(case, speaks=self.speaks).answer
        self.server.reset()
        self.server.fail_when(_is_too_long, "400-context-llamacpp")


def _is_too_long(record: Record) -> bool:
    said = "".join(str(message.get("content")) for message in record.body.get("messages", ()))
    return estimate_tokens(said) > CONTEXT_TOKENS


@asynccontextmanager
async def open_scripted(speaks: str) -> AsyncIterator[Endpoint]:
    async with LocalServer(echo_answer) as server:
        yield ScriptedEndpoint(server, speaks, server.base_url.removesuffix("/v1"))


@dataclass(slots=True)
class EngineEndpoint:
    client: httpx.AsyncClient
    url: str

    async def prepare(self, case: Case) -> None:
        for slot in range(N_SLOTS):
            reply = await self.client.post(f"{self.url}/slots/{slot}?action=erase")
            reply.raise_for_status()


@asynccontextmanager
async def open_engine(model: Path) -> AsyncIterator[Endpoint]:
    """Start llama.cpp's server, and stop it at the end."""
    pipe = asyncio.subprocess.PIPE
    with TemporaryDirectory() as slots:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.uplift.engine", str(model), slots),
            cwd=ROOT,
            stdin=pipe,
            stdout=pipe,
        )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(LOAD_S):
                url = (await process.stdout.readline()).decode().strip()
            if not url:
                raise RuntimeError(f"llama.cpp did not start with {model}")
            async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
                yield EngineEndpoint(client, url)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


# -- the counter
# --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Counter:
    """Stands before an endpoint at `base_url`. `calls` are those since the last `begin`."""

    upstream: str
    client: httpx.AsyncClient
    base_url: str = ""
    calls: list[Call] = field(default_factory=list)

    async def respond(self, request: Request) -> Response:
        body, begun_s = await request.body(), time.monotonic()
        headers = {
            name: request.headers[name] for name in PASSED_HEADERS if name in request.headers
        }
        asked = self.client.build_request(
            request.method,
            f"{self.upstream}{request.url.path}",
            params=request.query_params,
            headers=headers,
            content=body,
        )
        reply = await _unless_gone(self.client.send(asked, stream=True), request)
        if reply is None:
            self._note(body if request.url.path in CALLS else b"", b"", begun_s, is_cut=True)
            return Response(status_code=499)
        is_call = request.url.path in CALLS and reply.status_code == 200
        pieces = self._hand_back(reply, body if is_call else b"", begun_s)
        kind = reply.headers.get("content-type", "application/json")
        return StreamingResponse(pieces, status_code=reply.status_code, media_type=kind)

    async def _hand_back(
        self, reply: httpx.Response, body: bytes, begun_s: float
    ) -> AsyncIterator[bytes]:
        said, is_whole = bytearray(), False
        try:
            async for piece in reply.aiter_raw():
                said += piece
                yield piece
            is_whole = True
        finally:
            self._note(body, bytes(said), begun_s, is_cut=not is_whole)
            await reply.aclose()

    def _note(self, body: bytes, said: bytes, begun_s: float, *, is_cut: bool) -> None:
        if body:
            seconds = time.monotonic() - begun_s
            self.calls.append(read_call(body, said, seconds, is_cut=is_cut))


async def _unless_gone(
    reply: Coroutine[Any, Any, httpx.Response], request: Request
) -> httpx.Response | None:
    """Await the beginning of the reply; give it up, and return None, when the client does."""
    waiting = asyncio.ensure_future(reply)
    while not waiting.done():
        await asyncio.wait([waiting], timeout=LOOK_S)
        if not waiting.done() and await request.is_disconnected():
            waiting.cancel()
            await asyncio.wait([waiting])
            return None
    return waiting.result()


def read_call(body: bytes, said: bytes, seconds: float, *, is_cut: bool) -> Call:
    """What a call asked, said and spent. Where no usage is told, as in a reply that was cut, tokens
    are estimated."""
    asked = json.loads(body)
    messages = asked.get("messages", asked.get("input"))
    text, usage = "", dict[str, Any]()
    for part in _read_parts(said):
        usage = part.get("usage") or usage
        for choice in part.get("choices") or ():
            text += _said(choice.get("message") or choice.get("delta") or {})
    details = usage.get("prompt_tokens_details") or {}
    return Call(
        messages=messages,
        reply=text,
        seconds=round(seconds, 2),
        tokens_in=usage.get("prompt_tokens", estimate_tokens(json.dumps(messages))),
        tokens_out=usage.get("completion_tokens", estimate_tokens(text)),
        n_cached=details.get("cached_tokens", 0),
        is_cut=is_cut,
    )


def _read_parts(said: bytes) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a reply, whole or in events."""
    text = said.decode("utf-8", "replace")
    lines = text.split("\n") if text.startswith(("data:", "event:", ":")) else [text]
    for line in lines:
        try:
            part = json.loads(line.removeprefix("data:").strip())
        except ValueError:
            continue
        if isinstance(part, dict):
            yield part


def _said(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls") or ()
    called = "".join(
        f"{call['function'].get('name') or ''}{call['function'].get('arguments') or ''}"
        for call in calls
    )
    return f"{message.get('content') or ''}{called}"


class _Server(uvicorn.Server):
    """Without handlers of signals, which the benchmark has itself."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def counting(endpoint: Endpoint) -> AsyncIterator[Counter]:
    """Open a counter before the endpoint on a free port."""
    async with httpx.AsyncClient(timeout=TIMEOUT_S) as client:
        counter = Counter(endpoint.url, client)
        route = Route("/{path:path}", counter.respond, methods=["GET", "POST"])
        config = uvicorn.Config(Starlette(routes=[route]), log_level="error", lifespan="off")
        server = _Server(config)
        listening = socket.create_server((HOST, 0))  # who calls before it serves, waits
        counter.base_url = f"http://{HOST}:{listening.getsockname()[1]}/v1"
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve([listening]))
            try:
                yield counter
            finally:
                server.should_exit = True
                await asyncio.wait([serving])
