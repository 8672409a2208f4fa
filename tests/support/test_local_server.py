"""The local server: its dialects, its counts, and each of its faults as the openai client meets
it."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import signal
import struct
import sys
from pathlib import Path

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion

from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, ToolSpec
from babyagi.llm.rehearsal import RehearsalModel
from babyagi.tasks import Role, Usage
from support.local_server import (
    FAULTS,
    Answer,
    LocalServer,
    applies_to,
    echo_answer,
    rehearsal_answer,
)

ROWS = json.loads(
    (Path(__file__).parents[1] / "data" / "llm_faults.json").read_text(encoding="utf-8")
)["table"]
CHAT, RESPONSES, EMBEDDINGS = "/v1/chat/completions", "/v1/responses", "/v1/embeddings"
READ_TIMEOUT_S = 0.4
PATIENCE_S = 1.0
SEARCH_SPEC = {"name": "search", "description": "", "parameters": {"type": "object"}}
SEARCH = {"type": "function", "function": SEARCH_SPEC}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "tasks", "schema": {"type": "object"}}}


@pytest.fixture
async def server():
    async with LocalServer(echo_answer, slow_body_s=3 * READ_TIMEOUT_S) as server:
        yield server


@pytest.fixture(autouse=True)
def platform(monkeypatch):
    """The client starts processes to find out on which machine it is."""
    monkeypatch.setattr("openai._base_client.get_platform", lambda: "Unknown")


@pytest.fixture
async def client(server):
    async with openai.AsyncOpenAI(
        api_key="key", base_url=server.base_url, max_retries=0, timeout=300
    ) as client:
        yield client


@pytest.fixture
async def http(server):
    async with httpx2.AsyncClient(
        base_url=server.base_url.removesuffix("/v1"), timeout=300
    ) as http:
        yield http


def asking(text="hi", *, model="m", system="", **more):
    head = [{"role": "system", "content": system}] if system else []
    return {"model": model, "messages": [*head, {"role": "user", "content": text}], **more}


# -- every fault, as the openai client sees it
# --------------------------------------------------------------------------------


def test_every_fault_of_the_table_is_known():
    assert {row["fault"] for row in ROWS} == set(FAULTS)
    assert all(FAULTS[row["fault"]].needs_stream == row["stream"] for row in ROWS)


DIFFERS = {
    # the table has no measurement
    "429-retry-100": "raise RateLimitError status=429 code=rate_limit_exceeded",
    "s-keepalive-forever": "never ends",  # the table's server gave up after 200 s
    "s-endless": "never ends",
}
TOO_SLOW = {"c-hang", "c-slow-body", "s-hang-after-first", "s-keepalive-forever"}
PREFIXES = {
    "ansi": "\x1b[2J\x1b]0;pwn\x07",
    "200-lone-surrogate": "\ud800 ",
    "think-block": "<think>secret chain</think>",
}


@pytest.mark.thorough
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["fault"])
async def test_the_client_meets_the_fault_as_it_was_measured(row, server, client):
    expected = DIFFERS.get(row["fault"]) or row["sdk_default"]["result"]
    server.answer = lambda request: Answer(
        text=true_text(row["fault"], expected), usage=Usage(prompt_tokens=7, completion_tokens=5)
    )
    client = client.with_options(timeout=READ_TIMEOUT_S) if row["fault"] in TOO_SLOW else client
    asked = asking(
        model=row["fault"], max_tokens=9, temperature=0.2, tools=[SEARCH], response_format=SCHEMA
    )

    try:
        async with asyncio.timeout(PATIENCE_S if expected == "never ends" else 300):
            seen = await (see_stream(client, asked) if row["stream"] else see_reply(client, asked))
    except TimeoutError:
        seen = "never ends"

    assert comparable(seen).startswith(comparable(expected)[:140])
    assert [record.fault for record in server.requests] == [row["fault"]]
    assert len(server.strayed) == (row["fault"] == "307-other-host")


def true_text(fault, expected):
    """The text that the model behind the fault must have meant for the client to see what is
    expected."""
    if fault == "content-parts":
        return "ab"
    found = re.search(r"(?:content|text)='([^']+)'", expected)
    text = found.group(1) if found else "ok"
    if fault in ("s-cut-clean", "s-http10-cut", "s-event-error"):
        return "hello"
    return re.sub(r".*(\\x07|\\ud800 |think>)", "", text) if fault in PREFIXES else text


def comparable(text):
    """The text without what the table's own driver wrote in its own way: quotes, chunk counts,
    positions."""
    text = re.sub(r"chunks=\d+|position \d+|column \d+ \(char \d+\)", "", text).replace('"', "'")
    text = re.sub(r"usage=2 (?=tools=None NO)", "usage=12 ", text)
    return text.replace("NoneType", "None")


async def see_reply(client, asked):
    try:
        reply = await client.chat.completions.create(**asked)
    except Exception as error:
        return describe(error)
    if not isinstance(reply, ChatCompletion):
        return (
            f"returned {type(reply).__name__}"
            + (f" {reply!r}" if isinstance(reply, str) else "")
            + " NO EXCEPTION"
        )
    choice = reply.choices[0] if reply.choices else None
    message = choice.message if choice else None
    calls = [
        (call.id, getattr(getattr(call, "function", None), "arguments", None))
        for call in (message and message.tool_calls) or ()
    ]
    content = message.content if message else None
    shown = content[:40] if isinstance(content, str) else content
    n_choices = None if reply.choices is None else len(reply.choices)
    finish, usage = choice and choice.finish_reason, reply.usage and reply.usage.total_tokens
    head = f"returned ChatCompletion choices={n_choices} content={shown!r} finish={finish!r}"
    return f"{head} usage={usage} tools={calls[:2] or None} NO EXCEPTION"


async def see_stream(client, asked):
    text = arguments = ""
    finish = None
    try:
        async for chunk in await client.chat.completions.create(**asked, stream=True):
            for choice in chunk.choices or ():  # an `event: error` becomes a chunk without any
                text += choice.delta.content or ""
                arguments += "".join(
                    call.function.arguments for call in choice.delta.tool_calls or ()
                )
                finish = choice.finish_reason or finish
    except Exception as error:
        return describe(error)
    return f"returned text={text!r} tools={arguments!r} finish={finish!r} chunks=0 NO EXCEPTION"


def describe(error):
    if isinstance(error, TimeoutError):
        raise error
    cause = type(error.__cause__).__name__ if error.__cause__ else None
    status, code = getattr(error, "status_code", None), getattr(error, "code", None)
    return f"raise {type(error).__name__} status={status} code={code} cause={cause} msg={error}"


# -- how a fault is chosen
# --------------------------------------------------------------------------------------------------


async def statuses(http, n, **asked):
    return [(await http.post(CHAT, json=asking(**asked))).status_code for _ in range(n)]


async def test_a_model_name_with_a_number_fails_that_many_requests(server, http):
    assert await statuses(http, 4, model="500@2") == [500, 500, 200, 200]
    server.reset()
    assert await statuses(http, 1, model="500@2") == [500]


async def test_faults_set_for_the_next_requests_come_in_the_order_they_were_set(server, http):
    server.fail_next("503-retry", n=2)
    server.fail_next("401")

    assert await statuses(http, 4) == [503, 503, 401, 200]


async def test_a_fault_for_one_agent_waits_for_that_agent(server, http):
    server.fail_next("500", agent="creation")

    assert await statuses(http, 1, system="Role: execution agent") == [200]
    assert await statuses(http, 2, system="You plan.\nRole: creation agent") == [500, 200]


async def test_a_predicate_chooses_the_requests_that_fail(server, http):
    server.fail_when(lambda record: record.n % 2 == 0, "500")

    assert await statuses(http, 4) == [200, 500, 200, 500]


async def test_a_fault_without_a_number_stays_until_reset(server, http):
    server.fail_next("500", n=None)

    assert await statuses(http, 3) == [500, 500, 500]
    server.reset()
    assert await statuses(http, 1) == [200]


async def test_a_rate_limit_names_the_wait_that_was_asked_for(http):
    reply = await http.post(CHAT, json=asking(model="429-retry-7"))

    assert (reply.status_code, reply.headers["retry-after"]) == (429, "7")


async def test_a_parameter_is_refused_only_while_it_is_sent(http):
    refused = await http.post(CHAT, json=asking(model="400-param:seed", seed=1))

    assert refused.json()["error"]["param"] == "seed"
    assert await statuses(http, 1, model="400-param:seed") == [200]
    assert await statuses(http, 1, model="400-temperature-unsupported", temperature=1) == [200]


async def test_a_fault_that_cannot_strike_is_refused_aloud_when_a_model_names_it_and_waits_otherwise(
    server, http
):
    named = await http.post(CHAT, json=asking(model="s-cut-clean"))
    embedding = await http.post(EMBEDDINGS, json={"model": "choices-empty", "input": "a"})
    server.fail_next("choices-empty")
    waited = await http.post(EMBEDDINGS, json={"model": "m", "input": "a"})

    assert "stream=true" in named.json()["error"]["message"]
    assert "does not apply to /v1/embeddings" in embedding.json()["error"]["message"]
    assert waited.status_code == 200
    assert (await http.post(CHAT, json=asking())).json()["choices"] == []


async def test_an_unknown_fault_is_refused(server):
    with pytest.raises(ValueError, match="no fault is called 'c-explode'"):
        server.fail_next("c-explode")


# -- the other two shapes
# --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("path", [CHAT, RESPONSES, EMBEDDINGS])
async def test_every_fault_that_applies_is_met_in_each_shape(path):
    body = {
        "temperature": 0.2,
        "tools": [{"type": "function", "function": SEARCH_SPEC, **SEARCH_SPEC}],
        "max_tokens": 9,
        "response_format": SCHEMA,
        "stream": True,
    }
    async with LocalServer(lambda request: Answer(text="hello"), slow_body_s=0.1) as server:
        for name in [
            name for name, fault in FAULTS.items() if applies_to(fault, path) and name != "200-50mb"
        ]:
            asked = asking(model=name, input="hi", **body)
            raw = await send_raw(server, path, asked, wait_s=0.2 if name in TOO_SLOW else 10)
            assert bool(raw) == (name not in ("c-reset", "c-close", "c-hang")), name

        met = {record.fault for record in server.requests}

    assert met == {name for name, fault in FAULTS.items() if applies_to(fault, path)} - {"200-50mb"}


async def send_raw(server, path, body, *, wait_s=5.0):
    """Send one request and return the bytes of what comes until the connection ends or `wait_s`
    passed in silence."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", int(server.base_url.split(":")[2].removesuffix("/v1"))
    )
    text = json.dumps(body).encode()
    writer.write(
        (
            f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: "
            f"{len(text)}\r\n\r\n"
        ).encode()
        + text
    )
    received = b""
    try:
        while len(received) < 2**16 and (
            piece := await asyncio.wait_for(reader.read(2**16), wait_s)
        ):
            received += piece
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.transport.abort()
    return received


async def test_the_responses_shape_has_its_own_faulty_bodies(server, http):
    async def reply(model):
        return (await http.post(RESPONSES, json={"model": model, "input": "hi"})).json()

    assert (await reply("choices-empty"))["output"] == []
    assert (await reply("finish-length"))["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (await reply("usage-negative"))["usage"]["input_tokens_details"]["cached_tokens"] == -10
    assert (await reply("tool-args-object"))["output"][-1]["arguments"] == {"q": "x"}
    assert (await reply("refusal"))["output"][0]["content"][0]["type"] == "refusal"


@pytest.mark.parametrize("stream", [False, True])
async def test_the_client_reads_a_text_in_the_responses_shape(client, server, stream):
    asked = {
        "model": "m",
        "instructions": "Role: report agent",
        "input": [{"role": "user", "content": "hello there"}],
    }

    if stream:
        parts = [event async for event in await client.responses.create(**asked, stream=True)]
        text, last = (
            "".join(part.delta for part in parts if part.type == "response.output_text.delta"),
            parts[-1].response,
        )
    else:
        last = await client.responses.create(**asked)
        text = last.output_text

    assert text == "hello there" == last.output_text
    assert (last.usage.input_tokens, last.usage.output_tokens) == (8, 3)
    assert server.calls_by_agent == {"report": 1}


@pytest.mark.parametrize("shape", ["float", "base64"])
async def test_near_texts_have_near_vectors_in_both_encodings(client, server, shape):
    texts = ["the battery of the phone", "this phone has a battery", "the invoice was paid in May"]

    reply = await client.embeddings.create(
        model="e", input=texts, dimensions=256, encoding_format=shape
    )
    one, near, far = [decoded(row.embedding) for row in reply.data]

    assert len(one) == 256
    assert math.isclose(cosine(one, one), 1.0, abs_tol=1e-6)
    assert cosine(one, near) > 0.5 > cosine(one, far)
    assert server.calls_by_agent == {"embedding": 1}
    assert (
        server.tokens_by_agent
        == {"embedding": reply.usage.total_tokens}
        == {"embedding": 6 + 6 + 7}
    )


def decoded(vector):
    return (
        list(struct.unpack(f"<{len(base64.b64decode(vector)) // 4}f", base64.b64decode(vector)))
        if isinstance(vector, str)
        else vector
    )


def cosine(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


# -- what is counted
# --------------------------------------------------------------------------------------------------


async def test_requests_are_kept_as_they_came_and_counted_by_agent(server, client):
    reply = await client.chat.completions.create(
        **asking("twelve bytes", system="role: Prioritization agent")
    )

    (record,) = server.requests
    assert (record.n, record.path, record.agent, record.body["model"]) == (
        1,
        CHAT,
        "prioritization",
        "m",
    )
    assert record.headers["authorization"] == "Bearer key"
    assert (
        (record.prompt_tokens, record.completion_tokens)
        == (reply.usage.prompt_tokens, reply.usage.completion_tokens)
        == (10, 3)
    )
    assert server.tokens_by_agent == {"prioritization": 13}
    assert server.answered == [record.digest]


@pytest.mark.parametrize(
    ("fault", "is_billed"),
    [("500", False), ("c-close", False), ("c-truncated", True), ("usage-negative", True)],
)
async def test_the_work_of_the_model_is_billed_and_not_the_received_part(server, fault, is_billed):
    await send_raw(server, CHAT, asking(model=fault), wait_s=1)

    assert (sum(server.tokens_by_agent.values()) > 0) == is_billed
    assert server.answered == ([server.requests[0].digest] if fault == "usage-negative" else [])


async def test_an_answer_that_nobody_waits_for_is_billed_and_not_answered(server, http):
    server.latency_s = 0.2

    with pytest.raises(httpx2.ReadTimeout):
        await http.post(CHAT, json=asking(), timeout=httpx2.Timeout(300, read=0.05))
    async with asyncio.timeout(120):
        while not server.tokens_by_agent["unknown"]:
            await asyncio.sleep(0.01)
    await asyncio.sleep(2 * server.latency_s)

    assert sum(server.tokens_by_agent.values()) == 2
    assert server.answered == []


async def test_an_equal_request_has_an_equal_digest(server, http):
    await statuses(http, 2)
    await statuses(http, 1, text="other")

    digests = [record.digest for record in server.requests]
    assert digests[0] == digests[1] != digests[2]


async def test_latency_is_that_of_the_whole_answer_and_calls_overlap(server, http):
    server.latency_s = 0.2
    started, together = asyncio.get_running_loop().time(), asyncio.Barrier(5)

    async def answer(request):
        await together.wait()
        return Answer(text="said")

    server.answer = answer
    async with asyncio.timeout(120):
        await asyncio.gather(*(http.post(CHAT, json=asking()) for _ in range(5)))

    assert asyncio.get_running_loop().time() - started >= 0.2


# -- the connection
# --------------------------------------------------------------------------------------------------


async def test_closing_ends_what_hangs_and_leaves_no_task():
    async with LocalServer(echo_answer) as server:
        waiting = asyncio.ensure_future(send_raw(server, CHAT, asking(model="c-hang")))
        while not server.requests:
            await asyncio.sleep(0.01)

    assert await asyncio.wait_for(waiting, 300) == b""
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_connection_is_kept_alive_and_reads_chunked_requests(server):
    port = int(server.base_url.split(":")[2].removesuffix("/v1"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(asking()).encode()

    for _ in range(2):
        writer.write(
            f"POST {CHAT} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{len(body):x}\r\n".encode()
            + body
            + b"\r\n0\r\n\r\n"
        )
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
    writer.close()
    await writer.wait_closed()

    assert len(server.answered) == 2


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"rubbish\r\n\r\n", b"400"),
        (b"POST /v1/embeddings HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n", b"413"),
        (b"POST /v1/embeddings HTTP/1.1\r\ncontent-length: 2\r\n\r\n[]", b"400"),
        (b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", b"400"),
        (b"GET /v1/nothing HTTP/1.1\r\n\r\n", b"404"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", b"431"),
    ],
)
async def test_a_request_that_is_none_is_refused(server, sent, status):
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", int(server.base_url.split(":")[2].removesuffix("/v1"))
    )
    writer.write(sent)
    head = await reader.readline()
    writer.transport.abort()

    assert head.split(b" ")[1] == status
    assert server.requests == []


async def test_an_error_of_the_answer_is_a_500_and_is_raised_at_the_end():
    def fail(request):
        raise LookupError("no script for this")

    with pytest.raises(LookupError, match="no script"):
        async with LocalServer(fail) as server:
            assert (await send_raw(server, CHAT, asking())).startswith(b"HTTP/1.1 500 ")


# -- the rehearsal behind it, and the process
# ---------------------------------------------------------------------------------


async def test_the_rehearsal_model_answers_as_it_does_in_process(server, client):
    server.answer = rehearsal_answer
    system = "You work.\nRole: execution agent"
    tool = ToolSpec(name="list_files", description="", parameters={"type": "object"})
    messages = (
        Message(speaker=Speaker.SYSTEM, text=system),
        Message(speaker=Speaker.USER, text="List the documents."),
    )
    expected = await RehearsalModel().complete(
        Prompt(messages=messages, tools=(tool,)), role=Role.EXECUTION
    )
    offered = {"name": tool.name, "description": "", "parameters": {"type": "object"}}

    chat = await client.chat.completions.create(
        **asking(
            "List the documents.", system=system, tools=[{"type": "function", "function": offered}]
        )
    )
    responses = await client.responses.create(
        model="m",
        instructions=system,
        input="List the documents.",
        tools=[{"type": "function", "strict": False, **offered}],
    )

    call, item = chat.choices[0].message.tool_calls[0], responses.output[0]
    (wanted,) = expected.tool_calls
    assert (
        ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments) == wanted
    )
    assert ToolCall(id=item.call_id, name=item.name, arguments=item.arguments) == wanted


async def test_a_tool_s_answer_reaches_the_model_in_both_shapes(server, client):
    seen = []

    def listen(request):
        seen.append(request.messages)
        return Answer(text="done")

    server.answer = listen
    made = ToolCall(id="c1", name="search", arguments="{}")

    asked = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
        ],
    }
    told = {"role": "tool", "tool_call_id": "c1", "content": "found"}
    await client.chat.completions.create(model="m", messages=[asked, told])
    item = {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"}
    await client.responses.create(
        model="m",
        input=[item, {"type": "function_call_output", "call_id": "c1", "output": "found"}],
    )

    call = Message(speaker=Speaker.ASSISTANT, text="", tool_calls=(made,))
    assert seen == [(call, Message(speaker=Speaker.TOOL, text="found", tool_call_id="c1"))] * 2


@pytest.mark.system
async def test_as_a_process_it_prints_its_url_takes_faults_and_ends_on_sigterm():
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "support.local_server",
        "--model-behind",
        "echo",
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        base_url = (await asyncio.wait_for(process.stdout.readline(), 300)).decode().strip()
        async with httpx2.AsyncClient(base_url=base_url.removesuffix("/v1")) as http:
            assert (await http.get("/health")).json() == {"status": "ok"}
            assert "500" in [row["id"] for row in (await http.get("/v1/models")).json()["data"]]
            assert (await http.post("/_faults", json={"fault": "nonsense"})).status_code == 400
            await http.post("/_faults", json=[{"fault": "500", "n": 1, "agent": "unknown"}])
            assert await statuses(http, 2) == [500, 200]
            stats = (await http.get("/_stats")).json()
            assert (stats["calls_by_agent"], stats["tokens_by_agent"], stats["faults"]) == (
                {"unknown": 2},
                {"unknown": 2},
                {"500": 1},
            )
            await http.post("/_reset")
            assert (await http.get("/_stats")).json()["requests"] == 0
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 300) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
