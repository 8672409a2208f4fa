"""Both dialects against a real server, fault by fault."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from babyagi.errors import (
    BabyagiError,
    ContextTooLongError,
    CredentialsError,
    EndlessAnswerError,
    ModelRejectedError,
    ModelUnavailableError,
    OverdueError,
    RequestRefusedError,
    ToolsUnsupportedError,
)
from babyagi.llm.client import Endpoint, OpenAIModel
from babyagi.llm.prices import Price
from babyagi.llm.prompt import Message, Prompt, Speaker, ToolCall, ToolSpec, bound_tokens
from babyagi.tasks import Role
from support.local_server import FAULTS, Answer, LocalServer, applies_to, echo_answer, fault_named
from tests.llm.conftest import no_sleep
from tests.llm.encrypted import serving

TABLE = json.loads((Path(__file__).parent.parent / "data" / "llm_faults.json").read_text())["table"]
ROWS = [row for row in TABLE if not row["stream"]]
DIALECTS = ("chat", "responses")
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}

SEARCH = ToolSpec(
    name="search",
    description="Search.",
    parameters={"type": "object", "properties": {"q": {"type": "string"}}},
)
SCHEMA = {
    "type": "object",
    "properties": {"tasks": {"type": "array"}},
    "required": ["tasks"],
    "additionalProperties": False,
}
PROMPT = Prompt(
    messages=(
        Message(speaker=Speaker.SYSTEM, text="Role: execution agent"),
        Message(speaker=Speaker.USER, text="hello there"),
    ),
    max_output_tokens=500,
)
EVERYTHING = Prompt(
    messages=PROMPT.messages,
    tools=(SEARCH,),
    schema_name="tasks",
    schema=SCHEMA,
    max_output_tokens=500,
)

# What the table leaves to the caller, or what has a meaning of its own.
STOPS = {"401": CredentialsError}
RETURNED = ("ACCEPT", "REASK", "MORE")
BILLED = {"c-hang", "c-slow-body", "c-reset", "c-close", "c-truncated", "200-50mb", "408", "504"}


async def ask(endpoint, prompt=PROMPT, **kwargs):
    return await OpenAIModel("some-model", endpoint, **kwargs).complete(prompt, role=Role.EXECUTION)


def rows(*actions, without=()):
    return [
        pytest.param(dialect, row, id=f"{dialect}-{row['fault']}")
        for row in ROWS
        for dialect in DIALECTS
        if row["right"] in actions
        and row["fault"] not in without
        and (fault := fault_named(row["fault"]))
        and applies_to(fault, PATHS[dialect])
    ]


def test_the_table_and_the_server_know_the_same_faults():
    assert {row["fault"] for row in TABLE} <= set(FAULTS) | {
        row["fault"] for row in TABLE if fault_named(row["fault"])
    }
    assert len(ROWS) > 60


@pytest.mark.parametrize(("dialect", "row"), rows(*RETURNED))
async def test_what_is_an_answer_is_returned_after_one_request(server, endpoint, dialect, row):
    server.fail_next(row["fault"])

    completion = await ask(endpoint, EVERYTHING, dialect=dialect)

    assert len(server.requests) == 1
    assert completion.usage.calls == 1 and completion.usage.prompt_tokens > 0
    assert not any(ord(c) < 32 or 0xD800 <= ord(c) < 0xE000 for c in completion.text)


@pytest.mark.parametrize(("dialect", "row"), rows("RETRY", "BREAKER"))
async def test_an_outage_ends_as_unavailable_within_its_bound_of_requests(
    server, hasty, endpoint, waits, dialect, row
):
    server.fail_next(row["fault"], n=None)

    with pytest.raises(ModelUnavailableError) as caught:
        await ask(hasty if row["fault"] == "c-hang" else endpoint, dialect=dialect)

    assert len(server.requests) <= row["max_requests"]
    assert (len(server.requests) == 1) is (caught.value.may_be_billed or row["max_requests"] == 1)
    assert sum(waits) <= 5.0
    assert caught.value.may_be_billed or row["fault"] not in BILLED


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "fault", ["429-plain", "429-retry-1", "500", "503-retry", "200-error-body"]
)
async def test_a_short_outage_is_waited_out(server, endpoint, waits, dialect, fault):
    server.fail_next(fault, n=2)

    completion = await ask(endpoint, dialect=dialect)

    assert completion.text == "hello there"
    assert len(waits) == 2 and len(server.requests) == 3
    assert all(wait >= (1 if "-retry" in fault else 0) for wait in waits)


async def test_a_long_wait_is_handed_to_the_caller(server, endpoint, waits):
    server.fail_next("429-retry-300")

    with pytest.raises(ModelUnavailableError) as caught:
        await ask(endpoint)

    assert caught.value.retry_after_s == 300 and waits == [] and len(server.requests) == 1


async def test_a_date_to_retry_after_is_a_floor(server, endpoint, waits):
    server.fail_next("429-retry-date")

    await ask(endpoint)

    assert 0.5 < waits[0] <= 3


@pytest.mark.parametrize(("dialect", "row"), rows("STOP"))
async def test_an_error_that_a_person_must_mend_takes_one_request_and_says_what_to_do(
    server, endpoint, dialect, row
):
    server.fail_next(row["fault"], n=None)

    with pytest.raises(STOPS.get(row["fault"], ModelRejectedError)) as caught:
        await ask(endpoint, dialect=dialect)

    assert len(server.requests) == 1 and server.strayed == []
    assert caught.value.what and caught.value.fix
    assert "sk-" not in caught.value.why.replace("sk-…", "")


@pytest.mark.parametrize(("dialect", "row"), rows("SHRINK"))
async def test_a_prompt_that_does_not_fit_is_told_apart(server, endpoint, dialect, row):
    server.fail_next(row["fault"], n=None)

    with pytest.raises(ContextTooLongError):
        await ask(endpoint, dialect=dialect)

    assert len(server.requests) == 1


@pytest.mark.parametrize(("dialect", "row"), rows("FAILTASK", without=["finish-filter"]))
async def test_a_request_that_can_never_work_is_sent_once(server, endpoint, dialect, row):
    server.fail_next(row["fault"], n=None)

    with pytest.raises(RequestRefusedError):
        await ask(endpoint, dialect=dialect)

    assert len(server.requests) == 1


@pytest.mark.parametrize(("dialect", "row"), rows("DEGRADE", without=["400-tools-ollama"]))
async def test_a_refused_parameter_is_left_out_once_and_remembered(server, endpoint, dialect, row):
    server.fail_next(row["fault"], n=None)
    model = OpenAIModel("some-model", endpoint, dialect=dialect, temperature=0.2)

    first = await model.complete(EVERYTHING, role=Role.EXECUTION)
    n_first = len(server.requests)
    await model.complete(EVERYTHING, role=Role.EXECUTION)

    assert first.text == "hello there" and n_first == 2 and len(server.requests) == 3
    limits = {"max_tokens", "max_completion_tokens", "max_output_tokens"} & set(
        server.requests[-1].body
    )
    assert len(limits) == 1  # a reply without a limit is never asked for


async def test_a_server_that_takes_no_limit_of_the_output_is_not_asked_without_one(
    server, endpoint
):
    server.fail_next("400-param:max_tokens", n=None)
    server.fail_next("400-param:max_completion_tokens", n=None)

    with pytest.raises(RequestRefusedError):
        await ask(endpoint)

    assert len(server.requests) == 2


async def test_words_to_stop_at_are_named_and_left_out_for_good_where_they_are_refused(
    server, endpoint
):
    question = replace(EVERYTHING, stop=("\nObservation:", "\n\tObservation:"))
    await OpenAIModel("some-model", endpoint, dialect="chat").complete(
        question, role=Role.EXECUTION
    )
    server.fail_next("400-param:stop", n=None)
    model = OpenAIModel("some-model", endpoint, dialect="chat")

    await model.complete(question, role=Role.EXECUTION)
    await model.complete(question, role=Role.EXECUTION)

    sent = [record.body.get("stop") for record in server.requests]
    assert sent == [
        ["\nObservation:", "\n\tObservation:"],
        ["\nObservation:", "\n\tObservation:"],
        None,
        None,
    ]


async def test_a_server_that_holds_no_schema_is_asked_for_json_then_for_nothing(server, endpoint):
    server.fail_next("400-param:response_format", n=None)

    completion = await ask(endpoint, EVERYTHING)

    kinds = [(record.body.get("response_format") or {}).get("type") for record in server.requests]
    assert kinds == ["json_schema", "json_object", None]
    assert completion.text == "hello there"


async def test_tools_that_a_model_does_not_take_are_offered_once_and_it_answers_without_them(
    server, endpoint
):
    server.fail_next("400-tools-ollama", n=None)
    model = OpenAIModel("some-model", endpoint, dialect="chat")

    for _ in range(3):
        with pytest.raises(
            ToolsUnsupportedError, match=r"some-model .* does not support tools"
        ) as caught:
            await model.complete(EVERYTHING, role=Role.EXECUTION)
        assert caught.value.fix and not caught.value.may_be_billed

    assert len(server.requests) == 1
    assert (await model.complete(PROMPT, role=Role.EXECUTION)).text == "hello there"


WITHOUT_END: dict[str, tuple[type[BabyagiError], str]] = {
    "200-50mb": (EndlessAnswerError, "was longer than"),
    "c-slow-body": (OverdueError, r"did not complete its answer in 2 s"),
    "c-hang": (OverdueError, r"gave no answer in 2 s"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", WITHOUT_END)
async def test_nothing_takes_more_than_its_memory_or_its_time(
    server, hasty, endpoint, dialect, fault
):
    server.fail_next(fault)

    kind, what = WITHOUT_END[fault]
    with pytest.raises(kind, match=what) as caught:
        await ask(endpoint if fault == "200-50mb" else hasty, dialect=dialect)

    assert not isinstance(caught.value, OverdueError) or caught.value.has_begun == (
        fault == "c-slow-body"
    )
    assert caught.value.may_be_billed and len(server.requests) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_conversation_with_tools_reaches_the_server_whole(server, endpoint, dialect):
    seen = []

    def answer(request):
        seen.append(request)
        return Answer(text="done")

    server.answer = answer
    conversation = Prompt(
        messages=(
            *PROMPT.messages,
            Message(
                speaker=Speaker.ASSISTANT,
                text="",
                tool_calls=(ToolCall(id="c1", name="search", arguments='{"q": "x"}'),),
            ),
            Message(speaker=Speaker.TOOL, text="found \ud800", tool_call_id="c1"),
        ),
        tools=(SEARCH,),
        schema_name="tasks",
        schema=SCHEMA,
        max_output_tokens=77,
    )

    completion = await ask(endpoint, conversation, dialect=dialect, temperature=0.5)

    request = seen[0]
    assert (
        completion.text == "done"
        and completion.model == "some-model"
        and completion.finish_reason == "stop"
    )
    assert [message.speaker for message in request.messages] == [
        message.speaker for message in conversation.messages
    ]
    assert request.messages[2].tool_calls == conversation.messages[2].tool_calls
    assert (request.messages[3].tool_call_id, request.messages[3].text) == (
        "c1",
        "found \N{REPLACEMENT CHARACTER}",
    )
    assert (request.tools, request.schema, request.max_tokens) == ((SEARCH,), SCHEMA, 77)
    assert server.requests[0].body["temperature"] == 0.5
    assert server.requests[0].body.get("store") is (None if dialect == "chat" else False)
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret-of-the-test"
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_tool_calls_come_back_mended(server, endpoint, dialect):
    calls = {}
    for fault in tuple(
        "tool-empty-args tool-args-object tool-no-id tool-dup-id tool-200 tool-bad-json".split()
    ):
        server.fail_next(fault)
        completion = await ask(endpoint, EVERYTHING, dialect=dialect)
        calls[fault] = completion.tool_calls
        assert completion.finish_reason == "tool_calls"

    assert calls["tool-empty-args"][0].arguments == "{}"
    assert json.loads(calls["tool-args-object"][0].arguments) == {"q": "x"}
    assert calls["tool-no-id"][0].id
    assert len({call.id for call in calls["tool-dup-id"]}) == 2
    assert len(calls["tool-200"]) == 8
    assert calls["tool-bad-json"][0].arguments == '{"q": "x'


async def test_thoughts_and_parts_are_normalised(server, endpoint):
    texts = []
    for fault in ("think-block", "content-parts", "200-bom", "200-dup-keys"):
        server.fail_next(fault)
        texts.append((await ask(endpoint)).text)

    assert texts == ["hello there"] * 4


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", ["usage-missing", "usage-null", "usage-negative", "200-nan"])
async def test_a_call_whose_cost_is_not_said_is_charged_with_all_that_was_reserved(
    server, endpoint, dialect, fault
):
    server.fail_next(fault)
    price = Price(prompt_usd_per_mtok=1.0, completion_usd_per_mtok=2.0)
    reserved = OpenAIModel("some-model", endpoint, price=price).reserve(PROMPT)

    usage = (await ask(endpoint, dialect=dialect, price=price)).usage

    assert (usage.calls, usage.tokens, usage.cost_usd) == (
        reserved.calls,
        reserved.tokens,
        reserved.cost_usd,
    )
    assert (usage.unconfirmed_tokens, usage.unconfirmed_cost_usd) == (usage.tokens, usage.cost_usd)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", ["usage-strings", "usage-huge"])
async def test_a_count_is_read_also_as_a_text_and_however_large(server, endpoint, dialect, fault):
    server.fail_next(fault)
    usage = (await ask(endpoint, dialect=dialect)).usage
    (record,) = server.requests

    assert (
        usage.tokens >= 10**12
        if fault == "usage-huge"
        else usage.tokens == record.prompt_tokens + record.completion_tokens
    )
    assert usage.unconfirmed_tokens == 0


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_refusal_and_a_cut_are_told_faithfully(server, endpoint, dialect):
    completions = []
    for fault in ("refusal", "finish-length", "finish-filter"):
        server.fail_next(fault)
        completions.append(await ask(endpoint, dialect=dialect))
    refused, cut, filtered = completions

    assert refused.refusal == "I cannot help with that." and refused.text == ""
    assert cut.finish_reason == "length" and cut.text.startswith('{"tasks"')
    assert filtered.finish_reason == "content_filter"


async def test_a_server_that_is_not_there_is_unavailable_and_not_billed(waits):
    async def sleep(seconds):
        waits.append(seconds)

    endpoint = Endpoint(base_url="http://127.0.0.1:9/v1", sleep=sleep, random=lambda: 0.5)
    with pytest.raises(ModelUnavailableError) as caught:
        await ask(endpoint)
    await endpoint.close()

    assert not caught.value.may_be_billed and len(waits) == 3
    assert caught.value.is_unreached


async def test_a_server_that_has_answered_once_is_away_and_not_unreached():
    async with LocalServer(echo_answer) as server:
        endpoint = Endpoint(base_url=server.base_url, sleep=no_sleep, random=lambda: 0.5)
        await ask(endpoint)

    with pytest.raises(ModelUnavailableError, match="cannot be reached") as caught:
        await ask(endpoint)
    await endpoint.close()

    assert not caught.value.is_unreached


@pytest.mark.parametrize("address", ["nonsense", "ftp://127.0.0.1/v1", "http://[bad/v1"])
async def test_an_address_that_is_none_is_rejected(address):
    with pytest.raises(ModelRejectedError):
        await ask(Endpoint(base_url=address, sleep=no_sleep, random=lambda: 0.5))


async def test_a_key_that_no_header_can_carry_is_a_credentials_error(server):
    endpoint = Endpoint(
        base_url=server.base_url, api_key="schlüssel\n", sleep=no_sleep, random=lambda: 0.5
    )
    with pytest.raises(CredentialsError) as caught:
        await ask(endpoint)
    await endpoint.close()

    assert "schl" not in caught.value.what + caught.value.why


async def test_a_model_that_is_shut_down_is_named_with_its_successor_before_any_call():
    endpoint = Endpoint(sleep=no_sleep, random=lambda: 0.5)

    with pytest.raises(ModelRejectedError) as caught:
        await OpenAIModel("gpt-4", endpoint).complete(PROMPT, role=Role.EXECUTION)

    assert "gpt-6-luna" in caught.value.fix


def test_a_reservation_covers_the_prompt_and_the_largest_output():
    endpoint = Endpoint(sleep=no_sleep, random=lambda: 0.5)
    price = Price(prompt_usd_per_mtok=1.0, completion_usd_per_mtok=2.0)

    held = OpenAIModel("m", endpoint, price=price).reserve(PROMPT)

    assert held.calls == 1 and held.tokens == bound_tokens(PROMPT) + 500
    assert held.cost_usd == pytest.approx((bound_tokens(PROMPT) + 1000) / 1e6, abs=1e-12)


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
async def test_the_certificate_of_an_encrypted_endpoint_is_checked(scheme):
    with serving() as address:
        asked = await refusal_of(address.replace("https", scheme))

    assert asked.what.endswith("is not trusted") and "SSL_CERT_FILE" in asked.fix


async def test_a_server_that_is_not_encrypted_is_called_that():
    with serving(is_encrypted=False) as address:
        asked = await refusal_of(address)

    assert asked.what.endswith("is not encrypted") and "http://" in asked.fix


async def test_certificates_that_cannot_be_read_are_said(monkeypatch, tmp_path):
    (tmp_path / "empty.pem").write_text("")
    for name in ("empty.pem", "missing.pem"):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / name))
        asked = await refusal_of("https://127.0.0.1:1/v1")

        assert "SSL_CERT_FILE" in asked.what and asked.why


async def refusal_of(base_url):
    endpoint = Endpoint(base_url=base_url, timeout_s=120, sleep=no_sleep, random=lambda: 0.5)
    try:
        with pytest.raises(ModelRejectedError) as caught:
            await ask(endpoint)
    finally:
        await endpoint.close()
    return caught.value
