"""Running Python code that nobody trusts: a process of its own that can only compute, bounded from
outside in time and output.

Covered: files, network, other processes, signals, devices, and everything else that needs a system
call but memory, the clock,
randomness and the one pipe for the outcome; memory, processor time, wall time and size of the
answer; how many run at once; a parent that dies. Not covered: bugs of the kernel or the processor
in what is left, and what computing itself can do: `MAX_AT_ONCE` programs of one user can each use
one core until their time is up, and hold `MEMORY_BYTES` meanwhile. The answer is text from outside,
like every other: it may say anything.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from babyagi.errors import SettingsError, ToolError
from babyagi.sandbox import confined, program
from babyagi.text import clean

MAX_CODE_CHARS = 1_000_000
MEMORY_BYTES = 512 * 2**20  # of address space, the interpreter's own 30 MiB included
# programs of one user on this machine, so that together they hold 1 GiB at most; an ordinary one
# takes 0.1 s
MAX_AT_ONCE = 2
TURN_TIMEOUT_S = 60.0  # until it is a program's turn
# of a machine that is busy; the time of the code is counted from when it begins
START_TIMEOUT_S = 60.0
TIMEOUT_S = 10.0
MAX_LINE_CHARS = 1000

_FOLDER = str(Path(__file__).parent)
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); import confined; "
    "confined.main(int(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))"
)
# isolated, and digits are bounded by time and output
_PYTHON_FLAGS = "-I -S -B -W ignore -X utf8 -X int_max_str_digits=0".split()
_LOOK_S = 0.01  # between two looks for a free place
_MAX_BYTES_PER_CHAR = 4


async def run_python(
    code: str,
    *,
    result: str = "final_result",
    timeout_s: float = TIMEOUT_S,
    max_output_chars: int = 16_000,
) -> str:
    """Run Python code in a process that can do nothing but compute, and return what it gives as
    text.

    That is the variable `result` where the code assigned it, else what it printed, else the value
    of its last line. Each run is a fresh process and knows nothing of others; `MAX_AT_ONCE` run at
    once, and `timeout_s` counts from when the code begins. The text is cleaned, and has at most
    `max_output_chars`. Whatever ends the call, the process is gone when it returns.

    Raises:
        ToolError: one line for the model: the code raised, gave nothing, took too long, or wanted
        what it may not have.
        SettingsError: this machine cannot confine code; nothing was run.
    """
    if sys.platform != "linux":
        raise _unconfinable(f"this is {sys.platform}")
    if len(code) > MAX_CODE_CHARS:
        raise ToolError(f"the code has more than {MAX_CODE_CHARS:,} characters")
    async with _turn():
        return await _run(code, result, timeout_s, max_output_chars)


@asynccontextmanager
async def _turn() -> AsyncIterator[None]:
    """Hold one of the places for a program, waiting until one is free."""
    try:
        async with asyncio.timeout(TURN_TIMEOUT_S):
            while (place := _take_place()) is None:  # noqa: ASYNC110 - another process may hold it, and sets no event of ours
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        raise ToolError(
            f"{MAX_AT_ONCE} other programs were running for {TURN_TIMEOUT_S:g} s; this one "
            "was not begun, try again"
        ) from None
    with place:
        yield


def _take_place() -> socket.socket | None:
    """One of the places, None if all are taken: a name in the kernel, which only one can hold, and
    which is free when its holder ends."""
    for n in range(MAX_AT_ONCE):
        with ExitStack() as unless_taken:
            try:
                place = unless_taken.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
                place.bind(f"\0babyagi-python-{os.getuid()}-{n}")
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                raise _cannot_start(error) from error
            unless_taken.pop_all()
            return place
    return None


def _cannot_start(error: OSError) -> ToolError:
    return ToolError(
        f"no process could be started for the code ({error.strerror}); try again later"
    )


async def _run(code: str, result: str, timeout_s: float, max_output_chars: int) -> str:
    with _start(code, result, max_output_chars, cpu_s=int(timeout_s) + 5) as process:
        output_fd = process.stdout.fileno()  # type: ignore[union-attr]  # it is a pipe
        try:
            await _require_confined(process, output_fd)
            outcome = await _read_outcome(output_fd, timeout_s, max_output_chars)
            process.wait()
        finally:
            process.kill()
            # its end is that of the process, whose memory takes a moment to free
            while await _receive(output_fd):
                pass
    return _read_answer(outcome, process.returncode, max_output_chars)


def _start(code: str, result: str, max_output_chars: int, *, cpu_s: int) -> subprocess.Popen[bytes]:
    """Start the process, with nothing of ours but the code on its standard input."""
    bounds = [str(os.getpid()), result, str(max_output_chars), str(cpu_s), str(MEMORY_BYTES)]
    nothing = subprocess.DEVNULL
    try:
        with os.fdopen(os.memfd_create("code"), "w+b") as file:
            file.write(code.encode("utf-8", "surrogatepass"))
            file.seek(0)
            return subprocess.Popen(
                [sys.executable, *_PYTHON_FLAGS, "-c", _CHILD, _FOLDER, *bounds],
                stdin=file, stdout=subprocess.PIPE, stderr=nothing, bufsize=0, cwd="/", env={},
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        raise _cannot_start(error) from error


async def _require_confined(process: subprocess.Popen[bytes], output_fd: int) -> None:
    """Return when the process has proved that it is confined, and begins with the code."""
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            said = await _receive(output_fd, 1)
            if said == confined.CONFIRMED.encode():
                return
            why = clean((await _receive(output_fd)).decode("utf-8", "replace"))
    except TimeoutError:
        raise ToolError("the machine is too busy to run code now; try again later") from None
    exit_code = process.wait()
    if exit_code == -signal.SIGKILL:
        raise ToolError("the system stopped the process before the code began; try again later")
    raise _unconfinable(why or f"the process ended with code {exit_code} before it was confined")


def _unconfinable(why: str) -> SettingsError:
    fix = (
        "work on Linux (x86_64 or aarch64) with seccomp, which Docker and Kubernetes allow "
        "by default; or leave out what runs Python"
    )
    return SettingsError(
        "Python code of a model cannot be confined here, so none was run",
        why=why,
        fix=fix,
        guide="safety",
    )


async def _read_outcome(output_fd: int, timeout_s: float, max_output_chars: int) -> bytes:
    """What the process says until it ends."""
    said, most = bytearray(), _MAX_BYTES_PER_CHAR * max(max_output_chars, MAX_LINE_CHARS) + 1
    try:
        async with asyncio.timeout(timeout_s):
            while chunk := await _receive(output_fd):
                said += chunk
                if len(said) > most:
                    raise ToolError("the code wrote more than its answer may have")
    except TimeoutError:
        raise ToolError(f"the code took longer than {timeout_s:g} s and was stopped") from None
    return bytes(said)


async def _receive(fd: int, max_bytes: int = 2**16) -> bytes:
    """The next bytes of a pipe, none at its end."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(fd, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(fd)
    return os.read(fd, max_bytes)


def _read_answer(outcome: bytes, exit_code: int, max_output_chars: int) -> str:
    if exit_code == -signal.SIGKILL:
        raise ToolError(
            "the code was stopped by the system: it used more memory than "
            f"{MEMORY_BYTES >> 20} MiB, or too much processor time"
        )
    if exit_code:
        raise ToolError("the code crashed the interpreter")
    text = clean(outcome.decode("utf-8", "replace"))
    match text[:1]:
        case program.ANSWER:
            return text[1 : 1 + max_output_chars]
        case program.FAULT:
            raise ToolError(" ".join(text[1 : 1 + MAX_LINE_CHARS].split()))
    raise ToolError("the code ended the process without an answer")
