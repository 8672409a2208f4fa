import configparser
import plistlib
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from babyagi.cli import service
from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log

HARD = 'a "b" $HOME %h `id` \\ c'


@pytest.fixture(autouse=True)
def person(tmp_path, monkeypatch):
    """A person's home, with a `systemctl` that writes down what it was asked."""
    asked = tmp_path / "asked"
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "systemctl"
    fake.write_text(f'#!/bin/sh\necho "$@" >> "{asked}"\necho active\n')
    fake.chmod(0o755)
    (tmp_path / "work folder").mkdir()
    monkeypatch.chdir(tmp_path / "work folder")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-in-the-file-alone")
    monkeypatch.setattr(sys, "platform", "linux")
    yield lambda: asked.read_text().splitlines() if asked.exists() else []
    close_log()


def unit_path(tmp_path):
    return tmp_path / ".config" / "systemd" / "user" / "babyagi.service"


def make_plan(tmp_path, **fields):
    given = {"line": ("/opt/py", "-m", "babyagi"), "environment": {"A": HARD}, **fields}
    return service.Plan(folder=tmp_path / "my 100% folder", home=tmp_path / "h", **given)


@pytest.mark.system
def test_installing_writes_the_unit_and_the_keys_for_the_person_alone_and_starts_it(
    tmp_path, person, capsys
):
    assert run_guarded(["service", "install"]) == 0
    unit, environment = unit_path(tmp_path), tmp_path / "home" / "service.env"
    assert stat.S_IMODE(environment.stat().st_mode) == 0o600
    assert 'OPENAI_API_KEY="sk-in-the-file-alone"' in environment.read_text()
    assert "sk-in-the-file" not in unit.read_text() + capsys.readouterr().out
    assert person() == ["--user daemon-reload", "--user enable --now babyagi.service"]
    assert run_guarded(["service", "status"]) == 0
    assert "State: active" in capsys.readouterr().out


@pytest.mark.system
def test_removing_takes_away_what_was_written_and_nothing_else(tmp_path, person, capsys):
    run_guarded(["service", "install"])
    other = unit_path(tmp_path).with_name("other.service")
    other.write_text("[Unit]\n")
    assert run_guarded(["service", "remove"]) == 0
    assert not unit_path(tmp_path).exists() and other.exists()
    assert not (tmp_path / "home" / "service.env").exists()
    assert "--user disable --now babyagi.service" in person()
    capsys.readouterr()
    assert run_guarded(["service", "remove"]) == 0
    assert "not installed" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["install", "remove"])
def test_a_unit_that_somebody_else_wrote_is_left_alone(verb, tmp_path, person, capsys):
    path = unit_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/bin/true\n")
    assert run_guarded(["service", verb]) == 2
    assert "did not write it" in capsys.readouterr().err
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert person() == []


def test_showing_the_unit_writes_nothing(tmp_path, person, capsys):
    assert run_guarded(["service", "install", "--print"]) == 0
    shown = capsys.readouterr().out
    assert f'ExecStart="{sys.executable}" "-P" "-m" "babyagi" "worker"' in shown
    assert f"WorkingDirectory={tmp_path}/work folder" in shown
    assert not unit_path(tmp_path).exists() and person() == []


def test_a_server_is_kept_instead_of_a_worker(tmp_path, capsys):
    assert run_guarded(["service", "install", "--print", "--serve"]) == 0
    shown = capsys.readouterr().out
    assert '"-m" "babyagi" "serve"\n' in shown
    assert "Description=babyagi serve\n" in shown


def test_without_starting_it_says_what_to_type(tmp_path, person, capsys):
    assert run_guarded(["service", "install", "--no-start"]) == 0
    assert "systemctl --user enable --now babyagi.service" in capsys.readouterr().out
    assert unit_path(tmp_path).exists() and person() == []


@pytest.mark.system
def test_a_system_that_cannot_start_it_says_so_and_the_unit_stays(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert run_guarded(["service", "install"]) == 0
    captured = capsys.readouterr()
    assert "systemctl --user daemon-reload failed" in captured.err
    assert unit_path(tmp_path).exists()
    assert run_guarded(["service", "status"]) == 0
    assert "unknown" in capsys.readouterr().out


def test_paths_with_blanks_quotes_and_percent_signs_are_said_right(tmp_path):
    plan = make_plan(tmp_path, line=("/opt/my py", 'a"b', "50%", "$x"))
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.read_string(service.render_unit(plan))
    unit = parser["Service"]
    assert unit["ExecStart"] == '"/opt/my py" "a\\"b" "50%%" "$$x"'
    assert unit["WorkingDirectory"] == f"{tmp_path}/my 100%% folder"
    assert unit["Restart"] == "on-failure"


@pytest.mark.system
def test_the_environment_is_read_back_as_it_was(tmp_path):
    """A shell reads double quotes as systemd does."""
    path = tmp_path / "service.env"
    path.write_text(service.render_environment({"A": HARD, "B": "plain"}))
    done = subprocess.run(
        ["/bin/sh", "-c", f'. "{path}"; printf "%s|%s" "$A" "$B"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{HARD}|plain"


@pytest.mark.system
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    plan = make_plan(tmp_path, line=(sys.executable, "-m", "babyagi", "worker"))
    plan.folder.mkdir()
    path = tmp_path / "babyagi.service"
    path.write_text(service.render_unit(plan))
    done = subprocess.run(
        [shutil.which("systemd-analyze") or "", "--user", "verify", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "babyagi" in line]
    assert said == [], done.stderr


def test_the_agent_of_launchd_has_the_same_in_it(tmp_path):
    found = plistlib.loads(service.render_agent(make_plan(tmp_path)).encode())
    assert found["ProgramArguments"] == ["/opt/py", "-m", "babyagi"]
    assert found["EnvironmentVariables"] == {"A": HARD}
    assert found["KeepAlive"] == {"SuccessfulExit": False}
    assert Path(found["StandardErrorPath"]) == tmp_path / "h" / "worker.log"


def test_a_value_of_several_lines_is_not_written(monkeypatch):
    monkeypatch.setenv("OBJECTIVE", "one\nExecStart=/bin/evil")
    assert "OBJECTIVE" not in service.make_plan("worker").environment
