"""Scores how much of a query a text contains, by character trigrams, in its best passage and in the
whole text.

A trigram is found wherever it stands, so misspelt and inflected words count for the part that is
left of them. It is lexical: other words for the same thing count nothing.

Every three letters in a row have a code of 16 bits by which they are looked up; about one trigram
in 500 of a text has the code of a different one in the query. Who compares the same texts with many
queries keeps their codes (`read_text`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from babyagi.index.hashing import MAX_WORD_CHARS, STOP_WORDS, WORD, split_words
from babyagi.text import BM25_LENGTH_SHARE, BM25_SATURATION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Letters = NDArray[np.uint16]  # UTF-16 code units, or the codes of trigrams
    ReadText = tuple[Letters, NDArray[np.intp]]

MAX_CHARS = 8_000  # of each text; 100 texts of 2,000 take about 3 ms
MAX_PIECES = 120  # of the query
# The texts were chosen because they contain the query, so a trigram that all of them have still
# counts: BM25 has 1 here.
COMMON = 1.4
PASSAGE_SHARE = 0.8  # of a score; the rest is for the whole text
N_CODES = 1 << 16
_BLANK = ord(" ")
_GAP = re.compile(r"[\W_]+")


class Words:
    """A query, to be compared with any number of texts."""

    def __init__(self, text: str) -> None:
        import numpy as np

        asked = _pieces(text)[:MAX_PIECES]
        self._n_asked = len(asked)
        # numbers start at 1; 0 is a trigram that is not in the query
        self._number_by_code = np.zeros(N_CODES, dtype=np.uint8)
        self._number_by_code[asked] = range(1, len(asked) + 1)

    def score(self, texts: Sequence[str | ReadText]) -> list[float]:
        """Return a score for each text, from 0 to 1: mostly the share of the query in its best
        passage, the rest BM25 of the whole text.

        The rarity of a trigram is computed from these texts, so scores can be compared only among
        them.

        Args:
            texts: plain texts, or the output of `read_text`.
        """
        import numpy as np

        if not texts or not self._n_asked:
            return [0.0] * len(texts)
        read = [read_text(text) if isinstance(text, str) else text for text in texts]
        codes = np.concatenate([one for one, _ in read])
        sizes = np.array([len(one) for one, _ in read])
        n_passages = np.array([len(one) for _, one in read])
        passages = np.concatenate([one for _, one in read])
        passages += np.repeat(np.cumsum(sizes) - sizes, n_passages)
        first = np.cumsum(n_passages) - n_passages
        counts = self._count(codes, passages)
        counts_of_text = np.add.reduceat(counts, first)
        n_having = np.count_nonzero(counts_of_text, axis=0)
        rarities = np.log(COMMON + (len(texts) - n_having + 0.5) / (n_having + 0.5)).astype("f4")
        lengths = 1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * sizes / sizes.mean()
        # `einsum`, because `@` would wake the threads of BLAS
        best = np.maximum.reduceat(np.einsum("ij,j->i", counts > 0, rarities), first)
        shares = counts_of_text / (counts_of_text + BM25_SATURATION * lengths[:, None])
        whole = np.einsum("ij,j->i", shares, rarities)
        scores: list[float] = (
            (PASSAGE_SHARE * best + (1 - PASSAGE_SHARE) * whole) / rarities.sum()
        ).tolist()
        return scores

    def _count(self, codes: Letters, passages: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return how often each trigram occurs in each passage. `passages` are the places where
        passages begin."""
        import numpy as np

        n = self._n_asked
        numbers = self._number_by_code.take(codes)
        at = np.flatnonzero(numbers > 0)
        # far fewer passages than trigrams are looked up
        n_found = np.diff(np.searchsorted(at, passages), append=len(at))
        # numbers start at 1
        first_of_passage = np.repeat(np.arange(-1, len(passages) * n - 1, n), n_found)
        return np.bincount(first_of_passage + numbers[at], minlength=len(passages) * n).reshape(
            -1, n
        )


def searchable(text: str, *, limit: int) -> list[str]:
    """Return the words of a text for a full-text search, longest first: letters and digits only, in
    lower case as databases make them (case folding would turn `ß` into two letters)."""
    small = unicodedata.normalize("NFKC", text[:MAX_CHARS]).lower()
    words = {word for word in _GAP.sub(" ", small).split() if len(word) <= MAX_WORD_CHARS}
    return sorted(words - STOP_WORDS or words, key=lambda word: (-len(word), word))[:limit]


def fold(text: str) -> str:
    """Return the text in one case and one normal form."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _pieces(text: str) -> list[int]:
    """Return the codes of all trigrams within the words of the text, with blanks at the ends of
    words; each once, in order."""
    letters = _letters(" ".join(split_words(text)))
    return list(dict.fromkeys(_codes(letters)[letters[1:-1] > _BLANK].tolist()))


def read_text(text: str) -> ReadText:
    """Return the trigram codes of the part of a text that is compared, and the places where its
    passages begin."""
    letters = _letters(text[:MAX_CHARS])
    return _codes(letters), _passage_starts(letters[:-2])


def _letters(text: str) -> Letters:
    """Return the folded text with a newline before it, and two characters after it that count as
    blanks: a trigram begins with each letter."""
    import numpy as np

    return np.frombuffer(f"\n{fold(text)}\n\0".encode("utf-16-le", "replace"), dtype="<u2")


def _codes(letters: Letters) -> Letters:
    """Return the code of every three letters in a row. Whatever is not a letter counts as a
    blank."""
    folded = _letter_by_unit().take(letters)
    # there are 91 characters from the blank to z
    return folded[:-2] * 8281 + folded[1:-1] * 91 + folded[2:]


def _passage_starts(letters: Letters) -> NDArray[np.intp]:
    """Return the places where a line begins, or a blank follows the end of a sentence."""
    import numpy as np

    is_end = (letters == ord(".")) | (letters == ord("!")) | (letters == ord("?"))
    is_start = letters == ord("\n")
    is_start[1:] |= is_end[:-1] & (letters[1:] <= _BLANK)
    return np.flatnonzero(is_start)


@cache
def _letter_by_unit() -> Letters:
    """Return what each UTF-16 code unit counts as: itself if it can be part of a word, or of a
    character of two units; else a blank."""
    import numpy as np

    found = np.full(N_CODES, _BLANK, dtype=np.uint16)
    units = [ord(char) for char in WORD.findall(" ".join(map(chr, range(N_CODES))))]
    found[units] = units
    return found
