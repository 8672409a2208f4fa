"""The child's own parts, put together in other ways: `python -I -S unconfined.py FILE
none|filter|lie`, with programs on standard input.

`none` runs each program without a wall, which shows that a hostile one is hostile; `filter` runs it
behind the filter alone. Programs and outcomes are JSON objects by name; each program has a process
of its own. `lie` is the whole child under a kernel that says yes to everything and does nothing,
with one program as it is.
"""

import ctypes  # noqa: F401  # what `install_filter` imports in any case
import json
import os
import sys

sys.path.insert(0, os.path.dirname(sys.argv[1]))  # noqa: PTH120
import confined  # type: ignore[import-not-found]
import program  # type: ignore[import-not-found]


def be_the_process(code):
    program.prepare(code)
    if sys.argv[2] == "filter":
        confined.install_filter(confined.find_prctl())
        confined.require_filter()
    outcome = program.run(code, 1000, 2**29, program.MemoryFiles({}, {}, {}))
    confined.write_all(outcome.encode("utf-8", "replace"))


def outcome_of(code):
    end, beginning = os.pipe()
    if os.fork() == 0:
        try:
            os.dup2(beginning, 1)
            be_the_process(code)
        finally:
            os._exit(0)
    os.close(beginning)
    with os.fdopen(end, "rb") as file:
        said = file.read()
    os.wait()
    return said.decode()


if sys.argv[2] == "lie":
    vars(confined)["find_prctl"] = lambda: lambda *asked: 0
    confined.main(os.getppid(), 1000, 60, 2**29)
sys.stdout.write(
    json.dumps({name: outcome_of(code) for name, code in json.loads(sys.stdin.read()).items()})
)
