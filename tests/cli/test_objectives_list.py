import json

import pytest

from babyagi.cli.root import run_guarded
from babyagi.files.home import remember_touch
from babyagi.tasks import StopReason
from tests.cli import homes

pytestmark = pytest.mark.usefixtures("home")


def ids(capsys, *words):
    capsys.readouterr()
    assert run_guarded(["show", "objectives", *words, "--json"]) == 0
    return [row["id"] for row in json.loads(capsys.readouterr().out)]


def test_objectives_are_found_by_their_words_and_by_whether_they_ended(capsys):
    homes.fill_home("Count the bridges of Ulm")
    homes.fill_home("Count the bridges of Bern", reason=StopReason.FINISHED)
    homes.fill_home("Name the towers", reason=StopReason.FINISHED)

    assert ids(capsys) == [1, 2, 3]
    assert ids(capsys, "BRIDGES") == [1, 2]
    assert ids(capsys, "bridges", "ulm") == [1]
    assert ids(capsys, "--ended") == [2, 3]
    assert ids(capsys, "--active") == [1]
    assert ids(capsys, "--ended", "bridges") == [2]


def test_the_list_says_when_how_long_how_it_stands_and_what_it_cost_and_where_the_older_ones_are(
    capsys, monkeypatch
):
    monkeypatch.setattr("babyagi.cli.objectives.MAX_SHOWN", 1)
    homes.fill_home("Count the bridges")
    homes.fill_home("Name the towers", reason=StopReason.FINISHED)

    assert run_guarded(["show", "objectives"]) == 0

    older, head, row = capsys.readouterr().out.splitlines()
    assert older == "1 older one is not shown: babyagi show objectives --all"
    assert head.split() == ["ID", "BEGUN", "LAST", "WORKED", "STATUS", "DONE", "COST", "OBJECTIVE"]
    assert "finished" in row and "1/3" in row and "nothing" in row and "Name the towers" in row


def test_pruning_takes_what_ended_long_ago_and_nothing_that_is_active(capsys, home):
    homes.fill_home("Count the bridges")
    homes.fill_home("Name the towers", reason=StopReason.FINISHED)
    remember_touch(home, "uid-Name-the-towers", 2)

    assert run_guarded(["store", "delete", "--old", "--yes"]) == 0
    assert ids(capsys) == [1, 2]

    assert run_guarded(["store", "delete", "--old", "0", "--yes"]) == 0
    assert "Name the towers" in capsys.readouterr().out
    assert ids(capsys) == [1]
    assert "uid-Name-the-towers" not in (home / "touched").read_text()


def test_pruning_deletes_nothing_that_nobody_has_confirmed(capsys):
    homes.fill_home("Name the towers", reason=StopReason.FINISHED)

    assert run_guarded(["store", "delete", "--old", "0"]) == 2

    said = capsys.readouterr()
    assert "Name the towers" in said.out
    assert "try:     babyagi store delete --old 0 --yes" in said.err
    assert ids(capsys) == [1]
