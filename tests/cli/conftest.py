"""A home of the command line in an empty folder, and a task store in a file with one objective that
a worker serves, for tests of what follows it."""

from datetime import UTC, datetime

import pytest

from babyagi.cli.session import close_log
from babyagi.runtime.offload import ThreadOffload
from babyagi.taskstore.sqlite import open_sqlite
from support.workers import join
from tests.cli import homes, samples
from tests.taskstore.empty import put_empty_store


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    yield tmp_path / "home"
    close_log()


@pytest.fixture
async def store(tmp_path):
    put_empty_store(tmp_path / "tasks.db")
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
