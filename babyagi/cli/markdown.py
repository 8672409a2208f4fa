"""Shows Markdown on a terminal: headings, lists and tables, wrapped between words, and links as
text."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import ClassVar

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TextElement
from rich.padding import Padding
from rich.text import Text
from rich.theme import Theme

from babyagi.cli.text import (
    MAX_TEXT_WIDTH,
    echo,
    echo_rendered,
    has_colour,
    terminal_width,
)
from babyagi.pages.markdown import can_be_parsed, parse
from babyagi.text import harmless_lines

MAX_TOKENS = 15_000  # of Markdown; so many are drawn within two seconds
_STYLES = {
    "bold": "h1 h2 h3 h4 table.header",
    "cyan": "code code_block",
    "yellow": "block_quote",
    "dim": "item.bullet item.number hr table.border",
}
_THEME = Theme(
    {f"markdown.{name}": style for style, names in _STYLES.items() for name in names.split()}
)


def render_markdown(text: str, *, width: int, has_colour: bool) -> str:
    """Return the Markdown as rows for a terminal of this width. Only the colours set here can
    control the terminal. A text that is too large, or cannot be parsed, is returned as it is, made
    harmless."""
    tokens = parse(text) if can_be_parsed(text) else []
    _drop_bare_links(tokens)
    n_tokens = sum(1 + len(token.children or ()) for token in tokens)
    if not 0 < n_tokens <= MAX_TOKENS:
        return harmless_lines(text.rstrip("\n"))
    target = io.StringIO()
    console = Console(
        file=target,
        width=max(20, width),
        height=100,  # with both given, a terminal called "dumb" is not assumed to be 80 wide
        force_terminal=True,
        color_system="standard" if has_colour else None,
        theme=_THEME,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(_Document(tokens))
    return "\n".join(line.rstrip() for line in target.getvalue().strip("\n").split("\n"))


class _Heading(TextElement):
    """A heading on a line of its own, left-aligned."""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> MarkdownElement:
        heading = cls()
        heading.style_name = f"markdown.{token.tag}"
        return heading

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Code(TextElement):
    """A block of code, unchanged and indented."""

    style_name = "markdown.code_block"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Padding(Text(str(self.text).rstrip("\n"), style=self.style), (0, 0, 0, 4))


class _Document(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = tokens


def _drop_bare_links(tokens: Iterable[Token]) -> None:
    """Leave of each link whose words are its address only the words. Of other links rich writes the
    address behind the words."""
    for token in tokens:
        token.children = [
            one for one in token.children or () if one.markup not in ("autolink", "linkify")
        ]


def echo_markdown(text: str) -> None:
    """Write the Markdown to standard output: rendered on a terminal, otherwise unchanged."""
    if not sys.stdout.isatty():
        echo(text.rstrip("\n"))
        return
    width = min(terminal_width(), MAX_TEXT_WIDTH)
    echo_rendered(render_markdown(text, width=width, has_colour=has_colour(sys.stdout)))
