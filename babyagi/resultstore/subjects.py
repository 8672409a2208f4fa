"""What names of tasks are about, by their words alone: "Find the height of Oak Hill, given its map" is about the height of Oak Hill.

A subject is looked for in what somebody asks or lacks: its words must stand there close together, in any order. It is lexical: a subject
in other words is another one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from babyagi.resultstore.hashing import STOP_WORDS, WORD
from babyagi.resultstore.words import fold

SHARE = 0.8  # of the words of a subject that must stand together, rare ones counting more
N_CACHED = 4000

_CODE = r"(?=[^\W_]*[-_/#.]?[^\W_]*\d)[^\W_]+(?:[-_/#.][^\W_]+)+"  # `K-17`, one word, else `M-17` would have half of it
_WORD_OR_BREAK = re.compile(f'({_CODE}|{WORD.pattern})|[,;:.!?()\\[\\]"«»“”\n]')
_DIGIT = re.compile(r"\d")
# What a name says behind its subject, and the adjective of a question for a measure.
_TAKING = re.compile(
    r"[,;:([]|\b(?:given|giving|knowing|if|using|with|without|needs?|needing|takes?|requires?|depends?|builds?|based|from(?= \S*\d))\b"
)
_MEASURING = re.compile(r"\bhow (?:much|many|large|big|small|long|short|tall|high|low|old|far|deep|wide|heavy|fast|often|great)\b")
_ASKING = frozenset(
    "s ask tell say know knowing take takes require requires depend depends build builds giving find determine identify establish get look"
    " research obtain compute calculate work task use used using need needs needed given give based value".split()
)


def phrases(text: str) -> list[tuple[str, ...]]:
    """Return what stands between the commonest words and the signs of punctuation: words without the ending of an English plural."""
    found: list[tuple[str, ...]] = [()]
    for match in _WORD_OR_BREAK.finditer(fold(text)):
        word = match[0]
        if not match[1] or word in STOP_WORDS or word in _ASKING:
            found.append(())
        else:
            found[-1] += (word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word,)
    return [phrase for phrase in found if phrase]


@lru_cache(maxsize=N_CACHED)
def content(text: str) -> tuple[str, ...]:
    """Return the words of all phrases, without the adjective of a question such as "how large"."""
    return tuple(stem for phrase in phrases(_MEASURING.sub(" ", fold(text))) for stem in phrase)


@lru_cache(maxsize=N_CACHED)
def head(name: str) -> str:
    """Return the name up to where it says what its subject takes, where that is enough to know the subject by."""
    first = _TAKING.split(fold(name), maxsplit=1)[0]
    return first if len(content(first)) > 1 or _DIGIT.search(first) else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A subject in a text: whose it is (the place of its name), how much of it stands there, and on which of the text's words."""

    place: int
    share: float
    span: range


class Subjects:
    """What some names are about, to be looked for in texts. A word that few of the names have counts more."""

    def __init__(self, names: Sequence[str]) -> None:
        self._subjects = [content(head(name)) for name in names]
        self._n_by_word = Counter(word for name in names for word in set(content(name)))

    def find(self, text: str) -> list[Found]:
        """Return the subjects that stand in the text, each at its best place, most of it first."""
        words = content(text)
        known = frozenset(words)
        found = [self._look(place, subject, words) for place, subject in enumerate(self._subjects) if not known.isdisjoint(subject)]
        return sorted((one for one in found if one.share >= SHARE), key=lambda one: (-one.share, -len(one.span), one.place))

    def weigh(self, words: Iterable[str]) -> float:
        return sum(math.log(1 + len(self._subjects) / max(1, self._n_by_word[word])) for word in sorted(words))

    def _look(self, place: int, subject: Sequence[str], words: Sequence[str]) -> Found:
        wanted = frozenset(subject)
        whole = self.weigh(wanted)
        if self.weigh(wanted.intersection(words)) < SHARE * whole:
            return Found(place=place, share=0.0, span=range(0))
        n = min(len(subject), len(words))
        spans = [range(start, start + n) for start in range(len(words) - n + 1)]
        shares = [self.weigh(wanted.intersection(words[span.start : span.stop])) / whole for span in spans]
        best = max(range(len(spans)), key=lambda at: (shares[at], -at))
        return Found(place=place, share=shares[best], span=spans[best])
