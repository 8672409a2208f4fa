"""Tools that send a question to a pipeline on another machine, and return its answers and
documents.

Two services are supported: deepset Cloud, and Haystack's REST server. Sources of their formats,
read in November 2026: https://github.com/api-evangelist/haystack-ai
(openapi/haystack-ai-search-api-openapi.yml), and https://github.com/deepset-ai/haystack
(rest_api/schema.py of 1.x).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any
from urllib.parse import quote

from babyagi.errors import ToolError
from babyagi.net.addresses import Proxies, host_of
from babyagi.net.door import Request, ask_json, require_https
from babyagi.retrieval.engines import entries
from babyagi.tasks import Effect, Passage
from babyagi.text import clean, one_line, shorten
from babyagi.tools.base import Sink, Tool, takes_text
from babyagi.tools.search import number

ASK_PIPELINE = "ask_pipeline"
DEEPSET_KEY = "DEEPSET_CLOUD_API_KEY"
DEEPSET_URL = "https://api.cloud.deepset.ai/api/v1"
NOTHING_INDEXED = "Found nothing in the indexed documents."
TIMEOUT_S = 180.0  # a pipeline may ask a model of its own
TOP_K = 5
MAX_QUERY_CHARS = 4000
MAX_PART_CHARS = 2000  # of one answer or document
MAX_NAME_CHARS = 200
QUERY = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePipeline:
    """A pipeline on another machine.

    Attributes:
        name: its name, for people.
        url: the full address to which questions are sent.
        wrap: returns the body of a request, given a question and `params`.
        unwrap: returns the result for the question in the service's answer.
        key: the key for the service; '' if it needs none.
        params: parameters of the pipeline's nodes, in the service's format.
    """

    name: str
    url: str
    wrap: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
    unwrap: Callable[[Mapping[str, Any]], object]
    key: str = field(default="", repr=False)
    params: Mapping[str, Any] = field(default_factory=dict)


def deepset_pipeline(
    workspace: str,
    pipeline: str,
    *,
    key: str,
    base_url: str = DEEPSET_URL,
    params: Mapping[str, Any] | None = None,
) -> RemotePipeline:
    """Return a pipeline on deepset Cloud.

    Raises:
        SettingsError: `base_url` is neither https nor on this machine.
    """
    place = f"workspaces/{quote(workspace, safe='')}/pipelines/{quote(pipeline, safe='')}/search"
    return RemotePipeline(
        name=f"{workspace}/{pipeline}",
        url=f"{require_https(base_url)}/{place}",
        wrap=lambda query, given: {
            "queries": [query],
            "debug": False,
            "view_prompts": False,
            **({"params": given} if given else {}),
        },
        unwrap=_first_result,
        key=key,
        params=params or {},
    )


def haystack_pipeline(base_url: str, *, params: Mapping[str, Any] | None = None) -> RemotePipeline:
    """Return the pipeline of a Haystack REST server, which needs no key.

    Raises:
        SettingsError: `base_url` is neither https nor on this machine.
    """
    address = require_https(base_url)
    return RemotePipeline(
        name=address,
        url=f"{address}/query",
        wrap=lambda query, given: {"query": query, "params": given, "debug": False},
        unwrap=lambda found: found,
        params=params or {},
    )


def _first_result(found: Mapping[str, Any]) -> object:
    """Return the only result in an answer of deepset Cloud, which has a list of them."""
    results = found.get("results")
    return results[0] if isinstance(results, list) and results else {}


def build_pipeline_search(
    pipeline: RemotePipeline,
    *,
    name: str = ASK_PIPELINE,
    description: str = "",
    top_k: int = TOP_K,
    effect: Effect = Effect.READ,
    proxies: Proxies | None = None,
) -> Tool:
    """Return a tool that sends a question to the pipeline, and gives the first `top_k` answers and
    the first `top_k` documents.

    Args:
        effect: the effect of a call, as a person declares it.

    Raises:
        ValueError: `name` is not a valid name for a tool.
    """

    async def run(arguments: Mapping[str, Any]) -> Passage:
        query = " ".join(arguments[QUERY].split())[:MAX_QUERY_CHARS]
        if not query:
            raise ToolError("there is nothing to search for: the query is empty")
        request = Request(
            url=pipeline.url,
            headers={"Authorization": f"Bearer {pipeline.key}"} if pipeline.key else {},
            body=pipeline.wrap(query, pipeline.params),
            secret=pipeline.key,
        )
        found = pipeline.unwrap(await ask_json(request, timeout_s=TIMEOUT_S, proxies=proxies))
        return Passage(
            text=render_found(found, top_k=top_k) or NOTHING_INDEXED,
            origin=f"tool:{name}",
            sources=(f"search:pipeline:{one_line(pipeline.name)[:MAX_NAME_CHARS]}",),
        )

    return Tool(
        name=name,
        description=description or "Look something up in the indexed documents, in whole words.",
        parameters=takes_text(QUERY, "The question, in words."),
        effect=effect,
        sink=Sink(host=host_of(pipeline.url)),
        run=run,
        timeout_s=TIMEOUT_S + 10,
    )


# -- what a model reads ----------------------------------------------------------------------------


def render_found(found: object, *, top_k: int) -> str:
    """Return the answers and then the documents of a result as text for a model, each with its
    source; '' if there are none. Raises `ToolError` if `found` is not a result."""
    if not isinstance(found, dict):
        raise ToolError("the pipeline's answer does not have the form of a result")
    answers = filter(None, map(_render_answer, entries(found.get("answers"))))
    documents = filter(None, map(_render_document, entries(found.get("documents"))))
    return number(chain(islice(answers, top_k), islice(documents, top_k)))


def _render_answer(entry: Mapping[str, Any]) -> str:
    text = _text(entry.get("answer"))
    return f"Answer: {text}{_where(entry)}" if text else ""


def _render_document(entry: Mapping[str, Any]) -> str:
    text = _text(entry.get("content"))
    return f"Document{_where(entry)}\n{text}" if text else ""


def _text(value: object) -> str:
    return shorten(clean(value).strip(), MAX_PART_CHARS) if isinstance(value, str) else ""


_PLACES = ("meta", "file")


def _where(entry: Mapping[str, Any]) -> str:
    """Return the source and the score of an answer or document in brackets; '' if its fields name
    neither."""
    meta, file = (found if isinstance(found := entry.get(name), dict) else {} for name in _PLACES)
    said = [meta.get(name) for name in ("title", "name", "file_name", "url", "source")]
    said.append(file.get("name"))
    score = entry.get("score")
    if isinstance(score, float):
        said.append(f"score {score:.2f}")
    words = dict.fromkeys(
        one_line(clean(one))[:MAX_NAME_CHARS] for one in said if isinstance(one, str) and one
    )
    return f" ({', '.join(words)})" if words else ""
