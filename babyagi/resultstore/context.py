"""Chooses what earlier results a task is given, and cuts them to a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from babyagi.resultstore.hashing import WORD
from babyagi.resultstore.projector import Embed
from babyagi.resultstore.search import RankedResult, ResultSearch
from babyagi.resultstore.words import Words, fold, split_passages
from babyagi.tasks import Objective, Result, Task

N_RELEVANT = 5  # the parent's result among them
N_SPARE = 10  # hits in place of those that say what another one says
NEAR_EQUAL = 0.9  # share of words that two results have in common, of those that either has
BYTES_PER_TOKEN = 4
MIN_EXCERPT_BYTES = 240
MAX_CUT_CHARS = 64_000  # of a text in which passages are looked for
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """As much of a result as the budget allows, how well it fits, and why it was chosen: `after`, `parent`, `near` or, of another
    objective, `shared`."""

    result: Result
    text: str
    score: float
    reason: str


async def choose_context(
    task: Task, *, objective: Objective, search: ResultSearch, embed: Embed, budget_tokens: int
) -> tuple[list[Chosen], str]:
    """The results that the task was derived from, then the nearest to the task and the objective, each thing said once.

    Returns:
        What was chosen, and what was wrong with the index or the embedder (empty when nothing was).
    """
    reasons = {task_id: "after" for task_id in task.after}
    if task.parent_id is not None:
        reasons.setdefault(task.parent_id, "parent")
    needed = await search.results(list(reasons))
    needed.sort(key=lambda result: (reasons[result.task_id] == "parent", result.task_id))
    found = await search.relevant(
        task.name, k=N_RELEVANT + N_SPARE, embed=embed, exclude={task.id, *reasons}, background=objective.spec.text
    )
    words = Words(task.name, background=objective.spec.text)
    needed_scores = words.score([f"{result.task_name}\n{result.text}" for result in needed])
    ranked = [RankedResult(result=result, score=round(score, 3)) for result, score in zip(needed, needed_scores, strict=True)]
    n_near = N_RELEVANT - sum(reasons[result.task_id] == "parent" for result in needed)
    ranked += drop_repetitions(found.ranked, beside=needed, limit=n_near)
    cut = choose_within([entry.result for entry in ranked], budget_tokens, words=words, n_always=len(needed))
    return [
        Chosen(
            result=result,
            text=text,
            score=entry.score,
            reason=reasons.get(result.task_id, "near") if result.objective_id == objective.id else "shared",
        )
        for entry, (result, text) in zip(ranked, cut, strict=False)
    ], found.degraded


def drop_repetitions(ranked: Sequence[RankedResult], *, limit: int, beside: Sequence[Result] = ()) -> list[RankedResult]:
    """The first `limit`, without those that say, in nearly the same words and with the same figures, what a better one (or one of
    `beside`) says."""
    seen = [_signs(result.text) for result in beside]
    kept: list[RankedResult] = []
    for entry in ranked:
        if len(kept) == limit:
            break
        signs = _signs(entry.result.text)
        if not any(_are_near_equal(signs, other) for other in seen):
            seen.append(signs)
            kept.append(entry)
    return kept


def choose_within(
    results: Sequence[Result], budget_tokens: int, *, words: Words | None = None, n_always: int = 0
) -> list[tuple[Result, str]]:
    """Fill a budget with the texts of results, the best first.

    As many are taken as get a worthwhile share (`MIN_EXCERPT_BYTES`, or all of a shorter one). Those that are shorter than an equal
    share leave the rest to the others, so that the budget is used up when there is that much text; what is longer is cut, with "…".

    Args:
        results: the best first.
        budget_tokens: a token is counted as 4 bytes of UTF-8.
        words: which passages of a long text stay: those that fit them best, in their order. None: its beginning.
        n_always: how many are taken whatever their share.
    """
    texts = [(result, result.text.encode("utf-8", "replace")) for result in results]
    budget = budget_tokens * BYTES_PER_TOKEN
    chosen: list[tuple[Result, bytes]] = []
    least = 0
    for result, text in texts if budget > 0 else ():
        least += min(len(text), MIN_EXCERPT_BYTES)
        if len(chosen) >= max(1, n_always) and least > budget:
            break
        chosen.append((result, text))
    share = _equal_share([len(text) for _, text in chosen], budget)
    return [(result, _cut(text, share, words)) for result, text in chosen]


def _equal_share(sizes: Sequence[int], budget: int) -> int:
    """The largest bound under which the sizes, each cut at it, stay within the budget together."""
    left = budget
    for n_done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - n_done)
        if size > share:
            return share
        left -= size
    return budget


def _cut(text: bytes, max_bytes: int, words: Words | None) -> str:
    if len(text) <= max_bytes:
        return text.decode("utf-8", "replace")
    if words is not None:
        passages = _best_passages(text.decode("utf-8", "replace"), max_bytes, words)
        if passages:
            return passages
    mark = "…".encode()
    return text[: max(0, max_bytes - len(mark))].decode("utf-8", "ignore").rstrip() + "…"


def _best_passages(text: str, max_bytes: int, words: Words) -> str:
    """The sentences and lines that fit best, in their order, with "…" where something is left out; empty when none fits the bound."""
    passages = split_passages(text[:MAX_CUT_CHARS])
    scores = words.score(passages)
    kept: set[int] = set()
    left = max_bytes - len("…".encode())
    for place in sorted(range(len(passages)), key=lambda place: (-scores[place], place)):
        size = len(passages[place].encode("utf-8", "replace")) + len(" … ".encode())
        if size <= left:
            left -= size
            kept.add(place)
    parts = []
    for place in sorted(kept):
        parts += ["…"] if place and place - 1 not in kept else []
        parts.append(passages[place].strip())
    return " ".join([*parts, "…"] if kept and len(passages) - 1 not in kept else parts)


def _signs(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Its words, and those of them that must be equal in two texts that say the same."""
    words = frozenset(WORD.findall(fold(text)))
    return words, frozenset(word for word in words if _DIGIT.search(word))


def _are_near_equal(one: tuple[frozenset[str], frozenset[str]], other: tuple[frozenset[str], frozenset[str]]) -> bool:
    return one[1] == other[1] and len(one[0] & other[0]) >= NEAR_EQUAL * len(one[0] | other[0])
