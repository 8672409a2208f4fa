import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from babyagi.cli import root, session
from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log, open_log
from babyagi.errors import CredentialsError, SettingsError, first_error
from babyagi.tasks import StopReason
from tests.cli import homes
from tests.cli.samples import HOSTILE


@pytest.fixture(autouse=True)
def closed_log():
    yield
    close_log()


def test_an_error_that_a_person_can_mend_is_told_in_four_lines(capsys):
    code = root._tell(CredentialsError("no key", why="it is not set", fix="set it", guide="models"))

    assert code == 4
    assert capsys.readouterr().err.splitlines() == [
        "babyagi: no key",
        "  because: it is not set",
        "  try:     set it",
        "  more:    babyagi guide models",
    ]


def test_an_error_inside_a_task_group_is_told_as_itself(capsys):
    nested = BaseExceptionGroup(
        "unhandled",
        [BaseExceptionGroup("inner", [SettingsError("wrong flag")]), ValueError("later")],
    )

    assert root._tell(first_error(nested)) == 2
    assert "babyagi: wrong flag" in capsys.readouterr().err


def test_hostile_words_in_an_error_do_not_reach_the_terminal(capsys):
    root._tell(SettingsError(HOSTILE))

    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_exits_with_130(error):
    assert root._tell(error) == 130


def test_an_unexpected_error_shows_one_line_and_its_traceback_is_in_the_log_file(tmp_path, capsys):
    open_log(tmp_path / "babyagi.log")
    try:
        raise ZeroDivisionError("by nought")
    except ZeroDivisionError as error:
        code = root._tell(error)

    err = capsys.readouterr().err
    assert code == 1
    assert err.count("\n") == 1
    assert str(tmp_path / "babyagi.log") in err
    assert "Traceback" not in err
    assert "ZeroDivisionError: by nought" in (tmp_path / "babyagi.log").read_text()


def test_an_unexpected_error_before_there_is_a_log_file_leaves_its_traceback_somewhere(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert root._tell(ZeroDivisionError("by nought")) == 1

    (written,) = tmp_path.iterdir()
    assert str(written) in capsys.readouterr().err
    assert "by nought" in written.read_text()


@pytest.mark.system
def test_a_reader_that_goes_away_ends_the_program_quietly(tmp_path):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "babyagi", "config"],
            check=False,
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            env={"BABYAGI_HOME": str(tmp_path)},
        )

    assert done.stderr == ""
    assert done.returncode == 141


@pytest.mark.system
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_without_room_is_an_error_that_says_so(tmp_path):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "babyagi", "config"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={"BABYAGI_HOME": str(tmp_path)},
        )

    assert done.stderr.startswith("babyagi: standard output cannot be written\n  because: No space")
    assert done.returncode == 2 and done.stderr.count("\n") == 4


def test_a_log_record_is_one_plain_line_whatever_text_it_carries(tmp_path):
    open_log(tmp_path / "babyagi.log")

    logging.getLogger("babyagi.x").info("said %s", HOSTILE)
    logging.getLogger("babyagi.x").debug("not this")
    logging.getLogger("elsewhere").info("nor this")

    (line,) = (tmp_path / "babyagi.log").read_text().splitlines()
    assert "\x1b" not in line
    assert "INFO" in line


def test_a_full_log_file_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "MAX_BYTES", 2_000)
    open_log(tmp_path / "babyagi.log")
    for n in range(5):
        logging.getLogger("babyagi.x").info("%d%s", n, "-" * 600)

    full, fresh = tmp_path / "babyagi.log.1", tmp_path / "babyagi.log"
    assert "4---" in fresh.read_text() and "4---" not in full.read_text()
    assert fresh.stat().st_size < 2_000 and full.stat().st_size < 2_000


def test_a_home_that_cannot_be_written_has_no_log_and_no_crash(tmp_path, capfd):
    (tmp_path / "file").write_text("")

    open_log(tmp_path / "file" / "babyagi.log")
    logging.getLogger("babyagi.x").error("lost")

    assert capfd.readouterr().err == ""


def log_of(tmp_path, log):
    """The lines of the log after `log` was called with a logger."""
    open_log(tmp_path / "babyagi.log", secrets=["sk-abc/def+ghi=0123456789"])
    log(logging.getLogger("babyagi.x"))
    return (tmp_path / "babyagi.log").read_text(encoding="utf-8").split("\n")


FORGED = "2026-01-01 00:00:00,000 INFO 1 babyagi.worker.process: all is well"


def raise_chain(text):
    try:
        try:
            raise ValueError(text)
        except ValueError as error:
            raise ExceptionGroup(f"several\n{text}", [error]) from error
    except ExceptionGroup as error:
        return error


@pytest.mark.parametrize(
    "text",
    [
        f"no\n{FORGED}",
        f"no\r\n{FORGED}\u2028x",
        "\x1b[2J\x9b\u202e\U000e0041\u200b",
        "e" + "\u0301" * 10_000,
    ],
)
def test_a_traceback_in_the_log_is_one_harmless_record_that_can_be_unfolded(text, tmp_path):
    record, rest = log_of(
        tmp_path,
        lambda logger: logger.error("it failed", exc_info=raise_chain(text), stack_info=True),
    )

    assert rest == ""
    assert record.isprintable()
    assert "it failed\\nTraceback (most recent call last):\\n" in record
    assert (
        "ValueError: " in record
        and "ExceptionGroup: several" in record
        and "Stack (most recent call last)" in record
    )


@pytest.mark.parametrize(
    "written",
    [
        "sk-abc/def+ghi=0123456789",
        "sk-abc%2Fdef%2Bghi%3D0123456789",
        "http://me:pa/ss@host/db?token=hunter2",
        "postgresql://u:hunter2@h/db?options=-c%20x%3Dhunter2",
    ],
)
def test_no_key_and_no_password_stands_in_a_log_record(written, tmp_path):
    def log(logger):
        logger.warning("trouble with %s", written)
        logger.warning("trouble", exc_info=ValueError(written))

    text = "".join(log_of(tmp_path, log))

    assert text.count("***") >= 2
    assert not any(
        piece in text for piece in ("abc", "def", "0123456789", "hunter2", "pa/ss", "ss@")
    )


def test_a_log_is_for_its_owner_whatever_the_umask(tmp_path):
    path = tmp_path / "home" / "babyagi.log"
    before = os.umask(0o027)
    try:
        open_log(path)
        logging.getLogger("babyagi").warning("opened")
    finally:
        os.umask(before)

    assert [one.stat().st_mode & 0o777 for one in (path.parent, path)] == [0o700, 0o600]


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        (
            StopReason.LIMIT_TASKS,
            "babyagi extend --objective 1 --max-tasks 100, then babyagi resume --objective 1; or "
            'babyagi run --continue 1 "a further question"',
        ),
        (StopReason.FINISHED, 'babyagi run --continue 1 "a further question"'),
    ],
)
def test_resume_never_takes_another_objective_than_the_latest_and_says_how_that_goes_on(
    reason, fix, home, capsys
):
    homes.fill_home(reason=reason)
    homes.fill_home("Another")
    with open_touched(home) as touched:
        touched.write("uid-Find-what-the-documents-promise 1")

    assert run_guarded(["resume", "--objective", "latest"]) == 2

    said = capsys.readouterr().err
    assert f"the latest objective, 1, has ended ({reason}); nothing is resumed" in said
    assert f"  try:     {fix}" in said.splitlines()


def open_touched(home):
    return (home / "touched").open("w")


@pytest.mark.parametrize(("typed", "objective"), [("tea\n", "tea"), ("of two\nlines", "of two")])
def test_a_dash_stands_for_the_objective_on_standard_input(
    typed, objective, home, capsys, monkeypatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    assert run_guarded(["submit", "-", "--model", "rehearsal"]) == 0

    assert f"Objective 1 is queued: {objective}" in capsys.readouterr().out


def test_submit_of_what_has_ended_offers_its_report_and_a_new_start(home, capsys):
    line = ["submit", "Sing", "--model", "rehearsal"]
    assert run_guarded(line) == 0
    assert run_guarded(["cancel"]) == 0
    capsys.readouterr()

    assert run_guarded(line) == 0

    said = capsys.readouterr().out
    assert "babyagi report --objective 1" in said and "--new" in said
    assert "babyagi worker" not in said


def test_an_empty_standard_input_is_no_objective(home, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))

    assert run_guarded(["run", "-"]) == 2

    assert "the objective is empty" in capsys.readouterr().err
