import asyncio
from typing import Any

import pytest

from babyagi.app.backends import open_store
from babyagi.cli.root import run_guarded
from babyagi.taskstore.schedules import ScheduleStatus
from tests.cli import homes
from tests.cli.homes import printed_json

EVERY_HOUR = ("schedule", "add", "Look after the tea", "--every", "1h", "--model", "rehearsal")


pytestmark = pytest.mark.usefixtures("home")


def test_a_schedule_is_added_listed_paused_resumed_and_removed(capsys):
    added = printed_json(capsys, *EVERY_HOUR, "--grace", "10m", "--overlap", "allow")["schedule"]
    assert (added["id"], added["status"], added["when"]) == (1, "active", "every 1 h")
    assert (added["grace_s"], added["overlap"], added["daily_limit_usd"]) == (600.0, "allow", 5.0)
    assert printed_json(capsys, "schedule") == [added]
    assert printed_json(capsys, "schedule", "1") == {
        "v": 1,
        "schedule": added,
        "ticks": [],
    }
    for verb, status in (("pause", "paused"), ("resume", "active"), ("remove", "removed")):
        assert printed_json(capsys, "schedule", verb, "1")["schedule"]["status"] == status
    assert printed_json(capsys, "schedule") == []
    assert len(printed_json(capsys, "schedule", "--all")) == 1


def test_what_a_person_reads_says_when_what_and_what_to_type(capsys):
    assert run_guarded(["schedule"]) == 0
    assert "babyagi schedule add" in capsys.readouterr().out
    line = ["schedule", "add", "Read the news", "--cron", "0 9 * * 1-5", "--tz", "Europe/Berlin"]
    assert run_guarded([*line, "--model", "rehearsal"]) == 0
    said = capsys.readouterr().out
    assert "cron 0 9 * * 1-5 Europe/Berlin" in said
    assert "cost limit of a day: $5, of a tick: $1" in said
    assert "babyagi worker" in said
    assert run_guarded(["schedule", "1"]) == 0
    assert "No tick has been due yet." in capsys.readouterr().out


def test_a_tick_without_a_limit_of_money_is_not_said_to_cost_nothing(capsys):
    line = ["schedule", "add", "Read the news", "--every", "1h", "--model", "rehearsal"]
    assert run_guarded([*line, "--max-cost", "0", "--daily-limit", "0"]) == 0

    assert "of a tick: none" in capsys.readouterr().out


def test_ticks_are_shown_with_what_became_of_them(capsys):
    run_guarded([*EVERY_HOUR])

    async def fire():
        async with open_store(homes.settings()) as store:
            await store.register_worker(homes.WORKER, lease_s=60)
            await store.switch_schedule(1, to=ScheduleStatus.PAUSED)
            opened: Any = store
            database = opened._database
            clock = database._clock
            database._clock = lambda: clock().replace(year=clock().year + 1)
            await store.register_worker(homes.WORKER, lease_s=60)
            await store.fire_schedules(homes.WORKER.id)

    asyncio.run(fire())
    capsys.readouterr()
    assert run_guarded(["schedule", "1", "-n", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("skipped (paused)" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "one of cron, every and at"),
        (["--every", "1h", "--at", "2999-01-01T09:00"], "one of cron, every and at"),
        (["--every", "5s"], "at least 60"),
        (["--cron", "0 9 * *"], "five fields"),
        (["--cron", "0 9 * * *", "--tz", "Mars/Base"], "not a time zone"),
        (["--at", "2026-03-29T02:30", "--tz", "Europe/Berlin"], "does not exist"),
        (["--at", "2001-01-01T09:00"], "would never start anything"),
        (["--every", "1h", "--max-cost", "9"], "would never fire"),
    ],
)
def test_an_invalid_schedule_is_one_clear_error_and_nothing_is_added(more, said, capsys):
    line = ["schedule", "add", "Look", "--model", "rehearsal", *more]
    assert run_guarded(line) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and said in captured.err
    assert "babyagi guide schedules" in captured.err
    assert printed_json(capsys, "schedule") == []


def test_a_tick_without_a_limit_of_its_own_has_that_of_the_day(capsys):
    added = printed_json(capsys, *EVERY_HOUR, "--max-cost", "0", "--daily-limit", "3")["schedule"]
    assert (added["objective"]["limits"]["max_cost_usd"], added["daily_limit_usd"]) == (3.0, 3.0)
    added = printed_json(capsys, *EVERY_HOUR, "--max-cost", "9", "--daily-limit", "0")["schedule"]
    assert (added["objective"]["limits"]["max_cost_usd"], added["daily_limit_usd"]) == (9.0, 0.0)


def test_a_limit_a_day_that_cannot_be_held_is_refused_and_the_usual_one_is_left_out(capsys):
    line = ["schedule", "add", "Look", "--every", "1h", "--model", "no-such-model"]
    assert run_guarded([*line, "--daily-limit", "3"]) == 2
    assert "no price is known" in capsys.readouterr().err
    assert run_guarded(line) == 0
    captured = capsys.readouterr()
    assert "no daily cost limit" in captured.err
    assert "cost limit of a day: none" in captured.out


def test_the_folder_of_a_schedule_is_that_of_what_its_ticks_begin(capsys, tmp_path, home):
    from babyagi.files.home import remembered_folder
    from babyagi.taskstore.schedules import schedule_uid

    (tmp_path / "documents").mkdir()
    added = printed_json(capsys, *EVERY_HOUR, "--files", "documents")["schedule"]
    tick_uid = f"{added['uid']}-5f"
    assert remembered_folder(home, schedule_uid(tick_uid)) == tmp_path / "documents"


def test_a_schedule_with_files_of_a_person_says_what_its_worker_is_given(capsys, tmp_path):
    (tmp_path / "my tools.py").write_text(
        'def price(item: str) -> str:\n    """Give a price."""\n    return "2"\n'
    )
    line = [*EVERY_HOUR, "--tools-from", "my tools.py"]
    assert run_guarded(line) == 0
    assert "babyagi worker --tools-from 'my tools.py'" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [[], ["pause"], ["resume"], ["remove"]], ids=str)
def test_a_schedule_that_is_not_there_is_not_found(verb, capsys):
    printed_json(capsys, *EVERY_HOUR)
    assert run_guarded(["schedule", *verb, "7"]) == 8
    assert "babyagi schedule" in capsys.readouterr().err


def test_a_duration_of_a_schedule_that_cannot_be_read_is_named(home, capsys):
    for line in (["--every", "soon"], ["--every", "2h", "--grace", "soon"]):
        assert run_guarded(["schedule", "add", "x", *line]) == 2

        name = line[-2].removeprefix("--")
        assert f"{name} must be a time such as 90s" in capsys.readouterr().err
