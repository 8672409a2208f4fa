"""Keys that everybody on the way can read, and which proxies are in use: what a person is told
before a run, and by the doctor."""

import json

import pytest

from babyagi.cli.root import run_guarded
from babyagi.settings.load import find_keys_in_clear, load_here, load_settings

KEY = "sk-of-the-endpoint"


pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    ("given", "said"),
    [("nowhere", "there is no folder"), ("a.md", "a.md is a file, not a folder")],
)
def test_a_wrong_folder_is_told_before_an_objective_is_made(given, said, tmp_path, capsys):
    (tmp_path / "a.md").write_text("text", encoding="utf-8")

    assert run_guarded(["run", "x", "--files", given, "--model", "rehearsal"]) == 2
    assert said in capsys.readouterr().err
    assert run_guarded(["status"]) == 8
    assert "there is no objective yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        ["submit", "x", "--model", "rehearsal"],
        ["schedule", "add", "x", "--every", "1d", "--model", "rehearsal"],
        ["tools"],
        ["tools", "test", "list_files"],
    ],
    ids=" ".join,
)
def test_every_command_that_takes_a_folder_tells_a_wrong_one_at_once(line, capsys):
    assert run_guarded([*line, "--files", "nowhere"]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert run_guarded(["status"]) == 8
    assert run_guarded(["schedule"]) == 0
    assert "There is no schedule" in capsys.readouterr().out


def keys_in_clear(tmp_path, **environ):
    return list(find_keys_in_clear(load_settings(flags={}, environ=environ, cwd=tmp_path).settings))


REMOTE, HERE, SECURE = "http://10.1.2.3:8000/v1", "http://localhost:8000/v1", "https://10.1.2.3/v1"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": REMOTE}, ["OPENAI_API_KEY"]),
        ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": HERE}, []),
        ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": SECURE}, []),
        ({"OPENAI_API_KEY": KEY}, []),
        ({"OPENAI_BASE_URL": REMOTE}, []),
        (
            {
                "OPENAI_API_KEY": KEY,
                "OPENAI_BASE_URL": REMOTE,
                "LLM_MODEL": "rehearsal",
                "BABYAGI_EMBEDDING_MODEL": "e",
            },
            ["OPENAI_API_KEY"],
        ),
        (
            {
                "OPENAI_API_KEY": KEY,
                "BABYAGI_EMBEDDING_BASE_URL": REMOTE,
                "BABYAGI_EMBEDDING_MODEL": "e",
            },
            ["BABYAGI_EMBEDDING_BASE_URL"],
        ),
        ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": REMOTE, "LLM_MODEL": "human"}, []),
        ({"WEAVIATE_URL": "http://db:8080", "WEAVIATE_API_KEY": KEY}, ["WEAVIATE_API_KEY"]),
        ({"WEAVIATE_URL": "http://[::1]:8080", "WEAVIATE_API_KEY": KEY}, []),
        (
            {
                "WEAVIATE_URL": "http://db:8080",
                "WEAVIATE_API_KEY": KEY,
                "BABYAGI_RESULT_STORE": "builtin",
            },
            [],
        ),
        ({"BABYAGI_NOTIFY": "http://hooks.example/T0/secret"}, ["BABYAGI_NOTIFY"]),
        ({"BABYAGI_NOTIFY": "http://127.0.0.1:9/hook"}, []),
        ({"BABYAGI_NOTIFY": "curl http://hooks.example/T0"}, []),
    ],
)
def test_each_key_over_http_to_another_machine_is_said_and_no_other(environ, said, tmp_path):
    lines = keys_in_clear(tmp_path, **environ)

    assert len(lines) == len(said)
    for line, word in zip(lines, said, strict=True):
        assert word in line and "https" in line
        assert KEY not in line and "secret" not in line


def test_a_run_says_it_once_before_it_begins_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LLM_MODEL", "rehearsal")
    monkeypatch.setenv("BABYAGI_NOTIFY", "http://hooks.invalid/T0/secret")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "limits.md").write_text("# Limits\n\nA run stops at fifty tasks.\n")

    assert run_guarded(["run", "Find the limits", "--files", str(tmp_path / "docs")]) == 0

    err = capsys.readouterr().err
    assert err.count("BABYAGI_NOTIFY sends to hooks.invalid unencrypted") == 1
    assert "secret" not in err


def test_a_program_without_a_screen_finds_it_in_its_log(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    load_here({"openai_base_url": REMOTE})

    assert [
        record.getMessage()
        for record in caplog.records
        if "OPENAI_API_KEY is sent to" in record.getMessage()
    ]
    assert KEY not in caplog.text


def checks(capsys, name):
    assert run_guarded(["doctor", "--json"]) in (0, 6)
    out = capsys.readouterr().out
    return [check for check in json.loads(out)["checks"] if check["name"] == name], out


def test_the_doctor_warns_of_a_key_in_clear(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://model.invalid:1/v1")
    (found,), out = checks(capsys, "keys")

    assert (
        found["state"] == "warn"
        and "OPENAI_API_KEY is sent to http://model.invalid:1/v1 unencrypted" in found["found"]
    )
    assert KEY not in out


@pytest.mark.parametrize(
    "value", ["socks5://127.0.0.1:9050", "ftp://proxy", "http://", "http://proxy:0"]
)
def test_a_proxy_that_cannot_be_used_is_a_fault_and_is_not_passed_by(value, monkeypatch, capsys):
    monkeypatch.setenv("HTTPS_PROXY", value)

    assert run_guarded(["config"]) == 2
    assert "HTTPS_PROXY must be http://HOST:PORT" in capsys.readouterr().err
