"""The verbs of the HTTP API: those of the table, and one that only a server can do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from babyagi.serve.door import Keys
from babyagi.serve.feed import Feed
from babyagi.tasks import Level
from babyagi.verbs import answers, verb_table
from babyagi.verbs.json_shapes import Json
from babyagi.verbs.verb_table import REPEATABLE, VERBS, Verb, change


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk(verb_table.Desk):
    """What the verbs of a server use.

    Attributes:
        feed: the feed of events.
        keys: the credentials.
    """

    feed: Feed
    keys: Keys


async def new_code(desk: Desk, level: Literal["read", "steer", "admin"] = "admin") -> Json:
    """Return a one-time code, with which a browser opens a session within two minutes."""
    return {"code": desk.keys.new_code(Level[level.upper()])}


OPERATIONS: tuple[Verb, ...] = (
    *VERBS,
    change("/codes", new_code, answers.Code, "serve open", status=201, **REPEATABLE),
)
