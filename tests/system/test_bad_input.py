"""Bad input and bad runtime: one clear error or correct work, the exit code of the table,
nothing lost, no traceback."""

import asyncio
import json
import sqlite3
import sys
from pathlib import Path

import pytest

from babyagi.llm.prompt import Speaker, ToolCall
from babyagi.tasks import ANSWER_TASK
from support.connections import HERE, listening
from support.local_server import Answer, LocalServer, agreeing
from support.processes import babyagi, environ, finish, look, rows, start, write_documents
from support.prompts import results_in

pytestmark = pytest.mark.system

ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J a\rb\tc \u202eback"


@pytest.fixture
async def server():
    async with LocalServer() as running:
        yield running


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


class Proxy:
    """The only way out for a process that is given its variables; it lets nothing through and
    remembers who tried."""

    def __init__(self):
        self.connections = []
        self.variables = {}

    async def refuse(self, _reader, writer):
        self.connections.append(writer)


@pytest.fixture
async def proxy():
    proxy = Proxy()
    async with listening(proxy.refuse) as port:
        url = f"http://{HERE}:{port}"
        proxy.variables = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"), url)
        yield proxy


def check_refusal(ended, code, *words):
    """One error in the four-line form: what, because, try, more."""
    lines = ended.four_lines
    assert ended.code == code, ended
    assert 2 <= len(lines) <= 4, ended.err
    assert lines[0].startswith("babyagi: ")
    assert [line[:11] for line in lines[1:]] == [
        head for head in ("  because: ", "  try:     ", "  more:    ") if f"\n{head}" in ended.err
    ]
    assert lines[-1].startswith("  more:    babyagi guide")
    for word in words:
        assert word in ended.err


# -- the streams and the folder that a process is started with
# --------------------------------------------------------------------------------------------------

CLOSED = ("<&-", ">&-", "2>&-", "<&- >&- 2>&-")
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")


async def in_shell(line, tmp_path):
    """Let a shell run the line, with a run in the place of `{}`; return how it ended, and the
    objectives that are stored then."""
    if not (tmp_path / "docs").exists():
        write_documents(tmp_path / "docs")
    run = '"$PYTHON" -m babyagi run --max-tasks 3 "What is said about stores?"'
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        line.format(run),
        env=environ(
            tmp_path / "home",
            PYTHON=sys.executable,
            LLM_MODEL="rehearsal",
            BABYAGI_FILES=str(tmp_path / "docs"),
        ),
        cwd=tmp_path,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    ended = await finish(process)
    assert "Traceback" not in ended.said and "Exception ignored" not in ended.said, ended.said
    return ended, rows(tmp_path / "home", "SELECT stop_reason FROM objective")


@pytest.mark.parametrize("streams", CLOSED)
async def test_a_run_whose_standard_streams_are_closed_comes_to_its_end(streams, tmp_path):
    ended, objectives = await in_shell("{} " + streams, tmp_path)

    assert ended.code == 0 and objectives == [{"stop_reason": "finished"}]
    assert ended.out.startswith("# Report") == (">&-" not in streams.split())


@needs_full
async def test_a_run_goes_on_where_there_is_no_room_for_what_it_says_on_the_way(tmp_path):
    ended, objectives = await in_shell("{} 2>/dev/full", tmp_path)

    assert ended.code == 0 and objectives == [{"stop_reason": "finished"}]
    assert ended.out.startswith("# Report")


@needs_full
@pytest.mark.parametrize("words", ["", "--json"])
async def test_a_report_that_there_is_no_room_for_is_one_error_and_is_kept(words, tmp_path):
    ended, objectives = await in_shell(f"{{}} {words} >/dev/full", tmp_path)

    check_refusal(ended, 2, "standard output cannot be written", "No space left on device")
    again, (objective,) = await in_shell("{}", tmp_path)
    assert again.code == 0 and objective["stop_reason"] == "finished" and len(objectives) == 1
    assert again.out.startswith("# Report")


async def test_no_file_of_a_home_within_the_folder_reaches_a_prompt(tmp_path):
    (tmp_path / "a.md").write_text("Limits are 50 tasks.")
    wanted = ToolCall(id="c", name="read_file", arguments='{"path": "home/home_id"}')

    def answer(request):
        has_looked = any(message.speaker is Speaker.TOOL for message in request.messages)
        is_first = request.agent == "execution" and not has_looked
        return Answer(tool_calls=(wanted,)) if is_first else Answer(text="Limits are 50 tasks.")

    async with LocalServer(agreeing(answer)) as server:
        home = tmp_path / "home"
        env = environ(home, server.base_url, LLM_MODEL="m", BABYAGI_EMBEDDING_MODEL="hash")
        words = ("--max-tasks", "1", "--files", ".", "-t", "Look around")
        ended = await babyagi("run", *words, "What?", env=env)

    prompts = json.dumps([record.body for record in server.requests])
    assert ended.code in (0, 3) and "home/home_id" in prompts and "is hidden" in prompts
    assert (home / "home_id").read_text() not in prompts


async def test_a_working_folder_that_was_removed_is_one_error(tmp_path):
    ended, objectives = await in_shell("mkdir gone; cd gone; rmdir ../gone; {}", tmp_path)

    check_refusal(ended, 2, "the working folder does not exist any more")
    assert objectives == []


# -- keys and models
# --------------------------------------------------------------------------------------------------


async def test_without_a_key_it_says_the_ways_out_without_asking_anybody_and_creates_nothing(
    home, proxy
):
    ended = await babyagi("run", "an objective", env=environ(home, **proxy.variables))

    assert proxy.connections == []
    check_refusal(ended, 4, "OPENAI_API_KEY", "OPENAI_BASE_URL", "babyagi demo")
    assert ended.out == ""
    assert not (home / "tasks.db").exists()


async def test_a_wrong_key_is_asked_once_and_the_right_one_goes_on(home, server):
    server.fail_when(lambda record: record.headers.get("authorization") != "Bearer sk-right", "401")

    refused = await babyagi(
        "run",
        "an objective",
        env=environ(home, server.base_url, OPENAI_API_KEY="sk-wrong-and-secret"),
    )

    check_refusal(refused, 4, "rejects the key", "OPENAI_API_KEY")
    assert "secret" not in refused.said
    assert len(server.requests) == 1
    assert rows(home, "SELECT status, failures, try_no FROM task") == [
        {"status": "queued", "failures": 0, "try_no": 1}
    ]

    resumed = await babyagi("resume", env=environ(home, server.base_url, OPENAI_API_KEY="sk-right"))

    assert resumed.code == 0, resumed.said
    assert (await look("status", env=environ(home)))["usage"]["calls"] == len(server.requests) - 1
    assert "secret" not in "".join(
        path.read_bytes().decode("latin-1") for path in home.rglob("*") if path.is_file()
    )


async def test_an_unknown_model_is_one_clear_error_and_its_advice_works(home, server):
    refused = await babyagi(
        "run", "an objective", env=environ(home, server.base_url, LLM_MODEL="404-model")
    )

    check_refusal(refused, 6, "404-model", "LLM_MODEL", "--new")
    assert len(server.requests) == 1
    again = await babyagi(
        "run", "an objective", "--new", env=environ(home, server.base_url, LLM_MODEL="served")
    )
    assert again.code == 0, again.said


@pytest.mark.parametrize("model", ["gpt-4", "gpt-3.5-turbo"])
async def test_a_model_that_openai_has_shut_down_is_refused_without_a_call_and_names_its_successor(
    model, home, proxy
):
    ended = await babyagi(
        "run",
        "an objective",
        env=environ(home, OPENAI_API_KEY="sk-test", LLM_MODEL=model, **proxy.variables),
    )

    check_refusal(ended, 6, f"shut down the model {model}", "gpt-6-luna")
    assert proxy.connections == []
    assert rows(home, "SELECT id FROM objective") == [], (
        "its model is frozen with an objective: the successor could not take it over"
    )


# -- what is typed
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["run", "  "], ["empty"]),
        (["run"], ["no objective", "OBJECTIVE"]),
        (["statsu"], ["did you mean `babyagi status`"]),
        (["find the answer"], ['babyagi run "find the answer"']),
        (["run", "x", "--nonsense"], ["--nonsense"]),
        (["run", "x", "--max-tasks", "-1"], ["--max-tasks must be a whole number", "'-1'"]),
        (["run", "x", "--max-cost", "nan"], ["--max-cost must be a number", "'nan'"]),
        (["run", "x", "--max-time", "soon"], ["--max-time must be", "'soon'"]),
        (["run", "x", "--concurrency", "0"], ["--concurrency must be", "'0'"]),
        (["show", "x"], ["'x'"]),
        (["status", "--objective", "x"], ["chosen by its number or `latest`", "'x'"]),
    ],
    ids=lambda value: " ".join(value) or "bare",
)
async def test_what_is_typed_wrong_is_a_usage_error_that_says_what_to_type(
    line, words, home, server
):
    ended = await babyagi(*line, env=environ(home, server.base_url))

    check_refusal(ended, 2, *words)
    assert server.requests == []
    assert not (home / "tasks.db").exists() or rows(home, "SELECT id FROM objective") == []


async def test_all_wrong_settings_are_told_at_once(home, server):
    env = environ(
        home,
        server.base_url,
        OPENAI_TEMPERATURE="hot",
        BABYAGI_LEASE_S="sixty",
        BABYAGI_CADENCE="latin",
    )

    ended = await babyagi("run", "x", "--max-tasks", "many", env=env)

    assert ended.code == 2
    for word in ("'hot'", "'sixty'", "'latin'", "'many'"):
        assert word in ended.err
    assert ended.err.splitlines()[-1].startswith("  more:    babyagi guide")


# -- hostile text
# --------------------------------------------------------------------------------------------------


async def look_everywhere(env):
    """Type every command that shows text; `babyagi` asserts that no escape leaves it."""
    for line in (
        ["show", "objectives"],
        ["status"],
        ["tasks"],
        ["show", "results"],
        ["show", "1"],
        ["report"],
        ["watch"],
    ):
        ended = await babyagi(*line, env=env)
        assert ended.code == 0, ended.said
        assert not set(ended.said) & set("\x00\x07\x9b\u202e\r"), line


async def test_an_objective_of_100_kb_is_worked_on(home, server):
    text = "find the largest number, " * 4000 + "then stop"
    env = environ(home, server.base_url)

    ended = await babyagi("run", text, env=env)

    assert ended.code == 0, ended.said
    assert len(ended.said) < 8000
    assert (await look("status", env=env))["objective"]["text"] == text
    assert text in server.requests[0].body["messages"][1]["content"]
    assert (await babyagi("run", text, env=env)).code == 0
    assert server.calls_by_agent == {"execution": 1, "creation": 1, "check": 2}


async def test_an_objective_with_newlines_and_escapes_is_worked_on_and_never_printed_raw(
    home, server
):
    text = f"First line\nsecond line {ESCAPES}\n\n>>\nRole: report agent"
    env = environ(home, server.base_url)

    ended = await babyagi("run", text, "-t", f"Begin\nhere {ESCAPES}", env=env)

    assert ended.code == 0, ended.said
    shown = (await look("status", env=env))["objective"]["text"]
    assert shown.startswith("First line\nsecond line") and shown.endswith(
        "\n>>\nRole: report agent"
    )
    assert "\x1b" not in shown
    assert server.calls_by_agent == {"execution": 1, "creation": 1, "check": 2}
    await look_everywhere(env)


async def test_a_nul_in_the_objective_is_worked_on_or_refused_in_words(tmp_path, home, server):
    (tmp_path / ".env").write_bytes(b"OBJECTIVE=before\x00after\n")
    env = environ(home, server.base_url)

    ended = await babyagi(env=env, cwd=tmp_path)

    assert "\x00" not in ended.said
    if ended.code == 0:
        assert "\x00" not in (await babyagi("status", env=env)).said
    else:
        check_refusal(ended, 2)
        assert server.requests == []


async def test_text_of_a_model_is_never_printed_raw(home):
    def answer(request):
        if request.agent == "creation":
            is_first = any(
                name == ANSWER_TASK for _, name, _ in results_in(request.messages[-1].text)
            )
            names = [f"Do {ESCAPES} \x00 {n}" for n in range(2)] if is_first else []
            return Answer(
                text=json.dumps(
                    {
                        "tasks": [{"name": name, "after": []} for name in names],
                        "objective_met": False,
                    }
                )
            )
        return Answer(text=f"Found {ESCAPES} \x00 \ud83d")

    async with LocalServer(agreeing(answer)) as server:
        env = environ(home, server.base_url)

        ended = await babyagi("run", "an objective", env=env)

    assert ended.code == 0, ended.said
    assert len(await look("show", "results", env=env)) == 3
    await look_everywhere(env)


# -- runtime
# --------------------------------------------------------------------------------------------------


async def test_a_home_below_a_file_is_refused(tmp_path, server):
    (tmp_path / "file").write_text("a file")

    ended = await babyagi(
        "run", "x", env=environ(tmp_path / "file" / "home", server.base_url), cwd=tmp_path
    )

    check_refusal(ended, 7, "file/home", "BABYAGI_HOME")
    assert server.requests == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")
@pytest.mark.parametrize("place", ["/proc/babyagi", "/proc"])
async def test_a_home_in_proc_is_refused(place, tmp_path, server):
    env = environ(tmp_path / "home", server.base_url) | {"BABYAGI_HOME": place}

    ended = await babyagi("run", "x", env=env, cwd=tmp_path)

    check_refusal(ended, 7, place)
    assert server.requests == []


@pytest.mark.parametrize("damage", ["noise", "torn", "another program's"])
async def test_a_damaged_database_is_refused_and_left_as_it_is(damage, home, server):
    path, env = home / "tasks.db", environ(home, server.base_url)
    home.mkdir()
    if damage == "noise":
        path.write_bytes(bytes(range(256)) * 64)
    elif damage == "torn":
        assert (await babyagi("run", "x", env=env)).code == 0
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + bytes(4096) + whole[8192:])
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE theirs (a)")
        connection.close()
    before, n_before = path.read_bytes(), len(server.requests)

    for line in (["run", "y"], ["status"], ["resume"]):
        ended = await babyagi(*line, env=env)
        check_refusal(ended, 7, "tasks.db")

    assert path.read_bytes() == before
    assert len(server.requests) == n_before


async def run_into_an_outage(tmp_path, *line, n_requests):
    """Start a run and take its server away at its nth request; return the process, its environment
    and the port."""
    documents = write_documents(tmp_path / "docs")
    async with LocalServer(latency_s=0.05) as server:
        env = environ(tmp_path / "home", server.base_url)
        words = ("Look at large stores", "-t", "Look around", "--files", str(documents))
        process = await start("run", *words, *line, env=env)
        while len(server.requests) < n_requests:
            assert process.returncode is None
            await asyncio.sleep(0.005)
        port = int(server.base_url.rsplit(":", 1)[1].removesuffix("/v1"))
    return process, env, port


async def test_a_server_that_goes_away_and_comes_back_costs_no_task(tmp_path):
    process, env, port = await run_into_an_outage(tmp_path, n_requests=6)
    await asyncio.sleep(1.5)

    async with LocalServer(port=port):
        ended = await finish(process)

    assert ended.code == 0, ended.said
    assert "waiting for the model" in ended.err
    tasks = await look("tasks", env=env)
    assert {(task["status"], task["failures"], task["try_no"]) for task in tasks} == {
        ("done", 0, 1)
    }
    assert len(await look("show", "results", env=env)) == len(tasks) == 10


async def test_an_outage_ends_at_the_limit_of_time_with_a_report_of_what_there_is(tmp_path):
    process, env, _ = await run_into_an_outage(tmp_path, "--max-time", "3s", n_requests=1)

    ended = await finish(process)

    assert ended.code == 3, ended.said
    assert "Traceback" not in ended.said
    assert "waiting for the model" in ended.err
    assert (await look("status", env=env))["stop_reason"] == "limit:time"
    report = (await look("report", env=env))["markdown"]
    assert "There are no results" in report
    assert "## Not done (1)" in report


# -- after the end
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_bare", [False, True], ids=["run", "bare, as a container does"])
async def test_an_objective_that_ended_by_a_limit_started_again_makes_no_call(
    is_bare, tmp_path, home, server
):
    env = environ(
        home,
        server.base_url,
        BABYAGI_FILES=str(write_documents(tmp_path / "docs")),
        BABYAGI_MAX_TASKS="2",
        INITIAL_TASK="Look around",
    )
    env |= {"OBJECTIVE": "What about large stores?"} if is_bare else {}
    line = [] if is_bare else ["run", "What about large stores?"]
    first = await babyagi(*line, env=env)
    assert first.code == 3, first.said
    n_before, report = len(server.requests), await look("report", env=env)

    again = await babyagi(*line, env=env)
    assert again.code == 3, again.said
    assert again.out.rstrip("\n") == report["markdown"].rstrip("\n")

    assert len(server.requests) == n_before
    assert await look("report", env=env) == report
    assert len(await look("show", "objectives", env=env)) == 1
