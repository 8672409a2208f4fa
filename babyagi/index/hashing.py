"""An embedder without network, key or model: it hashes words and parts of words into a vector.

It is lexical: texts are near each other if they share words, or words with similar spelling. It
does not know meaning: a paraphrase without common words is as far away as any other text. For
meaning, use an embedding model.
"""

from __future__ import annotations

import asyncio
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from babyagi.tasks import Reservation, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TEXT_BYTES = 32_768  # 10 kB of prose take about 10 ms
# A run without spaces is cut into words of this length, so that the cost per character is bounded.
MAX_WORD_CHARS = 64
# The share of n-grams in the vector; the rest is whole words. With 0.4, a quarter of the misspelt
# queries found nothing.
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
# A letter or digit of any script. Outside the western letters, it includes combining marks, which
# `\w` leaves out.
WORD = re.compile(r"(?:[^\W_]|[^\x00-ʯ\s\u2000-\u206f\u3000-\u303f])+")
_PLAIN_WORD = re.compile("[a-z0-9]+")  # the same for folded ASCII, three times as fast


class HashEmbedder:
    """An `Embedder` without a model: the same text gives the same bytes on every machine and in
    every process.

    Only the first `MAX_TEXT_BYTES` of a text are used. All texts without a word get the same fixed
    vector.
    """

    is_local = True

    def __init__(self, dimension: int = 768) -> None:
        self.dimension = dimension
        self.space = f"hash:v1:{dimension}"

    def reserve(self, texts: Sequence[str]) -> Reservation:
        return Reservation()

    async def embed(self, texts: Sequence[str]) -> tuple[list[bytes], Usage]:
        vectors = []
        for text in texts:
            vectors.append(self.embed_text(text))
            # a hundred long texts would block every other task for a second
            await asyncio.sleep(0)
        return vectors, Usage()

    def embed_text(self, text: str) -> bytes:
        """Return the unit vector of one text as little-endian float32."""
        n_by_word = split_words(text)
        n_by_gram: Counter[str] = Counter()
        for word, n in n_by_word.items():
            for gram in _find_grams(word):
                n_by_gram[gram] += n
        by_word, by_gram = self._add(n_by_word), self._add(n_by_gram)
        vector = (1 - CHAR_SHARE) * by_word + CHAR_SHARE * by_gram
        norm = _norm(vector)
        if norm == 0.0:
            vector[0] = norm = 1.0
        return bytes((vector / norm).astype("<f4").tobytes())

    def _add(self, n_by_feature: Mapping[str, int]) -> NDArray[np.float64]:
        """Sum up the features in a vector and scale it to length 1; without features it is all
        zeros. The hash of a feature determines the dimension and the sign, and the logarithm of its
        count the amount."""
        import numpy as np

        # the last digit of numpy's logarithm may differ between machines
        weight_by_count = {n: 1.0 + math.log(n) for n in set(n_by_feature.values())}
        weights = np.array([weight_by_count[n] for n in n_by_feature.values()], dtype="f8")
        # crc32, because hash() differs between processes
        codes = [crc32(feature.encode("utf-8", "replace")) for feature in n_by_feature]
        hashes = np.array(codes, dtype="u4")
        signed = np.where(hashes & 0x8000_0000, weights, -weights)
        sums = np.bincount(hashes % self.dimension, weights=signed, minlength=self.dimension)
        vector = sums.astype(np.float64)  # without features, `sums` has integers
        return vector / (_norm(vector) or 1.0)


def split_words(text: str) -> Counter[str]:
    """Count the words of a text in their folded form. Stop words are left out, unless there are no
    others."""
    head = text.encode("utf-8", "replace")[:MAX_TEXT_BYTES].decode("utf-8", "ignore")
    runs = find_words(unicodedata.normalize("NFKC", head).casefold())
    if max(map(len, runs), default=0) > MAX_WORD_CHARS:
        runs = [
            run[start : start + MAX_WORD_CHARS]
            for run in runs
            for start in range(0, len(run), MAX_WORD_CHARS)
        ]
    words = Counter(runs)
    return Counter({word: n for word, n in words.items() if word not in STOP_WORDS}) or words


def find_words(folded: str) -> list[str]:
    """Return the words of a folded text, in order."""
    return (_PLAIN_WORD if folded.isascii() else WORD).findall(folded)


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order and without case."""
    return find_words(text.casefold())


def _find_grams(word: str) -> Iterator[str]:
    """Yield the n-grams of a word: its parts of 3 to 5 characters, where the ends of the word count
    as characters. A word with characters beyond ASCII has n-grams of 2 as well, because some
    scripts write words that short."""
    marked = f"<{word}>"
    for size in (3, 4, 5) if word.isascii() else (2, 3, 4, 5):
        for start in range(len(marked) - size + 1):
            yield marked[start : start + size]


def _norm(vector: NDArray[np.float64]) -> float:
    # summed in order; numpy's `sum` and BLAS may add in another order
    return math.sqrt(float((vector * vector).cumsum()[-1]))
