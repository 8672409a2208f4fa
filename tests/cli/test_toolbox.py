"""babyagi tools: what there is, what is granted, and calling one."""

import json
import sys
from pathlib import Path

import pytest

from babyagi.cli.exits import ExitCode
from babyagi.cli.root import run_guarded


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "limits.md").write_text("Ten dollars.\n", encoding="utf-8")
    return tmp_path / "docs"


def listed(capsys, *args):
    assert not run_guarded(["tools", *args, "--json"])
    return {
        tool["name"]: (tool["effect"], tool["granted"])
        for tool in json.loads(capsys.readouterr().out)
    }


def test_the_list_says_what_each_does_to_the_world_and_what_a_new_objective_may_use(folder, capsys):
    bare = listed(capsys)
    given = listed(capsys, "--files", str(folder), "--tools", "write_file")

    assert bare["write_file"] == ("once", False) and not any(
        granted for _, granted in bare.values()
    )
    assert {name for name, (_, granted) in given.items() if granted} == {
        "list_files",
        "read_file",
        "search_files",
        "write_file",
    }
    assert not run_guarded(["tools"])
    assert "calculator     read        not granted" in capsys.readouterr().out


def test_a_tool_can_be_tried_as_a_model_would_call_it(folder, capsys):
    assert run_guarded(["tools", "test", "calculator", "47^0.23"]) == ExitCode.OK
    assert capsys.readouterr().out == "2.4242784855673896\n"
    assert (
        run_guarded(
            ["tools", "test", "search_files", '{"words": "dollars"}', "--files", str(folder)]
        )
        == ExitCode.OK
    )
    assert capsys.readouterr().out == "limits.md, lines 1-1\n1: Ten dollars.\n"


def test_what_does_not_work_is_said_and_ends_with_a_code(folder, capsys):
    assert run_guarded(["tools", "test", "calculator", "1/0", "--json"]) == ExitCode.FAILED
    assert json.loads(capsys.readouterr().out)["is_error"]
    assert run_guarded(["tools", "test", "calculator", '{"nothing": 1}']) == ExitCode.FAILED
    assert "has no parameter 'nothing'" in capsys.readouterr().out
    assert run_guarded(["tools", "test", "ask_user", "What?"]) == ExitCode.FAILED
    assert "no person can be asked here" in capsys.readouterr().out


@pytest.mark.parametrize("args", [["nothing"], ["read_file", "limits.md"]])
def test_a_tool_that_cannot_be_tried_is_refused(folder, args):
    assert run_guarded(["tools", "test", *args]) == ExitCode.USAGE


def test_a_tool_that_lacks_its_setting_says_which(folder, capsys):
    assert not run_guarded(["tools"])
    assert "ask_pipeline   needs BABYAGI_PIPELINE\n" in capsys.readouterr().out

    assert run_guarded(["tools", "test", "ask_pipeline", "x"]) == ExitCode.USAGE
    assert "ask_pipeline needs BABYAGI_PIPELINE" in capsys.readouterr().err


@pytest.mark.parametrize("args", [["--tools", "rm"], ["--tools", "write_file"]])
def test_a_grant_that_cannot_be_is_refused(folder, args):
    assert run_guarded(["tools", *args]) == ExitCode.USAGE


# -- MCP servers, and functions of one's own

MCP_SERVER = Path(__file__).parent.parent / "mcp_server.py"


@pytest.fixture
def servers(folder, tmp_path):
    path = tmp_path / "servers.json"
    good = {
        "command": sys.executable,
        "args": ["-S", str(MCP_SERVER), "good"],
        "effects": {"echo": "read"},
    }
    path.write_text(json.dumps({"mcpServers": {"good": good}}))
    return path


@pytest.mark.system
def test_the_tools_of_servers_are_listed_and_called(servers, capsys):
    assert run_guarded(["tools", "--mcp", str(servers)]) == 0
    said = capsys.readouterr().out
    assert "good__echo     read        granted\n    Say it again." in said

    line = ["tools", "test", "good__echo", '{"text": "hello"}', "--mcp", str(servers)]
    assert run_guarded(line) == 0
    assert capsys.readouterr().out == "hello\n"
    assert run_guarded([*line[:2], "good__none", *line[3:]]) == 2
    assert "there is no tool 'good__none'" in capsys.readouterr().err
    assert run_guarded(line[:-2]) == 2
    assert "babyagi tools --mcp FILE" in capsys.readouterr().err


@pytest.mark.system
def test_each_tool_that_is_left_out_is_named_with_its_reason(servers, monkeypatch, capsys):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    s = {
        "command": sys.executable,
        "args": ["-S", str(MCP_SERVER), "names that models do not take"],
    }
    servers.write_text(json.dumps({"mcpServers": {"s": s}}))
    left_out = "left out a b: its name has characters that cannot be shown"

    assert run_guarded(["tools", "--mcp", str(servers)]) == 0
    out, err = capsys.readouterr()
    assert f"the server s: {left_out}\n" in err and "\ns__a_b " in out
    assert run_guarded(["submit", "x", "--mcp", str(servers)]) == 0
    assert f"the server s: {left_out}\n" in capsys.readouterr().err


@pytest.mark.system
def test_a_server_that_dies_is_shown_with_its_exit_code_and_its_error_output(servers, capsys):
    for behaviour, line in [
        ("a complaint at the start", ["tools"]),
        ("a complaint at the start", ["tools", "test", "s__echo"]),
        ("killed at a call", ["tools", "test", "s__echo", '{"text": "x"}']),
        ("a complaint at the start", ["run", "x", "--model", "rehearsal"]),
    ]:
        s = {"command": sys.executable, "args": ["-S", str(MCP_SERVER), behaviour]}
        servers.write_text(json.dumps({"mcpServers": {"s": s}}))

        assert run_guarded([*line, "--mcp", str(servers)]) != 0
        said = "".join(capsys.readouterr())
        assert "it ended " in said and ("no config" in said or "out of memory" in said)


@pytest.mark.system
def test_an_objective_has_the_tools_of_servers_and_of_files_and_needs_them_again(
    servers, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    own = tmp_path / "prices.py"
    own.write_text('def price(item: str) -> float:\n    """Look up a price."""\n    return 2.5\n')
    named = ["--mcp", str(servers), "--tools-from", str(own)]

    assert run_guarded(["submit", "Say what tea costs", *named]) == 0

    assert run_guarded(["resume"]) == 2
    said = capsys.readouterr().err
    assert "needs the tool good__echo" in said or "needs the tool price" in said
    assert run_guarded(["resume", *named]) == 6


@pytest.mark.system
def test_a_run_does_not_begin_without_the_tools_that_were_named(servers, monkeypatch, capsys):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    servers.write_text('{"mcpServers": {"gone": {"command": "/no/such"}}}')

    assert run_guarded(["run", "x", "--mcp", str(servers)]) == 2
    assert "the program /no/such" in capsys.readouterr().err
