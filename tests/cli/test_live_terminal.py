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
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
# keys, and what the screen says after each
KEYS = (
    (b"p", b"It is paused"),
    (b"a", b"nothing waits for you"),
    (b"\x1b[B\r", b"esc goes back"),  # down, enter
    (b"\x1b", b"p pause"),
)


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
        "BABYAGI_PROBE": "false",
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


@pytest.mark.parametrize(("way", "code"), [("q", 130), ("SIGTERM", 143)])
def test_the_terminal_is_left_as_it_was_and_standard_output_holds_no_picture(
    way, code, tmp_path, endpoint, terminal
):
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
    with begin(tmp_path, endpoint, theirs) as running:
        shown = read_until(ours, b"asks the model", running=running)
        if way == "q":
            for key, wanted in KEYS:
                os.write(ours, key)
                shown += read_until(ours, wanted, running=running)
            os.write(ours, b"q")
        else:
            running.send_signal(signal.SIGTERM)
        shown += read_until(ours, LEAVE, running=running)
        out, _ = running.communicate(timeout=300)

    assert running.returncode == code
    assert termios.tcgetattr(theirs) == before
    assert (
        shown.count(ENTER) == 1 and "Objective 1: 何が実行を止めますか？ 👩‍👩‍👧".encode() in shown
    )
    assert b"\x1b" not in (out or b"")


def test_the_words_of_a_model_are_on_the_screen_while_it_writes_them(tmp_path, endpoint, terminal):
    ours, theirs = terminal
    with begin(tmp_path, endpoint, theirs) as running:
        shown = read_until(ours, b" writes: ", running=running)
        os.write(ours, b"q")
        shown += read_until(ours, LEAVE, running=running)
        running.communicate(timeout=300)

    assert b"has its result" not in shown.partition(b" writes: ")[0]


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
            shown = read_until(ours, b"Count the bridges", running=watching)
            watching.send_signal(signal_number)
            shown += read_until(ours, LEAVE, running=watching)
            watching.wait(300)
        finally:
            watching.kill()

    assert watching.returncode == code
    assert termios.tcgetattr(theirs) == before
    assert b"REHEARSAL: no language model was asked" in shown
    assert b"Traceback" not in shown
