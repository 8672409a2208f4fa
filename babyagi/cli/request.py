"""What a person is asked, as it is shown: who asks and after reading what, and the call letter by
letter, a file as what changes in it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from babyagi.cli.text import Line, Style, cell_width, fit, one_line
from babyagi.inbox import Decision, asks_for_secret, decisions, read_request
from babyagi.tasks import Step, Task
from babyagi.tools.base import Preview
from babyagi.visible import exact

EXCERPT_LINES = 12
EXCERPT_CHARS = 1000
MAX_ORIGINS = 6  # named in the list; one request alone names them all
MAX_DEPTH = 20
_MARGIN = " " * 6
_PLAIN_KEY = re.compile(r"[A-Za-z_]\w{0,39}", re.ASCII)
_OURS = ("person", "program", "model")
_LEGEND = (
    "<U+200B> stands for a character that cannot be seen or is not what it looks like, x4000 "
    "for how many of them."
)
_SECRET = (
    "It asks for what looks like a secret. An answer is stored in plain text in the task "
    "store, and shown to the model."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An open step, and what a person needs to judge it.

    Attributes:
        model: the name of the model that asks, empty when nobody knows it.
        origins: of all that it had read.
        preview: what the call would change; None where that cannot be seen from here, and `trouble`
            says why.
    """

    step: Step
    task: Task
    model: str = ""
    origins: tuple[str, ...] = ()
    preview: Preview | None = None
    trouble: str = ""


def render_request(request: Request, width: int, *, is_whole: bool) -> list[Line]:
    """The request with what to type; in a list only the beginning of a long one, and marked as
    that."""
    step, task = request.step, request.task
    texts = {Decision.ANSWER: ' "…"', Decision.APPROVE: "", Decision.REJECT: ' "why"'}
    ways = "   ".join(
        f"babyagi {decision.value} {step.id}{texts[decision]}" for decision in decisions(step)
    )
    said = list(call_lines(request, width))
    shown = said if is_whole else _begin(said)
    lines = [
        Line(
            f"{step.id:>4}  objective {step.objective_id}, task {task.id}: {fit(task.name, 80)}",
            Style.BOLD,
        ),
        *(Line(_MARGIN + text) for text in _explain(request, is_whole=is_whole)),
        *(Line(_MARGIN + text, Style.YELLOW) for text in shown),
    ]
    if len(shown) < len(said):
        note = (
            f"… {_count(shown):,} of {_count(said):,} characters; babyagi inbox {step.id} shows all"
        )
        lines.append(Line(_MARGIN + note, Style.RED))
    if any("<U+" in text for text in shown):
        lines.append(Line(_MARGIN + _LEGEND, Style.DIM))
    if asks_for_secret(step):
        lines.append(Line(_MARGIN + _SECRET, Style.RED))
    return [*lines, Line(_MARGIN + ways)]


def call_lines(request: Request, width: int) -> Iterator[str]:
    """Every argument, with `|` before each line of a text, `:` before what goes on from the row
    above, `=` before any other value.

    What changes in a file has `+`, `-`, `@` or a blank there instead, so that no text can pass for
    a difference.
    """
    _, arguments = read_request(request.step)
    found = list(_leaves(arguments))
    label_width = min(max((len(label) for label, _ in found), default=0), 24)
    if not found:
        yield "without arguments"
    room = max(20, width - len(_MARGIN) - label_width - 3)
    preview = request.preview
    for label, value in found:
        if preview is not None and preview.parameter == label:
            rows = [
                (sign, f"{int(line):,} lines stay as they are" if sign == "@" else _spell(line))
                for sign, line in preview.lines
            ]
        elif isinstance(value, str):
            rows = [("|", line) for line in _spell(value).split("\n")]
        else:
            rows = [("=", json.dumps(value))]
        head = label
        for mark, text in rows:
            for piece in _wrap(text, room):
                yield f"{head:<{label_width}} {mark} {piece}"
                head, mark = "", ":"  # noqa: PLW2901  # the rest of the row


def _leaves(value: Any, label: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Each value that holds no other, and the way to it: `files[0].path`."""
    if depth == MAX_DEPTH and isinstance(value, dict | list):
        yield label, json.dumps(value, indent=1)
    elif isinstance(value, dict) and value:
        for key, inner in value.items():
            name = key if _PLAIN_KEY.fullmatch(key) else json.dumps(key)
            yield from _leaves(inner, f"{label}.{name}" if label else name, depth + 1)
    elif isinstance(value, list) and value:
        for n, inner in enumerate(value):
            yield from _leaves(inner, f"{label}[{n}]", depth + 1)
    elif label:
        yield label, value


def _spell(text: str) -> str:
    return exact(text, encoding=sys.stderr.encoding or "utf-8")


def _wrap(text: str, room: int) -> Iterator[str]:
    """The text in rows of at most so many cells, at least one; blanks stand at the beginning of a
    row, where they are seen."""
    row, used = "", 0
    for character in text:
        n_cells = cell_width(character)
        if used + n_cells > room:
            seen = row.rstrip(" ") or row
            yield seen
            row = row[len(seen) :]
            used = len(row)
        row, used = row + character, used + n_cells
    yield row


def _begin(lines: list[str]) -> list[str]:
    shown: list[str] = []
    for line in lines[:EXCERPT_LINES]:
        if shown and _count(shown) + len(line) > EXCERPT_CHARS:
            break
        shown.append(line)
    return shown


def _count(lines: Iterable[str]) -> int:
    return sum(map(len, lines))


def _explain(request: Request, *, is_whole: bool) -> Iterator[str]:
    tool, _ = read_request(request.step)
    model = f"The model {one_line(request.model)}".rstrip() if request.model else "The model"
    read = _say_origins(request.origins, max_named=None if is_whole else MAX_ORIGINS)
    match request.step.kind:
        case "question":
            yield f"{model} asks this{read}."
        case "approval":
            yield f"{model} wants this call of {one_line(tool)} to be made{read}."
        case _:
            yield (
                f"{model} wanted this call of {one_line(tool)}{read}. It may have been made, "
                "and nobody knows what came of it."
            )
    if request.preview is not None or request.trouble:
        yield one_line(request.preview.note if request.preview is not None else request.trouble)


def _say_origins(origins: tuple[str, ...], *, max_named: int | None) -> str:
    """`, after reading file:page.txt, result:3`: the sources first, then the results that were made
    from them."""
    outside = [origin for origin in origins if origin.partition(":")[0] not in _OURS]
    if not outside:
        return ", having read nothing but what you and this program wrote" if origins else ""
    ordered = sorted(outside, key=lambda origin: origin.startswith("result:"))
    named = [fit(origin, 60) for origin in ordered[:max_named]]
    more = f" and {len(ordered) - len(named)} more" if len(ordered) > len(named) else ""
    return f", after reading {', '.join(named)}{more}"
