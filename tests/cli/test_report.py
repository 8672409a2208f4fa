"""Where a report goes, and in which format."""

import json
import os
import resource
import stat
import subprocess
import sys

import pytest

from babyagi.cli.report import write_whole
from babyagi.cli.root import run_guarded
from babyagi.errors import SettingsError
from babyagi.tasks import StopReason
from tests.cli import homes
from tests.cli.screen import Terminal

pytestmark = pytest.mark.usefixtures("home")


REHEARSE = ["run", "Say what the limits are", "--model", "rehearsal", "--files", "docs"]


@pytest.fixture
def documents(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "limits.md").write_text("The limits are fifty tasks and a dollar.\n")


# -- to standard output
# --------------------------------------------------------------------------------------------------


def test_a_run_prints_its_report_and_nothing_else_on_standard_output(documents, capsys):
    assert run_guarded(REHEARSE) == 0
    out, err = capsys.readouterr()
    assert run_guarded(["report"]) == 0

    assert out == capsys.readouterr().out
    assert out.startswith("# Report: Say what the limits are\n")
    assert "Objective 1: Say what the limits are" in err and "task 1 done" in err
    assert "Objective 1: ended, finished" in err


@pytest.mark.parametrize(
    ("reason", "code"),
    [(StopReason.UNMET, 6), (StopReason.LIMIT_COST, 3), (StopReason.WAITING, 5)],
)
def test_a_run_that_did_not_reach_its_goal_prints_its_report_all_the_same(reason, code, capsys):
    homes.fill_home(reason=reason)

    assert run_guarded(["watch"]) == code
    assert capsys.readouterr().out == homes.REPORT


def test_with_json_the_last_line_is_the_outcome(documents, capsys):
    assert run_guarded([*REHEARSE, "--json"]) == 0

    *events, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all("kind" in event for event in events)
    outcome = last["outcome"]
    assert (outcome["stop_reason"], outcome["exit_code"]) == ("finished", 0)
    assert outcome["report"].startswith("# Report: Say what the limits are\n")
    assert outcome["results"][0]["task_id"] == 1


def test_on_a_terminal_the_report_is_drawn(monkeypatch):
    homes.fill_home(reason=StopReason.FINISHED)
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "dumb")

    assert run_guarded(["report"]) == 0

    assert screen.getvalue() == "Report: find\n\nlimits.md:3 says so.\n"


@pytest.mark.parametrize(
    "line",
    [
        ["report", "--json", "--format", "html"],
        ["worker", "--output", "x.md"],
        ["report", "--output", ""],
        ["report", "--format", "docx"],
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(line, capsys):
    homes.fill_home(reason=StopReason.FINISHED)

    assert run_guarded(line) == 2
    assert capsys.readouterr().out == ""


# -- into files
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "beginning"),
    [
        ("r.md", [], "# Report: find"),
        ("r.txt", [], "# Report: find"),
        ("r.html", [], "<!doctype html>"),
        ("r.HTM", [], "<!doctype html>"),
        ("r.json", [], "{"),
        ("r", [], "# Report: find"),
        ("r.md", ["--format", "html"], "<!doctype html>"),
        ("r.Xb12", [], "# Report: find"),
        ("r.docx", ["--format", "md"], "# Report: find"),
    ],
)
def test_the_format_follows_the_suffix_where_none_is_given(name, more, beginning, tmp_path, capsys):
    homes.fill_home(reason=StopReason.FINISHED)

    assert run_guarded(["report", "--output", name, *more]) == 0

    assert (tmp_path / name).read_text().startswith(beginning)
    out, err = capsys.readouterr()
    assert out == "" and name in err


@pytest.mark.parametrize("name", ["r.pdf", "r.ODT", "my report.xlsx"])
def test_a_suffix_of_a_format_that_no_report_has_is_refused_with_the_formats(name, capsys):
    for line in (["report"], ["run", "x"], ["demo"]):
        assert run_guarded([*line, "--output", name]) == 2

        what, fix, _ = capsys.readouterr().err.splitlines()
        assert what.endswith("the file's suffix can be .md, .html, .json")
        assert f'--output "{name.partition(".")[0]}.html"' in fix


def test_a_run_writes_the_file_and_prints_the_report_as_well(documents, tmp_path, capsys):
    assert run_guarded([*REHEARSE, "--output", "answer.html"]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("# Report: ")
    assert "The report is in answer.html" in err
    page = (tmp_path / "answer.html").read_text()
    assert "<svg" in page and 'id="task-1"' in page


@pytest.mark.parametrize("name", ["no/such/folder.md", ".", "a" * 300, "/proc/no.md"])
def test_a_file_that_cannot_be_written_is_an_error_before_anything_is_begun(
    name, home, documents, capsys
):
    assert run_guarded([*REHEARSE, "--output", name]) == 2

    assert "cannot be written" in capsys.readouterr().err
    assert not (home / "tasks.db").exists()


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path):
    path = tmp_path / "r.md"
    path.write_text("old")
    path.chmod(0o640)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # as a disk that is full
    try:
        with pytest.raises(SettingsError, match="cannot be written"):
            write_whole(path, b"x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with path.open("rb") as reader:
        write_whole(path, b"new")
        assert reader.read() == b"old"
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_a_link_points_to_is_written_and_a_pipe_stays_a_pipe(tmp_path):
    (tmp_path / "link").symlink_to("target")

    write_whole(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"x"

    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", b"y")
    assert os.read(reader, 10) == b"y"
    os.close(reader)


# -- after `cancel`
# --------------------------------------------------------------------------------------------------


def test_a_cancelled_objective_has_its_report_at_once_and_no_model_is_asked(capsys):
    homes.fill_home(model="gpt-6-luna")

    assert run_guarded(["cancel"]) == 0
    capsys.readouterr()
    assert run_guarded(["status", "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert run_guarded(["report"]) == 0
    report = capsys.readouterr().out

    assert (status["report"]["is_written"], status["usage"]["calls"]) == (True, 1)
    assert "limits.md:3 says fifty tasks." in report
    assert "Stopped: cancelled" in report and "## Cancelled (2)" in report
    assert "**Not complete:** a person ended it" in report


@pytest.mark.system
def test_a_pipe_that_nobody_reads_is_an_error_and_no_endless_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    write = f"from pathlib import Path; write_whole(Path({str(tmp_path / 'pipe')!r}), b'x')"
    code = f"from babyagi.cli.report import write_whole; {write}"

    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )

    assert "pipe cannot be written" in ended.stderr
