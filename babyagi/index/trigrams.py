"""Scores how much of a query a text contains, by character trigrams, in its best passage and in the
whole text.

A trigram is found anywhere in a text, so misspelt and inflected words count to the extent that
their spelling agrees. This is lexical: other words for the same thing do not count.

Every three letters in a row are looked up by a code of 16 bits; about one trigram in 500 of a text
has the code of a different trigram in the query. To compare the same texts with two queries, keep
the output of `read_texts`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from babyagi.index.hashing import MAX_WORD_CHARS, STOP_WORDS, WORD, split_words
from babyagi.text import BM25_LENGTH_SHARE, BM25_SATURATION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Letters = NDArray[np.uint16]  # UTF-16 code units, or the codes of trigrams
    Places = NDArray[np.intp]

MAX_CHARS = 8_000  # of a text that are compared; 100 texts of 2,000 take about 3 ms
MAX_PIECES = 120  # of the query
# The texts were chosen because they contain the query, so a trigram that all of them have still
# counts: BM25 has 1 here.
COMMON = 1.4
PASSAGE_SHARE = 0.8  # of a score, for the best passage; the rest is for the whole text
N_CODES = 1 << 16
_BLANK = ord(" ")
_GAP = re.compile(r"[\W_]+")


class Words:
    """A query, split into trigrams (three letters in a row), that can be compared with any number
    of texts."""

    def __init__(self, text: str) -> None:
        import numpy as np

        asked = _pieces(text)[:MAX_PIECES]
        self._n_asked = len(asked)
        # numbers start at 1; 0 stands for trigrams that are not in the query
        self._number_by_code = np.zeros(N_CODES, dtype=np.uint8)
        self._number_by_code[asked] = range(1, len(asked) + 1)

    def score(self, texts: ReadTexts | Sequence[str]) -> list[float]:
        """Return a score for each text, from 0 to 1: mostly the share of the query that the best
        passage contains, and for the rest BM25 of the whole text.

        How rare a trigram is, is computed from these texts, so only their scores can be compared.
        """
        import numpy as np

        n_texts = len(texts)
        if not n_texts or not self._n_asked:
            return [0.0] * n_texts
        read = texts if isinstance(texts, ReadTexts) else read_texts(texts)
        sizes = read.sizes
        first = read.passages.searchsorted(sizes.cumsum() - sizes)  # passages of the texts
        counts = self._count(read.codes, read.passages)
        counts_of_text = np.add.reduceat(counts, first)
        n_having = np.count_nonzero(counts_of_text, axis=0)
        rarities = np.log(COMMON + (n_texts - n_having + 0.5) / (n_having + 0.5)).astype("f4")
        lengths = 1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * sizes / (sizes.sum() / n_texts)
        # `einsum`, because `@` would wake the threads of BLAS
        best = np.maximum.reduceat(np.einsum("ij,j->i", counts > 0, rarities), first)
        shares = counts_of_text / (counts_of_text + BM25_SATURATION * lengths[:, None])
        whole = np.einsum("ij,j->i", shares, rarities)
        scores: list[float] = (
            (PASSAGE_SHARE * best + (1 - PASSAGE_SHARE) * whole) / rarities.sum()
        ).tolist()
        return scores

    def _count(self, codes: Letters, passages: Places) -> Places:
        """Return how often each trigram of the query occurs in each passage, one row per passage.

        Args:
            passages: the places in `codes` where the passages begin.
        """
        import numpy as np

        n = self._n_asked
        numbers = self._number_by_code.take(codes)
        at = numbers.nonzero()[0]
        # passages are looked up, because there are far fewer of them than trigrams
        begins = at.searchsorted(passages)
        # not `numpy.diff`, which takes several times as long with small arrays
        n_found = np.concatenate((begins[1:], (len(at),))) - begins
        # numbers start at 1
        first_of_passage = np.arange(-1, len(passages) * n - 1, n).repeat(n_found)
        return np.bincount(first_of_passage + numbers[at], minlength=len(passages) * n).reshape(
            -1, n
        )


def searchable(text: str, *, limit: int) -> list[str]:
    """Return the words of a text for a full-text search, longest first: letters and digits only, in
    lower case as databases produce it (case folding would turn `ß` into two letters)."""
    small = unicodedata.normalize("NFKC", text[:MAX_CHARS]).lower()
    words = {word for word in _GAP.sub(" ", small).split() if len(word) <= MAX_WORD_CHARS}
    return sorted(words - STOP_WORDS or words, key=lambda word: (-len(word), word))[:limit]


def fold(text: str) -> str:
    """Return the text in one case and one Unicode normal form."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _pieces(text: str) -> list[int]:
    """Return the codes of all trigrams within the words of the text, each once, in order. A blank
    counts at each end of a word."""
    import numpy as np

    letters = np.frombuffer(_to_units(" ".join(split_words(text))), dtype="<u2")
    return list(dict.fromkeys(_codes(letters)[letters[1:-1] > _BLANK].tolist()))


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """Texts, one after the other, as they are compared: the codes of their trigrams, the places in
    `codes` where their passages begin, and how many codes each text has."""

    codes: Letters
    passages: Places
    sizes: Places

    def __len__(self) -> int:
        return len(self.sizes)


def read_texts(texts: Sequence[str]) -> ReadTexts:
    """Return the texts, or as much of each as is compared, as `Words.score` takes them; there must
    be at least one."""
    import numpy as np

    parts = [_to_units(text[:MAX_CHARS]) for text in texts]
    letters = np.frombuffer(b"".join(parts), dtype="<u2")
    lengths = np.array([len(part) // 2 for part in parts])
    ends = lengths.cumsum()
    # no trigram begins with the last two characters of a text
    is_first = np.ones(len(letters), dtype=bool)
    is_first[ends - 1] = is_first[ends - 2] = False
    return ReadTexts(
        codes=_codes(letters)[is_first[:-2]],
        passages=_is_passage_start(letters)[is_first].nonzero()[0],
        sizes=lengths - 2,
    )


def _to_units(text: str) -> bytes:
    """Return the folded text as UTF-16 code units, with a newline before it and two characters
    after it that count as blanks, so that a trigram begins with each letter."""
    return f"\n{fold(text)}\n\0".encode("utf-16-le", "replace")


def _codes(letters: Letters) -> Letters:
    """Return the code of every three letters in a row. Anything else than a letter counts as a
    blank."""
    folded = _letter_by_unit().take(letters)
    # there are 91 characters from the blank to z
    return folded[:-2] * 8281 + folded[1:-1] * 91 + folded[2:]


def _is_passage_start(letters: Letters) -> NDArray[np.bool_]:
    """Return, for each place, whether a passage begins there: at the beginning of a line, or after
    the end of a sentence."""

    is_end = (letters == ord(".")) | (letters == ord("!")) | (letters == ord("?"))
    is_start: NDArray[np.bool_] = letters == ord("\n")
    is_start[1:] |= is_end[:-1] & (letters[1:] <= _BLANK)
    return is_start


@cache
def _letter_by_unit() -> Letters:
    """Return a table of what each UTF-16 code unit counts as: itself if it may be part of a word,
    or of a character of two units; else a blank."""
    import numpy as np

    found = np.full(N_CODES, _BLANK, dtype=np.uint16)
    units = [ord(char) for char in WORD.findall(" ".join(map(chr, range(N_CODES))))]
    found[units] = units
    return found
