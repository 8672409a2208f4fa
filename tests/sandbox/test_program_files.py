"""A program behind the wall finds the files that it was given, and what it leaves comes out whole or
not at all."""

import platform
import sys

import pytest

from babyagi.errors import ToolError
from babyagi.sandbox import confined, python
from babyagi.sandbox.python import Files, is_plain_path, run_python

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() not in confined.ARCHITECTURES,
        reason="code can be confined on Linux only",
    ),
]
FILES = Files(
    given={"notes.csv": b"city,people\nUlm,3\n", "sub/more.txt": b"more"},
    kept={"mine.txt": b"old"},
    listed={"large.csv": 9_000_000},
)
LOG = (
    "f = open('log.txt', 'w+')\nf.write('abc')\nf.seek(1)\nprint(open('log.txt').read(), f.read())"
)


@pytest.mark.parametrize(
    ("code", "text", "written"),
    [
        ("import csv\nprint([*csv.reader(open('notes.csv'))][1])", "['Ulm', '3']", {}),
        ("print(open('sub/../notes.csv', 'rb').read(4))", "b'city'", {}),
        ("import glob\nprint(sorted(glob.glob('**', recursive=True)))",
         "['large.csv', 'mine.txt', 'notes.csv', 'sub', 'sub/more.txt']", {}),
        ("import os\nprint([n for _, _, names in os.walk('.') for n in names])",
         "['large.csv', 'mine.txt', 'notes.csv', 'more.txt']", {}),
        ("import os\nprint(os.path.getsize('large.csv'), os.path.exists('no'))",
         "9000000 False", {}),
        ("with open('plot.svg', 'w') as f:\n    f.write('<svg/>')", "", {"plot.svg": b"<svg/>"}),
        ("from pathlib import Path\nPath('a').mkdir()\nPath('a/b').write_text('é')\nprint(1)",
         "1", {"a/b": "é".encode()}),
        ("open('mine.txt', 'a').write('er')\nprint(open('mine.txt').read())",
         "older", {"mine.txt": b"older"}),
        (LOG, "abc bc", {"log.txt": b"abc"}),
        ("import json\njson.dump([1], open('a.json', 'w'))", "", {"a.json": b"[1]"}),
        ("import shutil\nprint(shutil.copyfile('notes.csv', 'copy.csv'))",
         "copy.csv", {"copy.csv": b"city,people\nUlm,3\n"}),
        ("open('mine.txt', 'w').write('old')\nprint('same')", "same", {}),
    ],
)  # fmt: skip
async def test_a_program_works_on_its_files_as_on_a_disk(code, text, written):
    ran = await run_python(code, FILES)

    assert (ran.text.strip(), dict(ran.written), ran.removed) == (text, written, ())


@pytest.mark.parametrize("name", ["", "/", "a/", "..", "a//b", "\\", " \n"])
def test_no_file_of_a_program_has_a_name_that_is_no_plain_path(name):
    with pytest.raises(ToolError, match="a file cannot have the name"):
        python._read_files("", [b"0", b"ok.txt", b"1", name.encode(), b"2"], FILES)


async def test_what_a_program_removes_or_renames_is_said():
    ran = await run_python("import os\nos.rename('mine.txt', 'b.txt')", FILES)
    assert (ran.written, ran.removed) == ({"b.txt": b"old"}, ("mine.txt",))

    ran = await run_python("import os\nos.remove('mine.txt')", FILES)
    assert (ran.written, ran.removed) == ({}, ("mine.txt",))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("open('notes.csv', 'w')", "belongs to the objective and is read-only"),
        ("import os\nos.remove('notes.csv')", "belongs to the objective"),
        ("open('note.csv')", "there are: large.csv, mine.txt, notes.csv, sub/more.txt"),
        ("open('/etc/passwd')", "there is no file of that name here"),
        ("open('../../etc/passwd')", "there is no file of that name here"),
        ("open('large.csv')", "was not passed in: write its name into the code"),
        ("open('x', 'wb').write(bytes(9_000_000))", "at most 8 MB together"),
        ("f = open('x', 'wb')\nf.seek(10 ** 12)\nf.write(b'1')", "at most 8 MB together"),
        ("for n in range(200):\n    open(f'{n}.txt', 'w').write('1')", "no more than 100 files"),
        ("open('.hidden', 'w').write('1')", "a file cannot have the name '.hidden'"),
        ("open('a\\nb', 'w').write('1')", "a file cannot have the name"),
        ("open('notes.csv/x', 'w')", "Not a directory"),
        ("open('sub', 'w')", "Is a directory"),
        ("open('a.txt', 'w').write('1')\n1 / 0", "division by zero"),
        ("open(0)", "may only compute and use its files by open"),
        (
            "import sqlite3\nsqlite3.connect('a.db').execute('create table a (b)')",
            "no database on a file",
        ),
        ("open('x', 'q')", "invalid mode"),
        ("x = 1", "the code gave no output"),
    ],
)
async def test_what_a_program_may_not_do_with_files_is_one_line(code, said):
    with pytest.raises(ToolError, match=said) as caught:
        await run_python(code, FILES)
    assert "\n" not in caught.value.what


# the outcome is the program's own to say; whoever takes it trusts none of it
PRETENDED = {
    "a path that leads out": b"2:Ax1:010:../../evil1:x",
    "an absolute path": b"2:Ax1:09:/etc/evil1:x",
    "a hidden folder": b"2:Ax1:08:.git/cfg1:x",
    "too many files": b"2:Ax1:0" + b"".join(b"4:f%03d1:x" % n for n in range(200)),
    "a length that lies": b"99999999999:Ax",
    "no length": b"Ax",
    "nothing": b"",
    "a negative length": b"-5:Ax",
    "bytes that are no name": b"2:Ax1:03:\xff\xfe\xfd1:x",
}


@pytest.mark.parametrize("name", PRETENDED)
async def test_an_outcome_that_a_program_makes_up_names_no_file_elsewhere(name):
    code = (
        "import sys\nos = sys.modules['os']\n"
        f"data = {PRETENDED[name]!r}\nos.write(1, data)\nos._exit(0)"
    )
    try:
        ran = await run_python(code, FILES)
    except ToolError:
        return
    assert ran.text == "x" or name == "a length that lies"
    assert all(map(is_plain_path, ran.written))


async def test_a_made_up_removal_touches_only_the_files_of_the_task():
    code = "import sys\nsys.modules['os'].write(1, b'2:Ax1:29:notes.csv8:mine.txt')\nsys.modules['os']._exit(0)"

    ran = await run_python(code, FILES)

    assert ran.removed == ("mine.txt",)
