"""Weaviate: the contract with the real client, on a server of ours that speaks its protocols, or on
the one of WEAVIATE_TEST_URL."""

import hashlib
import os
import socket
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("weaviate")

import httpx
import weaviate.connect.helpers
import weaviate.embedded
import weaviate.exceptions
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata
from packaging.version import Version

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.index.port import IndexItem
from babyagi.index.vendors.weaviate import WeaviateIndex, class_name, grpc_address
from support.index_servers import find_ports
from support.weaviate_server import serving
from tests.index.contract import ITEMS, OurServerContract, make_every_error, make_id

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
REAL = os.environ.get("WEAVIATE_TEST_URL", "")


@pytest.fixture
def server():
    with serving() as found:
        yield found


@pytest.fixture
async def index(server):
    _, http_port, grpc_port = server
    key = os.environ.get("WEAVIATE_TEST_API_KEY", "")
    index = (
        WeaviateIndex(REAL, api_key=key)
        if REAL
        else WeaviateIndex(f"http://127.0.0.1:{http_port}", grpc_port=grpc_port)
    )
    for name in ("one", "two", "flat", "eight"):
        await index.drop(name)
    yield index
    await index.close()


class TestWeaviateIndex(OurServerContract):
    """As the contract has it."""

    @pytest.fixture
    def open_another(self, server):
        return partial(open_other, server)


def open_other(server, **options):
    _, http_port, grpc_port = server
    return WeaviateIndex(f"http://127.0.0.1:{http_port}", grpc_port=grpc_port, **options)


async def test_a_collection_that_another_worker_dropped_is_made_anew_by_the_next_upsert(server):
    index, other = open_other(server), open_other(server)
    await index.upsert("one", ITEMS)
    await other.drop("one")

    assert await index.query("one", ITEMS[0].vector, k=3) == []
    await index.upsert("one", ITEMS)

    assert len(await other.ids("one")) == len(ITEMS)
    await index.close()
    await other.close()


async def test_a_key_is_sent_and_a_wrong_one_says_which_variable_to_set(server):
    state, *_ = server
    state.key = "sk-right"
    right, wrong = open_other(server, api_key="sk-right"), open_other(server, api_key="sk-wrong")

    await right.upsert("one", ITEMS)
    with pytest.raises(IndexUnavailableError) as raised:
        await wrong.query("one", ITEMS[0].vector, k=1)

    assert "WEAVIATE_API_KEY" in raised.value.fix
    assert "sk-" not in f"{raised.value.what} {raised.value.why} {raised.value.fix}"
    await right.close()
    await wrong.close()


@pytest.mark.thorough
async def test_a_server_that_fails_is_unavailable_and_is_used_again_when_it_is_well(server):
    state, *_ = server
    index = open_other(server, timeout_s=1)  # the library tries again and again until then
    await index.upsert("one", ITEMS)
    state.status = 503
    for call in (
        index.query("one", ITEMS[0].vector, k=1),
        index.upsert("one", ITEMS),
        index.ids("one"),
    ):
        with pytest.raises(IndexUnavailableError, match="cannot answer now"):
            await call
    state.status = 0

    assert (await index.query("one", ITEMS[0].vector, k=1))[0].id == ITEMS[0].id
    await index.close()


async def test_a_closed_grpc_port_is_named(server):
    _, http_port, _ = server
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed_port = free.getsockname()[1]
        index = WeaviateIndex(f"http://127.0.0.1:{http_port}", grpc_port=closed_port, timeout_s=1)
        with pytest.raises(IndexUnavailableError) as raised:
            await index.upsert("one", ITEMS)
    await index.close()

    assert f"127.0.0.1:{closed_port}" in raised.value.fix


@pytest.mark.parametrize(
    "url", ["https://a1.c0.europe-west3.gcp.weaviate.cloud", "https://mine.weaviate.network"]
)
def test_the_cloud_speaks_grpc_where_the_library_looks_for_it(url):
    _, host = vars(weaviate.connect.helpers)["__parse_weaviate_cloud_cluster_url"](url)

    assert grpc_address(url) == (host, 443)


def test_digits_and_words_in_the_name_of_a_collection_say_nothing_of_keys_or_vectors():
    name = class_name("dimension-forbidden-a401b")

    error = WeaviateIndex("http://127.0.0.1:9")._explain(
        RuntimeError(f"could not find class {name} in schema")
    )

    assert isinstance(error, IndexUnavailableError)
    assert name in error.why and "WEAVIATE_API_KEY" not in error.fix


async def test_a_key_that_is_taken_back_later_says_which_variable_to_set(server):
    state, *_ = server
    index = open_other(server, api_key="sk-old")
    await index.upsert("one", ITEMS)
    state.key = "sk-new"

    with pytest.raises(IndexUnavailableError) as raised:
        await index.query("one", ITEMS[0].vector, k=1)
    await index.close()

    assert "WEAVIATE_API_KEY" in raised.value.fix


async def test_objects_that_a_server_refuses_are_not_written_to_the_log(server, caplog):
    index = open_other(server)
    short = IndexItem(
        id=make_id(88), vector=struct.pack("<2f", 1, 0), text="a secret of mine", task_id=9
    )

    with pytest.raises(StoreUnusableError):
        await index.upsert("one", [*ITEMS, short])
    await index.close()

    assert "a secret of mine" not in caplog.text


STARTING = """
import asyncio, sys
import weaviate
from babyagi.index.vendors import weaviate as ours

ours.EMBEDDED_PORT, ours.EMBEDDED_GRPC_PORT = map(int, sys.argv[1:])

async def main():
    n_ticks = 0

    async def tick():
        nonlocal n_ticks
        while True:
            await asyncio.sleep(0.02)
            n_ticks += 1

    ticking, index = asyncio.create_task(tick()), ours.WeaviateIndex("", is_embedded=True, timeout_s=1)
    print(await index.ids("one"))
    ticking.cancel()
    await index.close()
    print(n_ticks > 5)

asyncio.run(main())
"""


@pytest.mark.system
def test_an_embedded_server_that_starts_slowly_is_waited_for_and_holds_nobody_up(tmp_path):
    ports = " ".join(map(str, find_ports()))
    version = f"v{weaviate.embedded.WEAVIATE_VERSION}"
    binary = tmp_path / f"weaviate-{version}-{hashlib.sha256(version.encode()).hexdigest()}"
    binary.write_text(
        f"#!/bin/sh\nsleep 2\nexec {sys.executable} -m support.weaviate_server {ports} >&2\n"
    )
    binary.chmod(0o700)
    environ = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
        "PYTHONPATH": str(Path.cwd()),
    }

    done = subprocess.run(
        [sys.executable, "-c", STARTING, *ports.split()],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout == "[]\nTrue\n", done.stderr


async def test_an_address_may_be_of_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving(host="::1") as (_, http_port, grpc_port):
        index = WeaviateIndex(f"http://[::1]:{http_port}", grpc_port=grpc_port)
        await index.upsert("one", ITEMS)

        assert len(await index.ids("one")) == len(ITEMS)
        await index.close()


async def test_a_server_that_is_not_there_is_unavailable():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        index = WeaviateIndex(f"http://127.0.0.1:{free.getsockname()[1]}", grpc_port=1, timeout_s=5)
        with pytest.raises(IndexUnavailableError) as raised:
            await index.ids("one")
    await index.close()

    assert "WEAVIATE_URL" in raised.value.fix


async def test_nothing_is_asked_of_anybody_before_the_first_call():
    await WeaviateIndex("http://127.0.0.1:9").close()


RESPONSE = httpx.Response(500, json={"error": []}, request=httpx.Request("GET", "http://w"))
ARGUMENTS = {
    "response": RESPONSE, "res": RESPONSE, "count": 3, "data": {}, "pb": Version("1"),
    "grpc": Version("1"), "protocol_type": "grpc",
}  # fmt: skip


WEAVIATE_ERRORS = [
    *make_every_error(weaviate.exceptions, ARGUMENTS),
    AioRpcError(StatusCode.INTERNAL, Metadata(), Metadata(), "internal"),
    httpx.ConnectError("no route"),
    ValueError("odd"),
]


@pytest.mark.parametrize("error", WEAVIATE_ERRORS)
def test_every_error_of_weaviate_is_one_of_ours(error):
    index = WeaviateIndex("http://127.0.0.1:9")

    with (
        pytest.raises((IndexUnavailableError, StoreUnusableError)) as raised,
        index._translating(1.0),
    ):
        raise error

    assert "127.0.0.1:9" in raised.value.what or "imported" in raised.value.what


def test_only_vectors_that_do_not_fit_are_a_reason_to_begin_anew():
    index = WeaviateIndex("http://127.0.0.1:9")

    for said in (
        "vector lengths don't match: 64 vs 2",
        "new node has a vector with length 2",
        "inconsistent vector dimensions",
    ):
        assert isinstance(index._explain(RuntimeError(said)), StoreUnusableError)
    for said in (
        "shard is read-only",
        "not enough memory",
        "could not find class Babyagi_x in schema",
        "status 429",
    ):
        assert isinstance(index._explain(RuntimeError(said)), IndexUnavailableError)


@pytest.mark.parametrize("name", ["babyagi-0a1b-ff00", "a.b", "Ünïcode", "9"])
def test_a_collection_has_a_name_that_weaviate_takes(name):
    import re

    assert re.fullmatch(r"[A-Z][_0-9A-Za-z]*", class_name(name))
