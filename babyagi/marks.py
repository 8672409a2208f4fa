"""Finds what identifies the subject of a text: codes, paths, addresses, numbers, quoted terms and
names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from babyagi.names import (
    LISTED,
    NUMBER,
    QUOTED,
    QUOTES,
    VERBS,
    fold,
    split_measure,
    stem,
    strip_signs,
    to_plain,
)
from babyagi.text import OPENING, sentences_of

_MAX_TERM_WORDS = 8  # a longer quotation is a passage, not a term
_PARTICLES = frozenset("of de van von der den la le du da di del al bin ibn".split())
# Words that are not names although they may be written with a capital: at the beginning of a
# sentence, before a name, or elsewhere.
_NO_NAMES = frozenset(
    "i the a an and or but if in on at by for with from to into it its this that these "
    "those there here he she they we you my our your his"
    " her their not no yes as so is are was were be do does did has have had all any "
    "some each every both either when where what who which"
    " why how please step task note answer result results source sources lacking part "
    "table figure chapter section consider discuss assume"
    " suppose contact mention see avoid keep let many several most however therefore "
    "according since while although unlike like today"
    " yesterday finally overall additionally furthermore moreover also thus hence "
    "meanwhile other such one two three dear total based given"
    " using including located former current new old then now after before during until "
    "about between over under more less only even"
    " because through without within against per can could will would should may might must".split()
)
_CODE_SIGNS = frozenset("/\\_@#")
_SEPARATING = dict.fromkeys(map(ord, '|"`«»「」『』'), " ")


def find_marks(text: str) -> frozenset[str]:
    """Return the marks of a text: the codes, paths, addresses, numbers, quoted terms and proper
    names that identify its subject, folded.

    A number has no grouping and no unit (`1,200 km` gives `1200`). A name of several words is
    returned as a whole and word by word. A name at the beginning of a sentence is missed unless
    another capital, a possessive or its own case shows that it is one. In languages that capitalize
    every noun, nouns are found as well; in scripts without capitals, names are not found.
    """
    found: set[str] = set()
    for line in text.splitlines():
        plain = to_plain(line)
        if not QUOTES.isdisjoint(plain):
            found.update(_quoted_terms(plain))
        for sentence in sentences_of(plain.translate(_SEPARATING).strip()):
            found.update(_marks_of(sentence))
    return frozenset(found)


def _quoted_terms(plain: str) -> Iterator[str]:
    for match in QUOTED.finditer(plain):
        words = _tokens(next(part for part in match.groups() if part is not None))
        if 0 < len(words) <= _MAX_TERM_WORDS:
            yield " ".join(words)


def _marks_of(sentence: str) -> Iterator[str]:
    chunks = sentence.split()
    is_heading = _is_heading(chunks)
    run: list[str] = []
    for at, chunk in enumerate(chunks):
        if not run and chunk.isalpha() and chunk.islower():
            continue  # most words: neither a name nor a code
        word = _mark_word(chunk)
        is_name = not is_heading and _is_name(word, at, chunks)
        is_number = NUMBER.fullmatch(word) is not None
        if is_name or (run and is_number):
            run += _tokens(word)
        elif run and word in _PARTICLES and chunks[at + 1 : at + 2] and chunks[at + 1][0].isupper():
            run.append(word)
            continue
        if run and (not is_name or chunk[-1] in ",;:.!?)*"):
            yield from _names(run)
            run = []
        if not is_name and _is_code(word):
            yield from _tokens(word)
    yield from _names(run)


def _names(run: list[str]) -> Iterator[str]:
    """Yield a name of one or more words (`run`) as a whole, then each of its words."""
    if run[-1:] and run[-1] in _PARTICLES:
        run = run[:-1]
    if run:
        yield " ".join(run)
    yield from (word for word in run if word not in _PARTICLES)


def _mark_word(chunk: str) -> str:
    """Return the chunk without punctuation, asterisks of emphasis and the ending of a
    possessive."""
    word = strip_signs(strip_signs(chunk).strip("*"))
    return word[:-2] if word.endswith(("'s", "'S")) else word


def _is_code(word: str) -> bool:
    """Return whether the word contains a digit, or a sign that ordinary words do not have: `a_b`,
    `#tag`, `file.py`."""
    is_dotted = "." in word.strip(".") and len(word) > 3
    return is_dotted or any(map(str.isdigit, word)) or not _CODE_SIGNS.isdisjoint(word)


def _is_heading(chunks: list[str]) -> bool:
    """Return whether all longer words have a capital, so that capitals do not show which words are
    names."""
    long = [chunk for chunk in chunks if len(chunk) > 3 and chunk[0].isalpha()]
    return (
        len(long) > 3
        and all(chunk[0].isupper() for chunk in long)
        and not any("," in chunk for chunk in chunks)
    )


def _is_name(word: str, at: int, chunks: list[str]) -> bool:
    letters = word.replace("-", "").replace("'", "")
    if (
        len(letters) < 2
        or letters.islower()
        or not letters.isalpha()
        or letters.casefold() in _NO_NAMES
    ):
        return False
    if not letters[1:].islower():
        # NASA, iPhone; in a script without case no name can be seen
        return letters.casefold() != letters
    if at > 0:
        return letters[0].isupper()
    if stem(letters.casefold()) in VERBS:
        return False
    is_owner = chunks[0].rstrip(".,;:!?)*").casefold().endswith("'s")
    return is_owner or (
        chunks[0][-1].isalpha()
        and len(chunks) > 1
        and chunks[1].lstrip("*" + OPENING)[:1].isupper()
    )


def _tokens(text: str) -> list[str]:
    """Return the words of a text in the form in which marks (codes, numbers, names) are compared:
    folded, without the punctuation around them, numbers in one form."""
    tokens: list[str] = []
    for chunk in text.translate(_SEPARATING).split():
        if chunk.isalpha():
            tokens.append(fold(chunk))
        else:
            word = _mark_word(chunk)
            if word:
                tokens.extend(_parts(word))
    return tokens


def _parts(word: str) -> list[str]:
    """Split a word without blanks: `Oslo/Bergen` and `red,green` are two words, `src/main.py` is
    one."""
    folded = fold(word)
    number = next((part for part in split_measure(folded) if part[-1].isdigit()), "")
    if number:
        return [number]
    if "/" in word and all(part[:1].isupper() for part in word.split("/")):
        return _tokens(word.replace("/", " "))
    if "," in word or ";" in word:
        return _tokens(LISTED.sub(" ", word))
    return [folded] if _is_code(word) else [part for part in folded.split("-") if part]


class MarkedText:
    """A text in which marks (codes, numbers, names) are looked up as whole words, also across line
    breaks."""

    def __init__(self, text: str) -> None:
        tokens = mark_tokens(text)
        self._known = frozenset(tokens)
        self._joined = f" {' '.join(tokens)} "

    def holds(self, wanted: Sequence[str]) -> bool:
        """Return whether the text contains a mark (a code, number or name); `wanted` is what
        `mark_tokens` returns for the mark."""
        return (
            self._known.issuperset(wanted)
            and bool(wanted)
            and (len(wanted) == 1 or f" {' '.join(wanted)} " in self._joined)
        )


def mark_tokens(text: str) -> list[str]:
    """Return the words of any text in the form in which marks (codes, numbers, names) are compared;
    `_tokens` takes only what `to_plain` returned."""
    return _tokens(to_plain(text))


def held_marks(text: str, marks: Iterable[str]) -> frozenset[str]:
    """Return those of the `marks` (codes, numbers, names) that the text contains."""
    read = MarkedText(text)
    return frozenset(mark for mark in marks if read.holds(mark_tokens(mark)))
