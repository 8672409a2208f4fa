"""Prints to standard output and standard error; no other module does. Makes text harmless first.

`echo` and `warn` neutralise every text. Text from models, tools, files and people may contain
terminal escapes, bidirectional overrides, invisible characters and floods of combining marks; none
of them reaches the terminal. Colour is a property of a whole line, so no text can set it.
"""

from __future__ import annotations

import errno
import json
import os
import re
import select
import shutil
import sys
import termios
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import IO, Any, TextIO

from babyagi.text import harmless, harmless_lines, is_mark, one_line

MAX_TEXT_WIDTH = 100  # cells; a longer line is hard to read
MAX_PER_CELL = 8  # code points that are looked at per cell, to find the end of a text

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # a full disk, a quota, a limit


class Style(Enum):
    """How a whole line looks on a terminal with colours. The values are SGR parameters."""

    PLAIN = ""
    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output and its style."""

    text: str
    style: Style = Style.PLAIN


def safe_line(text: str) -> str:
    """Return the text as one safe line, with runs of white space folded to single blanks."""
    return one_line(harmless(text))


def cell_width(text: str) -> int:
    """Return how many terminal cells a harmless text takes. A wide character takes two cells, a
    combining one none."""
    if text.isascii():  # nearly every text is ASCII, and a list may contain very many
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """Return the text as one safe line of at most `width` cells. A longer text is cut between two
    words, or within a word that fills most of the line, and ends with an ellipsis."""
    return cut_words(safe_line(text), width)


def fit_end(text: str, width: int) -> str:
    """Return the last words of the text as one safe line of at most `width` cells."""
    end = safe_line(text)[-MAX_PER_CELL * width :]
    while end and (cell_width(end) > width or is_mark(end[0])):
        end = end[1:]
    return end


def cut_words(line: str, width: int) -> str:
    """Cut a harmless line as `fit` does, but keep its blanks as they are."""
    if cell_width(line) <= width:
        return line
    head = take(line, width - 1).rstrip()
    if line[len(head) : len(head) + 1] not in ("", " "):
        words = head.rsplit(maxsplit=1)
        if len(words) == 2 and 2 * len(words[0]) >= len(head):
            head = words[0]
    return f"{head}…" if width > 0 else ""


def take(text: str, width: int) -> str:
    """Return as much of the beginning of the text as fits into `width` cells."""
    if cell_width(text) <= width:
        return text
    from rich.cells import set_cell_size

    head = set_cell_size(text, max(0, width))
    while not text.startswith(head):  # a blank in the place of half a character
        head = head[:-1]
    return head


# the prefix of a line, such as a time, a number, a label with a colon or a bar, or a list sign;
# further rows are indented by its width
_BEFORE = re.compile(
    r" *(?:\d\d:\d\d:\d\d +|\d+ {2,}|[A-Z][a-z]+(?: [a-z]+){0,3}: {2,}|\w+: {2,}|\w+ +\| |"
    r"[-*•|] +)*"
)
_LEAST_ROOM = 20  # cells for the words of a row; with fewer, further rows are indented less


def flow(line: str, width: int) -> str:
    """Break one harmless line between words into rows of at most `width` cells. The second row
    and later ones are indented to the column where the words begin after a time, number or label. A
    word wider than a row stays whole, so that addresses and paths can be copied."""
    if width < 1 or cell_width(line) <= width:
        return line
    before = _BEFORE.match(line)
    n_before = cell_width(before[0]) if before is not None else 0
    margin = " " * (n_before if n_before <= width - _LEAST_ROOM else min(2, n_before))
    rows, row = [], line[: len(before[0])] if before is not None else ""
    for piece in re.findall(r" *[^ ]+", line[len(row) :]):
        if row.strip() and cell_width(row) + cell_width(piece) > width:
            rows.append(row)
            row = margin + piece.lstrip(" ")
        else:
            row += piece
    return "\n".join([*rows, row])


def table(
    columns: Mapping[str, str], rows: Iterable[tuple[Sequence[object], Style]], width: int
) -> list[Line]:
    """Return a table: a head, and one line for each row, cut to `width` cells.

    Args:
        columns: the format of each column by its title, such as `>4`; the last column takes the
            room that is left, and its format is not used.
        rows: the cells of each row, and its style.
    """
    *formats, _ = columns.values()
    lines = []
    for (*cells, text), style in [([*columns], Style.DIM), *rows]:
        pairs = zip(cells, formats, strict=True)
        head = "".join(f"{cell:{format_}}  " for cell, format_ in pairs)
        lines.append(Line(head + fit(str(text), max(12, width - len(head))), style))
    return lines


def row_width(stream: TextIO) -> int:
    """Return the width of the stream's terminal in cells; 0 if the stream is not a terminal or its
    size is unknown."""
    if not stream.isatty():
        return 0
    if os.environ.get("COLUMNS", "").isdecimal():
        return int(os.environ["COLUMNS"])
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


def has_colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether lines to this stream may be coloured: the terminal supports it, and the
    environment does not forbid it (https://no-color.org)."""
    can_colour = environ.get("TERM") not in ("dumb", "")
    return stream.isatty() and can_colour and not environ.get("NO_COLOR")


MIN_COLUMNS, MIN_LINES = 20, 8


def is_live_terminal() -> bool:
    """Return whether the live view can run: standard input and standard error are a terminal that
    is large enough, can be redrawn and is not used by another program. Standard output may be a
    pipe or a file."""
    is_dumb = os.environ.get("TERM", "dumb") in ("dumb", "")
    if is_dumb or os.environ.get("CI") or not (is_person_there() and is_in_foreground()):
        return False
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return size.columns >= MIN_COLUMNS and size.lines >= MIN_LINES


def is_person_there() -> bool:
    """Return whether a person can be asked: standard input and standard error are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def is_in_foreground() -> bool:
    """Return whether this program may read from the terminal. The system stops a program in the
    background that reads from its controlling terminal; any other terminal can always be read."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # the terminal does not control this program
        return sys.stdin.isatty()


def accepts_output(stream: IO[Any]) -> bool:
    """Return whether a write to the stream would not block. It would where the person has stopped
    the terminal, or where nobody reads the other end."""
    try:
        return bool(select.select([], [stream], [], 0)[1])
    except (OSError, ValueError):  # no descriptor, or a closed one
        return True


def silence_broken() -> None:
    """Redirect each standard stream that cannot be written (the reader of its pipe is gone, or the
    disk is full) to /dev/null, so that the interpreter does not fail when it flushes the stream at
    exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, stream.fileno())
            os.close(devnull)


def echo(text: str = "", style: Style = Style.PLAIN) -> None:
    """Write the text, neutralised, and a line end to standard output."""
    _write(sys.stdout, text, style)


def warn(text: str = "", style: Style = Style.PLAIN) -> None:
    """Write the text, neutralised, and a line end to standard error. If the disk is full, the text
    is dropped, because a run must not end for lack of room for its messages."""
    try:
        _write(sys.stderr, text, style)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise


def echo_lines(lines: Iterable[Line], say: Callable[[str, Style], None] = echo) -> None:
    for line in lines:
        say(line.text, line.style)


def echo_rendered(text: str) -> None:
    """Write the output of `render_markdown` to standard output, with its colours."""
    _put(sys.stdout, text)


def terminal_width() -> int:
    """Return the number of cells in a row of the terminal; 100 without a terminal."""
    return shutil.get_terminal_size((100, 24)).columns


def confirm(question: str) -> bool:
    """Ask the person a question that is answered with y or n; anything else, and the end of input,
    means no."""
    print(harmless(f"{question} [y/N]"), end=" ", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def forget_typed(descriptor: int | None = None) -> None:
    """Drop unread input (of standard input by default), so that text typed before a question was
    shown does not answer it."""
    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(sys.stdin.fileno() if descriptor is None else descriptor, termios.TCIFLUSH)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Write the value as JSON in ASCII. Characters that could control a terminal are written as
    JSON escapes, which a JSON parser reads back."""
    print(json.dumps(value, indent=indent, ensure_ascii=True), flush=True)


def give(as_json: bool, value: Any, lines: Iterable[Line], *, empty: str = "") -> None:
    """Print the value as JSON, or the lines; where there is no line, the text `empty`."""
    if as_json:
        print_json(value)
    else:
        echo_lines([*lines] or [Line(empty)])


def _write(stream: TextIO, text: str, style: Style) -> None:
    width = row_width(stream)
    line = "\n".join(flow(row, width) for row in harmless_lines(text).split("\n"))
    if style is not Style.PLAIN and has_colour(stream):
        line = f"\x1b[{style.value}m{line}\x1b[0m"
    _put(stream, line)


def _put(stream: TextIO, line: str) -> None:
    encoding = stream.encoding or "utf-8"
    print(line.encode(encoding, "replace").decode(encoding), file=stream, flush=True)
