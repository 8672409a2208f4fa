"""Two hosts and a server that are apart, on one machine: links between them can be cut, so that
packets vanish without a word.

`Namespaces` gives each a network of its own, joined by a bridge; that takes root. `Forwarders`
stands in where it is not allowed: each host reaches everything through an address of its own, and a
process here carries the bytes, or keeps them.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import urlsplit

from support.connections import Connections
from support.postgres_server import PostgresServer

HOSTS = ("a", "b")
SERVER = "pg"


class Network(Protocol):
    """An async context manager; everything it made is gone afterwards."""

    name: str
    model_host: str  # where the model server has to listen

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def open_postgres(self, *settings: str) -> PostgresServer: ...

    def prefix(self, host: str) -> tuple[str, ...]:
        """The command that starts another one on the host."""
        ...

    async def addresses(self, host: str, *, store_url: str, model_url: str) -> Mapping[str, str]:
        """What a process on the host has to call the store and the model server."""
        ...

    def cut(self, place: str) -> None:
        """From now on nothing comes from this host, or from the server, nor goes there; connections
        stay open."""
        ...

    def restore(self, place: str) -> None: ...


def choose_network() -> Network:
    return Namespaces() if may_make_namespaces() else Forwarders()


def may_make_namespaces() -> bool:
    if os.geteuid() != 0:
        return False
    name = f"probe{secrets.token_hex(3)}"
    try:
        _ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError):
        return False
    _ip("netns", "del", name)
    return True


class Namespaces:
    """A network namespace for each host and for the PostgreSQL server; this process sits at the
    bridge."""

    name = "network namespaces"

    def __init__(self) -> None:
        self._id = f"by{secrets.token_hex(3)}"
        self._net = f"10.{random.randint(200, 250)}.{random.randint(1, 250)}"
        self.model_host = f"{self._net}.1"
        self._made = ExitStack()

    async def __aenter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self._made.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._made.close()

    def _make(self) -> None:
        bridge = self._id
        _ip("link", "add", bridge, "type", "bridge")
        self._made.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{self.model_host}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for number, place in enumerate((*HOSTS, SERVER), start=2):
            space = link = f"{self._id}{place}"
            _ip("netns", "add", space)
            self._made.callback(_ip, "netns", "del", space)
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            # what nobody acknowledged keeps a namespace alive for minutes, with its link
            self._made.callback(_ip, "link", "del", link)
            _ip("link", "set", link, "master", bridge, "up")
            _ip("-n", space, "addr", "add", f"{self._net}.{number}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", space, "link", "set", device, "up")

    def open_postgres(self, *settings: str) -> PostgresServer:
        return PostgresServer(
            *settings, address=f"{self._net}.{2 + len(HOSTS)}", within=self.prefix(SERVER)
        )

    def prefix(self, host: str) -> tuple[str, ...]:
        return "ip", "netns", "exec", f"{self._id}{host}"

    async def addresses(self, host: str, *, store_url: str, model_url: str) -> Mapping[str, str]:
        return {}

    def cut(self, place: str) -> None:
        _ip("link", "set", f"{self._id}{place}", "nomaster")

    def restore(self, place: str) -> None:
        _ip("link", "set", f"{self._id}{place}", "master", self._id)


def _ip(*args: str) -> None:
    subprocess.run(
        ["ip", *args],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


class Forwarders:
    """Hosts at 127.0.0.2 and 127.0.0.3, each with a forwarder for the store and one for the model
    server."""

    name = "addresses of their own"
    model_host = "127.0.0.1"

    def __init__(self) -> None:
        self._open = {place: asyncio.Event() for place in (*HOSTS, SERVER)}
        for event in self._open.values():
            event.set()
        self._connections = Connections()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._connections.close()

    def open_postgres(self, *settings: str) -> PostgresServer:
        return PostgresServer(*settings)

    def prefix(self, host: str) -> tuple[str, ...]:
        return ()

    async def addresses(self, host: str, *, store_url: str, model_url: str) -> Mapping[str, str]:
        return {
            "BABYAGI_TASK_STORE": await self._forward(store_url, host, (host, SERVER)),
            "BABYAGI_PROTOCOL": "untested",
            "OPENAI_BASE_URL": await self._forward(model_url, host, (host,)),
        }

    async def _forward(self, url: str, host: str, places: Sequence[str]) -> str:
        """The URL at the host's own address; bytes pass while the links of all these places are
        whole."""
        parts = urlsplit(url)
        gates = [self._open[place] for place in places]

        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _carry_both_ways(reader, writer, (parts.hostname or "", parts.port or 0), gates)

        address = f"127.0.0.{2 + HOSTS.index(host)}"
        port = await self._connections.listen(carry, address, 0)
        return url.replace(f"{parts.hostname}:{parts.port}", f"{address}:{port}")

    def cut(self, place: str) -> None:
        self._open[place].clear()

    def restore(self, place: str) -> None:
        self._open[place].set()


async def _carry_both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    to: tuple[str, int],
    gates: Sequence[asyncio.Event],
) -> None:
    writers = [writer]
    try:
        await _until_open(gates)
        far_reader, far_writer = await asyncio.open_connection(*to)
        writers.append(far_writer)
        async with asyncio.TaskGroup() as group:
            group.create_task(_carry(reader, far_writer, gates))
            group.create_task(_carry(far_reader, writer, gates))
    except (OSError, ExceptionGroup):
        pass  # one side is gone, the other one sees it now
    finally:
        for one in writers:
            one.close()


async def _carry(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gates: Sequence[asyncio.Event]
) -> None:
    while data := await reader.read(2**16):
        await _until_open(gates)
        writer.write(data)
        await writer.drain()
    await _until_open(gates)
    with suppress(OSError):
        writer.write_eof()


async def _until_open(gates: Sequence[asyncio.Event]) -> None:
    while not all(gate.is_set() for gate in gates):
        for gate in gates:
            await gate.wait()
