"""Folders of documents with questions whose right passage was marked by hand, and what the
rehearsal model quotes of them.

`questions.json` is the set that the choice of passages was tuned on, `questions_held_out.json` one
on other folders that it never was.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from babyagi.files import Folder
from babyagi.tools.files import build_file_tools
from support.world import World

FOLDERS = Path(__file__).parent.parent / "tests" / "data" / "demo_folders"
QUOTE = re.compile(r'^- "(.+)" \((.+?):(\d+)\)(?: under .+)?$', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about a folder; the right passage stands in document `path` and holds `holds`."""

    folder: str
    question: str
    path: str
    holds: str


def load_questions(*, held_out: bool) -> list[Asked]:
    name = "questions_held_out.json" if held_out else "questions.json"
    return [Asked(**one) for one in json.loads((FOLDERS / name).read_text(encoding="utf-8"))]


async def ask_demo(folder: Path, question: str) -> str:
    """The report of a run as `babyagi demo` makes it, in memory."""
    world = World(tools=build_file_tools(Folder(folder), offload=asyncio.to_thread))
    objective = await world.run(
        text=f"Answer from the documents in the folder: {question}",
        initial_task=f"List the documents, and find what they say about: {question}",
    )
    return await world.store.report(objective.id) or ""


def quotes_of(report: str) -> list[tuple[str, str, int]]:
    """(text, path, line) of each quote, in the report's order."""
    return [(text, path, int(line)) for text, path, line in QUOTE.findall(report)]


def place_of(asked: Asked, quotes: Sequence[tuple[str, str, int]]) -> int:
    """The place of the right passage among the quotes, from 1; 0 where it is not quoted."""
    return next(
        (
            place
            for place, (text, path, _) in enumerate(quotes, start=1)
            if path == asked.path and asked.holds in text
        ),
        0,
    )
