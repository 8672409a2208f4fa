"""`python -m benchmarks.replies FOLDER`: which published replies of real models the program would
refuse for their form.

FOLDER is a checkout of a repository with replies in the form of AlpacaEval
(github.com/tatsu-lab/alpaca_eval: 805 of each of some two hundred models) or of MT-Bench (lines of
JSON with `choices`, as in github.com/AUGMXNT/FastChat in Japanese and
github.com/pnu-clink/korean-mt-bench in Korean and English: two turns to each of 80 questions). A
person decides which of the printed ones are loops.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from babyagi.agents.outcomes import find_fault
from babyagi.llm.prompt import Message, Speaker
from babyagi.llm.reading import visible_text

ALPACA_EVAL, MT_BENCH = "model_outputs.json", "*answer*/*.jsonl"
N_SHOWN_CHARS = 70
NO_INSTRUCTIONS = (Message(speaker=Speaker.SYSTEM, text="", origins=("program",)),)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replies", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=16, help="how many models, drawn by the seed")
    parser.add_argument("--replies", type=int, default=500, help="the first of each model")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args(argv)
    paths = sorted([*options.folder.rglob(ALPACA_EVAL), *options.folder.rglob(MT_BENCH)])
    n_replies = n_refused = 0
    for path in random.Random(options.seed).sample(paths, min(options.models, len(paths))):
        for said, task in islice(read_replies(path), options.replies):
            n_replies += 1
            text = visible_text(said)
            if fault := find_fault(text, task_name=task, messages=NO_INSTRUCTIONS):
                n_refused += 1
                end = text[-N_SHOWN_CHARS:]
                name = path.relative_to(options.folder)
                print(f"{name}: {task[:N_SHOWN_CHARS]!r}: {fault} … {end!r}")
    print(f"{n_replies:,} replies, {n_refused} refused for their form")


def read_replies(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each reply with its task; "" where the file does not hold the tasks."""
    if path.suffix == ".json":
        yield from (
            (one["output"], one["instruction"]) for one in json.loads(path.read_text("utf-8"))
        )
        return
    for line in path.read_text("utf-8").splitlines():
        for choice in json.loads(line)["choices"]:
            yield from ((said, "") for said in choice["turns"])


if __name__ == "__main__":
    main()
