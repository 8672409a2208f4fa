"""How many commands there are to learn."""

import click
import pytest

from babyagi.cli.root import babyagi, run_guarded
from babyagi.cli.run import run
from tests.cli import homes

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


@pytest.mark.parametrize(
    ("typed", "now"),
    [("log", "show log"), ("answer", "inbox answer"), ("objectives", "show objectives")],
)
def test_a_name_within_a_family_is_answered_with_the_whole_of_it(typed, now, capsys):
    assert run_guarded([typed]) == 2

    assert f"did you mean `babyagi {now}`?" in capsys.readouterr().err


def test_an_option_that_is_not_in_the_help_of_run_still_acts(capsys):
    line = ["submit", "Sing", "--memory", "shared", "--model", "rehearsal"]

    assert run_guarded(line) == 0

    capsys.readouterr()
    assert homes.printed_json(capsys, "status")["memory"] == "shared"
