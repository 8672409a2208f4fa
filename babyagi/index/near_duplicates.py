"""Whether two texts say the same in nearly the same words.

Lexical, so a paraphrase without common words is another text. What distinguishes texts that look
alike must be equal in both: numbers, paths, quotes, names, single letters, and words that turn the
meaning round.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Set
from typing import Any

from babyagi.index.hashing import STOP_WORDS, HashEmbedder, split_words

# On the labelled pairs of the tests: the same said otherwise 0.80–1.00, something else 0.49–0.85
# where no mark differs.
NEAR_EQUAL = 0.93
# longer results repeat only what they equal; marks of a text without bound would cost time without
# bound
MAX_COMPARED_CHARS = 8000
MAX_ADDED_WORDS = 2  # that a result may have beyond the one it repeats: "already", "again"

_QUOTED = re.compile(r"\"([^\"]+)\"|“([^“”]+)”|`([^`]+)`|'([^']{3,})'")
_TURNING = frozenset(
    (
        "no nor not never without against before after above below up down off out under "
        "over more less most least first last"
    ).split()
)


def marks(text: str) -> frozenset[str]:
    """Return what must be equal in two texts that are called the same."""
    found = {part for quoted in _QUOTED.findall(text) for part in quoted if part}
    for place, word in enumerate(text.split()):
        bare = word.strip(".,;:!?()[]{}\"'`“”‘’")
        if len(bare) > 1 and bare.isalpha() and bare.islower():  # most words: no sign and no name
            if bare.casefold() in _TURNING:
                found.add(bare.casefold())
            continue
        is_sign = any(char.isdigit() or char in "/\\._@#" for char in bare) or (
            len(bare) == 1 and bare not in "aI&-–"
        )
        is_name = (
            place > 0
            and any(char.isupper() for char in bare)
            and not (bare.istitle() and bare.casefold() in STOP_WORDS)
        )
        if bare and (is_sign or is_name or bare.casefold() in _TURNING):
            found.add(bare.casefold() if not is_name else bare)
    return frozenset(found)


class NearDuplicates:
    """Compares texts, keeping what it found out about the latest `max_kept`."""

    def __init__(self, *, max_kept: int = 500) -> None:
        self._embedder = HashEmbedder()
        self._max_kept = max_kept
        self._signs_by_text: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self._vector_by_text: dict[str, tuple[float, ...]] = {}

    def are_near_equal(self, one: str, other: str) -> bool:
        (one_marks, one_words), (other_marks, other_words) = self._signs(one), self._signs(other)
        if one_marks != other_marks or 2 * len(one_words & other_words) < max(
            len(one_words), len(other_words)
        ):
            return False
        return (
            sum(a * b for a, b in zip(self._embed(one), self._embed(other), strict=True))
            >= NEAR_EQUAL
        )

    def is_repeat(self, text: str, earlier: str) -> bool:
        """Whether a result of any length brings nothing that the earlier one did not bring.

        In a long text one word is the news, whatever the cosine says: none may stand in the place
        of another one.
        """
        if text == earlier:
            return True
        if max(len(text), len(earlier)) > MAX_COMPARED_CHARS or not self.are_near_equal(
            text, earlier
        ):
            return False
        words, earlier_words = self._signs(text)[1], self._signs(earlier)[1]
        added, gone = (
            _without_forms(words - earlier_words, earlier_words),
            _without_forms(earlier_words - words, words),
        )
        return not added or (not gone and len(added) <= MAX_ADDED_WORDS)

    def _signs(self, text: str) -> tuple[frozenset[str], frozenset[str]]:
        """What must be equal, and the words: two texts that share less than half of them are never
        near-equal."""
        if text not in self._signs_by_text:
            self._signs_by_text[text] = marks(text), frozenset(split_words(text))
            _forget_oldest(self._signs_by_text, self._max_kept)
        return self._signs_by_text[text]

    def _embed(self, text: str) -> tuple[float, ...]:
        if text not in self._vector_by_text:
            packed = self._embedder.embed_text(text)
            self._vector_by_text[text] = struct.unpack(f"<{len(packed) // 4}f", packed)
            _forget_oldest(self._vector_by_text, self._max_kept)
        return self._vector_by_text[text]


def _without_forms(words: Set[str], others: Set[str]) -> Set[str]:
    """The words that no other one is a form of, by their common beginning: `continues` and
    `continuing`."""
    return {word for word in words if not any(_is_form(word, other) for other in others)}


def _is_form(word: str, other: str) -> bool:
    n_common = max(4, min(len(word), len(other)) - 2)
    return word[:n_common] == other[:n_common]


def _forget_oldest(kept: dict[str, Any], max_kept: int) -> None:
    if len(kept) > max_kept:
        del kept[next(iter(kept))]
