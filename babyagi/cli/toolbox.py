"""The commands about tools and the servers that bring more: tools and tools test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from babyagi.app.toolbox import describe_left_out, list_tools, open_tool_context, require_folder
from babyagi.cli.exits import ExitCode
from babyagi.cli.options import Family, given_flags, json_option, setting_options
from babyagi.cli.session import NOTHING, load
from babyagi.cli.text import Line, Style, give, warn
from babyagi.errors import SettingsError, ToolError
from babyagi.files.folder import Folder
from babyagi.journal import run_tool
from babyagi.settings.fields import Settings
from babyagi.tasks import FOLDER_TOOLS, Passage
from babyagi.tools.base import Observation, Tool, parse_arguments
from babyagi.tools.catalog import TOOL_NAMES, grant_tools, open_tools
from babyagi.tools.mcp import Connection, McpServer, load_servers, open_servers
from babyagi.verbs.json_shapes import Json, pick

SETTINGS = ("files", "tools", "mcp")
# the setting without which a tool cannot be opened
NEEDS = {"ask_pipeline": "BABYAGI_PIPELINE"}


@click.command("tools")
@setting_options(SETTINGS)
@json_option
def show_tools(as_json: bool, **flags: Any) -> int:
    """List the tools, and show which a new objective may use.

    With --mcp, those of the servers are listed as well; the exit code is 6 if one does not answer.
    """

    settings = load(given_flags(flags), needs=NOTHING).settings
    grants = grant_tools(
        has_folder=settings.files is not None, more=settings.tools, may_ask=settings.ask
    )
    granted = {grant.name for grant in grants}
    found = [(tool, tool.name in granted) for tool in _open(settings, TOOL_NAMES)]
    servers = _list_servers(settings)
    for connection, listed, fault in servers:
        found += [(tool, True) for tool in listed]
        for line in (*filter(None, [fault]), *describe_left_out(connection)):
            warn(line, Style.YELLOW)
    give(as_json, [_shape(*entry) for entry in found], _render_tools(found))
    return int(ExitCode.FAILED if any(fault for *_, fault in servers) else ExitCode.OK)


tools = Family(show_tools)


def _render_tools(found: Sequence[tuple[Tool, bool]]) -> Iterator[Line]:
    for tool, is_granted in found:
        said, style = ("granted", Style.BOLD) if is_granted else ("not granted", Style.PLAIN)
        yield Line(f"{tool.name:<14} {tool.effect.value:<10}  {said}", style)
        yield Line(f"    {tool.description}")
    for name in NEEDS.keys() - {tool.name for tool, _ in found}:
        yield Line(f"{name:<14} needs {NEEDS[name]}", Style.DIM)
    yield Line(
        "To grant tools: --files FOLDER (those that read files), --tools NAME,NAME (any of the "
        "others; also web for web_search and open_page, python for run_python, github for "
        "search_issues and issue_link), BABYAGI_ASK=true (ask_user)."
    )


def _shape(tool: Tool, is_granted: bool) -> Json:
    named, more = pick(tool, "name effect"), pick(tool, "description parameters")
    return {**named, "granted": is_granted, **more}


@tools.command("test")
@click.argument("name")
@click.argument("arguments", default="{}")
@setting_options(["files", "mcp"])
@json_option
def tools_test(name: str, arguments: str, as_json: bool, **flags: Any) -> int:
    """Call a tool once, as a model would.

    SERVER__TOOL is a tool of an MCP server that --mcp names. ARGUMENTS is a JSON object, or the
    value of the only parameter. The call is real: its changes stay.
    """

    settings = load(given_flags(flags)).settings
    observation = asyncio.run(_call(settings, name, arguments))
    passage, is_error = observation.passage, observation.is_error
    shown = {"is_error": is_error, "origin": passage.origin, "text": passage.text}
    line = Line(passage.text, Style.RED if is_error else Style.PLAIN)
    give(as_json, {"v": 1, "tool": name, **shown}, [line])
    return int(ExitCode.FAILED if is_error else ExitCode.OK)


def _open(settings: Settings, names: tuple[str, ...]) -> tuple[Tool, ...]:
    """Open the tools of these names as a new objective would, with the settings' folder. Tools that
    lack a setting are left out."""

    require_folder(settings)
    folder = Folder(settings.files or Path(), without=settings.home)
    return open_tools(names, open_tool_context(settings, folder, pages=settings.home / "pages"))


async def _call(settings: Settings, name: str, arguments: str) -> Observation:
    """Call the tool of this name: one of this program's, or one of the MCP server that the name
    begins with. Raises `SettingsError` if there is none, or if it lacks a setting."""
    servers = [one for one in _load_servers(settings) if name.startswith(f"{one.name}__")]
    async with open_servers(servers) as connections:
        listed = [await list_tools(one) for one in connections]
        own = _open(settings, TOOL_NAMES)
        found = {tool.name: tool for tool in (*own, *chain.from_iterable(one for one, _ in listed))}
        if name in NEEDS.keys() - found.keys():
            raise _lacking(name, NEEDS[name])
        if name in FOLDER_TOOLS and settings.files is None:
            raise _lacking(name, "--files FOLDER")
        if name not in found:
            faults = "; ".join(fault for _, fault in listed if fault)
            raise SettingsError(
                f"there is no tool {name[:100]!r}",
                why=faults or f"the tools are {', '.join(found)}",
                fix="babyagi tools, or babyagi tools --mcp FILE",
                guide="tools",
            )
        try:
            observation = await run_tool(found[name], parse_arguments(found[name], arguments))
        except ToolError as error:
            passage = Passage(text=error.what, origin="program")
            observation = Observation(passage=passage, is_error=True)
        for one in connections if observation.is_error else ():
            warn(f"the server {one.server.name}: {one.last_words}")
        return observation


def _lacking(name: str, what: str) -> SettingsError:
    return SettingsError(f"{name} needs {what}", fix=f"give {what}", guide="tools")


# -- the tools of MCP servers
# --------------------------------------------------------------------------------------------------


def _list_servers(settings: Settings) -> list[tuple[Connection, list[Tool], str]]:
    """Return of each server its closed connection, its tools, and why it has none."""

    async def read() -> list[tuple[Connection, list[Tool], str]]:
        async with open_servers(_load_servers(settings)) as connections:
            return [(one, *await list_tools(one)) for one in connections]

    return asyncio.run(read())


def _load_servers(settings: Settings) -> list[McpServer]:
    return load_servers(settings.mcp) if settings.mcp is not None else []
