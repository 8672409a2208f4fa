"""Searches the web with one of several search engines.

Serper, SerpAPI, SearchApi, Brave and Tavily need a key; SearXNG needs an address. If none of these
is set up, three services without keys are used: DuckDuckGo, and if it fails Marginalia, and then
Wikipedia. An engine that has failed is skipped for `REST_S`.

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
REST_S = 300.0  # how long an engine that failed is skipped
ANSWER_BOX_WEIGHT = 5  # how much more the engine's short answer scores than a page


class HitKind(StrEnum):
    ANSWER = "answer"  # a short answer that the engine gives itself
    RESULT = "result"
    QUESTION = "question"  # a related question, as in "People also ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result of a search. Each text may be empty. `score` is computed from the result's rank,
    and the scores of all results of a search add up to 1."""

    title: str
    url: str
    snippet: str
    kind: HitKind = HitKind.RESULT
    score: float = 0.0


Read = Callable[[Mapping[str, Any]], Iterator[Hit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A search engine.

    Attributes:
        fields: the fields of a request: in its address, or with `is_post` in its body. As a value
            here and in `headers`, `QUERY`, `N`, `KEY` and `BEARER` stand for the query, the number
            of results, and the key.
        read: yields the results in the engine's answer, which is a JSON object.
        key_variable: the environment variable with the key; '' if the engine needs none.
        key: the key with which it is queried.
        is_page: whether the engine answers with HTML, which `read` gets as `{"page": HTML}`.
    """

    name: str
    base_url: str
    path: str
    fields: Mapping[str, Any]
    read: Read
    headers: Mapping[str, str] = field(default_factory=dict)
    key_variable: str = ""
    key: str = field(default="", repr=False)
    timeout_s: float = 30.0
    is_post: bool = False
    is_page: bool = False

    def make(self, query: str, n_results: int) -> Request:
        """Return the request for a query."""
        known = {QUERY: query, N: n_results, KEY: self.key, BEARER: f"Bearer {self.key}"}
        given = {name: known.get(value, value) for name, value in self.fields.items()}
        headers = {name: str(known.get(value, value)) for name, value in self.headers.items()}
        url = self.base_url + self.path
        if self.is_post:
            return Request(url=url, headers=headers, body=given, secret=self.key)
        params = {name: str(value) for name, value in given.items()}
        return Request(url=url, params=params, headers=headers, secret=self.key)


QUERY, N, KEY, BEARER = "{query}", "{n}", "{key}", "Bearer {key}"

# -- answers


def _listed(path: str, url: str, snippet: str, *boxes: tuple[str, ...], also: str = "") -> Read:
    """Return the `read` of an engine that answers with a list of results.

    Args:
        path: the field with the list; fields in one another are parted by full stops.
        url, snippet: the names of these fields of a result.
        boxes: for each short answer of the engine's own, the field with it, and then the names of
            the fields of which the first that is not empty is its text.
        also: the field with related questions.
    """

    def read(found: Mapping[str, Any]) -> Iterator[Hit]:
        for name, *texts in boxes:
            yield from _answer(found.get(name), texts)
        listed: Any = found
        for name in path.split("."):
            listed = listed.get(name) if isinstance(listed, dict) else None
        for entry in entries(listed):
            hit = Hit(
                title=_field(entry, "title"),
                url=_web_address(entry.get(url)),
                snippet=_field(entry, snippet),
            )
            if hit.title or hit.url or hit.snippet:
                yield hit
        yield from _asked_also(found.get(also))

    return read


def entries(found: object) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list in a service's answer; none if the value is not a list."""
    yield from (one for one in (found if isinstance(found, list) else []) if isinstance(one, dict))


def _answer(box: Any, texts: Sequence[str]) -> Iterator[Hit]:
    """Yield the engine's own short answer, if it gives one: the first of the fields `texts` of
    `box` that is not empty."""
    if isinstance(box, dict):
        text = next((found for name in texts if (found := _field(box, name))), "")
        if text:
            url = _web_address(box.get("link") or box.get("url"))
            yield Hit(title=_field(box, "title"), url=url, snippet=text, kind=HitKind.ANSWER)


def _asked_also(found: Any) -> Iterator[Hit]:
    for entry in entries(found):
        if question := _field(entry, "question"):
            source = entry.get("source")
            link = entry.get("link") or (source.get("link") if isinstance(source, dict) else "")
            text = _field(entry, "snippet") or _field(entry, "answer")
            url = _web_address(link)
            yield Hit(title=question, url=url, snippet=text, kind=HitKind.QUESTION)


# patterns whose time grows only linearly with the length of the page
_LINK = re.compile(r"<a\s[^<>]*>")
_PART = re.compile(r'\sclass="result__(a|snippet)"')
_HREF = re.compile(r'\shref="([^"]{1,2500})"')
MAX_LINK_CHARS = 3000


def _find_links(page: str) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, URL, text) for each link to a result in DuckDuckGo's page. The text is the
    result's title if the kind is `a`, and its snippet if the kind is `snippet`."""
    for link in _LINK.finditer(page):
        part, href = _PART.search(link[0]), _HREF.search(link[0])
        end = page.find("</a>", link.end(), link.end() + MAX_LINK_CHARS) if part and href else -1
        if part and href and end >= 0:
            yield part[1], href[1], page[link.end() : end]


def _read_duckduckgo(found: Mapping[str, Any]) -> Iterator[Hit]:
    """Yield the results in DuckDuckGo's page, without advertisements."""
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
    for entry in entries(query.get("search") if isinstance(query, dict) else None):
        if title := _field(entry, "title"):
            url = f"https://en.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}"
            yield Hit(title=title, url=url, snippet=_field(entry, "snippet"))


_TAG = re.compile(r"<[^<>]{0,300}>")


def _field(entry: Mapping[str, Any], name: str) -> str:
    """Return the field of an entry as one line without markup; '' if it is neither a text nor a
    number."""
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = unescape(_TAG.sub("", str(value)[: 10 * MAX_FIELD_CHARS]))
    return " ".join(clean(text).split())[:MAX_FIELD_CHARS]


def _web_address(value: Any) -> str:
    """Return the http or https URL of a result; '' if the value is no such URL. A redirect of
    DuckDuckGo is replaced by its target."""
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


_ENGINES = (
    Engine(
        name="serper", base_url="https://google.serper.dev", path="/search", is_post=True,
        fields={"q": QUERY, "num": N}, headers={"X-API-KEY": KEY}, key_variable="SERPER_API_KEY",
        read=_listed(
            "organic", "link", "snippet", ("answerBox", "answer", "snippet"), also="peopleAlsoAsk"
        ),
    ),
    Engine(
        name="serpapi", base_url="https://serpapi.com", path="/search.json",
        fields={"q": QUERY, "engine": "google", "api_key": KEY}, key_variable="SERPAPI_API_KEY",
        read=_listed(
            "organic_results", "link", "snippet", ("answer_box", "answer", "result", "snippet"),
            also="related_questions",
        ),
    ),
    Engine(
        name="searchapi", base_url="https://www.searchapi.io", path="/api/v1/search",
        fields={"q": QUERY, "engine": "google", "api_key": KEY}, key_variable="SEARCHAPI_API_KEY",
        timeout_s=90.0,
        read=_listed(
            "organic_results", "link", "snippet", ("answer_box", "answer", "snippet"),
            ("knowledge_graph", "description"), also="related_questions",
        ),
    ),
    Engine(
        name="brave", base_url="https://api.search.brave.com", path="/res/v1/web/search",
        fields={"q": QUERY, "count": N}, headers={"X-Subscription-Token": KEY},
        key_variable="BRAVE_API_KEY", read=_listed("web.results", "url", "description"),
    ),
    Engine(
        name="tavily", base_url="https://api.tavily.com", path="/search", is_post=True,
        fields={"query": QUERY, "max_results": N, "include_answer": False},
        headers={"Authorization": BEARER}, key_variable="TAVILY_API_KEY",
        read=_listed("results", "url", "content"),
    ),
    Engine(
        name="searxng", base_url="", path="/search", fields={"q": QUERY, "format": "json"},
        read=_listed("results", "url", "content"),
    ),
    Engine(
        name="duckduckgo", base_url="https://html.duckduckgo.com", path="/html/",
        fields={"q": QUERY}, is_page=True, read=_read_duckduckgo,
    ),
    Engine(
        name="marginalia", base_url="https://api2.marginalia-search.com", path="/search",
        fields={"query": QUERY, "count": N}, headers={"API-Key": "public"},
        read=_listed("results", "url", "description"),
    ),
    Engine(
        name="wikipedia", base_url="https://en.wikipedia.org", path="/w/api.php",
        fields={
            "srsearch": QUERY, "srlimit": N, "action": "query", "list": "search", "format": "json"
        },
        read=_read_wikipedia,
    ),
)  # fmt: skip
ENGINES = {engine.name: engine for engine in _ENGINES}
KEYLESS = ("duckduckgo", "marginalia", "wikipedia")


class Searcher:
    """Queries search engines in turn until one answers. An engine that has failed is skipped for
    `REST_S`, unless all have failed."""

    def __init__(
        self,
        engines: Sequence[Engine],
        *,
        monotonic: Callable[[], float],
        proxies: Proxies | None = None,
    ) -> None:
        self._engines = [replace(one, base_url=require_https(one.base_url)) for one in engines]
        self._monotonic, self._proxies = monotonic, proxies
        self._rests_until: dict[str, float] = {}

    async def search(
        self, query: str, *, domains: Sequence[str] = (), top_k: int = TOP_K
    ) -> tuple[str, list[Hit]]:
        """Return the name of the engine that answered, and at most `top_k` results, the best first.

        Args:
            domains: the only domains from which results are wanted; empty for all.

        Raises:
            ToolError: the query is blank, or no engine answered. The message is one line.
        """
        asked = scope(query, domains)
        now, faults = self._monotonic(), []
        awake = [one for one in self._engines if self._rests_until.get(one.name, 0) <= now]
        for one in awake or self._engines:
            try:
                return one.name, await self._ask(one, asked, top_k)
            except ToolError as error:
                faults.append(f"{one.name}: {error.what}")
                self._rests_until[one.name] = now + REST_S
        raise ToolError("; ".join(faults))

    async def _ask(self, one: Engine, query: str, top_k: int) -> list[Hit]:
        request = one.make(query, top_k)
        ask = ask_page if one.is_page else ask_json
        found = await ask(request, timeout_s=one.timeout_s, proxies=self._proxies)
        hits = list(one.read(found))[:top_k]
        said = found.get("error")
        if not hits and isinstance(said, str) and "hasn't returned any results" not in said:
            raise ToolError("the search engine answered with an error instead of results")
        return with_scores(hits)


def scope(query: str, domains: Sequence[str]) -> str:
    """Return the query with its words on one line, limited to the domains if there are any.

    Raises:
        ToolError: the query is blank.
    """
    words = " ".join(query.split())[:MAX_QUERY_CHARS]
    if not words:
        raise ToolError("there is nothing to search for: the query is empty")
    sites = [re.sub(r"[^\w.:/-]", "", domain)[:200] for domain in domains]
    places = " OR ".join(f"site:{site}" for site in sites if site)
    return f"{places} {words}" if places else words


def with_scores(hits: Sequence[Hit]) -> list[Hit]:
    """Return the results with scores that fall with the rank and add up to 1. The engine's short
    answer scores `ANSWER_BOX_WEIGHT` times as much as a page of the same rank."""
    weights = [
        (len(hits) - at) * (ANSWER_BOX_WEIGHT if hit.kind is HitKind.ANSWER else 1)
        for at, hit in enumerate(hits)
    ]
    total = sum(weights)
    return [replace(hit, score=weight / total) for hit, weight in zip(hits, weights, strict=True)]
