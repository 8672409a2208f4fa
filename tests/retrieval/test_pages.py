"""Pages as documents: fetched once, read apart, kept for a day."""

import hashlib
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from babyagi.errors import ToolError
from babyagi.net.door import Door, Page
from babyagi.retrieval.page_text import UnreadableError, read_text
from babyagi.retrieval.pages import Pages, read_apart
from tests.web_server import Reply, WebServer

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def open_pages(server, folder=None, clock=lambda: NOW):
    door = Door(allow=[f"127.0.0.1:{server.port}"], pause_s=0.0)
    return Pages(door, clock=clock, folder=folder, read=read_here)


async def read_here(page):
    try:
        return asdict(read_text(page.body, content_type=page.content_type, url=page.url))
    except UnreadableError as error:
        return {"error": str(error)}


async def test_a_page_says_where_it_was_when_it_was_fetched_and_what_it_was():
    replies = {
        "/a": Reply(status=302, headers={"location": "/b"}),
        "/b": Reply("<title>T</title>x"),
    }
    async with WebServer(lambda asked: replies.get(asked.path)) as server:
        document = await open_pages(server).open(f"{server.base_url}/a#part")

    assert (document.url, document.title, document.text) == (f"{server.base_url}/b", "T", "x")
    assert document.fetched_at == NOW
    assert document.digest == hashlib.sha256(b"<title>T</title>x").hexdigest()


async def test_a_page_is_fetched_once_a_day_whoever_asks(tmp_path):
    now = [NOW]
    async with WebServer(lambda asked: Reply(f"visit {len(asked.path)}")) as server:
        first = await open_pages(server, tmp_path).open(server.base_url)
        second = await open_pages(server, tmp_path, lambda: now[0]).open(server.base_url)
        now[0] = NOW + timedelta(days=1)
        await open_pages(server, tmp_path, lambda: now[0]).open(server.base_url)

    assert first == second
    assert len(server.paths()) == 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("*.json"))


async def test_a_kept_page_that_is_damaged_is_fetched_again(tmp_path):
    async with WebServer(lambda asked: Reply("x")) as server:
        await open_pages(server, tmp_path).open(server.base_url)
        (kept,) = tmp_path.glob("*.json")
        kept.write_text('{"url": 1')
        await open_pages(server, tmp_path).open(server.base_url)

    assert len(server.paths()) == 2


async def test_a_page_without_text_says_so():
    async with WebServer(lambda asked: Reply("<script>all()</script>")) as server:
        with pytest.raises(ToolError, match="has no text; it may only work in a browser"):
            await open_pages(server).open(server.base_url)


@pytest.mark.system
async def test_a_page_made_to_cost_time_or_memory_is_one_line():
    page = Page(url="http://x.test/", content_type="text/html", body=b"<a href='" * 300_000)

    with pytest.raises(ToolError, match=r"takes too long|too much time or memory"):
        await read_apart(page, timeout_s=2.0)


@pytest.mark.parametrize(
    "change",
    [
        {"fetched_at": "2026-11-22T11:00:00"},
        {"fetched_at": "2999-01-01T00:00:00+00:00"},
        {"text": 5},
        {"title": None},
        {"beside": 1},
    ],
    ids=str,
)
async def test_a_kept_page_of_another_form_or_of_the_future_is_fetched_again(tmp_path, change):
    async with WebServer(lambda asked: Reply("x")) as server:
        await open_pages(server, tmp_path).open(server.base_url)
        (kept,) = tmp_path.glob("*.json")
        kept.write_text(json.dumps(json.loads(kept.read_text()) | change))
        document = await open_pages(server, tmp_path).open(server.base_url)

    assert document.text == "x" and len(server.paths()) == 2
