"""babyagi config trust, the question on a terminal, and which commands go on while settings wait."""

import contextlib
import json
import os
import sys
from pathlib import Path

import pytest

import babyagi
from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log
from babyagi.cli.trusting import trust_each
from babyagi.errors import SettingsError
from babyagi.settings.load import load_settings, trusted_paths
from tests.cli.homes import fill_home

HOSTILE = (
    "BABYAGI_NOTIFY=sh -c 'touch ran'\nOPENAI_BASE_URL=http://127.0.0.1:9/v1\nOBJECTIVE=find out\n"
)
SUBMIT = ["submit", "find out"]  # needs trust as a run does, and asks no model


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    yield folder
    close_log()


@pytest.fixture
def write(folder):
    def _write(text):
        (folder / ".env").write_text(text, encoding="utf-8")

    return _write


@pytest.fixture
def terminal(monkeypatch):
    """Type on a terminal, run a command there, and give its exit code and what was shown on
    standard error."""

    def run(typed, line):
        master, slave = os.openpty()
        os.write(master, typed.encode())
        with (
            os.fdopen(os.dup(slave), encoding="utf-8") as keys,
            os.fdopen(slave, "w") as shown,
            monkeypatch.context() as patched,
        ):
            patched.setattr(sys, "stdin", keys)
            patched.setattr(sys, "stderr", shown)
            code = run_guarded(line)
        said = b""
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while chunk := os.read(master, 10_000):
                said += chunk
        os.close(master)
        return code, said.decode()

    return run


def test_a_run_for_which_something_waits_ends_with_the_line_to_type(write, folder, capsys):
    write(HOSTILE)

    assert run_guarded(SUBMIT) == 2

    err = capsys.readouterr().err
    assert (
        ".env is not trusted, so these settings in it have no effect: OPENAI_BASE_URL, BABYAGI_NOTIFY\n"
        in err
    )
    assert "babyagi config trust" in err
    assert "DOTENV_EXTENSIONS=" in err
    assert "touch" not in err


def test_the_line_to_type_is_enough_and_a_change_of_the_file_takes_it_back(
    write, folder, monkeypatch, capsys
):
    write(HOSTILE)
    assert run_guarded(["config", "trust", "--yes"]) == 0
    said = capsys.readouterr().out
    assert (
        "  BABYAGI_NOTIFY=sh -c 'touch ran'\n" in said
        and "  OPENAI_BASE_URL=http://127.0.0.1:9/v1\n" in said
    )
    assert run_guarded(SUBMIT) == 0
    assert "not trusted" not in capsys.readouterr().err

    write(HOSTILE + "\n")

    assert run_guarded(SUBMIT) == 2
    monkeypatch.setenv("DOTENV_EXTENSIONS", str(folder / ".env"))
    assert run_guarded(SUBMIT) == 0


def test_trust_can_be_taken_back(write):
    write(HOSTILE)
    run_guarded(["config", "trust", "--yes"])
    assert trusted() == [".env"]

    assert run_guarded(["config", "trust", "--revoke"]) == 0
    assert run_guarded(SUBMIT) == 2
    assert trusted() == []


def test_where_nothing_waits_there_is_nothing_to_trust_and_nothing_is_said(write, capsys):
    write("OBJECTIVE=find out\nOPENAI_API_KEY=sk-mine\nBABYAGI_MAX_TASKS=5\n")

    assert run_guarded(SUBMIT) == 0
    assert "trust" not in capsys.readouterr().err
    assert run_guarded(["config", "trust"]) == 0
    assert capsys.readouterr().out.startswith("Nothing to trust")


@pytest.fixture
def further(write, folder):
    """A .env that names a further file."""
    write("DOTENV_EXTENSIONS=more.env\n")
    (folder / "more.env").write_text("BABYAGI_NOTIFY=touch ran\n")


def trusted():
    read = load_settings(flags={}, environ=os.environ, cwd=Path.cwd())
    return [path.name for path in trusted_paths(read.trust_home)]


@pytest.mark.parametrize(
    ("typed", "n_questions", "names"),
    [("y\ny\n", 2, [".env", "more.env"]), ("y\nn\n", 2, [".env"]), ("n\n", 1, [])],
)
def test_each_file_is_shown_and_asked_about_before_it_is_trusted(
    further, terminal, capsys, typed, n_questions, names
):
    code, said = terminal(typed, ["config", "trust"])

    assert code == 0 and said.count("[y/N]") == n_questions
    assert said.index("DOTENV_EXTENSIONS=more.env") < said.index("Do you trust .env as it is now?")
    if n_questions == 2:
        shown = said.index("BABYAGI_NOTIFY=touch ran")
        assert said.index(".env is trusted") < shown < said.index("Do you trust more.env as it")
    assert trusted() == names


def test_without_a_terminal_nothing_is_trusted_and_what_was_to_be_trusted_is_shown(further, capsys):
    assert run_guarded(["config", "trust"]) == 2

    err = capsys.readouterr().err
    assert "  DOTENV_EXTENSIONS=more.env\n" in err and "babyagi config trust --yes" in err
    assert trusted() == []


def test_with_yes_only_the_named_files_are_trusted_and_the_others_are_said(further, folder, capsys):
    assert run_guarded(["config", "trust", "--yes"]) == 0
    assert (
        "more.env is not trusted yet: babyagi config trust --yes more.env"
        in capsys.readouterr().err
    )
    assert trusted() == [".env"]

    assert run_guarded(["config", "trust", "--yes", "./more.env"]) == 0
    assert "  BABYAGI_NOTIFY=touch ran\n" in capsys.readouterr().out
    assert trusted() == [".env", "more.env"]
    assert run_guarded(["config", "trust", "--yes", "more.env"]) == 0
    assert run_guarded(SUBMIT) == 0
    (folder / "more.env").write_text("BABYAGI_NOTIFY=touch other\n")
    assert run_guarded(SUBMIT) == 2


def test_a_file_that_no_trusted_file_names_is_not_trusted_by_naming_it(further, capsys):
    assert run_guarded(["config", "trust", "--yes", "more.env"]) == 2
    assert "no trusted file names it" in capsys.readouterr().err
    assert trusted() == []
    assert run_guarded(["config", "trust", "--yes", "more.env", ".env"]) == 0
    assert trusted() == [".env", "more.env"]


@pytest.mark.parametrize("later", ["BABYAGI_NOTIFY=rm x\n", "BABYAGI_TOOLS=web\n", HOSTILE + " "])
def test_the_bytes_that_were_shown_are_trusted_and_no_others(write, folder, capsys, later):
    write(HOSTILE)

    def load():
        return load_settings(flags={}, environ=os.environ, cwd=folder)

    def change(found):
        assert found[0].file.values["BABYAGI_NOTIFY"] == "sh -c 'touch ran'"
        write(later)
        return True

    loaded = trust_each(load(), load, change, lambda _: True)

    assert not loaded.settings.notify and not loaded.settings.tools
    assert ".env has changed since it was shown, and is not trusted" in capsys.readouterr().err
    assert run_guarded(SUBMIT) == 2


def test_a_link_is_shown_with_the_file_that_it_leads_to(folder, tmp_path, capsys):
    (tmp_path / "elsewhere.env").write_text(HOSTILE)
    (folder / ".env").symlink_to("../elsewhere.env")

    assert run_guarded(["config", "trust"]) == 2
    assert f"{folder}/.env (a link to {tmp_path}/elsewhere.env) has" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link to itself", "nothing"])
def test_what_is_no_file_is_an_error_and_nobody_waits_for_it(write, folder, capsys, kind):
    more = folder / "more.env"
    make = {
        "pipe": lambda: os.mkfifo(more),
        "folder": more.mkdir,
        "device": lambda: more.symlink_to("/dev/zero"),
        "link to itself": lambda: more.symlink_to(more),
        "nothing": lambda: None,
    }
    make[kind]()
    write("DOTENV_EXTENSIONS=more.env\n")

    assert run_guarded(["config", "trust", "--yes"]) == 2
    assert "more.env cannot be read" in capsys.readouterr().err


def test_what_is_trusted_is_noted_where_only_its_person_reads_it(write, tmp_path):
    noted = tmp_path / "home" / "trusted"
    noted.mkdir(parents=True)
    noted.chmod(0o755)
    write(HOSTILE)

    assert run_guarded(["config", "trust", "--yes"]) == 0
    assert [path.stat().st_mode & 0o777 for path in (noted, *noted.iterdir())] == [0o700, 0o600]


def test_what_is_shown_holds_no_secret_and_cannot_forge_a_line(write, folder, capsys):
    write(
        'BABYAGI_TASK_STORE=postgresql://me:top5ecret@db/agi\nPINECONE_API_KEY=sk-file\nDOTENV_EXTENSIONS="a.env\n '
        ""
        ""
        ""
        ""
        ""
        ' LLM_MODEL=b"\n'
    )
    for name in ("a.env", "LLM_MODEL=b"):
        (folder / name).write_text("")

    run_guarded(["config"])
    run_guarded(["config", "--json"])
    assert run_guarded(["config", "trust", "--yes"]) == 0

    said = "".join(capsys.readouterr())
    assert not any(line.lstrip().startswith("LLM_MODEL=b") for line in said.splitlines())
    assert (
        "  DOTENV_EXTENSIONS=a.env   LLM_MODEL=b\n" in said
        and "  BABYAGI_TASK_STORE=postgresql://me:***@db/agi\n" in said
    )
    assert "top5ecret" not in said and "sk-file" not in said


def test_on_a_terminal_the_person_is_asked_once(write, terminal):
    write(HOSTILE)

    code, said = terminal("y\n", SUBMIT)

    assert code == 0
    assert "BABYAGI_NOTIFY=sh -c 'touch ran'" in said and "[y/N]" in said
    code, said = terminal("", SUBMIT)
    assert code == 0 and "[y/N]" not in said


@pytest.mark.parametrize("typed", ["n\n", "\n", "sure\n", "\x04"])
def test_any_answer_but_yes_ends_the_run_and_trusts_nothing(write, terminal, tmp_path, typed):
    write(HOSTILE)

    code, said = terminal(typed, SUBMIT)

    assert code == 2 and "babyagi config trust" in said
    assert (
        not (tmp_path / "home" / "trusted").exists()
        and not (tmp_path / "home" / "tasks.db").exists()
    )


def test_commands_that_only_look_go_on_and_name_what_waits(write, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("BABYAGI_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    fill_home()
    write(HOSTILE + "BABYAGI_HOME=elsewhere\n")

    for line in (["show", "objectives"], ["config"], ["show", "workers"], ["tools"]):
        assert run_guarded(line) == 0, line
        err = capsys.readouterr().err
        assert (
            err.count("not trusted") == 1
            and "BABYAGI_NOTIFY" in err
            and "BABYAGI_HOME" in err
            and "OPENAI_BASE_URL" in err
        ), line


def test_commands_change_the_store_that_is_named(write, capsys):
    fill_home()
    write(HOSTILE)
    assert run_guarded(["pause"]) == 0
    assert "BABYAGI_NOTIFY" in capsys.readouterr().err

    write("BABYAGI_TASK_STORE=sqlite:////elsewhere/tasks.db\n")

    for line in (
        ["pause"],
        ["cancel"],
        ["tasks", "retry", "1"],
        ["tasks", "add", "x"],
        ["inbox", "approve", "1"],
        ["extend", "--max-tasks", "5"],
        ["store", "delete"],
    ):
        assert run_guarded(line) == 2, line
        assert "BABYAGI_TASK_STORE" in capsys.readouterr().err


def test_what_asks_models_or_sends_needs_all_of_it(write, capsys):
    fill_home()
    write("BABYAGI_EMBEDDING_BASE_URL=http://127.0.0.1:9\n")

    for line in (
        ["resume"],
        ["worker"],
        ["run", "x"],
        ["show", "results", "x"],
        ["store", "verify", "--index"],
        ["store", "rebuild"],
        ["run", "-j"],
    ):
        assert run_guarded(line) == 2, line
        assert "BABYAGI_EMBEDDING_BASE_URL" in capsys.readouterr().err


def test_config_shows_what_waits_beside_what_holds(write, capsys):
    write(HOSTILE)

    assert run_guarded(["config"]) == 0
    assert (
        "no effect until trusted: OPENAI_BASE_URL=http://127.0.0.1:9/v1 in .env"
        in capsys.readouterr().out
    )
    assert run_guarded(["config", "--json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["settings"]}
    assert found["openai_base_url"]["value"] is None and found["openai_base_url"][
        "waits"
    ].startswith("OPENAI_BASE_URL=http")
    assert "waits" not in found["objective"]


def test_a_file_that_a_flag_names_is_trusted_by_that(write, folder, capsys):
    (folder / "mine.env").write_text("BABYAGI_NOTIFY=touch ran\n")

    assert run_guarded([*SUBMIT, "-e", "mine.env"]) == 0
    assert "trust" not in capsys.readouterr().err


def test_a_program_in_python_is_told_the_same(write):
    write(HOSTILE)

    with pytest.raises(SettingsError, match="BABYAGI_NOTIFY"):
        babyagi.run("find out", llm_model="rehearsal")
    with pytest.raises(SettingsError, match="BABYAGI_NOTIFY"):
        babyagi.Agent(model="some-model").run("?")
