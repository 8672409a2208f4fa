"""Which earlier results the tries of a task were given, read from the journal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from babyagi.tasks import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An earlier result that a try was given. `score` is None for one that an earlier version of
    this program chose, `objective_id` for one of the same objective."""

    try_no: str
    task_id: int
    score: float | None
    reason: str
    objective_id: int | None = None


def given_results(steps: Sequence[Step]) -> list[Given]:
    """In the order in which they stood in the prompt, try by try."""
    found = []
    for step in steps:
        if step.kind == "inputs" and step.output is not None:
            try_no = step.key.partition("/")[0]
            for entry in json.loads(step.output).get("excerpts", []):
                given = Given(
                    try_no=try_no,
                    task_id=entry["task_id"],
                    score=entry.get("score"),
                    reason=entry.get("reason", ""),
                    objective_id=entry.get("objective_id"),
                )
                found.append(given)
    return found
