"""Search engines: each takes a query and returns results, from its own request and response format.

With a key or an own address: Serper, SerpAPI, SearchApi, Brave, Tavily, SearXNG. Without: three
open services in turn; one that refuses is skipped for a while.

Sources, read in November 2026: https://serpapi.com/search-api,
https://www.searchapi.io/docs/google, https://serper.dev/playground,
https://api-dashboard.search.brave.com/app/documentation/web-search,
https://docs.tavily.com/documentation/api-reference/endpoint/search,
https://docs.searxng.org/dev/search_api.html, https://about.marginalia-search.com/article/api,
https://www.mediawiki.org/wiki/API:Search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from html import unescape
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from babyagi.errors import ToolError
from babyagi.net.addresses import Proxies
from babyagi.net.door import Request, ask_json, ask_page, require_https
from babyagi.text import clean

MAX_QUERY_CHARS = 2000
MAX_FIELD_CHARS = 1000
TOP_K = 10
REST_S = 300.0  # of an engine of the ring that failed
ANSWER_BOX_WEIGHT = 5


class HitKind(StrEnum):
    ANSWER = "answer"  # the engine's own short one
    RESULT = "result"
    QUESTION = "question"  # that people also ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result of a search, as the engine shows it; each field may be empty.

    `score` is its share of the relevance of all results, computed from its rank; the scores add up
    to 1.
    """

    title: str
    url: str
    snippet: str
    kind: HitKind = HitKind.RESULT
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How to query one engine, and how to read its answer.

    `make` takes the base address, the query, the number of results and the key.
    """

    name: str
    base_url: str
    make: Callable[[str, str, int, str], Request]
    read: Callable[[Mapping[str, Any]], Iterator[Hit]]
    key_variable: str = ""  # empty if it needs none
    timeout_s: float = 30.0
    is_page: bool = False  # `read` then gets {"page": the HTML}


# -- requests


def _get(path: str, query_name: str, count_name: str = "", **fixed: str) -> Any:
    """Return a function that makes the request of an engine whose parameters are all in the
    address. A `key` among `fixed` names the parameter for the key."""
    key_name = fixed.pop("key", "")

    def make(base_url: str, query: str, n_results: int, key: str) -> Request:
        params = {**fixed, query_name: query}
        if count_name:
            params[count_name] = str(n_results)
        if key_name:
            params[key_name] = key
        return Request(url=base_url + path, params=params, secret=key)

    return make


def _ask_brave(base_url: str, query: str, n_results: int, key: str) -> Request:
    params = {"q": query, "count": str(n_results)}
    headers = {"X-Subscription-Token": key}
    return Request(url=f"{base_url}/res/v1/web/search", params=params, headers=headers, secret=key)


def _ask_serper(base_url: str, query: str, n_results: int, key: str) -> Request:
    body = {"q": query, "num": n_results}
    return Request(url=f"{base_url}/search", headers={"X-API-KEY": key}, body=body, secret=key)


def _ask_tavily(base_url: str, query: str, n_results: int, key: str) -> Request:
    body = {"query": query, "max_results": n_results, "include_answer": False}
    headers = {"Authorization": f"Bearer {key}"}
    return Request(url=f"{base_url}/search", headers=headers, body=body, secret=key)


def _ask_marginalia(base_url: str, query: str, n_results: int, key: str) -> Request:
    params = {"query": query, "count": str(n_results)}
    return Request(url=f"{base_url}/search", params=params, headers={"API-Key": "public"})


# -- answers


def _hits(found: Any, title: str, url: str, snippet: str) -> Iterator[Hit]:
    """Return the entries of a list, read from the fields with these names; empty entries are left
    out."""
    for entry in _entries(found):
        hit = Hit(
            title=_field(entry, title),
            url=_web_address(entry.get(url)),
            snippet=_field(entry, snippet),
        )
        if hit.title or hit.url or hit.snippet:
            yield hit


def _entries(found: Any) -> Iterator[Mapping[str, Any]]:
    yield from (one for one in (found if isinstance(found, list) else []) if isinstance(one, dict))


def _answer(box: Any, *texts: str) -> Iterator[Hit]:
    """Return the engine's own short answer, if it gives one."""
    if isinstance(box, dict):
        text = next((found for name in texts if (found := _field(box, name))), "")
        if text:
            url = _web_address(box.get("link") or box.get("url"))
            yield Hit(title=_field(box, "title"), url=url, snippet=text, kind=HitKind.ANSWER)


def _asked_also(found: Any) -> Iterator[Hit]:
    for entry in _entries(found):
        if question := _field(entry, "question"):
            source = entry.get("source")
            link = entry.get("link") or (source.get("link") if isinstance(source, dict) else "")
            text = _field(entry, "snippet") or _field(entry, "answer")
            url = _web_address(link)
            yield Hit(title=question, url=url, snippet=text, kind=HitKind.QUESTION)


def _read_serper(found: Mapping[str, Any]) -> Iterator[Hit]:
    yield from _answer(found.get("answerBox"), "answer", "snippet")
    yield from _hits(found.get("organic"), "title", "link", "snippet")
    yield from _asked_also(found.get("peopleAlsoAsk"))


def _read_serpapi(found: Mapping[str, Any]) -> Iterator[Hit]:
    yield from _answer(found.get("answer_box"), "answer", "result", "snippet")
    yield from _hits(found.get("organic_results"), "title", "link", "snippet")
    yield from _asked_also(found.get("related_questions"))


def _read_searchapi(found: Mapping[str, Any]) -> Iterator[Hit]:
    yield from _answer(found.get("answer_box"), "answer", "snippet")
    yield from _answer(found.get("knowledge_graph"), "description")
    yield from _hits(found.get("organic_results"), "title", "link", "snippet")
    yield from _asked_also(found.get("related_questions"))


def _read_brave(found: Mapping[str, Any]) -> Iterator[Hit]:
    web = found.get("web")
    results = web.get("results") if isinstance(web, dict) else None
    yield from _hits(results, "title", "url", "description")


def _read_content(found: Mapping[str, Any]) -> Iterator[Hit]:
    yield from _hits(found.get("results"), "title", "url", "content")


def _read_marginalia(found: Mapping[str, Any]) -> Iterator[Hit]:
    yield from _hits(found.get("results"), "title", "url", "description")


# the time of each grows linearly with the length of the page
_LINK = re.compile(r"<a\s[^<>]*>")
_PART = re.compile(r'\sclass="result__(a|snippet)"')
_HREF = re.compile(r'\shref="([^"]{1,2500})"')
MAX_LINK_CHARS = 3000


def _find_links(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield for each link of a result: whether it is the title (`a`) or the `snippet`, its address,
    and its text."""
    for link in _LINK.finditer(page):
        part, href = _PART.search(link[0]), _HREF.search(link[0])
        end = page.find("</a>", link.end(), link.end() + MAX_LINK_CHARS) if part and href else -1
        if part and href and end >= 0:
            yield part[1], href[1], page[link.end() : end]


def _read_duckduckgo(found: Mapping[str, Any]) -> Iterator[Hit]:
    """Parse the page of results: each has a link with its title, and a link with its snippet."""
    hits: list[Hit] = []
    for part, href, inner in _find_links(str(found.get("page", ""))):
        text = _field({"text": inner}, "text")
        if part == "a":
            url = unescape(href)
            url = _web_address(f"https:{url}" if url.startswith("//") else url)
            hits.append(Hit(title=text, url=url, snippet=""))
        elif hits:
            hits[-1] = replace(hits[-1], snippet=text)
    yield from (hit for hit in hits if hit.url and "duckduckgo.com/y.js" not in hit.url)


def _read_wikipedia(found: Mapping[str, Any]) -> Iterator[Hit]:
    query = found.get("query")
    for entry in _entries(query.get("search") if isinstance(query, dict) else None):
        if title := _field(entry, "title"):
            url = f"https://en.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}"
            yield Hit(title=title, url=url, snippet=_field(entry, "snippet"))


_TAG = re.compile(r"<[^<>]{0,300}>")


def _field(entry: Mapping[str, Any], name: str) -> str:
    """Return a field as one line of text without markup; '' when it is not text."""
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = unescape(_TAG.sub("", str(value)[: 10 * MAX_FIELD_CHARS]))
    return " ".join(clean(text).split())[:MAX_FIELD_CHARS]


def _web_address(value: Any) -> str:
    """Return an http or https address without the engine's redirect around it; '' when it is not
    one."""
    if not isinstance(value, str) or len(value) > 2000 or not value.isprintable():
        return ""
    try:
        parts = urlsplit(value)
        wrapped = parse_qs(parts.query).get("uddg")
    except ValueError:
        return ""
    if wrapped and parts.netloc.endswith("duckduckgo.com"):
        return _web_address(wrapped[0])
    return value if parts.scheme in ("http", "https") and parts.netloc else ""


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            name="serper",
            base_url="https://google.serper.dev",
            make=_ask_serper,
            read=_read_serper,
            key_variable="SERPER_API_KEY",
        ),
        Engine(
            name="serpapi",
            base_url="https://serpapi.com",
            make=_get("/search.json", "q", key="api_key", engine="google"),
            read=_read_serpapi,
            key_variable="SERPAPI_API_KEY",
        ),
        Engine(
            name="searchapi",
            base_url="https://www.searchapi.io",
            make=_get("/api/v1/search", "q", key="api_key", engine="google"),
            read=_read_searchapi,
            key_variable="SEARCHAPI_API_KEY",
            timeout_s=90.0,
        ),
        Engine(
            name="brave",
            base_url="https://api.search.brave.com",
            make=_ask_brave,
            read=_read_brave,
            key_variable="BRAVE_API_KEY",
        ),
        Engine(
            name="tavily",
            base_url="https://api.tavily.com",
            make=_ask_tavily,
            read=_read_content,
            key_variable="TAVILY_API_KEY",
        ),
        Engine(
            name="searxng",
            base_url="",
            make=_get("/search", "q", format="json"),
            read=_read_content,
        ),
        Engine(
            name="duckduckgo",
            base_url="https://html.duckduckgo.com",
            make=_get("/html/", "q"),
            read=_read_duckduckgo,
            is_page=True,
        ),
        Engine(
            name="marginalia",
            base_url="https://api2.marginalia-search.com",
            make=_ask_marginalia,
            read=_read_marginalia,
        ),
        Engine(
            name="wikipedia",
            base_url="https://en.wikipedia.org",
            make=_get(
                "/w/api.php", "srsearch", "srlimit", action="query", list="search", format="json"
            ),
            read=_read_wikipedia,
        ),
    )
}
KEYLESS = ("duckduckgo", "marginalia", "wikipedia")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """An engine with its address and its key."""

    engine: Engine
    base_url: str
    key: str = field(default="", repr=False)


class Searcher:
    """Queries engines in order until one answers. An engine that failed is skipped for `REST_S`."""

    def __init__(
        self,
        engines: Sequence[Answering],
        *,
        monotonic: Callable[[], float],
        proxies: Proxies | None = None,
    ) -> None:
        self._engines = [
            Answering(engine=one.engine, base_url=require_https(one.base_url), key=one.key)
            for one in engines
        ]
        self._monotonic = monotonic
        self._proxies = proxies
        self._rests_until: dict[str, float] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.engine.name for one in self._engines)

    async def search(
        self, query: str, *, domains: Sequence[str] = (), top_k: int = TOP_K
    ) -> tuple[str, list[Hit]]:
        """Return the name of the engine that answered, and at most `top_k` results, the best first.

        Raises:
            ToolError: one line: the query is empty, or no engine answers.
        """
        asked = scope(query, domains)
        now, faults = self._monotonic(), []
        awake = [one for one in self._engines if self._rests_until.get(one.engine.name, 0) <= now]
        for one in awake or self._engines:
            try:
                return one.engine.name, await self._ask(one, asked, top_k)
            except ToolError as error:
                faults.append(f"{one.engine.name}: {error.what}")
                self._rests_until[one.engine.name] = now + REST_S
        raise ToolError("; ".join(faults))

    async def _ask(self, one: Answering, query: str, top_k: int) -> list[Hit]:
        request = one.engine.make(one.base_url, query, top_k, one.key)
        ask = ask_page if one.engine.is_page else ask_json
        found = await ask(request, timeout_s=one.engine.timeout_s, proxies=self._proxies)
        hits = list(one.engine.read(found))[:top_k]
        said = found.get("error")
        if not hits and isinstance(said, str) and "hasn't returned any results" not in said:
            raise ToolError("the search engine gave an error in place of results")
        return with_scores(hits)


def scope(query: str, domains: Sequence[str]) -> str:
    """Return the query, limited to the domains.

    Raises:
        ToolError: it is empty.
    """
    words = " ".join(query.split())[:MAX_QUERY_CHARS]
    if not words:
        raise ToolError("there is nothing to search for: the query is empty")
    sites = [re.sub(r"[^\w.:/-]", "", domain)[:200] for domain in domains]
    places = " OR ".join(f"site:{site}" for site in sites if site)
    return f"{places} {words}" if places else words


def with_scores(hits: Sequence[Hit]) -> list[Hit]:
    """Return the results with scores that fall with their rank; a short answer scores five times as
    much."""
    weights = [
        (len(hits) - at) * (ANSWER_BOX_WEIGHT if hit.kind is HitKind.ANSWER else 1)
        for at, hit in enumerate(hits)
    ]
    total = sum(weights)
    return [replace(hit, score=weight / total) for hit, weight in zip(hits, weights, strict=True)]
