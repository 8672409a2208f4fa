"""What type checkers say of programs that use the Python door: one run of mypy over two files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WRONG = ROOT / "tests" / "data" / "typing_wrong.py"
RIGHT = ROOT / "tests" / "data" / "typing_right.py"


@pytest.fixture(scope="module")
def errors():
    """The errors of mypy by file and line."""
    line = [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", "--no-pretty"]
    done = subprocess.run(
        [*line, str(RIGHT), str(WRONG)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found: dict[tuple[str, int], str] = {}
    for said in done.stdout.splitlines():
        if match := re.match(r"(.*?):(\d+): error: (.*)", said):
            place = Path(match[1]).name, int(match[2])
            found[place] = f"{found.get(place, '')} {match[3]}"
    assert found, done.stdout + done.stderr
    return found


@pytest.mark.system
def test_right_uses_are_found_right(errors):
    assert {place: said for place, said in errors.items() if place[0] == RIGHT.name} == {}


@pytest.mark.system
def test_every_wrong_use_is_found_and_nothing_else(errors):
    expected = {
        (WRONG.name, n): line.partition("# wrong: ")[2]
        for n, line in enumerate(WRONG.read_text(encoding="utf-8").splitlines(), start=1)
        if "# wrong: " in line
    }

    assert len(expected) >= 20
    assert set(errors) == set(expected)
    assert {
        place: errors[place] for place, said in expected.items() if said not in errors[place]
    } == {}
