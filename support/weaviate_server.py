"""A server that speaks Weaviate's two protocols, REST and gRPC with the stubs of its client, and
keeps its objects in memory.

What it answers is taken from what the client reads and from Weaviate's documentation; it was not
compared with a real server. `weaviate_server.main()` runs one as a process: it prints its two ports
and lives until it is killed.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

import grpc
import numpy as np
from weaviate.proto.v1 import batch_pb2, search_get_pb2, weaviate_pb2_grpc

from support.held_vectors import HeldVectors

STOPWORDS = {"preset": "en", "additions": None, "removals": None}
DEFAULTS = {
    "invertedIndexConfig": {"bm25": {"b": 0.75, "k1": 1.2}, "cleanupIntervalSeconds": 60,
    "stopwords": STOPWORDS},
    "multiTenancyConfig": {"enabled": False},
    "replicationConfig": {"factor": 1},
    "shardingConfig": {
        "virtualPerPhysical": 128, "desiredCount": 1, "actualCount": 1,
        "desiredVirtualCount": 128, "actualVirtualCount": 128,
        "key": "_id", "strategy": "hash", "function": "murmur3",
    },
}  # fmt: skip
ENCODER = {"type": "kmeans", "distribution": "log-normal"}
INDEX_DEFAULTS = {
    "skip": False, "cleanupIntervalSeconds": 300, "maxConnections": 32, "efConstruction": 128,
    "ef": -1, "dynamicEfMin": 100,
    "dynamicEfMax": 500, "dynamicEfFactor": 8, "vectorCacheMaxObjects": 10**12,
    "flatSearchCutoff": 40_000, "distance": "cosine",
    "filterStrategy": "acorn", "bq": {"enabled": False},
    "sq": {"enabled": False, "trainingLimit": 100_000, "rescoreLimit": 20},
    "pq": {"enabled": False, "bitCompression": False, "segments": 0, "centroids": 256,
    "trainingLimit": 100_000, "encoder": ENCODER},
}  # fmt: skip
FORBIDDEN = '{"error":[{"message":"anonymous access not enabled"}]}'


@dataclass
class State:
    """What the server holds. `status`: answer every request with it. `key`: what it asks for.
    `silent_s`: how long it says nothing."""

    classes: dict[str, dict[str, Any]] = field(default_factory=dict)
    vectors: dict[str, HeldVectors] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    key: str = ""
    status: int = 0
    silent_s: float = 0.0


def with_defaults(given: dict[str, Any]) -> dict[str, Any]:
    vectors = {
        name: {
            **config,
            "vectorIndexConfig": {**INDEX_DEFAULTS, **config.get("vectorIndexConfig", {})},
        }
        for name, config in given.get("vectorConfig", {}).items()
    }
    properties = [
        {
            "indexFilterable": True,
            "indexSearchable": found["dataType"] == ["text"],
            "tokenization": "word",
            **found,
        }
        for found in given.get("properties", [])
    ]
    return {**DEFAULTS, **given, "vectorConfig": vectors, "properties": properties}


class Rest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def do_GET(self) -> None:
        name = self.path.removeprefix("/v1/schema/")
        if self.path == "/v1/meta":
            self._answer(
                200,
                {
                    "hostname": "here",
                    "version": "1.31.0",
                    "modules": {},
                    "grpcMaxMessageSize": 104_857_600,
                },
            )
        elif self.path.startswith("/v1/.well-known/"):
            self._answer(404 if "openid" in self.path else 200, {})
        elif self.path != name:
            found = self.state.classes.get(name)
            self._answer(200 if found else 404, found or {})
        else:
            self._answer(404, {})

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        with self.state.lock:
            if given["class"] in self.state.classes:
                self._answer(
                    422, {"error": [{"message": f"class name {given['class']} already exists"}]}
                )
                return
            self.state.classes[given["class"]] = with_defaults(given)
            self.state.vectors[given["class"]] = HeldVectors()
        self._answer(200, self.state.classes[given["class"]])

    def do_DELETE(self) -> None:
        name = self.path.removeprefix("/v1/schema/")
        with self.state.lock:
            self.state.classes.pop(name, None)
            self.state.vectors.pop(name, None)
        self._answer(200, {})

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        time.sleep(self.state.silent_s)
        if self.state.key and self.headers.get("Authorization") != f"Bearer {self.state.key}":
            status, value = 401, json.loads(FORBIDDEN)
        body = json.dumps(value).encode()
        head = (
            f"HTTP/1.1 {self.state.status or status} X\r\nContent-Type: "
            f"application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.wfile.write(head.encode() + body)  # in one piece: two would wait 40 ms for each other

    def log_message(self, format: str, *args: Any) -> None:
        return


class Grpc(weaviate_pb2_grpc.WeaviateServicer):
    def __init__(self, state: State) -> None:
        self._state = state

    def BatchObjects(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._begin(context)
        errors = []
        with self._state.lock:
            for place, found in enumerate(request.objects):
                problem = self._put(found)
                if problem:
                    errors.append(
                        batch_pb2.BatchObjectsReply.BatchError(index=place, error=problem)
                    )
        return batch_pb2.BatchObjectsReply(took=0.0, errors=errors)

    def _put(self, found: Any) -> str:
        held = self._state.vectors.get(found.collection)
        if held is None:
            return f"could not find class {found.collection} in schema"
        packed = found.vector_bytes or found.vectors[0].vector_bytes
        vector = np.frombuffer(packed, dtype="<f4")
        if held.dimension not in (0, len(vector)):
            return (
                f"new node has a vector with length {len(vector)}. Existing nodes have "
                f"vectors with length {held.dimension}"
            )
        held.put(found.uuid, vector)
        return ""

    def Search(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._begin(context)
        with self._state.lock:
            held = self._state.vectors.get(request.collection)
            if held is None:
                context.abort(
                    grpc.StatusCode.UNKNOWN, f"could not find class {request.collection} in schema"
                )
                raise AssertionError("abort has raised")
            if request.HasField("near_vector"):
                found = [
                    (id_, 1.0 - score)
                    for id_, score in held.nearest(
                        self._asked(held, request, context), request.limit or 100
                    )
                ]
            else:
                found = [
                    (id_, 0.0) for id_ in held.page(after=request.after, limit=request.limit or 100)
                ]
        return search_get_pb2.SearchReply(took=0.0, results=[_result(*entry) for entry in found])

    def _asked(self, held: HeldVectors, request: Any, context: grpc.ServicerContext) -> np.ndarray:
        near = request.near_vector
        packed = near.vector_bytes or (
            near.vectors[0].vector_bytes
            if near.vectors
            else near.vector_for_targets[0].vectors[0].vector_bytes
        )
        asked = np.frombuffer(packed, dtype="<f4")
        if held.dimension not in (0, len(asked)):
            context.abort(grpc.StatusCode.UNKNOWN, "vector lengths don't match")
        return asked

    def _begin(self, context: grpc.ServicerContext) -> None:
        time.sleep(self._state.silent_s)
        if self._state.status:
            context.abort(grpc.StatusCode.UNAVAILABLE, "told to fail")
        given = dict(context.invocation_metadata()).get("authorization", "")
        if self._state.key and given != f"Bearer {self._state.key}":
            context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                "unauthorized: invalid api key, please provide a valid api key",
            )


def _result(id_: str, distance: float) -> Any:
    metadata = search_get_pb2.MetadataResult(
        id=id_, id_as_bytes=UUID(id_).bytes, distance=distance, distance_present=True
    )
    return search_get_pb2.SearchResult(
        metadata=metadata, properties=search_get_pb2.PropertiesResult()
    )


@contextmanager
def serving(
    *, host: str = "127.0.0.1", http_port: int = 0, grpc_port: int = 0
) -> Iterator[tuple[State, int, int]]:
    """A server on free ports, or on those given; what it holds, and its two ports."""
    state = State()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kind = type("RestServer", (ThreadingHTTPServer,), {"address_family": family})
    rest = kind((host, http_port), type("BoundRest", (Rest,), {"state": state}))
    rest.daemon_threads = True
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    weaviate_pb2_grpc.add_WeaviateServicer_to_server(Grpc(state), server)
    bound = server.add_insecure_port(
        f"[{host}]:{grpc_port}" if ":" in host else f"{host}:{grpc_port}"
    )
    server.start()
    thread = threading.Thread(target=rest.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield state, rest.server_address[1], bound
    finally:
        rest.shutdown()
        rest.server_close()
        thread.join()
        server.stop(None).wait()


def main() -> None:
    with serving(http_port=int(sys.argv[1]), grpc_port=int(sys.argv[2])) as (
        _,
        http_port,
        grpc_port,
    ):
        print(http_port, grpc_port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
