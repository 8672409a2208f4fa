"""`python -m benchmarks.replies FOLDER`: which published replies of real models the program would
refuse for their form.

FOLDER is a checkout of github.com/tatsu-lab/alpaca_eval, whose `results` hold 805 replies of each
of some two hundred models. A person decides which of the printed ones are loops.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path

from babyagi.agents.outcomes import find_fault
from babyagi.agents.replies import visible
from babyagi.llm.prompt import Message, Speaker

N_SHOWN_CHARS = 70
NO_INSTRUCTIONS = (Message(speaker=Speaker.SYSTEM, text="", origins=("program",)),)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replies", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=16, help="how many models, drawn by the seed")
    parser.add_argument("--replies", type=int, default=500, help="the first of each model")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args(argv)
    paths = sorted(options.folder.glob("results/*/model_outputs.json"))
    n_replies = n_refused = 0
    for path in random.Random(options.seed).sample(paths, min(options.models, len(paths))):
        for one in json.loads(path.read_text("utf-8"))[: options.replies]:
            n_replies += 1
            text, task = visible(one["output"]), one["instruction"]
            if fault := find_fault(text, task_name=task, messages=NO_INSTRUCTIONS):
                n_refused += 1
                end = text[-N_SHOWN_CHARS:]
                print(f"{path.parent.name}: {task[:N_SHOWN_CHARS]!r}: {fault} … {end!r}")
    print(f"{n_replies:,} replies, {n_refused} refused for their form")


if __name__ == "__main__":
    main()
