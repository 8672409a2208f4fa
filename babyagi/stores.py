"""Opening the task store that the settings name: a file in the home, another file, or a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from babyagi.errors import SettingsError
from babyagi.home import make_home
from babyagi.settings import Settings
from babyagi.taskstore.base import TaskStore
from babyagi.taskstore.offload import ThreadOffload
from babyagi.taskstore.sql import migrate_postgres, open_postgres, open_sqlite

N_SERVER_CONNECTIONS = 3


@asynccontextmanager
async def open_store(
    settings: Settings, *, tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator[TaskStore]:
    """The task store that the settings name, to look at and to steer; opens no model and no result
    store. `tell`: see `open_sqlite`."""
    make_home(settings.home)
    address = settings.task_store.reveal()
    is_server = address.startswith("postgres")
    offload = ThreadOffload(name="taskstore", n_threads=N_SERVER_CONNECTIONS if is_server else 1)
    try:
        if is_server:
            store = await open_postgres(address, offload=offload, tell=tell)
        else:
            path = (
                Path(address.removeprefix("sqlite://")) if address else settings.home / "tasks.db"
            )
            store = await open_sqlite(path, clock=utc_now, offload=offload, tell=tell)
        try:
            yield store
        finally:
            await store.close()
    finally:
        offload.close()


async def migrate_store(settings: Settings) -> tuple[int, int]:
    """Bring the schema of the task store up to date while no worker lives; returns its version
    before and after.

    Raises:
        StoreUnusableError: a worker lives, or see `open_postgres`. SettingsError: a SQLite file
        does that by itself when it is opened.
    """
    address = settings.task_store.reveal()
    if not address.startswith("postgres"):
        raise SettingsError(
            "there is nothing to migrate",
            why="a task store in a file is brought up to date when it is opened",
            guide="machines",
        )
    offload = ThreadOffload(name="taskstore")
    try:
        return await migrate_postgres(address, offload=offload)
    finally:
        offload.close()


def utc_now() -> datetime:
    return datetime.now(UTC)
