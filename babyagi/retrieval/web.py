"""From a question to parts of pages: search, open the first results, keep what bears on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from babyagi.errors import ToolError
from babyagi.retrieval.engines import Hit, Searcher
from babyagi.retrieval.pages import Document, Pages
from babyagi.retrieval.rank import Scored, rank, split_parts, top_p

MAX_PARTS = 8
TOP_P = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPart:
    """A part of a page, or the search's own snippet where the page could not be opened (`document`
    is None then, and `fault` says why)."""

    hit: Hit
    text: str
    score: float
    document: Document | None = None
    fault: str = ""


class WebRetriever:
    """Finds parts of pages that bear on a question."""

    def __init__(self, searcher: Searcher, pages: Pages) -> None:
        self._searcher = searcher
        self._pages = pages

    async def find_parts(
        self,
        question: str,
        *,
        n_pages: int,
        domains: Sequence[str] = (),
        max_parts: int = MAX_PARTS,
    ) -> tuple[str, list[WebPart]]:
        """Return the name of the engine that answered, and the best parts of the first `n_pages`
        results, the best first.

        Raises:
            ToolError: no engine answers.
        """
        engine, hits = await self._searcher.search(question, domains=domains)
        opened = await asyncio.gather(*(self._open(hit) for hit in _pages_of(hits)[:n_pages]))
        parts = [part for found in opened for part in found]
        ranked = rank(question, [f"{part.hit.title}\n{part.text}" for part in parts])
        best = top_p(ranked, TOP_P)[:max_parts] or [
            Scored(index=at, score=0.0, share=0.0) for at in range(min(len(parts), max_parts))
        ]
        return engine, [parts[one.index] for one in best]

    async def _open(self, hit: Hit) -> list[WebPart]:
        try:
            document = await self._pages.open(hit.url)
        except ToolError as error:
            return [WebPart(hit=hit, text=hit.snippet, score=hit.score, fault=error.what)]
        return [
            WebPart(
                hit=hit,
                text="\n".join(filter(None, [" > ".join(part.headings), part.text])),
                score=hit.score,
                document=document,
            )
            for part in split_parts(document.text)
        ]


def _pages_of(hits: Sequence[Hit]) -> list[Hit]:
    """The results that have an address, each address once."""
    return list({hit.url: hit for hit in reversed(hits) if hit.url}.values())[::-1]
