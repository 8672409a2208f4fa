"""What every command begins with: the settings, the log file, the store, and the objective that is
meant."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Container, Mapping
from pathlib import Path
from typing import TypeVar

from babyagi.cli.logfile import open_log
from babyagi.cli.trusting import settle
from babyagi.errors import NotFoundError, SettingsError
from babyagi.settings import Loaded, Settings, load_settings
from babyagi.tasks import Objective, ObjectiveStatus
from babyagi.taskstore.base import TaskStore

T = TypeVar("T")

LATEST = "latest"
NOTHING: frozenset[str] = frozenset()
STORE = frozenset({"home", "task_store"})


def load(
    flags: Mapping[str, object] | None = None,
    *,
    needs: Container[str] | None = None,
    reads_files: bool = True,
) -> Loaded:
    """Return the settings with their sources, from the given flags, the environment and the files;
    the log file is open then.

    Args:
        needs: the fields of which none may wait for trust; all of them when not given. `NOTHING`
            for whoever only looks.

    Raises:
        SettingsError: a value makes no sense, or one of these waits and nobody says that its file
        is trusted.
    """
    loaded = settle(
        lambda: load_settings(
            flags=flags or {}, environ=os.environ, cwd=Path.cwd(), reads_files=reads_files
        ),
        needs,
    )
    settings = loaded.settings
    keys = (
        settings.openai_api_key,
        settings.pinecone_api_key,
        settings.weaviate_api_key,
        settings.serpapi_api_key,
    )
    open_log(
        settings.effective_log_file,
        level=settings.log_level,
        home=settings.home,
        secrets=[key.reveal() for key in keys],
    )
    if loaded.settings.no_color:
        os.environ["NO_COLOR"] = "1"  # so that a flag or a file says it as the variable does
    return loaded


def with_store(
    body: Callable[[TaskStore], Awaitable[T]],
    *,
    changes: bool = False,
    settings: Settings | None = None,
) -> T:
    """Open the task store of the settings, run the body on it, and close it again.

    Args:
        changes: the body changes something, so it must be the store that is meant.
    """
    from babyagi.stores import open_store

    settings = settings or load(needs=STORE if changes else NOTHING).settings

    async def run() -> T:
        async with open_store(settings) as store:
            return await body(store)

    return asyncio.run(run())


async def pick_objective(store: TaskStore, selector: str) -> Objective:
    """Return the objective that `selector` (a number or `latest`) means.

    Raises:
        NotFoundError: there is none.
        SettingsError: the selector is neither.
    """
    if selector != LATEST:
        return await store.objective(_parse_id(selector))
    objectives = await store.objectives()
    if not objectives:
        raise NotFoundError(
            "there is no objective yet",
            why="the task store holds none",
            fix='babyagi demo, or babyagi run "an objective"',
            guide="start",
        )
    return objectives[-1]


async def pick_unfinished(store: TaskStore, selector: str) -> Objective:
    """Return the objective to go on with: the one that is named, else the newest that has not come
    to its end and report."""
    if selector != LATEST:
        return await store.objective(_parse_id(selector))
    unfinished = [objective for objective in await store.objectives() if not is_over(objective)]
    if not unfinished:
        raise NotFoundError(
            "there is no unfinished objective",
            why="every objective of the task store has ended and has its report",
            fix=(
                "babyagi objectives shows them; babyagi extend raises a limit; babyagi run "
                "starts a new one"
            ),
            guide="objectives",
        )
    return unfinished[-1]


def is_over(objective: Objective) -> bool:
    """Whether nothing is left to do: ended, and its report is written."""
    return objective.status is ObjectiveStatus.ENDED and objective.has_report


def _parse_id(selector: str) -> int:
    if not selector.isdecimal() or len(selector) > 18:
        raise SettingsError(
            f"--objective must be a number or `latest`, got {selector!r}",
            fix="babyagi objectives shows the numbers",
            guide="objectives",
        )
    return int(selector)
