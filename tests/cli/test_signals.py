"""Real processes, stopped in the middle: `babyagi` against the local server."""

import signal

import pytest

from support.local_server import LocalServer
from support.processes import babyagi, environ, finish, look, start

pytestmark = pytest.mark.system

DOCUMENTS = ("limits", "recovery", "models", "safety")


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_run_that_is_stopped_says_how_to_go_on_and_goes_on_to_its_end(
    signal_number, code, tmp_path
):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in DOCUMENTS:
        (folder / f"{name}.md").write_text(f"# {name}\n\nThe {name} of a run stop it.\n")
    async with LocalServer(latency_s=0.2) as server:
        env = environ(tmp_path / "home", server.base_url, BABYAGI_FILES=str(folder))
        running = await start("run", "What stops a run?", "--task", "Look", env=env)
        assert running.stderr is not None
        seen = b""
        while b"task 1 done" not in seen:
            line = await running.stderr.readline()
            assert line, seen
            seen += line
        running.send_signal(signal_number)
        stopped = await finish(running)
        n_done = (await look("status", env=env))["tasks"]["done"]

        resumed = await babyagi("resume", env=env)

    assert stopped.code == code
    assert stopped.out == ""
    assert "babyagi resume --objective 1" in stopped.err
    assert "Traceback" not in stopped.err
    assert resumed.code == 0, resumed.said
    status = await look("status", env=env)
    results = await look("show", "results", env=env)
    assert status["stop_reason"] == "finished"
    assert len(results) == status["tasks"]["done"] > n_done
