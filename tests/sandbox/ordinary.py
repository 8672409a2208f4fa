"""Ordinary programs as a model writes them, with what plain Python makes of them; `python -m
tests.sandbox.ordinary` runs them all.

In the data a program begins behind a line `=== name`, and a line `---` parts it from what is
expected: what it prints, or where it prints nothing its value. `--expect` writes the printed ones
anew with the interpreter that runs this.
"""

import argparse
import asyncio
import subprocess
import sys
from pathlib import Path

from babyagi.errors import ToolError
from babyagi.sandbox.python import run_python

DATA = Path(__file__).parents[1] / "data"
KNOWN, HELD_OUT = DATA / "ordinary_programs.txt", DATA / "ordinary_programs_held_out.txt"


def load(path):
    """Pairs of code and expected text, by name."""
    blocks = (block.partition("\n") for block in path.read_text(encoding="utf-8").split("=== ")[1:])
    return {name: tuple(text.partition("---\n")[::2]) for name, _, text in blocks}


def run_plainly(code):
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout


def expect(path):
    programs = {
        name: (code, run_plainly(code) or expected) for name, (code, expected) in load(path).items()
    }
    text = "".join(
        f"=== {name}\n{code}---\n{expected}" for name, (code, expected) in programs.items()
    )
    path.write_text(text, encoding="utf-8")


async def failures(path):
    """What each program gave that did not give what is expected, by name."""
    gave = {}
    for name, (code, expected) in load(path).items():
        try:
            answer = (await run_python(code)).text
        except ToolError as error:
            answer = error.what
        if answer.rstrip() != expected.rstrip():
            gave[name] = answer
    return gave


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--expect", action="store_true", help="write what is expected anew")
    parser.add_argument(
        "--held-out",
        action="store_true",
        help="count the held out ones as well, without showing them",
    )
    asked = parser.parse_args()
    for path in (KNOWN, HELD_OUT):
        if asked.expect:
            expect(path)
        if path is HELD_OUT and not asked.held_out:
            continue
        gave = asyncio.run(failures(path))
        n = len(load(path))
        print(f"{path.name}: {n - len(gave)} of {n} as plain Python")
        if path is KNOWN:
            print(*(f"  {name}: {answer[:300]!r}" for name, answer in gave.items()), sep="\n")


if __name__ == "__main__":
    main()
