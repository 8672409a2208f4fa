"""How much of what is asked stands in a text, letter by letter: pieces of three characters, in its
best passage and in the whole.

A piece is met wherever it stands, so misspelt and inflected words count for what is left of them.
It is lexical: other words for the same thing count nothing.

All texts are looked at together, as one row of letters. Each three in a row have a code of 16 bits,
by which they are looked up; of a text one piece in 500 has the code of another one that is asked.
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

    Letters = NDArray[np.uint16]  # units of UTF-16

MAX_CHARS = 8_000  # of a text that are looked at; 100 texts of 2,000 take about 3 ms
MAX_PIECES = 120  # of what is asked
BACKGROUND_WEIGHT = 0.25
# the texts were chosen because they hold what is asked, so that a piece of all of them is not worth
# nothing: BM25 has 1
COMMON = 1.4
PASSAGE_SHARE = 0.8  # of a score; what is left is for the whole text
N_CODES = 1 << 16
_BLANK = ord(" ")
_GAP = re.compile(r"[\W_]+")


class Words:
    """What is asked, to be compared with any number of texts.

    Args:
        text: what is asked. background: what it is asked for, which counts a quarter.
    """

    def __init__(self, text: str, *, background: str = "") -> None:
        import numpy as np

        weights = dict.fromkeys(_pieces(background), BACKGROUND_WEIGHT) | dict.fromkeys(
            _pieces(text), 1.0
        )
        asked = sorted(weights.items(), key=lambda entry: -entry[1])[:MAX_PIECES]
        self._weights = np.array([weight for _, weight in asked], dtype="f4")
        # from 1 on; 0 is a piece that is not asked
        self._number_by_code = np.zeros(N_CODES, dtype=np.uint8)
        self._number_by_code[[code for code, _ in asked]] = range(1, len(asked) + 1)

    def score(self, texts: Sequence[str]) -> list[float]:
        """A score for each text, from 0 to 1: mostly how much of what is asked stands in its best
        passage, for the rest BM25 of the whole.

        How rare a piece is, is taken from these texts, so scores compare among them only.
        """
        import numpy as np

        if not texts or not len(self._weights):
            return [0.0] * len(texts)
        letters, starts = _read(texts)
        passages = _passage_starts(letters)
        first = np.searchsorted(passages, starts)
        counts = self._count(letters, passages)
        counts_of_text = np.add.reduceat(counts, first)
        n_having = np.count_nonzero(counts_of_text, axis=0)
        rarities = self._weights * np.log(
            COMMON + (len(texts) - n_having + 0.5) / (n_having + 0.5)
        ).astype("f4")
        sizes = np.diff(starts, append=len(letters) - 1)  # without the line's end behind the last
        lengths = 1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * sizes / sizes.mean()
        # `einsum` and not `@`, which would wake the threads of BLAS
        best = np.maximum.reduceat(np.einsum("ij,j->i", counts > 0, rarities), first)
        shares = counts_of_text / (counts_of_text + BM25_SATURATION * lengths[:, None])
        whole = np.einsum("ij,j->i", shares, rarities)
        scores: list[float] = (
            (PASSAGE_SHARE * best + (1 - PASSAGE_SHARE) * whole) / rarities.sum()
        ).tolist()
        return scores

    def _count(self, letters: Letters, passages: NDArray[np.intp]) -> NDArray[np.intp]:
        """How often each piece stands in each of the passages that begin there."""
        import numpy as np

        n = len(self._weights)
        numbers = self._number_by_code.take(_codes(letters))
        at = np.flatnonzero(numbers > 0)
        passage_no = np.searchsorted(passages, at, side="right") - 1
        return np.bincount(passage_no * n + numbers[at] - 1, minlength=len(passages) * n).reshape(
            -1, n
        )


def searchable(text: str, *, limit: int) -> list[str]:
    """The words of a text that a full-text search can look for, the longest first: letters and
    digits only, small as databases make them (folded, as vectors have them, `ß` would be two
    letters)."""
    small = unicodedata.normalize("NFKC", text[:MAX_CHARS]).lower()
    words = {word for word in _GAP.sub(" ", small).split() if len(word) <= MAX_WORD_CHARS}
    return sorted(words - STOP_WORDS or words, key=lambda word: (-len(word), word))[:limit]


def fold(text: str) -> str:
    """A text in one case and one way of writing."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _pieces(text: str) -> list[int]:
    """The codes of every three letters in a row within its words, their ends marked by blanks; each
    once, in their order."""
    letters, _ = _read([" ".join(split_words(text))])
    return list(dict.fromkeys(_codes(letters)[letters[1:-1] > _BLANK].tolist()))


def _read(texts: Sequence[str]) -> tuple[Letters, NDArray[np.intp]]:
    """The texts one behind the other, with a line's end before each and behind the last, and where
    each begins."""
    import numpy as np

    units = [f"\n{fold(text[:MAX_CHARS])}".encode("utf-16-le", "replace") for text in texts]
    ends = np.cumsum([len(unit) // 2 for unit in units])
    return np.frombuffer(b"".join([*units, b"\n\0"]), dtype="<u2"), np.concatenate(([0], ends[:-1]))


def _codes(letters: Letters) -> Letters:
    """What each three in a row are known by; whatever is no letter is a blank."""
    folded = _letter_by_unit().take(letters)
    # from the blank to z there are 91 signs
    return folded[:-2] * 8281 + folded[1:-1] * 91 + folded[2:]


def _passage_starts(letters: Letters) -> NDArray[np.intp]:
    """Where a line begins, or a blank follows a sentence."""
    import numpy as np

    is_end = (letters == ord(".")) | (letters == ord("!")) | (letters == ord("?"))
    is_start = letters == ord("\n")
    is_start[1:] |= is_end[:-1] & (letters[1:] <= _BLANK)
    return np.flatnonzero(is_start[:-1])


@cache
def _letter_by_unit() -> Letters:
    """What each unit of UTF-16 counts as: itself where it is part of a word, or of a sign of two
    units, else a blank."""
    import numpy as np

    found = np.full(N_CODES, _BLANK, dtype=np.uint16)
    units = [ord(char) for char in WORD.findall(" ".join(map(chr, range(N_CODES))))]
    found[units] = units
    return found
