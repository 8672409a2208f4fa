"""Pages as documents: fetched once, read apart, kept for a day."""

import asyncio
import hashlib
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from babyagi.errors import ToolError
from babyagi.files.folder import OFFICE_BY_SUFFIX
from babyagi.net.door import Door, Page
from babyagi.retrieval import page_text
from babyagi.retrieval.pages import Pages, read_apart
from babyagi.sandbox.confined import __file__ as SANDBOX
from tests.retrieval.test_office_text import make_docx, make_xlsx, paragraph
from tests.small_web import NO_CACHE, make_pdf, read_here
from tests.web_server import Reply, WebServer

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def open_pages(server, folder=NO_CACHE, clock=lambda: NOW):
    door = Door(allow=[f"127.0.0.1:{server.port}"], pause_s=0.0)
    return Pages(door, clock=clock, folder=folder, read=read_here)


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


WORDS = " ".join(f"<p>Gulls nest on <a href='/roof{n}'>roof {n}</a>.</p>" for n in range(400))
DOCUMENTS = {
    "a long page": (f"<title>T</title><nav>x</nav><article>{WORDS}".encode(), "text/html"),
    "a page in another encoding": ("<p>\u65e5\u672c".encode("shift_jis"), "text/html;charset=sjis"),
    "PDF": (make_pdf("Gulls nest on roofs."), "application/pdf"),
    "Word": (make_docx(paragraph("Gulls")), OFFICE_BY_SUFFIX[".docx"]),
    "Excel": (
        make_xlsx('<row><c t="s"><v>0</v></c><c><v>45000.5</v></c></row>'),
        OFFICE_BY_SUFFIX[".xlsx"],
    ),
}


@pytest.mark.system
@pytest.mark.parametrize("name", DOCUMENTS)
async def test_what_is_parsed_in_the_sandbox_gives_the_same_text(name):
    body, content_type = DOCUMENTS[name]
    page = Page(url="https://site.test/a", content_type=content_type, body=body)

    said, expected = await asyncio.gather(read_apart(page), read_here(page))

    assert said == expected and said.text


def parse_in_child(change, body=b"<p>x"):
    """Run the program that parses pages after `change`, a piece of code, was run in it."""
    folders = [str(Path(file).parent) for file in (page_text.__file__, SANDBOX)]
    code = f"import sys; sys.path[:0] = {folders}\nimport page_text, confined\n{change}"
    process = subprocess.run(
        [sys.executable, "-I", "-c", f"{code}\npage_text.main()", folders[1], "text/html", ""],
        input=body, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return json.loads(process.stdout)


TAKEN_OVER = """
import os, socket
def reach_out(body, **_):
    reached = []
    for attempt in (
        lambda: os.open("/etc/hostname", os.O_RDONLY),
        lambda: os.listdir("/"),
        lambda: socket.socket(),
        lambda: os.fork(),
        lambda: os.execv("/bin/true", ["true"]),
        lambda: os.kill(os.getppid(), 0),
    ):
        try:
            reached.append(attempt())
        except PermissionError:
            pass
    return page_text.PageText(title="", text=f"reached {reached}")
page_text.read_text = reach_out
"""


@pytest.mark.system
def test_a_parser_that_a_page_took_over_reaches_nothing():
    assert parse_in_child(TAKEN_OVER) == {"title": "", "text": "reached []"}


@pytest.mark.system
def test_where_no_sandbox_can_be_had_a_page_is_parsed_within_bounds_all_the_same():
    unconfined = """
confined.ARCHITECTURES = {}
def tell_bounds(body, **_):
    import resource
    bounds = [resource.getrlimit(getattr(resource, f"RLIMIT_{n}"))[0] for n in ("CPU", "AS")]
    return page_text.PageText(title="", text=str(bounds))
page_text.read_text = tell_bounds
"""
    bounds = [page_text.MAX_CPU_S, page_text.MAX_MEMORY_BYTES]

    assert parse_in_child(unconfined)["text"] == str(bounds)


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
