"""An agent that asks through a client of the `openai` package, and tells what is written."""

import openai
import pytest

import babyagi
from babyagi.agent import Agent
from babyagi.errors import LimitReachedError, ModelRejectedError, ModelUnavailableError
from support.local_server import Answer, LocalServer


@pytest.fixture
async def server():
    async with LocalServer(lambda request: Answer(text="two teas cost 10")) as server:
        yield server


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def open_client(server, **options):
    return openai.AsyncOpenAI(
        **{"base_url": server.base_url, "api_key": "sk-mine", "max_retries": 3, **options}
    )


async def test_a_client_is_a_model_with_a_name(server):
    async with open_client(server, default_headers={"x-team": "tea"}) as client:
        agent = Agent(client, llm_model="some-model", openai_api_key="sk-of-settings")
        first = await agent.run_async("What do two teas cost?")
        second = await agent.run_async("And now?")

    assert (first.output, second.output) == ("two teas cost 10", "two teas cost 10")
    for request in server.requests:
        assert request.body["model"] == "some-model"
        assert (request.headers["x-team"], request.headers["authorization"]) == (
            "tea",
            "Bearer sk-mine",
        )


async def test_a_client_neither_retries_by_itself_nor_passes_the_limits(server):
    server.fail_next("408", n=None)
    async with open_client(server) as client:
        with pytest.raises(ModelUnavailableError):
            await Agent(client, llm_model="some-model").run_async("What?")
        n_requests = len(server.requests)
        server.reset()
        with pytest.raises(LimitReachedError):
            await Agent(client, llm_model="some-model", max_tokens=5).run_async("What?")

    assert n_requests == 1 and server.requests == []


async def test_a_client_that_cannot_be_awaited_is_refused():
    with openai.OpenAI(api_key="sk-x") as client, pytest.raises(TypeError, match="AsyncOpenAI"):
        Agent(client)  # type: ignore[call-overload]  # which is what the test is about


async def test_a_run_says_where_a_client_goes(server):
    async with open_client(server) as client:
        with pytest.raises(TypeError, match="Agent"):
            await babyagi.run_async("What?", model=client)


async def test_an_answer_is_shown_as_it_is_written(server):
    told: list[str] = []

    async with open_client(server) as client:
        run = await Agent(client, llm_model="some-model").run_async("What?", on_text=told.append)

    assert len(told) > 1 and "".join(told) == run.output
    assert server.requests[0].body["stream"] is True


async def test_without_anybody_who_listens_an_answer_is_requested_whole(server):
    async with open_client(server) as client:
        await Agent(client, llm_model="some-model").run_async("What?")

    assert [request.body.get("stream", False) for request in server.requests] == [False]


async def test_a_client_that_is_closed_is_named_with_what_to_do(server):
    client = open_client(server)
    await client.close()

    with pytest.raises(ModelRejectedError, match="client that was passed in") as caught:
        await Agent(client, llm_model="some-model").run_async("What?")

    assert "pass an open client" in caught.value.fix and server.requests == []
