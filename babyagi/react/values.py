"""Finds JSON values anywhere in a text, also with faults that models make: quotes, constants and
commas as in Python, line breaks inside strings, doubled braces."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from babyagi.tools.base import DECODER

MAX_VALUES = 2000
# openings from which nothing could be read; each takes time in proportion to the text
MAX_TRIED = 32

_OPENING = re.compile(r"[{\[]")
_TOKEN = re.compile(
    r"\"(?:[^\"\\]|\\.)*+(?:\"|\Z)|'(?:[^'\\]|\\.)*+(?:'|\Z)|[{}\[\]]|\b(?:true|false|null)\b",
    re.DOTALL,
)
_IN_PYTHON = {"true": "True", "false": "False", "null": "None"}


def find_values(text: str) -> list[tuple[Any, int, int]]:
    """Return the outermost objects and lists of the text, in order: value, start and end. A value
    that is cut off is left out."""
    found: list[tuple[Any, int, int]] = []
    at = n_tried = 0
    while len(found) < MAX_VALUES and n_tried < MAX_TRIED:
        opening = _OPENING.search(text, at)
        if opening is None:
            break
        start = opening.start()
        read = _read_strictly(text, start) or _read_loosely(text, start)
        if read is None:
            n_tried, at = n_tried + 1, opening.end()
        else:
            value, at = read
            found.append((value, start, at))
    return found


def _read_strictly(text: str, start: int) -> tuple[Any, int] | None:
    try:
        return DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _read_loosely(text: str, start: int) -> tuple[Any, int] | None:
    """Return the value that is written as in Python, and its end; None if there is none. What
    `DECODER` refuses is refused here too."""
    parts, depth, at = list[str](), 0, start
    for token in _TOKEN.finditer(text, start):
        parts += [text[at : token.start()], _to_python(token[0])]
        at = token.end()
        depth += (token[0] in ("{", "[")) - (token[0] in ("}", "]"))
        if depth == 0:
            break
    try:
        value = _evaluate("".join(parts)) if parts and depth == 0 else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return (value, at) if isinstance(value, dict | list) else None


def _evaluate(written: str) -> Any:
    """Return the value of a Python literal as JSON has it."""
    tree = ast.parse(written.strip(), mode="eval")
    dicts = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    if any(len({ast.dump(key) for key in one.keys if key}) < len(one.keys) for one in dicts):
        raise ValueError("a key occurs twice")
    return DECODER.decode(json.dumps(ast.literal_eval(tree), allow_nan=False))


def _to_python(token: str) -> str:
    return _IN_PYTHON.get(token) or token.replace("\n", "\\n")
