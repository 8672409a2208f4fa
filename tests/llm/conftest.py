import asyncio
from contextlib import asynccontextmanager

import pytest

from babyagi.llm.client import Endpoint
from support.connections import HERE, listening
from support.local_server import LocalServer, echo_answer


async def no_sleep(seconds):
    return None


@asynccontextmanager
async def handled_by(handle, *, path="/v1", **options):
    """Yield an endpoint at a server of which `handle`, a coroutine of a reader and a writer, answers
    each connection."""
    answering = []

    async def answer(reader, writer):
        task = asyncio.current_task()
        assert task is not None
        answering.append(task)
        await handle(reader, writer)

    fixed = {"timeout_s": 3600.0, "sleep": no_sleep, "random": lambda: 0.5}
    async with listening(answer) as port:
        endpoint = Endpoint(base_url=f"http://{HERE}:{port}{path}", **{**fixed, **options})
        try:
            yield endpoint
        finally:
            await endpoint.close()
            await asyncio.gather(*answering)


@pytest.fixture
async def server():
    async with LocalServer(echo_answer, slow_body_s=8.0) as server:
        yield server


@pytest.fixture
def waits():
    """The seconds that the endpoint waited, in order; nobody really waits."""
    return []


@pytest.fixture
async def endpoint(server, waits):
    async def sleep(seconds):
        waits.append(seconds)

    endpoint = Endpoint(
        base_url=server.base_url,
        api_key="sk-secret-of-the-test",
        timeout_s=20.0,
        sleep=sleep,
        random=lambda: 0.5,
    )
    yield endpoint
    await endpoint.close()


@pytest.fixture
async def hasty(server):
    """An endpoint that gives up after half a second, or after two where the server lives: by then
    an answer has begun, however busy the machine is."""
    endpoint = Endpoint(base_url=server.base_url, timeout_s=0.5, sleep=no_sleep, random=lambda: 0.5)
    yield endpoint
    await endpoint.close()
