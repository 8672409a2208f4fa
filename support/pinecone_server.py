"""A server that speaks Pinecone's REST protocol, control plane and data plane in one, and keeps its
vectors in memory.

What it answers is taken from what the client sends and reads and from Pinecone's documentation; it
was not compared with the service. Reads lag `lag_s` behind writes, as they do there. `python -m
support.pinecone_server PORT LAG_S` runs one as a process.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from support.held_vectors import HeldVectors

MAX_BODY_BYTES = 2 * 2**20
PLACES = {("aws", "us-east-1"), ("gcp", "us-central1")}


@dataclass
class State:
    """What the service holds. `statuses`: answers to give instead, one a request. `key`: what it
    asks for."""

    dimensions: dict[str, int] = field(default_factory=dict)
    deployments: dict[str, Any] = field(default_factory=dict)
    # by index and namespace, as written
    namespaces: dict[tuple[str, str], HeldVectors] = field(default_factory=dict)
    # what reads see from when on
    seen: list[tuple[float, dict[tuple[str, str], HeldVectors]]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    lag_s: float = 0.0
    silent_s: float = 0.0
    is_ready: bool = True  # of the indexes
    key: str = "sk-test"
    statuses: list[int] = field(default_factory=list)

    def readable(self) -> dict[tuple[str, str], HeldVectors]:
        with self.lock:
            if not self.lag_s:
                return self.namespaces
            past = [held for at, held in self.seen if at <= time.monotonic() - self.lag_s]
            return past[-1] if past else {}

    def forget(self) -> None:
        """As when the process was killed."""
        with self.lock:
            for held in (self.dimensions, self.deployments, self.namespaces, self.seen):
                held.clear()

    def written(self) -> None:
        if self.lag_s:
            self.seen.append(
                (time.monotonic(), {key: held.copy() for key, held in self.namespaces.items()})
            )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def do_GET(self) -> None:
        self._handle({})

    def do_DELETE(self) -> None:
        self._handle({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}"
        if len(body) > MAX_BODY_BYTES:
            self._refuse(
                413,
                (
                    f"Request size {len(body)} exceeds the maximum supported size of "
                    f"{MAX_BODY_BYTES} bytes"
                ),
            )
            return
        self._handle(json.loads(body))

    def _handle(self, given: dict[str, Any]) -> None:
        time.sleep(self.state.silent_s)
        parts = urlsplit(self.path)
        segments = [segment for segment in parts.path.split("/") if segment]
        if self.state.statuses:
            self._refuse(self.state.statuses.pop(0), "told to fail")
        elif self.headers.get("Api-Key") != self.state.key:
            self._refuse(401, "Invalid API Key")
        elif segments[0] == "indexes":
            self._control(segments[1:], given)
        elif segments[0] == "data":
            self._data(
                segments[1],
                "/".join(segments[2:]),
                {**{k: v[0] for k, v in parse_qs(parts.query).items()}, **given},
            )
        else:
            self._refuse(404, "no such path")

    def _control(self, names: list[str], given: dict[str, Any]) -> None:
        with self.state.lock:
            if self.command == "POST":
                if given["name"] in self.state.dimensions:
                    self._refuse(409, "Resource already exists")
                    return
                place = given.get("deployment", {})
                if (place.get("cloud"), place.get("region")) not in PLACES:
                    self._refuse(
                        404,
                        (
                            f"Resource cloud: {place.get('cloud')} region: {place.get('region')} "
                            "not found."
                        ),
                    )
                    return
                (vector,) = given["schema"]["fields"].values()
                self.state.dimensions[given["name"]] = vector["dimension"]
                self.state.deployments[given["name"]] = given.get("deployment")
                self._answer(201, self._describe(given["name"]))
            elif not names:
                self._answer(
                    200, {"indexes": [self._describe(name) for name in self.state.dimensions]}
                )
            elif names[0] in self.state.dimensions:
                self._answer(200, self._describe(names[0]))
            else:
                self._refuse(404, f"Resource {names[0]} not found")

    def _describe(self, name: str) -> dict[str, Any]:
        vector = {
            "type": "dense_vector",
            "dimension": self.state.dimensions[name],
            "metric": "cosine",
        }
        address: Any = self.server.server_address
        status = {
            "ready": self.state.is_ready,
            "state": "Ready" if self.state.is_ready else "Initializing",
        }
        return {
            "name": name, "host": f"http://127.0.0.1:{address[1]}/data/{name}", "status": status,
            "schema": {"fields": {"_values": vector}}, "deletion_protection": "disabled",
            "deployment": {"environment": "here", **(self.state.deployments.get(name) or {})},
        }  # fmt: skip

    def _data(self, index: str, path: str, given: dict[str, Any]) -> None:
        if path.startswith("namespaces/"):
            path, given["namespace"] = path.split("/")
        key = (index, given.get("namespace", ""))
        with self.state.lock:
            work = {
                "vectors/upsert": self._upsert, "query": self._query, "vectors/list": self._list,
                "describe_index_stats": self._stats, "namespaces": self._delete_namespace,
            }.get(path)  # fmt: skip
            if work is None or index not in self.state.dimensions:
                self._refuse(404, "no such path")
            else:
                work(key, given)

    def _upsert(self, key: tuple[str, str], given: dict[str, Any]) -> None:
        dimension = self.state.dimensions[key[0]]
        if any(len(found["values"]) != dimension for found in given["vectors"]):
            self._refuse(
                400, f"Vector dimension does not match the dimension of the index {dimension}"
            )
            return
        if any(len(json.dumps(found.get("metadata", {}))) > 40_960 for found in given["vectors"]):
            self._refuse(400, "Metadata size exceeds the limit of 40960 bytes per vector")
            return
        held = self.state.namespaces.setdefault(key, HeldVectors())
        for found in given["vectors"]:
            held.put(found["id"], np.array(found["values"], dtype="<f4"))
        self.state.written()
        self._answer(200, {"upsertedCount": len(given["vectors"])})

    def _query(self, key: tuple[str, str], given: dict[str, Any]) -> None:
        held = self.state.readable().get(key, HeldVectors())
        best = held.nearest(np.array(given["vector"], dtype="<f4"), given["topK"])
        self._answer(
            200,
            {"matches": [{"id": id_, "score": score} for id_, score in best], "namespace": key[1]},
        )

    def _list(self, key: tuple[str, str], given: dict[str, Any]) -> None:
        held = self.state.readable().get(key, HeldVectors())
        page = held.page(after=given.get("paginationToken", ""), limit=int(given.get("limit", 100)))
        more = (
            {"pagination": {"next": page[-1]}}
            if page and held.page(after=page[-1], limit=1)
            else {}
        )
        self._answer(200, {"vectors": [{"id": id_} for id_ in page], "namespace": key[1], **more})

    def _delete_namespace(self, key: tuple[str, str], given: dict[str, Any]) -> None:
        if self.state.namespaces.pop(key, None) is None:
            self._refuse(404, "Namespace not found")
            return
        self.state.written()
        self._answer(200, {})

    def _stats(self, key: tuple[str, str], given: dict[str, Any]) -> None:
        counts = {
            name: {"vectorCount": len(held)}
            for (index, name), held in self.state.readable().items()
            if index == key[0]
        }
        total = sum(count["vectorCount"] for count in counts.values())
        self._answer(
            200,
            {
                "namespaces": counts,
                "dimension": self.state.dimensions[key[0]],
                "totalVectorCount": total,
                "indexFullness": 0,
            },
        )

    def _refuse(self, status: int, message: str) -> None:
        self._answer(status, {"status": status, "error": {"code": "REFUSED", "message": message}})

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        later = "Retry-After: 60\r\n" if status == 429 else ""
        head = (
            f"HTTP/1.1 {status} X\r\nContent-Type: "
            f"application/json\r\n{later}Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        self.wfile.write(head + body)

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def serving(*, port: int = 0, lag_s: float = 0.0) -> Iterator[tuple[State, str]]:
    """A service, and the address of its control plane."""
    state = State(lag_s=lag_s)
    server = ThreadingHTTPServer(
        ("127.0.0.1", port), type("BoundHandler", (Handler,), {"state": state})
    )
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield state, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    with serving(port=int(sys.argv[1]), lag_s=float(sys.argv[2])) as (_, address):
        print(address, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
