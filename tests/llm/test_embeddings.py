import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from babyagi.errors import (
    CredentialsError,
    IndexUnavailableError,
    MalformedReplyError,
    ModelRejectedError,
)
from babyagi.llm.client import Endpoint
from babyagi.llm.embeddings import MAX_TEXTS_PER_REQUEST, OpenAIEmbedder
from babyagi.llm.prices import Price
from tests.llm.conftest import no_sleep
from tests.llm.embedder_contract import EmbedderContract, unpack

PRICE = Price(prompt_usd_per_mtok=0.02, completion_usd_per_mtok=0.0)


class TestOpenAIEmbedder(EmbedderContract):
    @pytest.fixture
    async def embedder(self, endpoint):
        return OpenAIEmbedder("text-embedding-3-small", endpoint, price=PRICE)

    @pytest.fixture
    def others(self, endpoint):
        elsewhere = Endpoint(base_url="http://127.0.0.1:1/v1", sleep=no_sleep, random=lambda: 0.5)
        return [
            OpenAIEmbedder("text-embedding-3-large", endpoint),
            OpenAIEmbedder("unknown", endpoint),
            OpenAIEmbedder("text-embedding-3-small", elsewhere),
            OpenAIEmbedder("text-embedding-3-small", Endpoint(sleep=no_sleep, random=lambda: 0.5)),
        ]


async def test_an_embedding_call_costs_money_and_sends_no_empty_text(server, endpoint):
    embedder = OpenAIEmbedder("text-embedding-3-small", endpoint, price=PRICE)

    _, usage = await embedder.embed(["red apples", ""])

    assert server.requests[0].body["input"][1].strip()
    assert "dimensions" not in server.requests[0].body
    assert usage.calls == 1 and usage.tokens > 0 and usage.cost_usd > 0


async def test_many_and_long_texts_go_in_several_requests(server, endpoint):
    embedder = OpenAIEmbedder("m", endpoint)

    vectors, usage = await embedder.embed([f"text {n}" for n in range(MAX_TEXTS_PER_REQUEST + 1)])
    await embedder.embed(["é" * 100_000] * 20)

    assert len(vectors) == MAX_TEXTS_PER_REQUEST + 1 and usage.calls == 2
    assert len(server.requests) == 4
    assert (
        max(len(json.dumps(record.body, ensure_ascii=False).encode()) for record in server.requests)
        < 400_000
    )


async def test_as_many_long_vectors_are_asked_for_at_once_as_an_answer_may_hold():
    numbers = ", ".join(["-0.018042199313640594"] * 8192)

    class Dense(BaseHTTPRequestHandler):
        def do_POST(self):
            texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
            rows = ", ".join(
                f'{{"index": {place}, "embedding": [{numbers}]}}' for place in range(len(texts))
            )
            body = f'{{"data": [{rows}]}}'.encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Dense) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        endpoint = Endpoint(
            base_url=f"http://127.0.0.1:{server.server_port}/v1", sleep=no_sleep, random=lambda: 0.5
        )
        vectors, _ = await OpenAIEmbedder("m", endpoint).embed([f"text {n}" for n in range(100)])
        await endpoint.close()
        server.shutdown()
        thread.join()

    assert [len(vector) for vector in vectors] == [8192 * 4] * 100


async def test_the_space_is_known_before_the_first_call_and_does_not_change(server, endpoint):
    embedder = OpenAIEmbedder("m", endpoint)
    space = embedder.space

    await embedder.embed(["x"])

    assert embedder.space == space == f"openai:{endpoint.host}:m:native:v1"
    assert embedder.dimension == 1536
    own = Endpoint(sleep=no_sleep, random=lambda: 0.5)
    assert (
        OpenAIEmbedder("text-embedding-3-large", own).space
        == "openai:text-embedding-3-large:3072:v1"
    )


@pytest.mark.parametrize(
    "fault", ["500", "c-close", "200-empty", "413-html", "400-invalid", "429-retry-300"]
)
async def test_trouble_with_the_endpoint_leaves_the_index_behind(server, endpoint, fault):
    server.fail_next(fault, n=None)

    with pytest.raises(IndexUnavailableError):
        await OpenAIEmbedder("m", endpoint).embed(["x"])


async def test_what_a_person_must_mend_is_told(server, endpoint):
    server.fail_next("401")
    with pytest.raises(CredentialsError):
        await OpenAIEmbedder("m", endpoint).embed(["x"])
    server.fail_next("404-model")
    with pytest.raises(ModelRejectedError):
        await OpenAIEmbedder("m", endpoint).embed(["x"])


async def test_an_embedder_that_was_refused_makes_no_further_request(server, endpoint):
    server.fail_next("401")
    embedder = OpenAIEmbedder("m", endpoint)
    for _ in range(3):
        with pytest.raises(CredentialsError):
            await embedder.embed(["x"])

    assert len(server.requests) == 1


async def test_an_embedding_call_that_broke_after_a_paid_batch_may_be_billed(server, endpoint):
    server.fail_when(lambda record: record.n > 1, "500")

    with pytest.raises(IndexUnavailableError) as caught:
        await OpenAIEmbedder("m", endpoint).embed(["x"] * (MAX_TEXTS_PER_REQUEST + 1))

    assert caught.value.may_be_billed


ROW = {"index": 0, "embedding": [3.0, 4.0]}


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        [None],
        [ROW, ROW],
        [ROW, {"index": 2, "embedding": [1.0, 0.0]}],
        [ROW, {"index": [], "embedding": [1.0, 0.0]}],
        [ROW, {"index": 1, "embedding": [1.0]}],
        [ROW, {"index": 1, "embedding": [0.0, 0.0]}],
        [ROW, {"index": 1, "embedding": [float("nan"), 1.0]}],
        [ROW, {"index": 1, "embedding": [float("inf"), 1.0]}],
        [ROW, {"index": 1, "embedding": [10**400, 1.0]}],
        [ROW, {"index": 1, "embedding": "AAAA"}],
    ],
)
def test_rows_that_are_no_directions_are_refused(data):
    embedder = OpenAIEmbedder("m", Endpoint(sleep=no_sleep, random=lambda: 0.5))

    with pytest.raises(MalformedReplyError):
        embedder._read_vectors({"data": data}, 2)


def test_rows_are_put_in_the_order_of_the_texts():
    embedder = OpenAIEmbedder("m", Endpoint(sleep=no_sleep, random=lambda: 0.5))

    vectors = embedder._read_vectors({"data": [{"index": 1, "embedding": [0, 2]}, ROW]}, 2)

    assert [unpack(vector) for vector in vectors] == [pytest.approx((0.6, 0.8)), (0.0, 1.0)]
