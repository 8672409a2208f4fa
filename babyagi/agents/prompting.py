"""Turns prompt files into messages: replaces their placeholders, of which none may be missing or
left over, and puts fences around texts from elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from babyagi.llm.prompt import Message, Speaker, fence
from babyagi.react.protocols import base
from babyagi.tasks import Passage

PACKAGE = "babyagi.agents"
PROMPT_NAMES = tuple("execution combined creation prioritization check report output words".split())

Field = str | Sequence[tuple[str, Passage]]
"""What replaces a placeholder: a text of the program, or (label, passage) pairs, each of which
becomes a fenced block."""


def load_prompt(name: str) -> str:
    """Return the text of a prompt file of `babyagi/agents`, without white space at its end."""
    return base.load_prompt(name, package=PACKAGE).rstrip()


def say(name: str, /, **fields: str) -> str:
    """Return a short text of `prompts/words.md`; see `react.protocols.base.say`."""
    return base.say(name, package=PACKAGE, **fields)


def prompt_version() -> str:
    """Return a digest of all prompt files. Two runs with the same version used the same prompts."""
    texts = [*map(load_prompt, PROMPT_NAMES), *map(base.load_prompt, base.PROMPT_NAMES)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def build_messages(name: str, fields: Mapping[str, Field]) -> tuple[Message, ...]:
    """Return the system message and the user message of a prompt file.

    Args:
        name: one of `PROMPT_NAMES`.
        fields: the content for each placeholder of the file. A line that is only a placeholder is
            left out if its content is empty.

    Raises:
        ValueError: the names of the fields are not those of the placeholders.
    """
    system, user = load_prompt(name).split("\n---\n", 1)
    base.require_places(name, system + user, fields)
    return (
        Message(speaker=Speaker.SYSTEM, text=_fill(system, fields).strip(), origins=("program",)),
        Message(
            speaker=Speaker.USER, text=_fill(user, fields).strip(), origins=_origins(user, fields)
        ),
    )


def to_field(
    label: str, lines: Sequence[str], origin: str = "model", *, sources: tuple[str, ...] = ()
) -> Field:
    """Return the lines as a field of one fenced block; an empty field if there are none."""
    passage = Passage(text="\n".join(lines), origin=origin, sources=sources)
    return [(label, passage)] if lines else []


def _fill(template: str, fields: Mapping[str, Field]) -> str:
    """Return the template with its placeholders replaced. A line that is only a placeholder is left
    out if its field is empty."""
    filled = [
        (line, base.PLACE.sub(lambda place: _render(fields[place[1]]), line))
        for line in template.split("\n")
    ]
    return "\n".join(text for line, text in filled if text or not base.PLACE.fullmatch(line))


def _render(field: Field) -> str:
    if isinstance(field, str):
        return field
    return "\n".join(fence(label, passage) for label, passage in field)


def _origins(template: str, fields: Mapping[str, Field]) -> tuple[str, ...]:
    placed = [fields[name] for name in base.PLACE.findall(template)]
    origins = [
        origin
        for field in placed
        if not isinstance(field, str)
        for _, passage in field
        for origin in passage.origins
    ]
    return tuple(dict.fromkeys(["program", *origins]))
