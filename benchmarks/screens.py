"""Pictures of what the program prints, as SVG, at three widths, light and dark: a run, its report,
`status`, `tasks` and `show`.

Each command is really run, in a terminal of that width and in a home of its own, on documents that
lie in the repository, with the rehearsal model.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "screens"
DOCUMENTS = "tests/data/demo_folders/team"
QUESTION = "What did we decide about backups?"
WIDTHS = (60, 80, 120)
COMMANDS = {
    "run": ["demo", DOCUMENTS, "--question", QUESTION],
    "report": ["report"],
    "status": ["status"],
    "tasks": ["tasks"],
    "show": ["show", "2"],
}
MAX_LINES = 60
HEIGHT = 200  # so that nothing is paged
_MOVES = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfhlsu]|\x1b\][^\x07]*\x07|\r")
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would be fetched from elsewhere
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def take(arguments: list[str], *, width: int, home: Path) -> str:
    """What the command writes to a terminal of this width, with its colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, width, 0, 0))
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "BABYAGI_HOME": str(home / "home"),
        "BABYAGI_RESULT_STORE": "builtin",
        "LANG": "C.UTF-8",
        # a terminal on which no picture is redrawn: each change is a line
        "TERM": "dumb" if arguments[0] == "demo" else "xterm-256color",
        "PAGER": "cat",
        "COLUMNS": str(width),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "babyagi", *arguments],
        cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    ):  # fmt: skip
        os.close(theirs)
        said = b""
        while chunk := _read(ours):
            said += chunk
    os.close(ours)
    text = said.decode("utf-8", "replace").replace("\r\n", "\n").replace(str(home), "~")
    return _MOVES.sub("", text)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # how Linux says that nobody writes to the terminal any more
        return b""


def find_lines(said: str) -> list[Any]:
    """The lines that a picture has room for, with their colours."""
    from rich.text import Text

    lines = said.rstrip("\n").split("\n")
    shown = lines[:MAX_LINES] + (
        [f"… {len(lines) - MAX_LINES} more lines"] * (len(lines) > MAX_LINES)
    )
    return [Text.from_ansi(line) for line in shown]


def write(name: str, shown: Sequence[Any], *, width: int, folder: Path) -> None:
    """Write what rich can print as pictures of a terminal, light and dark."""
    import io

    from rich.console import Console
    from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME

    for look, theme in (("light", DEFAULT_TERMINAL_THEME), ("dark", SVG_EXPORT_THEME)):
        console = Console(
            width=width, record=True, file=io.StringIO(), force_terminal=True,
            color_system="truecolor",
        )  # fmt: skip
        for one in shown:
            console.print(one, soft_wrap=False)
        picture = console.export_svg(
            title=f"babyagi {name}", theme=theme, unique_id=f"{name}-{width}-{look}"
        )
        (folder / f"{name}-{width}-{look}.svg").write_text(
            _FONTS.sub("", picture), encoding="utf-8"
        )


def too_wide(said: str, *, width: int) -> list[str]:
    """The lines that a terminal of this width would break."""
    from babyagi.cli.text import cell_width

    plain = _COLOURS.sub("", said).split("\n")
    return [line for line in plain if cell_width(line) > width]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder of the pictures")
    parser.add_argument("--width", type=int, choices=WIDTHS, action="append", help="only this one")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    for width in options.width or WIDTHS:
        with tempfile.TemporaryDirectory() as home:
            for name, arguments in COMMANDS.items():
                said = take(arguments, width=width, home=Path(home))
                wide = too_wide(said, width=width)
                n_lines = said.count("\n")
                print(f"{name} at {width}: {n_lines} lines, {len(wide)} wider than the terminal")
                for line in wide:
                    print(f"    {line[:150]}")
                write(name, find_lines(said), width=width, folder=options.to)


if __name__ == "__main__":
    main()
