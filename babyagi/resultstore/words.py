"""How much of what is asked stands in a text, letter by letter: pieces of three characters, in its best passage and in the whole.

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
N_CLOSE = 40  # texts whose passages are looked at one by one: the best by the whole
PASSAGE_SHARE = 0.8  # of a score; what is left is for the whole text
_GAP = re.compile(r"[\W_]+")
_PASSAGE_END = re.compile(r"(?<=[.!?…])\s+|\n+")


class Words:
    """What is asked, to be compared with any number of texts.

    Args:
        text: what is asked. background: what it is asked for, which counts a quarter.
    """

    def __init__(self, text: str, *, background: str = "") -> None:
        weights = dict.fromkeys(_pieces(background), BACKGROUND_WEIGHT) | dict.fromkeys(_pieces(text), 1.0)
        self._weights = dict(sorted(weights.items(), key=lambda entry: -entry[1])[:MAX_PIECES])

    def score(self, texts: Sequence[str]) -> list[float]:
        """A score for each text, from 0 to 1: mostly how much of what is asked stands in its best passage, for the rest BM25 of the whole.

        How rare a piece is, is taken from these texts, so scores compare among them only.
        """
        split = [split_passages(text[:MAX_CHARS]) for text in texts]
        folded = ["".join(map(fold, passages)) for passages in split]
        rarities, scores = self._score_whole(folded)
        best = sorted(range(len(texts)), key=lambda place: -scores[place])[:N_CLOSE]
        for place in best:
            close = self._score_passages([fold(passage) for passage in split[place]], rarities)
            scores[place] = (1 - PASSAGE_SHARE) * scores[place] + PASSAGE_SHARE * close
        for place in set(range(len(texts))) - set(best):
            scores[place] *= 1 - PASSAGE_SHARE
        return scores

    def score_passages(self, passages: Sequence[str]) -> list[float]:
        """A score for each passage of one text, from 0 to 1."""
        return self._score_whole([fold(passage) for passage in passages])[1]

    def _score_whole(self, folded: Sequence[str]) -> tuple[dict[str, float], list[float]]:
        """How rare each piece is, and BM25 of each text over the most that it could be."""
        mean_chars = sum(map(len, folded)) / max(1, len(folded))
        lengths = [1 - LENGTH_SHARE + LENGTH_SHARE * len(text) / mean_chars for text in folded]
        scores = [0.0] * len(folded)
        rarities = {}
        for piece, weight in self._weights.items():
            counts = [text.count(piece) for text in folded]
            n_having = len(counts) - counts.count(0)
            rarity = rarities[piece] = weight * math.log(1 + (len(counts) - n_having + 0.5) / (n_having + 0.5))
            for place, n in enumerate(counts):
                if n:
                    scores[place] += rarity * n / (n + SATURATION * lengths[place])
        most = sum(rarities.values())
        return rarities, [score / most for score in scores] if most else scores

    def _score_passages(self, folded: Sequence[str], rarities: Mapping[str, float]) -> float:
        """How much of what is asked stands in the best of them."""
        most = sum(rarities.values())
        met = [sum(rarity for piece, rarity in rarities.items() if piece in passage) for passage in folded]
        return max(met, default=0.0) / most if most else 0.0


def split_passages(text: str) -> list[str]:
    """Its sentences and lines, without empty ones."""
    return [passage for passage in _PASSAGE_END.split(text) if passage.strip()]


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
