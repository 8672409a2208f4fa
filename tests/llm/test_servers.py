"""The streams and refusals of the servers that people run, byte for byte as stand-ins send them.

What each of them does differently is taken from its public documentation; none of them runs here.
"""

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from babyagi.errors import (
    ContextTooLongError,
    ModelRejectedError,
    ModelUnavailableError,
    ToolsUnsupportedError,
)
from babyagi.llm.client import Account, OpenAIModel
from babyagi.tasks import Role
from tests.llm.conftest import handled_by
from tests.llm.test_client import EVERYTHING, PROMPT


def data(event):
    return f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n"


def chunk(delta, *, reason=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return data({"object": "chat.completion.chunk", "model": "m", "choices": [choice], **more})


USAGE = {"prompt_tokens": 30, "completion_tokens": 4, "total_tokens": 34}
DONE = data("[DONE]")
CALL = {"index": 0, "id": "call_1", "type": "function"}


@dataclass(frozen=True)
class Server:
    """How one of them streams an answer, calls a tool, and refuses."""

    answer: str
    call: str = ""
    refusals: dict[type[Exception], tuple[int, Any]] = field(
        default_factory=dict
    )  # an error by status and body


SERVERS = {
    # each piece says who speaks; a call comes whole; thoughts come apart
    "Ollama": Server(
        answer=chunk({"role": "assistant", "content": "", "reasoning": "Hm. "})
        + chunk({"role": "assistant", "content": "hello "})
        + chunk({"role": "assistant", "content": "there"})
        + chunk({"role": "assistant", "content": ""}, reason="stop")
        + data({"choices": [], "usage": USAGE})
        + DONE,
        call=chunk(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [CALL | {"function": {"name": "search", "arguments": '{"q":"x"}'}}],
            }
        )
        + chunk({"role": "assistant", "content": ""}, reason="tool_calls")
        + DONE,
        refusals={
            ToolsUnsupportedError: (
                400,
                {"error": {"message": "registry.ollama.ai/library/m does not support tools"}},
            ),
            ModelRejectedError: (404, {"error": {"message": 'model "m" not found'}}),
        },
    ),
    # the first piece has no text; the last one has the times
    "llama.cpp": Server(
        answer=chunk({"role": "assistant", "content": None})
        + chunk({"content": "hello "})
        + chunk({"content": "there"})
        + chunk({}, reason="stop", timings={"prompt_n": 30, "predicted_n": 4})
        + data({"choices": [], "usage": USAGE, "timings": {"prompt_n": 30}})
        + DONE,
        call=chunk({"role": "assistant", "content": None})
        + chunk({"tool_calls": [CALL | {"function": {"name": "search", "arguments": "{"}}]})
        + chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"q":'}}]})
        + chunk({"tool_calls": [{"index": 0, "function": {"arguments": '"x"}'}}]})
        + chunk({}, reason="tool_calls")
        + DONE,
        refusals={
            ToolsUnsupportedError: (
                500,
                {"error": {"code": 500, "message": "tools param requires --jinja flag"}},
            ),
            ContextTooLongError: (
                400,
                {"error": {"message": "the request exceeds the available context size"}},
            ),
            ModelUnavailableError: (503, {"error": {"message": "Loading model"}}),
        },
    ),
    # thoughts in a field of their own; an error is no `error`
    "vLLM": Server(
        answer=chunk({"role": "assistant", "content": "", "reasoning_content": None})
        + chunk({"reasoning_content": "Hm. "})
        + chunk({"content": "hello "}, usage=None)
        + chunk({"content": "there"}, usage=None)
        + chunk({"content": ""}, reason="stop", usage=None)
        + data({"choices": [], "usage": USAGE})
        + DONE,
        call=chunk({"role": "assistant", "content": ""})
        + chunk({"tool_calls": [CALL | {"function": {"name": "search"}}]})
        + chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"q": "x"}'}}]})
        + chunk({"content": ""}, reason="tool_calls")
        + DONE,
        refusals={
            ToolsUnsupportedError: (
                400,
                {
                    "object": "error",
                    "message": '"auto" tool choice requires --enable-auto-tool-choice',
                    "code": 400,
                },
            ),
            ContextTooLongError: (
                400,
                {"object": "error", "message": "maximum context length is 2048 tokens"},
            ),
        },
    ),
    # no usage in the stream; an error ends it as an event of its own
    "LM Studio": Server(
        answer=chunk({"role": "assistant", "content": "hello "})
        + chunk({"role": "assistant", "content": "there"})
        + chunk({}, reason="stop")
        + DONE,
        call=chunk({"tool_calls": [CALL | {"function": {"name": "search", "arguments": ""}}]})
        + chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"q":"x"}'}}]})
        + chunk({}, reason="tool_calls")
        + DONE,
    ),
    # the usage comes with a choice that says nothing
    "LiteLLM": Server(
        answer=chunk({"role": "assistant", "content": "hello "})
        + chunk({"content": "there"})
        + chunk({}, reason="stop")
        + chunk({}, usage=USAGE)
        + DONE,
        refusals={
            ModelRejectedError: (404, {"error": {"message": "model m not found", "code": "404"}}),
        },
    ),
    # comments while it waits; what comes last has the usage; an end without [DONE]
    "OpenRouter": Server(
        answer=": OPENROUTER PROCESSING\n\n" * 3
        + chunk({"role": "assistant", "content": ""}, provider="x")
        + chunk({"content": "hello "})
        + ": OPENROUTER PROCESSING\n\n"
        + chunk({"content": "there"})
        + chunk({"content": ""}, reason="stop", usage=USAGE),
        refusals={
            ModelRejectedError: (402, {"error": {"code": 402, "message": "Insufficient credits"}}),
        },
    ),
    # what was filtered comes first, without a choice
    "Azure": Server(
        answer=data({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]})
        + chunk({"role": "assistant", "content": "", "refusal": None})
        + chunk({"content": "hello "})
        + chunk({"content": "there"})
        + chunk({}, reason="stop")
        + data({"choices": [], "usage": USAGE})
        + DONE,
        refusals={
            ModelRejectedError: (
                404,
                {"error": {"code": "DeploymentNotFound", "message": "no such model deployment"}},
            ),
        },
    ),
}


@asynccontextmanager
async def standing_in(name, body, *, status=200):
    """A model at a server that answers every request so."""
    kind = "text/event-stream" if status == 200 else "application/json"

    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n\r\n".encode())
        for at in range(0, len(body), 50):  # as a network may cut it
            writer.write(body[at : at + 50].encode())
            await writer.drain()
        writer.close()

    version = "2024-10-21" if name == "Azure" else ""
    account = Account(key="k", azure_api_version=version)
    async with handled_by(handle, path="" if version else "/v1", api_key=account) as endpoint:
        yield OpenAIModel("m", endpoint)


@pytest.mark.parametrize("name", SERVERS)
async def test_its_stream_is_read_with_its_cost(name):
    heard: list[str] = []

    async with standing_in(name, SERVERS[name].answer) as model:
        completion = await model.complete(PROMPT, role=Role.EXECUTION, on_text=heard.append)
        reserved = model.reserve(PROMPT)

    assert completion.text == "hello there" and heard == ["hello ", "there"]
    says_its_cost = "usage" in SERVERS[name].answer
    assert completion.usage.tokens == (34 if says_its_cost else reserved.tokens)
    assert (completion.usage.unconfirmed_tokens == 0) is says_its_cost


@pytest.mark.parametrize("name", [name for name, server in SERVERS.items() if server.call])
async def test_its_call_of_a_tool_is_read(name):
    async with standing_in(name, SERVERS[name].call) as model:
        completion = await model.complete(
            EVERYTHING, role=Role.EXECUTION, on_text=lambda text: None
        )

    (call,) = completion.tool_calls
    assert (call.id, call.name, json.loads(call.arguments)) == ("call_1", "search", {"q": "x"})
    assert completion.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [(name, wanted) for name, server in SERVERS.items() for wanted in server.refusals],
)
async def test_its_refusal_is_understood(name, wanted):
    status, body = SERVERS[name].refusals[wanted]

    async with standing_in(name, json.dumps(body), status=status) as model:
        with pytest.raises(wanted) as caught:
            await model.complete(EVERYTHING, role=Role.EXECUTION, on_text=lambda text: None)

    assert type(caught.value) is wanted


@pytest.mark.parametrize(
    "ending",
    [
        chunk({}, reason="error", error={"code": 502, "message": "Provider disconnected"}),
        'event: error\ndata: {"error": {"message": "The model has crashed"}}\n\n',
        "event: error\ndata: the model has crashed\n\n",
    ],
    ids=["OpenRouter", "LM Studio", "bare"],
)
async def test_an_error_within_a_stream_is_an_outage_that_may_be_billed(ending):
    async with standing_in("x", chunk({"content": "hello "}) + ending) as model:
        with pytest.raises(ModelUnavailableError) as caught:
            await model.complete(PROMPT, role=Role.EXECUTION, on_text=lambda text: None)

    assert caught.value.may_be_billed and caught.value.why
