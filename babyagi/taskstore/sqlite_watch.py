"""Seeing that somebody has committed to a file: a thread that looks at its write-ahead log.

A look costs half as much in a thread that does nothing else as in the event loop, which wakes up in
many steps (the figures are in `docs/log.md`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

LOOK_S = 0.08  # who waits is awake within 100 ms of a commit


class FileWatch:
    """Calls `on_sign` at the first look, when the file's time or size has changed, and at the look
    after that: two commits close together may leave the same time and size, and the second come
    after whoever was called has looked."""

    def __init__(self, path: Path, *, on_sign: Callable[[], None]) -> None:
        self._path = str(path)
        self._on_sign = on_sign
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="taskstore-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. A second call does nothing."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        seen, looks_again = self._glance(), True
        while not self._closed.wait(LOOK_S):
            sign = self._glance()
            if sign != seen or looks_again:
                self._on_sign()
            seen, looks_again = sign, sign != seen

    def _glance(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116  # a Path costs a sixth of the whole look
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size
