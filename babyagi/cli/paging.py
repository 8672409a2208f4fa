"""A long page of the guide on a terminal: rendered, and through a pager where it does not fit."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from babyagi.cli.text import echo_markdown, has_colour, terminal_height, terminal_width

MAX_WIDTH = 100
DEFAULT_PAGER = "less"


def show_page(text: str) -> None:
    """Print the Markdown: rendered on a terminal, and paged where it is longer than the screen; in
    a pipe as it stands."""
    if not sys.stdout.isatty():
        echo_markdown(text)
        return
    from babyagi.cli.markdown import render_markdown

    width = min(terminal_width(), MAX_WIDTH)
    lines = render_markdown(text, width=width, has_colour=has_colour(sys.stdout))
    is_long = lines.count("\n") + 1 >= terminal_height()
    pager = find_pager(os.environ) if sys.stdin.isatty() and is_long else []
    if not (pager and _page(pager, lines)):
        echo_markdown(text)


def find_pager(environ: Mapping[str, str]) -> list[str]:
    """The person's pager, or `less`; nothing where there is none, or where they want none (an empty
    PAGER, or `cat`)."""
    try:
        words = shlex.split(environ.get("PAGER", DEFAULT_PAGER))
    except ValueError:
        words = [DEFAULT_PAGER]
    if not words or words[0] == "cat" or not shutil.which(words[0]):
        return []
    return [*words, "-R"] if Path(words[0]).name == "less" else words  # colours as they are meant


def _page(pager: list[str], lines: str) -> bool:
    """Whether the pager showed the lines."""
    try:
        ended = subprocess.run(pager, input=lines, text=True, check=False)
    except KeyboardInterrupt:
        return True
    except OSError:
        return False
    return ended.returncode == 0
