"""Fetches web pages as text, and finds the parts of pages that are relevant to a question. Pages
are fetched through `net/`, parsed in a process that can only compute, and cached for a day."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from babyagi.errors import ToolError
from babyagi.files.private import make_folder, write_file
from babyagi.net.addresses import read_target
from babyagi.net.door import Door, Page
from babyagi.retrieval import page_text
from babyagi.retrieval.engines import Hit, Searcher
from babyagi.retrieval.page_text import PageText
from babyagi.retrieval.rank import BM25, Ranker, rank, split_parts, top_p
from babyagi.runtime.offload import Offload, run_blocking, run_inline
from babyagi.sandbox import confined
from babyagi.text import clean

READ_TIMEOUT_S = 20.0
# JSON writes a character beyond the first 65,536 with 12 bytes
MAX_SAID_BYTES = 15 * page_text.MAX_OFFICE_CHARS
KEPT_FOR = timedelta(days=1)
MAX_KEPT_PAGES = 500
MAX_READ_AT_ONCE = 2  # pages that are parsed at the same time
# it runs as a file, without importing the rest of this package
_SANDBOX = str(Path(confined.__file__).parent)
_PAGE_TEXT = (sys.executable, "-I", "-W", "ignore", page_text.__file__, _SANDBOX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The text of a fetched page, as Markdown.

    Attributes:
        url: the page's URL after redirects.
        digest: the SHA-256 of the page's bytes, in hexadecimal.
        is_cut: whether only the beginning of the page was fetched, because the page is too long.
    """

    url: str
    title: str
    text: str
    fetched_at: datetime
    digest: str
    is_cut: bool = False

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "fetched_at": self.fetched_at.isoformat()})

    @classmethod
    def from_json(cls, text: str) -> Document:
        """Return the document that `to_json` wrote. Raises `ValueError`, `KeyError` or `TypeError`
        for any other text."""
        fields = json.loads(text)
        found = cls(**{**fields, "fetched_at": datetime.fromisoformat(fields["fetched_at"])})
        words = (found.url, found.title, found.text, found.digest)
        if not all(isinstance(one, str) for one in words) or found.fetched_at.tzinfo is None:
            raise ValueError("a field has the wrong type")
        return found


Read = Callable[[Page], Awaitable[PageText]]


class Pages:
    """Fetches web pages as text.

    Args:
        clock: returns the current time, which becomes a document's `fetched_at`.
        folder: where documents are cached for a day, so that other tasks and retries do not fetch
            the page again. Where it cannot be written, nothing is cached.
        read: extracts the text of a page; None means `read_apart`.
        offload: runs blocking work outside the event loop.
    """

    def __init__(
        self,
        door: Door,
        *,
        clock: Callable[[], datetime],
        folder: Path,
        read: Read | None = None,
        offload: Offload = run_inline,
    ) -> None:
        self.offload = offload
        self._door, self._clock, self._folder = door, clock, folder
        self._read_page = read or read_apart
        self._slots = asyncio.Semaphore(MAX_READ_AT_ONCE)

    @property
    def only(self) -> tuple[str, ...]:
        """The domains at which pages may be opened; () for all."""
        return self._door.only

    async def open(self, url: str) -> Document:
        """Return the text of the page at the URL, from the cache or fetched.

        Raises:
            ToolError: the page cannot be fetched, or has no text. The message is one line.
        """
        url = url.strip().partition("#")[0]
        kept = await self.offload(lambda: self._find_kept(url))
        # it may be from a time when more domains were allowed
        if kept is not None and self._door.may_reach(read_target(kept.url)):
            return kept
        page = await self._door.fetch(url)
        async with self._slots:
            said = await self._read_page(page)
            document = await self.offload(lambda: self._make_document(page, said))
        await self.offload(lambda: self._keep(url, document))
        return document

    def _make_document(self, page: Page, said: PageText) -> Document:
        text = clean(said.text).strip()
        if not text:
            raise ToolError(f"{page.url} has no text; it may only work in a browser")
        title, now = " ".join(clean(said.title).split()), self._clock()
        digest = hashlib.sha256(page.body).hexdigest()
        return Document(
            url=page.url, title=title, text=text, fetched_at=now, digest=digest, is_cut=page.is_cut
        )

    # -- the cache ---------------------------------------------------------------------------------

    def _find_kept(self, url: str) -> Document | None:
        try:
            document = Document.from_json(_path(self._folder, url).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None  # the page is not in the cache, or its file is broken
        age = self._clock() - document.fetched_at
        return document if timedelta() <= age < KEPT_FOR else None

    def _keep(self, url: str, document: Document) -> None:
        with suppress(OSError):  # a page that is not cached is fetched again if it is needed again
            make_folder(self._folder)
            others = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in others[: max(0, len(others) - MAX_KEPT_PAGES + 1)]:
                path.unlink(missing_ok=True)
            write_file(_path(self._folder, url), document.to_json())


def _path(folder: Path, url: str) -> Path:
    return folder / f"{hashlib.sha256(url.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


async def read_apart(page: Page, *, timeout_s: float = READ_TIMEOUT_S) -> PageText:
    """Extract the text of the page with `page_text`, in a process that can only compute, where this
    machine can confine one, and whose time and memory are bounded.

    Raises:
        ToolError: the page has no text, or the process took too much time or memory, or crashed.
            The message is one line that begins with the page's URL.
    """
    process = await asyncio.create_subprocess_exec(
        *_PAGE_TEXT, page.content_type[:200], page.url,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True, env={},
    )  # fmt: skip
    try:
        async with asyncio.timeout(timeout_s):
            said, _ = await process.communicate(page.body)
    except TimeoutError:
        raise ToolError(f"{page.url} takes too long to parse") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:  # a page may have taken the process over
        read = json.loads(said[:MAX_SAID_BYTES])
        if "error" not in read:
            return PageText(title=str(read["title"]), text=str(read["text"]))
        fault = str(read["error"])
    except (ValueError, TypeError, KeyError):
        fault = "parsing takes too much time or memory"
    raise ToolError(f"{page.url} cannot be read: {fault}")


def read_document(
    name: str, body: bytes, *, media_type: str, timeout_s: float = READ_TIMEOUT_S
) -> str:
    """Return the text of a document as Markdown, with a heading for each page, message or sheet.
    It is extracted as by `read_apart`; this call blocks meanwhile.

    Args:
        media_type: the media type of a PDF, a Word document or a workbook.

    Raises:
        ToolError: the document has no text, or parsing takes too much time or memory. The message
            is one line that begins with `name`.
    """
    page = Page(url=name, content_type=media_type, body=body)
    said = run_blocking(read_apart(page, timeout_s=timeout_s))
    return clean("\n".join(said.text.strip().splitlines()))


# -- from a question to parts of pages
# --------------------------------------------------------------------------------------------------


MAX_PARTS = 8
MAX_TITLE_CHARS = 200  # of a page's title, which is ranked together with each part
TOP_P = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPart:
    """A part of a page that a search has found.

    Attributes:
        hit: the search result for the page.
        text: the part's text; if the page could not be opened, the snippet of the search result.
        document: the page; None if it could not be opened.
        fault: why the page could not be opened; '' if it was.
    """

    hit: Hit
    text: str
    document: Document | None = None
    fault: str = ""


class RetrieverMode(StrEnum):
    """What a `WebRetriever` gives of each search result."""

    SNIPPETS = "snippets"  # the snippet; no page is opened
    RAW_DOCUMENTS = "raw_documents"  # the whole page
    PREPROCESSED_DOCUMENTS = "preprocessed_documents"  # parts of the page


class WebRetriever:
    """Searches the web for a question, opens the first results, and finds the parts of their pages
    that are relevant to the question.

    Args:
        p: of the parts, ranked by relevance, the first ones are given whose shares reach `p`.
        top_k: the most parts that are given.
    """

    def __init__(
        self,
        searcher: Searcher,
        pages: Pages,
        *,
        ranker: Ranker = BM25,
        mode: RetrieverMode = RetrieverMode.PREPROCESSED_DOCUMENTS,
        p: float = TOP_P,
        top_k: int = MAX_PARTS,
    ) -> None:
        self.searcher, self._pages, self._ranker = searcher, pages, ranker
        self._mode, self._p, self._top_k = mode, p, top_k

    async def find_parts(
        self, question: str, *, n_pages: int, domains: Sequence[str] = ()
    ) -> tuple[str, list[WebPart]]:
        """Search with the question, open the first `n_pages` results, and return the name of the
        engine that answered and the most relevant parts of these pages, the best first.

        Raises:
            ToolError: the question is blank, or no engine answered.
        """
        engine, hits = await self.searcher.search(question, domains=domains)
        opened = await asyncio.gather(*(self._open(hit) for hit in _pages_of(hits)[:n_pages]))
        parts = [part for found in opened for part in found]
        return engine, await self._pages.offload(lambda: self._choose(question, parts))

    async def _open(self, hit: Hit) -> list[WebPart]:
        snippet = WebPart(hit=hit, text=hit.snippet)
        if self._mode is RetrieverMode.SNIPPETS:
            return [snippet]
        try:
            document = await self._pages.open(hit.url)
        except ToolError as error:
            return [replace(snippet, fault=error.what)]
        if self._mode is RetrieverMode.RAW_DOCUMENTS:
            return [replace(snippet, text=document.text, document=document)]
        return await self._pages.offload(lambda: _split(hit, document))

    def _choose(self, question: str, parts: Sequence[WebPart]) -> list[WebPart]:
        """Return the parts that are most relevant to the question, the best first. If none is
        relevant, return the first parts."""
        texts = [f"{part.hit.title[:MAX_TITLE_CHARS]}\n{part.text}" for part in parts]
        ranked = rank(question, texts, ranker=self._ranker)
        best = [parts[one.index] for one in top_p(ranked, self._p)]
        return (best or list(parts))[: self._top_k]


def _split(hit: Hit, document: Document) -> list[WebPart]:
    parts = split_parts(document.text.split("\n"))
    return [WebPart(hit=hit, text=one.text, document=document) for one in parts]


def _pages_of(hits: Sequence[Hit]) -> list[Hit]:
    """Return the results that have a URL; of several with the same URL, only the first."""
    return list({hit.url: hit for hit in reversed(hits) if hit.url}.values())[::-1]
