"""Pipelines on other machines, in the form of each service, against a server on this machine."""

import json

import pytest

from babyagi.errors import SettingsError, ToolError
from babyagi.journal import run_tool
from babyagi.tasks import Effect
from babyagi.tools.base import parse_arguments
from babyagi.tools.pipelines import (
    NOTHING_INDEXED,
    build_pipeline_search,
    deepset_pipeline,
    haystack_pipeline,
    render_found,
)
from tests.web_server import Reply, WebServer

FOUND = {
    "query": "q",
    "answers": [{"answer": "In the node.", "score": 0.931, "meta": {"name": "nodes.md"}}, {}],
    "documents": [
        {
            "content": "A node\x00 is a step.",
            "meta": {"file_name": "a.md", "url": "https://a.example"},
        },
        {"content": "Another.", "score": 0.5, "meta": None, "file": {"id": "1", "name": "b.md"}},
        {"content": None},
        "junk",
    ],
}
KEY = "api_0123456789abcdef"


def open_deepset(server, **more):
    return deepset_pipeline(
        "my space", "docs", key=KEY, base_url=f"{server.base_url}/api/v1", **more
    )


async def call(pipeline, query="What is a node?", **more):
    tool = build_pipeline_search(pipeline, name="docs", **more)
    return await run_tool(tool, parse_arguments(tool, json.dumps({"query": query})))


async def test_deepset_cloud_is_asked_in_its_own_form_and_answers_come_before_documents():
    async with WebServer(lambda asked: Reply({"results": [FOUND]})) as server:
        given = await call(open_deepset(server, params={"Retriever": {"top_k": 2}}))

    (asked,) = server.asked
    assert (asked.method, asked.path) == (
        "POST",
        "/api/v1/workspaces/my%20space/pipelines/docs/search",
    )
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(asked.body) == {
        "queries": ["What is a node?"],
        "debug": False,
        "view_prompts": False,
        "params": {"Retriever": {"top_k": 2}},
    }
    assert given.passage.text == (
        "1. Answer: In the node. (nodes.md, score 0.93)\n\n"
        "2. Document (a.md, https://a.example)\nA node\ufffd is a step.\n\n"
        "3. Document (b.md, score 0.50)\nAnother."
    )
    assert given.passage.origins == ("tool:docs", "search:pipeline:my space/docs")


async def test_a_haystack_server_is_asked_in_its_own_form_and_gets_no_key():
    async with WebServer(lambda asked: Reply(FOUND)) as server:
        given = await call(haystack_pipeline(server.base_url), top_k=1)

    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/query")
    assert json.loads(asked.body) == {"query": "What is a node?", "params": {}, "debug": False}
    assert "authorization" not in asked.headers
    assert given.passage.text.startswith("1. Answer: In the node.")
    assert "Another" not in given.passage.text


@pytest.mark.parametrize(
    "found",
    [
        {"results": []},
        {"results": [{"answers": [], "documents": []}]},
        {"results": [{"answers": [{"answer": None}, {"answer": " "}], "documents": None}]},
        {},
    ],
)
async def test_a_pipeline_that_finds_nothing_says_so(found):
    async with WebServer(lambda asked: Reply(found)) as server:
        given = await call(open_deepset(server))

    assert not given.is_error and given.passage.text == NOTHING_INDEXED


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply({"errors": [f"bad key {KEY}"]}, status=401), "answered 401"),
        (Reply({"detail": "no such pipeline"}, status=404), "answered 404: no such pipeline"),
        (Reply("<html>"), "not a JSON object"),
        (Reply([1, 2]), "not a JSON object"),
        (Reply({"results": ["junk"]}), "does not have the form of a result"),
        (Reply(b" " * (3 * 2**20)), "more than 2 MiB"),
        (Reply(status=302, headers={"location": "http://127.0.0.1:9/"}), "answered 302"),
    ],
)
async def test_an_error_is_one_line_without_the_key(reply, said):
    async with WebServer(lambda asked: reply) as server:
        given = await call(open_deepset(server))

    assert given.is_error and said in given.passage.text
    assert KEY not in given.passage.text and "\n" not in given.passage.text


async def test_an_empty_question_is_not_sent():
    async with WebServer(lambda asked: Reply(FOUND)) as server:
        given = await call(open_deepset(server), query="  ")

    assert given.is_error and server.asked == []


def test_the_output_of_a_pipeline_is_bounded():
    many = {"documents": [{"content": "word " * 10_000, "meta": {"name": "n" * 9000}}] * 500}

    assert len(render_found(many, top_k=5)) < 5 * 2400
    with pytest.raises(ToolError):
        render_found("text", top_k=5)


@pytest.mark.parametrize("url", ["http://10.0.0.1:8000", "ftp://a", "https://a:b@c", ""])
def test_a_question_goes_only_where_nobody_reads_it_on_the_way(url):
    with pytest.raises(SettingsError):
        haystack_pipeline(url)
    with pytest.raises(SettingsError):
        deepset_pipeline("a", "b", key=KEY, base_url=url)


def test_the_effect_is_what_a_person_says_and_no_repr_shows_the_key():
    pipeline = deepset_pipeline("a", "b", key=KEY)

    assert build_pipeline_search(pipeline).effect is Effect.READ
    assert build_pipeline_search(pipeline, effect=Effect.ONCE).effect is Effect.ONCE
    assert KEY not in repr(pipeline) + repr(build_pipeline_search(pipeline))
