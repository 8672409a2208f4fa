"""How the board says things: moments, numbers, statuses, and texts in which nothing acts or
hides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from babyagi.pages.graph import SIGNS
from babyagi.tasks import Objective, StopReason, TaskStatus
from babyagi.text import UNSEEN, harmless

_WORDS = {TaskStatus.DEAD: "given up", TaskStatus.QUEUED: "to do", TaskStatus.WAITING: "asks you"}
_GOOD_ENDS = (StopReason.FINISHED, StopReason.OBJECTIVE_MET)
_BAD_ENDS = (StopReason.FAILED, StopReason.CANCELLED)
_COMMAND = re.compile(
    r"`([^`\n]+)`|babyagi [a-z]+(?: (?:add|move|edit|skip|search|rebuild|prune|show)\b)?"
    r"(?: (?:--[a-z-]+|\d+|N|TASK|…|\"…\"|(?<=run )--continue))*"
)
_UNITS = ((86_400, "day"), (3_600, "h"), (60, "min"))


@cache
def open_templates() -> Environment:
    """Templates in which every text is escaped, and harmless."""
    env = Environment(
        loader=PackageLoader("babyagi.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        {
            "moment": say_moment,
            "number": lambda n: f"{n:,}",
            "advice": say_advice,
            "commands": mark_commands,
            "sentence": say_sentence,
            "sign": lambda status: SIGNS[status],
            "status": lambda status: _WORDS.get(status, status.value),
            "unseen": mark_unseen,
        }
    )
    return env


def _make_harmless(value: Any) -> Any:
    """A text without what acts or hides; what is markup of ours stays as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return "\n".join(harmless(line) for line in value.split("\n"))


def say_moment(at: datetime | None, now: datetime) -> Markup:
    """How long ago, or in how long, with the moment itself for a script and for who points at
    it."""
    if at is None:
        return Markup("")
    at = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        f"{at:%Y-%m-%dT%H:%M:%S}Z", f"{at:%Y-%m-%d %H:%M:%S}", _say_age((now - at).total_seconds())
    )


def _say_age(age_s: float) -> str:
    passed = abs(age_s)
    if passed < 45:
        return "just now" if age_s >= 0 else "in a moment"
    size, unit = next((pair for pair in _UNITS if passed >= pair[0] - 15), _UNITS[-1])
    n = max(1, round(passed / size))
    words = f"{n} {unit}{'s' if unit == 'day' and n > 1 else ''}"
    return f"{words} ago" if age_s >= 0 else f"in {words}"


def say_sentence(text: str) -> str:
    """The text as a sentence: a capital, and a full stop."""
    text = text.strip()
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.!?…:' else '.'}"


def say_advice(text: str) -> Markup:
    """What would change something: a sentence, with what is typed as code."""
    is_typed = text.startswith("babyagi ")
    return mark_commands(f"In a terminal: {text}" if is_typed else say_sentence(text))


def mark_commands(text: str) -> Markup:
    """The text, and what is typed in a terminal as code."""
    parts, last = [], 0
    for match in _COMMAND.finditer(text):
        parts += [escape(_make_harmless(text[last : match.start()]))]
        parts += [Markup("<code>{}</code>").format(_make_harmless(match[1] or match[0]))]
        last = match.end()
    return Markup("").join([*parts, escape(_make_harmless(text[last:]))])


def mark_unseen(value: Any) -> Markup:
    """The text, and every character that a person cannot see by its number."""
    text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
    return Markup("\n").join(Markup("").join(_mark(line)) for line in text.split("\n"))


def _mark(line: str) -> Iterator[Markup]:
    last = 0
    for match in UNSEEN.finditer(line):
        yield escape(line[last : match.start()])
        char = match.group()
        yield (
            Markup(char) if char == "\t" else Markup("<mark>U+{}</mark>").format(f"{ord(char):04X}")
        )
        last = match.end()
    yield escape(line[last:])


def name_state(objective: Objective) -> tuple[str, str, str]:
    """Of an objective a class of the style, a sign, and a word."""
    reason = objective.stop_reason
    if reason is None:
        is_active = objective.status.value == "active"
        return ("running", "●", "active") if is_active else ("paused", "Ⅱ", "paused")
    word = reason.value.replace("_", " ").replace("limit:", "limit of ")
    if reason in _GOOD_ENDS:
        return "done", "✓", word
    return ("dead", "✕", word) if reason in _BAD_ENDS else ("waiting", "!", word)
