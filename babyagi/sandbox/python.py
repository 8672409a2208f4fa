"""Running Python code that nobody trusts: a process of its own that can only compute, bounded from outside in time and output.

Covered: files, network, other processes, signals, devices, and everything else that needs a system call but memory, the clock,
randomness and the one pipe for the outcome; memory, processor time, wall time and size of the answer; a parent that dies.
Not covered: bugs of the kernel or the processor in what is left, and what computing itself can do: use one core until the time is up,
and hold `MEMORY_BYTES` meanwhile. The answer is text from outside, like every other: it may say anything.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import cast

from babyagi.errors import SettingsError, ToolError
from babyagi.llm.prompt import clean
from babyagi.sandbox import confined

MAX_CODE_CHARS = 1_000_000
MEMORY_BYTES = 512 * 2**20  # of address space, the interpreter's own 30 MiB included
START_TIMEOUT_S = 60.0  # of a machine that is busy; the time of the code is counted from when it begins
MAX_FAULT_CHARS = 1000

_CHILD = Path(__file__).with_name("confined.py")
_MAX_BYTES_PER_CHAR = 4


async def run_python(code: str, *, result: str = "final_result", timeout_s: float = 10.0, max_output_chars: int = 16_000) -> str:
    """Run Python code in a process that can do nothing but compute, and return str() of the variable `result` that it assigned.

    Each run is a fresh process and knows nothing of others. The text is cleaned, and has at most `max_output_chars`.

    Raises:
        ToolError: one line for the model: the code raised, assigned nothing, took too long, or wanted what it may not have.
        SettingsError: this machine cannot confine code; nothing was run.
    """
    if len(code) > MAX_CODE_CHARS:
        raise ToolError(f"the code has more than {MAX_CODE_CHARS:,} characters")
    process = await _start(result, max_output_chars, cpu_s=int(timeout_s) + 5)
    try:
        await _confine(process, code)
        async with asyncio.timeout(timeout_s):
            outcome = await _read_outcome(process, max_output_chars)
    except TimeoutError:
        raise ToolError(f"the code took longer than {timeout_s:g} s and was stopped") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()
    return _read_answer(outcome, max_output_chars)


async def _start(result: str, max_output_chars: int, *, cpu_s: int) -> Process:
    python = [sys.executable, "-I", "-S", "-B", "-W", "ignore", "-X", "int_max_str_digits=0", "-X", "utf8", str(_CHILD)]
    bounds = [str(os.getpid()), result, str(max_output_chars), str(cpu_s), str(MEMORY_BYTES)]
    try:
        return await asyncio.create_subprocess_exec(
            *python, *bounds, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd="/", env={}, close_fds=True, start_new_session=True
        )
    except OSError as error:
        raise ToolError(f"no process could be started for the code ({error.strerror}); try again later") from error


async def _confine(process: Process, code: str) -> None:
    """Hand the code over, and return when the process has proved that it is confined and begins with it."""
    to_process, from_process = cast(StreamWriter, process.stdin), cast(StreamReader, process.stdout)
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            with suppress(ConnectionError):  # it ended early, and says why
                to_process.write(code.encode("utf-8", "surrogatepass"))
                await to_process.drain()
            to_process.close()
            said = await from_process.read(1)
            if said == confined.CONFIRMED.encode():
                return
            reason = (await from_process.read(MAX_FAULT_CHARS)).decode("utf-8", "replace")
            code_at_end = await process.wait()
    except TimeoutError:
        raise ToolError("the machine is too busy to run code now; try again later") from None
    raise SettingsError(
        "Python code of a model cannot be confined here, so none was run",
        why=clean(reason) if said == confined.REFUSED.encode() else f"the process that was to confine itself ended with code {code_at_end}",
        fix="work on Linux (x86_64 or aarch64), where a container must allow seccomp, or leave out what runs Python",
        guide="safety",
    )


async def _read_outcome(process: Process, max_output_chars: int) -> bytes:
    """What the process said until it ended.

    Raises:
        ToolError: it said too much, or ended in another way than by itself.
    """
    said, most = bytearray(), _MAX_BYTES_PER_CHAR * max(max_output_chars, MAX_FAULT_CHARS) + 1
    while chunk := await cast(StreamReader, process.stdout).read(2**16):
        said += chunk
        if len(said) > most:
            raise ToolError("the code wrote more than its answer may have")
    code_at_end = await process.wait()
    if code_at_end == -signal.SIGKILL:
        raise ToolError("the code was stopped by the system: it used too much memory or processor time")
    if code_at_end:
        raise ToolError("the code crashed the interpreter")
    return bytes(said)


def _read_answer(outcome: bytes, max_output_chars: int) -> str:
    text = clean(outcome.decode("utf-8", "replace"))
    match text[:1]:
        case confined.ANSWER:
            return text[1 : 1 + max_output_chars]
        case confined.FAULT:
            raise ToolError(" ".join(text[1 : 1 + MAX_FAULT_CHARS].split()))
    raise ToolError("the code ended the process without an answer")
