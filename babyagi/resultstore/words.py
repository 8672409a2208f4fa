"""How much of what is asked stands in a text, letter by letter: BM25 over pieces of three characters.

A piece is met wherever it stands, so misspelt and inflected words count for what is left of them. It is lexical: other words for the
same thing count nothing.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence

from babyagi.resultstore.hashing import split_words

MAX_CHARS = 8_000  # of a text that are looked at; 100 texts of 1,000 take about 5 ms
MAX_PIECES = 120  # of what is asked
SATURATION = 1.2  # BM25's k1: how soon a further occurrence counts no more
LENGTH_SHARE = 0.75  # BM25's b: how far a long text must hold more to count as much
BACKGROUND_WEIGHT = 0.25
_GAP = re.compile(r"[\W_]+")


class Words:
    """What is asked, to be compared with any number of texts.

    Args:
        text: what is asked. background: what it is asked for, which counts a quarter.
    """

    def __init__(self, text: str, *, background: str = "") -> None:
        weights = dict.fromkeys(_pieces(background), BACKGROUND_WEIGHT) | dict.fromkeys(_pieces(text), 1.0)
        self._weights = dict(sorted(weights.items(), key=lambda entry: -entry[1])[:MAX_PIECES])

    def score(self, texts: Sequence[str]) -> list[float]:
        """A score for each text, from 0 to 1. How rare a piece is, is taken from these texts, so scores compare among them only."""
        folded = [fold(text) for text in texts]
        mean_chars = sum(map(len, folded)) / max(1, len(folded))
        scores = [0.0] * len(folded)
        most = 0.0
        for piece, weight in self._weights.items():
            counts = [text.count(piece) for text in folded]
            n_having = len(counts) - counts.count(0)
            rarity = weight * math.log(1 + (len(counts) - n_having + 0.5) / (n_having + 0.5))
            most += rarity * (SATURATION + 1)
            for place, n in enumerate(counts):
                if n:
                    length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(folded[place]) / mean_chars
                    scores[place] += rarity * n * (SATURATION + 1) / (n + SATURATION * length)
        return [score / most for score in scores] if most else scores


def fold(text: str) -> str:
    """The words of a text alone, with blanks between and around them, in one case."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold()
    return f" {_GAP.sub(' ', folded).strip()} "


def _pieces(text: str) -> Mapping[str, None]:
    """Every three characters in a row within its words, their ends marked by blanks; a dictionary for the order."""
    words = split_words(text)
    return {f" {word} "[start : start + 3]: None for word in words for start in range(len(word))}


def searchable(text: str, *, limit: int) -> list[str]:
    """The words of a text that a full-text search can look for, the longest first: letters and digits only."""
    words = {part for word in split_words(text) for part in _GAP.sub(" ", word).split()}
    return sorted(words, key=lambda word: (-len(word), word))[:limit]
