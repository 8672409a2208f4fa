"""The lock that writers of one file queue on: fair, and with a bound.

SQLite's own waiting is not fair, nor is asking for the lock again and again: of four writers one
waited for a second. The kernel lets those who sleep in flock in one after the other, but cannot be
told for how long; so whoever must wait does it in a thread that can be left.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from babyagi.errors import StoreUnavailableError

LOCK_TIMEOUT_S = 10.0


class FileLock:
    """Held by one process at a time, and used by one thread of it.

    Args:
        open_file: opens the lock's file, for each wait anew: a lock belongs to an opening.
    """

    def __init__(self, path: Path, *, open_file: Callable[[Path], int]) -> None:
        self._path = path
        self._open_file = open_file
        self._fd = open_file(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises `StoreUnavailableError` when another process keeps it, so that a writer frozen by
        a debugger hangs nobody for ever."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fd = self._wait()
            try:
                yield
            finally:
                os.close(fd)
            return
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._fd)

    def _wait(self) -> int:
        """The file, opened once more and locked."""
        fd = self._open_file(self._path)
        if not _Wait(fd).is_over(LOCK_TIMEOUT_S):
            raise StoreUnavailableError(
                f"the task store {self._path.with_suffix('')} is locked",
                why=f"another process held {self._path} for {LOCK_TIMEOUT_S:g} s",
                guide="store",
            )
        return fd


class _Wait:
    """Waiting for the lock in a thread; whoever gives up leaves file and thread behind, to end when
    the lock is free."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_left = False
        self._mutex = threading.Lock()
        self._got = threading.Event()
        threading.Thread(target=self._run, name="taskstore-lock", daemon=True).start()

    def is_over(self, timeout_s: float) -> bool:
        """True when the lock is held; after False the file is not the caller's any more."""
        self._got.wait(timeout_s)
        with self._mutex:
            self._is_left = not self._got.is_set()
        return not self._is_left

    def _run(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        with self._mutex:
            if self._is_left:
                os.close(self._fd)
            else:
                self._got.set()
