"""The tools of MCP servers. A file that a person has written names the servers, each a program on
this machine or an address.

The file has the same form as for other programs:

    {"mcpServers": {"notes": {"command": "notes-server", "args": ["--all"], "env": {"TOKEN": "…"},
                              "allow": ["search"], "effects": {"search": "read"}},
                    "wiki": {"url": "https://wiki.example/mcp", "headers": {"Authorization": "…"}}}}

Tools are named SERVER__TOOL, so that names are unique. A name that models do not take (with dots,
blanks or other letters, or too long) is changed to one that they take, and the server is called by
its own name for the tool. A tool that cannot be used is left out, with a reason for a person; the
others of its server can be used. The file sets a tool's effect; the server cannot. `read` and
`idempotent` calls may be repeated after a crash. A `once` call, the default, is never repeated: if
its outcome is unknown, a person decides. A tool's parameters and description are stored with the
objective; if the server changes them later, a person is asked before the next call.

A server on this machine gets only the few environment variables that every program needs, and those
in the file. The length of its lines and answers and the time of its calls are limited. All
processes that it started end with it, even if this process is killed. If a server fails, the call
fails, and the server is not used for `REST_S`. Its exit code and the end of its error output are
shown to a person, not to a model.

What a server on this machine does is not restricted: it is a program of its own, with the rights of
the person.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

from babyagi.errors import SettingsError, ToolError, first_error
from babyagi.llm.shapes import MAX_DEPTH, ShapeError, is_deep, read_schema, shape_of
from babyagi.net.addresses import host_of, is_in_clear
from babyagi.redaction import redact
from babyagi.runtime.heavy_imports import import_whole
from babyagi.sandbox import tree
from babyagi.tasks import Effect, Passage, ToolGrant
from babyagi.text import clean, disarm, one_line, shorten
from babyagi.tools.base import MODELS_TAKE, Sink, Tool

if TYPE_CHECKING:
    import httpx2
    import mcp_types
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.client import Transport
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.client.client import Client
    from mcp.client.session import MessageHandlerFnT
    from mcp.shared.message import SessionMessage

logger = logging.getLogger(__name__)

MAX_TOOLS = 200  # tools in the list of one server
MAX_PAGES = 20  # pages of that list
MAX_LINE_BYTES = 4 * 2**20
MAX_ANSWER_BYTES = 16 * MAX_LINE_BYTES  # over HTTP
MAX_SCHEMA_CHARS = 20_000
MAX_NAME_CHARS = 128  # of a tool, as the protocol says
MAX_REASON_CHARS = 200
MAX_DESCRIPTION_CHARS = 2000
MAX_ERROR_CHARS = 500  # of an error that a model reads
MAX_LAST_WORDS_CHARS = 2100  # `tree.MAX_ERROR_BYTES`, and the words before them
CONNECT_TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 60.0
REST_S = 60.0  # for so long, a server that failed is not used
_NAME = re.compile(r"[A-Za-z0-9-]{1,24}")
_CHANGED = re.compile(r".*_[0-9a-f]{8}")  # what `name_tool` makes of a name that models do not take


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server as the file describes it: a program (`command`) or an address (`url`).

    Attributes:
        allow: the names of the tools that can be used; None means all of them. Here and below, a
            name is the server's own one, or what `name_tool` makes of it.
        deny: the names of tools that cannot be used.
        effects: the effects of tools, by name; `once` for all others.
        timeout_s: the time limit of each call, in seconds.
        public: whether its texts may leave this machine; else they are private.
        sink: whether its calls leave this machine; None: those of a `url` do.
        type: what other programs write in addition; it has no effect.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    effects: Mapping[str, Effect] = field(default_factory=dict)
    timeout_s: float = CALL_TIMEOUT_S
    public: bool = False
    sink: bool | None = None
    type: str = ""
    disabled: bool = False

    @property
    def sends(self) -> bool:
        return bool(self.url) if self.sink is None else self.sink

    def offers(self, tool: str) -> bool:
        is_allowed = self.allow is None or self._is_among(tool, self.allow)
        return is_allowed and not self._is_among(tool, self.deny)

    def effect_of(self, tool: str) -> Effect:
        found = (effect for name, effect in self.effects.items() if self._is_among(tool, [name]))
        return next(found, Effect.ONCE)

    def _is_among(self, tool: str, names: Iterable[str]) -> bool:
        return name_tool(self.name, tool) in (name_tool(self.name, one) for one in names)


def name_tool(server: str, tool: str) -> str:
    """Return the name by which models call a tool of a server: SERVER__TOOL. If models do not take
    that name, it is changed, and ends with a digest of the server's own name for the tool."""
    name = f"{server}__{tool}"
    if MODELS_TAKE.fullmatch(name):
        return name
    digest = hashlib.sha256(tool.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{re.sub('[^A-Za-z0-9_-]', '_', name)[:55]}_{digest}"


MORE = {"others": f"at most {MAX_TOOLS} tools of a server are read"}

# -- the file
# --------------------------------------------------------------------------------------------------


def load_servers(path: Path) -> list[McpServer]:
    """Return the servers that a file describes, without disabled ones.

    Raises:
        SettingsError: the library for MCP is missing, the file cannot be read, or a server in it is
            described wrongly.
    """
    if find_spec("mcp") is None:
        what = "MCP servers need the Python package mcp, which is not installed"
        raise SettingsError(what, fix="pip install 'babyagi-daemon[mcp]'", guide="mcp")
    try:
        entries = json.loads(path.read_bytes())["mcpServers"].items()
        servers = [_read_server(name, entry) for name, entry in entries]
    except OSError as error:
        fix = "name an existing JSON file: --mcp FILE"
        raise _wrong(path, f"the file cannot be read ({error.strerror})", fix=fix) from error
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise _wrong(path, 'the file must be {"mcpServers": {NAME: {"command": …}}}') from None
    except ValueError as error:
        raise _wrong(path, str(error)) from None
    return [server for server in servers if not server.disabled]


def _wrong(path: Path, why: str, *, fix: str = "correct the file") -> SettingsError:
    return SettingsError(f"the servers in {path} cannot be used", why=why, fix=fix, guide="mcp")


def _read_server(name: str, entry: Any) -> McpServer:
    if not _NAME.fullmatch(name):
        what = "a server's name must have 1 to 24 letters, digits or -"
        raise ValueError(f"{what}, got {name[:60]!r}")
    if not isinstance(entry, dict):
        raise ValueError(f"the entry {name} must be a JSON object")
    given = {key: one for key, one in entry.items() if one is not None}
    try:
        server: McpServer = shape_of(McpServer).read({**given, "name": name}, "", True)
    except ShapeError as error:
        # without the value, which may be secret
        raise ValueError(f"{name}: {str(error).partition(', got ')[0]}") from None
    faults = {
        "timeout_s must be more than 0 and at most 3600 seconds": not 0 < server.timeout_s <= 3600,
        "it needs either a command or a url": bool(server.command) == bool(server.url),
        "its url must begin with http:// or https://": bool(server.url)
        and not server.url.startswith(("http://", "https://")),
        "its headers would be sent unencrypted over http://": bool(server.headers)
        and is_in_clear(server.url),
    }
    if fault := next((fault for fault, is_there in faults.items() if is_there), ""):
        raise ValueError(f"{name}: {fault}")
    return server


# -- the connection
# --------------------------------------------------------------------------------------------------


class Connection:
    """The connection to one server. It is opened at its first use, and again if it has broken.

    The library requires that one asyncio task opens and closes the client; any task may make calls.

    Attributes:
        last_words: the exit code of the server's program and the end of its error output, as one
            line; empty while it runs.
        left_out: the tools in the server's last list that the file allows and that cannot be used:
            why, as one line for a person, by the server's own name as one line.
    """

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self._opening, self._closing = asyncio.Lock(), asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self._rests_until, self._n_calls = 0.0, 0
        self.last_words = ""
        self.left_out: Mapping[str, str] = {}
        self._own_name_by_name: dict[str, str] = {}
        # the tools that the server listed last; None if they may have changed since
        self._offered: dict[str, Tool] | None = None

    def open_granted(self, grant: ToolGrant) -> Tool | None:
        """Return the tool as it was when it was granted to the objective, without asking the
        server; None if the file does not allow the tool now."""
        tool = grant.name.removeprefix(f"{self.server.name}__")
        if not self.server.offers(tool):
            return None
        return self._make(tool, grant.description, grant.parameters or {})

    async def find(self, tool: str) -> Tool:
        """Return the tool as the server describes it now. The server is asked once in each
        connection, and again after it has reported that its tools have changed.

        Raises:
            ToolError: the server cannot list its tools, or no longer offers this one. The text is
                one line.
        """
        await self._open()
        if self._offered is None:
            await self.list_tools()
        name = self._name(tool)
        found = (self._offered or {}).get(name)
        if found is None:
            said = self.left_out.items()
            reasons = (f"{own}: {why}" for own, why in said if self._name(own) == name)
            raise self._failed(f"it no longer offers {one_line(tool)}", why=next(reasons, ""))
        return found

    async def list_tools(self) -> list[Tool]:
        """Ask the server for its tools, and return those that the file allows and that can be used.
        The others that the file allows are in `left_out` afterwards.

        Raises:
            ToolError: the server does not start, does not answer, or its answer is invalid. The
                text is one line.
        """
        async with self._using(CONNECT_TIMEOUT_S) as client:
            listed, left_out = await _list_all(client)
        found: dict[str, mcp_types.Tool] = {}
        for tool in listed:
            if found.setdefault(self._name(tool.name), tool) is not tool:
                left_out[tool.name] = SAME_FOR_MODELS
        offers = self.server.offers
        self.left_out = {
            name: why for name, why in left_out.items() if name in MORE or offers(name)
        }
        offered = {name: tool for name, tool in found.items() if offers(tool.name)}
        self._own_name_by_name = {name: tool.name for name, tool in offered.items()}
        self._offered = {name: self._to_tool(tool) for name, tool in offered.items()}
        return list(self._offered.values())

    def _name(self, tool: str) -> str:
        return name_tool(self.server.name, tool)

    def _to_tool(self, found: mcp_types.Tool) -> Tool:
        said = shorten(one_line(disarm(clean(found.description or ""))), MAX_DESCRIPTION_CHARS)
        said = said or f"A tool of the server {self.server.name}."
        return self._make(found.name, said, read_schema(found.input_schema))

    def _make(self, tool: str, description: str, parameters: Mapping[str, Any]) -> Tool:
        return Tool(
            name=self._name(tool),
            description=description,
            parameters=parameters,
            effect=self.server.effect_of(tool),
            sink=Sink(host=host_of(self.server.url)) if self.server.sends else None,
            is_private=not self.server.public,
            run=partial(self.call, tool),
            timeout_s=self.server.timeout_s + CONNECT_TIMEOUT_S,
            offered=partial(self.find, tool),
        )

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Passage:
        """Call a tool of the server, named as in `McpServer.allow`, and return its output.

        Raises:
            ToolError: the tool reports an error, or the server cannot be used. The text is one
                line.
        """
        name = self._name(tool)
        if _CHANGED.fullmatch(name) and name not in self._own_name_by_name:
            await self.find(tool)  # only the server's list has its own name for the tool
        own_name = self._own_name_by_name.get(name, tool)
        async with self._using(self.server.timeout_s) as client:
            result = await client.call_tool(own_name, dict(arguments))
        text = _render(result.content, result.structured_content)
        if result.is_error:
            raise ToolError(self._shown(text) or f"{name} failed without a reason")
        return Passage(text=text or "(nothing)", origin=f"tool:{name}")

    @asynccontextmanager
    async def _using(self, timeout_s: float) -> AsyncIterator[Client]:
        """Yield the open client, and turn each error of the body into a `ToolError`. After a
        timeout or a lost connection, the connection is closed, and the server is not used for
        `REST_S`. After an error that the server reported, the connection stays open."""
        client = await self._open()
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        self._n_calls += 1
        try:
            async with asyncio.timeout(timeout_s):
                yield client
        except ToolError:
            raise
        except Exception as error:
            if not isinstance(error, MCPError) or error.error.code == CONNECTION_CLOSED:
                await self._give_up(is_used=self._n_calls > 1)
            raise self._failed(_say(error, f"it gave no answer in {timeout_s:g} s")) from None
        finally:
            self._n_calls -= 1

    async def _give_up(self, *, is_used: bool) -> None:
        """Stop using the server for `REST_S`, and close the connection, unless it `is_used` by
        other calls that still wait for answers."""
        self._rests_until = asyncio.get_running_loop().time() + REST_S
        if not is_used:
            await self.close()
            if self.last_words:
                logger.warning("the server %s failed: %s", self.server.name, self.last_words)

    def _failed(self, what: str, *, why: str = "") -> ToolError:
        """Return the error for a model; `why`, or the server's last words, is for a person."""
        said = f"the server {self.server.name} failed: {self._shown(what)}"
        return ToolError(said, why=why or self.last_words)

    def _shown(self, text: str, max_chars: int = MAX_ERROR_CHARS) -> str:
        secrets = [*self.server.env.values(), *self.server.headers.values()]
        return shorten(one_line(clean(redact(text, secrets=secrets))), max_chars)

    async def _open(self) -> Client:
        async with self._opening:
            if self._client is not None and self._owner is not None and not self._owner.done():
                return self._client
            left_s = self._rests_until - asyncio.get_running_loop().time()
            if left_s > 0:
                raise self._failed(f"it is tried again in {left_s:.0f} s")
            await self.close()
            self._offered, self.last_words = None, ""
            return await self._start()

    async def _start(self) -> Client:
        opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._owner = asyncio.get_running_loop().create_task(self._own(opened, self._closing))
        try:
            done, _ = await asyncio.wait([opened], timeout=CONNECT_TIMEOUT_S)
            if not done:
                raise TimeoutError
            self._client = opened.result()
        except Exception as error:
            await self._give_up(is_used=False)
            late = f"it did not start in {CONNECT_TIMEOUT_S:g} s"
            raise self._failed(_say(error, late)) from None
        return self._client

    async def _own(self, opened: asyncio.Future[Client], closing: asyncio.Event) -> None:
        """Open the client, pass it on through `opened`, and close it when `closing` is set."""
        with TemporaryFile() as errors:
            try:
                async with open_client(self.server, errors=errors, hear=self._hear) as client:
                    opened.set_result(client)
                    await closing.wait()
            except Exception as error:
                if not opened.done():
                    opened.set_exception(error)
                    opened.exception()  # whoever waited for it may have given up meanwhile
            finally:
                self._client = None
                errors.seek(0)
                said = errors.read(MAX_LAST_WORDS_CHARS).decode(errors="replace")
                self.last_words = self._shown(said, MAX_LAST_WORDS_CHARS)
                if not opened.done():
                    opened.cancel()

    async def _hear(self, message: object) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            self._offered = None

    async def close(self) -> None:
        """Close the connection, and end the server's processes if this process started them."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        self._closing.set()
        _, left = await asyncio.wait([owner], timeout=10.0)
        for one in left:
            one.cancel()
            await asyncio.wait([one], timeout=5.0)


def _say(error: Exception, late: str) -> str:
    """Return what an error says, and of which kind it is if that is not clear; `late` of one that
    says that the time is over."""
    if isinstance(error, TimeoutError):
        return late
    first = first_error(error)
    is_clear = isinstance(first, OSError) or type(first).__name__ == "MCPError"
    return str(first) if is_clear else f"{type(first).__name__}: {first}"


@asynccontextmanager
async def open_client(
    server: McpServer, *, errors: IO[bytes], hear: MessageHandlerFnT
) -> AsyncIterator[Client]:
    """Yield an open client of the MCP library for the server.

    Args:
        errors: a file into which the end of the error output of a server on this machine is
            written.
        hear: is called with each notification of the server.
    """
    await asyncio.to_thread(import_whole, "mcp")
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    async with AsyncExitStack() as stack:
        if server.command:
            if shutil.which(server.command) is None:
                raise FileNotFoundError(f"the program {server.command} does not exist")
            args = ["-I", tree.__file__, str(MAX_LINE_BYTES), server.command, *server.args]
            guarded = StdioServerParameters(
                command=sys.executable, args=args, env={**server.env}, cwd=server.cwd or None,
                encoding_error_handler="replace",
            )  # fmt: skip
            errlog: Any = errors  # the library uses only its file descriptor
            transport = stdio_client(guarded, errlog=errlog)
        else:
            http = await stack.enter_async_context(_open_http(server))
            transport = streamable_http_client(server.url, http_client=http)
        client = Client(
            _sift(transport), read_timeout_seconds=server.timeout_s, cache=None,
            message_handler=hear,
        )  # fmt: skip
        yield await stack.enter_async_context(client)


def _open_http(server: McpServer) -> httpx2.AsyncClient:
    import httpx2

    return httpx2.AsyncClient(
        headers={**server.headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(server.timeout_s, connect=CONNECT_TIMEOUT_S),
        transport=httpx2.AsyncHTTPTransport(),
        event_hooks={"response": [_guard_answer]},
        follow_redirects=False,
    )


async def _guard_answer(response: httpx2.Response) -> None:
    """Refuse an answer that is too long, or compressed, because its true size would be unknown. In
    each list of tools replace what the library's parser cannot read, so that it reads the other
    tools."""
    import httpx2

    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.ReadError("the answer is compressed")
    given = response.stream

    class Guarded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            line, n_bytes = bytearray(), 0
            async for chunk in given:  # type: ignore[union-attr]  # it is no stream of a thread
                n_bytes += len(chunk)
                if n_bytes > MAX_ANSWER_BYTES:
                    raise httpx2.ReadError("the answer is too long")
                *ended, rest = chunk.split(b"\n")
                for piece in ended:
                    yield await _mend(bytes(line + piece)) + b"\n"
                    line.clear()
                line += rest
            yield await _mend(bytes(line))

        async def aclose(self) -> None:
            await given.aclose()  # type: ignore[union-attr]  # as above

    response.stream = Guarded()


async def _mend(line: bytes) -> bytes:
    is_list = tree.LIST in line and len(line) <= MAX_LINE_BYTES
    return await asyncio.to_thread(tree.mend, line) if is_list else line


# -- the tools that a server lists, one by one
# --------------------------------------------------------------------------------------------------

_LEFT_OUT = "babyagi/left-out"  # the place in a list's metadata
SAME_FOR_MODELS = "models call a tool that the server lists before it by the same name"


async def _list_all(client: Client) -> tuple[list[mcp_types.Tool], dict[str, str]]:
    """Return the tools that the server lists and the library accepts, and those left out."""
    tools: list[mcp_types.Tool] = []
    left_out: dict[str, str] = {}
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        left_out |= (page.meta or {}).get(_LEFT_OUT, {})
        cursor = page.next_cursor
        if not cursor or len(tools) + len(left_out) >= MAX_TOOLS:
            break
    if cursor or len(tools) > MAX_TOOLS:
        left_out |= MORE
    return tools[:MAX_TOOLS], left_out


@asynccontextmanager
async def _sift(transport: Transport) -> AsyncIterator[TransportStreams]:
    """Yield the transport's streams, with each list of tools as `sift_tools` returns it: the
    library refuses a whole list for one tool in it."""
    import anyio

    async with transport as (read, write), anyio.create_task_group() as group:
        sifted, said = anyio.create_memory_object_stream[Any]()
        group.start_soon(_sift_all, read, sifted)
        yield said, write
        group.cancel_scope.cancel()


async def _sift_all(
    given: ReadStream[SessionMessage | Exception], sifted: MemoryObjectSendStream[Any]
) -> None:
    from anyio import BrokenResourceError

    with suppress(BrokenResourceError):  # nobody listens any longer
        async with sifted:
            async for message in given:
                await sifted.send(_sift_message(message))


def _sift_message(given: SessionMessage | Exception) -> SessionMessage | Exception:
    answer: Any = getattr(given, "message", None)
    if isinstance(result := getattr(answer, "result", None), dict):
        answer.result = sift_tools(result)
    return given


def sift_tools(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request. If it lists tools, it has only those that can be used, and of
    each what this program uses; its metadata has the reasons for the others,
    by their names."""
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result
    kept, left_out = [], dict[str, str]()
    for place, tool in enumerate(tools[:MAX_TOOLS], start=1):
        try:
            kept.append(_read_tool(tool))
        except ValueError as error:
            name = str(tool.get("name") or "") if isinstance(tool, dict) else ""
            name = shorten(one_line(clean(name)), MAX_NAME_CHARS)
            reason = shorten(one_line(clean(str(error))), MAX_REASON_CHARS)
            left_out[name or f"tool {place} of the list"] = reason
    left_out |= MORE if len(tools) > MAX_TOOLS else {}
    return {**result, "tools": kept, "_meta": {_LEFT_OUT: left_out}}


def _read_tool(given: Any) -> dict[str, Any]:
    """Return what this program uses of a tool in a list. Raises `ValueError` with the reason if the
    tool cannot be used."""
    if not isinstance(given, dict):
        raise ValueError("it is not a JSON object")
    name, said, schema = (given.get(key) for key in ("name", "description", "inputSchema"))
    if not isinstance(name, str) or not name:
        raise ValueError("it has no name")
    if len(name) > MAX_NAME_CHARS:
        raise ValueError(f"its name is longer than {MAX_NAME_CHARS} characters")
    if not name.isprintable() or "\N{REPLACEMENT CHARACTER}" in name:
        raise ValueError("its name has characters that cannot be shown")
    _check_schema(schema)
    described = {"description": clean(said)} if isinstance(said, str) else {}
    return {"name": name, **described, "inputSchema": schema}


def _check_schema(given: Any) -> None:
    """Raise `ValueError` if the schema of a tool's parameters cannot be used with a model."""
    from mcp.shared.inbound import find_invalid_x_mcp_header

    if not isinstance(given, dict) or given.get("type") != "object":
        raise ValueError('its schema is not a JSON object with "type": "object"')
    if is_deep(given):
        raise ValueError(f"its schema is nested more than {MAX_DEPTH} levels deep")
    if not isinstance(given.get("$schema", ""), str):
        raise ValueError("the $schema of its schema is not text")
    schema = read_schema(given)
    try:
        text = json.dumps(schema, allow_nan=False, ensure_ascii=False)
        text.encode()
    except ValueError:
        raise ValueError("its schema has a number or a character that JSON cannot hold") from None
    if len(text) > MAX_SCHEMA_CHARS:
        raise ValueError(f"its schema is longer than {MAX_SCHEMA_CHARS:,} characters")
    if away := next((one for one in _references(given) if not _is_within(one, given)), None):
        raise ValueError(f"its schema refers to {away}, which is not in it")
    if why := find_invalid_x_mcp_header(given):
        raise ValueError(why)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(value.get("$ref"), str):
        yield value["$ref"]
    inner = value.values() if isinstance(value, dict) else value
    for one in inner if isinstance(value, dict | list) else ():
        yield from _references(one)


def _is_within(reference: str, schema: Any) -> bool:
    """Return whether a JSON pointer such as `#/$defs/place` leads to a part of the schema."""
    root, *parts = unquote(reference).split("/")
    for part in parts:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list):
            schema = dict(enumerate(schema)).get(int(key)) if key.isdecimal() else None
        else:
            schema = schema.get(key) if isinstance(schema, dict) else None
    return root == "#" and isinstance(schema, dict | bool)


# -- the output of tools
# --------------------------------------------------------------------------------------------------


def _render(content: Sequence[Any], structured: Any) -> str:
    """Return the output of a tool as text. In place of content that is not text, such as a picture,
    only its kind is named."""
    parts = [_render_block(block) for block in content]
    if structured is not None and not any(parts):
        parts = [json.dumps(structured, ensure_ascii=False)]
    return "\n\n".join(filter(None, parts))


def _render_block(block: Any) -> str:
    match getattr(block, "type", ""):
        case "text":
            return str(block.text)
        case "resource":
            text = getattr(block.resource, "text", None)
            return str(text) if text is not None else f"({block.resource.uri}: no text)"
        case "resource_link":
            return f"{block.name}: {block.uri}"
        case kind:
            return f"({kind or 'something'} that is not text)"


@asynccontextmanager
async def open_servers(servers: Sequence[McpServer]) -> AsyncIterator[list[Connection]]:
    """Yield a connection for each server; it is opened at its first use. At the end, close the
    connections, and end the processes that they started."""
    connections = [Connection(server) for server in servers]
    try:
        yield connections
    finally:
        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(connection.close())
