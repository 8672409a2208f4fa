"""The tools for the web: one searches it, the other opens a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from babyagi.retrieval.engines import TOP_K, Hit, HitKind
from babyagi.retrieval.pages import Document, Pages, WebPart, WebRetriever
from babyagi.retrieval.rank import BM25, Ranker, rank, split_parts
from babyagi.tasks import Effect, Fetched, Passage
from babyagi.tools.base import Sink, Tool, number_schema, takes, text_schema, texts_schema

WEB_SEARCH = "web_search"
OPEN_PAGE = "open_page"
MAX_DOMAINS = 10
MAX_PAGES = 5
MAX_PAGE_CHARS = 12_000
NOTHING_FOUND = "The search found nothing."
_QUERY = text_schema("What to search for.")
_SINK = Sink(sends=("query", "domains"))
_DOMAINS = texts_schema("Only pages of these domains, such as docs.python.org.", most=MAX_DOMAINS)
_PAGES = number_schema("How many results to open; 0 for snippets alone.", least=0, most=MAX_PAGES)
DESCRIPTION = (
    "Search the web. Gives titles, addresses and snippets; with `pages` it also opens that many of "
    "the first results, and gives the parts of them that bear on the query."
)


def build_web_search(
    retriever: WebRetriever,
    *,
    name: str = WEB_SEARCH,
    description: str = DESCRIPTION,
    n_pages: int | None = None,
    top_k: int = TOP_K,
    domains: Sequence[str] = (),
) -> Tool:
    """Return a tool that searches the web, and gives what the retriever finds in the first
    `n_pages` results. For 0 it opens no page, and gives the first `top_k` results: the engine's
    short answer, pages with snippets, and related questions.

    Args:
        n_pages: None lets each call choose, by `pages`.
        domains: the only domains to search; if there are none, a call that opens no page, or
            chooses, may name some.

    Raises:
        ValueError: `name` is not a valid name for a tool.
    """

    offered = {"pages": _PAGES} if n_pages is None else {}
    if not domains and not n_pages:
        offered["domains"] = _DOMAINS

    async def run(arguments: Mapping[str, Any]) -> Passage:
        query, where = arguments["query"], domains or arguments.get("domains", ())
        n = arguments.get("pages", 0) if n_pages is None else n_pages
        if not n:
            engine, hits = await retriever.searcher.search(query, domains=where, top_k=top_k)
            return _as_passage(render_hits(hits), name, engine)
        engine, parts = await retriever.find_parts(query, n_pages=n, domains=where)
        return _show_parts(parts, name, engine)

    return Tool(
        name=name,
        description=description,
        parameters=takes("query", query=_QUERY, **offered),
        effect=Effect.READ,
        sink=_SINK,
        run=run,
        timeout_s=180.0,
    )


def build_open_page(pages: Pages, *, ranker: Ranker = BM25) -> Tool:
    """Return the tool `open_page`, which gives the text of a web page, or the parts of it that are
    relevant to a topic."""

    async def run(arguments: Mapping[str, Any]) -> Passage:
        document = await pages.open(arguments["url"])
        about = arguments.get("about", "").strip()
        n = arguments.get("part", 1)
        found = await pages.offload(
            lambda: find_about(document, about, ranker) if about else cut_part(document, n)
        )
        return Passage(
            text=f"{describe(document)}\n\n{found}",
            origin=f"web:{document.url}",
            pages=(_fetched(document, arguments["url"]),),
        )

    return Tool(
        name=OPEN_PAGE,
        description="Open a page of the web, or a PDF there, and read its text.",
        parameters=takes(
            "url",
            url=text_schema("Its address, as a search gave it."),
            about=text_schema("Give only the parts that bear on this, such as `licence`."),
            part=number_schema(
                "Which part of a long page; the first one says how many there are.", least=1
            ),
        ),
        effect=Effect.READ,
        sink=Sink(addresses=("url",), only=pages.only),
        run=run,
        timeout_s=90.0,
    )


# -- text for the model
# --------------------------------------------------------------------------------------------------


def _as_passage(found: str, name: str, engine: str, *sources: str) -> Passage:
    sources = (*sources, f"search:{engine}")
    return Passage(text=found or NOTHING_FOUND, origin=f"tool:{name}", sources=sources)


def _show_parts(parts: Sequence[WebPart], name: str, engine: str) -> Passage:
    opened = {
        part.document.url: _fetched(part.document, part.hit.url) for part in parts if part.document
    }
    sources = (f"web:{url}" for url in opened)
    return replace(
        _as_passage(render_parts(parts), name, engine, *sources), pages=tuple(opened.values())
    )


def number(texts: Iterable[str]) -> str:
    """Return the texts as one, each with its number."""
    return "\n\n".join(f"{n}. {text}" for n, text in enumerate(texts, start=1))


def split_numbered(text: str) -> list[str]:
    """Return the texts that `number` has joined; a text that it did not make is one text."""
    texts, start = list[str](), len("1. ")
    while (end := text.find(f"\n\n{len(texts) + 2}. ", start)) >= 0:
        texts.append(text[start:end])
        start = end + len(f"\n\n{len(texts) + 1}. ")
    return [*texts, text[start:]] if text.startswith("1. ") else [text]


def render_hits(hits: Sequence[Hit]) -> str:
    return number(map(_render_hit, hits))


def _render_hit(hit: Hit) -> str:
    match hit.kind:
        case HitKind.ANSWER:
            lines = (f"Answer: {hit.snippet}", hit.title, hit.url)
        case HitKind.QUESTION:
            lines = (f"People also ask: {hit.title}", hit.url, hit.snippet)
        case _:
            lines = (hit.title, hit.url, hit.snippet)
    return "\n".join(filter(None, lines))


def render_parts(parts: Sequence[WebPart]) -> str:
    return number(map(_render_part, parts))


def _render_part(part: WebPart) -> str:
    if part.document is None and not part.fault:
        return _render_hit(part.hit)
    if part.document is None:
        where = f"{part.hit.title}\n{part.hit.url} (not opened: {part.fault}; its snippet)"
    else:
        where = describe(part.document)
    return f"{where}\n{part.text}"


def _fetched(document: Document, asked_url: str) -> Fetched:
    asked = asked_url.strip().partition("#")[0]
    return Fetched(
        url=document.url,
        title=document.title,
        fetched_at=document.fetched_at,
        digest=document.digest,
        asked_url=asked if asked != document.url else "",
    )


def describe(document: Document) -> str:
    """Return the head of a page's text for a model: the page's title, its address, when it was
    fetched, and the digest of its content."""
    at = f"{document.fetched_at:%Y-%m-%d %H:%M} UTC"
    cut = ", only its beginning" if document.is_cut else ""
    place = f"{document.url} (fetched {at}, sha256 {document.digest[:16]}{cut})"
    return "\n".join(filter(None, [document.title, place]))


def cut_part(document: Document, n: int) -> str:
    """Return the n-th part of a page's text for a model, counted from 1, with the number of parts
    if there are several."""
    n_parts = max(1, -(-len(document.text) // MAX_PAGE_CHARS))
    shown = document.text[(n - 1) * MAX_PAGE_CHARS : n * MAX_PAGE_CHARS]
    if n_parts == 1 and n == 1:
        return shown
    if not shown:
        return f"There is no part {n}: the page has {n_parts}."
    return f"{shown}\n\n(part {n} of {n_parts})"


def find_about(document: Document, about: str, ranker: Ranker = BM25) -> str:
    """Return the parts of a page that are relevant to the topic `about` as text for a model, in the
    order of the page; the page's beginning if none is relevant."""
    texts = [part.text for part in split_parts(document.text.split("\n"))]
    kept: list[int] = []
    n_chars = 0
    for one in rank(about, texts, ranker=ranker):
        n_chars += len(texts[one.index])
        if kept and n_chars > MAX_PAGE_CHARS // 2:
            break
        kept.append(one.index)
    if not kept:
        none = f"No part of the page is relevant to {about[:200]!r}"
        return f"{none}; it begins:\n{document.text[:2000]}"
    return "\n\n[…]\n\n".join(texts[index] for index in sorted(kept))
