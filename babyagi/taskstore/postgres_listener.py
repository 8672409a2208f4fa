"""Hearing of what others commit: one connection and one thread per store, which reconnect by
themselves."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

# a connection that nobody cut, and that is silent for so long, is asked whether it is alive
PING_S = 15.0
RECONNECT_PAUSE_S = 1.0


class Listener:
    """Counts the commits of others. Its thread starts with the first question.

    Args:
        connect: gives a new connection. pieces: the named SQL.
        is_own: whether the server's process of this number is one of ours.
    """

    def __init__(
        self,
        connect: Callable[[], psycopg.Connection[Any]],
        *,
        pieces: Mapping[str, str],
        is_own: Callable[[int], bool],
    ) -> None:
        self._connect = connect
        self._pieces = pieces
        self._is_own = is_own
        self._n_heard = -1
        self._on_heard: Callable[[], None] = lambda: None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed_fd, self._close_fd = os.pipe()

    def n_heard(self) -> int:
        """A number that changes when somebody else has committed, and when listening begins: nobody
        knows what was missed; -1 before."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="taskstore-listener", daemon=True
                )
                self._thread.start()
        return self._n_heard

    def watch(self, on_heard: Callable[[], None]) -> None:
        """Begin to listen; call it in the thread whenever the number changes."""
        self._on_heard = on_heard
        self.n_heard()

    def close(self) -> None:
        """End the thread. A second call does nothing."""
        if self._close_fd < 0:
            return
        os.close(self._close_fd)
        self._close_fd = -1
        if self._thread is not None:
            self._thread.join()
        os.close(self._closed_fd)

    def _run(self) -> None:
        import psycopg

        while not self._is_closed(0):
            with suppress(psycopg.Error), self._connect() as connection:
                connection.execute(self._pieces["listen"])
                self._hear_one()
                self._hear(connection)
                return
            if self._is_closed(RECONNECT_PAUSE_S):
                return

    def _hear(self, connection: psycopg.Connection[Any]) -> None:
        """Returns when the store is closed, raises when the connection is lost."""
        while True:
            readable, _, _ = select.select([connection.fileno(), self._closed_fd], [], [], PING_S)
            if self._closed_fd in readable:
                return
            if not readable:
                connection.execute(self._pieces["ping"])
            for notice in connection.notifies(timeout=0):
                if not self._is_own(notice.pid):
                    self._hear_one()

    def _hear_one(self) -> None:
        self._n_heard += 1
        self._on_heard()

    def _is_closed(self, timeout_s: float) -> bool:
        return bool(select.select([self._closed_fd], [], [], timeout_s)[0])
