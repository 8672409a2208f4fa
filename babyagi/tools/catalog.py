"""The tools that a run can be given, by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from babyagi.errors import SettingsError, ToolError
from babyagi.files import Folder
from babyagi.offload import Offload
from babyagi.tasks import Effect, Passage, ToolGrant
from babyagi.tools.base import Tool, takes_text
from babyagi.tools.calculator import build_calculator
from babyagi.tools.files import build_file_tools, build_write_file

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
    raise ToolError("nobody can be asked here")


# -- the tools that ship: which there are, which an objective is granted, and opening those
# --------------------------------------------------------------------------------------------------

READING = ("list_files", "read_file", "search_files")
ON_DEMAND = ("calculator", "write_file")
NEED_A_FOLDER = frozenset({*READING, "write_file"})
TOOL_NAMES = (*READING, *ON_DEMAND, ASK_USER)


def grant_tools(*, has_folder: bool, more: Sequence[str], may_ask: bool) -> tuple[ToolGrant, ...]:
    """Return what a new objective may use: reading where it has a folder, what was named, asking
    where that is allowed.

    Raises:
        SettingsError: a tool was named that needs a folder, and there is none.
    """
    if not has_folder and (lacking := [name for name in more if name in NEED_A_FOLDER]):
        raise SettingsError(
            f"the tool {lacking[0]} needs a folder", fix="name it: --files FOLDER", guide="tools"
        )
    names = dict.fromkeys(
        [*(READING if has_folder else ()), *more, *([ASK_USER] if may_ask else [])]
    )
    return tuple(ToolGrant(name=name, effect=effect_of(name)) for name in names)


def effect_of(name: str) -> Effect:
    return {"write_file": Effect.ONCE, ASK_USER: Effect.IDEMPOTENT}.get(name, Effect.READ)


def open_tools(
    names: Collection[str], *, folder: Folder | None, offload: Offload
) -> tuple[Tool, ...]:
    """Return the tools of these names that can be opened here; without a folder none that needs
    one."""
    on_folder = (
        ()
        if folder is None
        else (*build_file_tools(folder, offload=offload), build_write_file(folder, offload=offload))
    )
    return tuple(
        tool for tool in (*on_folder, build_calculator(), build_ask_user()) if tool.name in names
    )
