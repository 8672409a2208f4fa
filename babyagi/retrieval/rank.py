"""Which parts of documents bear on a question: split, rank by words (BM25), keep the best."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from babyagi.text import BM25_LENGTH_SHARE, BM25_SATURATION

PART_CHARS = 900
MAX_HEADING_CHARS = 120  # that each part below it is given
MAX_LEVEL = 6
_WORD = re.compile(r"\w+")
_MIN_STEM = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a document: the headings above it, and its text. `index` is its number among the
    parts of the document."""

    index: int
    headings: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """The place of a text among the ranked ones, its score, and its share of all scores; the shares
    add up to 1."""

    index: int
    score: float
    share: float


def split_parts(markdown: str, *, max_chars: int = PART_CHARS) -> list[Part]:
    """Split a text at its paragraphs into parts of about `max_chars`. Each part has the beginnings
    of the headings above it; a heading with nothing below it is a part of its own.

    The work grows linearly with the length of the text, whatever it contains.
    """
    parts: list[Part] = []
    headings: dict[int, str] = {}
    held: list[str] = []
    n_held = 0  # characters
    bare = 0  # the level of a heading that has no text yet

    def end_part(next_level: int = 0) -> None:
        path = [headings[level][:MAX_HEADING_CHARS] for level in sorted(headings)]
        texts = ["\n\n".join(held)] if held else []
        if not held and bare and next_level <= bare:
            path.pop()
            texts = _pieces(headings[bare], max_chars)
        for text in texts:
            parts.append(Part(index=len(parts), headings=tuple(path), text=text))
        held.clear()

    for paragraph in filter(None, (one.strip() for one in re.split(r"\n\s*\n", markdown))):
        if heading := _read_heading(paragraph):
            level, name = heading
            end_part(level)
            n_held, bare = 0, level
            headings = {one: name for one, name in headings.items() if one < level}
            headings[level] = name
            continue
        for piece in _pieces(paragraph, max_chars):
            if held and n_held + len(piece) > max_chars:
                end_part()
                n_held = 0
            held.append(piece)
            n_held += len(piece) + 2
            bare = 0
    end_part()
    return parts


def _read_heading(paragraph: str) -> tuple[int, str] | None:
    """Return the level and the name of a heading; None for another line."""
    name = paragraph.lstrip("#")
    level = len(paragraph) - len(name)
    if not 1 <= level <= MAX_LEVEL or not name[:1].isspace() or "\n" in paragraph:
        return None
    return level, name.strip()


def _pieces(paragraph: str, max_chars: int) -> list[str]:
    """Cut a paragraph that is too long at its lines, then at blanks."""
    pieces: list[str] = []
    while len(paragraph) > max_chars:
        at = max(paragraph.rfind("\n", 0, max_chars), paragraph.rfind(". ", 0, max_chars) + 1)
        at = at if at > max_chars // 3 else paragraph.rfind(" ", 0, max_chars)
        at = at if at > max_chars // 3 else max_chars
        pieces.append(paragraph[:at].strip())
        paragraph = paragraph[at:].strip()
    return [*pieces, paragraph] if paragraph else pieces


def rank(question: str, texts: Sequence[str]) -> list[Scored]:
    """Return the texts that share a word with the question, the best first; equal ones in their
    order."""
    documents = [Counter(_words(text)) for text in texts]
    n_of = Counter(word for document in documents for word in document)
    lengths = [sum(document.values()) for document in documents]
    mean_length = sum(lengths) / len(lengths) if lengths else 1.0
    asked = set(_words(question))
    scores = [
        sum(
            _weight(n_of[word], len(texts))
            * _frequency(document[word], length / (mean_length or 1))
            for word in sorted(asked & document.keys())
        )
        for document, length in zip(documents, lengths, strict=True)
    ]
    total = sum(scores) or 1.0
    found = [
        Scored(index=at, score=score, share=score / total)
        for at, score in enumerate(scores)
        if score > 0
    ]
    return sorted(found, key=lambda one: (-one.score, one.index))


def _weight(n_with: int, n_all: int) -> float:
    return math.log(1 + (n_all - n_with + 0.5) / (n_with + 0.5))


def _frequency(n: int, relative_length: float) -> float:
    length = 1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * relative_length
    return n * (BM25_SATURATION + 1) / (n + BM25_SATURATION * length)


def _words(text: str) -> list[str]:
    """Return the words, case-folded, without the endings of plurals and verb forms."""
    return [_stem(word) for word in _WORD.findall(text.casefold())]


def _stem(word: str) -> str:
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word.removesuffix(ending)
    return word


def top_p(ranked: Sequence[Scored], p: float) -> list[Scored]:
    """Return the smallest number of the best whose shares together reach `p`, at least one; all for
    1."""
    kept: list[Scored] = []
    reached = 0.0
    for one in ranked:
        kept.append(one)
        reached += one.share
        if reached >= p - 1e-9:
            break
    return kept
