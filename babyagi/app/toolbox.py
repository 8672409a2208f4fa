"""Decides which tools, and which agent of a file, an objective gets in this process, and opens
them."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from babyagi.app.backends import utc_now
from babyagi.errors import SettingsError, ToolError
from babyagi.files.folder import Folder
from babyagi.files.home import (
    PAGES,
    PLACES,
    SCRATCH,
    place_of,
    remember_lent,
    remembered_folder,
    remembered_forms,
    remembered_lent,
)
from babyagi.llm.port import ChatModel
from babyagi.loop import Enrich
from babyagi.net.door import Door
from babyagi.react.values import OutputType
from babyagi.retrieval.engines import ENGINES, KEYLESS, Searcher
from babyagi.retrieval.pages import Pages, RetrieverMode, WebRetriever
from babyagi.retrieval.rank import BM25, Ranker
from babyagi.settings.fields import Settings
from babyagi.settings.load import load_here, variables_here
from babyagi.tasks import (
    FOLDER_TOOLS,
    FolderTexts,
    Objective,
    ObjectiveSpec,
    ToolGrant,
    write_form,
)
from babyagi.taskstore.lifecycle import identity_key
from babyagi.taskstore.schedules import schedule_uid
from babyagi.text import nearest
from babyagi.tools import pipelines
from babyagi.tools.base import Tool
from babyagi.tools.catalog import (
    ALWAYS_LENT,
    TOOL_NAMES,
    CatalogContext,
    grant_tools,
    open_tools,
    spell_out,
)
from babyagi.tools.declare import load_tools
from babyagi.tools.files import find_texts
from babyagi.tools.issues import GITHUB_URL, GitHub
from babyagi.tools.mcp import Connection, load_servers, open_servers
from babyagi.tools.recall import RECALL
from babyagi.tools.search import build_web_search

if TYPE_CHECKING:
    from babyagi.components.description import AgentDescription
    from babyagi.components.kinds import Granted


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an objective is given beside the settings, by a program and by files.

    Attributes:
        tools: functions of the program, tools of MCP servers, and tools of the agent.
        connections: the open MCP servers.
        faults: which tools are missing, and why.
        left_out: one line for each tool of an open MCP server that cannot be used.
        agent: the agent of a file that carries tasks out.
        model_by_name: models that the program passes in.
        output: the type that the report is read into.
        enrich: takes a task's name and its result, and returns the result to record.
        granted: the names of the tools that objectives get; None for all.
    """

    tools: tuple[Tool, ...] = ()
    connections: tuple[Connection, ...] = ()
    faults: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    agent: AgentDescription | None = None
    model_by_name: Mapping[str, ChatModel] = field(default_factory=dict)
    output: OutputType | None = None
    enrich: Enrich | None = None
    granted: frozenset[str] | None = None


NOTHING_GIVEN = Given()


class Toolbox:
    """The tools that these settings and a program offer.

    `tell` shows a person that the settings' agent is not used for an objective.
    """

    def __init__(self, settings: Settings, given: Given, *, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._given = given
        self._tell = tell

    def grants(self) -> tuple[ToolGrant, ...]:
        """Return the tools that a new objective may use. Raises `SettingsError` if a tool that was
        named is missing."""
        settings = self._settings
        shipped = grant_tools(
            has_folder=settings.files is not None, more=settings.tools, may_ask=settings.ask
        )
        if self._given.faults:
            raise SettingsError(
                "some of the named tools are missing",
                why="; ".join(self._given.faults),
                fix="babyagi tools --mcp FILE shows which servers answer",
                guide="tools",
            )
        grants = (*shipped, *map(grant_given, self._given.tools))
        taken = Counter([*TOOL_NAMES, *(tool.name for tool in self._given.tools)])
        if twice := [name for name, n in taken.items() if n > 1]:
            raise SettingsError(
                f"two tools have the name {twice[0]}", fix="rename one of them", guide="tools"
            )
        granted = self._given.granted
        if granted is None:
            return grants
        names = {grant.name for grant in grants}
        if unknown := granted - names:
            raise SettingsError(
                f"this server does not offer the tool {', '.join(sorted(unknown))}",
                why=f"the server offers: {', '.join(sorted(names)) or 'none'}",
                fix="start it with --tools or --files, such as babyagi serve --tools web",
                guide="serve",
            )
        return tuple(grant for grant in grants if grant.name in granted)

    def require(self, objective: Objective) -> None:
        """Raise `SettingsError` if this process lacks a tool of the objective, or the agent that
        carries its tasks out."""
        self.find_agent(objective)
        self.open(objective)

    def open(self, objective: Objective) -> tuple[Tool, ...]:
        """Return the tools of the objective. Raises `SettingsError` if this worker lacks one: it
        must not work on the objective then."""
        granted = {grant.name for grant in objective.spec.tools if grant.parameters is None}
        granted.discard(RECALL)  # the loop opens it
        self._require_lent(granted, objective)
        folder = (
            open_folder(self._settings, objective) if granted.intersection(FOLDER_TOOLS) else None
        )
        home, uid = self._settings.home, objective.uid
        context = open_tool_context(self._settings, folder, pages=place_of(home, PAGES, uid))
        tools = open_tools(granted, replace(context, scratch=place_of(home, SCRATCH, uid)))
        missing = sorted(granted - {tool.name for tool in tools})
        if missing:
            raise SettingsError(
                f"objective {objective.id} needs the tool {', '.join(missing)}, and this "
                "worker does not have it",
                fix="babyagi tools shows the tools that are here; babyagi run --new starts a new "
                "objective with these",
                guide="machines",
            )
        functions = [grant for grant in objective.spec.tools if grant.parameters is not None]
        found = [self._find_given(grant, objective) for grant in functions]
        self._remember_forms(objective, [tool for tool in found if tool.offered is not None])
        return (*tools, *found)

    def allow(self, uid: str, spec: ObjectiveSpec) -> None:
        """Remember in the home folder that a person allows the objective or schedule with this uid
        its tools on this machine."""
        tools = [grant.name for grant in spec.tools]
        forms = {
            grant.name: write_form(grant.description, grant.parameters)
            for grant in spec.tools
            if grant.parameters is not None
        }
        asked = identity_key(spec)
        remember_lent(self._settings.home, uid, asked=asked, tools=tools, forms=forms)

    def find_form(self, objective: Objective, tool: str) -> str:
        """Return the form in which a server's tool was allowed here for the objective; "" if none
        is known."""
        home, asked = self._settings.home, identity_key(objective.spec)
        known = (remembered_forms(home, uid, asked=asked) for uid in _uids_of(objective))
        return next((forms[tool] for forms in known if tool in forms), "")

    def _remember_forms(self, objective: Objective, tools: Collection[Tool]) -> None:
        """Remember the forms of the servers' tools of an objective that was started elsewhere: from
        now on another form is asked about here, whatever the task store says."""
        new = {one.name: one.form for one in tools if not self.find_form(objective, one.name)}
        if new:
            asked = identity_key(objective.spec)
            remember_lent(self._settings.home, objective.uid, asked=asked, forms=new)

    def _require_lent(self, granted: Collection[str], objective: Objective) -> None:
        """Raise `SettingsError` unless this machine lends the objective these built-in tools: the
        task store may say anything, and only this machine's settings and its person lend."""
        home, asked = self._settings.home, identity_key(objective.spec)
        allowed = [remembered_lent(home, uid, asked=asked) for uid in _uids_of(objective)]
        lent = ALWAYS_LENT.union(spell_out(self._settings.tools), *allowed)
        if refused := sorted(set(granted) - lent):
            raise SettingsError(
                f"objective {objective.id} wants to use {', '.join(refused)}, and this worker does "
                "not lend that",
                why="a worker lends what its own settings name, and what was allowed in its home; "
                "without that, only the reading of its folder",
                fix=f"start the worker with --tools {','.join(refused)}",
                guide="machines",
            )

    def find_texts(
        self, objective: Objective
    ) -> Callable[[str, int], Awaitable[FolderTexts]] | None:
        """Return a function that reads the objective's folder for a question, in at most so many
        bytes; None if the objective may not read one."""
        if "read_file" not in {grant.name for grant in objective.spec.tools}:
            return None
        folder = open_folder(self._settings, objective)
        return lambda question, max_bytes: asyncio.to_thread(
            find_texts, folder, question=question, max_bytes=max_bytes
        )

    def find_agent(self, objective: Objective) -> AgentDescription | None:
        """Return the agent of a file that carries the objective's tasks out; None if it has
        none."""
        agent, name = self._given.agent, objective.spec.agent
        if not name:
            if agent is not None:
                self._tell(
                    f"objective {objective.id} was started without an agent of a file; "
                    f"{agent.name} is not used for it"
                )
            return None
        if agent is None or agent.name != name:
            its_own = f"it has the agent {agent.name}" if agent else ""
            raise SettingsError(
                f"the tasks of objective {objective.id} are carried out by the agent {name}, "
                "and this worker does not have it",
                why=its_own or "its file was named only where the objective was started",
                fix=f"name the file here too: --agent FILE#{name}",
                guide="tools",
            )
        return agent

    def _find_given(self, grant: ToolGrant, objective: Objective) -> Tool:
        """Return the tool that the grant (stored with the objective) names: a function of the
        program, or a tool of an MCP server."""
        # a server's tool is opened as it was granted, and asks before each call whether it changed
        of_servers = (
            one.open_granted(grant)
            for one in self._given.connections
            if grant.name.startswith(f"{one.server.name}__")
        )
        given = next((one for one in self._given.tools if one.name == grant.name), None)
        tool = next(of_servers, None) or given
        if tool is None:
            raise SettingsError(
                f"objective {objective.id} needs the tool {grant.name}, and this worker does "
                "not have it",
                why="; ".join(self._given.faults)
                or "it came from the program, file or server that the objective was started with",
                fix="name its source here too: --mcp FILE, --tools-from WHERE, --agent FILE, or "
                f"babyagi.run(…, tools=[{grant.name}])",
                guide="tools",
            )
        mine = grant_given(tool)
        if (mine.effect, mine.parameters) != (grant.effect, grant.parameters):
            what = "effect" if mine.parameters == grant.parameters else "parameters"
            raise SettingsError(
                f"the tool {grant.name} has other {what} than when objective {objective.id} was "
                "started",
                why="an objective keeps the tools that it was started with",
                fix="give the tool as it was, or start a new objective: --new, or "
                "babyagi.run(…, new=True)",
                guide="tools",
            )
        return replace(tool, description=grant.description)


def _uids_of(objective: Objective) -> tuple[str, ...]:
    """Return the uids under which the home folder keeps what belongs to the objective: its own, and
    that of the schedule that started it."""
    return tuple(filter(None, (objective.uid, schedule_uid(objective.uid))))


def open_folder(settings: Settings, objective: Objective) -> Folder:
    """Return the folder that the objective's tools read and write on this machine. Raises
    `SettingsError` if there is none."""
    home, given = settings.home, settings.files
    known = next(filter(None, (remembered_folder(home, uid) for uid in _uids_of(objective))), None)
    # a folder within the one that this worker hands out was chosen for this objective
    is_within = given and known and known.is_relative_to(given.resolve())
    folder = known if is_within else given or known
    if folder is None or not folder.is_dir():
        wrong = f"{folder} is not a folder" if folder else ""
        raise SettingsError(
            f"objective {objective.id} needs a folder to read, and there is none here",
            why=wrong or "it was started with --files, in another home",
            fix="name the folder again: --files FOLDER",
            guide="objectives",
        )
    return Folder(folder, without=home)


def require_folder(settings: Settings) -> None:
    """Raises `SettingsError` if the folder that tasks are to read (--files) is set and is not a
    folder."""
    folder = settings.files
    if folder is None or folder.is_dir():
        return
    what, fix = f"there is no folder {folder}", "correct the folder's name"
    beside = folder.parent.iterdir() if os.access(folder.parent, os.R_OK | os.X_OK) else ()
    if near := nearest(folder.name, (one.name for one in beside if one.is_dir())):
        fix = f"--files {shlex.quote(str(folder.with_name(near)))}"
    if folder.exists():
        what = f"{folder} is a file, not a folder"
        fix = f"--files {folder.parent}, or another folder"
    why = "--files, or BABYAGI_FILES, names the folder that tasks may read"
    raise SettingsError(what, why=why, fix=fix, guide="tools")


def open_tool_context(settings: Settings, folder: Folder | None, *, pages: Path) -> CatalogContext:
    """Return what the built-in tools need to run; fetched pages are cached in the folder
    `pages`."""
    return CatalogContext(
        offload=asyncio.to_thread,
        folder=folder,
        searcher=open_searcher(settings),
        pages=open_pages(settings, pages),
        pipeline=open_pipeline(settings),
        github=GitHub(
            url=settings.github_url or GITHUB_URL,
            key=settings.github_token.reveal(),
            repository=settings.github_repository,
        ),
        proxies=settings.proxies,
        places=settings.home / PLACES,
    )


def open_pipeline(settings: Settings) -> pipelines.RemotePipeline | None:
    """Return the remote pipeline that the settings name, if any.

    Raises:
        SettingsError: its key is missing, or its address is not https.
    """
    if not settings.pipeline:
        return None
    if "://" in settings.pipeline:
        return pipelines.haystack_pipeline(settings.pipeline)
    key = settings.deepset_cloud_api_key.reveal()
    if not key:
        what, fix = "a pipeline on deepset Cloud needs its key", f"set {pipelines.DEEPSET_KEY}"
        raise SettingsError(what, fix=fix, guide="tools")
    workspace, _, name = settings.pipeline.partition("/")
    return pipelines.deepset_pipeline(
        workspace, name, key=key, base_url=settings.deepset_cloud_url or pipelines.DEEPSET_URL
    )


def open_searcher(settings: Settings) -> Searcher:
    """Return the web search that the settings name.

    Raises:
        SettingsError: the key or the address of the engine is missing.
    """
    key_by_name = {
        "serper": settings.serper_api_key.reveal(),
        "brave": settings.brave_api_key.reveal(),
        "tavily": settings.tavily_api_key.reveal(),
        "serpapi": settings.serpapi_api_key.reveal(),
        "searchapi": settings.searchapi_api_key.reveal(),
    }
    name = settings.search_engine
    if name == "auto":
        name = next((one for one, key in key_by_name.items() if key), "keyless")
    if name in key_by_name and not key_by_name[name]:
        fix = f"set {ENGINES[name].key_variable}"
        raise SettingsError(f"the search {name} needs its key", fix=fix, guide="tools")
    address = settings.search_url
    if "://" in name:
        name, address = "searxng", name
    names = KEYLESS if name == "keyless" else (name,)
    engines = [
        replace(
            ENGINES[one],
            base_url=address or ENGINES[one].base_url,
            key=key_by_name.get(one, ""),
        )
        for one in names
    ]
    return Searcher(engines, monotonic=time.monotonic, proxies=settings.proxies)


@asynccontextmanager
async def with_named_tools(settings: Settings, given: Given) -> AsyncIterator[Given]:
    """Yield `given` with the agent that the settings name and with its tools, and with the tools of
    the functions, files and MCP servers that the settings name."""
    agent = load_agent(settings.agent, settings) if settings.agent else None
    own = [*(agent.tools if agent else ()), *_load_own_tools(settings)]
    async with open_servers(load_servers(settings.mcp) if settings.mcp else []) as connections:
        listed = await asyncio.gather(*(list_tools(one) for one in connections))
        tools = (*given.tools, *own, *(tool for found, _ in listed for tool in found))
        faults = tuple(fault for _, fault in listed if fault)
        left_out = tuple(line for one in connections for line in describe_left_out(one))
        opened = tuple(connections)
        yield replace(
            given, tools=tools, connections=opened, faults=faults, left_out=left_out, agent=agent
        )


def _load_own_tools(settings: Settings) -> list[Tool]:
    """Load what `tools_from` names: functions, or an agent of a file."""
    where = settings.tools_from
    if where.partition("#")[0].endswith((".yaml", ".yml")):
        from babyagi.components.description import build_described_agent_tool

        return [build_described_agent_tool(load_agent(where, settings))]
    return load_tools(where, cwd=Path.cwd()) if where else []


def load_agent(reference: str, settings: Settings) -> AgentDescription:
    """Return the agent named by `FILE` or `FILE#NAME`. Its model is that of the settings, whatever
    the file says.

    Raises:
        SettingsError: the file cannot be used; see `load_description`.
    """
    from babyagi.components.description import load_description

    file, _, name = reference.partition("#")
    return load_description(Path(file), name, granted=grant_to_files(settings), has_model=True)


def grant_to_files(settings: Settings) -> Granted:
    """Return what a file of agents may use: keys for its components, each from its own setting,
    environment variables, and the hosts that the person named."""
    from babyagi.components.kinds import KEY_VARIABLES, Granted

    return Granted(
        keys={variable: getattr(settings, variable.lower()).reveal() for variable in KEY_VARIABLES},
        variables=variables_here(),
        hosts=settings.agent_hosts,
        places=settings.home / PLACES,
        proxies=settings.proxies,
        pages=open_pages(settings, settings.home / PAGES),
    )


def web_retriever(
    *,
    mode: str = RetrieverMode.PREPROCESSED_DOCUMENTS,
    top_search_results: int = 10,
    top_k: int = 5,
    top_p: float = 1.0,
    allowed_domains: Sequence[str] = (),
    ranker: Ranker = BM25,
) -> Tool:
    """Return a tool that searches with the engine of the settings, opens the first results, and
    gives the documents that are most relevant to the query.

    Args:
        mode: `snippets` opens no page, `raw_documents` gives whole pages, `preprocessed_documents`
            parts of pages.
        top_search_results: how many results are looked at.
        top_k: the most documents that are given.
        top_p: the fewest documents are given whose relevance together reaches this share.
        allowed_domains: the only domains to search; empty for all.
        ranker: scores the relevance of documents to the query.

    Raises:
        SettingsError: a setting is invalid, or the search engine lacks its key or address.
        ValueError: `mode` is invalid.
    """
    settings = load_here({})
    retriever = WebRetriever(
        open_searcher(settings),
        open_pages(settings, settings.home / PAGES),
        ranker=ranker,
        mode=RetrieverMode(mode),
        p=top_p,
        top_k=top_k,
    )
    return build_web_search(
        retriever,
        name="web",
        description="Searches the web and gives the parts of pages that bear on the query.",
        n_pages=top_search_results,
        domains=allowed_domains,
    )


def open_pages(settings: Settings, folder: Path) -> Pages:
    door = Door(allow=settings.web_allow, proxies=settings.proxies)
    door.only = settings.web_only
    return Pages(door, clock=utc_now, folder=folder, offload=asyncio.to_thread)


async def list_tools(connection: Connection) -> tuple[list[Tool], str]:
    """Return the tools of an MCP server and ''; or an empty list and the reason for a person."""
    try:
        return await connection.list_tools(), ""
    except ToolError as error:
        return [], "; ".join(filter(None, (error.what, error.why)))


def describe_left_out(connection: Connection) -> list[str]:
    """Return one line for each tool of an MCP server that cannot be used, with the reason."""
    server = connection.server.name
    return [
        f"the server {server}: left out {name}: {why}" for name, why in connection.left_out.items()
    ]


def grant_given(tool: Tool) -> ToolGrant:
    """Return what an objective stores about a tool from a program, file or server: its name,
    effect, description and parameters."""
    return ToolGrant(
        name=tool.name,
        effect=tool.effect,
        description=tool.description,
        parameters=json.loads(json.dumps(dict(tool.parameters))),
    )
