"""The command line: the only code that prints or exits."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code. The screen never shows a traceback."""
    from babyagi.cli.root import run_guarded
    from babyagi.cli.text import silence_broken

    code = run_guarded(list(sys.argv[1:] if argv is None else argv))
    silence_broken()
    sys.exit(code)
