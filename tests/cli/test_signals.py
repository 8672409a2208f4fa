"""Real processes, stopped in the middle: `babyagi` against the local server."""

import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.system

DOCUMENTS = ("limits", "recovery", "models", "safety")


@pytest.fixture
def endpoint():
    command = [sys.executable, "-m", "support.local_server", "--latency-s", "0.2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.send_signal(signal.SIGTERM)


@pytest.fixture
def environ(tmp_path, endpoint):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in DOCUMENTS:
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe {name} of a run stop it.\n")
    return {
        "PATH": os.environ["PATH"],
        "BABYAGI_HOME": str(tmp_path / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
        "BABYAGI_FILES": str(folder),
        "OPENAI_BASE_URL": endpoint,
        "BABYAGI_PROTOCOL": "untested",
    }


def babyagi(*line, environ, **options):
    return subprocess.run(
        [sys.executable, "-m", "babyagi", *line],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        **options,
    )


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_says_how_to_go_on_and_goes_on_to_its_end(
    signal_number, code, environ
):
    command = [sys.executable, "-m", "babyagi", "run", "What stops a run?", "--task", "Look"]
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        seen = ""
        while "task 1 done" not in seen:
            line = running.stderr.readline()
            assert line, seen
            seen += line
        running.send_signal(signal_number)
        out, err = running.communicate(timeout=300)

    assert running.returncode == code
    assert out == ""
    assert "babyagi resume --objective 1" in err
    assert "Traceback" not in err
    n_done = json.loads(babyagi("status", "--json", environ=environ).stdout)["tasks"]["done"]

    resumed = babyagi("resume", environ=environ)

    assert resumed.returncode == 0, resumed.stderr
    status = json.loads(babyagi("status", "--json", environ=environ).stdout)
    results = json.loads(babyagi("show", "results", "--json", environ=environ).stdout)
    assert status["stop_reason"] == "finished"
    assert len(results) == status["tasks"]["done"] > n_done
