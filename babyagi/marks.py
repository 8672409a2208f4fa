"""Finds what identifies the subject of a text: codes, paths, addresses, numbers, quoted terms and
names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from babyagi.text import OPENING, sentences_of

_CLOSING = "\"'`)]}»›.,;:!?」』】。、।؟،"
_INVISIBLE = dict.fromkeys(
    [0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
_SIGNS = str.maketrans(
    {
        **_INVISIBLE,
        **dict.fromkeys("‘’ʼ", "'"),
        **dict.fromkeys("“”„", '"'),
        **dict.fromkeys("‐‑–−", "-"),
        "—": " - ",
        "…": " ",
    }
)
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGIT_ABROAD = re.compile(r"[^\D0-9]")
_NARROW_GROUPING = re.compile("(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
_QUOTES = frozenset("\"'`«「『")
_QUOTED = re.compile(
    r"(?<!\w)(?:\"([^\"]+)\"|`([^`]+)`)(?!\w)"
    r"|(?<![^\s(\[{])'([^']+)'(?=[.,;:!?)\]]*+(?:\s|$))|«([^«»]+)»|「([^「」]+)」|『([^『』]+)』"
)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,'][0-9]{3})+(?:\.[0-9]+)?")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?|[+-]?\.[0-9]+")
_UNITS = (
    "%|km|cm|mm|mi|kg|mg|lb|tb|gb|mb|kb|kwh|mwh|kw|ghz|mhz|hz|ms|min|hr|mph|kph|ml|usd|eur"
    "|gbp|am|pm|°c|°f"
)
_MEASURED = re.compile(rf"[$€£¥]?([+-]?[0-9.,']*[0-9])(?:{_UNITS})?")
_LISTED = re.compile("[,;]+")
_MAX_TERM_WORDS = 8  # a longer quotation is a passage, not a term
_CODE_SIGNS = frozenset("/\\_@#")
_SEPARATING = dict.fromkeys(map(ord, '|"`«»「」『』'), " ")


def find_marks(text: str) -> frozenset[str]:
    """Return the marks of a text: the codes, paths, addresses, numbers, quoted terms and proper
    names that identify its subject, folded.

    A number has no grouping and no unit (`1,200 km` gives `1200`). A name is a word with a capital
    that does not stand at the beginning of a sentence, or with a capital inside (`NASA`, `iPhone`).
    Names that stand together are returned as a whole and word by word. In languages that capitalize
    every noun, nouns are found as well; in scripts without capitals, names are not found.
    """
    found: set[str] = set()
    for line in text.splitlines():
        plain = _to_plain(line)
        if not _QUOTES.isdisjoint(plain):
            found.update(_quoted_terms(plain))
        for sentence in sentences_of(plain.translate(_SEPARATING).strip()):
            found.update(_marks_of(sentence))
    return frozenset(found)


def _quoted_terms(plain: str) -> Iterator[str]:
    for match in _QUOTED.finditer(plain):
        words = _tokens(next(part for part in match.groups() if part is not None))
        if 0 < len(words) <= _MAX_TERM_WORDS:
            yield " ".join(words)


def _marks_of(sentence: str) -> Iterator[str]:
    chunks = sentence.split()
    is_heading = _is_heading(chunks)
    is_start = True
    name: list[str] = []
    for chunk in chunks:
        word = _mark_word(chunk)
        is_name = not is_heading and _is_name(word, is_start=is_start)
        if is_name or (name and _NUMBER.fullmatch(word)):
            name += _tokens(word)
        elif _is_code(word):
            yield from _tokens(word)
        if name and (not is_name or chunk[-1] in ",;:.!?)*"):
            yield from {" ".join(name), *name}
            name = []
        is_start = chunk.endswith(":") or (is_start and not any(map(str.isalnum, chunk)))
    if name:
        yield from {" ".join(name), *name}


def _mark_word(chunk: str) -> str:
    """Return the chunk without punctuation, asterisks of emphasis and the ending of a
    possessive."""
    word = _strip_signs(_strip_signs(chunk).strip("*"))
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


def _is_name(word: str, *, is_start: bool) -> bool:
    """Return whether the form of the word shows a name. `I`, `I'm` and an initial are none."""
    letters = word.replace("-", "").replace("'", "")
    if len(letters) < 2 or not letters.isalpha():
        return False
    if not letters[1:].islower():
        # in a script without case no name can be seen
        return letters.casefold() != letters
    return letters[0].isupper() and not is_start and word[1].isalpha()


def _tokens(text: str) -> list[str]:
    """Return the words of a text in the form in which marks (codes, numbers, names) are compared:
    folded, without the punctuation around them, numbers in one form."""
    tokens: list[str] = []
    for chunk in text.translate(_SEPARATING).split():
        if chunk.isalpha():
            tokens.append(_fold(chunk))
        else:
            word = _mark_word(chunk)
            if word:
                tokens.extend(_parts(word))
    return tokens


def _parts(word: str) -> list[str]:
    """Split a word without blanks: `Oslo/Bergen` and `red,green` are two words, `src/main.py` is
    one."""
    folded = _fold(word)
    if number := _number(folded):
        return [number]
    if "/" in word and all(part[:1].isupper() for part in word.split("/")):
        return _tokens(word.replace("/", " "))
    if "," in word or ";" in word:
        return _tokens(_LISTED.sub(" ", word))
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
    `_tokens` takes only what `_to_plain` returned."""
    return _tokens(_to_plain(text))


def held_marks(text: str, marks: Iterable[str]) -> frozenset[str]:
    """Return those of the `marks` (codes, numbers, names) that the text contains."""
    read = MarkedText(text)
    return frozenset(mark for mark in marks if read.holds(mark_tokens(mark)))


# -- words, signs and numbers in one form
# --------------------------------------------------------------------------------------------------


def _to_plain(text: str) -> str:
    """Return the text with one form for each sign: NFKC, straight quotes, one kind of hyphen, ASCII
    digits, and `^2` for a superscript 2."""
    if text.isascii():
        return text
    raised = _RAISED.sub(lambda match: "^" + match.group(), text.translate(_SIGNS))
    plain = unicodedata.normalize("NFKC", _NARROW_GROUPING.sub(",", raised))
    return _DIGIT_ABROAD.sub(lambda match: str(unicodedata.decimal(match.group())), plain)


def _fold(word: str) -> str:
    """Return the word case-folded, but with `ß` unchanged, because `Maße` is not `Masse`."""
    return "ß".join(map(str.casefold, word.split("ß")))


def _strip_signs(chunk: str) -> str:
    """Return the chunk (a text without blanks) without the punctuation around it. Closing brackets
    stay if an opening bracket is inside the chunk."""
    bare = chunk.lstrip(OPENING)
    closing = "\"'`.,;:!?»" if "(" in bare or "[" in bare or "{" in bare else _CLOSING
    stripped = bare.rstrip(closing)
    is_factorial = stripped[-1:].isdigit() and bare[len(stripped) :].startswith("!")
    return stripped + "!" * is_factorial


def _number(word: str) -> str:
    """Return the number of a word, without thousands separators, currency sign and unit: `1200` of
    `$1,200` and `12` of `12km`; '' if the word is not a number."""
    match = _MEASURED.fullmatch(word)
    number = match[1] if match else ""
    if _GROUPED.fullmatch(number):
        return number.replace(",", "").replace("'", "")
    return number if _NUMBER.fullmatch(number) else ""
