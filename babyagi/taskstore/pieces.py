"""The SQL beside this module: named pieces, and the numbered scripts that make the schema. Knows no
engine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from babyagi.errors import StoreUnusableError


@cache
def load_pieces(*rooms: str) -> Mapping[str, str]:
    """The named pieces of the `.sql` files of these names, by name."""
    pieces: dict[str, str] = {}
    for room in ("meta", "objectives", "tasks", "steps", *rooms):
        pieces |= parse_pieces(files(__package__).joinpath(f"{room}.sql").read_text("utf-8"))
    return MappingProxyType(pieces)


def parse_pieces(text: str) -> dict[str, str]:
    """Split SQL at its `-- name --` headers."""
    pieces: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("-- ") and line.endswith(" --"):
            name = line[3:-3]
            if name in pieces:
                raise ValueError(f"two pieces of SQL are called {name}")
            pieces[name] = []
        elif name and not line.startswith("--"):
            pieces[name].append(line)
    return {name: "\n".join(lines).strip() for name, lines in pieces.items()}


@cache
def load_scripts(prefix: str) -> tuple[str, ...]:
    """The scripts `<prefix>_001.sql`, `<prefix>_002.sql`, …: the n-th brings a store from version n
    - 1 to version n."""
    names = sorted(
        path.name
        for path in files(__package__).iterdir()
        if re.fullmatch(rf"{prefix}_\d{{3}}\.sql", path.name)
    )
    return tuple(files(__package__).joinpath(name).read_text("utf-8") for name in names)


def require_known(version: int, *, known: int, where: str) -> None:
    """Raises `StoreUnusableError` when the schema is newer than this program."""
    if version > known:
        raise StoreUnusableError(
            f"the task store {where} was written by a newer babyagi",
            why=f"its schema has version {version}, this program knows versions up to {known}",
            fix="pip install --upgrade babyagi-daemon",
            guide="store",
        )


def parse_version(tables: Sequence[str], version: str | None, *, where: str) -> int:
    """The schema's version, 0 when there is nothing yet.

    Args:
        tables: the names of all tables there. version: what `meta` says, None when it says nothing.

    Raises:
        StoreUnusableError: the tables are somebody else's.
    """
    if not tables:
        return 0
    if version is None or not version.isdigit():
        raise StoreUnusableError(
            f"{where} is a database, but no task store of babyagi",
            why=f"it holds {len(tables)} other tables",
            fix="choose another one",
            guide="store",
        )
    return int(version)


def held_up(version: int, scripts: Sequence[str], *, where: str) -> StoreUnusableError:
    """The schema is older than this program, and workers of the older program are at work."""
    return StoreUnusableError(
        f"the task store {where} cannot be upgraded now",
        why=(
            f"its schema has version {version}, this program writes version {len(scripts)}, "
            "and workers of the older program are at work"
        ),
        fix="stop every worker, then try again",
        guide="store",
    )
