"""An embedder that needs no network, no key and no model: words and pieces of words, hashed into a
vector.

It is lexical. Texts are near each other when they share words, or words that are spelt alike. It
knows nothing of meaning: a paraphrase without common words is as far away as any other text. Set an
embedding model for that.
"""

from __future__ import annotations

import asyncio
import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

from babyagi.tasks import Reservation, Usage

MAX_TEXT_BYTES = 32_768  # 10 kB of prose take about 5 ms, all-different words several times that
# texts whose vectors are remembered: an objective is embedded beside each of its tasks
N_KEPT, MAX_KEPT_CHARS = 100, 1_000
# a run without spaces is cut into words of this length, so that no word costs more than its share
MAX_WORD_CHARS = 64
# of the vector is pieces of words, the rest whole words; at 0.4 a quarter of the misspelt queries
# was lost
CHAR_SHARE = 0.7
STOP_WORDS = frozenset(
    "a about after all also an and any are as at be because been before being between "
    "both but by can could did do does doing down during "
    "each few for from further had has have having he her here hers him his how i if in "
    "into is it its itself just me more most my no nor "
    "not now of off on once only or other our out over own same she should so some such "
    "than that the their them then there these they "
    "this those through to too under until up us very was we were what when where which "
    "while who whom why will with would you your".split()
)
# A letter or digit of any script. Outside of the western letters also the signs that are written
# onto letters, which `\w` leaves out.
WORD = re.compile(r"(?:[^\W_]|[^\x00-ʯ\s\u2000-\u206f\u3000-\u303f])+")


class HashEmbedder:
    """An `Embedder` without a model: the same text gives the same bytes on every machine and in
    every process.

    Of a text the first `MAX_TEXT_BYTES` count. Empty texts and those without a word all get one
    fixed vector.
    """

    is_local = True

    def __init__(self, dimension: int = 768) -> None:
        self.dimension = dimension
        self.space = f"hash:v1:{dimension}"
        self._embed_again = lru_cache(maxsize=N_KEPT)(self._embed_text)

    def reserve(self, texts: Sequence[str]) -> Reservation:
        return Reservation()

    async def embed(self, texts: Sequence[str]) -> tuple[list[bytes], Usage]:
        vectors = []
        for text in texts:
            vectors.append(self.embed_text(text))
            # a hundred long texts would hold up every other task for a second
            await asyncio.sleep(0)
        return vectors, Usage()

    async def close(self) -> None:
        return

    def embed_text(self, text: str) -> bytes:
        """Return the unit vector of one text as little-endian float32."""
        return self._embed_again(text) if len(text) <= MAX_KEPT_CHARS else self._embed_text(text)

    def _embed_text(self, text: str) -> bytes:
        words = split_words(text)
        by_word, by_gram = _hash(words, self.dimension), _hash(_split_grams(words), self.dimension)
        vector = [
            (1 - CHAR_SHARE) * one + CHAR_SHARE * other
            for one, other in zip(by_word, by_gram, strict=True)
        ]
        norm = math.sqrt(sum(value * value for value in vector))
        if norm == 0.0:
            vector[0] = norm = 1.0
        return struct.pack(f"<{self.dimension}f", *(value / norm for value in vector))


def split_words(text: str) -> Counter[str]:
    """Count the words of a text, folded, without the commonest ones (unless there are no
    others)."""
    head = text.encode("utf-8", "replace")[:MAX_TEXT_BYTES].decode("utf-8", "ignore")
    folded = unicodedata.normalize("NFKC", head).casefold()
    runs = WORD.findall(folded)
    words = Counter(
        run[start : start + MAX_WORD_CHARS]
        for run in runs
        for start in range(0, len(run), MAX_WORD_CHARS)
    )
    return Counter({word: n for word, n in words.items() if word not in STOP_WORDS}) or words


def _split_grams(words: Counter[str]) -> Counter[str]:
    """Count the pieces of 3 to 5 characters within words, ends marked; of 2 as well where a script
    writes words that short."""
    grams: Counter[str] = Counter()
    for word, n in words.items():
        marked = f"<{word}>"
        for size in (3, 4, 5) if word.isascii() else (2, 3, 4, 5):
            for start in range(len(marked) - size + 1):
                grams[marked[start : start + size]] += n
    return grams


def _hash(counts: Counter[str], dimension: int) -> list[float]:
    """A vector of length 1 (or 0) with each feature's dampened count at a place, and with a sign,
    that its hash gives."""
    vector = [0.0] * dimension
    for feature, n in counts.items():
        # crc32, because hash() differs from process to process
        code = crc32(feature.encode("utf-8", "replace"))
        weight = 1.0 + math.log(n)
        vector[code % dimension] += weight if code & 0x8000_0000 else -weight
    norm = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / norm for value in vector]
