import json
import socket
import subprocess
import sys

import pytest

from babyagi.cli import doctor
from babyagi.cli.failures import run_guarded
from babyagi.cli.logfile import close_log
from tests.cli.homes import fill_home

KEY = "sk-never-to-be-seen"


@pytest.fixture(autouse=True)
def empty_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    yield
    close_log()


def test_config_shows_every_value_with_its_source_and_hides_secrets(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("LLM_MODEL", "some-model")

    assert run_guarded(["config"]) == 0

    out = capsys.readouterr().out
    assert KEY not in out
    assert "***" in out
    (model,) = [line for line in out.splitlines() if line.startswith("LLM_MODEL ")]
    assert "some-model" in model
    assert "environment LLM_MODEL" in model


def test_config_shows_no_value_where_the_default_depends_on_something_else(capsys):
    assert run_guarded(["config"]) == 0

    (port,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("BABYAGI_WEAVIATE_GRPC_PORT ")]
    assert port.endswith("(50051, in the cloud 443)")


def test_config_as_json_is_json_and_hides_secrets(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    assert run_guarded(["config", "--json"]) == 0

    out = capsys.readouterr().out
    values = {entry["name"]: entry for entry in json.loads(out)["settings"]}
    assert KEY not in out
    assert values["openai_api_key"]["value"] == "***"
    assert values["max_tasks"] == {"name": "max_tasks", "variable": "BABYAGI_MAX_TASKS", "value": "50", "source": "default"}


def test_all_faults_of_the_settings_are_told_together(monkeypatch, capsys):
    monkeypatch.setenv("BABYAGI_MAX_TASKS", "sixty")
    monkeypatch.setenv("BABYAGI_CONCURRENCY", "0")

    assert run_guarded(["config"]) == 2

    err = capsys.readouterr().err
    assert "BABYAGI_MAX_TASKS" in err
    assert "BABYAGI_CONCURRENCY" in err


def test_the_doctor_finds_a_sound_home_sound_and_never_shows_the_key(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    assert run_guarded(["doctor"]) == 0

    out = capsys.readouterr().out
    assert KEY not in out
    assert "OPENAI_API_KEY is set" in out
    assert "fail" not in out


def test_the_doctor_says_what_to_type_about_a_missing_key(capsys):
    assert run_guarded(["doctor", "--json"]) == 0

    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["key"]["state"] == "warn"
    assert "OPENAI_API_KEY" in checks["key"]["fix"]


def test_the_doctor_finds_a_port_that_nobody_listens_on(monkeypatch, capsys):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")

    assert run_guarded(["doctor"]) == 6

    assert f"nobody listens at 127.0.0.1:{port}" in capsys.readouterr().out


def test_the_doctor_warns_when_there_is_no_chroma_server_and_says_what_happens_meanwhile(monkeypatch, capsys):
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    monkeypatch.setenv("CHROMA_URL", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "chroma")

    assert run_guarded(["doctor"]) == 0

    said = capsys.readouterr().out
    assert f"the Chroma server http://127.0.0.1:{port} cannot answer now" in said and "CHROMA_URL names it" in said


def test_the_doctor_finds_a_server_that_listens(monkeypatch, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.getsockname()[1]}/v1")

        assert run_guarded(["doctor"]) == 0


def test_the_doctor_finds_a_home_that_cannot_be_written(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "file"))

    assert run_guarded(["doctor"]) == 6

    assert "BABYAGI_HOME" in capsys.readouterr().out


def test_the_doctor_tells_of_settings_that_cannot_be_read(monkeypatch, capsys):
    monkeypatch.setenv("BABYAGI_MAX_TASKS", "sixty")

    assert run_guarded(["doctor"]) == 6

    assert "BABYAGI_MAX_TASKS" in capsys.readouterr().out


def test_the_doctor_finds_a_store_that_does_not_open(tmp_path, capsys):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "tasks.db").write_bytes(b"no database at all" * 100)

    assert run_guarded(["doctor", "--quick"]) == 6

    assert "fail  store: " in capsys.readouterr().out


def test_the_quick_doctor_opens_the_store_and_asks_nobody(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    fill_home()

    assert run_guarded(["doctor", "--quick"]) == 0

    out = capsys.readouterr().out
    assert "ok    store: opens, and holds 1 objective\n" in out
    assert "127.0.0.1" not in out


def test_the_quick_doctor_loads_no_heavy_client(tmp_path):
    code = "import sys; from babyagi.cli.failures import run_guarded; run_guarded(['doctor', '--quick']); print(*sys.modules)"

    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)

    assert "ok    store: " in ran.stdout
    assert {"openai", "chromadb", "httpx2", "genai_prices"} & set(ran.stdout.split()) == set()


def test_a_slow_or_full_disk_is_a_warning():
    assert doctor._check_fsync(0.5).state == "warn"
    assert doctor._check_fsync(0.001).state == "ok"
    assert doctor._check_free_space(10).state == "warn"


def test_every_page_that_the_guide_lists_can_be_read(capsys):
    assert run_guarded(["guide"]) == 0
    names = [line.split()[2] for line in capsys.readouterr().out.splitlines() if line.startswith("babyagi guide ")]

    assert names
    for name in names:
        assert run_guarded(["guide", name]) == 0
        assert capsys.readouterr().out.startswith("# ")


def test_an_unknown_page_is_not_found_and_the_nearest_is_named(capsys):
    assert run_guarded(["guide", "limit"]) == 8

    assert "babyagi guide limits" in capsys.readouterr().err


@pytest.mark.parametrize("topic", ["../errors", "/etc/passwd", "start.md"])
def test_a_page_is_a_name_and_no_path(topic):
    assert run_guarded(["guide", topic]) == 8
