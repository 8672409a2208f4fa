"""The indexes that are measured and killed, and the servers that some of them need: Chroma's own,
and those of the tests for Weaviate and Pinecone, because neither can be had without an account or a
download."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path

from babyagi.index.builtin import BuiltinIndex
from babyagi.index.port import VectorIndex
from babyagi.index.vendors.chroma import SYNC_THRESHOLD, ChromaIndex, ChromaServerIndex
from babyagi.runtime.offload import ThreadOffload

INDEXES = ("builtin", "chroma", "chroma-server", "weaviate", "pinecone")
START_S = 60.0


def open_index(
    name: str,
    folder: Path,
    ports: Sequence[int],
    stack: AsyncExitStack,
    *,
    timeout_s: float,
    sync_threshold: int = SYNC_THRESHOLD,
) -> VectorIndex:
    """The index of this name, closed with the stack; `ports` are those of its server."""
    url = f"http://127.0.0.1:{ports[0]}"
    if name == "builtin":
        return BuiltinIndex()
    if name == "chroma":
        offload = ThreadOffload(name="chroma")
        stack.callback(offload.close)
        index: VectorIndex = ChromaIndex(
            folder / "chroma", offload=offload, sync_threshold=sync_threshold
        )
    elif name == "chroma-server":
        index = ChromaServerIndex(url, timeout_s=timeout_s)
    elif name == "weaviate":
        from babyagi.index.vendors.weaviate import WeaviateIndex

        index = WeaviateIndex(url, grpc_port=ports[1], timeout_s=timeout_s)
    else:
        from babyagi.index.vendors.pinecone import PineconeIndex

        index = PineconeIndex(
            "sk-test", cloud="aws", region="us-east-1", host=url, timeout_s=timeout_s
        )
    stack.push_async_callback(index.close)
    return index


def server_line(name: str, folder: Path, ports: Sequence[int], *, lag_s: float = 0.0) -> list[str]:
    """What starts the server of an index; empty where it needs none. `lag_s`: so far Pinecone's
    reads are behind its writes."""
    if name == "chroma-server":
        chroma = str(Path(sys.executable).with_name("chroma"))
        return [
            chroma,
            "run",
            "--path",
            str(folder / "server"),
            "--host",
            "127.0.0.1",
            "--port",
            str(ports[0]),
        ]
    if name == "weaviate":
        return [sys.executable, "-m", "support.weaviate_server", str(ports[0]), str(ports[1])]
    if name == "pinecone":
        return [sys.executable, "-m", "support.pinecone_server", str(ports[0]), str(lag_s)]
    return []


def find_ports() -> list[int]:
    """Two that are free."""
    with socket.socket() as one, socket.socket() as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        return [one.getsockname()[1], other.getsockname()[1]]


@contextmanager
def serving(name: str, folder: Path, ports: Sequence[int]) -> Iterator[int]:
    """The server of an index while it is needed, and its process id; 0 where it needs none."""
    line = server_line(name, folder, ports)
    if not line:
        yield 0
        return
    server = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_it_listens(server, ports[0])
        yield server.pid
    finally:
        server.kill()
        server.wait()


def _wait_until_it_listens(server: subprocess.Popen[bytes], port: int) -> None:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s and server.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start: {server.args!r}")
