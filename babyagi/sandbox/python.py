"""Runs untrusted Python code in a separate process that can only compute.

The code cannot use files, the network, other processes, signals or devices. The only system calls
left to it are for memory, the clock, randomness, and the pipe for its outcome. Its memory, its
processor time, its wall time, the size of its answer and the number of programs at once are
limited. When the parent process dies, it dies too. Files are passed in and out as bytes.

Not covered: bugs of the kernel or the processor in the allowed calls, and the cost of computing.
`MAX_AT_ONCE` programs of one home folder can each use one core and `MEMORY_BYTES` until their time
is up.
The answer is untrusted text: it may say anything.
"""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from babyagi.errors import BabyagiError, SettingsError, ToolError, find_shortage
from babyagi.files import private
from babyagi.sandbox import confined, program
from babyagi.text import clean

MAX_CODE_CHARS = 1_000_000
MEMORY_BYTES = 512 * 2**20  # of address space, the interpreter's own 30 MiB included
# The programs of one home folder that run at once: together they use at most 1 GiB. An ordinary
# program takes 0.1 s.
MAX_AT_ONCE = 2
TURN_TIMEOUT_S = 60.0  # the longest wait for a free slot
START_TIMEOUT_S = 60.0  # the longest wait for the code to begin; long, for a busy machine
TIMEOUT_S = 10.0
MAX_LINE_CHARS = 1000
MAX_OUTPUT_CHARS = 16_000
MAX_PATH_CHARS = 200
MAX_PATH_PARTS = 6

_FOLDER = str(Path(__file__).parent)
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); import confined; "
    "confined.main(*map(int, sys.argv[2:]))"
)
# Python is isolated from the environment. The digits of integers are not limited, because the
# limits of time and output are enough.
_PYTHON_FLAGS = "-I -S -B -W ignore -X utf8 -X int_max_str_digits=0".split()
_LOOK_S = 0.01  # between two looks for a free slot
_MAX_BYTES = 4 * MAX_OUTPUT_CHARS + 2 * program.MAX_BYTES  # of all that a process writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a program, by relative paths with `/`.

    Attributes:
        given: the content of files that the program may only read.
        kept: the content of the program's own files, which it may change.
        listed: the sizes of files whose names the program sees, but whose content it does not get.
    """

    given: Mapping[str, bytes] = field(default_factory=dict)
    kept: Mapping[str, bytes] = field(default_factory=dict)
    listed: Mapping[str, int] = field(default_factory=dict)


NO_FILES = Files()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The outcome of a program.

    Attributes:
        text: its answer, possibly empty.
        written: the content of the files of its task's folder that it changed or created, by path.
            Each path is relative to that folder, and stays inside it.
        removed: the paths of the files of that folder that it removed.
    """

    text: str
    written: Mapping[str, bytes]
    removed: tuple[str, ...]


async def run_python(code: str, files: Files = NO_FILES, *, places: Path | None = None) -> Ran:
    """Run Python code in a process that can only compute.

    The answer is the value of the variable `program.RESULT` if the code assigned it, else the
    printed text, else the value of the last line. It has no control characters, and at most
    `MAX_OUTPUT_CHARS`, and may be empty if the code changed files. If the code fails, what it
    changed in files is lost.

    Each run is a new process, which has ended when the call returns. `MAX_AT_ONCE` programs of all
    processes that share the folder `places` run at once, and further calls wait; without a folder
    none waits. Nobody else may be able to write to it. `TIMEOUT_S` counts from the start of the
    code.

    Raises:
        ToolError: the code raised an error, gave no output, took too long, or tried something
            forbidden; or a file that it wrote has an invalid name, or its files are too many or too
            large. The text is one line for the model.
        SettingsError: this machine cannot confine code; nothing was run.
    """
    if sys.platform != "linux":
        raise _unconfinable(f"this system is {sys.platform}, not Linux")
    if len(code) > MAX_CODE_CHARS:
        raise ToolError(f"the code has more than {MAX_CODE_CHARS:,} characters")
    async with _turn(places) if places is not None else nullcontext():
        outcome, exit_code = await _run(code, files)
    parts = iter(_unpack(outcome))
    text = _read_answer(next(parts, b""), exit_code)
    return _read_files(text, list(parts), files)


# -- reading the output of a program: untrusted bytes, which may have any form
# --------------------------------------------------------------------------------------------------


def _unpack(said: bytes) -> Iterator[bytes]:
    """Yield the parts of the output, up to the first one that does not have the form
    `LENGTH:BYTES`."""
    at = 0
    while at < len(said):
        head, colon, _ = said[at : at + 12].partition(b":")
        if not colon or not head.isdigit():
            return
        at += len(head) + 1
        yield said[at : at + int(head)]
        at += int(head)


def _read_files(text: str, parts: list[bytes], files: Files) -> Ran:
    head = parts[0] if parts else b"0"
    n_removed = int(head) if head.isdigit() and len(head) < 4 else 0
    names = [part.decode("utf-8", "replace") for part in parts[1 : 1 + n_removed]]
    rest = parts[1 + n_removed :]
    paths = (name.decode("utf-8", "replace") for name in rest[::2])
    written = dict(zip(paths, rest[1::2], strict=False))
    bad = next((name for name in written if not is_plain_path(name)), None)
    if bad is not None:
        fix = "use letters, digits, `-`, `_`, `.` and folders with `/`"
        raise ToolError(f"a file cannot have the name {clean(bad)[:100]!r}: {fix}")
    kept = {**files.kept, **written}
    if len(kept) > program.MAX_FILES or sum(map(len, kept.values())) > program.MAX_BYTES:
        most = f"at most {program.MAX_FILES} files, with {program.MAX_BYTES >> 20} MB together"
        raise ToolError(f"a task may keep {most}; write less, or remove some")
    removed = tuple(name for name in names if name in files.kept and name not in written)
    return Ran(text=text, written=written, removed=removed)


def is_plain_path(path: str) -> bool:
    """Return whether the path is relative, short and printable, without hidden or empty parts."""
    parts = path.split("/")
    return (
        len(path) <= MAX_PATH_CHARS
        and len(parts) <= MAX_PATH_PARTS
        and all(part and not part.startswith(".") for part in parts)
        and "\\" not in path
        and path.isprintable()
        and "\N{REPLACEMENT CHARACTER}" not in path
    )


@asynccontextmanager
async def _turn(places: Path) -> AsyncIterator[None]:
    """Wait for one of the `MAX_AT_ONCE` slots for programs, and hold it during the context."""
    try:
        async with asyncio.timeout(TURN_TIMEOUT_S):
            while (place := _take_place(places)) is None:  # noqa: ASYNC110 - another process may hold it, and sets no event of ours
                await asyncio.sleep(_LOOK_S)
    except TimeoutError:
        why = f"{MAX_AT_ONCE} other programs were running for {TURN_TIMEOUT_S:g} s"
        raise ToolError(f"{why}, so this one was not started; try again later") from None
    with place:
        yield


def _take_place(places: Path) -> TextIO | None:
    """Take a free slot and return it; None if all are taken. A slot is the lock of a file, which
    the kernel frees when its holder ends. Only this user can open the file: whoever can open one
    can hold its lock."""
    try:
        private.make_folder(places)
        found = (private.try_lock(places / f"python-{n}") for n in range(MAX_AT_ONCE))
        return next(filter(None, found), None)
    except OSError as error:
        raise _cannot_start(error) from error


def _cannot_start(error: OSError) -> BabyagiError:
    what = f"no process could be started for the code ({error.strerror})"
    return find_shortage(error) or ToolError(f"{what}; try again later")


async def _run(code: str, files: Files) -> tuple[bytes, int]:
    with _start(code, files) as process:
        output_fd = process.stdout.fileno()  # type: ignore[union-attr]  # it is a pipe
        try:
            await _require_confined(process, output_fd)
            outcome = await _read_outcome(output_fd)
            process.wait()
        finally:
            process.kill()
            # the pipe ends with the process, which frees its memory first
            while await _receive(output_fd):
                pass
    return outcome, process.returncode


def _start(code: str, files: Files) -> subprocess.Popen[bytes]:
    """Start the process. All that it gets from this process are the code and its files, on standard
    input."""
    bounds = map(str, [os.getpid(), MAX_OUTPUT_CHARS, int(TIMEOUT_S) + 5, MEMORY_BYTES])
    given = marshal.dumps((code, dict(files.given), dict(files.kept), dict(files.listed)))
    nothing = subprocess.DEVNULL
    try:
        with os.fdopen(os.memfd_create("code"), "w+b") as file:
            file.write(given)
            file.seek(0)
            return subprocess.Popen(
                [sys.executable, *_PYTHON_FLAGS, "-c", _CHILD, _FOLDER, *bounds],
                stdin=file, stdout=subprocess.PIPE, stderr=nothing, bufsize=0, cwd="/", env={},
                start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        raise _cannot_start(error) from error


async def _require_confined(process: subprocess.Popen[bytes], output_fd: int) -> None:
    """Wait until the process has confirmed that it is confined and begins to run the code."""
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
        raise ToolError("the system killed the process before the code began; try again later")
    raise _unconfinable(why or f"the process ended with code {exit_code} before it was confined")


def _unconfinable(why: str) -> SettingsError:
    fix = (
        "run babyagi on Linux (x86_64 or aarch64) with seccomp, which Docker and Kubernetes allow "
        "by default; or start without the tool run_python (--tools, BABYAGI_TOOLS)"
    )
    what = "Python code that a model wrote cannot be confined on this machine, so it was not run"
    return SettingsError(what, why=why, fix=fix, guide="safety")


async def _read_outcome(output_fd: int) -> bytes:
    """Return all that the process writes until it ends. Raises `ToolError` if that is more than
    `_MAX_BYTES`, or takes longer than `TIMEOUT_S` seconds."""
    said = bytearray()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while chunk := await _receive(output_fd):
                said += chunk
                if len(said) > _MAX_BYTES:
                    raise ToolError(
                        "the code printed more than is allowed; print less, or write it to a file"
                    )
    except TimeoutError:
        raise ToolError(f"the code took longer than {TIMEOUT_S:g} s and was stopped") from None
    return bytes(said)


async def _receive(fd: int, max_bytes: int = 2**16) -> bytes:
    """Wait for the next bytes of a pipe and return them; b"" at the pipe's end."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(fd, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(fd)
    return os.read(fd, max_bytes)


def _read_answer(outcome: bytes, exit_code: int) -> str:
    if exit_code == -signal.SIGKILL:
        why = f"it used more memory than {MEMORY_BYTES >> 20} MiB, or too much processor time"
        raise ToolError(f"the system killed the code: {why}")
    if exit_code:
        raise ToolError("the code crashed the interpreter, as waiting for a thread does here")
    text = clean(outcome.decode("utf-8", "replace"))
    match text[:1]:
        case program.ANSWER:
            return text[1 : 1 + MAX_OUTPUT_CHARS]
        case program.FAULT:
            raise ToolError(" ".join(text[1 : 1 + MAX_LINE_CHARS].split()))
    raise ToolError("the code ended the process without an answer")
