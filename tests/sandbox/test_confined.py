"""The walls themselves: the filter's program on both architectures, its proof, and what happens
where there is none."""

import errno
import marshal
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from babyagi.sandbox import confined

ALLOW, KILL, EPERM = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
UNCONFINED = Path(__file__).with_name("unconfined.py")
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
MACHINE = platform.machine()
needs_filter = pytest.mark.skipif(
    sys.platform != "linux" or MACHINE not in confined.ARCHITECTURES, reason="the filter is Linux's"
)


def verdict(program, *, architecture, number, arguments=()):
    """What the kernel's machine makes of a system call: the program is run as classic BPF."""
    data = [
        number,
        architecture,
        0,
        0,
        *(
            half
            for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]
            for half in (value & 0xFFFFFFFF, value >> 32)
        ),
    ]
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        match code:
            case 0x20:
                accumulator = data[value // 4]
            case 0x06:
                return value
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case _:
                raise AssertionError(f"{code:#x} is not expected in the program")


@pytest.mark.parametrize("machine", confined.ARCHITECTURES)
def test_the_filter_allows_its_list_and_nothing_else(machine):
    program, architecture = confined.build_filter(machine), confined.ARCHITECTURES[machine]
    at = list(confined.ARCHITECTURES).index(machine)

    passed = {
        number
        for number in range(1024)
        if any(
            verdict(program, architecture=architecture, number=number, arguments=arguments) == ALLOW
            for arguments in [(), (1, 129, 3), (1, 0, 3), (7, 129, 7), (2**32 + 1, 129, 3)]
        )
    }

    assert passed == {numbers[at] for numbers in confined.SYSCALLS.values()}
    assert len(passed) == 10


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("write", (1, 0, 10), ALLOW),
        ("write", (0, 0, 10), EPERM),
        ("write", (2, 0, 10), EPERM),
        ("mmap", (0, 4096, 3), ALLOW),
        ("mmap", (0, 4096, 4), EPERM),
        ("mmap", (0, 4096, 7 | 2**40), EPERM),
        ("mprotect", (0, 4096, 1), ALLOW),
        ("mprotect", (0, 4096, 5), EPERM),
        ("futex", (0, 129, 1), ALLOW),
        ("futex", (0, 128, 1), EPERM),
        ("futex", (0, 1, 1), EPERM),
        ("munmap", (0, 4096), ALLOW),
    ],
)
@pytest.mark.parametrize("machine", confined.ARCHITECTURES)
def test_the_filter_looks_at_arguments(machine, name, arguments, expected):
    number = confined.SYSCALLS[name][list(confined.ARCHITECTURES).index(machine)]
    program, architecture = confined.build_filter(machine), confined.ARCHITECTURES[machine]

    assert (
        verdict(program, architecture=architecture, number=number, arguments=arguments) == expected
    )


@pytest.mark.parametrize(
    ("architecture", "number"),
    [(0x40000003, 4), (0xC000003E, 0x40000001), (0xC00000B7, 0x40000001), (0, 1)],
)
@pytest.mark.parametrize("machine", confined.ARCHITECTURES)
def test_the_filter_kills_what_calls_by_the_rules_of_another_architecture(
    machine, architecture, number
):
    assert verdict(confined.build_filter(machine), architecture=architecture, number=number) == KILL


@pytest.mark.parametrize("machine", confined.ARCHITECTURES)
def test_the_numbers_are_those_of_the_kernels_headers(machine):
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed")
    said = re.findall(
        r"^#define __NR(?:3264)?_(\w+) (\d+)$", HEADERS[machine].read_text(), re.MULTILINE
    )
    at = list(confined.ARCHITECTURES).index(machine)

    for name, numbers in confined.SYSCALLS.items():
        assert (name, str(numbers[at])) in said


@pytest.mark.system
@needs_filter
def test_a_kernel_that_takes_the_filter_and_does_not_hold_to_it_gets_no_code():
    command = [sys.executable, "-I", "-S", "-B", str(UNCONFINED), confined.__file__, "lie"]
    given = marshal.dumps(("final_result = 1", {}, {}, {}))
    ran = subprocess.run(command, input=given, capture_output=True, timeout=300, check=False)

    assert (
        ran.stdout.decode()
        == f"{confined.REFUSED}the kernel accepted the filter but does not enforce it"
    )


@pytest.mark.system
@needs_filter
def test_the_process_keeps_the_descriptor_of_its_outcome_alone():
    script = f"""
import errno, fcntl, os, sys
sys.path.insert(0, {str(Path(confined.__file__).parents[2])!r})
from babyagi.sandbox import confined
for _ in range(20):
    os.dup(0)
confined.limit_resources(60, 2 ** 29)
for fd in (0, *range(2, 40)):
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError as error:
        assert error.errno == errno.EBADF
    else:
        os.write(1, b"%d " % fd)
os.write(1, b"looked")
os._exit(0)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )

    assert ran.stdout == "looked"


CALL_RUN_PYTHON = """
import asyncio
from babyagi.errors import SettingsError
from babyagi.sandbox.python import run_python
try:
    print(asyncio.run(run_python("final_result = 'it ran'")).text)
except SettingsError as error:
    print(error.what, error.why, error.fix, sep="\\n")
"""
NO_FILTER_HERE = """
# as a container that forbids what seccomp is asked by: prctl(22, ...) fails, all else is allowed
from babyagi.sandbox import confined
number = {"x86_64": 157, "aarch64": 167}[MACHINE]
refusing = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 22), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
confined.build_filter = lambda machine: refusing
confined.install_filter(confined.find_prctl())
"""
# the kernel says that it is a 32-bit one
ANOTHER_MACHINE = "import ctypes; ctypes.CDLL(None).personality(8)"
NO_INTERPRETER = "import sys; sys.executable = '/bin/false'"


@pytest.mark.system
@needs_filter
@pytest.mark.parametrize(
    ("runtime", "why"),
    [
        (
            NO_FILTER_HERE,
            r"the kernel does not accept a system call filter \(Operation not permitted\)",
        ),
        (
            ANOTHER_MACHINE,
            r"this is Linux on (i686|armv8l), not 64-bit Linux on x86_64 or aarch64",
        ),
        (NO_INTERPRETER, r"the process ended with code 1 before it was confined"),
        ("import sys; sys.platform = 'darwin'", "this system is darwin, not Linux"),
    ],
)
def test_where_code_cannot_be_confined_none_is_run(runtime, why):
    script = runtime.replace("MACHINE", repr(MACHINE)) + CALL_RUN_PYTHON
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )

    what, said, fix = ran.stdout.splitlines() or [ran.stderr] * 3
    assert (
        what
        == "Python code that a model wrote cannot be confined on this machine, so it was not run"
    )
    assert re.fullmatch(why, said)
    assert "seccomp" in fix


OLD_CALL = """
import ctypes, mmap, sys
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid, as 32-bit programs count); int 0x80; ret
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
"""


@pytest.mark.system
@pytest.mark.skipif(
    MACHINE != "x86_64" or sys.platform != "linux", reason="x86 alone has an older way to call"
)
def test_the_kernel_kills_a_process_that_calls_by_32_bit_rules():
    confine = (
        "from babyagi.sandbox import confined\nconfined.install_filter(confined.find_prctl())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", f"{OLD_CALL}{confine}call()"],
        capture_output=True,
        timeout=300,
        check=False,
    )

    assert ran.returncode == -31  # SIGSYS


@pytest.mark.system
@needs_filter
def test_a_lower_limit_of_the_caller_is_kept():
    code = '"final_result = len(bytearray(350 * 2 ** 20))"'
    script = f"""
import asyncio, resource
resource.setrlimit(resource.RLIMIT_AS, (300 * 2 ** 20, 300 * 2 ** 20))
from babyagi.errors import ToolError
from babyagi.sandbox.python import run_python
try:
    print(asyncio.run(run_python({code})).text)
except ToolError as error:
    print(error.what)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )

    assert ran.stdout == "the code needs more memory than the 300 MiB that it may use (line 1)\n"


@pytest.mark.system
@needs_filter
def test_a_process_that_the_system_kills_as_it_begins_is_tried_again_later(tmp_path):
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\nkill -9 $$\n")
    interpreter.chmod(0o755)
    script = f"import sys; sys.executable = {str(interpreter)!r}" + CALL_RUN_PYTHON.replace(
        "SettingsError", "ToolError"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False
    )

    assert ran.stdout.startswith(
        "the system killed the process before the code began; try again later\n"
    )
