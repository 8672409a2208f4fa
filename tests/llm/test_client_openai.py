"""The `openai` package beneath an endpoint: told everything, acting on nothing unseen."""

import json
import subprocess
import sys
from typing import Any

import httpx2
import openai
import pytest

from babyagi.errors import (
    BabyagiError,
    CredentialsError,
    EndlessAnswerError,
    ModelRejectedError,
    ModelUnavailableError,
    OverdueError,
)
from babyagi.llm.client import Account, Endpoint, OpenAIModel
from babyagi.tasks import Role
from tests.llm.conftest import handled_by, no_sleep
from tests.llm.test_client import DIALECTS, PROMPT, ask

HOSTILE = {
    "OPENAI_API_KEY": "sk-of-another",
    "OPENAI_ADMIN_KEY": "sk-admin-of-another",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_ORG_ID": "org-of-another",
    "OPENAI_PROJECT_ID": "project-of-another",
    "OPENAI_WEBHOOK_SECRET": "secret-of-another",
    "OPENAI_CUSTOM_HEADERS": "Authorization: Bearer stolen\nX-Of-Another: yes\nUser-Agent: other",
    "OPENAI_API_VERSION": "2020-01-01",
    "OPENAI_API_TYPE": "azure",
    "OPENAI_LOG": "debug",
    "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9",
    "AZURE_OPENAI_API_KEY": "azure-of-another",
    "AZURE_OPENAI_AD_TOKEN": "token-of-another",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "ALL_PROXY": "http://127.0.0.1:9",
}
SENT = set(
    "accept accept-encoding authorization connection content-length content-type host user-agent".split()
)


def open_endpoint(server, **options):
    return Endpoint(
        **{"base_url": server.base_url, "sleep": no_sleep, "random": lambda: 0.5, **options}
    )


@pytest.fixture
def hostile(monkeypatch):
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_variable_of_the_environment_acts_on_a_call(server, hostile, dialect):
    endpoint = open_endpoint(server, api_key="sk-mine")

    await ask(endpoint, dialect=dialect)
    await endpoint.close()

    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer sk-mine"
    assert request.headers["user-agent"] == "babyagi"
    assert set(request.headers) == SENT
    assert "another" not in json.dumps([dict(request.headers), request.body])


async def test_without_a_key_none_is_taken_from_the_environment(server, hostile):
    endpoint = open_endpoint(server)

    await ask(endpoint)
    await endpoint.close()

    assert server.requests[0].headers["authorization"] == "Bearer none"


@pytest.mark.system
def test_a_variable_that_turns_the_log_of_openai_on_changes_no_log_of_this_process():
    program = (
        "import logging; from babyagi.runtime.heavy_imports import import_openai; import_openai();"
        "print(logging.getLogger().handlers, logging.getLogger('openai').level)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={"OPENAI_LOG": "debug"},
    )

    assert found.stdout.strip() == "[] 0"


async def test_an_organisation_is_named_where_there_is_one(server):
    endpoint = open_endpoint(server, api_key=Account(key="sk-mine", organization="org-mine"))

    await ask(endpoint)
    await endpoint.close()

    assert server.requests[0].headers["openai-organization"] == "org-mine"


ANSWER = {"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}], "model": "m"}


async def test_azure_is_asked_at_the_deployment_with_its_version_and_its_own_header(hostile):
    seen: list[Any] = []

    async def handle(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        named = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        await reader.readexactly(int(named["content-length"]))
        seen.append((head[0], named))
        reply = json.dumps(ANSWER).encode()
        writer.write(f"HTTP/1.1 200 X\r\ncontent-length: {len(reply)}\r\n\r\n".encode() + reply)
        writer.close()

    account = Account(key="azure-key", azure_api_version="2024-10-21")
    async with handled_by(handle, path="", api_key=account) as endpoint:
        model = OpenAIModel("my-deployment", endpoint)
        completion = await model.complete(PROMPT, role=Role.EXECUTION)

    ((line, headers),) = seen
    path = "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"
    assert line == f"POST {path} HTTP/1.1"
    assert headers["api-key"] == "azure-key" and "authorization" not in headers
    assert completion.text == "hello"


@pytest.mark.system
def test_importing_and_the_models_that_ask_nobody_load_no_openai():
    program = (
        "import asyncio, sys, babyagi, babyagi.app.application, babyagi.cli.root;"
        "from babyagi.llm.rehearsal import RehearsalModel;"
        "from babyagi.llm.prompt import Prompt, Message, Speaker;"
        "from babyagi.tasks import Role;"
        "prompt = Prompt(messages=(Message(speaker=Speaker.USER, text='hello'),));"
        "asyncio.run(RehearsalModel().complete(prompt, role=Role.EXECUTION));"
        "from babyagi.llm.client import Endpoint;"
        "Endpoint(sleep=asyncio.sleep, random=lambda: 0.5);"
        "print(sorted({'openai', 'httpx', 'httpx2', 'pydantic'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True
    )

    assert found.stdout.strip() == "[]"


# -- a client that a program hands in
# --------------------------------------------------------------------------------------------------


@pytest.fixture
async def client(server):
    """A client of a program, which would follow redirects and ask again by itself."""
    http = httpx2.AsyncClient(follow_redirects=True, headers={"x-of-mine": "yes"})
    async with openai.AsyncOpenAI(
        base_url=server.base_url, api_key="sk-mine", max_retries=5, http_client=http
    ) as client:
        yield client


def over(client, **options):
    return Endpoint.over(client, **{"sleep": no_sleep, "random": lambda: 0.5, **options})


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_client_that_is_handed_in_is_asked_with_its_own_key_and_http_client(
    server, client, dialect
):
    endpoint = over(client)

    completion = await ask(endpoint, dialect=dialect)
    await endpoint.close()

    assert completion.text == "hello there"
    headers = server.requests[0].headers
    assert (headers["x-of-mine"], headers["authorization"]) == ("yes", "Bearer sk-mine")
    assert not client.is_closed() and client.max_retries == 5


@pytest.mark.parametrize(
    ("fault", "wanted", "n_requests"),
    [
        ("401", CredentialsError, 1),
        ("500", ModelUnavailableError, 4),
        ("408", ModelUnavailableError, 1),
        ("307-other-host", ModelRejectedError, 1),
        ("c-reset", ModelUnavailableError, 1),
        ("c-hang", OverdueError, 1),
        ("200-50mb", EndlessAnswerError, 1),
        ("200-gzip-garbage", ModelUnavailableError, 1),
    ],
)
async def test_a_client_that_is_handed_in_is_bounded_from_outside(
    server, client, fault, wanted, n_requests
):
    server.fail_next(fault, n=None)

    with pytest.raises(BabyagiError) as caught:
        await ask(over(client, timeout_s=1.0 if fault == "c-hang" else 20.0))

    assert type(caught.value) is wanted
    assert len(server.requests) == n_requests and server.strayed == []


async def test_a_client_on_the_older_httpx_is_read_alike(server):
    httpx = pytest.importorskip("httpx")
    async with openai.AsyncOpenAI(
        base_url=server.base_url, api_key="sk-mine", http_client=httpx.AsyncClient()
    ) as client:
        assert (await ask(over(client))).text == "hello there"
        server.fail_next("c-close")
        with pytest.raises(ModelUnavailableError) as caught:
            await ask(over(client))

    assert caught.value.may_be_billed


async def test_a_key_that_is_renewed_is_asked_for_before_each_call(server):
    keys = iter(["first", "second"])

    async def renew():
        return next(keys)

    async with openai.AsyncOpenAI(base_url=server.base_url, api_key=renew) as client:
        endpoint = over(client)
        await ask(endpoint)
        await ask(endpoint)

    sent = [record.headers["authorization"] for record in server.requests]
    assert sent == ["Bearer first", "Bearer second"]


async def test_a_client_whose_event_loop_has_ended_is_refused_with_what_to_do():
    async def fail(request):
        raise RuntimeError("Event loop is closed")

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(fail))
    async with openai.AsyncOpenAI(api_key="sk-mine", http_client=http) as client:
        with pytest.raises(ModelRejectedError) as caught:
            await ask(over(client))

    assert "run_async" in caught.value.fix
