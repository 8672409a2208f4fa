"""A connection that does not wait for ever; the driver is loaded with this module, so it is
imported where a database is opened.

The server's own limits do not help when it is frozen, or when something between takes every byte
and answers none.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg

ANSWER_S = 65.0  # longer than the server may take for a statement


class BoundedConnection(psycopg.Connection[Any]):
    """Whatever has no answer after `ANSWER_S` ends the connection."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        began_s, bound_s = time.monotonic(), ANSWER_S if timeout is None else timeout
        try:
            return super().wait(gen, interval, bound_s)
        except psycopg.Error as error:
            if timeout is None and error.sqlstate is None and time.monotonic() - began_s >= bound_s:
                self.pgconn.finish()
                raise psycopg.OperationalError(f"no answer for {bound_s:g} s") from None
            raise
