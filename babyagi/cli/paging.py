"""Markdown on standard output: rendered on a terminal, and a long page through a pager."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from babyagi.cli.text import (
    MAX_TEXT_WIDTH,
    echo,
    echo_rendered,
    has_colour,
    is_terminal,
    terminal_height,
    terminal_width,
)

DEFAULT_PAGER = "less"


def echo_markdown(text: str) -> None:
    """Write the Markdown to standard output: rendered on a terminal, in a pipe as it stands."""
    if not is_terminal():
        echo(text.rstrip("\n"))
        return
    from babyagi.cli.markdown import render_markdown

    width = min(terminal_width(), MAX_TEXT_WIDTH)
    echo_rendered(render_markdown(text, width=width, has_colour=has_colour(sys.stdout)))


def show_page(text: str) -> None:
    """Print the Markdown: rendered on a terminal, and paged where it is longer than the screen; in
    a pipe as it stands."""
    if not is_terminal():
        echo_markdown(text)
        return
    from babyagi.cli.markdown import render_markdown

    width = min(terminal_width(), MAX_TEXT_WIDTH)
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
    import subprocess

    try:
        ended = subprocess.run(pager, input=lines, text=True, check=False)
    except KeyboardInterrupt:
        return True
    except OSError:
        return False
    return ended.returncode == 0
