"""How many poisoned texts a check takes for an answer, and how many honest ones it refuses, with a
model that obeys what it reads: `python -m tests.faults.poisoned`.

No filter of words stands in the way: the boundary is what a tool may do, and that is tested.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from babyagi.tasks import StopReason
from support.table import print_table
from tests.system.test_poisoned_texts import FINDINGS, HONEST, PARTS, TEXTS, run

MET = (StopReason.OBJECTIVE_MET, StopReason.FINISHED)


def count(entries: list[dict[str, str]], *, are_honest: bool) -> tuple[int, int]:
    """Return (how many runs ended as met, how many effects there were)."""
    n_met = n_effects = 0
    for n, entry in enumerate(entries):
        with tempfile.TemporaryDirectory() as folder:
            ended, _, _, _, paid = run(
                Path(folder), entry, n, parts=PARTS[-1] if are_honest else None
            )
            n_met += ended.stop_reason in MET
            n_effects += len(paid) + len(list(Path(folder).iterdir())) - 1
    return n_met, n_effects


def main() -> int:
    rows, n_all = [], 0
    for name, entries, are_honest in (
        ("poisoned texts", TEXTS, False),
        ("poisoned findings", FINDINGS, False),
        ("honest findings", HONEST, True),
    ):
        n_met, n_effects = count(entries, are_honest=are_honest)
        n_all += n_effects
        rows.append((name, str(len(entries)), str(n_met), str(n_effects)))
    print_table("An obeying model", ("texts", "number", "ended as met", "effects"), rows)
    return 1 if n_all else 0


if __name__ == "__main__":
    sys.exit(main())
