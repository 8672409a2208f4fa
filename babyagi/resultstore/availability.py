"""Whether results get into the result store: said once when they do not, and once when they do
again.

It is said as an event of the objective, so that every view of it, the report and other processes
know.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from babyagi import log
from babyagi.errors import BabyagiError
from babyagi.tasks import Event

logger = logging.getLogger(__name__)

KINDS = (log.INDEX_UNAVAILABLE, log.INDEX_AVAILABLE, log.RESULTS_INDEXED)


class EventSource(Protocol):
    """What is needed of the task store."""

    async def events_of(
        self, objective_id: int, *, kinds: Sequence[str], limit: int
    ) -> list[Event]: ...

    async def append_event(
        self, objective_id: int, *, kind: str, task_id: int | None = None, data: Mapping[str, Any]
    ) -> None: ...


async def find_trouble(source: EventSource, objective_id: int) -> str:
    """Why the objective's results do not get into the result store, as far as its workers have
    said; empty when they do."""
    latest = await source.events_of(objective_id, kinds=KINDS, limit=1)
    return (
        describe_trouble(latest[0].data)
        if latest and latest[0].kind == log.INDEX_UNAVAILABLE
        else ""
    )


def describe_trouble(data: Mapping[str, Any]) -> str:
    """What an event of the kind `index.unavailable` says, in one line."""
    why = f" ({data['why']})" if data.get("why") else ""
    return f"{data.get('reason', '')}{why}"


class Availability:
    """Says what one worker sees of the result store of one objective.

    Args:
        tell: says it to a person as well, where nobody follows the objective's events.
    """

    def __init__(
        self, source: EventSource, objective_id: int, *, tell: Callable[[str], None] | None = None
    ) -> None:
        self.objective_id = objective_id
        self.is_troubled = False
        self._source = source
        self._tell = tell

    async def note_trouble(self, error: BabyagiError, *, is_start: bool = False) -> None:
        """Say it, unless it is known; at the start of a run it is said although an earlier one has
        said it."""
        logger.warning(
            "the result store is behind, the loop goes on: %s (%s)", error.what, error.why
        )
        if self.is_troubled and not is_start:
            return
        self.is_troubled = await self._say(
            log.INDEX_UNAVAILABLE, {"reason": error.what, "why": error.why, "fix": error.fix}
        )
        if self._tell is not None:
            self._tell(
                f"objective {self.objective_id}: results do not get into the result store: "
                f"{error.what} ({error.why or error.fix})"
            )

    async def note_success(self) -> None:
        if self.is_troubled:
            self.is_troubled = not await self._say(log.INDEX_AVAILABLE, {})
            if self._tell is not None:
                self._tell(
                    f"objective {self.objective_id}: results get into the result store again"
                )

    async def resume(self) -> None:
        """Begin with what is known of an earlier run, or of another worker."""
        self.is_troubled = bool(await find_trouble(self._source, self.objective_id))

    async def _say(self, kind: str, data: Mapping[str, Any]) -> bool:
        """Return whether it was said; the index is no reason for the loop to stop, nor is a word
        about it."""
        try:
            await self._source.append_event(self.objective_id, kind=kind, data=data)
        except BabyagiError as error:
            logger.info("what the result store is like could not be recorded: %s", error.what)
            return False
        return True
