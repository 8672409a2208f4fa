import asyncio
import json

import pytest

from babyagi.app.application import open_app
from babyagi.cli.root import run_guarded
from babyagi.cli.run import wait_for
from babyagi.cli.worker import say_beginning, show_lines
from babyagi.errors import NotFoundError
from babyagi.settings.load import load_settings
from babyagi.tasks import StopReason
from babyagi.taskstore.sqlite import MemoryTaskStore
from tests.cli import homes, samples
from tests.taskstore.contract import Clock


@pytest.fixture
def home(home, monkeypatch):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    return home


@pytest.fixture
async def board():
    """An ended and two unfinished objectives, of which the last has another instance name."""
    store = MemoryTaskStore(Clock())
    for number, (text, name) in enumerate([("tea", "me"), ("tea", "me"), ("salt", "you")], start=1):
        spec = samples.spec(text, instance_name=name)
        await store.create_objective(spec, uid=f"u{number}", always_new=True)
    await homes.enter(store, 1)
    await homes.end(store, 1)
    return store


@pytest.mark.parametrize(
    ("text", "name", "found"), [("tea", "me", 2), ("salt", "me", 3), ("", "you", 3), ("", "me", 2)]
)
async def test_a_joiner_finds_the_newest_unfinished_objective_that_it_means(
    board, text, name, found
):
    assert (await wait_for(board, text, name)).id == found


async def test_of_ended_ones_a_name_means_the_newest_of_them(board):
    for objective_id in (2, 3):
        await homes.enter(board, objective_id)
        await homes.end(board, objective_id, StopReason.FINISHED)

    assert (await wait_for(board, "", "me")).id == 2


async def test_a_name_that_nobody_has_is_told_which_one_is_joined_by_its_text(board, capsys):
    found = await wait_for(board, "salt", "me")

    assert found.id == 3
    assert "joins objective 3, named you" in capsys.readouterr().err


async def test_a_text_that_only_an_ended_one_has_is_not_waited_for_under_another_name(board):
    await homes.enter(board, 3)
    await homes.end(board, 3, StopReason.FINISHED)

    assert (await wait_for(board, "salt", "me")).id == 3


@pytest.mark.parametrize(("text", "name"), [("pepper", "me"), ("", "nobody")])
async def test_who_joins_before_there_is_one_is_told_which_ones_there_are(
    board, capsys, monkeypatch, text, name
):
    monkeypatch.setattr("babyagi.cli.run.CHANGE_WAIT_S", 0.01)
    waiting = asyncio.ensure_future(wait_for(board, text, name))
    await asyncio.sleep(0)
    await board.create_objective(samples.spec("pepper", instance_name=name), uid="u4")

    assert (await waiting).id == 4
    assert (
        "objective 1, named me: tea (ended); objective 2, named me: tea; objective 3, named you"
        in (capsys.readouterr().err)
    )


def test_submitting_puts_an_objective_on_the_board_and_asks_no_model(home, capsys):
    assert run_guarded(["submit", "Learn", "about", "tea", "--max-tasks", "7"]) == 0
    assert "babyagi watch --objective 1" in capsys.readouterr().out

    assert run_guarded(["submit", "Learn about tea", "--max-tasks", "7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) | {"uid": ""} == {
        "v": 1,
        "objective_id": 1,
        "uid": "",
        "is_new": False,
        "status": "active",
    }
    assert run_guarded(["status", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["usage"]["calls"], status["limits"]["max_tasks"], status["n_workers"]) == (
        0,
        7,
        0,
    )


def test_joining_one_that_has_ended_says_so_and_gives_its_exit_code(home, capsys):
    homes.fill_home("Learn", reason=StopReason.LIMIT_TASKS)

    assert run_guarded(["worker", "--objective", "1"]) == 3
    assert "has ended already" in capsys.readouterr().err


def test_a_store_without_workers_is_reported_in_words_and_in_json(home, capsys):
    assert run_guarded(["show", "workers"]) == 0
    assert "No worker is running" in capsys.readouterr().out
    assert run_guarded(["show", "workers", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_store_in_a_file_is_upgraded_by_being_opened(home, capsys):
    assert run_guarded(["submit", "x"]) == 0
    assert run_guarded(["store", "migrate"]) == 0
    assert "has this program's version" in capsys.readouterr().out
    assert (home / "tasks.db").exists()


def test_a_task_store_that_is_away_sends_people_to_the_page_about_it(home, monkeypatch, capsys):
    monkeypatch.setenv("BABYAGI_TASK_STORE", "postgresql://me:word@127.0.0.1:9/tasks")

    assert run_guarded(["show", "workers"]) == 7

    assert "more:    babyagi guide store" in capsys.readouterr().err


def test_the_mode_for_many_machines_needs_a_server(home, monkeypatch, capsys):
    assert run_guarded(["worker", "--objective", "1", "--help"]) == 0
    monkeypatch.setenv("COOPERATIVE_MODE", "d")
    assert run_guarded(["show", "workers"]) == 2
    assert "BABYAGI_TASK_STORE=postgresql://" in capsys.readouterr().err


async def test_two_workers_of_one_machine_have_different_names_also_in_different_homes(
    tmp_path,
):
    def settings(name):
        environ = {
            "BABYAGI_HOME": str(tmp_path / name),
            "BABYAGI_TASK_STORE": f"sqlite://{tmp_path}/shared.db",
            "LLM_MODEL": "rehearsal",
            "BABYAGI_RESULT_STORE": "builtin",
        }
        flags = {"worker_name": "me"}
        return load_settings(flags=flags, environ=environ, cwd=tmp_path).settings

    async with open_app(settings("one")) as first:
        await first.store.register_worker(first._identity, lease_s=30)
        async with open_app(settings("two")) as second:
            assert (first.name, second.name) == ("me", "me-2")


async def test_a_worker_says_who_it_is_and_what_it_takes_up(home):
    said: list[str] = []
    settings = homes.settings()
    async with open_app(settings) as app:
        await say_beginning(app, said.append)
        await app.store.create_objective(samples.spec("Learn about tea"), uid="u1")
        await say_beginning(app, said.append)

    assert "(0 active objectives now)" in said[0] and "(1 active objective now)" in said[1]


@pytest.mark.parametrize("as_json", [False, True])
async def test_the_work_of_a_worker_is_printed_in_lines_and_logged(as_json, capsys, caplog):
    caplog.set_level("INFO", logger="babyagi")
    store = MemoryTaskStore(Clock())
    objective, _ = await store.create_objective(samples.spec(), uid="u1")
    await homes.enter(store, objective.id)
    said: list[str] = []

    async def work():
        await homes.finish_a_task(store, objective.id)
        return await store.objective(objective.id)

    await show_lines(store, objective.id, work(), say=said.append, as_json=as_json)

    out, err = capsys.readouterr()
    lines = [line for line in (out + err).splitlines() if "task" in line]
    if as_json:
        assert "task.done" in [json.loads(line)["kind"] for line in lines]
    else:
        assert all(line.startswith("objective 1: ") for line in lines)
        assert any("task 1 done" in line for line in lines)
    assert said == ["objective 1: joined", "objective 1: left, it is active"]
    assert "task.done" in [record.__dict__.get("event") for record in caplog.records]


async def test_what_ends_the_work_on_one_objective_is_raised_as_it_is():
    store = MemoryTaskStore(Clock())
    objective, _ = await store.create_objective(samples.spec(), uid="u1")

    async def work():
        await store.delete_objective(objective.id)
        return await store.objective(objective.id)

    with pytest.raises(NotFoundError):
        await show_lines(store, objective.id, work(), say=lambda _: None, as_json=False)
