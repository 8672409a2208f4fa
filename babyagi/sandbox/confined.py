"""The process that runs a model's code. It first makes itself unable to do anything but compute,
tests that, and only then runs the code. What parses pages and documents confines itself alike, by
`confine`.

Python runs isolated here: only the modules beside this file and the standard library can be
imported. Standard input has the code and its files, in the format of `program.unpack`. Standard
output has `CONFIRMED`, or `REFUSED` and the reason; then the outcome,
`ANSWER` or `FAULT` and a text; then the files that the code left. Once the code runs, nothing in
this process can be trusted, not even the functions of this file. But the code can only change the
output, which it controls anyway.

The protection is the kernel's filter of system calls (seccomp). The functions that `program.py`
replaces protect nothing: they let ordinary code run, and give the model plain messages.

Sources: seccomp(2), prctl(2), the kernel's `linux/seccomp.h`, `linux/audit.h`, `asm/unistd_64.h`
(x86_64) and `asm-generic/unistd.h` (aarch64).
"""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False  # not from `typing`, which takes as long to load as half of the interpreter
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

CONFIRMED, REFUSED = "C", "R"

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # by name: AUDIT_ARCH_*
# The system calls that an interpreter with one thread needs to compute: output and exit, memory,
# the clock (a system call on some machines), randomness.
SYSCALLS = {  # by name: its number on each architecture, in the order of `ARCHITECTURES`
    "write": (1, 64),
    "exit_group": (231, 94),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "mprotect": (10, 226),
    "brk": (12, 214),
    "futex": (202, 98),
    "clock_gettime": (228, 113),
    "getrandom": (318, 278),
}
_FUTEX_WAKE_PRIVATE, _PROT_EXEC = 129, 4
# by system call: the index of an argument, and its required value
ONLY_WITH = {"write": (0, 1), "futex": (1, _FUTEX_WAKE_PRIVATE)}
# by system call: the index of an argument, and the bits that must not be set in it
NEVER_WITH = {"mmap": (2, _PROT_EXEC), "mprotect": (2, _PROT_EXEC)}

# BPF: ld abs, jeq, jge, jset, ret
_LOAD, _EQUALS, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _EPERM = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
_AT_NUMBER, _AT_ARCHITECTURE, _AT_ARGUMENTS = 0, 4, 16  # in struct seccomp_data
_X32_BIT = 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_SIGKILL = 9

Instruction = tuple[int, int, int, int]


class CannotConfineError(Exception):
    """This machine cannot confine the code to computing. The text says why."""


def main(parent_pid: int, max_chars: int, cpu_s: int, memory_bytes: int) -> None:
    """Confine this process, run the code, write its outcome to standard output, and end the
    process.

    Args:
        parent_pid: the process that started this one. When it ends, this one is killed.
        max_chars: the maximum length of the answer.
        cpu_s: the limit of processor time, in seconds.
        memory_bytes: the limit of address space.
    """
    try:
        import program  # type: ignore[import-not-found]  # it stands beside this file, and nothing else is on the path

        die_with_parent(find_prctl(), parent_pid)
        code, files = program.unpack(sys.stdin.buffer.read())
        program.prepare(code)
        allowed_bytes = confine(cpu_s, memory_bytes)
    except Exception as error:  # whatever the error is, the code is not run
        write_all(f"{REFUSED}{error}".encode("utf-8", "replace"))
        os._exit(1)
    try:
        write_all(CONFIRMED.encode())
        files.install()
        write_all(files.pack(program.run(code, max_chars, allowed_bytes, files)))
        os._exit(0)
    finally:  # the interpreter's normal exit needs system calls that are now forbidden
        os._exit(1)


# -- confinement
# --------------------------------------------------------------------------------------------------


def confine(cpu_s: int, memory_bytes: int) -> int:
    """Limit this process as `limit_resources` does, then leave it only the system calls that
    computing needs, and test that. Returns the memory limit in bytes.

    Raises:
        CannotConfineError: this machine has no such filter. The process is limited all the same.
    """
    try:
        prctl = find_prctl()
    finally:
        allowed_bytes = limit_resources(cpu_s, memory_bytes)
    install_filter(prctl)
    require_filter()
    return allowed_bytes


def find_obstacle() -> str:
    """Return why this machine cannot confine a process; "" if it can. This process stays as it is:
    the kernel is offered a filter at no address, and refuses that address only if it knows filters.

    Source: prctl(2), `PR_SET_SECCOMP`.
    """
    import ctypes

    try:
        find_prctl()(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, 0, 0, 0)
    except CannotConfineError as error:
        return str(error)
    code = ctypes.get_errno()
    return "" if code == errno.EFAULT else f"the kernel takes no filter ({os.strerror(code)})"


def find_prctl() -> Any:
    """Return the C library's `prctl`, which takes integers and returns 0 on success."""
    system, machine = os.uname().sysname, os.uname().machine
    if system != "Linux" or machine not in ARCHITECTURES or sys.maxsize < 2**32:
        known = " or ".join(ARCHITECTURES)
        raise CannotConfineError(f"this is {system} on {machine}, not 64-bit Linux on {known}")
    import ctypes

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return prctl


def die_with_parent(prctl: Any, parent_pid: int) -> None:
    """Make the kernel kill this process when the thread that started it ends. Exit if it has ended
    already."""
    if prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0):
        raise CannotConfineError("the kernel cannot end a process together with its parent")
    if os.getppid() != parent_pid:
        os._exit(1)


def limit_resources(cpu_s: int, memory_bytes: int) -> int:
    """Limit memory and processor time, and close all descriptors except the output. Also forbid
    core dumps, and ask the kernel to kill this process first when memory runs out.

    The filter forbids new files, descriptors and processes; the limits of them set here are a
    second barrier.

    Returns:
        The memory limit in bytes: `memory_bytes`, or less if this process had a lower limit.
    """
    import resource

    if os.access("/proc/self/oom_score_adj", os.W_OK):
        os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"1000")
    sys.path.clear()
    sys.stdin = sys.stdout = sys.stderr = sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None  # type: ignore[misc]
    os.close(0)
    os.closerange(2, os.sysconf("SC_OPEN_MAX"))
    bounds = {"AS": memory_bytes, "CPU": cpu_s, "CORE": 0, "FSIZE": 0, "NOFILE": 0, "NPROC": 0}
    for name, wanted in bounds.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        given = resource.getrlimit(kind)[1]
        most = wanted if given == resource.RLIM_INFINITY else min(wanted, given)
        resource.setrlimit(kind, (most, most))
    return resource.getrlimit(resource.RLIMIT_AS)[0]


def install_filter(prctl: Any) -> None:
    """Forbid all system calls that computing does not need. This cannot be undone: a filter cannot
    be removed, and no later call can add rights."""
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = (("n_instructions", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    instructions = build_filter(os.uname().machine)
    packed = b"".join(
        code.to_bytes(2, "little") + bytes([if_true, if_false]) + value.to_bytes(4, "little")
        for code, if_true, if_false, value in instructions
    )
    text = ctypes.create_string_buffer(packed, len(packed))
    program = Program(len(instructions), ctypes.addressof(text))
    if prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) or prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        why = os.strerror(ctypes.get_errno())
        raise CannotConfineError(f"the kernel does not let the process drop its rights ({why})")
    if prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0):
        why = os.strerror(ctypes.get_errno())
        raise CannotConfineError(f"the kernel does not accept a system call filter ({why})")


def build_filter(machine: str) -> Sequence[Instruction]:
    """Return the BPF program that the kernel runs at each system call. It allows the calls in
    `SYSCALLS`, and makes all others fail with EPERM.

    A call by the numbers of another architecture, where they mean other calls, kills the process.
    """
    program: list[Instruction] = [
        (_LOAD, 0, 0, _AT_ARCHITECTURE),
        (_EQUALS, 1, 0, ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _AT_NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    for name, numbers in SYSCALLS.items():
        body: list[Instruction] = []
        if rule := ONLY_WITH.get(name) or NEVER_WITH.get(name):
            argument, value = rule
            test = (_EQUALS, 1, 0, value) if name in ONLY_WITH else (_HAS_BITS, 0, 1, value)
            body = [(_LOAD, 0, 0, _AT_ARGUMENTS + 8 * argument), test, (_RETURN, 0, 0, _EPERM)]
        number = numbers[list(ARCHITECTURES).index(machine)]
        program += [(_EQUALS, 0, len(body) + 1, number), *body, (_RETURN, 0, 0, _ALLOW)]
    return [*program, (_RETURN, 0, 0, _EPERM)]


def require_filter() -> None:
    """Test that the filter is in force, by three calls that only the filter refuses with EPERM."""
    for call in (lambda: os.open("/", os.O_RDONLY), lambda: os.getpgid(0), os.sched_yield):
        try:
            call()
        except OSError as error:
            if error.errno == errno.EPERM:
                continue
        raise CannotConfineError("the kernel accepted the filter but does not enforce it")


# -- the output
# --------------------------------------------------------------------------------------------------


def write_all(given: bytes) -> None:
    data = memoryview(given)
    while data:
        data = data[os.write(1, data) :]
