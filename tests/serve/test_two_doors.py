"""One table, two doors: what the command line does with the task store, the API does as well.

A row is a line that is typed, and the request that is the same. Both are answered alike, in JSON or
in the words of an error, and leave the same behind.
"""

import asyncio
import json
import re
import shutil
from dataclasses import dataclass
from typing import Any

import click
import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from babyagi.app.backends import open_store
from babyagi.cli.root import babyagi as command_group
from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log
from babyagi.serve.operations import OPERATIONS, make_document
from babyagi.verbs import json_shapes
from babyagi.verbs.verb_table import BASE
from support.served import serving
from tests.cli import homes, looked_at

ONE = "/objectives/1"


@dataclass(frozen=True, kw_only=True)
class Row:
    """`code` is the exit code of the line, `status` that of the answer."""

    line: str
    method: str = "GET"
    path: str
    body: Any = None
    status: int = 200
    code: int = 0
    fill: str = "running"


def look(line, path, **more):
    return Row(line=line, path=path, **more)


def change(line, path, body=None, **more):
    return Row(line=line, method="POST", path=path, body=body or {}, **more)


LOOKS = (
    look("status", ONE),
    look("status --objective 1", f"{ONE}"),
    look("show objectives", "/objectives"),
    look("show objectives --active", "/objectives?state=active"),
    look("show objectives --ended", "/objectives?state=ended"),
    look("show objectives prices", "/objectives?words=prices"),
    look("show objectives nothing", "/objectives?words=nothing"),
    look("tasks", f"{ONE}/tasks"),
    look("tasks --status done", f"{ONE}/tasks?status=done"),
    look("show tasks --status done --status dead", f"{ONE}/tasks?status=done&status=dead"),
    look("show results", f"{ONE}/results"),
    look("show results limits -k 1", f"{ONE}/results/search?text=limits&k=1"),
    look(
        "show results limits --all-objectives",
        f"{ONE}/results/search?text=limits&all_objectives=true",
    ),
    look("show 1", f"{ONE}/tasks/1"),
    look("show 1 --step 2", f"{ONE}/tasks/1?step=2"),
    look("show 4", f"{ONE}/tasks/4"),
    look("show plan", f"{ONE}/duties/plan"),
    look("show check", f"{ONE}/duties/check"),
    look("report", f"{ONE}/report"),
    look("report", f"{ONE}/report", fill="ended"),
    look("inbox", "/inbox"),
    look("inbox --objective 1", "/inbox?objective=1"),
    look("show workers", "/workers"),
    look("schedule", "/schedules", fill="scheduled"),
    look("schedule --all", "/schedules?with_removed=true", fill="scheduled"),
    look("schedule 1", "/schedules/1", fill="scheduled"),
    look("schedule 1 -n 1", "/schedules/1?limit=1", fill="scheduled"),
)

TEA = {"objective": "Look after the tea"}
_EVERY = {**TEA, "every": "1h"}
CHANGES = (
    change("submit Look after the tea", "/objectives", TEA, status=201),
    change(
        "submit Look after the tea --task Boil --name mine --memory shared --planning combined "
        "--max-tasks 7 --max-calls 8 --max-tokens 9000 --max-cost 0.5 --max-time 60s",
        "/objectives",
        {
            **TEA,
            "first_task": "Boil",
            "name": "mine",
            "memory": "shared",
            "planning": "combined",
        }
        | {"max_tasks": 7, "max_calls": 8, "max_tokens": 9000, "max_cost_usd": 0.5}
        | {"max_time_s": 60},
        status=201,
    ),
    change(
        "submit Know the prices --new",
        "/objectives",
        {"objective": "Know the prices"} | {"new": True},
        status=201,
    ),
    change("pause", f"{ONE}/pause"),
    change(
        "extend --max-tasks 99 --max-cost 2.5 --max-calls 999 --max-tokens 88888 --max-time 7h",
        f"{ONE}/extend",
        {"max_tasks": 99, "max_cost_usd": 2.5, "max_calls": 999, "max_tokens": 88888}
        | {"max_time_s": 25200},
    ),
    change("cancel", f"{ONE}/cancel"),
    change("tasks add Sing", f"{ONE}/tasks", {"name": "Sing"}, status=201),
    change("tasks add Sing --first", f"{ONE}/tasks", {"name": "Sing", "first": True}, status=201),
    change(
        "tasks add Sing --after 4 --after 3",
        f"{ONE}/tasks",
        {"name": "Sing", "after": [4, 3]},
        status=201,
    ),
    change("tasks add Sing", f"{ONE}/tasks", {"name": "Sing"}, fill="ended", status=409, code=3),
    change("tasks move 3 --first", f"{ONE}/tasks/3/move", {"to": "first"}),
    change("tasks move 3 --last", f"{ONE}/tasks/3/move", {"to": "last"}),
    change("tasks move 3 --before 3", f"{ONE}/tasks/3/move", {"before": 3}),
    change("tasks edit 3 Dance", f"{ONE}/tasks/3/edit", {"name": "Dance"}),
    change("tasks skip 3", f"{ONE}/tasks/3/skip"),
    change("tasks retry 5", f"{ONE}/tasks/5/retry"),
    change("inbox answer 18 Euros", "/inbox/NUMBER/answer", {"text": "Euros"}),
    change("inbox reject 18 No", "/inbox/NUMBER/reject", {"why": "No"}),
    change("schedule add Look after the tea --every 1h", "/schedules", _EVERY, status=201),
    change(
        "schedule add Look after the tea --cron 0,9,*,*,1-5 --tz Europe/Berlin --grace 10m "
        "--overlap allow --catch-up all --daily-limit 3 --task Boil --max-cost 1",
        "/schedules",
        {**TEA, "cron": "0 9 * * 1-5", "tz": "Europe/Berlin", "grace": "10m", "overlap": "allow"}
        | {"catch_up": "all", "daily_limit_usd": 3, "first_task": "Boil"}
        | {"max_cost_usd": 1},
        status=201,
    ),
    change(
        "schedule add Look after the tea --at 2999-12-01T09:00",
        "/schedules",
        {**TEA, "at": "2999-12-01T09:00"},
        status=201,
    ),
    change(
        "schedule add Look after the tea --every 2h --name mine --memory shared --planning combined "
        "--max-tasks 7 --max-calls 8 --max-tokens 9000 --max-time 60s",
        "/schedules",
        {**TEA, "every": "2h", "name": "mine", "memory": "shared", "planning": "combined"}
        | {"max_tasks": 7, "max_calls": 8, "max_tokens": 9000, "max_time_s": 60},
        status=201,
    ),
    change("schedule pause 1", "/schedules/1/pause", fill="scheduled"),
    change("schedule resume 2", "/schedules/2/resume", fill="scheduled"),
    change("schedule remove 1", "/schedules/1/remove", fill="scheduled"),
    Row(line="store delete --yes --objective 1", method="DELETE", path=ONE, fill="ended"),
)

GONE: dict[str, Any] = {"status": 404, "code": 8}
WRONG: dict[str, Any] = {"status": 422, "code": 2}
FAULTS = (
    look("status --objective 99", "/objectives/99", **GONE),
    look("tasks --objective 99", "/objectives/99/tasks", **GONE),
    look("show results --objective 99", "/objectives/99/results", **GONE),
    look("report --objective 99", "/objectives/99/report", **GONE),
    look("show 99", f"{ONE}/tasks/99", **GONE),
    look("show 1 --step 99", f"{ONE}/tasks/1?step=99", **GONE),
    look("schedule 9", "/schedules/9", **GONE),
    change("schedule pause 9", "/schedules/9/pause", **GONE),
    change("schedule resume 9", "/schedules/9/resume", **GONE),
    change("schedule remove 9", "/schedules/9/remove", **GONE),
    change("pause --objective 99", "/objectives/99/pause", **GONE),
    change("cancel --objective 99", "/objectives/99/cancel", **GONE),
    Row(line="store delete --yes --objective 99", method="DELETE", path="/objectives/99", **GONE),
    change("tasks retry 1", f"{ONE}/tasks/1/retry", **WRONG),
    change("tasks retry 99", f"{ONE}/tasks/99/retry", **GONE),
    change("tasks skip 1", f"{ONE}/tasks/1/skip", **WRONG),
    change("tasks edit 1 Dance", f"{ONE}/tasks/1/edit", {"name": "Dance"}, **WRONG),
    change("tasks move 1 --last", f"{ONE}/tasks/1/move", {"to": "last"}, **WRONG),
    change("tasks move 3 --before 99", f"{ONE}/tasks/3/move", {"before": 99}, **GONE),
    change("tasks add Sing --after 99", f"{ONE}/tasks", {"name": "Sing", "after": [99]}, **GONE),
    change("schedule add Tea", "/schedules", {"objective": "Tea"}, **WRONG),
    change(
        "schedule add Tea --every 5s",
        "/schedules",
        {"objective": "Tea", "every": "5s"},
        **WRONG,
    ),
    change(
        "schedule add Tea --every 1d --daily-limit 1 --max-cost 2",
        "/schedules",
        {"objective": "Tea", "every": "1d", "daily_limit_usd": 1, "max_cost_usd": 2},
        **WRONG,
    ),
)

ELSEWHERE = {
    "inbox approve": "needs a preview of a folder: tests/serve/test_operations.py",
    "resume": "works in the terminal where it was typed; here the workers go on",
    "run --continue": "works in the terminal where it was typed; here `questions` does the same",
    "show log": "shows what it leaves out in words: tests/serve/test_operations.py",
    "watch": "does not end: tests/serve/test_feed.py",
    "store metrics": "is a text: tests/serve/test_operations.py",
    "serve open": "opens a browser: tests/serve/test_server.py",
}
"""Commands without a row, each with the reason."""

OF_THE_TERMINAL = set(
    "--json --format --output --full --limit --all --artifact --step --yes --objective --gpt-4 "
    "--env --mode --host --port".split()
)
OF_THE_MACHINE = set(
    "--files --tools --mcp --tools-from --agent --agent-hosts --llama --memory".split()
)
OF_THE_MODEL = {"--model"}  # asks for a key or the network
OF_THE_UPKEEP = {"--old"}
WITHOUT_ROW = OF_THE_TERMINAL | OF_THE_MACHINE | OF_THE_MODEL | OF_THE_UPKEEP
"""Options without a row: how it is shown; what the server was started with (`tools`, `files` and
`agent` are narrowed in tests/serve/test_operations.py)."""


# -- both doors
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name, value in homes_environ(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "home"
    close_log()


def homes_environ(home):
    return {
        "BABYAGI_HOME": str(home),
        "BABYAGI_RESULT_STORE": "builtin",
        "BABYAGI_EMBEDDING_MODEL": "hash",
        "LLM_MODEL": "rehearsal",
    }


@pytest.fixture
def type_line(capsys):
    def _type(line):
        # a blank within an argument is written as a comma
        words = [
            word.replace(",", " ") if before == "--cron" else word
            for before, word in zip(["", *line.split()], line.split(), strict=False)
        ]
        has_json = "delete" not in words
        code = run_guarded([*words, *(["--json"] if has_json else [])])
        said = capsys.readouterr()
        return code, said.out if has_json else "", said.err

    return _type


def fill(home, name, type_line):
    if name == "ended":
        looked_at.fill_ended_home()
    else:
        looked_at.fill_running_home()
    if name == "submitted":
        assert type_line("submit Look after the tea")[0] == 0
    if name == "scheduled":
        for line in ("add Drink tea --every 1h", "add Eat --at 2999-01-01T09:00", "pause 2"):
            assert type_line(f"schedule {line}")[0] == 0


async def answer_of(served, row):
    path = f"{BASE}{row.path}"
    if "NUMBER" in path:
        (step,) = await served.desk.store.inbox()
        path = path.replace("NUMBER", str(step.id))
    return await served.ask(row.method, path, row.body)


def answers(home, rows):
    async def work():
        async with serving(home) as served:
            return [await answer_of(served, row) for row in rows]

    return asyncio.run(work())


def left_behind():
    """All that is stored in the home of the environment, as it is listed."""

    async def work():
        async with open_store(homes.settings()) as store:
            objectives = await store.objectives()
            return {
                "status": [
                    json_shapes.status_shape(one, (await store.standing(one.id)).counts)
                    for one in objectives
                ],
                "tasks": [
                    json_shapes.task_shape(task)
                    for one in objectives
                    for task in await store.tasks(one.id)
                ],
                "asked": [step.id for step in await store.inbox()],
                "schedules": [
                    json_shapes.schedule_shape(one)
                    for one in await store.schedules(with_removed=True)
                ],
            }

    return asyncio.run(work())


def same(value):
    """Without what differs from one moment, or from one objective to the next."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", "AT", json.dumps(value))
    text = re.sub(r"((?:lease_left_s|time_s)\": )-?[\d.]+", r"\1S", text)
    text = re.sub(r'("uid": )"[0-9a-f]{16}"', r'\1"U"', text)
    return re.sub(r"\d+(\.\d+)? (s|min|h)\b", "WHILE", text)


def operation_of(row):
    path = row.path.partition("?")[0].replace("NUMBER", "1")
    found = [
        one
        for one in OPERATIONS
        if one.method == row.method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", one.path), path)
    ]
    return min(found, key=lambda one: one.path.count("{"))


def schema_of(verb, status):
    document = make_document()
    said = document["paths"][BASE + verb.path][verb.method.lower()]["responses"][str(status)]
    schema = said["content"]["application/json"]["schema"]
    return {"components": document["components"], **schema}


def require_same(row, reply, typed):
    code, said, err = typed
    assert (code, reply.status) == (row.code, row.status), (row.line, err, reply.text)
    if row.status < 300:
        if said:
            assert same(reply.json()) == same(json.loads(said)), row.line
        jsonschema.validate(reply.json(), schema_of(operation_of(row), row.status))
        return
    problem = reply.json()
    assert reply.headers["content-type"] == "application/problem+json"
    assert problem["status"] == row.status
    assert f"babyagi: {problem['title']}\n" in err, row.line
    assert f"  try:     {problem['try']}\n" in err, row.line
    assert f"  because: {problem['detail']}\n" in err if "detail" in problem else True, row.line


@pytest.mark.thorough
@pytest.mark.parametrize("filled", ["running", "ended", "scheduled"])
def test_what_is_looked_at_and_refused_is_the_same(filled, home, type_line):
    fill(home, filled, type_line)
    rows = [row for row in (*LOOKS, *FAULTS) if row.fill == filled]
    typed = [type_line(row.line) for row in rows]

    before = same(left_behind())
    for row, reply, said in zip(rows, answers(home, rows), typed, strict=True):
        require_same(row, reply, said)
    assert same(left_behind()) == before


@pytest.mark.thorough
@pytest.mark.parametrize("row", CHANGES, ids=lambda row: f"{row.line[:40]}-{row.fill}")
def test_a_change_is_the_same(row, home, type_line, tmp_path, monkeypatch):
    fill(home, row.fill, type_line)
    other = tmp_path / "other"
    shutil.copytree(home, other)

    typed = type_line(row.line)
    changed = left_behind()
    (reply,) = answers(other, [row])
    monkeypatch.setenv("BABYAGI_HOME", str(other))

    require_same(row, reply, typed)
    assert same(left_behind()) == same(changed)


# -- both lists
# --------------------------------------------------------------------------------------------------


def commands_of(group, before=""):
    for name, command in group.commands.items():
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from commands_of(command, f"{before}{name} ")


WITHOUT_ROUTE = {
    # what they do is of the machine and the terminal where they are typed
    *("demo", "run", "ask", "config", "config trust", "doctor", "guide", "help"),
    *("tools", "tools test", "show memory"),
    # they start or stop processes
    *("worker", "serve"),
    # the upkeep of a store is done beside it; and no worker may run during a migration
    *("store", "store verify", "store rebuild", "store migrate"),
}


def test_every_command_has_a_route_or_a_reason_why_not():
    routed = {name for one in OPERATIONS for name in one.commands}
    commands = {name for name, _ in commands_of(command_group)}

    assert commands - routed - set(WITHOUT_ROUTE) == set()
    assert routed - {"run --continue"} - commands == set()
    assert set(WITHOUT_ROUTE) - commands == set()
    assert set(WITHOUT_ROUTE) & routed == set()


def test_every_command_that_has_a_route_and_every_option_of_it_stands_in_a_row():
    rows = (*LOOKS, *CHANGES, *FAULTS)
    routed = {name for one in OPERATIONS for name in one.commands}

    missing = []
    for name, command in commands_of(command_group):
        if name not in routed or name in ELSEWHERE:
            continue
        mine = [row.line.split() for row in rows if f"{row.line} ".startswith(f"{name} ")]
        missing += [name] if not mine else []
        options = [set(one.opts) for one in command.params if isinstance(one, click.Option)]
        typed = {word for line in mine for word in line}
        missing += [f"{name} {min(one)}" for one in options if not one & (typed | WITHOUT_ROW)]
    assert missing == []


def test_every_operation_stands_in_a_row():
    done = {operation_of(row).name for row in (*LOOKS, *CHANGES)}
    alone = {
        name for one in OPERATIONS for name in [one.name] if set(one.commands) & set(ELSEWHERE)
    }

    left = {one.name for one in OPERATIONS if one.commands} - done - alone
    assert left == {"show_request"}
