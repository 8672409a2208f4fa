import asyncio

import pytest

from babyagi.app.backends import open_store
from babyagi.cli.root import run_guarded
from babyagi.tasks import Duty, StopReason
from support.workers import join
from tests.cli import homes
from tests.cli.homes import printed_json

pytestmark = pytest.mark.usefixtures("home")


def queued(capsys):
    return [task["name"] for task in printed_json(capsys, "tasks") if task["status"] == "queued"]


async def kill_task():
    """Give the first queued task up, as a worker would after its last failure."""
    async with open_store(homes.settings()) as store:
        (objective,) = await store.objectives()
        await join(store, homes.WORKER, objective.id)
        claim = await store.claim_task(objective.id, homes.WORKER.id)
        assert claim is not None
        await store.fail_task(claim, error="no such file", max_failures=1)
        await store.cancel_task(objective.id, 3)
        check = await store.claim_duty(objective.id, homes.WORKER.id, Duty.CHECK)
        assert check is not None
        await store.finish_check(check, is_met=True, reason="")
        await homes.end(store, objective.id)
        await store.remove_worker(homes.WORKER.id)


def test_a_person_adds_moves_edits_and_skips_tasks_of_a_list_that_exists(capsys):
    homes.fill_home()

    added = printed_json(
        capsys, "tasks", "add", "Ask Ann", "--first", "--after", "1", "--after", "2"
    )
    assert (added["task"]["id"], added["task"]["name"], added["task"]["after"]) == (
        4,
        "Ask Ann",
        [1, 2],
    )
    assert queued(capsys) == ["Ask Ann", "Read limits.md", "Compare them"]
    printed_json(capsys, "tasks", "move", "4", "--last")
    printed_json(capsys, "tasks", "move", "3", "--before", "2")
    printed_json(capsys, "tasks", "move", "4", "--first")
    assert queued(capsys) == ["Ask Ann", "Compare them", "Read limits.md"]
    edited = printed_json(capsys, "tasks", "edit", "3", "Compare all of them")
    assert (edited["replaced_task_id"], edited["task"]["id"], edited["task"]["name"]) == (
        3,
        5,
        "Compare all of them",
    )
    assert printed_json(capsys, "tasks", "skip", "4")["task"]["status"] == "cancelled"
    assert queued(capsys) == ["Compare all of them", "Read limits.md"]


def test_what_was_changed_is_said_in_one_line(capsys):
    homes.fill_home()

    for line, said in (
        (["add", "Ask Ann"], "Task 4 (Ask Ann) is queued."),
        (["move", "4", "--first"], "Task 4 (Ask Ann) is now number 1 of 3 queued."),
        (
            ["edit", "4", "Ask Bob"],
            "Task 5 (Ask Bob) takes the place of task 4, which is cancelled.",
        ),
        (["skip", "5"], "Task 5 (Ask Bob) is cancelled."),
    ):
        assert run_guarded(["tasks", *line]) == 0
        assert capsys.readouterr().out.strip() == said


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (["move", "1", "--first"], 2),
        (["move", "2", "--before", "1"], 2),
        (["move", "2"], 2),
        (["move", "2", "--first", "--last"], 2),
        (["move", "2", "--before", "77"], 8),
        (["edit", "1", "x"], 2),
        (["edit", "2", " "], 2),
        (["skip", "1"], 2),
        (["skip", "77"], 8),
        (["add", " "], 2),
        (["add", "x", "--after", "77"], 8),
    ],
)
def test_changing_something_unchangeable_is_one_clear_error(line, code, capsys):
    homes.fill_home()
    before = printed_json(capsys, "tasks")

    assert run_guarded(["tasks", *line]) == code

    captured = capsys.readouterr()
    assert captured.out == ""
    assert 2 <= len(captured.err.splitlines()) <= 4
    assert "more:" in captured.err
    assert printed_json(capsys, "tasks") == before


@pytest.mark.parametrize(
    "reason", [StopReason.FINISHED, StopReason.UNMET, StopReason.OBJECTIVE_MET]
)
def test_a_task_that_is_added_to_an_objective_that_has_ended_opens_it_again(reason, capsys):
    homes.fill_home(reason=reason)

    printed_json(capsys, "tasks", "add", "More")

    assert "More" in queued(capsys)
    status = printed_json(capsys, "status")
    assert (status["status"], status["report"]["is_written"]) == ("active", False)


def test_nothing_is_added_to_an_objective_that_was_cancelled(capsys):
    homes.fill_home(reason=StopReason.CANCELLED)

    assert run_guarded(["tasks", "add", "More"]) == 2
    assert "cancelled" in capsys.readouterr().err


def test_a_dead_task_is_tried_again_and_its_ended_objective_is_open_again(capsys):
    homes.fill_home()
    asyncio.run(kill_task())
    assert printed_json(capsys, "status")["stop_reason"] == "finished"

    assert run_guarded(["tasks", "retry", "1"]) == 2
    assert "babyagi tasks" in capsys.readouterr().err
    retried = printed_json(capsys, "tasks", "retry", "2")

    assert retried["is_reopened"] is True
    assert (retried["task"]["status"], retried["task"]["failures"], retried["task"]["try_no"]) == (
        "queued",
        0,
        3,
    )
    status = printed_json(capsys, "status")
    assert (status["status"], status["report"]["is_written"]) == ("active", False)
