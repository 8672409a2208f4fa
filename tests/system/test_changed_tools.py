"""From the command line: a server changes its tool between two lives of a run; what else can happen
then: `tests/tools/test_mcp_changed.py`."""

import json
import sys
from pathlib import Path

import pytest

from babyagi.llm.prompt import Prompt, Speaker, ToolCall
from support.local_server import LocalServer
from support.local_server.dialects import Answer
from support.processes import babyagi, environ, look
from support.scripted import agree

pytestmark = pytest.mark.system
SERVER = str(Path(__file__).parent.parent / "mcp_server.py")
WAITING = 5  # the exit code


def answer(request):
    """Calls the tool once in a task, and says what it gave."""
    match request.agent:
        case "execution":
            given = [one.text for one in request.messages if one.speaker is Speaker.TOOL]
            call = ToolCall(id="c1", name="s__echo", arguments='{"text": "hello"}')
            if given:
                return Answer(text=f"The tool gave: {given[0].splitlines()[1]}")
            return Answer(text="", tool_calls=(call,), finish_reason="tool_calls")
        case "creation":
            return Answer(text='{"tasks": [], "objective_met": false}')
        case "check":
            return Answer(text=agree(Prompt(messages=request.messages)))
    return Answer(text="The report.")


@pytest.fixture
async def place(tmp_path):
    """A submitted objective whose tool was granted as it was, and the file that says how it is."""
    form = tmp_path / "form.json"
    form.write_text("{}")
    entry = {
        "command": sys.executable,
        "args": ["-S", SERVER, "changing", str(form)],
        "effects": {"echo": "read"},
    }
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"s": entry}}))
    async with LocalServer(answer) as model:
        more = {"OPENAI_API_KEY": "sk-test", "BABYAGI_EMBEDDING_MODEL": "hash"}
        env = environ(tmp_path / "home", model.base_url, SUPPORT_DEFAULTS=f"mcp={servers}", **more)
        ended = await babyagi("submit", "Ask the tool", "--task", "Ask it", env=env)
        assert ended.code == 0, ended.said
        yield env, form


async def test_a_person_is_shown_how_a_tool_has_changed_and_lets_the_run_go_on(place):
    env, form = place
    form.write_text('{"description": "Say it to everybody."}')

    assert (await babyagi("resume", env=env)).code == WAITING
    shown = (await babyagi("inbox", env=env)).out
    (asked,) = await look("inbox", env=env)
    approved = await babyagi("inbox", "approve", str(asked["number"]), "--yes", env=env)
    ended = await babyagi("resume", env=env)

    assert (
        "has changed its description since the objective was started" in shown
        and "Say it to everybody." in shown
    )
    assert asked["kind"] == "changed" and asked["decisions"] == ["approve", "reject"]
    assert approved.code == 0
    assert ended.code == 0, ended.said
    assert "hello" in (await look("show", "results", env=env))[0]["result"]
