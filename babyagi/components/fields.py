"""Reading the keys of one mapping of the file: each has its type, and a key that nobody knows is an
error."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from babyagi.components.source import fault, shown

_NAME = re.compile(r"[\w.-]{1,64}")


class Fields:
    """A mapping that is called `where` in errors. No error shows a value: it may be secret.

    Raises:
        SettingsError: (every method) with the key that is wrong.
    """

    def __init__(self, given: object, where: str, *, known: Sequence[str]) -> None:
        if not isinstance(given, dict):
            raise fault(f"{where} must be a mapping, got {_kind(given)}")
        for key in given:
            if key not in known:
                near = get_close_matches(key, known, n=1)
                raise fault(
                    f"{where} has the unknown key {shown(key)}",
                    f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}",
                )
        self._given: Mapping[str, Any] = {
            key: value for key, value in given.items() if value is not None
        }
        self.where = where

    def has(self, key: str) -> bool:
        return key in self._given

    def raw(self, key: str) -> Any:
        """The value as it stands there, None when there is none."""
        return self._given.get(key)

    def name(self, key: str) -> str:
        """A name of letters, digits, `_`, `.` and `-`."""
        text = self.text(key)
        if not _NAME.fullmatch(text):
            raise fault(
                f"{self.where}: {key} must be 1 to 64 letters, digits, _, . or -, got {shown(text)}"
            )
        return text

    def text(self, key: str, default: str | None = None) -> str:
        value = self._need(key) if default is None else self._given.get(key, default)
        if not isinstance(value, str):
            raise fault(f"{self.where}: {key} must be text, got {_kind(value)}", "put it in quotes")
        if default is None and not value.strip():
            raise fault(f"{self.where}: {key} is empty")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts, or one text alone; empty where there is none."""
        value = self._given.get(key, [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise fault(f"{self.where}: {key} must be a list of texts")
        return tuple(texts)

    def number(self, key: str, default: float, *, at_most: float, is_whole: bool = True) -> float:
        """A number from 0 on; from the environment it comes as text."""
        value = self._given.get(key, default)
        try:
            found = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            found = math.nan
        if not 0 <= found <= at_most or (is_whole and not found.is_integer()):
            raise fault(
                f"{self.where}: {key} must be a {'whole ' if is_whole else ''}number from 0 "
                f"to {at_most:g}"
            )
        return int(found) if is_whole else found

    def entries(self, key: str) -> list[Any]:
        """A list with at least one entry."""
        value = self._need(key)
        if not isinstance(value, list) or not value:
            raise fault(f"{self.where}: {key} must be a list with at least one entry")
        return value

    def _need(self, key: str) -> Any:
        if key not in self._given:
            raise fault(f"{self.where} has no {key}", f"add {key}")
        return self._given[key]


def _kind(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
    return "a mapping"
