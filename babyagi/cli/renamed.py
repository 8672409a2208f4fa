"""Names of commands that went. One still does what it did, and a line says what to type instead."""

from __future__ import annotations

from collections.abc import Sequence

from babyagi.cli.text import Style, warn

# by the words that were typed: the words to type
RENAMED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("answer",): ("inbox", "answer"),
    ("approve",): ("inbox", "approve"),
    ("delete",): ("store", "delete"),
    ("index",): ("store",),
    ("index", "check"): ("store", "verify", "--index"),
    ("index", "rebuild"): ("store", "rebuild"),
    ("index", "status"): ("store",),
    ("journal",): ("store",),
    ("journal", "verify"): ("store", "verify"),
    ("log",): ("show", "log"),
    ("mcp",): ("tools",),
    ("mcp", "list"): ("tools", "--servers"),
    ("mcp", "test"): ("tools", "test"),
    ("memory",): ("show", "memory"),
    ("memory", "forget"): ("store", "delete", "--memory"),
    ("memory", "list"): ("show", "memory"),
    ("memory", "show"): ("show", "memory"),
    ("metrics",): ("store", "metrics"),
    ("migrate",): ("store", "migrate"),
    ("objectives",): ("show", "objectives"),
    ("objectives", "list"): ("show", "objectives"),
    ("objectives", "prune"): ("store", "delete", "--old"),
    ("open",): ("serve", "open"),
    ("reject",): ("inbox", "reject"),
    ("results",): ("show", "results"),
    ("results", "list"): ("show", "results"),
    ("results", "search"): ("show", "results"),
    ("retry",): ("tasks", "retry"),
    ("schedule", "list"): ("schedule",),
    ("schedule", "show"): ("schedule",),
    ("tasks", "list"): ("tasks",),
    ("trust",): ("config", "trust"),
    ("why",): ("show", "--why"),
    ("workers",): ("show", "workers"),
}
# options that could stand between the two words of a name, and take a value
_WITH_VALUE = ("--limit", "--objective", "--status")


def rename(args: Sequence[str]) -> list[str]:
    """Return the command line's arguments with today's name of a command that was renamed. What to
    type is said on standard error."""
    if not args:
        return []
    second = next(
        (
            n
            for n, word in enumerate(args)
            if n and not word.startswith("-") and args[n - 1] not in _WITH_VALUE
        ),
        0,
    )
    for old, rest in (
        (tuple(args[n] for n in (0, second)), [*args[1:second], *args[second + 1 :]]),
        (tuple(args[:1]), [*args[1:]]),
    ):
        if new := RENAMED.get(old):
            warn(f"babyagi {' '.join(old)} is now: babyagi {' '.join(new)}", Style.DIM)
            return [*new, *rest]
    return [*args]
