"""What only looks creates and writes nothing, and no list is endless unless it is asked for whole."""

import asyncio
import json
from dataclasses import replace

import pytest

from babyagi.app.backends import open_store
from babyagi.cli import objectives, root, show
from babyagi.cli.root import run_guarded
from babyagi.tasks import Proposal, Worker
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import SqliteDatabase
from support.workers import join
from tests.cli import homes, looked_at, samples
from tests.taskstore import old_home

LOOKS = [
    "status",
    "show 1",
    "show plan",
    "show log",
    "report",
    "tasks",
    "show results",
    "show objectives",
    "show workers",
    "inbox",
    "schedule",
    "store metrics",
    "store verify",
    "show results prices",
]

pytestmark = pytest.mark.usefixtures("home")


def content(folder):
    """The bytes of all files by path, without the index of SQLite's log, where readers leave
    marks."""
    found = [path for path in folder.rglob("*") if not path.name.endswith("-shm")]
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def test_no_command_that_looks_leaves_a_trace_in_the_home(home, capsys):
    looked_at.fill_running_home()
    before = content(home)

    for line in LOOKS:
        assert run_guarded(line.split()) == 0, (line, capsys.readouterr().err)

    assert content(home) == before


def test_where_there_is_no_home_none_is_made(home, capsys):
    for line in LOOKS:
        assert run_guarded(line.split()) in (0, 8), (line, capsys.readouterr().err)

    assert not home.exists()


def test_all_that_looks_works_beside_an_older_worker(home, capsys):
    home.mkdir()
    old_home.unpack_file(home / "tasks.db")
    scripts = replace(database.load_scripts("sqlite"), version=old_home.VERSION)
    opened = SqliteDatabase(home / "tasks.db", clock=lambda: samples.START, scripts=scripts)
    store = TaskStore(opened, offload=inline, tell=print)

    async def fill():
        created, _ = await store.create_objective(samples.spec("Sing"), uid="u1")
        worker = Worker(id="w1", name="old", host="here", pid=1, lease_until=samples.START)
        await store.register_worker(worker, lease_s=1e9)
        await store.join_objective("w1", created.id)

    asyncio.run(fill())
    before = content(home)

    for line in LOOKS:
        if line not in ("show 1", "report", "store verify", "show results prices"):
            assert run_guarded(line.split()) == 0, (line, capsys.readouterr().err)
    assert "Sing" in capsys.readouterr().out
    assert run_guarded(["store", "verify"]) == 7
    said = capsys.readouterr().err
    assert "earlier version" in said and "damaged" not in said

    assert content(home) == before
    opened.close()


async def inline(work):
    return work()


# -- bounds
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def many(home, monkeypatch):
    """Nine tasks, three results, and three objectives, where a list has two items by itself."""
    monkeypatch.setattr(objectives, "MAX_LISTED", 2)
    monkeypatch.setattr(show, "MAX_LINES", 2)
    homes.fill_home()

    async def fill():
        async with open_store(homes.settings()) as store:
            await join(store, homes.WORKER, 1)
            for _ in range(2):
                await homes.finish_a_task(store, 1, proposals=())
            await store.add_tasks(1, [Proposal(name=f"More {n}") for n in range(5)])

    asyncio.run(fill())
    homes.fill_home("Second")
    homes.fill_home("Third")


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("line", "way"),
    [
        ("tasks --objective 1", "--limit 0"),
        ("show results --objective 1", "--limit 0"),
        ("show objectives", "--all"),
        ("show log --objective 1", "-n 0"),
    ],
)
def test_a_list_is_bounded_and_says_what_shows_the_rest(line, way, capsys):
    short, said = listed(capsys, line)
    whole, nothing_said = listed(capsys, f"{line} {way}")

    assert len(short) == 2 < len(whole)
    assert way in said and nothing_said == ""


def listed(capsys, line):
    """The items that a command lists with `--json`, and what it says beside them."""
    assert run_guarded([*line.split(), "--json"]) == 0
    captured = capsys.readouterr()
    try:
        return json.loads(captured.out), captured.err
    except ValueError:  # a value a line
        return captured.out.splitlines(), captured.err


@pytest.mark.usefixtures("many")
def test_the_last_line_counts_what_was_left_out(capsys):
    n_tasks = len(listed(capsys, "tasks --objective 1 --limit 0")[0])
    assert run_guarded("tasks --objective 1 --limit 3".split()) == 0

    assert f"and {n_tasks - 3} more: --limit 0" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    "line",
    ["tasks add x", "pause", "resume", "inbox answer 1 x", "store rebuild", "run --continue 1 x"],
)
def test_what_acts_on_what_exists_makes_no_home(line, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "mistyped"))

    assert root.run_guarded(line.split()) == 8

    said = capsys.readouterr().err
    assert "there is no objective yet" in said and 'babyagi run "an objective"' in said
    assert not (tmp_path / "mistyped").exists()
