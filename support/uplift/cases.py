"""A question about a folder with its exact key, and the judge that looks the key up in an answer.

Values are looked up byte for byte, in texts whose form is made the same: width and case of letters,
dashes, blanks, separators of thousands. Words of prose decide nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.uplift.languages import NONE

_DASHES = re.compile("[\u2010-\u2015\u2212]")
_THOUSANDS = re.compile(r"(?<=\d)[.,'’ ](?=\d{3}(?!\d))")
_CITED_LINES = re.compile(r"[:#]L?\d+(?:-\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A sentence that the answer needs. `subject` names what it is about, without the value;
    `after` holds the places of the facts without which nobody knows that this one is needed."""

    sentence: str
    path: str
    subject: str
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """Values that an answer must hold, and values that make it wrong."""

    marks: tuple[str, ...]
    forbidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A question about a folder.

    Attributes:
        kind: `one`, `join`, `count`, `compare`, `absent`, `letter` or `persons`.
        answer: a right answer.
        is_small: whether the whole folder fits into one prompt.
        depth: of `persons`, how many look-ups follow one another; else how many files the facts
            stand in.
    """

    name: str
    kind: str
    language: str
    question: str
    text_by_path: Mapping[str, str]
    facts: tuple[Fact, ...]
    key: Key
    answer: str
    is_small: bool
    depth: int

    @property
    def n_files(self) -> int:
        """In how many files the facts stand."""
        return len({fact.path for fact in self.facts})

    def write(self, folder: Path) -> None:
        for path, text in self.text_by_path.items():
            (folder / path).write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How many marks an answer holds, and how many values that make it wrong."""

    n_marks: int
    n_held: int
    n_forbidden: int

    @property
    def is_right(self) -> bool:
        return self.n_held == self.n_marks and not self.n_forbidden

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall of the values in the answer."""
        return 2 * self.n_held / (self.n_held + self.n_forbidden + self.n_marks)


def judge(case: Case, answer: str) -> Judgement:
    """Look the key up in the answer. The question in its own words and the names of files are no
    answer, and are left out first."""
    text = answer.replace(case.question, "")
    for path in sorted(case.text_by_path, key=len, reverse=True):
        text = re.sub(f"{re.escape(path)}(?:{_CITED_LINES.pattern})?", "", text)
    forms = tuple(_forms(text))

    def count(values: Iterable[str]) -> int:
        return sum(any(_holds(form, value) for form in forms) for value in values)

    marks, forbidden = case.key.marks, case.key.forbidden
    return Judgement(n_marks=len(marks), n_held=count(marks), n_forbidden=count(forbidden))


def _forms(text: str) -> Iterator[str]:
    """Yield the text as it is compared: with separators of thousands, and without."""
    even = _DASHES.sub("-", unicodedata.normalize("NFKC", text))
    even = " ".join(even.split())
    yield even
    yield _THOUSANDS.sub("", even)


def _holds(text: str, value: str) -> bool:
    """Whether the value stands in the text by itself: a number is no part of another number, and a
    value in Latin letters does not begin within a word. `NONE` is looked up as it is written."""
    value = " ".join(unicodedata.normalize("NFKC", value).split())
    if value == NONE:
        return re.search(rf"(?<!\w){NONE}(?!\w)", text) is not None
    before = (
        r"(?<![0-9A-Za-z\u00c0-\u024f])" if re.match(r"[0-9A-Za-z\u00c0-\u024f]", value) else ""
    )
    before += r"(?<!\d[.,])" if value[0].isdigit() else ""
    after = r"(?!\d)(?![.,]\d)" if value[-1].isdigit() else ""
    return re.search(f"{before}{re.escape(value)}{after}", text, re.IGNORECASE) is not None
