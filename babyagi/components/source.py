"""A YAML file as plain values: read within bounds, and nothing in it can make an object or grow
beyond them.

Covers: files that are none, too long or no UTF-8; anchors that multiply or contain themselves;
tags; keys that stand twice. Values are
text, numbers, true, false, null, lists and mappings; a date is the text that was written.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from babyagi.errors import SettingsError
from babyagi.llm.prompt import clean

if TYPE_CHECKING:
    import yaml

MAX_FILE_BYTES = 256 * 2**10
MAX_VALUES = 10_000  # with everything that an alias stands for counted each time
MAX_DEPTH = 20

_TAG = "tag:yaml.org,2002:"
_TEXTS = (f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value")
_NUMBERS = tuple(_TAG + kind for kind in ("bool", "float", "int", "null"))


def fault(what: str, fix: str = "") -> SettingsError:
    """The error for something that is wrong in a file of agents. Values that may be secret have no
    place in it."""
    return SettingsError(what, fix=fix or "correct the file", guide="tools")


def shown(text: object) -> str:
    """A name from the file as a message may hold it: quoted, on one line, bounded."""
    line = re.sub(r"\s+", " ", clean(str(text)))
    return repr(line if len(line) <= 60 else line[:59] + "…")


def read_source(path: Path) -> str:
    """Return the text of the file.

    Raises:
        SettingsError: it is not there, no file, too long, or no UTF-8.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise fault("it is not a file", "name a YAML file")
        with path.open("rb") as file:
            body = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        why = (
            error.strerror
            if isinstance(error, OSError) and error.strerror
            else "no path can be called that"
        )
        raise fault(f"it cannot be read: {why}", "name a YAML file that is there") from None
    if len(body) > MAX_FILE_BYTES:
        raise fault(f"it is longer than {MAX_FILE_BYTES:,} bytes", "put less into one file")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise fault(f"byte {error.start} is not UTF-8", "save it as UTF-8 text") from None


def parse_yaml(text: str) -> Any:
    """Return what the text says.

    Raises:
        SettingsError: it is no YAML, more than one document, too large once its aliases are written
            out, or holds what no file of agents needs.
    """
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if root is None else _Reading(yaml).read(root, 1)
    except yaml.YAMLError as error:
        mark, problem = (
            getattr(error, "problem_mark", None),
            getattr(error, "problem", None) or getattr(error, "reason", None),
        )
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise fault(f"{where}no YAML: {shown(problem or 'unreadable')[1:-1]}") from None
    except RecursionError:
        raise fault(f"it is nested more than {MAX_DEPTH} deep") from None


class _Reading:
    """Nodes become values, counted as they are met; an alias is the same node met again."""

    def __init__(self, library: Any) -> None:
        self._yaml = library
        self._scalars = library.constructor.SafeConstructor()
        self._n_values = 0

    def read(self, node: yaml.Node, depth: int) -> Any:
        self._n_values += 1
        if self._n_values > MAX_VALUES:
            raise fault(
                f"it holds more than {MAX_VALUES:,} values, those that aliases stand for included"
            )
        if depth > MAX_DEPTH:
            raise fault(
                f"{_line(node)}: it is nested more than {MAX_DEPTH} deep, or an anchor holds itself"
            )
        if isinstance(node, self._yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self._read_mapping(node, depth)
        if isinstance(node, self._yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self.read(item, depth + 1) for item in node.value]
        return self._read_scalar(node)

    def _read_mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, self._yaml.ScalarNode) or key_node.tag not in _TEXTS:
                raise fault(f"{_line(key_node)}: a key must be a word, got {_kind(key_node)}")
            key = key_node.value
            if key in values:
                raise fault(f"{_line(key_node)}: the key {shown(key)} stands twice")
            values[key] = self.read(value_node, depth + 1)
        return values

    def _read_scalar(self, node: yaml.Node) -> Any:
        if node.tag in _TEXTS:
            return node.value
        if node.tag in _NUMBERS:
            try:
                return self._scalars.construct_object(node)
            except (ValueError, OverflowError):
                raise fault(f"{_line(node)}: no number that can be read") from None
        raise fault(
            f"{_line(node)}: the tag {shown(node.tag.replace(_TAG, '!!'))} makes an object, "
            "and a file of agents holds text only"
        )


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def _kind(node: yaml.Node) -> str:
    return (
        "a merge (<<)"
        if node.tag == f"{_TAG}merge"
        else f"a {node.id}"
        if node.id != "scalar"
        else shown(node.value)
    )
