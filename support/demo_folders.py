"""Folders of documents with questions whose right passage was marked by hand, and what the
rehearsal model quotes of them.

`questions.json` is the set that the choice of passages was tuned on, `questions_held_out.json` one
on other folders that it never was. `questions_public.json` asks about the documentation of public
projects, which is not here: it names the repository, the commit and the files of each folder.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import babyagi

FOLDERS = Path(__file__).parent.parent / "tests" / "data" / "demo_folders"
MAX_DEMO_S = 300.0  # large folders on a machine that does something else
QUOTE = re.compile(r'^- "(.+)" \((.+?):(\d+)\)(?: under .+)?$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about a folder, and the passages that answer it: (document, words it holds)."""

    folder: str
    question: str
    answers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFolder:
    """Documents that somebody else wrote; `files` is a pattern of paths, `*` also over folders."""

    name: str
    kind: str
    repository: str
    commit: str
    files: str
    held_out: bool = False

    def copy(self, clone: Path, to: Path) -> None:
        """Copy the documents out of a clone."""
        for path in (path for path in clone.rglob("*") if path.is_file()):
            name = path.relative_to(clone)
            if fnmatch(str(name), self.files):
                (to / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to / name)


def load_questions(*, held_out: bool) -> list[Asked]:
    name = "questions_held_out.json" if held_out else "questions.json"
    return [
        Asked(
            folder=one["folder"], question=one["question"], answers=((one["path"], one["holds"]),)
        )
        for one in json.loads((FOLDERS / name).read_text(encoding="utf-8"))
    ]


def load_public() -> tuple[list[PublicFolder], list[Asked]]:
    read = json.loads((FOLDERS / "questions_public.json").read_text(encoding="utf-8"))
    folders = [PublicFolder(name=name, **one) for name, one in read["folders"].items()]
    questions = [
        Asked(
            folder=one["folder"],
            question=one["question"],
            answers=tuple((path, holds) for path, holds in one["answers"]),
        )
        for one in read["questions"]
    ]
    return folders, questions


async def ask_demo(folder: Path, question: str) -> str:
    """The report of a run as `babyagi demo` makes it."""
    with tempfile.TemporaryDirectory() as home:
        outcome = await babyagi.run_async(
            question,
            files=folder,
            model="rehearsal",
            max_time=MAX_DEMO_S,
            home=home,
            result_store="builtin",
            embedding_model="hash",
        )
    return outcome.report


def quotes_of(report: str) -> list[tuple[str, str, int]]:
    """(text, path, line) of each quote, in the report's order."""
    return [(text, path, int(line)) for text, path, line in QUOTE.findall(report)]


def place_of(asked: Asked, quotes: Sequence[tuple[str, str, int]]) -> int:
    """The place of the right passage among the quotes, from 1; 0 where it is not quoted."""
    return next(
        (
            place
            for place, (text, path, _) in enumerate(quotes, start=1)
            if any(path == right and holds in text for right, holds in asked.answers)
        ),
        0,
    )
