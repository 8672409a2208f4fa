"""Searching the web, against a server on this machine."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from babyagi.errors import SettingsError, ToolError
from babyagi.net.door import Door
from babyagi.retrieval.engines import ENGINES, Searcher
from babyagi.retrieval.pages import Pages, WebRetriever
from babyagi.tools.base import Tool
from babyagi.tools.search import build_web_search, render_hits
from tests.search_server import SearchServer
from tests.small_web import NO_CACHE

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
FOUND = {
    "related_questions": [
        {"question": "Who is it?", "snippet": "Ada.", "link": "https://c.example"},
        {"snippet": "no question"},
    ],
    "organic_results": [
        {"title": "One", "link": "https://a.example", "snippet": "The first\nresult."},
        {"title": "Two", "snippet": 2},
        "no result",
        {},
    ],
    "answer_box": {"answer": "47", "title": "Age", "link": "https://b.example"},
}


def build(base_url, **options) -> Tool:
    engine = replace(ENGINES["serpapi"], base_url=base_url, key="KEY")
    searcher = Searcher([engine], monotonic=time.monotonic)
    pages = Pages(Door(), clock=lambda: NOW, folder=NO_CACHE)  # none is opened
    return build_web_search(
        WebRetriever(searcher, pages), name="Search", description="finds", n_pages=0, **options
    )


def open_search(server, **options) -> Tool:
    return build(server.base_url, **options)


async def test_the_answer_comes_first_then_results_then_what_people_ask():
    async with SearchServer(lambda query: FOUND) as server:
        passage = await open_search(server).run({"query": " the age of Ada "})

    assert passage.text.split("\n\n") == [
        "1. Answer: 47\nAge\nhttps://b.example",
        "2. One\nhttps://a.example\nThe first result.",
        "3. Two\n2",
        "4. People also ask: Who is it?\nhttps://c.example\nAda.",
    ]
    assert passage.origin == "tool:Search"
    assert server.requests == [
        {"path": "/search.json", "engine": "google", "q": "the age of Ada", "api_key": "KEY"}
    ]


async def test_no_more_than_the_first_results_are_shown():
    async with SearchServer(lambda query: FOUND) as server:
        passage = await open_search(server, top_k=2).run({"query": "x"})

    assert [entry[:2] for entry in passage.text.split("\n\n")] == ["1.", "2."]


@pytest.mark.parametrize(
    "found",
    [{}, {"organic_results": []}, {"error": "Google hasn't returned any results for this query."}],
)
async def test_a_search_that_finds_nothing_says_so(found):
    async with SearchServer(lambda query: found) as server:
        assert (await open_search(server).run({"query": "x"})).text == "The search found nothing."


async def test_an_error_is_one_line_for_the_model():
    async with SearchServer(
        lambda query: (429, {"error": "Your account KEY has run out of searches."})
    ) as server:
        with pytest.raises(ToolError, match=r"answered 429: Your account \*\*\* has run out"):
            await open_search(server).run({"query": "x"})
        with pytest.raises(ToolError, match="the query is empty"):
            await open_search(server).run({"query": "  "})
    async with SearchServer(lambda query: {"error": "We could not process this."}) as server:
        with pytest.raises(ToolError, match="answered with an error instead of results"):
            await open_search(server).run({"query": "x"})
    assert len(server.requests) == 1


def test_a_key_goes_over_no_open_network():
    with pytest.raises(SettingsError, match="must be https"):
        build("http://search.example")
    assert "KEY" not in repr(build("https://serpapi.com"))


async def test_a_search_of_some_domains_takes_no_others_from_a_model():
    async with SearchServer(lambda query: FOUND) as server:
        tool = open_search(server, domains=("docs.example",))
        await tool.run({"query": "x", "domains": ["evil.example"]})

    assert list(tool.parameters["properties"]) == ["query"]
    assert server.queries == ["site:docs.example x"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
KEYS = st.sampled_from(
    "answer_box organic_results related_questions error answer title link snippet question".split()
)


@settings(max_examples=25)
@given(
    st.dictionaries(
        KEYS,
        JSON
        | st.dictionaries(KEYS, JSON, max_size=3)
        | st.lists(st.dictionaries(KEYS, JSON, max_size=3), max_size=3),
        max_size=4,
    )
)
def test_whatever_an_engine_says_is_read_without_an_error(found):
    for engine in ENGINES.values():
        assert isinstance(render_hits(list(engine.read(found))), str)
