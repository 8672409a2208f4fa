"""Chroma over the network: the contract on a real server, and what happens when it is gone, silent,
or used by others."""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic_settings import BaseSettings

from babyagi.errors import IndexUnavailableError, StoreUnusableError
from babyagi.index.vendors.chroma import DAMAGE, ChromaServerIndex, require_cosine
from tests.index.contract import ITEMS, SharedIndexContract

pytestmark = pytest.mark.system


def find_free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def serving(folder, port):
    """A real Chroma server on this port, killed at the end."""
    command = [
        str(Path(sys.executable).with_name("chroma")),
        "run",
        "--path",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    environ = {**os.environ, "HOME": str(folder)}
    server = subprocess.Popen(
        command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until_it_lives(port, server)
        yield
    finally:
        server.kill()
        server.wait()


def wait_until_it_lives(port, server):
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        with (
            suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=1),
        ):
            return
        time.sleep(0.05)
    pytest.fail("the Chroma server did not start")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    port = find_free_port()
    with serving(tmp_path_factory.mktemp("chroma"), port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
async def index(url):
    index = ChromaServerIndex(url)
    for name in ("one", "two", "flat"):
        await index.drop(name)
    yield index
    await index.close()


class TestChromaServerIndex(SharedIndexContract):
    """As the contract has it."""

    @pytest.fixture
    def open_another(self, url):
        return partial(ChromaServerIndex, url)


async def test_two_workers_see_what_the_other_puts_in_at_once(index, url):
    other = ChromaServerIndex(url)
    await index.upsert("one", ITEMS[:1])
    await other.upsert("one", ITEMS[1:])

    assert (
        sorted(await index.ids("one"))
        == sorted(await other.ids("one"))
        == sorted(item.id for item in ITEMS)
    )
    assert (await index.query("one", ITEMS[2].vector, k=1))[0].id == ITEMS[2].id
    await other.close()


async def test_a_collection_that_another_worker_made_anew_is_found_again(index, url):
    other = ChromaServerIndex(url)
    await index.upsert("one", ITEMS)
    await other.drop("one")
    await other.upsert("one", ITEMS[:1])

    assert await index.ids("one") == [ITEMS[0].id]
    await other.drop("one")
    assert await index.query("one", ITEMS[0].vector, k=3) == []
    await other.close()


async def test_a_collection_that_another_worker_dropped_is_made_anew_by_the_next_upsert(index, url):
    other = ChromaServerIndex(url)
    await index.upsert("one", ITEMS)
    await other.drop("one")

    await index.upsert("one", ITEMS[:2])

    assert sorted(await other.ids("one")) == sorted(item.id for item in ITEMS[:2])
    await other.close()


async def test_a_server_that_was_killed_is_unavailable_and_is_used_again_when_it_is_back(tmp_path):
    port = find_free_port()
    index = ChromaServerIndex(f"http://127.0.0.1:{port}")
    with pytest.raises(IndexUnavailableError, match="cannot answer now"):
        await index.ids("one")
    with serving(tmp_path, port):
        await index.upsert("one", ITEMS)
    with pytest.raises(IndexUnavailableError, match="cannot answer now"):
        await index.query("one", ITEMS[0].vector, k=1)
    with serving(tmp_path, port):
        assert len(await index.ids("one")) == 3
    await index.close()


async def test_calls_that_come_first_at_once_share_one_client_and_leave_other_programs_settings_alone(
    url,
):
    index, init = ChromaServerIndex(url), BaseSettings.__init__
    await asyncio.gather(*(index.ids("one") for _ in range(4)))

    assert BaseSettings.__init__ is init
    await index.close()


async def test_an_address_may_have_a_path():
    paths = []

    class Prefixed(BaseHTTPRequestHandler):
        def do_GET(self):
            paths.append(self.path)
            self.send_error(503)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Prefixed) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        index = ChromaServerIndex(f"http://127.0.0.1:{server.server_port}/chroma")
        with pytest.raises(IndexUnavailableError):
            await index.ids("one")
        await index.close()
        server.shutdown()
        thread.join()

    assert paths[0].startswith("/chroma/api/v2/")


async def test_a_server_that_says_nothing_is_waited_for_no_longer_than_the_deadline():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        index = ChromaServerIndex(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2)

        with pytest.raises(IndexUnavailableError) as raised:
            await index.ids("one")
        await index.close()

    assert raised.value.why == "no answer within 0.2 s"


def test_a_server_may_choose_another_kind_of_index_as_long_as_it_measures_by_cosine():
    def made(space):
        return SimpleNamespace(name="one", configuration_json={"hnsw": None, "spann": space})

    require_cosine(made({"space": "cosine"}))
    with pytest.raises(StoreUnusableError, match="uses l2 distances"):
        require_cosine(made({"space": "l2"}))


async def test_certificates_are_checked(index, url):
    await index.ids("one")

    context = index._client._server._session._transport._pool._ssl_context
    assert context.check_hostname and context.verify_mode is ssl.CERT_REQUIRED


async def test_every_error_of_chroma_is_one_of_ours():
    from chromadb.errors import error_types

    index = ChromaServerIndex("http://127.0.0.1:9")
    assert set(DAMAGE) < {error_type.__name__ for error_type in error_types.values()}
    for error_type in error_types.values():
        expected = StoreUnusableError if error_type.__name__ in DAMAGE else IndexUnavailableError
        with pytest.raises(expected), index._translating(1.0):
            raise error_type("why")
    with pytest.raises(IndexUnavailableError), index._translating(1.0):
        raise error_types["InternalError"]("database is locked")
