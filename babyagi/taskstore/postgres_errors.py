"""PostgreSQL's errors in our words: by the class of the SQLSTATE, and by the server's words where a
connection fails.

A failed connection carries no SQLSTATE, and its words come in the language of the server. What is
not recognised there counts as passing, and the server's own words are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from babyagi.errors import SettingsError, StoreUnavailableError, StoreUnusableError
from babyagi.redaction import redact

if TYPE_CHECKING:
    import psycopg

# time mends it; 25: a standby, for as long as it is one
PASSING = frozenset("08 25 40 53 55 57 58 72".split())
LASTING = frozenset("28 3D 3F F0 XX".split())  # a person mends it
OURS = frozenset(  # a statement that is wrong: a programmer mends it
    "02 03 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 23 24 26 27 2B 2D 2F 34 38 39 3B 42 44 54 HV P0".split()
)
# no right; the tables or the database are gone
LASTING_CODES = frozenset(("42501", "42P01", "3F000", "57P04"))
ROLLED_BACK = "40"
LASTING_WORDS = re.compile(
    r"authentication failed|no password supplied|does not exist|no pg_hba\.conf "
    r"entry|permission denied|not permitted to log in"
    r"|certificate verify failed|server does not support SSL|invalid "
    r"(?:sslmode|port|connection option|URI)|missing \"=\""
    r"|requires? a peer user|could not find own user|root certificate file|is not "
    r"currently accepting connections"
)
WHY_CHARS = 300
# may be a part of the password
_QUOTED = re.compile(r'"(?!(?:port|host|user|dbname|sslmode|connect_timeout|=)")[^"]*"')


@contextmanager
def in_our_words(shown: str) -> Iterator[None]:
    """Say the driver's errors in our words; `shown` is the URL, masked."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        ours = translate(error, shown)
        if ours is None:
            raise
        raise ours from None  # the driver's traceback may show the URL


def translate(
    error: psycopg.Error, shown: str
) -> StoreUnavailableError | StoreUnusableError | SettingsError | None:
    """The error in our words, None when it is a programmer's."""
    import psycopg

    why = _words(error)
    if error.sqlstate is None:
        if isinstance(error, psycopg.OperationalError) and not LASTING_WORDS.search(why):
            return StoreUnavailableError(
                f"the task store {shown} cannot answer now", why=why, guide="store"
            )
        if isinstance(error, psycopg.ProgrammingError):
            return SettingsError(
                f"the address of the task store cannot be read: {shown}",
                why=_QUOTED.sub('"***"', why),
                guide="store",
            )
        return _unusable(shown, why) if isinstance(error, psycopg.OperationalError) else None
    if error.sqlstate in LASTING_CODES or error.sqlstate[:2] in LASTING:
        return _unusable(shown, why)
    if error.sqlstate[:2] in PASSING:
        return StoreUnavailableError(
            f"the task store {shown} cannot answer now", why=why, guide="store"
        )
    return None


def is_rolled_back(error: psycopg.Error) -> bool:
    """Whether the server asks for the transaction once more (a deadlock, a conflict)."""
    return error.sqlstate is not None and error.sqlstate[:2] == ROLLED_BACK


def _unusable(shown: str, why: str) -> StoreUnusableError:
    return StoreUnusableError(
        f"the task store {shown} cannot be used",
        why=why,
        fix=(
            "check user, password, host and database of BABYAGI_TASK_STORE, and the rights "
            "of that user"
        ),
        guide="store",
    )


def _words(error: psycopg.Error) -> str:
    """The server's words on one line, without what looks like a key; hints of several lines are
    cut."""
    return redact(" ".join(str(error).split()))[:WHY_CHARS]
