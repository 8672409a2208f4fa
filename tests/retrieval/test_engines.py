"""Each search engine in its own form on the wire, against a server on this machine."""

import json
from dataclasses import replace

import pytest

from babyagi.errors import SettingsError, ToolError
from babyagi.retrieval.engines import (
    ENGINES,
    KEYLESS,
    REST_S,
    HitKind,
    Searcher,
    scope,
)
from tests.web_server import Reply, WebServer

A, B = "https://a.example/x?y=1", "https://b.example/"
RESULTS = [
    {"title": "One", "link": A, "snippet": "The <b>first</b>\nresult &amp; more."},
    {"title": "Two", "link": B, "snippet": "second"},
    {"title": "Not on the web", "link": "javascript:alert(1)", "snippet": "third"},
]
ORGANIC = [*RESULTS, "junk", {}]
CONTENT = [
    {"title": one["title"], "url": one["link"], "content": one["snippet"]} for one in RESULTS
]
DUCK = """
<div class="result"><h2><a rel="nofollow" class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2Fx%3Fy%3D1&amp;rut=9">One</a></h2>
<a class="result__snippet" href="//duckduckgo.com/l/?uddg=x">The <b>first</b> result &amp; more.</a></div>
<div class="result"><a rel="nofollow" class="result__a" href="https://b.example/">Two</a>
<a class="result__snippet" href="https://b.example/">second</a></div>
<a rel="nofollow" class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">An ad</a>
"""
ANSWERS = {
    "serper": {"organic": ORGANIC, "answerBox": {"answer": "47", "title": "Age", "link": B}},
    "serpapi": {"organic_results": ORGANIC, "answer_box": {"result": "47", "link": B}},
    "searchapi": {
        "organic_results": ORGANIC,
        "knowledge_graph": {"title": "Age", "description": "47"},
        "related_questions": [{"question": "Who?", "answer": "Ada", "source": {"link": A}}],
    },
    "brave": {"web": {"results": [{**one, "description": one["content"]} for one in CONTENT]}},
    "tavily": {"results": CONTENT, "answer": None},
    "searxng": {"results": CONTENT},
    "marginalia": {"results": [{**one, "description": one["content"]} for one in CONTENT]},
    "wikipedia": {
        "query": {"search": [{"title": "Ada Lovelace", "snippet": "<span>first</span> result"}]}
    },
    "duckduckgo": DUCK.encode(),
}


def open_search(server, *names, clock=lambda: 0.0):
    engines = [replace(ENGINES[one], base_url=server.base_url, key="KEY") for one in names]
    return Searcher(engines, monotonic=clock)


@pytest.mark.parametrize("name", ENGINES)
async def test_every_engine_is_asked_and_read_in_its_own_form(name):
    async with WebServer(lambda asked: Reply(ANSWERS[name])) as server:
        said, hits = await open_search(server, name).search("the age of Ada")

    (asked,) = server.asked
    question = {**asked.params, **(json.loads(asked.body) if asked.body else {})}
    assert said == name
    assert "the age of Ada" in question.values()
    if ENGINES[name].key_variable:
        assert "KEY" in json.dumps([question, dict(asked.headers)])
    urls = [hit.url for hit in hits]
    if name == "wikipedia":
        assert urls == ["https://en.wikipedia.org/wiki/Ada_Lovelace"]
        assert hits[0].snippet == "first result"
    else:
        results = [hit for hit in hits if hit.kind is HitKind.RESULT]
        assert [hit.url for hit in results[:2]] == [A, B]
        assert results[0].snippet == "The first result & more."
        assert all(hit.url.startswith("https://") or not hit.url for hit in hits)
    assert sum(hit.score for hit in hits) == pytest.approx(1)


async def test_scores_fall_with_the_place_and_a_short_answer_counts_five_times():
    async with WebServer(lambda asked: Reply(ANSWERS["serper"])) as server:
        _, hits = await open_search(server, "serper").search("x", top_k=3)

    assert [hit.kind for hit in hits] == [HitKind.ANSWER, HitKind.RESULT, HitKind.RESULT]
    assert [hit.score for hit in hits] == pytest.approx([15 / 18, 2 / 18, 1 / 18])


async def test_a_search_can_be_limited_to_domains():
    async with WebServer(lambda asked: Reply(ANSWERS["searxng"])) as server:
        await open_search(server, "searxng").search("q", domains=["a.org", "b.org/x", '" evil'])

    assert server.asked[0].params["q"] == "site:a.org OR site:b.org/x OR site:evil q"
    with pytest.raises(ToolError, match="the query is empty"):
        scope("  ", ["a.org"])


async def test_the_next_engine_is_asked_while_one_that_failed_rests():
    now = [0.0]
    refuses = {"/html/"}

    def answer(asked):
        if asked.path in refuses:
            return Reply(status=429)
        return Reply(DUCK.encode() if asked.path == "/html/" else ANSWERS["marginalia"])

    async with WebServer(answer) as server:
        search = open_search(server, *KEYLESS, clock=lambda: now[0])
        assert (await search.search("x"))[0] == "marginalia"
        assert (await search.search("x"))[0] == "marginalia"
        refuses.clear()
        now[0] = REST_S
        assert (await search.search("x"))[0] == "duckduckgo"

    assert server.paths() == ["/html/", "/search", "/search", "/html/"]


async def test_when_no_engine_answers_each_says_why_and_all_are_asked_again():
    async with WebServer(
        lambda asked: Reply({"error": "Account KEY is used up."}, status=402)
    ) as server:
        search = open_search(server, "serper", "brave")
        for _ in range(2):
            with pytest.raises(
                ToolError, match=r"serper: .*402: Account \*\*\* is used.*; brave: .*402"
            ):
                await search.search("x")

    assert len(server.asked) == 4


@pytest.mark.parametrize("found", [[], "junk", 1, {"results": 7}, {"results": [{"url": [1]}]}])
async def test_an_answer_of_another_form_gives_no_results_or_one_line(found):
    async with WebServer(lambda asked: Reply(found)) as server:
        try:
            assert (await open_search(server, "searxng").search("x"))[1] == []
        except ToolError as error:
            assert "not a JSON object" in error.what


def test_no_engine_is_asked_over_an_open_network():
    with pytest.raises(SettingsError, match="must be https"):
        Searcher(
            [replace(ENGINES["searxng"], base_url="http://search.example")],
            monotonic=lambda: 0.0,
        )
