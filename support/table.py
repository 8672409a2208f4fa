"""The one way in which benchmarks say what they found: a small table with the goal beside each
figure."""

from __future__ import annotations

from collections.abc import Sequence


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print the rows under a title, each column as wide as its longest cell."""
    cells = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    print(title, lines[0], "-" * len(lines[0]), *lines[1:], "", sep="\n")


def verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"
