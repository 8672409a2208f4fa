"""An OpenAI-compatible endpoint on this machine that counts every request and misbehaves on demand.

A fault is chosen, in this order: by `fail_next` and `fail_when`, then by the model's name (`FAULT`
for every request, `FAULT@N` for the
first N). A fault that does not apply to a request (another path, no stream) is left for the next
one, but where the model's name asks for it, the answer is a 400 that says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from babyagi.tasks import Usage
from support.connections import Connections
from support.local_server.answers import Answerer, agreeing, rehearsal_answer
from support.local_server.dialects import (
    CHAT,
    EMBEDDINGS,
    RESPONSES,
    Answer,
    ChatRequest,
    count_usage,
    embedding_texts,
    parse_request,
    render_embeddings,
    render_reply,
    render_stream,
)
from support.local_server.faults import (
    FAULTS,
    LOGIN_PAGE,
    Fault,
    applies_to,
    error_body,
    fault_named,
)
from support.local_server.misbehaviour import misbehave
from support.local_server.wire import (
    MAX_HEAD_BYTES,
    BadRequestError,
    Connection,
    HttpRequest,
    HttpResponse,
    Wire,
    json_response,
    read_request,
)

HOST = "127.0.0.1"
BACKLOG = 1024
NOT_A_REQUEST = (ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One request as it came. `at` is the event loop's clock in seconds; tokens are those billed, 0
    until the answer is made.

    `digest` is equal for requests of equal path and body. `fault` is the name of the fault that it
    met.
    """

    n: int
    at: float
    path: str
    agent: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    digest: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    fault: str = ""


@dataclass(slots=True)
class _Rule:
    fault: Fault
    matches: Callable[[Record], bool]
    left: int | None  # None: without end


class LocalServer:
    """The server; an async context manager. What clients still wait for ends when it closes.

    Without an `answer` the rehearsal model is behind it, and every check agrees.

    If `answer` raised, the client got a 500, and leaving the block raises the first such error.
    """

    def __init__(
        self,
        answer: Answerer | None = None,
        *,
        latency_s: float = 0.0,
        embedding_latency_s: float = 0.0,
        slow_body_s: float = 20.0,
        piece_latency_s: float = 0.0,
        host: str = HOST,
        port: int = 0,
    ) -> None:
        self.answer = answer or agreeing(rehearsal_answer)
        # what a reply says of its cost, and what is billed
        self.say_usage: Callable[[Usage], tuple[Any, Usage]] | None = None
        self.latency_s = latency_s
        self.embedding_latency_s = embedding_latency_s
        self.errors: list[Exception] = []
        self._slow_body_s = slow_body_s
        self.piece_latency_s = piece_latency_s  # between two events of a good stream
        self._host = host
        self._port = port
        self._connections = Connections()
        self._elsewhere = ""
        self.reset()

    def reset(self) -> None:
        """Forget all requests and all faults."""
        self.requests: list[Record] = []
        self.n_connections = 0
        # what a client sent on to the other host that a redirect named
        self.strayed: list[Record] = []
        # digests of the requests whose billed answer was sent to its end, readable or not
        self.answered: list[str] = []
        self._rules: list[_Rule] = []
        self._model_uses: Counter[str] = Counter()

    @property
    def base_url(self) -> str:
        return f"http://{self._host}:{self._port}/v1"

    @property
    def calls_by_agent(self) -> Counter[str]:
        return Counter(record.agent for record in self.requests)

    @property
    def tokens_by_agent(self) -> Counter[str]:
        """Billed tokens, prompt and completion together."""
        counts: Counter[str] = Counter()
        for record in self.requests:
            counts[record.agent] += record.prompt_tokens + record.completion_tokens
        return counts

    def fail_next(self, fault: str, n: int | None = 1, agent: str | None = None) -> None:
        """Let the next `n` requests (None: all) that the fault applies to meet it; with `agent`,
        only those of that agent."""
        self._rules.append(_Rule(_known(fault), lambda record: agent in (None, record.agent), n))

    def fail_when(self, predicate: Callable[[Record], bool], fault: str) -> None:
        """Let every request that the predicate is true of meet the fault, until `reset`."""
        self._rules.append(_Rule(_known(fault), predicate, None))

    # -- life
    # ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        listen, limit = self._connections.listen, MAX_HEAD_BYTES
        self._port = await listen(
            self._accept, self._host, self._port, limit=limit, backlog=BACKLOG
        )
        other_port = await listen(self._accept_stray, self._host, 0, limit=limit)
        self._elsewhere = f"http://{self._host}:{other_port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._connections.close()
        if self.errors and error is None:
            raise self.errors[0]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_connections += 1
        connection = Connection(reader, writer, slow_body_s=self._slow_body_s)
        await self._serve(connection, self._respond)

    async def _accept_stray(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = Connection(reader, writer, slow_body_s=self._slow_body_s)
        await self._serve(connection, self._respond_elsewhere)

    async def _serve(
        self, connection: Connection, respond: Callable[[Connection, HttpRequest], Awaitable[bool]]
    ) -> None:
        try:
            while (request := await read_request(connection.reader)) is not None:
                if (
                    not await respond(connection, request)
                    or request.headers.get("connection", "").lower() == "close"
                ):
                    return
        except BadRequestError as error:
            await connection.send(_error(str(error), error.status))
        except Exception as error:
            self.errors.append(error)
        finally:
            await connection.close()

    # -- answering
    # ----------------------------------------------------------------------------------------------

    async def _respond(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer one request. Return whether the connection goes on."""
        if request.method == "POST" and request.path in (CHAT, RESPONSES, EMBEDDINGS):
            return await self._respond_to_call(connection, request)
        match request.method, request.path:
            case "GET", "/v1/models":
                rows = [
                    {"id": name, "object": "model", "created": 0, "owned_by": "local"}
                    for name in ("rehearsal", *sorted(FAULTS))
                ]
                return await connection.send(json_response({"object": "list", "data": rows}))
            case "GET", "/health":
                return await connection.send(json_response({"status": "ok"}))
            case "GET", "/login":
                return await connection.send(
                    HttpResponse(headers={"content-type": "text/html"}, body=LOGIN_PAGE)
                )
            case "GET", "/_stats":
                return await connection.send(json_response(self._stats()))
            case "POST", "/_reset":
                self.reset()
                return await connection.send(json_response({}))
            case "POST", "/_faults":
                return await connection.send(self._set_faults(request.body))
        return await connection.send(
            _error(f"no such endpoint: {request.method} {request.path}", 404)
        )

    async def _respond_to_call(self, connection: Connection, request: HttpRequest) -> bool:
        at, answered = _now_s(), self.answered
        try:
            body = json.loads(request.body)
            chat = None if request.path == EMBEDDINGS else parse_request(request.path, body)
            if chat is None:
                embedding_texts(body)
        except NOT_A_REQUEST as error:
            return await connection.send(_error(f"not a request of this endpoint: {error!r}", 400))
        record = self._record(request, body, chat, at)
        response, is_billed = await self._answer(record, chat)
        latency_s = self.embedding_latency_s if chat is None else self.latency_s
        await asyncio.sleep(max(0.0, at + latency_s - _now_s()))
        is_sent = connection.is_open and await connection.send(response)
        if is_sent and is_billed:
            answered.append(record.digest)
        return is_sent

    def _record(
        self, request: HttpRequest, body: Mapping[str, Any], chat: ChatRequest | None, at: float
    ) -> Record:
        record = Record(
            n=len(self.requests) + 1,
            at=at,
            path=request.path,
            agent="embedding" if chat is None else chat.agent,
            body=body,
            headers=request.headers,
            digest=hashlib.sha256(request.path.encode() + b"\n" + request.body).hexdigest()[:16],
        )
        self.requests.append(record)
        return record

    async def _answer(self, record: Record, chat: ChatRequest | None) -> tuple[HttpResponse, bool]:
        """Return what to send, and whether it is billed."""
        fault, complaint = self._choose_fault(record)
        if complaint:
            return _error(complaint, 400), False
        if fault is not None and fault.body is not None:
            self._note(record, Usage(), fault)
            return misbehave(
                fault, path=record.path, request=chat, reply={}, elsewhere=self._elsewhere
            ), False
        if chat is None:
            reply, usage = render_embeddings(record.body)
        else:
            answer = await self._ask(chat)
            if answer is None:
                return _error("the answer of this server raised an error", 500), False
            answer = fault.says(chat, answer) if fault and fault.says else answer
            reply, usage = (
                render_reply(record.path, chat, answer, number=record.n),
                count_usage(chat, answer),
            )
        if self.say_usage is not None:
            said, usage = self.say_usage(usage)
            reply = {name: value for name, value in reply.items() if name != "usage"} | (
                {} if said is None else {"usage": said}
            )
        self._note(record, usage, fault)
        if fault is None or fault.is_good_reply:
            return replace(_good_response(record, chat, reply), every_s=self.piece_latency_s), True
        return misbehave(
            fault, path=record.path, request=chat, reply=reply, elsewhere=self._elsewhere
        ), fault.is_billed

    async def _ask(self, chat: ChatRequest) -> Answer | None:
        try:
            given = self.answer(chat)
            return await given if inspect.isawaitable(given) else given
        except Exception as error:
            self.errors.append(error)
            return None

    def _note(self, record: Record, usage: Usage, fault: Fault | None) -> None:
        billed = usage if fault is None or fault.is_billed else Usage()
        place = record.n - 1
        if self.requests[place : place + 1] == [record]:  # else a reset came in between
            name = fault.name if fault else ""
            spent = replace(
                record,
                prompt_tokens=billed.prompt_tokens,
                completion_tokens=billed.completion_tokens,
                fault=name,
            )
            self.requests[place] = spent

    # -- faults
    # ----------------------------------------------------------------------------------------------

    def _choose_fault(self, record: Record) -> tuple[Fault | None, str]:
        """Return the fault that the request meets, or why the one that its model names cannot
        strike it."""
        for rule in self._rules:
            if rule.left != 0 and _why_not(rule.fault, record) is None and rule.matches(record):
                rule.left = rule.left - 1 if rule.left is not None else None
                return rule.fault, ""
        model = str(record.body.get("model"))
        name, _, times = model.partition("@")
        fault = fault_named(name)
        if fault is None or not (times.isdecimal() or not times):
            return None, ""
        why_not = _why_not(fault, record)
        if why_not is not None:
            return None, why_not
        self._model_uses[model] += 1
        return (fault if not times or self._model_uses[model] <= int(times) else None), ""

    def _set_faults(self, body: bytes) -> HttpResponse:
        """Set faults from a list of `{"fault": NAME, "n": 1 | null, "agent": NAME | null}`, or from
        one of them."""
        try:
            given = json.loads(body)
            for entry in given if isinstance(given, list) else [given]:
                self.fail_next(entry["fault"], n=entry.get("n", 1), agent=entry.get("agent"))
        except NOT_A_REQUEST as error:
            return _error(f"not a list of faults: {error!r}", 400)
        return json_response({})

    def _stats(self) -> dict[str, Any]:
        return {
            "requests": len(self.requests),
            "strayed": len(self.strayed),
            "calls_by_agent": self.calls_by_agent,
            "tokens_by_agent": self.tokens_by_agent,
            "faults": Counter(record.fault for record in self.requests if record.fault),
            "digests": [record.digest for record in self.requests],
            "answered": self.answered,
            "errors": [repr(error) for error in self.errors],
        }

    async def _respond_elsewhere(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer as the host that a redirect points to: with a text that must never reach a
        task."""
        body = json.loads(request.body or b"{}")
        asked = request.path if request.path in (CHAT, RESPONSES) else CHAT
        chat = ChatRequest(model=str(body.get("model")), messages=())
        self.strayed.append(replace(self._stray_record(request, body), fault="307-other-host"))
        return await connection.send(
            json_response(
                render_reply(asked, chat, Answer(text="stolen"), number=len(self.strayed))
            )
        )

    def _stray_record(self, request: HttpRequest, body: Mapping[str, Any]) -> Record:
        n = len(self.strayed) + 1
        return Record(
            n=n,
            at=_now_s(),
            path=request.path,
            agent="unknown",
            body=body,
            headers=request.headers,
            digest="",
        )


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _known(name: str) -> Fault:
    fault = fault_named(name)
    if fault is None:
        raise ValueError(f"no fault is called {name!r}")
    return fault


def _why_not(fault: Fault, record: Record) -> str | None:
    """Return why the fault cannot strike the request; an empty text where a good answer is right
    all the same."""
    if not applies_to(fault, record.path):
        return f"the fault {fault.name} does not apply to {record.path}"
    if fault.needs_stream and not record.body.get("stream"):
        return f"the fault {fault.name} needs a request with stream=true"
    return None if fault.strikes(record.body) else ""


def _error(message: str, status: int) -> HttpResponse:
    return HttpResponse(
        status=status,
        headers={"content-type": "application/json"},
        body=error_body(f"local server: {message}"),
    )


def _good_response(record: Record, chat: ChatRequest | None, reply: dict[str, Any]) -> HttpResponse:
    if chat is None or not record.body.get("stream"):
        return json_response(reply)
    with_usage = bool((record.body.get("stream_options") or {}).get("include_usage"))
    pieces = render_stream(record.path, chat, reply, with_usage=with_usage)
    return HttpResponse(
        headers={"content-type": "text/event-stream"}, pieces=pieces, wire=Wire.STREAM
    )
