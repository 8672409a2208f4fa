"""Code from a model computes and does nothing else; each of its ends is one answer or one line."""

import asyncio
import json
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from babyagi.errors import ToolError
from babyagi.sandbox import confined, python
from babyagi.sandbox.python import MAX_AT_ONCE, Files, run_python
from tests.sandbox.hostile import (
    ANY,
    BOUNDED,
    ESCAPES,
    OWN_ANSWERS,
    REFUSED_ANYWAY,
    SECRET,
    TOO_LONG,
)

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in confined.ARCHITECTURES,
        reason="code can be confined on Linux only",
    ),
]
UNCONFINED = Path(__file__).with_name("unconfined.py")
BOUND_S = 0.4  # for programs that never end
GONE_S = 30.0  # until a child or a descriptor counts as left


def unpack_files(folder):
    """A file that everybody may read and write, with something beside it."""
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    (folder / "secret.txt").chmod(0o666)
    (folder / "lying_around.py").write_text("")
    return folder / "secret.txt"


def look(path):
    return (
        path.read_text(),
        path.stat().st_mtime_ns,
        path.stat().st_mode,
        {entry.name for entry in path.parent.iterdir()},
    )


@pytest.fixture
def secret(tmp_path):
    path = unpack_files(tmp_path / "folder")
    before = look(path)
    yield path
    assert look(path) == before


@pytest.fixture(autouse=True)
def _no_child_and_no_descriptor_is_left():
    before = children(), descriptors()
    yield
    # what an earlier test left may end at any time, and open something for a moment
    deadline_s = time.monotonic() + GONE_S
    while not (children() <= before[0] and descriptors() <= before[1]):
        assert time.monotonic() < deadline_s, (before, children(), descriptors())
        time.sleep(0.05)


def children(of="self"):
    return {
        int(pid)
        for path in Path(f"/proc/{of}/task").glob("*/children")
        for pid in path.read_text().split()
    }


def is_confined(pid):
    """Whether it lives, behind a filter."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "\nSeccomp:\t2" in status and "\nState:\tZ" not in status


def descriptors():
    return {path.name for path in Path("/proc/self/fd").iterdir() if path.exists()}


def run_parts(programs, parts, folder):
    """What each program gives under the child's own parts: `none` of the walls, or the `filter`
    alone."""
    codes = {
        name: code.replace("PATH", repr(str(unpack_files(folder / name))))
        for name, code in programs.items()
    }
    command = [sys.executable, "-I", "-S", "-B", str(UNCONFINED), confined.__file__, parts]
    return json.loads(
        subprocess.run(
            command,
            input=json.dumps(codes),
            text=True,
            capture_output=True,
            timeout=300,
            check=True,
        ).stdout
    )


@pytest.fixture(scope="module")
def without_a_wall(tmp_path_factory):
    return run_parts(ESCAPES, "none", tmp_path_factory.mktemp("none"))


@pytest.fixture(scope="module")
def behind_the_filter_alone(tmp_path_factory):
    return run_parts(ESCAPES | REFUSED_ANYWAY, "filter", tmp_path_factory.mktemp("filter"))


async def outcome(code, places=None):
    try:
        return (await run_python(code, places=places)).text
    except ToolError as error:
        assert "\n" not in error.what
        assert "/" not in error.what
        return error


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("final_result = 47 ** 0.23", "2.4242784855673896"),
        ("print('a,b\\r\\n1,2\\r\\n')", "a,b\n1,2"),
        (
            "from datetime import date\nfinal_result = (date(2026, 3, 1) - date(2026, 2, 1)).days",
            "28",
        ),
        (
            (
                "from datetime import datetime\nfinal_result = datetime.strptime('2 Jan 2026', "
                "'%d %b %Y').strftime('%A')"
            ),
            "Friday",
        ),
        (
            "import statistics as s\nfinal_result = s.median([3, 1, 2]), s.stdev([1, 3])",
            "(2, 1.4142135623730951)",
        ),
        ("from decimal import Decimal\nfinal_result = Decimal('0.1') + Decimal('0.2')", "0.3"),
        ("from fractions import Fraction\nfinal_result = Fraction(1, 3) + Fraction(1, 6)", "1/2"),
        ("import re\nfinal_result = re.findall(r'\\d+', 'a1b22')", "['1', '22']"),
        (
            (
                'import json\nfinal_result = json.dumps(json.loads(\'{"b": 1, "a": [2]}\'), '
                "sort_keys=True)"
            ),
            '{"a": [2], "b": 1}',
        ),
        (
            "from collections import Counter\nfinal_result = Counter('abca').most_common(1)",
            "[('a', 2)]",
        ),
        ("import hashlib\nfinal_result = hashlib.sha256(b'').hexdigest()[:8]", "e3b0c442"),
        ("import random\nrandom.seed(1)\nfinal_result = random.randint(1, 6)", "2"),
        (
            (
                "def f(n):\n    t = 0\n    for i in range(n):\n        t += i\n    return "
                "t\nfinal_result = f(1000)"
            ),
            "499500",
        ),
        ("final_result = sum(range(10**6))", "499999500000"),
        ("final_result = sorted('bca')", "['a', 'b', 'c']"),
        ("final_result = len(str(2 ** 20000))", "6021"),
        ("final_result = '\\N{BULLET}'", "•"),
        (
            (
                "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: "
                "int\nfinal_result = A(1)"
            ),
            "A(x=1)",
        ),
        ("if __name__ == '__main__':\n    final_result = 1", "1"),
        ("try:\n    import numpy\nexcept ImportError:\n    final_result = 'without'", "without"),
        ("final_result = None", "None"),
    ],
)
async def test_an_ordinary_program_gives_its_answer(code, expected):
    assert (await run_python(code)).text == expected


@pytest.mark.parametrize("name", ESCAPES)
async def test_a_program_that_escapes_without_the_filter_only_computes_with_it(
    name, secret, without_a_wall, behind_the_filter_alone
):
    assert without_a_wall[name] == "AESCAPED"

    assert behind_the_filter_alone[name] not in ("", "AESCAPED")
    await reach_nothing(name, secret)


@pytest.mark.parametrize("name", REFUSED_ANYWAY)
async def test_a_program_that_few_machines_would_let_escape_does_not(
    name, secret, behind_the_filter_alone
):
    assert behind_the_filter_alone[name] != "AESCAPED"
    await reach_nothing(name, secret)


ON_THE_DESK = (
    "open_for_writing list_a_folder working_directory path_write_text file_of_a_log archive_on_disk"
).split()


async def reach_nothing(name, secret):
    """Run the hostile program, which reaches nothing but the files that it was given."""
    code = (ESCAPES | REFUSED_ANYWAY)[name].replace("PATH", repr(str(secret)))

    try:
        ran = await run_python(code, Files(given={"notes.csv": b"a,b"}))
    except ToolError:
        return
    assert name in ON_THE_DESK  # what it wrote or listed lay in memory; `secret` is untouched
    assert SECRET not in ran.text + str(ran.written)


@pytest.mark.parametrize("name", BOUNDED)
async def test_a_program_without_bounds_ends_with_one_line(name, monkeypatch):
    code, expected = BOUNDED[name]
    bound_s = BOUND_S if expected in (TOO_LONG, ANY) else 20.0
    monkeypatch.setattr(python, "TIMEOUT_S", bound_s)

    said = await outcome(code)

    assert expected.fullmatch(str(said)), str(said)[:500]


@pytest.mark.parametrize("name", OWN_ANSWERS)
async def test_the_worst_that_a_program_may_do_is_to_choose_its_own_answer(name, monkeypatch):
    code, expected = OWN_ANSWERS[name]
    monkeypatch.setattr(python, "TIMEOUT_S", 20.0)

    assert await outcome(code) == expected


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\nfinal_result = y", "NameError: name 'y' is not defined (line 2)"),
        (
            "def f(x):\n    return 1 / x\nfinal_result = f(0)",
            "ZeroDivisionError: division by zero (line 2)",
        ),
        (
            "x = 3",
            (
                "the code gave no output: print the answer, end with an expression, or assign "
                "it to final_result"
            ),
        ),
        (
            "\nopen('x')",
            "FileNotFoundError: [Errno 2] there is no file of that name here; there are: none: 'x' "
            "(line 2)",
        ),
        (
            "x = input()",
            ("there is no input and there are no arguments: put the value into the code (line 1)"),
        ),
        (
            "import numpy as np",
            (
                "there is no module numpy here: only those that come with Python can be imported "
                "(line 1)"
            ),
        ),
        (
            "print('total', 7)\nprint('rest')\nx",
            "NameError: name 'x' is not defined (line 3); it had printed: total 7 rest",
        ),
        ("assert 1 == 2", "AssertionError (line 1)"),
    ],
)
async def test_a_fault_is_one_line_that_says_where(code, said):
    assert str(await outcome(code)) == said


async def test_a_long_answer_is_cut_in_its_middle(monkeypatch):
    monkeypatch.setattr(python, "MAX_OUTPUT_CHARS", 100)
    assert (await run_python("final_result = 'x' * 100")).text == "x" * 100

    cut = (await run_python("final_result = 'x' * 1000")).text

    assert cut == "x" * 20 + "\n… cut: 960 more characters …\n" + "x" * 20


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print('noise')\nfinal_result = 6 * 7\n'last'", "42"),
        ("print('a', 1)\nprint('b')\n'last'", "a 1\nb"),
        ("x = 6\nx * 7", "42"),
        ("def f():\n    print('in f')\n    return 3\nf()", "in f"),
        ("'text'", "text"),
        ("print()\n5", "5"),
        ("import sys\nprint('why', file=sys.stderr)", "why"),
        ("import sys\nprint('noise', file=sys.stderr)\nprint('answer')", "answer"),
        ("import sys\nprint('done')\nsys.exit(0)\nprint('never')", "done"),
        ("import math, \\\n    statistics\nstatistics.mean([1, 3])", "2"),
        ("import time\ntime.sleep(7200)\nprint('slept')", "slept"),
    ],
)
async def test_the_answer_is_the_variable_else_what_was_printed_else_the_last_line(code, answer):
    assert (await run_python(code)).text == answer


async def test_of_much_that_is_printed_the_beginning_and_the_end_are_the_answer(monkeypatch):
    monkeypatch.setattr(python, "MAX_OUTPUT_CHARS", 1000)

    code = "print('first')\nfor n in range(10 ** 5): print(f'line {n}')\nprint('last')"
    answer = (await run_python(code)).text

    assert answer.startswith("first\nline 0\n") and answer.endswith("\nline 99999\nlast")
    assert len(answer) <= 1000 and re.search(r"\n… cut: \d+ more characters …\n", answer)


async def test_as_many_programs_as_wanted_take_turns_in_two_places(tmp_path, monkeypatch):
    monkeypatch.setattr(python, "TIMEOUT_S", BOUND_S)
    hog = "keep = bytearray(300 * 2 ** 20)\nwhile True: pass"
    most = 0

    async def watch():
        nonlocal most
        while True:
            most = max(most, len([pid for pid in children() if is_confined(pid)]))
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    outcomes = await asyncio.gather(*(outcome(hog, places=tmp_path) for _ in range(6)))
    watching.cancel()

    assert most == MAX_AT_ONCE
    # each had all of its time
    assert {str(said) for said in outcomes} == {
        f"the code took longer than {BOUND_S:g} s and was stopped"
    }


async def test_programs_of_another_process_take_turns_with_ours(tmp_path):
    holding = (
        "import sys; from pathlib import Path; from babyagi.sandbox import python as box\n"
        "take = lambda: box._take_place(Path(sys.argv[1]))\n"
        "places = [take() for _ in range(box.MAX_AT_ONCE)]\n"
        "assert all(places) and take() is None\nprint('held', flush=True); "
        "sys.stdin.read()"
    )
    before = children()
    with subprocess.Popen(
        [sys.executable, "-c", holding, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout and other.stdin
        assert other.stdout.readline() == b"held\n"
        running = asyncio.create_task(run_python("final_result = 1", places=tmp_path))
        await asyncio.sleep(0.1)
        assert children() - before == {other.pid} and not running.done()

        other.stdin.close()

        assert (await running).text == "1"


def test_nobody_else_can_hold_a_place(tmp_path):
    places = tmp_path / "places"
    place = python._take_place(places)
    found = [places, *places.iterdir()]

    assert place and len(found) == 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in found)
    place.close()


async def test_a_program_whose_turn_never_comes_is_not_begun_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(python, "TURN_TIMEOUT_S", 0.05)
    places = []
    while place := python._take_place(tmp_path):
        places.append(place)

    said = await outcome("final_result = 1", places=tmp_path)
    monkeypatch.setattr(python, "TURN_TIMEOUT_S", 600.0)
    for place in places:
        place.close()

    assert (
        str(said)
        == "2 other programs were running for 0.05 s, so this one was not started; try again later"
    )
    assert await outcome("final_result = 1", places=tmp_path) == "1"


async def test_many_programs_run_at_once_and_know_nothing_of_each_other():
    code = "import math\nassert not hasattr(math, 'mark')\nmath.mark = 1\nfinal_result = {}"

    answers = await asyncio.gather(*(outcome(code.format(n)) for n in range(8)))

    assert answers == [str(n) for n in range(8)]


async def test_a_cancelled_run_leaves_no_process(monkeypatch):
    monkeypatch.setattr(python, "TIMEOUT_S", 60.0)
    before = children()
    running = asyncio.create_task(run_python("while True: pass"))
    while not [pid for pid in children() if is_confined(pid)]:
        await asyncio.sleep(0.01)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert children() <= before


async def test_a_run_that_is_cancelled_as_it_begins_leaves_no_process():
    before = children()
    running = asyncio.create_task(run_python("final_result = 1"))
    await asyncio.sleep(0)
    assert len(children() - before) == 1

    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert children() <= before


def test_the_process_dies_with_a_parent_that_is_killed():
    code = (
        "import asyncio; from babyagi.sandbox import python; python.TIMEOUT_S = 60.0; "
        "asyncio.run(python.run_python('while True: pass'))"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        while not (confined_ones := [pid for pid in children(parent.pid) if is_confined(pid)]):
            time.sleep(0.01)

        parent.kill()

    (pid,) = confined_ones
    while is_confined(pid):
        time.sleep(0.01)
