"""A task store in a file with one objective that a worker serves, for tests of what follows it."""

from datetime import UTC, datetime

import pytest

from babyagi.offload import ThreadOffload
from babyagi.taskstore.sqlite import open_sqlite
from support.workers import join
from tests.cli import homes, samples


@pytest.fixture
async def store(tmp_path):
    offload = ThreadOffload()
    opened = await open_sqlite(
        tmp_path / "tasks.db", clock=lambda: datetime.now(UTC), offload=offload
    )
    yield opened
    await opened.close()
    offload.close()


@pytest.fixture
async def objective(store):
    created, _ = await store.create_objective(samples.spec(), uid="u1")
    await join(store, homes.WORKER, created.id)
    return created
