import ast
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from babyagi import errors
from babyagi.cli import root
from babyagi.cli.root import babyagi, route, run_guarded


@pytest.mark.parametrize(
    "line",
    [
        ["-t", "first task", "some", "objective", "words"],
        ["some", "objective", "words", "-t", "first task"],
        ["-t", "first task", "single"],
        ["-n", "B1", "write", "a", "poem"],
        ["-m", "n", "-t", "first", "one objective"],
        ["-t", "first task"],
        ["-4"],
        ["-e", "extra.env", "--", "two", "words"],
    ],
)
def test_the_originals_flags_run_as_they_did(line):
    assert route(line) == ["run", *line]


@pytest.mark.parametrize(
    "line", [[], ["--help"], ["-h"], ["--version"], ["status", "--json"], ["run", "x"], ["tasks"]]
)
def test_commands_and_the_bare_form_stay_as_they_are(line):
    assert route(line) == line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["statsu"], "did you mean `babyagi status`"),
        (["-n", "B1", "statsu"], "did you mean `babyagi status`"),
        (["xyzzy"], 'babyagi run "xyzzy"'),
        (["write", "a", "poem"], 'babyagi run "write a poem"'),
        (["write", "a", "poem", "--json"], 'babyagi run "write a poem"'),
        (["write a $poem"], 'babyagi run "write a \\$poem"'),
    ],
)
def test_a_bare_unknown_word_is_a_typo_and_never_a_paid_run(line, said, capsys):
    with pytest.raises(click.UsageError) as caught:
        route(line)

    assert said in caught.value.format_message()
    assert run_guarded(line) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_flag_is_a_usage_error(capsys):
    assert run_guarded(["--frobnicate"]) == 2
    assert "--frobnicate" in capsys.readouterr().err


WHERE = "correct the value where it is set, or remove it there"


@pytest.mark.parametrize(
    ("line", "what", "fix"),
    [
        ("tasks eidt", "No such command 'eidt'", "babyagi tasks --help"),
        ("tasks pause", "No such command 'pause'", "babyagi tasks --help"),
        ("config get", "No such command 'get'", "babyagi config --help"),
        ("report 1", "unexpected extra argument (1)", "babyagi report --help"),
        ("ask", "Missing argument 'FILE'", "babyagi ask --help"),
        ("report --format x", "'x' is not one of 'md', 'html', 'json'", "babyagi report --help"),
        ("show log x", "'x' is not a valid integer", "babyagi show log --help"),
        ("run x --max-time 5", "--max-time needs a unit: 5 seconds", "--max-time 5m"),
        ("run x --max-time soon", "--max-time must be a time such as 90s", "babyagi run --help"),
        ("run x --max-cost 1,50", "--max-cost must be a number of US dollars", WHERE),
        ("run x --tools wbe", "wbe is none of them", WHERE),
        ("skip", "did you mean `babyagi tasks skip`", "babyagi tasks skip"),
        ("move my notes", "or did you mean `babyagi tasks move`", 'babyagi run "move my notes"'),
        ("verify", "did you mean `babyagi store verify`", "babyagi store verify"),
        ("prune", "did you mean `babyagi store delete --old`", "babyagi store delete --old"),
        ("run --max-task 4 x", "--max-tasks", "babyagi run --help"),
        ("taks", "did you mean `babyagi tasks`", "babyagi tasks"),
        ("Status", "did you mean `babyagi status`", "babyagi status"),
        ("rnu compare them", "to run an objective type", 'babyagi run "rnu compare them"'),
        ("xyzzy", "there is no command 'xyzzy'", 'babyagi run "xyzzy"'),
        ("help statsu", "did you mean `babyagi status`", "babyagi status"),
        ("show", "say what to show", "babyagi show tasks"),
        ("extend", "needs at least one limit", "babyagi extend --max-tasks 100"),
        ("extend --max-tasks", "'--max-tasks' requires an argument", "babyagi extend --help"),
        ("status --json=3", "does not take a value", "babyagi status --help"),
        ("tasks move 1", "say where", "babyagi tasks move TASK --first"),
        (
            "submit",
            "no objective was given",
            'babyagi run "the objective", or OBJECTIVE=… in the environment or .env',
        ),
    ],
)
def test_words_that_a_command_does_not_take_are_said_with_what_to_type(line, what, fix, capsys):
    assert run_guarded(line.split()) == 2

    first, *others = capsys.readouterr().err.splitlines()
    assert first.startswith("babyagi: ") and what in first
    assert f"  try:     {fix}" in others


@pytest.mark.parametrize(
    ("line", "what", "fix"),
    [
        (["run", ""], "the objective is empty", 'babyagi run "an objective"'),
        (["submit", " "], "the objective is empty", 'babyagi submit "an objective"'),
        (["schedule", "add", ""], "the objective is empty", 'babyagi schedule add "an objective"'),
        (["ask", "a.yaml", ""], "the question is empty", 'babyagi ask FILE "a question"'),
        (
            ["run", "--continue", "4"],
            "the further question is missing",
            'babyagi run --continue 4 "a further question"',
        ),
    ],
)
def test_words_that_are_blank_are_said_with_what_belongs_there(line, what, fix, capsys):
    assert run_guarded(line) == 2

    assert capsys.readouterr().err.splitlines()[:2] == [f"babyagi: {what}", f"  try:     {fix}"]


@pytest.mark.parametrize("name", babyagi.commands)
def test_every_command_has_help_of_one_line_or_more(name, capsys):
    assert run_guarded([name, "--help"]) == 0
    assert run_guarded([name, "-h"]) == 0
    assert babyagi.commands[name].help
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "line", [[], ["tasks"], ["show"], ["store"], ["inbox"], ["tools"]], ids=str
)
def test_no_command_is_cut_short_in_a_list_of_commands(line, capsys):
    assert run_guarded(["help", *line]) == 0

    listed = capsys.readouterr().out.partition("Commands:")[2]
    assert listed and "..." not in listed


def test_the_help_of_a_run_names_the_choices_of_each_option_that_has_some(capsys):
    assert run_guarded(["run", "--help"]) == 0

    out = capsys.readouterr().out
    assert "--mode none|local|distributed" in out


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version_is_printed_alone(word, capsys):
    assert run_guarded([word]) == 0
    assert re.fullmatch(r"babyagi \d+\.\d+\.\d+\n", capsys.readouterr().out)


@pytest.mark.system
def test_help_loads_nothing_heavy_and_no_store():
    """What makes help come at once; how fast it comes, `benchmarks.overhead` measures."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from babyagi.cli.root import run_guarded; run_guarded(['--help'])\n"
        "heavy = {'asyncio', 'sqlite3', 'babyagi.app.application', 'babyagi.reporting.report'}\n"
        "names = set(sys.modules) - before; roots = {name.partition('.')[0] for name in names}\n"
        "print(sorted(heavy & names), sorted(roots - sys.stdlib_module_names), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "[] ['babyagi', 'click']"


def test_help_takes_the_name_of_a_command(capsys):
    for line, said in (
        (["help"], "Commands:"),
        (["help", "tasks", "add"], "Usage: babyagi tasks add"),
    ):
        assert run_guarded(line) == 0
        assert said in capsys.readouterr().out

    assert run_guarded(["help", "statsu"]) == 2
    assert "babyagi status" in capsys.readouterr().err


def test_a_mistyped_command_is_guessed_also_with_words_behind_it(capsys):
    for line, meant in ((["statsu"], "status"), (["taks", "add", "x"], "tasks")):
        assert run_guarded(line) == 2
        assert f"did you mean `babyagi {meant}`?" in capsys.readouterr().err

    assert run_guarded(["Compare the licences"]) == 2
    assert 'babyagi run "Compare the licences"' in capsys.readouterr().err


def _errors():
    kinds = [errors.BabyagiError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return kinds


@pytest.mark.parametrize("kind", _errors())
def test_every_error_that_is_shown_says_what_to_type(kind, capsys):
    more = {"limit": "cost", "is_final": True} if kind is errors.LimitReachedError else {}

    root.tell_error(kind("it went wrong", **more))

    assert re.search(r"^  try:     \S", capsys.readouterr().err, re.MULTILINE)


def test_an_error_that_a_person_mends_says_what_to_type():
    """A setting, a key, a missing thing: only who raises the error knows."""
    silent = []
    for path in Path(errors.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("SettingsError", "NotFoundError", "CredentialsError")
                and not any(keyword.arg == "fix" for keyword in node.keywords)
            ):
                silent.append(f"{path.name}:{node.lineno}")

    assert silent == []


@pytest.mark.parametrize(("typed", "offered"), [("stat", "status"), ("run --max-co", "--max-cost")])
def test_the_tab_key_completes_commands_and_options(typed, offered, monkeypatch, capsys):
    monkeypatch.setenv("_BABYAGI_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"babyagi {typed}")
    monkeypatch.setenv("COMP_CWORD", str(1 + typed.count(" ")))

    assert run_guarded([]) == 0
    assert capsys.readouterr().out == f"plain,{offered}\n"


def test_the_first_help_shows_the_commands_of_a_first_hour_and_says_where_all_are(capsys):
    assert run_guarded(["--help"]) == 0

    said = capsys.readouterr().out
    for line in ("demo", 'run "an objective"', "status", "inbox", "resume", "guide", "help"):
        assert f"  babyagi {line} " in said
    assert "Commands:" not in said
