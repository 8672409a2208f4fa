"""An empty task store in a file: made once, and copied to where a test needs one."""

import functools
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from babyagi.taskstore.sqlite import SqliteDatabase


def put_empty_store(path):
    """Write what the program leaves where it makes a store and closes it; to make one takes twelve
    times as long as to open one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(_made())


@functools.cache
def _made():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.db"
        SqliteDatabase(path, clock=lambda: datetime(2030, 1, 1, tzinfo=UTC)).close()
        return path.read_bytes()
