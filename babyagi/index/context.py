"""Chooses which earlier results go into a prompt, and how much of each: as much as a task needs,
and little more.

A task is given, in this order:

1. the results of the tasks that it comes after or was planned from;
2. the results that its earlier tries were shown, if they lacked something;
3. the results that hold the marks (codes, numbers, names and quoted terms) of what it asks;
4. if none holds a mark, the results that the index finds nearest to what it asks.

A task for which none of these is found is given every result that fits. A check or a report of the
whole objective is shown a passage of every result, and the most important results whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import accumulate, chain, takewhile

from babyagi.index.excerpts import cut_result, size_bytes
from babyagi.index.indexer import Embed, text_of
from babyagi.index.search import SHORT_BYTES, Ranking, ResultSearch, drop_equals
from babyagi.marks import MarkedText, find_marks, mark_tokens
from babyagi.tasks import Result, Task

BYTES_PER_TOKEN = 4
N_POOL = 50  # nearest results that are examined one by one
N_CACHED = 128  # texts whose words are cached: a result is examined for several prompts
MAX_HOLDERS = 10  # a mark that more results hold distinguishes little
MAX_MARKED = 8  # results that are given because they hold marks
# If no result holds a mark, near results are added until there are three, and at least one, if they
# contain so much of what is asked. With the queries of `tests/data/retrieval*.json`, the result
# that answers contains 0.22 to 0.44 of a task's name, and 0.12 to 0.26 of misspelt words. For
# queries about other things, the best result contains 0.15 (95 of 100) to 0.22.
N_NEAR, NEAR = 3, 0.15
QUOTED_BYTES = 600  # of a result that a check quoted, for the passages with the quote
MAX_NEAR_BYTES = 1_500  # of a result that is only near


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """An earlier result that was chosen for a prompt, shortened to the budget.

    Attributes:
        text: the part of the result that the prompt contains.
        score: how well the result fits, from 0 to 1; None if it is given without a search.
        reason: why it was chosen: `after` (the task depends on it), `parent` (the task was planned
            from it), `before` (an earlier try was shown it), `marks` (it has the codes, numbers,
            names or quoted terms of the task), `near`, or `shared` (it is from another objective).
        is_whole: whether `text` is the whole result.
    """

    result: Result
    text: str
    score: float | None
    reason: str
    is_whole: bool


async def choose_context(
    task: Task,
    *,
    search: ResultSearch,
    embed: Embed,
    budget_tokens: int,
    lacks: Sequence[str] = (),
    shown_before: Collection[int] = (),
) -> tuple[list[Chosen], str]:
    """Choose the results that the task needs, most needed first.

    Args:
        budget_tokens: a token is counted as 4 bytes of UTF-8.
        lacks: what the earlier tries of the task lacked; it counts as much as the task's name.
        shown_before: the tasks whose results the earlier tries were shown.

    Returns:
        The chosen results, and what was wrong with the index or the embedder ("" if nothing was).
    """
    asked = "\n".join([task.name, *lacks])
    reason_by_id = _known(task, shown_before)
    found = await search.relevant(
        asked,
        k=N_POOL,
        embed=embed,
        exclude={task.id, *reason_by_id},
        marks=find_marks(asked),
    )
    known = sorted(
        await search.results(list(reason_by_id)),
        key=lambda result: list(reason_by_id).index(result.task_id),
    )
    marked, near = _pick(task, asked, known=known, found=found)
    reasons = [reason_by_id[result.task_id] for result in known] + ["marks"] * len(marked)
    picked = [*known, *marked, *near]
    texts = fit(picked, budget_tokens * BYTES_PER_TOKEN, n_needed=len(reasons), task_name=asked)
    score_by_key = {_key(one.result): one.score for one in found}
    chosen = [
        Chosen(
            result=result,
            text=text,
            score=score_by_key.get(_key(result)),
            reason=reason if result.objective_id == task.objective_id else "shared",
            is_whole=text == result.text,
        )
        for result, reason, text in zip(
            picked, [*reasons, *["near"] * len(near)], texts, strict=True
        )
        if text
    ]
    return chosen, found.degraded


def _pick(
    task: Task, asked: str, *, known: Sequence[Result], found: Ranking
) -> tuple[list[Result], list[Result]]:
    """Return, besides the results that are known to belong to the task, those that hold the marks
    of what is asked, and the near ones. Near ones of this objective are taken only where no result
    holds a mark; where there is nothing at all, every result is near, the newest first."""
    others = [*(one.result for one in found), *found.with_marks]
    pool = drop_equals(sorted(others, key=_age, reverse=True), beside=known)
    own = [one for one in pool if one.objective_id == task.objective_id]
    held = _holding(find_marks(asked), [*known, *own], asked)
    near = [
        one.result
        for one in found.ranked[: max(1, N_NEAR - len(known))]
        if one.nearness >= NEAR and one.result in pool and not (held and one.result in own)
    ]
    if not (known or held or near):
        near = pool
    return [result for result in held if result not in known], near


def _known(task: Task, shown_before: Iterable[int]) -> dict[int, str]:
    """Return, by task id, why a result is given without a search."""
    reason_by_id = dict.fromkeys(sorted(task.after), "after")
    if task.parent_id is not None:
        reason_by_id.setdefault(task.parent_id, "parent")
    for task_id in sorted(shown_before):
        reason_by_id.setdefault(task_id, "before")
    return reason_by_id


def _holding(marks: Iterable[str], results: Sequence[Result], asked: str) -> list[Result]:
    """Return the results that hold the marks of what is asked in their names or, where no name
    does, in their texts. Of several that hold a mark, return the first, because later ones build on
    it, and those whose names agree with what is asked around the mark. Those with the rarest mark
    come first, because a mark that many results hold tells little."""
    words = mark_tokens(asked)
    found: list[tuple[int, list[Result]]] = []
    for mark in map(mark_tokens, sorted(marks)):
        named = [one for one in results if _read(one.task_name).holds(mark)]
        holders = named or [one for one in results if _read(one.text).holds(mark)]
        if 0 < len(holders) <= MAX_HOLDERS:
            first = [min(holders, key=_age)]
            if named:
                first += [_agreeing(named, mark, words, at) for at in _places(words, mark)]
            found.append((len(holders), first))
    found.sort(key=lambda one: one[0])
    ordered = chain.from_iterable(first for _, first in found)
    return list({_key(result): result for result in ordered}.values())[:MAX_MARKED]


def _agreeing(
    holders: Sequence[Result], mark: Sequence[str], words: Sequence[str], at: int
) -> Result:
    """Return the first of the results whose names agree with what is asked around the mark: at
    least half as far as the name that agrees furthest.

    Args:
        words: the words of what is asked; the mark stands in them at the place `at`.
    """
    names = [mark_tokens(one.task_name) for one in holders]
    lengths = [
        max(_count_common(name, place, words, at) for place in _places(name, mark))
        for name in names
    ]
    return min(
        (one for one, n in zip(holders, lengths, strict=True) if 2 * n >= max(lengths)), key=_age
    )


def _places(words: Sequence[str], mark: Sequence[str]) -> list[int]:
    return [at for at in range(len(words)) if words[at : at + len(mark)] == mark]


def _count_common(one: Sequence[str], at: int, other: Sequence[str], place: int) -> int:
    """Return how many words in a row are equal in both texts around these places."""
    behind = zip(one[at:], other[place:], strict=False)
    before = zip(reversed(one[:at]), reversed(other[:place]), strict=False)
    return sum(
        1 for pairs in (behind, before) for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)
    )


def _age(result: Result) -> tuple[datetime, int]:
    return result.created_at, result.task_id


_read = lru_cache(maxsize=N_CACHED)(MarkedText)


def _key(result: Result) -> tuple[int, int]:
    return result.objective_id, result.task_id


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
    """Choose what a check or a report is shown: a passage of every result, and the most important
    results whole, up to half of the budget. First come the results that an earlier check quoted,
    with the passages that hold the quotes, so that a part once answered stays answered. Then come
    unread results, which are shown whole as long as the budget lasts.

    Args:
        leaf_ids: the tasks from which no other task was planned, and on which none depends.
        proven: by task, what an earlier check quoted from its result.
        unread: the tasks of results that no earlier check was shown whole.

    Returns:
        The chosen results, whole ones first and the others by task id; and the results that did not
            fit at all.
    """
    quotes = proven or {}
    share_by_key = _shares_of_marks(results, find_marks(objective_text))

    groups = (quotes, unread)
    ordered = _order(results, groups, share_by_key, leaf_ids)
    passage_bytes = [
        min(size_bytes(one.text), QUOTED_BYTES if one.task_id in quotes else SHORT_BYTES)
        for one in ordered
    ]
    unread_places = {place for place, one in enumerate(ordered) if one.task_id in unread}
    budget = budget_tokens * BYTES_PER_TOKEN
    n_shown = sum(total <= budget for total in accumulate(passage_bytes))
    sizes = [size_bytes(one.text) for one in ordered[:n_shown]]
    whole = _find_whole(sizes, passage_bytes[:n_shown], budget, unread=unread_places)
    chosen = [
        Chosen(
            result=one,
            text=cut_result(
                one,
                size_bytes(one.text) if place in whole else passage_bytes[place],
                task_name=objective_text,
                quoted=quotes.get(one.task_id, ""),
            ),
            score=round(min(1.0, share_by_key[_key(one)]), 3),
            reason="marks" if share_by_key[_key(one)] else "near",
            is_whole=place in whole,
        )
        for place, one in enumerate(ordered[:n_shown])
    ]
    chosen.sort(key=lambda one: (not one.is_whole, 0 if one.is_whole else one.result.task_id))
    return chosen, sorted(ordered[n_shown:], key=_age)


def _order(
    results: Sequence[Result],
    groups: Sequence[Collection[int]],
    share_by_key: Mapping[tuple[int, int], float],
    leaf_ids: Collection[int],
) -> list[Result]:
    """Return the results of different spelling: those of the first group of tasks first, in each
    group those with the largest share in the marks, and the newest."""
    ordered = sorted(
        results,
        key=lambda one: (
            *(one.task_id in group for group in groups),
            share_by_key[_key(one)],
            one.task_id in leaf_ids,
            one.task_id,
        ),
        reverse=True,
    )
    return drop_equals(ordered)


def _shares_of_marks(
    results: Sequence[Result], marks: Iterable[str]
) -> Mapping[tuple[int, int], float]:
    """Return, for each result, the sum of its shares in the marks: of a mark that n results hold,
    each has 1/n."""
    share_by_key = dict.fromkeys(map(_key, results), 0.0)
    for mark in sorted(marks):
        tokens = mark_tokens(mark)
        holders = [one for one in results if _read(text_of(one)).holds(tokens)]
        for result in holders:
            share_by_key[_key(result)] += 1 / len(holders)
    return share_by_key


def _find_whole(
    sizes: Sequence[int], passage_bytes: Sequence[int], budget: int, *, unread: Collection[int]
) -> set[int]:
    """Return the places of the results that are shown whole beside the passages of the others:
    unread ones while the budget lasts, then the first ones up to half of it."""
    left, n_whole_bytes, whole = budget - sum(passage_bytes), 0, set()
    for place in sorted(range(len(sizes)), key=lambda place: place not in unread):
        more = sizes[place] - passage_bytes[place]
        has_room = place in unread or n_whole_bytes + sizes[place] <= budget // 2
        if more == 0 or (more <= left and has_room):
            whole.add(place)
            left -= more
            n_whole_bytes += sizes[place]
    return whole


# -- fitting a budget
# --------------------------------------------------------------------------------------------------


def fit(
    results: Sequence[Result], max_bytes: int, *, n_needed: int, task_name: str = ""
) -> list[str]:
    """Return the texts of the results, shortened so that together they have at most `max_bytes`
    bytes; "" for a result for which too little room is left.

    Args:
        results: most needed first.
        n_needed: how many of the first results are needed. All of them are given: the short ones
            whole, and of the others an equal share each. The results that are not needed get what
            is left.
        task_name: the task for which the best passages are chosen.
    """
    sizes = [size_bytes(result.text) for result in results]
    share = _equal_share(sizes[:n_needed], max_bytes)
    bounds = [min(size, share) for size in sizes[:n_needed]]
    left = max_bytes - sum(bounds)
    for size in sizes[n_needed:]:
        bound = min(size, MAX_NEAR_BYTES, left)
        bounds.append(bound if bound >= min(size, SHORT_BYTES) else 0)
        left -= bounds[-1]
    return [
        cut_result(result, bound, task_name=task_name) if bound else ""
        for result, bound in zip(results, bounds, strict=True)
    ]


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
