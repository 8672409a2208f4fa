"""The sets of results and queries that retrieval is measured on: made here, from sentences of our
own, the same on every run.

Each result has one fact with a figure of its own among sentences that many results share. The
queries of each fact: in its words, in other words, in its words misspelt, and as a task would be
named. `python -m support.retrieval_set` writes them into `tests/data`.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from support.retrieval_vocabularies import HELD_OUT, TUNED, Vocabulary

DATA = Path(__file__).parent.parent / "tests" / "data"
SETS = {DATA / "retrieval.json": TUNED, DATA / "retrieval_held_out.json": HELD_OUT}
KINDS = ("same words", "paraphrase", "misspelt", "as a task")
QUERIED_SHARE = 0.2  # of the results


def make_set(vocabulary: Vocabulary) -> dict[str, Any]:
    """`results`: name, text. `queries`: kind, text, the number of the result that answers, and the
    answer that must be seen."""
    draw = random.Random(vocabulary.seed)
    results: list[dict[str, Any]] = []
    queries: list[dict[str, Any]] = []
    figures = iter(
        draw.sample(range(1_000, 100_000), len(vocabulary.subjects) * len(vocabulary.aspects))
    )
    for subject, other in vocabulary.subjects:
        for name, fact, asked, asked_otherwise in vocabulary.aspects:
            figure, task = str(next(figures)), name.format(s=subject)
            results.append(
                {
                    "name": task,
                    "text": _write(draw, vocabulary, subject, fact.format(s=subject, n=figure)),
                }
            )
            if draw.random() < QUERIED_SHARE:
                same, paraphrase = asked.format(s=subject), asked_otherwise.format(o=other)
                follow_up = vocabulary.follow_up.format(f"{task[0].lower()}{task[1:]}")
                texts = (same, paraphrase, _misspell(draw, same), follow_up)
                number = len(results) - 1
                queries += [
                    {"kind": kind, "text": text, "result": number, "answer": figure}
                    for kind, text in zip(KINDS, texts, strict=True)
                ]
    return {"results": results, "queries": queries}


def make_others(n: int, vocabulary: Vocabulary = TUNED) -> list[dict[str, str]]:
    """Results about subjects that nobody asks for, in the same sentences."""
    draw = random.Random(7)
    syllables, places = vocabulary.other_syllables.split(), vocabulary.other_places.split()
    others: list[dict[str, str]] = []
    for _ in range(n):
        subject = f"the {''.join(draw.choices(syllables, k=3))} {draw.choice(places)}"
        name, fact, _, _ = draw.choice(vocabulary.aspects)
        sentences = draw.choices(vocabulary.fillers, k=draw.randint(3, 7))
        sentences.insert(
            draw.randint(0, 3), fact.format(s=subject, n=draw.randint(100_000, 999_999))
        )
        others.append(
            {"name": f"{name.format(s=subject)} ({len(others)})", "text": " ".join(sentences)}
        )
    return others


def _write(draw: random.Random, vocabulary: Vocabulary, subject: str, fact: str) -> str:
    """The fact somewhere among other sentences; one text in four is long."""
    n = draw.randint(30, 60) if draw.random() < 0.25 else draw.randint(3, 7)
    others = draw.sample(
        [other for other, _ in vocabulary.subjects if other != subject], draw.randint(1, 3)
    )
    sentences = [
        *draw.choices(vocabulary.fillers, k=n),
        *(draw.choice(vocabulary.mentions).format(other) for other in others),
    ]
    sentences.insert(draw.randint(0, len(sentences)), fact)
    return " ".join(sentences)


def _misspell(draw: random.Random, text: str) -> str:
    """One slip of the fingers in every word of five letters or more: two letters swapped, one left
    out, doubled or replaced."""
    return " ".join(_slip(draw, word) if len(word) >= 5 else word for word in text.split())


def _slip(draw: random.Random, word: str) -> str:
    at = draw.randint(1, len(word) - 2)
    letter = draw.choice("etaoinsrh")
    return draw.choice(
        (
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + letter + word[at + 1 :],
        )
    )


def main() -> None:
    for path, vocabulary in SETS.items():
        path.write_text(json.dumps(make_set(vocabulary), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
