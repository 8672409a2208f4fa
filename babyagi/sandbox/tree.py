"""Runs a command, and at its end kills all processes that the command has started. It is a program
of its own, between babyagi and an untrusted server:

    python tree.py MAX_LINE_BYTES COMMAND [ARGUMENT]...

Lines are passed on in both directions. A line of the command that is not a JSON object, or is
longer than `MAX_LINE_BYTES`, is dropped, so that babyagi never buffers or parses it; in the place
of an answer that is too long babyagi gets an error, so that only that request fails. In a list of
tools, what babyagi's parser cannot read is replaced, so that it reads the other tools. At the end,
this program writes two things to its own error output, for a person: the exit code of the command,
if the command ended by itself, and the end of the command's error output.

When the process that started this program ends, for whatever reason, this program's standard input
ends. Then the command and all its descendants are killed, including those that left its process
group: on Linux they become children of this program.

Not covered: when this program itself is killed by SIGKILL, the command is killed, but its
descendants are not.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

GRACE_S = 2.0  # for the command to end by itself, once its input has ended
CHUNK_BYTES = 2**16
MAX_ERROR_BYTES = 2000  # of the command's error output
N_END_BYTES = 256  # of a line that is too long, at either end
LIST = b'"tools"'  # in each list of tools, and hardly ever in another message
MAX_DEPTH = 150  # of lists and objects; pydantic's parser reads fewer than 200
_PARTS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]|[-+.eE0-9]{300,}', re.DOTALL)
_ID = re.compile(rb'"id"\s*:\s*([0-9]{1,18})\s*[,}]')
# a pair of surrogates; half of one; any other escape
_ESCAPES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def main() -> None:
    max_line_bytes, command = int(sys.argv[1]), sys.argv[2:]
    last_words = _LastWords()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os._exit(_end(process, last_words)))
    _control(_PR_SET_CHILD_SUBREAPER)
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        bufsize=0, start_new_session=True,
        preexec_fn=_die_with_parent,  # noqa: PLW1509  no thread has been started yet
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    last_words.follow(process.stderr)
    lines = os.fdopen(process.stdout.fileno(), "rb", closefd=False)  # which is buffered
    reading = threading.Thread(target=_pass_lines, args=(lines, max_line_bytes), daemon=True)
    reading.start()
    threading.Thread(target=_pass_input, args=(process, last_words), daemon=True).start()
    process.wait()
    reading.join(GRACE_S)
    os._exit(_end(process, last_words))


def _control(option: int, value: int = 1) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _die_with_parent() -> None:
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _LastWords:
    """The end of the command's error output, and how the command ended."""

    def __init__(self) -> None:
        self.is_asked_to_end = False
        self._end, self._reading = b"", threading.Thread()

    def follow(self, output: IO[bytes]) -> None:
        self._reading = threading.Thread(target=self._read, args=(output,), daemon=True)
        self._reading.start()

    def _read(self, output: IO[bytes]) -> None:
        while chunk := output.read(CHUNK_BYTES):
            self._end = (self._end + chunk)[-MAX_ERROR_BYTES:]

    def write(self, exit_code: int | None) -> None:
        """Write the last words to the beginning of the file that is standard error. If several
        threads end the command, each writes the same text to the same place. Nothing is written if
        standard error is not a file."""
        if self._reading.is_alive():
            self._reading.join(GRACE_S)
        said = []
        if exit_code is not None and not self.is_asked_to_end:
            how = f"with exit code {exit_code}" if exit_code >= 0 else f"by signal {-exit_code}"
            said.append(f"it ended {how}".encode())
        if self._end.strip():
            said.append(b"its error output ends: " + self._end)
        with contextlib.suppress(OSError):
            os.pwrite(2, b"; ".join(said), 0)


def _pass_input(process: subprocess.Popen[bytes], last_words: _LastWords) -> None:
    """Copy standard input to the command. At its end, end the command and this program."""
    assert process.stdin is not None
    while chunk := os.read(0, CHUNK_BYTES):
        try:
            process.stdin.write(chunk)
        except OSError:
            break
    else:
        last_words.is_asked_to_end = True
    with contextlib.suppress(OSError):
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    os._exit(_end(process, last_words))


def _pass_lines(output: IO[bytes], max_line_bytes: int) -> None:
    """Copy the command's output to standard output, line by line, without lines that are too long.
    Of these, only the first and the last bytes are kept, where an answer says which it is."""
    while line := output.readline(max_line_bytes + 2):
        if len(line) <= max_line_bytes + 1:  # with its end
            _write_message(line)
            continue
        start, end = line[:N_END_BYTES], line
        while not end.endswith(b"\n") and (more := output.readline(CHUNK_BYTES)):
            end = end[-N_END_BYTES:] + more
        _write_refusal(start, end[-N_END_BYTES:])


def _write_refusal(start: bytes, end: bytes) -> None:
    """Write an error in the place of an answer that is too long. Nothing is written for a request
    or a notification, nor if neither end of the line has the id of an answer."""
    found = _ID.search(start) or _ID.search(end)
    if found is not None and b'"method"' not in start:
        error = {"code": -32603, "message": "the answer is too long to be read"}
        said = {"jsonrpc": "2.0", "id": json.loads(found[1]), "error": error}
        _write_message(json.dumps(said).encode() + b"\n")


def _write_message(line: bytes) -> None:
    """Write the line to standard output if it is a JSON object, else drop it."""
    line = mend(line) if LIST in line else line
    try:
        is_message = isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return
    while is_message and line:
        line = line[os.write(1, line) :]


def mend(text: bytes) -> bytes:
    """Return the JSON text without what pydantic's parser cannot read: with null in the place of
    lists and objects below `MAX_DEPTH`, infinity in that of numbers with too many digits, and
    U+FFFD in that of half a pair of surrogates."""
    kept, depth, start = [], 0, 0
    for part in _PARTS.finditer(text):
        found = part[0]
        if found in b"[{":
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += [text[start : part.start()], b"null"]
        elif found in b"]}":
            depth -= 1
            start = part.end() if depth == MAX_DEPTH else start
        elif depth <= MAX_DEPTH and (found[:1] != b'"' or b"\\u" in found):
            other = b"1e999" if found[:1] != b'"' else _ESCAPES.sub(_whole, found)
            kept += [text[start : part.start()], other]
            start = part.end()
    return b"".join([*kept, text[start:] if depth <= MAX_DEPTH else b""])


def _whole(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape[1] else escape[0]


def _end(process: subprocess.Popen[bytes], last_words: _LastWords) -> int:
    """Kill all remaining processes of the command, write its last words, and return its exit code;
    1 if a signal ended it."""
    exit_code = process.poll()
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + GRACE_S
    while (left := _descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        time.sleep(0.005)
    last_words.write(exit_code)
    return process.returncode if process.returncode is not None and process.returncode >= 0 else 1


def _descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of the process; none on a system without /proc."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, ValueError):
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *_descendants(child)]
    return found


if __name__ == "__main__":
    main()
