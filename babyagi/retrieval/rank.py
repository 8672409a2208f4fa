"""Finds the parts of a text that are relevant to a question: splits the text into parts, ranks them
with BM25, and selects the best."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from babyagi.text import BM25_LENGTH_SHARE, BM25_SATURATION

PART_CHARS = 900
MAX_PART_LINES = 40
MAX_HEADING_CHARS = 120  # of each heading that is repeated with the parts below it
# A long line is divided into such pieces before it is cut into parts, so that the time grows only
# linearly with its length.
LINE_PIECE_CHARS = 50_000
_FENCES = ("```", "~~~")
_UNDERLINES = "=-~^*+#"
# scripts that have no blanks between words, or attach endings to words: Thai to Khmer, kana, Han,
# Hangul
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = "\u0300-\u036f\u064b-\u065f\u0900-\u0963\u0966-\u0dff"  # marks that are parts of words
# compiled when a text is first ranked: that takes 15 ms
_WORD = rf"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[\w{_MARKS}])+"
_IS_UNSPACED = f"[{_UNSPACED}]"
_MIN_STEM = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a text: consecutive lines, of which `first_line` is the number of the first one,
    counted from 1, and the headings above them, from the outermost on. A very long line is divided
    into several parts."""

    first_line: int
    lines: tuple[str, ...]
    headings: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines, below the headings that they do not begin with."""
        above = " > ".join(one for one in self.headings if one not in self.lines[0])
        return "\n".join(filter(None, [above, *self.lines]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The score of a text: the text's index in the list of texts, its score, and its share of the
    sum of all scores."""

    index: int
    score: float
    share: float


def split_parts(lines: Sequence[str], *, min_chars: int = PART_CHARS) -> Iterator[Part]:
    """Yield the parts of a text. A part ends before a heading, unless it is only the heading above
    that one; at a blank line once it has `min_chars`; and before a line with which it would have
    more than `PART_CHARS`. The time grows linearly with the length of the text."""
    headings: dict[int, str] = {}
    held: list[str] = []
    is_code = False
    bare = 0  # the level of a heading below which no text stands yet

    def part(first_line: int, texts: Sequence[str]) -> Part:
        above = tuple(headings[level] for level in sorted(headings))
        return Part(first_line=first_line, lines=tuple(texts), headings=above)

    for n, line in enumerate([*lines, ""], start=1):
        is_code ^= line.lstrip().startswith(_FENCES)
        heading = None if is_code else _read_heading(line, lines[n] if n < len(lines) else "")
        n_held = sum(map(len, held))
        is_full = n_held + len(line) > PART_CHARS or len(held) >= MAX_PART_LINES
        ends = (heading and not 0 < bare < heading[0]) or n > len(lines) or is_full
        if held and (ends or (n_held >= min_chars and not line.strip())):
            yield part(n - len(held), held)
            held = []
        if heading:
            headings = {level: name for level, name in headings.items() if level < heading[0]}
            headings[heading[0]] = heading[1][:MAX_HEADING_CHARS]
        if line.strip():
            bare = heading[0] if heading else 0
        if len(line) > PART_CHARS:
            yield from (part(n, [piece]) for piece in _cut_line(line))
        elif line.strip() or held:
            held.append(line)


def _cut_line(line: str) -> Iterator[str]:
    for at in range(0, len(line), LINE_PIECE_CHARS):
        yield from cut_pieces(line[at : at + LINE_PIECE_CHARS].strip(), PART_CHARS)


def _read_heading(line: str, following: str) -> tuple[int, str] | None:
    """Return the level and the text of a heading of Markdown, AsciiDoc or MediaWiki, or one that
    the `following` line underlines; None if the line is no heading."""
    bare, drawn = line.lstrip(" "), following.rstrip()
    name = bare.lstrip(bare[:1])
    level = len(bare) - len(name)
    is_hashed = bare.startswith("#") and len(line) - len(bare) <= 3 and name[:1].isspace()
    if (is_hashed or line.startswith("=")) and level <= 6 and name.strip():
        return level, name.strip().strip(" #=")
    is_drawn = drawn[:1] in _UNDERLINES and drawn == drawn[:1] * len(drawn)
    if line[:1].isalnum() and is_drawn and len(drawn) >= max(3, len(line.strip())):
        return 1 if drawn.startswith("=") else 2, line.strip()
    return None


def cut_pieces(paragraph: str, max_chars: int) -> list[str]:
    """Cut a text into pieces of at most `max_chars` characters: at the ends of lines or sentences
    if possible, else at blanks, else anywhere."""
    pieces: list[str] = []
    while len(paragraph) > max_chars:
        ends = (paragraph.rfind(sign, 0, max_chars) + 1 for sign in (". ", "。", "।", "؟", "！"))
        at = max(paragraph.rfind("\n", 0, max_chars), *ends)
        at = at if at > max_chars // 3 else paragraph.rfind(" ", 0, max_chars)
        at = at if at > max_chars // 3 else max_chars
        pieces.append(paragraph[:at].strip())
        paragraph = paragraph[at:].strip()
    return [*pieces, paragraph] if paragraph else pieces


class Ranker(Protocol):
    """Scores how relevant texts are to a question. `examples/cross_encoder.py` is another one."""

    def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text, in the order of `texts`: 0 for a text that is not relevant,
        and a higher score for a more relevant text. May block while a model runs.

        Raises:
            ToolError: the ranker cannot be used.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The words of a text in a form in which they can be counted for many questions, without
    splitting the text again."""

    joined: str  # all words, each with its own blank before and after it
    n_words: int

    def count(self, word: str) -> int:
        return self.joined.count(f" {word} ")


def count_words(text: str) -> Counted:
    words = _words(text)
    return Counted(joined="".join(f" {word} " for word in words), n_words=len(words))


def score_words(question: str, texts: Sequence[Counted]) -> list[float]:
    """Return the BM25 score of each text for the question. It is 0 if the text has none of the
    question's words; words that are in few texts count more."""
    scores = [0.0] * len(texts)
    mean_length = sum(text.n_words for text in texts) / (len(texts) or 1) or 1.0
    for word in sorted(set(_words(question))):
        found = [(at, n) for at, text in enumerate(texts) if (n := text.count(word))]
        n_with, n_without = len(found), len(texts) - len(found)
        weight = math.log(1 + (n_without + 0.5) / (n_with + 0.5))
        for at, n in found:
            relative_length = texts[at].n_words / mean_length
            length = 1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * relative_length
            scores[at] += weight * (n * (BM25_SATURATION + 1) / (n + BM25_SATURATION * length))
    return scores


class Bm25:
    """A `Ranker` that scores texts with BM25 (see `score_words`)."""

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        return score_words(question, [count_words(text) for text in texts])


BM25 = Bm25()


def rank(question: str, texts: Sequence[str], *, ranker: Ranker = BM25) -> list[Scored]:
    """Score the texts with the ranker. Return the scores above 0, the highest first; texts with the
    same score keep their order."""
    scores = ranker.score(question, texts)
    total = sum(scores) or 1.0
    relevant = [(at, score) for at, score in enumerate(scores) if score > 0]
    found = [Scored(index=at, score=score, share=score / total) for at, score in relevant]
    return sorted(found, key=lambda one: (-one.score, one.index))


def _words(text: str) -> list[str]:
    """Return the words of a text, case-folded and without English endings such as `s` and `ing`. In
    scripts without blanks, each pair of neighbouring characters counts as a word."""
    words: list[str] = []
    for word in re.findall(_WORD, unicodedata.normalize("NFKC", text).casefold()):
        words += _pairs(word) if re.match(_IS_UNSPACED, word) else [_stem(word)]
    return words


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word.removesuffix(ending)
    return word


def scored(scores: Sequence[float]) -> list[Scored]:
    """Return given scores, such as the logits of a model, with the softmax of all as their shares,
    the highest first."""
    highest = max(scores, default=0.0)
    weights = [math.exp(score - highest) for score in scores]
    total = sum(weights)
    found = [
        Scored(index=at, score=score, share=weights[at] / total) for at, score in enumerate(scores)
    ]
    return sorted(found, key=lambda one: (-one.score, one.index))


def top_p(ranked: Sequence[Scored], p: float, *, min_top_k: int = 1) -> list[Scored]:
    """Return the fewest of the first ranked texts whose shares add up to at least `p`, but at least
    `min_top_k`; all, if the shares do not add up to it."""
    reached = accumulate(one.share for one in ranked)
    n_kept = next((n for n, share in enumerate(reached, 1) if share >= p - 1e-9), len(ranked))
    return list(ranked[: max(n_kept, min_top_k)])
