"""What ships, what is granted, and that a grant says the effect that the tool has."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from babyagi.errors import SettingsError
from babyagi.files.folder import Folder
from babyagi.inbox import Decision, decide
from babyagi.llm.prompt import ToolCall
from babyagi.net.door import Door
from babyagi.retrieval.engines import Searcher
from babyagi.retrieval.pages import Pages
from babyagi.settings.fields import declared_fields
from babyagi.tasks import FOLDER_TOOLS, READING_TOOLS, Role, TaskStatus
from babyagi.tools.catalog import (
    SETS,
    TOOL_NAMES,
    WEB,
    CatalogContext,
    effect_of,
    grant_tools,
    open_tools,
)
from babyagi.tools.files import build_write_file
from babyagi.tools.issues import GitHub
from babyagi.tools.pipelines import haystack_pipeline
from support.scripted import ScriptedModel
from support.world import World
from tests.small_web import NO_CACHE


def everything(folder):
    pages = Pages(Door(), clock=lambda: datetime.now(UTC), folder=NO_CACHE)
    return CatalogContext(
        offload=asyncio.to_thread,
        folder=folder,
        searcher=Searcher([], monotonic=lambda: 0.0),
        pages=pages,
        pipeline=haystack_pipeline("https://docs.example"),
        github=GitHub(),
    )


def names(grants):
    return [grant.name for grant in grants]


def test_every_tool_opens_and_has_the_effect_that_its_grant_says(tmp_path):
    tools = open_tools(TOOL_NAMES, everything(Folder(tmp_path)))

    assert {tool.name for tool in tools} == set(TOOL_NAMES)
    assert {tool.name: tool.effect for tool in tools} == {
        name: effect_of(name) for name in TOOL_NAMES
    }


def test_without_a_folder_nothing_that_needs_one_opens():
    tools = open_tools(TOOL_NAMES, everything(None))

    assert {tool.name for tool in tools} == set(TOOL_NAMES) - set(FOLDER_TOOLS)


def test_every_tool_and_set_can_be_named_but_the_question_which_has_a_setting_of_its_own():
    parse = declared_fields()["tools"].parse
    names = [*SETS, "recall", *(name for name in TOOL_NAMES if name != "ask_user")]

    assert parse(",".join(names)) == tuple(names)
    with pytest.raises(
        ValueError, match=r"these names: web, web_search.*; ask_user is none of them"
    ):
        parse("web,ask_user")


def test_where_nothing_is_searched_with_and_no_page_opens_there_is_no_web():
    tools = open_tools(TOOL_NAMES, CatalogContext(offload=asyncio.to_thread))

    assert {tool.name for tool in tools} == {"calculator", "run_python", "ask_user"}


def test_an_objective_is_granted_what_it_was_started_with_and_nothing_else():
    assert names(grant_tools(has_folder=False, more=(), may_ask=False)) == []
    assert names(grant_tools(has_folder=True, more=(), may_ask=False)) == list(READING_TOOLS)
    assert names(grant_tools(has_folder=True, more=("write_file", "calculator"), may_ask=True)) == [
        *READING_TOOLS, "write_file", "calculator", "ask_user",
    ]  # fmt: skip
    assert names(grant_tools(has_folder=False, more=("web", "github"), may_ask=False)) == [
        *WEB, "search_issues", "issue_link",
    ]  # fmt: skip
    with pytest.raises(SettingsError, match="write_file needs a folder"):
        grant_tools(has_folder=False, more=("calculator", "write_file"), may_ask=False)


async def test_in_a_task_a_file_is_written_once_and_only_after_it_was_approved(tmp_path):
    def answer(prompt, role):
        if role is Role.EXECUTION:
            written = json.dumps({"path": "notes.md", "text": "what was found"})
            return (
                "The limits are written"
                if len(prompt.messages) > 2
                else (ToolCall(id="c1", name="write_file", arguments=written),)
            )
        return '{"tasks": [], "objective_met": false}' if role is Role.CREATION else "the report"

    world = World(
        model=ScriptedModel(answer),
        tools=[build_write_file(Folder(tmp_path), offload=asyncio.to_thread)],
    )
    objective = await world.run()
    assert not (tmp_path / "notes.md").exists()
    (step,) = await world.store.inbox(objective.id)
    await world.store.answer_step(step.id, output=decide(step, Decision.APPROVE, "").to_json())

    await world.run(objective)

    (task,) = await world.store.tasks(objective.id)
    assert task.status is TaskStatus.DONE
    assert (tmp_path / "notes.md").read_text(encoding="utf-8") == "what was found"
