"""Finds the sources of results: pages, files, tools and searches, the tasks that used them, and the
journal's data about each page. It uses only origins that the program recorded; no model is called.

Finds also their artifacts: tables, plots and texts that were written by Python code which a task
ran, shown with its result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote

from babyagi.inbox import asking_task
from babyagi.reporting.why import name_tasks
from babyagi.tasks import Artifact, Fetched, Result
from babyagi.taskstore.sql.store import TaskStore
from babyagi.text import clean, harmless, one_line, shorten
from babyagi.tools.base import read_observations

MAX_TASKS_READ = 60  # how many tasks' steps are read to find data about pages
MAX_TITLE_CHARS = 120
MAX_ADDRESS_CHARS = 600
MAX_UNOPENED = 10
SHOWN_DIGEST_CHARS = 16
CALLS = ("tool", "once")  # the kinds of step that read something

_ADDRESS = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]+", re.IGNORECASE)
_MARKUP = re.compile(r"([\\`*_\[\]#!|<>~&]|^[-+])")
_UNOPENED = "**The answer names these addresses, and no task opened them:**"


class SourceKind(StrEnum):
    PAGE = "page"
    FILE = "file"
    TOOL = "tool"
    SEARCH = "search"


_KIND_BY_ORIGIN = {
    "web": SourceKind.PAGE,
    "file": SourceKind.FILE,
    "tool": SourceKind.TOOL,
    "private": SourceKind.TOOL,
    "search": SourceKind.SEARCH,
}
_PLACES = {SourceKind.TOOL: 1, SourceKind.SEARCH: 2}  # listed after all other kinds
# the files, pages, engines, results and persons behind these tools have origins of their own
_SAID_OTHERWISE = frozenset(
    f"tool:{name}"
    for name in "list_files read_file search_files write_file web_search open_page ask_user recall "
    "ask_pipeline search_issues issue_link".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A page, a file, a tool or a search that results were made from.

    Attributes:
        name: the address of a page, the path of a file, or the name of a tool or a search engine.
        task_ids: the tasks that read it themselves. A task that only received a result made from it
            does not count.
        page: the recorded data of an opened page.
    """

    kind: SourceKind
    name: str
    task_ids: tuple[int, ...]
    page: Fetched | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources of some results: first the pages and files that most tasks read, then tools, then
    searches. `n_unnamed` counts the sources whose names were not stored, because a result had too
    many."""

    named: Sequence[Source] = ()
    n_unnamed: int = 0


NO_SOURCES = Sources()


async def trace_sources(store: TaskStore, results: Sequence[Result]) -> Sources:
    """Return the sources of the results, with every task that read each. For pages, add what the
    steps of these tasks recorded."""
    origins_by_task = {one.task_id: one.origins for one in results}
    # those that may have been given what they did not read, or know more of a page
    unclear = [id_ for id_, named in origins_by_task.items() if any(map(_is_unclear, named))]
    owners = [f"task:{task_id}" for task_id in unclear[:MAX_TASKS_READ]]
    steps = await store.steps(results[0].objective_id, owner=owners) if owners else []
    read = {
        (asking_task(one), origin) for one in steps if one.kind in CALLS for origin in one.origins
    }
    found = [page for observation in read_observations(steps) for page in observation.passage.pages]
    pages = {page.url: page for page in reversed(found)}
    task_ids_by_source: dict[str, list[int]] = {}
    n_unnamed = 0
    for result in sorted(results, key=lambda one: one.task_id):
        given = _given_with_results(result, origins_by_task)
        for origin in dict.fromkeys(result.origins):
            head, _, name = origin.partition(":")
            if head == "more" and name.isdecimal() and len(name) < 10:
                n_unnamed = max(n_unnamed, int(name))
            elif _is_source(origin) and (origin not in given or (result.task_id, origin) in read):
                task_ids_by_source.setdefault(origin, []).append(result.task_id)
    named = []
    for origin, ids in task_ids_by_source.items():
        head, _, name = origin.partition(":")
        page = pages.get(name) if head == "web" else None
        named.append(Source(kind=_KIND_BY_ORIGIN[head], name=name, task_ids=tuple(ids), page=page))
    named.sort(key=lambda one: (_PLACES.get(one.kind, 0), -len(one.task_ids)))
    return Sources(named=named, n_unnamed=n_unnamed)


def _is_unclear(origin: str) -> bool:
    return origin.startswith(("web:", "result:"))


def _is_source(origin: str) -> bool:
    """Return whether the origin is listed as a source. A tool is not listed if what it reads
    (files, pages, results) is listed itself; `_SAID_OTHERWISE` names these tools."""
    head, _, name = origin.partition(":")
    return bool(name) and head in _KIND_BY_ORIGIN and origin not in _SAID_OTHERWISE


def _given_with_results(
    result: Result, origins_by_task: Mapping[int, Sequence[str]]
) -> frozenset[str]:
    """Return the origins of the earlier results that the task of this result was shown."""
    named = (origin.partition(":") for origin in result.origins)
    ids = {int(name) for head, _, name in named if head == "result" and name.isdecimal()}
    given = (origins_by_task.get(id_, ()) for id_ in ids - {result.task_id})
    return frozenset[str]().union(*given)


# -- as Markdown -----------------------------------------------------------------------------------


def render_sources(sources: Sources, answer: str, *, most: int, more: str) -> str:
    """Return the sources section of a report as Markdown; empty if there are no sources. Behind
    them stand the addresses in the answer that no task opened.

    Args:
        most: the number of sources that are listed.
        more: where the others can be read.
    """
    if not sources.named and not sources.n_unnamed:
        return ""
    lines = [f"* {_render_source(source)}" for source in sources.named[:most]]
    n_left = len(sources.named) - len(lines)
    if n_left or sources.n_unnamed:
        hint = f"; {more}" if n_left else ""
        lines.append(f"* and {n_left + sources.n_unnamed} more{hint}")
    unopened = render_list(_UNOPENED, [*map(code, find_unopened(sources, answer))], MAX_UNOPENED)
    return "\n".join(["## Sources", "", *lines, *(["", unopened] if unopened else [])])


def _render_source(source: Source) -> str:
    tasks = name_tasks(source.task_ids)
    match source.kind:
        case SourceKind.FILE:
            return f"{code(source.name)} ({tasks})"
        case SourceKind.TOOL:
            return f"used the tool {_plain(source.name)} ({tasks})"
        case SourceKind.SEARCH:
            return f"asked {_plain(source.name)} ({tasks})"
        case _:
            return _render_page(source, tasks)


def _render_page(source: Source, tasks: str) -> str:
    where = f"<{_address(source.name)}>"
    page = source.page
    if page is None:
        return f"{where} ({tasks})"
    title = f"{_plain(shorten(page.title, MAX_TITLE_CHARS))}: " if page.title else ""
    return f"{title}{where} ({say_fetched(page)}; {tasks})"


def say_fetched(page: Fetched) -> str:
    """Return when a page was fetched, and the beginning of its digest."""
    digest = page.digest[:SHOWN_DIGEST_CHARS]
    return f"fetched {page.fetched_at:%Y-%m-%d %H:%M} UTC, sha256 {digest}"


def _plain(text: str) -> str:
    """Return the text escaped so that Markdown shows it and does nothing else."""
    return _MARKUP.sub(r"\\\1", harmless(one_line(clean(text))))


def code(text: str) -> str:
    """Return the text as one line of code in Markdown."""
    line = shorten(harmless(one_line(clean(text))), MAX_ADDRESS_CHARS).replace("`", "'")
    return f"`{line}`"


def _address(url: str) -> str:
    """Return the address with every character percent-encoded that could end a Markdown link."""
    return quote(url, safe="%/:=&?~#+!$,;'@()*[]")[: MAX_ADDRESS_CHARS * 3]


# -- addresses in the answer that no task opened ---------------------------------------------------


def find_unopened(sources: Sources, answer: str) -> list[str]:
    """Return the addresses in the answer that no task opened, if any task used the web. The model
    may have made them up, or seen them only in search results."""
    if {SourceKind.PAGE, SourceKind.SEARCH}.isdisjoint(one.kind for one in sources.named):
        return []
    opened = {
        _compared(url)
        for source in sources.named
        if source.kind is SourceKind.PAGE
        # the second one was requested, before a redirect
        for url in (source.name, source.page.asked_url if source.page else "")
    }
    named = dict.fromkeys(_cut_end(match) for match in _ADDRESS.findall(answer))
    return [url for url in named if _compared(url) not in opened]


def _cut_end(url: str) -> str:
    """Return the address without punctuation at its end that belongs to the sentence around it."""
    url = url.rstrip(".,;:!?*_")
    while url.endswith(")") and url.count(")") > url.count("("):
        url = url[:-1].rstrip(".,;:!?*_")
    return url


def _compared(url: str) -> str:
    bare = url.partition("#")[0].rstrip("/")
    scheme, _, rest = bare.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.casefold()}://{host.casefold()}{slash}{path}"


def render_list(head: str, lines: Sequence[str], most: int, hint: str = "") -> str:
    """Return a heading and at most `most` lines; a last line gives the number of the others, and
    where they can be read. "" if there are none."""
    if not lines:
        return ""
    listed = [f"* {line}" for line in lines[:most]]
    if len(lines) > most:
        listed.append(f"* and {len(lines) - most} more{hint}")
    return "\n".join([head, "", *listed])


# -- files that came with results -----------------------------------------------------------------

MAX_MAKERS_READ = 200  # whose steps are looked through for files
# the only tool that makes artifacts, without and with a folder
MAKERS = frozenset(("tool:run_python", "private:run_python"))


class Made(NamedTuple):
    """An artifact, and the id of the task that made it."""

    task_id: int
    artifact: Artifact


async def find_artifacts(store: TaskStore, results: Sequence[Result]) -> list[Made]:
    """Return the artifacts of these results' tasks, in the order of the results. If a task made
    several files with the same name, only the last one is returned."""
    made: list[Made] = []
    asked = [result for result in results if not MAKERS.isdisjoint(result.origins)]
    for result in asked[:MAX_MAKERS_READ]:
        steps = await store.steps(result.objective_id, owner=f"task:{result.task_id}")
        by_name = {
            artifact.name: artifact
            for observation in read_observations(steps)
            for artifact in observation.passage.artifacts
        }
        made += [Made(task_id=result.task_id, artifact=one) for one in by_name.values()]
    return made


def say_artifact(made: Made) -> str:
    """Return type, size and the beginning of the digest of an artifact as a phrase."""
    digest = made.artifact.digest[:SHOWN_DIGEST_CHARS]
    return f"{made.artifact.media_type}, {len(made.artifact.data):,} bytes, sha256 {digest}"


def render_artifacts(made: Sequence[Made], *, objective_id: int, most: int) -> str:
    """Return the report's section that lists the first `most` artifacts; '' if there are none."""
    lines = [f"{code(one.artifact.name)} (task {one.task_id}; {say_artifact(one)})" for one in made]
    listed = render_list("## Files", lines, most)
    how = f"`babyagi show TASK --artifact NAME --objective {objective_id}` prints one."
    return f"{listed}\n\n{how}" if listed else ""


# -- as JSON ---------------------------------------------------------------------------------------


def sources_shape(sources: Sources) -> list[dict[str, object]]:
    """Return one JSON object per source; title, time and digest are null where they are unknown."""
    return [
        {
            "kind": source.kind.value,
            "name": source.name,
            "task_ids": list(source.task_ids),
            "title": source.page.title if source.page else None,
            "fetched_at": source.page.fetched_at.isoformat() if source.page else None,
            "sha256": source.page.digest if source.page else None,
        }
        for source in sources.named
    ]


def artifacts_shape(made: Sequence[Made]) -> list[dict[str, object]]:
    """Return one JSON object for each artifact, without its content."""
    return [
        {
            "task_id": one.task_id,
            "name": one.artifact.name,
            "media_type": one.artifact.media_type,
            "n_bytes": len(one.artifact.data),
            "sha256": one.artifact.digest,
        }
        for one in made
    ]
