"""babyagi ask: an agent of a file, asked by a real process."""

import json

import pytest

from babyagi.agent import Agent
from babyagi.cli.ask import code_of_run
from babyagi.cli.exits import ExitCode
from babyagi.cli.root import run_guarded
from babyagi.errors import SettingsError
from babyagi.memory.log import parse, path_of
from babyagi.react.steps import Stopped
from support.local_server import Answer, LocalServer
from support.processes import babyagi, environ
from tests.components.test_walkthrough import (
    CODE,
    FILE,
    WALK,
    answering,
    find,
    is_for_the_calculator,
)
from tests.search_server import SearchServer

pytestmark = pytest.mark.usefixtures("home")


def say(request):
    """The model of the walk-through, behind a server."""
    if is_for_the_calculator(request):
        return Answer(text=CODE)
    said = answering("native")(request, None)
    return Answer(tool_calls=said) if isinstance(said, tuple) else Answer(text=said)


async def ask(home, *line):
    async with LocalServer(say) as model, SearchServer(find) as search:
        more = {
            "SERP_PARAMS_BASE_URL": search.base_url,
            "DAVINCIMODEL_PARAMS_MODEL_NAME_OR_PATH": "some-model",
        }
        ended = await babyagi(
            "ask", str(FILE), WALK.question, *line, env=environ(home, model.base_url, **more)
        )
        assert {record.body["model"] for record in model.requests} == {"some-model"}
        assert {record.headers["authorization"] for record in model.requests} == {"Bearer XYZ"}
    return ended


@pytest.mark.system
async def test_each_step_is_printed_and_the_answer_last(home):
    ended = await ask(home)

    assert ended.code == 0, ended.said
    lines = ended.out.splitlines()
    assert lines[0] == '1. Search: {"query": "harbour master of Norvik"}'
    assert lines[1].startswith("   Search gave: 1. Harbour office https://norvik.example")
    assert lines[-2:] == ["   Calculator gave: 2.4242784855673896", WALK.answer]
    assert len(lines) == 7
    assert "XYZ" not in ended.said
    assert not any(
        "XYZ" in path.read_text("utf-8", "replace") for path in home.rglob("*") if path.is_file()
    )


@pytest.mark.system
async def test_json_has_the_answer_and_every_step(home):
    ended = await ask(home, "--json")

    found = json.loads(ended.out)
    assert (found["v"], found["answer"], found["stopped"], found["usage"]["calls"]) == (
        1,
        WALK.answer,
        "finish",
        5,
    )
    assert [tool["name"] for step in found["steps"] for tool in step["tools"]] == [
        "Search",
        "Search",
        "Calculator",
    ]
    assert found["steps"][2]["tools"][0]["text"] == "2.4242784855673896"


def write(tmp_path, text):
    (tmp_path / "agents.yaml").write_text(text, encoding="utf-8")
    return "agents.yaml"


SMALL = """
version: ignore
components:
  - {name: Node, type: PromptNode}
  - {name: Run, type: PythonRuntime}
agents:
  - {name: one, params: {prompt_node: Node, tools: [{name: Try, pipeline_or_node: Run, description: computes}]}}
  - {name: two, params: {prompt_node: Node, tools: [{name: Try, pipeline_or_node: Run, description: computes}]}}
"""


def test_the_rehearsal_says_that_it_is_one(tmp_path, capsys):
    assert (
        run_guarded(
            ["ask", write(tmp_path, SMALL), "What?", "--agent", "two", "--model", "rehearsal"]
        )
        == ExitCode.OK
    )

    assert "REHEARSAL: no language model was asked" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["ConversationSummaryMemory", "EntityMemory"])
def test_a_conversation_goes_on_by_its_name_and_is_brought_up_to_date_without_a_fault(
    tmp_path, capsys, kind
):
    memory = f"memory: {{type: {kind}}}, tools:"
    file = write(tmp_path, SMALL.replace("tools:", memory))
    line = ["ask", file, "What?", "--agent", "two", "--model", "rehearsal", "--memory", "tea"]
    for n in range(4):
        assert run_guarded(line) == ExitCode.OK
        # what came of the turn was read when the process ended, before two more turns came
        known = parse(path_of(tmp_path / "home", "tea").read_bytes())
        assert max(known.summary.upto, known.facts_upto) == n + 1

    told = capsys.readouterr().err.splitlines()
    assert told[0] == "conversation tea: new"
    assert told[3].startswith("conversation tea: 3 turns, the last on ") and len(told) == 4
    assert run_guarded(["show", "memory", "tea"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown.startswith("tea: 4 turns") and "4. " in shown and "from person" in shown
    assert ("summary of turns 1 to 4: " in shown) is (kind == "ConversationSummaryMemory")


def test_the_protocol_of_the_settings_is_kept_to_unless_the_file_names_one(tmp_path, monkeypatch):
    file, found = (
        write(tmp_path, SMALL.replace("two, params: {", "two, params: {protocol: text, ")),
        [],
    )

    async def look(self, *_, **__):
        found.append(self.protocol)
        raise SettingsError("enough")

    monkeypatch.setattr(Agent, "run_async", look)
    monkeypatch.setenv("BABYAGI_PROTOCOL", "json")
    for name in ("one", "two"):
        run_guarded(["ask", file, "What?", "--agent", name, "--model", "rehearsal"])

    assert found == ["json", "text"]


def test_an_agent_that_remembers_says_where_nothing_is_kept(tmp_path, capsys):
    file = write(tmp_path, SMALL.replace("tools:", "memory: {type: EntityMemory}, tools:"))

    run_guarded(["ask", file, "What?", "--agent", "two", "--model", "rehearsal"])

    assert "--memory NAME stores it" in capsys.readouterr().err


def test_what_the_agent_of_an_objective_remembers_is_no_conversation(tmp_path, capsys):
    folder = tmp_path / "home" / "memories"
    folder.mkdir(parents=True)
    for name in ("objective-0123456789abcdef", "objective-0123456789abcdef-5f", "objective-tea"):
        (folder / f"{name}.json").write_text('{"id": "i"}')

    for line in (["show", "memory", "--json"], ["show", "--json", "memory"]):
        assert run_guarded(line) == ExitCode.OK
        assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["objective-tea"]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["show", "memory", "tea"], ExitCode.NOT_FOUND, "there is no conversation tea"),
        (
            ["store", "delete", "--memory", "tea"],
            ExitCode.NOT_FOUND,
            "there is no conversation tea",
        ),
        (["show", "memory", "../tea"], ExitCode.USAGE, "1 to 64 letters"),
        (["show", "memory"], ExitCode.OK, ""),
    ],
)
def test_a_conversation_that_is_not_there_is_told(capsys, line, code, said):
    assert run_guarded(line) == code

    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["nowhere.yaml", "What?"], "nowhere.yaml: the file cannot be read"),
        (["agents.yaml", "What?"], "the file describes 2 agents"),
        (["agents.yaml", "What?", "--agent", "x\x1b[31m"], "there is no agent 'x"),
        (["agents.yaml"], "QUESTION"),
        (["agents.yaml", " "], "empty"),
    ],
)
def test_what_cannot_be_asked_is_told_in_four_lines_and_a_code(tmp_path, capsys, line, said):
    write(tmp_path, SMALL)

    assert run_guarded(["ask", *line]) == ExitCode.USAGE

    told = capsys.readouterr().err
    assert said in told and "\x1b" not in told and "Traceback" not in told
    assert len(told.splitlines()) <= 4


def test_every_end_of_a_run_has_a_code():
    assert {stopped: int(code_of_run(stopped)) for stopped in Stopped} == {
        Stopped.FINISH: 0,
        Stopped.FAIL: 6,
        Stopped.MAX_STEPS: 3,
        Stopped.MAX_TIME: 3,
        Stopped.MAX_ERRORS: 6,
        Stopped.REPEATED: 6,
    }
