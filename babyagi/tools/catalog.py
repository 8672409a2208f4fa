"""The built-in tools: their names, which of them an objective is granted, and how they are
opened."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from babyagi.errors import SettingsError, ToolError
from babyagi.files.folder import Folder
from babyagi.net.addresses import Proxies
from babyagi.retrieval.engines import Searcher
from babyagi.retrieval.pages import Pages, WebRetriever
from babyagi.retrieval.rank import BM25, Ranker
from babyagi.runtime.offload import Offload
from babyagi.tasks import FOLDER_TOOLS, READING_TOOLS, Effect, Passage, ToolGrant
from babyagi.tools.base import Tool, in_thread, takes_text
from babyagi.tools.calculator import build_calculator
from babyagi.tools.files import build_file_tools, build_write_file
from babyagi.tools.issues import (
    ISSUE_LINK,
    SEARCH_ISSUES,
    GitHub,
    build_issue_link,
    build_search_issues,
)
from babyagi.tools.pipelines import ASK_PIPELINE, RemotePipeline, build_pipeline_search
from babyagi.tools.search import OPEN_PAGE, WEB_SEARCH, build_open_page, build_web_search

ASK_USER = "ask_user"


def build_ask_user() -> Tool:
    return Tool(
        name=ASK_USER,
        description=(
            "Ask the person who gave the objective. The task waits until they answer, so ask "
            "only what nobody else can know."
        ),
        parameters=takes_text("question", "One question that can be understood without the task."),
        effect=Effect.IDEMPOTENT,
        run=_run,
        asks_person=True,
    )


async def _run(arguments: Mapping[str, Any]) -> Passage:
    raise ToolError("no person can be asked here")


# -- names, grants, opening
# --------------------------------------------------------------------------------------------------

WEB = (WEB_SEARCH, OPEN_PAGE)
RUN_PYTHON = "run_python"
GITHUB = (SEARCH_ISSUES, ISSUE_LINK)
SETS = {"files": READING_TOOLS, "web": WEB, "python": (RUN_PYTHON,), "github": GITHUB}
# what every worker lends: it reads the folder that the worker hands out, computes, or asks a person
ALWAYS_LENT = frozenset({*READING_TOOLS, "calculator", ASK_USER})
TOOL_NAMES = (
    *FOLDER_TOOLS,
    "calculator",
    *WEB,
    RUN_PYTHON,
    ASK_PIPELINE,
    *GITHUB,
    ASK_USER,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogContext:
    """What the built-in tools need from this process. A tool whose need is None here is not opened.
    Without `scratch`, the programs of `run_python` keep no files."""

    offload: Offload
    folder: Folder | None = None
    searcher: Searcher | None = None
    pages: Pages | None = None
    scratch: Path | None = None
    places: Path | None = None
    pipeline: RemotePipeline | None = None
    github: GitHub | None = None
    proxies: Proxies | None = None
    ranker: Ranker = BM25


def grant_tools(*, has_folder: bool, more: Sequence[str], may_ask: bool) -> tuple[ToolGrant, ...]:
    """Return which built-in tools a new objective may use.

    Args:
        has_folder: whether the objective has a folder of files; if so, it gets the tools to read
            it.
        more: further tools that a person has granted, by their names or by those of sets, such as
            `web`.
        may_ask: whether tasks may ask the person, with `ask_user`.

    Raises:
        SettingsError: a tool in `more` needs a folder, and there is none.
    """
    named = spell_out(more)
    if not has_folder and (lacking := [name for name in named if name in FOLDER_TOOLS]):
        raise SettingsError(
            f"the tool {lacking[0]} needs a folder",
            fix="name a folder: --files FOLDER",
            guide="tools",
        )
    names = dict.fromkeys(
        [*(READING_TOOLS if has_folder else ()), *named, *([ASK_USER] if may_ask else [])]
    )
    return tuple(ToolGrant(name=name, effect=effect_of(name)) for name in names)


def spell_out(names: Iterable[str]) -> list[str]:
    """Return the names with those of sets, such as `web`, replaced by their tools."""
    return [name for one in names for name in SETS.get(one, (one,))]


def effect_of(name: str) -> Effect:
    return {"write_file": Effect.ONCE, ASK_USER: Effect.IDEMPOTENT}.get(name, Effect.READ)


def open_tools(names: Collection[str], context: CatalogContext) -> tuple[Tool, ...]:
    """Open the named tools, and return those for which the context has what they need."""
    return tuple(tool for tool in _open_all(names, context) if tool.name in names)


def _open_all(names: Collection[str], context: CatalogContext) -> Iterator[Tool]:
    if context.folder is not None:
        # Parsing a PDF takes long. In a thread of its own, it neither keeps a pool of threads busy
        # nor delays the end of a run.
        yield from build_file_tools(context.folder, offload=in_thread)
        yield build_write_file(context.folder, offload=context.offload)
    yield build_calculator()
    if context.searcher is not None and context.pages is not None:
        found = WebRetriever(context.searcher, context.pages, ranker=context.ranker)
        yield build_web_search(found)
    if context.pages is not None:
        yield build_open_page(context.pages, ranker=context.ranker)
    if RUN_PYTHON in names:
        from babyagi.tools.python import build_python

        yield build_python(
            offload=context.offload,
            folder=context.folder,
            files=context.scratch,
            places=context.places,
            name=RUN_PYTHON,
            description=(
                "Run Python that computes: statistics, dates, text, tables, plots as SVG. It reads "
                "the objective's files, keeps files of its own for the task, and has no network."
            ),
        )
    if context.pipeline is not None:
        yield build_pipeline_search(context.pipeline, proxies=context.proxies)
    if context.github is not None:
        yield build_search_issues(context.github, proxies=context.proxies)
        yield build_issue_link(context.github)
    yield build_ask_user()
