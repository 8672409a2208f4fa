"""Which words of a text are looked for in the results, and in what order their results come: the
same in every task store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

COMMON_WORD = 100  # results that have a word, from which on it says little; `docs/retrieval.md`
SATURATION = 1.2  # BM25's k1
LENGTH_SHARE = 0.75  # BM25's b


def choose_words(n_by_word: Mapping[str, int]) -> list[str]:
    """The words to look for, the rarest first: as many as together stand in at most `COMMON_WORD`
    results."""
    chosen: list[str] = []
    n_results = 0
    for word in sorted(
        (word for word, n in n_by_word.items() if n), key=lambda word: (n_by_word[word], word)
    ):
        n_results += n_by_word[word]
        if n_results > COMMON_WORD:
            break
        chosen.append(word)
    return chosen


def order_by_words(found: Iterable[tuple[str, int, int]]) -> list[int]:
    """Task ids, from triples of a word, the task in whose result it stands and that result's length
    in characters; the best first.

    As BM25 would have them if no word stood in a result twice: a word counts the more the fewer
    have it, and the less the longer the
    result is. Of equals the latest task comes first.
    """
    known = sorted(found)
    n_by_word = Counter(word for word, _, _ in known)
    mean = sum(n_chars for _, _, n_chars in known) / max(1, len(known)) or 1.0
    scores: defaultdict[int, float] = defaultdict(float)
    for word, task_id, n_chars in known:
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * n_chars / mean
        scores[task_id] += 1 / n_by_word[word] / (1 + SATURATION * length)
    return sorted(scores, key=lambda task_id: (-scores[task_id], -task_id))
