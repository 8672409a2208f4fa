"""MCP servers as tools: real processes, of which each does one thing wrong."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from babyagi.app.toolbox import grant_given
from babyagi.errors import SettingsError, ToolError
from babyagi.sandbox import tree
from babyagi.tasks import Effect
from babyagi.tools import mcp
from babyagi.tools.base import Tool
from babyagi.tools.mcp import McpServer, load_servers, open_servers

SERVER = str(Path(__file__).parent.parent / "mcp_server.py")


def describe(behaviour, *more, **fields):
    given = {"env": {"TOKEN": "KEY-OF-OURS"}, "timeout_s": 1.0, **fields}
    return McpServer(
        name="s", command=sys.executable, args=("-S", SERVER, behaviour, *more), **given
    )


A_TOOL: dict[str, Any] = {"description": "", "parameters": {}, "effect": Effect.READ, "run": None}


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


async def gone(pids):
    """Wait until the processes are gone; the last look says whether they are."""
    for _ in range(200):
        if not any(map(is_alive, pids)):
            break
        await asyncio.sleep(0.02)
    return not any(map(is_alive, pids))


# -- the file


def write(tmp_path, servers):
    path = tmp_path / "mcp.json"
    path.write_text(servers if isinstance(servers, str) else json.dumps({"mcpServers": servers}))
    return path


def test_a_file_names_servers_what_they_may_and_what_their_tools_do(tmp_path):
    servers = {
        "notes": {
            "command": "notes", "args": ["--all"], "env": {"A": "hush"}, "allow": ["find"],
            "effects": {"find": "read"}, "timeout_s": 5,
        },
        "wiki": {"url": "https://wiki.example/mcp", "deny": ["drop"]},
        "off": {"command": "x", "disabled": True},
    }  # fmt: skip
    notes, wiki = load_servers(write(tmp_path, servers))

    assert (notes.command, notes.args, notes.env) == ("notes", ("--all",), {"A": "hush"})
    assert notes.offers("find") and not notes.offers("write")
    assert wiki.offers("find") and not wiki.offers("drop")
    assert notes.effects == {"find": Effect.READ}
    assert "hush" not in repr(notes).split("env")[0]


WRONG = {
    "no JSON": "{",
    "a list": "[]",
    "no servers": "{}",
    "servers as a list": '{"mcpServers": []}',
    "deep": "[" * 100_000,
    "long": " " * 300_000,
    "a name with a blank": {"a b": {"command": "x"}},
    "neither command nor url": {"a": {}},
    "both": {"a": {"command": "x", "url": "https://x"}},
    "an unknown key": {"a": {"command": "x", "shell": True}},
    "arguments as text": {"a": {"command": "x", "args": "y"}},
    "a number in the environment": {"a": {"command": "x", "env": {"A": 1}}},
    "an unknown effect": {"a": {"command": "x", "effects": {"t": "harmless"}}},
    "no time": {"a": {"command": "x", "timeout_s": 0}},
    "another scheme": {"a": {"url": "file:///x"}},
    "a key in clear": {"a": {"url": "http://far.example", "headers": {"Authorization": "k"}}},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_wrong_is_one_error_that_says_what(name, tmp_path):
    with pytest.raises(SettingsError, match="cannot be used"):
        load_servers(write(tmp_path, WRONG[name]))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"args": "s3cret"}, "a: args: Input should be a valid array"),
        ({"env": {"A": ["s3cret"]}}, "a: env.A: Input should be a valid string"),
        (
            {"effects": {"t": "s3cret"}},
            "a: effects.t: Input should be 'read', 'idempotent' or 'once'",
        ),
        ({"timeout_s": "s3cret"}, "a: timeout_s: Input should be a valid number"),
    ],
)
def test_a_wrong_value_is_named_but_not_shown(entry, why, tmp_path):
    with pytest.raises(SettingsError) as raised:
        load_servers(write(tmp_path, {"a": {"command": "x", **entry}}))

    assert raised.value.why == why


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(SettingsError) as raised:
        load_servers(tmp_path / "none.json")

    assert "cannot be read" in raised.value.why
    assert raised.value.fix == "name an existing JSON file: --mcp FILE"


# -- servers

ANSWERED = """
    good|a flood without end of line|a flood of junk|a flood of notices|answers to others
    |two answers|requests of its own|broken characters|odd names|a giant schema|a speech
    """
FAILED = {
    "silent call": "it gave no answer in 1 s",
    "dead at a call": "Connection closed",
    "no answer but an error": "there is no such method",
    "another form": "s failed",
    "a failure": r"^no: \*\*\*$",
    "half a line": "Connection closed",
    "closed output": "s failed",
    "too long an answer": "the answer is too long to be read",
}
NOT_STARTED = {
    "silent at the start": "did not start",
    "dead at the start": "Connection closed",
    "another protocol": "s failed",
    "no list": "s failed",
    "silent list": "no answer",
}


@pytest.mark.system
@pytest.mark.parametrize("behaviour", [one.strip() for one in ANSWERED.split("|")])
async def test_a_server_that_says_too_much_is_still_understood(behaviour):
    async with open_servers([describe(behaviour, timeout_s=20.0)]) as (connection,):
        tools = {tool.name: tool for tool in await connection.list_tools()}
        passage = await tools["s__echo"].run({"text": "hello"})

    assert (passage.text, passage.origin) == ("hello", "tool:s__echo")
    assert tools["s__echo"].effect is Effect.ONCE
    assert len(tools["s__echo"].description) <= mcp.MAX_DESCRIPTION_CHARS
    assert tools["s__echo"].description.isprintable()
    assert "s__calculator" in tools or behaviour != "odd names"


@pytest.mark.system
@pytest.mark.parametrize("behaviour", FAILED)
async def test_a_call_that_fails_is_one_line_without_our_secrets(behaviour):
    async with open_servers([describe(behaviour)]) as (connection,):
        with pytest.raises(ToolError, match=FAILED[behaviour]) as raised:
            await connection.call("echo", {"text": "hello"})

    assert "\n" not in raised.value.what and "KEY-OF-OURS" not in raised.value.what


@pytest.mark.system
@pytest.mark.parametrize("behaviour", NOT_STARTED)
async def test_a_server_that_cannot_be_used_costs_one_call_and_rests(behaviour, monkeypatch):
    # only a silent server is waited for; a busy machine may take seconds to start any other
    timeout_s = {"silent at the start": 1.0, "silent list": 6.0}.get(behaviour, 60.0)
    monkeypatch.setattr(mcp, "CONNECT_TIMEOUT_S", timeout_s)
    async with open_servers([describe(behaviour, timeout_s=timeout_s)]) as (connection,):
        with pytest.raises(ToolError, match=NOT_STARTED[behaviour]):
            await connection.list_tools()
        if "list" not in behaviour:  # which answer, though wrongly
            with pytest.raises(ToolError, match="it is tried again in"):
                await connection.list_tools()


@pytest.mark.system
async def test_an_answer_that_is_too_long_costs_its_call_alone():
    async with open_servers([describe("one answer too long", timeout_s=20.0)]) as (connection,):
        (tool,) = await connection.list_tools()
        with pytest.raises(ToolError, match="too long to be read"):
            await tool.run({"text": "long"})

        assert (await tool.run({"text": "hello"})).text == "hello"
        assert [one.name for one in await connection.list_tools()] == [tool.name]


@pytest.mark.system
async def test_how_a_server_ended_and_what_it_complained_of_is_said_to_a_person_alone(caplog):
    async with open_servers([describe("a complaint at the start")]) as (connection,):
        with pytest.raises(ToolError) as raised:
            await connection.list_tools()

    assert raised.value.what == "the server s failed: Connection closed"
    assert raised.value.why.startswith("it ended with exit code 3; its error output ends: xxx")
    assert raised.value.why.endswith("x \N{REPLACEMENT CHARACTER}[31mno config: ***")
    assert len(raised.value.why) <= mcp.MAX_LAST_WORDS_CHARS
    assert caplog.messages == [f"the server s failed: {raised.value.why}"]


@pytest.mark.system
@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("dead at a call", "it ended with exit code 3"),
        ("killed at a call", "it ended by signal 9; its error output ends: out of memory"),
        ("a complaint and no answer", "its error output ends: waiting for a login"),
        ("no answer but an error", ""),
    ],
)
async def test_a_call_that_fails_says_to_a_person_how_the_server_ended(behaviour, why):
    async with open_servers([describe(behaviour)]) as (connection,):
        with pytest.raises(ToolError) as raised:
            await connection.call("echo", {"text": "hello"})

    assert raised.value.why == why


@pytest.mark.system
@pytest.mark.parametrize(
    ("behaviour", "text"),
    [
        ("no text", "(image that is not text)"),
        ("values alone", '{"n": 1}'),
        ("a long answer", "y" * 2**21),
    ],
)
async def test_the_output_of_a_tool_is_text(behaviour, text):
    async with open_servers([describe(behaviour, timeout_s=20.0)]) as (connection,):
        assert (await connection.call("echo", {})).text == text


@pytest.mark.system
@pytest.mark.parametrize("behaviour", ["endless list", "ten thousand tools"])
async def test_no_server_has_more_tools_than_fit(behaviour):
    async with open_servers([describe(behaviour, timeout_s=20.0)]) as (connection,):
        assert 0 < len(await connection.list_tools()) <= mcp.MAX_TOOLS


@pytest.mark.system
async def test_a_server_that_died_is_started_again_after_its_rest(monkeypatch):
    monkeypatch.setattr(mcp, "REST_S", 0.0)
    async with open_servers([describe("dead at a call")]) as (connection,):
        for _ in range(2):
            with pytest.raises(ToolError, match="Connection closed"):
                await connection.call("echo", {})
            assert [tool.name for tool in await connection.list_tools()] == ["s__echo"]


@pytest.mark.system
async def test_only_what_the_file_lets_through_is_a_tool_with_the_effect_that_it_says():
    server = describe(
        "odd names",
        allow=("echo", "calculator"),
        deny=("echo",),
        effects={"calculator": Effect.READ},
        timeout_s=20.0,
    )
    async with open_servers([server]) as (connection,):
        (tool,) = await connection.list_tools()

    assert (tool.name, tool.effect) == ("s__calculator", Effect.READ)


# -- the tools of a list, one by one


def nested(levels):
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


def with_text(schema):
    return {"inputSchema": {"type": "object", "properties": {"text": schema}}}


ECHO: dict[str, Any] = {
    "name": "echo",
    "description": "Say it again.",
    **with_text({"type": "string"}),
}
NO_OBJECT = 'its schema is not a JSON object with "type": "object"'
KEYWORD = "a keyword of the schema has a value of a wrong type"
NO_JSON = "its schema has a number or a character that JSON cannot hold"
UNUSABLE = {
    "no tool": (7, "it is not a JSON object"),
    "nothing": (None, "it is not a JSON object"),
    "a list": ([ECHO], "it is not a JSON object"),
    "no name": ({"name": None}, "it has no name"),
    "a number as a name": ({"name": 7}, "it has no name"),
    "an empty name": ({"name": ""}, "it has no name"),
    "a long name": ({"name": "x" * 129}, "its name is longer than 128 characters"),
    "a line in a name": ({"name": "a\nb"}, "its name has characters that cannot be shown"),
    "a zero in a name": ({"name": "a\0"}, "its name has characters that cannot be shown"),
    "an escape in a name": ({"name": "\x1b[31m"}, "its name has characters that cannot be shown"),
    "hidden in a name": ({"name": "e\u200bcho"}, "its name has characters that cannot be shown"),
    "turned round": ({"name": "a\u202eb"}, "its name has characters that cannot be shown"),
    "half a character": ({"name": "a\ud800"}, "its name has characters that cannot be shown"),
    "not a character": ({"name": "a\ufffd"}, "its name has characters that cannot be shown"),
    "no schema": ({"inputSchema": None}, NO_OBJECT),
    "a schema that is text": ({"inputSchema": '{"type": "object"}'}, NO_OBJECT),
    "a schema that is true": ({"inputSchema": True}, NO_OBJECT),
    "a schema of a list": ({"inputSchema": {"type": "array"}}, NO_OBJECT),
    "a schema of many types": ({"inputSchema": {"type": ["object"]}}, NO_OBJECT),
    "a schema without type": ({"inputSchema": {}}, NO_OBJECT),
    "a deep schema": ({"inputSchema": nested(60)}, "its schema is nested more than 100 levels"),
    "a huge schema": (with_text({"const": "y" * 20_000}), "its schema is longer than 20,000"),
    "a version that is no text": (
        {"inputSchema": {"type": "object", "$schema": 5}}, "the $schema of its schema is not text",
    ),
    "a list of properties": ({"inputSchema": {"type": "object", "properties": []}}, KEYWORD),
    "a number as required": ({"inputSchema": {"type": "object", "required": 7}}, KEYWORD),
    "a number as choices": (with_text({"enum": 7}), KEYWORD),
    "a type of numbers": (with_text({"type": [5, None]}), KEYWORD),
    "an endless bound": (with_text({"maximum": float("inf")}), KEYWORD),
    "no number": (with_text({"default": float("nan")}), NO_JSON),
    "half a character in a schema": (with_text({"title": "\ud800"}), NO_JSON),
    "a reference away": (with_text({"$ref": "http://127.0.0.1:9/x"}), "refers to http://127.0"),
    "a reference to a file": (with_text({"$ref": "file:///etc/passwd#"}), "refers to file:///etc"),
    "a reference to nothing": (with_text({"$ref": "#/$defs/none"}), "refers to #/$defs/none"),
    "a wrong header": (with_text({"type": "string", "x-mcp-header": "a b"}), "x-mcp-header"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_tool_that_cannot_be_used_takes_no_other_with_it_and_its_reason_is_said(name):
    given, reason = UNUSABLE[name]
    bad = {**ECHO, "name": "bad", **given} if isinstance(given, dict) else given

    sifted = mcp.sift_tools({"tools": [bad, ECHO], "nextCursor": "2"})

    ((left, why),) = sifted["_meta"]["babyagi/left-out"].items()
    assert sifted["tools"] == [ECHO] and sifted["nextCursor"] == "2"
    assert reason in why and left
    assert "\n" not in left + why and len(why) <= mcp.MAX_REASON_CHARS


@pytest.mark.parametrize(
    "more",
    [
        {"outputSchema": 7},
        {"outputSchema": {"$ref": "#"}},
        {"icons": "none"},
        {"annotations": [1]},
        {"title": 7, "_meta": 7, "execution": {"taskSupport": "perhaps"}},
        {"description": 7},
        with_text({"$ref": "#"}),
        with_text({"$ref": "#/properties/text"}),
        {
            "inputSchema": {
                "type": "object",
                "$defs": {"a/b": True},
                "not": {"$ref": "#/$defs/a~1b"},
            }
        },
    ],
)
def test_what_nobody_uses_of_a_tool_does_it_no_harm(more):
    (tool,) = mcp.sift_tools({"tools": [{**ECHO, **more}]})["tools"]

    assert tool.keys() <= ECHO.keys()


def test_a_long_list_says_that_it_is_not_read_to_its_end():
    sifted = mcp.sift_tools({"tools": [{**ECHO, "name": f"echo{n}"} for n in range(201)]})

    assert len(sifted["tools"]) == mcp.MAX_TOOLS
    assert [*sifted["_meta"]["babyagi/left-out"]] == ["others"]


@pytest.mark.parametrize("result", [{"tools": 7}, {"content": []}, {}])
def test_what_is_no_list_of_tools_stays_as_it_is(result):
    assert mcp.sift_tools(result) is result


@pytest.mark.parametrize(
    ("tool", "begins"),
    [
        ("a.b", "s__a_b_"), ("a b", "s__a_b_"), ("ü", "s____"), ("x" * 62, "s__" + "x" * 52 + "_"),
        ("x" * 128, "s__" + "x" * 52 + "_"), (" ", "s____"),
    ],
)  # fmt: skip
def test_a_name_that_models_do_not_take_is_changed_always_in_the_same_way(tool, begins):
    name = mcp.name_tool("s", tool)

    assert name.startswith(begins) and Tool(name=name, **A_TOOL)
    assert mcp.name_tool("s", tool) == name == mcp.name_tool("s", name.removeprefix("s__"))
    assert mcp.name_tool("s", tool + ".") != name


@pytest.mark.parametrize("tool", ["a_b", "a-b", "x" * 61, "_", "s__echo"])
def test_a_name_that_models_take_is_kept(tool):
    assert mcp.name_tool("s", tool) == f"s__{tool}"


def test_a_file_may_name_a_tool_as_its_server_does_or_as_models_do():
    changed = mcp.name_tool("s", "a.b").removeprefix("s__")
    for name in ("a.b", changed):
        server = McpServer(name="s", allow=(name,), effects={name: Effect.READ})
        barred = McpServer(name="s", deny=(name,))
        for tool in ("a.b", changed):
            assert server.offers(tool) and server.effect_of(tool) is Effect.READ
            assert not barred.offers(tool)
        assert not server.offers("a b") and barred.offers("a b")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"a": "[{\\"}", "b": [-1.5e3, "\\ud83d\\ude00"]}', None),
        ('"\\ud800 \\\\ud800 \\udc00"', '"\\ufffd \\\\ud800 \\ufffd"'),
        (f'[-{"9" * 5000}.5, "{"9" * 5000}"]', f'[1e999, "{"9" * 5000}"]'),
        ("[" * 5000 + '"x"' + "]" * 5000 + ", 2", "[" * 150 + "null" + "]" * 150 + ", 2"),
    ],
)
def test_what_the_library_cannot_parse_is_replaced(text, read):
    assert tree.mend(text.encode()).decode() == (read or text)


@pytest.mark.parametrize("form", ["{}", "event: message\r\ndata: {}\r\n\r\n"])
async def test_an_answer_over_http_is_mended_as_one_of_a_program_is(form):
    text = '{"result": {"tools": [{"description": "half of \\ud83d"}]}}'

    async def pieces():
        for char in form.replace("{}", text):
            yield char.encode()

    response = httpx2.Response(200, content=pieces())
    await mcp._guard_answer(response)

    assert (await response.aread()).decode() == form.replace("{}", text.replace("d83d", "fffd"))


@pytest.mark.system
async def test_a_server_with_odd_schemas_keeps_the_tools_that_can_be_used():
    async with open_servers([describe("odd schemas", timeout_s=20.0)]) as (connection,):
        tools = await connection.list_tools()

        assert (await tools[1].run({"text": "hello"})).text == "hello"
    assert [tool.name for tool in tools] == ["s__icons", "s__echo", "s__anything"]
    assert connection.left_out["no object"] == NO_OBJECT
    assert len(connection.left_out) == 13
    for tool in tools:
        json.dumps(tool.parameters, allow_nan=False)  # as it is sent


@pytest.mark.system
async def test_a_list_that_the_library_cannot_parse_keeps_the_tools_that_can_be_used():
    async with open_servers([describe("unreadable schemas", timeout_s=20.0)]) as (connection,):
        tools = await connection.list_tools()

    assert [tool.name for tool in tools] == ["s__echo"]
    assert connection.left_out.keys() == {"x0", "x1", "x2"}


@pytest.mark.system
async def test_a_server_is_called_by_its_own_name_for_a_tool_also_after_a_restart():
    server = describe("names that models do not take", deny=("a/b",), timeout_s=20.0)
    async with open_servers([server]) as (connection,):
        tools = await connection.list_tools()
        assert [(await tool.run({})).text for tool in tools] == [
            "a.b",
            "a b",
            "ü",
            "x" * 128,
            "a_b",
            "a.c",
        ]
        grants = [grant_given(tool) for tool in tools]
        reasons = connection.left_out
        assert [*reasons.values()].count(mcp.SAME_FOR_MODELS) == 1 and "a.c" not in reasons
        assert len(reasons) == 4

    async with open_servers([server]) as (connection,):
        granted = list(filter(None, map(connection.open_granted, grants)))
        passages = [await tool.run({}) for tool in granted]
        assert [one.text for one in passages] == ["a.b", "a b", "ü", "x" * 128, "a_b", "a.c"]
        assert [one.origin for one in passages] == [f"tool:{tool.name}" for tool in tools]


@pytest.mark.system
async def test_a_command_that_is_not_there_says_so():
    async with open_servers([McpServer(name="s", command="/no/such/program")]) as (connection,):
        with pytest.raises(ToolError, match="the program /no/such/program"):
            await connection.list_tools()


@pytest.mark.system
async def test_all_that_a_server_started_ends_with_its_connection(tmp_path):
    pids = tmp_path / "pids"
    async with open_servers([describe("children left behind", str(pids), timeout_s=20.0)]) as (
        one,
    ):
        await one.list_tools()
        started = [int(pid) for pid in pids.read_text().split()]
        assert all(map(is_alive, started))

    assert await gone(started)


@pytest.mark.system
async def test_all_that_a_server_started_ends_when_this_program_is_killed(tmp_path):
    pids = tmp_path / "pids"
    code = (
        "import subprocess, sys, time\n"
        f"guard = subprocess.Popen([sys.executable, '-I', {tree.__file__!r}, '1000', sys.executable,"
        f" {SERVER!r}, 'children left behind', {str(pids)!r}], stdin=subprocess.PIPE)\n"
        "time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        for _ in range(500):
            if pids.exists() and len(pids.read_text().split()) == 3:
                break
            await asyncio.sleep(0.02)
        started = [int(pid) for pid in pids.read_text().split()]
        assert all(map(is_alive, started))
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()

    assert await gone(started)


OFFICIAL = """
import os, sys
from mcp.server.mcpserver import MCPServer
app = MCPServer('t')
@app.tool()
def add(a: int, b: int) -> int:
    'Add two numbers.'
    return a + b
@app.tool()
def names() -> str:
    return ' '.join(sorted(os.environ))
at = dict(host='127.0.0.1', port=int(sys.argv[1])) if len(sys.argv) > 1 else {}
app.run('streamable-http' if at else 'stdio', **at)
"""


@pytest.fixture
def official(tmp_path):
    program = tmp_path / "server.py"
    program.write_text(OFFICIAL)
    return str(program)


@pytest.mark.system
async def test_a_server_made_with_the_official_library_is_used_over_stdio(official):
    stdio = McpServer(name="local", command=sys.executable, args=(official,), env={"MINE": "x"})
    async with open_servers([stdio]) as (connection,):
        tools = [tool.name for tool in await connection.list_tools()]
        total = (await connection.call("add", {"a": 2, "b": 3})).text
        names = (await connection.call("names", {})).text.split()

    assert (tools, total) == (["local__add", "local__names"], "5")
    assert "MINE" in names and not {"OPENAI_API_KEY", "BABYAGI_HOME", "PYTHONPATH"} & set(names)


@pytest.mark.system
async def test_a_server_made_with_the_official_library_is_used_over_http(official):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, official, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        await until_listening(port)
        far = McpServer(name="far", url=f"http://127.0.0.1:{port}/mcp")
        async with open_servers([far]) as (connection,):
            tools = {tool.name: tool for tool in await connection.list_tools()}
            total = (await tools["far__add"].run({"a": 2, "b": 3})).text
            with pytest.raises(ToolError, match="integer"):
                await connection.call("add", {"a": "two", "b": 3})
    finally:
        process.kill()
        process.wait()

    assert (sorted(tools), total) == (["far__add", "far__names"], "5")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


async def until_listening(port):
    """Wait until somebody listens there; the test's own time bounds it."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return


@pytest.mark.system
@pytest.mark.parametrize("behaviour", ["the protocol of 2024", "the protocol of March"])
async def test_a_server_of_an_earlier_protocol_is_used(behaviour):
    program = SERVER.replace("mcp_server", "mcp_hostile_server")
    server = McpServer(name="s", command=sys.executable, args=("-S", program, behaviour))
    async with open_servers([server]) as (connection,):
        (tool,) = await connection.list_tools()
        assert (await tool.run({"text": "hello"})).text == "hello"
