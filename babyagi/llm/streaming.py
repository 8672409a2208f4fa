"""An answer that comes as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class StreamError(Exception):
    """A stream that is no answer.

    Args:
        what: what is wrong with it.
        said: the server's error, as an object that holds it as `error`; None where it said none.
        has_begun: text had come before. usage: what the stream says that it cost, as it came.
    """

    def __init__(
        self,
        what: str,
        *,
        said: Mapping[str, Any] | None = None,
        has_begun: bool = False,
        usage: Any = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.said = said
        self.has_begun = has_begun
        self.usage = usage
