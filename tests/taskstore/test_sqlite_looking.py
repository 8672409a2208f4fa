"""A store that is only looked at: nothing is created, upgraded or written."""

import asyncio
import shutil
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from babyagi.errors import StoreUnusableError
from babyagi.runtime.offload import ThreadOffload, run_inline
from babyagi.tasks import Proposal
from babyagi.taskstore.sql import database
from babyagi.taskstore.sql.store import TaskStore
from babyagi.taskstore.sqlite import SqliteDatabase, open_for_looking, open_sqlite
from tests.taskstore.contract import Clock, begin, make_worker
from tests.taskstore.old_home import VERSION, unpack_file

SCRIPTS = database.load_scripts("sqlite")


@asynccontextmanager
async def writing(path, *, scripts=SCRIPTS):
    opened = SqliteDatabase(path, clock=Clock(), scripts=scripts)
    store = TaskStore(opened, offload=run_inline, tell=lambda _: None)
    yield store
    await store.close()


@asynccontextmanager
async def looking(path, *, offload=run_inline):
    store = await open_for_looking(path, clock=Clock(), offload=offload)
    yield store
    await store.close()


def content(folder):
    """The bytes of each file by name, without the log's index, where readers leave marks."""
    found = [path for path in folder.iterdir() if not path.name.endswith("-shm")]
    return {path.name: path.read_bytes() if path.is_file() else b"" for path in found}


async def names(store):
    return [task.name for one in await store.objectives() for task in await store.tasks(one.id)]


async def test_a_closed_store_is_read_and_its_folder_stays_as_it_was(tmp_path):
    async with writing(tmp_path / "tasks.db") as store:
        await begin(store, "Sing")
    before = content(tmp_path)

    async with looking(tmp_path / "tasks.db") as store:
        assert "Sing" in await names(store)

    assert content(tmp_path) == before


async def test_where_there_is_no_store_there_is_no_objective_and_none_is_created(tmp_path):
    async with looking(tmp_path / "away" / "tasks.db") as store:
        assert await store.objectives() == []

    assert list(tmp_path.iterdir()) == []


async def test_what_a_running_worker_commits_is_seen(tmp_path):
    async with writing(tmp_path / "tasks.db") as store, looking(tmp_path / "tasks.db") as looker:
        objective_id = await begin(store, "Sing")
        assert "Sing" in await names(looker)
        await store.add_tasks(objective_id, [Proposal(name="Dance")])
        assert "Dance" in await names(looker)
    async with looking(tmp_path / "tasks.db") as looker:  # the log is gone
        assert "Dance" in await names(looker)
        async with writing(tmp_path / "tasks.db") as store:
            await store.add_tasks(objective_id, [Proposal(name="Rest")])
            assert "Rest" in await names(looker)


async def test_commits_that_a_killed_worker_left_in_the_log_are_read_where_no_file_can_be_created(
    tmp_path,
):
    home, left = tmp_path / "home", tmp_path / "left"
    home.mkdir()
    async with writing(home / "tasks.db") as store:
        await begin(store, "Sing")
        shutil.copytree(home, left)
    (left / "tasks.db-shm").unlink()
    (left / "tasks.db-shm").mkdir()  # in its place no index can be made
    before = content(left)

    async with looking(left / "tasks.db") as store:
        assert "Sing" in await names(store)

    assert content(left) == before


async def test_what_would_be_written_is_refused(tmp_path):
    async with writing(tmp_path / "tasks.db") as store:
        objective_id = await begin(store, "Sing")
    before = content(tmp_path)

    async with looking(tmp_path / "tasks.db") as store:
        with pytest.raises(StoreUnusableError):
            await store.add_tasks(objective_id, [Proposal(name="Dance")])

    assert content(tmp_path) == before


async def test_an_older_store_is_read_beside_its_worker_and_stays_at_its_version(tmp_path):
    unpack_file(tmp_path / "tasks.db")
    async with writing(tmp_path / "tasks.db", scripts=replace(SCRIPTS, version=VERSION)) as store:
        await begin(store, "Sing")
        await store.register_worker(make_worker("w-old"), lease_s=60)
        before = content(tmp_path)

        async with looking(tmp_path / "tasks.db") as looker:
            assert "Sing" in await names(looker)
            assert [one.id for one in await looker.workers()] != []

        assert content(tmp_path) == before


async def test_a_commit_is_noticed_in_a_store_that_nobody_wrote_to_before(tmp_path):
    path = tmp_path / "tasks.db"
    async with writing(path) as store:
        objective_id = await begin(store, "Sing")
        last_id = await store.last_event_id(objective_id)
    offload = ThreadOffload()
    async with looking(path, offload=offload) as looker:
        writer = await open_sqlite(path, clock=Clock(), offload=run_inline)
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            group.create_task(looker.wait_for_events(objective_id, after_id=last_id, timeout_s=300))
            await asyncio.sleep(0)
            await writer.add_tasks(objective_id, [Proposal(name="Dance")])
        await writer.close()
    offload.close()


async def test_a_home_that_may_not_be_entered_is_no_empty_one(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(StoreUnusableError, match="cannot be read"):
        await open_for_looking(tmp_path / "loop" / "tasks.db", clock=Clock(), offload=run_inline)
