"""Which words of a text are looked for in the results, and in what order their results come: the same in every task store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

COMMON_WORD = 100  # results that have a word, from which on it says little; `docs/retrieval.md`


def choose_words(n_by_word: Mapping[str, int]) -> list[str]:
    """The words to look for, the rarest first: as many as together stand in at most `COMMON_WORD` results."""
    chosen: list[str] = []
    n_results = 0
    for word in sorted((word for word, n in n_by_word.items() if n), key=lambda word: (n_by_word[word], word)):
        n_results += n_by_word[word]
        if n_results > COMMON_WORD:
            break
        chosen.append(word)
    return chosen


def order_by_words(pairs: Iterable[tuple[str, int]]) -> list[int]:
    """Task ids, from pairs of a word and the task in whose result it stands; the best first.

    A word counts the more the fewer have it; of equals the latest task comes first.
    """
    known = sorted(pairs)
    n_by_word = Counter(word for word, _ in known)
    scores: defaultdict[int, float] = defaultdict(float)
    for word, task_id in known:
        scores[task_id] += 1 / n_by_word[word]
    return sorted(scores, key=lambda task_id: (-scores[task_id], -task_id))
