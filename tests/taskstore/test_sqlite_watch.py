"""The thread that looks at SQLite's write-ahead log."""

import asyncio
import os
import queue

import pytest

from babyagi.runtime.offload import ThreadOffload, run_inline
from babyagi.taskstore.sqlite import LOOK_S, FileWatch, SqliteDatabase, open_sqlite
from tests.taskstore.contract import Clock, begin


def test_a_change_is_said_and_once_more_at_the_next_look_because_a_second_commit_may_leave_the_same_sign(
    tmp_path,
):
    said: queue.Queue[None] = queue.Queue()
    path = tmp_path / "tasks.db-wal"
    watch = FileWatch(path, on_commit=lambda: said.put(None))
    said.get(timeout=300)  # nobody knows what came before
    with pytest.raises(queue.Empty):
        said.get(timeout=3 * LOOK_S)

    (tmp_path / "written").write_bytes(b"a commit")
    (tmp_path / "written").rename(path)  # a file that is made and then written is two changes

    said.get(timeout=300)
    said.get(timeout=300)
    with pytest.raises(queue.Empty):
        said.get(timeout=3 * LOOK_S)
    watch.close()
    watch.close()


def gives_a_sign(watch):
    return watch._glance() != watch._seen


def test_a_commit_of_our_own_is_passed_over_unless_another_came_before_it(tmp_path):
    path = tmp_path / "tasks.db-wal"
    path.write_bytes(b"0")
    watch = FileWatch(path, on_commit=lambda: None)
    watch.close()  # a look between a write and what follows it would also be right

    with watch.passing_over():
        path.write_bytes(b"1")
    assert not gives_a_sign(watch)

    path.write_bytes(b"22")  # by another process
    with watch.passing_over():
        path.write_bytes(b"3")
    assert gives_a_sign(watch)


def test_a_commit_right_after_our_own_is_seen_though_the_kernel_counts_in_milliseconds(tmp_path):
    path = tmp_path / "tasks.db-wal"

    def commit_in_the_same_millisecond():
        path.write_bytes(b"1")
        os.utime(path, ns=(10**18, 10**18))

    commit_in_the_same_millisecond()
    watch = FileWatch(path, on_commit=lambda: None)
    watch.close()

    with watch.passing_over():
        commit_in_the_same_millisecond()
    commit_in_the_same_millisecond()

    assert gives_a_sign(watch)


async def test_a_store_gives_no_sign_of_its_own_commits(tmp_path):
    store = await open_sqlite(tmp_path / "tasks.db", clock=Clock(), offload=run_inline)
    database = store._database
    assert isinstance(database, SqliteDatabase)
    database.watch(lambda: None)
    watch = database._watch
    assert watch is not None
    watch.close()

    await begin(store)

    assert not gives_a_sign(watch)
    await store.close()


def test_a_store_outlives_the_event_loop_that_waited_in_it(tmp_path):
    offload = ThreadOffload()

    async def wait():
        store = await open_sqlite(tmp_path / "tasks.db", clock=Clock(), offload=offload)
        await store.wait_for_change(timeout_s=60)
        return store

    async def commit():
        store = await open_sqlite(tmp_path / "tasks.db", clock=Clock(), offload=run_inline)
        await begin(store)
        await asyncio.sleep(3 * LOOK_S)
        await store.close()

    store = asyncio.run(wait())
    asyncio.run(commit())

    asyncio.run(store.close())
    offload.close()
