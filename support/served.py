"""A server over real sockets in this process, and what is sent to it letter by letter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from babyagi.app.application import App, open_app
from babyagi.serve.door import cookie_name
from babyagi.serve.operations import Desk
from babyagi.serve.server import open_server
from babyagi.settings.load import load_settings
from babyagi.tasks import Level

ANSWER_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back: 0 where the connection was closed without one, -1 where nothing came."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server, and keys to it."""

    app: App
    desk: Desk
    url: str

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def token(self, level: Level = Level.ADMIN) -> str:
        return self.desk.keys.token(level)

    def session(self, level: Level = Level.ADMIN) -> str:
        return self.desk.keys.new_session(level)

    def cookie(self, session: str) -> str:
        return f"{cookie_name(self.port)}={session}"

    async def send(self, raw: bytes, *, timeout_s: float = ANSWER_TIMEOUT_S) -> Reply:
        """Send these very bytes on a connection of its own, and read one answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            async with asyncio.timeout(timeout_s):
                writer.write(raw)
                await writer.drain()
                return await read_reply(reader)
        except (ConnectionError, asyncio.IncompleteReadError):
            return Reply(status=0, headers={}, body=b"")
        except TimeoutError:
            return Reply(status=-1, headers={}, body=b"")
        finally:
            writer.close()

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        level: Any = Level.ADMIN,
        **headers: Any,
    ) -> Reply:
        """As a program asks that has the token of a level, or none where that is None."""
        return await self.send(self.request(method, path, body, level=level, **headers))

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        level: Any = Level.ADMIN,
        **headers: Any,
    ) -> bytes:
        """The bytes of a request. Names of headers have `_` for `-`; an empty value leaves out one
        that would stand there by itself."""
        data = b"" if body is None else json.dumps(body).encode()
        said = {"host": self.host, "connection": "close"}
        if level is not None:
            said["authorization"] = f"Bearer {self.token(level)}"
        if body is not None:
            said |= {"content-type": "application/json", "content-length": str(len(data))}
        said |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = [f"{method} {path} HTTP/1.1"] + [f"{key}: {one}" for key, one in said.items() if one]
        return "\r\n".join([*head, "", ""]).encode("latin-1") + data


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.strip().casefold(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    status = int(head[0].split()[1])
    if status == 304:
        return Reply(status=status, headers=headers, body=b"")
    length = headers.get("content-length")
    body = await reader.read() if length is None else await reader.readexactly(int(length))
    return Reply(status=status, headers=headers, body=body)


@asynccontextmanager
async def serving(home: Path, **variables: str) -> AsyncIterator[Served]:
    """A server on a home that does not work."""
    environ = {
        "BABYAGI_HOME": str(home),
        "BABYAGI_RESULT_STORE": "builtin",
        "BABYAGI_EMBEDDING_MODEL": "hash",
        "LLM_MODEL": "rehearsal",
        "ENABLE_COMMAND_LINE_ARGS": "true",
        **variables,
    }
    loaded = load_settings(flags={"serve_port": 0}, environ=environ, cwd=home.parent)
    settings = replace(loaded.settings, home=home)
    async with open_app(settings) as app, open_server(app, tell=print) as desk:
        yield Served(app=app, desk=desk, url=desk.url)
