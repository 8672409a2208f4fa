"""What a prompt says, read back: for models of tests that answer by what they were told."""

import re

from babyagi.llm.prompt import UNMARKED, fence
from babyagi.tasks import Passage

_RESULT = re.compile(
    r"^<<result (\w+) from result:(\d+)[^\n]*\nTask \2: ([^\n]*)\n(.*?)\n\1>>$",
    re.MULTILINE | re.DOTALL,
)


def fenced(label: str, passage: Passage, mark: str = "vjjv") -> str:
    """A fence as a model sees it."""
    return fence(label, passage).replace(UNMARKED, mark)


def results_in(text: str) -> list[tuple[int, str, str]]:
    """The results that a prompt shows, of the objective itself: number of the task, its name, and
    the text."""
    return [(int(number), name, result) for _, number, name, result in _RESULT.findall(text)]


def block_in(text: str, label: str) -> str:
    """The text of the first fence with this label, empty without one."""
    found = re.search(
        rf"^<<{re.escape(label)} (\w+) from [^\n]*\n(.*?)\n\1>>$", text, re.MULTILINE | re.DOTALL
    )
    return found[2] if found else ""


def origins_in(text: str) -> list[tuple[str, str]]:
    """The label of each fence of a prompt, and where its text came from."""
    return re.findall(r"^<<([\w ]+) \w+ from ([^\n]*)$", text, re.MULTILINE)


def asks_for_missing(text: str) -> bool:
    """Whether the prompt asks creation for what a check found unanswered."""
    return bool(block_in(text, "missing parts"))
