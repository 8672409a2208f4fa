"""The live view on a real terminal, with standard output in a pipe."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from tests.cli import homes

pytestmark = pytest.mark.system

OBJECTIVE = "何が実行を止めますか？ 👩‍👩‍👧 " + "違約金なしで" * 20
DRAWN = b"tasks: "


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def endpoint():
    latency = ["--latency-s", "0.5", "--piece-latency-s", "0.3"]
    command = [sys.executable, "-m", "support.local_server", *latency]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.send_signal(signal.SIGTERM)


@pytest.fixture
def terminal():
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def read_until(ours, wanted, *, running):
    """What the terminal was sent, up to and with what is wanted."""
    seen = bytearray()
    until = time.monotonic() + 300
    os.set_blocking(ours, False)
    while wanted not in seen:
        assert time.monotonic() < until, bytes(seen[-2000:])
        try:
            seen += os.read(ours, 65_536)
        except BlockingIOError:
            assert running.poll() is None or wanted in seen, bytes(seen[-2000:])
            time.sleep(0.02)
    return bytes(seen)


def begin(folder, endpoint, terminal):
    """A run that has the terminal as its own, and standard output elsewhere."""
    environ = {
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "BABYAGI_HOME": str(folder / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
        "OPENAI_BASE_URL": endpoint,
        "BABYAGI_PROTOCOL": "untested",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "babyagi", "run", OBJECTIVE],
        env=environ,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # its own terminal
    )


@pytest.mark.parametrize(("way", "code"), [("Ctrl-C", 130), ("SIGTERM", 143)])
def test_the_terminal_is_left_as_it_was_and_standard_output_holds_no_state(
    way, code, tmp_path, endpoint, terminal
):
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
    with begin(tmp_path, endpoint, theirs) as running:
        shown = read_until(ours, b" writes: ", running=running)
        if way == "Ctrl-C":
            os.write(ours, b"\x03")
        else:
            running.send_signal(signal.SIGTERM)
        shown += read_until(ours, b"babyagi resume", running=running)
        out, _ = running.communicate(timeout=300)

    assert running.returncode == code
    assert termios.tcgetattr(theirs) == before
    assert "Objective 1: 何が実行を止めますか？ 👩‍👩‍👧".encode() in shown
    assert b"asks the model" in shown and b"task 1 done" not in shown.partition(b" writes: ")[0]
    assert shown.rpartition(DRAWN)[2].count(b"\x1b[2K") >= 3  # it is gone
    assert b"\x1b[?1049h" not in shown and b"\x1b" not in (out or b"")


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_watch_leaves_the_terminal_as_it_was_when_it_is_stopped(
    signal_number, code, home, terminal
):
    homes.fill_home("Count the bridges")
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
    with subprocess.Popen(
        [sys.executable, "-m", "babyagi", "watch"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={"BABYAGI_HOME": str(home), "TERM": "xterm-256color"},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # its own terminal
    ) as watching:
        try:
            shown = read_until(ours, DRAWN, running=watching)
            watching.send_signal(signal_number)
            watching.wait(300)
            shown += read_until(ours, b"\x1b[2K", running=watching)
        finally:
            watching.kill()

    assert watching.returncode == code
    assert termios.tcgetattr(theirs) == before
    assert b"REHEARSAL: no language model was asked" in shown and b"Count the bridges" in shown
    assert b"Traceback" not in shown
