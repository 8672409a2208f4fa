"""The web as tools: search and pages, against servers on this machine."""

import asyncio
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from babyagi.errors import ToolError
from babyagi.net.door import Door
from babyagi.retrieval.engines import ENGINES, Searcher
from babyagi.retrieval.pages import Pages, WebRetriever
from babyagi.retrieval.rank import BM25
from babyagi.runtime.offload import run_inline
from babyagi.tools.base import parse_arguments
from babyagi.tools.search import MAX_PAGE_CHARS, build_open_page, build_web_search
from tests.small_web import NO_CACHE, read_here
from tests.web_server import Reply, WebServer

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
PAGES = {
    "/django": "<title>Django</title><h1>About</h1><p>Django is a framework.</p>"
    "<h2>Licence</h2><p>Django is under the BSD licence.</p><h2>Parking</h2><p>None.</p>",
    "/flask": "<h2>Licence</h2><p>Flask is under the BSD licence with 3 clauses.</p>",
    "/long": "<p>" + "</p><p>".join(f"sentence {n} of a long page" for n in range(1500)),
}


class Web:
    """A search engine and its pages on one server; `/gone` is found and cannot be opened."""

    def __init__(self, offload=run_inline, ranker=BM25):
        self.server = WebServer(self._answer)
        self.offload = offload
        self.ranker = ranker

    def _answer(self, asked):
        if asked.path == "/search":
            found = [*PAGES, "/gone"][: 2 if "two" in asked.params["q"] else 9]
            if "gone" in asked.params["q"]:
                found = ["/gone", "/flask"]
            base = self.server.base_url
            return Reply(
                {
                    "results": [
                        {"title": one, "url": base + one, "content": f"of {one}"} for one in found
                    ]
                }
            )
        return Reply(PAGES[asked.path]) if asked.path in PAGES else None

    async def __aenter__(self):
        await self.server.__aenter__()
        base = self.server.base_url
        door = Door(allow=[f"127.0.0.1:{self.server.port}"], pause_s=0.0)
        pages = Pages(
            door, clock=lambda: NOW, folder=NO_CACHE, read=read_here, offload=self.offload
        )
        engine = replace(ENGINES["searxng"], base_url=base)
        searcher = Searcher([engine], monotonic=lambda: 0.0)
        self.search = build_web_search(WebRetriever(searcher, pages, ranker=self.ranker))
        self.open_page = build_open_page(pages, ranker=self.ranker)
        self.base = base
        return self

    async def __aexit__(self, *exc):
        await self.server.__aexit__(*exc)


async def test_a_search_gives_titles_addresses_and_snippets_and_opens_nothing():
    async with Web() as web:
        passage = await web.search.run({"query": "two frameworks"})

    assert passage.text == (
        f"1. /django\n{web.base}/django\nof /django\n\n2. /flask\n{web.base}/flask\nof /flask"
    )
    assert passage.origins == ("tool:web_search", "search:searxng")
    assert web.server.paths() == ["/search"]


async def test_a_search_that_opens_pages_gives_the_parts_that_bear_on_it_with_their_origins():
    async with Web() as web:
        passage = await web.search.run({"query": "two licence BSD", "pages": 2})

    assert "Django is under the BSD licence." in passage.text
    assert "Flask is under the BSD licence with 3 clauses." in passage.text
    assert "Parking" not in passage.text
    assert "(fetched 2026-11-22 12:00 UTC, sha256 " in passage.text
    assert set(passage.sources) == {
        f"web:{web.base}/django",
        f"web:{web.base}/flask",
        "search:searxng",
    }
    assert {f"web:{page.url}" for page in passage.pages} == {*passage.sources} - {"search:searxng"}


async def test_the_snippet_stands_in_for_a_page_that_cannot_be_opened():
    async with Web() as web:
        passage = await web.search.run({"query": "gone of", "pages": 2})

    assert "/gone (not opened: " in passage.text
    assert "answered 404; its snippet)\nof /gone" in passage.text
    assert f"web:{web.base}/gone" not in passage.sources


async def test_what_is_done_with_the_text_of_a_page_is_off_the_event_loop():
    threads = []

    async def offload(work):
        def note():
            threads.append(threading.get_ident())
            return work()

        return await asyncio.to_thread(note)

    async with Web(offload) as web:
        await web.search.run({"query": "two frameworks", "pages": 2})
        n_of_the_search = len(threads)
        await web.open_page.run({"url": f"{web.base}/django", "about": "licences"})

    # each of both pages is looked for, cleaned, kept and split; then all parts are ranked
    assert n_of_the_search == 9
    assert len(threads) == 9 + 4
    assert threading.get_ident() not in threads


async def test_a_page_is_opened_whole_or_in_the_parts_that_bear_on_something():
    async with Web() as web:
        whole = await web.open_page.run({"url": f"{web.base}/django"})
        parts = await web.open_page.run({"url": f"{web.base}/django", "about": "licences"})
        none = await web.open_page.run({"url": f"{web.base}/django", "about": "zebra"})

    assert whole.origin == f"web:{web.base}/django"
    assert whole.text.startswith(
        f"Django\n{web.base}/django (fetched 2026-11-22 12:00 UTC, sha256 "
    )
    assert "Parking" in whole.text
    (page,) = whole.pages
    assert (page.url, page.title, page.fetched_at) == (f"{web.base}/django", "Django", NOW)
    assert page.digest.startswith(whole.text.partition("sha256 ")[2][:16])
    assert parts.text.endswith("About\n## Licence\nDjango is under the BSD licence.")
    assert "No part of the page is relevant to 'zebra'; it begins:" in none.text


@pytest.mark.thorough
async def test_a_long_page_is_read_in_parts_and_no_word_of_it_is_lost():
    async with Web() as web:
        url = f"{web.base}/long"
        texts = [(await web.open_page.run({"url": url, "part": n})).text for n in (1, 2, 3, 4, 9)]

    assert "(part 1 of 4)" in texts[0] and "(part 4 of 4)" in texts[3]
    assert all(len(text) <= MAX_PAGE_CHARS + 300 for text in texts)
    assert "There is no part 9: the page has 4." in texts[4]
    joined = "".join(text.split("\n\n", 1)[1].rsplit("\n\n(part", 1)[0] for text in texts[:4])
    assert joined.count("of a long page") == 1500


async def test_a_page_that_cannot_be_fetched_is_one_line():
    async with Web() as web:
        for url in (f"{web.base}/none", "http://10.0.0.1/", "file:///etc/passwd", ""):
            with pytest.raises(ToolError) as raised:
                await web.open_page.run({"url": url})
            assert "\n" not in raised.value.what


def test_the_arguments_of_a_model_are_checked():
    tool = build_open_page(Pages(Door(), clock=lambda: NOW, folder=NO_CACHE))

    assert parse_arguments(tool, '{"url": "https://x", "part": "2"}') == {
        "url": "https://x",
        "part": 2,
    }
    for wrong in ('{"url": "x", "part": 0}', '{"about": "x"}', '{"url": "x", "depth": 3}'):
        with pytest.raises(ToolError):
            parse_arguments(tool, wrong)


async def test_a_page_of_headings_alone_is_told_by_its_headings():
    async with WebServer(lambda asked: Reply("<h1>News</h1><h2>Rain</h2><h2>Snow</h2>")) as server:
        door = Door(allow=[f"127.0.0.1:{server.port}"], pause_s=0.0)
        tool = build_open_page(Pages(door, clock=lambda: NOW, folder=NO_CACHE, read=read_here))
        found = [
            (await tool.run({"url": server.base_url, "about": about})).text
            for about in ("snow", "tea")
        ]

    assert found[0].endswith("\n\nNews\n## Snow")
    assert "No part of the page is relevant to 'tea'; it begins:\n# News" in found[1]


class Backwards:
    """The last text is the best."""

    def score(self, question, texts):
        return [0.0] * (len(texts) - 1) + [1.0]


async def test_a_ranker_decides_which_parts_are_given_by_the_search_and_of_a_page():
    async with Web(ranker=Backwards()) as web:
        of_page = await web.open_page.run({"url": f"{web.base}/django", "about": "licence"})
        of_search = await web.search.run({"query": "two", "pages": 2})

    assert of_page.text.endswith("Parking\nNone.")
    assert "1. " in of_search.text and "3 clauses" in of_search.text and "2. " not in of_search.text
