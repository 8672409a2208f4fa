"""The one place that writes to the terminal, and what it does to text before it may get there.

Everything that `echo` and `warn` are given is neutralised: text from models, tools, files and people may hold terminal escapes,
control characters, bidirectional overrides and lone surrogates, and none of them reaches a terminal. Colour is a property of a whole
line, so no text can bring its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

# C0 and C1 controls, marks and overrides of direction, line and paragraph separators, invisible operators, surrogates, tag characters.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_SPACE_LIKE = "\t\n\v\f\r\u0085\u2028\u2029"


class Style(Enum):
    """How a whole line looks where there is colour; the values are SGR parameters."""

    PLAIN = ""
    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output and how it looks."""

    text: str
    style: Style = Style.PLAIN


def _replace(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _SPACE_LIKE:
        return " "
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of the control character, one cell wide
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return "\N{REPLACEMENT CHARACTER}"


def safe(text: str, *, keep_newlines: bool = False) -> str:
    """Return the text with everything that could steer a terminal made visible and harmless.

    Args:
        keep_newlines: keep line feeds; otherwise the text comes back as one line.
    """
    if not keep_newlines:
        return _UNSAFE.sub(_replace, text)
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(_UNSAFE.sub(_replace, line) for line in lines)


def one_line(text: str) -> str:
    """Return the text as one safe line, runs of white space folded to single blanks."""
    return " ".join(safe(text).split())


def cell_width(text: str) -> int:
    """Return how many terminal cells the text takes: two for a wide character, none for a combining one."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def fit(text: str, width: int) -> str:
    """Return the text as one safe line of at most `width` cells, cut with an ellipsis."""
    line = one_line(text)
    if cell_width(line) <= width:
        return line
    taken, used = [], 0
    for character in line:
        used += _character_width(character)
        if used > width - 1:
            break
        taken.append(character)
    return "".join(taken).rstrip() + "…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Return the text cut or filled with blanks to exactly `width` cells."""
    cut = fit(text, width)
    return cut + " " * (width - cell_width(cut))


def has_colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether lines to this stream may be coloured: a terminal that can, and nobody who said no (https://no-color.org)."""
    return stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") not in ("dumb", "")


def is_live_terminal(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether standard output is a terminal on which a picture can be redrawn."""
    return sys.stdout.isatty() and environ.get("TERM", "dumb") not in ("dumb", "")


def is_person_there() -> bool:
    """Whether somebody can be asked: a terminal on both ends."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def echo(text: str = "", style: Style = Style.PLAIN) -> None:
    """Write the text to standard output, neutralised, and end the line."""
    _write(sys.stdout, text, style)


def warn(text: str = "", style: Style = Style.PLAIN) -> None:
    """Write the text to standard error, neutralised, and end the line."""
    _write(sys.stderr, text, style)


def echo_lines(lines: Iterable[Line]) -> None:
    for line in lines:
        echo(line.text, line.style)


def terminal_width() -> int:
    """Cells in a row of the terminal; 100 where there is none."""
    return shutil.get_terminal_size((100, 24)).columns


def ask(question: str) -> str:
    """Ask on standard error and return what the person typed, stripped; empty at the end of input."""
    print(safe(question), end=" ", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def print_json(value: Any) -> None:
    """Write the value as indented JSON. ASCII only: escapes, overrides and surrogates stay escaped, and a reader gets them back."""
    print(json.dumps(value, indent=2, ensure_ascii=True), flush=True)


def print_json_line(value: Any) -> None:
    """Write the value as JSON on one line, at once."""
    print(json.dumps(value, ensure_ascii=True), flush=True)


def open_console() -> Console:
    """A rich console on standard output; the caller hands it only text that `safe` has seen."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, no_color=not has_colour(sys.stdout))


def _write(stream: TextIO, text: str, style: Style) -> None:
    line = safe(text, keep_newlines=True)
    if style is not Style.PLAIN and has_colour(stream):
        line = f"\x1b[{style.value}m{line}\x1b[0m"
    encoding = stream.encoding or "utf-8"
    print(line.encode(encoding, "replace").decode(encoding), file=stream, flush=True)
