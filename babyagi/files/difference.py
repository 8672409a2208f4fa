"""How a text differs from the one that it replaces, line by line, so that the one can be made from
the other and what is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

# on either side, between what is the same at both ends; comparing takes their product in the worst
# case
MAX_COMPARED_LINES = 4000
N_AROUND = 3  # lines shown on each side of a change

SignedLine = tuple[str, str]


def compare(before: str, after: str) -> tuple[SignedLine, ...] | None:
    """Return the lines with `-` (goes), `+` (comes) or a blank (stays), and `@` with a number for
    as many as stay and are left out.

    Lines end with `\\n` alone, so any other line end is part of a line. None when there is too much
    that differs.
    """
    old, new = before.split("\n"), after.split("\n")
    n_head = _count_same(old, new)
    n_tail = _count_same(old[n_head:][::-1], new[n_head:][::-1])
    old_middle, new_middle = old[n_head : len(old) - n_tail], new[n_head : len(new) - n_tail]
    if max(len(old_middle), len(new_middle)) > MAX_COMPARED_LINES:
        return None
    changes = _compare_middle(old_middle, new_middle)
    lines = [
        *((" ", line) for line in old[:n_head]),
        *changes,
        *((" ", line) for line in old[len(old) - n_tail :]),
    ]
    return tuple(_leave_out(lines))


def _count_same(one: Sequence[str], other: Sequence[str]) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def _compare_middle(old: Sequence[str], new: Sequence[str]) -> Iterator[SignedLine]:
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in old[old_from:old_to])
        else:
            yield from (("-", line) for line in old[old_from:old_to])
            yield from (("+", line) for line in new[new_from:new_to])


def _leave_out(lines: Sequence[SignedLine]) -> Iterator[SignedLine]:
    """The lines, and a number in place of those that are further than `N_AROUND` from any
    change."""
    changed = [at for at, (sign, _) in enumerate(lines) if sign != " "]
    shown = {near for at in changed for near in range(at - N_AROUND, at + N_AROUND + 1)}
    n_left_out = 0
    for at, line in enumerate(lines):
        if at not in shown:
            n_left_out += 1
            continue
        if n_left_out:
            yield "@", str(n_left_out)
            n_left_out = 0
        yield line
    if n_left_out:
        yield "@", str(n_left_out)
