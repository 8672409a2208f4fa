"""Finds out what the names of tasks are about, by their words: "Find the height of Oak Hill, given
its map" is about the height of Oak Hill.

A subject is found in a question, or in a text that says what is lacking, if its words stand there
close together, in any order. This is lexical: the same subject in other words is not found.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from babyagi.index.hashing import STOP_WORDS, WORD
from babyagi.index.trigrams import fold
from babyagi.names import VERBS

SHARE = 0.8  # so much of a subject, weighted by rarity, must stand together
N_CACHED = 4000
MAX_BARE_CHARS = 300  # a longer result is not told of two things in the same words by chance
MIN_SUBJECT_WORDS = 2

# `K-17` is one word; as two words, `M-17` would match half of it
_CODE = r"(?=[^\W_]*[-_/#.]?[^\W_]*\d)[^\W_]+(?:[-_/#.][^\W_]+)+"
_WORD_OR_BREAK = re.compile(f'({_CODE}|{WORD.pattern})|[,;:.!?()\\[\\]"«»“”\n]')
_DIGIT = re.compile(r"\d")
# Words after which a name no longer states its subject.
_TAKING = re.compile(
    r"[;([]|,(?= (?:\w+(?:ed|ing)|given|if|with|which|that|who|where|as|from|by)\b)"
    r"|(?<!\S)(?:given|giving|knowing|if|using|with|needs?|needing|takes?|requires?|depends?"
    r"|builds?|based|from(?= \S*\d))\b(?![-./]\w)"
)
_MEASURING = re.compile(
    r"\bhow (?:much|many|large|big|small|long|short|tall|high|low|old|far|deep|wide|heavy"
    r"|fast|often|great)\b"
)
_ASKING = frozenset(
    "s ask tell say know knowing take takes require requires depend depends build builds "
    "giving find determine identify establish get look"
    " research obtain compute calculate work task use used using need needs needed given "
    "give based value".split()
)


@lru_cache(maxsize=N_CACHED)
def phrases(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the phrases of a text: the runs of words between stop words and punctuation. Words
    lose the ending of an English plural."""
    return _split(fold(text))


@lru_cache(maxsize=N_CACHED)
def _split(folded: str) -> tuple[tuple[str, ...], ...]:
    found: list[tuple[str, ...]] = [()]
    for match in _WORD_OR_BREAK.finditer(folded):
        word = match[0]
        if not match[1] or word in STOP_WORDS or word in _ASKING:
            found.append(())
        else:
            found[-1] += (
                word[:-1]
                if len(word) > 3 and word.endswith("s") and not word.endswith("ss")
                else word,
            )
    return tuple(phrase for phrase in found if phrase)


@lru_cache(maxsize=N_CACHED)
def content(text: str) -> tuple[str, ...]:
    """Return the words of all phrases of a text, without the adjective in a question such as "how
    large"."""
    return tuple(chain.from_iterable(_split(_MEASURING.sub(" ", fold(text)))))


@lru_cache(maxsize=N_CACHED)
def head(name: str) -> str:
    """Return the beginning of the name, up to where it says what the work is based on ("given its
    map"). If that does not identify a subject, return the whole name."""
    first = _TAKING.split(fold(name), maxsplit=1)[0]
    return first if len(content(first)) > 1 or _DIGIT.search(first) else name


@lru_cache(maxsize=N_CACHED)
def _words_of(name: str) -> frozenset[str]:
    """Return the words of a name and of its `head`. Taken alone, the head may have words that the
    whole name does not have."""
    return frozenset((*content(name), *content(head(name))))


def says_its_subject(text: str, name: str) -> bool:
    """Return whether a result says by itself what it is about, so that the same words as the result
    of another task say the same: it is long, or contains at least half of the words of its task's
    name. "Nothing unusual was found" is said of many things."""
    if len(text) > MAX_BARE_CHARS:
        return True
    words = frozenset(content(head(name)))
    return 2 * len(words.intersection(content(text))) >= len(words)


def names_subject(name: str, other: str) -> bool:
    """Return whether a task's name contains all words of what another task, named `other`, is
    about: "Double-check the tower's height" names the subject of "Find the tower's height"."""
    return frozenset(content(head(other))) - VERBS <= frozenset(content(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A subject that was found in a text.

    Attributes:
        place: the index of the name whose subject it is.
        share: how much of the subject the text contains there, from 0 to 1.
        span: where it stands in the list of the text's words.
    """

    place: int
    share: float
    span: range


class Subjects:
    """Finds the subjects of given names in texts. Words that few of the names contain count more.

    If a name contains the subject of an earlier name, its own subject ends there: after "Find B",
    "A, weighed against B" is about A.

    Args:
        names: oldest first, because a name mentions subjects of earlier names.
    """

    def __init__(self, names: Sequence[str]) -> None:
        n_by_word = Counter(chain.from_iterable(map(_words_of, names)))
        weight_by_n = {n: math.log(1 + len(names) / n) for n in set(n_by_word.values())}
        self._weight_by_word = {word: weight_by_n[n] for word, n in n_by_word.items()}
        self.subjects: list[tuple[str, ...]] = []
        self._words_of: list[frozenset[str]] = []
        known: dict[str, set[frozenset[str]]] = defaultdict(set)  # subjects by their rarest word
        for name in names:
            words = content(head(name))
            earlier = [one for word in words if word in known for one in known[word]]
            subject = _without(words, earlier) if earlier else words
            self.subjects.append(subject)
            self._words_of.append(frozenset(subject))
            if subject:
                known[min(subject, key=n_by_word.__getitem__)].add(self._words_of[-1])

    def find(self, text: str) -> list[Found]:
        """Return the subjects that occur in the text, each at its best place. The one with the
        largest share comes first."""
        words = content(text)
        known = frozenset(words)
        found = [
            self._look(place, words)
            for place, subject in enumerate(self._words_of)
            if not known.isdisjoint(subject)
            and self._weigh(subject & known) >= SHARE * self._weigh(subject)
        ]
        return sorted(
            (one for one in found if one.share >= SHARE),
            key=lambda one: (-one.share, -len(one.span), one.place),
        )

    def _weigh(self, words: Iterable[str]) -> float:
        """Return the sum of the weights of these words. The sum does not depend on order."""
        return math.fsum(map(self._weight_by_word.__getitem__, words))

    def _look(self, place: int, words: Sequence[str]) -> Found:
        """Return the range of `words` that contains most words of subject number `place`, with no
        other word in between."""
        wanted, n_words = self._words_of[place], len(self.subjects[place])
        whole = self._weigh(wanted)
        best, span = 0.0, range(0)
        for run in _runs(words, wanted):
            for start in range(run.start, max(run.start + 1, run.stop - n_words + 1)):
                part = range(start, min(run.stop, start + n_words))
                share = self._weigh(frozenset(words[part.start : part.stop])) / whole
                best, span = (share, part) if share > best else (best, span)
        return Found(place=place, share=best, span=span)


def _runs(words: Sequence[str], wanted: Collection[str]) -> Iterator[range]:
    """Yield each range of consecutive words that are all wanted."""
    start = None
    for at, word in enumerate([*words, ""]):
        if word in wanted:
            start = at if start is None else start
        elif start is not None:
            yield range(start, at)
            start = None


def _without(words: tuple[str, ...], known: Iterable[frozenset[str]]) -> tuple[str, ...]:
    """Return the words of a name without the known subjects in it: the words before the first one
    or, if the name begins with one, those after the last one."""
    there = frozenset(words)
    spans = [
        (start, start + len(subject))
        for subject in known
        if 1 < len(subject) < len(words) and subject < there
        for start in range(len(words) - len(subject) + 1)
        if subject.issuperset(words[start : start + len(subject)])
    ]
    if not spans:
        return words
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    return words[:start] if start >= MIN_SUBJECT_WORDS else words[end:] or words
