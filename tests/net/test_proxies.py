"""Every client obeys the proxies that it is given and none of the environment: a proxy of ours
counts who comes."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import httpx2
import pytest

from babyagi.errors import BabyagiError
from babyagi.index.vendors.chroma import ChromaServerIndex
from babyagi.index.vendors.pinecone import PineconeIndex
from babyagi.index.vendors.weaviate import WeaviateIndex
from babyagi.llm.client import Endpoint
from babyagi.net.addresses import Proxies
from babyagi.net.door import Request, ask_json
from babyagi.worker.notify import UndeliveredError, make_sender
from support.connections import HERE, listening

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
TIMEOUT_S = 60.0  # a busy machine needs long to load the libraries
NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "GRPC_PROXY")


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Give each index time to load its library."""
    for store in ("chroma", "pinecone", "weaviate"):
        monkeypatch.setattr(f"babyagi.index.vendors.{store}.PING_TIMEOUT_S", TIMEOUT_S)


async def ask_model(base, proxies):
    endpoint = Endpoint(
        base_url=base, timeout_s=TIMEOUT_S, proxies=proxies, sleep=asyncio.sleep, random=lambda: 0.0
    )
    try:
        await endpoint.post("/chat/completions", {}, model="m", parse=lambda found: found)
    finally:
        await endpoint.close()


async def search(base, proxies):
    request = Request(url=f"{base}/search.json", params={"q": "tea"})
    await ask_json(request, timeout_s=TIMEOUT_S, proxies=proxies)


async def notify(base, proxies):
    async with asyncio.timeout(TIMEOUT_S):
        send = make_sender(
            f"{base}/hook", environ={}, key="", now=lambda: datetime.now(UTC), proxies=proxies
        )
        await send(json.dumps({}))


async def ping(index):
    try:
        await index.ping()
    finally:
        await index.close()


async def ask_chroma(base, proxies):
    await ping(ChromaServerIndex(base, proxies=proxies))


async def ask_pinecone(base, proxies):
    await ping(PineconeIndex("k", cloud="aws", region="us-east-1", host=base, proxies=proxies))


async def ask_weaviate(base, proxies):
    await ping(WeaviateIndex(base, grpc_port=9, proxies=proxies))


CLIENTS = [ask_model, search, notify, ask_chroma, ask_pinecone, ask_weaviate]


@asynccontextmanager
async def refusing():
    """The first line of each request that comes to a port of this machine; none is answered
    well."""
    lines: list[str] = []

    async def handle(reader, writer):
        lines.append((await reader.readline()).decode("latin-1").strip())
        writer.write(b"HTTP/1.1 503 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        with suppress(ConnectionError):
            await writer.drain()

    async with listening(handle) as port:
        yield f"http://{HERE}:{port}", lines


async def attempt(client, base, proxies):
    with suppress(BabyagiError, TimeoutError, UndeliveredError, httpx2.HTTPError):
        await client(base, proxies)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.__name__)
async def test_this_machine_is_reached_directly_whatever_names_a_proxy(client, monkeypatch):
    async with refusing() as (proxy, at_proxy), refusing() as (base, at_server):
        for name in NAMES:
            monkeypatch.setenv(name, proxy)
            monkeypatch.setenv(name.lower(), proxy)
        await attempt(client, base, Proxies(http=proxy, https=proxy))

        assert at_proxy == []
        assert at_server


@pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.__name__)
async def test_another_machine_is_reached_through_the_proxy_that_is_named_for_it(client):
    async with refusing() as (proxy, at_proxy):
        await attempt(client, "http://db.invalid:8123", Proxies(http=proxy))

        assert at_proxy and all("db.invalid" in line for line in at_proxy)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda one: one.__name__)
async def test_another_machine_is_not_reached_through_a_proxy_of_the_environment_alone(
    client, monkeypatch
):
    async with refusing() as (proxy, at_proxy):
        for name in NAMES:
            monkeypatch.setenv(name, proxy)
        await attempt(client, "http://db.invalid:8123", None)

        assert at_proxy == []
