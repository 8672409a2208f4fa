"""What the rows say: a line for each kind and system, and one for each system over all kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, median
from typing import Any

from support.table import print_table
from support.uplift.persons import PERSONS

Row = Mapping[str, Any]
HEAD = (
    "what", "system", "right", "marks", "F1", "calls", "median", "tokens in", "out", "read anew",
    "seconds",
)  # fmt: skip
DEEP = 4  # look-ups


def print_tables(rows: Sequence[Row]) -> None:
    """Print a table for each model, its sums last. Calls, tokens and seconds are means of a case,
    beside the median of the calls."""
    for model in dict.fromkeys(row["model"] for row in rows):
        of_model = [row for row in rows if row["model"] == model]
        lines = [
            line
            for name, belongs in GROUPS.items()
            for line in render_group(name, [row for row in of_model if belongs(row)])
        ]
        print_table(f"Model {model}", HEAD, lines)


def render_group(name: str, rows: Sequence[Row]) -> list[list[object]]:
    return [
        render_line(name, system, [row for row in rows if row["system"] == system])
        for system in dict.fromkeys(row["system"] for row in rows)
    ]


def render_line(name: str, system: str, rows: Sequence[Row]) -> list[object]:
    def each(what: str) -> str:
        return f"{mean(row[what] for row in rows):,.0f}"

    return [
        name,
        system,
        f"{sum(row['is_right'] for row in rows)}/{len(rows)}",
        f"{sum(row['n_held'] for row in rows)}/{sum(row['n_marks'] for row in rows)}",
        f"{mean(row['f1'] for row in rows):.2f}",
        f"{mean(row['calls'] for row in rows):.1f}",
        f"{median(row['calls'] for row in rows):g}",
        *map(each, ("tokens_in", "tokens_out", "tokens_anew", "seconds")),
    ]


def _of_kind(kind: str) -> Callable[[Row], bool]:
    return lambda row: row["kind"] == kind


def _is_folder(row: Row) -> bool:
    return bool(row["kind"] != PERSONS)


def _is_built_on(row: Row) -> bool:
    return bool(row["case"].startswith("build-"))


GROUPS: Mapping[str, Callable[[Row], bool]] = {
    **{kind: _of_kind(kind) for kind in ("one", "join", "count", "compare", "absent", "letter")},
    "folders that fit": lambda row: _is_folder(row) and row["is_small"],
    "folders that do not": lambda row: _is_folder(row) and not row["is_small"],
    "folders of 3 files or more": lambda row: _is_folder(row) and row["depth"] >= 3,
    "folders to build on": lambda row: _is_folder(row) and _is_built_on(row),
    "folders of a fresh seed": lambda row: _is_folder(row) and not _is_built_on(row),
    "all folders": _is_folder,
    f"persons, depth < {DEEP}": lambda row: not _is_folder(row) and row["depth"] < DEEP,
    f"persons, depth >= {DEEP}": lambda row: not _is_folder(row) and row["depth"] >= DEEP,
    "all": lambda row: True,
}
