"""The tool `recall`, with which a task searches the earlier results of its objective, or reads one
of them whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from babyagi.errors import ToolError
from babyagi.index.excerpts import cut_result
from babyagi.index.indexer import Embed
from babyagi.index.search import ResultSearch
from babyagi.tasks import Effect, Passage, Result, find_sources
from babyagi.text import shorten
from babyagi.tools.base import Tool, takes

RECALL = "recall"
N_FOUND = 5
PASSAGE_BYTES = 300
MAX_QUERY_CHARS = 2_000
MAX_NAME_CHARS = 200


def build_recall(search: ResultSearch, *, embed: Embed) -> Tool:
    """Return the tool `recall`, which searches with `search`.

    Args:
        embed: computes the vector of each query, as for `ResultSearch.relevant`.
    """

    async def recall(arguments: Mapping[str, Any]) -> Passage:
        query, task_id = arguments.get("query", "").strip(), arguments.get("task")
        if task_id is not None:
            return await _open(search, task_id)
        if not query:
            raise ToolError(
                "give a query to search for, or the number of a task to open its result"
            )
        found = await search.relevant(query[:MAX_QUERY_CHARS], k=N_FOUND, embed=embed)
        lines = [_render(entry.result, query) for entry in found]
        sources = find_sources(origin for entry in found for origin in entry.result.origins)
        return Passage(
            text="\n".join(lines) or "There are no earlier results.",
            origin=f"tool:{RECALL}",
            sources=sources,
        )

    return Tool(
        name=RECALL,
        description="Search earlier results, or open one whole.",
        parameters=takes(
            query={"type": "string"}, task={"type": "integer", "description": "its number"}
        ),
        effect=Effect.READ,
        run=recall,
    )


async def _open(search: ResultSearch, task_id: int) -> Passage:
    results = await search.results([task_id])
    if not results:
        raise ToolError(f"task {task_id} has no result; give a query to search for one")
    return Passage(
        text=results[0].text, origin=f"result:{task_id}", sources=find_sources(results[0].origins)
    )


def _render(result: Result, query: str) -> str:
    return (
        f"{result.task_id}. {shorten(result.task_name, MAX_NAME_CHARS)}: "
        f"{' '.join(cut_result(result, PASSAGE_BYTES, task_name=query).split())}"
    )
