"""The files of an earlier commit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A folder with the files of the commit, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="babyagi-old-") as folder:
        packed, tree = Path(folder) / "old.tar", Path(folder) / "old"
        command = ["git", "archive", "--format=tar", f"--output={packed}", commit]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"git does not know {commit}: {done.stderr.strip()}")
        shutil.unpack_archive(packed, tree)
        yield tree
