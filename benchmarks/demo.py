"""Whether the demo quotes the right passage: folders of documents, five questions on each, and the
place that the passage which was marked by hand has among the quotes of the report; and whether one
call of `search_files` gives it.

`--public FOLDER` asks about the documentation of public projects instead, of which FOLDER holds
clones; where one is missing, it prints the command that brings it.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from babyagi.files.folder import Folder
from babyagi.tools.files import FileSearch
from support.demo_folders import (
    FOLDERS,
    Asked,
    PublicFolder,
    ask_demo,
    load_public,
    load_questions,
    place_of,
    quotes_of,
)
from support.table import print_table, verdict

AMONG_FIRST = 3
GOAL_SHARE = 25 / 30


async def measure(questions: Sequence[Asked], *, parent: Path, shows_quotes: bool) -> list[int]:
    """The place of each right passage, 0 where it is not quoted."""
    places = []
    for asked in questions:
        quotes = quotes_of(await ask_demo(parent / asked.folder, asked.question))
        places.append(place_of(asked, quotes))
        if shows_quotes:
            print(f"\n{asked.folder}: {asked.question}  [{places[-1]}] {asked.answers[0][1]}")
            for text, path, line in quotes[:5]:
                print(f"   {path}:{line}: {text[:110]}")
    return places


def count_found(questions: Sequence[Asked], *, parent: Path) -> int:
    """How many of the right passages one call of `search_files` gives for the bare question."""
    n_found = 0
    for asked in questions:
        found = FileSearch(Folder(parent / asked.folder)).find(asked.question)
        quotes = [
            (
                " ".join(" ".join(extract.part.lines).split()),
                extract.path,
                extract.part.first_line,
            )
            for extract in found.extracts
        ]
        n_found += place_of(asked, quotes) > 0
    return n_found


def row(name: str, places: Sequence[int], n_searched: int) -> list[str]:
    n_found = sum(0 < place <= AMONG_FIRST for place in places)
    n_first = sum(place == 1 for place in places)
    met = verdict(n_found >= GOAL_SHARE * len(places))
    return [name, str(len(places)), str(n_searched), str(n_first), str(n_found), met]


def missing_commands(folders: Sequence[PublicFolder], clones: Path) -> list[str]:
    return [
        f"git clone https://github.com/{folder.repository} {clones / folder.name}"
        f" && git -C {clones / folder.name} checkout {folder.commit}"
        for folder in folders
        if not (clones / folder.name).is_dir()
    ]


def measure_own(only: str | None, *, shows_quotes: bool) -> list[list[str]]:
    rows = []
    for name, held_out in (("development", False), ("held out", True)):
        if only in (None, name):
            questions = load_questions(held_out=held_out)
            measured = measure(questions, parent=FOLDERS, shows_quotes=shows_quotes)
            n_searched = count_found(questions, parent=FOLDERS)
            rows.append(row(name, asyncio.run(measured), n_searched))
    return rows


def measure_public(clones: Path, only: str | None, *, shows_quotes: bool) -> list[list[str]]:
    """One row for each folder that is there, and one for each set."""
    folders, questions = load_public()
    rows, by_set, searched = [], dict[str, list[int]](), Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        for folder in folders:
            name = "held out" if folder.held_out else "development"
            if only not in (None, name) or not (clones / folder.name).is_dir():
                continue
            folder.copy(clones / folder.name, Path(scratch) / folder.name)
            asked = [one for one in questions if one.folder == folder.name]
            measured = measure(asked, parent=Path(scratch), shows_quotes=shows_quotes)
            places = asyncio.run(measured)
            n_searched = count_found(asked, parent=Path(scratch))
            rows.append(row(f"{folder.name}: {folder.kind}", places, n_searched))
            searched[name] += n_searched
            by_set.setdefault(name, []).extend(places)
    return rows + [row(name, places, searched[name]) for name, places in by_set.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quotes", action="store_true", help="show the quotes of each question")
    parser.add_argument("--only", choices=["development", "held out"], help="one set only")
    parser.add_argument("--public", type=Path, metavar="FOLDER", help="clones of public projects")
    options = parser.parse_args()
    if options.public:
        for command in missing_commands(load_public()[0], options.public):
            print(command)
        rows = measure_public(options.public, options.only, shows_quotes=options.quotes)
    else:
        rows = measure_own(options.only, shows_quotes=options.quotes)
    print_table(
        "demo",
        ["set", "questions", "in one search", "first", f"among the first {AMONG_FIRST}", "goal"],
        rows,
    )


if __name__ == "__main__":
    main()
