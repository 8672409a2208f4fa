"""The only code that chooses and opens backends: settings in, a working whole out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from babyagi.settings import Settings
from babyagi.tasks import Objective
from babyagi.taskstore.base import TaskStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run came back: the objective as it is now, and the signal number that asked us to stop (None if nobody did)."""

    objective: Objective
    stopped_by_signal: int | None = None


class App:
    """Everything that is needed to start objectives, run them and look at them."""

    settings: Settings
    store: TaskStore

    async def start_objective(self) -> tuple[Objective, bool]:
        """Create the objective that the settings describe, or find the unfinished or ended one that it is (promise 14).

        Returns:
            The objective, and True when it was created by this call.
        """
        raise NotImplementedError

    async def run(self, objective_id: int) -> RunOutcome:
        """Work on the objective until it has ended and its report is written, is paused, or a signal drains this worker."""
        raise NotImplementedError


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[TaskStore]:
    """The task store of the home, to look at and to steer; opens no model and no result store."""
    raise NotImplementedError
    yield


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncIterator[App]:
    """The whole, closed again in the reverse order. Checks what can be checked before the first model call."""
    raise NotImplementedError
    yield
