"""A long page of the guide on a terminal: rendered, and through a pager where it does not fit."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from babyagi.cli.text import echo, has_colour, put_rendered, safe, terminal_width

MAX_WIDTH = 100
DEFAULT_PAGER = "less"


def show_page(text: str) -> None:
    """Print the Markdown: rendered on a terminal, and paged where it is longer than the screen; in
    a pipe as it stands."""
    if not sys.stdout.isatty():
        echo(text.rstrip("\n"))
        return
    lines = render_page(
        text, width=min(terminal_width(), MAX_WIDTH), is_coloured=has_colour(sys.stdout)
    )
    height = shutil.get_terminal_size((100, 24)).lines
    pager = find_pager(os.environ) if sys.stdin.isatty() and lines.count("\n") >= height else []
    if not (pager and _page(pager, lines)):
        put_rendered(lines)


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


def render_page(text: str, *, width: int, is_coloured: bool) -> str:
    """The Markdown as lines of at most `width` cells, wrapped between words; code stands as it
    is."""
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import Markdown, MarkdownElement, TextElement
    from rich.padding import Padding
    from rich.text import Text
    from rich.theme import Theme

    class Heading(TextElement):
        """At the left, on a line of its own."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Text(str(self.text), style="bold")

    class Code(TextElement):
        """As it stands, indented."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Padding(Text(str(self.text).rstrip("\n"), style="cyan"), (0, 0, 0, 4))

    class Page(Markdown):
        elements: ClassVar[dict[str, type[MarkdownElement]]] = {
            **Markdown.elements, "heading_open": Heading, "fence": Code, "code_block": Code,
        }  # fmt: skip

    target = io.StringIO()
    console = Console(
        file=target,
        width=max(20, width),
        force_terminal=is_coloured,
        color_system="standard" if is_coloured else None,
        theme=Theme({"markdown.code": "cyan"}),
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(Page(safe(text, keep_newlines=True), hyperlinks=False))
    return "\n".join(line.rstrip() for line in target.getvalue().strip("\n").split("\n"))


def _page(pager: list[str], lines: str) -> bool:
    """Whether the pager showed the lines."""
    try:
        ended = subprocess.run(pager, input=lines, text=True, check=False)
    except KeyboardInterrupt:
        return True
    except OSError:
        return False
    return ended.returncode == 0
