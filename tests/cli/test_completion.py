import pytest

from babyagi.cli.completion import SHELLS
from babyagi.cli.root import babyagi, run_guarded
from tests.cli import homes

pytestmark = pytest.mark.usefixtures("home")


def offered(*words):
    """What the shell is offered for the last of the words."""
    from click.shell_completion import ShellComplete

    complete = ShellComplete(babyagi, {}, "babyagi", "_BABYAGI_COMPLETE")
    return [str(item.value) for item in complete.get_completions(list(words[:-1]), words[-1])]


def test_commands_and_options_are_offered():
    assert offered("stat") == ["status"]
    assert offered("tasks", "mo") == ["move"]
    assert "--max-cost" in offered("run", "--max")
    assert offered("run", "--planning", "c") == ["combined"]
    assert offered("help", "tasks", "a") == ["add"]


def test_the_numbers_of_objectives_and_tasks_tools_and_pages_are_offered(home):
    homes.fill_home("Count the bridges")
    homes.fill_home("Name the towers")

    assert offered("status", "--objective", "") == ["latest", "2", "1"]
    assert offered("run", "--continue", "l") == ["latest"]
    assert offered("show", "--objective", "1", "") == ["1", "2", "3"]
    assert offered("tools", "test", "calc") == ["calculator"]
    assert offered("guide", "lim") == ["limits"]
    (home / "memories").mkdir()
    (home / "memories" / "tea.jsonl").write_text("")
    assert offered("memory", "show", "t") == ["tea"]
    assert offered("ask", "--memory", "t") == ["tea"]


def test_who_only_types_makes_no_home_and_meets_no_error(home, monkeypatch):
    assert offered("show", "") == []
    assert not home.exists()

    home.mkdir()
    (home / "tasks.db").write_text("no database")
    assert offered("status", "--objective", "") == ["latest"]
    monkeypatch.setenv("BABYAGI_MAX_TASKS", "many")
    assert offered("show", "") == []


def test_a_text_cannot_steer_the_terminal_of_who_only_types():
    from click.shell_completion import ShellComplete

    homes.fill_home("Count\x1b[31m the\nbridges")

    complete = ShellComplete(babyagi, {}, "babyagi", "_BABYAGI_COMPLETE")
    items = complete.get_completions(["status", "--objective"], "1")
    assert [(item.help or "\n").isprintable() for item in items] == [True]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_says_first_how_it_is_installed(shell, capsys):
    assert run_guarded(["completion", shell]) == 0

    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("# To install: ") and f"babyagi completion {shell}" in first
    assert "_BABYAGI_COMPLETE" in "\n".join(rest)
