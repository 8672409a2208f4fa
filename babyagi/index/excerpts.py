"""Shortens a result to a given size and keeps its findings: passages are ranked by how much they
say about the result's own task and about the task for which the result is shown (the reader's
task)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from babyagi.index.trigrams import Words, fold, read_texts
from babyagi.tasks import Result
from babyagi.text import split_sentences

MAX_CUT_CHARS = 200_000  # passages are looked for in this much of a text
MAX_PASSAGE_CHARS = 400  # longer sentences are cut between words
MAX_HEAD_BYTES = 120  # a longer heading is not kept with a passage
# A passage gets this share of the score of the passage before it: "The mill was measured. It is
# 14 m high."
NEXT_SHARE = 0.5
BEFORE_SHARE = 0.3  # a passage gets this share of the score of the passage after it
FIGURE_BONUS = 0.1  # for a passage with a digit: most values contain one
QUOTED_BONUS = 10.0  # more than any other passage can have
N_QUERIES = 16  # cached: one task or objective is compared with many results
GAP = "…"
_HEADING = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*:?$|[^.!?]{1,80}:$")
_RULE = re.compile(r"[\s|:+=-]+")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passage:
    """A sentence, a row of a table or a line. `heads` are the places, in the list of passages, of
    its heading and of the first row of its table."""

    text: str
    line: int
    heads: tuple[int, ...]


def cut_result(result: Result, max_bytes: int, *, task_name: str = "", quoted: str = "") -> str:
    """Return the result's text, or the parts of it that fit into `max_bytes` of UTF-8.

    The passages that say most about the result's own task and about the reader's task are kept, in
    their order, with "…" in place of the others. A row of a table is kept with the first row and
    the heading of the table.

    Args:
        task_name: the reader's task.
        quoted: what was quoted from the result; the passages that hold it come first.
    """
    if size_bytes(result.text) <= max_bytes:
        return result.text
    passages = _split(result.text[:MAX_CUT_CHARS])
    if not passages:
        return _cut_end(result.text, max_bytes)
    scores = _rank(passages, result.task_name, task_name)
    for place in _find_quoted(passages, quoted):
        scores[place] += QUOTED_BONUS
    kept = _keep(passages, scores, max_bytes)
    if not kept:
        return _cut_end(passages[scores.index(max(scores))].text, max_bytes)
    return _join(passages, kept, is_more_behind=len(result.text) > MAX_CUT_CHARS)


def size_bytes(text: str) -> int:
    """Return the size of a text as UTF-8."""
    return len(text.encode("utf-8", "replace"))


def _cut_end(text: str, max_bytes: int) -> str:
    head = text.encode("utf-8", "replace")[: max(0, max_bytes - size_bytes(GAP))]
    return head.decode("utf-8", "ignore").rstrip() + GAP if max_bytes >= size_bytes(GAP) else ""


def _split(text: str) -> list[_Passage]:
    passages: list[_Passage] = []
    heading: tuple[int, ...] = ()
    first_row: tuple[int, ...] = ()
    for number, line in enumerate(text.splitlines()):
        bare = line.strip()
        is_row = bare.count("|") >= 2 or bare.count("\t") >= 2
        if is_row and first_row and _RULE.fullmatch(bare):
            continue
        if _HEADING.match(bare):
            heading, first_row = (len(passages),), ()
        elif is_row and not first_row:
            first_row = (len(passages),)
        elif not is_row and bare:
            first_row = ()
        heads = (*heading, *first_row) if is_row else heading
        for piece in _split_line(line):
            passages.append(
                _Passage(
                    text=piece,
                    line=number,
                    heads=tuple(head for head in heads if head != len(passages)),
                )
            )
    return passages


def _split_line(line: str) -> list[str]:
    pieces: list[str] = []
    for sentence in split_sentences(line):
        rest = sentence
        while len(rest) > MAX_PASSAGE_CHARS:
            at = rest.rfind(" ", MAX_PASSAGE_CHARS // 2, MAX_PASSAGE_CHARS)
            at = at if at > 0 else MAX_PASSAGE_CHARS
            pieces.append(rest[:at])
            rest = rest[at:].lstrip()
        pieces.append(rest)
    return [piece for piece in pieces if piece]


def _rank(passages: Sequence[_Passage], own_name: str, task_name: str) -> list[float]:
    """Return how much each passage says about the two tasks: the result's own and the reader's. A
    passage beside one with a high score gets a share of that score."""
    texts = [passage.text for passage in passages]
    read = read_texts(texts)
    own = _query(own_name).score(read)
    asked = _query(task_name).score(read) if task_name else [0.0] * len(texts)
    scores = [
        one + other + FIGURE_BONUS * bool(_DIGIT.search(text))
        for one, other, text in zip(own, asked, texts, strict=True)
    ]
    return [
        max(score, NEXT_SHARE * before, BEFORE_SHARE * behind)
        for score, before, behind in zip(
            scores, [0.0, *scores[:-1]], [*scores[1:], 0.0], strict=True
        )
    ]


_query = lru_cache(maxsize=N_QUERIES)(Words)


def _find_quoted(passages: Sequence[_Passage], quoted: str) -> set[int]:
    """Return, for each sentence of a quotation, the place of the passage that holds it or is
    nearest to it."""
    sentences = split_sentences(quoted)
    if not sentences:
        return set()
    read, folded = read_texts([one.text for one in passages]), [fold(one.text) for one in passages]
    found = set()
    for sentence in sentences:
        scores = Words(sentence).score(read)
        ranked = [
            (fold(sentence) in text, score) for text, score in zip(folded, scores, strict=True)
        ]
        found.add(ranked.index(max(ranked)))
    return found


def _keep(passages: Sequence[_Passage], scores: Sequence[float], max_bytes: int) -> set[int]:
    """Return the places of the best passages that fit, and of their headings."""
    kept: set[int] = set()
    left = max_bytes - size_bytes(GAP) - 1
    for place in sorted(range(len(passages)), key=lambda place: (-scores[place], place)):
        heads = {
            head
            for head in passages[place].heads
            if size_bytes(passages[head].text) <= MAX_HEAD_BYTES
        }
        for wanted in ({place, *heads}, {place}):
            cost = sum(
                size_bytes(passages[one].text) + size_bytes(GAP) + 2 for one in wanted - kept
            )
            if cost <= left:
                kept |= wanted
                left -= cost
                break
    return kept


def _join(passages: Sequence[_Passage], kept: set[int], *, is_more_behind: bool) -> str:
    text, last = "", -1
    for place in sorted(kept):
        gap = GAP if place > last + 1 else ""
        is_same_line = last >= 0 and passages[place].line == passages[last].line
        between = "" if last < 0 else " " if is_same_line else "\n"
        text += f"{between}{gap}{' ' if gap else ''}{passages[place].text}"
        last = place
    return f"{text} {GAP}" if is_more_behind or last < len(passages) - 1 else text
