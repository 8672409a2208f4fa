"""How many commands there are to learn, and the names that went."""

import click
import pytest

from babyagi.cli.root import RENAMED, babyagi, rename, run_guarded
from babyagi.cli.run import run
from tests.cli import homes, looked_at

pytestmark = pytest.mark.usefixtures("home")
OF_THE_ORIGINAL = set("-n -m -t -j -4 -l -e".split())


def names_in(group):
    for name, command in group.commands.items():
        yield name
        if isinstance(command, click.Group):
            yield from (f"{name} {inner}" for inner in names_in(command))


def test_the_door_is_small():
    options = [one for one in run.params if isinstance(one, click.Option) and not one.hidden]

    assert len(babyagi.commands) <= 24
    assert len([*names_in(babyagi)]) <= 50
    assert len([one for one in options if not OF_THE_ORIGINAL & set(one.opts)]) <= 16


def test_no_name_that_went_is_one_of_todays_and_each_leads_to_one():
    today = {*names_in(babyagi)}

    assert {" ".join(old) for old in RENAMED} & today == set()
    for new in RENAMED.values():
        assert " ".join(word for word in new if not word.startswith("--")) in today


@pytest.mark.parametrize(
    ("typed", "now"),
    [
        ("log -n 3", "show log -n 3"),
        ("why 3", "show 3"),
        ("memory list", "show memory"),
        ("tasks list --status dead --json", "tasks --status dead --json"),
        ("results search prices", "show results prices"),
        ("schedule list", "schedule"),
        ("journal verify", "store verify"),
        ("index status", "store verify --index"),
    ],
)
def test_a_name_that_went_does_what_it_did_and_one_line_says_the_new_one(typed, now, capsys):
    looked_at.fill_running_home()
    assert run_guarded(now.split()) == 0
    before = capsys.readouterr()

    assert run_guarded(typed.split()) == 0

    after = capsys.readouterr()
    told, *others = after.err.splitlines()
    assert after.out == before.out and others == before.err.splitlines()
    assert told.startswith("babyagi ") and " is now: babyagi " in told


def test_the_help_of_a_name_that_went_is_that_of_the_new_one(capsys):
    for line in (["help", "objectives", "prune"], ["delete", "--help"]):
        assert run_guarded(line) == 0
        assert "Usage: babyagi store delete" in capsys.readouterr().out


@pytest.mark.parametrize("line", [[], ["tasks"], ["show", "3"], ["run", "log"], ["-t", "why"]])
def test_todays_names_stay_as_they_are(line, capsys):
    assert rename(line) == line
    assert capsys.readouterr().err == ""


def test_an_option_that_is_not_in_the_help_of_run_still_acts(capsys):
    line = ["submit", "Sing", "--memory", "shared", "--model", "rehearsal"]

    assert run_guarded(line) == 0

    capsys.readouterr()
    assert homes.printed_json(capsys, "status")["memory"] == "shared"
