"""Searching the web through SerpAPI: the first results, as the search engine shows them. No page is
opened.

Source: https://serpapi.com/search-api, the Google engine, and its error texts; read in November
2026.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from babyagi.errors import ToolError
from babyagi.net.addresses import Proxies
from babyagi.net.get import get_json, require_https
from babyagi.tasks import Effect, Passage
from babyagi.tools.base import Tool, takes_text

SERPAPI_URL = "https://serpapi.com"
MAX_QUERY_CHARS = 2000
MAX_FIELD_CHARS = 1000
_NOTHING_FOUND = "hasn't returned any results"


def build_serpapi_search(
    api_key: str,
    *,
    name: str,
    description: str,
    top_k: int = 10,
    base_url: str = SERPAPI_URL,
    proxies: Proxies | None = None,
) -> Tool:
    """Return a tool that gives the first `top_k` of: the answer box, the organic results, what
    people also ask.

    Raises:
        SettingsError: the address is not https, and not on this machine.
        ValueError: no tool can have that name.
    """
    url = require_https(base_url) + "/search.json"

    async def run(arguments: Mapping[str, Any]) -> Passage:
        query = arguments["query"].strip()[:MAX_QUERY_CHARS]
        if not query:
            raise ToolError("there is nothing to search for: the query is empty")
        found = await get_json(
            url,
            {"engine": "google", "q": query, "api_key": api_key},
            secret=api_key,
            proxies=proxies,
        )
        return Passage(
            text=_render(found, top_k) or "The search found nothing.", origin=f"tool:{name}"
        )

    return Tool(
        name=name,
        description=description,
        parameters=takes_text("query", "What to search for."),
        effect=Effect.READ,
        run=run,
    )


def _render(found: Mapping[str, Any], top_k: int) -> str:
    entries = [*_answer_box(found), *_organic(found), *_people_also_ask(found)][:top_k]
    said = found.get("error")
    if not entries and isinstance(said, str) and _NOTHING_FOUND not in said:
        raise ToolError("the search engine gave an error in place of results")
    return "\n\n".join(f"{n}. {entry}" for n, entry in enumerate(entries, start=1))


def _answer_box(found: Mapping[str, Any]) -> Iterator[str]:
    box = found.get("answer_box")
    if isinstance(box, dict):
        answer = next(
            (text for key in ("answer", "result", "snippet") if (text := _field(box, key))), ""
        )
        if answer:
            yield _lines(f"Answer: {answer}", _field(box, "title"), _field(box, "link"))


def _organic(found: Mapping[str, Any]) -> Iterator[str]:
    for entry in _entries(found, "organic_results"):
        if text := _lines(_field(entry, "title"), _field(entry, "link"), _field(entry, "snippet")):
            yield text


def _people_also_ask(found: Mapping[str, Any]) -> Iterator[str]:
    for entry in _entries(found, "related_questions"):
        question = _field(entry, "question")
        if question:
            yield _lines(
                f"People also ask: {question}", _field(entry, "link"), _field(entry, "snippet")
            )


def _entries(found: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    given = found.get(key)
    return [entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else []


def _field(entry: Mapping[str, Any], key: str) -> str:
    """A field as one line of text; empty when it is none."""
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return " ".join(str(value).split())[:MAX_FIELD_CHARS]


def _lines(*texts: str) -> str:
    return "\n".join(filter(None, texts))
