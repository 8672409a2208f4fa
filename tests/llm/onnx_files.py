"""A tiny model in the place of Chroma's, in the same files: each known word has a direction of its
own, and a text is their mean."""

import random
import struct
import tarfile
from pathlib import Path

from babyagi.llm.embeddings import FILES

DIMENSION = 384
WORDS = (
    "[PAD] [UNK] [CLS] [SEP] the opening hours of museum how to plant tomato seedlings a "
    "night train vienna "
    "when is open number long list cut off"
).split()
FLOAT, INT64 = 1, 7


def make_files(folder: Path) -> None:
    """Write the files as Chroma unpacks them into `folder/onnx`."""
    unpacked = folder / "onnx"
    unpacked.mkdir(parents=True)
    for name in FILES:
        (unpacked / name).write_text("{}")
    (unpacked / "model.onnx").write_bytes(make_model())
    make_tokenizer().save(str(unpacked / "tokenizer.json"))


def make_archive(path: Path, folder: Path) -> bytes:
    """The files as Chroma's server gives them."""
    make_files(folder)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(folder / "onnx", arcname="onnx")
    return path.read_bytes()


def make_tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: place for place, word in enumerate([*WORDS, *map(str, range(200))])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def make_model() -> bytes:
    """The ONNX model `last_hidden_state = directions[input_ids]`.

    Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
    """
    chance = random.Random(7)
    n_words = len(WORDS) + 200
    numbers = struct.pack(
        f"<{n_words * DIMENSION}f", *(chance.gauss(0, 1) for _ in range(n_words * DIMENSION))
    )
    directions = (
        _field(1, n_words)
        + _field(1, DIMENSION)
        + _field(2, FLOAT)
        + _field(8, b"directions")
        + _field(9, numbers)
    )
    node = (
        _field(1, b"directions")
        + _field(1, b"input_ids")
        + _field(2, b"last_hidden_state")
        + _field(4, b"Gather")
    )
    inputs = [
        _value(name, INT64, "batch", "tokens")
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = _value("last_hidden_state", FLOAT, "batch", "tokens", DIMENSION)
    graph = (
        _field(1, node)
        + _field(2, b"tiny")
        + _field(5, directions)
        + b"".join(_field(11, one) for one in inputs)
        + _field(12, output)
    )
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))


def make_cross_encoder(folder: Path, *, weights: dict[str, float]) -> None:
    """Write a model whose number for a question and a text is the sum of its words' weights, and
    its tokenizer."""
    make_tokenizer().save(str(folder / "tokenizer.json"))
    known = [*WORDS, *map(str, range(200))]
    numbers = struct.pack(f"<{len(known)}f", *(weights.get(word, 0.0) for word in known))
    of_words = (
        _field(1, len(known))
        + _field(1, 1)
        + _field(2, FLOAT)
        + _field(8, b"w")
        + _field(9, numbers)
    )
    axis = _field(1, 1) + _field(2, INT64) + _field(8, b"axis") + _field(9, struct.pack("<q", 1))
    keep = _field(1, b"keepdims") + _field(3, 0) + _field(20, 2)
    nodes = [
        _field(1, b"w") + _field(1, b"input_ids") + _field(2, b"each") + _field(4, b"Gather"),
        _field(1, b"each") + _field(1, b"axis") + _field(2, b"logits") + _field(4, b"ReduceSum")
        + _field(5, keep),
    ]  # fmt: skip
    inputs = [_value(name, INT64, "batch", "tokens") for name in ("input_ids", "attention_mask")]
    graph = (
        b"".join(_field(1, node) for node in nodes)
        + _field(2, b"pairs")
        + _field(5, of_words)
        + _field(5, axis)
        + b"".join(_field(11, one) for one in inputs)
        + _field(12, _value("logits", FLOAT, "batch", 1))
    )
    model = _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))
    (folder / "model.onnx").write_bytes(model)


def _value(name: str, element: int, *sizes: str | int) -> bytes:
    dims = [
        _field(1, size) if isinstance(size, int) else _field(2, size.encode()) for size in sizes
    ]
    shape = b"".join(_field(1, dim) for dim in dims)
    return _field(1, name.encode()) + _field(2, _field(1, _field(1, element) + _field(2, shape)))


def _field(number: int, value: int | bytes) -> bytes:
    """A field of a protocol buffer: a number, or bytes with their length before them."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    low, high = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(high) if high else bytes([low])
