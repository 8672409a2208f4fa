"""`python -m benchmarks.worlds.outcome`: the tables of `docs/outcome.md`, on seeds and a surface
that nothing was tuned on.

Takes most of an hour on two cores; `--only N` prints one table, `--list` says which there are.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.worlds.run import main as run_worlds

TABLES = (
    (
        "Without noise, codes",
        "--facts 10,30 --seeds 3 --concurrency 1,4,8 --planning separate,combined",
    ),
    (
        "Without noise, codes, 100 facts",
        "--facts 100 --seeds 3 --concurrency 1,8 --planning separate,combined",
    ),
    (
        "Without noise, three workers",
        "--facts 10,30,100 --seeds 3 --concurrency 4 --workers 3 --planning separate,combined",
    ),
    ("Without noise, 300 facts", "--facts 300 --seeds 3 --concurrency 4 --planning separate"),
    (
        "Names in plain words",
        (
            "--surface places --facts 10,30,100 --seeds 3 --concurrency 4 --planning "
            "separate,combined"
        ),
    ),
    (
        "A surface that nothing was tuned on",
        ("--surface post --facts 10,30,100 --seeds 3 --concurrency 4 --planning separate,combined"),
    ),
    (
        "A second surface in plain words",
        ("--surface lab --facts 10,30,100 --seeds 3 --concurrency 4 --planning separate,combined"),
    ),
    (
        "Results of 8 kB, the fact last",
        ("--facts 30 --seeds 3 --result-chars 8000 --fact-place last --planning separate,combined"),
    ),
    ("Noise", "--facts 10,30 --seeds 20 --noise --planning separate,combined"),
    ("Noise, 100 facts", "--facts 100 --seeds 5 --noise --planning separate,combined"),
    (
        "Noise, and 10 % of lacks taken for answers",
        "--worlds join --facts 30 --seeds 20 --noise --misjudges 0.1",
    ),
    (
        "Noise, and 3 % of lacks answered with something made up",
        "--worlds join --facts 30 --seeds 20 --noise --invents 0.03",
    ),
    (
        "Briefs",
        ("--worlds brief --facts 8,15,30 --seeds 3 --concurrency 1,4 --planning separate,combined"),
    ),
    (
        "Briefs with noise",
        (
            "--worlds brief --facts 8,15,30 --seeds 3 --noise --concurrency 4 --planning "
            "separate,combined"
        ),
    ),
    (
        "Plans of people (FanOutQA)",
        "--worlds fanout --facts 10,30 --seeds 3 --concurrency 4 --planning separate,combined",
    ),
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.worlds.outcome", description=__doc__
    )
    parser.add_argument("--only", type=int, help="the number of one table")
    parser.add_argument("--list", action="store_true", help="say which tables there are")
    options = parser.parse_args(argv)
    for number, (title, command) in enumerate(TABLES, start=1):
        if options.only not in (None, number):
            continue
        print(f"\n## {title}\n\n`python -m benchmarks.worlds --held-out {command}`\n", flush=True)
        if not options.list:
            run_worlds(["--held-out", *command.split()])


if __name__ == "__main__":
    main()
