"""Whether the demo quotes the right passage: folders of small documents, five questions on each,
and the place that the passage which was marked by hand has among the quotes of the report."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from support.demo_folders import FOLDERS, Asked, ask_demo, load_questions, place_of, quotes_of
from support.table import print_table, verdict

AMONG_FIRST = 3
GOAL_SHARE = 25 / 30


async def measure(questions: Sequence[Asked], *, shows_quotes: bool) -> list[int]:
    """The place of each right passage, 0 where it is not quoted."""
    places = []
    for asked in questions:
        quotes = quotes_of(await ask_demo(FOLDERS / asked.folder, asked.question))
        places.append(place_of(asked, quotes))
        if shows_quotes:
            print(f"\n{asked.folder}: {asked.question}  [{places[-1]}] {asked.holds}")
            for text, path, line in quotes[:5]:
                print(f"   {path}:{line}: {text[:110]}")
    return places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quotes", action="store_true", help="show the quotes of each question")
    parser.add_argument("--only", choices=["development", "held out"], help="one set only")
    options = parser.parse_args()
    rows = []
    for name, held_out in (("development", False), ("held out", True)):
        if options.only in (None, name):
            questions = load_questions(held_out=held_out)
            places = asyncio.run(measure(questions, shows_quotes=options.quotes))
            n_found = sum(0 < place <= AMONG_FIRST for place in places)
            rows.append(
                [
                    name,
                    str(len(questions)),
                    str(sum(place == 1 for place in places)),
                    str(n_found),
                    verdict(n_found >= GOAL_SHARE * len(questions)),
                ]
            )
    print_table(
        "demo", ["set", "questions", "first", f"among the first {AMONG_FIRST}", "goal"], rows
    )


if __name__ == "__main__":
    main()
