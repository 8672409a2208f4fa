"""The commands about tools: tools, tools test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from babyagi.cli.completion import complete_tools
from babyagi.cli.options import given_flags, json_option, setting_options
from babyagi.cli.text import Line, Style, echo, echo_lines, print_json, safe
from babyagi.errors import SettingsError, ToolError

if TYPE_CHECKING:
    from babyagi.cli.json_shapes import Json
    from babyagi.settings.fields import Settings
    from babyagi.tools.base import Observation, Tool

SETTINGS = ("files", "tools")


@click.group(invoke_without_command=True)
@setting_options(SETTINGS)
@json_option
@click.pass_context
def tools(context: click.Context, /, as_json: bool, **flags: Any) -> None:
    """The tools, and which a new objective may use."""
    if context.invoked_subcommand is None:
        _list(flags, as_json)


def _list(flags: dict[str, object], as_json: bool) -> None:
    from babyagi.cli.session import NOTHING, load
    from babyagi.tools.catalog import TOOL_NAMES, grant_tools

    settings = load(given_flags(flags), needs=NOTHING).settings
    granted = {
        grant.name
        for grant in grant_tools(
            has_folder=settings.files is not None, more=settings.tools, may_ask=settings.ask
        )
    }
    found = [(tool, tool.name in granted) for tool in _open(settings, TOOL_NAMES)]
    if as_json:
        print_json([_shape(tool, is_granted) for tool, is_granted in found])
        return
    for tool, is_granted in found:
        said = "granted" if is_granted else "not granted"
        echo(
            f"{tool.name:<14} {tool.effect.value:<10}  {said}",
            Style.BOLD if is_granted else Style.PLAIN,
        )
        echo(f"    {tool.description}")
    echo(
        "To grant: --files FOLDER for those that read files, --tools web,python,… for the others "
        "(web is web_search and open_page, python is run_python), BABYAGI_ASK=true for asking you."
    )


def _shape(tool: Tool, is_granted: bool) -> Json:
    return {
        "name": tool.name,
        "effect": tool.effect.value,
        "granted": is_granted,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


@tools.command("test")
@click.argument("name", shell_complete=complete_tools)
@click.argument("arguments", default="{}")
@setting_options(["files"])
@json_option
def tools_test(name: str, arguments: str, as_json: bool, **flags: Any) -> int:
    """Call a tool once, as a model would.

    ARGUMENTS is a JSON object, or the only value. What it changes is changed.
    """
    from babyagi.cli.exits import ExitCode
    from babyagi.cli.session import load

    tool = _find(name, load(given_flags(flags)).settings)
    observation = _call(tool, arguments)
    passage, is_error = observation.passage, observation.is_error
    if as_json:
        print_json(
            {
                "v": 1,
                "tool": name,
                "is_error": is_error,
                "origin": passage.origin,
                "text": passage.text,
            }
        )
    else:
        echo_lines(
            [
                Line(safe(line), Style.RED if is_error else Style.PLAIN)
                for line in passage.text.split("\n")
            ]
        )
    return int(ExitCode.FAILED if observation.is_error else ExitCode.OK)


def _open(settings: Settings, names: tuple[str, ...]) -> tuple[Tool, ...]:
    """The tools; those on a folder work on this one, else on none."""
    from babyagi.app import open_tool_context
    from babyagi.files import Folder
    from babyagi.tools.catalog import open_tools

    folder = Folder(settings.files or Path())
    return open_tools(names, open_tool_context(settings, folder, pages=settings.home / "pages"))


def _find(name: str, settings: Settings) -> Tool:
    from babyagi.tools.catalog import NEED_A_FOLDER, TOOL_NAMES

    if name not in TOOL_NAMES:
        raise SettingsError(
            f"there is no tool {name[:100]!r}",
            why=f"there are: {', '.join(TOOL_NAMES)}",
            fix="babyagi tools",
            guide="tools",
        )
    if name in NEED_A_FOLDER and settings.files is None:
        raise SettingsError(
            f"{name} needs a folder",
            fix=f"babyagi tools test {name} '{{…}}' --files FOLDER",
            guide="tools",
        )
    tool = _open(settings, (name,))[0]
    if tool.asks_person:
        raise SettingsError(
            f"{name} asks you, and you are here already",
            fix="babyagi tools shows those that can be tried",
            guide="inbox",
        )
    return tool


def _call(tool: Tool, arguments: str) -> Observation:
    import asyncio

    from babyagi.journal import run_tool
    from babyagi.tasks import Passage
    from babyagi.tools.base import Observation, parse_arguments

    try:
        checked = parse_arguments(tool, arguments)
    except ToolError as error:
        return Observation(passage=Passage(text=error.what, origin="program"), is_error=True)
    return asyncio.run(run_tool(tool, checked))
