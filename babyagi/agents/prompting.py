"""Prompt files to messages: strict filling, and passages fenced on the way in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from babyagi.llm.prompt import Message, Speaker, fence
from babyagi.react.protocols.base import PROMPT_NAMES as PROTOCOL_PROMPTS
from babyagi.react.protocols.base import load_prompt as load_protocol_prompt
from babyagi.tasks import Passage

PROMPT_NAMES = ("execution", "combined", "creation", "prioritization", "check", "report")

_PLACE = re.compile(r"\{\{(\w+)\}\}")

Field = str | Sequence[tuple[str, Passage]]
"""What fills a place: a text of our own, or passages with their labels, which are fenced."""


@cache
def load_prompt(name: str) -> str:
    """Return the text of a prompt file, without the blank at its end."""
    return (
        files("babyagi.agents")
        .joinpath("prompts", f"{name}.md")
        .read_text(encoding="utf-8")
        .rstrip()
    )


def prompt_version() -> str:
    """Return a digest of every prompt file: two runs with the same version asked in the same
    words."""
    texts = [*map(load_prompt, PROMPT_NAMES), *map(load_protocol_prompt, PROTOCOL_PROMPTS)]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def build_messages(name: str, fields: Mapping[str, Field]) -> tuple[Message, ...]:
    """Return the system and the user message of a prompt file.

    Args:
        name: one of `PROMPT_NAMES`.
        fields: one for each place of the file; an empty sequence leaves its line empty.

    Raises:
        ValueError: a place without a field, or a field without a place.
    """
    system, user = load_prompt(name).split("\n---\n", 1)
    wanted = set(_PLACE.findall(system + user))
    if wanted != set(fields):
        raise ValueError(f"prompt {name} has the places {sorted(wanted)}, got {sorted(fields)}")
    return (
        Message(speaker=Speaker.SYSTEM, text=_fill(system, fields).strip(), origins=("program",)),
        Message(
            speaker=Speaker.USER, text=_fill(user, fields).strip(), origins=_origins(user, fields)
        ),
    )


def _fill(template: str, fields: Mapping[str, Field]) -> str:
    """The template with its fields; of a line that is one place, nothing is left where its field is
    empty."""
    filled = [
        (line, _PLACE.sub(lambda place: _render(fields[place.group(1)]), line))
        for line in template.split("\n")
    ]
    return "\n".join(text for line, text in filled if text or not _PLACE.fullmatch(line))


def _render(field: Field) -> str:
    if isinstance(field, str):
        return field
    return "\n".join(fence(label, passage) for label, passage in field)


def _origins(template: str, fields: Mapping[str, Field]) -> tuple[str, ...]:
    placed = [fields[name] for name in _PLACE.findall(template)]
    origins = [
        origin
        for field in placed
        if not isinstance(field, str)
        for _, passage in field
        for origin in passage.origins
    ]
    return tuple(dict.fromkeys(["program", *origins]))
