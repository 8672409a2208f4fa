import pytest

from babyagi.llm.client import Endpoint
from support.local_server import LocalServer, echo_answer


async def no_sleep(seconds):
    return None


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
    """An endpoint that gives up after half a second."""
    endpoint = Endpoint(base_url=server.base_url, timeout_s=0.5, sleep=no_sleep, random=lambda: 0.5)
    yield endpoint
    await endpoint.close()


@pytest.fixture
async def patient(server):
    """An endpoint that gives up after two seconds: by then an answer has begun, however busy the
    machine is."""
    endpoint = Endpoint(base_url=server.base_url, timeout_s=2.0, sleep=no_sleep, random=lambda: 0.5)
    yield endpoint
    await endpoint.close()
