"""What a GGUF file says of the model in it, read from its head: nothing is loaded, and nothing that
the file claims is trusted with memory."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_KEYS = 10_000
MAX_TEXT_BYTES = 4_000_000  # a chat template, or a word of a vocabulary
MAX_ITEMS = 10_000_000  # of a list
BYTES_PER_CELL = 2  # keys and values are kept as half floats
OVERHEAD_BYTES = 96 * 2**20  # what the engine takes beside the weights and the context

_TEXT, _LIST, _BOOL = 8, 9, 7
_FORMAT_BY_TYPE = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    _BOOL: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """A model on disk.

    Attributes:
        name: what its author calls it; the file's name where that is not said.
        n_bytes: of the file. context_tokens: the longest that it was trained for, 0 when unknown.
        takes_tools: its chat template shows tools to the model.
        n_dimensions: of its vectors, 0 when unknown.
        bytes_per_token: what one token of context takes in memory, 0 when unknown.
    """

    name: str
    n_bytes: int
    context_tokens: int = 0
    takes_tools: bool = False
    n_dimensions: int = 0
    bytes_per_token: int = 0

    def memory_bytes(self, context_tokens: int) -> int:
        """Return about how much memory the model takes with a context of this length."""
        return self.n_bytes + context_tokens * self.bytes_per_token + OVERHEAD_BYTES


def read_model_file(path: Path) -> ModelFile:
    """Return what the head of the file says.

    Raises:
        ValueError: it is no GGUF file, or a damaged one. OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise ValueError("it does not begin as a GGUF file does")
        try:
            found = _read_head(file)
        except (struct.error, UnicodeDecodeError, KeyError) as error:
            raise ValueError(f"its head is damaged ({type(error).__name__})") from error
    return _describe(found, path)


def _describe(found: Mapping[str, Any], path: Path) -> ModelFile:
    kind = found.get("general.architecture", "")

    def number(name: str) -> int:
        value = found.get(f"{kind}.{name}")
        return value if isinstance(value, int) and value > 0 else 0

    n_heads, n_dimensions = number("attention.head_count"), number("embedding_length")
    head = number("attention.key_length") or (n_dimensions // n_heads if n_heads else 0)
    n_kept_heads = number("attention.head_count_kv") or n_heads
    name = found.get("general.name")
    return ModelFile(
        name=name if isinstance(name, str) and name else path.stem,
        n_bytes=path.stat().st_size,
        context_tokens=number("context_length"),
        takes_tools="tools" in str(found.get("tokenizer.chat_template", "")),
        n_dimensions=n_dimensions,
        bytes_per_token=2 * number("block_count") * n_kept_heads * head * BYTES_PER_CELL,
    )


def _read_head(file: BinaryIO) -> dict[str, Any]:
    (version,) = _read(file, "<I")
    if version not in VERSIONS:
        raise ValueError(f"it is GGUF of version {version}, and {VERSIONS} can be read")
    _, n_keys = _read(file, "<QQ")
    found: dict[str, Any] = {}
    for _ in range(min(n_keys, MAX_KEYS)):
        key = _read_text(file)
        (kind,) = _read(file, "<I")
        found[key] = _read_value(file, kind)
    return found


def _read_value(file: BinaryIO, kind: int) -> Any:
    """The value, None for a list, whose items are passed over."""
    if kind == _TEXT:
        return _read_text(file)
    if kind != _LIST:
        return _read(file, _FORMAT_BY_TYPE[kind])[0]
    (item,) = _read(file, "<I")
    (n_items,) = _read(file, "<Q")
    if n_items > MAX_ITEMS or item == _LIST:
        raise ValueError("its head holds a list that is too long")
    if item == _TEXT:
        for _ in range(n_items):
            _read_text(file)
    else:
        file.seek(n_items * struct.calcsize(_FORMAT_BY_TYPE[item]), 1)
    return None


def _read_text(file: BinaryIO) -> str:
    (n_bytes,) = _read(file, "<Q")
    if n_bytes > MAX_TEXT_BYTES:
        raise ValueError("its head holds a text that is too long")
    return file.read(n_bytes).decode("utf-8", "replace")


def _read(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))
