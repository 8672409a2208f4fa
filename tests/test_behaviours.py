"""The table of behaviours in docs/agents.md: every line is there, and each names a test that
exists."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXPECTED = {"T": 20, "E": 11, "J": 9, "S": 27, "M": 4, "L": 13}


def rows():
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    return re.findall(r"^\| ([A-Z]\d+) \| (.+) \| `(.+?)::(.+?)` \|$", page, re.MULTILINE)


@cache
def names_in(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_behaviour_is_in_the_table():
    expected = [f"{letter}{n}" for letter, last in EXPECTED.items() for n in range(1, last + 1)]

    assert [name for name, *_ in rows()] == expected


def test_every_behaviour_names_a_test_that_exists():
    assert [row for row in rows() if row[3] not in names_in(row[2]) or not row[1].strip()] == []
