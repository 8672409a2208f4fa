"""Chooses which earlier results go into a prompt, and how much of each: as much as a task needs,
and little more.

A task is given the results of the tasks that it depends on or was planned from. Then come the
results that establish the names, codes and numbers in its own name, and results that are near in
words or meaning. If none of these is related to the task, it is given the results from which its
parent was made. A task that compares or adds up everything, and names nothing of it, is given every
result that fits. So is a check or a report of the whole objective, the most important ones whole.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from babyagi.index.excerpts import cut_passage, cut_result
from babyagi.index.hashing import STOP_WORDS, find_words
from babyagi.index.indexer import Embed, text_of
from babyagi.index.search import RankedResult, Ranking, ResultSearch
from babyagi.index.subjects import Subjects, head, phrases
from babyagi.index.trigrams import Words, fold
from babyagi.marks import MarkedText, find_marks, mark_tokens
from babyagi.names import takes_all
from babyagi.tasks import Objective, Result, Task

N_CACHED = 4000  # texts whose words are cached
N_SIGNS = 256  # results whose words are cached: one result goes into several prompts
N_POOL = 50  # nearest results that are examined one by one
MAX_MARKS = 24
N_COMMON = 10  # a mark in more results than this is common and distinguishes little
N_COMMON_WORD = 2  # the same for a single word that is not a mark, or is part of one
N_LEADING = 2  # if more names than this begin with it, beginning with it means nothing
COMMON_SHARE = 0.25  # of the name of a result with a common mark, so much must be asked about
N_NEAR = 3
# The share of what is asked that a result must contain to be near. With the queries of
# `tests/data/retrieval*.json`, the result that answers contains 0.22 to 0.44 of a task's name, and
# 0.12 to 0.26 of misspelt words. For queries about other things, the best result contains 0.15 (95
# of 100) to 0.22.
NEAR = 0.15
# The same if other results have the codes, names, numbers or phrases of the task: a query in a
# result's own words contains 0.72.
NEAR_BESIDE_MARKS = 0.5
NAME_SHARE = 0.6  # a task asks about a result if it contains so much of the result's name
# A result is related to the task if so much of its name is in the task's name. If no result is, the
# results from which the parent was made are considered too.
KIN_SHARE = 0.3
BEST_SHARE = 0.6  # of the nearest result's nearness, so much is needed to be near as well
NEAR_EQUAL = 0.9  # common words of two results, as a share of all their words
MIN_OWN_WORDS = 6  # a text with fewer words does not show what it is about
BYTES_PER_TOKEN = 4
MIN_EXCERPT_BYTES = 240
MIN_NEEDED_BYTES = 600
MAX_NEAR_BYTES = 1_500
EXTRACT_BYTES = 240
NEW_SHARE = 0.25  # of a near result's name, so much must be new among the chosen names
# Characters that are examined on both sides of a place where a mark may be. A longer word is cut
# off, and then does not match.
WINDOW_CHARS = 40
MAX_PLACES = 20  # places in a text that are examined one by one
WHOLE_CHARS = 200  # a shorter text is examined whole, and its words are cached
_DIGIT = re.compile(r"\d")
_GROUPING = re.compile(r"(?<=\d)[,'\u202f](?=\d{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """An earlier result that was chosen for a prompt, shortened to the budget.

    Attributes:
        text: the part of the result that the prompt contains.
        score: how well the result fits, from 0 to 1.
        reason: why it was chosen: `after` (the task depends on it), `parent` (the task was planned
            from it), `marks` (it has the names, codes or numbers of the task), `near`, `provenance`
            (the task's parent was made from it), or `shared` (it is from another objective).
        is_whole: whether `text` is the whole result.
    """

    result: Result
    text: str
    score: float
    reason: str
    is_whole: bool


async def choose_context(
    task: Task,
    *,
    objective: Objective,
    search: ResultSearch,
    embed: Embed,
    budget_tokens: int,
    lack: str = "",
) -> tuple[list[Chosen], str]:
    """Choose the results that the task needs, most needed first. Results that repeat the facts of
    another one are left out.

    Args:
        lack: what an earlier try of the task lacked; it counts as much as the task's name.
        budget_tokens: a token is counted as 4 bytes of UTF-8.

    Returns:
        The chosen results, and what was wrong with the index or the embedder ("" if nothing was).
    """
    asked = "\n".join(filter(None, [task.name, lack]))
    marks = sorted(find_marks(asked))[:MAX_MARKS]
    reason_by_id = dict.fromkeys(task.after, "after")
    if task.parent_id is not None:
        reason_by_id.setdefault(task.parent_id, "parent")
    found = await search.relevant(
        asked, k=N_POOL, embed=embed, exclude={task.id}, beside=reason_by_id, marks=marks
    )
    pool = _Pool(asked, search, kin=await _load_kin(reason_by_id, search), found=found)
    picked, n_needed = _pick(task, pool, asked=asked, marks=marks, reason_by_id=reason_by_id)
    if (
        task.parent_id is not None
        and not pool.asked_about
        and not any(pool.name_share(result) >= KIN_SHARE for result in picked.results)
    ):
        picked.add_all(await _load_provenance(task.parent_id, search), "provenance")
    texts = fit(
        picked.results,
        budget_tokens * BYTES_PER_TOKEN,
        n_needed=n_needed,
        n_always=len(pool.kin),
        task_name=asked,
    )
    return [
        Chosen(
            result=result,
            text=text,
            score=pool.score(result),
            reason=reason if result.objective_id == objective.id else "shared",
            is_whole=text == result.text,
        )
        for (result, reason), text in zip(picked.entries, texts, strict=True)
        if text
    ], found.degraded


def _pick(
    task: Task,
    pool: _Pool,
    *,
    asked: str,
    marks: Sequence[str],
    reason_by_id: Mapping[int, str],
) -> tuple[_Picked, int]:
    """Pick results in this order: those of the task's dependencies and parent, those that contain
    its marks (codes, names, numbers) or phrases, and the nearest ones. Return them, and how many of
    them are needed: all except the nearest ones."""
    picked = _Picked()
    picked.add_all(pool.kin, reason_by_id)
    named = [*pool.asked_about, *pool.with_marks(marks), *pool.with_phrases()]
    picked.add_all(named, "marks")
    n_needed = len(picked.results)
    is_first_try = asked == task.name
    has_inputs = is_first_try and (bool(task.after) or len(named) > 1)
    has_marks = bool(marks) if is_first_try else bool(find_marks(task.name))
    if not (has_inputs or has_marks) and takes_all(task.name):
        picked.add_all(pool.newest_first(), "near")
    elif not _names_all_it_takes(task.name, marks, picked.results):
        threshold = NEAR_BESIDE_MARKS if marks or named else NEAR
        picked.add_all(pool.near(threshold, picked.results), "near")
    return picked, n_needed


def _names_all_it_takes(name: str, marks: Collection[str], results: Iterable[Result]) -> bool:
    """Return whether the task's name mentions inputs besides the task's subject, and for each input
    there is a result whose name mentions it."""
    taken = set(marks) - _held(head(name), marks)
    return bool(taken) and taken <= _held(
        "\n".join(head(result.task_name) for result in results), taken
    )


async def _load_kin(reason_by_id: Mapping[int, str], search: ResultSearch) -> list[Result]:
    """Return the results of the tasks that this task depends on or was planned from. The result of
    the parent comes last."""
    return sorted(
        await search.results(list(reason_by_id)),
        key=lambda result: (reason_by_id[result.task_id] == "parent", result.task_id),
    )


async def _load_provenance(parent_id: int, search: ResultSearch) -> list[Result]:
    """Return the results from which the parent task was made, newest first."""
    parent = await search.task(parent_id)
    if parent is None:
        return []
    task_ids = [*parent.after, *([parent.parent_id] if parent.parent_id is not None else [])]
    return sorted(await search.results(task_ids), key=lambda result: -result.task_id)


class _Picked:
    """The chosen results with the reason for each, in the order in which they were added. A result
    that says the same as an earlier one is not added; it replaces the earlier one if it is newer,
    or if only it fully answers its task."""

    def __init__(self) -> None:
        self.entries: list[tuple[Result, str]] = []
        self._signs: list[_Signs] = []

    @property
    def results(self) -> list[Result]:
        return [result for result, _ in self.entries]

    def add_all(self, results: Iterable[Result], reason: str | Mapping[int, str]) -> None:
        for result in results:
            self.add(result, reason if isinstance(reason, str) else reason[result.task_id])

    def add(self, result: Result, reason: str) -> bool:
        """Add the result if it says something new, and return whether it did."""
        signs = _signs(result)
        for place, (other, other_reason) in enumerate(self.entries):
            if _key(other) == _key(result) or _are_near_equal(signs, self._signs[place]):
                if _supersedes(result, other):
                    self.entries[place], self._signs[place] = (result, other_reason), signs
                return False
        self.entries.append((result, reason))
        self._signs.append(signs)
        return True


class _Pool:
    """The candidates for a task's context: all results that may be chosen, compared with what the
    task asks."""

    def __init__(
        self,
        asked: str,
        search: ResultSearch,
        *,
        kin: Sequence[Result],
        found: Ranking,
    ) -> None:
        self._ranked = found.ranked
        self.kin = kin
        results = [*kin, *(entry.result for entry in found), *found.with_marks]
        self._results = sorted(
            {_key(result): result for result in results}.values(),
            key=lambda result: result.created_at,
        )
        self._search = search
        self._asked_text = asked
        self._asked = _stems(asked)
        self.asked_about = self._find_asked_about()
        # the smallest of these belongs to the oldest result that lacks nothing
        self._ages = [(bool(one.lack), one.created_at, one.task_id) for one in self._results]
        n_by_stem = Counter(
            chain.from_iterable(_stems(result.task_name) for result in self._results)
        )
        weight_by_n = {n: math.log(1 + len(self._results) / n) for n in set(n_by_stem.values())}
        self._weight_by_stem = {stem: weight_by_n[n] for stem, n in n_by_stem.items()}
        self._score_by_key = {
            **{_key(one): round(found.scores.get(one.task_id, 0.0), 3) for one in kin},
            **{_key(entry.result): entry.score for entry in found},
        }
        self._are_all_scored = False

    def score(self, result: Result) -> float:
        """Return how well the result fits, from 0 to 1. Results that the search did not score are
        scored all together, at the first call for one of them."""
        if _key(result) not in self._score_by_key and not self._are_all_scored:
            self._are_all_scored = True
            scores = self._search.compare(Words(self._asked_text), self._results)
            for one, score in zip(self._results, scores, strict=True):
                self._score_by_key.setdefault(_key(one), round(score, 3))
        return self._score_by_key.get(_key(result), 0.0)

    def name_share(self, result: Result) -> float:
        """Return how much of the result's name occurs in what the task asks, from 0 to 1; rare
        words count more."""
        stems = _stems(result.task_name)
        asked = stems & self._asked
        return self._weigh(asked) / self._weigh(stems) if asked else 0.0

    def _find_asked_about(self) -> list[Result]:
        """Return the results whose subject occurs in what the task asks. If several have the same
        subject, return the newest one that fully answers its task."""
        found: list[Result] = []
        taken: set[int] = set()
        subjects = Subjects([result.task_name for result in self._results])
        places = [
            (one.share, one.span, self._results[one.place])
            for one in subjects.find(self._asked_text)
        ]
        for _, span, result in sorted(
            places,
            key=lambda place: (-place[0], -len(place[1]), bool(place[2].lack), -place[2].task_id),
        ):
            if not taken.issuperset(span):
                taken.update(span)
                found.append(result)
        return found

    def with_marks(self, marks: Collection[str]) -> list[Result]:
        """Return, for each of the marks (codes, names, numbers), the results that most likely found
        out what it stands for. Marks in the names of the results of `asked_about` (those whose
        subject the task asks about) are left out. If no result's name contains a mark, one result
        whose text contains it is returned, unless one of the chosen results contains it."""
        if not marks:
            return []
        wanted = _Marks(marks)
        names = [wanted.held_by(result.task_name) for result in self._results]
        unnamed = set(marks).difference(*names)
        in_texts = _Marks(unnamed)
        texts = [in_texts.held_by(result.text) for result in self._results] if unnamed else []
        parts = {word for mark in marks if len(mark.split()) > 1 for word in mark.split()}
        known = {
            mark for result in self.asked_about for mark in wanted.held_by(head(result.task_name))
        }
        found: list[Result] = []
        for mark in sorted(marks, key=lambda mark: (-len(mark.split()), mark)):
            where = texts if mark in unnamed else names
            holding = [] if mark in known else [n for n, held in enumerate(where) if mark in held]
            known |= set(mark.split()) if holding else set()
            if mark not in unnamed:
                depths = {
                    n: len(phrases(fold(self._results[n].task_name).partition(mark)[0]))
                    for n in holding
                }
                found += self._establishing(depths, is_word=mark in parts)
            elif 0 < len(holding) <= N_COMMON:
                mentioning = [self._results[n] for n in holding]
                if not any(one in mentioning for one in [*self.kin, *self.asked_about, *found]):
                    found.append(max(mentioning, key=lambda one: (self.score(one), one.task_id)))
        return found

    def with_phrases(self) -> list[Result]:
        """Return, for each phrase of what the task asks, the results that most likely found out
        what it stands for. Phrases in the names of the results of `asked_about` (those whose
        subject the task asks about) are left out."""
        asked = phrases(self._asked_text)
        depths: dict[tuple[str, ...], dict[int, int]] = {phrase: {} for phrase in asked}
        for n, result in enumerate(self._results):
            found_phrases = phrases(result.task_name)
            for phrase in depths.keys() & found_phrases:
                depths[phrase][n] = found_phrases.index(phrase)
        known = {
            phrase for result in self.asked_about for phrase in phrases(head(result.task_name))
        }
        found: list[Result] = []
        for phrase, depth_by_place in depths.items():
            if phrase not in known:
                found += self._establishing(depth_by_place, is_word=len(phrase) == 1)
        return found

    def _establishing(self, depth_by_place: Mapping[int, int], *, is_word: bool) -> list[Result]:
        """Return the results that most likely found out what a mark (code, name or number) or a
        phrase stands for, given the results whose names contain it.

        These are two: the result whose name mentions it nearest to the front, and the earliest one,
        because a value must be found before others can use it. If many names contain the mark or
        phrase (or more than a few, with `is_word`), it distinguishes little. A result is then
        returned only if a larger part of its name is asked about.

        Args:
            depth_by_place: for each result whose name contains it, by place in the pool: how far
                from the front of the name it stands.
            is_word: whether it is a single word, which distinguishes less.
        """
        if not depth_by_place:
            return []
        ages = self._ages
        earliest = min(depth_by_place, key=ages.__getitem__)
        leading = min(depth_by_place, key=lambda n: (ages[n][0], depth_by_place[n], *ages[n][1:]))
        found = [self._results[n] for n in dict.fromkeys((leading, earliest))]
        n_common, least = (N_COMMON_WORD, NAME_SHARE) if is_word else (N_COMMON, COMMON_SHARE)
        if len(depth_by_place) <= n_common:
            return found
        n_leading = list(depth_by_place.values()).count(depth_by_place[leading])
        return [
            result
            for result in (found if n_leading <= N_LEADING else [self._results[earliest]])
            if self.name_share(result) >= least
        ]

    def newest_first(self) -> list[Result]:
        return self._results[::-1]

    def near(self, least: float, picked: Sequence[Result]) -> list[Result]:
        """Return the results whose names mostly occur in what the task asks, then those nearest to
        it. The nearest of all is returned if its nearness reaches `NEAR`, any other one only if its
        nearness reaches `least`.

        Args:
            picked: the results that were chosen already.
        """
        covered = {stem for result in picked for stem in _stems(result.task_name)}
        found: list[Result] = []
        asked_about = []
        for result in self._results:
            stems = _stems(result.task_name)
            asked = stems & self._asked
            if asked and (weight := self._weigh(asked)) >= NAME_SHARE * (
                whole := self._weigh(stems)
            ):
                asked_about.append((-weight, -result.task_id, whole, asked, result))
        for *_, whole, asked, result in sorted(asked_about, key=lambda one: one[:2]):
            if self._weigh(asked - covered) >= NEW_SHARE * whole:
                found.append(result)
                covered |= asked
        known = {_key(result) for result in [*picked, *found]}
        best = max((entry.nearness for entry in self._ranked), default=0.0)
        bounds = [NEAR, *[max(least, BEST_SHARE * best)] * len(self._ranked)]
        near = [
            entry.result
            for entry, bound in zip(self._ranked, bounds, strict=False)
            if entry.nearness >= bound
        ]
        room = max(
            int(near[:1] == [entry.result for entry in self._ranked[:1]]),
            N_NEAR - len(picked) - len(found),
        )
        return found + [result for result in near if _key(result) not in known][:room]

    def _weigh(self, stems: Iterable[str]) -> float:
        """Return the sum of the weights of these word stems. The sum does not depend on order."""
        return math.fsum(map(self._weight_by_stem.__getitem__, stems))


def _held(text: str, marks: Collection[str]) -> frozenset[str]:
    """Return the marks (codes, names, numbers) that occur in one text as whole words; for many
    texts, use `_Marks`."""
    return _Marks(marks).held_by(text)


class _Marks:
    """Finds the same marks (codes, names, numbers) in many texts. A text is read word by word only
    if it contains the letters of a mark."""

    def __init__(self, marks: Collection[str]) -> None:
        self._marks = [
            (mark, fold(mark.split(maxsplit=1)[0]), mark.isdecimal(), mark_tokens(mark))
            for mark in marks
        ]
        self._has_number = any(is_number for _, _, is_number, _ in self._marks)

    def held_by(self, text: str) -> frozenset[str]:
        """Return those of its marks (codes, names, numbers) that occur in the text as whole
        words."""
        folded = fold(text)
        # most texts have no such sign; a search takes a tenth of the time of a replacement
        is_grouped = self._has_number and ("," in folded or "'" in folded or "\u202f" in folded)
        bare = _GROUPING.sub("", folded) if is_grouped else folded
        found = []
        for mark, first, is_number, tokens in self._marks:
            where = bare if is_number else folded
            if first in where and _holds(where, mark, first, tokens):
                found.append(mark)
        return frozenset(found)


def _holds(folded: str, mark: str, first: str, tokens: Sequence[str]) -> bool:
    if len(folded) <= WHOLE_CHARS:
        return _read_marked(folded).holds(tokens)
    at = folded.find(first)
    for _ in range(MAX_PLACES):
        if at < 0:
            return False
        start, end = max(0, at - WINDOW_CHARS), at + len(mark) + WINDOW_CHARS
        if MarkedText(folded[start:end]).holds(tokens):
            return True
        at = folded.find(first, at + 1)
    return MarkedText(folded).holds(tokens)


_read_marked = lru_cache(maxsize=N_CACHED)(MarkedText)


def _key(result: Result) -> tuple[int, int]:
    return result.objective_id, result.task_id


def _supersedes(one: Result, other: Result) -> bool:
    return (not one.lack, one.created_at, one.task_id) > (
        not other.lack,
        other.created_at,
        other.task_id,
    )


@lru_cache(maxsize=N_CACHED)
def _stems(text: str) -> frozenset[str]:
    return frozenset(chain.from_iterable(phrases(text)))


# -- for a check or a report
# --------------------------------------------------------------------------------------------------


def choose_for_objective(
    results: Sequence[Result],
    objective_text: str,
    *,
    budget_tokens: int,
    leaf_ids: Collection[int] = (),
    proven: Mapping[int, str] | None = None,
    unread: Collection[int] = (),
) -> tuple[list[Chosen], list[Result]]:
    """Choose what a check or a report is shown: the most important results whole, up to half of the
    budget, and of each other result the passages that say most about the objective and about the
    result's own task. First come the results that an earlier check quoted, so that a part once
    answered stays answered. Then come unread results, which may take the other half too, except
    what the passages of all results need; beside them only the passages of quoted ones are shown.

    Args:
        leaf_ids: the tasks from which no other task was planned, and on which none depends.
        proven: by task, what an earlier check quoted from its result.
        unread: the tasks of results that no earlier check was shown whole.

    Returns:
        The chosen results, whole ones first and the others by task id; and the results that did not
            fit at all.
    """
    budget = budget_tokens * BYTES_PER_TOKEN
    quotes = proven or {}
    weights = _weigh_for_objective(results, objective_text, leaf_ids)
    picked = _Picked()
    whole: list[Chosen] = []
    others: list[Chosen] = []
    left_out: list[Result] = []
    rooms = _rooms_for_whole(results, budget, quotes=quotes, unread=unread)
    n_whole, left = 0, budget
    for result in _order_for_objective(results, weights, quotes=quotes, unread=unread):
        reason, weight = weights[_key(result)]
        size = _size(result.text)
        room = max(0, rooms[_key(result)] - n_whole)
        is_whole = size <= room or size <= min(EXTRACT_BYTES, left)
        text = result.text if is_whole else ""
        if not text and left >= MIN_NEEDED_BYTES:
            quoted = quotes.get(result.task_id, "")
            is_decisive = reason == "marks" or bool(quoted)
            text = _extract(result, is_decisive=is_decisive, asked=objective_text, quoted=quoted)
        if not text:
            left_out.append(result)
        elif picked.add(result, reason):
            chosen = Chosen(
                result=result,
                text=text,
                score=round(min(1.0, weight), 3),
                reason=reason,
                is_whole=is_whole,
            )
            (whole if is_whole else others).append(chosen)
            left -= _size(text)
            n_whole += _size(text) if is_whole else 0
    others.sort(key=lambda chosen: chosen.result.task_id)
    left_out.sort(key=lambda result: result.task_id)
    return [*whole, *others], left_out


def _rooms_for_whole(
    results: Sequence[Result], budget: int, *, quotes: Collection[int], unread: Collection[int]
) -> Mapping[tuple[int, int], int]:
    """Return, for each result, how many bytes it and the whole results before it may take."""
    n_extracts = sum(
        MIN_NEEDED_BYTES if result.task_id in quotes else EXTRACT_BYTES for result in results
    )
    return {
        _key(result): max(budget // 2, budget - n_extracts)
        if result.task_id in unread
        else 0
        if unread and result.task_id in quotes
        else budget // 2
        for result in results
    }


def _order_for_objective(
    results: Sequence[Result],
    weights: Mapping[tuple[int, int], tuple[str, float]],
    *,
    quotes: Collection[int],
    unread: Collection[int],
) -> list[Result]:
    """Return the quoted results, then the unread ones, then the others, each group with the
    weightiest first."""
    return sorted(
        results,
        key=lambda one: (
            one.task_id not in quotes,
            one.task_id not in unread,
            -weights[_key(one)][1],
            -one.task_id,
        ),
    )


def _weigh_for_objective(
    results: Sequence[Result], objective_text: str, leaf_ids: Collection[int]
) -> Mapping[tuple[int, int], tuple[str, float]]:
    """Return, for each result, (reason, weight): why it bears on the objective, and how much."""
    marks = frozenset(sorted(find_marks(objective_text))[:MAX_MARKS])
    wanted = _Marks(marks)
    held = {_key(result): wanted.held_by(text_of(result)) for result in results}
    n_by_mark = Counter(mark for found in held.values() for mark in found)
    scores = Words(objective_text).score([text_of(result) for result in results])
    weights = {}
    for place, (result, score) in enumerate(zip(results, scores, strict=True)):
        by_marks = sum(1 / n_by_mark[mark] for mark in sorted(held[_key(result)]))
        is_new = (place + 1) / len(results)
        weight = by_marks + 0.5 * (result.task_id in leaf_ids) + 0.5 * score + 0.25 * is_new
        weights[_key(result)] = ("marks" if by_marks >= 1 / N_COMMON else "near", weight)
    return weights


def _extract(result: Result, *, is_decisive: bool, asked: str, quoted: str) -> str:
    return (
        cut_result(result, MIN_NEEDED_BYTES, task_name=asked, quoted=quoted)
        if is_decisive
        else cut_passage(result, EXTRACT_BYTES, query=asked)
    )


# -- fitting a budget, without repeated facts
# -------------------------------------------------------------------------------------------------


def fit(
    results: Sequence[Result],
    max_bytes: int,
    *,
    n_needed: int,
    n_always: int = 0,
    task_name: str = "",
) -> list[str]:
    """Return the texts of the results, shortened so that together they have at most `max_bytes`
    bytes; "" for a result for which too little room is left.

    Args:
        results: most needed first.
        n_needed: how many of the first results are needed. As many of them as fit are kept
            whole, of the others the best passages. The results that are not needed share the
            remaining room.
        n_always: how many of the first results get a share, however small it is.
        task_name: the task for which the best passages are chosen.
    """
    sizes = [_size(result.text) for result in results]
    bounds = _allot(
        sizes, max_bytes, n_needed=min(n_needed, len(sizes)), n_always=min(n_always, len(sizes))
    )
    return [
        cut_result(result, bound, task_name=task_name) if bound else ""
        for result, bound in zip(results, bounds, strict=True)
    ]


def _allot(sizes: Sequence[int], budget: int, *, n_needed: int, n_always: int) -> list[int]:
    bounds = [min(size, MIN_NEEDED_BYTES) for size in sizes[:n_needed]]
    if sum(bounds) > budget:
        n_kept = max(n_always, min(n_needed, budget // MIN_EXCERPT_BYTES))
        share = _equal_share(sizes[:n_kept], budget)
        return [min(size, share) for size in sizes[:n_kept]] + [0] * (len(sizes) - n_kept)
    left = budget - sum(bounds)
    for place, size in enumerate(sizes[:n_needed]):
        if size - bounds[place] <= left:
            left -= size - bounds[place]
            bounds[place] = size
    cut = [place for place in range(n_needed) if bounds[place] < sizes[place]]
    for place in cut:
        bounds[place] += left // len(cut)
    left -= sum(left // len(cut) for _ in cut)
    for size in sizes[n_needed:]:
        bound = min(size, MAX_NEAR_BYTES, left)
        bounds.append(bound if bound >= min(size, MIN_EXCERPT_BYTES) else 0)
        left -= bounds[-1]
    return bounds


def _equal_share(sizes: Sequence[int], budget: int) -> int:
    """Return the largest size to which each text can be cut so that all texts together fit the
    budget."""
    left = budget
    for n_done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - n_done)
        if size > share:
            return share
        left -= size
    return budget


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def drop_repetitions(
    ranked: Sequence[RankedResult], *, limit: int, beside: Sequence[Result] = ()
) -> list[RankedResult]:
    """Return the first `limit` results, without those that repeat a better result, or one of
    `beside`, in nearly the same words and with the same figures."""
    picked = _Picked()
    for result in beside:
        picked.add(result, "")
    kept: list[RankedResult] = []
    for entry in ranked:
        if len(kept) == limit:
            break
        if picked.add(entry.result, ""):
            kept.append(entry)
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signs:
    """The words and the figures of a result. Two results that say the same have equal figures."""

    words: frozenset[str]
    figures: frozenset[str]


def _signs(result: Result) -> _Signs:
    return _read_signs(result.text, result.task_name)


@lru_cache(maxsize=N_SIGNS)
def _read_signs(text: str, name: str) -> _Signs:
    words = frozenset(find_words(fold(text)))
    if len(words) < MIN_OWN_WORDS:
        words |= frozenset(find_words(fold(name)))
    figures = frozenset(word for word in words if not word.isalpha() and _DIGIT.search(word))
    return _Signs(words=words, figures=figures)


def _are_near_equal(one: _Signs, other: _Signs) -> bool:
    """Return whether both results have the same figures and nearly the same words, and neither has
    a word in place of another one."""
    if one.figures != other.figures or len(one.words & other.words) < NEAR_EQUAL * len(
        one.words | other.words
    ):
        return False
    return not (one.words - other.words - STOP_WORDS and other.words - one.words - STOP_WORDS)
