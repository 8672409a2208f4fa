"""Every screen at three widths of a terminal: no line is wider, and no word is cut."""

import re
import shutil
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from babyagi.cli.root import run_guarded
from babyagi.cli.session import close_log
from tests.cli import homes
from tests.cli.screen import Terminal

WIDTHS = (60, 80, 120)
WIDE = 4000
OBJECTIVE = (
    "Compare the notice periods in the contracts of Hollerithwerke, Nordlichtgesellschaft and "
    "Überseeverwaltung, and say which of the three may be ended soonest without a penalty"
)
SCREENS = (
    (
        "show",
        "objectives",
    ),
    ("status",),
    ("tasks",),
    ("tasks", "--all"),
    (
        "show",
        "results",
    ),
    ("show", "results", "1"),
    ("show", "1"),
    ("show", "2"),
    ("show", "1", "--full"),
    (
        "show",
        "log",
    ),
    ("inbox",),
    (
        "show",
        "workers",
    ),
    ("report",),
    ("tools",),
    ("config",),
    ("doctor", "--offline"),
    ("guide",),
    ("guide", "tasks"),
    ("store", "verify"),
    ("store", "verify", "--index"),
    (
        "config",
        "trust",
    ),
    ("resume", "--objective", "77"),
    ("no-such-command",),
    ("tasks", "--objective", "junk"),
)
ADDRESS = re.compile(r"\S*[/\\=]\S*")  # paths, options and settings are typed as they are
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A home with an objective, made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("filled"))
        patch.setenv("BABYAGI_HOME", "h")
        homes.fill_home(OBJECTIVE)
        yield Path("h").absolute()


@pytest.fixture
def home(filled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BABYAGI_HOME", "h")
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("TERM", "xterm-256color")
    shutil.copytree(filled, tmp_path / "h")
    yield tmp_path / "h"
    close_log()


def shown_by(screen, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    out = Terminal()
    with monkeypatch.context() as at_the_terminal:
        at_the_terminal.setattr(sys, "stdout", out)
        at_the_terminal.setattr(sys, "stderr", out)
        assert shutil.get_terminal_size().columns == width
        run_guarded(list(screen))
    return ANSI.sub("", out.getvalue())


@pytest.mark.parametrize("screen", SCREENS, ids=" ".join)
def test_no_line_is_wider_than_the_terminal_and_no_word_is_cut(screen, home, monkeypatch):
    whole = set(re.findall(r"\w+", shown_by(screen, WIDE, monkeypatch)))

    for width in WIDTHS:
        shown = shown_by(screen, width, monkeypatch)
        assert shown.strip()
        for line in ADDRESS.sub("", shown).splitlines():
            assert cell_len(line) <= width, line
            for word in re.findall(r"(\w+)…", line):
                assert word in whole, line
