"""Calls models on any server with an OpenAI-compatible API. An `Endpoint` sends the requests,
through the `openai` package; a `Dialect` writes the requests of one API (Chat Completions or
Responses), and reads its replies."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from babyagi.errors import (
    BabyagiError,
    EndlessAnswerError,
    MalformedReplyError,
    ModelRejectedError,
    ModelUnavailableError,
    OverdueError,
    ToolsUnsupportedError,
)
from babyagi.llm.errors import (
    Form,
    ModelAddress,
    check_model_name,
    is_about_form,
    judge,
    judge_error_body,
    read_refusal,
    translate,
)
from babyagi.llm.port import Completion, OnText
from babyagi.llm.prices import Price
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, bound_tokens
from babyagi.llm.reading import (
    RawReply,
    arguments_to_send,
    as_mapping,
    as_text,
    build_completion,
    count,
    find_choice,
    read_call,
)
from babyagi.llm.retry import MAX_HOLD_S, Breaker, Deadline, SilenceError, retrying
from babyagi.llm.streaming import (
    AnswerListener,
    ChatReplyBuilder,
    ReplyBuilder,
    ResponsesReplyBuilder,
    StreamError,
    build_reply,
)
from babyagi.net.addresses import Proxies
from babyagi.redaction import redact_url
from babyagi.runtime.heavy_imports import import_openai
from babyagi.runtime.offload import now_s
from babyagi.tasks import Reservation, Role
from babyagi.text import clean

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI
    from typing_extensions import TypeIs

_HTTP_ROOMS = frozenset({"httpx2", "httpcore2", "httpx", "httpcore", "anyio", "ssl"})


# -- one server: takes a JSON object, returns a JSON object
# --------------------------------------------------------------------------------------------------

OPENAI_HOST = "api.openai.com"
OPENAI_URL = f"https://{OPENAI_HOST}/v1"
MAX_BODY_BYTES = 8 * 2**20
CONNECT_TIMEOUT_S = 10.0
IDLE_S = 60.0  # the longest pause between two pieces of an answer
# How long an idle connection is kept for the next call. Uvicorn and Node close theirs after 5 s,
# and a request that arrives at that moment gets no answer.
KEEP_ALIVE_S = 4.0
_BLANK = b"\xef\xbb\xbf \t\r\n"  # what may precede the object of a whole answer
DRAIN_S = 0.1  # the longest wait for the end of a stream whose answer is complete
WAIT_LONGER = "raise BABYAGI_MODEL_TIMEOUT_S to wait longer"
MAX_BROKEN = 2  # after so many broken streams in a row, answers are requested whole

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The credentials: the key and, if used, the organisation and the version of Azure's API.

    With a version, the address is an Azure resource and model names are deployment names.
    """

    key: str = field(default="", repr=False)
    organization: str = ""
    azure_api_version: str = ""


@dataclass(slots=True)
class _InFlight:
    """A request whose answer is not complete.

    Attributes:
        sent_s: when it was sent, in seconds of the event loop's clock.
        has_begun: whether part of its answer has arrived.
    """

    sent_s: float
    has_begun: bool = False


def is_client(given: object) -> TypeIs[AsyncOpenAI]:
    """Return whether the object is an `openai.AsyncOpenAI`, without importing the package.

    Raises:
        TypeError: it is the synchronous client, `openai.OpenAI`.
    """
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(given).__mro__}
    if "openai.OpenAI" in kinds:
        raise TypeError("pass an AsyncOpenAI instead of an OpenAI")
    return "openai.AsyncOpenAI" in kinds


class Endpoint:
    """A server and its key. The connection is opened with the first request; all callers share it
    and the circuit breaker.

    Args:
        base_url: empty or None for OpenAI's own server.
        api_key: empty if the server needs none; an `Account` if it needs more than a key.
        timeout_s: the seconds that the server may be silent about one call, its waits and retries
            included, at first (`Deadline`).
        proxies: the proxies to use; those of the environment are ignored.
        sleep: waits for the given number of seconds.
        random: returns a number from 0 up to 1, which varies the waits between retries.

    Attributes:
        counts_streams: whether its streams report their usage, as far as is known.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | Account = "",
        timeout_s: float = 120.0,
        proxies: Proxies | None = None,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> None:
        account = Account(key=api_key) if isinstance(api_key, str) else api_key
        self.base_url = (base_url or OPENAI_URL).rstrip("/")
        self.host = self.base_url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        self._shown_url = redact_url(self.base_url)
        self._account = account
        self.deadline = Deadline(timeout_s)
        self.counts_streams = True
        self._proxies = proxies or Proxies()
        self._sleep = sleep
        self._random = random
        self._client: AsyncOpenAI | None = None
        self._is_given = False
        self._answered_s = -math.inf  # when it last answered a call
        self._was_reached = False  # a connection was made, whatever came of it
        self._breaker = Breaker()
        # False once a connection broke before an answer began. Some servers close a connection
        # after an answer without announcing it, and the next request on that connection is lost.
        self._keeps_connections = True

    @classmethod
    def over(
        cls,
        client: AsyncOpenAI,
        *,
        timeout_s: float = 120.0,
        sleep: Callable[[float], Awaitable[None]],
        random: Callable[[], float],
    ) -> Self:
        """Return an endpoint that sends its requests through a client that the calling program has
        opened, with that client's address, key, headers and HTTP client. The client's own retries
        are switched off, and the endpoint never closes it."""
        key = client.api_key
        endpoint = cls(
            base_url=str(client.base_url),
            api_key=key,
            timeout_s=timeout_s,
            sleep=sleep,
            random=random,
        )
        endpoint._client, endpoint._is_given = client.with_options(max_retries=0), True
        endpoint._client._platform = "Unknown"  # else the client starts processes to find out
        return endpoint

    @property
    def is_openai(self) -> bool:
        return self.host == OPENAI_HOST

    async def post(
        self,
        path: str,
        request: Mapping[str, Any],
        *,
        model: str,
        parse: Callable[[Mapping[str, Any]], T],
        builder: ReplyBuilder | None = None,
        deadline: Deadline | None = None,
    ) -> T:
        """Post the request, and return what `parse` returns for the JSON object in the answer. The
        request is retried as in `retrying`.

        Args:
            parse: raises `MalformedReplyError` for an object that is not an answer.
            builder: builds the answer of a stream; None if the request does not ask for one.
            deadline: that of the endpoint if None.

        Raises:
            EndlessAnswerError: the answer was too long.
            OverdueError: the server was silent for too long (`Deadline`).
            Whatever `ChatModel.complete` raises.
        """
        address, caller = self._address(model), asyncio.current_task()
        may_retry = partial(self._breaker.may_retry, caller=caller)
        in_flight: _InFlight | None = None
        if self._client is None:  # in a thread, because the first import takes long
            await asyncio.to_thread(import_openai)

        async def send() -> T:
            nonlocal in_flight
            in_flight = _InFlight(sent_s=now_s())
            ask = partial(self._post_once, path, request, address, builder, in_flight)
            try:
                return await self._send_guarded(ask, address, parse)
            except Exception:
                in_flight = None  # the request has ended, and the call may wait for the next one
                raise

        def count_heard() -> int:
            return builder.listener.n_chars if builder is not None else 0

        try:
            return await (deadline or self.deadline).wait_for(
                retrying(send, sleep=self._sleep, random=self._random, may_retry=may_retry),
                count_heard=count_heard,
                lives=partial(self._lives, address),
            )
        except SilenceError as silence:
            raise self._overdue(address, in_flight, silence) from silence
        except ModelUnavailableError as error:
            if error.is_limit and error.retry_after_s:
                self._breaker.hold(model, until_s=now_s() + min(error.retry_after_s, MAX_HOLD_S))
            raise
        finally:
            self._breaker.stop_retrying(caller)

    async def _send_guarded(
        self,
        ask: Callable[[], Awaitable[Mapping[str, Any]]],
        address: ModelAddress,
        parse: Callable[[Mapping[str, Any]], T],
    ) -> T:
        """Send the request once, if the circuit breaker allows it, and report the outcome to the
        breaker."""
        sent_s = now_s()
        self._breaker.check(address.model, now_s=sent_s)
        try:
            found = await ask()
            answer = self._parse(found, address, parse)
        except ModelUnavailableError as error:
            self._was_reached |= not error.is_unreached
            error.is_unreached &= not self._was_reached and self._answered_s == -math.inf
            wait_s = self._breaker.note_failure(error, sent_s=sent_s, now_s=now_s())
            error.retry_after_s = max(wait_s, error.retry_after_s or 0.0) or None
            raise
        except BabyagiError:
            self._note_answer(sent_s)
            raise
        self._note_answer(sent_s)
        return answer

    def _note_answer(self, sent_s: float) -> None:
        self._answered_s = now_s()
        self._breaker.note_answer(sent_s=sent_s)

    def _parse(
        self,
        found: Mapping[str, Any],
        address: ModelAddress,
        parse: Callable[[Mapping[str, Any]], T],
    ) -> T:
        try:
            return parse(found)
        except MalformedReplyError as error:
            unreadable = _unreadable(address, error.what)
            unreadable.said_usage = found.get("usage")
            raise unreadable from error

    async def _lives(self, address: ModelAddress) -> bool:
        """Return whether the server lives: it has answered a call within the deadline, or answers a
        request for its list of models on another connection, which one that is at work on its only
        slot does too."""
        if now_s() - self._answered_s < self.deadline.now_s:
            return True
        import httpx2
        import openai

        is_stream = True  # only the status is read
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                response = await self._open(address).get(
                    "/models",
                    cast_to=httpx2.Response,
                    options={"follow_redirects": False},
                    stream=is_stream,
                )
                await response.aclose()
        except openai.APIStatusError as error:
            return error.status_code < 500
        except Exception:  # whatever happened, it was no answer
            return False
        return True

    def _overdue(
        self, address: ModelAddress, request: _InFlight | None, silence: SilenceError
    ) -> ModelUnavailableError:
        """Return the error for a call that was cut off.

        Args:
            request: the request in flight; None if the call was waiting to send the next one.
        """
        has_begun = request is not None and request.has_begun
        done = "did not complete its answer" if has_begun else "gave no answer"
        what = f"{address.model} at {address.url} {done} in {silence.waited_s:g} s"
        if request is None:
            return ModelUnavailableError(what, fix=WAIT_LONGER)
        lives = silence.server_lives
        overdue = OverdueError(what, fix=WAIT_LONGER, has_begun=has_begun, server_lives=lives)
        if not lives:
            self._breaker.note_failure(overdue, sent_s=request.sent_s, now_s=now_s())
        return overdue

    async def close(self) -> None:
        """Close the connection; a client that was passed in stays open."""
        if self._client is not None and not self._is_given:
            client, self._client = self._client, None
            await client.close()

    def _address(self, model: str) -> ModelAddress:
        return ModelAddress(model=model, url=self._shown_url, secret=self._account.key)

    async def _post_once(
        self,
        path: str,
        request: Mapping[str, Any],
        address: ModelAddress,
        builder: ReplyBuilder | None,
        in_flight: _InFlight,
    ) -> Mapping[str, Any]:
        """Send the request once, and return the JSON object in the answer. Set
        `in_flight.has_begun` once part of the answer has arrived."""
        try:
            response = await self._send(path, request, address)
            try:
                async with aclosing(_read_chunks(response, address)) as chunks:
                    first = b""
                    while not first.strip() and (first := await anext(chunks, b"")):
                        in_flight.has_begun = True
                    if builder is not None and not first.lstrip(_BLANK).startswith(b"{"):
                        async with aclosing(_chain(first, chunks)) as whole:
                            found = await build_reply(whole, builder)
                        await _drain(chunks)
                        return found
                    body = first + b"".join([chunk async for chunk in chunks])
                return self._read(body, address)
            finally:
                await response.aclose()
        except Exception as error:
            meaning = self._meaning(error, address)
            if meaning is None:
                raise
            raise meaning from error

    def _meaning(self, error: Exception, address: ModelAddress) -> BabyagiError | None:
        """Return the error of this program for an exception that sending a request, or reading its
        answer, raised; None if the HTTP client did not raise it."""
        import openai

        match error:
            case openai.APIStatusError():
                given = error.response
                refusal = read_refusal(given.status_code, given.headers, given.content)
                meant = judge(refusal, address)
                meant.refusal = refusal if is_about_form(refusal) else None
                return meant
            case openai.APIConnectionError():
                cause = error.__cause__
                meant = translate(cause if isinstance(cause, Exception) else error, address)
                if isinstance(meant, ModelUnavailableError) and meant.may_be_billed:
                    self._keeps_connections = False
                return meant
            case StreamError():
                return self._judge_stream(error, address)
            case RuntimeError() if self._is_given and "closed" in str(error):
                return ModelRejectedError(
                    f"{address.url} cannot be called through the client that was passed in",
                    why=str(error),
                    fix="pass an open client; its connections belong to one event loop, so await "
                    "run_async in one, or pass a new client for each run",
                    guide="models",
                )
        return translate(error, address) if _is_of_http(error) else None

    async def _send(
        self, path: str, request: Mapping[str, Any], address: ModelAddress
    ) -> httpx2.Response:
        """Send the request and return the response once its headers have arrived.

        Raises:
            APIStatusError: the response has an error status.
        """
        import httpx2

        is_stream = True  # the body is not read here but by `_read_chunks`, which bounds it
        connection = "keep-alive" if self._keeps_connections else "close"
        return await self._open(address).post(
            path,
            cast_to=httpx2.Response,
            body=dict(request),
            options={
                "follow_redirects": False,
                "headers": {"accept-encoding": "identity", "connection": connection},
                "timeout": httpx2.Timeout(None, connect=CONNECT_TIMEOUT_S),
            },
            stream=is_stream,
        )

    def _judge_stream(self, error: StreamError, address: ModelAddress) -> BabyagiError:
        """Return the error of this program for a stream that failed, or in which the server sent an
        error."""
        if error.said is None:
            unreadable = (
                _cut(address, error.what) if error.is_cut else _unreadable(address, error.what)
            )
            unreadable.said_usage = error.usage
            return unreadable
        found = judge_error_body(error.said, address)
        found.may_be_billed = found.may_be_billed or error.has_begun
        return found

    def _read(self, body: bytes, address: ModelAddress) -> Mapping[str, Any]:
        try:
            found = json.loads(body.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise _unreadable(address, _describe(body)) from error
        if not isinstance(found, dict):
            raise _unreadable(address, f"a JSON {type(found).__name__}")
        if found.get("error"):
            raise judge_error_body(found, address)
        return found

    def _open(self, address: ModelAddress) -> AsyncOpenAI:
        """Open the client with explicit arguments only, so that no environment variable has an
        effect."""
        if self._client is None:
            plain, azure = import_openai()
            account = self._account
            told: dict[str, Any] = {
                "api_key": account.key or "none",
                "admin_api_key": "",
                "organization": account.organization,
                "project": "",
                "webhook_secret": "",
                "max_retries": 0,
                "http_client": self._open_http(address),
            }
            if account.azure_api_version:
                client: AsyncOpenAI = azure(
                    azure_endpoint=self.base_url, api_version=account.azure_api_version, **told
                )
            else:
                client = plain(base_url=self.base_url, **told)
            client.admin_api_key = client.project = client.webhook_secret = None
            client.organization = account.organization or None
            # else requests would have the headers in OPENAI_CUSTOM_HEADERS
            client._custom_headers = {"user-agent": "babyagi"}
            client._platform = "Unknown"  # else the client starts processes to find out
            self._client = client
        return self._client

    def _open_http(self, address: ModelAddress) -> httpx2.AsyncClient:
        import httpx2

        try:
            return httpx2.AsyncClient(
                follow_redirects=False,
                transport=httpx2.AsyncHTTPTransport(
                    # without encryption no certificates are loaded, which takes 30 ms
                    verify=not self.base_url.lower().startswith("http://"),
                    proxy=self._proxies.find(self.base_url),
                    limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE_S),
                ),
                event_hooks={"request": [_drop_machine_headers], "response": [_cap_refusal]},
            )
        except (httpx2.InvalidURL, ValueError) as error:
            raise ModelRejectedError(
                f"{address.url} cannot be called",
                why=str(error),
                fix="check the addresses in OPENAI_BASE_URL, HTTPS_PROXY and HTTP_PROXY",
                guide="models",
            ) from error
        except OSError as error:
            raise ModelRejectedError(
                "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read",
                why=error.strerror or str(error),
                fix="set SSL_CERT_FILE to a file with the certificate of an authority, or unset it",
                guide="models",
            ) from error

    async def greet(self, *, timeout_s: float) -> None:
        """Request the server's list of models, with neither key nor prompt, whatever the answer.

        Raises:
            ModelRejectedError, ModelUnavailableError: no connection can be made.
        """
        import httpx2

        address = self._address("")
        async with self._open_http(address) as client:
            try:
                async with client.stream("GET", f"{self.base_url}/models", timeout=timeout_s):
                    return
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
                raise translate(error, address) from error
            except httpx2.HTTPError:
                return


def _unreadable(address: ModelAddress, found: str) -> ModelUnavailableError:
    """Return the error for an invalid answer, which may have been billed."""
    return ModelUnavailableError(
        f"{address.model} at {address.url} sent an invalid answer",
        why=found,
        fix="check OPENAI_BASE_URL (it usually ends in /v1)",
        may_be_billed=True,
    )


def _cut(address: ModelAddress, why: str) -> ModelUnavailableError:
    what = f"the connection to {address.url} broke"
    return ModelUnavailableError(what, why=why, may_be_billed=True)


def _describe(body: bytes) -> str:
    if not body.strip():
        return "an empty body"
    return "a web page" if body.lstrip()[:1] == b"<" else "a body that is not JSON"


async def _read_chunks(
    response: httpx2.Response, address: ModelAddress
) -> AsyncGenerator[bytes, None]:
    """Yield the body as it arrives: at most `MAX_BODY_BYTES`, and once it has begun with no pause
    longer than `IDLE_S`. Some servers send the headers before they read the prompt."""
    _require_plain(response)
    n_bytes, chunks = 0, aiter(response.aiter_raw())
    while True:
        try:
            async with asyncio.timeout(IDLE_S if n_bytes else None):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            sender = f"{address.model} at {address.url}"
            what = f"{sender} stopped within its answer and sent nothing for {IDLE_S:g} s"
            raise OverdueError(what, has_begun=True) from error
        n_bytes += len(chunk)
        _require_end(n_bytes)
        yield chunk


def _require_plain(response: httpx2.Response) -> None:
    """Refuse a compressed answer: we never request one, and it could take any amount of memory."""
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ModelUnavailableError(
            "the server sent a compressed answer, which was not requested", may_be_billed=True
        )


def _require_end(n_bytes: int) -> None:
    if n_bytes > MAX_BODY_BYTES:
        what = f"an answer was longer than {MAX_BODY_BYTES // 2**20} MiB"
        raise EndlessAnswerError(what, guide="models", may_be_billed=True)


async def _cap_refusal(response: httpx2.Response) -> None:
    """Limit the body of an error response to `MAX_BODY_BYTES`, because the client reads it
    whole."""
    import httpx2

    if response.is_success:
        return
    _require_plain(response)
    given, body = response.stream, bytearray()
    async for chunk in given:  # type: ignore[union-attr]  # the client is async, so its streams are
        body += chunk
        _require_end(len(body))
    await given.aclose()  # type: ignore[union-attr]  # as above
    response.stream = httpx2.ByteStream(bytes(body))


async def _drop_machine_headers(request: httpx2.Request) -> None:
    """Remove the headers that describe this machine from a request."""
    for name in [name for name in request.headers if name.startswith("x-stainless-")]:
        del request.headers[name]


async def _chain(first: bytes, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    yield first
    async for chunk in chunks:
        yield chunk


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the body to its end, or for at most `DRAIN_S`. The next request can use the connection
    only after its end."""
    with suppress(Exception):  # the answer is complete, whatever happens to the connection
        async with asyncio.timeout(DRAIN_S):
            async for _ in chunks:
                pass


def _is_of_http(error: Exception) -> bool:
    """Return whether the HTTP client, or a layer below it, raised the error."""
    room = type(error).__module__.partition(".")[0]
    return room in _HTTP_ROOMS or isinstance(error, (UnicodeError, OSError))


class OpenAIModel:
    """A `ChatModel` behind an endpoint. A parameter that the endpoint has refused once is left out
    of all later requests. Tools are different: once they are refused, every prompt with tools fails
    without a request, and the caller must leave them out.

    Args:
        endpoint: several models may share one; the code that opened it must close it.
        temperature: None to send no temperature.
        dialect: `chat`, `responses`, or `auto`: Responses for OpenAI's own endpoint, Chat
            Completions for every other; or another one.
        price: None when it is unknown; calls are then counted as free, and a cost limit must be
            off.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        *,
        temperature: float | None = None,
        dialect: str | Dialect = "auto",
        price: Price | None = None,
    ) -> None:
        self.name = name
        self.deadline = endpoint.deadline
        self._endpoint = endpoint
        self._price = price
        if dialect == "auto":
            dialect = "responses" if endpoint.is_openai else "chat"
        named = RESPONSES if dialect == "responses" else CHAT
        self._dialect = dialect if isinstance(dialect, Dialect) else named
        # Most servers that are not OpenAI's know only the older name, and some ignore the newer
        # one, which gives a reply without a limit.
        output_limit = "max_completion_tokens" if endpoint.is_openai else "max_tokens"
        self._form = Form(temperature=temperature, output_limit=output_limit)
        self._tools_refused: ToolsUnsupportedError | None = None
        self._n_broken = 0  # broken streams in a row

    def reserve(self, prompt: Prompt) -> Reservation:
        bound = bound_tokens(prompt)
        cost_usd = self._price.cost_usd(bound, prompt.max_output_tokens) if self._price else 0.0
        return Reservation(calls=1, tokens=bound + prompt.max_output_tokens, cost_usd=cost_usd)

    async def complete(
        self, prompt: Prompt, *, role: Role, on_text: OnText | None = None
    ) -> Completion:
        """Return the answer to the prompt. It is streamed if `on_text` is given and the server
        supports that."""
        if self._endpoint.is_openai:
            check_model_name(self.name)
        if prompt.tools and self._tools_refused is not None:
            raise copy(self._tools_refused)
        listener = None if on_text is None else AnswerListener(on_text)
        try:
            reply = await self._ask(prompt, listener)
            completion = self._complete(reply, prompt)
        except ToolsUnsupportedError as error:
            self._tools_refused = error
            raise
        except ModelUnavailableError as error:
            if error.said_usage is not None:
                error.billed = count(error.said_usage, prompt, said="", price=self._price)
            raise
        if on_text and listener and not listener.has_relayed and completion.text:
            on_text(completion.text)  # the server does not stream
        return completion

    def _complete(self, reply: RawReply, prompt: Prompt) -> Completion:
        """Return the reply as a completion. A stream that does not report its usage, or one that
        cannot be right, is charged what was reserved for it, and does not make the cost of the run
        uncertain: further answers with a price are requested whole."""
        completion = build_completion(reply, prompt, name=self.name, price=self._price)
        if reply.was_streamed and completion.usage.unconfirmed_tokens:
            self._endpoint.counts_streams = False
            usage = replace(completion.usage, unconfirmed_cost_usd=0.0)
            return replace(completion, usage=usage)
        return completion

    async def _ask(self, prompt: Prompt, listener: AnswerListener | None) -> RawReply:
        """Post the prompt, without the parameters that the server has refused so far. After another
        refusal it is posted again with one parameter fewer, so the loop ends."""
        while True:
            form = self._form
            request = self._dialect.render(prompt, self.name, form)
            is_whole = listener is None or "stream" in form.left_out or not self._may_stream()
            request |= {} if is_whole else self._dialect.stream
            sent = {name: request[name] for name in request if name not in form.left_out}
            try:
                if listener is None or is_whole:
                    return await self._post(sent)
                return await self._post_for_stream(sent, listener)
            except BabyagiError as error:
                smaller = form.without(error.refusal, sent) if error.refusal else None
                if smaller is None:
                    raise
                if self._form is form:  # else another call has learned it meanwhile
                    self._form = smaller

    async def _post(
        self, request: Mapping[str, Any], builder: ReplyBuilder | None = None
    ) -> RawReply:
        return await self._endpoint.post(
            self._dialect.path,
            request,
            model=self.name,
            parse=self._dialect.parse,
            builder=builder,
        )

    async def _post_for_stream(
        self, request: Mapping[str, Any], listener: AnswerListener
    ) -> RawReply:
        """Post a request for a streamed answer. Count how many streams in a row break off."""
        builder = self._dialect.builder(listener)
        try:
            reply = await self._post(request, builder)
        except ModelUnavailableError as error:
            self._n_broken += error.may_be_billed
            raise
        self._n_broken = 0
        return replace(reply, was_streamed=builder.has_ended)

    def _may_stream(self) -> bool:
        """Return whether to request an answer as a stream: not if `MAX_BROKEN` streams in a row
        broke off, nor if the answers have a price and the server's streams do not report their
        usage."""
        counts = self._endpoint.counts_streams
        return self._n_broken < MAX_BROKEN and (counts or self._price is None)


# -- the dialects
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """Converts prompts to requests of one API, and its replies to `RawReply`."""

    path: str
    render: Callable[[Prompt, str, Form], dict[str, Any]]
    parse: Callable[[Mapping[str, Any]], RawReply]
    stream: Mapping[str, Any]  # the parameters that request a stream
    builder: Callable[[AnswerListener], ReplyBuilder]


def _render_chat(prompt: Prompt, name: str, form: Form) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": name,
        "messages": [_render_message(message) for message in _list_messages(prompt, form)],
        form.output_limit: prompt.max_output_tokens,
    }
    if form.temperature is not None:
        request["temperature"] = form.temperature
    if prompt.stop:
        request["stop"] = list(prompt.stop)
    if prompt.tools:
        request["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in prompt.tools
        ]
    if prompt.schema is not None and form.schema_kind:
        schema = {
            "name": prompt.schema_name or "reply",
            "schema": dict(prompt.schema),
            "strict": True,
        }
        is_exact = form.schema_kind == "json_schema"
        request["response_format"] = (
            {"type": "json_schema", "json_schema": schema} if is_exact else {"type": "json_object"}
        )
    return request


def _list_messages(prompt: Prompt, form: Form) -> Sequence[Message]:
    """Return the messages as the server accepts them. If it requires user and model to alternate,
    system messages become the user's, and consecutive messages of the user are joined."""
    if form.takes_system:
        return prompt.messages
    listed: list[Message] = []
    for message in prompt.messages:
        is_told = message.speaker in (Speaker.SYSTEM, Speaker.USER)
        if is_told and listed and listed[-1].speaker is Speaker.USER:
            told = f"{listed[-1].text}\n\n{message.text}"
            listed[-1] = replace(listed[-1], text=told)
        else:
            listed.append(replace(message, speaker=Speaker.USER) if is_told else message)
    return listed


def _render_message(message: Message) -> dict[str, Any]:
    rendered: dict[str, Any] = {"role": message.speaker.value, "content": clean(message.text)}
    if message.tool_calls:
        rendered["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments_to_send(call.arguments)},
            }
            for call in message.tool_calls
        ]
    if message.speaker is Speaker.TOOL:
        rendered["tool_call_id"] = message.tool_call_id
    return rendered


def _parse_chat(reply: Mapping[str, Any]) -> RawReply:
    """Return the content of the reply's first choice.

    Raises:
        MalformedReplyError: there is no choice, or no message in it.
    """
    choice = find_choice(reply.get("choices"))
    message = choice.get("message")
    if not isinstance(message, dict):
        raise MalformedReplyError("the reply has no message")
    return RawReply(
        text=as_text(message.get("content")),
        calls=_parse_calls(message),
        finish_reason=choice.get("finish_reason"),
        refusal=as_text(message.get("refusal")),
        model=reply.get("model"),
        usage=reply.get("usage"),
    )


def _parse_calls(message: Mapping[str, Any]) -> list[ToolCall]:
    given = message.get("tool_calls")
    calls = list(map(as_mapping, given if isinstance(given, list) else []))
    if not calls and message.get("function_call"):  # of older servers
        calls = [{"function": message["function_call"]}]
    return [read_call(call.get("id"), as_mapping(call.get("function"))) for call in calls]


_CUT_BY = {"max_output_tokens": "length", "content_filter": "content_filter"}


def _render_response_request(prompt: Prompt, name: str, form: Form) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": name,
        "input": [item for message in prompt.messages for item in _render_items(message)],
        # it limits the hidden reasoning of a model as well
        "max_output_tokens": prompt.max_output_tokens,
        "store": False,
    }
    if form.temperature is not None:
        request["temperature"] = form.temperature
    if prompt.tools:
        request["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
                "strict": False,
            }
            for tool in prompt.tools
        ]
    if prompt.schema is not None and form.schema_kind:
        schema = {
            "type": "json_schema",
            "name": prompt.schema_name or "reply",
            "schema": dict(prompt.schema),
            "strict": True,
        }
        request["text"] = {
            "format": schema if form.schema_kind == "json_schema" else {"type": "json_object"}
        }
    return request


def _render_items(message: Message) -> Iterator[dict[str, Any]]:
    if message.speaker is Speaker.TOOL:
        yield {
            "type": "function_call_output",
            "call_id": message.tool_call_id,
            "output": clean(message.text),
        }
        return
    if message.text or not message.tool_calls:
        yield {"role": message.speaker.value, "content": clean(message.text)}
    for call in message.tool_calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": arguments_to_send(call.arguments),
        }


def _parse_response(reply: Mapping[str, Any]) -> RawReply:
    """Return the content of the reply's output.

    Raises:
        MalformedReplyError: the output is empty, although the reply was not cut off.
    """
    cut_by = as_mapping(reply.get("incomplete_details")).get("reason")
    output = reply.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    if not items and not cut_by:
        raise MalformedReplyError("the response has no output")
    messages = [item.get("content") for item in items if item.get("type") == "message"]
    parts = [as_mapping(one) for parts in messages if isinstance(parts, list) for one in parts]
    return RawReply(
        text="".join(as_text(part.get("text")) for part in parts),
        calls=[
            read_call(item.get("call_id"), item)
            for item in items
            if item.get("type") == "function_call"
        ],
        finish_reason=_CUT_BY.get(cut_by, "unknown")
        if isinstance(cut_by, str)
        else {"completed": "stop"}.get(str(reply.get("status")), ""),
        refusal="".join(as_text(part.get("refusal")) for part in parts),
        model=reply.get("model"),
        usage=reply.get("usage"),
    )


CHAT = Dialect(
    path="/chat/completions",
    render=_render_chat,
    parse=_parse_chat,
    stream={"stream": True, "stream_options": {"include_usage": True}},
    builder=ChatReplyBuilder,
)
RESPONSES = Dialect(
    path="/responses",
    render=_render_response_request,
    parse=_parse_response,
    stream={"stream": True},
    builder=ResponsesReplyBuilder,
)
