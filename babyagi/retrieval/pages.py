"""Web pages as text: fetched through `net/`, parsed in a separate process, cached for a day; and
the search for their parts that are relevant to a question."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from babyagi.errors import ToolError
from babyagi.files.private import make_folder, write_file
from babyagi.net.door import Door, Page
from babyagi.offload import Offload, run_inline
from babyagi.retrieval.engines import Hit, Searcher
from babyagi.retrieval.rank import BM25, Ranker, Scored, rank, split_parts, top_p
from babyagi.text import clean

READ_TIMEOUT_S = 20.0
MAX_SAID_BYTES = 6 * 2**20
KEPT_FOR = timedelta(days=1)
MAX_KEPT_PAGES = 500
MAX_READ_AT_ONCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A page as text: its address, the time of fetching, and the digest of its bytes. The text is
    Markdown; `is_cut` says that the page was longer than the fetched part."""

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
        """Parse what `to_json` wrote. Raises ValueError, KeyError or TypeError for anything
        else."""
        fields = json.loads(text)
        found = cls(**{**fields, "fetched_at": datetime.fromisoformat(fields["fetched_at"])})
        words = (found.url, found.title, found.text, found.digest)
        if not all(isinstance(one, str) for one in words) or found.fetched_at.tzinfo is None:
            raise ValueError("a field has the wrong type")
        return found


Read = Callable[[Page], Awaitable[Mapping[str, str]]]


class Pages:
    """Opens pages, and parses them with `read`, by default in a separate process.

    Fetched pages are cached in `folder` for a day, if there is one, so that no page is fetched
    twice by two tasks or by a retry. Work that grows with the page, or waits for the disk, runs in
    `offload`.
    """

    def __init__(
        self,
        door: Door,
        *,
        clock: Callable[[], datetime],
        folder: Path | None = None,
        read: Read | None = None,
        offload: Offload = run_inline,
    ) -> None:
        self.offload = offload
        self._door = door
        self._read_page = read or read_apart
        self._clock = clock
        self._folder = folder
        self._slots = asyncio.Semaphore(MAX_READ_AT_ONCE)

    async def open(self, url: str) -> Document:
        """Return the document at the address.

        Raises:
            ToolError: one line: it cannot be fetched, or has no text.
        """
        url = url.strip().partition("#")[0]
        if (kept := await self.offload(lambda: self._find_kept(url))) is not None:
            return kept
        page = await self._door.fetch(url)
        async with self._slots:
            document = replace(await self._read(page), is_cut=page.is_cut)
        await self.offload(lambda: self._keep(url, document))
        return document

    async def _read(self, page: Page) -> Document:
        said = await self._read_page(page)
        if "error" in said:
            raise ToolError(f"{page.url} cannot be read: {said['error']}")
        return await self.offload(lambda: self._make_document(page, said))

    def _make_document(self, page: Page, said: Mapping[str, str]) -> Document:
        text = clean(said["text"]).strip()
        if not text:
            raise ToolError(f"{page.url} has no text; it may need a browser to be seen")
        return Document(
            url=page.url,
            title=" ".join(clean(said["title"]).split()),
            text=text,
            fetched_at=self._clock(),
            digest=hashlib.sha256(page.body).hexdigest(),
        )

    # -- what is kept ------------------------------------------------------------------------------

    def _find_kept(self, url: str) -> Document | None:
        if self._folder is None:
            return None
        try:
            document = Document.from_json(_path(self._folder, url).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None  # there is none, or it is broken
        age = self._clock() - document.fetched_at
        return document if timedelta() <= age < KEPT_FOR else None

    def _keep(self, url: str, document: Document) -> None:
        if self._folder is None:
            return
        try:
            make_folder(self._folder)
            others = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in others[: max(0, len(others) - MAX_KEPT_PAGES + 1)]:
                path.unlink(missing_ok=True)
            write_file(_path(self._folder, url), document.to_json())
        except OSError:
            pass  # on a full disk the page is only fetched a second time


def _path(folder: Path, url: str) -> Path:
    return folder / f"{hashlib.sha256(url.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


async def read_apart(page: Page, *, timeout_s: float = READ_TIMEOUT_S) -> dict[str, str]:
    """Return what `page_text` extracts from the page, in a process with bounded time and memory.

    Raises:
        ToolError: it took too much time or memory, or crashed.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-W", "ignore", "-m", "babyagi.retrieval.page_text",
        page.content_type[:200], page.url,
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
    try:
        found = json.loads(said[:MAX_SAID_BYTES])
        return {key: str(found[key]) for key in ("title", "text", "error") if key in found}
    except (ValueError, TypeError):
        raise ToolError(
            f"{page.url} cannot be read: its text takes too much time or memory"
        ) from None


# -- from a question to parts of pages
# --------------------------------------------------------------------------------------------------


MAX_PARTS = 8
MAX_TITLE_CHARS = 200  # that each part is ranked with
TOP_P = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPart:
    """A part of a page. When the page could not be opened, it is the search's snippet, `document`
    is None, and `fault` says why."""

    hit: Hit
    text: str
    score: float
    document: Document | None = None
    fault: str = ""


class WebRetriever:
    """Finds parts of pages that are relevant to a question."""

    def __init__(self, searcher: Searcher, pages: Pages, *, ranker: Ranker = BM25) -> None:
        self._searcher = searcher
        self._pages = pages
        self._ranker = ranker

    async def find_parts(
        self,
        question: str,
        *,
        n_pages: int,
        domains: Sequence[str] = (),
    ) -> tuple[str, list[WebPart]]:
        """Return the name of the engine that answered, and the best parts of the first `n_pages`
        results, best first.

        Raises:
            ToolError: no engine answers.
        """
        engine, hits = await self._searcher.search(question, domains=domains)
        opened = await asyncio.gather(*(self._open(hit) for hit in _pages_of(hits)[:n_pages]))
        parts = [part for found in opened for part in found]
        best = await self._pages.offload(lambda: _choose(question, parts, self._ranker))
        return engine, best

    async def _open(self, hit: Hit) -> list[WebPart]:
        try:
            document = await self._pages.open(hit.url)
        except ToolError as error:
            return [WebPart(hit=hit, text=hit.snippet, score=hit.score, fault=error.what)]
        return await self._pages.offload(lambda: _split(hit, document))


def _split(hit: Hit, document: Document) -> list[WebPart]:
    return [
        WebPart(
            hit=hit,
            text="\n".join(filter(None, [" > ".join(part.headings), part.text])),
            score=hit.score,
            document=document,
        )
        for part in split_parts(document.text)
    ]


def _choose(question: str, parts: Sequence[WebPart], ranker: Ranker) -> list[WebPart]:
    """Return the best parts, best first; if none is relevant to the question, the first parts."""
    texts = [f"{part.hit.title[:MAX_TITLE_CHARS]}\n{part.text}" for part in parts]
    ranked = rank(question, texts, ranker=ranker)
    best = top_p(ranked, TOP_P)[:MAX_PARTS] or [
        Scored(index=at, score=0.0, share=0.0) for at in range(min(len(parts), MAX_PARTS))
    ]
    return [parts[one.index] for one in best]


def _pages_of(hits: Sequence[Hit]) -> list[Hit]:
    """Return the results that have an address, each address once."""
    return list({hit.url: hit for hit in reversed(hits) if hit.url}.values())[::-1]
