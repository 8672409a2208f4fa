"""Answers that come as streams, from a real server: whole and faulty."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest

from babyagi.errors import (
    BabyagiError,
    CredentialsError,
    EndlessAnswerError,
    ModelUnavailableError,
    OverdueError,
)
from babyagi.llm import client as client_module
from babyagi.llm import streaming
from babyagi.llm.client import OpenAIModel
from babyagi.llm.prices import Price
from babyagi.llm.streaming import (
    MAX_CALLS,
    AnswerListener,
    ChatReplyBuilder,
    read_events,
)
from babyagi.tasks import Limits, Role
from babyagi.taskstore.limits import find_overspent
from support.local_server import applies_to, fault_named
from support.local_server.wire import read_request
from tests.llm.conftest import handled_by
from tests.llm.test_client import DIALECTS, EVERYTHING, PATHS, PROMPT, TABLE

ROWS = [row for row in TABLE if row["stream"]]
SLOW = {"s-hang-after-first", "s-keepalive-forever"}
PRICE = Price(prompt_usd_per_mtok=1.0, completion_usd_per_mtok=2.0)


async def stream(endpoint, prompt=PROMPT, **options):
    """The completion, and the pieces that were told."""
    heard: list[str] = []
    model = OpenAIModel("some-model", endpoint, **options)
    completion = await model.complete(prompt, role=Role.EXECUTION, on_text=heard.append)
    return completion, heard


def rows(*actions):
    return [
        pytest.param(dialect, row, id=f"{dialect}-{row['fault']}")
        for row in ROWS
        for dialect in DIALECTS
        if row["right"] in actions
        and (fault := fault_named(row["fault"]))
        and applies_to(fault, PATHS[dialect])
    ]


def test_each_row_that_streams_is_tried():
    tried = {param.values[1]["fault"] for param in rows("ACCEPT", "BREAKER", "CAP")}
    assert len(ROWS) == 18 and tried == {row["fault"] for row in ROWS}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_text_is_told_in_pieces_as_it_comes_and_is_the_answers(server, endpoint, dialect):
    completion, heard = await stream(endpoint, dialect=dialect)

    assert completion.text == "hello there" and completion.finish_reason == "stop"
    assert heard == ["hello ", "there"] and completion.model == "some-model"
    assert completion.usage.unconfirmed_tokens == 0
    assert completion.usage.tokens == server.requests[0].prompt_tokens + 3


@pytest.mark.parametrize(("dialect", "row"), rows("ACCEPT"))
async def test_a_stream_that_is_whole_is_an_answer_after_one_request(
    server, endpoint, dialect, row
):
    server.fail_next(row["fault"])

    completion, heard = await stream(endpoint, EVERYTHING, dialect=dialect)

    assert len(server.requests) == 1 and completion.usage.prompt_tokens > 0
    if row["fault"] == "s-tool-split":
        (call,) = completion.tool_calls
        assert (call.name, json.loads(call.arguments)) == ("search", {"q": "x"})
    else:
        assert completion.text == "".join(heard) == "hello there"


@pytest.mark.thorough
@pytest.mark.parametrize(("dialect", "row"), rows("BREAKER"))
async def test_a_stream_that_breaks_off_is_an_outage_that_may_be_billed(
    server, endpoint, hasty, dialect, row
):
    server.fail_next(row["fault"], n=None)

    with pytest.raises(ModelUnavailableError) as caught:
        await stream(hasty if row["fault"] in SLOW else endpoint, EVERYTHING, dialect=dialect)

    assert caught.value.may_be_billed and 1 <= len(server.requests) <= row["max_requests"]


@pytest.mark.thorough
@pytest.mark.parametrize(("dialect", "row"), rows("CAP"))
async def test_a_stream_without_an_end_takes_no_more_than_its_time(
    server, hasty, dialect, row, monkeypatch
):
    monkeypatch.setattr(client_module, "MAX_BODY_BYTES", 2**17)
    server.fail_next(row["fault"], n=None)

    with pytest.raises((OverdueError, EndlessAnswerError)) as caught:
        await stream(hasty, dialect=dialect)

    assert caught.value.may_be_billed and len(server.requests) <= row["max_requests"]


async def test_a_stream_that_falls_silent_is_left_before_the_deadline(
    server, endpoint, monkeypatch
):
    monkeypatch.setattr(client_module, "IDLE_S", 0.2)
    server.fail_next("s-hang-after-first")

    with pytest.raises(OverdueError, match="sent nothing for") as caught:
        await stream(endpoint)

    assert caught.value.has_begun


@pytest.mark.parametrize(
    ("refused", "sent"),
    [
        ("stream_options", [(True, True), (True, False), (False, False)]),
        ("stream", [(True, True), (False, False), (False, False)]),
    ],
)
async def test_what_a_server_refuses_of_a_stream_is_asked_without_and_remembered(
    server, endpoint, refused, sent
):
    server.fail_next(f"400-param:{refused}", n=None)
    model = OpenAIModel("some-model", endpoint, dialect="chat", price=PRICE)
    heard: list[str] = []

    first = await model.complete(PROMPT, role=Role.EXECUTION, on_text=heard.append)
    await model.complete(PROMPT, role=Role.EXECUTION, on_text=heard.append)

    asked = [
        (bool(record.body.get("stream")), "stream_options" in record.body)
        for record in server.requests
    ]
    assert asked == sent and first.text == "hello there"
    assert "".join(heard) == 2 * "hello there"
    says_no_cost = refused == "stream_options"
    reserved = model.reserve(PROMPT)
    assert (first.usage.unconfirmed_tokens == reserved.tokens) is says_no_cost
    assert first.usage.cost_usd == pytest.approx(reserved.cost_usd) or not says_no_cost


def usage(**said):
    return {"choices": [], "usage": said}


USELESS = {
    "none": ["END", "[DONE]"],
    "null": ["END", {"choices": [], "usage": None}, "[DONE]"],
    "empty": ["END", usage(), "[DONE]"],
    "zeros": ["END", usage(prompt_tokens=0, completion_tokens=0, total_tokens=0)],
    "words": ["END", usage(prompt_tokens="many", completion_tokens="few")],
    "a text": ["END", {"choices": [], "usage": "unknown"}],
    "a list": ["END", {"choices": [], "usage": [300, 4]}],
    "negative": ["END", usage(prompt_tokens=-300, completion_tokens=-4)],
    "endless": ["END", usage(prompt_tokens=1e999, completion_tokens=1e999)],
    "only the prompt's, in the first piece": [usage(prompt_tokens=30), "END", "[DONE]"],
    "too low, beside the answer": ["END", {**usage(prompt_tokens=1), "choices": [{"delta": {}}]}],
    "after the end": ["END", "[DONE]", usage(prompt_tokens=300, completion_tokens=4)],
    "cut before it": ["END", '{"choices": [], "usage": {"prompt_tok'],
}


@pytest.mark.parametrize("events", USELESS.values(), ids=USELESS)
async def test_a_stream_that_says_no_usage_costs_its_reservation_and_only_a_whole_answer_stops_a_run(
    events,
):
    limits, reservations = Limits(max_cost_usd=1.0), []
    sent = written(HELLO, *(END if event == "END" else event for event in events))
    whole = json.dumps(WHOLE | {"usage": None}).encode()

    async with served(sent) as one, served(whole, head="content-type: text/json") as other:
        usages = []
        for endpoint in (one, other):
            model = OpenAIModel("m", endpoint, dialect="chat", price=PRICE)
            reservations.append(model.reserve(PROMPT))
            done = await model.complete(PROMPT, role=Role.EXECUTION, on_text=print)
            usages.append(done.usage)

    pairs = list(zip(usages, reservations, strict=True))
    assert [usage.tokens for usage, _ in pairs] == [reserved.tokens for _, reserved in pairs]
    assert [find_overspent(limits, *pair) for pair in pairs] == ["", "cost"]
    assert (one.counts_streams, other.counts_streams) == (False, True)


async def test_what_a_server_sends_of_a_second_answer_does_not_get_into_the_first():
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]}
    both = {"choices": [other["choices"][0], {"index": 0, "delta": {"content": "!"}}]}

    async with served(written(other, HELLO, other, both, END, COST)) as endpoint:
        completion, heard = await stream(endpoint)

    assert completion.text == "".join(heard) == "hello there!"
    assert completion.finish_reason == "stop"


async def test_of_a_whole_answer_with_several_choices_the_first_is_taken_wherever_it_stands():
    other = {"index": 1, "message": {"content": "other"}, "finish_reason": "length"}
    first = {"index": 0, "message": {"content": "hello there"}, "finish_reason": "stop"}
    body = json.dumps(COST | {"choices": [other, first]}).encode()

    async with served(body, head="content-type: application/json") as endpoint:
        completion, heard = await stream(endpoint)

    assert completion.text == "".join(heard) == "hello there"
    assert completion.finish_reason == "stop"


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_a_person_must_mend_is_told_of_a_stream_as_of_any_call(
    server, endpoint, dialect
):
    server.fail_next("401", n=None)

    with pytest.raises(BabyagiError, match="rejects the key"):
        await stream(endpoint, dialect=dialect)

    assert len(server.requests) == 1


async def test_of_two_counts_in_a_stream_the_larger_ones_hold():
    """Some servers say their cost so far in each piece, or a smaller one at the end."""
    large = {"usage": {"prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340}}
    small = {"usage": {"prompt_tokens": "7", "completion_tokens": 41, "total_tokens": None}}

    async with served(written(HELLO | large, END, {"choices": []} | small)) as endpoint:
        completion, _ = await stream(endpoint)

    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.unconfirmed_tokens) == (300, 41, 0)


async def test_a_server_whose_streams_break_twice_is_asked_for_whole_answers(server, endpoint):
    server.fail_next("s-cut-clean", n=2)
    model = OpenAIModel("some-model", endpoint, dialect="chat")
    heard: list[str] = []

    for _ in range(2):
        with pytest.raises(ModelUnavailableError):
            await model.complete(PROMPT, role=Role.EXECUTION, on_text=heard.append)
    heard.clear()
    answered = await model.complete(PROMPT, role=Role.EXECUTION, on_text=heard.append)

    assert answered.text == "".join(heard) == "hello there"
    assert [bool(record.body.get("stream")) for record in server.requests] == [True, True, False]


async def test_a_call_that_is_given_up_closes_its_connection():
    """Nothing is generated for nobody."""
    closed, begun = asyncio.Event(), asyncio.Event()

    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        piece = json.dumps({"choices": [{"delta": {"content": "hello"}}]})
        writer.write(f"{head}data: {piece}\n\n".encode())
        while await reader.read(65_536):
            pass
        closed.set()
        writer.close()

    async with asyncio.timeout(120), handled_by(handle) as endpoint:
        model = OpenAIModel("m", endpoint)
        call = asyncio.ensure_future(
            model.complete(PROMPT, role=Role.EXECUTION, on_text=lambda text: begun.set())
        )
        await begun.wait()
        call.cancel()
        await closed.wait()

    assert call.cancelled()


async def test_a_stream_that_does_not_say_so_is_read():
    pieces = [{"content": "one "}, {"content": "smile"}]
    body = (
        "".join(f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n" for delta in pieces)
        + 'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    )

    async with served(body.encode(), head="content-type: text/plain") as endpoint:
        completion, heard = await stream(endpoint)

    assert completion.text == "".join(heard) == "one smile"


HELLO = {"choices": [{"delta": {"content": "hello there"}}]}
END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
COST = {"choices": [], "usage": {"prompt_tokens": 300, "completion_tokens": 4}}
WHOLE = COST | {"choices": [{"message": {"content": "hello there"}, "finish_reason": "stop"}]}


def written(*events):
    return "".join(
        f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events
    ).encode()


@asynccontextmanager
async def served(body, *, head="content-type: text/event-stream", again=b""):
    """An endpoint that answers with these bytes, and with `again` for ever."""

    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        with suppress(OSError):
            writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)
            while again:
                writer.write(again)
                await writer.drain()
                await asyncio.sleep(0.001)
            writer.close()
            await writer.wait_closed()

    async with handled_by(handle, timeout_s=30) as endpoint:
        yield endpoint


async def test_an_answer_that_has_ended_is_not_lost_to_a_stream_that_goes_on(monkeypatch):
    monkeypatch.setattr(streaming, "AFTER_END_S", 0.2)
    empty = written({"choices": [{"delta": {}, "finish_reason": None}]})

    async with served(written(HELLO, END), again=empty) as endpoint:
        completion, _ = await stream(endpoint)

    assert completion.text == "hello there" and completion.usage.unconfirmed_tokens > 0


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_answers_that_come_as_streams_share_one_connection(server, endpoint, dialect):
    for _ in range(3):
        await stream(endpoint, dialect=dialect)

    assert (len(server.requests), server.n_connections) == (3, 1)


async def test_a_server_that_closes_connections_unannounced_costs_one_call():
    async def handle(reader, writer):
        await read_request(reader)
        body = written(HELLO, END, "[DONE]")
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
            b"\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        )
        await reader.read(1)  # until another request comes, which gets no answer
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    texts = []
    async with asyncio.timeout(120), handled_by(handle) as endpoint:
        for _ in range(5):
            try:
                texts.append((await stream(endpoint))[0].text)
            except ModelUnavailableError:
                texts.append("lost")

    assert texts == ["hello there", "lost", *["hello there"] * 3]


async def test_after_its_last_event_a_stream_that_goes_on_for_ever_is_left():
    whole = written(HELLO, END, "[DONE]")
    async with asyncio.timeout(120), served(whole, again=b": still here\n\n") as endpoint:
        completion, _ = await stream(endpoint)

    assert completion.text == "hello there"


async def test_an_empty_reason_to_finish_in_each_chunk_ends_nothing():
    piece = {"choices": [{"delta": {"content": "hello "}, "finish_reason": ""}]}

    async with served(written(piece)) as endpoint:
        with pytest.raises(ModelUnavailableError, match="broke") as caught:
            await stream(endpoint)
    async with served(written(piece, COST, "[DONE]")) as endpoint:
        completion, _ = await stream(endpoint)

    assert caught.value.may_be_billed
    assert completion.text == "hello " and completion.usage.tokens == 304


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("text/event-stream", b"data:\n\n" + written(HELLO) + b"data: \n\n" + written(END, COST)),
        ("text/event-stream", json.dumps(WHOLE).encode()),
        ("application/json", b"\xef\xbb\xbf" + written(HELLO, END, COST, "[DONE]", HELLO)),
        ("text/event-stream\r\ncontent-encoding: Identity", written(HELLO, END, COST)),
    ],
    ids=["empty events", "an object that is called a stream", "a stream with a mark", "identity"],
)
async def test_an_answer_is_read_whatever_its_head_says(head, body):
    async with served(body, head=f"content-type: {head}") as endpoint:
        completion, heard = await stream(endpoint)

    assert completion.text == "".join(heard) == "hello there" and completion.usage.tokens == 304


async def test_an_error_that_is_called_a_stream_is_told_as_any():
    body = json.dumps({"error": {"message": "no such key", "code": 401}}).encode()

    async with served(body) as endpoint:
        with pytest.raises(CredentialsError):
            await stream(endpoint)


@pytest.mark.parametrize("depth", [150, 400, 900, 5000])
async def test_a_usage_that_is_nested_too_deeply_is_no_event_and_no_error_of_the_program(depth):
    usage = f'{{"usage": {{"a": {"{0}" * depth}1{"}" * depth}}}}}'.replace("{0}", '{"a": ').encode()
    event = b"data: " + usage + b"\n\n"

    async with served(written(HELLO) + event + event + written(END, COST)) as endpoint:
        with pytest.raises(ModelUnavailableError) as caught:
            await stream(endpoint)

    assert caught.value.may_be_billed


@pytest.mark.thorough
def test_a_flood_of_calls_and_of_their_pieces_is_read_in_a_time_that_grows_with_it():
    flood = ChatReplyBuilder(AnswerListener(print))
    for n in range(2000):
        delta = {"tool_calls": [{"index": 100 * n + at} for at in range(100)]}
        flood.take({"choices": [{"delta": delta}]})
    pieces = ChatReplyBuilder(AnswerListener(print))
    for _ in range(100_000):
        call = {"index": 0, "id": "a", "function": {"name": "search", "arguments": "x" * 50}}
        pieces.take({"choices": [{"delta": {"tool_calls": [call]}}]})
    flood.take(END)
    pieces.take(END)

    many = flood.reply()["choices"][0]["message"]["tool_calls"]
    (one,) = pieces.reply()["choices"][0]["message"]["tool_calls"]
    assert len(many) == MAX_CALLS
    assert one["function"] == {"name": "search", "arguments": "x" * 5_000_000}


# -- the reading of events
# --------------------------------------------------------------------------------------------------


async def events_of(*chunks):
    async def come():
        for chunk in chunks:
            yield chunk

    return [event async for event in read_events(come())]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
async def test_events_are_the_same_however_their_bytes_are_cut(end, size):
    lines = ["﻿: a comment", "event: a", "data: é日 one", "data:two", "", "id: 7", "", "data: last"]
    body = end.join(lines).encode()

    found = await events_of(*(body[at : at + size] for at in range(0, len(body), size)))

    assert found == [("a", "é日 one\ntwo"), ("message", "last")]


async def test_a_long_line_in_small_pieces_is_read_in_a_time_that_grows_with_it():
    line = b"data: " + b"x" * 2**20 + b"\n\n"

    found = await events_of(*(line[at : at + 64] for at in range(0, len(line), 64)))

    assert len(found[0][1]) == 2**20


# -- thoughts
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hello there", "hello there"),
        ("<think>secret</think>\n\nhello", "hello"),
        ("\n<thinking>secret < chain</thinking> hello", "hello"),
        ("<b>hello</b>", "<b>hello</b>"),
        ("<think>never ends", ""),
        ("a <think>b</think>", "a <think>b</think>"),
    ],
)
def test_thoughts_before_an_answer_are_not_told(text, told, size):
    heard: list[str] = []
    listener = AnswerListener(heard.append)

    for at in range(0, len(text), size):
        listener.hear(text[at : at + size])

    assert "".join(heard) == told and listener.has_relayed is bool(told)
