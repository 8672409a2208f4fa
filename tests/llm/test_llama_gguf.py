"""The head of a model's file: what it says, and files that are none."""

import struct

import pytest

from babyagi.llm.llama import OVERHEAD_BYTES, read_model_file
from tests.llm.smollm import MODEL, needs_model

UINT32, TEXT, LIST = 4, 8, 9


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def head(*entries, version=3, n_keys=None):
    n = len(entries) if n_keys is None else n_keys
    return b"GGUF" + struct.pack("<IQQ", version, 0, n) + b"".join(entries)


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def number(key, value):
    return entry(key, UINT32, struct.pack("<I", value))


LIST_OF_WORDS = entry(
    "tokenizer.ggml.tokens", LIST, struct.pack("<IQ", TEXT, 2) + text("a") + text("b")
)


def test_the_head_says_what_memory_a_context_takes(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(
        head(
            entry("general.architecture", TEXT, text("llama")),
            entry("general.name", TEXT, text("Small")),
            LIST_OF_WORDS,
            number("llama.context_length", 2048),
            number("llama.embedding_length", 64),
            number("llama.block_count", 3),
            number("llama.attention.head_count", 8),
            number("llama.attention.head_count_kv", 2),
        )
    )

    found = read_model_file(path)

    assert (found.name, found.context_tokens) == ("Small", 2048)
    # keys and values, of three layers, two heads of eight numbers, two bytes each
    assert found.bytes_per_token == 2 * 3 * 2 * 8 * 2
    assert found.memory_bytes(100) == path.stat().st_size + 9600 * 2 + OVERHEAD_BYTES


def test_what_is_not_said_is_unknown_and_the_file_gives_the_name(tmp_path):
    path = tmp_path / "nameless.gguf"
    path.write_bytes(head())

    found = read_model_file(path)

    assert (found.name, found.context_tokens, found.bytes_per_token) == ("nameless", 0, 0)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GGU",
        b"root:x:0:0",
        b"GGUF",
        head(version=1),
        head(n_keys=5),
        head(entry("a", 99, b"")),
        head(entry("a", TEXT, struct.pack("<Q", 2**62))),
        head(entry("a", LIST, struct.pack("<IQ", UINT32, 2**62))),
        head(entry("a", LIST, struct.pack("<IQ", LIST, 1))),
    ],
    ids=[
        "empty", "half a beginning", "another file", "only the beginning", "an old version", "keys missing",
        "unknown type", "a text without end", "a list without end", "a list of lists",
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_in_words(tmp_path, content):
    path = tmp_path / "m.gguf"
    path.write_bytes(content)

    with pytest.raises(ValueError, match=r"does not begin|header|version"):
        read_model_file(path)


@needs_model
def test_a_real_file_is_read():
    assert MODEL is not None
    found = read_model_file(MODEL)

    assert found.takes_tools is False
    assert found.context_tokens == 8192
    assert found.bytes_per_token == 2 * 30 * 3 * 64 * 2
